/* SPDX-License-Identifier: BSD-3-Clause */
/* npuquant-bench: how fast the operators are, against what the machine can do. */
#include "limit.h"
#include "machine.h"
#include "measure.h"
#include "pool.h"
#include "report.h"

#include "kernels/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: npuquant-bench [options]\n"
    "\n"
    "Measures how fast npuquant's operators are on this machine, compared with streams (loops that move the same\n"
    "bytes and compute nothing), with memcpy, and with other libraries that were found when the program was built.\n"
    "All take turns on the same data. Every result is compared with the reference first; the exit status is 1 if one\n"
    "is wrong. The output begins with what its lines and columns mean, and how long the run will take.\n"
    "\n"
    "Which cases (without these options, those of all sets):\n"
    "  --filter TEXT[,TEXT...]  all cases whose name contains one of these texts, rare ones too, which no set has;\n"
    "                           ^ stands for the beginning of a name and $ for its end\n"
    "  --set NAME[,NAME...]     only cases of these sets: models (usual shapes and types), sweep (of sizes), layout\n"
    "                           (a scale for each index of the middle dimension), overhead (of small calls), threads\n"
    "                           (two against one), sizes (short rows, a long row), views (strided, reversed,\n"
    "                           transposed), data (that saturates, NaN, subnormal numbers)\n"
    "  --full                   all cases\n"
    "  --shape N[xN[xN]]        measure the chosen operators at this shape of x instead of the listed ones: 64x4096\n"
    "                           is 64 rows of 4096 columns. One number is a shape for trans_quant_param, three are\n"
    "                           one for quantize/div/axis. int4 needs a last number that is a multiple of 8\n"
    "  --max-elements N         leave out cases with more elements\n"
    "  --list                   print the names of the chosen cases and stop; they are made of operator/mode/\n"
    "                           parameters/type of x-type of y/shape; /nan and others where the data or the view is\n"
    "                           unusual, /t2 where a case needs two threads\n"
    "\n"
    "What takes part:\n"
    "  --backend NAME[,NAME...] these backends: avx512, avx2, neon, generic, ref; or all; otherwise all but the\n"
    "                           last two, if there is another\n"
    "  --threads N              N threads for each case (default 1)\n"
    "  --no-peers               leave other libraries out\n"
    "\n"
    "How it is measured:\n"
    "  --budget SECONDS         time for the rounds of one case (default 0.25); 7 to 41 rounds are made in any case\n"
    "  --quick                  check the results, and time one round only: the times mean nothing\n"
    "  --no-pin                 do not tie threads to processors\n"
    "  --prefetch BYTES         let stream-best prefetch so far ahead (default 0: the best of several distances)\n"
    "  --huge-pages             ask the system for pages of 2 MiB for the buffers (madvise)\n"
    "\n"
    "Results:\n"
    "  --json FILE              write them to FILE as JSON, too; bench/page makes tables and pictures of that\n"
    "  --help                   print this and stop\n";

struct options {
    const char *filter;
    const char *set;
    const char *backend;
    const char *json;
    const char *shape;
    int64_t extents[BENCH_MAX_NDIM]; /* of shape */
    int ndim;                        /* of shape; 0: none is given */
    bool full;
    bool list;
    bool quick;
    bool pin;
    bool with_peers;
    bool huge_pages;
    double budget;
    double threads;
    double prefetch;
    double max_elements;
};

enum { WORD = 128, MESSAGE = 256 };

static bool fail(const char *what, const char *message)
{
    (void)fprintf(stderr, "npuquant-bench: %s: %s\n", what, message);
    return false;
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static bool parse_number(const char *name, const char *text, double lowest, double highest, double *value)
{
    char message[MESSAGE];
    char *end;

    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !(*value >= lowest && *value <= highest)) {
        (void)snprintf(message, sizeof message, "found '%.100s', expected a number from %.15g to %.15g", text, lowest,
                       highest);
        return fail(name, message);
    }
    return true;
}

static bool parse_shape(struct options *o)
{
    char message[MESSAGE];
    const char *text = o->shape;
    double elements = 1;

    if (!o->shape) {
        return true;
    }
    while (o->ndim < BENCH_MAX_NDIM && *text >= '0' && *text <= '9') {
        char *end;
        o->extents[o->ndim] = strtoll(text, &end, 10);
        elements *= (double)o->extents[o->ndim++];
        if (*end == '\0' && elements >= 1 && elements <= 0x1p40) {
            return true;
        }
        text = *end == 'x' ? end + 1 : "";
    }
    (void)snprintf(message, sizeof message,
                   "found '%.100s', expected one to three positive numbers, such as 64x4096, and at most 2^40 elements",
                   o->shape);
    return fail("--shape", message);
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
        {"--shape", &o->shape, NULL, false, NULL, 0, 0},
        {"--full", NULL, &o->full, true, NULL, 0, 0},
        {"--list", NULL, &o->list, true, NULL, 0, 0},
        {"--quick", NULL, &o->quick, true, NULL, 0, 0},
        {"--no-pin", NULL, &o->pin, false, NULL, 0, 0},
        {"--no-peers", NULL, &o->with_peers, false, NULL, 0, 0},
        {"--huge-pages", NULL, &o->huge_pages, true, NULL, 0, 0},
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
    return parse_shape(o);
}

/* ---- choosing -------------------------------------------------------------------------------------------------- */

/* The words between commas, one after the other; false after the last. */
static bool next_word(const char **rest, char *word)
{
    const size_t length = strcspn(*rest, ",");

    if (**rest == '\0') {
        return false;
    }
    (void)snprintf(word, WORD, "%.*s", (int)(length < WORD ? length : WORD - 1), *rest);
    *rest += length + ((*rest)[length] == ',');
    return true;
}

static bool has_word(const char *words, const char *wanted)
{
    char word[WORD];

    while (next_word(&words, word)) {
        if (strcmp(word, wanted) == 0) {
            return true;
        }
    }
    return false;
}

static bool name_contains(const char *name, const char *word)
{
    char marked[WORD]; /* a word may begin or end with a mark: a name has both */

    (void)snprintf(marked, sizeof marked, "^%s$", name);
    return strstr(marked, word) != NULL;
}

static bool name_contains_any(const char *name, const char *words)
{
    char word[WORD];

    while (next_word(&words, word)) {
        if (name_contains(name, word)) {
            return true;
        }
    }
    return false;
}

static const struct {
    unsigned set;
    const char *name;
} sets[] = {{BENCH_MODELS, "models"},   {BENCH_SWEEP, "sweep"}, {BENCH_LAYOUT, "layout"}, {BENCH_OVERHEAD, "overhead"},
            {BENCH_THREADS, "threads"}, {BENCH_SIZES, "sizes"}, {BENCH_VIEWS, "views"},   {BENCH_DATA, "data"}};

static unsigned sets_of(const char *words)
{
    unsigned found = 0;

    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        found |= has_word(words, sets[i].name) ? sets[i].set : 0;
    }
    return found;
}

static bool fail_unknown(const char *option, const char *word, const char *expected)
{
    char message[MESSAGE];

    (void)snprintf(message, sizeof message, "found '%s', expected %s", word, expected);
    return fail(option, message);
}

/* How names begin, each beginning once. */
static void print_kinds(const struct bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char kind[sizeof cases->name];
        bool seen = false;
        (void)snprintf(kind, sizeof kind, "%s/%s/%s/", bench_operator_name(cases[i].op), bench_mode_name(&cases[i]),
                       bench_parameters_name(&cases[i]));
        for (size_t k = 0; k < i && !seen; k++) {
            seen = strncmp(cases[k].name, kind, strlen(kind)) == 0;
        }
        if (!seen) {
            (void)fprintf(stderr, "  %s\n", kind);
        }
    }
}

/* Every word of --filter and --set chooses something. */
static bool check_words(const struct options *o, const struct bench_case *cases, size_t count)
{
    const char *rest = o->filter ? o->filter : "";
    char word[WORD];

    while (next_word(&rest, word)) {
        size_t i = 0;
        while (i < count && !name_contains(cases[i].name, word)) {
            i++;
        }
        if (i == count) {
            (void)fail_unknown("--filter", word,
                               o->shape ? "a part of the name of a case that --shape fits (trans_quant_param takes one "
                                          "number, int4 a multiple of 8); names begin with"
                                        : "a part of a case's name; names begin with");
            print_kinds(cases, count);
            (void)fprintf(stderr,
                          "and end with types and shape, as in %s; --full --list prints all %zu of them, "
                          "--shape gives them another shape\n",
                          cases[0].name, count);
            return false;
        }
    }
    rest = o->set ? o->set : "";
    while (next_word(&rest, word)) {
        if (sets_of(word) == 0) {
            return fail_unknown("--set", word, "models, sweep, layout, overhead, threads, sizes, views or data");
        }
    }
    return true;
}

static bool is_wanted(const struct options *o, const struct bench_case *c, int processors)
{
    if ((double)bench_elements(c) > o->max_elements || c->threads > processors) {
        return false;
    }
    if (o->filter && !name_contains_any(c->name, o->filter)) {
        return false;
    }
    if (o->set) {
        return (sets_of(o->set) & c->sets) != 0;
    }
    return o->full || o->filter || c->sets != BENCH_RARE;
}

static bool choose_backends(const struct options *o, struct plan *plan)
{
#define BACKEND_ID(ID, name) NPUQ_BACKEND_##ID,
    static const npuq_backend all[] = {NPUQ_EACH_BACKEND(BACKEND_ID)};
    const size_t count = sizeof all / sizeof all[0];
    const bool every = o->backend && strcmp(o->backend, "all") == 0;
    const char *rest = o->backend && !every ? o->backend : "";
    char word[WORD];

    while (next_word(&rest, word)) {
        size_t i = 0;
        while (i < count && strcmp(word, npuq_backend_name(all[i])) != 0) {
            i++;
        }
        if (i == count) {
            return fail_unknown("--backend", word, "avx512, avx2, neon, generic, ref or all");
        }
        if (!npuq_backend_available(all[i])) {
            return fail_unknown("--backend", word, "one that this build has and this CPU runs");
        }
    }
    for (size_t i = 0; i < count; i++) {
        const bool fallback = all[i] == NPUQ_BACKEND_GENERIC || all[i] == NPUQ_BACKEND_REF;
        const bool wanted = o->backend ? every || has_word(o->backend, npuq_backend_name(all[i]))
                                       : !fallback || plan->backend_count == 0;
        if (wanted && npuq_backend_available(all[i])) {
            plan->backends[plan->backend_count++] = all[i];
        }
    }
    return plan->backend_count > 0 || fail_unknown("--backend", o->backend, "avx512, avx2, neon, generic, ref or all");
}

/* ---- running --------------------------------------------------------------------------------------------------- */

struct session {
    struct options options;
    struct machine machine;
    struct heading heading;
    struct plan plan;
    struct bench_case *cases; /* the chosen ones first */
    FILE *json;
};

/* True as well if no file is wanted. */
static bool open_file(const char *path, FILE **file)
{
    *file = path ? fopen(path, "w") : NULL;
    return !path || *file || fail(path, strerror(errno));
}

static bool close_file(const char *path, FILE *file)
{
    return !file || fclose(file) == 0 || fail(path, strerror(errno));
}

/* Takes the wanted cases to the front. */
static bool choose_cases(struct session *s)
{
    const struct options *o = &s->options;

    s->cases = bench_cases(o->ndim, o->extents, &s->heading.all);
    if (!s->cases) {
        return fail("cases", "out of memory");
    }
    if (!check_words(o, s->cases, s->heading.all)) {
        return false;
    }
    for (size_t i = 0; i < s->heading.all; i++) {
        const struct bench_case c = s->cases[i];
        if (is_wanted(o, &c, s->machine.processors)) {
            s->cases[s->heading.chosen++] = c;
            s->heading.rare += c.sets == BENCH_RARE;
        }
    }
    return s->heading.chosen > 0 ||
           fail("options", "--filter, --set and --max-elements, or the number of processors, leave no case; "
                           "--full --list prints all");
}

/* A system that has promised more memory than there is kills the program. */
static bool fits(const struct bench_case *c, const struct machine *machine)
{
    const double bytes = (double)bench_memory(c);
    char message[MESSAGE];

    if (machine->memory <= 0 || bytes <= machine->memory) {
        return true;
    }
    (void)snprintf(message, sizeof message,
                   "takes %.1f GiB of memory, this machine has %.1f GiB; --max-elements leaves cases out",
                   bytes / 0x1p30, machine->memory / 0x1p30);
    return fail(c->name, message);
}

static bool prepare(struct session *s)
{
    const struct options *o = &s->options;
    struct plan *plan = &s->plan;
    int threads = (int)o->threads;

    machine_describe(&s->machine);
    if (!choose_backends(o, plan) || !choose_cases(s)) {
        return false;
    }
    if (o->list) {
        return true;
    }
    s->heading.machine = &s->machine;
    machine_set_huge_pages(o->huge_pages);
    s->heading.page = machine_page();
    s->heading.vectors = bench_limit_choose();
    s->heading.pinned = o->pin && machine_pin(0);
    plan->threads = (int)o->threads;
    plan->with_peers = o->with_peers;
    plan->prefetch = (size_t)o->prefetch;
    plan->timed = true;
    plan->timing = (struct timing){.sample_ns = 1e6, .budget_ns = o->budget * 1e9, .min_rounds = 7, .max_rounds = 41};
    if (o->quick) {
        plan->timing = (struct timing){.sample_ns = 1, .budget_ns = 0, .min_rounds = 1, .max_rounds = 1};
    }
    for (size_t i = 0; i < s->heading.chosen; i++) {
        if (!fits(&s->cases[i], &s->machine)) {
            return false;
        }
        threads = s->cases[i].threads > threads ? s->cases[i].threads : threads;
        s->heading.seconds += measure_seconds(&s->cases[i], plan);
    }
    s->heading.call_ns = plan->call_ns = measure_call_ns(&plan->timing);
    plan->ports = ports_measure(&plan->timing);
    s->heading.ports = &plan->ports;
    if (pool_start(threads, o->pin) < threads) {
        return fail("--threads", "the system has no more threads");
    }
    return open_file(o->json, &s->json);
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
    for (size_t i = 0; i < s->heading.chosen; i++) {
        struct measurement m;
        report_progress(i + 1, s->heading.chosen, s->cases[i].name);
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
    report_table_end(noisy, runs);
    if (s->json) {
        report_json_end(s->json);
    }
    const bool closed = close_file(s->options.json, s->json);
    return (right || fail("results", "some are wrong: see above")) && closed;
}

int main(int argc, char **argv)
{
    static struct session s = {
        .options = {.pin = true, .with_peers = true, .budget = 0.25, .threads = 1, .max_elements = 1e18},
    };
    bool done = parse(argc, argv, &s.options) && prepare(&s);

    if (done && s.options.list) {
        for (size_t i = 0; i < s.heading.chosen; i++) {
            (void)puts(s.cases[i].name);
        }
    } else {
        done = done && run(&s);
    }
    free(s.cases);
    return done ? 0 : 1;
}
