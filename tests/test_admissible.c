/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps of a device whose divisions are sometimes one unit off: which elements are admissible, which are wrong, and
 * which mistakes a diagnosis still names. The test computes the results of each quotient with the reference's
 * functions. */
#include "random_call.h"
#include "support.h"

#include <diagnose.h>
#include <hypotheses.h>
#include <ref/npuq_ref_element.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const npuq_dtype floats[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
static const npuq_dtype symmetric[] = {NPUQ_INT8, NPUQ_QUINT4X2, NPUQ_UINT8};

enum { ROWS = 48, COLS = 64, COUNT = ROWS * COLS };

static struct array make_array(npuq_dtype dtype, size_t count)
{
    return (struct array){memset(test_allocate(count * 8), 0, count * 8), dtype, count};
}

static void put(const struct array *array, size_t i, float value)
{
    npuq_ref_store(array->data, (npuq_ref_dtype)array->dtype, i, value);
    npuq_ref_store_float(array->data, (npuq_ref_dtype)array->dtype, i, value);
}

static float get(const struct array *array, size_t i)
{
    return npuq_ref_load(array->data, (npuq_ref_dtype)array->dtype, i);
}

/* What a diagnosis says, without the arrays that it points to. */
static struct diagnosis diagnosis_of(const struct random_call *s)
{
    struct diagnosis diagnosis;

    assert_true(diagnose(&s->call, s->results, s->dump, test_one_in(2) ? &test_shuffled_executor : NULL, &diagnosis));
    const struct diagnosis said = diagnosis;
    diagnosis_release(&diagnosis);
    return said;
}

/* Any signed number of halves that fits y; of a small float the middle between two neighbours. */
static float near_tie(npuq_dtype y)
{
    if (!dtype_is_integer(y)) {
        const int last = dtype_of(y)->fraction; /* of these exponents HIFLOAT8 has all bits */
        const float odd = (float)(2 * (int)test_between(1 << last, (2 << last) - 1) + 1);
        return ldexpf(test_one_in(2) ? odd : -odd, (int)test_between(-3, 3) - last - 1);
    }
    const int most = 2 * (int)dtype_of(y)->dmax - 1;

    return (float)test_between(y == NPUQ_UINT8 ? 0 : -most, most) * 0.5f;
}

/* ---- what the page of the reference has for users ---------------------------------------------------------------- */

/* Whether the device may give y for x / s + z, with z 0 if there is no zero point. low and high are the ends of y's
 * type: -128 and 127 for int8. */
static bool may_be_element(float x, float s, float z, int32_t low, int32_t high, int32_t y)
{
    const float quotients[] = {npuq_ref_div(x, s), npuq_ref_div_below(x, s), npuq_ref_div_above(x, s)};
    bool may_be = false;

    for (int i = 0; i < 3; i++) {
        may_be |= npuq_ref_saturate(npuq_ref_add(quotients[i], z), low, high) == y;
    }
    return may_be;
}

/* Whether the device may give y and scale for a row v (x, or x times its smooth scales): one r gives all of them. */
static bool may_be_row(const float *v, size_t n, bool inverse_form, const int8_t *y, float scale)
{
    float m = 0.0f;

    for (size_t k = 0; k < n; k++) {
        m = npuq_ref_largest_with(m, v[k]);
    }
    const float factors[] = {npuq_ref_div(127.0f, m), npuq_ref_div_below(127.0f, m), npuq_ref_div_above(127.0f, m)};
    bool may_be = false;
    for (int i = 0; i < 3; i++) {
        const float r = factors[i];
        const float s = inverse_form ? npuq_ref_div(1.0f, r) : npuq_ref_mul(m, npuq_ref_div(1.0f, 127.0f));
        bool all = scale == s || (npuq_ref_is_nan(scale) && npuq_ref_is_nan(s));

        for (size_t k = 0; k < n; k++) {
            all &= npuq_ref_saturate(npuq_ref_mul(v[k], r), -128, 127) == y[k];
        }
        may_be |= all;
    }
    return may_be;
}

/* ---- quantize ---------------------------------------------------------------------------------------------------- */

struct quantize_types {
    npuq_dtype x;
    npuq_dtype scales;
    npuq_dtype zero_points; /* INT64: none */
    npuq_dtype y;
    bool one_scale;
    bool strided;
};

/* x lies near ties of its quotients; an int32 y is large. */
static struct random_call make_quantize(const struct quantize_types *t)
{
    const size_t channels = t->one_scale ? 1 : COLS;
    const struct array x = make_array(t->x, 2 * COUNT);
    const struct array scales = make_array(t->scales, channels);
    const struct array zeros = make_array(t->zero_points, channels);
    const bool has_zeros = t->zero_points != NPUQ_INT64;
    npuq_tensor x_view = npuq_matrix(x.data, t->x, ROWS, COLS, t->strided ? 2 * COLS : 0);
    const npuq_tensor s_view = npuq_vector(scales.data, t->scales, (int64_t)channels);
    const npuq_tensor z_view = npuq_vector(zeros.data, t->zero_points, (int64_t)channels);
    const npuq_tensor *const operands[OPERANDS] = {&x_view, &s_view, has_zeros ? &z_view : NULL};
    const struct call_options options = {.axis = 1, .divides = true, .y_dtype = t->y};

    for (size_t i = 0; i < channels; i++) {
        put(&scales, i, (float)test_between(0x400000, 0x7FFFFF) / (float)(1 << 27));
        put(&zeros, i, (float)test_between(0, 9));
    }
    for (size_t i = 0; i < 2 * COUNT; i++) {
        const float tie = t->y == NPUQ_INT32 ? (float)test_between(-0x7FFFFF, 0x7FFFFF) * 8 : near_tie(t->y);
        put(&x, i, tie * get(&scales, t->one_scale ? 0 : i % COLS));
    }
    const struct random_call s = random_call_of(QUANTIZE, operands, &options);
    free(x.data);
    free(scales.data);
    free(zeros.data);
    return s;
}

/* The IEEE quotient moved by `units` units in the last place. */
static float divide(float a, float b, int units)
{
    return units == 0 ? npuq_ref_div(a, b) : units < 0 ? npuq_ref_div_below(a, b) : npuq_ref_div_above(a, b);
}

static size_t channel_of(const struct random_call *s, size_t i)
{
    return s->call.operands[OPERAND_SCALE].count == 1 ? 0 : i % COLS;
}

static float value_of(const struct random_call *s, size_t i)
{
    const struct array *smooth = &s->call.operands[OPERAND_SMOOTH];
    const size_t group = s->call.row_group ? s->call.row_group[i / COLS] : 0;
    const float x = get(&s->call.operands[OPERAND_X], i);

    return smooth->data ? npuq_ref_mul(x, get(smooth, group * COLS + i % COLS)) : x;
}

/* The scale of the element: of rows, of the tensor, or of blocks in the one matrix that all calls here have. */
static size_t token_of(const struct random_call *s, size_t i)
{
    const struct call_options *options = &s->call.options;
    const size_t block = options->block > 0 ? (size_t)options->block : COLS;
    const size_t rows = options->row_block > 0 ? (size_t)options->row_block : 1;

    return options->per_tensor ? 0 : i / COLS / rows * ((COLS + block - 1) / block) + i % COLS / block;
}

/* The scale that is given, or the one that the dump has. */
static float divisor_of(const struct random_call *s, size_t i)
{
    return s->call.tokens == 0 ? get(&s->call.operands[OPERAND_SCALE], channel_of(s, i))
                               : get(&s->dump[RESULT_SCALE], token_of(s, i));
}

static bool is_moved_scale(const struct random_call *s, size_t token)
{
    return get(&s->dump[RESULT_SCALE], token) != get(&s->results[RESULT_SCALE], token);
}

static float quotient_of(const struct random_call *s, size_t i, int units)
{
    const float quotient = npuq_ref_quotient(value_of(s, i), divisor_of(s, i), (npuq_ref_dtype)s->call.options.y_dtype);

    return units == 0 ? quotient : npuq_ref_beside(quotient, units > 0);
}

/* An element of quantize, or of a dynamic operator to 8-bit floats, with a moved quotient. */
static uint64_t element_with(const struct random_call *s, size_t i, int units)
{
    const struct array *zeros = &s->call.operands[OPERAND_OFFSET];
    const float q = quotient_of(s, i, units);
    const float t = zeros->data ? npuq_ref_add(q, get(zeros, channel_of(s, i))) : q;
    uint64_t storage = 0;
    struct array one = {&storage, s->results[RESULT_Y].dtype, 1};

    npuq_ref_store(one.data, (npuq_ref_dtype)one.dtype, 0, t);
    return array_bits(&one, 0);
}

static bool is_exact(const struct random_call *s, size_t i)
{
    return (double)quotient_of(s, i, 0) * (double)divisor_of(s, i) == (double)value_of(s, i);
}

static int random_move(void)
{
    return test_below(100) < 6 ? test_one_in(2) ? -1 : 1 : 0;
}

static float moved(float quotient, int units)
{
    return units == 0 ? quotient : npuq_ref_beside(quotient, units > 0);
}

/* Moves both quotients that a scale of dynamic_block_quant_float8 is the least of. */
static void move_scales(struct random_call *s, struct admission *expected)
{
    const struct call_options *options = &s->call.options;
    const npuq_ref_dtype y = (npuq_ref_dtype)options->y_dtype;
    const float dmax = npuq_ref_float8_dmax(y, options->dst_type_max);
    float largest[COUNT] = {0};

    for (size_t i = 0; i < COUNT; i++) {
        largest[token_of(s, i)] = fmaxf(largest[token_of(s, i)], fabsf(value_of(s, i)));
    }
    for (size_t token = 0; token < s->call.tokens; token++) {
        const float q = npuq_ref_quotient(largest[token], dmax, y);
        const float r = options->min_scale > 0 ? npuq_ref_quotient(1, options->min_scale, y) : INFINITY;
        const float ours = fminf(q, r);
        const float now = fminf(moved(q, random_move()), isinf(r) ? r : moved(r, random_move()));
        const bool is_exact =
            q > r ? (double)r * (double)options->min_scale == 1 : (double)q * (double)dmax == (double)largest[token];
        struct moves *moves = is_exact ? &expected->exact : &expected->moves;

        assert_true(get(&s->results[RESULT_SCALE], token) == ours);
        moves->possible++;
        moves->made += now != ours;
        expected->differing += now != ours;
        put(&s->dump[RESULT_SCALE], token, now);
    }
    expected->units += s->call.tokens;
}

/* Moves some 6 % of all quotients, as the device does. Returns the expected admission. */
static struct admission move_elements(struct random_call *s)
{
    struct admission expected = {.divides = true, .units = COUNT};

    if (s->call.op == DYNAMIC_BLOCK_QUANT_FLOAT8) {
        move_scales(s, &expected);
    }
    for (size_t i = 0; i < COUNT; i++) {
        const uint64_t ours = array_bits(&s->results[RESULT_Y], i);
        const uint64_t unmoved = element_with(s, i, 0);
        const uint64_t now = element_with(s, i, random_move());
        struct moves *moves = is_exact(s, i) ? &expected.exact : &expected.moves;

        assert_true(unmoved == ours || is_moved_scale(s, token_of(s, i)));
        moves->possible += element_with(s, i, -1) != unmoved || element_with(s, i, 1) != unmoved;
        moves->made += now != unmoved;
        expected.differing += now != ours;
        array_set_bits(&s->dump[RESULT_Y], i, now);
    }
    return expected;
}

static void check_admission(const struct admission *found, const struct admission *expected)
{
    assert_int_equal(found->divides, expected->divides);
    assert_int_equal(found->units, expected->units);
    assert_int_equal(found->differing, expected->differing);
    assert_int_equal(found->wrong, expected->wrong);
    if (expected->wrong == 0) {
        assert_int_equal(found->moves.possible, expected->moves.possible);
        assert_int_equal(found->moves.made, expected->moves.made);
        assert_int_equal(found->exact.possible, expected->exact.possible);
        assert_int_equal(found->exact.made, expected->exact.made);
    }
}

static struct quantize_types random_types(void)
{
    static const npuq_dtype zeros[] = {NPUQ_INT64, NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16,
                                       NPUQ_INT8,  NPUQ_UINT8,   NPUQ_INT32};
    static const npuq_dtype outputs[] = {NPUQ_INT8,          NPUQ_UINT8,       NPUQ_INT32,
                                         NPUQ_FLOAT8_E4M3FN, NPUQ_FLOAT8_E5M2, NPUQ_HIFLOAT8};

    return (struct quantize_types){floats[test_below(3)],  floats[test_below(3)], zeros[test_below(7)],
                                   outputs[test_below(6)], test_one_in(3),        test_one_in(3)};
}

/* ---- dynamic_quant and dynamic_block_quant ---------------------------------------------------------------------- */

struct dynamic_types {
    npuq_dtype x;
    npuq_dtype y;
    bool inverse;
    bool per_tensor;
    int smooth;    /* 0: none, 1: one row, 2: groups of rows */
    int64_t block; /* of dynamic_block_quant; 0: the operator is dynamic_quant */
    int64_t row_block;
    bool limited; /* some of the blocks have min_scale */
};

/* v lies near ties of its products with 127 / m. */
static struct random_call make_dynamic(const struct dynamic_types *t)
{
    static const int64_t ends[] = {7, 7, ROWS};
    const size_t length = t->per_tensor ? COUNT : t->block > 0 ? (size_t)t->block : COLS;
    const size_t factors = t->smooth == 2 ? 3 * COLS : COLS;
    const struct array x = make_array(t->x, COUNT);
    const struct array smooth = make_array(NPUQ_FLOAT32, factors);
    const npuq_tensor x_view = npuq_matrix(x.data, t->x, ROWS, COLS, 0);
    const npuq_tensor smooth_view = t->smooth == 2 ? npuq_matrix(smooth.data, NPUQ_FLOAT32, 3, COLS, 0)
                                                   : npuq_vector(smooth.data, NPUQ_FLOAT32, COLS);
    const npuq_tensor groups_view = npuq_vector(ends, NPUQ_INT64, 3);
    const npuq_tensor *const operands[OPERANDS] = {[OPERAND_X] = &x_view,
                                                   [OPERAND_SMOOTH] = t->smooth ? &smooth_view : NULL,
                                                   [OPERAND_GROUPS] = t->smooth == 2 ? &groups_view : NULL};
    const bool to_float8 = !dtype_is_integer(t->y);
    const float dst_type_max = t->y == NPUQ_HIFLOAT8 && test_one_in(2) ? 15.0f : 0.0f;
    const float dmax = dst_type_max > 0 ? dst_type_max : (float)dtype_of(t->y)->dmax;
    const unsigned op = to_float8      ? (t->block > 0 ? DYNAMIC_BLOCK_QUANT_FLOAT8 : DYNAMIC_QUANT_FLOAT8)
                        : t->block > 0 ? DYNAMIC_BLOCK_QUANT
                                       : DYNAMIC_QUANT;
    const struct call_options options = {.y_dtype = t->y,
                                         .dst_type_max = dst_type_max,
                                         .per_tensor = t->per_tensor,
                                         .inverse_form = t->inverse,
                                         .axis = -1,
                                         .row_block = t->row_block,
                                         .block = t->block,
                                         .min_scale = t->limited ? dmax / 6 : 0};
    float m = 0;

    for (size_t i = 0; i < factors; i++) {
        put(&smooth, i, t->smooth ? (float)test_between(1, 8) : 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if ((t->per_tensor ? i : i % COLS % length) == 0) {
            m = (float)test_between(0x400000, 0x7FFFFF) / (float)(1 << 20);
        }
        put(&x, i, i % COLS % length == 5 ? m : near_tie(call_rounded_dtype(DYNAMIC_QUANT, t->y)) * (m / dmax));
    }
    const struct random_call s = random_call_of(op, operands, &options);
    free(x.data);
    free(smooth.data);
    return s;
}

/* A call in which each element has a division. */
static struct random_call make_divided(void)
{
    static const npuq_dtype float8[] = {NPUQ_FLOAT8_E4M3FN, NPUQ_FLOAT8_E5M2, NPUQ_HIFLOAT8};
    const struct quantize_types types = random_types();
    struct dynamic_types found = {floats[test_below(3)], float8[test_below(3)], .per_tensor = test_one_in(4)};

    if (test_one_in(2)) {
        found = (struct dynamic_types){found.x, found.y, .block = 24, .limited = test_one_in(2)};
        found.row_block = (int64_t)test_between(1, 7);
    } else {
        found.smooth = (int)test_below(found.per_tensor ? 2 : 3);
    }
    return test_one_in(2) ? make_quantize(&types) : make_dynamic(&found);
}

static struct span span_of(const struct random_call *s, size_t token)
{
    static const struct variant definition;

    return steps_token_span(&s->call, &definition, token);
}

/* Writes the results of a row, a block or the tensor with its quotient moved. Returns whether they differ from ours. */
static bool write_row(struct random_call *s, size_t token, int units)
{
    const struct call_options *options = &s->call.options;
    const struct span span = span_of(s, token);
    const float dmax = (float)dtype_of(options->y_dtype)->dmax;
    bool differs = false;
    float m = 0;

    for (size_t i = span.begin; i < span.end; i++) {
        m = fmaxf(m, fabsf(value_of(s, i)));
    }
    float r = divide(dmax, m, units);
    float scale = options->inverse_form ? npuq_ref_div(1, r) : npuq_ref_mul(m, npuq_ref_div(1, dmax));
    if (s->call.op == DYNAMIC_BLOCK_QUANT) {
        r = npuq_ref_mul(divide(1, m, units), dmax);
    }
    if (options->min_scale > 0) {
        r = fmaxf(r, options->min_scale);
        scale = fminf(scale, npuq_ref_div(1, options->min_scale));
    }

    put(&s->dump[RESULT_SCALE], token, scale);
    differs = scale != get(&s->results[RESULT_SCALE], token);
    for (size_t i = span.begin; i < span.end; i++) {
        npuq_ref_store_symmetric(s->dump[RESULT_Y].data, (npuq_ref_dtype)s->dump[RESULT_Y].dtype, i,
                                 npuq_ref_mul(value_of(s, i), r));
    }
    for (size_t i = span.begin; i < span.end; i++) {
        differs = differs || array_bits(&s->dump[RESULT_Y], i) != array_bits(&s->results[RESULT_Y], i);
    }
    return differs;
}

static size_t move_rows(struct random_call *s)
{
    size_t differing = 0;

    for (size_t token = 0; token < s->call.tokens; token++) {
        differing += write_row(s, token, test_below(100) < 6 ? test_one_in(2) ? -1 : 1 : 0);
    }
    return differing;
}

static struct dynamic_types random_dynamic(void)
{
    const npuq_dtype x = floats[test_below(3)];
    const npuq_dtype y = symmetric[test_below(3)];

    return test_one_in(2) ? (struct dynamic_types){x, y, .block = 24, .limited = test_one_in(2)}
                          : (struct dynamic_types){x, y, .inverse = test_one_in(2), .per_tensor = test_one_in(4)};
}

/* A device's dump has no wrong element, and is within the device's division. Rare exceptions: an exact mistake gives
 * all of a few differing elements, or one dump of a thousand differs too much. */
static struct diagnosis check_within(const struct random_call *s, size_t *dumps, size_t *others)
{
    const struct diagnosis d = diagnosis_of(s);

    assert_int_equal(d.admission.wrong, 0);
    if (d.all_differing == 0) {
        assert_int_equal(d.verdict, VERDICT_EQUAL);
    } else {
        *dumps += 1;
        *others += d.verdict != VERDICT_ADMISSIBLE;
        assert_true(d.verdict == VERDICT_ADMISSIBLE || d.verdict == VERDICT_EXPLAINED || d.admission.too_many);
    }
    return d;
}

static void test_devices_are_within(void **unused)
{
    size_t dumps = 0;
    size_t others = 0;

    (void)unused;
    for (int again = 0; again < test_rounds(80); again++) {
        struct random_call s = make_divided();
        const struct admission expected = move_elements(&s);

        const struct diagnosis d = check_within(&s, &dumps, &others);

        if (expected.differing > 0) {
            check_admission(&d.admission, &expected);
        }
        if (s.call.op == DYNAMIC_BLOCK_QUANT_FLOAT8) { /* without the scales, or without y */
            array_release(&s.dump[test_one_in(2) ? RESULT_SCALE : RESULT_Y]);
            assert_int_equal(diagnosis_of(&s).admission.wrong, 0);
        }
        random_call_release(&s);
    }
    for (int again = 0; again < test_rounds(50); again++) {
        struct dynamic_types types = random_dynamic();
        types.smooth = types.block > 0 ? 0 : types.per_tensor ? (int)test_below(2) : (int)test_below(3);
        struct random_call s = make_dynamic(&types);
        const size_t differing = move_rows(&s);
        const struct diagnosis d = check_within(&s, &dumps, &others);

        assert_int_equal(d.admission.differing, differing);
        random_call_release(&s);
    }
    print_message("# %zu dumps, %zu of them not within the device's division\n", dumps, others);
    assert_true(dumps >= (size_t)test_rounds(25) && others * 25 <= dumps);
}

/* An element that no quotient gives is wrong, however near. */
static void test_elements_outside_are_wrong(void **unused)
{
    (void)unused;
    for (int again = 0; again < test_rounds(30); again++) {
        struct random_call s = make_divided();
        struct admission expected = move_elements(&s);

        for (int n = 0; n < 3; n++) {
            size_t i = test_below(COUNT);
            while (s.call.tokens > 0 && is_moved_scale(&s, token_of(&s, i))) { /* where ours may be outside */
                i = test_below(COUNT);
            }
            uint64_t outside = array_bits(&s.results[RESULT_Y], i);
            const uint64_t mask = s.call.options.y_dtype == NPUQ_INT32 ? UINT32_MAX : 0xFF;
            const bool differed = array_bits(&s.dump[RESULT_Y], i) != outside;

            while (outside == element_with(&s, i, 0) || outside == element_with(&s, i, -1) ||
                   outside == element_with(&s, i, 1)) {
                outside = (outside + 1) & mask;
            }
            if (array_bits(&s.dump[RESULT_Y], i) == outside) { /* an earlier element */
                continue;
            }
            if (differed) {
                (is_exact(&s, i) ? &expected.exact : &expected.moves)->made--;
            }
            expected.differing += !differed;
            expected.wrong++;
            array_set_bits(&s.dump[RESULT_Y], i, outside);
        }
        if (s.call.tokens > 0) { /* the scale of a row has no division */
            const bool up = test_one_in(2);
            size_t token = test_below(s.call.tokens);
            while (is_moved_scale(&s, token)) {
                token = test_below(s.call.tokens);
            }
            const float beside = npuq_ref_beside(get(&s.results[RESULT_SCALE], token), up);
            put(&s.dump[RESULT_SCALE], token,
                s.call.op == DYNAMIC_BLOCK_QUANT_FLOAT8 ? npuq_ref_beside(beside, up) : beside);
            expected.differing++;
            expected.wrong++;
        }
        const struct diagnosis d = diagnosis_of(&s);
        check_admission(&d.admission, &expected);
        assert_int_not_equal(d.verdict, VERDICT_ADMISSIBLE);
        random_call_release(&s);
    }
}

/* A row or block with one element of the quotient below and one of the quotient above. */
static void test_rows_of_two_quotients_are_wrong(void **unused)
{
    size_t rows = 0;

    (void)unused;
    for (int again = 0; again < test_rounds(15); again++) {
        struct dynamic_types types = random_dynamic();
        types.per_tensor = false;
        types.inverse = false; /* else the scale shows which quotient */
        struct random_call s = make_dynamic(&types);
        struct random_call other = make_dynamic(&types);
        size_t mixed = 0;

        for (size_t token = 0; token < s.call.tokens; token++) {
            const struct span span = span_of(&s, token);
            bool below = false;
            bool above = false;
            (void)write_row(&s, token, 1);
            for (size_t i = span.begin; i < span.end; i++) {
                array_set_bits(&other.dump[RESULT_Y], i, array_bits(&s.dump[RESULT_Y], i));
            }
            (void)write_row(&s, token, -1);
            for (size_t i = span.begin; i < span.end; i++) {
                const uint64_t ours = array_bits(&s.results[RESULT_Y], i);
                const uint64_t high = array_bits(&other.dump[RESULT_Y], i);
                const uint64_t low = array_bits(&s.dump[RESULT_Y], i);
                /* Each element takes the quotient that moves it; no single quotient gives both. */
                array_set_bits(&s.dump[RESULT_Y], i, low != ours ? low : high);
                below = below || (low != ours && high != low);
                above = above || (high != ours && low == ours);
            }
            mixed += below && above;
        }
        const struct diagnosis d = diagnosis_of(&s);
        assert_int_equal(d.admission.wrong, mixed);
        assert_true(mixed == 0 || d.verdict != VERDICT_ADMISSIBLE);
        rows += mixed;
        random_call_release(&s);
        random_call_release(&other);
    }
    assert_true(rows >= (size_t)test_rounds(5));
}

/* Nearly all differences of such kernels are admissible. The diagnosis still names the mistake. */
static void test_exact_mistakes_are_named(void **unused)
{
    static const char *const names[] = {"half-away", "half-up", "half-added-up", "reciprocal", "one-division"};

    (void)unused;
    for (int again = 0; again < test_rounds(15); again++) {
        const struct quantize_types types = random_types();
        const struct dynamic_types dynamic = random_dynamic();
        struct random_call s = again % 2 ? make_quantize(&types) : make_dynamic(&dynamic);

        for (int h = 0; h < hypothesis_count; h++) {
            struct variant variant = {.choice = {0}};
            bool is_meant = false;
            bool is_named = false;

            for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
                is_meant = is_meant || strcmp(hypotheses[h].name, names[n]) == 0;
            }
            if (!is_meant || !hypothesis_applies(&hypotheses[h], &s.call)) {
                continue;
            }
            assert_true(hypothesis_add(&hypotheses[h], &variant));
            random_call_predict(&s, &variant);
            const struct diagnosis d = diagnosis_of(&s);
            for (int i = 0; i < d.first_place; i++) {
                is_named = is_named || d.findings[i].hypotheses[0] == &hypotheses[h];
            }
            if (d.all_differing == 0) {
                assert_int_equal(d.verdict, VERDICT_EQUAL);
            } else {
                const struct finding *best = &d.findings[0];
                const bool is_a_device = admission_is_within(&d.admission) && best->prior - 20 < d.device;
                assert_true(is_named);
                const bool weighs_too_little = d.admission.too_many && best->prior - 10 < d.device;
                assert_true(d.verdict == (is_a_device                 ? VERDICT_ADMISSIBLE
                                          : weighs_too_little         ? VERDICT_NONE
                                          : finding_score(best) >= 20 ? VERDICT_EXPLAINED
                                                                      : VERDICT_POSSIBLE));
            }
        }
        random_call_release(&s);
    }
}

/* A device with a mistake: the mistake need not explain differences that its division explains. */
static void test_mistakes_of_devices(void **unused)
{
    size_t named = 0;
    size_t dumps = 0;

    (void)unused;
    for (int again = 0; again < test_rounds(10) || (dumps == 0 && again < 100); again++) {
        struct random_call s = make_divided();
        const struct admission moves = move_elements(&s);

        for (size_t row = 0; row < ROWS; row++) {
            for (size_t i = row * COLS + 50; i < (row + 1) * COLS; i++) {
                array_set_bits(&s.dump[RESULT_Y], i, 0x55);
            }
        }
        const struct diagnosis d = diagnosis_of(&s);
        if (moves.differing > 0 && d.all_differing > d.admission.wrong) {
            dumps++;
            named += d.verdict == VERDICT_EXPLAINED && d.findings[0].explained < d.all_differing &&
                     strcmp(d.findings[0].hypotheses[0]->name, "tail-untouched") == 0;
        }
        random_call_release(&s);
    }
    print_message("# %zu of %zu\n", named, dumps);
    assert_true(dumps > 0 && named == dumps);
}

/* If all quotients move the same way, too many elements differ. */
static void test_too_many(void **unused)
{
    (void)unused;
    for (int again = 0; again < test_rounds(5); again++) {
        struct quantize_types types = random_types();
        types.x = NPUQ_FLOAT32;
        types.y = NPUQ_INT32;
        struct random_call s = make_quantize(&types);

        for (size_t i = 0; i < COUNT; i++) {
            array_set_bits(&s.dump[RESULT_Y], i, element_with(&s, i, -1));
        }
        const struct diagnosis d = diagnosis_of(&s);
        assert_int_equal(d.admission.wrong, 0);
        assert_true(d.admission.too_many && d.verdict != VERDICT_ADMISSIBLE);
        random_call_release(&s);
    }
}

/* Without a vector division, nothing is admissible. */
static void test_other_operators(void **unused)
{
    (void)unused;
    for (int o = 0; o < NUMBER_OF_OPERATORS; o++) {
        for (int again = 0; again < test_rounds(10); again++) {
            struct random_call random;

            if (!random_call_make(&random, 1U << o, test_below) || random.call.count == 0) {
                random_call_release(&random);
                continue;
            }
            array_set_bits(&random.dump[RESULT_Y], 0, array_bits(&random.results[RESULT_Y], 0) ^ 1);
            const bool scales_alone = random.call.op & FINDS_SCALES && !random.results[RESULT_OFFSET].data;
            const bool divides =
                random.call.options.divides || (scales_alone && random.call.options.rule != RULE_GROUPED_SWIGLU);
            const struct diagnosis d = diagnosis_of(&random);
            assert_int_equal(d.admission.divides, divides);
            assert_true(divides || d.verdict != VERDICT_ADMISSIBLE);
            random_call_release(&random);
        }
    }
}

static const uint16_t x_of_quantize[] = {0x4100, 0x2210, 0x288C, 0x3C00, 0};
static const float x_of_dynamic[] = {.26586914f, -.75683594f, -.2454834f, 1.2402344f};

static void check_example(struct random_call *s, const int8_t *y, uint32_t scale, bool is_right)
{
    for (size_t i = 0; i < s->results[RESULT_Y].count; i++) {
        array_set_bits(&s->dump[RESULT_Y], i, (uint8_t)y[i]);
    }
    if (s->dump[RESULT_SCALE].data) {
        array_set_bits(&s->dump[RESULT_SCALE], 0, scale);
    }
    const struct diagnosis d = diagnosis_of(s);
    assert_true(d.all_differing > 0);
    assert_int_equal(d.admission.wrong == 0, is_right);
    if (s->call.op == DYNAMIC_QUANT) {
        assert_int_equal(may_be_row(x_of_dynamic, 4, s->call.options.inverse_form, y, npuq_ref_from_bits(scale)),
                         is_right);
        return;
    }
    bool may_be = true;
    for (size_t i = 0; i < s->call.count; i++) {
        may_be &= may_be_element(get(&s->call.operands[OPERAND_X], i), get(&s->call.operands[OPERAND_SCALE], i), 0.0f,
                                 -128, 127, y[i]);
    }
    assert_int_equal(may_be, is_right);
}

static void test_quantize_example(void **unused)
{
    static const int8_t admissible[][5] = {{3, 0, 2, 0, 0}, {2, 1, 2, 0, 0}, {2, 0, 1, 0, 0}, {3, 1, 1, 0, 0}};
    static const int8_t wrong[][5] = {{1, 0, 2, 0, 0}, {2, -1, 2, 0, 0}, {2, 0, 3, 0, 0}, {2, 0, 2, 1, 0}};
    const uint16_t scales[] = {0x3F80, 0x3CC2, 0x3CC2, 0x4040, 0x40A0};
    const npuq_tensor x = npuq_vector(x_of_quantize, NPUQ_FLOAT16, 5);
    const npuq_tensor scale = npuq_vector(scales, NPUQ_BFLOAT16, 5);
    const npuq_tensor *const operands[OPERANDS] = {&x, &scale};
    const struct call_options options = {.axis = 0, .divides = true, .y_dtype = NPUQ_INT8};
    struct random_call s = random_call_of(QUANTIZE, operands, &options);

    (void)unused;
    assert_memory_equal(s.results[RESULT_Y].data, ((const int8_t[]){2, 0, 2, 0, 0}), 5);
    for (size_t i = 0; i < 4; i++) {
        check_example(&s, admissible[i], 0, true);
        check_example(&s, wrong[i], 0, false);
    }
    random_call_release(&s);
}

/* Near a zero point, the sums of all three quotients may be equal; special rows have one factor. */
static void test_page_example(void **unused)
{
    static const int8_t zeros[2] = {0};
    static const float row[] = {26, 44.75f, -10.625f, 22.375f};
    const float scale = npuq_ref_mul(row[1], npuq_ref_div(1.0f, 127.0f));
    const float special[][2] = {{0.0f, 0.0f}, {-INFINITY, 1.0f}, {NAN, 1.0f}};
    const float scales[] = {0.0f, INFINITY, NAN};

    (void)unused;
    for (int y = 0; y < 10; y++) {
        assert_int_equal(may_be_element(2.5f, 1.0f, 3.0f, -128, 127, y), y == 6);
        assert_int_equal(may_be_element(.0355224609f, npuq_ref_bfloat16(0x3CC2), 1.0f, -128, 127, y), y == 2);
    }
    for (int last = 60; last < 70; last++) { /* 64 by the IEEE quotient, 63 by the one below it */
        const int8_t y[] = {74, 127, -30, (int8_t)last};
        assert_int_equal(may_be_row(row, 4, false, y, scale), last == 63 || last == 64);
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            assert_int_equal(may_be_row(special[i], 2, i == 1, zeros, scales[j]), i == j);
        }
    }
}

static void test_dynamic_example(void **unused)
{
    static const int8_t lower[] = {27, -77, -25, 127};
    static const int8_t same[] = {27, -78, -25, 127};

    (void)unused;
    for (int inverse = 0; inverse < 2; inverse++) {
        const struct call_options options = {.y_dtype = NPUQ_INT8, .inverse_form = inverse};
        const npuq_tensor x = npuq_matrix(x_of_dynamic, NPUQ_FLOAT32, 1, 4, 0);
        const npuq_tensor *const operands[OPERANDS] = {&x};
        struct random_call s = random_call_of(DYNAMIC_QUANT, operands, &options);

        assert_memory_equal(s.results[RESULT_Y].data, same, 4);
        check_example(&s, lower, 0x3C200000, !inverse);
        if (inverse) {
            check_example(&s, lower, 0x3C200001, true);
            check_example(&s, same, 0x3C1FFFFF, true);
            check_example(&s, same, 0x3C200001, false);
        }
        random_call_release(&s);
    }
}

/* Two blocks, the second shorter, each with its own quotient. */
static void test_block_example(void **unused)
{
    static const struct {
        int8_t y[6];
        size_t differing;
        size_t wrong;
    } dumps[] = {
        {{127, 71, 91, 0, 127, 64}, 1, 0}, /* by the quotient below */
        {{127, 72, 92, 0, 127, 64}, 1, 0}, /* by the one above */
        {{127, 71, 92, 0, 127, 64}, 1, 1}, /* by both */
        {{127, 71, 91, 0, 127, 65}, 2, 1}, {{126, 72, 91, 0, 127, 64}, 1, 1},
    };
    static const float x[] = {5.45703125f, 3.072265625f, 3.931640625f, 0, 1, .5f};
    const npuq_tensor x_view = npuq_matrix(x, NPUQ_FLOAT32, 1, 6, 0);
    const npuq_tensor *const operands[OPERANDS] = {&x_view};
    const struct call_options options = {.y_dtype = NPUQ_INT8, .block = 4};
    struct random_call s = random_call_of(DYNAMIC_BLOCK_QUANT, operands, &options);

    (void)unused;
    assert_memory_equal(s.results[RESULT_Y].data, ((const int8_t[]){127, 72, 91, 0, 127, 64}), 6);
    for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++) {
        memcpy(s.dump[RESULT_Y].data, dumps[i].y, 6);
        const struct diagnosis d = diagnosis_of(&s);
        assert_int_equal(d.admission.units, 2);
        assert_int_equal(d.admission.differing, dumps[i].differing);
        assert_int_equal(d.admission.wrong, dumps[i].wrong);
    }
    put(&s.dump[RESULT_SCALE], 0, nextafterf(get(&s.results[RESULT_SCALE], 0), 1)); /* no quotient gives this scale */
    const struct diagnosis d = diagnosis_of(&s);
    assert_int_equal(d.admission.wrong, 1);
    random_call_release(&s);
}

/* A block to 8-bit floats: the scale has a quotient, too, and each element that of the dump's scale. */
static void test_float8_block_example(void **unused)
{
    static const uint16_t x[] = {0x3FB0, 0x3F5E, 0x3ED6, 0x3F02, 0xBF0D, 0x3E84, 0xBFA5, 0x3F73};
    static const uint8_t y[] = {0x7E, 0x79, 0x71, 0x72, 0xF3, 0x6A, 0xFD, 0x7A};
    static const struct {
        uint32_t scale;
        uint8_t sixth;
        size_t differing;
        size_t wrong;
    } dumps[] = {
        {0x3B492492, 0x6A, 0, 0}, {0x3B492491, 0x6A, 1, 0}, {0x3B492493, 0x6A, 1, 0}, {0x3B492490, 0x6A, 1, 1},
        {0x3B492494, 0x6A, 1, 1}, {0x3B492492, 0x6B, 1, 0}, {0x3B492491, 0x6B, 2, 0}, {0x3B492493, 0x6B, 2, 1},
        {0x3B492492, 0x6C, 1, 1}, {0x3B492491, 0x6C, 2, 1}, {0x3B492494, 0x6C, 2, 2},
    };
    const npuq_tensor x_view = npuq_matrix(x, NPUQ_BFLOAT16, 2, 4, 0);
    const npuq_tensor *const operands[OPERANDS] = {&x_view};
    const struct call_options options = {.y_dtype = NPUQ_FLOAT8_E4M3FN, .row_block = 2, .block = 4};
    struct random_call s = random_call_of(DYNAMIC_BLOCK_QUANT_FLOAT8, operands, &options);

    (void)unused;
    assert_memory_equal(s.results[RESULT_Y].data, y, sizeof y);
    for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++) {
        array_set_bits(&s.dump[RESULT_Y], 5, dumps[i].sixth);
        array_set_bits(&s.dump[RESULT_SCALE], 0, dumps[i].scale);
        const struct diagnosis d = diagnosis_of(&s);
        assert_int_equal(d.all_differing, dumps[i].differing);
        assert_int_equal(d.admission.differing, dumps[i].differing);
        assert_int_equal(d.admission.wrong, dumps[i].wrong);
    }
    random_call_release(&s);
}

/* A quotient of 0, infinity or NaN has no neighbours: values saturated by the number next to 0 are wrong. */
static void test_special_rows(void **unused)
{
    static const float x[4][2] = {{0, 0}, {INFINITY, 1}, {(float)NAN, 1}, {1, 2}};
    const npuq_tensor x_view = npuq_matrix(x, NPUQ_FLOAT32, 4, 2, 0);
    const npuq_tensor *const operands[OPERANDS] = {&x_view};
    const struct call_options options = {.y_dtype = NPUQ_INT8};
    struct random_call s = random_call_of(DYNAMIC_QUANT, operands, &options);

    (void)unused;
    for (size_t row = 0; row < 3; row++) {
        assert_int_equal(array_bits(&s.results[RESULT_Y], 2 * row), 0);
        array_set_bits(&s.dump[RESULT_Y], 2 * row, 127);
    }
    const struct diagnosis d = diagnosis_of(&s);
    assert_int_equal(d.admission.differing, 3);
    assert_int_equal(d.admission.wrong, 3);
    random_call_release(&s);
}

/* To small floats, a subnormal x and a subnormal quotient are zeros, which have no neighbours. Their signs count. */
static void test_zeros_of_small_floats(void **unused)
{
    static const float x[] = {0x1p-127f, -0x1p-127f, 0x1p-126f, -0x1p-126f, 0, -0.0f, 1, -1};
    static const float scales[] = {0x1p-100f, 0x1p-100f, 2, 2, 1, 1, 0x1p-127f, 0x1p-127f};
    static const struct {
        npuq_dtype y;
        uint8_t codes[8];
    } rows[] = {
        {NPUQ_FLOAT8_E4M3FN, {0, 0x80, 0, 0x80, 0, 0x80, 0x7E, 0xFE}},
        {NPUQ_FLOAT8_E5M2, {0, 0x80, 0, 0x80, 0, 0x80, 0x7B, 0xFB}},
        {NPUQ_HIFLOAT8, {0, 0, 0, 0, 0, 0, 0x6E, 0xEE}},
    };
    const npuq_tensor x_view = npuq_vector(x, NPUQ_FLOAT32, 8);
    const npuq_tensor s_view = npuq_vector(scales, NPUQ_FLOAT32, 8);
    const npuq_tensor *const operands[OPERANDS] = {&x_view, &s_view};

    (void)unused;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        const struct call_options options = {.axis = 0, .divides = true, .y_dtype = rows[row].y};
        struct random_call s = random_call_of(QUANTIZE, operands, &options);
        uint8_t *dump = s.dump[RESULT_Y].data;

        assert_memory_equal(s.results[RESULT_Y].data, rows[row].codes, 8);
        for (size_t i = 0; i < 8; i++) {
            memcpy(dump, rows[row].codes, 8);
            dump[i] ^= i < 6 ? 0x80 : 1;
            const struct diagnosis d = diagnosis_of(&s);
            assert_int_equal(d.admission.differing, 1);
            assert_int_equal(d.admission.wrong, 1);
        }
        random_call_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_are_within),
        cmocka_unit_test(test_elements_outside_are_wrong),
        cmocka_unit_test(test_rows_of_two_quotients_are_wrong),
        cmocka_unit_test(test_exact_mistakes_are_named),
        cmocka_unit_test(test_mistakes_of_devices),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_other_operators),
        cmocka_unit_test(test_quantize_example),
        cmocka_unit_test(test_page_example),
        cmocka_unit_test(test_dynamic_example),
        cmocka_unit_test(test_block_example),
        cmocka_unit_test(test_float8_block_example),
        cmocka_unit_test(test_special_rows),
        cmocka_unit_test(test_zeros_of_small_floats),
    };

    test_seed();
    return cmocka_run_group_tests_name("admissible", tests, NULL, NULL);
}
