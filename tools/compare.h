/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares a result of npuquant with a file: how far apart the two are, and where. */
#ifndef NPUQUANT_COMPARE_H
#define NPUQUANT_COMPARE_H

#include <npuquant/npuquant.h>

#include <stdio.h>

/* A pair that compare_possible() accepts. */
struct pair {
    const npuq_tensor *ours;   /* npuquant's result, or the first of two files; any view */
    const npuq_tensor *theirs; /* the file's content, any view */
    int64_t tolerance;         /* steps that the two may be apart */
    bool is_parameter;    /* a scale or an offset: an element for each row of x, compared as values: -0 equals 0, and
                           * NaN equals NaN */
    const char *our_name; /* in the report */
    const char *their_name;
};

/* Whether the two have the same shape and type. Types may differ where only the bits matter: int64 goes with uint64,
 * and int32 stores quint4x2 words. */
bool compare_possible(const npuq_tensor *ours, const npuq_tensor *theirs);

/* The type of the elements of theirs: the type of ours, since a file may not tell. int8 and uint8 stay. */
npuq_dtype compare_their_dtype(const struct pair *pair);

/* Gives theirs the shape of ours, if the two differ only in extents of 1, or if theirs has one other dimension with as
 * many elements. */
void compare_take_shape(const npuq_tensor *ours, npuq_tensor *theirs);

/* ---- single differences ---------------------------------------------------------------------------------------- */

struct difference {
    int64_t index[NPUQ_MAX_NDIM]; /* of quint4x2: of the int4 value, not the word */
    int64_t row;                  /* all dimensions except the last as one; of parameters all dimensions */
    uint64_t ours;                /* the bits */
    uint64_t theirs;
    int64_t steps; /* theirs - ours: in ulps for floats, 0 for 64-bit words */
    bool infinite; /* one is NaN or an infinity: steps means nothing */
    bool zeros;    /* both are zeros of different signs */
};

typedef bool visit_difference(void *context, const struct difference *difference);

/* Calls visit for each difference, in order, until visit returns false. Elements differ if their bits differ;
 * parameters are compared as values. */
void compare_walk(const struct pair *pair, visit_difference *visit, void *context);

/* Whether the difference is within the tolerance, and so only counted. */
bool compare_is_tolerated(const struct pair *pair, const struct difference *difference);

/* ---- the summary ----------------------------------------------------------------------------------------------- */

/* The parts of a word of trans_quant_param. */
enum field { FIELD_SCALE, FIELD_OFFSET, FIELD_OTHER, FIELDS };

/* Some of the differences: their least and greatest steps. */
struct spread {
    size_t count;
    int64_t least;
    int64_t most;
};

/* The indices of a dimension with differences. */
struct hits {
    int64_t extent;
    int64_t count;
    unsigned char *set; /* a bit for each index */
};

/* Spread i has the steps from 2^i to 2^(i+1) - 1; all steps are below 2^32. */
enum { COMPARE_SPREADS = 32 };

struct comparison {
    size_t elements;         /* of quint4x2: int4 values, not words */
    size_t differ;           /* beyond the tolerance, as all below except tolerated */
    struct spread tolerated; /* within the tolerance */
    size_t infinite;
    size_t zeros;
    struct spread below[COMPARE_SPREADS]; /* theirs is less than ours */
    struct spread above[COMPARE_SPREADS];
    size_t fields[FIELDS]; /* of words: differences in each field */
    struct hits rows;
    struct hits columns;
    int dimensions; /* the number of dimensions that form the rows, if more than one */
    struct hits dimension[NPUQ_MAX_NDIM];
    uint64_t surplus; /* the hashes of our values minus theirs: 0 if both have the same values in any order */
};

/* False without memory. Call compare_release() in any case. */
bool compare_tensors(const struct pair *pair, struct comparison *comparison);
void compare_release(struct comparison *comparison);

void compare_join(struct spread *spread, const struct spread *other);

/* ---- the report ------------------------------------------------------------------------------------------------ */

/* Prints the summary, the conclusion first, and at most max_diffs single differences. */
void compare_print(FILE *stream, const char *name, const struct pair *pair, const struct comparison *comparison,
                   int64_t max_diffs);

/* Prints how two different dumps may be related: a line for each way that fits. */
void compare_print_remarks(FILE *stream, const struct pair *pair, const struct comparison *comparison);

#endif
