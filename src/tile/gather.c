/* SPDX-License-Identifier: BSD-3-Clause */
#include "gather.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Vectors of 16 bytes on targets that have them. Elsewhere compilers take vectors apart again, and a plain loop is
 * faster. */
#if defined(__SSE2__) || defined(__ARM_NEON) || defined(__VSX__) || defined(__wasm_simd128__)
#if defined(__has_builtin) && !defined(NPUQ_PLAIN_C)
#if __has_builtin(__builtin_shufflevector)
#define WITH_VECTORS
#endif
#endif
#endif

/* Every second element has a loop of its own: compilers vectorise a constant step. The vectors may load the bytes
 * between the elements, and drop them. */
#define DEFINE_COPY(T, copy)                                                                                           \
    static void copy(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t n)                     \
    {                                                                                                                  \
        T e[4];                                                                                                        \
                                                                                                                       \
        if (to_step == (ptrdiff_t)sizeof(T) && from_step == 2 * to_step) {                                             \
            char *const restrict p = to;                                                                               \
            const char *const restrict q = from;                                                                       \
                                                                                                                       \
            for (size_t i = 0; i < n; i++) {                                                                           \
                memcpy(p + i * sizeof(T), q + 2 * i * sizeof(T), sizeof(T));                                           \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        /* Four at a time: all loads come before all stores, which the compiler may not exchange by itself. */         \
        for (; n >= 4; n -= 4) {                                                                                       \
            for (int i = 0; i < 4; i++) {                                                                              \
                memcpy(&e[i], from + i * from_step, sizeof(T));                                                        \
            }                                                                                                          \
            for (int i = 0; i < 4; i++) {                                                                              \
                memcpy(to + i * to_step, &e[i], sizeof(T));                                                            \
            }                                                                                                          \
            from += 4 * from_step;                                                                                     \
            to += 4 * to_step;                                                                                         \
        }                                                                                                              \
        for (; n > 0; n--) {                                                                                           \
            memcpy(to, from, sizeof(T));                                                                               \
            from += from_step;                                                                                         \
            to += to_step;                                                                                             \
        }                                                                                                              \
    }

DEFINE_COPY(uint8_t, copy_1)
DEFINE_COPY(uint16_t, copy_2)
DEFINE_COPY(uint32_t, copy_4)

/* Writes the first element of `from` n times, at least 64: the first 64 bytes, then copies of them. */
static void fill(char *to, const char *from, size_t size, size_t n)
{
    const size_t bytes = n * size;

    switch (size) {
    case 1: memset(to, *from, bytes); return;
    case 2: copy_2(to, 2, from, 0, 32); break;
    default: copy_4(to, 4, from, 0, 16);
    }
    for (size_t done = 64; done < bytes; done *= 2) {
        memcpy(to + done, to, done < bytes - done ? done : bytes - done);
    }
}

static npuq_place turned(npuq_place s)
{
    return (npuq_place){s.data, s.col_stride, s.row_stride};
}

#ifdef WITH_VECTORS

enum { VECTOR = 16 };

typedef uint8_t vector_1 __attribute__((vector_size(16)));
typedef uint16_t vector_2 __attribute__((vector_size(16)));
typedef uint32_t vector_4 __attribute__((vector_size(16)));

/* Element 0 of a, 0 of b, 1 of a, ...; the lower and the upper halves. */
#define LOWER_1(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER_1(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOWER_2(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER_2(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOWER_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UPPER_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)

/* Where the next part after i begins; each has `part` elements. The last part ends with n, and may overlap its
 * neighbour. Returns n after the last part. */
static inline size_t next(size_t i, size_t part, size_t n)
{
    return i + 2 * part <= n || i + part == n ? i + part : n - part;
}

/* Elements from the last to the first: by halves, so that no instruction set needs a shuffle of single bytes. */
static inline vector_4 reversed_4(vector_4 v)
{
    return __builtin_shufflevector(v, v, 3, 2, 1, 0);
}

static inline vector_2 reversed_2(vector_2 v)
{
    return (vector_2)reversed_4((vector_4)v >> 16 | (vector_4)v << 16);
}

static inline vector_1 reversed_1(vector_1 v)
{
    return (vector_1)reversed_2((vector_2)v >> 8 | (vector_2)v << 8);
}

/* transpose: as many rows as a vector has elements become columns. Interleaving the first half of the vectors with the
 * second is one step of a perfect shuffle. reverse: n elements, a vector or more, backwards from `from`. */
#define DEFINE_VECTOR_COPIES(SIZE, interleave, transpose, reverse)                                                     \
    static inline void interleave(vector_##SIZE *to, const vector_##SIZE *from)                                        \
    {                                                                                                                  \
        enum { HALF = VECTOR / (SIZE) / 2 };                                                                           \
                                                                                                                       \
        _Pragma("GCC unroll 8") for (int i = 0; i < HALF; i++)                                                         \
        {                                                                                                              \
            to[2 * i] = LOWER_##SIZE(from[i], from[i + HALF]);                                                         \
            to[2 * i + 1] = UPPER_##SIZE(from[i], from[i + HALF]);                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void transpose(char *to, ptrdiff_t to_step, ptrdiff_t to_next, const char *from, ptrdiff_t from_step,       \
                          ptrdiff_t from_next, size_t squares)                                                         \
    {                                                                                                                  \
        enum { N = VECTOR / (SIZE) };                                                                                  \
                                                                                                                       \
        for (; squares > 0; squares--) {                                                                               \
            vector_##SIZE a[N];                                                                                        \
            vector_##SIZE b[N];                                                                                        \
                                                                                                                       \
            _Pragma("GCC unroll 16") for (int i = 0; i < N; i++)                                                       \
            {                                                                                                          \
                memcpy(&a[i], from + i * from_step, VECTOR);                                                           \
            }                                                                                                          \
            interleave(b, a);                                                                                          \
            interleave(a, b);                                                                                          \
            if (N > 4) {                                                                                               \
                interleave(b, a);                                                                                      \
            }                                                                                                          \
            if (N > 8) {                                                                                               \
                interleave(a, b);                                                                                      \
            }                                                                                                          \
            _Pragma("GCC unroll 16") for (int i = 0; i < N; i++)                                                       \
            {                                                                                                          \
                memcpy(to + i * to_step, N == 8 ? &b[i] : &a[i], VECTOR);                                              \
            }                                                                                                          \
            to += to_next;                                                                                             \
            from += from_next;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void reverse(char *to, const char *from, size_t n)                                                          \
    {                                                                                                                  \
        enum { N = VECTOR / (SIZE) };                                                                                  \
        vector_##SIZE v;                                                                                               \
                                                                                                                       \
        from -= VECTOR - (SIZE);                                                                                       \
        for (; n > N; n -= N) {                                                                                        \
            memcpy(&v, from, VECTOR);                                                                                  \
            v = reversed_##SIZE(v);                                                                                    \
            memcpy(to, &v, VECTOR);                                                                                    \
            from -= VECTOR;                                                                                            \
            to += VECTOR;                                                                                              \
        }                                                                                                              \
        n = N - n; /* what is done again */                                                                            \
        memcpy(&v, from + n * (SIZE), VECTOR);                                                                         \
        v = reversed_##SIZE(v);                                                                                        \
        memcpy(to - n * (SIZE), &v, VECTOR);                                                                           \
    }

DEFINE_VECTOR_COPIES(1, interleave_1, transpose_1, reverse_1)
DEFINE_VECTOR_COPIES(2, interleave_2, transpose_2, reverse_2)
DEFINE_VECTOR_COPIES(4, interleave_4, transpose_4, reverse_4)

static npuq_place first_row_last(npuq_place s, size_t rows)
{
    return (npuq_place){s.data + (ptrdiff_t)(rows - 1) * s.row_stride, -s.row_stride, s.col_stride};
}

/* Transposes if `from` is contiguous along its rows and `to` along its columns, in either direction. Returns false if
 * not, if the tile is less than one transposition, or if a row repeats one element. The inner loop uses up the lines of
 * the side with the larger steps: that side is memory, the other one a buffer. */
static bool transposed(npuq_place to, npuq_place from, size_t size, size_t rows, size_t cols)
{
    const size_t n = VECTOR / size;

    if (npuq_distance(from.row_stride) != (ptrdiff_t)size || npuq_distance(to.col_stride) != (ptrdiff_t)size ||
        rows < n || cols < n || from.col_stride == 0) {
        return false;
    }
    if (from.row_stride < 0) {
        from = first_row_last(from, rows);
        to = first_row_last(to, rows);
    }
    if (to.col_stride < 0) {
        from = turned(first_row_last(turned(from), cols));
        to = turned(first_row_last(turned(to), cols));
    }

    const bool down = npuq_distance(from.col_stride) > npuq_distance(to.row_stride);
    const size_t outer = down ? cols : rows;
    const size_t inner = down ? rows : cols;
    const ptrdiff_t to_next = down ? (ptrdiff_t)n * to.row_stride : VECTOR;
    const ptrdiff_t from_next = down ? VECTOR : (ptrdiff_t)n * from.col_stride;

    for (size_t i = 0; i < outer; i = next(i, n, outer)) {
        size_t squares = inner * size / VECTOR; /* inner / n */

        for (size_t k = 0;; k = inner - n, squares = 1) { /* the last square ends with the tile */
            const size_t row = down ? k : i;
            const size_t col = down ? i : k;
            char *target = to.data + (ptrdiff_t)row * to.row_stride + (ptrdiff_t)(col * size);
            const char *source = from.data + (ptrdiff_t)(row * size) + (ptrdiff_t)col * from.col_stride;

            switch (size) {
            case 1: transpose_1(target, to.row_stride, to_next, source, from.col_stride, from_next, squares); break;
            case 2: transpose_2(target, to.row_stride, to_next, source, from.col_stride, from_next, squares); break;
            default: transpose_4(target, to.row_stride, to_next, source, from.col_stride, from_next, squares);
            }
            if (k + squares * n == inner) {
                break;
            }
        }
    }
    return true;
}

#endif

void npuq_copy_row(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t size, size_t n)
{
    if (to_step < 0) {
        to += (ptrdiff_t)(n - 1) * to_step;
        from += (ptrdiff_t)(n - 1) * from_step;
        to_step = -to_step;
        from_step = -from_step;
    }
    if (from_step == to_step && to_step == (ptrdiff_t)size) {
        memcpy(to, from, n * size);
        return;
    }
    if (from_step == 0 && to_step == (ptrdiff_t)size && n >= 64) {
        fill(to, from, size, n);
        return;
    }
#ifdef WITH_VECTORS
    if (from_step == -to_step && to_step == (ptrdiff_t)size && n * size >= VECTOR) {
        switch (size) {
        case 1: reverse_1(to, from, n); return;
        case 2: reverse_2(to, from, n); return;
        default: reverse_4(to, from, n); return;
        }
    }
#endif
    switch (size) {
    case 1: copy_1(to, to_step, from, from_step, n); break;
    case 2: copy_2(to, to_step, from, from_step, n); break;
    default: copy_4(to, to_step, from, from_step, n);
    }
}

void npuq_copy_tile(npuq_place to, npuq_place from, size_t size, size_t rows, size_t cols)
{
    assert((size == 1 || size == 2 || size == 4) && rows > 0 && cols > 0);
#ifdef WITH_VECTORS
    if (transposed(to, from, size, rows, cols) || transposed(turned(to), turned(from), size, cols, rows)) {
        return;
    }
#endif
    if (rows >= 4 && (npuq_are_column_major(to.row_stride, to.col_stride) ||
                      npuq_are_column_major(from.row_stride, from.col_stride) || (cols < 16 && rows > cols))) {
        const size_t swap = rows;

        rows = cols;
        cols = swap;
        to = turned(to);
        from = turned(from);
    }
    for (size_t r = 0; r < rows; r++) {
        npuq_copy_row(to.data + (ptrdiff_t)r * to.row_stride, to.col_stride, from.data + (ptrdiff_t)r * from.row_stride,
                      from.col_stride, size, cols);
    }
}
