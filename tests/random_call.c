/* SPDX-License-Identifier: BSD-3-Clause */
#include "random_call.h"

#include "calls.h"

#define OPERAND(name, NAME, role) [NAME] = OPERAND_##role
#define RESULT(name, NAME, role)  [NAME] = RESULT_##role
#define NEITHER(name, NAME, type) [(int)SLOTS + (int)OPTION_##NAME] = 0
#define ROW(name, NAME, EXECUTOR) [TEST_##NAME] = {ARGUMENTS_##name(OPERAND, OPERAND, OPERAND, RESULT, NEITHER)},
static const unsigned char roles[NUMBER_OF_OPERATORS][(int)SLOTS + (int)OPTIONS] = {EACH_OPERATOR(ROW)};

bool random_call_make(struct random_call *random, unsigned op, size_t (*choose)(size_t end))
{
    test_drawing d = {.choose = choose};
    const npuq_tensor *operands[OPERANDS] = {NULL};
    const test_call *c = &d.call;

    while (op >> (d.call.op + 1) != 0) {
        d.call.op++;
    }
    test_draw_call(&d);
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
