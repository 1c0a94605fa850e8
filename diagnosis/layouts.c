/* SPDX-License-Identifier: BSD-3-Clause */
#include "layouts.h"

#include <stdlib.h>
#include <string.h>

/* Whether all of a column of the dump holds the value. */
static bool column_holds(const struct call *call, const struct array *theirs, size_t column, uint64_t fill)
{
    for (size_t row = 0; row < call->rows; row++) {
        if (array_bits(theirs, row * call->columns + column) != fill) {
            return false;
        }
    }
    return true;
}

static bool row_holds(const struct call *call, const struct array *theirs, size_t row, uint64_t fill)
{
    for (size_t column = 0; column < call->columns; column++) {
        if (array_bits(theirs, row * call->columns + column) != fill) {
            return false;
        }
    }
    return true;
}

static uint64_t hash_row(const struct call *call, const struct array *array, size_t row)
{
    uint64_t hash = 0xCBF29CE484222325U;

    for (size_t column = 0; column < call->columns; column++) {
        hash = (hash ^ array_bits(array, row * call->columns + column)) * 0x100000001B3U;
        hash ^= hash >> 29;
    }
    return hash;
}

struct hashed_row {
    uint64_t hash;
    size_t row;
};

static int compare_hashes(const void *a, const void *b)
{
    const struct hashed_row *x = a;
    const struct hashed_row *y = b;

    if (x->hash != y->hash) {
        return x->hash < y->hash ? -1 : 1;
    }
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The rows that are not where they are in the other array, sorted by hash. */
static size_t moved_rows(const struct call *call, const struct array *array, const struct array *other,
                         struct hashed_row *moved)
{
    size_t count = 0;

    for (size_t row = 0; row < call->rows; row++) {
        const uint64_t hash = hash_row(call, array, row);
        if (hash != hash_row(call, other, row)) {
            moved[count++] = (struct hashed_row){hash, row};
        }
    }
    qsort(moved, count, sizeof *moved, compare_hashes);
    return count;
}

/* Most rows of the dump are rows of the result, and some of them others, each of which is in one place only: a row that
 * a mistake made equal to another is no row that was moved. */
static bool fit_rows(const struct call *call, const struct array *ours, const struct array *theirs, size_t *row_of)
{
    struct hashed_row *from = malloc(call->rows * sizeof *from);
    struct hashed_row *to = malloc(call->rows * sizeof *to);
    size_t found = 0;
    size_t count = 0;

    if (from && to) {
        count = moved_rows(call, ours, theirs, from);
        (void)moved_rows(call, theirs, ours, to);
        for (size_t row = 0; row < call->rows; row++) {
            row_of[row] = row;
        }
        for (size_t i = 0, j = 0; i < count && j < count;) {
            if (from[i].hash == to[j].hash) {
                row_of[to[j++].row] = from[i++].row;
                found++;
            } else if (from[i].hash < to[j].hash) {
                i++;
            } else {
                j++;
            }
        }
    }
    free(from);
    free(to);
    return found > 0 && count - found <= call->rows / 8;
}

bool layout_fit(enum layout_choice choice, const struct call *call, const struct array *ours,
                const struct array *theirs, size_t *row_of, struct layout *layout)
{
    size_t from;

    *layout = (struct layout){0};
    if (call->count == 0) {
        return false;
    }
    layout->fill = array_bits(theirs, call->count - 1);
    switch (choice) {
    case LAYOUT_TAIL_UNTOUCHED:
        for (from = call->columns; from > 0 && column_holds(call, theirs, from - 1, layout->fill); from--) {
        }
        layout->from = from;
        return from > 0 && from < call->columns;
    case LAYOUT_ROWS_UNTOUCHED:
        for (from = call->rows; from > 0 && row_holds(call, theirs, from - 1, layout->fill); from--) {
        }
        layout->from = from;
        return from > 0 && from < call->rows;
    case LAYOUT_ROWS_PERMUTED: layout->row_of = row_of; return fit_rows(call, ours, theirs, row_of);
    default: return true;
    }
}
