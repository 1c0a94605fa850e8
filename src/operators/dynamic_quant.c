/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/dynamic.h"

#define NPUQ_PLACE(ROLE) NPUQ_DYNAMIC_##ROLE

static const npuq_operator all_steps = NPUQ_DYNAMIC_OPERATOR(dynamic_quant, npuq_quantise_by_ranges);
static const npuq_operator apply_step =
    NPUQ_DYNAMIC_OPERATOR(dynamic_quant_symmetric_apply, npuq_quantise_by_parameters);

/* Of an 8-bit float, what the largest magnitude becomes. */
static npuq_status check_float8(const npuq_arguments *arguments, const void *options)
{
    const uint32_t most = ((const npuq_dynamic_options *)options)->dst_type_max;
    const npuq_type_info *y = arguments->infos[NPUQ_DYNAMIC_Y];
    const char *op = arguments->signature->op;
    const npuq_status status = npuq_check_positive(op, "dst_type_max", most);

    if (status != NPUQ_OK) {
        return status;
    }
    if (y->type != NPUQ_TYPE_HIFLOAT8 && (most & 0x7FFFFFFFu) != 0) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "dst_type_max", "is not 0; expected 0, as y is %s", y->name);
    }
    return npuq_check_dynamic(arguments, options);
}

static const npuq_operator to_float8 = {NPUQ_SIGNATURE(dynamic_quant_float8), check_float8, npuq_plan_dynamic,
                                        npuq_quantise_by_ranges, npuq_run_dynamic};

static npuq_dynamic_form form_of(npuq_scale_form scale_form)
{
    return scale_form == NPUQ_SCALE_INVERSE ? NPUQ_SYMMETRIC_INVERSE : NPUQ_SYMMETRIC_PRODUCT;
}

npuq_status npuq_dynamic_quant(const npuq_tensor *x, const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                               npuq_quant_mode quant_mode, npuq_scale_form scale_form, const npuq_tensor *y,
                               const npuq_tensor *scale, const npuq_executor *executor)
{
    return npuq_call_inlined(&all_steps, all_steps.check, all_steps.plan, NPUQ_TENSORS(dynamic_quant),
                             &(npuq_dynamic_options){NPUQ_QUANTISE_ALL, form_of(scale_form), quant_mode, scale_form, 0},
                             executor);
}

npuq_status npuq_prepare_dynamic_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                       const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                       npuq_scale_form scale_form, const npuq_tensor *y, const npuq_tensor *scale)
{
    return npuq_prepare_operator(
        call, &all_steps, NPUQ_TENSORS(dynamic_quant),
        &(npuq_dynamic_options){NPUQ_QUANTISE_ALL, form_of(scale_form), quant_mode, scale_form, 0});
}

/* y is the same in both forms of the scale. */
npuq_status npuq_dynamic_quant_symmetric_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                               const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                               const npuq_tensor *min, const npuq_tensor *max, const npuq_tensor *y,
                                               const npuq_executor *executor)
{
    return npuq_call_inlined(
        &apply_step, apply_step.check, apply_step.plan, NPUQ_TENSORS(dynamic_quant_symmetric_apply),
        &(npuq_dynamic_options){NPUQ_APPLY, NPUQ_SYMMETRIC_PRODUCT, quant_mode, NPUQ_SCALE_PRODUCT, 0}, executor);
}

npuq_status npuq_prepare_dynamic_quant_symmetric_apply(npuq_call *call, const npuq_tensor *x,
                                                       const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                                       npuq_quant_mode quant_mode, const npuq_tensor *min,
                                                       const npuq_tensor *max, const npuq_tensor *y)
{
    return npuq_prepare_operator(
        call, &apply_step, NPUQ_TENSORS(dynamic_quant_symmetric_apply),
        &(npuq_dynamic_options){NPUQ_APPLY, NPUQ_SYMMETRIC_PRODUCT, quant_mode, NPUQ_SCALE_PRODUCT, 0});
}

npuq_status npuq_dynamic_quant_symmetric_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                                npuq_scale_form scale_form, const npuq_tensor *scale)
{
    const npuq_status status = npuq_check_scale_form("dynamic_quant_symmetric_params", scale_form);

    return status != NPUQ_OK ? status
                             : npuq_call_dynamic_params(form_of(scale_form),
                                                        (const npuq_tensor *const[]){min, scale, max, NULL}, y_dtype);
}

npuq_status npuq_dynamic_quant_float8(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                      const npuq_tensor *group_index, npuq_quant_mode quant_mode, float dst_type_max,
                                      const npuq_tensor *y, const npuq_tensor *scale, const npuq_executor *executor)
{
    return npuq_call_inlined(&to_float8, to_float8.check, to_float8.plan, NPUQ_TENSORS(dynamic_quant_float8),
                             &(npuq_dynamic_options){NPUQ_QUANTISE_ALL, NPUQ_SYMMETRIC_DIVISOR, quant_mode,
                                                     NPUQ_SCALE_PRODUCT, npuq_bits_of_argument(&dst_type_max)},
                             executor);
}

npuq_status npuq_prepare_dynamic_quant_float8(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                              const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                              float dst_type_max, const npuq_tensor *y, const npuq_tensor *scale)
{
    return npuq_prepare_operator(call, &to_float8, NPUQ_TENSORS(dynamic_quant_float8),
                                 &(npuq_dynamic_options){NPUQ_QUANTISE_ALL, NPUQ_SYMMETRIC_DIVISOR, quant_mode,
                                                         NPUQ_SCALE_PRODUCT, npuq_bits_of_argument(&dst_type_max)});
}
