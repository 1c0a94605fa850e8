/* SPDX-License-Identifier: BSD-3-Clause */
#include "mx_groups.h"

#include "blocks.h"

enum { X = NPUQ_AT_X, Y = NPUQ_AT_Y, SCALE = NPUQ_DYNAMIC_SCALE };

/* ---- views ------------------------------------------------------------------------------------------------------- */

static void move_dimension(npuq_tensor *to, int at, const npuq_tensor *from, int d)
{
    to->shape[at] = from->shape[d];
    to->strides[at] = from->strides[d];
}

/* The dimensions of x, and not that of pairs. The axis goes to the end, but not beyond the last dimension. */
static npuq_tensor view_tensor(const npuq_tensor *from, int ndim, int axis)
{
    npuq_tensor to = {.data = from->data, .dtype = from->dtype, .ndim = ndim};
    int at = 0;

    for (int d = 0; d < ndim - 1; d++) {
        if (d != axis) {
            move_dimension(&to, at++, from, d);
        }
    }
    if (axis != ndim - 1) {
        move_dimension(&to, at++, from, axis);
    }
    move_dimension(&to, at, from, ndim - 1);
    return to;
}

void npuq_view_mx_groups(npuq_mx_views *v, const npuq_arguments *arguments, const npuq_mx_options *options, int scale)
{
    const int places[] = {X, Y, scale};
    const npuq_tensor *const *tensors = arguments->tensors;
    const int ndim = tensors[X]->ndim;
    const int axis = npuq_find_mx_axis(options, ndim);

    v->arguments = *arguments;
    v->is_last_axis = axis == ndim - 1;
    v->pair_stride = (ptrdiff_t)tensors[scale]->strides[ndim] * arguments->infos[scale]->word.size;
    for (int i = 0; i < NPUQ_MOST_ARGUMENTS; i++) {
        v->tensors[i] = NULL;
    }
    for (int i = 0; i < NPUQ_AFTER_Y + 1; i++) {
        v->views[i] = view_tensor(tensors[places[i]], ndim, axis);
        v->tensors[places[i]] = &v->views[i];
    }
    v->arguments.tensors = v->tensors;
    if (!v->is_last_axis) {
        v->arguments.dense = 0;
    }
}

/* ---- another axis than the last ---------------------------------------------------------------------------------- */

/* Columns of units and of tiles' parts are whole words of y, and whole chunks of kernels. */
static size_t count_whole_columns(size_t most)
{
    return most < NPUQ_SHORT ? NPUQ_SHORT : most / NPUQ_SHORT * NPUQ_SHORT;
}

void npuq_finish_mx_columns(npuq_plan *plan, const npuq_arguments *arguments, size_t block)
{
    const npuq_tensor *x = arguments->tensors[X];
    const size_t pair = npuq_smaller(2 * block, (size_t)x->shape[x->ndim - 2]);
    const size_t unit = arguments->small == 0 ? NPUQ_PREPARED_UNIT : NPUQ_DYNAMIC_UNIT;

    plan->block = 1;
    npuq_finish_rectangles(plan, arguments, pair, count_whole_columns(unit / pair));
}

enum { GROUP_BYTES = 32 * 1024 };

void npuq_visit_mx_groups(const npuq_plan *plan, const npuq_tile *tile, size_t group_rows, npuq_tile_fn *visit)
{
    const size_t fitting = count_whole_columns(GROUP_BYTES / group_rows / plan->setup.words[X].size);
    const size_t most = npuq_smaller(fitting, NPUQ_MX_COLUMNS);
    npuq_tile part = *tile;

    for (size_t col = 0; col < tile->cols; col += most) {
        part.cols = npuq_smaller(tile->cols - col, most);
        for (size_t row = 0; row < 2 * group_rows; row += group_rows) {
            const bool is_second = row > 0;

            part.rows = row < tile->rows ? npuq_smaller(tile->rows - row, group_rows) : 0;
            for (int i = X; i <= Y; i++) {
                const npuq_place *place = &tile->places[i];
                const size_t words = npuq_count_words(plan->setup.words[i], col);

                part.places[i].data =
                    place->data + (ptrdiff_t)row * place->row_stride + (ptrdiff_t)words * place->col_stride;
            }
            part.places[SCALE].data = tile->places[SCALE].data + (ptrdiff_t)col * tile->places[SCALE].col_stride +
                                      (is_second ? plan->pair_stride : 0);
            visit(plan, &part);
        }
    }
}
