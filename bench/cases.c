/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bench_is_view(const struct bench_case *c)
{
    return c->variant >= BENCH_EVERY_SECOND;
}

#define NONE(...)
#define ONE(...)                    +1
#define COUNT(name, NAME, EXECUTOR) [BENCH_##NAME] = 0 ARGUMENTS_##name(NONE, NONE, NONE, ONE, NONE),
int bench_results(const struct bench_case *c)
{
    static const int results[] = {EACH_OPERATOR(COUNT)};

    return results[c->op];
}

int64_t bench_block(const struct bench_case *c)
{
    return c->mode == BENCH_BLOCK32 ? 32 : c->mode == BENCH_BLOCK128 ? 128 : 0;
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
    return elements * npuq_dtype_size(dtype) / (size_t)npuq_values_in_word(dtype);
}

size_t bench_x_bytes(const struct bench_case *c)
{
    return bytes_of(bench_elements(c), c->x_dtype);
}

size_t bench_y_bytes(const struct bench_case *c)
{
    return bytes_of(bench_elements(c), c->y_dtype);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

#define TYPE(NAME, name, row, ...) TYPE_##row = NPUQ_##NAME,
enum { EACH_TYPE(TYPE) };
/* What is not here would be measured with senseless operands. cases.py has the list. */
#define KIND(NAME, OPERATOR, MODE, PARAMETERS, X, Y, OFFSET_DTYPE, NDIM, SCALE, OFFSET, ROW_SCALE)                     \
    {NAME,                                                                                                             \
     {.op = BENCH_##OPERATOR,                                                                                          \
      .mode = BENCH_##MODE,                                                                                            \
      .parameters = BENCH_##PARAMETERS,                                                                                \
      .x_dtype = (npuq_dtype)TYPE_##X,                                                                                 \
      .y_dtype = (npuq_dtype)TYPE_##Y,                                                                                 \
      .offset_dtype = (npuq_dtype)TYPE_##OFFSET_DTYPE,                                                                 \
      .ndim = (NDIM),                                                                                                  \
      .scale = (float)(SCALE),                                                                                         \
      .offset = (float)(OFFSET),                                                                                       \
      .row_scale = (float)(ROW_SCALE)}},
static const struct {
    const char *name; /* to the slash before the shape */
    struct bench_case c;
} kinds[] = {
#include "kinds.h"
};

static const char *const variants[] = {"saturated", "nan",       "subnormal",    "every-second",
                                       "reversed",  "broadcast", "transposed-x", "transposed-y"};

/* If the name goes on with the word, and a slash or its end, steps over them. */
static bool skip(const char **at, const char *word)
{
    const size_t length = strlen(word);

    if (strncmp(*at, word, length) != 0 || ((*at)[length] != '/' && (*at)[length] != '\0')) {
        return false;
    }
    *at += length + ((*at)[length] == '/');
    return true;
}

static bool read_shape(const char **at, struct bench_case *c)
{
    double elements = 1;
    char *end;

    for (int d = 0; d < c->ndim; d++) {
        if (**at < '1' || **at > '9') {
            return false;
        }
        c->shape[d] = strtoll(*at, &end, 10);
        elements *= (double)c->shape[d];
        *at = end;
        if (d + 1 < c->ndim && *end == 'x') {
            (*at)++;
        }
    }
    return elements <= 0x1p40 && skip(at, "");
}

const char *bench_parse(const char *name, struct bench_case *c)
{
    const size_t count = sizeof kinds / sizeof kinds[0];
    size_t kind = 0;

    while (kind < count && strncmp(name, kinds[kind].name, strlen(kinds[kind].name)) != 0) {
        kind++;
    }
    if (kind == count || strlen(name) >= sizeof c->name) {
        return name;
    }
    const char *at = name + strlen(kinds[kind].name);
    *c = kinds[kind].c;
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    c->groups = c->parameters == BENCH_EXPERTS64 ? BENCH_GROUP_COUNT : 0;
    if (!read_shape(&at, c)) {
        return at;
    }
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        if (skip(&at, variants[v])) {
            c->variant = (enum bench_variant)(v + 1);
            break;
        }
    }
    if (at[0] == 't' && at[1] >= '0' && at[1] <= '9') {
        char *end;

        c->threads = (int)strtol(at + 1, &end, 10);
        at = c->threads > 1 && c->threads <= 64 ? end : at;
    }
    return *at == '\0' ? NULL : at;
}
