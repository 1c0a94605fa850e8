/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include "limit.h"
#include "peer.h"
#include "pool.h"

#include "plan/fp_state.h"

#include <stdio.h>
#include <string.h>

static const double noise_threshold = 0.10;

struct context {
    const struct operands *operands;
    enum run_kind kind;
    npuq_backend backend; /* npuquant's, whichever the kind */
    const npuq_executor *executor;
    int threads;
    struct bench_way way; /* streams */
    const struct peer *peer;
    struct operands *tensors; /* small calls: to be made anew */
    const npuq_call *call;    /* or prepared */
};

/* ---- contestants ----------------------------------------------------------------------------------------------- */

static void prepare(const void *argument)
{
    const struct context *context = argument;

    if (context->kind == RUN_OURS || context->kind == RUN_BASELINE || context->tensors) {
        (void)npuq_set_backend(context->backend);
    }
}

static void run_ours(const void *argument)
{
    const struct context *context = argument;

    (void)operands_call(context->operands, context->executor);
}

static void run_baseline(const void *argument)
{
    const struct context *context = argument;

    (void)operands_baseline(context->operands);
}

static void run_peer(const void *argument)
{
    const struct context *context = argument;

    context->peer->run();
}

static void run_prepared(const void *argument)
{
    const struct context *context = argument;

    npuq_call_run(context->call, 0, SIZE_MAX);
}

static void run_with_tensors(const void *argument)
{
    const struct context *context = argument;

    (void)operands_call_with_tensors(context->tensors);
}

/* A share of the rows for each thread, cut where both sides are aligned: GRAIN bytes of y. */
enum { GRAIN = 4096 };

struct share {
    const char *x;
    char *y;
    size_t x_size;
    size_t y_size;
};

static struct share share_of(const struct operands *o, int i, int threads)
{
    const size_t grains = o->y_bytes / GRAIN;
    const size_t begin = grains * (size_t)i / (size_t)threads * GRAIN;
    const size_t end = i + 1 == threads ? o->y_bytes : grains * ((size_t)i + 1) / (size_t)threads * GRAIN;
    const size_t x_begin = begin / 256 * (o->x_bytes * 256 / o->y_bytes);
    const size_t x_end = i + 1 == threads ? o->x_bytes : end / 256 * (o->x_bytes * 256 / o->y_bytes);

    return (struct share){(const char *)o->x_memory + x_begin, (char *)o->y.data + begin, x_end - x_begin, end - begin};
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

static void stream_share(void *argument, int i, int threads)
{
    const struct context *context = argument;
    const struct share share = share_of(context->operands, i, threads);

    if (i == 0) {
        read_parameters(context->operands);
    }
    bench_stream(share.x, share.x_size, share.y, share.y_size, &context->way);
}

/* A token's row twice, then the next row; or a tensor twice. */
static void two_passes_share(void *argument, int i, int threads)
{
    const struct context *context = argument;
    const struct operands *o = context->operands;
    const struct share share = share_of(o, i, threads);
    const size_t ratio = o->x_bytes * 2 / o->y_bytes; /* twice, as it may be 1/2 */
    const size_t row = (o->y_bytes / (size_t)o->c->shape[0] + 255) / 256 * 256;

    if (i == 0) {
        read_parameters(o);
    }
    if (o->c->mode == BENCH_TENSOR) {
        bench_read(share.x, share.x_size);
        bench_stream(share.x, share.x_size, share.y, share.y_size, &context->way);
        return;
    }
    for (size_t done = 0; done < share.y_size; done += row) {
        const size_t y_size = share.y_size - done < row ? share.y_size - done : row;
        const char *x = share.x + done * ratio / 2;
        bench_read(x, y_size * ratio / 2);
        bench_stream(x, y_size * ratio / 2, share.y + done, y_size, &context->way);
    }
}

static void run_stream(const void *argument)
{
    const struct context *context = argument;
    struct context copy = *context;

    pool_run(context->threads, stream_share, &copy);
}

static void run_two_passes(const void *argument)
{
    const struct context *context = argument;
    struct context copy = *context;

    pool_run(context->threads, two_passes_share, &copy);
}

/* Half of the bytes of x and y, from the larger of them: as much as a stream reads and writes. */
static void memcpy_share(void *argument, int i, int threads)
{
    const struct context *context = argument;
    const struct operands *o = context->operands;
    const size_t size = (o->x_bytes + o->y_bytes) / 2;
    const char *from = o->x_bytes < o->y_bytes ? o->y.data : o->x_memory;
    const size_t begin = size / 64 * (size_t)i / (size_t)threads * 64;
    const size_t end = i + 1 == threads ? size : size / 64 * ((size_t)i + 1) / (size_t)threads * 64;

    if (i == 0) {
        read_parameters(o);
    }
    memcpy((char *)o->copy + begin, from + begin, end - begin);
}

static void run_memcpy(const void *argument)
{
    const struct context *context = argument;
    struct context copy = *context;

    pool_run(context->threads, memcpy_share, &copy);
}

/* ---- the field ------------------------------------------------------------------------------------------------- */

struct field {
    struct measurement *m;
    struct context contexts[MEASURE_MAX_RUNS];
    struct contestant contestants[MEASURE_MAX_RUNS];
    bool from_afar;   /* the case does not fit into the second cache */
    bool reads_twice; /* dynamic quantisation reads x twice from memory */
};

static void (*const runs[])(const void *) = {run_ours,         run_baseline, run_peer,       run_peer,  run_prepared,
                                             run_with_tensors, run_stream,   run_two_passes, run_memcpy};

static void enter(struct field *field, const struct context *context, const char *who, size_t differing)
{
    struct measurement *m = field->m;

    if (m->count == MEASURE_MAX_RUNS) {
        return;
    }
    struct run *run = &m->runs[m->count];
    *run = (struct run){.kind = context->kind,
                        .threads = context->threads,
                        .bytes = m->bytes_read + m->bytes_written,
                        .way = context->way,
                        .compared = context->peer && context->peer->differing,
                        .differing = differing};
    (void)snprintf(run->who, sizeof run->who, "%s", who);
    field->contexts[m->count] = *context;
    field->contestants[m->count] = (struct contestant){
        .prepare = prepare,
        .run = runs[context->kind],
        .context = &field->contexts[m->count],
    };
    m->count++;
}

/* The fastest way of a stream from memory, by two turns of each: the best distance of prefetching depends on the
 * machine, the sizes and the stores. */
static struct bench_way fastest_way(const struct context *stream, size_t prefetch)
{
    enum { TURNS = 2 };
    static const size_t distances[] = {512, 1024, 2048, 3072, 4096, 8192};
    struct context context = *stream;
    struct bench_way best = {0};
    double lowest = 0;

    for (size_t i = 0; i < 4 * TURNS * (sizeof distances / sizeof distances[0]); i++) {
        context.way = (struct bench_way){.non_temporal = (i & 1) != 0 && bench_has_non_temporal(),
                                         .four_rows = (i & 2) != 0,
                                         .prefetch = prefetch > 0 ? prefetch : distances[i / 4 / TURNS]};
        const double start = machine_nanoseconds();
        runs[context.kind](&context);
        const double spent = machine_nanoseconds() - start;
        if (lowest <= 0 || spent < lowest) {
            lowest = spent;
            best = context.way;
        }
    }
    return best;
}

/* A copy reads its input once. */
static void enter_streams(struct field *field, const struct operands *o, const struct plan *plan, int threads)
{
    static const char *const names[2][3] = {{"stream", "stream-nt", "stream-best"},
                                            {"two-pass", "two-pass-nt", "two-pass-best"}};
    const char *const *name = names[field->reads_twice];
    struct context context = {
        .operands = o, .kind = field->reads_twice ? RUN_TWO_PASSES : RUN_STREAM, .threads = threads};

    for (int non_temporal = 0; non_temporal <= bench_has_non_temporal(); non_temporal++) {
        context.way.non_temporal = non_temporal != 0;
        enter(field, &context, name[non_temporal], 0);
    }
    if (field->from_afar) {
        context.way = fastest_way(&context, plan->prefetch);
        enter(field, &context, name[2], 0);
    }
    if (!field->reads_twice) {
        const struct context copy = {.operands = o, .kind = RUN_MEMCPY, .threads = threads};
        enter(field, &copy, "memcpy", 0);
    }
}

static const char *baseline_name(enum bench_baseline baseline)
{
    switch (baseline) {
    case BENCH_USUAL_DATA: return "usual data";
    case BENCH_COPY_FIRST: return "copy first";
    case BENCH_ONE_THREAD: return "one thread";
    case BENCH_NO_BASELINE: break;
    }
    return "none";
}

static void enter_all(struct field *field, const struct operands *o, const struct plan *plan, int threads)
{
    const struct bench_case *c = o->c;

    for (int i = 0; i < plan->backend_count; i++) {
        struct context context = {.operands = o,
                                  .kind = RUN_OURS,
                                  .backend = plan->backends[i],
                                  .executor = pool_executor(threads),
                                  .threads = threads};
        enter(field, &context, npuq_backend_name(plan->backends[i]), 0);
        if (i == 0 && c->baseline != BENCH_NO_BASELINE) {
            context.kind = RUN_BASELINE;
            context.threads = 1;
            enter(field, &context, baseline_name(c->baseline), 0);
        }
    }
    enter_streams(field, o, plan, threads);
}

/* With the fastest backend. Each must first give the expected results. */
static bool enter_small(struct field *field, struct operands *o, const struct plan *plan, npuq_call *call)
{
    struct measurement *m = field->m;
    struct context context = {.operands = o, .backend = plan->backends[0], .threads = 1, .tensors = o, .call = call};
    const bool can_prepare = operands_can_prepare(o->c);

    if (!bench_is_small(o->c)) {
        return true;
    }
    if (npuq_set_backend(context.backend) != NPUQ_OK || (can_prepare && operands_prepare(o, call) != NPUQ_OK)) {
        (void)snprintf(m->failure, sizeof m->failure, "%s", npuq_last_error());
        return false;
    }
    for (context.kind = can_prepare ? RUN_PREPARED : RUN_WITH_TENSORS; context.kind <= RUN_WITH_TENSORS;
         context.kind++) {
        memset(o->y.data, 0x55, o->y_bytes);
        enter(field, &context, run_kind_name(context.kind), 0);
        field->contestants[m->count - 1].run(&context);
        const size_t differing = operands_differing(o);
        if (differing > 0) {
            (void)snprintf(m->failure, sizeof m->failure, "%s: %zu elements differ from the reference",
                           run_kind_name(context.kind), differing);
            return false;
        }
    }
    return true;
}

/* ---- correctness ----------------------------------------------------------------------------------------------- */

static bool check_backends(struct measurement *m, struct operands *o, const struct plan *plan, int threads)
{
    if (!operands_expect(o)) {
        (void)snprintf(m->failure, sizeof m->failure, "the reference failed: %s", npuq_last_error());
        return false;
    }
    for (int i = 0; i < plan->backend_count; i++) {
        memset(o->y.data, 0x55, o->y_bytes);
        if (npuq_set_backend(plan->backends[i]) != NPUQ_OK || operands_call(o, pool_executor(threads)) != NPUQ_OK) {
            (void)snprintf(m->failure, sizeof m->failure, "%s", npuq_last_error());
            return false;
        }
        const size_t differing = operands_differing(o);
        if (differing > 0) {
            (void)snprintf(m->failure, sizeof m->failure, "%s: %zu elements differ from the reference",
                           npuq_backend_name(plan->backends[i]), differing);
            return false;
        }
    }
    return true;
}

/* Peers stay prepared until they have been timed. */
static void enter_peers(struct field *field, struct operands *o, int threads)
{
    int count;
    const struct peer *const *all = peers(&count);

    for (int i = 0; i < count && threads == 1 && !bench_is_view(o->c); i++) {
        const struct context context = {
            .operands = o, .kind = all[i]->is_product ? RUN_PRODUCT : RUN_PEER, .threads = 1, .peer = all[i]};
        memset(o->y.data, 0x55, o->y_bytes);
        if (!all[i]->prepare(o)) {
            continue;
        }
        all[i]->run();
        enter(field, &context, all[i]->name, all[i]->differing ? all[i]->differing(o) : 0);
    }
}

static void finish_peers(const struct field *field)
{
    for (int i = 0; i < field->m->count; i++) {
        if (field->contexts[i].peer) {
            field->contexts[i].peer->finish();
        }
    }
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* The fastest run that moves all bytes: a stream, or a peer. memcpy() counts unless y is larger than x: then memcpy()
 * writes less than the case. */
static int fastest_mover(const struct measurement *m)
{
    const bool grows = bench_y_bytes(m->c) > bench_x_bytes(m->c);
    int best = 0;

    for (int i = 1; i < m->count; i++) {
        const enum run_kind kind = m->runs[i].kind;
        const bool moves = kind != RUN_BASELINE && kind != RUN_PRODUCT && (kind != RUN_MEMCPY || !grows);
        if (moves && m->runs[i].ns.median < m->runs[best].ns.median) {
            best = i;
        }
    }
    return best;
}

/* The instructions run between the two changes of the floating-point state, so their times add up. A stream overlaps
 * with both, and its time includes a call. */
static struct limits limits_of(const struct measurement *m, const struct plan *plan, double stream_ns, int threads)
{
    struct limits limits = {
        .stream_ns = stream_ns, .ports_ns = ports_ns(&plan->ports, m->c, threads), .latency_ns = plan->call_ns};
    const double own_ns = limits.latency_ns + limits.ports_ns;

    limits.ns = stream_ns > own_ns ? stream_ns : own_ns;
    limits.bound = stream_ns > own_ns ? "stream" : limits.ports_ns > limits.latency_ns ? "ports" : "latency";
    limits.reached = m->runs[0].ns.median > 0 ? limits.ns / m->runs[0].ns.median : 0;
    return limits;
}

static void set_results(struct field *field, const struct plan *plan, int threads, int rounds)
{
    struct measurement *m = field->m;

    m->rounds = rounds;
    for (int i = 0; i < m->count; i++) {
        m->runs[i].ns = statistics_of(field->contestants[i].samples, rounds);
        m->runs[i].noisy = statistics_spread(&m->runs[i].ns) > noise_threshold;
    }
    const int mover = fastest_mover(m);
    for (int i = 0; i < m->count; i++) {
        struct run *run = &m->runs[i];
        run->is_mover = i == mover;
        run->noisy = run->noisy && (run->kind < RUN_STREAM || i == mover); /* other streams do not matter */
        run->times_as_fast = median_ratio(field->contestants[i].samples, field->contestants[0].samples, rounds);
    }
    m->limits = limits_of(m, plan, m->runs[mover].ns.median, threads);
}

bool measure(const struct bench_case *c, const struct plan *plan, const struct machine *machine, struct measurement *m)
{
    struct field field = {.m = m};
    struct operands operands;
    npuq_call call;
    const int threads = c->threads > 0 ? c->threads : plan->threads;

    memset(m, 0, sizeof *m);
    m->c = c;
    if (!operands_make(&operands, c)) {
        (void)snprintf(m->failure, sizeof m->failure, "out of memory");
        return false;
    }
    m->elements = bench_elements(c);
    m->bytes_read = operands.x_bytes + operands.parameter_bytes;
    m->bytes_written = operands.y_bytes + operands.small_out_bytes;
    m->level = machine_level(machine, m->bytes_read + m->bytes_written);

    field.from_afar = m->bytes_read + m->bytes_written > machine->cache[1];
    field.reads_twice = bench_is_dynamic(c) && bench_block(c) == 0 &&
                        (c->mode == BENCH_TENSOR || operands.x_bytes / (size_t)c->shape[0] > machine->cache[1]);

    bool right = check_backends(m, &operands, plan, threads);
    if (right && plan->timed) {
        enter_all(&field, &operands, plan, threads);
        right = enter_small(&field, &operands, plan, &call);
        if (plan->with_peers) {
            enter_peers(&field, &operands, threads);
        }
        set_results(&field, plan, threads, timing_run(&plan->timing, field.contestants, m->count));
        finish_peers(&field);
    }
    operands_free(&operands);
    return right;
}

static void run_state(const void *argument)
{
    const npuq_fp_state caller = npuq_fp_enter();

    (void)argument;
    npuq_fp_leave(&caller);
}

static void prepare_nothing(const void *argument)
{
    (void)argument;
}

double measure_call_ns(const struct timing *timing)
{
    struct contestant contestant = {.prepare = prepare_nothing, .run = run_state};
    const int rounds = timing_run(timing, &contestant, 1);

    return statistics_of(contestant.samples, rounds).median;
}

const char *run_kind_name(enum run_kind kind)
{
    static const char *const names[] = {"ours",         "baseline", "peer",       "product", "prepared",
                                        "with tensors", "stream",   "two-passes", "memcpy"};

    return names[kind];
}
