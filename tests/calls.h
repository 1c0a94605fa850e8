/* SPDX-License-Identifier: BSD-3-Clause */
/* Any call of any operator as a value: a test runs or prepares it. Random calls are drawn. */
#ifndef NPUQ_TESTS_CALLS_H
#define NPUQ_TESTS_CALLS_H

#include "../src/shape.h"
#include "support.h"

/* The arguments that any operator has. */
#define EACH_SLOT(DO)                                                                                                  \
    DO(x, X), DO(scales, SCALES), DO(zero_points, ZERO_POINTS), DO(scale, SCALE), DO(smooth_scales, SMOOTH_SCALES),    \
        DO(group_index, GROUP_INDEX), DO(offset, OFFSET), DO(y, Y), DO(min, MIN), DO(max, MAX),                        \
        DO(weight_scale, WEIGHT_SCALE), DO(activation_scale, ACTIVATION_SCALE), DO(bias, BIAS), DO(words, WORDS),      \
        DO(mxscale, MXSCALE)

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* Of a storage word. npuq_dtype_size() is in the library alone. */
static inline size_t test_size(npuq_dtype dtype)
{
#define SIZE_OF(NAME, name, row, number, KIND, bits, log2_elements, ...)                                               \
    case NPUQ_##NAME: return ((size_t)(bits) << (log2_elements)) / 8;

    switch (dtype) {
        EACH_TYPE(SIZE_OF)
    }
#undef SIZE_OF
    return 0;
}

static inline bool test_is_float(npuq_dtype dtype)
{
#define KIND_NUMBER(KIND) KIND,
    enum { EACH_KIND(KIND_NUMBER) };
#undef KIND_NUMBER
#define KIND_OF(NAME, name, row, number, KIND, ...)                                                                    \
    case NPUQ_##NAME: return KIND == FLOAT;

    switch (dtype) {
        EACH_TYPE(KIND_OF)
    }
#undef KIND_OF
    return false;
}

#define NUMBER(name, NAME) NAME
enum slot { EACH_SLOT(NUMBER), SLOTS };
#undef NUMBER

extern const char *const slot_names[SLOTS];

/* The operators that have a diagnosis come first, with the numbers of their bits there. The youngest are the last: the
 * order decides the checksum. */
#define EACH_FUNCTION(DO) EACH_OPERATOR(DO) EACH_IN_C(DO)

#define NUMBER(name, NAME, EXECUTOR) TEST_##NAME,
enum test_operator { EACH_FUNCTION(NUMBER) TEST_OPERATORS };
#undef NUMBER

#define NUMBER(name, NAME, ...) OPTION_##NAME,
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
    int64_t row_block;
    int64_t block;
    float min_scale;
    float dst_type_max;
    int32_t rounding;
    int32_t scale_algorithm;
    int32_t small_groups;
    float max_low_bound;
    int32_t bad_groups;
    npuq_dtype y_dtype; /* of the steps that make parameters */
    const npuq_executor *executor;
} test_call;

npuq_status test_call_run(const test_call *c);

/* Prepares the call without its executor. Only for operators that take an executor. */
npuq_status test_call_prepare(npuq_call *prepared, const test_call *c);

/* Runs the oracle: the functions of src/ref, called with the same arguments. elements: each given tensor's elements in
 * row-major order; null for other slots. */
void test_call_oracle(const test_call *c, void *const elements[SLOTS]);

/* What the rows have of an argument. */
typedef struct test_argument {
    enum { TEST_ABSENT, TEST_REQUIRED, TEST_OPTIONAL, TEST_WRITTEN } presence;
    npuq_shape shape;
    int operand; /* of npuq_call_rebind() */
    int least_ndim;
    int most_ndim;
    size_t count; /* of the types */
    npuq_dtype dtypes[8];
} test_argument;
extern const test_argument test_arguments[TEST_OPERATORS][SLOTS];

bool test_has(enum test_operator op, enum slot slot);
bool test_has_option(enum test_operator op, enum test_option option);
bool test_has_blocks(enum test_operator op);
/* Each row of x belongs to a group of rows. */
bool test_needs_groups(enum test_operator op);
/* y may be written over x. */
bool test_works_in_place(enum test_operator op);
/* Takes x with smooth scales and groups. */
bool test_is_dynamic(enum test_operator op);
/* Makes parameters of ranges; the parameters have the shape of min. */
bool test_takes_ranges_only(enum test_operator op);
/* Takes an executor, and so can be prepared. */
bool test_takes_executor(enum test_operator op);
/* Finds the range of each row: the library divides no row, and cannot prepare the call per tensor. */
bool test_finds_ranges(enum test_operator op);
bool test_is_output(enum test_operator op, enum slot slot);
bool test_is_optional(enum test_operator op, enum slot slot);
#define FOR_EACH_GIVEN(call, SLOT)                                                                                     \
    for (enum slot SLOT = 0; SLOT < SLOTS; SLOT++)                                                                     \
        if ((call)->given[SLOT])
#define FOR_EACH_OUTPUT(call, SLOT)                                                                                    \
    FOR_EACH_GIVEN(call, SLOT)                                                                                         \
    if (test_is_output((call)->op, SLOT))
/* The operand of npuq_call_rebind(), or -1 if the argument cannot be replaced. */
int test_operand_of(enum test_operator op, enum slot slot);

/* Whether to pass the arguments raises a flag, or traps: on x87, that of a subnormal. */
bool test_raises_flags(const test_call *c);

enum { TEST_GROUPS = 6 }; /* at most */

typedef struct test_drawing test_drawing;
struct test_drawing {
    size_t (*choose)(size_t end); /* gives 0 to end - 1 */
    /* Fills the elements of an input; null: test_fill() does. */
    void (*fill)(const test_call *call, enum slot slot, void *elements, npuq_dtype dtype, size_t count);
    /* Adds an argument: test_add_view(), or a function that makes no view and no values. */
    void (*add)(test_drawing *d, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape);
    /* Fills d->shape for d->ndim; the last extent has to be a multiple of `multiple`. */
    void (*draw_shape)(test_drawing *d, int64_t multiple);
    bool all_contiguous;
    bool large;       /* several units of a prepared call */
    bool empty;       /* some extent of x is 0 */
    bool half_floats; /* of the floating-point types FLOAT16 only */
    bool has_shape;   /* the drawing takes ndim and shape below, if the operator accepts ndim */
    int ndim;
    int64_t shape[NPUQ_MAX_NDIM]; /* of x or y, in values */
    test_call call;
    test_view views[SLOTS];    /* of the tensors that are given */
    int64_t ends[TEST_GROUPS]; /* of the groups of rows */
    int64_t groups;
};

/* Adds a view with values. */
void test_add_view(test_drawing *d, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape);

/* Draws types, shape, options, layouts and values for the operator of d->call. The library may refuse a call without
 * elements. */
void test_draw_call(test_drawing *d);
void test_free_drawing(test_drawing *d);
/* Draws until the call has elements. */
void test_draw_elements(test_drawing *d);
/* Draws until the call can be prepared. */
npuq_call test_draw_prepared(test_drawing *d);

/* A drawing of views with random values. */
test_drawing test_undrawn(enum test_operator op);

/* The running case, for messages. */
typedef struct test_case {
    enum test_operator op;
    const char *kind;
    int number;
    const char *way; /* in which the call is made */
} test_case;
extern test_case now;
/* Seeds the source for it, so that each case can be run alone; kind: the number of its kind. A fault ends the program
 * with its name. */
void test_begin_case(size_t kind);
/* "quantize, any 3, backend avx2" */
const char *test_case_name(void);
#define test_check(CONDITION)                                                                                          \
    do {                                                                                                               \
        if (!(CONDITION)) {                                                                                            \
            fail_msg("%s, %s: not so: %s", test_case_name(), now.way, #CONDITION);                                     \
        }                                                                                                              \
    } while (0)

/* 0 to count - 1 in random order. The caller frees them. */
size_t *test_shuffled(size_t count);
/* Rebinds each operand that may be elsewhere to the memory of the call. */
npuq_status test_rebind_all(npuq_call *prepared, const test_call *c);
/* Runs all units. */
void test_run_all(const npuq_call *prepared);
/* Runs ranges of units of any length, the last to somewhere beyond the end, in random order. */
void test_run_chunks(const npuq_call *prepared);

/* All bytes of a drawing's outputs, with the gaps between their elements. */
typedef struct test_outcome {
    unsigned char *bytes[SLOTS];
} test_outcome;

/* The outcome of one direct call. Puts the outputs back. */
test_outcome test_expect_outcome(const test_drawing *d);
void test_free_outcome(test_outcome *outcome);
void test_restore_outputs(const test_drawing *d);
/* The call with other memory for the outputs, with the same bytes as the outputs had. */
typedef struct test_copy {
    test_call call;
    test_outcome outputs;
} test_copy;
test_copy test_copy_call(const test_drawing *d);
void test_free_copy(test_copy *copy);
/* Whether the copy's outputs are as expected. Asserts nothing: any thread may call this function. */
bool test_copy_is(const test_copy *copy, const test_drawing *d, const test_outcome *expected);
/* Fails if outputs differ from expected, or if an input changed; expected is null: if an output changed. Puts the
 * outputs back. */
void test_check_outcome(const test_drawing *d, const test_outcome *expected);

#endif
