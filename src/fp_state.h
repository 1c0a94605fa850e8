/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floating-point state that the arithmetic needs: round to nearest-even, no flushing of subnormals, no traps, and
 * on x87 full precision. Each task enters this state on its own thread, and restores the caller's, sticky flags
 * included. Operands must be read from memory after entering: a compiler may compute earlier with values in registers.
 */
#ifndef NPUQ_FP_STATE_H
#define NPUQ_FP_STATE_H

#include <stdint.h>

#if defined(__arm__) && defined(__ARM_FP) && defined(__GNUC__)

/* With NPUQ_PLAIN_C, too: glibc's <fenv.h> does not set whether subnormals are flushed, and newlib's sets nothing. */
#ifdef __clang__
#define NPUQ_VFP_FLAGS "memory"
#else
#define NPUQ_VFP_FLAGS "memory", "vfpcc"
#endif

typedef struct npuq_fp_state {
    uint32_t fpscr;
} npuq_fp_state;

static inline npuq_fp_state npuq_fp_enter(void)
{
    npuq_fp_state caller;
#ifndef __ARM_FEATURE_MVE
    const uint32_t plain = 0; /* nearest, no FZ, no traps, NaN payloads kept */
#else
    const uint32_t plain = 0x40000; /* the same, and LTPSIZE 4, so that vector instructions compute every lane */
#endif

    __asm__ volatile("vmrs %0, fpscr" : "=r"(caller.fpscr) : : "memory");
    __asm__ volatile("vmsr fpscr, %0" : : "r"(plain) : NPUQ_VFP_FLAGS);
    return caller;
}

static inline void npuq_fp_leave(const npuq_fp_state *caller)
{
    __asm__ volatile("vmsr fpscr, %0" : : "r"(caller->fpscr) : NPUQ_VFP_FLAGS);
}

#elif defined(NPUQ_PLAIN_C)

#define NPUQ_WITH_FENV

#elif defined(__x86_64__) || defined(__i386__)

/* SSE arithmetic obeys mxcsr, x87 arithmetic its own control word; a build uses one of them. */
#if defined(__SSE2_MATH__) || defined(__x86_64__)

#include <xmmintrin.h>

/* After all earlier stores. An intrinsic: analysers do not see what assembly writes. */
static inline uint32_t npuq_read_mxcsr(void)
{
    __asm__ volatile("" : : : "memory");
    return _mm_getcsr();
}

typedef struct npuq_fp_state {
    uint32_t mxcsr;
} npuq_fp_state;

/* This state has all flags raised already: an operation that raises a flag takes far longer than to load mxcsr. Every
 * call has inexact results, so their flag counts in the decision to load. */
static inline npuq_fp_state npuq_fp_enter(void)
{
    const uint32_t plain = 0x1FA0; /* all masked, nearest, no FTZ, no DAZ; inexact */
    const uint32_t flags = 0x1F;   /* the others */
    const uint32_t loaded = plain | flags;
    const npuq_fp_state caller = {npuq_read_mxcsr()};

    if ((caller.mxcsr & ~flags) != plain) {
        __asm__ volatile("ldmxcsr %0" : : "m"(loaded) : "memory");
    }
    return caller;
}

static inline void npuq_fp_leave(const npuq_fp_state *caller)
{
    if (npuq_read_mxcsr() != caller->mxcsr) {
        __asm__ volatile("ldmxcsr %0" : : "m"(caller->mxcsr) : "memory");
    }
}

#else

typedef struct npuq_fp_state {
    struct {
        uint32_t words[7]; /* the x87 environment as fnstenv stores it */
    } x87;
} npuq_fp_state;

/* Both empty the stack of registers: the compiler must have nothing on it. */
#define NPUQ_X87_STACK "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"

static inline npuq_fp_state npuq_fp_enter(void)
{
    npuq_fp_state caller;

    /* nearest, 64-bit precision, masked */
    __asm__ volatile("fnstenv %0\n\tfninit" : "=m"(caller.x87) : : "memory", NPUQ_X87_STACK);
    return caller;
}

static inline void npuq_fp_leave(const npuq_fp_state *caller)
{
    __asm__ volatile("fldenv %0" : : "m"(caller->x87) : "memory", NPUQ_X87_STACK);
}

#endif

#elif defined(__aarch64__)

typedef struct npuq_fp_state {
    uint64_t control;
    uint64_t flags;
} npuq_fp_state;

static inline npuq_fp_state npuq_fp_enter(void)
{
    npuq_fp_state caller;
    const uint64_t plain = 0; /* nearest, no FZ, no traps, NaN payloads kept */

    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(caller.control), "=r"(caller.flags) : : "memory");
    if (caller.control != plain) {
        __asm__ volatile("msr fpcr, %0" : : "r"(plain) : "memory");
    }
    return caller;
}

static inline void npuq_fp_leave(const npuq_fp_state *caller)
{
    if (caller->control != 0) {
        __asm__ volatile("msr fpcr, %0" : : "r"(caller->control) : "memory");
    }
    __asm__ volatile("msr fpsr, %0" : : "r"(caller->flags) : "memory");
}

#else

#define NPUQ_WITH_FENV

#endif

#ifdef NPUQ_WITH_FENV

#include <fenv.h>

#ifdef FE_TONEAREST

typedef struct npuq_fp_state {
    fenv_t environment;
} npuq_fp_state;

static inline npuq_fp_state npuq_fp_enter(void)
{
    npuq_fp_state caller;

    (void)feholdexcept(&caller.environment);
#ifdef NPUQ_PLAIN_C
    (void)fesetenv(FE_DFL_ENV); /* with glibc and musl: no FTZ, no DAZ */
#endif
    (void)fesetround(FE_TONEAREST);
    return caller;
}

static inline void npuq_fp_leave(const npuq_fp_state *caller)
{
    (void)fesetenv(&caller->environment);
}

#else

/* Such a C library knows no other rounding, because the processor has no floating point. */
typedef struct npuq_fp_state {
    char none;
} npuq_fp_state;

static inline npuq_fp_state npuq_fp_enter(void)
{
    const npuq_fp_state caller = {0};

    return caller;
}

static inline void npuq_fp_leave(const npuq_fp_state *caller)
{
    (void)caller;
}

#endif

#endif

#endif
