/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator under every floating-point state that a host may have set: the same bytes, and the state afterwards as
 * it was, sticky flags included. NPUQ_BACKEND names the backend. */
#include "support.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- states of this architecture ---- */

/* What a state is on this machine: control bits and sticky flags. */
typedef struct fp_state {
    uint64_t control;
    uint64_t flags;
} fp_state;

#if defined(__x86_64__) || (defined(__i386__) && defined(__SSE2_MATH__))

/* Sticky flags in the low six bits of mxcsr, masks from bit 7, rounding at 13, DAZ 6, FTZ 15. */
static const uint64_t controls[] = {0x1F80, 0x3F80, 0x5F80, 0x7F80, 0x9F80, 0x1FC0, 0x9FC0, 0x0000, 0x1000, 0xFFC0};
static const uint64_t all_flags = 0x3F;

static fp_state get_state(void)
{
    uint32_t mxcsr;

    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr) : : "memory");
    return (fp_state){mxcsr & ~(uint32_t)all_flags, mxcsr & all_flags};
}

static void set_state(fp_state state)
{
    const uint32_t mxcsr = (uint32_t)(state.control | state.flags);
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
}

#elif defined(__i386__)

/* The x87 control word: masks in the low six bits, precision at 8 (0: 24 bits, 2: 53, 3: 64), rounding at 10. Its
 * status word holds the flags; with an exception unmasked and its flag set, the next instruction would trap. */
static const uint64_t controls[] = {0x037F, 0x007F, 0x027F, 0x077F, 0x0B7F, 0x0F7F, 0x0040, 0x0340};
static const uint64_t all_flags = 0x3F;

static fp_state get_state(void)
{
    uint16_t control;
    uint16_t status;

    __asm__ volatile("fnstcw %0\n\tfnstsw %1" : "=m"(control), "=m"(status) : : "memory");
    return (fp_state){control & 0x0F7F, status & all_flags};
}

static void set_state(fp_state state)
{
    uint32_t environment[7];

    __asm__ volatile("fnstenv %0" : "=m"(environment) : : "memory");
    environment[0] = (environment[0] & 0xFFFF0000u) | (uint32_t)state.control;
    environment[1] =
        (environment[1] & ~(uint32_t)0x80FF) | ((state.control & 0x3F) == 0x3F ? (uint32_t)state.flags : 0);
    __asm__ volatile("fldenv %0" : : "m"(environment) : "memory");
}

#elif defined(__aarch64__)

/* FPCR: rounding at 22, FZ 24, DN 25, FZ16 19, trap enables from 8. */
static const uint64_t controls[] = {
    0, 1u << 22, 2u << 22, 3u << 22, 1u << 24, 1u << 25, 1u << 19, 0x9F00, (3u << 22) | (1u << 24) | (1u << 25)};
static const uint64_t all_flags = 0x9F;

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

/* ---- operators ---- */

enum { ROWS = 40, COLS = 1040, ELEMENTS = ROWS * COLS, OUTPUT = ELEMENTS * 8, CASES = 9 };

typedef struct buffers {
    uint32_t x[ELEMENTS];      /* of any type */
    uint32_t scales[2 * COLS]; /* two groups */
    uint32_t offsets[COLS];
    struct {
        uint64_t y[OUTPUT / 8];
        float scale[ROWS];
        float offset[ROWS];
    } out;
} buffers;

/* Ties, subnormals, products and sums that rounding modes change, zeros to divide by, infinities and NaN. */
static void fill(buffers *b, npuq_dtype type)
{
    static const float awkward[] = {1e-40f, -3e-39f, 0.0f, -0.0f, 1e-44f, 1e38f, -1e38f, 0.1f};

    test_reseed(7);
    test_fill(b->x, type, ELEMENTS, true);
    test_fill(b->scales, type, 2 * COLS, true);
    test_fill(b->offsets, type, COLS, true);
    for (size_t i = 0; type == NPUQ_FLOAT32 && i < ELEMENTS; i += 5) {
        memcpy(&b->x[i], &awkward[i / 5 % 8], sizeof(float));
    }
    for (size_t i = 0; type == NPUQ_FLOAT32 && i < COLS; i += 7) {
        memcpy(&b->scales[i], &awkward[i / 7 % 8], sizeof(float));
    }
    if (type == NPUQ_FLOAT32) {
        const float special[] = {NAN, INFINITY, -INFINITY};
        memcpy(&b->x[3 * COLS], special, sizeof special);
    }
}

static npuq_status run(buffers *b, int which, npuq_dtype type, const npuq_executor *executor)
{
    const int64_t shape[] = {ROWS, COLS};
    const int64_t words[] = {ROWS, COLS / 8};
    const int64_t scale_shape[] = {2, COLS};
    const int64_t cols = COLS;
    const int64_t two = 2;
    const int64_t one = 1;
    int32_t ends[] = {11, ROWS};
    const npuq_tensor x = npuq_tensor_contiguous(b->x, type, 2, shape);
    const npuq_tensor i8 = npuq_tensor_contiguous(b->out.y, NPUQ_INT8, 2, shape);
    const npuq_tensor u8 = npuq_tensor_contiguous(b->out.y, NPUQ_UINT8, 2, shape);
    const npuq_tensor i32 = npuq_tensor_contiguous(b->out.y, NPUQ_INT32, 2, shape);
    const npuq_tensor i4 = npuq_tensor_contiguous(b->out.y, NPUQ_QUINT4X2, 2, words);
    const npuq_tensor u64 = npuq_tensor_contiguous(b->out.y, NPUQ_UINT64, 1, &cols);
    const npuq_tensor scales = npuq_tensor_contiguous(b->scales, type, 1, &cols);
    const npuq_tensor one_scale = npuq_tensor_contiguous(b->scales + 1, type, 1, &one);
    const npuq_tensor group_scales = npuq_tensor_contiguous(b->scales, type, 2, scale_shape);
    const npuq_tensor offsets = npuq_tensor_contiguous(b->offsets, type, 1, &cols);
    const npuq_tensor one_offset = npuq_tensor_contiguous(b->offsets, type, 1, &one);
    const npuq_tensor groups = npuq_tensor_contiguous(ends, NPUQ_INT32, 1, &two);
    const npuq_tensor row_scales = npuq_tensor_contiguous(b->out.scale, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor row_offsets = npuq_tensor_contiguous(b->out.offset, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor the_scale = npuq_tensor_contiguous(b->out.scale, NPUQ_FLOAT32, 1, &one);
    const npuq_tensor the_offset = npuq_tensor_contiguous(b->out.offset, NPUQ_FLOAT32, 1, &one);
    const npuq_tensor packed_scales = npuq_tensor_contiguous(b->scales, NPUQ_FLOAT32, 1, &cols);
    const npuq_tensor packed_offsets = npuq_tensor_contiguous(b->offsets, NPUQ_FLOAT32, 1, &cols);

    switch (which) {
    case 0: return npuq_quantize(&x, &scales, &offsets, 1, true, &i8, executor);
    case 1: return npuq_quantize(&x, &one_scale, &one_offset, 1, true, &i32, executor);
    case 2: return npuq_quantize(&x, &one_scale, &one_offset, 1, false, &i4, executor);
    case 3: return npuq_quantize(&x, &scales, &offsets, 1, true, &u8, executor);
    case 4: return npuq_group_quant(&x, &group_scales, &groups, &one_offset, &i8, executor);
    case 5: return npuq_trans_quant_param(&packed_scales, &packed_offsets, NPUQ_ROUND_NEAREST, &u64);
    case 6:
        return npuq_dynamic_quant_asymmetric(&x, NULL, NULL, NPUQ_PER_TOKEN, &i8, &row_scales, &row_offsets, executor);
    case 7:
        return npuq_dynamic_quant_asymmetric(&x, &group_scales, &groups, NPUQ_PER_TOKEN, &i4, &row_scales, &row_offsets,
                                             executor);
    default:
        return npuq_dynamic_quant_asymmetric(&x, &scales, NULL, NPUQ_PER_TENSOR, &i8, &the_scale, &the_offset,
                                             executor);
    }
}

/* ---- the tests ---- */

static const npuq_dtype types[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
static const uint64_t flag_sets[] = {0, ~(uint64_t)0, 0x15};

/* State i of all, with the flags of set f; what the machine makes of it. */
static fp_state state_of(size_t i, size_t f)
{
    return (fp_state){controls[i], flag_sets[f] & all_flags};
}

static bool same_state(fp_state a, fp_state b)
{
    return a.control == b.control && a.flags == b.flags;
}

static void expect_all(buffers *b, const buffers *expected, int which, size_t state)
{
    test_same(&b->out, &expected->out, sizeof b->out, "case %d, control %#llx", which,
              (unsigned long long)controls[state]);
}

static buffers *new_buffers(void)
{
    buffers *b = calloc(1, sizeof *b);
    assert_non_null(b);
    return b;
}

static void test_states(void **unused)
{
    const fp_state usual = get_state();
    buffers *expected = new_buffers();
    buffers *b = new_buffers();

    (void)unused;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        fill(expected, types[t]);
        fill(b, types[t]);
        for (int which = 0; which < CASES; which++) {
            memset(&expected->out, 0x55, sizeof expected->out);
            assert_int_equal(run(expected, which, types[t], NULL), NPUQ_OK);
            for (size_t i = 0; i < STATES * 3; i++) {
                memset(&b->out, 0x55, sizeof b->out);
                set_state(state_of(i / 3, i % 3));
                const fp_state before = get_state();
                const npuq_status status = run(b, which, types[t], NULL);
                const fp_state after = get_state();
                set_state(usual);

                assert_int_equal(status, NPUQ_OK);
                if (!same_state(before, after)) {
                    fail_msg("case %d: control %llx, flags %llx before; %llx, %llx after", which,
                             (unsigned long long)before.control, (unsigned long long)before.flags,
                             (unsigned long long)after.control, (unsigned long long)after.flags);
                }
                expect_all(b, expected, which, i / 3);
            }
        }
    }
    free(expected);
    free(b);
}

/* A thread of the executor's with a state of its own. */
typedef struct worker {
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
    size_t count;
    fp_state before;
    fp_state after;
} worker;

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
    worker w = {task, argument, count, *(const fp_state *)context, {0, 0}};
    pthread_t thread;

    if (pthread_create(&thread, NULL, work, &w) != 0 || pthread_join(thread, NULL) != 0 ||
        !same_state(w.before, w.after)) {
        abort(); /* not fail(): the library is between here and the test */
    }
}

static void test_states_of_threads(void **unused)
{
    buffers *expected = new_buffers();
    buffers *b = new_buffers();

    (void)unused;
    fill(expected, NPUQ_FLOAT32);
    fill(b, NPUQ_FLOAT32);
    for (int which = 0; which < CASES; which++) {
        memset(&expected->out, 0x55, sizeof expected->out);
        assert_int_equal(run(expected, which, NPUQ_FLOAT32, NULL), NPUQ_OK);
        for (size_t i = 0; i < STATES; i++) {
            fp_state state = state_of(i, i % 3);
            const npuq_executor executor = {run_on_another, &state};

            memset(&b->out, 0x55, sizeof b->out);
            assert_int_equal(run(b, which, NPUQ_FLOAT32, &executor), NPUQ_OK);
            expect_all(b, expected, which, i);
        }
    }
    free(expected);
    free(b);
}

int main(void)
{
    const char *wanted = getenv("NPUQ_BACKEND");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_states_of_threads),
    };

    if (wanted && strcmp(wanted, npuq_backend_name(npuq_active_backend())) != 0) {
        return 77;
    }
    test_seed();
    return cmocka_run_group_tests_name("fp_state", tests, NULL, NULL);
}
