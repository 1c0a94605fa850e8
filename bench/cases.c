/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- names ------------------------------------------------------------------------------------------------------- */

#define NAME_OF(name, NAME, EXECUTOR) #name,
static const char *const operators[] = {EACH_OPERATOR(NAME_OF) NULL};
static const char *const modes[] = {"mul",       "div",     "nearest",        "token",
                                    "tensor",    "weight",  "token-bias-i32", "token-bias-f32",
                                    "symmetric", "block32", "block128",       NULL};
static const char *const parameters[] = {"uniform", "channel", "axis", "plain", "smooth", "experts64", NULL};
static const char *const variants[] = {"",         "saturated", "nan",          "subnormal",    "every-second",
                                       "reversed", "broadcast", "transposed-x", "transposed-y", NULL};
static const char *const types[] = {"f32", "f16", "bf16", "i8", "u8", "i32", "i4", "i64", "u64", NULL};
static const npuq_dtype dtypes[] = {NPUQ_FLOAT32, NPUQ_FLOAT16,  NPUQ_BFLOAT16, NPUQ_INT8,  NPUQ_UINT8,
                                    NPUQ_INT32,   NPUQ_QUINT4X2, NPUQ_INT64,    NPUQ_UINT64};

/* What each operator takes, by the numbers above: what is not here would be measured with senseless operands. */
#define BIT(number) (1u << (number))
enum { FLOATS = 7, I8 = 8, U8 = 16, I32 = 32, I4 = 64, I64 = 128 }; /* bits of types */
static const struct {
    unsigned modes;
    unsigned parameters;
    unsigned x;
    unsigned y;
} taken[] = {
    [BENCH_QUANTIZE] = {BIT(BENCH_MUL) | BIT(BENCH_DIV), BIT(BENCH_UNIFORM) | BIT(BENCH_CHANNEL) | BIT(BENCH_AXIS),
                        FLOATS, I8 | U8 | I32 | I4},
    [BENCH_GROUP_QUANT] = {BIT(BENCH_MUL), BIT(BENCH_GROUPS), FLOATS, I8 | I4},
    [BENCH_DYNAMIC_QUANT_ASYMMETRIC] = {BIT(BENCH_TOKEN) | BIT(BENCH_TENSOR),
                                        BIT(BENCH_PLAIN) | BIT(BENCH_SMOOTH) | BIT(BENCH_GROUPS), FLOATS, I8 | I4},
    [BENCH_DYNAMIC_QUANT] = {BIT(BENCH_TOKEN) | BIT(BENCH_TENSOR),
                             BIT(BENCH_PLAIN) | BIT(BENCH_SMOOTH) | BIT(BENCH_GROUPS), FLOATS, I8 | I4},
    [BENCH_DYNAMIC_BLOCK_QUANT] = {BIT(BENCH_BLOCK_32) | BIT(BENCH_BLOCK_128), BIT(BENCH_PLAIN), FLOATS, I8 | I4},
    [BENCH_ANTI_QUANT] = {BIT(BENCH_MUL), BIT(BENCH_UNIFORM) | BIT(BENCH_CHANNEL), I8 | I4, FLOATS},
    [BENCH_DEQUANT] = {BIT(BENCH_WEIGHT) | BIT(BENCH_TOKEN) | BIT(BENCH_TOKEN_BIAS_I32) | BIT(BENCH_TOKEN_BIAS_F32),
                       BIT(BENCH_UNIFORM) | BIT(BENCH_CHANNEL), I32, FLOATS},
    [BENCH_REQUANT] = {BIT(BENCH_MUL) | BIT(BENCH_SYMMETRIC), BIT(BENCH_UNIFORM) | BIT(BENCH_CHANNEL), I32, I8 | 2},
    [BENCH_TRANS_QUANT_PARAM] = {BIT(BENCH_NEAREST), BIT(BENCH_CHANNEL), 1, I64},
};

/* Reads a word, and the sign behind it if there is one. Returns the word's number, or -1 if it is none of these. */
static int read_word(const char **at, const char *const *words, char sign)
{
    for (int i = 0; words[i]; i++) {
        const size_t length = strlen(words[i]);

        if (length > 0 && strncmp(*at, words[i], length) == 0 && ((*at)[length] == sign || (*at)[length] == '\0')) {
            *at += length + ((*at)[length] == sign);
            return i;
        }
    }
    return -1;
}

static bool read_shape(const char **at, struct bench_case *c)
{
    double elements = 1;

    while (c->ndim < BENCH_MAX_NDIM && **at >= '1' && **at <= '9') {
        char *end;

        c->shape[c->ndim] = strtoll(*at, &end, 10);
        elements *= (double)c->shape[c->ndim++];
        *at = end + (*end == 'x' || *end == '/');
        if (*end != 'x') {
            return elements <= 0x1p40 && (*end == '/' || *end == '\0');
        }
    }
    return false;
}

static bool is_threads(const char *at)
{
    return at[0] == 't' && at[1] >= '0' && at[1] <= '9';
}

const char *bench_parse(const char *name, struct bench_case *c)
{
    const char *at = name;

    *c = (struct bench_case){0};
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    const int op = read_word(&at, operators, '/');
    const int mode = op < 0 ? -1 : read_word(&at, modes, '/');
    const int parameter = mode < 0 ? -1 : read_word(&at, parameters, '/');
    const int x = parameter < 0 ? -1 : read_word(&at, types, '-');
    const int y = x < 0 ? -1 : read_word(&at, types, '/');
    if (y < 0 || !read_shape(&at, c) || strlen(name) >= sizeof c->name) {
        return at;
    }
    if (!(taken[op].modes & BIT(mode) && taken[op].parameters & BIT(parameter) && taken[op].x & BIT(x) &&
          taken[op].y & BIT(y))) {
        return name;
    }
    c->op = (enum bench_operator)op;
    c->mode = (enum bench_mode)mode;
    c->parameters = (enum bench_parameters)parameter;
    c->x_dtype = dtypes[x];
    c->y_dtype = dtypes[y];
    c->groups = c->parameters == BENCH_GROUPS ? BENCH_GROUP_COUNT : 0;
    if (c->ndim != (c->op == BENCH_TRANS_QUANT_PARAM ? 1 : c->parameters == BENCH_AXIS ? 3 : 2)) {
        return at;
    }
    if (*at != '\0' && !is_threads(at)) {
        const int variant = read_word(&at, variants, '/');

        c->variant = variant < 0 ? BENCH_USUAL : (enum bench_variant)variant;
        c->baseline = bench_is_view(c) ? BENCH_COPY_FIRST : BENCH_USUAL_DATA;
    }
    if (is_threads(at)) {
        char *end;

        c->threads = (int)strtol(at + 1, &end, 10);
        c->baseline = BENCH_ONE_THREAD;
        at = c->threads > 1 && c->threads <= 64 ? end : at;
    }
    return *at == '\0' ? NULL : at;
}
