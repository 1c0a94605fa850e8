/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include "limit.h"
#include "peer.h"
#include "pool.h"

#include <stdio.h>
#include <string.h>

static const double noise_threshold = 0.10;

/* What a contestant needs to know. */
struct context {
    const struct operands *operands;
    enum run_kind kind;
    npuq_backend backend; /* ours and baseline */
    const npuq_executor *executor;
    int threads;
    enum bench_stores stores;
    const struct peer *peer;
};

/* ---- contestants ----------------------------------------------------------------------------------------------- */

static void prepare(const void *argument)
{
    const struct context *context = argument;

    if (context->kind == RUN_OURS || context->kind == RUN_BASELINE) {
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

/* A share of the rows for each thread, cut where both sides are aligned: `grain` bytes of y. */
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

    return (struct share){(const char *)o->x.data + x_begin, (char *)o->y.data + begin, x_end - x_begin, end - begin};
}

/* A single parameter is not worth a call. */
static void read_parameters(const struct operands *o)
{
    if (o->scale_bytes >= 64) {
        bench_read(o->scale.data, o->scale_bytes);
    }
    if (o->offset_bytes >= 64) {
        bench_read(o->offset.data, o->offset_bytes);
    }
}

static void stream_share(void *argument, int i, int threads)
{
    const struct context *context = argument;
    const struct share share = share_of(context->operands, i, threads);

    if (i == 0) {
        read_parameters(context->operands);
    }
    bench_stream(share.x, share.x_size, share.y, share.y_size, context->stores);
}

/* A token's row twice, then the next one's; a tensor twice. */
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
    if (o->c->by_tensor) {
        bench_read(share.x, share.x_size);
        bench_stream(share.x, share.x_size, share.y, share.y_size, context->stores);
        return;
    }
    for (size_t done = 0; done < share.y_size; done += row) {
        const size_t y_size = share.y_size - done < row ? share.y_size - done : row;
        const char *x = share.x + done * ratio / 2;
        bench_read(x, y_size * ratio / 2);
        bench_stream(x, y_size * ratio / 2, share.y + done, y_size, context->stores);
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

static void memcpy_share(void *argument, int i, int threads)
{
    const struct context *context = argument;
    const struct operands *o = context->operands;
    const size_t size = (o->x_bytes + o->y_bytes) / 2;
    const size_t from = o->x_bytes < size ? 0 : (o->x_bytes - size) / 2 / 64 * 64;
    const size_t copied = o->x_bytes < size ? o->x_bytes : size;
    const size_t begin = copied / 64 * (size_t)i / (size_t)threads * 64;
    const size_t end = i + 1 == threads ? copied : copied / 64 * ((size_t)i + 1) / (size_t)threads * 64;

    memcpy((char *)o->copy + begin, (const char *)o->x.data + from + begin, end - begin);
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
};

static struct run *enter(struct field *field, const struct context *context, const char *who)
{
    static void (*const runs[])(const void *) = {run_ours,   run_baseline,   run_peer,
                                                 run_stream, run_two_passes, run_memcpy};
    struct measurement *m = field->m;

    if (m->count == MEASURE_MAX_RUNS) {
        return NULL;
    }
    struct run *run = &m->runs[m->count];
    memset(run, 0, sizeof *run);
    run->kind = context->kind;
    run->threads = context->threads;
    run->bytes = m->bytes_read + m->bytes_written;
    (void)snprintf(run->who, sizeof run->who, "%s", who);
    field->contexts[m->count] = *context;
    field->contestants[m->count] = (struct contestant){
        .prepare = prepare,
        .run = runs[context->kind],
        .context = &field->contexts[m->count],
    };
    m->count++;
    return run;
}

static void enter_limits(struct field *field, const struct operands *o, int threads)
{
    const struct bench_case *c = o->c;

    for (int kind = RUN_STREAM; kind <= RUN_TWO_PASSES; kind++) {
        for (int stores = BENCH_PLAIN_STORES; stores <= BENCH_NON_TEMPORAL_STORES; stores++) {
            const struct context context = {
                .operands = o, .kind = (enum run_kind)kind, .threads = threads, .stores = (enum bench_stores)stores};
            const bool plain = stores == BENCH_PLAIN_STORES;
            if ((kind == RUN_TWO_PASSES && c->op != BENCH_DYNAMIC) || (!plain && !bench_has_non_temporal())) {
                continue;
            }
            (void)enter(field, &context,
                        kind == RUN_STREAM ? (plain ? "stream" : "stream-nt") : (plain ? "two-pass" : "two-pass-nt"));
        }
    }
    const struct context copy = {.operands = o, .kind = RUN_MEMCPY, .threads = threads};
    struct run *run = enter(field, &copy, "memcpy");
    if (run) {
        const size_t half = (o->x_bytes + o->y_bytes) / 2;
        run->bytes = 2 * (o->x_bytes < half ? o->x_bytes : half);
    }
}

static const char *baseline_name(enum bench_baseline baseline)
{
    switch (baseline) {
    case BENCH_MULTIPLY: return "multiply";
    case BENCH_CONTIGUOUS: return "contiguous";
    case BENCH_ROW_KERNEL: return "row kernel";
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
        (void)enter(field, &context, npuq_backend_name(plan->backends[i]));
        if (i == 0 && c->baseline != BENCH_NO_BASELINE) {
            context.kind = RUN_BASELINE;
            context.threads = 1;
            (void)enter(field, &context, baseline_name(c->baseline));
        }
    }
    enter_limits(field, o, threads);
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

/* The peers stay prepared until they have been timed. */
static void enter_peers(struct field *field, struct operands *o, int threads)
{
    int count;
    const struct peer *const *all = peers(&count);

    for (int i = 0; i < count && threads == 1; i++) {
        const struct context context = {.operands = o, .kind = RUN_PEER, .threads = 1, .peer = all[i]};
        memset(o->y.data, 0x55, o->y_bytes);
        if (!all[i]->prepare(o)) {
            continue;
        }
        all[i]->run();
        const size_t differing = operands_differing(o);
        struct run *run = enter(field, &context, all[i]->name);
        if (run) {
            run->differing = differing;
        }
    }
}

static void finish_peers(const struct field *field)
{
    for (int i = 0; i < field->m->count; i++) {
        if (field->contexts[i].kind == RUN_PEER) {
            field->contexts[i].peer->finish();
        }
    }
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* The faster of the runs of a kind; -1 if there is none. */
static int fastest(const struct measurement *m, enum run_kind kind)
{
    int best = -1;

    for (int i = 0; i < m->count; i++) {
        if (m->runs[i].kind == kind && (best < 0 || m->runs[i].ns.median < m->runs[best].ns.median)) {
            best = i;
        }
    }
    return best;
}

static void set_results(struct field *field, int rounds)
{
    struct measurement *m = field->m;

    m->rounds = rounds;
    for (int i = 0; i < m->count; i++) {
        m->runs[i].ns = statistics_of(field->contestants[i].samples, rounds);
        m->runs[i].noisy = statistics_spread(&m->runs[i].ns) > noise_threshold;
    }
    const int limit = fastest(m, RUN_STREAM);
    const int two_passes = fastest(m, RUN_TWO_PASSES);
    const int baseline = fastest(m, RUN_BASELINE);
    for (int i = 0; i < m->count; i++) { /* the slower streams do not matter */
        const enum run_kind kind = m->runs[i].kind;
        m->runs[i].noisy = m->runs[i].noisy && (kind < RUN_STREAM || i == limit || i == two_passes);
    }
    for (int i = 0; i < m->count; i++) {
        const double *samples = field->contestants[i].samples;
        const struct run *run = &m->runs[i];
        if (limit >= 0 && run->threads == m->runs[limit].threads) {
            m->runs[i].of_limit = median_ratio(field->contestants[limit].samples, samples, rounds);
        }
        if (two_passes >= 0 && run->threads == m->runs[two_passes].threads) {
            m->runs[i].of_two_passes = median_ratio(field->contestants[two_passes].samples, samples, rounds);
        }
        if (baseline >= 0 && i == 0) { /* it is one of the first backend */
            m->runs[i].of_baseline = median_ratio(field->contestants[baseline].samples, samples, rounds);
        }
    }
}

bool measure(const struct bench_case *c, const struct plan *plan, const struct machine *machine, struct measurement *m)
{
    struct field field = {.m = m};
    struct operands operands;
    const int threads = c->threads > 0 ? c->threads : plan->threads;

    memset(m, 0, sizeof *m);
    m->c = c;
    if (!operands_make(&operands, c)) {
        (void)snprintf(m->failure, sizeof m->failure, "out of memory");
        return false;
    }
    m->elements = bench_elements(c);
    m->bytes_read = operands.x_bytes + operands.scale_bytes + operands.offset_bytes;
    m->bytes_written = operands.y_bytes + operands.small_out_bytes;
    m->level = machine_level(machine, m->bytes_read + m->bytes_written);

    const bool right = check_backends(m, &operands, plan, threads);
    if (right && plan->timed) {
        enter_all(&field, &operands, plan, threads);
        if (plan->with_peers) {
            enter_peers(&field, &operands, threads);
        }
        set_results(&field, timing_run(&plan->timing, field.contestants, m->count));
        finish_peers(&field);
    }
    operands_free(&operands);
    return right;
}

const char *run_kind_name(enum run_kind kind)
{
    static const char *const names[] = {"ours", "baseline", "peer", "stream", "two-passes", "memcpy"};

    return names[kind];
}
