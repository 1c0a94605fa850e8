/* SPDX-License-Identifier: BSD-3-Clause */
/* Tails for instruction sets without masks: full chunks, copied through the stack. A vector header includes this after
 * its loads of full chunks and its exact stores. */
#include "../type.h"

/* Copies n storage words of `size` bytes to a chunk of `all` words. The rest repeat the first word. */
static inline void copy_tail(void *chunk, const void *p, size_t n, size_t all, size_t size)
{
    memcpy(chunk, p, n * size);
    for (size_t i = n; i < all; i++) {
        memcpy((char *)chunk + i * size, p, size);
    }
}

/* SIZE bytes hold PACK elements. */
#define LOAD_TAIL(TYPE, SIZE, PACK, CHUNK_TYPE)                                                                        \
    static __attribute__((noinline)) CHUNK_TYPE chunk_load_tail_##TYPE(const void *p, size_t n)                        \
    {                                                                                                                  \
        _Alignas(64) char chunk[CHUNK / (PACK) * (SIZE)];                                                              \
        copy_tail(chunk, p, n / (PACK), CHUNK / (PACK), SIZE);                                                         \
        return chunk_load_##TYPE(chunk);                                                                               \
    }

#define STORE_TAIL(NAME, name, row, number, KIND, bits, ...)                                                           \
    static __attribute__((noinline)) void chunk_store_tail_##row(void *p, vchunk t, size_t n)                          \
    {                                                                                                                  \
        _Alignas(64) char chunk[(bits)*CHUNK / 8];                                                                     \
        chunk_store_exact_##row(chunk, t);                                                                             \
        memcpy(p, chunk, (bits)*n / 8);                                                                                \
    }

LOAD_TAIL(f32, 4, 1, vchunk)
LOAD_TAIL(f16, 2, 1, vchunk)
LOAD_TAIL(bf16, 2, 1, vchunk)
LOAD_TAIL(i8, 1, 1, vchunk)
LOAD_TAIL(i4, 4, 8, vchunk)
LOAD_TAIL(ints, 4, 1, ichunk)
LOAD_TAIL(halves, 2, 1, hchunk)
EACH_ROW_TYPE(STORE_TAIL)

static __attribute__((noinline)) void chunk_store_tail_i8_flipped(void *p, vchunk t, uint8_t flip, size_t n)
{
    _Alignas(64) char chunk[CHUNK];
    chunk_store_exact_i8_flipped(chunk, t, flip);
    memcpy(p, chunk, n);
}

static __attribute__((noinline)) void chunk_store_tail_requant(void *p, vchunk t, ichunk offsets, size_t n)
{
    _Alignas(64) char chunk[CHUNK];
    chunk_store_exact_requant(chunk, t, offsets);
    memcpy(p, chunk, n);
}

#undef LOAD_TAIL
#undef STORE_TAIL

static inline vu round_scales(vu s)
{
    const vu exponent = s & 0x7F800000;
    const vu half = (s >> 13 & 1) + 0xFFF;
    return (s + (half & ~(vu)(exponent == 0x7F800000))) & ~((vu)(exponent == 0) & 0x7FFFFFFF);
}
