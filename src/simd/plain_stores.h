/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain stores in the place of those around the cache, for instruction sets that have none to speak of. Included by
 * a vector header after its chunk_store_<y>() and chunk_store_total_requant(), which never gives up. */
#include "y_types.h"

#define STREAM(ID, name, bits)                                                                                         \
    static inline bool chunk_stream_##name(void *p, vchunk t, bool split)                                              \
    {                                                                                                                  \
        return chunk_store_##name(p, t, split);                                                                        \
    }

EACH_Y(STREAM)
#undef STREAM

static inline bool chunk_store_requant(void *p, vchunk t, ichunk offsets)
{
    chunk_store_total_requant(p, t, offsets);
    return true;
}

static inline bool chunk_stream_requant(void *p, vchunk t, ichunk offsets)
{
    return chunk_store_requant(p, t, offsets);
}

static inline void stream_end(void)
{
}
