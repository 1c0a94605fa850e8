/* SPDX-License-Identifier: BSD-3-Clause */
#include "threads.h"

#if defined(__wasi__)

void threads_run(int count, void (*work)(void *argument), void *argument)
{
    (void)count;
    work(argument);
}

#else

#include <stdbool.h>
#include <stdlib.h>

struct thread_work {
    void (*work)(void *argument);
    void *argument;
};

#ifdef _WIN32

#include <process.h>
#include <windows.h>

typedef HANDLE thread_handle;

static unsigned __stdcall run_thread(void *argument)
{
    const struct thread_work *task = argument;

    task->work(task->argument);
    return 0;
}

static bool start(thread_handle *thread, struct thread_work *task)
{
    *thread = (HANDLE)_beginthreadex(NULL, 0, run_thread, task, 0, NULL);
    return *thread != NULL;
}

static void join(thread_handle thread)
{
    (void)WaitForSingleObject(thread, INFINITE);
    (void)CloseHandle(thread);
}

#else

#include <pthread.h>

typedef pthread_t thread_handle;

static void *run_thread(void *argument)
{
    const struct thread_work *task = argument;

    task->work(task->argument);
    return NULL;
}

static bool start(thread_handle *thread, struct thread_work *task)
{
    return pthread_create(thread, NULL, run_thread, task) == 0;
}

static void join(thread_handle thread)
{
    (void)pthread_join(thread, NULL);
}

#endif

void threads_run(int count, void (*work)(void *argument), void *argument)
{
    struct thread_work task = {work, argument};
    thread_handle *threads = count > 1 ? malloc((size_t)count * sizeof *threads) : NULL;
    int started = 0;

    while (threads && started < count - 1 && start(&threads[started], &task)) {
        started++;
    }
    work(argument);
    for (int i = 0; i < started; i++) {
        join(threads[i]);
    }
    free(threads);
}

#endif
