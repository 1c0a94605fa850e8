/* SPDX-License-Identifier: BSD-3-Clause */
/* dynamic_quant and dynamic_quant_asymmetric as calls, and their steps: one set of checks for both forms. The first
 * step, npuq_dynamic_quant_min_max(), is the same function for both. */
#ifndef NPUQ_DYNAMIC_CALL_H
#define NPUQ_DYNAMIC_CALL_H

#include "dynamic.h"

/* offset is there in the asymmetric form only. */
npuq_status npuq_call_dynamic(const char *op, npuq_dynamic_form form, const npuq_tensor *x,
                              const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                              npuq_quant_mode quant_mode, const npuq_tensor *y, const npuq_tensor *scale,
                              const npuq_tensor *offset, const npuq_executor *executor);

npuq_status npuq_call_dynamic_params(const char *op, npuq_dynamic_form form, const npuq_tensor *min,
                                     const npuq_tensor *max, npuq_dtype y_dtype, const npuq_tensor *scale,
                                     const npuq_tensor *offset);

/* first and second: scale and offset in the asymmetric form, min and max in the symmetric ones. */
npuq_status npuq_call_dynamic_apply(const char *op, npuq_dynamic_form form, const npuq_tensor *x,
                                    const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                    npuq_quant_mode quant_mode, const npuq_tensor *first, const npuq_tensor *second,
                                    const npuq_tensor *y, const npuq_executor *executor);

#endif
