/* SPDX-License-Identifier: BSD-3-Clause */
/* From a difference to its cause: the steps against the library, the search for each mistake, and what is said. */
#include "random_call.h"
#include "support.h"

#include <diagnosis_report.h>
#include <executor.h>
#include <hard_inputs.h>
#include <hypotheses.h>
#include <predict.h>

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

static const struct variant definition;

/* ---- calls and dumps -------------------------------------------------------------------------------------------- */

static struct random_call make_call(unsigned op)
{
    struct random_call random;

    while (!random_call_make(&random, op, test_below)) { /* refused: it is empty */
        random_call_release(&random);
    }
    return random;
}

static struct random_call make_call_of_elements(unsigned op)
{
    struct random_call random = make_call(op);

    while (random.call.count == 0) {
        random_call_release(&random);
        random = make_call(op);
    }
    return random;
}

static struct array copy_array(const struct array *array)
{
    const size_t items = array->dtype == NPUQ_QUINT4X2 ? array->count / 8 : array->count;
    struct array copy = *array;

    copy.data = malloc(items * dtype_size(array->dtype) + 1);
    assert_non_null(copy.data);
    memcpy(copy.data, array->data, items * dtype_size(array->dtype));
    return copy;
}

/* What a kernel returns. */
struct dump {
    struct array results[RESULTS];
};

static struct dump predict_dump(const struct random_call *random, const struct variant *variant)
{
    struct dump dump = {.results = {{0}}};

    for (int r = 0; r < call_results(&random->call); r++) {
        struct predictor p = {.call = &random->call, .variant = variant};
        dump.results[r] = copy_array(&random->results[r]);
        for (size_t i = 0; i < dump.results[r].count; i++) {
            array_set_bits(&dump.results[r], i, predict(&p, (enum result)r, i, NULL));
        }
    }
    return dump;
}

static void release_dump(struct dump *dump)
{
    for (int r = 0; r < RESULTS; r++) {
        array_release(&dump->results[r]);
    }
}

/* The differences, of which -0 and NaN of other bits are none in scales and offsets. */
static size_t count_differences(const struct array *a, const struct array *b)
{
    size_t count = 0;

    for (int r = 0; r < RESULTS; r++) {
        for (size_t i = 0; i < a[r].count; i++) {
            const uint64_t x = array_bits(&a[r], i);
            const uint64_t y = array_bits(&b[r], i);
            const float u = npuq_ref_from_bits((uint32_t)x);
            const float v = npuq_ref_from_bits((uint32_t)y);
            count += x != y && (r == RESULT_Y || (u != v && !(npuq_ref_is_nan(u) && npuq_ref_is_nan(v))));
        }
    }
    return count;
}

/* A kernel with the mistake. row_of has room for the rows. */
static struct variant example_of(const struct hypothesis *hypothesis, const struct call *call, size_t *row_of)
{
    struct variant variant = {.choice = {0}};

    assert_true(hypothesis_add(hypothesis, &variant));
    variant.layout.fill = 5;
    variant.layout.row_of = row_of;
    for (size_t row = 0; row < call->rows; row++) {
        row_of[row] = call->rows - 1 - row;
    }
    switch (variant.choice[STEP_LAYOUT]) {
    case LAYOUT_TAIL_UNTOUCHED: variant.layout.from = test_below(call->columns); break;
    case LAYOUT_ROWS_UNTOUCHED: variant.layout.from = test_below(call->rows); break;
    default: break;
    }
    return variant;
}

/* The diagnosis, as text or as JSON. */
static struct text report_on(const struct random_call *random, const struct dump *dump, const npuq_executor *executor,
                             bool json)
{
    struct diagnosis diagnosis;
    struct text text = {0};

    assert_true(diagnose(&random->call, random->results, dump->results, executor, &diagnosis));
    (json ? diagnosis_report_json : diagnosis_report_text)(&text, &random->call, dump->results, &diagnosis);
    assert_false(text.failed);
    diagnosis_release(&diagnosis);
    return text;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static void test_steps_are_the_operators(void **unused)
{
    (void)unused;
    for (int o = 0; o < OPERATORS_OF_CALLS; o++) {
        for (int again = 0; again < test_rounds(300); again++) {
            struct random_call random = make_call(1U << o);
            for (int r = 0; r < call_results(&random.call); r++) {
                struct predictor p = {.call = &random.call, .variant = &definition};
                assert_int_equal(random.results[r].count, call_result_count(&random.call, (enum result)r));
                for (size_t i = 0; i < random.results[r].count; i++) {
                    const uint64_t steps = predict(&p, (enum result)r, i, NULL);
                    const uint64_t library = array_bits(&random.results[r], i);
                    if (steps != library) {
                        fail_msg("operator %d, call %d, result %d, element %zu: steps %llx, library %llx", o, again, r,
                                 i, (unsigned long long)steps, (unsigned long long)library);
                    }
                }
            }
            random_call_release(&random);
        }
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void test_hypotheses(void **unused)
{
    static const unsigned char last[STEPS] = {
        [STEP_INPUT] = INPUT_TRUNCATED,
        [STEP_SCALE_PLACE] = PLACE_OTHER_AXIS,
        [STEP_OFFSET_PLACE] = PLACE_OTHER_AXIS,
        [STEP_GROUP] = GROUP_COUNTS,
        [STEP_TOKEN] = PLACE_FIRST,
        [STEP_SCALE] = PARAMETER_LEFT_OUT,
        [STEP_OFFSET] = PARAMETER_UNSIGNED,
        [STEP_SMOOTH] = SMOOTH_IN_RANGE_ONLY,
        [STEP_RANGE] = RANGE_WITHOUT_SIGN,
        [STEP_UNIT] = UNIT_ONE_MORE,
        [STEP_LEAST] = LEAST_ONE_FOR_ZERO,
        [STEP_TOKEN_OFFSET] = TOKEN_OFFSET_ZERO,
        [STEP_FORM] = FORM_DIVIDED,
        [STEP_TOKEN_TYPE] = TYPE_FLOAT64,
        [STEP_SCALING] = SCALING_NO_ROW,
        [STEP_PRODUCT] = TYPE_FLOAT64,
        [STEP_SUM] = SUM_FUSED,
        [STEP_ORDER] = ORDER_OFFSET_FIRST,
        [STEP_BIAS] = BIAS_FLOAT,
        [STEP_ROUNDING] = ROUND_TRUNCATE,
        [STEP_SATURATION] = SATURATE_INDEFINITE,
        [STEP_NAN] = NAN_NEGATIVE,
        [STEP_SUBNORMALS] = SUBNORMAL_ALL,
        [STEP_RESULT] = RESULT_BYTES_SWAPPED,
        [STEP_WORD] = WORD_HALVES_SWAPPED,
        [STEP_LAYOUT] = LAYOUT_ROWS_PERMUTED,
    };

    (void)unused;
    assert_true(hypothesis_count > 0);
    for (int h = 0; h < hypothesis_count; h++) {
        const struct hypothesis *hypothesis = &hypotheses[h];
        struct variant variant = {.choice = {0}};
        int choices = 0;

        assert_true(strlen(hypothesis->name) > 0 &&
                    strspn(hypothesis->name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(hypothesis->name));
        assert_true(strlen(hypothesis->what) > 0);
        assert_int_equal(hypothesis->advice[strlen(hypothesis->advice) - 1], '.');
        assert_true(hypothesis_add(hypothesis, &variant)); /* no step twice */
        for (int s = 0; s < STEPS; s++) {
            if (variant.choice[s] > last[s]) {
                fail_msg("%s: choice %d at step %d", hypothesis->name, variant.choice[s], s);
            }
            choices += variant.choice[s] != AS_DEFINED;
        }
        assert_true(choices > 0);
        for (int g = 0; g < h; g++) { /* one name means one thing in a call */
            if (strcmp(hypotheses[g].name, hypothesis->name) == 0 &&
                (hypotheses[g].operators & hypothesis->operators) && (hypotheses[g].y_types & hypothesis->y_types)) {
                fail_msg("%s: two entries for one call", hypothesis->name);
            }
        }
    }
}

/* ---- the search ------------------------------------------------------------------------------------------------- */

/* The dump of a kernel with one mistake: what is named first gives the same bits, and is that mistake or stands before
 * it in the table. */
static void check_mistake(const struct random_call *random, const struct hypothesis *hypothesis)
{
    size_t *row_of = malloc(random->call.rows * sizeof *row_of);
    assert_non_null(row_of);
    const struct variant variant = example_of(hypothesis, &random->call, row_of);
    struct dump dump = predict_dump(random, &variant);
    const size_t differing = count_differences(random->results, dump.results);
    struct diagnosis diagnosis;

    assert_true(diagnose(&random->call, random->results, dump.results, NULL, &diagnosis));
    assert_int_equal(diagnosis.all_differing, differing);
    if (differing == 0) {
        assert_int_equal(diagnosis.verdict, VERDICT_EQUAL);
    } else {
        const struct finding *best = &diagnosis.findings[0];
        /* An untouched part that begins at 0 is the whole: then there is nothing to go by. */
        const bool known = variant.choice[STEP_LAYOUT] == AS_DEFINED || variant.layout.from > 0 ||
                           variant.choice[STEP_LAYOUT] == LAYOUT_ROWS_PERMUTED;
        if (known && (diagnosis.verdict != VERDICT_EXPLAINED || best->hypotheses[0] > hypothesis)) {
            fail_msg("operator %u: a kernel with %s: verdict %d, first is %s", random->call.op, hypothesis->name,
                     (int)diagnosis.verdict, diagnosis.count > 0 ? best->hypotheses[0]->name : "none");
        }
        if (diagnosis.verdict == VERDICT_EXPLAINED) {
            struct dump predicted = predict_dump(random, &best->variant);
            assert_int_equal(count_differences(predicted.results, dump.results), 0);
            assert_int_equal(best->explained, differing);
            assert_int_equal(best->unexplained + best->newly_wrong, 0);
            assert_true(diagnosis.first_place > 0);
            release_dump(&predicted);
        }
    }
    diagnosis_release(&diagnosis);
    release_dump(&dump);
    free(row_of);
}

static void test_mistakes_are_found(void **unused)
{
    unsigned *met = calloc((size_t)hypothesis_count, sizeof *met);

    (void)unused;
    assert_non_null(met);
    for (int o = 0; o < OPERATORS_OF_CALLS; o++) {
        for (int again = 0; again < test_rounds(16); again++) {
            struct random_call random = make_call_of_elements(1U << o);
            for (int h = 0; h < hypothesis_count; h++) {
                if (hypothesis_applies(&hypotheses[h], &random.call)) {
                    check_mistake(&random, &hypotheses[h]);
                    met[h] |= 1U << o;
                }
            }
            random_call_release(&random);
        }
    }
    for (int h = 0; h < hypothesis_count; h++) { /* the needs of each can be had */
        assert_true(met[h] != 0 || test_rounds(16) < 16);
    }
    free(met);
}

static void test_right_results_are_equal(void **unused)
{
    (void)unused;
    for (int o = 0; o < OPERATORS_OF_CALLS; o++) {
        for (int again = 0; again < test_rounds(20); again++) {
            struct random_call random = make_call(1U << o);
            struct dump dump = predict_dump(&random, &definition);
            struct text text = report_on(&random, &dump, NULL, false);
            assert_string_equal(text.characters, "diagnosis: nothing differs\n");
            text_release(&text);
            release_dump(&dump);
            random_call_release(&random);
        }
    }
}

/* A dump of a call with a mistake, and noise in it now and then. */
static struct dump make_dump(const struct random_call *random)
{
    size_t *row_of = malloc((random->call.rows + 1) * sizeof *row_of);
    struct dump dump;
    int h;

    assert_non_null(row_of);
    do {
        h = (int)test_below((size_t)hypothesis_count);
    } while (!hypothesis_applies(&hypotheses[h], &random->call));
    const struct variant variant = example_of(&hypotheses[h], &random->call, row_of);
    dump = predict_dump(random, &variant);
    if (test_one_in(2)) {
        const size_t i = test_below(random->call.count);
        array_set_bits(&dump.results[RESULT_Y], i, array_bits(&dump.results[RESULT_Y], i) ^ 1);
    }
    free(row_of);
    return dump;
}

static void test_threads_change_nothing(void **unused)
{
    struct executor threads = {.threads = 3};
    const npuq_executor view = executor_view(&threads);
    const npuq_executor *const executors[] = {&view, &test_shuffled_executor};

    (void)unused;
    for (int o = 0; o < OPERATORS_OF_CALLS; o++) {
        for (int again = 0; again < test_rounds(8); again++) {
            struct random_call random = make_call_of_elements(1U << o);
            struct dump dump = make_dump(&random);
            struct text alone = report_on(&random, &dump, NULL, true);
            struct text together = report_on(&random, &dump, executors[again % 2], true);
            assert_string_equal(alone.characters, together.characters);
            text_release(&alone);
            text_release(&together);
            release_dump(&dump);
            random_call_release(&random);
        }
    }
}

/* ---- a caller's floating-point state ---------------------------------------------------------------------------- */

/* Rounding upwards and, where that is easily told to the machine, subnormals flushed. */
static void enter_other_state(fenv_t *before)
{
    assert_int_equal(fegetenv(before), 0);
#ifdef FE_UPWARD
    assert_int_equal(fesetround(FE_UPWARD), 0);
#endif
#ifdef __SSE2_MATH__
    const uint32_t mxcsr = 0xDFC0; /* upwards, FTZ, DAZ */
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
#endif
}

static void test_state_changes_nothing(void **unused)
{
    (void)unused;
    for (int o = 0; o < OPERATORS_OF_CALLS; o++) {
        for (int again = 0; again < test_rounds(12); again++) {
            struct random_call random = make_call_of_elements(1U << o);
            struct dump dump = make_dump(&random);
            struct text usual = report_on(&random, &dump, NULL, again % 2);
            struct text explained[2] = {{0}, {0}};
            const struct element element = {RESULT_Y, test_below(random.call.count)};
            fenv_t before;

            explain_text(&explained[0], &random.call, element, NULL);
            enter_other_state(&before);
            struct text other = report_on(&random, &dump, NULL, again % 2);
            explain_text(&explained[1], &random.call, element, NULL);
            assert_int_equal(fesetenv(&before), 0);
            assert_string_equal(usual.characters, other.characters);
            assert_string_equal(explained[0].characters, explained[1].characters);
            text_release(&usual);
            text_release(&other);
            text_release(&explained[0]);
            text_release(&explained[1]);
            release_dump(&dump);
            random_call_release(&random);
        }
    }
}

/* ---- what is said ----------------------------------------------------------------------------------------------- */

static void test_text(void **unused)
{
    struct text text = {0};

    (void)unused;
    text_add_json(&text, "a\"b\\c\n\t\x01z");
    assert_string_equal(text.characters, "\"a\\\"b\\\\c\\u000a\\u0009\\u0001z\"");
    text_release(&text);
    assert_null(text.characters);

    text_pad(&text, 3);
    text_add(&text, "x");
    text_pad(&text, 2); /* it is beyond that already */
    text_add(&text, "y\n");
    text_pad(&text, 4);
    text_add(&text, "%d", 12345);
    assert_string_equal(text.characters, "   x y\n    12345");
    assert_int_equal(text.length, strlen(text.characters));
    text_release(&text);
}

/* The last line of the steps is the element of the result. */
static void test_explanations(void **unused)
{
    (void)unused;
    for (int o = 0; o < OPERATORS_OF_CALLS; o++) {
        for (int again = 0; again < test_rounds(20); again++) {
            struct random_call random = make_call_of_elements(1U << o);
            for (int r = 0; r < call_results(&random.call); r++) {
                const struct element element = {(enum result)r, test_below(random.results[r].count)};
                const uint64_t bits = array_bits(&random.results[r], element.index);
                const npuq_dtype dtype = call_result_dtype(&random.call, (enum result)r);
                struct text text = {0};
                long long integer;
                const char *last;

                explain_text(&text, &random.call, element, NULL);
                assert_false(text.failed);
                text.characters[text.length - 1] = '\0';
                last = strrchr(text.characters, '\n');
                last = last ? last + 1 : text.characters;
                assert_int_equal(strncmp(last + 2, r == 0 ? "y " : r == 1 ? "scale " : "offset ", r == 0 ? 2 : 6), 0);
                last += 34;
                if (dtype == NPUQ_INT8 || dtype == NPUQ_UINT8 || dtype == NPUQ_INT32 || dtype == NPUQ_QUINT4X2) {
                    integer = strtoll(last, NULL, 10);
                    assert_int_equal((uint64_t)integer & (dtype == NPUQ_QUINT4X2 ? 0xF
                                                          : dtype == NPUQ_INT32  ? 0xFFFFFFFF
                                                                                 : 0xFF),
                                     bits);
                } else {
                    assert_int_equal(strtoull(strstr(last, "0x"), NULL, 16), bits);
                }
                text_release(&text);
            }
            random_call_release(&random);
        }
    }
}

/* ---- hard inputs ------------------------------------------------------------------------------------------------ */

static const struct hard_wish wishes[] = {
    {.op = QUANTIZE,
     .options = {.axis = 1, .divides = true, .y_dtype = NPUQ_INT8},
     .ndim = 2,
     .shape = {8, 48},
     .dtypes = {[OPERAND_X] = NPUQ_FLOAT32, [OPERAND_SCALE] = NPUQ_FLOAT32, [OPERAND_OFFSET] = NPUQ_FLOAT32},
     .present = {[OPERAND_X] = true, [OPERAND_SCALE] = true, [OPERAND_OFFSET] = true},
     .seed = 1},
    {.op = DEQUANT,
     .options = {.y_dtype = NPUQ_BFLOAT16},
     .ndim = 2,
     .shape = {8, 48},
     .dtypes = {[OPERAND_X] = NPUQ_INT32,
                [OPERAND_SCALE] = NPUQ_FLOAT32,
                [OPERAND_ROW_SCALE] = NPUQ_FLOAT32,
                [OPERAND_BIAS] = NPUQ_FLOAT32},
     .present = {[OPERAND_X] = true, [OPERAND_SCALE] = true, [OPERAND_ROW_SCALE] = true, [OPERAND_BIAS] = true},
     .seed = 1},
    {.op = TRANS_QUANT_PARAM,
     .options = {.y_dtype = NPUQ_UINT64},
     .ndim = 1,
     .shape = {96},
     .dtypes = {[OPERAND_X] = NPUQ_FLOAT32, [OPERAND_OFFSET] = NPUQ_FLOAT32},
     .present = {[OPERAND_X] = true, [OPERAND_OFFSET] = true},
     .seed = 1},
};

static struct hard_inputs make_hard_inputs(const struct hard_wish *wish)
{
    struct hard_inputs inputs;

    assert_true(hard_inputs_begin(&inputs, wish));
    assert_true(hard_inputs_fill(&inputs));
    return inputs;
}

static bool same_bits(const struct array *a, const struct array *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (array_bits(a, i) != array_bits(b, i)) {
            return false;
        }
    }
    return true;
}

static void test_hard_inputs(void **unused)
{
    (void)unused;
    for (size_t w = 0; w < sizeof wishes / sizeof wishes[0]; w++) {
        struct hard_wish other_wish = wishes[w];
        other_wish.seed++;
        struct hard_inputs first = make_hard_inputs(&wishes[w]);
        struct hard_inputs again = make_hard_inputs(&wishes[w]);
        struct hard_inputs other = make_hard_inputs(&other_wish);
        size_t possible = 0;
        size_t changing = 0;

        for (int i = 0; i < OPERANDS; i++) {
            assert_true(same_bits(&first.call.operands[i], &again.call.operands[i]));
        }
        assert_false(same_bits(&first.call.operands[OPERAND_X], &other.call.operands[OPERAND_X]));
        for (int h = 0; h < hypothesis_count; h++) {
            assert_int_equal(first.same_as[h] >= 0, hypothesis_applies(&hypotheses[h], &first.call));
            possible += first.same_as[h] >= 0;
            changing += first.same_as[h] >= 0 && first.changed[h] > 0;
        }
        assert_int_equal(changing, possible); /* every mistake that is possible shows */
        hard_inputs_release(&first);
        hard_inputs_release(&again);
        hard_inputs_release(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_the_operators),
        cmocka_unit_test(test_hypotheses),
        cmocka_unit_test(test_mistakes_are_found),
        cmocka_unit_test(test_right_results_are_equal),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_state_changes_nothing),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_explanations),
        cmocka_unit_test(test_hard_inputs),
    };

    test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
