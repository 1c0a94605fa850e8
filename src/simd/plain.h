/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain way for instruction sets that have no stores around the cache to speak of, no cheaper order of lanes than
 * that of memory, and no ranges that depend on signs. Included by a vector header after its vrange and hrange, and
 * chunk_store_total_requant(), which never gives up. */
static inline bool chunk_store_requant(void *p, vchunk t, ichunk offsets, bool around)
{
    (void)around;
    chunk_store_total_requant(p, t, offsets);
    return true;
}

static inline void stream_end(void)
{
}

static inline vchunk chunk_load_split_bf16(const void *p)
{
    return chunk_load_bf16(p);
}

static inline vchunk chunk_split(vchunk t)
{
    return t;
}

static inline bool vrange_both(vrange a)
{
    (void)a;
    return true;
}
