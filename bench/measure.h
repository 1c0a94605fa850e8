/* SPDX-License-Identifier: BSD-3-Clause */
/* A case, measured: checked against the reference, then timed in turns with the limits, the baseline and the peers. */
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

/* One way to do the work, and what it took. */
struct run {
    enum run_kind kind;
    char who[24]; /* "avx512", "stream", "stream-nt", "memcpy", "onednn", "multiply", ... */
    int threads;
    size_t bytes;         /* read and written, each once */
    struct statistics ns; /* of one call */
    double times_as_fast; /* the first run, which is npuquant's, is so many times as fast as this one */
    struct bench_way way; /* of a stream */
    bool is_mover;        /* nothing moves the bytes of the case faster than this */
    bool compared;        /* its results, with npuquant's: */
    size_t differing;     /* so many elements are unlike */
    bool noisy;           /* the spread is above 10 % */
};

/* What no code can be faster than, on this machine. */
struct limits {
    double stream_ns;  /* to move the bytes, as the fastest run does */
    double ports_ns;   /* to execute the instructions; 0: not known */
    double latency_ns; /* the call and the floating-point state */
    double ns;         /* all in all */
    const char *bound; /* "stream", or the larger part of the others: "ports", "latency" */
    double reached;    /* ns divided by npuquant's time */
};

enum { MEASURE_MAX_RUNS = TIMING_MAX_CONTESTANTS, MEASURE_MAX_BACKENDS = 4 };

struct measurement {
    const struct bench_case *c;
    size_t elements;
    size_t bytes_read;
    size_t bytes_written;
    const char *level; /* where the working set is: L1, L2, L3, L3+, memory */
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
    size_t prefetch; /* by the fastest stream, so many bytes ahead; 0: it tries several distances */
    struct timing timing;
    struct ports ports;
    double call_ns; /* of struct state_cost */
};

/* False if the outputs are wrong or the case cannot be run: m->failure says why. */
bool measure(const struct bench_case *c, const struct plan *plan, const struct machine *machine, struct measurement *m);

/* How long that will take, about: a guess for a machine of some 15 GB/s. */
double measure_seconds(const struct bench_case *c, const struct plan *plan);

const char *run_kind_name(enum run_kind kind);

#endif
