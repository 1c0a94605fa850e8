/* SPDX-License-Identifier: BSD-3-Clause */
#include "remainder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct description {
    const struct call *call;
    const struct variant *variant;
    const struct array *expected;
    const struct array *theirs;
};

/* Finds the first element that differs. False if there is none. */
static bool find_first(const struct description *d, enum result result, size_t *i)
{
    const size_t count = d->theirs[result].data ? call_result_count(d->call, result) : 0;

    *i = 0;
    while (*i < count &&
           result_is_same(result, array_bits(&d->expected[result], *i), array_bits(&d->theirs[result], *i))) {
        ++*i;
    }
    return *i < count;
}

/* ---- values before rounding -------------------------------------------------------------------------------------- */

/* Takes elements spread over all of y at irregular distances. */
static bool make_points(const struct description *d, struct extremes_cache *cache, struct remainder *remainder)
{
    enum { MOST_POINTS = 1 << 15 };
    const struct call *call = d->call;
    const size_t taken = call->count < MOST_POINTS ? call->count : MOST_POINTS;
    const size_t step = call->count / taken;
    struct predictor p = {.call = call, .variant = d->variant, .cache = cache};

    remainder->points = malloc(taken * sizeof *remainder->points);
    for (size_t k = 0; remainder->points && k < taken; k++) {
        const size_t i = k * step + ((uint32_t)k * 2654435761U >> 16) % step;
        struct trace trace = {.unrounded = (double)NAN};
        (void)predict(&p, RESULT_Y, i, &trace);
        remainder->points[remainder->point_count++] = (struct point){i, trace.unrounded};
    }
    return remainder->points != NULL;
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

/* Finds where the scales come from, unless the mistake changes the extremes or the tokens. */
static void find_source(const struct description *d, size_t first, struct source *source)
{
    if (d->variant->choice[STEP_RANGE] != AS_DEFINED || d->variant->choice[STEP_BLOCK] != AS_DEFINED) {
        return;
    }
    if (d->call->tokens > 1 && d->call->op != DYNAMIC_BLOCK_QUANT) {
        find_columns(d, source);
    }
    find_element(d, first, source);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

bool remainder_find(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
                    const struct array expected[RESULTS], const struct array theirs[RESULTS],
                    struct remainder *remainder)
{
    const struct description d = {call, variant, expected, theirs};
    size_t first;
    bool ok = true;

    if (find_first(&d, RESULT_Y, &first)) {
        const enum dtype_kind kind = dtype_of(call->options.y_dtype)->kind;
        ok = (kind != KIND_SIGNED && kind != KIND_UNSIGNED) || make_points(&d, cache, remainder);
    }
    if (find_first(&d, RESULT_SCALE, &first)) {
        find_source(&d, first, &remainder->source);
    }
    return ok;
}

void remainder_release(struct remainder *remainder)
{
    for (int r = 0; r < RESULTS; r++) {
        array_release(&remainder->expected[r]);
    }
    free(remainder->points);
}
