/* SPDX-License-Identifier: BSD-3-Clause */
/* The range of each row. */
#ifndef NPUQ_RANGES_H
#define NPUQ_RANGES_H

#include "chunk.h"

/* Once a range has values of both signs, two of its four extremes say all: the constant mixed_signs halves the work. */
INLINE vchunk load_to_compare(npuq_type type, const char *x, const float *smooth, size_t at, size_t n, bool tail)
{
    const vchunk v = load_x(type, x + count_bytes(type, at), n, tail);

    return smooth ? chunk_mul(v, load_parameters(smooth + at, n, tail)) : v;
}

INLINE vrange find_chunk_range(npuq_type type, const char *x, const float *smooth, size_t at, size_t n, bool tail,
                               bool mixed_signs)
{
    const vchunk v = load_to_compare(type, x, smooth, at, n, tail);

    return vrange_join(vrange_join(vrange_of(v.v[0]), vrange_of(v.v[1]), mixed_signs),
                       vrange_join(vrange_of(v.v[2]), vrange_of(v.v[3]), mixed_signs), mixed_signs);
}

/* Of values without a sign, the largest and the smallest pattern as signed integers say all. If one has a sign, the
 * smallest shows it. */
INLINE vrange find_range_without_sign(npuq_type type, const char *x, const float *smooth, size_t n)
{
    vf upper = load_to_compare(type, x, smooth, 0, CHUNK, false).v[0];
    vf lower = upper;

    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        const vchunk v = load_to_compare(type, x, smooth, at, CHUNK, false);

        upper = v_upper(upper, v_upper(v_upper(v.v[0], v.v[1]), v_upper(v.v[2], v.v[3])));
        lower = v_lower(lower, v_lower(v_lower(v.v[0], v.v[1]), v_lower(v.v[2], v.v[3])));
    }
    return vrange_join(vrange_of(upper), vrange_of(lower), false);
}

INLINE row_range find_range_on(npuq_type type, const char *x, const float *smooth, size_t n, npuq_hints hints,
                               vrange range, bool mixed_signs)
{
#ifdef FLOAT_RANGES /* a header has them where they are faster */
    if (mixed_signs && !smooth) {
        frange floats = frange_of_mixed_signs();
        for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
            if (hints.prefetch_bytes) {
                prefetch_lines(x + count_bytes(type, at) + hints.prefetch_bytes, count_bytes(type, CHUNK), hints.to_l2);
            }
            floats = frange_with(floats, load_x(type, x + count_bytes(type, at), CHUNK, false));
        }
        if (frange_is_exact(floats)) {
            return vrange_reduce(vrange_join(range, vrange_of_floats(floats), mixed_signs), mixed_signs);
        }
    }
#endif
    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        if (hints.prefetch_bytes) {
            prefetch_lines(x + count_bytes(type, at) + hints.prefetch_bytes, count_bytes(type, CHUNK), hints.to_l2);
        }
        range = vrange_join(range, find_chunk_range(type, x, smooth, at, CHUNK, false, mixed_signs), mixed_signs);
    }
    return vrange_reduce(range, mixed_signs);
}

INLINE row_range find_range_of_row(npuq_type type, const char *x, const float *smooth, size_t n, npuq_hints hints)
{
    const size_t tail = n % CHUNK;
    vrange range = tail > 0 ? find_chunk_range(type, x, smooth, n - tail, tail, true, false)
                            : find_chunk_range(type, x, smooth, 0, CHUNK, false, false);

    /* A row from memory is not read twice; of a few chunks, it does not pay. */
    if (!hints.from_memory && n >= 8 * CHUNK && vrange_reduce(range, false).lo >= 0) {
        range = vrange_join(range, find_range_without_sign(type, x, smooth, n), false);
        const row_range all = vrange_reduce(range, false);

        if (all.lo >= 0) {
            return all;
        }
    }
    return vrange_has_mixed_signs(range) ? find_range_on(type, x, smooth, n, hints, range, true)
                                         : find_range_on(type, x, smooth, n, hints, range, false);
}

_Static_assert(LANES >= 4, "a vector holds the four extremes");

/* Halves order as their patterns do before they are widened, and twice as many fit a vector. */
INLINE hrange find_chunk_hrange(hchunk v, bool mixed_signs)
{
    return hrange_join(hrange_of(v.v[0]), hrange_of(v.v[1]), mixed_signs);
}

INLINE row_range find_hrange_on(npuq_type type, const char *x, size_t n, npuq_hints hints, hrange range,
                                bool mixed_signs)
{
    uint16_t extremes[CHUNK] = {0};
    int32_t bits[LANES];
    size_t at = 0;

    for (; at + 2 * CHUNK <= n; at += 2 * CHUNK) { /* two: each maximum waits for the one before */
        const char *p = x + count_bytes(type, at);
        const hrange a = find_chunk_hrange(chunk_load_halves(p), mixed_signs);
        const hrange b = find_chunk_hrange(chunk_load_halves(p + count_bytes(type, CHUNK)), mixed_signs);

        if (hints.prefetch_bytes) {
            prefetch_lines(p + hints.prefetch_bytes, count_bytes(type, 2 * CHUNK), hints.to_l2);
        }
        range = hrange_join(range, hrange_join(a, b, mixed_signs), mixed_signs);
    }
    if (at + CHUNK <= n) {
        range = hrange_join(range, find_chunk_hrange(chunk_load_halves(x + count_bytes(type, at)), mixed_signs),
                            mixed_signs);
    }
    hrange_reduce(range, extremes);
    const vchunk wide = load_x(type, (const char *)extremes, CHUNK, false);
    memcpy(bits, &wide.v[0], sizeof bits);
    return mixed_signs ? make_mixed_row_range(bits[0], bits[1]) : make_row_range(bits[0], bits[1], bits[2], bits[3]);
}

INLINE row_range find_hrange_of_row(npuq_type type, const char *x, size_t n, npuq_hints hints)
{
    const size_t tail = n % CHUNK;
    const hchunk first =
        tail > 0 ? chunk_load_tail_halves(x + count_bytes(type, n - tail), tail) : chunk_load_halves(x);
    const hrange range = find_chunk_hrange(first, false);

    return hrange_has_mixed_signs(range) ? find_hrange_on(type, x, n, hints, range, true)
                                         : find_hrange_on(type, x, n, hints, range, false);
}

FOR_TYPES void find_ranges(npuq_type type, const npuq_block *b, const float *smooth, float *hi, float *lo)
{
    assume(npuq_is_float(type));
    for (size_t r = 0; r < b->rows && b->n > 0; r++) {
        const char *x = (const char *)b->x + (ptrdiff_t)r * b->x_stride;
        const row_range range = count_bytes(type, 1) != 2 || smooth ? find_range_of_row(type, x, smooth, b->n, b->hints)
                                                                    : find_hrange_of_row(type, x, b->n, b->hints);
        widen_row_range(range, &hi[r], &lo[r]);
    }
}

#define RANGE(NAME, X)                                                                                                 \
    static void NPUQ_KERNEL(find, range_from_##NAME)(const npuq_block *b, const float *smooth, float *hi, float *lo)   \
    {                                                                                                                  \
        assert(npuq_is_valid_range(b, NPUQ_TYPE_##X, smooth, hi, lo));                                                 \
        if (smooth) {                                                                                                  \
            find_ranges(NPUQ_TYPE_##X, b, smooth, hi, lo);                                                             \
        } else {                                                                                                       \
            find_ranges(NPUQ_TYPE_##X, b, NULL, hi, lo);                                                               \
        }                                                                                                              \
    }

NPUQ_EACH_RANGE(RANGE)

#endif
