/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

static const struct peer *const list[] = {
    &peer_naive,
#ifdef BENCH_WITH_CLANG
    &peer_naive_clang,
#endif
#ifdef BENCH_WITH_DNNL
    &peer_dnnl,
#endif
#ifdef BENCH_WITH_XNNPACK
    &peer_xnnpack,
#endif
};

const struct peer *const *peers(int *count)
{
    *count = (int)(sizeof list / sizeof list[0]);
    return list;
}
