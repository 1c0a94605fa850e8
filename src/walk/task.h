/* SPDX-License-Identifier: BSD-3-Clause */
/* A checked call: what is left to do, in units that any threads may do in any order. An operator fills a structure of
 * its own that begins with npuq_task, and has it run at once or kept as a prepared call. */
#ifndef NPUQ_TASK_H
#define NPUQ_TASK_H

#include "../view/groups.h"
#include "../view/view.h"
#include "loop.h"
#include "tile.h"

typedef struct npuq_task npuq_task;

/* Does units begin to end - 1, in the floating-point state that the arithmetic needs. */
typedef void npuq_run_fn(const npuq_task *task, size_t begin, size_t end);

/* Where an argument's data lies, so that npuq_call_rebind() can tell whether other data may take its place. */
typedef struct npuq_bound {
    char *data;
    size_t below; /* bytes before data */
    size_t above; /* bytes from data to the last one */
} npuq_bound;

/* A task may be copied: it has no pointer into itself or to the caller's structures. */
struct npuq_task {
    npuq_run_fn *run;
    npuq_units units; /* of count 0 if there is nothing to do */

    /* of a prepared call, by argument */
    const npuq_signature *signature;
    npuq_bound bounds[NPUQ_MOST_ARGUMENTS];
    uint16_t slots[NPUQ_MOST_ARGUMENTS]; /* where the task has the pointer to the data, in bytes; 0: nowhere */
    uint8_t sizes[NPUQ_MOST_ARGUMENTS];  /* of an element; 0 if there are none */
    uint8_t present;                     /* set of arguments */
};
_Static_assert(NPUQ_MOST_ARGUMENTS <= 8, "a set of arguments has one bit for each");

/* Bytes of npuq_call that a task may use; the rest is a reserve. */
enum { NPUQ_TASK_BYTES = 768 };

/* What is known while a task is filled. */
typedef struct npuq_filling {
    npuq_call *call; /* to keep the task as, or null: it runs at once */
    size_t most;     /* elements of a unit at most, where it can be divided */
    npuq_arguments arguments;
    void *pointers[NPUQ_MOST_ARGUMENTS]; /* where the task has the pointer to each argument's data */
} npuq_filling;

void npuq_start_filling(npuq_filling *filling, npuq_call *call);

/* What holds for the shapes of an operator's arguments. */
typedef npuq_status npuq_check_shapes_fn(const npuq_arguments *arguments, void *options);

/* All checks of a call, in this order, but those of values; starts to fill its task. A prepared call has time for the
 * full checks. Inlined, as the signature is constant. */
static inline NPUQ_INLINED npuq_status npuq_check_call(npuq_filling *filling, npuq_call *call,
                                                       const npuq_signature *signature,
                                                       const npuq_tensor *const *tensors,
                                                       npuq_check_shapes_fn *check_shapes, void *options,
                                                       const npuq_executor *executor)
{
    npuq_arguments *arguments = &filling->arguments;
    const bool dense = !call && npuq_pass_dense(arguments, signature, tensors);
    npuq_status status;

    npuq_start_filling(filling, call);
    if ((!dense && (status = npuq_check_arguments(arguments, signature, tensors)) != NPUQ_OK) ||
        (status = check_shapes(arguments, options)) != NPUQ_OK ||
        (status = npuq_check_executor(signature->op, executor)) != NPUQ_OK ||
        (!dense && (status = npuq_check_layouts(arguments)) != NPUQ_OK)) {
        return status;
    }
    return NPUQ_OK;
}

/* Runs a filled task of `size` bytes, on the executor if there is one, or keeps it. */
void npuq_finish_filling(const npuq_filling *filling, npuq_task *task, size_t size, const npuq_executor *executor);

/* Keeps it. */
void npuq_keep_task(const npuq_filling *filling, npuq_task *task, size_t size);

/* Runs all units of a task. */
void npuq_run_task(npuq_task *task, const npuq_executor *executor);

/* npuq_prepare_...() without memory for the call. */
npuq_status npuq_fail_call(const char *op);

/* Whether all arguments are dense, and so few elements that no operator would make several units of work of them. For
 * larger calls the overhead of the general way is negligible. */
enum { NPUQ_SMALL = 32768 };
static inline bool npuq_are_small(const npuq_arguments *arguments, int elements)
{
    return npuq_are_dense(arguments) && arguments->counts[elements] <= NPUQ_SMALL;
}

/* Parameters by column that are converted at once, as many as there is room for on the stack. */
enum { NPUQ_DENSE_PARAMS = 4096 };

/* Rows of dense x and y, for kernels that are called directly. */
typedef struct npuq_dense_rows {
    npuq_block block;
    npuq_step x_step;
    npuq_step y_step;
} npuq_dense_rows;

/* The rows of arguments x and y, of which `counted` is the one whose shape counts elements; one row of all elements if
 * these are alike. */
static inline void npuq_list_rows(npuq_dense_rows *rows, const npuq_arguments *arguments, int x, int y, int counted,
                                  bool alike)
{
    const npuq_tensor *elements = arguments->tensors[counted];
    npuq_block *block = &rows->block;

    rows->x_step = arguments->infos[x]->step;
    rows->y_step = arguments->infos[y]->step;
    block->rows = 1;
    block->n = elements->ndim > 0 ? (size_t)elements->shape[elements->ndim - 1] : 1;
    for (int d = 0; d < elements->ndim - 1; d++) {
        block->rows *= (size_t)elements->shape[d];
    }
    if (alike) {
        block->n *= block->rows;
        block->rows = 1;
    }
    block->x = arguments->tensors[x]->data;
    block->y = arguments->tensors[y]->data;
    block->x_step = (ptrdiff_t)npuq_count_bytes(rows->x_step, block->n);
    block->y_step = (ptrdiff_t)npuq_count_bytes(rows->y_step, block->n);
    block->ahead = 0;
}

/* Those of a unit. */
static inline npuq_block npuq_select_rows(const npuq_dense_rows *rows, const npuq_unit *unit)
{
    npuq_block block = rows->block;

    block.x = (const char *)block.x + (ptrdiff_t)unit->row * block.x_step +
              (ptrdiff_t)npuq_count_bytes(rows->x_step, unit->col);
    block.y =
        (char *)block.y + (ptrdiff_t)unit->row * block.y_step + (ptrdiff_t)npuq_count_bytes(rows->y_step, unit->col);
    block.rows = unit->rows;
    block.n = unit->cols;
    return block;
}

/* On to what follows the block. */
static inline void npuq_skip_rows(npuq_block *block)
{
    block->x = (const char *)block->x + (ptrdiff_t)block->rows * block->x_step;
    block->y = (char *)block->y + (ptrdiff_t)block->rows * block->y_step;
}

/* An index space that is walked by rectangles. */
typedef struct npuq_walk {
    npuq_task task;
    npuq_kernel_choice choice;
    npuq_loop loop;
    npuq_groups groups; /* a rectangle has rows of one group */
    size_t block_rows;  /* of a rectangle at most */
    size_t first_row;   /* of unit 0 */
} npuq_walk;

/* Over all rows and columns of arguments x and y, but units are yet to be cut. The choice is there already; `counted`
 * as above. */
void npuq_start_walk(npuq_walk *walk, npuq_filling *filling, int x, int y, int counted);

/* Units of about this many elements, or fewer, and at most so many columns. */
void npuq_cut_walk(npuq_walk *walk, const npuq_filling *filling, size_t elements, size_t most_cols);

/* What an operator does with a rectangle. */
typedef void npuq_rect_fn(const npuq_walk *walk, const npuq_rect *rect);

void npuq_walk_units(const npuq_walk *walk, size_t begin, size_t end, npuq_rect_fn *fn);

#endif
