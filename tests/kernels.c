/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels.h"

#include "backends/dispatch.h"
#include "support.h"

#include <math.h>
#include <stdio.h>

#define TYPE(NAME, name, row, ...) {#row, NPUQ_##NAME},
const struct kernel_type kernel_types[NPUQ_ROW_TYPES] = {EACH_ROW_TYPE(TYPE)};

void kernel_each(void (*visit)(void *context, kernel_id id), void *context)
{
    for (npuq_type x = 0; x < NPUQ_ROW_TYPES; x++) {
        if (npuq_index_of_kernels.range[x]) {
            visit(context, (kernel_id){RANGE, x, NPUQ_TYPE_INT8, NPUQ_MUL});
            visit(context, (kernel_id){SMOOTH_RANGE, x, NPUQ_TYPE_INT8, NPUQ_MUL});
        }
        for (npuq_type y = 0; y < NPUQ_ROW_TYPES; y++) {
            for (npuq_affine_op op = 0; op < NPUQ_AFFINE_OPS; op++) {
                if (npuq_index_of_kernels.quantise[op][y][x]) {
                    visit(context, (kernel_id){UNIFORM, x, y, op});
                    visit(context, (kernel_id){VECTOR, x, y, op});
                }
            }
            if (npuq_index_of_kernels.quantise[NPUQ_MUL][y][x]) {
                visit(context, (kernel_id){SMOOTH_AFFINE, x, y, NPUQ_MUL});
            }
        }
    }
}

const char *kernel_name(kernel_id id)
{
    static _Thread_local char name[64];
    static const char *const kinds[] = {"uniform", "vector", "range", "smooth range", "smooth affine"};

    if (id.kind == RANGE || id.kind == SMOOTH_RANGE) {
        (void)snprintf(name, sizeof name, "%s %s", kinds[id.kind], kernel_types[id.x].name);
    } else {
        (void)snprintf(name, sizeof name, "%s %s to %s, %s", kinds[id.kind], kernel_types[id.x].name,
                       kernel_types[id.y].name, id.op == NPUQ_DIV ? "div" : "mul");
    }
    return name;
}

size_t kernel_x_size(kernel_id id)
{
    return npuq_word_of(id.x).size;
}

size_t kernel_y_bytes(kernel_id id, size_t n)
{
    if (id.kind == RANGE || id.kind == SMOOTH_RANGE) {
        return 0;
    }
    return npuq_count_bytes(npuq_word_of(id.y), n);
}

size_t kernel_multiple(kernel_id id)
{
    return npuq_count_elements_in(npuq_word_of(id.y));
}

void kernel_run(const npuq_row_kernels *kernels, kernel_id id, const kernel_arguments *a)
{
    if (id.kind == RANGE || id.kind == SMOOTH_RANGE) {
        const npuq_range_params params = {id.kind == RANGE ? NULL : a->smooth, a->smooth_offsets, a->hi, a->lo,
                                          a->half_columns};

        npuq_range_kernel(kernels, id.x)(&a->block, &params);
    } else {
        const npuq_steps steps = id.kind == VECTOR ? (a->step > 0 && a->offset ? NPUQ_BY_COLUMN : NPUQ_SCALE_BY_COLUMN)
                                                   : (a->step > 0 ? NPUQ_BY_ROW : NPUQ_ONE);
        const npuq_quant_params params = {a->scale,          a->offset, id.kind == SMOOTH_AFFINE ? a->smooth : NULL,
                                          a->smooth_offsets, steps,     0,
                                          a->half_columns};

        npuq_quantise_kernel(kernels, id.op, id.y, id.x)(&a->block, &params);
    }
}

void kernel_same(const kernel_backend *backend, kernel_id id, kernel_arguments a, void *got, void *expected,
                 size_t size, size_t number)
{
    float hi[] = {-INFINITY, -INFINITY};
    float lo[] = {INFINITY, INFINITY};
    char what[128];

    for (int i = 0; i < 2; i++) {
        a.block.y = i ? got : expected;
        a.hi = &hi[i];
        a.lo = &lo[i];
        kernel_run(i ? backend->kernels : &npuq_rows_ref, id, &a);
    }
    (void)snprintf(what, sizeof what, "%s, %s, case %zu, n = %zu", backend->name, kernel_name(id), number, a.block.n);
    test_same(got, expected, size, "%s", what);
    test_same(&hi[1], &hi[0], sizeof hi[0], "%s: hi", what);
    test_same(&lo[1], &lo[0], sizeof lo[0], "%s: lo", what);
}

void kernel_choose_hints(npuq_block *block)
{
    block->hints = (npuq_hints){.prefetch_bytes = test_one_in(2) ? 0 : (uint32_t)(64 * test_below(100)),
                                .to_l2 = test_one_in(2),
                                .from_memory = test_one_in(2),
                                .read_streams = (uint8_t)(test_one_in(2) ? 1 : 2 + test_below(4))};
}

const kernel_backend *kernel_backends(void)
{
#define BACKEND_ID(ID, name) NPUQ_BACKEND_##ID,
    static const npuq_backend all[] = {NPUQ_EACH_BACKEND(BACKEND_ID)};
    static kernel_backend backends[sizeof all / sizeof all[0] + 1];
    const npuq_backend before = npuq_active_backend();
    size_t count = 0;

    if (backends[0].name) {
        return backends;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] != NPUQ_BACKEND_REF && npuq_set_backend(all[i]) == NPUQ_OK) {
            backends[count++] = (kernel_backend){npuq_backend_name(all[i]), npuq_kernels()};
        }
    }
    (void)npuq_set_backend(before);
#ifdef NPUQ_WITH_AVX512
    if (npuq_backend_available(NPUQ_BACKEND_AVX512)) { /* which may have another table here */
        backends[count++] = (kernel_backend){"avx512 without AVX512_BF16", &npuq_rows_avx512};
    }
#endif
    return backends;
}
