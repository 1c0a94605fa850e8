/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operators on arbitrary arguments. A call returns a status; a failure writes nothing and says why in one line; a
 * success writes what the oracle does and not a byte more. The input chooses the backend too, unless NPUQ_BACKEND does.
 *
 * Bytes become a call that is right, then edits break it: an input of zeros is a right call, and mutations stay close
 * to one. Every argument has an arena, allocated to the byte so that AddressSanitizer sees its ends; some are put into
 * the arena of another. The library cannot know arenas, so what may be passed depends on the view (classify()):
 *
 *   EMPTY     has no elements; its data and strides can be anything.
 *   INSIDE    every element lies in one arena.
 *   BROADCAST the same, but with more elements than the oracle is asked for; most of them share memory.
 *   HOPELESS  breaks a rule that needs no arena: unknown dtype, rank, negative extent, no data, misaligned, beyond the
 *             address space. The call must fail.
 *   WILD      keeps those rules but leaves its arena: to read or write it is the caller's fault. Yet the arithmetic on
 *             its strides wants tests. It is passed as it is where the call must fail for another reason, since nothing
 *             is read before everything is checked; else its data is taken away, which makes it HOPELESS.
 */
#include "input.h"

#include "../support.h"
#include "ref/npuq_ref.h"
#include "ref/npuq_ref_element.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 6, MAX_ELEMENTS = 1 << 18, MAX_GROUPS = 8 };
enum { MAX_SPAN = 1 << 21 }; /* bytes of the largest arena, about */
enum { PERIOD = 251 };       /* elements that are different; prime, so that they do not repeat with rows or tiles */

typedef enum kind { EMPTY, INSIDE, BROADCAST, HOPELESS, WILD } kind;
typedef enum role { INPUT, OPTIONAL_INPUT, OUTPUT } role;

/* Exactly as many bytes as asked for, twice: what a call sees, and what shall be there after it. */
typedef struct arena {
    unsigned char *memory;
    unsigned char *expected;
    size_t size;
} arena;

typedef struct argument {
    npuq_tensor tensor;
    role role;
    bool given;
    kind kind;
    int arena; /* where its elements are, if they are inside of one */
} argument;

typedef struct call {
    const struct operator_under_test *op;
    argument arguments[MAX_ARGUMENTS];
    arena arenas[MAX_ARGUMENTS];
    int count;
    int group_index; /* which argument it is; -1: none */
    int64_t group_ends[MAX_GROUPS];
    int groups;
    int words; /* which argument these are; -1: none */
    int changed_word;
    int changed_bit; /* of that word; -1: none */
    bool flag;       /* div_mode */
    int mode;        /* quant_mode or round_mode */
    int scale_form;
    npuq_dtype y_dtype;
    int32_t axis;
    npuq_executor executor;
    bool has_executor;
    bool may_be_large;
} call;

typedef struct operator_under_test {
    const char *name;
    void (*plan)(call *c, input *in);
    npuq_status (*run)(const call *c);
    void (*oracle)(const call *c, void *const *elements); /* elements in row-major order */
    bool parameters_only;                                 /* there is no x and no executor */
} operator_under_test;

static void *allocate(size_t size)
{
    void *memory = calloc(size > 0 ? size : 1, 1);
    if (!memory) {
        abort();
    }
    return memory;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* As many edits follow as there are bytes from here up. */
static bool take_edit(input *in, uint8_t *edit)
{
    *edit = take_byte(in);
    return *edit >= 0xC0;
}

/* Any number, mostly one near an end of something. */
static int64_t take_any(input *in)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, (int64_t)1 << 31, (int64_t)1 << 32};
    const uint8_t form = take_byte(in);

    switch (form % 4) {
    case 0: return (int8_t)take_byte(in);
    case 1: return (int64_t)((uint64_t)ends[form / 4 % 6] + (uint64_t)(int8_t)take_byte(in));
    case 2: { /* a power of 2 or close to one, of either sign */
        const uint64_t power = ((uint64_t)1 << form / 4 % 64) + (uint64_t)(int8_t)take_byte(in);
        return (int64_t)(take_byte(in) & 1 ? 0 - power : power);
    }
    default: return (int64_t)take_bytes(in, 8);
    }
}

static const npuq_dtype dtypes[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16, NPUQ_INT8,    NPUQ_UINT8,
                                    NPUQ_INT32,   NPUQ_INT64,   NPUQ_UINT64,   NPUQ_QUINT4X2};
enum { FLOATS = 3, ZERO_POINT_TYPES = 6, DTYPES = sizeof dtypes / sizeof dtypes[0] };

static npuq_dtype take_float_type(input *in)
{
    return dtypes[take_byte(in) % FLOATS];
}

/* Extents of a few hundred elements in most cases, for the sake of speed; of more than a tile in some; of MAX_ELEMENTS,
 * enough for an executor, in few. */
static void take_shape(const call *c, input *in, int ndim, int64_t *shape, int64_t multiple)
{
    const uint8_t size = take_byte(in);
    int64_t left = (size < 0xF0 ? 1 << 9 : size == 0xFF && c->may_be_large ? MAX_ELEMENTS : 1 << 13) / multiple;

    for (int d = ndim - 1; d >= 0; d--) {
        const uint8_t byte = take_byte(in);
        int64_t extent = byte < 0x80 ? (byte + 1) % 0x80 : (int64_t)(take_bytes(in, 2) % (uint64_t)left) + 1;

        extent = extent < left ? extent : left;
        left /= extent > 0 ? extent : 1;
        shape[d] = d == ndim - 1 ? extent * multiple : extent;
    }
}

/* ---- one argument ----------------------------------------------------------------------------------------------- */

static void edit_type_and_shape(argument *a, input *in)
{
    uint8_t edit;

    while (take_edit(in, &edit)) {
        switch (edit % 4) {
        case 0: a->given = false; break;
        case 1: a->tensor.dtype = edit & 4 ? (npuq_dtype)take_bytes(in, 4) : dtypes[take_byte(in) % DTYPES]; break;
        case 2: a->tensor.ndim = edit & 4 ? (int32_t)take_bytes(in, 4) : take_byte(in) % 11 - 1; break;
        case 3: a->tensor.shape[edit / 4 % NPUQ_MAX_NDIM] = take_any(in); break;
        }
    }
}

/* Strides of a slice of something: row-major at 0, else from the first dimension, with gaps, backwards, repeated. */
static void lay_out(argument *a, input *in)
{
    npuq_tensor *t = &a->tensor;
    const uint8_t how = take_byte(in);
    const uint8_t gaps = how & 2 ? take_byte(in) : 0; /* bits are dimensions */
    const uint8_t backwards = how & 4 ? take_byte(in) : 0;
    const uint8_t repeated = (how & 8) && a->role != OUTPUT ? take_byte(in) : 0;
    uint64_t step = 1; /* of huge extents anything: what comes of it is classified later */
    uint8_t edit;

    for (int i = 0; i < t->ndim && t->ndim <= NPUQ_MAX_NDIM; i++) {
        const int d = how & 1 ? (i + how / 16) % t->ndim : t->ndim - 1 - i;
        step += gaps >> d & 1;
        t->strides[d] = (int64_t)(backwards >> d & 1 ? 0 - step : step);
        if (repeated >> d & 1) {
            t->strides[d] = 0;
        } else {
            step *= (uint64_t)t->shape[d];
        }
    }
    while (take_edit(in, &edit)) {
        t->strides[edit % NPUQ_MAX_NDIM] = take_any(in);
    }
}

/* The bytes before and behind its data that a view reaches; false if that is beyond any address space. */
static bool find_reach(const npuq_tensor *t, int64_t *below, int64_t *above)
{
    const int64_t size = (int64_t)npuq_dtype_size(t->dtype);

    *below = 0;
    *above = size - 1;
    for (int d = 0; d < t->ndim; d++) {
        int64_t reach;
        if (t->shape[d] <= 1) {
            continue;
        }
        if (__builtin_mul_overflow(t->strides[d], size, &reach) ||
            __builtin_mul_overflow(reach, t->shape[d] - 1, &reach) ||
            (reach < 0 ? __builtin_sub_overflow(*below, reach, below) : __builtin_add_overflow(*above, reach, above))) {
            return false;
        }
    }
    return *below < INT64_MAX - *above;
}

/* HOPELESS or EMPTY for what needs no look at memory, else INSIDE. */
static kind classify_form(const npuq_tensor *t)
{
    bool empty = false;

    if (npuq_dtype_size(t->dtype) == 0 || t->ndim < 0 || t->ndim > NPUQ_MAX_NDIM) {
        return HOPELESS;
    }
    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] < 0) {
            return HOPELESS;
        }
        empty = empty || t->shape[d] == 0;
    }
    return empty ? EMPTY : INSIDE;
}

static bool exceeds_count(const npuq_tensor *t, int64_t most)
{
    int64_t count = 1;
    for (int d = 0; d < t->ndim && count <= most; d++) {
        count = t->shape[d] > most ? most + 1 : count * t->shape[d];
    }
    return count > most;
}

static size_t count_elements(const npuq_tensor *t)
{
    return test_count(t->ndim, t->shape);
}

static kind classify(const call *c, argument *a)
{
    const npuq_tensor *t = &a->tensor;
    const uintptr_t base = (uintptr_t)t->data;
    const kind form = classify_form(t);
    int64_t below;
    int64_t above;

    if (form != INSIDE) {
        return form;
    }
    if (!t->data || base % npuq_dtype_size(t->dtype) != 0 || !find_reach(t, &below, &above) || (uint64_t)below > base ||
        (uint64_t)above > UINTPTR_MAX - base) {
        return HOPELESS;
    }
    for (a->arena = 0; a->arena < c->count; a->arena++) {
        const uintptr_t first = (uintptr_t)c->arenas[a->arena].memory;
        const size_t size = c->arenas[a->arena].size;
        if (base - (uintptr_t)below >= first && base - first < size && (uint64_t)above < size - (base - first)) {
            return exceeds_count(t, MAX_ELEMENTS) ? BROADCAST : INSIDE;
        }
    }
    return WILD;
}

static void make_arena(arena *memory, size_t size, npuq_dtype dtype, bool finite)
{
    const bool known = npuq_dtype_size(dtype) > 0;
    const size_t element = known ? npuq_dtype_size(dtype) : 1;
    const size_t count = size / element;

    *memory = (arena){allocate(size), allocate(size), size};
    test_fill(memory->memory, known ? dtype : NPUQ_UINT8, count < PERIOD ? count : PERIOD, finite);
    for (size_t done = PERIOD * element; done < size; done *= 2) {
        memcpy(memory->memory + done, memory->memory, done < size - done ? done : size - done);
    }
}

/* Where another argument begins, or about where it ends. */
static void *beside(const call *c, int index, input *in)
{
    const npuq_tensor *t = &c->arguments[index].tensor;
    const uint8_t where = take_byte(in);
    int64_t below;
    int64_t above;

    if (where % 4 == 0 || classify_form(t) != INSIDE || !find_reach(t, &below, &above)) {
        return t->data;
    }
    return (void *)((uintptr_t)t->data + (uintptr_t)above + where % 4 - 1);
}

/* How far from each other the first and the last element may lie and be inside of an arena, so that most are small. */
static int64_t max_span(const npuq_tensor *t)
{
    const int64_t bytes = exceeds_count(t, MAX_ELEMENTS) ? MAX_SPAN : (int64_t)(count_elements(t) * 8);

    return bytes < MAX_SPAN / 8 ? 4096 + 4 * bytes : MAX_SPAN;
}

/* Finds a place for the elements: in an arena made to measure or, if there is room, in that of an earlier argument. */
static void place(call *c, int index, input *in)
{
    argument *a = &c->arguments[index];
    npuq_tensor *t = &a->tensor;
    const uint8_t where = take_byte(in);
    const size_t element = npuq_dtype_size(t->dtype) > 0 ? npuq_dtype_size(t->dtype) : 1;
    int64_t below = 0;
    int64_t above = (int64_t)element - 1;
    arena *memory = &c->arenas[index];
    size_t gap = where % 16 * element;
    uint8_t edit;

    if (classify_form(t) == INSIDE && (!find_reach(t, &below, &above) || below + above >= max_span(t))) {
        below = 0;
        above = (int64_t)element - 1; /* wherever this ends, it is not inside */
    }
    const size_t span = (size_t)(below + above) + 1;
    make_arena(memory, span + (where & 0x10 ? gap : 0), t->dtype, where & 0x20);
    gap = where & 0x10 ? gap : 0;
    if (where >= 0xC0 && index > 0) {
        arena *other = &c->arenas[where % index];
        if (other->size >= span) {
            memory = other;
            gap = (size_t)take_bytes(in, 2) % (other->size - span + 1) / element * element;
        }
    } else if (where & 0x40) {
        gap = 0; /* behind the elements rather than before them */
    }
    t->data = memory->memory + gap + below;
    while (take_edit(in, &edit)) {
        switch (edit % 4) {
        case 0: t->data = NULL; break;
        case 1: t->data = (void *)(uintptr_t)take_any(in); break;
        case 2: t->data = (void *)((uintptr_t)t->data + take_byte(in)); break;
        case 3: t->data = beside(c, index > 0 ? edit / 4 % index : 0, in); break;
        }
    }
}

/* The next argument, with the dtype and the shape that it should have. */
static void add(call *c, input *in, role part, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    argument *a = &c->arguments[c->count++];

    *a = (argument){.tensor = npuq_tensor_contiguous(NULL, dtype, ndim, shape), .role = part, .given = true};
    if (part == OPTIONAL_INPUT) {
        a->given = take_byte(in) % 4 != 3;
    }
    edit_type_and_shape(a, in);
    lay_out(a, in);
    place(c, c->count - 1, in);
}

static const npuq_tensor *tensor(const call *c, int index)
{
    return c->arguments[index].given ? &c->arguments[index].tensor : NULL;
}

static const npuq_executor *executor(const call *c)
{
    return c->has_executor ? &c->executor : NULL;
}

static npuq_ref_dtype ref_type(const call *c, int index)
{
    return (npuq_ref_dtype)c->arguments[index].tensor.dtype;
}

static size_t extent(const call *c, int index, int d)
{
    return (size_t)c->arguments[index].tensor.shape[d];
}

/* The shape of a tensor of so many elements, which of QUINT4X2 counts words. */
static void shape_of(npuq_dtype dtype, int ndim, const int64_t *shape, int64_t *out)
{
    memcpy(out, shape, (size_t)ndim * sizeof *shape);
    if (dtype == NPUQ_QUINT4X2) {
        out[ndim - 1] /= 8;
    }
}

/* ---- quantize --------------------------------------------------------------------------------------------------- */

enum { X, SCALES, ZERO_POINTS, QUANTIZE_Y };

static void plan_quantize(call *c, input *in)
{
    const int ndim = 1 + take_byte(in) % NPUQ_MAX_NDIM;
    const uint8_t form = take_byte(in);
    const uint8_t where = take_byte(in);
    const npuq_dtype y = c->flag ? dtypes[FLOATS + form % 3] : form & 1 ? NPUQ_QUINT4X2 : NPUQ_INT8;
    const bool one = form & 8;
    const bool as_x = (form & 16) && !c->flag;
    int64_t shape[NPUQ_MAX_NDIM];
    int64_t y_shape[NPUQ_MAX_NDIM];
    int64_t scales_shape[NPUQ_MAX_NDIM] = {1, 1, 1, 1, 1, 1, 1, 1};

    take_shape(c, in, ndim, shape, y == NPUQ_QUINT4X2 ? 8 : 1);
    shape_of(y, ndim, shape, y_shape);
    if (where >= 0xC0) {
        c->axis = (int32_t)take_any(in);
    } else {
        c->axis = c->flag ? where % (2 * ndim) - ndim : where % (ndim + 4) - 2;
    }
    const int along = !c->flag                             ? (c->axis == -2 && ndim > 1 ? ndim - 2 : ndim - 1)
                      : c->axis >= -ndim && c->axis < ndim ? (c->axis + ndim) % ndim
                                                           : 0;
    if (!one) {
        scales_shape[as_x ? along : 0] = shape[along];
    }
    const npuq_dtype scales = take_float_type(in);
    const npuq_dtype zero_points = c->flag ? dtypes[take_byte(in) % ZERO_POINT_TYPES] : scales;

    add(c, in, INPUT, take_float_type(in), ndim, shape);
    add(c, in, INPUT, scales, as_x ? ndim : 1, scales_shape);
    add(c, in, OPTIONAL_INPUT, zero_points, as_x ? ndim : 1, scales_shape);
    add(c, in, OUTPUT, y, ndim, y_shape);
}

static npuq_status run_quantize(const call *c)
{
    return npuq_quantize(tensor(c, X), tensor(c, SCALES), tensor(c, ZERO_POINTS), c->axis, c->flag,
                         tensor(c, QUANTIZE_Y), executor(c));
}

static void oracle_quantize(const call *c, void *const *elements)
{
    const int ndim = c->arguments[X].tensor.ndim;
    size_t shape[NPUQ_MAX_NDIM];

    for (int d = 0; d < ndim; d++) {
        shape[d] = extent(c, X, d);
    }
    npuq_ref_quantize(elements[X], ref_type(c, X), shape, ndim, elements[SCALES], ref_type(c, SCALES),
                      count_elements(&c->arguments[SCALES].tensor), elements[ZERO_POINTS], ref_type(c, ZERO_POINTS),
                      c->axis, c->flag, elements[QUANTIZE_Y], ref_type(c, QUANTIZE_Y));
}

/* ---- group_index ------------------------------------------------------------------------------------------------ */

static void plan_groups(call *c, input *in, int64_t rows)
{
    int64_t end = 0;
    uint8_t edit;

    c->groups = 1 + take_byte(in) % MAX_GROUPS;
    for (int e = 0; e < c->groups; e++) {
        end += take_byte(in) % (rows - end + 1);
        c->group_ends[e] = e == c->groups - 1 ? rows : end;
    }
    while (take_edit(in, &edit)) {
        c->group_ends[edit % c->groups] = take_any(in);
    }
}

/* Puts the ends of the groups where group_index says, whatever view an edit made of it. */
static void write_groups(call *c)
{
    const argument *a = &c->arguments[c->group_index];

    if (!a->given || a->kind != INSIDE || (a->tensor.dtype != NPUQ_INT32 && a->tensor.dtype != NPUQ_INT64)) {
        return;
    }
    const size_t count = count_elements(&a->tensor);
    int64_t *wide = allocate(count * sizeof *wide);
    int32_t *narrow = allocate(count * sizeof *narrow);
    for (size_t e = 0; e < count; e++) {
        wide[e] = c->group_ends[e < (size_t)c->groups ? (int)e : c->groups - 1];
        narrow[e] = (int32_t)wide[e];
    }
    test_view_write(&a->tensor, a->tensor.dtype == NPUQ_INT64 ? (const void *)wide : narrow);
    free(wide);
    free(narrow);
}

static int64_t *read_groups(const call *c, const void *elements)
{
    const npuq_tensor *t = &c->arguments[c->group_index].tensor;
    const size_t count = count_elements(t);
    int64_t *ends = allocate(count * sizeof *ends);

    for (size_t e = 0; e < count; e++) {
        ends[e] = t->dtype == NPUQ_INT64 ? ((const int64_t *)elements)[e] : ((const int32_t *)elements)[e];
    }
    return ends;
}

/* ---- group_quant ------------------------------------------------------------------------------------------------ */

enum { GROUP_SCALE = 1, GROUP_INDEX, GROUP_OFFSET, GROUP_Y };

static void plan_group_quant(call *c, input *in)
{
    const uint8_t form = take_byte(in);
    const npuq_dtype y = form & 1 ? NPUQ_QUINT4X2 : NPUQ_INT8;
    const npuq_dtype scale = take_float_type(in);
    const int64_t one = 1;
    int64_t shape[2];
    int64_t y_shape[2];

    take_shape(c, in, 2, shape, y == NPUQ_QUINT4X2 ? 8 : 1);
    shape_of(y, 2, shape, y_shape);
    plan_groups(c, in, shape[0]);
    const int64_t scale_shape[] = {c->groups, shape[1]};

    c->group_index = GROUP_INDEX;
    add(c, in, INPUT, take_float_type(in), 2, shape);
    add(c, in, INPUT, scale, 2, scale_shape);
    add(c, in, INPUT, form & 2 ? NPUQ_INT32 : NPUQ_INT64, 1, scale_shape);
    add(c, in, OPTIONAL_INPUT, scale, form & 4 ? 1 : 0, &one);
    add(c, in, OUTPUT, y, 2, y_shape);
}

static npuq_status run_group_quant(const call *c)
{
    return npuq_group_quant(tensor(c, X), tensor(c, GROUP_SCALE), tensor(c, GROUP_INDEX), tensor(c, GROUP_OFFSET),
                            tensor(c, GROUP_Y), executor(c));
}

static void oracle_group_quant(const call *c, void *const *elements)
{
    int64_t *ends = read_groups(c, elements[GROUP_INDEX]);

    npuq_ref_group_quant(elements[X], ref_type(c, X), extent(c, X, 0), extent(c, X, 1), elements[GROUP_SCALE],
                         ref_type(c, GROUP_SCALE), extent(c, GROUP_SCALE, 0), ends, elements[GROUP_OFFSET],
                         elements[GROUP_Y], ref_type(c, GROUP_Y));
    free(ends);
}

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

enum { TRANS_SCALE, TRANS_OFFSET, TRANS_Y };

static void plan_trans_quant_param(call *c, input *in)
{
    /* as many offsets as scales; one offset; one scale; two dimensions; those without offsets */
    const uint8_t form = take_byte(in);
    const int ndim = form % 8 < 3 ? 1 : 2;
    const int64_t one[2] = {1, 1};
    int64_t shape[2] = {1, 1};

    take_shape(c, in, ndim, shape + 2 - ndim, 1);
    if (form % 8 < 5) {
        shape[0] = 1;
    }
    /* of one row, each also in the other rank */
    const int scale_ndim = form % 8 < 5 && form & 16 ? 3 - ndim : ndim;
    const int offset_ndim = form % 8 < 5 && form & 32 ? 3 - ndim : ndim;
    const int y_ndim = form % 8 < 5 && form & 64 ? 3 - ndim : ndim;
    add(c, in, INPUT, NPUQ_FLOAT32, scale_ndim, (form % 8 == 2 ? one : shape) + 2 - scale_ndim);
    add(c, in, OPTIONAL_INPUT, NPUQ_FLOAT32, offset_ndim, (form % 8 == 1 ? one : shape) + 2 - offset_ndim);
    add(c, in, OUTPUT, form & 8 ? NPUQ_UINT64 : NPUQ_INT64, y_ndim, shape + 2 - y_ndim);
}

static npuq_status run_trans_quant_param(const call *c)
{
    return npuq_trans_quant_param(tensor(c, TRANS_SCALE), tensor(c, TRANS_OFFSET), (npuq_round_mode)c->mode,
                                  tensor(c, TRANS_Y));
}

static void oracle_trans_quant_param(const call *c, void *const *elements)
{
    npuq_ref_trans_quant_param(elements[TRANS_SCALE], count_elements(&c->arguments[TRANS_SCALE].tensor),
                               elements[TRANS_OFFSET],
                               elements[TRANS_OFFSET] ? count_elements(&c->arguments[TRANS_OFFSET].tensor) : 0,
                               c->mode == NPUQ_ROUND_NEAREST, elements[TRANS_Y]);
}

/* ---- dynamic_quant_asymmetric, dynamic_quant -------------------------------------------------------------------- */

enum { SMOOTH = 1, DYNAMIC_Y = 3, DYNAMIC_SCALE, DYNAMIC_OFFSET };

/* With so many outputs, or inputs, of one binary32 for each range; with y, or without. */
static void plan_dynamic(call *c, input *in, role parameters, int count, bool with_y)
{
    const int ndim = 2 + take_byte(in) % (NPUQ_MAX_NDIM - 1);
    const uint8_t form = take_byte(in);
    const npuq_dtype y = form & 1 ? NPUQ_QUINT4X2 : NPUQ_INT8;
    const bool per_tensor = c->mode == NPUQ_PER_TENSOR;
    const int64_t one = 1;
    int64_t shape[NPUQ_MAX_NDIM];
    int64_t y_shape[NPUQ_MAX_NDIM];

    take_shape(c, in, ndim, shape, y == NPUQ_QUINT4X2 ? 8 : 1);
    shape_of(y, ndim, shape, y_shape);
    plan_groups(c, in, (int64_t)test_count(ndim - 1, shape));
    const int64_t smooth_shape[] = {c->groups, shape[ndim - 1]};
    const bool grouped = (form & 2) && !per_tensor;

    c->scale_form = form < 0xE0 ? form >> 4 & 1 : (int)take_bytes(in, 4);
    c->group_index = GROUP_INDEX;
    add(c, in, INPUT, take_float_type(in), ndim, shape);
    add(c, in, OPTIONAL_INPUT, take_float_type(in), grouped ? 2 : 1, grouped ? smooth_shape : &smooth_shape[1]);
    add(c, in, OPTIONAL_INPUT, form & 4 ? NPUQ_INT32 : NPUQ_INT64, 1, smooth_shape);
    if (!grouped && !(form & 8)) {
        c->arguments[GROUP_INDEX].given = false;
    }
    if (with_y) {
        add(c, in, OUTPUT, y, ndim, y_shape);
    }
    for (int i = 0; i < count; i++) {
        add(c, in, parameters, NPUQ_FLOAT32, per_tensor ? 1 : ndim - 1, per_tensor ? &one : shape);
    }
}

static void plan_asymmetric(call *c, input *in)
{
    plan_dynamic(c, in, OUTPUT, 2, true);
}

static npuq_status run_asymmetric(const call *c)
{
    return npuq_dynamic_quant_asymmetric(tensor(c, X), tensor(c, SMOOTH), tensor(c, GROUP_INDEX),
                                         (npuq_quant_mode)c->mode, tensor(c, DYNAMIC_Y), tensor(c, DYNAMIC_SCALE),
                                         tensor(c, DYNAMIC_OFFSET), executor(c));
}

static void plan_symmetric(call *c, input *in)
{
    plan_dynamic(c, in, OUTPUT, 1, true);
}

static npuq_status run_symmetric(const call *c)
{
    return npuq_dynamic_quant(tensor(c, X), tensor(c, SMOOTH), tensor(c, GROUP_INDEX), (npuq_quant_mode)c->mode,
                              (npuq_scale_form)c->scale_form, tensor(c, DYNAMIC_Y), tensor(c, DYNAMIC_SCALE),
                              executor(c));
}

static void oracle_of_both(const call *c, void *const *elements, bool symmetric)
{
    const npuq_tensor *x = &c->arguments[X].tensor;
    const size_t S = test_count(x->ndim - 1, x->shape);
    const size_t H = extent(c, X, x->ndim - 1);
    const bool grouped = elements[GROUP_INDEX];
    const size_t E = grouped ? extent(c, SMOOTH, 0) : 1;
    const bool per_tensor = c->mode == NPUQ_PER_TENSOR;
    int64_t *ends = grouped ? read_groups(c, elements[GROUP_INDEX]) : NULL;

    if (symmetric) {
        npuq_ref_dynamic_quant(elements[X], ref_type(c, X), S, H, elements[SMOOTH], ref_type(c, SMOOTH), E, ends,
                               per_tensor, c->scale_form == NPUQ_SCALE_INVERSE, elements[DYNAMIC_Y],
                               ref_type(c, DYNAMIC_Y), elements[DYNAMIC_SCALE]);
    } else {
        npuq_ref_dynamic_quant_asymmetric(elements[X], ref_type(c, X), S, H, elements[SMOOTH], ref_type(c, SMOOTH), E,
                                          ends, per_tensor, elements[DYNAMIC_Y], ref_type(c, DYNAMIC_Y),
                                          elements[DYNAMIC_SCALE], elements[DYNAMIC_OFFSET]);
    }
    free(ends);
}

static void oracle_asymmetric(const call *c, void *const *elements)
{
    oracle_of_both(c, elements, false);
}

static void oracle_symmetric(const call *c, void *const *elements)
{
    oracle_of_both(c, elements, true);
}

/* ---- their steps ------------------------------------------------------------------------------------------------ */

enum { RANGE_MIN = 3, RANGE_MAX };
enum { PARAMS_MIN, PARAMS_MAX, PARAMS_SCALE, PARAMS_OFFSET };
enum { APPLY_MIN = 4, APPLY_MAX };

/* Element i of row r, times the smooth scale of its group and column. */
static float smoothed(const call *c, void *const *elements, const int64_t *ends, size_t r, size_t i)
{
    const size_t H = extent(c, X, c->arguments[X].tensor.ndim - 1);
    const float v = npuq_ref_load(elements[X], ref_type(c, X), r * H + i);
    size_t e = 0;

    while (ends && (size_t)ends[e] <= r) {
        e++;
    }
    return elements[SMOOTH] ? npuq_ref_mul(v, npuq_ref_load(elements[SMOOTH], ref_type(c, SMOOTH), e * H + i)) : v;
}

static void plan_min_max(call *c, input *in)
{
    plan_dynamic(c, in, OUTPUT, 2, false);
}

static npuq_status run_min_max(const call *c)
{
    return npuq_dynamic_quant_min_max(tensor(c, X), tensor(c, SMOOTH), tensor(c, GROUP_INDEX), (npuq_quant_mode)c->mode,
                                      tensor(c, RANGE_MIN), tensor(c, RANGE_MAX), executor(c));
}

static void oracle_min_max(const call *c, void *const *elements)
{
    const npuq_tensor *x = &c->arguments[X].tensor;
    const size_t rows = test_count(x->ndim - 1, x->shape);
    const bool per_tensor = c->mode == NPUQ_PER_TENSOR;
    int64_t *ends = elements[GROUP_INDEX] ? read_groups(c, elements[GROUP_INDEX]) : NULL;
    npuq_ref_range range = npuq_ref_range_empty();

    for (size_t r = 0; r < rows || (per_tensor && r == 0); r++) {
        range = per_tensor ? range : npuq_ref_range_empty();
        for (size_t i = 0; r < rows && i < extent(c, X, x->ndim - 1); i++) {
            range = npuq_ref_range_with(range, smoothed(c, elements, ends, r, i));
        }
        memcpy((float *)elements[RANGE_MIN] + (per_tensor ? 0 : r), &range.lo, sizeof range.lo);
        memcpy((float *)elements[RANGE_MAX] + (per_tensor ? 0 : r), &range.hi, sizeof range.hi);
    }
    free(ends);
}

static void plan_params_with(call *c, input *in, int outputs)
{
    const int ndim = take_byte(in) % (NPUQ_MAX_NDIM + 1);
    const uint8_t form = take_byte(in);
    int64_t shape[NPUQ_MAX_NDIM];

    take_shape(c, in, ndim, shape, 1);
    c->y_dtype = form < 0xC0 ? (form & 1 ? NPUQ_QUINT4X2 : NPUQ_INT8) : (npuq_dtype)take_bytes(in, 4);
    c->scale_form = form < 0xE0 ? form >> 1 & 1 : (int)take_bytes(in, 4);
    add(c, in, INPUT, NPUQ_FLOAT32, ndim, shape);
    add(c, in, INPUT, NPUQ_FLOAT32, ndim, shape);
    for (int i = 0; i < outputs; i++) {
        add(c, in, OUTPUT, NPUQ_FLOAT32, ndim, shape);
    }
}

static void plan_params(call *c, input *in)
{
    plan_params_with(c, in, 2);
}

static npuq_status run_params(const call *c)
{
    return npuq_dynamic_quant_params(tensor(c, PARAMS_MIN), tensor(c, PARAMS_MAX), c->y_dtype, tensor(c, PARAMS_SCALE),
                                     tensor(c, PARAMS_OFFSET));
}

static void plan_symmetric_params(call *c, input *in)
{
    plan_params_with(c, in, 1);
}

static npuq_status run_symmetric_params(const call *c)
{
    return npuq_dynamic_quant_symmetric_params(tensor(c, PARAMS_MIN), tensor(c, PARAMS_MAX), c->y_dtype,
                                               (npuq_scale_form)c->scale_form, tensor(c, PARAMS_SCALE));
}

/* What element i of two arrays of binary32, a least and a greatest value, makes. */
static npuq_ref_parameters parameters_of(const call *c, const void *min, const void *max, size_t i,
                                         npuq_ref_dtype y_dtype, bool symmetric)
{
    const npuq_ref_range range = {npuq_ref_load(max, NPUQ_REF_FLOAT32, i), npuq_ref_load(min, NPUQ_REF_FLOAT32, i)};

    return symmetric
               ? npuq_ref_symmetric_parameters(npuq_ref_largest_of(range), y_dtype, c->scale_form == NPUQ_SCALE_INVERSE)
               : npuq_ref_range_parameters(range, y_dtype);
}

static void oracle_params_of_both(const call *c, void *const *elements, bool symmetric)
{
    for (size_t i = 0; i < count_elements(&c->arguments[PARAMS_MIN].tensor); i++) {
        const npuq_ref_parameters p =
            parameters_of(c, elements[PARAMS_MIN], elements[PARAMS_MAX], i, (npuq_ref_dtype)c->y_dtype, symmetric);

        memcpy((float *)elements[PARAMS_SCALE] + i, &p.scale, sizeof p.scale);
        if (!symmetric) {
            memcpy((float *)elements[PARAMS_OFFSET] + i, &p.offset, sizeof p.offset);
        }
    }
}

static void oracle_params(const call *c, void *const *elements)
{
    oracle_params_of_both(c, elements, false);
}

static void oracle_symmetric_params(const call *c, void *const *elements)
{
    oracle_params_of_both(c, elements, true);
}

static void plan_apply(call *c, input *in)
{
    plan_dynamic(c, in, INPUT, 2, true);
}

static npuq_status run_apply(const call *c)
{
    return npuq_dynamic_quant_apply(tensor(c, X), tensor(c, SMOOTH), tensor(c, GROUP_INDEX), (npuq_quant_mode)c->mode,
                                    tensor(c, DYNAMIC_SCALE), tensor(c, DYNAMIC_OFFSET), tensor(c, DYNAMIC_Y),
                                    executor(c));
}

static npuq_status run_symmetric_apply(const call *c)
{
    return npuq_dynamic_quant_symmetric_apply(tensor(c, X), tensor(c, SMOOTH), tensor(c, GROUP_INDEX),
                                              (npuq_quant_mode)c->mode, tensor(c, APPLY_MIN), tensor(c, APPLY_MAX),
                                              tensor(c, DYNAMIC_Y), executor(c));
}

static void oracle_apply_of_both(const call *c, void *const *elements, bool symmetric)
{
    const npuq_tensor *x = &c->arguments[X].tensor;
    const size_t H = extent(c, X, x->ndim - 1);
    const npuq_ref_dtype y_dtype = ref_type(c, DYNAMIC_Y);
    int64_t *ends = elements[GROUP_INDEX] ? read_groups(c, elements[GROUP_INDEX]) : NULL;

    for (size_t i = 0; i < count_elements(x); i++) {
        const size_t row = c->mode == NPUQ_PER_TENSOR ? 0 : i / H;
        npuq_ref_parameters p = {0};

        if (symmetric) {
            p = parameters_of(c, elements[APPLY_MIN], elements[APPLY_MAX], row, y_dtype, true);
        } else {
            p.back = npuq_ref_div(1.0f, npuq_ref_load(elements[DYNAMIC_SCALE], NPUQ_REF_FLOAT32, row));
            p.offset = npuq_ref_load(elements[DYNAMIC_OFFSET], NPUQ_REF_FLOAT32, row);
        }
        npuq_ref_store(elements[DYNAMIC_Y], y_dtype, i,
                       npuq_ref_affine(smoothed(c, elements, ends, i / H, i % H), p.back, p.offset, false));
    }
    free(ends);
}

static void oracle_apply(const call *c, void *const *elements)
{
    oracle_apply_of_both(c, elements, false);
}

static void oracle_symmetric_apply(const call *c, void *const *elements)
{
    oracle_apply_of_both(c, elements, true);
}

/* ---- anti_quant -------------------------------------------------------------------------------------------------- */

enum { ANTI_SCALE = 1, ANTI_OFFSET, ANTI_Y };

static void plan_anti_quant(call *c, input *in)
{
    const uint8_t form = take_byte(in);
    const npuq_dtype x = form & 1 ? NPUQ_QUINT4X2 : NPUQ_INT8;
    const int ndim = form & 1 ? 1 + take_byte(in) % NPUQ_MAX_NDIM : take_byte(in) % (NPUQ_MAX_NDIM + 1);
    const npuq_dtype scale = take_float_type(in);
    int64_t shape[NPUQ_MAX_NDIM];
    int64_t x_shape[NPUQ_MAX_NDIM];

    take_shape(c, in, ndim, shape, x == NPUQ_QUINT4X2 ? 8 : 1);
    shape_of(x, ndim, shape, x_shape);
    const int64_t columns = ndim == 0 || form & 2 ? 1 : shape[ndim - 1];

    add(c, in, INPUT, x, ndim, x_shape);
    add(c, in, INPUT, scale, 1, &columns);
    add(c, in, OPTIONAL_INPUT, scale, 1, &columns);
    add(c, in, OUTPUT, take_float_type(in), ndim, shape);
}

static npuq_status run_anti_quant(const call *c)
{
    return npuq_anti_quant(tensor(c, X), tensor(c, ANTI_SCALE), tensor(c, ANTI_OFFSET), tensor(c, ANTI_Y), executor(c));
}

static void oracle_anti_quant(const call *c, void *const *elements)
{
    const npuq_tensor *y = &c->arguments[ANTI_Y].tensor;

    npuq_ref_anti_quant(elements[X], ref_type(c, X), test_count(y->ndim - 1, y->shape),
                        y->ndim > 0 ? extent(c, ANTI_Y, y->ndim - 1) : 1, elements[ANTI_SCALE], ref_type(c, ANTI_SCALE),
                        extent(c, ANTI_SCALE, 0), elements[ANTI_OFFSET], elements[ANTI_Y], ref_type(c, ANTI_Y));
}

/* ---- dequant ----------------------------------------------------------------------------------------------------- */

enum { WEIGHT_SCALE = 1, ACTIVATION_SCALE, DEQUANT_BIAS, DEQUANT_Y };

static void plan_dequant(call *c, input *in)
{
    static const npuq_dtype bias_types[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16, NPUQ_INT32};
    const int ndim = 1 + take_byte(in) % NPUQ_MAX_NDIM;
    const uint8_t form = take_byte(in);
    const int64_t one = 1;
    int64_t shape[NPUQ_MAX_NDIM];

    take_shape(c, in, ndim, shape, 1);
    add(c, in, INPUT, NPUQ_INT32, ndim, shape);
    add(c, in, INPUT, take_float_type(in), 1, form & 4 ? &one : &shape[ndim - 1]);
    add(c, in, OPTIONAL_INPUT, NPUQ_FLOAT32, ndim - 1, shape);
    add(c, in, OPTIONAL_INPUT, bias_types[form % 4], 1, &shape[ndim - 1]);
    add(c, in, OUTPUT, take_float_type(in), ndim, shape);
}

static npuq_status run_dequant(const call *c)
{
    return npuq_dequant(tensor(c, X), tensor(c, WEIGHT_SCALE), tensor(c, ACTIVATION_SCALE), tensor(c, DEQUANT_BIAS),
                        tensor(c, DEQUANT_Y), executor(c));
}

static void oracle_dequant(const call *c, void *const *elements)
{
    const npuq_tensor *x = &c->arguments[X].tensor;

    npuq_ref_dequant(elements[X], test_count(x->ndim - 1, x->shape), extent(c, X, x->ndim - 1), elements[WEIGHT_SCALE],
                     ref_type(c, WEIGHT_SCALE), extent(c, WEIGHT_SCALE, 0), elements[ACTIVATION_SCALE],
                     elements[DEQUANT_BIAS], ref_type(c, DEQUANT_BIAS), elements[DEQUANT_Y], ref_type(c, DEQUANT_Y));
}

/* ---- requant ----------------------------------------------------------------------------------------------------- */

enum { WORDS = 1, REQUANT_BIAS, REQUANT_Y };

#define WORD_ZEROS ((uint64_t)0x1F << 32)

/* What must be 1 of a word: nothing to FLOAT16. */
static uint64_t word_ones(const call *c)
{
    return c->arguments[REQUANT_Y].tensor.dtype == NPUQ_FLOAT16 ? 0 : (uint64_t)1 << 46;
}

static void plan_requant(call *c, input *in)
{
    const int ndim = 1 + take_byte(in) % NPUQ_MAX_NDIM;
    const uint8_t form = take_byte(in);
    int64_t shape[NPUQ_MAX_NDIM];

    if (form & 16) {
        c->changed_word = take_byte(in);
        c->changed_bit = take_byte(in) % 64;
    }
    take_shape(c, in, ndim, shape, 1);
    const bool row = form & 8;
    const int64_t words[2] = {1, form & 4 && !row ? 1 : shape[ndim - 1]};

    c->words = WORDS;
    add(c, in, INPUT, NPUQ_INT32, ndim, shape);
    add(c, in, INPUT, form & 1 ? NPUQ_UINT64 : NPUQ_INT64, row ? 2 : 1, row ? words : &words[1]);
    add(c, in, OPTIONAL_INPUT, NPUQ_INT32, 1, &shape[ndim - 1]);
    add(c, in, OUTPUT, form & 2 ? NPUQ_FLOAT16 : NPUQ_INT8, ndim, shape);
}

static npuq_status run_requant(const call *c)
{
    return npuq_requant(tensor(c, X), tensor(c, WORDS), tensor(c, REQUANT_BIAS), tensor(c, REQUANT_Y), executor(c));
}

/* Makes of anything words that are allowed, but for the bit that is to be changed. */
static void write_words(call *c)
{
    const argument *a = &c->arguments[c->words];

    if (!a->given || a->kind != INSIDE || (a->tensor.dtype != NPUQ_INT64 && a->tensor.dtype != NPUQ_UINT64)) {
        return;
    }
    const size_t count = count_elements(&a->tensor);
    uint64_t *words = allocate(count * sizeof *words);
    test_view_read(&a->tensor, words);
    for (size_t i = 0; i < count; i++) {
        words[i] = (words[i] & ~WORD_ZEROS) | word_ones(c);
    }
    if (c->changed_bit >= 0) {
        const size_t i = (size_t)c->changed_word;
        words[i < count ? i : count - 1] ^= (uint64_t)1 << c->changed_bit;
    }
    test_view_write(&a->tensor, words);
    free(words);
}

/* Of a tensor of words that can be read. */
static bool has_wrong_word(const call *c)
{
    const npuq_tensor *tensor = &c->arguments[WORDS].tensor;
    const size_t count = count_elements(tensor);
    uint64_t *words = allocate(count * sizeof *words);
    uint64_t wrong = 0;

    test_view_read(tensor, words);
    for (size_t i = 0; i < count; i++) {
        wrong |= (words[i] & WORD_ZEROS) | (~words[i] & word_ones(c));
    }
    free(words);
    return wrong != 0;
}

static void oracle_requant(const call *c, void *const *elements)
{
    const npuq_tensor *x = &c->arguments[X].tensor;

    if (has_wrong_word(c)) {
        FINDING("%s: success with a word that the unit reads in another way", c->op->name);
    }
    npuq_ref_requant(elements[X], test_count(x->ndim - 1, x->shape), extent(c, X, x->ndim - 1), elements[WORDS],
                     count_elements(&c->arguments[WORDS].tensor), elements[REQUANT_BIAS], elements[REQUANT_Y],
                     ref_type(c, REQUANT_Y));
}

/* ---- a call ----------------------------------------------------------------------------------------------------- */

static const operator_under_test operators[] = {
    {"quantize", plan_quantize, run_quantize, oracle_quantize, false},
    {"group_quant", plan_group_quant, run_group_quant, oracle_group_quant, false},
    {"trans_quant_param", plan_trans_quant_param, run_trans_quant_param, oracle_trans_quant_param, true},
    {"dynamic_quant_asymmetric", plan_asymmetric, run_asymmetric, oracle_asymmetric, false},
    {"dynamic_quant_min_max", plan_min_max, run_min_max, oracle_min_max, false},
    {"dynamic_quant_params", plan_params, run_params, oracle_params, true},
    {"dynamic_quant_apply", plan_apply, run_apply, oracle_apply, false},
    {"dynamic_quant", plan_symmetric, run_symmetric, oracle_symmetric, false},
    {"dynamic_quant_symmetric_params", plan_symmetric_params, run_symmetric_params, oracle_symmetric_params, true},
    {"dynamic_quant_symmetric_apply", plan_apply, run_symmetric_apply, oracle_symmetric_apply, false},
    {"anti_quant", plan_anti_quant, run_anti_quant, oracle_anti_quant, false},
    {"dequant", plan_dequant, run_dequant, oracle_dequant, false},
    {"requant", plan_requant, run_requant, oracle_requant, false},
};

static bool has_elements(const argument *a)
{
    return a->given && a->kind != EMPTY;
}

/* Of x this is refused; parameters may be so. */
static bool repeats_one_element(const call *c, const argument *a)
{
    const bool is_x = !c->op->parameters_only && a == &c->arguments[X];

    return is_x && has_elements(a) && test_repeats_one_element(&a->tensor);
}

/* Eight elements for each of so many words are more than an extent counts: refused, even where there is no element. */
static bool has_too_many_words(const argument *a)
{
    const npuq_tensor *t = &a->tensor;

    return a->given && t->dtype == NPUQ_QUINT4X2 && t->ndim > 0 && t->ndim <= NPUQ_MAX_NDIM &&
           t->shape[t->ndim - 1] > INT64_MAX / 8;
}

static bool is_hopeless(const call *c, const argument *a)
{
    if (!a->given) {
        return a->role != OPTIONAL_INPUT;
    }
    if (a->kind == HOPELESS || repeats_one_element(c, a) || has_too_many_words(a)) {
        return true;
    }
    /* An output whose first element is another's first too, or that repeats elements. */
    for (int i = 0; a->role == OUTPUT && has_elements(a) && i < c->count; i++) {
        const argument *other = &c->arguments[i];
        if (other != a && has_elements(other) && other->tensor.data == a->tensor.data) {
            return true;
        }
    }
    for (int d = 0; a->role == OUTPUT && has_elements(a) && d < a->tensor.ndim; d++) {
        if (a->tensor.shape[d] > 1 && a->tensor.strides[d] == 0) {
            return true;
        }
    }
    return false;
}

static bool must_fail(const call *c)
{
    for (int i = 0; i < c->count; i++) {
        if (is_hopeless(c, &c->arguments[i])) {
            return true;
        }
    }
    return c->has_executor && !c->executor.parallel_for && !c->op->parameters_only;
}

/* The view of another copy of the arena. */
static npuq_tensor in_copy(const call *c, const argument *a, unsigned char *copy)
{
    npuq_tensor moved = a->tensor;
    moved.data = copy + ((unsigned char *)moved.data - c->arenas[a->arena].memory);
    return moved;
}

/* Whether an output shares a byte with itself or with another argument, by marking the bytes of outputs. All are INSIDE
 * or EMPTY. */
static bool shares_memory(const call *c)
{
    unsigned char *marks[MAX_ARGUMENTS] = {NULL};
    size_t bytes = 0;
    size_t marked = 0;
    bool shares = false;

    for (int pass = 0; pass < 2; pass++) { /* outputs, then the others */
        for (int i = 0; i < c->count; i++) {
            const argument *a = &c->arguments[i];
            if (!a->given || a->kind != INSIDE || (a->role == OUTPUT) != (pass == 0)) {
                continue;
            }
            if (!marks[a->arena] && pass == 0) {
                marks[a->arena] = allocate(c->arenas[a->arena].size);
            } else if (!marks[a->arena]) {
                continue;
            }
            const npuq_tensor view = in_copy(c, a, marks[a->arena]);
            const size_t size = count_elements(&view) * npuq_dtype_size(view.dtype);
            unsigned char *elements = allocate(size);
            if (pass == 0) {
                memset(elements, 1, size);
                test_view_write(&view, elements);
                bytes += size;
            } else {
                test_view_read(&view, elements);
                shares = shares || memchr(elements, 1, size);
            }
            free(elements);
        }
    }
    for (int i = 0; i < c->count; i++) {
        for (size_t k = 0; marks[i] && k < c->arenas[i].size; k++) {
            marked += marks[i][k];
        }
        free(marks[i]);
    }
    return shares || marked != bytes;
}

static npuq_tensor in_expected(const call *c, const argument *a)
{
    return in_copy(c, a, c->arenas[a->arena].expected);
}

/* What the portable backend makes of it, where the oracle would take too long. */
static void expect_as_portable(const call *c)
{
    const npuq_backend backend = npuq_active_backend();
    call moved = *c;

    for (int i = 0; i < c->count; i++) {
        argument *a = &moved.arguments[i];
        if (a->given && a->kind != EMPTY) {
            a->tensor = in_expected(c, a);
        }
    }
    (void)npuq_set_backend(NPUQ_BACKEND_REF);
    if (c->op->run(&moved) != NPUQ_OK) {
        FINDING("%s: success, or %s with backend ref", c->op->name, npuq_last_error());
    }
    (void)npuq_set_backend(backend);
}

/* All bytes as they shall be after a success; until then they are as they were before it. */
static void expect_success(const call *c)
{
    void *elements[MAX_ARGUMENTS] = {NULL};

    if (c->arguments[0].kind == EMPTY && c->op->run != run_min_max) { /* which says so of an empty part */
        for (int i = 0; i < c->count; i++) {
            if (c->arguments[i].role == OUTPUT && has_elements(&c->arguments[i])) {
                FINDING("%s: success with an empty input and an output that is not", c->op->name);
            }
        }
        return;
    }
    for (int i = 0; i < c->count; i++) {
        if (c->arguments[i].given && c->arguments[i].kind == BROADCAST) {
            expect_as_portable(c);
            return;
        }
    }
    for (int i = 0; i < c->count; i++) {
        const argument *a = &c->arguments[i];
        if (a->given && a->kind != INSIDE && a->kind != EMPTY) {
            FINDING("%s: success with argument %d of kind %d", c->op->name, i, (int)a->kind);
        }
        if (a->given && a->kind == EMPTY) {
            elements[i] = allocate(0);
        } else if (a->given) {
            const npuq_tensor before = in_expected(c, a);
            elements[i] = allocate(count_elements(&before) * npuq_dtype_size(before.dtype));
            test_view_read(&before, elements[i]);
        }
    }
    c->op->oracle(c, elements);
    for (int i = 0; i < c->count; i++) {
        const argument *a = &c->arguments[i];
        if (a->role == OUTPUT && a->kind == INSIDE) {
            const npuq_tensor after = in_expected(c, a);
            test_view_write(&after, elements[i]);
        }
        free(elements[i]);
    }
}

static void check_memory(const call *c, const char *what)
{
    for (int i = 0; i < c->count; i++) {
        if (memcmp(c->arenas[i].memory, c->arenas[i].expected, c->arenas[i].size) == 0) {
            continue;
        }
        for (size_t k = 0; k < c->arenas[i].size; k++) {
            if (c->arenas[i].memory[k] != c->arenas[i].expected[k]) {
                FINDING("%s, %s: %s: byte %zu of the memory of argument %d is %02x; expected %02x", c->op->name,
                        npuq_backend_name(npuq_active_backend()), what, k, i, c->arenas[i].memory[k],
                        c->arenas[i].expected[k]);
            }
        }
    }
}

static void check_failure(const call *c, npuq_status status, bool may_be_layout)
{
    const char *message = npuq_last_error();
    const size_t length = strlen(c->op->name);

    check_memory(c, "failed");
    if (strcmp(npuq_status_name(status), "unknown status") == 0) {
        FINDING("%s: status %d", c->op->name, (int)status);
    }
    if (strncmp(message, c->op->name, length) != 0 || strncmp(message + length, ": ", 2) != 0) {
        FINDING("%s: message '%s'", c->op->name, message);
    }
    for (const char *at = message; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            FINDING("%s: a message that is not one line of text: '%s'", c->op->name, message);
        }
    }
    if (status == NPUQ_ERROR_LAYOUT && !may_be_layout && !strstr(message, "too irregular")) {
        FINDING("%s: nothing is wrong with the layout: %s", c->op->name, message);
    }
    if (status == NPUQ_ERROR_ARGUMENT && c->words >= 0 && !has_wrong_word(c)) {
        FINDING("%s: nothing is wrong with the words: %s", c->op->name, message);
    }
}

static void check_call(call *c)
{
    bool refusal = must_fail(c);
    bool all_inside = true;

    for (int i = 0; i < c->count; i++) {
        argument *a = &c->arguments[i];
        if (!refusal && a->given && a->kind == WILD) {
            a->tensor.data = NULL;
            a->kind = HOPELESS;
            refusal = true;
        }
        all_inside = all_inside && (!a->given || a->kind == INSIDE || a->kind == EMPTY);
    }
    for (int i = 0; i < c->count; i++) {
        memcpy(c->arenas[i].expected, c->arenas[i].memory, c->arenas[i].size);
    }

    const bool shares = all_inside && shares_memory(c);
    const npuq_status status = c->op->run(c);
    if (status != NPUQ_OK) {
        const argument *x = &c->arguments[X];
        check_failure(c, status, !all_inside || shares || repeats_one_element(c, x) || has_too_many_words(x));
        return;
    }
    if (refusal || shares) {
        FINDING("%s: success with arguments that %s", c->op->name, shares ? "share memory" : "break a rule");
    }
    expect_success(c);
    check_memory(c, "done");
}

/* One of those that run here, unless NPUQ_BACKEND says which. */
static void choose_backend(uint8_t number)
{
    static const char *given;
    static npuq_backend usable[16];
    static uint8_t count;

    if (count == 0) {
        given = getenv("NPUQ_BACKEND");
        if (given && strcmp(given, npuq_backend_name(npuq_active_backend())) != 0) {
            printf("SKIPPED: no %s here\n", given);
            exit(77);
        }
        for (npuq_backend b = NPUQ_BACKEND_REF; strcmp(npuq_backend_name(b), "unknown") != 0; b++) {
            if (npuq_backend_available(b)) {
                usable[count++] = b;
            }
        }
    }
    if (!given && usable[number % count] != npuq_active_backend()) { /* asking the CPU takes a while */
        (void)npuq_set_backend(usable[number % count]);
    }
}

/* A large tensor takes a hundred times as long as a small one. A fuzzer goes on from what was large; but few of the
 * inputs that it makes of it have a sum that says so again. */
static unsigned sum_of_bytes(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += data[i];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    call c = {.group_index = -1, .words = -1, .changed_bit = -1};
    const uint8_t form = take_byte(&in);

    c.op = &operators[take_byte(&in) % (sizeof operators / sizeof operators[0])];
    choose_backend(form % 4);
    c.flag = form & 4;
    c.mode = form & 8 ? 1 : 0;
    c.may_be_large = sum_of_bytes(data, size) % 8 == 0;
    c.has_executor = form & 16;
    c.executor = test_shuffled_executor;
    if (form >= 0xE0) {
        c.executor.parallel_for = form & 32 && form & 8 ? NULL : c.executor.parallel_for;
        c.mode = (int)take_bytes(&in, 4);
    }
    test_reseed(take_bytes(&in, 2)); /* of the elements */
    c.op->plan(&c, &in);

    /* The bytes that are left are elements, instead of those that test_fill() has made. */
    for (int i = 0; i < c.count; i++) {
        for (size_t k = 0; k < c.arenas[i].size && in.left > 0; k++) {
            c.arenas[i].memory[k] = take_byte(&in);
        }
    }
    for (int i = 0; i < c.count; i++) {
        c.arguments[i].kind = classify(&c, &c.arguments[i]);
    }
    for (int i = 0; i < c.count; i++) {
        argument *a = &c.arguments[i];
        /* where no output says how large it can be, it would be read for as long as its shape says */
        if (a->kind == BROADCAST && (i == c.group_index || (i == X && c.op->run == run_min_max))) {
            a->kind = WILD;
        }
    }
    if (c.group_index >= 0) {
        write_groups(&c);
    }
    if (c.words >= 0) {
        write_words(&c);
    }
    check_call(&c);
    for (int i = 0; i < c.count; i++) {
        free(c.arenas[i].memory);
        free(c.arenas[i].expected);
    }
    return 0;
}
