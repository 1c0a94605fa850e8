/* SPDX-License-Identifier: BSD-3-Clause */
#include "random_call.h"

#include "calls.h"

#include <row_quant.h>

#include <stdlib.h>

#define OPERAND(name, NAME, ROLE, ...) [NAME] = OPERAND_##ROLE,
#define RESULT(name, NAME, ROLE, ...)  [NAME] = RESULT_##ROLE,
#define NEITHER(name, NAME, type)
#define ROW(name, NAME, EXECUTOR) [TEST_##NAME] = {ARGUMENTS_##name(OPERAND, OPERAND, OPERAND, RESULT, NEITHER)},
static const unsigned char roles[TEST_OPERATORS][SLOTS] = {EACH_OPERATOR(ROW)};

/* A call of row_quant with the x of a call of dynamic_quant. */
static bool make_rows(struct random_call *random, const npuq_tensor *x, size_t (*choose)(size_t end))
{
    const npuq_tensor *const operands[OPERANDS] = {[OPERAND_X] = x};
    const struct call_options options = {
        .axis = -1, .rule = (enum rule)(1 + choose((size_t)RULES - 1)), .y_dtype = NPUQ_INT8};
    npuq_tensor tensors[1 + (int)RESULTS];

    assert_true(call_make(&random->call, ROW_QUANT, operands, &options));
    if (random->call.rows > 0 && random->call.columns == 0) {
        return false;
    }
    tensors[RESULTS] = npuq_tensor_contiguous(random->call.operands[OPERAND_X].data, x->dtype, x->ndim, x->shape);
    for (int r = 0; r < call_results(&random->call); r++) {
        const enum result result = (enum result)r;
        tensors[r] = npuq_tensor_contiguous(NULL, call_result_dtype(&random->call, result),
                                            x->ndim - (result == RESULT_SCALE), x->shape);
        tensors[r].data = calloc(call_result_count(&random->call, result) + 1, npuq_dtype_size(tensors[r].dtype));
        assert_non_null(tensors[r].data);
        random->results[r] =
            (struct array){tensors[r].data, tensors[r].dtype, call_result_count(&random->call, result)};
    }
    return row_quant(&tensors[RESULTS], (int32_t)options.rule, &tensors[RESULT_Y], &tensors[RESULT_SCALE], NULL) ==
           NPUQ_OK;
}

bool random_call_make(struct random_call *random, unsigned op, size_t (*choose)(size_t end))
{
    test_drawing d = {.choose = choose, .add = test_add_view};
    const npuq_tensor *operands[OPERANDS] = {NULL};
    const test_call *c = &d.call;

    while (op >> (d.call.op + 1) != 0) {
        d.call.op++;
    }
    d.call.op = op == ROW_QUANT ? TEST_DYNAMIC_QUANT : d.call.op;
    test_draw_call(&d);
    if (op == ROW_QUANT) {
        *random = (struct random_call){.results = {{0}}};
        const bool made = make_rows(random, &c->tensors[X], choose);
        test_free_drawing(&d);
        return made;
    }
    const bool accepted = test_call_run(c) == NPUQ_OK;
    *random = (struct random_call){.results = {{0}}};
    for (int slot = 0; accepted && slot < SLOTS; slot++) {
        if (c->given[slot] && test_is_output(c->op, (enum slot)slot)) {
            assert_true(array_make(&random->results[roles[c->op][slot]], &c->tensors[slot]));
        } else if (c->given[slot]) {
            operands[roles[c->op][slot]] = &c->tensors[slot];
        }
    }
    const struct call_options options = {.axis = c->axis,
                                         .divides = c->div_mode,
                                         .per_tensor = c->quant_mode == NPUQ_PER_TENSOR,
                                         .inverse_form = c->scale_form == NPUQ_SCALE_INVERSE,
                                         .rounds_to_nearest = c->round_mode == NPUQ_ROUND_NEAREST,
                                         .block = c->block,
                                         .min_scale = c->min_scale,
                                         .y_dtype = c->tensors[Y].dtype};
    assert_true(!accepted || call_make(&random->call, op, operands, &options));
    test_free_drawing(&d);
    return accepted;
}

void random_call_release(struct random_call *random)
{
    for (int r = 0; r < RESULTS; r++) {
        array_release(&random->results[r]);
    }
    call_release(&random->call);
}
