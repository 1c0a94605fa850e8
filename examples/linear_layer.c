/* SPDX-License-Identifier: BSD-3-Clause */
/* A linear layer, y = x * W^T + bias, with int8 weights and int8 activations (W8A8), in several ways. Prints the error
 * of each, and the times of the second. docs/linear-layer.md explains the program.
 *
 * usage: linear_layer INPUTS RESULTS [REPEATS]
 * INPUTS: a file that linear_layer.py makes. RESULTS: a file for x_q, sums and y of the second way.
 * REPEATS: runs for the times, of which the fastest counts; default: none. */
#include "executor_openmp.h"

#ifdef WITH_DNNL
#include <dnnl.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef TOKENS
enum { TOKENS = 64, INPUTS = 1024, OUTPUTS = 512 };
#endif

static float x[TOKENS][INPUTS], w[OUTPUTS][INPUTS], w_smooth[OUTPUTS][INPUTS], smooth_scales[INPUTS], bias[OUTPUTS];
static int8_t x_q[TOKENS][INPUTS], w_q[OUTPUTS][INPUTS];
static float x_scale[TOKENS], x_offset[TOKENS], w_scale[OUTPUTS];
static int32_t sums[TOKENS][OUTPUTS], w_sums[OUTPUTS];
static float y[TOKENS][OUTPUTS], expected[TOKENS][OUTPUTS];

/* Views of them. */
static const npuq_tensor tx = {x, NPUQ_FLOAT32, 2, {TOKENS, INPUTS}, {INPUTS, 1}};
static const npuq_tensor tw = {w, NPUQ_FLOAT32, 2, {OUTPUTS, INPUTS}, {INPUTS, 1}};
static const npuq_tensor tw_smooth = {w_smooth, NPUQ_FLOAT32, 2, {OUTPUTS, INPUTS}, {INPUTS, 1}};
static const npuq_tensor tsmooth = {smooth_scales, NPUQ_FLOAT32, 1, {INPUTS}, {1}};
static const npuq_tensor tbias = {bias, NPUQ_FLOAT32, 1, {OUTPUTS}, {1}};
static const npuq_tensor tx_q = {x_q, NPUQ_INT8, 2, {TOKENS, INPUTS}, {INPUTS, 1}};
static const npuq_tensor tw_q = {w_q, NPUQ_INT8, 2, {OUTPUTS, INPUTS}, {INPUTS, 1}};
static const npuq_tensor tx_scale = {x_scale, NPUQ_FLOAT32, 1, {TOKENS}, {1}};
static const npuq_tensor tx_offset = {x_offset, NPUQ_FLOAT32, 1, {TOKENS}, {1}};
static const npuq_tensor tw_scale = {w_scale, NPUQ_FLOAT32, 1, {OUTPUTS}, {1}};
static const npuq_tensor tsums = {sums, NPUQ_INT32, 2, {TOKENS, OUTPUTS}, {OUTPUTS, 1}};
static const npuq_tensor ty = {y, NPUQ_FLOAT32, 2, {TOKENS, OUTPUTS}, {OUTPUTS, 1}};
static const npuq_tensor texpected = {expected, NPUQ_FLOAT32, 2, {TOKENS, OUTPUTS}, {OUTPUTS, 1}};

static void check(npuq_status status)
{
    if (status != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        exit(1);
    }
}

/* ---- the layer --------------------------------------------------------------------------------------------------- */

static float largest_weight(const float *values, int count)
{
    float largest = 0;

    for (int k = 0; k < count; k++) {
        largest = fmaxf(largest, fabsf(values[k]));
    }
    return largest;
}

/* The int8 weights, their scales and their sums. */
static void quantize_weights(const npuq_tensor *weights)
{
    const float *values = weights->data;

    for (int n = 0; n < OUTPUTS; n++) {
        w_scale[n] = largest_weight(&values[n * INPUTS], INPUTS) / 127;
    }
    check(npuq_quantize(weights, &tw_scale, NULL, 0, true, &tw_q, &openmp_executor));
    for (int n = 0; n < OUTPUTS; n++) {
        w_sums[n] = 0;
        for (int k = 0; k < INPUTS; k++) {
            w_sums[n] += w_q[n][k];
        }
    }
}

static const npuq_tensor *smooth; /* null, or the smooth scales */

static void quantize_activations(void)
{
    check(
        npuq_dynamic_quant(&tx, smooth, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &tx_q, &tx_scale, &openmp_executor));
}

#ifdef WITH_DNNL
static bool multiply_with_dnnl(int rows, int cols, int depth, const int8_t *a, const int8_t *b, int32_t *c)
{
    const int32_t none = 0;

    return dnnl_gemm_s8s8s32('N', 'T', 'F', rows, cols, depth, 1, a, depth, 0, b, depth, 0, 0, c, cols, &none) ==
           dnnl_success;
}
#endif

/* sums = x_q * w_q^T: what a matrix unit, or a library such as oneDNN, computes. Without VNNI instructions oneDNN adds
 * pairs of products in 16 bits, which saturate. */
static void multiply(void)
{
#ifdef WITH_DNNL
    static const int8_t most[64] = {127, 127, 127, 127};
    int32_t sum;

    if (multiply_with_dnnl(1, 1, 64, most, most, &sum) && sum == 4 * 127 * 127 &&
        multiply_with_dnnl(TOKENS, OUTPUTS, INPUTS, x_q[0], w_q[0], sums[0])) {
        return;
    }
#endif
#pragma omp parallel for schedule(static)
    for (int i = 0; i < TOKENS * OUTPUTS; i++) {
        int32_t sum_of_products = 0;

        for (int k = 0; k < INPUTS; k++) {
            sum_of_products += x_q[i / OUTPUTS][k] * w_q[i % OUTPUTS][k];
        }
        sums[i / OUTPUTS][i % OUTPUTS] = sum_of_products;
    }
}

static void dequantize(void)
{
    check(npuq_dequant(&tsums, &tw_scale, &tx_scale, &tbias, &ty, &openmp_executor));
}

static void symmetric(void)
{
    quantize_activations();
    multiply();
    dequantize();
}

/* ---- activations with offsets ------------------------------------------------------------------------------------ */

/* One call for each token, which has a bias of its own. */
static void asymmetric_by_token(void)
{
    check(npuq_dynamic_quant_asymmetric(&tx, smooth, NULL, NPUQ_PER_TOKEN, &tx_q, &tx_scale, &tx_offset, NULL));
    multiply();
    for (int t = 0; t < TOKENS; t++) {
        float token_bias[OUTPUTS];
        const npuq_tensor tb = npuq_vector(token_bias, NPUQ_FLOAT32, OUTPUTS);
        const npuq_tensor token_sums = npuq_matrix(sums[t], NPUQ_INT32, 1, OUTPUTS, 0);
        const npuq_tensor token_scale = npuq_vector(&x_scale[t], NPUQ_FLOAT32, 1);
        const npuq_tensor token_y = npuq_matrix(y[t], NPUQ_FLOAT32, 1, OUTPUTS, 0);

        for (int n = 0; n < OUTPUTS; n++) {
            token_bias[n] = bias[n] - (x_scale[t] * x_offset[t]) * (w_scale[n] * (float)w_sums[n]);
        }
        check(npuq_dequant(&token_sums, &tw_scale, &token_scale, &tb, &token_y, NULL));
    }
}

/* In three steps. In between, every range is extended to 0, so that all offsets lie between -128 and 127, and the
 * offsets become integers. */
static void asymmetric_exactly(void)
{
    float min[TOKENS], max[TOKENS];
    const npuq_tensor tmin = npuq_vector(min, NPUQ_FLOAT32, TOKENS);
    const npuq_tensor tmax = npuq_vector(max, NPUQ_FLOAT32, TOKENS);

    check(npuq_dynamic_quant_min_max(&tx, smooth, NULL, NPUQ_PER_TOKEN, &tmin, &tmax, NULL));
    for (int t = 0; t < TOKENS; t++) {
        min[t] = min[t] > 0 ? 0 : min[t];
        max[t] = max[t] < 0 ? 0 : max[t];
    }
    check(npuq_dynamic_quant_params(&tmin, &tmax, NPUQ_INT8, &tx_scale, &tx_offset));
    for (int t = 0; t < TOKENS; t++) {
        x_offset[t] = isnan(x_offset[t]) ? 0 : rintf(x_offset[t]); /* NaN: x had an infinity or a NaN */
    }
    check(npuq_dynamic_quant_apply(&tx, smooth, NULL, NPUQ_PER_TOKEN, &tx_scale, &tx_offset, &tx_q, NULL));
    multiply();
    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            sums[t][n] -= (int32_t)x_offset[t] * w_sums[n];
        }
    }
    dequantize();
}

/* ---- the matrix unit's own output stage -------------------------------------------------------------------------- */

/* A scale and an integer offset for values like these. */
static void calibrate(const npuq_tensor *values, const npuq_tensor *factors, float *scale, int32_t *offset)
{
    float min = 0, max = 0;
    const npuq_tensor tmin = npuq_vector(&min, NPUQ_FLOAT32, 1);
    const npuq_tensor tmax = npuq_vector(&max, NPUQ_FLOAT32, 1);

    check(npuq_dynamic_quant_min_max(values, factors, NULL, NPUQ_PER_TENSOR, &tmin, &tmax, NULL));
    *scale = (fmaxf(max, 0) - fminf(min, 0)) / 255;
    *offset = -128 - (int32_t)rintf(fminf(min, 0) / *scale);
}

/* From int8 to the int8 of the next layer. One scale and one offset serve all tokens, and are known beforehand. */
static void matrix_unit(void)
{
    static int8_t y_q[TOKENS][OUTPUTS];
    float in_scale, in_scales[INPUTS], out_scale, unit_scale[OUTPUTS], unit_offset;
    int32_t in_offset, in_offsets[INPUTS], out_offset, unit_bias[OUTPUTS];
    uint64_t words[OUTPUTS];
    const npuq_tensor tin_scales = npuq_vector(in_scales, NPUQ_FLOAT32, INPUTS);
    const npuq_tensor tin_offsets = npuq_vector(in_offsets, NPUQ_INT32, INPUTS);
    const npuq_tensor tout_scale = npuq_vector(&out_scale, NPUQ_FLOAT32, 1);
    const npuq_tensor tunit_scale = npuq_vector(unit_scale, NPUQ_FLOAT32, OUTPUTS);
    const npuq_tensor tunit_offset = npuq_vector(&unit_offset, NPUQ_FLOAT32, 1);
    const npuq_tensor tunit_bias = npuq_vector(unit_bias, NPUQ_INT32, OUTPUTS);
    const npuq_tensor twords = npuq_vector(words, NPUQ_UINT64, OUTPUTS);
    const npuq_tensor ty_q = npuq_matrix(y_q, NPUQ_INT8, TOKENS, OUTPUTS, 0);

    calibrate(&tx, smooth, &in_scale, &in_offset);
    calibrate(&texpected, NULL, &out_scale, &out_offset);
    for (int k = 0; k < INPUTS; k++) {
        in_scales[k] = in_scale / smooth_scales[k];
        in_offsets[k] = in_offset;
    }
    for (int n = 0; n < OUTPUTS; n++) {
        unit_scale[n] = in_scale * w_scale[n] / out_scale;
        unit_bias[n] = (int32_t)rintf(bias[n] / (in_scale * w_scale[n])) - in_offset * w_sums[n];
    }
    unit_offset = (float)out_offset;
    check(npuq_trans_quant_param(&tunit_scale, &tunit_offset, NPUQ_ROUND_NEAREST, &twords));

    check(npuq_quantize(&tx, &tin_scales, &tin_offsets, -1, true, &tx_q, NULL));
    multiply();
    check(npuq_requant(&tsums, &twords, &tunit_bias, &ty_q, NULL));

    unit_offset = -(float)out_offset; /* to compare with the float32 layer */
    check(npuq_anti_quant(&ty_q, &tout_scale, &tunit_offset, &ty, NULL));
}

/* ---- weights of 4 bits ------------------------------------------------------------------------------------------- */

/* Each output has a scale for every GROUP inputs, and the weights are stored transposed, since groups are groups of
 * rows for npuq_anti_quant(). The product is one of floats. */
static void weights_of_4_bits(void)
{
    enum { GROUP = 64 };
    static float from_int4[INPUTS / GROUP][OUTPUTS], w_back[INPUTS][OUTPUTS];
    static int32_t w_int4[INPUTS][OUTPUTS / 8];
    const npuq_tensor tw_int4 = npuq_matrix(w_int4, NPUQ_QUINT4X2, INPUTS, OUTPUTS / 8, 0);
    const npuq_tensor tfrom_int4 = npuq_matrix(from_int4, NPUQ_FLOAT32, INPUTS / GROUP, OUTPUTS, 0);
    const npuq_tensor tw_back = npuq_matrix(w_back, NPUQ_FLOAT32, INPUTS, OUTPUTS, 0);

    for (int k = 0; k < INPUTS; k += GROUP) {
        float to_int4[OUTPUTS];
        const npuq_tensor group = {&w[0][k], NPUQ_FLOAT32, 2, {GROUP, OUTPUTS}, {1, INPUTS}};
        const npuq_tensor group_int4 = npuq_matrix(w_int4[k], NPUQ_QUINT4X2, GROUP, OUTPUTS / 8, 0);
        const npuq_tensor tto_int4 = npuq_vector(to_int4, NPUQ_FLOAT32, OUTPUTS);

        for (int n = 0; n < OUTPUTS; n++) {
            const float largest = largest_weight(&w[n][k], GROUP);
            to_int4[n] = 7 / largest;
            from_int4[k / GROUP][n] = largest / 7;
        }
        check(npuq_quantize(&group, &tto_int4, NULL, -1, false, &group_int4, NULL));
    }
    check(npuq_anti_quant(&tw_int4, &tfrom_int4, NULL, &tw_back, NULL));
    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            y[t][n] = bias[n];
            for (int k = 0; k < INPUTS; k++) {
                y[t][n] += x[t][k] * w_back[k][n];
            }
        }
    }
}

/* ---- what came out ----------------------------------------------------------------------------------------------- */

/* The Frobenius norm of the errors by that of the float32 layer's values. */
static void print_error(const char *name)
{
    double errors = 0, squares = 0;

    for (int i = 0; i < TOKENS * OUTPUTS; i++) {
        const double right = (double)expected[i / OUTPUTS][i % OUTPUTS];

        errors += pow((double)y[i / OUTPUTS][i % OUTPUTS] - right, 2);
        squares += right * right;
    }
    printf("%-44s %.3f %%\n", name, 100 * sqrt(errors / squares));
}

static void print_time(const char *name, void (*step)(void), int repeats)
{
    double fastest = INFINITY;

    for (int r = 0; r < repeats; r++) {
        struct timespec start, end;

        (void)timespec_get(&start, TIME_UTC);
        step();
        (void)timespec_get(&end, TIME_UTC);
        fastest =
            fmin(fastest, 1e3 * difftime(end.tv_sec, start.tv_sec) + 1e-6 * (double)(end.tv_nsec - start.tv_nsec));
    }
    printf("%-20s %10.3f ms\n", name, fastest);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*compute)(void);
    } ways[] = {
        {"asymmetric, a bias for each token", asymmetric_by_token},
        {"asymmetric, integer offsets, exact sums", asymmetric_exactly},
        {"int8 to int8, the matrix unit's own stage", matrix_unit},
        {"weights of 4 bits, float32 product", weights_of_4_bits},
    };

    if (argc < 3 || argc > 4) {
        (void)fprintf(stderr, "usage: linear_layer INPUTS RESULTS [REPEATS]\n");
        return 1;
    }
    FILE *from = fopen(argv[1], "rb");
    FILE *to = fopen(argv[2], "wb");
    if (!from || !to || fread(x, sizeof x, 1, from) != 1 || fread(w, sizeof w, 1, from) != 1 ||
        fread(w_smooth, sizeof w_smooth, 1, from) != 1 || fread(smooth_scales, sizeof smooth_scales, 1, from) != 1 ||
        fread(bias, sizeof bias, 1, from) != 1 || fread(expected, sizeof expected, 1, from) != 1) {
        (void)fprintf(stderr, "%s or %s cannot be opened, or has too few bytes\n", argv[1], argv[2]);
        return 1;
    }

    puts("error, relative to the float32 layer:");
    quantize_weights(&tw);
    symmetric();
    print_error("symmetric, without smooth scales");
    quantize_weights(&tw_smooth);
    smooth = &tsmooth;
    symmetric();
    print_error("symmetric, with smooth scales");
    if (fwrite(x_q, sizeof x_q, 1, to) != 1 || fwrite(sums, sizeof sums, 1, to) != 1 ||
        fwrite(y, sizeof y, 1, to) != 1 || fclose(to) != 0 || fclose(from) != 0) {
        (void)fprintf(stderr, "%s cannot be written\n", argv[2]);
        return 1;
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) { /* all with smooth scales but the last */
        ways[i].compute();
        print_error(ways[i].name);
    }
    if (argc == 4) {
        print_time("npuq_dynamic_quant()", quantize_activations, atoi(argv[3]));
        print_time("int8 product", multiply, atoi(argv[3]));
        print_time("npuq_dequant()", dequantize, atoi(argv[3]));
    }
    return 0;
}
