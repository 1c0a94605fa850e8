/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that show the known mistakes, each in its own way. Random values seldom do. */
#ifndef NPUQUANT_HARD_INPUTS_H
#define NPUQUANT_HARD_INPUTS_H

#include "call.h"

/* Values of x at most: each mistake goes through all of them. */
enum { HARD_MOST_VALUES = 1 << 20 };

/* The call to make inputs for. */
struct hard_wish {
    unsigned op;
    struct call_options options;
    int ndim;
    int64_t shape[NPUQ_MAX_NDIM]; /* of x, in values; of trans_quant_param the number of words */
    npuq_dtype dtypes[OPERANDS];
    bool present[OPERANDS]; /* which operands there are */
    uint64_t seed;
};

struct hard_inputs {
    struct hard_wish wish;
    npuq_tensor operands[OPERANDS]; /* contiguous; data is null where there is none */
    struct call call;               /* of them */
    size_t *changed;                /* for each hypothesis, how many elements of the results it changes */
    int *same_as;                   /* for each hypothesis, the first one that gives the same results; -1 where it does
                                     * not apply */
};

/* Sets the types that are not chosen, so that they go together with the chosen ones. */
void hard_inputs_choose_types(struct hard_wish *wish, const bool chosen[OPERANDS]);

/* False if there is not the memory. hard_inputs_begin() makes operands with some valid values, so the library can check
 * the call. Then hard_inputs_fill() does the work. There is at least one element. Release the inputs with
 * hard_inputs_release() in any case. */
bool hard_inputs_begin(struct hard_inputs *inputs, const struct hard_wish *wish);
bool hard_inputs_fill(struct hard_inputs *inputs);
void hard_inputs_release(struct hard_inputs *inputs);

#endif
