/* SPDX-License-Identifier: BSD-3-Clause */
/* All that a diagnosis says, read: for tests whether two say the same. */
#ifndef NPUQ_TESTS_FACTS_H
#define NPUQ_TESTS_FACTS_H

#include <diagnose.h>

/* A checksum of the steps of an element, and of its bits. */
uint64_t facts_of_element(const struct call *call, const struct variant *variant, struct element element);

/* A checksum of everything that the report of a diagnosis shows. */
uint64_t facts_of_diagnosis(const struct call *call, const struct array theirs[RESULTS],
                            const struct diagnosis *diagnosis);

#endif
