/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>

bool report_error(const char *format, ...)
{
    char line[10000]; /* two file names of any system's length */
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* File names may hold anything: a line feed would make two lines, an escape could overwrite others. */
    for (char *c = line; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == '\x7F') {
            *c = '?';
        }
    }
    (void)fprintf(stderr, "npuquant: %s\n", line);
    return false;
}

bool report_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return true;
    }
    clearerr(stdout);
    return report_error("cannot write to stdout");
}
