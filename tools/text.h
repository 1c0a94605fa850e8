/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that grows. */
#ifndef NPUQUANT_TEXT_H
#define NPUQUANT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __GNUC__
#define TEXT_FORMAT(at, first) __attribute__((format(printf, at, first)))
#else
#define TEXT_FORMAT(at, first)
#endif

enum { TEXT_WIDTH = 100 }; /* of the lines of a report */

/* All zeros is an empty one. */
struct text {
    char *characters; /* ends with a null character; null while there are none */
    size_t length;
    size_t room;
    bool failed; /* there was not the memory: what came later is missing */
};

void text_add(struct text *text, const char *format, ...) TEXT_FORMAT(2, 3);

/* Adds a string of JSON, with its quotes. */
void text_add_json(struct text *text, const char *string);

/* Spaces up to a column, counted from the beginning of the line; one at least. */
void text_pad(struct text *text, size_t column);

/* Adds words, broken into lines of at most width characters. New lines begin with spaces up to the indent. Earlier text
 * on the present line stays. */
void text_add_wrapped(struct text *text, size_t width, size_t indent, const char *format, ...) TEXT_FORMAT(4, 5);

void text_release(struct text *text);

#endif
