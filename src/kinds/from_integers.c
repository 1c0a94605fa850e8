/* SPDX-License-Identifier: BSD-3-Clause */
#include "from_integers.h"

#include "../element.h"

npuq_status npuq_check_columns(const npuq_arguments *arguments, int i, int64_t columns)
{
    const char *op = arguments->signature->op;
    const char *name = arguments->signature->arguments[i].name;
    const npuq_tensor *tensor = arguments->tensors[i];
    const int last = tensor->ndim - 1;

    if (tensor->shape[last] == 1 || tensor->shape[last] == columns) {
        return NPUQ_OK;
    }
    if (columns == 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, name, "dimension %d is %lld; expected 1, as a row of x has 1 element",
                         last, (long long)tensor->shape[last]);
    }
    return npuq_fail(NPUQ_ERROR_SHAPE, op, name,
                     "dimension %d is %lld; expected 1 or %lld, the elements of x's last dimension", last,
                     (long long)tensor->shape[last], (long long)columns);
}

static const int32_t *contiguous_ints(const npuq_params *params, size_t n, int32_t *buffer)
{
    if (params->stride == (ptrdiff_t)sizeof *buffer) {
        return (const int32_t *)(const void *)params->data;
    }
    npuq_copy_row((char *)buffer, sizeof *buffer, params->data, params->stride, sizeof *buffer, n);
    return buffer;
}

/* offsets may be null. */
static void unpack_words(const npuq_row_kernels *kernels, const npuq_params *words, size_t n, float *scales,
                         int32_t *offsets)
{
    if (words->stride == (ptrdiff_t)sizeof(uint64_t)) {
        kernels->unpack((const uint64_t *)(const void *)words->data, scales, offsets, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t word = *(const uint64_t *)(const void *)(words->data + (ptrdiff_t)i * words->stride);

        scales[i] = npuq_scale_of_word(word);
        if (offsets) {
            offsets[i] = npuq_offset_of_word(word);
        }
    }
}

static bool adds_before_product(const npuq_kernel_setup *setup)
{
    return setup->types[NPUQ_INTEGERS_X] != NPUQ_TYPE_INT32;
}

typedef struct dequant_columns {
    npuq_params scale;
    npuq_params addend;
    bool are_words;
    bool words_have_offsets; /* one of them is not 0 */
    bool is_x_bias;          /* the addend is of int32 */
} dequant_columns;

static inline bool go_by_column(const npuq_kernel_setup *setup, const dequant_columns *c)
{
    return c->scale.stride != 0 || (adds_before_product(setup) && c->addend.stride != 0);
}

/* Whether parameters by column have to be converted or copied before the kernels can read them. */
static inline NPUQ_INLINED bool converts_columns(const npuq_kernel_setup *setup, const dequant_columns *c)
{
    const bool by_column = go_by_column(setup, c);

    return (by_column && npuq_needs_conversion(&c->scale)) ||
           (c->is_x_bias ? c->addend.stride != (ptrdiff_t)sizeof(int32_t)
                         : (by_column || !adds_before_product(setup)) && npuq_needs_conversion(&c->addend));
}

static inline dequant_columns find_columns(const npuq_plan *plan, npuq_params scale, npuq_params addend)
{
    const npuq_integers_own *own = npuq_get_own(plan);

    return (dequant_columns){scale, addend, (NPUQ_SET(WORDS) >> scale.type & 1) != 0, own->words_have_offsets,
                             addend.data && addend.type == NPUQ_TYPE_INT32};
}

static inline dequant_columns find_tile_columns(const npuq_plan *plan, const npuq_tile *tile)
{
    return find_columns(plan, npuq_make_params(&plan->setup, tile, NPUQ_INTEGERS_SCALE),
                        npuq_make_params(&plan->setup, tile, NPUQ_INTEGERS_ADDEND));
}

/* Whether the kernel takes words by column where they lie: of one row. For several rows, they are unpacked once. */
static bool are_words_in_place(const npuq_kernel_setup *setup, const npuq_tile *tile, const npuq_params *words)
{
    return tile->rows == 1 && words->stride == (ptrdiff_t)sizeof(uint64_t) && words->repeat == 1 &&
           setup->kernels->takes_any_columns;
}

typedef struct dequant_buffers {
    _Alignas(64) float scales[NPUQ_MOST_SCALED_COLUMNS + NPUQ_MAX_REPEAT];
    union { /* of a call, only one */
        _Alignas(64) float addends[NPUQ_MOST_SCALED_COLUMNS + NPUQ_MAX_REPEAT];
        _Alignas(64) int32_t x_biases[NPUQ_MOST_SCALED_COLUMNS];
    };
    _Alignas(64) int32_t y_offsets[NPUQ_MOST_SCALED_COLUMNS];
    _Alignas(64) float row_scales[NPUQ_JOINED + NPUQ_LANES];
} dequant_buffers;

typedef struct dequant_job {
    const npuq_plan *plan;
    const npuq_tile *tile;
    npuq_dequant_params *params; /* the kernel's, with by_column and row_scale */
    const float *row_scales;     /* of all rows, if rows have scales */
    dequant_buffers *buffers;
    size_t join;
} dequant_job;

/* y_offsets is null if no word has an offset. */
static void set_words(const dequant_job *job, const npuq_params *words, int32_t *y_offsets, size_t n, size_t times)
{
    const npuq_kernel_setup *setup = &job->plan->setup;
    npuq_dequant_params *p = job->params;
    float *scales = job->buffers->scales;

    if (are_words_in_place(setup, job->tile, words)) {
        scales[0] = 0.0f; /* not used */
        p->words = (const uint64_t *)(const void *)words->data;
    } else {
        unpack_words(setup->kernels, words, n, scales, y_offsets);
    }
    p->scale = npuq_repeated(scales, scales, n, times);
    p->y_offset = y_offsets ? npuq_repeated(y_offsets, y_offsets, n, times) : NULL;
}

static void set_columns(void *argument, size_t col, size_t cols)
{
    dequant_job *job = argument;
    npuq_dequant_params *p = job->params;
    const npuq_kernel_setup *setup = &job->plan->setup;
    const dequant_columns columns = find_tile_columns(job->plan, job->tile);
    dequant_buffers *buffers = job->buffers;
    const npuq_row_kernels *kernels = setup->kernels;
    const npuq_params scale = npuq_skip_params(&columns.scale, col);
    const npuq_params addend = npuq_skip_params(&columns.addend, col);
    const size_t n = p->by_column ? cols : 1;
    const size_t times = p->by_column ? job->join : 1;

    if (columns.are_words) {
        set_words(job, &scale, columns.words_have_offsets ? buffers->y_offsets : NULL, n, times);
    } else {
        p->scale = npuq_convert_repeated(kernels, &scale, n, times, buffers->scales);
    }
    if (columns.is_x_bias) {
        p->x_bias = contiguous_ints(&addend, cols, buffers->x_biases);
        p->x_bias = npuq_repeated(buffers->x_biases, p->x_bias, cols, job->join);
    } else if (addend.data && adds_before_product(setup)) {
        p->offset = npuq_convert_repeated(kernels, &addend, n, times, buffers->addends);
    } else if (addend.data) {
        p->bias = npuq_convert_repeated(kernels, &addend, cols, job->join, buffers->addends);
    }
}

/* Joined rows, with a row scale each, have row scales by column. */
static void spread_rows(void *argument, size_t row, size_t rows)
{
    dequant_job *job = argument;

    job->plan->setup.kernels->spread(job->row_scales + row, rows, job->tile->cols, job->buffers->row_scales);
    job->params->row_scales = job->buffers->row_scales;
}

void npuq_dequantise_tile(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    dequant_buffers buffers;
    float row_scales[NPUQ_MOST_SCALED_ROWS + NPUQ_MAX_REPEAT];
    const dequant_columns columns = find_tile_columns(plan, tile);
    npuq_dequant_params params = {.by_column = go_by_column(setup, &columns)};
    dequant_job job = {plan, tile, &params, NULL, &buffers, npuq_count_rows_to_join(setup, tile)};
    npuq_pass pass = {
        npuq_dequantise_kernel(setup->kernels, setup->types[NPUQ_INTEGERS_Y], setup->types[NPUQ_INTEGERS_X]),
        &params,
        true,
        job.join,
        set_columns,
        NULL,
        &job,
        converts_columns(setup, &columns) ? NPUQ_MOST_SCALED_COLUMNS : SIZE_MAX};

    if (tile->places[NPUQ_INTEGERS_ROW_SCALE].data) {
        const npuq_params row_scale = npuq_make_row_params(setup, tile, NPUQ_INTEGERS_ROW_SCALE);

        assert(tile->rows <= NPUQ_MOST_SCALED_ROWS || npuq_params_are_ready(&row_scale));
        job.row_scales = npuq_convert_params(setup->kernels, &row_scale, tile->rows, row_scales);
        if (job.join > 1) {
            pass.rows = spread_rows;
        } else {
            params.row_scale = job.row_scales;
        }
    }
    npuq_run_pass(setup, tile, &pass);
}

static bool is_single(const npuq_tensor *tensor)
{
    return !tensor || tensor->shape[tensor->ndim - 1] == 1;
}

/* Parameters by column. With three dimensions, as x then has, also by groups of rows. */
static inline void add_columns(npuq_plan *plan, const npuq_arguments *arguments, int i)
{
    const npuq_tensor *tensor = arguments->tensors[i];

    if (tensor && tensor->ndim == 3) {
        plan->setup.types[i] = (uint8_t)arguments->infos[i]->type;
        npuq_add_operand(&plan->area.space, i, tensor);
    } else {
        npuq_add_by_column(plan, arguments, i);
    }
}

npuq_status npuq_plan_from_integers(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *const *tensors = arguments->tensors;
    const bool has_row_scale = tensors[NPUQ_INTEGERS_ROW_SCALE] != NULL;
    const npuq_tensor *scale = tensors[NPUQ_INTEGERS_SCALE];
    const bool by_group = scale->ndim == 3;
    npuq_integers_own *own = npuq_set_own(plan);
    const npuq_steps steps = !has_row_scale && !by_group && is_single(scale) && is_single(tensors[NPUQ_INTEGERS_ADDEND])
                                 ? NPUQ_ONE
                                 : NPUQ_BY_COLUMN;

    (void)options;
    own->words_have_offsets = false;
    if (!npuq_start_plan(plan, arguments, NPUQ_INTEGERS_ROW_SCALE + 1, NPUQ_MUL, steps)) {
        return NPUQ_OK;
    }
    add_columns(plan, arguments, NPUQ_INTEGERS_SCALE);
    add_columns(plan, arguments, NPUQ_INTEGERS_ADDEND);
    npuq_add_by_row(plan, arguments, NPUQ_INTEGERS_ROW_SCALE);
    if (has_row_scale && plan->way == NPUQ_IN_SPACE) {
        plan->block_rows = NPUQ_MOST_SCALED_ROWS;
    }
    if (by_group && tensors[NPUQ_INTEGERS_X]->shape[1] == 1) { /* groups of one row: no two rows share parameters */
        plan->block_rows = 1;
    }
    if (plan->way == NPUQ_ONE_TILE) {
        return NPUQ_OK;
    }
    npuq_finish_operands(plan, steps == NPUQ_ONE ? NPUQ_ANY_ORDER : NPUQ_KEEP_COLUMNS);

    const dequant_columns columns = find_columns(plan, npuq_find_column_params(plan, NPUQ_INTEGERS_SCALE),
                                                 npuq_find_column_params(plan, NPUQ_INTEGERS_ADDEND));
    npuq_cut_plan(plan, arguments, NPUQ_UNIT,
                  converts_columns(&plan->setup, &columns) ? NPUQ_MOST_SCALED_COLUMNS : NPUQ_UNIT);
    return NPUQ_OK;
}
