/* SPDX-License-Identifier: BSD-3-Clause */
/* A diagnosis of any call that the library accepts, and of any dump. Bytes choose the call. Then they change the right
 * result, put a mistake of the table into it, or leave it unchanged. An equal dump is equal. If a finding explains a
 * dump, the finding gives that dump. All that is found is read. */
#include "../facts.h"
#include "../random_call.h"
#include "../support.h"
#include "input.h"

#include <hypotheses.h>
#include <predict.h>

static input *source;

static size_t choose(size_t end)
{
    return (size_t)take_bytes(source, end > 256 ? 2 : 1) % end;
}

/* ---- dumps ------------------------------------------------------------------------------------------------------ */

/* The results of a kernel with up to three mistakes; layout mistakes come by chance only. */
static void put_mistakes(struct random_call *random)
{
    struct variant variant = {.choice = {0}, .bound = {.value = 3e-9}};

    for (int i = (int)choose(3); i >= 0; i--) {
        const struct hypothesis *hypothesis = &hypotheses[choose((size_t)hypothesis_count)];
        if (hypothesis_applies(hypothesis, &random->call) && hypothesis->settings[0] != STEP_LAYOUT) {
            (void)hypothesis_add(hypothesis, &variant);
        }
    }
    random_call_predict(random, &variant);
}

static void change(struct array *array, size_t i)
{
    array_set_bits(array, i, array_bits(array, i) ^ take_bytes(source, 2));
}

static void make_dump(struct random_call *random)
{
    const uint8_t how = take_byte(source);
    const int results = call_results(&random->call);

    if (how & 1) {
        put_mistakes(random);
    }
    for (int n = how >> 4; n > 0; n--) {
        struct array *array = &random->dump[choose((size_t)results)];
        if (array->count > 0) {
            change(array, choose(array->count));
        }
    }
    for (size_t i = 0; (how & 2) && i < random->dump[RESULT_Y].count; i++) { /* the same in the later columns */
        array_set_bits(&random->dump[RESULT_Y], i, i % random->call.columns > choose(32) ? 0x55 : choose(256));
    }
    for (int r = 0; r < results; r++) { /* a file that is not there */
        if ((how & 12) == 12 && choose(2)) {
            array_release(&random->dump[r]);
        }
    }
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

/* Whether a finding says that its mistake is made at element i. */
static bool is_in_part(const struct random_call *random, const struct part *part, size_t i)
{
    const size_t line = part->kind == PART_ROWS ? i / random->call.columns : i % random->call.columns;

    return part->kind == PART_ALL || (line >= part->begin && line < part->end);
}

/* How many elements are not what a finding gives. */
static size_t count_differences(const struct random_call *random, const struct finding *finding)
{
    size_t count = 0;

    for (int r = 0; r < RESULTS; r++) {
        struct predictor p = {.call = &random->call, .variant = &finding->variant};
        for (size_t i = 0; random->dump[r].data && i < random->dump[r].count; i++) {
            const bool is_made = r != RESULT_Y || is_in_part(random, &finding->part, i);
            const uint64_t bits = is_made ? predict(&p, (enum result)r, i, NULL) : array_bits(&random->results[r], i);
            count += !result_is_same((enum result)r, bits, array_bits(&random->dump[r], i));
        }
    }
    return count;
}

/* How many elements that differ are admissible for the device's division. */
static size_t count_admissible(const struct random_call *random)
{
    struct array repaired[RESULTS] = {{0}};
    struct admission admission;
    size_t count = 0;

    if (!admission_find(&random->call, random->results, random->dump, repaired, NULL, &admission)) {
        FINDING("out of memory");
    }
    for (int r = 0; r < RESULTS; r++) {
        for (size_t i = 0; repaired[r].data && i < repaired[r].count; i++) {
            count += array_bits(&random->dump[r], i) != array_bits(&repaired[r], i);
        }
        array_release(&repaired[r]);
    }
    return count;
}

static void check_diagnosis(const struct random_call *random)
{
    static const struct finding definition;
    const size_t differing = count_differences(random, &definition);
    struct diagnosis diagnosis;

    if (!diagnose(&random->call, random->results, random->dump, NULL, &diagnosis)) {
        FINDING("out of memory");
    }
    if (diagnosis.all_differing != differing || (diagnosis.verdict == VERDICT_EQUAL) != (differing == 0)) {
        FINDING("verdict %d, %zu differ; expected %zu", (int)diagnosis.verdict, diagnosis.all_differing, differing);
    }
    for (int i = 0; i < diagnosis.count; i++) {
        const struct finding *finding = &diagnosis.findings[i];
        const size_t left = count_differences(random, finding);
        const size_t mismatches = finding->unexplained + finding->newly_wrong;
        const size_t excused = differing - finding->explained - finding->unexplained;
        const struct finding *best = &diagnosis.findings[0];
        const bool is_first = mismatches == 0 && finding->explained == best->explained &&
                              finding_score(finding) >= finding_score(best) - bits_of_rare;
        if (left != mismatches + excused || (excused > 0 && excused > count_admissible(random)) ||
            is_first != (i < diagnosis.first_place)) {
            FINDING("%s: %zu explained, %zu not, %zu new, %zu excused; %zu of %zu are left",
                    finding->hypotheses[0]->name, finding->explained, finding->unexplained, finding->newly_wrong,
                    excused, left, differing);
        }
    }
    (void)facts_of_diagnosis(&random->call, random->dump, &diagnosis);
    diagnosis_release(&diagnosis);
}

static void check_explanation(const struct random_call *random)
{
    static const struct variant definition;
    const enum result result = (enum result)choose((size_t)call_results(&random->call));

    if (random->results[result].count > 0) {
        const struct element element = {result, choose(random->results[result].count)};
        (void)facts_of_element(&random->call, &definition, element);
        if (explain_steps(&random->call, &definition, element).bits !=
            array_bits(&random->results[result], element.index)) {
            FINDING("the steps of element %zu do not end with it", element.index);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    struct random_call random;

    source = &in;
    const unsigned op = 1U << take_byte(&in) % NUMBER_OF_OPERATORS;
    test_reseed(take_bytes(&in, 2)); /* of the elements */
    if (random_call_make(&random, op, choose)) {
        make_dump(&random);
        check_diagnosis(&random);
        check_explanation(&random);
    }
    random_call_release(&random);
    return 0;
}
