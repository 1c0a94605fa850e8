/* SPDX-License-Identifier: BSD-3-Clause */
#include "../view/view.h"
#include "from_integers.h"

#include <inttypes.h>

static const char op[] = "requant";

static npuq_status check_shapes(const npuq_tensor *x, const npuq_tensor *words, const npuq_tensor *bias,
                                const npuq_tensor *y)
{
    const int64_t *columns = &x->shape[x->ndim - 1];
    const int64_t row[] = {1, *columns};
    npuq_status status;

    if ((status = words->ndim == 2 ? npuq_check_shape(op, "words", words, 2, row, "[1, N]")
                                   : npuq_check_columns(op, "words", words, *columns)) != NPUQ_OK ||
        (bias && (status = npuq_check_shape(op, "bias", bias, 1, columns, "the last dimension of x")) != NPUQ_OK)) {
        return status;
    }
    return npuq_check_output_shape(op, x, y);
}

/* Other settings of the unit, which trans_quant_param never makes, select shifts, and integers without sign. */
static const uint64_t shift_bits = (uint64_t)0x1F << 32;
static const uint64_t sign_bit = (uint64_t)1 << 46;
static const uint64_t offset_bits = (uint64_t)0x1FF << 37;

/* The bits that any, and that all of the words have. */
typedef struct bits {
    uint64_t any;
    uint64_t all;
} bits;

static bits with_word(bits b, uint64_t word)
{
    return (bits){b.any | word, b.all & word};
}

static uint64_t word_at(const npuq_params *words, int64_t i)
{
    return *(const uint64_t *)(const void *)(words->data + (ptrdiff_t)i * words->step);
}

static bits bits_of(const npuq_params *words, int64_t count)
{
    const uint64_t *p = (const uint64_t *)(const void *)words->data;
    bits b = {0, UINT64_MAX};

    if (words->step == (ptrdiff_t)sizeof *p) { /* by itself, for compilers to make vectors of */
        for (int64_t i = 0; i < count; i++) {
            b = with_word(b, p[i]);
        }
        return b;
    }
    for (int64_t i = 0; i < count; i++) {
        b = with_word(b, word_at(words, i));
    }
    return b;
}

/* To float16 the unit reads no more than M, so that serving code passes the bits of its scales as they are. */
static npuq_status check_words(const npuq_params *words, int64_t count, bits b, npuq_dtype y_dtype)
{
    const uint64_t must_be_1 = y_dtype == NPUQ_INT8 ? sign_bit : 0;

    if ((b.any & shift_bits) == 0 && (b.all & must_be_1) == must_be_1) {
        return NPUQ_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint64_t word = word_at(words, i);

        if ((word & shift_bits) != 0) {
            return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "words",
                             "element %" PRId64 " is 0x%" PRIX64
                             "; expected bits 36..32 to be 0, for any y: extend the bits of a scale by zeros, not by "
                             "its sign",
                             i, word);
        }
        if ((word & must_be_1) != must_be_1) {
            return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "words",
                             "element %" PRId64 " is 0x%" PRIX64
                             "; expected bit 46 to be 1, as in the words of trans_quant_param: only a FLOAT16 y takes "
                             "words without it",
                             i, word);
        }
    }
    return NPUQ_OK; /* not reached: one of the words has a wrong bit */
}

/* Whether a call is sure to pass all checks but those of the words' values, see walk/dense.h. */
static bool passes_dense(const npuq_tensor *x, const npuq_tensor *words, const npuq_tensor *bias, const npuq_tensor *y,
                         const npuq_executor *executor, npuq_dense *dense)
{
    return npuq_dense_rows(dense, x, NPUQ_TAKES_INT32, y, NPUQ_TAKES_INT8 | NPUQ_TAKES_FLOAT16, executor) &&
           npuq_dense_columns(dense, words, NPUQ_TAKES_INT64 | NPUQ_TAKES_UINT64) &&
           (!bias || npuq_dense_operand(dense, bias, NPUQ_TAKES_INT32, 1, &x->shape[x->ndim - 1], false));
}

npuq_status npuq_requant(const npuq_tensor *x, const npuq_tensor *words, const npuq_tensor *bias, const npuq_tensor *y,
                         const npuq_executor *executor)
{
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_INT32, 1, NPUQ_MAX_NDIM, NPUQ_X},
        {"words", words, NPUQ_TAKES_INT64 | NPUQ_TAKES_UINT64, 1, 2, NPUQ_INPUT},
        {"bias", bias, NPUQ_TAKES_INT32, 1, 1, NPUQ_OPTIONAL_INPUT},
        {"y", y, NPUQ_TAKES_INT8 | NPUQ_TAKES_FLOAT16, 1, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_dense dense;
    const bool is_dense = passes_dense(x, words, bias, y, executor, &dense);
    npuq_status status;

    if (!is_dense && ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK ||
                      (status = check_shapes(x, words, bias, y)) != NPUQ_OK ||
                      (status = npuq_check_executor(op, executor)) != NPUQ_OK ||
                      (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK)) {
        return status;
    }

    const npuq_params params = npuq_column_params(words);
    const int64_t all = npuq_element_count(words);
    const int64_t distinct = params.step == 0 && all > 1 ? 1 : all; /* there may be very many that are one */
    const bits b = bits_of(&params, distinct);

    if ((status = check_words(&params, distinct, b, y->dtype)) != NPUQ_OK) {
        return status;
    }
    if (npuq_element_count(x) > 0) {
        const npuq_from_integers task = {.x = x,
                                         .y = y,
                                         .columns = {.words = params,
                                                     .words_have_offsets = (b.any & offset_bits) != 0,
                                                     .x_bias = npuq_column_params(bias)},
                                         .dense = is_dense ? &dense : NULL};
        npuq_run_from_integers(&task, executor);
    }
    return NPUQ_OK;
}
