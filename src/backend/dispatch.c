/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch.h"

#include "../status.h"
#include "cpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct backend {
    npuq_backend id;
    const npuq_row_kernels *kernels;
} backend;

/* What is built in, the fastest first. The last one runs everywhere. */
static const backend backends[] = {
#ifdef NPUQ_WITH_AVX512
    {NPUQ_BACKEND_AVX512, &npuq_rows_avx512},
#endif
#ifdef NPUQ_WITH_AVX2
    {NPUQ_BACKEND_AVX2, &npuq_rows_avx2},
#endif
#ifdef NPUQ_WITH_NEON
    {NPUQ_BACKEND_NEON, &npuq_rows_neon},
#endif
    {NPUQ_BACKEND_REF, &npuq_rows_ref},
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* The choice, made at the first call: null until then. */
static _Atomic(const backend *) active;

/* Null if it is not built in or does not run here. */
static const backend *find(npuq_backend id)
{
    for (size_t i = 0; i < BACKENDS; i++) {
        if (backends[i].id == id && npuq_cpu_runs(id)) {
            return &backends[i];
        }
    }
    return NULL;
}

static const backend *find_named(const char *name)
{
    for (size_t i = 0; i < BACKENDS; i++) {
        if (strcmp(npuq_backend_name(backends[i].id), name) == 0) {
            return find(backends[i].id);
        }
    }
    return NULL;
}

static const backend *fastest(void)
{
    size_t i = 0;
    while (!npuq_cpu_runs(backends[i].id)) {
        i++;
    }
    return &backends[i];
}

static const backend *first_choice(void)
{
    const char *name = getenv("NPUQ_BACKEND");
    const backend *first = name && *name ? find_named(name) : NULL;

    if (!first) {
        first = fastest();
        if (name && *name) {
            (void)fprintf(stderr, "npuquant: NPUQ_BACKEND=%s is unknown or not available; using %s\n", name,
                          npuq_backend_name(first->id));
        }
    }
    return first;
}

static const backend *choice(void)
{
    const backend *chosen = atomic_load_explicit(&active, memory_order_acquire);

    if (!chosen) {
        const backend *first = first_choice();
        /* Another thread may have chosen meanwhile: its choice stands. */
        if (atomic_compare_exchange_strong(&active, &chosen, first)) {
            chosen = first;
        }
    }
    return chosen;
}

const npuq_row_kernels *npuq_kernels(void)
{
    return choice()->kernels;
}

npuq_backend npuq_active_backend(void)
{
    return choice()->id;
}

bool npuq_backend_available(npuq_backend id)
{
    return find(id) != NULL;
}

npuq_status npuq_set_backend(npuq_backend id)
{
    const backend *found = find(id);

    if (!found) {
        return npuq_fail(NPUQ_ERROR_BACKEND, "set_backend", "backend",
                         "%s (%d) is not built in or not on this CPU; expected an available one", npuq_backend_name(id),
                         (int)id);
    }
    atomic_store_explicit(&active, found, memory_order_release);
    return NPUQ_OK;
}

const char *npuq_backend_name(npuq_backend id)
{
    switch (id) {
    case NPUQ_BACKEND_REF: return "ref";
    case NPUQ_BACKEND_AVX2: return "avx2";
    case NPUQ_BACKEND_AVX512: return "avx512";
    case NPUQ_BACKEND_NEON: return "neon";
    }
    return "unknown";
}
