/* SPDX-License-Identifier: BSD-3-Clause */
/* Which backend's kernels run. */
#ifndef NPUQ_DISPATCH_H
#define NPUQ_DISPATCH_H

#include "../inline.h"
#include "row.h"

#include <stdatomic.h>

typedef struct npuq_built_backend {
    npuq_backend id;
    const char *name;
    const npuq_row_kernels *kernels;
} npuq_built_backend;

/* The choice, made at the first call: null until then. */
extern _Atomic(const npuq_built_backend *) npuq_chosen_backend;
const npuq_built_backend *npuq_choose_backend(void);

static inline NPUQ_INLINED const npuq_row_kernels *npuq_kernels(void)
{
    const npuq_built_backend *chosen = atomic_load_explicit(&npuq_chosen_backend, memory_order_acquire);

    return (chosen ? chosen : npuq_choose_backend())->kernels;
}

#endif
