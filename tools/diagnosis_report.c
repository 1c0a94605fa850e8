/* SPDX-License-Identifier: BSD-3-Clause */
#include "diagnosis_report.h"

#include "explain_report.h"

#include <hypotheses.h>
#include <inttypes.h>
#include <layouts.h>
#include <math.h>
#include <state.h>
#include <stdlib.h>

static const char *const result_names[RESULTS] = {"y", "scale", "offset"};
static const char *const part_units[] = {"", "row", "column"};
static const char *const column_units[RESULTS] = {"column", "block", "block"};
static const char *const verdict_names[] = {"equal", "explained", "admissible", "partly", "none"};

/* "64 to 71" */
static void add_range(struct text *text, size_t first, size_t last)
{
    text_add(text, last > first ? "%zu to %zu" : "%zu", first, last);
}

/* "columns 64 to 71" */
static void add_part(struct text *text, const struct part *part)
{
    text_add(text, "%s%s ", part_units[part->kind], part->end - part->begin > 1 ? "s" : "");
    add_range(text, part->begin, part->end - 1);
}

static void add_names(struct text *text, const struct finding *finding)
{
    text_add(text, "%s", finding->hypotheses[0]->name);
    if (finding->hypotheses[1]) {
        text_add(text, " and %s", finding->hypotheses[1]->name);
    }
    if (finding->part.kind != PART_ALL) {
        text_add(text, " in ");
        add_part(text, &finding->part);
    }
}

static void add_layout(struct text *text, const struct call *call, const struct variant *variant)
{
    const struct layout *layout = &variant->layout;
    const struct found_layout found = layout_describe(call, variant);

    if (found.is_untouched) {
        text_add(text, "  Untouched from %s %zu on", found.unit, layout->from);
        if (found.multiple_of > 1) {
            text_add(text, ", a multiple of %zu", found.multiple_of);
        }
        text_add(text, ": the last %zu of %zu.\n", found.of - layout->from, found.of);
    } else if (found.moved > 0) {
        text_add(text, "  %zu of %zu rows are elsewhere; row %zu holds what belongs to row %zu.\n", found.moved,
                 call->rows, found.first, layout->row_of[found.first]);
    }
}

enum { INDENT = 2 };

/* Adds the line, broken to the width, with an end of line. Releases it. */
static void add_line(struct text *text, struct text *line)
{
    text_add_wrapped(text, TEXT_WIDTH, INDENT, "%s", line->length > 0 ? line->characters : "");
    text_add(text, "\n");
    text->failed |= line->failed;
    text_release(line);
}

static void add_advice(struct text *text, const struct call *call, const struct finding *finding)
{
    for (int i = 0; i < 2 && finding->hypotheses[i]; i++) {
        const struct hypothesis *hypothesis = finding->hypotheses[i];
        text_add_wrapped(text, TEXT_WIDTH, INDENT, "%s: the kernel %s.", hypothesis->name, hypothesis->what);
        text_add(text, "\n");
        text_add_wrapped(text, TEXT_WIDTH, INDENT, "%s", hypothesis->advice);
        text_add(text, "\n");
    }
    add_layout(text, call, &finding->variant);
    if (finding->part.kind != PART_ALL) {
        struct text line = {0};
        text_add(&line, "The rest of y is right: look at the code for ");
        add_part(&line, &finding->part);
        text_add(&line, " of %zu, such as %s.", finding->part.of,
                 finding->part.kind == PART_ROWS ? "that of a block of rows or of one thread"
                                                 : "what a vector loop leaves over");
        add_line(text, &line);
    }
}

static void add_conclusion(struct text *text, const struct diagnosis *d)
{
    const struct finding *best = &d->findings[0];
    struct text line = {0};

    switch (d->verdict) {
    case VERDICT_EQUAL: text_add(text, "diagnosis: nothing differs\n"); return;
    case VERDICT_NONE: text_add(text, "diagnosis: none of the hypotheses explains this\n"); return;
    case VERDICT_ADMISSIBLE: text_add(text, "diagnosis: within the device's division\n"); return;
    default: break;
    }
    text_add(text, "diagnosis:");
    add_names(&line, best);
    text_add(&line, ": explains %zu of %zu differing elements ", best->explained, d->all_differing);
    if (best->newly_wrong == 0) {
        text_add(&line, "and changes no other");
    } else {
        text_add(&line, "but would change %zu that are equal", best->newly_wrong);
    }
    add_line(text, &line);
}

void diagnosis_report_admission(struct text *text, const struct call *call, const struct admission *a)
{
    struct text line = {0};

    if (a->wrong == a->differing) { /* both are 0 without such a division */
        return;
    }
    text_add(&line, "Admissible for the device's vector division: %zu of %zu differing %s%s%s.",
             a->differing - a->wrong, a->differing, admission_unit(call), a->differing == 1 ? "" : "s",
             a->wrong > 0 ? "; the rest is wrong" : "");
    add_line(text, &line);
    if (a->wrong == 0) {
        text_add(&line, "Quotients one unit off: %zu of %zu rounded ones that can show it, %zu of %zu exact ones; ",
                 a->moves.made, a->moves.possible, a->exact.made, a->exact.possible);
        text_add(&line, a->too_many ? "too many: a device moves some 6 %%." : "a device moves some 6 %%.");
        add_line(text, &line);
        text_add(text, "  docs/device.md says what is known of the device's division.\n");
    }
}

void diagnosis_report_verdict(struct text *text, const struct call *call, const struct diagnosis *d)
{
    add_conclusion(text, d);
    diagnosis_report_admission(text, call, &d->admission);
}

/* "rows 3 to 7 of 512" */
static void add_lines(struct text *text, const char *unit, const struct lines *lines)
{
    const char *separator = "";

    if (lines->of == 1) {
        text_add(text, "the only %s", unit);
    } else if (lines->count == lines->of) {
        text_add(text, "all %zu %ss", lines->of, unit);
    } else if (lines->count == 1) {
        text_add(text, "%s %zu of %zu", unit, lines->last, lines->of);
    } else if (lines->step > 0 && (lines->step == 1 || lines->count > LISTED)) {
        text_add(text, "%ss %zu to %zu of %zu", unit, lines->listed[0], lines->last, lines->of);
        if (lines->step > 1) {
            text_add(text, " in steps of %zu", lines->step);
        }
    } else {
        text_add(text, "%zu of %zu %ss (", lines->count, lines->of, unit);
        for (size_t i = 0; i < lines->count && i < LISTED; i++) {
            text_add(text, "%s%zu", separator, lines->listed[i]);
            separator = ", ";
        }
        if (lines->count > LISTED) {
            text_add(text, " and others up to %zu", lines->last);
        }
        if (lines->period > 0) {
            text_add(text, "; each is ");
            if (lines->to > 0) {
                add_range(text, lines->from, lines->to);
                text_add(text, " more than ");
            }
            text_add(text, "a multiple of %zu", lines->period);
        }
        text_add(text, ")");
    }
}

/* Where the elements are that nothing explains. */
static void add_remainder(struct text *text, const struct call *call, const struct diagnosis *d)
{
    const char *separator = "";
    struct text line = {0};

    text_add(&line, diagnosis_is_named(d) ? "What remains: " : "What differs: ");
    for (int r = 0; r < RESULTS; r++) {
        const struct rest *rest = &d->remainder.of[r];
        if (rest->elements == 0) {
            continue;
        }
        text_add(&line, "%s%zu element%s of %s", separator, rest->elements, rest->elements == 1 ? "" : "s",
                 result_names[r]);
        separator = "; ";
        if (r == RESULT_Y || call->tokens > 1) {
            text_add(&line, " in ");
            add_lines(&line, "row", &rest->rows);
        }
        if (r == RESULT_Y || call->op == DYNAMIC_BLOCK_QUANT) {
            text_add(&line, " and ");
            add_lines(&line, column_units[r], &rest->columns);
        }
    }
    text_add(&line, ".");
    add_line(text, &line);
}

/* ---- what a remainder looks like --------------------------------------------------------------------------------- */

/* Takes a sentence; the caller then releases it. */
typedef void take_clue(struct text *text, struct text *clue);

/* Rounded, but 100 of all only. */
static size_t percent(size_t count, size_t of)
{
    const size_t rounded = (size_t)nearbyint((double)count * 100 / (double)of);

    return rounded == 100 && count < of ? 99 : rounded;
}

static void add_common(struct text *text, const struct call *call, enum result result, const struct rest *rest)
{
    const struct dtype *dtype = dtype_of(call_result_dtype(call, result));

    text_add(text, "Differences of %s, dump minus expected%s%s", result_names[result],
             dtype->kind == KIND_FLOAT ? ", in steps of " : "", dtype->kind == KIND_FLOAT ? dtype->name : "");
    for (int k = 0; k < COMMONEST && rest->common[k].count > 0; k++) {
        const size_t share = percent(rest->common[k].count, rest->looked_at);
        if (share > 0) {
            text_add(text, "%s %+lld in %zu %%", k == 0 ? ":" : ",", (long long)rest->common[k].steps, share);
        }
    }
    text_add(text, ".");
}

/* Whether a number is an integer, as float32 has it. */
static bool is_integer(double number)
{
    return fabs(number - nearbyint(number)) <= fabs(number) * 0x1p-22;
}

/* " (128 / 127)" for a factor that is such a quotient of small numbers, and no short decimal. */
static void add_quotient(struct text *text, double factor)
{
    enum { LARGEST = 256 };

    for (int below = 2; below <= LARGEST && !is_integer(factor * 1000); below++) {
        const double above = nearbyint(factor * below);
        if (above > 0 && above <= LARGEST && is_integer(factor * below)) {
            text_add(text, " (%.0f / %d)", above, below);
            return;
        }
    }
}

/* "* 1.003 + 1" */
static void add_fit(struct text *text, enum result result, npuq_dtype dtype, const struct fit *fit)
{
    const char *name = result_names[result];

    if (dtype_is_float(dtype)) {
        text_add(text, "But for its last bits, %s is %.7g", name, fit->factor != 1 ? fit->factor : fabs(fit->addend));
        if (fit->factor != 1) {
            add_quotient(text, fit->factor);
            text_add(text, " times what is expected");
        } else {
            text_add(text, fit->addend > 0 ? " more than expected" : " less than expected");
        }
        text_add(text, " in %zu of %zu differing elements.", fit->given, fit->of);
        return;
    }
    text_add(text, "%s looks like the value before rounding", name);
    if (fit->factor != 1) {
        text_add(text, " * %.5g", fit->factor);
    }
    if (fit->addend != 0) {
        text_add(text, " %c %.6g", fit->addend > 0 ? '+' : '-', fabs(fit->addend));
    }
    text_add(text, ", rounded: that gives %zu %% of %zu elements that do not saturate, where %zu %% are as expected.",
             percent(fit->given, fit->of), fit->of, percent(fit->before, fit->of));
}

static void add_offset(struct text *text, const struct call *call, const struct missing_offset *missing)
{
    text_add(text,
             missing->count == 1 ? "The call has no %s, and with" : "The call has no %s for each channel, and with",
             call->op == QUANTIZE ? "zero points" : "offset");
    for (size_t i = 0; i < missing->count && i < LISTED; i++) {
        text_add(text, "%s %.9g", i > 0 ? "," : "", (double)missing->values[i]);
    }
    text_add(text, "%s it gives all of y.", missing->count > LISTED ? " and so on" : "");
}

static void add_source(struct text *text, const struct call *call, const struct source *source)
{
    const struct element scale = {RESULT_SCALE, source->token};
    const bool symmetric = call->op != DYNAMIC_QUANT_ASYMMETRIC;

    explain_place(text, call, scale);
    text_add(text, " of the dump is the scale for %s = %s%s",
             symmetric        ? "m"
             : source->is_low ? "lo"
                              : "hi",
             symmetric ? "|" : "", call->operands[OPERAND_SMOOTH].data ? "v" : "x");
    explain_indices(text, call, (struct element){RESULT_Y, source->element});
    text_add(text, "%s.", symmetric ? "|" : "");
}

/* Gives each sentence about the remainder to `take`. If the dump is within the device's division, gives no sentence. */
static void each_clue(struct text *text, const struct call *call, const struct diagnosis *d, take_clue *take)
{
    const struct remainder *remainder = &d->remainder;
    const struct source *source = &remainder->source;
    const struct tiles *tiles = &remainder->tiles;
    struct text clue = {0};

    if (d->verdict == VERDICT_ADMISSIBLE) {
        return;
    }
    const struct state caller = enter_state();
    if (tiles->count > 0) {
        text_add(&clue,
                 "They are in %zu of %zu tiles of %d rows and columns, the first from row %zu and column %zu on.",
                 tiles->count, tiles->of, TILE, tiles->row, tiles->column);
        take(text, &clue);
    }
    for (int r = 0; r < RESULTS; r++) {
        const struct rest *rest = &remainder->of[r];
        if (rest->common[0].count > 0) {
            add_common(&clue, call, (enum result)r, rest);
            take(text, &clue);
        }
        if (rest->fit.found) {
            add_fit(&clue, (enum result)r, call_result_dtype(call, (enum result)r), &rest->fit);
            take(text, &clue);
        }
    }
    if (remainder->offset.count > 0) {
        add_offset(&clue, call, &remainder->offset);
        take(text, &clue);
    }
    if (source->distance != 0) {
        text_add(&clue, "Each scale that differs is that of %d row%s %s.", abs(source->distance),
                 abs(source->distance) == 1 ? "" : "s", source->distance > 0 ? "further down" : "further up");
        take(text, &clue);
    }
    if (source->columns.end > 0) {
        text_add(&clue, "All scales are those that columns ");
        add_range(&clue, source->columns.begin, source->columns.end - 1);
        text_add(&clue, " alone give.");
        take(text, &clue);
    }
    if (source->has_element) {
        add_source(&clue, call, source);
        take(text, &clue);
    }
    leave_state(&caller);
}

enum { COLUMN_EXPLAINED = 44, SHOWN_OTHERS = 5 };

static void add_table(struct text *text, const struct diagnosis *d)
{
    text_add(text, "\n  %-42s%10s %12s %12s\n", "hypothesis", "explained", "unexplained", "newly wrong");
    for (int i = 0; i < d->count && (i < d->first_place || i < SHOWN_OTHERS); i++) {
        const struct finding *finding = &d->findings[i];
        text_add(text, "  ");
        add_names(text, finding);
        text_pad(text, COLUMN_EXPLAINED);
        text_add(text, "%10zu %12zu %12zu\n", finding->explained, finding->unexplained, finding->newly_wrong);
    }
}

/* Other values to show with the steps: the dump's, and those of the best finding if it is named. */
static struct beside make_beside(const struct array theirs[RESULTS], const struct diagnosis *d, struct text *names)
{
    const struct finding *best = &d->findings[0];
    struct beside beside = {.theirs = &theirs[d->shown.result]};

    if (d->verdict == VERDICT_ADMISSIBLE) {
        beside.name =
            d->moved.choice[STEP_QUOTIENT] == QUOTIENT_BELOW ? "quotient one unit lower" : "quotient one unit higher";
        beside.variant = &d->moved;
    }
    if (diagnosis_is_named(d)) {
        add_names(names, best);
        beside.name = names->failed ? best->hypotheses[0]->name : names->characters;
        beside.variant = &best->variant;
    }
    return beside;
}

void diagnosis_report_text(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *d)
{
    struct text names = {0};

    add_conclusion(text, d);
    if (d->untried > 0) {
        text_add(text, "  %d pairs of hypotheses were not tried: that would take too long.\n", d->untried);
    }
    if (d->verdict == VERDICT_EQUAL) {
        return;
    }
    if (d->differing[RESULT_Y] > 1 && array_holds_one_value(&theirs[RESULT_Y])) {
        text_add(text, "  Every element of y is the same, as of memory that was never written.\n");
    }
    if (diagnosis_is_named(d)) {
        add_advice(text, call, &d->findings[0]);
    }
    if (d->verdict != VERDICT_EXPLAINED) {
        add_remainder(text, call, d);
        each_clue(text, call, d, add_line);
    }
    diagnosis_report_admission(text, call, &d->admission);
    if (d->first_place > 1) {
        struct text line = {0};
        text_add(&line, "On these inputs the same bits come from");
        for (int i = 1; i < d->first_place; i++) {
            text_add(&line, "%s ", i > 1 ? "," : "");
            add_names(&line, &d->findings[i]);
        }
        text_add(&line, ".");
        add_line(text, &line);
        text_add(text, "  The inputs that npuquant hard-inputs makes are meant to tell such mistakes apart.\n");
    }
    if (d->count > 0) {
        add_table(text, d);
    }
    text_add(text, "\n");
    explain_place(text, call, d->shown);
    text_add(text, ", step by step:\n");
    const struct beside beside = make_beside(theirs, d, &names);
    explain_text(text, call, d->shown, &beside);
    text->failed |= names.failed;
    text_release(&names);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* The name is that of y, or begins with that of another result. */
static void add_json_lines(struct text *text, enum result result, const char *unit, const struct lines *lines)
{
    text_add(text, ", \"%s%s%ss\": {\"of\": %zu, \"count\": %zu, \"first\": [",
             result == RESULT_Y ? "" : result_names[result], result == RESULT_Y ? "" : "_", unit, lines->of,
             lines->count);
    for (size_t i = 0; i < lines->count && i < LISTED; i++) {
        text_add(text, "%s%zu", i > 0 ? ", " : "", lines->listed[i]);
    }
    text_add(text, "], \"last\": %zu, \"step\": %zu", lines->last, lines->step);
    if (lines->period > 0) {
        text_add(text, ", \"period\": %zu, \"from\": %zu, \"to\": %zu", lines->period, lines->from, lines->to);
    }
    text_add(text, "}");
}

static void add_json_clue(struct text *text, struct text *clue)
{
    text_add(text, "%s", text->length > 0 && text->characters[text->length - 1] != '[' ? ", " : "");
    text_add_json(text, clue->length > 0 ? clue->characters : "");
    text->failed |= clue->failed;
    text_release(clue);
}

static void add_json_remainder(struct text *text, const struct call *call, const struct diagnosis *d)
{
    const struct remainder *remainder = &d->remainder;

    text_add(text, ", \"remainder\": {\"y\": %zu, \"scale\": %zu, \"offset\": %zu", remainder->of[RESULT_Y].elements,
             remainder->of[RESULT_SCALE].elements, remainder->of[RESULT_OFFSET].elements);
    for (int r = 0; r < RESULTS; r++) {
        if (remainder->of[r].elements > 0) {
            add_json_lines(text, (enum result)r, "row", &remainder->of[r].rows);
            if (r == RESULT_Y || call->op == DYNAMIC_BLOCK_QUANT) {
                add_json_lines(text, (enum result)r, column_units[r], &remainder->of[r].columns);
            }
        }
    }
    text_add(text, ", \"clues\": [");
    each_clue(text, call, d, add_json_clue);
    text_add(text, "]}");
}

static void add_json_layout(struct text *text, const struct call *call, const struct variant *variant)
{
    const struct found_layout found = layout_describe(call, variant);

    if (found.is_untouched) {
        text_add(text, ", \"layout\": {\"untouched_from\": %zu, \"multiple_of\": %zu, \"of\": %zu, \"unit\": \"%s\"}",
                 variant->layout.from, found.multiple_of, found.of, found.unit);
    } else if (found.moved > 0) {
        text_add(text, ", \"layout\": {\"moved\": %zu, \"of\": %zu, \"row\": %zu, \"holds_row\": %zu}", found.moved,
                 found.of, found.first, variant->layout.row_of[found.first]);
    }
}

static void add_json_finding(struct text *text, const struct call *call, const struct finding *finding)
{
    text_add(text, "{\"hypotheses\": [");
    for (int i = 0; i < 2 && finding->hypotheses[i]; i++) {
        text_add(text, "%s{\"name\": ", i > 0 ? ", " : "");
        text_add_json(text, finding->hypotheses[i]->name);
        text_add(text, ", \"what\": ");
        text_add_json(text, finding->hypotheses[i]->what);
        text_add(text, ", \"advice\": ");
        text_add_json(text, finding->hypotheses[i]->advice);
        text_add(text, "}");
    }
    text_add(text, "], \"explained\": %zu, \"unexplained\": %zu, \"newly_wrong\": %zu", finding->explained,
             finding->unexplained, finding->newly_wrong);
    add_json_layout(text, call, &finding->variant);
    if (finding->part.kind != PART_ALL) {
        text_add(text, ", \"part\": {\"unit\": \"%s\", \"begin\": %zu, \"end\": %zu, \"of\": %zu}",
                 part_units[finding->part.kind], finding->part.begin, finding->part.end, finding->part.of);
    }
    text_add(text, "}");
}

static void add_json_admission(struct text *text, const struct call *call, const struct admission *a)
{
    if (!a->divides) {
        text_add(text, "null");
        return;
    }
    text_add(text, "{\"verdict\": \"%s\", \"unit\": \"%s\"",
             a->wrong > 0       ? "wrong"
             : a->differing > 0 ? "admissible"
                                : "equal",
             admission_unit(call));
    if (a->differing > 0) {
        text_add(text, ", \"units\": %zu, \"differing\": %zu, \"wrong\": %zu", a->units, a->differing, a->wrong);
    }
    if (a->differing > 0 && a->wrong == 0) {
        text_add(text,
                 ", \"possible\": %zu, \"made\": %zu, \"exact_possible\": %zu, \"exact_made\": %zu, \"too_many\": %s",
                 a->moves.possible, a->moves.made, a->exact.possible, a->exact.made, a->too_many ? "true" : "false");
    }
    text_add(text, "}");
}

void diagnosis_report_json(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *d)
{
    struct text names = {0};
    const char *separator = "";

    text_add(text, "{\"format\": 1, \"verdict\": \"%s\", \"results\": [", verdict_names[d->verdict]);
    for (int r = 0; r < RESULTS; r++) {
        if (theirs[r].data) {
            text_add(text, "%s{\"name\": \"%s\", \"elements\": %zu, \"differing\": %zu}", separator, result_names[r],
                     d->compared[r], d->differing[r]);
            separator = ", ";
        }
    }
    text_add(text, "], \"admissible\": ");
    add_json_admission(text, call, &d->admission);
    text_add(text, ", \"first_place\": %d, \"untried_pairs\": %d, \"findings\": [", d->first_place, d->untried);
    for (int i = 0; i < d->count; i++) {
        text_add(text, "%s", i > 0 ? ", " : "");
        add_json_finding(text, call, &d->findings[i]);
    }
    text_add(text, "]");
    if (d->verdict != VERDICT_EQUAL) {
        const struct beside beside = make_beside(theirs, d, &names);
        if (d->verdict != VERDICT_EXPLAINED) {
            add_json_remainder(text, call, d);
        }
        text_add(text, ", \"element\": ");
        explain_json(text, call, d->shown, &beside);
    }
    text_add(text, "}\n");
    text->failed |= names.failed;
    text_release(&names);
}
