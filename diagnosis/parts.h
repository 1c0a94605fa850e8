/* SPDX-License-Identifier: BSD-3-Clause */
/* A mistake in a part of y only: kernels have other code for the end of a row, or for a block of rows. */
#ifndef NPUQUANT_PARTS_H
#define NPUQUANT_PARTS_H

#include "call.h"
#include "predict.h"
#include "variant.h"

/* Rows, with all their elements, or columns of all rows. */
struct part {
    enum { PART_ALL, PART_ROWS, PART_COLUMNS } kind;
    size_t begin;
    size_t end; /* not included */
    size_t of;  /* how many there are in all */
};

/* The number from least to most that the largest power of two divides: vector loops end there. */
size_t part_roundest(size_t least, size_t most);

/* Finds the part of y where the mistake gives theirs; the rest of theirs equals ours, the right results. A part of rows
 * has the scales and offsets of these rows, too; where those differ, no part of columns fits. part->kind is PART_ALL if
 * nothing fits, or if the part holds one value of y and has no scales. There is a y. False if there is not the memory.
 */
bool part_find(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
               const struct array ours[RESULTS], const struct array theirs[RESULTS], struct part *part);

#endif
