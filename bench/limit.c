/* SPDX-License-Identifier: BSD-3-Clause */
#include "limit.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Four rows are streamed together; out_size is the size of one. */
enum { ROW = 4096, ROWS = 4 };

struct limit {
    const char *name;
    void (*stream)(const unsigned char *in, unsigned char *out, size_t in_size, size_t out_size,
                   const struct bench_way *way);
    void (*read)(const unsigned char *in, size_t size);
    bool has_non_temporal;
};

/* Loops over R vectors in and W vectors out. A vector of the result is the exclusive or of its R inputs, so that the
 * compiler keeps every load; this costs less than loading. LANES rows lie in_size and out_size bytes apart. */
#define STREAM_LOOP(VEC, STORE, R, W, PREFETCH, LANES)                                                                 \
    for (size_t i = 0; i < steps; i++) {                                                                               \
        for (size_t lane = 0; lane < (LANES); lane++) {                                                                \
            const VEC *from = (const VEC *)(const void *)(in + lane * in_size);                                        \
            VEC *to = (VEC *)(void *)(out + lane * out_size);                                                          \
            for (size_t j = 0; j < VECTORS(W) / (W); j++, from += (R), to += (W)) {                                    \
                VEC v = from[0];                                                                                       \
                for (size_t k = 1; k < (R); k++) {                                                                     \
                    v ^= from[k];                                                                                      \
                }                                                                                                      \
                for (size_t k = 0; (PREFETCH) && k < (R) * sizeof(VEC); k += 64) {                                     \
                    __builtin_prefetch((const char *)from + distance + k);                                             \
                }                                                                                                      \
                for (size_t k = 0; k < (W); k++) {                                                                     \
                    STORE(to + k, v);                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        in += VECTORS(W) / (W) * (R) * sizeof(VEC);                                                                    \
        out += VECTORS(W) * sizeof(VEC);                                                                               \
    }

#define STREAM_STORES(VEC, STORE, R, W)                                                                                \
    if (way->four_rows) {                                                                                              \
        STREAM_LOOP(VEC, STORE, R, W, true, ROWS)                                                                      \
    } else if (distance > 0) {                                                                                         \
        STREAM_LOOP(VEC, STORE, R, W, true, 1)                                                                         \
    } else {                                                                                                           \
        STREAM_LOOP(VEC, STORE, R, W, false, 1)                                                                        \
    }

#define STREAM_RATIO(VEC, NT_STORE, R, W)                                                                              \
    if (in_size * (W) == out_size * (R)) {                                                                             \
        const size_t steps = (out_size + sizeof(VEC) * VECTORS(W) - 1) / (sizeof(VEC) * VECTORS(W));                   \
        if (way->non_temporal) {                                                                                       \
            STREAM_STORES(VEC, NT_STORE, R, W)                                                                         \
        } else {                                                                                                       \
            STREAM_STORES(VEC, STORE, R, W)                                                                            \
        }                                                                                                              \
        return;                                                                                                        \
    }

#define VECTORS(W)  ((size_t)((W) > 2 ? (W) : 2)) /* out of a step */
#define STORE(p, v) (*(p) = (v))

/* Vectors of SIZE bytes, at any address. */
#define DEFINE_LIMIT(NAME, TARGET, SIZE, NT_STORE)                                                                     \
    typedef uint64_t vec_##NAME __attribute__((vector_size(SIZE), aligned(1), may_alias));                             \
                                                                                                                       \
    TARGET static void stream_##NAME(const unsigned char *in, unsigned char *out, size_t in_size, size_t out_size,     \
                                     const struct bench_way *way)                                                      \
    {                                                                                                                  \
        const size_t distance = way->prefetch;                                                                         \
                                                                                                                       \
        STREAM_RATIO(vec_##NAME, NT_STORE, 8, 1)                                                                       \
        STREAM_RATIO(vec_##NAME, NT_STORE, 4, 1)                                                                       \
        STREAM_RATIO(vec_##NAME, NT_STORE, 2, 1)                                                                       \
        STREAM_RATIO(vec_##NAME, NT_STORE, 1, 1)                                                                       \
        STREAM_RATIO(vec_##NAME, NT_STORE, 1, 2)                                                                       \
        STREAM_RATIO(vec_##NAME, NT_STORE, 1, 4)                                                                       \
        STREAM_RATIO(vec_##NAME, NT_STORE, 1, 8)                                                                       \
    }                                                                                                                  \
                                                                                                                       \
    TARGET static void read_##NAME(const unsigned char *in, size_t size)                                               \
    {                                                                                                                  \
        const size_t steps = (size + 4 * (SIZE)-1) / (4 * (SIZE));                                                     \
        const vec_##NAME *from = (const vec_##NAME *)(const void *)in;                                                 \
        vec_##NAME a = *from, b = a, c = a, d = a;                                                                     \
                                                                                                                       \
        for (size_t i = 0; i < steps; i++, from += 4) {                                                                \
            a ^= from[0];                                                                                              \
            b ^= from[1];                                                                                              \
            c ^= from[2];                                                                                              \
            d ^= from[3];                                                                                              \
        }                                                                                                              \
        const vec_##NAME sink = (a ^ b) ^ (c ^ d);                                                                     \
        __asm__ volatile("" : : "m"(sink));                                                                            \
    }

#if defined(__x86_64__)

#define NT_STORE256(p, v) _mm256_stream_si256((__m256i *)(void *)(p), (__m256i)(v))
#define NT_STORE512(p, v) _mm512_stream_si512((__m512i *)(void *)(p), (__m512i)(v))
DEFINE_LIMIT(avx2, __attribute__((target("avx2"))), 32, NT_STORE256)
DEFINE_LIMIT(avx512, __attribute__((target("avx512f"))), 64, NT_STORE512)

#elif defined(__aarch64__)

/* One instruction stores a pair of registers: here, the two halves of the vector. */
#define NT_STORE(p, v) __asm__ volatile("stnp %0, %1, [%2]" : : "r"((v)[0]), "r"((v)[1]), "r"(p) : "memory")
DEFINE_LIMIT(neon, , 16, NT_STORE)

#endif

DEFINE_LIMIT(word, , 8, STORE)
static struct limit limit = {"c", stream_word, read_word, false};

const char *bench_limit_choose(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        limit = (struct limit){"avx512", stream_avx512, read_avx512, true};
    } else if (__builtin_cpu_supports("avx2")) {
        limit = (struct limit){"avx2", stream_avx2, read_avx2, true};
    }
#elif defined(__aarch64__)
    limit = (struct limit){"neon", stream_neon, read_neon, true};
#endif
    return limit.name;
}

bool bench_has_non_temporal(void)
{
    return limit.has_non_temporal;
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
