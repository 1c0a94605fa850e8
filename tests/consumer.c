/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of a user of the library, C99 and C++11 alike, that the tests build in every way a user may. */
#include <npuquant/npuquant.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    float x[2][3] = {{0.5f, -1.5f, 100.0f}, {2.5f, -300.0f, 7.0f}};
    float scales[3] = {1.0f, 0.5f, 2.0f};
    int8_t y[2][3] = {{99, 99, 99}, {99, 99, 99}};
    const int8_t expected[2][3] = {{0, -3, 50}, {2, -128, 4}};
    const int64_t shape[2] = {2, 3};
    const char *message = "quantize: scales: dimension 0 is 2; expected 1 or 3";
    const npuq_tensor x_view = npuq_tensor_contiguous(x, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor scales_view = npuq_vector(scales, NPUQ_FLOAT32, 3);
    const npuq_tensor two_scales = npuq_vector(scales, NPUQ_FLOAT32, 2);
    const npuq_tensor y_view = npuq_tensor_contiguous(y, NPUQ_INT8, 2, shape);

    if (strcmp(npuq_version(), NPUQ_VERSION) != 0) {
        printf("header %s, library %s\n", NPUQ_VERSION, npuq_version());
        return 1;
    }
    if (npuq_quantize(&x_view, &scales_view, NULL, -1, true, &y_view, NULL) != NPUQ_OK) {
        printf("%s\n", npuq_last_error());
        return 1;
    }
    if (memcmp(y, expected, sizeof y) != 0) {
        printf("%d %d %d, %d %d %d\n", y[0][0], y[0][1], y[0][2], y[1][0], y[1][1], y[1][2]);
        return 1;
    }
    /* Its line has a number of 64 bits and then a string: not every C library could print that. */
    if (npuq_quantize(&x_view, &two_scales, NULL, -1, true, &y_view, NULL) != NPUQ_ERROR_SHAPE ||
        strncmp(npuq_last_error(), message, strlen(message)) != 0) {
        printf("expected %s, not %s\n", message, npuq_last_error());
        return 1;
    }
    printf("npuquant %s, backend %s\n", npuq_version(), npuq_backend_name(npuq_active_backend()));
    return 0;
}
