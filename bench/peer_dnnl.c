/* SPDX-License-Identifier: BSD-3-Clause */
/* oneDNN 2: a reorder to int8 with scales and a zero point. It multiplies; zero points are one for all channels. */
#include "peer.h"

#include <dnnl.h>
#ifdef BENCH_WITH_OPENMP
#include <omp.h>
#endif
#include <stddef.h>

static struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t reorder;
    dnnl_memory_t from;
    dnnl_memory_t to;
} state;

static void finish(void)
{
    (void)dnnl_memory_destroy(state.from);
    (void)dnnl_memory_destroy(state.to);
    (void)dnnl_primitive_destroy(state.reorder);
    (void)dnnl_stream_destroy(state.stream);
    (void)dnnl_engine_destroy(state.engine);
    state.from = NULL;
    state.to = NULL;
    state.reorder = NULL;
    state.stream = NULL;
    state.engine = NULL;
}

static void run(void)
{
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, state.from}, {DNNL_ARG_TO, state.to}};

    (void)dnnl_primitive_execute(state.reorder, state.stream, 2, arguments);
    (void)dnnl_stream_wait(state.stream);
}

static bool describe(const struct operands *o, dnnl_memory_desc_t *from, dnnl_memory_desc_t *to)
{
    const dnnl_dims_t dims = {o->c->shape[0], o->c->shape[1]};
    const dnnl_data_type_t x = o->x.dtype == NPUQ_FLOAT32    ? dnnl_f32
                               : o->x.dtype == NPUQ_BFLOAT16 ? dnnl_bf16
                                                             : dnnl_f16;

    return dnnl_memory_desc_init_by_tag(from, 2, dims, x, dnnl_ab) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(to, 2, dims, dnnl_s8, dnnl_ab) == dnnl_success;
}

static bool make_reorder(const struct operands *o, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to)
{
    const int32_t zero_point = (int32_t) * (const float *)o->offset.data;
    const bool channel = o->c->parameters == BENCH_CHANNEL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;

    const bool made = dnnl_primitive_attr_create(&attributes) == dnnl_success &&
                      dnnl_primitive_attr_set_output_scales(attributes, channel ? o->c->shape[1] : 1,
                                                            channel ? 1 << 1 : 0, o->scale.data) == dnnl_success &&
                      dnnl_primitive_attr_set_zero_points(attributes, DNNL_ARG_TO, 1, 0, &zero_point) == dnnl_success &&
                      dnnl_reorder_primitive_desc_create(&description, from, state.engine, to, state.engine,
                                                         attributes) == dnnl_success &&
                      dnnl_primitive_create(&state.reorder, description) == dnnl_success;
    (void)dnnl_primitive_desc_destroy(description);
    (void)dnnl_primitive_attr_destroy(attributes);
    return made;
}

static bool prepare(const struct operands *o)
{
    dnnl_memory_desc_t from;
    dnnl_memory_desc_t to;
    const struct bench_case *c = o->c;

    if (c->op != BENCH_QUANTIZE || c->divide || c->y_dtype != NPUQ_INT8 || c->ndim != 2) {
        return false;
    }
#ifdef BENCH_WITH_OPENMP
    omp_set_num_threads(1);
#endif
    if (dnnl_engine_create(&state.engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&state.stream, state.engine, dnnl_stream_default_flags) == dnnl_success &&
        describe(o, &from, &to) && make_reorder(o, &from, &to) &&
        dnnl_memory_create(&state.from, &from, state.engine, o->x.data) == dnnl_success &&
        dnnl_memory_create(&state.to, &to, state.engine, o->y.data) == dnnl_success) {
        return true;
    }
    finish();
    return false;
}

const struct peer peer_dnnl = {"onednn", prepare, run, finish};
