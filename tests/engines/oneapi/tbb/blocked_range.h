/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for oneTBB's header where oneTBB is missing. */
#ifndef STANDIN_TBB_BLOCKED_RANGE_H
#define STANDIN_TBB_BLOCKED_RANGE_H

#include <cstddef>

namespace oneapi
{
namespace tbb
{

template <typename Value> class blocked_range
{
  public:
    blocked_range(Value begin, Value end, std::size_t grainsize = 1) : first(begin), last(end), grain(grainsize)
    {
    }
    Value begin() const
    {
        return first;
    }
    Value end() const
    {
        return last;
    }
    std::size_t grainsize() const
    {
        return grain;
    }

  private:
    Value first, last;
    std::size_t grain;
};

} // namespace tbb
} // namespace oneapi

#endif
