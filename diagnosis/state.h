/* SPDX-License-Identifier: BSD-3-Clause */
/* The floating-point state of a diagnosis: that of the library, and more settings if float64 needs them. The caller's
 * state does not matter. */
#ifndef NPUQUANT_STATE_H
#define NPUQUANT_STATE_H

#include <fp_state.h>

#include <fenv.h>

struct state {
    npuq_fp_state fp;
    int rounding;
};

static inline struct state enter_state(void)
{
    const int rounding = fegetround();
    const struct state caller = {npuq_fp_enter(), rounding};

    /* On i386, glibc's nearbyint() rounds as the x87 unit. Where SSE computes, npuq_fp_enter() leaves that alone. */
    (void)fesetround(FE_TONEAREST);
#if defined(__i386__) && !defined(__SSE2_MATH__)
    /* nearest, 53-bit precision, masked: a float64 result is rounded once, and rounding it again to float32 does no
     * harm to a sum, product or quotient of float32 */
    const uint16_t control = 0x027F;
    __asm__ volatile("fldcw %0" : : "m"(control) : "memory");
#endif
    return caller;
}

static inline void leave_state(const struct state *caller)
{
    (void)fesetround(caller->rounding);
    npuq_fp_leave(&caller->fp);
}

#endif
