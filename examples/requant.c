/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs the scale and the offset of each channel into a word, and converts sums to int8 with the words. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    float scale[4] = {1.0f, 1.0f, 0.5f, 0.5f};
    float offset[4] = {-200.0f, 200.0f, 0.0f, 0.0f};
    int32_t x[2][4] = {{600, -600, 5, 7}, {150, -150, 300, 0}};
    int32_t bias[4] = {0, 0, 0, -4};
    uint64_t words[4];
    int8_t y[2][4];
    const npuq_tensor ts = npuq_vector(scale, NPUQ_FLOAT32, 4);
    const npuq_tensor to = npuq_vector(offset, NPUQ_FLOAT32, 4);
    const npuq_tensor tw = npuq_vector(words, NPUQ_UINT64, 4);
    const npuq_tensor tx = npuq_matrix(x, NPUQ_INT32, 2, 4, 0);
    const npuq_tensor tb = npuq_vector(bias, NPUQ_INT32, 4);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_INT8, 2, 4, 0);

    if (npuq_trans_quant_param(&ts, &to, NPUQ_ROUND_TRUNCATE, &tw) != NPUQ_OK ||
        npuq_requant(&tx, &tw, &tb, &ty, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        printf("%d %d %d %d\n", y[i][0], y[i][1], y[i][2], y[i][3]);
    }
    return 0;
}
