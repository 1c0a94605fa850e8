/* SPDX-License-Identifier: BSD-3-Clause */
#include "mx.h"

#include "../element.h"
#include "dynamic.h"

enum { X = NPUQ_AT_X, Y = NPUQ_AT_Y };

/* ---- options ----------------------------------------------------------------------------------------------------- */

static npuq_status check_choice(const char *op, const char *name, int32_t value, int32_t most)
{
    return value < 0 || value > most
               ? npuq_fail(NPUQ_ERROR_ARGUMENT, op, name, "is %d; expected 0 to %d", (int)value, (int)most)
               : NPUQ_OK;
}

static npuq_status check_block(const char *op, const npuq_mx *options)
{
    if (options->block % 32 != 0 || options->block < 0 || options->block > 1024) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "options.block",
                         "is %d; expected a multiple of 32 up to 1024, or 0 for 32", (int)options->block);
    }
    for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; i++) {
        if (options->reserved[i] != 0) {
            return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "options.reserved", "element %d is %d; expected 0", (int)i,
                             (int)options->reserved[i]);
        }
    }
    return NPUQ_OK;
}

static npuq_status check_axis(const char *op, const npuq_mx_options *options, int ndim)
{
    if (options->axis < -ndim || options->axis >= ndim) {
        return npuq_fail(NPUQ_ERROR_AXIS, op, "axis", "is %d; expected %d to %d, as x has %d dimension%s",
                         (int)options->axis, -ndim, ndim - 1, ndim, npuq_plural(ndim));
    }
    return options->given ? check_block(op, options->given) : NPUQ_OK;
}

static npuq_shape_facts find_facts(const npuq_mx_options *options, const npuq_tensor *values)
{
    return (npuq_shape_facts){.ndim = values->ndim,
                              .shape = values->shape,
                              .axis = npuq_find_mx_axis(options, values->ndim),
                              .block = npuq_find_mx_block(options->given)};
}

npuq_status npuq_check_mx_groups(const npuq_arguments *arguments, const npuq_mx_options *options, int of_values,
                                 int scale)
{
    const npuq_tensor *values = arguments->tensors[of_values];
    const npuq_status status = check_axis(arguments->signature->op, options, values->ndim);

    if (status != NPUQ_OK) {
        return status;
    }
    const npuq_shape_facts facts = find_facts(options, values);

    return npuq_check_shape_by(arguments, scale, NPUQ_SHAPE_OF_PAIRS, &facts,
                               "the shape of x, its axis in pairs of groups, and 2");
}

npuq_status npuq_check_mx_rule(const npuq_arguments *arguments, const npuq_mx *o)
{
    static const char *const roundings[] = {"rint", "round", "floor"};
    const char *op = arguments->signature->op;
    const npuq_type_info *y = arguments->infos[Y];
    const bool has_8_bits = npuq_bits_of(y->type) == 8;
    const uint32_t dmax = npuq_bits_of_argument(&o->dst_type_max);
    const uint32_t bound = npuq_bits_of_argument(&o->max_low_bound);
    npuq_status status;

    if ((status = check_choice(op, "options.rounding", o->rounding, NPUQ_MX_FLOOR)) != NPUQ_OK ||
        (status = check_choice(op, "options.scale_algorithm", o->scale_algorithm, 2)) != NPUQ_OK ||
        (status = check_choice(op, "options.small_groups", o->small_groups, 2)) != NPUQ_OK ||
        (status = check_choice(op, "options.bad_groups", o->bad_groups, 1)) != NPUQ_OK ||
        (status = npuq_check_positive(op, "options.max_low_bound", bound)) != NPUQ_OK) {
        return status;
    }
    if (has_8_bits && o->rounding != NPUQ_MX_RINT) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "options.rounding", "is %d (%s); expected 0 (rint), as y is %s",
                         (int)o->rounding, roundings[o->rounding], y->name);
    }
    if ((o->scale_algorithm == 1 && !has_8_bits) ||
        (o->scale_algorithm == 2 && y->type != (uint8_t)NPUQ_TYPE_FLOAT4_E2M1)) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "options.scale_algorithm", "is %d; expected 0%s, as y is %s",
                         (int)o->scale_algorithm,
                         has_8_bits                                  ? " or 1"
                         : y->type == (uint8_t)NPUQ_TYPE_FLOAT4_E2M1 ? " or 2"
                                                                     : "",
                         y->name);
    }
    if (!has_8_bits && o->bad_groups != 0) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "options.bad_groups",
                         "is 1 (NaN); expected 0, as y is %s, which has no NaN", y->name);
    }
    if ((dmax & 0x7FFFFFFF) != 0 && (dmax < 0x40C00000 || dmax > 0x41400000)) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "options.dst_type_max", "is another number; expected 0, or 6 to 12");
    }
    if ((bound & 0x7FFFFFFF) != 0 && o->scale_algorithm != 1) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "options.max_low_bound",
                         "is another number; expected 0, as options.scale_algorithm is %d", (int)o->scale_algorithm);
    }
    return NPUQ_OK;
}

npuq_status npuq_mx_scale_shape(const npuq_tensor *x, int32_t axis, const npuq_mx *options,
                                int64_t shape[NPUQ_MAX_NDIM])
{
    static const char op[] = "mx_scale_shape";
    const npuq_mx_options o = {axis, options};
    npuq_status status;

    if (!x || !shape) {
        return npuq_fail(NPUQ_ERROR_NULL, op, x ? "shape" : "x", "is null; expected %s",
                         x ? "room for the extents" : "a tensor");
    }
    if (x->ndim < 1 || x->ndim > NPUQ_MAX_NDIM - 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "x", "has %d dimensions; expected 1 to %d", (int)x->ndim,
                         NPUQ_MAX_NDIM - 1);
    }
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] < 0) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "x", "dimension %d is %lld; expected 0 or more", d,
                             (long long)x->shape[d]);
        }
    }
    if ((status = check_axis(op, &o, x->ndim)) == NPUQ_OK) {
        const npuq_shape_facts facts = find_facts(&o, x);

        (void)npuq_make_shape(NPUQ_SHAPE_OF_PAIRS, &facts, shape);
    }
    return status;
}

/* ---- scales ------------------------------------------------------------------------------------------------------ */

npuq_mx_rule npuq_make_mx_rule(const npuq_mx *given, npuq_type x, npuq_type y, bool is_last_axis)
{
    static const npuq_mx defaults = {0};
    const npuq_mx *o = given ? given : &defaults;
    const float most = npuq_limits_of(y).most;
    const uint32_t dmax = npuq_bits_of_argument(&o->dst_type_max) & 0x7FFFFFFF;
    const bool by_half =
        o->scale_algorithm == 2 && (dmax == 0 || dmax == npuq_bits_of_float(6) || dmax == npuq_bits_of_float(7));
    const bool has_4_bits = npuq_is_4_bit_float(y);
    const bool shifts =
        x != NPUQ_TYPE_FLOAT32 && y != NPUQ_TYPE_FLOAT4_E1M2 && o->rounding != (int32_t)NPUQ_SMALL_FLOOR;
    const npuq_float_form from = npuq_float_form_of(x);

    return (npuq_mx_rule){.divisor = o->scale_algorithm == 1 ? npuq_bits_of_float(most) : dmax,
                          .low_bound = npuq_bits_of_argument(&o->max_low_bound) & 0x7FFFFFFF,
                          .shift_bias = (int16_t)(from.bias - npuq_float_form_of(y).bias - 127),
                          .least_shift = has_4_bits               ? 2
                                         : x == NPUQ_TYPE_FLOAT16 ? -31
                                                                  : 0,
                          .log2_shift = shifts ? from.mantissa : 0,
                          .way = o->scale_algorithm == 0 ? NPUQ_MX_BY_EXPONENT
                                 : by_half               ? NPUQ_MX_BY_HALF
                                                         : NPUQ_MX_BY_PRODUCT,
                          .exponent = (uint8_t)((npuq_bits_of_float(most) >> 23) - 127),
                          .carry = dmax == npuq_bits_of_float(7) ? 0x1F : 0x3F,
                          .goes_down = by_half ? x == NPUQ_TYPE_FLOAT32 && is_last_axis : o->scale_algorithm != 1,
                          .small_groups = (uint8_t)o->small_groups,
                          .bad_is_nan = o->bad_groups != 0};
}

enum { RULE_S, RULE_E, RULE_N, EXPONENTS = 0x7F800000, MANTISSA = 0x007FFFFF };

/* A scale code of a finite group, and what is 0 if it is small. */
typedef struct group {
    uint32_t code;
    uint32_t size;
} group;

static inline group of_exponent(uint32_t largest, const npuq_mx_rule *rule)
{
    const uint32_t exponent = largest >> 23;
    const uint32_t code = exponent > rule->exponent ? exponent - rule->exponent : 0;

    return (group){code, rule->small_groups == RULE_S ? code : exponent};
}

static inline group of_product(uint32_t largest, const npuq_mx_rule *rule, float factor)
{
    const uint32_t bounded = largest != 0 && largest < rule->low_bound ? rule->low_bound : largest;
    const float product = npuq_float_of_bits(bounded) * factor;
    const uint32_t bits = npuq_bits_of_float(product);
    const uint32_t exponent = bits >> 23; /* below 254: a factor is 1 / 6 at most */
    const uint32_t least = exponent > 0 ? 0 : rule->goes_down ? MANTISSA : 0x400000;

    return (group){exponent + ((bits & MANTISSA) > least), largest};
}

static inline group of_half(uint32_t largest, const npuq_mx_rule *rule)
{
    const uint32_t half = (rule->goes_down ? largest : largest + 0x7FFF + (largest >> 16 & 1)) >> 16;
    const uint32_t code = half >= EXPONENTS >> 16 ? NPUQ_MX_BAD : half < 2 << 7 ? 0 : (half + rule->carry) / 128 - 2;

    return (group){code, rule->small_groups == RULE_S ? code : half >> 7};
}

/* Not inlined: compilers would make vectors of the loop around it, for any CPU, which take longer. */
static NPUQ_NOT_INLINED void store_rare(group g, float *value, uint16_t *shift)
{
    const bool is_bad = g.code == NPUQ_MX_BAD;

    *value = npuq_float_of_bits(is_bad ? 0x7FC00000 : 0);
    *shift = is_bad ? NPUQ_NO_SHIFT : NPUQ_ALL_SHIFTED;
}

static inline void store_group(const npuq_mx_rule *rule, group g, float *value, uint8_t *code, uint16_t *shift)
{
    const int exponent = (int)g.code + rule->shift_bias;
    const bool is_out = exponent < rule->least_shift || exponent > 0x7FFF >> rule->log2_shift;

    *code = (uint8_t)g.code;
    if (g.code == NPUQ_MX_BAD || (g.size == 0 && rule->small_groups != RULE_N)) {
        store_rare(g, value, shift);
    } else {
        *value = npuq_float_of_bits(g.code == 254 ? 0x00400000 : (254 - g.code) << 23);
        *shift = is_out ? NPUQ_NO_SHIFT : (uint16_t)((uint32_t)exponent << rule->log2_shift);
    }
}

#define FIND_SCALES(GROUP)                                                                                             \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        const uint32_t largest = npuq_bits_of_float(values[i]) & 0x7FFFFFFF;                                           \
        const group of_finite = GROUP;                                                                                 \
                                                                                                                       \
        store_group(&rule, largest >= EXPONENTS ? bad : of_finite, &values[i], &codes[i], &shifts[i]);                 \
    }

const uint16_t *npuq_find_mx_scales(const npuq_mx_rule *of_call, float *restrict values, size_t n,
                                    uint8_t *restrict codes, uint16_t *restrict shifts)
{
    const npuq_mx_rule rule = *of_call; /* which no store changes */
    const group bad = {NPUQ_MX_BAD, 1};

    switch (rule.way) {
    case NPUQ_MX_BY_EXPONENT: FIND_SCALES(of_exponent(largest, &rule)) break;
    case NPUQ_MX_BY_HALF: FIND_SCALES(of_half(largest, &rule)) break;
    case NPUQ_MX_BY_PRODUCT: {
        const float factor = 1.0f / npuq_float_of_bits(rule.divisor);

        FIND_SCALES(of_product(largest, &rule, factor))
        break;
    }
    }
    return rule.log2_shift == 0 ? NULL : shifts;
}
