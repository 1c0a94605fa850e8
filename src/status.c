/* SPDX-License-Identifier: BSD-3-Clause */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

/* Not initial-exec: musl's dlopen() would refuse the library, and glibc's the seventh such library. So glibc may
 * allocate the buffer at a thread's first failure: docs/threads.md. */
static _Thread_local char last_error[256];

npuq_status npuq_fail(npuq_status status, const char *op, const char *argument, const char *format, ...)
{
    va_list arguments;
    int used = snprintf(last_error, sizeof last_error, "%s: %s: ", op, argument);

    va_start(arguments, format);
    if (used >= 0 && (size_t)used < sizeof last_error) {
        (void)vsnprintf(last_error + used, sizeof last_error - (size_t)used, format, arguments);
    }
    va_end(arguments);
    return status;
}

const char *npuq_last_error(void)
{
    return last_error;
}

const char *npuq_status_name(npuq_status status)
{
    switch (status) {
    case NPUQ_OK: return "NPUQ_OK";
    case NPUQ_ERROR_NULL: return "NPUQ_ERROR_NULL";
    case NPUQ_ERROR_DTYPE: return "NPUQ_ERROR_DTYPE";
    case NPUQ_ERROR_SHAPE: return "NPUQ_ERROR_SHAPE";
    case NPUQ_ERROR_LAYOUT: return "NPUQ_ERROR_LAYOUT";
    case NPUQ_ERROR_AXIS: return "NPUQ_ERROR_AXIS";
    case NPUQ_ERROR_GROUP_INDEX: return "NPUQ_ERROR_GROUP_INDEX";
    case NPUQ_ERROR_ARGUMENT: return "NPUQ_ERROR_ARGUMENT";
    case NPUQ_ERROR_BACKEND: return "NPUQ_ERROR_BACKEND";
    }
    return "unknown status";
}

const char *npuq_version(void)
{
    return NPUQ_VERSION;
}
