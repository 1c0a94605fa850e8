/* SPDX-License-Identifier: BSD-3-Clause */
#include "blocks.h"

enum { X = NPUQ_DYNAMIC_X, Y = NPUQ_DYNAMIC_Y, SCALE = NPUQ_DYNAMIC_SCALE };

npuq_tile npuq_select_blocks(const npuq_plan *plan, const npuq_tile *tile, size_t row, size_t first, size_t rows,
                             bool of_one_row)
{
    const size_t block = plan->block;
    npuq_tile part = *tile;

    part.rows = rows;
    part.cols = npuq_smaller(block, tile->cols - first * block);
    for (int i = X; i <= SCALE; i++) {
        const npuq_place *from = &tile->places[i];

        if (from->data) { /* there are no smooth scales */
            const ptrdiff_t steps = i == SCALE ? 1 : (ptrdiff_t)npuq_count_words(plan->setup.words[i], block);
            const ptrdiff_t step = from->col_stride * steps;

            part.places[i].data = from->data + (ptrdiff_t)row * from->row_stride + (ptrdiff_t)first * step;
            part.places[i].row_stride = of_one_row ? step : from->row_stride;
        }
    }
    return part;
}

static void quantise_part(const npuq_plan *plan, const npuq_tile *tile, size_t row, size_t first, size_t rows,
                          bool of_one_row)
{
    const npuq_tile part = npuq_select_blocks(plan, tile, row, first, rows, of_one_row);

    npuq_quantise_by_ranges(plan, &part);
}

/* Fewer blocks of one row are slower together than the same block of many rows. */
enum { FEW_BLOCKS = 4 };

void npuq_quantise_blocks(const npuq_plan *plan, const npuq_tile *tile)
{
    const size_t block = plan->block;
    const size_t whole = tile->cols / block;
    const npuq_place *x = &tile->places[X];
    const npuq_place *y = &tile->places[Y];
    const bool across = npuq_are_column_major(x->row_stride, x->col_stride) ||
                        npuq_are_column_major(y->row_stride, y->col_stride) ||
                        (whole < FEW_BLOCKS && tile->rows > whole);

    if (tile->cols == block) {
        npuq_quantise_by_ranges(plan, tile);
        return;
    }
    for (size_t row = 0; row < tile->rows && !across; row++) {
        for (size_t i = 0; i < whole; i += NPUQ_RANGED_ROWS) {
            quantise_part(plan, tile, row, i, npuq_smaller(whole - i, NPUQ_RANGED_ROWS), true);
        }
    }
    for (size_t i = across ? 0 : whole; i * block < tile->cols; i++) {
        quantise_part(plan, tile, 0, i, tile->rows, false);
    }
}

bool npuq_start_blocks(npuq_plan *plan, const npuq_arguments *arguments, int64_t block, bool dense)
{
    const npuq_tensor *x = arguments->tensors[X];
    const int64_t columns = x->shape[x->ndim - 1];
    const bool is_one = block >= columns;
    const npuq_steps steps = dense && columns > 0 && (is_one || columns % block == 0) ? NPUQ_BY_ROW : NPUQ_BY_OTHERS;

    if (!npuq_start_plan(plan, arguments, NPUQ_DYNAMIC_GROUPS, NPUQ_MUL, steps)) {
        return false;
    }
    plan->block = (size_t)(is_one ? columns : block);
    return true;
}

/* Dense blocks of one length are rows by themselves. Others are found in a tile of whole rows. */
void npuq_finish_blocks(npuq_plan *plan, const npuq_arguments *arguments)
{
    const size_t block = plan->block;

    npuq_add_absent(plan, NPUQ_DYNAMIC_SMOOTH);
    npuq_add_by_row(plan, arguments, SCALE);
    npuq_add_absent(plan, NPUQ_DYNAMIC_OFFSET);
    if (plan->way != NPUQ_IN_SPACE) {
        npuq_tile *all = &plan->area.all;

        all->rows = plan->units.rows = plan->units.rows * (all->cols / block);
        all->cols = plan->units.cols = block;
        for (int i = X; i <= Y; i++) {
            all->places[i].row_stride = (ptrdiff_t)npuq_count_bytes(plan->setup.words[i], block);
        }
    } else {
        npuq_finish_operands(plan, NPUQ_KEEP_COLUMNS);
    }
    if (plan->way != NPUQ_ONE_TILE || npuq_count_plan_rows(plan) > 1) {
        npuq_cut_whole_rows(plan, arguments, npuq_count_plan_columns(plan));
        npuq_cut_small(plan);
    }
}
