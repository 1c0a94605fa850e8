/* SPDX-License-Identifier: BSD-3-Clause */
/* Which mistakes hard inputs show, as text and as JSON. */
#ifndef NPUQUANT_HARD_INPUTS_REPORT_H
#define NPUQUANT_HARD_INPUTS_REPORT_H

#include "text.h"

#include <hard_inputs.h>

/* The number of mistakes that show, and a line for each that does not, or that gives the same results as another. */
void hard_inputs_report_text(struct text *text, const struct hard_inputs *inputs);

/* A JSON array with an object for each mistake: its name, the number of elements that it changes, and the first mistake
 * with the same results, or null. */
void hard_inputs_report_json(struct text *text, const struct hard_inputs *inputs);

#endif
