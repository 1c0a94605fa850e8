/* SPDX-License-Identifier: BSD-3-Clause */
/* From a result that differs to the mistake that explains it. */
#ifndef NPUQUANT_DIAGNOSE_H
#define NPUQUANT_DIAGNOSE_H

#include "admissible.h"
#include "explain.h"
#include "parts.h"
#include "variant.h"
#include "weights.h"

/* One hypothesis, or two at once, against a dump. */
struct finding {
    const struct hypothesis *hypotheses[2]; /* the second is null for one alone */
    struct variant variant;
    struct part part;   /* the part of y where the mistake is made */
    size_t explained;   /* differing elements to which it gives the dump's value */
    size_t unexplained; /* the other differing elements; if some of the dump is wrong, without the admissible ones */
    size_t newly_wrong; /* equal elements that it would change */
    double prior;       /* log2 of its probability before the dump is seen */
    double gained;      /* bits of evidence: set when all of the dump is compared */
    struct box left;    /* has the elements of y that it does not give; of scales and offsets the rows */
};

/* In bits, compared with an unknown mistake. */
double finding_score(const struct finding *finding);

enum verdict {
    VERDICT_EQUAL,     /* nothing differs */
    VERDICT_EXPLAINED, /* the first finding gives every element of the dump, or every element that the device's division
                        * does not explain, and chance does not */
    VERDICT_ADMISSIBLE, /* within the device's division */
    VERDICT_POSSIBLE,   /* the first finding gives all of that, but so does chance */
    VERDICT_PARTLY,     /* the first finding and a rare mistake are likelier than another cause */
    VERDICT_NONE,
};

enum { MOST_FINDINGS = 24 };

/* What the verdict compares the first finding with, beside its score and limits of weights.h. */
struct rivals {
    bool is_sure;       /* the finding may be more than possible: else all of y is one value */
    bool is_single;     /* one mistake in all of y, which may have a low score */
    double device;      /* log2 of the probability that a device without a mistake gives what the finding explains */
    double other_cause; /* of a finding that does not give every element: log2 of the probability that another cause
                         * agrees with it so far */
    bool has_rest;      /* the finding gives all that is wrong, but a device would not have made the rest */
};

/* An element of y, and its value before rounding. */
struct point {
    size_t at;
    double unrounded;
};

/* What the first finding does not give, or all differences if nothing is named. Empty if a finding gives all. */
struct remainder {
    struct array expected[RESULTS]; /* what the finding gives; the dump's value where that is excused; data is null if
                                     * nothing is named: then these are the library's results */
    struct point *points;           /* of an integer y; null if it does not differ */
    size_t point_count;
};

struct diagnosis {
    enum verdict verdict;
    struct admission admission;
    double device; /* log2 of the probability of the dump if the device has no mistake; minus infinity if it must have
                      one */
    size_t compared[RESULTS];
    size_t differing[RESULTS];
    size_t all_differing;
    bool is_one_value; /* all of y in the dump, as of memory that was never written */
    double worth;      /* bits of evidence for a finding that gives all that differs */
    int count;         /* the best findings, the best first */
    struct finding findings[MOST_FINDINGS];
    struct rivals rivals; /* of the first finding, if there is one */
    int first_place; /* findings that explain everything, and cannot be told apart, but by bits_of_rare of the score */
    int untried;     /* pairs that were not tried: they would take too long */
    struct remainder remainder;
    struct element shown; /* a differing element; if possible, one that the first finding explains */
    struct variant moved; /* with VERDICT_ADMISSIBLE: the quotient that gives the element shown */
    size_t *row_of;       /* the orders of rows that layouts point to; owned */
};

/* Compares theirs, the kernel's results, with ours, the library's; data is null if a result is not compared. False if
 * there is not the memory. Release the diagnosis with diagnosis_release() in any case. */
bool diagnose(const struct call *call, const struct array ours[RESULTS], const struct array theirs[RESULTS],
              const npuq_executor *executor, struct diagnosis *diagnosis);
void diagnosis_release(struct diagnosis *diagnosis);

/* Whether the first finding is named as the mistake. */
bool diagnosis_is_named(const struct diagnosis *diagnosis);

#endif
