/* SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_list(struct text *text, const char *format, va_list arguments)
{
    va_list again;

    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (text->failed || length < 0) {
        text->failed = true;
        return;
    }
    const size_t needed = text->length + (size_t)length + 1;
    if (needed > text->room) {
        char *grown = realloc(text->characters, 2 * needed);
        if (!grown) {
            text->failed = true;
            return;
        }
        text->characters = grown;
        text->room = 2 * needed;
    }
    (void)vsnprintf(text->characters + text->length, (size_t)length + 1, format, arguments);
    text->length += (size_t)length;
}

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_list(text, format, arguments);
    va_end(arguments);
}

void text_add_json(struct text *text, const char *string)
{
    text_add(text, "\"");
    for (; *string != '\0'; string++) {
        const unsigned char c = (unsigned char)*string;
        if (c == '"' || c == '\\') {
            text_add(text, "\\%c", c);
        } else if (c < ' ') {
            text_add(text, "\\u%04x", c);
        } else {
            text_add(text, "%c", c);
        }
    }
    text_add(text, "\"");
}

/* How many characters there are since the beginning of the line. */
static size_t column_of(const struct text *text)
{
    size_t begin = text->length;

    while (begin > 0 && text->characters[begin - 1] != '\n') {
        begin--;
    }
    return text->length - begin;
}

void text_pad(struct text *text, size_t column)
{
    const size_t at = column_of(text);

    text_add(text, "%*s", at < column ? (int)(column - at) : 1, "");
}

void text_add_wrapped(struct text *text, size_t width, size_t indent, const char *format, ...)
{
    struct text line = {0};
    va_list arguments;

    va_start(arguments, format);
    add_list(&line, format, arguments);
    va_end(arguments);
    text->failed = text->failed || line.failed;
    for (const char *word = line.failed ? "" : line.characters; *word != '\0';) {
        const size_t length = strcspn(word, " ");
        const size_t column = column_of(text);
        if (column > indent && column + 1 + length > width) {
            text_add(text, "\n%*s", (int)indent, "");
        } else if (column > indent) {
            text_add(text, " ");
        } else {
            text_add(text, "%*s", (int)(indent - column), "");
        }
        text_add(text, "%.*s", (int)length, word);
        word += length;
        word += *word == ' ';
    }
    text_release(&line);
}

void text_release(struct text *text)
{
    free(text->characters);
    *text = (struct text){0};
}
