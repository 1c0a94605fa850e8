/* SPDX-License-Identifier: BSD-3-Clause */
/* The range of a row from the extremes of its values' bit patterns, read as signed and as unsigned integers. */
#ifndef NPUQ_ROW_RANGE_H
#define NPUQ_ROW_RANGE_H

#include <stdint.h>
#include <string.h>

/* Patterns mapped so that integers compare as the floats do, -0 below +0; positive NaNs are above all. */
typedef struct row_range {
    int32_t hi;
    int32_t lo;
} row_range;

enum { ORDERED_INF = 0x7F800000 };

/* This is its own inverse. */
static inline int32_t order_bits(int32_t bits)
{
    return bits ^ (int32_t)((0 - ((uint32_t)bits >> 31)) >> 1);
}

static inline int32_t order_float(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return order_bits(bits);
}

static inline float restore_float(int32_t ordered)
{
    const int32_t bits = order_bits(ordered);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Positive floats order as their patterns do, negative ones the other way round. So the maximum is the largest signed
 * pattern if any value is positive, else the smallest unsigned one. The minimum is the largest unsigned pattern if any
 * value is negative, else the smallest signed one. NaNs of either sign end up as hi or lo, beyond infinity. */
static inline row_range make_row_range(int32_t smax, int32_t umax, int32_t smin, int32_t umin)
{
    return (row_range){order_bits(smax >= 0 ? smax : umin), order_bits(umax < 0 ? umax : smin)};
}

/* Of values of both signs, the smallest patterns do not matter. */
static inline row_range make_mixed_row_range(int32_t smax, int32_t umax)
{
    return (row_range){order_bits(smax), order_bits(umax)};
}

/* Widens *hi and *lo, which are both NaN if one is. */
static inline void widen_row_range(row_range range, float *hi, float *lo)
{
    const int32_t old_hi = order_float(*hi);
    const int32_t old_lo = order_float(*lo);
    const int32_t new_hi = range.hi > old_hi ? range.hi : old_hi;
    const int32_t new_lo = range.lo < old_lo ? range.lo : old_lo;

    if (new_hi > ORDERED_INF || new_lo < order_bits((int32_t)0xFF800000u)) {
        *hi = *lo = restore_float(0x7FC00000);
    } else {
        *hi = restore_float(new_hi);
        *lo = restore_float(new_lo);
    }
}

#endif
