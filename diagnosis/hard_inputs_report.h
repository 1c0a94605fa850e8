/* SPDX-License-Identifier: BSD-3-Clause */
/* Which mistakes hard inputs show, as text and as JSON. */
#ifndef NPUQUANT_HARD_INPUTS_REPORT_H
#define NPUQUANT_HARD_INPUTS_REPORT_H

#include "hard_inputs.h"
#include "text.h"

/* How many mistakes show, and a line for each that does not, or that gives the same results as another one. */
void hard_inputs_report_text(struct text *text, const struct hard_inputs *inputs);

/* A JSON array with an object for each mistake: its name, on how many elements it shows, and null or the name of the
 * first mistake that gives the same results. */
void hard_inputs_report_json(struct text *text, const struct hard_inputs *inputs);

#endif
