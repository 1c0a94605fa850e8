/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of any operator that the library accepts, random or given, with its results and a dump: for tests of the
 * diagnosis. */
#ifndef NPUQ_TESTS_RANDOM_CALL_H
#define NPUQ_TESTS_RANDOM_CALL_H

#include <predict.h>

struct random_call {
    struct call call;
    struct array results[RESULTS]; /* data is null where the operator has no such result */
    struct array dump[RESULTS];    /* at first a copy of the results */
};

/* Draws types, shape, options and layouts with choose(end), which gives 0 to end - 1, and values with test_fill().
 * False if the library refuses the call, which may happen without elements. The caller releases it in any case. */
bool random_call_make(struct random_call *random, unsigned op, size_t (*choose)(size_t end));
/* The call with these operands, and its results. */
struct random_call random_call_of(unsigned op, const npuq_tensor *const operands[OPERANDS],
                                  const struct call_options *options);
/* The dump becomes that of a kernel with a mistake. */
void random_call_predict(struct random_call *random, const struct variant *variant);
void random_call_release(struct random_call *random);

#endif
