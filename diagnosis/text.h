/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that grows. */
#ifndef NPUQUANT_TEXT_H
#define NPUQUANT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __GNUC__
#define TEXT_FORMAT __attribute__((format(printf, 2, 3)))
#else
#define TEXT_FORMAT
#endif

/* All zeros is an empty one. */
struct text {
    char *characters; /* ends with a null character; null while there are none */
    size_t length;
    size_t room;
    bool failed; /* there was not the memory: what came later is missing */
};

void text_add(struct text *text, const char *format, ...) TEXT_FORMAT;

/* Adds a string of JSON, with its quotes. */
void text_add_json(struct text *text, const char *string);

/* Spaces up to a column, counted from the beginning of the line; one at least. */
void text_pad(struct text *text, size_t column);

void text_release(struct text *text);

#endif
