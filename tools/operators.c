/* SPDX-License-Identifier: BSD-3-Clause */
#include "operators.h"

#include "quant_matmul.h"
#include "report.h"
#include "tensor_file.h"

#include <operators.def>

#include <string.h>

/* ---- options --------------------------------------------------------------------------------------------------- */

static bool is_dividing(const struct arguments *arguments)
{
    return strcmp(arguments->text[OPTION_DIV_MODE], "true") == 0;
}

/* The library reports the same, but names y, which is not an option's name. */
static bool check_quantize(const struct arguments *arguments)
{
    const char *dtype = arguments->text[OPTION_DTYPE];
    const bool divides = is_dividing(arguments);

    if (divides && strcmp(dtype, "quint4x2") == 0) {
        return report_error("--dtype: quint4x2 (int4) needs --div-mode false; expected int8, uint8 or int32 without");
    }
    if (!divides && strcmp(dtype, "int8") != 0 && strcmp(dtype, "quint4x2") != 0) {
        return report_error("--dtype: %s needs --div-mode true; expected int8 or quint4x2 (int4) without", dtype);
    }
    return true;
}

npuq_dtype wanted_dtype(const struct arguments *arguments)
{
    return dtype_named(arguments->text[OPTION_DTYPE])->dtype;
}

bool check_tolerance_of(const struct arguments *arguments, npuq_dtype dtype)
{
    const bool floats = dtype_is_float(dtype);
    const enum option wrong = floats ? OPTION_MAX_DIFF : OPTION_MAX_ULP;

    if (dtype_is_words(dtype) && (arguments->number[OPTION_MAX_DIFF] != 0 || arguments->number[OPTION_MAX_ULP] != 0)) {
        return report_error("--max-diff, --max-ulp: do not apply to %s: words are compared as bits",
                            dtype_of(dtype)->name);
    }
    return arguments->number[wrong] == 0 ||
           report_error("--%s: does not apply to a result of type %s; expected --%s", option_name(wrong),
                        dtype_of(dtype)->name, option_name(floats ? OPTION_MAX_ULP : OPTION_MAX_DIFF));
}

bool check_tolerance(const struct arguments *arguments)
{
    return check_tolerance_of(arguments, wanted_dtype(arguments));
}

/* ---- outputs --------------------------------------------------------------------------------------------------- */

static npuq_tensor shaped_like(const npuq_tensor *input, npuq_dtype dtype)
{
    npuq_tensor output = {.dtype = dtype, .ndim = input->ndim};

    memcpy(output.shape, input->shape, sizeof output.shape);
    if (output.ndim > 0) {
        /* Unsigned: the extents of an empty tensor may be anything. */
        const uint64_t last = (uint64_t)output.shape[output.ndim - 1] << dtype_of(input->dtype)->log2_values;
        output.shape[output.ndim - 1] = (int64_t)(last >> dtype_of(dtype)->log2_values);
    }
    return output;
}

static void shape_as_x(struct operands *operands)
{
    operands->outputs[0] = shaped_like(operands->inputs[OPTION_X], wanted_dtype(operands->arguments));
}

npuq_tensor shape_of_words(const struct operands *operands, npuq_dtype dtype)
{
    const npuq_tensor *scale = operands->inputs[OPTION_SCALE];
    const npuq_tensor *offset = operands->inputs[OPTION_OFFSET];
    /* torch_npu's choice, where several shapes are right. */
    const bool as_scale = !offset || scale->ndim != 1 || scale->shape[0] > offset->shape[0];
    npuq_tensor words = shaped_like(as_scale ? scale : offset, dtype);

    if (as_scale && offset && offset->ndim == 1 && scale->ndim == 2 && scale->shape[1] == 1) {
        words.shape[1] = offset->shape[0];
    }
    return words;
}

static void shape_as_words(struct operands *operands)
{
    operands->outputs[0] = shape_of_words(operands, wanted_dtype(operands->arguments));
}

static bool is_chosen(const struct arguments *arguments, enum option option, const char *value)
{
    return arguments->text[option] && strcmp(arguments->text[option], value) == 0;
}

static void shape_with_parameters(struct operands *operands)
{
    const npuq_tensor *x = operands->inputs[OPTION_X];
    npuq_tensor parameters = shaped_like(x, NPUQ_FLOAT32);

    shape_as_x(operands);
    if (is_chosen(operands->arguments, OPTION_QUANT_MODE, "pertensor")) {
        parameters.ndim = 1;
        parameters.shape[0] = 1;
    } else if (parameters.ndim > 0) {
        parameters.ndim--;
        /* The library refuses rows of no elements. A header may promise any number of them, so they must not cost
         * memory. */
        if (x->shape[parameters.ndim] == 0) {
            parameters.shape[0] = 0;
        }
    }
    operands->outputs[1] = parameters;
    operands->outputs[2] = parameters;
}

static int64_t block_of(const struct operands *operands)
{
    return operands->arguments->number[OPTION_BLOCK];
}

static void shape_with_blocks(struct operands *operands)
{
    npuq_tensor *scale = &operands->outputs[1];

    shape_as_x(operands);
    *scale = shaped_like(operands->inputs[OPTION_X], NPUQ_FLOAT32);
    if (scale->ndim > 0) {
        const int64_t block = block_of(operands);
        int64_t *last = &scale->shape[scale->ndim - 1];
        *last = *last / block + (*last % block != 0);
    }
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* torch_npu's default is 1. When multiplying, 1 also means the last dimension of a 1-D x. When dividing, a 1-D x has no
 * dimension 1. */
static int32_t axis_of(const struct operands *operands)
{
    const struct arguments *arguments = operands->arguments;
    const int32_t usual = is_dividing(arguments) && operands->inputs[OPTION_X]->ndim == 1 ? 0 : 1;

    return arguments->text[OPTION_AXIS] ? (int32_t)arguments->number[OPTION_AXIS] : usual;
}

static bool div_mode_of(const struct operands *operands)
{
    return is_dividing(operands->arguments);
}

static npuq_round_mode round_mode_of(const struct operands *operands)
{
    return is_chosen(operands->arguments, OPTION_ROUND_MODE, "1") ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE;
}

static npuq_quant_mode quant_mode_of(const struct operands *operands)
{
    return is_chosen(operands->arguments, OPTION_QUANT_MODE, "pertensor") ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN;
}

static npuq_scale_form scale_form_of(const struct operands *operands)
{
    return is_chosen(operands->arguments, OPTION_SCALE_FORM, "inverse") ? NPUQ_SCALE_INVERSE : NPUQ_SCALE_PRODUCT;
}

static float min_scale_of(const struct operands *operands)
{
    return operands->arguments->min_scale;
}

#define TENSOR(name, NAME, role) operands->inputs[OPTION_##NAME]
#define OUTPUT(name, NAME, role) &operands->outputs[RESULT_##role]
#define OPTION(name, NAME, type) name##_of(operands)
#define GIVEN(name)              ARGUMENTS_##name(TENSOR, TENSOR, TENSOR, OUTPUT, OPTION)
#define CALL_WITH(name)          npuq_##name(GIVEN(name), executor)
#define CALL_WITHOUT(name)       ((void)executor, npuq_##name(GIVEN(name)))
#define CALL(name, NAME, EXECUTOR)                                                                                     \
    static npuq_status call_##name(const struct operands *operands, const npuq_executor *executor)                     \
    {                                                                                                                  \
        return CALL_##EXECUTOR(name);                                                                                  \
    }
EACH_OPERATOR(CALL)

/* ---- steps ----------------------------------------------------------------------------------------------------- */

#define CHOOSE(name, NAME, role)  (operand == OPERAND_##role ? (void)(option = OPTION_##NAME) : (void)0)
#define IGNORE(name, NAME, other) (void)0
#define OPTION_OF(name, NAME, EXECUTOR)                                                                                \
    static enum option option_of_##name(enum operand operand)                                                          \
    {                                                                                                                  \
        enum option option = INPUTS;                                                                                   \
        ARGUMENTS_##name(CHOOSE, CHOOSE, CHOOSE, IGNORE, IGNORE);                                                      \
        return option;                                                                                                 \
    }
EACH_OPERATOR(OPTION_OF)

bool describe_call(const struct operator_command *command, const struct operands *operands, struct request *request)
{
    const struct arguments *arguments = operands->arguments;

    if (command->command == FOR_QUANT_MATMUL) {
        return describe_quant_matmul(operands, request);
    }
    request->op = command->op;
    for (int i = 0; i < OPERANDS; i++) {
        const enum option option = command->option_of((enum operand)i);
        request->operands[i] = option == INPUTS ? NULL : operands->inputs[option];
    }
    request->options = (struct call_options){
        .axis = command->op == QUANTIZE ? axis_of(operands) : -1,
        .divides = command->op == QUANTIZE && is_dividing(arguments),
        .per_tensor = quant_mode_of(operands) == NPUQ_PER_TENSOR,
        .inverse_form = scale_form_of(operands) == NPUQ_SCALE_INVERSE,
        .rounds_to_nearest = round_mode_of(operands) == NPUQ_ROUND_NEAREST,
        .block = block_of(operands),
        .min_scale = min_scale_of(operands),
        .y_dtype = operands->outputs[0].dtype,
    };
    return true;
}

#define OF_OPERATOR(name, NAME) .command = FOR_##NAME, .op = NAME, .call = call_##name, .option_of = option_of_##name

const struct operator_command operators[COMMANDS] = {
    {
        .name = "quantize",
        OF_OPERATOR(quantize, QUANTIZE),
        .positional = OPTION_X,
        .outputs = 1,
        .threaded = true,
        .summary = "quantise with given scales and zero points (npu_quantize)",
        .about = "y = round(x / scale + zero point), or round(x * scale + zero point) with --div-mode false, "
                 "clamped to the result's type.",
        .example = "npuquant quantize x.npy --scales s.npy --zero-points z.npy --axis -1 --dtype uint8 -o y.npy",
        .check = check_quantize,
        .shape_outputs = shape_as_x,
    },
    {
        .name = "group-quant",
        OF_OPERATOR(group_quant, GROUP_QUANT),
        .positional = OPTION_X,
        .outputs = 1,
        .threaded = true,
        .summary = "quantise with the scales of each group of rows (npu_group_quant)",
        .about = "y = round(x * scale of the row's group + offset), clamped to the result's type.",
        .example = "npuquant group-quant x.npy --bf16 x --scale s.npy --group-index ends.npy --dtype quint4x2 -o y.npy",
        .shape_outputs = shape_as_x,
    },
    {
        .name = "trans-quant-param",
        OF_OPERATOR(trans_quant_param, TRANS_QUANT_PARAM),
        .positional = OPTION_SCALE,
        .outputs = 1,
        .summary = "pack scales and offsets for the matrix unit (npu_trans_quant_param)",
        .about = "Packs scales, shortened to 19 bits, and offsets into the 64-bit words of the matrix unit.",
        .example = "npuquant trans-quant-param scale.npy --offset offset.npy --round-mode 1 -o words.npy",
        .shape_outputs = shape_as_words,
    },
    {
        .name = "dynamic-quant",
        OF_OPERATOR(dynamic_quant, DYNAMIC_QUANT),
        .positional = OPTION_X,
        .outputs = 2,
        .threaded = true,
        .summary = "quantise with scales from the data (npu_dynamic_quant)",
        .about = "Finds the scale of each row, or of the tensor, from its largest magnitude; "
                 "y = round(x * (127 / largest)), clamped to the result's type; 7 in place of 127 for quint4x2.",
        .example = "npuquant dynamic-quant x.npy --smooth-scales smooth.npy -o y.npy --scale-output rows.npy",
        .shape_outputs = shape_with_parameters,
    },
    {
        .name = "dynamic-quant-asymmetric",
        OF_OPERATOR(dynamic_quant_asymmetric, DYNAMIC_QUANT_ASYMMETRIC),
        .positional = OPTION_X,
        .outputs = 3,
        .threaded = true,
        .summary = "quantise with scales and offsets from the data (npu_dynamic_quant_asymmetric)",
        .about = "Finds scale and offset of each row, or of the tensor, from its smallest and largest value; "
                 "y = round(x * (1 / scale) + offset), clamped to the result's type.",
        .example =
            "npuquant dynamic-quant-asymmetric x.npy -o y.npy --scale-output scale.npy --offset-output offset.npy",
        .shape_outputs = shape_with_parameters,
    },
    {
        .name = "dynamic-block-quant",
        OF_OPERATOR(dynamic_block_quant, DYNAMIC_BLOCK_QUANT),
        .positional = OPTION_X,
        .outputs = 2,
        .threaded = true,
        .summary = "quantise with a scale for each block of columns (npu_dynamic_block_quant)",
        .about = "Finds the scale of each block of columns of a row from its largest magnitude; "
                 "y = round(x * ((1 / largest) * 127)), clamped to the result's type; 7 in place of 127 for quint4x2.",
        .example = "npuquant dynamic-block-quant x.npy --block 64 -o y.npy --scale-output blocks.npy",
        .shape_outputs = shape_with_blocks,
    },
    {
        .name = "anti-quant",
        OF_OPERATOR(anti_quant, ANTI_QUANT),
        .positional = OPTION_X,
        .outputs = 1,
        .threaded = true,
        .packed = true,
        .summary = "convert int8 or int4 values back to floating point (npu_anti_quant)",
        .about = "y = (x + offset) * scale, rounded to the result's type.",
        .example = "npuquant anti-quant weight.npy --scale scale.npy --offset offset.npy --dtype bfloat16 -o y.npy",
        .shape_outputs = shape_as_x,
    },
    {
        .name = "dequant",
        OF_OPERATOR(dequant, DEQUANT),
        .positional = OPTION_X,
        .outputs = 1,
        .threaded = true,
        .summary = "convert int32 sums of products back to floating point (DequantBias)",
        .about = "y = x * weight scale * activation scale + bias, rounded to the result's type. A bias of integers is "
                 "added to x first.",
        .example = "npuquant dequant sums.npy --weight-scale scale.npy --activation-scale rows.npy -o y.npy",
        .shape_outputs = shape_as_x,
    },
    {
        .name = "requant",
        OF_OPERATOR(requant, REQUANT),
        .positional = OPTION_X,
        .outputs = 1,
        .threaded = true,
        .summary = "convert int32 sums of products to int8 or float16, as the matrix unit does",
        .about = "float16: y = (x + bias) * scale. int8: round((x + bias) * scale) is clamped to -256..255, the offset "
                 "is added, and the sum is clamped to -128..127. "
                 "Scale and offset are in the words that trans-quant-param makes.",
        .example = "npuquant requant sums.npy --words words.npy --dtype float16 -o y.npy",
        .check = check_tolerance,
        .shape_outputs = shape_as_x,
    },
    {
        .name = "quant-matmul",
        .command = FOR_QUANT_MATMUL,
        .positional = OPTION_X1,
        .outputs = 1,
        .scratch = 3,
        .threaded = true,
        .summary = "multiply int8 matrices, then dequant or requant (npu_quant_matmul)",
        .about =
            "Multiplies X1 by X2. If the result is int8, or float16 without --pertoken-scale, requant follows; where "
            "--scale is f4, trans-quant-param makes its words. If the result is bfloat16, float32, or float16 with "
            "--pertoken-scale, dequant follows. With --dtype int32 the sums, modulo 2^32, are the result.",
        .example = "npuquant quant-matmul x1.npy weight.npy --scale scale.npy --pertoken-scale rows.npy "
                   "--dtype bfloat16 -o y.npy",
        .check = check_quant_matmul,
        .check_inputs = check_quant_matmul_inputs,
        .shape_outputs = shape_quant_matmul,
        .call = call_quant_matmul,
        .op = DEQUANT | REQUANT,
    },
};
