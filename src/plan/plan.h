/* SPDX-License-Identifier: BSD-3-Clause */
/* A checked call: what is left to do, in units that any threads may do in any order. An operator fills a structure of
 * its own that begins with npuq_task, and has it run at once or kept as a prepared call. */
#ifndef NPUQ_PLAN_H
#define NPUQ_PLAN_H

#include "../check/groups.h"
#include "../check/view.h"
#include "../tile/tile.h"
#include "fp_state.h"
#include "space.h"

#include <string.h>

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
enum { NPUQ_TASK_BYTES = 960 };

/* What is known while a task is filled. */
typedef struct npuq_filling {
    npuq_call *call; /* to keep the task as, or null: it runs at once */
    size_t most;     /* elements of a unit at most, where it can be divided */
    npuq_arguments arguments;
    void *pointers[NPUQ_MOST_ARGUMENTS]; /* where the task has the pointer to each argument's data */
} npuq_filling;

/* Elements of a unit of a prepared call: engines share out small calls, too. */
enum { NPUQ_PREPARED_UNIT = 4096 };

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

    filling->call = call;
    filling->most = call ? NPUQ_PREPARED_UNIT : SIZE_MAX;
    if (call) {
        memset((void *)filling->pointers, 0, sizeof filling->pointers);
    }
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

/* Runs all units of a task. */
void npuq_run_task(npuq_task *task, const npuq_executor *executor);

/* npuq_prepare_...() without memory for the call. */
npuq_status npuq_fail_call(const char *op);

/* Whether all arguments are dense, and so few elements that an executor would get one unit of work. Without an executor
 * it may be more, as long as the second-level cache holds them: for larger calls the general path's overhead is
 * negligible. */
enum { NPUQ_SMALL = 32768, NPUQ_SMALL_ALONE = 131072 };
static inline bool npuq_are_small(const npuq_arguments *arguments, int elements, const npuq_executor *executor)
{
    return npuq_are_dense(arguments) && arguments->counts[elements] <= (executor ? NPUQ_SMALL : NPUQ_SMALL_ALONE);
}

/* Parameters by column that are converted at once, as many as there is room for on the stack. */
enum { NPUQ_DENSE_PARAMS = 4096 };

/* A small dense call: kernels are called directly, on rows of dense x and y. */
typedef struct npuq_dense {
    npuq_task task;
    npuq_block block; /* all rows */
    npuq_storage_word x_word;
    npuq_storage_word y_word;
    npuq_groups groups; /* blocks have rows of one group */
    size_t block_rows;  /* of a block at most */
} npuq_dense;

/* The rows of arguments x and y, of which `counted` is the one whose shape counts elements; one row of all elements if
 * these are alike. Where y is absent, it is as if x were in its place, but for its dtype. */
static inline void npuq_list_rows(npuq_dense *dense, const npuq_arguments *arguments, int x, int y, int counted,
                                  bool alike)
{
    const npuq_tensor *elements = arguments->tensors[counted];
    const npuq_tensor *to = arguments->tensors[arguments->tensors[y] ? y : x];
    npuq_block *block = &dense->block;

    dense->x_word = arguments->infos[x]->word;
    dense->y_word = arguments->infos[y]->word;
    dense->groups = npuq_list_groups(NULL);
    dense->block_rows = SIZE_MAX;
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
    block->y = to->data;
    block->x_stride = (ptrdiff_t)npuq_count_bytes(dense->x_word, block->n);
    block->y_stride = (ptrdiff_t)npuq_count_bytes(dense->y_word, block->n);
    block->hints = (npuq_hints){0};
}

/* What an operator does with a block of rows, which begins at this row and column of x and y. */
typedef void npuq_block_fn(const npuq_dense *dense, const npuq_block *block, size_t row, size_t col, size_t group);

static inline NPUQ_INLINED void npuq_run_dense_unit(const npuq_dense *dense, npuq_block block, npuq_groups groups,
                                                    size_t block_rows, const npuq_unit *unit, npuq_block_fn *fn)
{
    for (size_t row = unit->row, left = unit->rows;;) {
        size_t group;

        block.rows = npuq_find_group(&groups, row, npuq_smaller(left, block_rows), &group);
        fn(dense, &block, row, unit->col, group);
        if (__builtin_expect(block.rows == left, true)) {
            break;
        }
        row += block.rows;
        left -= block.rows;
        block.x = (const char *)block.x + (ptrdiff_t)block.rows * block.x_stride;
        block.y = (char *)block.y + (ptrdiff_t)block.rows * block.y_stride;
    }
}

/* Inlined into the npuq_run_fn of an operator, with its function. undivided, a constant: each unit is one block, and
 * the limits are not read. Reading them took a fifth of the time of a small call for integers. */
static inline NPUQ_INLINED void npuq_run_dense_units(const npuq_task *task, size_t begin, size_t end, bool undivided,
                                                     npuq_block_fn *fn)
{
    const npuq_dense *dense = (const npuq_dense *)task;
    npuq_unit unit;

    for (size_t i = begin; i < end;) {
        i += npuq_join_units(&task->units, i, end, &unit);

        npuq_block block = dense->block;

        block.x = (const char *)block.x + (ptrdiff_t)unit.row * block.x_stride +
                  (ptrdiff_t)npuq_count_bytes(dense->x_word, unit.col);
        block.y = (char *)block.y + (ptrdiff_t)unit.row * block.y_stride +
                  (ptrdiff_t)npuq_count_bytes(dense->y_word, unit.col);
        block.n = unit.cols;
        npuq_run_dense_unit(dense, block, undivided ? npuq_list_groups(NULL) : dense->groups,
                            undivided ? SIZE_MAX : dense->block_rows, &unit, fn);
    }
}

/* All rows at once. *dense needs no task, and stays in registers if nothing else takes its address. Entering the
 * floating-point state is a barrier for the compiler: so the fields of *dense are read before. */
static inline NPUQ_INLINED void npuq_run_dense_now(const npuq_dense *dense, npuq_block_fn *fn)
{
    const npuq_unit all = {.rows = dense->block.rows, .cols = dense->block.n};
    const npuq_block block = dense->block;
    const npuq_groups groups = dense->groups;
    const size_t block_rows = dense->block_rows;
    const npuq_fp_state caller = npuq_fp_enter();

    npuq_run_dense_unit(dense, block, groups, block_rows, &all, fn);
    npuq_fp_leave(&caller);
}

/* Keeps a structure of `size` bytes that begins with *dense; whole_rows: a unit has all columns. */
void npuq_keep_dense(npuq_filling *filling, npuq_dense *dense, size_t size, npuq_run_fn *run, int x, int y,
                     bool whole_rows);

typedef struct npuq_walk npuq_walk;

/* What an operator does with a tile. */
typedef void npuq_tile_fn(const npuq_walk *walk, const npuq_tile *tile);

/* An index space that is walked by tiles. */
struct npuq_walk {
    npuq_task task;
    npuq_tile_fn *fn;
    npuq_kernel_choice choice;
    npuq_space space;
    npuq_groups groups; /* a tile has rows of one group */
    size_t block_rows;  /* of a tile at most */
    size_t first_row;   /* of unit 0 */
};

/* Over all rows and columns of arguments x and y, which are as above, but units are yet to be cut: there are none as
 * yet. Returns whether there are elements. */
bool npuq_start_walk(npuq_walk *walk, npuq_filling *filling, int x, int y, int counted, int operands, npuq_affine_op op,
                     npuq_tile_fn *fn);

/* Units of about this many elements, or fewer, and at most so many columns. */
void npuq_cut_walk(npuq_walk *walk, const npuq_filling *filling, size_t elements, size_t most_cols);

#endif
