/* SPDX-License-Identifier: BSD-3-Clause */
/* The mistakes that are known: one entry of a table for each. */
#ifndef NPUQUANT_HYPOTHESES_H
#define NPUQUANT_HYPOTHESES_H

#include "call.h"
#include "variant.h"

#include <stdbool.h>

/* What a call must have for a mistake to be possible in it, as bits. */
enum {
    NEEDS_OFFSET = 1,       /* zero points or offsets are given */
    NEEDS_DIVISION = 2,     /* quantize divides */
    NEEDS_PRODUCT = 4,      /* x is multiplied by a scale */
    NEEDS_SMOOTH = 8,       /* smooth scales are given */
    NEEDS_GROUPS = 16,      /* of rows, two or more */
    NEEDS_SCALES = 32,      /* two scales or more along a dimension */
    NEEDS_ROWS = 64,        /* two rows or more */
    NEEDS_TOKENS = 128,     /* two scales of rows or more */
    NEEDS_BIAS = 256,       /* an int32 one */
    NEEDS_FLOAT_BIAS = 512, /* a floating-point one */
    NEEDS_INT4_X = 1024,    /* x is words of int4 */
    NEEDS_INT4 = 2048,      /* y is words of int4 */
    NEEDS_SIGNED = 4096,    /* y is int8 or int4 */
    NEEDS_INTEGER = 8192,   /* y is of an integer type */
    NEEDS_FLOAT = 16384,    /* y is of a floating-point type */
    NEEDS_HALF = 32768,     /* y is float16 or bfloat16 */
    NEEDS_FLOAT16 = 65536,  /* y is float16 */
    NEEDS_HALF_X = 131072,  /* x is float16 or bfloat16 */
    NEEDS_FLOAT32_X = 262144,
    NEEDS_OFFSETS = 524288, /* two offsets or more along a dimension */
    NEEDS_NARROW = 1048576, /* y has fewer bits than an int32 */
    NEEDS_BYTES = 2097152,  /* y has more than one byte */
    NEEDS_FLOAT32_SCALE = 8388608,
    NEEDS_WIDE_OFFSET = 16777216, /* offsets of a floating-point type */
    NEEDS_ROW_SCALE = 33554432,
    NEEDS_BFLOAT16 = 67108864, /* y is bfloat16 */
    NEEDS_FLOAT32 = 134217728, /* y is float32 */
};

struct hypothesis {
    const char *name;
    unsigned operators;
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
