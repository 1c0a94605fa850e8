/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers and small floats to floating point, and int32 to int8. */
#ifndef NPUQ_DEQUANTISE_H
#define NPUQ_DEQUANTISE_H

#include "rows.h"

/* Which of npuq_dequant_params a call has: a set. */
enum {
    SCALES = 1,              /* a scale, and any offset, for each column */
    ROW_SCALE_OR_OFFSET = 2, /* offset, row_scale or y_offset */
    X_BIAS = 4,
    BIAS = 8,
    ROW_SCALES = 16, /* row_scales */
    LOOKS_UP = 32,   /* instead: the results of all 16 integers are known */
    NORMAL = 64,     /* no result is NaN or subnormal */
    WORDS = 128,     /* words have the scales, and the offsets */
    RUNS = 256       /* a scale for each run of columns */
};

typedef struct dequantise_spec {
    npuq_type y;
    npuq_type x;   /* of small floats, one of as many bits: kernels share its code */
    bool converts; /* to bfloat16: by an instruction that not every CPU has */
    unsigned form; /* not everywhere a constant */
} dequantise_spec;

/* A kernel, and the parameters of all rows: not a copy, see quantise_call. */
typedef struct dequantise_call {
    dequantise_spec k;
    const npuq_dequant_params *all;
    npuq_type x; /* k.x, or a type that shares its code */
} dequantise_call;

typedef struct dequantise_parameters {
    dequantise_spec k;
    npuq_dequant_params all;
    vchunk scale;
    vchunk offset;
    vchunk row_scale;
    bool never_nan; /* whether it is known that no result is NaN */
    vu results;     /* with LOOKS_UP */
    small_code code;
    uint32_t inverse_run; /* see invert_run() */
} dequantise_parameters;

/* Takes a copy: clang forgets what is assumed of memory. */
INLINE void assume_dequantising(dequantise_spec k)
{
    assume((npuq_is_integer(k.x) || npuq_is_small_float(k.x)) && (npuq_is_float(k.y) || k.y == NPUQ_TYPE_INT8));
}

#define NPUQ_OF_KIND(NAME) NPUQ_KERNEL(dequantise, NAME)
#define NPUQ_PARAMETERS    dequantise_parameters

INLINE dequantise_parameters NPUQ_OF_KIND(load)(const void *call, size_t row)
{
    const dequantise_call *c = call;

    assume_dequantising(c->k);
    return (dequantise_parameters){.k = c->k,
                                   .all = *c->all,
                                   .scale = chunk_set(*c->all->scale),
                                   .offset = chunk_set(c->all->offset ? *c->all->offset : 0.0f),
                                   .row_scale = chunk_set(c->all->row_scale ? c->all->row_scale[row] : 1.0f),
                                   .code = npuq_is_small_float(c->k.x) ? find_code(c->x) : (small_code){0},
                                   .inverse_run = c->all->run > 0 ? invert_run(c->all->run) : 0};
}

/* Those of requant. */
INLINE bool may_have_words(dequantise_spec k)
{
    return !AT_RUN_TIME && k.x == NPUQ_TYPE_INT32 && (k.y == NPUQ_TYPE_INT8 || k.y == NPUQ_TYPE_FLOAT16);
}

INLINE unsigned find_form(dequantise_spec k, const npuq_dequant_params *p)
{
    const void *second = npuq_is_small_float(k.x) ? NULL
                         : k.x != NPUQ_TYPE_INT32 ? (const void *)p->offset
                         : k.y == NPUQ_TYPE_INT8  ? (const void *)p->y_offset
                                                  : p->row_scale;

    return (p->by_column ? SCALES : 0u) | (npuq_is_small_float(k.x) && p->run > 0 ? RUNS : 0u) |
           (second ? ROW_SCALE_OR_OFFSET : 0u) | (may_have_words(k) && p->words ? WORDS : 0u) |
           (k.x == NPUQ_TYPE_INT32 && p->row_scales ? ROW_SCALES : 0u) |
           (k.x == NPUQ_TYPE_INT32 && p->x_bias ? X_BIAS : 0u) | (k.x == NPUQ_TYPE_INT32 && p->bias ? BIAS : 0u);
}

/* With the same parameters in all columns, int4 has 16 results. */
INLINE bool may_look_up(dequantise_spec k)
{
    return LOOKS_UP_I4 && k.x == NPUQ_TYPE_QUINT4X2 && (k.y == NPUQ_TYPE_FLOAT16 || k.y == NPUQ_TYPE_BFLOAT16);
}

/* Chunks begin where vectors of a row do: a vector is of one run. */
INLINE vchunk load_scales_of_runs(const dequantise_parameters *p, size_t at, size_t n)
{
    vchunk t;

    for (size_t i = 0; i < 4; i++) {
        t.v[i] = v_set(p->all.scale[find_run(p->inverse_run, i * LANES < n ? at + i * LANES : at)]);
    }
    return t;
}

INLINE store_check dequantise_and_store(const dequantise_parameters *p, const char *x, char *y, size_t at, size_t n,
                                        stores how)
{
    const npuq_dequant_params *d = &p->all;
    const dequantise_spec k = p->k;
    const bool tail = how == TAIL;
    const bool by_column = k.form & SCALES;
    const bool by_word = may_have_words(k) && k.form & WORDS;
    word_chunk w;
    vchunk t;

#if LOOKS_UP_I4
    if (may_look_up(k) && k.form & LOOKS_UP) {
        narrow_16(y, look_up_int4(x, p->results), how == STREAM);
        return start_check();
    }
#endif
    if (k.x == NPUQ_TYPE_INT32) {
        ichunk sums = load_integers(x, n, tail);
        if (k.form & X_BIAS) {
            sums = ichunk_add(sums, load_integers(d->x_bias + at, n, tail));
        }
        t = chunk_of_ints(sums);
    } else if (npuq_is_small_float(k.x)) {
        t = load_small_floats(x, p->code, n, tail, npuq_is_4_bit_float(k.x));
    } else {
        t = load_x(k.x, x, n, tail);
        if (k.form & ROW_SCALE_OR_OFFSET) {
            t = chunk_add(t, by_column ? load_parameters(d->offset + at, n, tail) : p->offset);
        }
    }
    if (by_word) {
        w = load_words(d->words + at, n, tail);
    }
    t = chunk_mul(t, by_word                    ? w.scales
                     : by_column                ? load_parameters(d->scale + at, n, tail)
                     : npuq_is_small_float(k.x) ? load_scales_of_runs(p, at, n)
                                                : p->scale);
    if (k.y == NPUQ_TYPE_INT8 && k.form & ROW_SCALE_OR_OFFSET) {
        const ichunk offsets = by_word     ? w.offsets
                               : by_column ? load_integers(d->y_offset + at, n, tail)
                                           : ichunk_set(*d->y_offset);
        return store_requant(y, t, offsets, n, how);
    }
    if (k.x == NPUQ_TYPE_INT32 && k.form & ROW_SCALE_OR_OFFSET) {
        t = chunk_mul(t, p->row_scale);
    }
    if (k.x == NPUQ_TYPE_INT32 && k.y != NPUQ_TYPE_INT8 && k.form & ROW_SCALES) {
        t = chunk_mul(t, load_parameters(d->row_scales + at, n, tail));
    }
    if (k.form & BIAS) {
        t = chunk_add(t, load_parameters(d->bias + at, n, tail));
    }
    /* A product with a power of two has all bits, unless it is subnormal or too large. */
    if (npuq_is_small_float(k.x) && k.y == NPUQ_TYPE_BFLOAT16 && (how == FULL || how == STREAM)) {
        narrow_16(y, truncate_bfloat16(t), how == STREAM);
        return check_of_bfloat16(t);
    }
#ifdef CONVERTS_BF16
    /* With non-temporal stores, rounding by integers was up to a fifth faster, but not where int4 is unpacked. */
    if (k.converts && (how == FULL || (how == STREAM && k.x == NPUQ_TYPE_QUINT4X2))) {
        store_check check = start_check();
        narrow_16(y, encode_converted_bfloat16(t, &check), how == STREAM);
        return check;
    }
#endif
    return store_y(k.y, y, t, (y_form){0}, n, false, how);
}

/* Rows share no parameters: count is 1. */
INLINE store_check NPUQ_OF_KIND(columns)(const dequantise_parameters *p, const rows *r, size_t count, size_t at,
                                         size_t n, stores how, store_check done)
{
    const dequantise_spec k = p->k;
    const store_check here =
        dequantise_and_store(p, r->x + count_bytes(k.x, at), r->y + count_bytes(k.y, at), at, n, how);

    (void)count;
    return p->never_nan ? done : join_checks(here, done, npuq_is_float(k.y));
}

INLINE traits NPUQ_OF_KIND(describe)(const dequantise_parameters *p)
{
    return (traits){npuq_word_of(p->k.x), npuq_word_of(p->k.y), npuq_is_float(p->k.y), false, false};
}

#include "driver.h"

/* Whether one scale and offset save the check of stores: none goes by column then. For int32 they would, too, but with
 * less to do for each line, rows in the second-level cache were slower. */
INLINE bool may_rule_out_nan(dequantise_spec k)
{
    return !AT_RUN_TIME && !(k.form & SCALES) && npuq_is_integer(k.x) && k.x != NPUQ_TYPE_INT32 &&
           !(k.converts && may_look_up(k));
}

/* Finite ones give no NaN. In [2^-64, 2^64), scale and scale * offset give no subnormal number either, which an
 * instruction would convert to 0: a sum with an offset is 0, or at least 2^-24, or the offset. */
INLINE bool rule_out_nan(dequantise_spec k, const npuq_dequant_params *p)
{
    const float offset = p->offset ? *p->offset : 0.0f;

    return k.converts ? chunk_is_invertible(chunk_set(*p->scale)) &&
                            (offset == 0.0f || chunk_is_invertible(chunk_set(*p->scale * offset)))
                      : *p->scale * 0.0f + offset * 0.0f == 0.0f;
}

/* Whether scales in [2^-64, 2^64) save the check of a store to halves. To float32, and to float16 from int32, it costs
 * next to nothing. */
INLINE bool may_be_normal(dequantise_spec k)
{
    return !AT_RUN_TIME && npuq_is_integer(k.x) && (k.converts || (k.x != NPUQ_TYPE_INT32 && k.y == NPUQ_TYPE_FLOAT16));
}

/* With those of rows from 2^-62 on, results are 2^-126 at least. */
INLINE bool are_scales_normal(const npuq_block *b, dequantise_call call)
{
    bool normal = are_scales_invertible(call.all->scale, b->n);

    for (size_t i = 0; call.k.form & ROW_SCALE_OR_OFFSET && i < b->rows; i++) {
        normal &= chunk_is_invertible(chunk_set(call.all->row_scale[b->first_row + i] * 0.25f));
    }
    return normal;
}

/* The most frequent forms have a loop each. Other forms are tested in every chunk, which was measured to take up to a
 * tenth longer. So is int4 with one scale, if there are too few to look up. */
INLINE size_t NPUQ_OF_KIND(run)(const dequantise_parameters *p, const rows *r, size_t count, size_t at)
{
    dequantise_parameters known = *p;
    const bool looks_up = may_look_up(known.k);

#define FORM(SET)                                                                                                      \
    if (p->k.form == (SET)) {                                                                                          \
        known.k.form = (SET);                                                                                          \
        known.never_nan = may_rule_out_nan(known.k) || (SET)&NORMAL;                                                   \
        return NPUQ_OF_KIND(run_chunks)(&known, r, count, at);                                                         \
    }
    if (npuq_is_small_float(known.k.x)) {
        FORM(SCALES)
        known.k.form = RUNS;
        return NPUQ_OF_KIND(run_chunks)(&known, r, count, at);
    }
    if (!AT_RUN_TIME) {
        FORM(looks_up ? LOOKS_UP : 0)
        FORM(SCALES)
        FORM(looks_up ? LOOKS_UP : ROW_SCALE_OR_OFFSET)
        FORM(SCALES | ROW_SCALE_OR_OFFSET)
        FORM(may_be_normal(known.k) ? SCALES | NORMAL : SCALES)
        FORM(SCALES | (known.k.x == NPUQ_TYPE_INT32 && known.k.converts ? ROW_SCALE_OR_OFFSET | NORMAL : 0))
        FORM(SCALES | (may_have_words(known.k) ? WORDS : 0))
        FORM(SCALES | ROW_SCALE_OR_OFFSET | (may_have_words(known.k) && known.k.y == NPUQ_TYPE_INT8 ? WORDS : 0))
    }
#undef FORM
    return NPUQ_OF_KIND(run_chunks)(p, r, count, at);
}

/* The results of all int4, repeated. The exact path makes them: with one NaN, they need no check. */
INLINE vu find_results(const dequantise_call *call)
{
    uint32_t integers[CHUNK / 8];
    uint16_t results[CHUNK];

    for (size_t i = 0; i < CHUNK / 8; i++) {
        integers[i] = i % 2 == 0 ? 0x76543210u : 0xFEDCBA98u;
    }
    const rows all = {.x = (const char *)integers, .y = (char *)results, .call = call};
    NPUQ_OF_KIND(columns_exact)(&all, 1, 0, CHUNK);
    return vector_at(results, 0);
}

enum { LOOK_UP_FROM = 512 }; /* elements: for fewer, the results took as long as they save */
enum { NORMAL_FROM = 4 };    /* rows: a check of scales takes longer than that of a row */

/* Each pair of types has its own kernel, with TYPES_AT_RUN_TIME as well: tests of types in each chunk took up to a
 * third of the time. */
INLINE void dequantise_rows(const npuq_block *b, dequantise_call call)
{
    const size_t count = b->n > 0 ? b->rows : 0;
    retry_state d = {STRIP, 0};

    call.k.form = find_form(call.k, call.all);
    const dequantise_call for_exact = call; /* the compiler knows that no store changes the other */
    const bool in_place = call.k.x == NPUQ_TYPE_INT32 && call.k.y == NPUQ_TYPE_FLOAT32 && b->x == b->y;
    const bool looks_up = may_look_up(call.k) && !(call.k.form & SCALES) && count * b->n >= LOOK_UP_FROM;
    vu results = {0};

    if (looks_up) {
        results = find_results(&for_exact);
        call.k.form = LOOKS_UP;
    }
    if (may_be_normal(call.k) && count >= NORMAL_FROM &&
        (call.k.form == SCALES || (call.k.x == NPUQ_TYPE_INT32 && call.k.form == (SCALES | ROW_SCALE_OR_OFFSET))) &&
        are_scales_normal(b, call)) {
        call.k.form |= NORMAL;
    }
    const bool by_run = npuq_is_small_float(call.k.x) && call.k.form & RUNS;
    /* A stream begins where a line of y does, and the last chunk may begin anywhere. */
    const bool stream = b->hints.from_memory && (!by_run || (uintptr_t)b->y % LINE == 0);
    const size_t rest = by_run ? b->n % LANES : 0;
    const bool fails = count > 0 && may_rule_out_nan(call.k) && !looks_up && !rule_out_nan(call.k, call.all);
    for (size_t i = 0; i < count; i++) {
        rows r = select_rows(b, i, &for_exact);
        dequantise_parameters p = NPUQ_OF_KIND(load)(&call, r.first);

        p.results = results;
        r.n -= rest;
        if (in_place) { /* a strip that is stored cannot be computed again */
            NPUQ_OF_KIND(run_exact)(&p, &r, 1, 0, b->n);
        } else {
            NPUQ_OF_KIND(run_rows)(&p, r, 1, stream, fails, &d);
        }
        if (rest > 0) {
            NPUQ_OF_KIND(columns_exact)(&r, 1, r.n, rest);
        }
    }
}

#define DEFINE_DEQUANT(VERB, CONVERTS, NAME, Y, X)                                                                     \
    static void NPUQ_KERNEL(VERB, NAME)(const npuq_block *b, const void *params)                                       \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, params));                                        \
        dequantise_rows(b, (dequantise_call){{NPUQ_TYPE_##Y, NPUQ_TYPE_##X, CONVERTS, 0}, params, NPUQ_TYPE_##X});     \
    }

/* From the floats of 8 bits, and from those of 4. */
#define FROM_SMALL(VERB, Y, X)                                                                                         \
    NOINLINE void NPUQ_KERNEL(VERB, Y)(const npuq_block *b, const void *params, npuq_type x)                           \
    {                                                                                                                  \
        dequantise_rows(b, (dequantise_call){{NPUQ_TYPE_##Y, NPUQ_TYPE_##X, false, 0}, params, x});                    \
    }
FROM_SMALL(dequantise_8_bits, FLOAT32, FLOAT8_E4M3FN)
FROM_SMALL(dequantise_4_bits, FLOAT32, FLOAT4_E2M1)
FROM_SMALL(dequantise_8_bits, FLOAT16, FLOAT8_E4M3FN)
FROM_SMALL(dequantise_4_bits, FLOAT16, FLOAT4_E2M1)
FROM_SMALL(dequantise_8_bits, BFLOAT16, FLOAT8_E4M3FN)
FROM_SMALL(dequantise_4_bits, BFLOAT16, FLOAT4_E2M1)

#define DEQUANT(...) DEFINE_DEQUANT(dequantise, false, __VA_ARGS__)
#define SMALL_DEQUANT(NAME, Y, X)                                                                                      \
    static void NPUQ_KERNEL(dequantise, NAME)(const npuq_block *b, const void *params)                                 \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, params));                                        \
        (npuq_is_4_bit_float(NPUQ_TYPE_##X) ? NPUQ_KERNEL(dequantise_4_bits, Y)                                        \
                                            : NPUQ_KERNEL(dequantise_8_bits, Y))(b, params, NPUQ_TYPE_##X);            \
    }
NPUQ_EACH_DEQUANT(DEQUANT, DEQUANT, SMALL_DEQUANT)

#ifdef CONVERTS_BF16
#define CONVERT(...) DEFINE_DEQUANT(convert, true, __VA_ARGS__)
NPUQ_EACH_INTEGER_X(CONVERT, bf16, BFLOAT16)
#endif

#undef NPUQ_OF_KIND
#undef NPUQ_PARAMETERS

#endif
