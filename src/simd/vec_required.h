/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabulary: every word that a vector header gives to the kernels. After a vector header, chunk.h includes this:
 * the compiler then names a missing word or a wrong type. The test tests/test_vocabulary.c tries every word: it defines
 * WORD(type, name, parameters) before it includes this.
 *
 * A vector header defines vf, a vector of floats, and includes vec.h. That adds vi, vu and vh, vectors of integers of
 * as many bytes; LANES, CHUNK and LOW_FIRST; vchunk and ichunk, four vectors of floats and of int32; hchunk, two
 * vectors of patterns of float16 or bfloat16. Each operator + - * / on vf must be one IEEE operation. Every operation
 * rounds to binary32; only v_quotient may fuse. Memory is aligned to its element, unless a comment here says otherwise.
 *
 * A vector header may also define these macros:
 * - STORE_CHECK, FLOAT_RANGES, CONVERTS_BF16, and EXACT_QUOTIENT, FAST_INVERSE and LOOKS_UP_I4 as 1: the header then
 *   has the words under that macro.
 * - TYPES_AT_RUN_TIME: one kernel of each kind tests the types of each chunk, except from integers. It has no
 *   non-temporal stores and takes rows one at a time: less code, for a fallback.
 * - IN_PAIRS(SPEC): whether two chunks at a time are faster.
 */
#include "../type.h"

/* Not by declaring the functions again: that would change their order in clang's machine code. */
#ifndef WORD
#define WORD(type, name, parameters)                                                                                   \
    typedef type required_##name parameters;                                                                           \
    _Static_assert(_Generic(&(name), required_##name * : 1, default : 0), "must be: " #type " " #name #parameters);
#endif

/* ---- vectors ---------------------------------------------------------------------------------------------------- */

/* In vec.h: loads and stores the vector that is i vectors beyond p. */
WORD(vu, vector_at, (const void *p, size_t i))
WORD(void, put_vector, (void *p, size_t i, vu v))
WORD(vf, v_load, (const float *p))
/* In vec.h: patterns as order_bits() maps them. */
WORD(vf, v_ordered, (vf v))
WORD(vf, v_set, (float value))
/* a > b ? a : b */
WORD(vf, v_above, (vf a, vf b))
/* The larger and the smaller of two patterns as signed integers. */
WORD(vf, v_upper, (vf a, vf b))
WORD(vf, v_lower, (vf a, vf b))
/* The larger of two patterns of 16 bits without sign. */
WORD(vh, h_upper, (vh a, vh b))
WORD(vh, h_lower, (vh a, vh b))
/* The smaller of `most` and the magnitude of t; a NaN gives any number. */
WORD(vf, v_bounded_magnitude, (vf t, vf most))
/* Every second lane of a, then of b: from the first or from the second lane on. */
WORD(vf, v_even, (vf a, vf b))
WORD(vf, v_odd, (vf a, vf b))

/* ---- loads ------------------------------------------------------------------------------------------------------ */

/* A chunk of x or of parameters, widened exactly. A NaN may have any payload. vec.h has the words of 32 bits. */
WORD(vchunk, chunk_load_f32, (const void *p))
WORD(vchunk, chunk_load_f16, (const void *p))
WORD(vchunk, chunk_load_bf16, (const void *p))
WORD(vchunk, chunk_load_i8, (const void *p))
WORD(vchunk, chunk_load_u8, (const void *p))
WORD(vchunk, chunk_load_i4, (const void *p))
WORD(vchunk, chunk_load_i32, (const void *p))
/* In vec.h: patterns of float16 or bfloat16, and int32, as they are. */
WORD(hchunk, chunk_load_halves, (const void *p))
WORD(ichunk, chunk_load_ints, (const void *p))
/* Bytes as the upper ones of halves, and patterns of float16 widened exactly. A NaN may have any payload. */
WORD(hchunk, chunk_load_bytes, (const void *p))
WORD(vchunk, chunk_of_f16, (hchunk t))
/* Floats of 4 bits, the even element low, from a table of the upper halves of their 16 values. The lower halves are 0.
 * The table is repeated to fill the vector; where that has room for 8 of them, those of the other sign are left out. */
WORD(vchunk, chunk_look_up, (const void *p, vu table))

/* The first n lanes are elements, 0 < n <= CHUNK, for int4 a multiple of 8. The other lanes repeat the first lane, for
 * int4 the first eight. Nothing beyond n is read. without_masks.h makes these of the loads above. */
WORD(vchunk, chunk_load_tail_f32, (const void *p, size_t n))
WORD(vchunk, chunk_load_tail_f16, (const void *p, size_t n))
WORD(vchunk, chunk_load_tail_bf16, (const void *p, size_t n))
WORD(vchunk, chunk_load_tail_i8, (const void *p, size_t n))
WORD(vchunk, chunk_load_tail_i4, (const void *p, size_t n))
WORD(hchunk, chunk_load_tail_halves, (const void *p, size_t n))
WORD(ichunk, chunk_load_tail_ints, (const void *p, size_t n))

/* Unpack order: the header unpacks bfloat16 fastest to this order of lanes; in plain.h, it is that of memory. A lane
 * stays in its half of a chunk. The first word loads in this order, the second brings other chunks into it. A store
 * with `unpack_order` restores the order of memory. */
WORD(vchunk, chunk_load_unpacked_bf16, (const void *p))
WORD(vchunk, chunk_to_unpack_order, (vchunk t))

/* In vec.h: sums are modulo 2^32; a conversion rounds half to even. */
WORD(ichunk, ichunk_set, (int32_t value))
WORD(ichunk, ichunk_add, (ichunk a, ichunk b))
WORD(vchunk, chunk_of_ints, (ichunk a))

/* ---- quotients -------------------------------------------------------------------------------------------------- */

/* FAST_DIVIDE is a constant. If it is 0, v_quotient divides, and both predicates are true. If it is 1,
 * chunk_is_invertible tells whether all magnitudes are in [2^-64, 2^64). For such a scale, v_quotient makes x / scale
 * of the rounded inverse: chunk.h has the formula. The quotient is NaN where x * inverse is not finite. A quotient
 * below 2^-27 may be off, but stays below. */
WORD(vf, v_quotient, (vf x, vf scale, vf inverse))
WORD(bool, chunk_is_invertible, (vchunk scales))
#if EXACT_QUOTIENT
/* As v_quotient, but NaN only where the quotient is NaN. */
WORD(vchunk, chunk_quotient_exact, (vchunk x, vchunk scales, vchunk inverses))
#endif
#if FAST_INVERSE
/* 1 / s rounded, of an invertible s, and of its inverse with a relative error of at most 2^-14. */
WORD(vf, v_inverse, (vf s, vf near))
/* x / scales, as v_quotient; where it is not by an inverse, it may divide. Adds to the check whether all scales whose
 * inverses it takes are invertible. */
WORD(vchunk, chunk_div_checked, (vchunk x, vchunk scales, store_check *done))
#endif
#ifndef STORE_CHECK
/* Whether no quotient is NaN. With STORE_CHECK, encodes to integers must notice a NaN instead. */
WORD(bool, are_quotients_exact, (vchunk quotients))
#endif

/* ---- checks of encodes ------------------------------------------------------------------------------------------ */

/* An encode may give a wrong code only where a lane is NaN or too large to convert. Then its check must fail, and the
 * kernel stores again by an exact encode. The check must not fail where all lanes are zeros or normal numbers below
 * 32767. From start_check() on, join_checks() joins checks, and is_fast_path_ok() tests them once. The constant
 * `floats` tells of encodes to floating point. In chunk.h a check is a bool; a header with a cheaper one defines
 * STORE_CHECK, the type store_check and these words. */
WORD(store_check, start_check, (void))
WORD(store_check, join_checks, (store_check a, store_check b, bool floats))
WORD(bool, is_fast_path_ok, (store_check c, bool floats))

/* ---- encodes ---------------------------------------------------------------------------------------------------- */

/* A store is an encode and a narrow. An encode rounds a chunk half to even. To integers it saturates, and makes 0 of
 * NaN. To floating point it keeps subnormal results, and makes of NaN the one NaN 0x7FC00000, 0x7E00 or 0x7FC0. The
 * check is that of start_check(). An encode may set it; with the constant `exact`, it sets none, and all codes are
 * right. */
WORD(ichunk, encode_int32, (vchunk t, bool exact, store_check *check))
WORD(ichunk, encode_float32, (vchunk t, bool exact, store_check *check))

/* hcodes, a type of the header, are codes of 16 bits in the order of memory. */
WORD(hcodes, encode_float16, (vchunk t, bool exact, store_check *check))
WORD(hcodes, encode_bfloat16, (vchunk t, bool exact, store_check *check))
/* The upper halves, which are the codes of numbers that bfloat16 has. */
WORD(hcodes, truncate_bfloat16, (vchunk t))
#ifdef CONVERTS_BF16
/* For CPUs that convert to bfloat16. The check may also fail where a lane is subnormal. */
WORD(hcodes, encode_converted_bfloat16, (vchunk t, store_check *check))
#endif
#if LOOKS_UP_I4
/* Of a chunk of int4, its results: 16 bits for each of 0 to 7, then of -8 to -1, repeated to fill the vector. */
WORD(hcodes, look_up_int4, (const void *x, vu results))
#endif

/* icodes, a type of the header, are what integers of 8 and 4 bits are narrowed from. They are saturated to
 * least..most, or, where the narrows saturate, at least to 16 bits. */
WORD(icodes, encode_integers, (vchunk t, int least, int most, bool exact, store_check *check))
/* Clamps codes of -256..255 to these where that is left to do, and adds offsets of -256..255. The narrow is to int8. */
WORD(icodes, add_requant_offsets, (icodes c, ichunk offsets))

/* Small floats, of 8 and 4 bits, are made in small_floats.h. icodes of halves, as they are: */
WORD(icodes, icodes_of_halves, (vh ab, vh cd))
/* Halves of two vectors, in the order of icodes: the upper ones of all lanes, and all ones where the sign is set. */
WORD(vh, upper_halves, (vf a, vf b))
WORD(vh, h_signs, (vf a, vf b))
/* The codes that sum_of_small() leaves in positive sums: an exponent counted from f.first, and the lower half. */
WORD(vh, small_codes, (vf a, vf b, small_format f))
/* Byte i of a table where i is less than 16, else 0, for i below 128. */
WORD(vh, h_look_up, (const uint8_t table[16], vh i))
/* Fails where a lane is NaN; at most, as checks of encodes do. */
WORD(store_check, check_of_floats, (vchunk t))

/* ---- narrows ---------------------------------------------------------------------------------------------------- */

/* A narrow stores a chunk of codes, of the bits or the type in its name. `flip` is XORed with each byte. `unpack_order`
 * is the order of the chunk that was encoded. With `non_temporal`, p is a multiple of 64, or of the stored bytes if
 * they are fewer. */
WORD(void, narrow_32, (void *p, ichunk c, bool non_temporal))
WORD(void, narrow_16, (void *p, hcodes c, bool non_temporal))
WORD(void, narrow_int8, (void *p, icodes c, uint8_t flip, bool unpack_order, bool non_temporal))
WORD(void, narrow_uint8, (void *p, icodes c, bool unpack_order, bool non_temporal))
WORD(void, narrow_int4, (void *p, icodes c, bool unpack_order, bool non_temporal))
/* The first n elements, 0 < n <= CHUNK, for int4 a multiple of 8. without_masks.h makes these of the narrows above. */
WORD(void, narrow_tail_32, (void *p, ichunk c, size_t n))
WORD(void, narrow_tail_16, (void *p, hcodes c, size_t n))
WORD(void, narrow_tail_int8, (void *p, icodes c, uint8_t flip, size_t n))
WORD(void, narrow_tail_uint8, (void *p, icodes c, size_t n))
WORD(void, narrow_tail_int4, (void *p, icodes c, size_t n))

/* After non-temporal stores: see npuq_fence_stores_fn. */
WORD(void, fence_stores, (void))

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

/* The header has the types vrange and hrange, the extremes of vectors of floats and of halves. Once both signs have
 * been seen, has_mixed_signs is true; in a header where signs do not matter, always. From then on the constant
 * mixed_signs may be true, which saves work. All lanes are joined by vrange_reduce; a NaN of either sign becomes hi or
 * lo. */
WORD(vrange, vrange_of, (vf v))
WORD(vrange, vrange_join, (vrange a, vrange b, bool mixed_signs))
WORD(bool, vrange_has_mixed_signs, (vrange a))
WORD(row_range, vrange_reduce, (vrange a, bool mixed_signs))
/* hrange_reduce stores patterns. With mixed signs: of the largest and the smallest value. Otherwise the maxima as
 * signed and as unsigned integers, then the two minima, for make_row_range(). */
WORD(hrange, hrange_of, (vh v))
WORD(hrange, hrange_join, (hrange a, hrange b, bool mixed_signs))
WORD(bool, hrange_has_mixed_signs, (hrange a))
WORD(void, hrange_reduce, (hrange a, uint16_t *extremes))
#ifdef FLOAT_RANGES
/* Ranges by comparing floats, to be joined to a vrange of mixed signs. The range is right if frange_is_exact says so:
 * never where a lane is NaN, always where all lanes are zeros or normal numbers below 32767. */
WORD(frange, frange_of_mixed_signs, (void))
WORD(frange, frange_with, (frange a, vchunk c))
WORD(bool, frange_is_exact, (frange a))
WORD(vrange, vrange_of_floats, (frange a))
#endif

/* ---- the words of trans_quant_param ----------------------------------------------------------------------------- */

/* The last nine bits are the integer, rounded half to even and clamped to -256..255; NaN is 0. Other bits may be
 * anything. */
WORD(vi, round_offset, (vf t))
/* Scales, rounded half to even at bit 13; the bits below may be anything. Subnormal numbers become zeros; infinities
 * and NaNs stay. */
WORD(vu, round_scales, (vu s))
/* LANES words, each of a low and a high half. */
WORD(void, put_words, (uint64_t y[LANES], vu low, vu high))

#undef WORD
