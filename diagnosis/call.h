/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of an operator as plain contiguous arrays: what the steps of a diagnosis read. */
#ifndef NPUQUANT_CALL_H
#define NPUQUANT_CALL_H

#include "dtypes.h"

#include <npuquant/npuquant.h>
#include <ref/npuq_ref_element.h>

#include <operators.def>

/* The operators, as numbers, and as bits: a hypothesis belongs to several. Those of the diagnosis alone come last. */
#define NUMBER(name, NAME, EXECUTOR) NUMBER_OF_##NAME,
enum { EACH_OPERATOR(NUMBER) EACH_OWN(NUMBER) NUMBER_OF_OPERATORS };
#undef NUMBER
#define BIT(name, NAME, EXECUTOR) NAME = 1 << NUMBER_OF_##NAME,
enum { EACH_OPERATOR(BIT) EACH_OWN(BIT) };
#undef BIT

#define NUMBER(name, NAME, ...) NUMBER_OF_##NAME,
enum { EACH_OPTION(NUMBER) NUMBER_OF_OPTIONS };
#undef NUMBER

/* How row_quant quantises: by the rule of an operator. Operators to 8-bit floats by scales that they find have rules
 * of their own, and the calls of all others have none. */
#define RULE(name, NAME) RULE_##NAME,
enum rule { RULE_NONE, EACH_RULE(RULE) RULES, RULE_FLOAT8 = RULES, RULE_FLOAT8_BLOCK, ALL_RULES };
#undef RULE

/* The operands, with one name for those of the same role in several operators. */
enum operand {
    OPERAND_X,         /* x; the scale of trans_quant_param */
    OPERAND_SCALE,     /* scales, scale, weight_scale, words */
    OPERAND_OFFSET,    /* zero_points, offset */
    OPERAND_SMOOTH,    /* smooth_scales */
    OPERAND_GROUPS,    /* group_index */
    OPERAND_ROW_SCALE, /* activation_scale */
    OPERAND_BIAS,
    OPERANDS
};

/* How rows belong to groups: as group_index says, or as if it held counts, had no empty groups, or held 32-bit
 * words. */
enum grouping { GROUPED, GROUPED_BY_COUNTS, GROUPED_WITHOUT_EMPTY, GROUPED_BY_WORDS, GROUPINGS };

/* What an operator returns. */
enum result { RESULT_Y, RESULT_SCALE, RESULT_OFFSET, RESULTS };

/* What operators.def says of each operator, as sets of bits: X_OF_QUANTIZE has the types of quantize's x, the next two
 * those of its other inputs and of its results, and the last three the operands, results and options that it has. */
#define TYPE(NAME)                              | 1 << DTYPE_##NAME
#define ITS_TYPES(name, NAME, ROLE, TYPES, ...) TYPES_##TYPES(TYPE)
#define ITS_OPERAND(name, NAME, ROLE, ...)      | 1 << OPERAND_##ROLE
#define ITS_RESULT(name, NAME, ROLE, ...)       | 1 << RESULT_##ROLE
#define ITS_OPTION(name, NAME, type)            | 1 << NUMBER_OF_##NAME
#define SKIP(...)
#define SETS(name, NAME, EXECUTOR)                                                                                     \
    X_OF_##NAME = 0 ARGUMENTS_##name(ITS_TYPES, SKIP, SKIP, SKIP, SKIP),                                               \
    INPUTS_OF_##NAME = 0 ARGUMENTS_##name(SKIP, ITS_TYPES, ITS_TYPES, SKIP, SKIP),                                     \
    OUTPUTS_OF_##NAME = 0 ARGUMENTS_##name(SKIP, SKIP, SKIP, ITS_TYPES, SKIP),                                         \
    OPERANDS_OF_##NAME = 0 ARGUMENTS_##name(ITS_OPERAND, ITS_OPERAND, ITS_OPERAND, SKIP, SKIP),                        \
    RESULTS_OF_##NAME = 0 ARGUMENTS_##name(SKIP, SKIP, SKIP, ITS_RESULT, SKIP),                                        \
    OPTIONS_OF_##NAME = 0 ARGUMENTS_##name(SKIP, SKIP, SKIP, SKIP, ITS_OPTION),
enum { EACH_OPERATOR(SETS) EACH_OWN(SETS) };
#undef SETS
#undef SKIP
#undef TYPE

/* The operators that have a fact, which is one of these. */
#define OPERATORS_WITH(FACT)                (0 EACH_OPERATOR(FACT) EACH_OWN(FACT))
#define HAS(NAME, SET, MEMBER)              | (SET##_OF_##NAME & 1 << (MEMBER) ? NAME : 0)
#define X_FLOAT32(name, NAME, EXECUTOR)     HAS(NAME, X, DTYPE_FLOAT32)
#define X_INT8(name, NAME, EXECUTOR)        HAS(NAME, X, DTYPE_INT8)
#define X_INT32(name, NAME, EXECUTOR)       HAS(NAME, X, DTYPE_INT32)
#define INPUT_UINT64(name, NAME, EXECUTOR)  HAS(NAME, INPUTS, DTYPE_UINT64)
#define OUTPUT_UINT64(name, NAME, EXECUTOR) HAS(NAME, OUTPUTS, DTYPE_UINT64)
#define OUTPUT_SCALE(name, NAME, EXECUTOR)  HAS(NAME, RESULTS, RESULT_SCALE)
#define OUTPUT_OFFSET(name, NAME, EXECUTOR) HAS(NAME, RESULTS, RESULT_OFFSET)
#define OUTPUT_INT8(name, NAME, EXECUTOR)   HAS(NAME, OUTPUTS, DTYPE_INT8)
#define OPTION_BLOCK(name, NAME, EXECUTOR)  HAS(NAME, OPTIONS, NUMBER_OF_BLOCK)
#define OPTION_GROUPS(name, NAME, EXECUTOR) HAS(NAME, OPTIONS, NUMBER_OF_BLOCK_SIZE)

/* Microscaling has powers of two as scales, and steps of its own: in the sets that follow, only the way back is. */
enum {
    MX = OPERATORS_WITH(OPTION_GROUPS),
    MICROSCALES = MX & OPERATORS_WITH(OUTPUT_SCALE),
    READS_GROUPS = MX & ~MICROSCALES, /* the way back */
    FROM_FLOATS = OPERATORS_WITH(X_FLOAT32) & ~MICROSCALES,
    FROM_NARROW = OPERATORS_WITH(X_INT8),
    FROM_SUMS = OPERATORS_WITH(X_INT32), /* of products */
    READS_WORDS = OPERATORS_WITH(INPUT_UINT64),
    MAKES_WORDS = OPERATORS_WITH(OUTPUT_UINT64),
    FINDS_SCALES = OPERATORS_WITH(OUTPUT_SCALE) & ~MICROSCALES, /* from the data */
    ASYMMETRIC = OPERATORS_WITH(OUTPUT_OFFSET),                 /* and finds offsets */
    SYMMETRIC = FINDS_SCALES & ~ASYMMETRIC,
    BY_BLOCK = OPERATORS_WITH(OPTION_BLOCK),
    TO_INT8 = OPERATORS_WITH(OUTPUT_INT8),
    SCALED_TO_FLOAT8 = FINDS_SCALES & ~TO_INT8,
};

struct array {
    void *data; /* null where there is none; owned by the call */
    npuq_dtype dtype;
    size_t count; /* of values: eight in a QUINT4X2 word */
};

struct call_options {
    int32_t axis;
    bool divides;
    bool per_tensor;
    bool inverse_form;
    bool rounds_to_nearest;
    int64_t row_block; /* 0 where there is no such option */
    int64_t block;
    float min_scale;
    float dst_type_max;
    npuq_ref_mx mx; /* of microscaling: its block is 0 elsewhere, and it takes dst_type_max from here */
    enum rule rule;
    npuq_dtype y_dtype;
};

struct call {
    unsigned op;
    struct call_options options;
    struct array operands[OPERANDS];
    int ndim; /* of x, whose extents count values */
    size_t shape[NPUQ_MAX_NDIM];
    size_t rows; /* all dimensions but the last as one */
    size_t columns;
    size_t count;
    size_t channels;     /* extent of the dimension that the scales belong to; 1 for one scale */
    size_t inner;        /* elements from one channel to the next */
    size_t group_rows;   /* rows that share a channel for each column, of anti_quant; 0 if all rows do */
    size_t tokens;       /* dynamic operators: rows, the tensor, blocks, or groups along an axis, each with one scale */
    size_t token_length; /* of blocks the last one of a row may be shorter */
    size_t token_rows;   /* how many rows a token has so many elements of; the last one of a matrix may have fewer */
    size_t matrix_rows;  /* the last dimension but one, where blocks begin anew */
    size_t *row_group;   /* the group of each row, for each grouping in turn; null without group_index */
    size_t groups;
};

/* Copies the operands, any views, of a call that the library accepts. False if there is not the memory; released by
 * call_release() in any case. operands[] are null where there is none. */
bool call_make(struct call *call, unsigned op, const npuq_tensor *const operands[OPERANDS],
               const struct call_options *options);

/* A call of an operator that has the operand x alone, contiguous, which is not copied. There is nothing to release. */
void call_view(struct call *call, unsigned op, const npuq_tensor *x, const struct call_options *options);
void call_release(struct call *call);

/* Elements from one index of a dimension to the next. */
size_t call_stride(const struct call *call, int dimension);

/* The channel of element i: which of the scales along a dimension it has. */
size_t call_channel(const struct call *call, size_t i);

/* Tokens of so many rows lie in bands: how many bands a matrix has, and x; which one a row is in; and its rows. */
size_t call_bands_of_matrix(const struct call *call, size_t token_rows);
size_t call_bands(const struct call *call, size_t token_rows);
size_t call_band_of(const struct call *call, size_t token_rows, size_t row);
struct row_range {
    size_t begin;
    size_t end; /* not included */
};
struct row_range call_rows_of_band(const struct call *call, size_t token_rows, size_t band);

/* Groups of microscaling: so many elements along an axis, two in a pair. Their numbers are the places of their scales:
 * the second group of the last pair of a line may be none. */
struct lines {
    size_t count;
    size_t extent; /* of the axis */
    size_t inner;  /* elements from one index of the axis to the next, and lines that lie within each other */
    size_t length; /* of a group */
    size_t groups; /* along the axis */
    size_t pairs;
};
struct line_place {
    size_t line;
    size_t group; /* along the axis */
};
int call_axis(const struct call *call);
struct lines call_lines(const struct call *call, int axis, size_t length);
size_t call_groups(const struct lines *lines);
size_t call_group_at(const struct lines *lines, struct line_place place);
struct line_place call_place_of_group(const struct lines *lines, size_t group);
size_t call_group_with(const struct lines *lines, size_t i);

/* The elements of x from begin to end, at steps, and, of a block of several rows, those below them. */
struct span {
    size_t begin;
    size_t end; /* not included */
    size_t stride;
    size_t rows; /* 1 where the rest has several rows, too */
};
struct span call_span_of_group(const struct lines *lines, size_t group);

/* The rows that a scale belongs to; that of the tensor counts as one of its first row. */
struct row_range call_rows_of_token(const struct call *call, size_t token);

/* The integer type that an operator rounds and saturates to. A symmetric operator makes uint8 of int8: it flips the
 * upper bit last. */
npuq_dtype call_rounded_dtype(unsigned op, npuq_dtype y_dtype);

/* How many results the operator has: y; scale, too; offset, too. */
int call_results(const struct call *call);

/* How many values the result has. */
size_t call_result_count(const struct call *call, enum result result);

npuq_dtype call_result_dtype(const struct call *call, enum result result);

/* Whether two elements count as equal. In scales and offsets NaN equals NaN, and -0 equals 0. */
bool result_is_same(enum result result, uint64_t a, uint64_t b);

/* Copies a tensor to a contiguous array, or an array. False if there is not the memory. */
bool array_make(struct array *array, const npuq_tensor *tensor);
bool array_copy(struct array *to, const struct array *from);
void array_release(struct array *array);

/* The bits of a value, of a QUINT4X2 array the four of one int4. */
uint64_t array_bits(const struct array *array, size_t i);
void array_set_bits(struct array *array, size_t i, uint64_t bits);

/* Whether all values are the same. */
bool array_holds_one_value(const struct array *array);

#endif
