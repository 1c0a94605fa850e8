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
DYNAMIC = "src/operators/dynamic_quant_asymmetric.c"
PASSES = "src/operators/dynamic.c"
PACK = "src/operators/trans_quant_param.c"
GROUPS = "src/view/groups.c"
FP = "src/walk/fp_state.h"
VIEW = "src/view/view.c"
OVERLAP = "src/view/overlap.c"
DLPACK = "include/npuquant/dlpack.h"

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
    ("ref: int4 offset from 8", ELEMENT, "7.0f : 127.0f", "8.0f : 127.0f"),
    ("ref: smallest scale inclusive of NaN", ELEMENT, "d > least ? d : least", "d <= least ? least : d"),
    ("ref: packed ties up", ELEMENT, "scale += 0xFFFu + ((scale >> 13) & 1u)", "scale += 0x1000u"),
    ("ref: packed subnormals kept", ELEMENT, "if (round_to_nearest && exponent == 0) {", "if (round_to_nearest && scale == 0) {"),
    ("ref: packed offset to 256", ELEMENT, "npuq_ref_saturate(offset, -256, 255)", "npuq_ref_saturate(offset, -256, 256)"),
    ("ref: packed flag moved", ELEMENT, "(uint64_t)1 << 46", "(uint64_t)1 << 45"),
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
    ("kernels: int32 NaN not seen", AVX512, "_mm512_cmp_ps_mask(t.v[0], t.v[1], _CMP_UNORD_Q) | ", ""),
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
    ("kernels: tail forgotten", KERNELS, "    if (at < n) {\n        part(r, count, at, n - at);\n    }", "    if (at + 1 < n) {\n        part(r, count, at, n - at);\n    }"),
    ("kernels: one row of four", KERNELS, "r->x + (ptrdiff_t)i * r->x_step", "r->x + (ptrdiff_t)(i / 3) * r->x_step"),
    ("kernels: inverse of the first column", KERNELS, "p.inverse = chunk_div(chunk_set(1.0f), p.scale);", "p.inverse = chunk_div(chunk_set(1.0f), chunk_set(*r->scales));"),
    ("kernels: stream head one short", KERNELS, "            at = head;", "            at = head + CHUNK;"),
    ("kernels: parameters of one row for all", KERNELS, "r.scales = scale + i * step;", "r.scales = scale;"),
    ("range: last chunk of halves lost", KERNELS, "    if (at + CHUNK <= n) {", "    if (at + CHUNK < n - CHUNK) {"),
    ("range: NaN as a number", RANGE, "if (new_hi > ORDERED_INF || ", "if ("),
    ("range: -0 not below +0", RANGE, "return bits ^ (int32_t)((0 - ((uint32_t)bits >> 31)) >> 1);", "return bits < 0 ? (int32_t)(0x80000000u - (uint32_t)bits) : bits;"),

    # index space, tiles, parameters
    ("loop: stride of the wrong dimension", LOOP, "rect->data[i] += (ptrdiff_t)index * loop->strides[d][i];", "rect->data[i] += (ptrdiff_t)index * loop->strides[0][i];"),
    ("loop: joined too much", LOOP, "loop->strides[inner][i] * (ptrdiff_t)(loop->extents[inner] / (size_t)pack)", "loop->strides[inner][i] * (ptrdiff_t)(loop->extents[inner])"),
    ("loop: turned round one short", LOOP, "(ptrdiff_t)(loop->extents[d] - 1) * loop->strides[d][i]", "(ptrdiff_t)(loop->extents[d]) * loop->strides[d][i]"),
    ("loop: rectangles run on", LOOP, "rect->rows = rows < left ? rows : left;", "rect->rows = rows;"),
    ("loop: last unit dropped", LOOP, "return a / b + (a % b != 0);", "return a / b + (a % b > 1);"),
    ("loop: columns of units overlap", LOOP, "(i - down * units->across) * units->unit_cols", "(i - down * units->across) * (units->unit_cols - 64)"),
    ("loop: int4 words as columns", LOOP, "i == NPUQ_LOOP_X ? 1 : i == NPUQ_LOOP_Y ? (size_t)loop->pack", "i == NPUQ_LOOP_X ? 1 : i == NPUQ_LOOP_Y ? 1"),
    ("tile: staged rows not scattered", TILE, "copy_rect(y, staged_y, y_size, rows, y_cols);", "copy_rect(y, staged_y, y_size, rows, y_cols - (y_cols > 9));"),
    ("tile: row parameters of the first block", TILE, "const npuq_params offset_here = npuq_params_from(offset, row);", "const npuq_params offset_here = npuq_params_from(offset, 0);"),
    ("tile: column parameters of the first tile", TILE, "const npuq_params smooth_here = npuq_params_from(smooth, col);", "const npuq_params smooth_here = npuq_params_from(smooth, 0);"),
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
]
