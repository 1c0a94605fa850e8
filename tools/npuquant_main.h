/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_MAIN_H
#define NPUQUANT_MAIN_H

/* The tool as a function: takes main()'s arguments and returns the exit status. A program may call it again: between
 * calls, only the library's choice of a backend stays. */
int npuquant_main(int argc, char **argv);

#endif
