/* SPDX-License-Identifier: BSD-3-Clause */
/* group_index: which rows belong to which group. Element e is where group e ends. */
#ifndef NPUQ_GROUPS_H
#define NPUQ_GROUPS_H

#include "../status.h"

/* The values: non-decreasing, the first >= 0, the last == rows. */
npuq_status npuq_check_group_index(const char *op, const npuq_tensor *group_index, int64_t rows);

/* Consecutive rows of one group. */
typedef struct npuq_group_run {
    size_t e;
    size_t rows;
} npuq_group_run;

/* The group that owns row, and how many rows, up to most, follow in it from there. */
npuq_group_run npuq_group_at(const npuq_tensor *group_index, size_t row, size_t most);

#endif
