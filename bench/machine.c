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
        perror("npuquant-bench: memory");
        exit(1);
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
    if (before < 0 || after < 0) {
        return 0;
    }
    return after > before ? huge_page : (size_t)sysconf(_SC_PAGESIZE);
}
