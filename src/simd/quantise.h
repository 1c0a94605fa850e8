/* SPDX-License-Identifier: BSD-3-Clause */
/* Floating point to integers and small floats, by parameters for each row or for each column. */
#ifndef NPUQ_QUANTISE_H
#define NPUQ_QUANTISE_H

#include "rows.h"

/* What a kernel's code is made for. */
typedef struct quantise_spec {
    npuq_steps steps; /* NPUQ_BY_ROW for NPUQ_ONE, too; NPUQ_BY_COLUMN for both by column; NPUQ_BY_RUN */
    uint8_t y;        /* bytes: 8 of them are copied at once */
    uint8_t x;
    uint8_t op;
    bool is_smooth; /* by row, after a product with smooth for each column */
    bool shifts;    /* patterns of x, in place of a product */
} quantise_spec;

/* Whether two chunks at a time are faster, with x in the second-level cache. */
#ifndef IN_PAIRS
#define IN_PAIRS(SPEC) false
#endif

/* Kernels load it in place of an absent offset. */
static const float no_offset = 0.0f;

/* Not inlined: compilers make a branch of it, and copies of what follows. */
NOINLINE __attribute__((pure)) const float *find_one_offset(const npuq_quant_params *p)
{
    return p->offset ? p->offset : &no_offset;
}

/* A kernel, and the parameters of all rows: not a copy, as a small call would wait for what it has just written. Of
 * NPUQ_SCALE_BY_COLUMN, offset has CHUNK elements, which are all alike, and zeros if there is none. */
typedef struct quantise_call {
    quantise_spec k;
    const npuq_quant_params *all;
    const float *offset;
    npuq_type y;  /* k.y, or a type that shares its code */
    uint8_t flip; /* see npuq_block */
} quantise_call;

typedef struct quantise_parameters {
    quantise_spec k;
    const void *scales; /* by column or by run */
    const float *offsets;
    const void *smooth;
    npuq_type columns;    /* the type of smooth, or else of scales by column */
    size_t stride;        /* from an offset to the next: 1 of NPUQ_BY_ROW and NPUQ_BY_COLUMN, else 0 */
    unsigned run;         /* columns */
    uint32_t inverse_run; /* see invert_run() */
    npuq_type y;          /* see find_y() */
    y_form form;
    vchunk scale;
    vchunk offset;
    vchunk inverse;        /* 1 / scale, where divisions are made by it */
    bool invertible_scale; /* whether the row's scale lets divisions be made by the inverse */
    bool adds;             /* false where there is no offset, or every one is a zero and y has no -0 */
    bool flips;            /* false where form.flip is 0 */
    const uint16_t *shifts;
    shift_form shift_form;
} quantise_parameters;

/* Takes a copy: clang forgets what is assumed of memory. */
INLINE void assume_quantising(quantise_spec k)
{
    assume(npuq_is_float(k.x) && (npuq_is_integer(k.y) || npuq_is_small_float(k.y)));
}

/* Whether a kernel tests types once a chunk, and makes one chunk at a time: to encode a small float takes so long that
 * this shows little. A kernel for each pair of types was half as much code as all else. */
INLINE bool tests_types(quantise_spec k)
{
    return AT_RUN_TIME || npuq_is_small_float(k.y);
}

/* The type of y: where several share a kernel's code, it is known at run time. */
INLINE npuq_type find_y(const quantise_parameters *p)
{
    return npuq_is_small_float(p->k.y) ? p->y : p->k.y;
}

/* float16 scales of a product by column are always converted. */
INLINE bool may_have_halves(quantise_spec k)
{
    return (k.op == NPUQ_MUL || npuq_is_small_float(k.y)) &&
           (k.x == NPUQ_TYPE_BFLOAT16 || (k.x == NPUQ_TYPE_FLOAT16 && k.is_smooth));
}

/* Whether y has no -0. Then a sum with a zero gives the same y and may be made, or left out, where that is faster. */
INLINE bool may_add_zero(quantise_spec k)
{
    return !npuq_float_form_of(k.y).has_minus_zero;
}

/* Whether quotients are made of the rounded inverse, where scales let it. See chunk_quotient(): small quotients may be
 * off. They are zeros of their sign in a small float, but not in a sum that becomes one. */
INLINE bool divides_by_inverse(const quantise_parameters *p)
{
    return FAST_DIVIDE && p->k.op == NPUQ_DIV && (npuq_is_integer(p->k.y) || (p->k.steps == NPUQ_BY_ROW && !p->adds));
}

INLINE bool may_flip(quantise_spec k)
{
    return k.y == NPUQ_TYPE_INT8 && k.op == NPUQ_MUL;
}

#define NPUQ_OF_KIND(NAME) NPUQ_KERNEL(quantise, NAME)
#define NPUQ_PARAMETERS    quantise_parameters

INLINE quantise_parameters NPUQ_OF_KIND(load)(const void *call, size_t row)
{
    const quantise_call *c = call;

    assume_quantising(c->k);
    const npuq_quant_params *all = c->all;
    const bool by_row = c->k.steps == NPUQ_BY_ROW;
    const size_t stride = all->steps == NPUQ_BY_ROW || all->steps == NPUQ_BY_COLUMN;
    const size_t of_row = all->steps == NPUQ_ONE ? 0 : row; /* a product takes longer, and the scale waits for it */
    const float row_scale = by_row ? ((const float *)all->scale)[of_row] : 0.0f;
    const float row_offset = *(by_row && all->offset ? &all->offset[of_row] : &no_offset);
    const bool is_sum =
        by_row ? row_offset != 0.0f : c->k.steps == NPUQ_BY_COLUMN && (stride != 0 || *c->offset != 0.0f);
    const vchunk scale = chunk_set(row_scale);
    const char *smooth = all->smooth;

    if (c->k.is_smooth && all->smooth_offsets) {
        smooth += all->smooth_offsets[row];
    }

    return (quantise_parameters){
        .k = c->k,
        .scales = all->scale,
        .offsets = c->offset,
        .smooth = smooth,
        .columns = may_have_halves(c->k) && all->half_columns ? c->k.x : NPUQ_TYPE_FLOAT32,
        .stride = stride,
        .run = all->run,
        .inverse_run = c->k.steps == NPUQ_BY_RUN ? invert_run(all->run) : 0,
        .y = c->y,
        .form = {c->flip, npuq_is_4_bit_float(c->y), all->rounding,
                 npuq_is_small_float(c->k.y) ? find_format(c->y) : (small_format){0}},
        .scale = scale,
        .offset = chunk_set(row_offset),
        .inverse = chunk_set(by_row ? 1.0f / row_scale : 0.0f),
        .invertible_scale = FAST_DIVIDE && chunk_is_invertible(scale),
        .flips = c->flip != 0,
        .shifts = all->smooth,
        .shift_form = c->k.shifts ? find_shift_form(c->k.x, c->y, (npuq_small_rounding)all->rounding) : (shift_form){0},
        .adds = may_add_zero(c->k) ? is_sum : all->offset != NULL};
}

/* The largest of a chunk, its half and NPUQ_LEAST_RUN that divides a run: where a column is a multiple of it, that many
 * columns are of one run. */
INLINE size_t find_run_unit(size_t run)
{
    return run % CHUNK == 0 ? CHUNK : run % (CHUNK / 2) == 0 ? CHUNK / 2 : NPUQ_LEAST_RUN;
}

INLINE float load_run_scale(const quantise_parameters *p, size_t at)
{
    return ((const float *)p->scales)[find_run(p->inverse_run, at)];
}

/* The scales of a chunk, or of n columns of it: one for all, one for each half, or one for each vector. */
INLINE vchunk load_run_scales(const quantise_parameters *p, size_t at, size_t n, bool unpack_order)
{
    const size_t unit = find_run_unit(p->run);
    vchunk of_vectors;

    if (unit >= CHUNK) {
        return chunk_set(load_run_scale(p, at));
    }
    if (unit == CHUNK / 2) { /* in any order of lanes */
        const vf first = v_set(load_run_scale(p, at));
        const vf second = v_set(load_run_scale(p, CHUNK / 2 < n ? at + CHUNK / 2 : at));

        return (vchunk){{first, first, second, second}};
    }
    for (size_t i = 0; i < 4; i++) {
        of_vectors.v[i] = v_set(load_run_scale(p, i * LANES < n ? at + i * LANES : at));
    }
    return order_like_x(of_vectors, unpack_order);
}

/* Whether rows from memory share parameters by column: slower where a chunk is less than a line. */
INLINE bool may_share_streams(quantise_spec k)
{
    return !tests_types(k) && count_line_columns(npuq_word_of(k.y)) == CHUNK;
}

INLINE store_check quantise_columns_of_row(const quantise_parameters *p, const rows *r, size_t row, size_t at, size_t n,
                                           stores how, bool unpack_order, bool by_inverse, store_check done)
{
    const quantise_spec k = p->k;
    const char *x = r->x + (ptrdiff_t)row * r->x_stride + count_bytes(k.x, at);
    vchunk t = load_x_in_order(k.x, x, n, how == TAIL, unpack_order);

    if (k.is_smooth) { /* whose rows share nothing */
        t = chunk_mul(t, load_columns((column_scales){p->smooth, p->columns}, at, n, how == TAIL, unpack_order));
    }
    const vchunk v = t;

    t = by_inverse                                               ? chunk_quotient(v, p->scale, p->inverse, how == EXACT)
        : k.op != NPUQ_DIV                                       ? chunk_mul(v, p->scale)
        : npuq_is_small_float(k.y)                               ? chunk_div_flushed(v, p->scale)
        : FAST_INVERSE && how == FULL && !r->hints->divides_fast ? chunk_div_checked(v, p->scale, &done)
                                                                 : chunk_div(v, p->scale);
    if (by_inverse) {
        done = check_quotients(t, done);
        t = npuq_is_small_float(k.y) ? chunk_with_signs(t, v, p->scale) : t;
    }
    if (p->adds) {
        t = chunk_add(t, p->offset);
    }
    if (npuq_is_small_float(k.y) && k.x == NPUQ_TYPE_BFLOAT16 && p->form.rounding == NPUQ_SMALL_FLOOR) {
        t = chunk_as_bfloat16(t);
    }
    char *const y = r->y + (ptrdiff_t)row * r->y_stride + count_bytes(find_y(p), at);

    y_form form = p->form;

    form.flip = may_flip(k) && p->flips ? form.flip : 0;
    return join_checks(store_y(k.y, y, t, form, n, unpack_order, how), done, !npuq_is_integer(k.y));
}

_Static_assert(2 * LANES <= NPUQ_LEAST_SHIFTED, "a vector of halves is of one run");

/* One row of halves, by shifts. */
INLINE store_check shift_columns(const quantise_parameters *p, const rows *r, size_t at, stores how, store_check done)
{
    const uint16_t *shifts = p->shifts;
    const bool by_run = p->k.steps == NPUQ_BY_RUN;
    const vh first = by_run ? h_set(shifts[find_run(p->inverse_run, at)]) : (vh)vector_at(shifts + at, 0);
    const vh second = by_run ? h_set(shifts[find_run(p->inverse_run, at + CHUNK / 2)]) : (vh)vector_at(shifts + at, 1);
    const bool has_4_bits = p->form.has_4_bits;
    const char *x = r->x + sizeof(uint16_t) * at;
    char *y = r->y + (at >> has_4_bits);
    store_check check;
    const icodes codes = encode_shifted(x, first, second, p->shift_form, has_4_bits, &check);

    if (has_4_bits) {
        store_float4(y, codes, CHUNK, true, how);
    } else {
        store_int8(y, codes, 0, CHUNK, true, how);
    }
    return join_checks(check, done, true);
}

INLINE store_check NPUQ_OF_KIND(columns)(const quantise_parameters *all, const rows *r, size_t count, size_t at,
                                         size_t n, stores how, store_check done)
{
    if (all->k.shifts && (how == FULL || how == STREAM)) {
        return shift_columns(all, r, at, how, done); /* types are tested, and so rows share nothing */
    }
    quantise_parameters p = *all;
    const quantise_spec k = p.k;
    const bool tail = how == TAIL;
    const bool is_fast_store = how == FULL || how == STREAM;
    /* Whether parameters serve several chunks: in the cache, an inverse or another order pays only then. */
    const bool is_shared = k.steps != NPUQ_BY_COLUMN || count > 1;
    const bool unpack_order = is_fast_store && !tests_types(k) && k.x == NPUQ_TYPE_BFLOAT16 && k.y != NPUQ_TYPE_INT32 &&
                              (is_shared || how == STREAM);
    const bool inverts = is_fast_store ? is_shared || (how == STREAM && may_share_streams(k))
                                       : EXACT_QUOTIENT && how == EXACT && k.steps == NPUQ_BY_ROW && p.invertible_scale;
    const bool by_inverse = divides_by_inverse(all) && inverts;

    /* From memory a sum costs nothing, and next to a division little: fewer cases are less code. */
    p.adds = p.adds || (may_add_zero(k) && (how != FULL || (k.steps == NPUQ_BY_COLUMN && k.op == NPUQ_DIV)));
    p.flips = how != FULL || (!tests_types(k) && p.flips);
    if (k.steps == NPUQ_BY_RUN) {
        p.scale = load_run_scales(&p, at, n, unpack_order);
    }
    if (k.steps == NPUQ_BY_COLUMN) {
        p.scale = load_columns((column_scales){p.scales, p.columns}, at, n, tail, unpack_order);
        if (p.adds) {
            p.offset = order_like_x(load_parameters(p.offsets + at * p.stride, n, tail), unpack_order);
        }
        if (by_inverse) {
            p.inverse = chunk_div(chunk_set(1.0f), p.scale);
        }
    }
    if (how == STREAM) { /* rows that share parameters are few or four, in one loop for both */
#pragma GCC unroll 1
        for (size_t i = 0; i < count; i++) {
            done = quantise_columns_of_row(&p, r, i, at, n, how, unpack_order, by_inverse, done);
        }
    } else {
#pragma GCC unroll 4
        for (size_t i = 0; i < count; i++) {
            done = quantise_columns_of_row(&p, r, i, at, n, how, unpack_order, by_inverse, done);
        }
    }
    return done;
}

INLINE traits NPUQ_OF_KIND(describe)(const quantise_parameters *p)
{
    const quantise_spec k = p->k;
    /* Prefetching other rows was measured to gain nothing. */
    const bool prefetches = k.x == NPUQ_TYPE_FLOAT32 && k.steps != NPUQ_BY_COLUMN && !k.is_smooth && k.op == NPUQ_MUL;

    return (traits){npuq_word_of(k.x), npuq_word_of(find_y(p)), !npuq_is_integer(k.y),
                    !tests_types(k) && IN_PAIRS(k) && k.op == NPUQ_MUL, prefetches};
}

#include "driver.h"

/* The XOR for uint8 takes 3 % of the time, so int8 has loops without. Only where nothing is added, as in dynamic
 * quantisation, does uint8 have a loop. Elsewhere uint8 takes the exact path. */
INLINE bool flips_without_loop(const quantise_parameters *p)
{
    return may_flip(p->k) && p->flips && (tests_types(p->k) || p->k.steps == NPUQ_BY_COLUMN || p->adds);
}

INLINE size_t NPUQ_OF_KIND(run)(const quantise_parameters *p, const rows *r, size_t count, size_t at)
{
    quantise_parameters known = *p;

    if (tests_types(p->k)) {
        return NPUQ_OF_KIND(run_chunks)(p, r, count, at);
    }
    known.flips = false;
    if (p->k.steps != NPUQ_BY_COLUMN && !p->adds) {
        known.adds = false;
        if (may_flip(p->k) && p->flips) {
            known.flips = true;
            return NPUQ_OF_KIND(run_chunks)(&known, r, count, at);
        }
        return NPUQ_OF_KIND(run_chunks)(&known, r, count, at);
    }
    return NPUQ_OF_KIND(run_chunks)(&known, r, count, at);
}

/* By row or by run. A stream begins where a line of y does. If y begins elsewhere, a vector might be of two runs. */
FOR_TYPES void quantise_by_row(const npuq_block *b, quantise_spec k, const npuq_quant_params *params, npuq_type y)
{
    const quantise_call call = {k, params, params->offset, y, b->flip};
    const quantise_call for_exact = call; /* the compiler knows that no store changes the other */
    const bool stream = b->hints.from_memory && (k.steps != NPUQ_BY_RUN || (uintptr_t)b->y % LINE == 0);
    retry_state d = {STRIP, 0};

    assume_quantising(k);
    assume(k.steps != NPUQ_BY_COLUMN);
    for (size_t i = 0; i < b->rows; i++) {
        rows r = select_rows(b, i, &for_exact);
        const quantise_parameters p = NPUQ_OF_KIND(load)(&call, r.first);
        const size_t rest =
            k.steps == NPUQ_BY_RUN ? r.n % find_run_unit(p.run) : 0; /* the last chunk is not of whole units */
        const bool fails = divides_by_inverse(&p) ? !p.invertible_scale : flips_without_loop(&p);

        r.n -= rest;
        NPUQ_OF_KIND(run_rows)(&p, r, 1, stream, fails, &d);
        if (rest > 0) {
            NPUQ_OF_KIND(columns_exact)(&r, 1, r.n, rest);
        }
    }
}

/* Parameters are loaded, and inverted to divide by, once for SHARING rows. */
FOR_TYPES void quantise_by_column(const npuq_block *b, quantise_spec k, const npuq_quant_params *params, npuq_type y)
{
    enum { SHARING = 4, MOST_PARAMETER_BYTES = 16 * 1024, LEAST_X_BYTES = 32 * 1024 };

    quantise_call call = {k, params, params->offset, y, b->flip};
    const bool has_one_offset = params->steps == NPUQ_SCALE_BY_COLUMN;

    assume_quantising(k);
    assume(k.steps == NPUQ_BY_COLUMN);
    /* Where a CPU reads fastest from one stream, rows of float32 share no loads of parameters that stay in the
     * first-level cache, unless x is there, too. Rows of halves share: their parameters are reordered. */
    const bool no_sharing = k.op == NPUQ_MUL && k.x == NPUQ_TYPE_FLOAT32 && b->hints.read_streams == 1 &&
                            b->n * sizeof(float) * (has_one_offset ? 1 : 2) <= MOST_PARAMETER_BYTES &&
                            b->rows * b->n * sizeof(float) > LEAST_X_BYTES;
    /* Scales are only checked where rows share their inverses: a single row in the cache divides. */
    const bool inverts = !tests_types(k) && (b->rows >= SHARING || (b->hints.from_memory && may_share_streams(k)));
    const bool invertible = inverts && (!FAST_DIVIDE || k.op != NPUQ_DIV || are_scales_invertible(params->scale, b->n));
    const bool stream =
        may_share_streams(k) && b->hints.from_memory && invertible && b->n >= 8 * CHUNK; /* enough for a stream */
    /* Rows are streamed together if all begin at the same place in a line. */
    const bool share =
        !no_sharing && invertible && (stream ? b->y_stride % LINE == 0 : may_share_streams(k) || !b->hints.from_memory);
    float one_offset[CHUNK];
    retry_state d = {STRIP, 0};
    size_t i = 0;

    if (has_one_offset) {
        const vchunk one = chunk_set(*find_one_offset(params));
        memcpy(one_offset, &one, sizeof one);
        call.offset = one_offset;
    }
    const quantise_call for_exact = call;
    while (i < b->rows) {
        const size_t count = share && i + SHARING <= b->rows ? SHARING : 1;
        const rows r = select_rows(b, i, &for_exact);
        const quantise_parameters p = NPUQ_OF_KIND(load)(&call, i);

        if (stream) {
            const rows local_row = r;
            const size_t end = NPUQ_OF_KIND(stream_rows)(&p, &r, &local_row, count);
            if (end < b->n) {
                NPUQ_OF_KIND(columns_exact)(&r, count, end, b->n - end);
            }
        } else if (!tests_types(k) && count == SHARING) {
            NPUQ_OF_KIND(run_rows)(&p, r, SHARING, false, flips_without_loop(&p), &d);
        } else {
            NPUQ_OF_KIND(run_rows)(&p, r, 1, !may_share_streams(k) && b->hints.from_memory, flips_without_loop(&p), &d);
        }
        i += count;
    }
}

/* One function for each way: what one keeps on the stack would slow the others down. */
#define WITH_STEPS(NAME, WAY, DRIVER, STEPS, IS_SMOOTH, Y, X, OP)                                                      \
    OF_STEPS void NPUQ_KERNEL(NAME, WAY)(const npuq_block *b, const npuq_quant_params *p)                              \
    {                                                                                                                  \
        quantise_##DRIVER(b, (quantise_spec){STEPS, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_##OP, IS_SMOOTH, false}, p,     \
                          NPUQ_TYPE_##Y);                                                                              \
    }

#define QUANTISER(OP, VERB, NAME, Y, X)                                                                                \
    WITH_STEPS(VERB##_##NAME, by_row, by_row, NPUQ_BY_ROW, false, Y, X, OP)                                            \
    WITH_STEPS(VERB##_##NAME, by_row_smooth, by_row, NPUQ_BY_ROW, true, Y, X, OP)                                      \
    WITH_STEPS(VERB##_##NAME, by_column, by_column, NPUQ_BY_COLUMN, false, Y, X, OP)                                   \
    WITH_STEPS(VERB##_##NAME, by_run, by_row, NPUQ_BY_RUN, false, Y, X, OP)                                            \
    static void NPUQ_KERNEL(VERB, NAME)(const npuq_block *b, const void *params)                                       \
    {                                                                                                                  \
        const npuq_quant_params *p = params;                                                                           \
                                                                                                                       \
        assert(npuq_is_valid_quant(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_##OP, p));                                    \
        if (p->steps <= NPUQ_BY_ROW) {                                                                                 \
            if (NPUQ_##OP == NPUQ_MUL && p->smooth) {                                                                  \
                NPUQ_KERNEL(VERB##_##NAME, by_row_smooth)(b, p);                                                       \
            } else {                                                                                                   \
                NPUQ_KERNEL(VERB##_##NAME, by_row)(b, p);                                                              \
            }                                                                                                          \
        } else if (NPUQ_##OP == NPUQ_MUL && p->steps == NPUQ_BY_RUN) {                                                 \
            NPUQ_KERNEL(VERB##_##NAME, by_run)(b, p);                                                                  \
        } else {                                                                                                       \
            NPUQ_KERNEL(VERB##_##NAME, by_column)(b, p);                                                               \
        }                                                                                                              \
    }

/* All kernels of small floats, with the code of hifloat8 or of the others. Each is a function of its own, as above. */
NOINLINE void quantise_small_columns(const npuq_block *b, npuq_type y, npuq_type x, npuq_affine_op op,
                                     const npuq_quant_params *p)
{
    quantise_by_column(b, (quantise_spec){NPUQ_BY_COLUMN, NPUQ_TYPE_FLOAT8_E4M3FN, x, op, false, false}, p, y);
}

NOINLINE void quantise_small_rows(const npuq_block *b, npuq_type y, npuq_type x, npuq_affine_op op, npuq_steps steps,
                                  const npuq_quant_params *p)
{
    quantise_by_row(b, (quantise_spec){steps, NPUQ_TYPE_FLOAT8_E4M3FN, x, op, p->smooth != NULL, false}, p, y);
}

NOINLINE void quantise_shifted_columns(const npuq_block *b, npuq_type y, npuq_type x, const npuq_quant_params *p)
{
    quantise_by_column(b, (quantise_spec){NPUQ_BY_COLUMN, NPUQ_TYPE_FLOAT8_E4M3FN, x, NPUQ_MUL, false, true}, p, y);
}

NOINLINE void quantise_shifted_runs(const npuq_block *b, npuq_type y, npuq_type x, const npuq_quant_params *p)
{
    quantise_by_row(b, (quantise_spec){NPUQ_BY_RUN, NPUQ_TYPE_FLOAT8_E4M3FN, x, NPUQ_MUL, false, true}, p, y);
}

NOINLINE void quantise_hifloat8_columns(const npuq_block *b, npuq_type x, npuq_affine_op op, const npuq_quant_params *p)
{
    quantise_by_column(b, (quantise_spec){NPUQ_BY_COLUMN, NPUQ_TYPE_HIFLOAT8, x, op, false, false}, p,
                       NPUQ_TYPE_HIFLOAT8);
}

NOINLINE void quantise_hifloat8_rows(const npuq_block *b, npuq_type x, npuq_affine_op op, npuq_steps steps,
                                     const npuq_quant_params *p)
{
    quantise_by_row(b, (quantise_spec){steps, NPUQ_TYPE_HIFLOAT8, x, op, p->smooth != NULL, false}, p,
                    NPUQ_TYPE_HIFLOAT8);
}

NOINLINE void quantise_small_float(const npuq_block *b, npuq_type y, npuq_type x, npuq_affine_op op,
                                   const npuq_quant_params *p)
{
    const bool is_hifloat8 = y == NPUQ_TYPE_HIFLOAT8;
    const npuq_steps steps = p->steps == NPUQ_BY_RUN ? NPUQ_BY_RUN : NPUQ_BY_ROW;

    assert(npuq_is_valid_quant(b, y, x, op, p));
    if (p->has_shifts) {
        p->steps == NPUQ_BY_RUN ? quantise_shifted_runs(b, y, x, p) : quantise_shifted_columns(b, y, x, p);
    } else if (p->steps <= NPUQ_BY_ROW || p->steps == NPUQ_BY_RUN) {
        is_hifloat8 ? quantise_hifloat8_rows(b, x, op, steps, p) : quantise_small_rows(b, y, x, op, steps, p);
    } else {
        is_hifloat8 ? quantise_hifloat8_columns(b, x, op, p) : quantise_small_columns(b, y, x, op, p);
    }
}

#define SMALL_QUANTISER(OP, VERB, NAME, Y, X)                                                                          \
    static void NPUQ_KERNEL(VERB, NAME)(const npuq_block *b, const void *params)                                       \
    {                                                                                                                  \
        quantise_small_float(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_##OP, params);                                      \
    }

#define PRODUCT(...)        QUANTISER(MUL, multiply, __VA_ARGS__)
#define SMALL_PRODUCT(...)  SMALL_QUANTISER(MUL, multiply, __VA_ARGS__)
#define QUOTIENT(...)       QUANTISER(DIV, divide, __VA_ARGS__)
#define SMALL_QUOTIENT(...) SMALL_QUANTISER(DIV, divide, __VA_ARGS__)
NPUQ_EACH_PRODUCT_TO(PRODUCT, SMALL_PRODUCT)
NPUQ_EACH_QUOTIENT_TO(QUOTIENT, SMALL_QUOTIENT)

#undef NPUQ_OF_KIND
#undef NPUQ_PARAMETERS

#endif
