/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack that a task, a run of a prepared call and a whole call take on a caller's thread: the limits in
 * docs/threads.md. */
#define _DARWIN_C_SOURCE

#include "calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The limits of docs/threads.md. 50 KiB are buffers. Unoptimised, each vector of a kernel has its own place. */
#ifdef __OPTIMIZE__
enum { LIMIT = 60 * 1024 };
#else
enum { LIMIT = 128 * 1024 };
#endif

enum { STACK = 1 << 20, PAINT = 0xA5 };

static unsigned char *stack;

/* Runs body on a thread with a painted stack. Returns how many bytes lost the paint. */
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

/* context: size_t, the most so far */
static void run_measured(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    test_part all = {task, argument, 0, count};
    size_t *most = context;
    const size_t used = stack_of(test_run_part, &all);

    *most = used > *most ? used : *most;
}

/* ---- the operators ---- */

enum { CALLS = 48 * TEST_OPERATORS };

static void *run_call(void *argument)
{
    if (test_call_run(argument) != NPUQ_OK) { /* cmocka's assertions belong to the first thread */
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

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void test_stack(void **unused)
{
    size_t in_tasks = 0;
    size_t in_calls = 0;
    size_t in_runs = 0;
    size_t base;

    (void)unused;
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stack != MAP_FAILED);
    base = stack_of(do_nothing, NULL); /* the system's own part */
    for (size_t number = 0; number < CALLS; number++) {
        test_drawing d = test_undrawn((enum test_operator)(number % TEST_OPERATORS));
        const npuq_executor measuring = {run_measured, &in_tasks};
        npuq_call prepared;

        d.large = true;
        test_reseed(number);
        test_draw_elements(&d);
        FOR_EACH_BACKEND()
        {
            d.call.executor = NULL;
            in_calls = larger(in_calls, stack_of(run_call, &d.call));
            d.call.executor = &measuring;
            (void)run_call(&d.call);
            if (test_takes_executor(d.call.op) && test_call_prepare(&prepared, &d.call) == NPUQ_OK) {
                in_runs = larger(in_runs, stack_of(run_prepared, &prepared));
            }
        }
        test_free_drawing(&d);
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
