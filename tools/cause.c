/* SPDX-License-Identifier: BSD-3-Clause */
#include "cause.h"

#include "diagnosis_report.h"
#include "executor.h"
#include "explain_report.h"
#include "report.h"
#include "tensor_file.h"

#include <inttypes.h>

static bool make_call(const struct cause *cause, struct call *call)
{
    struct request request = {0};

    return describe_call(cause->command, cause->operands, &request) &&
           (call_make(call, request.op, request.operands, &request.options) || report_error("out of memory"));
}

static bool is_given(const struct cause *cause, enum option option)
{
    return cause->operands->arguments->text[option] != NULL;
}

static bool print(const struct cause *cause, struct text *text)
{
    const bool ok = !text->failed;

    if (ok && text->length > 0) {
        (void)fputs(text->characters, cause->stream);
    }
    text_release(text);
    return ok || report_error("out of memory");
}

/* ---- diagnose -------------------------------------------------------------------------------------------------- */

/* The results, and the expected ones, as arrays. */
static bool load_results(const struct cause *cause, struct array ours[RESULTS], struct array theirs[RESULTS])
{
    for (int r = 0; r < cause->command->outputs; r++) {
        if (!cause->expected[r]) {
            continue;
        }
        npuq_tensor tensor = *cause->expected[r];
        tensor.dtype = cause->operands->outputs[r].dtype; /* a file of int32 may hold words of int4 */
        if (!array_make(&ours[r], &cause->operands->outputs[r]) || !array_make(&theirs[r], &tensor)) {
            return report_error("out of memory");
        }
    }
    return true;
}

/* Judges the results; *text is the report. */
typedef enum exit_status judge_results(const struct cause *cause, const struct call *call,
                                       const struct array ours[RESULTS], const struct array theirs[RESULTS],
                                       const npuq_executor *executor, struct text *text);

static enum exit_status judge(const struct cause *cause, judge_results *results)
{
    struct executor executor = {.threads = cause->threads};
    const npuq_executor view = executor_view(&executor);
    struct call call = {0};
    struct array ours[RESULTS] = {{0}};
    struct array theirs[RESULTS] = {{0}};
    struct text text = {0};
    enum exit_status status = EXIT_ERROR;

    if (make_call(cause, &call) && load_results(cause, ours, theirs)) {
        status = results(cause, &call, ours, theirs, &view, &text);
        if (status == EXIT_ERROR) {
            report_error("out of memory");
        } else if (!print(cause, &text)) {
            status = EXIT_ERROR;
        }
    }
    for (int r = 0; r < RESULTS; r++) {
        array_release(&ours[r]);
        array_release(&theirs[r]);
    }
    call_release(&call);
    text_release(&text);
    return status;
}

static enum exit_status status_of(const struct cause *cause, const struct diagnosis *diagnosis)
{
    const bool is_enough = diagnosis->verdict == VERDICT_EQUAL ||
                           (diagnosis->verdict == VERDICT_ADMISSIBLE && is_given(cause, OPTION_ADMISSIBLE));

    return is_enough ? EXIT_EQUAL : EXIT_DIFFERENT;
}

static enum exit_status diagnose_call(const struct cause *cause, const struct call *call,
                                      const struct array ours[RESULTS], const struct array theirs[RESULTS],
                                      const npuq_executor *executor, struct text *text)
{
    struct diagnosis diagnosis;
    enum exit_status status = EXIT_ERROR;

    if (diagnose(call, ours, theirs, executor, &diagnosis)) {
        if (is_given(cause, OPTION_JSON)) {
            diagnosis_report_json(text, call, theirs, &diagnosis);
        } else if (diagnosis.verdict != VERDICT_EQUAL || !is_given(cause, OPTION_QUIET)) {
            diagnosis_report_text(text, call, theirs, &diagnosis);
        }
        status = status_of(cause, &diagnosis);
    }
    diagnosis_release(&diagnosis);
    return status;
}

enum exit_status cause_diagnose(const struct cause *cause)
{
    return judge(cause, diagnose_call);
}

/* ---- admissible ------------------------------------------------------------------------------------------------ */

static enum exit_status find_admission(const struct cause *cause, const struct call *call,
                                       const struct array ours[RESULTS], const struct array theirs[RESULTS],
                                       const npuq_executor *executor, struct text *text)
{
    struct array repaired[RESULTS] = {{0}};
    struct admission admission;
    struct diagnosis diagnosis = {.verdict = VERDICT_NONE};
    enum exit_status status = EXIT_ERROR;

    if (is_given(cause, OPTION_ADMISSIBLE)) {
        if (diagnose(call, ours, theirs, executor, &diagnosis)) {
            diagnosis_report_verdict(text, call, &diagnosis);
            status = status_of(cause, &diagnosis);
        }
        diagnosis_release(&diagnosis);
    } else if (admission_find(call, ours, theirs, repaired, executor, &admission)) {
        diagnosis_report_admission(text, call, &admission);
        status = EXIT_DIFFERENT;
    }
    for (int r = 0; r < RESULTS; r++) {
        array_release(&repaired[r]);
    }
    return status;
}

enum exit_status cause_admission(const struct cause *cause)
{
    return judge(cause, find_admission);
}

/* ---- explain --------------------------------------------------------------------------------------------------- */

/* Finds the element at a place; if there is none, reports that and returns false. */
static bool find_element(const struct call *call, const struct place *place, struct element *element)
{
    *element = (struct element){RESULT_Y, 0};
    if (place->count != call->ndim) {
        return report_error("--at: has %d ind%s; expected %d, one for each dimension of the result", place->count,
                            place->count == 1 ? "ex" : "ices", call->ndim);
    }
    for (int d = 0; d < call->ndim; d++) {
        if ((uint64_t)place->index[d] >= call->shape[d]) {
            return report_error("--at: index %" PRId64 " of dimension %d; expected less than %zu", place->index[d], d,
                                call->shape[d]);
        }
        element->index = element->index * call->shape[d] + (size_t)place->index[d];
    }
    return true;
}

enum exit_status cause_explain(const struct cause *cause)
{
    const struct arguments *arguments = cause->operands->arguments;
    const bool json = is_given(cause, OPTION_JSON);
    struct call call = {0};
    struct text text = {0};
    bool ok = make_call(cause, &call);

    text_add(&text, "%s", json ? "[" : "");
    for (int i = 0; i < arguments->place_count && ok; i++) {
        struct element element;
        ok = find_element(&call, &arguments->places[i], &element);
        if (ok && json) {
            text_add(&text, "%s", i > 0 ? ",\n " : "");
            explain_json(&text, &call, element, NULL);
        } else if (ok) {
            text_add(&text, "%s", i > 0 ? "\n" : "");
            explain_place(&text, &call, element);
            text_add(&text, "\n");
            explain_text(&text, &call, element, NULL);
        }
    }
    text_add(&text, "%s", json ? "]\n" : "");
    call_release(&call);
    if (!ok) {
        text_release(&text);
        return EXIT_ERROR;
    }
    return print(cause, &text) ? EXIT_EQUAL : EXIT_ERROR;
}
