/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#include "walk/fp_state.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
enum { HAS_FLUSHING = true };
static void set_flushing(bool flushing)
{
    _mm_setcsr(flushing ? 0x9FC0 : 0x1F80);
}
#elif defined(__aarch64__)
enum { HAS_FLUSHING = true };
static void set_flushing(bool flushing)
{
    const uint64_t control = flushing ? (uint64_t)1 << 24 : 0;
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}
#else
enum { HAS_FLUSHING = false };
static void set_flushing(bool flushing)
{
    (void)flushing;
}
#endif

/* Enough for the clock and the call of run() to be small beside them. */
enum { PAIRS = 100 };

static void prepare(const void *flushing)
{
    set_flushing(*(const bool *)flushing);
}

static void run(const void *unused)
{
    (void)unused;
    for (int i = 0; i < PAIRS; i++) {
        const npuq_fp_state caller = npuq_fp_enter();
        npuq_fp_leave(&caller);
    }
}

struct state_cost state_cost(const struct timing *timing)
{
    static const bool states[] = {false, true};
    struct contestant contestants[] = {{.prepare = prepare, .run = run, .context = &states[0]},
                                       {.prepare = prepare, .run = run, .context = &states[1]}};
    const int rounds = timing_run(timing, contestants, HAS_FLUSHING ? 2 : 1);
    struct state_cost cost = {statistics_of(contestants[0].samples, rounds).median / (double)PAIRS, 0};

    if (HAS_FLUSHING) {
        cost.flushing_ns = statistics_of(contestants[1].samples, rounds).median / (double)PAIRS;
    }
    set_flushing(false);
    return cost;
}
