/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/dynamic.h"

#define NPUQ_PLACE(ROLE) NPUQ_DYNAMIC_##ROLE

static const npuq_operator all_steps = NPUQ_DYNAMIC_OPERATOR(dynamic_quant_asymmetric, npuq_quantise_by_ranges);
static const npuq_operator min_max_step = NPUQ_DYNAMIC_OPERATOR(dynamic_quant_min_max, npuq_store_ranges);
static const npuq_operator apply_step = NPUQ_DYNAMIC_OPERATOR(dynamic_quant_apply, npuq_quantise_by_parameters);

npuq_status npuq_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                          const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                          const npuq_tensor *y, const npuq_tensor *scale, const npuq_tensor *offset,
                                          const npuq_executor *executor)
{
    return npuq_call_inlined(
        &all_steps, all_steps.check, all_steps.plan, NPUQ_TENSORS(dynamic_quant_asymmetric),
        &(npuq_dynamic_options){NPUQ_QUANTISE_ALL, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT, 0}, executor);
}

npuq_status npuq_prepare_dynamic_quant_asymmetric(npuq_call *call, const npuq_tensor *x,
                                                  const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                                  npuq_quant_mode quant_mode, const npuq_tensor *y,
                                                  const npuq_tensor *scale, const npuq_tensor *offset)
{
    return npuq_prepare_operator(
        call, &all_steps, NPUQ_TENSORS(dynamic_quant_asymmetric),
        &(npuq_dynamic_options){NPUQ_QUANTISE_ALL, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT, 0});
}

npuq_status npuq_dynamic_quant_min_max(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                       const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                       const npuq_tensor *min, const npuq_tensor *max, const npuq_executor *executor)
{
    return npuq_call_inlined(
        &min_max_step, min_max_step.check, min_max_step.plan, NPUQ_TENSORS(dynamic_quant_min_max),
        &(npuq_dynamic_options){NPUQ_FIND_RANGES, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT, 0}, executor);
}

npuq_status npuq_prepare_dynamic_quant_min_max(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                               const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                               const npuq_tensor *min, const npuq_tensor *max)
{
    return npuq_prepare_operator(
        call, &min_max_step, NPUQ_TENSORS(dynamic_quant_min_max),
        &(npuq_dynamic_options){NPUQ_FIND_RANGES, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT, 0});
}

npuq_status npuq_dynamic_quant_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                     const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                     const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y,
                                     const npuq_executor *executor)
{
    return npuq_call_inlined(&apply_step, apply_step.check, apply_step.plan, NPUQ_TENSORS(dynamic_quant_apply),
                             &(npuq_dynamic_options){NPUQ_APPLY, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT, 0},
                             executor);
}

npuq_status npuq_prepare_dynamic_quant_apply(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                             const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                             const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y)
{
    return npuq_prepare_operator(
        call, &apply_step, NPUQ_TENSORS(dynamic_quant_apply),
        &(npuq_dynamic_options){NPUQ_APPLY, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT, 0});
}

npuq_status npuq_dynamic_quant_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                      const npuq_tensor *scale, const npuq_tensor *offset)
{
    return npuq_call_dynamic_params(NPUQ_ASYMMETRIC, (const npuq_tensor *const[]){min, scale, max, offset}, y_dtype);
}
