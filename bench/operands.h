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
    void *x_memory;         /* the start of x's bytes; x.data may be at another element */
    void *other;            /* the baseline's input: usual data, or room for a contiguous copy of a view */
    size_t x_bytes;
    size_t y_bytes;
    size_t parameter_bytes; /* read besides x */
    size_t small_out_bytes; /* written besides y */
    void *expected;         /* the reference's outputs */
    void *expected_scale;
    void *expected_offset;
    void *copy; /* where memcpy writes; (x_bytes + y_bytes) / 2 */
    void *memory[OPERANDS_MEMORY];
    size_t memory_size[OPERANDS_MEMORY];
    int memory_count;
};

/* Bytes that the call reads of a parameter: only those of groups with rows. 0 without the parameter. */
size_t operands_parameter_bytes(const struct operands *o, const npuq_tensor *parameter);

void operands_make(struct operands *o, const struct bench_case *c);
void operands_free(struct operands *o);

npuq_status operands_call(const struct operands *o, const npuq_executor *executor);

/* Makes the tensors anew, and calls. */
npuq_status operands_call_with_tensors(struct operands *o);

/* Fails for trans_quant_param, and for one scale of a whole tensor. */
npuq_status operands_prepare(const struct operands *o, npuq_call *call);

/* Runs the baseline of the case: the same call with usual data, or with the view copied by plain loops, or on one
 * thread. */
npuq_status operands_baseline(const struct operands *o);

/* Runs the reference, whose results every backend must give, and leaves its backend set. False if it fails. */
bool operands_expect(const struct operands *o);

/* Counts the elements, scales and offsets that differ from the reference's. */
size_t operands_differing(const struct operands *o);

#endif
