/* SPDX-License-Identifier: BSD-3-Clause */
/* Divides two rows by a scale for each column, and adds a zero point for each column. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    float x[2][4] = {{0.09f, -1.25f, 2.5f, 300.0f}, {0.5f, 0.75f, -2.5f, -300.0f}};
    float scales[4] = {0.02f, 0.5f, 1.0f, 2.0f};
    int32_t zero_points[4] = {0, 10, 0, -1};
    int8_t y[2][4];
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, 2, 4, 0);
    const npuq_tensor ts = npuq_vector(scales, NPUQ_FLOAT32, 4);
    const npuq_tensor tz = npuq_vector(zero_points, NPUQ_INT32, 4);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_INT8, 2, 4, 0);

    if (npuq_quantize(&tx, &ts, &tz, 1, true, &ty, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        printf("%d %d %d %d\n", y[i][0], y[i][1], y[i][2], y[i][3]);
    }
    return 0;
}
