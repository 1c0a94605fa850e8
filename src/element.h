/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of single elements outside of the kernels. Nothing here comes from the reference, so that a test which
 * compares both can find a mistake in either. */
#ifndef NPUQ_ELEMENT_H
#define NPUQ_ELEMENT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t npuq_bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float npuq_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float npuq_widen_bfloat16(uint16_t half)
{
    return npuq_float_of_bits((uint32_t)half << 16);
}

static inline float npuq_widen_float16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7FFFu;

    if (magnitude < 0x0400u) { /* subnormal: a multiple of the least one */
        return npuq_float_of_bits(sign | npuq_bits_of_float((float)magnitude * 0x1p-24f));
    }
    /* The bias of the exponent is 127 in place of 15. All its bits are set in infinities and NaN. */
    return npuq_float_of_bits(sign | ((magnitude << 13) + ((magnitude < 0x7C00u ? 112u : 224u) << 23)));
}

/* One NaN for all: which one an operation makes depends on the machine. */
static inline float npuq_canonical(float value)
{
    return value == value ? value : npuq_float_of_bits(0x7FC00000u);
}

/* The scale, and the offset of nine bits with a sign, of a word of trans_quant_param. */
static inline float npuq_scale_of_word(uint64_t word)
{
    return npuq_float_of_bits((uint32_t)word & 0xFFFFE000u);
}

static inline int32_t npuq_offset_of_word(uint64_t word)
{
    const int32_t nine_bits = (int32_t)(word >> 37 & 0x1FFu);

    return (nine_bits ^ 0x100) - 0x100;
}

/* The range of some values, as an npuq_range_fn has it. */
typedef struct npuq_range {
    float hi;
    float lo;
} npuq_range;

static inline npuq_range npuq_empty_range(void)
{
    return (npuq_range){.hi = npuq_float_of_bits(0xFF800000u), .lo = npuq_float_of_bits(0x7F800000u)};
}

/* In the order of signed integers, -0 comes before +0 and no NaN is between -Inf and +Inf. */
static inline int32_t npuq_order_of_float(float value)
{
    const uint32_t bits = npuq_bits_of_float(value);

    return (int32_t)(bits ^ ((0u - (bits >> 31)) >> 1));
}

static inline npuq_range npuq_join_ranges(npuq_range a, npuq_range b)
{
    if (a.hi != a.hi || b.hi != b.hi) {
        const float nan = npuq_float_of_bits(0x7FC00000u);

        return (npuq_range){nan, nan};
    }
    return (npuq_range){npuq_order_of_float(a.hi) > npuq_order_of_float(b.hi) ? a.hi : b.hi,
                        npuq_order_of_float(a.lo) < npuq_order_of_float(b.lo) ? a.lo : b.lo};
}

#endif
