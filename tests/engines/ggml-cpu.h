/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for ggml's header where ggml is missing: only what the example needs, on one thread. */
#ifndef STANDIN_GGML_CPU_H
#define STANDIN_GGML_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { GGML_N_TASKS_MAX = -1 };
enum ggml_type { GGML_TYPE_F32 = 0, GGML_TYPE_I8 = 24 };

struct ggml_tensor {
    int64_t ne[4];
    size_t nb[4];
    struct ggml_tensor *src[10];
    void *data;
};

typedef void (*ggml_custom_op_t)(struct ggml_tensor *dst, int ith, int nth, void *userdata);

struct ggml_cgraph {
    struct ggml_tensor *node;
};

/* Room for a source, a node and a graph of the node alone. */
struct ggml_context {
    struct ggml_tensor tensors[2];
    int count;
    ggml_custom_op_t fun;
    void *userdata;
    struct ggml_cgraph graph;
};

struct ggml_init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
};

static inline struct ggml_context *ggml_init(struct ggml_init_params params)
{
    (void)params;
    return (struct ggml_context *)calloc(1, sizeof(struct ggml_context));
}

static inline void ggml_free(struct ggml_context *context)
{
    for (int i = 0; i < context->count; i++) {
        free(context->tensors[i].data);
    }
    free(context);
}

static inline struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *context, enum ggml_type type, int64_t ne0,
                                                     int64_t ne1)
{
    struct ggml_tensor *tensor = &context->tensors[context->count++];
    const size_t size = type == GGML_TYPE_F32 ? 4 : 1;

    tensor->ne[0] = ne0;
    tensor->ne[1] = ne1;
    tensor->ne[2] = tensor->ne[3] = 1;
    tensor->nb[0] = size;
    tensor->nb[1] = size * (size_t)ne0;
    tensor->data = calloc((size_t)ne1, tensor->nb[1]);
    return tensor;
}

static inline struct ggml_tensor *ggml_custom_4d(struct ggml_context *context, enum ggml_type type, int64_t ne0,
                                                 int64_t ne1, int64_t ne2, int64_t ne3, struct ggml_tensor **args,
                                                 int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata)
{
    struct ggml_tensor *tensor = ggml_new_tensor_2d(context, type, ne0, ne1 * ne2 * ne3);

    (void)n_tasks;
    for (int i = 0; i < n_args; i++) {
        tensor->src[i] = args[i];
    }
    context->fun = fun;
    context->userdata = userdata;
    return tensor;
}

static inline struct ggml_cgraph *ggml_new_graph(struct ggml_context *context)
{
    return &context->graph;
}

static inline void ggml_build_forward_expand(struct ggml_cgraph *graph, struct ggml_tensor *tensor)
{
    graph->node = tensor;
}

static inline int ggml_graph_compute_with_ctx(struct ggml_context *context, struct ggml_cgraph *graph, int n_threads)
{
    for (int i = 0; i < n_threads; i++) {
        context->fun(graph->node, i, n_threads, context->userdata);
    }
    return 0;
}

#endif
