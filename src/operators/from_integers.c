/* SPDX-License-Identifier: BSD-3-Clause */
#include "from_integers.h"

#include "../walk/fp_state.h"

#include <inttypes.h>

/* Elements of a unit of work. Where parameters are converted, it has few columns, so that many rows share them. */
enum { UNIT = 32768 };

enum { LOOP_ROW_SCALE = 2 };

typedef struct integers_dense {
    npuq_task task;
    npuq_kernel_choice choice;
    npuq_dense_rows rows;
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
    const npuq_params row_scale = {
        .data = rect->data[LOOP_ROW_SCALE], .step = rect->row_step[LOOP_ROW_SCALE], .type = NPUQ_P_F32, .repeat = 1};

    npuq_dequantise_rect(&walk->choice, rect, &t->columns, &row_scale);
}

static void run_walk(const npuq_task *task, size_t begin, size_t end)
{
    npuq_walk_units((const npuq_walk *)task, begin, end, dequantise_rect);
}

static inline NPUQ_INLINED void run_unit(const integers_dense *d, const npuq_unit *unit)
{
    const npuq_block block = npuq_select_rows(&d->rows, unit);
    const npuq_params row_scale = npuq_skip_params(&d->row_scale, unit->row);
    const npuq_rect rect = {.rows = unit->rows,
                            .cols = unit->cols,
                            .col = unit->col,
                            .data = {(char *)(uintptr_t)block.x, block.y},
                            .row_step = {block.x_step, block.y_step},
                            .col_step = {d->rows.x_step.size, d->rows.y_step.size}};

    npuq_dequantise_rect(&d->choice, &rect, &d->columns, &row_scale);
}

static void run_dense(const npuq_task *task, size_t begin, size_t end)
{
    npuq_unit unit;

    for (size_t i = begin; i < end;) {
        i += npuq_join_units(&task->units, i, end, &unit);
        run_unit((const integers_dense *)task, &unit);
    }
}

static const npuq_tensor *find_tensor(const npuq_filling *filling, int i)
{
    return i == NPUQ_ABSENT ? NULL : filling->arguments.tensors[i];
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
    columns->x_bias = npuq_list_params(&filling->arguments, roles->x_bias);
    columns->words_have_offsets = roles->words_have_offsets;
    note_pointer(filling, roles->scale, (void *)&columns->scale.data);
    note_pointer(filling, roles->addend, (void *)&columns->addend.data);
    note_pointer(filling, roles->x_bias, (void *)&columns->x_bias.data);
}

/* Whether every element is dequantised with the same parameters. */
static bool are_alike(const npuq_kernel_choice *choice, const npuq_dequant_columns *columns, bool has_row_scale)
{
    const bool has_bias = columns->x_bias.data || (choice->x == NPUQ_X_I32 && columns->addend.data);

    return !has_row_scale && !has_bias && !npuq_dequantises_by_column(choice, columns);
}

/* All but the task. */
static inline NPUQ_INLINED void fill_dense(integers_dense *d, npuq_filling *filling, const npuq_from_integers *roles)
{
    const npuq_arguments *arguments = &filling->arguments;

    npuq_choose_kernels(&d->choice, arguments->infos[roles->x], arguments->infos[roles->y], NPUQ_MUL, 0);
    list_columns(&d->columns, filling, roles);
    d->row_scale = npuq_list_dense_params(arguments, roles->row_scale);
    npuq_list_rows(&d->rows, arguments, roles->x, roles->y, roles->y,
                   are_alike(&d->choice, &d->columns, d->row_scale.data != NULL));
}

static void keep_dense(npuq_filling *filling, const npuq_from_integers *roles)
{
    integers_dense d;

    _Static_assert(sizeof d <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    fill_dense(&d, filling, roles);
    d.task.run = run_dense;
    npuq_cut_units(&d.task.units, d.rows.block.rows, d.rows.block.n, filling->most, filling->most);
    note_pointer(filling, roles->x, (void *)&d.rows.block.x);
    note_pointer(filling, roles->y, (void *)&d.rows.block.y);
    note_pointer(filling, roles->row_scale, (void *)&d.row_scale.data);
    npuq_keep_task(filling, &d.task, sizeof d);
}

static void run_dense_now(npuq_filling *filling, const npuq_from_integers *roles)
{
    integers_dense d;

    fill_dense(&d, filling, roles);

    const npuq_unit all = {.rows = d.rows.block.rows, .cols = d.rows.block.n};
    const npuq_fp_state caller = npuq_fp_enter();

    run_unit(&d, &all);
    npuq_fp_leave(&caller);
}

static void take_walk(npuq_filling *filling, const npuq_from_integers *roles, const npuq_executor *executor)
{
    const npuq_tensor *y = find_tensor(filling, roles->y);
    const npuq_tensor *row_scale = find_tensor(filling, roles->row_scale);
    integers_walk t;
    npuq_walk *walk = &t.walk;

    _Static_assert(sizeof t <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    walk->task.units.count = 0;
    if (npuq_count_elements(y) > 0) {
        npuq_choose_kernels(&walk->choice, filling->arguments.infos[roles->x], filling->arguments.infos[roles->y],
                            NPUQ_MUL, (size_t)npuq_count_elements(y));
        npuq_start_walk(walk, filling, roles->x, roles->y, roles->y);
        walk->task.run = run_walk;
        walk->block_rows = NPUQ_DEQUANT_ROWS;
        list_columns(&t.columns, filling, roles);
        if (row_scale) {
            npuq_add_operand(&walk->loop, LOOP_ROW_SCALE, row_scale);
            note_pointer(filling, roles->row_scale, (void *)&walk->loop.data[LOOP_ROW_SCALE]);
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
    if (!npuq_are_small(&filling->arguments, roles->y)) {
        take_walk(filling, roles, executor);
    } else if (filling->call) {
        keep_dense(filling, roles);
    } else {
        run_dense_now(filling, roles);
    }
}
