/* SPDX-License-Identifier: BSD-3-Clause */
#include "diagnosis_report.h"

#include "hypotheses.h"

#include <inttypes.h>

static const char *const verdict_names[] = {"equal", "explained", "partly", "none"};

static void add_names(struct text *text, const struct finding *finding)
{
    text_add(text, "%s", finding->hypotheses[0]->name);
    if (finding->hypotheses[1]) {
        text_add(text, " and %s", finding->hypotheses[1]->name);
    }
}

/* What a finding's layout was found to be. */
static void add_layout(struct text *text, const struct call *call, const struct finding *finding)
{
    const struct layout *layout = &finding->variant.layout;
    size_t moved = 0;
    size_t first = 0;

    switch (finding->variant.choice[STEP_LAYOUT]) {
    case LAYOUT_TAIL_UNTOUCHED:
        text_add(text, "  Untouched from column %zu on: the last %zu of %zu.\n", layout->from,
                 call->columns - layout->from, call->columns);
        break;
    case LAYOUT_ROWS_UNTOUCHED:
        text_add(text, "  Untouched from row %zu on: the last %zu of %zu.\n", layout->from, call->rows - layout->from,
                 call->rows);
        break;
    case LAYOUT_ROWS_PERMUTED:
        for (size_t row = 0; row < call->rows; row++) {
            first = moved == 0 && layout->row_of[row] != row ? row : first;
            moved += layout->row_of[row] != row;
        }
        text_add(text, "  %zu of %zu rows are elsewhere; row %zu holds what belongs to row %zu.\n", moved, call->rows,
                 first, layout->row_of[first]);
        break;
    default: break;
    }
}

static void add_advice(struct text *text, const struct call *call, const struct finding *finding)
{
    for (int i = 0; i < 2 && finding->hypotheses[i]; i++) {
        const struct hypothesis *hypothesis = finding->hypotheses[i];
        text_add(text, "  %s: the kernel %s.\n  %s\n", hypothesis->name, hypothesis->what, hypothesis->advice);
    }
    add_layout(text, call, finding);
}

static void add_conclusion(struct text *text, const struct diagnosis *d)
{
    const struct finding *best = &d->findings[0];

    switch (d->verdict) {
    case VERDICT_EQUAL: text_add(text, "diagnosis: nothing differs\n"); return;
    case VERDICT_NONE: text_add(text, "diagnosis: none of the hypotheses explains this\n"); return;
    default: break;
    }
    text_add(text, "diagnosis: ");
    add_names(text, best);
    text_add(text, ": explains %zu of %zu differing elements, ", best->explained, d->all_differing);
    if (best->newly_wrong == 0) {
        text_add(text, "and no equal one\n");
    } else {
        text_add(text, "and would change %zu equal ones\n", best->newly_wrong);
    }
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

void diagnosis_report_text(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *d)
{
    const struct finding *best = &d->findings[0];
    const bool named = d->verdict == VERDICT_EXPLAINED || d->verdict == VERDICT_PARTLY;
    struct beside beside = {.theirs = &theirs[d->shown.result]};

    add_conclusion(text, d);
    if (d->untried > 0) {
        text_add(text, "  %d pairs of hypotheses were not tried, as that would take too long for rows of this length\n",
                 d->untried);
    }
    if (d->verdict == VERDICT_EQUAL) {
        return;
    }
    if (named) {
        add_advice(text, call, best);
        beside.name = best->hypotheses[1] ? "hypotheses" : best->hypotheses[0]->name;
        beside.variant = &best->variant;
    }
    if (d->first_place > 1) {
        text_add(text, "  The same bits come from");
        for (int i = 1; i < d->first_place; i++) {
            text_add(text, "%s ", i > 1 ? "," : "");
            add_names(text, &d->findings[i]);
        }
        text_add(text, ": inputs of npuquant hard-inputs tell them apart.\n");
    }
    if (d->count > 0) {
        add_table(text, d);
    }
    text_add(text, "\n");
    explain_place(text, call, d->shown);
    text_add(text, ", step by step:\n");
    explain_text(text, call, d->shown, &beside);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void add_json_finding(struct text *text, const struct finding *finding)
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
    text_add(text, "], \"explained\": %zu, \"unexplained\": %zu, \"newly_wrong\": %zu}", finding->explained,
             finding->unexplained, finding->newly_wrong);
}

void diagnosis_report_json(struct text *text, const struct call *call, const struct array theirs[RESULTS],
                           const struct diagnosis *d)
{
    static const char *const names[RESULTS] = {"y", "scale", "offset"};
    const struct finding *best = &d->findings[0];
    const bool named = d->verdict == VERDICT_EXPLAINED || d->verdict == VERDICT_PARTLY;
    struct beside beside = {.theirs = &theirs[d->shown.result]};
    const char *separator = "";

    text_add(text, "{\"verdict\": \"%s\", \"results\": [", verdict_names[d->verdict]);
    for (int r = 0; r < RESULTS; r++) {
        if (theirs[r].data) {
            text_add(text, "%s{\"name\": \"%s\", \"elements\": %zu, \"differing\": %zu}", separator, names[r],
                     d->compared[r], d->differing[r]);
            separator = ", ";
        }
    }
    text_add(text, "], \"first_place\": %d, \"untried_pairs\": %d, \"findings\": [", d->first_place, d->untried);
    for (int i = 0; i < d->count; i++) {
        text_add(text, "%s", i > 0 ? ", " : "");
        add_json_finding(text, &d->findings[i]);
    }
    text_add(text, "]");
    if (d->verdict != VERDICT_EQUAL) {
        if (named) {
            beside.name = best->hypotheses[0]->name;
            beside.variant = &best->variant;
        }
        text_add(text, ", \"element\": ");
        explain_json(text, call, d->shown, &beside);
    }
    text_add(text, "}\n");
}
