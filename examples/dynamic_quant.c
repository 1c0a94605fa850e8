/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises two tokens to int4, eight to a word. Each token gets its own scale, in either form. Then to e4m3fn. */
#include <inttypes.h>
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    float x[2][8] = {{0.5f, -1.25f, 3.0f, 0.0f, 2.75f, -0.375f, 1.5f, -2.0f}, {0.0f}};
    float scale[2];
    int32_t y[2][1];
    uint8_t codes[2][8];
    const npuq_scale_form forms[2] = {NPUQ_SCALE_PRODUCT, NPUQ_SCALE_INVERSE};
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, 2, 8, 0);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_QUINT4X2, 2, 1, 0);
    const npuq_tensor tc = npuq_matrix(codes, NPUQ_FLOAT8_E4M3FN, 2, 8, 0);
    const npuq_tensor ts = npuq_vector(scale, NPUQ_FLOAT32, 2);

    for (int f = 0; f < 2; f++) {
        if (npuq_dynamic_quant(&tx, NULL, NULL, NPUQ_PER_TOKEN, forms[f], &ty, &ts, NULL) != NPUQ_OK) {
            (void)fprintf(stderr, "%s\n", npuq_last_error());
            return 1;
        }
        for (int i = 0; i < 2; i++) {
            printf("%s: %08" PRIX32 ", scale %.9g\n", f == 0 ? "product" : "inverse", (uint32_t)y[i][0],
                   (double)scale[i]);
        }
    }
    if (npuq_dynamic_quant_float8(&tx, NULL, NULL, NPUQ_PER_TOKEN, 0.0f, &tc, &ts, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        printf("e4m3fn:");
        for (int k = 0; k < 8; k++) {
            printf(" %02X", codes[i][k]);
        }
        printf(", scale %.9g\n", (double)scale[i]);
    }
    return 0;
}
