/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain.h"

#include "predict.h"
#include "state.h"

struct steps explain_steps(const struct call *call, const struct variant *variant, struct element element)
{
    const struct state caller = enter_state();
    struct predictor p = {.call = call, .variant = variant};
    struct steps steps = {.trace = {0}};

    steps.bits = predict(&p, element.result, element.index, &steps.trace);
    leave_state(&caller);
    return steps;
}

int explain_index(const struct call *call, struct element element, size_t index[NPUQ_MAX_NDIM])
{
    const bool blocks = call->options.block > 0 && element.result != RESULT_Y;
    const bool groups = call->op & MICROSCALES && element.result != RESULT_Y;
    const bool one = call->options.per_tensor && element.result != RESULT_Y;
    const int ndim = element.result == RESULT_Y || blocks ? call->ndim : one ? 1 : call->ndim - 1;
    size_t rest = element.index;

    if (groups) {
        const int axis = call_axis(call);
        index[call->ndim] = rest % 2;
        rest /= 2;
        for (int d = call->ndim - 1; d >= 0; d--) {
            const size_t extent = d == axis ? call_lines(call, axis, call->token_length).pairs : call->shape[d];
            index[d] = rest % extent;
            rest /= extent;
        }
        return call->ndim + 1;
    }
    for (int d = ndim - 1; d >= 0; d--) {
        const size_t extent = one                       ? 1
                              : blocks && d == ndim - 1 ? call->tokens / call_bands(call, call->token_rows)
                              : blocks && d == ndim - 2 ? call_bands_of_matrix(call, call->token_rows)
                                                        : call->shape[d];
        index[d] = rest % extent;
        rest /= extent;
    }
    return ndim;
}
