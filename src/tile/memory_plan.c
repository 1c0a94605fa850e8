/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_plan.h"

enum { MIB = 1 << 20, CACHED_ROW_BYTES = 256 * 1024 }; /* longer rows come from memory in both passes */

/* The first row that fits is taken. The last row fits all CPUs: it has nothing that costs one CPU as much as it brings
 * another. The numbers of a new row are tried one after the other, with `bench/run`. */
static const npuq_tuning tunings[] = {
    /* Reads fastest from one stream; of float32, the third-level cache is too slow without prefetching. */
    {"AMD Zen 5",
     {NPUQ_CPU_AMD, 26, 0},
     8192,
     {.read_streams = 1, .divides_fast = true},
     false,
     24 * MIB,
     1 * MIB,
     1024},
    /* A row of 4096 float32 values and the next one would fill the first-level cache of 32 KiB. */
    {"AMD Zen 4", {NPUQ_CPU_AMD, 25, 0}, 3072, {.read_streams = 4, .divides_fast = true}, true, 24 * MIB, 0, 0},
    /* Have more reads in flight when they read from several pages at once. */
    {"Intel Sapphire Rapids", {NPUQ_CPU_INTEL, 6, 143}, 3072, {.read_streams = 4}, false, 24 * MIB, 0, 1024},
    {"Intel Emerald Rapids", {NPUQ_CPU_INTEL, 6, 207}, 3072, {.read_streams = 4}, false, 24 * MIB, 0, 1024},
    {"any CPU", {NPUQ_CPU_UNKNOWN, 0, 0}, 3072, {.read_streams = 4}, false, 24 * MIB, 0, 0},
};

_Atomic(const npuq_tuning *) npuq_found_tuning;

static bool fits(const npuq_cpu *row, const npuq_cpu *cpu)
{
    return (!row->vendor || row->vendor == cpu->vendor) && (!row->family || row->family == cpu->family) &&
           (!row->model || row->model == cpu->model);
}

const npuq_tuning *npuq_look_up_tuning(void)
{
    const npuq_tuning *tuning = tunings;
    const npuq_cpu cpu = npuq_identify_cpu();

    while (!fits(&tuning->cpu, &cpu)) {
        tuning++;
    }
    atomic_store_explicit(&npuq_found_tuning, tuning, memory_order_relaxed); /* all threads find the same one */
    return tuning;
}

npuq_memory_plan npuq_plan_memory(size_t bytes)
{
    const npuq_tuning *tuning = npuq_find_tuning();
    const bool from_memory = bytes > tuning->cached_bytes;
    npuq_memory_plan plan = {tuning->cached, tuning->cached};

    if (from_memory) {
        plan.reads.from_memory = plan.writes.from_memory = true;
        plan.reads.prefetch_bytes = plan.writes.prefetch_bytes = tuning->prefetch_bytes;
    }
    if (!from_memory && bytes > tuning->near_bytes) { /* a pass that only reads was measured to gain nothing */
        plan.writes.prefetch_bytes = tuning->near_prefetch_bytes;
    }
    return plan;
}

void npuq_plan_second_pass(npuq_memory_plan *plan, size_t block_rows, size_t cols, size_t x_size)
{
    plan->reads.to_l2 = plan->writes.to_l2 = plan->reads.from_memory && npuq_find_tuning()->rows_to_l2;
    if (!plan->reads.from_memory) { /* the first pass has brought the block near */
        plan->writes.prefetch_bytes = 0;
    } else if (cols <= CACHED_ROW_BYTES / x_size) { /* from a cache, it brings the next block there */
        plan->writes.prefetch_bytes = (uint32_t)(block_rows * cols * x_size + plan->reads.prefetch_bytes / 4);
    }
}
