/* SPDX-License-Identifier: BSD-3-Clause */
#include "predict.h"

#include <stdlib.h>
#include <string.h>

/* ---- extremes --------------------------------------------------------------------------------------------------- */

enum { MOST_SLOTS = 1 << 17, SLOTS_OF_TOKEN = 256 };

struct slot {
    size_t tokens; /* the token's number and 1; 0: nothing was found yet */
    struct extremes_key key;
    struct extremes extremes;
};

struct extremes_cache {
    uint64_t visits;
    size_t count; /* a power of two */
    struct slot slots[];
};

struct extremes_cache *extremes_cache_make(size_t tokens)
{
    size_t count = SLOTS_OF_TOKEN;

    while (count < MOST_SLOTS && count / SLOTS_OF_TOKEN < tokens) {
        count *= 2;
    }
    struct extremes_cache *cache = calloc(1, sizeof *cache + count * sizeof cache->slots[0]);
    if (cache) {
        cache->count = count;
    }
    return cache;
}

void extremes_cache_release(struct extremes_cache *cache)
{
    free(cache);
}

uint64_t extremes_cache_visits(const struct extremes_cache *cache)
{
    return cache->visits;
}

static struct extremes find_extremes(const struct predictor *p, size_t token);

/* The extremes of rows, each of which other variants look at, too. */
static struct extremes join_rows(const struct predictor *p, size_t begin, size_t end, const struct extremes *before)
{
    struct variant own = *p->variant;
    const struct predictor rows = {.call = p->call, .variant = &own, .cache = p->cache};

    own.choice[STEP_BLOCK] = AS_DEFINED;
    struct extremes all = before ? *before : find_extremes(&rows, begin++);
    for (; begin < end; begin++) {
        const struct extremes next = find_extremes(&rows, begin);
        all = steps_join(&all, &next);
    }
    return all;
}

static struct extremes make_extremes(const struct predictor *p, size_t token)
{
    const struct span span = steps_token_span(p->call, p->variant, token);
    const int how = p->variant->choice[STEP_BLOCK];

    if (how == BLOCK_TENSOR || how >= BLOCK_ROWS) {
        return join_rows(p, span.begin / p->call->columns, span.end / p->call->columns, NULL);
    }
    if (p->cache) {
        p->cache->visits += (span.end - span.begin) / span.stride * span.rows;
    }
    return steps_extremes(p->call, p->variant, token);
}

static struct extremes find_extremes(const struct predictor *p, size_t token)
{
    const struct extremes_key key = steps_extremes_key(p->variant);
    uint64_t hash = token;

    if (!p->cache) {
        return make_extremes(p, token);
    }
    for (size_t i = 0; i < sizeof key.choice; i++) {
        hash = (hash ^ key.choice[i]) * 0x100000001B3U;
    }
    /* A slot for each token and variant, taken by whoever came last. */
    struct slot *slot = &p->cache->slots[(hash ^ hash >> 32) % p->cache->count];
    if (slot->tokens != token + 1 || memcmp(&slot->key, &key, sizeof key) != 0) {
        *slot = (struct slot){token + 1, key, make_extremes(p, token)};
    }
    return slot->extremes;
}

/* The extremes of a row and those before it: from those that the predictor found last, if they end in a row before. */
static struct extremes find_running(struct predictor *p, size_t row)
{
    const size_t known = p->running_rows <= row ? p->running_rows : 0;

    if (p->running_rows != row + 1) {
        p->running = join_rows(p, known, row + 1, known > 0 ? &p->running : NULL);
        p->running_rows = row + 1;
    }
    return p->running;
}

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

/* The element of y that is at place i of the dump; false if that place was not written. */
static bool find_source(const struct call *call, const struct variant *variant, size_t *i)
{
    const struct layout *layout = &variant->layout;
    const size_t row = *i / call->columns;
    const size_t column = *i % call->columns;

    switch (variant->choice[STEP_LAYOUT]) {
    case LAYOUT_TAIL_UNTOUCHED: return column < layout->from;
    case LAYOUT_ROWS_UNTOUCHED: return row < layout->from;
    case LAYOUT_ROWS_OVERWRITTEN: return row == 0 || column >= layout->from;
    case LAYOUT_ROWS_PERMUTED: *i = layout->row_of[row] * call->columns + column; return true;
    default: *i = steps_element_at(call, variant->choice[STEP_LAYOUT], call->options.y_dtype, *i); return true;
    }
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

struct token predict_token(struct predictor *p, size_t token, struct trace *trace)
{
    const bool runs = p->variant->choice[STEP_BLOCK] == BLOCK_RUNNING;
    const struct extremes extremes = runs ? find_running(p, token) : find_extremes(p, token);

    return steps_token(p->call, p->variant, &extremes, trace);
}

/* Before the layout. */
static uint64_t predict_element(struct predictor *p, enum result result, size_t i, struct trace *trace)
{
    if (result != RESULT_Y && steps_is_vacant(p->call, p->variant, i)) {
        return 0;
    }
    if (p->call->tokens > 0) {
        const size_t token = result == RESULT_Y ? steps_token_of(p->call, p->variant, i)
                                                : steps_token_of_parameter(p->call, p->variant, i);
        if (!p->has_token || p->token_index != token || trace) {
            p->token = p->tokens ? p->tokens[token] : predict_token(p, token, trace);
            p->token_index = token;
            p->has_token = true;
        }
    }
    return result == RESULT_Y ? steps_element(p->call, p->variant, &p->token, i, trace)
                              : steps_parameter(p->call, &p->token, result);
}

/* The int4 at i of a word or a byte, as the kernel packs it. */
static uint64_t predict_packed(struct predictor *p, size_t i, struct trace *trace)
{
    const int how = p->variant->choice[STEP_LAYOUT];
    const size_t length = how < LAYOUT_BYTES_UNMASKED ? 8 : 2;
    const bool masks_none = how == LAYOUT_WORDS_UNMASKED || how == LAYOUT_BYTES_UNMASKED;
    int64_t packed = 0;

    for (size_t k = length; k-- > 0;) {
        const size_t at = i - i % length + k;
        const int64_t value = (int32_t)predict_element(p, RESULT_Y, at, at == i ? trace : NULL);
        packed = masks_none ? packed * 16 | value : packed * 16 + value;
    }
    if (how == LAYOUT_BYTES_SATURATED) {
        packed = packed < INT8_MIN ? INT8_MIN : packed > INT8_MAX ? INT8_MAX : packed;
    }
    return (uint64_t)packed >> 4 * (i % length) & 15;
}

uint64_t predict(struct predictor *p, enum result result, size_t i, struct trace *trace)
{
    if (result == RESULT_Y && !find_source(p->call, p->variant, &i)) {
        return p->variant->layout.fill;
    }
    return result == RESULT_Y && variant_packs(p->variant) ? predict_packed(p, i, trace)
                                                           : predict_element(p, result, i, trace);
}
