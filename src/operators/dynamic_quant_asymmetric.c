/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/dynamic.h"

#define NPUQ_PLACE(ROLE) NPUQ_DYNAMIC_##ROLE

static const npuq_operator all_steps = NPUQ_DYNAMIC_OPERATOR(dynamic_quant_asymmetric, npuq_quantise_by_ranges);
static const npuq_operator min_max_step = NPUQ_DYNAMIC_OPERATOR(dynamic_quant_min_max, npuq_store_ranges);
static const npuq_operator apply_step = NPUQ_DYNAMIC_OPERATOR(dynamic_quant_apply, npuq_quantise_by_parameters);

NPUQ_DEFINE_CALLS(dynamic_quant_asymmetric,
                  (&(npuq_dynamic_options){NPUQ_QUANTISE_ALL, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT}),
                  &all_steps, NPUQ_CALL(&all_steps))
NPUQ_DEFINE_CALLS(dynamic_quant_min_max,
                  (&(npuq_dynamic_options){NPUQ_FIND_RANGES, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT}),
                  &min_max_step, NPUQ_CALL(&min_max_step))
NPUQ_DEFINE_CALLS(dynamic_quant_apply,
                  (&(npuq_dynamic_options){NPUQ_APPLY, NPUQ_ASYMMETRIC, quant_mode, NPUQ_SCALE_PRODUCT}), &apply_step,
                  NPUQ_CALL(&apply_step))

npuq_status npuq_dynamic_quant_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                      const npuq_tensor *scale, const npuq_tensor *offset)
{
    return npuq_call_dynamic_params(NPUQ_ASYMMETRIC, (const npuq_tensor *const[]){min, scale, max, offset}, y_dtype);
}
