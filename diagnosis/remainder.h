/* SPDX-License-Identifier: BSD-3-Clause */
/* The unexplained rest of a dump: its places, its size, and values that would fit. */
#ifndef NPUQUANT_REMAINDER_H
#define NPUQUANT_REMAINDER_H

#include "predict.h"

enum { LISTED = 4, COMMONEST = 3 };

/* Some of the rows, or of the columns: which they are. */
struct lines {
    size_t of; /* how many there are in all */
    size_t count;
    size_t listed[LISTED]; /* the first */
    size_t last;
    size_t step;   /* from each to the next; 0 if that is not always the same */
    size_t period; /* without a step: each is `from` to `to` more than a multiple of it; 0 if there is none */
    size_t from;
    size_t to;
};

/* A difference, in steps of the type, and how many elements have it. */
struct common {
    int64_t steps;
    size_t count;
};

/* A line that seems to give the dump: the right values times the factor, plus the addend. */
struct fit {
    bool found;
    double factor;
    double addend;
    size_t of;     /* elements visited: integers that do not saturate, or floats that differ */
    size_t given;  /* by the fit */
    size_t before; /* integers: without it */
};

/* What differs in one result. */
struct rest {
    size_t elements;
    struct lines rows;
    struct lines columns;            /* of scales: the blocks of a row */
    size_t looked_at;                /* to find common differences: all elements, unless there are very many */
    struct common common[COMMONEST]; /* the commonest first; those of no element end them */
    struct fit fit;
};

/* Where y differs, as tiles of a matrix. */
enum { TILE = 16 };
struct tiles {
    size_t count; /* 0 if tiles say no more than rows and columns */
    size_t of;
    size_t row; /* of the first one */
    size_t column;
};

/* Where the scales of the dump come from. */
struct source {
    bool has_element; /* the first scale that differs is that of one other element */
    bool is_low;      /* this element stands for lo, not for hi */
    size_t token;
    size_t element;
    struct span columns; /* these columns alone give all scales; empty if there are none */
    int distance;        /* each differing scale is that of the row this many rows further; 0 if not */
};

/* Offsets with which the library would give the dump, if the call has no offset. */
struct missing_offset {
    size_t count; /* one, or one for each channel; 0 if none would */
    float values[LISTED];
};

struct remainder {
    struct rest of[RESULTS];
    struct tiles tiles;
    struct source source;
    struct missing_offset offset;
};

/* Describes how theirs differs from expected, the results of the variant. Data is null if a result is not compared.
 * False if there is not the memory. */
bool remainder_find(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
                    const struct array expected[RESULTS], const struct array theirs[RESULTS],
                    struct remainder *remainder);

#endif
