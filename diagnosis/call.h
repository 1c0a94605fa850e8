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

/* How row_quant quantises: by the rule of an operator. The calls of all other operators have none. */
#define RULE(name, NAME) RULE_##NAME,
enum rule { RULE_NONE, EACH_RULE(RULE) RULES };
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

/* What the rows of operators.def say of an operator, as bits to add: the types of x, of other inputs and of results,
 * and which operands, results and options there are. */
#define FACT(number)                                  | UINT64_C(1) << (number)
#define X_MAY_BE(TYPE)                                FACT(DTYPE_##TYPE)
#define INPUT_MAY_BE(TYPE)                            FACT(DTYPES + DTYPE_##TYPE)
#define RESULT_MAY_BE(TYPE)                           FACT(2 * DTYPES + DTYPE_##TYPE)
#define TAKES_OPERAND(ROLE)                           FACT(3 * DTYPES + OPERAND_##ROLE)
#define MAKES_RESULT(ROLE)                            FACT(3 * DTYPES + OPERANDS + RESULT_##ROLE)
#define TAKES_OPTION(NAME)                            FACT(3 * DTYPES + OPERANDS + RESULTS + NUMBER_OF_##NAME)
#define FACTS_OF_X(name, NAME, ROLE, TYPES, ...)      TAKES_OPERAND(ROLE) TYPES_##TYPES(X_MAY_BE)
#define FACTS_OF_INPUT(name, NAME, ROLE, TYPES, ...)  TAKES_OPERAND(ROLE) TYPES_##TYPES(INPUT_MAY_BE)
#define FACTS_OF_OUTPUT(name, NAME, ROLE, TYPES, ...) MAKES_RESULT(ROLE) TYPES_##TYPES(RESULT_MAY_BE)
#define FACTS_OF_OPTION(name, NAME, type)             TAKES_OPTION(NAME)

#define FACTS(name) ARGUMENTS_##name(FACTS_OF_X, FACTS_OF_INPUT, FACTS_OF_INPUT, FACTS_OF_OUTPUT, FACTS_OF_OPTION)

/* The operators that have the fact. Their list cannot pass it on. So it stands before each IF_TRUE(), which closes a
 * bracket, and opens the next one's. */
#define OPERATORS_WITH(fact) ((EACH_OPERATOR(NAME_IF(fact)) EACH_OWN(NAME_IF(fact)) 0))
#define NAME_IF(fact)        (0 fact) & IF_TRUE
#define IF_TRUE(name, NAME, EXECUTOR) (0 FACTS(name)) ? NAME : 0) | (

enum {
    FROM_FLOATS = OPERATORS_WITH(X_MAY_BE(FLOAT32)),
    FROM_NARROW = OPERATORS_WITH(X_MAY_BE(INT8)),
    FROM_SUMS = OPERATORS_WITH(X_MAY_BE(INT32)), /* of products */
    READS_WORDS = OPERATORS_WITH(INPUT_MAY_BE(UINT64)),
    MAKES_WORDS = OPERATORS_WITH(RESULT_MAY_BE(UINT64)),
    FINDS_SCALES = OPERATORS_WITH(MAKES_RESULT(SCALE)), /* from the data */
    ASYMMETRIC = OPERATORS_WITH(MAKES_RESULT(OFFSET)),  /* and finds offsets */
    SYMMETRIC = FINDS_SCALES & ~ASYMMETRIC,
    BY_BLOCK = OPERATORS_WITH(TAKES_OPTION(BLOCK)),
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
    int64_t block;
    float min_scale;
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
    size_t tokens;       /* dynamic operators: rows, the tensor, or blocks of rows, each with one scale */
    size_t token_length; /* of blocks the last one of a row may be shorter */
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
