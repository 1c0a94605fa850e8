/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * DLPack tensors, which NumPy, PyTorch and others export, as arguments of the operators. Optional: needs
 * <dlpack/dlpack.h>, version 0.6 or newer, from the framework or from a package (Debian: libdlpack-dev).
 */
#ifndef NPUQUANT_DLPACK_H
#define NPUQUANT_DLPACK_H

#ifndef NPUQUANT_NPUQUANT_H /* or the header of the library in one file */
#include <npuquant/npuquant.h>
#endif

#include <dlpack/dlpack.h>
#include <stdarg.h>
#include <stdio.h>

#if defined(DLPACK_VERSION) && DLPACK_VERSION < 60
#error "npuquant/dlpack.h needs dlpack.h 0.6 or newer"
#endif

/** @cond internal */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static inline npuq_status
npuq_dlpack_fail(npuq_status status, char *message, size_t size, const char *format, ...)
{
    if (message && size > 0) {
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(message, size, format, arguments);
        va_end(arguments);
    }
    return status;
}

/* False if the library lacks the dtype. dlpack.h has names of the codes from 10 on since 1.1. */
static inline bool npuq_dlpack_dtype(DLDataType source, npuq_dtype *dtype)
{
    if (source.code == 17 && source.bits == 4 && source.lanes == 2) { /* kDLFloat4_e2m1fn; shape counts pairs */
        *dtype = NPUQ_FLOAT4_E2M1;
        return true;
    }
    switch (source.lanes == 1 ? source.code * 256 + source.bits : -1) {
    case kDLFloat * 256 + 32: *dtype = NPUQ_FLOAT32; return true;
    case kDLFloat * 256 + 16: *dtype = NPUQ_FLOAT16; return true;
    case kDLBfloat * 256 + 16: *dtype = NPUQ_BFLOAT16; return true;
    case kDLInt * 256 + 8: *dtype = NPUQ_INT8; return true;
    case kDLInt * 256 + 32: *dtype = NPUQ_INT32; return true;
    case kDLInt * 256 + 64: *dtype = NPUQ_INT64; return true;
    case kDLUInt * 256 + 8: *dtype = NPUQ_UINT8; return true;
    case kDLUInt * 256 + 64: *dtype = NPUQ_UINT64; return true;
    case 10 * 256 + 8: *dtype = NPUQ_FLOAT8_E4M3FN; return true; /* kDLFloat8_e4m3fn */
    case 12 * 256 + 8: *dtype = NPUQ_FLOAT8_E5M2; return true;   /* kDLFloat8_e5m2 */
    case 14 * 256 + 8: *dtype = NPUQ_FLOAT8_E8M0; return true;   /* kDLFloat8_e8m0fnu */
    }
    return false;
}
/** @endcond */

/**
 * The view of a DLPack tensor: same memory, shape and strides. The memory must stay until the last call that takes the
 * view has returned. The rest of source may go earlier.
 *
 * - Pass `&managed->dl_tensor` of a versioned or unversioned tensor. The caller still calls the deleter, and checks
 *   `version.major` of a versioned tensor. Before an output, the caller also checks `flags` for
 *   DLPACK_FLAG_BITMASK_READ_ONLY.
 * - Null strides mean row-major. byte_offset is added to data.
 * - Strides of 0 are kept. Copy an x whose strides are all 0, such as one expanded element: the operators refuse that x
 *   (see @ref layouts).
 * - Memory must be the host's: kDLCPU, or pinned for a device (kDLCUDAHost, kDLROCMHost) whose work on it is over.
 *   Managed memory is refused, because the tensor does not say whether the host may touch that memory.
 * - For int4, which DLPack lacks, give an int32 tensor of words and then set `view->dtype = NPUQ_QUINT4X2`. Shape and
 *   strides count words in both. Likewise, give a uint8 tensor for NPUQ_HIFLOAT8 and NPUQ_FLOAT4_E1M2.
 * - float4_e2m1fn has 2 lanes, as PyTorch's float4_e2m1fn_x2: shape and strides count bytes.
 * - The operators check alignment, overlaps, dtypes and shapes.
 *
 * @param source  the tensor
 * @param view  receives the view; not written on failure
 * @param message  nullable; receives one line on failure: the value found and the value expected. npuq_last_error()
 *     does not have this line. Not written on success.
 * @param size  bytes of message, the final 0 included; a longer line is cut, and 240 bytes hold every line
 *
 * @retval NPUQ_OK  done
 * @retval NPUQ_ERROR_NULL  source or view is null; shape is null and ndim is not 0; data is null and the tensor has
 *     elements
 * @retval NPUQ_ERROR_DTYPE  not one lane of float32, float16, bfloat16, int8, int32, int64, uint8, uint64,
 *     float8_e4m3fn, float8_e5m2 or float8_e8m0fnu, nor two of float4_e2m1fn
 * @retval NPUQ_ERROR_SHAPE  ndim is not in 0..NPUQ_MAX_NDIM, or an extent is negative
 * @retval NPUQ_ERROR_LAYOUT  byte_offset reaches beyond the address space
 * @retval NPUQ_ERROR_ARGUMENT  memory of another device
 */
static inline npuq_status npuq_tensor_from_dlpack(const DLTensor *source, npuq_tensor *view, char *message, size_t size)
{
    static const char *const kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    npuq_dtype dtype;
    npuq_tensor tensor;
    bool empty = false;

    if (!source || !view) {
        return npuq_dlpack_fail(NPUQ_ERROR_NULL, message, size, "dlpack: %s is null", source ? "view" : "source");
    }
    if (source->device.device_type != kDLCPU && source->device.device_type != kDLCUDAHost &&
        source->device.device_type != kDLROCMHost) {
        return npuq_dlpack_fail(NPUQ_ERROR_ARGUMENT, message, size,
                                "dlpack: device type is %d; expected the host's memory: %d (CPU), %d (CUDA host) or %d "
                                "(ROCm host)",
                                (int)source->device.device_type, (int)kDLCPU, (int)kDLCUDAHost, (int)kDLROCMHost);
    }
    if (!npuq_dlpack_dtype(source->dtype, &dtype)) {
        const unsigned code = source->dtype.code;

        return npuq_dlpack_fail(NPUQ_ERROR_DTYPE, message, size,
                                "dlpack: dtype has code %u (%s), bits %u, lanes %u; expected float32, float16, "
                                "bfloat16, int8, int32, int64, uint8, uint64, float8_e4m3fn, float8_e5m2 or "
                                "float8_e8m0fnu with lanes 1, or float4_e2m1fn with lanes 2",
                                code, code < sizeof kinds / sizeof kinds[0] ? kinds[code] : "unknown",
                                (unsigned)source->dtype.bits, (unsigned)source->dtype.lanes);
    }
    if (source->ndim < 0 || source->ndim > NPUQ_MAX_NDIM) {
        return npuq_dlpack_fail(NPUQ_ERROR_SHAPE, message, size, "dlpack: has %d dimensions; expected 0 to %d",
                                (int)source->ndim, NPUQ_MAX_NDIM);
    }
    if (source->ndim > 0 && !source->shape) {
        return npuq_dlpack_fail(NPUQ_ERROR_NULL, message, size,
                                "dlpack: shape is null, and ndim is %d; expected its extents", (int)source->ndim);
    }
    for (int d = 0; d < source->ndim; d++) {
        if (source->shape[d] < 0) {
            return npuq_dlpack_fail(NPUQ_ERROR_SHAPE, message, size, "dlpack: dimension %d is %lld; expected 0 or more",
                                    d, (long long)source->shape[d]);
        }
        empty = empty || source->shape[d] == 0;
    }
    if (!source->data && !empty) {
        return npuq_dlpack_fail(NPUQ_ERROR_NULL, message, size, "dlpack: data is null; expected the tensor's elements");
    }
    if (source->byte_offset > UINTPTR_MAX - (uintptr_t)source->data) {
        return npuq_dlpack_fail(NPUQ_ERROR_LAYOUT, message, size,
                                "dlpack: byte_offset is %llu; expected an address when added to data",
                                (unsigned long long)source->byte_offset);
    }

    tensor = npuq_tensor_contiguous(source->data, dtype, (int32_t)source->ndim, source->shape);
    if (source->data) {
        tensor.data = (char *)source->data + (size_t)source->byte_offset;
    }
    for (int d = 0; source->strides && d < source->ndim; d++) {
        tensor.strides[d] = source->strides[d];
    }
    *view = tensor;
    return NPUQ_OK;
}

#endif
