/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * libnpuquant: the Ascend NPU quantisation operators on CPUs, with the device's arithmetic and the same bits
 * everywhere. A quotient may differ from the device's by one unit in the last place: see docs/device.md.
 *
 * Names and arguments are those of Ascend's PyTorch adapter (torch_npu). An extension is something that the device does
 * not have.
 *
 * - To quantise: npuq_quantize(), npuq_group_quant(), npuq_dynamic_quant(), npuq_dynamic_quant_asymmetric() and
 *   npuq_dynamic_block_quant().
 * - To 8-bit floats: npuq_quantize(), npuq_dynamic_quant_float8() and npuq_dynamic_block_quant_float8(). To 8- and
 *   4-bit floats in groups with a power of two as their scale: npuq_dynamic_mx_quant(), and back npuq_anti_mx_quant().
 * - From the int32 sums of a quantised matrix product to floating point or int8: npuq_dequant() and npuq_requant().
 *   npuq_trans_quant_param() makes the parameters of npuq_requant().
 * - From quantised weights to floating point: npuq_anti_quant().
 *
 * Tensors are views of the caller's memory. The library needs the C library only, allocates nothing and starts no
 * threads. Between calls the library keeps only the choice of backend and each thread's last error message. The C
 * library may allocate memory for that message: docs/threads.md.
 *
 * @section arithmetic Arithmetic common to all operators
 * Each float16 (IEEE binary16) or bfloat16 value is converted to float32 exactly. Each later step is one IEEE-754
 * binary32 operation, rounded to nearest-even, in the order written. No step is fused, reordered or flushed to zero.
 *
 * - `round` rounds half to even.
 * - `sat` clamps to the range of y. NaN becomes 0, +Inf the largest value and -Inf the smallest.
 * - Rounding to float16 or bfloat16 is to nearest-even. A value that is too large becomes an infinity. Subnormal
 *   results are kept.
 * - A NaN in an output is always one quiet NaN: 0x7FC00000 in float32, 0x7E00 in float16, 0x7FC0 in bfloat16.
 *
 * The result depends on the values of the arguments only: not on backend, layout, executor or the caller's
 * floating-point state. Every function leaves that state as it was.
 *
 * @section layouts Shapes and layouts
 * The comments write shapes as in NumPy: x.shape[:-1] is x's shape without the last extent, and + appends an extent.
 * These shapes count elements. The last extent of a QUINT4X2 tensor counts words, an eighth of the elements.
 *
 * - Every tensor may be any strided view. Strides count elements and may be negative. An input's may be 0. Data must be
 *   aligned to its element's size.
 * - An x of several elements whose strides are all 0 is refused: its strides were most likely never set. A
 *   parameter may have such strides.
 * - The stride of a dimension of extent 1 is ignored. So are all strides of an empty tensor. The data of an empty
 *   tensor may be null.
 * - An output must not map two indices to one element, and must not share a byte with another argument. Interleaved
 *   views that share no byte are allowed. Only npuq_dequant() may write over its own x.
 * - A layout so irregular that bounded work could not rule out sharing is refused.
 *
 * @section errors Errors
 * Every function that can fail returns an npuq_status. The library checks all arguments before it writes the first
 * byte, the values in group_index and in the words of npuq_requant() included. So a failure leaves the outputs
 * unchanged. npuq_last_error() then names the operator, the argument, the value found and the value expected.
 *
 * @section threads Threads
 * Every function may be called from any thread at any time. Only an npuq_executor of the caller spreads work over
 * threads.
 */
#ifndef NPUQUANT_NPUQUANT_H
#define NPUQUANT_NPUQUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <npuquant/version.h>
#ifdef NPUQ_PREFIX /* for a second copy in one program: docs/embedding.md */
#include <npuquant/prefix.h>
#endif

/** Marks the functions that the shared library exports. What is linked with the archive exports none of them. A program
 *  for Windows that links the archive must define NPUQ_STATIC; on other systems a program may define NPUQ_STATIC. */
#ifndef NPUQ_API
#if defined(NPUQ_STATIC)
#define NPUQ_API
#elif defined(_WIN32) && defined(NPUQ_BUILDING)
#define NPUQ_API __declspec(dllexport)
#elif defined(_WIN32)
#define NPUQ_API __declspec(dllimport)
#elif defined(__GNUC__)
#define NPUQ_API __attribute__((visibility("default")))
#else
#define NPUQ_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup api_tensors Tensors
 *  @{ */

/** Element type of a tensor. All but the last have the values of Ascend's aclDataType. */
typedef enum npuq_dtype {
    NPUQ_FLOAT32 = 0,   /**< IEEE binary32, 4 bytes */
    NPUQ_FLOAT16 = 1,   /**< IEEE binary16, 2 bytes */
    NPUQ_INT8 = 2,      /**< 1 byte */
    NPUQ_INT32 = 3,     /**< 4 bytes */
    NPUQ_UINT8 = 4,     /**< 1 byte */
    NPUQ_INT64 = 9,     /**< 8 bytes */
    NPUQ_UINT64 = 10,   /**< 8 bytes */
    NPUQ_BFLOAT16 = 27, /**< the upper half of a binary32, 2 bytes */
    /** 8 bits. Below the sign, a prefix tells how many bits the exponent and the mantissa have. Its largest value is
     *  32768. A result saturates; NaN and -0 become 0. */
    NPUQ_HIFLOAT8 = 34,
    /** 8 bits: sign, 5 of the exponent (bias 15), 2 of the mantissa. Its largest value is 57344. A result saturates;
     * NaN becomes 0. */
    NPUQ_FLOAT8_E5M2 = 35,
    /** 8 bits: sign, 4 of the exponent (bias 7), 3 of the mantissa. Its largest value is 448, and it has no infinity. A
     *  result saturates; NaN becomes 0. */
    NPUQ_FLOAT8_E4M3FN = 36,
    NPUQ_FLOAT8_E8M0 = 37, /**< 8 bits without a sign: code b is 2^(b - 127), and 0xFF is NaN */
    /** 4 bits: sign, 2 of the exponent (bias 1), 1 of the mantissa. Its largest value is 6. A result saturates; NaN
     *  becomes 0. Two in a byte, the even element in the low half. Shape and strides count bytes. */
    NPUQ_FLOAT4_E2M1 = 40,
    /** 4 bits: sign, 1 of the exponent (bias 1), 2 of the mantissa. Its largest value is 1.75. Otherwise as
     *  NPUQ_FLOAT4_E2M1. */
    NPUQ_FLOAT4_E1M2 = 41,
    /** Eight signed 4-bit integers in one int32 word, two's complement: element 8k+i is bits 4i..4i+3 of word k, on
     *  big-endian hosts too. Shape and strides count words, so a row has a multiple of 8 elements. */
    NPUQ_QUINT4X2 = 256
} npuq_dtype;

/** @cond internal */
/* With -fshort-enums, the default of some bare-metal compilers, the caller's structures would not match the library's.
 * No static assertion: in C99 the C library may replace it by a macro that loses the message. cffi cannot read it. */
#ifdef __GNUC__
struct npuq_enum_size {
    unsigned npuquant_needs_enums_of_4_bytes_compile_with_fno_short_enums : sizeof(npuq_dtype) == 4 ? 1 : -1;
};
#endif
/** @endcond */

/** Bytes of the unit that shape and strides count: an element, a word for NPUQ_QUINT4X2, or a byte for NPUQ_FLOAT4_E2M1
 *  and NPUQ_FLOAT4_E1M2. 0 for any other value. */
NPUQ_API size_t npuq_dtype_size(npuq_dtype dtype);

/** "FLOAT32", "QUINT4X2" and so on; "unknown" for any other value. Never null. */
NPUQ_API const char *npuq_dtype_name(npuq_dtype dtype);

/** Largest number of dimensions of a tensor. */
#define NPUQ_MAX_NDIM 8

/** A strided view of the caller's memory. Element (i0, i1, ...) is at
 *  data + (i0*strides[0] + i1*strides[1] + ...) * element size. */
typedef struct npuq_tensor {
    void *data;                     /**< the element at index (0, 0, ...); the library only reads an input's data */
    npuq_dtype dtype;               /**< element type */
    int32_t ndim;                   /**< number of dimensions, 0..NPUQ_MAX_NDIM; 0 is a scalar of one element */
    int64_t shape[NPUQ_MAX_NDIM];   /**< extents; the first ndim are used */
    int64_t strides[NPUQ_MAX_NDIM]; /**< distance between neighbours of a dimension, in elements */
} npuq_tensor;

/** @cond internal */
/* Data is not read, only pointed to: gcc need not warn that an output is not initialised. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define NPUQ_KEEPS_DATA __attribute__((access(none, 1)))
#else
#define NPUQ_KEEPS_DATA
#endif
/** @endcond */

/**
 * A row-major (C order) view of data.
 * @param data   first element; may be const for an input, must be writable for an output
 * @param dtype  element type
 * @param ndim   number of dimensions, 0..NPUQ_MAX_NDIM; every operator refuses a view with another ndim
 * @param shape  ndim extents; may be null when ndim is 0
 */
NPUQ_API NPUQ_KEEPS_DATA npuq_tensor npuq_tensor_contiguous(const void *data, npuq_dtype dtype, int32_t ndim,
                                                            const int64_t *shape);

/** A view of n elements side by side, of shape [n]. For NPUQ_QUINT4X2, n counts words. */
NPUQ_API NPUQ_KEEPS_DATA npuq_tensor npuq_vector(const void *data, npuq_dtype dtype, int64_t n);

/** A view of rows, each with contiguous columns, of shape [rows, cols]. For NPUQ_QUINT4X2, cols counts words. The
 *  row_stride goes from one row's first element to the next row's, in elements; 0 means cols: no gaps. */
NPUQ_API NPUQ_KEEPS_DATA npuq_tensor npuq_matrix(const void *data, npuq_dtype dtype, int64_t rows, int64_t cols,
                                                 int64_t row_stride);

/** @cond internal */
/* The same two, inlined by optimising compilers: reading a returned tensor may take longer than a small operator. Only
 * the members that ndim says are set. */
#if defined(__GNUC__) && !defined(_WIN32)
#ifdef __cplusplus
#define NPUQ_NOT_CONST(data) const_cast<void *>(data)
#else
#define NPUQ_NOT_CONST(data) (void *)(uintptr_t)(data)
#endif

extern inline __attribute__((gnu_inline)) npuq_tensor npuq_vector(const void *data, npuq_dtype dtype, int64_t n)
{
    npuq_tensor tensor;

    tensor.data = NPUQ_NOT_CONST(data);
    tensor.dtype = dtype;
    tensor.ndim = 1;
    tensor.shape[0] = n;
    tensor.strides[0] = 1;
    return tensor;
}

extern inline __attribute__((gnu_inline)) npuq_tensor npuq_matrix(const void *data, npuq_dtype dtype, int64_t rows,
                                                                  int64_t cols, int64_t row_stride)
{
    npuq_tensor tensor;

    tensor.data = NPUQ_NOT_CONST(data);
    tensor.dtype = dtype;
    tensor.ndim = 2;
    tensor.shape[0] = rows;
    tensor.shape[1] = cols;
    tensor.strides[0] = row_stride != 0 ? row_stride : cols;
    tensor.strides[1] = 1;
    return tensor;
}
#endif
/** @endcond */

/** @} */

/** @defgroup api_errors Errors
 *  @{ */

/** The outcome of a call. The first four errors mean the same in every function. */
typedef enum npuq_status {
    NPUQ_OK = 0,                /**< done; if x is empty, nothing was written */
    NPUQ_ERROR_NULL = 1,        /**< a required pointer is null; data is null in a tensor that has elements;
                                     parallel_for is null in an executor */
    NPUQ_ERROR_DTYPE = 2,       /**< a dtype that the function does not list for this argument */
    NPUQ_ERROR_SHAPE = 3,       /**< a number of dimensions or an extent that the function does not list */
    NPUQ_ERROR_LAYOUT = 4,      /**< against a rule of @ref layouts, or beyond the address space */
    NPUQ_ERROR_AXIS = 5,        /**< axis out of range */
    NPUQ_ERROR_GROUP_INDEX = 6, /**< a value of group_index out of order or range */
    NPUQ_ERROR_ARGUMENT = 7,    /**< an unknown mode, a word that npuq_requant() refuses, or arguments that do not go
                                     together */
    NPUQ_ERROR_BACKEND = 8      /**< not built in, or not on this CPU */
} npuq_status;

/** The name of a status, such as "NPUQ_ERROR_SHAPE"; "unknown status" for any other value. Never null. */
NPUQ_API const char *npuq_status_name(npuq_status status);

/** One line about the calling thread's last failure: operator, argument, value found, value expected. "" before the
 *  first failure. Valid until the thread's next failure; a success does not change the line. Never null. */
NPUQ_API const char *npuq_last_error(void);

/** @} */

/** @defgroup api_threads Threads
 *  @{ */

/**
 * The caller's threads. A null executor means the calling thread.
 *
 * `parallel_for(context, count, task, argument)` must call `task(argument, begin, end)` for disjoint ranges that
 * together cover [0, count), in any order, on any threads. The function must return after the last of these calls. Any
 * partition gives the same bits. An operator may call parallel_for several times, one after the other. docs/threads.md
 * has executors to copy.
 */
typedef struct npuq_executor {
    /** must not be null */
    void (*parallel_for)(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument);
    void *context; /**< passed to parallel_for */
} npuq_executor;

/** @} */

/** Whether each row has its own scale, or the whole tensor has one. A row is the H elements along x's last dimension.
 *  The S rows are counted in row-major order of the other dimensions.
 *  @ingroup api_dynamic_quant_asymmetric */
typedef enum npuq_quant_mode {
    NPUQ_PER_TOKEN = 0, /**< one scale (and offset) for each row */
    NPUQ_PER_TENSOR = 1 /**< one scale (and offset) for the tensor, as if it were one row. An extension: the Atlas A2
                             has no such kernel to compare with */
} npuq_quant_mode;

/** How npuq_dynamic_quant() computes the scale that it returns; y is the same in both forms. About three scales in ten
 *  differ for INT8, and more than half for QUINT4X2. The difference is one unit in the last place, rarely two.
 *  @ingroup api_dynamic_quant */
typedef enum npuq_scale_form {
    NPUQ_SCALE_PRODUCT = 0, /**< m * (1 / DMAX): CANN 9.0 and later, rows up to about 16,000 elements without groups */
    NPUQ_SCALE_INVERSE = 1  /**< 1 / (DMAX / m): CANN 8.5 and earlier; CANN 9 for longer rows and with group_index */
} npuq_scale_form;

/** How npuq_trans_quant_param() shortens a scale to 19 bits.
 *  @ingroup api_trans_quant_param */
typedef enum npuq_round_mode {
    NPUQ_ROUND_TRUNCATE = 0, /**< clears the low 13 bits */
    NPUQ_ROUND_NEAREST = 1   /**< rounds half to even at bit 13, then clears them */
} npuq_round_mode;

/** @defgroup api_quantize quantize
 *  @{ */

/**
 * Quantises with given scales and zero points.
 *
 * Source: torch_npu `npu_quantize(input, scales, zero_points, dtype, axis=1, div_mode=True)`; CANN Quantize
 * (div_mode) and AscendQuantV3 (not div_mode). Each step is one binary32 operation:
 *
 *     div_mode:      t = x / s      (the IEEE quotient; the device's: docs/device.md)
 *     not div_mode:  t = x * s
 *     t = t + z                     (if given)
 *     y = sat(round(t))
 *
 * FLOAT8_E4M3FN and FLOAT8_E5M2 round half to even and keep the sign of zero; HIFLOAT8 rounds halves away from zero.
 * With div_mode, these three follow the Ascend 950: subnormal operands are zeros, and a quotient below 2^-126 is one.
 *
 * To dequantise what was not saturated: x is about (y - z) * s with div_mode, and (y - z) / s without it.
 *
 * @param x  1..8 dimensions, may be empty; FLOAT32, FLOAT16 or BFLOAT16
 * @param scales  [1] or [x.shape[a]]; FLOAT32, FLOAT16 or BFLOAT16. When not div_mode also as many dimensions as x: all
 *     of extent 1, but dimension a of extent 1 or x.shape[a].
 * @param zero_points  nullable; same shape as scales. Each z is rounded to float32, half to even. With div_mode INT8,
 *     UINT8, INT32, FLOAT32, FLOAT16 or BFLOAT16; otherwise the dtype of scales.
 * @param axis  selects dimension a of x. With div_mode a is axis, in -ndim..ndim-1, and a negative axis counts from the
 *     end; with one scale, axis is ignored. When not div_mode, -2 means a = ndim-2 and needs 2 dimensions or more. Any
 *     larger axis, even ndim or more, means a = ndim-1, as on the device.
 * @param div_mode  divide by the scale, or multiply by it
 * @param y  x's shape. With div_mode INT8, UINT8 or INT32; otherwise INT8 or QUINT4X2. In both FLOAT8_E4M3FN,
 * FLOAT8_E5M2 or HIFLOAT8.
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT, NPUQ_ERROR_AXIS  see npuq_status
 */
NPUQ_API npuq_status npuq_quantize(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *zero_points,
                                   int32_t axis, bool div_mode, const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_group_quant group_quant
 *  @{ */

/**
 * Quantises groups of rows, each group with its own scales (the experts of a mixture, for instance).
 *
 * Source: torch_npu `npu_group_quant(x, scale, group_index, *, offset=None, dst_dtype=None)`; CANN GroupQuant. For a
 * row of group e:
 *
 *     t = x * scale[e]
 *     t = t + offset                (if given)
 *     y = sat(round(t))
 *
 * To dequantise what was not saturated: x is about (y - offset) / scale[e].
 *
 * @param x  [S, H]; FLOAT32, FLOAT16 or BFLOAT16
 * @param scale  [E, H], E >= 1; FLOAT32, FLOAT16 or BFLOAT16
 * @param group_index  [E]; INT32 or INT64. Where each group ends: group e owns the rows from group_index[e-1] (0 for
 *     e = 0) to group_index[e] - 1. The values start at 0 or more, do not decrease, and end with S. Equal neighbours
 *     make an empty group.
 * @param offset  nullable; one element (0-D or [1]) of scale's dtype
 * @param y  [S, H]; INT8 or QUINT4X2
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_GROUP_INDEX  a value out of order, or the last is not S
 */
NPUQ_API npuq_status npuq_group_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *group_index,
                                      const npuq_tensor *offset, const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_trans_quant_param trans_quant_param
 *  @{ */

/**
 * Packs scales and offsets into the 64-bit words that the matrix unit's requantisation takes.
 *
 * Source: torch_npu `npu_trans_quant_param(scale, offset=None, round_mode=0)`; CANN TransQuantParamV2. Bits of a word:
 *
 *     31..0   scale's binary32 bits, the low 13 of them 0
 *     45..37  round(offset), clamped to -256..255 (NaN: 0), as 9-bit two's complement; 0 without offset
 *     46      1
 *     others  0
 *
 * NPUQ_ROUND_NEAREST first rounds the scale half to even at bit 13. A carry may run into the exponent, and up to
 * infinity. A subnormal becomes a zero of its sign. Inf and NaN are truncated, not rounded.
 *
 * @param scale  1-D or 2-D, not empty; FLOAT32. With an offset, [n] or [1, n].
 * @param offset  nullable; [n] or [1, n]; FLOAT32. If scale and offset are 2-D, they have one shape. Otherwise both
 *     have n elements, or one has a single element, which is broadcast.
 * @param round_mode  how to drop the low 13 bits
 * @param y  INT64 or UINT64 (the same bits). Without offset, the shape of scale. With offset, n is the larger number of
 *     elements: [n] if both are 1-D, [1, n] if both are 2-D, otherwise either, as the caller chooses.
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_ARGUMENT  an unknown round_mode
 */
NPUQ_API npuq_status npuq_trans_quant_param(const npuq_tensor *scale, const npuq_tensor *offset,
                                            npuq_round_mode round_mode, const npuq_tensor *y);

/** @} */

/** @defgroup api_dynamic_quant_asymmetric dynamic_quant_asymmetric
 *  @{ */

/**
 * Quantises with scales and offsets found from the data itself, per row (token) or for the whole tensor.
 *
 * Source: torch_npu `npu_dynamic_quant_asymmetric(x, *, smooth_scales=None, group_index=None, dst_type=None,
 * quant_mode="pertoken")`; the arithmetic is that of the Atlas A2 kernel. With (DMAX, RANGE) = (127, 255) for INT8 and
 * (7, 15) for QUINT4X2, each step one binary32 operation:
 *
 *     v = x                         (v = x * smooth_scales, if given)
 *     hi = max(v), lo = min(v)      over the row or tensor; both NaN if any v is
 *     d = (hi - lo) / RANGE
 *     scale = d > 1e-12 ? d : 1e-12
 *     offset = DMAX - (hi / scale)
 *     y = sat(round(v * (1 / scale) + offset))
 *
 * To dequantise: v is about (y - offset) * scale, and x is about v / smooth_scales.
 *
 * @param x  [..., H], 1..8 dimensions; FLOAT32 (an extension), FLOAT16 or BFLOAT16. Per tensor x is not empty; per
 *     token H is 1 or more, unless S is 0.
 * @param smooth_scales  nullable; [H], or with group_index [E, H], 1 <= E <= 1024; FLOAT32, FLOAT16 or BFLOAT16
 * @param group_index  nullable; [E], as for npuq_group_quant(). Rows of group e are multiplied by smooth_scales[e].
 *     Only per token and with 2-D smooth_scales.
 * @param quant_mode  per token, or per tensor (an extension)
 * @param y  x's shape; INT8 or QUINT4X2
 * @param scale  per token x.shape[:-1] or x.shape[:-1] + [1], per tensor [1]; FLOAT32
 * @param offset  shape of scale; FLOAT32
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_GROUP_INDEX  as for npuq_group_quant()
 * @retval NPUQ_ERROR_ARGUMENT  an unknown quant_mode; group_index per tensor; group_index without 2-D smooth_scales;
 *     2-D smooth_scales without group_index
 */
NPUQ_API npuq_status npuq_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                   const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                   const npuq_tensor *y, const npuq_tensor *scale,
                                                   const npuq_tensor *offset, const npuq_executor *executor);

/**
 * Finds ranges: first step of npuq_dynamic_quant_asymmetric() and of npuq_dynamic_quant(). The three steps give the
 * bits of the whole operator. Between two steps the caller may combine the ranges of a tensor's parts, which may lie on
 * several machines or be read one after the other. The operators' second and third steps differ.
 *
 * The combined range is NaN if any part's is; otherwise the least minimum and the greatest maximum. The sign of a zero
 * does not matter here. A part without elements has min +Inf and max -Inf, which change no other range. An empty x gets
 * them too, unless S is 0 (per token).
 *
 * Arguments are as for the operator, but x may be empty. min and max have the shape and dtype of the operator's scale.
 * In them, -0 is less than +0.
 *
 * @return as for the operator
 */
NPUQ_API npuq_status npuq_dynamic_quant_min_max(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                const npuq_tensor *min, const npuq_tensor *max,
                                                const npuq_executor *executor);

/**
 * Computes parameters from ranges: second step of npuq_dynamic_quant_asymmetric(), by its formula.
 *
 * @param min  any shape of 0..8 dimensions; FLOAT32
 * @param max  shape of min; FLOAT32
 * @param y_dtype  the dtype of y: INT8 or QUINT4X2
 * @param scale  shape of min; FLOAT32
 * @param offset  shape of min; FLOAT32
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 */
NPUQ_API npuq_status npuq_dynamic_quant_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                               const npuq_tensor *scale, const npuq_tensor *offset);

/**
 * Quantises with given parameters: third step of npuq_dynamic_quant_asymmetric().
 *
 *     v = x                         (v = x * smooth_scales, if given)
 *     y = sat(round(v * (1 / scale) + offset))
 *
 * Arguments are as for npuq_dynamic_quant_asymmetric(), with two exceptions: x may be empty; scale and offset may have
 * any values.
 *
 * @return as for npuq_dynamic_quant_asymmetric()
 */
NPUQ_API npuq_status npuq_dynamic_quant_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                              const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                              const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y,
                                              const npuq_executor *executor);

/** @} */

/** @defgroup api_dynamic_quant dynamic_quant
 *  @{ */

/**
 * Quantises with scales found from the data itself, per row (token) or for the whole tensor; symmetric, without
 * offsets.
 *
 * Source: torch_npu `npu_dynamic_quant(input, *, smooth_scales=None, group_index=None, dst_type=None,
 * quant_mode="pertoken", dst_type_max=0.0)`; the arithmetic is that of the Atlas A2 kernel. With DMAX = 127 for INT8
 * and UINT8, and 7 for QUINT4X2, each step one binary32 operation:
 *
 *     v = x                         (v = x * smooth_scales, if given)
 *     m = max(|v|)                  over the row or tensor; NaN if any v is
 *     r = DMAX / m                  the IEEE quotient; the device's: docs/device.md
 *     y = sat(round(v * r))         as INT8, then XOR 0x80 for UINT8
 *     scale = m * C                 NPUQ_SCALE_PRODUCT; C is 1 / DMAX rounded to float32: 0x3C010204, or 0x3E124925
 *     scale = 1 / r                 NPUQ_SCALE_INVERSE
 *
 * m has no lower bound. Three kinds of rows have y 0: zeros (scale 0), with an infinity (scale +Inf), with a NaN
 * (scale NaN). Where m is so small that r is infinite, elements other than 0 become DMAX or -DMAX - 1.
 *
 * UINT8 is an extension, for products of uint8 with int8: y is the int8 result plus 128. So 0 is 128, in rows with an
 * infinity or a NaN too: an exception to @ref arithmetic. A bias of -128 times the column sums of the weight corrects
 * the products.
 *
 * To dequantise: v is about y * scale, or (y - 128) * scale if y is UINT8, and x is about v / smooth_scales.
 *
 * @param x  [..., H], 1..8 dimensions; FLOAT32 (an extension), FLOAT16 or BFLOAT16. Per tensor x is not empty; per
 *     token H is 1 or more, unless S is 0.
 * @param smooth_scales  nullable; [H], or with group_index [E, H], 1 <= E <= 1024; FLOAT32, FLOAT16 or BFLOAT16
 * @param group_index  nullable; [E], as for npuq_group_quant(). Rows of group e are multiplied by smooth_scales[e].
 *     Only per token and with 2-D smooth_scales.
 * @param quant_mode  per token, or per tensor (an extension)
 * @param scale_form  how scale is computed
 * @param y  x's shape; INT8, UINT8 or QUINT4X2
 * @param scale  per token x.shape[:-1] or x.shape[:-1] + [1], per tensor [1]; FLOAT32
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_GROUP_INDEX  as for npuq_group_quant()
 * @retval NPUQ_ERROR_ARGUMENT  an unknown quant_mode or scale_form; group_index per tensor; group_index without 2-D
 *     smooth_scales; 2-D smooth_scales without group_index
 */
NPUQ_API npuq_status npuq_dynamic_quant(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                        const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                        npuq_scale_form scale_form, const npuq_tensor *y, const npuq_tensor *scale,
                                        const npuq_executor *executor);

/**
 * Computes scales from ranges: second step of npuq_dynamic_quant(), by its formula, with m the larger of |min| and
 * |max|. The first step, npuq_dynamic_quant_min_max(), says how to combine ranges.
 *
 * @param min  any shape of 0..8 dimensions; FLOAT32
 * @param max  shape of min; FLOAT32
 * @param y_dtype  the dtype of y: INT8, UINT8 or QUINT4X2; UINT8 has the scales of INT8
 * @param scale_form  how scale is computed
 * @param scale  shape of min; FLOAT32
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_ARGUMENT  an unknown scale_form
 */
NPUQ_API npuq_status npuq_dynamic_quant_symmetric_params(const npuq_tensor *min, const npuq_tensor *max,
                                                         npuq_dtype y_dtype, npuq_scale_form scale_form,
                                                         const npuq_tensor *scale);

/**
 * Quantises with given ranges: third step of npuq_dynamic_quant(). The step takes ranges and not scales, because r
 * cannot be computed from the scale to the bit.
 *
 *     v = x                         (v = x * smooth_scales, if given)
 *     m = max(|min|, |max|)         NaN if one is
 *     y = sat(round(v * (DMAX / m)))        as INT8, then XOR 0x80 for UINT8
 *
 * Arguments are as for npuq_dynamic_quant(), but x may be empty. min and max have the shape and dtype of its scale, and
 * any values.
 *
 * @return as for npuq_dynamic_quant()
 */
NPUQ_API npuq_status npuq_dynamic_quant_symmetric_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                        const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                        const npuq_tensor *min, const npuq_tensor *max,
                                                        const npuq_tensor *y, const npuq_executor *executor);

/**
 * Quantises to 8-bit floats with scales found from the data itself, per row (token) or for the whole tensor.
 *
 * Source: torch_npu `npu_dynamic_quant(input, *, smooth_scales=None, group_index=None, dst_type=None,
 * quant_mode="pertoken", dst_type_max=0.0)` with an 8-bit floating-point dst_type; the arithmetic is that of the Ascend
 * 950. With DMAX = 448 for FLOAT8_E4M3FN, 57344 for FLOAT8_E5M2, and dst_type_max or 32768 for HIFLOAT8, each step one
 * binary32 operation:
 *
 *     v = x                         (v = x * smooth_scales, if given)
 *     m = max(|v|)                  over the row or tensor; NaN if any v is
 *     scale = m * C                 C is 1 / DMAX rounded to float32
 *     y = v / scale                 as npuq_quantize() divides to these types: see docs/device.md
 *
 * m has no lower bound: a row of zeros has scale 0 and y +0. A scale below 2^-126 divides as 0: y is the largest value
 * with its sign, or +0 where v is also below. A row with an infinity has scale +Inf, and y is 0, with its sign where v
 * is finite and y has a -0. A row with a NaN has scale NaN and y +0.
 *
 * @param x  as for npuq_dynamic_quant()
 * @param smooth_scales  as for npuq_dynamic_quant()
 * @param group_index  as for npuq_dynamic_quant()
 * @param quant_mode  per token, or per tensor
 * @param dst_type_max  of HIFLOAT8, what m becomes: finite and not negative; 0 stands for 32768. For other types 0.
 * @param y  x's shape; FLOAT8_E4M3FN, FLOAT8_E5M2 or HIFLOAT8
 * @param scale  as for npuq_dynamic_quant()
 * @param executor  nullable
 *
 * @return as for npuq_dynamic_quant(); NPUQ_ERROR_ARGUMENT also for another dst_type_max
 */
NPUQ_API npuq_status npuq_dynamic_quant_float8(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                               const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                               float dst_type_max, const npuq_tensor *y, const npuq_tensor *scale,
                                               const npuq_executor *executor);

/** @} */

/** @defgroup api_dynamic_block_quant dynamic_block_quant
 *  @{ */

/**
 * Quantises with a scale for each block of columns, found from the block itself: no offsets.
 *
 * Source: torch_npu `npu_dynamic_block_quant(x, *, min_scale=0.0, round_mode="rint", dst_type=1, row_block_size=1,
 * col_block_size=128, dst_type_max=0.0)`; the arithmetic is that of the Atlas A2 kernel, which makes int8 of blocks of
 * 1 x 128. A block is `block` columns of one row; the last block of a row may be shorter. With DMAX = 127 for INT8 and
 * UINT8, and 7 for QUINT4X2, each step one binary32 operation:
 *
 *     m = max(|x|)                    over the block; NaN if any x is
 *     q = (1 / m) * DMAX
 *     scale = m * (1 / DMAX)          (1 / DMAX rounded to binary32: 0x3C010204, or 0x3E124925 for QUINT4X2)
 *     q = q < min_scale ? min_scale : q                            (if min_scale > 0)
 *     scale = scale > 1 / min_scale ? 1 / min_scale : scale        (if min_scale > 0)
 *     y = sat(round(x * q))           as INT8, then XOR 0x80 for UINT8
 *
 * A block of zeros has scale 0 and y 0. A block with a NaN has scale NaN and y 0. A block with an infinity has scale
 * +Inf and y 0, unless min_scale limits q. To dequantise: x is about y * scale. UINT8 is an extension, as for
 * npuq_dynamic_quant().
 *
 * @param x  [..., N], 1..8 dimensions, may be empty; FLOAT32 (an extension), FLOAT16 or BFLOAT16
 * @param block  columns of a block, 1 or more; the device has 128. For QUINT4X2 a multiple of 8, or at least N
 * @param min_scale  0 or more, finite; 0 limits nothing
 * @param y  x's shape; INT8, UINT8 or QUINT4X2 (an extension)
 * @param scale  x.shape[:-1] + [ceil(N / block)]; FLOAT32
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_ARGUMENT  a block or min_scale not as above
 */
NPUQ_API npuq_status npuq_dynamic_block_quant(const npuq_tensor *x, int64_t block, float min_scale,
                                              const npuq_tensor *y, const npuq_tensor *scale,
                                              const npuq_executor *executor);

/**
 * Quantises to 8-bit floats with a scale for each block of rows and columns, found from the block itself.
 *
 * Source: torch_npu `npu_dynamic_block_quant()`, as above, with an 8-bit floating-point dst_type; the arithmetic is
 * that of the Ascend 950. A block is row_block rows and column_block columns. Blocks begin anew in each matrix [M, N]
 * of x, and the last ones may be smaller. DMAX is as for npuq_dynamic_quant_float8(). "/" divides as npuq_quantize()
 * does to these types: see docs/device.md.
 *
 *     m = max(|x|)                    over the block; NaN if any x is
 *     scale = m / DMAX
 *     scale = min(scale, 1 / min_scale)    (if min_scale > 0; infinity and NaN stay)
 *     y = x / scale                   rounded to y's type
 *
 * A block with m below 2^-126 has scale 0 and y +0. One with m below DMAX * 2^-126 has scale 0, too: y is the largest
 * value with its sign, or +0 where |x| is below 2^-126. A block with an infinity has scale +Inf, and y is 0, with its
 * sign where x is finite and y has a -0. A block with a NaN has scale NaN and y +0.
 *
 * @param x  [..., M, N], 2..8 dimensions, may be empty; FLOAT32, FLOAT16 or BFLOAT16
 * @param row_block  rows of a block, 1 or more; the device has 1, 64, 128, 256 and 512
 * @param column_block  columns of a block, 1 or more; the device has 64, 128, 192 and 256
 * @param min_scale  0 or more, finite; 0 limits nothing
 * @param dst_type_max  of HIFLOAT8, what m becomes: 15, 56, 224 or 32768; 0 stands for 32768. For other types 0.
 * @param y  x's shape; FLOAT8_E4M3FN, FLOAT8_E5M2 or HIFLOAT8
 * @param scale  x.shape[:-2] + [ceil(M / row_block), ceil(N / column_block)]; FLOAT32
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_ARGUMENT  a block, min_scale or dst_type_max not as above
 */
NPUQ_API npuq_status npuq_dynamic_block_quant_float8(const npuq_tensor *x, int64_t row_block, int64_t column_block,
                                                     float min_scale, float dst_type_max, const npuq_tensor *y,
                                                     const npuq_tensor *scale, const npuq_executor *executor);

/** @} */

/** @defgroup api_dynamic_mx_quant dynamic_mx_quant
 *  Microscaling (MX): groups of elements along an axis that share a power of two as their scale.
 *  @{ */

/** How npuq_dynamic_mx_quant() rounds to y's type. */
typedef enum npuq_mx_rounding {
    NPUQ_MX_RINT = 0,  /**< to nearest, half to even */
    NPUQ_MX_ROUND = 1, /**< to nearest, half away from zero; to types of 4 bits only */
    NPUQ_MX_FLOOR = 2  /**< towards minus infinity; to types of 4 bits only */
} npuq_mx_rounding;

/** The options of npuq_dynamic_mx_quant(). If all are 0, they are the device's defaults. */
typedef struct npuq_mx {
    /** Elements of a group: a multiple of 32, up to 1024. 0 stands for 32. */
    int32_t block;
    /** A npuq_mx_rounding. */
    int32_t rounding;
    /** How the scale is found: 0; 1, to types of 8 bits; 2, to FLOAT4_E2M1. */
    int32_t scale_algorithm;
    /** When the elements of a group with the scale code S = 0 are multiplied by 0. With algorithm 0, and with 2 and a
     *  dst_type_max of 0, 6 or 7:
     *  - 0: always, as the device's dynamic_mx_quant does
     *  - 1: where the exponent field that S was made from is 0, as its relatives do, such as
     *    npu_dynamic_mx_quant_with_dual_axis
     *  - 2: never, as OCP's microscaling has it
     *
     *  Otherwise 0 and 1 are one: in groups of zeros. */
    int32_t small_groups;
    /** 0, or 6 to 12. With algorithm 2, what the largest magnitude is divided by; 0 stands for 6. */
    float dst_type_max;
    /** 0 or more, finite, and with another algorithm than 1 it must be 0: no group's largest magnitude counts as less,
     *  except 0. */
    float max_low_bound;
    /** What y becomes in a group with a NaN or an infinity: 0: +0, as on the device; 1, of 8 bits: NaN, as OCP has it,
     *  with a sign where the element is a NaN with a sign. */
    int32_t bad_groups;
    /** Must be 0. */
    int32_t reserved[9];
} npuq_mx;

/**
 * Quantises groups along an axis to 8- or 4-bit floats. The scale of a group is a power of two, found from the group
 * itself.
 *
 * Source: torch_npu `npu_dynamic_mx_quant(input, *, axis=-1, round_mode="rint", dst_type=296, block_size=32,
 * scale_alg=0, dst_type_max=0.0, max_low_bound=0.0)`; the arithmetic is that of the Ascend 950. A group is `block`
 * elements along the axis; the last one may be shorter. Its scale code S (FLOAT8_E8M0) is made from a, its largest |x|.
 * E() is a binary32's exponent field and M() its mantissa field.
 *
 *     scale_algorithm 0:  S = max(E(a) - e, 0)    with e = 8, 15, 2, 0 for FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1,
 *                                                 FLOAT4_E1M2
 *     scale_algorithm 1:  t = max(a, max_low_bound) * c    with c = 1 / 448 or 1 / 57344, rounded to binary32
 *                         S = E(t) + 1 if 0 < E(t) < 254 and M(t) > 0, or E(t) = 0 and M(t) > 2^22; otherwise E(t)
 *     scale_algorithm 2 with dst_type_max 0, 6 or 7:
 *                         h = a as BFLOAT16, rounded to nearest-even; of a FLOAT32 x and the last axis truncated
 *                         S = ((h's bits + k) & 0x7F80) / 128 - 2, or 0 if E(h) < 2    with k = 31 for 7, otherwise 63
 *     scale_algorithm 2 with another dst_type_max:
 *                         t = a * c    with c = 1 / dst_type_max, rounded to binary32
 *                         S = E(t) + 1 if 0 < E(t) < 254 and M(t) > 0; otherwise E(t)
 *
 *     R = 2^(127 - S), or 0 for small groups: see npuq_mx
 *     y = x * R                           of BFLOAT16 the product is rounded to BFLOAT16; then rounded to y's type
 *
 * Zeros keep their signs, and so do negative results that become zero. A group with a NaN or an infinity has S = 255,
 * and so has one whose h is infinite; y is +0 there: see npuq_mx::bad_groups. To dequantise: x is about y * 2^(S -
 * 127).
 *
 * @param x  1..7 dimensions, may be empty; FLOAT32, FLOAT16 or BFLOAT16. With a y of 4 bits, an even last extent
 * @param axis  -x.ndim to x.ndim - 1; the last axis is that of x as it is given
 * @param options  nullable: the device's defaults
 * @param y  x's shape; FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1 or FLOAT4_E1M2. Whatever the axis, elements of 4 bits
 *           are packed along the last one
 * @param mxscale  FLOAT8_E8M0 in pairs: x's shape with ceil(groups / 2) as the axis' extent, + [2]; see
 *                 npuq_mx_scale_shape(). Where a group is missing in the last pair, its code is 0
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_AXIS  an axis that x does not have
 * @retval NPUQ_ERROR_ARGUMENT  a member of options not as above
 */
NPUQ_API npuq_status npuq_dynamic_mx_quant(const npuq_tensor *x, int32_t axis, const npuq_mx *options,
                                           const npuq_tensor *y, const npuq_tensor *mxscale,
                                           const npuq_executor *executor);

/**
 * The shape of npuq_dynamic_mx_quant()'s mxscale. Reads the rank and the shape of x, and the block.
 *
 * @param x  1..7 dimensions, of any dtype; data and strides are not read
 * @param axis  -x.ndim to x.ndim - 1
 * @param options  nullable
 * @param shape  receives x.ndim + 1 extents
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_SHAPE, NPUQ_ERROR_AXIS, NPUQ_ERROR_ARGUMENT  as npuq_dynamic_mx_quant()
 */
NPUQ_API npuq_status npuq_mx_scale_shape(const npuq_tensor *x, int32_t axis, const npuq_mx *options,
                                         int64_t shape[NPUQ_MAX_NDIM]);

/** @} */

/** @defgroup api_anti_mx_quant anti_mx_quant
 *  @{ */

/**
 * Back from npuq_dynamic_mx_quant(): y = x * scale, one binary32 product, rounded to y's type.
 *
 * Source: torch_npu `npu_anti_mx_quant(x, mxscale, *, axis=-1, dst_type=15, src_type=292)`; the device has the last
 * axis, and blocks of 32. A scale code of 255 and a NaN code of x give NaN. What is too large for y's type becomes an
 * infinity.
 *
 * @param x  1..7 dimensions, may be empty; FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1 or FLOAT4_E1M2
 * @param mxscale  as npuq_dynamic_mx_quant() makes it of y's shape; FLOAT8_E8M0
 * @param axis  -x.ndim to x.ndim - 1
 * @param options  nullable; the block is used
 * @param y  x's shape, in elements; FLOAT32, FLOAT16 or BFLOAT16
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_AXIS  an axis that x does not have
 * @retval NPUQ_ERROR_ARGUMENT  a block not as in npuq_mx
 */
NPUQ_API npuq_status npuq_anti_mx_quant(const npuq_tensor *x, const npuq_tensor *mxscale, int32_t axis,
                                        const npuq_mx *options, const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_anti_quant anti_quant
 *  @{ */

/**
 * Dequantises int8 or int4 values, such as stored weights before a product in floating point.
 *
 * Source: torch_npu `npu_anti_quant(x, scale, *, offset=None, dst_dtype=None, src_dtype=None)`; CANN AscendAntiQuant.
 * Each step is one binary32 operation:
 *
 *     t = (float)x
 *     t = t + offset                (if given)
 *     t = t * scale
 *     y = t rounded to y's type
 *
 * The offset comes before the product: to recover an x of npuq_quantize() with the zero point z, give -z.
 *
 * @param x  0..8 dimensions, may be empty; INT8 or QUINT4X2 (not 0-D)
 * @param scale  [1], or [N] for an x of shape [..., N]; FLOAT32, BFLOAT16 or FLOAT16 (an extension). A scalar x takes
 *     [1]. An x of shape [K, N] also takes [G, N], where G divides K (an extension). Row k then has the scales of
 *     group k / (K / G).
 * @param offset  nullable; shape and dtype of scale
 * @param y  x's shape; FLOAT16, BFLOAT16 or FLOAT32 (an extension)
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 */
NPUQ_API npuq_status npuq_anti_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                                     const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_dequant dequant
 *  @{ */

/**
 * Takes the int32 sums of a product of int8 matrices back to floating point.
 *
 * Source: the vector output stage of torch_npu's `npu_quant_matmul(x1, x2, scale, *, offset=None, pertoken_scale=None,
 * bias=None, output_dtype=None)`; CANN DequantBias. An int32 bias is added first, modulo 2^32. Each later step is one
 * binary32 operation:
 *
 *     t = (float)x                  (rounded half to even from 2^24 on)
 *     t = t * weight_scale
 *     t = t * activation_scale      (if given)
 *     t = t + bias                  (a floating-point bias)
 *     y = t rounded to y's type
 *
 * @param x  [..., N], 1..8 dimensions, may be empty; INT32
 * @param weight_scale  [1] or [N]; FLOAT32, BFLOAT16 or FLOAT16 (an extension)
 * @param activation_scale  nullable; x.shape[:-1] or x.shape[:-1] + [1]; FLOAT32. The scale that npuq_dynamic_quant()
 *     returned for the rows.
 * @param bias  nullable; [N]; INT32, FLOAT32, FLOAT16 or BFLOAT16
 * @param y  x's shape; FLOAT16, BFLOAT16 or FLOAT32 (an extension). A FLOAT32 y may be written over x: give y the
 *     data and strides of x.
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 */
NPUQ_API npuq_status npuq_dequant(const npuq_tensor *x, const npuq_tensor *weight_scale,
                                  const npuq_tensor *activation_scale, const npuq_tensor *bias, const npuq_tensor *y,
                                  const npuq_executor *executor);

/** @} */

/** @defgroup api_requant requant
 *  @{ */

/**
 * Requantises the int32 sums of a product of int8 matrices as the matrix unit's own output stage does, with the words
 * of npuq_trans_quant_param().
 *
 * Source: torch_npu `npu_quant_matmul` with int8 output, or with float16 output and no pertoken_scale; the vendor's
 * description of the unit's output path. Of a word, M is the float32 of bits 31..13 (the low 13 bits taken as 0), and o
 * the signed 9-bit number in bits 45..37. An int32 bias is added to x first, modulo 2^32. Then:
 *
 *     p = (float)x * M              (two roundings: conversion, product)
 *     INT8:     q = clamp(round(p), -256, 255)    (0 if p is NaN)
 *               y = clamp(q + o, -128, 127)       (two clamps, in this order)
 *     FLOAT16:  y = p rounded to float16; o is not used
 *
 * @param x  [..., N], 1..8 dimensions, may be empty; INT32
 * @param words  [1], [N] or [1, N]; INT64 or UINT64 (the same bits). Bits 36..32 must be 0, and for an INT8 y bit 46
 *     must be 1, as npuq_trans_quant_param() makes them. Other values select shifts or unsigned output. Bits
 *     47..63 are ignored. For a FLOAT16 y bits 46..37 are ignored too: a FLOAT32 scale, its bits extended by zeros, is
 *     then a word. With an empty x the words are checked, too.
 * @param bias  nullable; [N]; INT32
 * @param y  x's shape; INT8 or FLOAT16
 * @param executor  nullable
 *
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT  see npuq_status
 * @retval NPUQ_ERROR_ARGUMENT  a word whose bits 36..32 are not 0, or for an INT8 y whose bit 46 is not 1. The
 *     message names its index.
 */
NPUQ_API npuq_status npuq_requant(const npuq_tensor *x, const npuq_tensor *words, const npuq_tensor *bias,
                                  const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_prepared Prepared calls
 *
 * A prepared call is checked once and then run many times: for every token, on all threads of an engine. Give
 * npuq_prepare_<operator>() the arguments of npuq_<operator>() without the executor. The function checks them and
 * stores the call. Then npuq_call_run() does a part of the work and cannot fail:
 *
 *     npuq_call call;
 *     if (npuq_prepare_quantize(&call, &x, &scales, NULL, -1, false, &y) != NPUQ_OK) ...
 *     // for every token, on thread i of n:
 *     size_t units = npuq_call_units(&call);
 *     npuq_call_run(&call, units * i / n, units * (i + 1) / n);
 *
 * y is complete when every unit has been run, in any order, by any threads. The bits are those of npuq_<operator>().
 *
 * A call points to the caller's data, not to the caller's npuq_tensor structures. The data may change between runs, but
 * not group_index and words, which are checked only when the call is prepared. If their values change before the last
 * run, results are unspecified, but no memory outside the views is touched. A call keeps the backend that was active at
 * its preparation.
 *
 * Copy a call by assignment; it needs no clean-up. Any number of threads may run one call at the same time.
 *  @{ */

/** A call that has been checked. Its members are the library's own. */
typedef struct npuq_call {
    uint64_t opaque[128]; /**< not for the caller */
} npuq_call;

/** An argument whose data npuq_call_rebind() replaces. */
typedef enum npuq_operand {
    NPUQ_OPERAND_X = 0,        /**< x */
    NPUQ_OPERAND_Y = 1,        /**< y */
    NPUQ_OPERAND_SCALE = 2,    /**< scale, scales, weight_scale; min of a step */
    NPUQ_OPERAND_OFFSET = 3,   /**< offset, zero_points; max of a step */
    NPUQ_OPERAND_SMOOTH = 4,   /**< smooth_scales */
    NPUQ_OPERAND_BIAS = 5,     /**< bias */
    NPUQ_OPERAND_ROW_SCALE = 6 /**< activation_scale */
} npuq_operand;

/** Prepares npuq_quantize().
 * @retval NPUQ_ERROR_NULL  call is null
 * @return the status of npuq_quantize() for these arguments; unless it is NPUQ_OK, call is not written */
NPUQ_API npuq_status npuq_prepare_quantize(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scales,
                                           const npuq_tensor *zero_points, int32_t axis, bool div_mode,
                                           const npuq_tensor *y);

/** Prepares npuq_group_quant(); see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_group_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                              const npuq_tensor *group_index, const npuq_tensor *offset,
                                              const npuq_tensor *y);

/** Prepares npuq_dynamic_quant(); see npuq_prepare_quantize().
 * @retval NPUQ_ERROR_ARGUMENT  also for NPUQ_PER_TENSOR, whose two passes need all threads to wait in between. Use the
 *     three steps: docs/threads.md. */
NPUQ_API npuq_status npuq_prepare_dynamic_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                npuq_scale_form scale_form, const npuq_tensor *y,
                                                const npuq_tensor *scale);

/** Prepares npuq_dynamic_quant_asymmetric(); see npuq_prepare_dynamic_quant(). */
NPUQ_API npuq_status npuq_prepare_dynamic_quant_asymmetric(npuq_call *call, const npuq_tensor *x,
                                                           const npuq_tensor *smooth_scales,
                                                           const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                           const npuq_tensor *y, const npuq_tensor *scale,
                                                           const npuq_tensor *offset);

/** Prepares npuq_dynamic_quant_min_max(); see npuq_prepare_dynamic_quant(). Rows without elements have units too: their
 * min and max are written. */
NPUQ_API npuq_status npuq_prepare_dynamic_quant_min_max(npuq_call *call, const npuq_tensor *x,
                                                        const npuq_tensor *smooth_scales,
                                                        const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                        const npuq_tensor *min, const npuq_tensor *max);

/** Prepares npuq_dynamic_quant_apply(), in both modes; see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_dynamic_quant_apply(npuq_call *call, const npuq_tensor *x,
                                                      const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                                      npuq_quant_mode quant_mode, const npuq_tensor *scale,
                                                      const npuq_tensor *offset, const npuq_tensor *y);

/** Prepares npuq_dynamic_quant_symmetric_apply(), in both modes; see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_dynamic_quant_symmetric_apply(npuq_call *call, const npuq_tensor *x,
                                                                const npuq_tensor *smooth_scales,
                                                                const npuq_tensor *group_index,
                                                                npuq_quant_mode quant_mode, const npuq_tensor *min,
                                                                const npuq_tensor *max, const npuq_tensor *y);

/** Prepares npuq_dynamic_quant_float8(), per token alone; see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_dynamic_quant_float8(npuq_call *call, const npuq_tensor *x,
                                                       const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                                       npuq_quant_mode quant_mode, float dst_type_max,
                                                       const npuq_tensor *y, const npuq_tensor *scale);

/** Prepares npuq_dynamic_block_quant(); see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_dynamic_block_quant(npuq_call *call, const npuq_tensor *x, int64_t block,
                                                      float min_scale, const npuq_tensor *y, const npuq_tensor *scale);

/** Prepares npuq_dynamic_block_quant_float8(); see npuq_prepare_quantize(). A row of blocks is indivisible. */
NPUQ_API npuq_status npuq_prepare_dynamic_block_quant_float8(npuq_call *call, const npuq_tensor *x, int64_t row_block,
                                                             int64_t column_block, float min_scale, float dst_type_max,
                                                             const npuq_tensor *y, const npuq_tensor *scale);

/** Prepares npuq_dynamic_mx_quant(); see npuq_prepare_quantize(). Along the last axis, a row is indivisible unless all
 *  tensors are contiguous and it has whole pairs of groups. Along another one, a pair of groups of 64 columns is. The
 *  options' address is not kept. */
NPUQ_API npuq_status npuq_prepare_dynamic_mx_quant(npuq_call *call, const npuq_tensor *x, int32_t axis,
                                                   const npuq_mx *options, const npuq_tensor *y,
                                                   const npuq_tensor *mxscale);

/** Prepares npuq_anti_mx_quant(); see npuq_prepare_quantize(). A row is indivisible; along another axis than the last,
 * a pair of groups of 64 columns is. The options' address is not kept. */
NPUQ_API npuq_status npuq_prepare_anti_mx_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *mxscale,
                                                int32_t axis, const npuq_mx *options, const npuq_tensor *y);

/** Prepares npuq_anti_quant(); see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_anti_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                             const npuq_tensor *offset, const npuq_tensor *y);

/** Prepares npuq_dequant(); see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_dequant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *weight_scale,
                                          const npuq_tensor *activation_scale, const npuq_tensor *bias,
                                          const npuq_tensor *y);

/** Prepares npuq_requant(); see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_requant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *words,
                                          const npuq_tensor *bias, const npuq_tensor *y);

/** The number of units of work in a call; 0 if there is nothing to write. A unit is at most 4,096 elements, or one row
 * in operators that find ranges: docs/threads.md lists them. */
NPUQ_API size_t npuq_call_units(const npuq_call *call);

/** Does the units from begin to end - 1, on the calling thread. The end is cut at npuq_call_units(): (0, SIZE_MAX) does
 * all. Neighbouring units in one run cost less than in runs of their own. */
NPUQ_API void npuq_call_run(const npuq_call *call, size_t begin, size_t end);

/**
 * Points one argument at other memory, with the same dtype, shape and strides. No thread may run the call meanwhile: a
 * thread that needs memory of its own copies the call. As in npuq_tensor, data is the element at index (0, 0, ...).
 * After an error the call is unchanged.
 *
 * @retval NPUQ_ERROR_NULL  call is null; data is null and the argument has elements
 * @retval NPUQ_ERROR_LAYOUT  data is misaligned, or its elements would lie beyond the address space. Or an output, from
 *     its first to its last byte, would meet another argument: prepare a new call for interleaved views.
 * @retval NPUQ_ERROR_ARGUMENT  the call was prepared without this argument; group_index or words; x or y, if y is
 *     written over x
 */
NPUQ_API npuq_status npuq_call_rebind(npuq_call *call, npuq_operand operand, const void *data);

/** @} */

/** @defgroup api_backends Backends and version
 *  @{ */

/** A set of kernels. It changes the speed of a call, never its result. */
typedef enum npuq_backend {
    NPUQ_BACKEND_REF = 0,    /**< portable scalar C, on every machine */
    NPUQ_BACKEND_AVX2 = 1,   /**< x86 with AVX2 and F16C */
    NPUQ_BACKEND_AVX512 = 2, /**< x86 with AVX-512 F, BW, VL and DQ */
    NPUQ_BACKEND_NEON = 3,   /**< AArch64 */
    NPUQ_BACKEND_GENERIC = 4 /**< vectors of 16 bytes on other CPUs, and on x86 without AVX2 */
} npuq_backend;

/** The backend that calls use. By default the fastest available one; npuq_set_backend() chooses another, or, before the
 *  first call, the environment variable NPUQ_BACKEND (ref, avx2, avx512, neon, generic). An unknown or unavailable name
 *  in that variable is ignored, with one line on stderr. */
NPUQ_API npuq_backend npuq_active_backend(void);

/** "ref", "avx2", "avx512", "neon" or "generic"; "unknown" for any other value. Never null. */
NPUQ_API const char *npuq_backend_name(npuq_backend backend);

/** Whether a backend is built in and runs on this CPU. */
NPUQ_API bool npuq_backend_available(npuq_backend backend);

/**
 * Chooses the backend for the whole process. Calls under way keep the one they started with.
 * @retval NPUQ_ERROR_BACKEND  not built in, or not on this CPU; the choice stays as it was
 */
NPUQ_API npuq_status npuq_set_backend(npuq_backend backend);

/** Version of the library, such as "0.2.0". */
NPUQ_API const char *npuq_version(void);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
