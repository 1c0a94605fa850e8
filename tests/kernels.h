/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kernel of the table by name, and how to run one: for tests that compare backends with the reference. */
#ifndef NPUQ_TESTS_KERNELS_H
#define NPUQ_TESTS_KERNELS_H

#include "backends/row.h"

/* A kernel, and the way in which it takes its parameters. From SHORT_RANGES on, kernels take no rows. */
#define EACH_KERNEL_KIND(DO)                                                                                           \
    DO(BY_ROW, "quantise by row")                                                                                      \
    DO(BY_COLUMN, "quantise by column")                                                                                \
    DO(BY_RUN, "quantise by run")                                                                                      \
    DO(SMOOTHED, "smooth and quantise")                                                                                \
    DO(RANGES, "range")                                                                                                \
    DO(SMOOTHED_RANGES, "smoothed range")                                                                              \
    DO(MAGNITUDES, "magnitudes of runs")                                                                               \
    DO(COLUMN_MAGNITUDES, "magnitudes of columns")                                                                     \
    DO(DEQUANTISE, "dequantise")                                                                                       \
    DO(SHORT_RANGES, "ranges of short rows")                                                                           \
    DO(PARAMETERS, "parameters of ranges")                                                                             \
    DO(PACK, "pack")                                                                                                   \
    DO(UNPACK, "unpack")                                                                                               \
    DO(WORD_BITS, "bits of words")                                                                                     \
    DO(WIDEN, "widen")                                                                                                 \
    DO(SPREAD, "spread")
#define KERNEL_KIND(KIND, name) KERNEL_##KIND,
typedef enum kernel_kind { EACH_KERNEL_KIND(KERNEL_KIND) KERNEL_KINDS } kernel_kind;
#undef KERNEL_KIND

/* The row kernels of a backend. */
typedef struct kernel_backend {
    const char *name;
    const npuq_row_kernels *kernels;
} kernel_backend;

/* x, y and op are the first of their kind where a kernel has none. */
typedef struct kernel_id {
    kernel_kind kind;
    npuq_type x;
    npuq_type y;
    npuq_affine_op op;
} kernel_id;

/* The types whose rows kernels take: "f32", and its dtype. */
struct kernel_type {
    const char *name;
    npuq_dtype dtype;
};
extern const struct kernel_type kernel_types[NPUQ_ROW_TYPES];

/* What a kernel without rows takes, besides n and rows of the block. */
typedef struct kernel_values {
    const void *x;    /* or hi, words, scales as bits */
    const void *more; /* lo, smooth, offset; may be null where the kernel says so */
    void *y[3];       /* in the order of the kernel's arguments */
    npuq_round_mode mode;
    npuq_dynamic_form form;
} kernel_values;

typedef struct kernel_call {
    kernel_id id;
    npuq_block block;
    union {
        npuq_quant_params quant;
        npuq_range_params range;
        npuq_dequant_params dequant;
        struct {
            unsigned run;
            float *largest;
        } runs;
        npuq_column_params columns;
        kernel_values values;
    } params;
} kernel_call;

/* A call with scale and offset for each column, or the first of each for all rows; scale is smooth, too. */
kernel_call kernel_make_call(kernel_id id, npuq_block block, const float *scale, const float *offset);
void kernel_run(const npuq_row_kernels *kernels, const kernel_call *call);

/* Calls visit for each kernel that there is. */
void kernel_each(void (*visit)(void *context, kernel_id id), void *context);

/* "quantise by row, f32 to i8, mul"; in a buffer of the thread. */
const char *kernel_name(kernel_id id);
bool kernel_has_y(kernel_id id);
size_t kernel_y_bytes(kernel_id id, size_t n); /* bytes that n elements of y take; 0 if there is no y */

/* Runs a kernel of ref to `expected`, and that of the backend to `got`. Fails unless y, of `size` bytes, and the range
 * of a row are the same; number: of the case. */
void kernel_same(const kernel_backend *backend, kernel_call call, void *got, void *expected, size_t size,
                 size_t number);

/* Chooses at random the hints of a block, which change no result. */
void kernel_choose_hints(npuq_block *block);

/* The backends other than ref that run here; avx512 has two tables. At first makes each active to read its table. The
 * last has no name. */
const kernel_backend *kernel_backends(void);
#define FOR_EACH_KERNELS(b) for (const kernel_backend *b = kernel_backends(); b->name; b++)

#endif
