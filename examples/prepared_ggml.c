/* SPDX-License-Identifier: BSD-3-Clause */
/* A prepared call as an operator of ggml's graph: each of ggml's threads calls the function with its number. It is C
 * and C++, as ggml's backends are. */
#include "prepared.h"

#include <ggml-cpu.h>
#include <stdio.h>
#include <string.h>

static void run_node(struct ggml_tensor *dst, int ith, int nth, void *userdata)
{
    (void)dst;
    run_share((const npuq_call *)userdata, (size_t)ith, (size_t)nth);
}

/* While the graph is built: a node of int8 that the call will write. */
static struct ggml_tensor *add_node(struct ggml_context *context, struct ggml_tensor *x, npuq_call *call)
{
    return ggml_custom_4d(context, GGML_TYPE_I8, x->ne[0], x->ne[1], 1, 1, &x, 1, run_node, GGML_N_TASKS_MAX, call);
}

/* After the graph's memory has been allocated, and whenever it has been allocated anew. */
static npuq_status prepare_node(npuq_call *call, const struct ggml_tensor *node, const npuq_tensor *scales)
{
    const struct ggml_tensor *from = node->src[0];
    const npuq_tensor x =
        npuq_matrix(from->data, NPUQ_FLOAT32, from->ne[1], from->ne[0], (int64_t)(from->nb[1] / from->nb[0]));
    const npuq_tensor y = npuq_matrix(node->data, NPUQ_INT8, node->ne[1], node->ne[0], (int64_t)node->nb[1]);

    return npuq_prepare_quantize(call, &x, scales, NULL, -1, false, &y);
}

/* ---- a graph of one node, compared with the operator ------------------------------------------------------------- */

enum { ROWS = 67, COLUMNS = 4096 };

int main(void)
{
    static int8_t expected[ROWS * COLUMNS];
    static npuq_call call;
    const float scale = 20.3f;
    const npuq_tensor scales = npuq_vector(&scale, NPUQ_FLOAT32, 1);
    const struct ggml_init_params size = {(size_t)16 << 20, NULL, false};
    struct ggml_context *context = ggml_init(size);
    struct ggml_tensor *x = ggml_new_tensor_2d(context, GGML_TYPE_F32, COLUMNS, ROWS);
    struct ggml_tensor *node = add_node(context, x, &call);
    struct ggml_cgraph *graph = ggml_new_graph(context);
    const npuq_tensor from = npuq_matrix(x->data, NPUQ_FLOAT32, ROWS, COLUMNS, 0);
    const npuq_tensor to = npuq_matrix(expected, NPUQ_INT8, ROWS, COLUMNS, 0);

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        ((float *)x->data)[i] = (float)(i % 1021 * 7919 % 10007) / 1000.0f - 5.0f;
    }
    ggml_build_forward_expand(graph, node);
    if (npuq_quantize(&from, &scales, NULL, -1, false, &to, NULL) != NPUQ_OK ||
        prepare_node(&call, node, &scales) != NPUQ_OK) {
        return puts(npuq_last_error()), 1;
    }
    ggml_graph_compute_with_ctx(context, graph, 3);
    const bool same = memcmp(expected, node->data, sizeof expected) == 0;
    printf("ggml\n  quantize: %zu units: %s\n", npuq_call_units(&call), same ? "equal bit for bit" : "DIFFERENT");
    ggml_free(context);
    return same ? 0 : 1;
}
