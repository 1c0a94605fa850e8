/* SPDX-License-Identifier: BSD-3-Clause */
/* Dequantises the sums of two tokens and three channels to bfloat16, with the scales of both and a bias. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    int32_t x[2][3] = {{11955, -16129, 3068}, {-227, 16002, -2324}};
    float weight_scale[3] = {0.01f, 0.02f, 0.005f};
    float activation_scale[2] = {0.05f, 0.125f};
    float bias[3] = {0.5f, 0.0f, -1.0f};
    uint16_t y[2][3];
    const npuq_tensor tx = npuq_matrix(x, NPUQ_INT32, 2, 3, 0);
    const npuq_tensor tw = npuq_vector(weight_scale, NPUQ_FLOAT32, 3);
    const npuq_tensor ta = npuq_vector(activation_scale, NPUQ_FLOAT32, 2);
    const npuq_tensor tb = npuq_vector(bias, NPUQ_FLOAT32, 3);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_BFLOAT16, 2, 3, 0);

    if (npuq_dequant(&tx, &tw, &ta, &tb, &ty, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        printf("%04X %04X %04X\n", y[i][0], y[i][1], y[i][2]);
    }
    return 0;
}
