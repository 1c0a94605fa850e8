/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The npuquant reference: the operators as plain loops over contiguous (row-major) arrays.
 *
 * The functions check nothing: arguments must be as the comments say, or the behaviour is undefined. NaN, infinities
 * and subnormals are valid data. The arithmetic is in npuq_ref_element.h.
 */
#ifndef NPUQ_REF_H
#define NPUQ_REF_H

#include "npuq_ref_element.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = sat(round(x / s + z)) with div_mode, y = sat(round(x * s + z)) without. Where zero_points is null, nothing is
 * added, so a FLOAT8 keeps -0.
 *
 * x            FLOAT32, FLOAT16 or BFLOAT16 of the given shape, 1 <= ndim <= 8
 * scales       FLOAT32, FLOAT16 or BFLOAT16, scales_count elements: 1, or the extent of the quantised dimension, which
 *              is axis with div_mode (negative counts from the end), else ndim-2 for axis -2 (ndim is 2 or more) and
 *              ndim-1 for any axis above, ndim and beyond included
 * zero_points  null, or scales_count elements of INT8, UINT8, INT32, FLOAT32, FLOAT16 or BFLOAT16
 * y            INT8, UINT8, INT32, FLOAT8_E4M3FN, FLOAT8_E5M2 or HIFLOAT8 of x's shape, or QUINT4X2 words, an eighth as
 *              many in the last dimension, which is a multiple of 8 in x
 */
void npuq_ref_quantize(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim, const void *scales,
                       npuq_ref_dtype scales_dtype, size_t scales_count, const void *zero_points,
                       npuq_ref_dtype zero_points_dtype, int axis, bool div_mode, void *y, npuq_ref_dtype y_dtype);

/*
 * y = sat(round(x * scale[e] + offset)) for the rows of each group e.
 *
 * x            FLOAT32, FLOAT16 or BFLOAT16, [S, H]
 * scale        FLOAT32, FLOAT16 or BFLOAT16, [E, H]
 * group_index  [E], where each group ends: non-decreasing, the last is S
 * offset       null, or one element of scale's type
 * y            INT8 [S, H], or QUINT4X2 words [S, H/8], where H is a multiple of 8
 */
void npuq_ref_group_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *scale,
                          npuq_ref_dtype scale_dtype, size_t E, const int64_t *group_index, const void *offset, void *y,
                          npuq_ref_dtype y_dtype);

/*
 * The words of the matrix unit's requantisation parameters.
 *
 * scale   scale_count binary32 values
 * offset  null, or offset_count binary32 values; the counts are equal, or one of them is 1
 * y       as many words as the larger count
 */
void npuq_ref_trans_quant_param(const float *scale, size_t scale_count, const float *offset, size_t offset_count,
                                bool round_to_nearest, uint64_t *y);

/*
 * Quantises with the scale and the offset that each row's (or the tensor's) own range gives.
 *
 * x              FLOAT32, FLOAT16 or BFLOAT16, [S, H], H >= 1
 * smooth_scales  null, or FLOAT32, FLOAT16 or BFLOAT16: [H], or [E, H] with group_index
 * group_index    null, or [E], where each group ends: non-decreasing, the last is S; only with smooth_scales, not with
 *                per_tensor
 * y              INT8 [S, H], or QUINT4X2 words [S, H/8], where H is a multiple of 8
 * per_tensor     one scale and one offset for the whole of x; an extension: there are no bits of the device
 * scale, offset  [S], or [1] with per_tensor (then S >= 1)
 */
void npuq_ref_dynamic_quant_asymmetric(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H,
                                       const void *smooth_scales, npuq_ref_dtype smooth_dtype, size_t E,
                                       const int64_t *group_index, bool per_tensor, void *y, npuq_ref_dtype y_dtype,
                                       float *scale, float *offset);

/*
 * The symmetric operator: y = sat(round(v * (DMAX / m))) with m, the largest |v|, found from v = x * smooth_scales.
 *
 * Arguments are as for npuq_ref_dynamic_quant_asymmetric(). y may also be UINT8: the INT8 result XOR 0x80, NaN too.
 *
 * inverse_form  the scale is 1 / (DMAX / m), else m times 1 / DMAX as a binary32 value
 */
void npuq_ref_dynamic_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *smooth_scales,
                            npuq_ref_dtype smooth_dtype, size_t E, const int64_t *group_index, bool per_tensor,
                            bool inverse_form, void *y, npuq_ref_dtype y_dtype, float *scale);

/*
 * To FLOAT8_E4M3FN, FLOAT8_E5M2 or HIFLOAT8: scale = m times 1 / DMAX as a binary32 value, y = v / scale as the Ascend
 * 950 divides. DMAX is the type's largest value, or dst_type_max, if that is not 0.
 */
void npuq_ref_dynamic_quant_float8(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *smooth_scales,
                                   npuq_ref_dtype smooth_dtype, size_t E, const int64_t *group_index, bool per_tensor,
                                   float dst_type_max, void *y, npuq_ref_dtype y_dtype, float *scale);

/*
 * The symmetric operator with a scale for each block of B columns. The last block of a row may be shorter.
 * y = sat(round(x * (1 / m * DMAX))), scale = m * (1 / DMAX), with m, the largest |x| of the block.
 *
 * x          FLOAT32, FLOAT16 or BFLOAT16 [S, N]
 * min_scale  finite; if it is above 0, what x is multiplied by is at least this, and scale at most 1 / min_scale
 * y          INT8 or UINT8 [S, N], or QUINT4X2 words [S, N/8], where N is a multiple of 8, and B is one or at least N
 * scale      [S, ceil(N / B)]
 */
void npuq_ref_dynamic_block_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t N, size_t B, float min_scale,
                                  void *y, npuq_ref_dtype y_dtype, float *scale);

/*
 * To FLOAT8_E4M3FN, FLOAT8_E5M2 or HIFLOAT8, with a scale for each block of row_block rows and column_block columns of
 * each of `matrices` matrices. The last blocks may be smaller. m is the largest |x| of the block, DMAX as above. All
 * three quotients are as the Ascend 950 divides: scale = m / DMAX, at most 1 / min_scale if it is finite, and
 * y = x / scale.
 *
 * x          FLOAT32, FLOAT16 or BFLOAT16 [matrices, M, N]
 * min_scale  finite; 0 for no limit
 * y          [matrices, M, N]
 * scale      [matrices, ceil(M / row_block), ceil(N / column_block)]
 */
void npuq_ref_dynamic_block_quant_float8(const void *x, npuq_ref_dtype x_dtype, size_t matrices, size_t M, size_t N,
                                         size_t row_block, size_t column_block, float min_scale, float dst_type_max,
                                         void *y, npuq_ref_dtype y_dtype, float *scale);

/*
 * Microscaling: the scale of each group of `block` elements along an axis is a power of two. The last group of the axis
 * may be shorter. y = cast(x * R), where R is 1 over the scale; npuq_ref_mx_group_of() has the rules.
 *
 * x        FLOAT32, FLOAT16 or BFLOAT16 of the given shape, 1 <= ndim <= 7; negative axes count from the end
 * y        FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1 or FLOAT4_E1M2 of x's shape. For any axis, FLOAT4 lie two in a byte
 *          along the last dimension. Its extent is even then.
 * mxscale  FLOAT8_E8M0 codes in pairs: x's shape with ceil(groups / 2) as the extent of the axis, and a last dimension
 *          of 2. If the groups are odd in number, the last code is 0.
 */
void npuq_ref_dynamic_mx_quant(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim, int axis,
                               const npuq_ref_mx *options, void *y, npuq_ref_dtype y_dtype, uint8_t *mxscale);

/*
 * Back: y = x * scale, rounded to y's type, FLOAT32, FLOAT16 or BFLOAT16. x is what dynamic_mx_quant calls y. The shape
 * counts elements; of the options, the block is used.
 */
void npuq_ref_anti_mx_quant(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim,
                            const uint8_t *mxscale, int axis, const npuq_ref_mx *options, void *y,
                            npuq_ref_dtype y_dtype);

/*
 * y = (x + offset) * scale, rounded to y's type.
 *
 * x       INT8 [S, H], or QUINT4X2 words [S, H/8], where H is a multiple of 8
 * scale   FLOAT32, FLOAT16 or BFLOAT16, scale_count elements: 1, or H, or [G, H] with a G that divides S: row s then
 *         takes those of group s / (S / G)
 * offset  null, or as many elements of scale's type
 * y       FLOAT32, FLOAT16 or BFLOAT16 [S, H]
 */
void npuq_ref_anti_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *scale,
                         npuq_ref_dtype scale_dtype, size_t scale_count, const void *offset, void *y,
                         npuq_ref_dtype y_dtype);

/*
 * y = x * weight_scale * activation_scale + bias, from left to right, rounded to y's type.
 *
 * x                 [M, N]
 * weight_scale      FLOAT32, FLOAT16 or BFLOAT16, weight_scale_count elements: 1, or N
 * activation_scale  null, or [M]
 * bias              null, or [N] of FLOAT32, FLOAT16 or BFLOAT16; or of INT32, which is added to x first, modulo 2^32
 * y                 FLOAT32, FLOAT16 or BFLOAT16 [M, N]
 */
void npuq_ref_dequant(const int32_t *x, size_t M, size_t N, const void *weight_scale, npuq_ref_dtype weight_scale_dtype,
                      size_t weight_scale_count, const float *activation_scale, const void *bias,
                      npuq_ref_dtype bias_dtype, void *y, npuq_ref_dtype y_dtype);

/*
 * The output stage of the matrix unit: int32 sums to INT8 or FLOAT16, with the words of trans_quant_param.
 *
 * x      [M, N]
 * words  words_count of them: 1, or N; bits 36..32 are 0, and for INT8 bit 46 is 1
 * bias   null, or [N], added to x first, modulo 2^32
 * y      INT8 or FLOAT16 [M, N]
 */
void npuq_ref_requant(const int32_t *x, size_t M, size_t N, const uint64_t *words, size_t words_count,
                      const int32_t *bias, void *y, npuq_ref_dtype y_dtype);

/*
 * The sums of products x1 * x2 modulo 2^32. What follows in npu_quant_matmul is dequant or requant.
 *
 * x1    [M, K]
 * x2    [K, N]
 * bias  null, or [N], added modulo 2^32
 * y     [M, N]
 */
void npuq_ref_quant_matmul(const int8_t *x1, const int8_t *x2, size_t M, size_t K, size_t N, const int32_t *bias,
                           int32_t *y);

#ifdef __cplusplus
}
#endif

#endif
