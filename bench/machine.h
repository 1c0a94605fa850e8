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
    char date[16];
    int processors;
    double memory;                /* bytes; 0: not known */
    size_t cache[MACHINE_CACHES]; /* data, first to last level; guesses where the system does not say */
};

void machine_describe(struct machine *machine);

/* "L1", "L2", "L3", "memory", or "L3+" where a part may stay in the last cache. */
const char *machine_level(const struct machine *machine, size_t working_set);

double machine_nanoseconds(void);

/* How often the system took the processor from a thread of the process; always 0 if the system does not say. */
long machine_preemptions(void);

/* Pins the calling thread to the n-th processor of the process. False where the system cannot. */
bool machine_pin(int n);

/* Whether to ask the system for pages of 2 MiB. Call this before any buffer is made. */
void machine_set_huge_pages(bool wanted);

/* Bytes of a page of a large buffer; 0: the system does not say. */
size_t machine_page(void);

/* New memory for a buffer, aligned to a page, with every page touched; null without memory. */
void *machine_allocate(size_t size);
void machine_free(void *memory, size_t size);

#endif
