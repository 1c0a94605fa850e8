/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

#include "cpu_features.h"
#include "os.h"
#include "plan/memory_plan.h"

#include <npuquant/npuquant.h>

#include <stdio.h>
#include <string.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

static void print_backends(void)
{
    const npuq_backend active = npuq_active_backend();

    (void)printf("backends:");
    for (int i = 0; strcmp(npuq_backend_name((npuq_backend)i), "unknown") != 0; i++) {
        const npuq_backend backend = (npuq_backend)i;
        const char *state = backend == active                 ? "active"
                            : npuq_backend_available(backend) ? "available"
                                                              : "not available";
        (void)printf("%s %s (%s)", i > 0 ? "," : "", npuq_backend_name(backend), state);
    }
    (void)printf("\n");
}

static void print_tuning(void)
{
    const npuq_tuning *t = npuq_find_tuning();

    (void)printf("tuning: values for %s\n", t->name);
    (void)printf("  from memory (more than %zu MiB): prefetch %u bytes ahead, read from %d place%s at once%s\n",
                 t->cached_bytes >> 20, (unsigned)t->prefetch_bytes, t->read_streams, t->read_streams == 1 ? "" : "s",
                 t->rows_to_l2 ? ", rows read twice into the second-level cache" : "");
    if (t->near_prefetch_bytes > 0) {
        (void)printf("  from the caches (more than %zu MiB): prefetch float32 %u bytes ahead\n", t->near_bytes >> 20,
                     (unsigned)t->near_prefetch_bytes);
    }
}

static const char *byte_order(void)
{
    const unsigned one = 1;
    unsigned char first;

    memcpy(&first, &one, 1);
    return first == 1 ? "little-endian" : "big-endian";
}

void print_info(void)
{
    char system[160];

    os_describe(system, sizeof system);
    (void)printf("npuquant %s, library %s\n", NPUQ_VERSION, npuq_version());
    print_backends();
    print_tuning();
    print_cpu_features();
    (void)printf("processors: %d\n", os_processors());
    (void)printf("system: %s, %s, %zu-bit\n", system, byte_order(), 8 * sizeof(void *));
    (void)printf("compiler: %s\n", COMPILER);
}
