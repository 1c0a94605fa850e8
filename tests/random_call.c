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

static void copy_results(struct random_call *random)
{
    for (int r = 0; r < call_results(&random->call); r++) {
        assert_true(array_copy(&random->dump[r], &random->results[r]));
    }
}

static enum test_operator operator_of(unsigned op)
{
    enum test_operator number = 0;

    while (op >> (number + 1) != 0) {
        number++;
    }
    return number;
}

struct random_call random_call_of(unsigned op, const npuq_tensor *const operands[OPERANDS],
                                  const struct call_options *options)
{
    struct random_call made = {.results = {{0}}};
    test_call c = {.op = operator_of(op),
                   .axis = options->axis,
                   .div_mode = options->divides,
                   .quant_mode = options->per_tensor ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN,
                   .scale_form = options->inverse_form ? NPUQ_SCALE_INVERSE : NPUQ_SCALE_PRODUCT,
                   .row_block = options->row_block,
                   .block = options->block,
                   .min_scale = options->min_scale,
                   .dst_type_max = options->dst_type_max};
    const npuq_tensor *x = operands[OPERAND_X];
    const npuq_shape_facts facts = {x->ndim, x->shape, options->per_tensor, .row_block = options->row_block,
                                    .block = options->block};

    assert_true(call_make(&made.call, op, operands, options));
    for (enum slot slot = 0; slot < SLOTS; slot++) {
        const unsigned role = roles[c.op][slot];

        if (test_is_output(c.op, slot)) {
            struct array *result = &made.results[role];
            int64_t shape[NPUQ_MAX_NDIM];
            const int ndim = npuq_make_shape(test_arguments[c.op][slot].shape, &facts, shape);

            *result = (struct array){.dtype = call_result_dtype(&made.call, (enum result)role),
                                     .count = call_result_count(&made.call, (enum result)role)};
            result->data = calloc(result->count + 1, 8);
            assert_non_null(result->data);
            shape[ndim - 1] /= npuq_values_in_word(result->dtype);
            c.tensors[slot] = npuq_tensor_contiguous(result->data, result->dtype, ndim, shape);
            c.given[slot] = true;
        } else if (test_has(c.op, slot) && operands[role]) {
            c.tensors[slot] = *operands[role];
            c.given[slot] = true;
        }
    }
    assert_int_equal(test_call_run(&c), NPUQ_OK);
    copy_results(&made);
    return made;
}

bool random_call_make(struct random_call *random, unsigned op, size_t (*choose)(size_t end))
{
    test_drawing d = test_undrawn(op == ROW_QUANT ? TEST_DYNAMIC_QUANT : operator_of(op));
    const npuq_tensor *operands[OPERANDS] = {NULL};
    const test_call *c = &d.call;

    d.choose = choose;
    test_draw_call(&d);
    if (op == ROW_QUANT) {
        *random = (struct random_call){.results = {{0}}};
        const bool made = make_rows(random, &c->tensors[X], choose);
        test_free_drawing(&d);
        if (made) {
            copy_results(random);
        }
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
                                         .row_block = c->row_block,
                                         .block = test_has_option(c->op, OPTION_BLOCK) ? c->block : 0,
                                         .min_scale = c->min_scale,
                                         .dst_type_max = c->dst_type_max,
                                         .mx = {.block = (size_t)c->block,
                                                .rounding = (npuq_ref_rounding)c->rounding,
                                                .scale_algorithm = c->scale_algorithm,
                                                .small_groups = (npuq_ref_small_groups)c->small_groups,
                                                .max_low_bound = c->max_low_bound,
                                                .bad_is_nan = c->bad_groups != 0},
                                         .y_dtype = c->tensors[Y].dtype};
    if (accepted) {
        assert_true(call_make(&random->call, op, operands, &options));
        copy_results(random);
    }
    test_free_drawing(&d);
    return accepted;
}

void random_call_predict(struct random_call *random, const struct variant *variant)
{
    for (int r = 0; r < call_results(&random->call); r++) {
        struct predictor p = {.call = &random->call, .variant = variant};

        for (size_t i = 0; i < random->dump[r].count; i++) {
            array_set_bits(&random->dump[r], i, predict(&p, (enum result)r, i, NULL));
        }
    }
}

void random_call_release(struct random_call *random)
{
    for (int r = 0; r < RESULTS; r++) {
        array_release(&random->dump[r]);
        array_release(&random->results[r]);
    }
    call_release(&random->call);
}
