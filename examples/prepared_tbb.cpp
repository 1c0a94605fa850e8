/* SPDX-License-Identifier: BSD-3-Clause */
/* A prepared call on the threads of oneTBB. */
#include "prepared.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

static void run_with_tbb(const npuq_call *call)
{
    using range = oneapi::tbb::blocked_range<size_t>;

    oneapi::tbb::parallel_for(range(0, npuq_call_units(call), 16),
                              [call](const range &units) { npuq_call_run(call, units.begin(), units.end()); });
}

int main()
{
    return prepared_check("oneTBB", run_with_tbb);
}
