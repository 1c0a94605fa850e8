/* SPDX-License-Identifier: BSD-3-Clause */
/* A diagnosis without enough memory says so, and leaks none: every allocation fails once. The program compiles the
 * diagnosis with its own allocation functions. */
#include "facts.h"
#include "random_call.h"
#include "support.h"

#include <stdlib.h>

static long left = -1; /* allocations that succeed; negative: all */
static long living;

void *failing_malloc(size_t size);
void *failing_calloc(size_t count, size_t size);
void *failing_realloc(void *memory, size_t size);
void counting_free(void *memory);

static bool fails(void)
{
    left -= left > 0;
    return left == 0;
}

static void *counted(void *memory)
{
    living += memory != NULL;
    return memory;
}

void *failing_malloc(size_t size)
{
    return fails() ? NULL : counted(malloc(size));
}

void *failing_calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(calloc(count, size));
}

void *failing_realloc(void *memory, size_t size)
{
    if (fails()) {
        return NULL;
    }
    living -= memory != NULL;
    return counted(realloc(memory, size));
}

void counting_free(void *memory)
{
    living -= memory != NULL;
    free(memory);
}

/* Whether all went well; *facts are those of the diagnosis. */
static bool find_facts(const struct random_call *random, uint64_t *facts)
{
    struct diagnosis diagnosis;
    const bool ok = diagnose(&random->call, random->results, random->dump, NULL, &diagnosis);

    if (ok) {
        *facts = facts_of_diagnosis(&random->call, random->dump, &diagnosis);
    }
    diagnosis_release(&diagnosis);
    return ok;
}

static void test_diagnose(void **unused)
{
    (void)unused;
    for (int again = 0; again < test_rounds(2) * NUMBER_OF_OPERATORS; again++) {
        struct random_call random;
        uint64_t expected = 0;
        uint64_t facts = 0;
        bool ok = false;

        /* A small one allocates at as many places. */
        while (!random_call_make(&random, 1U << again % NUMBER_OF_OPERATORS, test_below) || random.call.count < 2 ||
               random.call.count > 32) {
            random_call_release(&random);
        }
        for (int r = 0; r < call_results(&random.call); r++) { /* noise, so that pairs are tried */
            for (size_t i = 0; i < random.results[r].count; i++) {
                array_set_bits(&random.dump[r], i, array_bits(&random.results[r], i) ^ (test_random() & 3));
            }
        }
        assert_true(find_facts(&random, &expected));
        const long before = living;
        for (long n = 1; !ok; n++) {
            left = n;
            ok = find_facts(&random, &facts);
            ok = ok && left != 0; /* none failed */
            assert_true(ok == (left != 0));
            left = -1;
            assert_true(!ok || facts == expected);
            assert_int_equal(living, before);
        }
        random_call_release(&random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_diagnose)};

    test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
