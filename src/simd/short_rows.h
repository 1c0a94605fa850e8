/* SPDX-License-Identifier: BSD-3-Clause */
/* Short rows of dynamic quantisation, and what ranges make of parameters. */
#ifndef NPUQ_SHORT_ROWS_H
#define NPUQ_SHORT_ROWS_H

#include "chunk.h"

INLINE bool is_nan(float v)
{
    return v != v;
}

_Static_assert(NPUQ_LANES % LANES == 0, "arrays have room for whole vectors");
_Static_assert((LANES & (LANES - 1)) == 0, "vectors are folded by halves");

/* The extremes of ordered patterns: a vector of them, or of neighbours, takes the place of a reduction for each row. */
typedef struct extremes {
    float upper[NPUQ_SHORT_ROWS * LANES + 2 * LANES];
    float lower[NPUQ_SHORT_ROWS * LANES + 2 * LANES];
} extremes;

/* Folds each row's columns to `width`, a power of two up to n; parts of a row overlap at its end. Values beyond a part
 * mean nothing, and the next row overwrites them. */
INLINE void fold_columns(extremes *e, const float *values, size_t n, size_t count, size_t width)
{
    for (size_t r = 0; r < count; r++) {
        const float *row = values + r * n;
        vf upper = v_ordered(v_load(row));
        vf lower = upper;

        for (size_t at = width; at < n; at += width) {
            const vf v = v_ordered(v_load(row + (at + width <= n ? at : n - width)));
            upper = v_upper(upper, v);
            lower = v_lower(lower, v);
        }
        memcpy(e->upper + r * width, &upper, sizeof upper);
        memcpy(e->lower + r * width, &lower, sizeof lower);
    }
}

INLINE void fold_neighbours(extremes *e, size_t count)
{
    for (size_t i = 0; i < count; i += LANES) {
        const vf a = v_load(e->upper + 2 * i);
        const vf b = v_load(e->upper + 2 * i + LANES);
        const vf c = v_load(e->lower + 2 * i);
        const vf d = v_load(e->lower + 2 * i + LANES);
        const vf upper = v_upper(v_even(a, b), v_odd(a, b));
        const vf lower = v_lower(v_even(c, d), v_odd(c, d));

        memcpy(e->upper + i, &upper, sizeof upper);
        memcpy(e->lower + i, &lower, sizeof lower);
    }
}

static void NPUQ_KERNEL(find, short_ranges)(float *values, const float *smooth, size_t n, size_t count, float *hi,
                                            float *lo)
{
    size_t width = LANES;
    extremes e;

    assert(npuq_are_valid_short_rows(values, smooth, n, count, hi, lo));
    for (size_t at = 0; at < count * n && smooth; at += LANES) {
        const vf v = multiply_unfused(v_load(values + at), v_load(smooth + at));
        memcpy(values + at, &v, sizeof v);
    }
    while (width > n) {
        width /= 2;
    }
    const bool one_run = width == n; /* nothing overlaps: taken as rows of whole vectors */
    fold_columns(&e, values, one_run ? LANES : n, one_run ? (count * n + LANES - 1) / LANES : count,
                 one_run ? LANES : width);
    for (; width > 1; width /= 2) {
        fold_neighbours(&e, count * width / 2);
    }
    for (size_t r = 0; r < count; r += LANES) {
        const vf upper = v_ordered(v_load(e.upper + r));
        const vf lower = v_ordered(v_load(e.lower + r));

        memcpy(hi + r, &upper, sizeof upper);
        memcpy(lo + r, &lower, sizeof lower);
    }
    for (size_t r = 0; r < count; r++) {
        if (is_nan(hi[r]) || is_nan(lo[r])) {
            hi[r] = lo[r] = restore_float(0x7FC00000);
        }
    }
}

INLINE float float_above(float a, float b)
{
    return a > b ? a : b;
}

INLINE float float_upper(float a, float b)
{
    int32_t a_bits;
    int32_t b_bits;

    memcpy(&a_bits, &a, sizeof a_bits);
    memcpy(&b_bits, &b, sizeof b_bits);
    return a_bits > b_bits ? a : b;
}

/* As npuq_ref_range_parameters() and its like, for a float or a vector of floats: the one row of a small call would
 * wait longer for vectors. Of two magnitudes, the larger pattern is the largest, or NaN. to[0] is the scale, to[1] the
 * offset, to[2] the factor of x. Every result goes to an object: C allows an expression to be wider than float, and on
 * s390x it is. */
#define PARAMETERS(NAME, TYPE, SET, ABOVE, UPPER, MAGNITUDE)                                                           \
    INLINE void NAME(npuq_dynamic_form form, npuq_limits limits, TYPE hi, TYPE lo, TYPE to[3])                         \
    {                                                                                                                  \
        const TYPE dmax = SET(limits.dmax);                                                                            \
                                                                                                                       \
        if (form == NPUQ_ASYMMETRIC) {                                                                                 \
            const TYPE distance = hi - lo;                                                                             \
            const TYPE scale = distance / SET(limits.steps);                                                           \
            to[0] = ABOVE(scale, SET(0x1.197998p-40f));                                                                \
            const TYPE highest = hi / to[0];                                                                           \
            to[1] = dmax - highest;                                                                                    \
            to[2] = SET(1.0f) / to[0];                                                                                 \
        } else {                                                                                                       \
            const TYPE largest = UPPER(MAGNITUDE(hi), MAGNITUDE(lo));                                                  \
            if (form == NPUQ_SYMMETRIC_BLOCK) {                                                                        \
                const TYPE inverse = SET(1.0f) / largest;                                                              \
                to[2] = inverse * dmax;                                                                                \
            } else {                                                                                                   \
                to[2] = dmax / largest;                                                                                \
            }                                                                                                          \
            to[1] = SET(0.0f);                                                                                         \
            if (form == NPUQ_SYMMETRIC_INVERSE) {                                                                      \
                to[0] = SET(1.0f) / to[2];                                                                             \
            } else {                                                                                                   \
                to[0] = largest * SET(limits.one_in_dmax);                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

PARAMETERS(compute_parameters_of_float, float, , float_above, float_upper, __builtin_fabsf)
PARAMETERS(compute_parameters_of_vector, vf, v_set, v_above, v_upper, v_magnitude)

static void NPUQ_KERNEL(compute, scales)(npuq_dynamic_form form, npuq_type y, const float *hi, const float *lo,
                                         size_t n, float *scale, float *offset, float *inverse_scale)
{
    const npuq_limits limits = npuq_limits_of(y);

    assert(npuq_are_valid_parameters(form, y, hi, lo, scale, offset, inverse_scale));
    if (n == 1) {
        float one[3];

        compute_parameters_of_float(form, limits, *hi, *lo, one);
        *scale = one[0];
        *offset = one[1];
        *inverse_scale = one[2];
        return;
    }
    for (size_t r = 0; r < n; r += LANES) {
        vf several[3];

        compute_parameters_of_vector(form, limits, v_load(hi + r), v_load(lo + r), several);
        memcpy(scale + r, &several[0], sizeof several[0]);
        memcpy(offset + r, &several[1], sizeof several[1]);
        memcpy(inverse_scale + r, &several[2], sizeof several[2]);
    }
}

#endif
