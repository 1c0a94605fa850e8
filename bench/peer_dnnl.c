/* SPDX-License-Identifier: BSD-3-Clause */
/* oneDNN 2. First a reorder between types, with scales and one zero point for all channels; oneDNN multiplies by the
 * scales. Then a product of matrices, to int32, or with scales to floating point. The difference in time is the cost of
 * the output stage, which finds the sums still in registers. */
#include "peer.h"

#include "machine.h"
#include "splitmix64.h"

#include <dnnl.h>
#ifdef BENCH_WITH_OPENMP
#include <omp.h>
#endif
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 3 };

struct work {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MAX_ARGUMENTS];
    int count;
};

static bool start(struct work *work)
{
    *work = (struct work){0};
#ifdef BENCH_WITH_OPENMP
    omp_set_num_threads(1);
#endif
    return dnnl_engine_create(&work->engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&work->stream, work->engine, dnnl_stream_default_flags) == dnnl_success;
}

static void stop(struct work *work)
{
    for (int i = 0; i < work->count; i++) {
        (void)dnnl_memory_destroy(work->arguments[i].memory);
    }
    (void)dnnl_primitive_destroy(work->primitive);
    (void)dnnl_stream_destroy(work->stream);
    (void)dnnl_engine_destroy(work->engine);
}

static void execute(const struct work *work)
{
    (void)dnnl_primitive_execute(work->primitive, work->stream, work->count, work->arguments);
    (void)dnnl_stream_wait(work->stream);
}

static bool describe(dnnl_memory_desc_t *description, int64_t rows, int64_t cols, dnnl_data_type_t type)
{
    const dnnl_dims_t dims = {rows, cols};

    return dnnl_memory_desc_init_by_tag(description, 2, dims, type, dnnl_ab) == dnnl_success;
}

static bool add_argument(struct work *work, int argument, const dnnl_memory_desc_t *description, void *data)
{
    dnnl_exec_arg_t *added = &work->arguments[work->count];

    added->arg = argument;
    if (dnnl_memory_create(&added->memory, description, work->engine, data) != dnnl_success) {
        return false;
    }
    work->count++;
    return true;
}

static dnnl_data_type_t type_of(npuq_dtype dtype)
{
    switch (dtype) {
    case NPUQ_FLOAT32: return dnnl_f32;
    case NPUQ_FLOAT16: return dnnl_f16;
    case NPUQ_BFLOAT16: return dnnl_bf16;
    case NPUQ_INT8: return dnnl_s8;
    case NPUQ_INT32: return dnnl_s32;
    case NPUQ_UINT8:
    case NPUQ_INT64:
    case NPUQ_UINT64:
    case NPUQ_QUINT4X2: break;
    }
    return dnnl_data_type_undef;
}

static bool set_scales(const struct operands *o, dnnl_primitive_attr_t attributes)
{
    const bool channel = o->c->parameters == BENCH_CHANNEL;
    const int64_t count = channel ? o->c->shape[1] : 1;
    float *scales = malloc((size_t)count * sizeof *scales);
    bool set = scales;

    for (int64_t i = 0; i < count && scales; i++) {
        if (o->scale.dtype == NPUQ_FLOAT32) {
            scales[i] = ((const float *)o->scale.data)[i];
        } else { /* words: the scale is in the lower half */
            const uint32_t bits = (uint32_t)((const int64_t *)o->scale.data)[i];
            memcpy(&scales[i], &bits, sizeof bits);
        }
    }
    set = set && dnnl_primitive_attr_set_output_scales(attributes, count, channel ? 1 << 1 : 0, scales) == dnnl_success;
    free(scales);
    return set;
}

/* ---- reorder --------------------------------------------------------------------------------------------------- */

static struct work reorder;

static bool set_zero_point(const struct operands *o, dnnl_primitive_attr_t attributes)
{
    int32_t zero_point;

    switch (o->c->op) {
    case BENCH_DEQUANT: return true;
    case BENCH_ANTI_QUANT: /* npuquant adds its offset, oneDNN subtracts its zero point */
        zero_point = -(int32_t) * (const float *)o->offset.data;
        return dnnl_primitive_attr_set_zero_points(attributes, DNNL_ARG_FROM, 1, 0, &zero_point) == dnnl_success;
    case BENCH_REQUANT: zero_point = *(const int64_t *)o->scale.data >> 37 & 0xFF; break; /* never negative */
    default: zero_point = (int32_t) * (const float *)o->offset.data; break;
    }
    return dnnl_primitive_attr_set_zero_points(attributes, DNNL_ARG_TO, 1, 0, &zero_point) == dnnl_success;
}

static bool make_reorder(const struct operands *o, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;

    const bool made = dnnl_primitive_attr_create(&attributes) == dnnl_success && set_scales(o, attributes) &&
                      set_zero_point(o, attributes) &&
                      dnnl_reorder_primitive_desc_create(&description, from, reorder.engine, to, reorder.engine,
                                                         attributes) == dnnl_success &&
                      dnnl_primitive_create(&reorder.primitive, description) == dnnl_success;
    (void)dnnl_primitive_desc_destroy(description);
    (void)dnnl_primitive_attr_destroy(attributes);
    return made;
}

static bool is_reorder(const struct bench_case *c)
{
    switch (c->op) {
    case BENCH_QUANTIZE: return c->mode == BENCH_MUL && c->y_dtype == NPUQ_INT8;
    case BENCH_ANTI_QUANT: return c->x_dtype == NPUQ_INT8;
    case BENCH_DEQUANT: return c->mode == BENCH_WEIGHT;
    case BENCH_REQUANT: return true;
    default: return false;
    }
}

static bool prepare_reorder(const struct operands *o)
{
    const struct bench_case *c = o->c;
    dnnl_memory_desc_t from;
    dnnl_memory_desc_t to;

    if (!is_reorder(c) || c->ndim != 2) {
        return false;
    }
    if (start(&reorder) && describe(&from, c->shape[0], c->shape[1], type_of(c->x_dtype)) &&
        describe(&to, c->shape[0], c->shape[1], type_of(c->y_dtype)) && make_reorder(o, &from, &to) &&
        add_argument(&reorder, DNNL_ARG_FROM, &from, o->x.data) &&
        add_argument(&reorder, DNNL_ARG_TO, &to, o->y.data)) {
        return true;
    }
    stop(&reorder);
    return false;
}

static void run_reorder(void)
{
    execute(&reorder);
}

static void finish_reorder(void)
{
    stop(&reorder);
}

const struct peer peer_dnnl = {"onednn", prepare_reorder, run_reorder, finish_reorder, operands_differing, false};

/* ---- products -------------------------------------------------------------------------------------------------- */

/* Shallow, so that the product does not hide its output stage; with sums that fit in memory. */
enum { DEPTH = 64, MAX_SUMS = 1 << 24 };

struct product {
    struct work work;
    int8_t *left;
    int8_t *right;
    int32_t *sums; /* of the product to int32, or of plain loops */
    size_t rows;
    size_t cols;
};

static struct product plain;
static struct product fused;

static void finish_product(struct product *product)
{
    stop(&product->work);
    machine_free(product->left, product->rows * DEPTH);
    machine_free(product->right, product->cols * DEPTH);
    machine_free(product->sums, product->rows * product->cols * sizeof(int32_t));
}

/* Small, as oneDNN adds pairs of products in 16 bits, which saturate, on CPUs of x86 without VNNI instructions. */
static void fill(int8_t *data, size_t size)
{
    uint64_t state = 0;

    for (size_t i = 0; i < size; i++) {
        data[i] = (int8_t)((int32_t)(splitmix64(&state) >> 57) - 64);
    }
}

/* oneDNN multiplies some types in plain C only, a thousand times slower. */
static bool is_fast(const_dnnl_primitive_desc_t description)
{
    const char *name;

    return dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name) == dnnl_success &&
           strncmp(name, "ref", 3) != 0;
}

/* With scales, if operands are given. */
static bool make_product(struct product *product, const dnnl_memory_desc_t *left, const dnnl_memory_desc_t *right,
                         const dnnl_memory_desc_t *to, const struct operands *scaled)
{
    dnnl_matmul_desc_t operation;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;

    const bool made =
        dnnl_matmul_desc_init(&operation, left, right, NULL, to) == dnnl_success &&
        dnnl_primitive_attr_create(&attributes) == dnnl_success && (!scaled || set_scales(scaled, attributes)) &&
        dnnl_primitive_desc_create(&description, &operation, attributes, product->work.engine, NULL) == dnnl_success &&
        is_fast(description) && dnnl_primitive_create(&product->work.primitive, description) == dnnl_success;
    (void)dnnl_primitive_desc_destroy(description);
    (void)dnnl_primitive_attr_destroy(attributes);
    return made;
}

static bool prepare_product(struct product *product, const struct operands *o, bool scaled)
{
    const struct bench_case *c = o->c;
    dnnl_memory_desc_t left;
    dnnl_memory_desc_t right;
    dnnl_memory_desc_t to;

    if (c->op != BENCH_DEQUANT || c->mode != BENCH_WEIGHT || c->y_dtype == NPUQ_FLOAT16 || c->ndim != 2 ||
        bench_elements(c) > MAX_SUMS) {
        return false;
    }
    *product = (struct product){.rows = (size_t)c->shape[0], .cols = (size_t)c->shape[1]};
    const bool started = start(&product->work);
    product->left = machine_allocate(product->rows * DEPTH);
    product->right = machine_allocate(product->cols * DEPTH);
    product->sums = machine_allocate(product->rows * product->cols * sizeof(int32_t));
    if (started && product->left && product->right && product->sums && describe(&left, c->shape[0], DEPTH, dnnl_s8) &&
        describe(&right, DEPTH, c->shape[1], dnnl_s8) &&
        describe(&to, c->shape[0], c->shape[1], scaled ? type_of(c->y_dtype) : dnnl_s32) &&
        make_product(product, &left, &right, &to, scaled ? o : NULL) &&
        add_argument(&product->work, DNNL_ARG_SRC, &left, product->left) &&
        add_argument(&product->work, DNNL_ARG_WEIGHTS, &right, product->right) &&
        add_argument(&product->work, DNNL_ARG_DST, &to, scaled ? o->y.data : product->sums)) {
        fill(product->left, product->rows * DEPTH);
        fill(product->right, product->cols * DEPTH);
        return true;
    }
    finish_product(product);
    return false;
}

static bool prepare_plain(const struct operands *o)
{
    return prepare_product(&plain, o, false);
}

static void run_plain(void)
{
    execute(&plain.work);
}

static void finish_plain(void)
{
    finish_product(&plain);
}

const struct peer peer_dnnl_product = {"product", prepare_plain, run_plain, finish_plain, NULL, true};

static bool prepare_fused(const struct operands *o)
{
    return prepare_product(&fused, o, true);
}

static void run_fused(void)
{
    execute(&fused.work);
}

static void finish_fused(void)
{
    finish_product(&fused);
}

/* Compares with dequant of the sums of plain loops. */
static size_t fused_differing(const struct operands *o)
{
    struct operands own = *o;

    for (size_t r = 0; r < fused.rows; r++) {
        int32_t *row = fused.sums + r * fused.cols;
        memset(row, 0, fused.cols * sizeof *row);
        for (size_t k = 0; k < DEPTH; k++) {
            for (size_t i = 0; i < fused.cols; i++) {
                row[i] += fused.left[r * DEPTH + k] * fused.right[k * fused.cols + i];
            }
        }
    }
    own.x.data = fused.sums;
    own.expected = machine_allocate(o->y_bytes);
    own.y.data = own.expected;
    const bool done = own.expected && operands_call(&own, NULL) == NPUQ_OK;
    own.y.data = o->y.data;
    const size_t found = done ? operands_differing(&own) : fused.rows * fused.cols;
    machine_free(own.expected, o->y_bytes);
    return found;
}

const struct peer peer_dnnl_fused = {"product to y", prepare_fused, run_fused, finish_fused, fused_differing, true};
