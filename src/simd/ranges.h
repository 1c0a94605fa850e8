/* SPDX-License-Identifier: BSD-3-Clause */
/* The range of each row. */
#ifndef NPUQ_RANGES_H
#define NPUQ_RANGES_H

#include "chunk.h"

/* Once a range has values of both signs, two of its four extremes say all: the constant mixed_signs halves the work. */
INLINE vchunk load_to_compare(npuq_type type, const char *x, column_scales smooth, size_t at, size_t n, bool tail)
{
    /* Of the orders, unpack order is the cheapest for bfloat16. */
    const bool any_order = are_halves(smooth) && type == NPUQ_TYPE_BFLOAT16 && !tail;
    const vchunk v = load_x_in_order(type, x + count_bytes(type, at), n, tail, any_order);

    return smooth.data ? chunk_mul(v, load_columns(smooth, at, n, tail, any_order)) : v;
}

INLINE vrange find_chunk_range(npuq_type type, const char *x, column_scales smooth, size_t at, size_t n, bool tail,
                               bool mixed_signs)
{
    const vchunk v = load_to_compare(type, x, smooth, at, n, tail);

    return vrange_join(vrange_join(vrange_of(v.v[0]), vrange_of(v.v[1]), mixed_signs),
                       vrange_join(vrange_of(v.v[2]), vrange_of(v.v[3]), mixed_signs), mixed_signs);
}

/* If no value has a sign, the largest and the smallest pattern as signed integers are the range. If one has, the
 * smallest shows it. */
INLINE vrange find_range_without_sign(npuq_type type, const char *x, column_scales smooth, size_t n)
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

INLINE row_range find_range_on(npuq_type type, const char *x, column_scales smooth, size_t n, npuq_hints hints,
                               vrange range, bool mixed_signs)
{
#ifdef FLOAT_RANGES /* a header has them where they are faster */
    if (mixed_signs && !smooth.data) {
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

INLINE row_range find_range_of_row(npuq_type type, const char *x, column_scales smooth, size_t n, npuq_hints hints)
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

FOR_TYPES void widen_ranges(npuq_type type, const npuq_block *b, column_scales smooth, const npuq_range_params *p)
{
    float *hi = p->hi + b->first_row;
    float *lo = p->lo + b->first_row;

    assume(npuq_is_float(type));
    for (size_t r = 0; r < b->rows && b->n > 0; r++) {
        const char *x = (const char *)b->x + (ptrdiff_t)r * b->x_stride;
        const char *of_row = smooth.data;

        if (of_row && p->smooth_offsets) {
            of_row += p->smooth_offsets[b->first_row + r];
        }
        const row_range range = count_bytes(type, 1) != 2 || smooth.data
                                    ? find_range_of_row(type, x, (column_scales){of_row, smooth.type}, b->n, b->hints)
                                    : find_hrange_of_row(type, x, b->n, b->hints);
        widen_row_range(range, &hi[r], &lo[r]);
    }
}

#define RANGE(NAME, X)                                                                                                 \
    static void NPUQ_KERNEL(find, range_from_##NAME)(const npuq_block *b, const void *params)                          \
    {                                                                                                                  \
        const npuq_range_params *p = params;                                                                           \
                                                                                                                       \
        assert(npuq_is_valid_range(b, NPUQ_TYPE_##X, p));                                                              \
        if (p->smooth) {                                                                                               \
            widen_ranges(NPUQ_TYPE_##X, b,                                                                             \
                         (column_scales){p->smooth, p->half_columns ? NPUQ_TYPE_##X : NPUQ_TYPE_FLOAT32}, p);          \
        } else {                                                                                                       \
            widen_ranges(NPUQ_TYPE_##X, b, (column_scales){NULL, NPUQ_TYPE_FLOAT32}, p);                               \
        }                                                                                                              \
    }

INLINE vchunk load_magnitudes(npuq_type type, const char *x, size_t at)
{
    const vchunk v = load_x(type, x + count_bytes(type, at), CHUNK, false);

    return (vchunk){{v_magnitude(v.v[0]), v_magnitude(v.v[1]), v_magnitude(v.v[2]), v_magnitude(v.v[3])}};
}

/* The vectors of a run as one. The second chunk may have elements of the first one, so that all are whole. */
INLINE vf find_magnitudes_of_floats(npuq_type type, const char *x, size_t n)
{
    vchunk upper = load_magnitudes(type, x, 0);

    for (size_t at = (n - 1) % CHUNK + 1; at < n; at += CHUNK) {
        const vchunk v = load_magnitudes(type, x, at);

        upper = (vchunk){{v_upper(upper.v[0], v.v[0]), v_upper(upper.v[1], v.v[1]), v_upper(upper.v[2], v.v[2]),
                          v_upper(upper.v[3], v.v[3])}};
    }
    return v_upper(v_upper(upper.v[0], upper.v[1]), v_upper(upper.v[2], upper.v[3]));
}

/* The vectors of a run of halves as one, of patterns, which order as they do. */
INLINE vh find_magnitudes_of_halves(const char *x, size_t n)
{
    vh upper = (vh)vector_at(x, 0) & 0x7FFF;

    for (size_t at = (n - 1) % (2 * LANES) + 1; at < n; at += 2 * LANES) {
        upper = h_upper(upper, (vh)vector_at(x + 2 * at, 0) & 0x7FFF);
    }
    return upper;
}

/* Two runs as one vector: in each lane one half of either, the first one first in memory. */
INLINE vf join_two_runs(vh first, vh second)
{
    const vh low = LOW_FIRST ? first : second;
    const vh high = LOW_FIRST ? second : first;

    return (vf)(((vu)h_upper(low, (vh)((vu)low >> 16)) & 0xFFFF) |
                ((vu)h_upper(high, (vh)((vu)high << 16)) & 0xFFFF0000));
}

/* Each run of a chunk, or of the n columns of a tail, as one vector. */
INLINE void find_magnitudes_of_chunk(npuq_type type, const char *x, size_t n, bool of_two_vectors, vf *of_runs)
{
    const vchunk v = load_x(type, x, n < CHUNK ? n : CHUNK, n < CHUNK);
    const vf upper[4] = {v_magnitude(v.v[0]), v_magnitude(v.v[1]), v_magnitude(v.v[2]), v_magnitude(v.v[3])};

    if (of_two_vectors) {
        of_runs[0] = v_upper(upper[0], upper[1]);
        of_runs[1] = v_upper(upper[2], upper[3]);
    } else {
        memcpy(of_runs, upper, sizeof upper);
    }
}

/* Makes one vector of LANES vectors: folds neighbours until each run is a lane, of halves half a lane. */
INLINE vf fold_vectors(vf *of_runs, bool of_halves)
{
#pragma GCC unroll 4
    for (size_t width = LANES / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
        for (size_t i = 0; i < width; i++) {
            const vf even = v_even(of_runs[2 * i], of_runs[2 * i + 1]);
            const vf odd = v_odd(of_runs[2 * i], of_runs[2 * i + 1]);

            of_runs[i] = of_halves ? (vf)h_upper((vh)even, (vh)odd) : v_upper(even, odd);
        }
    }
    return of_runs[0];
}

/* As many runs of halves as make a vector. */
INLINE void find_run_magnitudes_of_halves(npuq_type type, const char *x, size_t n, size_t runs, float *largest)
{
    vf of_runs[2 * LANES];

    for (size_t i = 0; i < LANES; i++) {
        const char *first = x + count_bytes(type, 2 * i * n);
        const vh zero = {0};

        of_runs[i] = 2 * i + 1 < runs ? join_two_runs(find_magnitudes_of_halves(first, n),
                                                      find_magnitudes_of_halves(first + count_bytes(type, n), n))
                     : 2 * i < runs   ? join_two_runs(find_magnitudes_of_halves(first, n), zero)
                                      : (vf)zero;
    }
    of_runs[1] = of_runs[0] = fold_vectors(of_runs, true);
    const vchunk v = load_x(type, (const char *)of_runs, CHUNK, false);
    memcpy(largest, &v.v[0], sizeof v.v[0]);
    if (runs > LANES) {
        memcpy(largest + LANES, &v.v[1], sizeof v.v[1]);
    }
}

INLINE void find_run_magnitudes_of_floats(npuq_type type, const char *x, size_t n, size_t runs, float *largest)
{
    const size_t taken = n < CHUNK ? CHUNK : n;
    vf of_runs[LANES + 4]; /* room for a chunk of short runs */
    vf *to = of_runs;

    for (size_t at = 0; at < runs * n; at += taken) {
        if (n >= CHUNK) {
            *to++ = find_magnitudes_of_floats(type, x + count_bytes(type, at), n);
        } else {
            find_magnitudes_of_chunk(type, x + count_bytes(type, at), runs * n - at, n == 2 * LANES, to);
            to += CHUNK / n;
        }
    }
    while (to < of_runs + LANES) {
        *to++ = v_set(0.0f);
    }
    const vf upper = fold_vectors(of_runs, false);
    memcpy(largest, &upper, sizeof upper);
}

/* Of a run of any length, such as a short last one. */
NOINLINE float find_magnitude(npuq_rows_fn *find_range, const char *x, size_t n)
{
    const npuq_block run = {.x = x, .rows = 1, .n = n};
    float hi = -__builtin_inff();
    float lo = __builtin_inff();

    find_range(&run, &(npuq_range_params){.hi = &hi, .lo = &lo});
    hi = __builtin_fabsf(hi);
    lo = __builtin_fabsf(lo); /* NaN if hi is */
    return hi > lo ? hi : lo;
}

FOR_TYPES void find_run_magnitudes(npuq_type type, npuq_rows_fn *find_range, const npuq_block *b, size_t n,
                                   float *largest)
{
    assume(npuq_is_float(type) && n >= NPUQ_LEAST_RUN);
    const bool of_halves = count_bytes(type, 1) == 2 && n >= 2 * LANES;
    const bool by_one = !of_halves && n < CHUNK && CHUNK % n != 0;
    const size_t most = of_halves ? 2 * LANES : LANES;
    const size_t all = b->n / n;
    const npuq_hints hints = b->hints;
    size_t i = 0;

    for (; i < all && !by_one; i += most) {
        const char *x = (const char *)b->x + count_bytes(type, i * n);
        const size_t runs = all - i < most ? all - i : most;

        if (hints.prefetch_bytes) {
            prefetch_lines(x + hints.prefetch_bytes, count_bytes(type, runs * n), hints.to_l2);
        }
        if (of_halves) {
            find_run_magnitudes_of_halves(type, x, n, runs, largest + i);
        } else {
            find_run_magnitudes_of_floats(type, x, n, runs, largest + i);
        }
    }
    for (i = by_one ? 0 : all; i * n < b->n; i++) {
        const size_t left = b->n - i * n;

        largest[i] = find_magnitude(find_range, (const char *)b->x + count_bytes(type, i * n), left < n ? left : n);
    }
}

#define RUN_MAGNITUDES(NAME, X)                                                                                        \
    static void NPUQ_KERNEL(find, run_magnitudes_of_##NAME)(const npuq_block *b, unsigned run, float *largest)         \
    {                                                                                                                  \
        assert(npuq_are_valid_runs(b, NPUQ_TYPE_##X, run, largest));                                                   \
        find_run_magnitudes(NPUQ_TYPE_##X, NPUQ_KERNEL(find, range_from_##NAME), b, run, largest);                     \
    }

/* Rows that are read at once. */
enum { ROWS_OF_COLUMNS = 4 };

/* The largest magnitudes of columns of these rows. Halves become floats last. */
INLINE vchunk find_magnitudes_of_columns(npuq_type type, const char *const *from, size_t at, size_t n)
{
    const bool tail = n < CHUNK;
    vchunk upper = {{v_set(0.0f), v_set(0.0f), v_set(0.0f), v_set(0.0f)}};

    if (count_bytes(type, 1) == 2 && !tail) {
        vh halves[2] = {{0}, {0}};

        for (size_t r = 0; r < ROWS_OF_COLUMNS; r++) {
            for (size_t i = 0; i < 2; i++) {
                halves[i] = h_upper(halves[i], (vh)vector_at(from[r] + 2 * (at + i * 2 * LANES), 0) & 0x7FFF);
            }
        }
        return type == NPUQ_TYPE_FLOAT16 ? chunk_load_f16(halves) : chunk_load_bf16(halves);
    }
    for (size_t r = 0; r < ROWS_OF_COLUMNS; r++) {
        const vchunk v = load_x(type, from[r] + count_bytes(type, at), n, tail);

        for (int i = 0; i < 4; i++) {
            upper.v[i] = v_upper(upper.v[i], v_magnitude(v.v[i]));
        }
    }
    return upper;
}

FOR_TYPES void find_column_magnitudes(npuq_type type, const npuq_block *b, float *largest)
{
    assume(npuq_is_float(type));
    for (size_t r = 0; r < b->rows; r += ROWS_OF_COLUMNS) {
        const char *from[ROWS_OF_COLUMNS];

        for (size_t i = 0; i < ROWS_OF_COLUMNS; i++) { /* a last row several times */
            const size_t row = r + i < b->rows ? r + i : b->rows - 1;

            from[i] = (const char *)b->x + (ptrdiff_t)row * b->x_stride;
        }
        for (size_t at = 0; at < b->n; at += CHUNK) {
            const size_t n = b->n - at < CHUNK ? b->n - at : CHUNK;
            vchunk upper;
            vchunk before = {{v_set(0.0f), v_set(0.0f), v_set(0.0f), v_set(0.0f)}};

            upper = n < CHUNK ? find_magnitudes_of_columns(type, from, at, n)
                              : find_magnitudes_of_columns(type, from, at, CHUNK);
            memcpy(&before, largest + at, n * sizeof *largest);
            for (int i = 0; i < 4; i++) {
                before.v[i] = v_upper(before.v[i], upper.v[i]);
            }
            memcpy(largest + at, &before, n * sizeof *largest);
        }
    }
}

#define COLUMN_MAGNITUDES(NAME, X)                                                                                     \
    static void NPUQ_KERNEL(find, column_magnitudes_of_##NAME)(const npuq_block *b, const void *params)                \
    {                                                                                                                  \
        const npuq_column_params *p = params;                                                                          \
                                                                                                                       \
        assert(npuq_are_valid_magnitudes(b, NPUQ_TYPE_##X, p));                                                        \
        find_column_magnitudes(NPUQ_TYPE_##X, b, p->largest);                                                          \
    }

NPUQ_EACH_RANGE(RANGE)
NPUQ_EACH_RANGE(RUN_MAGNITUDES)
NPUQ_EACH_RANGE(COLUMN_MAGNITUDES)

#endif
