/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A linear layer, y = x * W^T + bias, with int8 weights and int8 activations (W8A8): this library quantises and
 * dequantises, oneDNN multiplies. Prints the error, the times, and checksums. docs/linear-layer.md explains the
 * program.
 *
 * usage: w8a8_linear [TOKENS [INPUTS [OUTPUTS [THREADS]]]]     512 4096 4096 2 if not given
 */
#include "executor_openmp.h"

#include <dnnl.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 11, ALIGNMENT = 64 };

/* ---- tensors that own their memory ------------------------------------------------------------------------------- */

static void fail(const char *why)
{
    (void)fprintf(stderr, "%s\n", why);
    exit(1);
}

static void check(npuq_status status)
{
    if (status != NPUQ_OK) {
        fail(npuq_last_error());
    }
}

static size_t bytes(const npuq_tensor *t)
{
    return npuq_dtype_size(t->dtype) * (size_t)t->shape[0] * (size_t)(t->ndim > 1 ? t->shape[1] : 1);
}

static void *owned[16];
static int owned_count;

static npuq_tensor allocated(npuq_tensor t)
{
    t.data = owned[owned_count++] = aligned_alloc(ALIGNMENT, (bytes(&t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!t.data) {
        fail("out of memory");
    }
    return t;
}

static npuq_tensor new_vector(npuq_dtype dtype, int64_t n)
{
    return allocated(npuq_vector(NULL, dtype, n));
}

static npuq_tensor new_matrix(npuq_dtype dtype, int64_t rows, int64_t cols)
{
    return allocated(npuq_matrix(NULL, dtype, rows, cols, 0));
}

static float bfloat16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- inputs, the same in every language -------------------------------------------------------------------------- */

/* Integers from -510 to 510, distributed much like a normal distribution: sums of the four bytes of a hash of i. */
static int32_t noise(uint32_t i)
{
    uint32_t h = i * 2654435761u;

    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    h ^= h >> 16;
    return (int32_t)((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)) - 510;
}

/* One channel in 128 is 60 times as large as the others. A bfloat16 is the upper half of a float32: cut, not rounded.
 */
static void make_activations(const npuq_tensor *x, uint32_t first)
{
    uint16_t *values = x->data;
    const int64_t cols = x->shape[1];

    for (int64_t i = 0; i < x->shape[0] * cols; i++) {
        const float value = (float)(noise(first + (uint32_t)i) * (i % cols % 128 == 5 ? 60 : 1)) / 128;
        uint32_t bits;

        memcpy(&bits, &value, sizeof bits);
        values[i] = (uint16_t)(bits >> 16);
    }
}

static void make_floats(const npuq_tensor *t, uint32_t first, float divisor)
{
    float *values = t->data;

    for (size_t i = 0; i < bytes(t) / sizeof *values; i++) {
        values[i] = (float)noise(first + (uint32_t)i) / divisor;
    }
}

/* ---- the products, by oneDNN ------------------------------------------------------------------------------------- */

typedef struct product {
    dnnl_primitive_t primitive;
    dnnl_memory_t x;
    dnnl_memory_t w;
    dnnl_memory_t y;
} product;

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void check_dnnl(dnnl_status_t status)
{
    if (status != dnnl_success) {
        (void)fprintf(stderr, "oneDNN: error %d\n", (int)status);
        exit(1);
    }
}

static dnnl_memory_desc_t describe(const npuq_tensor *t, bool transposed)
{
    const dnnl_dims_t dims = {t->shape[transposed], t->shape[!transposed]};
    const dnnl_data_type_t type = t->dtype == NPUQ_INT8 ? dnnl_s8 : t->dtype == NPUQ_INT32 ? dnnl_s32 : dnnl_f32;
    dnnl_memory_desc_t description;

    check_dnnl(dnnl_memory_desc_init_by_tag(&description, 2, dims, type, transposed ? dnnl_ba : dnnl_ab));
    return description;
}

static dnnl_memory_t new_memory(const dnnl_memory_desc_t *description, void *data)
{
    dnnl_memory_t memory;

    check_dnnl(dnnl_memory_create(&memory, description, engine, data));
    return memory;
}

static void execute(dnnl_primitive_t primitive, int count, const dnnl_exec_arg_t *arguments)
{
    check_dnnl(dnnl_primitive_execute(primitive, stream, count, arguments));
    check_dnnl(dnnl_stream_wait(stream));
}

/* y = x * w^T, with w [outputs, inputs] in the order that oneDNN likes best: it is put into it here, once. */
static product make_product(const npuq_tensor *x, const npuq_tensor *w, const npuq_tensor *y)
{
    const dnnl_memory_desc_t from = describe(x, false);
    const dnnl_memory_desc_t to = describe(y, false);
    const dnnl_memory_desc_t given = describe(w, true);
    dnnl_memory_desc_t any = given;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_desc_t description;
    dnnl_primitive_desc_t reorder_description;
    dnnl_primitive_t reorder;
    product p;

    any.format_kind = dnnl_format_kind_any;
    check_dnnl(dnnl_matmul_desc_init(&matmul, &from, &any, NULL, &to));
    check_dnnl(dnnl_primitive_desc_create(&description, &matmul, NULL, engine, NULL));
    check_dnnl(dnnl_primitive_create(&p.primitive, description));
    const dnnl_memory_desc_t *packed = dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
    p.x = new_memory(&from, x->data);
    p.w = new_memory(packed, DNNL_MEMORY_ALLOCATE);
    p.y = new_memory(&to, y->data);

    const dnnl_memory_t unpacked = new_memory(&given, w->data);
    check_dnnl(dnnl_reorder_primitive_desc_create(&reorder_description, &given, engine, packed, engine, NULL));
    check_dnnl(dnnl_primitive_create(&reorder, reorder_description));
    execute(reorder, 2, (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, unpacked}, {DNNL_ARG_TO, p.w}});

    check_dnnl(dnnl_primitive_destroy(reorder));
    check_dnnl(dnnl_primitive_desc_destroy(reorder_description));
    check_dnnl(dnnl_memory_destroy(unpacked));
    check_dnnl(dnnl_primitive_desc_destroy(description));
    return p;
}

static void multiply(const product *p)
{
    execute(p->primitive, 3, (dnnl_exec_arg_t[]){{DNNL_ARG_SRC, p->x}, {DNNL_ARG_WEIGHTS, p->w}, {DNNL_ARG_DST, p->y}});
}

static void free_product(const product *p)
{
    check_dnnl(dnnl_primitive_destroy(p->primitive));
    check_dnnl(dnnl_memory_destroy(p->x));
    check_dnnl(dnnl_memory_destroy(p->w));
    check_dnnl(dnnl_memory_destroy(p->y));
}

/* ---- the layer --------------------------------------------------------------------------------------------------- */

typedef struct layer {
    npuq_tensor x;             /* bfloat16 [tokens, inputs] */
    npuq_tensor smooth_scales; /* float32 [inputs] */
    npuq_tensor x_q;           /* int8 [tokens, inputs] */
    npuq_tensor x_scale;       /* float32 [tokens] */
    npuq_tensor w_q;           /* int8 [outputs, inputs] */
    npuq_tensor w_scale;       /* float32 [outputs] */
    npuq_tensor sums;          /* int32 [tokens, outputs] */
    npuq_tensor bias;          /* float32 [outputs] */
    npuq_tensor y;             /* bfloat16 [tokens, outputs] */
} layer;

enum { QUANTIZE, MULTIPLY, DEQUANTIZE, STAGES };

/* SmoothQuant (Xiao and others, 2023, arXiv:2211.10438), formula 4 with alpha = 0.5: each input channel of the weights
 * is multiplied by s = sqrt(max|x| / max|w|), and of the activations divided by it. */
static void smooth(const npuq_tensor *calibration, const npuq_tensor *w, const npuq_tensor *smooth_scales)
{
    const uint16_t *x_values = calibration->data;
    float *w_values = w->data;
    float *factors = smooth_scales->data;
    const int64_t inputs = w->shape[1];

    for (int64_t i = 0; i < inputs; i++) {
        float x_max = 0;
        float w_max = 0;

        for (int64_t t = 0; t < calibration->shape[0]; t++) {
            x_max = fmaxf(x_max, fabsf(bfloat16(x_values[t * inputs + i])));
        }
        for (int64_t o = 0; o < w->shape[0]; o++) {
            w_max = fmaxf(w_max, fabsf(w_values[o * inputs + i]));
        }
        const float s = x_max > 0 && w_max > 0 ? sqrtf(x_max / w_max) : 1;
        for (int64_t o = 0; o < w->shape[0]; o++) {
            w_values[o * inputs + i] *= s;
        }
        factors[i] = 1 / s;
    }
}

static void quantize_weights(const layer *l, const npuq_tensor *w)
{
    const float *values = w->data;
    float *scales = l->w_scale.data;

    for (int64_t o = 0; o < w->shape[0]; o++) {
        scales[o] = 0;
        for (int64_t i = 0; i < w->shape[1]; i++) {
            scales[o] = fmaxf(scales[o], fabsf(values[o * w->shape[1] + i]));
        }
        scales[o] /= 127;
    }
    check(npuq_quantize(w, &l->w_scale, NULL, 0, true, &l->w_q, &openmp_executor));
}

/* smooth_scales is null, or those of the layer; times are in seconds. */
static void run(const layer *l, const npuq_tensor *smooth_scales, const product *p, double times[STAGES])
{
    const double start = omp_get_wtime();

    check(npuq_dynamic_quant(&l->x, smooth_scales, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &l->x_q, &l->x_scale,
                             &openmp_executor));
    const double quantized = omp_get_wtime();
    multiply(p);
    const double multiplied = omp_get_wtime();
    check(npuq_dequant(&l->sums, &l->w_scale, &l->x_scale, &l->bias, &l->y, &openmp_executor));
    times[QUANTIZE] = quantized - start;
    times[MULTIPLY] = multiplied - quantized;
    times[DEQUANTIZE] = omp_get_wtime() - multiplied;
}

/* ---- what came out ----------------------------------------------------------------------------------------------- */

/* Without VNNI instructions oneDNN adds pairs of products in 16 bits, which saturate. */
static bool sums_are_exact(const layer *l)
{
    const int64_t inputs = l->x_q.shape[1];
    const int64_t outputs = l->w_q.shape[0];
    const int32_t *sums = l->sums.data;
    bool exact = true;

#pragma omp parallel for reduction(&& : exact)
    for (int64_t i = 0; i < l->x_q.shape[0] * outputs; i++) {
        const int8_t *x = (const int8_t *)l->x_q.data + i / outputs * inputs;
        const int8_t *w = (const int8_t *)l->w_q.data + i % outputs * inputs;
        int32_t sum = 0;

        for (int64_t k = 0; k < inputs; k++) {
            sum += x[k] * w[k];
        }
        exact = exact && sum == sums[i];
    }
    return exact;
}

/* The Frobenius norm of the errors by that of the right values, and the largest error by the largest value. */
static void print_error(const char *name, const npuq_tensor *y, const npuq_tensor *expected)
{
    const uint16_t *values = y->data;
    const float *right = expected->data;
    double errors = 0;
    double squares = 0;
    double worst = 0;
    double largest = 0;

    for (int64_t i = 0; i < y->shape[0] * y->shape[1]; i++) {
        const double error = (double)bfloat16(values[i]) - (double)right[i];

        errors += error * error;
        squares += (double)right[i] * (double)right[i];
        worst = fmax(worst, fabs(error));
        largest = fmax(largest, fabs((double)right[i]));
    }
    printf("%-30s %12.2f %% %10.2f %%\n", name, 100 * sqrt(errors / squares), 100 * worst / largest);
}

/* Prints the layer's error; expected is the float32 layer's y. Returns the product, for further runs. */
static product run_once(const char *name, const layer *l, const npuq_tensor *w, const npuq_tensor *smooth_scales,
                        const npuq_tensor *expected)
{
    double times[STAGES];

    quantize_weights(l, w);
    const product p = make_product(&l->x_q, &l->w_q, &l->sums);
    run(l, smooth_scales, &p, times);
    print_error(name, &l->y, expected);
    return p;
}

/* That of zlib and PNG. */
static uint32_t crc32(const npuq_tensor *t)
{
    const unsigned char *byte = t->data;
    uint32_t crc = 0xFFFFFFFFu;

    for (size_t i = 0; i < bytes(t); i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        }
    }
    return ~crc;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *samples)
{
    qsort(samples, REPEATS, sizeof *samples, ascending);
    return samples[REPEATS / 2];
}

static void print_times(const layer *l, const product *int8_product, const product *float32_product)
{
    static const char *const names[STAGES] = {"npuq_dynamic_quant()", "int8 product", "npuq_dequant()"};
    double samples[STAGES][REPEATS];
    double float32_samples[REPEATS];
    double whole = 0;

    for (int r = 0; r < REPEATS; r++) {
        double times[STAGES];

        run(l, &l->smooth_scales, int8_product, times);
        for (int s = 0; s < STAGES; s++) {
            samples[s][r] = times[s];
        }
    }
    for (int r = 0; r < REPEATS; r++) {
        const double start = omp_get_wtime();

        multiply(float32_product);
        float32_samples[r] = omp_get_wtime() - start;
    }
    for (int s = 0; s < STAGES; s++) {
        whole += median(samples[s]);
    }
    printf("\n%-30s %14s %12s\n", "time, median", "ms", "share");
    for (int s = 0; s < STAGES; s++) {
        printf("%-30s %14.3f %10.1f %%\n", names[s], 1e3 * median(samples[s]), 100 * median(samples[s]) / whole);
    }
    printf("%-30s %14.3f\n", "the layer", 1e3 * whole);
    printf("%-30s %14.3f\n", "float32 product, to compare", 1e3 * median(float32_samples));
}

int main(int argc, char **argv)
{
    int64_t sizes[] = {512, 4096, 4096, 2}; /* tokens, inputs, outputs, threads */

    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        const long value = strtol(argv[i], &end, 10);

        if (i > 4 || *end != '\0' || value < 1 || value > 65536) {
            fail("usage: w8a8_linear [TOKENS [INPUTS [OUTPUTS [THREADS]]]], each from 1 to 65536");
        }
        sizes[i - 1] = value;
    }
    const int64_t tokens = sizes[0];
    const int64_t inputs = sizes[1];
    const int64_t outputs = sizes[2];

    omp_set_num_threads((int)sizes[3]); /* for oneDNN, too: its threads are OpenMP's */
    check_dnnl(dnnl_engine_create(&engine, dnnl_cpu, 0));
    check_dnnl(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    printf("x %" PRId64 " x %" PRId64 " bfloat16, W %" PRId64 " x %" PRId64 "; %" PRId64 " threads; npuquant %s (%s), "
           "oneDNN %d.%d.%d\n\n",
           tokens, inputs, outputs, inputs, sizes[3], npuq_version(), npuq_backend_name(npuq_active_backend()),
           dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch);

    const layer l = {
        .x = new_matrix(NPUQ_BFLOAT16, tokens, inputs),
        .smooth_scales = new_vector(NPUQ_FLOAT32, inputs),
        .x_q = new_matrix(NPUQ_INT8, tokens, inputs),
        .x_scale = new_vector(NPUQ_FLOAT32, tokens),
        .w_q = new_matrix(NPUQ_INT8, outputs, inputs),
        .w_scale = new_vector(NPUQ_FLOAT32, outputs),
        .sums = new_matrix(NPUQ_INT32, tokens, outputs),
        .bias = new_vector(NPUQ_FLOAT32, outputs),
        .y = new_matrix(NPUQ_BFLOAT16, tokens, outputs),
    };
    const npuq_tensor calibration = new_matrix(NPUQ_BFLOAT16, tokens, inputs);
    const npuq_tensor w = new_matrix(NPUQ_FLOAT32, outputs, inputs);
    make_activations(&l.x, 0);
    make_activations(&calibration, 1u << 30);
    make_floats(&w, 2u << 30, 16384);
    make_floats(&l.bias, 3u << 30, 128);

    const npuq_tensor x_float = new_matrix(NPUQ_FLOAT32, tokens, inputs);
    const npuq_tensor y_float = new_matrix(NPUQ_FLOAT32, tokens, outputs);
    for (int64_t i = 0; i < tokens * inputs; i++) {
        ((float *)x_float.data)[i] = bfloat16(((const uint16_t *)l.x.data)[i]);
    }
    const product float_product = make_product(&x_float, &w, &y_float);
    multiply(&float_product);
    for (int64_t i = 0; i < tokens * outputs; i++) {
        ((float *)y_float.data)[i] += ((const float *)l.bias.data)[i % outputs];
    }

    printf("%-30s %14s %12s\n", "relative error", "all", "largest");
    const product plain = run_once("without smooth scales", &l, &w, NULL, &y_float);
    smooth(&calibration, &w, &l.smooth_scales);
    const product smoothed = run_once("with smooth scales", &l, &w, &l.smooth_scales, &y_float);
    const bool exact = sums_are_exact(&l);

    print_times(&l, &smoothed, &float_product);
    printf("\ncrc32: x_q %08" PRIX32 ", sums %08" PRIX32 ", y %08" PRIX32 "\n", crc32(&l.x_q), crc32(&l.sums),
           crc32(&l.y));
    if (!exact) {
        puts("The sums are not exact: oneDNN adds in 16 bits, which saturate, on CPUs without VNNI instructions.");
    }

    free_product(&plain);
    free_product(&smoothed);
    free_product(&float_product);
    check_dnnl(dnnl_stream_destroy(stream));
    check_dnnl(dnnl_engine_destroy(engine));
    while (owned_count > 0) {
        free(owned[--owned_count]);
    }
    return exact ? 0 : 1;
}
