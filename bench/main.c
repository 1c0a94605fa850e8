/* SPDX-License-Identifier: BSD-3-Clause */
/* npuquant-bench: measures cases, and prints a line of JSON for the machine, then one for each case. Every result is
 * compared with the reference first; the exit status is 1 if one is wrong. bench/run calls it, and explains its
 * options. */
#include "limit.h"
#include "machine.h"
#include "measure.h"
#include "peer.h"
#include "pool.h"
#include "ports.h"

#include "backends/row.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool fail(const char *option, const char *found, const char *expected)
{
    (void)fprintf(stderr, "npuquant-bench: %s: found '%s', expected %s\n", option, found, expected);
    return false;
}

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

/* A name, "all", or null: then the fallbacks only where there is no other. */
static bool add_backends(struct plan *plan, const char *name)
{
#define BACKEND_ID(ID, name) NPUQ_BACKEND_##ID,
    static const npuq_backend all[] = {NPUQ_EACH_BACKEND(BACKEND_ID)};
    const int before = plan->backend_count;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const bool fallback = all[i] == NPUQ_BACKEND_GENERIC || all[i] == NPUQ_BACKEND_REF;
        const bool wanted = name ? strcmp(name, "all") == 0 || strcmp(name, npuq_backend_name(all[i])) == 0
                                 : !fallback || plan->backend_count == 0;
        if (wanted && npuq_backend_available(all[i]) && plan->backend_count < MEASURE_MAX_BACKENDS) {
            plan->backends[plan->backend_count++] = all[i];
        }
    }
    return plan->backend_count > before || fail("--backend", name, "one that this build has and this CPU runs");
}

int main(int argc, char **argv)
{
    enum { BACKEND, THREADS, NO_PEERS, BUDGET, QUICK, NO_PIN, PREFETCH, SECOND_CACHE, HUGE_PAGES };
    static const struct option known[] = {
        {"backend", required_argument, NULL, BACKEND},
        {"threads", required_argument, NULL, THREADS},
        {"no-peers", no_argument, NULL, NO_PEERS},
        {"budget", required_argument, NULL, BUDGET},
        {"quick", no_argument, NULL, QUICK},
        {"no-pin", no_argument, NULL, NO_PIN},
        {"prefetch", required_argument, NULL, PREFETCH},
        {"second-cache", required_argument, NULL, SECOND_CACHE},
        {"huge-pages", no_argument, NULL, HUGE_PAGES},
        {0},
    };
    struct plan plan = {
        .threads = 1,
        .with_peers = true,
        .second_cache = 1 << 20,
        .timing = {.sample_ns = 1e6, .budget_ns = 0.25e9, .min_rounds = 7, .max_rounds = 41},
    };
    struct bench_case c;
    bool pin = true;
    bool right = true;
    int option;

    while (right && (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case BACKEND: right = add_backends(&plan, optarg); break;
        case THREADS:
            plan.threads = (int)strtol(optarg, NULL, 10);
            right = (plan.threads >= 1 && plan.threads <= POOL_MAX_THREADS) || fail("--threads", optarg, "1 to 64");
            break;
        case NO_PEERS: plan.with_peers = false; break;
        case BUDGET: plan.timing.budget_ns = strtod(optarg, NULL) * 1e9; break;
        case QUICK: plan.timing = (struct timing){.sample_ns = 1, .min_rounds = 1, .max_rounds = 1}; break;
        case NO_PIN: pin = false; break;
        case PREFETCH: plan.prefetch = strtoul(optarg, NULL, 10); break;
        case SECOND_CACHE: plan.second_cache = strtoul(optarg, NULL, 10); break;
        case HUGE_PAGES: machine_set_huge_pages(true); break;
        default: right = false; break; /* getopt_long() says why */
        }
    }
    int threads = plan.threads;
    for (int i = optind; right && i < argc; i++) {
        const char *wrong = bench_parse(argv[i], &c);
        right = !wrong || fail(argv[i], wrong, "a part of a case's name; bench/run --full --list prints all");
        threads = c.threads > threads ? c.threads : threads;
    }
    if (!right || (plan.backend_count == 0 && !add_backends(&plan, NULL))) {
        return 1;
    }
    write_machine(&plan, pin && machine_pin(0));
    if (pool_start(threads, pin) < threads) {
        (void)fputs("npuquant-bench: the system has no more threads\n", stderr);
        return 1;
    }
    for (int i = optind; i < argc; i++) {
        (void)bench_parse(argv[i], &c);
        right = measure(&c, &plan) && right;
    }
    return right ? 0 : 1;
}
