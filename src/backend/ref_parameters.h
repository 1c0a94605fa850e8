/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's parameters of dynamic quantisation, by the names of the kernels' contract: of any range, too, which a
 * caller may have made. */
#ifndef NPUQ_REF_PARAMETERS_H
#define NPUQ_REF_PARAMETERS_H

#include "row.h"

#include "../ref/npuq_ref_element.h"

#include <assert.h>

/* The oracle's names for the types. */
#define NPUQ_REF_DTYPE(NAME, name, bits, DTYPE) NPUQ_REF_##DTYPE,
static inline npuq_ref_dtype npuq_find_ref_x(npuq_x_type x)
{
    static const npuq_ref_dtype dtypes[] = {NPUQ_EACH_X_TYPE(NPUQ_REF_DTYPE)};

    return dtypes[x];
}

static inline npuq_ref_dtype npuq_find_ref_y(npuq_y_type y)
{
    static const npuq_ref_dtype dtypes[] = {NPUQ_EACH_Y_TYPE(NPUQ_REF_DTYPE)};

    return dtypes[y];
}
#undef NPUQ_REF_DTYPE

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
