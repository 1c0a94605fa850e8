/* SPDX-License-Identifier: BSD-3-Clause */
/* The row kernels, written once over the words of vec_required.h. An ISA's file includes its vector header, defines
 * NPUQ_KERNEL to give kernels its suffix, includes this, and defines its table with NPUQ_ROW_TABLE. Types, operation
 * and the source of parameters reach the inline functions as constants. */
#ifndef NPUQ_ROW_KERNELS_H
#define NPUQ_ROW_KERNELS_H

#include "dequantise.h"
#include "packing.h"
#include "quantise.h"
#include "ranges.h"
#include "short_rows.h"

#endif
