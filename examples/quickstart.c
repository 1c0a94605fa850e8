/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises two tokens to int8, each with a scale of its own. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    const float x[2][4] = {{0.5f, -1.25f, 3.0f, 0.0f}, {1.0f, 2.0f, 3.0f, 4.0f}};
    int8_t y[2][4];
    float scale[2];
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, 2, 4, 0);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_INT8, 2, 4, 0);
    const npuq_tensor ts = npuq_vector(scale, NPUQ_FLOAT32, 2);

    if (npuq_dynamic_quant(&tx, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &ty, &ts, NULL) != NPUQ_OK) {
        return puts(npuq_last_error()), 1;
    }
    printf("%d %d %d %d, scale %g\n", y[0][0], y[0][1], y[0][2], y[0][3], scale[0]);
}
