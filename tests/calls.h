/* SPDX-License-Identifier: BSD-3-Clause */
/* Any call of any operator as a value: it is run at once, or prepared. Random ones are drawn. */
#ifndef NPUQ_TESTS_CALLS_H
#define NPUQ_TESTS_CALLS_H

#include "../diagnosis/operators.def"
#include "support.h"

enum slot {
    X,
    SCALES,
    ZERO_POINTS,
    SCALE,
    SMOOTH_SCALES,
    GROUP_INDEX,
    OFFSET,
    Y,
    MIN,
    MAX,
    WEIGHT_SCALE,
    ACTIVATION_SCALE,
    BIAS,
    WORDS,
    SLOTS
};

extern const char *const slot_names[SLOTS];

#define NUMBER(name, NAME, EXECUTOR) TEST_##NAME,
/* The operators have the numbers of their bits in a diagnosis; behind them come the steps. */
enum test_operator { EACH_OPERATOR(NUMBER) EACH_STEP(NUMBER) TEST_OPERATORS };
#undef NUMBER

#define NUMBER(name, NAME) OPTION_##NAME,
enum test_option { EACH_OPTION(NUMBER) OPTIONS };
#undef NUMBER

extern const char *const operator_names[TEST_OPERATORS];

typedef struct test_call {
    enum test_operator op;
    bool given[SLOTS];
    npuq_tensor tensors[SLOTS];
    int32_t axis;
    bool div_mode;
    npuq_quant_mode quant_mode;
    npuq_scale_form scale_form;
    npuq_round_mode round_mode;
    int64_t block;
    float min_scale;
    npuq_dtype y_dtype; /* of the steps that make parameters */
    const npuq_executor *executor;
} test_call;

npuq_status test_call_run(const test_call *c);

/* Without the executor, and not for what takes none. */
npuq_status test_call_prepare(npuq_call *prepared, const test_call *c);

/* What the oracle makes of it: elements are those of each tensor that is given, in row-major order; null otherwise. */
void test_call_oracle(const test_call *c, void *const elements[SLOTS]);

/* What takes x with smooth scales and groups. */
bool test_is_dynamic(enum test_operator op);
/* What makes parameters of ranges: of any shape, as that of min. */
bool test_takes_ranges_only(enum test_operator op);
/* What takes an executor can be prepared. */
bool test_takes_executor(enum test_operator op);
/* What finds the range of each row: rows are not divided, and there is no prepared call for a whole tensor. */
bool test_finds_ranges(enum test_operator op);
bool test_is_output(enum test_operator op, enum slot slot);
bool test_is_optional(enum test_operator op, enum slot slot);
/* The operand of npuq_call_rebind(), or -1: this argument cannot be replaced. */
int test_operand_of(enum slot slot);

enum { TEST_GROUPS = 6 }; /* at most */

/* A call drawn at random. */
typedef struct test_drawing test_drawing;
struct test_drawing {
    size_t (*choose)(size_t end); /* gives 0 to end - 1 */
    /* Fills the elements of an input; null: with those of test_fill(). */
    void (*fill)(const test_call *call, enum slot slot, void *elements, npuq_dtype dtype, size_t count);
    /* Takes an argument of so many values in place of a view; with it there are no views and no values. */
    void (*add)(test_drawing *d, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape);
    /* Fills d->shape for d->ndim; the last extent has to be a multiple of so many. */
    void (*draw_shape)(test_drawing *d, int64_t multiple);
    bool all_contiguous;
    bool large;       /* several units of a prepared call */
    bool empty;       /* some extent of x is 0 */
    bool half_floats; /* of the floating-point types FLOAT16 only */
    bool has_shape;   /* ndim and shape below are given, and taken if the operator takes so many dimensions */
    int ndim;
    int64_t shape[NPUQ_MAX_NDIM]; /* of x or y, in values */
    test_call call;
    test_view views[SLOTS];    /* of the tensors that are given */
    int64_t ends[TEST_GROUPS]; /* of the groups of rows */
    int64_t groups;
};

/* Draws types, shape, options, layouts and values for the operator of d->call with d->choose(), as the members before
 * these say. A call without elements may be one that the library refuses. */
void test_draw_call(test_drawing *d);
void test_free_drawing(test_drawing *d);
/* The same until the call has elements. */
void test_draw_elements(test_drawing *d);
/* The same until the call can be prepared. */
npuq_call test_draw_prepared(test_drawing *d);

/* All bytes of a drawing's outputs, what lies between their elements included. */
typedef struct test_outcome {
    unsigned char *bytes[SLOTS];
} test_outcome;

/* What the one call writes. Afterwards the outputs are as they were before. */
test_outcome test_expect_outcome(const test_drawing *d);
void test_free_outcome(test_outcome *outcome);
void test_restore_outputs(const test_drawing *d);
/* The call with memory of its own for the outputs, which is as theirs was before. */
typedef struct test_copy {
    test_call call;
    test_outcome outputs;
} test_copy;
test_copy test_copy_call(const test_drawing *d);
void test_free_copy(test_copy *copy);
/* Whether the copy's outputs are so. Asserts nothing: it may be called on any thread. */
bool test_copy_is(const test_copy *copy, const test_drawing *d, const test_outcome *expected);
/* Fails if the outputs are not so, or any input is not as it was; null: no output is to have changed, either. Restores
 * the outputs. */
void test_check_outcome(const test_drawing *d, const test_outcome *expected, const char *name, const char *how);

#endif
