/* SPDX-License-Identifier: BSD-3-Clause */
/* npuquant-bench: how fast the operators are, against what the machine can do. */
#include "limit.h"
#include "machine.h"
#include "measure.h"
#include "pool.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: npuquant-bench [options]\n"
    "\n"
    "Times the operators in turns with streams that move the same bytes. Every result is compared with the reference\n"
    "first; the exit status is 1 if one is wrong.\n"
    "\n"
    "  --filter TEXT[,TEXT...]  only cases whose name contains one of these, from the whole list;\n"
    "                           ^ stands for the beginning of a name and $ for its end\n"
    "  --set NAME[,NAME...]     only these: models, sweep, layout, overhead, threads\n"
    "  --full                   all cases; otherwise, and without --filter, those that are usual\n"
    "  --backend NAME[,NAME...] or all; otherwise all that have vectors\n"
    "  --threads N              use N threads (default 1)\n"
    "  --json FILE              write the results to FILE\n"
    "  --list                   print the names of the cases and stop\n"
    "  --quick                  check the results, and time hardly at all\n"
    "  --budget SECONDS         time for a case (default 0.25)\n"
    "  --prefetch BYTES         let the streams prefetch so far ahead (default 0: no)\n"
    "  --max-elements N         leave larger cases out\n"
    "  --no-pin                 leave threads where the system puts them\n"
    "  --no-peers               leave other libraries out\n"
    "  --help                   print this\n";

struct options {
    const char *filter;
    const char *set;
    const char *backend;
    const char *json;
    bool full;
    bool list;
    bool quick;
    bool pin;
    bool with_peers;
    double budget;
    double threads;
    double prefetch;
    double max_elements;
};

static bool fail(const char *what, const char *value)
{
    (void)fprintf(stderr, "npuquant-bench: %s: %s\n", what, value);
    return false;
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static bool parse_number(const char *name, const char *text, double lowest, double highest, double *value)
{
    char *end;

    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !(*value >= lowest && *value <= highest)) {
        return fail(name, "not a number, or out of range");
    }
    return true;
}

static bool parse(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        const char **text;
        bool *flag;
        bool value; /* of the flag */
        double *number;
        double lowest;
        double highest;
    } known[] = {
        {"--filter", &o->filter, NULL, false, NULL, 0, 0},
        {"--set", &o->set, NULL, false, NULL, 0, 0},
        {"--backend", &o->backend, NULL, false, NULL, 0, 0},
        {"--json", &o->json, NULL, false, NULL, 0, 0},
        {"--full", NULL, &o->full, true, NULL, 0, 0},
        {"--list", NULL, &o->list, true, NULL, 0, 0},
        {"--quick", NULL, &o->quick, true, NULL, 0, 0},
        {"--no-pin", NULL, &o->pin, false, NULL, 0, 0},
        {"--no-peers", NULL, &o->with_peers, false, NULL, 0, 0},
        {"--budget", NULL, NULL, false, &o->budget, 0, 3600},
        {"--threads", NULL, NULL, false, &o->threads, 1, POOL_MAX_THREADS},
        {"--prefetch", NULL, NULL, false, &o->prefetch, 0, 65536},
        {"--max-elements", NULL, NULL, false, &o->max_elements, 1, 1e18},
    };
    const size_t count = sizeof known / sizeof known[0];

    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(help, stdout);
            exit(0);
        }
        while (k < count && strcmp(argv[i], known[k].name) != 0) {
            k++;
        }
        if (k == count) {
            return fail(argv[i], "unknown option; see --help");
        }
        if (known[k].flag) {
            *known[k].flag = known[k].value;
            continue;
        }
        if (++i == argc) {
            return fail(known[k].name, "a value is missing");
        }
        if (known[k].text) {
            *known[k].text = argv[i];
        } else if (!parse_number(known[k].name, argv[i], known[k].lowest, known[k].highest, known[k].number)) {
            return false;
        }
    }
    return true;
}

/* Calls found(context, word) for each word between commas until it is true. */
static bool any_word(const char *words, bool (*found)(const void *context, const char *word), const void *context)
{
    char word[128];

    for (const char *start = words; *start != '\0';) {
        const size_t length = strcspn(start, ",");
        (void)snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), start);
        if (found(context, word)) {
            return true;
        }
        start += length + (start[length] == ',');
    }
    return false;
}

static bool name_contains(const void *context, const char *word)
{
    char marked[128]; /* a word may begin or end with a mark: a name has both */

    (void)snprintf(marked, sizeof marked, "^%s$", (const char *)context);
    return strstr(marked, word) != NULL;
}

static bool is_word(const void *context, const char *word)
{
    return strcmp(context, word) == 0;
}

static bool in_set(const char *words, unsigned sets)
{
    static const struct {
        unsigned set;
        const char *name;
    } names[] = {{BENCH_MODELS, "models"},
                 {BENCH_SWEEP, "sweep"},
                 {BENCH_LAYOUT, "layout"},
                 {BENCH_OVERHEAD, "overhead"},
                 {BENCH_THREADS, "threads"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((sets & names[i].set) && any_word(words, is_word, names[i].name)) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct options *o, const struct bench_case *c, int processors)
{
    if ((double)bench_elements(c) > o->max_elements || c->threads > processors) {
        return false;
    }
    if (o->filter && !any_word(o->filter, name_contains, c->name)) {
        return false;
    }
    if (o->set) {
        return in_set(o->set, c->sets);
    }
    return o->full || o->filter || c->sets != BENCH_RARE;
}

static bool choose_backends(const struct options *o, struct plan *plan)
{
    static const npuq_backend all[] = {NPUQ_BACKEND_AVX512, NPUQ_BACKEND_AVX2, NPUQ_BACKEND_NEON, NPUQ_BACKEND_REF};
    const bool every = o->backend && strcmp(o->backend, "all") == 0;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *name = npuq_backend_name(all[i]);
        const bool named = o->backend && !every && any_word(o->backend, is_word, name);
        const bool last_resort = all[i] == NPUQ_BACKEND_REF && plan->backend_count == 0;
        if (!npuq_backend_available(all[i])) {
            if (named) {
                return fail(name, "this backend is not available");
            }
            continue;
        }
        if (named || every || (!o->backend && (all[i] != NPUQ_BACKEND_REF || last_resort))) {
            plan->backends[plan->backend_count++] = all[i];
        }
    }
    return plan->backend_count > 0 || fail("--backend", "no such backend");
}

/* ---- running --------------------------------------------------------------------------------------------------- */

struct session {
    struct options options;
    struct machine machine;
    struct heading heading;
    struct plan plan;
    struct bench_case *cases; /* the wanted ones first */
    size_t count;
    FILE *json;
};

static bool prepare(struct session *s)
{
    const struct options *o = &s->options;
    struct plan *plan = &s->plan;
    size_t all;

    machine_describe(&s->machine);
    if (!choose_backends(o, plan)) {
        return false;
    }
    s->cases = bench_cases(&all);
    if (!s->cases) {
        return fail("cases", "out of memory");
    }
    int threads = (int)o->threads;
    for (size_t i = 0; i < all; i++) {
        if (is_wanted(o, &s->cases[i], s->machine.processors)) {
            s->cases[s->count++] = s->cases[i];
            threads = s->cases[i].threads > threads ? s->cases[i].threads : threads;
        }
    }
    if (s->count == 0) {
        return fail("--filter", "no such case; see --list");
    }
    if (o->list) {
        return true;
    }
    s->heading.machine = &s->machine;
    s->heading.vectors = bench_limit_choose((size_t)o->prefetch);
    s->heading.pinned = o->pin && machine_pin(0);
    plan->threads = (int)o->threads;
    plan->with_peers = o->with_peers;
    plan->timed = true;
    plan->timing = (struct timing){.sample_ns = 1e6, .budget_ns = o->budget * 1e9, .min_rounds = 7, .max_rounds = 41};
    if (o->quick) {
        plan->timing = (struct timing){.sample_ns = 1, .budget_ns = 0, .min_rounds = 1, .max_rounds = 1};
    }
    s->heading.state = state_cost(&plan->timing);
    if (pool_start(threads, o->pin) < threads) {
        return fail("--threads", "the system has no more threads");
    }
    if (o->json) {
        s->json = fopen(o->json, "w");
        if (!s->json) {
            return fail(o->json, strerror(errno));
        }
    }
    return true;
}

static bool run(struct session *s)
{
    int noisy = 0;
    int runs = 0;
    bool right = true;

    report_table_begin(&s->heading);
    if (s->json) {
        report_json_begin(s->json, &s->heading);
    }
    for (size_t i = 0; i < s->count; i++) {
        struct measurement m;
        report_progress(i + 1, s->count, s->cases[i].name);
        right = measure(&s->cases[i], &s->plan, &s->machine, &m) && right;
        report_progress(0, 0, NULL);
        report_table_case(&m);
        if (s->json) {
            report_json_case(s->json, &m, i == 0);
        }
        for (int r = 0; r < m.count; r++) {
            noisy += m.runs[r].noisy;
            runs++;
        }
    }
    report_table_end((int)s->count, noisy, runs);
    if (s->json) {
        report_json_end(s->json);
        if (fclose(s->json) != 0) {
            return fail(s->options.json, strerror(errno));
        }
    }
    return right || fail("results", "some are wrong: see above");
}

int main(int argc, char **argv)
{
    static struct session s = {
        .options = {.pin = true, .with_peers = true, .budget = 0.25, .threads = 1, .max_elements = 1e18},
    };
    bool done = parse(argc, argv, &s.options) && prepare(&s);

    if (done && s.options.list) {
        for (size_t i = 0; i < s.count; i++) {
            (void)puts(s.cases[i].name);
        }
    } else {
        done = done && run(&s);
    }
    free(s.cases);
    return done ? 0 : 1;
}
