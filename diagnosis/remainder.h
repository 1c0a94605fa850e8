/* SPDX-License-Identifier: BSD-3-Clause */
/* What is left of a dump where nothing explains it: its places, its size, and what would fit. */
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
    size_t period; /* without a step: each is from `from` to `to` more than a multiple of it; 0 if that tells nothing */
    size_t from;
    size_t to;
};

/* A difference, in steps of the type, and how many elements have it. */
struct common {
    int64_t steps;
    size_t count;
};

/* What the elements of the dump are made by, as it looks: the right values times the factor, plus the addend. */
struct fit {
    bool found;
    double factor;
    double addend;
    size_t of;     /* integers: those looked at that do not saturate; floats: those that differ */
    size_t given;  /* by the fit */
    size_t before; /* integers: without it */
};

/* What differs in one result. */
struct rest {
    size_t elements;
    struct lines rows;
    struct lines columns;            /* of scales: the blocks of a row */
    size_t looked_at;                /* for what is common: all, unless they are very many */
    struct common common[COMMONEST]; /* the commonest first; those of no element end them */
    struct fit fit;
};

/* Where y differs, as tiles of a matrix. */
enum { TILE = 16 };
struct tiles {
    size_t count; /* 0 if they say no more than rows and columns do */
    size_t of;
    size_t row; /* of the first one */
    size_t column;
};

/* Which values the scales of the dump come from. */
struct source {
    bool has_element; /* the first scale that differs is that of one other element */
    bool is_low;      /* which is in the place of lo, not of hi */
    size_t token;
    size_t element;
    struct span columns; /* all scales are those of these columns alone; none if that is not so */
    int distance;        /* each differing scale is that of so many rows further; 0 if that is not so */
};

/* Offsets that would make the library give the dump, where the call has none. */
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

/* Describes how theirs differs from expected: what a kernel with the named mistakes returns, or without any, as the
 * variant says. Data is null where a result is not compared. False if there is not the memory. */
bool remainder_find(const struct call *call, const struct variant *variant, struct extremes_cache *cache,
                    const struct array expected[RESULTS], const struct array theirs[RESULTS],
                    struct remainder *remainder);

#endif
