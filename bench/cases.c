/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    npuq_dtype dtype;
    const char *name;
    size_t size;
} types[] = {
    {NPUQ_FLOAT32, "f32", 4}, {NPUQ_FLOAT16, "f16", 2}, {NPUQ_BFLOAT16, "bf16", 2},
    {NPUQ_INT8, "i8", 1},     {NPUQ_UINT8, "u8", 1},    {NPUQ_INT32, "i32", 4},
    {NPUQ_QUINT4X2, "i4", 4}, {NPUQ_INT64, "i64", 8},   {NPUQ_UINT64, "u64", 8},
};

enum { TYPES = sizeof types / sizeof types[0] };

static size_t type_index(npuq_dtype dtype)
{
    size_t i = 0;

    while (i < TYPES - 1 && types[i].dtype != dtype) {
        i++;
    }
    return i;
}

size_t bench_dtype_size(npuq_dtype dtype)
{
    return types[type_index(dtype)].size;
}

const char *bench_dtype_name(npuq_dtype dtype)
{
    return types[type_index(dtype)].name;
}

const char *bench_operator_name(enum bench_operator op)
{
    static const char *const names[] = {"quantize", "group_quant", "dynamic", "trans_quant_param"};

    return names[op];
}

const char *bench_mode_name(const struct bench_case *c)
{
    switch (c->op) {
    case BENCH_QUANTIZE: return c->divide ? "div" : "mul";
    case BENCH_DYNAMIC: return c->by_tensor ? "tensor" : "token";
    case BENCH_GROUP_QUANT: return "mul";
    case BENCH_TRANS_QUANT_PARAM: break;
    }
    return "nearest";
}

const char *bench_parameters_name(const struct bench_case *c)
{
    static const char *const names[] = {"uniform", "channel", "axis", "plain", "smooth", "experts64"};

    return names[c->parameters];
}

size_t bench_elements(const struct bench_case *c)
{
    size_t elements = 1;

    for (int d = 0; d < c->ndim; d++) {
        elements *= (size_t)c->shape[d];
    }
    return elements;
}

size_t bench_x_bytes(const struct bench_case *c)
{
    return bench_elements(c) * bench_dtype_size(c->x_dtype);
}

size_t bench_y_bytes(const struct bench_case *c)
{
    return bench_elements(c) * bench_dtype_size(c->y_dtype) / (c->y_dtype == NPUQ_QUINT4X2 ? 8 : 1);
}

/* x, y, what is expected of y, a copy of half of x and y, and the parameters of each column of each group. */
size_t bench_memory(const struct bench_case *c)
{
    const size_t groups = c->groups > 0 ? (size_t)c->groups : 1;

    return 3 * bench_x_bytes(c) / 2 + 5 * bench_y_bytes(c) / 2 +
           2 * sizeof(float) * groups * (size_t)c->shape[c->ndim - 1];
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

struct list {
    int ndim; /* of the only shape that is wanted; 0: those that the cases have */
    const int64_t *shape;
    struct bench_case *cases;
    size_t count;
    size_t room;
    bool failed;
};

static void write_name(struct bench_case *c)
{
    char shape[64] = "";
    size_t used = 0;

    for (int d = 0; d < c->ndim; d++) {
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRId64, d > 0 ? "x" : "", c->shape[d]);
    }
    const int end =
        snprintf(c->name, sizeof c->name, "%s/%s/%s/%s-%s/%s", bench_operator_name(c->op), bench_mode_name(c),
                 bench_parameters_name(c), bench_dtype_name(c->x_dtype), bench_dtype_name(c->y_dtype), shape);
    if (c->threads > 0) {
        (void)snprintf(c->name + end, sizeof c->name - (size_t)end, "/t%d", c->threads);
    }
}

/* Gives a case the only shape that is wanted. False if it cannot have that. */
static bool set_shape(const struct list *list, struct bench_case *c)
{
    const bool words = c->y_dtype == NPUQ_QUINT4X2;

    if (list->ndim == 0) {
        return true;
    }
    if (c->ndim != list->ndim || (words && list->shape[list->ndim - 1] % 8 != 0)) {
        return false;
    }
    memcpy(c->shape, list->shape, sizeof *list->shape * (size_t)list->ndim);
    if (c->baseline == BENCH_ROW_KERNEL && c->shape[0] != 1) {
        c->baseline = BENCH_NO_BASELINE;
    }
    return true;
}

/* A case that is there already gains a reason, and a baseline if it had none. */
static void add(struct list *list, struct bench_case c)
{
    if (!set_shape(list, &c)) {
        return;
    }
    write_name(&c);
    for (size_t i = 0; i < list->count; i++) {
        struct bench_case *old = &list->cases[i];
        if (strcmp(old->name, c.name) == 0) {
            old->sets |= c.sets;
            old->baseline = old->baseline == BENCH_NO_BASELINE ? c.baseline : old->baseline;
            return;
        }
    }
    if (list->count == list->room) {
        const size_t room = list->room > 0 ? 2 * list->room : 256;
        struct bench_case *cases = list->failed ? NULL : realloc(list->cases, room * sizeof *cases);
        if (!cases) {
            list->failed = true;
            return;
        }
        list->cases = cases;
        list->room = room;
    }
    list->cases[list->count++] = c;
}

struct kind {
    enum bench_operator op;
    bool divide;
    bool by_tensor;
    enum bench_parameters parameters;
};

static const struct kind kinds[] = {
    {BENCH_QUANTIZE, false, false, BENCH_UNIFORM},   {BENCH_QUANTIZE, false, false, BENCH_CHANNEL},
    {BENCH_QUANTIZE, true, false, BENCH_UNIFORM},    {BENCH_QUANTIZE, true, false, BENCH_CHANNEL},
    {BENCH_GROUP_QUANT, false, false, BENCH_GROUPS}, {BENCH_DYNAMIC, false, false, BENCH_PLAIN},
    {BENCH_DYNAMIC, false, false, BENCH_SMOOTH},     {BENCH_DYNAMIC, false, false, BENCH_GROUPS},
    {BENCH_DYNAMIC, false, true, BENCH_PLAIN},       {BENCH_DYNAMIC, false, true, BENCH_SMOOTH},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct bench_case case_of(struct kind kind, npuq_dtype x, npuq_dtype y, int64_t rows, int64_t cols,
                                 unsigned sets)
{
    struct bench_case c = {
        .op = kind.op,
        .divide = kind.divide,
        .by_tensor = kind.by_tensor,
        .parameters = kind.parameters,
        .baseline = kind.divide && y == NPUQ_INT8 ? BENCH_MULTIPLY : BENCH_NO_BASELINE,
        .x_dtype = x,
        .y_dtype = y,
        .ndim = 2,
        .shape = {rows, cols},
        .groups = kind.parameters == BENCH_GROUPS ? BENCH_GROUP_COUNT : 0,
        .sets = sets,
    };

    return c;
}

static bool takes(struct kind kind, npuq_dtype y)
{
    switch (y) {
    case NPUQ_INT8: return true;
    case NPUQ_UINT8:
    case NPUQ_INT32: return kind.op == BENCH_QUANTIZE && kind.divide;
    default: return !(kind.op == BENCH_QUANTIZE && kind.divide);
    }
}

/* float32 and bfloat16 to int8 everywhere, the other types where a model is likely to have them */
static bool is_usual(struct kind kind, npuq_dtype x, npuq_dtype y)
{
    if (kind.by_tensor && kind.parameters == BENCH_SMOOTH) {
        return false;
    }
    if (y == NPUQ_INT8) {
        return x != NPUQ_FLOAT16 || (kind.parameters == BENCH_UNIFORM && !kind.divide);
    }
    return y == NPUQ_QUINT4X2 && x == NPUQ_BFLOAT16 && kind.parameters != BENCH_SMOOTH && !kind.by_tensor;
}

static void add_models(struct list *list)
{
    static const npuq_dtype xs[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
    static const npuq_dtype ys[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32, NPUQ_QUINT4X2};
    /* decode; a batch that the second-level cache holds; prefill, the second size beyond the last cache; weights */
    static const int64_t shapes[][2] = {{1, 4096},    {1, 11008},    {32, 4096},    {512, 4096},
                                        {4096, 4096}, {16384, 4096}, {16384, 16384}};

    for (size_t k = 0; k < KINDS; k++) {
        for (size_t y = 0; y < sizeof ys / sizeof ys[0]; y++) {
            for (size_t x = 0; x < sizeof xs / sizeof xs[0] && takes(kinds[k], ys[y]); x++) {
                for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                    const int64_t *shape = shapes[s];
                    const bool has_rows = kinds[k].parameters != BENCH_GROUPS || shape[0] >= 512;
                    const bool is_weight = shape[1] == 16384;
                    const bool weight = kinds[k].parameters == BENCH_UNIFORM && !kinds[k].divide &&
                                        ys[y] == NPUQ_INT8 && xs[x] == NPUQ_BFLOAT16;
                    const bool usual = is_usual(kinds[k], xs[x], ys[y]) && (!is_weight || weight);
                    if (has_rows) {
                        add(list,
                            case_of(kinds[k], xs[x], ys[y], shape[0], shape[1], usual ? BENCH_MODELS : BENCH_RARE));
                    }
                }
            }
        }
    }
    for (int64_t n = 4096; n <= 16384; n += n == 4096 ? 11008 - 4096 : 16384 - 11008) {
        struct bench_case c = {.op = BENCH_TRANS_QUANT_PARAM,
                               .parameters = BENCH_CHANNEL,
                               .x_dtype = NPUQ_FLOAT32,
                               .y_dtype = NPUQ_INT64,
                               .ndim = 1,
                               .shape = {n},
                               .sets = BENCH_MODELS};
        add(list, c);
    }
}

static void add_sweeps(struct list *list)
{
    static const struct {
        struct kind kind;
        npuq_dtype x;
    } sweeps[] = {
        {{BENCH_QUANTIZE, false, false, BENCH_UNIFORM}, NPUQ_FLOAT32},
        {{BENCH_QUANTIZE, false, false, BENCH_CHANNEL}, NPUQ_BFLOAT16},
        {{BENCH_QUANTIZE, true, false, BENCH_UNIFORM}, NPUQ_FLOAT32},
        {{BENCH_DYNAMIC, false, false, BENCH_PLAIN}, NPUQ_BFLOAT16},
        {{BENCH_DYNAMIC, false, true, BENCH_PLAIN}, NPUQ_BFLOAT16},
    };

    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        for (int64_t rows = 1; rows <= 16384; rows *= 4) {
            add(list, case_of(sweeps[i].kind, sweeps[i].x, NPUQ_INT8, rows, 4096, BENCH_SWEEP));
        }
    }
}

/* The quantised dimension in the middle, as in NCHW: [N, C, inner], about two million elements. */
static void add_layouts(struct list *list)
{
    static const int64_t channels[] = {64, 256, 1024};
    static const int64_t inner[] = {1, 7, 16, 49, 3136};

    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 5; j++) {
            const int64_t image = channels[i] * inner[j];
            struct bench_case c = {.op = BENCH_QUANTIZE,
                                   .divide = true,
                                   .parameters = BENCH_AXIS,
                                   .baseline = BENCH_CONTIGUOUS,
                                   .x_dtype = NPUQ_FLOAT32,
                                   .y_dtype = NPUQ_INT8,
                                   .ndim = 3,
                                   .shape = {image < 1 << 21 ? (1 << 21) / image : 1, channels[i], inner[j]},
                                   .sets = BENCH_LAYOUT};
            add(list, c);
        }
    }
}

static void add_overhead(struct list *list)
{
    static const int64_t sizes[] = {128, 4096};

    for (size_t i = 0; i < 2; i++) {
        for (int kind = 0; kind < 4; kind++) {
            struct bench_case c = case_of(kinds[kind], NPUQ_FLOAT32, NPUQ_INT8, 1, sizes[i], BENCH_OVERHEAD);
            if (kind < 2) {
                c.baseline = BENCH_ROW_KERNEL;
            }
            add(list, c);
        }
        add(list, case_of(kinds[5], NPUQ_BFLOAT16, NPUQ_INT8, 1, sizes[i], BENCH_OVERHEAD));
    }
}

static void add_threads(struct list *list)
{
    static const int64_t rows[] = {512, 4096, 16384};
    static const size_t which[] = {0, 3, 5, 8};

    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 4; k++) {
            struct bench_case c = case_of(kinds[which[k]], k == 0 ? NPUQ_FLOAT32 : NPUQ_BFLOAT16, NPUQ_INT8, rows[i],
                                          4096, BENCH_THREADS);
            c.threads = 2;
            c.baseline = BENCH_ONE_THREAD;
            add(list, c);
        }
    }
}

struct bench_case *bench_cases(int ndim, const int64_t *shape, size_t *count)
{
    struct list list = {.ndim = ndim, .shape = shape};

    add_overhead(&list);
    add_models(&list);
    add_sweeps(&list);
    add_layouts(&list);
    add_threads(&list);
    if (list.failed) {
        free(list.cases);
        return NULL;
    }
    *count = list.count;
    return list.cases;
}
