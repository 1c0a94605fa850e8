/* SPDX-License-Identifier: BSD-3-Clause */
#include "../backends/dispatch.h"
#include "../fp_state.h"
#include "../plan/plan.h"

#include <string.h>

static const char op[] = "trans_quant_param";

enum { WORDS_X = NPUQ_AT_X, WORDS_Y = NPUQ_AT_Y, WORDS_OFFSET = NPUQ_AFTER_Y };
#define NPUQ_PLACE(ROLE) WORDS_##ROLE
enum { SCALE = WORDS_X, Y = WORDS_Y, OFFSET = WORDS_OFFSET };

static const npuq_signature signature = NPUQ_SIGNATURE(trans_quant_param);

static int64_t last_extent(const npuq_tensor *tensor)
{
    return tensor->shape[tensor->ndim - 1];
}

static npuq_status check_scale(const npuq_tensor *scale, const npuq_tensor *offset)
{
    for (int d = 0; d < scale->ndim; d++) {
        if (scale->shape[d] == 0) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale", "dimension %d is 0; expected 1 or more", d);
        }
    }
    if (offset && scale->ndim == 2 && scale->shape[0] != 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale", "dimension 0 is %lld; expected 1, as offset is given",
                         (long long)scale->shape[0]);
    }
    return NPUQ_OK;
}

/* Both are one row. If both are 2-D, they have one shape; otherwise as many elements, or one has one element. */
static npuq_status check_offset(const npuq_arguments *arguments)
{
    const npuq_tensor *scale = arguments->tensors[SCALE];
    const npuq_tensor *offset = arguments->tensors[OFFSET];
    const int64_t n = last_extent(scale);
    const int64_t size = last_extent(offset);

    if (scale->ndim == 2 && offset->ndim == 2) {
        return npuq_check_shape(arguments, OFFSET, 2, scale->shape, "the shape of scale");
    }
    if (offset->ndim == 2 && offset->shape[0] != 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "offset", "dimension 0 is %lld; expected 1, a row",
                         (long long)offset->shape[0]);
    }
    if (size != 1 && (size == 0 || (n != 1 && size != n))) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "offset",
                         "dimension %d is %lld; expected %s%lld, as scale has %lld element%s", (int)offset->ndim - 1,
                         (long long)size, n == 1 ? "at least " : "1 or ", (long long)n, (long long)n, npuq_plural(n));
    }
    return NPUQ_OK;
}

static npuq_status check_y(const npuq_arguments *arguments)
{
    const npuq_tensor *scale = arguments->tensors[SCALE];
    const npuq_tensor *offset = arguments->tensors[OFFSET];
    static const char rule[] = "[n] or [1, n], with n the elements of the longer one of scale and offset";
    const bool offset_is_longer = offset && last_extent(offset) > last_extent(scale);
    const npuq_tensor *longer = offset_is_longer ? offset : scale;
    const int64_t row[] = {1, last_extent(longer)};

    if (offset && offset->ndim != scale->ndim) {
        return arguments->tensors[Y]->ndim == 1 ? npuq_check_shape(arguments, Y, 1, row + 1, rule)
                                                : npuq_check_shape(arguments, Y, 2, row, rule);
    }
    return npuq_check_shape(arguments, Y, longer->ndim, longer->shape,
                            offset_is_longer ? "the shape of offset" : "the shape of scale");
}

enum { TILE = 512 };

/* One row, a tile of columns at a time. Columns that are not contiguous go through the stack. */
static void pack_row(const npuq_row_kernels *kernels, const npuq_tile *tile, npuq_round_mode round_mode)
{
    uint32_t scales[TILE];
    float offsets[TILE + NPUQ_MAX_REPEAT];
    uint64_t words[TILE];
    const bool read_through = tile->places[SCALE].col_stride == (ptrdiff_t)sizeof *scales;
    const bool write_through = tile->places[Y].col_stride == (ptrdiff_t)sizeof *words;
    const bool has_offsets = tile->places[OFFSET].data != NULL;
    const bool offsets_ready = !has_offsets || tile->places[OFFSET].col_stride == (ptrdiff_t)sizeof *offsets;
    const bool offsets_alike = tile->places[OFFSET].col_stride == 0;
    const size_t most = read_through && write_through && offsets_ready ? tile->cols : TILE;
    const float *offset_run = NULL;

    for (size_t col = 0; col < tile->cols; col += most) {
        const size_t n = tile->cols - col < most ? tile->cols - col : most;
        const npuq_params offset = {.data = tile->places[OFFSET].data,
                                    .type = NPUQ_TYPE_FLOAT32,
                                    .stride = tile->places[OFFSET].col_stride,
                                    .repeat = 1};
        const npuq_params offset_here = npuq_skip_params(&offset, col);
        const char *scale = tile->places[SCALE].data + (ptrdiff_t)col * tile->places[SCALE].col_stride;
        char *y = tile->places[Y].data + (ptrdiff_t)col * tile->places[Y].col_stride;
        uint64_t *target = write_through ? (uint64_t *)(void *)y : words;

        assert(n <= TILE || (offsets_ready && read_through && write_through));
        for (size_t i = 0; !read_through && i < n; i++) { /* as bits: a float copy may change a signalling NaN */
            memcpy(&scales[i], scale + (ptrdiff_t)i * tile->places[SCALE].col_stride, sizeof *scales);
        }
        if (has_offsets && (col == 0 || !offsets_alike)) {
            offset_run = npuq_convert_params(kernels, &offset_here, n, offsets);
        }
        kernels->pack(read_through ? (const uint32_t *)(const void *)scale : scales, offset_run, target, n, round_mode);
        for (size_t i = 0; !write_through && i < n; i++) {
            memcpy(y + (ptrdiff_t)i * tile->places[Y].col_stride, &words[i], sizeof *words);
        }
    }
}

/* A row goes along y's last dimension; one element serves all of y. */
static void add_parameter(npuq_space *space, int operand, const npuq_tensor *tensor, const npuq_tensor *y)
{
    const int last = tensor->ndim - 1;

    if (tensor->ndim == 2 && tensor->shape[0] > 1) {
        npuq_add_operand(space, operand, tensor);
    } else {
        npuq_add_operand_along(space, operand, tensor, tensor->shape[last] > 1 ? y->ndim - 1 : -1,
                               tensor->strides[last]);
    }
}

static npuq_status check(const npuq_arguments *arguments, const void *of_call)
{
    const npuq_round_mode round_mode = *(const npuq_round_mode *)of_call;
    const npuq_tensor *const *tensors = arguments->tensors;
    npuq_status status;

    if (round_mode != NPUQ_ROUND_TRUNCATE && round_mode != NPUQ_ROUND_NEAREST) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "round_mode", "is %d; expected 0 (truncate) or 1 (nearest)",
                         (int)round_mode);
    }
    if ((status = check_scale(tensors[SCALE], tensors[OFFSET])) != NPUQ_OK ||
        (tensors[OFFSET] && (status = check_offset(arguments)) != NPUQ_OK)) {
        return status;
    }
    return check_y(arguments);
}

npuq_status npuq_trans_quant_param(const npuq_tensor *scale, const npuq_tensor *offset, npuq_round_mode round_mode,
                                   const npuq_tensor *y)
{
    npuq_arguments arguments;
    const npuq_status status = npuq_check_call(&arguments, &signature, (const npuq_tensor *const[]){scale, y, offset},
                                               check, &round_mode, NULL);

    if (status != NPUQ_OK) {
        return status;
    }

    /* The parameters of a whole network are small next to one activation: no executor, and nothing to prepare. */
    npuq_space space;

    npuq_start_space(&space, OFFSET + 1, y, npuq_find_type(scale->dtype)->word, npuq_find_type(y->dtype)->word);
    npuq_add_operand(&space, Y, y);
    add_parameter(&space, SCALE, scale, y);
    if (offset) {
        add_parameter(&space, OFFSET, offset, y);
    }
    npuq_normalise_space(&space, NPUQ_ANY_ORDER);

    const npuq_row_kernels *kernels = npuq_kernels();
    const npuq_fp_state caller = npuq_fp_enter();
    for (size_t row = 0; row < npuq_count_rows(&space); row++) {
        npuq_tile tile;

        npuq_select_tile(&space, row, 1, 0, npuq_count_columns(&space), &tile);
        pack_row(kernels, &tile, round_mode);
    }
    npuq_fp_leave(&caller);
    return NPUQ_OK;
}
