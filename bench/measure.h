/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures a case: checks the results with the reference, then times the call in turns with the limits, the baseline
 * and the peers. */
#ifndef NPUQ_BENCH_MEASURE_H
#define NPUQ_BENCH_MEASURE_H

#include "limit.h"
#include "machine.h"
#include "operands.h"
#include "ports.h"
#include "timing.h"

enum run_kind {
    RUN_OURS,
    RUN_BASELINE,
    RUN_PEER,
    RUN_PRODUCT,
    RUN_PREPARED,
    RUN_WITH_TENSORS,
    RUN_STREAM,
    RUN_TWO_PASSES,
    RUN_MEMCPY
};

struct run {
    enum run_kind kind;
    char who[24]; /* "avx512", "stream", "stream-nt", "memcpy", "onednn", "multiply", ... */
    int threads;
    size_t bytes;         /* read and written, each once */
    struct statistics ns; /* of one call */
    double times_as_fast; /* how many times as fast the first run, npuquant's, is */
    struct bench_way way; /* of a stream */
    bool is_mover;        /* the fastest run that moves the bytes of the case */
    bool compared;        /* results were compared with npuquant's */
    size_t differing;     /* elements that differ */
    bool noisy;           /* the spread is above 10 % */
};

/* Lower limits of any code's time on this machine. */
struct limits {
    double stream_ns;  /* to move the bytes, by the fastest run */
    double ports_ns;   /* to execute the instructions; 0: not known */
    double latency_ns; /* the call and the floating-point state */
    double ns;         /* the larger: stream_ns, or the sum of the others */
    const char *bound; /* "stream", or the larger of the others: "ports", "latency" */
    double reached;    /* ns divided by npuquant's time */
};

enum { MEASURE_MAX_RUNS = TIMING_MAX_CONTESTANTS, MEASURE_MAX_BACKENDS = 4 };

struct measurement {
    const struct bench_case *c;
    size_t elements;
    size_t bytes_read;
    size_t bytes_written;
    const char *level; /* the level of the working set: L1, L2, L3, L3+, memory */
    int rounds;
    struct run runs[MEASURE_MAX_RUNS];
    int count;
    struct limits limits; /* where there are runs */
    char failure[160];    /* "" if all is well */
};

struct plan {
    npuq_backend backends[MEASURE_MAX_BACKENDS]; /* the fastest first */
    int backend_count;
    int threads;
    bool timed; /* false: correctness only */
    bool with_peers;
    size_t prefetch; /* distance of the fastest stream in bytes; 0: the fastest of several distances */
    struct timing timing;
    struct ports ports;
    double call_ns; /* of measure_call_ns() */
};

/* False if the outputs are wrong or the case cannot run: m->failure has the reason. */
bool measure(const struct bench_case *c, const struct plan *plan, const struct machine *machine, struct measurement *m);

/* The time of a call that only puts the caller's floating-point state aside and back. */
double measure_call_ns(const struct timing *timing);

const char *run_kind_name(enum run_kind kind);

#endif
