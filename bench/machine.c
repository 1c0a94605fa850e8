/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE

#include "machine.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

/* The value of the first line of /proc/cpuinfo that begins with key. */
static bool read_cpuinfo(const char *key, char *text, size_t size)
{
    char line[256];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");

    while (file && !found && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (value && strncmp(line, key, strlen(key)) == 0) {
            value += strspn(value, ": \t");
            (void)snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
            found = true;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return found;
}

static void describe_cpu(char *text, size_t size)
{
    char family[16];
    char model[16];

    if (!read_cpuinfo("model name", text, size)) {
        (void)snprintf(text, size, "unknown");
        return;
    }
    const size_t used = strlen(text);
    if (read_cpuinfo("cpu family", family, sizeof family) && read_cpuinfo("model\t", model, sizeof model)) {
        (void)snprintf(text + used, size - used, " (family %s, model %s)", family, model);
    }
}

/* The first line of a file about one of the first processor's caches. */
static bool read_cache_file(int index, const char *name, char *text, size_t size)
{
    char path[96];

    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "r");
    const bool found = file && fgets(text, (int)size, file);
    if (file) {
        (void)fclose(file);
    }
    return found;
}

/* Data caches by level. sysconf() would add up the last caches of all parts of a processor. */
static void describe_caches(size_t *caches)
{
    char level[32];
    char type[32];
    char size[32];

    for (int i = 0; read_cache_file(i, "level", level, sizeof level); i++) {
        const long n = strtol(level, NULL, 10);
        if (n >= 1 && n <= MACHINE_CACHES && read_cache_file(i, "type", type, sizeof type) && type[0] != 'I' &&
            read_cache_file(i, "size", size, sizeof size)) {
            caches[n - 1] = (size_t)strtoul(size, NULL, 10) << (strchr(size, 'M') ? 20 : 10);
        }
    }
}

void machine_describe(struct machine *machine)
{
    const time_t now = time(NULL);
    struct tm local;

    memset(machine, 0, sizeof *machine);
    describe_cpu(machine->cpu, sizeof machine->cpu);
#if defined(__clang__)
    (void)snprintf(machine->compiler, sizeof machine->compiler, "clang %d.%d.%d", __clang_major__, __clang_minor__,
                   __clang_patchlevel__);
#else
    (void)snprintf(machine->compiler, sizeof machine->compiler, "gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__,
                   __GNUC_PATCHLEVEL__);
#endif
#ifndef NDEBUG
    (void)strcat(machine->compiler, " with asserts");
#endif
    if (localtime_r(&now, &local)) {
        (void)strftime(machine->date, sizeof machine->date, "%Y-%m-%d", &local);
    }
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    machine->processors = processors > 0 ? (int)processors : 1;
#ifdef _SC_PHYS_PAGES
    machine->memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
#endif
    machine->cache[0] = (size_t)32 << 10;
    machine->cache[1] = (size_t)1 << 20;
    machine->cache[2] = (size_t)32 << 20;
    describe_caches(machine->cache);
}

/* Leaves a quarter of a cache to other data. */
const char *machine_level(const struct machine *machine, size_t working_set)
{
    static const char *const names[MACHINE_CACHES] = {"L1", "L2", "L3"};

    for (int i = 0; i < MACHINE_CACHES; i++) {
        if (working_set <= machine->cache[i] / 4 * 3) {
            return names[i];
        }
    }
    return working_set < 4 * machine->cache[MACHINE_CACHES - 1] ? "L3+" : "memory";
}

double machine_nanoseconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

long machine_preemptions(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

bool machine_pin(int n)
{
#ifdef __linux__
    static cpu_set_t allowed;
    static bool known;
    cpu_set_t one;

    if (!known) { /* before a thread pins itself */
        known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    }
    for (size_t cpu = 0, i = 0; known && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && i++ == (size_t)n) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            return sched_setaffinity(0, sizeof one, &one) == 0;
        }
    }
#else
    (void)n;
#endif
    return false;
}

static const size_t huge_page = (size_t)2 << 20;
static bool huge_pages;

void machine_set_huge_pages(bool wanted)
{
    huge_pages = wanted;
}

static size_t mapped_size(size_t size)
{
    return huge_pages ? (size + huge_page - 1) / huge_page * huge_page : size;
}

void *machine_allocate(size_t size)
{
    const size_t room = mapped_size(size) + (huge_pages ? huge_page : 0);
    char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        return NULL;
    }
    if (huge_pages) { /* the memory before and after the multiples of a page goes back */
        const size_t before = (huge_page - (uintptr_t)memory % huge_page) % huge_page;
        (void)(before > 0 && munmap(memory, before));
        memory += before;
        (void)munmap(memory + mapped_size(size), huge_page - before);
#ifdef MADV_HUGEPAGE
        (void)madvise(memory, mapped_size(size), MADV_HUGEPAGE);
#endif
    }
    memset(memory, 1, size);
    return memory;
}

void machine_free(void *memory, size_t size)
{
    if (memory) {
        (void)munmap(memory, mapped_size(size));
    }
}

/* KiB of this process's memory in huge pages; -1: not known. */
static long huge_memory(void)
{
    static const char key[] = "AnonHugePages:";
    char line[256];
    long found = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");

    while (file && found < 0 && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, sizeof key - 1) == 0) {
            found = strtol(line + sizeof key - 1, NULL, 10);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return found;
}

size_t machine_page(void)
{
    const size_t size = 4 * huge_page;
    const long before = huge_memory();
    void *memory = machine_allocate(size);
    const long after = huge_memory();

    machine_free(memory, size);
    if (!memory || before < 0 || after < 0) {
        return 0;
    }
    return after > before ? huge_page : (size_t)sysconf(_SC_PAGESIZE);
}
