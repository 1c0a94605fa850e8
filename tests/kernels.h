/* SPDX-License-Identifier: BSD-3-Clause */
/* Every row kernel by name, and how to run one: for tests that compare backends with the reference. */
#ifndef NPUQ_TESTS_KERNELS_H
#define NPUQ_TESTS_KERNELS_H

#include "backends/row.h"

typedef enum kernel_kind { UNIFORM, VECTOR, RANGE, SMOOTH_RANGE, SMOOTH_AFFINE } kernel_kind;

/* The row kernels of a backend. */
typedef struct kernel_backend {
    const char *name;
    const npuq_row_kernels *kernels;
} kernel_backend;

/* A kernel of the table; y and op only where the kernel has them. */
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

/* Calls visit for each kernel. */
void kernel_each(void (*visit)(void *context, kernel_id id), void *context);

/* "uniform f32 to i8, mul"; in a buffer of the thread. */
const char *kernel_name(kernel_id id);

size_t kernel_x_size(kernel_id id);            /* bytes of an element of x */
size_t kernel_y_bytes(kernel_id id, size_t n); /* bytes that n elements of y take; 0 for ranges */
size_t kernel_multiple(kernel_id id);          /* what n is a multiple of */

/* scale and offset: by row for UNIFORM (step as given) and SMOOTH_AFFINE, by column for VECTOR. offset may be null.
 * smooth: by column. hi, lo: by row. */
typedef struct kernel_arguments {
    npuq_block block;
    const void *scale;
    const float *offset;
    size_t step; /* of both, UNIFORM and SMOOTH_AFFINE; of offset, VECTOR */
    const void *smooth;
    float *hi;
    float *lo;
    bool half_columns;               /* smooth, or of VECTOR the scales; else binary32 */
    const ptrdiff_t *smooth_offsets; /* by row; null: all rows share smooth */
} kernel_arguments;

void kernel_run(const npuq_row_kernels *kernels, kernel_id id, const kernel_arguments *arguments);

/* Runs a kernel of ref to `expected`, and that of the backend to `got`. Fails unless y, of `size` bytes, and the range
 * of a row are the same; number: of the case. */
void kernel_same(const kernel_backend *backend, kernel_id id, kernel_arguments arguments, void *got, void *expected,
                 size_t size, size_t number);

/* Chooses at random the hints of a block, which change no result. */
void kernel_choose_hints(npuq_block *block);

/* The backends other than ref that run here; avx512 has two tables. At first makes each active to read its table. The
 * last has no name. */
const kernel_backend *kernel_backends(void);
#define FOR_EACH_KERNELS(b) for (const kernel_backend *b = kernel_backends(); b->name; b++)

#endif
