/* SPDX-License-Identifier: BSD-3-Clause */
#include "affine.h"

/* What sets a kernel's parameters by column. It finds those of the call in the tile: a copy of what was just written
 * would wait for it. */
typedef struct column_job {
    const npuq_kernel_setup *setup;
    const npuq_tile *tile;
    npuq_quant_params params; /* the kernel's */
    size_t join;
    float *scales;
    float *offsets;
} column_job;

static const float *convert_columns(const column_job *job, int operand, size_t col, size_t cols, float *buffer)
{
    const npuq_params all = npuq_make_params(job->setup, job->tile, operand);
    const npuq_params here = npuq_skip_params(&all, col);

    return npuq_convert_repeated(job->setup->kernels, &here, cols, job->join, buffer);
}

static void set_columns(void *argument, size_t col, size_t cols)
{
    column_job *job = argument;

    job->params.scale = convert_columns(job, NPUQ_AFFINE_SCALE, col, cols, job->scales);
    if (job->params.steps == NPUQ_BY_COLUMN) {
        job->params.offset = convert_columns(job, NPUQ_AFFINE_OFFSET, col, cols, job->offsets);
    }
}

/* Short rows as one, with parameters by column. Not inlined: other rows would have these buffers, too. */
static NPUQ_NOT_INLINED void quantise_joined(const npuq_kernel_setup *setup, const npuq_tile *tile, size_t join,
                                             const npuq_quant_params *by_row)
{
    _Alignas(64) float scales[NPUQ_JOINED + NPUQ_LANES];
    _Alignas(64) float offsets[NPUQ_JOINED + NPUQ_LANES];
    const npuq_quant_params by_column = {scales, offsets, NULL, NPUQ_BY_COLUMN, 0};
    npuq_tile part;

    for (size_t row = 0; row < tile->rows; row += join) {
        const npuq_tile *here = npuq_select_rows(tile, row, join, &part);
        const npuq_pass pass = {npuq_find_quantiser(setup), &by_column, true, here->rows, NULL, NULL, SIZE_MAX};

        setup->kernels->spread(by_row->scale + row, here->rows, tile->cols, scales);
        setup->kernels->spread(by_row->offset + row, here->rows, tile->cols, offsets);
        npuq_run_pass(setup, here, &pass);
    }
}

void npuq_quantise_strided_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, const npuq_quant_params *params)
{
    const bool by_row = params->steps == NPUQ_BY_ROW;
    const size_t join = by_row && tile->cols < NPUQ_SHORT ? npuq_count_rows_to_join(setup, tile) : 1;
    const npuq_pass pass = {npuq_find_quantiser(setup), params, true, by_row ? 1 : NPUQ_ALL_ROWS, NULL, NULL, SIZE_MAX};

    if (join > 1) {
        quantise_joined(setup, tile, join, params);
    } else {
        npuq_run_pass(setup, tile, &pass);
    }
}

void npuq_quantise_different_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, npuq_params scale,
                                  npuq_params offset)
{
    float scales[NPUQ_CONVERTED + NPUQ_MAX_REPEAT];
    float offsets[NPUQ_CONVERTED + NPUQ_MAX_REPEAT];
    npuq_tile part;

    for (size_t row = 0; row < tile->rows; row += NPUQ_CONVERTED) {
        const npuq_tile *here = npuq_select_rows(tile, row, NPUQ_CONVERTED, &part);
        const npuq_params scale_here = npuq_skip_params(&scale, row);
        const npuq_params offset_here = npuq_skip_params(&offset, row);

        npuq_quantise_rows(setup, here, npuq_convert_params(setup->kernels, &scale_here, here->rows, scales),
                           npuq_convert_params(setup->kernels, &offset_here, here->rows, offsets), NPUQ_BY_ROW);
    }
}

void npuq_quantise_columns(const npuq_kernel_setup *setup, const npuq_tile *tile)
{
    _Alignas(64) float scales[NPUQ_CONVERTED + NPUQ_MAX_REPEAT]; /* so that no vector lies in two lines */
    _Alignas(64) float offsets[NPUQ_CONVERTED + NPUQ_MAX_REPEAT];
    const npuq_params scale = npuq_make_params(setup, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_params(setup, tile, NPUQ_AFFINE_OFFSET);
    const bool is_one = !offset.data || offset.stride == 0;
    const bool converts = npuq_needs_conversion(&scale) || (!is_one && npuq_needs_conversion(&offset));
    column_job job = {setup,
                      tile,
                      {NULL, is_one ? npuq_convert_param(setup->kernels, &offset, offsets) : NULL, NULL,
                       is_one ? NPUQ_SCALE_BY_COLUMN : NPUQ_BY_COLUMN, 0},
                      npuq_count_rows_to_join(setup, tile),
                      scales,
                      offsets};
    const npuq_pass pass = {npuq_find_quantiser(setup),          &job.params, true, job.join, set_columns, &job,
                            converts ? NPUQ_CONVERTED : SIZE_MAX};

    npuq_run_pass(setup, tile, &pass);
}
