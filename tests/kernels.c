/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels.h"

#include "backends/dispatch.h"
#include "support.h"

#include <math.h>
#include <stdio.h>

#define TYPE(NAME, name, row, ...) {#row, NPUQ_##NAME},
const struct kernel_type kernel_types[NPUQ_ROW_TYPES] = {EACH_ROW_TYPE(TYPE)};

/* Whether there is such a kernel. */
static bool exists(kernel_id id)
{
    const npuq_kernel_index *index = &npuq_index_of_kernels;
    const bool only_x = id.y == 0 && id.op == 0;

    switch (id.kind) {
    case KERNEL_BY_ROW:
    case KERNEL_BY_COLUMN: return index->quantise[id.op][id.y][id.x];
    case KERNEL_SMOOTHED:
        if (npuq_is_4_bit_float(id.y)) {
            return false;
        }
    /* fall through */
    case KERNEL_BY_RUN: return (id.op == NPUQ_MUL || npuq_is_small_float(id.y)) && index->quantise[id.op][id.y][id.x];
    case KERNEL_RANGES:
    case KERNEL_SMOOTHED_RANGES:
    case KERNEL_MAGNITUDES:
    case KERNEL_COLUMN_MAGNITUDES: return only_x && index->range[id.x];
    case KERNEL_DEQUANTISE: return id.op == 0 && index->dequantise[id.y][id.x];
    case KERNEL_PARAMETERS: /* in the types of dynamic quantisation */
        return id.x == 0 && id.op == 0 && (id.y == NPUQ_TYPE_INT8 || id.y == NPUQ_TYPE_QUINT4X2);
    case KERNEL_WIDEN: return only_x && index->widen[id.x];
    default: return only_x && id.x == 0;
    }
}

void kernel_each(void (*visit)(void *context, kernel_id id), void *context)
{
    enum { ALL = KERNEL_KINDS * NPUQ_ROW_TYPES * NPUQ_ROW_TYPES * NPUQ_AFFINE_OPS };

    for (unsigned i = 0; i < ALL; i++) {
        const unsigned types = i / NPUQ_AFFINE_OPS;
        const kernel_id id = {(kernel_kind)(types / NPUQ_ROW_TYPES / NPUQ_ROW_TYPES),
                              (npuq_type)(types / NPUQ_ROW_TYPES % NPUQ_ROW_TYPES), (npuq_type)(types % NPUQ_ROW_TYPES),
                              (npuq_affine_op)(i % NPUQ_AFFINE_OPS)};

        if (exists(id)) {
            visit(context, id);
        }
    }
}

bool kernel_has_y(kernel_id id)
{
    return id.kind <= KERNEL_SMOOTHED || id.kind == KERNEL_DEQUANTISE;
}

const char *kernel_name(kernel_id id)
{
#define KERNEL_NAME(KIND, name) name,
    static const char *const kinds[] = {EACH_KERNEL_KIND(KERNEL_NAME)};
    static _Thread_local char name[64];

    (void)snprintf(name, sizeof name, "%s, %s to %s%s", kinds[id.kind], kernel_types[id.x].name,
                   kernel_types[id.y].name, id.op == NPUQ_DIV ? ", div" : "");
    return name;
}

size_t kernel_y_bytes(kernel_id id, size_t n)
{
    return kernel_has_y(id) ? npuq_count_bytes(npuq_word_of(id.y), n) : 0;
}

kernel_call kernel_make_call(kernel_id id, npuq_block block, const float *scale, const float *offset)
{
    kernel_call call = {.id = id, .block = block};

    if (kernel_has_y(id)) {
        call.params.quant = (npuq_quant_params){
            .scale = scale,
            .offset = npuq_is_4_bit_float(id.y) ? NULL : offset,
            .smooth = id.kind == KERNEL_SMOOTHED ? scale : NULL,
            .steps = id.kind == KERNEL_BY_COLUMN ? NPUQ_SCALE_BY_COLUMN : NPUQ_ONE,
        };
    } else {
        call.params.range.smooth = id.kind == KERNEL_SMOOTHED_RANGES ? scale : NULL;
    }
    return call;
}

void kernel_run(const npuq_row_kernels *k, const kernel_call *call)
{
    const kernel_id id = call->id;
    const npuq_block *block = &call->block;
    const kernel_values *v = &call->params.values;

    switch (id.kind) {
    case KERNEL_BY_ROW:
    case KERNEL_BY_COLUMN:
    case KERNEL_BY_RUN:
    case KERNEL_SMOOTHED: npuq_quantise_kernel(k, id.op, id.y, id.x)(block, &call->params.quant); break;
    case KERNEL_RANGES:
    case KERNEL_SMOOTHED_RANGES: npuq_range_kernel(k, id.x)(block, &call->params.range); break;
    case KERNEL_MAGNITUDES: npuq_run_kernel(k, id.x)(block, call->params.runs.run, call->params.runs.largest); break;
    case KERNEL_COLUMN_MAGNITUDES: npuq_column_kernel(k, id.x)(block, &call->params.columns); break;
    case KERNEL_DEQUANTISE: npuq_dequantise_kernel(k, id.y, id.x)(block, &call->params.dequant); break;
    case KERNEL_SHORT_RANGES: k->short_rows(v->y[0], v->more, block->n, block->rows, v->y[1], v->y[2]); break;
    case KERNEL_PARAMETERS: k->parameters(v->form, id.y, v->x, v->more, block->n, v->y[0], v->y[1], v->y[2]); break;
    case KERNEL_PACK: k->pack(v->x, v->more, v->y[0], block->n, v->mode); break;
    case KERNEL_UNPACK: k->unpack(v->x, v->y[0], v->y[1], block->n); break;
    case KERNEL_WORD_BITS: *(npuq_word_bits *)v->y[0] = k->word_bits(v->x, block->n); break;
    case KERNEL_WIDEN: npuq_widen_kernel(k, id.x)(v->x, v->y[0], block->n); break;
    case KERNEL_SPREAD: k->spread(v->x, block->rows, block->n, v->y[0]); break;
    case KERNEL_KINDS: break;
    }
    k->fence_stores();
}

void kernel_same(const kernel_backend *backend, kernel_call call, void *got, void *expected, size_t size, size_t number)
{
    float hi[] = {-INFINITY, -INFINITY};
    float lo[] = {INFINITY, INFINITY};
    char what[128];

    for (int i = 0; i < 2; i++) {
        call.block.y = i ? got : expected;
        if (!kernel_has_y(call.id)) {
            call.params.range.hi = &hi[i];
            call.params.range.lo = &lo[i];
        }
        kernel_run(i ? backend->kernels : &npuq_rows_ref, &call);
    }
    (void)snprintf(what, sizeof what, "%s, %s, case %zu, n = %zu", backend->name, kernel_name(call.id), number,
                   call.block.n);
    test_same(got, expected, size, "%s", what);
    test_same(&hi[1], &hi[0], sizeof hi[0], "%s: hi", what);
    test_same(&lo[1], &lo[0], sizeof lo[0], "%s: lo", what);
}

void kernel_choose_hints(npuq_block *block)
{
    block->hints = (npuq_hints){.prefetch_bytes = test_one_in(2) ? 0 : (uint32_t)(64 * test_below(100)),
                                .to_l2 = test_one_in(2),
                                .from_memory = test_one_in(2),
                                .read_streams = (uint8_t)(test_one_in(2) ? 1 : 2 + test_below(4)),
                                .divides_fast = test_one_in(2)};
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
