/* SPDX-License-Identifier: BSD-3-Clause */
/* Dynamic quantisation, of rows, of blocks of a row, or of a tensor: finds ranges, makes parameters of them, quantises.
 * Each step comes by itself, or all together while rows are in the cache. */
#ifndef NPUQ_DYNAMIC_H
#define NPUQ_DYNAMIC_H

#include "mx.h"

/* The places of arguments, by their roles. For ranges alone y is absent, in dynamic_quant the offset. */
enum {
    NPUQ_DYNAMIC_X = NPUQ_AT_X,
    NPUQ_DYNAMIC_Y = NPUQ_AT_Y,
    NPUQ_DYNAMIC_SMOOTH = NPUQ_AT_GROUPED,
    NPUQ_DYNAMIC_SCALE,  /* or min: one for each row, or for the tensor */
    NPUQ_DYNAMIC_OFFSET, /* or max */
    NPUQ_DYNAMIC_GROUPS
};

typedef enum npuq_dynamic_step {
    NPUQ_FIND_RANGES,  /* gives min and max */
    NPUQ_QUANTISE_ALL, /* gives y, scale and offset */
    NPUQ_APPLY         /* gives y, from scale and offset, or in the symmetric form from min and max */
} npuq_dynamic_step;

/* What the units of a call have one range of. */
typedef enum npuq_shared_range { NPUQ_SHARED_NONE, NPUQ_SHARED_ROW, NPUQ_SHARED_TENSOR } npuq_shared_range;

/* The state of dynamic quantisation in a plan. */
typedef struct npuq_dynamic_own {
    struct npuq_one_range *one; /* while units share a range; never in a prepared call */
    uint32_t min_scale;         /* of a block: the bits of a float */
    uint32_t dmax;              /* of the forms of divisors, alike */
    uint8_t form;               /* npuq_dynamic_form */
    uint8_t step;               /* npuq_dynamic_step */
    uint8_t shared;             /* npuq_shared_range */
    bool is_empty;              /* x, of which ranges are put even so */
    npuq_mx_rule mx;            /* of NPUQ_SYMMETRIC_GROUP */
} npuq_dynamic_own;
NPUQ_FITS_OWN(npuq_dynamic_own);

static inline const npuq_dynamic_own *npuq_get_dynamic(const npuq_plan *plan)
{
    return npuq_get_own(plan);
}

typedef struct npuq_dynamic_options {
    npuq_dynamic_step step;
    npuq_dynamic_form form;
    npuq_quant_mode quant_mode;
    npuq_scale_form scale_form; /* which only the symmetric form has */
    uint32_t dst_type_max;      /* of NPUQ_SYMMETRIC_DIVISOR: the bits of a float */
} npuq_dynamic_options;

/* An operator or a step. COMPUTE is one of the functions below. */
#define NPUQ_DYNAMIC_OPERATOR(name, COMPUTE)                                                                           \
    {                                                                                                                  \
        NPUQ_SIGNATURE(name), npuq_check_dynamic, npuq_plan_dynamic, COMPUTE, npuq_run_dynamic                         \
    }

npuq_check_fn npuq_check_dynamic; /* options are npuq_dynamic_options, here and below */
npuq_plan_fn npuq_plan_dynamic;
npuq_run_fn npuq_run_dynamic;
npuq_tile_fn npuq_store_ranges;
npuq_tile_fn npuq_quantise_by_ranges;
npuq_tile_fn npuq_quantise_by_parameters;
npuq_tile_fn npuq_quantise_by_one_range; /* without smooth scales, by the one scale */

/* uint8 is int8 with the upper bit flipped. So 0 becomes 128, also in rows that are not finite. */
static inline void npuq_make_uint8_of_int8(npuq_kernel_setup *setup)
{
    if (setup->types[NPUQ_DYNAMIC_Y] == NPUQ_TYPE_UINT8) {
        setup->types[NPUQ_DYNAMIC_Y] = NPUQ_TYPE_INT8;
        setup->flip = 0x80;
    }
}

/* Divides to 8-bit floats, where the largest magnitude of a row or block becomes dst_type_max, or if that is 0 the
 * type's largest value. */
void npuq_set_divisors(npuq_plan *plan, npuq_dynamic_form form, uint32_t dst_type_max);

/* Cuts a plan into units of whole rows, and units into blocks of rows that stay in the cache. */
void npuq_cut_whole_rows(npuq_plan *plan, const npuq_arguments *arguments, size_t cols);

/* gcc would copy the float through an x87 register, where a subnormal raises the caller's flag, or traps. */
static inline uint32_t npuq_bits_of_argument(const float *value)
{
    uint32_t bits;

#if defined(__i386__) && defined(__GNUC__)
    __asm__ volatile("" : : "r"(value) : "memory"); /* the float is in memory */
#endif
    memcpy(&bits, value, sizeof bits);
    return bits;
}

/* Of an option, by its bits. */
npuq_status npuq_check_positive(const char *op, const char *name, uint32_t bits);

npuq_status npuq_check_scale_form(const char *op, npuq_scale_form scale_form);
npuq_status npuq_check_dynamic_values(const npuq_arguments *arguments);

/* Tensors are min, scale, max and offset, which is null in the symmetric form. */
npuq_status npuq_call_dynamic_params(npuq_dynamic_form form, const npuq_tensor *const *tensors, npuq_dtype y_dtype);

#endif
