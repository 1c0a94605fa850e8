/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one list of row kernels. A backend defines static functions by these names, with NPUQ_EACH_AFFINE and its like
 * to write them once for all types, and closes with NPUQ_ROW_TABLE.
 */
#ifndef NPUQ_ROW_TABLE_H
#define NPUQ_ROW_TABLE_H

#include "row_contract.h"

/* clang-format off: a table of macros */

/* DO(name, Y, X, OP) for every kernel that quantises without smooth scales, by NPUQ_Y_<Y> and so on: int4 is not
 * divided to, uint8 and int32 are nothing else */
#define NPUQ_EACH_FLOAT_X(DO, y, Y, op, OP)                                                                            \
    DO(y##_f32_##op, Y, F32, OP) DO(y##_f16_##op, Y, F16, OP) DO(y##_bf16_##op, Y, BF16, OP)
#define NPUQ_EACH_AFFINE(DO)                                                                                           \
    NPUQ_EACH_FLOAT_X(DO, i8, I8, multiply, MUL)                                                                       \
    NPUQ_EACH_FLOAT_X(DO, i4, I4, multiply, MUL)                                                                       \
    NPUQ_EACH_FLOAT_X(DO, i8, I8, divide, DIV)                                                                         \
    NPUQ_EACH_FLOAT_X(DO, u8, U8, divide, DIV) NPUQ_EACH_FLOAT_X(DO, i32, I32, divide, DIV)

/* DO(name, Y, X) for the outputs of dynamic quantisation */
#define NPUQ_EACH_SMOOTH(DO)                                                                                           \
    DO(i8_f32, I8, F32)                                                                                                \
    DO(i8_f16, I8, F16) DO(i8_bf16, I8, BF16) DO(i4_f32, I4, F32) DO(i4_f16, I4, F16) DO(i4_bf16, I4, BF16)

/* DO(name, X) */
#define NPUQ_EACH_RANGE(DO) DO(f32, F32) DO(f16, F16) DO(bf16, BF16)

/* DO(name, Y, X) for what comes from integers */
#define NPUQ_EACH_INTEGER_X(DO, y, Y) DO(y##_i8, Y, I8) DO(y##_i4, Y, I4) DO(y##_i32, Y, I32)
#define NPUQ_EACH_DEQUANT(DO)                                                                                          \
    NPUQ_EACH_INTEGER_X(DO, f32, F32)                                                                                  \
    NPUQ_EACH_INTEGER_X(DO, f16, F16) NPUQ_EACH_INTEGER_X(DO, bf16, BF16) DO(i8_i32, I8, I32)

/* DO(name, P) for the parameters that are widened */
#define NPUQ_EACH_PARAMETER(DO) DO(f16, F16) DO(bf16, BF16) DO(i8, I8) DO(u8, U8) DO(i32, I32)

#define NPUQ_AFFINE_ENTRY(name, Y, X, OP)                                                                              \
    .affine_uniform[NPUQ_##OP][NPUQ_Y_##Y][NPUQ_X_##X] = uniform_##name,                                               \
    .affine_vector[NPUQ_##OP][NPUQ_Y_##Y][NPUQ_X_##X] = vector_##name,
#define NPUQ_SMOOTH_ENTRY(name, Y, X)  .smooth_affine[NPUQ_Y_##Y][NPUQ_X_##X] = smooth_##name,
#define NPUQ_RANGE_ENTRY(name, X)      .range[NPUQ_X_##X] = range_##name,
#define NPUQ_DEQUANT_ENTRY(name, Y, X) .dequant[NPUQ_Y_##Y][NPUQ_X_##X] = dequant_##name,
#define NPUQ_WIDEN_ENTRY(name, P)      .widen[NPUQ_P_##P] = widen_##name,

#define NPUQ_ROW_TABLE                                                                                                 \
    {                                                                                                                  \
        NPUQ_EACH_AFFINE(NPUQ_AFFINE_ENTRY)                                                                            \
        NPUQ_EACH_SMOOTH(NPUQ_SMOOTH_ENTRY)                                                                            \
        NPUQ_EACH_RANGE(NPUQ_RANGE_ENTRY)                                                                              \
        NPUQ_EACH_DEQUANT(NPUQ_DEQUANT_ENTRY)                                                                          \
        NPUQ_EACH_PARAMETER(NPUQ_WIDEN_ENTRY).short_rows = short_rows, .parameters = dynamic_parameters, .pack = pack, \
        .unpack = unpack, .word_bits = word_bits, .spread = spread, .stream_end = stream_end                           \
    }

/* clang-format on */

#define NPUQ_ZERO(...) 0,
_Static_assert(sizeof((char[]){NPUQ_EACH_RANGE(NPUQ_ZERO)}) == NPUQ_X_FLOATS, "every floating-point x has a range");
_Static_assert(sizeof((char[]){NPUQ_EACH_PARAMETER(NPUQ_ZERO)}) == NPUQ_P_WIDENED,
               "every parameter that is widened has a kernel");
#undef NPUQ_ZERO

#endif
