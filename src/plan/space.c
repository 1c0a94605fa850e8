/* SPDX-License-Identifier: BSD-3-Clause */
#include "space.h"

#include "../check/view.h"
#include "../tile/gather.h"

#include <string.h>

/* Columns of a unit where x or y lies across, so that it has rows enough to use up the lines of many columns. */
enum { ACROSS_COLUMNS = 256 };

/* Contiguous columns of x that make it worth while to scatter y instead of gathering x. */
enum { LEADING_COLUMNS = 64 };

void npuq_start_loop(npuq_loop *loop, const npuq_tensor *elements, npuq_storage_word x_word, npuq_storage_word y_word)
{
    assert(elements->ndim <= NPUQ_MAX_NDIM && x_word.size > 0 && y_word.size > 0);
    loop->ndim = elements->ndim > 0 ? elements->ndim : 1;
    loop->words[NPUQ_LOOP_X] = x_word;
    loop->words[NPUQ_LOOP_Y] = y_word;
    loop->shared_columns = 1;
    for (int i = 0; i < NPUQ_LOOP_OPERANDS; i++) {
        loop->data[i] = NULL;
    }
    for (int d = 0; d < loop->ndim; d++) { /* no more than that: a small call's time would go into clearing the rest */
        loop->extents[d] = d < elements->ndim ? (size_t)elements->shape[d] : 1;
        for (int i = 0; i < NPUQ_LOOP_OPERANDS; i++) {
            loop->strides[d][i] = 0;
        }
    }
}

void npuq_add_operand(npuq_loop *loop, int operand, const npuq_tensor *tensor)
{
    /* A tensor without elements may have any strides: none of them is used. */
    const int64_t size = npuq_count_elements(tensor) > 0 ? npuq_find_type(tensor->dtype)->word.size : 0;

    assert(operand < NPUQ_LOOP_OPERANDS && tensor->ndim <= loop->ndim);
    loop->data[operand] = tensor->data;
    for (int d = 0; d < tensor->ndim; d++) {
        /* So may an extent of 1: this stride joins the columns to the rows. */
        const int64_t stride = tensor->shape[d] > 1 ? tensor->strides[d] : d == loop->ndim - 1;
        loop->strides[d][operand] = (ptrdiff_t)(stride * size);
    }
}

void npuq_add_operand_along(npuq_loop *loop, int operand, const npuq_tensor *tensor, int dimension, int64_t stride)
{
    assert(operand < NPUQ_LOOP_OPERANDS && dimension < loop->ndim);
    loop->data[operand] = tensor->data;
    if (dimension >= 0) {
        loop->strides[dimension][operand] = (ptrdiff_t)(stride * npuq_find_type(tensor->dtype)->word.size);
    }
}

static void move_dimension(npuq_loop *loop, int to, int from)
{
    if (to != from) {
        loop->extents[to] = loop->extents[from];
        memcpy(loop->strides[to], loop->strides[from], sizeof loop->strides[to]);
    }
}

/* Walks a dimension from its other end. */
static void turn_round(npuq_loop *loop, int d)
{
    for (int i = 0; i < NPUQ_LOOP_OPERANDS; i++) {
        if (loop->data[i]) {
            loop->data[i] += (ptrdiff_t)(loop->extents[d] - 1) * loop->strides[d][i];
        }
        loop->strides[d][i] = -loop->strides[d][i];
    }
}

/* Columns come in so many at a time: where it is more than one, only the last dimension can be the columns. */
static size_t count_elements_in_words(const npuq_loop *loop)
{
    const size_t x = npuq_count_elements_in(loop->words[NPUQ_LOOP_X]);
    const size_t y = npuq_count_elements_in(loop->words[NPUQ_LOOP_Y]);

    return x > y ? x : y;
}

static bool is_packed(const npuq_loop *loop)
{
    return count_elements_in_words(loop) > 1;
}

/* How many words of an operand columns are, a multiple of the columns in one. */
static size_t count_operand_words(const npuq_loop *loop, int operand, size_t columns)
{
    return operand <= NPUQ_LOOP_Y      ? npuq_count_words(loop->words[operand], columns)
           : loop->shared_columns == 1 ? columns
                                       : columns / loop->shared_columns;
}

/* The extent of the dimension in which an operand is contiguous. 0 if there is none, or another one has smaller steps.
 */
static size_t contiguous_extent(const npuq_loop *loop, int operand)
{
    ptrdiff_t least = PTRDIFF_MAX;
    size_t extent = 0;

    for (int d = 0; d < loop->ndim; d++) {
        const ptrdiff_t step = npuq_distance(loop->strides[d][operand]);

        if (step < least) {
            least = step;
            extent = loop->extents[d];
        }
    }
    return least == (ptrdiff_t)loop->words[operand].size ? extent : 0;
}

/* The operand that gives the order: the one of larger elements, as the other will have to be gathered or scattered
 * where the two differ; but x only if its contiguous columns are not few, for each row has its cost. */
static int leading_operand(const npuq_loop *loop)
{
    return loop->data[NPUQ_LOOP_X] && loop->words[NPUQ_LOOP_X].size > loop->words[NPUQ_LOOP_Y].size &&
                   !is_packed(loop) && contiguous_extent(loop, NPUQ_LOOP_X) >= LEADING_COLUMNS
               ? NPUQ_LOOP_X
               : NPUQ_LOOP_Y;
}

/* Largest steps of the leading operand first, so that the columns lie close together. */
static void order_dimensions(npuq_loop *loop, int lead)
{
    for (int i = 1; i < loop->ndim; i++) {
        const size_t extent = loop->extents[i];
        ptrdiff_t strides[NPUQ_LOOP_OPERANDS];
        int at = i;

        memcpy(strides, loop->strides[i], sizeof strides);
        while (at > 0 && npuq_distance(loop->strides[at - 1][lead]) < npuq_distance(strides[lead])) {
            move_dimension(loop, at, at - 1);
            at--;
        }
        loop->extents[at] = extent;
        memcpy(loop->strides[at], strides, sizeof strides);
    }
}

/* Whether one step of dimension outer is as far as all of dimension inner, for every operand. */
static bool can_join(const npuq_loop *loop, int outer, int inner)
{
    for (int i = 0; i < NPUQ_LOOP_OPERANDS; i++) {
        const bool are_columns = inner == loop->ndim - 1;
        const size_t extent = loop->extents[inner];
        const size_t steps = are_columns ? count_operand_words(loop, i, extent) : extent;

        if (loop->data[i] && loop->strides[outer][i] != loop->strides[inner][i] * (ptrdiff_t)steps) {
            return false;
        }
    }
    return true;
}

static void join_dimensions(npuq_loop *loop, bool into_columns)
{
    for (int outer = loop->ndim - 2; outer >= 0; outer--) {
        const int inner = outer + 1;
        if ((inner == loop->ndim - 1 && !into_columns) || !can_join(loop, outer, inner)) {
            continue;
        }
        loop->extents[inner] *= loop->extents[outer];
        for (int d = outer; d < loop->ndim - 1; d++) {
            move_dimension(loop, d, d + 1);
        }
        loop->ndim--;
    }
}

void npuq_normalise_loop(npuq_loop *loop, npuq_loop_freedom freedom)
{
    const bool any_order = freedom == NPUQ_LOOP_ANY_ORDER;
    const bool fixed_columns = !any_order || is_packed(loop);
    const int free_dims = fixed_columns ? loop->ndim - 1 : loop->ndim;
    int kept = 0;

    for (int d = 0; d < loop->ndim; d++) {
        assert(loop->extents[d] > 0);
        if (loop->extents[d] > 1 || d >= free_dims) {
            move_dimension(loop, kept++, d);
        }
    }
    if (kept == 0) { /* a single element: any dimension will do */
        kept = 1;
    }
    loop->ndim = kept;

    if (any_order) {
        const int columns = fixed_columns ? 1 : 0;
        const int lead = leading_operand(loop);

        for (int d = 0; d < loop->ndim - columns; d++) {
            if (loop->strides[d][lead] < 0) {
                turn_round(loop, d);
            }
        }
        loop->ndim -= columns;
        order_dimensions(loop, lead);
        loop->ndim += columns;
    }
    join_dimensions(loop, any_order);
}

bool npuq_share_columns(npuq_loop *loop, size_t most)
{
    const int inner = loop->ndim - 1;
    const int outer = inner - 1;
    const size_t columns = loop->extents[inner];

    assert(most <= UINT8_MAX);
    if (outer < 0 || columns == 1 || columns > most || is_packed(loop)) {
        return false;
    }
    for (int i = NPUQ_LOOP_X; i <= NPUQ_LOOP_Y; i++) {
        if (loop->strides[outer][i] != loop->strides[inner][i] * (ptrdiff_t)columns) {
            return false;
        }
    }
    loop->extents[outer] *= columns;
    loop->strides[outer][NPUQ_LOOP_X] = loop->strides[inner][NPUQ_LOOP_X];
    loop->strides[outer][NPUQ_LOOP_Y] = loop->strides[inner][NPUQ_LOOP_Y];
    loop->shared_columns = (uint8_t)columns;
    loop->ndim--;
    return true;
}

bool npuq_operand_lies_across(const npuq_loop *loop, int operand)
{
    if (loop->ndim < 2) {
        return false;
    }

    const ptrdiff_t *outer = loop->strides[loop->ndim - 2];
    const ptrdiff_t *inner = loop->strides[loop->ndim - 1];

    return loop->data[operand] && npuq_lies_across(outer[operand], inner[operand]);
}

bool npuq_operand_is_contiguous(const npuq_loop *loop, int operand)
{
    return loop->strides[loop->ndim - 1][operand] == (ptrdiff_t)loop->words[operand].size;
}

size_t npuq_limit_columns(const npuq_loop *loop, size_t most)
{
    const bool narrow = npuq_operand_lies_across(loop, NPUQ_LOOP_X) || npuq_operand_lies_across(loop, NPUQ_LOOP_Y);

    return narrow && most > ACROSS_COLUMNS ? ACROSS_COLUMNS : most;
}

size_t npuq_count_rows(const npuq_loop *loop)
{
    size_t rows = 1;
    for (int d = 0; d < loop->ndim - 1; d++) {
        rows *= loop->extents[d];
    }
    return rows;
}

size_t npuq_count_columns(const npuq_loop *loop)
{
    return loop->extents[loop->ndim - 1];
}

void npuq_select_rect(const npuq_loop *loop, size_t row, size_t rows, size_t col, size_t cols, npuq_rect *rect)
{
    const int last = loop->ndim - 1;

    assert(rows > 0 && row < npuq_count_rows(loop) && rows <= npuq_count_rows(loop) - row);
    assert(cols > 0 && col <= loop->extents[last] && cols <= loop->extents[last] - col);
    assert(cols % count_elements_in_words(loop) == 0 && col % count_elements_in_words(loop) == 0);
    rect->rows = 1;
    rect->cols = cols;
    rect->col = col;
    rect->used = loop->shared_columns == 1 ? 0 : col % loop->shared_columns;
    for (int i = 0; i < NPUQ_LOOP_OPERANDS; i++) {
        rect->data[i] = loop->data[i];
        rect->row_step[i] = 0;
        rect->col_step[i] = loop->strides[last][i];
        if (rect->data[i] && col > 0) {
            rect->data[i] += (ptrdiff_t)count_operand_words(loop, i, col) * rect->col_step[i];
        }
    }
    for (int d = last - 1; d >= 0; d--) {
        const size_t index = d > 0 ? row % loop->extents[d] : row;

        row = d > 0 ? row / loop->extents[d] : 0;
        for (int i = 0; i < NPUQ_LOOP_OPERANDS; i++) {
            if (rect->data[i]) {
                rect->data[i] += (ptrdiff_t)index * loop->strides[d][i];
            }
        }
        if (d == last - 1) {
            const size_t left = loop->extents[d] - index;

            rect->rows = rows < left ? rows : left;
            memcpy(rect->row_step, loop->strides[d], sizeof rect->row_step);
        }
    }
}

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
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
        units->unit_cols = divide_up(most_cols, 64) * 64;
        units->across = divide_up(cols, units->unit_cols);
        units->count = units->across;
    }
    if (rows > 1 && rows > elements / units->unit_cols) {
        units->unit_rows = units->unit_cols < elements ? elements / units->unit_cols : 1;
        units->count *= divide_up(rows, units->unit_rows);
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
