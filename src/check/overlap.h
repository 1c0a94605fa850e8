/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether strided views share memory: exact, by a search of bounded work. */
#ifndef NPUQ_OVERLAP_H
#define NPUQ_OVERLAP_H

#include <npuquant/npuquant.h>

typedef enum npuq_overlap {
    NPUQ_OVERLAP_NONE,
    NPUQ_OVERLAP_FOUND,
    NPUQ_OVERLAP_UNKNOWN /* the search gave up; only layouts that nobody uses are so irregular */
} npuq_overlap;

/* Addresses of the first and the last byte of a view, and the bytes of an element. */
typedef struct npuq_span {
    uintptr_t first;
    uintptr_t last;
    size_t element;
} npuq_span;

/* Spans that do not meet are the common case, and need no search. */
static inline bool npuq_spans_meet(const npuq_span *a, const npuq_span *b)
{
    return a->last >= b->first && b->last >= a->first;
}

/* Both take views that are not empty, whose span was found without overflow; the spans of two views meet. */
npuq_overlap npuq_overlaps_itself(const npuq_tensor *tensor);
npuq_overlap npuq_overlaps(const npuq_tensor *a, const npuq_span *a_span, const npuq_tensor *b,
                           const npuq_span *b_span);

#endif
