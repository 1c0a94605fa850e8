/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare.h"

#include "tensor_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool compare_possible(const npuq_tensor *got, const npuq_tensor *expected)
{
    const bool same_type = strcmp(tensor_npy_type(got->dtype), tensor_npy_type(expected->dtype)) == 0;
    const bool same_words = tensor_item_size(got->dtype) == 8 && tensor_item_size(expected->dtype) == 8;

    if ((!same_type && !same_words) || got->ndim != expected->ndim) {
        return false;
    }
    for (int d = 0; d < got->ndim; d++) {
        if (got->shape[d] != expected->shape[d]) {
            return false;
        }
    }
    return true;
}

/* ---- one element ----------------------------------------------------------------------------------------------- */

static struct value read_value(const char *data, npuq_dtype dtype, int part)
{
    struct value value = {0, 0};
    uint8_t bits8;
    uint32_t bits32;

    switch (tensor_item_size(dtype)) {
    case 1:
        memcpy(&bits8, data, sizeof bits8);
        value.bits = bits8;
        value.number = dtype == NPUQ_INT8 && bits8 > INT8_MAX ? (int64_t)bits8 - 256 : bits8;
        break;
    case 4:
        memcpy(&bits32, data, sizeof bits32);
        value.bits = dtype == NPUQ_QUINT4X2 ? bits32 >> 4 * part & 0xF : bits32;
        value.number = (int64_t)value.bits;
        if (dtype == NPUQ_QUINT4X2 && value.bits > 7) {
            value.number -= 16;
        } else if (dtype == NPUQ_INT32 && bits32 > INT32_MAX) {
            value.number -= (int64_t)1 << 32;
        }
        break;
    default: memcpy(&value.bits, data, sizeof value.bits); break;
    }
    return value;
}

enum { INFINITE_BITS = 0x7F800000, SIGN_SHIFT = 31 };

/* Counts the floats from 0, so that neighbours differ by 1. */
static int64_t float_position(uint64_t bits)
{
    const int64_t magnitude = (int64_t)(bits & INT32_MAX);

    return bits >> SIGN_SHIFT ? -magnitude : magnitude;
}

static uint64_t float_distance(uint64_t a, uint64_t b)
{
    const int64_t position_a = float_position(a);
    const int64_t position_b = float_position(b);
    const uint64_t magnitude_a = a & INT32_MAX;
    const uint64_t magnitude_b = b & INT32_MAX;

    if (magnitude_a > INFINITE_BITS && magnitude_b > INFINITE_BITS) {
        return 0;
    }
    if (position_a == position_b) {
        return 0;
    }
    if (magnitude_a >= INFINITE_BITS || magnitude_b >= INFINITE_BITS) {
        return UINT64_MAX;
    }
    return (uint64_t)(position_a > position_b ? position_a - position_b : position_b - position_a);
}

static uint64_t distance(npuq_dtype dtype, struct value a, struct value b)
{
    if (dtype == NPUQ_FLOAT32) {
        return float_distance(a.bits, b.bits);
    }
    if (tensor_item_size(dtype) == 8) {
        return a.bits > b.bits ? a.bits - b.bits : b.bits - a.bits;
    }
    return (uint64_t)(a.number > b.number ? a.number - b.number : b.number - a.number);
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

struct walk {
    const npuq_tensor *got;
    const npuq_tensor *expected;
    int parts; /* values in an element: 8 in a quint4x2 word */
    int64_t index[NPUQ_MAX_NDIM];
    struct comparison result;
};

static void keep_difference(struct walk *walk, int part, struct value got, struct value expected)
{
    const int last = walk->got->ndim - 1;

    if (walk->result.differ++ >= COMPARE_SHOWN) {
        return;
    }
    struct difference *difference = &walk->result.first[walk->result.differ - 1];
    difference->got = got;
    difference->expected = expected;
    memcpy(difference->index, walk->index, sizeof walk->index);
    if (last >= 0) {
        difference->index[last] = walk->index[last] * walk->parts + part;
    }
}

static void compare_element(struct walk *walk, const char *got_data, const char *expected_data)
{
    const npuq_dtype dtype = walk->got->dtype;

    for (int part = 0; part < walk->parts; part++) {
        const struct value got = read_value(got_data, dtype, part);
        const struct value expected = read_value(expected_data, dtype, part);
        const uint64_t apart = distance(dtype, got, expected);

        if (apart > walk->result.largest) {
            walk->result.largest = apart;
        }
        if (apart > walk->result.tolerance) {
            keep_difference(walk, part, got, expected);
        }
    }
}

/* One run of the last dimension; most are equal, and then there is no need to look at elements. */
static void compare_row(struct walk *walk, const char *got, const char *expected, int64_t length, int64_t stride)
{
    const size_t size = tensor_item_size(walk->got->dtype);
    const int last = walk->got->ndim - 1;

    if (stride == 1 && memcmp(got, expected, (size_t)length * size) == 0) {
        return;
    }
    for (int64_t i = 0; i < length; i++) {
        if (last >= 0) {
            walk->index[last] = i;
        }
        compare_element(walk, got + (size_t)i * size, expected + i * stride * (int64_t)size);
    }
}

/* Steps to the next row; the elements of expected that lie before it. */
static int64_t next_row(struct walk *walk, int64_t offset)
{
    for (int d = walk->got->ndim - 2; d >= 0; d--) {
        offset += walk->expected->strides[d];
        if (++walk->index[d] < walk->got->shape[d]) {
            return offset;
        }
        offset -= walk->expected->strides[d] * walk->got->shape[d];
        walk->index[d] = 0;
    }
    return offset;
}

struct comparison compare_tensors(const npuq_tensor *got, const npuq_tensor *expected, uint64_t max_ulp)
{
    struct walk walk = {
        .got = got,
        .expected = expected,
        .parts = got->dtype == NPUQ_QUINT4X2 ? 8 : 1,
        .result = {.tolerance = got->dtype == NPUQ_FLOAT32 ? max_ulp : 0},
    };
    const int64_t size = (int64_t)tensor_item_size(got->dtype);
    const int last = got->ndim - 1;
    const int64_t length = last >= 0 ? got->shape[last] : 1;
    const int64_t stride = last >= 0 ? expected->strides[last] : 1;
    size_t count = 1;
    int64_t offset = 0;

    for (int d = 0; d < got->ndim; d++) {
        count *= (size_t)got->shape[d];
    }
    walk.result.elements = count * (size_t)walk.parts;
    for (size_t done = 0; done < count; done += (size_t)length) {
        compare_row(&walk, (const char *)got->data + done * (size_t)size, (const char *)expected->data + offset * size,
                    length, stride);
        offset = next_row(&walk, offset);
    }
    return walk.result;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static void print_value(npuq_dtype dtype, struct value value)
{
    if (dtype == NPUQ_FLOAT32) {
        const uint32_t bits = (uint32_t)value.bits;
        float number;
        memcpy(&number, &bits, sizeof number);
        (void)printf("%.9g (0x%08" PRIX32 ")", (double)number, bits);
    } else if (tensor_item_size(dtype) == 8) {
        (void)printf("0x%016" PRIX64, value.bits);
    } else {
        (void)printf("%" PRId64, value.number);
    }
}

static void print_difference(const npuq_tensor *got, const struct difference *difference)
{
    (void)printf("  [");
    for (int d = 0; d < got->ndim; d++) {
        (void)printf("%s%" PRId64, d > 0 ? ", " : "", difference->index[d]);
    }
    (void)printf("]: got ");
    print_value(got->dtype, difference->got);
    (void)printf(", expected ");
    print_value(got->dtype, difference->expected);
    (void)printf("\n");
}

static void print_largest(npuq_dtype dtype, uint64_t largest)
{
    if (dtype == NPUQ_FLOAT32 && largest == UINT64_MAX) {
        (void)printf(", largest difference not finite\n");
    } else if (tensor_item_size(dtype) == 8) {
        (void)printf(", largest difference 0x%" PRIX64 "\n", largest);
    } else {
        (void)printf(", largest difference %" PRIu64 "%s\n", largest, dtype == NPUQ_FLOAT32 ? " ulp" : "");
    }
}

void compare_print(const char *name, const npuq_tensor *got, const struct comparison *comparison)
{
    const size_t kept = comparison->differ < COMPARE_SHOWN ? comparison->differ : COMPARE_SHOWN;

    if (comparison->largest == 0) {
        (void)printf("%s: all %zu elements equal\n", name, comparison->elements);
        return;
    }
    (void)printf("%s: %zu of %zu elements differ", name, comparison->differ, comparison->elements);
    if (comparison->tolerance > 0) {
        (void)printf(" by more than %" PRIu64 " ulp", comparison->tolerance);
    }
    print_largest(got->dtype, comparison->largest);
    for (size_t i = 0; i < kept; i++) {
        print_difference(got, &comparison->first[i]);
    }
    if (comparison->differ > kept) {
        (void)printf("  ... and %zu more\n", comparison->differ - kept);
    }
}
