/* SPDX-License-Identifier: BSD-3-Clause */
/* The mistakes that are known: one entry of a table for each. */
#ifndef NPUQUANT_HYPOTHESES_H
#define NPUQUANT_HYPOTHESES_H

#include "call.h"
#include "variant.h"

#include <stdbool.h>

/* What a call must have for a mistake to be possible in it. */
enum need {
    NEED_OFFSET,       /* zero points or offsets */
    NEED_OFFSETS,      /* two or more along a dimension */
    NEED_FLOAT_OFFSET, /* of a floating-point type */
    NEED_SUM,          /* an offset or a bias is added in float32 */
    NEED_PRODUCT,      /* x is multiplied by its scale */
    NEED_DIVISION,     /* x is divided by its scale */
    NEED_LATER_STEPS,  /* the first product is not the last step */
    NEED_SCALES,       /* two scales or more along a dimension */
    NEED_SCALE_NOT_FLOAT16,
    NEED_ROWS,       /* two rows or more */
    NEED_ROW_SCALE,  /* an activation scale */
    NEED_ROW_SCALES, /* two rows or more that have their own scales */
    NEED_GROUPS,     /* two groups of rows or more */
    NEED_SMOOTH,     /* smooth scales */
    NEED_ANY_BIAS,
    NEED_INTEGER_BIAS,
    NEED_FLOAT_BIAS,
    NEED_X_NOT_FLOAT16,
    NEED_HALF_X,         /* x is float16 or bfloat16 */
    NEED_WIDE_X,         /* x or the smooth scales are float32 or bfloat16: they can be subnormal as float32 */
    NEED_FLOAT32,        /* x or its scale is float32 */
    NEED_FLOAT16_INSIDE, /* what float16 loses is not what the conversion of the last product to y loses */
    NEED_BFLOAT16_INSIDE,
    NEED_INT4_X,
    NEED_FINE_OFFSET,    /* offsets of a type that has more bits than bfloat16 */
    NEED_FINER_OFFSET,   /* and more than float16 */
    NEED_ROUNDED,        /* something is rounded to an integer */
    NEED_EXCESS,         /* float64 keeps bits that float32 does not, and they can be seen */
    NEED_EARLY_EXCESS,   /* and in a step before the last */
    NEED_SUBNORMALS,     /* subnormal operands can be seen in the result */
    NEED_NEW_SUBNORMALS, /* the last step can make a subnormal number of others */
    NEED_LONG_PRODUCT,   /* x times its scale can have more bits than float32 */
    NEED_X_NOT_BFLOAT16,
    NEED_SCALE_NOT_BFLOAT16,
    NEED_BEYOND, /* what a symmetric operator scales by its own data can be beyond the range of y, or infinite */
    NEED_MIN_SCALE,
    NEED_BLOCKS,        /* two blocks or more */
    NEED_BLOCKS_OF_ROW, /* in one row */
    NEED_HALVES,        /* half a block is less than a row, and than the block */
    NEED_ROUNDED_HALF,  /* values occur to which a half cannot be added without rounding */
    NEED_INT8_Y,        /* y is int8 itself */
    NEED_UINT8_Y,
    NEED_INT8_X,
    NEED_RUNS_OF_32, /* of elements, without a rest */
    NEED_FRACTALS,   /* y is several blocks of FRACTAL_NZ, without a rest */
    NEED_FRACTALS_OF_X,
    NEED_ROW_RANGES,    /* each row has its own range */
    NEED_TENSOR_RANGE,  /* of two rows or more */
    NEED_COLUMN_RANGES, /* and each column, of several, could have one */
    NEED_EMPTY_GROUP,   /* before a group that has rows */
    NEED_WORDS,         /* group_index says something else as words of 32 bits */
    NEED_BIASES,        /* two or more */
    NEED_FACTOR,        /* a rule of row_quant that multiplies by DMAX / m */
    NEED_SMALL_SCALE,   /* a returned scale can be subnormal */
    NEED_OVER_FLOAT16,  /* an operand of floats, or y, has another type than float16 */
    NEED_OVER_BFLOAT16,
    NEED_OTHER_SCALING, /* no rule of row_quant that divides by m / DMAX */
    NEED_END,
};
#define NEEDS(NAME) (UINT64_C(1) << NEED_##NAME)

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
    Y_ANY = Y_INTEGER | Y_FLOAT,
};

/* How often kernels have a mistake: of mistakes that give the same bits, the commoner one is named first. */
enum commonness { RARE = 1, USUAL = 4, COMMON = 16 };

enum { MOST_SETTINGS = 6 };

struct hypothesis {
    const char *name;
    enum commonness commonness;
    unsigned operators;
    unsigned y_types;
    uint64_t needs;                            /* a bit for each, NEEDS() */
    unsigned char settings[2 * MOST_SETTINGS]; /* a step, what is done there, and so on; AS_DEFINED ends them */
    const char *what;                          /* what the kernel does: "rounds halves away from zero" */
    const char *advice;                        /* one sentence */
};

extern const struct hypothesis hypotheses[];
extern const int hypothesis_count;

/* All that hypotheses can need and the call has. */
uint64_t needs_met(const struct call *call);

/* Whether the mistake is possible in the call. Who asks for many hypotheses passes needs_met(call) on. */
bool hypothesis_applies(const struct hypothesis *hypothesis, const struct call *call);
bool hypothesis_applies_to(const struct hypothesis *hypothesis, const struct call *call, uint64_t met);

/* Adds the choices of a hypothesis to a variant; false if the variant has made another choice at one of the steps. */
bool hypothesis_add(const struct hypothesis *hypothesis, struct variant *variant);

#endif
