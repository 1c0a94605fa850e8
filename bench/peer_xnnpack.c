/* SPDX-License-Identifier: BSD-3-Clause */
/* XNNPACK: float32 to int8 with one scale and one zero point. It takes the reciprocal of our scale and takes the
 * reciprocal of that. */
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

static bool prepare(const struct operands *o)
{
    const struct bench_case *c = o->c;

    if (c->op != BENCH_QUANTIZE || c->divide || c->parameters != BENCH_UNIFORM || c->x_dtype != NPUQ_FLOAT32 ||
        c->y_dtype != NPUQ_INT8 || c->ndim != 2) {
        return false;
    }
    const size_t channels = (size_t)c->shape[1];
    const int8_t zero_point = (int8_t) * (const float *)o->offset.data;
    const float scale = 1.0F / *(const float *)o->scale.data;

    if (xnn_initialize(NULL) != xnn_status_success ||
        xnn_create_convert_nc_f32_qs8(channels, channels, channels, scale, zero_point, -128, 127, 0, &state.convert) !=
            xnn_status_success) {
        return false;
    }
    if (xnn_setup_convert_nc_f32_qs8(state.convert, (size_t)c->shape[0], o->x.data, o->y.data, NULL) !=
        xnn_status_success) {
        finish();
        return false;
    }
    return true;
}

const struct peer peer_xnnpack = {"xnnpack", prepare, run, finish};
