/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic_call.h"

static const npuq_dynamic_operator all_steps = {
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant_asymmetric", 6, NPUQ_OUTPUT, "scale", "offset", NPUQ_OUTPUT),
    NPUQ_QUANTISE_ALL};
static const npuq_dynamic_operator min_max_step = {
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant_min_max", 6, NPUQ_OPTIONAL_INPUT, "min", "max", NPUQ_OUTPUT), /* without y */
    NPUQ_FIND_RANGES};
static const npuq_dynamic_operator apply_step = {
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant_apply", 6, NPUQ_OUTPUT, "scale", "offset", NPUQ_INPUT), NPUQ_APPLY};

npuq_status npuq_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                          const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                          const npuq_tensor *y, const npuq_tensor *scale, const npuq_tensor *offset,
                                          const npuq_executor *executor)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, offset};

    return npuq_call_dynamic(NULL, &all_steps, NPUQ_ASYMMETRIC, tensors, quant_mode, executor);
}

npuq_status npuq_prepare_dynamic_quant_asymmetric(npuq_call *call, const npuq_tensor *x,
                                                  const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                                  npuq_quant_mode quant_mode, const npuq_tensor *y,
                                                  const npuq_tensor *scale, const npuq_tensor *offset)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, offset};

    return npuq_prepare_dynamic(call, &all_steps, NPUQ_ASYMMETRIC, tensors, quant_mode);
}

npuq_status npuq_dynamic_quant_min_max(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                       const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                       const npuq_tensor *min, const npuq_tensor *max, const npuq_executor *executor)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, NULL, min, max};

    return npuq_call_dynamic(NULL, &min_max_step, NPUQ_ASYMMETRIC, tensors, quant_mode, executor);
}

npuq_status npuq_prepare_dynamic_quant_min_max(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                               const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                               const npuq_tensor *min, const npuq_tensor *max)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, NULL, min, max};

    return npuq_prepare_dynamic(call, &min_max_step, NPUQ_ASYMMETRIC, tensors, quant_mode);
}

npuq_status npuq_dynamic_quant_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                      const npuq_tensor *scale, const npuq_tensor *offset)
{
    return npuq_call_dynamic_params(NPUQ_ASYMMETRIC, (const npuq_tensor *const[]){min, max, scale, offset}, y_dtype);
}

npuq_status npuq_dynamic_quant_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                     const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                     const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y,
                                     const npuq_executor *executor)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, offset};

    return npuq_call_dynamic(NULL, &apply_step, NPUQ_ASYMMETRIC, tensors, quant_mode, executor);
}

npuq_status npuq_prepare_dynamic_quant_apply(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                             const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                             const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, offset};

    return npuq_prepare_dynamic(call, &apply_step, NPUQ_ASYMMETRIC, tensors, quant_mode);
}
