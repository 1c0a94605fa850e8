/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_RUN_H
#define NPUQUANT_RUN_H

#include "operators.h"

enum exit_status {
    EXIT_EQUAL = 0, /* or there was nothing to compare */
    EXIT_DIFFERENT = 1,
    EXIT_ERROR = 2,
};

/* One run of the tool: loads, calls, compares or, as the mode says (FOR_DIAGNOSE, FOR_EXPLAIN or 0), looks for the
 * cause, writes. Reports what goes wrong; then no output has been written, but for what staged_files_commit() cannot
 * take back. */
enum exit_status run_operator(const struct operator_command *command, const struct arguments *arguments, unsigned mode);

/* Compares the two files that the arguments of FOR_COMPARE name. */
enum exit_status run_comparison(const struct arguments *arguments);

#endif
