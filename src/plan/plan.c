/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* The number of elements tells whether they come from memory. */
void npuq_choose_memory(npuq_plan *plan, size_t elements)
{
    const npuq_storage_word *words = plan->setup.words;
    const size_t bytes_of_8 = npuq_count_bytes(words[NPUQ_AT_X], 8) + npuq_count_bytes(words[NPUQ_AT_Y], 8);

    plan->setup.memory = npuq_plan_memory(elements / 8 * bytes_of_8);
}

bool npuq_start_plan_space(npuq_plan *plan, const npuq_arguments *arguments, const npuq_tensor *elements)
{
    const npuq_storage_word *words = plan->setup.words;
    const size_t count = (size_t)npuq_count_elements(elements);

    assert(plan->operands + 1u >= arguments->signature->count); /* a group_index is no operand */
    npuq_start_space(&plan->area.space, plan->operands, elements, words[NPUQ_AT_X], words[NPUQ_AT_Y]);
    for (int i = NPUQ_AT_X; i <= NPUQ_AT_Y; i++) {
        if (arguments->tensors[i]) {
            npuq_add_operand(&plan->area.space, i, arguments->tensors[i]);
        }
    }
    npuq_choose_memory(plan, count);
    return count > 0;
}

void npuq_cut_plan(npuq_plan *plan, const npuq_arguments *arguments, size_t elements, size_t most_cols)
{
    if (arguments->small == 0) {
        elements = npuq_smaller(elements, NPUQ_PREPARED_UNIT);
        most_cols = most_cols == NPUQ_WHOLE_ROWS ? most_cols : npuq_smaller(most_cols, NPUQ_PREPARED_UNIT);
    }
    npuq_cut_units(&plan->units, npuq_count_plan_rows(plan), npuq_count_plan_columns(plan), elements,
                   plan->way != NPUQ_IN_SPACE || most_cols == NPUQ_WHOLE_ROWS
                       ? most_cols
                       : npuq_limit_columns(&plan->area.space, most_cols));
    if (plan->way == NPUQ_FLAT && plan->units.count == 1 && !plan->setup.memory.writes.from_memory) {
        plan->way = NPUQ_ONE_TILE;
        npuq_cut_small(plan);
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

void npuq_select_plan_tile(const npuq_plan *plan, size_t row, size_t rows, size_t col, size_t cols, npuq_tile *tile)
{
    if (plan->way == NPUQ_IN_SPACE) {
        npuq_select_tile(&plan->area.space, row, rows, col, cols, tile);
        return;
    }
    tile->rows = rows;
    tile->cols = cols;
    tile->repeat = 1;
    tile->phase_in_run = 0;
    for (int i = 0; i < plan->operands; i++) {
        npuq_place place = plan->area.all.places[i];

        if (place.data) {
            const size_t words = i <= NPUQ_AT_Y ? npuq_count_words(plan->setup.words[i], col) : col;

            place.data += (ptrdiff_t)row * place.row_stride + (ptrdiff_t)words * place.col_stride;
        }
        tile->places[i] = place;
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Units as tiles: joined, or cut where groups end and where a tile has rows enough. */
void npuq_run_units(const npuq_plan *plan, size_t begin, size_t end)
{
    const npuq_fp_state caller = npuq_fp_enter();
    /* Columns that are not contiguous are gathered a few at a time from all rows of a unit. With many rows, the lines
     * of the next columns would not stay in the cache. */
    const bool apart = npuq_keeps_units_apart(&plan->setup.memory) || npuq_is_strided(plan, NPUQ_AT_X) ||
                       npuq_is_strided(plan, NPUQ_AT_Y);
    ptrdiff_t group_offsets[NPUQ_RANGED_ROWS];
    npuq_tile tile;
    size_t joined;

    const bool share_tiles = plan->groups.ends && plan->groups.share_tiles;

    tile.group_offsets = share_tiles ? group_offsets : NULL;
    for (size_t i = begin; i < end; i += joined) {
        npuq_unit unit;

        joined = npuq_join_units(&plan->units, i, apart ? i + 1 : end, &unit);
        for (size_t done = 0; done < unit.rows; done += tile.rows) {
            const size_t row = plan->first_row + unit.row + done;
            const size_t left = npuq_smaller(unit.rows - done, plan->block_rows);
            size_t group = 0;
            const size_t rows = share_tiles ? left : npuq_find_group(&plan->groups, row, left, &group);

            npuq_select_plan_tile(plan, row, rows, unit.col, unit.cols, &tile);
            tile.unit = i;
            if (share_tiles) {
                assert(tile.rows <= NPUQ_RANGED_ROWS);
                npuq_list_groups(&plan->groups, row, tile.rows, plan->group_stride, group_offsets);
            } else if (group > 0 && tile.places[NPUQ_AT_GROUPED].data) { /* which is null where there are no columns */
                tile.places[NPUQ_AT_GROUPED].data += (ptrdiff_t)group * plan->group_stride;
            }
            plan->compute(plan, &tile);
        }
    }
    if (plan->setup.memory.writes.from_memory) {
        plan->setup.kernels->fence_stores();
    }
    npuq_fp_leave(&caller);
}

static void run_part(void *plan, size_t begin, size_t end)
{
    npuq_run_units(plan, begin, end);
}

void npuq_run_plan(npuq_plan *plan, const npuq_executor *executor)
{
    if (executor && plan->units.count > 1) {
        executor->parallel_for(executor->context, plan->units.count, run_part, plan);
    } else if (plan->units.count > 0) {
        npuq_run_units(plan, 0, plan->units.count);
    }
}
