/* SPDX-License-Identifier: BSD-3-Clause */
/* A backend defines NPUQ_KERNEL, which adds its suffix, and static functions by these names: NPUQ_EACH_PRODUCT and its
 * like of row.h write them once for all types. NPUQ_ROW_TABLE is their table. */
#ifndef NPUQ_ROW_TABLE_H
#define NPUQ_ROW_TABLE_H

#include "row_contract.h"

/* clang-format off: a table of macros */

#define NPUQ_PRODUCT_ENTRY(name, Y, X)  .rows[NPUQ_PRODUCT_##name] = NPUQ_KERNEL(multiply, name),
#define NPUQ_QUOTIENT_ENTRY(name, Y, X) .rows[NPUQ_QUOTIENT_##name] = NPUQ_KERNEL(divide, name),
#define NPUQ_RANGE_ENTRY(name, X)       .range[NPUQ_RANGE_##name] = NPUQ_KERNEL(find, range_from_##name),
#define NPUQ_DEQUANT_ENTRY(name, Y, X)  .rows[NPUQ_DEQUANT_##name] = NPUQ_KERNEL(dequantise, name),
#define NPUQ_CONVERT_ENTRY(name, Y, X)  .rows[NPUQ_DEQUANT_##name] = NPUQ_KERNEL(convert, name),
#define NPUQ_WIDEN_ENTRY(name, P)       .widen[NPUQ_WIDEN_##name] = NPUQ_KERNEL(widen, f32_from_##name),
#define NPUQ_RUN_MAGNITUDES_ENTRY(name, X)                                                                             \
    .run_magnitudes[NPUQ_RANGE_##name] = NPUQ_KERNEL(find, run_magnitudes_of_##name),
#define NPUQ_COLUMN_MAGNITUDES_ENTRY(name, X)                                                                          \
    .column_magnitudes[NPUQ_RANGE_##name] = NPUQ_KERNEL(find, column_magnitudes_of_##name),

#define NPUQ_ROW_TABLE NPUQ_ROW_TABLE_WITH(NPUQ_DEQUANT_ENTRY)
#define NPUQ_ROW_TABLE_WITH(TO_BF16_ENTRY)                                                                             \
    {                                                                                                                  \
        NPUQ_EACH_PRODUCT(NPUQ_PRODUCT_ENTRY)                                                                          \
        NPUQ_EACH_QUOTIENT(NPUQ_QUOTIENT_ENTRY)                                                                        \
        NPUQ_EACH_RANGE(NPUQ_RANGE_ENTRY)                                                                              \
        NPUQ_EACH_RANGE(NPUQ_RUN_MAGNITUDES_ENTRY)                                                                     \
        NPUQ_EACH_RANGE(NPUQ_COLUMN_MAGNITUDES_ENTRY)                                                                  \
        NPUQ_EACH_DEQUANT(NPUQ_DEQUANT_ENTRY, TO_BF16_ENTRY, NPUQ_DEQUANT_ENTRY)                                       \
        NPUQ_EACH_PARAMETER(NPUQ_WIDEN_ENTRY).short_rows = NPUQ_KERNEL(find, short_ranges),                            \
        .parameters = NPUQ_KERNEL(compute, scales), .pack = NPUQ_KERNEL(pack, quant_params),                           \
        .unpack = NPUQ_KERNEL(unpack, quant_params), .word_bits = NPUQ_KERNEL(find, word_bits),                        \
        .spread = NPUQ_KERNEL(spread, values), .fence_stores = fence_stores, .takes_any_columns = !AT_RUN_TIME         \
    }

/* clang-format on */

#endif
