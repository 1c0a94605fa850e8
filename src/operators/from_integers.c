/* SPDX-License-Identifier: BSD-3-Clause */
#include "from_integers.h"

#include <inttypes.h>

/* Elements of a unit of work. Where parameters are converted, it has few columns, so that many rows share them. */
enum { UNIT = 32768 };

enum { LOOP_ROW_SCALE = 2 };

typedef struct integers_dense {
    npuq_dense dense;
    npuq_kernel_choice choice;
    npuq_dequant_columns columns;
    npuq_params row_scale;
} integers_dense;

typedef struct integers_walk {
    npuq_walk walk;
    npuq_dequant_columns columns;
} integers_walk;

npuq_status npuq_check_columns(const npuq_arguments *arguments, int i, int64_t columns)
{
    const char *op = arguments->signature->op;
    const char *name = arguments->signature->arguments[i].name;
    const npuq_tensor *tensor = arguments->tensors[i];
    const int last = tensor->ndim - 1;

    if (tensor->shape[last] == 1 || tensor->shape[last] == columns) {
        return NPUQ_OK;
    }
    if (columns == 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, name, "dimension %d is %" PRId64 "; expected 1", last,
                         tensor->shape[last]);
    }
    return npuq_fail(NPUQ_ERROR_SHAPE, op, name,
                     "dimension %d is %" PRId64 "; expected 1 or %" PRId64 ", the elements of x's last dimension", last,
                     tensor->shape[last], columns);
}

static void dequantise_tile(const npuq_walk *walk, const npuq_tile *tile)
{
    const integers_walk *t = (const integers_walk *)walk;
    const npuq_params row_scale = {.data = tile->places[LOOP_ROW_SCALE].data,
                                   .step = tile->places[LOOP_ROW_SCALE].row_stride,
                                   .type = NPUQ_TYPE_FLOAT32,
                                   .repeat = 1};

    npuq_dequantise_tile(&walk->choice, tile, &t->columns, &row_scale);
}

static inline NPUQ_INLINED void dequantise_block(const npuq_dense *dense, const npuq_block *block, size_t row,
                                                 size_t col, size_t group)
{
    const integers_dense *d = (const integers_dense *)dense;
    const npuq_params row_scale = npuq_skip_params(&d->row_scale, row);
    npuq_tile tile; /* of x and y alone: the rest is not read, and clearing it took a twentieth of a small call */

    tile.rows = block->rows;
    tile.cols = block->n;
    tile.col = col;
    tile.places[NPUQ_AT_X].data = (char *)(uintptr_t)block->x;
    tile.places[NPUQ_AT_Y].data = block->y;
    tile.places[NPUQ_AT_X].row_stride = block->x_stride;
    tile.places[NPUQ_AT_Y].row_stride = block->y_stride;
    tile.places[NPUQ_AT_X].col_stride = dense->x_word.size;
    tile.places[NPUQ_AT_Y].col_stride = dense->y_word.size;
    (void)group;
    npuq_dequantise_tile(&d->choice, &tile, &d->columns, &row_scale);
}

static void run_dense(const npuq_task *task, size_t begin, size_t end)
{
    npuq_run_dense_units(task, begin, end, true, dequantise_block);
}

static void note_pointer(npuq_filling *filling, int i, void *pointer)
{
    if (i != NPUQ_ABSENT) {
        filling->pointers[i] = pointer;
    }
}

static void list_columns(npuq_dequant_columns *columns, npuq_filling *filling, const npuq_from_integers *roles)
{
    columns->scale = npuq_list_params(&filling->arguments, roles->scale);
    columns->addend = npuq_list_params(&filling->arguments, roles->addend);
    columns->words_have_offsets = roles->words_have_offsets;
    note_pointer(filling, roles->scale, (void *)&columns->scale.data);
    note_pointer(filling, roles->addend, (void *)&columns->addend.data);
}

/* Whether every element is dequantised with the same parameters. */
static bool are_alike(const npuq_kernel_choice *choice, const npuq_dequant_columns *columns, bool has_row_scale)
{
    const bool has_bias = choice->x == NPUQ_TYPE_INT32 && columns->addend.data;

    return !has_row_scale && !has_bias && !npuq_dequantises_by_column(choice, columns);
}

static void take_dense(npuq_filling *filling, const npuq_from_integers *roles)
{
    const npuq_arguments *arguments = &filling->arguments;
    integers_dense d;

    _Static_assert(sizeof d <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    npuq_choose_kernels(&d.choice, arguments->infos[roles->x], arguments->infos[roles->y], NPUQ_MUL);
    list_columns(&d.columns, filling, roles);
    d.row_scale = npuq_list_dense_params(arguments, roles->row_scale);
    note_pointer(filling, roles->row_scale, (void *)&d.row_scale.data);
    npuq_list_rows(&d.dense, arguments, roles->x, roles->y, roles->y,
                   are_alike(&d.choice, &d.columns, d.row_scale.data != NULL));
    if (filling->call) {
        npuq_keep_dense(filling, &d.dense, sizeof d, run_dense, roles->x, roles->y, false);
    } else {
        npuq_run_dense_now(&d.dense, dequantise_block);
    }
}

static void take_walk(npuq_filling *filling, const npuq_from_integers *roles, const npuq_executor *executor)
{
    const npuq_tensor *row_scale =
        roles->row_scale == NPUQ_ABSENT ? NULL : filling->arguments.tensors[roles->row_scale];
    integers_walk t;
    npuq_walk *walk = &t.walk;

    _Static_assert(sizeof t <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    if (npuq_start_walk(walk, filling, roles->x, roles->y, roles->y, 3, NPUQ_MUL, dequantise_tile)) {
        walk->block_rows = NPUQ_DEQUANT_ROWS;
        list_columns(&t.columns, filling, roles);
        if (row_scale) {
            npuq_add_operand(&walk->space, LOOP_ROW_SCALE, row_scale);
            filling->pointers[roles->row_scale] = (void *)&walk->space.data[LOOP_ROW_SCALE];
        }
        npuq_normalise_space(&walk->space, are_alike(&walk->choice, &t.columns, row_scale != NULL) ? NPUQ_ANY_ORDER
                                                                                                   : NPUQ_KEEP_COLUMNS);
        npuq_cut_walk(walk, filling, UNIT,
                      npuq_converts_columns(&walk->choice, &t.columns) ? NPUQ_DEQUANT_COLUMNS : UNIT);
    }
    npuq_finish_filling(filling, &walk->task, sizeof t, executor);
}

void npuq_take_from_integers(npuq_filling *filling, const npuq_from_integers *roles, const npuq_executor *executor)
{
    if (npuq_are_small(&filling->arguments, roles->y, executor)) {
        take_dense(filling, roles);
    } else {
        take_walk(filling, roles, executor);
    }
}
