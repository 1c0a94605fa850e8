/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the activations of a large layer, with the operators' parameters for them, as .npy files: heavy-tailed values,
 * tokens of different size, and a few outlier channels that are tens of times larger, as in large language models.
 * Every machine makes the same numbers: random numbers are integers, and each inexact floating-point step goes to its
 * own variable, so that no excess precision stays.
 *
 * usage: make_activations FOLDER [ROWS COLUMNS [f2|f4|bf16]]
 */
#include "npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 8, OUTLIER_EVERY = 200 };

/* ---- random numbers -------------------------------------------------------------------------------------------- */

/* SplitMix64: a counter whose bits are mixed. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* 16 of the bits, from 1/65536 to 1. */
static float fraction(uint64_t bits, int part)
{
    return (float)((bits >> 16 * part & 0xFFFF) + 1) / 65536.0f;
}

/* On i386, sqrtf returns more bits than a float has; only a store takes them off. */
static float square_root(float value)
{
    const volatile float root = sqrtf(value);

    return root;
}

/* About normal, divided by the fourth root of a uniform number: tails fall like the fifth power. */
static float heavy_tailed(uint64_t *state)
{
    const uint64_t bits = next_random(state);
    const float bell = fraction(bits, 0) + fraction(bits, 1) + fraction(bits, 2) - 1.5f;
    const float value = 2.0f * bell / square_root(square_root(fraction(bits, 3)));

    return value;
}

/* ---- types ----------------------------------------------------------------------------------------------------- */

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Half to even; values here are neither NaN nor infinite. */
static uint16_t to_bfloat16(float value)
{
    const uint32_t bits = float_bits(value);

    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Half to even. What is below the normal numbers becomes 0, what is above the largest becomes that. */
static uint16_t to_float16(float value)
{
    const uint32_t bits = float_bits(value);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    uint32_t half = 0;

    if (magnitude >= 0x477FE000) {
        half = 0x7BFF;
    } else if (magnitude >= 0x38800000) {
        half = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    }
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static void convert(const float *values, size_t count, const char *type, void *out)
{
    uint16_t *halves = out;

    if (strcmp(type, "f4") == 0) {
        memcpy(out, values, count * sizeof *values);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        halves[i] = strcmp(type, "f2") == 0 ? to_float16(values[i]) : to_bfloat16(values[i]);
    }
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static void check(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "make_activations: cannot write %s\n", what);
        exit(1);
    }
}

static FILE *begin_file(const char *folder, const char *name, const char *npy_type, int ndim, const int64_t *shape)
{
    char path[4096];
    char header[NPY_HEADER_SIZE];
    const int length = snprintf(path, sizeof path, "%s/%s.npy", folder, name);

    check(length > 0 && (size_t)length < sizeof path, name);
    FILE *file = fopen(path, "wb");
    check(file != NULL, path);
    const size_t size = npy_format_header(header, npy_type, ndim, shape);
    check(fwrite(header, 1, size, file) == size, path);
    return file;
}

static void write_file(const char *folder, const char *name, const char *npy_type, int64_t rows, int64_t columns,
                       const void *data, size_t item_size)
{
    const int64_t shape[] = {rows, columns};
    const int ndim = rows > 0 ? 2 : 1; /* no rows: a vector */
    const size_t count = (size_t)((rows > 0 ? rows : 1) * columns);
    FILE *file = begin_file(folder, name, npy_type, ndim, rows > 0 ? shape : shape + 1);

    check(fwrite(data, item_size, count, file) == count, name);
    check(fclose(file) == 0, name);
}

/* ---- the layer ------------------------------------------------------------------------------------------------- */

/* How large each channel is. */
static void make_channels(float *channels, int64_t columns, uint64_t *state)
{
    for (int64_t c = 0; c < columns; c++) {
        const uint64_t bits = next_random(state);
        channels[c] = 0.25f + 0.5f * fraction(bits, 0);
        if ((bits >> 32) % OUTLIER_EVERY == 0) {
            channels[c] *= 10.0f + 90.0f * fraction(bits, 1);
        }
    }
}

static void write_activations(const char *folder, const char *type, int64_t rows, int64_t columns,
                              const float *channels, uint64_t *state)
{
    const int64_t shape[] = {rows, columns};
    const size_t item_size = strcmp(type, "f4") == 0 ? 4 : 2;
    float *row = malloc((size_t)columns * sizeof *row);
    void *converted = malloc((size_t)columns * item_size);
    FILE *file = begin_file(folder, "x", strcmp(type, "bf16") == 0 ? "u2" : type, 2, shape);

    check(row && converted, "x: out of memory");
    for (int64_t r = 0; r < rows; r++) {
        const float token = 0.5f + fraction(next_random(state), 0);
        for (int64_t c = 0; c < columns; c++) {
            const float value = heavy_tailed(state) * channels[c];
            row[c] = value * token;
        }
        convert(row, (size_t)columns, type, converted);
        check(fwrite(converted, item_size, (size_t)columns, file) == (size_t)columns, "x");
    }
    check(fclose(file) == 0, "x");
    free(row);
    free(converted);
}

/* Static scales and zero points by channel, as calibration would find them. The inverses are for a kernel that
 * multiplies where the operator divides, a common mistake: 1 / scale is rounded, so that some results differ. */
static void write_static(const char *folder, int64_t columns, const float *channels, uint64_t *state)
{
    float *scales = malloc((size_t)columns * sizeof *scales);
    float *inverses = malloc((size_t)columns * sizeof *inverses);
    int32_t *zero_points = malloc((size_t)columns * sizeof *zero_points);

    check(scales && inverses && zero_points, "scales: out of memory");
    for (int64_t c = 0; c < columns; c++) {
        scales[c] = channels[c] * 4.0f / 127.0f;
        inverses[c] = 1.0f / scales[c];
        zero_points[c] = (int32_t)(next_random(state) % 21) - 10;
    }
    write_file(folder, "scales", "f4", 0, columns, scales, sizeof *scales);
    write_file(folder, "inverse_scales", "f4", 0, columns, inverses, sizeof *inverses);
    write_file(folder, "zero_points", "i4", 0, columns, zero_points, sizeof *zero_points);
    free(scales);
    free(inverses);
    free(zero_points);
}

/* Factors for each group and channel, and groups of uneven sizes. */
static void write_groups(const char *folder, int64_t rows, int64_t columns, const float *channels, uint64_t *state)
{
    float *scale = malloc((size_t)columns * GROUPS * sizeof *scale);
    int64_t ends[GROUPS];

    check(scale != NULL, "group_scale: out of memory");
    for (int64_t e = 0; e < GROUPS; e++) {
        const float group = 0.75f + 0.5f * fraction(next_random(state), 0);
        const float largest = group * 127.0f;
        for (int64_t c = 0; c < columns; c++) {
            scale[e * columns + c] = largest / (channels[c] * 4.0f);
        }
        ends[e] = rows * (e + 1) * (e + 2) / (GROUPS * (GROUPS + 1));
    }
    write_file(folder, "group_scale", "f4", GROUPS, columns, scale, sizeof *scale);
    write_file(folder, "group_index", "i8", 0, GROUPS, ends, sizeof *ends);
    free(scale);
}

/* What smoothing would take off the outliers, and the scales of a matrix multiplication's output. */
static void write_smooth(const char *folder, int64_t columns, const float *channels)
{
    float *values = malloc((size_t)columns * sizeof *values);

    check(values != NULL, "smooth_scales: out of memory");
    for (int64_t c = 0; c < columns; c++) {
        values[c] = 1.0f / square_root(channels[c]);
    }
    write_file(folder, "smooth_scales", "f4", 0, columns, values, sizeof *values);
    for (int64_t c = 0; c < columns; c++) {
        values[c] = channels[c] / 4096.0f;
    }
    write_file(folder, "scale", "f4", 0, columns, values, sizeof *values);
    free(values);
}

int main(int argc, char **argv)
{
    const int64_t rows = argc > 3 ? strtol(argv[2], NULL, 10) : 4096;
    const int64_t columns = argc > 3 ? strtol(argv[3], NULL, 10) : 11008;
    const char *type = argc > 4 ? argv[4] : "f2";
    uint64_t state = 1;

    if (argc < 2 || argc == 3 || argc > 5 || rows < 1 || columns < 1 || rows > 1000000 || columns > 1000000 ||
        (strcmp(type, "f2") != 0 && strcmp(type, "f4") != 0 && strcmp(type, "bf16") != 0)) {
        (void)fprintf(stderr, "usage: make_activations FOLDER [ROWS COLUMNS [f2|f4|bf16]]\n");
        return 2;
    }
    float *channels = malloc((size_t)columns * sizeof *channels);
    check(channels != NULL, "x: out of memory");
    make_channels(channels, columns, &state);
    write_activations(argv[1], type, rows, columns, channels, &state);
    write_static(argv[1], columns, channels, &state);
    write_groups(argv[1], rows, columns, channels, &state);
    write_smooth(argv[1], columns, channels);
    free(channels);
    return 0;
}
