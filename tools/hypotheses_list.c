/* SPDX-License-Identifier: BSD-3-Clause */
#include "hypotheses_list.h"

#include "report.h"
#include "text.h"

#include <hypotheses.h>

#include <stdio.h>
#include <string.h>

/* Whether two entries of the table have the same words for users. */
static bool same_words(const struct hypothesis *a, const struct hypothesis *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->what, b->what) == 0 && strcmp(a->advice, b->advice) == 0;
}

/* The operators of all entries with the words of entry h; 0 if an earlier entry has the same words. */
static unsigned joined_operators(int h)
{
    unsigned joined = 0;

    for (int i = 0; i < hypothesis_count; i++) {
        if (same_words(&hypotheses[i], &hypotheses[h])) {
            if (i < h) {
                return 0;
            }
            joined |= hypotheses[i].operators;
        }
    }
    return joined;
}

enum { OPERATORS_COLUMN = 13 };

static void add_text(struct text *text, const struct hypothesis *hypothesis, unsigned joined)
{
    const char *separator = "";

    text_add_wrapped(text, TEXT_WIDTH, 0, "%s: the kernel %s.", hypothesis->name, hypothesis->what);
    text_add(text, "\n");
    text_add_wrapped(text, TEXT_WIDTH, 2, "%s", hypothesis->advice);
    text_add(text, "\n  operators:");
    for (int i = 0; i < COMMANDS; i++) {
        if (operators[i].op & joined) {
            text_add(text, "%s", separator);
            text_add_wrapped(text, TEXT_WIDTH, OPERATORS_COLUMN, "%s", operators[i].name);
            separator = ",";
        }
    }
    text_add(text, "\n");
}

static void add_json(struct text *text, const struct hypothesis *hypothesis, unsigned joined)
{
    const char *separator = "";

    text_add(text, "{\"name\": ");
    text_add_json(text, hypothesis->name);
    text_add(text, ", \"operators\": [");
    for (int i = 0; i < COMMANDS; i++) {
        if (operators[i].op & joined) {
            text_add(text, "%s\"%s\"", separator, operators[i].name);
            separator = ", ";
        }
    }
    text_add(text, "], \"what\": ");
    text_add_json(text, hypothesis->what);
    text_add(text, ", \"advice\": ");
    text_add_json(text, hypothesis->advice);
    text_add(text, "}");
}

bool list_hypotheses(const struct operator_command *command, bool json)
{
    struct text text = {0};
    const char *separator = json ? "[" : "";

    for (int h = 0; h < hypothesis_count; h++) {
        const unsigned joined = joined_operators(h);
        if (joined == 0 || (command && (command->op & joined) == 0)) {
            continue;
        }
        text_add(&text, "%s", separator);
        (json ? add_json : add_text)(&text, &hypotheses[h], joined);
        separator = json ? ",\n" : "\n";
    }
    text_add(&text, "%s", json ? "]\n" : "");
    const bool ok = !text.failed || report_error("out of memory");
    if (ok) {
        (void)fputs(text.characters, stdout);
    }
    text_release(&text);
    return ok;
}
