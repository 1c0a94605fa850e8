/* SPDX-License-Identifier: BSD-3-Clause */
/* Outputs: a table on stdout, JSON in a file, a progress line on a terminal. */
#ifndef NPUQ_BENCH_REPORT_H
#define NPUQ_BENCH_REPORT_H

#include "measure.h"

#include <stdio.h>

struct heading {
    const struct machine *machine;
    const char *vectors; /* of the streams */
    size_t page;         /* bytes of a page of the buffers; 0: not known */
    bool pinned;
    double call_ns; /* of a call that only puts the floating-point state aside and back */
    const struct ports *ports;
    size_t all; /* cases */
    size_t chosen;
    size_t rare;    /* of the chosen cases: in no set */
    double seconds; /* rough duration of the chosen cases */
};

/* Prints the machine, and the meaning of each line and column of the table. */
void report_table_begin(const struct heading *heading);
void report_table_case(const struct measurement *m);

/* Prints how many runs were noisy. */
void report_table_end(int noisy_runs, int runs);

void report_json_begin(FILE *file, const struct heading *heading);
void report_json_case(FILE *file, const struct measurement *m, bool first);
void report_json_end(FILE *file);

/* Rewrites one line on stderr, if stderr is a terminal. Null clears the line. */
void report_progress(size_t done, size_t all, const char *name);

#endif
