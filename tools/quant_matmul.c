/* SPDX-License-Identifier: BSD-3-Clause */
#include "quant_matmul.h"

#include "product.h"
#include "report.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <string.h>

/* The result of the sums, as npu_quant_matmul chooses it. */
enum stage {
    STAGE_NONE, /* the sums themselves */
    STAGE_REQUANT,
    STAGE_DEQUANT,
};

enum { SUMS, WORDS, WEIGHTS };

static enum stage stage_of(const struct arguments *arguments)
{
    switch (wanted_dtype(arguments)) {
    case NPUQ_INT32: return STAGE_NONE;
    case NPUQ_INT8: return STAGE_REQUANT;
    case NPUQ_FLOAT16: return arguments->text[OPTION_PERTOKEN_SCALE] ? STAGE_DEQUANT : STAGE_REQUANT;
    case NPUQ_FLOAT32:
    case NPUQ_BFLOAT16: return STAGE_DEQUANT;
    case NPUQ_UINT8: /* --dtype cannot name these */
    case NPUQ_INT64:
    case NPUQ_UINT64:
    case NPUQ_QUINT4X2: break;
    }
    return STAGE_NONE;
}

/* ---- what goes together ---------------------------------------------------------------------------------------- */

bool check_quant_matmul(const struct arguments *arguments)
{
    static const enum option of_stages[] = {OPTION_SCALE, OPTION_OFFSET, OPTION_PERTOKEN_SCALE};
    const npuq_dtype dtype = wanted_dtype(arguments);

    for (size_t i = 0; dtype == NPUQ_INT32 && i < sizeof of_stages / sizeof of_stages[0]; i++) {
        if (arguments->text[of_stages[i]]) {
            return report_error("--%s: is not applied to the sums, which are the result with --dtype int32; expected "
                                "none",
                                option_name(of_stages[i]));
        }
    }
    if (dtype != NPUQ_INT32 && !arguments->text[OPTION_SCALE]) {
        return report_error("no --scale given; only --dtype int32 needs none");
    }
    if (dtype == NPUQ_INT8 && arguments->text[OPTION_PERTOKEN_SCALE]) {
        return report_error("--pertoken-scale: cannot be applied with --dtype int8; expected --dtype float16, bfloat16 "
                            "or float32");
    }
    if (dtype != NPUQ_INT8 && arguments->text[OPTION_OFFSET]) {
        return report_error("--offset: cannot be applied with --dtype %s; expected --dtype int8",
                            arguments->text[OPTION_DTYPE]);
    }
    return check_tolerance(arguments);
}

/* ---- shapes ---------------------------------------------------------------------------------------------------- */

/* The extent of leading dimension d of a tensor, 1 where the tensor lacks d. `leading`: number of leading dimensions of
 * the result; `kept`: other dimensions of the tensor. */
static int64_t leading_extent(const npuq_tensor *tensor, int kept, int leading, int d)
{
    const int own = d - leading + tensor->ndim - kept;

    return own >= 0 ? tensor->shape[own] : 1;
}

/* The tensor with the leading dimensions of y: repeated along missing dimensions and extents of 1. */
static npuq_tensor repeated(const npuq_tensor *tensor, int kept, const npuq_tensor *y)
{
    const int leading = y->ndim - 2;
    npuq_tensor view = {.data = tensor->data, .dtype = tensor->dtype, .ndim = leading + kept};

    for (int d = 0; d < view.ndim; d++) {
        const int own = d - view.ndim + tensor->ndim;
        view.shape[d] = d < leading ? y->shape[d] : tensor->shape[own];
        view.strides[d] = own >= 0 && tensor->shape[own] == view.shape[d] ? tensor->strides[own] : 0;
    }
    return view;
}

static npuq_tensor shape_of_sums(const npuq_tensor *x1, const npuq_tensor *x2)
{
    npuq_tensor sums = {.dtype = NPUQ_INT32, .ndim = x1->ndim > x2->ndim ? x1->ndim : x2->ndim};
    const int leading = sums.ndim - 2;

    for (int d = 0; d < leading; d++) {
        const int64_t extent = leading_extent(x1, 2, leading, d);
        sums.shape[d] = extent == 1 ? leading_extent(x2, 2, leading, d) : extent;
    }
    sums.shape[leading] = x1->shape[x1->ndim - 2];
    sums.shape[leading + 1] = x2->shape[x2->ndim - 1];
    return sums;
}

/* Whether the tensor can be repeated to the leading dimensions of y. */
static bool fits(const npuq_tensor *tensor, int kept, const npuq_tensor *y)
{
    const int leading = y->ndim - 2;

    for (int d = 0; d < leading; d++) {
        const int64_t extent = leading_extent(tensor, kept, leading, d);
        if (extent != y->shape[d] && extent != 1) {
            return false;
        }
    }
    return tensor->ndim >= kept && tensor->ndim - kept <= leading;
}

/* Factors that fit in memory can have a result beyond the address space. */
static bool is_countable(const npuq_tensor *tensor)
{
    size_t most = SIZE_MAX / sizeof(int32_t);

    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] == 0) {
            return true;
        }
    }
    for (int d = 0; d < tensor->ndim; d++) {
        if ((uint64_t)tensor->shape[d] > most) {
            return false;
        }
        most /= (size_t)tensor->shape[d];
    }
    return true;
}

/* ---- inputs ---------------------------------------------------------------------------------------------------- */

static bool check_factor(const npuq_tensor *tensor, const char *name)
{
    if (tensor->dtype != NPUQ_INT8) {
        return report_error("%s: holds %s; expected i1", name, dtype_of(tensor->dtype)->npy);
    }
    return tensor->ndim >= 2 ||
           report_error("%s: has %d dimension%s; expected 2 or more", name, tensor->ndim, tensor->ndim == 1 ? "" : "s");
}

static bool check_factors(const npuq_tensor *x1, const npuq_tensor *x2)
{
    char shape1[TENSOR_SHAPE_SIZE];
    char shape2[TENSOR_SHAPE_SIZE];

    if (!check_factor(x1, "X1") || !check_factor(x2, "X2")) {
        return false;
    }
    const npuq_tensor y = shape_of_sums(x1, x2);
    const int64_t depth = x1->shape[x1->ndim - 1];
    if (depth == 0) {
        return report_error("X1: its last dimension is 0; expected 1 or more");
    }
    if (depth != x2->shape[x2->ndim - 2]) {
        return report_error("X2: has shape %s; expected the last but one to be %" PRId64 ", as X1 has shape %s",
                            tensor_format_shape(shape2, x2), depth, tensor_format_shape(shape1, x1));
    }
    if (!fits(x1, 2, &y) || !fits(x2, 2, &y)) {
        return report_error("X2: has shape %s; expected the dimensions before the last two to be those of X1, which "
                            "has shape %s, or 1",
                            tensor_format_shape(shape2, x2), tensor_format_shape(shape1, x1));
    }
    return is_countable(&y) || report_error("the result's shape %s is too large: it does not fit in the address space",
                                            tensor_format_shape(shape1, &y));
}

/* A value for each column, or, where one is enough, one for all. Words for each column may be a row. */
static bool check_columns(const struct operands *operands, enum option option, int64_t columns, bool one)
{
    const npuq_tensor *tensor = operands->inputs[option];
    char shape[TENSOR_SHAPE_SIZE];

    if (!tensor) {
        return true;
    }
    const bool is_one = one && tensor->ndim == 1 && tensor->shape[0] == 1;
    const bool is_row = dtype_is_words(tensor->dtype) && tensor->ndim == 2 && tensor->shape[0] == 1;
    if (is_one || ((tensor->ndim == 1 || is_row) && tensor->shape[tensor->ndim - 1] == columns)) {
        return true;
    }
    return report_error("--%s: has shape %s; expected %s[%" PRId64 "]", option_name(option),
                        tensor_format_shape(shape, tensor), one && columns != 1 ? "[1] or " : "", columns);
}

/* Whether an optional input is missing or has the type. */
static bool check_type(const struct operands *operands, enum option option, npuq_dtype dtype)
{
    const npuq_tensor *tensor = operands->inputs[option];

    return !tensor || tensor->dtype == dtype ||
           report_error("--%s: holds %s; expected %s with --dtype %s", option_name(option),
                        dtype_of(tensor->dtype)->npy, dtype_of(dtype)->npy, operands->arguments->text[OPTION_DTYPE]);
}

static bool check_types(const struct operands *operands, enum stage stage)
{
    const npuq_tensor *scale = operands->inputs[OPTION_SCALE];
    const char *dtype = operands->arguments->text[OPTION_DTYPE];

    if (stage == STAGE_REQUANT && !dtype_is_words(scale->dtype) && scale->dtype != NPUQ_FLOAT32) {
        return report_error("--scale: holds %s; expected f4, i8 or u8 with --dtype %s", dtype_of(scale->dtype)->npy,
                            dtype);
    }
    if (stage == STAGE_DEQUANT && !dtype_is_float(scale->dtype)) {
        return report_error("--scale: holds %s; expected f4, f2 or u2 (bfloat16) with --dtype %s%s",
                            dtype_of(scale->dtype)->npy, dtype,
                            operands->inputs[OPTION_PERTOKEN_SCALE] ? " and --pertoken-scale" : "");
    }
    if (operands->inputs[OPTION_OFFSET] && dtype_is_words(scale->dtype)) {
        return report_error("--offset: is in the words already; expected none, or --scale to be f4");
    }
    return check_type(operands, OPTION_OFFSET, NPUQ_FLOAT32) &&
           check_type(operands, OPTION_PERTOKEN_SCALE, NPUQ_FLOAT32) &&
           (stage == STAGE_DEQUANT || check_type(operands, OPTION_BIAS, NPUQ_INT32));
}

bool check_quant_matmul_inputs(const struct operands *operands)
{
    const npuq_tensor *x1 = operands->inputs[OPTION_X1];
    const npuq_tensor *x2 = operands->inputs[OPTION_X2];
    const npuq_tensor *pertoken_scale = operands->inputs[OPTION_PERTOKEN_SCALE];
    const enum stage stage = stage_of(operands->arguments);
    char shape[TENSOR_SHAPE_SIZE];
    char y_shape[TENSOR_SHAPE_SIZE];

    if (!check_factors(x1, x2) || !check_types(operands, stage)) {
        return false;
    }
    const npuq_tensor y = shape_of_sums(x1, x2);
    const int64_t columns = y.shape[y.ndim - 1];
    if (pertoken_scale &&
        (!fits(pertoken_scale, 1, &y) || pertoken_scale->shape[pertoken_scale->ndim - 1] != y.shape[y.ndim - 2])) {
        return report_error("--pertoken-scale: has shape %s; expected one for each row of the result, which has shape "
                            "%s",
                            tensor_format_shape(shape, pertoken_scale), tensor_format_shape(y_shape, &y));
    }
    return check_columns(operands, OPTION_SCALE, columns, true) &&
           check_columns(operands, OPTION_OFFSET, columns, true) &&
           check_columns(operands, OPTION_BIAS, columns, false);
}

/* ---- the call -------------------------------------------------------------------------------------------------- */

/* False for weights saved transposed, in Fortran order, as is common. */
static bool has_contiguous_rows(const npuq_tensor *tensor)
{
    const int last = tensor->ndim - 1;

    return tensor->strides[last] == 1 || tensor->shape[last] <= 1;
}

static bool makes_words(const struct operands *operands)
{
    return stage_of(operands->arguments) == STAGE_REQUANT && operands->inputs[OPTION_SCALE]->dtype == NPUQ_FLOAT32;
}

void shape_quant_matmul(struct operands *operands)
{
    const npuq_tensor *x2 = operands->inputs[OPTION_X2];
    const npuq_tensor sums = shape_of_sums(operands->inputs[OPTION_X1], x2);
    const npuq_tensor none = {.dtype = NPUQ_INT8, .ndim = 1};

    operands->outputs[0] = sums;
    operands->outputs[0].dtype = wanted_dtype(operands->arguments);
    operands->scratch[SUMS] = stage_of(operands->arguments) == STAGE_NONE ? none : sums;
    operands->scratch[WORDS] = makes_words(operands) ? shape_of_words(operands, NPUQ_UINT64) : none;
    operands->scratch[WEIGHTS] =
        has_contiguous_rows(x2) ? none : npuq_tensor_contiguous(NULL, NPUQ_INT8, x2->ndim, x2->shape);
    operands->work *= (size_t)x2->shape[x2->ndim - 1];
}

npuq_status call_quant_matmul(const struct operands *operands, const npuq_executor *executor)
{
    const npuq_tensor *x2 = operands->inputs[OPTION_X2];
    const npuq_tensor *scale = operands->inputs[OPTION_SCALE];
    const npuq_tensor *offset = operands->inputs[OPTION_OFFSET];
    const npuq_tensor *pertoken_scale = operands->inputs[OPTION_PERTOKEN_SCALE];
    const npuq_tensor *bias = operands->inputs[OPTION_BIAS];
    const npuq_tensor *y = &operands->outputs[0];
    const npuq_tensor *words = scale;
    const enum stage stage = stage_of(operands->arguments);
    const npuq_tensor *sums = stage == STAGE_NONE ? y : &operands->scratch[SUMS];
    const npuq_tensor x1 = repeated(operands->inputs[OPTION_X1], 2, y);

    if (!has_contiguous_rows(x2)) {
        copy_rows(x2, &operands->scratch[WEIGHTS]);
        x2 = &operands->scratch[WEIGHTS];
    }
    const npuq_tensor weights = repeated(x2, 2, y);
    multiply(&x1, &weights, stage == STAGE_NONE ? bias : NULL, sums, executor);
    if (stage == STAGE_NONE) {
        return NPUQ_OK;
    }
    if (stage == STAGE_DEQUANT) {
        npuq_tensor rows;
        if (pertoken_scale) {
            rows = repeated(pertoken_scale, 1, y);
            pertoken_scale = &rows;
        }
        return npuq_dequant(sums, scale, pertoken_scale, bias, y, executor);
    }
    if (makes_words(operands)) {
        words = &operands->scratch[WORDS];
        const npuq_status status = npuq_trans_quant_param(scale, offset, NPUQ_ROUND_TRUNCATE, words);
        if (status != NPUQ_OK) {
            return status;
        }
    }
    return npuq_requant(sums, words, bias, y, executor);
}

/* Restores the bits of the scale that trans_quant_param removed. The operator ignores them; but only words with these
 * bits show a kernel that does not. */
static void restore_scale_bits(const npuq_tensor *scale, const npuq_tensor *words)
{
    const size_t count = tensor_element_count(words);
    const float *scales = scale->data;
    uint64_t *word = words->data;

    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &scales[scale->shape[0] == 1 ? 0 : (int64_t)i * scale->strides[0]], sizeof bits);
        word[i] |= bits & 0x1FFF;
    }
}

/* The steps are those of the operator after the product. */
bool describe_quant_matmul(const struct operands *operands, struct request *request)
{
    const npuq_tensor *pertoken_scale = operands->inputs[OPTION_PERTOKEN_SCALE];
    const enum stage stage = stage_of(operands->arguments);

    if (stage == STAGE_NONE) {
        return report_error(
            "--dtype: int32 results are the sums of products themselves, with no steps behind them; expected "
            "another type");
    }
    if (makes_words(operands)) {
        restore_scale_bits(operands->inputs[OPTION_SCALE], &operands->scratch[WORDS]);
    }
    request->op = stage == STAGE_DEQUANT ? DEQUANT : REQUANT;
    request->operands[OPERAND_X] = &operands->scratch[SUMS];
    request->operands[OPERAND_SCALE] =
        makes_words(operands) ? &operands->scratch[WORDS] : operands->inputs[OPTION_SCALE];
    request->operands[OPERAND_BIAS] = operands->inputs[OPTION_BIAS];
    if (pertoken_scale) {
        request->row_scale = repeated(pertoken_scale, 1, &operands->outputs[0]);
        request->operands[OPERAND_ROW_SCALE] = &request->row_scale;
    }
    request->options = (struct call_options){.axis = -1, .y_dtype = operands->outputs[0].dtype};
    return true;
}
