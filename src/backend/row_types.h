/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of x and of y, as the table of row kernels is indexed: floating-point x is quantised to integers, integer x
 * dequantised to floating point, int32 also requantised to int8. DO(NAME, name, bits, dtype). */
#ifndef NPUQ_ROW_TYPES_H
#define NPUQ_ROW_TYPES_H

/* clang-format off */
#define NPUQ_EACH_X_TYPE(DO)                                                                                           \
    DO(F32, f32, 32, FLOAT32) DO(F16, f16, 16, FLOAT16) DO(BF16, bf16, 16, BFLOAT16)                                   \
    DO(I8, i8, 8, INT8) DO(I4, i4, 4, QUINT4X2) DO(I32, i32, 32, INT32)
#define NPUQ_EACH_Y_TYPE(DO)                                                                                           \
    DO(I8, i8, 8, INT8) DO(U8, u8, 8, UINT8) DO(I32, i32, 32, INT32) DO(I4, i4, 4, QUINT4X2)                           \
    DO(F32, f32, 32, FLOAT32) DO(F16, f16, 16, FLOAT16) DO(BF16, bf16, 16, BFLOAT16)
/* clang-format on */
#define NPUQ_X_TYPE(NAME, ...) NPUQ_X_##NAME,
#define NPUQ_Y_TYPE(NAME, ...) NPUQ_Y_##NAME,
typedef enum npuq_x_type { NPUQ_EACH_X_TYPE(NPUQ_X_TYPE) } npuq_x_type;
typedef enum npuq_y_type { NPUQ_EACH_Y_TYPE(NPUQ_Y_TYPE) } npuq_y_type;

#endif
