/* SPDX-License-Identifier: BSD-3-Clause */
#include "ports.h"

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PORT_NAME(A, ID, name) #name,

const char *port_name(enum port port)
{
    static const char *const names[] = {BENCH_EACH_PORT(PORT_NAME, ) "bfloat16s"};

    return names[port];
}

/* ---- the machine ----------------------------------------------------------------------------------------------- */

typedef void loop(const void *unused);

/* A loop for each port; the one for bfloat16 is missing where the machine has no such instruction. */
struct loops {
    const char *vectors;
    size_t lanes;
    loop *run[PORTS];
};

#if defined(__x86_64__) || defined(__aarch64__)

/* Enough independent chains to hide the latency of an instruction. AVX2 has no registers for more. */
enum { CHAINS = 12, TURNS = 256 };

static _Alignas(64) char memory[CHAINS * 64];

#if defined(__x86_64__)
#define REGISTER "+x"
#else
#define REGISTER "+w"
#endif

/* The compiler takes the value for unknown, and keeps every instruction. */
#define KEEP(v) __asm__ volatile("" : REGISTER(v))

#define STEP_LOAD(ISA, k)     v##k = ((const vf_##ISA *)(const void *)memory)[k];
#define STEP_STORE(ISA, k)    ((vf_##ISA *)(void *)memory)[k] = v##k;
#define STEP_ADD(ISA, k)      v##k = v##k + one;
#define STEP_MULTIPLY(ISA, k) v##k = v##k * one;
#define STEP_INTEGER(ISA, k)  v##k = (vf_##ISA)((vi_##ISA)v##k + (vi_##ISA)one);
#define STEP_CONVERT(ISA, k)  v##k = __builtin_convertvector((vi_##ISA)v##k, vf_##ISA);
#define STEP_SHUFFLE(ISA, k)  v##k = SHUFFLE_##ISA(v##k);
#define STEP_HALF(ISA, k)     v##k = HALF_##ISA(v##k);
#define STEP_BFLOAT16(ISA, k) v##k = BFLOAT16_##ISA(v##k);
#define STEP_ANY(ISA, k)                                                                                               \
    switch ((k) % 4) {                                                                                                 \
    case 0: STEP_ADD(ISA, k) break;                                                                                    \
    case 1: STEP_MULTIPLY(ISA, k) break;                                                                               \
    case 2: STEP_INTEGER(ISA, k) break;                                                                                \
    default: STEP_SHUFFLE(ISA, k)                                                                                      \
    }

#define START(ISA, ID, k) vf_##ISA v##k = one;
#define CHAIN(ISA, ID, k)                                                                                              \
    STEP_##ID(ISA, k);                                                                                                 \
    KEEP(v##k);

#define THREE(DO, A, B, k, l, m) DO(A, B, k) DO(A, B, l) DO(A, B, m)
#define EACH_CHAIN(DO, A, B)                                                                                           \
    THREE(DO, A, B, 0, 1, 2)                                                                                           \
    THREE(DO, A, B, 3, 4, 5)                                                                                           \
    THREE(DO, A, B, 6, 7, 8)                                                                                           \
    THREE(DO, A, B, 9, 10, 11)

#define DEFINE_LOOP(ISA, ID, name)                                                                                     \
    TARGET_##ISA static void ISA##_##ID(const void *unused)                                                            \
    {                                                                                                                  \
        vf_##ISA one = {0};                                                                                            \
        (void)unused;                                                                                                  \
        KEEP(one);                                                                                                     \
        EACH_CHAIN(START, ISA, ID)                                                                                     \
        for (int turn = 0; turn < TURNS; turn++) {                                                                     \
            EACH_CHAIN(CHAIN, ISA, ID)                                                                                 \
            __asm__ volatile("" : : : "memory");                                                                       \
        }                                                                                                              \
    }

#define LOOP_OF(ISA, ID, name) ISA##_##ID,
#define DEFINE_ISA(ISA, LANES)                                                                                         \
    typedef float vf_##ISA __attribute__((vector_size(4 * (LANES)), may_alias));                                       \
    typedef int32_t vi_##ISA __attribute__((vector_size(4 * (LANES)), may_alias));                                     \
    BENCH_EACH_PORT(DEFINE_LOOP, ISA)                                                                                  \
    static const struct loops loops_##ISA = {#ISA, LANES, {BENCH_EACH_PORT(LOOP_OF, ISA)}};

#if defined(__x86_64__)

#define TARGET_avx2     __attribute__((target("avx2,f16c")))
#define SHUFFLE_avx2(v) (vf_avx2) _mm256_packs_epi32((__m256i)v, (__m256i)v)
#define HALF_avx2(v)    (vf_avx2) _mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)v))
DEFINE_ISA(avx2, 8)

#define TARGET_avx512     __attribute__((target("avx512f,avx512bw")))
#define SHUFFLE_avx512(v) (vf_avx512) _mm512_packs_epi32((__m512i)v, (__m512i)v)
#define HALF_avx512(v)    (vf_avx512) _mm512_cvtph_ps(_mm512_castsi512_si256((__m512i)v))
DEFINE_ISA(avx512, 16)

#define TARGET_bf16      __attribute__((target("avx512f,avx512bw,avx512bf16")))
#define BFLOAT16_bf16(v) (vf_bf16) _mm512_cvtne2ps_pbh((__m512)v, (__m512)v)
typedef vf_avx512 vf_bf16;
DEFINE_LOOP(bf16, BFLOAT16, bfloat16s)

static struct loops choose(void)
{
    struct loops chosen = {0};

    if (__builtin_cpu_supports("avx512bw")) {
        chosen = loops_avx512;
        chosen.run[PORT_BFLOAT16] = __builtin_cpu_supports("avx512bf16") ? bf16_BFLOAT16 : NULL;
    } else if (__builtin_cpu_supports("avx2")) {
        chosen = loops_avx2;
    }
    return chosen;
}

#else

#define TARGET_neon
#define SHUFFLE_neon(v) (vf_neon) vuzp1q_s8((int8x16_t)v, (int8x16_t)v)
#define HALF_neon(v)    (vf_neon) vcvt_f32_f16(vget_low_f16((float16x8_t)v))
DEFINE_ISA(neon, 4)

static struct loops choose(void)
{
    return loops_neon;
}

#endif
#else

enum { CHAINS = 1, TURNS = 1 };

static struct loops choose(void)
{
    return (struct loops){0};
}

#endif

static void prepare(const void *unused)
{
    (void)unused;
}

struct ports ports_measure(const struct timing *timing)
{
    static struct contestant contestants[PORTS];
    const struct loops loops = choose();
    struct ports ports = {.vectors = loops.vectors, .lanes = loops.lanes};
    int count = 0;

    for (int p = 0; p < PORTS; p++) {
        if (loops.run[p]) {
            contestants[count++] = (struct contestant){.prepare = prepare, .run = loops.run[p]};
        }
    }
    const int rounds = timing_run(timing, contestants, count);
    for (int p = 0; p < count; p++) {
        ports.per_ns[p] = CHAINS * TURNS / timing_lowest(contestants[p].samples, rounds);
    }
    for (int p = PORT_ADD; p < PORT_ANY; p++) { /* all classes together reach at least the rate of one */
        ports.per_ns[PORT_ANY] = ports.per_ns[p] > ports.per_ns[PORT_ANY] ? ports.per_ns[p] : ports.per_ns[PORT_ANY];
    }
    /* The instruction makes one vector of two. Without the instruction: shift, and, add twice. */
    ports.per_ns[PORT_BFLOAT16] = count == PORTS ? 2 * ports.per_ns[PORT_BFLOAT16] : ports.per_ns[PORT_INTEGER] / 4;
    return ports;
}
