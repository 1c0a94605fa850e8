/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_RUN_H
#define NPUQUANT_RUN_H

#include "operators.h"

enum exit_status {
    EXIT_EQUAL = 0, /* or nothing to compare */
    EXIT_DIFFERENT = 1,
    EXIT_ERROR = 2,
};

/* One run of the tool: loads, calls, then compares or (FOR_DIAGNOSE, FOR_EXPLAIN) looks for the cause, and writes.
 * Reports errors; then no output has been written, except where staged_files_commit() cannot take a file back. */
enum exit_status run_operator(const struct operator_command *command, const struct arguments *arguments, unsigned mode);

enum exit_status run_comparison(const struct arguments *arguments);

#endif
