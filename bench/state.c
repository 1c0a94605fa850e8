/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#include <npuquant/npuquant.h>

#include "plan/fp_state.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
enum { HAS_FLUSHING = true };
/* Raises the flag of inexact results, as any computation does. */
static void set_flushing(bool flushing)
{
    _mm_setcsr(flushing ? 0x9FE0 : 0x1FA0);
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

/* A whole call with inexact products: the slow step is not the load of the register, but the first flag raised after
 * the load. */
struct call {
    bool flushing;
    npuq_tensor x;
    npuq_tensor scale;
    npuq_tensor offset;
    npuq_tensor y;
};

static void prepare(const void *context)
{
    const struct call *call = context;

    set_flushing(call->flushing);
}

static void run(const void *context)
{
    const struct call *call = context;

    (void)npuq_quantize(&call->x, &call->scale, &call->offset, -1, false, &call->y, NULL);
}

static void run_state(const void *context)
{
    const npuq_fp_state caller = npuq_fp_enter();

    (void)context;
    npuq_fp_leave(&caller);
}

struct state_cost state_cost(const struct timing *timing)
{
    static float x[128];
    static int8_t y[128];
    static float parameter = 3.0F;
    const int64_t n = 128;
    const int64_t one = 1;
    struct call calls[2] = {{.x = npuq_tensor_contiguous(x, NPUQ_FLOAT32, 1, &n),
                             .scale = npuq_tensor_contiguous(&parameter, NPUQ_FLOAT32, 1, &one),
                             .offset = npuq_tensor_contiguous(&parameter, NPUQ_FLOAT32, 1, &one),
                             .y = npuq_tensor_contiguous(y, NPUQ_INT8, 1, &n)}};
    struct contestant contestants[3];
    struct state_cost cost = {0};

    for (int i = 0; i < 128; i++) {
        x[i] = (float)i / 7.0F;
    }
    calls[1] = calls[0];
    calls[1].flushing = true;
    for (int i = 0; i < 2; i++) {
        contestants[i] = (struct contestant){.prepare = prepare, .run = run, .context = &calls[i]};
    }
    contestants[2] = (struct contestant){.prepare = prepare, .run = run_state, .context = &calls[0]};
    const int rounds = timing_run(timing, contestants, 3);
    cost.usual_ns = statistics_of(contestants[0].samples, rounds).median;
    cost.flushing_ns = HAS_FLUSHING ? statistics_of(contestants[1].samples, rounds).median : 0;
    cost.call_ns = statistics_of(contestants[2].samples, rounds).median;
    set_flushing(false);
    return cost;
}
