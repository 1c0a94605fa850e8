/* SPDX-License-Identifier: BSD-3-Clause */
#include "random_call.h"

#include "calls.h"

/* The diagnosis has the operators as bits, in this order. */
static const enum test_operator operators[OPERATORS_OF_CALLS] = {
    TEST_QUANTIZE,      TEST_GROUP_QUANT, TEST_TRANS_QUANT_PARAM, TEST_ASYMMETRIC,
    TEST_DYNAMIC_QUANT, TEST_ANTI_QUANT,  TEST_DEQUANT,           TEST_REQUANT};

static enum operand operand_of(enum test_operator op, enum slot slot)
{
    switch (slot) {
    case X: return OPERAND_X;
    case SCALES:
    case SCALE:
    case WEIGHT_SCALE:
    case WORDS: return op == TEST_TRANS_QUANT_PARAM ? OPERAND_X : OPERAND_SCALE;
    case ZERO_POINTS:
    case OFFSET: return OPERAND_OFFSET;
    case SMOOTH_SCALES: return OPERAND_SMOOTH;
    case GROUP_INDEX: return OPERAND_GROUPS;
    case ACTIVATION_SCALE: return OPERAND_ROW_SCALE;
    case BIAS: return OPERAND_BIAS;
    default: return OPERANDS;
    }
}

static enum result result_of(enum slot slot)
{
    return slot == Y ? RESULT_Y : slot == SCALE ? RESULT_SCALE : RESULT_OFFSET;
}

bool random_call_make(struct random_call *random, unsigned op, size_t (*choose)(size_t end))
{
    test_drawing d = {.choose = choose};
    const npuq_tensor *operands[OPERANDS] = {NULL};
    const test_call *c = &d.call;

    while (op >> (d.call.op + 1) != 0) {
        d.call.op++;
    }
    d.call.op = operators[d.call.op];
    test_draw_call(&d);
    const bool accepted = test_call_run(c) == NPUQ_OK;
    *random = (struct random_call){.results = {{0}}};
    for (int slot = 0; accepted && slot < SLOTS; slot++) {
        if (c->given[slot] && test_is_output(c->op, (enum slot)slot)) {
            assert_true(array_make(&random->results[result_of((enum slot)slot)], &c->tensors[slot]));
        } else if (c->given[slot]) {
            operands[operand_of(c->op, (enum slot)slot)] = &c->tensors[slot];
        }
    }
    const struct call_options options = {.axis = c->axis,
                                         .divides = c->div_mode,
                                         .per_tensor = c->quant_mode == NPUQ_PER_TENSOR,
                                         .inverse_form = c->scale_form == NPUQ_SCALE_INVERSE,
                                         .rounds_to_nearest = c->round_mode == NPUQ_ROUND_NEAREST,
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
