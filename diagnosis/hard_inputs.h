/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs on which the known mistakes show, and differ from one another: random values seldom have them. */
#ifndef NPUQUANT_HARD_INPUTS_H
#define NPUQUANT_HARD_INPUTS_H

#include "call.h"

/* As many values of x as can be gone through for every mistake in a reasonable time. */
enum { HARD_MOST_VALUES = 1 << 20 };

/* What is wanted. */
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

/* Sets the types that are not chosen to such as go together with those that are. */
void hard_inputs_choose_types(struct hard_wish *wish, const bool chosen[OPERANDS]);

/* Two steps, so that the library can say whether it accepts the call before the work is done: the first makes operands
 * whose values do not matter yet, except that they are valid ones, and the second fills them. There is at least one
 * element. False if there is not the memory; released by hard_inputs_release() in any case. */
bool hard_inputs_begin(struct hard_inputs *inputs, const struct hard_wish *wish);
bool hard_inputs_fill(struct hard_inputs *inputs);
void hard_inputs_release(struct hard_inputs *inputs);

#endif
