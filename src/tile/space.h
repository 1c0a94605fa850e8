/* SPDX-License-Identifier: BSD-3-Clause */
/* The index space of an operator. Its dimensions are ordered, joined where memory allows, walked as tiles of rows and
 * columns, and split into units for the caller's threads. */
#ifndef NPUQ_SPACE_H
#define NPUQ_SPACE_H

#include "../check/view.h"
#include "gather.h"

enum { NPUQ_MOST_OPERANDS = NPUQ_MOST_ARGUMENTS - 1 };

static inline size_t npuq_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t npuq_divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* For each operand (x, y if present, others) a pointer, and a stride in bytes for each dimension. The last dimension is
 * the columns, the others are the rows. */
typedef struct npuq_space {
    uint8_t ndim;               /* at least 1 */
    uint8_t operands;           /* in use: those from here on are absent, and not set */
    npuq_storage_word words[2]; /* of x and of y */
    uint8_t run_columns;        /* columns to one element of the other operands, see npuq_merge_short_runs(); else 1 */
    size_t run_rows;            /* of the last dimension of rows, to one element of the other operands */
    size_t extents[NPUQ_MAX_NDIM];
    char *data[NPUQ_MOST_OPERANDS];
    ptrdiff_t strides[NPUQ_MAX_NDIM][NPUQ_MOST_OPERANDS];
} npuq_space;

/* Takes the dimensions of a tensor whose shape counts elements, not words. All operands are still to be added, x and y
 * too. A scalar is one row of one column. */
void npuq_start_space(npuq_space *space, int operands, const npuq_tensor *elements, npuq_storage_word x_word,
                      npuq_storage_word y_word);

/* Sets an operand from a view with the first dimensions of the space. The other dimensions do not move it. */
void npuq_add_operand(npuq_space *space, int operand, const npuq_tensor *tensor);

/* Sets an operand that moves along one dimension only, or (dimension < 0) along none. */
void npuq_add_operand_along(npuq_space *space, int operand, const npuq_tensor *tensor, int dimension, int64_t stride);

typedef enum npuq_freedom {
    NPUQ_ANY_ORDER,    /* every element stands alone: dimensions may be swapped and turned round */
    NPUQ_KEEP_COLUMNS, /* the last dimension stays what it is; rows keep their order */
} npuq_freedom;

/* Drops, orders and joins dimensions. No extent may be 0. */
void npuq_normalise_space(npuq_space *space, npuq_freedom freedom);

/* Joins the last row dimension and its columns, at most `most`, into one row if x and y allow. The other operands then
 * move once in that many columns. Returns whether it joined them. */
bool npuq_merge_short_runs(npuq_space *space, size_t most);

bool npuq_operand_is_column_major(const npuq_space *space, int operand);

/* Whether the columns of x or y are contiguous. */
bool npuq_operand_is_contiguous(const npuq_space *space, int operand);

/* The most columns of a unit: `most`, or fewer where x or y is transposed. */
size_t npuq_limit_columns(const npuq_space *space, size_t most);

/* Words of an operand in these columns, which are whole words. */
size_t npuq_count_operand_words(const npuq_space *space, int operand, size_t columns);

size_t npuq_count_rows(const npuq_space *space);
size_t npuq_count_columns(const npuq_space *space);

/* Rows at an even distance, and where they lie in each operand. A column stride goes from one column, or from one run
 * of columns, to the next. */
typedef struct npuq_tile {
    size_t rows;
    size_t cols;
    size_t unit;
    uint8_t repeat;       /* columns of a run */
    uint8_t phase_in_run; /* columns of the first run before the tile */
    npuq_place places[NPUQ_MOST_OPERANDS];
    const ptrdiff_t *group_offsets; /* null, or for each row the bytes to its group's data */
} npuq_tile;

/* The tile that starts at this row and column (a multiple of x's and y's pack), at most this large; fewer rows
 * where the distance changes. */
void npuq_select_tile(const npuq_space *space, size_t row, size_t rows, size_t col, size_t cols, npuq_tile *tile);

typedef struct npuq_units {
    size_t rows;
    size_t cols;
    size_t unit_rows;
    size_t unit_cols;
    size_t across; /* units side by side */
    size_t count;
} npuq_units;

typedef struct npuq_unit {
    size_t row;
    size_t rows;
    size_t col;
    size_t cols;
} npuq_unit;

/* Units of about this many elements, no wider than most_cols; columns start at multiples of 64. No argument may be
 * 0. */
void npuq_cut_units(npuq_units *units, size_t rows, size_t cols, size_t elements, size_t most_cols);

/* Joins unit i and the next ones before `end` into one tile, *unit, as far as possible. Returns the number of joined
 * units. Many at once take less time: the memory after a unit is on its way already. */
size_t npuq_join_several_units(const npuq_units *units, size_t i, size_t end, npuq_unit *unit);

static inline size_t npuq_join_units(const npuq_units *units, size_t i, size_t end, npuq_unit *unit)
{
    if (units->count == 1) { /* a small call has no time for divisions */
        *unit = (npuq_unit){.rows = units->rows, .cols = units->cols};
        return 1;
    }
    return npuq_join_several_units(units, i, end, unit);
}

#endif
