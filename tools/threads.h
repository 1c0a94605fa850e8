/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of the operating system. */
#ifndef NPUQUANT_THREADS_H
#define NPUQUANT_THREADS_H

/* Runs work(argument) on up to count threads at once, the calling one included, and returns when all are done. If the
 * system has no more threads, there are fewer. */
void threads_run(int count, void (*work)(void *argument), void *argument);

#endif
