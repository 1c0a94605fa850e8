/* SPDX-License-Identifier: BSD-3-Clause */
/* What a description of the unexplained rest of a dump needs of the steps of the operator; _remainder.py makes it. */
#ifndef NPUQUANT_REMAINDER_H
#define NPUQUANT_REMAINDER_H

#include "predict.h"

/* An element of y, and its value before rounding. */
struct point {
    size_t at;
    double unrounded;
};

/* Where the scales of the dump come from. */
struct source {
    bool has_element; /* the first scale that differs is that of one other element */
    bool is_low;      /* this element stands for lo, not for hi */
    size_t token;
    size_t element;
    struct span columns; /* these columns alone give all scales; empty if there are none */
};

struct remainder {
    struct array expected[RESULTS]; /* what the finding that is named gives; the dump's value where that is excused;
                                     * data is null if nothing is named: then these are the library's results */
    struct point *points;           /* of an integer y; null if it does not differ */
    size_t point_count;
    struct source source;
};

/* Tries how theirs might come from expected, the results of the variant. Data is null if a result is not compared.
 * False if there is not the memory. */
bool remainder_find(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
                    const struct array expected[RESULTS], const struct array theirs[RESULTS],
                    struct remainder *remainder);
void remainder_release(struct remainder *remainder);

#endif
