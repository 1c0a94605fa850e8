/* SPDX-License-Identifier: BSD-3-Clause */
#include "tile.h"

#include "../kernels/dispatch.h"
#include "gather.h"

#include "../element.h"

/* Parameters are converted this many at a time: the columns of most models, for rows from memory stream best whole. */
enum { PARAMS = 4096 };

_Static_assert(PARAMS % 64 == 0 && NPUQ_DEQUANT_COLUMNS % 64 == 0, "runs of parameters begin with a word of int4");

/* Bytes of two cache lines, as CPUs fetch them in pairs. */
enum { LINES = 128 };

void npuq_choose_kernels(npuq_kernel_choice *choice, const npuq_type_info *x, const npuq_type_info *y,
                         npuq_affine_op op)
{
    assert((x->word.size & (x->word.size - 1)) == 0 && (y->word.size & (y->word.size - 1)) == 0);
    choice->kernels = npuq_kernels();
    choice->op = op;
    choice->x = x->type;
    choice->y = y->type;
    choice->words[NPUQ_AT_X] = x->word;
    choice->words[NPUQ_AT_Y] = y->word;
    choice->memory = (npuq_memory_plan){0};
}

/* ---- staging: strided columns to contiguous ones and back ------------------------------------------------------- */

/* What is done with each block of contiguous rows; first_row counts from the tile's first. */
typedef void block_fn(const void *call, const npuq_block *block, size_t first_row);

/* Whether kernels take rows where they are, and not by way of the buffer. */
static bool is_in_place(const npuq_kernel_choice *choice, const npuq_tile *tile, int operand)
{
    const npuq_storage_word s = choice->words[operand];

    if (tile->rows > 1 && tile->cols < NPUQ_SHORT &&
        tile->places[operand].row_stride != (ptrdiff_t)npuq_count_bytes(s, tile->cols)) {
        return false; /* short rows apart are slower one by one than brought together */
    }
    return tile->places[operand].col_stride == (ptrdiff_t)s.size || npuq_count_words(s, tile->cols) == 1;
}

/* Bytes of the buffer for each of x and y. */
static size_t capacity_for(bool stage_x, bool stage_y)
{
    return stage_x && stage_y ? NPUQ_STAGED / 2 : NPUQ_STAGED;
}

static npuq_place find_rows(const npuq_tile *tile, int operand, size_t row)
{
    return (npuq_place){tile->places[operand].data + (ptrdiff_t)row * tile->places[operand].row_stride,
                        tile->places[operand].row_stride, tile->places[operand].col_stride};
}

/* Rows of so many words one after the other in a buffer. */
static npuq_place list_staged(char *buffer, npuq_storage_word word, size_t words)
{
    return (npuq_place){buffer, (ptrdiff_t)(words * word.size), word.size};
}

/* A tile of no more columns than columns_at_a_time(), as many rows at a time as the buffers hold. writes_y: the
 * block function has results to scatter. Not inlined: a caller's frame would hold this buffer beside its own. */
static __attribute__((noinline)) void run_staged(const npuq_kernel_choice *choice, const npuq_tile *tile, bool writes_y,
                                                 block_fn *fn, const void *call)
{
    _Alignas(64) char buffer[NPUQ_STAGED];
    const npuq_storage_word x_word = choice->words[NPUQ_AT_X];
    const npuq_storage_word y_word = choice->words[NPUQ_AT_Y];
    const bool stage_x = !is_in_place(choice, tile, NPUQ_AT_X);
    const bool stage_y = writes_y && !is_in_place(choice, tile, NPUQ_AT_Y);
    const size_t capacity = capacity_for(stage_x, stage_y);
    const size_t x_cols = npuq_count_words(x_word, tile->cols);
    const size_t y_cols = npuq_count_words(y_word, tile->cols);
    const npuq_place staged_x = list_staged(buffer, x_word, x_cols);
    const npuq_place staged_y = list_staged(buffer + NPUQ_STAGED - capacity, y_word, y_cols);
    const size_t most = npuq_smaller(stage_x ? capacity / (x_cols * x_word.size) : SIZE_MAX,
                                     stage_y ? capacity / (y_cols * y_word.size) : SIZE_MAX);
    const npuq_hints hints = npuq_hint_staged(&choice->memory, stage_x);

    for (size_t row = 0; row < tile->rows; row += most) {
        const size_t rows = npuq_smaller(tile->rows - row, most);
        const npuq_place y = find_rows(tile, NPUQ_AT_Y, row);
        const npuq_place target = stage_y ? staged_y : y;
        npuq_place x = find_rows(tile, NPUQ_AT_X, row);

        if (stage_x) {
            npuq_copy_tile(staged_x, x, x_word.size, rows, x_cols);
            x = staged_x;
        }
        const npuq_block block = {x.data, target.data, x.row_stride, target.row_stride, rows, tile->cols, hints};

        fn(call, &block, row);
        if (stage_y) {
            npuq_copy_tile(y, staged_y, y_word.size, rows, y_cols);
        }
    }
}

static void replace_x(npuq_tile *tile, npuq_place x)
{
    tile->places[NPUQ_AT_X].data = x.data;
    tile->places[NPUQ_AT_X].row_stride = x.row_stride;
    tile->places[NPUQ_AT_X].col_stride = x.col_stride;
}

bool npuq_gather_x(const npuq_kernel_choice *choice, npuq_tile *tile, char *buffer)
{
    const npuq_storage_word word = choice->words[NPUQ_AT_X];
    const size_t x_cols = npuq_count_words(word, tile->cols);
    const npuq_place gathered = list_staged(buffer, word, x_cols);

    assert((uintptr_t)buffer % word.size == 0);
    if (is_in_place(choice, tile, NPUQ_AT_X) || x_cols > NPUQ_STAGED / word.size / tile->rows) {
        return false;
    }
    npuq_copy_tile(gathered, find_rows(tile, NPUQ_AT_X, 0), word.size, tile->rows, x_cols);
    replace_x(tile, gathered);
    return true;
}

/* A tile that is in place. */
static npuq_block make_block(const npuq_kernel_choice *choice, const npuq_tile *tile, bool writes_y)
{
    const npuq_place x = find_rows(tile, NPUQ_AT_X, 0);
    const npuq_place y = find_rows(tile, NPUQ_AT_Y, 0);
    const size_t row_bytes = npuq_count_bytes(choice->words[NPUQ_AT_X], tile->cols);
    const npuq_hints hints =
        npuq_hint_rows(writes_y ? choice->memory.writes : choice->memory.reads, tile->rows, row_bytes, x.row_stride);

    return (npuq_block){x.data, y.data, x.row_stride, y.row_stride, tile->rows, tile->cols, hints};
}

static void run_blocks(const npuq_kernel_choice *choice, const npuq_tile *tile, bool writes_y, block_fn *fn,
                       const void *call)
{
    if (is_in_place(choice, tile, NPUQ_AT_X) && (!writes_y || is_in_place(choice, tile, NPUQ_AT_Y))) {
        const npuq_block block = make_block(choice, tile, writes_y);

        fn(call, &block, 0);
    } else {
        run_staged(choice, tile, writes_y, fn, call);
    }
}

/* The part of a tile from column col on, at most `most` columns; both multiples of 8. It is made in *part, unless
 * it is the whole tile: most are, and need no copy. */
static const npuq_tile *select_columns(const npuq_kernel_choice *choice, const npuq_tile *tile, size_t col, size_t most,
                                       npuq_tile *part)
{
    if (tile->cols <= most) {
        return tile;
    }
    *part = *tile;
    part->cols = npuq_smaller(tile->cols - col, most);
    for (int i = NPUQ_AT_X; i <= NPUQ_AT_Y; i++) {
        part->places[i].data += (ptrdiff_t)npuq_count_words(choice->words[i], col) * tile->places[i].col_stride;
    }
    return part;
}

static bool lies_across(const npuq_tile *tile, int operand)
{
    return tile->rows > 1 && npuq_lies_across(tile->places[operand].row_stride, tile->places[operand].col_stride);
}

/* How many columns to take at a time when nothing else limits them. Where x or y lies across, each of them brings
 * two cache lines, which one block of rows uses up; fewer than that where there are few rows. */
static size_t columns_at_a_time(const npuq_kernel_choice *choice, const npuq_tile *tile, bool writes_y)
{
    const bool stage_x = !is_in_place(choice, tile, NPUQ_AT_X);
    const bool stage_y = writes_y && !is_in_place(choice, tile, NPUQ_AT_Y);

    if ((stage_x && lies_across(tile, NPUQ_AT_X)) || (stage_y && lies_across(tile, NPUQ_AT_Y))) {
        return capacity_for(stage_x, stage_y) / npuq_smaller(LINES, tile->rows * 4) / 64 * 64;
    }
    return stage_x || stage_y ? NPUQ_STAGED / 2 / sizeof(float) : tile->cols;
}

/* ---- short rows: several taken as one ---------------------------------------------------------------------------- */

/* Columns that rows taken as one have together. */
enum { JOINED = 512 };

/* Whether rows follow one another in memory, or will in the buffer. */
static bool rows_follow(const npuq_kernel_choice *choice, const npuq_tile *tile, int operand)
{
    return !is_in_place(choice, tile, operand) ||
           tile->places[operand].row_stride == (ptrdiff_t)npuq_count_bytes(choice->words[operand], tile->cols);
}

/* How many rows to take as one long row, which fills vectors and whose parameters by column repeat: 1 where rows are
 * long, or do not follow one another. */
static size_t rows_to_join(const npuq_kernel_choice *choice, const npuq_tile *tile)
{
    const size_t rows = npuq_smaller(tile->rows, JOINED / tile->cols);

    if (tile->cols >= NPUQ_SHORT_BY_COLUMN || !rows_follow(choice, tile, NPUQ_AT_X) ||
        !rows_follow(choice, tile, NPUQ_AT_Y)) {
        return 1;
    }
    return rows < 8 ? rows : rows - rows % 8; /* so that most lengths make whole vectors */
}

typedef struct joined_call {
    block_fn *fn;
    const void *call;
    size_t join;
} joined_call;

static void joined_block(const void *argument, const npuq_block *block, size_t first_row)
{
    const joined_call *call = argument;
    npuq_block rows = *block;
    size_t join = call->join;

    for (size_t row = 0; row < block->rows; row += rows.rows * join) {
        const size_t left = block->rows - row;

        join = npuq_smaller(join, left);
        rows.x = (const char *)block->x + (ptrdiff_t)row * block->x_stride;
        rows.y = (char *)block->y + (ptrdiff_t)row * block->y_stride;
        rows.x_stride = block->x_stride * (ptrdiff_t)join;
        rows.y_stride = block->y_stride * (ptrdiff_t)join;
        rows.rows = left / join;
        rows.n = block->n * join;
        call->fn(call->call, &rows, first_row + row);
    }
}

static void run_joined(const npuq_kernel_choice *choice, const npuq_tile *tile, size_t join, block_fn *fn,
                       const void *call)
{
    const joined_call joined = {fn, call, join};

    if (join < 2) {
        run_blocks(choice, tile, true, fn, call);
    } else {
        run_blocks(choice, tile, true, joined_block, &joined);
    }
}

/* Not inlined: copies in all callers are kilobytes. */
static __attribute__((noinline)) const void *repeat(void *buffer, const void *values, size_t n, size_t times)
{
    const size_t once = n * sizeof(float);

    memmove(buffer, values, once);
    for (size_t done = once; done < once * times; done *= 2) {
        memcpy((char *)buffer + done, buffer, npuq_smaller(done, once * times - done));
    }
    return buffer;
}

/* The n values, `times` over, in the buffer, where they may lie already; where they lie if once is enough. */
static inline const void *repeated(void *buffer, const void *values, size_t n, size_t times)
{
    return times == 1 ? values : repeat(buffer, values, n, times);
}

/* Those of the first n columns as kernels read them, `times` over. */
static inline const float *convert_repeated(const npuq_kernel_choice *choice, const npuq_params *params, size_t n,
                                            size_t times, float *buffer)
{
    return repeated(buffer, npuq_convert_params(choice->kernels, params, n, buffer), n, times);
}

/* ---- the kernels ------------------------------------------------------------------------------------------------ */

typedef struct affine_call {
    const npuq_kernel_choice *choice;
    npuq_affine_uniform_fn *uniform;
    npuq_affine_vector_fn *vector;
    const float *scale;
    const float *offset;
    size_t step;
} affine_call;

static void affine_uniform_block(const void *argument, const npuq_block *block, size_t first_row)
{
    const affine_call *call = argument;
    const npuq_storage_word *words = call->choice->words;
    npuq_block rows = *block;

    /* Staged rows follow one another like those that are contiguous: if all have one scale, they are one row. */
    if (call->step == 0 && rows.x_stride == (ptrdiff_t)npuq_count_bytes(words[NPUQ_AT_X], rows.n) &&
        rows.y_stride == (ptrdiff_t)npuq_count_bytes(words[NPUQ_AT_Y], rows.n)) {
        rows.n *= rows.rows;
        rows.rows = 1;
    }
    call->uniform(&rows, call->scale + first_row * call->step, call->offset + first_row * call->step, call->step);
}

static void affine_vector_block(const void *argument, const npuq_block *block, size_t first_row)
{
    const affine_call *call = argument;
    (void)first_row;
    call->vector(block, call->scale, call->offset, call->step);
}

/* Short rows as one with parameters by column. */
static void affine_spread(const npuq_kernel_choice *choice, const npuq_tile *tile, size_t join, const float *scale,
                          const float *offset)
{
    _Alignas(64) float scales[JOINED + NPUQ_LANES];
    _Alignas(64) float offsets[JOINED + NPUQ_LANES];
    const affine_call call = {.vector = choice->kernels->affine_vector[choice->op][choice->y][choice->x],
                              .scale = scales,
                              .offset = offsets,
                              .step = 1};
    npuq_tile part = *tile;

    for (size_t row = 0; row < tile->rows; row += part.rows) {
        part.rows = npuq_smaller(join, tile->rows - row);
        part.places[NPUQ_AT_X].data =
            tile->places[NPUQ_AT_X].data + (ptrdiff_t)row * tile->places[NPUQ_AT_X].row_stride;
        part.places[NPUQ_AT_Y].data =
            tile->places[NPUQ_AT_Y].data + (ptrdiff_t)row * tile->places[NPUQ_AT_Y].row_stride;
        choice->kernels->spread(scale + row, part.rows, tile->cols, scales);
        choice->kernels->spread(offset + row, part.rows, tile->cols, offsets);
        run_joined(choice, &part, part.rows, affine_vector_block, &call);
    }
}

static void affine_uniform(const npuq_kernel_choice *choice, const npuq_tile *tile, const float *scale,
                           const float *offset, size_t step)
{
    const size_t join = step && tile->cols < NPUQ_SHORT ? rows_to_join(choice, tile) : 1;

    if (join > 1) {
        affine_spread(choice, tile, join, scale, offset);
        return;
    }
    const affine_call call = {.choice = choice,
                              .uniform = choice->kernels->affine_uniform[choice->op][choice->y][choice->x],
                              .scale = scale,
                              .offset = offset,
                              .step = step};
    const size_t most = columns_at_a_time(choice, tile, true);
    npuq_tile part;

    for (size_t col = 0; col < tile->cols; col += most) {
        run_blocks(choice, select_columns(choice, tile, col, most, &part), true, affine_uniform_block, &call);
    }
}

void npuq_quantise_by_row(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *scale,
                          const npuq_params *offset)
{
    float scales[PARAMS + NPUQ_MAX_REPEAT];
    float offsets[PARAMS + NPUQ_MAX_REPEAT];

    if (tile->rows == 1 || (scale->step == 0 && (offset->step == 0 || !offset->data))) {
        affine_uniform(choice, tile, npuq_convert_params(choice->kernels, scale, 1, scales),
                       npuq_convert_params(choice->kernels, offset, 1, offsets), 0);
        return;
    }
    npuq_tile part = *tile;
    for (size_t row = 0; row < tile->rows; row += PARAMS) {
        const npuq_params scale_here = npuq_skip_params(scale, row);
        const npuq_params offset_here = npuq_skip_params(offset, row);

        part.rows = npuq_smaller(tile->rows - row, PARAMS);
        affine_uniform(choice, &part, npuq_convert_params(choice->kernels, &scale_here, part.rows, scales),
                       npuq_convert_params(choice->kernels, &offset_here, part.rows, offsets), 1);
        part.places[NPUQ_AT_X].data += PARAMS * tile->places[NPUQ_AT_X].row_stride;
        part.places[NPUQ_AT_Y].data += PARAMS * tile->places[NPUQ_AT_Y].row_stride;
    }
}

void npuq_quantise_by_column(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *scale,
                             const npuq_params *offset)
{
    _Alignas(64) float scales[PARAMS + NPUQ_MAX_REPEAT]; /* so that no vector lies in two lines */
    _Alignas(64) float offsets[PARAMS + NPUQ_MAX_REPEAT];
    affine_call call = {.vector = choice->kernels->affine_vector[choice->op][choice->y][choice->x]};
    const size_t join = rows_to_join(choice, tile);
    size_t most = columns_at_a_time(choice, tile, true);
    npuq_tile part;

    call.step = offset->data && offset->step != 0;
    if (!npuq_params_are_ready(scale) || (call.step && !npuq_params_are_ready(offset))) {
        most = npuq_smaller(most, PARAMS);
    }
    for (size_t col = 0; col < tile->cols; col += most) {
        const npuq_tile *here = select_columns(choice, tile, col, most, &part);
        const npuq_params scale_here = npuq_skip_params(scale, col);
        const npuq_params offset_here = npuq_skip_params(offset, col);

        call.scale = convert_repeated(choice, &scale_here, here->cols, join, scales);
        call.offset = call.step ? convert_repeated(choice, &offset_here, here->cols, join, offsets)
                                : npuq_convert_params(choice->kernels, offset, 1, offsets);
        run_joined(choice, here, join, affine_vector_block, &call);
    }
}

typedef struct dynamic_call {
    npuq_range_fn *range;
    npuq_smooth_affine_fn *smooth_affine;
    const float *smooth;
    float *hi;
    float *lo;
    const float *inverse_scale;
    const float *offset;
    size_t step;
} dynamic_call;

static void range_block(const void *argument, const npuq_block *block, size_t first_row)
{
    const dynamic_call *call = argument;
    call->range(block, call->smooth, call->hi + first_row, call->lo + first_row);
}

static void smooth_affine_block(const void *argument, const npuq_block *block, size_t first_row)
{
    const dynamic_call *call = argument;
    call->smooth_affine(block, call->smooth, call->inverse_scale + first_row * call->step,
                        call->offset + first_row * call->step, call->step);
}

/* Column by column of parameters; smooth may be absent for the range. */
static void run_dynamic(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *smooth,
                        bool writes_y, block_fn *fn, dynamic_call *call)
{
    _Alignas(64) float smooths[PARAMS + NPUQ_MAX_REPEAT];
    size_t most = columns_at_a_time(choice, tile, writes_y);
    npuq_tile part;

    if (npuq_is_unready(smooth)) {
        most = npuq_smaller(most, PARAMS);
    }
    for (size_t col = 0; col < tile->cols; col += most) {
        const npuq_tile *here = select_columns(choice, tile, col, most, &part);
        const npuq_params smooth_here = npuq_skip_params(smooth, col);

        call->smooth = smooth->data ? npuq_convert_params(choice->kernels, &smooth_here, here->cols, smooths) : NULL;
        run_blocks(choice, here, writes_y, fn, call);
    }
}

void npuq_widen_ranges(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *smooth, float *hi,
                       float *lo)
{
    dynamic_call call = {.range = choice->kernels->range[choice->x], .hi = hi, .lo = lo};
    run_dynamic(choice, tile, smooth, false, range_block, &call);
}

bool npuq_are_short_rows(const npuq_kernel_choice *choice, const npuq_tile *tile)
{
    return tile->rows > 1 && tile->cols < NPUQ_SHORT && is_in_place(choice, tile, NPUQ_AT_X);
}

void npuq_take_short_rows(npuq_kernel_choice *choice, npuq_tile *tile, const npuq_params *smooth, float *values,
                          float *hi, float *lo)
{
    float smooths[NPUQ_SHORT * NPUQ_SHORT_ROWS + NPUQ_MAX_REPEAT];
    const size_t n = tile->cols;

    assert(npuq_are_short_rows(choice, tile) && tile->rows <= NPUQ_SHORT_ROWS);
    const npuq_params x = {
        .data = tile->places[NPUQ_AT_X].data, .type = choice->x, .step = choice->words[NPUQ_AT_X].size, .repeat = 1};
    const size_t bytes = npuq_count_bytes(choice->words[NPUQ_AT_X], n * tile->rows);
    const float *all = NULL;

    /* The processor does not foresee these few lines, with so much to do between them and the next ones. */
    for (size_t line = 0; choice->memory.reads.from_memory && line < bytes; line += LINES / 2) {
        __builtin_prefetch(x.data + 2 * bytes + line);
    }
    const float *widened = npuq_convert_params(choice->kernels, &x, n * tile->rows, values);

    if (widened != values) {
        memcpy(values, widened, n * tile->rows * sizeof *values);
    }
    if (smooth->data) {
        all = convert_repeated(choice, smooth, n, tile->rows, smooths);
    }
    choice->kernels->short_rows(values, all, n, tile->rows, hi, lo);
    choice->x = NPUQ_TYPE_FLOAT32;
    choice->words[NPUQ_AT_X] = (npuq_storage_word){sizeof *values, 0};
    choice->memory = (npuq_memory_plan){0};
    replace_x(tile, list_staged((char *)values, choice->words[NPUQ_AT_X], n));
}

void npuq_requantise_tile(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *smooth,
                          const float *inverse_scale, const float *offset, size_t step)
{
    if (!smooth->data) {
        affine_uniform(choice, tile, inverse_scale, offset, step);
        return;
    }
    dynamic_call call = {.smooth_affine = choice->kernels->smooth_affine[choice->y][choice->x],
                         .inverse_scale = inverse_scale,
                         .offset = offset,
                         .step = step};
    run_dynamic(choice, tile, smooth, true, smooth_affine_block, &call);
}

/* ---- from integers ---------------------------------------------------------------------------------------------- */

typedef struct dequant_call {
    npuq_dequant_fn *dequant;
    npuq_dequant_params params;
} dequant_call;

static void dequant_block(const void *argument, const npuq_block *block, size_t first_row)
{
    const dequant_call *call = argument;
    npuq_dequant_params params = call->params;

    if (params.row_scale) {
        params.row_scale += first_row;
    }
    call->dequant(block, &params);
}

static const int32_t *contiguous_ints(const npuq_params *params, size_t n, int32_t *buffer)
{
    if (params->step == (ptrdiff_t)sizeof *buffer) {
        return (const int32_t *)(const void *)params->data;
    }
    npuq_copy_row((char *)buffer, sizeof *buffer, params->data, params->step, sizeof *buffer, n);
    return buffer;
}

/* offsets may be null. */
static void unpack_words(const npuq_row_kernels *kernels, const npuq_params *words, size_t n, float *scales,
                         int32_t *offsets)
{
    if (words->step == (ptrdiff_t)sizeof(uint64_t)) {
        kernels->unpack((const uint64_t *)(const void *)words->data, scales, offsets, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t word = *(const uint64_t *)(const void *)(words->data + (ptrdiff_t)i * words->step);

        scales[i] = npuq_scale_of_word(word);
        if (offsets) {
            offsets[i] = npuq_offset_of_word(word);
        }
    }
}

static bool are_words(const npuq_dequant_columns *c)
{
    return (NPUQ_TAKES_WORDS >> c->scale.type & 1) != 0;
}

static bool is_x_bias(const npuq_params *addend)
{
    return addend->data && addend->type == NPUQ_TYPE_INT32;
}

static bool adds_before_product(const npuq_kernel_choice *choice)
{
    return choice->x != NPUQ_TYPE_INT32;
}

bool npuq_dequantises_by_column(const npuq_kernel_choice *choice, const npuq_dequant_columns *c)
{
    return c->scale.step != 0 || (adds_before_product(choice) && c->addend.step != 0);
}

bool npuq_converts_columns(const npuq_kernel_choice *choice, const npuq_dequant_columns *c)
{
    const bool by_column = npuq_dequantises_by_column(choice, c);

    return (by_column && npuq_is_unready(&c->scale)) ||
           (is_x_bias(&c->addend) ? c->addend.step != (ptrdiff_t)sizeof(int32_t)
                                  : (by_column || !adds_before_product(choice)) && npuq_is_unready(&c->addend));
}

typedef struct dequant_buffers {
    _Alignas(64) float scales[NPUQ_DEQUANT_COLUMNS + NPUQ_MAX_REPEAT];
    _Alignas(64) float addends[NPUQ_DEQUANT_COLUMNS + NPUQ_MAX_REPEAT];
    _Alignas(64) int32_t y_offsets[NPUQ_DEQUANT_COLUMNS];
    _Alignas(64) int32_t x_biases[NPUQ_DEQUANT_COLUMNS];
} dequant_buffers;

/* Sets what goes by column in *p, where step is set, for so many columns from col on, `join` times over. */
static void list_columns(const npuq_kernel_choice *choice, const npuq_dequant_columns *columns, size_t col, size_t cols,
                         size_t join, dequant_buffers *buffers, npuq_dequant_params *p)
{
    const npuq_params scale = npuq_skip_params(&columns->scale, col);
    const npuq_params addend = npuq_skip_params(&columns->addend, col);
    const size_t n = p->increment ? cols : 1;
    const size_t times = p->increment ? join : 1;

    if (are_words(columns)) {
        int32_t *y_offsets = columns->words_have_offsets ? buffers->y_offsets : NULL;

        unpack_words(choice->kernels, &scale, n, buffers->scales, y_offsets);
        p->scale = repeated(buffers->scales, buffers->scales, n, times);
        if (y_offsets) {
            p->y_offset = repeated(y_offsets, y_offsets, n, times);
        }
    } else {
        p->scale = convert_repeated(choice, &scale, n, times, buffers->scales);
    }
    if (is_x_bias(&addend)) {
        p->x_bias = contiguous_ints(&addend, cols, buffers->x_biases);
        p->x_bias = repeated(buffers->x_biases, p->x_bias, cols, join);
    } else if (addend.data && adds_before_product(choice)) {
        p->offset = convert_repeated(choice, &addend, n, times, buffers->addends);
    } else if (addend.data) {
        p->bias = convert_repeated(choice, &addend, cols, join, buffers->addends);
    }
}

void npuq_dequantise_tile(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_dequant_columns *columns,
                          const npuq_params *row_scale)
{
    dequant_buffers buffers;
    float row_scales[NPUQ_DEQUANT_ROWS + NPUQ_MAX_REPEAT];
    dequant_call call = {.dequant = choice->kernels->dequant[choice->y][choice->x]};
    const size_t join = row_scale->data ? 1 : rows_to_join(choice, tile);
    const bool in_place = is_in_place(choice, tile, NPUQ_AT_X) && is_in_place(choice, tile, NPUQ_AT_Y);
    size_t most = in_place ? tile->cols : columns_at_a_time(choice, tile, true);
    npuq_tile part;

    call.params.increment = npuq_dequantises_by_column(choice, columns);
    if (row_scale->data) {
        assert(tile->rows <= NPUQ_DEQUANT_ROWS || npuq_params_are_ready(row_scale));
        call.params.row_scale = npuq_convert_params(choice->kernels, row_scale, tile->rows, row_scales);
    }
    if (npuq_converts_columns(choice, columns)) {
        most = npuq_smaller(most, NPUQ_DEQUANT_COLUMNS);
    }
    if (in_place && join == 1 && tile->cols <= most) { /* small calls are such */
        const npuq_block block = make_block(choice, tile, true);

        list_columns(choice, columns, tile->col, tile->cols, join, &buffers, &call.params);
        call.dequant(&block, &call.params);
        return;
    }
    for (size_t col = 0; col < tile->cols; col += most) {
        const npuq_tile *here = select_columns(choice, tile, col, most, &part);

        list_columns(choice, columns, tile->col + col, here->cols, join, &buffers, &call.params);
        run_joined(choice, here, join, dequant_block, &call);
    }
}
