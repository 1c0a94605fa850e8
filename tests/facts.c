/* SPDX-License-Identifier: BSD-3-Clause */
#include "facts.h"

#include <hypotheses.h>
#include <layouts.h>

#include <string.h>

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static void add(uint64_t *sum, uint64_t number)
{
    *sum = (*sum ^ number) * 0x100000001B3U;
    *sum ^= *sum >> 29;
}

static void add_all(uint64_t *sum, const size_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(sum, numbers[i]);
    }
}

static void add_double(uint64_t *sum, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    add(sum, is_nan(number) ? 1 : bits);
}

static void add_string(uint64_t *sum, const char *string)
{
    for (; string && *string; string++) {
        add(sum, (unsigned char)*string);
    }
}

/* The place of an element in its result. */
static void add_place(uint64_t *sum, const struct call *call, struct element element)
{
    size_t index[NPUQ_MAX_NDIM];

    add_all(sum, index, (size_t)explain_index(call, element, index));
}

uint64_t facts_of_element(const struct call *call, const struct variant *variant, struct element element)
{
    const struct steps steps = explain_steps(call, variant, element);
    uint64_t sum = steps.bits;

    add_place(&sum, call, element);
    for (int i = 0; i < steps.trace.count; i++) {
        const struct trace_line *line = &steps.trace.lines[i];
        add_string(&sum, line->step);
        add_double(&sum, line->value);
        if (line->kind == TRACE_PLACE) {
            add_place(&sum, call, (struct element){RESULT_Y, (size_t)line->value});
        }
    }
    return sum;
}

static void add_finding(uint64_t *sum, const struct call *call, const struct finding *finding)
{
    const struct found_layout layout = layout_describe(call, &finding->variant);
    const struct part *part = &finding->part;
    const size_t numbers[] = {finding->explained, finding->unexplained, finding->newly_wrong,
                              part->kind,         part->begin,          part->end,
                              part->of,           layout.moved};

    add_all(sum, numbers, COUNT(numbers));
    for (int i = 0; i < 2 && finding->hypotheses[i]; i++) {
        add_string(sum, finding->hypotheses[i]->name);
        add_string(sum, finding->hypotheses[i]->what);
        add_string(sum, finding->hypotheses[i]->advice);
    }
    if (layout.has_fill) {
        add_string(sum, layout.unit);
        add_all(sum, (const size_t[]){layout.of, layout.multiple_of, finding->variant.layout.from}, 3);
    } else if (layout.moved > 0) {
        add_all(sum, (const size_t[]){layout.first, finding->variant.layout.row_of[layout.first]}, 2);
    }
}

uint64_t facts_of_diagnosis(const struct call *call, const struct array theirs[RESULTS], const struct diagnosis *d)
{
    static const struct variant definition;
    const struct admission *a = &d->admission;
    const size_t numbers[] = {d->verdict,         d->all_differing, (size_t)d->count,  (size_t)d->first_place,
                              (size_t)d->untried, a->divides,       a->units,          a->differing,
                              a->wrong,           a->moves.made,    a->moves.possible, a->exact.made,
                              a->exact.possible,  a->too_many};
    uint64_t sum = 0;

    add_all(&sum, numbers, COUNT(numbers));
    add_all(&sum, d->compared, RESULTS);
    add_all(&sum, d->differing, RESULTS);
    for (int i = 0; i < d->count; i++) {
        add_finding(&sum, call, &d->findings[i]);
    }
    if (d->verdict != VERDICT_EQUAL) {
        add(&sum, facts_of_element(call, &definition, d->shown));
        add(&sum, facts_of_element(call, diagnosis_is_named(d) ? &d->findings[0].variant : &d->moved, d->shown));
        add(&sum, array_bits(&theirs[d->shown.result], d->shown.index));
    }
    return sum;
}
