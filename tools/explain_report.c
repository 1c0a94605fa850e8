/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain_report.h"

#include <state.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- values ----------------------------------------------------------------------------------------------------- */

static const char *const result_names[RESULTS] = {"y", "scale", "offset"};

void explain_indices(struct text *text, const struct call *call, struct element element)
{
    size_t index[NPUQ_MAX_NDIM];
    const int ndim = explain_index(call, element, index);

    text_add(text, "[");
    for (int d = 0; d < ndim; d++) {
        text_add(text, "%s%zu", d > 0 ? ", " : "", index[d]);
    }
    text_add(text, "]");
}

void explain_place(struct text *text, const struct call *call, struct element element)
{
    text_add(text, "%s", result_names[element.result]);
    explain_indices(text, call, element);
}

/* A float32 with its bits, a double without. */
static void add_number(struct text *text, double value)
{
    const float single = (float)value;

    if (is_nan(value)) {
        text_add(text, "NaN");
    } else if ((double)single == value) {
        text_add(text, "%.9g (0x%08" PRIX32 ")", value, npuq_ref_to_bits(single));
    } else {
        text_add(text, "%.17g", value);
    }
}

static void add_line(struct text *text, const struct call *call, const struct trace_line *line)
{
    switch (line->kind) {
    case TRACE_INTEGER: text_add(text, "%.0f", line->value); break;
    case TRACE_PLACE: explain_indices(text, call, (struct element){RESULT_Y, (size_t)line->value}); break;
    default: add_number(text, line->value); break;
    }
}

/* An element of a result. */
static void add_bits(struct text *text, npuq_dtype dtype, uint64_t bits)
{
    char value[DTYPE_TEXT_SIZE];

    text_add(text, "%s", dtype_format(value, dtype, bits));
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* The first line of this name in a trace, from a line on; count if there is none. */
static int find_line(const struct trace *trace, int from, const char *step)
{
    int i = from;

    while (i < trace->count && strcmp(trace->lines[i].step, step) != 0) {
        i++;
    }
    return i;
}

static bool same_value(const struct trace_line *a, const struct trace_line *b)
{
    return is_nan(a->value) ? is_nan(b->value) : a->value == b->value && copysign(1, a->value) == copysign(1, b->value);
}

typedef void show_line(struct text *text, const struct call *call, const char *step, const struct trace_line *defined,
                       const struct trace_line *beside);

/* Shows the lines of two traces, with those of one step together. If one trace lacks the step, its line is null. */
static void walk_lines(struct text *text, const struct call *call, const struct trace *defined,
                       const struct trace *beside, show_line *show)
{
    int j = 0;

    for (int i = 0; i < defined->count; i++) {
        const int found = find_line(beside, j, defined->lines[i].step);
        if (found == beside->count) {
            show(text, call, defined->lines[i].step, &defined->lines[i], NULL);
            continue;
        }
        for (; j < found; j++) {
            show(text, call, beside->lines[j].step, NULL, &beside->lines[j]);
        }
        show(text, call, defined->lines[i].step, &defined->lines[i], &beside->lines[j++]);
    }
    for (; j < beside->count; j++) {
        show(text, call, beside->lines[j].step, NULL, &beside->lines[j]);
    }
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

enum { INDENT = 2, FIRST_COLUMN = 34, SECOND_COLUMN = 62 };

/* The sign for a step that only the other trace has. An equal value is left out. */
#define NOT_DONE "-"

static void show_text(struct text *text, const struct call *call, const char *step, const struct trace_line *defined,
                      const struct trace_line *beside)
{
    text_add(text, "%*s%s", INDENT, "", step);
    text_pad(text, FIRST_COLUMN);
    if (defined) {
        add_line(text, call, defined);
    } else {
        text_add(text, NOT_DONE);
    }
    if (!beside) {
        text_pad(text, SECOND_COLUMN);
        text_add(text, NOT_DONE);
    } else if (!(defined && same_value(defined, beside))) {
        text_pad(text, SECOND_COLUMN);
        add_line(text, call, beside);
    }
    text_add(text, "\n");
}

static void show_text_alone(struct text *text, const struct call *call, const char *step,
                            const struct trace_line *defined, const struct trace_line *beside)
{
    (void)beside;
    text_add(text, "%*s%s", INDENT, "", step);
    text_pad(text, FIRST_COLUMN);
    add_line(text, call, defined);
    text_add(text, "\n");
}

void explain_text(struct text *text, const struct call *call, struct element element, const struct beside *beside)
{
    static const struct variant definition;
    static const struct trace nothing;
    const struct state caller = enter_state();
    const struct steps defined = explain_steps(call, &definition, element);
    const npuq_dtype dtype = call_result_dtype(call, element.result);

    if (beside && beside->name) {
        const struct steps other = explain_steps(call, beside->variant, element);
        text_add(text, "%*sstep", INDENT, "");
        text_pad(text, FIRST_COLUMN);
        text_add(text, "definition");
        text_pad(text, SECOND_COLUMN);
        text_add_wrapped(text, TEXT_WIDTH, SECOND_COLUMN, "%s", beside->name);
        text_add(text, "\n");
        walk_lines(text, call, &defined.trace, &other.trace, show_text);
        text_add(text, "%*s%s", INDENT, "", result_names[element.result]);
        text_pad(text, FIRST_COLUMN);
        add_bits(text, dtype, defined.bits);
        text_pad(text, SECOND_COLUMN);
        add_bits(text, dtype, other.bits);
        text_add(text, "\n");
    } else {
        walk_lines(text, call, &defined.trace, &nothing, show_text_alone);
        text_add(text, "%*s%s", INDENT, "", result_names[element.result]);
        text_pad(text, FIRST_COLUMN);
        add_bits(text, dtype, defined.bits);
        text_add(text, "\n");
    }
    if (beside && beside->theirs) {
        text_add(text, "%*sin the dump", INDENT, "");
        text_pad(text, beside->name ? SECOND_COLUMN : FIRST_COLUMN);
        add_bits(text, dtype, array_bits(beside->theirs, element.index));
        text_add(text, "\n");
    }
    leave_state(&caller);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* A member of an object; value is released. */
static void add_json_text(struct text *text, const char *key, struct text *value)
{
    text_add(text, ", \"%s\": ", key);
    if (value->failed) {
        text->failed = true;
    } else {
        text_add_json(text, value->characters);
    }
    text_release(value);
}

static void add_json_value(struct text *text, const struct call *call, const char *key, const struct trace_line *line)
{
    struct text value = {0};

    if (!line) {
        return;
    }
    add_line(&value, call, line);
    add_json_text(text, key, &value);
}

static void show_json(struct text *text, const struct call *call, const char *step, const struct trace_line *defined,
                      const struct trace_line *beside)
{
    text_add(text, "%s{\"step\": ", text->characters[text->length - 1] == '[' ? "" : ", ");
    text_add_json(text, step);
    add_json_value(text, call, "definition", defined);
    add_json_value(text, call, "hypothesis", beside);
    text_add(text, "}");
}

static void add_json_bits(struct text *text, const char *key, npuq_dtype dtype, uint64_t bits)
{
    struct text value = {0};

    add_bits(&value, dtype, bits);
    add_json_text(text, key, &value);
}

void explain_json(struct text *text, const struct call *call, struct element element, const struct beside *beside)
{
    static const struct variant definition;
    const struct state caller = enter_state();
    const struct steps defined = explain_steps(call, &definition, element);
    const npuq_dtype dtype = call_result_dtype(call, element.result);
    struct steps other = {.bits = 0};
    const char *name = NULL;

    if (beside && beside->name) {
        name = beside->name;
        other = explain_steps(call, beside->variant, element);
    }
    text_add(text, "{\"result\": \"%s\", \"index\": ", result_names[element.result]);
    explain_indices(text, call, element);
    text_add(text, ", \"steps\": [");
    if (!text->failed) {
        walk_lines(text, call, &defined.trace, &other.trace, show_json);
    }
    text_add(text, "]");
    add_json_bits(text, "definition", dtype, defined.bits);
    if (name) {
        add_json_bits(text, "hypothesis", dtype, other.bits);
        text_add(text, ", \"name\": ");
        text_add_json(text, name);
    }
    if (beside && beside->theirs) {
        add_json_bits(text, "dump", dtype, array_bits(beside->theirs, element.index));
    }
    text_add(text, "}");
    leave_state(&caller);
}
