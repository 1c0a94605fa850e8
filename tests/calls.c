/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

#define TEXT(name, NAME)             #name
#define STRING(name, NAME, EXECUTOR) #name,
const char *const slot_names[SLOTS] = {EACH_SLOT(TEXT)};
const char *const operator_names[TEST_OPERATORS] = {EACH_FUNCTION(STRING)};

#ifndef TEST_WITHOUT_LIBRARY

static const npuq_tensor *get(const test_call *c, enum slot slot)
{
    return c->given[slot] ? &c->tensors[slot] : NULL;
}

#define TENSOR(name, NAME, ...)  , get(c, NAME)
#define CHOICE(name, NAME, type) , (type)c->name
#define CHOICE_STRUCTURE         BY_ADDRESS
#define GIVEN(name)              ARGUMENTS_##name(TENSOR, TENSOR, TENSOR, TENSOR, CHOICE)

npuq_status test_call_run(const test_call *c)
{
#define RUN_WITH(name)    APPLY(npuq_##name, GIVEN(name), c->executor)
#define RUN_WITHOUT(name) APPLY(npuq_##name, GIVEN(name))
#define RUN(name, NAME, EXECUTOR)                                                                                      \
    case TEST_##NAME: return RUN_##EXECUTOR(name);
    switch (c->op) {
        EACH_FUNCTION(RUN)
    case TEST_OPERATORS: break;
    }
    abort();
}

npuq_status test_call_prepare(npuq_call *prepared, const test_call *c)
{
#define PREPARE_WITH(name)    return npuq_prepare_##name(prepared GIVEN(name))
#define PREPARE_WITHOUT(name) break
#define PREPARE(name, NAME, EXECUTOR)                                                                                  \
    case TEST_##NAME: PREPARE_##EXECUTOR(name);
    switch (c->op) {
        EACH_FUNCTION(PREPARE)
    case TEST_OPERATORS: break;
    }
    abort();
}

#endif

enum { NPUQ_OPERAND_GROUPS = -1, NPUQ_OPERAND_MIN = -1, NPUQ_OPERAND_MAX = -1 }; /* none */
#define DTYPE(NAME)    NPUQ_##NAME,
#define ONE_MORE(NAME) +1
/* The operand is that of the role. Tests that took it from the column REBOUND would not notice a mistake there. */
#define IS(PRESENCE, name, NAME, ROLE, TYPES, SHAPE, LEAST, MOST, ...)                                                 \
    [NAME] = {PRESENCE, NPUQ_SHAPE_##SHAPE,        NPUQ_OPERAND_##ROLE,   LEAST,                                       \
              MOST,     0 TYPES_##TYPES(ONE_MORE), {TYPES_##TYPES(DTYPE)}},
#define IS_IN(...)       IS(TEST_REQUIRED, __VA_ARGS__)
#define IS_OPTIONAL(...) IS(TEST_OPTIONAL, __VA_ARGS__)
#define IS_OUT(...)      IS(TEST_WRITTEN, __VA_ARGS__)
#define NONE(...)
#define ROW(name, NAME, EXECUTOR) [TEST_##NAME] = {ARGUMENTS_##name(IS_IN, IS_IN, IS_OPTIONAL, IS_OUT, NONE)},
const test_argument test_arguments[TEST_OPERATORS][SLOTS] = {EACH_FUNCTION(ROW)};

bool test_has(enum test_operator op, enum slot slot)
{
    return test_arguments[op][slot].presence != TEST_ABSENT;
}

#define IS_WITH               true
#define IS_WITHOUT            false
#define KIND_X                false
#define KIND_X_UNDER_Y        true
#define BIT(name, NAME, type) | 1U << OPTION_##NAME
/* Of the tensor that the operator is for. */
#define IN_PLACE(name, NAME, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND, KIND, npu_name) || KIND_##KIND
#define FACTS(name, NAME, EXECUTOR)                                                                                    \
    [TEST_##NAME] = {0 ARGUMENTS_##name(NONE, NONE, NONE, NONE, BIT),                                                  \
                     false ARGUMENTS_##name(IN_PLACE, NONE, NONE, NONE, NONE), IS_##EXECUTOR},
static const struct {
    unsigned options;
    bool in_place;
    bool takes_executor;
} facts[TEST_OPERATORS] = {EACH_FUNCTION(FACTS)};

bool test_has_option(enum test_operator op, enum test_option option)
{
    return facts[op].options >> option & 1;
}

bool test_has_blocks(enum test_operator op)
{
    return test_has_option(op, OPTION_BLOCK) || test_has_option(op, OPTION_BLOCK_SIZE);
}

bool test_needs_groups(enum test_operator op)
{
    return test_arguments[op][GROUP_INDEX].presence == TEST_REQUIRED;
}

bool test_works_in_place(enum test_operator op)
{
    return facts[op].in_place;
}

bool test_is_dynamic(enum test_operator op)
{
    return test_has(op, SMOOTH_SCALES);
}

bool test_takes_ranges_only(enum test_operator op)
{
    return test_has(op, MIN) && !test_has(op, X);
}

bool test_takes_executor(enum test_operator op)
{
    return facts[op].takes_executor;
}

bool test_finds_ranges(enum test_operator op)
{
    return test_is_dynamic(op) && (test_is_output(op, SCALE) || test_is_output(op, MIN));
}

bool test_is_output(enum test_operator op, enum slot slot)
{
    return test_arguments[op][slot].presence == TEST_WRITTEN;
}

bool test_is_optional(enum test_operator op, enum slot slot)
{
    return test_arguments[op][slot].presence == TEST_OPTIONAL;
}

int test_operand_of(enum test_operator op, enum slot slot)
{
    return slot == WORDS ? -1 : test_arguments[op][slot].operand;
}

bool test_raises_flags(const test_call *c)
{
#if defined(__i386__) && !defined(__SSE2_MATH__)
    const float options[] = {c->min_scale, c->dst_type_max, c->max_low_bound};

    for (size_t i = 0; i < COUNT(options); i++) {
        if (options[i] > 0 && options[i] < 0x1p-126F) {
            return true;
        }
    }
    return false;
#else
    (void)c;
    return false;
#endif
}

/* ---- views ------------------------------------------------------------------------------------------------------ */

static void copy_element(unsigned char *to, const unsigned char *from, size_t size)
{
    switch (size) { /* a constant size is ten times as fast */
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, 8); break;
    }
}

static void copy_elements(const npuq_tensor *view, unsigned char *array, bool to_view)
{
    const size_t size = test_size(view->dtype);
    const size_t count = test_count(view->ndim, view->shape);
    const size_t columns = view->ndim > 0 ? (size_t)view->shape[view->ndim - 1] : 1;
    const ptrdiff_t step = columns > 1 ? (ptrdiff_t)view->strides[view->ndim - 1] : 1;

    for (size_t i = 0; i < count; i += columns, array += columns * size) {
        size_t row = i / columns;
        ptrdiff_t offset = 0;

        for (int d = view->ndim - 2; d >= 0; d--) {
            if (view->shape[d] > 1) {
                offset += (ptrdiff_t)(row % (size_t)view->shape[d]) * (ptrdiff_t)view->strides[d];
                row /= (size_t)view->shape[d];
            }
        }
        unsigned char *at = (unsigned char *)view->data + offset * (ptrdiff_t)size;
        if (step == 1) {
            memcpy(to_view ? at : array, to_view ? array : at, columns * size);
            continue;
        }
        for (size_t c = 0; c < columns; c++) {
            unsigned char *element = at + (ptrdiff_t)c * step * (ptrdiff_t)size;
            unsigned char *other = array + c * size;
            copy_element(to_view ? element : other, to_view ? other : element, size);
        }
    }
}

void test_view_read(const npuq_tensor *view, void *array)
{
    copy_elements(view, array, false);
}

void test_view_write(const npuq_tensor *view, const void *array)
{
    copy_elements(view, (unsigned char *)array, true);
}

/* ---- random calls ----------------------------------------------------------------------------------------------- */

#define ONE_OF(d, LIST) ((LIST)[(d)->choose(COUNT(LIST))])

enum { LARGE = 30000 };

static const npuq_dtype quotients[] = {TYPES_QUOTIENTS(DTYPE)};
static const npuq_dtype products[] = {TYPES_PRODUCTS(DTYPE)};
static const npuq_dtype narrow[] = {TYPES_NARROW(DTYPE)};
static const npuq_dtype symmetric[] = {TYPES_SYMMETRIC(DTYPE)};
static const npuq_dtype addends[] = {TYPES_ADDENDS(DTYPE)};

static bool one_in(const test_drawing *d, size_t n)
{
    return d->choose(n) == n - 1;
}

/* One of the types of its row. */
static npuq_dtype type_of(const test_drawing *d, enum slot slot)
{
    const test_argument *a = &test_arguments[d->call.op][slot];

    if (a->count == 1) {
        return a->dtypes[0];
    }
    return d->half_floats && a->dtypes[0] == NPUQ_FLOAT32 ? NPUQ_FLOAT16 : a->dtypes[d->choose(a->count)];
}

/* Few elements, mostly; sometimes none. dtype: that of x or y which has words, if one has. */
static void draw_shape(test_drawing *d, npuq_dtype dtype)
{
    const int64_t multiple = npuq_values_in_word(dtype);
    const test_argument *x = &test_arguments[d->call.op][test_has(d->call.op, X) ? X : MIN];
    const int most_ndim = x->most_ndim;
    const int least_ndim = x->least_ndim + (x->least_ndim == 0 && multiple > 1);

    if (d->has_shape && least_ndim <= d->ndim && d->ndim <= most_ndim) {
        if (d->ndim > 0) {
            d->shape[d->ndim - 1] = (d->shape[d->ndim - 1] + multiple - 1) / multiple * multiple;
        }
        return;
    }
    const int many = least_ndim + 2 < most_ndim && !one_in(d, 3) ? least_ndim + 2 : most_ndim; /* few, mostly */
    d->ndim = least_ndim + (int)d->choose((size_t)(many - least_ndim + 1));
    if (d->draw_shape) {
        d->draw_shape(d, multiple);
        return;
    }
    const size_t most = d->ndim <= 2 ? 24 : d->ndim == 3 ? 8 : d->ndim <= 5 ? 4 : 2;
    for (int i = 0; i < d->ndim; i++) {
        d->shape[i] = one_in(d, 60) ? 0 : 1 + (int64_t)d->choose(most);
    }
    if (d->ndim == 0) {
        return;
    }
    if (d->large || d->empty) {
        int64_t *extent = &d->shape[one_in(d, 2) ? 0 : one_in(d, 2) ? d->ndim - 1 : (int)d->choose((size_t)d->ndim)];
        const size_t elements = one_in(d, 8) ? 5 * LARGE : LARGE; /* more than the units of one run that are joined */

        *extent = 1;
        *extent = d->empty ? 0 : 1 + (int64_t)d->choose(1 + elements / (test_count(d->ndim, d->shape) + 1));
        if (one_in(d, 4) && *extent > 2048) { /* a last unit of one column */
            *extent = *extent / 2048 * 2048 + 1;
        }
    }
    d->shape[d->ndim - 1] = (d->shape[d->ndim - 1] + multiple - 1) / multiple * multiple;
}

/* Adds an argument in the shape of its row. single: its last dimension is 1, that of rows one more. */
static void add_or_single(test_drawing *d, enum slot slot, npuq_dtype dtype, bool single)
{
    const npuq_shape rule = test_arguments[d->call.op][slot].shape;
    const bool per_tensor = d->call.quant_mode == NPUQ_PER_TENSOR;
    const int axis = d->call.axis < 0 ? d->call.axis + d->ndim : d->call.axis;
    const npuq_shape_facts call = {d->ndim, d->shape, per_tensor, axis, d->call.block, d->groups, d->call.row_block};
    int64_t shape[NPUQ_MAX_NDIM];
    int ndim = npuq_make_shape(rule, &call, shape);

    if (single) {
        ndim += rule == NPUQ_SHAPE_OF_ROWS && !per_tensor;
        shape[ndim - 1] = 1;
    }
    d->add(d, slot, dtype, ndim, shape);
}

static void add(test_drawing *d, enum slot slot, npuq_dtype dtype)
{
    add_or_single(d, slot, dtype, false);
}

static void add_any(test_drawing *d, enum slot slot)
{
    add(d, slot, type_of(d, slot));
}

static int compare_ends(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Ends of groups of rows; some groups may be empty. */
static void add_groups(test_drawing *d, int64_t rows)
{
    const npuq_dtype dtype = type_of(d, GROUP_INDEX);

    for (int64_t e = 0; e < d->groups; e++) {
        d->ends[e] = e == d->groups - 1 ? rows : (int64_t)d->choose((size_t)rows + 1);
    }
    qsort(d->ends, (size_t)d->groups, sizeof *d->ends, compare_ends);
    add(d, GROUP_INDEX, dtype);
}

static void draw_quantize(test_drawing *d)
{
    test_call *c = &d->call;

    c->div_mode = one_in(d, 2);
    const npuq_dtype y = c->div_mode ? ONE_OF(d, quotients) : ONE_OF(d, products);
    draw_shape(d, y);
    const int lowest = c->div_mode || d->ndim == 1 ? -d->ndim : -2;
    c->axis = lowest + (int)d->choose((size_t)(d->ndim - lowest + (c->div_mode ? 0 : 2)));
    const int along = c->div_mode ? (c->axis + d->ndim) % d->ndim : c->axis == -2 ? d->ndim - 2 : d->ndim - 1;
    const bool broadcast = !c->div_mode && one_in(d, 2);
    const bool single = one_in(d, 4);
    int64_t shape[NPUQ_MAX_NDIM] = {1, 1, 1, 1, 1, 1, 1, 1};
    shape[broadcast ? along : 0] = single ? 1 : d->shape[along];
    const npuq_dtype scales = type_of(d, SCALES);
    add_any(d, X);
    d->add(d, SCALES, scales, broadcast ? d->ndim : 1, shape);
    if (!one_in(d, 3)) {
        d->add(d, ZERO_POINTS, c->div_mode ? ONE_OF(d, addends) : scales, broadcast ? d->ndim : 1, shape);
    }
    add(d, Y, y);
}

static void draw_group_quant(test_drawing *d)
{
    const npuq_dtype scale = type_of(d, SCALE);
    d->groups = 1 + (int64_t)d->choose(TEST_GROUPS);
    const npuq_dtype y = type_of(d, Y);
    const int64_t one = 1;

    draw_shape(d, y);
    add_any(d, X);
    add(d, SCALE, scale);
    add_groups(d, d->shape[0]);
    if (!one_in(d, 3)) {
        d->add(d, OFFSET, scale, one_in(d, 2) ? 0 : 1, &one);
    }
    add(d, Y, y);
}

static void draw_trans_quant_param(test_drawing *d)
{
    const bool has_offset = !one_in(d, 3);
    const bool mixed = has_offset && one_in(d, 2); /* one of both [n], the other (1, n), and y either */
    const int ndim = one_in(d, 2) ? 2 : 1;
    const int offset_ndim = mixed ? 3 - ndim : ndim;
    const int y_ndim = mixed && one_in(d, 2) ? offset_ndim : ndim;
    /* The same number of both, one scale, or one offset. */
    const size_t single = has_offset && (mixed || ndim == 1) ? d->choose(3) : 0;
    const int64_t n = 1 + (int64_t)d->choose(one_in(d, 4) ? 2000 : 40);
    const int64_t many[] = {has_offset ? 1 : 1 + (int64_t)d->choose(5), n};
    const int64_t one[] = {1, 1};

    d->call.round_mode = one_in(d, 2) ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE;
    d->add(d, SCALE, NPUQ_FLOAT32, ndim, (single == 1 ? one : many) + 2 - ndim);
    if (has_offset) {
        d->add(d, OFFSET, NPUQ_FLOAT32, offset_ndim, (single == 2 ? one : many) + 2 - offset_ndim);
    }
    d->add(d, Y, type_of(d, Y), y_ndim, many + 2 - y_ndim);
}

static void draw_dynamic(test_drawing *d)
{
    static const float most[] = {0.0f, 15.0f, 15.0f, 56.0f, 224.0f, 32768.0f, 1e-40f, 3e38f};
    const enum test_operator op = d->call.op;
    const bool ranges = test_has(op, MIN);
    const bool grouped = one_in(d, 3);
    const bool as_column = one_in(d, 3);
    const int64_t groups = 1 + (int64_t)d->choose(TEST_GROUPS);
    const npuq_dtype y = test_has(op, Y) ? type_of(d, Y) : ONE_OF(d, narrow);

    d->call.quant_mode = !grouped && one_in(d, 3) ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN;
    d->call.scale_form =
        test_has_option(op, OPTION_SCALE_FORM) && one_in(d, 2) ? NPUQ_SCALE_INVERSE : NPUQ_SCALE_PRODUCT;
    d->call.dst_type_max = test_has_option(op, OPTION_DST_TYPE_MAX) && y == NPUQ_HIFLOAT8 ? ONE_OF(d, most) : 0;
    draw_shape(d, y);
    d->groups = grouped ? groups : 0;
    add_any(d, X);
    if (grouped || one_in(d, 2)) {
        add_any(d, SMOOTH_SCALES);
    }
    if (grouped) {
        add_groups(d, (int64_t)test_count(d->ndim - 1, d->shape));
    }
    if (test_has(op, Y)) {
        add(d, Y, y);
    }
    add_or_single(d, ranges ? MIN : SCALE, NPUQ_FLOAT32, as_column);
    if (test_has(op, ranges ? MAX : OFFSET)) {
        add_or_single(d, ranges ? MAX : OFFSET, NPUQ_FLOAT32, as_column);
    }
}

static void draw_block(test_drawing *d, npuq_dtype y)
{
    static const float min_scales[] = {0.0f, 0.0f, 0x1p-10f, 1.0f, 50.0f, 0x1p-140f, 0x1.8p126f};
    static const int64_t blocks[] = {1, 5, 8, 16, 32, 64, 128, 128, 256};
    static const float dmax[] = {0.0f, 15.0f, 56.0f, 224.0f, 32768.0f};
    const int64_t columns = d->shape[d->ndim - 1];
    const int64_t any = 1 + (int64_t)d->choose((size_t)columns + 9);
    const int64_t multiple = npuq_values_in_word(y);
    const int64_t drawn = one_in(d, 2) ? ONE_OF(d, blocks) : any;

    d->call.block = drawn < columns ? (drawn + multiple - 1) / multiple * multiple : drawn;
    d->call.min_scale = ONE_OF(d, min_scales);
    if (test_has_option(d->call.op, OPTION_ROW_BLOCK)) {
        const int64_t rows = d->shape[d->ndim - 2];

        d->call.row_block = one_in(d, 4) ? 1 : one_in(d, 3) ? 128 : 1 + (int64_t)d->choose((size_t)rows + 3);
        d->call.dst_type_max = y == NPUQ_HIFLOAT8 ? ONE_OF(d, dmax) : 0;
    }
}

/* Any operator of x and parameters whose rows say all, without groups: the arguments in their order. */
/* Draws what an operator in groups along an axis takes. Mostly the axis is short, and has several groups. */
static void draw_mx(test_drawing *d)
{
    static const int32_t blocks[] = {32, 32, 32, 32, 64, 96, 1024};
    static const float dmax[] = {0.0f, 6.0f, 7.0f, 7.25f, 8.0f, 9.0f, 12.0f};
    static const float bounds[] = {0.0f, 0.0f, 1e-4f, 1.0f, 0x1p-130f, 3e38f};
    test_call *c = &d->call;
    const bool back = !test_is_output(c->op, MXSCALE);
    const npuq_dtype x = type_of(d, X);
    const npuq_dtype y = type_of(d, Y);
    const npuq_dtype small = back ? x : y;
    const bool has_8_bits = npuq_values_in_word(small) == 1;

    draw_shape(d, small);
    c->axis = one_in(d, 3) ? -1 : (int32_t)d->choose((size_t)(2 * d->ndim)) - d->ndim;
    c->block = ONE_OF(d, blocks);
    if (!d->has_shape && !d->draw_shape && !d->large && !d->empty && !one_in(d, 4)) {
        int64_t *extent = &d->shape[c->axis < 0 ? c->axis + d->ndim : c->axis];

        *extent = *extent * 16 + (int64_t)d->choose(16) * npuq_values_in_word(small);
    }
    if (!back) {
        c->scale_algorithm = one_in(d, 2) ? 0 : has_8_bits ? 1 : y == NPUQ_FLOAT4_E2M1 ? 2 : 0;
        c->rounding = has_8_bits ? 0 : (int32_t)d->choose(3);
        c->small_groups = (int32_t)d->choose(3);
        c->dst_type_max = ONE_OF(d, dmax);
        c->max_low_bound = c->scale_algorithm == 1 ? ONE_OF(d, bounds) : 0.0f;
        c->bad_groups = has_8_bits && one_in(d, 2);
    }
    add(d, X, x);
    if (back) {
        add_any(d, MXSCALE);
        add(d, Y, y);
    } else {
        add(d, Y, y);
        add_any(d, MXSCALE);
    }
}

static void draw_by_rows(test_drawing *d)
{
#define NEXT(name, NAME, ...)       NAME,
#define ORDER(name, NAME, EXECUTOR) [TEST_##NAME] = {ARGUMENTS_##name(NEXT, NEXT, NEXT, NEXT, NONE) SLOTS},
    static const enum slot order[TEST_OPERATORS][SLOTS + 1] = {EACH_FUNCTION(ORDER)};
    const npuq_dtype y = type_of(d, Y);

    draw_shape(d, y);
    if (test_has_option(d->call.op, OPTION_BLOCK)) {
        draw_block(d, y);
    }
    for (const enum slot *slot = order[d->call.op]; *slot != SLOTS; slot++) {
        const test_argument *a = &test_arguments[d->call.op][*slot];
        const bool of_rows = a->shape == NPUQ_SHAPE_OF_ROWS;
        const bool optional = a->presence == TEST_OPTIONAL;

        if (optional && one_in(d, of_rows ? 3 : 4)) {
            continue;
        }
        const npuq_dtype dtype = *slot == Y ? y : type_of(d, *slot);
        const bool may_be_single = of_rows || (a->shape == NPUQ_SHAPE_OF_COLUMNS && !optional);
        add_or_single(d, *slot, dtype, may_be_single && one_in(d, of_rows ? 3 : 4));
    }
}

static void draw_params(test_drawing *d)
{
    d->call.y_dtype = test_has(d->call.op, OFFSET) ? ONE_OF(d, narrow) : ONE_OF(d, symmetric);
    d->call.scale_form = one_in(d, 2) ? NPUQ_SCALE_INVERSE : NPUQ_SCALE_PRODUCT;
    draw_shape(d, NPUQ_FLOAT32);
    add_any(d, MIN);
    add_any(d, MAX);
    add_any(d, SCALE);
    if (test_has(d->call.op, OFFSET)) {
        add_any(d, OFFSET);
    }
}

static void draw_anti_quant(test_drawing *d)
{
    const npuq_dtype x = type_of(d, X);
    const npuq_dtype scale = type_of(d, SCALE);
    const npuq_dtype y = type_of(d, Y);

    draw_shape(d, x);
    int64_t groups = 1 + (int64_t)d->choose(TEST_GROUPS);
    const bool grouped = d->ndim == 2 && one_in(d, 2);
    while (grouped && d->shape[0] % groups != 0) {
        groups--;
    }
    d->groups = grouped ? groups : 0;
    const bool single = d->ndim > 0 && !grouped && one_in(d, 4);
    add(d, X, x);
    add_or_single(d, SCALE, scale, single);
    if (!one_in(d, 3)) {
        add_or_single(d, OFFSET, scale, single);
    }
    add(d, Y, y);
}

static void draw_requant(test_drawing *d)
{
    const npuq_dtype y = type_of(d, Y);

    d->call.y_dtype = y; /* decides which words are allowed */
    draw_shape(d, NPUQ_INT32);
    add_any(d, X);
    const int64_t row[] = {1, d->shape[d->ndim - 1]};
    if (one_in(d, 3)) {
        d->add(d, WORDS, type_of(d, WORDS), 2, row);
    } else {
        const npuq_dtype dtype = type_of(d, WORDS);
        add_or_single(d, WORDS, dtype, one_in(d, 4));
    }
    if (one_in(d, 2)) {
        add_any(d, BIAS);
    }
    add(d, Y, y);
}

void test_draw_call(test_drawing *d)
{
    static void (*const special[TEST_OPERATORS])(test_drawing *) = {
        [TEST_QUANTIZE] = draw_quantize,     [TEST_GROUP_QUANT] = draw_group_quant,
        [TEST_REQUANT] = draw_requant,       [TEST_TRANS_QUANT_PARAM] = draw_trans_quant_param,
        [TEST_ANTI_QUANT] = draw_anti_quant, [TEST_DYNAMIC_MX_QUANT] = draw_mx,
        [TEST_ANTI_MX_QUANT] = draw_mx,
    };
    const enum test_operator op = d->call.op;

    (special[op]                  ? special[op]
     : test_is_dynamic(op)        ? draw_dynamic
     : test_takes_ranges_only(op) ? draw_params
                                  : draw_by_rows)(d);
}
