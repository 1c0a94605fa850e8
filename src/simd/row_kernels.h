/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The row kernels, written once over the vocabulary of a vector header. An ISA's file includes its vector header,
 * defines NPUQ_KERNEL to give kernels its suffix, includes this, and defines its table with NPUQ_ROW_TABLE.
 *
 * The vocabulary. vec.h has, for every header that has given it vf: vi, vu and vh, the same bytes as integers; vchunk,
 * ichunk and hchunk (four vectors of floats, four of int32, two of float16's or bfloat16's patterns: v[i]); and what
 * the compiler's operators say alike for all. Every operation rounds to binary32: none may fuse, but in v_quotient. A
 * vector header has:
 * - v_set; chunk_load_<x> and chunk_load_<parameter>, but for those that vec.h has.
 * - chunk_store_<y>, non-temporal if the constant of this name is true: to an address that is a multiple of 64, or of
 *   the bytes of a chunk of y where these are fewer; fence_stores(), as row.h says; chunk_store_exact_<y>. Stores named
 *   requant are of int8 with requant's two clamps, with offsets between them.
 * - Loads (but of parameters that are not binary32) and stores also as _tail, for 0 < n <= CHUNK elements. They touch
 *   no other memory; lanes beyond n repeat the first.
 * - chunk_load_unpacked_bf16 may leave the lanes in the order of the header's unpacking instructions.
 *   chunk_to_unpack_order brings parameters into that order, and stores with unpack_order true, of which int32 has
 * none, put it right.
 * - vrange and hrange, extremes of float32 and of halves, each with _of, _join, _reduce, and _has_mixed_signs: whether
 *   it has seen values of both signs. A header that defines FLOAT_RANGES has frange, too: ranges of floats of both
 *   signs, compared as floats.
 * - FAST_DIVIDE, v_quotient, chunk_is_invertible and are_quotients_exact; see chunk.h. A header that defines
 *   EXACT_QUOTIENT as 1 has chunk_quotient_exact, which makes quotients of any x by the inverse, too.
 * - For the words of trans_quant_param: round_offset and round_scales, of one vector; put_words, of given halves.
 * - For short rows: v_above(a, b), a > b ? a : b; v_upper and v_lower, the larger and the smaller of two patterns as
 *   signed integers; v_even and v_odd, every second lane of two vectors.
 *
 * chunk_store returns a check: it fails where a lane is NaN or too far out of range for the conversion to saturate. The
 * check is a bool, or the type store_check of a header that defines STORE_CHECK. From start_check() on, join_checks()
 * joins the checks of a strip, and is_fast_path_ok() tests them once. Such a header does not need are_quotients_exact:
 * its stores to integers notice a NaN. A strip whose check fails is stored again by chunk_store_exact, which takes
 * everything, as chunk_store_tail does, at some cost: it saturates, and NaN becomes 0 in integers and the one NaN
 * 0x7FC00000, 0x7E00 or 0x7FC0 in floating point.
 *
 * What a kernel is for (types, operation, where parameters come from) reaches the inline functions as constants. A
 * header that defines TYPES_AT_RUN_TIME gets one kernel of each kind, but those from integers, for all types instead:
 * it tests them in each chunk, has no non-temporal stores, and takes rows one at a time.
 */
#ifndef NPUQ_ROW_KERNELS_H
#define NPUQ_ROW_KERNELS_H

#include "affine.h"
#include "dequantise.h"
#include "packing.h"
#include "ranges.h"
#include "short_rows.h"

#endif
