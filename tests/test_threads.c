/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on several threads do not disturb each other, and each thread may choose the backend. With an argument, the
 * test has only first calls: all threads make theirs at once, and each finds the backend of NPUQ_BACKEND. Executors and
 * prepared calls on threads are in test_operators.c, and the error line of each thread is in test_errors.c. */
#include "calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the work ---- */

enum { CALLS = 8 * TEST_OPERATORS };

typedef struct work {
    test_drawing drawing;
    test_outcome expected;
    bool is_prepared;
    npuq_call prepared; /* by the test's own thread */
} work;

static work draw_work(size_t number)
{
    work w = {.drawing = {.choose = test_below,
                          .add = test_add_view,
                          .large = true,
                          .has_shape = number < CALLS / 2,
                          .ndim = 2,
                          .shape = {150, 1608},
                          .call.op = (enum test_operator)(number % TEST_OPERATORS)}};

    test_reseed(number);
    test_draw_elements(&w.drawing);
    w.expected = test_expect_outcome(&w.drawing);
    w.is_prepared =
        test_takes_executor(w.drawing.call.op) && test_call_prepare(&w.prepared, &w.drawing.call) == NPUQ_OK;
    return w;
}

static void free_work(work *w)
{
    test_free_outcome(&w->expected);
    test_free_drawing(&w->drawing);
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
    const work *works; /* [CALLS], with inputs that all threads share */
    bool same;
} caller;

static atomic_size_t calling; /* threads in call_all() */

/* Runs a copy of the prepared call that writes to its own memory. */
static bool run_copy(const npuq_call *prepared, const test_copy *own)
{
    npuq_call call = *prepared;
    const bool is_rebound = test_rebind_all(&call, &own->call) == NPUQ_OK;

    npuq_call_run(&call, 0, SIZE_MAX);
    return is_rebound;
}

/* Asserts nothing: only the test's own thread may. */
static void *call_all(void *argument)
{
    caller *c = argument;

    c->same = true;
    for (size_t number = 0; number < 3 * CALLS; number++) {
        const work *w = &c->works[number % CALLS];
        test_copy own = test_copy_call(&w->drawing);
        const bool done =
            w->is_prepared && number % 2 ? run_copy(&w->prepared, &own) : test_call_run(&own.call) == NPUQ_OK;

        c->same = done && test_copy_is(&own, &w->drawing, &w->expected) && c->same;
        test_free_copy(&own);
    }
    atomic_fetch_sub(&calling, 1);
    return NULL;
}

/* Several threads call all operators. Meanwhile the test's own thread repeats meanwhile(). */
static void call_side_by_side(void (*meanwhile)(void))
{
    work *works = test_allocate(sizeof *works * CALLS);
    caller callers[TEST_THREADS];

    for (size_t number = 0; number < CALLS; number++) {
        works[number] = draw_work(number);
    }
    FOR_EACH_BACKEND()
    {
        atomic_store(&calling, TEST_THREADS);
        for (size_t i = 0; i < TEST_THREADS; i++) {
            callers[i] = (caller){.works = works};
            assert_int_equal(pthread_create(&callers[i].thread, NULL, call_all, &callers[i]), 0);
        }
        while (meanwhile && atomic_load(&calling) > 0) {
            meanwhile();
        }
        for (size_t i = 0; i < TEST_THREADS; i++) {
            assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
            assert_true(callers[i].same);
        }
    }
    for (size_t number = 0; number < CALLS; number++) {
        free_work(&works[number]);
    }
    free(works);
}

static void test_concurrent_calls(void **unused)
{
    (void)unused;
    call_side_by_side(NULL);
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

/* A thread's first call, and the backend that it found. */
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
    first_call *c = argument;
    const npuq_tensor tx = npuq_vector(x, NPUQ_FLOAT32, 5);
    const npuq_tensor scale = npuq_vector(&two, NPUQ_FLOAT32, 1);
    const npuq_tensor y = npuq_vector(c->y, NPUQ_INT8, 5);

    await_others();
    c->status = npuq_quantize(&tx, &scale, NULL, 0, false, &y, NULL);
    c->backend = npuq_active_backend();
    return NULL;
}

static first_call first_calls[TEST_THREADS];

/* Before any other call of the process: all threads choose at the same time. */
static void call_first_from_all_threads(void)
{
    atomic_store(&waiting, TEST_THREADS);
    for (size_t i = 0; i < TEST_THREADS; i++) {
        if (pthread_create(&first_calls[i].thread, NULL, call_first, &first_calls[i]) != 0) {
            abort();
        }
    }
    for (size_t i = 0; i < TEST_THREADS; i++) {
        (void)pthread_join(first_calls[i].thread, NULL);
    }
}

static void test_first_calls(void **unused)
{
    static const int8_t expected[] = {-128, -3, 1, 5, 127};

    (void)unused;
    for (size_t i = 0; i < TEST_THREADS; i++) {
        assert_int_equal(first_calls[i].status, NPUQ_OK);
        assert_int_equal(first_calls[i].backend, npuq_active_backend());
        test_same(first_calls[i].y, expected, sizeof expected, "thread %zu", i);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(test_first_calls)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concurrent_calls),
        cmocka_unit_test(test_backend_changes_beside_calls),
    };

    (void)argv;
    call_first_from_all_threads();
    test_seed();
    const int failed = cmocka_run_group_tests_name("first calls", first, NULL, NULL);
    return argc > 1 ? failed : failed + cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
