/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator under every floating-point state that a host may have set: the same bytes, and the same state after
 * the call, with its sticky flags. */
#include "calls.h"

#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A state of this machine: control bits and sticky flags. */
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

static fp_state get_state(void)
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

static void set_state(fp_state state)
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

static fp_state get_state(void)
{
    fp_state state;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(state.control), "=r"(state.flags) : : "memory");
    return state;
}

static void set_state(fp_state state)
{
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(state.control), "r"(state.flags) : "memory");
}

#elif defined(__arm__) && defined(__ARM_FP)

/* FPSCR: as AArch64's two together. */
static const uint64_t controls[] = {
    0, 1u << 22, 2u << 22, 3u << 22, 1u << 24, 1u << 25, 1u << 26, 0x9F00, (3u << 22) | (7u << 24) | 0x9F00};
static const uint64_t all_flags = 0x9F;

static fp_state get_state(void)
{
    uint32_t fpscr;

    __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr) : : "memory");
    return (fp_state){fpscr & 0x07FFFF00u, fpscr & all_flags};
}

static void set_state(fp_state state)
{
    __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)(state.control | state.flags)) : "memory");
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

static fp_state get_state(void)
{
    return (fp_state){(uint64_t)fegetround(), (uint64_t)fetestexcept(FE_ALL_EXCEPT)};
}

static void set_state(fp_state state)
{
    assert_int_equal(fesetround((int)state.control), 0);
    (void)feclearexcept(FE_ALL_EXCEPT);
    (void)feraiseexcept((int)state.flags);
}

#endif

enum { STATES = sizeof controls / sizeof controls[0] };

/* Each kind shows other errors: one NaN or infinity hides the range of a tensor. */
typedef enum data_kind {
    PLAIN, /* ties and full significands: rounding shows */
    TINY,  /* subnormals, times large numbers or divided by subnormals: a flush to zero shows */
    WILD,  /* NaN, infinities, overflow, underflow, division by zero: exceptions show */
    KINDS
} data_kind;

static data_kind kind; /* the kind that fill() makes */

/* Of the size of a quantised value; many halves, many with a full significand. */
static float plain(void)
{
    return test_one_in(4) ? (float)test_between(-500, 500) * 0.5f : (float)test_between(-0x7FFFFF, 0x7FFFFF) / 32768;
}

/* Around 1, often 1. */
static float factor(void)
{
    return test_one_in(4) ? 1.0f : (float)test_between(0x7FFFFF, 0x17FFFFF) / 0x1000000;
}

/* An operator divides by the argument, or its products with integers are subnormal. */
static bool is_divisor(const test_call *call, enum slot slot)
{
    return (slot == SCALES && call->div_mode) || slot == WEIGHT_SCALE || slot == MAX ||
           (slot == SCALE && call->op != TEST_GROUP_QUANT);
}

static void fill(const test_call *call, enum slot slot, void *elements, npuq_dtype dtype, size_t count)
{
    const bool tiny = kind == TINY;
    const bool is_float = dtype == NPUQ_FLOAT32 || dtype == NPUQ_FLOAT16 || dtype == NPUQ_BFLOAT16;

    test_fill(elements, dtype, count, kind != WILD);
    for (size_t i = 0; kind != WILD && is_float && i < count; i++) {
        const bool is_offset = slot == ZERO_POINTS || slot == OFFSET || slot == BIAS;
        const float value = slot == X                ? plain() * (tiny ? 4e-41f : 1)
                            : is_offset              ? plain() / 8 * (tiny ? 0 : 1)
                            : is_divisor(call, slot) ? factor() * (tiny ? 1e-40f : 1)
                                                     : factor() * (tiny ? 2e38f : 1);
        const uint16_t half = test_to_half(value, dtype);

        memcpy((unsigned char *)elements + i * npuq_dtype_size(dtype),
               dtype == NPUQ_FLOAT32 ? (const void *)&value : &half, npuq_dtype_size(dtype));
    }
}

/* A call may neither raise nor clear a flag. */
static const uint64_t flag_sets[] = {0, ~(uint64_t)0, 0x1500000015};
enum { FLAG_SETS = sizeof flag_sets / sizeof flag_sets[0] };

/* State number i with the flags of set f, as the machine stores both. */
static fp_state state_of(size_t i, size_t f)
{
    return (fp_state){controls[i % STATES], flag_sets[f % FLAG_SETS] & all_flags};
}

static bool same_state(fp_state a, fp_state b)
{
    return a.control == b.control && a.flags == b.flags;
}

static void print_states(const char *what, fp_state before, fp_state after)
{
    print_error("%s: control %#llx, flags %#llx before; %#llx, %#llx after\n", what, (unsigned long long)before.control,
                (unsigned long long)before.flags, (unsigned long long)after.control, (unsigned long long)after.flags);
}

/* Draws call `number`, with `rows` rows of 1040 columns; rows 0: any shape. */
static test_drawing draw(size_t number, int64_t rows)
{
    test_drawing d = {.choose = test_below,
                      .fill = fill,
                      .has_shape = rows > 0,
                      .ndim = rows > 0 ? 2 : 0,
                      .shape = {rows, 1040},
                      .call.op = (enum test_operator)(number % TEST_OPERATORS)};

    kind = (data_kind)(number / TEST_OPERATORS % KINDS);
    test_reseed(number);
    test_draw_elements(&d);
    return d;
}

/* Runs the call with the thread in some state. The bytes are those of the usual state, and the state stays. */
static void expect_same(const test_drawing *d, const test_outcome *expected, fp_state state)
{
    const fp_state usual = get_state();

    set_state(state);
    const fp_state before = get_state();
    const npuq_status status = test_call_run(&d->call);
    const fp_state after = get_state();
    set_state(usual);

    assert_int_equal(status, NPUQ_OK);
    if (!same_state(before, after)) {
        print_states("the caller's state", before, after);
        fail_msg("backend %s, %s", npuq_backend_name(npuq_active_backend()), operator_names[d->call.op]);
    }
    test_check_outcome(d, expected, operator_names[d->call.op], "in another state");
}

static void test_states(void **unused)
{
    (void)unused;
    for (size_t number = 0; number < (size_t)TEST_OPERATORS * KINDS * 8; number++) {
        test_drawing d = draw(number, number % 4 == 0 ? 12 : 0);
        test_outcome expected = test_expect_outcome(&d);

        FOR_EACH_BACKEND()
        {
            for (size_t i = 0; i < STATES * FLAG_SETS; i++) {
                expect_same(&d, &expected, state_of(i / FLAG_SETS, i % FLAG_SETS));
            }
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

/* A thread of the executor, with its own state. */
typedef struct worker {
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
    size_t count;
    fp_state before;
    fp_state after;
} worker;

/* The context of run_on_another(). */
typedef struct another {
    fp_state state;
    size_t calls;
} another;

static void *work(void *argument)
{
    worker *w = argument;

    set_state(w->before);
    w->before = get_state();
    w->task(w->argument, 0, w->count);
    w->after = get_state();
    return NULL;
}

static void run_on_another(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                           void *argument)
{
    another *a = context;
    worker w = {task, argument, count, a->state, {0, 0}};
    pthread_t thread;

    a->calls++;
    if (pthread_create(&thread, NULL, work, &w) != 0 || pthread_join(thread, NULL) != 0) {
        abort(); /* fail() must not jump over the library's frames */
    }
    if (!same_state(w.before, w.after)) {
        print_states("the worker's state", w.before, w.after);
        abort();
    }
}

/* The caller has one state, the thread that does the work another. */
static void test_states_of_threads(void **unused)
{
    size_t calls[TEST_OPERATORS] = {0}; /* calls of the executor */

    (void)unused;
    for (size_t number = 0; number < (size_t)TEST_OPERATORS * KINDS * 2; number++) {
        test_drawing d = draw(number, 80);
        test_outcome expected = test_expect_outcome(&d);

        FOR_EACH_BACKEND()
        {
            for (size_t i = 0; i < STATES; i++) {
                another a = {state_of(i, i), 0};
                const npuq_executor executor = {run_on_another, &a};

                d.call.executor = &executor;
                expect_same(&d, &expected, state_of(i + 5, i + 1));
                calls[d.call.op] += a.calls;
            }
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
    for (int op = 0; op < TEST_OPERATORS; op++) {
        if (calls[op] == 0 && test_takes_executor((enum test_operator)op)) {
            fail_msg("%s: the executor had no work", operator_names[op]);
        }
    }
}

/* Calls are prepared in one state and run in another. */
static void test_states_of_prepared(void **unused)
{
    const fp_state usual = get_state();

    (void)unused;
    for (size_t number = 0; number < (size_t)TEST_OPERATORS * 2 * STATES; number++) {
        test_drawing d = {.choose = test_below, .call.op = (enum test_operator)(number % TEST_OPERATORS)};
        npuq_call prepared;
        fp_state states[2];
        fp_state before[2];
        fp_state after[2];

        if (!test_takes_executor(d.call.op)) {
            continue;
        }
        test_reseed(number);
        states[0] = state_of(number / TEST_OPERATORS, number);
        states[1] = state_of(test_below(STATES), number + 1);
        d.all_contiguous = test_one_in(2);
        (void)test_draw_prepared(&d);
        test_outcome expected = test_expect_outcome(&d);
        FOR_EACH_BACKEND()
        {
            for (int i = 0; i < 2; i++) {
                set_state(states[i]);
                before[i] = get_state();
                if (i == 0) {
                    (void)test_call_prepare(&prepared, &d.call);
                } else {
                    npuq_call_run(&prepared, 0, SIZE_MAX);
                }
                after[i] = get_state();
                set_state(usual);
            }
            for (int i = 0; i < 2; i++) {
                if (!same_state(before[i], after[i])) {
                    print_states(i == 0 ? "prepared" : "run", before[i], after[i]);
                    fail_msg("%s, call %zu", operator_names[d.call.op], number);
                }
            }
            test_check_outcome(&d, &expected, operator_names[d.call.op], "in another state");
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_states_of_threads),
        cmocka_unit_test(test_states_of_prepared),
    };

    test_seed();
    return cmocka_run_group_tests_name("fp_state", tests, NULL, NULL);
}
