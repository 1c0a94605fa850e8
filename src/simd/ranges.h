/* SPDX-License-Identifier: BSD-3-Clause */
/* The range of each row. */
#ifndef NPUQ_RANGES_H
#define NPUQ_RANGES_H

#include "chunk.h"

/* Once values of both signs are in a range, two of its four extremes say all; so `both`, a constant, halves the work.
 */

INLINE vchunk chunk_to_compare(npuq_x_type x_type, const char *x, const float *smooth, size_t at, size_t n, bool part)
{
    const vchunk v = load_x(x_type, x + x_bytes(x_type, at), n, part);

    return smooth ? chunk_mul(v, load_parameters(smooth + at, n, part)) : v;
}

INLINE vrange chunk_range(npuq_x_type x_type, const char *x, const float *smooth, size_t at, size_t n, bool part,
                          bool both)
{
    const vchunk v = chunk_to_compare(x_type, x, smooth, at, n, part);

    return vrange_join(vrange_join(vrange_of(v.v[0]), vrange_of(v.v[1]), both),
                       vrange_join(vrange_of(v.v[2]), vrange_of(v.v[3]), both), both);
}

/* Of values without a sign, the largest and the smallest pattern as signed integers say all. If one has a sign, the
 * smallest shows it. */
INLINE vrange range_without_sign(npuq_x_type x_type, const char *x, const float *smooth, size_t n)
{
    vf upper = chunk_to_compare(x_type, x, smooth, 0, CHUNK, false).v[0];
    vf lower = upper;

    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        const vchunk v = chunk_to_compare(x_type, x, smooth, at, CHUNK, false);

        upper = v_upper(upper, v_upper(v_upper(v.v[0], v.v[1]), v_upper(v.v[2], v.v[3])));
        lower = v_lower(lower, v_lower(v_lower(v.v[0], v.v[1]), v_lower(v.v[2], v.v[3])));
    }
    return vrange_join(vrange_of(upper), vrange_of(lower), false);
}

INLINE row_range range_on(npuq_x_type x_type, const char *x, const float *smooth, size_t n, size_t ahead, vrange range,
                          bool both)
{
#ifdef FLOAT_RANGES /* a header has them where they are faster */
    if (both && !smooth) {
        frange floats = frange_of_both();
        for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
            if (ahead) {
                prefetch(x + x_bytes(x_type, at) + ahead, x_bytes(x_type, CHUNK));
            }
            floats = frange_with(floats, load_x(x_type, x + x_bytes(x_type, at), CHUNK, false));
        }
        if (frange_is_certain(floats)) {
            return vrange_reduce(vrange_join(range, vrange_of_floats(floats), both), both);
        }
    }
#endif
    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        if (ahead) {
            prefetch(x + x_bytes(x_type, at) + ahead, x_bytes(x_type, CHUNK));
        }
        range = vrange_join(range, chunk_range(x_type, x, smooth, at, CHUNK, false, both), both);
    }
    return vrange_reduce(range, both);
}

INLINE row_range range_of_row(npuq_x_type x_type, const char *x, const float *smooth, size_t n, size_t ahead)
{
    const size_t tail = n % CHUNK;
    vrange range = tail > 0 ? chunk_range(x_type, x, smooth, n - tail, tail, true, false)
                            : chunk_range(x_type, x, smooth, 0, CHUNK, false, false);

    /* A row from memory is not read twice; of a few chunks, it does not pay. */
    if (!ahead && n >= 8 * CHUNK && vrange_reduce(range, false).lo >= 0) {
        range = vrange_join(range, range_without_sign(x_type, x, smooth, n), false);
        const row_range all = vrange_reduce(range, false);

        if (all.lo >= 0) {
            return all;
        }
    }
    return vrange_both(range) ? range_on(x_type, x, smooth, n, ahead, range, true)
                              : range_on(x_type, x, smooth, n, ahead, range, false);
}

_Static_assert(LANES >= 4, "a vector holds the four extremes");

/* Halves order as their patterns do before they are widened, and twice as many fit a vector. */

INLINE hrange chunk_hrange(hchunk v, bool both)
{
    return hrange_join(hrange_of(v.v[0]), hrange_of(v.v[1]), both);
}

INLINE row_range hrange_on(npuq_x_type x_type, const char *x, size_t n, size_t ahead, hrange range, bool both)
{
    uint16_t extremes[CHUNK] = {0};
    int32_t bits[LANES];
    size_t at = 0;

    for (; at + 2 * CHUNK <= n; at += 2 * CHUNK) { /* two: each maximum waits for the one before */
        const char *p = x + x_bytes(x_type, at);
        const hrange a = chunk_hrange(chunk_load_halves(p), both);
        const hrange b = chunk_hrange(chunk_load_halves(p + x_bytes(x_type, CHUNK)), both);

        if (ahead) {
            prefetch(p + ahead, x_bytes(x_type, 2 * CHUNK));
        }
        range = hrange_join(range, hrange_join(a, b, both), both);
    }
    if (at + CHUNK <= n) {
        range = hrange_join(range, chunk_hrange(chunk_load_halves(x + x_bytes(x_type, at)), both), both);
    }
    hrange_reduce(range, extremes);
    const vchunk wide = load_x(x_type, (const char *)extremes, CHUNK, false);
    memcpy(bits, &wide.v[0], sizeof bits);
    return both ? row_range_of_both(bits[0], bits[1]) : row_range_of(bits[0], bits[1], bits[2], bits[3]);
}

INLINE row_range hrange_of_row(npuq_x_type x_type, const char *x, size_t n, size_t ahead)
{
    const size_t tail = n % CHUNK;
    const hchunk first = tail > 0 ? chunk_load_part_halves(x + x_bytes(x_type, n - tail), tail) : chunk_load_halves(x);
    const hrange range = chunk_hrange(first, false);

    return hrange_both(range) ? hrange_on(x_type, x, n, ahead, range, true)
                              : hrange_on(x_type, x, n, ahead, range, false);
}

FOR_TYPES void range_rows(npuq_x_type x_type, const npuq_block *b, const float *smooth, float *hi, float *lo)
{
    assume(x_type < NPUQ_X_FLOATS);
    for (size_t r = 0; r < b->rows && b->n > 0; r++) {
        const char *x = (const char *)b->x + (ptrdiff_t)r * b->x_step;
        const row_range range = x_bytes(x_type, 1) != 2 || smooth ? range_of_row(x_type, x, smooth, b->n, b->ahead)
                                                                  : hrange_of_row(x_type, x, b->n, b->ahead);
        row_range_widen(range, &hi[r], &lo[r]);
    }
}

#define RANGE(NAME, X)                                                                                                 \
    static void range_##NAME(const npuq_block *b, const float *smooth, float *hi, float *lo)                           \
    {                                                                                                                  \
        assert(npuq_is_valid_range(b, NPUQ_X_##X, smooth, hi, lo));                                                    \
        if (smooth) {                                                                                                  \
            range_rows(NPUQ_X_##X, b, smooth, hi, lo);                                                                 \
        } else {                                                                                                       \
            range_rows(NPUQ_X_##X, b, NULL, hi, lo);                                                                   \
        }                                                                                                              \
    }

NPUQ_EACH_RANGE(RANGE)

#endif
