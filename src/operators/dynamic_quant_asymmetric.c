/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic_call.h"

static const npuq_signature signature =
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant_asymmetric", 6, NPUQ_OUTPUT, "scale", "offset", NPUQ_OUTPUT);
static const npuq_signature signature_of_min_max =
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant_min_max", 6, NPUQ_OPTIONAL_INPUT, "min", "max", NPUQ_OUTPUT); /* without y */
static const npuq_signature signature_of_apply =
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant_apply", 6, NPUQ_OUTPUT, "scale", "offset", NPUQ_INPUT);

static inline NPUQ_INLINED npuq_status call_operator(npuq_call *call, const npuq_tensor *const *tensors,
                                                     npuq_quant_mode quant_mode, const npuq_executor *executor)
{
    return npuq_call_dynamic_step(call, &signature, NPUQ_QUANTISE_ALL, NPUQ_ASYMMETRIC, tensors, quant_mode, executor);
}

static inline NPUQ_INLINED npuq_status call_min_max(npuq_call *call, const npuq_tensor *const *tensors,
                                                    npuq_quant_mode quant_mode, const npuq_executor *executor)
{
    return npuq_call_dynamic_step(call, &signature_of_min_max, NPUQ_FIND_RANGES, NPUQ_ASYMMETRIC, tensors, quant_mode,
                                  executor);
}

static inline NPUQ_INLINED npuq_status call_apply(npuq_call *call, const npuq_tensor *const *tensors,
                                                  npuq_quant_mode quant_mode, const npuq_executor *executor)
{
    return npuq_call_dynamic_step(call, &signature_of_apply, NPUQ_APPLY, NPUQ_ASYMMETRIC, tensors, quant_mode,
                                  executor);
}

npuq_status npuq_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                          const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                          const npuq_tensor *y, const npuq_tensor *scale, const npuq_tensor *offset,
                                          const npuq_executor *executor)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, offset};

    return call_operator(NULL, tensors, quant_mode, executor);
}

npuq_status npuq_prepare_dynamic_quant_asymmetric(npuq_call *call, const npuq_tensor *x,
                                                  const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                                  npuq_quant_mode quant_mode, const npuq_tensor *y,
                                                  const npuq_tensor *scale, const npuq_tensor *offset)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, offset};

    return call ? call_operator(call, tensors, quant_mode, NULL) : npuq_fail_call(signature.op);
}

npuq_status npuq_dynamic_quant_min_max(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                       const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                       const npuq_tensor *min, const npuq_tensor *max, const npuq_executor *executor)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, NULL, min, max};

    return call_min_max(NULL, tensors, quant_mode, executor);
}

npuq_status npuq_prepare_dynamic_quant_min_max(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                               const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                               const npuq_tensor *min, const npuq_tensor *max)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, NULL, min, max};

    return call ? call_min_max(call, tensors, quant_mode, NULL) : npuq_fail_call(signature_of_min_max.op);
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

    return call_apply(NULL, tensors, quant_mode, executor);
}

npuq_status npuq_prepare_dynamic_quant_apply(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                             const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                             const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, offset};

    return call ? call_apply(call, tensors, quant_mode, NULL) : npuq_fail_call(signature_of_apply.op);
}
