/* SPDX-License-Identifier: BSD-3-Clause */
/* A prepared call on threads of POSIX. */
#include "prepared.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

struct share {
    const npuq_call *call;
    size_t i;
};

static void *run_thread(void *argument)
{
    const struct share *share = argument;

    run_share(share->call, share->i, THREADS);
    return NULL;
}

static void run_on_threads(const npuq_call *call)
{
    pthread_t threads[THREADS];
    struct share shares[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        shares[i] = (struct share){call, i};
        if (pthread_create(&threads[i], NULL, run_thread, &shares[i]) != 0) {
            (void)fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    return prepared_check("POSIX threads", run_on_threads);
}
