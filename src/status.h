/* SPDX-License-Identifier: BSD-3-Clause */
/* How a call fails: a status, and one line for npuq_last_error(). */
#ifndef NPUQ_STATUS_H
#define NPUQ_STATUS_H

#include <npuquant/npuquant.h>

/* Sets this thread's error line to "op: argument: ..." and returns status. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5), cold))
#endif
npuq_status
npuq_fail(npuq_status status, const char *op, const char *argument, const char *format, ...);

#endif
