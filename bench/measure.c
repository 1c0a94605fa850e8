/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include "limit.h"
#include "machine.h"
#include "operands.h"
#include "peer.h"
#include "pool.h"

#include "fp_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum kind { OURS, BASELINE, PEER, PREPARED, WITH_TENSORS, STREAM, TWO_PASSES, MEMCPY };

static const char *const kind_names[] = {"ours",         "baseline", "peer",       "prepared",
                                         "with tensors", "stream",   "two-passes", "memcpy"};

/* A way to do the work of a case, or to move its bytes. */
struct run {
    enum kind kind;
    const char *who; /* "avx512", "stream", "stream-nt", "memcpy", "onednn", "multiply", ... */
    int threads;
    const npuq_executor *executor;
    npuq_backend backend;      /* npuquant's, whichever the kind */
    struct operands *operands; /* small calls make their tensors anew */
    struct bench_way way;      /* of a stream */
    const npuq_call *call;     /* that was prepared */
    const struct peer *peer;
    size_t differing; /* a peer's elements that differ from npuquant's */
};

/* ---- contestants ----------------------------------------------------------------------------------------------- */

static void prepare(const void *argument)
{
    const struct run *run = argument;

    (void)npuq_set_backend(run->backend);
}

/* Skips a single parameter: reading one is not worth a call. */
static void read_parameters(const struct operands *o)
{
    const npuq_tensor *const parameters[] = {&o->scale, &o->offset, &o->activation_scale};

    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        const size_t bytes = operands_parameter_bytes(o, parameters[i]);
        if (bytes >= 64) {
            bench_read(parameters[i]->data, bytes);
        }
    }
}

/* A share for each thread, cut where both sides are aligned. Two passes read a token's row twice, then the next row; or
 * a tensor twice. */
static void stream_share(const void *argument, int i, int threads)
{
    enum { GRAIN = 4096, SIXTEENTHS = 16 };
    const struct run *run = argument;
    const struct operands *o = run->operands;
    const bool twice = run->kind == TWO_PASSES;
    const size_t ratio = o->x_bytes * SIXTEENTHS / o->y_bytes;
    const size_t grains = o->y_bytes / GRAIN;
    const size_t begin = grains * (size_t)i / (size_t)threads * GRAIN;
    const size_t end = i + 1 == threads ? o->y_bytes : grains * ((size_t)i + 1) / (size_t)threads * GRAIN;
    const size_t rows = twice && o->c->mode != BENCH_TENSOR ? (size_t)o->c->shape[0] : 1;
    const size_t row = (o->y_bytes / rows + 255) / 256 * 256;

    if (i == 0) {
        read_parameters(o);
    }
    for (size_t at = begin; at < end; at += row) {
        const size_t size = end - at < row ? end - at : row;
        const char *x = (const char *)o->x_memory + at * ratio / SIXTEENTHS;
        if (twice) {
            bench_read(x, size * ratio / SIXTEENTHS);
        }
        bench_stream(x, size * ratio / SIXTEENTHS, (char *)o->y.data + at, size, &run->way);
    }
}

/* Half of the bytes of x and y, from the larger of them: as much as a stream reads and writes. */
static void memcpy_share(const void *argument, int i, int threads)
{
    const struct run *run = argument;
    const struct operands *o = run->operands;
    const size_t size = (o->x_bytes + o->y_bytes) / 2;
    const char *from = o->x_bytes < o->y_bytes ? o->y.data : o->x_memory;
    const size_t begin = size / 64 * (size_t)i / (size_t)threads * 64;
    const size_t end = i + 1 == threads ? size : size / 64 * ((size_t)i + 1) / (size_t)threads * 64;

    if (i == 0) {
        read_parameters(o);
    }
    memcpy((char *)o->copy + begin, from + begin, end - begin);
}

static void run_once(const void *argument)
{
    const struct run *run = argument;

    switch (run->kind) {
    case OURS: (void)operands_call(run->operands, run->executor); break;
    case BASELINE: (void)operands_baseline(run->operands); break;
    case PEER: run->peer->run(); break;
    case PREPARED: npuq_call_run(run->call, 0, SIZE_MAX); break;
    case WITH_TENSORS: (void)operands_call_with_tensors(run->operands); break;
    case STREAM:
    case TWO_PASSES: pool_run(run->threads, stream_share, run); break;
    case MEMCPY: pool_run(run->threads, memcpy_share, run); break;
    }
}

/* ---- the field ------------------------------------------------------------------------------------------------- */

struct field {
    const struct plan *plan;
    int threads;
    struct operands operands;
    npuq_call call;
    struct run runs[TIMING_MAX_CONTESTANTS];
    struct contestant contestants[TIMING_MAX_CONTESTANTS];
    int count;
    char failure[160]; /* "" if all is well */
};

static bool fail(struct field *field, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(field->failure, sizeof field->failure, format, arguments);
    va_end(arguments);
    return false;
}

static struct run *enter(struct field *field, enum kind kind, const char *who)
{
    const int i = field->count < TIMING_MAX_CONTESTANTS ? field->count++ : TIMING_MAX_CONTESTANTS - 1;

    field->runs[i] = (struct run){
        .kind = kind, .who = who, .threads = 1, .backend = field->plan->backends[0], .operands = &field->operands};
    field->contestants[i] = (struct contestant){.prepare = prepare, .run = run_once, .context = &field->runs[i]};
    return &field->runs[i];
}

/* The fastest way of a stream from memory, by two turns of each: the best distance of prefetching depends on the
 * machine, the sizes and the stores. */
static struct bench_way fastest_way(const struct run *stream, size_t prefetch)
{
    enum { TURNS = 2 };
    static const size_t distances[] = {512, 1024, 2048, 3072, 4096, 8192};
    struct run run = *stream;
    struct bench_way best = {0};
    double lowest = 0;

    for (size_t i = 0; i < 4 * TURNS * (sizeof distances / sizeof distances[0]); i++) {
        run.way = (struct bench_way){.non_temporal = (i & 1) != 0 && bench_has_non_temporal(),
                                     .four_rows = (i & 2) != 0,
                                     .prefetch = prefetch > 0 ? prefetch : distances[i / 4 / TURNS]};
        const double start = machine_nanoseconds();
        run_once(&run);
        const double spent = machine_nanoseconds() - start;
        if (lowest <= 0 || spent < lowest) {
            lowest = spent;
            best = run.way;
        }
    }
    return best;
}

/* A copy reads its input once. Dynamic quantisation reads x twice from memory where the second cache does not hold what
 * has one scale. */
static void enter_streams(struct field *field)
{
    static const char *const names[2][3] = {{"stream", "stream-nt", "stream-best"},
                                            {"two-pass", "two-pass-nt", "two-pass-best"}};
    const struct operands *o = &field->operands;
    const struct bench_case *c = o->c;
    const size_t cache = field->plan->second_cache;
    const bool from_afar = o->x_bytes + o->parameter_bytes + o->y_bytes + o->small_out_bytes > cache;
    const bool twice = bench_results(c) > 1 && bench_block(c) == 0 &&
                       (c->mode == BENCH_TENSOR || o->x_bytes / (size_t)c->shape[0] > cache);
    const enum kind kind = twice ? TWO_PASSES : STREAM;

    for (int non_temporal = 0; non_temporal <= bench_has_non_temporal(); non_temporal++) {
        struct run *run = enter(field, kind, names[twice][non_temporal]);
        run->threads = field->threads;
        run->way.non_temporal = non_temporal != 0;
    }
    if (from_afar) {
        struct run *run = enter(field, kind, names[twice][2]);
        run->threads = field->threads;
        run->way = fastest_way(run, field->plan->prefetch);
    }
    if (!twice) {
        enter(field, MEMCPY, "memcpy")->threads = field->threads;
    }
}

static bool check(struct field *field, const struct run *run)
{
    struct operands *o = run->operands;

    memset(o->y.data, 0x55, o->y_bytes);
    prepare(run);
    run_once(run);
    const size_t differing = operands_differing(o);
    return differing == 0 || fail(field, "%s: %zu elements differ from the reference", run->who, differing);
}

static bool enter_ours(struct field *field)
{
    const struct bench_case *c = field->operands.c;
    const char *baseline = bench_is_view(c)            ? "copy first"
                           : c->variant != BENCH_USUAL ? "usual data"
                           : c->threads > 0            ? "one thread"
                                                       : NULL;

    if (!operands_expect(&field->operands)) {
        return fail(field, "the reference failed: %s", npuq_last_error());
    }
    for (int i = 0; i < field->plan->backend_count; i++) {
        struct run *run = enter(field, OURS, npuq_backend_name(field->plan->backends[i]));
        run->threads = field->threads;
        run->executor = pool_executor(field->threads);
        run->backend = field->plan->backends[i];
        if (!check(field, run)) {
            return false;
        }
        if (i == 0 && baseline) {
            (void)enter(field, BASELINE, baseline);
        }
    }
    return true;
}

/* With the fastest backend. */
static bool enter_small(struct field *field)
{
    struct operands *o = &field->operands;

    if (!bench_is_small(o->c)) {
        return true;
    }
    if (npuq_set_backend(field->plan->backends[0]) == NPUQ_OK && operands_prepare(o, &field->call) == NPUQ_OK) {
        struct run *run = enter(field, PREPARED, kind_names[PREPARED]);
        run->call = &field->call;
        if (!check(field, run)) {
            return false;
        }
    }
    return check(field, enter(field, WITH_TENSORS, kind_names[WITH_TENSORS]));
}

/* Peers stay prepared until they have been timed. */
static void enter_peers(struct field *field)
{
    struct operands *o = &field->operands;
    int count;
    const struct peer *const *all = peers(&count);

    for (int i = 0; i < count && field->threads == 1 && !bench_is_view(o->c); i++) {
        memset(o->y.data, 0x55, o->y_bytes);
        if (all[i]->prepare(o)) {
            struct run *run = enter(field, PEER, all[i]->name);
            run->peer = all[i];
            run_once(run);
            run->differing = all[i]->differing ? all[i]->differing(o) : 0;
        }
    }
}

static void finish_peers(const struct field *field)
{
    for (int i = 0; i < field->count; i++) {
        if (field->runs[i].peer) {
            field->runs[i].peer->finish();
        }
    }
}

/* ---- the floating-point state ---------------------------------------------------------------------------------- */

static void prepare_nothing(const void *argument)
{
    (void)argument;
}

static void run_state(const void *argument)
{
    const npuq_fp_state caller = npuq_fp_enter();

    (void)argument;
    npuq_fp_leave(&caller);
}

void measure_call(const struct timing *timing)
{
    struct contestant contestant = {.prepare = prepare_nothing, .run = run_state};
    const int rounds = timing_run(timing, &contestant, 1);

    timing_write(contestant.samples, rounds);
}

/* ---- the line -------------------------------------------------------------------------------------------------- */

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void write_run(const struct run *run, const double *samples, int rounds)
{
    (void)printf("{\"kind\": \"%s\", \"who\": \"%s\", \"threads\": %d, ", kind_names[run->kind], run->who,
                 run->threads);
    if (run->way.prefetch > 0) {
        (void)printf("\"non_temporal\": %s, \"four_rows\": %s, \"prefetch\": %zu, ", truth(run->way.non_temporal),
                     truth(run->way.four_rows), run->way.prefetch);
    }
    if (run->peer && run->peer->differing) {
        (void)printf("\"differing\": %zu, ", run->differing);
    }
    (void)fputs("\"samples\": ", stdout);
    timing_write(samples, rounds);
    (void)putchar('}');
}

static void write_case(const struct field *field, int rounds)
{
    const struct operands *o = &field->operands;

    (void)printf("{\"name\": \"%s\", ", o->c->name);
    if (field->failure[0] != '\0') {
        (void)fputs("\"failure\": \"", stdout);
        for (const char *at = field->failure; *at != '\0'; at++) {
            (void)printf("%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
        }
        (void)fputs("\", ", stdout);
    }
    (void)printf("\"bytes_read\": %zu, \"bytes_written\": %zu, \"runs\": [", o->x_bytes + o->parameter_bytes,
                 o->y_bytes + o->small_out_bytes);
    for (int i = 0; i < field->count && rounds > 0; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        write_run(&field->runs[i], field->contestants[i].samples, rounds);
    }
    (void)fputs("]}\n", stdout);
    (void)fflush(stdout);
}

bool measure(const struct bench_case *c, const struct plan *plan)
{
    struct field field = {.plan = plan, .threads = c->threads > 0 ? c->threads : plan->threads};
    int rounds = 0;

    operands_make(&field.operands, c);
    bool right = enter_ours(&field);
    if (right) {
        enter_streams(&field);
        right = enter_small(&field);
    }
    if (right) {
        if (plan->with_peers) {
            enter_peers(&field);
        }
        rounds = timing_run(&plan->timing, field.contestants, field.count);
        finish_peers(&field);
    }
    write_case(&field, rounds);
    operands_free(&field.operands);
    return right;
}
