/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's vector unit returns some quotients one unit in the last place off: docs/device.md. */
#ifndef NPUQUANT_ADMISSIBLE_H
#define NPUQUANT_ADMISSIBLE_H

#include "call.h"

/* The share of quotients that a device moves. Measured: 244 of 4,096. */
static const double moved_share = 0.06;

/* Numbers of units whose result can differ from ours, and of units whose result does. */
struct moves {
    size_t possible;
    size_t made;
};

/* A unit has one quotient: an element of quantize, a row of dynamic_quant or its tensor, a block of
 * dynamic_block_quant; of row_quant a row, or an element if the rule divides by the scale; an element of y of the
 * dynamic operators to 8-bit floats, and one of the scale of dynamic_block_quant_float8. */
struct admission {
    bool divides; /* the call has such a division; otherwise nothing else is set */
    size_t units;
    size_t differing;
    size_t wrong; /* differing units of which no quotient gives the dump's values, and scales of divided elements */
    struct moves moves; /* set if nothing is wrong, as are the members below */
    struct moves exact; /* the same of exact quotients */
    bool too_many;      /* more moves than a device makes that moves 6 % of its quotients */
};

/* The name of a unit of the call. */
const char *admission_unit(const struct call *call);

bool admission_divides(unsigned op, const struct call_options *options);

/* Whether nothing is wrong, and the device may have made all differences. */
bool admission_is_within(const struct admission *admission);

/* Compares theirs with ours, the right results; data is null if a result is not compared. If the call divides, repaired
 * gets copies of theirs, with the admissible units of ours. The caller releases them with array_release(). The executor
 * may be null. False if there is not the memory. */
bool admission_find(const struct call *call, const struct array ours[RESULTS], const struct array theirs[RESULTS],
                    struct array repaired[RESULTS], const npuq_executor *executor, struct admission *admission);

#endif
