/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain functions for instruction sets without non-temporal stores, a cheaper order of lanes than that of memory, or
 * ranges that depend on signs. A vector header includes this after its vrange and hrange. */
static inline void narrow_32(void *p, ichunk c, bool non_temporal)
{
    (void)non_temporal;
    for (size_t i = 0; i < 4; i++) {
        put_vector(p, i, (vu)c.v[i]);
    }
}

typedef hchunk hcodes;

static inline void narrow_16(void *p, hcodes c, bool non_temporal)
{
    (void)non_temporal;
    put_vector(p, 0, (vu)c.v[0]);
    put_vector(p, 1, (vu)c.v[1]);
}

static inline vh h_signs(vf a, vf b)
{
    return (vh)((vs)upper_halves(a, b) >> 15);
}

static inline void fence_stores(void)
{
}

static inline vchunk chunk_load_unpacked_bf16(const void *p)
{
    return chunk_load_bf16(p);
}

static inline vchunk chunk_to_unpack_order(vchunk t)
{
    return t;
}

static inline bool vrange_has_mixed_signs(vrange a)
{
    (void)a;
    return true;
}
