/* SPDX-License-Identifier: BSD-3-Clause */
/* An executor without threads: the contract in one loop, to trace units or to start from. */
#include "executor_check.h"

static void parallel_for(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        task(argument, i, i + 1);
    }
}

int main(void)
{
    const npuq_executor executor = {parallel_for, NULL};

    return executor_check("a plain loop", &executor);
}
