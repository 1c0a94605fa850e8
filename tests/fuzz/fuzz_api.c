/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls the operators with arbitrary arguments. A failed call writes nothing and gives the reason in one line. A call
 * that succeeds writes the reference's results and no other byte. A prepared call does the same, wherever it was
 * prepared. The input chooses the backend, unless NPUQ_BACKEND does.
 *
 * Bytes make a valid call, then edits break it. An input of zeros is a valid call, and mutations stay close to one.
 * Each argument has an arena of the exact size, so that AddressSanitizer sees its ends; some lie in another's arena.
 * The library cannot know arenas, so the view decides which calls are allowed (classify()):
 *
 *   EMPTY     has no elements; its data and strides can be anything.
 *   INSIDE    every element lies in one arena.
 *   BROADCAST the same, but with more elements than the reference is asked for; most of them share memory.
 *   HOPELESS  breaks a rule that needs no arena: unknown dtype, rank, negative extent, no data, misaligned, beyond the
 *             address space. The call must fail.
 *   WILD      keeps those rules but leaves its arena, which is a caller's fault. The view tests the arithmetic on
 *             strides: the target passes it where the call must fail for another reason, since the library checks
 *             everything before it reads. Elsewhere the target takes its data away, which makes it HOPELESS.
 */
#include "input.h"

#include "../calls.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 1 << 18 };
enum { MAX_SPAN = 1 << 21 }; /* bytes of the largest arena, about */
enum { PERIOD = 251 };       /* elements that are different; prime, so that they do not repeat with rows or tiles */

typedef enum kind { EMPTY, INSIDE, BROADCAST, HOPELESS, WILD } kind;
typedef enum role { INPUT, OPTIONAL_INPUT, OUTPUT } role;

/* Two blocks of exactly the wanted size: the memory of the call, and the expected bytes. */
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
    int arena; /* the arena of its elements, if INSIDE */
} argument;

typedef struct call {
    test_drawing drawing;      /* the operator, its options and the ends of groups */
    argument arguments[SLOTS]; /* arguments that the operator does not have get no arena */
    arena arenas[SLOTS];
    enum slot order[SLOTS];
    int count;
    int changed_word;
    int changed_bit; /* of that word; -1: none */
    npuq_executor executor;
    bool is_prepared;
    bool is_rebound; /* prepared with other memory */
    bool may_be_large;
} call;

#define FOR_EACH_ARGUMENT(c, i)                                                                                        \
    for (int i = 0; i < SLOTS; i++)                                                                                    \
        if ((c)->arenas[i].memory)

static void *allocate(size_t size)
{
    void *memory = calloc(size > 0 ? size : 1, 1);
    if (!memory) {
        abort();
    }
    return memory;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* False if no byte is left for an edit. */
static bool take_edit(input *in, uint8_t *edit)
{
    *edit = take_byte(in);
    return *edit >= 0xC0;
}

/* Any number, mostly one near an end of some range. */
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

#define DTYPE(NAME, ...) NPUQ_##NAME,
static const npuq_dtype dtypes[] = {EACH_TYPE(DTYPE)};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Shapes of a few hundred elements, mostly, to be fast; some of more than a tile; few of MAX_ELEMENTS, enough for an
 * executor. */
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

/* Strides of a slice: row-major at 0, else from the first dimension, with gaps, backwards, repeated. */
static void lay_out(argument *a, input *in)
{
    npuq_tensor *t = &a->tensor;
    const uint8_t how = take_byte(in);
    const uint8_t gaps = how & 2 ? take_byte(in) : 0; /* bits are dimensions */
    const uint8_t backwards = how & 4 ? take_byte(in) : 0;
    const uint8_t repeated = (how & 8) && a->role != OUTPUT ? take_byte(in) : 0;
    uint64_t step = 1; /* unsigned: huge extents may wrap, and classify() sees the result */
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

/* HOPELESS or EMPTY if the view alone shows that, else INSIDE. */
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
    for (a->arena = 0; a->arena < SLOTS; a->arena++) {
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

/* Returns the start, or roughly the end, of another argument. */
static void *beside(const call *c, int index, input *in)
{
    const npuq_tensor *t = &c->arguments[c->order[index]].tensor;
    const uint8_t where = take_byte(in);
    int64_t below;
    int64_t above;

    if (where % 4 == 0 || classify_form(t) != INSIDE || !find_reach(t, &below, &above)) {
        return t->data;
    }
    return (void *)((uintptr_t)t->data + (uintptr_t)above + where % 4 - 1);
}

/* How far apart the first and the last element may lie inside of an arena: mostly small. */
static int64_t max_span(const npuq_tensor *t)
{
    const int64_t bytes = exceeds_count(t, MAX_ELEMENTS) ? MAX_SPAN : (int64_t)(count_elements(t) * 8);

    return bytes < MAX_SPAN / 8 ? 4096 + 4 * bytes : MAX_SPAN;
}

/* Finds memory for the elements: a new arena, or, if there is room, that of an earlier argument. */
static void place(call *c, int index, input *in)
{
    argument *a = &c->arguments[c->order[index]];
    npuq_tensor *t = &a->tensor;
    const uint8_t where = take_byte(in);
    const size_t element = npuq_dtype_size(t->dtype) > 0 ? npuq_dtype_size(t->dtype) : 1;
    int64_t below = 0;
    int64_t above = (int64_t)element - 1;
    arena *memory = &c->arenas[c->order[index]];
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
        arena *other = &c->arenas[c->order[where % index]];
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

/* Adds the next argument, with its correct dtype and shape. */
static void add(call *c, input *in, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    argument *a = &c->arguments[slot];

    *a = (argument){.tensor = npuq_tensor_contiguous(NULL, dtype, ndim, shape), .given = true};
    a->role = test_is_output(c->drawing.call.op, slot)     ? OUTPUT
              : test_is_optional(c->drawing.call.op, slot) ? OPTIONAL_INPUT
                                                           : INPUT;
    if (a->role == OPTIONAL_INPUT) {
        a->given = take_byte(in) % 4 != 3;
    }
    edit_type_and_shape(a, in);
    lay_out(a, in);
    c->order[c->count++] = slot;
    place(c, c->count - 1, in);
}

/* ---- a call as it should be ------------------------------------------------------------------------------------- */

/* The input that the functions of the drawing read bytes from. */
static input *source;
static call *target;

static size_t choose(size_t end)
{
    return (size_t)(take_bytes(source, end <= 1 << 8 ? 1 : end <= 1 << 16 ? 2 : 4) % end);
}

static void draw_shape(test_drawing *d, int64_t multiple)
{
    take_shape(target, source, d->ndim, d->shape, multiple);
}

static void add_drawn(test_drawing *d, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    int64_t stored[NPUQ_MAX_NDIM];

    (void)d;
    memcpy(stored, shape, (size_t)ndim * sizeof *shape);
    if (ndim > 0) {
        stored[ndim - 1] /= npuq_values_in_word(dtype);
    }
    add(target, source, slot, dtype, ndim, stored);
}

/* Draws the arguments and options, and breaks some of the options. */
static void draw(call *c, input *in)
{
    test_drawing *d = &c->drawing;
    test_call *value = &d->call;
    uint8_t edit;

    source = in;
    target = c;
    d->choose = choose;
    d->draw_shape = draw_shape;
    d->add = add_drawn;
    test_draw_call(d);
    while (take_edit(in, &edit)) {
        switch (edit % 10) {
        case 0: value->axis = (int32_t)take_any(in); break;
        case 1: value->quant_mode = (npuq_quant_mode)take_any(in); break;
        case 2: value->scale_form = (npuq_scale_form)take_any(in); break;
        case 3: value->round_mode = (npuq_round_mode)take_any(in); break;
        case 4: value->y_dtype = edit & 8 ? (npuq_dtype)take_any(in) : dtypes[take_byte(in) % DTYPES]; break;
        case 5: d->ends[edit / 8 % TEST_GROUPS] = take_any(in); break;
        case 6:
            c->changed_word = take_byte(in);
            c->changed_bit = take_byte(in) % 64;
            break;
        case 7: value->block = take_any(in); break;
        case 8: {
            const uint32_t bits = (uint32_t)take_any(in);
            memcpy(&value->min_scale, &bits, sizeof bits);
            break;
        }
        default: value->quant_mode = NPUQ_PER_TENSOR; break;
        }
    }
}

/* ---- group_index and words -------------------------------------------------------------------------------------- */

/* Writes the ends of the groups to group_index, after the edits of its view. */
static void write_groups(call *c)
{
    const argument *a = &c->arguments[GROUP_INDEX];

    if (!a->given || a->kind != INSIDE || (a->tensor.dtype != NPUQ_INT32 && a->tensor.dtype != NPUQ_INT64)) {
        return;
    }
    const size_t count = count_elements(&a->tensor);
    int64_t *wide = allocate(count * sizeof *wide);
    int32_t *narrow = allocate(count * sizeof *narrow);
    for (size_t e = 0; e < count; e++) {
        wide[e] = c->drawing.ends[e < (size_t)c->drawing.groups ? (int64_t)e : c->drawing.groups - 1];
        narrow[e] = (int32_t)wide[e];
    }
    test_view_write(&a->tensor, a->tensor.dtype == NPUQ_INT64 ? (const void *)wide : narrow);
    free(wide);
    free(narrow);
}

#define WORD_ZEROS ((uint64_t)0x1F << 32)

/* The bits of a word that must be 1; none to FLOAT16. */
static uint64_t word_ones(const call *c)
{
    return c->arguments[Y].tensor.dtype == NPUQ_FLOAT16 ? 0 : (uint64_t)1 << 46;
}

/* Turns any elements into valid words, except for the bit that the call changes. */
static void write_words(call *c)
{
    const argument *a = &c->arguments[WORDS];

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

/* Only for a tensor of words that can be read. */
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

/* ---- a call ----------------------------------------------------------------------------------------------------- */

static bool has_elements(const argument *a)
{
    return a->given && a->kind != EMPTY;
}

/* Operators refuse such an x, but not such a parameter. */
static bool repeats_one_element(const call *c, const argument *a)
{
    const bool is_x = a == &c->arguments[X];

    return is_x && has_elements(a) && test_repeats_one_element(&a->tensor);
}

/* The values of so many words exceed an extent. The library refuses them even in an empty tensor. */
static bool has_too_many_words(const argument *a)
{
    const npuq_tensor *t = &a->tensor;

    return a->given && t->ndim > 0 && t->ndim <= NPUQ_MAX_NDIM &&
           t->shape[t->ndim - 1] > INT64_MAX / npuq_values_in_word(t->dtype);
}

/* Whether y of dequant lies over x, which is allowed. */
static bool is_in_place(const call *c)
{
    const npuq_tensor *x = &c->arguments[X].tensor;
    const npuq_tensor *y = &c->arguments[Y].tensor;
    bool same = c->drawing.call.op == TEST_DEQUANT && c->arguments[X].kind == INSIDE &&
                c->arguments[Y].kind == INSIDE && y->dtype == NPUQ_FLOAT32 && x->ndim == y->ndim && x->data == y->data;

    for (int d = 0; same && d < x->ndim; d++) {
        same = x->shape[d] == 1 || x->strides[d] == y->strides[d];
    }
    return same;
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
    FOR_EACH_ARGUMENT(c, i)
    {
        const argument *other = &c->arguments[i];
        if (a->role == OUTPUT && has_elements(a) && other != a && has_elements(other) &&
            other->tensor.data == a->tensor.data && !(i == X && is_in_place(c))) {
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
    FOR_EACH_ARGUMENT(c, i)
    {
        if (is_hopeless(c, &c->arguments[i])) {
            return true;
        }
    }
    if (c->is_prepared && test_finds_ranges(c->drawing.call.op) && c->drawing.call.quant_mode == NPUQ_PER_TENSOR) {
        return true;
    }
    return c->drawing.call.executor && !c->executor.parallel_for && test_takes_executor(c->drawing.call.op);
}

static npuq_tensor in_copy(const call *c, const argument *a, unsigned char *copy)
{
    npuq_tensor moved = a->tensor;
    moved.data = copy + ((unsigned char *)moved.data - c->arenas[a->arena].memory);
    return moved;
}

/* Whether an output shares a byte with itself or with another argument. All arguments are INSIDE or EMPTY. */
static bool shares_memory(const call *c)
{
    unsigned char *marks[SLOTS] = {NULL};
    size_t bytes = 0;
    size_t marked = 0;
    bool shares = false;

    for (int pass = 0; pass < 2; pass++) { /* outputs, then the others */
        FOR_EACH_ARGUMENT(c, i)
        {
            const argument *a = &c->arguments[i];
            if (!a->given || a->kind != INSIDE || (a->role == OUTPUT) != (pass == 0) || (i == X && is_in_place(c))) {
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
    FOR_EACH_ARGUMENT(c, i)
    {
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

static test_call value_of(const call *c, const argument *arguments)
{
    test_call value = c->drawing.call;

    for (int i = 0; i < SLOTS; i++) {
        value.given[i] = arguments[i].given;
        value.tensors[i] = arguments[i].tensor;
    }
    return value;
}

static npuq_status run(const call *c)
{
    const test_call value = value_of(c, c->arguments);

    return test_call_run(&value);
}

static call in_copies(const call *c)
{
    call moved = *c;

    FOR_EACH_ARGUMENT(c, i)
    {
        if (has_elements(&c->arguments[i])) {
            moved.arguments[i].tensor = in_expected(c, &c->arguments[i]);
        }
    }
    return moved;
}

/* Whether another argument lies in the arena of an output: their spans may meet without sharing a byte. */
static bool may_meet(const call *c)
{
    FOR_EACH_ARGUMENT(c, i)
    {
        FOR_EACH_ARGUMENT(c, j)
        {
            const argument *a = &c->arguments[i];
            const argument *b = &c->arguments[j];
            if (i != j && a->role == OUTPUT && has_elements(a) && has_elements(b) && a->arena == b->arena) {
                return true;
            }
        }
    }
    return false;
}

/* Rebinds a call that was prepared with the arenas' copies to the arenas themselves. False if an operand cannot be
 * moved: the copies hold the same. */
static bool rebind(const call *c, npuq_call *prepared)
{
    FOR_EACH_ARGUMENT(c, i)
    {
        const argument *a = &c->arguments[i];
        const int operand = test_operand_of(c->drawing.call.op, (enum slot)i);
        if (a->given && operand >= 0) {
            const npuq_status status = npuq_call_rebind(prepared, (npuq_operand)operand, a->tensor.data);
            if ((status == NPUQ_ERROR_LAYOUT && may_meet(c)) || (status == NPUQ_ERROR_ARGUMENT && is_in_place(c))) {
                return false;
            }
            if (status != NPUQ_OK) {
                FINDING("%s: argument %d: not moved: %s", operator_names[c->drawing.call.op], i, npuq_last_error());
            }
        }
    }
    return true;
}

static void run_units(void *prepared, size_t begin, size_t end)
{
    npuq_call_run(prepared, begin, end);
}

static npuq_status prepare_and_run(const call *c)
{
    const test_call value = value_of(c, c->arguments);
    npuq_call prepared;
    const npuq_status status = test_call_prepare(&prepared, &value);

    if (status != NPUQ_OK) {
        return status;
    }
    if (c->is_rebound) {
        const call moved = in_copies(c);
        const test_call moved_value = value_of(c, moved.arguments);
        npuq_call other;
        if (test_call_prepare(&other, &moved_value) != NPUQ_OK) {
            FINDING("%s: success, or %s elsewhere", operator_names[c->drawing.call.op], npuq_last_error());
        }
        if (rebind(c, &other)) {
            prepared = other;
        }
    }
    const size_t units = npuq_call_units(&prepared);
    if (units > 0) {
        test_shuffled_executor.parallel_for(NULL, units, run_units, &prepared);
    }
    return NPUQ_OK;
}

/* The results of the portable backend, where the reference would take too long. */
static void expect_as_portable(const call *c)
{
    const npuq_backend backend = npuq_active_backend();
    const call moved = in_copies(c);

    (void)npuq_set_backend(NPUQ_BACKEND_REF);
    if (run(&moved) != NPUQ_OK) {
        FINDING("%s: success, or %s with backend ref", operator_names[c->drawing.call.op], npuq_last_error());
    }
    (void)npuq_set_backend(backend);
}

/* The expected bytes after a success; until then, the bytes before the call. */
static void expect_success(const call *c)
{
    void *elements[SLOTS] = {NULL};

    if (c->arguments[c->order[0]].kind == EMPTY &&
        c->drawing.call.op != TEST_DYNAMIC_QUANT_MIN_MAX) { /* this operator gives the range of no elements */
        FOR_EACH_ARGUMENT(c, i)
        {
            if (c->arguments[i].role == OUTPUT && has_elements(&c->arguments[i])) {
                FINDING("%s: success with an empty input and an output that is not",
                        operator_names[c->drawing.call.op]);
            }
        }
        return;
    }
    FOR_EACH_ARGUMENT(c, i)
    {
        if (c->arguments[i].given && c->arguments[i].kind == BROADCAST) {
            expect_as_portable(c);
            return;
        }
    }
    FOR_EACH_ARGUMENT(c, i)
    {
        const argument *a = &c->arguments[i];
        if (a->given && a->kind != INSIDE && a->kind != EMPTY) {
            FINDING("%s: success with argument %d of kind %d", operator_names[c->drawing.call.op], i, (int)a->kind);
        }
        if (a->given && a->kind == EMPTY) {
            elements[i] = allocate(0);
        } else if (a->given) {
            const npuq_tensor before = in_expected(c, a);
            elements[i] = allocate(count_elements(&before) * npuq_dtype_size(before.dtype));
            test_view_read(&before, elements[i]);
        }
    }
    if (c->drawing.call.op == TEST_REQUANT && has_wrong_word(c)) {
        FINDING("%s: success with a word that the unit reads in another way", operator_names[c->drawing.call.op]);
    }
    const test_call value = value_of(c, c->arguments);
    test_call_oracle(&value, elements);
    FOR_EACH_ARGUMENT(c, i)
    {
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
    FOR_EACH_ARGUMENT(c, i)
    {
        if (memcmp(c->arenas[i].memory, c->arenas[i].expected, c->arenas[i].size) == 0) {
            continue;
        }
        for (size_t k = 0; k < c->arenas[i].size; k++) {
            if (c->arenas[i].memory[k] != c->arenas[i].expected[k]) {
                FINDING("%s, %s: %s: byte %zu of the memory of argument %d is %02x; expected %02x",
                        operator_names[c->drawing.call.op], npuq_backend_name(npuq_active_backend()), what, k, i,
                        c->arenas[i].memory[k], c->arenas[i].expected[k]);
            }
        }
    }
}

static void check_failure(const call *c, npuq_status status, bool may_be_layout)
{
    const char *message = npuq_last_error();
    const size_t length = strlen(operator_names[c->drawing.call.op]);

    check_memory(c, "failed");
    if (strcmp(npuq_status_name(status), "unknown status") == 0) {
        FINDING("%s: status %d", operator_names[c->drawing.call.op], (int)status);
    }
    if (strncmp(message, operator_names[c->drawing.call.op], length) != 0 || strncmp(message + length, ": ", 2) != 0) {
        FINDING("%s: message '%s'", operator_names[c->drawing.call.op], message);
    }
    for (const char *at = message; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            FINDING("%s: a message that is not one line of text: '%s'", operator_names[c->drawing.call.op], message);
        }
    }
    if (status == NPUQ_ERROR_LAYOUT && !may_be_layout && !strstr(message, "too irregular")) {
        FINDING("%s: nothing is wrong with the layout: %s", operator_names[c->drawing.call.op], message);
    }
    if (status == NPUQ_ERROR_ARGUMENT && c->drawing.call.op == TEST_REQUANT && !has_wrong_word(c)) {
        FINDING("%s: nothing is wrong with the words: %s", operator_names[c->drawing.call.op], message);
    }
}

static void check_call(call *c)
{
    bool refusal = must_fail(c);
    bool all_inside = true;

    FOR_EACH_ARGUMENT(c, i)
    {
        argument *a = &c->arguments[i];
        if (!refusal && a->given && a->kind == WILD) {
            a->tensor.data = NULL;
            a->kind = HOPELESS;
            refusal = true;
        }
        all_inside = all_inside && (!a->given || a->kind == INSIDE || a->kind == EMPTY);
    }
    FOR_EACH_ARGUMENT(c, i)
    {
        memcpy(c->arenas[i].expected, c->arenas[i].memory, c->arenas[i].size);
    }

    const bool shares = all_inside && shares_memory(c);
    const npuq_status status = c->is_prepared ? prepare_and_run(c) : run(c);
    if (status != NPUQ_OK) {
        const argument *x = &c->arguments[c->order[0]];
        check_failure(c, status, !all_inside || shares || repeats_one_element(c, x) || has_too_many_words(x));
        return;
    }
    if (refusal || shares) {
        FINDING("%s: success with arguments that %s", operator_names[c->drawing.call.op],
                shares ? "share memory" : "break a rule");
    }
    expect_success(c);
    check_memory(c, "done");
}

/* Chooses one of the backends that run here, unless NPUQ_BACKEND names one. */
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
    if (!given && usable[number % count] != npuq_active_backend()) { /* asking the CPU takes time */
        (void)npuq_set_backend(usable[number % count]);
    }
}

/* Rations large tensors, which take a hundred times as long: few of the inputs that a fuzzer derives from a large one
 * keep its sum. */
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
    call c = {.changed_bit = -1};
    const uint8_t form = take_byte(&in);

    c.drawing.call.op = (enum test_operator)(take_byte(&in) % TEST_OPERATORS);
    choose_backend(form % 4);
    c.may_be_large = sum_of_bytes(data, size) % 8 == 0;
    c.drawing.call.executor = form & 16 ? &c.executor : NULL;
    c.executor = test_shuffled_executor;
    c.executor.parallel_for = form >= 0xF0 && !(form & 8) ? NULL : c.executor.parallel_for;
    c.is_prepared = form & 32 && c.executor.parallel_for && test_takes_executor(c.drawing.call.op);
    c.is_rebound = form & 64;
    test_reseed(take_bytes(&in, 2)); /* of the elements */
    draw(&c, &in);

    /* The rest of the bytes replace elements that test_fill() has made. */
    for (int i = 0; i < c.count; i++) {
        const arena *memory = &c.arenas[c.order[i]];
        for (size_t k = 0; k < memory->size && in.left > 0; k++) {
            memory->memory[k] = take_byte(&in);
        }
    }
    FOR_EACH_ARGUMENT(&c, i)
    {
        c.arguments[i].kind = classify(&c, &c.arguments[i]);
    }
    FOR_EACH_ARGUMENT(&c, i)
    {
        argument *a = &c.arguments[i];
        /* without an output of a known size, the library would read all elements of the shape */
        if (a->kind == BROADCAST && (i == GROUP_INDEX || (i == X && c.drawing.call.op == TEST_DYNAMIC_QUANT_MIN_MAX))) {
            a->kind = WILD;
        }
    }
    write_groups(&c);
    write_words(&c);
    check_call(&c);
    FOR_EACH_ARGUMENT(&c, i)
    {
        free(c.arenas[i].memory);
        free(c.arenas[i].expected);
    }
    return 0;
}
