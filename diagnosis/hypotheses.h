/* SPDX-License-Identifier: BSD-3-Clause */
/* The mistakes that are known: one entry of a table for each. */
#ifndef NPUQUANT_HYPOTHESES_H
#define NPUQUANT_HYPOTHESES_H

#include "call.h"
#include "variant.h"

#include <stdbool.h>

/* What a call must have for a mistake to be possible in it, as bits. */
enum {
    NEEDS_OFFSET = 1 << 0,       /* zero points or offsets */
    NEEDS_OFFSETS = 1 << 1,      /* two or more along a dimension */
    NEEDS_FLOAT_OFFSET = 1 << 2, /* of a floating-point type */
    NEEDS_SUM = 1 << 3,          /* an offset or a bias is added in float32 */
    NEEDS_PRODUCT = 1 << 4,      /* x is multiplied by its scale */
    NEEDS_DIVISION = 1 << 5,     /* x is divided by its scale */
    NEEDS_LATER_STEPS = 1 << 6,  /* the first product is not the last step */
    NEEDS_SCALES = 1 << 7,       /* two scales or more along a dimension */
    NEEDS_SCALE_NOT_FLOAT16 = 1 << 8,
    NEEDS_ROWS = 1 << 9,        /* two rows or more */
    NEEDS_ROW_SCALE = 1 << 10,  /* an activation scale */
    NEEDS_ROW_SCALES = 1 << 11, /* two rows or more that have their own scales */
    NEEDS_GROUPS = 1 << 12,     /* two groups of rows or more */
    NEEDS_SMOOTH = 1 << 13,     /* smooth scales */
    NEEDS_ANY_BIAS = 1 << 14,
    NEEDS_INTEGER_BIAS = 1 << 15,
    NEEDS_FLOAT_BIAS = 1 << 16,
    NEEDS_X_NOT_FLOAT16 = 1 << 17,
    NEEDS_HALF_X = 1 << 18, /* x is float16 or bfloat16 */
    NEEDS_WIDE_X = 1 << 19, /* x or the smooth scales are float32 or bfloat16: they can be subnormal as float32 */
    NEEDS_INT4_X = 1 << 20,
    NEEDS_FINE_OFFSET = 1 << 21,    /* offsets of a type that has more bits than bfloat16 */
    NEEDS_FINER_OFFSET = 1 << 22,   /* and more than float16 */
    NEEDS_ROUNDED = 1 << 23,        /* something is rounded to an integer */
    NEEDS_EXCESS = 1 << 24,         /* float64 keeps bits that float32 does not, and they can be seen */
    NEEDS_SUBNORMALS = 1 << 25,     /* subnormal operands can be seen in the result */
    NEEDS_NEW_SUBNORMALS = 1 << 26, /* the last step can make a subnormal number of others */
    NEEDS_LONG_PRODUCT = 1 << 27,   /* x times its scale can have more bits than float32 */
    NEEDS_X_NOT_BFLOAT16 = 1 << 28,
    NEEDS_SCALE_NOT_BFLOAT16 = 1 << 29,
    NEEDS_ROUNDED_HALF = 1 << 30, /* values occur to which a half cannot be added without rounding */
};

/* Types of y, as bits. */
enum {
    Y_INT8 = 1,
    Y_UINT8 = 2,
    Y_INT32 = 4,
    Y_INT4 = 8,
    Y_FLOAT16 = 16,
    Y_BFLOAT16 = 32,
    Y_FLOAT32 = 64,
    Y_WORD = 128,
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

struct hypothesis {
    const char *name;
    unsigned operators;
    unsigned y_types;
    unsigned needs;
    uint64_t settings;  /* 16 bits for each choice: the step and what is done there */
    const char *what;   /* what the kernel does: "rounds halves away from zero" */
    const char *advice; /* one sentence */
};

extern const struct hypothesis hypotheses[];
extern const int hypothesis_count;

/* Whether the mistake is possible in the call. */
bool hypothesis_applies(const struct hypothesis *hypothesis, const struct call *call);

/* Adds the choices of a hypothesis to a variant; false if the variant has made another choice at one of the steps. */
bool hypothesis_add(const struct hypothesis *hypothesis, struct variant *variant);

#endif
