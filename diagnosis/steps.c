/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- traces ---------------------------------------------------------------------------------------------------- */

static void note_any(struct trace *trace, const char *step, double value, enum trace_kind kind)
{
    if (trace && trace->count < TRACE_LINES) {
        trace->lines[trace->count++] = (struct trace_line){step, value, kind};
    }
}

static double note(struct trace *trace, const char *step, double value)
{
    note_any(trace, step, value, TRACE_FLOAT);
    return value;
}

static double note_integer(struct trace *trace, const char *step, double value)
{
    note_any(trace, step, value, TRACE_INTEGER);
    return value;
}

static bool is_finite(double value)
{
    return fabs(value) < (double)INFINITY;
}

static bool is_negative(double value)
{
    return copysign(1, value) < 0;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------ */

/* Values travel as double, which holds every float32 and every int32. A step of the definition rounds to float32. */
struct arithmetic {
    const struct call *call;
    const struct variant *variant;
    struct trace *trace;
    const unsigned char *rule; /* what is done where the variant makes no choice */
    bool takes_x;              /* x is taken as it is: rows are long, and most variants do so */
};

#define RULE(form, scaling, product, rounding)                                                                         \
    {                                                                                                                  \
        [STEP_FORM] = form, [STEP_SCALING] = scaling, [STEP_PRODUCT] = product, [STEP_ROUNDING] = rounding             \
    }
const unsigned char row_rules[ALL_RULES][STEPS] = {
    [RULE_DYNAMIC_QUANT] = RULE(FORM_PRODUCT, SCALING_FACTOR, PRODUCT_FLOAT32, ROUND_HALF_EVEN),
    [RULE_SWIGLU] = RULE(FORM_FACTOR, SCALING_FACTOR, PRODUCT_FLOAT32, ROUND_HALF_EVEN),
    [RULE_ADD_RMS_NORM] = RULE(FORM_OTHER, SCALING_FACTOR, PRODUCT_FLOAT32, ROUND_HALF_EVEN),
    [RULE_DEQUANT_SWIGLU] = RULE(FORM_PRODUCT, SCALING_DIVISION, PRODUCT_FLOAT32, ROUND_HALF_EVEN),
    [RULE_MOE_ROUTING] = RULE(FORM_DIVIDED, SCALING_DIVISION, PRODUCT_FLOAT32, ROUND_HALF_EVEN),
    [RULE_MOE_ROUTING_8_5] = RULE(FORM_DIVIDED, SCALING_DIVISION, PRODUCT_FLOAT16_TRUNCATED, ROUND_HALF_AWAY),
    [RULE_GROUPED_SWIGLU] = RULE(FORM_DIVIDED, SCALING_RECIPROCAL, TYPE_FLOAT16, ROUND_HALF_EVEN),
    [RULE_FLOAT8] = RULE(FORM_PRODUCT, SCALING_DIVISION, AS_DEFINED, AS_DEFINED),
    [RULE_FLOAT8_BLOCK] = RULE(FORM_DIVIDED, SCALING_DIVISION, AS_DEFINED, AS_DEFINED),
};

static struct arithmetic arithmetic_of(const struct call *call, const struct variant *variant, struct trace *trace)
{
    const unsigned char *choices = variant->choice;
    const int other = choices[STEP_RULE];
    const bool takes_x = choices[STEP_INPUT] == AS_DEFINED && choices[STEP_INPUT_SIGN] == AS_DEFINED &&
                         choices[STEP_INPUT_LAYOUT] == AS_DEFINED && choices[STEP_RELU] == AS_DEFINED;

    return (struct arithmetic){call, variant, trace, row_rules[other != AS_DEFINED ? other : (int)call->options.rule],
                               takes_x};
}

static int choice(const struct arithmetic *a, enum step step)
{
    const int chosen = a->variant->choice[step];

    return chosen != AS_DEFINED ? chosen : a->rule[step];
}

static double to_type(double value, int type)
{
    switch (type) {
    case TYPE_FLOAT16: return (double)npuq_ref_float16(npuq_ref_to_float16((float)value));
    case TYPE_BFLOAT16: return (double)npuq_ref_bfloat16(npuq_ref_to_bfloat16((float)value));
    case TYPE_FLOAT64: return value;
    default: return (double)(float)value;
    }
}

/* Rounded to ten fraction bits, halves away from zero. */
static double to_tf32(double value)
{
    const uint32_t bits = npuq_ref_to_bits((float)value);

    return is_finite(value) ? (double)npuq_ref_from_bits((bits + 0x1000) & ~0x1FFFU) : value;
}

static double rectified(const struct arithmetic *a, double value)
{
    return choice(a, STEP_RELU) == RELU_APPLIED && value < 0 ? 0 : value;
}

static double flushed(double value)
{
    return fabs(value) < 0x1p-126 ? copysign(0, value) : value;
}

static double flush_input(const struct arithmetic *a, double value)
{
    return choice(a, STEP_SUBNORMALS) & SUBNORMAL_INPUTS ? flushed(value) : value;
}

static double finish(const struct arithmetic *a, float value, int type)
{
    const double result = choice(a, STEP_SUBNORMALS) & SUBNORMAL_RESULTS ? flushed((double)value) : (double)value;

    return to_type(result, type);
}

static double multiply(const struct arithmetic *a, double x, double y, int type)
{
    x = flush_input(a, x);
    y = flush_input(a, y);
    return type == TYPE_FLOAT64 ? x * y : finish(a, npuq_ref_mul((float)x, (float)y), type);
}

/* The type that the quotient is made for decides what becomes of subnormals. */
static double divide_for(const struct arithmetic *a, double x, double y, int type, npuq_dtype made)
{
    x = flush_input(a, x);
    y = flush_input(a, y);
    return type == TYPE_FLOAT64 ? x / y : finish(a, npuq_ref_quotient((float)x, (float)y, (npuq_ref_dtype)made), type);
}

static double divide(const struct arithmetic *a, double x, double y, int type)
{
    return divide_for(a, x, y, type, a->call->options.y_dtype);
}

/* A division on the device's vector unit. A quotient that is 0, infinite or NaN has no neighbours. */
static double divide_on_vector_unit(const struct arithmetic *a, double x, double y, int type)
{
    const double quotient = divide(a, x, y, type);
    const int how = choice(a, STEP_QUOTIENT);

    if (a->trace) {
        a->trace->division = (struct division){x, y, quotient};
    }
    if (how == AS_DEFINED || quotient == 0 || !is_finite(quotient)) {
        return quotient;
    }
    return (double)nextafterf((float)quotient, how == QUOTIENT_BELOW ? -INFINITY : INFINITY);
}

static double add(const struct arithmetic *a, double x, double y, int type)
{
    x = flush_input(a, x);
    y = flush_input(a, y);
    return type == TYPE_FLOAT64 ? x + y : finish(a, npuq_ref_add((float)x, (float)y), type);
}

/* x * y + z, rounded once to float32, or in float64 if the sum is. The product of two float32 is exact as a double.
 * Rounding the sum to odd makes the second rounding harmless. */
static double fused(const struct arithmetic *a, double x, double y, double z)
{
    const volatile double product = flush_input(a, x) * flush_input(a, y);
    const double addend = flush_input(a, z);
    volatile double sum = product + addend;
    const volatile double back = sum - product;
    const volatile double rest = sum - back;

    if (choice(a, STEP_SUM) == SUM_FLOAT64) {
        return sum;
    }
    const double error = (product - rest) + (addend - back);
    uint64_t bits;

    if (is_finite(sum) && error != 0) {
        double odd = sum;
        memcpy(&bits, &odd, sizeof bits);
        if (bits % 2 == 0) {
            odd = nextafter(odd, error > 0 ? INFINITY : -INFINITY);
        }
        sum = odd;
    }
    return finish(a, (float)sum, AS_DEFINED);
}

/* Notes a product. If a fused sum follows, the product is not rounded. */
static void note_product(const struct arithmetic *a, const char *step, double product, double x, double y, bool in_sum)
{
    const bool exact = in_sum && choice(a, STEP_SUM) == SUM_FUSED;

    note(a->trace, step, exact ? flush_input(a, x) * flush_input(a, y) : product);
}

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

/* A run of units is a matrix with this many rows, stored transposed. */
struct transposition {
    size_t unit; /* elements */
    size_t run;  /* units */
    size_t rows;
};

size_t steps_columns_of_fractal(npuq_dtype dtype)
{
    return 256 / (size_t)dtype_of(dtype)->bits;
}

static struct transposition transposition_of(const struct call *call, int layout, npuq_dtype dtype)
{
    size_t fractal;

    switch (layout) {
    case LAYOUT_AWQ: return (struct transposition){1, 8, 4};
    case LAYOUT_HALVES_OF_8: return (struct transposition){1, 8, 2};
    case LAYOUT_HALVES_OF_32: return (struct transposition){1, 32, 2};
    case LAYOUT_FRACTAL_NZ:
        fractal = steps_columns_of_fractal(dtype);
        return (struct transposition){fractal, call->count / fractal, call->rows};
    case LAYOUT_TRANSPOSED: return (struct transposition){1, call->count, call->rows};
    default: return (struct transposition){1, 1, 1};
    }
}

/* The element of the matrix that lies at place i of the transposed one. */
static size_t transposed(struct transposition t, size_t i)
{
    const size_t unit = i / t.unit;
    const size_t at = unit % t.run;

    return (unit - at + at % t.rows * (t.run / t.rows) + at / t.rows) * t.unit + i % t.unit;
}

size_t steps_element_at(const struct call *call, int layout, npuq_dtype dtype, size_t i)
{
    switch (layout) {
    case AS_DEFINED: return i;
    case LAYOUT_NIBBLES_SWAPPED: return i ^ 1;
    case LAYOUT_WORD_REVERSED: return i ^ 7;
    case LAYOUT_BYTES_SWAPPED: return i ^ 6;
    default: return transposed(transposition_of(call, layout, dtype), i);
    }
}

size_t steps_place_of(const struct call *call, int layout, npuq_dtype dtype, size_t i)
{
    struct transposition t = transposition_of(call, layout, dtype);

    if (t.run == 1) { /* the layout is its own opposite */
        return steps_element_at(call, layout, dtype, i);
    }
    t.rows = t.run / t.rows;
    return transposed(t, i);
}

/* ---- operands -------------------------------------------------------------------------------------------------- */

static double load(const struct array *array, size_t i)
{
    return (double)npuq_ref_load(array->data, (npuq_ref_dtype)array->dtype, i);
}

size_t steps_elements_of_channel(const struct call *call)
{
    return call_stride(call, 0) / call->columns;
}

static size_t turned(size_t i, int place, size_t count)
{
    switch (place) {
    case PLACE_NEXT: return (i + 1) % count;
    case PLACE_PREVIOUS: return (i + count - 1) % count;
    case PLACE_FIRST: return 0;
    case PLACE_NEXT_BUT_LAST: return i + 1 < count ? i + 1 : i;
    case PLACE_PREVIOUS_BUT_FIRST: return i > 0 ? i - 1 : i;
    default: return place < PLACE_OF_FIRST ? i : i % variant_size(place);
    }
}

/* Rows of parameters follow one another in memory: after the last scale of a group comes the first of the next
 * group. */
static size_t turned_in_rows(size_t row, size_t column, int place, size_t count)
{
    const bool stays_in_row = place == PLACE_FIRST || place >= PLACE_OF_FIRST;

    return stays_in_row ? row + turned(column, place, count) : turned(row + column, place, count);
}

/* The index of element i in a dimension that the scales do not belong to. */
static size_t other_index(const struct call *call, size_t i, int place)
{
    switch (place) {
    case PLACE_OTHER_AXIS: return call->inner == 1 ? i / call->columns : i % call->columns;
    case PLACE_CHANNELS_FIRST: return i / steps_elements_of_channel(call);
    case PLACE_CHANNELS_LAST: return i;
    default: return i / call_stride(call, place - PLACE_OF_DIMENSION) % call->shape[place - PLACE_OF_DIMENSION];
    }
}

static size_t channel_of(const struct call *call, size_t i, int place)
{
    if (call->channels == 1) {
        return 0;
    }
    if (place >= PLACE_OTHER_AXIS && place < PLACE_OF_FIRST) {
        return other_index(call, i, place) % call->channels;
    }
    return turned(call_channel(call, i), place, call->channels);
}

static size_t group_of(const struct call *call, const struct variant *variant, size_t row)
{
    switch (variant->choice[STEP_GROUP]) {
    case GROUP_LATE: return call->row_group[row > 0 ? row - 1 : 0];
    case GROUP_EARLY: return call->row_group[row + 1 < call->rows ? row + 1 : row];
    case GROUP_FIRST: return 0;
    case GROUP_LAST: return call->groups - 1;
    case GROUP_NEXT: return (call->row_group[row] + 1) % call->groups;
    case GROUP_COUNTS: return call->row_group[GROUPED_BY_COUNTS * call->rows + row];
    case GROUP_WITHOUT_EMPTY: return call->row_group[GROUPED_WITHOUT_EMPTY * call->rows + row];
    case GROUP_WORDS: return call->row_group[GROUPED_BY_WORDS * call->rows + row];
    default: return call->row_group[row];
    }
}

/* The values of row r of a parameter that has a row for each group, or one row. */
static size_t group_row(const struct call *call, const struct variant *variant, size_t row)
{
    return call->row_group ? group_of(call, variant, row) * call->columns : 0;
}

static double parameter(double value, int how)
{
    switch (how) {
    case PARAMETER_FLOAT16: return to_type(value, TYPE_FLOAT16);
    case PARAMETER_BFLOAT16: return to_type(value, TYPE_BFLOAT16);
    case PARAMETER_INTEGER: return nearbyint(value);
    case PARAMETER_LEFT_OUT: return 0;
    case PARAMETER_NEGATED: return -value;
    case PARAMETER_TF32: return to_tf32(value);
    default: return value;
    }
}

/* An operand as the kernel takes it: perhaps for another type. */
static struct array read_as(const struct array *array, int how)
{
    return (struct array){array->data, how < READ_AS ? array->dtype : dtypes[how - READ_AS].dtype, array->count};
}

static double read_parameter(const struct array *array, size_t i, int how)
{
    if (how == AS_DEFINED) {
        return load(array, i);
    }
    const struct array read = read_as(array, how);

    return parameter(load(&read, i), how);
}

static double load_scale(const struct arithmetic *a, size_t i)
{
    const struct call *call = a->call;
    const int place = choice(a, STEP_SCALE_PLACE);
    size_t at;

    if (call->row_group) {
        const size_t row = group_row(call, a->variant, i / call->columns);
        at = turned_in_rows(row, i % call->columns, place, call->groups * call->columns);
    } else {
        at = channel_of(call, i, place);
    }
    return note(a->trace, "scale", read_parameter(&call->operands[OPERAND_SCALE], at, choice(a, STEP_SCALE)));
}

static double load_offset(const struct arithmetic *a, size_t i, const char *name)
{
    const struct array *offset = &a->call->operands[OPERAND_OFFSET];
    const size_t at = offset->count == 1 ? 0 : channel_of(a->call, i, choice(a, STEP_OFFSET_PLACE));

    return note(a->trace, name, read_parameter(offset, at, choice(a, STEP_OFFSET)));
}

/* The value of a small float's code by other rules. */
static double misread(npuq_dtype dtype, uint8_t code, int how)
{
    const npuq_ref_small_facts of = npuq_ref_small_facts_of((npuq_ref_dtype)dtype);
    const double own = (double)npuq_ref_small_float((npuq_ref_dtype)dtype, code);
    const int sign = 1 << (of.bits - 1);
    const int size = code & (sign - 1);
    const int fraction = size & ((1 << of.fraction) - 1);
    const int exponent = size >> of.fraction;
    const int significand = exponent == 0 ? fraction : fraction | 1 << of.fraction;
    const double number = ldexp(significand, (exponent == 0 ? 1 : exponent) - of.bias - of.fraction);
    const double value = code & sign ? -number : number;

    switch (how) {
    case INPUT_FNUZ: return code == sign ? (double)NAN : value / 2;
    case INPUT_WITHOUT_SPECIALS: return value;
    default: return exponent == 0 ? copysign(0, own) : own;
    }
}

/* x as the kernel reads it. */
static double read_x(const struct arithmetic *a, size_t i)
{
    const struct array *x = &a->call->operands[OPERAND_X];

    if (choice(a, STEP_INPUT_LAYOUT) != AS_DEFINED) {
        i = steps_place_of(a->call, choice(a, STEP_INPUT_LAYOUT), x->dtype, i);
    }
    switch (choice(a, STEP_INPUT_SIGN)) {
    case INPUT_UNSIGNED_INT4: return (double)array_bits(x, i);
    case INPUT_OFFSET_BINARY: return (double)array_bits(x, i) + dtype_of(x->dtype)->low;
    case INPUT_BORROWED: return load(x, i) + (i % 2 == 1 && load(x, i - 1) < 0);
    default: break;
    }
    const int how = choice(a, STEP_INPUT);
    const bool misreads = how >= INPUT_FNUZ && how < READ_AS;

    return misreads ? misread(x->dtype, (uint8_t)array_bits(x, i), how) : read_parameter(x, i, how);
}

/* x after the steps before its scaling, in the operators from floats to integers. */
static double load_x(const struct arithmetic *a, size_t i)
{
    return a->takes_x ? load(&a->call->operands[OPERAND_X], i) : rectified(a, read_x(a, i));
}

/* ---- dynamic operators: tokens ---------------------------------------------------------------------------------- */

/* Whether tokens are parts of the tensor, not of a row. */
static bool is_of_tensor(const struct call *call, const struct variant *variant)
{
    return call->options.per_tensor || variant->choice[STEP_BLOCK] == BLOCK_TENSOR ||
           variant->choice[STEP_BLOCK] >= BLOCK_ROWS;
}

static size_t length_of_whole(const struct call *call, const struct variant *variant)
{
    return is_of_tensor(call, variant) ? call->count : call->columns;
}

static size_t length_of_token(const struct call *call, const struct variant *variant)
{
    const uint64_t half = ((uint64_t)call->options.block + 1) / 2;
    const int how = variant->choice[STEP_BLOCK];

    switch (how) {
    case BLOCK_HALF: return half < call->columns ? (size_t)half : call->columns;
    case BLOCK_ROW: return call->columns;
    case BLOCK_TENSOR: return call->count;
    default: break;
    }
    switch (how - how % SIZED) {
    case BLOCK_RUNS: return variant_size(how);
    case BLOCK_ROWS: return variant_size(how) * call->columns;
    default: return call->token_length;
    }
}

static size_t tokens_of_whole(const struct call *call, const struct variant *variant)
{
    const size_t length = length_of_token(call, variant);
    const size_t whole = length_of_whole(call, variant);

    return whole > length ? (whole - 1) / length + 1 : 1;
}

static size_t rows_of_token(const struct call *call, const struct variant *variant)
{
    return variant->choice[STEP_BLOCK] == BLOCK_ONE_ROW ? 1 : call->token_rows;
}

/* The groups of microscaling, of another length or along another axis if the variant says so. */
static struct lines lines_of(const struct call *call, const struct variant *variant)
{
    const int last = call->ndim - 1;
    const int axis = call_axis(call);
    const int how = variant->choice[STEP_BLOCK];

    return call_lines(call, how == BLOCK_COLUMN ? (axis == last ? last - 1 : last) : axis,
                      how >= BLOCK_RUNS ? variant_size(how) : call->token_length);
}

size_t steps_tokens(const struct call *call, const struct variant *variant)
{
    if (call->op & MICROSCALES) {
        const struct lines lines = lines_of(call, variant);
        return call_groups(&lines);
    }
    return call->tokens == 0                             ? 0
           : variant->choice[STEP_BLOCK] == BLOCK_COLUMN ? call->columns
           : is_of_tensor(call, variant)
               ? tokens_of_whole(call, variant)
               : call_bands(call, rows_of_token(call, variant)) * tokens_of_whole(call, variant);
}

struct span steps_token_span(const struct call *call, const struct variant *variant, size_t token)
{
    if (call->op & MICROSCALES) {
        const struct lines lines = lines_of(call, variant);
        return call_span_of_group(&lines, token);
    }
    const size_t tokens = tokens_of_whole(call, variant);
    const size_t length = length_of_token(call, variant);
    const size_t whole = length_of_whole(call, variant);
    const size_t begin = token % tokens * length;
    const size_t end = length < whole - begin ? begin + length : whole;
    const int how = variant->choice[STEP_BLOCK];
    const bool of_tensor = is_of_tensor(call, variant);
    const struct row_range rows =
        of_tensor ? (struct row_range){0, 1} : call_rows_of_band(call, rows_of_token(call, variant), token / tokens);
    struct span span = {rows.begin * whole + begin, rows.begin * whole + end, 1, rows.end - rows.begin};

    if (how == BLOCK_COLUMN) {
        return (struct span){token, call->count, call->columns, 1};
    }
    if (how == BLOCK_REACHING) {
        span.end += variant->window < call->count - span.end ? variant->window : call->count - span.end;
        return span;
    }
    if (how == BLOCK_EARLY) {
        span.begin -= variant->window < span.begin ? variant->window : span.begin;
        return span;
    }
    switch (how - how % SIZED) {
    case BLOCK_FIRST: span.end = span.begin + variant_size(how); break;
    case BLOCK_LAST: span.begin = span.end - variant_size(how); break;
    default: span.begin = how == BLOCK_RUNNING ? 0 : span.begin; break;
    }
    return span;
}

/* The group whose scale lies at place i of 128 rows and 4 groups after others: of those that are 32 rows apart, the
 * scales lie side by side. */
static size_t group_in_tiles(const struct lines *lines, size_t i)
{
    const size_t tile = i / 512;
    const size_t tiles = lines->pairs / 2; /* along the axis */
    const size_t row = i / 4 % 4 * 32 + i / 16 % 32;

    return call_group_at(lines, (struct line_place){tile / tiles * 128 + row, tile % tiles * 4 + i % 4});
}

/* What lies at place i if the dimensions of scales have one order lies elsewhere by another. */
static size_t reordered(const struct lines *lines, size_t i, int from, int to)
{
    enum { OUTER, PAIR, HALF, INNER, DIMENSIONS }; /* of a pair, and of lines */
    static const unsigned char orders[][DIMENSIONS] = {
        [AS_DEFINED] = {OUTER, PAIR, INNER, HALF},         [PLACE_NOT_PAIRED] = {OUTER, PAIR, HALF, INNER},
        [PLACE_PLANES] = {HALF, OUTER, PAIR, INNER},       [PLACE_PLANES_OF_LINE] = {OUTER, HALF, PAIR, INNER},
        [PLACE_GROUPS_FIRST] = {PAIR, HALF, OUTER, INNER}, [PLACE_LINES_FIRST] = {OUTER, INNER, PAIR, HALF},
    };
    const size_t extents[DIMENSIONS] = {lines->count / lines->inner, lines->pairs, 2, lines->inner};
    size_t at[DIMENSIONS];
    size_t place = 0;

    for (int d = DIMENSIONS - 1; d >= 0; d--) {
        const unsigned char dimension = orders[from][d];
        at[dimension] = i % extents[dimension];
        i /= extents[dimension];
    }
    for (int d = 0; d < DIMENSIONS; d++) {
        const unsigned char dimension = orders[to][d];
        place = place * extents[dimension] + at[dimension];
    }
    return place;
}

size_t steps_group_for(const struct lines *lines, size_t i, int place)
{
    struct line_place at = call_place_of_group(lines, i);
    const size_t groups = lines->groups;

    if (place < PLACE_IN_PAIR && at.group >= groups) {
        return i; /* no group */
    }
    switch (place) {
    case PLACE_NEXT:
    case PLACE_PREVIOUS: {
        const size_t in_turn = turned(at.line * groups + at.group, place, lines->count * groups);
        return call_group_at(lines, (struct line_place){in_turn / groups, in_turn % groups});
    }
    case PLACE_FIRST:
    case PLACE_NEXT_BUT_LAST:
    case PLACE_PREVIOUS_BUT_FIRST: at.group = turned(at.group, place, groups); return call_group_at(lines, at);
    case PLACE_IN_PAIR: return i ^ 1;
    case PLACE_IN_TILES: return group_in_tiles(lines, i);
    case PLACE_WITHOUT_PADDING:
        /* The last place of a line has no group. */
        at = i < lines->count * groups ? (struct line_place){i / groups, i % groups}
                                       : (struct line_place){lines->count - 1, groups};
        return call_group_at(lines, at);
    case AS_DEFINED: return i;
    default: return reordered(lines, i, place, AS_DEFINED);
    }
}

/* Where the scale of a group lies in an order: the reverse. */
static size_t place_of_group(const struct lines *lines, size_t group, int order)
{
    const struct line_place at = call_place_of_group(lines, group);

    switch (order) {
    case PLACE_IN_PAIR: return group ^ 1;
    case PLACE_IN_TILES:
        return (at.line / 128 * (lines->pairs / 2) + at.group / 4) * 512 + at.line % 32 * 16 + at.line % 128 / 32 * 4 +
               at.group % 4;
    case PLACE_WITHOUT_PADDING: return at.line * lines->groups + at.group;
    default: return reordered(lines, group, AS_DEFINED, order);
    }
}

/* The token that element i is part of. */
static size_t token_with(const struct call *call, const struct variant *variant, size_t i)
{
    if (call->op & MICROSCALES) {
        const struct lines lines = lines_of(call, variant);
        return call_group_with(&lines, i);
    }
    const size_t whole = length_of_whole(call, variant);
    const size_t band = is_of_tensor(call, variant) ? 0 : call_band_of(call, rows_of_token(call, variant), i / whole);

    return variant->choice[STEP_BLOCK] == BLOCK_COLUMN
               ? i % call->columns
               : band * tokens_of_whole(call, variant) + i % whole / length_of_token(call, variant);
}

size_t steps_token_of(const struct call *call, const struct variant *variant, size_t i)
{
    if (call->tokens == 0) {
        return 0;
    }
    const int place = variant->choice[STEP_TOKEN];
    if (call->op & MICROSCALES) {
        const struct lines lines = lines_of(call, variant);
        return steps_group_for(&lines, call_group_with(&lines, i), place);
    }
    return turned(token_with(call, variant, i), place, steps_tokens(call, variant));
}

/* The token whose parameters lie at place i by the definition of tokens. */
static size_t token_at(const struct call *call, const struct variant *variant, size_t i)
{
    const int place = variant->choice[STEP_RETURNED_TOKEN];

    if (call->op & MICROSCALES) {
        const struct lines lines = call_lines(call, call_axis(call), call->token_length);
        return steps_group_for(&lines, i, place);
    }
    return turned(i, place, call->tokens);
}

size_t steps_token_of_parameter(const struct call *call, const struct variant *variant, size_t i)
{
    static const struct variant definition;

    i = token_at(call, variant, i);
    return variant->choice[STEP_BLOCK] == AS_DEFINED ? i
           : variant->choice[STEP_BLOCK] == BLOCK_COLUMN && !(call->op & MICROSCALES)
               ? i % call->columns
               : token_with(call, variant, steps_token_span(call, &definition, i).begin);
}

bool steps_is_vacant(const struct call *call, const struct variant *variant, size_t i)
{
    static const struct variant definition;

    if (!(call->op & MICROSCALES) || variant->choice[STEP_BLOCK] == AS_DEFINED) {
        return false;
    }
    const struct span own = steps_token_span(call, &definition, token_at(call, variant, i));
    return own.end == own.begin;
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* ---- dynamic operators: a row's parameters --------------------------------------------------------------------- */

/* x times its smooth scale. */
static double smoothed(const struct arithmetic *a, size_t i, bool in_range)
{
    const struct call *call = a->call;
    const struct array *smooth = &call->operands[OPERAND_SMOOTH];
    const double x = flush_input(a, load_x(a, i));
    const int how = choice(a, STEP_SMOOTH);

    note(in_range ? NULL : a->trace, call->options.rule && call->options.rule < RULES ? "v" : "x", x);
    if (!smooth->data || how == SMOOTH_LEFT_OUT || (how == SMOOTH_AFTER_RANGE && in_range) ||
        (how == SMOOTH_IN_RANGE_ONLY && !in_range)) {
        return x;
    }
    const size_t row = group_row(call, a->variant, i / call->columns);
    const int place = choice(a, STEP_SCALE_PLACE);
    const size_t at = turned_in_rows(row, i % call->columns, place, smooth->count);
    const double factor = read_parameter(smooth, at, choice(a, STEP_SCALE));
    const int type = how == SMOOTH_FLOAT16    ? TYPE_FLOAT16
                     : how == SMOOTH_BFLOAT16 ? TYPE_BFLOAT16
                                              : choice(a, STEP_PRECISION);

    note(in_range ? NULL : a->trace, "smooth scale", factor);
    if (how == SMOOTH_DIVIDES) {
        return note(in_range ? NULL : a->trace, "v = x / smooth scale", divide(a, x, factor, type));
    }
    return note(in_range ? NULL : a->trace, "v = x * smooth scale", multiply(a, x, factor, type));
}

struct extremes_key steps_extremes_key(const struct variant *variant)
{
    const unsigned char *choice = variant->choice;

    return (struct extremes_key){{choice[STEP_INPUT], choice[STEP_RELU], choice[STEP_SCALE_PLACE], choice[STEP_GROUP],
                                  choice[STEP_SCALE], choice[STEP_SMOOTH], choice[STEP_PRECISION], choice[STEP_RANGE],
                                  choice[STEP_SUBNORMALS], choice[STEP_BLOCK], (unsigned char)variant->window,
                                  (unsigned char)(variant->window >> 8)}};
}

bool steps_same_extremes(const struct variant *a, const struct variant *b)
{
    const struct extremes_key first = steps_extremes_key(a);
    const struct extremes_key second = steps_extremes_key(b);

    return memcmp(&first, &second, sizeof first) == 0;
}

static double ranged(const struct arithmetic *a, size_t i)
{
    return a->call->operands[OPERAND_SMOOTH].data ? smoothed(a, i, true) : flush_input(a, load_x(a, i));
}

/* Whether a number is larger; 0 is larger than -0. */
static bool is_above(double a, double b)
{
    return a > b || (a == 0 && b == 0 && is_negative(b) && !is_negative(a));
}

struct extremes steps_join(const struct extremes *first, const struct extremes *second)
{
    struct extremes e = *first;

    if (is_nan(e.hi) || is_nan(second->hi)) {
        return is_nan(e.hi) ? e : *second;
    }
    if (is_above(second->hi, e.hi)) {
        e.hi_at = second->hi_at;
        e.hi = second->hi;
    }
    if (is_above(e.lo, second->lo)) {
        e.lo_at = second->lo_at;
        e.lo = second->lo;
    }
    return e;
}

struct extremes steps_extremes(const struct call *call, const struct variant *variant, size_t token)
{
    const struct arithmetic a = arithmetic_of(call, variant, NULL);
    const int range = choice(&a, STEP_RANGE);
    const bool symmetric = call->op & (SYMMETRIC | MICROSCALES);
    const struct span span = steps_token_span(call, variant, token);
    struct extremes e = {-INFINITY, INFINITY, span.begin, span.begin};

    const bool signless = symmetric && range != RANGE_WITHOUT_SIGN && range != RANGE_ONE_SIDED;

    if (symmetric && range != RANGE_WITHOUT_SIGN && (span.end > span.begin || !(call->op & MICROSCALES))) {
        e.hi = 0; /* a group that a pair lacks has none */
    }
    for (size_t row = 0; row < span.rows; row++) {
        for (size_t at = span.begin; at < span.end; at += span.stride) {
            const size_t i = row * call->columns + at;
            const double v = ranged(&a, i);
            const double upper = signless ? fabs(v) : v;

            if (is_nan(v) && range != RANGE_IGNORES_NAN) {
                return (struct extremes){(double)NAN, (double)NAN, i, i};
            }
            if (is_above(upper, e.hi)) {
                e.hi_at = i;
                e.hi = upper;
            }
            if (is_above(e.lo, v)) {
                e.lo_at = i;
                e.lo = v;
            }
        }
    }
    if (!symmetric && range == RANGE_SYMMETRIC) {
        e.hi = fmax(fabs(e.hi), fabs(e.lo));
        e.lo = -e.hi;
    } else if (range == RANGE_WITH_ZERO) {
        e.hi = fmax(e.hi, 0);
        e.lo = fmin(e.lo, 0);
    }
    return e;
}

/* The kind of bound that the kernel has. */
static enum bound_kind bound_kind(const struct arithmetic *a)
{
    const int how = choice(a, STEP_LEAST);

    return how < LEAST_BOUNDS ? BOUND_OF_SCALE : (enum bound_kind)((how - LEAST_BOUNDS) / BOUNDS);
}

const double steps_bounds[BOUNDS] = {1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 0x1p-23};

/* The bound, in the type of the row's parameters. */
static double bound_of(const struct arithmetic *a)
{
    const int how = choice(a, STEP_LEAST);
    const double bound = variant_has_other_bound(a->variant) ? a->variant->bound.value
                         : how >= LEAST_BOUNDS               ? steps_bounds[(how - LEAST_BOUNDS) % BOUNDS]
                         : how == LEAST_MIN_SCALE            ? (double)a->call->options.min_scale
                                                             : steps_bounds[BOUND_1E_12];

    return to_type(bound, choice(a, STEP_PRECISION));
}

/* The scale with its bound, if there is one. NaN becomes the bound. */
static double bounded(const struct arithmetic *a, double scale, bool has_bound)
{
    const int how =
        bound_kind(a) == BOUND_OF_LARGEST || bound_kind(a) == ADDED_TO_LARGEST ? AS_DEFINED : choice(a, STEP_LEAST);
    const double least = bound_of(a);

    if (how == LEAST_NONE || (how == AS_DEFINED && !has_bound)) {
        return scale;
    }
    if (how == LEAST_ONE_FOR_ZERO) {
        return scale == 0 ? 1 : scale;
    }
    if (bound_kind(a) == ADDED_TO_SCALE) {
        return add(a, scale, least, choice(a, STEP_PRECISION));
    }
    return scale > least ? scale : least;
}

/* The largest |v| with its bound, if there is one. NaN stays. */
static double bounded_largest(const struct arithmetic *a, double m)
{
    switch (bound_kind(a)) {
    case BOUND_OF_LARGEST: return m < bound_of(a) ? bound_of(a) : m;
    case ADDED_TO_LARGEST: return add(a, m, bound_of(a), choice(a, STEP_PRECISION));
    default: return m;
    }
}

/* What takes the place of a scale: a power of two near it, or the one number for all. */
static double other_scale(const struct arithmetic *a, double scale)
{
    const int how = choice(a, STEP_OTHER_SCALE) % OTHER_SCALE_ONLY_RETURNED;
    int exponent;
    bool up;

    if (how == OTHER_SCALE_OF_DUMP) {
        return (double)(float)a->variant->scale.value;
    }
    if (scale == 0 || !is_finite(scale)) {
        return scale;
    }
    const double fraction = frexp(fabs(scale), &exponent); /* 0.5 or more */
    switch (how) {
    case OTHER_SCALE_UP: up = fraction > 0.5; break;
    case OTHER_SCALE_NEAREST: up = fraction * fraction >= 0.5; break;
    case OTHER_SCALE_NEARER: up = fraction >= 0.75; break;
    default: up = false; break;
    }
    return copysign(ldexp(1, up ? exponent : exponent - 1), scale);
}

/* Whether another scale takes the place of the one that x is divided by, or only of the one that is returned. */
static bool uses_other_scale(const struct arithmetic *a)
{
    const int how = choice(a, STEP_OTHER_SCALE);

    return how != AS_DEFINED && how < OTHER_SCALE_ONLY_RETURNED;
}

static bool returns_other_scale(const struct arithmetic *a)
{
    return choice(a, STEP_OTHER_SCALE) > OTHER_SCALE_ONLY_RETURNED;
}

/* A parameter in the type that the kernel keeps it in. */
static double kept(const struct arithmetic *a, double value)
{
    const int type = choice(a, STEP_TOKEN_TYPE);

    return to_type(value, type != AS_DEFINED ? type : choice(a, STEP_PRECISION));
}

/* Notes the place of an extreme, unless the kernel widens the range: then x may not have the extreme. */
static void note_place(const struct arithmetic *a, const char *step, size_t i)
{
    const int range = choice(a, STEP_RANGE);

    if (range != RANGE_SYMMETRIC && range != RANGE_WITH_ZERO) {
        note_any(a->trace, step, (double)i, TRACE_PLACE);
    }
}

/* A range by the number that the kernel multiplies it with, if there is one. */
static double clipped(const struct arithmetic *a, double extreme)
{
    const int wide = choice(a, STEP_PRECISION);
    const bool is_clipped = choice(a, STEP_RANGE) == RANGE_CLIPPED;

    return is_clipped ? multiply(a, extreme, to_type(a->variant->bound.value, wide), wide) : extreme;
}

static struct token asymmetric_token(const struct arithmetic *a, const struct extremes *e)
{
    const struct dtype *y = dtype_of(a->call->options.y_dtype);
    const double dmax = y->high;
    const int wide = choice(a, STEP_PRECISION);
    const int unit = choice(a, STEP_UNIT);
    const double steps = y->high - y->low + (unit == UNIT_ONE_MORE ? 1 : unit == UNIT_ONE_LESS ? -1 : 0);
    struct token token;

    note(a->trace, "hi", e->hi);
    note_place(a, "hi is at", e->hi_at);
    note(a->trace, "lo", e->lo);
    note_place(a, "lo is at", e->lo_at);
    const double highest = clipped(a, e->hi);
    const double lowest = clipped(a, e->lo);
    const double range = add(a, highest, -lowest, wide);
    const bool by_factor = unit == UNIT_OTHER_FACTOR;
    const double factor = range == 0 ? 1 : divide(a, steps, range, wide); /* looked at by factor only */
    const double d = unit == UNIT_RECIPROCAL ? multiply(a, range, divide(a, 1, steps, wide), wide)
                     : by_factor             ? divide(a, 1, factor, wide)
                                             : divide(a, range, steps, wide);
    note(a->trace, "d = (hi - lo) / RANGE", d);
    token.scale = kept(a, bounded(a, d, true));
    if (uses_other_scale(a)) {
        token.scale = other_scale(a, token.scale);
    }
    note(a->trace, "scale", token.scale);

    const double low = -dmax - 1;
    const double lo = by_factor ? multiply(a, lowest, factor, wide) : divide(a, lowest, token.scale, wide);
    const double hi = by_factor ? multiply(a, highest, factor, wide) : divide(a, highest, token.scale, wide);
    const double from_low = add(a, low, -lo, wide);
    double offset = add(a, dmax, -hi, wide);
    switch (choice(a, STEP_TOKEN_OFFSET)) {
    case TOKEN_OFFSET_INTEGER: offset = nearbyint(offset); break;
    case TOKEN_OFFSET_TRUNCATED: offset = trunc(offset); break;
    case TOKEN_OFFSET_FROM_LOW: offset = from_low; break;
    case TOKEN_OFFSET_FROM_LOW_INTEGER: offset = nearbyint(from_low); break;
    case TOKEN_OFFSET_UNSIGNED: offset = clamp(nearbyint(-lo), 0, dmax - low) + low; break;
    case TOKEN_OFFSET_SMALLER_ERROR:
        if (add(a, add(a, low, lo, wide), add(a, dmax, hi, wide), wide) > 0) {
            offset = from_low;
        }
        offset = nearbyint(clamp(offset, low, dmax));
        break;
    default: break;
    }
    offset = kept(a, offset);
    const double given_offset = (double)(float)a->variant->offset.value;
    const bool one_offset = variant_has_one_scale(a->variant) && !is_nan(given_offset);
    token.offset = note(a->trace, "offset", one_offset && uses_other_scale(a) ? given_offset : offset);
    token.back = note(a->trace, "back = 1 / scale", by_factor ? factor : divide(a, 1, token.scale, wide));
    token.returned_scale = returns_other_scale(a) ? other_scale(a, token.scale) : token.scale;
    token.returned_offset = choice(a, STEP_OFFSET_SIGN) == OFFSET_NEGATED ? -token.offset
                            : one_offset                                  ? given_offset
                                                                          : token.offset;
    return token;
}

/* What x is multiplied by. dynamic_block_quant rounds 1 / m before the product with DMAX. */
static double symmetric_factor(const struct arithmetic *a, double dmax, double m)
{
    const int wide = choice(a, STEP_PRECISION);
    const bool rows = a->call->options.block == 0;
    const bool in_one = rows || a->call->options.rule == RULE_FLOAT8_BLOCK;

    if (in_one != (choice(a, STEP_UNIT) == UNIT_OTHER_FACTOR)) {
        return note(a->trace, rows ? "r = DMAX / m" : "q = DMAX / m", divide_on_vector_unit(a, dmax, m, wide));
    }
    const double inverse = note(a->trace, "1 / m", divide_on_vector_unit(a, 1, m, wide));
    return note(a->trace, rows ? "r = (1 / m) * DMAX" : "q = (1 / m) * DMAX", multiply(a, inverse, dmax, wide));
}

/* Applies min_scale to the parameters of a block. NaN stays, and an infinite scale of 8-bit floats. */
static void limit_by_min_scale(const struct arithmetic *a, double *q, double *scale)
{
    const struct arithmetic unseen = {a->call, a->variant, NULL, a->rule, a->takes_x};
    const int wide = choice(a, STEP_PRECISION);
    const double min_scale = to_type((double)a->call->options.min_scale, wide);
    const bool to_float8 = a->call->options.rule == RULE_FLOAT8_BLOCK;
    const double most = to_float8 ? divide_on_vector_unit(&unseen, 1, min_scale, wide) : divide(a, 1, min_scale, wide);

    *q = *q < min_scale ? min_scale : *q;
    if (!to_float8) {
        note(a->trace, "q, at least min_scale", *q);
        *scale = *scale > most ? most : *scale;
    } else if (*scale > most && is_finite(*scale)) {
        *scale = note(a->trace, "1 / min_scale", divide_on_vector_unit(a, 1, min_scale, wide));
    }
}

/* The integer type to round and saturate to. */
static npuq_dtype rounded_dtype(const struct arithmetic *a)
{
    return call_rounded_dtype(a->call->op, a->call->options.y_dtype);
}

/* What others have for the largest value of an 8-bit float: e4m3 with infinities, and one value less of e5m2. */
static double lesser_largest(const struct arithmetic *a)
{
    return a->call->options.y_dtype == NPUQ_FLOAT8_E4M3FN ? 240 : 49152;
}

/* The largest integer, or dst_type_max: m becomes this. */
static double dmax_of(const struct arithmetic *a)
{
    const int unit = choice(a, STEP_UNIT);

    if (unit == UNIT_LESSER) {
        return lesser_largest(a);
    }
    if (a->call->options.dst_type_max > 0 && unit != UNIT_OF_TYPE) {
        return (double)a->call->options.dst_type_max;
    }
    return dtype_of(rounded_dtype(a))->high + (unit == UNIT_ONE_MORE ? 1 : unit == UNIT_HALF_MORE ? 0.5 : 0);
}

/* What becomes DMAX, or, if the kernel says so, another end of the range, which it returns in dmax. */
static double find_largest(const struct arithmetic *a, const struct extremes *e, double *dmax)
{
    const int wide = choice(a, STEP_PRECISION);
    double m = clipped(a, e->hi);
    size_t at = e->hi_at;

    *dmax = dmax_of(a);
    if (choice(a, STEP_RANGE) == RANGE_ONE_SIDED &&
        divide(a, -e->lo, *dmax + 1, wide) > divide(a, e->hi, *dmax, wide)) {
        m = -e->lo;
        at = e->lo_at;
        *dmax += 1;
    } else if (choice(a, STEP_RANGE) == RANGE_SIGNED) {
        m = is_negative(ranged(a, at)) ? -m : m;
        *dmax = -*dmax - 1;
    }
    m = note(a->trace, a->call->options.block > 0 ? "m = max |x|" : "m = max |v|", bounded_largest(a, m));
    note_place(a, "m is at", at);
    if (choice(a, STEP_RANGE) != AS_DEFINED) {
        note(a->trace, "DMAX", *dmax);
    }
    return m;
}

/* Whether the factor decides anything. */
static bool uses_factor(const struct arithmetic *a)
{
    const int scaling = choice(a, STEP_SCALING);
    const int form = choice(a, STEP_FORM);

    return a->rule[STEP_SCALING] == AS_DEFINED || scaling == SCALING_FACTOR || form == FORM_FACTOR ||
           form == FORM_OTHER;
}

static struct token symmetric_token(const struct arithmetic *a, const struct extremes *e)
{
    const struct arithmetic unseen = {a->call, a->variant, NULL, a->rule, a->takes_x};
    const int wide = choice(a, STEP_PRECISION);
    const int least = choice(a, STEP_LEAST);
    const int form = choice(a, STEP_FORM);
    double dmax;
    const double m = find_largest(a, e, &dmax);
    const double r = symmetric_factor(uses_factor(a) ? a : &unseen, dmax, m);
    /* What is returned need not be the scale that x is divided by. */
    const int computed = form == FORM_LARGEST || form == FORM_FACTOR ? a->rule[STEP_FORM] : form;
    const bool inverse = a->call->options.inverse_form != (computed == FORM_OTHER);
    struct token token = {.back = r, .largest = m, .dmax = dmax};
    double scale;

    if (computed == FORM_DIVIDED) {
        scale = a->call->options.rule == RULE_FLOAT8_BLOCK
                    ? note(a->trace, "m / DMAX", divide_on_vector_unit(a, m, dmax, wide))
                    : divide(a, m, dmax, wide);
    } else if (inverse) {
        scale = divide(a, 1, r, wide);
    } else {
        scale = multiply(a, m, divide_for(a, 1, dmax, wide, NPUQ_FLOAT32), wide); /* a constant, not a division */
    }
    token.scale = bounded(a, scale, false);
    if ((!(token.scale == scale) && !is_nan(token.scale)) || bound_kind(a) == ADDED_TO_SCALE) {
        token.back = divide(a, 1, kept(a, token.scale), wide);
    }
    if (a->call->options.min_scale > 0 && least != LEAST_NONE && least != LEAST_MIN_SCALE) {
        limit_by_min_scale(a, &token.back, &token.scale);
    }
    token.scale = kept(a, token.scale);
    if (uses_other_scale(a)) {
        const double other = other_scale(a, token.scale);
        const bool is_factor = form == FORM_FACTOR && variant_has_one_scale(a->variant);
        token.scale = is_factor ? divide(a, 1, other, wide) : other;
        token.back = is_factor ? other : divide(a, 1, other, wide);
    }
    switch (form) {
    case FORM_LARGEST: token.returned_scale = kept(a, m); break;
    case FORM_FACTOR: token.returned_scale = kept(a, token.back); break;
    default: token.returned_scale = token.scale; break;
    }
    if (returns_other_scale(a)) {
        token.returned_scale = other_scale(a, token.returned_scale);
    }
    note(a->trace, "scale", token.returned_scale);
    return token;
}

/* ---- microscaling: the scale of a group ------------------------------------------------------------------------- */

/* The code by a rule that no options of the operator have. m is finite, and not negative. */
static int other_code(const struct arithmetic *a, int rule, float m)
{
    const npuq_ref_small_facts y = npuq_ref_small_facts_of((npuq_ref_dtype)a->call->options.y_dtype);
    const int32_t half = (int32_t)1 << (22 - y.fraction);
    const int emax = npuq_ref_exponent(y.largest) - 127;
    int32_t bits = (int32_t)npuq_ref_to_bits(m);
    int code;

    switch (rule) {
    case CODE_HALF_UP: bits += half; break;
    case CODE_HALF_DOWN: bits += half - 1; break;
    case CODE_CEIL: bits += 0x7FFFFF; break;
    default: break;
    }
    code = bits >> 23;
    switch (rule) {
    case CODE_HALF_UP:
    case CODE_HALF_DOWN:
        if (code == 255) {
            return 255;
        }
        break;
    case CODE_NEAREST: return m == 0 ? 0 : (int)clamp(nearbyint(log2((double)m / (double)y.largest)) + 127, 0, 254);
    case CODE_ROUND_SCALE: return m == 0 ? 0 : code <= emax ? 1 : code - emax + ((bits >> 16 & 0x7F) > 0x60);
    case CODE_FLOOR_PLUS_1: return (code > emax ? code - emax : 0) + 1;
    case CODE_EMAX_LESS: code += 1; break;
    case CODE_EMAX_MORE: code -= 1; break;
    default: break;
    }
    return code > emax ? code - emax : 0;
}

/* The group by scale_alg 1 with another largest value of y. m is finite, and not negative. */
static npuq_ref_mx_group lesser_group(const struct arithmetic *a, float m, const npuq_ref_mx *options)
{
    const float c = npuq_ref_div(1, (float)lesser_largest(a));
    const float bounded = m != 0 && m < options->max_low_bound ? options->max_low_bound : m;
    const int32_t S = npuq_ref_mx_scale_by_product(npuq_ref_mul(bounded, c), 1);
    const bool is_zero = m == 0 && options->small_groups != NPUQ_REF_RULE_N;

    return (npuq_ref_mx_group){(uint8_t)S, is_zero ? 0 : npuq_ref_float8_e8m0((uint8_t)(254 - S))};
}

/* The options of the operator by which a kernel with the variant finds scales: those of a rule that they have. */
static npuq_ref_mx mx_options(const struct arithmetic *a)
{
    npuq_ref_mx options = a->call->options.mx;
    const bool has_4_bits = dtype_of(a->call->options.y_dtype)->bits == 4;

    switch (choice(a, STEP_CODE)) {
    case AS_DEFINED: break;
    case CODE_RCEIL:
        options.scale_algorithm = has_4_bits ? 2 : 1;
        options.dst_type_max = 0;
        break;
    case CODE_HALF_DOWN:
        options.scale_algorithm = 2;
        options.dst_type_max = 7;
        break;
    default: options.scale_algorithm = 0; break;
    }
    options.max_low_bound =
        options.scale_algorithm == 1 && choice(a, STEP_LEAST) != LEAST_NONE ? options.max_low_bound : 0;
    if (choice(a, STEP_SMALL_GROUPS) != AS_DEFINED) {
        options.small_groups = (npuq_ref_small_groups)(choice(a, STEP_SMALL_GROUPS) - 1);
    }
    return options;
}

/* The scale is the code, and back is what elements are multiplied by. */
static struct token group_token(const struct arithmetic *a, const struct extremes *e)
{
    const struct call *call = a->call;
    const npuq_ref_mx options = mx_options(a);
    const int rule = choice(a, STEP_CODE);
    const bool is_last = call_axis(call) == call->ndim - 1;
    float m = (float)e->hi;

    if (m < 0) { /* a pair without its second group */
        return (struct token){.scale = note_integer(a->trace, "S", 0)};
    }
    note(a->trace, "a = max |x|", e->hi);
    note_place(a, "a is at", e->hi_at);
    m = (float)to_type((double)m, choice(a, STEP_PRECISION));
    if (choice(a, STEP_LEAST) == LEAST_M_1E_4 && m < 1e-4F) {
        m = 1e-4F;
    }
    npuq_ref_mx_group group = npuq_ref_mx_group_of(m, (npuq_ref_dtype)call->operands[OPERAND_X].dtype, is_last,
                                                   (npuq_ref_dtype)call->options.y_dtype, &options);
    if (rule >= CODE_HALF_UP && rule != CODE_HALF_DOWN && npuq_ref_exponent(m) < 255) {
        const int code = other_code(a, rule, m);
        const bool is_small = options.small_groups == NPUQ_REF_RULE_S   ? code == 0
                              : options.small_groups != NPUQ_REF_RULE_N ? npuq_ref_exponent(m) == 0
                                                                        : false;
        group.S = (uint8_t)code;
        group.R = is_small || code == 255 ? 0 : npuq_ref_float8_e8m0((uint8_t)(254 - code));
    }
    if (choice(a, STEP_UNIT) == UNIT_LESSER && npuq_ref_exponent(m) < 255 && options.scale_algorithm == 1) {
        group = lesser_group(a, m, &options);
    }
    if (choice(a, STEP_BAD_GROUPS) == BAD_INFINITY_IS_LARGE && m == INFINITY) {
        group = (npuq_ref_mx_group){254, npuq_ref_float8_e8m0(0)};
    }
    note_integer(a->trace, "S", (double)group.S);
    if (group.S < 255) {
        note(a->trace, "R", (double)group.R);
    }
    const uint8_t returned = choice(a, STEP_RETURNED) == RETURNED_WITHOUT_BIAS               ? (uint8_t)(group.S - 127)
                             : choice(a, STEP_RETURNED) == RETURNED_INVERSE && group.S < 255 ? (uint8_t)(254 - group.S)
                                                                                             : group.S;
    return (struct token){.scale = group.S, .back = (double)group.R, .largest = e->hi, .returned_scale = returned};
}

struct token steps_token(const struct call *call, const struct variant *variant, const struct extremes *extremes,
                         struct trace *trace)
{
    const struct arithmetic a = arithmetic_of(call, variant, trace);

    if (call->op & MICROSCALES) {
        return group_token(&a, extremes);
    }
    struct token token = call->op & SYMMETRIC ? symmetric_token(&a, extremes) : asymmetric_token(&a, extremes);
    token.returned_scale = to_type(token.returned_scale, choice(&a, STEP_RETURNED));
    token.returned_offset = to_type(token.returned_offset, choice(&a, STEP_RETURNED));
    return token;
}

/* ---- from t to an integer -------------------------------------------------------------------------------------- */

static double round_half_even(double t)
{
    return nearbyint(t);
}

static double round_value(const struct arithmetic *a, double t)
{
    const bool is_float64 = choice(a, STEP_PRODUCT) == TYPE_FLOAT64 && choice(a, STEP_RESULT) != RESULT_THROUGH_FLOAT32;
    const int wide = is_float64 ? TYPE_FLOAT64 : AS_DEFINED;

    t = is_float64 ? t : (double)(float)t;
    switch (choice(a, STEP_ROUNDING)) {
    case ROUND_HALF_AWAY: return round(t);
    case ROUND_HALF_UP: return floor(t) + (t - floor(t) >= 0.5);
    case ROUND_HALF_DOWN: return floor(t) + (t - floor(t) > 0.5);
    case ROUND_FLOOR: return floor(t);
    case ROUND_CEILING: return ceil(t);
    case ROUND_TRUNCATE: return trunc(t);
    case ROUND_HALF_ADDED_UP: return floor(add(a, t, 0.5, wide));
    case ROUND_HALF_ADDED_8: return floor(add(a, t, 8.5, wide)) - 8;
    case ROUND_HALF_ADDED_AWAY: return trunc(add(a, t, copysign(0.5, t), wide));
    default: return round_half_even(t);
    }
}

struct integer_range {
    double low;
    double high;
    int bits;
};

/* The range that the kernel clamps to. */
static struct integer_range range_of(const struct arithmetic *a, npuq_dtype dtype)
{
    const struct dtype *type = dtype_of(dtype);
    struct integer_range range = {type->low, type->high, type->bits};

    switch (choice(a, STEP_SATURATION)) {
    case SATURATE_SYMMETRIC: range.low = -range.high; break;
    case SATURATE_UNSIGNED: range = (struct integer_range){0, 2 * range.high + 1, range.bits}; break;
    default: break;
    }
    return range;
}

/* What the lowest bits of an integer say. An infinite one has none. */
static double wrapped(double value, int bits)
{
    const double all = ldexp(1, bits);
    const double rest = is_finite(value) ? fmod(value, all) : 0;

    return rest >= all / 2 ? rest - all : rest < -all / 2 ? rest + all : rest;
}

/* A rounded value in an integer type that the kernel has before it clamps. */
static double before_clamp(const struct arithmetic *a, double value)
{
    switch (choice(a, STEP_SATURATION)) {
    case SATURATE_WRAPPED_16: return wrapped(value, 16);
    case SATURATE_WRAPPED_24: return wrapped(value, 24);
    case SATURATE_WRAPPED_32: return wrapped(value, 32);
    default: return value;
    }
}

/* A rounded value to the range. NaN has been dealt with. */
static double saturate(const struct arithmetic *a, double value, struct integer_range range)
{
    value = before_clamp(a, value);
    switch (choice(a, STEP_SATURATION)) {
    case SATURATE_INDEFINITE: /* x86's conversion: all that an int32 has not is the least int32 */
        return value > INT32_MAX || value < INT32_MIN ? range.low : clamp(value, range.low, range.high);
    case SATURATE_WRAP: return clamp(value, INT32_MIN, INT32_MAX);
    case SATURATE_INT8: return clamp(value, INT8_MIN, INT8_MAX);
    case SATURATE_HIGH: return clamp(value, INT32_MIN, range.high);
    default: return clamp(value, range.low, range.high);
    }
}

static void note_unrounded(const struct arithmetic *a, double t)
{
    if (a->trace) {
        a->trace->unrounded = t;
    }
}

static double nan_integer(const struct arithmetic *a, struct integer_range range)
{
    if (choice(a, STEP_SATURATION) == SATURATE_INDEFINITE) {
        return range.low;
    }
    switch (choice(a, STEP_NAN)) {
    case NAN_LOW: return range.low;
    case NAN_HIGH: return range.high;
    default: return 0;
    }
}

static double to_integer(const struct arithmetic *a, double t, struct integer_range range)
{
    note_unrounded(a, t);
    if (is_nan(t)) {
        return note_integer(a->trace, "NaN to an integer", nan_integer(a, range));
    }
    const double rounded = note_integer(a->trace, "round", round_value(a, t));
    return note_integer(a->trace, "saturate", saturate(a, rounded, range));
}

static uint64_t integer_bits(double value, int bits)
{
    return (uint64_t)(int64_t)value & (((uint64_t)1 << bits) - 1);
}

/* An integer as the kernel stores it, in more bits than it has where int4 change others. */
static uint64_t stored_bits(const struct arithmetic *a, double value, int bits)
{
    const double sign = ldexp(1, bits - 1);
    const int stored = variant_packs(a->variant) ? 32 : bits;

    switch (choice(a, STEP_RESULT)) {
    case RESULT_MAGNITUDE: return integer_bits(fabs(value), stored);
    case RESULT_SIGN_MAGNITUDE: return integer_bits(value < 0 ? sign + fmod(-value, sign) : value, stored);
    case RESULT_ONES_COMPLEMENT: return integer_bits(value < 0 ? value - 1 : value, stored);
    case RESULT_NEGATED: return integer_bits(-value, stored);
    default: return integer_bits(value, stored);
    }
}

static uint64_t swap_bytes(uint64_t bits, size_t size)
{
    uint64_t swapped = 0;

    for (size_t i = 0; i < size; i++) {
        swapped = swapped << 8 | (bits >> 8 * i & 0xFF);
    }
    return swapped;
}

/* ---- from t to a floating-point type ---------------------------------------------------------------------------- */

/* The value of a type next to t towards zero. */
static uint32_t truncated(float t, npuq_dtype dtype)
{
    const uint32_t bits = dtype_float_bits(dtype, t);
    const float value = dtype_float(dtype, bits);

    return fabsf(value) > fabsf(t) ? bits - 1 : bits;
}

/* Halves away from zero. */
static uint32_t half_away(float t, npuq_dtype dtype)
{
    const uint32_t below = truncated(t, dtype);
    const float low = dtype_float(dtype, below);
    const float next = dtype_float(dtype, below + 1);
    const double middle = ((double)low + (double)next) / 2;

    return isfinite(next) && fabs((double)t) == fabs(middle) ? below + 1 : dtype_float_bits(dtype, t);
}

/* t as float32, rounded to odd: then a second rounding, to fewer bits, gives the same as rounding t once. */
static float to_odd(double t)
{
    const float nearest = (float)t;

    if ((double)nearest == t || npuq_ref_to_bits(nearest) % 2 == 1) {
        return nearest;
    }
    return nextafterf(nearest, t > (double)nearest ? INFINITY : -INFINITY);
}

/* t, which the kernel converts to a wider type on the way. */
static double converted_first(const struct arithmetic *a, double t)
{
    switch (choice(a, STEP_RESULT)) {
    case RESULT_THROUGH_FLOAT32: return note(a->trace, "to float32", (double)(float)t);
    case RESULT_THROUGH_FLOAT16: return to_type((double)to_odd(t), TYPE_FLOAT16);
    case RESULT_THROUGH_BFLOAT16: return to_type((double)to_odd(t), TYPE_BFLOAT16);
    default: return t;
    }
}

static uint64_t float_bits(const struct arithmetic *a, double t, npuq_dtype dtype)
{
    const struct dtype *type = dtype_of(dtype);
    const uint32_t sign = 1U << (type->bits - 1);
    const int how = choice(a, STEP_RESULT);
    uint32_t bits;

    t = converted_first(a, t);
    const float value = dtype == NPUQ_FLOAT32 ? (float)t : to_odd(t);
    if (is_nan(t)) {
        return dtype_float_bits(dtype, value) | (choice(a, STEP_NAN) == NAN_NEGATIVE ? sign : 0);
    }
    bits = how == RESULT_TRUNCATED   ? truncated(value, dtype)
           : how == RESULT_HALF_AWAY ? half_away(value, dtype)
                                     : dtype_float_bits(dtype, value);
    if (how == RESULT_FINITE && !is_finite((double)dtype_float(dtype, bits))) {
        bits -= 1;
    }
    if (how == RESULT_FLUSHED && (bits & (sign - 1)) >> type->fraction == 0) {
        bits &= sign;
    }
    return bits;
}

/* ---- from t to a small float ------------------------------------------------------------------------------------ */

/* A type of 8 or 4 bits. Its values at an exponent are multiples of a unit. The one with tapered fields has a cast of
 * its own. */
struct small_type {
    npuq_ref_small_facts of;
    bool is_tapered;
    int least; /* exponent: below are multiples of its unit, too */
};

static npuq_dtype other_small_dtype(npuq_dtype dtype)
{
    switch (dtype) {
    case NPUQ_FLOAT8_E4M3FN: return NPUQ_FLOAT8_E5M2;
    case NPUQ_FLOAT8_E5M2: return NPUQ_FLOAT8_E4M3FN;
    case NPUQ_FLOAT4_E2M1: return NPUQ_FLOAT4_E1M2;
    default: return NPUQ_FLOAT4_E2M1;
    }
}

/* The type that the kernel makes. */
static struct small_type small_type_of(const struct arithmetic *a, npuq_dtype dtype)
{
    const struct dtype *type = dtype_of(dtype);
    const int how = choice(a, STEP_SMALL_TYPE);

    if (type->kind == KIND_TAPERED_FLOAT) {
        return (struct small_type){{.bits = 8, .largest = (float)type->high}, true, -22};
    }
    npuq_ref_small_facts of =
        npuq_ref_small_facts_of((npuq_ref_dtype)(how == SMALL_TYPE_OTHER ? other_small_dtype(dtype) : dtype));
    if (how == SMALL_TYPE_FNUZ) { /* the values of all codes are halved, and the last one is a number */
        of.bias += 1;
        of.largest = dtype == NPUQ_FLOAT8_E4M3FN ? 240 : of.largest;
    }
    return (struct small_type){of, false, 1 - of.bias};
}

enum rounding_choice steps_rounding_to_small(const struct call *call)
{
    if (dtype_of(call->options.y_dtype)->kind == KIND_TAPERED_FLOAT) {
        return ROUND_HALF_AWAY;
    }
    switch (call->options.mx.rounding) {
    case NPUQ_REF_ROUND: return ROUND_HALF_AWAY;
    case NPUQ_REF_FLOOR: return ROUND_FLOOR;
    default: return ROUND_HALF_EVEN;
    }
}

/* The exponent of a size, but at least that of the type. */
static int small_exponent(const struct small_type *type, double size)
{
    int exponent;

    (void)frexp(size, &exponent);
    return size == 0 || exponent - 1 < type->least ? type->least : exponent - 1;
}

static double small_unit(const struct small_type *type, int exponent)
{
    const int fraction = !type->is_tapered ? type->of.fraction
                         : exponent < -15  ? 0
                                           : npuq_ref_hifloat8_form_of(abs(exponent), 0).fraction;

    return ldexp(1, exponent - fraction);
}

/* The code of so many units at an exponent: perhaps of the next one, too. */
static uint32_t small_code(const struct small_type *type, int exponent, double units)
{
    return type->is_tapered ? npuq_ref_to_hifloat8((float)(units * small_unit(type, exponent)))
                            : ((uint32_t)(exponent - type->least) << type->of.fraction) + (uint32_t)units;
}

/* The code of a size, in units, that is not beyond the largest value. */
static uint32_t rounded_code(const struct arithmetic *a, const struct small_type *type, int exponent, double units,
                             bool is_negative)
{
    const int other = choice(a, STEP_ROUNDING);
    const double below = floor(units);
    const double rest = units - below;
    bool up;

    switch (other != AS_DEFINED ? other : (int)steps_rounding_to_small(a->call)) {
    case ROUND_HALF_AWAY: up = rest >= 0.5; break;
    case ROUND_HALF_TO_ZERO: up = rest > 0.5; break;
    case ROUND_TRUNCATE: up = false; break;
    case ROUND_FLOOR: up = rest > 0 && is_negative; break;
    default: up = rest > 0.5 || (rest == 0.5 && small_code(type, exponent, below) % 2 == 1); break;
    }
    return small_code(type, exponent, below + up);
}

/* The code after that of the largest value, as if codes went on, if a size is nearer to its value; otherwise 0. */
static uint32_t code_beyond(const struct small_type *type, double size)
{
    const double largest = (double)type->of.largest;
    const int exponent = small_exponent(type, largest);
    const double unit = small_unit(type, exponent);
    const uint32_t code = small_code(type, exponent, largest / unit);
    const double middle = largest + unit / 2;

    return size > middle || (size == middle && (type->is_tapered || code % 2 == 1)) ? code + 1 : 0;
}

/* The code of t without its sign. */
static uint32_t code_of_size(const struct arithmetic *a, const struct small_type *type, float t)
{
    const int saturation = choice(a, STEP_SATURATION);
    const uint32_t beyond = saturation == SATURATE_NONE ? code_beyond(type, fabs((double)t)) : 0;
    const double most = (double)type->of.largest;
    const double size = fmin(fabs((double)t), saturation == SATURATE_LESSER ? fmin(most, lesser_largest(a)) : most);
    const int exponent = small_exponent(type, size);
    const int own_exponent = npuq_ref_exponent(fabsf(t)) - 127;

    if (beyond > 0) {
        return beyond;
    }
    if (choice(a, STEP_RESULT) == RESULT_SHIFT_WRAPS && size > 0 && own_exponent < type->least) {
        const uint32_t significand = (npuq_ref_to_bits(t) & 0x7FFFFF) | 0x800000;
        const int places = 23 - type->of.fraction + type->least - own_exponent;
        const double units = ldexp(significand, -(places & 31));
        return rounded_code(a, type, exponent, units, t < 0) & ((1U << (type->of.bits - 1)) - 1);
    }
    return rounded_code(a, type, exponent, size / small_unit(type, exponent), t < 0);
}

/* The code of a small float. NaN is 0. */
static uint64_t small_bits(const struct arithmetic *a, double exact, npuq_dtype dtype)
{
    const struct small_type type = small_type_of(a, dtype);
    const bool is_fnuz = choice(a, STEP_SMALL_TYPE) == SMALL_TYPE_FNUZ;
    const bool turns_zero = choice(a, STEP_RESULT) == RESULT_ZERO_SIGN;
    const bool is_usual = choice(a, STEP_RESULT) == AS_DEFINED && choice(a, STEP_SMALL_TYPE) == AS_DEFINED &&
                          choice(a, STEP_SATURATION) == AS_DEFINED && choice(a, STEP_ROUNDING) == AS_DEFINED;
    const int nan = choice(a, STEP_NAN);
    float t = to_odd(converted_first(a, exact));
    uint32_t code;

    if (npuq_ref_is_nan(t) && (nan == NAN_LOW || nan == NAN_HIGH)) {
        t = nan == NAN_LOW ? -INFINITY : INFINITY; /* it is clamped, as these are */
    } else if (npuq_ref_is_nan(t)) {
        return nan != NAN_KEPT ? 0 : type.is_tapered || is_fnuz ? 0x80 : 0x7F;
    }
    const uint32_t sign = (uint32_t)is_negative((double)t) << (type.of.bits - 1);
    if (!is_usual) {
        code = code_of_size(a, &type, t);
    } else if (type.is_tapered) {
        code = npuq_ref_to_hifloat8(t) & ~sign;
    } else {
        code = npuq_ref_to_small_float((npuq_ref_dtype)dtype, t, a->call->options.mx.rounding) & ~sign;
    }
    if (choice(a, STEP_SUBNORMALS) & SUBNORMAL_OF_SMALL && code >> (type.is_tapered ? 3 : type.of.fraction) == 0) {
        code = 0;
    }
    return code > 0 || (!is_fnuz && type.is_tapered == turns_zero) ? sign | code : 0;
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

/* Rounds and saturates; an integer with the offset between the two if the kernel adds it there. */
static uint64_t quantised(const struct arithmetic *a, double scaled, bool has_offset, double offset)
{
    const npuq_dtype dtype = rounded_dtype(a);
    const struct integer_range range = range_of(a, dtype);
    const int order = choice(a, STEP_ORDER);
    double value;

    if (!dtype_is_integer(dtype)) {
        return small_bits(a, scaled, dtype);
    }
    if (has_offset && order == ORDER_ROUND_FIRST && !is_nan(scaled)) {
        const double rounded = note_integer(a->trace, "round", round_value(a, scaled));
        value = to_integer(a, note(a->trace, "+ offset", add(a, rounded, offset, choice(a, STEP_SUM))), range);
    } else if (has_offset && order == ORDER_CLAMP_FIRST) {
        const double first = to_integer(a, scaled, range);
        value = to_integer(a, note(a->trace, "+ offset", add(a, first, offset, choice(a, STEP_SUM))), range);
    } else {
        value = to_integer(a, scaled, range);
    }
    const uint64_t bits = stored_bits(a, value, range.bits);
    if (dtype == a->call->options.y_dtype) {
        return bits;
    }
    note_integer(a->trace, "as uint8, XOR 0x80", (double)(bits ^ 0x80));
    return bits ^ 0x80;
}

/* Whether the offset is added before anything is rounded to an integer. */
static bool adds_first(const struct arithmetic *a, bool has_offset)
{
    return has_offset && choice(a, STEP_ORDER) != ORDER_ROUND_FIRST && choice(a, STEP_ORDER) != ORDER_CLAMP_FIRST;
}

/* Adds the offset to t, the scaled x, then rounds and saturates. A fused sum takes x and the factor instead of t. */
static uint64_t with_offset(const struct arithmetic *a, double t, double x, double factor, bool has_offset, double z)
{
    const int sum = choice(a, STEP_SUM);

    if (has_offset && is_nan(t) && choice(a, STEP_NAN) == NAN_BEFORE_OFFSET) {
        t = x = factor = 0;
    }
    if (adds_first(a, has_offset)) {
        t = sum == SUM_FUSED ? fused(a, x, factor, z) : add(a, t, z, sum);
        note(a->trace, "+ offset", t);
    }
    return quantised(a, t, has_offset, z);
}

/* t = x scaled, plus the offset, in the way of quantize, group_quant and the dynamic operators. */
static uint64_t affine(const struct arithmetic *a, double x, double s, bool divides, bool has_offset, double z)
{
    const int product = choice(a, STEP_PRODUCT);
    const int wide = choice(a, STEP_PRECISION);
    double t;

    switch (choice(a, STEP_SCALING)) {
    case SCALING_RECIPROCAL:
        t = note(a->trace, "x * (1 / scale)", multiply(a, x, divide(a, 1, s, wide), product));
        break;
    case SCALING_DIVISION: t = note(a->trace, "x / (1 / scale)", divide(a, x, divide(a, 1, s, wide), product)); break;
    case SCALING_OPPOSITE: divides = !divides; /* fall through */
    default:
        if (divides) {
            t = note(a->trace, "x / scale", divide_on_vector_unit(a, x, s, product));
        } else {
            t = multiply(a, x, s, product);
            note_product(a, "x * scale", t, x, s, adds_first(a, has_offset));
        }
        break;
    }
    return with_offset(a, t, x, s, has_offset, z);
}

static uint64_t quantize_element(const struct arithmetic *a, size_t i)
{
    const bool has_offset = a->call->operands[OPERAND_OFFSET].data && choice(a, STEP_OFFSET) != PARAMETER_LEFT_OUT;
    const bool adds_to_x = has_offset && choice(a, STEP_ORDER) == ORDER_ADD_FIRST;
    const double x = note(a->trace, "x", load_x(a, i));
    const double s = load_scale(a, i);
    const double z = has_offset ? load_offset(a, i, "offset") : 0;
    const double to_scale = adds_to_x ? note(a->trace, "x + offset", add(a, x, z, choice(a, STEP_SUM))) : x;

    return affine(a, to_scale, s, a->call->options.divides, has_offset && !adds_to_x, z);
}

static uint64_t dynamic_element(const struct arithmetic *a, const struct token *token, size_t i)
{
    const bool has_offset = a->call->op & ASYMMETRIC;
    const double v = smoothed(a, i, false);
    const int product = choice(a, STEP_PRODUCT);
    double t;

    switch (choice(a, STEP_SCALING)) {
    case SCALING_RECIPROCAL:
    case SCALING_INVERSE_OR_0: {
        const bool is_zero = choice(a, STEP_SCALING) == SCALING_INVERSE_OR_0 && token->scale == 0;
        const double inverse = is_zero ? 0 : divide(a, 1, token->scale, choice(a, STEP_PRECISION));
        t = note(a->trace, "v * (1 / scale)", multiply(a, v, inverse, product));
        break;
    }
    case SCALING_DIVISION: t = note(a->trace, "v / scale", divide_on_vector_unit(a, v, token->scale, product)); break;
    case SCALING_DMAX_FIRST:
        t = note(a->trace, "v * DMAX", multiply(a, v, token->dmax, choice(a, STEP_PRECISION)));
        t = note(a->trace, "/ m", divide(a, t, token->largest, product));
        break;
    default:
        t = multiply(a, v, token->back, product);
        note_product(a,
                     has_offset                   ? "v * back"
                     : a->call->options.block > 0 ? "x * q"
                                                  : "v * r",
                     t, v, token->back, adds_first(a, has_offset));
        break;
    }
    if (product == PRODUCT_FLOAT16_TRUNCATED) {
        t = (double)dtype_float(NPUQ_FLOAT16, truncated((float)t, NPUQ_FLOAT16));
        note(a->trace, "to float16, towards zero", t);
    }
    return with_offset(a, t, v, token->back, has_offset, token->offset);
}

/* An element of a group. */
static uint64_t group_element(const struct arithmetic *a, const struct token *token, size_t i)
{
    const double x = note(a->trace, "x", load_x(a, i));
    const int how = choice(a, STEP_BAD_GROUPS);
    const bool makes_nan = how == BAD_NAN || (how != BAD_ZEROS && a->call->options.mx.bad_is_nan);

    if (token->scale == 255) {
        return makes_nan ? (is_nan(x) && is_negative(x) ? 0xFF : 0x7F) : 0;
    }
    const bool is_half = a->call->operands[OPERAND_X].dtype == NPUQ_BFLOAT16;
    const int other = choice(a, STEP_PRODUCT);
    const double p = multiply(a, x, token->back, other != AS_DEFINED ? other : is_half ? TYPE_BFLOAT16 : AS_DEFINED);
    return small_bits(a, note(a->trace, "p = x * R", p), a->call->options.y_dtype);
}

/* t times the scale, or by it where anti_quant is done the opposite way. */
static double times_scale(const struct arithmetic *a, double t, double s)
{
    const int product = choice(a, STEP_PRODUCT);

    return choice(a, STEP_SCALING) == SCALING_OPPOSITE ? note(a->trace, "/ scale", divide(a, t, s, product))
                                                       : note(a->trace, "* scale", multiply(a, t, s, product));
}

static uint64_t anti_quant_element(const struct arithmetic *a, size_t i)
{
    const bool has_offset = a->call->operands[OPERAND_OFFSET].data && choice(a, STEP_OFFSET) != PARAMETER_LEFT_OUT;
    const int sum = choice(a, STEP_SUM);
    const double x = note(a->trace, "x", read_x(a, i));
    const double s = load_scale(a, i);
    const double z = has_offset ? load_offset(a, i, "offset") : 0;
    double t = x;

    if (has_offset && choice(a, STEP_ORDER) == ORDER_DISTRIBUTED) {
        t = note(a->trace, "x * scale + offset * scale", fused(a, x, s, multiply(a, z, s, choice(a, STEP_PRODUCT))));
    } else if (has_offset && choice(a, STEP_ORDER) == ORDER_TWO_PRODUCTS) {
        t = note(a->trace, "x * scale", multiply(a, x, s, choice(a, STEP_PRODUCT)));
        t = note(a->trace, "+ offset * scale", add(a, t, multiply(a, z, s, choice(a, STEP_PRODUCT)), sum));
    } else if (has_offset && choice(a, STEP_ORDER) == ORDER_SCALE_FIRST) {
        t = note(a->trace, "+ offset", add(a, times_scale(a, t, s), z, sum));
    } else {
        if (has_offset) {
            t = note(a->trace, "x + offset", add(a, t, z, sum));
        }
        t = times_scale(a, t, s);
    }
    return float_bits(a, rectified(a, t), a->call->options.y_dtype);
}

/* What the code of a group's scale stands for. */
static double value_of_code(const struct arithmetic *a, int code)
{
    const int how = choice(a, STEP_EXPONENT);
    const bool is_signed = how == EXPONENT_SIGNED || how == EXPONENT_SIGNED_UNBIASED;
    const bool is_unbiased = how == EXPONENT_UNBIASED || how == EXPONENT_SIGNED_UNBIASED;
    const int exponent = is_signed && code > INT8_MAX ? code - 256 : code;
    const bool is_field = how == EXPONENT_SHIFTED || how == EXPONENT_NEGATIVE;
    const int bias = is_unbiased ? 0 : how == EXPONENT_BIAS_126 ? 126 : how == EXPONENT_BIAS_128 ? 128 : 127;

    if (how == EXPONENT_NONE) {
        return 1;
    }
    if (is_field || (how == EXPONENT_ZERO && code == 0) || (how == EXPONENT_INFINITE && code == 255)) {
        const uint32_t sign = how == EXPONENT_NEGATIVE && code > INT8_MAX ? 0x80000000U : 0;
        return (double)npuq_ref_from_bits(sign | (uint32_t)code << 23);
    }
    if (how == EXPONENT_NUMBER) {
        return ldexp(1, exponent - bias); /* beyond float32 */
    }
    return code == 255 && !is_signed && !is_unbiased ? (double)NAN : (double)(float)ldexp(1, exponent - bias);
}

/* The place of the scale that a kernel takes for element i. */
static size_t place_of_scale(const struct arithmetic *a, size_t i)
{
    const size_t count = a->call->operands[OPERAND_SCALE].count;
    const struct lines lines = lines_of(a->call, a->variant);
    const size_t group = steps_group_for(&lines, call_group_with(&lines, i), choice(a, STEP_TOKEN));
    const int place = choice(a, STEP_SCALE_PLACE);

    return place < PLACE_IN_PAIR ? turned(group % count, place, count) : place_of_group(&lines, group, place) % count;
}

/* x times the scale of its group. The product of two such values is exact in float64. */
static uint64_t anti_group_element(const struct arithmetic *a, size_t i)
{
    const struct array *codes = &a->call->operands[OPERAND_SCALE];
    const size_t at = place_of_scale(a, i);
    const int code = (int)array_bits(codes, at);
    const int how = choice(a, STEP_SCALE);
    const double x = note(a->trace, "x", read_x(a, i));

    note_integer(a->trace, "S", code);
    const double s = how >= READ_AS ? read_parameter(codes, at, how) : parameter(value_of_code(a, code), how);
    note(a->trace, "scale = 2^(S - 127)", s);
    const double t =
        choice(a, STEP_SCALING) == SCALING_OPPOSITE
            ? note(a->trace, "x / scale", divide(a, x, s, AS_DEFINED))
            : note(a->trace, "x * scale", finish(a, (float)(flush_input(a, x) * flush_input(a, s)), AS_DEFINED));
    return float_bits(a, rectified(a, t), a->call->options.y_dtype);
}

/* The sum in an integer type that the kernel has. */
static int32_t narrowed(const struct arithmetic *a, int32_t sum)
{
    switch (choice(a, STEP_INPUT)) {
    case INPUT_WRAPS_16: return (int32_t)note_integer(a->trace, "16 bits", wrapped((double)sum, 16));
    case INPUT_WRAPS_24: return (int32_t)note_integer(a->trace, "24 bits", wrapped((double)sum, 24));
    case INPUT_SATURATES_16:
        return (int32_t)note_integer(a->trace, "to int16", clamp((double)sum, INT16_MIN, INT16_MAX));
    default: return sum;
    }
}

static double convert_sum(const struct arithmetic *a, int32_t sum)
{
    float converted = npuq_ref_int32(sum);

    if (choice(a, STEP_INPUT) >= READ_AS) {
        return note(a->trace, "as float32", (double)npuq_ref_from_bits((uint32_t)sum));
    }
    if (choice(a, STEP_INPUT) == INPUT_TRUNCATED && fabs((double)converted) > fabs((double)sum)) {
        converted = nextafterf(converted, 0);
    }
    return note(a->trace, "to float32",
                choice(a, STEP_INPUT) == INPUT_FLOAT16 ? to_type((double)converted, TYPE_FLOAT16) : (double)converted);
}

/* Which bias element i gets. */
static size_t bias_of(const struct arithmetic *a, size_t i)
{
    return turned(i % a->call->columns, choice(a, STEP_BIAS_PLACE), a->call->columns);
}

/* x of dequant and requant, with an int32 bias. */
static double load_sum(const struct arithmetic *a, size_t i)
{
    const struct array bias = read_as(&a->call->operands[OPERAND_BIAS], choice(a, STEP_BIAS));
    const int32_t x = ((const int32_t *)a->call->operands[OPERAND_X].data)[i];
    const int how = choice(a, STEP_BIAS);
    int32_t sum = x;

    note_integer(a->trace, "x", (double)x);
    if (bias.data && bias.dtype == NPUQ_INT32 && how != BIAS_LEFT_OUT && how != BIAS_AFTER_SCALING) {
        const int32_t b = ((const int32_t *)bias.data)[bias_of(a, i)];
        const double wide = (double)x + (double)b;
        if (how == BIAS_FLOAT) {
            return note(a->trace, "x + bias", add(a, convert_sum(a, x), (double)npuq_ref_int32(b), AS_DEFINED));
        }
        sum = how == BIAS_SATURATES ? (int32_t)clamp(wide, INT32_MIN, INT32_MAX) : npuq_ref_wrapping_add(x, b);
        note_integer(a->trace, "x + bias", (double)sum);
    }
    sum = narrowed(a, sum);
    const int product = choice(a, STEP_PRODUCT);
    const bool keeps_bits = product == TYPE_FLOAT64 || product == PRODUCT_FIXED_POINT;
    return keeps_bits && choice(a, STEP_INPUT) < READ_AS ? (double)sum : convert_sum(a, sum);
}

static uint64_t dequant_element(const struct arithmetic *a, size_t i)
{
    const struct array *rows = &a->call->operands[OPERAND_ROW_SCALE];
    const struct array bias = read_as(&a->call->operands[OPERAND_BIAS], choice(a, STEP_BIAS));
    const int product = choice(a, STEP_PRODUCT);
    const int first = product < PRODUCT_FIRST_FLOAT16 ? product : product - PRODUCT_FIRST_FLOAT16 + TYPE_FLOAT16;
    const int sum = choice(a, STEP_SUM);
    const int scaling = choice(a, STEP_SCALING);
    const int how = choice(a, STEP_BIAS);
    const bool late_integer = bias.data && bias.dtype == NPUQ_INT32 && how == BIAS_AFTER_SCALING;
    const bool has_bias = bias.data && how != BIAS_LEFT_OUT && (bias.dtype != NPUQ_INT32 || late_integer);
    const bool has_rows = rows->data && scaling != SCALING_NO_ROW;
    double t = load_sum(a, i);
    struct factor {
        const char *step;
        double value;
    } factors[2] = {{"* scale", load_scale(a, i)}};
    int factor_count = 1;
    double b = 0;

    if (has_rows) {
        const double row = note(a->trace, "activation scale",
                                load(rows, turned(i / a->call->columns, choice(a, STEP_TOKEN), a->call->rows)));
        factors[factor_count++] = (struct factor){"* activation scale", row};
    }
    if (has_bias) {
        b = note(a->trace, "bias", load(&bias, bias_of(a, i)));
    }
    if (has_rows && scaling == SCALING_SCALES_FIRST) {
        const int wide = product == TYPE_FLOAT64 ? TYPE_FLOAT64 : AS_DEFINED;
        factors[0].value =
            note(a->trace, "weight scale * activation scale", multiply(a, factors[0].value, factors[1].value, wide));
        factor_count = 1;
    } else if (has_rows && scaling == SCALING_ROW_FIRST) {
        const struct factor weight = factors[0];
        factors[0] = factors[1];
        factors[1] = weight;
    }
    /* The number of products before the bias is added. */
    const int bias_at = !has_bias                                    ? -1
                        : how == BIAS_AFTER_SCALING && !late_integer ? 0
                        : how == BIAS_BEFORE_ROW_SCALE               ? 1
                                                                     : factor_count;
    if (bias_at == 0) {
        t = note(a->trace, "+ bias", add(a, t, b, sum));
    }
    for (int n = 0; n < factor_count; n++) {
        const double x = t;
        t = multiply(a, x, factors[n].value, n == 0 ? first : product);
        note_product(a, factors[n].step, t, x, factors[n].value, bias_at == n + 1);
        if (bias_at == n + 1) {
            t = note(a->trace, "+ bias", sum == SUM_FUSED ? fused(a, x, factors[n].value, b) : add(a, t, b, sum));
        }
    }
    return float_bits(a, rectified(a, t), a->call->options.y_dtype);
}

static double word_offset(const struct arithmetic *a, uint64_t word)
{
    switch (choice(a, STEP_OFFSET)) {
    case PARAMETER_LEFT_OUT: return 0;
    case PARAMETER_NEGATED: return -(double)npuq_ref_word_offset(word);
    case PARAMETER_UNSIGNED: return (double)(word >> 37 & 0x1FF);
    default: return (double)npuq_ref_word_offset(word);
    }
}

/* x times a scale as gemmlowp does: by 31 bits and a shift, with a rounding after each. Halves of the first go up, of
 * the second away from zero. An infinite scale and NaN have no such form. x is any number: its bits may be read as
 * those of a float. */
static double fixed_point(const struct arithmetic *a, double x, double scale)
{
    int exponent;

    if (!is_finite(scale) || is_nan(x)) {
        return multiply(a, x, scale, AS_DEFINED);
    }
    const double fraction = frexp(scale, &exponent);
    if (exponent > 0) {
        x = ldexp(x, exponent);
        exponent = 0;
    }
    const int64_t product = (int64_t)clamp(x, INT32_MIN, INT32_MAX) * (int64_t)ldexp(fraction, 31);
    const int64_t half = (int64_t)1 << 30;
    return round(ldexp((double)((product + (product < 0 ? 1 - half : half)) / ((int64_t)1 << 31)), exponent));
}

static uint64_t requant_element(const struct arithmetic *a, size_t i)
{
    static const struct integer_range nine_bits = {-256, 255, 9};
    const struct array *words = &a->call->operands[OPERAND_SCALE];
    const struct array *bias = &a->call->operands[OPERAND_BIAS];
    const struct integer_range range = range_of(a, NPUQ_INT8);
    const double x = load_sum(a, i);
    const uint64_t word = array_bits(words, channel_of(a->call, i, choice(a, STEP_SCALE_PLACE)));
    const uint64_t offset_word = array_bits(words, channel_of(a->call, i, choice(a, STEP_OFFSET_PLACE)));
    const float m =
        choice(a, STEP_WORD) == WORD_ALL_BITS ? npuq_ref_from_bits((uint32_t)word) : npuq_ref_word_scale(word);
    const double s = note(a->trace, "scale of the word", parameter((double)m, choice(a, STEP_SCALE)));
    const double o = word_offset(a, offset_word);
    const int order = choice(a, STEP_ORDER);
    const int product = choice(a, STEP_PRODUCT);
    double p = note(a->trace, "p = x * scale",
                    product == PRODUCT_FIXED_POINT ? fixed_point(a, x, s) : multiply(a, x, s, product));
    double value;

    if (bias->data && choice(a, STEP_BIAS) == BIAS_AFTER_SCALING) {
        p = note(a->trace, "+ bias", add(a, p, load(bias, bias_of(a, i)), choice(a, STEP_SUM)));
    }
    if (a->call->options.y_dtype == NPUQ_FLOAT16) {
        return float_bits(a, rectified(a, p), NPUQ_FLOAT16);
    }
    note_integer(a->trace, "offset of the word", o);
    if (order == ORDER_OFFSET_FIRST) {
        p = note(a->trace, "p + offset", add(a, p, o, choice(a, STEP_SUM)));
        return stored_bits(a, to_integer(a, p, range), 8);
    }
    const struct integer_range first = order == ORDER_ONE_CLAMP     ? range_of(a, NPUQ_INT32)
                                       : order == ORDER_CLAMP_FIRST ? range
                                                                    : nine_bits;
    value = is_nan(p) ? nan_integer(a, first) : clamp(before_clamp(a, round_value(a, p)), first.low, first.high);
    note_integer(a->trace,
                 order == ORDER_ONE_CLAMP     ? "round"
                 : order == ORDER_CLAMP_FIRST ? "round, clamp to int8"
                                              : "round, clamp to -256..255",
                 value);
    note_unrounded(a, p + o);
    value = note_integer(a->trace, "+ offset", value + o);
    if (choice(a, STEP_SATURATION) != SATURATE_WRAP) {
        value = note_integer(a->trace, "clamp to int8", saturate(a, value, range));
    }
    return stored_bits(a, value, 8);
}

static uint64_t word_element(const struct arithmetic *a, size_t i)
{
    static const struct integer_range nine_bits = {-256, 255, 9};
    const struct array *scale = &a->call->operands[OPERAND_X];
    const struct array *offset = &a->call->operands[OPERAND_OFFSET];
    const int how = choice(a, STEP_WORD);
    const size_t scale_at = scale->count == 1 ? 0 : turned(i, choice(a, STEP_SCALE_PLACE), scale->count);
    const bool nearest = a->call->options.rounds_to_nearest != (how == WORD_OTHER_ROUND_MODE);
    uint32_t bits = (uint32_t)array_bits(scale, scale_at);
    uint64_t word;
    double o = 0;

    note(a->trace, "scale", (double)npuq_ref_from_bits(bits));
    switch (choice(a, STEP_SCALING)) {
    case SCALING_RECIPROCAL: bits = npuq_ref_to_bits((float)divide(a, 1, load(scale, scale_at), AS_DEFINED)); break;
    default: break;
    }
    word = npuq_ref_pack(bits, 0, nearest);
    if (how == WORD_ALL_BITS) {
        word = (word & ~(uint64_t)UINT32_MAX) | bits;
    }
    note(a->trace, "scale, 19 bits", (double)npuq_ref_from_bits((uint32_t)word));
    if (offset->data) {
        const size_t at = offset->count == 1 ? 0 : turned(i, choice(a, STEP_OFFSET_PLACE), offset->count);
        const double z = note(a->trace, "offset", read_parameter(offset, at, choice(a, STEP_OFFSET)));
        o = is_nan(z) ? nan_integer(a, nine_bits) : saturate(a, round_value(a, z), nine_bits);
        note_integer(a->trace, "offset, 9 bits", o);
    }
    word |= integer_bits(o, 9) << 37;
    if (how == WORD_NO_FLAG) {
        word &= ~((uint64_t)1 << 46);
    }
    note_integer(a->trace, "flag, bit 46", (double)(word >> 46 & 1));
    if (choice(a, STEP_RESULT) == RESULT_HALVES_SWAPPED) {
        word = word << 32 | word >> 32;
    }
    return word;
}

static uint64_t element_bits(const struct arithmetic *a, const struct token *token, size_t i)
{
    switch (a->call->op) {
    case QUANTIZE:
    case GROUP_QUANT: return quantize_element(a, i);
    case TRANS_QUANT_PARAM: return word_element(a, i);
    case ANTI_QUANT: return anti_quant_element(a, i);
    case DEQUANT: return dequant_element(a, i);
    case REQUANT: return requant_element(a, i);
    case DYNAMIC_MX_QUANT: return group_element(a, token, i);
    case ANTI_MX_QUANT: return anti_group_element(a, i);
    default: return dynamic_element(a, token, i);
    }
}

uint64_t steps_element(const struct call *call, const struct variant *variant, const struct token *token, size_t i,
                       struct trace *trace)
{
    const struct arithmetic a = arithmetic_of(call, variant, trace);
    const uint64_t bits = element_bits(&a, token, i);

    switch (variant->choice[STEP_RESULT]) {
    case RESULT_BYTES_SWAPPED: return swap_bytes(bits, npuq_dtype_size(call->options.y_dtype));
    case RESULT_OFFSET_BINARY: {
        const uint64_t middle = (uint64_t)1 << (dtype_of(call->options.y_dtype)->bits - 1);
        return variant_packs(variant) ? (uint32_t)(bits + middle) : bits ^ middle;
    }
    default: return bits;
    }
}

uint64_t steps_parameter(const struct call *call, const struct token *token, enum result result)
{
    if (call->op & MICROSCALES) {
        return (uint64_t)token->returned_scale;
    }
    const float value = (float)(result == RESULT_SCALE ? token->returned_scale : token->returned_offset);

    return npuq_ref_to_bits(npuq_ref_canonical(value == 0 ? 0 : value)); /* compared as values */
}
