/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    npuq_dtype dtype;
    const char *name;
} types[] = {
    {NPUQ_FLOAT32, "f32"}, {NPUQ_FLOAT16, "f16"}, {NPUQ_BFLOAT16, "bf16"}, {NPUQ_INT8, "i8"},    {NPUQ_UINT8, "u8"},
    {NPUQ_INT32, "i32"},   {NPUQ_QUINT4X2, "i4"}, {NPUQ_INT64, "i64"},     {NPUQ_UINT64, "u64"},
};

enum { TYPES = sizeof types / sizeof types[0] };

const char *bench_dtype_name(npuq_dtype dtype)
{
    size_t i = 0;

    while (i < TYPES - 1 && types[i].dtype != dtype) {
        i++;
    }
    assert(types[i].dtype == dtype);
    return types[i].name;
}

const char *bench_operator_name(enum bench_operator op)
{
#define NAME_OF(name, NAME, EXECUTOR) #name,
    static const char *const names[] = {EACH_OPERATOR(NAME_OF)};

    return names[op];
}

const char *bench_mode_name(const struct bench_case *c)
{
    static const char *const names[] = {"mul",       "div",     "nearest",        "token",
                                        "tensor",    "weight",  "token-bias-i32", "token-bias-f32",
                                        "symmetric", "block32", "block128"};

    return names[c->mode];
}

const char *bench_parameters_name(const struct bench_case *c)
{
    static const char *const names[] = {"uniform", "channel", "axis", "plain", "smooth", "experts64"};

    return names[c->parameters];
}

static const char *variant_name(enum bench_variant variant)
{
    static const char *const names[] = {"",          "/saturated", "/nan",          "/subnormal",   "/every-second",
                                        "/reversed", "/broadcast", "/transposed-x", "/transposed-y"};

    return names[variant];
}

bool bench_is_view(const struct bench_case *c)
{
    return c->variant >= BENCH_EVERY_SECOND;
}

bool bench_is_dynamic(const struct bench_case *c)
{
    return c->op == BENCH_DYNAMIC_QUANT_ASYMMETRIC || c->op == BENCH_DYNAMIC_QUANT ||
           c->op == BENCH_DYNAMIC_BLOCK_QUANT;
}

int64_t bench_block(const struct bench_case *c)
{
    return c->mode == BENCH_BLOCK_32 ? 32 : c->mode == BENCH_BLOCK_128 ? 128 : 0;
}

bool bench_is_small(const struct bench_case *c)
{
    return (c->ndim == 1 || c->shape[0] == 1) && bench_elements(c) <= 4096 && c->threads == 0 && !bench_is_view(c);
}

size_t bench_elements(const struct bench_case *c)
{
    size_t elements = 1;

    for (int d = 0; d < c->ndim; d++) {
        elements *= (size_t)c->shape[d];
    }
    return elements;
}

static size_t bytes_of(size_t elements, npuq_dtype dtype)
{
    return elements * npuq_dtype_size(dtype) / (dtype == NPUQ_QUINT4X2 ? 8 : 1);
}

size_t bench_x_bytes(const struct bench_case *c)
{
    return bytes_of(bench_elements(c), c->x_dtype);
}

size_t bench_y_bytes(const struct bench_case *c)
{
    return bytes_of(bench_elements(c), c->y_dtype);
}

/* x, y, expected y, a copy of half of x and y, the parameters of each column of each group, and the memory of a
 * variant. */
size_t bench_memory(const struct bench_case *c)
{
    const size_t groups = c->groups > 0 ? (size_t)c->groups : 1;

    return (c->variant == BENCH_USUAL ? 3 : 9) * bench_x_bytes(c) / 2 + 5 * bench_y_bytes(c) / 2 +
           2 * sizeof(float) * groups * (size_t)c->shape[c->ndim - 1];
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

struct list {
    int ndim; /* of the only wanted shape; 0: the shapes of the cases */
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
    const int end = snprintf(c->name, sizeof c->name, "%s/%s/%s/%s-%s/%s%s", bench_operator_name(c->op),
                             bench_mode_name(c), bench_parameters_name(c), bench_dtype_name(c->x_dtype),
                             bench_dtype_name(c->y_dtype), shape, variant_name(c->variant));
    if (c->threads > 0) {
        (void)snprintf(c->name + end, sizeof c->name - (size_t)end, "/t%d", c->threads);
    }
}

/* Gives a case the only wanted shape. False if the case cannot have that shape. */
static bool set_shape(const struct list *list, struct bench_case *c)
{
    const bool words = c->x_dtype == NPUQ_QUINT4X2 || c->y_dtype == NPUQ_QUINT4X2;

    if (list->ndim == 0) {
        return true;
    }
    if (c->ndim != list->ndim || (words && list->shape[list->ndim - 1] % 8 != 0)) {
        return false;
    }
    memcpy(c->shape, list->shape, sizeof *list->shape * (size_t)list->ndim);
    return true;
}

/* Adds a case. An existing case gains a reason, and a baseline if it had none. */
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
    enum bench_mode mode;
    enum bench_parameters parameters;
};

static const struct kind kinds[] = {
    {BENCH_QUANTIZE, BENCH_MUL, BENCH_UNIFORM},
    {BENCH_QUANTIZE, BENCH_MUL, BENCH_CHANNEL},
    {BENCH_QUANTIZE, BENCH_DIV, BENCH_UNIFORM},
    {BENCH_QUANTIZE, BENCH_DIV, BENCH_CHANNEL},
    {BENCH_GROUP_QUANT, BENCH_MUL, BENCH_GROUPS},
    {BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TOKEN, BENCH_PLAIN},
    {BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TOKEN, BENCH_SMOOTH},
    {BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TOKEN, BENCH_GROUPS},
    {BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TENSOR, BENCH_PLAIN},
    {BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TENSOR, BENCH_SMOOTH},
    {BENCH_DYNAMIC_QUANT, BENCH_TOKEN, BENCH_PLAIN},
    {BENCH_DYNAMIC_QUANT, BENCH_TOKEN, BENCH_SMOOTH},
    {BENCH_DYNAMIC_QUANT, BENCH_TOKEN, BENCH_GROUPS},
    {BENCH_DYNAMIC_QUANT, BENCH_TENSOR, BENCH_PLAIN},
    {BENCH_DYNAMIC_QUANT, BENCH_TENSOR, BENCH_SMOOTH},
    {BENCH_DYNAMIC_BLOCK_QUANT, BENCH_BLOCK_32, BENCH_PLAIN},
    {BENCH_DYNAMIC_BLOCK_QUANT, BENCH_BLOCK_128, BENCH_PLAIN},
    {BENCH_ANTI_QUANT, BENCH_MUL, BENCH_UNIFORM},
    {BENCH_ANTI_QUANT, BENCH_MUL, BENCH_CHANNEL},
    {BENCH_DEQUANT, BENCH_WEIGHT, BENCH_UNIFORM},
    {BENCH_DEQUANT, BENCH_WEIGHT, BENCH_CHANNEL},
    {BENCH_DEQUANT, BENCH_TOKEN, BENCH_CHANNEL},
    {BENCH_DEQUANT, BENCH_TOKEN_BIAS_I32, BENCH_CHANNEL},
    {BENCH_DEQUANT, BENCH_TOKEN_BIAS_F32, BENCH_CHANNEL},
    {BENCH_REQUANT, BENCH_MUL, BENCH_UNIFORM},
    {BENCH_REQUANT, BENCH_MUL, BENCH_CHANNEL},
    {BENCH_REQUANT, BENCH_SYMMETRIC, BENCH_CHANNEL},
};

static struct bench_case case_of(struct kind kind, npuq_dtype x, npuq_dtype y, int64_t rows, int64_t cols,
                                 unsigned sets)
{
    struct bench_case c = {
        .op = kind.op,
        .mode = kind.mode,
        .parameters = kind.parameters,
        .x_dtype = x,
        .y_dtype = y,
        .ndim = 2,
        .shape = {rows, cols},
        .groups = kind.parameters == BENCH_GROUPS ? BENCH_GROUP_COUNT : 0,
        .sets = sets,
    };

    return c;
}

static bool is_float(npuq_dtype dtype)
{
    return dtype == NPUQ_FLOAT32 || dtype == NPUQ_FLOAT16 || dtype == NPUQ_BFLOAT16;
}

static bool takes(struct kind kind, npuq_dtype x, npuq_dtype y)
{
    switch (kind.op) {
    case BENCH_ANTI_QUANT: return (x == NPUQ_INT8 || x == NPUQ_QUINT4X2) && is_float(y);
    case BENCH_DEQUANT: return x == NPUQ_INT32 && is_float(y);
    case BENCH_REQUANT: /* no offsets to float16 */
        return x == NPUQ_INT32 && (y == NPUQ_INT8 || (y == NPUQ_FLOAT16 && kind.mode == BENCH_MUL));
    default: break;
    }
    switch (y) {
    case NPUQ_INT8: return is_float(x);
    case NPUQ_UINT8:
    case NPUQ_INT32: return is_float(x) && kind.mode == BENCH_DIV;
    case NPUQ_QUINT4X2: return is_float(x) && kind.mode != BENCH_DIV;
    case NPUQ_FLOAT32:
    case NPUQ_FLOAT16:
    case NPUQ_BFLOAT16:
    case NPUQ_INT64:
    case NPUQ_UINT64: break;
    }
    return false;
}

/* float32 and bfloat16 to int8 everywhere, the other types where a model is likely to have them */
static bool is_usual(struct kind kind, npuq_dtype x, npuq_dtype y)
{
    switch (kind.op) {
    case BENCH_ANTI_QUANT: return y == NPUQ_BFLOAT16 || x == NPUQ_INT8 || kind.parameters == BENCH_CHANNEL;
    case BENCH_DEQUANT:
        return y == NPUQ_BFLOAT16 || (kind.parameters == BENCH_CHANNEL && kind.mode != BENCH_TOKEN_BIAS_I32);
    case BENCH_REQUANT: return true;
    default: break;
    }
    if (kind.mode == BENCH_TENSOR && kind.parameters == BENCH_SMOOTH) {
        return false;
    }
    if (y == NPUQ_INT8) {
        return x != NPUQ_FLOAT16 || kind.op == BENCH_DYNAMIC_BLOCK_QUANT ||
               (kind.parameters == BENCH_UNIFORM && kind.mode != BENCH_DIV);
    }
    return y == NPUQ_QUINT4X2 && x == NPUQ_BFLOAT16 && kind.parameters != BENCH_SMOOTH && kind.mode != BENCH_TENSOR &&
           kind.mode != BENCH_BLOCK_32;
}

/* decode; small batches, which the second-level cache holds; prefill; beyond the last caches; weights */
static const struct {
    int64_t shape[2];
    unsigned sets; /* of usual types */
} model_shapes[] = {
    {{1, 128}, BENCH_OVERHEAD},    {{1, 1024}, BENCH_OVERHEAD}, {{1, 4096}, BENCH_MODELS | BENCH_OVERHEAD},
    {{8, 4096}, BENCH_MODELS},     {{64, 1024}, BENCH_MODELS},  {{512, 4096}, BENCH_MODELS},
    {{16384, 4096}, BENCH_MODELS}, {{4096, 4096}, BENCH_RARE},  {{11008, 4096}, BENCH_RARE}};

/* Groups need a row each, except in group_quant, which is also called for one row. */
static bool has_rows(struct kind kind, int64_t rows)
{
    return kind.parameters != BENCH_GROUPS || kind.op == BENCH_GROUP_QUANT || rows >= BENCH_GROUP_COUNT;
}

static void add_model_shapes(struct list *list, struct kind kind, npuq_dtype x, npuq_dtype y)
{
    for (size_t s = 0; s < sizeof model_shapes / sizeof model_shapes[0]; s++) {
        const int64_t *shape = model_shapes[s].shape;
        if (has_rows(kind, shape[0])) {
            add(list,
                case_of(kind, x, y, shape[0], shape[1], is_usual(kind, x, y) ? model_shapes[s].sets : BENCH_RARE));
        }
    }
}

static void add_models(struct list *list)
{
    static const npuq_dtype xs[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16, NPUQ_INT8, NPUQ_QUINT4X2, NPUQ_INT32};
    static const npuq_dtype ys[] = {NPUQ_INT8,    NPUQ_UINT8,   NPUQ_INT32,   NPUQ_QUINT4X2,
                                    NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t y = 0; y < sizeof ys / sizeof ys[0]; y++) {
            for (size_t x = 0; x < sizeof xs / sizeof xs[0]; x++) {
                if (takes(kinds[k], xs[x], ys[y])) {
                    add_model_shapes(list, kinds[k], xs[x], ys[y]);
                }
            }
        }
    }
    static const int64_t lengths[] = {128, 1024, 4096, 16384, 1000000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct bench_case c = {.op = BENCH_TRANS_QUANT_PARAM,
                               .mode = BENCH_NEAREST,
                               .parameters = BENCH_CHANNEL,
                               .x_dtype = NPUQ_FLOAT32,
                               .y_dtype = NPUQ_INT64,
                               .ndim = 1,
                               .shape = {lengths[i]},
                               .sets = lengths[i] < 4096 ? BENCH_OVERHEAD : BENCH_MODELS};
        add(list, c);
    }
}

/* Kinds with types, and the sets that take them, for sets of few kinds. */
static const struct {
    struct kind kind;
    npuq_dtype x;
    npuq_dtype y;
    unsigned sets;
} few[] = {
    {{BENCH_QUANTIZE, BENCH_MUL, BENCH_UNIFORM}, NPUQ_FLOAT32, NPUQ_INT8, BENCH_SWEEP | BENCH_THREADS | BENCH_SIZES},
    {{BENCH_QUANTIZE, BENCH_MUL, BENCH_CHANNEL}, NPUQ_FLOAT32, NPUQ_INT8, BENCH_SIZES},
    {{BENCH_QUANTIZE, BENCH_MUL, BENCH_CHANNEL}, NPUQ_BFLOAT16, NPUQ_INT8, BENCH_SWEEP},
    {{BENCH_QUANTIZE, BENCH_DIV, BENCH_UNIFORM}, NPUQ_FLOAT32, NPUQ_INT8, BENCH_SWEEP},
    {{BENCH_QUANTIZE, BENCH_DIV, BENCH_CHANNEL}, NPUQ_BFLOAT16, NPUQ_INT8, BENCH_THREADS},
    {{BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TOKEN, BENCH_PLAIN}, NPUQ_FLOAT32, NPUQ_INT8, BENCH_SIZES},
    {{BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TOKEN, BENCH_PLAIN}, NPUQ_BFLOAT16, NPUQ_INT8, BENCH_SWEEP | BENCH_THREADS},
    {{BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TENSOR, BENCH_PLAIN}, NPUQ_FLOAT32, NPUQ_INT8, BENCH_SIZES},
    {{BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TENSOR, BENCH_PLAIN},
     NPUQ_BFLOAT16,
     NPUQ_INT8,
     BENCH_SWEEP | BENCH_THREADS},
    {{BENCH_DYNAMIC_QUANT, BENCH_TOKEN, BENCH_PLAIN}, NPUQ_BFLOAT16, NPUQ_INT8, BENCH_SWEEP | BENCH_THREADS},
    {{BENCH_DYNAMIC_BLOCK_QUANT, BENCH_BLOCK_128, BENCH_PLAIN}, NPUQ_BFLOAT16, NPUQ_INT8, BENCH_SWEEP | BENCH_THREADS},
    {{BENCH_ANTI_QUANT, BENCH_MUL, BENCH_CHANNEL}, NPUQ_INT8, NPUQ_BFLOAT16, BENCH_SWEEP | BENCH_THREADS | BENCH_SIZES},
    {{BENCH_DEQUANT, BENCH_TOKEN, BENCH_CHANNEL}, NPUQ_INT32, NPUQ_BFLOAT16, BENCH_SWEEP | BENCH_THREADS | BENCH_SIZES},
    {{BENCH_REQUANT, BENCH_MUL, BENCH_CHANNEL}, NPUQ_INT32, NPUQ_INT8, BENCH_SWEEP | BENCH_THREADS | BENCH_SIZES},
};

/* Shapes and numbers of threads; 0: as for all cases. */
static const struct {
    unsigned set;
    int64_t shape[2];
    int threads;
} few_shapes[] = {
    {BENCH_SWEEP, {1, 4096}, 0},     {BENCH_SWEEP, {8, 4096}, 0},       {BENCH_SWEEP, {64, 4096}, 0},
    {BENCH_SWEEP, {512, 4096}, 0},   {BENCH_SWEEP, {4096, 4096}, 0},    {BENCH_SWEEP, {16384, 4096}, 0},
    {BENCH_THREADS, {512, 4096}, 2}, {BENCH_THREADS, {16384, 4096}, 2}, {BENCH_SIZES, {1000000, 8}, 0},
    {BENCH_SIZES, {1, 10000000}, 0},
};

static void add_few(struct list *list)
{
    for (size_t i = 0; i < sizeof few_shapes / sizeof few_shapes[0]; i++) {
        for (size_t k = 0; k < sizeof few / sizeof few[0]; k++) {
            if (few[k].sets & few_shapes[i].set) {
                struct bench_case c = case_of(few[k].kind, few[k].x, few[k].y, few_shapes[i].shape[0],
                                              few_shapes[i].shape[1], few_shapes[i].set);
                c.threads = few_shapes[i].threads;
                c.baseline = c.threads > 0 ? BENCH_ONE_THREAD : BENCH_NO_BASELINE;
                add(list, c);
            }
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
                                   .mode = BENCH_DIV,
                                   .parameters = BENCH_AXIS,
                                   .x_dtype = NPUQ_FLOAT32,
                                   .y_dtype = NPUQ_INT8,
                                   .ndim = 3,
                                   .shape = {image < 1 << 21 ? (1 << 21) / image : 1, channels[i], inner[j]},
                                   .sets = BENCH_LAYOUT};
            add(list, c);
        }
    }
}

static void add_variant(struct list *list, struct bench_case c, enum bench_variant variant)
{
    c.variant = variant;
    c.baseline = bench_is_view(&c) ? BENCH_COPY_FIRST : BENCH_USUAL_DATA;
    add(list, c);
}

static void add_variants(struct list *list)
{
    static const struct kind uniform = {BENCH_QUANTIZE, BENCH_MUL, BENCH_UNIFORM};
    static const struct kind columns = {BENCH_QUANTIZE, BENCH_MUL, BENCH_CHANNEL};
    static const struct kind token = {BENCH_DYNAMIC_QUANT_ASYMMETRIC, BENCH_TOKEN, BENCH_PLAIN};

    for (int64_t rows = 64; rows <= 4096; rows *= 64) {
        const int64_t cols = rows == 64 ? 1024 : 4096;
        for (int v = BENCH_EVERY_SECOND; v <= BENCH_TRANSPOSED_Y; v++) {
            add_variant(list, case_of(uniform, NPUQ_FLOAT32, NPUQ_INT8, rows, cols, BENCH_VIEWS),
                        (enum bench_variant)v);
        }
        add_variant(list, case_of(uniform, NPUQ_BFLOAT16, NPUQ_INT8, rows, cols, BENCH_VIEWS), BENCH_TRANSPOSED_X);
        add_variant(list, case_of(token, NPUQ_FLOAT32, NPUQ_INT8, rows, cols, BENCH_VIEWS), BENCH_TRANSPOSED_X);
    }
    for (int v = BENCH_SATURATED; v <= BENCH_SUBNORMAL; v++) {
        add_variant(list, case_of(uniform, NPUQ_FLOAT32, NPUQ_INT8, 64, 1024, BENCH_DATA), (enum bench_variant)v);
        add_variant(list, case_of(uniform, NPUQ_BFLOAT16, NPUQ_INT8, 64, 1024, BENCH_DATA), (enum bench_variant)v);
        add_variant(list, case_of(columns, NPUQ_FLOAT32, NPUQ_INT8, 64, 1024, BENCH_DATA), (enum bench_variant)v);
    }
    add_variant(list, case_of(token, NPUQ_FLOAT32, NPUQ_INT8, 64, 1024, BENCH_DATA), BENCH_SUBNORMAL);
}

struct bench_case *bench_cases(int ndim, const int64_t *shape, size_t *count)
{
    struct list list = {.ndim = ndim, .shape = shape};

    add_models(&list);
    add_few(&list);
    add_layouts(&list);
    add_variants(&list);
    if (list.failed) {
        free(list.cases);
        return NULL;
    }
    *count = list.count;
    return list.cases;
}
