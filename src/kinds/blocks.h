/* SPDX-License-Identifier: BSD-3-Clause */
/* Dynamic quantisation with a scale for each block of columns of a row. */
#ifndef NPUQ_BLOCKS_H
#define NPUQ_BLOCKS_H

#include "dynamic.h"

/* Starts a plan with blocks of this many columns, at most all of them. Returns whether there are elements. `dense`:
 * scales of dense blocks follow one another, so that blocks may be rows by themselves. */
bool npuq_start_blocks(npuq_plan *plan, const npuq_arguments *arguments, int64_t block, bool dense);

/* Adds the scales, and cuts the plan into whole rows. An operator has set its own state and types. */
void npuq_finish_blocks(npuq_plan *plan, const npuq_arguments *arguments);

/* Alike for scales of several rows, or of a pair of groups of rows: these are a tile. Units are some of them, or whole
 * matrices where several end with fewer rows. */
void npuq_finish_rectangles(npuq_plan *plan, const npuq_arguments *arguments, size_t row_block, size_t most_cols);

/* From a row and a block of a tile on: blocks of this row, or the same block of several rows. */
npuq_tile npuq_select_blocks(const npuq_plan *plan, const npuq_tile *tile, size_t row, size_t first, size_t rows,
                             bool of_one_row);

npuq_tile_fn npuq_quantise_blocks;

#endif
