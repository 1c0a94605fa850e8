/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests share: a seeded random source, values that cause trouble, memory between guard pages, and tensor views
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

/* Seeds the source from NPUQ_TEST_SEED, or with a number of its own choice, and prints it, and the backends to try. The
 * test is skipped if NPUQ_BACKEND names one that is not here. */
void test_seed(void);
/* Starts the source again from the seed and a number: so that one case can be run by itself. */
void test_reseed(uint64_t number);
/* How often to repeat what should be repeated so often: with NPUQ_TEST_SHARE=N the Nth part, for emulators. */
int test_rounds(int all);
uint64_t test_random(void);
size_t test_below(size_t end);                     /* 0..end-1 */
int64_t test_between(int64_t first, int64_t last); /* first..last */
bool test_one_in(unsigned n);

/* ---- backends ---- */

/* Chooses backend number i, from 0 on, of those that this CPU has, or of the one that NPUQ_BACKEND names. False behind
 * the last: then the random source goes on as if none had been tried, and with each of them it is in the same state. */
bool test_choose_backend(size_t i);
#define FOR_EACH_BACKEND() for (size_t backend_index = 0; test_choose_backend(backend_index); backend_index++)

/* ---- elements ---- */

/* Fills n elements. Floats are mostly of the size of a quantised value, with exact halves, range ends, subnormals,
 * NaN, infinities and zeros of both signs among them; `finite` leaves NaN and infinities out. INT32 may be sums of
 * products. INT64 and UINT64 are words that npuq_requant() takes, sometimes all without an offset. */
void test_fill(void *data, npuq_dtype dtype, size_t n, bool finite);

/* A random float pattern of that kind, as binary32. */
float test_float(bool finite);

/* The nearest float16 or bfloat16 pattern, truncating: for making test data. */
uint16_t test_to_half(float value, npuq_dtype dtype);

/* ---- memory ---- */

/* Memory between two pages that fault: flush with the one behind, or with the one before it, but for `gap` bytes. On
 * WebAssembly, where any page can be read and written, bytes before and behind it are looked at when it is freed. */
typedef struct test_guarded {
    unsigned char *memory;
    size_t size;
    void *map;
    size_t map_size;
} test_guarded;

test_guarded test_guarded_make(size_t size, bool at_end, size_t gap);
void test_guarded_free(test_guarded *guarded);

/* From here on, a fault ends the program with the line that `describe` makes of what it was. Not on WebAssembly, where
 * a fault cannot be caught and shows the functions that it is in. */
void test_describe_faults(void (*describe)(char *line, size_t size, const char *what));

/* ---- threads ---- */

/* Runs body on a thread of its own, to its end. False where there are no threads. */
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

/* A view with memory of its own, filled with random bytes. */
test_view test_view_make(npuq_dtype dtype, int ndim, const int64_t *shape, test_layout layout);
void test_view_free(test_view *view);

/* Elements in row-major order, from and to a contiguous array. */
void test_view_read(const npuq_tensor *view, void *array);
void test_view_write(const npuq_tensor *view, const void *array);

/* Makes the flags and offsets of a view of words random, which npuq_requant() to FLOAT16 does not look at. */
void test_view_any_flags(const npuq_tensor *words);
/* More than one element, and all of them are one in memory. */
bool test_repeats_one_element(const npuq_tensor *view);
size_t test_count(int ndim, const int64_t *shape);

/* Fails if a byte outside the view's elements has changed since test_view_make(). The elements are then as at first. */
void test_view_untouched_outside(const test_view *view);
/* Fails if any byte has changed. */
void test_view_untouched(const test_view *view);

/* ---- executors ---- */

/* Runs random ranges in random order on the calling thread. */
extern const npuq_executor test_shuffled_executor;

/* Compares two arrays and names the first difference, and the backend. */
#define test_same(got, expected, size, ...) test_same_at(got, expected, size, __FILE__, __LINE__, __VA_ARGS__)
void test_same_at(const void *got, const void *expected, size_t size, const char *file, int line, const char *format,
                  ...);

#endif
