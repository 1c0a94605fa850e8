/* SPDX-License-Identifier: BSD-3-Clause */
/* One chunk: loads and stores by type, arithmetic, and checks of stores. Included after a vector header, which has the
 * words of vec_required.h. */
#ifndef NPUQ_CHUNK_H
#define NPUQ_CHUNK_H

#include "../backends/row_table.h"
#include "row_range.h"

/* Inlined everywhere, so that constants reach every function. Not without optimisation, and not with sanitizers, whose
 * checks multiply: the compiler would need a minute and a gigabyte. The bits are the same. */
#if !defined __OPTIMIZE__ || defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define INLINE static inline
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer) ||          \
    __has_feature(undefined_behavior_sanitizer)
#define INLINE static inline
#endif
#endif
#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif
#ifndef __clang__ /* gcc makes instances by itself: as much code as all else */
#define NOINLINE static __attribute__((noinline, noclone))
#else
#define NOINLINE static __attribute__((noinline))
#endif

#ifdef TYPES_AT_RUN_TIME
#define FOR_TYPES NOINLINE
#define OF_STEPS  INLINE
enum { AT_RUN_TIME = 1 };
#else
#define FOR_TYPES INLINE
#define OF_STEPS  NOINLINE
enum { AT_RUN_TIME = 0 };
#endif

#ifndef EXACT_QUOTIENT
#define EXACT_QUOTIENT 0
#endif

#ifndef FAST_INVERSE
#define FAST_INVERSE 0
#endif

#ifndef LOOKS_UP_I4
#define LOOKS_UP_I4 0
#endif

_Static_assert(sizeof(vchunk) == CHUNK * sizeof(float), "chunks are copied to and from arrays");
_Static_assert(CHUNK % 8 == 0, "a chunk of int4 is whole words");

/* Tells the compiler about types that are not constant. */
INLINE void assume(bool condition)
{
    if (!condition) {
        __builtin_unreachable();
    }
}

/* Whether all stores so far were right: see vec_required.h. */
#ifndef STORE_CHECK
typedef bool store_check;

INLINE store_check start_check(void)
{
    return true;
}

INLINE store_check join_checks(store_check a, store_check b, bool floats)
{
    (void)floats;
    return a && b;
}

INLINE bool is_fast_path_ok(store_check c, bool floats)
{
    (void)floats;
    return c;
}

/* Adds to the check whether quotients made by an inverse are exact. */
INLINE store_check check_quotients(vchunk quotients, store_check done)
{
    return are_quotients_exact(quotients) & done;
}
#else /* encodes notice a NaN */
INLINE store_check check_quotients(vchunk quotients, store_check done)
{
    (void)quotients;
    return done;
}
#endif

#include "vec_required.h"

#include "small_floats.h"

/* ---- one chunk, by type ------------------------------------------------------------------------------------------ */

/* n elements are whole storage words. */
INLINE size_t count_bytes(npuq_type type, size_t n)
{
    return npuq_count_bytes(npuq_word_of(type), n);
}

/* n is the constant CHUNK, or the fewer elements of a tail. */
INLINE vchunk load_x(npuq_type x_type, const char *x, size_t n, bool tail)
{
    switch (x_type) {
    case NPUQ_TYPE_FLOAT32: return tail ? chunk_load_tail_f32(x, n) : chunk_load_f32(x);
    case NPUQ_TYPE_FLOAT16: return tail ? chunk_load_tail_f16(x, n) : chunk_load_f16(x);
    case NPUQ_TYPE_BFLOAT16: return tail ? chunk_load_tail_bf16(x, n) : chunk_load_bf16(x);
    case NPUQ_TYPE_INT8: return tail ? chunk_load_tail_i8(x, n) : chunk_load_i8(x);
    case NPUQ_TYPE_QUINT4X2: return tail ? chunk_load_tail_i4(x, n) : chunk_load_i4(x);
    default: __builtin_unreachable(); /* int32 stays integers, to which a bias is added first */
    }
}

enum { LINE = 64 };
#define FILLS_LINES(NAME, name, row, number, KIND, bits, ...)                                                          \
    &&(LINE % ((bits)*CHUNK / 8) == 0 || (bits)*CHUNK / 8 % LINE == 0)
_Static_assert(true EACH_ROW_TYPE(FILLS_LINES), "whole chunks fill whole lines");
#undef FILLS_LINES

INLINE vchunk load_parameters(const float *p, size_t n, bool tail)
{
    return tail ? chunk_load_tail_f32(p, n) : chunk_load_f32(p);
}

INLINE ichunk load_integers(const void *p, size_t n, bool tail)
{
    return tail ? chunk_load_tail_ints(p, n) : chunk_load_ints(p);
}

/* Of a vector of words of trans_quant_param. */
INLINE vf scales_of_words(const uint64_t *p)
{
    const vf a = (vf)vector_at(p, 0);
    const vf b = (vf)vector_at(p, 1);
    return (vf)((vu)(LOW_FIRST ? v_even(a, b) : v_odd(a, b)) & ~0x1FFFu);
}

INLINE vi offsets_of_words(const uint64_t *p)
{
    const vf a = (vf)vector_at(p, 0);
    const vf b = (vf)vector_at(p, 1);
    return (vi)((vu)(LOW_FIRST ? v_odd(a, b) : v_even(a, b)) << 18) >> 23;
}

typedef struct word_chunk {
    vchunk scales;
    ichunk offsets;
} word_chunk;

INLINE word_chunk load_words(const uint64_t *p, size_t n, bool tail)
{
    uint64_t last[CHUNK] = {0};
    word_chunk c;

    if (tail) {
        memcpy(last, p, n * sizeof *p);
        p = last;
    }
    for (size_t i = 0; i < 4; i++) {
        c.scales.v[i] = scales_of_words(p + i * LANES);
        c.offsets.v[i] = offsets_of_words(p + i * LANES);
    }
    return c;
}

INLINE vchunk order_like_x(vchunk parameters, bool unpack_order)
{
    return unpack_order ? chunk_to_unpack_order(parameters) : parameters;
}

INLINE vchunk load_x_in_order(npuq_type x_type, const char *x, size_t n, bool tail, bool unpack_order)
{
    return unpack_order ? chunk_load_unpacked_bf16(x) : load_x(x_type, x, n, tail);
}

/* Scales by column. Halves of x's type are loaded as x is: an unpacked load costs less than to reorder what was
 * converted before. */
typedef struct column_scales {
    const void *data;
    npuq_type type; /* x's, or binary32 */
} column_scales;

/* Kernels that ask for types once a chunk get binary32: one more test takes 5 % of their time. */
INLINE bool are_halves(column_scales s)
{
    return !AT_RUN_TIME && s.type != NPUQ_TYPE_FLOAT32;
}

INLINE vchunk load_columns(column_scales s, size_t at, size_t n, bool tail, bool unpack_order)
{
    return are_halves(s) ? load_x_in_order(s.type, (const char *)s.data + 2 * at, n, tail, unpack_order)
                         : order_like_x(load_parameters((const float *)s.data + at, n, tail), unpack_order);
}

/* TAIL stores fewer elements than a chunk and EXACT a chunk, of any values. FULL and STREAM store a chunk on the fast
 * path, and return a check. */
typedef enum stores { TAIL, EXACT, FULL, STREAM } stores;

INLINE void store_32(char *y, ichunk c, size_t n, stores how)
{
    if (how == TAIL) {
        narrow_tail_32(y, c, n);
    } else {
        narrow_32(y, c, how == STREAM);
    }
}

INLINE void store_16(char *y, hcodes c, size_t n, stores how)
{
    if (how == TAIL) {
        narrow_tail_16(y, c, n);
    } else {
        narrow_16(y, c, how == STREAM);
    }
}

INLINE void store_int8(char *y, icodes c, uint8_t flip, size_t n, bool unpack_order, stores how)
{
    if (how == TAIL) {
        narrow_tail_int8(y, c, flip, n);
    } else {
        narrow_int8(y, c, flip, unpack_order, how == STREAM);
    }
}

INLINE void store_uint8(char *y, icodes c, size_t n, bool unpack_order, stores how)
{
    if (how == TAIL) {
        narrow_tail_uint8(y, c, n);
    } else {
        narrow_uint8(y, c, unpack_order, how == STREAM);
    }
}

INLINE void store_int4(char *y, icodes c, size_t n, bool unpack_order, stores how)
{
    if (how == TAIL) {
        narrow_tail_int4(y, c, n);
    } else {
        narrow_int4(y, c, unpack_order, how == STREAM);
    }
}

/* Floats of 4 bits lie in bytes, int4 in words of 32 bits. */
INLINE void store_float4(char *y, icodes c, size_t n, bool unpack_order, stores how)
{
    char words[CHUNK / 2];

    if (LOW_FIRST) {
        store_int4(y, c, n, unpack_order, how);
        return;
    }
    store_int4(words, c, CHUNK, unpack_order, EXACT);
    for (size_t i = 0; i < n / 2; i++) {
        y[i] = words[i ^ 3];
    }
}

/* What types of y share a kernel do not. */
typedef struct y_form {
    uint8_t flip;        /* of int8: XORed with each byte */
    bool has_4_bits;     /* a small float with a mantissa of one size */
    uint8_t rounding;    /* npuq_small_rounding, of these */
    small_format format; /* of small floats with a mantissa of one size */
} y_form;

/* A float with a mantissa of one size, of 8 or 4 bits. */
INLINE store_check store_small_float(char *y, vchunk t, y_form form, size_t n, bool unpack_order, stores how)
{
    const bool exact = how == TAIL || how == EXACT;
    store_check check = start_check();
    const icodes c = encode_small_float(t, form.format, (npuq_small_rounding)form.rounding, exact, &check);

    if (form.has_4_bits) {
        store_float4(y, c, n, unpack_order, how);
    } else {
        store_int8(y, c, 0, n, unpack_order, how);
    }
    return check;
}

/* The encode and the narrow of each type. */
INLINE store_check store_y(npuq_type y_type, char *y, vchunk t, y_form form, size_t n, bool unpack_order, stores how)
{
    const bool exact = how == TAIL || how == EXACT;
    store_check check = start_check();

    switch (y_type) {
    case NPUQ_TYPE_FLOAT32: store_32(y, encode_float32(t, exact, &check), n, how); break;
    case NPUQ_TYPE_FLOAT16: store_16(y, encode_float16(t, exact, &check), n, how); break;
    case NPUQ_TYPE_BFLOAT16: store_16(y, encode_bfloat16(t, exact, &check), n, how); break;
    case NPUQ_TYPE_INT8:
        store_int8(y, encode_integers(t, -128, 127, exact, &check), form.flip, n, unpack_order, how);
        break;
    case NPUQ_TYPE_UINT8: store_uint8(y, encode_integers(t, 0, 255, exact, &check), n, unpack_order, how); break;
    case NPUQ_TYPE_INT32: store_32(y, encode_int32(t, exact, &check), n, how); break;
    case NPUQ_TYPE_QUINT4X2: store_int4(y, encode_integers(t, -8, 7, exact, &check), n, unpack_order, how); break;
    case NPUQ_TYPE_FLOAT8_E4M3FN:
    case NPUQ_TYPE_FLOAT8_E5M2:
    case NPUQ_TYPE_FLOAT4_E2M1:
    case NPUQ_TYPE_FLOAT4_E1M2: return store_small_float(y, t, form, n, unpack_order, how);
    case NPUQ_TYPE_HIFLOAT8: store_int8(y, encode_hifloat8(t, exact, &check), 0, n, unpack_order, how); break;
    case NPUQ_TYPE_INT64:
    case NPUQ_TYPE_UINT64:
    case NPUQ_TYPE_FLOAT8_E8M0: __builtin_unreachable(); /* no kernel makes them */
    }
    return check;
}

/* To int8 with requant's two clamps. */
INLINE store_check store_requant(char *y, vchunk t, ichunk offsets, size_t n, stores how)
{
    store_check check = start_check();
    const icodes c = encode_integers(t, -256, 255, how == TAIL || how == EXACT, &check);

    store_int8(y, add_requant_offsets(c, offsets), 0, n, false, how);
    return check;
}

/* Rounded to bfloat16, half to even. NaN stays as it is: a sum might make a number of it. */
INLINE vchunk chunk_as_bfloat16(vchunk t)
{
    for (int i = 0; i < 4; i++) {
        const vu bits = (vu)t.v[i];

        const vu rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;

        t.v[i] = (vf)(bits ^ ((bits ^ rounded) & (vu)(t.v[i] == t.v[i])));
    }
    return t;
}

INLINE vchunk chunk_set(float value)
{
    const vf v = v_set(value);
    return (vchunk){{v, v, v, v}};
}

/* The library's flags forbid fusing a product with a sum. The single file is compiled with its host's flags: there, the
 * asm hides the product from the compiler. */
INLINE vf multiply_unfused(vf a, vf b)
{
    vf ab = a * b;
#if defined(NPUQ_SINGLE_FILE) && (defined(__x86_64__) || defined(__i386__))
    __asm__("" : "+v"(ab));
#elif defined(NPUQ_SINGLE_FILE) && defined(__aarch64__)
    __asm__("" : "+w"(ab));
#elif defined(NPUQ_SINGLE_FILE) && defined(__powerpc64__)
    __asm__("" : "+wa"(ab));
#elif defined(NPUQ_SINGLE_FILE) && defined(__s390x__)
    __asm__("" : "+v"(ab));
#elif defined(NPUQ_SINGLE_FILE) && defined(__loongarch__)
    __asm__("" : "+f"(ab));
#elif defined(NPUQ_SINGLE_FILE) && !defined(__wasm__) /* which has nothing to fuse with */
#error "no register for a product"
#endif
    return ab;
}

INLINE vchunk chunk_mul(vchunk a, vchunk b)
{
    return (vchunk){{multiply_unfused(a.v[0], b.v[0]), multiply_unfused(a.v[1], b.v[1]),
                     multiply_unfused(a.v[2], b.v[2]), multiply_unfused(a.v[3], b.v[3])}};
}

INLINE vchunk chunk_div(vchunk a, vchunk b)
{
    return (vchunk){{a.v[0] / b.v[0], a.v[1] / b.v[1], a.v[2] / b.v[2], a.v[3] / b.v[3]}};
}

/* x / s rounded, from the rounded inverse r of s: q = x * r, then q + (x - q * s) * r, both sums fused. Where q is not
 * a subnormal and neither q nor r overflows, this is the quotient of a division; docs/kernels.md has the proof.
 * - r is normal for the scales that chunk_is_invertible() lets through. The kernels divide by other scales.
 * - Where q overflows or x is infinite, the result is NaN, which the check of an encode or are_quotients_exact() finds.
 * - Where q is below 2^-27, the result may be off, but is so small that no sum with an offset rounds to another
 *   integer.
 * With `exact`, the result is the quotient for any x. */
INLINE vchunk chunk_quotient(vchunk x, vchunk s, vchunk inverse, bool exact)
{
#if EXACT_QUOTIENT
    if (exact) {
        return chunk_quotient_exact(x, s, inverse);
    }
#else
    (void)exact; /* never true */
#endif
    return (vchunk){{v_quotient(x.v[0], s.v[0], inverse.v[0]), v_quotient(x.v[1], s.v[1], inverse.v[1]),
                     v_quotient(x.v[2], s.v[2], inverse.v[2]), v_quotient(x.v[3], s.v[3], inverse.v[3])}};
}

#if !FAST_INVERSE
INLINE vchunk chunk_div_checked(vchunk a, vchunk b, store_check *done)
{
    (void)done;
    return chunk_div(a, b);
}
#endif

INLINE vchunk chunk_add(vchunk a, vchunk b)
{
    return (vchunk){{a.v[0] + b.v[0], a.v[1] + b.v[1], a.v[2] + b.v[2], a.v[3] + b.v[3]}};
}

INLINE void prefetch_lines(const char *x, size_t bytes, bool to_l2)
{
    for (size_t line = 0; line < bytes; line += LINE) {
        if (to_l2) {
            __builtin_prefetch(x + line, 0, 2);
        } else {
            __builtin_prefetch(x + line);
        }
    }
}

#endif
