/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of cmocka's API that these tests use, for targets without cmocka. Not derived from cmocka: only the names
 * and their effects are the same. Native builds want the real cmocka. */
#ifndef NPUQ_TESTS_CMOCKA_H
#define NPUQ_TESTS_CMOCKA_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    CMFixtureFunction setup_func; /* no test here has these two */
    CMFixtureFunction teardown_func;
    void *initial_state;
};

/* clang-format off */
#define cmocka_unit_test(function) {#function, function, NULL, NULL, NULL}
/* clang-format on */

#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                                      \
    _cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof(tests)[0], setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown) cmocka_run_group_tests_name(#tests, tests, setup, teardown)

/* Returns how many failed. */
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                            CMFixtureFunction teardown);

#define print_message(...)              ((void)printf(__VA_ARGS__), (void)fflush(stdout))
#define print_error(...)                ((void)fprintf(stderr, __VA_ARGS__))
#define vprint_error(format, arguments) ((void)vfprintf(stderr, format, arguments))

/* Fails the test; without setjmp(), or on another thread, ends the program. */
_Noreturn void standin_fail(void);

#define fail_msg(...) (print_error("%s:%d: ", __FILE__, __LINE__), print_error(__VA_ARGS__), fail())
#define fail()        (print_error("\n%s:%d: failed\n", __FILE__, __LINE__), standin_fail())

/* Skips the rest of the test. Without setjmp() this has to be the test's last step. */
#ifdef __wasi__
void standin_skip(void);
#else
_Noreturn void standin_skip(void);
#endif
#define skip() standin_skip()

#define assert_true(c)                  ((c) ? (void)0 : fail_msg("does not hold: %s", #c))
#define assert_false(c)                 assert_true(!(c))
#define assert_null(p)                  assert_true((p) == NULL)
#define assert_non_null(p)              assert_true((p) != NULL)
#define assert_ptr_equal(a, b)          assert_true((a) == (b))
#define assert_ptr_not_equal(a, b)      assert_true((a) != (b))
#define assert_string_equal(a, b)       assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, size) assert_true(memcmp(a, b, size) == 0)

/* Integers are compared as unsigned, in the largest type. */
#define assert_int_equal(a, b) standin_equal((uintmax_t)(a), (uintmax_t)(b), #a " is " #b, __FILE__, __LINE__)
#define assert_in_range(value, first, last)                                                                            \
    assert_true((uintmax_t)(value) - (uintmax_t)(first) <= (uintmax_t)(last) - (uintmax_t)(first))
void standin_equal(uintmax_t a, uintmax_t b, const char *what, const char *file, int line);

#endif
