/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes a tile to a kernel, as blocks of contiguous rows. The rows stay where they are, or go through a small buffer on
 * the stack. Several short rows become one. */
#ifndef NPUQ_STAGE_H
#define NPUQ_STAGE_H

#include "params.h"
#include "space.h"

typedef struct npuq_kernel_setup {
    const npuq_row_kernels *kernels;
    uint8_t types[NPUQ_MOST_OPERANDS]; /* npuq_type */
    uint8_t op;                        /* npuq_affine_op */
    uint8_t steps;                     /* npuq_steps */
    npuq_storage_word words[2];        /* of x and of y */
    npuq_memory_plan memory;
    uint8_t flip;      /* of blocks */
    uint8_t rounding;  /* npuq_small_rounding, of quantisation to floats of 4 bits; else 0 */
    bool f16_in_place; /* kernels read parameters by column as float16: for few rows, converting takes longer */
} npuq_kernel_setup;

/* The parameters of a tile's columns, and of its rows. */
static inline npuq_params npuq_make_params(const npuq_kernel_setup *setup, const npuq_tile *tile, int operand)
{
    const npuq_place *place = &tile->places[operand];

    return (npuq_params){place->data, place->col_stride, setup->types[operand], tile->repeat, tile->phase_in_run};
}

static inline npuq_params npuq_make_row_params(const npuq_kernel_setup *setup, const npuq_tile *tile, int operand)
{
    const npuq_place *place = &tile->places[operand];

    return (npuq_params){place->data, place->row_stride, setup->types[operand], 1, 0};
}

/* An operand that is one for the tile, as binary32: in place, or converted into *buffer. Null where it is absent. */
static inline NPUQ_INLINED const float *npuq_convert_one(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                                         int operand, float *buffer)
{
    const char *data = tile->places[operand].data;

    return !data || setup->types[operand] == NPUQ_TYPE_FLOAT32
               ? (const float *)(const void *)data
               : npuq_convert_any_params(setup->kernels, npuq_make_row_params(setup, tile, operand), 1, buffer);
}

static inline bool npuq_is_contiguous(const npuq_kernel_setup *setup, const npuq_tile *tile, int operand)
{
    const npuq_storage_word word = setup->words[operand];

    return tile->places[operand].col_stride == (ptrdiff_t)word.size || npuq_count_words(word, tile->cols) == 1;
}

/* Short rows that do not follow one another are faster gathered than one by one. */
static inline bool npuq_is_better_staged(const npuq_kernel_setup *setup, const npuq_tile *tile, int operand)
{
    return tile->rows > 1 && tile->cols < NPUQ_SHORT &&
           tile->places[operand].row_stride != (ptrdiff_t)npuq_count_bytes(setup->words[operand], tile->cols);
}

/* Whether kernels take an operand's rows where they are. */
static inline bool npuq_is_in_place(const npuq_kernel_setup *setup, const npuq_tile *tile, int operand)
{
    return !npuq_is_better_staged(setup, tile, operand) && npuq_is_contiguous(setup, tile, operand);
}

static inline bool npuq_are_in_place(const npuq_kernel_setup *setup, const npuq_tile *tile, bool writes_y)
{
    return npuq_is_in_place(setup, tile, NPUQ_AT_X) && (!writes_y || npuq_is_in_place(setup, tile, NPUQ_AT_Y));
}

/* The rows of a tile that is in place. */
static inline NPUQ_INLINED npuq_block npuq_make_block(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                                      bool writes_y)
{
    const npuq_place *x = &tile->places[NPUQ_AT_X];
    const npuq_place *y = &tile->places[NPUQ_AT_Y];
    const size_t row_bytes = npuq_count_bytes(setup->words[NPUQ_AT_X], tile->cols);
    const npuq_hints hints = writes_y ? setup->memory.writes : setup->memory.reads;

    return (npuq_block){x->data,
                        y->data,
                        x->row_stride,
                        y->row_stride,
                        tile->rows,
                        tile->cols,
                        0,
                        npuq_hint_rows(hints, tile->rows, row_bytes, x->row_stride),
                        setup->flip};
}

/* Whether a tile is one block, without rows to join, as most tiles are. */
static inline NPUQ_INLINED bool npuq_is_block(const npuq_kernel_setup *setup, const npuq_tile *tile)
{
    return (tile->rows == 1 || tile->cols >= NPUQ_SHORT) &&
           tile->places[NPUQ_AT_X].col_stride == (ptrdiff_t)setup->words[NPUQ_AT_X].size &&
           tile->places[NPUQ_AT_Y].col_stride == (ptrdiff_t)setup->words[NPUQ_AT_Y].size;
}

/* The place of rows of this many words that follow one another in a buffer. */
npuq_place npuq_describe_staged(char *buffer, npuq_storage_word word, size_t words);

/* For x that is read more than once. If x is not in place and fits the buffer, copies x there, points the tile at the
 * copy, and returns true. The buffer has NPUQ_STAGED bytes and is aligned to x's elements. */
bool npuq_gather_x(const npuq_kernel_setup *setup, npuq_tile *tile, char *buffer);

/* ---- short rows: several taken as one ---------------------------------------------------------------------------- */

size_t npuq_count_joinable(const npuq_kernel_setup *setup, const npuq_tile *tile);

/* How many rows to join to one long row, which fills vectors and repeats its parameters by column. 1 where rows are
 * long, or do not follow one another. */
static inline size_t npuq_count_rows_to_join(const npuq_kernel_setup *setup, const npuq_tile *tile)
{
    return tile->cols >= NPUQ_SHORT || tile->rows == 1 ? 1 : npuq_count_joinable(setup, tile);
}

/* ---- passes: a kernel over a tile -------------------------------------------------------------------------------- */

/* Sets a kernel's parameters for n columns, or for n rows that are joined, from the first one on. */
typedef void npuq_params_fn(void *job, size_t first, size_t n);

typedef struct npuq_pass {
    npuq_rows_fn *kernel;
    const void *params;      /* of the kernel */
    bool writes_y;           /* else the kernel only reads x */
    size_t join;             /* rows that are taken as one, at most */
    npuq_params_fn *columns; /* null if the parameters are set for all columns */
    npuq_params_fn *rows;    /* null if they are set for all joined rows; else join is more than 1 */
    void *job;
    size_t most_columns; /* to set parameters for; a multiple of 64, or SIZE_MAX */
} npuq_pass;

/* As many rows as follow one another: their parameters are the same. */
#define NPUQ_ALL_ROWS SIZE_MAX

/* Joins rows where the pass does. */
NPUQ_NOT_INLINED void npuq_run_block(const npuq_kernel_setup *setup, const npuq_pass *pass, const npuq_block *block);

/* Not inlined: the caller would keep a buffer. */
NPUQ_NOT_INLINED void npuq_run_pass_in_parts(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                             const npuq_pass *pass);

static inline NPUQ_INLINED void npuq_run_pass(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                              const npuq_pass *pass)
{
    if (tile->cols <= pass->most_columns && npuq_are_in_place(setup, tile, pass->writes_y)) {
        const npuq_block block = npuq_make_block(setup, tile, pass->writes_y);

        if (pass->columns) {
            pass->columns(pass->job, 0, tile->cols);
        }
        if (pass->join == 1) {
            pass->kernel(&block, pass->params);
        } else {
            npuq_run_block(setup, pass, &block);
        }
    } else {
        npuq_run_pass_in_parts(setup, tile, pass);
    }
}

/* Whether kernels take parameters by column where they lie as halves of x's type; smooth scales, so or as binary32. */
static inline NPUQ_INLINED bool npuq_are_half_columns(const npuq_kernel_setup *setup, const npuq_params *columns)
{
    return columns->data && columns->type == setup->types[NPUQ_AT_X] &&
           (columns->type == NPUQ_TYPE_BFLOAT16 || (columns->type == NPUQ_TYPE_FLOAT16 && setup->f16_in_place)) &&
           columns->stride == (ptrdiff_t)sizeof(uint16_t) && columns->repeat == 1 && setup->kernels->takes_any_columns;
}

static inline NPUQ_INLINED bool npuq_is_ready_smooth(const npuq_kernel_setup *setup, const npuq_params *smooth)
{
    return !npuq_needs_conversion(smooth) || npuq_are_half_columns(setup, smooth);
}

/* A pass where only the smooth scales go by column: sets *to, a member of params, to those of some columns. They may
 * be absent. Not inlined: the caller would keep a buffer. Takes a copy: a variable without an address stays in
 * registers. */
NPUQ_NOT_INLINED void npuq_run_smooth_pass(const npuq_kernel_setup *setup, const npuq_tile *tile, npuq_rows_fn *kernel,
                                           const void *params, const void **to, npuq_params smooth, bool writes_y);

const void *npuq_repeat(void *buffer, const void *values, size_t n, size_t times);

/* The n values, `times` over, in the buffer, which may hold them already. If once is enough, the values themselves. */
static inline const void *npuq_repeated(void *buffer, const void *values, size_t n, size_t times)
{
    return times == 1 ? values : npuq_repeat(buffer, values, n, times);
}

/* Parameters of the first n columns as kernels read them, `times` over. */
static inline const float *npuq_convert_repeated(const npuq_row_kernels *kernels, const npuq_params *params, size_t n,
                                                 size_t times, float *buffer)
{
    return npuq_repeated(buffer, npuq_convert_params(kernels, params, n, buffer), n, times);
}

#endif
