/* SPDX-License-Identifier: BSD-3-Clause */
/* The floating-point states that a host may have set: control bits and sticky flags of this machine. */
#ifndef NPUQ_TESTS_FP_STATES_H
#define NPUQ_TESTS_FP_STATES_H

#include <fenv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct fp_state {
    uint64_t control;
    uint64_t flags;
} fp_state;

#if defined(__x86_64__) || defined(__i386__)

/* SSE obeys mxcsr: flags in the low six bits, DAZ 6, masks from 7, rounding at 13, FTZ 15. The upper half is the
 * control word of the x87 unit: masks in the low six bits, precision at 8 (0: 24 bits, 2: 53, 3: 64), rounding at 10.
 * Its status word has its flags. A build uses one unit; the call must restore both. */
#define STATE(mxcsr, x87) ((uint64_t)(x87) << 32 | (mxcsr))

static const uint64_t controls[] = {
    STATE(0x1F80, 0x037F),                                               /* the usual one */
    STATE(0x3F80, 0x037F), STATE(0x5F80, 0x037F), STATE(0x7F80, 0x037F), /* down, up, to zero */
    STATE(0x9F80, 0x037F), STATE(0x1FC0, 0x037F), STATE(0x9FC0, 0x037F), /* FTZ, DAZ, both */
    STATE(0x1F00, 0x037F), STATE(0x1E80, 0x037F), STATE(0x1D80, 0x037F), /* each exception unmasked */
    STATE(0x1B80, 0x037F), STATE(0x1780, 0x037F), STATE(0x0F80, 0x037F),
    STATE(0x0000, 0x037F), STATE(0xE040, 0x037F), STATE(0xFFC0, 0x037F), /* all of them; and much at once */
    STATE(0x1F80, 0x007F), STATE(0x1F80, 0x027F),                        /* x87: 24 and 53 bits */
    STATE(0x1F80, 0x077F), STATE(0x1F80, 0x0B7F), STATE(0x1F80, 0x0F7F), /* down, up, to zero */
    STATE(0x1F80, 0x037E), STATE(0x1F80, 0x037D), STATE(0x1F80, 0x037B), /* each exception unmasked */
    STATE(0x1F80, 0x0377), STATE(0x1F80, 0x036F), STATE(0x1F80, 0x035F),
    STATE(0x1F80, 0x0340), STATE(0x0000, 0x0C40), /* all of them; and much at once */
};
static const uint64_t all_flags = STATE(0x3F, 0x3F);

static inline fp_state get_state(void)
{
    uint32_t mxcsr = 0;
    uint16_t control;
    uint16_t status;

#ifdef __SSE__
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr) : : "memory");
#endif
    __asm__ volatile("fnstcw %0\n\tfnstsw %1" : "=m"(control), "=m"(status) : : "memory");
    return (fp_state){STATE(mxcsr & ~0x3Fu, control & 0x0F7F), STATE(mxcsr & 0x3F, status & 0x3F)};
}

static inline void set_state(fp_state state)
{
    const uint32_t x87_control = (uint32_t)(state.control >> 32);
    const uint32_t x87_flags = (uint32_t)(state.flags >> 32);
    uint32_t environment[7];

#ifdef __SSE__
    const uint32_t mxcsr = (uint32_t)(state.control | state.flags);
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
#endif
    __asm__ volatile("fnstenv %0" : "=m"(environment) : : "memory");
    environment[0] = (environment[0] & 0xFFFF0000u) | x87_control;
    /* The flag of an unmasked exception would trap at the next instruction. */
    environment[1] = (environment[1] & ~(uint32_t)0x80FF) | (x87_flags & x87_control);
    __asm__ volatile("fldenv %0" : : "m"(environment) : "memory");
}

#elif defined(__aarch64__)

/* FPCR: rounding at 22, FZ 24, DN 25, AHP (float16 without infinities) 26, FZ16 19, trap enables from 8; what the
 * machine lacks stays 0. FPSR: QC is 27. */
static const uint64_t controls[] = {
    0,       1u << 22, 2u << 22, 3u << 22, 1u << 24, 1u << 25, 1u << 19, (1u << 24) | (1u << 19),          1u << 26,
    1u << 8, 1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 15, 0x9F00,   (3u << 22) | (7u << 24) | 0x9F00,
};
static const uint64_t all_flags = 0x0800009F;

static inline fp_state get_state(void)
{
    fp_state state;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(state.control), "=r"(state.flags) : : "memory");
    return state;
}

static inline void set_state(fp_state state)
{
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(state.control), "r"(state.flags) : "memory");
}

#elif defined(__arm__) && defined(__ARM_FP)

/* FPSCR: as AArch64's two together. */
static const uint64_t controls[] = {
    0, 1u << 22, 2u << 22, 3u << 22, 1u << 24, 1u << 25, 1u << 26, 0x9F00, (3u << 22) | (7u << 24) | 0x9F00};
static const uint64_t all_flags = 0x9F;

static inline fp_state get_state(void)
{
    uint32_t fpscr;

    __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr) : : "memory");
    return (fp_state){fpscr & 0x07FFFF00u, fpscr & all_flags};
}

static inline void set_state(fp_state state)
{
    __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)(state.control | state.flags)) : "memory");
}

#elif !defined(FE_TONEAREST)

static const uint64_t controls[] = {0}; /* no other is known */
static const uint64_t all_flags = 0;

static inline fp_state get_state(void)
{
    return (fp_state){0, 0};
}

static inline void set_state(fp_state state)
{
    (void)state;
}

#else

static const uint64_t controls[] = {
    FE_TONEAREST,
#ifdef FE_UPWARD
    FE_UPWARD,
#endif
#ifdef FE_DOWNWARD
    FE_DOWNWARD,
#endif
#ifdef FE_TOWARDZERO
    FE_TOWARDZERO,
#endif
};
static const uint64_t all_flags = FE_ALL_EXCEPT;

static inline fp_state get_state(void)
{
    return (fp_state){(uint64_t)fegetround(), (uint64_t)fetestexcept(FE_ALL_EXCEPT)};
}

static inline void set_state(fp_state state)
{
    if (fesetround((int)state.control) != 0) {
        abort();
    }
    (void)feclearexcept(FE_ALL_EXCEPT);
    (void)feraiseexcept((int)state.flags);
}

#endif

enum { STATES = sizeof controls / sizeof controls[0] };

/* A call may neither raise nor clear a flag. */
static const uint64_t flag_sets[] = {0, ~(uint64_t)0, 0x1500000015};
enum { FLAG_SETS = sizeof flag_sets / sizeof flag_sets[0] };

/* State number i with the flags of set f, as the machine stores both. */
static inline fp_state state_of(size_t i, size_t f)
{
    return (fp_state){controls[i % STATES], flag_sets[f % FLAG_SETS] & all_flags};
}

static inline bool is_same_state(fp_state a, fp_state b)
{
    return a.control == b.control && a.flags == b.flags;
}

#endif
