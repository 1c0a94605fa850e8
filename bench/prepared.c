/* SPDX-License-Identifier: BSD-3-Clause */
#include "prepared.h"

#include "backend/dispatch.h"
#include "view/dtype.h"
#include "walk/fp_state.h"

#include <math.h>

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static void run_affine_uniform(struct prepared *p)
{
    const npuq_affine_op op = p->operands->c->mode == BENCH_DIV ? NPUQ_DIV : NPUQ_MUL;

    p->kernels->affine_uniform[op][p->y_type][p->x_type](&p->row, p->operands->scale.data, &p->zero_point, 0);
}

static void run_affine_vector(struct prepared *p)
{
    p->kernels->affine_vector[NPUQ_MUL][p->y_type][p->x_type](&p->row, p->operands->scale.data,
                                                              p->operands->offset.data, 1);
}

/* The last group has the row: the others end before it. */
static void run_group(struct prepared *p)
{
    const struct operands *o = p->operands;
    const float *scale = (const float *)o->scale.data + (size_t)(o->c->groups - 1) * p->row.n;

    p->kernels->affine_vector[NPUQ_MUL][p->y_type][p->x_type](&p->row, scale, o->offset.data, 0);
}

static void run_token(struct prepared *p)
{
    const struct operands *o = p->operands;
    const npuq_dynamic_form form = o->c->op == BENCH_DYNAMIC ? NPUQ_ASYMMETRIC : NPUQ_SYMMETRIC_PRODUCT;
    float hi[NPUQ_LANES] = {-INFINITY};
    float lo[NPUQ_LANES] = {INFINITY};
    float offset[NPUQ_LANES];
    float back[NPUQ_LANES];

    p->kernels->range[p->x_type](&p->row, NULL, hi, lo);
    p->kernels->parameters(form, p->y_type, hi, lo, 1, o->scale_out.data, offset, back);
    *(float *)o->offset_out.data = offset[0];
    p->kernels->affine_uniform[NPUQ_MUL][p->y_type][p->x_type](&p->row, back, offset, 0);
}

static void run_integers(struct prepared *p)
{
    const struct operands *o = p->operands;
    const npuq_dequant_params params = {.scale = o->scale.data,
                                        .offset = o->c->op == BENCH_ANTI_QUANT ? o->offset.data : NULL,
                                        .row_scale = o->activation_scale.data,
                                        .step = 1};

    p->kernels->dequant[p->y_type][p->x_type](&p->row, &params);
}

/* The words of as many columns at a time as in walk/tile.c. */
static void run_words(struct prepared *p)
{
    enum { COLUMNS = 2048 };
    _Alignas(64) float scales[COLUMNS];
    _Alignas(64) int32_t offsets[COLUMNS];
    const npuq_dequant_params params = {.scale = scales, .y_offset = offsets, .step = 1};
    npuq_block part = p->row;

    for (size_t done = 0; done < p->row.n; done += part.n) {
        part.x = (const int32_t *)p->row.x + done;
        part.y = (int8_t *)p->row.y + done;
        part.n = p->row.n - done < COLUMNS ? p->row.n - done : COLUMNS;
        p->kernels->unpack((const uint64_t *)p->operands->scale.data + done, scales, offsets, part.n);
        p->kernels->dequant[p->y_type][p->x_type](&part, &params);
    }
}

static void (*kernel_of(const struct bench_case *c))(struct prepared *)
{
    switch (c->op) {
    case BENCH_QUANTIZE: return c->parameters == BENCH_UNIFORM ? run_affine_uniform : run_affine_vector;
    case BENCH_GROUP_QUANT: return run_group;
    case BENCH_DYNAMIC:
    case BENCH_DYNAMIC_QUANT: return run_token;
    case BENCH_ANTI_QUANT:
    case BENCH_DEQUANT: return run_integers;
    case BENCH_REQUANT: return run_words;
    case BENCH_TRANS_QUANT_PARAM: break;
    }
    return NULL;
}

npuq_status prepared_make(struct prepared *p, struct operands *o)
{
    const npuq_tensor *z = &o->offset;

    *p = (struct prepared){
        .operands = o,
        .row = {.x = o->x.data, .y = o->y.data, .rows = 1, .n = bench_elements(o->c)},
        .x_type = (npuq_x_type)npuq_find_dtype(o->x.dtype)->x,
        .y_type = (npuq_y_type)npuq_find_dtype(o->y.dtype)->y,
        .kernels = npuq_kernels(),
        .run_kernel = kernel_of(o->c),
    };
    if (z->data) {
        p->zero_point = z->dtype == NPUQ_INT32 ? (float)*(const int32_t *)z->data : *(const float *)z->data;
    }
    return operands_prepare(o, &p->call);
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

void prepared_run_kernel(struct prepared *p)
{
    p->run_kernel(p);
}

void prepared_run_with_state(struct prepared *p)
{
    const npuq_fp_state caller = npuq_fp_enter();

    p->run_kernel(p);
    npuq_fp_leave(&caller);
}

void prepared_run_call(struct prepared *p)
{
    npuq_call_run(&p->call, 0, SIZE_MAX);
}

/* Each tensor becomes what it was. */
void prepared_run_with_tensors(struct prepared *p)
{
    struct operands *o = p->operands;
    npuq_tensor *const tensors[] = {&o->x,           &o->y,         &o->scale,     &o->offset, &o->activation_scale,
                                    &o->group_index, &o->scale_out, &o->offset_out};

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        if (tensors[i]->data) {
            *tensors[i] =
                npuq_tensor_contiguous(tensors[i]->data, tensors[i]->dtype, tensors[i]->ndim, tensors[i]->shape);
        }
    }
    (void)operands_call(o, NULL);
}
