/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle: a call with the functions of src/ref. */
#include "calls.h"

#include "ref/npuq_ref.h"
#include "ref/npuq_ref_element.h"

#include <stdlib.h>
#include <string.h>

/* Elements of each given tensor, in row-major order. */
typedef void *const elements_of[SLOTS];

static npuq_ref_dtype type(const test_call *c, enum slot slot)
{
    return (npuq_ref_dtype)c->tensors[slot].dtype;
}

static size_t count(const test_call *c, enum slot slot)
{
    return test_count(c->tensors[slot].ndim, c->tensors[slot].shape);
}

/* The last extent, and the product of the others. A tensor without dimensions has one element. */
static size_t columns(const test_call *c, enum slot slot)
{
    const npuq_tensor *t = &c->tensors[slot];

    return t->ndim > 0 ? (size_t)t->shape[t->ndim - 1] : 1;
}

static size_t rows(const test_call *c, enum slot slot)
{
    return test_count(c->tensors[slot].ndim - 1, c->tensors[slot].shape);
}

/* The ends of the groups of rows; null without groups. The caller frees them. */
static int64_t *read_ends(const test_call *c, elements_of elements)
{
    const void *index = elements[GROUP_INDEX];
    int64_t *ends = index ? malloc(count(c, GROUP_INDEX) * sizeof *ends + 1) : NULL;

    for (size_t e = 0; ends && e < count(c, GROUP_INDEX); e++) {
        ends[e] = type(c, GROUP_INDEX) == NPUQ_REF_INT32 ? ((const int32_t *)index)[e] : ((const int64_t *)index)[e];
    }
    if (index && !ends) {
        abort();
    }
    return ends;
}

/* In values: slot is that of x or y which has no words. */
static void read_shape(const test_call *c, enum slot slot, size_t *shape)
{
    for (int d = 0; d < c->tensors[slot].ndim; d++) {
        shape[d] = (size_t)c->tensors[slot].shape[d];
    }
}

static void quantize(const test_call *c, elements_of elements)
{
    size_t shape[NPUQ_MAX_NDIM];

    read_shape(c, X, shape);
    npuq_ref_quantize(elements[X], type(c, X), shape, c->tensors[X].ndim, elements[SCALES], type(c, SCALES),
                      count(c, SCALES), elements[ZERO_POINTS], type(c, ZERO_POINTS), c->axis, c->div_mode, elements[Y],
                      type(c, Y));
}

static void mx(const test_call *c, elements_of elements)
{
    const npuq_ref_mx options = {(size_t)c->block,   (npuq_ref_rounding)c->rounding,
                                 c->scale_algorithm, (npuq_ref_small_groups)c->small_groups,
                                 c->dst_type_max,    c->max_low_bound,
                                 c->bad_groups != 0};
    const bool back = !test_is_output(c->op, MXSCALE);
    size_t shape[NPUQ_MAX_NDIM];

    read_shape(c, back ? Y : X, shape);
    if (back) {
        npuq_ref_anti_mx_quant(elements[X], type(c, X), shape, c->tensors[X].ndim, elements[MXSCALE], c->axis, &options,
                               elements[Y], type(c, Y));
    } else {
        npuq_ref_dynamic_mx_quant(elements[X], type(c, X), shape, c->tensors[X].ndim, c->axis, &options, elements[Y],
                                  type(c, Y), elements[MXSCALE]);
    }
}

/* ---- dynamic operators ------------------------------------------------------------------------------------------ */

static float smoothed(const test_call *c, elements_of elements, const int64_t *ends, size_t r, size_t i)
{
    const float v = npuq_ref_load(elements[X], type(c, X), r * columns(c, X) + i);
    const void *smooth = elements[SMOOTH_SCALES];
    size_t e = 0;

    while (ends && (size_t)ends[e] <= r) {
        e++;
    }
    return smooth ? npuq_ref_mul(v, npuq_ref_load(smooth, type(c, SMOOTH_SCALES), e * columns(c, X) + i)) : v;
}

static void min_max(const test_call *c, elements_of elements, const int64_t *ends)
{
    const bool per_tensor = c->quant_mode == NPUQ_PER_TENSOR;
    const size_t read = per_tensor && columns(c, X) == 0 ? 0 : rows(c, X); /* very many rows may have no element */
    npuq_ref_range range = npuq_ref_range_empty();

    for (size_t r = 0; r < read || (per_tensor && r == 0); r++) {
        range = per_tensor ? range : npuq_ref_range_empty();
        for (size_t i = 0; r < read && i < columns(c, X); i++) {
            range = npuq_ref_range_with(range, smoothed(c, elements, ends, r, i));
        }
        memcpy((float *)elements[MIN] + (per_tensor ? 0 : r), &range.lo, sizeof range.lo);
        memcpy((float *)elements[MAX] + (per_tensor ? 0 : r), &range.hi, sizeof range.hi);
    }
}

static npuq_ref_parameters parameters_of(const test_call *c, elements_of elements, size_t i, bool symmetric)
{
    const npuq_ref_dtype y = c->given[Y] ? type(c, Y) : (npuq_ref_dtype)c->y_dtype;
    const npuq_ref_range range = {npuq_ref_load(elements[MAX], NPUQ_REF_FLOAT32, i),
                                  npuq_ref_load(elements[MIN], NPUQ_REF_FLOAT32, i)};

    return symmetric ? npuq_ref_symmetric_parameters(npuq_ref_largest_of(range), y, c->scale_form == NPUQ_SCALE_INVERSE)
                     : npuq_ref_range_parameters(range, y);
}

static void params(const test_call *c, elements_of elements, bool symmetric)
{
    for (size_t i = 0; i < count(c, MIN); i++) {
        const npuq_ref_parameters p = parameters_of(c, elements, i, symmetric);

        memcpy((float *)elements[SCALE] + i, &p.scale, sizeof p.scale);
        if (!symmetric) {
            memcpy((float *)elements[OFFSET] + i, &p.offset, sizeof p.offset);
        }
    }
}

static void apply(const test_call *c, elements_of elements, const int64_t *ends, bool symmetric)
{
    for (size_t i = 0; i < count(c, X); i++) {
        const size_t r = i / columns(c, X);
        const size_t of = c->quant_mode == NPUQ_PER_TENSOR ? 0 : r;
        npuq_ref_parameters p = {0};

        if (symmetric) {
            p = parameters_of(c, elements, of, true);
        } else {
            p.back = npuq_ref_div(1.0f, npuq_ref_load(elements[SCALE], NPUQ_REF_FLOAT32, of));
            p.offset = npuq_ref_load(elements[OFFSET], NPUQ_REF_FLOAT32, of);
        }
        npuq_ref_store_symmetric(elements[Y], type(c, Y), i,
                                 npuq_ref_affine(smoothed(c, elements, ends, r, i % columns(c, X)), p.back,
                                                 symmetric ? NULL : &p.offset, false, type(c, Y)));
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

/* Arguments of the functions: elements, with their type, and with their count; rows and columns. */
#define OF(SLOT)      elements[SLOT]
#define TYPED(SLOT)   elements[SLOT], type(c, SLOT)
#define COUNTED(SLOT) TYPED(SLOT), count(c, SLOT)
#define SIZE(SLOT)    rows(c, SLOT), columns(c, SLOT)

void test_call_oracle(const test_call *c, void *const elements[SLOTS])
{
    int64_t *ends = read_ends(c, elements);
    const bool per_tensor = c->quant_mode == NPUQ_PER_TENSOR;
    const bool inverse = c->scale_form == NPUQ_SCALE_INVERSE;
    const size_t groups = ends ? count(c, GROUP_INDEX) : 1;

    switch (c->op) {
    case TEST_QUANTIZE: quantize(c, elements); break;
    case TEST_GROUP_QUANT:
        npuq_ref_group_quant(TYPED(X), SIZE(X), TYPED(SCALE), groups, ends, OF(OFFSET), TYPED(Y));
        break;
    case TEST_TRANS_QUANT_PARAM:
        npuq_ref_trans_quant_param(OF(SCALE), count(c, SCALE), OF(OFFSET), OF(OFFSET) ? count(c, OFFSET) : 0,
                                   c->round_mode == NPUQ_ROUND_NEAREST, OF(Y));
        break;
    case TEST_DYNAMIC_QUANT_ASYMMETRIC:
        npuq_ref_dynamic_quant_asymmetric(TYPED(X), SIZE(X), TYPED(SMOOTH_SCALES), groups, ends, per_tensor, TYPED(Y),
                                          OF(SCALE), OF(OFFSET));
        break;
    case TEST_DYNAMIC_QUANT:
        npuq_ref_dynamic_quant(TYPED(X), SIZE(X), TYPED(SMOOTH_SCALES), groups, ends, per_tensor, inverse, TYPED(Y),
                               OF(SCALE));
        break;
    case TEST_DYNAMIC_QUANT_FLOAT8:
        npuq_ref_dynamic_quant_float8(TYPED(X), SIZE(X), TYPED(SMOOTH_SCALES), groups, ends, per_tensor,
                                      c->dst_type_max, TYPED(Y), OF(SCALE));
        break;
    case TEST_DYNAMIC_BLOCK_QUANT:
        npuq_ref_dynamic_block_quant(TYPED(X), SIZE(X), (size_t)c->block, c->min_scale, TYPED(Y), OF(SCALE));
        break;
    case TEST_DYNAMIC_BLOCK_QUANT_FLOAT8: {
        const size_t M = (size_t)c->tensors[X].shape[c->tensors[X].ndim - 2];

        npuq_ref_dynamic_block_quant_float8(TYPED(X), M > 0 ? rows(c, X) / M : 0, M, columns(c, X),
                                            (size_t)c->row_block, (size_t)c->block, c->min_scale, c->dst_type_max,
                                            TYPED(Y), OF(SCALE));
        break;
    }
    case TEST_ANTI_QUANT: npuq_ref_anti_quant(TYPED(X), SIZE(Y), COUNTED(SCALE), OF(OFFSET), TYPED(Y)); break;
    case TEST_DEQUANT:
        npuq_ref_dequant(OF(X), SIZE(X), COUNTED(WEIGHT_SCALE), OF(ACTIVATION_SCALE), TYPED(BIAS), TYPED(Y));
        break;
    case TEST_REQUANT: npuq_ref_requant(OF(X), SIZE(X), OF(WORDS), count(c, WORDS), OF(BIAS), TYPED(Y)); break;
    case TEST_DYNAMIC_QUANT_MIN_MAX: min_max(c, elements, ends); break;
    case TEST_DYNAMIC_QUANT_PARAMS: params(c, elements, false); break;
    case TEST_DYNAMIC_QUANT_SYMMETRIC_PARAMS: params(c, elements, true); break;
    case TEST_DYNAMIC_QUANT_APPLY: apply(c, elements, ends, false); break;
    case TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY: apply(c, elements, ends, true); break;
    case TEST_DYNAMIC_MX_QUANT:
    case TEST_ANTI_MX_QUANT: mx(c, elements); break;
    case TEST_OPERATORS: abort();
    }
    free(ends);
}
