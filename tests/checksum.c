/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Draws calls of every operator, and hashes what they write. The checksum is the same on every machine: integers make
 * the data, values are hashed, not bytes, and no expression draws two random numbers (their order would be the
 * compiler's choice).
 *
 * Built against the library, the program prints the checksum of each backend. Calls run in the caller's floating-point
 * states, with executors and prepared. The program needs only the library and the C library, so it runs where the other
 * tests cannot be built. With TEST_WITHOUT_LIBRARY it calls the reference, src/ref, and prints the checksum of each
 * part that the reference can run.
 *
 * usage: checksum [-v]        -v also prints the checksum of each part: to see where two machines differ
 */
#include "calls.h"
#include "splitmix64.h"
#ifndef TEST_WITHOUT_LIBRARY
#include "fp_states.h"
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of 64 bits, as every printf() can print them. */
#define HEX64     "%08lX%08lX"
#define HALVES(n) (unsigned long)((n) >> 32), (unsigned long)((n)&0xFFFFFFFF)

/* ---- checksum and random integers -------------------------------------------------------------------------------- */

static uint64_t checksum;

static void add(uint64_t value)
{
    checksum = (checksum ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    checksum ^= checksum >> 29;
}

static uint64_t random_state;

static uint32_t below(uint32_t end)
{
    return (uint32_t)((splitmix64(&random_state) >> 32) * end >> 32);
}

static size_t choose(size_t end)
{
    return below((uint32_t)end);
}

/* ---- values, as bits --------------------------------------------------------------------------------------------- */

/* The float32 significand * 2^exponent, truncated; infinity beyond the range. */
static uint32_t float_bits(uint32_t significand, int exponent)
{
    if (significand == 0) {
        return 0;
    }
    for (; significand >> 24 > 0; exponent++) {
        significand >>= 1;
    }
    for (; significand >> 23 == 0; exponent--) {
        significand <<= 1;
    }
    const int field = exponent + 23 + 127;
    if (field >= 255) {
        return 0x7F800000;
    }
    if (field <= 0) {
        return field < -23 ? 0 : significand >> (1 - field);
    }
    return (((uint32_t)field - 1) << 23) + significand;
}

/* The bits of a float32 in another type, truncated. */
static uint32_t narrowed(npuq_dtype dtype, uint32_t bits)
{
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    const int field = (int)(magnitude >> 23) - 127 + 15;

    if (dtype != NPUQ_FLOAT16) {
        return dtype == NPUQ_BFLOAT16 ? bits >> 16 : bits;
    }
    if (field >= 31) {
        return sign | 0x7C00 | (magnitude > 0x7F800000 ? 0x200 : 0);
    }
    if (field <= 0) {
        return sign | (field < -10 ? 0 : ((magnitude & 0x7FFFFF) | 0x800000) >> (14 - field));
    }
    return sign | (magnitude - ((127 - 15) << 23)) >> 13;
}

static uint32_t with_sign(uint32_t bits, bool negative)
{
    return bits | (uint32_t)negative << 31;
}

/* Magnitudes at which something changes; the neighbours of each are drawn, too. */
static const float special_floats[] = {
    0,          0x1p-126F,  0x1p-14F,                            /* zero, the smallest normals */
    0.5F,       1,          1.5F,      2.5F,      0x8CBCCCp-63F, /* the last: the least dynamic scale */
    7.5F,       8.5F,       127.5F,    128.5F,    129.5F,        /* the ends of int4 and int8 */
    255.5F,     256.5F,     256,                                 /* of uint8 and of nine bits */
    0x1p22F,    0x1p23F,    0x1p24F,   0x1p31F,                  /* where the fraction ends; int32 */
    0x801p-11F, 0x803p-11F, 0x101p-8F, 0x103p-8F,                /* halfway in float16, in bfloat16 */
    65520,      0x1FFp119F, INFINITY,                            /* where each float type ends */
};

typedef enum profile { ORDINARY, TIES, SPECIAL, ANY_BITS, MIXED, CONSTANT, PROFILES } profile;

static uint32_t draw_float(npuq_dtype dtype, profile kind)
{
    const bool negative = below(2) != 0;

    switch (kind) {
    case TIES: return narrowed(dtype, with_sign(float_bits(below(dtype == NPUQ_BFLOAT16 ? 256 : 640), -1), negative));
    case SPECIAL: {
        uint32_t bits;
        memcpy(&bits, &special_floats[below(COUNT(special_floats))], sizeof bits);
        const uint32_t sign = narrowed(dtype, with_sign(0, negative));
        const uint32_t magnitude = narrowed(dtype, bits);
        return sign | (magnitude + below(3) - (magnitude > 0));
    }
    case ANY_BITS: return (uint32_t)splitmix64(&random_state);
    case MIXED: return draw_float(dtype, below(32) > 0 ? ORDINARY : SPECIAL);
    default: {
        const uint32_t significand = 1U << 23 | below(1U << 23);
        const int exponent = (int)below(14) - 29; /* 2^-6 to 2^8 */
        return narrowed(dtype, with_sign(float_bits(significand, exponent), negative));
    }
    }
}

/* A sum of products: of every length, and often of a scale that brings it into int8's range. */
static uint32_t draw_sum(void)
{
    const uint32_t any = (uint32_t)splitmix64(&random_state);
    const uint32_t magnitude = any >> below(32);

    return below(2) == 0 ? magnitude : 0 - magnitude;
}

/* A word that requant takes, with random ignored bits. */
static uint64_t draw_word(profile kind, uint32_t offsets)
{
    const uint64_t offset = below(offsets);
    const uint64_t unused = below(1U << 17);

    return unused << 47 | UINT64_C(1) << 46 | offset << 37 | draw_float(NPUQ_FLOAT32, kind);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* All memory of a view, from its lowest element to its highest. */
typedef struct operand {
    unsigned char *memory;
    size_t count; /* of elements in memory */
} operand;

static operand operands[SLOTS];

static void *allocate(size_t size)
{
    void *memory = malloc(size + 1);

    if (!memory) {
        (void)fprintf(stderr, "checksum: out of memory\n");
        exit(1);
    }
    return memory;
}

static void put(void *memory, npuq_dtype dtype, size_t i, uint64_t value)
{
    switch (test_size(dtype)) {
    case 1: ((uint8_t *)memory)[i] = (uint8_t)value; break;
    case 2: ((uint16_t *)memory)[i] = (uint16_t)value; break;
    case 4: ((uint32_t *)memory)[i] = (uint32_t)value; break;
    default: ((uint64_t *)memory)[i] = value; break;
    }
}

static uint64_t get(const void *memory, npuq_dtype dtype, size_t i)
{
    switch (test_size(dtype)) {
    case 1: return ((const uint8_t *)memory)[i];
    case 2: return ((const uint16_t *)memory)[i];
    case 4: return ((const uint32_t *)memory)[i];
    default: return ((const uint64_t *)memory)[i];
    }
}

/* Fills the memory of a tensor, gaps between its elements included. Much memory repeats. */
static void fill(operand *o, enum slot slot, npuq_dtype dtype, bool written)
{
    enum { PERIOD = 100003 };
    const profile kind = written ? ANY_BITS : (profile)below(PROFILES);
    const uint32_t offsets = below(3) == 0 ? 1 : 512; /* a third of the words have none */

    for (size_t i = 0; i < o->count; i++) {
        uint64_t value;
        if (i >= PERIOD || (i > 0 && kind == CONSTANT)) {
            value = get(o->memory, dtype, kind == CONSTANT ? 0 : i - PERIOD);
        } else if (slot == WORDS) {
            value = draw_word(kind, offsets);
        } else if (slot == X && dtype == NPUQ_INT32) {
            value = draw_sum();
        } else if (test_is_float(dtype)) {
            value = draw_float(dtype, kind);
        } else {
            value = splitmix64(&random_state) >> (kind == ORDINARY ? 57 : 0);
        }
        put(o->memory, dtype, i, value);
    }
}

/* An argument with its memory and values. Its dimensions are permuted, with gaps between elements, turned round, and
 * those of an input other than x may have strides of 0. */
static void add_operand(test_drawing *d, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    operand *o = &operands[slot];
    npuq_tensor *t = &d->call.tensors[slot];
    const bool written = test_is_output(d->call.op, slot);
    const bool contiguous = d->all_contiguous || below(3) == 0;
    const bool broadcast = !written && slot != X && slot != GROUP_INDEX && below(2) == 0;
    const int turn = contiguous ? 0 : (int)below((uint32_t)ndim + 1);
    size_t first = 0;

    d->call.given[slot] = true;
    *t = (npuq_tensor){.dtype = dtype, .ndim = ndim};
    o->count = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        const int k = (i + turn) % ndim;
        const int64_t step = (int64_t)o->count + (contiguous ? 0 : below(3));
        const uint32_t kind = contiguous ? 3 : below(4);

        t->shape[k] = k == ndim - 1 ? shape[k] / npuq_values_in_word(dtype) : shape[k];
        t->strides[k] = kind == 0 && broadcast ? 0 : kind == 1 ? -step : step;
        if (t->shape[k] > 1 && t->strides[k] != 0) {
            o->count += (size_t)(step * (t->shape[k] - 1));
            first += t->strides[k] < 0 ? (size_t)(step * (t->shape[k] - 1)) : 0;
        }
    }
    o->memory = allocate(o->count * test_size(dtype));
    t->data = o->memory + first * test_size(dtype);
    fill(o, slot, dtype, written);
    for (int64_t e = 0; slot == GROUP_INDEX && e < d->groups; e++) {
        put(o->memory, dtype, (size_t)((int64_t)first + e * t->strides[0]), (uint64_t)d->ends[e]);
    }
}

/* Hashes the outputs, with the gaps between their elements, and releases all operands. */
static void finish(const test_call *c)
{
    FOR_EACH_GIVEN(c, slot)
    {
        const operand *o = &operands[slot];

        for (size_t i = 0; test_is_output(c->op, slot) && i < o->count; i++) {
            add(get(o->memory, c->tensors[slot].dtype, i));
        }
        free(o->memory);
        operands[slot] = (operand){NULL, 0};
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

#ifdef TEST_WITHOUT_LIBRARY

static void run(const test_call *c)
{
    void *elements[SLOTS] = {NULL};

    FOR_EACH_GIVEN(c, slot)
    {
        const npuq_tensor *t = &c->tensors[slot];

        elements[slot] = allocate(test_count(t->ndim, t->shape) * test_size(t->dtype));
        test_view_read(t, elements[slot]);
    }
    test_call_oracle(c, elements);
    FOR_EACH_GIVEN(c, slot)
    {
        if (test_is_output(c->op, slot)) {
            test_view_write(&c->tensors[slot], elements[slot]);
        }
        free(elements[slot]);
    }
}

#else

/* An executor that runs the end first. */
static void run_backwards(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                          void *argument)
{
    const size_t middle = count / 3;

    (void)context;
    task(argument, middle, count);
    if (middle > 0) {
        task(argument, 0, middle);
    }
}

/* At once, with an executor, or prepared. */
static npuq_status run_some_way(test_call *c, size_t way)
{
    static const npuq_executor backwards = {run_backwards, NULL};
    npuq_call prepared;

    if (way == 0 && test_takes_executor(c->op) && test_call_prepare(&prepared, c) == NPUQ_OK) {
        npuq_call_run(&prepared, 0, SIZE_MAX);
        return NPUQ_OK;
    }
    c->executor = way == 1 ? &backwards : NULL;
    return test_call_run(c);
}

/* Each call has another way and another floating-point state than the call before. */
static npuq_status call(test_call *c)
{
    static size_t calls;
    const fp_state usual = get_state();
    const bool raises = test_raises_flags(c);

    if (!raises) {
        set_state(state_of(calls / 3, calls / 5)); /* each way in all states, with all sets of flags */
    }
    const fp_state before = get_state();
    const npuq_status status = run_some_way(c, calls++ % 3);
    const fp_state after = get_state();
    set_state(usual);
    if (!raises && !is_same_state(before, after)) {
        (void)fprintf(stderr, "checksum: %s: the caller's floating-point state is another after it\n",
                      operator_names[c->op]);
        exit(1);
    }
    return status;
}

static void run(test_call *c)
{
    if (call(c) != NPUQ_OK) {
        (void)fprintf(stderr, "checksum: %s\n", npuq_last_error());
        exit(1);
    }
}

#endif

/* ---- data that shows a step that was left out -------------------------------------------------------------------- */

typedef enum trap {
    FUSED,    /* x * s + z is a tie if the product has been rounded */
    QUOTIENT, /* x / s is an integer, and x / s + z a tie, if the quotient has been rounded */
    SUM,      /* x + z is a tie if it has been rounded */
} trap;

/* A product of two significands to 24 bits, half to even; the rest goes into the exponent. */
static uint32_t round_to_24(uint64_t value, int *exponent)
{
    int shift = 0;

    while (value >> shift >= 1U << 24) {
        shift++;
    }
    *exponent = shift;
    if (shift == 0) {
        return (uint32_t)value;
    }
    return (uint32_t)((value + (UINT64_C(1) << (shift - 1)) - 1 + (value >> shift & 1)) >> shift);
}

/* The bits of x, s and z. An x of integers has the value of a float32. */
static void draw_trap(trap kind, npuq_dtype x_dtype, uint32_t *x, uint32_t *s, uint32_t *z)
{
    const int x_bits = x_dtype == NPUQ_FLOAT16 ? 11 : x_dtype == NPUQ_BFLOAT16 ? 8 : 20;
    const int s_bits = kind == QUOTIENT ? 13 : x_bits == 20 ? 20 : 24;
    const int point = x_bits + s_bits - 20;
    const uint32_t a = 1U << (x_bits - 1) | below(1U << (x_bits - 1));
    const uint32_t b = 1U << (s_bits - 1) | below(1U << (s_bits - 1)) | 1U;
    const bool negative = below(2) != 0;
    int shift;
    const uint32_t product = round_to_24((uint64_t)a * b, &shift); /* x * s = product * 2^(shift - point) */

    switch (kind) {
    case FUSED:
        *x = x_dtype == NPUQ_INT32 ? a : float_bits(a, 0);
        *s = float_bits(b, -point);
        *z = with_sign(float_bits(product - (1U << (point - shift - 1)), shift - point), true);
        break;
    case QUOTIENT:
        *x = float_bits(product, shift);
        *s = float_bits(b, 0);
        *z = with_sign(float_bits(2 * a - 1, -1), true);
        break;
    case SUM:
        *x = with_sign(float_bits(2 * (a & 127U) + 1, -1), negative);
        *s = float_bits(1, 0);
        *z = with_sign(float_bits(1, (int)(b >> 1 & 15U) - 50), (a & 128U) != 0);
        break;
    }
    *x = x_dtype == NPUQ_INT32 ? *x : narrowed(x_dtype, *x);
}

static const int64_t one = 1;

/* x is [1, 4096], with the parameters that are multiplied and added. group_quant adds one to all: its x is a row of
 * eight equal elements. */
static void run_traps(test_call call, trap kind, enum slot s_slot, enum slot z_slot, npuq_dtype x_dtype,
                      npuq_dtype y_dtype)
{
    const bool grouped = test_needs_groups(call.op);
    const int64_t shape[] = {1, grouped ? 8 : 4096};
    test_drawing d = {.call = call, .all_contiguous = true, .groups = 1, .ends = {1}};
    uint32_t x = 0;
    uint32_t s = 0;
    uint32_t z = 0;

    add_operand(&d, X, x_dtype, 2, shape);
    add_operand(&d, s_slot, NPUQ_FLOAT32, grouped ? 2 : 1, shape + !grouped);
    add_operand(&d, z_slot, NPUQ_FLOAT32, 1, grouped ? &one : shape + 1);
    add_operand(&d, Y, y_dtype, 2, shape);
    if (grouped) {
        add_operand(&d, GROUP_INDEX, NPUQ_INT64, 1, &one);
    }
    for (size_t i = 0; i < operands[X].count; i++) {
        if (i == 0 || !grouped) {
            draw_trap(kind, x_dtype, &x, &s, &z);
        }
        put(operands[X].memory, x_dtype, i, x);
        put(operands[s_slot].memory, NPUQ_FLOAT32, i, s);
        put(operands[z_slot].memory, NPUQ_FLOAT32, grouped ? 0 : i, z);
    }
    run(&d.call);
    finish(&d.call);
}

/* A range of 255 makes the scale 1 and the offset -128; the others are m + 0.5, or a little more, which is lost when
 * the offset is added. */
static void run_dynamic_traps(enum test_operator op, npuq_quant_mode mode)
{
    static const int64_t shape[] = {1, 4096};
    test_drawing d = {.call = {.op = op, .quant_mode = mode}, .all_contiguous = true};
    const operand *x = &operands[X];

    add_operand(&d, X, NPUQ_FLOAT32, 2, shape);
    add_operand(&d, Y, test_arguments[op][Y].dtypes[0], 2, shape);
    add_operand(&d, SCALE, NPUQ_FLOAT32, 1, &one);
    if (test_is_output(op, OFFSET)) {
        add_operand(&d, OFFSET, NPUQ_FLOAT32, 1, &one);
    }
    for (size_t i = 0; i < x->count; i++) {
        const uint32_t bits = below(8);
        put(x->memory, NPUQ_FLOAT32, i, float_bits((bits | 1U) << 20 | (bits & 1U), -21));
    }
    put(x->memory, NPUQ_FLOAT32, 0, 0);
    put(x->memory, NPUQ_FLOAT32, x->count - 1, float_bits(255, 0));
    run(&d.call);
    finish(&d.call);
}

/* A product of 34 or 35 bits that is a tie of int8 or float16 if it has been rounded to 24. */
static void run_word_traps(enum test_operator op, npuq_dtype y_dtype)
{
    static const int64_t shape[] = {1, 4096};
    test_drawing d = {.call = {.op = op}, .all_contiguous = true};

    add_operand(&d, X, NPUQ_INT32, 2, shape);
    add_operand(&d, WORDS, NPUQ_UINT64, 1, shape + 1);
    add_operand(&d, Y, y_dtype, 2, shape);
    for (size_t i = 0; i < operands[X].count; i++) {
        const uint64_t halves = y_dtype == NPUQ_FLOAT16 ? 2048 | 1 | below(2048) : 1 | below(256);
        const uint32_t scale = 1024 + below(1024);
        const bool negative = below(2) != 0;
        int point = 0;

        while ((halves << point) / scale < 1U << 23) {
            point++;
        }
        put(operands[X].memory, NPUQ_INT32, i, ((halves << point) + scale / 2) / scale);
        put(operands[WORDS].memory, NPUQ_UINT64, i,
            UINT64_C(1) << 46 | with_sign(float_bits(scale, -point - 1), negative));
    }
    run(&d.call);
    finish(&d.call);
}

/* Every bfloat16, multiplied or divided by 1. Then products that are ties of a small float, of one to three bits behind
 * the first, if they have been rounded to 24 bits. */
static void run_small_floats(npuq_dtype y_dtype, bool div_mode)
{
    static const int64_t halves[] = {256, 256};
    static const int64_t products[] = {1, 4096};
    test_drawing d = {.call = {.op = TEST_QUANTIZE, .axis = -1, .div_mode = div_mode}, .all_contiguous = true};

    add_operand(&d, X, NPUQ_BFLOAT16, 2, halves);
    add_operand(&d, SCALES, NPUQ_FLOAT32, 1, &one);
    add_operand(&d, Y, y_dtype, 2, halves);
    for (size_t i = 0; i < operands[X].count; i++) {
        put(operands[X].memory, NPUQ_BFLOAT16, i, i);
    }
    put(operands[SCALES].memory, NPUQ_FLOAT32, 0, float_bits(1, 0));
    run(&d.call);
    finish(&d.call);
    if (div_mode) {
        return;
    }
    add_operand(&d, X, NPUQ_FLOAT32, 2, products);
    add_operand(&d, SCALES, NPUQ_FLOAT32, 1, products + 1);
    add_operand(&d, Y, y_dtype, 2, products);
    for (size_t i = 0; i < operands[X].count; i++) {
        const uint32_t bits = 1 + below(3);
        const uint64_t tie = 2U << bits | 1 | below(1U << bits) << 1;
        const uint32_t scale = 1024 + below(1024);
        const int exponent = (int)below(40) - 26;
        const bool negative = below(2) != 0;
        int point = 0;

        while ((tie << point) / scale < 1U << 23) {
            point++;
        }
        put(operands[X].memory, NPUQ_FLOAT32, i,
            with_sign(float_bits((uint32_t)(((tie << point) + scale / 2) / scale), exponent - point), negative));
        put(operands[SCALES].memory, NPUQ_FLOAT32, i, float_bits(scale, 0));
    }
    run(&d.call);
    finish(&d.call);
}

static void run_traps_of(enum test_operator op)
{
    static const npuq_dtype floats[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
    static const npuq_dtype narrow[] = {NPUQ_INT8, NPUQ_QUINT4X2};
    static const npuq_dtype wide[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
    const test_call call = {.op = op, .axis = -1};
    test_call divide = call;

    divide.div_mode = true;
    for (size_t i = 0; test_has(op, SCALES) && i < 6; i++) {
        run_traps(call, FUSED, SCALES, ZERO_POINTS, floats[i % 3], narrow[i / 3]);
        run_traps(call, SUM, SCALES, ZERO_POINTS, floats[i % 3], narrow[i / 3]);
        run_traps(divide, SUM, SCALES, ZERO_POINTS, floats[i % 3], wide[i / 2]);
        run_traps(divide, QUOTIENT, SCALES, ZERO_POINTS, NPUQ_FLOAT32, wide[i % 3]);
    }
    for (size_t i = 0; op == TEST_QUANTIZE && i < 6; i++) {
        static const npuq_dtype small[] = {NPUQ_FLOAT8_E4M3FN, NPUQ_FLOAT8_E5M2, NPUQ_HIFLOAT8};
        run_small_floats(small[i % 3], i >= 3);
    }
    for (size_t i = 0; test_needs_groups(op) && i < 600; i++) {
        run_traps(call, i % 2 == 0 ? FUSED : SUM, SCALE, OFFSET, floats[i % 3], narrow[i / 3 % 2]);
    }
    for (size_t i = 0; test_has(op, WEIGHT_SCALE) && i < 3; i++) {
        run_traps(call, FUSED, WEIGHT_SCALE, BIAS, NPUQ_INT32, floats[i]);
    }
    if (test_finds_ranges(op) && test_has(op, Y)) {
        run_dynamic_traps(op, NPUQ_PER_TOKEN);
        run_dynamic_traps(op, NPUQ_PER_TENSOR);
    }
    if (test_has(op, WORDS)) {
        run_word_traps(op, NPUQ_INT8);
        run_word_traps(op, NPUQ_FLOAT16);
    }
}

/* The operators in the order in which they came: it decides the checksum. Microscaling came after the steps. */
static enum test_operator operator_at(size_t i)
{
    enum { FIRST = TEST_DYNAMIC_MX_QUANT, COUNT = TEST_ANTI_MX_QUANT + 1 - FIRST, LAST = TEST_OPERATORS - COUNT };

    return (enum test_operator)(i < FIRST ? i : i < LAST ? i + COUNT : i - LAST + FIRST);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void run_operator(enum test_operator op)
{
    for (int i = 0; i < 3000; i++) {
        test_drawing d = {.choose = choose, .add = add_operand, .large = i % 100 == 0, .call = {.op = op}};

        test_draw_call(&d);
        if (test_count(d.ndim, d.shape) > 0) {
            run(&d.call);
        }
        finish(&d.call);
    }
    run_traps_of(op);
}

#ifdef TEST_WITHOUT_LIBRARY

enum { PARTS = TEST_OPERATORS };

static void run_part(size_t part)
{
    run_operator(operator_at(part));
}

#else

/* The parts after those of the operators. */
enum { LARGE_PART = TEST_OPERATORS, REFUSED_PART, PARTS };

/* More than the caches hold: kernels may then read and write another way. A machine without 64 MB takes the right
 * checksum without this part. */
static void run_large(void)
{
#ifdef CHECKSUM_WITHOUT_LARGE
    checksum = UINT64_C(0xC86AC16E08A7BD48);
#else
    for (size_t i = 0; i < TEST_OPERATORS; i++) {
        test_drawing d = {.choose = choose,
                          .add = add_operand,
                          .all_contiguous = true,
                          .has_shape = true,
                          .ndim = 2,
                          .shape = {5, 1031 * 1031},
                          .call = {.op = operator_at(i)}};

        if (!test_takes_ranges_only(d.call.op)) {
            test_draw_call(&d);
            run(&d.call);
            finish(&d.call);
        }
    }
#endif
}

/* What most calls refuse. */
static void spoil(test_call *c)
{
    enum slot slot = X;
    npuq_tensor *t;

    do {
        slot = (enum slot)below(SLOTS);
    } while (!c->given[slot]);
    t = &c->tensors[slot];
    switch (below(6)) {
    case 0: c->given[slot] = false; break;
    case 1: t->dtype = (npuq_dtype)99; break;
    case 2: t->ndim = NPUQ_MAX_NDIM + 1; break;
    case 3: t->strides[0] = INT64_MAX / 8; break;
    case 4: t->data = NULL; break;
    default:
        c->axis = 9;
        c->round_mode = (npuq_round_mode)2;
        c->quant_mode = (npuq_quant_mode)2;
        c->scale_form = (npuq_scale_form)2;
        c->block = slot == SCALE ? c->block : 0; /* each of both alone, too */
        c->min_scale = slot == Y ? c->min_scale : -1;
        break;
    }
}

static void run_spoilt(void)
{
    for (size_t i = 0; i < 30 * (size_t)TEST_OPERATORS; i++) {
        test_drawing d = {.choose = choose, .add = add_operand, .call = {.op = operator_at(i / 30)}};

        test_draw_call(&d);
        test_call spoilt = d.call;
        spoil(&spoilt);
        add((uint64_t)call(&spoilt));
        finish(&d.call);
    }
}

static void run_part(size_t part)
{
    switch (part) {
    case LARGE_PART: run_large(); break;
    case REFUSED_PART: run_spoilt(); break;
    default: run_operator(operator_at(part)); break;
    }
}

#endif

/* Returns the checksum of the parts' checksums. A part's name is its seed: its checksum is of this part alone. */
static uint64_t run_parts(bool verbose)
{
    static const char *const names_besides[] = {"large, library alone", "refusals, library alone"};
    uint64_t of_parts = 0;

    for (size_t part = 0; part < PARTS; part++) {
        const char *name =
            part < TEST_OPERATORS ? operator_names[operator_at(part)] : names_besides[part - TEST_OPERATORS];

        checksum = 0;
        for (const char *c = name; *c; c++) {
            add((uint64_t)*c);
        }
        random_state = checksum;
        checksum = 0;
        run_part(part);
        if (verbose) {
            (void)printf("# " HEX64 " %s\n", HALVES(checksum), name);
        }
        const uint64_t of_part = checksum;
        checksum = of_parts;
        add(of_part);
        of_parts = checksum;
    }
    return of_parts;
}

#ifdef TEST_WITHOUT_LIBRARY

int main(void)
{
    (void)run_parts(true);
    return 0;
}

#else

static const uint64_t expected = UINT64_C(0x1D2B8AF862ACE3A9);

int main(int argc, char **argv)
{
    const bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    int differ = 0;

    for (int i = 0; strcmp(npuq_backend_name((npuq_backend)i), "unknown") != 0; i++) {
        if (npuq_set_backend((npuq_backend)i) != NPUQ_OK) {
            continue; /* not on this machine */
        }
        const uint64_t got = run_parts(verbose);
        (void)printf("%s " HEX64 "\n", npuq_backend_name((npuq_backend)i), HALVES(got));
        (void)fflush(stdout);
        if (got != expected) {
            (void)fprintf(stderr, "checksum: expected " HEX64 "\n", HALVES(expected));
            differ = 1;
        }
    }
    return differ;
}

#endif
