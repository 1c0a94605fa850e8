/* SPDX-License-Identifier: BSD-3-Clause */
/* Tails for instruction sets without masks: full chunks, copied through the stack. A vector header includes this after
 * its loads and narrows of full chunks. */

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

/* What follows PARAMETERS are the arguments of the narrow of a full chunk. */
#define NARROW_TAIL(TO, BITS, PARAMETERS, ...)                                                                         \
    static __attribute__((noinline)) void narrow_tail_##TO PARAMETERS                                                  \
    {                                                                                                                  \
        _Alignas(64) char chunk[(BITS)*CHUNK / 8];                                                                     \
        narrow_##TO(chunk, __VA_ARGS__);                                                                               \
        memcpy(p, chunk, (BITS)*n / 8);                                                                                \
    }

LOAD_TAIL(f32, 4, 1, vchunk)
LOAD_TAIL(f16, 2, 1, vchunk)
LOAD_TAIL(bf16, 2, 1, vchunk)
LOAD_TAIL(i8, 1, 1, vchunk)
LOAD_TAIL(i4, 4, 8, vchunk)
LOAD_TAIL(ints, 4, 1, ichunk)
LOAD_TAIL(halves, 2, 1, hchunk)
NARROW_TAIL(32, 32, (void *p, ichunk c, size_t n), c, false)
NARROW_TAIL(16, 16, (void *p, hcodes c, size_t n), c, false)
NARROW_TAIL(int8, 8, (void *p, icodes c, uint8_t flip, size_t n), c, flip, false, false)
NARROW_TAIL(uint8, 8, (void *p, icodes c, size_t n), c, false, false)
NARROW_TAIL(int4, 4, (void *p, icodes c, size_t n), c, false, false)

static inline vf v_bounded_magnitude(vf t, vf most)
{
    return v_lower((vf)((vu)t & 0x7FFFFFFF), most);
}

#undef LOAD_TAIL
#undef NARROW_TAIL

static inline vu round_scales(vu s)
{
    const vu exponent = s & 0x7F800000;
    const vu half = (s >> 13 & 1) + 0xFFF;
    return (s + (half & ~(vu)(exponent == 0x7F800000))) & ~((vu)(exponent == 0) & 0x7FFFFFFF);
}
