/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic_call.h"

static const npuq_dynamic_operator all_steps = {
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant", 5, NPUQ_OUTPUT, "scale", "", NPUQ_OUTPUT), /* without an offset */
    NPUQ_QUANTISE_ALL};
static const npuq_dynamic_operator apply_step = {
    NPUQ_DYNAMIC_SIGNATURE("dynamic_quant_symmetric_apply", 6, NPUQ_OUTPUT, "min", "max", NPUQ_INPUT), NPUQ_APPLY};

static npuq_status check_form(const char *op, npuq_scale_form scale_form)
{
    if (scale_form != NPUQ_SCALE_PRODUCT && scale_form != NPUQ_SCALE_INVERSE) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "scale_form", "is %d; expected 0 (product) or 1 (inverse)",
                         (int)scale_form);
    }
    return NPUQ_OK;
}

static npuq_dynamic_form form_of(npuq_scale_form scale_form)
{
    return scale_form == NPUQ_SCALE_INVERSE ? NPUQ_SYMMETRIC_INVERSE : NPUQ_SYMMETRIC_PRODUCT;
}

static inline NPUQ_INLINED npuq_status call_operator(npuq_call *call, const npuq_tensor *const *tensors,
                                                     npuq_quant_mode quant_mode, npuq_scale_form scale_form,
                                                     const npuq_executor *executor)
{
    const npuq_status status = check_form(all_steps.signature.op, scale_form);

    return status != NPUQ_OK ? status
                             : npuq_call_dynamic(call, &all_steps, form_of(scale_form), tensors, quant_mode, executor);
}

npuq_status npuq_dynamic_quant(const npuq_tensor *x, const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                               npuq_quant_mode quant_mode, npuq_scale_form scale_form, const npuq_tensor *y,
                               const npuq_tensor *scale, const npuq_executor *executor)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, NULL};

    return call_operator(NULL, tensors, quant_mode, scale_form, executor);
}

npuq_status npuq_prepare_dynamic_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                       const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                       npuq_scale_form scale_form, const npuq_tensor *y, const npuq_tensor *scale)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, scale, NULL};

    return call ? call_operator(call, tensors, quant_mode, scale_form, NULL) : npuq_fail_call(all_steps.signature.op);
}

npuq_status npuq_dynamic_quant_symmetric_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                                npuq_scale_form scale_form, const npuq_tensor *scale)
{
    const npuq_status status = check_form("dynamic_quant_symmetric_params", scale_form);

    return status != NPUQ_OK ? status
                             : npuq_call_dynamic_params(form_of(scale_form),
                                                        (const npuq_tensor *const[]){min, max, scale, NULL}, y_dtype);
}

/* y is the same in both forms of the scale. */
npuq_status npuq_dynamic_quant_symmetric_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                               const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                               const npuq_tensor *min, const npuq_tensor *max, const npuq_tensor *y,
                                               const npuq_executor *executor)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, min, max};

    return npuq_call_dynamic(NULL, &apply_step, NPUQ_SYMMETRIC_PRODUCT, tensors, quant_mode, executor);
}

npuq_status npuq_prepare_dynamic_quant_symmetric_apply(npuq_call *call, const npuq_tensor *x,
                                                       const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                                       npuq_quant_mode quant_mode, const npuq_tensor *min,
                                                       const npuq_tensor *max, const npuq_tensor *y)
{
    const npuq_tensor *const tensors[] = {x, smooth_scales, group_index, y, min, max};

    return npuq_prepare_dynamic(call, &apply_step, NPUQ_SYMMETRIC_PRODUCT, tensors, quant_mode);
}
