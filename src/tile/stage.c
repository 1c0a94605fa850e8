/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include <string.h>

/* Bytes of two cache lines, as CPUs fetch them in pairs. */
enum { LINES = 128 };

/* Bytes of the buffer for each of x and y. */
static size_t capacity_for(bool stage_x, bool stage_y)
{
    return stage_x && stage_y ? NPUQ_STAGED / 2 : NPUQ_STAGED;
}

static npuq_place find_rows(const npuq_tile *tile, int operand, size_t row)
{
    npuq_place place = tile->places[operand];

    place.data += (ptrdiff_t)row * place.row_stride;
    return place;
}

npuq_place npuq_describe_staged(char *buffer, npuq_storage_word word, size_t words)
{
    return (npuq_place){buffer, (ptrdiff_t)(words * word.size), word.size};
}

bool npuq_gather_x(const npuq_kernel_setup *setup, npuq_tile *tile, char *buffer)
{
    const npuq_storage_word word = setup->words[NPUQ_AT_X];
    const size_t x_cols = npuq_count_words(word, tile->cols);
    const npuq_place gathered = npuq_describe_staged(buffer, word, x_cols);

    assert((uintptr_t)buffer % word.size == 0);
    if (npuq_is_in_place(setup, tile, NPUQ_AT_X) || x_cols > NPUQ_STAGED / word.size / tile->rows) {
        return false;
    }
    npuq_copy_tile(gathered, find_rows(tile, NPUQ_AT_X, 0), word.size, tile->rows, x_cols);
    tile->places[NPUQ_AT_X] = gathered;
    return true;
}

static bool is_column_major(const npuq_tile *tile, int operand)
{
    return tile->rows > 1 && npuq_are_column_major(tile->places[operand].row_stride, tile->places[operand].col_stride);
}

/* ---- short rows: several taken as one ---------------------------------------------------------------------------- */

/* Whether rows follow one another in memory, or will in the buffer. */
static bool rows_follow(const npuq_kernel_setup *setup, const npuq_tile *tile, int operand)
{
    return !npuq_is_in_place(setup, tile, operand) ||
           tile->places[operand].row_stride == (ptrdiff_t)npuq_count_bytes(setup->words[operand], tile->cols);
}

size_t npuq_count_joinable(const npuq_kernel_setup *setup, const npuq_tile *tile)
{
    const size_t rows = npuq_smaller(tile->rows, NPUQ_JOINED / tile->cols);

    if (!rows_follow(setup, tile, NPUQ_AT_X) || !rows_follow(setup, tile, NPUQ_AT_Y)) {
        return 1;
    }
    return rows < 8 ? rows : rows - rows % 8; /* so that most lengths make whole vectors */
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* How many columns to take at a time when nothing else limits them. Where x or y is transposed, each column brings two
 * cache lines, which one block of rows uses up, or fewer if there are few rows. */
static size_t limit_columns(const npuq_kernel_setup *setup, const npuq_tile *tile, bool writes_y)
{
    const bool stage_x = !npuq_is_in_place(setup, tile, NPUQ_AT_X);
    const bool stage_y = writes_y && !npuq_is_in_place(setup, tile, NPUQ_AT_Y);

    if (!stage_x && !stage_y) {
        return tile->cols;
    }
    if ((stage_x && is_column_major(tile, NPUQ_AT_X)) || (stage_y && is_column_major(tile, NPUQ_AT_Y))) {
        return capacity_for(stage_x, stage_y) / npuq_smaller(LINES, tile->rows * 4) / 64 * 64;
    }
    return NPUQ_STAGED / 2 / sizeof(float);
}

/* The part of a tile from column col on, at most `most` columns; both multiples of 8. Returns the tile itself if `most`
 * columns hold it, else *part, where only x and y are set. */
static const npuq_tile *select_columns(const npuq_kernel_setup *setup, const npuq_tile *tile, size_t col, size_t most,
                                       npuq_tile *part)
{
    if (tile->cols <= most) {
        return tile;
    }
    part->rows = tile->rows;
    part->cols = npuq_smaller(tile->cols - col, most);
    for (int i = NPUQ_AT_X; i <= NPUQ_AT_Y; i++) {
        part->places[i] = tile->places[i];
        if (part->places[i].data) {
            part->places[i].data += (ptrdiff_t)npuq_count_words(setup->words[i], col) * tile->places[i].col_stride;
        }
    }
    return part;
}

/* Rows that follow one another are one long row for the kernel, or several of `join` rows each. */
void npuq_run_block(const npuq_kernel_setup *setup, const npuq_pass *pass, const npuq_block *block)
{
    const bool follow = block->x_stride == (ptrdiff_t)npuq_count_bytes(setup->words[NPUQ_AT_X], block->n) &&
                        block->y_stride == (ptrdiff_t)npuq_count_bytes(setup->words[NPUQ_AT_Y], block->n);
    npuq_block joined = *block;

    assert(follow || !pass->rows);
    if (!follow || pass->join == 1) {
        pass->kernel(block, pass->params);
        return;
    }
    for (size_t row = 0; row < block->rows;) {
        const size_t left = block->rows - row;
        const size_t join = npuq_smaller(pass->join, left);

        joined.x = (const char *)block->x + (ptrdiff_t)row * block->x_stride;
        joined.y = (char *)block->y + (ptrdiff_t)row * block->y_stride;
        joined.x_stride = block->x_stride * (ptrdiff_t)join;
        joined.y_stride = block->y_stride * (ptrdiff_t)join;
        joined.rows = pass->rows ? 1 : left / join;
        joined.n = block->n * join;
        if (pass->rows) {
            pass->rows(pass->job, block->first_row + row, join);
        }
        pass->kernel(&joined, pass->params);
        row += joined.rows * join;
    }
}

/* As many rows at a time as the buffer holds. */
static void run_staged(const npuq_kernel_setup *setup, const npuq_tile *tile, const npuq_pass *pass, char *buffer)
{
    const npuq_storage_word x_word = setup->words[NPUQ_AT_X];
    const npuq_storage_word y_word = setup->words[NPUQ_AT_Y];
    const bool stage_x = !npuq_is_in_place(setup, tile, NPUQ_AT_X);
    const bool stage_y = pass->writes_y && !npuq_is_in_place(setup, tile, NPUQ_AT_Y);
    const size_t capacity = capacity_for(stage_x, stage_y);
    const size_t x_cols = npuq_count_words(x_word, tile->cols);
    const size_t y_cols = npuq_count_words(y_word, tile->cols);
    const npuq_place staged_x = npuq_describe_staged(buffer, x_word, x_cols);
    const npuq_place staged_y = npuq_describe_staged(buffer + NPUQ_STAGED - capacity, y_word, y_cols);
    const size_t most = npuq_smaller(stage_x ? capacity / (x_cols * x_word.size) : SIZE_MAX,
                                     stage_y ? capacity / (y_cols * y_word.size) : SIZE_MAX);
    const npuq_hints hints = npuq_hint_staged(&setup->memory, stage_x);

    for (size_t row = 0; row < tile->rows; row += most) {
        const size_t rows = npuq_smaller(tile->rows - row, most);
        const npuq_place y = pass->writes_y ? find_rows(tile, NPUQ_AT_Y, row) : (npuq_place){NULL, 0, 0};
        const npuq_place target = stage_y ? staged_y : y;
        npuq_place x = find_rows(tile, NPUQ_AT_X, row);

        if (stage_x) {
            npuq_copy_tile(staged_x, x, x_word.size, rows, x_cols);
            x = staged_x;
        }
        const npuq_block block = {x.data,     target.data, x.row_stride, target.row_stride, rows,
                                  tile->cols, row,         hints,        setup->flip};

        npuq_run_block(setup, pass, &block);
        if (stage_y) {
            npuq_copy_tile(y, staged_y, y_word.size, rows, y_cols);
        }
    }
}

void npuq_run_pass_in_parts(const npuq_kernel_setup *setup, const npuq_tile *tile, const npuq_pass *pass)
{
    union {
        _Alignas(64) char bytes[NPUQ_STAGED];
        float element; /* to which C99 aligns it, too */
    } buffer;
    const size_t most_columns = npuq_smaller(pass->most_columns, limit_columns(setup, tile, pass->writes_y));
    npuq_tile part;

    for (size_t col = 0; col < tile->cols; col += most_columns) {
        const npuq_tile *here = select_columns(setup, tile, col, most_columns, &part);

        if (pass->columns) {
            pass->columns(pass->job, col, here->cols);
        }
        if (npuq_are_in_place(setup, here, pass->writes_y)) {
            const npuq_block block = npuq_make_block(setup, here, pass->writes_y);

            npuq_run_block(setup, pass, &block);
        } else {
            run_staged(setup, here, pass, buffer.bytes);
        }
    }
}

typedef struct smooth_job {
    const npuq_kernel_setup *setup;
    npuq_params smooth;
    float *buffer;
    const void **to;
} smooth_job;

static void set_smooth(void *argument, size_t col, size_t cols)
{
    const smooth_job *job = argument;
    const npuq_params here = npuq_skip_params(&job->smooth, col);

    *job->to = npuq_is_ready_smooth(job->setup, &here)
                   ? (const void *)here.data
                   : npuq_convert_params(job->setup->kernels, &here, cols, job->buffer);
}

void npuq_run_smooth_pass(const npuq_kernel_setup *setup, const npuq_tile *tile, npuq_rows_fn *kernel,
                          const void *params, const void **to, npuq_params smooth, bool writes_y)
{
    _Alignas(64) float buffer[NPUQ_CONVERTED + NPUQ_MAX_REPEAT]; /* so that no vector lies in two lines */
    smooth_job job = {setup, smooth, buffer, to};
    const npuq_pass pass = {kernel,
                            params,
                            writes_y,
                            1,
                            smooth.data ? set_smooth : NULL,
                            NULL,
                            &job,
                            npuq_is_ready_smooth(setup, &smooth) ? SIZE_MAX : NPUQ_CONVERTED};

    npuq_run_pass(setup, tile, &pass);
}

const void *npuq_repeat(void *buffer, const void *values, size_t n, size_t times)
{
    const size_t once = n * sizeof(float);

    memmove(buffer, values, once);
    for (size_t done = once; done < once * times; done *= 2) {
        memcpy((char *)buffer + done, buffer, npuq_smaller(done, once * times - done));
    }
    return buffer;
}
