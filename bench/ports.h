/* SPDX-License-Identifier: BSD-3-Clause */
/* How many vector instructions of each class the machine executes in a nanosecond. limits.py says how many a case
 * needs. */
#ifndef NPUQ_BENCH_PORTS_H
#define NPUQ_BENCH_PORTS_H

#include "timing.h"

/* Additions are float32, with comparisons. Conversions are between int32 and float32. Shuffles widen, pack and permute.
 * Halves are conversions between float16 and float32. any: additions, multiplications, integers and shuffles in turns,
 * which share ports. */
#define BENCH_EACH_PORT(DO, A)                                                                                         \
    DO(A, LOAD, loads)                                                                                                 \
    DO(A, STORE, stores)                                                                                               \
    DO(A, ADD, additions)                                                                                              \
    DO(A, MULTIPLY, multiplications)                                                                                   \
    DO(A, INTEGER, integers)                                                                                           \
    DO(A, CONVERT, conversions)                                                                                        \
    DO(A, SHUFFLE, shuffles)                                                                                           \
    DO(A, HALF, halves)                                                                                                \
    DO(A, ANY, any)

/* One class more: vectors of float32 to bfloat16, by the fastest instructions. */
#define BENCH_PORT_ID(A, ID, name) PORT_##ID,
enum port { BENCH_EACH_PORT(BENCH_PORT_ID, ) PORT_BFLOAT16, PORTS };

struct ports {
    const char *vectors;
    size_t lanes;         /* of float32 in a vector; 0: the machine is not known */
    double per_ns[PORTS]; /* whole vectors, the machine's best */
};

const char *port_name(enum port port);

/* With the widest vectors that run here. */
struct ports ports_measure(const struct timing *timing);

#endif
