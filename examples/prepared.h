/* SPDX-License-Identifier: BSD-3-Clause */
/* What the examples of prepared calls share: docs/threads.md. */
#ifndef PREPARED_H
#define PREPARED_H

#include <npuquant/npuquant.h>

/* Thread i of n does its share: neighbouring units, or none if there are fewer units than threads. */
static inline void run_share(const npuq_call *call, size_t i, size_t n)
{
    const size_t units = npuq_call_units(call);

    npuq_call_run(call, units * i / n, units * (i + 1) / n);
}

/* Whether run_all(), which runs all units of a call, gives bit for bit what the operators give: calls are prepared once
 * and run twice, on other data. Says so on stdout, and returns the exit status of a program: 0, or 1 if something is
 * wrong. */
int prepared_check(const char *name, void (*run_all)(const npuq_call *call));

#endif
