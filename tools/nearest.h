/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the name that a misspelt word probably means. */
#ifndef NPUQUANT_NEAREST_H
#define NPUQUANT_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *name; /* the nearest name so far; null if none is near */
    size_t distance;
};

/* Considers a name for a word of `length` characters. Of equally near names, the first stays. */
void nearest_consider(struct nearest *nearest, const char *word, size_t length, const char *name);

#endif
