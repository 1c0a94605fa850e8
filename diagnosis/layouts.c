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

/* The first of the rows of ours, sorted by hash, that has the hash, or the one that is not before it. */
static const struct hashed_row *find_hash(const struct hashed_row *rows, size_t count, uint64_t hash)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (rows[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && rows[low].hash == hash ? &rows[low] : NULL;
}

/* Most rows of the dump are rows of the result, and some of them others. Equal rows stay where they are. */
static bool fit_rows(const struct call *call, const struct array *ours, const struct array *theirs, size_t *row_of)
{
    struct hashed_row *rows = malloc(call->rows * sizeof *rows);
    size_t found = 0;
    size_t moved = 0;

    if (!rows) {
        return false;
    }
    for (size_t row = 0; row < call->rows; row++) {
        rows[row] = (struct hashed_row){hash_row(call, ours, row), row};
        row_of[row] = rows[row].hash == hash_row(call, theirs, row) ? row : SIZE_MAX;
    }
    qsort(rows, call->rows, sizeof *rows, compare_hashes);
    for (size_t row = 0; row < call->rows; row++) {
        if (row_of[row] == row) {
            found++;
            continue;
        }
        const struct hashed_row *other = find_hash(rows, call->rows, hash_row(call, theirs, row));
        row_of[row] = other ? other->row : row;
        found += other != NULL;
        moved += other != NULL;
    }
    free(rows);
    return moved > 0 && found >= call->rows - call->rows / 8;
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
