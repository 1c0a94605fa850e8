/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch.h"

#include "../operators.def"
#include "../status.h"
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off: a table of macros */

#define PRODUCT(name, Y, X)  .quantise[NPUQ_MUL][NPUQ_TYPE_##Y][NPUQ_TYPE_##X] = NPUQ_PRODUCT_##name + 1,
#define QUOTIENT(name, Y, X) .quantise[NPUQ_DIV][NPUQ_TYPE_##Y][NPUQ_TYPE_##X] = NPUQ_QUOTIENT_##name + 1,
#define DEQUANT(name, Y, X)  .dequantise[NPUQ_TYPE_##Y][NPUQ_TYPE_##X] = NPUQ_DEQUANT_##name + 1,
#define RANGE(name, X)       .range[NPUQ_TYPE_##X] = NPUQ_RANGE_##name + 1,
#define WIDEN(name, P)       .widen[NPUQ_TYPE_##P] = NPUQ_WIDEN_##name + 1,
const npuq_kernel_index npuq_index_of_kernels = {NPUQ_EACH_PRODUCT(PRODUCT) NPUQ_EACH_QUOTIENT(
    QUOTIENT) NPUQ_EACH_DEQUANT(DEQUANT, DEQUANT, DEQUANT) NPUQ_EACH_RANGE(RANGE) NPUQ_EACH_PARAMETER(WIDEN)};

/* clang-format on */

/* All that the operators take, and floats of 4 bits: a product makes uint8 of int8, and float32 is not widened. */
#define COUNT(TYPES) (TYPES_##TYPES(NPUQ_ONE))
_Static_assert((NPUQ_EACH_PRODUCT(NPUQ_ONE)) == (COUNT(PRODUCTS) + COUNT(FLOAT4)) * COUNT(FLOATS), "by a product");
_Static_assert((NPUQ_EACH_QUOTIENT(NPUQ_ONE)) == COUNT(QUOTIENTS) * COUNT(FLOATS), "by division");
#define NONE(...)
_Static_assert((NPUQ_EACH_DEQUANT(NPUQ_ONE, NPUQ_ONE, NONE)) ==
                   (COUNT(NARROW) + COUNT(INT32)) * COUNT(FLOATS) + COUNT(INT8),
               "from integers");
_Static_assert((NPUQ_EACH_DEQUANT(NONE, NONE, NPUQ_ONE)) == (COUNT(FLOAT8) - 1 + COUNT(FLOAT4)) * COUNT(FLOATS),
               "from small floats without hifloat8, which has no scales of groups");
_Static_assert((NPUQ_EACH_RANGE(NPUQ_ONE)) == COUNT(FLOATS), "ranges");
_Static_assert((NPUQ_EACH_PARAMETER(NPUQ_ONE)) == COUNT(ADDENDS) - COUNT(FLOAT32), "parameters");
_Static_assert(NPUQ_ROW_TYPES <= NPUQ_TYPE_ROOM && NPUQ_ROWS_KERNELS < UINT8_MAX, "a byte for each");

static const npuq_row_kernels not_built_in;
#ifndef NPUQ_WITH_AVX512
#define npuq_rows_avx512 not_built_in
#endif
#ifndef NPUQ_WITH_AVX2
#define npuq_rows_avx2 not_built_in
#endif
#ifndef NPUQ_WITH_NEON
#define npuq_rows_neon not_built_in
#endif
#ifndef NPUQ_WITH_GENERIC
#define npuq_rows_generic not_built_in
#endif

#define NAME_AND_KERNELS(ID, name) {NPUQ_BACKEND_##ID, #name, &npuq_rows_##name},
static const npuq_built_backend backends[] = {NPUQ_EACH_BACKEND(NAME_AND_KERNELS)};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

#ifdef NPUQ_WITH_AVX512
static const npuq_built_backend avx512_bf16 = {NPUQ_BACKEND_AVX512, "avx512", &npuq_rows_avx512_bf16};
#endif

static const npuq_built_backend *with_best_kernels(const npuq_built_backend *b)
{
#ifdef NPUQ_WITH_AVX512
    if (b->id == NPUQ_BACKEND_AVX512 && npuq_cpu_converts_bf16()) {
        return &avx512_bf16;
    }
#endif
    return b;
}

_Atomic(const npuq_built_backend *) npuq_chosen_backend;

static bool is_available(const npuq_built_backend *b)
{
    return b && b->kernels != &not_built_in && npuq_cpu_runs(b->id);
}

/* Null if there is none. */
static const npuq_built_backend *find(npuq_backend id)
{
    for (size_t i = 0; i < BACKENDS; i++) {
        if (backends[i].id == id) {
            return &backends[i];
        }
    }
    return NULL;
}

static const npuq_built_backend *find_named(const char *name)
{
    for (size_t i = 0; i < BACKENDS; i++) {
        if (strcmp(backends[i].name, name) == 0) {
            return &backends[i];
        }
    }
    return NULL;
}

static const npuq_built_backend *fastest(void)
{
    size_t i = 0;
    while (!is_available(&backends[i])) {
        i++;
    }
    return &backends[i];
}

enum { AVAILABLE = 64 };

/* The available ones, the fastest first, with a space before each. */
static const char *list_available(char text[AVAILABLE])
{
    text[0] = '\0';
    for (size_t i = 0; i < BACKENDS; i++) {
        if (is_available(&backends[i])) {
            (void)snprintf(text + strlen(text), AVAILABLE - strlen(text), " %s", backends[i].name);
        }
    }
    return text;
}

static const npuq_built_backend *first_choice(void)
{
    const char *name = getenv("NPUQ_BACKEND");
    const npuq_built_backend *first = name && *name ? find_named(name) : NULL;

    if (!is_available(first)) {
        first = fastest();
        if (name && *name) {
            char available[AVAILABLE];

            (void)fprintf(stderr,
                          "npuquant: NPUQ_BACKEND=%s is unknown or not available; expected one of:%s; using %s\n", name,
                          list_available(available), first->name);
        }
    }
    return first;
}

const npuq_built_backend *npuq_choose_backend(void)
{
    const npuq_built_backend *chosen = NULL;
    const npuq_built_backend *first = with_best_kernels(first_choice());

    /* Another thread may have chosen meanwhile: its choice stands. */
    return atomic_compare_exchange_strong(&npuq_chosen_backend, &chosen, first) ? first : chosen;
}

npuq_backend npuq_active_backend(void)
{
    const npuq_built_backend *chosen = atomic_load_explicit(&npuq_chosen_backend, memory_order_acquire);

    return (chosen ? chosen : npuq_choose_backend())->id;
}

bool npuq_backend_available(npuq_backend id)
{
    return is_available(find(id));
}

npuq_status npuq_set_backend(npuq_backend id)
{
    const npuq_built_backend *found = find(id);

    if (!is_available(found)) {
        char available[AVAILABLE];

        return npuq_fail(NPUQ_ERROR_BACKEND, "set_backend", "backend",
                         "%s (%d) is not built in or not on this CPU; expected one of:%s", npuq_backend_name(id),
                         (int)id, list_available(available));
    }
    atomic_store_explicit(&npuq_chosen_backend, with_best_kernels(found), memory_order_release);
    return NPUQ_OK;
}

const char *npuq_backend_name(npuq_backend id)
{
    const npuq_built_backend *found = find(id);

    return found ? found->name : "unknown";
}
