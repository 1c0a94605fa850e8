/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one list of row kernels. A backend defines static functions by these names, with NPUQ_EACH_AFFINE and its like
 * to write them once for all types, and closes with NPUQ_ROW_TABLE.
 */
#ifndef NPUQ_ROW_TABLE_H
#define NPUQ_ROW_TABLE_H

#include "row.h"

/* clang-format off: a table of macros */

/* DO(name, y, x, op) for every kernel that quantises without smooth scales: int4 is not divided to, uint8 and int32 are
 * nothing else */
#define NPUQ_EACH_X(DO, Y, OP) DO(Y##_f32_##OP, Y, f32, OP) DO(Y##_f16_##OP, Y, f16, OP) DO(Y##_bf16_##OP, Y, bf16, OP)
#define NPUQ_EACH_AFFINE(DO)                                                                                           \
    NPUQ_EACH_X(DO, i8, multiply)                                                                                      \
    NPUQ_EACH_X(DO, i8, divide) NPUQ_EACH_X(DO, u8, divide) NPUQ_EACH_X(DO, i32, divide) NPUQ_EACH_X(DO, i4, multiply)

/* DO(name, y, x) for the outputs of dynamic quantisation */
#define NPUQ_EACH_SMOOTH(DO)                                                                                           \
    DO(i8_f32, i8, f32)                                                                                                \
    DO(i8_f16, i8, f16) DO(i8_bf16, i8, bf16) DO(i4_f32, i4, f32) DO(i4_f16, i4, f16) DO(i4_bf16, i4, bf16)

/* DO(x) */
#define NPUQ_EACH_RANGE(DO) DO(f32) DO(f16) DO(bf16)

/* DO(name, y, x) for what comes from integers */
#define NPUQ_EACH_INTEGER_X(DO, Y) DO(Y##_i8, Y, i8) DO(Y##_i4, Y, i4) DO(Y##_i32, Y, i32)
#define NPUQ_EACH_DEQUANT(DO)                                                                                          \
    NPUQ_EACH_INTEGER_X(DO, f32) NPUQ_EACH_INTEGER_X(DO, f16) NPUQ_EACH_INTEGER_X(DO, bf16) DO(i8_i32, i8, i32)

/* DO(parameter) for the types that are widened */
#define NPUQ_EACH_PARAMETER(DO) DO(f16) DO(bf16) DO(i8) DO(u8) DO(i32)

#define NPUQ_ALL_X(KIND, OP)                                                                                           \
    {                                                                                                                  \
        KIND##_f32_##OP, KIND##_f16_##OP, KIND##_bf16_##OP                                                             \
    }
#define NPUQ_ALL_Y(KIND)                                                                                               \
    {                                                                                                                  \
        [NPUQ_MUL] = {[NPUQ_Y_I8] = NPUQ_ALL_X(KIND##i8, multiply), [NPUQ_Y_I4] = NPUQ_ALL_X(KIND##i4, multiply)},     \
        [NPUQ_DIV] = {[NPUQ_Y_I8] = NPUQ_ALL_X(KIND##i8, divide),                                                      \
                      [NPUQ_Y_U8] = NPUQ_ALL_X(KIND##u8, divide),                                                      \
                      [NPUQ_Y_I32] = NPUQ_ALL_X(KIND##i32, divide)},                                                   \
    }

#define NPUQ_INTEGER_X(Y)                                                                                              \
    {                                                                                                                  \
        [NPUQ_X_I8] = dequant_##Y##_i8, [NPUQ_X_I4] = dequant_##Y##_i4, [NPUQ_X_I32] = dequant_##Y##_i32               \
    }

#define NPUQ_ROW_TABLE                                                                                                 \
    {                                                                                                                  \
        .affine_uniform = NPUQ_ALL_Y(uniform_), .affine_vector = NPUQ_ALL_Y(vector_),                                  \
        .range = {range_f32, range_f16, range_bf16}, .short_rows = short_rows, .parameters = dynamic_parameters,       \
        .smooth_affine = {[NPUQ_Y_I8] = {smooth_i8_f32, smooth_i8_f16, smooth_i8_bf16},                                \
                          [NPUQ_Y_I4] = {smooth_i4_f32, smooth_i4_f16, smooth_i4_bf16}},                               \
        .dequant = {[NPUQ_Y_F32] = NPUQ_INTEGER_X(f32),                                                                \
                    [NPUQ_Y_F16] = NPUQ_INTEGER_X(f16),                                                                \
                    [NPUQ_Y_BF16] = NPUQ_INTEGER_X(bf16),                                                              \
                    [NPUQ_Y_I8] = {[NPUQ_X_I32] = dequant_i8_i32}},                                                    \
        .pack = pack, .unpack = unpack, .spread = spread, .stream_end = stream_end,                                    \
        .widen = {[NPUQ_P_F16] = widen_f16,                                                                            \
                  [NPUQ_P_BF16] = widen_bf16,                                                                          \
                  [NPUQ_P_I8] = widen_i8,                                                                              \
                  [NPUQ_P_U8] = widen_u8,                                                                              \
                  [NPUQ_P_I32] = widen_i32},                                                                           \
    }

/* clang-format on */

#endif
