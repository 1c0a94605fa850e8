/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of the operating system. */
#ifndef NPUQUANT_THREADS_H
#define NPUQUANT_THREADS_H

/* Runs work(argument) on up to count threads at once, with the calling one, and returns when all are done. Runs on
 * fewer threads if the system has no more. */
void threads_run(int count, void (*work)(void *argument), void *argument);

#endif
