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

static void dequantise_rect(const npuq_walk *walk, const npuq_rect *rect)
{
    const integers_walk *t = (const integers_walk *)walk;
    const npuq_params row_scale = {.data = rect->data[LOOP_ROW_SCALE],
                                   .step = rect->row_step[LOOP_ROW_SCALE],
                                   .type = NPUQ_TYPE_FLOAT32,
                                   .repeat = 1};

    npuq_dequantise_rect(&walk->choice, rect, &t->columns, &row_scale);
}

static inline NPUQ_INLINED void dequantise_block(const npuq_dense *dense, const npuq_block *block, size_t row,
                                                 size_t col, size_t group)
{
    const integers_dense *d = (const integers_dense *)dense;
    const npuq_params row_scale = npuq_skip_params(&d->row_scale, row);
    npuq_rect rect; /* of x and y alone: the rest is not read, and clearing it took a twentieth of a small call */

    rect.rows = block->rows;
    rect.cols = block->n;
    rect.col = col;
    rect.data[NPUQ_LOOP_X] = (char *)(uintptr_t)block->x;
    rect.data[NPUQ_LOOP_Y] = block->y;
    rect.row_step[NPUQ_LOOP_X] = block->x_stride;
    rect.row_step[NPUQ_LOOP_Y] = block->y_stride;
    rect.col_step[NPUQ_LOOP_X] = dense->x_word.size;
    rect.col_step[NPUQ_LOOP_Y] = dense->y_word.size;
    (void)group;
    npuq_dequantise_rect(&d->choice, &rect, &d->columns, &row_scale);
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
    if (npuq_start_walk(walk, filling, roles->x, roles->y, roles->y, NPUQ_MUL, dequantise_rect)) {
        walk->block_rows = NPUQ_DEQUANT_ROWS;
        list_columns(&t.columns, filling, roles);
        if (row_scale) {
            npuq_add_operand(&walk->loop, LOOP_ROW_SCALE, row_scale);
            filling->pointers[roles->row_scale] = (void *)&walk->loop.data[LOOP_ROW_SCALE];
        }
        npuq_normalise_loop(&walk->loop, are_alike(&walk->choice, &t.columns, row_scale != NULL)
                                             ? NPUQ_LOOP_ANY_ORDER
                                             : NPUQ_LOOP_KEEP_COLUMNS);
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
