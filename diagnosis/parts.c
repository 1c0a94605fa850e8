/* SPDX-License-Identifier: BSD-3-Clause */
#include "parts.h"

#include <stdlib.h>

/* The rows of y, or its columns. */
struct side {
    size_t of;
    size_t first; /* with an element that differs */
    size_t last;
    bool *is_right; /* for each: the mistake would change an equal element */
};

static void add_differing(struct side *side, size_t at)
{
    side->first = at < side->first ? at : side->first;
    side->last = at > side->last ? at : side->last;
}

size_t part_roundest(size_t least, size_t most)
{
    size_t best = most;

    while (best > 0 && (best & (best - 1)) >= least) {
        best &= best - 1;
    }
    return best;
}

/* Makes the part reach from the first to the last differing row or column, and beyond them at most to the next right
 * one. False if a right one lies between. */
static bool fit(const struct side *side, struct part *part)
{
    size_t least = side->first;
    size_t most = side->last + 1;

    for (size_t i = side->first; i <= side->last; i++) {
        if (side->is_right[i]) {
            return false;
        }
    }
    while (least > 0 && !side->is_right[least - 1]) {
        least--;
    }
    while (most < side->of && !side->is_right[most]) {
        most++;
    }
    *part = (struct part){
        .begin = part_roundest(least, side->first),
        .end = most == side->of ? most : part_roundest(side->last + 1, most),
        .of = side->of,
    };
    return true;
}

/* Notes an element in the row or column of a side. */
static void note(struct side *side, size_t at, bool differs)
{
    if (differs) {
        add_differing(side, at);
    } else {
        side->is_right[at] = true;
    }
}

/* Notes the differing and the right rows and columns. False if the mistake does not explain all differences. Scales and
 * offsets belong to all columns: columns->of becomes 0 if one of them differs, or would with the mistake. */
static bool look(struct predictor *p, enum result result, const struct array *ours, const struct array *theirs,
                 struct side *rows, struct side *columns)
{
    const struct call *call = p->call;
    const size_t count = theirs->data ? call_result_count(call, result) : 0;

    for (size_t i = 0; i < count; i++) {
        const uint64_t right = array_bits(ours, i);
        const uint64_t now = predict(p, result, i, NULL);
        const bool differs = !result_is_same(result, right, array_bits(theirs, i));
        if (differs && !result_is_same(result, now, array_bits(theirs, i))) {
            return false;
        }
        if (!differs && result_is_same(result, now, right)) {
            continue;
        }
        if (result == RESULT_Y) {
            note(rows, i / call->columns, differs);
            note(columns, i % call->columns, differs);
        } else {
            const struct row_range its_rows = call_rows_of_token(call, i);
            for (size_t row = its_rows.begin; row < its_rows.end; row++) {
                note(rows, row, differs);
            }
            columns->of = 0;
        }
    }
    return true;
}

/* Whether the whole part of y holds one value: then something else wrote it, unless scales show the mistake, too. */
static bool is_overwritten(const struct call *call, const struct array *theirs, const struct part *part)
{
    const bool columns = part->kind == PART_COLUMNS;
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < call->count; i++) {
        const size_t at = columns ? i % call->columns : i / call->columns;
        if (at >= part->begin && at < part->end) {
            first = first == SIZE_MAX ? i : first;
            if (array_bits(theirs, i) != array_bits(theirs, first)) {
                return false;
            }
        }
    }
    return true;
}

bool part_find(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
               const struct array ours[RESULTS], const struct array theirs[RESULTS], struct part *part)
{
    struct predictor p = {.call = call, .variant = variant, .cache = cache};
    struct side rows = {call->rows, SIZE_MAX, 0, calloc(call->rows + 1, sizeof *rows.is_right)};
    struct side columns = {call->columns, SIZE_MAX, 0, calloc(call->columns + 1, sizeof *columns.is_right)};
    const bool ok = rows.is_right && columns.is_right;

    *part = (struct part){0};
    bool explains = ok;
    for (int r = 0; r < RESULTS && explains; r++) {
        explains = look(&p, (enum result)r, &ours[r], &theirs[r], &rows, &columns);
    }
    if (explains && rows.first <= rows.last) {
        if (columns.of > 0 && columns.first <= columns.last && fit(&columns, part)) {
            part->kind = PART_COLUMNS;
        } else if (fit(&rows, part)) {
            part->kind = PART_ROWS;
        }
        if (part->kind != PART_ALL && columns.of > 0 && is_overwritten(call, &theirs[RESULT_Y], part)) {
            *part = (struct part){0};
        }
    }
    free(rows.is_right);
    free(columns.is_right);
    return ok;
}
