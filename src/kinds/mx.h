/* SPDX-License-Identifier: BSD-3-Clause */
/* Microscaling: groups along an axis with a power of two as their scale. Scale codes lie in pairs. */
#ifndef NPUQ_MX_H
#define NPUQ_MX_H

#include "../plan/plan.h"

typedef struct npuq_mx_options {
    int32_t axis;
    const npuq_mx *given; /* null: the defaults */
} npuq_mx_options;

enum { NPUQ_MX_BY_EXPONENT, NPUQ_MX_BY_PRODUCT, NPUQ_MX_BY_HALF };

/* How the scale of a group is found. */
typedef struct npuq_mx_rule {
    uint32_t divisor;   /* by product: the bits of a float, the inverse of the factor */
    uint32_t low_bound; /* alike */
    uint16_t rows;      /* of a group, if the axis is not the last one */
    int16_t shift_bias; /* what is added to a scale code for the exponent of a shift */
    int8_t least_shift; /* as an exponent */
    uint8_t log2_shift; /* of the exponent 1; 0: the kernels take no shifts */
    uint8_t way;        /* as above */
    uint8_t exponent;   /* by exponent: that of the type's largest value */
    uint8_t carry;      /* by half: what is added to its bits */
    bool goes_down;     /* by half: truncates; by product: a subnormal one does not become the next power of two */
    uint8_t small_groups;
    bool bad_is_nan;
} npuq_mx_rule;

npuq_mx_rule npuq_make_mx_rule(const npuq_mx *options, npuq_type x, npuq_type y, bool is_last_axis);

/* Makes scale codes of the largest magnitudes of n groups, and of these what elements are multiplied by: NaN in groups
 * that are not finite, where every result is +0. Makes shifts of them, too. Returns these if kernels take them, or
 * null. */
const uint16_t *npuq_find_mx_scales(const npuq_mx_rule *rule, float *restrict values, size_t n, uint8_t *restrict codes,
                                    uint16_t *restrict shifts);

enum { NPUQ_MX_BAD = 0xFF }; /* the scale code of such a group */

/* Checks the axis and the block, and all that is reserved. */
npuq_status npuq_check_mx_groups(const npuq_arguments *arguments, const npuq_mx_options *options, int of_values,
                                 int scale);
npuq_status npuq_check_mx_rule(const npuq_arguments *arguments, const npuq_mx *options);

static inline int npuq_find_mx_axis(const npuq_mx_options *options, int ndim)
{
    return options->axis < 0 ? options->axis + ndim : options->axis;
}

static inline int64_t npuq_find_mx_block(const npuq_mx *options)
{
    return options && options->block != 0 ? options->block : 32;
}

#endif
