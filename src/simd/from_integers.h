/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers to floating point, and int32 to int8. */
#ifndef NPUQ_FROM_INTEGERS_H
#define NPUQ_FROM_INTEGERS_H

#include "rows.h"

/* One for each pair of types, which are few, with TYPES_AT_RUN_TIME as well: asked for in each chunk, types would take
 * up to a third of the time. */
INLINE void dequantise(recipe k, const npuq_block *b, const npuq_dequant_params *p)
{
    doubt d = clear_doubt();

    assume(dequantises(k));
    for (size_t i = 0; i < b->rows && b->n > 0; i++) {
        rows r = select_rows(k, b, i);

        r.integers = p;
        r.first = i;
        run_rows(k, &r, 1, b->hints.from_memory, &d);
    }
}

#define DEQUANT(NAME, Y, X)                                                                                            \
    static void dequant_##NAME(const npuq_block *b, const npuq_dequant_params *p)                                      \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_Y_##Y, NPUQ_X_##X, p));                                                   \
        dequantise((recipe){FROM_INTEGERS, NPUQ_Y_##Y, NPUQ_X_##X, NPUQ_MUL}, b, p);                                   \
    }

NPUQ_EACH_DEQUANT(DEQUANT)

#endif
