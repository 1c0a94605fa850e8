/* SPDX-License-Identifier: BSD-3-Clause */
/* From a tile of strided elements to the row kernels: parameters are converted in runs that fit the cache, and
 * columns that are not contiguous go through a small buffer on the stack. */
#ifndef NPUQ_TILE_H
#define NPUQ_TILE_H

#include "../plan/memory_plan.h"
#include "../plan/space.h"
#include "params.h"

/* Bytes of a buffer through which columns go that are not contiguous. */
enum { NPUQ_STAGED = 16384 };

/* What a call quantises from and to, and with which kernels. */
typedef struct npuq_kernel_choice {
    const npuq_row_kernels *kernels;
    npuq_type x;
    npuq_type y;
    npuq_affine_op op;
    npuq_storage_word words[2]; /* of x and of y */
    npuq_memory_plan memory;
} npuq_kernel_choice;

/* With the kernels of the active backend, for what is in the caches. */
void npuq_choose_kernels(npuq_kernel_choice *choice, const npuq_type_info *x, const npuq_type_info *y,
                         npuq_affine_op op);

/* For x that is read more than once: if it is not contiguous and fits the buffer of NPUQ_STAGED bytes, which is aligned
 * to its elements at least, copies it there and has the tile point to the copy. Returns whether it did. */
bool npuq_gather_x(const npuq_kernel_choice *choice, npuq_tile *tile, char *buffer);

/* Rows of fewer columns, with parameters by column, are taken together, as fewer and longer ones. */
enum { NPUQ_SHORT_BY_COLUMN = 64 };

/* Row r takes parameter r. */
void npuq_quantise_by_row(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *scale,
                          const npuq_params *offset);

/* Column c takes parameter c. */
void npuq_quantise_by_column(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *scale,
                             const npuq_params *offset);

/* What integers are dequantised with; absent ones are left out. Scale and offset are for each column, or where their
 * steps are 0 one for all; a bias is for each column. */
typedef struct npuq_dequant_columns {
    npuq_params scale;       /* or words of trans_quant_param, which have an offset each */
    npuq_params addend;      /* to int8 and int4 the offset, before the product; to int32 the bias: one of int32 is
                                added first, others after the product */
    bool words_have_offsets; /* one of them is not 0 */
} npuq_dequant_columns;

/* Rows of a tile that npuq_dequantise_tile() takes at most where row_scale has to be converted, and columns whose
 * parameters it converts at a time: fewer than elsewhere, as there are more kinds of them on the stack. */
enum { NPUQ_DEQUANT_ROWS = 512, NPUQ_DEQUANT_COLUMNS = 2048 };

/* Whether scale or offset differ from column to column. */
bool npuq_dequantises_by_column(const npuq_kernel_choice *choice, const npuq_dequant_columns *columns);

/* Whether parameters by column have to be converted or copied before the kernels can read them. */
bool npuq_converts_columns(const npuq_kernel_choice *choice, const npuq_dequant_columns *columns);

/* See npuq_dequant_fn. Columns are those of the tile's col 0; row_scale goes by row, unless it is absent. */
void npuq_dequantise_tile(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_dequant_columns *columns,
                          const npuq_params *row_scale);

/* hi[r], lo[r]: widened by the values of row r, times smooth by column unless it is absent. */
void npuq_widen_ranges(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *smooth, float *hi,
                       float *lo);

/* Whether the tile's rows are at least two, of fewer than NPUQ_SHORT columns, and one after the other in x. */
bool npuq_are_short_rows(const npuq_kernel_choice *choice, const npuq_tile *tile);

/* At most NPUQ_SHORT_ROWS of them: values, with room for NPUQ_SHORT * NPUQ_SHORT_ROWS + NPUQ_LANES, becomes x times
 * smooth as binary32, hi and lo the ranges, and choice and tile describe values in the place of x. */
void npuq_take_short_rows(npuq_kernel_choice *choice, npuq_tile *tile, const npuq_params *smooth, float *values,
                          float *hi, float *lo);

/* y = sat(round((x * smooth) * inverse_scale[r * step] + offset[r * step])), smooth by column, unless it is absent. */
void npuq_requantise_tile(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *smooth,
                          const float *inverse_scale, const float *offset, size_t step);

#endif
