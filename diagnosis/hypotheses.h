/* SPDX-License-Identifier: BSD-3-Clause */
/* The mistakes that are known: one entry of a table for each. */
#ifndef NPUQUANT_HYPOTHESES_H
#define NPUQUANT_HYPOTHESES_H

#include "call.h"
#include "variant.h"

#include <stdbool.h>

/* What a call must have for a mistake to be possible in it: bool alone, so that two are compared as bytes. */
struct needs {
    bool offset;       /* zero points or offsets */
    bool offsets;      /* two or more along a dimension */
    bool float_offset; /* of a floating-point type */
    bool sum;          /* an offset or a bias is added in float32 */
    bool product;      /* x is multiplied by its scale */
    bool division;     /* x is divided by its scale */
    bool later_steps;  /* the first product is not the last step */
    bool scales;       /* two scales or more along a dimension */
    bool scale_not_float16;
    bool rows;       /* two rows or more */
    bool row_scale;  /* an activation scale */
    bool row_scales; /* two rows or more that have their own scales */
    bool groups;     /* two groups of rows or more */
    bool smooth;     /* smooth scales */
    bool any_bias;
    bool integer_bias;
    bool float_bias;
    bool x_not_float16;
    bool half_x;         /* x is float16 or bfloat16 */
    bool wide_x;         /* x or the smooth scales are float32 or bfloat16: they can be subnormal as float32 */
    bool float32;        /* x or its scale is float32 */
    bool float16_inside; /* what float16 loses is not what the conversion of the last product to y loses */
    bool bfloat16_inside;
    bool int4_x;         /* x has 4 bits */
    bool float8_x;       /* codes of 8 bits */
    bool fine_offset;    /* offsets of a type that has more bits than bfloat16 */
    bool finer_offset;   /* and more than float16 */
    bool rounded;        /* something is rounded to an integer */
    bool excess;         /* float64 keeps bits that float32 does not, and they can be seen */
    bool early_excess;   /* and in a step before the last */
    bool subnormals;     /* subnormal operands can be seen in the result */
    bool new_subnormals; /* the last step can make a subnormal number of others */
    bool long_product;   /* x times its scale can have more bits than float32 */
    bool x_not_bfloat16;
    bool scale_not_bfloat16;
    bool beyond; /* what is scaled, also by an operator's own scales, can be beyond the range of y, or infinite */
    bool min_scale;
    bool blocks;        /* two blocks or more */
    bool blocks_of_row; /* in one row */
    bool row_blocks;    /* blocks of several rows */
    bool halves;        /* half a block is less than a row, and than the block */
    bool rounded_half;  /* values occur to which a half cannot be added without rounding */
    bool int8_y;        /* y is int8 itself */
    bool uint8_y;
    bool int8_x;
    bool runs_of_32; /* of elements, without a rest */
    bool fractals;   /* y is several blocks of FRACTAL_NZ, without a rest */
    bool fractals_of_x;
    bool row_ranges;    /* each row has its own range */
    bool tensor_range;  /* of two rows or more */
    bool column_ranges; /* and each column, of several, could have one */
    bool empty_group;   /* before a group that has rows */
    bool words;         /* group_index says something else as words of 32 bits */
    bool biases;        /* two or more */
    bool factor;        /* a rule of row_quant that multiplies by DMAX / m */
    bool small_scale;   /* a returned scale can be subnormal */
    bool over_float16;  /* an operand of floats, or y, has another type than float16 */
    bool over_bfloat16;
    bool rounded_inverse; /* 1 / DMAX has other bits than DMAX */
    bool other_type_max;  /* a dst_type_max other than the largest value of y's type */
    bool other_scaling;   /* no rule of row_quant that divides by m / DMAX */
    bool two_axes;        /* of microscaling: groups may run along another axis */
    bool groups_of_line;  /* two or more along the axis */
    bool low_bound;       /* a max_low_bound */
    bool tiny_results;    /* a scaled value may be so small that its significand is shifted by 32 bits and more */
    bool overflow;        /* the last value may be beyond y */
    bool rounded_result;  /* the last value may have bits that y, or bfloat16, has not */
};

/* Types of y, as bits. */
enum {
    Y_INT8 = 1 << DTYPE_INT8,
    Y_UINT8 = 1 << DTYPE_UINT8,
    Y_INT32 = 1 << DTYPE_INT32,
    Y_INT4 = 1 << DTYPE_QUINT4X2,
    Y_FLOAT16 = 1 << DTYPE_FLOAT16,
    Y_BFLOAT16 = 1 << DTYPE_BFLOAT16,
    Y_FLOAT32 = 1 << DTYPE_FLOAT32,
    Y_WORD = 1 << DTYPE_INT64 | 1 << DTYPE_UINT64,
    Y_SIGNED = Y_INT8 | Y_INT4,
    Y_SIGNED_INTEGER = Y_SIGNED | Y_INT32,
    Y_SIGNED_OR_WORD = Y_SIGNED_INTEGER | Y_WORD,
    Y_NARROW = Y_SIGNED | Y_UINT8,
    Y_INTEGER = Y_NARROW | Y_INT32 | Y_WORD,
    Y_HALF = Y_FLOAT16 | Y_BFLOAT16,
    Y_WIDE = Y_BFLOAT16 | Y_FLOAT32, /* they reach as far as float32 */
    Y_FLOAT = Y_HALF | Y_FLOAT32,
    Y_BYTES = Y_INT32 | Y_FLOAT | Y_WORD,
    Y_HIFLOAT8 = 1 << DTYPE_HIFLOAT8,
    Y_FLOAT8 = 1 << DTYPE_FLOAT8_E4M3FN | 1 << DTYPE_FLOAT8_E5M2 | Y_HIFLOAT8,
    Y_E2M1 = 1 << DTYPE_FLOAT4_E2M1,
    Y_FLOAT4 = Y_E2M1 | 1 << DTYPE_FLOAT4_E1M2,
    Y_MX_8 = Y_FLOAT8 & ~Y_HIFLOAT8, /* of microscaling */
    Y_MX = Y_MX_8 | Y_FLOAT4,
    Y_SMALL = Y_FLOAT8 | Y_FLOAT4,
    Y_ANY = Y_INTEGER | Y_FLOAT | Y_FLOAT8 | Y_FLOAT4,
};

/* How often kernels have a mistake: of mistakes that give the same bits, the commoner one is named first. */
enum commonness { RARE = 1, USUAL = 4, COMMON = 16 };

enum { MOST_SETTINGS = 6 };

struct hypothesis {
    const char *name;
    enum commonness commonness;
    unsigned operators;
    unsigned y_types;
    struct needs needs;
    unsigned char settings[2 * MOST_SETTINGS]; /* a step, what is done there, and so on; AS_DEFINED ends them */
    const char *what;                          /* what the kernel does: "rounds halves away from zero" */
    const char *advice;                        /* one sentence */
};

extern const struct hypothesis hypotheses[];
extern const int hypothesis_count;

/* All that hypotheses can need and the call has. */
struct needs needs_met(const struct call *call);

/* Whether the mistake is possible in the call. Who asks for many hypotheses passes needs_met(call) on. */
bool hypothesis_applies(const struct hypothesis *hypothesis, const struct call *call);
bool hypothesis_applies_to(const struct hypothesis *hypothesis, const struct call *call, const struct needs *met);

/* Adds the choices of a hypothesis to a variant; false if the variant has made another choice at one of the steps. */
bool hypothesis_add(const struct hypothesis *hypothesis, struct variant *variant);

#endif
