/* SPDX-License-Identifier: BSD-3-Clause */
/* Executors with threads of their own: any partition gives the bits of one thread, calls run side by side, and each
 * thread has its own error line; any of them may choose the backend. With an argument, first calls alone: the backend
 * is then chosen for all of them at once, the one that NPUQ_BACKEND names. */
#include "calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROWS = 300, COLS = 1608 };

/* ---- an executor over threads ---- */

typedef struct share {
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
    size_t begin;
    size_t end;
} share;

static void *run_share(void *argument)
{
    const share *s = argument;
    if (s->begin < s->end) {
        s->task(s->argument, s->begin, s->end);
    }
    return NULL;
}

/* context: size_t[THREADS + 1], where each thread's share ends in 1/1000 of the whole */
static void run_threads(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                        void *argument)
{
    const size_t *ends = context;
    pthread_t threads[THREADS];
    share shares[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        shares[i] = (share){task, argument, count * ends[i] / 1000, count * ends[i + 1] / 1000};
        assert_int_equal(pthread_create(&threads[i], NULL, run_share, &shares[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

/* ---- the work ---- */

/* All bytes are compared: there are none between the members. */
typedef struct results {
    uint16_t y[ROWS * COLS]; /* of the widest type */
    float scale[ROWS];
    float offset[ROWS];
} results;

typedef struct buffers {
    float *x;
    int32_t *sums;
    uint16_t *smooth;
    uint64_t *words;
    results *out;
} buffers;

static buffers make_buffers(void)
{
    buffers b = {malloc(sizeof(float) * ROWS * COLS), malloc(sizeof(int32_t) * ROWS * COLS),
                 malloc(sizeof(uint16_t) * COLS), malloc(sizeof(uint64_t) * COLS), malloc(sizeof(results))};

    assert_true(b.x && b.sums && b.smooth && b.words && b.out);
    test_reseed(1);
    test_fill(b.x, NPUQ_FLOAT32, ROWS * COLS, true);
    test_fill(b.sums, NPUQ_INT32, ROWS * COLS, true);
    test_fill(b.smooth, NPUQ_BFLOAT16, COLS, true);
    test_fill(b.words, NPUQ_UINT64, COLS, true);
    return b;
}

static void free_buffers(buffers *b)
{
    free(b->x);
    free(b->sums);
    free(b->smooth);
    free(b->words);
    free(b->out);
}

/* From DYNAMIC on, the dynamic operators and their steps: first per token, then per tensor. */
enum { DYNAMIC = 6, PER_TENSOR = 12, OPERATORS = 2 * PER_TENSOR - DYNAMIC };

/* What the call does not write stays 0x55. */
static npuq_status run_one(const buffers *b, int which, const npuq_executor *executor)
{
    const int64_t shape[] = {ROWS, COLS};
    const int64_t ends[] = {7, 7, 200, ROWS};
    const int64_t four = 4;
    const int64_t scale_shape[] = {4, COLS};
    const int64_t one = 1;
    const npuq_tensor x = npuq_tensor_contiguous(b->x, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor sums = npuq_tensor_contiguous(b->sums, NPUQ_INT32, 2, shape);
    const npuq_tensor bytes = npuq_tensor_contiguous(b->sums, NPUQ_INT8, 2, shape);
    const npuq_tensor words = npuq_tensor_contiguous(b->words, NPUQ_UINT64, 1, &shape[1]);
    const npuq_tensor of_rows = npuq_tensor_contiguous(b->x, NPUQ_FLOAT32, 1, which < PER_TENSOR ? shape : &one);
    const npuq_tensor y = npuq_tensor_contiguous(b->out->y, NPUQ_INT8, 2, shape);
    const npuq_tensor half = npuq_tensor_contiguous(b->out->y, NPUQ_FLOAT16, 2, shape);
    const npuq_tensor smooth = npuq_tensor_contiguous(b->smooth, NPUQ_BFLOAT16, 1, &shape[1]);
    const npuq_tensor groups = npuq_tensor_contiguous((void *)ends, NPUQ_INT64, 1, &four);
    const npuq_tensor group_scale = npuq_tensor_contiguous(b->x, NPUQ_FLOAT32, 2, scale_shape);
    const npuq_tensor scale = npuq_tensor_contiguous(b->out->scale, NPUQ_FLOAT32, 1, of_rows.shape);
    const npuq_tensor offset = npuq_tensor_contiguous(b->out->offset, NPUQ_FLOAT32, 1, of_rows.shape);
    const npuq_quant_mode mode = which < PER_TENSOR ? NPUQ_PER_TOKEN : NPUQ_PER_TENSOR;
    const npuq_scale_form form = which < PER_TENSOR ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;

    memset(b->out, 0x55, sizeof *b->out);
    switch (which < PER_TENSOR ? which : which - PER_TENSOR + DYNAMIC) {
    case 0: return npuq_quantize(&x, &smooth, NULL, 1, true, &y, executor);
    case 1: return npuq_quantize(&x, &smooth, &smooth, -1, false, &y, executor);
    case 2: return npuq_group_quant(&x, &group_scale, &groups, NULL, &y, executor);
    case 3: return npuq_anti_quant(&bytes, &smooth, &smooth, &half, executor);
    case 4: return npuq_dequant(&sums, &smooth, &of_rows, &smooth, &half, executor);
    case 5: return npuq_requant(&sums, &words, NULL, &y, executor);
    case DYNAMIC: return npuq_dynamic_quant_asymmetric(&x, NULL, NULL, mode, &y, &scale, &offset, executor);
    case 7: return npuq_dynamic_quant_asymmetric(&x, &smooth, NULL, mode, &y, &scale, &offset, executor);
    case 8: return npuq_dynamic_quant(&x, &smooth, NULL, mode, form, &y, &scale, executor);
    case 9: return npuq_dynamic_quant_min_max(&x, &smooth, NULL, mode, &scale, &offset, executor);
    case 10: return npuq_dynamic_quant_apply(&x, &smooth, NULL, mode, &of_rows, &of_rows, &y, executor);
    default: return npuq_dynamic_quant_symmetric_apply(&x, NULL, NULL, mode, &of_rows, &of_rows, &y, executor);
    }
}

static void test_partitions(void **unused)
{
    static const size_t partitions[][THREADS + 1] = {
        {0, 250, 500, 750, 1000}, {0, 0, 1, 999, 1000}, {0, 1000, 1000, 1000, 1000}, {0, 333, 333, 900, 1000}};
    buffers expected = make_buffers();
    buffers got = make_buffers();

    (void)unused;
    for (int which = 0; which < OPERATORS; which++) {
        assert_int_equal(run_one(&expected, which, NULL), NPUQ_OK);
        FOR_EACH_BACKEND()
        {
            for (size_t p = 0; p < sizeof partitions / sizeof partitions[0]; p++) {
                size_t ends[THREADS + 1];
                const npuq_executor executor = {run_threads, ends};

                memcpy(ends, partitions[p], sizeof ends);
                assert_int_equal(run_one(&got, which, &executor), NPUQ_OK);
                test_same(got.out, expected.out, sizeof *got.out, "which %d, partition %zu", which, p);
            }
        }
    }
    free_buffers(&expected);
    free_buffers(&got);
}

/* ---- calls side by side ---- */

static atomic_size_t waiting; /* threads that have yet to come to await_others() */

static void await_others(void)
{
    atomic_fetch_sub(&waiting, 1);
    while (atomic_load(&waiting) > 0) {
        (void)sched_yield();
    }
}

typedef struct caller {
    pthread_t thread;
    buffers own;             /* but for the inputs, which are everybody's */
    const results *expected; /* [OPERATORS] */
    bool same;
} caller;

static atomic_size_t calling; /* threads in call_all() */

/* Asserts nothing: that is for the test's own thread. */
static void *call_all(void *argument)
{
    caller *c = argument;

    c->same = true;
    for (int again = 0; again < 3; again++) {
        for (int which = 0; which < OPERATORS; which++) {
            c->same = run_one(&c->own, which, NULL) == NPUQ_OK && c->same &&
                      memcmp(c->own.out, &c->expected[which], sizeof *c->own.out) == 0;
        }
    }
    atomic_fetch_sub(&calling, 1);
    return NULL;
}

/* Several threads call all operators; until they are done, the test's own calls meanwhile() again and again. */
static void call_side_by_side(void (*meanwhile)(void))
{
    buffers b = make_buffers();
    results *expected = malloc(sizeof *expected * OPERATORS);
    caller callers[THREADS];

    assert_non_null(expected);
    for (int which = 0; which < OPERATORS; which++) {
        assert_int_equal(run_one(&b, which, NULL), NPUQ_OK);
        expected[which] = *b.out;
    }
    for (size_t i = 0; i < THREADS; i++) {
        callers[i] = (caller){.own = b, .expected = expected};
        callers[i].own.out = malloc(sizeof *b.out);
        assert_non_null(callers[i].own.out);
    }
    FOR_EACH_BACKEND()
    {
        atomic_store(&calling, THREADS);
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&callers[i].thread, NULL, call_all, &callers[i]), 0);
        }
        while (meanwhile && atomic_load(&calling) > 0) {
            meanwhile();
        }
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
            assert_true(callers[i].same);
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        free(callers[i].own.out);
    }
    free(expected);
    free_buffers(&b);
}

static void test_concurrent_calls(void **unused)
{
    (void)unused;
    call_side_by_side(NULL);
}

/* ---- prepared calls ---- */

enum { RUNNERS = 8 };

typedef struct runner {
    pthread_t thread;
    size_t index;
    const test_drawing *drawing;
    const test_outcome *expected;
    const npuq_call *call;
    bool every_eighth; /* of the units, else an eighth of them side by side */
    bool same;
} runner;

/* All threads run one call; then each of them runs a copy that writes to memory of its own. */
static void *run_prepared(void *argument)
{
    runner *r = argument;
    const size_t units = npuq_call_units(r->call);
    npuq_call own = *r->call;
    unsigned char *memory[SLOTS] = {NULL};

    await_others();
    if (r->every_eighth) {
        for (size_t unit = r->index; unit < units; unit += RUNNERS) {
            npuq_call_run(r->call, unit, unit + 1);
        }
    } else {
        npuq_call_run(r->call, units * r->index / RUNNERS, units * (r->index + 1) / RUNNERS);
    }

    r->same = true;
    for (int slot = 0; slot < SLOTS; slot++) {
        const test_view *view = &r->drawing->views[slot];

        if (r->expected->bytes[slot]) {
            memory[slot] = malloc(view->size + 1);
            if (!memory[slot]) {
                abort();
            }
            memcpy(memory[slot], view->before, view->size);
            r->same = npuq_call_rebind(&own, (npuq_operand)test_operand_of((enum slot)slot),
                                       memory[slot] + ((unsigned char *)view->tensor.data - view->guarded.memory)) ==
                          NPUQ_OK &&
                      r->same;
        }
    }
    npuq_call_run(&own, 0, SIZE_MAX);
    for (int slot = 0; slot < SLOTS; slot++) {
        r->same =
            (!memory[slot] || memcmp(memory[slot], r->expected->bytes[slot], r->drawing->views[slot].size) == 0) &&
            r->same;
        free(memory[slot]);
    }
    return NULL;
}

static void test_prepared_on_threads(void **unused)
{
    (void)unused;
    for (int number = 0; number < TEST_OPERATORS * 12; number++) {
        test_drawing d = {
            .choose = test_below, .call.op = (enum test_operator)(number % TEST_OPERATORS), .large = true};
        runner runners[RUNNERS];

        if (!test_takes_executor(d.call.op)) {
            continue;
        }
        test_reseed((uint64_t)number);
        npuq_call call = test_draw_prepared(&d);
        test_outcome expected = test_expect_outcome(&d);

        FOR_EACH_BACKEND()
        {
            assert_int_equal(test_call_prepare(&call, &d.call), NPUQ_OK);
            atomic_store(&waiting, RUNNERS);
            for (size_t i = 0; i < RUNNERS; i++) {
                runners[i] = (runner){.index = i, .drawing = &d, .expected = &expected, .call = &call};
                runners[i].every_eighth = number / TEST_OPERATORS % 2;
                assert_int_equal(pthread_create(&runners[i].thread, NULL, run_prepared, &runners[i]), 0);
            }
            for (size_t i = 0; i < RUNNERS; i++) {
                assert_int_equal(pthread_join(runners[i].thread, NULL), 0);
                if (!runners[i].same) {
                    fail_msg("%s, call %d: thread %zu, of its own", operator_names[d.call.op], number, i);
                }
            }
            test_check_outcome(&d, &expected, operator_names[d.call.op], "of all threads");
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

/* ---- the choice of a backend ---- */

static void choose_each(void)
{
    for (npuq_backend b = NPUQ_BACKEND_REF; strcmp(npuq_backend_name(b), "unknown") != 0; b++) {
        assert_int_equal(npuq_set_backend(b), npuq_backend_available(b) ? NPUQ_OK : NPUQ_ERROR_BACKEND);
    }
    (void)sched_yield();
}

static void test_backend_changes_beside_calls(void **unused)
{
    (void)unused;
    call_side_by_side(choose_each);
}

/* A thread's first call, and what it found chosen. */
typedef struct first_call {
    pthread_t thread;
    npuq_status status;
    npuq_backend backend;
    int8_t y[5];
} first_call;

static void *call_first(void *argument)
{
    static const float x[] = {-1000, -1.5f, 0.5f, 2.5f, 1000};
    const float two = 2;
    const int64_t five = 5;
    const int64_t one = 1;
    first_call *c = argument;
    const npuq_tensor tx = npuq_tensor_contiguous((void *)x, NPUQ_FLOAT32, 1, &five);
    const npuq_tensor scale = npuq_tensor_contiguous((void *)&two, NPUQ_FLOAT32, 1, &one);
    const npuq_tensor y = npuq_tensor_contiguous(c->y, NPUQ_INT8, 1, &five);

    await_others();
    c->status = npuq_quantize(&tx, &scale, NULL, 0, false, &y, NULL);
    c->backend = npuq_active_backend();
    return NULL;
}

static first_call first_calls[THREADS];

/* Before any other call of this process: all threads choose at the same time. */
static void call_first_from_all_threads(void)
{
    atomic_store(&waiting, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&first_calls[i].thread, NULL, call_first, &first_calls[i]) != 0) {
            abort();
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(first_calls[i].thread, NULL);
    }
}

static void test_first_calls(void **unused)
{
    static const int8_t expected[] = {-128, -3, 1, 5, 127};

    (void)unused;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(first_calls[i].status, NPUQ_OK);
        assert_int_equal(first_calls[i].backend, npuq_active_backend());
        test_same(first_calls[i].y, expected, sizeof expected, "thread %zu", i);
    }
}

/* ---- the error line ---- */

static void *fail_elsewhere(void *argument)
{
    char *seen = argument;

    strcpy(seen, npuq_last_error()); /* "" on a fresh thread, whatever failed on another */
    return npuq_set_backend((npuq_backend)77) == NPUQ_ERROR_BACKEND ? argument : NULL;
}

static void test_last_error_is_per_thread(void **unused)
{
    char here[256];
    char seen[256] = "untouched";
    void *failed;
    pthread_t thread;

    (void)unused;
    assert_int_equal(npuq_quantize(NULL, NULL, NULL, 0, true, NULL, NULL), NPUQ_ERROR_NULL);
    strcpy(here, npuq_last_error());
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, seen), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_non_null(failed);
    assert_string_equal(seen, "");
    assert_string_equal(npuq_last_error(), here);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(test_first_calls)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_error_is_per_thread),
        cmocka_unit_test(test_partitions),
        cmocka_unit_test(test_concurrent_calls),
        cmocka_unit_test(test_prepared_on_threads),
        cmocka_unit_test(test_backend_changes_beside_calls),
    };

    (void)argv;
    call_first_from_all_threads();
    test_seed();
    const int failed = cmocka_run_group_tests_name("first calls", first, NULL, NULL);
    return argc > 1 ? failed : failed + cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
