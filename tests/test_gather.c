/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathering and scattering between guard pages: rectangles of all element sizes, steps and directions, larger and
 * smaller than the squares that the library transposes at once. */
#include "support.h"

#include "tile/gather.h"

#include <stdlib.h>

static npuq_place strided(const npuq_tensor *view)
{
    const ptrdiff_t size = (ptrdiff_t)npuq_dtype_size(view->dtype);
    /* The stride of an extent of 1 may be anything. */
    return (npuq_place){view->data, (ptrdiff_t)view->strides[0] * size, (ptrdiff_t)view->strides[1] * size};
}

static void check_copy(npuq_dtype dtype, const int64_t *shape)
{
    const size_t bytes = test_count(2, shape) * npuq_dtype_size(dtype);
    test_view from = test_view_make(dtype, 2, shape, test_one_in(4) ? TEST_CONTIGUOUS : TEST_BROADCAST);
    test_view to = test_view_make(dtype, 2, shape, test_one_in(4) ? TEST_CONTIGUOUS : TEST_STRIDED);
    void *expected = test_allocate(bytes);
    void *got = test_allocate(bytes);

    npuq_copy_tile(strided(&to.tensor), strided(&from.tensor), npuq_dtype_size(dtype), (size_t)shape[0],
                   (size_t)shape[1]);
    test_view_read(&from.tensor, expected);
    test_view_read(&to.tensor, got);
    test_same(got, expected, bytes, "%d x %d", (int)shape[0], (int)shape[1]);
    test_view_untouched(&from);
    test_view_untouched_outside(&to);
    test_view_free(&from);
    test_view_free(&to);
    free(expected);
    free(got);
}

static void test_copy(void **unused)
{
    static const npuq_dtype dtypes[] = {NPUQ_INT8, NPUQ_FLOAT16, NPUQ_FLOAT32};

    (void)unused;
    for (int i = 0; i < 3; i++) {
        for (int again = 0; again < test_rounds(4000); again++) {
            const int64_t most = again % 16 == 0 ? 200 : 40;
            const int64_t shape[] = {test_between(1, most), test_between(1, most)};

            check_copy(dtypes[i], shape);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy)};

    test_seed();
    return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
