/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

#include <stdlib.h>
#include <string.h>

/* ---- arrays ---------------------------------------------------------------------------------------------------- */

bool array_make(struct array *array, const npuq_tensor *tensor)
{
    const size_t size = npuq_dtype_size(tensor->dtype);
    int64_t index[NPUQ_MAX_NDIM] = {0};
    size_t items = 1;

    for (int d = 0; d < tensor->ndim; d++) {
        items *= (size_t)tensor->shape[d];
    }
    char *to = malloc(items > 0 ? items * size : 1);
    *array = (struct array){to, tensor->dtype, items << dtype_of(tensor->dtype)->log2_values};
    if (!to) {
        return false;
    }
    for (size_t i = 0; i < items; i++) {
        int64_t at = 0;
        for (int d = 0; d < tensor->ndim; d++) {
            at += index[d] * tensor->strides[d];
        }
        memcpy(to + i * size, (const char *)tensor->data + at * (int64_t)size, size);
        for (int d = tensor->ndim - 1; d >= 0 && ++index[d] == tensor->shape[d]; d--) {
            index[d] = 0;
        }
    }
    return true;
}

bool array_copy(struct array *to, const struct array *from)
{
    const size_t bytes = (from->count >> dtype_of(from->dtype)->log2_values) * npuq_dtype_size(from->dtype);

    *to = *from;
    to->data = malloc(bytes + 1);
    if (to->data) {
        memcpy(to->data, from->data, bytes);
    }
    return to->data != NULL;
}

void array_release(struct array *array)
{
    free(array->data);
    *array = (struct array){0};
}

uint64_t array_bits(const struct array *array, size_t i)
{
    return dtype_load(array->dtype, array->data, i);
}

void array_set_bits(struct array *array, size_t i, uint64_t bits)
{
    dtype_store(array->dtype, array->data, i, bits);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static void set_shape(struct call *call, const npuq_tensor *x)
{
    call->ndim = x->ndim;
    call->rows = 1;
    call->columns = 1;
    for (int d = 0; d < x->ndim; d++) {
        call->shape[d] = (size_t)x->shape[d] << (d == x->ndim - 1 ? dtype_of(x->dtype)->log2_values : 0);
        call->rows *= d < x->ndim - 1 ? call->shape[d] : 1;
        call->columns = call->shape[d];
    }
    if (call->op & MAKES_WORDS && call->operands[OPERAND_OFFSET].count > call->columns) {
        /* A single scale, which goes with all offsets: the words are one row of that length. */
        call->columns = call->operands[OPERAND_OFFSET].count;
        call->ndim = 1;
        call->shape[0] = call->columns;
    }
    call->count = call->rows * call->columns;
}

/* The dimension that scales belong to: without an axis the last one. */
static int scaled_dimension(const struct call *call)
{
    const int axis = call->options.axis;

    if (call->options.divides) {
        return axis < 0 ? axis + call->ndim : axis;
    }
    return axis == -2 ? call->ndim - 2 : call->ndim - 1;
}

size_t call_stride(const struct call *call, int dimension)
{
    size_t stride = 1;

    for (int d = dimension + 1; d < call->ndim; d++) {
        stride *= call->shape[d];
    }
    return stride;
}

static void set_channels(struct call *call)
{
    const size_t count = call->operands[OPERAND_SCALE].count;

    call->channels = 1;
    call->inner = 1;
    if (count > 1 && !call->operands[OPERAND_GROUPS].data) {
        call->channels = count;
        call->inner = call_stride(call, scaled_dimension(call));
    }
    if (call->op & FROM_NARROW && count > call->columns) {
        call->group_rows = call->count / count;
    }
}

size_t call_channel(const struct call *call, size_t i)
{
    if (call->op & READS_GROUPS) {
        const struct lines lines = call_lines(call, call_axis(call), call->token_length);
        return call_group_with(&lines, i);
    }
    const size_t group = call->group_rows > 0 ? i / call->columns / call->group_rows : 0;

    return call->group_rows > 0 ? group * call->columns + i % call->columns : i / call->inner % call->channels;
}

/* Fills the rows up to each end in group_index. Rows that no end covers stay. */
static void set_groups_by_words(struct call *call, const struct array *index)
{
    size_t *groups = call->row_group + GROUPED_BY_WORDS * call->rows;
    size_t begin = 0;

    for (size_t e = 0; e < call->groups; e++) {
        const size_t end = (size_t)(array_bits(index, e / 2) >> e % 2 * 32 & UINT32_MAX);
        for (size_t row = begin; row < end; row++) {
            groups[row] = e;
        }
        begin = end;
    }
}

/* Makes all groupings. Rows beyond all counts are in the last group. */
static bool set_groups(struct call *call)
{
    const struct array *index = &call->operands[OPERAND_GROUPS];
    size_t end = 0;
    size_t sum = 0;
    size_t row = 0;
    size_t counted = 0;
    size_t filled = 0;

    if (!index->data) {
        return true;
    }
    call->groups = index->count;
    call->row_group = calloc(GROUPINGS * call->rows + 1, sizeof *call->row_group);
    if (!call->row_group) {
        return false;
    }
    for (size_t e = 0; e < call->groups; e++) {
        const size_t begin = row;
        end = (size_t)array_bits(index, e);
        sum += end;
        for (; row < end; row++) {
            call->row_group[row] = call->row_group[GROUPED_BY_WORDS * call->rows + row] = e;
            call->row_group[GROUPED_WITHOUT_EMPTY * call->rows + row] = filled;
        }
        filled += row > begin;
        for (; counted < call->rows && (counted < sum || e == call->groups - 1); counted++) {
            call->row_group[GROUPED_BY_COUNTS * call->rows + counted] = e;
        }
    }
    if (index->dtype == NPUQ_INT64) {
        set_groups_by_words(call, index);
    }
    return true;
}

size_t call_bands_of_matrix(const struct call *call, size_t token_rows)
{
    return (call->matrix_rows - 1) / token_rows + 1;
}

size_t call_bands(const struct call *call, size_t token_rows)
{
    return call->rows / call->matrix_rows * call_bands_of_matrix(call, token_rows);
}

size_t call_band_of(const struct call *call, size_t token_rows, size_t row)
{
    const size_t before = row / call->matrix_rows * call_bands_of_matrix(call, token_rows);

    return before + row % call->matrix_rows / token_rows;
}

struct row_range call_rows_of_band(const struct call *call, size_t token_rows, size_t band)
{
    const size_t bands = call_bands_of_matrix(call, token_rows);
    const size_t top = band % bands * token_rows;
    const size_t begin = band / bands * call->matrix_rows + top;
    const size_t left = call->matrix_rows - top;

    return (struct row_range){begin, begin + (token_rows < left ? token_rows : left)};
}

int call_axis(const struct call *call)
{
    return call->options.axis < 0 ? call->options.axis + call->ndim : call->options.axis;
}

struct lines call_lines(const struct call *call, int axis, size_t length)
{
    const size_t extent = call->shape[axis];
    const size_t groups = (extent + length - 1) / length;

    return (struct lines){
        call->count == 0 ? 0 : call->count / extent, extent, call_stride(call, axis), length, groups, (groups + 1) / 2};
}

size_t call_groups(const struct lines *lines)
{
    return lines->count * lines->pairs * 2;
}

size_t call_group_at(const struct lines *lines, struct line_place place)
{
    const size_t pair = place.line / lines->inner * lines->pairs + place.group / 2;

    return (pair * lines->inner + place.line % lines->inner) * 2 + place.group % 2;
}

struct line_place call_place_of_group(const struct lines *lines, size_t group)
{
    const size_t pair = group / 2 / lines->inner;

    return (struct line_place){pair / lines->pairs * lines->inner + group / 2 % lines->inner,
                               pair % lines->pairs * 2 + group % 2};
}

size_t call_group_with(const struct lines *lines, size_t i)
{
    const size_t at = i / lines->inner;

    return call_group_at(lines, (struct line_place){at / lines->extent * lines->inner + i % lines->inner,
                                                    at % lines->extent / lines->length});
}

struct span call_span_of_group(const struct lines *lines, size_t group)
{
    const struct line_place place = call_place_of_group(lines, group);
    const size_t first = place.group < lines->groups ? place.group * lines->length : lines->extent; /* along the axis */
    const size_t left = lines->extent - first;
    const size_t begin =
        (place.line / lines->inner * lines->extent + (left > 0 ? first : 0)) * lines->inner + place.line % lines->inner;

    return (struct span){begin, begin + (left < lines->length ? left : lines->length) * lines->inner, lines->inner, 1};
}

struct row_range call_rows_of_token(const struct call *call, size_t token)
{
    if (call->op & MICROSCALES) {
        const struct lines lines = call_lines(call, call_axis(call), call->token_length);
        const struct span span = call_span_of_group(&lines, token);
        const size_t end = span.end > span.begin ? span.end - span.stride : span.begin;
        return (struct row_range){span.begin / call->columns, end / call->columns + 1};
    }
    if (call->options.per_tensor) {
        return (struct row_range){0, 1};
    }
    const size_t bands = call_bands(call, call->token_rows);

    return call_rows_of_band(call, call->token_rows, token / (call->tokens / bands));
}

static void set_tokens(struct call *call)
{
    const struct call_options *options = &call->options;

    call->matrix_rows = call->ndim > 1 && call->rows > 0 ? call->shape[call->ndim - 2] : 1;
    call->token_rows = options->row_block == 0                            ? 1
                       : (uint64_t)options->row_block < call->matrix_rows ? (size_t)options->row_block
                                                                          : call->matrix_rows;
    if (call->op & MX) {
        const struct lines lines = call_lines(call, call_axis(call), options->mx.block);
        call->token_length = options->mx.block;
        call->tokens = call->op & MICROSCALES ? call_groups(&lines) : 0;
    } else if (call->op & FINDS_SCALES && options->block == 0) {
        call->tokens = options->per_tensor ? 1 : call->rows;
        call->token_length = options->per_tensor ? call->count : call->columns;
    } else if (options->block > 0 && call->columns > 0) {
        call->token_length = (uint64_t)options->block < call->columns ? (size_t)options->block : call->columns;
        call->tokens = call_bands(call, call->token_rows) * ((call->columns - 1) / call->token_length + 1);
    }
}

/* The options, with the rule that follows from the operator. */
static struct call_options options_of(unsigned op, const struct call_options *options)
{
    struct call_options all = *options;

    all.rule = op & SCALED_TO_FLOAT8 ? (op & BY_BLOCK ? RULE_FLOAT8_BLOCK : RULE_FLOAT8) : all.rule;
    if (op & MX) {
        all.mx.block = all.mx.block > 0 ? all.mx.block : 32;
        all.mx.dst_type_max = all.dst_type_max;
    }
    return all;
}

bool call_make(struct call *call, unsigned op, const npuq_tensor *const operands[OPERANDS],
               const struct call_options *options)
{
    *call = (struct call){.op = op, .options = options_of(op, options)};
    for (int i = 0; i < OPERANDS; i++) {
        if (operands[i] && !array_make(&call->operands[i], operands[i])) {
            return false;
        }
    }
    set_shape(call, operands[OPERAND_X]);
    set_channels(call);
    set_tokens(call);
    return set_groups(call);
}

void call_view(struct call *call, unsigned op, const npuq_tensor *x, const struct call_options *options)
{
    *call =
        (struct call){.op = op, .options = options_of(op, options), .operands = {[OPERAND_X] = {x->data, x->dtype, 0}}};
    set_shape(call, x);
    set_channels(call);
    set_tokens(call);
    call->operands[OPERAND_X].count = call->count;
}

void call_release(struct call *call)
{
    for (int i = 0; i < OPERANDS; i++) {
        array_release(&call->operands[i]);
    }
    free(call->row_group);
    *call = (struct call){0};
}

npuq_dtype call_rounded_dtype(unsigned op, npuq_dtype y_dtype)
{
    return y_dtype == NPUQ_UINT8 && op & SYMMETRIC ? NPUQ_INT8 : y_dtype;
}

int call_results(const struct call *call)
{
    return call->op & ASYMMETRIC ? 3 : call->op & (SYMMETRIC | MICROSCALES) ? 2 : 1;
}

size_t call_result_count(const struct call *call, enum result result)
{
    return result == RESULT_Y ? call->count : call->tokens;
}

npuq_dtype call_result_dtype(const struct call *call, enum result result)
{
    return result == RESULT_Y ? call->options.y_dtype : call->op & MICROSCALES ? NPUQ_FLOAT8_E8M0 : NPUQ_FLOAT32;
}

bool result_is_same(enum result result, uint64_t a, uint64_t b)
{
    const float x = npuq_ref_from_bits((uint32_t)a);
    const float y = npuq_ref_from_bits((uint32_t)b);

    if (result == RESULT_Y || a == b) {
        return a == b;
    }
    return x == y || (npuq_ref_is_nan(x) && npuq_ref_is_nan(y));
}

bool array_holds_one_value(const struct array *array)
{
    size_t same = 0;

    while (same < array->count && array_bits(array, same) == array_bits(array, 0)) {
        same++;
    }
    return same == array->count;
}
