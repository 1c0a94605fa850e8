/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * libnpuquant: the Ascend NPU quantisation operators on CPUs, with the device's arithmetic and the same bits
 * everywhere. The device's vector division is known to one unit in the last place only: see docs/device.md.
 *
 * The operators are named and argued as in Ascend's PyTorch adapter (torch_npu). To quantise: npuq_quantize(),
 * npuq_group_quant(), npuq_dynamic_quant(), npuq_dynamic_quant_asymmetric() and npuq_dynamic_block_quant(). For the
 * int32 sums of a quantised matrix product, back to floating point or to int8: npuq_dequant(), npuq_requant() and, for
 * its parameters, npuq_trans_quant_param(). For quantised weights, back to floating point: npuq_anti_quant(). Tensors
 * are views of the caller's memory: the library allocates nothing, starts no threads, keeps no state between calls (the
 * choice of backend and the thread's last error message aside) and needs nothing but the C library.
 *
 * @section arithmetic Arithmetic common to all operators
 * float16 (IEEE binary16) and bfloat16 values are converted to float32 exactly. Each later step is one IEEE-754
 * binary32 operation, rounded to nearest-even, in the order written: nothing is fused, reordered or flushed to zero.
 * `round` rounds half to even. `sat` clamps to the destination's range; NaN becomes 0, +Inf the largest and -Inf the
 * smallest value. `float16` and `bfloat16` round to nearest-even to that type: what is too large becomes an infinity,
 * subnormal results are kept. A NaN in an output is always one quiet NaN: 0x7FC00000 in float32, 0x7E00 in float16,
 * 0x7FC0 in bfloat16. The result depends on the values of the arguments only: not on the backend, the layout of the
 * tensors, the executor, or the caller's floating-point state (which is left as it was found).
 *
 * @section layouts Layouts
 * Every tensor may be any strided view. Strides count elements; those of inputs may be zero or negative, those of
 * outputs negative. The strides of a parameter may all be zero. Those of x may not: a view of more than one element
 * whose strides are all zero is refused, since it has most likely been made without strides. The stride of a dimension
 * of extent 1 is never looked at, nor any stride of an empty tensor, whose data may be null. Data must be aligned to
 * the size of its element. An output must not map two indices to one element, and must not share a byte with another
 * argument (interleaving without sharing is fine); but npuq_dequant() may write float32 over its own sums. A layout so
 * irregular that sharing could not be ruled out with bounded work is refused.
 *
 * @section errors Errors
 * Every function that can fail returns an npuq_status. After a failure npuq_last_error() names the operator, the
 * argument, what was found and what was expected, and no output has been written to: all arguments, the values of
 * group_index and the words of npuq_requant() included, are checked before the first byte is written.
 *
 * @section threads Threads
 * Every function may be called from any thread at any time. Work is spread over threads only through an
 * npuq_executor of the caller.
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
 *  for Windows that links the archive defines NPUQ_STATIC. Elsewhere a program may define NPUQ_STATIC or not. */
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
    /** Eight signed 4-bit integers in one int32 word, two's complement: element 8k+i is bits 4i..4i+3 of word k.
     *  Shape and strides count words, so the last dimension is an eighth of the number of elements; data holds
     *  int32 values, and the rule is one of values: it is the same on big-endian hosts. */
    NPUQ_QUINT4X2 = 256
} npuq_dtype;

/** @cond internal */
/* With -fshort-enums, the default of some bare-metal compilers, structures and calls would not be the library's. No
 * static assertion: in C99 the C library may replace it by a macro that loses the message. */
struct npuq_enum_size {
    unsigned npuquant_needs_enums_of_4_bytes_compile_with_fno_short_enums : sizeof(npuq_dtype) == 4 ? 1 : -1;
};
/** @endcond */

/** Bytes of the unit that shape and strides count: an element, or a word for NPUQ_QUINT4X2. 0 for any other value. */
NPUQ_API size_t npuq_dtype_size(npuq_dtype dtype);

/** "FLOAT32", "QUINT4X2" and so on; "unknown" for any other value. Never null. */
NPUQ_API const char *npuq_dtype_name(npuq_dtype dtype);

/** Largest number of dimensions of a tensor. */
#define NPUQ_MAX_NDIM 8

/** A strided view of the caller's memory; it owns nothing. Element (i0, i1, ...) is at
 *  data + (i0*strides[0] + i1*strides[1] + ...) * element size. */
typedef struct npuq_tensor {
    void *data;                     /**< the element at index (0, 0, ...); an input's data is only read */
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
 * @param data   first element. It may be const, as inputs are only read; the memory of an output must be writable.
 * @param dtype  element type
 * @param ndim   number of dimensions; if it is not in 0..NPUQ_MAX_NDIM, it is stored as it is and every operator
 *               refuses the view
 * @param shape  ndim extents; may be null when ndim is 0
 */
NPUQ_API NPUQ_KEEPS_DATA npuq_tensor npuq_tensor_contiguous(const void *data, npuq_dtype dtype, int32_t ndim,
                                                            const int64_t *shape);

/**
 * A view of n elements side by side, of shape [n].
 * @param data   first element, as for npuq_tensor_contiguous()
 * @param dtype  element type
 * @param n      number of elements; words for NPUQ_QUINT4X2
 */
NPUQ_API NPUQ_KEEPS_DATA npuq_tensor npuq_vector(const void *data, npuq_dtype dtype, int64_t n);

/**
 * A view of rows with contiguous columns, of shape [rows, cols].
 * @param data   first element, as for npuq_tensor_contiguous()
 * @param dtype  element type
 * @param rows   number of rows
 * @param cols   number of columns; words for NPUQ_QUINT4X2
 * @param row_stride  distance between the first elements of neighbouring rows, in elements; 0 means cols: no gaps
 */
NPUQ_API NPUQ_KEEPS_DATA npuq_tensor npuq_matrix(const void *data, npuq_dtype dtype, int64_t rows, int64_t cols,
                                                 int64_t row_stride);

/** @cond internal */
/* The same two, which optimising compilers take where they are called. To read a tensor that the library returns may
 * take longer than an operator on a small one. Only what ndim says is set. */
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

/** The outcome of a call. */
typedef enum npuq_status {
    NPUQ_OK = 0,
    NPUQ_ERROR_NULL = 1,        /**< a required pointer is null */
    NPUQ_ERROR_DTYPE = 2,       /**< a dtype that this argument does not take, or an unmatched pair */
    NPUQ_ERROR_SHAPE = 3,       /**< rank or extent */
    NPUQ_ERROR_LAYOUT = 4,      /**< misaligned data, self-overlapping output, output overlapping another argument,
                                     extents or strides that reach beyond the address space, x without strides */
    NPUQ_ERROR_AXIS = 5,        /**< axis out of range */
    NPUQ_ERROR_GROUP_INDEX = 6, /**< a value of group_index out of order or range */
    NPUQ_ERROR_ARGUMENT = 7,    /**< an unknown mode, a word that npuq_requant() refuses, or arguments that do not go
                                     together */
    NPUQ_ERROR_BACKEND = 8      /**< not built in, or not on this CPU */
} npuq_status;

/** The name of a status, such as "NPUQ_ERROR_SHAPE"; "unknown status" for any other value. Never null. */
NPUQ_API const char *npuq_status_name(npuq_status status);

/** One line about the calling thread's last failure: operator, argument, what was found, what was expected; "" if
 *  there was none. Valid until the thread's next failure; a success leaves it as it is. Never null. */
NPUQ_API const char *npuq_last_error(void);

/** @} */

/** @defgroup api_threads Threads
 *  @{ */

/**
 * The caller's threads. A null executor means the calling thread.
 *
 * `parallel_for(context, count, task, argument)` must call `task(argument, begin, end)` for disjoint ranges that
 * together cover [0, count), in any order, on any threads, and return when all calls have returned. Any partition
 * gives the same bits. An operator may call it more than once, one after the other. docs/threads.md says more, and has
 * executors to copy.
 */
typedef struct npuq_executor {
    /** See above; must not be null. */
    void (*parallel_for)(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument);
    void *context; /**< passed through to parallel_for */
} npuq_executor;

/** @} */

/** Whether each row has its own scale, or the whole tensor has one.
 *  @ingroup api_dynamic_quant_asymmetric */
typedef enum npuq_quant_mode {
    NPUQ_PER_TOKEN = 0, /**< one scale (and offset) for each row */
    NPUQ_PER_TENSOR = 1 /**< one scale (and offset) for the whole tensor: an extension, see those functions */
} npuq_quant_mode;

/** How npuq_dynamic_quant() computes the scale that it returns. y is the same in both forms.
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
 *     div_mode:      t = x / s      (the IEEE quotient, not x * (1/s))
 *     not div_mode:  t = x * s
 *     t = t + z                     (if zero_points is given; z as float32, an int32 rounded half to even)
 *     y = sat(round(t))
 *
 * The device's quotient may be one unit in the last place off: see docs/device.md.
 *
 * To dequantise: where nothing was saturated, x is about (y - z) * s with div_mode, and (y - z) / s without it.
 *
 * @param x  FLOAT32, FLOAT16 or BFLOAT16; 1..8 dimensions, any of them empty.
 * @param scales  FLOAT32, FLOAT16 or BFLOAT16. 1-D of size 1 or x.shape[a]; when not div_mode also with as many
 *     dimensions as x, all of extent 1 but dimension a, which is 1 or x.shape[a].
 * @param zero_points  nullable; same shape as scales. div_mode: INT8, UINT8, INT32, FLOAT32, FLOAT16 or BFLOAT16;
 *     otherwise the dtype of scales.
 * @param axis  div_mode: a = axis, -ndim <= axis < ndim, negative counted from the end; not looked at when scales has
 *     one element. Otherwise axis >= -2: a is ndim-2 if axis is -2, for which x must have two dimensions or more. Any
 *     other axis, even one of ndim or more, means the last dimension: a is ndim-1. The device has the same rule.
 * @param div_mode  divide by the scale, or multiply by it
 * @param y  div_mode: INT8, UINT8 or INT32, x's shape. Otherwise INT8, x's shape, or QUINT4X2, x's shape with the
 *     last extent divided by 8 (x's last extent is a multiple of 8).
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if x is empty, nothing was written
 * @retval NPUQ_ERROR_NULL  x, scales or y is null, or has elements but null data; executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed, or zero_points unlike scales when not div_mode
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 * @retval NPUQ_ERROR_AXIS  axis out of range
 */
NPUQ_API npuq_status npuq_quantize(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *zero_points,
                                   int32_t axis, bool div_mode, const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_group_quant group_quant
 *  @{ */

/**
 * Quantises groups of rows, each group with its own scales (the experts of a mixture, for instance).
 *
 * Source: torch_npu `npu_group_quant(x, scale, group_index, *, offset=None, dst_dtype=None)`; CANN GroupQuant.
 * Group e owns rows group_index[e-1] (0 for e = 0) up to, not including, group_index[e]; it may be empty. For a row of
 * group e:
 *
 *     t = x * scale[e]
 *     t = t + offset                (if offset is given)
 *     y = sat(round(t))
 *
 * To dequantise: where nothing was saturated, x is about (y - offset) / scale[e].
 *
 * @param x  FLOAT32, FLOAT16 or BFLOAT16 of shape [S, H]
 * @param scale  FLOAT32, FLOAT16 or BFLOAT16 of shape [E, H], E >= 1
 * @param group_index  INT32 or INT64 of shape [E]: non-decreasing, the first >= 0, the last == S
 * @param offset  nullable; one element (0-D or [1]) of scale's dtype
 * @param y  INT8 of shape [S, H], or QUINT4X2 of shape [S, H/8] (H is a multiple of 8)
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if S or H is 0, nothing was written
 * @retval NPUQ_ERROR_NULL  x, scale, group_index or y is null, or has elements but null data; offset has null data;
 *     executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed, or offset unlike scale
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 * @retval NPUQ_ERROR_GROUP_INDEX  a value out of order, negative, or the last is not S
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
 *     45..37  offset, rounded half to even, clamped to -256..255 (NaN: 0), as 9-bit two's complement; 0 without offset
 *     46      1
 *     others  0
 *
 * NPUQ_ROUND_NEAREST first rounds the scale half to even at bit 13: a carry may run into the exponent and up to
 * infinity; a subnormal becomes a zero of its sign; Inf and NaN are truncated, not rounded.
 *
 * @param scale  FLOAT32, 1-D or 2-D, not empty
 * @param offset  nullable; FLOAT32. With it, scale and offset are 1-D or of shape (1, n). If both are 2-D, they have
 *     one shape. Otherwise they have as many elements, or one of them has one element, which is broadcast.
 * @param round_mode  what to do with the 13 bits that do not fit
 * @param y  INT64 or UINT64 (the same bits). Without offset, the shape of scale. With offset, n elements, the larger
 *     number of the two: [n] if both are 1-D, (1, n) if both are 2-D, and either of these shapes, as the caller
 *     chooses, if one is 1-D and the other 2-D.
 *
 * @retval NPUQ_OK  done
 * @retval NPUQ_ERROR_NULL  scale or y is null, or data is
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
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
 *     hi = max(v), lo = min(v)      over the row, or the tensor; both NaN if any v is NaN
 *     d = (hi - lo) / RANGE
 *     scale = d > 1e-12 ? d : 1e-12
 *     offset = DMAX - (hi / scale)
 *     y = sat(round(v * (1 / scale) + offset))
 *
 * Rows are counted in row-major order of x's leading dimensions; S is their number, H the length of one.
 *
 * To dequantise: v is about (y - offset) * scale, and x is about v / smooth_scales.
 *
 * Per tensor is an extension: the Atlas A2 has no such kernel, so there are no bits of the device to compare with. The
 * arithmetic is that of its kernel for rows, with the whole tensor as one row.
 *
 * @param x  FLOAT32 (an extension: the device takes the other two), FLOAT16 or BFLOAT16; 1..8 dimensions, [..., H]
 * @param smooth_scales  nullable; FLOAT32, FLOAT16 or BFLOAT16; shape [H], or with group_index [E, H], 1 <= E <= 1024
 * @param group_index  nullable; INT32 or INT64 of shape [E]; only per token and with 2-D smooth_scales. Row r is
 *     multiplied by smooth_scales[e], where group e owns rows as in npuq_group_quant(): non-decreasing, the first >= 0,
 *     the last == S.
 * @param quant_mode  per token, or per tensor (an extension)
 * @param y  INT8, x's shape, or QUINT4X2, x's shape with the last extent divided by 8 (H is a multiple of 8)
 * @param scale  FLOAT32; per token x.shape[:-1] or x.shape[:-1] + [1], per tensor [1]
 * @param offset  FLOAT32; shape of scale
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if S is 0 (per token), nothing was written
 * @retval NPUQ_ERROR_NULL  x, y, scale or offset is null, or has elements but null data; an optional argument has
 *     elements but null data; executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above; H is 0 and S is not; per tensor and x is empty
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 * @retval NPUQ_ERROR_GROUP_INDEX  a value out of order, negative, or the last is not S
 * @retval NPUQ_ERROR_ARGUMENT  an unknown quant_mode; group_index per tensor, or without 2-D smooth_scales; 2-D
 *     smooth_scales without group_index
 */
NPUQ_API npuq_status npuq_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                   const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                   const npuq_tensor *y, const npuq_tensor *scale,
                                                   const npuq_tensor *offset, const npuq_executor *executor);

/**
 * First step of npuq_dynamic_quant_asymmetric() and of npuq_dynamic_quant(): the ranges. It and the two that follow
 * give the same bits as the whole operator, and what lies between them is the caller's: ranges of the parts of a
 * tensor, on several machines or read one after the other, may be combined before parameters are made of them.
 * npuq_dynamic_quant() has its own second and third step.
 *
 * Ranges are combined so: NaN if any of them is NaN, else the least minimum and the greatest maximum. (The sign of a
 * zero does not matter for what follows.) A part without elements has the range +Inf, -Inf, which changes no other.
 *
 * @param x  FLOAT32, FLOAT16 or BFLOAT16; 1..8 dimensions, [..., H], any of them empty
 * @param smooth_scales  as for the operator: nullable, [H], or with group_index [E, H]
 * @param group_index  as for the operator: nullable, [E]
 * @param quant_mode  a range for each row, or one for the tensor
 * @param min  FLOAT32; per token x.shape[:-1] or x.shape[:-1] + [1], per tensor [1]. Of -0 and +0, -0 is less; NaN is
 *     0x7FC00000.
 * @param max  FLOAT32; shape of min
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if there are no rows (per token), nothing was written
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT, NPUQ_ERROR_GROUP_INDEX,
 *     NPUQ_ERROR_ARGUMENT  as for the operator
 */
NPUQ_API npuq_status npuq_dynamic_quant_min_max(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                const npuq_tensor *min, const npuq_tensor *max,
                                                const npuq_executor *executor);

/**
 * Second step of npuq_dynamic_quant_asymmetric(): parameters from ranges, by its formula.
 *
 * @param min  FLOAT32; 0..8 dimensions, any shape
 * @param max  FLOAT32; shape of min
 * @param y_dtype  what is quantised to: INT8 or QUINT4X2
 * @param scale  FLOAT32; shape of min
 * @param offset  FLOAT32; shape of min
 *
 * @retval NPUQ_OK  done; if min is empty, nothing was written
 * @retval NPUQ_ERROR_NULL  an argument is null, or has elements but null data
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a shape unlike min's
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 */
NPUQ_API npuq_status npuq_dynamic_quant_params(const npuq_tensor *min, const npuq_tensor *max, npuq_dtype y_dtype,
                                               const npuq_tensor *scale, const npuq_tensor *offset);

/**
 * Third step of npuq_dynamic_quant_asymmetric(): quantises with given parameters.
 *
 *     v = x                         (v = x * smooth_scales, if given)
 *     y = sat(round(v * (1 / scale) + offset))
 *
 * @param x  as for the operator, but may be empty
 * @param smooth_scales  as for the operator
 * @param group_index  as for the operator
 * @param quant_mode  as for the operator
 * @param scale  FLOAT32; per token x.shape[:-1] or x.shape[:-1] + [1], per tensor [1]; any values
 * @param offset  FLOAT32; shape of scale; any values
 * @param y  as for the operator
 * @param executor  as for the operator
 *
 * @retval NPUQ_OK  done; if x is empty, nothing was written
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT, NPUQ_ERROR_GROUP_INDEX,
 *     NPUQ_ERROR_ARGUMENT  as for the operator
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
 *     m = max(|v|)                  over the row, or the tensor; NaN if any v is NaN
 *     r = DMAX / m
 *     y = sat(round(v * r))         as INT8, then XOR 0x80 if y is UINT8
 *     scale = m * C                 NPUQ_SCALE_PRODUCT; C is 1 / DMAX rounded to float32: 0x3C010204, or 0x3E124925
 *     scale = 1 / r                 NPUQ_SCALE_INVERSE
 *
 * The device's r may be one unit in the last place off: see docs/device.md.
 *
 * The two forms differ for about three of ten scales of INT8, and for more than half of those of QUINT4X2, by one unit
 * in the last place, rarely by two.
 *
 * There is no lower bound on m: a row of zeros has the scale 0 and y 0; a row with an infinity has the scale +Inf and
 * y 0; with a NaN the scale is NaN and y 0. Where m is so small that r is infinite, elements other than 0 become DMAX
 * or -DMAX - 1.
 *
 * UINT8 is an extension, for products of uint8 with int8: the int8 result and 128, so that 0 is 128, in rows with an
 * infinity or a NaN, too (an exception to @ref arithmetic). A bias of -128 times the sums of the weight's columns puts
 * the products right.
 *
 * Rows are counted in row-major order of x's leading dimensions; S is their number, H the length of one.
 *
 * To dequantise: v is about y * scale, or (y - 128) * scale if y is UINT8, and x is about v / smooth_scales.
 *
 * Per tensor is an extension, as for npuq_dynamic_quant_asymmetric().
 *
 * @param x  FLOAT32 (an extension: the device takes the other two), FLOAT16 or BFLOAT16; 1..8 dimensions, [..., H]
 * @param smooth_scales  nullable; FLOAT32, FLOAT16 or BFLOAT16; shape [H], or with group_index [E, H], 1 <= E <= 1024
 * @param group_index  nullable; INT32 or INT64 of shape [E]; only per token and with 2-D smooth_scales. Row r is
 *     multiplied by smooth_scales[e], where group e owns rows as in npuq_group_quant(): non-decreasing, the first >= 0,
 *     the last == S.
 * @param quant_mode  per token, or per tensor (an extension)
 * @param scale_form  how scale is computed
 * @param y  INT8 or UINT8, x's shape, or QUINT4X2, x's shape with the last extent divided by 8 (H is a multiple of 8)
 * @param scale  FLOAT32; per token x.shape[:-1] or x.shape[:-1] + [1], per tensor [1]
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if S is 0 (per token), nothing was written
 * @retval NPUQ_ERROR_NULL  x, y or scale is null, or has elements but null data; an optional argument has elements but
 *     null data; executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above; H is 0 and S is not; per tensor and x is empty
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 * @retval NPUQ_ERROR_GROUP_INDEX  a value out of order, negative, or the last is not S
 * @retval NPUQ_ERROR_ARGUMENT  an unknown quant_mode or scale_form; group_index per tensor, or without 2-D
 *     smooth_scales; 2-D smooth_scales without group_index
 */
NPUQ_API npuq_status npuq_dynamic_quant(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                        const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                        npuq_scale_form scale_form, const npuq_tensor *y, const npuq_tensor *scale,
                                        const npuq_executor *executor);

/**
 * Second step of npuq_dynamic_quant(): scales from ranges, by its formula, with m the larger of |min| and |max|. The
 * first step is npuq_dynamic_quant_min_max(), the same for both dynamic operators; what is said there about combining
 * the ranges of parts holds here.
 *
 * @param min  FLOAT32; 0..8 dimensions, any shape
 * @param max  FLOAT32; shape of min
 * @param y_dtype  what is quantised to: INT8, UINT8 or QUINT4X2; UINT8 has the scales of INT8
 * @param scale_form  how scale is computed
 * @param scale  FLOAT32; shape of min
 *
 * @retval NPUQ_OK  done; if min is empty, nothing was written
 * @retval NPUQ_ERROR_NULL  an argument is null, or has elements but null data
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a shape unlike min's
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 * @retval NPUQ_ERROR_ARGUMENT  an unknown scale_form
 */
NPUQ_API npuq_status npuq_dynamic_quant_symmetric_params(const npuq_tensor *min, const npuq_tensor *max,
                                                         npuq_dtype y_dtype, npuq_scale_form scale_form,
                                                         const npuq_tensor *scale);

/**
 * Third step of npuq_dynamic_quant(): quantises with given ranges. It takes ranges and not scales, since r, with which
 * elements are multiplied, cannot be computed from the scale to the bit.
 *
 *     v = x                         (v = x * smooth_scales, if given)
 *     m = max(|min|, |max|)         NaN if one of them is NaN
 *     y = sat(round(v * (DMAX / m)))        as INT8, then XOR 0x80 if y is UINT8
 *
 * @param x  as for the operator, but may be empty
 * @param smooth_scales  as for the operator
 * @param group_index  as for the operator
 * @param quant_mode  as for the operator
 * @param min  FLOAT32; per token x.shape[:-1] or x.shape[:-1] + [1], per tensor [1]; any values
 * @param max  FLOAT32; shape of min; any values
 * @param y  as for the operator
 * @param executor  as for the operator
 *
 * @retval NPUQ_OK  done; if x is empty, nothing was written
 * @retval NPUQ_ERROR_NULL, NPUQ_ERROR_DTYPE, NPUQ_ERROR_SHAPE, NPUQ_ERROR_LAYOUT, NPUQ_ERROR_GROUP_INDEX,
 *     NPUQ_ERROR_ARGUMENT  as for the operator
 */
NPUQ_API npuq_status npuq_dynamic_quant_symmetric_apply(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                        const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                                        const npuq_tensor *min, const npuq_tensor *max,
                                                        const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_dynamic_block_quant dynamic_block_quant
 *  @{ */

/**
 * Quantises with a scale for each block of columns, found from the block itself: no offsets.
 *
 * Source: torch_npu `npu_dynamic_block_quant(x, *, min_scale=0.0, round_mode="rint", dst_type=1, row_block_size=1,
 * col_block_size=128, dst_type_max=0.0)`; the arithmetic is that of the Atlas A2 kernel, which makes int8 of blocks of
 * 1 x 128. A block is `block` columns of one row, and the last block of a row may be shorter. With DMAX = 127 for INT8
 * and UINT8, and 7 for QUINT4X2, each step one binary32 operation:
 *
 *     m = max(|x|)                    over the block; NaN if any x is NaN
 *     q = (1 / m) * DMAX
 *     scale = m * (1 / DMAX)          (1 / DMAX rounded to binary32: 0x3C010204, or 0x3E124925 for QUINT4X2)
 *     q = q < min_scale ? min_scale : q                            (if min_scale > 0)
 *     scale = scale > 1 / min_scale ? 1 / min_scale : scale        (if min_scale > 0)
 *     y = sat(round(x * q))           as INT8, then XOR 0x80 if y is UINT8
 *
 * A block of zeros has scale 0 and y 0. One with an infinity has scale +Inf and y 0, unless min_scale limits q. One
 * with a NaN has scale NaN and y 0. To dequantise: x is about y * scale. UINT8 is an extension, as for
 * npuq_dynamic_quant().
 *
 * @param x  FLOAT32 (an extension: the device takes the other two), FLOAT16 or BFLOAT16; 1..8 dimensions, [..., N]
 * @param block  columns of a block, 1 or more; the device has 128. For QUINT4X2 a multiple of 8, or at least N
 * @param min_scale  0 or more, finite; 0 limits nothing
 * @param y  INT8 or UINT8, x's shape, or QUINT4X2 (an extension), x's shape with the last extent divided by 8 (N is a
 *     multiple of 8)
 * @param scale  FLOAT32; x.shape[:-1] + [ceil(N / block)]
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if x is empty, nothing was written
 * @retval NPUQ_ERROR_NULL  x, y or scale is null, or has elements but null data; executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 * @retval NPUQ_ERROR_ARGUMENT  a block or min_scale not as above
 */
NPUQ_API npuq_status npuq_dynamic_block_quant(const npuq_tensor *x, int64_t block, float min_scale,
                                              const npuq_tensor *y, const npuq_tensor *scale,
                                              const npuq_executor *executor);

/** @} */

/** @defgroup api_anti_quant anti_quant
 *  @{ */

/**
 * Dequantises int8 or int4 values, as stored weights are before a product in floating point.
 *
 * Source: torch_npu `npu_anti_quant(x, scale, *, offset=None, dst_dtype=None, src_dtype=None)`; CANN AscendAntiQuant.
 * Each step is one binary32 operation:
 *
 *     t = (float)x
 *     t = t + offset                (if offset is given)
 *     t = t * scale
 *     y = t rounded to y's type     (nearest-even; too large becomes an infinity)
 *
 * The offset is added before the product: an x of npuq_quantize() with the zero point z is recovered with -z.
 *
 * @param x  INT8, 0..8 dimensions, or QUINT4X2, 1..8 dimensions; any of them empty
 * @param scale  FLOAT32, BFLOAT16 or FLOAT16 (an extension); 1-D of size 1 or of as many elements as x's last
 *     dimension has (eight to a word); of size 1 if x is a scalar. Or, for an x of two dimensions, [G, N] with a scale
 *     for each column of each of G groups of rows (an extension): x has K rows, G divides K, and row k takes the scales
 *     of group k / (K / G)
 * @param offset  nullable; shape and dtype of scale
 * @param y  FLOAT16, BFLOAT16 or FLOAT32 (an extension); x's shape, with the last extent times 8 if x is QUINT4X2
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if x is empty, nothing was written
 * @retval NPUQ_ERROR_NULL  x, scale or y is null, or has elements but null data; offset has elements but null data;
 *     executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed, or offset unlike scale
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
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
 * bias=None, output_dtype=None)`; CANN DequantBias. An int32 bias is added first, modulo 2^32. Each step that follows
 * is one binary32 operation:
 *
 *     t = (float)x                  (rounded half to even from 2^24 on)
 *     t = t * weight_scale
 *     t = t * activation_scale      (if given)
 *     t = t + bias                  (if a floating-point bias is given)
 *     y = t rounded to y's type     (nearest-even; too large becomes an infinity)
 *
 * @param x  INT32, 1..8 dimensions, [..., N], any of them empty
 * @param weight_scale  FLOAT32, BFLOAT16 or FLOAT16 (an extension); [1] or [N]
 * @param activation_scale  nullable; FLOAT32, x.shape[:-1] or x.shape[:-1] + [1]: what npuq_dynamic_quant() returned
 *     for the rows
 * @param bias  nullable; INT32, FLOAT32, FLOAT16 or BFLOAT16; [N]
 * @param y  FLOAT16, BFLOAT16 or FLOAT32 (an extension); x's shape. A FLOAT32 y may be written over x: y then has x's
 *     data and strides
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if x is empty, nothing was written
 * @retval NPUQ_ERROR_NULL  x, weight_scale or y is null, or has elements but null data; an optional argument has
 *     elements but null data; executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 */
NPUQ_API npuq_status npuq_dequant(const npuq_tensor *x, const npuq_tensor *weight_scale,
                                  const npuq_tensor *activation_scale, const npuq_tensor *bias, const npuq_tensor *y,
                                  const npuq_executor *executor);

/** @} */

/** @defgroup api_requant requant
 *  @{ */

/**
 * Requantises the int32 sums of a product of int8 matrices, as the matrix unit's own output stage does: it consumes the
 * words of npuq_trans_quant_param().
 *
 * Source: torch_npu `npu_quant_matmul` with int8 output, or with float16 output and no pertoken_scale; the vendor's
 * description of the unit's output path. Of a word, M is the float32 of bits 31..13 (the low 13 bits taken as 0), and o
 * the signed 9-bit number in bits 45..37. An int32 bias is added to x first, modulo 2^32. Then:
 *
 *     p = (float)x * M              (two roundings: of the conversion, and of the product)
 *     INT8:     q = clamp(round(p), -256, 255)    (0 if p is NaN)
 *               y = clamp(q + o, -128, 127)       (two clamps, in this order)
 *     FLOAT16:  y = p rounded to float16 (nearest-even; too large becomes an infinity); o is not used
 *
 * @param x  INT32, 1..8 dimensions, [..., N], any of them empty
 * @param words  INT64 or UINT64 (the same bits); [1], [N] or [1, N]. Of every word, bits 36..32 must be 0, and for an
 *     INT8 y bit 46 must be 1, as npuq_trans_quant_param() makes them: other values select what it never makes (shifts,
 *     unsigned output). For a FLOAT16 y bits 46..37 are not looked at: there the bits of a FLOAT32 scale, extended by
 *     zeros, are a word, too. Bits 47..63 are never looked at.
 * @param bias  nullable; INT32, [N]
 * @param y  INT8 or FLOAT16; x's shape
 * @param executor  nullable
 *
 * @retval NPUQ_OK  done; if x is empty, nothing was written; the words are checked even then
 * @retval NPUQ_ERROR_NULL  x, words or y is null, or has elements but null data; bias has elements but null data;
 *     executor without parallel_for
 * @retval NPUQ_ERROR_DTYPE  a dtype not listed
 * @retval NPUQ_ERROR_SHAPE  a rank or extent not as above
 * @retval NPUQ_ERROR_LAYOUT  see @ref layouts
 * @retval NPUQ_ERROR_ARGUMENT  a word whose bits 36..32 are not 0, or for an INT8 y whose bit 46 is not 1; the message
 *     names its index
 */
NPUQ_API npuq_status npuq_requant(const npuq_tensor *x, const npuq_tensor *words, const npuq_tensor *bias,
                                  const npuq_tensor *y, const npuq_executor *executor);

/** @} */

/** @defgroup api_prepared Prepared calls
 *
 * An engine that runs one call for every token, on all of its threads, checks the call once: npuq_prepare_<operator>()
 * takes the arguments of npuq_<operator>() but the executor, checks all of them, and stores the call. From then on
 * npuq_call_run() does a part of the work and cannot fail:
 *
 *     npuq_call call;
 *     if (npuq_prepare_quantize(&call, &x, &scales, NULL, -1, false, &y) != NPUQ_OK) ...
 *     // for every token, on thread i of n:
 *     size_t units = npuq_call_units(&call);
 *     npuq_call_run(&call, units * i / n, units * (i + 1) / n);
 *
 * y is written when every unit has been run, by whichever threads, in whichever order; the results are those of the
 * one call, bit for bit.
 *
 * A call points to the caller's data, not to the caller's npuq_tensor structures. The data that it points to may be
 * written between runs. The values of group_index and words are checked when the call is prepared, and must stay as
 * they are until the last run; otherwise the results are unspecified, but no memory outside the views is touched. A
 * call keeps the backend that was active when it was prepared.
 *
 * A call is copied by assignment and needs no clean-up. Any number of threads may run one call at the same time.
 *  @{ */

/** A call that has been checked. Its members are the library's own. */
typedef struct npuq_call {
    uint64_t opaque[128]; /**< not for the caller */
} npuq_call;

/** An argument whose data npuq_call_rebind() replaces. */
typedef enum npuq_operand {
    NPUQ_OPERAND_X = 0,        /**< x */
    NPUQ_OPERAND_Y = 1,        /**< y */
    NPUQ_OPERAND_SCALE = 2,    /**< scale, scales, weight_scale; min, where a step takes or gives min and max */
    NPUQ_OPERAND_OFFSET = 3,   /**< offset, zero_points; max, where a step takes or gives min and max */
    NPUQ_OPERAND_SMOOTH = 4,   /**< smooth_scales */
    NPUQ_OPERAND_BIAS = 5,     /**< bias */
    NPUQ_OPERAND_ROW_SCALE = 6 /**< activation_scale */
} npuq_operand;

/** Prepares npuq_quantize().
 * @retval NPUQ_ERROR_NULL  call is null
 * @return what npuq_quantize() returns for these arguments; unless NPUQ_OK, call is not written */
NPUQ_API npuq_status npuq_prepare_quantize(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scales,
                                           const npuq_tensor *zero_points, int32_t axis, bool div_mode,
                                           const npuq_tensor *y);

/** Prepares npuq_group_quant(); see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_group_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                              const npuq_tensor *group_index, const npuq_tensor *offset,
                                              const npuq_tensor *y);

/** Prepares npuq_dynamic_quant(); see npuq_prepare_quantize().
 * @retval NPUQ_ERROR_ARGUMENT  also for NPUQ_PER_TENSOR: its two passes need all threads to wait in between. Each
 * thread then calls npuq_dynamic_quant_min_max() for rows of its own, one thread combines the ranges and calls
 *     npuq_dynamic_quant_symmetric_params(), and npuq_prepare_dynamic_quant_symmetric_apply() has the rest. */
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

/** Prepares npuq_dynamic_quant_min_max(); see npuq_prepare_dynamic_quant(). Rows without elements have units, too:
 * their min and max are written. */
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

/** Prepares npuq_dynamic_block_quant(); see npuq_prepare_quantize(). */
NPUQ_API npuq_status npuq_prepare_dynamic_block_quant(npuq_call *call, const npuq_tensor *x, int64_t block,
                                                      float min_scale, const npuq_tensor *y, const npuq_tensor *scale);

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

/** How many units of work a call has: 0 if there is nothing to write. A unit is at most 4,096 elements, or one row
 * where a row has its own range (npuq_dynamic_quant() and its like) or ranges of blocks. */
NPUQ_API size_t npuq_call_units(const npuq_call *call);

/**
 * Does the units from begin to end - 1, on the calling thread. Neighbouring units in one run cost less than runs of
 * their own. The caller's floating-point state is left as it was found.
 * @param call   prepared
 * @param begin  first unit
 * @param end    one beyond the last; it is cut at npuq_call_units(), so that (0, SIZE_MAX) is all
 */
NPUQ_API void npuq_call_run(const npuq_call *call, size_t begin, size_t end);

/**
 * Has one argument lie elsewhere, with the same dtype, shape and strides. No thread may run the call meanwhile: a
 * thread that needs memory of its own copies the call.
 * @param call     prepared
 * @param operand  which argument
 * @param data     its new data pointer, the element at index (0, 0, ...)
 * @retval NPUQ_OK  done
 * @retval NPUQ_ERROR_NULL  call is null, or data is and the argument has elements
 * @retval NPUQ_ERROR_LAYOUT  data is misaligned, or its elements would lie beyond the address space, or the bytes from
 *     the first to the last element of an output would meet those of another argument: interleaved views are prepared
 *     anew
 * @retval NPUQ_ERROR_ARGUMENT  the call was prepared without this argument. group_index and words cannot be replaced,
 *     nor x or y where y is written over x. After an error the call is as it was.
 */
NPUQ_API npuq_status npuq_call_rebind(npuq_call *call, npuq_operand operand, const void *data);

/** @} */

/** @defgroup api_backends Backends and version
 *  @{ */

/** A set of kernels. Which one runs changes the speed of a call, never its result. */
typedef enum npuq_backend {
    NPUQ_BACKEND_REF = 0,    /**< portable scalar C, on every machine */
    NPUQ_BACKEND_AVX2 = 1,   /**< x86 with AVX2 and F16C */
    NPUQ_BACKEND_AVX512 = 2, /**< x86 with AVX-512 F, BW, VL and DQ */
    NPUQ_BACKEND_NEON = 3,   /**< AArch64 */
    NPUQ_BACKEND_GENERIC = 4 /**< vectors of 16 bytes on other CPUs, and on x86 without AVX2 */
} npuq_backend;

/** The backend that calls use: the fastest available one, unless npuq_set_backend() or, before the first call, the
 *  environment variable NPUQ_BACKEND (ref, avx2, avx512, neon, generic) chose another. A name there that is unknown or
 *  not available is ignored with one line on stderr. */
NPUQ_API npuq_backend npuq_active_backend(void);

/** "ref", "avx2", "avx512", "neon" or "generic"; "unknown" for any other value. Never null. */
NPUQ_API const char *npuq_backend_name(npuq_backend backend);

/** Whether a backend is built in and runs on this CPU. */
NPUQ_API bool npuq_backend_available(npuq_backend backend);

/**
 * Chooses the backend for the whole process. Calls under way keep the one they started with.
 * @retval NPUQ_OK  done
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
