/* SPDX-License-Identifier: BSD-3-Clause */
#include "remainder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In very large dumps, elements at most for sums and for sorting. */
enum { MOST_DIFFERING = 1 << 20, MOST_POINTS = 1 << 15 };

struct description {
    const struct call *call;
    const struct variant *variant;
    struct extremes_cache *cache;
    const struct array *expected;
    const struct array *theirs;
};

static bool differs(const struct description *d, enum result result, size_t i)
{
    return !result_is_same(result, array_bits(&d->expected[result], i), array_bits(&d->theirs[result], i));
}

/* The k-th of `taken` places, spread over all places at irregular distances. */
static size_t taken_place(size_t k, size_t taken, size_t all)
{
    const size_t step = all / taken;

    return k * step + ((uint32_t)k * 2654435761U >> 16) % step;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Sorts the numbers. There is at least one. */
static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return numbers[count / 2];
}

/* ---- rows and columns ------------------------------------------------------------------------------------------- */

/* Lines are regular if chance would place them so less often than this. */
static const double least_chance = 0.001;

static size_t greatest_common_divisor(size_t a, size_t b)
{
    while (b > 0) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Takes a period if the lines lie closer together in it than in the present one. */
static void take_period(struct lines *lines, size_t period, size_t from, size_t to)
{
    const size_t width = to - from + 1;
    double chance = (double)period;

    for (size_t i = 1; i < lines->count && chance > least_chance; i++) {
        chance *= (double)width / (double)period;
    }
    if (chance <= least_chance && lines->last - lines->listed[0] >= 2 * period &&
        (lines->period == 0 || width * lines->period < (lines->to - lines->from + 1) * period)) {
        lines->period = period;
        lines->from = from;
        lines->to = to;
    }
}

static struct lines find_lines(const bool *is_hit, size_t of)
{
    enum { LONGEST = 64, SHORTEST = 8 };
    struct lines lines = {.of = of};
    size_t divisor = 0;
    uint64_t hit = 0; /* modulo the longest period */
    bool is_even = true;

    for (size_t at = 0; at < of; at++) {
        if (!is_hit[at]) {
            continue;
        }
        if (lines.count < LISTED) {
            lines.listed[lines.count] = at;
        }
        if (lines.count > 0) {
            is_even = is_even && (lines.count == 1 || lines.step == at - lines.last);
            lines.step = at - lines.last;
            divisor = greatest_common_divisor(at - lines.listed[0], divisor);
        }
        hit |= (uint64_t)1 << at % LONGEST;
        lines.last = at;
        lines.count++;
    }
    if (is_even) {
        return lines;
    }
    lines.step = 0;
    if (divisor > 1) {
        take_period(&lines, divisor, lines.last % divisor, lines.last % divisor);
    }
    for (size_t period = SHORTEST; period <= LONGEST; period *= 2) {
        size_t from = LONGEST;
        size_t to = 0;
        for (size_t at = 0; at < LONGEST; at++) {
            if (hit >> at & 1) {
                from = at % period < from ? at % period : from;
                to = at % period > to ? at % period : to;
            }
        }
        take_period(&lines, period, from, to);
    }
    return lines;
}

/* How many elements of a result are in a row. */
static size_t row_length(const struct call *call, enum result result)
{
    return result == RESULT_Y ? call->columns : call->options.per_tensor ? 1 : call->tokens / call->rows;
}

static bool find_places(const struct description *d, enum result result, struct rest *rest)
{
    const size_t count = call_result_count(d->call, result);
    const size_t columns = row_length(d->call, result);
    const size_t rows = count / columns;
    bool *in_row = calloc(rows + columns, sizeof *in_row);

    if (!in_row) {
        return false;
    }
    bool *in_column = in_row + rows;
    for (size_t i = 0; i < count; i++) {
        if (differs(d, result, i)) {
            rest->elements++;
            in_row[i / columns] = true;
            in_column[i % columns] = true;
        }
    }
    rest->rows = find_lines(in_row, rows);
    rest->columns = find_lines(in_column, columns);
    free(in_row);
    return true;
}

/* Few scattered elements have a tile each: then the report does not mention tiles. */
static bool find_tiles(const struct description *d, const struct rest *y, struct tiles *tiles)
{
    enum { LEAST_PER_TILE = TILE * TILE / 16 };
    const size_t columns = d->call->columns;
    const size_t across = (columns + TILE - 1) / TILE;
    const size_t down = (d->call->rows + TILE - 1) / TILE;
    bool *is_hit = calloc(across * down + across + down, sizeof *is_hit);
    size_t count = 0;
    size_t hit_across = 0;
    size_t hit_down = 0;

    if (!is_hit) {
        return false;
    }
    bool *in_column = is_hit + across * down;
    bool *in_row = in_column + across;
    for (size_t i = 0; i < d->call->count; i++) {
        if (differs(d, RESULT_Y, i)) {
            const size_t row = i / columns / TILE;
            const size_t column = i % columns / TILE;
            is_hit[row * across + column] = in_column[column] = in_row[row] = true;
        }
    }
    for (size_t i = across * down; i-- > 0;) {
        if (is_hit[i]) {
            *tiles = (struct tiles){.row = i / across * TILE, .column = i % across * TILE};
            count++;
        }
    }
    for (size_t i = 0; i < across; i++) {
        hit_across += in_column[i];
    }
    for (size_t i = 0; i < down; i++) {
        hit_down += in_row[i];
    }
    if (2 * count <= hit_across * hit_down && count * LEAST_PER_TILE <= y->elements) {
        tiles->count = count;
        tiles->of = across * down;
    }
    free(is_hit);
    return true;
}

/* ---- the commonest differences ---------------------------------------------------------------------------------- */

/* The number of an element; false for NaN and infinity. */
static bool number_of(const struct array *array, size_t i, double *number)
{
    const uint64_t bits = array_bits(array, i);

    *number = dtype_is_float(array->dtype) ? (double)dtype_float(array->dtype, bits)
                                           : (double)dtype_order(array->dtype, bits);
    return fabs(*number) < (double)INFINITY;
}

/* A differing element: the dump's value, and the expected one. */
struct pair {
    double theirs;
    double expected;
    double steps; /* from expected to theirs, in steps of the type */
};

/* The differing elements, without NaN and infinities. */
struct pairs {
    struct pair *pairs;
    size_t count;
    size_t looked_at;
};

static bool make_pairs(const struct description *d, enum result result, size_t differing, struct pairs *pairs)
{
    const struct array *expected = &d->expected[result];
    const struct array *theirs = &d->theirs[result];
    const size_t every = 1 + (differing - 1) / MOST_DIFFERING;
    size_t seen = 0;

    *pairs = (struct pairs){.pairs = malloc((differing / every + 1) * sizeof *pairs->pairs)};
    for (size_t i = 0; pairs->pairs && i < expected->count; i++) {
        struct pair pair;
        if (!differs(d, result, i) || seen++ % every > 0) {
            continue;
        }
        pairs->looked_at++;
        if (number_of(expected, i, &pair.expected) && number_of(theirs, i, &pair.theirs)) {
            pair.steps = (double)(dtype_order(theirs->dtype, array_bits(theirs, i)) -
                                  dtype_order(expected->dtype, array_bits(expected, i)));
            pairs->pairs[pairs->count++] = pair;
        }
    }
    return pairs->pairs != NULL;
}

/* If fewer elements differ, the user can look at each. Differences of more steps of a float do not come from
 * rounding. */
enum { LEAST_DIFFERENCES = 8, MOST_STEPS = 64 };
static const double least_common = 0.75;

static void find_common(const struct pairs *pairs, npuq_dtype dtype, double *numbers, struct rest *rest)
{
    size_t said = 0;

    if (pairs->looked_at < LEAST_DIFFERENCES) {
        return;
    }
    for (size_t i = 0; i < pairs->count; i++) {
        numbers[i] = pairs->pairs[i].steps;
    }
    qsort(numbers, pairs->count, sizeof *numbers, compare_numbers);
    for (size_t begin = 0, end = 0; begin < pairs->count; begin = end) {
        struct common next = {.steps = (int64_t)numbers[begin]};
        while (end < pairs->count && numbers[end] == numbers[begin]) {
            end++;
        }
        next.count = end - begin;
        for (int k = 0; k < COMMONEST; k++) {
            if (next.count > rest->common[k].count) {
                const struct common other = rest->common[k];
                rest->common[k] = next;
                next = other;
            }
        }
    }
    for (int k = 0; k < COMMONEST; k++) {
        said += rest->common[k].count;
    }
    rest->looked_at = pairs->looked_at;
    if ((double)said < least_common * (double)pairs->looked_at ||
        (dtype_is_float(dtype) && llabs(rest->common[0].steps) > MOST_STEPS)) {
        rest->common[0].count = 0;
    }
}

/* ---- fits ------------------------------------------------------------------------------------------------------- */

/* Whether count is nine tenths or more: then a fit looks like the cause. */
static bool is_most(size_t count, size_t of)
{
    return count * 10 >= of * 9;
}

static double fitted(const struct fit *fit, double x)
{
    return fit->factor * x + fit->addend;
}

/* A few steps of the type at a number: rounded values do not give a factor more exactly. */
static double tolerance(npuq_dtype dtype, double number)
{
    int exponent;

    (void)frexp(number, &exponent);
    return ldexp(dtype == NPUQ_FLOAT32 ? 4 : 2, exponent - 1 - dtype_of(dtype)->fraction);
}

/* Counts the elements that the fit gives. Returns the number given without the fit. */
static size_t count_given(const struct pairs *pairs, npuq_dtype dtype, struct fit *fit)
{
    size_t before = 0;

    fit->of = pairs->looked_at;
    fit->given = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *pair = &pairs->pairs[i];
        const double largest = fmax(fmax(fabs(pair->theirs), fabs(pair->expected)), fabs(fitted(fit, pair->expected)));
        const double near = tolerance(dtype, largest);
        fit->given += fabs(fitted(fit, pair->expected) - pair->theirs) <= near;
        before += fabs(pair->expected - pair->theirs) <= near;
    }
    return before;
}

/* Finds a factor of all differing elements, or an addend. For a single element both would fit. */
static void fit_floats(const struct pairs *pairs, npuq_dtype dtype, bool is_only, double *numbers, struct fit *fit)
{
    for (int adds = 0; adds < 2 && !fit->found && pairs->count > 0; adds++) {
        size_t count = 0;
        for (size_t i = 0; i < pairs->count; i++) {
            const struct pair *pair = &pairs->pairs[i];
            if (adds || pair->expected != 0) {
                numbers[count++] = adds ? pair->theirs - pair->expected : pair->theirs / pair->expected;
            }
        }
        *fit = (struct fit){.factor = 1};
        if (count > 0) {
            *(adds ? &fit->addend : &fit->factor) = median(numbers, count);
        }
        const size_t before = count_given(pairs, dtype, fit);
        fit->found = is_most(fit->given, fit->of) && 2 * before < fit->given && (fit->of > 1 || (is_only && !adds)) &&
                     fit->factor != 0;
    }
}

/* An element of y: its value before rounding, and its integers in the dump and as expected. */
struct point {
    double t;
    double theirs;
    double expected;
};

struct points {
    struct point *points;
    size_t count;
    double low; /* of the type */
    double high;
};

static int compare_points(const void *a, const void *b)
{
    return compare_numbers(&((const struct point *)a)->t, &((const struct point *)b)->t);
}

/* Takes elements from the whole of y that do not saturate in the dump. */
static bool make_points(const struct description *d, struct points *points)
{
    const struct call *call = d->call;
    const size_t taken = call->count < MOST_POINTS ? call->count : MOST_POINTS;
    const struct dtype *rounded = dtype_of(call_rounded_dtype(call->op, call->options.y_dtype));
    const double shift = dtype_of(call->options.y_dtype)->high - rounded->high; /* 128 if uint8 is made of int8 */
    struct predictor p = {.call = call, .variant = d->variant, .cache = d->cache};

    *points = (struct points){malloc((taken + 1) * sizeof *points->points), 0, rounded->low, rounded->high};
    for (size_t k = 0; points->points && k < taken; k++) {
        const size_t i = taken_place(k, taken, call->count);
        struct trace trace = {.unrounded = (double)NAN};
        struct point point;
        (void)predict(&p, RESULT_Y, i, &trace);
        point.t = trace.unrounded;
        if (number_of(&d->theirs[RESULT_Y], i, &point.theirs) &&
            number_of(&d->expected[RESULT_Y], i, &point.expected) && fabs(point.t) < (double)INFINITY &&
            point.theirs - shift > points->low && point.theirs - shift < points->high) {
            point.theirs -= shift;
            point.expected -= shift;
            points->points[points->count++] = point;
        }
    }
    return points->points != NULL;
}

/* Counts the elements that the fit gives. Returns the number that it gives, or misses by one code. */
static size_t count_near(const struct points *points, struct fit *fit)
{
    size_t near = 0;

    fit->of = points->count;
    fit->given = 0;
    fit->before = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->points[i];
        const double code = fmin(fmax(nearbyint(fitted(fit, point->t)), points->low), points->high);
        near += fabs(code - point->theirs) <= 1;
        fit->given += code == point->theirs;
        fit->before += point->expected == point->theirs;
    }
    return near;
}

/* A line through the medians of slopes between points that are far apart. */
static struct fit fit_medians(struct points *points, double *numbers)
{
    const size_t half = points->count / 2;
    struct fit fit = {.factor = 1};
    size_t count = 0;

    qsort(points->points, points->count, sizeof *points->points, compare_points);
    for (size_t i = 0; i < half; i++) {
        const struct point *a = &points->points[i];
        const struct point *b = &points->points[i + half];
        if (b->t > a->t) {
            numbers[count++] = (b->theirs - a->theirs) / (b->t - a->t);
        }
    }
    if (count > 0) {
        fit.factor = median(numbers, count);
    }
    for (size_t i = 0; i < points->count; i++) {
        numbers[i] = points->points[i].theirs - fit.factor * points->points[i].t;
    }
    fit.addend = median(numbers, points->count);
    return fit;
}

/* The least-squares line through the points that the fit misses by one code at most. */
static struct fit fit_squares(const struct points *points, struct fit fit)
{
    double n = 0;
    double t = 0;
    double y = 0;
    double tt = 0;
    double ty = 0;

    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->points[i];
        if (fabs(fitted(&fit, point->t) - point->theirs) <= 1) {
            n += 1;
            t += point->t;
            y += point->theirs;
            tt += point->t * point->t;
            ty += point->t * point->theirs;
        }
    }
    const double spread = n * tt - t * t;
    if (spread > 0) {
        fit.factor = (n * ty - t * y) / spread;
        fit.addend = (y - fit.factor * t) / n;
    }
    return fit;
}

/* The number, rounded to this many significant digits. */
static double shortened(double number, int digits)
{
    if (number == 0) {
        return 0;
    }
    const double unit = pow(10, floor(log10(fabs(number))) - (digits - 1));

    return nearbyint(number / unit) * unit;
}

/* Finds a line that gives most elements. A line does not describe noise, or a mistake that moves some elements by a
 * code. Factor and addend get as few digits as give about as many elements. */
static void fit_integers(struct points *points, double *numbers, struct fit *found)
{
    enum { LEAST_POINTS = 64, LEAST_WRONG = 16, MOST_DIGITS = 5 };
    struct fit fit = {.found = false};
    size_t near = 0;
    size_t least;

    if (points->count < LEAST_POINTS) {
        return;
    }
    const struct fit line = fit_squares(points, fit_squares(points, fit_medians(points, numbers)));
    fit = line;
    (void)count_near(points, &fit);
    least = fit.given - fit.given / 100;
    fit.given = 0;
    for (int k = 0; k < 2 * MOST_DIGITS && fit.given < least; k++) {
        fit.factor = shortened(line.factor, k / 2 + 1);
        fit.addend = k % 2 == 0 ? nearbyint(line.addend) : nearbyint(line.addend * 1000) / 1000;
        near = count_near(points, &fit);
    }
    const size_t wrong = points->count - fit.before;
    if (is_most(near, points->count) && wrong >= LEAST_WRONG && 2 * (points->count - fit.given) <= wrong) {
        *found = fit;
        found->found = true;
    }
}

static bool find_fit(const struct description *d, enum result result, struct rest *rest)
{
    const npuq_dtype dtype = d->expected[result].dtype;
    struct pairs pairs = {0};
    struct points points = {0};
    double *numbers = NULL;
    const bool of_points = result == RESULT_Y && !dtype_is_float(dtype);
    const bool ok = make_pairs(d, result, rest->elements, &pairs) && (!of_points || make_points(d, &points)) &&
                    (numbers = malloc((pairs.count + points.count + 1) * sizeof *numbers)) != NULL;

    if (ok) {
        find_common(&pairs, dtype, numbers, rest);
    }
    if (ok && of_points) {
        fit_integers(&points, numbers, &rest->fit);
    } else if (ok) {
        fit_floats(&pairs, dtype, d->expected[result].count == 1, numbers, &rest->fit);
    }
    free(pairs.pairs);
    free(points.points);
    free(numbers);
    return ok;
}

/* ---- where a scale comes from ----------------------------------------------------------------------------------- */

static bool gives_scale(const struct description *d, double hi, double lo, size_t token)
{
    const struct extremes extremes = {hi, lo, 0, 0};
    const struct token made = steps_token(d->call, d->variant, &extremes, NULL);

    return result_is_same(RESULT_SCALE, steps_parameter(&made, RESULT_SCALE),
                          array_bits(&d->theirs[RESULT_SCALE], token));
}

/* Whether element i as the largest value, or else as the least, gives the token's scale in the dump. */
static bool is_source(const struct description *d, size_t i, size_t token, const struct extremes *right, bool *is_low)
{
    const bool symmetric = d->call->op != DYNAMIC_QUANT_ASYMMETRIC;
    const double v = steps_ranged(d->call, d->variant, i);

    *is_low = !gives_scale(d, symmetric ? fabs(v) : v, right->lo, token);
    return !*is_low || (!symmetric && gives_scale(d, right->hi, v, token));
}

/* Looks in the token first, then in its neighbours in memory. */
static void find_element(const struct description *d, size_t token, struct source *source)
{
    const struct extremes right = steps_extremes(d->call, d->variant, token);
    const struct span own = steps_token_span(d->call, d->variant, token);
    const size_t reach = d->call->token_length;
    const struct span spans[] = {own,
                                 {own.begin - (own.begin < reach ? own.begin : reach),
                                  own.end + (d->call->count - own.end < reach ? d->call->count - own.end : reach), 1}};

    for (int s = 0; s < 2; s++) {
        for (size_t i = spans[s].begin; i < spans[s].end; i++) {
            if (is_source(d, i, token, &right, &source->is_low)) {
                source->has_element = true;
                source->token = token;
                source->element = i;
                return;
            }
        }
    }
}

/* Narrows least and most, numbers of columns at the begin or end of a token: these columns alone give its scale. */
static void narrow(const struct description *d, size_t token, bool from_end, size_t *least, size_t *most)
{
    const bool symmetric = d->call->op != DYNAMIC_QUANT_ASYMMETRIC;
    const struct span span = steps_token_span(d->call, d->variant, token);
    double hi = symmetric ? 0 : -(double)INFINITY;
    double lo = (double)INFINITY;
    bool is_given = false;
    size_t first = 0;
    size_t last = 0;

    for (size_t n = 1; n <= span.end - span.begin; n++) {
        const double v = steps_ranged(d->call, d->variant, from_end ? span.end - n : span.begin + n - 1);
        const double upper = symmetric ? fabs(v) : v;
        if (n == 1 || !(upper <= hi && v >= lo)) {
            hi = upper <= hi ? hi : upper; /* NaN stays */
            lo = v >= lo ? lo : v;
            is_given = gives_scale(d, hi, lo, token);
        }
        if (is_given) {
            first = first == 0 ? n : first;
            last = n;
        }
    }
    *least = first > *least ? first : *least;
    *most = last < *most ? last : *most;
}

/* Finds the first or last columns that alone give all scales, the right ones included. Of several numbers of columns,
 * takes the multiple of the largest power of two. */
static void find_columns(const struct description *d, struct source *source)
{
    const size_t columns = d->call->token_length;

    for (int from_end = 0; from_end < 2 && source->columns.end == 0; from_end++) {
        size_t least = 1;
        size_t most = columns;
        for (size_t token = 0; token < d->call->tokens && least <= most; token++) {
            narrow(d, token, from_end, &least, &most);
        }
        if (least <= most) {
            while ((most & (most - 1)) >= least) {
                most &= most - 1;
            }
            source->columns = from_end ? (struct span){columns - most, columns, 1} : (struct span){0, most, 1};
        }
    }
}

/* Whether each differing scale is the expected one of the token at this distance, if there is that token. */
static bool is_moved(const struct description *d, size_t first, int distance)
{
    const long long count = (long long)d->call->tokens;
    size_t moved = 0;

    for (size_t token = first; token < d->call->tokens; token++) {
        const long long at = (long long)token + distance;
        if (at < 0 || at >= count || !differs(d, RESULT_SCALE, token)) {
            continue;
        }
        if (!result_is_same(RESULT_SCALE, array_bits(&d->theirs[RESULT_SCALE], token),
                            array_bits(&d->expected[RESULT_SCALE], (size_t)at))) {
            return false;
        }
        moved++;
    }
    return moved > 1;
}

/* Finds where the scales come from, unless the mistake changes the extremes or the tokens. */
static void find_source(const struct description *d, struct source *source)
{
    enum { FARTHEST = 64 };
    const size_t count = d->call->tokens;
    size_t first = 0;

    if (d->variant->choice[STEP_RANGE] != AS_DEFINED || d->variant->choice[STEP_BLOCK] != AS_DEFINED) {
        return;
    }
    while (!differs(d, RESULT_SCALE, first)) {
        first++;
    }
    for (int distance = -FARTHEST; distance <= FARTHEST && source->distance == 0; distance++) {
        if (is_moved(d, first, distance)) {
            source->distance = distance;
        }
    }
    if (count > 1 && d->call->op != DYNAMIC_BLOCK_QUANT && source->distance == 0) {
        find_columns(d, source);
    }
    find_element(d, first, source);
}

/* ---- a missing offset -------------------------------------------------------------------------------------------- */

/* The nearest integer offset that gives the dump's element; 0 if there is none. */
static float offset_at(const struct description *d, size_t i)
{
    const struct call *call = d->call;
    double expected;
    double theirs;

    if (!number_of(&d->expected[RESULT_Y], i, &expected) || !number_of(&d->theirs[RESULT_Y], i, &theirs)) {
        return 0;
    }
    const struct array *scale = &call->operands[OPERAND_SCALE];
    const double unit = call->op == ANTI_QUANT
                            ? (double)npuq_ref_load(scale->data, (npuq_ref_dtype)scale->dtype, call_channel(call, i))
                            : 1;
    const double offset = nearbyint((theirs - expected) / unit);

    return fabs(offset) < 0x1p24 ? (float)offset : 0;
}

/* Takes the offset of each channel from its element nearest to the middle of y's range: it saturates least. */
static void find_offsets(const struct description *d, float *offsets, double *least)
{
    const struct dtype *y = dtype_of(d->call->options.y_dtype);
    const double middle = (y->low + y->high) / 2; /* 0 of floats */

    for (size_t channel = 0; channel < d->call->channels; channel++) {
        offsets[channel] = 0;
        least[channel] = (double)INFINITY;
    }
    for (size_t i = 0; i < d->call->count; i++) {
        const size_t channel = call_channel(d->call, i);
        double theirs;
        if (number_of(&d->theirs[RESULT_Y], i, &theirs) && fabs(theirs - middle) < least[channel]) {
            least[channel] = fabs(theirs - middle);
            offsets[channel] = offset_at(d, i);
        }
    }
}

static bool fits_with(const struct description *d, const struct array *offsets)
{
    struct call call = *d->call;
    struct predictor p = {.call = &call, .variant = d->variant};
    bool fits = true;

    call.operands[OPERAND_OFFSET] = *offsets;
    for (size_t i = 0; i < call.count && fits; i++) {
        fits = predict(&p, RESULT_Y, i, NULL) == array_bits(&d->theirs[RESULT_Y], i);
    }
    return fits;
}

/* Tries one offset for all channels first: halves may give another offset in some channels. */
static bool find_missing_offset(const struct description *d, struct missing_offset *missing)
{
    enum { LEAST_PER_CHANNEL = 4 }; /* for fewer elements some offset always fits */
    const size_t channels = d->call->channels;
    float *offsets = malloc(channels * sizeof *offsets);
    double *numbers = malloc(channels * sizeof *numbers);

    if (offsets && numbers) {
        find_offsets(d, offsets, numbers);
        for (size_t i = 0; i < channels; i++) {
            numbers[i] = (double)offsets[i];
        }
        float common = (float)median(numbers, channels);
        if (fits_with(d, &(struct array){&common, NPUQ_FLOAT32, 1})) {
            *missing = (struct missing_offset){1, {common}};
        } else if (d->call->count >= LEAST_PER_CHANNEL * channels &&
                   fits_with(d, &(struct array){offsets, NPUQ_FLOAT32, channels})) {
            missing->count = channels;
            memcpy(missing->values, offsets, (channels < LISTED ? channels : LISTED) * sizeof *offsets);
        }
    }
    const bool ok = offsets && numbers;
    free(offsets);
    free(numbers);
    return ok;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

bool remainder_find(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
                    const struct array expected[RESULTS], const struct array theirs[RESULTS],
                    struct remainder *remainder)
{
    const struct description d = {call, variant, cache, expected, theirs};
    const bool may_lack_offset =
        (call->op & (QUANTIZE | GROUP_QUANT | ANTI_QUANT)) && !call->operands[OPERAND_OFFSET].data;
    bool ok = true;

    *remainder = (struct remainder){0};
    for (int r = 0; r < RESULTS && ok; r++) {
        struct rest *rest = &remainder->of[r];
        const enum result result = (enum result)r;
        if (theirs[r].data && call_result_count(call, result) > 0) {
            ok = find_places(&d, result, rest) &&
                 (rest->elements == 0 || dtype_is_words(expected[r].dtype) || find_fit(&d, result, rest));
        }
    }
    if (ok && remainder->of[RESULT_Y].elements > 0) {
        ok = find_tiles(&d, &remainder->of[RESULT_Y], &remainder->tiles) &&
             (!may_lack_offset || find_missing_offset(&d, &remainder->offset));
    }
    if (ok && remainder->of[RESULT_SCALE].elements > 0) {
        find_source(&d, &remainder->source);
    }
    return ok;
}
