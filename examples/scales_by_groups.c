/* SPDX-License-Identifier: BSD-3-Clause */
/* npuq_anti_quant(): int4 weights [N, K] whose words run along K, with a scale for each group of K, in one call. */
#include <npuquant/npuquant.h>
#include <stdio.h>

enum { N = 2, K = 16, SIZE = 8, G = K / SIZE };

int main(void)
{
    int32_t x[N][K / 8] = {{0x76543210, 0x76543210}, {0x76543210, 0x76543210}};
    float scale[N][G] = {{1.0f, 10.0f}, {0.5f, -1.0f}};
    float y[N][K];
    const npuq_tensor tx = npuq_matrix(x, NPUQ_QUINT4X2, N * G, SIZE / 8, 0);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_FLOAT32, N * G, SIZE, 0);
    const npuq_tensor ts = {scale, NPUQ_FLOAT32, 2, {N * G, SIZE}, {1, 0}}; /* one scale for all columns of a row */

    if (npuq_anti_quant(&tx, &ts, NULL, &ty, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int n = 0; n < N; n++) {
        for (int k = 0; k < K; k++) {
            printf("%g%c", (double)y[n][k], k < K - 1 ? ' ' : '\n');
        }
    }
    return 0;
}
