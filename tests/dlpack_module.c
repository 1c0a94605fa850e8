/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared module that test_dlpack.py calls with tensors that frameworks export. */
#include <npuquant/dlpack.h>

npuq_status view_of(const DLManagedTensor *managed, npuq_tensor *view, char *message, size_t size);
npuq_status quantize(const DLManagedTensor *x, const DLManagedTensor *scales, const DLManagedTensor *zero_points,
                     int32_t axis, bool div_mode, const DLManagedTensor *y, bool words, char *message, size_t size);

npuq_status view_of(const DLManagedTensor *managed, npuq_tensor *view, char *message, size_t size)
{
    return npuq_tensor_from_dlpack(&managed->dl_tensor, view, message, size);
}

/* words: y holds int4 words */
npuq_status quantize(const DLManagedTensor *x, const DLManagedTensor *scales, const DLManagedTensor *zero_points,
                     int32_t axis, bool div_mode, const DLManagedTensor *y, bool words, char *message, size_t size)
{
    npuq_tensor x_view;
    npuq_tensor scales_view;
    npuq_tensor zero_points_view;
    npuq_tensor y_view;
    npuq_status status;

    if ((status = view_of(x, &x_view, message, size)) != NPUQ_OK ||
        (status = view_of(scales, &scales_view, message, size)) != NPUQ_OK ||
        (zero_points && (status = view_of(zero_points, &zero_points_view, message, size)) != NPUQ_OK) ||
        (status = view_of(y, &y_view, message, size)) != NPUQ_OK) {
        return status;
    }
    if (words) {
        y_view.dtype = NPUQ_QUINT4X2;
    }
    status =
        npuq_quantize(&x_view, &scales_view, zero_points ? &zero_points_view : NULL, axis, div_mode, &y_view, NULL);
    if (status != NPUQ_OK) {
        (void)snprintf(message, size, "%s", npuq_last_error());
    }
    return status;
}
