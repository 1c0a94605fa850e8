/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises a row in two blocks of four, without and with min_scale. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    float x[1][8] = {{0.5f, -1.25f, 3.0f, 0.0f, 2.75f, -0.375f, 1.5f, -2.0f}};
    float scale[1][2];
    int8_t y[1][8];
    const float min_scales[2] = {0.0f, 45.0f};
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, 1, 8, 0);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_INT8, 1, 8, 0);
    const npuq_tensor ts = npuq_matrix(scale, NPUQ_FLOAT32, 1, 2, 0);

    for (int m = 0; m < 2; m++) {
        if (npuq_dynamic_block_quant(&tx, 4, min_scales[m], &ty, &ts, NULL) != NPUQ_OK) {
            (void)fprintf(stderr, "%s\n", npuq_last_error());
            return 1;
        }
        printf("min_scale %g:", (double)min_scales[m]);
        for (int i = 0; i < 8; i++) {
            printf(" %d", y[0][i]);
        }
        printf(", scales %.9g %.9g\n", (double)scale[0][0], (double)scale[0][1]);
    }
    return 0;
}
