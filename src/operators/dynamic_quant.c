/* SPDX-License-Identifier: BSD-3-Clause */
#include "../status.h"
#include "dynamic_call.h"

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

npuq_status npuq_dynamic_quant(const npuq_tensor *x, const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                               npuq_quant_mode quant_mode, npuq_scale_form scale_form, const npuq_tensor *y,
                               const npuq_tensor *scale, const npuq_executor *executor)
{
    static const char op[] = "dynamic_quant";
    const npuq_status status = check_form(op, scale_form);

    return status != NPUQ_OK ? status
                             : npuq_call_dynamic(op, form_of(scale_form), x, smooth_scales, group_index, quant_mode, y,
                                                 scale, NULL, executor);
}

npuq_status npuq_dynamic_quant_symmetric_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                                npuq_scale_form scale_form, const npuq_tensor *scale)
{
    static const char op[] = "dynamic_quant_symmetric_params";
    const npuq_status status = check_form(op, scale_form);

    return status != NPUQ_OK ? status
                             : npuq_call_dynamic_params(op, form_of(scale_form), min, max, y_dtype, scale, NULL);
}

npuq_status npuq_dynamic_quant_symmetric_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                               const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                               const npuq_tensor *min, const npuq_tensor *max, const npuq_tensor *y,
                                               const npuq_executor *executor)
{
    /* y is the same in both forms. */
    return npuq_call_dynamic_apply("dynamic_quant_symmetric_apply", NPUQ_SYMMETRIC_PRODUCT, x, smooth_scales,
                                   group_index, quant_mode, min, max, y, executor);
}
