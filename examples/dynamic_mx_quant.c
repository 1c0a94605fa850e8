/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantises a row in two groups of 32 to 8- and to 4-bit floats. */
#include <npuquant/npuquant.h>
#include <stdio.h>

static int quantise(const npuq_tensor *x, npuq_dtype dtype, const npuq_mx *options)
{
    uint8_t y[64];
    uint8_t scale[2];
    int64_t shape[NPUQ_MAX_NDIM];
    const int32_t elements = dtype == NPUQ_FLOAT4_E2M1 ? 2 : 1; /* in a byte */
    const npuq_tensor ty = npuq_matrix(y, dtype, 1, 64 / elements, 0);
    npuq_tensor ts = {.data = scale, .dtype = NPUQ_FLOAT8_E8M0, .ndim = 3, .strides = {2, 2, 1}};

    if (npuq_mx_scale_shape(x, -1, options, shape) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    for (int d = 0; d < 3; d++) { /* 1, 1, 2: a pair of groups */
        ts.shape[d] = shape[d];
    }
    if (npuq_dynamic_mx_quant(x, -1, options, &ty, &ts, NULL) != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        return 1;
    }
    printf("%s: scales 2^%d and 2^%d, y", npuq_dtype_name(dtype), scale[0] - 127, scale[1] - 127);
    for (int i = 0; i < 8 / elements; i++) {
        printf(" %02X", y[i]);
    }
    printf(" ...\n");
    return 0;
}

int main(void)
{
    float x[1][64] = {{0.5f, -1.25f, 3.0f, 0.0f, 2.75f, -0.375f, 1.5f, -2.0f}};
    const npuq_mx to_4_bits = {.scale_algorithm = 2, .dst_type_max = 7.0f};
    const npuq_tensor tx = npuq_matrix(x, NPUQ_FLOAT32, 1, 64, 0);

    for (int i = 32; i < 64; i++) {
        x[0][i] = 100.0f * (float)(i - 48);
    }
    if (quantise(&tx, NPUQ_FLOAT8_E4M3FN, NULL) != 0) {
        return 1;
    }
    return quantise(&tx, NPUQ_FLOAT4_E2M1, &to_4_bits);
}
