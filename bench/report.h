/* SPDX-License-Identifier: BSD-3-Clause */
/* What people and programs read: a table on stdout, JSON and CSV in files, a progress line on a terminal. */
#ifndef NPUQ_BENCH_REPORT_H
#define NPUQ_BENCH_REPORT_H

#include "measure.h"
#include "state.h"

#include <stdio.h>

struct heading {
    const struct machine *machine;
    const char *vectors; /* of the streams */
    size_t page;         /* bytes of a page of the buffers; 0: not known */
    bool pinned;
    struct state_cost state;
    const struct ports *ports;
    size_t all; /* cases */
    size_t chosen;
    size_t rare;    /* of the chosen, those that no set has */
    double seconds; /* that the chosen ones will take, about */
};

/* The machine, and what each line and each column of the table means. */
void report_table_begin(const struct heading *heading);
void report_table_case(const struct measurement *m);

/* How much of it was noisy. */
void report_table_end(int noisy_runs, int runs);

void report_json_begin(FILE *file, const struct heading *heading);
void report_json_case(FILE *file, const struct measurement *m, bool first);
void report_json_end(FILE *file);

/* One row for each line of the table. */
void report_csv_begin(FILE *file);
void report_csv_case(FILE *file, const struct heading *heading, const struct measurement *m);

/* One line on stderr, over itself; nothing unless stderr is a terminal. Null clears it. */
void report_progress(size_t done, size_t all, const char *name);

#endif
