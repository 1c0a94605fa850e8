/* SPDX-License-Identifier: BSD-3-Clause */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE

#include "report.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- table ----------------------------------------------------------------------------------------------------- */

void report_table_begin(const struct heading *heading)
{
    const struct machine *machine = heading->machine;

    (void)printf("npuquant %s, %s, %s, %s\n", npuq_version(), machine->date, machine->cpu, machine->compiler);
    (void)printf("caches %zu KiB, %zu KiB, %zu KiB; streams of %s%s\n", machine->cache[0] >> 10,
                 machine->cache[1] >> 10, machine->cache[2] >> 10, heading->vectors,
                 heading->pinned ? "; pinned" : "; NOT pinned");
    (void)printf("floating-point state, of each call: %.1f ns", heading->state.usual_ns);
    if (heading->state.flushing_ns > 0) {
        (void)printf("; where the caller flushes subnormals %.1f ns", heading->state.flushing_ns);
    }
    (void)printf("\n\n");
    (void)printf("%-14s %3s %12s %7s %9s %8s %8s %8s %8s\n", "", "thr", "median", "spread", "Gelem/s", "GB/s", "limit",
                 "2-pass", "baseline");
}

static void print_time(double ns)
{
    if (ns < 1e4) {
        (void)printf(" %9.1f ns", ns);
    } else if (ns < 1e7) {
        (void)printf(" %9.2f us", ns / 1e3);
    } else {
        (void)printf(" %9.2f ms", ns / 1e6);
    }
}

static void print_ratio(double ratio)
{
    if (ratio > 0) {
        (void)printf(" %8.2f", ratio);
    } else {
        (void)printf(" %8s", "");
    }
}

void report_table_case(const struct measurement *m)
{
    (void)printf("%s  (%s, %d rounds)%s%s\n", m->c->name, m->level, m->rounds, m->failure[0] != '\0' ? "  WRONG: " : "",
                 m->failure);
    for (int i = 0; i < m->count; i++) {
        const struct run *run = &m->runs[i];
        (void)printf("  %-12s %3d", run->who, run->threads);
        print_time(run->ns.median);
        (void)printf(" %5.1f%%%s", 100 * statistics_spread(&run->ns), run->noisy ? "!" : " ");
        (void)printf(" %9.2f %8.1f", (double)m->elements / run->ns.median, (double)run->bytes / run->ns.median);
        if (run->kind == RUN_OURS || run->kind == RUN_BASELINE || run->kind == RUN_PEER) {
            print_ratio(run->of_limit);
            print_ratio(run->of_two_passes);
            print_ratio(run->of_baseline);
        }
        if (run->kind == RUN_PEER) {
            (void)printf("  %zu differ", run->differing);
        }
        (void)printf("\n");
    }
    (void)fflush(stdout);
}

void report_table_end(int cases, int noisy_runs, int runs)
{
    (void)printf(
        "\n%d cases. limit: the time of the faster stream that moves the same bytes, divided by this time;\n"
        "2-pass: the same for reading x twice; baseline: the time of the line so named, divided by this time.\n",
        cases);
    if (noisy_runs > 0) {
        (void)printf("WARNING: noise: %d of %d lines, marked !, spread over more than 10 %% (interquartile range over "
                     "median).\n",
                     noisy_runs, runs);
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

void report_json_begin(FILE *file, const struct heading *heading)
{
    const struct machine *machine = heading->machine;

    (void)fputs("{\"schema\": \"npuquant-bench-1\",\n ", file);
    write_field(file, "version", npuq_version());
    write_field(file, "date", machine->date);
    write_field(file, "cpu", machine->cpu);
    write_field(file, "compiler", machine->compiler);
    write_field(file, "stream_vectors", heading->vectors);
    (void)fprintf(file,
                  "\"processors\": %d, \"pinned\": %s, \"caches\": [%zu, %zu, %zu],\n "
                  "\"state_ns\": %.2f, \"flushing_state_ns\": %.2f,\n \"cases\": [",
                  machine->processors, heading->pinned ? "true" : "false", machine->cache[0], machine->cache[1],
                  machine->cache[2], heading->state.usual_ns, heading->state.flushing_ns);
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
    (void)fprintf(file, ", \"of_limit\": %.4f", run->of_limit);
    if (run->of_two_passes > 0) {
        (void)fprintf(file, ", \"of_two_passes\": %.4f", run->of_two_passes);
    }
    if (run->of_baseline > 0) {
        (void)fprintf(file, ", \"of_baseline\": %.4f", run->of_baseline);
    }
    if (run->kind == RUN_PEER) {
        (void)fprintf(file, ", \"differing\": %zu", run->differing);
    }
    (void)fprintf(file, ", \"noisy\": %s}", run->noisy ? "true" : "false");
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
