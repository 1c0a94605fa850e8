/* SPDX-License-Identifier: BSD-3-Clause */
#include "row_quant.h"

#include "state.h"
#include "steps.h"

/* Threads cost more than they save for fewer elements. */
enum { FEWEST_FOR_THREADS = 1 << 14 };

struct rows {
    struct call call;
    struct array y;
    struct array scale;
};

static void quantise(void *argument, size_t begin, size_t end)
{
    static const struct variant definition;
    const struct state caller = enter_state();
    struct rows *rows = argument;
    const struct call *call = &rows->call;

    for (size_t row = begin; row < end; row++) {
        const struct extremes extremes = steps_extremes(call, &definition, row);
        const struct token token = steps_token(call, &definition, &extremes, NULL);
        array_set_bits(&rows->scale, row, steps_parameter(call, &token, RESULT_SCALE));
        for (size_t i = row * call->columns; i < (row + 1) * call->columns; i++) {
            array_set_bits(&rows->y, i, steps_element(call, &definition, &token, i, NULL));
        }
    }
    leave_state(&caller);
}

npuq_status row_quant(const npuq_tensor *v, int32_t rule, const npuq_tensor *y, const npuq_tensor *scale,
                      const npuq_executor *executor)
{
    const struct call_options options = {.axis = -1, .rule = (enum rule)rule, .y_dtype = NPUQ_INT8};
    struct rows rows;

    call_view(&rows.call, ROW_QUANT, v, &options);
    rows.y = (struct array){y->data, y->dtype, rows.call.count};
    rows.scale = (struct array){scale->data, scale->dtype, rows.call.rows};
    if (executor && rows.call.count >= FEWEST_FOR_THREADS) {
        executor->parallel_for(executor->context, rows.call.rows, quantise, &rows);
    } else {
        quantise(&rows, 0, rows.call.rows);
    }
    return NPUQ_OK;
}
