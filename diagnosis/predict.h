/* SPDX-License-Identifier: BSD-3-Clause */
/* What a kernel with given mistakes returns, element by element. */
#ifndef NPUQUANT_PREDICT_H
#define NPUQUANT_PREDICT_H

#include "steps.h"

/* Extremes found before. Rows are long, and callers ask for the elements of a row in order, under many variants. */
struct extremes_cache;

struct extremes_cache *extremes_cache_make(size_t tokens); /* for so many rows; null if there is not the memory */
void extremes_cache_release(struct extremes_cache *cache);

/* The number of values visited for extremes. */
uint64_t extremes_cache_visits(const struct extremes_cache *cache);

struct predictor {
    const struct call *call;
    const struct variant *variant;
    struct extremes_cache *cache; /* null: only the last token is kept */
    const struct token *tokens;   /* all of the call, found by predict_token(); null: they are found one by one */
    size_t token_index;
    struct token token;
    bool has_token;
    size_t running_rows;
    struct extremes running; /* of so many rows, of a kernel whose range never begins anew */
};

/* What the elements of a token of the kernel share; the call has tokens. */
struct token predict_token(struct predictor *predictor, size_t token, struct trace *trace);

uint64_t predict(struct predictor *predictor, enum result result, size_t i, struct trace *trace);

#endif
