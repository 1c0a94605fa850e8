/* SPDX-License-Identifier: BSD-3-Clause */
/* Other ways through the layer of w8a8_linear.c, on a small layer with products by plain loops: activations with
 * offsets, the matrix unit's own output stage, weights of 4 bits. Prints the error of each. docs/linear-layer.md
 * explains them. */
#include <npuquant/npuquant.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 4, INPUTS = 256, OUTPUTS = 16 };

static float x[TOKENS][INPUTS], w[OUTPUTS][INPUTS], bias[OUTPUTS], expected[TOKENS][OUTPUTS];
static int8_t x_q[TOKENS][INPUTS], w_q[OUTPUTS][INPUTS];
static float x_scale[TOKENS], x_offset[TOKENS], w_scale[OUTPUTS];
static int32_t sums[TOKENS][OUTPUTS], w_sums[OUTPUTS];
static float y[TOKENS][OUTPUTS];

/* Views of them. */
static npuq_tensor tx, tw, tbias, tx_q, tw_q, tx_scale, tx_offset, tw_scale, tsums, ty;

static void check(npuq_status status)
{
    if (status != NPUQ_OK) {
        (void)fprintf(stderr, "%s\n", npuq_last_error());
        exit(1);
    }
}

/* ---- the layer --------------------------------------------------------------------------------------------------- */

static float random_float(void) /* 0 to 1 */
{
    static uint32_t state = 1;

    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 16777216;
}

/* Activations as they come from SiLU or GELU: none is far below 0. */
static void make_layer(void)
{
    for (int k = 0; k < INPUTS; k++) {
        for (int t = 0; t < TOKENS; t++) {
            const float r = random_float();
            x[t][k] = r * r * r * (float)(4 + t) - 0.25f;
        }
        for (int n = 0; n < OUTPUTS; n++) {
            w[n][k] = (random_float() + random_float() - 1) / 16;
        }
    }
    for (int n = 0; n < OUTPUTS; n++) {
        bias[n] = random_float() - 0.5f;
    }
    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            double sum = 0;
            for (int k = 0; k < INPUTS; k++) {
                sum += (double)x[t][k] * (double)w[n][k];
            }
            expected[t][n] = (float)(sum + (double)bias[n]);
        }
    }
}

static float largest_weight(int n, int first, int count)
{
    float largest = 0;

    for (int k = first; k < first + count; k++) {
        largest = fmaxf(largest, fabsf(w[n][k]));
    }
    return largest;
}

static void quantize_weights(void)
{
    for (int n = 0; n < OUTPUTS; n++) {
        w_scale[n] = largest_weight(n, 0, INPUTS) / 127;
    }
    check(npuq_quantize(&tw, &tw_scale, NULL, 0, true, &tw_q, NULL));
    for (int n = 0; n < OUTPUTS; n++) {
        w_sums[n] = 0;
        for (int k = 0; k < INPUTS; k++) {
            w_sums[n] += w_q[n][k];
        }
    }
}

/* sums = x_q * w_q^T: what a matrix unit, or a library such as oneDNN, computes. */
static void multiply(void)
{
    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            sums[t][n] = 0;
            for (int k = 0; k < INPUTS; k++) {
                sums[t][n] += x_q[t][k] * w_q[n][k];
            }
        }
    }
}

/* ---- activations without offsets, and with ----------------------------------------------------------------------- */

static void symmetric(void)
{
    check(npuq_dynamic_quant(&tx, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &tx_q, &tx_scale, NULL));
    multiply();
    check(npuq_dequant(&tsums, &tw_scale, &tx_scale, &tbias, &ty, NULL));
}

static void asymmetric_in_float(void)
{
    check(npuq_dynamic_quant_asymmetric(&tx, NULL, NULL, NPUQ_PER_TOKEN, &tx_q, &tx_scale, &tx_offset, NULL));
    multiply();
    check(npuq_dequant(&tsums, &tw_scale, &tx_scale, &tbias, &ty, NULL));
    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            y[t][n] -= (x_scale[t] * x_offset[t]) * (w_scale[n] * (float)w_sums[n]);
        }
    }
}

/* The same in one call for each token, which has a bias of its own. */
static void asymmetric_by_token(void)
{
    check(npuq_dynamic_quant_asymmetric(&tx, NULL, NULL, NPUQ_PER_TOKEN, &tx_q, &tx_scale, &tx_offset, NULL));
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

/* Quantises in three steps. In between, every range is extended to 0, so that all offsets lie between -128 and 127, and
 * the offsets become integers. */
static void quantize_with_integer_offsets(void)
{
    float min[TOKENS], max[TOKENS];
    const npuq_tensor tmin = npuq_vector(min, NPUQ_FLOAT32, TOKENS);
    const npuq_tensor tmax = npuq_vector(max, NPUQ_FLOAT32, TOKENS);

    check(npuq_dynamic_quant_min_max(&tx, NULL, NULL, NPUQ_PER_TOKEN, &tmin, &tmax, NULL));
    for (int t = 0; t < TOKENS; t++) {
        min[t] = min[t] > 0 ? 0 : min[t];
        max[t] = max[t] < 0 ? 0 : max[t];
    }
    check(npuq_dynamic_quant_params(&tmin, &tmax, NPUQ_INT8, &tx_scale, &tx_offset));
    for (int t = 0; t < TOKENS; t++) {
        x_offset[t] = isnan(x_offset[t]) ? 0 : rintf(x_offset[t]); /* NaN: x had an infinity or a NaN */
    }
    check(npuq_dynamic_quant_apply(&tx, NULL, NULL, NPUQ_PER_TOKEN, &tx_scale, &tx_offset, &tx_q, NULL));
}

static void asymmetric_exactly(void)
{
    quantize_with_integer_offsets();
    multiply();
    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            sums[t][n] -= (int32_t)x_offset[t] * w_sums[n];
        }
    }
    check(npuq_dequant(&tsums, &tw_scale, &tx_scale, &tbias, &ty, NULL));
}

/* Whether the sums are those of products with the values before an offset was added. */
static void check_exact(void)
{
    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            int32_t sum = 0;
            for (int k = 0; k < INPUTS; k++) {
                sum += (x_q[t][k] - (int32_t)x_offset[t]) * w_q[n][k];
            }
            if (sum != sums[t][n]) {
                (void)fprintf(stderr, "sum of token %d, output %d: %d; expected %d\n", t, n, (int)sums[t][n], (int)sum);
                exit(1);
            }
        }
    }
}

/* ---- the matrix unit's own output stage -------------------------------------------------------------------------- */

/* A scale and an integer offset for values like these. */
static void calibrate(const float *values, int count, float *scale, int32_t *offset)
{
    float min = 0;
    float max = 0;

    for (int i = 0; i < count; i++) {
        min = fminf(min, values[i]);
        max = fmaxf(max, values[i]);
    }
    *scale = (max - min) / 255;
    *offset = -128 - (int32_t)rintf(min / *scale);
}

/* From int8 to the int8 of the next layer. One scale and one offset serve all tokens, and are known beforehand. */
static void matrix_unit(void)
{
    float in_scale, out_scale, unit_scale[OUTPUTS], unit_offset;
    int32_t in_offset, out_offset, unit_bias[OUTPUTS];
    uint64_t words[OUTPUTS];
    int8_t y_q[TOKENS][OUTPUTS];
    const npuq_tensor tin_scale = npuq_vector(&in_scale, NPUQ_FLOAT32, 1);
    const npuq_tensor tin_offset = npuq_vector(&in_offset, NPUQ_INT32, 1);
    const npuq_tensor tunit_scale = npuq_vector(unit_scale, NPUQ_FLOAT32, OUTPUTS);
    const npuq_tensor tunit_offset = npuq_vector(&unit_offset, NPUQ_FLOAT32, 1);
    const npuq_tensor tunit_bias = npuq_vector(unit_bias, NPUQ_INT32, OUTPUTS);
    const npuq_tensor twords = npuq_vector(words, NPUQ_UINT64, OUTPUTS);
    const npuq_tensor ty_q = npuq_matrix(y_q, NPUQ_INT8, TOKENS, OUTPUTS, 0);

    calibrate(x[0], TOKENS * INPUTS, &in_scale, &in_offset);
    calibrate(expected[0], TOKENS * OUTPUTS, &out_scale, &out_offset);
    for (int n = 0; n < OUTPUTS; n++) {
        unit_scale[n] = in_scale * w_scale[n] / out_scale;
        unit_bias[n] = (int32_t)rintf(bias[n] / (in_scale * w_scale[n])) - in_offset * w_sums[n];
    }
    unit_offset = (float)out_offset;
    check(npuq_trans_quant_param(&tunit_scale, &tunit_offset, NPUQ_ROUND_NEAREST, &twords));

    check(npuq_quantize(&tx, &tin_scale, &tin_offset, -1, true, &tx_q, NULL));
    multiply();
    check(npuq_requant(&tsums, &twords, &tunit_bias, &ty_q, NULL));

    /* To compare with the float32 layer. */
    const npuq_tensor tout_scale = npuq_vector(&out_scale, NPUQ_FLOAT32, 1);
    unit_offset = -(float)out_offset;
    check(npuq_anti_quant(&ty_q, &tout_scale, &tunit_offset, &ty, NULL));
}

/* ---- weights of 4 bits ------------------------------------------------------------------------------------------- */

/* Each output has a scale for every GROUP inputs, and the weights are stored transposed, since groups are groups of
 * rows for npuq_anti_quant(). The product is one of floats. */
static void weights_of_4_bits(void)
{
    enum { GROUP = 64, GROUPS = INPUTS / GROUP };
    static float from_int4[GROUPS][OUTPUTS], w_back[INPUTS][OUTPUTS];
    static int32_t w_int4[INPUTS][OUTPUTS / 8];
    const npuq_tensor tw_int4 = npuq_matrix(w_int4, NPUQ_QUINT4X2, INPUTS, OUTPUTS / 8, 0);
    const npuq_tensor tfrom_int4 = npuq_matrix(from_int4, NPUQ_FLOAT32, GROUPS, OUTPUTS, 0);
    const npuq_tensor tw_back = npuq_matrix(w_back, NPUQ_FLOAT32, INPUTS, OUTPUTS, 0);

    for (int k = 0; k < INPUTS; k += GROUP) {
        float to_int4[OUTPUTS];
        const npuq_tensor group = {&w[0][k], NPUQ_FLOAT32, 2, {GROUP, OUTPUTS}, {1, INPUTS}};
        const npuq_tensor group_int4 = npuq_matrix(w_int4[k], NPUQ_QUINT4X2, GROUP, OUTPUTS / 8, 0);
        const npuq_tensor tto_int4 = npuq_vector(to_int4, NPUQ_FLOAT32, OUTPUTS);

        for (int n = 0; n < OUTPUTS; n++) {
            const float largest = largest_weight(n, k, GROUP);
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

static void print_error(const char *name)
{
    double errors = 0;
    double squares = 0;

    for (int t = 0; t < TOKENS; t++) {
        for (int n = 0; n < OUTPUTS; n++) {
            const double error = (double)y[t][n] - (double)expected[t][n];
            errors += error * error;
            squares += (double)expected[t][n] * (double)expected[t][n];
        }
    }
    printf("%-44s %.3f %%\n", name, 100 * sqrt(errors / squares));
}

int main(void)
{
    tx = npuq_matrix(x, NPUQ_FLOAT32, TOKENS, INPUTS, 0);
    tw = npuq_matrix(w, NPUQ_FLOAT32, OUTPUTS, INPUTS, 0);
    tbias = npuq_vector(bias, NPUQ_FLOAT32, OUTPUTS);
    tx_q = npuq_matrix(x_q, NPUQ_INT8, TOKENS, INPUTS, 0);
    tw_q = npuq_matrix(w_q, NPUQ_INT8, OUTPUTS, INPUTS, 0);
    tx_scale = npuq_vector(x_scale, NPUQ_FLOAT32, TOKENS);
    tx_offset = npuq_vector(x_offset, NPUQ_FLOAT32, TOKENS);
    tw_scale = npuq_vector(w_scale, NPUQ_FLOAT32, OUTPUTS);
    tsums = npuq_matrix(sums, NPUQ_INT32, TOKENS, OUTPUTS, 0);
    ty = npuq_matrix(y, NPUQ_FLOAT32, TOKENS, OUTPUTS, 0);
    make_layer();
    quantize_weights();

    puts("error, relative to the float32 layer:");
    symmetric();
    print_error("symmetric, per token");
    asymmetric_in_float();
    print_error("asymmetric, offsets corrected in float32");
    asymmetric_by_token();
    print_error("asymmetric, a bias for each token");
    asymmetric_exactly();
    check_exact();
    print_error("asymmetric, integer offsets, exact sums");
    matrix_unit();
    print_error("int8 to int8, the matrix unit's own stage");
    weights_of_4_bits();
    print_error("weights of 4 bits, float32 product");
    return 0;
}
