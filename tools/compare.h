/* SPDX-License-Identifier: BSD-3-Clause */
/* A result of npuquant against a file: how far apart the two are, and where. */
#ifndef NPUQUANT_COMPARE_H
#define NPUQUANT_COMPARE_H

#include <npuquant/npuquant.h>

#include <stdio.h>

/* What is compared: shapes and types are those that compare_possible() accepts. */
struct pair {
    const npuq_tensor *ours;   /* npuquant's result, or the first of two files; any view */
    const npuq_tensor *theirs; /* the file's content, any view */
    int64_t tolerance;         /* how many steps the two may be apart */
    bool is_parameter;         /* a scale or an offset: each element belongs to one row of x, and elements are compared
                                * as values, -0 equal to 0 and NaN to NaN */
    const char *our_name;      /* in the report */
    const char *their_name;
};

/* Whether the two can be compared: same shape and type. Where only the bits matter types may differ: int64 goes with
 * uint64, and int32 is how quint4x2 words are stored. */
bool compare_possible(const npuq_tensor *ours, const npuq_tensor *theirs);

/* What the elements of theirs are: as ours, of which a file may not tell the type, but int8 and uint8 stay what they
 * are. */
npuq_dtype compare_their_dtype(const struct pair *pair);

/* Gives theirs the shape of ours, if the two have the same extents but for those of 1, or if theirs has one dimension
 * but for those, of as many elements. */
void compare_take_shape(const npuq_tensor *ours, npuq_tensor *theirs);

/* ---- single differences ---------------------------------------------------------------------------------------- */

struct difference {
    int64_t index[NPUQ_MAX_NDIM]; /* of quint4x2: of the int4 value, not the word */
    int64_t row;                  /* all dimensions but the last as one; of parameters all of them */
    uint64_t ours;                /* the bits */
    uint64_t theirs;
    int64_t steps; /* theirs - ours: in ulps for floats, 0 for words of 64 bits */
    bool infinite; /* one of them is NaN or an infinity, and steps says nothing */
    bool zeros;    /* both are zeros, of different signs */
};

typedef bool visit_difference(void *context, const struct difference *difference);

/* Shows every difference to visit, in order, until it returns false. Elements differ if their bits do; but parameters
 * are taken as values, of which -0 equals 0, and NaN equals NaN. */
void compare_walk(const struct pair *pair, visit_difference *visit, void *context);

/* Whether it is within the tolerance, and so only counted. */
bool compare_is_tolerated(const struct pair *pair, const struct difference *difference);

/* ---- the summary ----------------------------------------------------------------------------------------------- */

/* The parts of a word of trans_quant_param. */
enum field { FIELD_SCALE, FIELD_OFFSET, FIELD_OTHER, FIELDS };

/* Some of the differences, and the least and the greatest of their steps. */
struct spread {
    size_t count;
    int64_t least;
    int64_t most;
};

/* Which indices of a dimension have differences. */
struct hits {
    int64_t extent;
    int64_t count;
    unsigned char *set; /* a bit for each index */
};

/* Steps are below 2^32: those from 2^i on and below 2^(i+1) are together in spread i. */
enum { COMPARE_SPREADS = 32 };

struct comparison {
    size_t elements;         /* of quint4x2: int4 values, not words */
    size_t differ;           /* beyond the tolerance; the rest is about these */
    struct spread tolerated; /* different, and within the tolerance */
    size_t infinite;
    size_t zeros;
    struct spread below[COMPARE_SPREADS]; /* theirs is less than ours */
    struct spread above[COMPARE_SPREADS];
    size_t fields[FIELDS]; /* of words: how many differ in each field */
    struct hits rows;
    struct hits columns;
    int dimensions; /* how many the rows are made of, if more than one */
    struct hits dimension[NPUQ_MAX_NDIM];
    uint64_t surplus; /* the hashes of our values minus those of theirs: 0 if both have the same, in whatever order */
};

/* False if there is not the memory; released by compare_release() in any case. */
bool compare_tensors(const struct pair *pair, struct comparison *comparison);
void compare_release(struct comparison *comparison);

/* Joins a second spread to the first. */
void compare_join(struct spread *spread, const struct spread *other);

/* ---- the report ------------------------------------------------------------------------------------------------ */

/* Prints the summary, the conclusion first, and at most so many single differences. */
void compare_print(FILE *stream, const char *name, const struct pair *pair, const struct comparison *comparison,
                   int64_t max_diffs);

/* Prints what two dumps that differ may have been made by: a line for each of the ways that fit. */
void compare_print_remarks(FILE *stream, const struct pair *pair, const struct comparison *comparison);

#endif
