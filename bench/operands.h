/* SPDX-License-Identifier: BSD-3-Clause */
/* The tensors of a case, and the calls that are timed. */
#ifndef NPUQ_BENCH_OPERANDS_H
#define NPUQ_BENCH_OPERANDS_H

#include "cases.h"

enum { OPERANDS_MEMORY = 13 };

struct operands {
    const struct bench_case *c;
    npuq_tensor x;
    npuq_tensor y;
    npuq_tensor scale;            /* scales, smooth scales, weight_scale, words */
    npuq_tensor offset;           /* zero points, bias */
    npuq_tensor activation_scale; /* dequant */
    npuq_tensor group_index;
    npuq_tensor scale_out;  /* dynamic */
    npuq_tensor offset_out; /* dynamic_quant_asymmetric */
    void *x_memory;         /* where x's bytes begin; x.data may be at another element */
    void *other;            /* usual data, or room for a contiguous copy of a view: what the baseline takes */
    size_t x_bytes;
    size_t y_bytes;
    size_t parameter_bytes; /* read besides x */
    size_t small_out_bytes; /* written besides y */
    void *expected;         /* what the reference writes to y; y_bytes */
    float *expected_small;  /* and what it writes besides; small_out_bytes */
    void *copy;             /* where memcpy writes; (x_bytes + y_bytes) / 2 */
    void *memory[OPERANDS_MEMORY];
    size_t memory_size[OPERANDS_MEMORY];
    int memory_count;
};

/* Bytes of a parameter that are read, which is not all of it where groups have no row; 0 if it is not given. */
size_t operands_parameter_bytes(const struct operands *o, const npuq_tensor *parameter);

/* False if there is not enough memory. */
bool operands_make(struct operands *o, const struct bench_case *c);
void operands_free(struct operands *o);

/* The case itself. */
npuq_status operands_call(const struct operands *o, const npuq_executor *executor);

/* The same, after making each tensor what it was. */
npuq_status operands_call_with_tensors(struct operands *o);

/* Prepares it. Not trans_quant_param, nor one scale that is found for a whole tensor. */
bool operands_can_prepare(const struct bench_case *c);
npuq_status operands_prepare(const struct operands *o, npuq_call *call);

/* What the case is set against. */
npuq_status operands_baseline(const struct operands *o);

/* The row kernels of quantize (multiplying) or dynamic_quant_asymmetric (per token) to int8, without the call around
 * them, from two dimensions; `ahead` as in npuq_block. No scales or offsets are written. */
void operands_row_kernel(const struct operands *o, size_t ahead);

/* Runs the reference; its results are expected from every backend. False if it fails. */
bool operands_expect(struct operands *o);

/* How many elements (or scales or offsets) of the outputs are not as expected. */
size_t operands_differing(const struct operands *o);

#endif
