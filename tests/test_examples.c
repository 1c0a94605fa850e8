/* SPDX-License-Identifier: BSD-3-Clause */
/* The worked examples of the operators, with every backend: the results have the same bits. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

struct example {
    const char *name;
    test_call call; /* without tensors */
    struct example_argument {
        enum slot slot;
        npuq_dtype dtype;
        int64_t shape[4]; /* 0 ends it */
        const void *data; /* in the order of the memory; null: a result that is not compared */
        bool is_fortran;  /* the first dimension is the densest */
    } arguments[8];
};

#include "examples.h"

enum { EXAMPLES = sizeof examples / sizeof examples[0] };

static npuq_tensor view_of(const struct example_argument *argument, const void *data)
{
    npuq_tensor view = npuq_vector(data, argument->dtype, 1);
    int64_t stride = 1;

    for (view.ndim = 0; argument->shape[view.ndim] > 0; view.ndim++) {
        view.shape[view.ndim] = argument->shape[view.ndim];
    }
    for (int i = 0; i < view.ndim; i++) {
        const int d = argument->is_fortran ? i : view.ndim - 1 - i;
        view.strides[d] = stride;
        stride *= view.shape[d];
    }
    return view;
}

static void run_example(const struct example *example)
{
    test_call call = example->call;
    void *results[SLOTS] = {NULL};

    for (const struct example_argument *a = example->arguments; a->shape[0] > 0; a++) {
        call.tensors[a->slot] = view_of(a, a->data);
        call.given[a->slot] = true;
        if (test_is_output(call.op, a->slot)) {
            const npuq_tensor *view = &call.tensors[a->slot];
            results[a->slot] = calloc(test_count(view->ndim, view->shape), npuq_dtype_size(a->dtype));
            assert_non_null(results[a->slot]);
            call.tensors[a->slot].data = results[a->slot];
        }
    }
    assert_int_equal(test_call_run(&call), NPUQ_OK);
    for (const struct example_argument *a = example->arguments; a->shape[0] > 0; a++) {
        const npuq_tensor *view = &call.tensors[a->slot];
        if (results[a->slot] && a->data) {
            test_same(results[a->slot], a->data, test_count(view->ndim, view->shape) * npuq_dtype_size(a->dtype),
                      "%s: %s", example->name, slot_names[a->slot]);
        }
        free(results[a->slot]);
    }
}

static void test_example(void **state)
{
    FOR_EACH_BACKEND()
    {
        run_example(*state);
    }
}

int main(void)
{
    static struct CMUnitTest tests[EXAMPLES];

    for (size_t i = 0; i < EXAMPLES; i++) {
        tests[i] = (struct CMUnitTest){examples[i].name, test_example, NULL, NULL, (void *)&examples[i]};
    }
    test_seed();
    return _cmocka_run_group_tests("examples", tests, EXAMPLES, NULL, NULL);
}
