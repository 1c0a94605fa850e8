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

/* What spreads the parameters of joined rows by column. */
typedef struct row_job {
    const npuq_row_kernels *kernels;
    const npuq_quant_params *by_row;
    size_t cols;
    float *scales;
    float *offsets;
} row_job;

static void spread_rows(void *argument, size_t row, size_t rows)
{
    const row_job *job = argument;

    job->kernels->spread((const float *)job->by_row->scale + row, rows, job->cols, job->scales);
    if (job->by_row->offset) {
        job->kernels->spread(job->by_row->offset + row, rows, job->cols, job->offsets);
    }
}

void npuq_quantise_strided_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, const npuq_quant_params *params)
{
    _Alignas(64) float scales[NPUQ_JOINED + NPUQ_LANES];
    _Alignas(64) float offsets[NPUQ_JOINED + NPUQ_LANES];
    const npuq_quant_params by_column = {scales,
                                         params->offset ? offsets : NULL,
                                         NULL,
                                         NULL,
                                         params->offset ? NPUQ_BY_COLUMN : NPUQ_SCALE_BY_COLUMN,
                                         0,
                                         false,
                                         params->rounding,
                                         false};
    row_job job = {setup->kernels, params, tile->cols, scales, offsets};
    npuq_pass pass = {npuq_find_quantiser(setup), params, true, NPUQ_ALL_ROWS, NULL, NULL, &job, SIZE_MAX};

    if (params->steps == NPUQ_BY_ROW) {
        pass.join = npuq_count_rows_to_join(setup, tile);
        if (pass.join > 1) {
            pass.params = &by_column;
            pass.rows = spread_rows;
        }
    }
    npuq_run_pass(setup, tile, &pass);
}

/* The part of a tile from a row on, at most `most` rows. Returns the tile itself if `most` rows hold it, else *part,
 * where only x and y are set. */
static const npuq_tile *select_rows(const npuq_tile *tile, size_t row, size_t most, npuq_tile *part)
{
    if (tile->rows <= most) {
        return tile;
    }
    part->rows = npuq_smaller(tile->rows - row, most);
    part->cols = tile->cols;
    for (int i = NPUQ_AT_X; i <= NPUQ_AT_Y; i++) {
        part->places[i] = tile->places[i];
        part->places[i].data += (ptrdiff_t)row * tile->places[i].row_stride;
    }
    return part;
}

/* steps are NPUQ_ONE or NPUQ_BY_ROW; offset may be null. */
static inline NPUQ_INLINED void quantise_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, const float *scale,
                                              const float *offset, npuq_steps steps)
{
    const npuq_quant_params params = {scale, offset, NULL, NULL, steps, 0, false, 0, false};

    if (npuq_is_block(setup, tile)) {
        const npuq_block block = npuq_make_block(setup, tile, true);

        npuq_find_quantiser(setup)(&block, &params);
    } else {
        npuq_quantise_strided_rows(setup, tile, &params);
    }
}

/* Parameters by row that are converted at a time. By column they are twice as many, but there the stack is less deep.
 */
enum { CONVERTED_ROWS = NPUQ_CONVERTED / 2 };

static NPUQ_NOT_INLINED void quantise_different_rows(const npuq_kernel_setup *setup, const npuq_tile *tile)
{
    const npuq_params scale = npuq_make_row_params(setup, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_row_params(setup, tile, NPUQ_AFFINE_OFFSET);
    float scales[CONVERTED_ROWS + NPUQ_MAX_REPEAT];
    float offsets[CONVERTED_ROWS + NPUQ_MAX_REPEAT];
    npuq_tile part;

    for (size_t row = 0; row < tile->rows; row += CONVERTED_ROWS) {
        const npuq_tile *here = select_rows(tile, row, CONVERTED_ROWS, &part);
        const npuq_params scale_here = npuq_skip_params(&scale, row);
        const npuq_params offset_here = npuq_skip_params(&offset, row);

        quantise_rows(setup, here, npuq_convert_params(setup->kernels, &scale_here, here->rows, scales),
                      npuq_convert_params(setup->kernels, &offset_here, here->rows, offsets), NPUQ_BY_ROW);
    }
}

static NPUQ_NOT_INLINED void quantise_columns(const npuq_kernel_setup *setup, const npuq_tile *tile)
{
    _Alignas(64) float scales[NPUQ_CONVERTED + NPUQ_MAX_REPEAT]; /* so that no vector lies in two lines */
    _Alignas(64) float offsets[NPUQ_CONVERTED + NPUQ_MAX_REPEAT];
    const npuq_params scale = npuq_make_params(setup, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_params(setup, tile, NPUQ_AFFINE_OFFSET);
    const bool is_one = setup->steps == NPUQ_SCALE_BY_COLUMN;
    const bool converts = npuq_needs_conversion(&scale) || (!is_one && npuq_needs_conversion(&offset));
    column_job job = {setup,
                      tile,
                      {NULL, is_one ? npuq_convert_one(setup, tile, NPUQ_AFFINE_OFFSET, offsets) : NULL, NULL, NULL,
                       setup->steps, 0, false, 0, false},
                      npuq_count_rows_to_join(setup, tile),
                      scales,
                      offsets};
    const npuq_pass pass = {npuq_find_quantiser(setup),          &job.params, true, job.join, set_columns, NULL, &job,
                            converts ? NPUQ_CONVERTED : SIZE_MAX};

    npuq_run_pass(setup, tile, &pass);
}

void npuq_quantise_by_row(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    float converted[2];

    if (tile->rows == 1 || setup->steps == NPUQ_ONE) {
        quantise_rows(setup, tile, npuq_convert_one(setup, tile, NPUQ_AFFINE_SCALE, &converted[0]),
                      npuq_convert_one(setup, tile, NPUQ_AFFINE_OFFSET, &converted[1]), NPUQ_ONE);
    } else {
        quantise_different_rows(setup, tile);
    }
}

void npuq_quantise_by_column(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    const npuq_params scale = npuq_make_params(setup, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_params(setup, tile, NPUQ_AFFINE_OFFSET);
    const bool is_one = setup->steps == NPUQ_SCALE_BY_COLUMN;
    float converted;

    const bool bf16 = setup->op == NPUQ_MUL && npuq_are_half_columns(setup, &scale);

    if (npuq_is_block(setup, tile) && (bf16 || npuq_params_are_ready(&scale)) &&
        (is_one || npuq_params_are_ready(&offset))) {
        const npuq_quant_params params = {scale.data,
                                          is_one ? npuq_convert_one(setup, tile, NPUQ_AFFINE_OFFSET, &converted)
                                                 : (const float *)(const void *)offset.data,
                                          NULL,
                                          NULL,
                                          setup->steps,
                                          0,
                                          bf16,
                                          0,
                                          false};
        const npuq_block block = npuq_make_block(setup, tile, true);

        npuq_find_quantiser(setup)(&block, &params);
    } else {
        quantise_columns(setup, tile);
    }
}
