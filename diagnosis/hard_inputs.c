/* SPDX-License-Identifier: BSD-3-Clause */
#include "hard_inputs.h"

#include "hypotheses.h"
#include "predict.h"
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers --------------------------------------------------------------------------------------------- */

struct maker {
    struct hard_inputs *inputs;
    const struct hard_wish *wish;
    uint64_t state;
    bool *reserved;        /* elements of x that show a mistake: they stay */
    bool *reserved_scales; /* so do their scales */
};

/* Do not call this twice in one expression: C does not define the order. */
static uint64_t draw(struct maker *m)
{
    /* splitmix64 */
    uint64_t z = m->state += 0x9E3779B97F4A7C15U;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

static size_t draw_below(struct maker *m, size_t count)
{
    return (size_t)(draw(m) % count);
}

/* Evenly from 0 to 1. */
static double draw_fraction(struct maker *m)
{
    return (double)(draw(m) >> 11) * 0x1p-53;
}

static double draw_between(struct maker *m, double low, double high)
{
    return low + (high - low) * draw_fraction(m);
}

/* From 2^low to 2^high, each power of two equally often. Without pow(): its last bit differs among machines. */
static double draw_magnitude(struct maker *m, int low, int high)
{
    const int exponent = low + (int)draw_below(m, (size_t)(high - low));

    return ldexp(draw_between(m, 1, 2), exponent);
}

/* About normal, of mean 0 and variance 1. */
static double draw_normal(struct maker *m)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += draw_fraction(m);
    }
    return sum;
}

/* ---- storing ---------------------------------------------------------------------------------------------------- */

static double to_range(double value, double low, double high)
{
    return is_nan(value) ? 0 : fmin(fmax(nearbyint(value), low), high);
}

/* Stores a value in its type, saturated; in QUINT4X2, the int4 at i. Stores one NaN for all: machines differ in
 * theirs. */
static void store(void *data, npuq_dtype dtype, size_t i, double value)
{
    const struct dtype *type = dtype_of(dtype);

    dtype_store(dtype, data, i,
                type->kind == KIND_FLOAT   ? dtype_float_bits(dtype, (float)value)
                : type->kind == KIND_WORDS ? (uint64_t)(int64_t)value
                                           : (uint64_t)(int64_t)to_range(value, type->low, type->high));
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

static const double specials[] = {0,
                                  -0.0,
                                  0.5,
                                  -0.5,
                                  1.5,
                                  2.5,
                                  -2.5,
                                  126.5,
                                  127.5,
                                  -128.5,
                                  128,
                                  -129,
                                  255.5,
                                  1e4,
                                  -1e4,
                                  65504,
                                  3e9,
                                  -3e9,
                                  2147483648.0,
                                  -2147483648.0,
                                  1e30,
                                  -1e30,
                                  3.4028234663852886e38,
                                  INFINITY,
                                  -INFINITY,
                                  (double)NAN,
                                  0x1p-126,
                                  0x1p-127,
                                  -0x1p-149,
                                  0x1p-140,
                                  6e-8};

/* The largest float32 below a half: 0.5 cannot be added to it without rounding. */
#define BELOW_HALF (0.5 - 0x1p-25)

enum { SPECIALS = sizeof specials / sizeof specials[0] };

/* A scale. Powers of two make exact halves. Some scales are very small, very large, infinite or NaN. In requant some
 * are so small that sums of more than 24 bits matter. */
static double draw_scale(struct maker *m, size_t i)
{
    const unsigned op = m->wish->op;
    const bool multiplies_floats =
        op == GROUP_QUANT || op == TRANS_QUANT_PARAM || (op == QUANTIZE && !m->wish->options.divides);
    const double usual = multiplies_floats ? 0x1p6 : op == REQUANT ? ldexp(1, -6 - 7 * (int)(i / 16 % 3)) : 0x1p-6;

    switch (i % 16) {
    case 0: return usual;
    case 3:
    case 7: return usual * 2;
    case 4: return op == REQUANT ? 0x1p-25 : usual * draw_between(m, 0.5, 2); /* makes BELOW_HALF from 2^24 - 1 */
    case 5: return -usual * draw_between(m, 1, 2);
    case 9: return 0x1p-133 * draw_between(m, 1, 32); /* subnormal in float32 */
    case 11: return 0x1p-126 * draw_between(m, 1, 4);
    case 13: return 1e30 * draw_between(m, 1, 9);
    case 15: return i % 32 == 15 ? INFINITY : (double)NAN;
    default: return usual * draw_between(m, 0.5, 2);
    }
}

static npuq_dtype rounded_dtype(const struct hard_wish *wish)
{
    return call_rounded_dtype(wish->op, wish->options.y_dtype);
}

/* The only offset is a little more than a half, with a bit that float16 lacks. So sums can be halves, and a shorter
 * type shows. */
static double draw_only_offset(const struct maker *m)
{
    return m->wish->options.y_dtype == NPUQ_QUINT4X2 ? 2.5 + 0x1p-8 + 0x1p-11 : 20.5 + 0x1p-5 + 0x1p-8;
}

static double draw_offset(struct maker *m, size_t i)
{
    switch (i % 8) {
    case 0: return draw_between(m, -300, 300);
    case 1: return draw_between(m, -1, 1) / 16;
    case 2: return m->wish->dtypes[OPERAND_OFFSET] == NPUQ_INT32 ? draw_between(m, 2e3, 2e4) : draw_between(m, -9, 9);
    case 3: return nearbyint(draw_between(m, -100, 100)) + 0.5;
    case 4:
        return m->wish->op == TRANS_QUANT_PARAM ? (i % 16 == 4 ? BELOW_HALF : -BELOW_HALF) : draw_between(m, -30, 30);
    case 5: return nearbyint(draw_between(m, -20, 20));
    case 6: return m->wish->op == TRANS_QUANT_PARAM ? specials[draw_below(m, SPECIALS)] : draw_between(m, -40, 40);
    default: return draw_between(m, -30, 30);
    }
}

/* A smooth scale. Within a group all are one number times a power of two, so a row can have equal products, to the bit.
 * Some are so large that an x that is subnormal in float32 counts. */
static double draw_smooth(struct maker *m, size_t i)
{
    static const double numbers[] = {1.375, 1.625, 1.1875, 1.8125};
    const size_t columns = (size_t)m->wish->shape[m->wish->ndim - 1];
    const bool wide = m->wish->dtypes[OPERAND_X] != NPUQ_FLOAT16 && m->wish->dtypes[OPERAND_SMOOTH] != NPUQ_FLOAT16;
    const double number = numbers[i / columns % 4];

    return number * (wide && i % columns % 16 == 9 ? 0x1p100 : ldexp(1, (int)draw_below(m, 4) - 1));
}

static void fill_parameter(struct maker *m, enum operand operand)
{
    const npuq_tensor *tensor = &m->inputs->operands[operand];
    const struct hard_wish *wish = m->wish;
    size_t count = 1;

    for (int d = 0; d < tensor->ndim; d++) {
        count *= (size_t)tensor->shape[d];
    }
    for (size_t i = 0; i < count; i++) {
        switch (operand) {
        case OPERAND_SCALE:
            if (wish->op == REQUANT) {
                const uint32_t low_bits = (uint32_t)draw_below(m, 0x2000);
                const uint32_t bits = npuq_ref_to_bits((float)draw_scale(m, i)) | low_bits;
                const uint64_t word = npuq_ref_pack(bits, (float)draw_offset(m, i), false);
                ((uint64_t *)tensor->data)[i] = word | (bits & 0x1FFFU);
            } else {
                store(tensor->data, tensor->dtype, i, draw_scale(m, i));
            }
            break;
        case OPERAND_OFFSET:
            store(tensor->data, tensor->dtype, i, count == 1 ? draw_only_offset(m) : draw_offset(m, i));
            break;
        case OPERAND_SMOOTH: store(tensor->data, tensor->dtype, i, draw_smooth(m, i)); break;
        case OPERAND_ROW_SCALE:
            store(tensor->data, tensor->dtype, i, ldexp(draw_scale(m, i + 1), 2 - 8 * (int)(i / 16 % 3)));
            break;
        case OPERAND_BIAS:
            store(tensor->data, tensor->dtype, i,
                  tensor->dtype != NPUQ_INT32 ? (i % 8 == 4 ? 0 : draw_offset(m, i))
                  : i % 8 == 2                ? draw_between(m, 2e9, 2147483647)
                                              : draw_between(m, -3e4, 3e4));
            break;
        default: break;
        }
    }
}

/* Fills the ends of groups. Of four groups the third is empty. */
static void fill_groups(struct maker *m)
{
    const npuq_tensor *tensor = &m->inputs->operands[OPERAND_GROUPS];
    int64_t rows = 1;

    for (int d = 0; d < m->wish->ndim - 1; d++) {
        rows *= m->wish->shape[d];
    }
    const int64_t ends[] = {(rows + 3) / 4, (rows + 1) / 2, (rows + 1) / 2, rows};
    const size_t groups = (size_t)tensor->shape[0];
    for (size_t e = 0; e < groups; e++) {
        store(tensor->data, tensor->dtype, e, (double)(e == groups - 1 ? rows : ends[e]));
    }
}

/* ---- changing operands ------------------------------------------------------------------------------------------ */

/* Sets both copies of an operand: in the tensor, and in the call. */
static void set(struct maker *m, enum operand operand, size_t i, double value)
{
    const npuq_tensor *tensor = &m->inputs->operands[operand];

    store(tensor->data, tensor->dtype, i, value);
    store(m->inputs->call.operands[operand].data, tensor->dtype, i, value);
}

static void set_bits(struct maker *m, enum operand operand, size_t i, uint64_t bits)
{
    const npuq_tensor *tensor = &m->inputs->operands[operand];
    struct array given = {tensor->data, tensor->dtype, 0};

    array_set_bits(&given, i, bits);
    array_set_bits(&m->inputs->call.operands[operand], i, bits);
}

/* ---- values of x ------------------------------------------------------------------------------------------------ */

/* Which of the scales element i has. */
static size_t scale_of(const struct call *call, size_t i)
{
    return call->op == GROUP_QUANT ? call->row_group[i / call->columns] * call->columns + i % call->columns
                                   : call_channel(call, i);
}

/* The definition's t of element i is about (x + shift) * scale + offset. */
struct affine {
    double shift;
    double scale;
    double row_scale; /* a part of the scale that belongs to the row */
    double offset;
};

static double load(const struct array *array, size_t i)
{
    return (double)npuq_ref_load(array->data, (npuq_ref_dtype)array->dtype, i);
}

static struct affine affine_of(const struct call *call, size_t i)
{
    const struct array *scales = &call->operands[OPERAND_SCALE];
    const struct array *offsets = &call->operands[OPERAND_OFFSET];
    const struct array *rows = &call->operands[OPERAND_ROW_SCALE];
    const struct array *bias = &call->operands[OPERAND_BIAS];
    const size_t at = scale_of(call, i);
    struct affine affine = {.row_scale = rows->data ? load(rows, i / call->columns) : 1};
    double offset = 0;

    affine.scale = call->op == REQUANT ? (double)npuq_ref_word_scale(array_bits(scales, at)) : load(scales, at);
    if (call->op == QUANTIZE && call->options.divides) {
        affine.scale = 1 / affine.scale;
    }
    if (offsets->data) {
        offset = load(offsets, offsets->count == 1 ? 0 : at);
    } else if (bias->data) {
        offset = load(bias, i % call->columns);
    }
    if (call->op == ANTI_QUANT || (bias->data && bias->dtype == NPUQ_INT32)) {
        affine.shift = offset;
    } else {
        affine.offset = offset;
    }
    return affine;
}

static float step_from(float value, int steps)
{
    for (; steps > 0; steps--) {
        value = nextafterf(value, INFINITY);
    }
    for (; steps < 0; steps++) {
        value = nextafterf(value, -INFINITY);
    }
    return value;
}

/* A value in the middle between two neighbours of y's type, or near it. */
static double draw_tie(struct maker *m)
{
    const uint32_t half = m->wish->options.y_dtype == NPUQ_BFLOAT16 ? 0x8000 : 0x1000;
    const uint32_t exponent = (uint32_t)(draw_below(m, 8) ? draw_below(m, 48) + 96 : draw_below(m, 8));

    return (double)npuq_ref_from_bits(exponent << 23 | ((uint32_t)draw(m) & 0x7FFFFFU & ~(2 * half - 1)) | half);
}

/* A t that may show a mistake: a half, a value near or beyond an end of the range, or any other. */
static double draw_target(struct maker *m)
{
    const npuq_dtype y = rounded_dtype(m->wish);
    const double end = y == NPUQ_QUINT4X2 ? 9 : y == NPUQ_UINT8 ? 270 : y == NPUQ_INT32 ? 1e5 : 140;

    if (dtype_is_float(y)) {
        return draw_tie(m);
    }
    /* Adding a half to these values rounds. If x is not an integer, halves with x one step off give such values. */
    if (m->wish->op == REQUANT && draw_below(m, 8) == 0) {
        return draw_below(m, 2) ? BELOW_HALF : -BELOW_HALF;
    }
    if (y == NPUQ_INT32 && draw_below(m, 8) == 0) {
        return draw_between(m, -1, 1) * 0x1p24;
    }
    switch (draw_below(m, 6)) {
    case 0: return draw_between(m, -end, end);
    case 1: return draw_between(m, -3 * end, 3 * end);
    case 2: return nearbyint(draw_between(m, -8, 8)) + 0.5;
    default: return nearbyint(draw_between(m, -end, end)) + 0.5;
    }
}

static double draw_any(struct maker *m)
{
    return (double)npuq_ref_from_bits((uint32_t)draw(m));
}

/* A new value for element i of x. */
static double draw_x(struct maker *m, size_t i)
{
    const struct call *call = &m->inputs->call;
    const bool is_sum = call->op == DEQUANT || call->op == REQUANT;

    if (call->op == TRANS_QUANT_PARAM) {
        return draw_below(m, 2) ? draw_any(m) : draw_scale(m, i);
    }
    if (call->op == ANTI_QUANT) {
        return draw_between(m, -128.49, 127.49);
    }
    const struct affine affine = affine_of(call, i);
    switch (draw_below(m, 8)) {
    case 0: return is_sum ? (double)(int32_t)draw(m) : draw_any(m);
    case 1: {
        const double size = is_sum ? draw_magnitude(m, 0, 26) : 40 / affine.scale;
        return draw_normal(m) * size;
    }
    case 2:
        if (is_sum) {
            return draw_below(m, 4) ? 16777216 + draw_between(m, 0, 64) : draw_below(m, 2) ? INT32_MAX : INT32_MIN;
        }
        return specials[draw_below(m, SPECIALS)];
    default: {
        const double offset = draw_below(m, 4) ? affine.offset : 0; /* or a half before it is added */
        const double x = (draw_target(m) - offset) / affine.row_scale / affine.scale - affine.shift;
        return is_sum ? x : (double)step_from((float)x, (int)draw_below(m, 5) - 2);
    }
    }
}

/* ---- rows of the dynamic operators ------------------------------------------------------------------------------ */

enum { ROW_KINDS = 16 };

static double smooth_of(const struct call *call, size_t i)
{
    const struct array *smooth = &call->operands[OPERAND_SMOOTH];
    const size_t group = call->row_group ? call->row_group[i / call->columns] * call->columns : 0;

    return smooth->data ? (double)npuq_ref_load(smooth->data, (npuq_ref_dtype)smooth->dtype, group + i % call->columns)
                        : 1;
}

static const struct variant definition;

/* A usual size. With a min_scale, half of the blocks get the size where the limit begins. */
static double usual_size(struct maker *m)
{
    const double min_scale = (double)m->wish->options.min_scale;

    return min_scale > 0 && draw_below(m, 2) ? dtype_of(rounded_dtype(m->wish))->high / min_scale / 2 : 1;
}

/* Draws new values for a row, a block, or the whole tensor. */
static void draw_row(struct maker *m, size_t token, size_t kind)
{
    const struct call *call = &m->inputs->call;
    const struct span span = steps_token_span(call, &definition, token);
    const size_t begin = span.begin;
    const size_t end = span.end;
    const double usual = usual_size(m);
    const double size = draw_magnitude(m, -7, 7) * usual;
    const double shift = kind == 3 ? 5 * size : kind == 4 ? -5 * size : 0;
    static const double tiny[] = {1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-11, 1e-13, 1e-30, 1e-36, 1e-39};
    const double factor = kind == 5 || kind == 6 ? tiny[draw_below(m, sizeof tiny / sizeof tiny[0])] : 1;
    /* A scale of so few units that a quotient is far beyond DMAX, or that it is 0. */
    const double subnormal = call->op == ROW_QUANT && draw_below(m, 2) ? draw_magnitude(m, -146, -142) : 0x1p-128;
    const bool is_constant = kind == 8 || kind == 15;
    const double sign = draw_below(m, 2) ? 1 : -1;
    const double constant = kind == 8 ? draw_normal(m) * size : draw_between(m, 3e4, 65504) * sign;
    /* With an offset of a quarter, an x of 24 bits can make BELOW_HALF. */
    const bool takes_quarter = call->op == DYNAMIC_QUANT_ASYMMETRIC && m->wish->dtypes[OPERAND_X] == NPUQ_FLOAT32;
    const double shift_of_ends = takes_quarter && draw_below(m, 2) ? -0.75 : 0;
    const double top = dtype_of(rounded_dtype(m->wish))->high + (call->op == DYNAMIC_QUANT_ASYMMETRIC ? 0.5 : 0);
    int exponent;
    const double least_smooth =
        call->operands[OPERAND_SMOOTH].data ? frexp(smooth_of(call, begin), &exponent) : 1; /* as drawn */

    for (size_t i = begin; i < end; i++) {
        const double v = (draw_normal(m) * size + shift) * factor;
        set(m, OPERAND_X, i,
            kind == 7     ? 0
            : is_constant ? constant * (least_smooth / smooth_of(call, i)) /* a power of two, 1 at most */
                          : v / smooth_of(call, i));
    }
    switch (kind) {
    case 9: set(m, OPERAND_X, begin + draw_below(m, end - begin), (double)NAN); break;
    case 10: set(m, OPERAND_X, begin + draw_below(m, end - begin), INFINITY); break;
    case 11: set(m, OPERAND_X, begin + draw_below(m, end - begin), -INFINITY); break;
    case 12: /* the extremes give round parameters: halves are exact */
        for (size_t i = begin; i < end; i++) {
            const double half = i == begin     ? top + shift_of_ends
                                : i == end - 1 ? -top + shift_of_ends
                                               : nearbyint(draw_between(m, -2 * top, 2 * top)) / 2;
            set(m, OPERAND_X, i, half * (least_smooth / smooth_of(call, i)));
        }
        break;
    case 13: /* subnormals in float32 */
        for (size_t i = begin; i < end; i++) {
            set(m, OPERAND_X, i, draw_normal(m) * subnormal);
        }
        break;
    case 14: set(m, OPERAND_X, begin + draw_below(m, end - begin), -9 * size); break;
    default: break;
    }
}

/* ---- looking for differences ------------------------------------------------------------------------------------ */

/* A hash of all bits that a variant gives. */
static uint64_t signature(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
                          uint64_t *const defined[RESULTS], size_t *changed)
{
    uint64_t hash = 0xCBF29CE484222325U;

    *changed = 0;
    for (int r = 0; r < call_results(call); r++) {
        struct predictor p = {.call = call, .variant = variant, .cache = cache};
        const size_t count = call_result_count(call, (enum result)r);
        for (size_t i = 0; i < count; i++) {
            const uint64_t bits = predict(&p, (enum result)r, i, NULL);
            hash = (hash ^ bits) * 0x100000001B3U;
            hash ^= hash >> 29;
            *changed += defined[r] && bits != defined[r][i];
        }
    }
    return hash;
}

/* The first element of y from begin to end where two variants differ; end if only the parameters of the row differ; end
 * + 1 if nothing differs. */
static size_t tell_apart(struct predictor *p, struct predictor *q, size_t begin, size_t end)
{
    const struct call *call = p->call;

    for (size_t i = begin; i < end; i++) {
        if (predict(p, RESULT_Y, i, NULL) != predict(q, RESULT_Y, i, NULL)) {
            return i;
        }
    }
    for (int r = RESULT_SCALE; r < RESULTS && r < call_results(call); r++) {
        const size_t token = steps_token_of(call, &definition, begin);
        if (predict(p, (enum result)r, token, NULL) != predict(q, (enum result)r, token, NULL)) {
            return end;
        }
    }
    return end + 1;
}

/* Whether two variants differ in element i, with the present extremes of its row. */
static bool is_told_apart(const struct call *call, const struct variant *a, const struct variant *b, size_t i)
{
    struct predictor p = {.call = call, .variant = a};
    struct predictor q = {.call = call, .variant = b};

    return tell_apart(&p, &q, i, i + 1) == i;
}

/* A scale that gives element i a t that may show a mistake, or a product so small that adding the offset loses it. */
static double draw_scale_for(struct maker *m, size_t i)
{
    const struct call *call = &m->inputs->call;
    const struct affine affine = affine_of(call, i);
    const double x = load(&call->operands[OPERAND_X], i) + affine.shift;
    const double product = draw_below(m, 8) ? draw_target(m) - affine.offset : draw_between(m, -1, 1) * 0x1p-24;
    const double scale = product / affine.row_scale / x;

    return (double)step_from((float)(call->options.divides ? 1 / scale : scale), (int)draw_below(m, 5) - 2);
}

static void redraw_scale(struct maker *m, size_t i, size_t at)
{
    const double scale = draw_scale_for(m, i);

    if (m->wish->op == REQUANT) {
        const uint64_t word = array_bits(&m->inputs->call.operands[OPERAND_SCALE], at);
        set_bits(m, OPERAND_SCALE, at,
                 (word & ~(uint64_t)UINT32_MAX) | npuq_ref_to_bits(npuq_ref_canonical((float)scale)));
    } else {
        set(m, OPERAND_SCALE, at, scale);
    }
}

/* Elements to draw, and values to visit, before two mistakes count as the same. */
enum { ELEMENT_TRIES = 200000, ROW_VISITS = 2000000 };

/* Elements to draw in a row before the next row. */
enum { ELEMENTS_OF_A_ROW = 1024 };

/* Draws elements or their scales anew, one by one, until two variants differ. */
static bool separate_elements(struct maker *m, const struct variant *a, const struct variant *b)
{
    const struct call *call = &m->inputs->call;
    const struct array *x = &call->operands[OPERAND_X];
    const struct array *scales = &call->operands[OPERAND_SCALE];

    for (int tries = 0; tries < ELEMENT_TRIES; tries++) {
        const size_t i = draw_below(m, x->count);
        const size_t at = scales->data ? scale_of(call, i) : 0;
        const bool redraws = scales->data && !m->reserved_scales[at] && tries % 3 == 0;
        if (m->reserved[i]) {
            continue;
        }
        const uint64_t kept = array_bits(x, i);
        const uint64_t kept_scale = scales->data ? array_bits(scales, at) : 0;
        set(m, OPERAND_X, i, draw_x(m, i));
        if (redraws) {
            redraw_scale(m, i, at);
        }
        if (is_told_apart(call, a, b, i)) {
            m->reserved[i] = true;
            m->reserved_scales[at] = true;
            return true;
        }
        set_bits(m, OPERAND_X, i, kept);
        if (redraws) {
            set_bits(m, OPERAND_SCALE, at, kept_scale);
        }
    }
    return false;
}

/* A t as draw_target() gives it, or where float16 rounds it across a half: a rule of row_quant may do that. */
static double draw_row_target(struct maker *m)
{
    const double target = draw_target(m);
    int exponent;

    if (m->wish->op != ROW_QUANT || draw_below(m, 2)) {
        return target;
    }
    (void)frexp(target, &exponent);
    return target + ldexp(draw_below(m, 2) ? 1 : -1, exponent - 12);
}

/* Draws an element whose t may show a mistake. False if the value is outside the range of its row, which must stay. */
static bool draw_within(struct maker *m, size_t i, const struct extremes *e, const struct token *token)
{
    const double low = m->wish->op == DYNAMIC_QUANT_ASYMMETRIC ? e->lo : -e->hi;
    const double v = (draw_row_target(m) - token->offset) / token->back;

    if (!(v > low && v < e->hi)) {
        return false;
    }
    set(m, OPERAND_X, i, (double)step_from((float)(v / smooth_of(&m->inputs->call, i)), (int)draw_below(m, 5) - 2));
    return true;
}

static bool is_frozen(const struct maker *m, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        if (m->reserved[i]) {
            return true;
        }
    }
    return false;
}

/* Draws rows, or elements of rows, anew until two variants differ. */
static bool separate_rows(struct maker *m, const struct variant *a, const struct variant *b)
{
    const struct call *call = &m->inputs->call;
    const struct array *x = &call->operands[OPERAND_X];
    size_t kind = 0;
    size_t visits = 0;

    while (visits < ROW_VISITS) {
        struct predictor p = {.call = call, .variant = a};
        struct predictor q = {.call = call, .variant = b};
        const size_t token = draw_below(m, call->tokens);
        const struct span span = steps_token_span(call, &definition, token);
        const size_t begin = span.begin;
        const size_t end = span.end;
        const size_t length = end - begin;
        const bool frozen = is_frozen(m, begin, end);
        if (!frozen) {
            draw_row(m, token, kind++ % ROW_KINDS);
        }
        const struct extremes e = steps_extremes(call, &definition, token);
        const struct token parameters = steps_token(call, &definition, &e, NULL);
        size_t found = frozen ? end + 1 : tell_apart(&p, &q, begin, end);
        visits += 4 * length;
        for (size_t n = 0; n < length && n < ELEMENTS_OF_A_ROW && found > end; n++) {
            const size_t i = begin + (length <= ELEMENTS_OF_A_ROW ? n : draw_below(m, length));
            const uint64_t kept = array_bits(x, i);
            if (m->reserved[i] || i == e.hi_at || i == e.lo_at || !draw_within(m, i, &e, &parameters)) {
                continue;
            }
            visits += 2;
            /* The predictors keep the extremes of the row from element to element: they seldom change. */
            if (tell_apart(&p, &q, i, i + 1) == i) {
                found = is_told_apart(call, a, b, i) ? i : found;
                visits += 2 * length;
            }
            if (frozen && found > end) {
                set_bits(m, OPERAND_X, i, kept);
            }
        }
        if (found <= end) {
            m->reserved[e.hi_at] = m->reserved[e.lo_at] = true;
            if (found < end) {
                m->reserved[found] = true;
            }
            return true;
        }
    }
    return false;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* The variant of a hypothesis, with some begin of an untouched part, or some order of rows. */
static struct variant example_of(const struct hypothesis *hypothesis, const struct call *call, size_t *row_of)
{
    struct variant variant = {.choice = {0}, .bound = {.value = 3e-9}};

    (void)hypothesis_add(hypothesis, &variant);
    switch (variant.choice[STEP_LAYOUT]) {
    case LAYOUT_TAIL_UNTOUCHED: variant.layout.from = call->columns - call->columns / 4 - 1; break;
    case LAYOUT_ROWS_UNTOUCHED: variant.layout.from = call->rows - call->rows / 4 - 1; break;
    case LAYOUT_ROWS_PERMUTED:
        for (size_t row = 0; row < call->rows; row++) {
            row_of[row] = (row ^ 1) < call->rows ? row ^ 1 : row;
        }
        variant.layout.row_of = row_of;
        break;
    default: break;
    }
    return variant;
}

struct comparison_of_all {
    struct variant *variants; /* one for each hypothesis that applies */
    uint64_t *signatures;
    uint64_t *definition[RESULTS];
    size_t *row_of;
    bool *hopeless; /* nothing was found */
};

/* False if there is not the memory. */
static bool compare_all(struct maker *m, struct comparison_of_all *all)
{
    const struct call *call = &m->inputs->call;
    struct extremes_cache *cache = extremes_cache_make();

    if (!cache) {
        return false;
    }
    for (int r = 0; r < call_results(call); r++) {
        struct predictor p = {.call = call, .variant = &definition};
        for (size_t i = 0; i < call_result_count(call, (enum result)r); i++) {
            all->definition[r][i] = predict(&p, (enum result)r, i, NULL);
        }
    }
    for (int h = 0; h < hypothesis_count; h++) {
        m->inputs->same_as[h] = -1;
        if (!hypothesis_applies(&hypotheses[h], call)) {
            continue;
        }
        all->variants[h] = example_of(&hypotheses[h], call, all->row_of);
        all->signatures[h] = signature(call, &all->variants[h], cache, all->definition, &m->inputs->changed[h]);
        m->inputs->same_as[h] = h;
        for (int g = 0; g < h; g++) {
            if (m->inputs->same_as[g] == g && all->signatures[g] == all->signatures[h]) {
                m->inputs->same_as[h] = g;
                break;
            }
        }
    }
    extremes_cache_release(cache);
    return true;
}

/* Draws inputs for each hypothesis that changes nothing yet, or the same as another. Notes the hopeless ones. */
static void separate(struct maker *m, struct comparison_of_all *all)
{
    const struct hard_inputs *inputs = m->inputs;
    const bool dynamic = inputs->call.tokens > 0;

    for (int h = 0; h < hypothesis_count; h++) {
        const int g = inputs->same_as[h];
        if (g < 0 || all->hopeless[h] || all->variants[h].choice[STEP_LAYOUT] != AS_DEFINED ||
            (g == h && inputs->changed[h] > 0)) {
            continue;
        }
        const struct variant *other = inputs->changed[h] == 0 ? &definition : &all->variants[g];
        all->hopeless[h] =
            !(dynamic ? separate_rows(m, &all->variants[h], other) : separate_elements(m, &all->variants[h], other));
    }
}

/* Without data. What is here needs nothing of the library but its elements. */
static npuq_tensor contiguous(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    npuq_tensor tensor = {.dtype = dtype, .ndim = ndim};
    int64_t stride = 1;

    for (int d = ndim - 1; d >= 0; d--) {
        tensor.shape[d] = shape[d];
        tensor.strides[d] = stride;
        stride *= shape[d];
    }
    return tensor;
}

/* The shape of an operand. */
static npuq_tensor shape_of(const struct hard_wish *wish, enum operand operand)
{
    const int64_t columns = wish->shape[wish->ndim - 1];
    int64_t rows = 1;
    int64_t shape[NPUQ_MAX_NDIM];

    for (int d = 0; d < wish->ndim - 1; d++) {
        rows *= wish->shape[d];
    }
    const int64_t groups = rows < 4 ? rows : 4;
    memcpy(shape, wish->shape, sizeof shape);
    switch (operand) {
    case OPERAND_X:
        shape[wish->ndim - 1] >>= dtype_of(wish->dtypes[OPERAND_X])->log2_values;
        return contiguous(wish->dtypes[OPERAND_X], wish->ndim, shape);
    case OPERAND_GROUPS: return contiguous(wish->dtypes[operand], 1, (const int64_t[]){groups});
    case OPERAND_ROW_SCALE: return contiguous(NPUQ_FLOAT32, wish->ndim - 1, shape);
    case OPERAND_SMOOTH:
        return wish->present[OPERAND_GROUPS] ? contiguous(wish->dtypes[operand], 2, (const int64_t[]){groups, columns})
                                             : contiguous(wish->dtypes[operand], 1, (const int64_t[]){columns});
    case OPERAND_SCALE:
    case OPERAND_OFFSET:
        if (wish->op == GROUP_QUANT) {
            return operand == OPERAND_OFFSET ? contiguous(wish->dtypes[operand], 1, (const int64_t[]){1})
                                             : contiguous(wish->dtypes[operand], 2, (const int64_t[]){groups, columns});
        }
        if (wish->op == QUANTIZE) {
            const int axis = (int)wish->options.axis;
            const int dimension = !wish->options.divides ? (axis == -2 ? wish->ndim - 2 : wish->ndim - 1)
                                  : axis < 0             ? axis + wish->ndim
                                                         : axis;
            /* The library refuses an axis that x does not have. */
            return contiguous(wish->dtypes[operand], 1,
                              &wish->shape[dimension >= 0 && dimension < wish->ndim ? dimension : 0]);
        }
        return contiguous(wish->dtypes[operand], 1, (const int64_t[]){columns});
    default: return contiguous(wish->dtypes[operand], 1, (const int64_t[]){columns});
    }
}

static bool allocate(struct hard_inputs *inputs, const struct hard_wish *wish)
{
    for (int i = 0; i < OPERANDS; i++) {
        npuq_tensor *tensor = &inputs->operands[i];
        size_t size = npuq_dtype_size(wish->dtypes[i]);
        if (!wish->present[i]) {
            continue;
        }
        *tensor = shape_of(wish, (enum operand)i);
        for (int d = 0; d < tensor->ndim; d++) {
            size *= (size_t)tensor->shape[d];
        }
        tensor->data = calloc(size > 0 ? size : 1, 1);
        if (!tensor->data) {
            return false;
        }
    }
    inputs->changed = calloc((size_t)hypothesis_count, sizeof *inputs->changed);
    inputs->same_as = calloc((size_t)hypothesis_count, sizeof *inputs->same_as);
    return inputs->changed && inputs->same_as;
}

static void fill(struct maker *m)
{
    const struct call *call = &m->inputs->call;

    if (call->tokens > 0) {
        for (size_t token = 0; token < call->tokens; token++) {
            draw_row(m, token, token % ROW_KINDS);
        }
        /* Where there are rows enough, one of each kind stays. */
        const size_t kept = call->tokens < 2 * ROW_KINDS ? 0 : steps_token_span(call, &definition, ROW_KINDS).begin;
        for (size_t i = 0; i < kept; i++) {
            m->reserved[i] = true;
        }
    } else {
        for (size_t i = 0; i < call->operands[OPERAND_X].count; i++) {
            set(m, OPERAND_X, i, draw_x(m, i));
        }
    }
}

static void fill_parameters(struct maker *m)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (m->wish->present[i]) {
            fill_parameter(m, (enum operand)i);
        }
    }
    if (m->wish->present[OPERAND_GROUPS]) {
        fill_groups(m);
    }
}

void hard_inputs_choose_types(struct hard_wish *wish, const bool chosen[OPERANDS])
{
    const bool from_sums = wish->op == DEQUANT || wish->op == REQUANT;

    for (int i = 0; i < OPERANDS; i++) {
        if (chosen[i]) {
            continue;
        }
        switch (i) {
        case OPERAND_X:
            wish->dtypes[i] = from_sums ? NPUQ_INT32 : wish->op == ANTI_QUANT ? NPUQ_INT8 : NPUQ_FLOAT32;
            break;
        case OPERAND_SCALE: wish->dtypes[i] = wish->op == REQUANT ? NPUQ_UINT64 : NPUQ_FLOAT32; break;
        case OPERAND_OFFSET: wish->dtypes[i] = wish->dtypes[OPERAND_SCALE]; break;
        case OPERAND_SMOOTH: wish->dtypes[i] = wish->dtypes[OPERAND_X]; break;
        case OPERAND_GROUPS: wish->dtypes[i] = NPUQ_INT64; break;
        case OPERAND_BIAS: wish->dtypes[i] = NPUQ_INT32; break;
        default: wish->dtypes[i] = NPUQ_FLOAT32; break;
        }
    }
}

bool hard_inputs_begin(struct hard_inputs *inputs, const struct hard_wish *wish)
{
    struct maker m = {.inputs = inputs, .wish = &inputs->wish, .state = wish->seed};

    *inputs = (struct hard_inputs){.wish = *wish};
    if (!allocate(inputs, wish)) {
        return false;
    }
    const struct state caller = enter_state();
    fill_parameters(&m);
    leave_state(&caller);
    return true;
}

static bool allocate_comparison(const struct hard_inputs *inputs, struct comparison_of_all *all)
{
    bool ok;

    *all = (struct comparison_of_all){
        .variants = calloc((size_t)hypothesis_count, sizeof *all->variants),
        .signatures = calloc((size_t)hypothesis_count, sizeof *all->signatures),
        .row_of = malloc(inputs->call.rows * sizeof *all->row_of),
        .hopeless = calloc((size_t)hypothesis_count, sizeof *all->hopeless),
    };
    ok = all->variants && all->signatures && all->row_of && all->hopeless;
    for (int r = 0; r < RESULTS; r++) {
        all->definition[r] = malloc((call_result_count(&inputs->call, (enum result)r) + 1) * sizeof(uint64_t));
        ok = ok && all->definition[r];
    }
    return ok;
}

static void release_comparison(struct comparison_of_all *all)
{
    for (int r = 0; r < RESULTS; r++) {
        free(all->definition[r]);
    }
    free(all->hopeless);
    free(all->row_of);
    free(all->signatures);
    free(all->variants);
}

enum { PASSES = 3 };

bool hard_inputs_fill(struct hard_inputs *inputs)
{
    struct maker m = {.inputs = inputs, .wish = &inputs->wish, .state = inputs->wish.seed};
    const npuq_tensor *operands[OPERANDS] = {NULL};
    struct comparison_of_all all = {0};
    const struct state caller = enter_state();

    for (int i = 0; i < OPERANDS; i++) {
        operands[i] = inputs->operands[i].data ? &inputs->operands[i] : NULL;
    }
    fill_parameters(&m);
    if (!call_make(&inputs->call, inputs->wish.op, operands, &inputs->wish.options)) {
        leave_state(&caller);
        return false;
    }
    m.reserved = calloc(inputs->call.count, sizeof *m.reserved);
    m.reserved_scales = calloc(inputs->call.operands[OPERAND_SCALE].count + 1, sizeof *m.reserved_scales);
    bool ok = m.reserved && m.reserved_scales && allocate_comparison(inputs, &all);
    if (ok) {
        fill(&m);
    }
    for (int pass = 0; ok && pass < PASSES; pass++) {
        ok = compare_all(&m, &all);
        if (ok) {
            separate(&m, &all);
        }
    }
    ok = ok && compare_all(&m, &all);
    release_comparison(&all);
    free(m.reserved_scales);
    free(m.reserved);
    leave_state(&caller);
    return ok;
}

void hard_inputs_release(struct hard_inputs *inputs)
{
    for (int i = 0; i < OPERANDS; i++) {
        free(inputs->operands[i].data);
    }
    call_release(&inputs->call);
    free(inputs->changed);
    free(inputs->same_as);
    *inputs = (struct hard_inputs){0};
}
