/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators against the reference: every pair of dtypes, mode and axis, on views of every layout. */
#include "calls.h"

#include "ref/npuq_ref.h"
#include "ref/npuq_ref_element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const npuq_dtype floats[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static void *allocate(size_t size)
{
    void *memory = malloc(size + 1);
    assert_non_null(memory);
    return memory;
}

/* A view, and its elements in row-major order; the reference computes an output's elements. */
typedef struct argument {
    test_view view;
    void *elements;
    size_t count;
    const char *output; /* its name, or null: an input */
} argument;

/* The arguments of the case, until end_case(). */
static argument arguments[16];
static size_t argument_count;

static argument keep(argument a)
{
    assert_true(argument_count < COUNT(arguments));
    return arguments[argument_count++] = a;
}

static void drop(argument *a)
{
    test_view_free(&a->view);
    free(a->elements);
}

/* Whether all tensors of the case are contiguous: such calls take a fast path. The reference's results compare this
 * path with the general path. */
static bool all_contiguous;

static argument draw_input(npuq_dtype dtype, int ndim, const int64_t *shape, bool finite)
{
    const test_layout layout = all_contiguous || test_one_in(3) ? TEST_CONTIGUOUS
                               : test_one_in(3)                 ? TEST_BROADCAST
                                                                : TEST_STRIDED;
    argument a = {.view = test_view_make(dtype, ndim, shape, layout), .count = test_count(ndim, shape)};
    const size_t size = npuq_dtype_size(dtype);
    const bool few = !finite && test_one_in(2); /* NaN and infinities in one place only */

    a.elements = allocate(a.count * size);
    test_fill(a.elements, dtype, a.count, finite || few);
    if (few && a.count > 16) {
        test_fill((char *)a.elements + test_below(a.count - 16) * size, dtype, 16, false);
    }
    test_view_write(&a.view.tensor, a.elements);
    test_view_read(&a.view.tensor, a.elements); /* where the view repeats elements, the last written value stays */
    memcpy(a.view.before, a.view.guarded.memory, a.view.size);
    return a;
}

static argument make_input(npuq_dtype dtype, int ndim, const int64_t *shape, bool finite)
{
    return keep(draw_input(dtype, ndim, shape, finite));
}

/* The input that is quantised: no part along dimension `along` is one repeated element, even if its extent is 1. */
static argument make_x_of_parts(npuq_dtype dtype, const int64_t *shape, int along, bool finite)
{
    argument a = draw_input(dtype, 2, shape, finite);

    while (a.view.tensor.strides[1] == 0 && (along == 0 || a.view.tensor.strides[0] == 0)) {
        drop(&a);
        a = draw_input(dtype, 2, shape, finite);
    }
    return keep(a);
}

/* An output; the reference fills elements. */
static argument make_output(const char *name, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    const test_layout layout = all_contiguous || test_one_in(3) ? TEST_CONTIGUOUS : TEST_STRIDED;
    argument a = {.view = test_view_make(dtype, ndim, shape, layout), .count = test_count(ndim, shape), .output = name};

    a.elements = allocate(a.count * npuq_dtype_size(dtype));
    return keep(a);
}

static void check_ok(npuq_status status)
{
    if (status != NPUQ_OK) {
        fail_msg("backend %s: %s: %s", npuq_backend_name(npuq_active_backend()), npuq_status_name(status),
                 npuq_last_error());
    }
}

/* Checks the elements of an output, and that no other byte changed. Puts the elements back. */
static void check_elements(const test_view *view, const void *expected, const char *call, const char *output)
{
    const npuq_tensor *tensor = &view->tensor;
    const size_t size = test_count(tensor->ndim, tensor->shape) * npuq_dtype_size(tensor->dtype);
    void *got = allocate(size);

    test_view_read(tensor, got);
    test_same(got, expected, size, "%s: %s, %s", call, output, npuq_dtype_name(tensor->dtype));
    test_view_untouched_outside(view);
    free(got);
}

/* Checks all outputs and inputs. Puts the outputs back. */
static void check_outputs(const char *name)
{
    for (size_t i = 0; i < argument_count; i++) {
        argument *a = &arguments[i];

        if (a->output) {
            check_elements(&a->view, a->elements, name, a->output);
        } else {
            test_view_untouched(&a->view);
        }
    }
}

static void end_case(void)
{
    while (argument_count > 0) {
        drop(&arguments[--argument_count]);
    }
}

static npuq_ref_dtype ref_type(npuq_dtype dtype)
{
    return (npuq_ref_dtype)dtype;
}

static const npuq_executor *any_executor(void)
{
    return test_one_in(2) ? &test_shuffled_executor : NULL;
}

/* Mostly small shapes. Sometimes a last dimension longer than the library's buffers, or transposed rows and columns of
 * more than one block. Also draws the layouts. */
static void random_shape(int ndim, int64_t *shape)
{
    const int64_t most = ndim <= 2 ? 70 : ndim <= 4 ? 7 : 3;

    all_contiguous = test_one_in(3);
    for (int d = 0; d < ndim; d++) {
        shape[d] = test_one_in(6) ? 1 : test_between(1, most);
    }
    if (ndim == 0) {
        return;
    }
    if (test_one_in(12)) { /* also with one column in the last unit */
        shape[ndim - 1] = test_one_in(2) ? test_between(1000, 5000) : 2048 * test_between(1, 2) + 1;
    } else if (ndim == 2 && test_one_in(8)) {
        shape[0] = test_between(300, 3000);
    } else if (ndim == 2 && test_one_in(8)) {
        shape[0] = test_between(60, 300);
        shape[1] = test_between(60, 600);
    }
}

/* The shape in storage elements: a word holds eight values. */
static void stored_shape(npuq_dtype dtype, int ndim, const int64_t *shape, int64_t *stored)
{
    memcpy(stored, shape, (size_t)ndim * sizeof *shape);
    if (dtype == NPUQ_QUINT4X2) {
        stored[ndim - 1] /= 8;
    }
}

/* ---- drawn calls ---- */

/* Contiguous tensors of a given shape: such calls take a fast path. */
static test_drawing drawing_of(enum test_operator op, int64_t rows, int64_t cols)
{
    return (test_drawing){.choose = test_below,
                          .call.op = op,
                          .all_contiguous = true,
                          .has_shape = true,
                          .ndim = 2,
                          .shape = {rows, cols}};
}

static bool repeats_elements(const npuq_tensor *tensor)
{
    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] > 1 && tensor->strides[d] == 0) {
            return true;
        }
    }
    return false;
}

/* With y over the int32 of x, whole or in units: the same bits as with separate memory. */
static void check_in_place(test_drawing *d, const void *x, const void *y)
{
    npuq_tensor *over = &d->call.tensors[Y];
    const bool in_units = test_one_in(2);
    npuq_call prepared;

    *over = d->call.tensors[X];
    over->dtype = NPUQ_FLOAT32;
    if (repeats_elements(over) && test_count(over->ndim, over->shape) > 0) {
        assert_int_equal(test_call_run(&d->call), NPUQ_ERROR_LAYOUT);
        return;
    }
    FOR_EACH_BACKEND()
    {
        if (in_units) {
            check_ok(test_call_prepare(&prepared, &d->call));
            for (size_t unit = npuq_call_units(&prepared); unit-- > 0;) {
                npuq_call_run(&prepared, unit, unit + 1);
            }
        } else {
            check_ok(test_call_run(&d->call));
        }
        check_elements(&d->views[X], y, "dequant", in_units ? "y over x, in units" : "y over x");
        test_view_write(&d->views[X].tensor, x);
    }
}

/* Completes the drawing, and runs the call with every backend: each gives the reference's bits, and writes nothing
 * else. */
static void check_call(test_drawing *d, const npuq_executor *executor)
{
    void *elements[SLOTS] = {NULL};

    test_draw_call(d);
    for (int slot = 0; slot < SLOTS; slot++) {
        const npuq_tensor *tensor = &d->call.tensors[slot];

        if (d->call.given[slot]) {
            elements[slot] = allocate(test_count(tensor->ndim, tensor->shape) * npuq_dtype_size(tensor->dtype));
            test_view_read(tensor, elements[slot]);
        }
    }
    test_call_oracle(&d->call, elements);
    FOR_EACH_BACKEND()
    {
        d->call.executor = executor ? executor : any_executor();
        check_ok(test_call_run(&d->call));
        for (int slot = 0; slot < SLOTS; slot++) {
            if (!d->call.given[slot]) {
                continue;
            }
            if (test_is_output(d->call.op, (enum slot)slot)) {
                check_elements(&d->views[slot], elements[slot], operator_names[d->call.op], slot_names[slot]);
            } else {
                test_view_untouched(&d->views[slot]);
            }
        }
    }
    if (d->call.op == TEST_DEQUANT && d->call.tensors[Y].dtype == NPUQ_FLOAT32) {
        check_in_place(d, elements[X], elements[Y]);
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        free(elements[slot]);
    }
    test_free_drawing(d);
}

/* Enough cases that all combinations of types, options and ranks occur. */
static const struct {
    enum test_operator op;
    int rounds;
    int least_ndim;
    int most_ndim;
} drawn[] = {
    {TEST_QUANTIZE, 9600, 1, 8},
    {TEST_GROUP_QUANT, 1100, 2, 2},
    {TEST_TRANS_QUANT_PARAM, 1100, 1, 1},
    {TEST_DYNAMIC_QUANT_ASYMMETRIC, 2700, 1, 8},
    {TEST_DYNAMIC_QUANT, 2700, 1, 8},
    {TEST_DYNAMIC_BLOCK_QUANT, 4000, 1, 8},
    {TEST_DYNAMIC_QUANT_MIN_MAX, 1400, 1, 8},
    {TEST_DYNAMIC_QUANT_PARAMS, 1400, 0, 8},
    {TEST_DYNAMIC_QUANT_APPLY, 1400, 1, 8},
    {TEST_DYNAMIC_QUANT_SYMMETRIC_PARAMS, 1400, 0, 8},
    {TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY, 1400, 1, 8},
    {TEST_ANTI_QUANT, 1100, 0, 8},
    {TEST_DEQUANT, 1600, 1, 8},
    {TEST_REQUANT, 1500, 1, 8},
};

static void test_drawn(void **unused)
{
    (void)unused;
    assert_int_equal(COUNT(drawn), TEST_OPERATORS);
    for (size_t i = 0; i < COUNT(drawn); i++) {
        for (int again = 0; again < test_rounds(drawn[i].rounds); again++) {
            test_drawing d = drawing_of(drawn[i].op, 0, 0);

            d.ndim = (int)test_between(drawn[i].least_ndim, drawn[i].most_ndim);
            random_shape(d.ndim, d.shape);
            d.all_contiguous = all_contiguous;
            check_call(&d, NULL);
        }
    }
}

/* The operators on rows of x. */
#define WHOLE_WITH(NAME) TEST_##NAME,
#define WHOLE_WITHOUT(NAME)
#define WHOLE(name, NAME, EXECUTOR) WHOLE_##EXECUTOR(NAME)
static const enum test_operator wholes[] = {EACH_OPERATOR(WHOLE)};

/* Short rows without gaps, which the library joins, and some that are too long or too few. */
static void test_short_rows(void **unused)
{
    (void)unused;
    for (int again = 0; again < test_rounds(1000); again++) {
        const int64_t n = test_one_in(4) ? test_between(1, 160) : test_between(1, 40);
        const int64_t rows = test_one_in(4) ? test_between(1, 4000 / n + 1) : test_between(1, 140);

        for (size_t i = 0; i < COUNT(wholes); i++) {
            test_drawing d = drawing_of(wholes[i], rows, n);
            check_call(&d, NULL);
        }
    }
}

/* Contiguous tensors at the limits of the fast path and of its buffers. */
static void test_dense_rows(void **unused)
{
    static const int64_t shapes[][2] = {{1, 4096}, {1, 4104}, {1, 16384}, {2, 16384}, {3, 9000}, {600, 48}, {70, 32}};

    (void)unused;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        for (size_t i = 0; i < COUNT(wholes) * 24; i++) {
            test_drawing d = drawing_of(wholes[i % COUNT(wholes)], shapes[s][0], shapes[s][1]);
            check_call(&d, NULL);
        }
    }
}

/* Rows so long that an executor gets parts of rows. */
static void test_long_rows(void **unused)
{
    static const enum test_operator ops[] = {TEST_DYNAMIC_QUANT_ASYMMETRIC, TEST_DYNAMIC_QUANT,
                                             TEST_DYNAMIC_QUANT_MIN_MAX, TEST_DYNAMIC_QUANT_APPLY,
                                             TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY};

    (void)unused;
    for (size_t i = 0; i < COUNT(ops); i++) {
        for (int again = 0; again < (i < 2 ? 18 : 3); again++) {
            test_drawing d = drawing_of(ops[i], i < 2 ? 5 : 3, 4 * 65536 + 1032);

            d.half_floats = again % 3 == 0; /* finite products differ from group to group */
            d.all_contiguous = test_one_in(3);
            check_call(&d, &test_shuffled_executor);
        }
    }
}

/* Tensors of many units of work, and larger than the caches: the kernels use non-temporal stores and prefetch. */
static void test_large(void **unused)
{
    (void)unused;
    for (int again = 0; again < 3; again++) {
        for (size_t i = 0; i < COUNT(wholes); i++) {
            test_drawing d = drawing_of(wholes[i], 2100, 4104);

            d.all_contiguous = again > 0;
            check_call(&d, &test_shuffled_executor);
        }
    }
    for (int again = 0; again < 12; again++) { /* some calls have strided scales of rows */
        test_drawing d = drawing_of(TEST_DEQUANT, 20000, 3);

        d.all_contiguous = false;
        check_call(&d, &test_shuffled_executor);
    }
}

/* Rows of a whole number of units of work, or of slightly less or more. */
static void test_wide(void **unused)
{
    static const int64_t widths[] = {2 * 32768, 2 * 32768 - 8, 3 * 4096, 3 * 4096 + 64, 32768 + 72};

    (void)unused;
    for (size_t w = 0; w < COUNT(widths); w++) {
        for (size_t i = 0; i < COUNT(wholes) * 4; i++) {
            test_drawing d = drawing_of(wholes[i % COUNT(wholes)], 3, widths[w]);

            d.all_contiguous = false;
            check_call(&d, &test_shuffled_executor);
        }
    }
}

/* Random ends for this many groups of rows, empty groups among them. */
static void random_groups(int64_t *ends, size_t groups, int64_t rows)
{
    for (size_t e = 0; e < groups; e++) {
        ends[e] = test_between(0, rows);
    }
    ends[groups - 1] = rows;
    for (size_t i = 1; i < groups; i++) { /* in order */
        for (size_t j = i; j > 0 && ends[j] < ends[j - 1]; j--) {
            const int64_t swap = ends[j];
            ends[j] = ends[j - 1];
            ends[j - 1] = swap;
        }
    }
}

/* ---- shards ---- */

/* The part of a tensor from `begin` on, with the given extent. */
static npuq_tensor slice(const npuq_tensor *tensor, int d, int64_t begin, int64_t extent)
{
    npuq_tensor part = *tensor;

    part.data = (char *)part.data + begin * tensor->strides[d] * (int64_t)npuq_dtype_size(tensor->dtype);
    part.shape[d] = extent;
    return part;
}

static npuq_ref_range combined(npuq_ref_range a, float min, float max)
{
    if (isnan(a.lo) || isnan(min)) {
        return (npuq_ref_range){NAN, NAN};
    }
    return (npuq_ref_range){max > a.hi ? max : a.hi, min < a.lo ? min : a.lo};
}

/* Shards by rows or by columns, which share only their ranges, give the results of the whole tensor. */
static void run_sharded(npuq_dtype x_type, npuq_dtype y_type, npuq_quant_mode mode, int along)
{
    enum { SHARDS = 4 };
    const int64_t shape[2] = {along == 0 ? test_between(1, 9) : 7, along == 1 ? 8 * test_between(1, 9) : 104};
    const int64_t one = 1;
    const int64_t count = mode == NPUQ_PER_TENSOR ? 1 : shape[0];
    int64_t y_shape[2];

    stored_shape(y_type, 2, shape, y_shape);
    argument x = make_x_of_parts(x_type, shape, along, !test_one_in(3));
    argument y = make_output("y", y_type, 2, y_shape);
    argument scale = make_output("scale", NPUQ_FLOAT32, 1, &count);
    argument offset = make_output("offset", NPUQ_FLOAT32, 1, &count);
    argument symmetric_y = make_output("symmetric y", y_type, 2, y_shape);
    argument symmetric_scale = make_output("symmetric scale", NPUQ_FLOAT32, 1, &count);
    const npuq_scale_form form = test_one_in(2) ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;
    int64_t ends[SHARDS];
    npuq_ref_range ranges[16];
    float min[16];
    float max[16];

    npuq_ref_dynamic_quant_asymmetric(x.elements, ref_type(x_type), (size_t)shape[0], (size_t)shape[1], NULL,
                                      NPUQ_REF_FLOAT32, 1, NULL, mode == NPUQ_PER_TENSOR, y.elements, ref_type(y_type),
                                      scale.elements, offset.elements);
    npuq_ref_dynamic_quant(x.elements, ref_type(x_type), (size_t)shape[0], (size_t)shape[1], NULL, NPUQ_REF_FLOAT32, 1,
                           NULL, mode == NPUQ_PER_TENSOR, form == NPUQ_SCALE_INVERSE, symmetric_y.elements,
                           ref_type(y_type), symmetric_scale.elements);
    random_groups(ends, SHARDS, along == 0 ? shape[0] : shape[1] / 8); /* some shards are empty */
    FOR_EACH_BACKEND()
    {
        for (size_t i = 0; i < (size_t)count; i++) {
            ranges[i] = npuq_ref_range_empty();
        }
        for (int pass = 0; pass < 2; pass++) {
            for (int s = 0; s < SHARDS; s++) {
                const int64_t unit = along == 0 ? 1 : 8;
                const int64_t begin = s > 0 ? ends[s - 1] : 0;
                const npuq_tensor part = slice(&x.view.tensor, along, begin * unit, (ends[s] - begin) * unit);
                /* Per token, each shard by rows has whole rows. */
                const bool own = mode == NPUQ_PER_TOKEN && along == 0;
                const int64_t first = own ? begin : 0;
                const int64_t mine = own ? ends[s] - begin : mode == NPUQ_PER_TENSOR ? one : count;
                const npuq_tensor part_min = npuq_tensor_contiguous(min + first, NPUQ_FLOAT32, 1, &mine);
                const npuq_tensor part_max = npuq_tensor_contiguous(max + first, NPUQ_FLOAT32, 1, &mine);

                if (pass == 0) {
                    check_ok(npuq_dynamic_quant_min_max(&part, NULL, NULL, mode, &part_min, &part_max, NULL));
                    for (int64_t i = first; i < first + mine; i++) {
                        ranges[i] = combined(ranges[i], min[i], max[i]);
                    }
                } else {
                    const npuq_tensor part_scale = slice(&scale.view.tensor, 0, first, mine);
                    const npuq_tensor part_offset = slice(&offset.view.tensor, 0, first, mine);
                    const int64_t y_unit = along == 0 || y_type == NPUQ_QUINT4X2 ? 1 : 8;
                    const int64_t y_extent = (ends[s] - begin) * y_unit;
                    const npuq_tensor part_y = slice(&y.view.tensor, along, begin * y_unit, y_extent);
                    const npuq_tensor part_symmetric_y =
                        slice(&symmetric_y.view.tensor, along, begin * y_unit, y_extent);

                    check_ok(
                        npuq_dynamic_quant_apply(&part, NULL, NULL, mode, &part_scale, &part_offset, &part_y, NULL));
                    check_ok(npuq_dynamic_quant_symmetric_apply(&part, NULL, NULL, mode, &part_min, &part_max,
                                                                &part_symmetric_y, NULL));
                }
            }
            if (pass == 0) {
                const npuq_tensor all_min = npuq_tensor_contiguous(min, NPUQ_FLOAT32, 1, &count);
                const npuq_tensor all_max = npuq_tensor_contiguous(max, NPUQ_FLOAT32, 1, &count);

                for (size_t i = 0; i < (size_t)count; i++) {
                    min[i] = ranges[i].lo;
                    max[i] = ranges[i].hi;
                }
                check_ok(
                    npuq_dynamic_quant_params(&all_min, &all_max, y_type, &scale.view.tensor, &offset.view.tensor));
                check_ok(npuq_dynamic_quant_symmetric_params(&all_min, &all_max, y_type, form,
                                                             &symmetric_scale.view.tensor));
            }
        }
        check_outputs("sharded");
    }
    end_case();
}

/* Shards by rows of the operators with groups, by docs/sharding.md. */
static void run_sharded_groups(npuq_dtype x_type, npuq_dtype y_type)
{
    enum { SHARDS = 4, E = 5 };
    const int64_t shape[2] = {test_between(1, 12), 8 * test_between(1, 5)};
    const int64_t factors_shape[2] = {E, shape[1]};
    const npuq_ref_dtype type = ref_type(x_type);
    int64_t y_shape[2];
    int64_t group_index[E];
    int64_t shards[SHARDS];

    stored_shape(y_type, 2, shape, y_shape);
    random_groups(group_index, E, shape[0]);
    random_groups(shards, SHARDS, shape[0]); /* some shards are empty */
    argument x = make_x_of_parts(x_type, shape, 0, !test_one_in(3));
    argument factors = make_input(x_type, 2, factors_shape, true);
    argument grouped = make_output("group_quant's y", y_type, 2, y_shape);
    argument y = make_output("y", y_type, 2, y_shape);
    argument scale = make_output("scale", NPUQ_FLOAT32, 1, shape);
    argument offset = make_output("offset", NPUQ_FLOAT32, 1, shape);
    argument symmetric_y = make_output("symmetric y", y_type, 2, y_shape);
    argument symmetric_scale = make_output("symmetric scale", NPUQ_FLOAT32, 1, shape);

    npuq_ref_group_quant(x.elements, type, (size_t)shape[0], (size_t)shape[1], factors.elements, type, E, group_index,
                         NULL, grouped.elements, ref_type(y_type));
    npuq_ref_dynamic_quant_asymmetric(x.elements, type, (size_t)shape[0], (size_t)shape[1], factors.elements, type, E,
                                      group_index, false, y.elements, ref_type(y_type), scale.elements,
                                      offset.elements);
    npuq_ref_dynamic_quant(x.elements, type, (size_t)shape[0], (size_t)shape[1], factors.elements, type, E, group_index,
                           false, true, symmetric_y.elements, ref_type(y_type), symmetric_scale.elements);
    FOR_EACH_BACKEND()
    {
        for (int s = 0; s < SHARDS; s++) {
            const int64_t first = s > 0 ? shards[s - 1] : 0;
            const int64_t rows = shards[s] - first;
            int64_t part_index[E];

            for (int64_t e = 0; e < E; e++) {
                int64_t end = group_index[e] - first;
                part_index[e] = end < 0 ? 0 : end > rows ? rows : end;
            }
            const npuq_tensor index = npuq_tensor_contiguous(part_index, NPUQ_INT64, 1, &factors_shape[0]);
            const npuq_tensor part = slice(&x.view.tensor, 0, first, rows);
            const npuq_tensor part_grouped = slice(&grouped.view.tensor, 0, first, rows);
            const npuq_tensor part_y = slice(&y.view.tensor, 0, first, rows);
            const npuq_tensor part_scale = slice(&scale.view.tensor, 0, first, rows);
            const npuq_tensor part_offset = slice(&offset.view.tensor, 0, first, rows);
            const npuq_tensor part_symmetric_y = slice(&symmetric_y.view.tensor, 0, first, rows);
            const npuq_tensor part_symmetric_scale = slice(&symmetric_scale.view.tensor, 0, first, rows);

            check_ok(npuq_group_quant(&part, &factors.view.tensor, &index, NULL, &part_grouped, any_executor()));
            check_ok(npuq_dynamic_quant_asymmetric(&part, &factors.view.tensor, &index, NPUQ_PER_TOKEN, &part_y,
                                                   &part_scale, &part_offset, any_executor()));
            check_ok(npuq_dynamic_quant(&part, &factors.view.tensor, &index, NPUQ_PER_TOKEN, NPUQ_SCALE_INVERSE,
                                        &part_symmetric_y, &part_symmetric_scale, any_executor()));
        }
        check_outputs("sharded with groups");
    }
    end_case();
}

static void test_shards(void **unused)
{
    (void)unused;
    for (int again = 0; again < test_rounds(600); again++) {
        run_sharded(floats[again % 3], again % 2 ? NPUQ_INT8 : NPUQ_QUINT4X2,
                    test_one_in(2) ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN, again % 4 / 2);
        run_sharded_groups(floats[again % 3], again % 2 ? NPUQ_INT8 : NPUQ_QUINT4X2);
    }
}

/* A part without elements has the range that changes no other. */
static void check_empty_parts(void)
{
    const int64_t no_rows[] = {0, 5};
    const int64_t no_columns[] = {3, 0};
    const int64_t rows = 3;
    const int64_t one = 1;
    const npuq_tensor x[] = {npuq_tensor_contiguous(NULL, NPUQ_FLOAT32, 2, no_rows),
                             npuq_tensor_contiguous(NULL, NPUQ_FLOAT32, 2, no_columns)};

    for (int i = 0; i < 3; i++) {
        float min[3] = {1, 1, 1};
        float max[3] = {1, 1, 1};
        const npuq_quant_mode mode = i < 2 ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN;
        const npuq_tensor min_view = npuq_tensor_contiguous(min, NPUQ_FLOAT32, 1, i < 2 ? &one : &rows);
        const npuq_tensor max_view = npuq_tensor_contiguous(max, NPUQ_FLOAT32, 1, i < 2 ? &one : &rows);

        check_ok(npuq_dynamic_quant_min_max(&x[i > 0], NULL, NULL, mode, &min_view, &max_view, NULL));
        for (int j = 0; j < (i < 2 ? 1 : 3); j++) {
            assert_true(min[j] == INFINITY && max[j] == -INFINITY);
        }
    }
}

/* The extents besides a 0 may be any, even with a product beyond all limits. */
static void check_empty_and_huge(void)
{
    const int64_t shape[] = {INT64_C(1) << 62, 8, 0, 4};
    const int64_t one_by_four[] = {1, 4};
    const int64_t one = 1;
    float values[4] = {1, 1, 1, 1};
    int32_t end = 0;
    const npuq_tensor x = npuq_tensor_contiguous(NULL, NPUQ_FLOAT32, 4, shape);
    const npuq_tensor y = npuq_tensor_contiguous(NULL, NPUQ_INT8, 4, shape);
    const npuq_tensor sums = npuq_tensor_contiguous(NULL, NPUQ_INT32, 4, shape);
    const npuq_tensor rows = npuq_tensor_contiguous(NULL, NPUQ_FLOAT32, 3, shape);
    const uint64_t word = UINT64_C(1) << 46;
    const npuq_tensor words = npuq_vector(&word, NPUQ_UINT64, 1);
    const npuq_tensor by_column = npuq_vector(values, NPUQ_FLOAT32, 4);
    const npuq_tensor smooth = npuq_tensor_contiguous(values, NPUQ_FLOAT32, 2, one_by_four);
    const npuq_tensor group_index = npuq_tensor_contiguous(&end, NPUQ_INT32, 1, &one);

    check_ok(npuq_dynamic_quant_asymmetric(&x, &smooth, &group_index, NPUQ_PER_TOKEN, &y, &rows, &rows, NULL));
    check_ok(npuq_dynamic_quant_min_max(&x, &smooth, &group_index, NPUQ_PER_TOKEN, &rows, &rows, NULL));
    check_ok(npuq_dynamic_quant_params(&rows, &rows, NPUQ_INT8, &rows, &rows));
    check_ok(npuq_dynamic_quant_apply(&x, &smooth, &group_index, NPUQ_PER_TOKEN, &rows, &rows, &y, NULL));
    check_ok(npuq_dynamic_quant(&x, &smooth, &group_index, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y, &rows, NULL));
    check_ok(npuq_dynamic_quant_symmetric_params(&rows, &rows, NPUQ_INT8, NPUQ_SCALE_PRODUCT, &rows));
    check_ok(npuq_dynamic_quant_symmetric_apply(&x, &smooth, &group_index, NPUQ_PER_TOKEN, &rows, &rows, &y, NULL));
    check_ok(npuq_anti_quant(&y, &by_column, &by_column, &x, NULL));
    check_ok(npuq_dequant(&sums, &by_column, &rows, &by_column, &x, NULL));
    check_ok(npuq_requant(&sums, &words, NULL, &y, NULL));
}

/* Each row is one element in memory. With a 32-bit size_t, there are more elements than size_t counts. */
static void check_broadcast_rows(void)
{
    const int64_t shape[] = {2, 1 << 22};
    float values[1024] = {5, 7}; /* room for the whole span of x */
    float min[2] = {0};
    float max[2] = {0};
    npuq_tensor x = npuq_tensor_contiguous(values, NPUQ_FLOAT32, 2, shape);
    npuq_tensor min_view = npuq_vector(min, NPUQ_FLOAT32, 2);
    npuq_tensor max_view = npuq_vector(max, NPUQ_FLOAT32, 2);

    x.strides[0] = 1;
    x.strides[1] = 0;
    check_ok(npuq_dynamic_quant_min_max(&x, NULL, NULL, NPUQ_PER_TOKEN, &min_view, &max_view, NULL));
    assert_true(min[0] == 5 && max[0] == 5 && min[1] == 7 && max[1] == 7);
    if (sizeof(void *) < 8) {
        x.shape[0] = 1024;
        min_view.shape[0] = max_view.shape[0] = 1;
        assert_int_equal(npuq_dynamic_quant_min_max(&x, NULL, NULL, NPUQ_PER_TENSOR, &min_view, &max_view, NULL),
                         NPUQ_ERROR_LAYOUT);
        assert_non_null(strstr(npuq_last_error(), "dynamic_quant_min_max: x: has 4294967296 elements"));
    }
}

/* More rows with scales and zero points of their own than the library converts at a time. Their columns lie apart:
 * then the parameters are spread by column, and a tile may begin at the second one. Or the rows lie apart. */
static void check_many_scales(size_t row_stride, size_t col_stride)
{
    enum { ROWS = 9000, COLS = 3 };
    const size_t extents[] = {ROWS, COLS};
    static float apart[ROWS * COLS * 2];
    static float x[ROWS * COLS];
    static float scales[ROWS];
    static float zero_points[ROWS];
    static int8_t y[ROWS * COLS];
    static int8_t expected[ROWS * COLS];
    npuq_tensor x_view = npuq_matrix(apart, NPUQ_FLOAT32, ROWS, COLS, (int64_t)row_stride);
    const npuq_tensor scales_view = npuq_vector(scales, NPUQ_FLOAT32, ROWS);
    const npuq_tensor zero_points_view = npuq_vector(zero_points, NPUQ_FLOAT32, ROWS);
    const npuq_tensor y_view = npuq_matrix(y, NPUQ_INT8, ROWS, COLS, 0);

    x_view.strides[1] = (int64_t)col_stride;
    test_fill(apart, NPUQ_FLOAT32, COUNT(apart), true);
    test_fill(scales, NPUQ_FLOAT32, ROWS, true);
    for (size_t r = 0; r < ROWS; r++) {
        zero_points[r] = (float)(r % 199);
    }
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = apart[i / COLS * row_stride + i % COLS * col_stride];
    }
    npuq_ref_quantize(x, NPUQ_REF_FLOAT32, extents, 2, scales, NPUQ_REF_FLOAT32, ROWS, zero_points, NPUQ_REF_FLOAT32, 0,
                      true, expected, NPUQ_REF_INT8);
    check_ok(npuq_quantize(&x_view, &scales_view, &zero_points_view, 0, true, &y_view, NULL));
    test_same(y, expected, sizeof y, "quantize, few columns to a scale");
}

/* Rows of a power of two of columns with gaps in x or in y: kernels must not take them as runs of one row. */
static void check_rows_with_gaps(bool of_x)
{
    enum { ROWS = 40, COLS = 32, STRIDE = 40 };
    static float apart[ROWS * STRIDE];
    static float x[ROWS * COLS];
    static int8_t y[ROWS * STRIDE];
    static int8_t expected[ROWS * COLS];
    float scale[ROWS];
    float expected_scale[ROWS];
    const npuq_tensor x_view = npuq_matrix(apart, NPUQ_FLOAT32, ROWS, COLS, of_x ? STRIDE : COLS);
    const npuq_tensor y_view = npuq_matrix(y, NPUQ_INT8, ROWS, COLS, of_x ? COLS : STRIDE);
    const npuq_tensor scale_view = npuq_vector(scale, NPUQ_FLOAT32, ROWS);

    test_fill(apart, NPUQ_FLOAT32, COUNT(apart), true);
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(&x[r * COLS], &apart[r * (size_t)x_view.strides[0]], COLS * sizeof *x);
    }
    npuq_ref_dynamic_quant(x, NPUQ_REF_FLOAT32, ROWS, COLS, NULL, NPUQ_REF_FLOAT32, 0, NULL, false, false, expected,
                           NPUQ_REF_INT8, expected_scale);
    check_ok(npuq_dynamic_quant(&x_view, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y_view, &scale_view, NULL));
    test_same(scale, expected_scale, sizeof scale, "scales of rows with gaps in %s", of_x ? "x" : "y");
    for (size_t r = 0; r < ROWS; r++) {
        test_same(&y[r * (size_t)y_view.strides[0]], &expected[r * COLS], COLS, "row %zu with gaps in %s", r,
                  of_x ? "x" : "y");
    }
}

/* Rows of NaN without a certain store, between rows whose scales have no inverse: the memory of kernels from row to row
 * stays bounded. */
static void check_uncertain_rows(void)
{
    enum { ROWS = 300, COLS = 75 };
    const size_t extents[] = {ROWS, COLS};
    static float x[ROWS * COLS];
    static float scales[ROWS];
    static int8_t y[ROWS * COLS];
    static int8_t expected[ROWS * COLS];
    const npuq_tensor x_view = npuq_matrix(x, NPUQ_FLOAT32, ROWS, COLS, 0);
    const npuq_tensor scales_view = npuq_vector(scales, NPUQ_FLOAT32, ROWS);
    const npuq_tensor y_view = npuq_matrix(y, NPUQ_INT8, ROWS, COLS, 0);

    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = i / COLS % 2 == 0 ? NAN : (float)(i % 7);
    }
    for (size_t r = 0; r < ROWS; r++) {
        scales[r] = r % 2 == 0 ? 1.0f : 0x1p-140f;
    }
    npuq_ref_quantize(x, NPUQ_REF_FLOAT32, extents, 2, scales, NPUQ_REF_FLOAT32, ROWS, NULL, NPUQ_REF_FLOAT32, 0, true,
                      expected, NPUQ_REF_INT8);
    check_ok(npuq_quantize(&x_view, &scales_view, NULL, 0, true, &y_view, NULL));
    test_same(y, expected, sizeof y, "quantize, rows that are not certain");
}

/* Rows of words as far apart as the other tensor's elements: the library must not join such rows. */
static void check_words_far_apart(void)
{
    enum { COLS = 16, WORDS_OF_ROW = COLS / 8, FAR = COLS };
    const int64_t shape[] = {3, COLS};
    const int64_t words[] = {3, WORDS_OF_ROW};
    const int64_t one = 1;
    const size_t extents[] = {3, COLS};
    float scale = 1.5f;
    float x[3 * COLS];
    uint32_t y[3 * FAR];
    uint32_t expected[3 * WORDS_OF_ROW];
    const npuq_tensor x_view = npuq_tensor_contiguous(x, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor scale_view = npuq_tensor_contiguous(&scale, NPUQ_FLOAT32, 1, &one);
    npuq_tensor y_view = npuq_tensor_contiguous(y, NPUQ_QUINT4X2, 2, words);

    y_view.strides[0] = FAR;
    test_fill(x, NPUQ_FLOAT32, 3 * COLS, false);
    memset(y, 0x55, sizeof y);
    npuq_ref_quantize(x, NPUQ_REF_FLOAT32, extents, 2, &scale, NPUQ_REF_FLOAT32, 1, NULL, NPUQ_REF_FLOAT32, -1, false,
                      expected, NPUQ_REF_QUINT4X2);
    check_ok(npuq_quantize(&x_view, &scale_view, NULL, -1, false, &y_view, NULL));
    for (size_t r = 0; r < 3; r++) {
        test_same(&y[r * FAR], &expected[r * WORDS_OF_ROW], WORDS_OF_ROW * sizeof *y, "words of row %zu", r);
        for (size_t i = WORDS_OF_ROW; i < FAR; i++) {
            assert_int_equal(y[r * FAR + i], 0x55555555);
        }
    }

    float back[3 * COLS];
    float expected_back[3 * COLS];
    const npuq_tensor back_view = npuq_tensor_contiguous(back, NPUQ_FLOAT32, 2, shape);

    npuq_ref_anti_quant(expected, NPUQ_REF_QUINT4X2, 3, COLS, &scale, NPUQ_REF_FLOAT32, 1, NULL, expected_back,
                        NPUQ_REF_FLOAT32);
    check_ok(npuq_anti_quant(&y_view, &scale_view, NULL, &back_view, NULL));
    test_same(back, expected_back, sizeof back, "elements of words");
}

static void test_constructed(void **unused)
{
    (void)unused;
    FOR_EACH_BACKEND()
    {
        print_message("# %s\n", npuq_backend_name(npuq_active_backend()));
        check_empty_parts();
        check_empty_and_huge();
        check_broadcast_rows();
        check_many_scales(6, 2);
        check_many_scales(4, 1);
        check_rows_with_gaps(true);
        check_rows_with_gaps(false);
        check_uncertain_rows();
        check_words_far_apart();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn),     cmocka_unit_test(test_short_rows),  cmocka_unit_test(test_dense_rows),
        cmocka_unit_test(test_long_rows), cmocka_unit_test(test_large),       cmocka_unit_test(test_wide),
        cmocka_unit_test(test_shards),    cmocka_unit_test(test_constructed),
    };
    test_seed();
    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
