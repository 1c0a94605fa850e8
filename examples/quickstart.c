/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises two tokens to int8, each with a scale and an offset of its own. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    float x[2][4] = {{0.5f, -1.25f, 3.0f, 0.0f}, {1.0f, 2.0f, 3.0f, 4.0f}}, scale[2], offset[2];
    int8_t y[2][4];
    const int64_t shape[] = {2, 4};
    const npuq_tensor tx = npuq_tensor_contiguous(x, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor ty = npuq_tensor_contiguous(y, NPUQ_INT8, 2, shape);
    const npuq_tensor ts = npuq_tensor_contiguous(scale, NPUQ_FLOAT32, 1, shape);
    const npuq_tensor to = npuq_tensor_contiguous(offset, NPUQ_FLOAT32, 1, shape);
    if (npuq_dynamic_quant_asymmetric(&tx, NULL, NULL, NPUQ_PER_TOKEN, &ty, &ts, &to, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        printf("%d %d %d %d, scale %g, offset %g\n", y[i][0], y[i][1], y[i][2], y[i][3], (double)scale[i],
               (double)offset[i]);
    }
    return 0;
}
