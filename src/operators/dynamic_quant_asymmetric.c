/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic_call.h"

npuq_status npuq_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                          const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                          const npuq_tensor *y, const npuq_tensor *scale, const npuq_tensor *offset,
                                          const npuq_executor *executor)
{
    return npuq_call_dynamic("dynamic_quant_asymmetric", NPUQ_ASYMMETRIC, x, smooth_scales, group_index, quant_mode, y,
                             scale, offset, executor);
}

npuq_status npuq_dynamic_quant_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                      const npuq_tensor *scale, const npuq_tensor *offset)
{
    return npuq_call_dynamic_params("dynamic_quant_params", NPUQ_ASYMMETRIC, min, max, y_dtype, scale, offset);
}

npuq_status npuq_dynamic_quant_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                     const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                     const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y,
                                     const npuq_executor *executor)
{
    return npuq_call_dynamic_apply("dynamic_quant_apply", NPUQ_ASYMMETRIC, x, smooth_scales, group_index, quant_mode,
                                   scale, offset, y, executor);
}
