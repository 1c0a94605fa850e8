/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises two tokens to int4, eight to a word. Each token gets its own scale and offset. */
#include <inttypes.h>
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    float x[2][8] = {{0.5f, -1.25f, 3.0f, 0.0f, 2.75f, -0.375f, 1.5f, -2.0f}, {0.0f}};
    float scale[2], offset[2];
    int32_t y[2][1];
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, 2, 8, 0);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_QUINT4X2, 2, 1, 0);
    const npuq_tensor ts = npuq_vector(scale, NPUQ_FLOAT32, 2);
    const npuq_tensor to = npuq_vector(offset, NPUQ_FLOAT32, 2);

    if (npuq_dynamic_quant_asymmetric(&tx, NULL, NULL, NPUQ_PER_TOKEN, &ty, &ts, &to, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        printf("%08" PRIX32 ", scale %.9g, offset %g\n", (uint32_t)y[i][0], (double)scale[i], (double)offset[i]);
    }
    return 0;
}
