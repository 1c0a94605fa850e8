/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The version of this header. The build takes the library's version and soversion from here.
 */
#ifndef NPUQUANT_VERSION_H
#define NPUQUANT_VERSION_H

/** The first number of NPUQ_VERSION, for the preprocessor. */
#define NPUQ_VERSION_MAJOR 0
/** The second. */
#define NPUQ_VERSION_MINOR 2
/** The third. */
#define NPUQ_VERSION_PATCH 0
/** Version of the header that the program was compiled with; npuq_version() returns the library's. */
#define NPUQ_VERSION "0.2.0"

/** Whether this header is of the given version or a newer one: `#if NPUQ_VERSION_AT_LEAST(0, 2, 0)`. */
#define NPUQ_VERSION_AT_LEAST(major, minor, patch)                                                                     \
    (NPUQ_VERSION_MAJOR != (major)   ? NPUQ_VERSION_MAJOR > (major)                                                    \
     : NPUQ_VERSION_MINOR != (minor) ? NPUQ_VERSION_MINOR > (minor)                                                    \
                                     : NPUQ_VERSION_PATCH >= (patch))

/** The soversion. A release that raises it needs programs to be recompiled. */
#define NPUQ_ABI_VERSION 0

#endif
