/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include "peer.h"

#include <stdio.h>

static void write_string(const char *text)
{
    (void)putchar('"');
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ') {
            (void)printf("\\u%04x", (unsigned)(unsigned char)*text);
        } else {
            (void)printf("%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
        }
    }
    (void)putchar('"');
}

static void write_field(const char *key, const char *text)
{
    (void)printf("\"%s\": ", key);
    write_string(text);
    (void)fputs(", ", stdout);
}

static void write_constants(const struct heading *heading)
{
    const struct ports *ports = heading->ports;

    if (ports->lanes > 0) {
        write_field("vectors", ports->vectors);
        for (int p = 0; p < PORTS; p++) {
            (void)printf("\"%s_per_ns\": %.4f, ", port_name((enum port)p), ports->per_ns[p]);
        }
    }
    (void)printf("\"vector_bits\": %zu, \"call_ns\": %.2f", 32 * ports->lanes, heading->call_ns);
}

void report_machine(const struct heading *heading)
{
    const struct machine *machine = heading->machine;
    int count;
    const struct peer *const *others = peers(&count);

    (void)putchar('{');
    write_field("schema", "npuquant-bench-5");
    write_field("version", npuq_version());
    write_field("date", machine->date);
    write_field("cpu", machine->cpu);
    write_field("compiler", machine->compiler);
    write_field("stream_vectors", heading->vectors);
    (void)fputs("\"others\": [", stdout);
    for (int i = 0; i < count; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        write_string(others[i]->name);
    }
    (void)printf("], \"processors\": %d, \"page_bytes\": %zu, \"pinned\": %s, \"caches\": [%zu, %zu, %zu], ",
                 machine->processors, heading->page, heading->pinned ? "true" : "false", machine->cache[0],
                 machine->cache[1], machine->cache[2]);
    (void)fputs("\"constants\": {", stdout);
    write_constants(heading);
    (void)fputs("}}\n", stdout);
    (void)fflush(stdout);
}

static void write_run(const struct run *run)
{
    (void)putchar('{');
    write_field("kind", run_kind_name(run->kind));
    write_field("who", run->who);
    (void)printf("\"threads\": %d, \"median_ns\": %.2f, \"q1_ns\": %.2f, \"q3_ns\": %.2f, \"min_ns\": %.2f, "
                 "\"bytes\": %zu",
                 run->threads, run->ns.median, run->ns.q1, run->ns.q3, run->ns.lowest, run->bytes);
    (void)printf(", \"npuquant_times_as_fast\": %.4f", run->times_as_fast);
    if (run->way.prefetch > 0) {
        (void)printf(", \"non_temporal\": %s, \"four_rows\": %s, \"prefetch\": %zu",
                     run->way.non_temporal ? "true" : "false", run->way.four_rows ? "true" : "false",
                     run->way.prefetch);
    }
    if (run->compared) {
        (void)printf(", \"differing\": %zu", run->differing);
    }
    (void)printf(", \"is_stream\": %s, \"noisy\": %s}", run->is_mover ? "true" : "false",
                 run->noisy ? "true" : "false");
}

/* Null: not known. */
static void write_limits(const struct limits *limits)
{
    (void)printf("\"limits\": {\"stream_ns\": %.2f, ", limits->stream_ns);
    if (limits->ports_ns > 0) {
        (void)printf("\"ports_ns\": %.2f, ", limits->ports_ns);
    } else {
        (void)fputs("\"ports_ns\": null, ", stdout);
    }
    (void)printf("\"latency_ns\": %.2f, \"limit_ns\": %.2f, ", limits->latency_ns, limits->ns);
    write_field("bound", limits->bound);
    (void)printf("\"of_limit\": %.4f}, ", limits->reached);
}

void report_case(const struct measurement *m)
{
    (void)putchar('{');
    write_field("name", m->c->name);
    write_field("level", m->level);
    if (m->failure[0] != '\0') {
        write_field("failure", m->failure);
    }
    if (m->count > 0) {
        write_limits(&m->limits);
    }
    (void)printf("\"elements\": %zu, \"bytes_read\": %zu, \"bytes_written\": %zu, \"rounds\": %d, \"runs\": [",
                 m->elements, m->bytes_read, m->bytes_written, m->rounds);
    for (int i = 0; i < m->count; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        write_run(&m->runs[i]);
    }
    (void)fputs("]}\n", stdout);
    (void)fflush(stdout);
}
