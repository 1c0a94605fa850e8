/* SPDX-License-Identifier: BSD-3-Clause */
#include "nearest.h"

#include <string.h>

enum { MOST_LETTERS = 40 };

/* torch_npu's names have underscores: not a mistake. */
static char letter(char c)
{
    if (c == '_') {
        return '-';
    }
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The least number of letters to insert, delete, replace or exchange with a neighbour. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[MOST_LETTERS + 1][MOST_LETTERS + 1];

    for (size_t i = 0; i <= a_length; i++) {
        for (size_t j = 0; j <= b_length; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            const char from = letter(a[i - 1]);
            const char to = letter(b[j - 1]);
            rows[i][j] = least(rows[i - 1][j - 1] + (from != to), least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && from == letter(b[j - 2]) && letter(a[i - 2]) == to) {
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
            }
        }
    }
    return rows[a_length][b_length];
}

void nearest_consider(struct nearest *nearest, const char *word, size_t length, const char *name)
{
    const size_t name_length = strlen(name);

    if (length == 0 || length > MOST_LETTERS || name_length > MOST_LETTERS) {
        return;
    }
    const size_t most = (name_length + 1) / 3;
    size_t distance = edit_distance(word, length, name, name_length);
    /* The beginning of a name is near, however much is missing; but a letter alone begins too many. */
    if (length > 1 && length < name_length && edit_distance(word, length, name, length) == 0) {
        distance = 1;
    }
    if (distance <= most && (!nearest->name || distance < nearest->distance)) {
        nearest->name = name;
        nearest->distance = distance;
    }
}
