/* SPDX-License-Identifier: BSD-3-Clause */
/* A prepared call in a custom operator of ONNX Runtime, on the session's threads. */
#include "prepared.h"

#include <onnxruntime_c_api.h>

struct batch {
    const npuq_call *call;
    size_t shares;
};

static void run_batch(void *data, size_t i)
{
    const struct batch *batch = data;

    run_share(batch->call, i, batch->shares);
}

static OrtStatus *run_with_ort(const OrtApi *api, const OrtKernelContext *context, const npuq_call *call)
{
    const size_t units = npuq_call_units(call);
    struct batch batch = {call, units < 64 ? units : 64};

    return api->KernelContext_ParallelFor(context, run_batch, batch.shares, 0, &batch);
}

/* ---- without a session: batches in order ------------------------------------------------------------------------- */

static OrtStatus *run_in_order(const OrtKernelContext *context, void (*fn)(void *, size_t), size_t total,
                               size_t num_batch, void *data)
{
    (void)context;
    (void)num_batch;
    for (size_t i = 0; i < total; i++) {
        fn(data, i);
    }
    return NULL;
}

static void run_all(const npuq_call *call)
{
    static OrtApi api;

    api.KernelContext_ParallelFor = run_in_order;
    (void)run_with_ort(&api, NULL, call);
}

int main(void)
{
    return prepared_check("ONNX Runtime", run_all);
}
