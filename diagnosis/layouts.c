/* SPDX-License-Identifier: BSD-3-Clause */
#include "layouts.h"

#include <stdlib.h>
#include <string.h>

/* Whether all of a column of the dump, from a row on, holds the value. */
static bool column_holds(const struct call *call, const struct array *theirs, size_t row, size_t column, uint64_t fill)
{
    for (; row < call->rows; row++) {
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

/* Columns of a row, at most, to compute a kernel's results for. */
enum { PREDICTED_COLUMNS = 128 };

/* A hash of every step-th column of a row of the array, or, if the array is null, of the kernel's results. */
static uint64_t hash_row(const struct call *call, const struct array *array, struct predictor *p, size_t row,
                         size_t step)
{
    uint64_t hash = 0xCBF29CE484222325U;

    for (size_t column = 0; column < call->columns; column += step) {
        const size_t i = row * call->columns + column;
        hash = (hash ^ (array ? array_bits(array, i) : predict(p, RESULT_Y, i, NULL))) * 0x100000001B3U;
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

bool layout_fit_rows(const struct call *call, const struct array *ours, struct predictor *p, const struct array *theirs,
                     size_t *row_of, bool *fits)
{
    struct hashed_row *there = malloc(3 * call->rows * sizeof *there);
    const size_t step = ours || call->columns == 0 ? 1 : 1 + (call->columns - 1) / PREDICTED_COLUMNS;
    size_t missing = 0;
    size_t left = 0;
    size_t found = 0;

    if (!there) {
        return false;
    }
    struct hashed_row *here = there + call->rows;
    struct hashed_row *all = here + call->rows;
    for (size_t row = 0; row < call->rows; row++) {
        there[row] = (struct hashed_row){hash_row(call, theirs, NULL, row, step), row};
        all[row] = (struct hashed_row){there[row].hash, 0};
        row_of[row] = row;
    }
    qsort(all, call->rows, sizeof *all, compare_hashes);
    for (size_t row = 0; row < call->rows && missing <= call->rows / 8; row++) {
        const struct hashed_row made = {hash_row(call, ours, p, row, step), 0};
        missing += !bsearch(&made, all, call->rows, sizeof *all, compare_hashes);
        here[left] = (struct hashed_row){made.hash, row};
        there[left] = there[row];
        left += here[left].hash != there[left].hash;
    }
    qsort(here, left, sizeof *here, compare_hashes);
    qsort(there, left, sizeof *there, compare_hashes);
    for (size_t i = 0, j = 0; i < left && j < left;) {
        if (here[i].hash == there[j].hash) {
            row_of[there[j++].row] = here[i++].row;
            found++;
        } else if (here[i].hash < there[j].hash) {
            i++;
        } else {
            j++;
        }
    }
    free(there);
    *fits = found > 0 && missing <= call->rows / 8 && left - found <= call->rows / 8;
    return true;
}

bool layout_fit(enum layout_choice choice, const struct call *call, const struct array *ours,
                const struct array *theirs, size_t *row_of, struct layout *layout, bool *fits)
{
    size_t from;

    *layout = (struct layout){0};
    *fits = false;
    if (call->count == 0) {
        return true;
    }
    layout->fill = array_bits(theirs, call->count - 1);
    /* An untouched part has two elements or more of one value. If the whole dump is one value but the result has
     * another, the dump is untouched from its first row on. */
    const bool may_be_all = !array_holds_one_value(ours) || array_bits(ours, 0) != layout->fill;
    switch (choice) {
    case LAYOUT_TAIL_UNTOUCHED:
        for (from = call->columns; from > 0 && column_holds(call, theirs, 0, from - 1, layout->fill); from--) {
        }
        layout->from = from;
        *fits = (call->columns - from) * call->rows > 1 && (from > 0 || (may_be_all && call->rows == 1));
        return true;
    case LAYOUT_ROWS_UNTOUCHED:
        for (from = call->rows; from > 0 && row_holds(call, theirs, from - 1, layout->fill); from--) {
        }
        layout->from = from;
        *fits = (call->rows - from) * call->columns > 1 && (from > 0 || may_be_all);
        return true;
    case LAYOUT_ROWS_OVERWRITTEN:
        layout->fill = call->rows > 1 ? array_bits(theirs, call->columns) : 0;
        for (from = 0; from < call->columns && column_holds(call, theirs, 1, from, layout->fill); from++) {
        }
        layout->from = from;
        *fits = call->rows > 1 && from < call->columns && from * (call->rows - 1) > 1;
        return true;
    case LAYOUT_ROWS_PERMUTED: layout->row_of = row_of; return layout_fit_rows(call, ours, NULL, theirs, row_of, fits);
    default: *fits = true; return true;
    }
}

struct found_layout layout_describe(const struct call *call, const struct variant *variant)
{
    const struct layout *layout = &variant->layout;
    struct found_layout found = {.unit = "row", .of = call->rows, .multiple_of = layout->from & (0 - layout->from)};

    switch (variant->choice[STEP_LAYOUT]) {
    case LAYOUT_ROWS_OVERWRITTEN:
    case LAYOUT_TAIL_UNTOUCHED:
        found.unit = "column";
        found.of = call->columns;
        found.has_fill = true;
        found.is_begin = variant->choice[STEP_LAYOUT] == LAYOUT_ROWS_OVERWRITTEN;
        break;
    case LAYOUT_ROWS_UNTOUCHED: found.has_fill = true; break;
    case LAYOUT_ROWS_PERMUTED:
        for (size_t row = 0; row < call->rows; row++) {
            found.first = found.moved == 0 && layout->row_of[row] != row ? row : found.first;
            found.moved += layout->row_of[row] != row;
        }
        break;
    default: break;
    }
    return found;
}
