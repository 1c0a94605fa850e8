/* SPDX-License-Identifier: BSD-3-Clause */
#include "affine_dense.h"

#include "../backend/dispatch.h"
#include "../walk/fp_state.h"

typedef struct affine_dense {
    npuq_task task;
    npuq_dense_rows rows;
    const npuq_row_kernels *kernels;
    npuq_affine_uniform_fn *uniform; /* null: parameters go by column */
    npuq_affine_vector_fn *vector;
    npuq_params scale;
    npuq_params offset;
    bool offset_by_column;
    npuq_groups groups;
    ptrdiff_t group_step; /* bytes from the scales of a group to those of the next */
} affine_dense;

_Static_assert(sizeof(affine_dense) <= NPUQ_TASK_BYTES, "a task fits a prepared call");

/* Of dense parameters, which lie side by side. */
static inline NPUQ_INLINED const float *read_params(const npuq_row_kernels *kernels, const npuq_params *params,
                                                    size_t skipped, size_t n, float *buffer)
{
    const char *data = params->data + skipped * (size_t)params->step;

    if (params->type == NPUQ_P_F32) {
        return (const float *)(const void *)data;
    }
    if (n == 1) {
        return npuq_convert_params(kernels, &(npuq_params){data, params->step, params->type, 1, 0}, n, buffer);
    }
    assert(params->type < NPUQ_P_WIDENED && n <= NPUQ_DENSE_PARAMS);
    kernels->widen[params->type](data, buffer, n);
    return buffer;
}

static inline NPUQ_INLINED void run_unit(const affine_dense *d, npuq_block block, const npuq_unit *unit)
{
    static const float zero = 0.0f;
    _Alignas(64) float scales[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    _Alignas(64) float offsets[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    const float *offset = !d->offset.data       ? &zero
                          : d->offset_by_column ? read_params(d->kernels, &d->offset, unit->col, unit->cols, offsets)
                                                : read_params(d->kernels, &d->offset, 0, 1, offsets);

    if (d->uniform) {
        d->uniform(&block, read_params(d->kernels, &d->scale, 0, 1, scales), offset, 0);
        return;
    }
    for (size_t row = unit->row, left = unit->rows;;) {
        npuq_params scale = d->scale;
        size_t group;

        block.rows = npuq_find_group(&d->groups, row, left, &group);
        scale.data += (ptrdiff_t)group * d->group_step;
        d->vector(&block, read_params(d->kernels, &scale, unit->col, unit->cols, scales), offset, d->offset_by_column);
        if (block.rows == left) {
            break;
        }
        row += block.rows;
        left -= block.rows;
        npuq_skip_rows(&block);
    }
}

static void run_dense(const npuq_task *task, size_t begin, size_t end)
{
    const affine_dense *d = (const affine_dense *)task;
    npuq_unit unit;

    for (size_t i = begin; i < end;) {
        i += npuq_join_units(&task->units, i, end, &unit);
        run_unit(d, npuq_select_rows(&d->rows, &unit), &unit);
    }
}

bool npuq_suits_affine_dense(const npuq_arguments *arguments, const npuq_affine_roles *roles)
{
    const npuq_tensor *x = arguments->tensors[roles->x];
    const npuq_tensor *offset = arguments->tensors[roles->offset];
    const int64_t cols = x->shape[x->ndim - 1];

    return (cols >= NPUQ_SHORT_BY_COLUMN || arguments->counts[roles->x] == cols) &&
           (cols <= NPUQ_DENSE_PARAMS ||
            (arguments->tensors[roles->scale]->dtype == NPUQ_FLOAT32 && (!offset || offset->dtype == NPUQ_FLOAT32)));
}

static inline void list_rows(npuq_dense_rows *rows, const npuq_arguments *arguments, const npuq_affine_roles *roles)
{
    npuq_list_rows(rows, arguments, roles->x, roles->y, roles->x, arguments->counts[roles->scale] == 1);
}

/* All but the task and the rows. */
static inline NPUQ_INLINED void fill_dense(affine_dense *d, const npuq_arguments *arguments,
                                           const npuq_affine_roles *roles, npuq_affine_op op)
{
    const npuq_tensor *x = arguments->tensors[roles->x];
    const npuq_tensor *offset = arguments->tensors[roles->offset];
    const npuq_x_type x_type = npuq_find_x_type(arguments->infos[roles->x]);
    const npuq_y_type y_type = npuq_find_y_type(arguments->infos[roles->y]);
    const bool uniform = arguments->counts[roles->scale] == 1;

    d->kernels = npuq_kernels();
    d->uniform = uniform ? d->kernels->affine_uniform[op][y_type][x_type] : NULL;
    d->vector = d->kernels->affine_vector[op][y_type][x_type];
    d->scale = npuq_list_dense_params(arguments, roles->scale);
    d->offset = npuq_list_dense_params(arguments, roles->offset);
    d->offset_by_column = !uniform && offset && arguments->counts[roles->offset] > 1;
    d->groups = npuq_list_groups(roles->group_index == NPUQ_ABSENT ? NULL : arguments->tensors[roles->group_index]);
    d->group_step = (ptrdiff_t)x->shape[x->ndim - 1] * d->scale.step;
}

static void keep_dense(npuq_filling *filling, const npuq_affine_roles *roles, npuq_affine_op op)
{
    affine_dense d;

    fill_dense(&d, &filling->arguments, roles, op);
    list_rows(&d.rows, &filling->arguments, roles);
    d.task.run = run_dense;
    npuq_cut_units(&d.task.units, d.rows.block.rows, d.rows.block.n, filling->most, filling->most);
    filling->pointers[roles->x] = (void *)&d.rows.block.x;
    filling->pointers[roles->scale] = (void *)&d.scale.data;
    filling->pointers[roles->offset] = (void *)&d.offset.data;
    filling->pointers[roles->y] = (void *)&d.rows.block.y;
    npuq_keep_task(filling, &d.task, sizeof d);
}

void npuq_take_affine_dense(npuq_filling *filling, const npuq_affine_roles *roles, npuq_affine_op op)
{
    if (filling->call) {
        keep_dense(filling, roles, op);
        return;
    }
    affine_dense d;
    npuq_dense_rows rows; /* by itself: in registers */

    fill_dense(&d, &filling->arguments, roles, op);
    list_rows(&rows, &filling->arguments, roles);

    const npuq_unit all = {.rows = rows.block.rows, .cols = rows.block.n};
    const npuq_fp_state caller = npuq_fp_enter();

    run_unit(&d, rows.block, &all);
    npuq_fp_leave(&caller);
}
