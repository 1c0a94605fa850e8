/* SPDX-License-Identifier: BSD-3-Clause */
/* Which backend's kernels run. */
#ifndef NPUQ_DISPATCH_H
#define NPUQ_DISPATCH_H

#include "row.h"

const npuq_row_kernels *npuq_kernels(void);

#endif
