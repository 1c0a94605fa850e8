/* SPDX-License-Identifier: BSD-3-Clause */
/* Dequantises eight int4 in a word to float16, with a scale for each element. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    int32_t x[1] = {0x7654321F}; /* -1 1 2 3 4 5 6 7, the first in the lowest bits */
    float scale[8] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 1e5f, -1e5f};
    uint16_t y[8];
    const npuq_tensor tx = npuq_vector(x, NPUQ_QUINT4X2, 1);
    const npuq_tensor ts = npuq_vector(scale, NPUQ_FLOAT32, 8);
    const npuq_tensor ty = npuq_vector(y, NPUQ_FLOAT16, 8);

    if (npuq_anti_quant(&tx, &ts, NULL, &ty, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 8; i++) {
        printf("%04X%c", y[i], i < 7 ? ' ' : '\n');
    }
    return 0;
}
