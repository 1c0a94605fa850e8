/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the groups of microscaling lie, and how those of another axis than the last are walked. */
#ifndef NPUQ_MX_GROUPS_H
#define NPUQ_MX_GROUPS_H

#include "mx.h"

/* A call's arguments, with the axis of the groups as the last dimension or as the one before it. Scales are those of
 * the first group of each pair. */
typedef struct npuq_mx_views {
    npuq_arguments arguments;
    const npuq_tensor *tensors[NPUQ_MOST_ARGUMENTS];
    npuq_tensor views[NPUQ_AFTER_Y + 1];
    ptrdiff_t pair_stride; /* bytes to the second one */
    bool is_last_axis;
} npuq_mx_views;
void npuq_view_mx_groups(npuq_mx_views *views, const npuq_arguments *arguments, const npuq_mx_options *options,
                         int scale);

/* Where the last axis is in groups, the scale code of a group. */
static inline char *npuq_find_mx_code(const npuq_plan *plan, const npuq_place *scale, size_t row, size_t group)
{
    return scale->data + (ptrdiff_t)row * scale->row_stride + (ptrdiff_t)(group / 2) * scale->col_stride +
           (ptrdiff_t)(group % 2) * plan->pair_stride;
}

/* ---- another axis than the last ---------------------------------------------------------------------------------- */

/* Adds the scales. A tile is a pair of groups of rows, for any columns. */
void npuq_finish_mx_columns(npuq_plan *plan, const npuq_arguments *arguments, size_t block);

/* Calls visit for the groups of a tile, some columns at a time: x stays in the first-level cache. A group that is not
 * there has no rows. */
enum { NPUQ_MX_COLUMNS = 1024 /* at most */ };
void npuq_visit_mx_groups(const npuq_plan *plan, const npuq_tile *tile, size_t group_rows, npuq_tile_fn *visit);

#endif
