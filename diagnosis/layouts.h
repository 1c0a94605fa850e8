/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the values of a dump really are: what can only be found by looking at it. */
#ifndef NPUQUANT_LAYOUTS_H
#define NPUQUANT_LAYOUTS_H

#include "call.h"
#include "predict.h"

/* Finds what a layout needs to be known: where the untouched part begins and what it holds, or which row is where; and
 * whether the dump looks like it. row_of has room for the rows. False if there is not the memory. */
bool layout_fit(enum layout_choice choice, const struct call *call, const struct array *ours,
                const struct array *theirs, size_t *row_of, struct layout *layout, bool *fits);

/* Whether most rows of the dump are rows of the result, each of them one of its own, and some are elsewhere: then
 * row_of says for each which. Equal rows stay where they are. The result is ours or, if that is null, what a kernel
 * with other mistakes returns. False if there is not the memory. */
bool layout_fit_rows(const struct call *call, const struct array *ours, struct predictor *p, const struct array *theirs,
                     size_t *row_of, bool *fits);

#endif
