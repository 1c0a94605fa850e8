/* SPDX-License-Identifier: BSD-3-Clause */
/* npuquant-bench: how fast the operators are, against what the machine can do. */
#include "limit.h"
#include "machine.h"
#include "measure.h"
#include "peer.h"
#include "pool.h"
#include "ports.h"

#include "kernels/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: npuquant-bench [options] CASE...\n"
    "\n"
    "Measures cases, and prints a line of JSON for the machine, then one for each case. bench/run builds and calls\n"
    "this program, chooses cases, and prints tables.\n"
    "A case is operator/mode/parameters/x-y/shape[/variant][/tN], such as quantize/mul/uniform/f32-i8/64x4096;\n"
    "bench/run --full --list prints all.\n"
    "Every result is compared with the reference first; the exit status is 1 if one is wrong.\n"
    "\n"
    "  --backend NAME[,NAME...] these backends: avx512, avx2, neon, generic, ref; or all; otherwise all but the\n"
    "                           last two, if there is another\n"
    "  --threads N              N threads for each case (default 1)\n"
    "  --no-peers               leave other libraries out\n"
    "  --budget SECONDS         time for the rounds of one case (default 0.25); 7 to 41 rounds are made in any case\n"
    "  --quick                  check the results, and time one round only: the times mean nothing\n"
    "  --no-pin                 do not tie threads to processors\n"
    "  --prefetch BYTES         let stream-best prefetch so far ahead (default 0: the best of several distances)\n"
    "  --second-cache BYTES     the size of that cache (default 1048576): stream-best is for what it does not hold\n"
    "  --huge-pages             ask the system for pages of 2 MiB for the buffers (madvise)\n"
    "  --help                   print this and stop\n";

struct options {
    const char *backend;
    bool quick;
    bool pin;
    bool with_peers;
    bool huge_pages;
    double budget;
    double threads;
    double prefetch;
    double second_cache;
    struct bench_case *cases;
    size_t count;
};

#define TEXT_OF(number)                    #number
#define VERSION(name, major, minor, patch) name " " TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

static const char compiler[] =
#if defined(__clang__)
    VERSION("clang", __clang_major__, __clang_minor__, __clang_patchlevel__)
#else
    VERSION("gcc", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#endif
#ifndef NDEBUG
        " with asserts"
#endif
    ;

enum { MESSAGE = 256 };

static bool fail(const char *what, const char *message)
{
    (void)fprintf(stderr, "npuquant-bench: %s: %s\n", what, message);
    return false;
}

static bool fail_found(const char *option, const char *found, const char *expected)
{
    (void)fprintf(stderr, "npuquant-bench: %s: found '%s', expected %s\n", option, found, expected);
    return false;
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static bool parse_number(const char *name, const char *text, double lowest, double highest, double *value)
{
    char expected[MESSAGE];
    char *end;

    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !(*value >= lowest && *value <= highest)) {
        (void)snprintf(expected, sizeof expected, "a number from %.15g to %.15g", lowest, highest);
        return fail_found(name, text, expected);
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
        {"--backend", &o->backend, NULL, false, NULL, 0, 0},
        {"--quick", NULL, &o->quick, true, NULL, 0, 0},
        {"--no-pin", NULL, &o->pin, false, NULL, 0, 0},
        {"--no-peers", NULL, &o->with_peers, false, NULL, 0, 0},
        {"--huge-pages", NULL, &o->huge_pages, true, NULL, 0, 0},
        {"--budget", NULL, NULL, false, &o->budget, 0, 3600},
        {"--threads", NULL, NULL, false, &o->threads, 1, POOL_MAX_THREADS},
        {"--prefetch", NULL, NULL, false, &o->prefetch, 0, 65536},
        {"--second-cache", NULL, NULL, false, &o->second_cache, 0, 0x1p40},
    };
    const size_t options = sizeof known / sizeof known[0];

    o->cases = calloc((size_t)argc, sizeof *o->cases);
    if (!o->cases) {
        return fail("cases", "out of memory");
    }
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(help, stdout);
            exit(0);
        }
        if (argv[i][0] != '-') {
            const char *wrong = bench_parse(argv[i], &o->cases[o->count++]);
            if (wrong) {
                return fail_found(argv[i], wrong, "a part of a case's name; see --help");
            }
            continue;
        }
        while (k < options && strcmp(argv[i], known[k].name) != 0) {
            k++;
        }
        if (k == options) {
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
    return o->count > 0 || fail("cases", "none is named; see --help");
}

/* The words between commas, one after the other; false after the last. */
static bool next_word(const char **rest, char *word, size_t size)
{
    const size_t length = strcspn(*rest, ",");

    if (**rest == '\0') {
        return false;
    }
    (void)snprintf(word, size, "%.*s", (int)(length < size ? length : size - 1), *rest);
    *rest += length + ((*rest)[length] == ',');
    return true;
}

static bool has_word(const char *words, const char *wanted)
{
    char word[32];

    while (next_word(&words, word, sizeof word)) {
        if (strcmp(word, wanted) == 0) {
            return true;
        }
    }
    return false;
}

static bool choose_backends(const struct options *o, struct plan *plan)
{
#define BACKEND_ID(ID, name) NPUQ_BACKEND_##ID,
    static const npuq_backend all[] = {NPUQ_EACH_BACKEND(BACKEND_ID)};
    static const char expected[] = "avx512, avx2, neon, generic, ref or all";
    const size_t count = sizeof all / sizeof all[0];
    const bool every = o->backend && strcmp(o->backend, "all") == 0;
    const char *rest = o->backend && !every ? o->backend : "";
    char word[32];

    while (next_word(&rest, word, sizeof word)) {
        size_t i = 0;
        while (i < count && strcmp(word, npuq_backend_name(all[i])) != 0) {
            i++;
        }
        if (i == count) {
            return fail_found("--backend", word, expected);
        }
        if (!npuq_backend_available(all[i])) {
            return fail_found("--backend", word, "one that this build has and this CPU runs");
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
    return plan->backend_count > 0 || fail_found("--backend", o->backend, expected);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

/* The first line: of the machine, what only this program knows. */
static void write_machine(const struct plan *plan, bool pinned)
{
    const size_t page = machine_page();
    const struct ports ports = ports_measure(&plan->timing);
    int count;
    const struct peer *const *others = peers(&count);

    (void)printf("{\"version\": \"%s\", \"compiler\": \"%s\", \"stream_vectors\": \"%s\", \"others\": [",
                 npuq_version(), compiler, bench_limit_choose());
    for (int i = 0; i < count; i++) {
        (void)printf("%s\"%s\"", i > 0 ? ", " : "", others[i]->name);
    }
    (void)printf("], \"page_bytes\": %zu, \"pinned\": %s, \"constants\": {", page, pinned ? "true" : "false");
    for (int p = 0; p < PORTS && ports.lanes > 0; p++) {
        (void)printf("\"%s_per_ns\": %.4f, ", port_name((enum port)p), ports.per_ns[p]);
    }
    (void)printf("\"vectors\": \"%s\", \"vector_bits\": %zu, \"call_ns\": ", ports.lanes > 0 ? ports.vectors : "",
                 32 * ports.lanes);
    measure_call(&plan->timing);
    (void)fputs("}}\n", stdout);
    (void)fflush(stdout);
}

static bool run(const struct options *o)
{
    struct plan plan = {
        .threads = (int)o->threads,
        .with_peers = o->with_peers,
        .prefetch = (size_t)o->prefetch,
        .second_cache = (size_t)o->second_cache,
        .timing = {.sample_ns = 1e6, .budget_ns = o->budget * 1e9, .min_rounds = 7, .max_rounds = 41},
    };
    int threads = (int)o->threads;
    bool right = true;

    if (o->quick) {
        plan.timing = (struct timing){.sample_ns = 1, .budget_ns = 0, .min_rounds = 1, .max_rounds = 1};
    }
    if (!choose_backends(o, &plan)) {
        return false;
    }
    for (size_t i = 0; i < o->count; i++) {
        threads = o->cases[i].threads > threads ? o->cases[i].threads : threads;
    }
    machine_set_huge_pages(o->huge_pages);
    const bool pinned = o->pin && machine_pin(0);
    write_machine(&plan, pinned);
    if (pool_start(threads, o->pin) < threads) {
        return fail("--threads", "the system has no more threads");
    }
    for (size_t i = 0; i < o->count; i++) {
        right = measure(&o->cases[i], &plan) && right;
    }
    return right || fail("results", "some are wrong: see above");
}

int main(int argc, char **argv)
{
    struct options options = {.pin = true, .with_peers = true, .budget = 0.25, .threads = 1, .second_cache = 1 << 20};
    const bool done = parse(argc, argv, &options) && run(&options);

    free(options.cases);
    return done ? 0 : 1;
}
