/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases. A case is an operator with its mode, types and shape. Its name says all of them; cases.py has the list. */
#ifndef NPUQ_BENCH_CASES_H
#define NPUQ_BENCH_CASES_H

#include <npuquant/npuquant.h>
#include <shape.h>

#define BENCH_NUMBER(name, NAME, EXECUTOR) BENCH_##NAME,
enum bench_operator { EACH_OPERATOR(BENCH_NUMBER) };

enum bench_mode {
    BENCH_MUL,
    BENCH_DIV,            /* quantize */
    BENCH_NEAREST,        /* trans_quant_param */
    BENCH_TOKEN,          /* dynamic: a scale for each row; dequant: activation_scale is given */
    BENCH_TENSOR,         /* dynamic: one scale */
    BENCH_WEIGHT,         /* dequant: weight_scale alone */
    BENCH_TOKEN_BIAS_I32, /* dequant: activation_scale and a bias of int32 */
    BENCH_TOKEN_BIAS_F32,
    BENCH_SYMMETRIC, /* requant: words without offsets */
    BENCH_BLOCK32,   /* dynamic: a scale for each 32 columns of a row */
    BENCH_BLOCK128
};

/* One scale, one for each column, or one for each index of the middle dimension. Dynamic operators: without smooth
 * scales, with them, or with smooth scales of each group. */
enum bench_parameters { BENCH_UNIFORM, BENCH_CHANNEL, BENCH_AXIS, BENCH_PLAIN, BENCH_SMOOTH, BENCH_EXPERTS64 };

/* Unusual data, or an unusual layout. */
enum bench_variant {
    BENCH_USUAL,
    BENCH_SATURATED,    /* x is a thousand times as large: most results are at an end of the range of y */
    BENCH_NAN,          /* each sixteenth element is NaN */
    BENCH_SUBNORMAL,    /* all of x is below the normal numbers */
    BENCH_EVERY_SECOND, /* x is every second element of a row; this and the next are views of two dimensions */
    BENCH_REVERSED,     /* x's rows run backwards */
    BENCH_BROADCAST,    /* x is one column, for all columns */
    BENCH_TRANSPOSED_X, /* x is column-major */
    BENCH_TRANSPOSED_Y
};

enum { BENCH_MAX_NDIM = 3 };

struct bench_case {
    char name[96];
    enum bench_operator op;
    enum bench_mode mode;
    enum bench_parameters parameters;
    enum bench_variant variant;
    npuq_dtype x_dtype;
    npuq_dtype y_dtype;
    npuq_dtype offset_dtype;
    float scale;     /* brings x into the range of y; 0: without scales */
    float offset;    /* zero point or bias; 0: without */
    float row_scale; /* the mean of dequant's activation_scale; 0: without */
    int ndim;
    int64_t shape[BENCH_MAX_NDIM]; /* of elements of x */
    int64_t groups;                /* experts, where there are any */
    int threads;                   /* 0: as many as the command line says */
};

enum { BENCH_GROUP_COUNT = 64 };

/* Reads the case's name. Returns null, or the part of the name that was not expected. */
const char *bench_parse(const char *name, struct bench_case *c);

bool bench_is_view(const struct bench_case *c);
int bench_results(const struct bench_case *c);   /* tensors: y; of an operator that finds scales these, and offsets */
int64_t bench_block(const struct bench_case *c); /* columns that share a scale; 0: whole rows or more */

/* A row of few elements on one thread: what surrounds the work counts. */
bool bench_is_small(const struct bench_case *c);

size_t bench_elements(const struct bench_case *c);
size_t bench_x_bytes(const struct bench_case *c);
size_t bench_y_bytes(const struct bench_case *c);

#endif
