/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every operator over the same pseudo-random and adversarial data and prints one checksum of all outputs for each.
 * Built as it is, it calls the oracle (src/ref); built with VENDOR_LIBRARY, the library. All builds must print the same
 * lines, whatever the compiler and its flags: so the data is made with integers only, and no expression draws two
 * random numbers (their order would be the compiler's choice).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "npuq_ref.h"

#ifdef VENDOR_LIBRARY
#include <npuquant/npuquant.h>
#endif

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_ELEMENTS = 4096 };

/* ---- checksums (FNV-1a over values, so that byte order does not matter) ----------------------------------------- */

static uint64_t checksum;

static void checksum_begin(void)
{
    checksum = UINT64_C(0xCBF29CE484222325);
}

static void checksum_add(uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        checksum = (checksum ^ (value >> (8 * i) & 0xFFu)) * UINT64_C(0x100000001B3);
    }
}

static void checksum_end(const char *name)
{
    printf("%-26s %016" PRIX64 "\n", name, checksum);
}

static void checksum_floats(const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        checksum_add(npuq_ref_to_bits(values[i]), 4);
    }
}

/* n is the number of elements, eight to a word of QUINT4X2. */
static void checksum_output(const void *y, npuq_ref_dtype dtype, size_t n)
{
    size_t i;

    switch (dtype) {
    case NPUQ_REF_INT8:
    case NPUQ_REF_UINT8:
        for (i = 0; i < n; i++) {
            checksum_add(((const uint8_t *)y)[i], 1);
        }
        break;
    case NPUQ_REF_INT32:
    case NPUQ_REF_QUINT4X2:
        for (i = 0; i < (dtype == NPUQ_REF_INT32 ? n : n / 8); i++) {
            checksum_add(((const uint32_t *)y)[i], 4);
        }
        break;
    case NPUQ_REF_FLOAT32: checksum_floats((const float *)y, n); break;
    case NPUQ_REF_FLOAT16:
    case NPUQ_REF_BFLOAT16:
        for (i = 0; i < n; i++) {
            checksum_add(((const uint16_t *)y)[i], 2);
        }
        break;
    }
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t random32(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 32);
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)((uint64_t)random32() * n >> 32);
}

/* Bits of significand * 2^exponent; at most 24 significant bits, and a normal result. */
static uint32_t float_bits(bool negative, uint32_t significand, int exponent)
{
    const uint32_t sign = negative ? 0x80000000u : 0u;

    if (significand == 0) {
        return sign;
    }
    while (significand >= 1u << 24) {
        significand >>= 1;
        exponent++;
    }
    while (significand < 1u << 23) {
        significand <<= 1;
        exponent--;
    }
    return sign | (uint32_t)(exponent + 150) << 23 | (significand & 0x7FFFFFu);
}

/* A 64-bit integer to 24 significant bits, half to even; the rest goes into the exponent. */
static uint32_t round_to_24(uint64_t value, int *exponent)
{
    int shift = 0;

    while (value >> shift >= 1u << 24) {
        shift++;
    }
    *exponent = shift;
    if (shift == 0) {
        return (uint32_t)value;
    }
    const uint64_t half = UINT64_C(1) << (shift - 1);
    const uint64_t odd = value >> shift & 1u;
    return (uint32_t)((value + half - 1 + odd) >> shift);
}

static const uint32_t special_floats[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, /* zeros, the smallest subnormals */
    0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, /* the largest subnormals, the smallest normals */
    0x3F7FFFFF, 0x3F800000, 0x3F800001, 0xBF800000, /* around one */
    0x3EFFFFFF, 0x3F000000, 0x3F000001, 0xBF000000, /* around a half */
    0xBEFFFFFF, 0xBF000001, 0x3FC00000, 0x40200000, /* ..., 1.5, 2.5 */
    0x42FD0000, 0x42FEFFFF, 0x42FF0000, 0x43000000, /* 126.5, below 127.5, 127.5, 128 */
    0xC3000000, 0xC3008000, 0xC3008001, 0xC3018000, /* -128, -128.5, below it, -129.5 */
    0x437E8000, 0x437F0000, 0x437F7FFF, 0x437F8000, /* 254.5, 255, below 255.5, 255.5 */
    0x40E00000, 0x40F00000, 0xC1000000, 0xC1080000, /* 7, 7.5, -8, -8.5 */
    0x4B000000, 0x4B000001, 0x4AFFFFFF, 0xCB000001, /* where the fraction ends */
    0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, /* the ends of int32 */
    0x437F8000, 0xC3808000, 0xC3800000, 0x43800000, /* the ends of nine bits */
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, /* the largest finite values, infinities */
    0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFBFFFFF, /* quiet and signalling NaN */
};

static const uint16_t special_halves[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3BFF, 0x3C00, 0x3C01, 0xBC00, 0x3800,
    0xB800, 0x3801, 0x37FF, 0x3E00, 0x4100, 0x57E8, 0x57F0, 0x57F8, 0x5800, 0xD800, 0xD804, 0xD80C, 0x5BF2,
    0x5BFC, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFDFF, 0x4700, 0x4780, 0xC800, 0xC840,
};

enum profile { ORDINARY, TIES, SPECIAL, ANY_BITS, MIXED, PROFILES };

/* One value as binary32 bits, cut down to what a float16 or bfloat16 can hold when asked. */
static uint32_t random_float(enum profile profile, npuq_ref_dtype dtype)
{
    const int bits = dtype == NPUQ_REF_FLOAT32 ? 24 : dtype == NPUQ_REF_FLOAT16 ? 11 : 8;
    const bool negative = below(2) != 0;

    if (profile == MIXED) {
        profile = (enum profile)below(MIXED);
    }
    switch (profile) {
    case TIES: return float_bits(negative, below(bits == 8 ? 256 : 640), -1);
    case SPECIAL: return special_floats[below((uint32_t)COUNT(special_floats))];
    case ANY_BITS: return random32();
    default: {
        const uint32_t fraction = below(1u << (bits - 1));
        const int exponent = (int)below(14) - 6 - bits;
        return float_bits(negative, 1u << (bits - 1) | fraction, exponent);
    }
    }
}

/* binary32 bits as float16 bits: zero, or a value within float16's normal range, exactly. */
static uint32_t half_bits(uint32_t bits)
{
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    return (bits >> 16 & 0x8000u) | (magnitude == 0 ? 0 : (magnitude - (112u << 23)) >> 13);
}

static void put_float(void *array, size_t i, uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    memcpy((float *)array + i, &value, sizeof value); /* not an assignment: it may be a signalling NaN */
}

static void put_random(void *array, npuq_ref_dtype dtype, size_t i, enum profile profile)
{
    uint32_t bits;

    switch (dtype) {
    case NPUQ_REF_FLOAT32: put_float(array, i, random_float(profile, dtype)); break;
    case NPUQ_REF_BFLOAT16: ((uint16_t *)array)[i] = (uint16_t)(random_float(profile, dtype) >> 16); break;
    case NPUQ_REF_FLOAT16:
        if (profile == MIXED) {
            profile = (enum profile)below(MIXED);
        }
        bits = random_float(profile == TIES ? TIES : ORDINARY, dtype);
        if (profile == SPECIAL) {
            bits = special_halves[below((uint32_t)COUNT(special_halves))];
        } else if (profile == ANY_BITS) {
            bits = random32();
        } else {
            bits = half_bits(bits);
        }
        ((uint16_t *)array)[i] = (uint16_t)bits;
        break;
    case NPUQ_REF_INT8: ((uint8_t *)array)[i] = (uint8_t)random32(); break;
    case NPUQ_REF_UINT8: ((uint8_t *)array)[i] = (uint8_t)random32(); break;
    case NPUQ_REF_INT32: {
        static const int32_t ends[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT32_MAX - 63, 16777217, -16777219, 33554435};
        const uint32_t kind = below(4);
        int32_t value = (int32_t)below(1000) - 500;
        if (kind == 0) {
            value = ends[below((uint32_t)COUNT(ends))];
        } else if (kind == 1) {
            value = (int32_t)(random32() >> 1) - (1 << 30);
        }
        ((int32_t *)array)[i] = value;
        break;
    }
    case NPUQ_REF_QUINT4X2:
        if (i % 8 == 0) {
            ((uint32_t *)array)[i / 8] = random32();
        }
        break;
    }
}

static void fill(void *array, npuq_ref_dtype dtype, size_t n, enum profile profile)
{
    for (size_t i = 0; i < n; i++) {
        put_random(array, dtype, i, profile);
    }
}

/* A value that dtype holds exactly. */
static void put_exact(void *array, npuq_ref_dtype dtype, size_t i, uint32_t bits)
{
    switch (dtype) {
    case NPUQ_REF_FLOAT16: ((uint16_t *)array)[i] = (uint16_t)half_bits(bits); break;
    case NPUQ_REF_BFLOAT16: ((uint16_t *)array)[i] = (uint16_t)(bits >> 16); break;
    default: put_float(array, i, bits); break;
    }
}

/* x, s and z such that x*s + z with both steps rounded is a tie, 0.5, and anything else without the first rounding.
 * Compilers make a path for each type of x, and may fuse in one and not in another. */
static void fill_fused(void *x, npuq_ref_dtype x_dtype, float *s, float *z, size_t n)
{
    const int x_bits = x_dtype == NPUQ_REF_FLOAT32 ? 20 : x_dtype == NPUQ_REF_FLOAT16 ? 11 : 8;
    const int s_bits = x_dtype == NPUQ_REF_FLOAT32 ? 20 : 24;
    const int point = x_bits + s_bits - 20;

    for (size_t i = 0; i < n; i++) {
        const uint32_t a = (1u << (x_bits - 1)) | below(1u << (x_bits - 1));
        const uint32_t b = (1u << (s_bits - 1)) | below(1u << (s_bits - 1));
        int shift;
        const uint32_t product = round_to_24((uint64_t)a * b, &shift); /* x * s = product * 2^(shift - point) */
        put_exact(x, x_dtype, i, float_bits(false, a, 0));
        put_float(s, i, float_bits(false, b, -point));
        put_float(z, i, float_bits(true, product - (1u << (point - shift - 1)), shift - point));
    }
}

/* The same for x / s + z: x is k*s rounded, so that the rounded quotient is k, or next to it; z is 0.5 - k. */
static void fill_excess(float *x, float *s, float *z, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = (1u << 19) | below(1u << 19);
        const uint32_t divisor = (1u << 12) | below(1u << 12) | 1u;
        int shift;
        const uint32_t product = round_to_24((uint64_t)k * divisor, &shift);
        put_float(x, i, float_bits(false, product, shift));
        put_float(s, i, float_bits(false, divisor, 0));
        put_float(z, i, float_bits(true, 2 * k - 1, -1));
    }
}

/* A sum that is a tie when it is rounded, and next to one when it is not: s is one, x is k + 0.5, and z less than half
 * of x's last bit. */
static void fill_sum(void *x, npuq_ref_dtype x_dtype, float *s, float *z, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = below(128);
        const bool negative = below(2) != 0;
        const bool less = below(2) != 0;
        const int exponent = (int)below(24) - 54;
        put_exact(x, x_dtype, i, float_bits(negative, 2 * k + 1, -1));
        put_float(s, i, 0x3F800000);
        put_float(z, i, float_bits(less, 1, exponent));
    }
}

/* The same for dynamic quantisation to int8: a range of 255 makes the scale 1 and the offset -128; the other elements
 * are m + 0.5, or a little more, which is lost when the offset is added. */
static void fill_sum_row(float *x, size_t H)
{
    for (size_t i = 0; i < H; i++) {
        const uint32_t m = below(4);
        const uint32_t more = below(2);
        put_float(x, i, float_bits(false, (2 * m + 1) << 20 | more, -21));
    }
    put_float(x, 0, 0);
    put_float(x, H - 1, 0x437F0000);
}

/* Words of trans_quant_param, with anything in the bits that requant does not look at. */
static void fill_words(uint64_t *words, size_t n, enum profile profile)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t high = (uint64_t)random32() << 32 & UINT64_C(0xFFFFFFE000000000);
        words[i] = high | UINT64_C(1) << 46 | random_float(profile, NPUQ_REF_FLOAT32);
    }
}

/* Sums and words whose products are just above what is halfway between two results, and halfway when they are rounded
 * to binary32 first: k + 0.5 for int8, with 64 <= k < 128; as far below the last bit of a float16 of that size. */
static void fill_products(int32_t *x, uint64_t *words, npuq_ref_dtype y_dtype, size_t n)
{
    const int point = y_dtype == NPUQ_REF_INT8 ? 26 : 22;

    for (size_t i = 0; i < n; i++) {
        const uint32_t factor = 1u << 10 | below(1u << 10);
        const uint64_t halfway = (UINT64_C(1) << 33) | (uint64_t)below(1u << (32 - point)) << (point + 1);
        x[i] = (int32_t)((halfway | UINT64_C(1) << point) / factor + 1);
        words[i] = UINT64_C(1) << 46 | float_bits(below(2) != 0, factor, -27);
    }
}

/* Where each of E groups of S rows ends; some are empty. */
static void fill_group_index(int64_t *group_index, size_t E, size_t S)
{
    size_t end = 0;

    for (size_t e = 0; e < E; e++) {
        const uint32_t rows = below((uint32_t)(S - end) + 1);
        end += rows >> below(2);
        group_index[e] = (int64_t)(e + 1 == E ? S : end);
    }
}

/* ---- the operators, of the oracle or of the library -------------------------------------------------------------- */

#ifdef VENDOR_LIBRARY

static void check(npuq_status status)
{
    if (status != NPUQ_OK) {
        fprintf(stderr, "vendor_check: %s: %s\n", npuq_status_name(status), npuq_last_error());
        exit(1);
    }
}

static npuq_tensor view(const void *data, npuq_ref_dtype dtype, int ndim, size_t rows, size_t columns)
{
    const int64_t shape[2] = {(int64_t)(ndim == 2 ? rows : columns), (int64_t)columns};
    return npuq_tensor_contiguous((void *)(uintptr_t)data, (npuq_dtype)dtype, ndim, shape);
}

static size_t extent(npuq_ref_dtype y_dtype, size_t H)
{
    return y_dtype == NPUQ_REF_QUINT4X2 ? H / 8 : H;
}

static void run_quantize(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim, const void *scales,
                         npuq_ref_dtype scales_dtype, size_t scales_count, const void *zero_points,
                         npuq_ref_dtype zero_points_dtype, int axis, bool div_mode, void *y, npuq_ref_dtype y_dtype)
{
    int64_t extents[NPUQ_MAX_NDIM];

    for (int d = 0; d < ndim; d++) {
        extents[d] = (int64_t)shape[d];
    }
    const npuq_tensor tx = npuq_tensor_contiguous((void *)(uintptr_t)x, (npuq_dtype)x_dtype, ndim, extents);
    extents[ndim - 1] = (int64_t)extent(y_dtype, shape[ndim - 1]);
    const npuq_tensor ty = npuq_tensor_contiguous(y, (npuq_dtype)y_dtype, ndim, extents);
    const npuq_tensor ts = view(scales, scales_dtype, 1, 1, scales_count);
    const npuq_tensor tz = view(zero_points, zero_points_dtype, 1, 1, scales_count);
    check(npuq_quantize(&tx, &ts, zero_points ? &tz : NULL, axis, div_mode, &ty, NULL));
}

static void run_group_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *scale,
                            npuq_ref_dtype scale_dtype, size_t E, const int64_t *group_index, const void *offset,
                            void *y, npuq_ref_dtype y_dtype)
{
    const npuq_tensor tx = view(x, x_dtype, 2, S, H);
    const npuq_tensor ts = view(scale, scale_dtype, 2, E, H);
    const npuq_tensor tg = view(group_index, (npuq_ref_dtype)NPUQ_INT64, 1, 1, E);
    const npuq_tensor to = view(offset, scale_dtype, 1, 1, 1);
    const npuq_tensor ty = view(y, y_dtype, 2, S, extent(y_dtype, H));
    check(npuq_group_quant(&tx, &ts, &tg, offset ? &to : NULL, &ty, NULL));
}

static void run_trans_quant_param(const float *scale, size_t scale_count, const float *offset, size_t offset_count,
                                  bool round_to_nearest, uint64_t *y)
{
    const npuq_tensor ts = view(scale, NPUQ_REF_FLOAT32, 1, 1, scale_count);
    const npuq_tensor to = view(offset, NPUQ_REF_FLOAT32, 1, 1, offset_count);
    const size_t n = offset && offset_count > scale_count ? offset_count : scale_count;
    const npuq_tensor ty = view(y, (npuq_ref_dtype)NPUQ_UINT64, 1, 1, n);
    check(npuq_trans_quant_param(&ts, offset ? &to : NULL, round_to_nearest ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE,
                                 &ty));
}

static void run_dynamic_quant_asymmetric(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H,
                                         const void *smooth_scales, npuq_ref_dtype smooth_dtype, size_t E,
                                         const int64_t *group_index, bool per_tensor, void *y, npuq_ref_dtype y_dtype,
                                         float *scale, float *offset)
{
    const npuq_tensor tx = view(x, x_dtype, 2, S, H);
    const npuq_tensor tm = view(smooth_scales, smooth_dtype, group_index ? 2 : 1, E, H);
    const npuq_tensor tg = view(group_index, (npuq_ref_dtype)NPUQ_INT64, 1, 1, E);
    const npuq_tensor ty = view(y, y_dtype, 2, S, extent(y_dtype, H));
    const npuq_tensor ts = view(scale, NPUQ_REF_FLOAT32, 1, 1, per_tensor ? 1 : S);
    const npuq_tensor to = view(offset, NPUQ_REF_FLOAT32, 1, 1, per_tensor ? 1 : S);
    check(npuq_dynamic_quant_asymmetric(&tx, smooth_scales ? &tm : NULL, group_index ? &tg : NULL,
                                        per_tensor ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN, &ty, &ts, &to, NULL));
}

static void run_dynamic_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *smooth_scales,
                              npuq_ref_dtype smooth_dtype, size_t E, const int64_t *group_index, bool per_tensor,
                              bool inverse_form, void *y, npuq_ref_dtype y_dtype, float *scale)
{
    const npuq_tensor tx = view(x, x_dtype, 2, S, H);
    const npuq_tensor tm = view(smooth_scales, smooth_dtype, group_index ? 2 : 1, E, H);
    const npuq_tensor tg = view(group_index, (npuq_ref_dtype)NPUQ_INT64, 1, 1, E);
    const npuq_tensor ty = view(y, y_dtype, 2, S, extent(y_dtype, H));
    const npuq_tensor ts = view(scale, NPUQ_REF_FLOAT32, 1, 1, per_tensor ? 1 : S);
    check(npuq_dynamic_quant(&tx, smooth_scales ? &tm : NULL, group_index ? &tg : NULL,
                             per_tensor ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN,
                             inverse_form ? NPUQ_SCALE_INVERSE : NPUQ_SCALE_PRODUCT, &ty, &ts, NULL));
}

static void run_anti_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *scale,
                           npuq_ref_dtype scale_dtype, size_t scale_count, const void *offset, void *y,
                           npuq_ref_dtype y_dtype)
{
    const npuq_tensor tx = view(x, x_dtype, 2, S, extent(x_dtype, H));
    const npuq_tensor ts = view(scale, scale_dtype, 1, 1, scale_count);
    const npuq_tensor to = view(offset, scale_dtype, 1, 1, scale_count);
    const npuq_tensor ty = view(y, y_dtype, 2, S, H);
    check(npuq_anti_quant(&tx, &ts, offset ? &to : NULL, &ty, NULL));
}

static void run_dequant(const int32_t *x, size_t M, size_t N, const void *weight_scale,
                        npuq_ref_dtype weight_scale_dtype, size_t weight_scale_count, const float *activation_scale,
                        const void *bias, npuq_ref_dtype bias_dtype, void *y, npuq_ref_dtype y_dtype)
{
    const npuq_tensor tx = view(x, NPUQ_REF_INT32, 2, M, N);
    const npuq_tensor tw = view(weight_scale, weight_scale_dtype, 1, 1, weight_scale_count);
    const npuq_tensor ta = view(activation_scale, NPUQ_REF_FLOAT32, 1, 1, M);
    const npuq_tensor tb = view(bias, bias_dtype, 1, 1, N);
    const npuq_tensor ty = view(y, y_dtype, 2, M, N);
    check(npuq_dequant(&tx, &tw, activation_scale ? &ta : NULL, bias ? &tb : NULL, &ty, NULL));
}

static void run_requant(const int32_t *x, size_t M, size_t N, const uint64_t *words, size_t words_count,
                        const int32_t *bias, void *y, npuq_ref_dtype y_dtype)
{
    const npuq_tensor tx = view(x, NPUQ_REF_INT32, 2, M, N);
    const npuq_tensor tw = view(words, (npuq_ref_dtype)NPUQ_UINT64, 1, 1, words_count);
    const npuq_tensor tb = view(bias, NPUQ_REF_INT32, 1, 1, N);
    const npuq_tensor ty = view(y, y_dtype, 2, M, N);
    check(npuq_requant(&tx, &tw, bias ? &tb : NULL, &ty, NULL));
}

/* The library multiplies no matrices: the low half of sums of 64 bits. */
static void run_quant_matmul(const int8_t *x1, const int8_t *x2, size_t M, size_t K, size_t N, const int32_t *bias,
                             int32_t *y)
{
    for (size_t i = 0; i < M * N; i++) {
        int64_t sum = bias ? bias[i % N] : 0;
        for (size_t k = 0; k < K; k++) {
            sum += x1[i / N * K + k] * x2[k * N + i % N];
        }
        const uint32_t low = (uint32_t)(uint64_t)sum;
        memcpy(&y[i], &low, sizeof low);
    }
}

#else

#define run_quantize                 npuq_ref_quantize
#define run_group_quant              npuq_ref_group_quant
#define run_trans_quant_param        npuq_ref_trans_quant_param
#define run_dynamic_quant_asymmetric npuq_ref_dynamic_quant_asymmetric
#define run_dynamic_quant            npuq_ref_dynamic_quant
#define run_anti_quant               npuq_ref_anti_quant
#define run_dequant                  npuq_ref_dequant
#define run_requant                  npuq_ref_requant
#define run_quant_matmul             npuq_ref_quant_matmul

#endif

/* ---- every combination ------------------------------------------------------------------------------------------- */

static const npuq_ref_dtype float_types[] = {NPUQ_REF_FLOAT32, NPUQ_REF_FLOAT16, NPUQ_REF_BFLOAT16};
static const npuq_ref_dtype narrow_types[] = {NPUQ_REF_INT8, NPUQ_REF_QUINT4X2};

static void *memory(void)
{
    void *block = malloc(MAX_ELEMENTS * sizeof(uint64_t));
    if (!block) {
        fputs("vendor_check: out of memory\n", stderr);
        exit(1);
    }
    return block;
}

typedef struct quantize_case {
    int ndim;
    size_t shape[8];
    int axis;
} quantize_case;

/* With every dtype of each argument, for one case. */
static void quantize_case_run(const quantize_case *test, bool div_mode, void *x, void *scales, void *zero_points,
                              void *y)
{
    static const npuq_ref_dtype zero_point_types[] = {NPUQ_REF_FLOAT32, NPUQ_REF_FLOAT16, NPUQ_REF_BFLOAT16,
                                                      NPUQ_REF_INT8,    NPUQ_REF_UINT8,   NPUQ_REF_INT32};
    static const npuq_ref_dtype wide_types[] = {NPUQ_REF_INT8, NPUQ_REF_UINT8, NPUQ_REF_INT32};
    const npuq_ref_dtype *y_types = div_mode ? wide_types : narrow_types;
    const size_t y_count = div_mode ? COUNT(wide_types) : COUNT(narrow_types);
    const int a = div_mode ? (test->axis < 0 ? test->axis + test->ndim : test->axis)
                           : (test->axis == -2 ? test->ndim - 2 : test->ndim - 1);
    size_t n = 1;

    for (int d = 0; d < test->ndim; d++) {
        n *= test->shape[d];
    }
    for (size_t ix = 0; ix < COUNT(float_types); ix++) {
        for (size_t is = 0; is < COUNT(float_types); is++) {
            for (size_t iz = 0; iz <= COUNT(zero_point_types); iz++) { /* the last: none */
                const bool none = iz == COUNT(zero_point_types);
                const npuq_ref_dtype z_dtype = none ? NPUQ_REF_FLOAT32 : zero_point_types[iz];
                if (!none && !div_mode && z_dtype != float_types[is]) {
                    continue;
                }
                for (size_t iy = 0; iy < y_count; iy++) {
                    const size_t count = below(3) == 0 ? 1 : test->shape[a];
                    if (y_types[iy] == NPUQ_REF_QUINT4X2 && test->shape[test->ndim - 1] % 8 != 0) {
                        continue;
                    }
                    fill(x, float_types[ix], n, (enum profile)below(PROFILES));
                    fill(scales, float_types[is], count, (enum profile)below(PROFILES));
                    fill(zero_points, z_dtype, count, (enum profile)below(PROFILES));
                    run_quantize(x, float_types[ix], test->shape, test->ndim, scales, float_types[is], count,
                                 none ? NULL : zero_points, z_dtype, test->axis, div_mode, y, y_types[iy]);
                    checksum_output(y, y_types[iy], n);
                }
            }
        }
    }
}

static void quantize(bool div_mode, void *x, void *scales, void *zero_points, void *y)
{
    static const quantize_case cases[] = {
        {1, {1}, 0},
        {1, {8}, -1},
        {1, {131}, 0},
        {2, {5, 24}, 1},
        {2, {5, 24}, -2},
        {2, {17, 1}, 0},
        {2, {3, 200}, -1},
        {3, {4, 5, 8}, 0},
        {3, {4, 5, 8}, 1},
        {3, {4, 5, 8}, -2},
        {3, {2, 37, 3}, 1},
        {4, {2, 3, 2, 8}, 2},
        {4, {2, 3, 2, 16}, -1},
        {5, {2, 1, 3, 2, 8}, -2},
        {3, {1, 1, 72}, -1},
        {8, {2, 1, 2, 1, 2, 1, 2, 8}, -2},
    };
    const size_t chosen[2] = {1, MAX_ELEMENTS};

    checksum_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        quantize_case_run(&cases[i], div_mode, x, scales, zero_points, y);
    }
    for (size_t round = 0; round < 24; round++) {
        const npuq_ref_dtype narrow = round % 2 == 0 ? NPUQ_REF_INT8 : NPUQ_REF_QUINT4X2;
        const npuq_ref_dtype wide = round % 2 == 0 ? NPUQ_REF_INT8 : NPUQ_REF_INT32;
        const npuq_ref_dtype y_dtype = div_mode ? wide : narrow;
        npuq_ref_dtype x_dtype = float_types[round / 2 % 3];
        if (round >= 12) {
            fill_sum(x, x_dtype, (float *)scales, (float *)zero_points, MAX_ELEMENTS);
        } else if (!div_mode) {
            fill_fused(x, x_dtype, (float *)scales, (float *)zero_points, MAX_ELEMENTS);
        } else {
            x_dtype = NPUQ_REF_FLOAT32;
            fill_excess((float *)x, (float *)scales, (float *)zero_points, MAX_ELEMENTS);
        }
        run_quantize(x, x_dtype, chosen, 2, scales, NPUQ_REF_FLOAT32, MAX_ELEMENTS, zero_points, NPUQ_REF_FLOAT32, -1,
                     div_mode, y, y_dtype);
        checksum_output(y, y_dtype, MAX_ELEMENTS);
    }
    checksum_end(div_mode ? "quantize (divide)" : "quantize (multiply)");
}

static void group_quant(void *x, void *scale, void *offset, int64_t *group_index, void *y)
{
    static const size_t sizes[][3] = {{1, 8, 1},  {6, 16, 4}, {9, 40, 9},  {40, 8, 3},  {5, 100, 2},
                                      {3, 8, 12}, {17, 1, 5}, {12, 64, 7}, {8, 200, 3}, {4, 8, 1}}; /* S, H, E */

    checksum_begin();
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
            const size_t S = sizes[i][0];
            const size_t H = sizes[i][1];
            const size_t E = sizes[i][2];
            for (size_t c = 0; c < 36; c++) {
                const npuq_ref_dtype x_dtype = float_types[c % 3];
                const npuq_ref_dtype scale_dtype = float_types[c / 3 % 3];
                const npuq_ref_dtype y_dtype = narrow_types[c / 9 % 2];
                if (y_dtype == NPUQ_REF_QUINT4X2 && H % 8 != 0) {
                    continue;
                }
                fill(x, x_dtype, S * H, (enum profile)below(PROFILES));
                fill(scale, scale_dtype, E * H, (enum profile)below(PROFILES));
                fill(offset, scale_dtype, 1, (enum profile)below(PROFILES));
                fill_group_index(group_index, E, S);
                run_group_quant(x, x_dtype, S, H, scale, scale_dtype, E, group_index, c < 18 ? offset : NULL, y,
                                y_dtype);
                checksum_output(y, y_dtype, S * H);
            }
        }
    }
    for (size_t round = 0; round < 600; round++) { /* there is one offset for all */
        static const int64_t one_row = 1;
        const npuq_ref_dtype x_dtype = float_types[round % 3];
        const npuq_ref_dtype y_dtype = narrow_types[round / 3 % 2];
        const size_t size = x_dtype == NPUQ_REF_FLOAT32 ? 4 : 2;
        (round < 300 ? fill_fused : fill_sum)(x, x_dtype, (float *)scale, (float *)offset, 1);
        for (size_t i = 1; i < 8; i++) {
            memcpy((char *)x + i * size, x, size);
            memcpy((float *)scale + i, scale, sizeof(float));
        }
        run_group_quant(x, x_dtype, 1, 8, scale, NPUQ_REF_FLOAT32, 1, &one_row, offset, y, y_dtype);
        checksum_output(y, y_dtype, 8);
    }
    checksum_end("group_quant");
}

static void trans_quant_param(float *scale, float *offset, uint64_t *y)
{
    static const size_t counts[][2] = {{1, 1}, {1, 77}, {77, 1}, {640, 640}, {5, 5}, {9, 0}, {500, 0}};

    checksum_begin();
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < COUNT(counts); i++) {
            const size_t scales = counts[i][0];
            const size_t offsets = counts[i][1];
            const size_t n = offsets > scales ? offsets : scales;
            fill(scale, NPUQ_REF_FLOAT32, scales, (enum profile)below(PROFILES));
            fill(offset, NPUQ_REF_FLOAT32, offsets, (enum profile)below(PROFILES));
            run_trans_quant_param(scale, scales, offsets ? offset : NULL, offsets, below(2) != 0, y);
            for (size_t k = 0; k < n; k++) {
                checksum_add(y[k], 8);
            }
        }
    }
    checksum_end("trans_quant_param");
}

/* Rows of every kind: ordinary, constant (they cancel, so any excess precision shows), zero, special. */
static void fill_rows(void *x, npuq_ref_dtype dtype, size_t S, size_t H)
{
    const size_t size = dtype == NPUQ_REF_FLOAT32 ? 4 : 2;

    for (size_t r = 0; r < S; r++) {
        const uint32_t kind = below(8);
        fill((char *)x + r * H * size, dtype, H, kind < 4 ? ORDINARY : (enum profile)below(PROFILES));
        for (size_t i = 1; kind == 3 && i < H; i++) {
            memcpy((char *)x + (r * H + i) * size, (char *)x + r * H * size, size);
        }
        if (kind == 5 && dtype == NPUQ_REF_FLOAT32 && H > 1) {
            fill_sum_row((float *)x + r * H, H);
        }
        if (kind == 4) { /* +0 */
            for (size_t i = 0; i < H; i++) {
                memset((char *)x + (r * H + i) * size, 0, size);
            }
        }
    }
}

static void dynamic_quant(bool symmetric, void *x, void *smooth, int64_t *group_index, void *y, float *scale,
                          float *offset)
{
    static const size_t sizes[][2] = {{1, 8}, {5, 16}, {7, 24}, {40, 8}, {6, 1}, {11, 33}, {3, 200}, {4, 128}};

    checksum_begin();
    for (int round = 0; round < 16; round++) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
            const size_t S = sizes[i][0];
            const size_t H = sizes[i][1];
            for (size_t c = 0; c < 72; c++) {
                const npuq_ref_dtype x_dtype = float_types[c % 3];
                const npuq_ref_dtype smooth_dtype = float_types[c / 3 % 3];
                const npuq_ref_dtype y_dtype = narrow_types[c / 9 % 2];
                const size_t how = c / 18; /* none, [H], [E, H], [H] per tensor */
                const size_t E = how == 2 ? 1 + below(6) : 1;
                const bool per_tensor = how == 3;
                const size_t tokens = per_tensor ? 1 : S;
                if (y_dtype == NPUQ_REF_QUINT4X2 && H % 8 != 0) {
                    continue;
                }
                fill_rows(x, x_dtype, S, H);
                fill(smooth, smooth_dtype, E * H, below(4) == 0 ? MIXED : ORDINARY);
                fill_group_index(group_index, E, S);
                if (symmetric) {
                    run_dynamic_quant(x, x_dtype, S, H, how != 0 ? smooth : NULL, smooth_dtype, E,
                                      how == 2 ? group_index : NULL, per_tensor, round % 2 != 0, y, y_dtype, scale);
                } else {
                    run_dynamic_quant_asymmetric(x, x_dtype, S, H, how != 0 ? smooth : NULL, smooth_dtype, E,
                                                 how == 2 ? group_index : NULL, per_tensor, y, y_dtype, scale, offset);
                    checksum_floats(offset, tokens);
                }
                checksum_output(y, y_dtype, S * H);
                checksum_floats(scale, tokens);
            }
        }
    }
    checksum_end(symmetric ? "dynamic_quant" : "dynamic_quant_asymmetric");
}

static const size_t row_sizes[][2] = {{1, 1}, {1, 8}, {5, 16}, {40, 8}, {6, 1}, {11, 33}, {3, 200}, {4, 128}};

static void anti_quant(void *x, void *scale, void *offset, void *y)
{
    checksum_begin();
    for (int round = 0; round < 16; round++) {
        for (size_t i = 0; i < COUNT(row_sizes); i++) {
            const size_t S = row_sizes[i][0];
            const size_t H = row_sizes[i][1];
            for (size_t c = 0; c < 36; c++) {
                const npuq_ref_dtype x_dtype = narrow_types[c % 2];
                const npuq_ref_dtype scale_dtype = float_types[c / 2 % 3];
                const npuq_ref_dtype y_dtype = float_types[c / 6 % 3];
                const size_t count = below(3) == 0 ? 1 : H;
                if (x_dtype == NPUQ_REF_QUINT4X2 && H % 8 != 0) {
                    continue;
                }
                fill(x, x_dtype, S * H, ORDINARY);
                fill(scale, scale_dtype, count, (enum profile)below(PROFILES));
                fill(offset, scale_dtype, count, (enum profile)below(PROFILES));
                run_anti_quant(x, x_dtype, S, H, scale, scale_dtype, count, c < 18 ? offset : NULL, y, y_dtype);
                checksum_output(y, y_dtype, S * H);
            }
        }
    }
    checksum_end("anti_quant");
}

static void dequant(int32_t *x, void *weight_scale, float *activation_scale, void *bias, void *y)
{
    static const npuq_ref_dtype bias_types[] = {NPUQ_REF_FLOAT32, NPUQ_REF_FLOAT16, NPUQ_REF_BFLOAT16, NPUQ_REF_INT32};

    checksum_begin();
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < COUNT(row_sizes); i++) {
            const size_t M = row_sizes[i][0];
            const size_t N = row_sizes[i][1];
            for (size_t c = 0; c < 90; c++) {
                const npuq_ref_dtype weight_dtype = float_types[c % 3];
                const npuq_ref_dtype y_dtype = float_types[c / 3 % 3];
                const npuq_ref_dtype bias_dtype = bias_types[c / 9 % 5 % 4];
                const size_t count = below(3) == 0 ? 1 : N;
                fill(x, NPUQ_REF_INT32, M * N, ORDINARY);
                fill(weight_scale, weight_dtype, count, (enum profile)below(PROFILES));
                fill(activation_scale, NPUQ_REF_FLOAT32, M, (enum profile)below(PROFILES));
                fill(bias, bias_dtype, N, (enum profile)below(PROFILES));
                run_dequant(x, M, N, weight_scale, weight_dtype, count, c < 45 ? activation_scale : NULL,
                            c / 9 % 5 < 4 ? bias : NULL, bias_dtype, y, y_dtype);
                checksum_output(y, y_dtype, M * N);
            }
        }
        for (size_t c = 0; c < COUNT(float_types); c++) { /* a product and a sum that must not be fused */
            float *exact = (float *)y;
            fill_fused(exact, NPUQ_REF_FLOAT32, (float *)weight_scale, (float *)bias, MAX_ELEMENTS);
            for (size_t i = 0; i < MAX_ELEMENTS; i++) {
                x[i] = (int32_t)exact[i];
            }
            run_dequant(x, 1, MAX_ELEMENTS, weight_scale, NPUQ_REF_FLOAT32, MAX_ELEMENTS, NULL, bias, NPUQ_REF_FLOAT32,
                        y, float_types[c]);
            checksum_output(y, float_types[c], MAX_ELEMENTS);
        }
    }
    checksum_end("dequant");
}

static void requant(int32_t *x, uint64_t *words, int32_t *bias, void *y)
{
    static const npuq_ref_dtype y_types[] = {NPUQ_REF_INT8, NPUQ_REF_FLOAT16};

    checksum_begin();
    for (int round = 0; round < 64; round++) {
        for (size_t c = 0; c < 4; c++) {
            for (size_t i = 0; i < COUNT(row_sizes); i++) {
                const size_t M = row_sizes[i][0];
                const size_t N = row_sizes[i][1];
                const size_t count = below(3) == 0 ? 1 : N;
                fill(x, NPUQ_REF_INT32, M * N, ORDINARY);
                fill_words(words, count, (enum profile)below(PROFILES));
                fill(bias, NPUQ_REF_INT32, N, ORDINARY);
                run_requant(x, M, N, words, count, c < 2 ? bias : NULL, y, y_types[c % 2]);
                checksum_output(y, y_types[c % 2], M * N);
            }
            fill_products(x, words, y_types[c % 2], MAX_ELEMENTS);
            run_requant(x, 1, MAX_ELEMENTS, words, MAX_ELEMENTS, NULL, y, y_types[c % 2]);
            checksum_output(y, y_types[c % 2], MAX_ELEMENTS);
        }
    }
    checksum_end("requant");
}

static void quant_matmul(int8_t *x1, int8_t *x2, int32_t *bias, int32_t *y)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {3, 64, 5}, {16, 33, 16}, {1, 4096, 1}, {7, 0, 9}, {20, 8, 40}};

    checksum_begin();
    for (int round = 0; round < 16; round++) {
        for (size_t i = 0; i < COUNT(sizes); i++) { /* M, K, N */
            const size_t M = sizes[i][0];
            const size_t K = sizes[i][1];
            const size_t N = sizes[i][2];
            fill(x1, NPUQ_REF_INT8, M * K, ORDINARY);
            fill(x2, NPUQ_REF_INT8, K * N, ORDINARY);
            fill(bias, NPUQ_REF_INT32, N, ORDINARY);
            run_quant_matmul(x1, x2, M, K, N, round % 2 == 0 ? bias : NULL, y);
            checksum_output(y, NPUQ_REF_INT32, M * N);
        }
    }
    checksum_end("quant_matmul");
}

int main(void)
{
    void *x = memory();
    void *s = memory();
    void *z = memory();
    void *y = memory();
    float *scale = (float *)memory();
    float *offset = (float *)memory();
    int64_t *group_index = (int64_t *)memory();

    random_state = UINT64_C(20240229);
    quantize(true, x, s, z, y);
    quantize(false, x, s, z, y);
    group_quant(x, s, z, group_index, y);
    trans_quant_param((float *)x, (float *)s, (uint64_t *)y);
    dynamic_quant(false, x, s, group_index, y, scale, offset);
    dynamic_quant(true, x, s, group_index, y, scale, offset);
    anti_quant(x, s, z, y);
    dequant((int32_t *)x, s, scale, z, y);
    requant((int32_t *)x, (uint64_t *)s, (int32_t *)z, y);
    quant_matmul((int8_t *)x, (int8_t *)s, (int32_t *)z, (int32_t *)y);

    free(x);
    free(s);
    free(z);
    free(y);
    free(scale);
    free(offset);
    free(group_index);
    return 0;
}
