/* SPDX-License-Identifier: BSD-3-Clause */
/* What explanations of a dump weigh, in bits: docs/verdicts.md has the rule. */
#ifndef NPUQUANT_WEIGHTS_H
#define NPUQUANT_WEIGHTS_H

#include "admissible.h"
#include "hypotheses.h"
#include "parts.h"

/* A hypothesis is named if chance gives the dump in fewer than one of a million. */
static const double bits_of_proof = 20;
/* The probability of an unknown mistake, or of a further one, is that of a rare hypothesis: 1 in 1,000. */
static const double bits_of_rare = 10;
/* A number that is read off the dump, such as the value of untouched elements. */
static const double bits_of_number = 8;
/* What all elements with one value are worth at most, if two mistakes give it. A great mistake leaves few values:
 * saturated, infinite or NaN. Many pairs give those. */
static const double bits_of_value = 8;
/* An equal element that an explanation would change. */
static const double bits_of_newly_wrong = 10;

/* The smallest block of y that has some elements. */
struct box {
    size_t rows[2]; /* the first, and the one after the last */
    size_t columns[2];
};

void box_add(struct box *box, size_t row, size_t column);
void box_join(struct box *box, const struct box *other);
double box_area(const struct box *box);

/* What elements with one value of the dump, or some values together, are worth. */
struct worth {
    unsigned char first; /* bits of the first such element */
    unsigned char count; /* how many such elements, or bits_of_value if there are more */
};

/* An element, or several that are one to a hypothesis about arithmetic. */
struct observation {
    uint64_t key; /* 0: none */
    unsigned char value;
    unsigned char bits;
};

/* Elements that an explanation changes to the dump's value. Values that repeat say less than new ones, and an
 * observation that repeats says nothing. Once there are so many observations, each element counts. */
enum { VALUES = 256, OBSERVATIONS = 256 };
struct evidence {
    size_t elements; /* that differ */
    size_t counted;  /* those without an observation below */
    struct worth values[VALUES];
    size_t observed;
    struct observation observations[OBSERVATIONS];
};

/* What decides an element of the definition: equal elements have equal keys. Not 0. */
uint64_t evidence_key(const struct call *call, const struct array ours[RESULTS], enum result result, size_t i);

/* The key says which elements are one observation; 0 for a hypothesis about places: then each element counts. */
void evidence_add(struct evidence *evidence, npuq_dtype dtype, uint64_t ours, uint64_t theirs, uint64_t key);
void evidence_join(struct evidence *evidence, const struct evidence *other);
double evidence_bits(const struct evidence *evidence, bool is_limited);

/* log2 of the probability of one hypothesis or two, of all that the call could have. The second may be null. */
double weigh_prior(const struct call *call, const struct hypothesis *const hypotheses[2], const struct variant *variant,
                   const struct part *part, double all);

/* The sum of how common the possible hypotheses are. */
double weigh_all(const struct call *call);

/* log2 of the probability that a device without a mistake makes these moves. */
double weigh_device(const struct admission *admission);

/* log2 of the probability that another cause agrees with a finding so far: it leaves these elements of y. */
double weigh_other_cause(size_t left, size_t differing, const struct box *box, const struct box *all);

#endif
