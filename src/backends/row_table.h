/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one list of row kernels, which numbers them (row.h). A backend defines NPUQ_KERNEL, which adds its suffix, and
 * static functions by these names: NPUQ_EACH_PRODUCT and its like write them once for all types. NPUQ_ROW_TABLE is
 * their table.
 */
#ifndef NPUQ_ROW_TABLE_H
#define NPUQ_ROW_TABLE_H

/* clang-format off: a table of macros */

/* DO(name, Y, X) for every kernel that quantises, by NPUQ_TYPE_<Y> and NPUQ_TYPE_<X>: by a product, and by division. */
#define NPUQ_EACH_FLOAT_X(DO, y, Y)                                                                                    \
    DO(y##_from_f32, Y, FLOAT32) DO(y##_from_f16, Y, FLOAT16) DO(y##_from_bf16, Y, BFLOAT16)
#define NPUQ_EACH_PRODUCT(DO) NPUQ_EACH_FLOAT_X(DO, i8, INT8) NPUQ_EACH_FLOAT_X(DO, i4, QUINT4X2)
#define NPUQ_EACH_QUOTIENT(DO)                                                                                         \
    NPUQ_EACH_FLOAT_X(DO, i8, INT8) NPUQ_EACH_FLOAT_X(DO, u8, UINT8) NPUQ_EACH_FLOAT_X(DO, i32, INT32)

/* DO(name, X) */
#define NPUQ_EACH_RANGE(DO) DO(f32, FLOAT32) DO(f16, FLOAT16) DO(bf16, BFLOAT16)

/* DO(name, Y, X) for what comes from integers; TO_BF16(name, Y, X) for what becomes bfloat16 */
#define NPUQ_EACH_INTEGER_X(DO, y, Y) DO(y##_from_i8, Y, INT8) DO(y##_from_i4, Y, QUINT4X2) DO(y##_from_i32, Y, INT32)
#define NPUQ_EACH_DEQUANT(DO, TO_BF16)                                                                                 \
    NPUQ_EACH_INTEGER_X(DO, f32, FLOAT32)                                                                              \
    NPUQ_EACH_INTEGER_X(DO, f16, FLOAT16) NPUQ_EACH_INTEGER_X(TO_BF16, bf16, BFLOAT16) DO(i8_from_i32, INT8, INT32)

/* DO(name, P) for the parameters that are widened */
#define NPUQ_EACH_PARAMETER(DO) DO(f16, FLOAT16) DO(bf16, BFLOAT16) DO(i8, INT8) DO(u8, UINT8) DO(i32, INT32)

#define NPUQ_PRODUCT_ENTRY(name, Y, X)  .rows[NPUQ_PRODUCT_##name] = NPUQ_KERNEL(multiply, name),
#define NPUQ_QUOTIENT_ENTRY(name, Y, X) .rows[NPUQ_QUOTIENT_##name] = NPUQ_KERNEL(divide, name),
#define NPUQ_RANGE_ENTRY(name, X)       .range[NPUQ_RANGE_##name] = NPUQ_KERNEL(find, range_from_##name),
#define NPUQ_DEQUANT_ENTRY(name, Y, X)  .rows[NPUQ_DEQUANT_##name] = NPUQ_KERNEL(dequantise, name),
#define NPUQ_CONVERT_ENTRY(name, Y, X)  .rows[NPUQ_DEQUANT_##name] = NPUQ_KERNEL(convert, name),
#define NPUQ_WIDEN_ENTRY(name, P)       .widen[NPUQ_WIDEN_##name] = NPUQ_KERNEL(widen, f32_from_##name),
#define NPUQ_RUN_MAGNITUDES_ENTRY(name, X)                                                                             \
    .run_magnitudes[NPUQ_RANGE_##name] = NPUQ_KERNEL(find, run_magnitudes_of_##name),

#define NPUQ_ROW_TABLE NPUQ_ROW_TABLE_WITH(NPUQ_DEQUANT_ENTRY)
#define NPUQ_ROW_TABLE_WITH(TO_BF16_ENTRY)                                                                             \
    {                                                                                                                  \
        NPUQ_EACH_PRODUCT(NPUQ_PRODUCT_ENTRY)                                                                          \
        NPUQ_EACH_QUOTIENT(NPUQ_QUOTIENT_ENTRY)                                                                        \
        NPUQ_EACH_RANGE(NPUQ_RANGE_ENTRY)                                                                              \
        NPUQ_EACH_RANGE(NPUQ_RUN_MAGNITUDES_ENTRY)                                                                     \
        NPUQ_EACH_DEQUANT(NPUQ_DEQUANT_ENTRY, TO_BF16_ENTRY)                                                           \
        NPUQ_EACH_PARAMETER(NPUQ_WIDEN_ENTRY).short_rows = NPUQ_KERNEL(find, short_ranges),                            \
        .parameters = NPUQ_KERNEL(compute, scales), .pack = NPUQ_KERNEL(pack, quant_params),                           \
        .unpack = NPUQ_KERNEL(unpack, quant_params), .word_bits = NPUQ_KERNEL(find, word_bits),                        \
        .spread = NPUQ_KERNEL(spread, values), .fence_stores = fence_stores, .takes_any_columns = !AT_RUN_TIME         \
    }

/* clang-format on */

#endif
