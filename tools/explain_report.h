/* SPDX-License-Identifier: BSD-3-Clause */
/* One element, step by step, as text and as JSON. */
#ifndef NPUQUANT_EXPLAIN_REPORT_H
#define NPUQUANT_EXPLAIN_REPORT_H

#include "text.h"

#include <explain.h>

/* Other values to show with the steps: those of a mistake, and the dump's. */
struct beside {
    const char *name; /* of the mistake; null if there is none */
    const struct variant *variant;
    const struct array *theirs; /* null if there is no dump */
};

/* "[0, 1]" */
void explain_indices(struct text *text, const struct call *call, struct element element);

/* "y[0, 1]" */
void explain_place(struct text *text, const struct call *call, struct element element);

/* The steps as lines of text. beside may be null. */
void explain_text(struct text *text, const struct call *call, struct element element, const struct beside *beside);

/* The same as a JSON object. */
void explain_json(struct text *text, const struct call *call, struct element element, const struct beside *beside);

#endif
