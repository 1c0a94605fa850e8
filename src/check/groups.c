/* SPDX-License-Identifier: BSD-3-Clause */
#include "groups.h"

static int64_t group_end(const npuq_groups *groups, int64_t e)
{
    const void *at = groups->ends + (ptrdiff_t)e * groups->stride;

    return groups->is_int64 ? *(const int64_t *)at : *(const int32_t *)at;
}

static npuq_status check_ends(const char *op, const npuq_groups *groups, int64_t rows)
{
    int64_t previous = 0;

    for (int64_t e = 0; e < groups->count; e++) {
        const int64_t end = group_end(groups, e);
        if (end < previous) {
            return npuq_fail(NPUQ_ERROR_GROUP_INDEX, op, "group_index",
                             "element %lld is %lld; expected %lld or more (%s)", (long long)e, (long long)end,
                             (long long)previous, e == 0 ? "a row number" : "the element before");
        }
        previous = end;
    }
    if (previous != rows) {
        return npuq_fail(NPUQ_ERROR_GROUP_INDEX, op, "group_index",
                         "the last element is %lld; expected %lld, the number of rows of x", (long long)previous,
                         (long long)rows);
    }
    return NPUQ_OK;
}

/* Whether the elements are the numbers of rows of the groups, which other operators and libraries take. */
static bool are_counts(const npuq_groups *groups, int64_t rows)
{
    int64_t left = rows;

    for (int64_t e = 0; e < groups->count; e++) {
        const int64_t count = group_end(groups, e);
        if (count < 0 || count > left) {
            return false;
        }
        left -= count;
    }
    return left == 0;
}

npuq_status npuq_check_groups(const char *op, const npuq_tensor *group_index, int64_t rows)
{
    const npuq_groups groups = npuq_find_groups(group_index);
    const npuq_status status = check_ends(op, &groups, rows);

    if (status != NPUQ_OK && are_counts(&groups, rows)) {
        return npuq_fail(status, op, "group_index",
                         "looks like counts of rows, whose sum is %lld; expected their cumulative sum, which is "
                         "where each group ends",
                         (long long)rows);
    }
    return status;
}

size_t npuq_search_group(const npuq_groups *groups, size_t row, size_t most, size_t *e)
{
    /* The first group that ends beyond row: empty groups before it end at or before row. */
    int64_t low = 0;
    int64_t high = groups->count - 1;
    int64_t end;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (group_end(groups, middle) > (int64_t)row) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *e = (size_t)low;
    end = group_end(groups, low);
    return end > (int64_t)row && (uint64_t)end - row < most ? (size_t)end - row : most;
}

void npuq_list_groups(const npuq_groups *groups, size_t row, size_t rows, ptrdiff_t stride, ptrdiff_t *offsets)
{
    size_t e;

    (void)npuq_search_group(groups, row, rows, &e);
    for (size_t r = 0; r < rows; r++) {
        while (group_end(groups, (int64_t)e) <= (int64_t)(row + r) && (int64_t)e < groups->count - 1) {
            e++;
        }
        offsets[r] = (ptrdiff_t)e * stride;
    }
}
