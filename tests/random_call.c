/* SPDX-License-Identifier: BSD-3-Clause */
#include "random_call.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(ARRAY)    (sizeof(ARRAY) / sizeof(ARRAY)[0])
#define ONE_OF(d, LIST) ((LIST)[(d)->choose(COUNT(LIST))])

enum { MOST_DIMENSIONS = 5, MOST_GROUPS = 6 };

static const npuq_dtype floats[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
static const npuq_dtype integers[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
static const npuq_dtype narrow[] = {NPUQ_INT8, NPUQ_QUINT4X2};
static const npuq_dtype offsets[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16, NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
static const npuq_dtype biases[] = {NPUQ_INT32, NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
static const npuq_dtype words[] = {NPUQ_INT64, NPUQ_UINT64};
static const npuq_dtype indices[] = {NPUQ_INT32, NPUQ_INT64};

struct drawing {
    size_t (*choose)(size_t end);
    unsigned op;
    struct call_options options;
    int ndim;
    int64_t shape[NPUQ_MAX_NDIM]; /* in values */
    test_view inputs[OPERANDS];
    test_view outputs[RESULTS];
    const npuq_tensor *operands[OPERANDS]; /* null where there is none */
};

static bool one_in(const struct drawing *d, size_t n)
{
    return d->choose(n) == n - 1;
}

/* Few elements, mostly; now and then none. */
static void draw_shape(struct drawing *d, int least_ndim, int most_ndim, int64_t multiple)
{
    d->ndim = least_ndim + (int)d->choose((size_t)(most_ndim - least_ndim + 1));
    const size_t most = d->ndim <= 2 ? 24 : d->ndim == 3 ? 8 : 4;
    for (int i = 0; i < d->ndim; i++) {
        d->shape[i] = one_in(d, 60) ? 0 : 1 + (int64_t)d->choose(most);
    }
    if (d->ndim > 0) {
        d->shape[d->ndim - 1] = (d->shape[d->ndim - 1] + multiple - 1) / multiple * multiple;
    }
}

static test_view make_view(const struct drawing *d, npuq_dtype dtype, int ndim, const int64_t *shape, bool is_input)
{
    const test_layout layout = one_in(d, 3)               ? TEST_STRIDED
                               : is_input && one_in(d, 6) ? TEST_BROADCAST
                                                          : TEST_CONTIGUOUS;
    int64_t stored[NPUQ_MAX_NDIM];

    memcpy(stored, shape, (size_t)ndim * sizeof *stored);
    if (dtype == NPUQ_QUINT4X2) {
        stored[ndim - 1] /= 8;
    }
    return test_view_make(dtype, ndim, stored, layout);
}

/* An input with values; x must not be one element repeated. */
static void add_input(struct drawing *d, enum operand operand, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    test_view *view = &d->inputs[operand];

    *view = make_view(d, dtype, ndim, shape, true);
    if (operand == OPERAND_X && test_repeats_one_element(&view->tensor)) {
        test_view_free(view);
        *view = test_view_make(dtype, ndim, view->tensor.shape, TEST_CONTIGUOUS);
    }
    const size_t count = test_count(ndim, view->tensor.shape);
    void *elements = malloc(count * npuq_dtype_size(dtype) + 1);
    assert_non_null(elements);
    test_fill(elements, dtype, count, !one_in(d, 3));
    test_view_write(&view->tensor, elements);
    free(elements);
    d->operands[operand] = &view->tensor;
}

/* One parameter for all, or one for each of so many. */
static void add_vector(struct drawing *d, enum operand operand, npuq_dtype dtype, int64_t count)
{
    const int64_t extent = one_in(d, 4) ? 1 : count;

    add_input(d, operand, dtype, 1, &extent);
}

static int compare_ends(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Ends of groups of rows, of which some may be empty. */
static void add_groups(struct drawing *d, int64_t rows, int64_t groups)
{
    const npuq_dtype dtype = ONE_OF(d, indices);
    int64_t ends[MOST_GROUPS];
    int32_t short_ends[MOST_GROUPS];

    for (int64_t e = 0; e < groups; e++) {
        ends[e] = e == groups - 1 ? rows : (int64_t)d->choose((size_t)rows + 1);
    }
    qsort(ends, (size_t)groups, sizeof *ends, compare_ends);
    for (int64_t e = 0; e < groups; e++) {
        short_ends[e] = (int32_t)ends[e];
    }
    d->inputs[OPERAND_GROUPS] = test_view_make(dtype, 1, &groups, one_in(d, 2) ? TEST_STRIDED : TEST_CONTIGUOUS);
    d->operands[OPERAND_GROUPS] = &d->inputs[OPERAND_GROUPS].tensor;
    test_view_write(d->operands[OPERAND_GROUPS], dtype == NPUQ_INT64 ? (const void *)ends : (const void *)short_ends);
}

static int64_t int4_multiple(npuq_dtype dtype)
{
    return dtype == NPUQ_QUINT4X2 ? 8 : 1;
}

/* ---- operators -------------------------------------------------------------------------------------------------- */

static npuq_status call_quantize(struct drawing *d)
{
    struct call_options *options = &d->options;

    options->divides = one_in(d, 2);
    options->y_dtype = options->divides ? ONE_OF(d, integers) : ONE_OF(d, narrow);
    draw_shape(d, 1, MOST_DIMENSIONS, int4_multiple(options->y_dtype));
    const int lowest = options->divides || d->ndim == 1 ? -d->ndim : -2;
    options->axis = lowest + (int)d->choose((size_t)(d->ndim - lowest + (options->divides ? 0 : 2)));
    const int along = options->divides      ? (options->axis + d->ndim) % d->ndim
                      : options->axis == -2 ? d->ndim - 2
                                            : d->ndim - 1;
    const bool broadcast = !options->divides && one_in(d, 2);
    const bool single = one_in(d, 4);
    int64_t shape[NPUQ_MAX_NDIM] = {1, 1, 1, 1, 1, 1, 1, 1};
    shape[broadcast ? along : 0] = single ? 1 : d->shape[along];
    const npuq_dtype scales = ONE_OF(d, floats);
    add_input(d, OPERAND_X, ONE_OF(d, floats), d->ndim, d->shape);
    add_input(d, OPERAND_SCALE, scales, broadcast ? d->ndim : 1, shape);
    if (!one_in(d, 3)) {
        add_input(d, OPERAND_OFFSET, options->divides ? ONE_OF(d, offsets) : scales, broadcast ? d->ndim : 1, shape);
    }
    d->outputs[RESULT_Y] = make_view(d, options->y_dtype, d->ndim, d->shape, false);
    return npuq_quantize(d->operands[OPERAND_X], d->operands[OPERAND_SCALE], d->operands[OPERAND_OFFSET], options->axis,
                         options->divides, &d->outputs[RESULT_Y].tensor, NULL);
}

static npuq_status call_group_quant(struct drawing *d)
{
    const npuq_dtype scale = ONE_OF(d, floats);
    const int64_t groups = 1 + (int64_t)d->choose(MOST_GROUPS);
    const int64_t one = 1;

    d->options.y_dtype = ONE_OF(d, narrow);
    draw_shape(d, 2, 2, int4_multiple(d->options.y_dtype));
    const int64_t scale_shape[] = {groups, d->shape[1]};
    add_input(d, OPERAND_X, ONE_OF(d, floats), 2, d->shape);
    add_input(d, OPERAND_SCALE, scale, 2, scale_shape);
    add_groups(d, d->shape[0], groups);
    if (!one_in(d, 3)) {
        add_input(d, OPERAND_OFFSET, scale, one_in(d, 2) ? 0 : 1, &one);
    }
    d->outputs[RESULT_Y] = make_view(d, d->options.y_dtype, 2, d->shape, false);
    return npuq_group_quant(d->operands[OPERAND_X], d->operands[OPERAND_SCALE], d->operands[OPERAND_GROUPS],
                            d->operands[OPERAND_OFFSET], &d->outputs[RESULT_Y].tensor, NULL);
}

static npuq_status call_trans_quant_param(struct drawing *d)
{
    const int64_t n = 1 + (int64_t)d->choose(40);
    const int64_t many[] = {1, n};
    const int64_t one[] = {1, 1};
    const bool single_scale = one_in(d, 4);
    const int rows = one_in(d, 2) ? 2 : 1; /* dimensions */

    d->options.rounds_to_nearest = one_in(d, 2);
    d->options.y_dtype = ONE_OF(d, words);
    add_input(d, OPERAND_X, NPUQ_FLOAT32, rows, (single_scale ? one : many) + 2 - rows);
    if (single_scale || !one_in(d, 3)) {
        add_input(d, OPERAND_OFFSET, NPUQ_FLOAT32, rows, (one_in(d, 4) && !single_scale ? one : many) + 2 - rows);
    }
    d->outputs[RESULT_Y] = make_view(d, d->options.y_dtype, rows, many + 2 - rows, false);
    return npuq_trans_quant_param(d->operands[OPERAND_X], d->operands[OPERAND_OFFSET],
                                  d->options.rounds_to_nearest ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE,
                                  &d->outputs[RESULT_Y].tensor);
}

static npuq_status call_dynamic(struct drawing *d)
{
    const bool grouped = one_in(d, 3);
    const int64_t groups = 1 + (int64_t)d->choose(MOST_GROUPS);
    const int64_t one = 1;
    int64_t rows = 1;

    d->options.y_dtype = ONE_OF(d, narrow);
    d->options.per_tensor = !grouped && one_in(d, 3);
    d->options.inverse_form = d->op == DYNAMIC_QUANT && one_in(d, 2);
    const npuq_quant_mode mode = d->options.per_tensor ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN;
    draw_shape(d, 2, MOST_DIMENSIONS, int4_multiple(d->options.y_dtype));
    for (int i = 0; i < d->ndim - 1; i++) {
        rows *= d->shape[i];
    }
    const int64_t smooth_shape[] = {groups, d->shape[d->ndim - 1]};
    add_input(d, OPERAND_X, ONE_OF(d, floats), d->ndim, d->shape);
    if (grouped || one_in(d, 2)) {
        add_input(d, OPERAND_SMOOTH, ONE_OF(d, floats), grouped ? 2 : 1, smooth_shape + !grouped);
    }
    if (grouped) {
        add_groups(d, rows, groups);
    }
    d->outputs[RESULT_Y] = make_view(d, d->options.y_dtype, d->ndim, d->shape, false);
    for (int r = RESULT_SCALE; r <= (d->op == DYNAMIC_QUANT ? RESULT_SCALE : RESULT_OFFSET); r++) {
        d->outputs[r] = d->options.per_tensor ? make_view(d, NPUQ_FLOAT32, 1, &one, false)
                                              : make_view(d, NPUQ_FLOAT32, d->ndim - 1, d->shape, false);
    }
    if (d->op == DYNAMIC_QUANT) {
        return npuq_dynamic_quant(d->operands[OPERAND_X], d->operands[OPERAND_SMOOTH], d->operands[OPERAND_GROUPS],
                                  mode, d->options.inverse_form ? NPUQ_SCALE_INVERSE : NPUQ_SCALE_PRODUCT,
                                  &d->outputs[RESULT_Y].tensor, &d->outputs[RESULT_SCALE].tensor, NULL);
    }
    return npuq_dynamic_quant_asymmetric(d->operands[OPERAND_X], d->operands[OPERAND_SMOOTH],
                                         d->operands[OPERAND_GROUPS], mode, &d->outputs[RESULT_Y].tensor,
                                         &d->outputs[RESULT_SCALE].tensor, &d->outputs[RESULT_OFFSET].tensor, NULL);
}

static npuq_status call_anti_quant(struct drawing *d)
{
    const npuq_dtype x = ONE_OF(d, narrow);
    const npuq_dtype scale = ONE_OF(d, floats);

    d->options.y_dtype = ONE_OF(d, floats);
    draw_shape(d, x == NPUQ_INT8 ? 0 : 1, MOST_DIMENSIONS, int4_multiple(x));
    const int64_t extent = d->ndim > 0 && !one_in(d, 4) ? d->shape[d->ndim - 1] : 1;
    add_input(d, OPERAND_X, x, d->ndim, d->shape);
    add_input(d, OPERAND_SCALE, scale, 1, &extent);
    if (!one_in(d, 3)) {
        add_input(d, OPERAND_OFFSET, scale, 1, &extent);
    }
    d->outputs[RESULT_Y] = make_view(d, d->options.y_dtype, d->ndim, d->shape, false);
    return npuq_anti_quant(d->operands[OPERAND_X], d->operands[OPERAND_SCALE], d->operands[OPERAND_OFFSET],
                           &d->outputs[RESULT_Y].tensor, NULL);
}

static npuq_status call_dequant(struct drawing *d)
{
    d->options.y_dtype = ONE_OF(d, floats);
    draw_shape(d, 1, MOST_DIMENSIONS, 1);
    add_input(d, OPERAND_X, NPUQ_INT32, d->ndim, d->shape);
    add_vector(d, OPERAND_SCALE, ONE_OF(d, floats), d->shape[d->ndim - 1]);
    if (!one_in(d, 3)) {
        add_input(d, OPERAND_ROW_SCALE, NPUQ_FLOAT32, d->ndim - 1, d->shape);
    }
    if (!one_in(d, 4)) {
        add_input(d, OPERAND_BIAS, ONE_OF(d, biases), 1, &d->shape[d->ndim - 1]);
    }
    d->outputs[RESULT_Y] = make_view(d, d->options.y_dtype, d->ndim, d->shape, false);
    return npuq_dequant(d->operands[OPERAND_X], d->operands[OPERAND_SCALE], d->operands[OPERAND_ROW_SCALE],
                        d->operands[OPERAND_BIAS], &d->outputs[RESULT_Y].tensor, NULL);
}

static npuq_status call_requant(struct drawing *d)
{
    d->options.y_dtype = one_in(d, 2) ? NPUQ_FLOAT16 : NPUQ_INT8;
    draw_shape(d, 1, MOST_DIMENSIONS, 1);
    add_input(d, OPERAND_X, NPUQ_INT32, d->ndim, d->shape);
    add_vector(d, OPERAND_SCALE, ONE_OF(d, words), d->shape[d->ndim - 1]);
    if (d->options.y_dtype == NPUQ_FLOAT16) {
        test_view_any_flags(d->operands[OPERAND_SCALE]);
    }
    if (one_in(d, 2)) {
        add_input(d, OPERAND_BIAS, NPUQ_INT32, 1, &d->shape[d->ndim - 1]);
    }
    d->outputs[RESULT_Y] = make_view(d, d->options.y_dtype, d->ndim, d->shape, false);
    return npuq_requant(d->operands[OPERAND_X], d->operands[OPERAND_SCALE], d->operands[OPERAND_BIAS],
                        &d->outputs[RESULT_Y].tensor, NULL);
}

static npuq_status call_operator(struct drawing *d)
{
    switch (d->op) {
    case QUANTIZE: return call_quantize(d);
    case GROUP_QUANT: return call_group_quant(d);
    case TRANS_QUANT_PARAM: return call_trans_quant_param(d);
    case ANTI_QUANT: return call_anti_quant(d);
    case DEQUANT: return call_dequant(d);
    case REQUANT: return call_requant(d);
    default: return call_dynamic(d);
    }
}

bool random_call_make(struct random_call *random, unsigned op, size_t (*choose)(size_t end))
{
    struct drawing d = {.choose = choose, .op = op};
    const bool accepted = call_operator(&d) == NPUQ_OK;

    *random = (struct random_call){.results = {{0}}};
    assert_true(!accepted || call_make(&random->call, op, d.operands, &d.options));
    for (int r = 0; accepted && r < call_results(&random->call); r++) {
        assert_true(array_make(&random->results[r], &d.outputs[r].tensor));
    }
    for (int i = 0; i < OPERANDS; i++) {
        if (d.operands[i]) {
            test_view_free(&d.inputs[i]);
        }
    }
    for (int r = 0; r < RESULTS; r++) {
        if (d.outputs[r].before) {
            test_view_free(&d.outputs[r]);
        }
    }
    return accepted;
}

void random_call_release(struct random_call *random)
{
    for (int r = 0; r < RESULTS; r++) {
        array_release(&random->results[r]);
    }
    call_release(&random->call);
}
