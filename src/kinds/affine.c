/* SPDX-License-Identifier: BSD-3-Clause */
#include "affine.h"

typedef struct affine_job {
    const npuq_storage_word *words;
    npuq_affine_uniform_fn *uniform;
    npuq_affine_vector_fn *vector;
    const float *scale;
    const float *offset;
    size_t increment;
} affine_job;

static affine_job start_job(const npuq_kernel_setup *setup)
{
    const uint8_t x = setup->types[NPUQ_AT_X];
    const uint8_t y = setup->types[NPUQ_AT_Y];

    return (affine_job){.words = setup->words,
                        .uniform = setup->kernels->affine_uniform[setup->op][y][x],
                        .vector = setup->kernels->affine_vector[setup->op][y][x]};
}

static void quantise_block_by_row(const void *argument, const npuq_block *block, size_t first_row)
{
    const affine_job *job = argument;
    npuq_block rows = *block;

    /* Rows that follow one another, as staged rows do, are one row if all have one scale. */
    if (job->increment == 0 && rows.x_stride == (ptrdiff_t)npuq_count_bytes(job->words[NPUQ_AT_X], rows.n) &&
        rows.y_stride == (ptrdiff_t)npuq_count_bytes(job->words[NPUQ_AT_Y], rows.n)) {
        rows.n *= rows.rows;
        rows.rows = 1;
    }
    job->uniform(&rows, job->scale + first_row * job->increment, job->offset + first_row * job->increment,
                 job->increment);
}

static void quantise_block_by_column(const void *argument, const npuq_block *block, size_t first_row)
{
    const affine_job *job = argument;

    (void)first_row;
    job->vector(block, job->scale, job->offset, job->increment);
}

/* Short rows as one, with parameters by column. Not inlined: other rows would have these buffers, too. */
static NPUQ_NOT_INLINED void quantise_joined(const npuq_kernel_setup *setup, const npuq_tile *tile, size_t join,
                                             const float *scale, const float *offset)
{
    _Alignas(64) float scales[NPUQ_JOINED + NPUQ_LANES];
    _Alignas(64) float offsets[NPUQ_JOINED + NPUQ_LANES];
    affine_job job = start_job(setup);
    npuq_tile part;

    job.scale = scales;
    job.offset = offsets;
    job.increment = 1;
    for (size_t row = 0; row < tile->rows; row += join) {
        const npuq_tile *here = npuq_select_rows(tile, row, join, &part);

        setup->kernels->spread(scale + row, here->rows, tile->cols, scales);
        setup->kernels->spread(offset + row, here->rows, tile->cols, offsets);
        npuq_for_each_joined_block(setup, here, here->rows, quantise_block_by_column, &job);
    }
}

void npuq_quantise_strided_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, const float *scale,
                                const float *offset, size_t increment)
{
    const size_t join = increment && tile->cols < NPUQ_SHORT ? npuq_count_rows_to_join(setup, tile) : 1;
    const size_t most = npuq_limit_staged_columns(setup, tile, true);
    affine_job job = start_job(setup);
    npuq_tile part;

    if (join > 1) {
        quantise_joined(setup, tile, join, scale, offset);
        return;
    }
    job.scale = scale;
    job.offset = offset;
    job.increment = increment;
    for (size_t col = 0; col < tile->cols; col += most) {
        npuq_for_each_block(setup, npuq_select_columns(setup, tile, col, most, &part), true, quantise_block_by_row,
                            &job);
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
                           npuq_convert_params(setup->kernels, &offset_here, here->rows, offsets), 1);
    }
}

void npuq_quantise_runs(const npuq_kernel_setup *setup, const npuq_tile *tile, npuq_params scale, npuq_params offset)
{
    _Alignas(64) float scales[NPUQ_CONVERTED + NPUQ_MAX_REPEAT]; /* so that no vector lies in two lines */
    _Alignas(64) float offsets[NPUQ_CONVERTED + NPUQ_MAX_REPEAT];
    const size_t join = npuq_count_rows_to_join(setup, tile);
    affine_job job = start_job(setup);
    size_t most = npuq_limit_staged_columns(setup, tile, true);
    npuq_tile part;

    job.increment = offset.data && offset.stride != 0;
    if (!npuq_params_are_ready(&scale) || (job.increment && !npuq_params_are_ready(&offset))) {
        most = npuq_smaller(most, NPUQ_CONVERTED);
    }
    for (size_t col = 0; col < tile->cols; col += most) {
        const npuq_tile *here = npuq_select_columns(setup, tile, col, most, &part);
        const npuq_params scale_here = npuq_skip_params(&scale, col);
        const npuq_params offset_here = npuq_skip_params(&offset, col);

        job.scale = npuq_convert_repeated(setup->kernels, &scale_here, here->cols, join, scales);
        job.offset = job.increment ? npuq_convert_repeated(setup->kernels, &offset_here, here->cols, join, offsets)
                                   : npuq_convert_param(setup->kernels, &offset, offsets);
        npuq_for_each_joined_block(setup, here, join, quantise_block_by_column, &job);
    }
}
