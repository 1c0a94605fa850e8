/* SPDX-License-Identifier: BSD-3-Clause */
/* What a diagnosis and the Python module ask of a dtype: one row of a table for each. */
#ifndef NPUQUANT_DTYPES_H
#define NPUQUANT_DTYPES_H

#include <npuquant/npuquant.h>

#include <types.def>

#define POSITION(NAME, ...) DTYPE_##NAME,
enum { EACH_TYPE(POSITION) DTYPES };
#undef POSITION

#define KIND_NUMBER(KIND) KIND_##KIND,
enum dtype_kind { EACH_KIND(KIND_NUMBER) };
#undef KIND_NUMBER

struct dtype {
    npuq_dtype dtype;
    unsigned bit;       /* its own, in sets of dtypes: of 1 << DTYPE_... */
    const char *name;   /* what users call it */
    const char *stored; /* NumPy's type of what an array of it holds */
    enum dtype_kind kind;
    int bits;        /* of a value */
    int log2_values; /* of how many values an element holds: eight in a quint4x2 word */
    int fraction;    /* of a floating-point type: bits of the significand that are stored */
    double low;      /* of an integer or a small float: the range */
    double high;
    double dmax; /* what dynamic quantisation makes of the largest magnitude */
};

extern const struct dtype dtypes[DTYPES];

const struct dtype *dtype_of(npuq_dtype dtype);

/* The one that users call so; null if there is none. */
const struct dtype *dtype_named(const char *name);

bool dtype_is_float(npuq_dtype dtype);
bool dtype_is_integer(npuq_dtype dtype);
bool dtype_is_words(npuq_dtype dtype);

/* The bits of value i of contiguous data, aligned or not. */
uint64_t dtype_load(npuq_dtype dtype, const void *data, size_t i);
void dtype_store(npuq_dtype dtype, void *data, size_t i, uint64_t bits);

/* Numbers the values in their order, so that neighbours differ by 1 and both zeros are 0: an integer is itself. */
int64_t dtype_order(npuq_dtype dtype, uint64_t bits);

/* How far apart two values are in this order. A NaN is very far from a number. */
uint64_t dtype_distance(npuq_dtype dtype, uint64_t a, uint64_t b);

/* Of a floating-point type of 8 bits or more: what its bits mean, and what a value becomes that is stored. */
float dtype_float(npuq_dtype dtype, uint64_t bits);
uint32_t dtype_float_bits(npuq_dtype dtype, float value);

#endif
