/* SPDX-License-Identifier: BSD-3-Clause */
/* The one list of dtypes, and what the library asks of one. */
#ifndef NPUQ_DTYPE_H
#define NPUQ_DTYPE_H

#include "../backend/row.h"

#include <assert.h>

/* DO(NAME, size, log2_pack, x, y, parameter): bytes of the step that shape and strides count, the logarithm of the
 * elements in one, and the index of the dtype in the kernels' tables as x, as y and as a parameter. */
#define NPUQ_EACH_DTYPE(DO)                                                                                            \
    DO(FLOAT32, 4, 0, NPUQ_X_F32, NPUQ_Y_F32, NPUQ_P_F32)                                                              \
    DO(FLOAT16, 2, 0, NPUQ_X_F16, NPUQ_Y_F16, NPUQ_P_F16)                                                              \
    DO(BFLOAT16, 2, 0, NPUQ_X_BF16, NPUQ_Y_BF16, NPUQ_P_BF16)                                                          \
    DO(INT8, 1, 0, NPUQ_X_I8, NPUQ_Y_I8, NPUQ_P_I8)                                                                    \
    DO(UINT8, 1, 0, NPUQ_NO_INDEX, NPUQ_Y_U8, NPUQ_P_U8)                                                               \
    DO(INT32, 4, 0, NPUQ_X_I32, NPUQ_Y_I32, NPUQ_P_I32)                                                                \
    DO(INT64, 8, 0, NPUQ_NO_INDEX, NPUQ_NO_INDEX, NPUQ_P_WORD)                                                         \
    DO(UINT64, 8, 0, NPUQ_NO_INDEX, NPUQ_NO_INDEX, NPUQ_P_WORD)                                                        \
    DO(QUINT4X2, 4, 3, NPUQ_X_I4, NPUQ_Y_I4, NPUQ_NO_INDEX)

enum { NPUQ_NO_INDEX = -1 };

/* Position in the list, from 1; 0 is an unknown dtype. */
#define NPUQ_POSITION(NAME, ...) NPUQ_POSITION_##NAME,
enum { NPUQ_POSITION_UNKNOWN, NPUQ_EACH_DTYPE(NPUQ_POSITION) NPUQ_POSITIONS };
#undef NPUQ_POSITION
_Static_assert(NPUQ_POSITIONS <= 32, "a set of dtypes has one bit for each");

/* Sets of dtypes, as an argument declares what it takes. */
#define NPUQ_TAKES(NAME, ...) NPUQ_TAKES_##NAME = 1 << NPUQ_POSITION_##NAME,
enum {
    NPUQ_EACH_DTYPE(NPUQ_TAKES) NPUQ_TAKES_FLOATS = NPUQ_TAKES_FLOAT32 | NPUQ_TAKES_FLOAT16 | NPUQ_TAKES_BFLOAT16,
    NPUQ_TAKES_INDICES = NPUQ_TAKES_INT32 | NPUQ_TAKES_INT64,
    NPUQ_TAKES_WORDS = NPUQ_TAKES_INT64 | NPUQ_TAKES_UINT64
};
#undef NPUQ_TAKES

/* What shape and strides count: an element, or a word of int4. */
typedef struct npuq_step {
    uint8_t size; /* bytes, a power of 2; 0 for an unknown dtype */
    uint8_t log2_pack;
} npuq_step;

typedef struct npuq_dtype_info {
    const char *name; /* "FLOAT32" */
    uint32_t set;     /* NPUQ_TAKES_...; 0 for an unknown dtype */
    npuq_step step;
    int16_t x; /* npuq_x_type or NPUQ_NO_INDEX; and so on */
    int16_t y;
    int16_t parameter;
} npuq_dtype_info;

enum { NPUQ_DTYPE_NUMBERS = NPUQ_QUINT4X2 + 1 }; /* the largest number, and one */
extern const uint8_t npuq_dtype_positions[NPUQ_DTYPE_NUMBERS];
extern const npuq_dtype_info npuq_dtype_infos[NPUQ_POSITIONS];

/* Of an unknown dtype, too. Each argument of each call is looked up: without a search. */
static inline const npuq_dtype_info *npuq_find_dtype(npuq_dtype dtype)
{
    const unsigned number = (unsigned)dtype;

    return &npuq_dtype_infos[number < NPUQ_DTYPE_NUMBERS ? npuq_dtype_positions[number] : NPUQ_POSITION_UNKNOWN];
}

/* How many steps columns are, a multiple of the elements in one. */
static inline size_t npuq_count_steps(npuq_step step, size_t columns)
{
    return columns >> step.log2_pack;
}

static inline size_t npuq_count_bytes(npuq_step step, size_t columns)
{
    return npuq_count_steps(step, columns) * step.size;
}

/* How the kernels call a dtype that an operator has checked. */
static inline npuq_x_type npuq_find_x_type(const npuq_dtype_info *info)
{
    const int x = info->x;

    assert(x != NPUQ_NO_INDEX);
    return (npuq_x_type)x;
}

static inline npuq_y_type npuq_find_y_type(const npuq_dtype_info *info)
{
    const int y = info->y;

    assert(y != NPUQ_NO_INDEX);
    return (npuq_y_type)y;
}

static inline npuq_p_type npuq_find_parameter_type(const npuq_dtype_info *info)
{
    const int parameter = info->parameter;

    assert(parameter != NPUQ_NO_INDEX);
    return (npuq_p_type)parameter;
}

#endif
