/* SPDX-License-Identifier: BSD-3-Clause */
/* From a rectangle of strided elements to the row kernels: parameters are converted in runs that fit the cache, and
 * columns that are not contiguous go through a small buffer on the stack. */
#ifndef NPUQ_TILE_H
#define NPUQ_TILE_H

#include "../backend/row.h"
#include "loop.h"
#include "params.h"

/* Bytes of x prefetched ahead of a pass that reads it from memory. */
enum { NPUQ_AHEAD = 3072 };

/* Bytes of a buffer through which columns go that are not contiguous. */
enum { NPUQ_STAGED = 16384 };

/* What a call quantises from and to, and with which kernels. */
typedef struct npuq_kernel_choice {
    const npuq_row_kernels *kernels;
    npuq_x_type x;
    npuq_y_type y;
    npuq_affine_op op;
    size_t ahead; /* of the pass that writes y, see npuq_block; 0 where all stays in the caches */
} npuq_kernel_choice;

void npuq_choose_kernels(npuq_kernel_choice *choice, npuq_dtype x, npuq_dtype y, npuq_affine_op op);

/* Whether x and y of this many elements together are so large that writing y around the caches pays. */
bool npuq_exceeds_caches(const npuq_kernel_choice *choice, size_t elements);

/* For x that is read more than once: if it is not contiguous and fits the buffer of NPUQ_STAGED bytes, which is aligned
 * to its elements at least, copies it there and has the rectangle point to the copy. Returns whether it did. */
bool npuq_tile_gather_x(const npuq_kernel_choice *choice, npuq_rect *rect, char *buffer);

/* Rows of fewer columns, with parameters by column, are taken together, as fewer and longer ones. */
enum { NPUQ_SHORT_BY_COLUMN = 64 };

/* Row r takes parameter r. */
void npuq_tile_affine_by_row(const npuq_kernel_choice *choice, const npuq_rect *rect, const npuq_params *scale,
                             const npuq_params *offset);

/* Column c takes parameter c. */
void npuq_tile_affine_by_column(const npuq_kernel_choice *choice, const npuq_rect *rect, const npuq_params *scale,
                                const npuq_params *offset);

/* What integers are dequantised with; absent ones are left out. Scale, offset and words are for each column, or where
 * all their steps are 0 one for all; the biases are for each column. */
typedef struct npuq_dequant_columns {
    npuq_params scale;
    npuq_params offset;
    npuq_params words; /* of trans_quant_param, in the place of scale and offset */
    bool words_have_offsets;
    npuq_params x_bias; /* int32 */
    npuq_params bias;
} npuq_dequant_columns;

/* Rows of a rectangle that npuq_tile_dequant() takes at most where row_scale has to be converted, and columns whose
 * parameters it converts at a time: fewer than elsewhere, as there are more kinds of them on the stack. */
enum { NPUQ_DEQUANT_ROWS = 512, NPUQ_DEQUANT_COLUMNS = 2048 };

/* Whether scale, offset or words differ from column to column. */
bool npuq_dequant_by_column(const npuq_dequant_columns *columns);

/* Whether parameters by column have to be converted or copied before the kernels can read them. */
bool npuq_dequant_converts(const npuq_dequant_columns *columns);

/* See npuq_dequant_fn. The rectangle begins at column first_col of columns; row_scale goes by row, unless it is absent.
 */
void npuq_tile_dequant(const npuq_kernel_choice *choice, const npuq_rect *rect, const npuq_dequant_columns *columns,
                       size_t first_col, const npuq_params *row_scale);

/* hi[r], lo[r]: widened by the values of row r, times smooth by column unless it is absent. */
void npuq_tile_range(const npuq_kernel_choice *choice, const npuq_rect *rect, const npuq_params *smooth, float *hi,
                     float *lo);

/* The last that a task does: other threads may read y then. */
void npuq_tile_end(const npuq_kernel_choice *choice);

/* Whether the rectangle's rows are at least two, of fewer than NPUQ_SHORT columns, and one after the other in x. */
bool npuq_tile_are_short_rows(const npuq_kernel_choice *choice, const npuq_rect *rect);

/* At most NPUQ_SHORT_ROWS of them: values, with room for NPUQ_SHORT * NPUQ_SHORT_ROWS + NPUQ_LANES, becomes x times
 * smooth as binary32, hi and lo the ranges, and choice and rect describe values in the place of x. */
void npuq_tile_short_rows(npuq_kernel_choice *choice, npuq_rect *rect, const npuq_params *smooth, float *values,
                          float *hi, float *lo);

/* y = sat(round((x * smooth) * back[r * step] + offset[r * step])), smooth by column, unless it is absent. */
void npuq_tile_requantise(const npuq_kernel_choice *choice, const npuq_rect *rect, const npuq_params *smooth,
                          const float *back, const float *offset, size_t step);

#endif
