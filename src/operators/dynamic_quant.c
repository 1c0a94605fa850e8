/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/dynamic.h"

#define NPUQ_PLACE(ROLE) NPUQ_DYNAMIC_##ROLE

static const npuq_operator all_steps = NPUQ_DYNAMIC_OPERATOR(dynamic_quant, npuq_quantise_by_ranges);
static const npuq_operator apply_step =
    NPUQ_DYNAMIC_OPERATOR(dynamic_quant_symmetric_apply, npuq_quantise_by_parameters);

static npuq_dynamic_form form_of(npuq_scale_form scale_form)
{
    return scale_form == NPUQ_SCALE_INVERSE ? NPUQ_SYMMETRIC_INVERSE : NPUQ_SYMMETRIC_PRODUCT;
}

NPUQ_DEFINE_CALLS(dynamic_quant,
                  (&(npuq_dynamic_options){NPUQ_QUANTISE_ALL, form_of(scale_form), quant_mode, scale_form}), &all_steps,
                  NPUQ_CALL(&all_steps))

/* y is the same in both forms of the scale. */
NPUQ_DEFINE_CALLS(dynamic_quant_symmetric_apply,
                  (&(npuq_dynamic_options){NPUQ_APPLY, NPUQ_SYMMETRIC_PRODUCT, quant_mode, NPUQ_SCALE_PRODUCT}),
                  &apply_step, NPUQ_CALL(&apply_step))

npuq_status npuq_dynamic_quant_symmetric_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                                npuq_scale_form scale_form, const npuq_tensor *scale)
{
    const npuq_status status = npuq_check_scale_form("dynamic_quant_symmetric_params", scale_form);

    return status != NPUQ_OK ? status
                             : npuq_call_dynamic_params(form_of(scale_form),
                                                        (const npuq_tensor *const[]){min, scale, max, NULL}, y_dtype);
}
