/* SPDX-License-Identifier: BSD-3-Clause */
#include "dtypes.h"

#include <assert.h>
#include <math.h>
#include <ref/npuq_ref_element.h>
#include <string.h>

#define ROW(NAME, name, row, number, KIND, bits, log2_elements, stored, mantissa, bias, zeros, least, most, DMAX)      \
    {NPUQ_##NAME, 1U << DTYPE_##NAME, #name, #stored, KIND_##KIND, bits, log2_elements, mantissa, least, most, DMAX},
const struct dtype dtypes[DTYPES] = {EACH_TYPE(ROW)};

const struct dtype *dtype_of(npuq_dtype dtype)
{
    switch (dtype) {
#define CASE(NAME, ...)                                                                                                \
    case NPUQ_##NAME: return &dtypes[DTYPE_##NAME];
        EACH_TYPE(CASE)
    }
    return &dtypes[0]; /* the library has refused what is none */
}

const struct dtype *dtype_named(const char *name)
{
    for (int i = 0; i < DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            return &dtypes[i];
        }
    }
    return NULL;
}

bool dtype_is_float(npuq_dtype dtype)
{
    return dtype_of(dtype)->kind == KIND_FLOAT;
}

bool dtype_is_integer(npuq_dtype dtype)
{
    const enum dtype_kind kind = dtype_of(dtype)->kind;

    return kind == KIND_SIGNED || kind == KIND_UNSIGNED;
}

bool dtype_is_words(npuq_dtype dtype)
{
    return dtype_of(dtype)->kind == KIND_WORD;
}

/* ---- bits ------------------------------------------------------------------------------------------------------- */

/* Where a value is: its element, and which bits of it. */
struct place {
    size_t at;
    size_t size;
    int shift;
    uint64_t mask;
};

static struct place place_of(npuq_dtype dtype, size_t i)
{
    const struct dtype *type = dtype_of(dtype);
    const size_t size = (size_t)type->bits << type->log2_values >> 3;
    const size_t element = i >> type->log2_values;

    return (struct place){element * size, size, (int)(i - (element << type->log2_values)) * type->bits,
                          UINT64_MAX >> (64 - type->bits)};
}

static uint64_t read_element(const void *from, size_t size)
{
    uint16_t half;
    uint32_t word;
    uint64_t bits;

    switch (size) {
    case 1: return *(const uint8_t *)from;
    case 2: memcpy(&half, from, sizeof half); return half;
    case 4: memcpy(&word, from, sizeof word); return word;
    default: memcpy(&bits, from, sizeof bits); return bits;
    }
}

uint64_t dtype_load(npuq_dtype dtype, const void *data, size_t i)
{
    const struct place place = place_of(dtype, i);

    return read_element((const char *)data + place.at, place.size) >> place.shift & place.mask;
}

void dtype_store(npuq_dtype dtype, void *data, size_t i, uint64_t bits)
{
    const struct place place = place_of(dtype, i);
    char *to = (char *)data + place.at;
    const uint64_t others = read_element(to, place.size) & ~(place.mask << place.shift);
    const uint64_t element = others | (bits & place.mask) << place.shift;

    switch (place.size) {
    case 1: *(uint8_t *)to = (uint8_t)element; break;
    case 2: memcpy(to, &(uint16_t){(uint16_t)element}, 2); break;
    case 4: memcpy(to, &(uint32_t){(uint32_t)element}, 4); break;
    default: memcpy(to, &element, 8); break;
    }
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* A NaN is beyond infinity, which is next to the largest value. */
static int64_t order_of_tapered(uint8_t code)
{
    const float value = npuq_ref_hifloat8(code);
    int64_t order = 0;

    for (int size = 0; size < 0x80; size++) {
        order += !(npuq_ref_hifloat8((uint8_t)size) >= fabsf(value));
    }
    return value < 0 ? -order : order;
}

int64_t dtype_order(npuq_dtype dtype, uint64_t bits)
{
    const struct dtype *type = dtype_of(dtype);
    const uint64_t sign = (uint64_t)1 << (type->bits - 1);

    switch (type->kind) {
    case KIND_FLOAT:
    case KIND_SMALL_FLOAT: return bits & sign ? -(int64_t)(bits - sign) : (int64_t)bits;
    case KIND_TAPERED_FLOAT: return order_of_tapered((uint8_t)bits);
    case KIND_UNSIGNED:
    case KIND_EXPONENT: return (int64_t)bits;
    case KIND_SIGNED:
    case KIND_WORD: break;
    }
    return (int64_t)((bits ^ sign) - sign);
}

uint64_t dtype_distance(npuq_dtype dtype, uint64_t a, uint64_t b)
{
    const int64_t first = dtype_order(dtype, a);
    const int64_t second = dtype_order(dtype, b);

    return first > second ? (uint64_t)first - (uint64_t)second : (uint64_t)second - (uint64_t)first;
}

float dtype_float(npuq_dtype dtype, uint64_t bits)
{
    switch (dtype) {
    case NPUQ_FLOAT16: return npuq_ref_float16((uint16_t)bits);
    case NPUQ_BFLOAT16: return npuq_ref_bfloat16((uint16_t)bits);
    case NPUQ_FLOAT8_E4M3FN:
    case NPUQ_FLOAT8_E5M2: return npuq_ref_small_float((npuq_ref_dtype)dtype, (uint8_t)bits);
    case NPUQ_HIFLOAT8: return npuq_ref_hifloat8((uint8_t)bits);
    default: assert(dtype == NPUQ_FLOAT32); return npuq_ref_from_bits((uint32_t)bits);
    }
}

uint32_t dtype_float_bits(npuq_dtype dtype, float value)
{
    switch (dtype) {
    case NPUQ_FLOAT16: return npuq_ref_to_float16(value);
    case NPUQ_BFLOAT16: return npuq_ref_to_bfloat16(value);
    case NPUQ_FLOAT8_E4M3FN:
    case NPUQ_FLOAT8_E5M2: return npuq_ref_to_small_float((npuq_ref_dtype)dtype, value, NPUQ_REF_RINT);
    case NPUQ_HIFLOAT8: return npuq_ref_to_hifloat8(value);
    default: assert(dtype == NPUQ_FLOAT32); return npuq_ref_to_bits(npuq_ref_canonical(value));
    }
}
