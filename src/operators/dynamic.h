/* SPDX-License-Identifier: BSD-3-Clause */
/* The passes of dynamic quantisation over validated arguments: ranges of rows or of a tensor, parameters from ranges,
 * quantising with them; each by itself, or all together while rows are in the cache. */
#ifndef NPUQ_DYNAMIC_H
#define NPUQ_DYNAMIC_H

#include "../walk/dense.h"
#include "../walk/tile.h"

#include "../ref/npuq_ref_element.h"

/* Operands of the loop beside x and y: what there is one of for each row, or for the tensor. */
enum { NPUQ_DYNAMIC_SCALE = 2, NPUQ_DYNAMIC_OFFSET = 3, NPUQ_DYNAMIC_MIN = 2, NPUQ_DYNAMIC_MAX = 3 };

npuq_ref_parameters npuq_dynamic_parameters(npuq_dynamic_form form, npuq_ref_range range, npuq_ref_dtype y_dtype);

typedef struct npuq_dynamic npuq_dynamic;

/* What is done with at most block_rows rows of unit i. */
typedef void npuq_dynamic_pass(const npuq_dynamic *d, const npuq_rect *rect, const npuq_params *smooth, size_t i);

struct npuq_dynamic {
    npuq_kernel_choice choice;
    npuq_dynamic_form form;
    npuq_ref_dtype y_dtype;
    npuq_loop loop;
    bool per_tensor;
    const npuq_tensor *group_index; /* null: all rows take the smooth scales of group 0 */
    npuq_params smooth;             /* of group 0 */
    ptrdiff_t smooth_group_step;

    /* of the pass under way */
    npuq_dynamic_pass *pass;
    npuq_units units;
    size_t block_rows;
    size_t first_row;               /* of what has one range */
    npuq_ref_range *parts;          /* its units' */
    npuq_ref_range range;           /* its own */
    npuq_ref_parameters parameters; /* its own */
};

/* Sets all but the operands SCALE and OFFSET, or MIN and MAX, which npuq_dynamic_operand() adds. Without y nothing is
 * quantised. x is not empty. */
void npuq_dynamic_over(npuq_dynamic *d, npuq_dynamic_form form, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                       const npuq_tensor *group_index, npuq_quant_mode quant_mode, const npuq_tensor *y);
void npuq_dynamic_operand(npuq_dynamic *d, int operand, const npuq_tensor *tensor);

/* Ranges to MIN and MAX. */
void npuq_dynamic_ranges(npuq_dynamic *d, const npuq_executor *executor);

/* Ranges, parameters to SCALE and, if there are any, OFFSET, and y. */
void npuq_dynamic_quantise(npuq_dynamic *d, const npuq_executor *executor);

/* The same at once for dense tensors, see walk/dense.h, as so many rows, if the first says that it takes them. offset
 * may be null. */
bool npuq_dynamic_suits_dense(const npuq_dense *dense, const npuq_tensor *smooth_scales);
void npuq_dynamic_quantise_dense(npuq_dynamic_form form, const npuq_dense *dense, const npuq_tensor *x,
                                 const npuq_tensor *smooth_scales, const npuq_tensor *group_index, const npuq_tensor *y,
                                 const npuq_tensor *scale, const npuq_tensor *offset);

/* y, with the parameters in SCALE and OFFSET, or symmetric with the ranges in MIN and MAX. */
void npuq_dynamic_requantise(npuq_dynamic *d, const npuq_executor *executor);

#endif
