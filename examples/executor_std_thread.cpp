/* SPDX-License-Identifier: BSD-3-Clause */
/* An executor over std::thread that keeps nothing between calls: it starts threads for each. That costs some 20
 * microseconds a thread; an engine has a pool already and should lend that. */
#include "executor_check.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

/* The library calls with C linkage, and nothing may be thrown through it. */
extern "C" {
static void parallel_for(void *context, std::size_t count,
                         void (*task)(void *argument, std::size_t begin, std::size_t end), void *argument) noexcept
{
    const std::size_t threads = std::min<std::size_t>(*static_cast<const unsigned *>(context), count);
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
            task(argument, i, i + 1);
        }
    };
    std::vector<std::thread> helpers;

    try {
        while (helpers.size() + 1 < threads) {
            helpers.emplace_back(work);
        }
    } catch (const std::exception &) { /* no more threads, or no memory: those that there are do it all */
    }
    work();
    for (std::thread &helper : helpers) {
        helper.join();
    }
}
}

int main()
{
    unsigned threads = std::max(2u, std::thread::hardware_concurrency());
    const npuq_executor executor = {parallel_for, &threads};

    return executor_check("std::thread", &executor);
}
