/* SPDX-License-Identifier: BSD-3-Clause */
/* The processor's limit: how many vector instructions of each class a case needs at least, and how many of them the
 * machine executes in a nanosecond. */
#ifndef NPUQ_BENCH_PORTS_H
#define NPUQ_BENCH_PORTS_H

#include "cases.h"
#include "timing.h"

/* Additions are those of float32, comparisons among them; conversions are between int32 and float32; shuffles widen,
 * pack and permute; halves are conversions between float16 and float32. any: additions, multiplications, integers and
 * shuffles in turns, as they share ports. */
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

/* And vectors of float32 that become bfloat16, by whatever does it best. */
#define BENCH_PORT_ID(A, ID, name) PORT_##ID,
enum port { BENCH_EACH_PORT(BENCH_PORT_ID, ) PORT_BFLOAT16, PORTS };

struct ports {
    const char *vectors;
    size_t lanes;         /* of float32 in a vector; 0: nothing is known of this machine */
    double per_ns[PORTS]; /* whole vectors, the machine's best */
};

const char *port_name(enum port port);

/* Of the widest vectors that run here. */
struct ports ports_measure(const struct timing *timing);

/* The least time that the instructions of a case take on so many threads; 0: not known. */
double ports_ns(const struct ports *ports, const struct bench_case *c, int threads);

#endif
