/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_REPORT_H
#define NPUQUANT_REPORT_H

#include <stdbool.h>

/* Prints "npuquant: ..." on stderr, as one line whatever the arguments hold, and returns false. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
bool report_error(const char *format, ...);

/* Whether all that was printed on stdout has been taken. Reports it, and returns false, if not. */
bool report_stdout(void);

#endif
