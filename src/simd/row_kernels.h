/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The row kernels, written once over the vocabulary of a vector header. An ISA's file includes its vector header, then
 * this, and defines its table with NPUQ_ROW_TABLE.
 *
 * The vocabulary:
 * - LANES, CHUNK (four vectors), vf, vchunk (its vectors are v[4]); v_set, v_add, v_mul, v_div. All arithmetic in here
 *   is one binary32 operation a step: no vector header may fuse, but within v_quotient.
 * - chunk_load_<x>, chunk_load_<parameter>; ichunk, four vectors of int32, with chunk_load_ints, ichunk_set, ichunk_add
 *   (modulo 2^32) and chunk_of_ints; hchunk, float16 or bfloat16 as patterns, with chunk_load_halves.
 * - chunk_store_<y>; chunk_stream_<y> to an address that is a multiple of 64, or of the bytes of a chunk of y where
 *   these are fewer, around the cache; stream_end(), as row.h says; chunk_store_total_<y>. Stores named requant are of
 *   int8 with requant's two clamps.
 * - Loads (but of parameters that are not binary32) and stores also as _part, for 0 < n <= CHUNK elements. They touch
 *   no other memory; lanes beyond n repeat the first.
 * - chunk_load_split_bf16 may leave the lanes in an order of the header's own; chunk_split brings parameters into that
 *   order, and stores with split true put it right. There is none for int32.
 * - vrange and hrange, extremes of float32 and of halves, each with _of, _join, _both (whether values of both signs
 *   have been seen) and _reduce. A header that defines FLOAT_RANGES has frange, too: ranges of floats of both signs,
 *   compared as floats.
 * - FAST_DIVIDE, v_quotient, chunk_is_plain and quotients_are_numbers; see "division". A header that defines
 *   TOTAL_QUOTIENT as 1 has chunk_quotient_total, which makes quotients of any x by the inverse, too.
 * - PACK, pack_store and unpack_store, for the words of trans_quant_param.
 * - For short rows: v_above(a, b), a > b ? a : b; v_ordered, the patterns as ordered_bits() maps them; v_upper and
 *   v_lower, the larger and the smaller of two patterns as signed integers; v_even and v_odd, every second lane of two
 *   vectors; and the compiler's operators + - * / on vf.
 *
 * chunk_store and chunk_stream say whether they were certain of what they stored: they are not where a lane is NaN or
 * too far out of range for the conversion to saturate. What they say is a bool, or the type `certainty` of a header
 * that defines CERTAINTY: it joins the answers of a strip of chunks by certain_if_both(), from certain() on, and
 * is_certain() asks once. Then it does not need quotients_are_numbers: its stores to integers notice a NaN. A strip
 * that is not certain is done again by chunk_store_total, which takes everything, as chunk_store_part does, if at some
 * cost: it saturates, and NaN becomes 0 in integers and the one NaN 0x7FC00000, 0x7E00 or 0x7FC0 in floating point.
 *
 * What a kernel is for (types, operation, where parameters come from) reaches the inline functions as constants. A
 * header that defines TYPES_AT_RUN_TIME gets one kernel of each kind for all types instead: it asks for them in each
 * chunk, never stores around the cache, and takes rows one at a time.
 */
#ifndef NPUQ_ROW_KERNELS_H
#define NPUQ_ROW_KERNELS_H

#include "../backend/row_table.h"
#include "row_range.h"

#include <string.h>

/* Inlined everywhere, so that constants reach it. Not without optimisation, where they do not, nor with sanitizers,
 * whose checks multiply: there the compiler would need a minute and a gigabyte. The bits are the same. */
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
enum { AT_RUN_TIME = 1 };
#else
#define FOR_TYPES INLINE
enum { AT_RUN_TIME = 0 };
#endif

/* Types and operations, by the table's names for them. */
enum { x_f32 = NPUQ_X_F32, x_f16 = NPUQ_X_F16, x_bf16 = NPUQ_X_BF16 };
enum { x_i8 = NPUQ_X_I8, x_i4 = NPUQ_X_I4, x_i32 = NPUQ_X_I32 };
enum { y_i8 = NPUQ_Y_I8, y_u8 = NPUQ_Y_U8, y_i32 = NPUQ_Y_I32, y_i4 = NPUQ_Y_I4 };
enum { y_f32 = NPUQ_Y_F32, y_f16 = NPUQ_Y_F16, y_bf16 = NPUQ_Y_BF16 };
enum { op_multiply = NPUQ_MUL, op_divide = NPUQ_DIV };

#ifndef TOTAL_QUOTIENT
#define TOTAL_QUOTIENT 0
#endif

/* What the compiler cannot know of types that are not constant. */
INLINE void assume(bool condition)
{
    if (!condition) {
        __builtin_unreachable();
    }
}

/* Whether some stores have all been right; floats, a constant, if they were to floating point. Headers for which true
 * or false is not the cheapest answer define another. */
#ifndef CERTAINTY
typedef bool certainty;

INLINE certainty certain(void)
{
    return true;
}

INLINE certainty certain_if_both(certainty a, certainty b, bool floats)
{
    (void)floats;
    return a && b;
}

INLINE bool is_certain(certainty c, bool floats)
{
    (void)floats;
    return c;
}
#endif

/* Joined with what was done before: whether quotients made by an inverse are numbers. */
#ifdef CERTAINTY /* whose stores notice a NaN */
INLINE certainty certain_if_numbers(vchunk quotients, certainty done)
{
    (void)quotients;
    return done;
}
#else
INLINE certainty certain_if_numbers(vchunk quotients, certainty done)
{
    return quotients_are_numbers(quotients) & done;
}
#endif

/* ---- one chunk, by type ------------------------------------------------------------------------------------------ */

INLINE size_t x_bytes(int x_type, size_t n)
{
    switch (x_type) {
    case x_f32:
    case x_i32: return 4 * n;
    case x_i8: return n;
    case x_i4: return n / 2;
    default: return 2 * n;
    }
}

INLINE size_t y_bytes(int y_type, size_t n)
{
    switch (y_type) {
    case y_i32:
    case y_f32: return 4 * n;
    case y_f16:
    case y_bf16: return 2 * n;
    case y_i4: return n / 2;
    default: return n;
    }
}

/* n is CHUNK, as a constant, or a part of one. */
INLINE vchunk load_x(int x_type, const char *x, size_t n, bool part)
{
    switch (x_type) {
    case x_f32: return part ? chunk_load_part_f32(x, n) : chunk_load_f32(x);
    case x_f16: return part ? chunk_load_part_f16(x, n) : chunk_load_f16(x);
    case x_i8: return part ? chunk_load_part_i8(x, n) : chunk_load_i8(x);
    case x_i4: return part ? chunk_load_part_i4(x, n) : chunk_load_i4(x);
    default: return part ? chunk_load_part_bf16(x, n) : chunk_load_bf16(x);
    }
}

INLINE vchunk load_parameters(const float *p, size_t n, bool part)
{
    return part ? chunk_load_part_f32(p, n) : chunk_load_f32(p);
}

INLINE ichunk load_integers(const void *p, size_t n, bool part)
{
    return part ? chunk_load_part_ints(p, n) : chunk_load_ints(p);
}

INLINE vchunk in_order_of_x(vchunk parameters, bool split)
{
    return split ? chunk_split(parameters) : parameters;
}

/* How n elements are stored: a PART takes any values and n, TOTAL any values of a chunk, WHOLE and STREAM a chunk of
 * which they say whether they were certain. */
typedef enum stores { PART, TOTAL, WHOLE, STREAM } stores;

INLINE void store_part(int y_type, char *y, vchunk t, size_t n)
{
    switch (y_type) {
    case y_i8: chunk_store_part_i8(y, t, n); break;
    case y_u8: chunk_store_part_u8(y, t, n); break;
    case y_i32: chunk_store_part_i32(y, t, n); break;
    case y_f32: chunk_store_part_f32(y, t, n); break;
    case y_f16: chunk_store_part_f16(y, t, n); break;
    case y_bf16: chunk_store_part_bf16(y, t, n); break;
    default: chunk_store_part_i4(y, t, n); break;
    }
}

INLINE void store_total(int y_type, char *y, vchunk t)
{
    switch (y_type) {
    case y_i8: chunk_store_total_i8(y, t); break;
    case y_u8: chunk_store_total_u8(y, t); break;
    case y_i32: chunk_store_total_i32(y, t); break;
    case y_f32: chunk_store_total_f32(y, t); break;
    case y_f16: chunk_store_total_f16(y, t); break;
    case y_bf16: chunk_store_total_bf16(y, t); break;
    default: chunk_store_total_i4(y, t); break;
    }
}

INLINE certainty store_whole(int y_type, char *y, vchunk t, bool split)
{
    switch (y_type) {
    case y_i8: return chunk_store_i8(y, t, split);
    case y_u8: return chunk_store_u8(y, t, split);
    case y_i32: return chunk_store_i32(y, t, split);
    case y_f32: return chunk_store_f32(y, t, split);
    case y_f16: return chunk_store_f16(y, t, split);
    case y_bf16: return chunk_store_bf16(y, t, split);
    default: return chunk_store_i4(y, t, split);
    }
}

INLINE certainty store_stream(int y_type, char *y, vchunk t, bool split)
{
    switch (y_type) {
    case y_i8: return chunk_stream_i8(y, t, split);
    case y_u8: return chunk_stream_u8(y, t, split);
    case y_i32: return chunk_stream_i32(y, t, split);
    case y_f32: return chunk_stream_f32(y, t, split);
    case y_f16: return chunk_stream_f16(y, t, split);
    case y_bf16: return chunk_stream_bf16(y, t, split);
    default: return chunk_stream_i4(y, t, split);
    }
}

INLINE certainty store(int y_type, char *y, vchunk t, size_t n, bool split, stores how)
{
    switch (how) {
    case PART: store_part(y_type, y, t, n); return certain();
    case TOTAL: store_total(y_type, y, t); return certain();
    case WHOLE: return store_whole(y_type, y, t, split);
    default: return store_stream(y_type, y, t, split);
    }
}

/* int8 with requant's two clamps. */
INLINE certainty store_requant(char *y, vchunk t, ichunk offsets, size_t n, stores how)
{
    switch (how) {
    case PART: chunk_store_part_requant(y, t, offsets, n); return certain();
    case TOTAL: chunk_store_total_requant(y, t, offsets); return certain();
    case WHOLE: return chunk_store_requant(y, t, offsets);
    default: return chunk_stream_requant(y, t, offsets);
    }
}

INLINE vchunk chunk_set(float value)
{
    const vf v = v_set(value);
    return (vchunk){{v, v, v, v}};
}

/* Flags keep the library's compiler from fusing a product with a sum. One file among a host's own, compiled with the
 * host's flags, keeps from it that there is a product. */
INLINE vf product(vf a, vf b)
{
    vf ab = v_mul(a, b);
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
    return (vchunk){
        {product(a.v[0], b.v[0]), product(a.v[1], b.v[1]), product(a.v[2], b.v[2]), product(a.v[3], b.v[3])}};
}

INLINE vchunk chunk_div(vchunk a, vchunk b)
{
    return (vchunk){{v_div(a.v[0], b.v[0]), v_div(a.v[1], b.v[1]), v_div(a.v[2], b.v[2]), v_div(a.v[3], b.v[3])}};
}

/* total: whatever x is. */
INLINE vchunk chunk_quotient(vchunk x, vchunk s, vchunk inverse, bool total)
{
#if TOTAL_QUOTIENT
    if (total) {
        return chunk_quotient_total(x, s, inverse);
    }
#else
    (void)total; /* never true */
#endif
    return (vchunk){{v_quotient(x.v[0], s.v[0], inverse.v[0]), v_quotient(x.v[1], s.v[1], inverse.v[1]),
                     v_quotient(x.v[2], s.v[2], inverse.v[2]), v_quotient(x.v[3], s.v[3], inverse.v[3])}};
}

INLINE vchunk chunk_add(vchunk a, vchunk b)
{
    return (vchunk){{v_add(a.v[0], b.v[0]), v_add(a.v[1], b.v[1]), v_add(a.v[2], b.v[2]), v_add(a.v[3], b.v[3])}};
}

/* ---- division ---------------------------------------------------------------------------------------------------- */

/*
 * x / s rounded, from the rounded inverse r of s: q = x * r, then q + (x - q * s) * r, both sums fused. Where q is not
 * a subnormal and neither q nor r overflows, this is the quotient that division gives; docs/design.md has the proof.
 * - r is normal for the scales that chunk_is_plain() lets through; others are divided by.
 * - Where q overflows or x is infinite, it is NaN, of which no store is certain, or quotients_are_numbers() tells.
 * - Where q is below 2^-27, it may be off, but stays so small that no sum with an offset rounds to another integer.
 */
INLINE bool scales_are_plain(const float *scales, size_t n)
{
    bool plain = true;
    size_t at = 0;

    for (; at + CHUNK <= n; at += CHUNK) {
        plain &= chunk_is_plain(chunk_load_f32(scales + at));
    }
    if (at < n) { /* in a row from memory, whole chunks begin anywhere, and may take these */
        plain &= chunk_is_plain(chunk_load_part_f32(scales + at, n - at));
    }
    return plain;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

typedef enum source {
    BY_ROW,        /* scale and offset are one for the row */
    BY_COLUMN,     /* scale for each column, offset for each or one */
    BY_ROW_SMOOTH, /* as BY_ROW, after a product with smooth for each column */
    FROM_INTEGERS  /* x is of integers: npuq_dequant_params say */
} source;

/* What a kernel does. */
typedef struct recipe {
    source from;
    int y;
    int x;
    int op;
} recipe;

INLINE bool quantises(recipe k)
{
    return k.x < NPUQ_X_FLOATS && k.y < NPUQ_Y_INTEGERS && k.from != FROM_INTEGERS;
}

INLINE bool dequantises(recipe k)
{
    return k.x >= NPUQ_X_FLOATS && (k.y >= NPUQ_Y_INTEGERS || k.y == y_i8) && k.from == FROM_INTEGERS;
}

/* One row, or a few that share their parameters. */
typedef struct rows {
    recipe k;
    const char *x;
    char *y;
    ptrdiff_t x_step;
    ptrdiff_t y_step;
    size_t n;
    const float *scales; /* one, or one for each column */
    const float *offsets;
    size_t offset_step; /* by column: 0 where the CHUNK offsets from *offsets on serve all columns */
    const float *smooth;
    const npuq_dequant_params *integers;
    size_t first; /* from integers: the row's number */
} rows;

/* Those of one chunk, or of all. */
typedef struct parameters {
    vchunk scale;
    vchunk offset;
    vchunk inverse; /* 1 / scale, where divisions are made by it */
    bool plain;     /* whether the row's scale lets divisions be made by the inverse */
    bool adds;      /* false where every offset is a zero: a sum with it is the same integer */
    npuq_dequant_params integers;
    vchunk row_scale;
} parameters;

INLINE parameters parameters_of_row(recipe k, const rows *r)
{
    if (k.from == FROM_INTEGERS) {
        const npuq_dequant_params *p = r->integers;
        return (parameters){.scale = chunk_set(*p->scale),
                            .offset = chunk_set(p->offset ? *p->offset : 0.0f),
                            .integers = *p,
                            .row_scale = chunk_set(p->row_scale ? p->row_scale[r->first] : 1.0f)};
    }
    const bool by_row = k.from != BY_COLUMN;
    const vchunk scale = chunk_set(by_row ? *r->scales : 0.0f);
    return (parameters){.scale = scale,
                        .offset = chunk_set(by_row ? *r->offsets : 0.0f),
                        .inverse = chunk_set(by_row ? 1.0f / *r->scales : 0.0f),
                        .plain = FAST_DIVIDE && chunk_is_plain(scale),
                        .adds = r->offset_step != 0 || *r->offsets != 0.0f};
}

enum { LINE = 64 };

/* Stores around the cache fill whole lines, one after the other. */
INLINE size_t columns_in_step(int y_type)
{
    return y_bytes(y_type, CHUNK) < LINE ? LINE / y_bytes(y_type, CHUNK) * CHUNK : CHUNK;
}

/* Whether rows share their parameters by column from memory too: with parts of lines in turns, that would be slower. */
INLINE bool shares_from_memory(recipe k)
{
    return !AT_RUN_TIME && columns_in_step(k.y) == CHUNK;
}

/* What n columns of a row are quantised with. */
typedef struct column_parameters {
    parameters p;
    bool split;
    bool by_inverse;
    bool adds;
} column_parameters;

INLINE certainty quantise_columns_of_row(recipe k, const rows *r, const column_parameters *c, size_t row, size_t at,
                                         size_t n, stores how, certainty done)
{
    const char *x = r->x + (ptrdiff_t)row * r->x_step + x_bytes(k.x, at);
    vchunk t = c->split ? chunk_load_split_bf16(x) : load_x(k.x, x, n, how == PART);

    if (k.from == BY_ROW_SMOOTH) { /* whose rows share nothing */
        t = chunk_mul(t, in_order_of_x(load_parameters(r->smooth + at, n, how == PART), c->split));
    }
    t = c->by_inverse       ? chunk_quotient(t, c->p.scale, c->p.inverse, how == TOTAL)
        : k.op == op_divide ? chunk_div(t, c->p.scale)
                            : chunk_mul(t, c->p.scale);
    if (c->by_inverse) {
        done = certain_if_numbers(t, done);
    }
    if (c->adds) {
        t = chunk_add(t, c->p.offset);
    }
    return certain_if_both(store(k.y, r->y + (ptrdiff_t)row * r->y_step + y_bytes(k.y, at), t, n, c->split, how), done,
                           false);
}

/* n elements of each of count rows from column `at` on. Joined with `done`: whether all stores were certain. */
INLINE certainty quantise_columns(recipe k, const rows *r, parameters p, size_t count, size_t at, size_t n, stores how,
                                  certainty done)
{
    const bool part = how == PART;
    const bool may_doubt = how == WHOLE || how == STREAM;
    /* A sum costs nothing from memory, and little beside a division; asked for less often, the library is smaller. */
    const bool adds = p.adds || how != WHOLE || (k.from == BY_COLUMN && k.op == op_divide);
    const bool split = k.x == x_bf16 && k.y != y_i32 && may_doubt;
    const bool by_inverse = FAST_DIVIDE && k.op == op_divide &&
                            (may_doubt ? k.from == BY_ROW || (how == STREAM ? shares_from_memory(k) : count > 1)
                                       : TOTAL_QUOTIENT && how == TOTAL && k.from == BY_ROW && p.plain);

    if (k.from == BY_COLUMN) {
        p.scale = in_order_of_x(load_parameters(r->scales + at, n, part), split);
        if (adds) {
            p.offset = in_order_of_x(load_parameters(r->offsets + at * r->offset_step, n, part), split);
        }
        if (by_inverse) {
            p.inverse = chunk_div(chunk_set(1.0f), p.scale);
        }
    }
    const column_parameters q = {p, split, by_inverse, adds};
    if (how == STREAM) { /* rows that share parameters are few or four, in one loop for both */
#pragma GCC unroll 1
        for (size_t i = 0; i < count; i++) {
            done = quantise_columns_of_row(k, r, &q, i, at, n, how, done);
        }
    } else {
#pragma GCC unroll 4
        for (size_t i = 0; i < count; i++) {
            done = quantise_columns_of_row(k, r, &q, i, at, n, how, done);
        }
    }
    return done;
}

/* The same from integers, of one row. What is left out is asked for in every chunk: a kernel for each combination would
 * not be faster. */
INLINE certainty dequantise_columns(recipe k, const rows *r, const parameters *p, size_t at, size_t n, stores how)
{
    const npuq_dequant_params *d = &p->integers;
    const char *x = r->x + x_bytes(k.x, at);
    char *y = r->y + y_bytes(k.y, at);
    const bool part = how == PART;
    vchunk t;

    if (k.x == x_i32) {
        ichunk sums = load_integers(x, n, part);
        if (d->x_bias) {
            sums = ichunk_add(sums, load_integers(d->x_bias + at, n, part));
        }
        t = chunk_of_ints(sums);
    } else {
        t = load_x(k.x, x, n, part);
        if (d->offset) {
            t = chunk_add(t, d->step ? load_parameters(d->offset + at, n, part) : p->offset);
        }
    }
    t = chunk_mul(t, d->step ? load_parameters(d->scale + at, n, part) : p->scale);
    if (k.y == y_i8 && d->y_offset) {
        const ichunk offsets = d->step ? load_integers(d->y_offset + at, n, part) : ichunk_set(*d->y_offset);
        return store_requant(y, t, offsets, n, how);
    }
    if (k.x == x_i32 && d->row_scale) {
        t = chunk_mul(t, p->row_scale);
    }
    if (k.x == x_i32 && d->bias) {
        t = chunk_add(t, load_parameters(d->bias + at, n, part));
    }
    return store(k.y, y, t, n, false, how);
}

/* Joined with what has been done before. */
INLINE certainty columns(recipe k, const rows *r, const parameters *p, size_t count, size_t at, size_t n, stores how,
                         certainty done)
{
    return k.from == FROM_INTEGERS
               ? certain_if_both(dequantise_columns(k, r, p, at, n, how), done, k.y >= NPUQ_Y_INTEGERS)
               : quantise_columns(k, r, *p, count, at, n, how, done);
}

/* n columns of each of count rows, whatever their values: whole chunks, and a part of one. */
INLINE void columns_total(recipe k, const rows *all, size_t count, size_t first, size_t n)
{
    rows r = *all;

    for (size_t i = 0; i < count; i++) {
        const parameters p = parameters_of_row(k, &r);
        size_t at = first;

        for (; at + CHUNK <= first + n; at += CHUNK) {
            (void)columns(k, &r, &p, 1, at, CHUNK, TOTAL, certain());
        }
        if (at < first + n) {
            (void)columns(k, &r, &p, 1, at, first + n - at, PART, certain());
        }
        r.x += r.x_step;
        r.y += r.y_step;
    }
}

/* It is one function for all that quantise and one for all from integers, to which types and operation are not
 * constant: one in every kernel would be as much code as all else. */
NOINLINE void quantise_total(const rows *r, size_t count, size_t at, size_t n)
{
    const recipe k = r->k;

    assume(quantises(k));
    if (k.from == BY_COLUMN) { /* one loop for both would copy registers in every chunk, to load parameters or not */
        columns_total(k, r, count, at, n);
        return;
    }
    columns_total(k, r, count, at, n);
}

NOINLINE void dequantise_total(const rows *r, size_t at, size_t n)
{
    const recipe k = {FROM_INTEGERS, r->k.y, r->k.x, op_multiply};

    assume(dequantises(k));
    columns_total(k, r, 1, at, n);
}

INLINE void total(recipe k, const rows *r, size_t count, size_t at, size_t n)
{
    if (k.from == FROM_INTEGERS) {
        dequantise_total(r, at, n);
    } else {
        quantise_total(r, count, at, n);
    }
}

INLINE void prefetch(const char *x, size_t bytes)
{
    for (size_t line = 0; line < bytes; line += 64) {
        __builtin_prefetch(x + line);
    }
}

/* The order in which columns of a row are read from memory: a step in each of several pieces in turn, as more is on its
 * way then than from one place. What is read within a page the processor foresees, so no piece is shorter. */
typedef struct turns {
    size_t begin;
    size_t end;
    size_t step;
    size_t piece; /* from a step to the next, but back from the last piece to the first */
    size_t back;
    ptrdiff_t ahead; /* bytes from what is read to what is prefetched */
} turns;

enum { PAGE = 4096, MOST_PIECES = 4 };

/* Does the columns before the first line of y. There are no turns if the rows are too short. Rows that share their
 * parameters are as many places to read from; one row is read in pieces. In a long row, these places share `ahead`. In
 * a short one a piece would soon prefetch from the next piece, which is read already: there it prefetches what follows
 * the rows, or what `ahead` leads to beyond that. */
NOINLINE turns take_turns(const rows *r, size_t count, size_t ahead)
{
    const recipe k = r->k;
    const size_t head = (LINE - (uintptr_t)r->y % LINE) % LINE * CHUNK / y_bytes(k.y, CHUNK);

    if (r->n <= head + 4 * CHUNK || (k.x == x_i4 && head % 8 != 0)) { /* columns of int4 begin with a word */
        return (turns){0};
    }
    if (head > 0) {
        total(k, r, count, 0, head);
    }
    const size_t step = columns_in_step(k.y);
    const size_t size = x_bytes(k.x, r->n - head);
    const size_t pages = size / PAGE;
    const size_t pieces = count > 1 || pages == 0 ? 1 : pages > MOST_PIECES ? MOST_PIECES : pages;
    const size_t piece = (r->n - head) / pieces / step * step;
    const bool is_long = size > 4 * ahead && (count > 1 || pages > MOST_PIECES);
    const ptrdiff_t distance = is_long     ? (ptrdiff_t)(ahead / (count > 1 ? count : pieces))
                               : count > 1 ? (ptrdiff_t)count * r->x_step
                                           : (ptrdiff_t)(size > ahead ? size : ahead);

    return (turns){.begin = head,
                   .end = head + pieces * piece,
                   .step = step,
                   .piece = pieces > 1 ? piece : step,
                   .back = pieces > 1 ? pieces * piece - step : 0,
                   .ahead = distance};
}

/* All columns of a row in turns, around the cache, but for the last ones; returns where these begin. */
INLINE size_t stream_rows(recipe k, const rows *r, const rows *own, const parameters *p, size_t count, size_t ahead)
{
    const turns t = take_turns(r, count, ahead);
    const size_t step = columns_in_step(k.y) > CHUNK ? t.step : CHUNK; /* constant, it would be unrolled */
    size_t at = t.begin;

    for (size_t left = t.end - t.begin; left > 0; left -= step) {
        certainty done = certain();

#pragma GCC unroll 1
        for (size_t i = 0; i < count; i++) {
            prefetch(own->x + (ptrdiff_t)i * own->x_step + x_bytes(k.x, at) + t.ahead,
                     x_bytes(k.x, columns_in_step(k.y)));
        }
        for (size_t c = at; c < at + step; c += CHUNK) {
            done = columns(k, own, p, count, c, CHUNK, STREAM, done);
        }
        if (!is_certain(done, k.y >= NPUQ_Y_INTEGERS)) {
            total(k, r, count, at, step);
        }
        at += t.piece;
        at -= at >= t.end ? t.back : 0;
    }
    return t.end;
}

/* Columns that are stored before it is asked whether they are right: a few chunks. */
enum { STRIP = 256 };

/* A header says of which products two chunks at a time are faster. That is where x lies in the second-level cache; it
 * helps as well to ask so many bytes early for float32, the most lines to a chunk, and for y, if chunks fill its lines.
 */
#ifndef IN_PAIRS
#define IN_PAIRS(FROM) false
#endif
enum { NEAR = 1024, NEAR_Y = 256 };

/* Whole chunks from column `at` on, up to the first strip that is not certain; returns where it begins, or where the
 * last part of a chunk does. Nothing is called in here: around a call, compilers keep in memory what is the same for
 * all chunks. */
INLINE size_t run_chunks(recipe k, const rows *r, const parameters *p, size_t count, size_t at)
{
    const size_t end = r->n - (r->n - at) % CHUNK;
    const bool pairs = IN_PAIRS(k.from) && k.op == op_multiply;

    while (at < end) {
        const size_t next = end - at < STRIP ? end : at + STRIP;
        certainty done = certain();
        size_t c = at;

        for (; pairs && c + 2 * CHUNK <= next; c += 2 * CHUNK) {
            if (k.x == x_f32) {
                prefetch(r->x + x_bytes(k.x, c) + NEAR, x_bytes(k.x, 2 * CHUNK));
                if (y_bytes(k.y, CHUNK) >= LINE) {
                    prefetch(r->y + y_bytes(k.y, c) + NEAR_Y, y_bytes(k.y, 2 * CHUNK));
                }
            }
            done = columns(k, r, p, count, c, CHUNK, WHOLE, done);
            done = columns(k, r, p, count, c + CHUNK, CHUNK, WHOLE, done);
        }
        for (; c < next; c += CHUNK) {
            done = columns(k, r, p, count, c, CHUNK, WHOLE, done);
        }
        if (!is_certain(done, k.y >= NPUQ_Y_INTEGERS)) {
            break;
        }
        at = next;
    }
    return at;
}

/* Where nothing is certain, it is asked ever less often, from one row to the next, too. */
typedef struct doubt {
    size_t strip;
    size_t left; /* columns to be done without asking */
} doubt;

INLINE doubt no_doubt(void)
{
    return (doubt){STRIP, 0};
}

/* Columns of rows from `at` on, as long as it is not asked; returns where they end. */
NOINLINE size_t run_unasked(const rows *r, size_t count, size_t at, doubt *d)
{
    const size_t n = r->n - at < d->left ? r->n - at : d->left;

    total(r->k, r, count, at, n);
    d->left -= n;
    return at + n;
}

/* The same after chunks from column `from` on, of which those from `at` on are not certain, or none are left. */
NOINLINE size_t run_uncertain(const rows *r, size_t count, size_t from, size_t at, doubt *d)
{
    const size_t rest = r->n - at;

    d->strip = at == from && rest >= CHUNK ? 2 * d->strip : STRIP;
    d->left = rest < CHUNK ? rest : d->strip;
    return run_unasked(r, count, at, d);
}

/* All columns of count rows; from memory, of one. */
INLINE void run_rows(recipe k, const rows *r, size_t count, size_t ahead, doubt *d)
{
    const rows own = *r; /* a copy that no store can change: total() has seen the address of the other */
    const parameters p = parameters_of_row(k, &own);
    parameters without_sum = p;
    const size_t n = own.n;
    const bool divides = FAST_DIVIDE && k.op == op_divide && k.from == BY_ROW && !p.plain;
    size_t at = !AT_RUN_TIME && ahead && !divides ? stream_rows(k, r, &own, &p, 1, ahead) : 0;

    without_sum.adds = false;
    if (divides) {
        d->left = n;
    }
    if (d->left > 0) {
        at = run_unasked(r, count, at, d);
    }
    while (at < n) {
        const size_t from = at;

        if (!AT_RUN_TIME && (k.from == BY_ROW || k.from == BY_ROW_SMOOTH) && !p.adds) {
            at = run_chunks(k, &own, &without_sum, count, at);
        } else {
            at = run_chunks(k, &own, &p, count, at);
        }
        if (at == n) {
            d->strip = STRIP;
        } else {
            at = run_uncertain(r, count, from, at, d);
        }
    }
}

INLINE rows rows_of(recipe k, const npuq_block *b, size_t first)
{
    return (rows){
        .k = k,
        .x = (const char *)b->x + (ptrdiff_t)first * b->x_step,
        .y = (char *)b->y + (ptrdiff_t)first * b->y_step,
        .x_step = b->x_step,
        .y_step = b->y_step,
        .n = b->n,
    };
}

FOR_TYPES void quantise_by_row(recipe k, const npuq_block *b, const float *smooth, const float *scale,
                               const float *offset, size_t step)
{
    doubt d = no_doubt();

    assume(quantises(k) && k.from != BY_COLUMN);
    for (size_t i = 0; i < b->rows; i++) {
        rows r = rows_of(k, b, i);

        r.scales = scale + i * step;
        r.offsets = offset + i * step;
        r.smooth = smooth;
        run_rows(k, &r, 1, b->ahead, &d);
    }
}

/* The same from memory, of rows that share their parameters by column. */
INLINE void stream_by_column(recipe k, const rows *r, size_t count, size_t ahead)
{
    const rows own = *r;
    const parameters p = parameters_of_row(k, &own);
    const size_t end = stream_rows(k, r, &own, &p, count, ahead);

    if (end < own.n) {
        total(k, r, count, end, own.n - end);
    }
}

/* Parameters are loaded, and inverted to divide by, once for SHARING rows. */
FOR_TYPES void quantise_by_column(recipe k, const npuq_block *b, const float *scale, const float *offset,
                                  size_t offset_step)
{
    assume(quantises(k) && k.from == BY_COLUMN);
    enum { SHARING = AT_RUN_TIME ? 1 : 4 };
    const bool from_memory = b->ahead > 0;
    /* Scales are only looked at where an inverse is made of them: a single row in the cache divides. */
    const bool inverts = b->rows >= SHARING || (from_memory && shares_from_memory(k));
    const bool plain = inverts && (!FAST_DIVIDE || k.op != op_divide || scales_are_plain(scale, b->n));
    const bool stream = shares_from_memory(k) && from_memory && plain && b->n >= 8 * CHUNK; /* enough for turns */
    /* Streamed together if all rows begin within a line as the first one does. */
    const bool share = plain && (stream ? b->y_step % LINE == 0 : shares_from_memory(k) || !from_memory);
    float one_offset[CHUNK];
    doubt d = no_doubt();
    size_t i = 0;

    if (offset_step == 0) {
        const vchunk one = chunk_set(*offset);
        memcpy(one_offset, &one, sizeof one);
        offset = one_offset;
    }
    while (i < b->rows) {
        const size_t count = share && i + SHARING <= b->rows ? SHARING : 1;
        rows r = rows_of(k, b, i);

        r.scales = scale;
        r.offsets = offset;
        r.offset_step = offset_step;
        if (stream) {
            stream_by_column(k, &r, count, b->ahead);
        } else if (!AT_RUN_TIME && count == SHARING) {
            run_rows(k, &r, SHARING, 0, &d);
        } else {
            run_rows(k, &r, 1, shares_from_memory(k) ? 0 : b->ahead, &d);
        }
        i += count;
    }
}

#define AFFINE(NAME, Y, X, OP)                                                                                         \
    static void uniform_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t step)              \
    {                                                                                                                  \
        quantise_by_row((recipe){BY_ROW, y_##Y, x_##X, op_##OP}, b, NULL, scale, offset, step);                        \
    }                                                                                                                  \
    static void vector_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t offset_step)        \
    {                                                                                                                  \
        quantise_by_column((recipe){BY_COLUMN, y_##Y, x_##X, op_##OP}, b, scale, offset, offset_step);                 \
    }

#define SMOOTH(NAME, Y, X)                                                                                             \
    static void smooth_##NAME(const npuq_block *b, const float *smooth, const float *back, const float *offset,        \
                              size_t step)                                                                             \
    {                                                                                                                  \
        quantise_by_row((recipe){BY_ROW_SMOOTH, y_##Y, x_##X, op_multiply}, b, smooth, back, offset, step);            \
    }

FOR_TYPES void dequantise(recipe k, const npuq_block *b, const npuq_dequant_params *p)
{
    doubt d = no_doubt();

    assume(dequantises(k));
    for (size_t i = 0; i < b->rows && b->n > 0; i++) {
        rows r = rows_of(k, b, i);

        r.integers = p;
        r.first = i;
        run_rows(k, &r, 1, b->ahead, &d);
    }
}

#define DEQUANT(NAME, Y, X)                                                                                            \
    static void dequant_##NAME(const npuq_block *b, const npuq_dequant_params *p)                                      \
    {                                                                                                                  \
        dequantise((recipe){FROM_INTEGERS, y_##Y, x_##X, op_multiply}, b, p);                                          \
    }

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

/* Once values of both signs are in a range, two of its four extremes say all; so `both`, a constant, halves the work.
 */

INLINE vchunk chunk_to_compare(int x_type, const char *x, const float *smooth, size_t at, size_t n, bool part)
{
    const vchunk v = load_x(x_type, x + x_bytes(x_type, at), n, part);

    return smooth ? chunk_mul(v, load_parameters(smooth + at, n, part)) : v;
}

INLINE vrange chunk_range(int x_type, const char *x, const float *smooth, size_t at, size_t n, bool part, bool both)
{
    const vchunk v = chunk_to_compare(x_type, x, smooth, at, n, part);

    return vrange_join(vrange_join(vrange_of(v.v[0]), vrange_of(v.v[1]), both),
                       vrange_join(vrange_of(v.v[2]), vrange_of(v.v[3]), both), both);
}

/* Of values without a sign, the largest and the smallest pattern as signed integers say all. If one has a sign, the
 * smallest shows it. */
INLINE vrange range_without_sign(int x_type, const char *x, const float *smooth, size_t n)
{
    vf upper = chunk_to_compare(x_type, x, smooth, 0, CHUNK, false).v[0];
    vf lower = upper;

    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        const vchunk v = chunk_to_compare(x_type, x, smooth, at, CHUNK, false);

        upper = v_upper(upper, v_upper(v_upper(v.v[0], v.v[1]), v_upper(v.v[2], v.v[3])));
        lower = v_lower(lower, v_lower(v_lower(v.v[0], v.v[1]), v_lower(v.v[2], v.v[3])));
    }
    return vrange_join(vrange_of(upper), vrange_of(lower), false);
}

INLINE row_range range_on(int x_type, const char *x, const float *smooth, size_t n, size_t ahead, vrange range,
                          bool both)
{
#ifdef FLOAT_RANGES /* a header has them where they are faster */
    if (both && !smooth) {
        frange floats = frange_of_both();
        for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
            if (ahead) {
                prefetch(x + x_bytes(x_type, at) + ahead, x_bytes(x_type, CHUNK));
            }
            floats = frange_with(floats, load_x(x_type, x + x_bytes(x_type, at), CHUNK, false));
        }
        if (frange_is_certain(floats)) {
            return vrange_reduce(vrange_join(range, vrange_of_floats(floats), both), both);
        }
    }
#endif
    for (size_t at = 0; at + CHUNK <= n; at += CHUNK) {
        if (ahead) {
            prefetch(x + x_bytes(x_type, at) + ahead, x_bytes(x_type, CHUNK));
        }
        range = vrange_join(range, chunk_range(x_type, x, smooth, at, CHUNK, false, both), both);
    }
    return vrange_reduce(range, both);
}

INLINE row_range range_of_row(int x_type, const char *x, const float *smooth, size_t n, size_t ahead)
{
    const size_t tail = n % CHUNK;
    vrange range = tail > 0 ? chunk_range(x_type, x, smooth, n - tail, tail, true, false)
                            : chunk_range(x_type, x, smooth, 0, CHUNK, false, false);

    /* A row from memory is not read twice; of a few chunks, it does not pay. */
    if (!ahead && n >= 8 * CHUNK && vrange_reduce(range, false).lo >= 0) {
        range = vrange_join(range, range_without_sign(x_type, x, smooth, n), false);
        const row_range all = vrange_reduce(range, false);

        if (all.lo >= 0) {
            return all;
        }
    }
    return vrange_both(range) ? range_on(x_type, x, smooth, n, ahead, range, true)
                              : range_on(x_type, x, smooth, n, ahead, range, false);
}

/* Halves order as their patterns do before they are widened, and twice as many fit a vector. */

INLINE hrange chunk_hrange(hchunk v, bool both)
{
    return hrange_join(hrange_of(v.v[0]), hrange_of(v.v[1]), both);
}

INLINE row_range hrange_on(int x_type, const char *x, size_t n, size_t ahead, hrange range, bool both)
{
    uint16_t extremes[CHUNK] = {0};
    int32_t bits[LANES];
    size_t at = 0;

    for (; at + 2 * CHUNK <= n; at += 2 * CHUNK) { /* two: each maximum waits for the one before */
        const char *p = x + x_bytes(x_type, at);
        const hrange a = chunk_hrange(chunk_load_halves(p), both);
        const hrange b = chunk_hrange(chunk_load_halves(p + x_bytes(x_type, CHUNK)), both);

        if (ahead) {
            prefetch(p + ahead, x_bytes(x_type, 2 * CHUNK));
        }
        range = hrange_join(range, hrange_join(a, b, both), both);
    }
    if (at + CHUNK <= n) {
        range = hrange_join(range, chunk_hrange(chunk_load_halves(x + x_bytes(x_type, at)), both), both);
    }
    hrange_reduce(range, extremes);
    const vchunk wide = load_x(x_type, (const char *)extremes, CHUNK, false);
    memcpy(bits, &wide.v[0], sizeof bits);
    return both ? row_range_of_both(bits[0], bits[1]) : row_range_of(bits[0], bits[1], bits[2], bits[3]);
}

INLINE row_range hrange_of_row(int x_type, const char *x, size_t n, size_t ahead)
{
    const size_t tail = n % CHUNK;
    const hchunk first = tail > 0 ? chunk_load_part_halves(x + x_bytes(x_type, n - tail), tail) : chunk_load_halves(x);
    const hrange range = chunk_hrange(first, false);

    return hrange_both(range) ? hrange_on(x_type, x, n, ahead, range, true)
                              : hrange_on(x_type, x, n, ahead, range, false);
}

FOR_TYPES void range_rows(int x_type, const npuq_block *b, const float *smooth, float *hi, float *lo)
{
    assume(x_type < NPUQ_X_FLOATS);
    for (size_t r = 0; r < b->rows && b->n > 0; r++) {
        const char *x = (const char *)b->x + (ptrdiff_t)r * b->x_step;
        const row_range range = x_type == x_f32 || smooth ? range_of_row(x_type, x, smooth, b->n, b->ahead)
                                                          : hrange_of_row(x_type, x, b->n, b->ahead);
        row_range_widen(range, &hi[r], &lo[r]);
    }
}

#define RANGE(X)                                                                                                       \
    static void range_##X(const npuq_block *b, const float *smooth, float *hi, float *lo)                              \
    {                                                                                                                  \
        if (smooth) {                                                                                                  \
            range_rows(x_##X, b, smooth, hi, lo);                                                                      \
        } else {                                                                                                       \
            range_rows(x_##X, b, NULL, hi, lo);                                                                        \
        }                                                                                                              \
    }

/* ---- short rows of dynamic quantisation -------------------------------------------------------------------------- */

INLINE vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE bool is_nan(float v)
{
    return v != v;
}

/* The extremes of ordered patterns: a vector of them, or of neighbours, takes the place of a reduction for each row. */
typedef struct extremes {
    float upper[NPUQ_SHORT_ROWS * LANES + 2 * LANES];
    float lower[NPUQ_SHORT_ROWS * LANES + 2 * LANES];
} extremes;

/* Each row's columns down to `width`, a power of two up to n: parts of the row overlap at its end. What is read and
 * written beyond a part means nothing, and the next row's goes over it. */
INLINE void fold_columns(extremes *e, const float *values, size_t n, size_t count, size_t width)
{
    for (size_t r = 0; r < count; r++) {
        const float *row = values + r * n;
        vf upper = v_ordered(v_load(row));
        vf lower = upper;

        for (size_t at = width; at < n; at += width) {
            const vf v = v_ordered(v_load(row + (at + width <= n ? at : n - width)));
            upper = v_upper(upper, v);
            lower = v_lower(lower, v);
        }
        memcpy(e->upper + r * width, &upper, sizeof upper);
        memcpy(e->lower + r * width, &lower, sizeof lower);
    }
}

INLINE void fold_neighbours(extremes *e, size_t count)
{
    for (size_t i = 0; i < count; i += LANES) {
        const vf a = v_load(e->upper + 2 * i);
        const vf b = v_load(e->upper + 2 * i + LANES);
        const vf c = v_load(e->lower + 2 * i);
        const vf d = v_load(e->lower + 2 * i + LANES);
        const vf upper = v_upper(v_even(a, b), v_odd(a, b));
        const vf lower = v_lower(v_even(c, d), v_odd(c, d));

        memcpy(e->upper + i, &upper, sizeof upper);
        memcpy(e->lower + i, &lower, sizeof lower);
    }
}

static void short_rows(float *values, const float *smooth, size_t n, size_t count, float *hi, float *lo)
{
    size_t width = LANES;
    extremes e;

    for (size_t at = 0; at < count * n && smooth; at += LANES) {
        const vf v = product(v_load(values + at), v_load(smooth + at));
        memcpy(values + at, &v, sizeof v);
    }
    while (width > n) {
        width /= 2;
    }
    const bool one_run = width == n; /* nothing overlaps: taken as rows of whole vectors */
    fold_columns(&e, values, one_run ? LANES : n, one_run ? (count * n + LANES - 1) / LANES : count,
                 one_run ? LANES : width);
    for (; width > 1; width /= 2) {
        fold_neighbours(&e, count * width / 2);
    }
    for (size_t r = 0; r < count; r += LANES) {
        const vf upper = v_ordered(v_load(e.upper + r));
        const vf lower = v_ordered(v_load(e.lower + r));

        memcpy(hi + r, &upper, sizeof upper);
        memcpy(lo + r, &lower, sizeof lower);
    }
    for (size_t r = 0; r < count; r++) {
        if (is_nan(hi[r]) || is_nan(lo[r])) {
            hi[r] = lo[r] = float_of_ordered(0x7FC00000);
        }
    }
}

INLINE float float_above(float a, float b)
{
    return a > b ? a : b;
}

INLINE float float_upper(float a, float b)
{
    int32_t a_bits;
    int32_t b_bits;

    memcpy(&a_bits, &a, sizeof a_bits);
    memcpy(&b_bits, &b, sizeof b_bits);
    return a_bits > b_bits ? a : b;
}

/* As npuq_ref_range_parameters() and npuq_ref_symmetric_parameters() have it, for a float or a vector of them: the one
 * row of a small call would wait longer for vectors. Of hi and -lo, the larger pattern is the largest magnitude, or
 * NaN. to[0] is the scale, to[1] the offset, to[2] what x is multiplied by. Every step goes to an object, because C
 * lets an expression be wider than float, as it is on s390x.
 */
#define PARAMETERS(NAME, TYPE, SET, ABOVE, UPPER)                                                                      \
    INLINE void NAME(npuq_dynamic_form form, bool int4, TYPE hi, TYPE lo, TYPE to[3])                                  \
    {                                                                                                                  \
        const TYPE dmax = SET(int4 ? 7.0f : 127.0f);                                                                   \
                                                                                                                       \
        if (form == NPUQ_ASYMMETRIC) {                                                                                 \
            const TYPE distance = hi - lo;                                                                             \
            const TYPE step = distance / SET(int4 ? 15.0f : 255.0f);                                                   \
            to[0] = ABOVE(step, SET(0x1.197998p-40f));                                                                 \
            const TYPE steps = hi / to[0];                                                                             \
            to[1] = dmax - steps;                                                                                      \
            to[2] = SET(1.0f) / to[0];                                                                                 \
        } else {                                                                                                       \
            const TYPE largest = UPPER(hi, -lo);                                                                       \
            to[2] = dmax / largest;                                                                                    \
            to[1] = SET(0.0f);                                                                                         \
            to[0] = form == NPUQ_SYMMETRIC_INVERSE ? SET(1.0f) / to[2]                                                 \
                                                   : largest * SET(int4 ? 0x1.24924ap-3f : 0x1.020408p-7f);            \
        }                                                                                                              \
    }

PARAMETERS(parameters_of_float, float, , float_above, float_upper)
PARAMETERS(parameters_of_vector, vf, v_set, v_above, v_upper)

static void dynamic_parameters(npuq_dynamic_form form, npuq_y_type y, const float *hi, const float *lo, size_t n,
                               float *scale, float *offset, float *back)
{
    const bool int4 = y == NPUQ_Y_I4;

    if (n == 1) {
        float one[3];

        parameters_of_float(form, int4, *hi, *lo, one);
        *scale = one[0];
        *offset = one[1];
        *back = one[2];
        return;
    }
    for (size_t r = 0; r < n; r += LANES) {
        vf several[3];

        parameters_of_vector(form, int4, v_load(hi + r), v_load(lo + r), several);
        memcpy(scale + r, &several[0], sizeof several[0]);
        memcpy(offset + r, &several[1], sizeof several[1]);
        memcpy(back + r, &several[2], sizeof several[2]);
    }
}

NPUQ_EACH_AFFINE(AFFINE)
NPUQ_EACH_SMOOTH(SMOOTH)
NPUQ_EACH_DEQUANT(DEQUANT)
NPUQ_EACH_RANGE(RANGE)

/* ---- parameters -------------------------------------------------------------------------------------------------- */

#define WIDEN(P)                                                                                                       \
    static void widen_##P(const void *x, float *y, size_t n)                                                           \
    {                                                                                                                  \
        const size_t size = width_##P;                                                                                 \
        char last[CHUNK * width_##P] = {0};                                                                            \
        vchunk v;                                                                                                      \
        size_t at = 0;                                                                                                 \
                                                                                                                       \
        for (; at + CHUNK <= n; at += CHUNK) {                                                                         \
            v = chunk_load_##P((const char *)x + at * size);                                                           \
            memcpy(y + at, &v, sizeof v);                                                                              \
        }                                                                                                              \
        if (at < n) {                                                                                                  \
            memcpy(last, (const char *)x + at * size, (n - at) * size);                                                \
            v = chunk_load_##P(last);                                                                                  \
            memcpy(y + at, &v, (n - at) * sizeof *y);                                                                  \
        }                                                                                                              \
    }

enum { width_f16 = 2, width_bf16 = 2, width_i8 = 1, width_u8 = 1, width_i32 = 4 };

NPUQ_EACH_PARAMETER(WIDEN)

/* Whole vectors cost less than counting: the next row's go over what is too much. */
static void spread(const float *values, size_t count, size_t n, float *to)
{
    for (size_t r = 0; r < count; r++) {
        const vf v = v_set(values[r]);

        for (size_t i = 0; i < n; i += LANES) {
            memcpy(to + r * n + i, &v, sizeof v);
        }
    }
}

static void pack(const uint32_t *scale, const float *offset, uint64_t *y, size_t n, npuq_round_mode mode)
{
    const bool nearest = mode == NPUQ_ROUND_NEAREST;
    uint32_t last_scales[PACK] = {0};
    float last_offsets[PACK] = {0};
    uint64_t last[PACK];
    size_t i = 0;

    for (; i + PACK <= n; i += PACK) {
        pack_store(scale + i, offset ? offset + i : NULL, y + i, nearest);
    }
    if (i < n) {
        memcpy(last_scales, scale + i, (n - i) * sizeof *scale);
        if (offset) {
            memcpy(last_offsets, offset + i, (n - i) * sizeof *offset);
        }
        pack_store(last_scales, last_offsets, last, nearest);
        memcpy(y + i, last, (n - i) * sizeof *y);
    }
}

static void unpack(const uint64_t *y, float *scale, int32_t *offset, size_t n)
{
    uint64_t last[PACK] = {0};
    float last_scales[PACK];
    int32_t last_offsets[PACK];
    size_t i = 0;

    for (; i + PACK <= n; i += PACK) {
        unpack_store(y + i, scale + i, offset + i);
    }
    if (i < n) {
        memcpy(last, y + i, (n - i) * sizeof *y);
        unpack_store(last, last_scales, last_offsets);
        memcpy(scale + i, last_scales, (n - i) * sizeof *scale);
        memcpy(offset + i, last_offsets, (n - i) * sizeof *offset);
    }
}

#endif
