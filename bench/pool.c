/* SPDX-License-Identifier: BSD-3-Clause */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE

#include "pool.h"

#include "machine.h"

#include <pthread.h>
#include <stdatomic.h>

/* How often a worker looks for work before it sleeps: some tenths of a millisecond. */
enum { SPINS = 10000 };

static struct {
    int threads;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint generation; /* changes when there is work */
    atomic_int busy;        /* workers that have not finished it */
    int wanted;
    void (*work)(const void *argument, int i, int threads);
    const void *argument;
    bool pin;
} pool = {.threads = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void await_work(unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&pool.generation, memory_order_acquire) != seen) {
            return;
        }
        pause_briefly();
    }
    (void)pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.generation) == seen) {
        (void)pthread_cond_wait(&pool.wake, &pool.lock);
    }
    (void)pthread_mutex_unlock(&pool.lock);
}

static void *serve(void *argument)
{
    const int index = *(const int *)argument;
    unsigned seen = 0;

    if (pool.pin) {
        (void)machine_pin(index);
    }
    for (;;) {
        await_work(seen);
        seen = atomic_load_explicit(&pool.generation, memory_order_acquire);
        if (index < pool.wanted) {
            pool.work(pool.argument, index, pool.wanted);
        }
        atomic_fetch_sub_explicit(&pool.busy, 1, memory_order_release);
    }
    return NULL;
}

/* Only the main thread calls this, before any work: no worker misses a generation. */
int pool_start(int threads, bool pin)
{
    static int indices[POOL_MAX_THREADS];
    pthread_t thread;

    pool.pin = pin;
    for (int i = pool.threads; i < threads && i < POOL_MAX_THREADS; i++) {
        indices[i] = i;
        if (pthread_create(&thread, NULL, serve, &indices[i]) != 0) {
            break;
        }
        (void)pthread_detach(thread);
        pool.threads++;
    }
    return pool.threads;
}

void pool_run(int threads, void (*work)(const void *argument, int i, int threads), const void *argument)
{
    if (threads <= 1 || pool.threads == 1) {
        work(argument, 0, 1);
        return;
    }
    pool.wanted = threads < pool.threads ? threads : pool.threads;
    pool.work = work;
    pool.argument = argument;
    atomic_store(&pool.busy, pool.threads - 1);
    (void)pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.generation, 1);
    (void)pthread_cond_broadcast(&pool.wake);
    (void)pthread_mutex_unlock(&pool.lock);
    work(argument, 0, pool.wanted);
    while (atomic_load_explicit(&pool.busy, memory_order_acquire) > 0) {
        pause_briefly();
    }
}

struct loop {
    size_t count;
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
};

static void run_share(const void *argument, int i, int threads)
{
    const struct loop *loop = argument;
    const size_t begin = loop->count * (size_t)i / (size_t)threads;
    const size_t end = loop->count * ((size_t)i + 1) / (size_t)threads;

    if (begin < end) {
        loop->task(loop->argument, begin, end);
    }
}

static void parallel_for(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    const struct loop loop = {count, task, argument};

    pool_run(*(const int *)context, run_share, &loop);
}

const npuq_executor *pool_executor(int threads)
{
    static int counts[POOL_MAX_THREADS + 1];
    static npuq_executor executors[POOL_MAX_THREADS + 1];

    if (threads <= 1 || threads > POOL_MAX_THREADS) {
        return NULL;
    }
    counts[threads] = threads;
    executors[threads] = (npuq_executor){parallel_for, &counts[threads]};
    return &executors[threads];
}
