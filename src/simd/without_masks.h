/* SPDX-License-Identifier: BSD-3-Clause */
/* What instruction sets without masks do otherwise. Parts of a chunk are whole chunks by way of the stack. Included by
 * a vector header after its whole loads, and its stores that take everything (chunk_store_total_<y>). */
#include "../backend/row_types.h"

/* n of all steps of a chunk, each of so many bytes; those that are left repeat the first. */
static inline void copy_part(void *chunk, const void *p, size_t n, size_t all, size_t size)
{
    memcpy(chunk, p, n * size);
    for (size_t i = n; i < all; i++) {
        memcpy((char *)chunk + i * size, p, size);
    }
}

/* SIZE bytes hold PACK elements. */
#define LOAD_PART(TYPE, SIZE, PACK, CHUNK_TYPE)                                                                        \
    static __attribute__((noinline)) CHUNK_TYPE chunk_load_part_##TYPE(const void *p, size_t n)                        \
    {                                                                                                                  \
        _Alignas(64) char chunk[CHUNK / (PACK) * (SIZE)];                                                              \
        copy_part(chunk, p, n / (PACK), CHUNK / (PACK), SIZE);                                                         \
        return chunk_load_##TYPE(chunk);                                                                               \
    }

#define STORE_PART(ID, name, bits, dtype)                                                                              \
    static __attribute__((noinline)) void chunk_store_part_##name(void *p, vchunk t, size_t n)                         \
    {                                                                                                                  \
        _Alignas(64) char chunk[CHUNK * (bits) / 8];                                                                   \
        chunk_store_total_##name(chunk, t);                                                                            \
        memcpy(p, chunk, n *(bits) / 8);                                                                               \
    }

LOAD_PART(f32, 4, 1, vchunk)
LOAD_PART(f16, 2, 1, vchunk)
LOAD_PART(bf16, 2, 1, vchunk)
LOAD_PART(i8, 1, 1, vchunk)
LOAD_PART(i4, 4, 8, vchunk)
LOAD_PART(ints, 4, 1, ichunk)
LOAD_PART(halves, 2, 1, hchunk)
NPUQ_EACH_Y_TYPE(STORE_PART)

static __attribute__((noinline)) void chunk_store_part_requant(void *p, vchunk t, ichunk offsets, size_t n)
{
    _Alignas(64) char chunk[CHUNK];
    chunk_store_total_requant(chunk, t, offsets);
    memcpy(p, chunk, n);
}

#undef LOAD_PART
#undef STORE_PART

/* Half to even at bit 13; subnormal ones become zero, infinities and NaNs stay. */
static inline vu round_scales(vu s)
{
    const vu exponent = s & 0x7F800000;
    const vu half = (s >> 13 & 1) + 0xFFF;
    return (s + (half & ~(vu)(exponent == 0x7F800000))) & ~((vu)(exponent == 0) & 0x7FFFFFFF);
}
