/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operator under every floating-point state that a host may have set: the same bytes, and the state afterwards as
 * it was, sticky flags included. */
#include "calls.h"

#include <fenv.h>
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

#if defined(__x86_64__) || defined(__i386__)

/* SSE obeys mxcsr: flags in the low six bits, DAZ 6, masks from 7, rounding at 13, FTZ 15. The x87 unit, here in the
 * upper half, has a control word: masks in the low six bits, precision at 8 (0: 24 bits, 2: 53, 3: 64), rounding at 10;
 * and flags in its status word. No state is without effect on the other unit's build: both have to come back. */
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
    /* The flag of an exception that is not masked would trap at the next instruction. */
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

/* ---- operators ---- */

/* With MAX_ROWS there is work for an executor in all cases that take one. */
enum { FEW_ROWS = 16, MAX_ROWS = 80, COLS = 1040, MAX_ELEMENTS = MAX_ROWS * COLS, CASES = 28 };
enum { PACK_CASE = 6, PARAMS_CASE = 14, SYMMETRIC_PARAMS_CASE = 19 }; /* which take no executor */

typedef struct buffers {
    size_t rows;
    uint32_t x[MAX_ELEMENTS];   /* of any type, as the next three */
    uint32_t factors[2 * COLS]; /* two groups */
    uint32_t divisors[COLS];
    uint32_t offsets[COLS];
    float small[COLS]; /* times plain x, as integers: of the size of a quantised value */
    uint64_t words[COLS];
    struct {
        float scale[MAX_ROWS];
        float offset[MAX_ROWS];
        uint64_t y[MAX_ELEMENTS / 2]; /* of four bytes an element at most */
    } out;
} buffers;

/* That part of b->out that its rows need. */
static size_t out_size(const buffers *b)
{
    return offsetof(buffers, out.y) - offsetof(buffers, out) + b->rows * COLS * 4;
}

/* Each kind of data shows what another cannot: one NaN or infinity, and a tensor's range is lost. */
typedef enum data_kind {
    PLAIN, /* ties and full significands: rounding shows */
    TINY,  /* subnormals that are multiplied by large, or divided by subnormal parameters: a flush to zero shows */
    WILD,  /* NaN, infinities, overflow, underflow, division by zero: exceptions show */
    KINDS
} data_kind;

static void put(uint32_t *array, npuq_dtype type, size_t i, float value)
{
    const uint16_t half = test_to_half(value, type);

    if (type == NPUQ_FLOAT32) {
        memcpy(&array[i], &value, sizeof value);
    } else {
        memcpy((unsigned char *)array + i * sizeof half, &half, sizeof half);
    }
}

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

static void fill(buffers *b, npuq_dtype type, data_kind kind)
{
    const bool tiny = kind == TINY;
    const size_t elements = b->rows * COLS;
    uint32_t bits;

    test_reseed(7);
    if (kind == WILD) {
        test_fill(b->x, type, elements, false);
        test_fill(b->factors, type, 2 * COLS, false);
        test_fill(b->divisors, type, COLS, false);
        test_fill(b->offsets, type, COLS, false);
        test_fill(b->small, NPUQ_FLOAT32, COLS, false);
        test_fill(b->words, NPUQ_UINT64, COLS, false);
        return;
    }
    for (size_t i = 0; i < elements; i++) {
        put(b->x, type, i, plain() * (tiny ? 4e-41f : 1));
    }
    for (size_t i = 0; i < 2 * COLS; i++) {
        put(b->factors, type, i, factor() * (tiny ? 2e38f : 1));
    }
    for (size_t i = 0; i < COLS; i++) {
        put(b->divisors, type, i, factor() * (tiny ? 1e-40f : 1));
        put(b->offsets, type, i, tiny ? 0 : plain() / 8);
        b->small[i] = factor() / 0x1000000;
        b->words[i] = (uint64_t)1 << 46 | (uint64_t)test_below(512) << 37;
        memcpy(&bits, &b->small[i], sizeof bits);
        b->words[i] |= bits;
    }
}

static npuq_status run(buffers *b, int which, npuq_dtype type, const npuq_executor *executor)
{
    const int64_t rows = (int64_t)b->rows;
    const int64_t shape[] = {rows, COLS};
    const int64_t words[] = {rows, COLS / 8};
    const int64_t factor_shape[] = {2, COLS};
    const int64_t cols = COLS;
    const int64_t two = 2;
    const int64_t one = 1;
    int32_t ends[] = {5, (int32_t)rows};
    const npuq_tensor x = npuq_tensor_contiguous(b->x, type, 2, shape);
    const npuq_tensor x_i8 = npuq_tensor_contiguous(b->x, NPUQ_INT8, 2, shape);
    const npuq_tensor x_i4 = npuq_tensor_contiguous(b->x, NPUQ_QUINT4X2, 2, words);
    const npuq_tensor sums = npuq_tensor_contiguous(b->x, NPUQ_INT32, 2, shape);
    const npuq_tensor i8 = npuq_tensor_contiguous(b->out.y, NPUQ_INT8, 2, shape);
    const npuq_tensor u8 = npuq_tensor_contiguous(b->out.y, NPUQ_UINT8, 2, shape);
    const npuq_tensor i32 = npuq_tensor_contiguous(b->out.y, NPUQ_INT32, 2, shape);
    const npuq_tensor i4 = npuq_tensor_contiguous(b->out.y, NPUQ_QUINT4X2, 2, words);
    const npuq_tensor f32 = npuq_tensor_contiguous(b->out.y, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor f16 = npuq_tensor_contiguous(b->out.y, NPUQ_FLOAT16, 2, shape);
    const npuq_tensor bf16 = npuq_tensor_contiguous(b->out.y, NPUQ_BFLOAT16, 2, shape);
    const npuq_tensor u64 = npuq_tensor_contiguous(b->out.y, NPUQ_UINT64, 1, &cols);
    const npuq_tensor factors = npuq_tensor_contiguous(b->factors, type, 1, &cols);
    const npuq_tensor one_factor = npuq_tensor_contiguous(b->factors, type, 1, &one);
    const npuq_tensor group_factors = npuq_tensor_contiguous(b->factors, type, 2, factor_shape);
    const npuq_tensor divisors = npuq_tensor_contiguous(b->divisors, type, 1, &cols);
    const npuq_tensor one_divisor = npuq_tensor_contiguous(b->divisors, type, 1, &one);
    const npuq_tensor offsets = npuq_tensor_contiguous(b->offsets, type, 1, &cols);
    const npuq_tensor one_offset = npuq_tensor_contiguous(b->offsets, type, 1, &one);
    const npuq_tensor groups = npuq_tensor_contiguous(ends, NPUQ_INT32, 1, &two);
    const npuq_tensor row_scales = npuq_tensor_contiguous(b->out.scale, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor row_offsets = npuq_tensor_contiguous(b->out.offset, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor the_scale = npuq_tensor_contiguous(b->out.scale, NPUQ_FLOAT32, 1, &one);
    const npuq_tensor the_offset = npuq_tensor_contiguous(b->out.offset, NPUQ_FLOAT32, 1, &one);
    const npuq_tensor packed_scales = npuq_tensor_contiguous(b->factors, NPUQ_FLOAT32, 1, &cols);
    const npuq_tensor first_divisors = npuq_tensor_contiguous(b->divisors, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor first_factors = npuq_tensor_contiguous(b->factors, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor made_scales = npuq_tensor_contiguous(b->out.y, NPUQ_FLOAT32, 1, &cols);
    const npuq_tensor made_offsets = npuq_tensor_contiguous(b->out.y + COLS, NPUQ_FLOAT32, 1, &cols);
    const npuq_tensor packed_offsets = npuq_tensor_contiguous(b->offsets, NPUQ_FLOAT32, 1, &cols);
    const npuq_tensor row_factors = npuq_tensor_contiguous(b->small, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor small = npuq_tensor_contiguous(b->small, NPUQ_FLOAT32, 1, &cols);
    const npuq_tensor integers = npuq_tensor_contiguous(b->offsets, NPUQ_INT32, 1, &cols);
    const npuq_tensor parameters = npuq_tensor_contiguous(b->words, NPUQ_UINT64, 1, &cols);

    switch (which) {
    case 0: return npuq_quantize(&x, &divisors, &offsets, 1, true, &i8, executor);
    case 1: return npuq_quantize(&x, &one_divisor, &one_offset, 1, true, &i32, executor);
    case 2: return npuq_quantize(&x, &divisors, &offsets, 1, true, &u8, executor);
    case 3: return npuq_quantize(&x, &factors, &offsets, 1, false, &i8, executor);
    case 4: return npuq_quantize(&x, &one_factor, &one_offset, 1, false, &i4, executor);
    case 5: return npuq_group_quant(&x, &group_factors, &groups, &one_offset, &i8, executor);
    case PACK_CASE: return npuq_trans_quant_param(&packed_scales, &packed_offsets, NPUQ_ROUND_NEAREST, &u64);
    case 7:
        return npuq_dynamic_quant_asymmetric(&x, NULL, NULL, NPUQ_PER_TOKEN, &i8, &row_scales, &row_offsets, executor);
    case 8:
        return npuq_dynamic_quant_asymmetric(&x, &factors, NULL, NPUQ_PER_TOKEN, &i8, &row_scales, &row_offsets,
                                             executor);
    case 9:
        return npuq_dynamic_quant_asymmetric(&x, &group_factors, &groups, NPUQ_PER_TOKEN, &i4, &row_scales,
                                             &row_offsets, executor);
    case 10:
        return npuq_dynamic_quant_asymmetric(&x, NULL, NULL, NPUQ_PER_TENSOR, &i8, &the_scale, &the_offset, executor);
    case 11:
        return npuq_dynamic_quant_asymmetric(&x, &factors, NULL, NPUQ_PER_TENSOR, &i8, &the_scale, &the_offset,
                                             executor);
    case 12: return npuq_dynamic_quant_min_max(&x, &factors, NULL, NPUQ_PER_TOKEN, &row_scales, &row_offsets, executor);
    case 13: return npuq_dynamic_quant_min_max(&x, &factors, NULL, NPUQ_PER_TENSOR, &the_scale, &the_offset, executor);
    case PARAMS_CASE:
        return npuq_dynamic_quant_params(&packed_offsets, &packed_scales, NPUQ_INT8, &made_scales, &made_offsets);
    case 15:
        return npuq_dynamic_quant_apply(&x, &factors, NULL, NPUQ_PER_TOKEN, &first_divisors, &first_factors, &i8,
                                        executor);
    case 16: return npuq_dynamic_quant(&x, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &i8, &row_scales, executor);
    case 17:
        return npuq_dynamic_quant(&x, &group_factors, &groups, NPUQ_PER_TOKEN, NPUQ_SCALE_INVERSE, &i4, &row_scales,
                                  executor);
    case 18:
        return npuq_dynamic_quant(&x, &factors, NULL, NPUQ_PER_TENSOR, NPUQ_SCALE_INVERSE, &i8, &the_scale, executor);
    case SYMMETRIC_PARAMS_CASE:
        return npuq_dynamic_quant_symmetric_params(&packed_offsets, &packed_scales, NPUQ_INT8, NPUQ_SCALE_INVERSE,
                                                   &made_scales);
    case 20:
        return npuq_dynamic_quant_symmetric_apply(&x, &factors, NULL, NPUQ_PER_TOKEN, &first_divisors, &first_factors,
                                                  &i8, executor);
    case 21: return npuq_anti_quant(&x_i8, &divisors, &offsets, &f32, executor);
    case 22: return npuq_anti_quant(&x_i8, &factors, &offsets, &bf16, executor);
    case 23: return npuq_anti_quant(&x_i4, &one_factor, NULL, &f16, executor);
    case 24: return npuq_dequant(&sums, &factors, &row_factors, &offsets, &f16, executor);
    case 25: return npuq_dequant(&sums, &small, NULL, &integers, &f32, executor);
    case 26: return npuq_requant(&sums, &parameters, &integers, &i8, executor);
    default: return npuq_requant(&sums, &parameters, NULL, &f16, executor);
    }
}

/* ---- the tests ---- */

static const npuq_dtype types[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
enum { TYPES = sizeof types / sizeof types[0] };

/* None may appear, none vanish. */
static const uint64_t flag_sets[] = {0, ~(uint64_t)0, 0x1500000015};
enum { FLAG_SETS = sizeof flag_sets / sizeof flag_sets[0] };

/* State i of all, with the flags of set f. What the machine makes of it, get_state() tells. */
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

static buffers *new_buffers(size_t rows)
{
    buffers *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->rows = rows;
    return b;
}

/* Runs a case with the thread in some state, and expects the bytes of the usual one and the state to be kept. */
static void expect_same(buffers *b, const buffers *expected, int which, npuq_dtype type, fp_state state,
                        const npuq_executor *executor)
{
    const fp_state usual = get_state();

    memset(&b->out, 0x55, out_size(b));
    set_state(state);
    const fp_state before = get_state();
    const npuq_status status = run(b, which, type, executor);
    const fp_state after = get_state();
    set_state(usual);

    assert_int_equal(status, NPUQ_OK);
    if (!same_state(before, after)) {
        print_states("the caller's state", before, after);
        fail_msg("backend %s, case %d, %s", npuq_backend_name(npuq_active_backend()), which, npuq_dtype_name(type));
    }
    test_same(&b->out, &expected->out, out_size(b), "case %d, %s, control %#llx", which, npuq_dtype_name(type),
              (unsigned long long)before.control);
}

static void test_states(void **unused)
{
    buffers *expected = new_buffers(FEW_ROWS);
    buffers *b = new_buffers(FEW_ROWS);

    (void)unused;
    for (size_t t = 0; t < TYPES * KINDS; t++) {
        const npuq_dtype type = types[t / KINDS];
        fill(expected, type, (data_kind)(t % KINDS));
        fill(b, type, (data_kind)(t % KINDS));
        for (int which = 0; which < CASES; which++) {
            memset(&expected->out, 0x55, out_size(expected));
            assert_int_equal(run(expected, which, type, NULL), NPUQ_OK);
            FOR_EACH_BACKEND()
            {
                for (size_t i = 0; i < STATES * FLAG_SETS; i++) {
                    expect_same(b, expected, which, type, state_of(i / FLAG_SETS, i % FLAG_SETS), NULL);
                }
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
        abort(); /* not fail(): the library is between here and the test */
    }
    if (!same_state(w.before, w.after)) {
        print_states("the worker's state", w.before, w.after);
        abort();
    }
}

/* The caller is in one state, the thread that does the work in another. */
static void test_states_of_threads(void **unused)
{
    buffers *expected = new_buffers(MAX_ROWS);
    buffers *b = new_buffers(MAX_ROWS);

    (void)unused;
    for (int kind = 0; kind < KINDS; kind++) {
        fill(expected, NPUQ_FLOAT32, (data_kind)kind);
        fill(b, NPUQ_FLOAT32, (data_kind)kind);
        for (int which = 0; which < CASES; which++) {
            memset(&expected->out, 0x55, out_size(expected));
            assert_int_equal(run(expected, which, NPUQ_FLOAT32, NULL), NPUQ_OK);
            const bool takes_no_executor = which == PACK_CASE || which == PARAMS_CASE || which == SYMMETRIC_PARAMS_CASE;
            FOR_EACH_BACKEND()
            {
                for (size_t i = 0; i < STATES; i++) {
                    another a = {state_of(i, i), 0};
                    const npuq_executor executor = {run_on_another, &a};
                    expect_same(b, expected, which, NPUQ_FLOAT32, state_of(i + 5, i + 1), &executor);
                    assert_true(a.calls > 0 || takes_no_executor);
                }
            }
        }
    }
    free(expected);
    free(b);
}

/* Prepared calls are prepared in one state and run in another. */
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
