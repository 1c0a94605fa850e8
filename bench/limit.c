/* SPDX-License-Identifier: BSD-3-Clause */
#include "limit.h"

#include <npuquant/npuquant.h>

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

struct limit {
    const char *name;
    void (*stream)(const unsigned char *in, unsigned char *out, size_t in_size, size_t out_size,
                   const struct bench_way *way);
    void (*read)(const unsigned char *in, size_t size);
};

/* Four rows are streamed together; out_size is the size of one. */
enum { ROW = 4096, ROWS = 4 };

/* Loops over R vectors in and W vectors out. A vector of the result is the exclusive or of its R inputs, so that the
 * compiler keeps every load; this costs less than loading. LANES rows lie in_size and out_size bytes apart. */
#define STREAM_LOOP(VEC, LOAD, XOR, STORE, R, W, PREFETCH, LANES)                                                      \
    for (size_t i = 0; i < steps; i++) {                                                                               \
        for (size_t lane = 0; lane < (LANES); lane++) {                                                                \
            const unsigned char *from = in + lane * in_size;                                                           \
            unsigned char *to = out + lane * out_size;                                                                 \
            for (size_t j = 0; j < VECTORS(W) / (W); j++) {                                                            \
                VEC v = LOAD(from);                                                                                    \
                for (size_t k = 1; k < (R); k++) {                                                                     \
                    v = XOR(v, LOAD(from + k * sizeof(VEC)));                                                          \
                }                                                                                                      \
                if (PREFETCH) {                                                                                        \
                    for (size_t k = 0; k < (R) * sizeof(VEC); k += 64) {                                               \
                        __builtin_prefetch(from + distance + k);                                                       \
                    }                                                                                                  \
                }                                                                                                      \
                for (size_t k = 0; k < (W); k++) {                                                                     \
                    STORE(to + k * sizeof(VEC), v);                                                                    \
                }                                                                                                      \
                from += (R) * sizeof(VEC);                                                                             \
                to += (W) * sizeof(VEC);                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        in += VECTORS(W) / (W) * (R) * sizeof(VEC);                                                                    \
        out += VECTORS(W) * sizeof(VEC);                                                                               \
    }

#define STREAM_STORES(VEC, LOAD, XOR, STORE, R, W)                                                                     \
    if (way->four_rows) {                                                                                              \
        STREAM_LOOP(VEC, LOAD, XOR, STORE, R, W, true, ROWS)                                                           \
    } else if (distance > 0) {                                                                                         \
        STREAM_LOOP(VEC, LOAD, XOR, STORE, R, W, true, 1)                                                              \
    } else {                                                                                                           \
        STREAM_LOOP(VEC, LOAD, XOR, STORE, R, W, false, 1)                                                             \
    }

#define STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, R, W)                                                            \
    if (in_size * (W) == out_size * (R)) {                                                                             \
        const size_t steps = (out_size + sizeof(VEC) * VECTORS(W) - 1) / (sizeof(VEC) * VECTORS(W));                   \
        if (way->non_temporal) {                                                                                       \
            STREAM_STORES(VEC, LOAD, XOR, NT_STORE, R, W)                                                              \
        } else {                                                                                                       \
            STREAM_STORES(VEC, LOAD, XOR, STORE, R, W)                                                                 \
        }                                                                                                              \
        return;                                                                                                        \
    }

#define VECTORS(W) ((size_t)((W) > 2 ? (W) : 2)) /* out of a step */

#define DEFINE_LIMIT(NAME, TARGET, VEC, LOAD, XOR, STORE, NT_STORE)                                                    \
    TARGET static void stream_##NAME(const unsigned char *in, unsigned char *out, size_t in_size, size_t out_size,     \
                                     const struct bench_way *way)                                                      \
    {                                                                                                                  \
        const size_t distance = way->prefetch;                                                                         \
                                                                                                                       \
        STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, 8, 1)                                                            \
        STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, 4, 1)                                                            \
        STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, 2, 1)                                                            \
        STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, 1, 1)                                                            \
        STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, 1, 2)                                                            \
        STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, 1, 4)                                                            \
        STREAM_RATIO(VEC, LOAD, XOR, STORE, NT_STORE, 1, 8)                                                            \
    }                                                                                                                  \
                                                                                                                       \
    TARGET static void read_##NAME(const unsigned char *in, size_t size)                                               \
    {                                                                                                                  \
        const size_t steps = (size + 4 * sizeof(VEC) - 1) / (4 * sizeof(VEC));                                         \
        VEC a = LOAD(in), b = a, c = a, d = a;                                                                         \
                                                                                                                       \
        for (size_t i = 0; i < steps; i++, in += 4 * sizeof(VEC)) {                                                    \
            a = XOR(a, LOAD(in));                                                                                      \
            b = XOR(b, LOAD(in + sizeof(VEC)));                                                                        \
            c = XOR(c, LOAD(in + 2 * sizeof(VEC)));                                                                    \
            d = XOR(d, LOAD(in + 3 * sizeof(VEC)));                                                                    \
        }                                                                                                              \
        unsigned char sink[sizeof(VEC)];                                                                               \
        STORE(sink, XOR(XOR(a, b), XOR(c, d)));                                                                        \
        __asm__ volatile("" : : "r"(sink) : "memory");                                                                 \
    }

static uint64_t load_word(const unsigned char *p)
{
    return *(const uint64_t *)(const void *)p;
}

static void store_word(unsigned char *p, uint64_t v)
{
    __builtin_memcpy(p, &v, sizeof v);
}

#define XOR_WORD(a, b) ((a) ^ (b))
DEFINE_LIMIT(c, , uint64_t, load_word, XOR_WORD, store_word, store_word)

#if defined(__x86_64__)

#define LOAD256(p)        _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE256(p, v)    _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define NT_STORE256(p, v) _mm256_stream_si256((__m256i *)(void *)(p), v)
#define LOAD512(p)        _mm512_loadu_si512((const void *)(p))
#define STORE512(p, v)    _mm512_storeu_si512((void *)(p), v)
#define NT_STORE512(p, v) _mm512_stream_si512((__m512i *)(void *)(p), v)

DEFINE_LIMIT(avx2, __attribute__((target("avx2"))), __m256i, LOAD256, _mm256_xor_si256, STORE256, NT_STORE256)
DEFINE_LIMIT(avx512, __attribute__((target("avx512f"))), __m512i, LOAD512, _mm512_xor_si512, STORE512, NT_STORE512)

#elif defined(__aarch64__)

static uint8x16_t load_neon(const unsigned char *p)
{
    return vld1q_u8(p);
}

static void store_neon(unsigned char *p, uint8x16_t v)
{
    vst1q_u8(p, v);
}

/* One instruction stores a pair of registers: here, the two halves of the vector. */
static void nt_store_neon(unsigned char *p, uint8x16_t v)
{
    const uint64x2_t w = vreinterpretq_u64_u8(v);

    __asm__ volatile("stnp %0, %1, [%2]" : : "r"(vgetq_lane_u64(w, 0)), "r"(vgetq_lane_u64(w, 1)), "r"(p) : "memory");
}

DEFINE_LIMIT(neon, , uint8x16_t, load_neon, veorq_u8, store_neon, nt_store_neon)

#endif

static struct limit limit = {"c", stream_c, read_c};
static bool has_non_temporal;

const char *bench_limit_choose(void)
{
#if defined(__x86_64__)
    if (npuq_backend_available(NPUQ_BACKEND_AVX512) || __builtin_cpu_supports("avx512f")) {
        limit = (struct limit){"avx512", stream_avx512, read_avx512};
        has_non_temporal = true;
    } else if (npuq_backend_available(NPUQ_BACKEND_AVX2) || __builtin_cpu_supports("avx2")) {
        limit = (struct limit){"avx2", stream_avx2, read_avx2};
        has_non_temporal = true;
    }
#elif defined(__aarch64__)
    limit = (struct limit){"neon", stream_neon, read_neon};
    has_non_temporal = true;
#endif
    return limit.name;
}

bool bench_has_non_temporal(void)
{
    return has_non_temporal;
}

void bench_stream(const void *in, size_t in_size, void *out, size_t out_size, const struct bench_way *way)
{
    const struct bench_way rest = {.non_temporal = way->non_temporal, .prefetch = way->prefetch};
    const size_t blocks = way->four_rows ? out_size / (ROWS * ROW) : 0;
    const size_t in_row = out_size > 0 ? in_size * ROW / out_size : 0;
    const size_t done = blocks * ROWS;

    for (size_t row = 0; row < done; row += ROWS) {
        limit.stream((const unsigned char *)in + row * in_row, (unsigned char *)out + row * ROW, in_row, ROW, way);
    }
    limit.stream((const unsigned char *)in + done * in_row, (unsigned char *)out + done * ROW, in_size - done * in_row,
                 out_size - done * ROW, &rest);
#if defined(__x86_64__)
    if (way->non_temporal) {
        _mm_sfence();
    }
#endif
}

void bench_read(const void *in, size_t size)
{
    if (size > 0) {
        limit.read(in, size);
    }
}
