/* SPDX-License-Identifier: BSD-3-Clause */
/* The output: a line of JSON for the machine, then one for each case. */
#ifndef NPUQ_BENCH_REPORT_H
#define NPUQ_BENCH_REPORT_H

#include "measure.h"

struct heading {
    const struct machine *machine;
    const char *vectors; /* of the streams */
    size_t page;         /* bytes of a page of the buffers; 0: not known */
    bool pinned;
    double call_ns; /* of a call that only puts the floating-point state aside and back */
    const struct ports *ports;
};

void report_machine(const struct heading *heading);
void report_case(const struct measurement *m);

#endif
