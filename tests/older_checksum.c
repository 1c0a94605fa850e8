/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every operator over every dtype, mode and kind of parameter, in many shapes and layouts, and hashes all results.
 * The checksum is the same on every machine: integers make the data, values are hashed, not bytes, and no expression
 * draws two random numbers (their order would be the compiler's choice).
 *
 * Built against the library, the program prints the checksum of each backend, under every rounding mode of the
 * caller's. It needs only the library and the C library, so it runs where the other tests cannot be built. With
 * CHECKSUM_ORACLE it calls the reference, src/ref, and prints the checksum of each part that the reference can run.
 *
 * usage: checksum [-v]        -v also prints the checksum of each part: to see where two machines differ
 */
#include <npuquant/npuquant.h>

#ifdef CHECKSUM_ORACLE
#include "npuq_ref.h"
#endif

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Numbers of 64 bits, as every printf() can print them. */
#define HEX64     "%08lX%08lX"
#define HALVES(n) (unsigned long)((n) >> 32), (unsigned long)((n)&0xFFFFFFFF)

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

static bool is_float(npuq_dtype dtype)
{
    return dtype == NPUQ_FLOAT32 || dtype == NPUQ_FLOAT16 || dtype == NPUQ_BFLOAT16;
}

static size_t size_of(npuq_dtype dtype)
{
    switch (dtype) {
    case NPUQ_INT8:
    case NPUQ_UINT8: return 1;
    case NPUQ_FLOAT16:
    case NPUQ_BFLOAT16: return 2;
    case NPUQ_INT64:
    case NPUQ_UINT64: return 8;
    default: return 4;
    }
}

/* Bits of significand * 2^exponent, truncated to the type; infinity beyond its range. */
static uint32_t float_bits(npuq_dtype dtype, bool negative, uint32_t significand, int exponent)
{
    const int fraction_bits = dtype == NPUQ_FLOAT32 ? 23 : dtype == NPUQ_FLOAT16 ? 10 : 7;
    const int bias = dtype == NPUQ_FLOAT16 ? 15 : 127;
    const uint32_t sign = (uint32_t)negative << (8 * size_of(dtype) - 1);

    if (significand == 0) {
        return sign;
    }
    for (; significand >> fraction_bits > 1; exponent++) {
        significand >>= 1;
    }
    for (; significand >> fraction_bits == 0; exponent--) {
        significand <<= 1;
    }
    const int field = exponent + fraction_bits + bias;
    if (field > 2 * bias) {
        return sign | (2u * (uint32_t)bias + 1) << fraction_bits;
    }
    if (field <= 0) {
        return sign | (field < -24 ? 0 : significand >> (1 - field));
    }
    return sign | ((((uint32_t)field - 1) << fraction_bits) + significand);
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

/* Magnitudes at which something changes; the neighbours of each are drawn, too. */
static const struct {
    uint32_t significand;
    int exponent;
} special_floats[] = {
    {0, 0},      {1, -126},   {1, -14},                              /* zero, the smallest normals */
    {1, -1},     {1, 0},      {3, -1},   {5, -1},   {0x8CBCCC, -63}, /* the last: the least dynamic scale */
    {15, -1},    {17, -1},    {255, -1}, {257, -1}, {259, -1},       /* the ends of int4 and int8 */
    {511, -1},   {513, -1},   {1, 8},                                /* of uint8 and of nine bits */
    {1, 22},     {1, 23},     {1, 24},   {1, 31},                    /* where the fraction ends; int32 */
    {2049, -11}, {2051, -11}, {257, -8}, {259, -8},                  /* halfway in float16, in bfloat16 */
    {4095, 4},   {511, 119},  {1, 128},                              /* where each float type ends */
};

typedef enum profile { ORDINARY, TIES, SPECIAL, ANY_BITS, MIXED, CONSTANT, PROFILES } profile;

static uint32_t random_float(npuq_dtype dtype, profile kind)
{
    const bool negative = below(2) != 0;

    switch (kind) {
    case TIES: return float_bits(dtype, negative, below(dtype == NPUQ_BFLOAT16 ? 256 : 640), -1);
    case SPECIAL: {
        const uint32_t i = below((uint32_t)COUNT(special_floats) + 1);
        const uint32_t neighbour = below(3);
        if (i == COUNT(special_floats)) { /* infinity and the highest bit of the fraction: a quiet NaN */
            const int below_normal = dtype == NPUQ_FLOAT16 ? -15 : -127;
            return float_bits(dtype, negative, 1, 128) | float_bits(dtype, false, 1, below_normal);
        }
        const uint32_t bits = float_bits(dtype, false, special_floats[i].significand, special_floats[i].exponent);
        return float_bits(dtype, negative, 0, 0) | (bits + neighbour - (bits > 0));
    }
    case ANY_BITS: return (uint32_t)random64();
    case MIXED: {
        const profile either = below(32) > 0 ? ORDINARY : SPECIAL;
        return random_float(dtype, either);
    }
    default: {
        const uint32_t significand = 1u << 23 | below(1u << 23);
        const int exponent = (int)below(14) - 29; /* 2^-6 to 2^8 */
        return float_bits(dtype, negative, significand, exponent);
    }
    }
}

static uint64_t random_value(npuq_dtype dtype, profile kind)
{
    if (is_float(dtype)) {
        return random_float(dtype, kind);
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
    size_t count;                 /* of elements in memory */
    size_t first;                 /* where index 0 lies among them */
    bool written;                 /* it is an output */
    const struct operand *copied; /* the elements of that one, one after the other */
} operand;

static operand operands[16]; /* of the calls until finish() */
static size_t operand_count;

static void put(operand *o, size_t i, uint64_t value)
{
    const uint8_t value8 = (uint8_t)value;
    const uint16_t value16 = (uint16_t)value;
    const uint32_t value32 = (uint32_t)value;

    switch (size_of(o->tensor.dtype)) {
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

    switch (size_of(o->tensor.dtype)) {
    case 1: return memcpy(&value8, o->memory + i, 1), value8;
    case 2: return memcpy(&value16, o->memory + 2 * i, 2), value16;
    case 4: return memcpy(&value32, o->memory + 4 * i, 4), value32;
    default: return memcpy(&value, o->memory + 8 * i, 8), value;
    }
}

static operand *make(npuq_dtype dtype, int ndim, const int64_t *shape, layout how)
{
    operand *o = &operands[operand_count++];
    const int turn = how == CONTIGUOUS ? 0 : (int)below((uint32_t)ndim + 1); /* the dimensions are rotated by turn */

    memset(o, 0, sizeof *o);
    o->tensor.dtype = dtype;
    o->tensor.ndim = ndim;
    o->count = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        const int d = (i + turn) % ndim;
        const int64_t step = (int64_t)o->count + (how == CONTIGUOUS ? 0 : below(3));
        const uint32_t kind = how == CONTIGUOUS ? 3 : below(4);

        o->tensor.shape[d] = shape[d];
        o->tensor.strides[d] = kind == 0 && how == BROADCAST ? 0 : kind == 1 ? -step : step;
        if (o->tensor.strides[d] != 0 && shape[d] > 1) {
            o->count += (size_t)(step * (shape[d] - 1));
        }
        if (o->tensor.strides[d] < 0 && shape[d] > 1) {
            o->first += (size_t)(step * (shape[d] - 1));
        }
    }
    o->memory = (unsigned char *)malloc(o->count * size_of(dtype));
    if (!o->memory) {
        (void)fprintf(stderr, "checksum: out of memory\n");
        exit(1);
    }
    o->tensor.data = o->memory + o->first * size_of(dtype);
    return o;
}

static operand *make_filled(npuq_dtype dtype, int ndim, const int64_t *shape, layout how, profile kind)
{
    operand *o = make(dtype, ndim, shape, how);
    const uint64_t constant = random_value(dtype, ORDINARY);

    for (size_t i = 0; i < o->count; i++) {
        put(o, i, kind == CONSTANT ? constant : random_value(dtype, kind));
    }
    return o;
}

static npuq_tensor *make_input(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    const layout how = (layout)below(3);
    const profile kind = (profile)below(PROFILES);

    return &make_filled(dtype, ndim, shape, how, kind)->tensor;
}

/* The extents of a tensor in storage elements: a word holds eight values. */
static void store(int64_t *extents, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    memcpy(extents, shape, (size_t)ndim * sizeof *shape);
    if (dtype == NPUQ_QUINT4X2) {
        extents[ndim - 1] /= 8;
    }
}

static npuq_tensor *make_output(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    int64_t extents[NPUQ_MAX_NDIM];

    store(extents, dtype, ndim, shape);
    const layout how = (layout)below(2);
    operand *o = make_filled(dtype, ndim, extents, how, ANY_BITS);
    o->written = true;
    return &o->tensor;
}

/* The input that is quantised. x is never one repeated element, unless x has only one. */
static operand *make_x(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    for (;;) {
        operand *o = (operand *)make_input(dtype, ndim, shape);
        bool single = true;

        for (int d = 0; d < ndim; d++) {
            if (shape[d] > 1 && o->tensor.strides[d] != 0) {
                return o;
            }
            single = single && shape[d] == 1;
        }
        if (single) {
            return o;
        }
        free(o->memory);
        operand_count--;
    }
}

/* Sums of products: of every length, and often of a scale that brings them into int8's range. */
static npuq_tensor *make_sums(int ndim, const int64_t *shape)
{
    operand *o = make_x(NPUQ_INT32, ndim, shape);

    for (size_t i = 0; i < o->count; i++) {
        const uint32_t any = (uint32_t)random64();
        const uint32_t magnitude = any >> below(32);
        put(o, i, below(2) == 0 ? magnitude : 0 - magnitude);
    }
    return &o->tensor;
}

/* Words that requant takes, with random ignored bits; a third of the tensors have no offsets. */
static npuq_tensor *make_words(npuq_dtype dtype, int ndim, const int64_t *shape)
{
    operand *o = make(dtype, ndim, shape, (layout)below(3));
    const profile kind = (profile)below(PROFILES);
    const uint32_t offsets = below(3) == 0 ? 1 : 512;

    for (size_t i = 0; i < o->count; i++) {
        const uint64_t offset = below(offsets);
        const uint64_t unused = below(1u << 17);
        put(o, i, unused << 47 | UINT64_C(1) << 46 | offset << 37 | random_float(NPUQ_FLOAT32, kind));
    }
    return &o->tensor;
}

/* The ends of E groups of S rows; some groups are empty. */
static npuq_tensor *make_group_index(int64_t E, int64_t S)
{
    const npuq_dtype dtype = below(2) == 0 ? NPUQ_INT32 : NPUQ_INT64;
    const layout how = (layout)below(2);
    operand *o = make_filled(dtype, 1, &E, how, ANY_BITS);
    int64_t end = 0;

    for (int64_t e = 0; e < E; e++) {
        const uint32_t most = below((uint32_t)(S - end) + 1);
        end += most >> below(2);
        put(o, (size_t)((int64_t)o->first + e * o->tensor.strides[0]), (uint64_t)(e + 1 == E ? S : end));
    }
    return &o->tensor;
}

/* Ends a combination: hashes its outputs, with the gaps between their elements, and releases all operands. */
static void finish(void)
{
    for (size_t k = 0; k < operand_count; k++) {
        for (size_t i = 0; operands[k].written && i < operands[k].count; i++) {
            add(get(&operands[k], i));
        }
        free(operands[k].memory);
    }
    operand_count = 0;
}

/* ---- calls: RUN(operator, arguments) ---- */

#ifdef CHECKSUM_ORACLE

#define RUN(name, ...)       (oracle_##name(__VA_ARGS__), copy_back())
#define RUN_WITHOUT_EXECUTOR RUN

/* The last extent, the product of the others, and of all. */
static size_t columns(const npuq_tensor *t)
{
    return t->ndim > 0 ? (size_t)t->shape[t->ndim - 1] : 1;
}

static size_t rows(const npuq_tensor *t)
{
    size_t n = 1;

    for (int d = 0; d < t->ndim - 1; d++) {
        n *= (size_t)t->shape[d];
    }
    return n;
}

static size_t count(const npuq_tensor *t)
{
    return t ? rows(t) * columns(t) : 0;
}

static npuq_ref_dtype type(const npuq_tensor *t)
{
    return t ? (npuq_ref_dtype)t->dtype : NPUQ_REF_FLOAT32;
}

/* Copies the elements of a view to an array, or back. */
static void copy(const npuq_tensor *t, unsigned char *array, bool back)
{
    const size_t size = size_of(t->dtype);

    for (size_t i = 0; i < count(t); i++) {
        int64_t rest = (int64_t)i;
        int64_t offset = 0;

        for (int d = t->ndim - 1; d >= 0; d--) {
            offset += rest % t->shape[d] * t->strides[d];
            rest /= t->shape[d];
        }
        unsigned char *element = (unsigned char *)t->data + offset * (int64_t)size;
        memcpy(back ? element : array + i * size, back ? array + i * size : element, size);
    }
}

/* A copy of the elements; null without the tensor. */
static unsigned char *elements(const npuq_tensor *t)
{
    if (!t) {
        return NULL;
    }
    operand *o = make(t->dtype, t->ndim, t->shape, CONTIGUOUS);
    o->copied = (const operand *)t;
    copy(t, o->memory, false);
    return o->memory;
}

static void copy_back(void)
{
    for (size_t i = 0; i < operand_count; i++) {
        if (operands[i].copied && operands[i].copied->written) {
            copy(&operands[i].copied->tensor, operands[i].memory, true);
        }
    }
}

static const int64_t *ends(const npuq_tensor *group_index)
{
    if (!group_index) {
        return NULL;
    }
    operand *o = make(NPUQ_INT64, 1, group_index->shape, CONTIGUOUS);
    const bool narrow = group_index->dtype == NPUQ_INT32;
    const void *given = elements(group_index);

    for (size_t e = 0; e < o->count; e++) {
        put(o, e, narrow ? ((const uint32_t *)given)[e] : ((const uint64_t *)given)[e]);
    }
    return (const int64_t *)(const void *)o->memory;
}

static void oracle_quantize(const npuq_tensor *x, const npuq_tensor *s, const npuq_tensor *z, int32_t axis,
                            bool div_mode, const npuq_tensor *y)
{
    size_t shape[NPUQ_MAX_NDIM];

    for (int d = 0; d < x->ndim; d++) {
        shape[d] = (size_t)x->shape[d];
    }
    npuq_ref_quantize(elements(x), type(x), shape, x->ndim, elements(s), type(s), count(s), elements(z), type(z), axis,
                      div_mode, elements(y), type(y));
}

static void oracle_group_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *group_index,
                               const npuq_tensor *offset, const npuq_tensor *y)
{
    npuq_ref_group_quant(elements(x), type(x), rows(x), columns(x), elements(scale), type(scale), count(group_index),
                         ends(group_index), elements(offset), elements(y), type(y));
}

static void oracle_trans_quant_param(const npuq_tensor *scale, const npuq_tensor *offset, npuq_round_mode mode,
                                     const npuq_tensor *y)
{
    npuq_ref_trans_quant_param((float *)elements(scale), count(scale), (float *)elements(offset), count(offset),
                               mode == NPUQ_ROUND_NEAREST, (uint64_t *)elements(y));
}

static void oracle_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth,
                                            const npuq_tensor *group_index, npuq_quant_mode mode, const npuq_tensor *y,
                                            const npuq_tensor *scale, const npuq_tensor *offset)
{
    npuq_ref_dynamic_quant_asymmetric(elements(x), type(x), rows(x), columns(x), elements(smooth), type(smooth),
                                      group_index ? count(group_index) : 1, ends(group_index), mode == NPUQ_PER_TENSOR,
                                      elements(y), type(y), (float *)elements(scale), (float *)elements(offset));
}

static void oracle_dynamic_quant(const npuq_tensor *x, const npuq_tensor *smooth, const npuq_tensor *group_index,
                                 npuq_quant_mode mode, npuq_scale_form form, const npuq_tensor *y,
                                 const npuq_tensor *scale)
{
    npuq_ref_dynamic_quant(elements(x), type(x), rows(x), columns(x), elements(smooth), type(smooth),
                           group_index ? count(group_index) : 1, ends(group_index), mode == NPUQ_PER_TENSOR,
                           form == NPUQ_SCALE_INVERSE, elements(y), type(y), (float *)elements(scale));
}

static void oracle_dynamic_block_quant(const npuq_tensor *x, int64_t block, float min_scale, const npuq_tensor *y,
                                       const npuq_tensor *scale)
{
    npuq_ref_dynamic_block_quant(elements(x), type(x), rows(x), columns(x), (size_t)block, min_scale, elements(y),
                                 type(y), (float *)elements(scale));
}

static void oracle_anti_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                              const npuq_tensor *y)
{
    npuq_ref_anti_quant(elements(x), type(x), rows(y), columns(y), elements(scale), type(scale), count(scale),
                        elements(offset), elements(y), type(y));
}

static void oracle_dequant(const npuq_tensor *x, const npuq_tensor *weight_scale, const npuq_tensor *activation_scale,
                           const npuq_tensor *bias, const npuq_tensor *y)
{
    npuq_ref_dequant((const int32_t *)elements(x), rows(x), columns(x), elements(weight_scale), type(weight_scale),
                     count(weight_scale), (float *)elements(activation_scale), elements(bias), type(bias), elements(y),
                     type(y));
}

static void oracle_requant(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *bias,
                           const npuq_tensor *y)
{
    npuq_ref_requant((const int32_t *)elements(x), rows(x), columns(x), (uint64_t *)elements(scales), count(scales),
                     (const int32_t *)elements(bias), elements(y), type(y));
}

#else

#define RUN(name, ...)                  (begin(), end(npuq_##name(__VA_ARGS__, executor)))
#define RUN_WITHOUT_EXECUTOR(name, ...) (begin(), end(npuq_##name(__VA_ARGS__)))

/* The rounding mode, and what else changes results. */
#if defined(__arm__) && defined(__ARM_FP)

/* Not every C library for Arm can set them. The last two flush subnormals, and replace NaNs. */
static const int fp_states[] = {0, 1 << 22, 2 << 22, 3 << 22, 1 << 24, 1 << 25};

static int get_fp_state(void)
{
    unsigned fpscr;

    __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr) : : "memory");
    return (int)(fpscr & 15u << 22);
}

static void set_fp_state(int state)
{
    unsigned fpscr;

    __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr) : : "memory");
    fpscr = (fpscr & ~(15u << 22)) | (unsigned)state;
    __asm__ volatile("vmsr fpscr, %0" : : "r"(fpscr) : "memory");
}

#elif defined(FE_TONEAREST)

static const int fp_states[] = {
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

static int get_fp_state(void)
{
    return fegetround();
}

static void set_fp_state(int state)
{
    (void)fesetround(state);
}

#else

static const int fp_states[] = {0}; /* no other is known */

static int get_fp_state(void)
{
    return 0;
}

static void set_fp_state(int state)
{
    (void)state;
}

#endif

static int fp_state;
static const npuq_executor *executor;

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

/* Each call has another state than the call before. All states have calls with and without an executor. */
static void begin(void)
{
    static const npuq_executor backwards = {run_backwards, NULL};
    static size_t calls;

    executor = calls / COUNT(fp_states) % 2 == 0 ? &backwards : NULL;
    fp_state = fp_states[calls++ % COUNT(fp_states)];
    set_fp_state(fp_state);
}

static void end(npuq_status status)
{
    if (get_fp_state() != fp_state) {
        (void)fprintf(stderr, "checksum: the caller's floating-point state is another after the call\n");
        exit(1);
    }
    set_fp_state(fp_states[0]);
    if (status != NPUQ_OK) {
        (void)fprintf(stderr, "checksum: %s: %s\n", npuq_status_name(status), npuq_last_error());
        exit(1);
    }
}

#endif

/* ---- every combination ---- */

static const npuq_dtype floats[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
static const npuq_dtype narrows[] = {NPUQ_INT8, NPUQ_QUINT4X2};
static const npuq_dtype wides[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
static const npuq_dtype addends[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16, NPUQ_INT32, NPUQ_INT8, NPUQ_UINT8};

typedef struct shape {
    int ndim;
    int64_t extents[NPUQ_MAX_NDIM];
    int32_t axis; /* of quantize */
} shape;

static const shape short_rows[] = {
    {1, {1}, 0},           {1, {168}, -1},       {2, {1, 8}, 0},
    {2, {5, 24}, 1},       {2, {3, 200}, -2},    {2, {17, 8}, 0},
    {2, {9, 1}, -1},       {2, {11, 33}, -1},    {2, {40, 8}, -2},
    {3, {4, 5, 8}, 0},     {3, {2, 37, 16}, 1},  {3, {4, 3, 67}, -1},
    {4, {2, 3, 2, 72}, 2}, {4, {2, 3, 5, 1}, 1}, {8, {2, 1, 2, 1, 2, 1, 2, 8}, -2},
};

static const shape *shapes = short_rows;
static size_t shape_count = COUNT(short_rows);

static const int64_t one = 1;

static int64_t last(const shape *c)
{
    return c->extents[c->ndim - 1];
}

static void quantize_combination(const shape *c, bool div_mode, npuq_dtype x_dtype, npuq_dtype s_dtype,
                                 const npuq_dtype *z_dtype, npuq_dtype y_dtype)
{
    const int32_t other = c->axis == -2 ? c->ndim - 2 : c->ndim - 1;
    const int32_t a = !div_mode ? other : c->axis < 0 ? c->axis + c->ndim : c->axis;
    const int64_t n = below(3) == 0 ? 1 : c->extents[a];
    const npuq_tensor *x = &make_x(x_dtype, c->ndim, c->extents)->tensor;
    const npuq_tensor *s = make_input(s_dtype, 1, &n);
    const npuq_tensor *z = z_dtype ? make_input(*z_dtype, 1, &n) : NULL;
    const npuq_tensor *y = make_output(y_dtype, c->ndim, c->extents);

    RUN(quantize, x, s, z, c->axis, div_mode, y);
    finish();
}

static void quantize(void)
{
    for (size_t i = 0; i < shape_count * 2 * COUNT(floats) * COUNT(floats); i++) {
        const shape *c = &shapes[i / 18];
        const bool div_mode = i / 9 % 2 == 0;
        const npuq_dtype *y_dtypes = div_mode ? wides : narrows;
        const npuq_dtype s_dtype = floats[i % 3];

        for (size_t k = 0; k < (div_mode ? COUNT(wides) : COUNT(narrows)); k++) {
            if (y_dtypes[k] == NPUQ_QUINT4X2 && last(c) % 8 != 0) {
                continue;
            }
            quantize_combination(c, div_mode, floats[i / 3 % 3], s_dtype, NULL, y_dtypes[k]);
            for (size_t z = 0; z < COUNT(addends); z++) {
                if (div_mode || addends[z] == s_dtype) {
                    quantize_combination(c, div_mode, floats[i / 3 % 3], s_dtype, &addends[z], y_dtypes[k]);
                }
            }
        }
    }
}

static void group_quant(void)
{
    for (size_t i = 0; i < shape_count * 36; i++) {
        const shape *c = &shapes[i / 36];
        const npuq_dtype s_dtype = floats[i % 3];
        const npuq_dtype y_dtype = narrows[i / 9 % 2];
        const int64_t scale_shape[] = {1 + (int64_t)below(12), last(c)};

        if (c->ndim != 2 || (y_dtype == NPUQ_QUINT4X2 && last(c) % 8 != 0)) {
            continue;
        }
        const npuq_tensor *x = &make_x(floats[i / 3 % 3], 2, c->extents)->tensor;
        const npuq_tensor *scale = make_input(s_dtype, 2, scale_shape);
        const npuq_tensor *group_index = make_group_index(scale_shape[0], c->extents[0]);
        const npuq_tensor *offset = i % 36 < 18 ? make_input(s_dtype, below(2) == 0 ? 1 : 0, &one) : NULL;
        const npuq_tensor *y = make_output(y_dtype, 2, c->extents);

        RUN(group_quant, x, scale, group_index, offset, y);
        finish();
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
        const npuq_tensor *scale = make_input(NPUQ_FLOAT32, scale_ndim, scale_shape + 2 - scale_ndim);
        const npuq_tensor *offset =
            n[1] > 0 ? make_input(NPUQ_FLOAT32, offset_ndim, offset_shape + 2 - offset_ndim) : NULL;
        const npuq_tensor *y = make_output(i % 2 == 0 ? NPUQ_INT64 : NPUQ_UINT64, y_ndim, y_shape + 2 - y_ndim);
        const npuq_round_mode mode = i / 2 % 2 == 0 ? NPUQ_ROUND_TRUNCATE : NPUQ_ROUND_NEAREST;

        RUN_WITHOUT_EXECUTOR(trans_quant_param, scale, offset, mode, y);
        finish();
    }
}

/* Calls of one of the dynamic operators, or of its steps. */
typedef void dynamic_call(bool symmetric, const npuq_tensor *x, const npuq_tensor *smooth,
                          const npuq_tensor *group_index, npuq_quant_mode mode, npuq_dtype y_dtype);

/* A result for each token of x, or for all tokens: of one dimension less than x, or [1]. */
static npuq_tensor *of_tokens(npuq_tensor *make_operand(npuq_dtype dtype, int ndim, const int64_t *shape),
                              const npuq_tensor *x, npuq_quant_mode mode)
{
    const bool per_token = mode == NPUQ_PER_TOKEN;

    return make_operand(NPUQ_FLOAT32, per_token ? x->ndim - 1 : 1, per_token ? x->shape : &one);
}

static void dynamic_quant(bool symmetric, const npuq_tensor *x, const npuq_tensor *smooth,
                          const npuq_tensor *group_index, npuq_quant_mode mode, npuq_dtype y_dtype)
{
    const npuq_scale_form form = below(2) == 0 ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;
    const npuq_tensor *y = make_output(y_dtype, x->ndim, x->shape);
    const npuq_tensor *scale = of_tokens(make_output, x, mode);

    if (symmetric) {
        RUN(dynamic_quant, x, smooth, group_index, mode, form, y, scale);
    } else {
        RUN(dynamic_quant_asymmetric, x, smooth, group_index, mode, y, scale, of_tokens(make_output, x, mode));
    }
    finish();
}

static void dynamic_combinations(dynamic_call *call)
{
    for (size_t i = 0; i < shape_count * 2 * 72; i++) {
        const shape *c = &shapes[i / 144];
        const bool symmetric = i / 72 % 2 != 0;
        const size_t how = i / 18 % 4; /* smooth scales: none, [H], [E, H] with groups, [H] per tensor */
        const npuq_dtype y_dtype = narrows[i / 9 % 2];
        const int64_t E = how == 2 ? 1 + (int64_t)below(6) : 1;
        const int64_t smooth_shape[] = {how == 2 ? E : last(c), last(c)};
        const npuq_quant_mode mode = how == 3 ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN;
        int64_t S = 1;

        if (c->ndim < 2 || (y_dtype == NPUQ_QUINT4X2 && last(c) % 8 != 0)) {
            continue;
        }
        for (int d = 0; d < c->ndim - 1; d++) {
            S *= c->extents[d];
        }
        const npuq_tensor *x = &make_x(floats[i / 3 % 3], c->ndim, c->extents)->tensor;
        const npuq_tensor *smooth = how == 0 ? NULL : make_input(floats[i % 3], how == 2 ? 2 : 1, smooth_shape);
        const npuq_tensor *group_index = how == 2 ? make_group_index(E, S) : NULL;

        call(symmetric, x, smooth, group_index, mode, y_dtype);
    }
}

static void dynamic_operators(void)
{
    dynamic_combinations(dynamic_quant);
}

static void uint8_of_int8(bool symmetric, const npuq_tensor *x, const npuq_tensor *smooth,
                          const npuq_tensor *group_index, npuq_quant_mode mode, npuq_dtype y_dtype)
{
    if (symmetric && y_dtype == NPUQ_INT8) {
        dynamic_quant(true, x, smooth, group_index, mode, NPUQ_UINT8);
    } else {
        finish();
    }
}

static void uint8_operators(void)
{
    dynamic_combinations(uint8_of_int8);
}

static void anti_quant(void)
{
    for (size_t i = 0; i < shape_count * 36; i++) {
        const shape *c = &shapes[i / 36];
        const npuq_dtype x_dtype = narrows[i / 18 % 2];
        const npuq_dtype s_dtype = floats[i / 6 % 3];
        const int64_t n = below(4) == 0 ? 1 : last(c);
        int64_t extents[NPUQ_MAX_NDIM];

        if (x_dtype == NPUQ_QUINT4X2 && last(c) % 8 != 0) {
            continue;
        }
        store(extents, x_dtype, c->ndim, c->extents);
        const npuq_tensor *x = &make_x(x_dtype, c->ndim, extents)->tensor;
        const npuq_tensor *scale = make_input(s_dtype, 1, &n);
        const npuq_tensor *offset = i % 2 == 0 ? make_input(s_dtype, 1, &n) : NULL;
        const npuq_tensor *y = make_output(floats[i / 2 % 3], c->ndim, c->extents);

        RUN(anti_quant, x, scale, offset, y);
        finish();
    }
}

static void dequant(void)
{
    for (size_t i = 0; i < shape_count * 90; i++) {
        const shape *c = &shapes[i / 90];
        const int64_t n = below(4) == 0 ? 1 : last(c);
        const size_t bias_kind = i / 2 % 5; /* the last: none */
        const npuq_tensor *x = make_sums(c->ndim, c->extents);
        const npuq_tensor *weight_scale = make_input(floats[i / 30 % 3], 1, &n);
        const npuq_tensor *activation_scale = i % 2 == 0 ? make_input(NPUQ_FLOAT32, c->ndim - 1, c->extents) : NULL;
        const npuq_tensor *bias = bias_kind < 4 ? make_input(addends[bias_kind], 1, &c->extents[c->ndim - 1]) : NULL;
        const npuq_tensor *y = make_output(floats[i / 10 % 3], c->ndim, c->extents);

        RUN(dequant, x, weight_scale, activation_scale, bias, y);
        finish();
    }
}

static void requant(void)
{
    for (size_t i = 0; i < shape_count * 24; i++) {
        const shape *c = &shapes[i / 24];
        const size_t form = i / 4 % 3; /* words: [1], [N], (1, N) */
        const int64_t words_shape[] = {1, form == 0 ? 1 : last(c)};
        const int words_ndim = form == 2 ? 2 : 1;
        const npuq_tensor *x = make_sums(c->ndim, c->extents);
        const npuq_tensor *words =
            make_words(i / 12 % 2 == 0 ? NPUQ_INT64 : NPUQ_UINT64, words_ndim, words_shape + 2 - words_ndim);
        const npuq_tensor *bias = i % 2 == 0 ? make_input(NPUQ_INT32, 1, &c->extents[c->ndim - 1]) : NULL;
        const npuq_tensor *y = make_output(i / 2 % 2 == 0 ? NPUQ_INT8 : NPUQ_FLOAT16, c->ndim, c->extents);

        RUN(requant, x, words, bias, y);
        finish();
    }
}

/* ---- data that shows a step that was left out ---- */

typedef enum trap {
    FUSED,    /* x * s + z is a tie if the product has been rounded */
    QUOTIENT, /* x / s is an integer, and x / s + z a tie, if the quotient has been rounded */
    SUM,      /* x + z is a tie if it has been rounded */
} trap;

static const int64_t trap_shape[] = {1, 4096};

/* Element i of x, s and z. An x of integers has the value of a float32. */
static void set_trap(trap kind, operand *x, operand *s, operand *z, size_t i)
{
    const npuq_dtype dtype = x->tensor.dtype;
    const int x_bits = dtype == NPUQ_FLOAT16 ? 11 : dtype == NPUQ_BFLOAT16 ? 8 : 20;
    const int s_bits = kind == QUOTIENT ? 13 : x_bits == 20 ? 20 : 24;
    const int point = x_bits + s_bits - 20;
    const uint32_t a = 1u << (x_bits - 1) | below(1u << (x_bits - 1));
    const uint32_t b = 1u << (s_bits - 1) | below(1u << (s_bits - 1)) | 1u;
    const bool negative = below(2) != 0;
    int shift;
    const uint32_t product = round_to_24((uint64_t)a * b, &shift); /* x * s = product * 2^(shift - point) */

    switch (kind) {
    case FUSED:
        put(x, i, dtype == NPUQ_INT32 ? a : float_bits(dtype, false, a, 0));
        put(s, i, float_bits(NPUQ_FLOAT32, false, b, -point));
        put(z, i, float_bits(NPUQ_FLOAT32, true, product - (1u << (point - shift - 1)), shift - point));
        break;
    case QUOTIENT:
        put(x, i, float_bits(dtype, false, product, shift));
        put(s, i, float_bits(NPUQ_FLOAT32, false, b, 0));
        put(z, i, float_bits(NPUQ_FLOAT32, true, 2 * a - 1, -1));
        break;
    case SUM:
        put(x, i, float_bits(dtype, negative, 2 * (a & 127u) + 1, -1));
        put(s, i, 0x3F800000u);
        put(z, i, float_bits(NPUQ_FLOAT32, (a & 128u) != 0, 1, (int)(b >> 1 & 15u) - 50));
        break;
    }
}

static void quantize_traps(void)
{
    for (size_t i = 0; i < 3 * COUNT(floats) * 4; i++) {
        const trap kind = (trap)(i / 12);
        const npuq_dtype x_dtype = kind == QUOTIENT ? NPUQ_FLOAT32 : floats[i / 4 % 3];
        const bool div_mode = kind == QUOTIENT || (kind == SUM && i % 4 > 1);
        operand *x = make(x_dtype, 2, trap_shape, CONTIGUOUS);
        operand *s = make(NPUQ_FLOAT32, 1, trap_shape + 1, CONTIGUOUS);
        operand *z = make(NPUQ_FLOAT32, 1, trap_shape + 1, CONTIGUOUS);
        const npuq_tensor *y = make_output(div_mode ? wides[i % 3] : narrows[i % 2], 2, trap_shape);

        for (size_t k = 0; k < x->count; k++) {
            set_trap(kind, x, s, z, k);
        }
        RUN(quantize, &x->tensor, &s->tensor, &z->tensor, -1, div_mode, y);
        finish();
    }
}

/* There is one offset for all: rows of eight equal elements. */
static void group_quant_traps(void)
{
    static const int64_t row[] = {1, 8};

    for (size_t i = 0; i < 2 * COUNT(floats) * 100; i++) {
        operand *x = make(floats[i % 3], 2, row, CONTIGUOUS);
        operand *scale = make(NPUQ_FLOAT32, 2, row, CONTIGUOUS);
        operand *offset = make(NPUQ_FLOAT32, 1, &one, CONTIGUOUS);
        operand *group_index = make(NPUQ_INT64, 1, &one, CONTIGUOUS);
        const npuq_tensor *y = make_output(narrows[i / 3 % 2], 2, row);

        set_trap(i % 2 == 0 ? FUSED : SUM, x, scale, offset, 0);
        for (size_t k = 1; k < x->count; k++) {
            put(x, k, get(x, 0));
            put(scale, k, get(scale, 0));
        }
        put(group_index, 0, 1);
        RUN(group_quant, &x->tensor, &scale->tensor, &group_index->tensor, &offset->tensor, y);
        finish();
    }
}

static void dynamic_block_quant(const shape *c, npuq_dtype x_dtype, npuq_dtype y_dtype, int64_t block, float min_scale)
{
    int64_t extents[NPUQ_MAX_NDIM];

    memcpy(extents, c->extents, sizeof extents);
    extents[c->ndim - 1] = (last(c) + block - 1) / block;
    const npuq_tensor *x = &make_x(x_dtype, c->ndim, c->extents)->tensor;
    const npuq_tensor *y = make_output(y_dtype, c->ndim, c->extents);
    const npuq_tensor *scale = make_output(NPUQ_FLOAT32, c->ndim, extents);

    RUN(dynamic_block_quant, x, block, min_scale, y, scale);
    finish();
}

/* With a min_scale between those of many blocks, and one whose inverse is too large. */
static void blocks_of(const shape *c)
{
    static const int64_t blocks[] = {8, 16, 32, 64, 128, 40, 1, 5};
    static const float min_scales[] = {0.0f, 0.125f, 7.34683969263929692e-40f};

    for (size_t i = 0; i < COUNT(blocks) * 18; i++) {
        const int64_t block = blocks[i / 18];
        const npuq_dtype y_dtype = narrows[i / 3 % 2];

        if (y_dtype != NPUQ_QUINT4X2 || (last(c) % 8 == 0 && (block % 8 == 0 || block >= last(c)))) {
            dynamic_block_quant(c, floats[i % 3], y_dtype, block, min_scales[i / 6 % 3]);
        }
    }
}

static void block_operators(void)
{
    for (size_t i = 0; i < COUNT(short_rows); i++) {
        blocks_of(&short_rows[i]);
    }
}

/* A range of 255 makes the scale 1 and the offset -128; the others are m + 0.5, or a little more, which is lost when
 * the offset is added. */
static void dynamic_traps(void)
{
    for (size_t i = 0; i < 4; i++) {
        operand *row = make(NPUQ_FLOAT32, 2, trap_shape, CONTIGUOUS);

        for (size_t k = 0; k < row->count; k++) {
            const uint32_t bits = below(8);
            put(row, k, float_bits(NPUQ_FLOAT32, false, (bits | 1u) << 20 | (bits & 1u), -21));
        }
        put(row, 0, 0);
        put(row, row->count - 1, 0x437F0000u);
        dynamic_quant(i % 2 != 0, &row->tensor, NULL, NULL, i < 2 ? NPUQ_PER_TOKEN : NPUQ_PER_TENSOR, NPUQ_INT8);
    }
}

/* x is [12, n], so that 1 to 4, 6 and 12 groups divide it. */
static void anti_groups(void)
{
    static const int64_t columns[] = {8, 72, 1, 33, 4200};

    for (size_t i = 0; i < COUNT(columns) * 6 * 36; i++) {
        static const int64_t groups[] = {1, 2, 3, 4, 6, 12};
        const npuq_dtype x_dtype = narrows[i / 18 % 2];
        const npuq_dtype s_dtype = floats[i / 6 % 3];
        const int64_t extents_of_x[] = {12, columns[i / 36 / 6]};
        const int64_t scale_shape[] = {groups[i / 36 % 6], extents_of_x[1]};
        int64_t extents[NPUQ_MAX_NDIM];

        if (x_dtype == NPUQ_QUINT4X2 && extents_of_x[1] % 8 != 0) {
            continue;
        }
        store(extents, x_dtype, 2, extents_of_x);
        const npuq_tensor *x = &make_x(x_dtype, 2, extents)->tensor;
        const npuq_tensor *scale = make_input(s_dtype, 2, scale_shape);
        const npuq_tensor *offset = i % 2 != 0 ? make_input(s_dtype, 2, scale_shape) : NULL;
        const npuq_tensor *y = make_output(floats[i / 2 % 3], 2, extents_of_x);

        RUN(anti_quant, x, scale, offset, y);
        finish();
    }
}

static void dequant_traps(void)
{
    for (size_t i = 0; i < COUNT(floats); i++) {
        operand *x = make(NPUQ_INT32, 2, trap_shape, CONTIGUOUS);
        operand *scale = make(NPUQ_FLOAT32, 1, trap_shape + 1, CONTIGUOUS);
        operand *bias = make(NPUQ_FLOAT32, 1, trap_shape + 1, CONTIGUOUS);
        const npuq_tensor *y = make_output(floats[i], 2, trap_shape);

        for (size_t k = 0; k < x->count; k++) {
            set_trap(FUSED, x, scale, bias, k);
        }
        RUN(dequant, &x->tensor, &scale->tensor, NULL, &bias->tensor, y);
        finish();
    }
}

/* A product of 34 or 35 bits that is a tie of int8 or float16 if it has been rounded to 24. */
static void requant_traps(void)
{
    for (int to_float16 = 0; to_float16 < 2; to_float16++) {
        operand *x = make(NPUQ_INT32, 2, trap_shape, CONTIGUOUS);
        operand *words = make(NPUQ_UINT64, 1, trap_shape + 1, CONTIGUOUS);
        const npuq_tensor *y = make_output(to_float16 ? NPUQ_FLOAT16 : NPUQ_INT8, 2, trap_shape);

        for (size_t i = 0; i < x->count; i++) {
            const uint64_t halves = to_float16 ? 2048 | 1 | below(2048) : 1 | below(256);
            const uint32_t scale = 1024 + below(1024);
            const bool negative = below(2) != 0;
            int point = 0;

            while ((halves << point) / scale < 1u << 23) {
                point++;
            }
            put(x, i, ((halves << point) + scale / 2) / scale);
            put(words, i, UINT64_C(1) << 46 | float_bits(NPUQ_FLOAT32, negative, scale, -point - 1));
        }
        RUN(requant, &x->tensor, &words->tensor, NULL, y);
        finish();
    }
}

/* The library multiplies no matrices: this part takes the low half of sums of 64 bits. */
static void quant_matmul(void)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 64, 5}, {16, 33, 16}, {1, 4096, 1}, {20, 8, 40}}; /* M, K, N */

    for (size_t i = 0; i < COUNT(sizes) * 8; i++) {
        const int64_t *size = sizes[i / 8];
        const int64_t y_shape[] = {size[0], size[2]};
        operand *x1 = make_filled(NPUQ_INT8, 2, size, CONTIGUOUS, ANY_BITS);
        operand *x2 = make_filled(NPUQ_INT8, 2, size + 1, CONTIGUOUS, ANY_BITS);
        operand *bias = i % 2 == 0 ? make_filled(NPUQ_INT32, 1, size + 2, CONTIGUOUS, ANY_BITS) : NULL;
        operand *y = make_filled(NPUQ_INT32, 2, y_shape, CONTIGUOUS, ANY_BITS);

        y->written = true;
#ifdef CHECKSUM_ORACLE
        npuq_ref_quant_matmul((const int8_t *)x1->memory, (const int8_t *)x2->memory, (size_t)size[0], (size_t)size[1],
                              (size_t)size[2], bias ? (const int32_t *)(void *)bias->memory : NULL,
                              (int32_t *)(void *)y->memory);
#else
        for (size_t k = 0; k < y->count; k++) {
            uint64_t sum = bias ? get(bias, k % (size_t)size[2]) : 0;
            for (size_t j = 0; j < (size_t)size[1]; j++) {
                const int64_t a = (int8_t)get(x1, k / (size_t)size[2] * (size_t)size[1] + j);
                sum += (uint64_t)(a * (int8_t)get(x2, j * (size_t)size[2] + k % (size_t)size[2]));
            }
            put(y, k, sum);
        }
#endif
        finish();
    }
}

/* ---- parts for the library alone ---- */

#ifndef CHECKSUM_ORACLE

/* Each step has its own operands: its inputs are not the outputs of the step before. */
static void dynamic_steps_of(bool symmetric, const npuq_tensor *x, const npuq_tensor *smooth,
                             const npuq_tensor *group_index, npuq_quant_mode mode, npuq_dtype y_dtype)
{
    const npuq_scale_form form = below(2) == 0 ? NPUQ_SCALE_PRODUCT : NPUQ_SCALE_INVERSE;
    const npuq_tensor *first = of_tokens(make_input, x, mode);  /* min, or the scale */
    const npuq_tensor *second = of_tokens(make_input, x, mode); /* max, or the offset */
    const npuq_tensor *min = of_tokens(make_output, x, mode);
    const npuq_tensor *max = of_tokens(make_output, x, mode);
    const npuq_tensor *scale = of_tokens(make_output, x, mode);
    const npuq_tensor *offset = of_tokens(make_output, x, mode);
    const npuq_tensor *y = make_output(y_dtype, x->ndim, x->shape);

    RUN(dynamic_quant_min_max, x, smooth, group_index, mode, min, max);
    if (symmetric) {
        RUN_WITHOUT_EXECUTOR(dynamic_quant_symmetric_params, first, second, y_dtype, form, scale);
        RUN(dynamic_quant_symmetric_apply, x, smooth, group_index, mode, first, second, y);
    } else {
        RUN_WITHOUT_EXECUTOR(dynamic_quant_params, first, second, y_dtype, scale, offset);
        RUN(dynamic_quant_apply, x, smooth, group_index, mode, first, second, y);
    }
    finish();
}

static void dynamic_steps(void)
{
    dynamic_combinations(dynamic_steps_of);
}

static const shape long_rows[] = {{2, {3, 2056}, 1}, {2, {2, 4200}, -1}, {3, {2, 1, 9000}, 2}};

static void long_blocks(void)
{
    for (size_t i = 0; i < COUNT(long_rows); i++) {
        blocks_of(&long_rows[i]);
    }
}

static void long_ones(void)
{
    shapes = long_rows;
    shape_count = COUNT(long_rows);
    quantize();
    group_quant();
    dynamic_operators();
    anti_quant();
    dequant();
    requant();
    dynamic_steps();
    shapes = short_rows;
    shape_count = COUNT(short_rows);
}

/* More than the caches hold: kernels may then read and write another way. A machine without 64 MB takes the right
 * checksum without this part. */
static void large(void)
{
#ifdef CHECKSUM_WITHOUT_LARGE
    checksum = UINT64_C(0xEC5F4387CB3B64EE);
#else
    static const int64_t extents[] = {5, 1031 * 1031};

    for (int symmetric = 0; symmetric < 2; symmetric++) {
        const npuq_tensor *smooth = &make_filled(NPUQ_FLOAT32, 1, extents + 1, CONTIGUOUS, ORDINARY)->tensor;
        const npuq_tensor *x = &make_filled(NPUQ_FLOAT32, 2, extents, CONTIGUOUS, ORDINARY)->tensor;

        RUN(quantize, x, smooth, NULL, -1, true, make_output(NPUQ_INT8, 2, extents));
        dynamic_quant(symmetric != 0, x, smooth, NULL, NPUQ_PER_TOKEN, NPUQ_INT8);
    }
    const npuq_tensor *x = &make_filled(NPUQ_INT8, 2, extents, CONTIGUOUS, ANY_BITS)->tensor;
    const npuq_tensor *sums = &make_filled(NPUQ_INT32, 2, extents, CONTIGUOUS, MIXED)->tensor;
    const npuq_tensor *scale = &make_filled(NPUQ_FLOAT32, 1, extents + 1, CONTIGUOUS, ORDINARY)->tensor;
    const npuq_tensor *activation_scale = make_input(NPUQ_FLOAT32, 1, extents);
    const npuq_tensor *words = make_words(NPUQ_UINT64, 1, extents + 1);

    RUN(anti_quant, x, scale, NULL, make_output(NPUQ_FLOAT16, 2, extents));
    RUN(dequant, sums, scale, activation_scale, NULL, make_output(NPUQ_FLOAT16, 2, extents));
    RUN(requant, sums, words, NULL, make_output(NPUQ_INT8, 2, extents));
    finish();
#endif
}

static void refusals(void)
{
    static const int64_t extents[] = {4, 16};
    const npuq_tensor *x = &make_x(NPUQ_FLOAT32, 2, extents)->tensor;
    const npuq_tensor *s = make_input(NPUQ_FLOAT32, 1, extents);
    const npuq_tensor *scale = make_input(NPUQ_FLOAT32, 1, extents + 1);
    const npuq_tensor *sums = make_sums(2, extents);
    const npuq_tensor *rows = make_output(NPUQ_FLOAT32, 1, extents);
    const npuq_tensor *back = make_output(NPUQ_FLOAT32, 2, extents);
    const npuq_tensor *y = make_output(NPUQ_INT8, 2, extents);
    operand *words = make_filled(NPUQ_UINT64, 1, extents + 1, CONTIGUOUS, ANY_BITS);
    npuq_tensor far = *x;

    far.strides[0] = INT64_MAX / 8;
    put(words, 7, UINT64_C(1) << 33 | UINT64_C(1) << 46);
    add(npuq_quantize(NULL, s, NULL, 0, true, y, NULL));
    add(npuq_quantize(s, s, NULL, 0, true, y, NULL));
    add(npuq_quantize(x, s, NULL, 2, true, y, NULL));
    add(npuq_quantize(x, x, NULL, 0, true, y, NULL));
    add(npuq_quantize(x, s, y, 0, true, y, NULL));
    add(npuq_quantize(&far, s, NULL, 0, true, y, NULL));
    add(npuq_trans_quant_param(s, NULL, (npuq_round_mode)2, y));
    add(npuq_dynamic_quant(x, NULL, NULL, NPUQ_PER_TOKEN, (npuq_scale_form)2, y, rows, NULL));
    add(npuq_anti_quant(sums, scale, NULL, back, NULL));
    add(npuq_dequant(sums, scale, scale, NULL, back, NULL));
    add(npuq_requant(sums, &words->tensor, NULL, y, NULL));
    finish();
}

static void refused_blocks(void)
{
    static const int64_t extents[] = {4, 16};
    const npuq_tensor *x = &make_x(NPUQ_FLOAT32, 2, extents)->tensor;
    const npuq_tensor *y = make_output(NPUQ_INT8, 2, extents);
    const npuq_tensor *scale = make_output(NPUQ_FLOAT32, 2, extents);

    add(npuq_dynamic_block_quant(x, 0, 0.0f, y, scale, NULL));
    add(npuq_dynamic_block_quant(x, 1, -1.0f, y, scale, NULL));
    add(npuq_dynamic_block_quant(x, 2, 0.0f, y, scale, NULL));
    add(npuq_dynamic_block_quant(x, 1, 0.0f, y, x, NULL));
    finish();
}

#endif

#ifdef CHECKSUM_ORACLE
#define ALONE(part) NULL
#else
#define ALONE(part) part
#endif

/* Add new parts at the end: a part's index is its seed. */
static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"quantize", quantize},
    {"quantize, traps", quantize_traps},
    {"group_quant", group_quant},
    {"group_quant, traps", group_quant_traps},
    {"trans_quant_param", trans_quant_param},
    {"dynamic_quant", dynamic_operators},
    {"dynamic_quant, traps", dynamic_traps},
    {"anti_quant", anti_quant},
    {"dequant", dequant},
    {"dequant, traps", dequant_traps},
    {"requant", requant},
    {"requant, traps", requant_traps},
    {"quant_matmul", quant_matmul},
    {"steps of dynamic_quant, library alone", ALONE(dynamic_steps)},
    {"long rows, library alone", ALONE(long_ones)},
    {"large, library alone", ALONE(large)},
    {"refusals, library alone", ALONE(refusals)},
    {"dynamic_block_quant", block_operators},
    {"dynamic_block_quant, long rows, library alone", ALONE(long_blocks)},
    {"dynamic_block_quant, refusals, library alone", ALONE(refused_blocks)},
    {"anti_quant, scales by groups of rows", anti_groups},
    {"dynamic_quant to uint8", uint8_operators},
};

/* The first parts, whose checksum never changes. */
enum { OLDER_PARTS = 17 };

/* Returns the checksum of the parts' checksums; each of them is of its part alone. */
static uint64_t run(bool verbose, uint64_t *of_older_parts)
{
    uint64_t of_parts = 0;

    for (size_t i = 0; i < COUNT(parts); i++) {
        if (i == OLDER_PARTS) {
            *of_older_parts = of_parts;
        }
        if (!parts[i].run) {
            continue;
        }
        random_state = i;
        checksum = 0;
        parts[i].run();
        if (verbose) {
            (void)printf("# " HEX64 " %s\n", HALVES(checksum), parts[i].name);
        }
        const uint64_t part = checksum;
        checksum = of_parts;
        add(part);
        of_parts = checksum;
    }
    return of_parts;
}

#ifdef CHECKSUM_ORACLE

int main(void)
{
    uint64_t of_older_parts = 0;

    (void)run(true, &of_older_parts);
    return 0;
}

#else

static const uint64_t expected_of_older_parts = UINT64_C(0x2F593F264BA05C45);
static const uint64_t expected = UINT64_C(0x8BA492D7A2C2DD95);

int main(int argc, char **argv)
{
    const bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    int differ = 0;

    for (int i = 0; strcmp(npuq_backend_name((npuq_backend)i), "unknown") != 0; i++) {
        if (npuq_set_backend((npuq_backend)i) != NPUQ_OK) {
            continue; /* not on this machine */
        }
        uint64_t of_older_parts = 0;
        const uint64_t got = run(verbose, &of_older_parts);
        (void)printf("older %s " HEX64 "\n", npuq_backend_name((npuq_backend)i), HALVES(got));
        (void)fflush(stdout);
        if (got != expected || of_older_parts != expected_of_older_parts) {
            (void)fprintf(stderr, "checksum: expected " HEX64 ", and of the first parts " HEX64 ", not " HEX64 "\n",
                          HALVES(expected), HALVES(expected_of_older_parts), HALVES(of_older_parts));
            differ = 1;
        }
    }
    return differ;
}

#endif
