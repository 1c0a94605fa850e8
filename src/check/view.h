/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensors as arguments: what all operators check of them, in one place. Knows no arithmetic. */
#ifndef NPUQ_VIEW_H
#define NPUQ_VIEW_H

#include "../inline.h"
#include "../shape.h"
#include "../status.h"
#include "../type.h"
#include "overlap.h"

#include <string.h>

/* One tensor argument of an operator, and its limits by itself. */
typedef struct npuq_argument {
    const char *name; /* null: a place without an argument */
    uint32_t dtypes;  /* a NPUQ_SET() */
    int min_ndim;
    int max_ndim;
    /* NPUQ_X: the input that is computed on. NPUQ_X_UNDER_Y: the same; y may be written over it, if both have one view
     * and elements of one size. */
    enum { NPUQ_X, NPUQ_X_UNDER_Y, NPUQ_INPUT, NPUQ_OPTIONAL_INPUT, NPUQ_OUTPUT } role;
    int operand; /* npuq_operand, by which a prepared call rebinds it, or NPUQ_FIXED */
    npuq_shape shape;
} npuq_argument;

enum { NPUQ_MOST_ARGUMENTS = 8, NPUQ_FIXED = -1 };

/* Arguments, tensors and a plan's operands have this order: x, y, others. A group_index is last, and no operand. */
enum { NPUQ_AT_X, NPUQ_AT_Y, NPUQ_AFTER_Y };
typedef struct npuq_signature {
    const char *op;
    size_t count;                       /* of places: the last one has an argument */
    const struct npuq_signature *other; /* where an option decides dtypes or ranks: what they are by its other value */
    const char *mode;                   /* which messages then give as the reason, such as ", as div_mode is true" */
    npuq_argument arguments[NPUQ_MOST_ARGUMENTS];
} npuq_signature;

static inline bool npuq_may_be_absent(const npuq_argument *a)
{
    return a->role == NPUQ_OPTIONAL_INPUT || !a->name;
}

/* Rows of operators.def as arguments. The file that has them defines NPUQ_PLACE(ROLE), where arguments stand by their
 * roles. The build refuses two in one place. */
#define NPUQ_ARGUMENT(name, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND, KIND)                                            \
    [NPUQ_PLACE(ROLE)] = {#name, NPUQ_SET(TYPES), LEAST, MOST, NPUQ_##KIND, NPUQ_##REBOUND, NPUQ_SHAPE_##SHAPE},
#define NPUQ_ARGUMENT_DATA(name, NAME, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND, KIND, npu_name)                       \
    NPUQ_ARGUMENT(name, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND, KIND)
#define NPUQ_ARGUMENT_IN(name, NAME, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND)                                         \
    NPUQ_ARGUMENT(name, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND, INPUT)
#define NPUQ_ARGUMENT_OPTIONAL(name, NAME, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND)                                   \
    NPUQ_ARGUMENT(name, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND, OPTIONAL_INPUT)
#define NPUQ_ARGUMENT_OUT(name, NAME, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND)                                        \
    NPUQ_ARGUMENT(name, ROLE, TYPES, SHAPE, LEAST, MOST, REBOUND, OUTPUT)
#define NPUQ_NO_ARGUMENT(name, NAME, type)
#define NPUQ_ARGUMENTS(name)                                                                                           \
    {                                                                                                                  \
        ARGUMENTS_##name(NPUQ_ARGUMENT_DATA, NPUQ_ARGUMENT_IN, NPUQ_ARGUMENT_OPTIONAL, NPUQ_ARGUMENT_OUT,              \
                         NPUQ_NO_ARGUMENT)                                                                             \
    }
#define NPUQ_SIGNATURE_OF(op, name, OTHER, MODE)                                                                       \
    {                                                                                                                  \
        op, sizeof(const npuq_argument[]) NPUQ_ARGUMENTS(name) / sizeof(npuq_argument), OTHER, MODE,                   \
            NPUQ_ARGUMENTS(name)                                                                                       \
    }
#define NPUQ_SIGNATURE(name) NPUQ_SIGNATURE_OF(#name, name, NULL, "")

/* The arguments of one call, and what the checks found. Sets of arguments have bit i for argument i. */
typedef struct npuq_arguments {
    const npuq_signature *signature;
    const npuq_tensor *const *tensors; /* in the signature's order; null: absent */
    unsigned present;
    unsigned dense;                                   /* present, aligned, not empty, row-major without gaps */
    unsigned used;                                    /* with elements; known after npuq_check_layouts(), as spans */
    const npuq_type_info *infos[NPUQ_MOST_ARGUMENTS]; /* of those present; of an absent y an unknown dtype's */
    npuq_span spans[NPUQ_MOST_ARGUMENTS];             /* of those used */
    int64_t counts[NPUQ_AFTER_Y];                     /* of x and y, if dense: steps, as shape counts them */
    int64_t small; /* the most elements of a call that is one unit; 0 if it is prepared */
    bool has_executor;
    bool is_y_like_x; /* y has the shape of x, in steps; else that is not known */
} npuq_arguments;

#define NPUQ_LARGEST_OBJECT (sizeof(void *) < 8 ? (int64_t)PTRDIFF_MAX : (int64_t)1 << 57)

/* The steps of a tensor of at most NPUQ_MAX_NDIM dimensions; 0 if there are none, or gaps between them. */
static inline int64_t npuq_count_dense(const npuq_tensor *tensor)
{
    int64_t count = 1;

    for (int d = tensor->ndim - 1; d >= 0; d--) {
        const int64_t extent = tensor->shape[d];

        if (extent == 1) { /* whatever its stride */
            continue;
        }
        if (extent < 1 || tensor->strides[d] != count || __builtin_mul_overflow(count, extent, &count)) {
            return 0;
        }
    }
    return count <= NPUQ_LARGEST_OBJECT / 8 ? count : 0;
}

/* Sets the bytes of a dense tensor. Returns false where it has none, or is not aligned. */
static inline bool npuq_find_dense_span(const npuq_tensor *tensor, int64_t count, size_t size, npuq_span *span)
{
    const uintptr_t first = (uintptr_t)tensor->data;
    const uintptr_t last = first + ((uintptr_t)count * size - 1);

    *span = (npuq_span){first, last, size};
    return (first & (size - 1)) == 0 && first - 1 < last; /* finds a count of 0, null, and what wraps round, too */
}

/* Whether two tensors have one shape and the same strides, as x and y of most calls. */
static inline bool npuq_are_laid_out_alike(const npuq_tensor *a, const npuq_tensor *b)
{
    if (a->ndim != b->ndim) {
        return false;
    }
#pragma GCC unroll 1
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] != b->shape[d] || a->strides[d] != b->strides[d]) {
            return false;
        }
    }
    return true;
}

/* The fast pass of npuq_check_arguments() and npuq_check_layouts(): whether every argument is dense, and each output
 * lies apart from all others. Most calls pass, at a fraction of the cost. If not, *arguments is invalid. */
static inline NPUQ_INLINED bool npuq_check_dense_fast(npuq_arguments *arguments, const npuq_signature *signature,
                                                      const npuq_tensor *const *tensors)
{
    npuq_span spans[NPUQ_MOST_ARGUMENTS]; /* which stay in registers */
    unsigned present = 0;
    bool is_y_like_x = false;

#pragma GCC unroll 8
    for (size_t i = 0; i < signature->count; i++) {
        const npuq_argument *a = &signature->arguments[i];
        const npuq_tensor *tensor = tensors[i];

        if (!tensor) {
            if (!npuq_may_be_absent(a)) {
                return false;
            }
            spans[i] = (npuq_span){UINTPTR_MAX, 0, 0}; /* meets no other */
            if (i == NPUQ_AT_Y) {
                arguments->infos[i] = npuq_type_infos;
            }
            continue;
        }
        const npuq_type_info *info = npuq_find_type(tensor->dtype);

        if ((info->set & a->dtypes) == 0 || tensor->ndim < a->min_ndim || tensor->ndim > a->max_ndim) {
            return false;
        }
        is_y_like_x = i == NPUQ_AT_Y ? npuq_are_laid_out_alike(tensors[NPUQ_AT_X], tensor) : is_y_like_x;
        const int64_t count = i == NPUQ_AT_Y && is_y_like_x ? arguments->counts[NPUQ_AT_X] : npuq_count_dense(tensor);

        if (!npuq_find_dense_span(tensor, count, info->word.size, &spans[i])) {
            return false;
        }
        if (i <= NPUQ_AT_Y) {
            arguments->counts[i] = count;
        }
        present |= 1u << i;
        arguments->infos[i] = info;
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < signature->count; i++) {
        if (signature->arguments[i].role != NPUQ_OUTPUT) {
            continue;
        }
#pragma GCC unroll 8
        for (size_t j = 0; j < signature->count; j++) {
            const bool pair_seen = signature->arguments[j].role == NPUQ_OUTPUT && j >= i;
            const npuq_span *a = &spans[i];
            const npuq_span *b = &spans[j];

            if (signature->arguments[j].role == NPUQ_X_UNDER_Y && a->first == b->first && a->element == b->element) {
                continue; /* dense, and of one shape, as will be checked */
            }
            if (!pair_seen && npuq_spans_meet(a, b)) {
                return false;
            }
        }
    }
    arguments->signature = signature;
    arguments->tensors = tensors;
    arguments->present = present;
    arguments->dense = present;
    arguments->is_y_like_x = is_y_like_x;
    return true;
}

/* Each argument by itself: present, a dtype it takes, rank, no negative extent. The first check: sets *arguments. */
npuq_status npuq_check_arguments(npuq_arguments *arguments, const npuq_signature *signature,
                                 const npuq_tensor *const *tensors);

/* Checks the memory of all arguments: data present and aligned, every element addressable, x not one repeated element,
 * no output overlapping itself or another argument. The last check, after the shapes. */
npuq_status npuq_check_layouts(npuq_arguments *arguments);

npuq_status npuq_fail_dtype(const char *op, const npuq_argument *a, npuq_dtype dtype, const char *reason);
npuq_status npuq_fail_shape(const npuq_arguments *arguments, int i, int ndim, const int64_t *shape, const char *rule);
npuq_status npuq_fail_same_dtype(const npuq_arguments *arguments, int i, int like);

/* Argument i, unless it is absent, has exactly this shape; the message names the rule. */
static inline npuq_status npuq_check_shape(const npuq_arguments *arguments, int i, int ndim, const int64_t *shape,
                                           const char *rule)
{
    const npuq_tensor *tensor = arguments->tensors[i];
    bool same = !tensor || tensor->ndim == ndim;

    for (int d = 0; tensor && same && d < ndim; d++) {
        same = tensor->shape[d] == shape[d];
    }
    return same ? NPUQ_OK : npuq_fail_shape(arguments, i, ndim, shape, rule);
}

/* Argument i, unless it is absent, has the shape by the rule of its row. The rule stands here as a constant: a call has
 * no time to look it up. */
static inline NPUQ_INLINED npuq_status npuq_check_shape_by(const npuq_arguments *arguments, int i, npuq_shape rule,
                                                           const npuq_shape_facts *call, const char *words)
{
    int64_t shape[NPUQ_MAX_NDIM];

    assert(rule == arguments->signature->arguments[i].shape);
    return npuq_check_shape(arguments, i, npuq_make_shape(rule, call, shape), shape, words);
}

/* Argument i, unless it is absent, has the dtype of argument `like`. */
static inline npuq_status npuq_check_same_dtype(const npuq_arguments *arguments, int i, int like)
{
    const npuq_tensor *tensor = arguments->tensors[i];

    return !tensor || tensor->dtype == arguments->tensors[like]->dtype ? NPUQ_OK
                                                                       : npuq_fail_same_dtype(arguments, i, like);
}

/* Argument i, unless it is absent, has an element for each row of x. Its shape is that of x without the last dimension,
 * or with a last dimension of 1. rules has the words for both shapes. */
static inline npuq_status npuq_check_row_shape(const npuq_arguments *arguments, int i, const char *const rules[2])
{
    const npuq_tensor *x = arguments->tensors[NPUQ_AT_X];
    const npuq_tensor *tensor = arguments->tensors[i];
    int64_t shape[NPUQ_MAX_NDIM];

    if (!tensor || tensor->ndim != x->ndim) {
        return npuq_check_shape(arguments, i, x->ndim - 1, x->shape, rules[0]);
    }
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = 1;
    return npuq_check_shape(arguments, i, x->ndim, shape, rules[1]);
}

npuq_status npuq_check_packed_shape(const npuq_arguments *arguments, int x, int y);

/* y has x's shape, but where y's type has several elements in a word, the last extent counts words. */
static inline npuq_status npuq_check_output_shape(const npuq_arguments *arguments, int x, int y)
{
    const npuq_tensor *from = arguments->tensors[x];

    if (arguments->infos[y]->word.log2_elements > 0) {
        return npuq_check_packed_shape(arguments, x, y);
    }
    return arguments->is_y_like_x ? NPUQ_OK : npuq_check_shape(arguments, y, from->ndim, from->shape, "the shape of x");
}

/* y has x's shape, but where x's type has several elements in a word, the last extent counts elements. */
npuq_status npuq_check_unpacked_shape(const npuq_arguments *arguments, int x, int y);

/* Memory that has elements of this size is present and aligned. */
npuq_status npuq_check_data(const char *op, const char *name, const void *data, size_t size);

npuq_status npuq_fail_executor(const char *op);

static inline const char *npuq_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static inline bool npuq_are_dense(const npuq_arguments *arguments)
{
    return arguments->dense == arguments->present;
}

/* Steps, as shape counts them, of a tensor that passed npuq_check_layouts(). */
int64_t npuq_count_elements(const npuq_tensor *tensor);

#endif
