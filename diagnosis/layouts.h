/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the values of a dump really are: what can only be found by looking at it. */
#ifndef NPUQUANT_LAYOUTS_H
#define NPUQUANT_LAYOUTS_H

#include "call.h"
#include "variant.h"

/* Finds what a layout needs to be known: where the untouched part begins and what it holds, or which row is where; and
 * whether the dump looks like it. row_of has room for the rows. False if there is not the memory. */
bool layout_fit(enum layout_choice choice, const struct call *call, const struct array *ours,
                const struct array *theirs, size_t *row_of, struct layout *layout, bool *fits);

#endif
