/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The row kernels, written once over the vocabulary of a vector header. An ISA's file includes its vector header, then
 * this, and defines its table with NPUQ_ROW_TABLE.
 *
 * The vocabulary. vec.h has, for every header that has given it vf: vi, vu and vh, the same bytes as integers; vchunk,
 * ichunk and hchunk (four vectors of floats, four of int32, two of float16's or bfloat16's patterns: v[i]); and what
 * the compiler's operators say alike for all. All arithmetic is one binary32 operation a step: nothing may fuse, but
 * within v_quotient. A vector header has:
 * - v_set; chunk_load_<x> and chunk_load_<parameter>, but for those that vec.h has.
 * - chunk_store_<y>, with `around` (a constant) to an address that is a multiple of 64, or of the bytes of a chunk of y
 *   where these are fewer, around the cache; stream_end(), as row.h says; chunk_store_total_<y>. Stores named requant
 *   are of int8 with requant's two clamps, with offsets between them.
 * - Loads (but of parameters that are not binary32) and stores also as _part, for 0 < n <= CHUNK elements. They touch
 *   no other memory; lanes beyond n repeat the first.
 * - chunk_load_split_bf16 may leave the lanes in an order of the header's own; chunk_split brings parameters into that
 *   order, and stores with split true put it right. There is none for int32.
 * - vrange and hrange, extremes of float32 and of halves, each with _of, _join, _both (whether values of both signs
 *   have been seen) and _reduce. A header that defines FLOAT_RANGES has frange, too: ranges of floats of both signs,
 *   compared as floats.
 * - FAST_DIVIDE, v_quotient, chunk_is_plain and quotients_are_numbers; see chunk.h. A header that defines
 *   TOTAL_QUOTIENT as 1 has chunk_quotient_total, which makes quotients of any x by the inverse, too.
 * - For the words of trans_quant_param: round_offset and round_scales, of one vector; put_words, which stores words
 *   whose halves are given.
 * - For short rows: v_above(a, b), a > b ? a : b; v_upper and v_lower, the larger and the smaller of two patterns as
 *   signed integers; v_even and v_odd, every second lane of two vectors.
 *
 * chunk_store says whether it was certain of what it stored: it is not where a lane is NaN or too far out of range for
 * the conversion to saturate. What it says is a bool, or the type `certainty` of a header that defines CERTAINTY: it
 * joins the answers of a strip of chunks by certain_if_both(), from certain() on, and is_certain() asks once. Then it
 * does not need quotients_are_numbers: its stores to integers notice a NaN. A strip that is not certain is done again
 * by chunk_store_total, which takes everything, as chunk_store_part does, if at some cost: it saturates, and NaN
 * becomes 0 in integers and the one NaN 0x7FC00000, 0x7E00 or 0x7FC0 in floating point.
 *
 * What a kernel is for (types, operation, where parameters come from) reaches the inline functions as constants. A
 * header that defines TYPES_AT_RUN_TIME gets one kernel of each kind, but those from integers, for all types instead:
 * it asks for them in each chunk, never stores around the cache, and takes rows one at a time.
 */
#ifndef NPUQ_ROW_KERNELS_H
#define NPUQ_ROW_KERNELS_H

#include "affine.h"
#include "from_integers.h"
#include "packing.h"
#include "ranges.h"
#include "short_rows.h"

#endif
