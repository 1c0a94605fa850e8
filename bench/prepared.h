/* SPDX-License-Identifier: BSD-3-Clause */
/* What a small call is made of: the same work on one row, from the kernel alone to a call whose tensors are made anew.
 */
#ifndef NPUQ_BENCH_PREPARED_H
#define NPUQ_BENCH_PREPARED_H

#include "operands.h"

#include "backend/row.h"

struct prepared {
    struct operands *operands;
    npuq_call call;
    npuq_block row;
    npuq_x_type x_type;
    npuq_y_type y_type;
    const npuq_row_kernels *kernels;
    float zero_point; /* as the kernel takes it */
    void (*run_kernel)(struct prepared *p);
};

/* For the backend that is active. */
npuq_status prepared_make(struct prepared *p, struct operands *o);

/* Each writes all outputs of the operands. */
void prepared_run_kernel(struct prepared *p);
void prepared_run_with_state(struct prepared *p);
void prepared_run_call(struct prepared *p);
void prepared_run_with_tensors(struct prepared *p);

#endif
