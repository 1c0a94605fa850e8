/* SPDX-License-Identifier: BSD-3-Clause */
#include "space.h"

#include "memory_plan.h"

#include <string.h>

/* Contiguous columns of x that make it worth while to scatter y instead of gathering x. */
enum { LEADING_COLUMNS = 64 };

void npuq_start_space(npuq_space *space, int operands, const npuq_tensor *elements, npuq_storage_word x_word,
                      npuq_storage_word y_word)
{
    assert(operands > NPUQ_AT_Y && operands <= NPUQ_MOST_OPERANDS && elements->ndim <= NPUQ_MAX_NDIM);
    space->ndim = (uint8_t)(elements->ndim > 0 ? elements->ndim : 1);
    space->operands = (uint8_t)operands;
    space->words[NPUQ_AT_X] = x_word;
    space->words[NPUQ_AT_Y] = y_word;
    space->run_columns = 1;
    space->run_rows = 1;
    /* All operands: gcc clears a part of an array by 'rep stos', which starts slowly. */
    for (int i = 0; i < NPUQ_MOST_OPERANDS; i++) {
        space->data[i] = NULL;
    }
    for (int d = 0; d < space->ndim; d++) { /* no more than that: a small call's time would go into clearing the rest */
        space->extents[d] = d < elements->ndim ? (size_t)elements->shape[d] : 1;
        for (int i = 0; i < NPUQ_MOST_OPERANDS; i++) {
            space->strides[d][i] = 0;
        }
    }
}

void npuq_add_operand(npuq_space *space, int operand, const npuq_tensor *tensor)
{
    /* A tensor without elements may have any strides: none of them is used. */
    const int64_t size = npuq_count_elements(tensor) > 0 ? npuq_find_type(tensor->dtype)->word.size : 0;

    assert(operand < space->operands && tensor->ndim <= space->ndim);
    space->data[operand] = tensor->data;
    for (int d = 0; d < tensor->ndim; d++) {
        /* An extent of 1 may, too. A word gets a word's stride, to join with the rows; one element for all columns
         * 0. */
        const bool is_word = d == space->ndim - 1 && (operand <= NPUQ_AT_Y || space->extents[d] == 1);
        const int64_t stride = tensor->shape[d] > 1 ? tensor->strides[d] : is_word;

        space->strides[d][operand] = (ptrdiff_t)(stride * size);
    }
}

void npuq_add_operand_along(npuq_space *space, int operand, const npuq_tensor *tensor, int dimension, int64_t stride)
{
    assert(operand < space->operands && dimension < space->ndim);
    space->data[operand] = tensor->data;
    if (dimension >= 0) {
        space->strides[dimension][operand] = (ptrdiff_t)(stride * npuq_find_type(tensor->dtype)->word.size);
    }
}

static void move_dimension(npuq_space *space, int to, int from)
{
    if (to != from) {
        space->extents[to] = space->extents[from];
        memcpy(space->strides[to], space->strides[from], sizeof space->strides[to]);
    }
}

static void turn_round(npuq_space *space, int d)
{
    for (int i = 0; i < space->operands; i++) {
        if (space->data[i]) {
            space->data[i] += (ptrdiff_t)(space->extents[d] - 1) * space->strides[d][i];
        }
        space->strides[d][i] = -space->strides[d][i];
    }
}

/* Columns in a word. If there are several, only the last dimension can be the columns. */
static size_t count_elements_in_words(const npuq_space *space)
{
    const size_t x = npuq_count_elements_in(space->words[NPUQ_AT_X]);
    const size_t y = npuq_count_elements_in(space->words[NPUQ_AT_Y]);

    return x > y ? x : y;
}

static bool is_packed(const npuq_space *space)
{
    return count_elements_in_words(space) > 1;
}

size_t npuq_count_operand_words(const npuq_space *space, int operand, size_t columns)
{
    return operand <= NPUQ_AT_Y      ? npuq_count_words(space->words[operand], columns)
           : space->run_columns == 1 ? columns
                                     : columns / space->run_columns;
}

/* The extent of an operand's contiguous dimension; 0 if there is none, or if another dimension has smaller steps. */
static size_t contiguous_extent(const npuq_space *space, int operand)
{
    ptrdiff_t least = PTRDIFF_MAX;
    size_t extent = 0;

    for (int d = 0; d < space->ndim; d++) {
        const ptrdiff_t step = npuq_distance(space->strides[d][operand]);

        if (step < least) {
            least = step;
            extent = space->extents[d];
        }
    }
    return least == (ptrdiff_t)space->words[operand].size ? extent : 0;
}

/* The operand that gives the order. Where x and y differ, the other one is gathered or scattered: the one of larger
 * elements leads. But x leads only with enough contiguous columns, because each row has its cost. */
static int leading_operand(const npuq_space *space)
{
    if (!space->data[NPUQ_AT_Y]) {
        return NPUQ_AT_X;
    }
    return space->data[NPUQ_AT_X] && space->words[NPUQ_AT_X].size > space->words[NPUQ_AT_Y].size && !is_packed(space) &&
                   contiguous_extent(space, NPUQ_AT_X) >= LEADING_COLUMNS
               ? NPUQ_AT_X
               : NPUQ_AT_Y;
}

/* Largest steps of the leading operand first, so that the columns lie close together. */
static void order_dimensions(npuq_space *space, int lead)
{
    for (int i = 1; i < space->ndim; i++) {
        const size_t extent = space->extents[i];
        ptrdiff_t strides[NPUQ_MOST_OPERANDS];
        int at = i;

        memcpy(strides, space->strides[i], sizeof strides);
        while (at > 0 && npuq_distance(space->strides[at - 1][lead]) < npuq_distance(strides[lead])) {
            move_dimension(space, at, at - 1);
            at--;
        }
        space->extents[at] = extent;
        memcpy(space->strides[at], strides, sizeof strides);
    }
}

/* Whether one step of dimension outer is as far as all of dimension inner, for every operand. */
static bool can_join(const npuq_space *space, int outer, int inner)
{
    for (int i = 0; i < space->operands; i++) {
        const bool are_columns = inner == space->ndim - 1;
        const size_t extent = space->extents[inner];
        const size_t steps = are_columns ? npuq_count_operand_words(space, i, extent) : extent;

        if (space->data[i] && space->strides[outer][i] != space->strides[inner][i] * (ptrdiff_t)steps) {
            return false;
        }
    }
    return true;
}

static void join_dimensions(npuq_space *space, bool into_columns)
{
    for (int outer = space->ndim - 2; outer >= 0; outer--) {
        const int inner = outer + 1;
        const bool are_runs = space->run_rows > 1 && inner == space->ndim - 2; /* they begin anew in each */
        if ((inner == space->ndim - 1 && !into_columns) || are_runs || !can_join(space, outer, inner)) {
            continue;
        }
        space->extents[inner] *= space->extents[outer];
        for (int d = outer; d < space->ndim - 1; d++) {
            move_dimension(space, d, d + 1);
        }
        space->ndim--;
    }
}

void npuq_normalise_space(npuq_space *space, npuq_freedom freedom)
{
    const bool any_order = freedom == NPUQ_ANY_ORDER;
    const bool fixed_columns = !any_order || is_packed(space);
    const int free_dims = fixed_columns ? space->ndim - 1 : space->ndim;
    int kept = 0;

    for (int d = 0; d < space->ndim; d++) {
        assert(space->extents[d] > 0);
        if (space->extents[d] > 1 || d >= free_dims) {
            move_dimension(space, kept++, d);
        }
    }
    if (kept == 0) { /* a single element: any dimension will do */
        kept = 1;
    }
    space->ndim = (uint8_t)kept;

    if (any_order) {
        const int columns = fixed_columns ? 1 : 0;
        const int lead = leading_operand(space);

        for (int d = 0; d < space->ndim - columns; d++) {
            if (space->strides[d][lead] < 0) {
                turn_round(space, d);
            }
        }
        space->ndim = (uint8_t)(space->ndim - columns);
        order_dimensions(space, lead);
        space->ndim = (uint8_t)(space->ndim + columns);
    }
    join_dimensions(space, any_order);
}

bool npuq_merge_short_runs(npuq_space *space, size_t most)
{
    const int inner = space->ndim - 1;
    const int outer = inner - 1;
    const size_t columns = space->extents[inner];

    assert(most <= UINT8_MAX);
    if (outer < 0 || columns == 1 || columns > most || is_packed(space)) {
        return false;
    }
    for (int i = NPUQ_AT_X; i <= NPUQ_AT_Y; i++) {
        if (space->strides[outer][i] != space->strides[inner][i] * (ptrdiff_t)columns) {
            return false;
        }
    }
    space->extents[outer] *= columns;
    space->strides[outer][NPUQ_AT_X] = space->strides[inner][NPUQ_AT_X];
    space->strides[outer][NPUQ_AT_Y] = space->strides[inner][NPUQ_AT_Y];
    space->run_columns = (uint8_t)columns;
    space->ndim--;
    return true;
}

bool npuq_operand_is_column_major(const npuq_space *space, int operand)
{
    if (space->ndim < 2) {
        return false;
    }

    const ptrdiff_t *outer = space->strides[space->ndim - 2];
    const ptrdiff_t *inner = space->strides[space->ndim - 1];

    return space->data[operand] && npuq_are_column_major(outer[operand], inner[operand]);
}

bool npuq_operand_is_contiguous(const npuq_space *space, int operand)
{
    return !space->data[operand] || space->strides[space->ndim - 1][operand] == (ptrdiff_t)space->words[operand].size;
}

size_t npuq_limit_columns(const npuq_space *space, size_t most)
{
    const bool narrow =
        npuq_operand_is_column_major(space, NPUQ_AT_X) || npuq_operand_is_column_major(space, NPUQ_AT_Y);

    return narrow && most > NPUQ_ACROSS_COLUMNS ? NPUQ_ACROSS_COLUMNS : most;
}

size_t npuq_count_rows(const npuq_space *space)
{
    size_t rows = 1;
    for (int d = 0; d < space->ndim - 1; d++) {
        rows *= space->extents[d];
    }
    return rows;
}

size_t npuq_count_columns(const npuq_space *space)
{
    return space->extents[space->ndim - 1];
}

void npuq_select_tile(const npuq_space *space, size_t row, size_t rows, size_t col, size_t cols, npuq_tile *tile)
{
    const int last = space->ndim - 1;

    assert(rows > 0 && row < npuq_count_rows(space) && rows <= npuq_count_rows(space) - row);
    assert(cols > 0 && col <= space->extents[last] && cols <= space->extents[last] - col);
    assert(cols % count_elements_in_words(space) == 0 && col % count_elements_in_words(space) == 0);
    tile->rows = 1;
    tile->cols = cols;
    tile->repeat = space->run_columns;
    tile->phase_in_run = (uint8_t)(space->run_columns == 1 ? 0 : col % space->run_columns);
    for (int i = 0; i < space->operands; i++) {
        tile->places[i] = (npuq_place){space->data[i], 0, space->strides[last][i]};
        if (tile->places[i].data && col > 0) {
            tile->places[i].data += (ptrdiff_t)npuq_count_operand_words(space, i, col) * tile->places[i].col_stride;
        }
    }
    for (int d = last - 1; d >= 0; d--) {
        const size_t index = d > 0 ? row % space->extents[d] : row;
        const size_t others = space->run_rows > 1 && d == last - 1 ? index / space->run_rows : index;

        row = d > 0 ? row / space->extents[d] : 0;
        for (int i = 0; i < space->operands; i++) {
            if (tile->places[i].data) {
                tile->places[i].data += (ptrdiff_t)(i <= NPUQ_AT_Y ? index : others) * space->strides[d][i];
            }
            if (d == last - 1) {
                tile->places[i].row_stride = space->strides[d][i];
            }
        }
        if (d == last - 1) {
            tile->rows = npuq_smaller(rows, space->extents[d] - index);
        }
    }
}

void npuq_cut_units(npuq_units *units, size_t rows, size_t cols, size_t elements, size_t most_cols)
{
    assert(rows > 0 && cols > 0 && elements > 0 && most_cols > 0);
    units->rows = rows;
    units->cols = cols;
    units->unit_rows = rows;
    units->unit_cols = cols;
    units->across = 1;
    units->count = 1;
    if (cols > most_cols) {
        units->unit_cols = npuq_divide_up(most_cols, 64) * 64;
        units->across = npuq_divide_up(cols, units->unit_cols);
        units->count = units->across;
    }
    if (rows > 1 && rows > elements / units->unit_cols) {
        units->unit_rows = units->unit_cols < elements ? elements / units->unit_cols : 1;
        units->count *= npuq_divide_up(rows, units->unit_rows);
    }
}

size_t npuq_join_several_units(const npuq_units *units, size_t i, size_t end, npuq_unit *unit)
{
    const size_t down = units->across > 1 ? i / units->across : i;
    const size_t right = i - down * units->across;
    size_t joined = end - i;

    assert(i < end && end <= units->count);
    if (units->across > 1) { /* side by side */
        joined = npuq_smaller(joined, units->across - right);
    }
    const size_t rows = units->across > 1 ? units->unit_rows : joined * units->unit_rows;
    const size_t cols = units->across > 1 ? joined * units->unit_cols : units->cols;

    unit->row = down * units->unit_rows;
    unit->col = right * units->unit_cols;
    unit->rows = npuq_smaller(units->rows - unit->row, rows);
    unit->cols = npuq_smaller(units->cols - unit->col, cols);
    return joined;
}
