/* SPDX-License-Identifier: BSD-3-Clause */
/* hard-inputs: inputs that show which mistakes a kernel makes. */
#ifndef NPUQUANT_HARD_H
#define NPUQUANT_HARD_H

#include "operators.h"
#include "run.h"

/* Makes inputs of the operator and writes them with their manifest. With --run, runs the command and diagnoses its
 * results. Reports errors. */
enum exit_status hard_run(const struct operator_command *command, const struct arguments *arguments);

#endif
