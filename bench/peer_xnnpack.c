/* SPDX-License-Identifier: BSD-3-Clause */
/* XNNPACK: float32 to int8 and back, with one scale and one zero point. To int8, XNNPACK takes the reciprocal of its
 * scale, so prepare_quantize() gives it the reciprocal of npuquant's. */
#include "peer.h"

#include <xnnpack.h>

static struct {
    xnn_operator_t convert;
} state;

static void run(void)
{
    (void)xnn_run_operator(state.convert, NULL);
}

static void finish(void)
{
    (void)xnn_delete_operator(state.convert);
}

static bool prepare_quantize(const struct operands *o, size_t channels)
{
    const int8_t zero_point = (int8_t) * (const float *)o->offset.data;
    const float scale = 1.0F / *(const float *)o->scale.data;

    return xnn_create_convert_nc_f32_qs8(channels, channels, channels, scale, zero_point, -128, 127, 0,
                                         &state.convert) == xnn_status_success &&
           xnn_setup_convert_nc_f32_qs8(state.convert, (size_t)o->c->shape[0], o->x.data, o->y.data, NULL) ==
               xnn_status_success;
}

/* npuquant adds its offset, XNNPACK subtracts its zero point. */
static bool prepare_anti_quant(const struct operands *o, size_t channels)
{
    const int8_t zero_point = (int8_t) - *(const float *)o->offset.data;

    return xnn_create_convert_nc_qs8_f32(channels, channels, channels, *(const float *)o->scale.data, zero_point, 0,
                                         &state.convert) == xnn_status_success &&
           xnn_setup_convert_nc_qs8_f32(state.convert, (size_t)o->c->shape[0], o->x.data, o->y.data, NULL) ==
               xnn_status_success;
}

static bool prepare(const struct operands *o)
{
    const struct bench_case *c = o->c;
    const size_t channels = (size_t)c->shape[c->ndim - 1];
    const bool quantize = c->op == BENCH_QUANTIZE && c->x_dtype == NPUQ_FLOAT32 && c->y_dtype == NPUQ_INT8;
    const bool anti_quant = c->op == BENCH_ANTI_QUANT && c->x_dtype == NPUQ_INT8 && c->y_dtype == NPUQ_FLOAT32;

    if (c->mode != BENCH_MUL || c->parameters != BENCH_UNIFORM || c->ndim != 2 || !(quantize || anti_quant) ||
        xnn_initialize(NULL) != xnn_status_success) {
        return false;
    }
    state.convert = NULL;
    if (quantize ? prepare_quantize(o, channels) : prepare_anti_quant(o, channels)) {
        return true;
    }
    finish();
    return false;
}

const struct peer peer_xnnpack = {"xnnpack", prepare, run, finish, operands_differing, false};
