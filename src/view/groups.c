/* SPDX-License-Identifier: BSD-3-Clause */
#include "groups.h"

#include <inttypes.h>

static int64_t group_end(const npuq_tensor *group_index, int64_t e)
{
    const int64_t at = group_index->shape[0] > 1 ? e * group_index->strides[0] : 0;
    return group_index->dtype == NPUQ_INT64 ? ((const int64_t *)group_index->data)[at]
                                            : ((const int32_t *)group_index->data)[at];
}

static npuq_status check_ends(const char *op, const npuq_tensor *group_index, int64_t rows)
{
    const int64_t groups = group_index->shape[0];
    int64_t previous = 0;

    for (int64_t e = 0; e < groups; e++) {
        const int64_t end = group_end(group_index, e);
        if (end < previous) {
            return npuq_fail(NPUQ_ERROR_GROUP_INDEX, op, "group_index",
                             "element %" PRId64 " is %" PRId64 "; expected %" PRId64 " or more (%s)", e, end, previous,
                             e == 0 ? "a row number" : "the element before");
        }
        previous = end;
    }
    if (previous != rows) {
        return npuq_fail(NPUQ_ERROR_GROUP_INDEX, op, "group_index",
                         "the last element is %" PRId64 "; expected %" PRId64 ", the number of rows", previous, rows);
    }
    return NPUQ_OK;
}

/* Whether the elements are the numbers of rows of the groups, which other operators and libraries take. */
static bool are_counts(const npuq_tensor *group_index, int64_t rows)
{
    int64_t left = rows;

    for (int64_t e = 0; e < group_index->shape[0]; e++) {
        const int64_t count = group_end(group_index, e);
        if (count < 0 || count > left) {
            return false;
        }
        left -= count;
    }
    return left == 0;
}

npuq_status npuq_check_group_index(const char *op, const npuq_tensor *group_index, int64_t rows)
{
    const npuq_status status = check_ends(op, group_index, rows);

    if (status != NPUQ_OK && are_counts(group_index, rows)) {
        return npuq_fail(status, op, "group_index",
                         "looks like counts of rows, whose sum is %" PRId64 "; expected their cumulative sum, which is "
                         "where each group ends",
                         rows);
    }
    return status;
}

npuq_group_run npuq_group_at(const npuq_tensor *group_index, size_t row, size_t most)
{
    /* The first group that ends beyond row: empty groups before it end at or before row. */
    int64_t low = 0;
    int64_t high = group_index->shape[0] - 1;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((size_t)group_end(group_index, middle) > row) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    const size_t left = (size_t)group_end(group_index, low) - row;
    return (npuq_group_run){(size_t)low, left < most ? left : most};
}
