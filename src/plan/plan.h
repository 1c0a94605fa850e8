/* SPDX-License-Identifier: BSD-3-Clause */
/* A call is checked, planned, and run at once or kept as a prepared call. An operator declares its arguments, places
 * its operands, and computes tiles. */
#ifndef NPUQ_PLAN_H
#define NPUQ_PLAN_H

#include "../backends/dispatch.h"
#include "../check/groups.h"
#include "../check/view.h"
#include "../fp_state.h"
#include "../tile/params.h"
#include "../tile/space.h"
#include "../tile/stage.h"

typedef struct npuq_plan npuq_plan;

/* Computes a tile, in the floating-point state that the arithmetic needs. */
typedef void npuq_tile_fn(const npuq_plan *plan, const npuq_tile *tile);

/* Room for an operator's own state, a structure of its file or kind. */
typedef union npuq_own {
    uint64_t aligned;
    unsigned char bytes[40];
} npuq_own;
#define NPUQ_FITS_OWN(type)                                                                                            \
    struct type##_aligned {                                                                                            \
        char before;                                                                                                   \
        type own;                                                                                                      \
    };                                                                                                                 \
    _Static_assert(sizeof(type) <= sizeof(npuq_own) &&                                                                 \
                       offsetof(npuq_plan, own) % offsetof(struct type##_aligned, own) == 0,                           \
                   "an operator's own state has room in a plan")

/* This operand has other data for each group. */
enum { NPUQ_AT_GROUPED = NPUQ_AFTER_Y };

/* How the elements of a call are found. */
typedef enum npuq_way {
    NPUQ_IN_SPACE, /* in an index space */
    NPUQ_FLAT,     /* rows are at an even distance in every operand: one tile is all of them */
    NPUQ_ONE_TILE  /* flat, and one tile of one unit is all there is to do */
} npuq_way;

/* The work of a checked call, in units for any threads in any order. A plan may be copied: it has no pointer into
 * itself or to the caller's structures. Operands have the numbers of their arguments. */
struct npuq_plan {
    npuq_tile_fn *compute;
    npuq_units units; /* of count 0 if there is nothing to do */
    npuq_kernel_setup setup;
    npuq_groups groups;     /* a tile has rows of one group, unless they share tiles */
    ptrdiff_t group_stride; /* bytes from the data of a group to those of the next */
    size_t block_rows;      /* of a tile at most */
    size_t first_row;       /* of unit 0 */
    size_t block;           /* columns that share a scale, if an argument has a shape of blocks or pairs */
    ptrdiff_t pair_stride;  /* bytes from the first scale of a pair to the second, if one has the shape of pairs */
    uint8_t operands;
    uint8_t way; /* npuq_way */
    npuq_own own;
    union {
        npuq_tile all;    /* if it is flat */
        npuq_space space; /* if not */
    } area;

    /* of a prepared call; sets and sizes go by argument */
    const npuq_signature *signature;
    char *data[2];                      /* the caller's x and y: area may begin at another end of a view */
    uint8_t sizes[NPUQ_MOST_ARGUMENTS]; /* of an element; 0 if there are none */
    uint8_t present;
    uint8_t turned; /* area begins at the last element; never x or y */
};
_Static_assert(NPUQ_MOST_ARGUMENTS <= 8, "a set of arguments has one bit for each");

/* Bytes of npuq_call that a plan may use, and room in them for what operators will need; the rest is a reserve. */
enum { NPUQ_PLAN_BYTES = 960, NPUQ_PLAN_ROOM = 112 };
_Static_assert(sizeof(npuq_plan) + NPUQ_PLAN_ROOM <= NPUQ_PLAN_BYTES && NPUQ_PLAN_BYTES <= sizeof(npuq_call),
               "a prepared call is a plan");

static inline void *npuq_set_own(npuq_plan *plan)
{
    return &plan->own;
}

static inline const void *npuq_get_own(const npuq_plan *plan)
{
    return &plan->own;
}

/* Checks the shapes of an operator's arguments, and its options. */
typedef npuq_status npuq_check_fn(const npuq_arguments *arguments, const void *options);

/* Fills a plan after all other checks, and checks the values that it reads. */
typedef npuq_status npuq_plan_fn(npuq_plan *plan, const npuq_arguments *arguments, const void *options);

typedef void npuq_run_fn(npuq_plan *plan, const npuq_executor *executor);

typedef struct npuq_operator {
    npuq_signature signature;
    npuq_check_fn *check;
    npuq_plan_fn *plan;
    npuq_tile_fn *compute; /* null: the plan sets it */
    npuq_run_fn *run;      /* null: npuq_run_plan() */
} npuq_operator;

/* ---- what a plan consists of ----------------------------------------------------------------------------------- */

bool npuq_start_plan_space(npuq_plan *plan, const npuq_arguments *arguments, const npuq_tensor *elements);
void npuq_choose_memory(npuq_plan *plan, size_t elements);

/* Sets all of a plan but its units, with x and y as the first operands: all others are added, absent or not. Returns
 * whether there are elements. Where parameters do not step, all elements are one row; where NPUQ_BY_OTHERS, no call is
 * flat. Inlined, with a constant number of operands: a small call's time would go into calls and loops. */
static inline NPUQ_INLINED bool npuq_start_plan(npuq_plan *plan, const npuq_arguments *arguments, int operands,
                                                npuq_affine_op op, npuq_steps steps)
{
    const npuq_tensor *const *tensors = arguments->tensors;
    const npuq_storage_word x_word = arguments->infos[NPUQ_AT_X]->word;
    const npuq_storage_word y_word = arguments->infos[NPUQ_AT_Y]->word;
    const int counted = x_word.log2_elements > 0 ? NPUQ_AT_Y : NPUQ_AT_X;
    const npuq_tensor *elements = tensors[counted];
    npuq_kernel_setup *setup = &plan->setup;

    plan->units.count = 0;
    plan->operands = (uint8_t)operands;
    plan->groups.ends = NULL;
    plan->block_rows = SIZE_MAX;
    plan->first_row = 0;
    setup->kernels = npuq_kernels();
    setup->op = (uint8_t)op;
    setup->steps = (uint8_t)steps;
    setup->flip = 0;
    setup->rounding = 0;
    setup->f16_in_place = false;
    setup->words[NPUQ_AT_X] = x_word;
    setup->words[NPUQ_AT_Y] = y_word;
    setup->types[NPUQ_AT_X] = arguments->infos[NPUQ_AT_X]->type;
    setup->types[NPUQ_AT_Y] = arguments->infos[NPUQ_AT_Y]->type;
    if (steps == NPUQ_BY_OTHERS || !npuq_are_dense(arguments)) {
        plan->way = NPUQ_IN_SPACE;
        return npuq_start_plan_space(plan, arguments, elements);
    }
    npuq_tile *all = &plan->area.all;
    const size_t count = (size_t)arguments->counts[counted];
    size_t rows = 1;

    for (int d = 0; d < elements->ndim - 1 && steps != NPUQ_ONE; d++) {
        rows *= (size_t)elements->shape[d];
    }
    /* Written twice here: a copy of what was just written would wait for it. */
    plan->units.cols = all->cols = steps == NPUQ_ONE    ? count
                                   : elements->ndim > 0 ? (size_t)elements->shape[elements->ndim - 1]
                                                        : 1;
    plan->units.rows = all->rows = rows;
    all->unit = 0;
    all->group_offsets = NULL;
    all->repeat = 1;
    all->phase_in_run = 0;
    for (int i = NPUQ_AT_X; i <= NPUQ_AT_Y; i++) {
        const npuq_storage_word word = i == NPUQ_AT_X ? x_word : y_word;

        all->places[i] =
            (npuq_place){tensors[i] ? tensors[i]->data : NULL, (ptrdiff_t)npuq_count_bytes(word, all->cols), word.size};
    }
    plan->way = (int64_t)count <= arguments->small ? NPUQ_ONE_TILE : NPUQ_FLAT;
    if (plan->way == NPUQ_ONE_TILE) {
        plan->units.count = 1;
        setup->memory = npuq_plan_cached_memory();
    } else {
        npuq_choose_memory(plan, count);
    }
    return true;
}

static inline void npuq_add_absent(npuq_plan *plan, int i)
{
    if (plan->way != NPUQ_IN_SPACE) { /* which begins without operands */
        plan->area.all.places[i] = (npuq_place){NULL, 0, 0};
    }
}

/* Adds an argument with an element for each row. */
static inline void npuq_add_by_row(npuq_plan *plan, const npuq_arguments *arguments, int i)
{
    const npuq_tensor *tensor = arguments->tensors[i];

    if (!tensor) {
        npuq_add_absent(plan, i);
        return;
    }
    plan->setup.types[i] = (uint8_t)arguments->infos[i]->type;
    if (plan->way != NPUQ_IN_SPACE) {
        plan->area.all.places[i] = (npuq_place){tensor->data, arguments->infos[i]->word.size, 0};
    } else {
        npuq_add_operand(&plan->area.space, i, tensor);
    }
}

/* Adds an argument whose last dimension has an element for each column, or one for all. */
static inline void npuq_add_by_column(npuq_plan *plan, const npuq_arguments *arguments, int i)
{
    const npuq_tensor *tensor = arguments->tensors[i];

    if (!tensor) {
        npuq_add_absent(plan, i);
        return;
    }
    const int last = tensor->ndim - 1;
    const ptrdiff_t size = arguments->infos[i]->word.size;
    const bool is_one = last < 0 || tensor->shape[last] <= 1; /* without elements, strides may be any */

    plan->setup.types[i] = (uint8_t)arguments->infos[i]->type;
    if (plan->way != NPUQ_IN_SPACE) {
        plan->area.all.places[i] = (npuq_place){tensor->data, 0, is_one ? 0 : size};
    } else {
        npuq_add_operand_along(&plan->area.space, i, tensor, is_one ? -1 : plan->area.space.ndim - 1,
                               is_one ? 0 : tensor->strides[last]);
    }
}

/* Rows are in groups. Where argument NPUQ_AT_GROUPED has two dimensions, the first one is groups. */
static inline void npuq_add_groups(npuq_plan *plan, const npuq_arguments *arguments, const npuq_tensor *group_index)
{
    const npuq_tensor *tensor = arguments->tensors[NPUQ_AT_GROUPED];

    plan->groups = npuq_find_groups(group_index);
    plan->group_stride = tensor && tensor->ndim == 2 && tensor->shape[0] > 1 && tensor->shape[1] > 0
                             ? (ptrdiff_t)tensor->strides[0] * arguments->infos[NPUQ_AT_GROUPED]->word.size
                             : 0;
}

/* Cuts the one unit of a small call into tiles, where it has several groups or too many rows for one. */
static inline void npuq_cut_small(npuq_plan *plan)
{
    if (plan->way == NPUQ_ONE_TILE && (plan->groups.ends || plan->block_rows < plan->area.all.rows)) {
        plan->way = NPUQ_FLAT;
    }
}

static inline void npuq_finish_operands(npuq_plan *plan, npuq_freedom freedom)
{
    if (plan->way == NPUQ_IN_SPACE) {
        npuq_normalise_space(&plan->area.space, freedom);
    }
}

static inline npuq_params npuq_find_column_params(const npuq_plan *plan, int operand)
{
    const npuq_space *space = &plan->area.space;

    return plan->way != NPUQ_IN_SPACE ? npuq_make_params(&plan->setup, &plan->area.all, operand)
                                      : (npuq_params){space->data[operand], space->strides[space->ndim - 1][operand],
                                                      plan->setup.types[operand], space->run_columns, 0};
}

/* Whether columns are not contiguous, and whether columns lie further apart than rows. */
static inline bool npuq_is_strided(const npuq_plan *plan, int operand)
{
    return plan->way == NPUQ_IN_SPACE && !npuq_operand_is_contiguous(&plan->area.space, operand);
}

static inline bool npuq_is_column_major(const npuq_plan *plan, int operand)
{
    return plan->way == NPUQ_IN_SPACE && npuq_operand_is_column_major(&plan->area.space, operand);
}

static inline size_t npuq_count_plan_rows(const npuq_plan *plan)
{
    return plan->way != NPUQ_IN_SPACE ? plan->area.all.rows : npuq_count_rows(&plan->area.space);
}

static inline size_t npuq_count_plan_columns(const npuq_plan *plan)
{
    return plan->way != NPUQ_IN_SPACE ? plan->area.all.cols : npuq_count_columns(&plan->area.space);
}

/* Cuts a plan that is not small into units of about `elements` elements and at most `most_cols` columns. */
#define NPUQ_WHOLE_ROWS SIZE_MAX
void npuq_cut_plan(npuq_plan *plan, const npuq_arguments *arguments, size_t elements, size_t most_cols);

/* ---- tiles ------------------------------------------------------------------------------------------------------ */

/* Selects a tile of these rows; of fewer where the distance between rows changes or a group ends. */
void npuq_select_plan_tile(const npuq_plan *plan, size_t row, size_t rows, size_t col, size_t cols, npuq_tile *tile);

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* All checks of a call but those of values. A prepared call has time for the full checks. Inlined, because the
 * signature is constant. */
static inline NPUQ_INLINED npuq_status npuq_check_call(npuq_arguments *arguments, const npuq_signature *signature,
                                                       const npuq_tensor *const *tensors, npuq_check_fn *check,
                                                       const void *options, const npuq_executor *executor)
{
    const bool dense = npuq_check_dense_fast(arguments, signature, tensors);
    npuq_status status;

    arguments->small = executor ? NPUQ_SMALL : NPUQ_SMALL_ALONE;
    arguments->has_executor = executor != NULL;
    if ((!dense && (status = npuq_check_arguments(arguments, signature, tensors)) != NPUQ_OK) ||
        (status = check(arguments, options)) != NPUQ_OK) {
        return status;
    }
    if (executor && !executor->parallel_for) {
        return npuq_fail_executor(signature->op);
    }
    return dense ? NPUQ_OK : npuq_check_layouts(arguments);
}

void npuq_run_units(const npuq_plan *plan, size_t begin, size_t end);

void npuq_run_plan(npuq_plan *plan, const npuq_executor *executor);

/* Tensors are in the order of the signature. Functions that are NPUQ_INLINED stand here by name: gcc -Og refuses to
 * inline what it finds in the operator's constant. */
static inline NPUQ_INLINED npuq_status npuq_call_inlined(const npuq_operator *op, npuq_check_fn *check,
                                                         npuq_plan_fn *make_plan, const npuq_tensor *const *tensors,
                                                         const void *options, const npuq_executor *executor)
{
    npuq_arguments arguments;
    npuq_plan plan;
    npuq_status status;

    assert(check == op->check && make_plan == op->plan);
    plan.compute = op->compute;
    if ((status = npuq_check_call(&arguments, &op->signature, tensors, check, options, executor)) != NPUQ_OK ||
        (status = make_plan(&plan, &arguments, options)) != NPUQ_OK) {
        return status;
    }
    if (plan.way == NPUQ_ONE_TILE) {
        const npuq_fp_state caller = npuq_fp_enter();

        plan.compute(&plan, &plan.area.all);
        npuq_fp_leave(&caller);
    } else if (op->run) {
        op->run(&plan, executor);
    } else {
        npuq_run_plan(&plan, executor);
    }
    return NPUQ_OK;
}

npuq_status npuq_prepare_operator(npuq_call *call, const npuq_operator *op, const npuq_tensor *const *tensors,
                                  const void *options);

/* ---- the public functions ---------------------------------------------------------------------------------------- */

/* The arguments of npuq_name() as its operator takes them, in the order of the signature. */
#define NPUQ_PLACED(name, NAME, ROLE, ...) [NPUQ_PLACE(ROLE)] = (name),
#define NPUQ_TENSORS(name)                                                                                             \
    ((const npuq_tensor *const[NPUQ_MOST_ARGUMENTS]){                                                                  \
        ARGUMENTS_##name(NPUQ_PLACED, NPUQ_PLACED, NPUQ_PLACED, NPUQ_PLACED, NPUQ_NO_ARGUMENT)})

#endif
