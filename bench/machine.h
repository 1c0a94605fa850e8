/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine: its name, its caches, its clock, its processors and its memory. */
#ifndef NPUQ_BENCH_MACHINE_H
#define NPUQ_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

enum { MACHINE_CACHES = 3 };

struct machine {
    char cpu[96];
    char compiler[64];
    char date[16]; /* of the run */
    int processors;
    double memory;                /* bytes; 0: not known */
    size_t cache[MACHINE_CACHES]; /* data, first to last level; guesses where the system does not say */
};

void machine_describe(struct machine *machine);

/* "L1", "L2", "L3", "memory" or, where a part may stay in the last cache, "L3+". */
const char *machine_level(const struct machine *machine, size_t working_set);

double machine_nanoseconds(void);

/* How often the system has taken the processor away from one of the process's threads; always 0 if it does not say. */
long machine_preemptions(void);

/* Ties the calling thread to the n-th processor that the process may use. False where that is not possible. */
bool machine_pin(int n);

/* Whether to ask the system for pages of 2 MiB for the buffers. Comes before all of them. */
void machine_set_huge_pages(bool wanted);

/* Bytes of a page of a large buffer, as the system says; 0: it does not say. */
size_t machine_page(void);

/* Fresh memory for a buffer, aligned to a page, all of it touched; null if there is none. */
void *machine_allocate(size_t size);
void machine_free(void *memory, size_t size);

#endif
