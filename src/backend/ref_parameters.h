/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's parameters of dynamic quantisation, by the names of the kernels' contract: of any range, too, which a
 * caller may have made. */
#ifndef NPUQ_REF_PARAMETERS_H
#define NPUQ_REF_PARAMETERS_H

#include "row.h"

#include "../ref/npuq_ref_element.h"

#include <assert.h>

/* The oracle's name for a type of y. */
static inline npuq_ref_dtype npuq_find_ref_y(npuq_y_type y)
{
    switch (y) {
    case NPUQ_Y_I8: return NPUQ_REF_INT8;
    case NPUQ_Y_U8: return NPUQ_REF_UINT8;
    case NPUQ_Y_I32: return NPUQ_REF_INT32;
    case NPUQ_Y_I4: return NPUQ_REF_QUINT4X2;
    case NPUQ_Y_F32: return NPUQ_REF_FLOAT32;
    case NPUQ_Y_F16: return NPUQ_REF_FLOAT16;
    case NPUQ_Y_BF16: return NPUQ_REF_BFLOAT16;
    }
    __builtin_unreachable();
}

static inline npuq_ref_parameters npuq_find_ref_parameters(npuq_dynamic_form form, npuq_y_type y, npuq_ref_range range)
{
    const npuq_ref_dtype dtype = npuq_find_ref_y(y);

    assert(y == NPUQ_Y_I4 || y == NPUQ_Y_I8);
    if (form == NPUQ_ASYMMETRIC) {
        return npuq_ref_range_parameters(range, dtype);
    }
    return npuq_ref_symmetric_parameters(npuq_ref_largest_of(range), dtype, form == NPUQ_SYMMETRIC_INVERSE);
}

#endif
