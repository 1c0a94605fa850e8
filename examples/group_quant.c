/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises four rows in three groups, each with its scales; the second group is empty. */
#include <npuquant/npuquant.h>
#include <stdio.h>

int main(void)
{
    float x[4][2] = {{1.0f, 2.0f}, {-3.0f, 4.0f}, {5.0f, -6.0f}, {7.5f, 8.0f}};
    float scale[3][2] = {{0.5f, 1.0f}, {9.0f, 9.0f}, {2.0f, -1.0f}};
    int64_t group_index[3] = {1, 1, 4};
    float offset = 0.5f;
    int8_t y[4][2];
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, 4, 2, 0);
    const npuq_tensor ts = npuq_matrix(scale, NPUQ_FLOAT32, 3, 2, 0);
    const npuq_tensor tg = npuq_vector(group_index, NPUQ_INT64, 3);
    const npuq_tensor to = npuq_vector(&offset, NPUQ_FLOAT32, 1);
    const npuq_tensor ty = npuq_matrix(y, NPUQ_INT8, 4, 2, 0);

    if (npuq_group_quant(&tx, &ts, &tg, &to, &ty, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        printf("%d %d\n", y[i][0], y[i][1]);
    }
    return 0;
}
