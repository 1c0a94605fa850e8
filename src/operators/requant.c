/* SPDX-License-Identifier: BSD-3-Clause */
#include "../backends/dispatch.h"
#include "../kinds/from_integers.h"

#define NPUQ_PLACE(ROLE) NPUQ_INTEGERS_##ROLE
enum { X = NPUQ_INTEGERS_X, Y = NPUQ_INTEGERS_Y, WORDS = NPUQ_INTEGERS_SCALE, BIAS = NPUQ_INTEGERS_ADDEND };

static npuq_status check(const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *x = arguments->tensors[X];
    const npuq_shape_facts facts = {.ndim = x->ndim, .shape = x->shape};
    const int64_t columns = x->shape[x->ndim - 1];
    const int64_t row[] = {1, columns};
    npuq_status status;

    (void)options;
    if ((status = arguments->tensors[WORDS]->ndim == 2
                      ? npuq_check_shape(arguments, WORDS, 2, row, "a row as long as the last dimension of x")
                      : npuq_check_columns(arguments, WORDS, columns)) != NPUQ_OK ||
        (status = npuq_check_shape_by(arguments, BIAS, NPUQ_SHAPE_OF_COLUMNS, &facts, "the last dimension of x")) !=
            NPUQ_OK) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

/* Other settings of the unit, which trans_quant_param never makes, select shifts, and integers without sign. */
static const uint64_t shift_bits = (uint64_t)0x1F << 32;
static const uint64_t sign_bit = (uint64_t)1 << 46;
static const uint64_t offset_bits = (uint64_t)0x1FF << 37;

static uint64_t word_at(const npuq_params *words, int64_t i)
{
    return *(const uint64_t *)(const void *)(words->data + (ptrdiff_t)i * words->stride);
}

static npuq_word_bits bits_of(const npuq_params *words, int64_t count)
{
    npuq_word_bits b = {0, UINT64_MAX};

    if (words->stride == (ptrdiff_t)sizeof(uint64_t)) {
        return npuq_kernels()->word_bits((const uint64_t *)(const void *)words->data, (size_t)count);
    }
    for (int64_t i = 0; i < count; i++) {
        b.any |= word_at(words, i);
        b.all &= word_at(words, i);
    }
    return b;
}

/* To float16 the unit reads no more than M, so that serving code passes the bits of its scales as they are. */
static npuq_status check_words(const npuq_params *words, int64_t count, npuq_word_bits b, npuq_dtype y_dtype)
{
    const uint64_t must_be_1 = y_dtype == NPUQ_INT8 ? sign_bit : 0;

    if ((b.any & shift_bits) == 0 && (b.all & must_be_1) == must_be_1) {
        return NPUQ_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint64_t word = word_at(words, i);

        if ((word & shift_bits) != 0) {
            return npuq_fail(NPUQ_ERROR_ARGUMENT, "requant", "words",
                             "element %lld is 0x%llX; expected bits 36..32 to be 0, for any y: extend the bits of a "
                             "scale by zeros, not by its sign",
                             (long long)i, (unsigned long long)word);
        }
        if ((word & must_be_1) != must_be_1) {
            return npuq_fail(NPUQ_ERROR_ARGUMENT, "requant", "words",
                             "element %lld is 0x%llX; expected bit 46 to be 1, as in the words of trans_quant_param: "
                             "only a FLOAT16 y takes words without it",
                             (long long)i, (unsigned long long)word);
        }
    }
    return NPUQ_OK; /* not reached: one of the words has a wrong bit */
}

static npuq_status make_plan(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *tensor = arguments->tensors[WORDS];
    const int last = tensor->ndim - 1;
    const int64_t all = npuq_count_elements(tensor);
    const npuq_params words = {.data = tensor->data,
                               .stride = tensor->shape[last] > 1 ? (ptrdiff_t)tensor->strides[last] * 8 : 0};
    const int64_t distinct = !words.data ? 0 : words.stride == 0 && all > 1 ? 1 : all; /* very many may be one */
    const npuq_word_bits b = bits_of(&words, distinct);
    npuq_integers_own *own = npuq_set_own(plan);
    npuq_status status;

    if ((status = check_words(&words, distinct, b, arguments->tensors[Y]->dtype)) == NPUQ_OK &&
        (status = npuq_plan_from_integers(plan, arguments, options)) == NPUQ_OK) {
        own->words_have_offsets = arguments->tensors[Y]->dtype == NPUQ_INT8 && (b.any & offset_bits) != 0;
    }
    return status;
}

static const npuq_operator requant = {NPUQ_SIGNATURE(requant), check, make_plan, npuq_dequantise_tile, NULL};

npuq_status npuq_requant(const npuq_tensor *x, const npuq_tensor *words, const npuq_tensor *bias, const npuq_tensor *y,
                         const npuq_executor *executor)
{
    return npuq_call_inlined(&requant, requant.check, requant.plan, NPUQ_TENSORS(requant), NULL, executor);
}

npuq_status npuq_prepare_requant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *words,
                                 const npuq_tensor *bias, const npuq_tensor *y)
{
    return npuq_prepare_operator(call, &requant, NPUQ_TENSORS(requant), NULL);
}
