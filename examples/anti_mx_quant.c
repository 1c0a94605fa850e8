/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads two rows of weights that are stored in groups of 32, as 8-bit floats with a power of two for each group. */
#include <npuquant/npuquant.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    uint8_t weights[2][64];
    uint8_t scales[2][1][2] = {{{127, 130}}, {{120, 127}}}; /* 2^0 and 2^3; 2^-7 and 2^0 */
    float y[2][64];
    const npuq_tensor tx = npuq_matrix(weights, NPUQ_FLOAT8_E4M3FN, 2, 64, 0);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_FLOAT32, 2, 64, 0);
    const npuq_tensor ts = {
        .data = scales, .dtype = NPUQ_FLOAT8_E8M0, .ndim = 3, .shape = {2, 1, 2}, .strides = {2, 2, 1}};

    memset(weights, 0x3C, sizeof weights); /* 1.5 */
    if (npuq_anti_mx_quant(&tx, &ts, -1, NULL, &ty, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int r = 0; r < 2; r++) {
        printf("row %d: %g and %g\n", r, (double)y[r][0], (double)y[r][32]);
    }
    return 0;
}
