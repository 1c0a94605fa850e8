/* SPDX-License-Identifier: BSD-3-Clause */
#include "blocks.h"

enum { X = NPUQ_DYNAMIC_X, Y = NPUQ_DYNAMIC_Y, SCALE = NPUQ_DYNAMIC_SCALE };

/* Scales of groups lie in pairs. Of one row they have two strides then, and otherwise the second one is 0. */
static void select_scales(const npuq_plan *plan, npuq_place *scale, size_t first, bool of_one_row)
{
    const ptrdiff_t step = scale->col_stride;

    if (npuq_get_dynamic(plan)->form == NPUQ_SYMMETRIC_GROUP) {
        scale->data += (ptrdiff_t)(first / 2) * step + (ptrdiff_t)(first % 2) * plan->pair_stride;
        scale->col_stride = of_one_row ? plan->pair_stride : 0;
    } else {
        scale->data += (ptrdiff_t)first * step;
    }
    scale->row_stride = of_one_row ? step : scale->row_stride;
}

npuq_tile npuq_select_blocks(const npuq_plan *plan, const npuq_tile *tile, size_t row, size_t first, size_t rows,
                             bool of_one_row)
{
    const size_t block = plan->block;
    npuq_tile part = *tile;

    assert(!of_one_row || first % 2 == 0);
    part.rows = rows;
    part.cols = npuq_smaller(block, tile->cols - first * block);
    for (int i = X; i <= Y; i++) {
        npuq_place *place = &part.places[i];
        const ptrdiff_t step = place->col_stride * (ptrdiff_t)npuq_count_words(plan->setup.words[i], block);

        place->data += (ptrdiff_t)row * place->row_stride + (ptrdiff_t)first * step;
        place->row_stride = of_one_row ? step : place->row_stride;
    }
    part.places[SCALE].data += (ptrdiff_t)row * part.places[SCALE].row_stride;
    select_scales(plan, &part.places[SCALE], first, of_one_row);
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

void npuq_finish_rectangles(npuq_plan *plan, const npuq_arguments *arguments, size_t row_block, size_t most_cols)
{
    npuq_space *space = &plan->area.space;
    npuq_units *units = &plan->units;

    npuq_add_by_row(plan, arguments, SCALE);
    space->run_rows = row_block;
    npuq_finish_operands(plan, NPUQ_KEEP_COLUMNS);

    const size_t rows = npuq_count_rows(space);
    const size_t of_matrix = row_block > 1 ? space->extents[space->ndim - 2] : 1;
    const size_t whole = of_matrix % row_block == 0 || rows == of_matrix ? row_block : of_matrix;

    plan->block_rows = row_block;
    npuq_plan_second_pass(&plan->setup.memory, row_block, plan->block, plan->setup.words[X].size);
    npuq_cut_plan(plan, arguments, NPUQ_DYNAMIC_UNIT, most_cols);
    units->unit_rows = units->unit_rows < whole ? whole : units->unit_rows / whole * whole;
    units->count = units->across * npuq_divide_up(rows, units->unit_rows);
}
