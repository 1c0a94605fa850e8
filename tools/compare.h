/* SPDX-License-Identifier: BSD-3-Clause */
/* A result against what was expected. */
#ifndef NPUQUANT_COMPARE_H
#define NPUQUANT_COMPARE_H

#include <npuquant/npuquant.h>

/* Whether the two can be compared: same shape and type. Where only the bits matter types may differ: int64 goes with
 * uint64, and int32 is how quint4x2 words are stored. */
bool compare_possible(const npuq_tensor *got, const npuq_tensor *expected);

/* An element of any type: its bits, and what they mean if it is a small integer. */
struct value {
    uint64_t bits;
    int64_t number;
};

struct difference {
    int64_t index[NPUQ_MAX_NDIM];
    struct value got;
    struct value expected;
};

/* How many differences are kept to be shown. */
#define COMPARE_SHOWN 10

struct comparison {
    size_t elements;  /* of quint4x2: int4 values, not words */
    size_t differ;    /* beyond what is tolerated */
    uint64_t largest; /* difference of any two elements, tolerated or not: in ulps for float32, UINT64_MAX if only one
                         of them is finite */
    uint64_t tolerance;
    struct difference first[COMPARE_SHOWN];
};

/*
 * Compares a contiguous result with any view. Two float32 differ if they are more than max_ulp steps apart, where -0
 * equals 0, NaN equals NaN, and an infinity equals itself alone; other types differ if their bits do.
 */
struct comparison compare_tensors(const npuq_tensor *got, const npuq_tensor *expected, uint64_t max_ulp);

/* Prints to stdout what came out: one line, and one for each difference that was kept. */
void compare_print(const char *name, const npuq_tensor *got, const struct comparison *comparison);

#endif
