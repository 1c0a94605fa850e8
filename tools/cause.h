/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a result is what it is: diagnose and explain. */
#ifndef NPUQUANT_CAUSE_H
#define NPUQUANT_CAUSE_H

#include "operators.h"
#include "run.h"

#include <stdio.h>

struct cause {
    const struct operator_command *command;
    const struct operands *operands;          /* after the call */
    const npuq_tensor *expected[MAX_OUTPUTS]; /* what they are compared with; null where there is nothing */
    int threads;
    FILE *stream;
};

/* Compares the outputs with what is expected, and says which mistake explains the differences. With --quiet nothing is
 * printed if there are none. */
enum exit_status cause_diagnose(const struct cause *cause);

/* Of outputs that differ from what is expected: says how much of that the device's division may make. With --admissible
 * the status is that of a dump within the device's division, or not. */
enum exit_status cause_admission(const struct cause *cause);

/* Shows the steps of the elements that --at names. */
enum exit_status cause_explain(const struct cause *cause);

#endif
