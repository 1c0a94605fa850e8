/* SPDX-License-Identifier: BSD-3-Clause */
#include "status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* newlib has no thread-local storage: a program would not link, or would use an address that nobody has set. */
#if defined(__NEWLIB__) && !defined(__PICOLIBC__) && !defined(__unix__)
#undef _Thread_local
#define _Thread_local
#endif

/* Not initial-exec: musl's dlopen() would refuse the library, and glibc's the seventh such library. So glibc may
 * allocate the buffer at a thread's first failure: docs/threads.md. */
static _Thread_local char last_error[256];

typedef struct line {
    char *text; /* last_error */
    size_t length;
} line;

/* What does not fit is cut. */
static void put(line *l, char c)
{
    if (l->length < sizeof last_error - 1) {
        l->text[l->length++] = c;
    }
}

static void put_string(line *l, const char *text)
{
    for (; *text; text++) {
        put(l, *text);
    }
}

static void put_number(line *l, unsigned long long n, unsigned base)
{
    char digits[21] = ""; /* 2^64 - 1 in decimal, and a 0 */
    char *first = digits + sizeof digits - 1;

    do {
        *--first = "0123456789ABCDEF"[n % base];
        n /= base;
    } while (n != 0);
    put_string(l, first);
}

static void put_signed(line *l, long long n)
{
    if (n < 0) {
        put(l, '-');
    }
    put_number(l, n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n, 10);
}

/* Not by vsnprintf(): that of newlib-nano does not know %lld, and then gives its argument to the next conversion. */
npuq_status npuq_fail(npuq_status status, const char *op, const char *argument, const char *format, ...)
{
    line l = {last_error, 0};
    char real[16];
    va_list arguments;

    put_string(&l, op);
    put_string(&l, ": ");
    put_string(&l, argument);
    put_string(&l, ": ");
    va_start(arguments, format);
    for (; *format; format++) {
        if (*format != '%') {
            put(&l, *format);
            continue;
        }
        switch (*++format) {
        case 's': put_string(&l, va_arg(arguments, const char *)); break;
        case 'd': put_signed(&l, va_arg(arguments, int)); break;
        case 'u': put_number(&l, va_arg(arguments, unsigned), 10); break;
        case 'g':
            (void)snprintf(real, sizeof real, "%g", va_arg(arguments, double));
            put_string(&l, real);
            break;
        default:
            assert(strncmp(format, "lld", 3) == 0 || strncmp(format, "llX", 3) == 0);
            format += 2;
            if (*format == 'd') {
                put_signed(&l, va_arg(arguments, long long));
            } else {
                put_number(&l, va_arg(arguments, unsigned long long), 16);
            }
        }
    }
    va_end(arguments);
    l.text[l.length] = '\0';
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
