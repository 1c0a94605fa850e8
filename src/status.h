/* SPDX-License-Identifier: BSD-3-Clause */
/* How a call fails: a status, and one line for npuq_last_error(). */
#ifndef NPUQ_STATUS_H
#define NPUQ_STATUS_H

#include <npuquant/npuquant.h>

#ifdef __GNUC__
#define NPUQ_FAILS __attribute__((format(printf, 4, 5), cold))
#else
#define NPUQ_FAILS
#endif

/* Sets this thread's error line to "op: argument: ..." and returns status. Of printf's conversions, format may have %s,
 * %d, %u, %lld, %llX and %g. */
NPUQ_FAILS npuq_status npuq_fail(npuq_status status, const char *op, const char *argument, const char *format, ...);

#endif
