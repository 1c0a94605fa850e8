/* SPDX-License-Identifier: BSD-3-Clause */
/* What the executor examples share, and what a new executor may be tried with. */
#ifndef EXECUTOR_CHECK_H
#define EXECUTOR_CHECK_H

#include <npuquant/npuquant.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the executor runs each index exactly once, and whether operators give with it, bit for bit, what they give
 * without. Says so on stdout, and returns the exit status of a program: 0, or 1 if something is wrong. */
int executor_check(const char *name, const npuq_executor *executor);

#ifdef __cplusplus
}
#endif

#endif
