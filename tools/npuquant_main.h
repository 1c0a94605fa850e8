/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_MAIN_H
#define NPUQUANT_MAIN_H

/* The tool without the process around it: takes what main() takes and returns the exit status. May be called any number
 * of times; holds nothing between calls but the library's choice of a backend. */
int npuquant_main(int argc, char **argv);

#endif
