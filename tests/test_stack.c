/* SPDX-License-Identifier: BSD-3-Clause */
/* How much stack a task and a run of a prepared call take on a thread of the caller's, and a whole call: what
 * docs/threads.md promises. */
#define _DARWIN_C_SOURCE

#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* docs/threads.md names these. 50 KiB are buffers; without optimisation, every vector of a kernel has its place. */
#ifdef __OPTIMIZE__
enum { LIMIT = 60 * 1024 };
#else
enum { LIMIT = 128 * 1024 };
#endif

enum { STACK = 1 << 20, PAINT = 0xA5 };

static unsigned char *stack;

/* Runs body on a thread with the painted stack; returns how many bytes of it are no longer paint. */
static size_t stack_of(void *(*body)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;

    memset(stack, PAINT, STACK);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, body, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    while (untouched < STACK && stack[untouched] == PAINT) {
        untouched++;
    }
    return STACK - untouched;
}

static void *do_nothing(void *argument)
{
    return argument;
}

/* ---- an executor that measures ---- */

typedef struct work {
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
    size_t count;
} work;

static void *run_work(void *argument)
{
    const work *w = argument;

    w->task(w->argument, 0, w->count);
    return NULL;
}

/* context: size_t, the most so far */
static void run_measured(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    work w = {task, argument, count};
    size_t *most = context;
    const size_t used = stack_of(run_work, &w);

    *most = used > *most ? used : *most;
}

/* ---- the operators, on contiguous and on turned tensors ---- */

enum { ROWS = 64, COLS = 8192, ELEMENTS = ROWS * COLS };

static float x[ELEMENTS];
static uint16_t parameters[ROWS * COLS];
static int32_t y[ELEMENTS];
static float scale[ROWS];
static float offset[ROWS];
static uint64_t words[COLS];

typedef struct call {
    npuq_dtype x_dtype;
    npuq_dtype y_dtype;
    bool turned; /* x and y lie across */
    int which;
    const npuq_executor *executor;
    npuq_call *prepared; /* to fill, or null: the call is made */
} call;

#define CALL(operator, ...)                                                                                            \
    (c->prepared ? npuq_prepare_##operator(c->prepared, __VA_ARGS__) : npuq_##operator(__VA_ARGS__, c->executor))

enum { OPERATORS = 14 };

static npuq_tensor matrix(void *data, npuq_dtype dtype, int64_t cols, bool turned)
{
    const int64_t shape[] = {ROWS, cols};
    npuq_tensor tensor = npuq_tensor_contiguous(data, dtype, 2, shape);

    if (turned) {
        tensor.strides[0] = 1;
        tensor.strides[1] = ROWS;
    }
    return tensor;
}

static void *run_call(void *argument)
{
    const call *c = argument;
    const int64_t shape[] = {ROWS, COLS};
    const int64_t ranges = c->which >= 5 && c->which <= 7 ? 1 : ROWS;
    static int32_t ends[ROWS];
    const int64_t y_cols = c->y_dtype == NPUQ_QUINT4X2 ? COLS / 8 : COLS;
    const npuq_tensor tx = matrix(x, c->x_dtype, COLS, c->turned);
    const npuq_tensor ty = matrix(y, c->y_dtype, y_cols, c->turned);
    const npuq_tensor by_row = npuq_tensor_contiguous(parameters, NPUQ_BFLOAT16, 1, shape);
    const npuq_tensor by_column = npuq_tensor_contiguous(parameters, NPUQ_FLOAT16, 1, &shape[1]);
    const npuq_tensor by_group = npuq_tensor_contiguous(parameters, NPUQ_BFLOAT16, 2, shape);
    const npuq_tensor group_index = npuq_tensor_contiguous(ends, NPUQ_INT32, 1, shape);
    const npuq_tensor ts = npuq_tensor_contiguous(scale, NPUQ_FLOAT32, 1, &ranges);
    const npuq_tensor to = npuq_tensor_contiguous(offset, NPUQ_FLOAT32, 1, &ranges);
    const npuq_tensor by_word = npuq_tensor_contiguous(words, NPUQ_UINT64, 1, &shape[1]);
    const npuq_tensor sum_bias = npuq_tensor_contiguous(y, NPUQ_INT32, 1, &shape[1]);
    const npuq_tensor sums = matrix(y, NPUQ_INT32, COLS, c->turned);
    const npuq_tensor i8 = matrix(x, NPUQ_INT8, COLS, c->turned);
    const npuq_tensor f16 = matrix(x, NPUQ_FLOAT16, COLS, c->turned);
    const bool to_words = c->y_dtype == NPUQ_QUINT4X2;
    npuq_status status = NPUQ_OK;

    for (int i = 0; i < ROWS; i++) {
        ends[i] = i + 1;
    }
    switch (c->which) {
    case 0: status = CALL(quantize, &tx, &by_column, &by_column, 1, !to_words, &ty); break;
    case 1: status = CALL(quantize, &tx, &by_row, &by_row, to_words ? -2 : 0, !to_words, &ty); break;
    case 2: status = CALL(group_quant, &tx, &by_group, &group_index, NULL, &ty); break;
    case 3: status = CALL(dynamic_quant_asymmetric, &tx, NULL, NULL, NPUQ_PER_TOKEN, &ty, &ts, &to); break;
    case 4: status = CALL(dynamic_quant_asymmetric, &tx, &by_group, &group_index, NPUQ_PER_TOKEN, &ty, &ts, &to); break;
    case 5: status = CALL(dynamic_quant_asymmetric, &tx, &by_column, NULL, NPUQ_PER_TENSOR, &ty, &ts, &to); break;
    case 6: status = CALL(dynamic_quant_min_max, &tx, &by_column, NULL, NPUQ_PER_TENSOR, &ts, &to); break;
    case 7: status = CALL(dynamic_quant, &tx, &by_column, NULL, NPUQ_PER_TENSOR, NPUQ_SCALE_PRODUCT, &ty, &ts); break;
    case 8: status = CALL(dynamic_quant_apply, &tx, &by_group, &group_index, NPUQ_PER_TOKEN, &ts, &to, &ty); break;
    case 9:
        status = CALL(dynamic_quant, &tx, &by_group, &group_index, NPUQ_PER_TOKEN, NPUQ_SCALE_INVERSE, &ty, &ts);
        break;
    case 10:
        status = CALL(dynamic_quant_symmetric_apply, &tx, &by_group, &group_index, NPUQ_PER_TOKEN, &ts, &to, &ty);
        break;
    /* From what the others write to what they read. */
    case 11: status = CALL(anti_quant, &ty, &by_column, &by_column, &tx); break;
    case 12: status = CALL(dequant, &sums, &by_column, &ts, to_words ? &sum_bias : &by_column, &tx); break;
    default: status = CALL(requant, &sums, &by_word, &sum_bias, to_words ? &f16 : &i8); break;
    }
    if (status != NPUQ_OK) { /* cmocka's assertions belong to the first thread */
        printf("# %s\n", npuq_last_error());
        abort();
    }
    return NULL;
}

static void *run_prepared(void *argument)
{
    npuq_call_run(argument, 0, SIZE_MAX);
    return NULL;
}

static void test_stack(void **unused)
{
    static const npuq_dtype x_dtypes[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
    static const npuq_dtype y_dtypes[] = {NPUQ_INT8, NPUQ_QUINT4X2};
    size_t in_tasks = 0;
    size_t in_calls = 0;
    size_t in_runs = 0;
    size_t base;

    (void)unused;
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stack != MAP_FAILED);
    base = stack_of(do_nothing, NULL); /* what the system keeps there */
    for (size_t xd = 0; xd < 3; xd++) {
        test_fill(x, x_dtypes[xd], ELEMENTS, true);
        test_fill(parameters, NPUQ_FLOAT16, ELEMENTS, true);
        test_fill(words, NPUQ_UINT64, COLS, true);
        FOR_EACH_BACKEND()
        {
            for (int i = 0; i < OPERATORS * 2 * 2; i++) {
                call c = {x_dtypes[xd], y_dtypes[i % 2], i / 2 % 2, i / 4, NULL, NULL};
                const npuq_executor measuring = {run_measured, &in_tasks};
                size_t used;

                used = stack_of(run_call, &c);
                in_calls = used > in_calls ? used : in_calls;
                c.executor = &measuring;
                (void)run_call(&c);
                if (c.which < 5 || c.which > 7) { /* per tensor is not prepared */
                    npuq_call prepared;
                    c.prepared = &prepared;
                    (void)run_call(&c);
                    used = stack_of(run_prepared, &prepared);
                    in_runs = used > in_runs ? used : in_runs;
                }
            }
        }
    }
    assert_true(in_tasks > base);
    printf("# stack: %zu bytes in a task, %zu in a run of a prepared call, %zu in a call without an executor, beside "
           "%zu of "
           "the system\n",
           in_tasks - base, in_runs - base, in_calls - base, base);
    assert_true(in_tasks - base <= LIMIT);
    assert_true(in_runs - base <= LIMIT);
    assert_true(in_calls - base <= LIMIT);
    (void)munmap(stack, STACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stack)};

    test_seed();
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
