/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's vector unit divides otherwise than IEEE: some quotients are one unit in the last place off. What that
 * makes of a dump: docs/device.md. */
#ifndef NPUQUANT_ADMISSIBLE_H
#define NPUQUANT_ADMISSIBLE_H

#include "call.h"

/* Of the units that can have another result than ours, and of those that have one. */
struct moves {
    size_t possible;
    size_t made;
};

/* What is judged at once, a unit, has one quotient: an element of quantize, a row of dynamic_quant or
 * its tensor, a block of dynamic_block_quant. */
struct admission {
    bool divides; /* the call has such a division; otherwise nothing else is set */
    size_t units;
    size_t differing;
    size_t wrong;       /* of the differing ones: no quotient gives what is in the dump */
    struct moves moves; /* this and what follows if nothing is wrong */
    struct moves exact; /* of quotients that are no rounded numbers, counted apart */
    bool too_many;      /* moves are made, for a device that moves 6 % of its quotients */
};

bool admission_divides(unsigned op, const struct call_options *options);

/* Whether nothing is wrong, and no more differs than the device may be thought to make differ. */
bool admission_is_within(const struct admission *admission);

/* Judges theirs by ours, the right results; data is null where a result is not compared. If the call divides, repaired
 * gets copies of theirs in which the admissible units are as in ours; array_release() is for the caller. The executor
 * may be null. False if there is not the memory. */
bool admission_find(const struct call *call, const struct array ours[RESULTS], const struct array theirs[RESULTS],
                    struct array repaired[RESULTS], const npuq_executor *executor, struct admission *admission);

#endif
