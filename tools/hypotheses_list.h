/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of known mistakes, for users. */
#ifndef NPUQUANT_HYPOTHESES_LIST_H
#define NPUQUANT_HYPOTHESES_LIST_H

#include "operators.h"

/* Prints the mistakes that are possible in an operator, or all if command is null. Reports errors and returns false. */
bool list_hypotheses(const struct operator_command *command, bool json);

#endif
