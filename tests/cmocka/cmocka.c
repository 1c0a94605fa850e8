/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmocka.h"

#include <inttypes.h>
#include <stdlib.h>

#ifndef __wasi__
#include <setjmp.h>

static _Thread_local jmp_buf *test_end; /* of the thread that runs the tests: no other can go there */
#endif

static enum { PASSED, SKIPPED, FAILED } outcome;

void standin_fail(void)
{
#ifndef __wasi__
    if (test_end) {
        longjmp(*test_end, FAILED);
    }
#endif
    exit(1);
}

void standin_skip(void)
{
#ifndef __wasi__
    if (test_end) {
        longjmp(*test_end, SKIPPED);
    }
    exit(1);
#else
    outcome = SKIPPED;
#endif
}

void standin_equal(uintmax_t a, uintmax_t b, const char *what, const char *file, int line)
{
    if (a != b) {
        print_error("%s:%d: does not hold: %s (%#" PRIxMAX ", %#" PRIxMAX ")\n", file, line, what, a, b);
        standin_fail();
    }
}

static void run_test(const struct CMUnitTest *test)
{
    void *state = test->initial_state;

    outcome = PASSED;
#ifndef __wasi__
    jmp_buf end;

    test_end = &end;
    switch (setjmp(end)) {
    case 0: test->test_func(&state); break;
    case SKIPPED: outcome = SKIPPED; break;
    default: outcome = FAILED; break;
    }
    test_end = NULL;
#else
    test->test_func(&state);
#endif
}

int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                            CMFixtureFunction teardown)
{
    static const char *const outcomes[] = {"passed", "skipped", "FAILED"};
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        if (setup || teardown || tests[i].setup_func || tests[i].teardown_func) {
            fail_msg("%s: setup and teardown are not run here", tests[i].name);
        }
        print_message("%s: %s\n", name, tests[i].name);
        run_test(&tests[i]);
        failed += outcome == FAILED;
        print_message("%s: %s %s\n", name, tests[i].name, outcomes[outcome]);
    }
    print_message("%s: %d of %zu failed\n", name, failed, count);
    return failed;
}
