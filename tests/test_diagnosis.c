/* SPDX-License-Identifier: BSD-3-Clause */
/* From a difference to its cause: the steps against the library, the search for each mistake, and what is found. */
#include "facts.h"
#include "random_call.h"
#include "support.h"

#include <hypotheses.h>
#include <layouts.h>
#include <predict.h>
#include <state.h>

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct variant definition;

/* ---- calls and dumps -------------------------------------------------------------------------------------------- */

static struct random_call make_call(unsigned op)
{
    struct random_call random;

    while (!random_call_make(&random, op, test_below)) { /* refused, because the call is empty */
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

/* Counts elements of the dump that are not what a kernel gives; without one, not the results. Scales and offsets are
 * compared as numbers. */
static size_t count_differences(const struct random_call *random, const struct variant *kernel)
{
    size_t count = 0;

    for (int r = 0; r < call_results(&random->call); r++) {
        struct predictor p = {.call = &random->call, .variant = kernel};
        for (size_t i = 0; i < random->dump[r].count; i++) {
            const uint64_t x = kernel ? predict(&p, (enum result)r, i, NULL) : array_bits(&random->results[r], i);
            const uint64_t y = array_bits(&random->dump[r], i);
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
    size_t power = 1;

    assert_true(hypothesis_add(hypothesis, &variant));
    while (2 * power <= call->columns) {
        power *= 2;
    }
    /* Of all windows that give the same scales, the roundest end is taken. */
    variant.window = variant.choice[STEP_BLOCK] == BLOCK_REACHING ? 2 * power - call->columns : power;
    variant.bound.value = variant_has_other_bound(&variant) ? 3e-9 : 0.9;
    variant.scale.value = 0.0371;
    variant.offset.value = -5.5;
    variant.layout.fill = 5;
    variant.layout.row_of = row_of;
    for (size_t row = 0; row < call->rows; row++) {
        row_of[row] = call->rows - 1 - row;
    }
    switch (variant.choice[STEP_LAYOUT]) {
    case LAYOUT_ROWS_OVERWRITTEN:
    case LAYOUT_TAIL_UNTOUCHED: variant.layout.from = test_below(call->columns); break;
    case LAYOUT_ROWS_UNTOUCHED: variant.layout.from = test_below(call->rows); break;
    default: break;
    }
    return variant;
}

/* To be released. */
static struct diagnosis diagnosis_of(const struct random_call *random, const npuq_executor *executor)
{
    struct diagnosis diagnosis;

    assert_true(diagnose(&random->call, random->results, random->dump, executor, &diagnosis));
    return diagnosis;
}

static void check_verdict(const struct random_call *random, enum verdict verdict)
{
    struct diagnosis diagnosis = diagnosis_of(random, NULL);

    assert_int_equal(diagnosis.verdict, verdict);
    diagnosis_release(&diagnosis);
}

static uint64_t facts_of(const struct random_call *random, const npuq_executor *executor)
{
    struct diagnosis diagnosis = diagnosis_of(random, executor);
    const uint64_t facts = facts_of_diagnosis(&random->call, random->dump, &diagnosis);

    diagnosis_release(&diagnosis);
    return facts;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static void check_steps_are_the_operators(struct random_call *random)
{
    for (int r = 0; r < call_results(&random->call); r++) {
        struct predictor p = {.call = &random->call, .variant = &definition};
        assert_int_equal(random->results[r].count, call_result_count(&random->call, (enum result)r));
        for (size_t i = 0; i < random->results[r].count; i++) {
            const uint64_t steps = predict(&p, (enum result)r, i, NULL);
            const uint64_t library = array_bits(&random->results[r], i);
            if (steps != library) {
                fail_msg("operator %u, result %d, element %zu: steps %llx, library %llx", random->call.op, r, i,
                         (unsigned long long)steps, (unsigned long long)library);
            }
        }
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void test_hypotheses(void **unused)
{
    static const unsigned char last[STEPS] = {
        [STEP_RULE] = RULES - 1,
        [STEP_INPUT] = READ_AS + DTYPES - 1,
        [STEP_INPUT_SIGN] = INPUT_BORROWED,
        [STEP_INPUT_LAYOUT] = LAYOUTS_OF_X - 1,
        [STEP_RELU] = RELU_APPLIED,
        [STEP_SCALE_PLACE] = PLACE_LINES_FIRST,
        [STEP_OFFSET_PLACE] = PLACE_OF_FIRST + SIZED - 1,
        [STEP_GROUP] = GROUP_WORDS,
        [STEP_BLOCK] = BLOCK_ROWS + SIZED - 1,
        [STEP_TOKEN] = PLACE_PREVIOUS_BUT_FIRST,
        [STEP_RETURNED_TOKEN] = PLACE_LINES_FIRST,
        [STEP_SCALE] = READ_AS + DTYPES - 1,
        [STEP_EXPONENT] = EXPONENT_NONE,
        [STEP_OFFSET] = READ_AS + DTYPES - 1,
        [STEP_SMOOTH] = SMOOTH_IN_RANGE_ONLY,
        [STEP_PRECISION] = TYPE_FLOAT64,
        [STEP_RANGE] = RANGE_CLIPPED,
        [STEP_UNIT] = UNIT_LESSER,
        [STEP_LEAST] = LEAST_END - 1,
        [STEP_OTHER_SCALE] = OTHER_SCALE_ONLY_RETURNED + OTHER_SCALE_OF_DUMP,
        [STEP_TOKEN_OFFSET] = TOKEN_OFFSET_SMALLER_ERROR,
        [STEP_OFFSET_SIGN] = OFFSET_NEGATED,
        [STEP_FORM] = FORM_PRODUCT,
        [STEP_CODE] = CODE_EMAX_MORE,
        [STEP_SMALL_GROUPS] = 1 + NPUQ_REF_RULE_N,
        [STEP_BAD_GROUPS] = BAD_INFINITY_IS_LARGE,
        [STEP_TOKEN_TYPE] = TYPE_BFLOAT16,
        [STEP_RETURNED] = RETURNED_INVERSE,
        [STEP_SCALING] = SCALING_INVERSE_OR_0,
        [STEP_PRODUCT] = PRODUCT_FIXED_POINT,
        [STEP_SUM] = SUM_FUSED,
        [STEP_ORDER] = ORDER_ADD_FIRST,
        [STEP_BIAS_PLACE] = PLACE_FIRST,
        [STEP_BIAS] = READ_AS + DTYPES - 1,
        [STEP_ROUNDING] = ROUND_HALF_TO_ZERO,
        [STEP_SATURATION] = SATURATE_LESSER,
        [STEP_NAN] = NAN_KEPT,
        [STEP_SUBNORMALS] = SUBNORMAL_OF_SMALL,
        [STEP_SMALL_TYPE] = SMALL_TYPE_FNUZ,
        [STEP_RESULT] = RESULT_SHIFT_WRAPS,
        [STEP_WORD] = WORD_NO_FLAG,
        [STEP_LAYOUT] = LAYOUTS - 1,
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
        for (int g = 0; g < h; g++) { /* a call has one mistake of each name */
            if (strcmp(hypotheses[g].name, hypothesis->name) == 0 &&
                (hypotheses[g].operators & hypothesis->operators) && (hypotheses[g].y_types & hypothesis->y_types)) {
                fail_msg("%s: two entries for one call", hypothesis->name);
            }
        }
    }
}

/* ---- the search ------------------------------------------------------------------------------------------------- */

/* Whether a differing row holds two different values: no one can tell where a row of one value belongs. */
static bool has_told_row(const struct random_call *random)
{
    const struct array *ours = &random->results[RESULT_Y];
    const struct array *theirs = &random->dump[RESULT_Y];
    const size_t columns = random->call.columns;

    for (size_t row = 0; row < random->call.rows; row++) {
        bool differs = false;
        bool varies = false;
        for (size_t i = row * columns; i < (row + 1) * columns; i++) {
            differs = differs || array_bits(ours, i) != array_bits(theirs, i);
            varies = varies || array_bits(theirs, i) != array_bits(theirs, row * columns);
        }
        if (differs && varies) {
            return true;
        }
    }
    return false;
}

/* Whether no bound that has a name, nor none, nor one scale for all gives the same dump, and a scale is more than a
 * unit apart. */
static bool shows_bound(const struct random_call *random, const struct variant *variant)
{
    const struct array *ours = &random->results[RESULT_SCALE];
    struct variant named = *variant;
    bool is_same = true;

    for (size_t i = 0; i < ours->count && is_same; i++) {
        is_same = dtype_distance(ours->dtype, array_bits(ours, i), array_bits(&random->dump[RESULT_SCALE], i)) <= 1;
    }
    is_same = is_same || array_holds_one_value(&random->dump[RESULT_SCALE]);
    for (int i = 0; i < BOUNDS && !is_same; i++) {
        named.bound.value = steps_bounds[i];
        is_same = count_differences(random, &named) == 0;
    }
    return !is_same;
}

/* Whether a scale tells the number that a range is multiplied with: few bits, or a bound, do not. */
static bool shows_factor(const struct random_call *random, const struct variant *variant)
{
    struct variant halved = *variant;
    bool is_shown = false;

    halved.bound.value = 0.5;
    for (size_t i = 0; i < random->dump[RESULT_SCALE].count; i++) {
        struct predictor p = {.call = &random->call, .variant = &halved};
        const uint64_t bits = array_bits(&random->dump[RESULT_SCALE], i);
        const double scale = fabs((double)npuq_ref_from_bits((uint32_t)bits));
        is_shown = is_shown || (scale > 1e-30 && scale < 1e30 && bits != predict(&p, RESULT_SCALE, i, NULL));
    }
    return is_shown;
}

/* Whether a column beside those that are overwritten has another value, below the first row. */
static bool has_own_elements(const struct random_call *random, const struct variant *variant)
{
    const size_t columns = random->call.columns;
    bool has_other = false;

    for (size_t i = columns; i < random->call.count; i++) {
        has_other |=
            i % columns >= variant->layout.from && array_bits(&random->dump[RESULT_Y], i) != variant->layout.fill;
    }
    return has_other;
}

/* Whether the dump shows what is read off it: an untouched part must be more than one element and less than all. */
static bool is_seen(const struct random_call *random, const struct variant *variant)
{
    const struct call *call = &random->call;
    const size_t from = variant->layout.from;

    switch (variant->choice[STEP_LAYOUT]) {
    case LAYOUT_TAIL_UNTOUCHED: return from > 0 && (call->columns - from) * call->rows > 1;
    case LAYOUT_ROWS_OVERWRITTEN: return from * (call->rows - 1) > 1 && has_own_elements(random, variant);
    case LAYOUT_ROWS_UNTOUCHED: return from > 0 && (call->rows - from) * call->columns > 1;
    case LAYOUT_ROWS_PERMUTED: return has_told_row(random);
    default: break;
    }
    if (variant_has_window(variant)) {
        return memcmp(random->results[RESULT_SCALE].data, random->dump[RESULT_SCALE].data, 4 * call->tokens) != 0;
    }
    if (variant_has_one_scale(variant)) {
        return !array_holds_one_value(&random->results[RESULT_SCALE]);
    }
    return !variant_has_number(variant) ||
           (variant_has_other_bound(variant) ? shows_bound(random, variant) : shows_factor(random, variant));
}

/* Of few moves too many for a device, a rare mistake need not be likelier. */
static bool is_likely(const struct diagnosis *diagnosis)
{
    return diagnosis->verdict == VERDICT_EXPLAINED || diagnosis->verdict == VERDICT_POSSIBLE ||
           diagnosis->verdict == VERDICT_ADMISSIBLE || diagnosis->admission.too_many;
}

/* Whether a finding that explains everything names the mistake. There may be many such findings. A likelier one may
 * give the same bits by chance. */
static bool is_among_exact(const struct diagnosis *diagnosis, const struct hypothesis *hypothesis)
{
    enum { ALL_LISTED = 16 };
    bool is_named = diagnosis->first_place >= ALL_LISTED;

    for (int i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];
        is_named =
            is_named || (finding->hypotheses[0] == hypothesis && finding->unexplained + finding->newly_wrong == 0);
        assert_true(i >= diagnosis->first_place || finding->prior <= diagnosis->findings[0].prior);
    }
    return is_named && diagnosis->first_place > 0;
}

/* A dump with one mistake: a finding that gives the same bits names that mistake, and the commonest comes first.
 * Returns whether the dump shows the mistake. */
static bool check_mistake(struct random_call *random, const struct hypothesis *hypothesis)
{
    size_t *row_of = test_allocate(random->call.rows * sizeof *row_of);
    const struct variant variant = example_of(hypothesis, &random->call, row_of);

    random_call_predict(random, &variant);
    const size_t differing = count_differences(random, NULL);
    const bool seen = differing > 0 && is_seen(random, &variant);
    struct diagnosis diagnosis = diagnosis_of(random, NULL);

    assert_int_equal(diagnosis.all_differing, differing);
    if (differing == 0) {
        assert_int_equal(diagnosis.verdict, VERDICT_EQUAL);
    } else {
        const struct finding *best = &diagnosis.findings[0];
        if (seen && !(is_likely(&diagnosis) && is_among_exact(&diagnosis, hypothesis))) {
            fail_msg("operator %u: a kernel with %s: verdict %d, first is %s", random->call.op, hypothesis->name,
                     (int)diagnosis.verdict, diagnosis.count > 0 ? best->hypotheses[0]->name : "none");
        }
        /* Without an exact finding, what the device's division explains is not counted. */
        for (int i = 0; i < diagnosis.count && seen; i++) {
            const struct finding *finding = &diagnosis.findings[i];
            const size_t left = count_differences(random, &finding->variant);
            assert_int_equal(finding->unexplained + finding->newly_wrong, left);
            assert_int_equal(finding->explained + finding->unexplained, differing);
            const bool is_likely_enough = finding->prior >= best->prior - bits_of_rare;
            assert_int_equal(i < diagnosis.first_place, left == 0 && is_likely_enough);
        }
    }
    diagnosis_release(&diagnosis);
    free(row_of);
    return seen;
}

/* Random calls are too small for these; faulty kernels show them on hard inputs. */
static bool is_of_large_calls(const struct hypothesis *hypothesis)
{
    const unsigned char *settings = hypothesis->settings;
    const bool sized = (settings[0] == STEP_BLOCK || settings[0] == STEP_SCALE_PLACE) && settings[1] >= SIZED;
    const bool in_tiles = settings[0] == STEP_RETURNED_TOKEN && settings[1] == PLACE_IN_TILES;
    const bool has_many_dimensions = settings[0] == STEP_SCALE_PLACE && settings[1] > PLACE_OF_DIMENSION + 2;

    return sized || in_tiles || has_many_dimensions || hypothesis->needs.fractals || hypothesis->needs.fractals_of_x;
}

static void test_mistakes_are_found(void **unused)
{
    /* Else the first dump that shows the mistake, of each rule and type of y. */
    const bool all = test_rounds(1) > 1 || getenv("NPUQ_TEST_ALL");
    unsigned *met = calloc((size_t)hypothesis_count, sizeof *met);

    (void)unused;
    assert_non_null(met);
    for (int o = 0; o < NUMBER_OF_OPERATORS; o++) {
        const int checked = 1U << o & (QUANTIZE | DEQUANT | ROW_QUANT) ? 100 : 16; /* enough for every rule and type */
        unsigned(*shown)[ALL_RULES] =
            calloc((size_t)hypothesis_count, sizeof *shown); /* the types of y, as their bits */
        assert_non_null(shown);
        test_reseed((size_t)o); /* what one operator takes changes no call of another */
        for (int again = 0; again < test_rounds(100); again++) {
            struct random_call random = make_call_of_elements(1U << o);
            const unsigned y = dtype_of(random.call.options.y_dtype)->bit;
            for (int h = 0; h < hypothesis_count; h++) {
                if (hypothesis_applies(&hypotheses[h], &random.call)) {
                    met[h] |= 1U << o;
                    unsigned *types = &shown[h][random.call.options.rule];
                    if (again < test_rounds(checked) && (all || !(*types & y))) {
                        *types |= check_mistake(&random, &hypotheses[h]) ? y : 0;
                    }
                }
            }
            random_call_release(&random);
        }
        free(shown);
    }
    for (int h = 0; h < hypothesis_count; h++) { /* some call met the needs of each */
        if (met[h] == 0 && !is_of_large_calls(&hypotheses[h]) && test_rounds(16) >= 16) {
            fail_msg("%s: possible in no call", hypotheses[h].name);
        }
    }
    free(met);
}

static bool same_number(double a, double b)
{
    return a == b || (is_nan(a) && is_nan(b));
}

/* Variants share extremes if they make the same choices in all steps that lead to extremes. A step that
 * steps_same_extremes() forgets shows here. */
static void check_steps_of_extremes(struct random_call *random)
{
    const struct call *call = &random->call;

    for (int h = 0; call->op & FINDS_SCALES && h < hypothesis_count; h++) {
        struct variant variant = {.choice = {0}};

        if (!hypothesis_applies(&hypotheses[h], call) || !hypothesis_add(&hypotheses[h], &variant) ||
            !steps_same_extremes(&variant, &definition)) {
            continue;
        }
        for (size_t token = 0; token < call->tokens; token++) {
            const struct extremes a = steps_extremes(call, &variant, token);
            const struct extremes b = steps_extremes(call, &definition, token);
            if (!same_number(a.hi, b.hi) || !same_number(a.lo, b.lo)) {
                fail_msg("%s changes the extremes", hypotheses[h].name);
            }
        }
    }
}

static void check_right_results_are_equal(struct random_call *random)
{
    random_call_predict(random, &definition);
    check_verdict(random, VERDICT_EQUAL);
}

static void test_equal_scales(void **unused)
{
    static const float x[3][2] = {{0, 0}, {(float)NAN, 1}, {3, 4}};
    static const uint32_t bits[] = {0x80000000, 0xFFC00001, 0x3D010205};
    const npuq_tensor tensor = npuq_matrix(x, NPUQ_FLOAT32, 3, 2, 0);
    const npuq_tensor *const operands[OPERANDS] = {[OPERAND_X] = &tensor};
    const struct call_options options = {.y_dtype = NPUQ_INT8};
    struct random_call random = random_call_of(DYNAMIC_QUANT, operands, &options);

    (void)unused;
    array_set_bits(&random.dump[RESULT_SCALE], 0, bits[0]);
    array_set_bits(&random.dump[RESULT_SCALE], 1, bits[1]);
    check_verdict(&random, VERDICT_EQUAL);
    array_set_bits(&random.dump[RESULT_SCALE], 2, bits[2]);
    struct diagnosis diagnosis = diagnosis_of(&random, NULL);
    assert_int_equal(diagnosis.differing[RESULT_SCALE], 1);
    diagnosis_release(&diagnosis);
    random_call_release(&random);
}

/* The dump has a mistake, and sometimes noise. */
static void make_dump(struct random_call *random)
{
    size_t *row_of = test_allocate(random->call.rows * sizeof *row_of);
    int h;
    int tries = 0;

    do {
        h = (int)test_below((size_t)hypothesis_count);
        assert_true(tries++ < 100000); /* else no hypothesis belongs to the operator */
    } while (!hypothesis_applies(&hypotheses[h], &random->call));
    const struct variant variant = example_of(&hypotheses[h], &random->call, row_of);
    random_call_predict(random, &variant);
    if (test_one_in(2)) {
        const size_t i = test_below(random->call.count);
        array_set_bits(&random->dump[RESULT_Y], i, array_bits(&random->dump[RESULT_Y], i) ^ 1);
    }
    free(row_of);
}

static void check_threads_change_nothing(struct random_call *random)
{
    size_t ends[TEST_THREADS + 1] = {0, 100, 333, 800, 1000};
    const npuq_executor threads = {test_run_parts, ends};

    make_dump(random);
    assert_true(facts_of(random, NULL) == facts_of(random, test_one_in(2) ? &test_shuffled_executor : &threads));
}

/* ---- a caller's floating-point state ---------------------------------------------------------------------------- */

/* Sets rounding upwards and, where the test knows how, flushes subnormals; or restores the usual state. */
static void set_state(bool other)
{
    (void)other;
#ifdef FE_UPWARD
    (void)fesetround(other ? FE_UPWARD : FE_TONEAREST); /* an emulator may lack this mode */
#endif
#ifdef __SSE2_MATH__
    const uint32_t mxcsr = other ? 0xDFC0 : 0x1F80; /* upwards, FTZ, DAZ */
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
#endif
}

/* x87 registers would round the sum to 64 bits, down to the middle between 1 and the next float, and then to 1. */
static void test_float64_is_rounded_once(void **unused)
{
    const struct state caller = enter_state();
    const volatile double one = 1;
    const volatile double more_than_half = 0x1.002p-53;
    const volatile double sum = one + more_than_half;

    (void)unused;
    leave_state(&caller);
    assert_true(sum == 1 + 0x1p-52);
}

static void check_state_changes_nothing(struct random_call *random)
{
    make_dump(random);
    const struct element element = {RESULT_Y, test_below(random->call.count)};
    const uint64_t usual = facts_of(random, NULL);
    const uint64_t explained = facts_of_element(&random->call, &definition, element);

    set_state(true);
    const uint64_t other = facts_of(random, NULL);
    const uint64_t other_explained = facts_of_element(&random->call, &definition, element);
    set_state(false);
    assert_true(usual == other && explained == other_explained);
}

/* ---- what is found ---------------------------------------------------------------------------------------------- */

/* The steps end with the result's element. */
static void check_explanations(struct random_call *random)
{
    for (int r = 0; r < call_results(&random->call); r++) {
        const struct element element = {(enum result)r, test_below(random->results[r].count)};
        const struct steps steps = explain_steps(&random->call, &definition, element);
        assert_true(steps.bits == array_bits(&random->results[r], element.index));
        assert_in_range(steps.trace.count, 1, TRACE_LINES);
    }
}

/* Each check, on random calls of every operator. */
static void test_random_calls(void **unused)
{
    static const struct {
        int rounds;
        bool with_empty; /* calls without elements, too */
        void (*check)(struct random_call *random);
    } checks[] = {
        {300, true, check_steps_are_the_operators}, {50, false, check_steps_of_extremes},
        {20, true, check_right_results_are_equal},  {20, false, check_explanations},
        {8, false, check_threads_change_nothing},   {12, false, check_state_changes_nothing},
    };

    (void)unused;
    for (size_t c = 0; c < sizeof checks / sizeof checks[0]; c++) {
        for (int i = 0; i < test_rounds(checks[c].rounds) * NUMBER_OF_OPERATORS; i++) {
            const unsigned op = 1U << i % NUMBER_OF_OPERATORS;
            struct random_call random = checks[c].with_empty ? make_call(op) : make_call_of_elements(op);
            checks[c].check(&random);
            random_call_release(&random);
        }
    }
}

/* The value of a step that an explanation has. */
static struct trace_line step_of(const struct call *call, const struct variant *variant, struct element element,
                                 const char *step)
{
    const struct trace trace = explain_steps(call, variant, element).trace;

    for (int i = 0; i < trace.count; i++) {
        if (strcmp(trace.lines[i].step, step) == 0) {
            return trace.lines[i];
        }
    }
    fail_msg("there is no step %s", step);
    return (struct trace_line){.step = NULL};
}

/* A call of quantize that multiplies by one scale and adds an offset, on 8 rows of 24 columns: eighths from -12 on. */
enum { ROWS = 8, COLUMNS = 24 };

static struct random_call make_quantize(float *x, int64_t rows, int64_t columns, float scale, float offset)
{
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, rows, columns, 0);
    const npuq_tensor ts = npuq_vector(&scale, NPUQ_FLOAT32, 1);
    const npuq_tensor to = npuq_vector(&offset, NPUQ_FLOAT32, 1);
    const npuq_tensor *const operands[OPERANDS] = {[OPERAND_X] = &tx, [OPERAND_SCALE] = &ts, [OPERAND_OFFSET] = &to};
    const struct call_options options = {.axis = -1, .y_dtype = NPUQ_INT8};

    return random_call_of(QUANTIZE, operands, &options);
}

static struct random_call make_eighths(float scale, float offset)
{
    float x[ROWS * COLUMNS];

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = (float)(i - 96) / 8;
    }
    return make_quantize(x, ROWS, COLUMNS, scale, offset);
}

/* What a diagnosis says of a dump. */
struct said {
    const char *names[2]; /* of the first finding; null: nothing is named */
    const char *beside;   /* another finding has the first place, too */
    struct part part;
    size_t from; /* untouched, a multiple of so many */
    size_t multiple_of;
    size_t moved; /* rows that are elsewhere; the first of them holds another */
    size_t first;
    size_t holds;
};

static void check_finding(const struct call *call, const struct finding *finding, const struct said *said)
{
    const struct found_layout layout = layout_describe(call, &finding->variant);

    for (int i = 0; i < 2; i++) {
        const struct hypothesis *hypothesis = finding->hypotheses[i];
        assert_string_equal(hypothesis ? hypothesis->name : "", said->names[i] ? said->names[i] : "");
    }
    assert_int_equal(finding->part.kind, said->part.kind);
    if (said->part.kind != PART_ALL) {
        assert_int_equal(finding->part.begin, said->part.begin);
        assert_int_equal(finding->part.end, said->part.end);
        assert_int_equal(finding->part.of, said->part.of);
    }
    assert_int_equal(layout.has_fill, said->multiple_of > 0);
    assert_int_equal(layout.multiple_of, said->multiple_of);
    if (layout.has_fill) {
        const bool is_tail = strcmp(said->names[0], "tail-untouched") == 0;
        assert_int_equal(finding->variant.layout.from, said->from);
        assert_int_equal(layout.of, is_tail ? call->columns : call->rows);
        assert_string_equal(layout.unit, is_tail ? "column" : "row");
    }
    assert_int_equal(layout.moved, said->moved);
    if (layout.moved > 0) {
        assert_int_equal(layout.first, said->first);
        assert_int_equal(finding->variant.layout.row_of[layout.first], said->holds);
    }
}

static void check_said(const struct random_call *random, const struct said *said)
{
    struct diagnosis diagnosis = diagnosis_of(random, NULL);

    if (!said->names[0]) {
        assert_int_equal(diagnosis.verdict, VERDICT_NONE);
    } else {
        assert_true(diagnosis.verdict == VERDICT_EXPLAINED || diagnosis.verdict == VERDICT_POSSIBLE);
        check_finding(&random->call, &diagnosis.findings[0], said);
    }
    if (said->beside) {
        assert_int_equal(diagnosis.first_place, 2);
        assert_string_equal(diagnosis.findings[1].hypotheses[0]->name, said->beside);
    }
    diagnosis_release(&diagnosis);
}

/* Each mistake is made in all of y, or in the rows and columns that are named. Where it changes nothing, several parts
 * are possible: the diagnosis names the roundest. */
static void test_what_is_said(void **unused)
{
    static size_t swapped[ROWS] = {0, 1, 2, 4, 3, 5, 6, 7};
    static size_t reversed[ROWS] = {7, 6, 5, 4, 3, 2, 1, 0};
    static const struct variant floors = {.choice = {[STEP_ROUNDING] = ROUND_FLOOR}};
    static const struct variant truncates = {.choice = {[STEP_ROUNDING] = ROUND_TRUNCATE}};
    static const struct variant away_negated = {
        .choice = {[STEP_ROUNDING] = ROUND_HALF_AWAY, [STEP_OFFSET] = PARAMETER_NEGATED}};
    static const struct variant tail = {.choice = {[STEP_LAYOUT] = LAYOUT_TAIL_UNTOUCHED},
                                        .layout = {.from = 16, .fill = 0xA5}};
    static const struct variant odd_tail = {.choice = {[STEP_LAYOUT] = LAYOUT_TAIL_UNTOUCHED},
                                            .layout = {.from = 19, .fill = 0xA5}};
    static const struct variant rows = {.choice = {[STEP_LAYOUT] = LAYOUT_ROWS_UNTOUCHED},
                                        .layout = {.from = 6, .fill = 0xA5}};
    static const struct variant swaps = {.choice = {[STEP_LAYOUT] = LAYOUT_ROWS_PERMUTED},
                                         .layout = {.row_of = swapped}};
    static const struct variant both = {.choice = {[STEP_ROUNDING] = ROUND_FLOOR, [STEP_LAYOUT] = LAYOUT_ROWS_PERMUTED},
                                        .layout = {.row_of = reversed}};
    static const struct {
        float offset; /* with 96 no sum is negative; with 0.5 floors changes nothing in columns 12 to 15 */
        const struct variant *variant;
        size_t rows[2];
        size_t columns[2];
        struct said said;
    } dumps[] = {
        {0, &floors, {0, 8}, {16, 24}, {.names = {"floor"}, .part = {PART_COLUMNS, 16, 24, 24}}},
        {0, &floors, {0, 8}, {17, 24}, {.names = {"floor"}, .part = {PART_COLUMNS, 16, 24, 24}}},
        {0, &floors, {0, 8}, {0, 19}, {.names = {"floor"}, .part = {PART_COLUMNS, 0, 16, 24}}},
        {0, &floors, {0, 8}, {8, 16}, {.names = {"floor"}, .part = {PART_COLUMNS, 8, 16, 24}}},
        {0.5F, &floors, {0, 8}, {0, 13}, {.names = {"floor"}, .part = {PART_COLUMNS, 0, 16, 24}}},
        {0, &floors, {0, 4}, {0, 24}, {.names = {"floor"}, .part = {PART_ROWS, 0, 4, 8}}},
        {0, &floors, {2, 3}, {0, 24}, {.names = {"floor"}, .part = {PART_ROWS, 2, 3, 8}}},
        {0, &floors, {0, 8}, {11, 13}, {.names = {NULL}}}, /* four elements might be chance */
        {0, &floors, {0, 4}, {8, 24}, {.names = {NULL}}},  /* neither whole rows nor whole columns */
        {96, &truncates, {0, 8}, {0, 24}, {.names = {"truncate"}, .beside = "floor"}},
        {3, &away_negated, {0, 8}, {0, 24}, {.names = {"half-away", "offset-negated"}}},
        {0, &tail, {0, 8}, {0, 24}, {.names = {"tail-untouched"}, .from = 16, .multiple_of = 16}},
        {0, &odd_tail, {0, 8}, {0, 24}, {.names = {"tail-untouched"}, .from = 19, .multiple_of = 1}},
        {0, &rows, {0, 8}, {0, 24}, {.names = {"rows-untouched"}, .from = 6, .multiple_of = 2}},
        {0, &swaps, {0, 8}, {0, 24}, {.names = {"rows-permuted"}, .moved = 2, .first = 3, .holds = 4}},
        {0, &both, {0, 8}, {0, 24}, {.names = {"floor", "rows-permuted"}, .moved = ROWS, .holds = 7}},
    };

    (void)unused;
    for (size_t d = 0; d < sizeof dumps / sizeof dumps[0]; d++) {
        struct random_call random = make_eighths(1, dumps[d].offset);
        random_call_predict(&random, dumps[d].variant);
        for (size_t i = 0; i < random.call.count; i++) {
            const size_t row = i / COLUMNS;
            const size_t column = i % COLUMNS;
            if (row < dumps[d].rows[0] || row >= dumps[d].rows[1] || column < dumps[d].columns[0] ||
                column >= dumps[d].columns[1]) {
                array_set_bits(&random.dump[RESULT_Y], i, array_bits(&random.results[RESULT_Y], i));
            }
        }
        check_said(&random, &dumps[d].said);
        random_call_release(&random);
    }
}

/* The first places of scales in a kernel's order, and whose scales they hold: line after line, and of each line group
 * after group. */
static void test_places_of_scales(void **unused)
{
    static const struct lines rows = {.count = 256, .extent = 256, .inner = 1, .length = 32, .groups = 8, .pairs = 4};
    static const struct lines odd_rows = {.count = 2, .extent = 96, .inner = 1, .length = 32, .groups = 3, .pairs = 2};
    static const struct lines columns = {.count = 6, .extent = 96, .inner = 3, .length = 32, .groups = 3, .pairs = 2};
    static const struct {
        const struct lines *lines;
        int place;
        size_t from;
        int holds[6]; /* line * 10 + group; 9 in place of a group: none */
    } orders[] = {
        {&rows, PLACE_IN_TILES, 0, {0, 1, 2, 3, 320, 321}},
        {&rows, PLACE_IN_TILES, 14, {962, 963, 10, 11, 12, 13}},
        {&rows, PLACE_IN_TILES, 510, {1272, 1273, 4, 5, 6, 7}},
        {&rows, PLACE_IN_TILES, 1022, {1276, 1277, 1280, 1281, 1282, 1283}},
        {&odd_rows, PLACE_WITHOUT_PADDING, 0, {0, 1, 2, 10, 11, 12}},
        {&odd_rows, PLACE_NEXT, 0, {1, 2, 10, 9, 11, 12}},
        {&odd_rows, PLACE_PREVIOUS, 0, {12, 0, 1, 9, 2, 10}},
        {&odd_rows, PLACE_FIRST, 2, {0, 9, 10, 10, 10, 19}},
        {&odd_rows, PLACE_NEXT_BUT_LAST, 0, {1, 2, 2, 9, 11, 12}},
        {&odd_rows, PLACE_IN_PAIR, 0, {1, 0, 9, 2, 11, 10}},
        {&columns, AS_DEFINED, 0, {0, 1, 10, 11, 20, 21}},
        {&columns, PLACE_NOT_PAIRED, 0, {0, 10, 20, 1, 11, 21}},
        {&columns, PLACE_PLANES, 0, {0, 10, 20, 2, 12, 22}},
        {&columns, PLACE_PLANES, 6, {30, 40, 50, 32, 42, 52}},
        {&columns, PLACE_PLANES_OF_LINE, 6, {1, 11, 21, 9, 19, 29}},
        {&columns, PLACE_GROUPS_FIRST, 0, {0, 10, 20, 30, 40, 50}},
        {&columns, PLACE_LINES_FIRST, 0, {0, 1, 2, 9, 10, 11}},
    };

    (void)unused;
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        const struct lines *lines = orders[o].lines;
        for (size_t i = 0; i < 6; i++) {
            const size_t group = steps_group_for(lines, orders[o].from + i, orders[o].place);
            const struct line_place at = call_place_of_group(lines, group);
            assert_int_equal(at.line * 10 + (at.group < lines->groups ? at.group : 9), orders[o].holds[i]);
            assert_int_equal(call_group_at(lines, at), group);
        }
    }
}

static void test_one_element_is_no_tail(void **unused)
{
    static const int32_t x[3] = {1, 2, 3};
    static const float scale = 1;
    const npuq_tensor tx = npuq_vector(x, NPUQ_INT32, 3);
    const npuq_tensor ts = npuq_vector(&scale, NPUQ_FLOAT32, 1);
    const npuq_tensor *const operands[OPERANDS] = {[OPERAND_X] = &tx, [OPERAND_SCALE] = &ts};
    const struct call_options options = {.y_dtype = NPUQ_FLOAT32};
    struct random_call random = random_call_of(DEQUANT, operands, &options);

    (void)unused;
    array_set_bits(&random.dump[RESULT_Y], 2, 0x12345678);
    check_verdict(&random, VERDICT_NONE);
    array_set_bits(&random.dump[RESULT_Y], 1, 0x12345678);
    check_said(&random, &(struct said){.names = {"tail-untouched"}, .from = 1, .multiple_of = 1});
    random_call_release(&random);
}

/* One of the two mistakes changes nothing alone, and one element together with the other. */
static void test_weak_half_is_named(void **unused)
{
    static const struct variant both = {
        .choice = {[STEP_ROUNDING] = ROUND_FLOOR, [STEP_SATURATION] = SATURATE_SYMMETRIC}};
    static float x[64 * 1024];

    (void)unused;
    for (int i = 0; i < 64 * 1024; i++) {
        x[i] = (float)(i % 160 - 80) / 8;
    }
    x[12345] = -12; /* times the scale -127.3, which floor() makes -128 */
    struct random_call random = make_quantize(x, 64, 1024, 10.608F, 0);
    random_call_predict(&random, &both);
    check_said(&random, &(struct said){.names = {"floor", "symmetric-range"}});
    random_call_release(&random);
}

/* Half of the elements that are one off fit one mistake, and few elements another: the diagnosis names neither. */
static void test_chance_is_not_named(void **unused)
{
    struct random_call random = make_eighths(1, 0);
    int8_t *y = random.dump[RESULT_Y].data;

    (void)unused;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        y[i]++;
    }
    check_verdict(&random, VERDICT_NONE);
    assert_false(array_holds_one_value(&random.dump[RESULT_Y]));
    memset(y, 7, ROWS * COLUMNS);
    assert_true(array_holds_one_value(&random.dump[RESULT_Y]));
    random_call_predict(&random, &definition);
    y = random.dump[RESULT_Y].data;
    for (size_t i = 3; i < 15; i += 8) { /* -11.625 and -10.625 rounded towards zero, and one right element */
        y[i]++;
    }
    y[8] += 5;
    check_verdict(&random, VERDICT_NONE);
    random_call_release(&random);

    /* -128 is -127 in some 45 elements. Others are wrong: first few, so that the diagnosis names the mistake, then too
     * many. */
    static const struct variant symmetric = {.choice = {[STEP_SATURATION] = SATURATE_SYMMETRIC}};
    random = make_eighths(20, 0);
    random_call_predict(&random, &symmetric);
    y = random.dump[RESULT_Y].data;
    for (size_t i = 100; i < 125; i++) {
        y[i] = (int8_t)(y[i] ^ 5);
        if (i == 105) {
            check_verdict(&random, VERDICT_PARTLY);
        }
    }
    check_verdict(&random, VERDICT_NONE);
    random_call_release(&random);
}

/* The steps have that with the mistake. */
static void test_flag_is_shown(void **unused)
{
    static const struct variant no_flag = {.choice = {[STEP_WORD] = WORD_NO_FLAG}};
    struct random_call random = make_call_of_elements(TRANS_QUANT_PARAM);
    const struct element element = {RESULT_Y, test_below(random.call.count)};

    (void)unused;
    assert_true(step_of(&random.call, &definition, element, "flag, bit 46").value == 1);
    assert_true(step_of(&random.call, &no_flag, element, "flag, bit 46").value == 0);
    random_call_release(&random);
}

/* A fused multiply-add does not round the product: its step has all of the digits. */
static void test_exact_products(void **unused)
{
    static const struct variant fused = {.choice = {[STEP_SUM] = SUM_FUSED}};
    const float scale = 1.1F; /* x87 keeps more digits of a constant than of a variable */
    struct random_call random = make_eighths(scale, 0.1F);
    const struct element element = {RESULT_Y, 1};

    (void)unused;
    assert_true(step_of(&random.call, &definition, element, "x * scale").value == -13.0625);
    assert_true(step_of(&random.call, &fused, element, "x * scale").value == -11.875 * (double)scale);
    random_call_release(&random);
}

static void test_places_of_extremes(void **unused)
{
    static const float x[2][3] = {{1, 2, 3}, {4, -9, 5}};
    const npuq_tensor tensor = npuq_matrix(x, NPUQ_FLOAT32, 2, 3, 0);
    const npuq_tensor *const operands[OPERANDS] = {[OPERAND_X] = &tensor};
    const struct call_options options = {.y_dtype = NPUQ_INT8};
    struct call call;
    struct trace_line line;

    (void)unused;
    assert_true(call_make(&call, DYNAMIC_QUANT, operands, &options));
    line = step_of(&call, &definition, (struct element){RESULT_Y, 5}, "m is at");
    assert_true(line.kind == TRACE_PLACE && line.value == 4);
    call_release(&call);
    assert_true(call_make(&call, DYNAMIC_QUANT_ASYMMETRIC, operands, &options));
    line = step_of(&call, &definition, (struct element){RESULT_OFFSET, 1}, "hi is at");
    assert_true(line.kind == TRACE_PLACE && line.value == 5);
    line = step_of(&call, &definition, (struct element){RESULT_OFFSET, 1}, "lo is at");
    assert_true(line.kind == TRACE_PLACE && line.value == 4);
    call_release(&call);
}

/* ---- all machines ----------------------------------------------------------------------------------------------- */

static uint64_t hash(uint64_t sum, uint64_t bits)
{
    sum = (sum ^ bits) * 0x100000001B3U;
    return sum ^ sum >> 29;
}

/* Small floats: each value has the number after that of the next smaller one. */
static void test_orders(void **unused)
{
    int types = 0;

    (void)unused;
    for (size_t t = 0; t < DTYPES; t++) {
        const struct dtype *type = &dtypes[t];
        const int codes = type->bits <= 8 ? 1 << type->bits : 0;
        float values[256];
        int64_t orders[256];

        if (type->kind != KIND_SMALL_FLOAT && type->kind != KIND_TAPERED_FLOAT && type->kind != KIND_EXPONENT) {
            continue;
        }
        types++;
        for (int code = 0; code < codes; code++) {
            const uint8_t bytes[4] = {(uint8_t)code};
            values[code] = npuq_ref_load(bytes, (npuq_ref_dtype)type->dtype, 0);
            orders[code] = dtype_order(type->dtype, (uint64_t)code);
        }
        for (int a = 0; a < codes; a++) {
            bool is_first = true; /* or a neighbour is there */
            bool has_lower = false;
            for (int b = 0; b < codes && !npuq_ref_is_nan(values[a]); b++) {
                if (npuq_ref_is_nan(values[b])) {
                    assert_true(orders[b] < 0 || orders[b] > orders[a]);
                    continue;
                }
                assert_int_equal(values[b] < values[a], orders[b] < orders[a]);
                assert_int_equal(values[b] == values[a], orders[b] == orders[a]);
                is_first &= !(values[b] < values[a]);
                has_lower |= orders[b] == orders[a] - 1;
            }
            assert_true(is_first || has_lower);
        }
    }
    assert_true(types > 1);
}

/* An operand of 8 rows and 48 columns, of one of these alone, or of one row. Floats are from 2^-16 to 2^15. */
static npuq_tensor make_operand(npuq_dtype dtype, int ndim, int64_t rows, int64_t columns)
{
    const npuq_tensor tensor =
        npuq_tensor_contiguous(calloc((size_t)(rows * columns), 8), dtype, ndim,
                               ndim == 2 ? (const int64_t[]){rows, columns} : (const int64_t[]){rows * columns});
    struct array array = {tensor.data, dtype, (size_t)(rows * columns)};
    uint64_t sum = (uint64_t)dtype + 1;

    assert_non_null(tensor.data);
    for (size_t i = 0; i < array.count; i++) {
        sum = hash(sum, i);
        const uint32_t random = (uint32_t)(sum >> 24);
        const uint32_t real = (random & 0x807FFFFFU) | (111 + (random >> 23) % 32) << 23;
        array_set_bits(&array, i,
                       dtype == NPUQ_UINT64    ? npuq_ref_pack(real, (float)(random % 512) - 256, false)
                       : dtype_is_float(dtype) ? dtype_float_bits(dtype, npuq_ref_from_bits(real))
                                               : random >> 12);
    }
    return tensor;
}

/* The results of every mistake are the same on every machine with every compiler. */
static void test_checksum(void **unused)
{
    static const struct {
        unsigned op;
        struct call_options options;
        const char *dtypes[OPERANDS];
        uint64_t expected;
    } rows[] = {
        {QUANTIZE,
         {.axis = 1, .divides = true, .y_dtype = NPUQ_INT8},
         {[OPERAND_X] = "float32", [OPERAND_SCALE] = "float32", [OPERAND_OFFSET] = "float32"},
         0xF5114FB350075ECF},
        {DEQUANT,
         {.y_dtype = NPUQ_BFLOAT16},
         {[OPERAND_X] = "int32",
          [OPERAND_SCALE] = "float32",
          [OPERAND_ROW_SCALE] = "float32",
          [OPERAND_BIAS] = "float32"},
         0xF0C29CE6527AD908},
        {TRANS_QUANT_PARAM,
         {.y_dtype = NPUQ_UINT64},
         {[OPERAND_X] = "float32", [OPERAND_OFFSET] = "float32"},
         0x17264E7A19D98CCD},
        {DYNAMIC_QUANT_ASYMMETRIC,
         {.y_dtype = NPUQ_INT8},
         {[OPERAND_X] = "bfloat16", [OPERAND_SMOOTH] = "float32"},
         0x1F38A113AB5DCB8A},
        {REQUANT,
         {.y_dtype = NPUQ_INT8},
         {[OPERAND_X] = "int32", [OPERAND_SCALE] = "uint64", [OPERAND_BIAS] = "int32"},
         0xB72FF00FA869FBC7},
        {DYNAMIC_BLOCK_QUANT,
         {.y_dtype = NPUQ_INT8, .block = 10, .min_scale = 50},
         {[OPERAND_X] = "bfloat16"},
         0xC9E9294E2B299C9C},
    };
    int wrong = 0;

    (void)unused;
    for (size_t w = 0; w < sizeof rows / sizeof rows[0]; w++) {
        npuq_tensor tensors[OPERANDS];
        const npuq_tensor *operands[OPERANDS] = {NULL};
        size_t row_of[8];
        struct call call;
        uint64_t sum = 0;

        for (int i = 0; i < OPERANDS; i++) {
            if (rows[w].dtypes[i]) {
                const bool is_x = i == OPERAND_X && rows[w].op != TRANS_QUANT_PARAM;
                tensors[i] = make_operand(dtype_named(rows[w].dtypes[i])->dtype, is_x ? 2 : 1,
                                          is_x || i == OPERAND_ROW_SCALE ? 8 : 1, i == OPERAND_ROW_SCALE ? 1 : 48);
                operands[i] = &tensors[i];
            }
        }
        assert_true(call_make(&call, rows[w].op, operands, &rows[w].options));
        for (int h = 0; h < hypothesis_count; h++) {
            if (!hypothesis_applies(&hypotheses[h], &call) || hypotheses[h].settings[0] == STEP_LAYOUT) {
                continue;
            }
            const struct variant variant = example_of(&hypotheses[h], &call, row_of);
            const struct state caller = enter_state();
            for (int r = 0; r < call_results(&call); r++) {
                struct predictor p = {.call = &call, .variant = &variant};
                for (size_t i = 0; i < call_result_count(&call, (enum result)r); i++) {
                    sum = hash(sum, predict(&p, (enum result)r, i, NULL));
                }
            }
            leave_state(&caller);
        }
        if (sum != rows[w].expected) {
            print_error("operator %u: 0x%016llX, expected 0x%016llX\n", rows[w].op, (unsigned long long)sum,
                        (unsigned long long)rows[w].expected);
        }
        for (int i = 0; i < OPERANDS; i++) {
            free(operands[i] ? tensors[i].data : NULL);
        }
        call_release(&call);
        wrong += sum != rows[w].expected;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    /* The quick ones end a run with a mistake in the code the soonest. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hypotheses),
        cmocka_unit_test(test_equal_scales),
        cmocka_unit_test(test_float64_is_rounded_once),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_places_of_scales),
        cmocka_unit_test(test_one_element_is_no_tail),
        cmocka_unit_test(test_weak_half_is_named),
        cmocka_unit_test(test_chance_is_not_named),
        cmocka_unit_test(test_flag_is_shown),
        cmocka_unit_test(test_exact_products),
        cmocka_unit_test(test_places_of_extremes),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_random_calls),
        cmocka_unit_test(test_mistakes_are_found),
    };

    test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
