/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the values of a dump really are: only the dump shows this. */
#ifndef NPUQUANT_LAYOUTS_H
#define NPUQUANT_LAYOUTS_H

#include "call.h"
#include "predict.h"

/* What a layout does to y. */
struct found_layout {
    bool has_fill;      /* some elements hold one value, which is not theirs */
    bool is_begin;      /* those of the first columns; otherwise the last columns or rows */
    const char *unit;   /* "column" or "row" */
    size_t of;          /* how many there are */
    size_t multiple_of; /* the largest power of two that variant.layout.from is a multiple of */
    size_t moved;       /* rows elsewhere, the first of them */
    size_t first;
};

struct found_layout layout_describe(const struct call *call, const struct variant *variant);

/* Sets *fits if the dump has the layout. Finds its parameters: begin and value of the untouched part, or the order of
 * rows. row_of has room for the rows. False if there is not the memory. */
bool layout_fit(enum layout_choice choice, const struct call *call, const struct array *ours,
                const struct array *theirs, size_t *row_of, struct layout *layout, bool *fits);

/* Sets *fits if most rows of the dump are different rows of the result, and some are elsewhere. row_of then has the row
 * of the result for each. Equal rows stay in their places. The result is ours, or, if ours is null, that of a kernel
 * with other mistakes. False if there is not the memory. */
bool layout_fit_rows(const struct call *call, const struct array *ours, struct predictor *p, const struct array *theirs,
                     size_t *row_of, bool *fits);

#endif
