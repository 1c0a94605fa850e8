/* SPDX-License-Identifier: BSD-3-Clause */
/* oneDNN 2: a reorder between types, with scales and one zero point for all channels; oneDNN multiplies by the scales.
 */
#include "peer.h"

#include <dnnl.h>
#ifdef BENCH_WITH_OPENMP
#include <omp.h>
#endif
#include <stdlib.h>
#include <string.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t reorder;
static dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};

static void run(void)
{
    (void)dnnl_primitive_execute(reorder, stream, 2, arguments);
    (void)dnnl_stream_wait(stream);
}

/* Takes null for what is not there. */
static void finish(void)
{
    for (int i = 0; i < 2; i++) {
        (void)dnnl_memory_destroy(arguments[i].memory);
        arguments[i].memory = NULL;
    }
    (void)dnnl_primitive_destroy(reorder);
    (void)dnnl_stream_destroy(stream);
    (void)dnnl_engine_destroy(engine);
    reorder = NULL;
    stream = NULL;
    engine = NULL;
}

/* Undefined for the types that only npuquant has. */
static const dnnl_data_type_t types[] = {
    [NPUQ_FLOAT32] = dnnl_f32, [NPUQ_FLOAT16] = dnnl_f16, [NPUQ_BFLOAT16] = dnnl_bf16,
    [NPUQ_INT8] = dnnl_s8,     [NPUQ_INT32] = dnnl_s32,
};

/* A matrix as one side of the reorder. */
static bool make_side(int side, const struct bench_case *c, npuq_dtype dtype, void *data)
{
    const dnnl_dims_t dims = {c->shape[0], c->shape[1]};
    dnnl_memory_desc_t description;

    return dnnl_memory_desc_init_by_tag(&description, 2, dims, types[dtype], dnnl_ab) == dnnl_success &&
           dnnl_memory_create(&arguments[side].memory, &description, engine, data) == dnnl_success;
}

static bool set_scales(const struct operands *o, dnnl_primitive_attr_t attributes)
{
    const bool channel = o->c->parameters == BENCH_CHANNEL;
    const int64_t count = channel ? o->c->shape[1] : 1;
    const size_t size = o->scale.dtype == NPUQ_FLOAT32 ? sizeof(float) : sizeof(int64_t);
    float *scales = malloc((size_t)count * sizeof *scales);

    for (int64_t i = 0; i < count && scales; i++) { /* of words, the scale is the lower half */
        memcpy(&scales[i], (const char *)o->scale.data + (size_t)i * size, sizeof *scales);
    }
    const bool set = scales && dnnl_primitive_attr_set_output_scales(attributes, count, channel ? 1 << 1 : 0, scales) ==
                                   dnnl_success;
    free(scales);
    return set;
}

static bool set_zero_point(const struct operands *o, dnnl_primitive_attr_t attributes)
{
    const bool adds = o->c->op == BENCH_ANTI_QUANT; /* npuquant adds its offset, oneDNN subtracts its zero point */
    int32_t zero_point;

    if (o->c->op == BENCH_DEQUANT) {
        return true;
    }
    if (o->c->op == BENCH_REQUANT) {
        zero_point = *(const int64_t *)o->scale.data >> 37 & 0xFF; /* never negative */
    } else {
        zero_point = (int32_t) * (const float *)o->offset.data * (adds ? -1 : 1);
    }
    return dnnl_primitive_attr_set_zero_points(attributes, adds ? DNNL_ARG_FROM : DNNL_ARG_TO, 1, 0, &zero_point) ==
           dnnl_success;
}

static bool make_reorder(const struct operands *o)
{
    const dnnl_memory_desc_t *from;
    const dnnl_memory_desc_t *to;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;

    const bool made =
        dnnl_memory_get_memory_desc(arguments[0].memory, &from) == dnnl_success &&
        dnnl_memory_get_memory_desc(arguments[1].memory, &to) == dnnl_success &&
        dnnl_primitive_attr_create(&attributes) == dnnl_success && set_scales(o, attributes) &&
        set_zero_point(o, attributes) &&
        dnnl_reorder_primitive_desc_create(&description, from, engine, to, engine, attributes) == dnnl_success &&
        dnnl_primitive_create(&reorder, description) == dnnl_success;
    (void)dnnl_primitive_desc_destroy(description);
    (void)dnnl_primitive_attr_destroy(attributes);
    return made;
}

static bool is_reorder(const struct bench_case *c)
{
    switch (c->op) {
    case BENCH_QUANTIZE: return c->mode == BENCH_MUL && c->y_dtype == NPUQ_INT8;
    case BENCH_ANTI_QUANT: return c->x_dtype == NPUQ_INT8;
    case BENCH_DEQUANT: return c->mode == BENCH_WEIGHT;
    case BENCH_REQUANT: return true;
    default: return false;
    }
}

static bool prepare(const struct operands *o)
{
    const struct bench_case *c = o->c;

    if (!is_reorder(c) || c->ndim != 2) {
        return false;
    }
#ifdef BENCH_WITH_OPENMP
    omp_set_num_threads(1);
#endif
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success &&
        make_side(0, c, c->x_dtype, o->x.data) && make_side(1, c, c->y_dtype, o->y.data) && make_reorder(o)) {
        return true;
    }
    finish();
    return false;
}

const struct peer peer_dnnl = {"onednn", prepare, run, finish, operands_differing};
