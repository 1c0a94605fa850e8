/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of known mistakes, for users. */
#ifndef NPUQUANT_HYPOTHESES_LIST_H
#define NPUQUANT_HYPOTHESES_LIST_H

#include "operators.h"

/* Prints the mistakes that are possible in an operator, or all of them if command is null. Reports what goes wrong and
 * returns false on failure. */
bool list_hypotheses(const struct operator_command *command, bool json);

#endif
