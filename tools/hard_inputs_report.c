/* SPDX-License-Identifier: BSD-3-Clause */
#include "hard_inputs_report.h"

#include <hypotheses.h>

static bool is_known_otherwise(const struct hard_inputs *inputs, int h)
{
    return inputs->changed[h] > 0 && inputs->same_as[h] != h;
}

void hard_inputs_report_text(struct text *text, const struct hard_inputs *inputs)
{
    int possible = 0;
    int shown = 0;

    for (int h = 0; h < hypothesis_count; h++) {
        possible += inputs->same_as[h] >= 0;
        shown += inputs->same_as[h] >= 0 && inputs->changed[h] > 0;
    }
    text_add(text, "%d of %d mistakes that are possible in this call change its results\n", shown, possible);
    for (int h = 0; h < hypothesis_count; h++) {
        if (inputs->same_as[h] >= 0 && inputs->changed[h] == 0) {
            text_add(text, "  %s changes nothing here\n", hypotheses[h].name);
        } else if (inputs->same_as[h] >= 0 && is_known_otherwise(inputs, h)) {
            text_add(text, "  %s gives the same results as %s\n", hypotheses[h].name,
                     hypotheses[inputs->same_as[h]].name);
        }
    }
}

void hard_inputs_report_json(struct text *text, const struct hard_inputs *inputs)
{
    const char *separator = "[\n";

    for (int h = 0; h < hypothesis_count; h++) {
        if (inputs->same_as[h] < 0) {
            continue;
        }
        text_add(text, "%s    {\"name\": \"%s\", \"elements\": %zu, \"same_as\": ", separator, hypotheses[h].name,
                 inputs->changed[h]);
        if (is_known_otherwise(inputs, h)) {
            text_add(text, "\"%s\"}", hypotheses[inputs->same_as[h]].name);
        } else {
            text_add(text, "null}");
        }
        separator = ",\n";
    }
    text_add(text, "%s", separator[0] == '[' ? "[]" : "\n  ]");
}
