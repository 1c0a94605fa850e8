/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of a call's tensors, by the column SHAPE of operators.def. Needs nothing of the library. */
#ifndef NPUQ_SHAPE_H
#define NPUQ_SHAPE_H

#include "operators.def"
#include "types.def"

#include <stdbool.h>
#include <stdint.h>

#define NPUQ_SHAPE_NUMBER(NAME, FIRST, LAST) NPUQ_SHAPE_##NAME,
typedef enum npuq_shape { EACH_SHAPE(NPUQ_SHAPE_NUMBER) } npuq_shape;

/* What decides the shapes of a call. */
typedef struct npuq_shape_facts {
    int ndim;             /* of x */
    const int64_t *shape; /* of x, in values */
    bool per_tensor;
    int axis;          /* from 0 on */
    int64_t block;     /* columns */
    int64_t groups;    /* 0: without */
    int64_t row_block; /* rows */
} npuq_shape_facts;

/* The values in a storage word, which shapes of tensors count. The dtype is its number. */
static inline int64_t npuq_values_in_word(unsigned dtype)
{
#define NPUQ_VALUES(NAME, name, row, number, KIND, bits, log2_elements, ...)                                           \
    case number: return 1 << (log2_elements);

    switch (dtype) {
        EACH_TYPE(NPUQ_VALUES)
    default: return 1;
    }
#undef NPUQ_VALUES
}

static inline int64_t npuq_count_blocks(int64_t extent, int64_t block)
{
    return extent / block + (extent % block != 0);
}

/* Writes the extents of a tensor, in values, and returns how many there are. An x without dimensions is one column. */
static inline int npuq_make_shape(npuq_shape rule, const npuq_shape_facts *call, int64_t *shape)
{
#define NPUQ_SHAPE_PARTS(NAME, FIRST, LAST) {NPUQ_FIRST_##FIRST, NPUQ_LAST_##LAST},
    static const struct {
        enum { NPUQ_FIRST_NONE, NPUQ_FIRST_GROUPS, NPUQ_FIRST_ROWS, NPUQ_FIRST_ROW_BLOCKS, NPUQ_FIRST_PAIRS } first;
        enum {
            NPUQ_LAST_NONE,
            NPUQ_LAST_ONE,
            NPUQ_LAST_PAIR,
            NPUQ_LAST_COLUMNS,
            NPUQ_LAST_BLOCKS,
            NPUQ_LAST_AXIS
        } last;
    } parts[] = {EACH_SHAPE(NPUQ_SHAPE_PARTS)};
    const int64_t columns = call->ndim > 0 ? call->shape[call->ndim - 1] : 1;
    int ndim = 0;

    if (call->per_tensor && rule == NPUQ_SHAPE_OF_ROWS) {
        shape[0] = 1;
        return 1;
    }
    switch (parts[rule].first) {
    case NPUQ_FIRST_NONE: break;
    case NPUQ_FIRST_GROUPS:
        if (call->groups > 0) {
            shape[ndim++] = call->groups;
        }
        break;
    case NPUQ_FIRST_ROWS:
        if (call->ndim == 0) {
            return 0;
        }
        for (; ndim < call->ndim - 1; ndim++) {
            shape[ndim] = call->shape[ndim];
        }
        break;
    case NPUQ_FIRST_ROW_BLOCKS:
        for (; ndim < call->ndim - 1; ndim++) {
            const int64_t extent = call->shape[ndim];

            shape[ndim] = ndim == call->ndim - 2 ? npuq_count_blocks(extent, call->row_block) : extent;
        }
        break;
    case NPUQ_FIRST_PAIRS:
        for (; ndim < call->ndim; ndim++) {
            const int64_t extent = call->shape[ndim];

            shape[ndim] = ndim == call->axis ? npuq_count_blocks(npuq_count_blocks(extent, call->block), 2) : extent;
        }
    }
    switch (parts[rule].last) {
    case NPUQ_LAST_NONE: break;
    case NPUQ_LAST_ONE: shape[ndim++] = 1; break;
    case NPUQ_LAST_PAIR: shape[ndim++] = 2; break;
    case NPUQ_LAST_COLUMNS: shape[ndim++] = columns; break;
    case NPUQ_LAST_BLOCKS: shape[ndim++] = npuq_count_blocks(columns, call->block); break;
    case NPUQ_LAST_AXIS: shape[ndim++] = call->shape[call->axis]; break;
    }
    return ndim;
}

#endif
