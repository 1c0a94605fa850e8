/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators against the oracle: every pair of dtypes, mode and axis, on views of every layout. */
#include "support.h"

#include "ref/npuq_ref.h"
#include "ref/npuq_ref_element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const npuq_dtype floats[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
static const npuq_dtype zero_point_types[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16,
                                              NPUQ_INT8,    NPUQ_UINT8,   NPUQ_INT32};
#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static void *allocate(size_t size)
{
    void *memory = malloc(size + 1);
    assert_non_null(memory);
    return memory;
}

/* An argument: a view, and its elements in row-major order; those of an output are the oracle's. */
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

/* Whether all tensors of the case are contiguous: such calls have a short way. The same cases with other layouts, and
 * the oracle's results for both, compare it with the general way. */
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
    test_view_read(&a.view.tensor, a.elements); /* where the view repeats elements, the last one written stays */
    memcpy(a.view.before, a.view.guarded.memory, a.view.size);
    return a;
}

static argument make_input(npuq_dtype dtype, int ndim, const int64_t *shape, bool finite)
{
    return keep(draw_input(dtype, ndim, shape, finite));
}

/* Words for a result of that type: to FLOAT16 with any flag and offset. */
static argument make_words(npuq_dtype y_type, int ndim, const int64_t *shape)
{
    argument a = make_input(test_one_in(2) ? NPUQ_INT64 : NPUQ_UINT64, ndim, shape, test_one_in(2));

    if (y_type == NPUQ_FLOAT16) {
        test_view_any_flags(&a.view.tensor);
        test_view_read(&a.view.tensor, a.elements);
        memcpy(a.view.before, a.view.guarded.memory, a.view.size);
    }
    return a;
}

/* The input that is quantised: not one element repeated. */
static argument make_x(npuq_dtype dtype, int ndim, const int64_t *shape, bool finite)
{
    argument a = draw_input(dtype, ndim, shape, finite);

    while (test_repeats_one_element(&a.view.tensor)) {
        drop(&a);
        a = draw_input(dtype, ndim, shape, finite);
    }
    return keep(a);
}

/* The same of each of its parts along a dimension, which may have an extent of 1 there. */
static argument make_x_of_parts(npuq_dtype dtype, const int64_t *shape, int along, bool finite)
{
    argument a = draw_input(dtype, 2, shape, finite);

    while (a.view.tensor.strides[1] == 0 && (along == 0 || a.view.tensor.strides[0] == 0)) {
        drop(&a);
        a = draw_input(dtype, 2, shape, finite);
    }
    return keep(a);
}

/* An output; elements are for the oracle to fill. */
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

/* The outputs are the oracle's, and nothing else has changed. Afterwards they are as they were before the call. */
static void check_outputs(const char *name)
{
    for (size_t i = 0; i < argument_count; i++) {
        argument *a = &arguments[i];

        if (a->output) {
            const npuq_dtype dtype = a->view.tensor.dtype;
            const size_t size = a->count * npuq_dtype_size(dtype);
            void *got = allocate(size);

            test_view_read(&a->view.tensor, got);
            test_same(got, a->elements, size, "%s: %s, %s", name, a->output, npuq_dtype_name(dtype));
            test_view_untouched_outside(&a->view);
            free(got);
        } else {
            test_view_untouched(&a->view);
        }
    }
}

/* The outputs of a call are the last arguments: the inputs remain for another call. */
static void drop_outputs(void)
{
    while (argument_count > 0 && arguments[argument_count - 1].output) {
        drop(&arguments[--argument_count]);
    }
}

/* Makes the call with every backend. */
#define CHECK_CALL(NAME, ...)                                                                                          \
    do {                                                                                                               \
        FOR_EACH_BACKEND()                                                                                             \
        {                                                                                                              \
            check_ok(__VA_ARGS__);                                                                                     \
            check_outputs(NAME);                                                                                       \
        }                                                                                                              \
        drop_outputs();                                                                                                \
    } while (0)

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

/* Mostly small shapes; sometimes a last dimension longer than the library's buffers, or rows and columns of more than
 * one block where they lie across. Draws the layouts of the case. */
static void random_shape(int ndim, int64_t *shape, int64_t multiple)
{
    const int64_t most = ndim <= 2 ? 70 : ndim <= 4 ? 7 : 3;

    all_contiguous = test_one_in(3);
    for (int d = 0; d < ndim; d++) {
        shape[d] = test_one_in(6) ? 1 : test_between(1, most);
    }
    if (ndim == 0) {
        return;
    }
    if (test_one_in(12)) { /* or a last unit of one column */
        shape[ndim - 1] = test_one_in(2) ? test_between(1000, 5000) : 2048 * test_between(1, 2) + 1;
    } else if (ndim == 2 && test_one_in(8)) {
        shape[0] = test_between(60, 300);
        shape[1] = test_between(60, 600);
    }
    shape[ndim - 1] = (shape[ndim - 1] + multiple - 1) / multiple * multiple;
}

/* The shape of a tensor of so many elements: words hold eight. */
static void stored_shape(npuq_dtype dtype, int ndim, const int64_t *shape, int64_t *stored)
{
    memcpy(stored, shape, (size_t)ndim * sizeof *shape);
    if (dtype == NPUQ_QUINT4X2) {
        stored[ndim - 1] /= 8;
    }
}

/* ---- quantize ---- */

typedef struct quantize_case {
    npuq_dtype x;
    npuq_dtype scales;
    npuq_dtype zero_points;
    npuq_dtype y;
    bool has_zero_points;
    bool div_mode;
    bool one_scale;
    bool broadcast_scales; /* as many dimensions as x */
    int ndim;
    int axis;
} quantize_case;

static void run_quantize_on(const int64_t *shape, const quantize_case *c)
{
    int64_t y_shape[NPUQ_MAX_NDIM];
    int64_t scales_shape[NPUQ_MAX_NDIM] = {1, 1, 1, 1, 1, 1, 1, 1};
    size_t extents[NPUQ_MAX_NDIM];
    const int along = c->div_mode ? (c->axis + c->ndim) % c->ndim : c->axis == -2 ? c->ndim - 2 : c->ndim - 1;
    const int scales_ndim = c->broadcast_scales ? c->ndim : 1;

    stored_shape(c->y, c->ndim, shape, y_shape);
    for (int d = 0; d < c->ndim; d++) {
        extents[d] = (size_t)shape[d];
    }
    if (!c->one_scale) {
        scales_shape[c->broadcast_scales ? along : 0] = shape[along];
    }
    const size_t scales_count = c->one_scale ? 1 : (size_t)shape[along];

    argument x = make_x(c->x, c->ndim, shape, false);
    argument scales = make_input(c->scales, scales_ndim, scales_shape, false);
    argument zero_points = make_input(c->zero_points, scales_ndim, scales_shape, test_one_in(2));
    argument y = make_output("y", c->y, c->ndim, y_shape);

    npuq_ref_quantize(x.elements, ref_type(c->x), extents, c->ndim, scales.elements, ref_type(c->scales), scales_count,
                      c->has_zero_points ? zero_points.elements : NULL, ref_type(c->zero_points), c->axis, c->div_mode,
                      y.elements, ref_type(c->y));
    CHECK_CALL(c->div_mode ? "quantize, divide" : "quantize, multiply",
               npuq_quantize(&x.view.tensor, &scales.view.tensor, c->has_zero_points ? &zero_points.view.tensor : NULL,
                             c->axis, c->div_mode, &y.view.tensor, any_executor()));
    end_case();
}

static void run_quantize(const quantize_case *c)
{
    int64_t shape[NPUQ_MAX_NDIM];

    random_shape(c->ndim, shape, c->y == NPUQ_QUINT4X2 ? 8 : 1);
    run_quantize_on(shape, c);
}

/* All axes of a rank, and when multiplying a few beyond it, with one scale and one per index. */
static void quantize_axes(quantize_case c)
{
    c.ndim = (int)test_between(1, NPUQ_MAX_NDIM);
    const int lowest = c.div_mode || c.ndim == 1 ? -c.ndim : -2;
    const int beyond = c.div_mode ? c.ndim : c.ndim + 2;

    for (c.axis = lowest; c.axis < beyond; c.axis++) {
        c.one_scale = test_one_in(4);
        c.has_zero_points = !test_one_in(4);
        c.broadcast_scales = !c.div_mode && test_one_in(2);
        run_quantize(&c);
    }
}

static void test_quantize_divide(void **unused)
{
    static const npuq_dtype outputs[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};

    (void)unused;
    for (size_t x = 0; x < COUNT(floats); x++) {
        for (size_t s = 0; s < COUNT(floats); s++) {
            for (size_t z = 0; z < COUNT(zero_point_types); z++) {
                for (size_t y = 0; y < COUNT(outputs); y++) {
                    for (int again = 0; again < test_rounds(4); again++) {
                        quantize_axes((quantize_case){.x = floats[x],
                                                      .scales = floats[s],
                                                      .zero_points = zero_point_types[z],
                                                      .y = outputs[y],
                                                      .div_mode = true});
                    }
                }
            }
        }
    }
}

static void test_quantize_multiply(void **unused)
{
    static const npuq_dtype outputs[] = {NPUQ_INT8, NPUQ_QUINT4X2};

    (void)unused;
    for (size_t x = 0; x < COUNT(floats); x++) {
        for (size_t s = 0; s < COUNT(floats); s++) {
            for (size_t y = 0; y < COUNT(outputs); y++) {
                for (int again = 0; again < test_rounds(24); again++) {
                    quantize_axes((quantize_case){
                        .x = floats[x], .scales = floats[s], .zero_points = floats[s], .y = outputs[y]});
                }
            }
        }
    }
}

/* ---- group_index ---- */

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

static argument make_group_index(npuq_dtype dtype, const int64_t *ends, size_t groups)
{
    const int64_t shape = (int64_t)groups;
    argument a = {.view = test_view_make(dtype, 1, &shape, test_one_in(2) ? TEST_CONTIGUOUS : TEST_STRIDED),
                  .count = groups};

    a.elements = allocate(groups * 8);
    for (size_t e = 0; e < groups; e++) {
        if (dtype == NPUQ_INT64) {
            ((int64_t *)a.elements)[e] = ends[e];
        } else {
            ((int32_t *)a.elements)[e] = (int32_t)ends[e];
        }
    }
    test_view_write(&a.view.tensor, a.elements);
    memcpy(a.view.before, a.view.guarded.memory, a.view.size);
    return keep(a);
}

/* ---- group_quant ---- */

static void run_group_quant(npuq_dtype x_type, npuq_dtype scale_type, npuq_dtype y_type, bool has_offset)
{
    const size_t E = 1 + test_below(test_one_in(4) ? 40 : 6);
    const int64_t one = 1;
    int64_t shape[2];
    int64_t y_shape[2];
    int64_t ends[64];

    random_shape(2, shape, y_type == NPUQ_QUINT4X2 ? 8 : 1);
    stored_shape(y_type, 2, shape, y_shape);
    random_groups(ends, E, shape[0]);
    const int64_t scale_shape[2] = {(int64_t)E, shape[1]};

    argument x = make_x(x_type, 2, shape, false);
    argument scale = make_input(scale_type, 2, scale_shape, false);
    argument group_index = make_group_index(test_one_in(2) ? NPUQ_INT32 : NPUQ_INT64, ends, E);
    argument offset = make_input(scale_type, test_one_in(2), &one, false);
    argument y = make_output("y", y_type, 2, y_shape);

    npuq_ref_group_quant(x.elements, ref_type(x_type), (size_t)shape[0], (size_t)shape[1], scale.elements,
                         ref_type(scale_type), E, ends, has_offset ? offset.elements : NULL, y.elements,
                         ref_type(y_type));
    CHECK_CALL("group_quant",
               npuq_group_quant(&x.view.tensor, &scale.view.tensor, &group_index.view.tensor,
                                has_offset ? &offset.view.tensor : NULL, &y.view.tensor, any_executor()));
    end_case();
}

static void test_group_quant(void **unused)
{
    (void)unused;
    for (size_t x = 0; x < COUNT(floats); x++) {
        for (size_t s = 0; s < COUNT(floats); s++) {
            for (int again = 0; again < test_rounds(120); again++) {
                run_group_quant(floats[x], floats[s], again % 2 ? NPUQ_INT8 : NPUQ_QUINT4X2, !test_one_in(3));
            }
        }
    }
}

/* ---- trans_quant_param ---- */

typedef struct trans_quant_param_form {
    int scale_ndim;
    int offset_ndim; /* 0: no offset */
    int y_ndim;
    bool one_scale;
    bool one_offset;
    bool rows; /* more than one */
} trans_quant_param_form;

static void run_trans_quant_param(const trans_quant_param_form *form, npuq_round_mode round_mode)
{
    const int64_t n = test_one_in(4) ? test_between(1, 2000) : test_between(1, 40);
    const int64_t rows[2] = {form->rows ? test_between(1, 5) : 1, n}; /* from the second on: [n] */
    const int64_t one[2] = {1, 1};
    const npuq_dtype y_type = test_one_in(2) ? NPUQ_INT64 : NPUQ_UINT64;
    const int offset_ndim = form->offset_ndim > 0 ? form->offset_ndim : 1;

    argument scale =
        make_input(NPUQ_FLOAT32, form->scale_ndim, (form->one_scale ? one : rows) + 2 - form->scale_ndim, false);
    argument offset = make_input(NPUQ_FLOAT32, offset_ndim, (form->one_offset ? one : rows) + 2 - offset_ndim, false);
    argument y = make_output("y", y_type, form->y_ndim, rows + 2 - form->y_ndim);

    npuq_ref_trans_quant_param(scale.elements, scale.count, form->offset_ndim > 0 ? offset.elements : NULL,
                               offset.count, round_mode == NPUQ_ROUND_NEAREST, y.elements);
    CHECK_CALL("trans_quant_param",
               npuq_trans_quant_param(&scale.view.tensor, form->offset_ndim > 0 ? &offset.view.tensor : NULL,
                                      round_mode, &y.view.tensor));
    end_case();
}

static void test_trans_quant_param(void **unused)
{
    static const trans_quant_param_form forms[] = {
        {.scale_ndim = 1, .y_ndim = 1},
        {.scale_ndim = 2, .y_ndim = 2, .rows = true},
        {.scale_ndim = 1, .offset_ndim = 1, .y_ndim = 1},
        {.scale_ndim = 1, .offset_ndim = 1, .y_ndim = 1, .one_offset = true},
        {.scale_ndim = 1, .offset_ndim = 1, .y_ndim = 1, .one_scale = true},
        {.scale_ndim = 2, .offset_ndim = 2, .y_ndim = 2},
    };

    (void)unused;
    for (int again = 0; again < test_rounds(60); again++) {
        const npuq_round_mode round_mode = again % 2 ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE;

        for (size_t i = 0; i < COUNT(forms); i++) {
            run_trans_quant_param(&forms[i], round_mode);
        }
        /* One of them 1-D, the other (1, n), y either; as many of both, or one. */
        for (int mixed = 0; mixed < 12; mixed++) {
            const trans_quant_param_form form = {.scale_ndim = 1 + mixed % 2,
                                                 .offset_ndim = 2 - mixed % 2,
                                                 .y_ndim = 1 + mixed / 2 % 2,
                                                 .one_scale = mixed / 4 == 1,
                                                 .one_offset = mixed / 4 == 2};
            run_trans_quant_param(&form, round_mode);
        }
    }
}

/* ---- anti_quant, dequant, requant ---- */

/* One parameter for all, or one for each column. */
static int64_t one_or(int64_t columns)
{
    return test_one_in(4) ? 1 : columns;
}

static void run_anti_quant_on(int ndim, const int64_t *shape, npuq_dtype x_type, npuq_dtype scale_type,
                              npuq_dtype y_type, const npuq_executor *executor)
{
    const int64_t H = ndim > 0 ? shape[ndim - 1] : 1;
    const int64_t parameters = one_or(H);
    const bool has_offset = !test_one_in(3);
    int64_t x_shape[NPUQ_MAX_NDIM];

    stored_shape(x_type, ndim, shape, x_shape);
    argument x = make_x(x_type, ndim, x_shape, true);
    argument scale = make_input(scale_type, 1, &parameters, false);
    argument offset = make_input(scale_type, 1, &parameters, test_one_in(2));
    argument y = make_output("y", y_type, ndim, shape);

    npuq_ref_anti_quant(x.elements, ref_type(x_type), y.count / (size_t)H, (size_t)H, scale.elements,
                        ref_type(scale_type), scale.count, has_offset ? offset.elements : NULL, y.elements,
                        ref_type(y_type));
    CHECK_CALL(x_type == NPUQ_INT8 ? "anti_quant" : "anti_quant of words",
               npuq_anti_quant(&x.view.tensor, &scale.view.tensor, has_offset ? &offset.view.tensor : NULL,
                               &y.view.tensor, executor));
    end_case();
}

static void test_anti_quant(void **unused)
{
    (void)unused;
    for (size_t s = 0; s < COUNT(floats); s++) {
        for (size_t y = 0; y < COUNT(floats); y++) {
            for (int again = 0; again < test_rounds(120); again++) {
                const bool words = again % 2;
                const int ndim = (int)test_between(words, NPUQ_MAX_NDIM);
                int64_t shape[NPUQ_MAX_NDIM];

                random_shape(ndim, shape, words ? 8 : 1);
                run_anti_quant_on(ndim, shape, words ? NPUQ_QUINT4X2 : NPUQ_INT8, floats[s], floats[y], any_executor());
            }
        }
    }
}

static const npuq_dtype bias_types[] = {NPUQ_INT32, NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};

static void run_dequant_on(int ndim, const int64_t *shape, npuq_dtype scale_type, npuq_dtype bias_type,
                           npuq_dtype y_type, const npuq_executor *executor)
{
    const int64_t N = shape[ndim - 1];
    const int64_t scales = one_or(N);
    const bool has_activation_scale = !test_one_in(3);
    const bool has_bias = !test_one_in(4);

    argument x = make_x(NPUQ_INT32, ndim, shape, true);
    argument weight_scale = make_input(scale_type, 1, &scales, test_one_in(2));
    argument activation_scale = make_input(NPUQ_FLOAT32, ndim - 1, shape, test_one_in(2));
    argument bias = make_input(bias_type, 1, &N, test_one_in(2));
    argument y = make_output("y", y_type, ndim, shape);

    npuq_ref_dequant(x.elements, y.count / (size_t)N, (size_t)N, weight_scale.elements, ref_type(scale_type),
                     weight_scale.count, has_activation_scale ? activation_scale.elements : NULL,
                     has_bias ? bias.elements : NULL, ref_type(bias_type), y.elements, ref_type(y_type));
    CHECK_CALL("dequant", npuq_dequant(&x.view.tensor, &weight_scale.view.tensor,
                                       has_activation_scale ? &activation_scale.view.tensor : NULL,
                                       has_bias ? &bias.view.tensor : NULL, &y.view.tensor, executor));
    end_case();
}

static void test_dequant(void **unused)
{
    (void)unused;
    for (size_t s = 0; s < COUNT(floats); s++) {
        for (size_t y = 0; y < COUNT(floats); y++) {
            for (size_t b = 0; b < COUNT(bias_types); b++) {
                for (int again = 0; again < test_rounds(30); again++) {
                    const int ndim = (int)test_between(1, NPUQ_MAX_NDIM);
                    int64_t shape[NPUQ_MAX_NDIM];

                    random_shape(ndim, shape, 1);
                    run_dequant_on(ndim, shape, floats[s], bias_types[b], floats[y], any_executor());
                }
            }
        }
    }
}

static void run_requant_on(int ndim, const int64_t *shape, npuq_dtype y_type, const npuq_executor *executor)
{
    const int64_t N = shape[ndim - 1];
    const int words_ndim = (int)test_between(1, 2);
    const int64_t words_shape[] = {1, words_ndim == 1 ? one_or(N) : N};
    const bool has_bias = test_one_in(2);

    argument x = make_x(NPUQ_INT32, ndim, shape, true);
    argument words = make_words(y_type, words_ndim, words_shape + 2 - words_ndim);
    argument bias = make_input(NPUQ_INT32, 1, &N, true);
    argument y = make_output("y", y_type, ndim, shape);

    npuq_ref_requant(x.elements, y.count / (size_t)N, (size_t)N, words.elements, words.count,
                     has_bias ? bias.elements : NULL, y.elements, ref_type(y_type));
    CHECK_CALL("requant", npuq_requant(&x.view.tensor, &words.view.tensor, has_bias ? &bias.view.tensor : NULL,
                                       &y.view.tensor, executor));
    end_case();
}

static void test_requant(void **unused)
{
    (void)unused;
    for (int again = 0; again < test_rounds(1500); again++) {
        const int ndim = (int)test_between(1, NPUQ_MAX_NDIM);
        int64_t shape[NPUQ_MAX_NDIM];

        random_shape(ndim, shape, 1);
        run_requant_on(ndim, shape, again % 2 ? NPUQ_INT8 : NPUQ_FLOAT16, any_executor());
    }
}

/* ---- dynamic_quant_asymmetric and dynamic_quant ---- */

typedef enum smoothing { NO_SMOOTH, SMOOTH, GROUPED_SMOOTH } smoothing;

/* Both on the same. Often finite: one NaN makes a whole row 0. */
static void run_dynamic_on(int ndim, const int64_t *shape, npuq_dtype x_type, npuq_dtype smooth_type, npuq_dtype y_type,
                           smoothing kind, npuq_quant_mode mode, bool finite, const npuq_executor *executor)
{
    const npuq_scale_form form = test_one_in(2) ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;
    const int64_t one = 1;
    int64_t y_shape[NPUQ_MAX_NDIM];
    int64_t ends[16];

    stored_shape(y_type, ndim, shape, y_shape);
    const size_t S = test_count(ndim - 1, shape);
    const size_t H = (size_t)shape[ndim - 1];
    const size_t E = 1 + test_below(8);
    const int64_t smooth_shape[2] = {(int64_t)E, (int64_t)H};
    const bool grouped = kind == GROUPED_SMOOTH;
    const bool per_tensor = mode == NPUQ_PER_TENSOR;

    const int p_ndim = per_tensor ? 1 : ndim - 1;
    const int64_t *p_shape = per_tensor ? &one : shape;

    random_groups(ends, E, (int64_t)S);
    argument x = make_x(x_type, ndim, shape, finite);
    argument smooth = make_input(smooth_type, grouped ? 2 : 1, grouped ? smooth_shape : &smooth_shape[1], finite);
    argument group_index = make_group_index(test_one_in(2) ? NPUQ_INT32 : NPUQ_INT64, ends, E);
    const void *smooth_elements = kind == NO_SMOOTH ? NULL : smooth.elements;
    const npuq_tensor *smooth_view = kind == NO_SMOOTH ? NULL : &smooth.view.tensor;
    const npuq_tensor *groups_view = grouped ? &group_index.view.tensor : NULL;
    argument y = make_output("y", y_type, ndim, y_shape);
    argument scale = make_output("scale", NPUQ_FLOAT32, p_ndim, p_shape);
    argument offset = make_output("offset", NPUQ_FLOAT32, p_ndim, p_shape);

    npuq_ref_dynamic_quant_asymmetric(x.elements, ref_type(x_type), S, H, smooth_elements, ref_type(smooth_type), E,
                                      grouped ? ends : NULL, per_tensor, y.elements, ref_type(y_type), scale.elements,
                                      offset.elements);
    CHECK_CALL("dynamic_quant_asymmetric",
               npuq_dynamic_quant_asymmetric(&x.view.tensor, smooth_view, groups_view, mode, &y.view.tensor,
                                             &scale.view.tensor, &offset.view.tensor, executor));

    y = make_output("y", y_type, ndim, y_shape);
    scale = make_output("scale", NPUQ_FLOAT32, p_ndim, p_shape);
    npuq_ref_dynamic_quant(x.elements, ref_type(x_type), S, H, smooth_elements, ref_type(smooth_type), E,
                           grouped ? ends : NULL, per_tensor, form == NPUQ_SCALE_INVERSE, y.elements, ref_type(y_type),
                           scale.elements);
    CHECK_CALL("dynamic_quant", npuq_dynamic_quant(&x.view.tensor, smooth_view, groups_view, mode, form, &y.view.tensor,
                                                   &scale.view.tensor, executor));
    end_case();
}

static void run_dynamic(npuq_dtype x_type, npuq_dtype smooth_type, npuq_dtype y_type, smoothing kind,
                        npuq_quant_mode mode)
{
    const int ndim = (int)test_between(2, NPUQ_MAX_NDIM);
    int64_t shape[NPUQ_MAX_NDIM];

    random_shape(ndim, shape, y_type == NPUQ_QUINT4X2 ? 8 : 1);
    run_dynamic_on(ndim, shape, x_type, smooth_type, y_type, kind, mode, !test_one_in(4), any_executor());
}

/* Short rows one after the other, which are taken together, and some that are too long or too few. */
static void test_short_rows(void **unused)
{
    static const smoothing kinds[] = {NO_SMOOTH, SMOOTH, GROUPED_SMOOTH};

    (void)unused;
    for (int again = 0; again < test_rounds(1000); again++) {
        all_contiguous = true;
        const npuq_dtype narrow = again % 4 ? NPUQ_INT8 : NPUQ_QUINT4X2;
        const npuq_dtype x = floats[test_below(COUNT(floats))];
        const npuq_dtype p = floats[test_below(COUNT(floats))];
        const npuq_dtype y = floats[test_below(COUNT(floats))];
        const int64_t n = test_one_in(4) ? test_between(1, 160) : test_between(1, 40);
        const int64_t shape[] = {test_one_in(4) ? test_between(1, 4000 / n + 1) : test_between(1, 140),
                                 narrow == NPUQ_QUINT4X2 ? (n + 7) / 8 * 8 : n};

        run_dynamic_on(2, shape, x, p, narrow, kinds[test_below(COUNT(kinds))], NPUQ_PER_TOKEN, !test_one_in(4),
                       any_executor());
        run_anti_quant_on(2, shape, narrow, p, y, any_executor());
        run_dequant_on(2, shape, p, bias_types[test_below(COUNT(bias_types))], y, any_executor());
        run_requant_on(2, shape, test_one_in(2) ? NPUQ_INT8 : NPUQ_FLOAT16, any_executor());
        run_group_quant(x, p, narrow, test_one_in(2));
        run_quantize(&(quantize_case){.x = x,
                                      .scales = p,
                                      .zero_points = p,
                                      .y = narrow,
                                      .has_zero_points = test_one_in(2),
                                      .div_mode = narrow == NPUQ_INT8 && test_one_in(2),
                                      .ndim = 2,
                                      .axis = (int)test_between(0, 1)});
    }
    all_contiguous = false;
}

/* Dense tensors as long and as many rows as the short way takes, and as its buffers hold or do not hold. */
static void test_dense_rows(void **unused)
{
    static const smoothing kinds[] = {NO_SMOOTH, SMOOTH, GROUPED_SMOOTH};
    static const int64_t shapes[][2] = {{1, 4096}, {1, 4104}, {1, 16384}, {2, 16384}, {3, 9000}, {600, 48}, {70, 32}};

    (void)unused;
    all_contiguous = true;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        for (size_t k = 0; k < COUNT(kinds); k++) {
            for (size_t x = 0; x < COUNT(floats); x++) {
                const npuq_dtype p = floats[(x + k + s) % COUNT(floats)];

                run_dynamic_on(2, shapes[s], floats[x], p, NPUQ_INT8, kinds[k], NPUQ_PER_TOKEN, true, NULL);
                run_dynamic_on(2, shapes[s], floats[x], p, NPUQ_QUINT4X2, kinds[k], NPUQ_PER_TOKEN, false, NULL);
                run_quantize_on(shapes[s], &(quantize_case){.x = floats[x],
                                                            .scales = p,
                                                            .zero_points = k ? NPUQ_INT32 : p,
                                                            .y = NPUQ_INT8,
                                                            .has_zero_points = true,
                                                            .div_mode = k != 0,
                                                            .ndim = 2,
                                                            .axis = -1});
                run_anti_quant_on(2, shapes[s], k ? NPUQ_INT8 : NPUQ_QUINT4X2, p, floats[x], NULL);
                run_dequant_on(2, shapes[s], p, bias_types[test_below(COUNT(bias_types))], floats[x], NULL);
                run_requant_on(2, shapes[s], k ? NPUQ_INT8 : NPUQ_FLOAT16, NULL);
                if (kinds[k] != GROUPED_SMOOTH) {
                    run_dynamic_on(2, shapes[s], floats[x], p, NPUQ_INT8, kinds[k], NPUQ_PER_TENSOR, true, NULL);
                }
            }
        }
    }
    all_contiguous = false;
}

/* Rows so long that an executor gets parts of them. */
static void test_long_rows(void **unused)
{
    static const smoothing kinds[] = {NO_SMOOTH, SMOOTH, GROUPED_SMOOTH};
    const int64_t shape[] = {5, 4 * 65536 + 1032};

    (void)unused;
    for (size_t x = 0; x < COUNT(floats); x++) {
        for (size_t k = 0; k < COUNT(kinds); k++) {
            run_dynamic_on(2, shape, floats[x], floats[k], NPUQ_INT8, kinds[k], NPUQ_PER_TOKEN, !test_one_in(4),
                           &test_shuffled_executor);
            run_dynamic_on(2, shape, floats[x], floats[k], NPUQ_QUINT4X2, kinds[k], NPUQ_PER_TOKEN, !test_one_in(4),
                           &test_shuffled_executor);
        }
    }
    for (int again = 0; again < 4; again++) { /* finite products: only these differ from group to group */
        run_dynamic_on(2, shape, NPUQ_FLOAT16, NPUQ_FLOAT16, NPUQ_INT8, GROUPED_SMOOTH, NPUQ_PER_TOKEN, true,
                       &test_shuffled_executor);
    }
}

static void test_dynamic(void **unused)
{
    (void)unused;
    for (size_t x = 0; x < COUNT(floats); x++) {
        for (size_t s = 0; s < COUNT(floats); s++) {
            for (int again = 0; again < test_rounds(60); again++) {
                const npuq_dtype y = again % 2 ? NPUQ_INT8 : NPUQ_QUINT4X2;
                run_dynamic(floats[x], floats[s], y, NO_SMOOTH, NPUQ_PER_TOKEN);
                run_dynamic(floats[x], floats[s], y, SMOOTH, NPUQ_PER_TOKEN);
                run_dynamic(floats[x], floats[s], y, GROUPED_SMOOTH, NPUQ_PER_TOKEN);
                run_dynamic(floats[x], floats[s], y, NO_SMOOTH, NPUQ_PER_TENSOR);
                run_dynamic(floats[x], floats[s], y, SMOOTH, NPUQ_PER_TENSOR);
            }
        }
    }
}

/* ---- their steps ---- */

/* What is quantised: element i of x, times the smooth scale of its group and column. */
static float smoothed(const argument *x, const argument *smooth, size_t row, size_t H, size_t i, const int64_t *ends)
{
    const float v = npuq_ref_load(x->elements, ref_type(x->view.tensor.dtype), row * H + i);
    size_t e = 0;

    while (ends && (size_t)ends[e] <= row) {
        e++;
    }
    return smooth ? npuq_ref_mul(v, npuq_ref_load(smooth->elements, ref_type(smooth->view.tensor.dtype), e * H + i))
                  : v;
}

/* What dynamic_quant makes of a range. */
static npuq_ref_parameters of_range(float min, float max, npuq_dtype y_type, npuq_scale_form form)
{
    return npuq_ref_symmetric_parameters(npuq_ref_largest_with(npuq_ref_largest_with(0.0f, min), max), ref_type(y_type),
                                         form == NPUQ_SCALE_INVERSE);
}

/* Ranges of x; of any two numbers, as scale and offset or as a range, parameters, and x quantised with them; each by
 * itself. */
static void run_steps_on(int ndim, const int64_t *shape, npuq_dtype x_type, npuq_dtype smooth_type, npuq_dtype y_type,
                         smoothing kind, npuq_quant_mode mode, const npuq_executor *executor)
{
    const bool finite = !test_one_in(4);
    const int64_t one = 1;
    int64_t y_shape[NPUQ_MAX_NDIM];
    int64_t ends[16];

    stored_shape(y_type, ndim, shape, y_shape);
    const size_t S = test_count(ndim - 1, shape);
    const size_t H = (size_t)shape[ndim - 1];
    const size_t E = 1 + test_below(8);
    const int64_t smooth_shape[2] = {(int64_t)E, (int64_t)H};
    const bool grouped = kind == GROUPED_SMOOTH;
    const bool per_tensor = mode == NPUQ_PER_TENSOR;
    const int p_ndim = per_tensor ? 1 : ndim - 1;
    const int64_t *p_shape = per_tensor ? &one : shape;

    random_groups(ends, E, (int64_t)S);
    argument x = make_x(x_type, ndim, shape, finite);
    argument smooth = make_input(smooth_type, grouped ? 2 : 1, grouped ? smooth_shape : &smooth_shape[1], finite);
    argument group_index = make_group_index(test_one_in(2) ? NPUQ_INT32 : NPUQ_INT64, ends, E);
    const argument *factors = kind == NO_SMOOTH ? NULL : &smooth;
    const npuq_tensor *smooth_view = kind == NO_SMOOTH ? NULL : &smooth.view.tensor;
    const npuq_tensor *groups_view = grouped ? &group_index.view.tensor : NULL;

    argument min = make_output("min", NPUQ_FLOAT32, p_ndim, p_shape);
    argument max = make_output("max", NPUQ_FLOAT32, p_ndim, p_shape);
    for (size_t r = 0; r < S; r++) {
        npuq_ref_range range = npuq_ref_range_empty();
        const size_t p = per_tensor ? 0 : r;

        if (per_tensor && r > 0) {
            memcpy(&range.lo, (float *)min.elements, sizeof range.lo);
            memcpy(&range.hi, (float *)max.elements, sizeof range.hi);
        }
        for (size_t i = 0; i < H; i++) {
            range = npuq_ref_range_with(range, smoothed(&x, factors, r, H, i, grouped ? ends : NULL));
        }
        memcpy((float *)min.elements + p, &range.lo, sizeof range.lo);
        memcpy((float *)max.elements + p, &range.hi, sizeof range.hi);
    }
    CHECK_CALL("dynamic_quant_min_max", npuq_dynamic_quant_min_max(&x.view.tensor, smooth_view, groups_view, mode,
                                                                   &min.view.tensor, &max.view.tensor, executor));

    argument scale = make_input(NPUQ_FLOAT32, p_ndim, p_shape, finite);
    argument offset = make_input(NPUQ_FLOAT32, p_ndim, p_shape, finite);
    argument y = make_output("y", y_type, ndim, y_shape);
    for (size_t r = 0; r < S; r++) {
        const size_t p = per_tensor ? 0 : r;
        const float back = npuq_ref_div(1.0f, npuq_ref_load(scale.elements, NPUQ_REF_FLOAT32, p));
        const float add = npuq_ref_load(offset.elements, NPUQ_REF_FLOAT32, p);

        for (size_t i = 0; i < H; i++) {
            const float v = smoothed(&x, factors, r, H, i, grouped ? ends : NULL);
            npuq_ref_store(y.elements, ref_type(y_type), r * H + i, npuq_ref_affine(v, back, add, false));
        }
    }
    CHECK_CALL("dynamic_quant_apply",
               npuq_dynamic_quant_apply(&x.view.tensor, smooth_view, groups_view, mode, &scale.view.tensor,
                                        &offset.view.tensor, &y.view.tensor, executor));

    argument out_scale = make_output("scale", NPUQ_FLOAT32, p_ndim, p_shape);
    argument out_offset = make_output("offset", NPUQ_FLOAT32, p_ndim, p_shape);
    for (size_t i = 0; i < out_scale.count; i++) {
        const npuq_ref_range range = {npuq_ref_load(offset.elements, NPUQ_REF_FLOAT32, i),
                                      npuq_ref_load(scale.elements, NPUQ_REF_FLOAT32, i)};
        const npuq_ref_parameters p = npuq_ref_range_parameters(range, ref_type(y_type));

        memcpy((float *)out_scale.elements + i, &p.scale, sizeof p.scale);
        memcpy((float *)out_offset.elements + i, &p.offset, sizeof p.offset);
    }
    CHECK_CALL("dynamic_quant_params", npuq_dynamic_quant_params(&scale.view.tensor, &offset.view.tensor, y_type,
                                                                 &out_scale.view.tensor, &out_offset.view.tensor));

    const npuq_scale_form form = test_one_in(2) ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;
    y = make_output("y", y_type, ndim, y_shape);
    out_scale = make_output("scale", NPUQ_FLOAT32, p_ndim, p_shape);
    for (size_t r = 0; r < S; r++) {
        const size_t p = per_tensor ? 0 : r;
        const npuq_ref_parameters parameters =
            of_range(((float *)scale.elements)[p], ((float *)offset.elements)[p], y_type, form);

        memcpy((float *)out_scale.elements + p, &parameters.scale, sizeof parameters.scale);
        for (size_t i = 0; i < H; i++) {
            const float v = smoothed(&x, factors, r, H, i, grouped ? ends : NULL);
            npuq_ref_store(y.elements, ref_type(y_type), r * H + i, npuq_ref_mul(v, parameters.back));
        }
    }
    FOR_EACH_BACKEND()
    {
        check_ok(npuq_dynamic_quant_symmetric_params(&scale.view.tensor, &offset.view.tensor, y_type, form,
                                                     &out_scale.view.tensor));
        check_ok(npuq_dynamic_quant_symmetric_apply(&x.view.tensor, smooth_view, groups_view, mode, &scale.view.tensor,
                                                    &offset.view.tensor, &y.view.tensor, executor));
        check_outputs("dynamic_quant_symmetric_params and _apply");
    }
    end_case();
}

static void test_steps(void **unused)
{
    static const smoothing kinds[] = {NO_SMOOTH, SMOOTH, GROUPED_SMOOTH, NO_SMOOTH, SMOOTH};
    const int64_t long_rows[] = {3, 4 * 65536 + 1032};

    (void)unused;
    for (size_t x = 0; x < COUNT(floats); x++) {
        for (size_t s = 0; s < COUNT(floats); s++) {
            for (int again = 0; again < test_rounds(30); again++) {
                for (size_t k = 0; k < COUNT(kinds); k++) {
                    const npuq_dtype y = again % 2 ? NPUQ_INT8 : NPUQ_QUINT4X2;
                    const int ndim = (int)test_between(2, NPUQ_MAX_NDIM);
                    int64_t shape[NPUQ_MAX_NDIM];

                    random_shape(ndim, shape, y == NPUQ_QUINT4X2 ? 8 : 1);
                    run_steps_on(ndim, shape, floats[x], floats[s], y, kinds[k],
                                 k < 3 ? NPUQ_PER_TOKEN : NPUQ_PER_TENSOR, any_executor());
                }
            }
        }
        run_steps_on(2, long_rows, floats[x], floats[x], NPUQ_INT8, kinds[x], NPUQ_PER_TOKEN, &test_shuffled_executor);
    }
}

/* A part of a tensor: from begin on, so many along a dimension. */
static npuq_tensor slice(const npuq_tensor *tensor, int d, int64_t begin, int64_t extent)
{
    npuq_tensor part = *tensor;

    part.data = (char *)part.data + begin * tensor->strides[d] * (int64_t)npuq_dtype_size(tensor->dtype);
    part.shape[d] = extent;
    return part;
}

/* As the header says. */
static npuq_ref_range combined(npuq_ref_range a, float min, float max)
{
    if (isnan(a.lo) || isnan(min)) {
        return (npuq_ref_range){NAN, NAN};
    }
    return (npuq_ref_range){max > a.hi ? max : a.hi, min < a.lo ? min : a.lo};
}

/* Shards by rows, or by columns, that know nothing of each other but their ranges, give what the whole tensor gives. */
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
    random_groups(ends, SHARDS, along == 0 ? shape[0] : shape[1] / 8); /* some are empty */
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
                /* Per token, a shard by rows has rows of its own. */
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
    random_groups(shards, SHARDS, shape[0]); /* some are empty */
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

/* Extents beside one of 0 may be any, their product beyond everything. */
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

/* Rows that are one element each in memory; and more elements than a size_t counts, where it has 32 bits. */
static void check_broadcast_rows(void)
{
    const int64_t shape[] = {2, 1 << 22};
    float values[1024] = {5, 7}; /* none of what x may span is another tensor */
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

/* Few columns to each scale, which a tile may begin with the second of: x is not contiguous, and wider than a unit. */
static void check_scales_of_few_columns(void)
{
    enum { ROWS = 3000, COLS = 3 };
    const size_t extents[] = {ROWS, COLS};
    static float apart[ROWS * COLS * 2];
    static float x[ROWS * COLS];
    static float scales[ROWS];
    static int8_t y[ROWS * COLS];
    static int8_t expected[ROWS * COLS];
    npuq_tensor x_view = npuq_matrix(apart, NPUQ_FLOAT32, ROWS, COLS, 2 * COLS);
    const npuq_tensor scales_view = npuq_vector(scales, NPUQ_FLOAT32, ROWS);
    const npuq_tensor y_view = npuq_matrix(y, NPUQ_INT8, ROWS, COLS, 0);

    x_view.strides[1] = 2;
    test_fill(apart, NPUQ_FLOAT32, COUNT(apart), true);
    test_fill(scales, NPUQ_FLOAT32, ROWS, true);
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = apart[2 * i];
    }
    npuq_ref_quantize(x, NPUQ_REF_FLOAT32, extents, 2, scales, NPUQ_REF_FLOAT32, ROWS, NULL, NPUQ_REF_FLOAT32, 0, true,
                      expected, NPUQ_REF_INT8);
    check_ok(npuq_quantize(&x_view, &scales_view, NULL, 0, true, &y_view, NULL));
    test_same(y, expected, sizeof y, "quantize, few columns to a scale");
}

/* Rows of NaN, of which no store is certain, beside rows with scales that have no inverse: what kernels remember from
 * one row to the next stays bounded. */
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

/* Parameters of one range that has no dimensions. */
static void check_scalar_parameters(void)
{
    float values[] = {-1.5f, 24.0f, 0, 0};
    npuq_tensor views[4];

    for (int i = 0; i < 4; i++) {
        views[i] = npuq_tensor_contiguous(&values[i], NPUQ_FLOAT32, 0, NULL);
    }
    check_ok(npuq_dynamic_quant_params(&views[0], &views[1], NPUQ_INT8, &views[2], &views[3]));
    const npuq_ref_range range = {values[1], values[0]};
    const npuq_ref_parameters p = npuq_ref_range_parameters(range, NPUQ_REF_INT8);
    test_same(&values[2], &p.scale, sizeof p.scale, "scale");
    test_same(&values[3], &p.offset, sizeof p.offset, "offset");

    check_ok(npuq_dynamic_quant_symmetric_params(&views[0], &views[1], NPUQ_QUINT4X2, NPUQ_SCALE_INVERSE, &views[2]));
    const npuq_ref_parameters symmetric = of_range(values[0], values[1], NPUQ_QUINT4X2, NPUQ_SCALE_INVERSE);
    test_same(&values[2], &symmetric.scale, sizeof symmetric.scale, "scale, symmetric");
}

/* Tensors of many units of work, and larger than the caches, where the kernels write and fetch in another way. */
static void test_large(void **unused)
{
    const int64_t shape[] = {2100, 4104};
    const int64_t words[] = {2100, 513};
    const int64_t sums[] = {1300, 4104};
    const int64_t many_rows[] = {20000, 3};
    const int64_t row = 4104;
    const size_t extents[] = {2100, 4104};
    const npuq_executor *executor = &test_shuffled_executor;

    (void)unused;
    for (size_t i = 0; i < COUNT(floats); i++) {
        argument x = make_x(floats[i], 2, shape, true);
        argument scales = make_input(NPUQ_FLOAT16, 1, &row, true);
        argument zero_points = make_input(NPUQ_FLOAT16, 1, &row, true);
        argument y = make_output("y", NPUQ_QUINT4X2, 2, words);

        npuq_ref_quantize(x.elements, ref_type(floats[i]), extents, 2, scales.elements, NPUQ_REF_FLOAT16, 4104,
                          zero_points.elements, NPUQ_REF_FLOAT16, -1, false, y.elements, NPUQ_REF_QUINT4X2);
        CHECK_CALL("quantize, large", npuq_quantize(&x.view.tensor, &scales.view.tensor, &zero_points.view.tensor, -1,
                                                    false, &y.view.tensor, executor));
        end_case();

        run_dynamic_on(2, shape, floats[i], NPUQ_FLOAT16, NPUQ_INT8, SMOOTH, NPUQ_PER_TOKEN, true, executor);
        run_dynamic_on(2, shape, floats[i], NPUQ_FLOAT16, NPUQ_INT8, NO_SMOOTH, NPUQ_PER_TENSOR, true, executor);
        run_anti_quant_on(2, shape, i > 0 ? NPUQ_INT8 : NPUQ_QUINT4X2, floats[i], floats[i], executor);
        run_dequant_on(2, sums, floats[i], bias_types[i], floats[i], executor);
        for (int again = 0; again < 4; again++) { /* some with scales of rows that are not contiguous */
            run_dequant_on(2, many_rows, floats[i], bias_types[i], floats[i], executor);
        }
        run_requant_on(2, sums, i > 0 ? NPUQ_INT8 : NPUQ_FLOAT16, executor);
    }
}

/* Rows of exactly so many units of work side by side, and of a little less and more. */
static void test_wide(void **unused)
{
    static const int64_t widths[] = {2 * 32768, 2 * 32768 - 8, 3 * 4096, 3 * 4096 + 64, 32768 + 72};

    (void)unused;
    for (size_t i = 0; i < COUNT(widths); i++) {
        for (size_t s = 0; s < COUNT(floats); s++) {
            const int64_t shape[] = {3, widths[i]};
            const size_t extents[] = {3, (size_t)widths[i]};
            argument x = make_x(floats[i % COUNT(floats)], 2, shape, true);
            argument scales = make_input(floats[s], 1, &widths[i], true);
            argument y = make_output("y", NPUQ_INT8, 2, shape);

            npuq_ref_quantize(x.elements, ref_type(floats[i % COUNT(floats)]), extents, 2, scales.elements,
                              ref_type(floats[s]), (size_t)widths[i], NULL, NPUQ_REF_FLOAT32, 1, true, y.elements,
                              NPUQ_REF_INT8);
            CHECK_CALL("quantize, wide", npuq_quantize(&x.view.tensor, &scales.view.tensor, NULL, 1, true,
                                                       &y.view.tensor, &test_shuffled_executor));
            end_case();

            run_anti_quant_on(2, shape, s > 0 ? NPUQ_INT8 : NPUQ_QUINT4X2, floats[s], floats[i % COUNT(floats)],
                              &test_shuffled_executor);
            run_dequant_on(2, shape, floats[s], bias_types[i % COUNT(bias_types)], floats[i % COUNT(floats)],
                           &test_shuffled_executor);
            run_requant_on(2, shape, s > 0 ? NPUQ_INT8 : NPUQ_FLOAT16, &test_shuffled_executor);
        }
    }
}

/* Rows of words as far apart as their elements are in the other tensor: what joins its rows must not join them. */
static void check_words_far_apart(void)
{
    enum { COLS = 16, WORDS = COLS / 8, FAR = COLS };
    const int64_t shape[] = {3, COLS};
    const int64_t words[] = {3, WORDS};
    const int64_t one = 1;
    const size_t extents[] = {3, COLS};
    float scale = 1.5f;
    float x[3 * COLS];
    uint32_t y[3 * FAR];
    uint32_t expected[3 * WORDS];
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
        test_same(&y[r * FAR], &expected[r * WORDS], WORDS * sizeof *y, "words of row %zu", r);
        for (size_t i = WORDS; i < FAR; i++) {
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
        check_scales_of_few_columns();
        check_uncertain_rows();
        check_scalar_parameters();
        check_words_far_apart();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantize_divide),
        cmocka_unit_test(test_quantize_multiply),
        cmocka_unit_test(test_group_quant),
        cmocka_unit_test(test_trans_quant_param),
        cmocka_unit_test(test_anti_quant),
        cmocka_unit_test(test_dequant),
        cmocka_unit_test(test_requant),
        cmocka_unit_test(test_dynamic),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_short_rows),
        cmocka_unit_test(test_dense_rows),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_constructed),
    };
    test_seed();
    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
