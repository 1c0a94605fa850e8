/* SPDX-License-Identifier: BSD-3-Clause */
/* Every word of every vocabulary against plain C: all patterns of float16 and bfloat16, all bytes, and special floats
 * in every lane. The build compiles this file once for each instruction set, with VECTOR_HEADER, TRY_WORDS and its
 * flags, and once for the program, with VOCABULARIES, the list of all. */
#include "backends/cpu.h"
#include "backends/dispatch.h"
#include "support.h"

#include <stdio.h>
#include <string.h>

extern const char *vocabulary_word; /* the word under test */

#ifdef VECTOR_HEADER
#include VECTOR_HEADER

#include "ref/npuq_ref_element.h"
#include "simd/chunk.h"

void TRY_WORDS(void);

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* Also with the other sign, and the patterns next to each. */
static const float special[] = {
    0x1p-23f,   0x1p-22f,   0x1.8p-22f, 0x1p-17f,  0x1p-16f,    0x1.8p-16f, 0x1.8p-15f,  0x1p-10f,    0x1.8p-9f,
    0x1.8p-7f,  0x1.8p-4f,  0.25f,      0.75f,     1.125f,      1.25f,      1.75f,       2.25f,       3.5f,
    5.0f,       17.0f,      18.0f,      22.0f,     384.0f,      464.0f,     480.0f,      49152.0f,    53248.0f,
    61440.0f,   0.0f,       0x1p-126f,  0x1p-133f, 0x1.8p-133f, 0x1p-64f,   0x1p-27f,    0x1p-25f,    0x1p-24f,
    0x1.8p-24f, 0x1p-14f,   0.5f,       1.0f,      1.5f,        2.5f,       6.5f,        7.5f,        8.5f,
    126.5f,     127.5f,     128.5f,     129.5f,    254.5f,      255.5f,     256.5f,      0x1.01p0f,   0x1.03p0f,
    0x1.002p0f, 0x1.006p0f, 32766.5f,   32767.5f,  32768.5f,    65504.0f,   65520.0f,    65536.0f,    0x1p22f,
    0x1p23f,    0x1p24f,    0x1p31f,    0x1p63f,   0x1p64f,     0x1p127f,   0x1.fep127f, 0x1.ffp127f, 0.125f,
    0.375f,     0.625f,     0.875f,     1.375f,    1.625f,      2.0f,       3.0f,        4.0f,        6.0f};
static const uint32_t not_finite[] = {0x7F800000u, 0x7FC00000u, 0x7FFFFFFEu, 0x7F800002u};

enum {
    SPECIALS = sizeof special / sizeof special[0],
    PATTERNS = 6 * (SPECIALS + sizeof not_finite / sizeof not_finite[0]),
    HALVES = 65536 / CHUNK,
    FIRST_SPECIAL = 2 * HALVES,
    FIRST_RANDOM = FIRST_SPECIAL + PATTERNS * CHUNK / 4,
    ROUNDS = FIRST_RANDOM + 2000,
};

static uint32_t pattern(size_t i)
{
    const uint32_t bits = i / 6 < SPECIALS ? npuq_ref_to_bits(special[i / 6]) : not_finite[i / 6 - SPECIALS];

    return (bits + (uint32_t)(i % 3) - 1) ^ (i / 3 % 2 ? 0x80000000u : 0);
}

/* The floats of a round: all float16, all bfloat16, each special float in every fourth lane among ordinary ones, random
 * ones. As patterns: on some targets a function's result loses the pattern of a NaN. */
static void fill(size_t round, uint32_t t[CHUNK])
{
    for (size_t i = 0; i < CHUNK; i++) {
        const uint32_t half = (uint32_t)(round % HALVES * CHUNK + i);

        if (round < HALVES) {
            t[i] = npuq_ref_to_bits(npuq_ref_float16((uint16_t)half));
        } else if (round < FIRST_SPECIAL) {
            t[i] = half << 16;
        } else if (round < FIRST_RANDOM) {
            t[i] = npuq_ref_to_bits((float)test_between(-0x7FFFFF, 0x7FFFFF) / (float)(1u << test_between(8, 26)));
        } else if (round % 2) {
            t[i] = test_one_in(4) ? pattern(test_below(PATTERNS)) : (uint32_t)test_random();
        } else {
            t[i] = npuq_ref_to_bits(test_float(false));
        }
    }
    if (round >= FIRST_SPECIAL && round < FIRST_RANDOM) {
        const size_t i = (round - FIRST_SPECIAL) / (CHUNK / 4);
        t[(i + 4 * round) % CHUNK] = pattern(i);
    }
}

static uint32_t magnitude(float value)
{
    return npuq_ref_to_bits(value) & 0x7FFFFFFFu;
}

/* Whether the patterns of all magnitudes lie in a range, or, with zero, are 0. */
static bool are_all_in(const float *t, uint32_t first, uint32_t end, bool zero)
{
    bool all = true;

    for (size_t i = 0; i < CHUNK; i++) {
        all &= (magnitude(t[i]) >= first && magnitude(t[i]) < end) || (zero && magnitude(t[i]) == 0);
    }
    return all;
}

/* No check may fail for these: zeros, and normal numbers below 32767. */
static bool are_ordinary(const float *t)
{
    return are_all_in(t, 0x00800000, 0x46FFFE00, true);
}

static bool are_numbers(const float *t)
{
    return are_all_in(t, 0, 0x7F800001, false);
}

#define SAME(GOT, EXPECTED, SIZE, ROUND)                                                                               \
    test_same(GOT, EXPECTED, SIZE, "%s, round %zu", vocabulary_word, (size_t)(ROUND))

#define TRY(NAME, CALL)                                                                                                \
    static void try_##NAME(void)                                                                                       \
    {                                                                                                                  \
        CALL;                                                                                                          \
    }

/* ---- vectors ---------------------------------------------------------------------------------------------------- */

static void try_put_vector(void)
{
    uint32_t bits[CHUNK];
    unsigned char copy[sizeof bits + 1];

    fill(FIRST_RANDOM, bits);
    for (size_t i = 0; i < 4; i++) {
        put_vector(copy + 1, i, i % 2 ? (vu)v_load((const float *)bits + i * LANES) : vector_at(bits, i));
    }
    SAME(copy + 1, bits, sizeof bits, 0);
}

#define try_vector_at try_put_vector
#define try_v_load    try_put_vector

/* Words of at most two vectors: lane i of the result depends on the lanes of both. */
static void try_lanes(vf (*word)(vf a, vf b), uint32_t (*lane)(const uint32_t *a, const uint32_t *b, size_t i))
{
    uint32_t bits[CHUNK];
    uint32_t expected[LANES];
    vf v[4];

    for (size_t round = 0; round < ROUNDS; round++) {
        fill(round, bits);
        for (size_t i = 0; i < LANES; i++) {
            bits[i] = test_one_in(2) ? bits[i + LANES] : pattern(test_below(PATTERNS));
        }
        memcpy(v, bits, sizeof v);
        for (size_t k = 0; k < 4; k++) {
            for (size_t i = 0; i < LANES; i++) {
                expected[i] = lane(bits + k * LANES, bits + (k + 1) % 4 * LANES, i);
            }
            const vf got = word(v[k], v[(k + 1) % 4]);
            SAME(&got, expected, sizeof got, round);
        }
    }
}

#define TRY_LANES(NAME, RESULT, LANE)                                                                                  \
    static vf run_##NAME(vf a, vf b)                                                                                   \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        return RESULT;                                                                                                 \
    }                                                                                                                  \
    static uint32_t lane_##NAME(const uint32_t *a, const uint32_t *b, size_t i)                                        \
    {                                                                                                                  \
        (void)b, (void)i;                                                                                              \
        return LANE;                                                                                                   \
    }                                                                                                                  \
    TRY(NAME, try_lanes(run_##NAME, lane_##NAME))

TRY_LANES(v_set, v_set(a[0]), a[0])
TRY_LANES(v_ordered, v_ordered(a), a[i] >> 31 ? a[i] ^ 0x7FFFFFFFu : a[i])
TRY_LANES(v_above, v_above(a, b), npuq_ref_from_bits(a[i]) > npuq_ref_from_bits(b[i]) ? a[i] : b[i])
TRY_LANES(v_upper, v_upper(a, b), (int32_t)a[i] > (int32_t)b[i] ? a[i] : b[i])
TRY_LANES(v_lower, v_lower(a, b), (int32_t)a[i] < (int32_t)b[i] ? a[i] : b[i])

static uint32_t upper_half(uint32_t a, uint32_t b)
{
    return (a & 0x7FFF) > (b & 0x7FFF) ? a & 0x7FFF : b & 0x7FFF;
}

static uint32_t lower_half(uint32_t a, uint32_t b)
{
    return (a & 0x7FFF) + (b & 0x7FFF) - upper_half(a, b);
}

/* Of halves by a function of one's value. */
#define BOTH_HALVES(FUNCTION, a, b) (FUNCTION(a, b) | FUNCTION((a) >> 16, (b) >> 16) << 16)

TRY_LANES(h_upper, (vf)h_upper((vh)(vu)a & 0x7FFF, (vh)(vu)b & 0x7FFF), BOTH_HALVES(upper_half, a[i], b[i]))
TRY_LANES(h_lower, (vf)h_lower((vh)(vu)a & 0x7FFF, (vh)(vu)b & 0x7FFF), BOTH_HALVES(lower_half, a[i], b[i]))

/* Without NaN, whose place a zero takes. */
static vf number_of(vf a)
{
    return (vf)((vi)a & (a == a));
}

TRY_LANES(v_bounded_magnitude, v_bounded_magnitude(number_of(a), v_set(448.0f)),
          npuq_ref_is_nan(npuq_ref_from_bits(a[i])) ? 0
          : (a[i] & 0x7FFFFFFF) < 0x43E00000        ? a[i] & 0x7FFFFFFF
                                                    : 0x43E00000)

static const uint8_t sixteen[16] = {3, 1, 4, 15, 92, 65, 35, 89, 79, 32, 38, 46, 255, 128, 7, 200};

static uint32_t found(uint32_t a, uint32_t b)
{
    (void)b;
    return (a & 0x7F) < 16 ? sixteen[a & 0x7F] : 0;
}

TRY_LANES(h_look_up, (vf)h_look_up(sixteen, (vh)(vu)a & 0x7F), BOTH_HALVES(found, a[i], b[i]))
TRY_LANES(v_even, v_even(a, b), 2 * i < LANES ? a[2 * i] : b[2 * i - LANES])
TRY_LANES(v_odd, v_odd(a, b), 2 * i < LANES ? a[2 * i + 1] : b[2 * i + 1 - LANES])

/* ---- loads ------------------------------------------------------------------------------------------------------ */

/* The elements of a round: all halves, each byte in each lane, special floats or integers, random ones. */
static void fill_x(void *x, npuq_ref_dtype dtype, size_t bytes, size_t round)
{
    uint32_t bits[CHUNK];
    unsigned char all[sizeof bits];

    fill(round, bits);
    for (size_t i = 0; i < CHUNK; i++) {
        if (dtype == NPUQ_REF_FLOAT16 || dtype == NPUQ_REF_BFLOAT16) {
            const uint16_t half = (uint16_t)(round < HALVES ? round * CHUNK + i : test_random());
            memcpy(all + 2 * i, &half, sizeof half);
        } else if (dtype == NPUQ_REF_FLOAT32 || dtype == NPUQ_REF_INT32) {
            const uint32_t integer = (uint32_t)((int64_t)test_random() >> test_between(32, 63));
            memcpy(all + 4 * i, dtype == NPUQ_REF_FLOAT32 ? &bits[i] : &integer, sizeof integer);
        } else {
            all[i] = (unsigned char)(round < 256 ? round + i : test_random());
        }
    }
    memcpy(x, all, bytes);
}

#define REF_DTYPE(NAME, name, row, number, ...) number,
static const int ref_dtypes[] = {EACH_TYPE(REF_DTYPE)};

/* A load of n elements, and a copy of its lanes. With raw in try_load(), the load does not widen. */
typedef void load(void *lanes, const void *p, size_t n);

static void try_load(load *word, npuq_type type, bool raw, bool tail)
{
    const npuq_storage_word stored = npuq_word_of(type);
    const npuq_ref_dtype dtype = (npuq_ref_dtype)ref_dtypes[type];
    const size_t multiple = npuq_count_elements_in(stored);
    unsigned char *at_end = test_guard(CHUNK * 4, true, 0);
    unsigned char *at_begin = test_guard(CHUNK * 4, false, 0);

    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t n = tail && round >= HALVES ? multiple * (1 + round % (CHUNK / multiple)) : CHUNK;
        const size_t bytes = npuq_count_bytes(stored, n);
        _Alignas(64) unsigned char x[CHUNK * 4];
        float got[CHUNK];
        float expected[CHUNK];

        fill_x(x, dtype, bytes, round);
        for (size_t i = 0; i < CHUNK; i++) {
            const size_t from = i < n ? i : i % multiple;
            if (raw) {
                memcpy((unsigned char *)expected + i * stored.size, x + from * stored.size, stored.size);
            } else {
                expected[i] = npuq_ref_canonical(npuq_ref_load(x, dtype, from));
            }
        }
        for (int k = 0; k < 2; k++) {
            unsigned char *p = k ? at_end + sizeof x - bytes : at_begin;
            memcpy(p, x, bytes);
            word(got, p, n);
            for (size_t i = 0; i < CHUNK && !raw; i++) {
                got[i] = npuq_ref_canonical(got[i]);
            }
            SAME(got, expected, raw ? CHUNK * stored.size : sizeof expected, round);
        }
    }
    test_free_guards();
}

#define TRY_LOAD(NAME, CHUNK_TYPE, DTYPE, RAW, TAILS, ...)                                                             \
    static void run_##NAME(void *lanes, const void *p, size_t n)                                                       \
    {                                                                                                                  \
        const CHUNK_TYPE v = NAME(__VA_ARGS__);                                                                        \
        (void)n;                                                                                                       \
        memcpy(lanes, &v, sizeof v);                                                                                   \
    }                                                                                                                  \
    TRY(NAME, try_load(run_##NAME, NPUQ_TYPE_##DTYPE, RAW, TAILS))

#define TRY_LOAD_FLOAT(NAME, row)                                                                                      \
    TRY_LOAD(chunk_load_##row, vchunk, NAME, NPUQ_REF_##NAME == NPUQ_REF_FLOAT32, false, p)
#define TRY_LOAD_SIGNED   TRY_LOAD_FLOAT
#define TRY_LOAD_UNSIGNED TRY_LOAD_FLOAT
#define TRY_LOAD_SMALL_FLOAT(NAME, row)                                                                                \
    static vchunk load_##row(const void *p)                                                                            \
    {                                                                                                                  \
        const npuq_type type = NPUQ_TYPE_##NAME;                                                                       \
        return load_small_floats(p, find_code(type), CHUNK, false, npuq_is_4_bit_float(type));                         \
    }                                                                                                                  \
    TRY_LOAD(load_##row, vchunk, NAME, false, false, p)
#define TRY_LOAD_TAPERED_FLOAT(NAME, row)
#define TRY_LOAD_OF(NAME, name, row, number, KIND, ...) TRY_LOAD_##KIND(NAME, row)
EACH_ROW_TYPE(TRY_LOAD_OF)
TRY(chunk_load_bytes, (try_load_e4m3fn(), try_load_e5m2()))
TRY(chunk_look_up, (try_load_e2m1(), try_load_e1m2()))
TRY_LOAD(chunk_of_f16, vchunk, FLOAT16, false, false, chunk_load_halves(p))
TRY_LOAD(chunk_of_ints, vchunk, INT32, false, false, chunk_load_ints(p))
TRY_LOAD(chunk_load_halves, hchunk, FLOAT16, true, false, p)
TRY_LOAD(chunk_load_ints, ichunk, INT32, true, false, p)
TRY_LOAD(chunk_load_tail_f32, vchunk, FLOAT32, true, true, p, n)
TRY_LOAD(chunk_load_tail_f16, vchunk, FLOAT16, false, true, p, n)
TRY_LOAD(chunk_load_tail_bf16, vchunk, BFLOAT16, false, true, p, n)
TRY_LOAD(chunk_load_tail_i8, vchunk, INT8, false, true, p, n)
TRY_LOAD(chunk_load_tail_i4, vchunk, QUINT4X2, false, true, p, n)
TRY_LOAD(chunk_load_tail_halves, hchunk, FLOAT16, true, true, p, n)
TRY_LOAD(chunk_load_tail_ints, ichunk, INT32, true, true, p, n)

/* Stores of this order show that no lane is lost; each half of a chunk keeps its own lanes. */
static void try_chunk_to_unpack_order(void)
{
    uint16_t halves[CHUNK];
    const vf first = v_set(1.0f);
    const vf last = v_set(2.0f);
    const vchunk by_half = {{first, first, last, last}};
    const vchunk kept = chunk_to_unpack_order(by_half);

    SAME(&kept, &by_half, sizeof kept, 0);

    for (size_t round = 0; round < 2 * HALVES; round++) {
        fill_x(halves, NPUQ_REF_BFLOAT16, sizeof halves, round);
        const vchunk unpacked = chunk_load_unpacked_bf16(halves);
        const vchunk ordered = chunk_to_unpack_order(chunk_load_bf16(halves));
        SAME(&unpacked, &ordered, sizeof unpacked, round);
    }
}

#define try_chunk_load_unpacked_bf16 try_chunk_to_unpack_order

static void try_ichunk_add(void)
{
    int32_t a[CHUNK];
    int32_t b[CHUNK];

    for (size_t round = 0; round < 1000; round++) {
        fill_x(a, NPUQ_REF_INT32, sizeof a, round);
        fill_x(b, NPUQ_REF_INT32, sizeof b, round);
        const ichunk sums = ichunk_add(chunk_load_ints(a), round % 2 ? ichunk_set(b[0]) : chunk_load_ints(b));
        for (size_t i = 0; i < CHUNK; i++) {
            a[i] = npuq_ref_wrapping_add(a[i], b[round % 2 ? 0 : i]);
        }
        SAME(&sums, a, sizeof a, round);
    }
}

#define try_ichunk_set try_ichunk_add

/* ---- quotients -------------------------------------------------------------------------------------------------- */

static vchunk divide(vchunk x, vchunk scales)
{
    const vchunk inverses = chunk_div(chunk_set(1.0f), scales);
    vchunk q;

    for (int i = 0; i < 4; i++) {
        q.v[i] = v_quotient(x.v[i], scales.v[i], inverses.v[i]);
    }
    return q;
}

#if EXACT_QUOTIENT
static vchunk divide_exact(vchunk x, vchunk scales)
{
    return chunk_quotient_exact(x, scales, chunk_div(chunk_set(1.0f), scales));
}
#endif

static void try_quotients(vchunk (*word)(vchunk x, vchunk scales), bool never_nan)
{
    float x[CHUNK];
    float scales[CHUNK];
    float q[CHUNK];

    for (size_t round = 0; round < ROUNDS; round++) {
        fill_x(x, NPUQ_REF_FLOAT32, sizeof x, round);
        for (size_t i = 0; i < CHUNK; i++) {
            const uint32_t fraction = (uint32_t)test_random() & (test_one_in(4) ? 0x80000000u : 0x807FFFFFu);
            scales[i] = npuq_ref_from_bits(fraction | (uint32_t)test_between(63, 190) << 23);
            if (test_one_in(16)) { /* the product with the inverse may overflow, but not the quotient */
                x[i] = npuq_ref_mul(scales[i], 0x1.fffffep127f);
            }
        }
        vchunk t;
        vchunk s;
        memcpy(&t, x, sizeof t);
        memcpy(&s, scales, sizeof s);
        t = word(t, s);
        memcpy(q, &t, sizeof q);
        for (size_t i = 0; i < CHUNK; i++) {
            const float expected = npuq_ref_canonical(npuq_ref_div(x[i], scales[i]));
            const float product = npuq_ref_mul(x[i], npuq_ref_div(1.0f, scales[i]));
            const bool tiny = magnitude(expected) < 100u << 23; /* 2^-27 */
            const bool finite = magnitude(product) < 0x7F800000u;

            q[i] = npuq_ref_canonical(q[i]);
            if (!FAST_DIVIDE ||
                !(tiny ? magnitude(q[i]) <= 100u << 23 : npuq_ref_is_nan(q[i]) && !finite && !never_nan)) {
                SAME(&q[i], &expected, sizeof expected, round);
            }
        }
    }
}

TRY(v_quotient, try_quotients(divide, false))

#if EXACT_QUOTIENT
TRY(chunk_quotient_exact, try_quotients(divide_exact, true))
#endif

static bool are_invertible(const float *t)
{
    return are_all_in(t, 63u << 23, 191u << 23, false);
}

/* Words that tell something about a chunk, on targets with inverses. */
static void try_predicate(bool (*word)(vchunk t), bool (*expected)(const float *t))
{
    float x[CHUNK];

    for (size_t round = 0; round < ROUNDS; round++) {
        fill_x(x, NPUQ_REF_FLOAT32, sizeof x, round);
        const bool says = word(chunk_load_f32(x));
        const bool is = !FAST_DIVIDE || expected(x);
        SAME(&says, &is, sizeof is, round);
    }
}

#if FAST_INVERSE
/* All significands, and the worst of near inverses. Powers of 2 change nothing. */
static void try_v_inverse(void)
{
    for (uint32_t i = 0; i < 6u << 23; i += LANES) {
        float s[LANES];
        float near[LANES];
        float expected[LANES];

        for (uint32_t k = 0; k < LANES; k++) {
            s[k] = npuq_ref_from_bits((i + k) % (1u << 23) | (i >> 23 & 1 ? 0xBF800000u : 0x3F800000u));
            near[k] = (float)((1 + ((int)(i >> 24) - 1) * 0x1.ffffp-15) / s[k]);
            expected[k] = 1.0f / s[k];
        }
        const vf got = v_inverse(v_load(s), v_load(near));
        SAME(&got, expected, sizeof got, i);
    }
}

static vchunk divide_checked(vchunk x, vchunk scales)
{
    store_check done = start_check();

    return chunk_div_checked(x, scales, &done);
}

static bool passes_check(vchunk scales)
{
    store_check done = start_check();

    (void)chunk_div_checked(scales, scales, &done);
    return is_fast_path_ok(done, false);
}

/* Of the half that takes inverses. */
static bool is_half_invertible(const float *t)
{
    float half[CHUNK];

    memcpy(half, t, sizeof half / 2);
    memcpy(half + CHUNK / 2, t, sizeof half / 2);
    return are_invertible(half);
}

static void try_chunk_div_checked(void)
{
    try_quotients(divide_checked, false);
    try_predicate(passes_check, is_half_invertible);
}
#endif

TRY(chunk_is_invertible, try_predicate(chunk_is_invertible, are_invertible))
#ifndef STORE_CHECK
TRY(are_quotients_exact, try_predicate(are_quotients_exact, are_numbers))
#endif

/* ---- stores ----------------------------------------------------------------------------------------------------- */

enum { REQUANT = NPUQ_TYPES, FLIPPED, CONVERTED, MOST_BYTES = 4 * CHUNK, MEMORY = 2 * MOST_BYTES, UNTOUCHED = 0xA5 };

static int32_t requant_offsets[CHUNK];
static npuq_small_rounding rounding; /* to 4 bits */
static test_guarded memory;          /* MEMORY bytes before a page that faults */

static ichunk offsets(void)
{
    return chunk_load_ints(requant_offsets);
}

static npuq_type type_of(int y)
{
    return y == REQUANT     ? NPUQ_TYPE_INT8
           : y == FLIPPED   ? NPUQ_TYPE_UINT8
           : y == CONVERTED ? NPUQ_TYPE_BFLOAT16
                            : (npuq_type)y;
}

static npuq_storage_word word_of(int y)
{
    return npuq_word_of(type_of(y));
}

/* Whether checks are of floats. */
static bool is_float_y(int y)
{
    return !npuq_is_integer(type_of(y));
}

/* The chunk of a round, and its expected stored bytes. */
static vchunk fill_y(int y, size_t round, float *t, void *expected)
{
    vchunk chunk;

    fill_x(t, NPUQ_REF_FLOAT32, CHUNK * sizeof *t, round);
    for (size_t i = 0; i < CHUNK; i++) {
        requant_offsets[i] = (int32_t)(test_one_in(4) ? (test_one_in(2) ? -256 : 255) : test_between(-256, 255));
        if (y == REQUANT) {
            ((int8_t *)expected)[i] = npuq_ref_two_clamps(t[i], requant_offsets[i]);
        } else if (y == FLIPPED) {
            npuq_ref_store_symmetric(expected, (npuq_ref_dtype)ref_dtypes[type_of(y)], i, t[i]);
        } else if (npuq_is_4_bit_float(type_of(y))) {
            npuq_ref_store_nibble(
                expected, i, npuq_ref_to_small_float((npuq_ref_dtype)ref_dtypes[y], t[i], (npuq_ref_rounding)rounding));
        } else if (npuq_is_float(type_of(y))) {
            npuq_ref_store_float(expected, (npuq_ref_dtype)ref_dtypes[type_of(y)], i, t[i]);
        } else {
            npuq_ref_store(expected, (npuq_ref_dtype)ref_dtypes[type_of(y)], i, t[i]);
        }
    }
    memcpy(&chunk, t, sizeof chunk);
    return chunk;
}

/* Clears the memory; returns the place of `bytes` bytes. see_memory() expects no change in other bytes. */
static unsigned char *clear_memory(size_t bytes, size_t from_end)
{
    memset(memory.memory, UNTOUCHED, MEMORY);
    return memory.memory + MEMORY - from_end - bytes;
}

static void see_memory(const unsigned char *p, const void *expected, size_t bytes, size_t round)
{
    unsigned char all[MEMORY];

    memset(all, UNTOUCHED, sizeof all);
    memcpy(all + (p - memory.memory), expected, bytes);
    SAME(memory.memory, all, sizeof all, round);
}

static y_form form_of(npuq_type y)
{
    return (y_form){.has_4_bits = npuq_is_4_bit_float(y),
                    .rounding = npuq_is_4_bit_float(y) ? (uint8_t)rounding : 0,
                    .format = npuq_is_small_float(y) ? find_format(y) : (small_format){0}};
}

/* An encode and a narrow, as chunk.h joins them. */
static store_check store(int y, void *p, vchunk t, size_t n, bool unpack_order, stores how)
{
#ifdef CONVERTS_BF16
    if (y == CONVERTED) {
        store_check check = start_check();
        narrow_16(p, encode_converted_bfloat16(t, &check), how == STREAM);
        return check;
    }
#endif
    return y == REQUANT   ? store_requant(p, t, offsets(), n, how)
           : y == FLIPPED ? store_y(NPUQ_TYPE_INT8, p, t, (y_form){.flip = 0x80}, n, unpack_order, how)
                          : store_y((npuq_type)y, p, t, form_of((npuq_type)y), n, unpack_order, how);
}

#ifdef STORE_CHECK
enum { NOTICES_NAN = FAST_DIVIDE };
#else
enum { NOTICES_NAN = 0 };
#endif

/* A store whose check fails still writes its bytes, but no others. The ways of the narrow are in both orders, and with
 * non-temporal stores, too. */
static void try_fast(int y, bool all_ways)
{
    const bool floats = is_float_y(y);
    const size_t bytes = npuq_count_bytes(word_of(y), CHUNK);
    const size_t element = word_of(y).size;

    for (size_t round = 0; round < ROUNDS; round++) {
        float t[CHUNK];
        _Alignas(64) unsigned char expected[MOST_BYTES];
        const vchunk chunk = fill_y(y, round, t, expected);

        for (int way = 0; way < (all_ways ? 4 : 1); way++) {
            const bool unpack_order = way >= 2;
            const bool non_temporal = way % 2;

            if (unpack_order && (bytes > CHUNK || y == REQUANT)) {
                continue;
            }
            unsigned char *p = clear_memory(bytes, non_temporal ? 0 : element * test_below(17));
            const store_check c = store(y, p, unpack_order ? chunk_to_unpack_order(chunk) : chunk, CHUNK, unpack_order,
                                        non_temporal ? STREAM : FULL);
            fence_stores();
            const bool ok = is_fast_path_ok(c, floats);
            see_memory(p, ok ? expected : p, bytes, round);
            if (ok ? NOTICES_NAN && !floats && y != REQUANT && !are_numbers(t) : are_ordinary(t)) {
                fail_msg("%s, round %zu: the check %s", vocabulary_word, round, ok ? "misses a NaN" : "fails");
            }
        }
    }
}

static void try_exact(int y, stores how)
{
    const size_t multiple = npuq_count_elements_in(word_of(y));

    for (size_t round = 0; round < ROUNDS; round++) {
        float t[CHUNK];
        _Alignas(64) unsigned char expected[MOST_BYTES];
        const size_t n = how == TAIL && round >= FIRST_SPECIAL ? multiple * (1 + round % (CHUNK / multiple)) : CHUNK;
        const vchunk chunk = fill_y(y, round, t, expected);
        const size_t bytes = npuq_count_bytes(word_of(y), n);
        unsigned char *p = clear_memory(bytes, 0);

        (void)store(y, p, chunk, n, false, how);
        see_memory(p, expected, bytes, round);
    }
}

static void try_encode(int y)
{
    try_fast(y, false);
    try_exact(y, EXACT);
}

static void try_encode_integers(void)
{
    try_encode(NPUQ_TYPE_INT8);
    try_encode(NPUQ_TYPE_UINT8);
    try_encode(NPUQ_TYPE_QUINT4X2);
}

TRY(add_requant_offsets, try_encode(REQUANT))
TRY(encode_int32, try_encode(NPUQ_TYPE_INT32))
TRY(encode_float32, try_encode(NPUQ_TYPE_FLOAT32))
TRY(encode_float16, try_encode(NPUQ_TYPE_FLOAT16))
TRY(encode_bfloat16, try_encode(NPUQ_TYPE_BFLOAT16))

/* And the check that these codes are right. */
static void try_truncate_bfloat16(void)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        uint32_t bits[CHUNK];
        uint16_t y[CHUNK];
        uint16_t expected[CHUNK];
        uint32_t lost = 0;
        vchunk t;

        fill(round, bits);
        for (size_t i = 0; i < CHUNK; i++) {
            bits[i] &= test_one_in(CHUNK) ? 0xFFFFFFFFu : 0xFFFF0000u;
            expected[i] = (uint16_t)(bits[i] >> 16);
            lost |= bits[i] & 0xFFFF;
        }
        memcpy(&t, bits, sizeof t);
        narrow_16(y, truncate_bfloat16(t), false);
        SAME(y, expected, sizeof y, round);
        const bool ok = is_fast_path_ok(check_of_bfloat16(t), true);

        if (ok ? lost != 0 || !are_numbers((const float *)bits) : lost == 0 && are_ordinary((const float *)bits)) {
            fail_msg("round %zu: the check %s", round, ok ? "misses bits or a NaN" : "fails");
        }
    }
}

static void try_small_codes(void)
{
    try_encode(NPUQ_TYPE_FLOAT8_E4M3FN);
    try_encode(NPUQ_TYPE_FLOAT8_E5M2);
    for (rounding = NPUQ_SMALL_RINT; rounding <= NPUQ_SMALL_FLOOR; rounding++) {
        try_encode(NPUQ_TYPE_FLOAT4_E2M1);
        try_encode(NPUQ_TYPE_FLOAT4_E1M2);
    }
}

TRY(check_of_floats, try_encode(NPUQ_TYPE_HIFLOAT8))

/* Bits 25 to 31 of floats, or -1 where the sign is set, as int8. */
static void try_halves(bool signs)
{
    uint8_t y[CHUNK];
    uint8_t expected[CHUNK];
    uint32_t bits[CHUNK];
    vchunk t;

    for (size_t round = 0; round < ROUNDS; round++) {
        fill(round, bits);
        for (size_t i = 0; i < CHUNK; i++) {
            expected[i] = (uint8_t)(signs ? 0u - (bits[i] >> 31) : bits[i] >> 25);
        }
        memcpy(&t, bits, sizeof t);
        narrow_int8(y,
                    signs ? icodes_of_halves(h_signs(t.v[0], t.v[1]), h_signs(t.v[2], t.v[3]))
                          : icodes_of_halves(upper_halves(t.v[0], t.v[1]) >> 9, upper_halves(t.v[2], t.v[3]) >> 9),
                    0, false, false);
        SAME(y, expected, sizeof y, round);
    }
}

TRY(upper_halves, try_halves(false))
TRY(h_signs, try_halves(true))
#define try_icodes_of_halves try_upper_halves

static void try_narrow_int8(void)
{
    try_fast(NPUQ_TYPE_INT8, true);
    try_fast(FLIPPED, true);
    try_fast(REQUANT, true);
}

static void try_narrow_tail_int8(void)
{
    try_exact(NPUQ_TYPE_INT8, TAIL);
    try_exact(FLIPPED, TAIL);
    try_exact(REQUANT, TAIL);
}

static void try_narrow_32(void)
{
    try_fast(NPUQ_TYPE_INT32, true);
    try_fast(NPUQ_TYPE_FLOAT32, true);
}

static void try_narrow_tail_32(void)
{
    try_exact(NPUQ_TYPE_INT32, TAIL);
    try_exact(NPUQ_TYPE_FLOAT32, TAIL);
}

static void try_narrow_16(void)
{
    try_fast(NPUQ_TYPE_FLOAT16, true);
    try_fast(NPUQ_TYPE_BFLOAT16, true);
}

static void try_narrow_tail_16(void)
{
    try_exact(NPUQ_TYPE_FLOAT16, TAIL);
    try_exact(NPUQ_TYPE_BFLOAT16, TAIL);
}

TRY(narrow_uint8, try_fast(NPUQ_TYPE_UINT8, true))
TRY(narrow_int4, try_fast(NPUQ_TYPE_QUINT4X2, true))
TRY(narrow_tail_uint8, try_exact(NPUQ_TYPE_UINT8, TAIL))
TRY(narrow_tail_int4, try_exact(NPUQ_TYPE_QUINT4X2, TAIL))

#ifdef CONVERTS_BF16
static void try_encode_converted_bfloat16(void)
{
    if (npuq_cpu_converts_bf16()) {
        try_fast(CONVERTED, true);
    } else {
        print_message("LEFT OUT: %s, which this CPU has not\n", vocabulary_word);
    }
}
#endif

#if LOOKS_UP_I4
static void try_look_up_int4(void)
{
    _Alignas(64) uint16_t y[CHUNK];
    uint16_t expected[CHUNK];
    uint16_t results[2 * LANES];
    uint32_t x[CHUNK / 8];
    vu table;

    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < 2 * LANES; i++) {
            results[i] = i < 16 ? (uint16_t)test_random() : results[i - 16];
        }
        for (size_t i = 0; i < CHUNK / 8; i++) {
            x[i] = (uint32_t)test_random();
        }
        for (size_t i = 0; i < CHUNK; i++) {
            expected[i] = results[(int)npuq_ref_load(x, NPUQ_REF_QUINT4X2, i) & 15];
        }
        memcpy(&table, results, sizeof table);
        narrow_16(y, look_up_int4(x, table), round % 2);
        SAME(y, expected, sizeof y, round);
    }
}
#endif

TRY(fence_stores, fence_stores()) /* a thread sees its own stores without a fence, too */

/* One wrong store among right ones, in every lane and place. */
static void try_join_checks(void)
{
    float good[CHUNK] = {1.0f};
    _Alignas(64) unsigned char y[MOST_BYTES];
    _Alignas(64) unsigned char expected[MOST_BYTES];

    for (size_t round = 0; round < 4 * CHUNK; round++) {
        const bool floats = round % 2;
        const size_t bytes = floats ? sizeof good : CHUNK;
        float bad[CHUNK] = {0};

        bad[round / 4] = npuq_ref_from_bits(round % 4 < 2 ? 0xFFFFFFFFu : 0x7F800000u);
        for (size_t i = 0; i < CHUNK; i++) {
            if (floats) {
                npuq_ref_store_float(expected, NPUQ_REF_FLOAT32, i, bad[i]);
            } else {
                npuq_ref_store(expected, NPUQ_REF_INT8, i, bad[i]);
            }
        }
        store_check all = start_check();
        bool right = is_fast_path_ok(all, floats);
        assert_true(right);
        for (size_t k = 0; k < 3; k++) {
            const vchunk t = chunk_load_f32(k == round % 3 ? bad : good);
            const store_check c = store(floats ? NPUQ_TYPE_FLOAT32 : NPUQ_TYPE_INT8, y, t, CHUNK, false, FULL);
            all = round % 5 < 2 ? join_checks(all, c, floats) : join_checks(c, all, floats);
            right &= k != round % 3 || memcmp(y, expected, bytes) == 0;
            assert_true(right || !is_fast_path_ok(all, floats));
        }
    }
}

#define try_start_check     try_join_checks
#define try_is_fast_path_ok try_join_checks

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

/* Values unchanged, without signs, with signs, and with another sign in one place. */
enum { SIGNS = 4 };

static uint32_t with_sign(uint32_t bits, uint32_t sign_bit, size_t signs, bool other)
{
    return signs == 0 ? bits : ((signs == 1) != (signs == 3 && other)) ? bits & ~sign_bit : bits | sign_bit;
}

static void see_range(row_range range, npuq_ref_range expected, size_t round)
{
    npuq_ref_range got = npuq_ref_range_empty();

    widen_row_range(range, &got.hi, &got.lo);
    SAME(&got, &expected, sizeof got, round);
}

static void try_vrange_join(void)
{
    uint32_t bits[CHUNK];
    vf v[4];

    for (size_t round = 0; round < SIGNS * ROUNDS; round++) {
        npuq_ref_range expected = npuq_ref_range_empty();
        const size_t one = test_below(CHUNK);
        bool any[2] = {false, false};

        fill(round / SIGNS, bits);
        for (size_t i = 0; i < CHUNK; i++) {
            bits[i] = with_sign(bits[i], 0x80000000u, round % SIGNS, i == one);
            any[bits[i] >> 31] = true;
            expected = npuq_ref_range_with(expected, npuq_ref_from_bits(bits[i]));
        }
        memcpy(v, bits, sizeof v);
        vrange range = vrange_of(v[0]);
        bool mixed = false;
        for (size_t i = 1; i < 4; i++) {
            mixed = vrange_has_mixed_signs(range);
            range = vrange_join(range, vrange_of(v[i]), mixed);
        }
        see_range(vrange_reduce(range, mixed), expected, round);
        assert_true(vrange_has_mixed_signs(range) || !any[0] || !any[1]);
    }
}

#define try_vrange_of              try_vrange_join
#define try_vrange_has_mixed_signs try_vrange_join
#define try_vrange_reduce          try_vrange_join

static void try_hranges(npuq_ref_dtype dtype)
{
    uint16_t halves[4 * CHUNK];
    int32_t bits[4];

    for (size_t round = 0; round < SIGNS * 2 * HALVES; round++) {
        npuq_ref_range expected = npuq_ref_range_empty();
        uint16_t extremes[4] = {0};
        const size_t one = test_below(4 * CHUNK);
        bool any[2] = {false, false};

        for (size_t i = 0; i < 4; i++) { /* neighbours, or now and then random elements */
            fill_x(halves + i * CHUNK, dtype, CHUNK * sizeof *halves, test_one_in(4) ? HALVES : round / SIGNS);
        }
        for (size_t i = 0; i < 4 * CHUNK; i++) {
            halves[i] = (uint16_t)with_sign(halves[i], 0x8000, round % SIGNS, i == one);
            any[halves[i] >> 15] = true;
            expected = npuq_ref_range_with(expected, npuq_ref_load(halves, dtype, i));
        }
        hrange range = hrange_of(chunk_load_halves(halves).v[0]);
        bool mixed = false;
        for (size_t i = 1; i < 8; i++) {
            mixed = hrange_has_mixed_signs(range);
            range = hrange_join(range, hrange_of(chunk_load_halves(halves + i / 2 * CHUNK).v[i % 2]), mixed);
        }
        hrange_reduce(range, extremes);
        for (size_t i = 0; i < 4; i++) {
            const float widened = npuq_ref_load(extremes, dtype, i);
            memcpy(&bits[i], &widened, sizeof widened);
        }
        see_range(mixed ? make_mixed_row_range(bits[0], bits[1]) : make_row_range(bits[0], bits[1], bits[2], bits[3]),
                  expected, round);
        assert_true(hrange_has_mixed_signs(range) || !any[0] || !any[1]);
    }
}

static void try_hrange_join(void)
{
    try_hranges(NPUQ_REF_FLOAT16);
    try_hranges(NPUQ_REF_BFLOAT16);
}

#define try_hrange_of              try_hrange_join
#define try_hrange_has_mixed_signs try_hrange_join
#define try_hrange_reduce          try_hrange_join

#ifdef FLOAT_RANGES
static void try_frange_with(void)
{
    float t[2 * CHUNK];

    for (size_t round = 0; round < SIGNS * ROUNDS; round++) {
        npuq_ref_range expected = npuq_ref_range_with(npuq_ref_range_with(npuq_ref_range_empty(), 0.0f), -0.0f);
        frange floats = frange_of_mixed_signs();
        vrange range = vrange_join(vrange_of(v_set(0.0f)), vrange_of(v_set(-0.0f)), false);

        assert_true(vrange_has_mixed_signs(range));
        for (size_t k = 0; k < 2; k++) {
            fill_x(t + k * CHUNK, NPUQ_REF_FLOAT32, CHUNK * sizeof *t, round / SIGNS + k);
            for (size_t i = k * CHUNK; i < (k + 1) * CHUNK; i++) {
                t[i] = npuq_ref_from_bits(with_sign(npuq_ref_to_bits(t[i]), 0x80000000u, round % SIGNS, i % 7 == 0));
                expected = npuq_ref_range_with(expected, t[i]);
            }
            floats = frange_with(floats, chunk_load_f32(t + k * CHUNK));
        }
        if (frange_is_exact(floats)) {
            see_range(vrange_reduce(vrange_join(range, vrange_of_floats(floats), true), true), expected, round);
        } else {
            assert_false(are_ordinary(t) && are_ordinary(t + CHUNK));
        }
    }
}

#define try_frange_of_mixed_signs try_frange_with
#define try_frange_is_exact       try_frange_with
#define try_vrange_of_floats      try_frange_with
#endif

/* ---- the words of trans_quant_param ----------------------------------------------------------------------------- */

static void try_words(bool offset)
{
    uint32_t bits[CHUNK];
    uint32_t expected[LANES];

    for (size_t round = 0; round < ROUNDS; round++) {
        fill(round, bits);
        for (size_t at = 0; at < CHUNK; at += LANES) {
            for (size_t i = 0; i < LANES; i++) {
                const uint64_t word = npuq_ref_pack(bits[at + i], npuq_ref_from_bits(bits[at + i]), true);
                expected[i] = offset ? (uint32_t)(word >> 37 & 0x1FF) : (uint32_t)word;
            }
            const vu got = offset ? (vu)round_offset((vf)vector_at(bits + at, 0)) & 0x1FF
                                  : round_scales(vector_at(bits + at, 0)) & ~0x1FFFu;
            SAME(&got, expected, sizeof got, round);
        }
    }
}

TRY(round_offset, try_words(true))

TRY(round_scales, try_words(false))

static void try_put_words(void)
{
    uint32_t bits[CHUNK];
    uint64_t got[LANES];
    uint64_t expected[LANES];

    for (size_t round = 0; round < 100; round++) {
        fill(FIRST_RANDOM + round, bits);
        for (size_t i = 0; i < LANES; i++) {
            expected[i] = (uint64_t)bits[LANES + i] << 32 | bits[i];
        }
        put_words(got, vector_at(bits, 0), vector_at(bits, 1));
        SAME(got, expected, sizeof got, round);
    }
}

/* A word of vec_required.h without a try_ function is a compile error, and so is a try_ function without a word. */
void TRY_WORDS(void)
{
#define WORD(type, name, parameters) {#name, try_##name},
    static const struct {
        const char *name;
        void (*try)(void);
    } all[] = {
#include "simd/vec_required.h"
    };

    memory = test_guarded_make(MEMORY, true, 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        vocabulary_word = all[i].name;
        test_reseed(i);
        all[i].try();
    }
    test_guarded_free(&memory);
}

#else /* the program */

const char *vocabulary_word = "no word";

#define DO(ID, name) void try_words_##name(void);
VOCABULARIES
#undef DO

static void describe(char *line, size_t size, const char *what)
{
    (void)snprintf(line, size, "%s: %s, %s", npuq_backend_name(npuq_active_backend()), vocabulary_word, what);
}

static void test_words(void **state)
{
#define DO(ID, name) {NPUQ_BACKEND_##ID, try_words_##name},
    static const struct {
        npuq_backend backend;
        void (*try_words)(void);
    } vocabularies[] = {VOCABULARIES};

    (void)state;
    test_describe_faults(describe);
    FOR_EACH_BACKEND()
    {
        for (size_t i = 0; i < sizeof vocabularies / sizeof vocabularies[0]; i++) {
            if (vocabularies[i].backend == npuq_active_backend()) {
                vocabularies[i].try_words();
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words)};

    test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
