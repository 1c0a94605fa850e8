/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine: its clock, its processors and its memory. */
#ifndef NPUQ_BENCH_MACHINE_H
#define NPUQ_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

double machine_nanoseconds(void);

/* How often the system took the processor from a thread of the process; always 0 if the system does not say. */
long machine_preemptions(void);

/* Pins the calling thread to the n-th processor of the process. False where the system cannot. */
bool machine_pin(int n);

/* Whether to ask the system for pages of 2 MiB. Call this before any buffer is made. */
void machine_set_huge_pages(bool wanted);

/* Bytes of a page of a large buffer; 0: the system does not say. */
size_t machine_page(void);

/* New memory for a buffer, aligned to a page, with every page touched. Without memory the
 * program ends. */
void *machine_allocate(size_t size);
void machine_free(void *memory, size_t size);

#endif
