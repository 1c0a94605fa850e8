# SPDX-License-Identifier: BSD-3-Clause
"""Mutants: name, file, original text (found there exactly once), changed text."""

ELEMENT = "src/ref/npuq_ref_element.h"
ROWS = "src/ref/npuq_ref_rows.h"
KERNELS = "src/simd/row_kernels.h"
RANGE = "src/simd/row_range.h"
AVX512 = "src/simd/vec_avx512.h"
AVX2 = "src/simd/vec_avx2.h"
LOOP = "src/walk/loop.c"
TILE = "src/walk/tile.c"
PARAMS = "src/walk/params.c"
QUANTIZE = "src/operators/quantize.c"
GROUP = "src/operators/group_quant.c"
DYNAMIC = "src/operators/dynamic_call.c"
SYMMETRIC = "src/operators/dynamic_quant.c"
PASSES = "src/operators/dynamic.c"
PACK = "src/operators/trans_quant_param.c"
ANTI = "src/operators/anti_quant.c"
DEQUANT = "src/operators/dequant.c"
REQUANT = "src/operators/requant.c"
FROM = "src/operators/from_integers.c"
GROUPS = "src/view/groups.c"
FP = "src/walk/fp_state.h"
VIEW = "src/view/view.c"
OVERLAP = "src/view/overlap.c"
DLPACK = "include/npuquant/dlpack.h"
CALL = "diagnosis/call.c"
DIAGNOSE = "diagnosis/diagnose.c"
EXPLAIN = "diagnosis/explain.c"
HARD = "diagnosis/hard_inputs.c"
LAYOUTS = "diagnosis/layouts.c"
PARTS = "diagnosis/parts.c"
REPORT = "diagnosis/diagnosis_report.c"
STATE = "diagnosis/state.h"
STEPS = "diagnosis/steps.c"
TEXT = "diagnosis/text.c"

MUTANTS = [
    # the oracle: rounding, ends of ranges, NaN, conversions
    ("ref: half up instead of to even", ELEMENT, "((fraction == 0.5f) & odd)", "(fraction == 0.5f)"),
    ("ref: negative halves away from zero", ELEMENT, "((fraction == -0.5f) & odd)", "(fraction == -0.5f)"),
    ("ref: NaN to the low end", ELEMENT, "    if (npuq_ref_is_nan(t)) {\n        return 0;", "    if (npuq_ref_is_nan(t)) {\n        return low;"),
    ("ref: int8 from -127", ELEMENT, "npuq_ref_saturate(t, INT8_MIN, INT8_MAX)", "npuq_ref_saturate(t, -127, INT8_MAX)"),
    ("ref: uint8 to 254", ELEMENT, "npuq_ref_saturate(t, 0, UINT8_MAX)", "npuq_ref_saturate(t, 0, 254)"),
    ("ref: int4 to 8", ELEMENT, "npuq_ref_saturate(t, -8, 7)", "npuq_ref_saturate(t, -8, 8)"),
    ("ref: nibbles from the top", ELEMENT, "nibble << (4 * (i % 8))", "nibble << (28 - 4 * (i % 8))"),
    ("ref: multiply by the inverse", ELEMENT, "const float scaled = divide ? npuq_ref_div(x, s)", "const float scaled = divide ? npuq_ref_mul(x, 1.0f / s)"),
    ("ref: float16 subnormals one off", ELEMENT, "(127 - 15 + 1 - shift) << 23", "(127 - 15 - shift) << 23"),
    ("ref: float16 infinities finite", ELEMENT, "if (exponent == 31) {", "if (exponent == 32) {"),
    ("ref: maximum ignores the sign of zero", ELEMENT, "(v == range.hi && npuq_ref_to_bits(v) == 0)", "(v == range.hi && npuq_ref_to_bits(v) == 1)"),
    ("ref: 254 steps", ELEMENT, "15.0f : 255.0f", "15.0f : 254.0f"),
    ("ref: int4 offset from 8", ELEMENT, "7.0f : 127.0f;\n    const float steps", "8.0f : 127.0f;\n    const float steps"),
    ("ref: smallest scale inclusive of NaN", ELEMENT, "d > least ? d : least", "d <= least ? least : d"),
    ("ref: packed ties up", ELEMENT, "scale += 0xFFFu + ((scale >> 13) & 1u)", "scale += 0x1000u"),
    ("ref: packed subnormals kept", ELEMENT, "if (round_to_nearest && exponent == 0) {", "if (round_to_nearest && scale == 0) {"),
    ("ref: packed offset to 256", ELEMENT, "npuq_ref_saturate(offset, -256, 255)", "npuq_ref_saturate(offset, -256, 256)"),
    ("ref: packed flag moved", ELEMENT, "(uint64_t)1 << 46", "(uint64_t)1 << 45"),
    ("ref: int4 without its sign", ELEMENT, "return nibble < 8 ? nibble : nibble - 16;", "return nibble;"),
    ("ref: int4 from the top", ELEMENT, "word >> (4 * i) & 15u", "word >> (28 - 4 * i) & 15u"),
    ("ref: bfloat16 halves away from zero", ELEMENT, "bits + 0x7FFFu + ((bits >> 16) & 1u)", "bits + 0x8000u"),
    ("ref: bfloat16 NaN as it comes", ELEMENT, "return 0x7FC0u;", "return (uint16_t)(bits >> 16);"),
    ("ref: float16 NaN with its sign", ELEMENT, "return 0x7E00u;", "return (uint16_t)(sign | 0x7E00u);"),
    ("ref: float32 NaN as it comes", ELEMENT, "return npuq_ref_is_nan(t) ? npuq_ref_from_bits(0x7FC00000u) : t;", "return t;"),
    ("ref: float16 saturates", ELEMENT, "sign | 0x7C00u", "sign | 0x7BFFu"),
    ("ref: float16 infinite from 65504 on", ELEMENT, "magnitude >= 0x477FF000u", "magnitude >= 0x477FE000u"),
    ("ref: float16 halves away from zero", ELEMENT, "rebiased + 0xFFFu + ((rebiased >> 13) & 1u)", "rebiased + 0x1000u"),
    ("ref: float16 subnormals flushed", ELEMENT, "magnitude < 0x33000000u", "magnitude < 0x38800000u"),
    ("ref: float16 subnormal halves up", ELEMENT, "(half - 1u) + ((significand >> shift) & 1u)", "half"),
    ("ref: magnitude with its sign", ELEMENT, "const float magnitude = npuq_ref_from_bits(npuq_ref_to_bits(v) & 0x7FFFFFFFu);", "const float magnitude = v;"),
    ("ref: largest magnitude without NaN", ELEMENT, "npuq_ref_is_nan(v) || npuq_ref_is_nan(largest)", "npuq_ref_is_nan(largest)"),
    ("ref: largest magnitude is the maximum", ELEMENT, "npuq_ref_largest_with(npuq_ref_largest_with(0.0f, range.hi), range.lo)", "npuq_ref_largest_with(0.0f, range.hi)"),
    ("ref: scale forms swapped", ELEMENT, "inverse_form ? npuq_ref_div(1.0f, p.back) : npuq_ref_mul(largest, one_in_dmax)", "inverse_form ? npuq_ref_mul(largest, one_in_dmax) : npuq_ref_div(1.0f, p.back)"),
    ("ref: symmetric divided by the scale", ELEMENT, "p.back = npuq_ref_div(dmax, largest);", "p.back = npuq_ref_div(1.0f, npuq_ref_mul(largest, one_in_dmax));"),
    ("ref: symmetric scale by a division", ELEMENT, "npuq_ref_mul(largest, one_in_dmax)", "npuq_ref_div(largest, dmax)"),
    ("ref: sums saturate", ELEMENT, "const uint32_t sum = (uint32_t)a + (uint32_t)b;", "const int64_t wide = (int64_t)a + b;\n    const int32_t sum = wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;"),
    ("ref: all bits of a word's scale", ELEMENT, "(uint32_t)word & 0xFFFFE000u", "(uint32_t)word"),
    ("ref: a word's offset without its sign", ELEMENT, "return nine_bits < 256 ? nine_bits : nine_bits - 512;", "return nine_bits;"),
    ("ref: a word's offset of eight bits", ELEMENT, "word >> 37 & 0x1FFu", "word >> 37 & 0xFFu"),
    ("ref: one clamp for two", ELEMENT, "npuq_ref_saturate(p, -256, 255) + offset", "npuq_ref_saturate(p, -100000, 100000) + offset"),
    ("ref: first clamp to int8", ELEMENT, "npuq_ref_saturate(p, -256, 255)", "npuq_ref_saturate(p, -128, 127)"),
    ("ref: requant's offset before rounding", ELEMENT, "npuq_ref_saturate(p, -256, 255) + offset", "npuq_ref_saturate(p + (float)offset, -256, 255)"),
    ("ref: smooth after the range", ROWS, "smooth ? npuq_ref_mul(v, smooth[i]) : v", "v"),

    # vector kernels
    ("kernels: fused product and sum", AVX512, "return _mm512_add_ps(a, b);", "return _mm512_fmadd_ps(a, _mm512_set1_ps(0x1.000002p0f), b);"),
    ("kernels: no second look at uncertain chunks", AVX512, "_mm512_set1_epi16(INT16_MIN)) == 0;", "_mm512_set1_epi16(INT16_MIN)) != 1 << 31;"),
    ("kernels: half of a chunk looked at", AVX512, "_mm512_min_epi16(w.ab, w.cd)", "w.ab"),
    ("kernels: NaN clamped", AVX512, "_mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(t, t, _CMP_ORD_Q), clamp(t, INT16_MIN, INT16_MAX))", "clamp(t, INT16_MIN, INT16_MAX)"),
    ("kernels: clamp at 2^14", AVX512, "clamp(t, INT16_MIN, INT16_MAX)", "clamp(t, INT16_MIN, 100)"),
    ("kernels: int4 from -7", AVX512, "_mm512_set1_epi8(-8)", "_mm512_set1_epi8(-7)"),
    ("kernels: nibbles swapped", AVX512, "_mm512_set1_epi16(0x1001)", "_mm512_set1_epi16(0x0110)"),
    ("kernels: packed bytes out of order", AVX512, "_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7)", "_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)"),
    ("kernels: split parameters unsplit", AVX512, "_mm512_shuffle_f32x4(t.v[2], t.v[3], 0xDD)", "t.v[3]"),
    ("kernels: int32 above 2^31", AVX512, "_CMP_GE_OQ", "_CMP_GT_OQ"),
    ("kernels: int32 NaN not seen", AVX512, "_kortestz_mask16_u8(_mm512_cmp_ps_mask(t.v[0], t.v[1], _CMP_UNORD_Q)", "_kortestz_mask16_u8(_mm512_cmp_ps_mask(t.v[3], t.v[2], _CMP_UNORD_Q)"),
    ("kernels: quotient not corrected", AVX512, "return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, scale, x), inverse, q);", "(void)scale;\n    return q;"),
    ("kernels: quotient corrected unfused", AVX512, "_mm512_fnmadd_ps(q, scale, x)", "_mm512_sub_ps(x, _mm512_mul_ps(q, scale))"),
    ("kernels: any scale is plain", AVX512, "return _mm512_movepi32_mask(bits) == 0;", "return _mm512_movepi32_mask(bits) >= 0;"),
    ("kernels: one sign is both", AVX512, "_mm512_movepi32_mask(a.smax) != 0xFFFF && _mm512_movepi32_mask(a.umax) != 0", "_mm512_movepi32_mask(a.smax) != 0xFFFF || _mm512_movepi32_mask(a.umax) != 0"),
    ("kernels: one sign of halves is both", AVX512, "_mm512_movepi16_mask(a.smax) != 0xFFFFFFFF && ", ""),
    ("kernels: unsigned maximum signed", AVX512, "_mm512_max_epu16(a.umax, b.umax)", "_mm512_max_epi16(a.umax, b.umax)"),
    ("kernels: part of a lane too many", AVX512, "~(uint64_t)0 >> (CHUNK - n)", "~(uint64_t)0 >> (CHUNK - n - (n < CHUNK))"),
    ("kernels: packed scale not even", AVX512, "_mm512_add_epi32(odd, _mm512_set1_epi32(0xFFF))", "_mm512_set1_epi32(0x1000)"),
    ("kernels, AVX2: no second look", AVX2, "return _mm256_testz_si256(least, least);", "return _mm256_testz_si256(least, least) >= 0;"),
    ("kernels, AVX2: NaN not masked", AVX2, "_mm256_and_si256(clamp(t, INT16_MIN, INT16_MAX), ordered_lanes(t))", "clamp(t, INT16_MIN, INT16_MAX)"),
    ("kernels, AVX2: sign bits of other bytes", AVX2, "(~(uint32_t)_mm256_movemask_epi8(a.smax) & 0xAAAAAAAAu)", "(~(uint32_t)_mm256_movemask_epi8(a.smax) & 0x55555555u)"),
    ("kernels: offset before the product", KERNELS, "            t = chunk_mul(t, smooth);\n        }", "            t = chunk_mul(t, chunk_mul(smooth, p.scale));\n            p.scale = chunk_set(1.0f);\n        }"),
    ("kernels: tail forgotten", KERNELS, "    if (at < n) {\n        part(k, r, count, at, n - at);", "    if (at + 1 < n) {\n        part(k, r, count, at, n - at);"),
    ("kernels: one row of four", KERNELS, "r->x + (ptrdiff_t)i * r->x_step", "r->x + (ptrdiff_t)(i / 3) * r->x_step"),
    ("kernels: inverse of the first column", KERNELS, "p.inverse = chunk_div(chunk_set(1.0f), p.scale);", "p.inverse = chunk_div(chunk_set(1.0f), chunk_set(*r->scales));"),
    ("kernels: stream head one short", KERNELS, "            at = head;", "            at = head + CHUNK;"),
    ("kernels: parameters of one row for all", KERNELS, "r.scales = scale + i * step;", "r.scales = scale;"),
    ("kernels: int32 bias after the conversion", KERNELS, "sums = ichunk_add(sums, load_integers(d->x_bias + at, n, part));\n        }\n        t = chunk_of_ints(sums);", "t = chunk_add(chunk_of_ints(sums), chunk_of_ints(load_integers(d->x_bias + at, n, part)));\n        } else {\n            t = chunk_of_ints(sums);\n        }"),
    ("kernels: anti_quant's offset after the product", KERNELS, "        if (d->offset) {\n            t = chunk_add(t, d->step ? load_parameters(d->offset + at, n, part) : p->offset);\n        }\n    }\n    t = chunk_mul(t, d->step ? load_parameters(d->scale + at, n, part) : p->scale);", "    }\n    t = chunk_mul(t, d->step ? load_parameters(d->scale + at, n, part) : p->scale);\n    if (k.x != x_i32 && d->offset) {\n        t = chunk_add(t, d->step ? load_parameters(d->offset + at, n, part) : p->offset);\n    }"),
    ("kernels: activation scale of the row before", KERNELS, "p->row_scale[r->first]", "p->row_scale[r->first - (r->first > 0)]"),
    ("kernels: activation scale of the first row", KERNELS, "r.first = i;", "r.first = 0;"),
    ("kernels: bias before the activation scale", KERNELS, "    if (k.x == x_i32 && d->row_scale) {\n        t = chunk_mul(t, p->row_scale);\n    }\n    if (k.x == x_i32 && d->bias) {\n        t = chunk_add(t, load_parameters(d->bias + at, n, part));\n    }", "    if (k.x == x_i32 && d->bias) {\n        t = chunk_add(t, load_parameters(d->bias + at, n, part));\n    }\n    if (k.x == x_i32 && d->row_scale) {\n        t = chunk_mul(t, p->row_scale);\n    }"),
    ("kernels: bias of the first columns", KERNELS, "load_parameters(d->bias + at, n, part)", "load_parameters(d->bias, n, part)"),
    ("kernels: requant's offsets of the first columns", KERNELS, "load_integers(d->y_offset + at, n, part)", "load_integers(d->y_offset, n, part)"),
    ("kernels: int32 bias of the first columns", KERNELS, "load_integers(d->x_bias + at, n, part)", "load_integers(d->x_bias, n, part)"),
    ("kernels: int4 of x from the middle of a word", KERNELS, "(k.x != x_i4 || head % 8 == 0)", "(k.x != x_i4 || head % 1 == 0)"),
    ("kernels: nibbles of x swapped", AVX512, "_mm256_unpacklo_epi8(even, odd)", "_mm256_unpacklo_epi8(odd, even)"),
    ("kernels: nibbles of x without their sign", AVX512, "_mm256_sub_epi8(_mm256_xor_si256(_mm256_unpackhi_epi8(even, odd), sign), sign)", "_mm256_unpackhi_epi8(even, odd)"),
    ("kernels: words of x out of order", AVX512, "floats_of_i8(_mm256_castsi256_si128(b)),\n                     floats_of_i8(_mm256_extracti128_si256(a, 1))", "floats_of_i8(_mm256_extracti128_si256(a, 1)),\n                     floats_of_i8(_mm256_castsi256_si128(b))"),
    ("kernels: words of x beyond the last", AVX512, "first_lanes(n / 8)", "first_lanes(CHUNK - 8 + n / 8)"),
    ("kernels: one clamp for two", AVX512, "_mm512_max_epi16(_mm512_min_epi16(w.ab, high), low)", "w.ab"),
    ("kernels: requant's offsets of other columns", AVX512, "_mm512_packs_epi32(offsets.v[2], offsets.v[3])", "_mm512_packs_epi32(offsets.v[0], offsets.v[1])"),
    ("kernels: bfloat16 halves away from zero", AVX512, "_mm512_cmpgt_epu16_mask(sticky,", "_mm512_cmpge_epu16_mask(sticky,"),
    ("kernels: float16 truncated", AVX512, "_mm512_maskz_cvtps_ph(0xFFFF, t, _MM_FROUND_TO_NEAREST_INT)", "_mm512_maskz_cvtps_ph(0xFFFF, t, _MM_FROUND_TO_ZERO)"),
    ("kernels: float16 NaN as it comes", AVX512, "pair_f16(canonical(t.v[0]), canonical(t.v[1]))", "pair_f16(canonical(t.v[0]), t.v[1])"),
    ("kernels: bfloat16 NaN as it comes", AVX512, "pair_bf16(canonical(t.v[2]), canonical(t.v[3]))", "pair_bf16(t.v[2], canonical(t.v[3]))"),
    ("kernels: float32 NaN with its sign", AVX512, "return _mm512_mask_mov_ps(t, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));", "return _mm512_mask_or_ps(t, nan, t, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));"),
    ("kernels, AVX2: nibbles of x swapped", AVX2, "_mm_unpackhi_epi8(even, odd)", "_mm_unpackhi_epi8(odd, even)"),
    ("kernels, AVX2: nibbles of x without their sign", AVX2, "_mm_sub_epi8(_mm_xor_si128(_mm_unpacklo_epi8(even, odd), sign), sign)", "_mm_unpacklo_epi8(even, odd)"),
    ("kernels, AVX2: one clamp for two", AVX2, "_mm256_max_epi16(_mm256_min_epi16(w.cd, high), low)", "w.cd"),
    ("kernels, AVX2: bfloat16 halves out of order", AVX2, "return _mm256_permute4x64_epi64(packed, 0xD8);", "return packed;"),
    ("kernels, AVX2: NaN as it comes", AVX2, "_mm256_blendv_ps(t.v[i], nan, _mm256_cmp_ps(t.v[i], t.v[i], _CMP_UNORD_Q))", "_mm256_blendv_ps(t.v[i], nan, _mm256_setzero_ps())"),
    ("range: last chunk of halves lost", KERNELS, "    if (at + CHUNK <= n) {", "    if (at + CHUNK < n - CHUNK) {"),
    ("range: NaN as a number", RANGE, "if (new_hi > ORDERED_INF || ", "if ("),
    ("range: -0 not below +0", RANGE, "return bits ^ (int32_t)((0 - ((uint32_t)bits >> 31)) >> 1);", "return bits < 0 ? (int32_t)(0x80000000u - (uint32_t)bits) : bits;"),

    # index space, tiles, parameters
    ("loop: stride of the wrong dimension", LOOP, "rect->data[i] += (ptrdiff_t)index * loop->strides[d][i];", "rect->data[i] += (ptrdiff_t)index * loop->strides[0][i];"),
    ("loop: joined too much", LOOP, "loop->strides[inner][i] * (ptrdiff_t)(loop->extents[inner] / pack)", "loop->strides[inner][i] * (ptrdiff_t)(loop->extents[inner])"),
    ("loop: turned round one short", LOOP, "(ptrdiff_t)(loop->extents[d] - 1) * loop->strides[d][i]", "(ptrdiff_t)(loop->extents[d]) * loop->strides[d][i]"),
    ("loop: rectangles run on", LOOP, "rect->rows = rows < left ? rows : left;", "rect->rows = rows;"),
    ("loop: last unit dropped", LOOP, "return a / b + (a % b != 0);", "return a / b + (a % b > 1);"),
    ("loop: columns of units overlap", LOOP, "(i - down * units->across) * units->unit_cols", "(i - down * units->across) * (units->unit_cols - 64)"),
    ("loop: int4 words as columns", LOOP, "(ptrdiff_t)(col / loop->pack[i]) * rect->col_step[i]", "(ptrdiff_t)col * rect->col_step[i]"),
    ("loop: int4 words of x as columns", LOOP, "loop->pack[NPUQ_LOOP_X] = x_dtype == NPUQ_QUINT4X2 ? 8 : 1;", "(void)x_dtype;"),
    ("loop: columns of int4 words of x joined or swapped", LOOP, "return loop->pack[NPUQ_LOOP_X] > 1 || ", "return "),
    ("tile: staged rows not scattered", TILE, "copy_rect(y, staged_y, y_size, rows, y_cols);", "copy_rect(y, staged_y, y_size, rows, y_cols - (y_cols > 9));"),
    ("tile: row parameters of the first block", TILE, "const npuq_params offset_here = npuq_params_from(offset, row);", "const npuq_params offset_here = npuq_params_from(offset, 0);"),
    ("tile: column parameters of the first tile", TILE, "const npuq_params smooth_here = npuq_params_from(smooth, col);", "const npuq_params smooth_here = npuq_params_from(smooth, 0);"),
    ("tile: activation scales of the first block", TILE, "params.row_scale += first_row;", "params.row_scale += 0 * first_row;"),
    ("tile: strided int32 bias taken for contiguous", TILE, "if (params->step == (ptrdiff_t)sizeof *buffer) {", "if (params->step != 0) {"),
    ("tile: one word for all", TILE, "words->data + (ptrdiff_t)i * words->step", "words->data + 0 * (ptrdiff_t)i * words->step"),
    ("tile: offsets of words ignored", TILE, "columns->words_have_offsets ? y_offsets : NULL", "columns->words_have_offsets && false ? y_offsets : NULL"),
    ("tile: scales of the first tile", TILE, "npuq_params_from(&columns->scale, first_col + col)", "npuq_params_from(&columns->scale, first_col)"),
    ("tile: bias of the first unit", TILE, "npuq_params_from(&columns->bias, first_col + col)", "npuq_params_from(&columns->bias, col)"),
    ("tile: words of the first unit", TILE, "npuq_params_from(&columns->words, first_col + col)", "npuq_params_from(&columns->words, col)"),
    ("tile: words by column need no room", TILE, "is_unready(&c->offset) || c->words.data)", "is_unready(&c->offset))"),
    ("tile: offsets by column alone", TILE, "c->scale.step != 0 || c->offset.step != 0 || c->words.step != 0", "c->scale.step != 0 || c->offset.step != 0"),
    ("params: repeats counted from the start", PARAMS, "columns = params->repeat - params->used; i < n;", "columns = params->repeat; i < n;"),
    ("params: strided taken for contiguous", PARAMS, "params->repeat == 1 && params->step == (ptrdiff_t)npuq_dtype_size(params->dtype)", "params->repeat == 1"),
    ("params: any contiguous binary32 is ready", PARAMS, "params->dtype == NPUQ_FLOAT32 && params->step == (ptrdiff_t)sizeof(float)", "params->dtype == NPUQ_FLOAT32 && params->step != 0"),

    # operators
    ("quantize: axis -2 is the last", QUANTIZE, "*found = axis == -2 ? x->ndim - 2 : x->ndim - 1;", "*found = x->ndim - 1;"),
    ("quantize: any negative axis", QUANTIZE, "if (axis < -2) {", "if (axis < -x->ndim) {"),
    ("quantize: dividing, an axis of ndim", QUANTIZE, "axis >= x->ndim) {", "axis > x->ndim) {"),
    ("quantize: scales of any length", QUANTIZE, "!(along && scales->shape[d] == x->shape[axis])", "!along"),
    ("quantize: zero points of another dtype", QUANTIZE, "if (!div_mode && zero_points->dtype != scales->dtype) {", "if (div_mode && zero_points->dtype == NPUQ_INT64) {"),
    ("group_quant: scales of the first group", GROUP, "scale.data += (ptrdiff_t)run.e * t->scale_group_step;", "scale.data += 0 * (ptrdiff_t)run.e * t->scale_group_step;"),
    ("groups: empty groups own a row", GROUPS, "(size_t)group_end(group_index, middle) > row", "(size_t)group_end(group_index, middle) >= row"),
    ("groups: decreasing ends", GROUPS, "if (end < previous) {", "if (end < 0) {"),
    ("groups: rows after the last group", GROUPS, "if (previous != rows) {", "if (previous > rows) {"),
    ("dynamic: smooth scales of the first group", PASSES, "smooth.data += (ptrdiff_t)run.e * d->smooth_group_step;", "smooth.data += 0 * (ptrdiff_t)run.e * d->smooth_group_step;"),
    ("dynamic: one part's range lost", PASSES, "for (size_t i = 0; i < d->units.count; i++) {\n        d->range =", "for (size_t i = d->units.count > 1; i < d->units.count; i++) {\n        d->range ="),
    ("dynamic: 1025 groups", DYNAMIC, "E > MAX_GROUPS", "E > MAX_GROUPS + 1"),
    ("dynamic: empty rows", DYNAMIC, "if (x->shape[d] == 0 && last) {", "if (x->shape[d] < 0 && last) {"),
    ("dynamic: long rows take the first row's smooth scales", PASSES, "const size_t row = d->first_row + unit.row + done;", "const size_t row = unit.row + done;"),
    ("dynamic: smooth scales of a part begin at column 0", PASSES, "if (unit.col > 0) {", "if (unit.col > SIZE_MAX - 1) {"),
    ("dynamic steps: extremes swapped", PASSES, "*of_row(rect, NPUQ_DYNAMIC_MAX, r) = hi[r];\n        *of_row(rect, NPUQ_DYNAMIC_MIN, r) = lo[r];", "*of_row(rect, NPUQ_DYNAMIC_MAX, r) = lo[r];\n        *of_row(rect, NPUQ_DYNAMIC_MIN, r) = hi[r];"),
    ("dynamic steps: the scale itself", PASSES, "back[r] = npuq_ref_div(1.0f, *of_row(rect, NPUQ_DYNAMIC_SCALE, r));", "back[r] = *of_row(rect, NPUQ_DYNAMIC_SCALE, r);"),
    ("dynamic steps: nothing ranges from 0 to 0", DYNAMIC, "fill(min, nothing.lo);", "fill(min, 0 * nothing.lo);"),
    ("dynamic steps: parameters of int8 for int4", DYNAMIC, "const npuq_ref_dtype type = y_dtype == NPUQ_QUINT4X2 ? NPUQ_REF_QUINT4X2 : NPUQ_REF_INT8;", "const npuq_ref_dtype type = NPUQ_REF_INT8;"),
    ("dynamic_quant: scale forms swapped", SYMMETRIC, "scale_form == NPUQ_SCALE_INVERSE ? NPUQ_SYMMETRIC_INVERSE : NPUQ_SYMMETRIC_PRODUCT", "scale_form == NPUQ_SCALE_INVERSE ? NPUQ_SYMMETRIC_PRODUCT : NPUQ_SYMMETRIC_INVERSE"),
    ("dynamic_quant: any scale form", SYMMETRIC, "scale_form != NPUQ_SCALE_PRODUCT && scale_form != NPUQ_SCALE_INVERSE", "scale_form != NPUQ_SCALE_PRODUCT && false"),
    ("dynamic_quant steps: the greatest value alone", PASSES, "{*of_row(rect, NPUQ_DYNAMIC_MAX, r), *of_row(rect, NPUQ_DYNAMIC_MIN, r)}", "{*of_row(rect, NPUQ_DYNAMIC_MAX, r), *of_row(rect, NPUQ_DYNAMIC_MAX, r)}"),
    ("anti_quant: offset of another dtype", ANTI, "if (offset && offset->dtype != scale->dtype) {", "if (offset && offset->dtype == NPUQ_INT64) {"),
    ("anti_quant: scalar words", ANTI, "x && x->dtype == NPUQ_QUINT4X2, NPUQ_MAX_NDIM", "x && x->ndim < 0, NPUQ_MAX_NDIM"),
    ("anti_quant: scales of any length", FROM, "tensor->shape[last] == 1 || tensor->shape[last] == columns", "tensor->shape[last] <= columns"),
    ("dequant: int32 bias as floating point", DEQUANT, "bias && bias->dtype == NPUQ_INT32;", "bias && bias->dtype == NPUQ_INT8;"),
    ("dequant: bias of any length", DEQUANT, "bias, 1, &x->shape[last], \"the last dimension of x\"", "bias, 1, bias->shape, \"the last dimension of x\""),
    ("requant: last word not looked at", REQUANT, "i < count; i++) {\n            b =", "i + 1 < count; i++) {\n            b ="),
    ("requant: bit 46 of one word is enough", REQUANT, "b.all & word", "(b.all & ~must_be_1) | word"),
    ("requant: words without bit 46", REQUANT, "(b.any & must_be_0) == 0 && (b.all & must_be_1) != 0", "(b.any & must_be_0) == 0"),
    ("requant: words with bit 36", REQUANT, "(uint64_t)0x1F << 32", "(uint64_t)0x0F << 32"),
    ("requant: words with bit 32", REQUANT, "(uint64_t)0x1F << 32", "(uint64_t)0x1E << 32"),
    ("requant: several rows of words", REQUANT, "words->ndim == 2 ? npuq_check_shape(", "words->ndim > 2 ? npuq_check_shape("),
    ("from integers: rows swapped in spite of activation scales", FROM, "!arguments->row_scale && !npuq_dequant_by_column(c)", "!npuq_dequant_by_column(c)"),
    ("from integers: columns swapped in spite of a bias", FROM, "!c->bias.data && !c->x_bias.data", "!c->bias.data"),
    ("from integers: parameters of the first unit", FROM, "t->columns, unit.col, &row_scale", "t->columns, 0 * unit.col, &row_scale"),
    ("from integers: more rows than there is room for", FROM, "left < NPUQ_DEQUANT_ROWS ? left : NPUQ_DEQUANT_ROWS", "left < 0 * NPUQ_DEQUANT_ROWS ? 0 : left"),
    ("from integers: stride of one parameter", FROM, "if (tensor->shape[last] > 1) {", "if (tensor->shape[last] > 0) {"),
    ("trans_quant_param: a row along its own dimension", PACK, "? y->ndim - 1 : -1", "? last : -1"),
    ("trans_quant_param: offsets of several rows", PACK, "if (offset->ndim == 2 && offset->shape[0] != 1) {", "if (offset->ndim == 2 && offset->shape[0] == 0) {"),
    ("trans_quant_param: y as the longer", PACK, "if (offset && offset->ndim != scale->ndim) {", "if (offset && offset->ndim > scale->ndim + 1) {"),
    ("trans_quant_param: offsets of the first tile", PACK, "npuq_params_from(&offset, col)", "npuq_params_from(&offset, 0)"),

    # the host's floating-point state
    ("fp state: control kept", FP, "if ((caller.mxcsr & ~flags) != plain) {", "if (caller.mxcsr == 1) {"),
    ("fp state: only rounding set", FP, "if ((caller.mxcsr & ~flags) != plain) {", "if ((caller.mxcsr & 0x6000) != 0) {"),
    ("fp state: flags left behind", FP, "if (now != caller->mxcsr) {", "if (((now ^ caller->mxcsr) & ~(uint32_t)0x3F) != 0) {"),
    ("fp state: control left behind", FP, "if (now != caller->mxcsr) {", "if (now == 1) {"),

    # validation
    ("view: misaligned by half", VIEW, "& (size - 1);", "& (size / 2 - (size > 1));"),
    ("view: x repeats one element", VIEW, "    return several;", "    return false && several;"),
    ("view: strides of one element count", VIEW, "if (tensor->shape[d] > 1 && tensor->strides[d] != 0) {", "if (tensor->strides[d] != 0) {"),
    ("view: one element repeats itself", VIEW, "bool several = false;", "bool several = true;"),
    ("view: negative extents", VIEW, "if (a->tensor->shape[d] < 0) {", "if (a->tensor->shape[d] < -1) {"),
    ("view: rank 9", VIEW, "a->tensor->ndim > a->max_ndim", "a->tensor->ndim > a->max_ndim + 1"),
    ("view: extents overflow", VIEW, "__builtin_mul_overflow(count, tensor->shape[d], &count)", "__builtin_mul_overflow(count, tensor->shape[d], &count) && tensor->ndim > 9"),
    ("view: four elements to a word of x", VIEW, "__builtin_mul_overflow(shape[last], 8, &shape[last])", "__builtin_mul_overflow(shape[last], 4, &shape[last])"),
    ("view: words of 4", VIEW, "shape[last] % 8 != 0", "shape[last] % 4 != 0"),
    ("view: outputs may overlap outputs", VIEW, "arguments[j].role == NPUQ_OUTPUT && j >= i;", "arguments[j].role == NPUQ_OUTPUT;"),
    ("view: outputs may overlap inputs", VIEW, "arguments[j].role == NPUQ_OUTPUT && j >= i;", "arguments[j].role != NPUQ_OUTPUT || j >= i;"),
    ("overlap: interleaving is overlapping", OVERLAP, "return solve(&e, (uint64_t)(b_span->last - a_span->first));", "return NPUQ_OVERLAP_FOUND;"),
    ("overlap: equal strides nest", OVERLAP, "if (magnitude(tensor->strides[d]) <= reach) {", "if (magnitude(tensor->strides[d]) < reach) {"),
    ("overlap: too few steps", OVERLAP, "target > rest ? (target - rest - 1) / t.step + 1 : 0", "target > rest ? (target - rest) / t.step + 1 : 0"),
    ("overlap: the last index does not count", OVERLAP, "(uint64_t)(tensor->shape[d] - 1) * times", "(uint64_t)(tensor->shape[d] - 1) * times - times"),

    # views of DLPack tensors
    ("dlpack: lanes", DLPACK, "source.lanes == 1 ?", "source.lanes <= 2 ?"),
    ("dlpack: bfloat16 is float16", DLPACK, "*dtype = NPUQ_BFLOAT16;", "*dtype = NPUQ_FLOAT16;"),
    ("dlpack: managed memory", DLPACK, "source->device.device_type != kDLROCMHost", "source->device.device_type < kDLROCMHost"),
    ("dlpack: rank 9", DLPACK, "source->ndim > NPUQ_MAX_NDIM", "source->ndim > NPUQ_MAX_NDIM + 1"),
    ("dlpack: negative extents", DLPACK, "if (source->shape[d] < 0) {", "if (source->shape[d] < -3) {"),
    ("dlpack: null data of an empty tensor", DLPACK, "if (!source->data && !empty) {", "if (!source->data) {"),
    ("dlpack: the last extent alone is 0", DLPACK, "empty = empty || source->shape[d] == 0;", "empty = source->shape[0] == 0;"),
    ("dlpack: offset dropped", DLPACK, " + (size_t)source->byte_offset;", ";"),
    ("dlpack: offset wraps", DLPACK, "source->byte_offset > UINTPTR_MAX - (uintptr_t)source->data", "source->byte_offset == 1"),
    ("dlpack: null moved by the offset", DLPACK, "    if (source->data) {\n", "    if (true) {\n"),
    ("dlpack: strides dropped", DLPACK, "tensor.strides[d] = source->strides[d];", "(void)d;"),
    ("dlpack: view half written", DLPACK, "        empty = empty ||", "        view->ndim = source->ndim;\n        empty = empty ||"),
    ("dlpack: message without its 0", DLPACK, "(void)vsnprintf(message, size, format, arguments);", "(void)vsnprintf(message, size + 1, format, arguments);"),
    # the diagnosis: the search, layouts, what is said
    ("diagnosis: half of a pair left out", DIAGNOSE, "s->single_count += try_on_sample(s, finding, SIZE_MAX, SIZE_MAX);", "s->single_count += try_on_sample(s, finding, SIZE_MAX, SIZE_MAX) && finding->explained + finding->newly_wrong > 0;"),
    ("diagnosis: pairs behind singles", DIAGNOSE, "    sort(d->findings, d->count);\n", ""),
    ("diagnosis: NaN is another scale", DIAGNOSE, "return x == y || (npuq_ref_is_nan(x) && npuq_ref_is_nan(y));", "return x == y;"),
    ("diagnosis: what is newly wrong not confirmed", DIAGNOSE, "finding->newly_wrong += parts[i].newly_wrong;", "(void)parts;"),
    ("diagnosis: a row that remains counted for each element", DIAGNOSE, "remainder->rows.count == 0 || remainder->rows.last != i / columns", "true"),
    ("diagnosis: untouched elements hold the first", LAYOUTS, "layout->fill = array_bits(theirs, call->count - 1);", "layout->fill = array_bits(theirs, 0);"),
    ("diagnosis: rows elsewhere not found", LAYOUTS, "if (here[i].hash == there[j].hash) {", "if (here[i].row == there[j].row) {"),
    ("diagnosis: one element is an untouched tail", LAYOUTS, "(call->columns - from) * call->rows > 1", "from < call->columns"),
    ("diagnosis: a part of few elements", PARTS, "return differing >= LEAST_DIFFERING;", "return true;"),
    ("diagnosis: a part with what is right", PARTS, "        if (side->is_right[i]) {\n            return false;", "        if (side->is_right[i] && i > side->last) {\n            return false;"),
    ("diagnosis: a part ends where something differs last", PARTS, "roundest(side->last + 1, most)", "side->last + 1"),
    ("diagnosis: untouched from a multiple of itself", REPORT, "layout->from & (0 - layout->from)", "layout->from"),
    ("diagnosis: uneven rows told as even ones", REPORT, "lines->step > 0 && (lines->step == 1", "(lines->step == 1"),
    ("diagnosis: the highest is where the lowest is", STEPS, 'note_place(a, "hi is at", e->hi_at);', 'note_place(a, "hi is at", e->lo_at);'),
    ("diagnosis: a product that is fused shown rounded", STEPS, "in_sum && choice(a, STEP_SUM) == SUM_FUSED", "in_sum && choice(a, STEP_SUM) == SUM_FLOAT64"),
    ("diagnosis: printed as the caller rounds", STATE, "(void)fesetround(FE_TONEAREST);", "(void)rounding;"),
    ("diagnosis: one name for a pair", EXPLAIN, '"%s", beside->name);', '"%.6s", beside->name);'),
    ("diagnosis: control characters as they are", TEXT, "c < ' '", "c < '\\n'"),
    ("diagnosis: one seed for all hard inputs", HARD, ".state = inputs->wish.seed}", ".state = 1}"),
    ("diagnosis: an axis from the end", CALL, "return axis < 0 ? axis + call->ndim : axis;", "return axis < 0 ? -axis - 1 : axis;"),
]
