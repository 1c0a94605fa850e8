/* SPDX-License-Identifier: BSD-3-Clause */
#include "../element.h"
#include "../kinds/blocks.h"
#include "../kinds/mx_groups.h"

#define NPUQ_PLACE(ROLE) NPUQ_DYNAMIC_##ROLE
enum { X = NPUQ_DYNAMIC_X, Y = NPUQ_DYNAMIC_Y, SCALE = NPUQ_DYNAMIC_SCALE };

typedef struct own {
    uint16_t block;
} own;
NPUQ_FITS_OWN(own);

static npuq_status check(const npuq_arguments *arguments, const void *options)
{
    const npuq_status status = npuq_check_unpacked_shape(arguments, X, Y);

    return status == NPUQ_OK ? npuq_check_mx_groups(arguments, options, Y, SCALE) : status;
}

/* The least code is a subnormal number. */
static float convert_code(uint8_t code)
{
    return npuq_float_of_bits(code == NPUQ_MX_BAD ? 0x7FC00000 : code == 0 ? 0x00400000 : (uint32_t)code << 23);
}

typedef struct column_job {
    const float *scales;
    npuq_dequant_params params;
} column_job;

static void set_columns(void *argument, size_t col, size_t cols)
{
    column_job *job = argument;

    (void)cols;
    job->params.scale = job->scales + col;
}

static void dequantise_part(const npuq_plan *plan, const npuq_tile *tile, const float *scales)
{
    const npuq_kernel_setup *setup = &plan->setup;
    column_job job = {scales, {.scale = scales, .by_column = true}};
    const npuq_pass pass = {npuq_dequantise_kernel(setup->kernels, setup->types[Y], setup->types[X]),
                            &job.params,
                            true,
                            1,
                            set_columns,
                            NULL,
                            &job,
                            SIZE_MAX};

    npuq_run_pass(setup, tile, &pass);
}

static void dequantise_group(const npuq_plan *plan, const npuq_tile *tile)
{
    _Alignas(64) float scales[NPUQ_MX_COLUMNS + NPUQ_LANES];
    const npuq_place *scale = &tile->places[SCALE];

    for (size_t i = 0; i < tile->cols && tile->rows > 0; i++) {
        scales[i] = convert_code((uint8_t)scale->data[(ptrdiff_t)i * scale->col_stride]);
    }
    if (tile->rows > 0) {
        dequantise_part(plan, tile, scales);
    }
}

static void dequantise_along_columns(const npuq_plan *plan, const npuq_tile *tile)
{
    npuq_visit_mx_groups(plan, tile, ((const own *)npuq_get_own(plan))->block, dequantise_group);
}

/* Some groups of a row. A kernel takes their scales, or if x or y is copied in parts, the scale of each column. */
enum { LEAST_GROUP = 32, COLUMNS = 2048 };

static void dequantise_groups(const npuq_plan *plan, const npuq_tile *tile, const float *of_groups, size_t block)
{
    const npuq_kernel_setup *setup = &plan->setup;

    if (npuq_is_block(setup, tile)) {
        const npuq_block row = npuq_make_block(setup, tile, true);

        npuq_dequantise_kernel(setup->kernels, setup->types[Y], setup->types[X])(
            &row, &(npuq_dequant_params){.scale = of_groups, .run = (unsigned)block});
    } else {
        _Alignas(64) float scales[COLUMNS + NPUQ_LANES];

        setup->kernels->spread(of_groups, npuq_divide_up(tile->cols, block), block, scales);
        dequantise_part(plan, tile, scales);
    }
}

static void dequantise_along_rows(const npuq_plan *plan, const npuq_tile *tile)
{
    float of_groups[COLUMNS / LEAST_GROUP];
    const size_t block = ((const own *)npuq_get_own(plan))->block;
    const size_t most = COLUMNS / block * block;
    const npuq_place *scale = &tile->places[SCALE];
    npuq_tile part = *tile;

    part.rows = 1;
    for (size_t row = 0; row < tile->rows; row++) {
        for (size_t col = 0; col < tile->cols; col += most) {
            part.cols = npuq_smaller(tile->cols - col, most);
            const size_t groups = npuq_divide_up(part.cols, block);

            for (size_t i = 0; i < groups; i++) {
                of_groups[i] = convert_code((uint8_t)*npuq_find_mx_code(plan, scale, row, col / block + i));
            }
            for (int i = X; i <= Y; i++) {
                const npuq_place *place = &tile->places[i];

                part.places[i].data = place->data + (ptrdiff_t)row * place->row_stride +
                                      (ptrdiff_t)npuq_count_words(plan->setup.words[i], col) * place->col_stride;
            }
            dequantise_groups(plan, &part, of_groups, block);
        }
    }
}

static npuq_status make_plan(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const npuq_mx_options *o = options;
    const size_t block = (size_t)npuq_find_mx_block(o->given);
    own *own_state = npuq_set_own(plan);
    npuq_mx_views views;

    npuq_view_mx_groups(&views, arguments, o, SCALE);
    if (!npuq_start_plan(plan, &views.arguments, SCALE + 1, NPUQ_MUL, NPUQ_BY_OTHERS)) {
        return NPUQ_OK;
    }
    plan->pair_stride = views.pair_stride;
    own_state->block = (uint16_t)block;
    if (views.is_last_axis) {
        plan->compute = dequantise_along_rows;
        plan->block = block;
        npuq_add_by_row(plan, &views.arguments, SCALE);
        npuq_finish_operands(plan, NPUQ_KEEP_COLUMNS);
        npuq_cut_plan(plan, &views.arguments, NPUQ_UNIT, NPUQ_WHOLE_ROWS);
    } else {
        plan->compute = dequantise_along_columns;
        npuq_finish_mx_columns(plan, &views.arguments, block);
    }
    return NPUQ_OK;
}

static const npuq_operator from_mx = {NPUQ_SIGNATURE(anti_mx_quant), check, make_plan, NULL, NULL};

npuq_status npuq_anti_mx_quant(const npuq_tensor *x, const npuq_tensor *mxscale, int32_t axis, const npuq_mx *options,
                               const npuq_tensor *y, const npuq_executor *executor)
{
    return npuq_call_inlined(&from_mx, from_mx.check, from_mx.plan, NPUQ_TENSORS(anti_mx_quant),
                             &(npuq_mx_options){axis, options}, executor);
}

npuq_status npuq_prepare_anti_mx_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *mxscale, int32_t axis,
                                       const npuq_mx *options, const npuq_tensor *y)
{
    return npuq_prepare_operator(call, &from_mx, NPUQ_TENSORS(anti_mx_quant), &(npuq_mx_options){axis, options});
}
