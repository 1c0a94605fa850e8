/* SPDX-License-Identifier: BSD-3-Clause */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE

#include "report.h"

#include "peer.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static double gigabytes_per_second(const struct run *run)
{
    return run->ns.median > 0 ? (double)run->bytes / run->ns.median : 0;
}

static double reached(const struct measurement *m, const struct run *run)
{
    return run->ns.median > 0 ? m->limits.ns / run->ns.median : 0;
}

/* ---- table ----------------------------------------------------------------------------------------------------- */

static const char legend[] =
    "One block for each case: its name; the bytes that it reads and writes; the smallest cache that holds them (L3+:\n"
    "somewhat more than the last one holds; memory: far more); how often everyone took a turn.\n"
    "One line for each way to do its work or to move its bytes:\n"
    "  avx512, avx2, neon,      npuquant with this backend; \"npuquant\" below means the first of them, its fastest\n"
    "  generic, ref\n"
    "  stream, stream-nt        a loop that reads and writes as many bytes as the case and computes nothing: with\n"
    "                           ordinary stores, and with non-temporal ones, which go around the caches\n"
    "  stream-best              the fastest of several streams, which prefetch, some of them four rows at a time; "
    "beyond\n"
    "                           the second cache only. How it goes is at the end of the line\n"
    "  memcpy                   memcpy() that reads and writes as many bytes as the case in all\n"
    "  two-pass, two-pass-nt,   the same that reads x twice, where dynamic quantisation has to: for one scale of a\n"
    "  two-pass-best            tensor, and in rows that the second cache does not hold\n"
    "  prepared                 npuq_call_run() of the whole call, prepared before; of one short row only\n"
    "  with tensors             the same call, making its tensors first; of one short row only\n"
    "  usual data               the same call with usual data, where the case has saturating data, NaN or subnormals\n"
    "  copy first               plain loops that copy the view to contiguous memory (or from there), and the same "
    "call\n"
    "  one thread               the same call on one thread\n"
    "  naive loop, clang loop   a plain loop in C, compiled with -Ofast for the machine that built it, by the\n"
    "                           compiler of this program, and by Clang if it was there\n"
    "  onednn, xnnpack          other libraries, where they do the same work on one thread\n"
    "  product, product to y    oneDNN's product of matrices of int8, 64 deep, on one thread: to int32, and with the\n"
    "                           scales and the type of y of the case, which is dequant. The second less the first is\n"
    "                           what oneDNN's own way from sums to y takes; it may be below 0, as y may be smaller\n"
    "The last line of a case says what it is limited by:\n"
    "  stream                   the time of the fastest line, which is marked: a stream, memcpy, or someone who does\n"
    "                           the work and is faster still. Not memcpy where y is larger than x, since it writes as\n"
    "                           much as it reads; nor a product, or the same call in another way\n"
    "  ports                    the time of the vector instructions that the case needs at least, at the rates that\n"
    "                           were measured first\n"
    "  latency                  the time of a call that only puts the floating-point state aside and back\n"
    "The limit is the longer of two times: that of the stream, and that of ports and latency together. A stream goes\n"
    "on while others compute, and its time includes a call. Who leaves the state alone may pass the limit of a small\n"
    "case.\n"
    "\n"
    "threads        how many work on one call\n"
    "time           of one call: the median; all lines of a case have the same unit\n"
    "spread         of the times, in % of the median: the middle half of them lies in it; NOISY above 10 %\n"
    "GB/s           10^9 bytes in a second, those read and those written, each byte counted once\n"
    "times as fast  how many times as fast npuquant is as this line: above 1 npuquant is faster, 0.5 is half as fast\n"
    "of the limit   the limit divided by the time: 1 is at the limit, 0.5 takes twice as long\n";

static void print_ports(const struct heading *heading)
{
    const struct ports *ports = heading->ports;

    if (ports->lanes == 0) {
        (void)printf("How many instructions this machine executes is not known: limits leave ports out.\n");
        return;
    }
    (void)printf("Vectors of %zu float32 in a nanosecond (%s):", ports->lanes, ports->vectors);
    for (int p = 0; p < PORTS; p++) {
        (void)printf("%s %s %.1f", p > 0 ? "," : "", port_name((enum port)p), ports->per_ns[p]);
    }
    (void)printf(".\n");
}

static void print_caches(const struct machine *machine)
{
    for (int i = 0; i < MACHINE_CACHES; i++) {
        (void)printf(", L%d %zu KiB", i + 1, machine->cache[i] >> 10);
    }
}

void report_table_begin(const struct heading *heading)
{
    const struct machine *machine = heading->machine;
    int count;
    const struct peer *const *others = peers(&count);

    (void)printf("npuquant %s, compiled with %s; run of %s\n", npuq_version(), machine->compiler, machine->date);
    (void)printf("Machine: %s, %d processor%s", machine->cpu, machine->processors, machine->processors == 1 ? "" : "s");
    print_caches(machine);
    (void)printf("\nStreams use %s vectors. ", heading->vectors);
    if (heading->page > 0) {
        (void)printf("Buffers have pages of %zu KiB. ", heading->page >> 10);
    }
    (void)printf("Threads are %stied to processors. Other ways built in:", heading->pinned ? "" : "NOT ");
    for (int i = 0; i < count; i++) {
        (void)printf("%s %s", i > 0 ? "," : "", others[i]->name);
    }
    (void)printf("%s.\n", count > 0 ? "" : " none");
    (void)printf("A call that only puts the floating-point state aside and back takes %.1f ns.\n", heading->call_ns);
    print_ports(heading);
    (void)printf("Chosen: %zu of %zu cases", heading->chosen, heading->all);
    if (heading->rare > 0) {
        (void)printf(", of them %zu rare ones, which only --filter and --full choose", heading->rare);
    }
    (void)printf(". This will take about %.0f s if nothing else is running%s.\n\n%s\n", heading->seconds + 1,
                 heading->seconds < 120 ? "" : "; --budget and --max-elements make it shorter", legend);
    (void)printf("%-12s %7s %12s %8s %8s %14s %13s\n", "", "threads", "time", "spread", "GB/s", "times as fast",
                 "of the limit");
    (void)fflush(stdout);
}

/* One unit for all times of a case: the shortest time is at least 1. */
struct unit {
    const char *name;
    double ns;
};

static struct unit unit_of(const struct measurement *m)
{
    static const struct unit units[] = {{"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    double lowest = m->runs[0].ns.median;
    size_t i = 0;

    for (int r = 1; r < m->count; r++) {
        lowest = m->runs[r].ns.median < lowest ? m->runs[r].ns.median : lowest;
    }
    while (i < 2 && lowest < units[i].ns) {
        i++;
    }
    return units[i];
}

static void print_notes(const struct run *run)
{
    if (run->way.prefetch > 0) {
        (void)printf("  %s stores, %s, prefetching %zu bytes ahead;", run->way.non_temporal ? "non-temporal" : "plain",
                     run->way.four_rows ? "four rows at a time" : "in order", run->way.prefetch);
    }
    (void)printf("%s%s", run->is_mover ? "  the stream" : "", run->noisy ? "  NOISY" : "");
    if (run->compared) {
        (void)printf("  %zu results differ", run->differing);
    }
    (void)printf("\n");
}

void report_table_case(const struct measurement *m)
{
    const struct unit unit = unit_of(m);

    (void)printf("%s  (%zu bytes, in %s; %d rounds)%s%s\n", m->c->name, m->bytes_read + m->bytes_written, m->level,
                 m->rounds, m->failure[0] != '\0' ? "  WRONG: " : "", m->failure);
    for (int i = 0; i < m->count; i++) {
        const struct run *run = &m->runs[i];
        (void)printf("  %-12s %5d %9.2f %s %6.1f %% %8.1f", run->who, run->threads, run->ns.median / unit.ns, unit.name,
                     100 * statistics_spread(&run->ns), gigabytes_per_second(run));
        if (i > 0) {
            (void)printf(" %14.2f", run->times_as_fast);
        } else {
            (void)printf(" %14s", "");
        }
        (void)printf(" %13.2f", reached(m, run));
        print_notes(run);
    }
    if (m->count > 0) {
        (void)printf("  bound by %s: stream %.2f %s, ", m->limits.bound, m->limits.stream_ns / unit.ns, unit.name);
        if (m->limits.ports_ns > 0) {
            (void)printf("ports %.2f %s, ", m->limits.ports_ns / unit.ns, unit.name);
        }
        (void)printf("latency %.1f ns; the limit is %.2f %s\n", m->limits.latency_ns, m->limits.ns / unit.ns,
                     unit.name);
    }
    (void)fflush(stdout);
}

void report_table_end(int noisy_runs, int runs)
{
    if (noisy_runs > 0) {
        (void)printf("WARNING: %d of %d lines are NOISY. Close what else is running.\n", noisy_runs, runs);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void write_string(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ') {
            (void)fprintf(file, "\\u%04x", (unsigned)(unsigned char)*text);
        } else {
            (void)fprintf(file, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
        }
    }
    (void)fputc('"', file);
}

static void write_field(FILE *file, const char *key, const char *text)
{
    (void)fprintf(file, "\"%s\": ", key);
    write_string(file, text);
    (void)fputs(", ", file);
}

static void write_constants(FILE *file, const struct heading *heading)
{
    const struct ports *ports = heading->ports;

    if (ports->lanes > 0) {
        write_field(file, "vectors", ports->vectors);
        for (int p = 0; p < PORTS; p++) {
            (void)fprintf(file, "\"%s_per_ns\": %.4f, ", port_name((enum port)p), ports->per_ns[p]);
        }
    }
    (void)fprintf(file, "\"vector_bits\": %zu, \"call_ns\": %.2f", 32 * ports->lanes, heading->call_ns);
}

void report_json_begin(FILE *file, const struct heading *heading)
{
    const struct machine *machine = heading->machine;

    (void)fputs("{\"schema\": \"npuquant-bench-4\",\n ", file);
    write_field(file, "version", npuq_version());
    write_field(file, "date", machine->date);
    write_field(file, "cpu", machine->cpu);
    write_field(file, "compiler", machine->compiler);
    write_field(file, "stream_vectors", heading->vectors);
    (void)fprintf(file,
                  "\"processors\": %d, \"page_bytes\": %zu, \"pinned\": %s, \"caches\": [%zu, %zu, %zu],\n "
                  "\"constants\": {",
                  machine->processors, heading->page, heading->pinned ? "true" : "false", machine->cache[0],
                  machine->cache[1], machine->cache[2]);
    write_constants(file, heading);
    (void)fputs("},\n \"cases\": [", file);
}

static void write_run(FILE *file, const struct run *run)
{
    (void)fputs("\n    {", file);
    write_field(file, "kind", run_kind_name(run->kind));
    write_field(file, "who", run->who);
    (void)fprintf(file,
                  "\"threads\": %d, \"median_ns\": %.2f, \"q1_ns\": %.2f, \"q3_ns\": %.2f, \"min_ns\": %.2f, "
                  "\"bytes\": %zu",
                  run->threads, run->ns.median, run->ns.q1, run->ns.q3, run->ns.lowest, run->bytes);
    (void)fprintf(file, ", \"npuquant_times_as_fast\": %.4f", run->times_as_fast);
    if (run->way.prefetch > 0) {
        (void)fprintf(file, ", \"non_temporal\": %s, \"four_rows\": %s, \"prefetch\": %zu",
                      run->way.non_temporal ? "true" : "false", run->way.four_rows ? "true" : "false",
                      run->way.prefetch);
    }
    if (run->compared) {
        (void)fprintf(file, ", \"differing\": %zu", run->differing);
    }
    (void)fprintf(file, ", \"noisy\": %s}", run->noisy ? "true" : "false");
}

/* Null: not known. */
static void write_limits(FILE *file, const struct limits *limits)
{
    (void)fprintf(file, "\"limits\": {\"stream_ns\": %.2f, ", limits->stream_ns);
    if (limits->ports_ns > 0) {
        (void)fprintf(file, "\"ports_ns\": %.2f, ", limits->ports_ns);
    } else {
        (void)fputs("\"ports_ns\": null, ", file);
    }
    (void)fprintf(file, "\"latency_ns\": %.2f, \"limit_ns\": %.2f, ", limits->latency_ns, limits->ns);
    write_field(file, "bound", limits->bound);
    (void)fprintf(file, "\"of_limit\": %.4f}, ", limits->reached);
}

void report_json_case(FILE *file, const struct measurement *m, bool first)
{
    const struct bench_case *c = m->c;

    (void)fprintf(file, "%s\n  {", first ? "" : ",");
    write_field(file, "name", c->name);
    write_field(file, "operator", bench_operator_name(c->op));
    write_field(file, "mode", bench_mode_name(c));
    write_field(file, "parameters", bench_parameters_name(c));
    write_field(file, "x", bench_dtype_name(c->x_dtype));
    write_field(file, "y", bench_dtype_name(c->y_dtype));
    (void)fputs("\"shape\": [", file);
    for (int d = 0; d < c->ndim; d++) {
        (void)fprintf(file, "%s%" PRId64, d > 0 ? ", " : "", c->shape[d]);
    }
    (void)fputs("], ", file);
    write_field(file, "level", m->level);
    if (m->failure[0] != '\0') {
        write_field(file, "failure", m->failure);
    }
    if (m->count > 0) {
        write_limits(file, &m->limits);
    }
    (void)fprintf(file,
                  "\"elements\": %zu, \"bytes_read\": %zu, \"bytes_written\": %zu, \"rounds\": %d,\n   \"runs\": [",
                  m->elements, m->bytes_read, m->bytes_written, m->rounds);
    for (int i = 0; i < m->count; i++) {
        (void)fputs(i > 0 ? "," : "", file);
        write_run(file, &m->runs[i]);
    }
    (void)fputs("]}", file);
}

void report_json_end(FILE *file)
{
    (void)fputs("\n]}\n", file);
}

/* ---- progress -------------------------------------------------------------------------------------------------- */

void report_progress(size_t done, size_t all, const char *name)
{
    if (!isatty(STDERR_FILENO)) {
        return;
    }
    (void)fputs("\r\033[K", stderr);
    if (name) {
        (void)fprintf(stderr, "[%zu/%zu] %s", done, all, name);
    }
    (void)fflush(stderr);
}
