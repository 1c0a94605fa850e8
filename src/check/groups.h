/* SPDX-License-Identifier: BSD-3-Clause */
/* group_index: the rows of each group. Element e is where group e ends. */
#ifndef NPUQ_GROUPS_H
#define NPUQ_GROUPS_H

#include "../status.h"

/* Where the elements lie. Without a group_index, all rows are one group, the first. */
typedef struct npuq_groups {
    const char *ends; /* null: no group_index */
    ptrdiff_t stride; /* bytes */
    int64_t count;
    bool is_int64;    /* else int32 */
    bool share_tiles; /* a tile has rows of any groups, whose data kernels find by row */
} npuq_groups;

/* group_index may be null. */
static inline npuq_groups npuq_find_groups(const npuq_tensor *group_index)
{
    npuq_groups groups = {.ends = NULL};

    if (group_index) {
        groups.ends = group_index->data;
        groups.count = group_index->shape[0];
        groups.is_int64 = group_index->dtype == NPUQ_INT64;
        if (groups.count > 1) {
            groups.stride = (ptrdiff_t)(group_index->strides[0] * (groups.is_int64 ? 8 : 4));
        }
    }
    return groups;
}

/* The values of a group_index, not null: non-decreasing, the first >= 0, the last == rows. */
npuq_status npuq_check_groups(const char *op, const npuq_tensor *group_index, int64_t rows);

/* Sets *e to the group that owns row; returns how many of its rows, 1 to most, begin there. If values have changed
 * since the check, *e is some group. */
size_t npuq_search_group(const npuq_groups *groups, size_t row, size_t most, size_t *e);

/* offsets[r] = the number of the group that owns row + r, times stride. */
void npuq_list_groups(const npuq_groups *groups, size_t row, size_t rows, ptrdiff_t stride, ptrdiff_t *offsets);

static inline size_t npuq_find_group(const npuq_groups *groups, size_t row, size_t most, size_t *e)
{
    if (groups->ends) {
        return npuq_search_group(groups, row, most, e);
    }
    *e = 0;
    return most;
}

#endif
