/* SPDX-License-Identifier: BSD-3-Clause */
/* XNNPACK: float32 to int8 and back, with one scale and one zero point. */
#include "peer.h"

#include <xnnpack.h>

static xnn_operator_t convert;

static void run(void)
{
    (void)xnn_run_operator(convert, NULL);
}

static void finish(void)
{
    (void)xnn_delete_operator(convert);
}

/* To int8, XNNPACK takes the reciprocal of npuquant's scale. */
static bool prepare_quantize(const struct operands *o, size_t channels, float scale, float offset)
{
    return xnn_create_convert_nc_f32_qs8(channels, channels, channels, 1.0F / scale, (int8_t)offset, -128, 127, 0,
                                         &convert) == xnn_status_success &&
           xnn_setup_convert_nc_f32_qs8(convert, (size_t)o->c->shape[0], o->x.data, o->y.data, NULL) ==
               xnn_status_success;
}

/* npuquant adds its offset, XNNPACK subtracts its zero point. */
static bool prepare_anti_quant(const struct operands *o, size_t channels, float scale, float offset)
{
    return xnn_create_convert_nc_qs8_f32(channels, channels, channels, scale, (int8_t)-offset, 0, &convert) ==
               xnn_status_success &&
           xnn_setup_convert_nc_qs8_f32(convert, (size_t)o->c->shape[0], o->x.data, o->y.data, NULL) ==
               xnn_status_success;
}

static bool prepare(const struct operands *o)
{
    const struct bench_case *c = o->c;
    const bool quantize = c->op == BENCH_QUANTIZE && c->x_dtype == NPUQ_FLOAT32 && c->y_dtype == NPUQ_INT8;
    const bool anti_quant = c->op == BENCH_ANTI_QUANT && c->x_dtype == NPUQ_INT8 && c->y_dtype == NPUQ_FLOAT32;

    if (c->mode != BENCH_MUL || c->parameters != BENCH_UNIFORM || c->ndim != 2 || !(quantize || anti_quant) ||
        xnn_initialize(NULL) != xnn_status_success) {
        return false;
    }
    convert = NULL;
    if ((quantize ? prepare_quantize : prepare_anti_quant)(o, (size_t)c->shape[1], *(const float *)o->scale.data,
                                                           *(const float *)o->offset.data)) {
        return true;
    }
    finish();
    return false;
}

const struct peer peer_xnnpack = {"xnnpack", prepare, run, finish, operands_differing};
