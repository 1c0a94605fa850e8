/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests: a seeded random source, values that cause trouble, memory between guard pages, and tensor views
 * of every layout. */
#ifndef NPUQ_TESTS_SUPPORT_H
#define NPUQ_TESTS_SUPPORT_H

#include <npuquant/npuquant.h>

#ifndef __wasi__
#include <setjmp.h>
#endif
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- random ---- */

/* Seeds the source from NPUQ_TEST_SEED, or at random. Prints the seed and the backends to try. Skips the test if
 * NPUQ_BACKEND is not available. */
void test_seed(void);
/* Restarts the source from the seed and a number, so that one case can be run by itself. */
void test_reseed(uint64_t number);
/* Returns all, or with NPUQ_TEST_SHARE=N the Nth part, for emulators; with NPUQ_TEST_TIMES=N so many times more. */
int test_rounds(int all);
uint64_t test_random(void);
size_t test_below(size_t end);                     /* 0..end-1 */
int64_t test_between(int64_t first, int64_t last); /* first..last */
bool test_one_in(unsigned n);

/* ---- backends ---- */

/* Chooses backend number i, from 0 on, of this CPU's, or the one that NPUQ_BACKEND names. False behind the last. Each
 * backend finds the random source in the same state; afterwards the source goes on from that state. */
bool test_choose_backend(size_t i);
#define FOR_EACH_BACKEND() for (size_t backend_index = 0; test_choose_backend(backend_index); backend_index++)

/* ---- elements ---- */

/* Fills n elements. Most floats are of the size of a quantised value. Others are exact halves, range ends, subnormals,
 * NaN, infinities and zeros of both signs; `finite` leaves NaN and infinities out. INT32 may be sums of products. INT64
 * and UINT64 are words that npuq_requant() takes, sometimes all without an offset. */
void test_fill(void *data, npuq_dtype dtype, size_t n, bool finite);

/* A random float with the bits of such an element, as binary32. */
float test_float(bool finite);

/* Truncates to a float16 or bfloat16 pattern: for test data. */
uint16_t test_to_half(float value, npuq_dtype dtype);

/* ---- memory ---- */

/* So many bytes, not null; the caller frees them. */
void *test_allocate(size_t size);

/* Memory between two pages that fault: `gap` bytes before the second page, or behind the first. On WebAssembly no page
 * faults: freeing the memory checks the bytes around it. */
typedef struct test_guarded {
    unsigned char *memory;
    size_t size;
    void *map;
    size_t map_size;
} test_guarded;

test_guarded test_guarded_make(size_t size, bool at_end, size_t gap);
void test_guarded_free(test_guarded *guarded);
/* Such memory, which test_free_guards() frees with all other. */
void *test_guard(size_t size, bool at_end, size_t gap);
void test_free_guards(void);

/* From here on, a fault ends the program with the line that `describe` makes. Not on WebAssembly, which cannot catch a
 * fault and prints the stack. */
void test_describe_faults(void (*describe)(char *line, size_t size, const char *what));

/* ---- threads ---- */

/* Runs body on another thread, to its end. False if the system has no threads. */
bool test_run_on_thread(void *(*body)(void *argument), void *argument);

/* ---- views ---- */

typedef struct test_view {
    npuq_tensor tensor;
    test_guarded guarded; /* holds all elements of the view and what lies between them */
    size_t size;
    unsigned char *before; /* what it held at first */
} test_view;

typedef enum test_layout {
    TEST_CONTIGUOUS,
    TEST_STRIDED,   /* permuted, padded, sliced, turned round */
    TEST_BROADCAST, /* strided, and some dimensions of stride 0: for inputs */
} test_layout;

/* A view with its own memory, filled with random bytes. */
test_view test_view_make(npuq_dtype dtype, int ndim, const int64_t *shape, test_layout layout);
void test_view_free(test_view *view);

/* Elements in row-major order, from and to a contiguous array. */
void test_view_read(const npuq_tensor *view, void *array);
void test_view_write(const npuq_tensor *view, const void *array);

/* Element i along the last dimension of an INT32, INT64 or UINT64 view. */
void test_put_integer(const npuq_tensor *view, int64_t i, int64_t value);

/* Randomises the flags and offsets of words, which npuq_requant() to FLOAT16 ignores. */
void test_view_any_flags(const npuq_tensor *words);
/* Whether several elements all have one address. */
bool test_repeats_one_element(const npuq_tensor *view);

/* The product of a shape's extents. */
static inline size_t test_count(int ndim, const int64_t *shape)
{
    size_t count = 1;

    for (int d = 0; d < ndim; d++) {
        count *= (size_t)shape[d];
    }
    return count;
}

/* Fails if a byte outside the view's elements has changed since test_view_make(). Puts the elements back. */
void test_view_untouched_outside(const test_view *view);
void test_view_untouched(const test_view *view);

/* ---- executors ---- */

/* Runs random ranges in random order on the calling thread. */
extern const npuq_executor test_shuffled_executor;

/* What an executor does on a thread, with test_run_part() as its body. */
typedef struct test_part {
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
    size_t begin;
    size_t end;
} test_part;
void *test_run_part(void *part);

enum { TEST_THREADS = 4 };

/* For an executor that runs a part on each thread; in turn if the system has no threads. context:
 * size_t[TEST_THREADS + 1], where the parts end, in 1/1000 of the whole. */
void test_run_parts(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                    void *argument);

#define test_same(got, expected, size, ...) test_same_at(got, expected, size, __FILE__, __LINE__, __VA_ARGS__)
void test_same_at(const void *got, const void *expected, size_t size, const char *file, int line, const char *format,
                  ...);

#endif
