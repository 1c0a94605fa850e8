/* SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
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
    va_start(arguments, format);
    (void)vsnprintf(text->characters + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
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

void text_pad(struct text *text, size_t column)
{
    size_t begin = text->length;

    while (begin > 0 && text->characters[begin - 1] != '\n') {
        begin--;
    }
    const size_t at = text->length - begin;
    text_add(text, "%*s", at < column ? (int)(column - at) : 1, "");
}

void text_release(struct text *text)
{
    free(text->characters);
    *text = (struct text){0};
}
