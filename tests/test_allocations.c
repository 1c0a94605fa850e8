/* SPDX-License-Identifier: BSD-3-Clause */
/* A plugin with the library and, if PROGRAM is defined, the program that loads the plugin: calls allocate nothing,
 * except that a thread's first failure may (docs/threads.md). The program's malloc() counts, also for the loader. */
#ifdef PROGRAM
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 64 };
static _Alignas(HEADER) unsigned char memory[1 << 28]; /* never given back */
static atomic_size_t used;
static _Thread_local size_t allocations;

static void *allocate(size_t size)
{
    const size_t padded = size > sizeof memory ? sizeof memory : (size + HEADER - 1) / HEADER * HEADER;
    const size_t place = atomic_fetch_add(&used, HEADER + padded);

    allocations++;
    if (place + HEADER + padded > sizeof memory) {
        abort();
    }
    memcpy(memory + place, &size, sizeof size);
    return memory + place + HEADER;
}

void *malloc(size_t size)
{
    return allocate(size);
}

void *calloc(size_t n, size_t size)
{
    return allocate(size != 0 && n > SIZE_MAX / size ? SIZE_MAX : n * size);
}

void *realloc(void *old, size_t size)
{
    void *new = allocate(size);
    size_t old_size = 0;

    if (old) {
        memcpy(&old_size, (unsigned char *)old - HEADER, sizeof old_size);
        memcpy(new, old, old_size < size ? old_size : size);
    }
    return new;
}

void free(void *old)
{
    (void)old;
}

static size_t allocations_so_far(void)
{
    return allocations;
}

static bool (*check_allocations)(size_t (*so_far)(void), bool asks_first);
static int passed;

static void *check(void *asks_first)
{
    passed += check_allocations(allocations_so_far, asks_first != NULL);
    return NULL;
}

int main(int count, char *arguments[])
{
    void *plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;

    if (!plugin) {
        printf("%s\n", count == 2 ? dlerror() : "usage: test_allocations PLUGIN");
        return 1;
    }
    *(void **)&check_allocations = dlsym(plugin, "check_allocations");
    (void)check(NULL); /* on a thread that is older than the library */
    for (int i = 0; i < 2; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, check, i ? memory : NULL) || pthread_join(thread, NULL)) {
            return 1;
        }
    }
    return passed == 3 ? 0 : 1;
}
#else
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

/* so_far: the allocations of the calling thread. asks_first: for its message, before a call fails. */
bool check_allocations(size_t (*so_far)(void), bool asks_first);

static void run_here(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                     void *argument)
{
    (void)context;
    task(argument, 0, count);
}

/* CALL is true and allocates nothing. */
#define CHECK(CALL)                                                                                                    \
    do {                                                                                                               \
        const size_t before = so_far();                                                                                \
        const bool is_true = (CALL);                                                                                   \
        const size_t made = so_far() - before;                                                                         \
        if (!is_true || made != 0) {                                                                                   \
            printf("line %d, %s: %s, %zu allocations\n", __LINE__, operator_names[d.call.op],                          \
                   is_true ? "true" : npuq_last_error(), made);                                                        \
            passed = false;                                                                                            \
        }                                                                                                              \
    } while (0)

bool check_allocations(size_t (*so_far)(void), bool asks_first)
{
    static bool seeded;
    static const npuq_executor here = {run_here, NULL};
    test_drawing d = test_undrawn((enum test_operator)0);
    bool passed = true;
    npuq_call prepared;
    size_t start = so_far();

    free((void *volatile){malloc(1)});
    if (so_far() == start) {
        printf("the allocations of a plugin are not counted\n");
        return false;
    }
    CHECK(npuq_backend_available(npuq_active_backend()));
    if (!seeded) {
        test_seed();
        seeded = true;
    }
    for (size_t number = 0; number < 4 * TEST_OPERATORS; number++) {
        d = test_undrawn((enum test_operator)(number % TEST_OPERATORS));
        d.large = number < TEST_OPERATORS;
        test_reseed(number);
        test_draw_elements(&d);
        FOR_EACH_BACKEND()
        {
            d.call.executor = NULL;
            CHECK(test_call_run(&d.call) == NPUQ_OK);
            d.call.executor = &here;
            CHECK(test_call_run(&d.call) == NPUQ_OK);
            if (!test_takes_executor(d.call.op) ||
                (test_finds_ranges(d.call.op) && d.call.quant_mode == NPUQ_PER_TENSOR)) {
                continue;
            }
            CHECK(test_call_prepare(&prepared, &d.call) == NPUQ_OK);
            CHECK((npuq_call_run(&prepared, 0, npuq_call_units(&prepared)), true));
            CHECK(test_rebind_all(&prepared, &d.call) == NPUQ_OK);
        }
        test_free_drawing(&d);
    }

    start = so_far();
    if (asks_first) {
        (void)npuq_last_error();
    } else {
        (void)npuq_set_backend((npuq_backend)99);
    }
    printf("# %zu allocations by %s\n", so_far() - start, asks_first ? "npuq_last_error()" : "the first failure");
    for (size_t number = 0; number < TEST_OPERATORS; number++) {
        d = test_undrawn((enum test_operator)number);
        test_reseed(number);
        test_draw_elements(&d);
        for (int slot = 0; slot < SLOTS; slot++) {
            if (d.call.given[slot] && !test_is_optional(d.call.op, (enum slot)slot)) {
                d.call.given[slot] = false;
                CHECK(test_call_run(&d.call) == NPUQ_ERROR_NULL && npuq_last_error()[0] != '\0');
                d.call.given[slot] = true;
                d.call.tensors[slot].ndim = NPUQ_MAX_NDIM + 1;
                CHECK(test_call_run(&d.call) == NPUQ_ERROR_SHAPE);
                break;
            }
        }
        test_free_drawing(&d);
    }
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_Y, NULL) != NPUQ_OK);
    return passed;
}
#endif
