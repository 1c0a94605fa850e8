/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain stores in the place of those around the cache, for instruction sets that have none to speak of. Included by
 * a vector header after its chunk_store_<y>() and chunk_store_total_requant(), which never gives up. */
#define STREAM(NAME, STORE)                                                                                            \
    static inline bool NAME(void *p, vchunk t, bool split)                                                             \
    {                                                                                                                  \
        return STORE(p, t, split);                                                                                     \
    }

STREAM(chunk_stream_i8, chunk_store_i8)
STREAM(chunk_stream_u8, chunk_store_u8)
STREAM(chunk_stream_i32, chunk_store_i32)
STREAM(chunk_stream_i4, chunk_store_i4)
STREAM(chunk_stream_f32, chunk_store_f32)
STREAM(chunk_stream_f16, chunk_store_f16)
STREAM(chunk_stream_bf16, chunk_store_bf16)
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
