/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for ONNX Runtime's header where ONNX Runtime is missing: the one function. */
#ifndef STANDIN_ONNXRUNTIME_C_API_H
#define STANDIN_ONNXRUNTIME_C_API_H

#include <stddef.h>

typedef struct OrtStatus OrtStatus;
typedef struct OrtKernelContext OrtKernelContext;

typedef struct OrtApi {
    OrtStatus *(*KernelContext_ParallelFor)(const OrtKernelContext *context, void (*fn)(void *, size_t), size_t total,
                                            size_t num_batch, void *usr_data);
} OrtApi;

#endif
