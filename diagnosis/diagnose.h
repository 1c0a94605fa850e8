/* SPDX-License-Identifier: BSD-3-Clause */
/* From a result that differs to the mistake that explains it. */
#ifndef NPUQUANT_DIAGNOSE_H
#define NPUQUANT_DIAGNOSE_H

#include "admissible.h"
#include "explain.h"
#include "parts.h"
#include "remainder.h"
#include "variant.h"

/* One hypothesis, or two at once, against a dump. */
struct finding {
    const struct hypothesis *hypotheses[2]; /* the second is null for one alone */
    struct variant variant;
    struct part part;   /* where alone it is made */
    size_t explained;   /* differing elements that it gives as they are in the dump. The others: */
    size_t unexplained; /* it does not, and if some of the dump is wrong, nor are they admissible */
    size_t newly_wrong; /* elements that are equal, and that it would make different */
};

enum verdict {
    VERDICT_EQUAL,      /* nothing differs */
    VERDICT_EXPLAINED,  /* the first finding gives every element of the dump; or, if its counts say so, all that are not
                         * admissible for the device's division */
    VERDICT_ADMISSIBLE, /* within the device's division */
    VERDICT_PARTLY,     /* the first finding explains three quarters of the differences or more */
    VERDICT_NONE,
};

enum { MOST_FINDINGS = 24 };

struct diagnosis {
    enum verdict verdict;
    struct admission admission;
    size_t compared[RESULTS];
    size_t differing[RESULTS];
    size_t all_differing;
    int count; /* the best findings, the best first */
    struct finding findings[MOST_FINDINGS];
    int first_place;            /* how many findings explain everything, and so cannot be told apart */
    int untried;                /* how many pairs were not tried, as that would have taken too long */
    struct remainder remainder; /* of what the first finding does not give, or of all that differs if nothing is named;
                                 * none if the verdict is VERDICT_EXPLAINED */
    struct element shown;       /* a differing element, one that the first finding explains if there is such */
    struct variant moved;       /* with VERDICT_ADMISSIBLE: the quotient that gives the element shown */
    size_t *row_of;             /* what layouts point to; owned */
};

/* Compares theirs, what a kernel returned, with ours, what the library returns for the call; data is null where a
 * result is not compared. False if there is not the memory; released by diagnosis_release() in any case. */
bool diagnose(const struct call *call, const struct array ours[RESULTS], const struct array theirs[RESULTS],
              const npuq_executor *executor, struct diagnosis *diagnosis);
void diagnosis_release(struct diagnosis *diagnosis);

/* Whether the first finding is named as the mistake. */
bool diagnosis_is_named(const struct diagnosis *diagnosis);

#endif
