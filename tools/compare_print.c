/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a comparison: a line with the conclusion, then how far, where, and which elements. */
#include "compare.h"

#include "tensor_file.h"

#include <dtypes.h>
#include <inttypes.h>
#include <layouts.h>
#include <npuq_ref_element.h>
#include <stdlib.h>
#include <string.h>

static const char *unit(const npuq_tensor *tensor)
{
    return dtype_is_float(tensor->dtype) ? " ulp" : "";
}

/* ---- how far --------------------------------------------------------------------------------------------------- */

enum { MOST_BARS = 8, BAR_WIDTH = 40, LABEL_SIZE = 48 };

static const char *spread_label(char text[LABEL_SIZE], const struct spread *spread)
{
    if (spread->least == spread->most) {
        (void)snprintf(text, LABEL_SIZE, "%+" PRId64, spread->least);
    } else {
        (void)snprintf(text, LABEL_SIZE, "%+" PRId64 "..%+" PRId64, spread->least, spread->most);
    }
    return text;
}

/* Joins spreads, `width` powers of 2 to a bar, and drops empty bars. Returns the number of bars, the least first; keeps
 * at most MOST_BARS. */
static int collect_bars(const struct comparison *comparison, int width, struct spread bars[MOST_BARS])
{
    int count = 0;

    for (int start = -COMPARE_SPREADS; start < COMPARE_SPREADS; start += width) {
        struct spread bar = {0};
        for (int i = start; i < start + width; i++) {
            compare_join(&bar, i < 0 ? &comparison->below[-1 - i] : &comparison->above[i]);
        }
        if (bar.count > 0 && count++ < MOST_BARS) {
            bars[count - 1] = bar;
        }
    }
    return count;
}

/* Prints the histogram, unless one bar has all differences: the conclusion says that. */
static void print_histogram(FILE *stream, const struct comparison *comparison)
{
    struct spread bars[MOST_BARS];
    char labels[MOST_BARS][LABEL_SIZE];
    size_t most = 0;
    int label_width = 0;
    int width = 1;
    int count = collect_bars(comparison, width, bars);

    while (count > MOST_BARS) {
        width *= 2;
        count = collect_bars(comparison, width, bars);
    }
    for (int i = 0; i < count; i++) {
        const int length = (int)strlen(spread_label(labels[i], &bars[i]));
        label_width = length > label_width ? length : label_width;
        most = bars[i].count > most ? bars[i].count : most;
    }
    const int count_width = snprintf(NULL, 0, "%zu", most);
    for (int i = 0; count > 1 && i < count; i++) {
        const int length = 1 + (int)((double)bars[i].count / (double)most * (BAR_WIDTH - 1));
        (void)fprintf(stream, "  %*s  %*zu  ", label_width, labels[i], count_width, bars[i].count);
        for (int j = 0; j < length; j++) {
            (void)fputc('#', stream);
        }
        (void)fputc('\n', stream);
    }
}

static void print_fields(FILE *stream, const struct comparison *comparison)
{
    static const char *const names[FIELDS] = {"the scale", "the offset", "other bits"};
    const char *separator = "";

    for (int field = 0; field < FIELDS; field++) {
        if (comparison->fields[field] > 0) {
            (void)fprintf(stream, "%s%s in %zu", separator, names[field], comparison->fields[field]);
            separator = ", ";
        }
    }
}

/* ---- where ----------------------------------------------------------------------------------------------------- */

enum { MOST_RANGES = 8 };

/* The first index from start on with differences (hit) or without; the extent if there is none. */
static int64_t find_index(const struct hits *hits, int64_t start, bool hit)
{
    const unsigned char skipped = hit ? 0 : UINT8_MAX;
    int64_t i = start;

    while (i < hits->extent) {
        if (i % 8 == 0 && hits->set[i / 8] == skipped) {
            i += 8;
        } else if ((hits->set[i / 8] >> i % 8 & 1) == hit) {
            return i;
        } else {
            i++;
        }
    }
    return hits->extent;
}

/* The distance of neighbours if three or more have the same; else 0. */
static int64_t regular_step(const struct hits *hits, int64_t *last)
{
    const int64_t first = find_index(hits, 0, true);
    const int64_t second = find_index(hits, first + 1, true);
    int64_t next = second;

    do {
        *last = next;
        next = find_index(hits, next + 1, true);
    } while (next < hits->extent && next == *last + (second - first));
    return hits->count > 2 && next == hits->extent ? second - first : 0;
}

/* Prints the indices with differences (hit) or without. */
static void print_ranges(FILE *stream, const struct hits *hits, bool hit)
{
    const int64_t count = hit ? hits->count : hits->extent - hits->count;
    int64_t shown = 0;
    int64_t end = 0;

    for (int i = 0; i < MOST_RANGES && shown < count; i++) {
        const int64_t begin = find_index(hits, end, hit);
        end = find_index(hits, begin, !hit);
        (void)fprintf(stream, "%s%" PRId64, i > 0 ? ", " : "", begin);
        if (end - begin > 1) {
            (void)fprintf(stream, "..%" PRId64, end - 1);
        }
        shown += end - begin;
        if (end - begin == count && count > 1 && (begin == 0 || end == hits->extent)) {
            (void)fprintf(stream, " (the %s %" PRId64 ")", begin == 0 ? "first" : "last", count);
        }
    }
    if (shown < count) {
        (void)fprintf(stream, ", and %" PRId64 " more", count - shown);
    }
}

static void print_hits(FILE *stream, const char *name, const struct hits *hits)
{
    int64_t last;

    if (hits->extent == 1) {
        return;
    }
    (void)fprintf(stream, "  %s: ", name);
    if (hits->count == hits->extent) {
        (void)fprintf(stream, "all %" PRId64 " hit\n", hits->extent);
        return;
    }
    (void)fprintf(stream, "%" PRId64 " of %" PRId64 " hit: ", hits->count, hits->extent);
    const int64_t step = regular_step(hits, &last);
    if (step > 1) {
        (void)fprintf(stream, "%" PRId64 "..%" PRId64 " in steps of %" PRId64, find_index(hits, 0, true), last, step);
    } else if (hits->count <= hits->extent / 2) {
        print_ranges(stream, hits, true);
    } else {
        (void)fprintf(stream, "all but ");
        print_ranges(stream, hits, false);
    }
    (void)fputc('\n', stream);
}

static void print_places(FILE *stream, const struct pair *pair, const struct comparison *comparison)
{
    char name[32];

    print_hits(stream, "rows", &comparison->rows);
    for (int d = 0; d < comparison->dimensions; d++) {
        const struct hits *hits = &comparison->dimension[d];
        if (hits->count < hits->extent) {
            (void)snprintf(name, sizeof name, "dimension %d", d);
            print_hits(stream, name, hits);
        }
    }
    print_hits(stream, pair->ours->ndim > 1 ? "columns" : "elements", &comparison->columns);
}

/* ---- which ----------------------------------------------------------------------------------------------------- */

static void print_value(FILE *stream, npuq_dtype dtype, uint64_t bits)
{
    char value[DTYPE_TEXT_SIZE];

    (void)fprintf(stream, "%s", dtype_format(value, dtype, bits));
    if (dtype_is_words(dtype)) {
        (void)fprintf(stream, " (scale %.9g, offset %" PRId32 ")", (double)dtype_float(NPUQ_FLOAT32, bits),
                      npuq_ref_word_offset(bits));
    }
}

struct printing {
    FILE *stream;
    const struct pair *pair;
    int64_t left; /* how many are still to be printed */
};

static bool print_difference(void *context, const struct difference *difference)
{
    struct printing *printing = context;
    const npuq_tensor *tensor = printing->pair->ours;
    FILE *stream = printing->stream;

    if (compare_is_tolerated(printing->pair, difference)) {
        return true;
    }
    (void)fprintf(stream, "  [");
    for (int d = 0; d < tensor->ndim; d++) {
        (void)fprintf(stream, "%s%" PRId64, d > 0 ? ", " : "", difference->index[d]);
    }
    (void)fprintf(stream, "]: %s ", printing->pair->our_name);
    print_value(stream, tensor->dtype, difference->ours);
    (void)fprintf(stream, ", %s ", printing->pair->their_name);
    print_value(stream, compare_their_dtype(printing->pair), difference->theirs);
    if (dtype_is_float(tensor->dtype) && !difference->infinite && !difference->zeros) {
        (void)fprintf(stream, ", %+" PRId64 " ulp", difference->steps);
    }
    (void)fputc('\n', stream);
    return --printing->left > 0;
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static const char *differ(size_t count)
{
    return count == 1 ? "differs" : "differ";
}

/* A percentage; small shares have two digits, and only all elements are 100. */
static void print_percent(FILE *stream, size_t count, size_t all)
{
    const double percent = 100 * (double)count / (double)all;

    if (percent < 0.0001) {
        (void)fprintf(stream, " (less than 0.0001 %%)");
    } else if (percent < 10) {
        (void)fprintf(stream, " (%.2g %%)", percent);
    } else {
        (void)fprintf(stream, " (%d %%)", (int)percent);
    }
}

static void print_steps(FILE *stream, const struct pair *pair, const struct spread *steps)
{
    char label[LABEL_SIZE];

    (void)fprintf(stream, ", by %s%s (%s - %s)", spread_label(label, steps), unit(pair->ours), pair->their_name,
                  pair->our_name);
}

/* The report without differences beyond the tolerance. */
static void print_accepted(FILE *stream, const struct pair *pair, const struct comparison *comparison)
{
    const struct spread *tolerated = &comparison->tolerated;
    const char *s = comparison->elements == 1 ? "" : "s";

    if (tolerated->count == 0) {
        (void)fprintf(stream, "all %zu element%s equal\n", comparison->elements, s);
        return;
    }
    (void)fprintf(stream, "all %zu element%s within %" PRId64 "%s: %zu %s", comparison->elements, s, pair->tolerance,
                  unit(pair->ours), tolerated->count, differ(tolerated->count));
    print_percent(stream, tolerated->count, comparison->elements);
    print_steps(stream, pair, tolerated);
    (void)fputc('\n', stream);
}

static void print_conclusion(FILE *stream, const struct pair *pair, const struct comparison *comparison)
{
    struct spread steps = {0};

    for (int i = 0; i < COMPARE_SPREADS; i++) {
        compare_join(&steps, &comparison->below[i]);
        compare_join(&steps, &comparison->above[i]);
    }
    (void)fprintf(stream, "%zu of %zu element%s %s", comparison->differ, comparison->elements,
                  comparison->elements == 1 ? "" : "s", differ(comparison->differ));
    if (pair->tolerance > 0) {
        (void)fprintf(stream, " by more than %" PRId64 "%s", pair->tolerance, unit(pair->ours));
    }
    print_percent(stream, comparison->differ, comparison->elements);
    if (dtype_is_words(pair->ours->dtype)) {
        (void)fprintf(stream, ": ");
        print_fields(stream, comparison);
    } else if (steps.count > 0) {
        print_steps(stream, pair, &steps);
    }
    if (comparison->infinite > 0) {
        (void)fprintf(stream, "; NaN or an infinity against another value in %zu", comparison->infinite);
    }
    if (comparison->zeros > 0) {
        (void)fprintf(stream, "; zeros of the other sign in %zu", comparison->zeros);
    }
    if (comparison->tolerated.count > 0) {
        (void)fprintf(stream, "; %zu more by no more than %" PRId64, comparison->tolerated.count, pair->tolerance);
    }
    (void)fputc('\n', stream);
}

void compare_print(FILE *stream, const char *name, const struct pair *pair, const struct comparison *comparison,
                   int64_t max_diffs)
{
    struct printing printing = {stream, pair, max_diffs};

    (void)fprintf(stream, "%s: ", name);
    if (comparison->differ == 0) {
        print_accepted(stream, pair, comparison);
        return;
    }
    print_conclusion(stream, pair, comparison);
    print_histogram(stream, comparison);
    print_places(stream, pair, comparison);
    if (max_diffs == 0) {
        return;
    }
    compare_walk(pair, print_difference, &printing);
    if (comparison->differ > (uint64_t)max_diffs) {
        (void)fprintf(stream, "  ... and %" PRIu64 " more (see --max-diffs)\n",
                      (uint64_t)comparison->differ - (uint64_t)max_diffs);
    }
}

/* ---- two dumps ------------------------------------------------------------------------------------------------- */

enum { MOST_MOVED = 3, CODE_SHIFT = 128, LOG2_CODE_SHIFT = 7 };

/* Prints the moved rows, if each differing row is another row of ours. */
static void print_moved(FILE *stream, const struct pair *pair, const struct hits *rows, const size_t *row_of)
{
    const char *separator = ";";
    int64_t row = find_index(rows, 0, true);

    for (; row < rows->extent && row_of[row] != (size_t)row; row = find_index(rows, row + 1, true)) {
    }
    if (row < rows->extent) {
        return;
    }
    (void)fprintf(stream, ": %" PRId64 " of %" PRId64 " rows moved", rows->count, rows->extent);
    row = find_index(rows, 0, true);
    for (int i = 0; i < MOST_MOVED && row < rows->extent; i++, row = find_index(rows, row + 1, true)) {
        (void)fprintf(stream, "%s row %" PRId64 " of %s is row %zu of %s", separator, row, pair->their_name,
                      row_of[row], pair->our_name);
        separator = ",";
    }
}

/* Copies and sorts the rows. Without memory for that, the line says less. */
static void print_order(FILE *stream, const struct pair *pair, const struct comparison *comparison)
{
    const size_t rows = (size_t)comparison->rows.extent;
    const struct call call = {.rows = rows, .columns = comparison->elements / rows};
    size_t *row_of = malloc(rows * sizeof *row_of);
    struct array ours = {0};
    struct array theirs = {0};
    bool fits = false;

    (void)fprintf(stream, "  the same values in another order");
    if (rows > 1 && row_of && array_make(&ours, pair->ours) && array_make(&theirs, pair->theirs) &&
        layout_fit_rows(&call, &ours, NULL, &theirs, row_of, &fits) && fits) {
        print_moved(stream, pair, &comparison->rows, row_of);
    }
    (void)fputc('\n', stream);
    array_release(&ours);
    array_release(&theirs);
    free(row_of);
}

void compare_print_remarks(FILE *stream, const struct pair *pair, const struct comparison *comparison)
{
    const struct spread *below = comparison->below;
    const struct spread *above = comparison->above;
    const bool is_float = dtype_is_float(pair->ours->dtype);

    if (comparison->differ == 0) {
        return;
    }
    if (!is_float && comparison->tolerated.count == 0 &&
        below[LOG2_CODE_SHIFT].count + above[LOG2_CODE_SHIFT].count == comparison->differ &&
        below[LOG2_CODE_SHIFT].least >= -CODE_SHIFT && above[LOG2_CODE_SHIFT].most <= CODE_SHIFT) {
        (void)fprintf(stream, "  every difference is %d: one is int8, the other uint8\n", CODE_SHIFT);
    }
    if (is_float && below[0].count + above[0].count + comparison->zeros == comparison->differ) {
        (void)fprintf(stream, "  no difference is more than one unit in the last place\n");
    }
    if (comparison->surplus == 0) {
        print_order(stream, pair, comparison);
    }
}
