/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every operator over every dtype, mode and kind of parameter, in many shapes and layouts, under every rounding
 * mode of the caller's, and prints for each backend its name and one checksum of everything written. It is the same on
 * every machine: the data is made with integers only, what is hashed are values, and no expression draws two random
 * numbers (their order would be the compiler's choice). Needs the library and the C library alone, so it runs where
 * the other tests cannot be built.
 *
 * usage: checksum [-v]        -v prints the checksum after each part, too: to see where two machines part
 */
#include <npuquant/npuquant.h>

#include <fenv.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t expected = UINT64_C(0xB0A2C363A8B5388F);

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- checksum ---- */

static uint64_t checksum;

static void add(uint64_t value)
{
    checksum = (checksum ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    checksum ^= checksum >> 29;
}

/* ---- random integers ---- */

static uint64_t random_state;

static uint64_t random64(void) /* splitmix64 */
{
    uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint32_t below(uint32_t end)
{
    return (uint32_t)((random64() >> 32) * end >> 32);
}

/* ---- values, as bits ---- */

/* Bits of significand * 2^exponent; a normal result. */
static uint32_t float_bits(bool negative, uint32_t significand, int exponent)
{
    const uint32_t sign = negative ? 0x80000000u : 0;

    if (significand == 0) {
        return sign;
    }
    while (significand < 1u << 23) {
        significand <<= 1;
        exponent--;
    }
    return sign | (uint32_t)(exponent + 150) << 23 | (significand & 0x7FFFFFu);
}

/* A product of two significands to 24 bits, half to even; the rest goes into the exponent. */
static uint32_t round_to_24(uint64_t value, int *exponent)
{
    int shift = 0;

    while (value >> shift >= 1u << 24) {
        shift++;
    }
    *exponent = shift;
    if (shift == 0) {
        return (uint32_t)value;
    }
    return (uint32_t)((value + (UINT64_C(1) << (shift - 1)) - 1 + (value >> shift & 1)) >> shift);
}

static const uint32_t special_floats[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, /* zeros, the smallest subnormals */
    0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, /* the largest subnormals, the smallest normals */
    0x3EFFFFFF, 0x3F000000, 0x3F000001, 0xBF000000, /* around a half */
    0x3F7FFFFF, 0x3F800000, 0x3F800001, 0xBF800000, /* around one */
    0x3FC00000, 0x40200000, 0x2B8CBCCC, 0x2B8CBCCD, /* 1.5, 2.5, around the least dynamic scale */
    0x42FEFFFF, 0x42FF0000, 0xC3008000, 0xC3008001, /* the ends of int8 */
    0x437F7FFF, 0x437F8000, 0xC3808000, 0x43800000, /* the ends of uint8 and of nine bits */
    0x40EFFFFF, 0x40F00000, 0xC1080000, 0xC1080001, /* the ends of int4 */
    0x4B000000, 0x4B000001, 0x4AFFFFFF, 0xCB000001, /* where the fraction ends */
    0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, /* the ends of int32 */
    0x3F801000, 0x3F803000, 0x3F800FFF, 0x7F7FF000, /* halves of 13 bits */
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, /* the largest finite values, infinities */
    0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFBFFFFF, /* quiet and signalling NaN */
};

typedef enum profile { ORDINARY, TIES, SPECIAL, ANY_BITS, MIXED, CONSTANT, PROFILES } profile;

static uint32_t random_float(profile kind)
{
    const bool negative = below(2) != 0;

    switch (kind) {
    case TIES: return float_bits(negative, below(640), -1);
    case SPECIAL: return special_floats[below((uint32_t)COUNT(special_floats))];
    case ANY_BITS: return (uint32_t)random64();
    case MIXED: return below(32) > 0 ? random_float(ORDINARY) : random_float(SPECIAL);
    default: {
        const uint32_t significand = 1u << 23 | below(1u << 23);
        const int exponent = (int)below(14) - 29; /* 2^-6 to 2^8 */
        return float_bits(negative, significand, exponent);
    }
    }
}

/* binary32 bits as those of a float dtype, truncated. */
static uint32_t narrow(uint32_t bits, npuq_dtype dtype)
{
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t exponent = bits >> 23 & 0xFFu;
    const uint32_t fraction = bits & 0x7FFFFFu;

    if (dtype == NPUQ_FLOAT32) {
        return bits;
    }
    if (dtype == NPUQ_BFLOAT16) {
        return bits >> 16;
    }
    if (exponent == 0xFF) {
        return sign | 0x7C00u | fraction >> 13 | (fraction != 0);
    }
    if (exponent > 127 + 15) {
        return sign | 0x7BFFu;
    }
    if (exponent > 127 - 15) {
        return sign | (exponent - 112) << 10 | fraction >> 13;
    }
    return sign | (exponent < 102 ? 0 : (fraction | 0x800000u) >> (126 - exponent));
}

static bool is_float(npuq_dtype dtype)
{
    return dtype == NPUQ_FLOAT32 || dtype == NPUQ_FLOAT16 || dtype == NPUQ_BFLOAT16;
}

static uint64_t random_value(npuq_dtype dtype, profile kind)
{
    if (is_float(dtype)) {
        return narrow(random_float(kind), dtype);
    }
    const uint64_t any = random64();
    return kind == ORDINARY ? any % 256 - 128 : any;
}

/* ---- operands: a view, and all memory from its lowest element to its highest ---- */

typedef enum layout {
    CONTIGUOUS,
    STRIDED,   /* permuted, with gaps, turned round */
    BROADCAST, /* and with strides of 0 */
} layout;

typedef struct operand {
    npuq_tensor tensor;
    unsigned char *memory;
    size_t count; /* of elements in memory */
    size_t first; /* where index 0 lies among them */
} operand;

static void put(operand *o, size_t i, uint64_t value)
{
    const uint8_t value8 = (uint8_t)value;
    const uint16_t value16 = (uint16_t)value;
    const uint32_t value32 = (uint32_t)value;

    switch (npuq_dtype_size(o->tensor.dtype)) {
    case 1: memcpy(o->memory + i, &value8, 1); break;
    case 2: memcpy(o->memory + 2 * i, &value16, 2); break;
    case 4: memcpy(o->memory + 4 * i, &value32, 4); break;
    default: memcpy(o->memory + 8 * i, &value, 8); break;
    }
}

static uint64_t get(const operand *o, size_t i)
{
    uint8_t value8;
    uint16_t value16;
    uint32_t value32;
    uint64_t value;

    switch (npuq_dtype_size(o->tensor.dtype)) {
    case 1: return memcpy(&value8, o->memory + i, 1), value8;
    case 2: return memcpy(&value16, o->memory + 2 * i, 2), value16;
    case 4: return memcpy(&value32, o->memory + 4 * i, 4), value32;
    default: return memcpy(&value, o->memory + 8 * i, 8), value;
    }
}

static operand make(npuq_dtype dtype, int ndim, const int64_t *shape, layout how)
{
    operand o = {.tensor = npuq_tensor_contiguous(NULL, dtype, ndim, shape), .count = 1};
    const int turn = how == CONTIGUOUS ? 0 : (int)below((uint32_t)ndim + 1); /* dimensions are rotated by it */

    for (int i = ndim - 1; i >= 0; i--) {
        const int d = (i + turn) % ndim;
        const int64_t step = (int64_t)o.count + (how == CONTIGUOUS ? 0 : below(3));
        const uint32_t kind = how == CONTIGUOUS ? 3 : below(4);

        o.tensor.strides[d] = kind == 0 && how == BROADCAST ? 0 : kind == 1 ? -step : step;
        if (o.tensor.strides[d] != 0 && shape[d] > 1) {
            o.count += (size_t)(step * (shape[d] - 1));
        }
        if (o.tensor.strides[d] < 0 && shape[d] > 1) {
            o.first += (size_t)(step * (shape[d] - 1));
        }
    }
    o.memory = malloc(o.count * npuq_dtype_size(dtype));
    if (!o.memory) {
        (void)fprintf(stderr, "checksum: out of memory\n");
        exit(1);
    }
    o.tensor.data = o.memory + o.first * npuq_dtype_size(dtype);
    return o;
}

static void fill(operand *o, profile kind)
{
    const uint64_t constant = random_value(o->tensor.dtype, ORDINARY);

    for (size_t i = 0; i < o->count; i++) {
        put(o, i, kind == CONSTANT ? constant : random_value(o->tensor.dtype, kind));
    }
}

/* An input in any layout, or an output in any that it can have. */
static operand make_input(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    operand o = make(dtype, ndim, shape, (layout)below(3));
    fill(&o, (profile)below(PROFILES));
    return o;
}

static void discard(operand *o)
{
    free(o->memory);
    o->memory = NULL;
}

/* The input that is quantised: not one element repeated, unless it has but one. */
static operand make_x(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    for (;;) {
        operand o = make_input(dtype, ndim, shape);
        bool single = true;

        for (int d = 0; d < ndim; d++) {
            if (shape[d] > 1 && o.tensor.strides[d] != 0) {
                return o;
            }
            single = single && shape[d] == 1;
        }
        if (single) {
            return o;
        }
        discard(&o);
    }
}

/* The extents of a tensor of so many elements: words hold eight. */
static void store(int64_t *extents, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    memcpy(extents, shape, (size_t)ndim * sizeof *shape);
    if (dtype == NPUQ_QUINT4X2) {
        extents[ndim - 1] /= 8;
    }
}

static operand make_output(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    int64_t extents[NPUQ_MAX_NDIM];

    store(extents, dtype, ndim, shape);
    operand o = make(dtype, ndim, extents, (layout)below(2));
    fill(&o, ANY_BITS);
    return o;
}

/* Sums of products: of every length, and often of a scale that brings them into int8's range. */
static operand make_sums(int ndim, const int64_t *shape)
{
    operand o = make_x(NPUQ_INT32, ndim, shape);

    for (size_t i = 0; i < o.count; i++) {
        const uint32_t any = (uint32_t)random64();
        const uint32_t magnitude = any >> below(32);
        put(&o, i, below(2) == 0 ? magnitude : 0 - magnitude);
    }
    return o;
}

/* Words that requant takes, with bits that it does not look at; a third of the tensors have no offsets. */
static operand make_words(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    operand o = make(dtype, ndim, shape, (layout)below(3));
    const profile kind = (profile)below(PROFILES);
    const uint32_t offsets = below(3) == 0 ? 1 : 512;

    for (size_t i = 0; i < o.count; i++) {
        const uint64_t offset = below(offsets);
        const uint64_t unused = below(1u << 17);
        put(&o, i, unused << 47 | UINT64_C(1) << 46 | offset << 37 | random_float(kind));
    }
    return o;
}

/* Where each of E groups of S rows ends; some are empty. */
static operand make_group_index(int64_t E, int64_t S)
{
    const npuq_dtype dtype = below(2) == 0 ? NPUQ_INT32 : NPUQ_INT64;
    operand o = make(dtype, 1, &E, (layout)below(2));
    int64_t end = 0;

    fill(&o, ANY_BITS);
    for (int64_t e = 0; e < E; e++) {
        const uint32_t most = below((uint32_t)(S - end) + 1);
        end += most >> below(2);
        put(&o, (size_t)((int64_t)o.first + e * o.tensor.strides[0]), (uint64_t)(e + 1 == E ? S : end));
    }
    return o;
}

/* Adds an output, with what lies between its elements. */
static void add_output(const operand *o)
{
    for (size_t i = 0; i < o->count; i++) {
        add(get(o, i));
    }
}

/* ---- calls ---- */

static const int rounding_modes[] = {
    FE_TONEAREST,
#ifdef FE_UPWARD
    FE_UPWARD,
#endif
#ifdef FE_DOWNWARD
    FE_DOWNWARD,
#endif
#ifdef FE_TOWARDZERO
    FE_TOWARDZERO,
#endif
};
static int rounding_mode;

/* An executor that runs the end first. */
static void run_backwards(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                          void *argument)
{
    const size_t middle = count / 3;

    (void)context;
    if (middle < count) {
        task(argument, middle, count);
    }
    if (middle > 0) {
        task(argument, 0, middle);
    }
}

/* What a call gets as executor; and a rounding mode of its own. */
static const npuq_executor *before_call(void)
{
    static const npuq_executor backwards = {run_backwards, NULL};
    static size_t calls;

    rounding_mode = rounding_modes[calls++ % COUNT(rounding_modes)];
    (void)fesetround(rounding_mode);
    return below(2) == 0 ? &backwards : NULL;
}

static void after_call(npuq_status status)
{
    if (fegetround() != rounding_mode) {
        (void)fprintf(stderr, "checksum: the caller's rounding mode is another after the call\n");
        exit(1);
    }
    (void)fesetround(FE_TONEAREST);
    if (status != NPUQ_OK) {
        (void)fprintf(stderr, "checksum: %s: %s\n", npuq_status_name(status), npuq_last_error());
        exit(1);
    }
}

static void call_quantize(const operand *x, const operand *s, const operand *z, int32_t axis, bool div_mode, operand *y)
{
    const npuq_executor *executor = before_call();
    after_call(npuq_quantize(&x->tensor, &s->tensor, z ? &z->tensor : NULL, axis, div_mode, &y->tensor, executor));
    add_output(y);
}

static void call_dynamic(const operand *x, const operand *smooth, const operand *group_index, npuq_quant_mode mode,
                         npuq_dtype y_dtype)
{
    static const int64_t one = 1;
    operand y = make_output(y_dtype, x->tensor.ndim, x->tensor.shape);
    const bool per_token = mode == NPUQ_PER_TOKEN;
    const int ndim = per_token ? x->tensor.ndim - 1 : 1;
    operand scale = make_output(NPUQ_FLOAT32, ndim, per_token ? x->tensor.shape : &one);
    operand offset = make_output(NPUQ_FLOAT32, ndim, per_token ? x->tensor.shape : &one);
    const npuq_executor *executor = before_call();

    after_call(npuq_dynamic_quant_asymmetric(&x->tensor, smooth ? &smooth->tensor : NULL,
                                             group_index ? &group_index->tensor : NULL, mode, &y.tensor, &scale.tensor,
                                             &offset.tensor, executor));
    add_output(&y);
    add_output(&scale);
    add_output(&offset);
    discard(&y);
    discard(&scale);
    discard(&offset);
}

static void call_symmetric(const operand *x, const operand *smooth, const operand *group_index, npuq_quant_mode mode,
                           npuq_dtype y_dtype)
{
    static const int64_t one = 1;
    const bool per_token = mode == NPUQ_PER_TOKEN;
    operand y = make_output(y_dtype, x->tensor.ndim, x->tensor.shape);
    operand scale = make_output(NPUQ_FLOAT32, per_token ? x->tensor.ndim - 1 : 1, per_token ? x->tensor.shape : &one);
    const npuq_scale_form form = below(2) == 0 ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;
    const npuq_executor *executor = before_call();

    after_call(npuq_dynamic_quant(&x->tensor, smooth ? &smooth->tensor : NULL,
                                  group_index ? &group_index->tensor : NULL, mode, form, &y.tensor, &scale.tensor,
                                  executor));
    add_output(&y);
    add_output(&scale);
    discard(&y);
    discard(&scale);
}

/* The steps of dynamic quantisation, each with operands of its own. */
static void call_steps(const operand *x, const operand *smooth, const operand *group_index, npuq_quant_mode mode,
                       npuq_dtype y_dtype)
{
    static const int64_t one = 1;
    const bool per_token = mode == NPUQ_PER_TOKEN;
    const int ndim = per_token ? x->tensor.ndim - 1 : 1;
    const int64_t *shape = per_token ? x->tensor.shape : &one;
    const npuq_tensor *smooth_view = smooth ? &smooth->tensor : NULL;
    const npuq_tensor *groups_view = group_index ? &group_index->tensor : NULL;
    operand in[2];
    operand out[5];

    for (size_t i = 0; i < COUNT(in); i++) {
        in[i] = make_input(NPUQ_FLOAT32, ndim, shape);
    }
    for (size_t i = 0; i < COUNT(out); i++) { /* min, max, scale, offset, y */
        out[i] = i < 4 ? make_output(NPUQ_FLOAT32, ndim, shape) : make_output(y_dtype, x->tensor.ndim, x->tensor.shape);
    }
    const npuq_executor *executor = before_call();

    after_call(npuq_dynamic_quant_min_max(&x->tensor, smooth_view, groups_view, mode, &out[0].tensor, &out[1].tensor,
                                          executor));
    (void)before_call();
    after_call(npuq_dynamic_quant_params(&in[0].tensor, &in[1].tensor, y_dtype, &out[2].tensor, &out[3].tensor));
    executor = before_call();
    after_call(npuq_dynamic_quant_apply(&x->tensor, smooth_view, groups_view, mode, &in[0].tensor, &in[1].tensor,
                                        &out[4].tensor, executor));
    for (size_t i = 0; i < COUNT(out); i++) {
        add_output(&out[i]);
        discard(&out[i]);
    }
    discard(&in[0]);
    discard(&in[1]);
}

/* Those of the symmetric operator that are its own. */
static void call_symmetric_steps(const operand *x, const operand *smooth, const operand *group_index,
                                 npuq_quant_mode mode, npuq_dtype y_dtype)
{
    static const int64_t one = 1;
    const bool per_token = mode == NPUQ_PER_TOKEN;
    const int ndim = per_token ? x->tensor.ndim - 1 : 1;
    const int64_t *shape = per_token ? x->tensor.shape : &one;
    operand min = make_input(NPUQ_FLOAT32, ndim, shape);
    operand max = make_input(NPUQ_FLOAT32, ndim, shape);
    operand scale = make_output(NPUQ_FLOAT32, ndim, shape);
    operand y = make_output(y_dtype, x->tensor.ndim, x->tensor.shape);
    const npuq_scale_form form = below(2) == 0 ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;

    (void)before_call();
    after_call(npuq_dynamic_quant_symmetric_params(&min.tensor, &max.tensor, y_dtype, form, &scale.tensor));
    const npuq_executor *executor = before_call();
    after_call(npuq_dynamic_quant_symmetric_apply(&x->tensor, smooth ? &smooth->tensor : NULL,
                                                  group_index ? &group_index->tensor : NULL, mode, &min.tensor,
                                                  &max.tensor, &y.tensor, executor));
    add_output(&scale);
    add_output(&y);
    discard(&min);
    discard(&max);
    discard(&scale);
    discard(&y);
}

static void call_anti_quant(const operand *x, const operand *scale, const operand *offset, operand *y)
{
    const npuq_executor *executor = before_call();
    after_call(npuq_anti_quant(&x->tensor, &scale->tensor, offset ? &offset->tensor : NULL, &y->tensor, executor));
    add_output(y);
}

static void call_dequant(const operand *x, const operand *weight_scale, const operand *activation_scale,
                         const operand *bias, operand *y)
{
    const npuq_executor *executor = before_call();
    after_call(npuq_dequant(&x->tensor, &weight_scale->tensor, activation_scale ? &activation_scale->tensor : NULL,
                            bias ? &bias->tensor : NULL, &y->tensor, executor));
    add_output(y);
}

static void call_requant(const operand *x, const operand *words, const operand *bias, operand *y)
{
    const npuq_executor *executor = before_call();
    after_call(npuq_requant(&x->tensor, &words->tensor, bias ? &bias->tensor : NULL, &y->tensor, executor));
    add_output(y);
}

/* ---- every combination ---- */

static const npuq_dtype floats[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
static const npuq_dtype narrows[] = {NPUQ_INT8, NPUQ_QUINT4X2};
static const npuq_dtype wides[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
static const npuq_dtype zero_points[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16, NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};

typedef struct shape {
    int ndim;
    int64_t extents[NPUQ_MAX_NDIM];
    int32_t axis;
} shape;

static void quantize_combination(const shape *c, bool div_mode, npuq_dtype x_dtype, npuq_dtype s_dtype,
                                 const npuq_dtype *z_dtype, npuq_dtype y_dtype)
{
    const int32_t other = c->axis == -2 ? c->ndim - 2 : c->ndim - 1;
    const int32_t a = !div_mode ? other : c->axis < 0 ? c->axis + c->ndim : c->axis;
    const int64_t n = below(3) == 0 ? 1 : c->extents[a];
    operand x = make_x(x_dtype, c->ndim, c->extents);
    operand s = make_input(s_dtype, 1, &n);
    operand z = make_input(z_dtype ? *z_dtype : NPUQ_FLOAT32, 1, &n);
    operand y = make_output(y_dtype, c->ndim, c->extents);

    call_quantize(&x, &s, z_dtype ? &z : NULL, c->axis, div_mode, &y);
    discard(&x);
    discard(&s);
    discard(&z);
    discard(&y);
}

static void quantize(bool div_mode)
{
    static const shape shapes[] = {
        {1, {1}, 0},          {1, {168}, -1},      {2, {5, 24}, 1},     {2, {3, 200}, -2},
        {2, {17, 8}, 0},      {3, {4, 5, 8}, 0},   {3, {2, 37, 16}, 1}, {4, {2, 3, 2, 72}, 2},
        {4, {2, 3, 5, 1}, 1}, {3, {2, 3, 67}, -1}, {2, {2, 4200}, -1},  {8, {2, 1, 2, 1, 2, 1, 2, 8}, -2},
    };
    const npuq_dtype *y_dtypes = div_mode ? wides : narrows;

    for (size_t i = 0; i < COUNT(shapes) * COUNT(floats) * COUNT(floats); i++) {
        const shape *c = &shapes[i / 9];
        const npuq_dtype x_dtype = floats[i / 3 % 3];
        const npuq_dtype s_dtype = floats[i % 3];

        for (size_t k = 0; k < (div_mode ? COUNT(wides) : COUNT(narrows)); k++) {
            if (y_dtypes[k] == NPUQ_QUINT4X2 && c->extents[c->ndim - 1] % 8 != 0) {
                continue;
            }
            quantize_combination(c, div_mode, x_dtype, s_dtype, NULL, y_dtypes[k]);
            for (size_t z = 0; z < COUNT(zero_points); z++) {
                if (div_mode || zero_points[z] == s_dtype) {
                    quantize_combination(c, div_mode, x_dtype, s_dtype, &zero_points[z], y_dtypes[k]);
                }
            }
        }
    }
}

static void quantize_by_division(void)
{
    quantize(true);
}

static void quantize_by_multiplication(void)
{
    quantize(false);
}

static void group_quant(void)
{
    static const int64_t sizes[][3] = {{1, 8, 1},  {6, 16, 4}, {9, 40, 9},  {40, 8, 3},  {5, 100, 2},
                                       {3, 8, 12}, {17, 1, 5}, {12, 64, 7}, {8, 200, 3}, {5, 2056, 2}}; /* S, H, E */

    for (size_t i = 0; i < COUNT(sizes) * 36; i++) {
        const int64_t *size = sizes[i / 36];
        const int64_t scale_shape[] = {size[2], size[1]};
        const npuq_dtype s_dtype = floats[i % 3];
        const npuq_dtype y_dtype = narrows[i / 9 % 2];
        static const int64_t one = 1;

        if (y_dtype == NPUQ_QUINT4X2 && size[1] % 8 != 0) {
            continue;
        }
        operand x = make_x(floats[i / 3 % 3], 2, size);
        operand scale = make_input(s_dtype, 2, scale_shape);
        operand group_index = make_group_index(size[2], size[0]);
        operand offset = make_input(s_dtype, below(2) == 0 ? 1 : 0, &one);
        operand y = make_output(y_dtype, 2, size);
        const npuq_executor *executor = before_call();

        after_call(npuq_group_quant(&x.tensor, &scale.tensor, &group_index.tensor, i % 36 < 18 ? &offset.tensor : NULL,
                                    &y.tensor, executor));
        add_output(&y);
        discard(&x);
        discard(&scale);
        discard(&group_index);
        discard(&offset);
        discard(&y);
    }
}

static void trans_quant_param(void)
{
    static const int64_t counts[][2] = {{1, 1}, {1, 77}, {77, 1}, {640, 640}, {9, 0}, {500, 0}}; /* scale, offset */

    for (size_t i = 0; i < COUNT(counts) * 64; i++) {
        const int64_t *n = counts[i / 64];
        /* [n] or (1, n); y has either shape if the others differ. Two (1, n) have one n. */
        const int scale_ndim = i % 4 == 0 ? 2 : 1;
        const int offset_ndim = i % 8 == 0 && n[0] == n[1] ? 2 : i % 8 == 1 ? 2 : 1;
        const int y_ndim = scale_ndim == offset_ndim || n[1] == 0 ? scale_ndim : i % 16 < 8 ? 2 : 1;
        const int64_t scale_shape[] = {1, n[0]};
        const int64_t offset_shape[] = {1, n[1]};
        const int64_t y_shape[] = {1, n[0] > n[1] ? n[0] : n[1]};
        operand scale = make_input(NPUQ_FLOAT32, scale_ndim, scale_shape + 2 - scale_ndim);
        operand offset = make_input(NPUQ_FLOAT32, offset_ndim, offset_shape + 2 - offset_ndim);
        operand y = make_output(i % 2 == 0 ? NPUQ_INT64 : NPUQ_UINT64, y_ndim, y_shape + 2 - y_ndim);
        const npuq_round_mode mode = i / 2 % 2 == 0 ? NPUQ_ROUND_TRUNCATE : NPUQ_ROUND_NEAREST;

        (void)before_call();
        after_call(npuq_trans_quant_param(&scale.tensor, n[1] > 0 ? &offset.tensor : NULL, mode, &y.tensor));
        add_output(&y);
        discard(&scale);
        discard(&offset);
        discard(&y);
    }
}

typedef void call_fn(const operand *x, const operand *smooth, const operand *group_index, npuq_quant_mode mode,
                     npuq_dtype y_dtype);

static void dynamic_combinations(call_fn *call)
{
    static const shape shapes[] = {{2, {1, 8}, 0},   {2, {5, 16}, 0},   {3, {7, 3, 24}, 0},
                                   {2, {6, 1}, 0},   {2, {11, 33}, 0},  {4, {2, 2, 3, 40}, 0},
                                   {2, {4, 200}, 0}, {2, {3, 2056}, 0}, {3, {2, 1, 9000}, 0}};

    for (size_t i = 0; i < COUNT(shapes) * 72; i++) {
        const shape *c = &shapes[i / 72];
        const size_t how = i / 18 % 4; /* smooth scales: none, [H], [E, H] with groups, [H] per tensor */
        const npuq_dtype y_dtype = narrows[i / 9 % 2];
        const int64_t H = c->extents[c->ndim - 1];
        const int64_t E = how == 2 ? 1 + below(6) : 1;
        const int64_t smooth_shape[] = {how == 2 ? E : H, H};
        int64_t S = 1;

        if (y_dtype == NPUQ_QUINT4X2 && H % 8 != 0) {
            continue;
        }
        for (int d = 0; d < c->ndim - 1; d++) {
            S *= c->extents[d];
        }
        operand x = make_x(floats[i / 3 % 3], c->ndim, c->extents);
        operand smooth = make_input(floats[i % 3], how == 2 ? 2 : 1, smooth_shape);
        operand group_index = make_group_index(E, S);

        call(&x, how == 0 ? NULL : &smooth, how == 2 ? &group_index : NULL, how == 3 ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN,
             y_dtype);
        discard(&x);
        discard(&smooth);
        discard(&group_index);
    }
}

static const shape layer_shapes[] = {{1, {1}, 0},
                                     {1, {168}, 0},
                                     {2, {5, 24}, 0},
                                     {2, {17, 8}, 0},
                                     {3, {4, 3, 67}, 0},
                                     {3, {2, 37, 16}, 0},
                                     {4, {2, 3, 2, 72}, 0},
                                     {2, {3, 2056}, 0},
                                     {2, {2, 4200}, 0},
                                     {2, {9, 1}, 0},
                                     {8, {2, 1, 2, 1, 2, 1, 2, 8}, 0}};

static void anti_quant(void)
{
    for (size_t i = 0; i < COUNT(layer_shapes) * 36; i++) {
        const shape *c = &layer_shapes[i / 36];
        const int64_t columns = c->extents[c->ndim - 1];
        const npuq_dtype x_dtype = narrows[i / 18 % 2];
        const npuq_dtype s_dtype = floats[i / 6 % 3];
        const int64_t n = below(4) == 0 ? 1 : columns;
        int64_t extents[NPUQ_MAX_NDIM];

        if (x_dtype == NPUQ_QUINT4X2 && columns % 8 != 0) {
            continue;
        }
        store(extents, x_dtype, c->ndim, c->extents);
        operand x = make_x(x_dtype, c->ndim, extents);
        operand scale = make_input(s_dtype, 1, &n);
        operand offset = make_input(s_dtype, 1, &n);
        operand y = make_output(floats[i / 2 % 3], c->ndim, c->extents);

        call_anti_quant(&x, &scale, i % 2 == 0 ? &offset : NULL, &y);
        discard(&x);
        discard(&scale);
        discard(&offset);
        discard(&y);
    }
}

static void dequant(void)
{
    static const npuq_dtype biases[] = {NPUQ_INT32, NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};

    for (size_t i = 0; i < COUNT(layer_shapes) * 90; i++) {
        const shape *c = &layer_shapes[i / 90];
        const int64_t columns = c->extents[c->ndim - 1];
        const int64_t n = below(4) == 0 ? 1 : columns;
        const size_t bias_kind = i / 2 % 5; /* the last: none */
        operand x = make_sums(c->ndim, c->extents);
        operand weight_scale = make_input(floats[i / 30 % 3], 1, &n);
        operand activation_scale = make_input(NPUQ_FLOAT32, c->ndim - 1, c->extents);
        operand bias = make_input(biases[bias_kind % 4], 1, &columns);
        operand y = make_output(floats[i / 10 % 3], c->ndim, c->extents);

        call_dequant(&x, &weight_scale, i % 2 == 0 ? &activation_scale : NULL, bias_kind < 4 ? &bias : NULL, &y);
        discard(&x);
        discard(&weight_scale);
        discard(&activation_scale);
        discard(&bias);
        discard(&y);
    }
}

static void requant(void)
{
    for (size_t i = 0; i < COUNT(layer_shapes) * 24; i++) {
        const shape *c = &layer_shapes[i / 24];
        const int64_t columns = c->extents[c->ndim - 1];
        const size_t form = i / 4 % 3; /* words: [1], [N], (1, N) */
        const int64_t words_shape[] = {1, form == 0 ? 1 : columns};
        const int words_ndim = form == 2 ? 2 : 1;
        operand x = make_sums(c->ndim, c->extents);
        operand words =
            make_words(i / 12 % 2 == 0 ? NPUQ_INT64 : NPUQ_UINT64, words_ndim, words_shape + 2 - words_ndim);
        operand bias = make_input(NPUQ_INT32, 1, &columns);
        operand y = make_output(i / 2 % 2 == 0 ? NPUQ_INT8 : NPUQ_FLOAT16, c->ndim, c->extents);

        call_requant(&x, &words, i % 2 == 0 ? &bias : NULL, &y);
        discard(&x);
        discard(&words);
        discard(&bias);
        discard(&y);
    }
}

static void dynamic_quant_asymmetric(void)
{
    dynamic_combinations(call_dynamic);
}

static void dynamic_quant_steps(void)
{
    dynamic_combinations(call_steps);
}

static void dynamic_quant(void)
{
    dynamic_combinations(call_symmetric);
}

static void dynamic_quant_symmetric_steps(void)
{
    dynamic_combinations(call_symmetric_steps);
}

/* ---- data that shows a step that was left out ---- */

typedef enum trap {
    FUSED,    /* x * s + z is a tie if the product has been rounded */
    QUOTIENT, /* x / s is an integer, and x / s + z a tie, if the quotient has been rounded */
    SUM,      /* x + z is a tie if it has been rounded */
} trap;

static void set_trap(trap kind, operand *x, operand *s, operand *z, size_t i)
{
    const int x_bits = x->tensor.dtype == NPUQ_FLOAT32 ? 20 : x->tensor.dtype == NPUQ_FLOAT16 ? 11 : 8;
    const int s_bits = kind == QUOTIENT ? 13 : x_bits == 20 ? 20 : 24;
    const int point = x_bits + s_bits - 20;
    const uint32_t a = 1u << (x_bits - 1) | below(1u << (x_bits - 1));
    const uint32_t b = 1u << (s_bits - 1) | below(1u << (s_bits - 1)) | 1u;
    const bool negative = below(2) != 0;
    int shift;
    const uint32_t product = round_to_24((uint64_t)a * b, &shift);
    uint32_t bits = 0;

    switch (kind) {
    case FUSED:
        bits = float_bits(false, a, 0);
        put(s, i, float_bits(false, b, -point));
        put(z, i, float_bits(true, product - (1u << (point - shift - 1)), shift - point));
        break;
    case QUOTIENT:
        bits = float_bits(false, product, shift);
        put(s, i, float_bits(false, b, 0));
        put(z, i, float_bits(true, 2 * a - 1, -1));
        break;
    case SUM:
        bits = float_bits(negative, 2 * (a & 127u) + 1, -1);
        put(s, i, 0x3F800000u);
        put(z, i, float_bits((a & 128u) != 0, 1, (int)(b >> 1 & 15u) - 50));
        break;
    }
    put(x, i, narrow(bits, x->tensor.dtype));
}

static void traps(void)
{
    static const int64_t extents[] = {1, 4096};

    for (size_t i = 0; i < 3 * COUNT(floats) * 4; i++) {
        const trap kind = (trap)(i / 12);
        const npuq_dtype x_dtype = kind == QUOTIENT ? NPUQ_FLOAT32 : floats[i / 4 % 3];
        const bool div_mode = kind == QUOTIENT || (kind == SUM && i % 4 > 1);
        operand x = make(x_dtype, 2, extents, CONTIGUOUS);
        operand s = make(NPUQ_FLOAT32, 1, extents + 1, CONTIGUOUS);
        operand z = make(NPUQ_FLOAT32, 1, extents + 1, CONTIGUOUS);
        operand y = make_output(div_mode ? wides[i % 3] : narrows[i % 2], 2, extents);

        for (size_t k = 0; k < x.count; k++) {
            set_trap(kind, &x, &s, &z, k);
        }
        call_quantize(&x, &s, &z, -1, div_mode, &y);
        discard(&x);
        discard(&s);
        discard(&z);
        discard(&y);
    }

    /* A range of 255 makes the scale 1 and the offset -128; the others are m + 0.5, or a little more, which is lost
     * when the offset is added. */
    operand row = make(NPUQ_FLOAT32, 2, extents, CONTIGUOUS);
    for (size_t k = 0; k < row.count; k++) {
        const uint32_t bits = below(8);
        put(&row, k, float_bits(false, (bits | 1u) << 20 | (bits & 1u), -21));
    }
    put(&row, 0, 0);
    put(&row, row.count - 1, 0x437F0000u);
    call_dynamic(&row, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_INT8);
    discard(&row);
}

/* A product of 34 or 35 bits that is a tie of int8 or float16 if it has been rounded to 24. */
static void requant_traps(void)
{
    static const int64_t extents[] = {1, 4096};

    for (int to_float16 = 0; to_float16 < 2; to_float16++) {
        operand x = make(NPUQ_INT32, 2, extents, CONTIGUOUS);
        operand words = make(NPUQ_UINT64, 1, extents + 1, CONTIGUOUS);
        operand y = make_output(to_float16 ? NPUQ_FLOAT16 : NPUQ_INT8, 2, extents);

        for (size_t i = 0; i < x.count; i++) {
            const uint64_t halves = to_float16 ? 2048 | 1 | below(2048) : 1 | below(256);
            const uint32_t scale = 1024 + below(1024);
            const bool negative = below(2) != 0;
            int point = 0;

            while ((halves << point) / scale < 1u << 23) {
                point++;
            }
            put(&x, i, ((halves << point) + scale / 2) / scale);
            put(&words, i, UINT64_C(1) << 46 | float_bits(negative, scale, -point - 1));
        }
        call_requant(&x, &words, NULL, &y);
        discard(&x);
        discard(&words);
        discard(&y);
    }
}

/* ---- more than the caches hold: kernels may read and write another way ---- */

static void large(void)
{
    static const int64_t extents[] = {5, 1031 * 1031};
    const int64_t *columns = extents + 1;
    operand x = make(NPUQ_FLOAT32, 2, extents, CONTIGUOUS);
    operand s = make_input(NPUQ_FLOAT32, 1, columns);
    operand y = make_output(NPUQ_INT8, 2, extents);

    fill(&x, ORDINARY);
    call_quantize(&x, &s, NULL, -1, true, &y);
    call_dynamic(&x, &s, NULL, NPUQ_PER_TOKEN, NPUQ_INT8);
    discard(&x);
    discard(&s);
    discard(&y);
}

static void large_layer(void)
{
    static const int64_t extents[] = {5, 1031 * 1031};
    const int64_t *columns = extents + 1;
    operand x = make(NPUQ_FLOAT32, 2, extents, CONTIGUOUS);
    operand bytes = make(NPUQ_INT8, 2, extents, CONTIGUOUS);
    operand sums = make(NPUQ_INT32, 2, extents, CONTIGUOUS);
    operand scale = make_input(NPUQ_FLOAT32, 1, columns);
    operand rows = make_input(NPUQ_FLOAT32, 1, extents);
    operand words = make_words(NPUQ_UINT64, 1, columns);
    operand half = make_output(NPUQ_FLOAT16, 2, extents);
    operand y = make_output(NPUQ_INT8, 2, extents);

    fill(&x, ORDINARY);
    fill(&bytes, ANY_BITS);
    fill(&sums, MIXED);
    fill(&scale, ORDINARY);
    call_symmetric(&x, &scale, NULL, NPUQ_PER_TOKEN, NPUQ_INT8);
    call_anti_quant(&bytes, &scale, NULL, &half);
    call_dequant(&sums, &scale, &rows, NULL, &half);
    call_requant(&sums, &words, NULL, &y);
    discard(&x);
    discard(&bytes);
    discard(&sums);
    discard(&scale);
    discard(&rows);
    discard(&words);
    discard(&half);
    discard(&y);
}

/* ---- refusals: the status, and no byte written ---- */

static void refusals(void)
{
    static const int64_t extents[] = {4, 16};
    operand x = make_x(NPUQ_FLOAT32, 2, extents);
    operand s = make_input(NPUQ_FLOAT32, 1, extents);
    operand y = make_output(NPUQ_INT8, 2, extents);
    npuq_tensor far = x.tensor;

    far.strides[0] = INT64_MAX / 8;
    add(npuq_quantize(NULL, &s.tensor, NULL, 0, true, &y.tensor, NULL));
    add(npuq_quantize(&s.tensor, &s.tensor, NULL, 0, true, &y.tensor, NULL));
    add(npuq_quantize(&x.tensor, &s.tensor, NULL, 2, true, &y.tensor, NULL));
    add(npuq_quantize(&x.tensor, &x.tensor, NULL, 0, true, &y.tensor, NULL));
    add(npuq_quantize(&x.tensor, &s.tensor, &y.tensor, 0, true, &y.tensor, NULL));
    add(npuq_quantize(&far, &s.tensor, NULL, 0, true, &y.tensor, NULL));
    add(npuq_trans_quant_param(&s.tensor, NULL, (npuq_round_mode)2, &y.tensor));
    add_output(&y);
    discard(&x);
    discard(&s);
    discard(&y);
}

static void layer_refusals(void)
{
    static const int64_t extents[] = {4, 16};
    operand x = make_x(NPUQ_FLOAT32, 2, extents);
    operand sums = make_sums(2, extents);
    operand scale = make_input(NPUQ_FLOAT32, 1, extents + 1);
    operand words = make(NPUQ_UINT64, 1, extents + 1, CONTIGUOUS);
    operand rows = make_output(NPUQ_FLOAT32, 1, extents);
    operand back = make_output(NPUQ_FLOAT32, 2, extents);
    operand y = make_output(NPUQ_INT8, 2, extents);

    fill(&words, ANY_BITS);
    put(&words, 7, UINT64_C(1) << 33 | UINT64_C(1) << 46);
    add(npuq_dynamic_quant(&x.tensor, NULL, NULL, NPUQ_PER_TOKEN, (npuq_scale_form)2, &y.tensor, &rows.tensor, NULL));
    add(npuq_anti_quant(&sums.tensor, &scale.tensor, NULL, &back.tensor, NULL));
    add(npuq_dequant(&sums.tensor, &scale.tensor, &scale.tensor, NULL, &back.tensor, NULL));
    add(npuq_requant(&sums.tensor, &words.tensor, NULL, &y.tensor, NULL));
    add_output(&rows);
    add_output(&back);
    add_output(&y);
    discard(&x);
    discard(&sums);
    discard(&scale);
    discard(&words);
    discard(&rows);
    discard(&back);
    discard(&y);
}

/* ---- */

static uint64_t run(bool verbose)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        {"quantize, divide", quantize_by_division},
        {"quantize, multiply", quantize_by_multiplication},
        {"group_quant", group_quant},
        {"trans_quant_param", trans_quant_param},
        {"dynamic_quant_asymmetric", dynamic_quant_asymmetric},
        {"traps", traps},
        {"large", large},
        {"refusals", refusals},
        {"the steps of dynamic_quant_asymmetric", dynamic_quant_steps},
        {"dynamic_quant", dynamic_quant},
        {"the steps of dynamic_quant", dynamic_quant_symmetric_steps},
        {"anti_quant", anti_quant},
        {"dequant", dequant},
        {"requant", requant},
        {"requant, traps", requant_traps},
        {"large, of a layer", large_layer},
        {"refusals, of a layer", layer_refusals},
    };

    checksum = 0;
    for (size_t i = 0; i < COUNT(parts); i++) {
        random_state = i;
        parts[i].run();
        if (verbose) {
            (void)printf("# %016" PRIX64 " %s\n", checksum, parts[i].name);
        }
    }
    return checksum;
}

int main(int argc, char **argv)
{
    const bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    int differ = 0;

    for (int i = 0; strcmp(npuq_backend_name((npuq_backend)i), "unknown") != 0; i++) {
        if (npuq_set_backend((npuq_backend)i) != NPUQ_OK) {
            continue; /* not on this machine */
        }
        const uint64_t got = run(verbose);
        (void)printf("%s %016" PRIX64 "\n", npuq_backend_name((npuq_backend)i), got);
        (void)fflush(stdout);
        if (got != expected) {
            (void)fprintf(stderr, "checksum: expected %016" PRIX64 "\n", expected);
            differ = 1;
        }
    }
    return differ;
}
