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
    const npuq_tensor *expected[MAX_OUTPUTS]; /* to compare with; null where nothing is given */
    int threads;
    FILE *stream;
};

/* Compares the outputs with the expected results, and prints the mistake that explains the differences. With --quiet,
 * equal outputs print nothing. */
enum exit_status cause_diagnose(const struct cause *cause);

/* Prints how many of the differences the device's division may make. With --admissible, the status tells whether the
 * division may make all of them. */
enum exit_status cause_admission(const struct cause *cause);

/* Prints the steps of the elements that --at names. */
enum exit_status cause_explain(const struct cause *cause);

#endif
