/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

_Static_assert(sizeof(npuq_call) >= 1024 && NPUQ_TASK_BYTES <= sizeof(npuq_call), "a task fits a prepared call");

static void run_units(void *argument, size_t begin, size_t end)
{
    const npuq_task *task = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    task->run(task, begin, end);
    npuq_fp_leave(&caller);
}

void npuq_run_task(npuq_task *task, const npuq_executor *executor)
{
    if (executor && task->units.count > 1) {
        executor->parallel_for(executor->context, task->units.count, run_units, task);
    } else if (task->units.count > 0) {
        run_units(task, 0, task->units.count);
    }
}

static void keep_task(const npuq_filling *filling, npuq_task *task, size_t size)
{
    const npuq_arguments *arguments = &filling->arguments;

    assert(size <= NPUQ_TASK_BYTES);
    task->signature = arguments->signature;
    task->present = (uint8_t)arguments->present;
    for (size_t i = 0; i < arguments->signature->count; i++) {
        const char *slot = filling->pointers[i];
        const npuq_span *span = &arguments->spans[i];

        task->sizes[i] = 0;
        task->slots[i] = (uint16_t)(slot ? slot - (const char *)task : 0);
        assert(!slot || task->slots[i] + sizeof(char *) <= size);
        if (arguments->used >> i & 1) {
            const uintptr_t data = (uintptr_t)arguments->tensors[i]->data;

            task->bounds[i] = (npuq_bound){arguments->tensors[i]->data, data - span->first, span->last - data};
            task->sizes[i] = (uint8_t)span->element;
        }
    }
    memcpy(filling->call->opaque, task, size);
}

void npuq_finish_filling(const npuq_filling *filling, npuq_task *task, size_t size, const npuq_executor *executor)
{
    if (filling->call) {
        keep_task(filling, task, size);
    } else {
        npuq_run_task(task, executor);
    }
}

void npuq_keep_dense(npuq_filling *filling, npuq_dense *dense, size_t size, npuq_run_fn *run, int x, int y,
                     bool whole_rows)
{
    dense->task.run = run;
    npuq_cut_units(&dense->task.units, dense->block.rows, dense->block.n, filling->most,
                   whole_rows ? SIZE_MAX : filling->most);
    filling->pointers[x] = (void *)&dense->block.x;
    filling->pointers[y] = (void *)&dense->block.y;
    keep_task(filling, &dense->task, size);
}

/* ---- prepared calls ---------------------------------------------------------------------------------------------- */

npuq_status npuq_fail_call(const char *op)
{
    return npuq_fail(NPUQ_ERROR_NULL, op, "call", "is null; expected memory for the prepared call");
}

/* The caller copies calls as integers, here they are structures: no compiler that sees both may exchange the two. */
static const npuq_task *find_task(const npuq_call *call)
{
    const void *task = call->opaque;

    __asm__ volatile("" : "+r"(task) : : "memory");
    return task;
}

size_t npuq_call_units(const npuq_call *call)
{
    return find_task(call)->units.count;
}

void npuq_call_run(const npuq_call *call, size_t begin, size_t end)
{
    const npuq_task *task = find_task(call);
    const npuq_fp_state caller = npuq_fp_enter();
    const size_t count = task->units.count;

    if (begin < end && begin < count) {
        task->run(task, begin, end < count ? end : count);
    }
    npuq_fp_leave(&caller);
}

/* Whether data could be where argument i lies: NPUQ_OK, or why not. */
static npuq_status check_bound(const npuq_task *task, size_t i, const char *data)
{
    const npuq_argument *arguments = task->signature->arguments;
    const char *op = task->signature->op;
    const npuq_bound *bound = &task->bounds[i];
    const uintptr_t address = (uintptr_t)data;
    const npuq_span span = {address - bound->below, address + bound->above, task->sizes[i]};

    if (!data) {
        return npuq_fail(NPUQ_ERROR_NULL, op, arguments[i].name, "data is null; expected memory for its elements");
    }
    if ((address & (task->sizes[i] - 1u)) != 0) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, arguments[i].name, "data is misaligned; expected a multiple of %u",
                         (unsigned)task->sizes[i]);
    }
    if (bound->below > address || bound->above > UINTPTR_MAX - address) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, arguments[i].name,
                         "reaches beyond the address space; expected every element within it");
    }
    for (size_t j = 0; j < task->signature->count; j++) {
        const uintptr_t other = (uintptr_t)task->bounds[j].data;
        const npuq_span others = {other - task->bounds[j].below, other + task->bounds[j].above, task->sizes[j]};

        if (j != i && task->sizes[j] > 0 && (arguments[i].role == NPUQ_OUTPUT || arguments[j].role == NPUQ_OUTPUT) &&
            npuq_spans_meet(&span, &others)) {
            return npuq_fail(NPUQ_ERROR_LAYOUT, op, arguments[i].name,
                             "would meet %s, from the first byte to the last; expected memory apart, or that the call "
                             "is prepared anew",
                             arguments[j].name);
        }
    }
    return NPUQ_OK;
}

npuq_status npuq_call_rebind(npuq_call *call, npuq_operand operand, const void *data)
{
    char *to = (char *)(uintptr_t)data;
    size_t i = 0;
    npuq_status status;

    if (!call) {
        return npuq_fail_call("call_rebind");
    }
    const npuq_task *task = find_task(call);

    while (i < task->signature->count && ((int)operand == NPUQ_FIXED || !(task->present >> i & 1) ||
                                          task->signature->arguments[i].operand != (int)operand)) {
        i++;
    }
    if (i == task->signature->count) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, task->signature->op, "operand",
                         "is %d; expected an argument with which the call was prepared, and which can be replaced",
                         (int)operand);
    }
    if (task->sizes[i] == 0) { /* no elements, no data */
        return NPUQ_OK;
    }
    if ((status = check_bound(task, i, to)) == NPUQ_OK) {
        char *const opaque = (char *)call->opaque;
        const char *from = task->bounds[i].data;
        char *here;

        memcpy(opaque + offsetof(npuq_task, bounds) + i * sizeof(npuq_bound), (const void *)&to, sizeof to);
        if (task->slots[i] != 0) { /* which may point to another end of the view */
            memcpy((void *)&here, opaque + task->slots[i], sizeof here);
            here = (char *)((uintptr_t)to + (uintptr_t)(here - from)); /* of addresses: one of them may be 0 */
            memcpy(opaque + task->slots[i], (const void *)&here, sizeof here);
        }
    }
    return status;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static void walk_units(const npuq_task *task, size_t begin, size_t end)
{
    const npuq_walk *walk = (const npuq_walk *)task;
    /* Columns that are not contiguous are gathered a few at a time from all rows of a unit: of many rows, the next
     * columns' lines would not stay. */
    const bool apart = npuq_keeps_units_apart(&walk->choice.memory) ||
                       !npuq_operand_is_contiguous(&walk->space, NPUQ_AT_X) ||
                       !npuq_operand_is_contiguous(&walk->space, NPUQ_AT_Y);
    size_t joined;

    for (size_t i = begin; i < end; i += joined) {
        npuq_unit unit;
        npuq_tile tile;

        joined = npuq_join_units(&task->units, i, apart ? i + 1 : end, &unit);
        tile.unit = i;
        for (size_t done = 0; done < unit.rows; done += tile.rows) {
            const size_t row = walk->first_row + unit.row + done;
            const size_t left = unit.rows - done;
            const size_t rows =
                npuq_find_group(&walk->groups, row, left < walk->block_rows ? left : walk->block_rows, &tile.group);

            npuq_select_tile(&walk->space, row, rows, unit.col, unit.cols, &tile);
            walk->fn(walk, &tile);
        }
    }
    if (walk->choice.memory.writes.from_memory) {
        walk->choice.kernels->fence_stores();
    }
}

bool npuq_start_walk(npuq_walk *walk, npuq_filling *filling, int x, int y, int counted, int operands, npuq_affine_op op,
                     npuq_tile_fn *fn)
{
    const npuq_tensor *const *tensors = filling->arguments.tensors;
    const npuq_type_info *const *infos = filling->arguments.infos;
    const size_t elements = (size_t)npuq_count_elements(tensors[counted]);

    walk->task.run = walk_units;
    walk->task.units.count = 0;
    walk->fn = fn;
    npuq_choose_kernels(&walk->choice, infos[x], infos[y], op);
    walk->choice.memory =
        npuq_plan_memory(elements / 8 * (npuq_count_bytes(infos[x]->word, 8) + npuq_count_bytes(infos[y]->word, 8)));
    walk->groups = npuq_list_groups(NULL);
    walk->block_rows = SIZE_MAX;
    walk->first_row = 0;
    npuq_start_space(&walk->space, operands, tensors[counted], walk->choice.words[NPUQ_AT_X],
                     walk->choice.words[NPUQ_AT_Y]);
    npuq_add_operand(&walk->space, NPUQ_AT_X, tensors[x]);
    npuq_add_operand(&walk->space, NPUQ_AT_Y, tensors[tensors[y] ? y : x]);
    filling->pointers[x] = (void *)&walk->space.data[NPUQ_AT_X];
    filling->pointers[y] = (void *)&walk->space.data[NPUQ_AT_Y];
    return elements > 0;
}

void npuq_cut_walk(npuq_walk *walk, const npuq_filling *filling, size_t elements, size_t most_cols)
{
    npuq_cut_units(&walk->task.units, npuq_count_rows(&walk->space), npuq_count_columns(&walk->space),
                   npuq_smaller(elements, filling->most),
                   npuq_limit_columns(&walk->space, npuq_smaller(most_cols, filling->most)));
}
