/* SPDX-License-Identifier: BSD-3-Clause */
#include "operands.h"

#include "limit.h"
#include "machine.h"
#include "ref/npuq_ref_element.h"
#include "splitmix64.h"

#include <math.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Data lies between -data and data; a scale brings these values into the range of y. */
static float data_of(const struct bench_case *c, enum bench_variant variant)
{
    if (variant == BENCH_SATURATED || variant == BENCH_SUBNORMAL) {
        return variant == BENCH_SATURATED ? 6000.0F : 1e-39F;
    }
    if (c->x_dtype == NPUQ_INT8 || c->x_dtype == NPUQ_QUINT4X2) {
        return 127.9F; /* any byte is two elements of int4 */
    }
    return c->x_dtype == NPUQ_INT32 ? 4e7F : 6.0F; /* like the sums of a few thousand products */
}

static void store(void *data, npuq_dtype dtype, size_t i, float value)
{
    if (dtype == NPUQ_INT32) {
        ((int32_t *)data)[i] = (int32_t)value;
    } else if (dtype == NPUQ_INT8) {
        ((int8_t *)data)[i] = (int8_t)value;
    } else if (dtype == NPUQ_FLOAT8_E8M0) {
        ((uint8_t *)data)[i] = (uint8_t)(119 + (int)(8 * value)); /* 1 and its neighbours */
    } else if (npuq_dtype_size(dtype) == 1) {
        npuq_ref_store(data, (npuq_ref_dtype)dtype, i, value);
    } else {
        npuq_ref_store_float(data, (npuq_ref_dtype)dtype, i, value);
    }
}

/* Values between centre - spread and centre + spread. A random period repeats: fast to make, and too long for branch
 * predictors. */
static void fill(npuq_tensor *tensor, size_t n, float centre, float spread)
{
    const size_t period = (size_t)1 << 20;
    const size_t size = npuq_dtype_size(tensor->dtype);
    uint64_t state = 0;

    for (size_t i = 0; i < n && i < period; i++) {
        const float unit = (float)(int32_t)(splitmix64(&state) >> 32) / 2147483648.0F;
        store(tensor->data, tensor->dtype, i, centre + spread * unit);
    }
    for (size_t done = period; done < n; done += done) {
        memcpy((char *)tensor->data + done * size, tensor->data, size * (n - done < done ? n - done : done));
    }
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

static void *allocate(struct operands *o, size_t size)
{
    o->memory_size[o->memory_count] = size + BENCH_STREAM_ROOM;
    o->memory[o->memory_count] = machine_allocate(size + BENCH_STREAM_ROOM);
    return o->memory[o->memory_count++];
}

static size_t count(const npuq_tensor *tensor)
{
    size_t n = 1;

    for (int d = 0; d < tensor->ndim; d++) {
        n *= (size_t)tensor->shape[d];
    }
    return n;
}

/* A tensor of a shape of operators.def. If all columns have one parameter, only x and y have more columns. */
static npuq_tensor allocate_tensor(struct operands *o, npuq_dtype dtype, npuq_shape rule)
{
    const struct bench_case *c = o->c;
    int64_t x[BENCH_MAX_NDIM];
    int64_t shape[NPUQ_MAX_NDIM];
    const npuq_shape_facts facts = {.ndim = c->ndim,
                                    .shape = x,
                                    .per_tensor = c->mode == BENCH_TENSOR,
                                    .axis = c->parameters == BENCH_AXIS ? 1 : c->ndim - 1,
                                    .row_block = 1,
                                    .block = bench_block(c),
                                    .groups = c->groups};

    memcpy(x, c->shape, sizeof x);
    if (rule != NPUQ_SHAPE_ALL && c->parameters == BENCH_UNIFORM) {
        x[c->ndim - 1] = 1;
    }
    x[c->ndim - 1] /= npuq_values_in_word(dtype);
    npuq_tensor tensor = npuq_tensor_contiguous(NULL, dtype, npuq_make_shape(rule, &facts, shape), shape);
    tensor.data = allocate(o, count(&tensor) * npuq_dtype_size(dtype));
    return tensor;
}

static const npuq_tensor *if_present(const npuq_tensor *tensor)
{
    return tensor->data ? tensor : NULL;
}

static size_t bytes_of(const npuq_tensor *tensor)
{
    return tensor->data ? count(tensor) * npuq_dtype_size(tensor->dtype) : 0;
}

size_t operands_parameter_bytes(const struct operands *o, const npuq_tensor *parameter)
{
    const int64_t rows = o->c->shape[0];
    const size_t bytes = bytes_of(parameter);

    return parameter->ndim == 2 && rows < o->c->groups ? bytes / (size_t)o->c->groups * (size_t)rows : bytes;
}

/* x or y as a view of two dimensions, and the memory of a variant. */
static void make_variant(struct operands *o)
{
    const int64_t rows = o->c->shape[0];
    const int64_t cols = o->c->shape[1];

    o->other = allocate(o, o->x_bytes > o->y_bytes ? o->x_bytes : o->y_bytes);
    switch (o->c->variant) {
    case BENCH_EVERY_SECOND:
        o->x_memory = allocate(o, 2 * o->x_bytes);
        o->x.data = o->x_memory;
        o->x.strides[0] = 2 * cols;
        o->x.strides[1] = 2;
        break;
    case BENCH_REVERSED:
        o->x.data = (char *)o->x_memory + (size_t)(cols - 1) * npuq_dtype_size(o->x.dtype);
        o->x.strides[1] = -1;
        break;
    case BENCH_BROADCAST: o->x.strides[1] = 0; break;
    case BENCH_TRANSPOSED_X:
        o->x.strides[0] = 1;
        o->x.strides[1] = rows;
        break;
    case BENCH_TRANSPOSED_Y:
        o->y.strides[0] = 1;
        o->y.strides[1] = rows;
        break;
    default: break;
    }
}

static void make_variant_and_data(struct operands *o)
{
    const struct bench_case *c = o->c;

    o->copy = allocate(o, (o->x_bytes + o->y_bytes) / 2);
    o->x_memory = o->x.data;
    if (c->variant != BENCH_USUAL) {
        make_variant(o);
    }
    npuq_tensor values = o->x;
    values.dtype = c->x_dtype == NPUQ_QUINT4X2 ? NPUQ_INT8 : c->x_dtype;
    values.data = o->x_memory;
    const size_t n = o->x_bytes / npuq_dtype_size(values.dtype);
    fill(&values, c->variant == BENCH_EVERY_SECOND ? 2 * n : n, 0.0F, data_of(c, c->variant));
    for (size_t i = 0; i < n && c->variant == BENCH_NAN; i += 16) {
        store(values.data, values.dtype, i, NAN);
    }
    if (c->variant != BENCH_USUAL && !bench_is_view(c)) {
        values.data = o->other;
        fill(&values, n, 0.0F, data_of(c, BENCH_USUAL));
    }
}

/* Without a mean the call has no such input. */
static void make_input(struct operands *o, npuq_tensor *tensor, npuq_dtype dtype, npuq_shape rule, float mean,
                       float spread)
{
    if (mean > 0) {
        *tensor = allocate_tensor(o, dtype, rule);
        fill(tensor, count(tensor), mean, o->c->parameters == BENCH_UNIFORM ? 0.0F : spread);
    }
}

static void make_groups(struct operands *o, npuq_shape rule)
{
    const int64_t groups = o->c->groups;

    o->group_index = groups > 0 ? allocate_tensor(o, NPUQ_INT64, rule) : o->group_index;
    for (int64_t e = 0; e < groups; e++) {
        ((int64_t *)o->group_index.data)[e] = o->c->shape[0] * (e + 1) / groups;
    }
}

static void make_result(struct operands *o, npuq_tensor *tensor, void **expected, npuq_dtype dtype, npuq_shape rule)
{
    *tensor = allocate_tensor(o, dtype, rule);
    *expected = allocate(o, bytes_of(tensor));
}

/* Replaces scales and offsets by words. */
static void make_words(struct operands *o)
{
    const npuq_tensor words = allocate_tensor(o, NPUQ_INT64, NPUQ_SHAPE_OF_COLUMNS);

    (void)npuq_trans_quant_param(&o->scale, if_present(&o->offset), NPUQ_ROUND_NEAREST, &words);
    o->scale = words;
    o->offset.data = NULL;
}

/* What is made for each role. */
#define TYPE_OF_SCALES(SHAPE) ((SHAPE) == NPUQ_SHAPE_OF_PAIRS ? NPUQ_FLOAT8_E8M0 : NPUQ_FLOAT32)
#define MAKE_X(SHAPE)         o->x = allocate_tensor(o, c->x_dtype, SHAPE);
#define MAKE_SCALE(SHAPE)     make_input(o, &o->scale, TYPE_OF_SCALES(SHAPE), SHAPE, c->scale, c->scale / 8);
#define MAKE_OFFSET(SHAPE)    make_input(o, &o->offset, c->offset_dtype, SHAPE, c->offset, 0.0F);
#define MAKE_SMOOTH(SHAPE)    make_input(o, &o->scale, c->x_dtype, SHAPE, c->scale, c->scale / 8);
#define MAKE_GROUPS(SHAPE)    make_groups(o, SHAPE);
#define MAKE_ROW_SCALE(SHAPE) make_input(o, &o->activation_scale, NPUQ_FLOAT32, SHAPE, c->row_scale, c->row_scale / 2);
#define MAKE_BIAS(SHAPE)      MAKE_OFFSET(SHAPE)
#define RESULT_Y(SHAPE)       make_result(o, &o->y, &o->expected, c->y_dtype, SHAPE);
#define RESULT_SCALE(SHAPE)   make_result(o, &o->scale_out, &o->expected_scale, TYPE_OF_SCALES(SHAPE), SHAPE);
#define RESULT_OFFSET(SHAPE)  make_result(o, &o->offset_out, &o->expected_offset, NPUQ_FLOAT32, SHAPE);

#define MAKE_INPUT(name, NAME, ROLE, TYPES, SHAPE, ...)  MAKE_##ROLE(NPUQ_SHAPE_##SHAPE)
#define MAKE_RESULT(name, NAME, ROLE, TYPES, SHAPE, ...) RESULT_##ROLE(NPUQ_SHAPE_##SHAPE)
#define MAKE_NOTHING(name, NAME, type)
#define MAKE(name, NAME, EXECUTOR)                                                                                     \
    case BENCH_##NAME: ARGUMENTS_##name(MAKE_INPUT, MAKE_INPUT, MAKE_INPUT, MAKE_RESULT, MAKE_NOTHING) break;

static void make_tensors(struct operands *o)
{
    const struct bench_case *c = o->c;

    switch (c->op) {
        EACH_OPERATOR(MAKE)
    }
    if (c->op == BENCH_REQUANT) {
        make_words(o);
    }
    o->parameter_bytes = operands_parameter_bytes(o, &o->scale) + operands_parameter_bytes(o, &o->offset) +
                         operands_parameter_bytes(o, &o->activation_scale);
    o->small_out_bytes = bytes_of(&o->scale_out) + bytes_of(&o->offset_out);
}

void operands_make(struct operands *o, const struct bench_case *c)
{
    *o = (struct operands){.c = c, .x_bytes = bench_x_bytes(c), .y_bytes = bench_y_bytes(c)};
    make_tensors(o);
    make_variant_and_data(o);
}

void operands_free(struct operands *o)
{
    for (int i = 0; i < o->memory_count; i++) {
        machine_free(o->memory[i], o->memory_size[i]);
    }
    o->memory_count = 0;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* The tensor of each role. */
#define FROM_X            &o->x
#define FROM_SCALE        &o->scale
#define FROM_OFFSET       &o->offset
#define FROM_SMOOTH       if_present(&o->scale)
#define FROM_GROUPS       if_present(&o->group_index)
#define FROM_ROW_SCALE    if_present(&o->activation_scale)
#define FROM_BIAS         if_present(&o->offset)
#define TO_Y              &o->y
#define TO_SCALE          &o->scale_out
#define TO_OFFSET         &o->offset_out
#define THE_AXIS          c->parameters == BENCH_AXIS ? 1 : -1
#define THE_DIV_MODE      c->mode == BENCH_DIV
#define THE_ROUND_MODE    NPUQ_ROUND_NEAREST
#define THE_QUANT_MODE    c->mode == BENCH_TENSOR ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN
#define THE_SCALE_FORM    NPUQ_SCALE_PRODUCT
#define THE_ROW_BLOCK     1
#define THE_BLOCK         bench_block(c)
#define THE_MIN_SCALE     0.0F
#define THE_DST_TYPE_MAX  c->y_dtype == NPUQ_HIFLOAT8 ? 15.0F : 0.0F
#define THE_BLOCK_SIZE    (int32_t) bench_block(c)
#define THE_ROUNDING      NPUQ_MX_RINT
#define THE_SCALE_ALG     0
#define THE_SMALL_GROUPS  0
#define THE_MAX_LOW_BOUND 0.0F
#define THE_BAD_GROUPS    0

#define INPUT(name, NAME, ROLE, ...)  , FROM_##ROLE
#define OUTPUT(name, NAME, ROLE, ...) , TO_##ROLE
#define OPTION(name, NAME, type)      , THE_##NAME
#define OPTION_STRUCTURE              BY_ADDRESS
#define ARGUMENTS(name)               ARGUMENTS_##name(INPUT, INPUT, INPUT, OUTPUT, OPTION)
#define CALL_WITH(name)               call ? npuq_prepare_##name(call ARGUMENTS(name)) : APPLY(npuq_##name, ARGUMENTS(name), executor)
#define CALL_WITHOUT(name)            call ? NPUQ_ERROR_ARGUMENT : APPLY(npuq_##name, ARGUMENTS(name))
#define CALL(name, NAME, EXECUTOR)                                                                                     \
    case BENCH_##NAME: return CALL_##EXECUTOR(name);

/* Calls the operator, or with `call` prepares it: the same arguments without the executor. */
static npuq_status call_or_prepare(const struct operands *o, npuq_call *call, const npuq_executor *executor)
{
    const struct bench_case *c = o->c;

    switch (c->op) {
        EACH_OPERATOR(CALL)
    }
    return NPUQ_ERROR_ARGUMENT;
}

npuq_status operands_call(const struct operands *o, const npuq_executor *executor)
{
    return call_or_prepare(o, NULL, executor);
}

npuq_status operands_call_with_tensors(struct operands *o)
{
    npuq_tensor *const tensors[] = {&o->x,           &o->y,         &o->scale,     &o->offset, &o->activation_scale,
                                    &o->group_index, &o->scale_out, &o->offset_out};

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        npuq_tensor *t = tensors[i];

        if (t->data) {
            *t = t->ndim == 1   ? npuq_vector(t->data, t->dtype, t->shape[0])
                 : t->ndim == 2 ? npuq_matrix(t->data, t->dtype, t->shape[0], t->shape[1], 0)
                                : npuq_tensor_contiguous(t->data, t->dtype, t->ndim, t->shape);
        }
    }
    return operands_call(o, NULL);
}

npuq_status operands_prepare(const struct operands *o, npuq_call *call)
{
    return call_or_prepare(o, call, NULL);
}

/* Copies blocks of 32 x 32: each cache line, on both sides, is used whole before it leaves the cache. Constant steps
 * let compilers use vectors. */
#define COPY_RUN(TO_STEP, FROM_STEP)                                                                                   \
    for (int64_t k = c; k < c_end; k++) {                                                                              \
        q[k * (TO_STEP)] = p[k * (FROM_STEP)];                                                                         \
    }

#define DEFINE_COPY(T)                                                                                                 \
    static void copy_##T(const npuq_tensor *from, const npuq_tensor *to)                                               \
    {                                                                                                                  \
        const int64_t rows = from->shape[0];                                                                           \
        const int64_t cols = from->shape[1];                                                                           \
        const int64_t from_step = from->strides[1];                                                                    \
        const int64_t to_step = to->strides[1];                                                                        \
        const bool along_rows = to_step == 1 && (from_step == 2 || from_step == -1 || from_step == 0);                 \
        const int64_t width = along_rows ? cols : 32;                                                                  \
        for (int64_t r = 0; r < rows; r += 32) {                                                                       \
            for (int64_t c = 0; c < cols; c += width) {                                                                \
                const int64_t c_end = c + width < cols ? c + width : cols;                                             \
                for (int64_t i = r; i < r + 32 && i < rows; i++) {                                                     \
                    const T *restrict p = (const T *)from->data + i * from->strides[0];                                \
                    T *restrict q = (T *)to->data + i * to->strides[0];                                                \
                    if (!along_rows) {                                                                                 \
                        COPY_RUN(to_step, from_step)                                                                   \
                    } else if (from_step == 2) {                                                                       \
                        COPY_RUN(1, 2)                                                                                 \
                    } else if (from_step == -1) {                                                                      \
                        COPY_RUN(1, -1)                                                                                \
                    } else {                                                                                           \
                        COPY_RUN(1, 0)                                                                                 \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_COPY(uint8_t)
DEFINE_COPY(uint16_t)
DEFINE_COPY(uint32_t)

static void copy(const npuq_tensor *from, const npuq_tensor *to)
{
    switch (npuq_dtype_size(from->dtype)) {
    case 1: copy_uint8_t(from, to); break;
    case 2: copy_uint16_t(from, to); break;
    default: copy_uint32_t(from, to); break;
    }
}

static npuq_status call_with_copy(const struct operands *o)
{
    const bool out = o->c->variant == BENCH_TRANSPOSED_Y;
    struct operands contiguous = *o;
    npuq_tensor *copied = out ? &contiguous.y : &contiguous.x;

    *copied = npuq_tensor_contiguous(o->other, copied->dtype, 2, o->c->shape);
    if (!out) {
        copy(&o->x, copied);
    }
    const npuq_status status = operands_call(&contiguous, NULL);
    if (out) {
        copy(copied, &o->y);
    }
    return status;
}

npuq_status operands_baseline(const struct operands *o)
{
    struct operands usual = *o;

    if (bench_is_view(o->c)) {
        return call_with_copy(o);
    }
    usual.x.data = o->c->variant == BENCH_USUAL ? o->x.data : o->other;
    return operands_call(&usual, NULL);
}

/* ---- checking -------------------------------------------------------------------------------------------------- */

bool operands_expect(const struct operands *o)
{
    struct operands reference = *o;

    reference.y.data = o->expected;
    reference.scale_out.data = o->expected_scale;
    reference.offset_out.data = o->expected_offset;
    return npuq_set_backend(NPUQ_BACKEND_REF) == NPUQ_OK && operands_call(&reference, NULL) == NPUQ_OK;
}

static size_t differing(const npuq_tensor *tensor, const void *expected)
{
    const size_t size = npuq_dtype_size(tensor->dtype);
    const size_t bytes = bytes_of(tensor);
    const char *p = tensor->data;
    const char *q = expected;
    size_t found = 0;

    if (bytes == 0 || memcmp(p, q, bytes) == 0) {
        return 0;
    }
    for (size_t i = 0; i < bytes; i += size) {
        found += memcmp(p + i, q + i, size) != 0;
    }
    return found;
}

size_t operands_differing(const struct operands *o)
{
    return differing(&o->y, o->expected) + differing(&o->scale_out, o->expected_scale) +
           differing(&o->offset_out, o->expected_offset);
}
