/* SPDX-License-Identifier: BSD-3-Clause */
/* The range of each row. */
#ifndef NPUQ_RANGES_H
#define NPUQ_RANGES_H

#include "chunk.h"

/* Once values of both signs are in a range, two of its four extremes say all; so `both`, a constant, halves the work.
 */

INLINE vchunk load_to_compare(npuq_x_type x_type, const char *x, const float *smooth, size_t at, size_t n, bool part)
{
    const vchunk v = load_x(x_type, x + count_x_bytes(x_type, at), n, part);

    return smooth ? chunk_mul(v, load_parameters(smooth + at, n, part)) : v;
}

INLINE vrange find_chunk_range(npuq_x_type x_type, const char *x, const float *smooth, size_t at, size_t n, bool part,
                               bool both)
{
    const vchunk v = load_to_compare(x_type, x, smooth, at, n, part);

    return vrange_join(vrange_join(vrange_of(v.v[0]), vrange_of(v.v[1]), both),
                       vrange_join(vrange_of(v.v[2]), vrange_of(v.v[3]), both), both);
}

/* Of values without a sign, the largest and the smallest pattern as signed integers say all. If one has a sign, the
 * smallest shows it. */
INLINE vrange find_range_without_sign(npuq_x_type x_type, const char *x, const float *smooth, size_t n)
{
    vf upper = load_to_compare(x_type, x, smooth, 0, CHUNK, false).v[0];
    vf lower = upper;

    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        const vchunk v = load_to_compare(x_type, x, smooth, at, CHUNK, false);

        upper = v_upper(upper, v_upper(v_upper(v.v[0], v.v[1]), v_upper(v.v[2], v.v[3])));
        lower = v_lower(lower, v_lower(v_lower(v.v[0], v.v[1]), v_lower(v.v[2], v.v[3])));
    }
    return vrange_join(vrange_of(upper), vrange_of(lower), false);
}

INLINE row_range find_range_on(npuq_x_type x_type, const char *x, const float *smooth, size_t n, npuq_hints hints,
                               vrange range, bool both)
{
#ifdef FLOAT_RANGES /* a header has them where they are faster */
    if (both && !smooth) {
        frange floats = frange_of_both();
        for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
            if (hints.ahead) {
                prefetch_lines(x + count_x_bytes(x_type, at) + hints.ahead, count_x_bytes(x_type, CHUNK), hints.to_l2);
            }
            floats = frange_with(floats, load_x(x_type, x + count_x_bytes(x_type, at), CHUNK, false));
        }
        if (frange_is_certain(floats)) {
            return vrange_reduce(vrange_join(range, vrange_of_floats(floats), both), both);
        }
    }
#endif
    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        if (hints.ahead) {
            prefetch_lines(x + count_x_bytes(x_type, at) + hints.ahead, count_x_bytes(x_type, CHUNK), hints.to_l2);
        }
        range = vrange_join(range, find_chunk_range(x_type, x, smooth, at, CHUNK, false, both), both);
    }
    return vrange_reduce(range, both);
}

INLINE row_range find_range_of_row(npuq_x_type x_type, const char *x, const float *smooth, size_t n, npuq_hints hints)
{
    const size_t tail = n % CHUNK;
    vrange range = tail > 0 ? find_chunk_range(x_type, x, smooth, n - tail, tail, true, false)
                            : find_chunk_range(x_type, x, smooth, 0, CHUNK, false, false);

    /* A row from memory is not read twice; of a few chunks, it does not pay. */
    if (!hints.from_memory && n >= 8 * CHUNK && vrange_reduce(range, false).lo >= 0) {
        range = vrange_join(range, find_range_without_sign(x_type, x, smooth, n), false);
        const row_range all = vrange_reduce(range, false);

        if (all.lo >= 0) {
            return all;
        }
    }
    return vrange_both(range) ? find_range_on(x_type, x, smooth, n, hints, range, true)
                              : find_range_on(x_type, x, smooth, n, hints, range, false);
}

_Static_assert(LANES >= 4, "a vector holds the four extremes");

/* Halves order as their patterns do before they are widened, and twice as many fit a vector. */

INLINE hrange find_chunk_hrange(hchunk v, bool both)
{
    return hrange_join(hrange_of(v.v[0]), hrange_of(v.v[1]), both);
}

INLINE row_range find_hrange_on(npuq_x_type x_type, const char *x, size_t n, npuq_hints hints, hrange range, bool both)
{
    uint16_t extremes[CHUNK] = {0};
    int32_t bits[LANES];
    size_t at = 0;

    for (; at + 2 * CHUNK <= n; at += 2 * CHUNK) { /* two: each maximum waits for the one before */
        const char *p = x + count_x_bytes(x_type, at);
        const hrange a = find_chunk_hrange(chunk_load_halves(p), both);
        const hrange b = find_chunk_hrange(chunk_load_halves(p + count_x_bytes(x_type, CHUNK)), both);

        if (hints.ahead) {
            prefetch_lines(p + hints.ahead, count_x_bytes(x_type, 2 * CHUNK), hints.to_l2);
        }
        range = hrange_join(range, hrange_join(a, b, both), both);
    }
    if (at + CHUNK <= n) {
        range = hrange_join(range, find_chunk_hrange(chunk_load_halves(x + count_x_bytes(x_type, at)), both), both);
    }
    hrange_reduce(range, extremes);
    const vchunk wide = load_x(x_type, (const char *)extremes, CHUNK, false);
    memcpy(bits, &wide.v[0], sizeof bits);
    return both ? make_row_range_of_both(bits[0], bits[1]) : make_row_range(bits[0], bits[1], bits[2], bits[3]);
}

INLINE row_range find_hrange_of_row(npuq_x_type x_type, const char *x, size_t n, npuq_hints hints)
{
    const size_t tail = n % CHUNK;
    const hchunk first =
        tail > 0 ? chunk_load_part_halves(x + count_x_bytes(x_type, n - tail), tail) : chunk_load_halves(x);
    const hrange range = find_chunk_hrange(first, false);

    return hrange_both(range) ? find_hrange_on(x_type, x, n, hints, range, true)
                              : find_hrange_on(x_type, x, n, hints, range, false);
}

FOR_TYPES void find_ranges(npuq_x_type x_type, const npuq_block *b, const float *smooth, float *hi, float *lo)
{
    assume(x_type < NPUQ_X_FLOATS);
    for (size_t r = 0; r < b->rows && b->n > 0; r++) {
        const char *x = (const char *)b->x + (ptrdiff_t)r * b->x_step;
        const row_range range = count_x_bytes(x_type, 1) != 2 || smooth
                                    ? find_range_of_row(x_type, x, smooth, b->n, b->hints)
                                    : find_hrange_of_row(x_type, x, b->n, b->hints);
        widen_row_range(range, &hi[r], &lo[r]);
    }
}

#define RANGE(NAME, X)                                                                                                 \
    static void range_##NAME(const npuq_block *b, const float *smooth, float *hi, float *lo)                           \
    {                                                                                                                  \
        assert(npuq_is_valid_range(b, NPUQ_X_##X, smooth, hi, lo));                                                    \
        if (smooth) {                                                                                                  \
            find_ranges(NPUQ_X_##X, b, smooth, hi, lo);                                                                \
        } else {                                                                                                       \
            find_ranges(NPUQ_X_##X, b, NULL, hi, lo);                                                                  \
        }                                                                                                              \
    }

NPUQ_EACH_RANGE(RANGE)

#endif
