/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_REPORT_H
#define NPUQUANT_REPORT_H

#include <stdbool.h>

/* Prints "npuquant: ..." on stderr, always as one line, and returns false. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
bool report_error(const char *format, ...);

/* Whether stdout has taken all that was printed. Reports an error if not. */
bool report_stdout(void);

#endif
