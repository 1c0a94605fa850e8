/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/blocks.h"

#define NPUQ_PLACE(ROLE) NPUQ_DYNAMIC_##ROLE
enum { X = NPUQ_DYNAMIC_X, Y = NPUQ_DYNAMIC_Y, SCALE = NPUQ_DYNAMIC_SCALE };

typedef struct block_options {
    int64_t row_block;
    int64_t block;         /* columns */
    uint32_t min_scale;    /* the bits of a float */
    uint32_t dst_type_max; /* alike; of 8-bit floats */
} block_options;

static npuq_status check_block(const char *op, const char *name, int64_t block)
{
    return block < 1 ? npuq_fail(NPUQ_ERROR_ARGUMENT, op, name, "is %lld; expected 1 or more", (long long)block)
                     : NPUQ_OK;
}

static npuq_status check_options(const npuq_arguments *arguments, const block_options *o)
{
    const char *op = arguments->signature->op;
    const npuq_type_info *y = arguments->infos[Y];
    const npuq_tensor *x = arguments->tensors[X];
    const int64_t columns = x->shape[x->ndim - 1];
    const int64_t elements = (int64_t)npuq_count_elements_in(y->word);
    const npuq_status status = check_block(op, "block", o->block);

    if (status != NPUQ_OK) {
        return status;
    }
    if (o->block % elements != 0 && o->block < columns) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "block",
                         "is %lld; expected a multiple of %lld, as y is %s, or at least %lld, the last dimension of x",
                         (long long)o->block, (long long)elements, y->name, (long long)columns);
    }
    return npuq_check_positive(op, "min_scale", o->min_scale);
}

static npuq_status check(const npuq_arguments *arguments, const void *options)
{
    const block_options *o = options;
    const npuq_tensor *x = arguments->tensors[X];
    const npuq_shape_facts facts = {.ndim = x->ndim, .shape = x->shape, .block = o->block};
    npuq_status status;

    if ((status = check_options(arguments, o)) != NPUQ_OK ||
        (status = npuq_check_output_shape(arguments, X, Y)) != NPUQ_OK) {
        return status;
    }
    return npuq_check_shape_by(arguments, SCALE, NPUQ_SHAPE_OF_BLOCKS, &facts,
                               "the shape of x, its last dimension divided by block and rounded up");
}

/* What the device takes for hifloat8, by the bits of a float; 0 stands for the largest value. */
static npuq_status check_block_dmax(const npuq_arguments *arguments, uint32_t dst_type_max)
{
    static const uint16_t upper_halves[] = {0x4170, 0x4260, 0x4360, 0x4700}; /* 15, 56, 224, 32768 */
    const bool is_hifloat8 = arguments->infos[Y]->type == NPUQ_TYPE_HIFLOAT8;
    bool taken = (dst_type_max & 0x7FFFFFFF) == 0;

    for (size_t i = 0; is_hifloat8 && i < sizeof upper_halves / sizeof upper_halves[0]; i++) {
        taken = taken || dst_type_max == (uint32_t)upper_halves[i] << 16;
    }
    return taken ? NPUQ_OK
                 : npuq_fail(NPUQ_ERROR_ARGUMENT, arguments->signature->op, "dst_type_max",
                             "is another number; expected 0%s, as y is %s", is_hifloat8 ? ", 15, 56, 224 or 32768" : "",
                             arguments->infos[Y]->name);
}

static npuq_status check_float8(const npuq_arguments *arguments, const void *options)
{
    const block_options *o = options;
    const char *op = arguments->signature->op;
    const npuq_tensor *x = arguments->tensors[X];
    const npuq_shape_facts facts = {.ndim = x->ndim, .shape = x->shape, .block = o->block, .row_block = o->row_block};
    npuq_status status;

    if ((status = check_block(op, "row_block", o->row_block)) != NPUQ_OK ||
        (status = check_block(op, "column_block", o->block)) != NPUQ_OK ||
        (status = npuq_check_positive(op, "min_scale", o->min_scale)) != NPUQ_OK ||
        (status = check_block_dmax(arguments, o->dst_type_max)) != NPUQ_OK ||
        (status = npuq_check_output_shape(arguments, X, Y)) != NPUQ_OK) {
        return status;
    }
    return npuq_check_shape_by(arguments, SCALE, NPUQ_SHAPE_OF_ROW_BLOCKS, &facts,
                               "the shape of x, its last two dimensions divided by row_block and column_block and "
                               "rounded up");
}

/* A row of blocks of several rows. */
static void quantise_rectangles(const npuq_plan *plan, const npuq_tile *tile)
{
    for (size_t i = 0; i * plan->block < tile->cols; i++) {
        const npuq_tile part = npuq_select_blocks(plan, tile, 0, i, tile->rows, false);

        npuq_quantise_by_one_range(plan, &part);
    }
}

static npuq_status plan_blocks(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const block_options *o = options;
    const npuq_tensor *x = arguments->tensors[X];
    const int64_t rows = x->ndim > 1 ? x->shape[x->ndim - 2] : 1;
    const int64_t row_block = o->row_block < rows ? o->row_block : rows;
    npuq_dynamic_own *own = npuq_set_own(plan);

    if (!npuq_start_blocks(plan, arguments, o->block, row_block == 1)) {
        return NPUQ_OK;
    }
    own->form = NPUQ_SYMMETRIC_BLOCK;
    own->min_scale = o->min_scale;
    if (npuq_is_small_float(plan->setup.types[Y])) {
        npuq_set_divisors(plan, NPUQ_SYMMETRIC_BLOCK_DIVISOR, o->dst_type_max);
    } else {
        npuq_make_uint8_of_int8(&plan->setup);
    }
    if (row_block > 1) {
        plan->compute = quantise_rectangles;
        npuq_finish_rectangles(plan, arguments, (size_t)row_block, NPUQ_WHOLE_ROWS);
    } else {
        npuq_finish_blocks(plan, arguments);
    }
    return NPUQ_OK;
}

static const npuq_operator operator_of_blocks = {NPUQ_SIGNATURE(dynamic_block_quant), check, plan_blocks,
                                                 npuq_quantise_blocks, NULL};

npuq_status npuq_dynamic_block_quant(const npuq_tensor *x, int64_t block, float min_scale, const npuq_tensor *y,
                                     const npuq_tensor *scale, const npuq_executor *executor)
{
    return npuq_call_inlined(&operator_of_blocks, operator_of_blocks.check, operator_of_blocks.plan,
                             NPUQ_TENSORS(dynamic_block_quant),
                             &(block_options){1, block, npuq_bits_of_argument(&min_scale), 0}, executor);
}

npuq_status npuq_prepare_dynamic_block_quant(npuq_call *call, const npuq_tensor *x, int64_t block, float min_scale,
                                             const npuq_tensor *y, const npuq_tensor *scale)
{
    return npuq_prepare_operator(call, &operator_of_blocks, NPUQ_TENSORS(dynamic_block_quant),
                                 &(block_options){1, block, npuq_bits_of_argument(&min_scale), 0});
}

static const npuq_operator to_float8 = {NPUQ_SIGNATURE(dynamic_block_quant_float8), check_float8, plan_blocks,
                                        npuq_quantise_blocks, NULL};

npuq_status npuq_dynamic_block_quant_float8(const npuq_tensor *x, int64_t row_block, int64_t column_block,
                                            float min_scale, float dst_type_max, const npuq_tensor *y,
                                            const npuq_tensor *scale, const npuq_executor *executor)
{
    return npuq_call_inlined(&to_float8, to_float8.check, to_float8.plan, NPUQ_TENSORS(dynamic_block_quant_float8),
                             &(block_options){row_block, column_block, npuq_bits_of_argument(&min_scale),
                                              npuq_bits_of_argument(&dst_type_max)},
                             executor);
}

npuq_status npuq_prepare_dynamic_block_quant_float8(npuq_call *call, const npuq_tensor *x, int64_t row_block,
                                                    int64_t column_block, float min_scale, float dst_type_max,
                                                    const npuq_tensor *y, const npuq_tensor *scale)
{
    return npuq_prepare_operator(call, &to_float8, NPUQ_TENSORS(dynamic_block_quant_float8),
                                 &(block_options){row_block, column_block, npuq_bits_of_argument(&min_scale),
                                                  npuq_bits_of_argument(&dst_type_max)});
}
