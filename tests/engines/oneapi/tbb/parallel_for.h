/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for oneTBB's header where oneTBB is missing: on one thread, the last part first. */
#ifndef STANDIN_TBB_PARALLEL_FOR_H
#define STANDIN_TBB_PARALLEL_FOR_H

namespace oneapi
{
namespace tbb
{

template <typename Range, typename Body> void parallel_for(const Range &range, const Body &body)
{
    const auto size = range.end() - range.begin();

    if (size > range.grainsize()) {
        const auto middle = range.begin() + size / 2;
        parallel_for(Range(middle, range.end(), range.grainsize()), body);
        parallel_for(Range(range.begin(), middle, range.grainsize()), body);
    } else if (size > 0) {
        body(range);
    }
}

} // namespace tbb
} // namespace oneapi

#endif
