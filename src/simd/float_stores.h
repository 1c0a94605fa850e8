/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores of a chunk to floating point that are certain where there is no NaN. Included by a vector header after
 * certainty_of_floats(), put_<y>() and put_around_<y>(), which store around the cache. */
#define STORE(NAME, HOW)                                                                                               \
    static inline certainty NAME(void *p, vchunk t, bool split)                                                        \
    {                                                                                                                  \
        (void)split; /* never true: no x is bfloat16 */                                                                \
        HOW(p, t);                                                                                                     \
        return certainty_of_floats(t);                                                                                 \
    }

STORE(chunk_store_f32, put_f32)
STORE(chunk_store_f16, put_f16)
STORE(chunk_store_bf16, put_bf16)
STORE(chunk_stream_f32, put_around_f32)
STORE(chunk_stream_f16, put_around_f16)
STORE(chunk_stream_bf16, put_around_bf16)
#undef STORE
