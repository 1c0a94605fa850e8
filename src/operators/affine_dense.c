/* SPDX-License-Identifier: BSD-3-Clause */
#include "affine_dense.h"

#include "../kernels/dispatch.h"

typedef struct affine_dense {
    npuq_dense dense;
    const npuq_row_kernels *kernels;
    npuq_affine_uniform_fn *uniform; /* null: parameters go by column */
    npuq_affine_vector_fn *vector;
    npuq_params scale;
    ptrdiff_t group_step; /* bytes from the scales of a group to those of the next */
    npuq_params offset;
    bool offset_by_column;
} affine_dense;

_Static_assert(sizeof(affine_dense) <= NPUQ_TASK_BYTES, "a task fits a prepared call");

/* Of dense parameters, which lie side by side. */
static inline NPUQ_INLINED const float *read_params(const npuq_row_kernels *kernels, const npuq_params *params,
                                                    size_t skipped, size_t n, float *buffer)
{
    const char *data = params->data + skipped * (size_t)params->step;

    if (params->type == NPUQ_TYPE_FLOAT32) {
        return (const float *)(const void *)data;
    }
    if (n == 1) {
        return npuq_convert_params(kernels, &(npuq_params){data, params->step, params->type, 1, 0}, n, buffer);
    }
    assert(kernels->widen[params->type] && n <= NPUQ_DENSE_PARAMS);
    kernels->widen[params->type](data, buffer, n);
    return buffer;
}

static inline NPUQ_INLINED void quantise_block(const npuq_dense *dense, const npuq_block *block, size_t row, size_t col,
                                               size_t group)
{
    static const float zero = 0.0f;
    const affine_dense *d = (const affine_dense *)dense;
    _Alignas(64) float scales[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    _Alignas(64) float offsets[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    npuq_params scale = d->scale;
    const float *offset = !d->offset.data       ? &zero
                          : d->offset_by_column ? read_params(d->kernels, &d->offset, col, block->n, offsets)
                                                : read_params(d->kernels, &d->offset, 0, 1, offsets);

    (void)row;
    if (d->uniform) {
        d->uniform(block, read_params(d->kernels, &scale, 0, 1, scales), offset, 0);
        return;
    }
    scale.data += (ptrdiff_t)group * d->group_step;
    d->vector(block, read_params(d->kernels, &scale, col, block->n, scales), offset, d->offset_by_column);
}

static void run_dense(const npuq_task *task, size_t begin, size_t end)
{
    npuq_run_dense_units(task, begin, end, false, quantise_block);
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

/* All but the task. */
static inline NPUQ_INLINED void fill_dense(affine_dense *d, const npuq_arguments *arguments,
                                           const npuq_affine_roles *roles, npuq_affine_op op)
{
    const npuq_tensor *x = arguments->tensors[roles->x];
    const npuq_tensor *offset = arguments->tensors[roles->offset];
    const npuq_type x_type = arguments->infos[roles->x]->type;
    const npuq_type y_type = arguments->infos[roles->y]->type;
    const bool uniform = arguments->counts[roles->scale] == 1;

    d->kernels = npuq_kernels();
    d->uniform = uniform ? d->kernels->affine_uniform[op][y_type][x_type] : NULL;
    d->vector = d->kernels->affine_vector[op][y_type][x_type];
    d->scale = npuq_list_dense_params(arguments, roles->scale);
    d->group_step = (ptrdiff_t)x->shape[x->ndim - 1] * d->scale.step;
    d->offset = npuq_list_dense_params(arguments, roles->offset);
    d->offset_by_column = !uniform && offset && arguments->counts[roles->offset] > 1;
    npuq_list_rows(&d->dense, arguments, roles->x, roles->y, roles->x, uniform);
    d->dense.block.hints = npuq_hint_small_rows(d->dense.block.rows);
    if (roles->group_index != NPUQ_ABSENT) {
        d->dense.groups = npuq_list_groups(arguments->tensors[roles->group_index]);
    }
}

/* By itself: its structure has an address, the other one stays in registers. */
static void keep_dense(npuq_filling *filling, const npuq_affine_roles *roles, npuq_affine_op op)
{
    affine_dense d;

    fill_dense(&d, &filling->arguments, roles, op);
    filling->pointers[roles->scale] = (void *)&d.scale.data;
    filling->pointers[roles->offset] = (void *)&d.offset.data;
    npuq_keep_dense(filling, &d.dense, sizeof d, run_dense, roles->x, roles->y, false);
}

void npuq_take_affine_dense(npuq_filling *filling, const npuq_affine_roles *roles, npuq_affine_op op)
{
    affine_dense d;

    if (filling->call) {
        keep_dense(filling, roles, op);
    } else {
        fill_dense(&d, &filling->arguments, roles, op);
        npuq_run_dense_now(&d.dense, quantise_block);
    }
}
