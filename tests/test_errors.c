/* SPDX-License-Identifier: BSD-3-Clause */
/* Every wrong call of an operator: its status, its message, and that no byte changes. Then valid calls that look wrong.
 * Each form of an operator has a valid base call; each case changes one thing in the base call. Each case is also
 * prepared: the library refuses with the same words, or gives the same bytes. */
#include "calls.h"
#include "status.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ------------------------------------------------------------------------------------------------------- */

typedef test_call call;

/* All memory of a call: one comparison shows whether the call wrote anything. */
enum { REGION = 3072, BEFORE = 1024 };
enum { ARENA = SLOTS * REGION, BUFFER = 16384 };
static unsigned char (*arena)[REGION]; /* a region for each slot */
static unsigned char arena_before[ARENA];
static unsigned char *buffer; /* for views that share memory */
static unsigned char buffer_before[BUFFER];

typedef struct outcome {
    unsigned char bytes[4096]; /* of all outputs */
} outcome;

static void copy_outputs(const call *c, unsigned char *bytes, bool write)
{
    FOR_EACH_OUTPUT(c, slot)
    {
        const npuq_tensor *t = &c->tensors[slot];

        (write ? test_view_write(t, bytes) : test_view_read(t, bytes));
        bytes += test_count(t->ndim, t->shape) * npuq_dtype_size(t->dtype);
    }
}

static outcome outputs_of(const call *c)
{
    outcome o = {{0}};

    copy_outputs(c, o.bytes, false);
    return o;
}

static void spoil_outputs(const call *c)
{
    outcome spoilt;

    memset(spoilt.bytes, 0xA5, sizeof spoilt.bytes);
    copy_outputs(c, spoilt.bytes, true);
}

/* Whether prepare and call refuse alike; the call's message is the last. Calls that find ranges cannot be prepared per
 * tensor: with a second mistake, the message may name either. */
static bool refused_alike(const call *c, npuq_status prepared_status, const char *prepared_message, npuq_status status)
{
    char prefix[64];

    if (test_finds_ranges(c->op) && c->quant_mode == NPUQ_PER_TENSOR) {
        snprintf(prefix, sizeof prefix, "%s: quant_mode: ", operator_names[c->op]);
        if (prepared_status == NPUQ_ERROR_ARGUMENT && strncmp(prepared_message, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return prepared_status == status && strcmp(prepared_message, npuq_last_error()) == 0;
}

static npuq_status run(const call *c)
{
    static unsigned char arena_after[ARENA];
    static unsigned char buffer_after[BUFFER];
    npuq_call prepared;
    npuq_call before;
    char message[256];

    if (!test_takes_executor(c->op) || c->executor) {
        return test_call_run(c);
    }
    memset(&prepared, 0x5A, sizeof prepared);
    before = prepared;
    const npuq_status prepared_status = test_call_prepare(&prepared, c);
    snprintf(message, sizeof message, "%s", npuq_last_error());
    const npuq_status status = test_call_run(c);
    if (prepared_status != NPUQ_OK) {
        assert_memory_equal(&prepared, &before, sizeof prepared);
        if (!refused_alike(c, prepared_status, message, status)) {
            fail_msg("prepared: %s, \"%s\"; run at once: %s, \"%s\"", npuq_status_name(prepared_status), message,
                     npuq_status_name(status), npuq_last_error());
        }
        return status;
    }
    assert_int_equal(prepared_status, status);
    memcpy(arena_after, arena, ARENA);
    memcpy(buffer_after, buffer, BUFFER);
    spoil_outputs(c);
    npuq_call_run(&prepared, 0, SIZE_MAX);
    assert_memory_equal(arena, arena_after, ARENA);
    assert_memory_equal(buffer, buffer_after, BUFFER);
    return status;
}

/* ---- calls as text ----------------------------------------------------------------------------------------------- */

/* As the header has them; `word` is ours. */
static const struct {
    npuq_dtype dtype;
    size_t size;
    const char *name, *word;
} all_dtypes[] = {
    {NPUQ_FLOAT32, 4, "FLOAT32", "f32"},
    {NPUQ_FLOAT16, 2, "FLOAT16", "f16"},
    {NPUQ_BFLOAT16, 2, "BFLOAT16", "bf16"},
    {NPUQ_INT8, 1, "INT8", "i8"},
    {NPUQ_UINT8, 1, "UINT8", "u8"},
    {NPUQ_INT32, 4, "INT32", "i32"},
    {NPUQ_INT64, 8, "INT64", "i64"},
    {NPUQ_UINT64, 8, "UINT64", "u64"},
    {NPUQ_QUINT4X2, 4, "QUINT4X2", "u4x8"},
    {NPUQ_HIFLOAT8, 1, "HIFLOAT8", "hif8"},
    {NPUQ_FLOAT8_E5M2, 1, "FLOAT8_E5M2", "e5m2"},
    {NPUQ_FLOAT8_E4M3FN, 1, "FLOAT8_E4M3FN", "e4m3fn"},
    {NPUQ_FLOAT8_E8M0, 1, "FLOAT8_E8M0", "e8m0"},
    {NPUQ_FLOAT4_E2M1, 1, "FLOAT4_E2M1", "e2m1"},
    {NPUQ_FLOAT4_E1M2, 1, "FLOAT4_E1M2", "e1m2"},
};

/* The bits of a word that requant ignores: 63..47 and 12..0; to FLOAT16 also 46..37. */
#define IGNORED_BITS    (~UINT64_C(0) << 47 | UINT64_C(0x1FFF))
#define FLAG_AND_OFFSET (UINT64_C(0x3FF) << 37)

static uint64_t ignored_bits(const call *c)
{
    return IGNORED_BITS | (c->tensors[Y].dtype == NPUQ_FLOAT16 ? FLAG_AND_OFFSET : 0);
}

/* Words that trans_quant_param makes of random scales and offsets, with random ignored bits. */
static void fill_words(uint64_t *words)
{
    float values[2][16];
    const npuq_tensor scale = npuq_vector(values[0], NPUQ_FLOAT32, COUNT(values[0]));
    const npuq_tensor offset = npuq_vector(values[1], NPUQ_FLOAT32, COUNT(values[1]));
    const npuq_tensor packed = npuq_vector(words, NPUQ_UINT64, COUNT(values[0]));

    for (size_t i = 0; i < COUNT(values[0]); i++) {
        values[0][i] = (float)test_between(1, 400) / 100.0f;
        values[1][i] = (float)test_between(-99, 99);
    }
    assert_int_equal(npuq_trans_quant_param(&scale, &offset, NPUQ_ROUND_TRUNCATE, &packed), NPUQ_OK);
    for (size_t i = 0; i < COUNT(values[0]); i++) {
        words[i] |= test_random() & IGNORED_BITS;
    }
}

/* Gives the call a contiguous tensor in the slot's region; an input gets values. */
static void give(call *c, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    static const int64_t ends[] = {1, 4, 6, 6};
    void *data = arena[slot] + BEFORE;

    c->given[slot] = true;
    c->tensors[slot] = npuq_tensor_contiguous(data, dtype, ndim, shape);
    if (slot == GROUP_INDEX) {
        for (int64_t e = 0; e < shape[0] && e < (int64_t)COUNT(ends); e++) {
            test_put_integer(&c->tensors[slot], e, ends[e]);
        }
    } else if (slot == WORDS) {
        fill_words(data);
    } else if (!test_is_output(c->op, slot)) {
        test_fill(data, dtype, test_count(ndim, shape), true);
    }
}

/* Changes of a call, in a text with blanks between them:
 *   x=f32[3,16]     a new contiguous tensor in the slot's region, with values; x=[3,16] or x=f16: of the same memory
 *   x=null          is not given
 *   x.ndim=3  x.shape[1]=7  x.strides[1]=-2  x.strides=[16,1]
 *   x.data=y+4      4 bytes from y, or from buffer
 *   x.at[4]=[16,1]  4 bytes into buffer, with these strides; an input keeps its values
 *   x.empty=1       dimension 1 becomes empty, with null data and senseless strides
 *   ends=[0,0,0,6]  elements of group_index; ends[3]=7; bits[3]=0x80 of words
 *   axis=-2         an option; of float by its bits
 * A number may be a sum, with powers of two: 2^32+6; "*" is any_number. */
typedef struct change {
    char name[24], member[24], word[24];
    int64_t first; /* the index on the left */
    int64_t numbers[NPUQ_MAX_NDIM];
    int count;
} change;

static int64_t any_number;

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static bool past(const char **at, char sign)
{
    const bool found = **at == sign;

    *at += found;
    return found;
}

static void read_word(const char **at, char *word)
{
    const size_t length = **at >= 'a' ? strspn(*at, "abcdefghijklmnopqrstuvwxyz_0123456789") : 0;

    assert_in_range(length, 0, 23);
    memcpy(word, *at, length);
    *at += length;
}

static int64_t read_number(const char **at)
{
    uint64_t sum = 0;

    if (past(at, '*')) {
        return any_number;
    }
    do {
        const bool negative = **at == '-';
        *at += negative || **at == '+';
        char *end;
        uint64_t term = strtoull(*at, &end, 0);

        if (*end == '^') {
            assert_int_equal(term, 2);
            term = UINT64_C(1) << strtoul(end + 1, &end, 10);
        }
        if (end == *at) {
            fail_msg("no number: \"%s\"", *at);
        }
        sum += negative ? 0 - term : term;
        *at = end;
    } while (**at == '+' || **at == '-');
    return (int64_t)sum;
}

static bool read_change(const char **at, change *how)
{
    read_word(at, how->name);
    if (past(at, '.')) {
        read_word(at, how->member);
    }
    if (past(at, '[')) {
        how->first = read_number(at);
        if (!past(at, ']')) {
            return false;
        }
    }
    if (!past(at, '=')) {
        return false;
    }
    read_word(at, how->word);
    const bool list = past(at, '[');
    if (list || !how->word[0] || **at == '+' || **at == '-') {
        do {
            how->numbers[how->count++] = read_number(at);
        } while (how->count < NPUQ_MAX_NDIM && past(at, ','));
    }
    return (!list || past(at, ']')) && (!**at || **at == ' ');
}

static npuq_dtype dtype_of(const char *word)
{
    for (size_t i = 0; i < COUNT(all_dtypes); i++) {
        if (is(all_dtypes[i].word, word)) {
            return all_dtypes[i].dtype;
        }
    }
    fail_msg("no dtype: \"%s\"", word);
    return NPUQ_FLOAT32;
}

static enum slot slot_of(const char *name)
{
    enum slot slot = 0;

    while (slot < SLOTS && !is(slot_names[slot], name)) {
        slot++;
    }
    return slot;
}

static unsigned char *first_byte(const npuq_tensor *t)
{
    return (unsigned char *)t->data;
}

static size_t byte_size(const npuq_tensor *t)
{
    return test_count(t->ndim, t->shape) * npuq_dtype_size(t->dtype);
}

static void move(call *c, enum slot slot, void *data, const int64_t *strides)
{
    npuq_tensor *t = &c->tensors[slot];
    unsigned char values[2048];

    test_view_read(t, values);
    t->data = data;
    memcpy(t->strides, strides, (size_t)t->ndim * sizeof *strides);
    if (!test_is_output(c->op, slot)) {
        test_view_write(t, values);
    }
}

static void empty(npuq_tensor *t, int64_t d)
{
    t->data = NULL;
    t->shape[d] = 0;
    for (int i = 0; i < NPUQ_MAX_NDIM; i++) {
        t->strides[i] = i % 2 ? INT64_MIN : INT64_MAX;
    }
}

static bool set_tensor(call *c, enum slot slot, const change *how)
{
    npuq_tensor *t = &c->tensors[slot];
    int64_t *const extents = is(how->member, "shape") ? t->shape : is(how->member, "strides") ? t->strides : NULL;

    if (extents) {
        assert_in_range(how->first, 0, NPUQ_MAX_NDIM - how->count);
        memcpy(extents + how->first, how->numbers, (size_t)how->count * sizeof *extents);
    } else if (is(how->member, "ndim")) {
        t->ndim = (int32_t)how->numbers[0];
    } else if (is(how->member, "data")) {
        const enum slot other = slot_of(how->word);
        assert_true(other < SLOTS || is(how->word, "buffer"));
        t->data = (other < SLOTS ? first_byte(&c->tensors[other]) : buffer) + how->numbers[0];
    } else if (is(how->member, "at")) {
        move(c, slot, buffer + how->first, how->numbers);
    } else if (is(how->member, "empty")) {
        empty(t, how->numbers[0]);
    } else if (how->member[0] || how->first != 0) {
        return false;
    } else if (is(how->word, "null")) {
        c->given[slot] = false;
    } else if (!how->word[0]) {
        *t = npuq_tensor_contiguous(t->data, t->dtype, how->count, how->numbers);
    } else if (how->count == 0) {
        t->dtype = dtype_of(how->word);
    } else {
        give(c, slot, dtype_of(how->word), how->count, how->numbers);
    }
    return true;
}

static bool set_option(call *c, const change *how)
{
    const int64_t value = how->word[0] ? (int64_t)dtype_of(how->word) : how->numbers[0];
    const uint32_t bits = (uint32_t)value;
#define SET(option, type) (is(how->name, #option) && (c->option = (type)value, true))
#define SET_BITS(option)  (is(how->name, #option) && memcpy(&c->option, &bits, sizeof bits))

    return SET(axis, int32_t) || SET(div_mode, bool) || SET(quant_mode, npuq_quant_mode) ||
           SET(scale_form, npuq_scale_form) || SET(round_mode, npuq_round_mode) || SET(block, int64_t) ||
           SET(row_block, int64_t) || SET(y_dtype, npuq_dtype) || SET(rounding, int32_t) ||
           SET(scale_algorithm, int32_t) || SET(small_groups, int32_t) || SET(bad_groups, int32_t) ||
           SET_BITS(min_scale) || SET_BITS(dst_type_max) || SET_BITS(max_low_bound);
}

static bool apply(call *c, const change *how)
{
    const enum slot slot = slot_of(how->name);

    if (slot < SLOTS) {
        return set_tensor(c, slot, how);
    }
    const bool ends = is(how->name, "ends");
    if (!ends && !is(how->name, "bits")) {
        return how->first == 0 && how->count <= 1 && set_option(c, how);
    }
    for (int i = 0; i < how->count; i++) {
        test_put_integer(&c->tensors[ends ? GROUP_INDEX : WORDS], how->first + i, how->numbers[i]);
    }
    return true;
}

static void set(call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set(call *c, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    assert_in_range(vsnprintf(text, sizeof text, format, arguments), 0, sizeof text - 1);
    va_end(arguments);
    for (const char *at = text; *at; at += *at == ' ') {
        const char *const start = at;
        change how = {.count = 0};

        if (!read_change(&at, &how) || !apply(c, &how)) {
            fail_msg("no change of a call: \"%s\"", start);
        }
    }
}

#define ROWS  "x=f16[2,3,16] smooth_scales=f32[4,16] group_index=i64[4] "
#define WHOLE "quant_mode=1 x=bf16[2,3,16] smooth_scales=f16[16] "
/* Each form of each operator. */
#define EACH_BASE(DO)                                                                                                  \
    DO(DIVIDE, op = TEST_QUANTIZE, "axis=1 div_mode=1 x=f32[3,16] scales=f32[16] zero_points=i32[16] y=i8[3,16]")      \
    DO(MULTIPLY, op = TEST_QUANTIZE, "axis=-2 x=bf16[3,16] scales=f32[3,1] zero_points=f32[3,1] y=i8[3,16]")           \
    DO(MULTIPLY_INT4, op = TEST_QUANTIZE, "axis=-1 x=f16[3,16] scales=f16[16] zero_points=f16[16] y=u4x8[3,2]")        \
    DO(GROUPS, op = TEST_GROUP_QUANT, "x=f16[6,16] scale=f32[4,16] offset=f32[1] group_index=i64[4] y=i8[6,16]")       \
    DO(GROUPS_INT4, op = TEST_GROUP_QUANT, "x=f16[6,16] scale=f32[4,16] offset=f32[1] group_index=i32[4] y=u4x8[6,2]") \
    DO(PACK, op = TEST_TRANS_QUANT_PARAM, "scale=f32[16] offset=f32[16] y=i64[16]")                                    \
    DO(PACK_ROW, op = TEST_TRANS_QUANT_PARAM, "round_mode=1 scale=f32[1,16] offset=f32[1,16] y=u64[1,16]")             \
    DO(TOKENS, op = TEST_DYNAMIC_QUANT_ASYMMETRIC, ROWS "y=i8[2,3,16] scale=f32[2,3] offset=f32[2,3]")                 \
    DO(TENSOR, op = TEST_DYNAMIC_QUANT_ASYMMETRIC, WHOLE "scale_form=1 y=u4x8[2,3,2] scale=f32[1] offset=f32[1]")      \
    DO(TOKEN_RANGES, op = TEST_DYNAMIC_QUANT_MIN_MAX, ROWS "min=f32[2,3] max=f32[2,3]")                                \
    DO(TENSOR_RANGE, op = TEST_DYNAMIC_QUANT_MIN_MAX, WHOLE "min=f32[1] max=f32[1]")                                   \
    DO(PARAMS, op = TEST_DYNAMIC_QUANT_PARAMS, "y_dtype=i8 min=f32[2,3] max=f32[2,3] scale=f32[2,3] offset=f32[2,3]")  \
    DO(TOKENS_APPLY, op = TEST_DYNAMIC_QUANT_APPLY, ROWS "y=i8[2,3,16] scale=f32[2,3] offset=f32[2,3]")                \
    DO(TENSOR_APPLY, op = TEST_DYNAMIC_QUANT_APPLY, WHOLE "y=u4x8[2,3,2] scale=f32[1] offset=f32[1]")                  \
    DO(SYMMETRIC_TOKENS, op = TEST_DYNAMIC_QUANT, ROWS "y=i8[2,3,16] scale=f32[2,3]")                                  \
    DO(SYMMETRIC_TENSOR, op = TEST_DYNAMIC_QUANT, WHOLE "scale_form=1 y=u4x8[2,3,2] scale=f32[1]")                     \
    DO(FLOAT8_TOKENS, op = TEST_DYNAMIC_QUANT_FLOAT8, ROWS "y=e4m3fn[2,3,16] scale=f32[2,3]")                          \
    DO(FLOAT8_TENSOR, op = TEST_DYNAMIC_QUANT_FLOAT8, WHOLE "dst_type_max=0x41700000 y=hif8[2,3,16] scale=f32[1]")     \
    DO(SYMMETRIC_PARAMS, op = TEST_DYNAMIC_QUANT_SYMMETRIC_PARAMS,                                                     \
       "y_dtype=i8 min=f32[2,3] max=f32[2,3] scale=f32[2,3]")                                                          \
    DO(SYMMETRIC_TOKENS_APPLY, op = TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY, ROWS "y=i8[2,3,16] min=f32[2,3] max=f32[2,3]") \
    DO(SYMMETRIC_TENSOR_APPLY, op = TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY, WHOLE "y=u4x8[2,3,2] min=f32[1] max=f32[1]")   \
    DO(BLOCKS, op = TEST_DYNAMIC_BLOCK_QUANT, "block=7 x=f16[2,3,16] y=i8[2,3,16] scale=f32[2,3,3]")                   \
    DO(BLOCKS_INT4, op = TEST_DYNAMIC_BLOCK_QUANT,                                                                     \
       "block=8 min_scale=0x3F000000 x=f32[3,16] y=u4x8[3,2] scale=f32[3,2]")                                          \
    DO(RECTANGLES, op = TEST_DYNAMIC_BLOCK_QUANT_FLOAT8,                                                               \
       "row_block=2 block=7 x=f16[2,3,16] y=e5m2[2,3,16] scale=f32[2,2,3]")                                            \
    DO(MX, op = TEST_DYNAMIC_MX_QUANT, "axis=-1 x=f16[3,70] y=e4m3fn[3,70] mxscale=e8m0[3,2,2]")                       \
    DO(MX_OPTIONS, op = TEST_DYNAMIC_MX_QUANT,                                                                         \
       "axis=0 block=64 scale_algorithm=1 small_groups=2 max_low_bound=0x3F800000 bad_groups=1 "                       \
       "x=bf16[65,3] y=e5m2[65,3] mxscale=e8m0[1,3,2]")                                                                \
    DO(MX_4_BITS, op = TEST_DYNAMIC_MX_QUANT,                                                                          \
       "axis=1 block=32 rounding=1 scale_algorithm=2 small_groups=1 dst_type_max=0x40E00000 "                          \
       "x=f32[2,33,6] y=e2m1[2,33,3] mxscale=e8m0[2,1,6,2]")                                                           \
    DO(ANTI_MX, op = TEST_ANTI_MX_QUANT, "axis=-1 x=e4m3fn[3,70] mxscale=e8m0[3,2,2] y=f16[3,70]")                     \
    DO(ANTI_MX_COLUMNS, op = TEST_ANTI_MX_QUANT, "axis=0 block=64 x=e5m2[65,3] mxscale=e8m0[1,3,2] y=bf16[65,3]")      \
    DO(ANTI_MX_4_BITS, op = TEST_ANTI_MX_QUANT, "axis=1 x=e2m1[2,33,1] mxscale=e8m0[2,1,2,2] y=f32[2,33,2]")           \
    DO(ANTI, op = TEST_ANTI_QUANT, "x=i8[2,3,16] scale=f32[16] offset=f32[16] y=f16[2,3,16]")                          \
    DO(ANTI_INT4, op = TEST_ANTI_QUANT, "x=u4x8[3,2] scale=bf16[16] offset=bf16[16] y=f32[3,16]")                      \
    DO(ANTI_GROUPS, op = TEST_ANTI_QUANT, "x=i8[6,16] scale=f32[3,16] offset=f32[3,16] y=f16[6,16]")                   \
    DO(SUMS, op = TEST_DEQUANT,                                                                                        \
       "x=i32[2,3,16] weight_scale=bf16[16] activation_scale=f32[2,3] bias=i32[16] y=bf16[2,3,16]")                    \
    DO(REQUANT_INT8, op = TEST_REQUANT, "x=i32[2,3,16] words=u64[16] bias=i32[16] y=i8[2,3,16]")                       \
    DO(REQUANT_ROW, op = TEST_REQUANT, "x=i32[6,16] words=i64[1,16] bias=i32[16] y=f16[6,16]")                         \
    DO(COLUMNS, op = TEST_QUANTIZE, "axis=-1 x=f32[3,16] scales=f32[16] zero_points=f32[16] y=i8[3,16]")

#define NUMBER(base, op, text) base,
enum base { EACH_BASE(NUMBER) BASES };

#define NAME(base, op, text) #base,
static const char *const base_names[] = {EACH_BASE(NAME)};

static call base_call(int base)
{
#define ROW(base, op, text) {{.op}, text},
    static const struct {
        call c;
        const char *text;
    } bases[] = {EACH_BASE(ROW)};
#undef ROW
    call c = bases[base].c;

    memset(arena, 0xA5, ARENA);
    test_reseed((uint64_t)base);
    set(&c, "%s", bases[base].text);
    return c;
}

/* ---- refused calls ---------------------------------------------------------------------------------------------- */

static int failures; /* of the running test */

/* NPUQ_TEST_MESSAGES names a file that gets every status and message, for the tables of the documentation. */
static void log_message(npuq_status status, const char *message)
{
    const char *name = getenv("NPUQ_TEST_MESSAGES");
    FILE *file = name ? fopen(name, "a") : NULL;

    if (file) {
        (void)fprintf(file, "%s\t%s\n", npuq_status_name(status), message);
        (void)fclose(file);
    }
}

/* Whether a message says "1 dimensions", or the like. */
static bool says_one_of_many(const char *message)
{
    for (const char *at = message; (at = strstr(at, " 1 ")) != NULL; at++) {
        const size_t letters = strspn(at + 3, "abcdefghijklmnopqrstuvwxyz");

        if (letters > 2 && at[2 + letters] == 's') { /* longer than "is" */
            return true;
        }
    }
    return false;
}

static void remember_memory(void)
{
    memcpy(arena_before, arena, ARENA);
    memcpy(buffer_before, buffer, BUFFER);
}

static bool memory_is_as_before(void)
{
    return memcmp(arena_before, arena, ARENA) == 0 && memcmp(buffer_before, buffer, BUFFER) == 0;
}

/* What a call must say that failed with the status `got`. The message names the argument; its two halves contain
 * `found` and `expected`. Null for any. */
static void check_refusal(const char *function, npuq_status got, npuq_status status, const char *name,
                          const char *found, const char *expected, const char *what)
{
    const char *message = npuq_last_error();
    char prefix[64];

    log_message(got, message);
    snprintf(prefix, sizeof prefix, "%s: %s%s", function, name ? name : "", name ? ": " : "");
    const char *second = strstr(message, "; expected ");
    const char *hit = found ? strstr(message, found) : message;
    const struct {
        bool is;
        const char *text;
    } problems[] = {
        {got != status, "the status is another"},
        {strncmp(message, prefix, strlen(prefix)) != 0, "the message does not begin with operator and argument"},
        {!second, "the message does not say what was expected"},
        {!hit || (second && hit > second), "the message does not say what was found"},
        {expected && second && !strstr(second, expected), "the message does not say what exactly was expected"},
        {strchr(message, '\n') != NULL, "the message has more than one line"},
        {strlen(message) == 255, "the message is cut off"},
        {says_one_of_many(message), "the message has a plural of 1"},
        {!memory_is_as_before(), "memory was written to"},
    };
    for (size_t i = 0; i < COUNT(problems); i++) {
        if (problems[i].is) {
            failures++;
            print_error("%s%s: %s\n    wanted %s, \"%s... %s ...; expected ... %s\"\n    got %s, \"%s\"\n", prefix,
                        what, problems[i].text, npuq_status_name(status), prefix, found ? found : "",
                        expected ? expected : "", npuq_status_name(got), message);
        }
    }
}

/* Runs a call that must fail. */
static void refused(const call *c, npuq_status status, const char *name, const char *found, const char *expected,
                    const char *what)
{
    remember_memory();
    check_refusal(operator_names[c->op], run(c), status, name, found, expected, what);
}

static void accepted(const call *c, const char *what)
{
    if (run(c) != NPUQ_OK) {
        failures++;
        print_error("%s: %s\n", what, npuq_last_error());
    }
}

static const char *number(int64_t value)
{
    static char texts[4][24];
    static unsigned next;
    char *text = texts[next++ % COUNT(texts)];

    snprintf(text, sizeof texts[0], "%" PRId64, value);
    return text;
}

#define FOR_EACH_BASE() for (int base = 0; base < BASES; base++)
#define FOR_EACH_ARGUMENT(slot)                                                                                        \
    FOR_EACH_BASE()                                                                                                    \
    for (enum slot slot = 0; slot < SLOTS; slot++)                                                                     \
        if (base_call(base).given[slot])

static void leave_out_optional_arguments(call *c)
{
    for (enum slot slot = 0; slot < SLOTS; slot++) {
        c->given[slot] = c->given[slot] && !test_is_optional(c->op, slot);
    }
}

static void bases_are_valid(void)
{
    FOR_EACH_BASE()
    {
        call c = base_call(base);
        accepted(&c, base_names[base]);
        leave_out_optional_arguments(&c);
        accepted(&c, base_names[base]);
    }
}

/* ---- rules for every argument ----------------------------------------------------------------------------------- */

static void null_arguments(void)
{
    const npuq_executor executor = {NULL, NULL};

    FOR_EACH_ARGUMENT(slot)
    {
        call c = base_call(base);
        c.tensors[slot].data = NULL;
        refused(&c, NPUQ_ERROR_NULL, slot_names[slot], "null", NULL, "null data");

        c = base_call(base);
        c.given[slot] = false;
        if (!test_is_optional(c.op, slot)) {
            refused(&c, NPUQ_ERROR_NULL, slot_names[slot], "null", NULL, "null");
        }
    }
    FOR_EACH_BASE()
    {
        call c = base_call(base);
        c.executor = &executor;
        if (test_takes_executor(c.op)) {
            refused(&c, NPUQ_ERROR_NULL, "executor", "parallel_for", NULL, "null function");
        }
    }
}

static const int unknown_dtypes[] = {-1, 5, 255, 257, 1 << 30};

static void dtype_sizes_and_names(void)
{
    for (size_t i = 0; i < COUNT(all_dtypes); i++) {
        assert_int_equal(npuq_dtype_size(all_dtypes[i].dtype), all_dtypes[i].size);
        assert_string_equal(npuq_dtype_name(all_dtypes[i].dtype), all_dtypes[i].name);
    }
    for (size_t i = 0; i < COUNT(unknown_dtypes); i++) {
        assert_int_equal(npuq_dtype_size((npuq_dtype)unknown_dtypes[i]), 0);
        assert_string_equal(npuq_dtype_name((npuq_dtype)unknown_dtypes[i]), "unknown");
    }
}

/* Arguments with a value for each row, in operators that have them by row. */
static const enum slot by_row[] = {SCALE, OFFSET, MIN, MAX, ACTIVATION_SCALE};

/* What the documentation of the operator lists for the argument. */
static const char *dtypes_of(const call *c, enum slot slot)
{
#define FLOATS       " f32 f16 bf16 "
#define SMALL_FLOATS " e4m3fn e5m2 e2m1 e1m2 "
    const bool anti = c->op == TEST_ANTI_QUANT;
    const bool of_sums = c->op == TEST_DEQUANT || c->op == TEST_REQUANT;
    const bool symmetric =
        c->op == TEST_DYNAMIC_QUANT || c->op == TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY || c->op == TEST_DYNAMIC_BLOCK_QUANT;

    switch (slot) {
    case X: return of_sums ? " i32 " : anti ? " i8 u4x8 " : c->op == TEST_ANTI_MX_QUANT ? SMALL_FLOATS : FLOATS;
    case SCALES:
    case SMOOTH_SCALES:
    case WEIGHT_SCALE: return FLOATS;
    case ZERO_POINTS: return c->div_mode ? FLOATS "i8 u8 i32 " : FLOATS;
    case SCALE:
    case OFFSET: return anti || c->op == TEST_GROUP_QUANT ? FLOATS : " f32 ";
    case BIAS: return c->op == TEST_DEQUANT ? FLOATS "i32 " : " i32 ";
    case WORDS: return " i64 u64 ";
    case GROUP_INDEX: return " i32 i64 ";
    case MXSCALE: return " e8m0 ";
    case Y:
        switch (c->op) {
        case TEST_TRANS_QUANT_PARAM: return " i64 u64 ";
        case TEST_REQUANT: return " i8 f16 ";
        case TEST_ANTI_QUANT:
        case TEST_ANTI_MX_QUANT:
        case TEST_DEQUANT: return FLOATS;
        case TEST_DYNAMIC_QUANT_FLOAT8:
        case TEST_DYNAMIC_BLOCK_QUANT_FLOAT8: return " e4m3fn e5m2 hif8 ";
        case TEST_DYNAMIC_MX_QUANT: return SMALL_FLOATS;
        case TEST_QUANTIZE: return c->div_mode ? " i8 u8 i32 e4m3fn e5m2 hif8 " : " i8 u4x8 e4m3fn e5m2 hif8 ";
        default: return symmetric ? " i8 u4x8 u8 " : " i8 u4x8 ";
        }
    default: return " f32 ";
    }
}

static bool takes(const call *c, enum slot slot, size_t dtype)
{
    char word[8];

    snprintf(word, sizeof word, " %s ", all_dtypes[dtype].word);
    return strstr(dtypes_of(c, slot), word) != NULL;
}

static const char *mode_of(const call *c)
{
    return c->div_mode ? ", as div_mode is true" : ", as div_mode is false";
}

static void dtypes(void)
{
    FOR_EACH_ARGUMENT(slot)
    {
        call c = base_call(base);
        for (size_t i = 0; i < COUNT(all_dtypes); i++) {
            c.tensors[slot].dtype = all_dtypes[i].dtype;
            if (takes(&c, slot, i)) {
                continue;
            }
            for (size_t k = 0; k < COUNT(all_dtypes); k++) {
                if (takes(&c, slot, k)) {
                    refused(&c, NPUQ_ERROR_DTYPE, slot_names[slot], all_dtypes[i].name, all_dtypes[k].name, "dtype");
                }
            }
            if (c.op == TEST_QUANTIZE && (slot == Y || slot == ZERO_POINTS)) {
                refused(&c, NPUQ_ERROR_DTYPE, slot_names[slot], NULL, mode_of(&c), "dtype by div_mode");
            }
        }
        for (size_t i = 0; i < COUNT(unknown_dtypes); i++) {
            c.tensors[slot].dtype = (npuq_dtype)unknown_dtypes[i];
            refused(&c, NPUQ_ERROR_DTYPE, slot_names[slot], number(unknown_dtypes[i]), NULL, "unknown dtype");
            assert_non_null(strstr(npuq_last_error(), ", which npuquant does not implement; expected "));
        }
    }
    call c = base_call(PARAMS);
    c.y_dtype = NPUQ_UINT8; /* which symmetric ranges take */
    refused(&c, NPUQ_ERROR_DTYPE, "y_dtype", "UINT8", "INT8 or QUINT4X2", "asymmetric");
}

/* Other arguments are compared with this one. */
static bool measures(const call *c, enum slot slot)
{
    return slot == X || (test_takes_ranges_only(c->op) && slot == MIN);
}

/* Whether the argument may have one dimension more: what other rules say of that is in the table. */
static bool may_be_row(int base, const call *c, enum slot slot)
{
    const bool of_tokens = test_is_dynamic(c->op) && c->quant_mode == NPUQ_PER_TOKEN;

    for (size_t i = 0; i < COUNT(by_row); i++) {
        if (slot == by_row[i] && (c->op == TEST_DEQUANT || of_tokens)) {
            return true; /* the last dimension may be 1 */
        }
    }
    return c->tensors[slot].ndim == 1 &&
           ((c->op == TEST_TRANS_QUANT_PARAM && slot != Y) || slot == SMOOTH_SCALES ||
            (slot == SCALES && !c->div_mode) || slot == WORDS || (slot == SCALE && base == ANTI_INT4));
}

static void ranks(void)
{
    static const int32_t wrong[] = {-1, 9, INT32_MIN, INT32_MAX};

    FOR_EACH_ARGUMENT(slot)
    {
        call c = base_call(base);
        npuq_tensor *t = &c.tensors[slot];
        const int32_t ndim = t->ndim;
        const bool by_mode = slot == SCALES || slot == ZERO_POINTS;

        for (size_t i = 0; i < COUNT(wrong); i++) {
            t->ndim = wrong[i];
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(wrong[i]), by_mode ? mode_of(&c) : NULL, "rank");
        }
        if (!(slot == OFFSET && c.op == TEST_GROUP_QUANT) && !(slot == X && (base == ANTI || base == ANTI_GROUPS)) &&
            !test_takes_ranges_only(c.op)) { /* in the table */
            t->ndim = 0;
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], "0 dimensions", NULL, "0-D");
        }
        t->ndim = ndim;
        if (!measures(&c, slot) && !may_be_row(base, &c, slot)) {
            t->shape[ndim] = t->shape[ndim - 1];
            t->strides[ndim] = t->strides[ndim - 1];
            t->shape[ndim - 1] = 1;
            t->ndim++;
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(t->ndim), NULL, "a dimension more");
        }
    }
}

#define FOR_EACH_DIMENSION(slot, d)                                                                                    \
    FOR_EACH_ARGUMENT(slot)                                                                                            \
    for (int d = 0; d < base_call(base).tensors[slot].ndim; d++)

static void extents(void)
{
    static const int64_t negative[] = {-1, INT64_MIN};

    FOR_EACH_DIMENSION(slot, d)
    {
        call c = base_call(base);
        npuq_tensor *t = &c.tensors[slot];
        const int64_t extent = t->shape[d];

        for (size_t i = 0; i < COUNT(negative); i++) {
            t->shape[d] = negative[i];
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(negative[i]), NULL, "negative extent");
        }
        /* One element less and one more, for an argument that another determines. */
        if (measures(&c, slot) || (slot == SCALE && c.op == TEST_GROUP_QUANT && d == 0) ||
            (slot == SCALE && c.op == TEST_TRANS_QUANT_PARAM && d == t->ndim - 1) ||
            (slot == SCALE && base == ANTI_GROUPS && d == 0) || (slot == SMOOTH_SCALES && t->ndim == 2 && d == 0)) {
            continue; /* in the table */
        }
        for (int64_t more = -1; more <= 1; more += 2) {
            const bool none = slot == SCALE && c.op == TEST_TRANS_QUANT_PARAM && more == -1;
            t->shape[d] = extent + more;
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(extent + more), none ? NULL : number(extent),
                    "extent");
        }
    }
}

static void misaligned_and_repeated_data(void)
{
    FOR_EACH_ARGUMENT(slot)
    {
        call c = base_call(base);
        npuq_tensor *t = &c.tensors[slot];
        const size_t size = npuq_dtype_size(t->dtype);
        for (size_t shift = 1; shift < size; shift++) {
            char found[64];
            t->data = arena[slot] + BEFORE + shift;
            snprintf(found, sizeof found, "%zu beyond a multiple of %zu", shift, size);
            refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], found, "multiple", "misaligned data");
        }
        if (slot == X) {
            t->data = arena[slot] + BEFORE;
            memset(t->strides, 0, sizeof t->strides);
            refused(&c, NPUQ_ERROR_LAYOUT, "x", "repeats one element", "distances", "no strides");
        }
    }
}

static void strides_beyond_the_address_space(void)
{
    static const int64_t strides[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1};

    for (size_t i = 0; i < COUNT(strides); i++) {
        call c;
        FOR_EACH_DIMENSION(slot, d)
        {
            c = base_call(base);
            c.tensors[slot].strides[d] = strides[i];
            if (c.tensors[slot].shape[d] > 1) {
                refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], "overflow", NULL, "stride");
            }
        }
        /* Two bytes that are PTRDIFF_MAX apart: each distance fits an int64_t, but no object has that size. */
        c = base_call(DIVIDE);
        set(&c, "x=f32[2] scales=f32[1] zero_points=i32[1] y=i8[2] y.strides[0]=%" PRId64, strides[i]);
        refused(&c, NPUQ_ERROR_LAYOUT, "y", "overflow", NULL, "bytes PTRDIFF_MAX apart");
    }
    call c = base_call(COLUMNS);
    c.tensors[X].data = (void *)(UINTPTR_MAX - 63);
    refused(&c, NPUQ_ERROR_LAYOUT, "x", "overflow", NULL, "around the end of the address space");
}

static void outputs_overlapping_themselves(void)
{
    FOR_EACH_DIMENSION(slot, d)
    {
        call c = base_call(base);
        npuq_tensor *t = &c.tensors[slot];
        if (!test_is_output(c.op, slot) || t->shape[d] <= 1) {
            continue;
        }
        /* a row's last element is the next row's first, forwards and backwards */
        const int64_t meeting = d + 1 < t->ndim ? (t->shape[d + 1] - 1) * t->strides[d + 1] : 0;
        for (int sign = -1; sign <= 1; sign++) {
            t->strides[d] = sign * meeting;
            if (sign == 0 || meeting != 0) {
                refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], "itself", NULL, "rows meet");
            }
        }
    }
}

/* Moves the tensor to `at`, or down to its alignment. */
static void place(npuq_tensor *t, unsigned char *at)
{
    t->data = at - (uintptr_t)at % npuq_dtype_size(t->dtype);
}

/* Each output over the beginning and the end of each other argument, and right before and behind it. */
static void outputs_next_to_arguments(void)
{
    FOR_EACH_ARGUMENT(slot)
    {
        for (enum slot other = 0; other < SLOTS; other++) {
            call c = base_call(base);
            npuq_tensor *out = &c.tensors[slot];
            const npuq_tensor *in = &c.tensors[other];
            if (!test_is_output(c.op, slot) || !c.given[other] || other == slot) {
                continue;
            }
            const size_t size = npuq_dtype_size(out->dtype);
            unsigned char *const begin = first_byte(in);
            unsigned char *const end = begin + byte_size(in);
            unsigned char *const over[] = {begin, end - 1, begin - byte_size(out) + size};
            const bool both = test_is_output(c.op, other); /* the message may name either first */
            for (size_t i = 0; i < COUNT(over); i++) {
                place(out, over[i]);
                refused(&c, NPUQ_ERROR_LAYOUT, both ? NULL : slot_names[slot], both ? NULL : slot_names[other], NULL,
                        "overlap");
                assert_non_null(strstr(npuq_last_error(), slot_names[slot]));
                assert_non_null(strstr(npuq_last_error(), slot_names[other]));
            }
            place(out, end + size - 1);
            accepted(&c, "an output right behind another argument");
            place(out, begin - byte_size(out));
            accepted(&c, "an output right before another argument");
        }
    }
}

/* ---- the table: rules of one operator --------------------------------------------------------------------------- */

typedef struct table_row {
    int base;
    const char *changes;
    npuq_status status;
    const char *argument, *found, *expected; /* no argument: the call is valid */
} table_row;

#define ROW(base, changes, status, argument, found, expected)                                                          \
    {                                                                                                                  \
        base, changes, NPUQ_ERROR_##status, argument, found, expected                                                  \
    }

#define VALID(base, changes)               ROW(base, changes, LAYOUT, NULL, NULL, NULL)
#define TOO_LARGE(base, changes, argument) ROW(base, changes, LAYOUT, argument, "overflow", NULL)
#define ON_SUMS                            "x=[1,3,16] activation_scale=[1,3] y=[1,3,16] y.strides[0]=-2^63 y.data=x"

static const table_row table[] = {
    /* quantize: axis */
    ROW(DIVIDE, "axis=2", AXIS, "axis", "2", "-2 to 1, as div_mode is true"),
    ROW(DIVIDE, "axis=-3", AXIS, "axis", "-3", "scales has 16 elements"),
    ROW(DIVIDE, "axis=2147483647", AXIS, "axis", "2147483647", "-2 to 1"),
    ROW(DIVIDE, "axis=-2147483648", AXIS, "axis", "-2147483648", "-2 to 1"),
    ROW(MULTIPLY, "axis=-3", AXIS, "axis", "-3", "-2 or more, as div_mode is false"),
    ROW(MULTIPLY, "axis=-2147483648", AXIS, "axis", "-2147483648", "-2 or more"),
    ROW(MULTIPLY, "x=[2,3,16] y=[2,3,16] axis=-3", AXIS, "axis", "-3", "-2 or more"), /* not counted from the end */
    ROW(MULTIPLY, "x=[16] y=[16] scales=[1] zero_points=[1]", AXIS, "axis", "-2",
        "-1 or more, as x has 1 dimension and div_mode is false"),
    /* one scale does not make axis irrelevant here */
    ROW(MULTIPLY_INT4, "scales=[1] zero_points=[1] axis=-3", AXIS, "axis", "-3", "-2 or more"),
    /* quantize: scales and zero_points */
    ROW(DIVIDE, "axis=0", SHAPE, "scales", "16", "3, dimension 0 of x, as axis is 0 and div_mode"),
    ROW(DIVIDE, "scales=[3] zero_points=[3]", SHAPE, "scales", "3", "16"),
    ROW(DIVIDE, "scales=[0] zero_points=[0]", SHAPE, "scales", "0", "16"),
    ROW(DIVIDE, "x=[3,1] y=[3,1] scales=[3] zero_points=[3]", SHAPE, "scales", "3", "expected 1, dimension 1 of x"),
    ROW(DIVIDE, "scales=[1,16] zero_points=[1,16]", SHAPE, "scales", "2 dim", "1, as"),
    ROW(DIVIDE, "scales=[1,1] zero_points=[1,1]", SHAPE, "scales", "2 dim", "1"),
    ROW(DIVIDE, "zero_points=[1]", SHAPE, "zero_points", "1", "16"),
    ROW(DIVIDE, "scales=[1]", SHAPE, "zero_points", "16", "1"),
    ROW(MULTIPLY, "axis=0", SHAPE, "scales", "3", "1"), /* axis 0 means the last dimension */
    ROW(MULTIPLY, "axis=-1", SHAPE, "scales", "3", "along dimension 1 of x, as axis is -1"),
    ROW(MULTIPLY, "axis=2", SHAPE, "scales", "3", "axis is 2 and div_mode"), /* and so does any axis beyond */
    ROW(MULTIPLY, "scales=[3,16] zero_points=[3,16]", SHAPE, "scales", "16", "1"),
    ROW(MULTIPLY, "scales=[2,1] zero_points=[2,1]", SHAPE, "scales", "2", "3"),
    ROW(MULTIPLY, "scales=[16] zero_points=[16]", SHAPE, "scales", "16", "3"),
    ROW(MULTIPLY, "scales=[2,3,1] zero_points=[2,3,1]", SHAPE, "scales", "3 dim", "mode"),
    ROW(MULTIPLY, "zero_points=[3]", SHAPE, "zero_points", "1 dim", "2"),
    ROW(MULTIPLY, "zero_points=[1,1]", SHAPE, "zero_points", "1", "3"),
    ROW(MULTIPLY_INT4, "scales=[1,16]", SHAPE, "zero_points", "1 dim", "2"),
    ROW(MULTIPLY, "zero_points=f16", DTYPE, "zero_points", "FLOAT16", "mode is false"),
    ROW(MULTIPLY, "scales=bf16", DTYPE, "zero_points", "FLOAT32", "BFLOAT16"),
    ROW(MULTIPLY_INT4, "zero_points=bf16", DTYPE, "zero_points", "BFLOAT16", "FLOAT16"),
    /* quantize: y */
    ROW(DIVIDE, "y=[48]", SHAPE, "y", "1 dim", "2"),
    ROW(DIVIDE, "y=[16,3]", SHAPE, "y", "16", "3"),
    ROW(MULTIPLY_INT4, "y=[3,16]", SHAPE, "y", "16", "in words of 8, as y is QUINT4X2"),
    ROW(MULTIPLY, "y=u4x8", SHAPE, "y", "16", "2"),
    ROW(MULTIPLY_INT4, "x=[3,12] scales=[12] zero_points=[12]", SHAPE, "x", "12", "multiple of 8"),
    ROW(MULTIPLY_INT4, "x=[3,4] scales=[4] zero_points=[4] y=[3,0]", SHAPE, "x", "4", "multiple of 8"),
    /* the stride of a dimension of one element does not count: x has no strides */
    ROW(DIVIDE, "x=[1,16] x.strides=[16,0] y=[1,16]", LAYOUT, "x", "repeats one element", "npuq_tensor_contiguous()"),
    /* quantize: extents that overflow */
    TOO_LARGE(DIVIDE, "x=[2^32,2^31] x.strides=[0,0] scales=[1] zero_points=[1] y=[2^32,2^31]", "x"),
    TOO_LARGE(DIVIDE, "x=[2,2^62,16] x.strides=[0,0,0] axis=2 y=[2,2^62,16]", "x"),
    TOO_LARGE(DIVIDE, "x=[2^61] y=[2^61] scales=[1] zero_points=[1]", "x"),
    TOO_LARGE(DIVIDE, "x=[2^61,2] x.strides[0]=0 y=[2^61,2] y=i32 scales=[1] zero_points=[1]", "y"),
    TOO_LARGE(MULTIPLY_INT4, "x=[2^40,16] x.strides[0]=0 y=[2^40,2] y.strides[0]=2^40", "y"),
    TOO_LARGE(DIVIDE, "x=[2^63-1,2^63-1,2^63-1] y=[2^63-1,2^63-1,2^63-1] scales=[1] zero_points=[1]", "x"),
    /* three times this extent is 2^64 + 2 */
    TOO_LARGE(COLUMNS, "x=[3,6148914691236517206] y=[3,6148914691236517206] scales=[1] zero_points=[1]", "x"),
    /* All strides but one are even, and nearly equal: no sum of them is odd, but only a full search could tell. The
       search is bounded, so the library refuses such a layout, even if no elements meet. */
    ROW(DIVIDE,
        "scales=[1] zero_points=[1] x=[2,6,6,6,6,6,6,6] x.strides=[1,0,0,0,0,0,0,0] y=[2,6,6,6,6,6,6,6] "
        "y.strides=[1,74,82,86,94,106,118,122]",
        LAYOUT, "y", "may overlap itself", "distinct"),
    /* x on the first two of every four bytes, in an irregular order; y on the last */
    ROW(DIVIDE,
        "scales=[1] zero_points=[1] x=[4,4,4,4,4,4,4] x=f16 x.strides=[74,82,86,94,106,118,122] y=[4,4,4,4,4,4,4] "
        "y.data=x+3 y.strides=[16384,4096,1024,256,64,16,4]",
        LAYOUT, "y", "may overlap x", "memory of its own"),
    VALID(DIVIDE, "scales.data=x zero_points.data=x"), /* inputs may share memory */
    /* group_quant */
    ROW(GROUPS, "x=[96]", SHAPE, "x", "1 dim", "2"),
    ROW(GROUPS, "x=[2,3,16]", SHAPE, "x", "3 dim", "2"),
    ROW(GROUPS, "x=f32[2,3,16] y=[2,3,16] scale=[4,3]", SHAPE, "x", "3 dimensions", "2"),
    ROW(GROUPS, "scale=[16]", SHAPE, "scale", "1 dim", "2"),
    ROW(GROUPS, "scale=[0,16] group_index=[0]", SHAPE, "scale", "0", NULL),
    ROW(GROUPS, "scale=[4,1]", SHAPE, "scale", "1", "16 (the last dimension of x)"),
    ROW(GROUPS, "scale=[3,16]", SHAPE, "group_index", "4", "3 (dimension 0 of scale)"),
    ROW(GROUPS, "group_index=[0]", SHAPE, "group_index", "0", "4"),
    ROW(GROUPS, "group_index=[4,1]", SHAPE, "group_index", "2 dim", "1"),
    ROW(GROUPS, "offset=[0]", SHAPE, "offset", "0", "1"),
    ROW(GROUPS, "offset=[4]", SHAPE, "offset", "4", "1"),
    ROW(GROUPS, "offset=[1,1]", SHAPE, "offset", "2 dim", "1"),
    ROW(GROUPS, "offset=f16", DTYPE, "offset", "FLOAT16", "FLOAT32"),
    ROW(GROUPS, "scale=bf16", DTYPE, "offset", "FLOAT32", "BFLOAT16"),
    ROW(GROUPS_INT4, "y=[6,16]", SHAPE, "y", "16", "2"),
    ROW(GROUPS_INT4, "x=[6,15] scale=[4,15]", SHAPE, "x", "15", "multiple of 8"),
    ROW(GROUPS, "ends[0]=-1", GROUP_INDEX, "group_index", "-1", "0"),
    ROW(GROUPS, "ends[0]=-2^63", GROUP_INDEX, "group_index", "-9223372036854775808", "0"),
    ROW(GROUPS, "ends[0]=5", GROUP_INDEX, "group_index", "4", "5"),
    ROW(GROUPS, "ends[1]=0", GROUP_INDEX, "group_index", "0", "1"),
    ROW(GROUPS, "ends[2]=7", GROUP_INDEX, "group_index", "6", "7"),
    ROW(GROUPS, "ends[3]=5", GROUP_INDEX, "group_index", "5", "6"),
    ROW(GROUPS, "ends[3]=7", GROUP_INDEX, "group_index", "7", "6"),
    ROW(GROUPS, "ends[2]=5 ends[3]=5", GROUP_INDEX, "group_index", "5", "6"),
    ROW(GROUPS, "ends[3]=2^32+6", GROUP_INDEX, "group_index", "4294967302", "6"),
    ROW(GROUPS, "ends[1]=2^32+4", GROUP_INDEX, "group_index", "6", "4294967300"),
    ROW(GROUPS, "ends[3]=2^63-1", GROUP_INDEX, "group_index", "9223372036854775807", "6"),
    ROW(GROUPS, "ends[2]=4-2^32", GROUP_INDEX, "group_index", "-4294967292", "4"),
    ROW(GROUPS_INT4, "ends[0]=-1", GROUP_INDEX, "group_index", "-1", "0"),
    ROW(GROUPS_INT4, "ends[1]=-2147483648", GROUP_INDEX, "group_index", "-2147483648", "1"),
    ROW(GROUPS_INT4, "ends[3]=2147483647", GROUP_INDEX, "group_index", "2147483647", "6"),
    ROW(GROUPS_INT4, "ends[2]=3", GROUP_INDEX, "group_index", "3", "4"),
    /* counts of rows */
    ROW(GROUPS, "ends=[3,0,2,1]", GROUP_INDEX, "group_index", "counts of rows, whose sum is 6", "cumulative sum"),
    /* that do not decrease */
    ROW(GROUPS, "ends=[0,0,3,3]", GROUP_INDEX, "group_index", "counts of rows, whose sum is 6", "cumulative sum"),
    ROW(GROUPS, "ends=[2,1,0,0]", GROUP_INDEX, "group_index", "1", "2"), /* of fewer rows, so they need not be counts */
    /* the sum is right, but no count is negative */
    ROW(GROUPS, "ends=[6,-1,1,0]", GROUP_INDEX, "group_index", "-1", "6"),
    ROW(GROUPS, "group_index.strides[0]=-1", GROUP_INDEX, "group_index", NULL, NULL),
    /* no rows: every group ends at 0 */
    ROW(GROUPS, "x=[0,16] y=[0,16] ends[0]=0", GROUP_INDEX, "group_index", "6", "0"),
    /* rows without columns: the groups must be right all the same */
    ROW(GROUPS, "x=[6,0] y=[6,0] scale=[4,0] ends[3]=7", GROUP_INDEX, "group_index", "7", "6"),
    TOO_LARGE(GROUPS, "x=[2^32,2^31] x.strides=[0,0] y=[2^32,2^31] scale=[4,2^31] scale.strides=[0,0] ends[3]=2^32",
              "x"),
    /* x is empty, scale is not */
    TOO_LARGE(GROUPS,
              "x=[0,2^32] y=[0,2^32] scale=[2^32,2^32] scale.strides=[0,0] group_index=[2^32] group_index.strides=[0]",
              "scale"),
    VALID(GROUPS, "ends=[0,0,6,6]"), /* empty groups at both ends */
    /* trans_quant_param */
    ROW(PACK, "round_mode=2", ARGUMENT, "round_mode", "2", "0 (truncate) or 1 (nearest)"),
    ROW(PACK, "round_mode=-1", ARGUMENT, "round_mode", "-1", "0"),
    ROW(PACK_ROW, "round_mode=2147483647", ARGUMENT, "round_mode", "2147483647", "1"),
    ROW(PACK, "scale=[0] offset=null y=[0]", SHAPE, "scale", "0", NULL),
    ROW(PACK, "scale=[4,0] offset=null y=[4,0]", SHAPE, "scale", "0", NULL),
    ROW(PACK, "scale=[2,1,8] offset=null", SHAPE, "scale", "3 dim", "1"),
    ROW(PACK, "scale=[15]", SHAPE, "offset", "16", "15"),
    ROW(PACK, "offset=[0]", SHAPE, "offset", "0", "16"),
    ROW(PACK, "scale=[1] offset=[0]", SHAPE, "offset", "0", "1"),
    ROW(PACK, "scale=[2,8]", SHAPE, "scale", "2", "1, as offset is given"),
    ROW(PACK, "scale=[1,15]", SHAPE, "offset", "16", "1 or 15, as scale has 15 elements"),
    ROW(PACK, "offset=[2,8]", SHAPE, "offset", "2", "1, a row"),
    ROW(PACK, "offset=[0,16]", SHAPE, "offset", "0", "1, a row"),
    ROW(PACK, "offset=[1,15]", SHAPE, "offset", "dimension 1 is 15", "1 or 16"),
    ROW(PACK, "offset=[1,0]", SHAPE, "offset", "dimension 1 is 0", "1 or 16"),
    ROW(PACK, "scale=[1] offset=[1,0]", SHAPE, "offset", "0", "at least 1"),
    ROW(PACK, "scale=[1,16] y=[1]", SHAPE, "y", "1", "16"),
    ROW(PACK, "scale=[1,1] y=[1,1]", SHAPE, "y", "1", "16"),
    ROW(PACK, "offset=[1,1] y=[2,8]", SHAPE, "y", "2", "1 ([n] or [1, n], with n"),
    ROW(PACK, "scale=[1] y=[1]", SHAPE, "y", "1", "16"),
    ROW(PACK, "offset=[1] y=[1]", SHAPE, "y", "1", "16"),
    ROW(PACK, "offset=null y=[1,16]", SHAPE, "y", "2 dim", "1"),
    ROW(PACK_ROW, "scale=[1,15]", SHAPE, "offset", "16", "15"),
    ROW(PACK_ROW, "scale=[16,1]", SHAPE, "scale", "16", "1"),
    ROW(PACK_ROW, "offset=[1,1]", SHAPE, "offset", "1", "16"),
    ROW(PACK_ROW, "offset=[15]", SHAPE, "offset", "15", "16"),
    ROW(PACK_ROW, "y=[16]", SHAPE, "y", "1 dim", "2"),
    TOO_LARGE(PACK_ROW, "offset=null scale=[2^32,2^31] scale.strides=[0,0] y=[2^32,2^31]", "scale"),
    TOO_LARGE(PACK, "offset=null scale=[2^60] scale.strides=[0] y=[2^60]", "y"),
    VALID(PACK, "offset.data=scale"),
    /* dynamic_quant_asymmetric */
    ROW(TOKENS, "quant_mode=2", ARGUMENT, "quant_mode", "2", "0"),
    ROW(TOKENS, "quant_mode=-1", ARGUMENT, "quant_mode", "-1", "1"),
    ROW(TENSOR, "quant_mode=2147483647", ARGUMENT, "quant_mode", "2147483647", "1"),
    ROW(TOKENS, "quant_mode=1 scale=[1] offset=[1]", ARGUMENT, "group_index", "given",
        "null, as quant_mode is 1 (per tensor)"),
    ROW(TOKENS, "smooth_scales=null", ARGUMENT, "group_index", "smooth_scales", "null"),
    ROW(TOKENS, "smooth_scales=[16]", ARGUMENT, "group_index", "1-D", "a row for each group"),
    ROW(TOKENS, "group_index=null", ARGUMENT, "smooth_scales", "2 dim", "1, as group_index is null"),
    ROW(TENSOR, "smooth_scales=[1,16]", ARGUMENT, "smooth_scales", "2 dim", "1"),
    ROW(TENSOR, "smooth_scales=[4,16] group_index=i64[4]", ARGUMENT, "group_index", "given",
        "null, as quant_mode is 1 (per tensor)"),
    ROW(TOKENS, "x=[16] y=[16] scale=[1,1]", SHAPE, "scale", "2 dim", "0"),
    ROW(TOKENS, "x=[16] y=[16] scale=[2]", SHAPE, "scale", "2", "1"),
    ROW(TOKENS, "scale=[2,3,2]", SHAPE, "scale", "2", "quant_mode is 0, per token"),
    ROW(TOKENS, "scale=[2,4,1]", SHAPE, "scale", "4", "3"),
    ROW(TOKENS, "scale=[2,3,1]", SHAPE, "offset", "2 dim", "3 (the shape of scale)"),
    ROW(TOKENS, "offset=[2,3,1]", SHAPE, "offset", "3 dim", "2 (the shape of scale)"),
    ROW(TOKENS, "smooth_scales=[0,16] group_index=[0]", SHAPE, "smooth_scales", "0", "1 to 1024"),
    ROW(TOKENS,
        "smooth_scales=[1025,16] smooth_scales.strides=[0,0] group_index=[1025] group_index.strides=[0] ends[0]=6",
        SHAPE, "smooth_scales", "1025", "1024, a row for each group, as group_index is given"),
    ROW(TOKENS, "smooth_scales=[3,16]", SHAPE, "group_index", "4", "3 (dimension 0 of smooth"),
    ROW(TOKENS, "group_index=[4,1]", SHAPE, "group_index", "2 dim", "1"),
    ROW(TENSOR, "smooth_scales=[1]", SHAPE, "smooth_scales", "1", "16"),
    ROW(TOKENS, "scale=[6]", SHAPE, "scale", "1 dim", "quant_mode is 0, per token"),
    ROW(TOKENS, "offset=[3,2]", SHAPE, "offset", "3", "2"),
    ROW(TOKENS, "scale=[1] offset=[1]", SHAPE, "scale", "1 dim", "2"),
    ROW(TENSOR, "scale=[2,3] offset=[2,3]", SHAPE, "scale", "2 dim", "quant_mode is 1"),
    ROW(TENSOR, "offset=[6]", SHAPE, "offset", "6", "1"),
    ROW(TOKENS, "y=[6,16]", SHAPE, "y", "2 dim", "3"),
    ROW(TENSOR, "y=[2,3,16]", SHAPE, "y", "16", "2"),
    ROW(TENSOR, "x=[2,3,12] smooth_scales=[12]", SHAPE, "x", "12", "multiple of 8"),
    ROW(TOKENS, "x=[2,3,0] y=[2,3,0] smooth_scales=[4,0]", SHAPE, "x", "0", "1"),
    ROW(TENSOR, "x=[2,3,0] y=[2,3,0] smooth_scales=[0]", SHAPE, "x", "0", "1"),
    ROW(TENSOR, "x=[2,0,16] y=[2,0,2]", SHAPE, "x", "0", "1 or more, as quant_mode is 1"),
    ROW(TOKENS, "ends[0]=-1", GROUP_INDEX, "group_index", "-1", "0"),
    ROW(TOKENS, "ends[0]=5", GROUP_INDEX, "group_index", "4", "5"),
    ROW(TOKENS, "ends[3]=5", GROUP_INDEX, "group_index", "5", "6"),
    ROW(TOKENS, "ends[3]=7", GROUP_INDEX, "group_index", "7", "6"),
    ROW(TOKENS, "ends[3]=2^32+6", GROUP_INDEX, "group_index", "4294967302", "6"),
    ROW(TOKENS, "ends[1]=2^40", GROUP_INDEX, "group_index", "6", "1099511627776"),
    ROW(TOKENS, "ends=[6,0,0,0]", GROUP_INDEX, "group_index", "counts of rows, whose sum is 6", "cumulative sum"),
    ROW(TOKENS, "group_index=i32[4] ends[2]=-6", GROUP_INDEX, "group_index", "-6", "4"),
    ROW(TOKENS, "x=[2,0,16] y=[2,0,16] scale=[2,0] offset=[2,0]", GROUP_INDEX, "group_index", "6", "0"),
    TOO_LARGE(TENSOR, "x=[2,2^58,16] x.strides=[0,0,0] y=[2,2^58,2]", "x"),
    TOO_LARGE(TENSOR, "x=[2,2^56,16] x.strides=[0,0,1] y=[2,2^56,2] y.strides[0]=2^61", "y"),
    TOO_LARGE(TOKENS, "x=[2,2^60,1] x.strides=[1,0,0] y=[2,2^60,1] scale=[2,2^60] offset=[2,2^60] smooth_scales=[4,1]",
              "y"),
    /* fused rows of x and y, a byte too close together */
    ROW(TOKENS, "x.at[0]=[84,28,1] y.data=buffer+31 y.strides=[168,56,1]", LAYOUT, "y", "overlaps x", NULL),
    VALID(TOKENS, "smooth_scales.data=x smooth_scales=f16"),
    VALID(TOKENS, "smooth_scales=null group_index=null x=f32[16] y=i8[16] scale.ndim=0 offset.ndim=0"), /* by itself */
    /* each tensor alone looks fit for the fast path */
    ROW(SYMMETRIC_TENSOR, "smooth_scales=null scale=[2]", SHAPE, "scale", "2", "1"),
    ROW(TOKENS, "quant_mode=1 x=[1,16] y=[1,16] scale=[1] offset=[1] ends=[0,0,0,1]", ARGUMENT, "group_index", "given",
        "per tensor"),
    ROW(TOKENS, "smooth_scales=null group_index=null quant_mode=2", ARGUMENT, "quant_mode", "2", "0"),
    ROW(TOKENS, "smooth_scales=[1025,16] group_index=[1025]", SHAPE, "smooth_scales", "1025", "1024"),
    /* the steps of dynamic_quant_asymmetric */
    ROW(TOKEN_RANGES, "quant_mode=2", ARGUMENT, "quant_mode", "2", "0"),
    ROW(TOKENS_APPLY, "quant_mode=-1", ARGUMENT, "quant_mode", "-1", "1"),
    ROW(TOKEN_RANGES, "smooth_scales=null", ARGUMENT, "group_index", "smooth_scales", "null"),
    ROW(TOKENS_APPLY, "group_index=null", ARGUMENT, "smooth_scales", "2 dim", "1"),
    ROW(TOKEN_RANGES, "quant_mode=1 min=[1] max=[1]", ARGUMENT, "group_index", "given",
        "null, as quant_mode is 1 (per tensor)"),
    ROW(TENSOR_RANGE, "min=[2,3] max=[2,3]", SHAPE, "min", "2 dim", "1"),
    ROW(TOKEN_RANGES, "min=[1] max=[1]", SHAPE, "min", "1 dim", "2"),
    ROW(TOKEN_RANGES, "min=[2,3,1]", SHAPE, "max", "2 dim", "3 (the shape of min)"),
    ROW(TOKENS_APPLY, "scale=[1] offset=[1]", SHAPE, "scale", "1 dim", "2"),
    ROW(TENSOR_APPLY, "x=[2,3,12] smooth_scales=[12]", SHAPE, "x", "12", "multiple of 8"),
    ROW(TOKEN_RANGES, "ends[3]=5", GROUP_INDEX, "group_index", "5", "6"),
    ROW(TOKENS_APPLY, "ends[0]=5", GROUP_INDEX, "group_index", "4", "5"),
    ROW(PARAMS, "y_dtype=i32", DTYPE, "y_dtype", "INT32", "or QUINT4X2"),
    ROW(PARAMS, "y_dtype=77", DTYPE, "y_dtype", "77, which npuquant does not", "or QUINT4X2"),
    ROW(SYMMETRIC_PARAMS, "y_dtype=i32", DTYPE, "y_dtype", "INT32", "INT8, UINT8 or QUINT4X2"),
    ROW(PARAMS, "min=[6]", SHAPE, "max", "2 dim", "1"),
    ROW(PARAMS, "min=[3,2]", SHAPE, "max", "2", "3"),
    ROW(PARAMS, "min=[3,2] max=[3,2]", SHAPE, "scale", "2", "3"),
    ROW(PARAMS, "min.ndim=0", SHAPE, "max", "2 dim", "0"),
    /* dynamic_quant and its steps: what the rows above do not say, which symmetric_base takes to them */
    ROW(SYMMETRIC_TOKENS, "scale_form=2", ARGUMENT, "scale_form", "2", "0"),
    ROW(SYMMETRIC_TENSOR, "scale_form=-1", ARGUMENT, "scale_form", "-1", "1"),
    ROW(FLOAT8_TOKENS, "dst_type_max=0x41700000", ARGUMENT, "dst_type_max", "not 0", "0, as y is FLOAT8_E4M3FN"),
    ROW(FLOAT8_TOKENS, "y=e5m2[2,3,16] dst_type_max=1", ARGUMENT, "dst_type_max", "not 0", "FLOAT8_E5M2"),
    ROW(FLOAT8_TENSOR, "dst_type_max=0xBF800000", ARGUMENT, "dst_type_max", "-1", "finite"),
    ROW(FLOAT8_TENSOR, "dst_type_max=0x7F800000", ARGUMENT, "dst_type_max", "inf", "finite"),
    ROW(FLOAT8_TENSOR, "dst_type_max=0x7FC00000", ARGUMENT, "dst_type_max", "nan", "finite"),
    ROW(SYMMETRIC_PARAMS, "scale_form=2", ARGUMENT, "scale_form", "2", "0"),
    ROW(SYMMETRIC_PARAMS, "scale_form=2147483647", ARGUMENT, "scale_form", "2147483647", "1"),
    ROW(SYMMETRIC_TOKENS_APPLY, "min=[6]", SHAPE, "min", "1 dim", "2"),
    ROW(SYMMETRIC_TOKENS_APPLY, "min=[2,3,1]", SHAPE, "max", "2 dim", "3 (the shape of min)"),
    ROW(SYMMETRIC_TOKENS_APPLY, "min=[1] max=[1]", SHAPE, "min", "1 dim", "2"),
    ROW(SYMMETRIC_TOKENS_APPLY, "max=[3,2]", SHAPE, "max", "3", "2"),
    ROW(SYMMETRIC_TENSOR_APPLY, "min=[2,3] max=[2,3]", SHAPE, "min", "2 dim", "1"),
    /* dynamic_block_quant */
    ROW(BLOCKS, "block=0", ARGUMENT, "block", "0", "1 or more"),
    ROW(BLOCKS, "block=-1", ARGUMENT, "block", "-1", "1 or more"),
    ROW(BLOCKS, "block=-2^63", ARGUMENT, "block", "-9223372036854775808", "1 or more"),
    ROW(BLOCKS, "block=8", SHAPE, "scale", "3", "2 (the shape of x, its last dimension divided by"),
    ROW(BLOCKS, "block=2^63-1", SHAPE, "scale", "3", "1"),
    ROW(BLOCKS, "scale=[6,3]", SHAPE, "scale", "2 dim", "3"),
    ROW(BLOCKS, "y=[6,16]", SHAPE, "y", "2 dim", "3"),
    ROW(BLOCKS, "min_scale=0xBF800000", ARGUMENT, "min_scale", "-1", "finite"),
    ROW(BLOCKS, "min_scale=0x80000001", ARGUMENT, "min_scale", "-1.4", "0 or more"),
    ROW(BLOCKS, "min_scale=0x7F800000", ARGUMENT, "min_scale", "inf", "finite"),
    ROW(BLOCKS, "min_scale=0x7FC00000", ARGUMENT, "min_scale", "nan", "finite"),
    ROW(BLOCKS_INT4, "block=4", ARGUMENT, "block", "4", "a multiple of 8"),
    ROW(BLOCKS_INT4, "block=15", ARGUMENT, "block", "15", "at least 16"),
    ROW(BLOCKS_INT4, "block=17", SHAPE, "scale", "2", "1"),
    ROW(BLOCKS_INT4, "x=[3,12]", SHAPE, "x", "12", "multiple of 8"),
    ROW(RECTANGLES, "row_block=0", ARGUMENT, "row_block", "0", "1 or more"),
    ROW(RECTANGLES, "block=-2^63", ARGUMENT, "column_block", "-9223372036854775808", "1 or more"),
    ROW(RECTANGLES, "row_block=3", SHAPE, "scale", "dimension 1 is 2", "1 (the shape of x, its last two dimensions"),
    ROW(RECTANGLES, "row_block=2^63-1", SHAPE, "scale", "dimension 1 is 2", "1"),
    ROW(RECTANGLES, "block=8", SHAPE, "scale", "dimension 2 is 3", "2"),
    ROW(RECTANGLES, "scale=[4,3]", SHAPE, "scale", "2 dim", "3"),
    ROW(RECTANGLES, "x=[96] y=[96]", SHAPE, "x", "1 dim", "2 to 8"),
    ROW(RECTANGLES, "min_scale=0xBF800000", ARGUMENT, "min_scale", "-1", "finite"),
    ROW(RECTANGLES, "dst_type_max=0x41700000", ARGUMENT, "dst_type_max", "another", "0, as y is FLOAT8_E5M2"),
    ROW(RECTANGLES, "y=hif8[2,3,16] dst_type_max=0x41800000", ARGUMENT, "dst_type_max", "another", "224 or 32768"),
    ROW(RECTANGLES, "y=hif8[2,3,16] dst_type_max=0xFFC00000", ARGUMENT, "dst_type_max", "another", "0, 15, 56"),
    /* dynamic_mx_quant */
    ROW(MX, "axis=2", AXIS, "axis", "2", "-2 to 1, as x has 2 dimensions"),
    ROW(MX, "axis=-3", AXIS, "axis", "-3", "-2 to 1"),
    ROW(MX_4_BITS, "axis=2147483647", AXIS, "axis", "2147483647", "-3 to 2"),
    ROW(MX, "axis=-2147483648", AXIS, "axis", "-2147483648", "-2 to 1"),
    ROW(MX, "x=[210] y=[210] mxscale=[4,2] axis=1", AXIS, "axis", "1", "-1 to 0, as x has 1 dimension"),
    ROW(MX, "block=48", ARGUMENT, "options.block", "48", "a multiple of 32 up to 1024, or 0 for 32"),
    ROW(MX, "block=-32", ARGUMENT, "options.block", "-32", "a multiple of 32"),
    ROW(MX_OPTIONS, "block=1056", ARGUMENT, "options.block", "1056", "1024"),
    ROW(MX_4_BITS, "block=-2147483648", ARGUMENT, "options.block", "-2147483648", "1024"),
    ROW(MX_4_BITS, "rounding=3", ARGUMENT, "options.rounding", "3", "0 to 2"),
    ROW(MX_4_BITS, "rounding=-1", ARGUMENT, "options.rounding", "-1", "0 to 2"),
    ROW(MX, "rounding=1", ARGUMENT, "options.rounding", "1 (round)", "0 (rint), as y is FLOAT8_E4M3FN"),
    ROW(MX_OPTIONS, "rounding=2", ARGUMENT, "options.rounding", "2 (floor)", "0 (rint), as y is FLOAT8_E5M2"),
    ROW(MX, "scale_algorithm=3", ARGUMENT, "options.scale_algorithm", "3", "0 to 2"),
    ROW(MX, "scale_algorithm=-1", ARGUMENT, "options.scale_algorithm", "-1", "0 to 2"),
    ROW(MX, "scale_algorithm=2", ARGUMENT, "options.scale_algorithm", "2", "0 or 1, as y is FLOAT8_E4M3FN"),
    ROW(MX_4_BITS, "scale_algorithm=1", ARGUMENT, "options.scale_algorithm", "1", "0 or 2, as y is FLOAT4_E2M1"),
    ROW(MX_4_BITS, "y=e1m2 scale_algorithm=1", ARGUMENT, "options.scale_algorithm", "1", "0, as y is FLOAT4_E1M2"),
    ROW(MX_4_BITS, "y=e1m2", ARGUMENT, "options.scale_algorithm", "2", "0, as y is FLOAT4_E1M2"),
    ROW(MX, "small_groups=3", ARGUMENT, "options.small_groups", "3", "0 to 2"),
    ROW(MX, "small_groups=-1", ARGUMENT, "options.small_groups", "-1", "0 to 2"),
    ROW(MX, "bad_groups=2", ARGUMENT, "options.bad_groups", "2", "0 to 1"),
    ROW(MX, "bad_groups=-1", ARGUMENT, "options.bad_groups", "-1", "0 to 1"),
    ROW(MX_4_BITS, "bad_groups=1", ARGUMENT, "options.bad_groups", "1 (NaN)", "FLOAT4_E2M1, which has no NaN"),
    ROW(MX_4_BITS, "dst_type_max=0x40BFFFFF", ARGUMENT, "options.dst_type_max", "another", "0, or 6 to 12"),
    ROW(MX_4_BITS, "dst_type_max=0x41400001", ARGUMENT, "options.dst_type_max", "another", "0, or 6 to 12"),
    ROW(MX_4_BITS, "dst_type_max=0xC0E00000", ARGUMENT, "options.dst_type_max", "another", "0, or 6 to 12"),
    ROW(MX_4_BITS, "dst_type_max=0x7FC00000", ARGUMENT, "options.dst_type_max", "another", "0, or 6 to 12"),
    ROW(MX, "dst_type_max=1", ARGUMENT, "options.dst_type_max", "another", "0, or 6 to 12"), /* has no effect here */
    ROW(MX_OPTIONS, "max_low_bound=0xBF800000", ARGUMENT, "options.max_low_bound", "-1", "finite"),
    ROW(MX_OPTIONS, "max_low_bound=0x7F800000", ARGUMENT, "options.max_low_bound", "inf", "finite"),
    ROW(MX_OPTIONS, "max_low_bound=0x7FC00000", ARGUMENT, "options.max_low_bound", "nan", "finite"),
    ROW(MX, "max_low_bound=1", ARGUMENT, "options.max_low_bound", "another", "0, as options.scale_algorithm is 0"),
    ROW(MX_4_BITS, "max_low_bound=1", ARGUMENT, "options.max_low_bound", "another",
        "0, as options.scale_algorithm is 2"),
    ROW(MX, "mxscale=[3,4]", SHAPE, "mxscale", "2 dim", "3 (the shape of x, its axis in pairs of groups, and 2)"),
    ROW(MX, "mxscale=[3,3,1]", SHAPE, "mxscale", "dimension 1 is 3", "2 (the shape of x, its axis in pairs"),
    ROW(MX, "block=64", SHAPE, "mxscale", "dimension 1 is 2", "1"),
    ROW(MX, "axis=0", SHAPE, "mxscale", "dimension 0 is 3", "1"),
    ROW(MX_4_BITS, "axis=2", SHAPE, "mxscale", "dimension 1 is 1", "33"),
    ROW(MX_4_BITS, "mxscale=[2,1,3,2]", SHAPE, "mxscale", "3", "6"), /* scales for values, not for bytes */
    ROW(MX_4_BITS, "x=[2,33,5] mxscale=[2,1,5,2]", SHAPE, "x", "5", "a multiple of 2"),
    ROW(MX_4_BITS, "x=[33,5] y=e1m2[33,2] scale_algorithm=0 axis=0 mxscale=[1,5,2]", SHAPE, "x", "5", "FLOAT4_E1M2"),
    ROW(MX_4_BITS, "y=[2,33,6]", SHAPE, "y", "6", "3"),
    ROW(MX, "x=[1,1,1,1,1,1,3,70]", SHAPE, "x", "8 dimensions", "1 to 7"),
    ROW(MX, "y=[1,1,1,1,1,1,3,70]", SHAPE, "y", "8 dimensions", NULL),
    TOO_LARGE(MX, "x=[2,2^62,16] x.strides=[0,0,0] y=[2,2^62,16] mxscale=[2,2^62,1,2]", "x"),
    TOO_LARGE(MX, "x=[2,2^56,16] x.strides=[0,0,1] y=[2,2^56,16] mxscale=[2,2^56,1,2]", "y"),
    /* anti_mx_quant */
    ROW(ANTI_MX, "axis=2", AXIS, "axis", "2", "-2 to 1, as x has 2 dimensions"),
    ROW(ANTI_MX_4_BITS, "axis=-2147483648", AXIS, "axis", "-2147483648", "-3 to 2"),
    ROW(ANTI_MX, "block=48", ARGUMENT, "options.block", "48", "a multiple of 32 up to 1024, or 0 for 32"),
    ROW(ANTI_MX_COLUMNS, "block=1056", ARGUMENT, "options.block", "1056", "1024"),
    ROW(ANTI_MX, "mxscale=[3,4]", SHAPE, "mxscale", "2 dim", "3 (the shape of x, its axis in pairs of groups, and 2)"),
    ROW(ANTI_MX, "mxscale=[3,3,1]", SHAPE, "mxscale", "dimension 1 is 3", "2 (the shape of x, its axis in pairs"),
    ROW(ANTI_MX, "block=64", SHAPE, "mxscale", "dimension 1 is 2", "1"),
    ROW(ANTI_MX, "axis=0", SHAPE, "mxscale", "dimension 0 is 3", "1"),
    ROW(ANTI_MX_COLUMNS, "axis=1", SHAPE, "mxscale", "dimension 0 is 1", "65"),
    ROW(ANTI_MX_4_BITS, "mxscale=[2,1,1,2]", SHAPE, "mxscale", "dimension 2 is 1",
        "2"), /* scales for values, not for bytes */
    ROW(ANTI_MX, "y=[3,69]", SHAPE, "y", "69", "70 (the shape of x)"),
    ROW(ANTI_MX_4_BITS, "y=[2,33,1]", SHAPE, "y", "dimension 2 is 1",
        "2 (the shape of x, with 2 elements for each word"),
    ROW(ANTI_MX_4_BITS, "x=e1m2 y=[2,33,3]", SHAPE, "y", "3", "FLOAT4_E1M2"),
    ROW(ANTI_MX_4_BITS, "y=[33,2]", SHAPE, "y", "2 dim", "3"),
    ROW(ANTI_MX, "x=[1,1,1,1,1,1,3,70]", SHAPE, "x", "8 dimensions", "1 to 7"),
    /* twice as many elements are more than can be counted */
    ROW(ANTI_MX_4_BITS, "x=[2,0,2^62] y=[2,0,2^63-1]", LAYOUT, "x", "4611686018427387904 words",
        "at most 4611686018427387903"),
    TOO_LARGE(ANTI_MX, "x=[2,2^62,16] x.strides=[0,0,0] y=[2,2^62,16] mxscale=[2,2^62,1,2]", "x"),
    /* anti_quant */
    ROW(ANTI, "scale=[2] offset=[2]", SHAPE, "scale", "2", "1 or 16"),
    ROW(ANTI, "scale=[0] offset=[0]", SHAPE, "scale", "0", "1 or 16"),
    ROW(ANTI, "scale=[1,16] offset=[1,16]", SHAPE, "scale", "2 dim", "1"),
    ROW(ANTI_GROUPS, "scale=[4,16] offset=[4,16]", SHAPE, "scale", "4", "6"),
    ROW(ANTI_GROUPS, "scale=[0,16] offset=[0,16]", SHAPE, "scale", "0", "6"),
    ROW(ANTI_GROUPS, "scale=[3,1] offset=[3,1]", SHAPE, "scale", "1", "16"),
    ROW(ANTI_GROUPS, "scale=[2,16]", SHAPE, "offset", "3", "2"),
    ROW(ANTI_GROUPS, "offset=[16]", SHAPE, "offset", "1 dim", "2"),
    ROW(ANTI, "scale=[1]", SHAPE, "offset", "16", "1"),
    ROW(ANTI, "offset=[1]", SHAPE, "offset", "1", "16"),
    ROW(ANTI, "offset=f16", DTYPE, "offset", "FLOAT16", "FLOAT32"),
    ROW(ANTI, "scale=f16", DTYPE, "offset", "FLOAT32", "FLOAT16"),
    ROW(ANTI_INT4, "offset=f32", DTYPE, "offset", "FLOAT32", "BFLOAT16"),
    ROW(ANTI, "x.ndim=0 y.ndim=0", SHAPE, "scale", "16", "1, as a row of x has 1 element"),
    ROW(ANTI, "x.ndim=0 scale=[1] offset=[1]", SHAPE, "y", "3 dim", "0"),
    ROW(ANTI, "x=u4x8 y=[2,3,128]", SHAPE, "scale", "16", "128"), /* a scale for each element, not for each word */
    ROW(ANTI_INT4, "scale=[2] offset=[2]", SHAPE, "scale", "2", "1 or 16"),
    ROW(ANTI_INT4, "y=[3,2]", SHAPE, "y", "2", "8 elements for each word, as x is QUINT4X2"),
    ROW(ANTI_INT4, "y=[48]", SHAPE, "y", "1 dim", "2"),
    ROW(ANTI_INT4, "x=i8", SHAPE, "y", "16", "2"),
    ROW(ANTI_INT4, "x=i8 y=[3,2]", SHAPE, "scale", "16", "1 or 2"),
    /* eight times as many elements are more than can be counted */
    ROW(ANTI_INT4, "x=[0,2^60] y=[0,2^63-1] scale=[1] offset=[1]", LAYOUT, "x", "1152921504606846976 words",
        "at most 1152921504606846975"),
    /* and are not taken for none */
    ROW(ANTI_INT4, "x=[3,2^61] y=[3,0] scale=[1] offset=[1]", LAYOUT, "x", "2305843009213693952 words",
        "at most 1152921504606846975"),
    TOO_LARGE(ANTI_INT4, "x=[3,2^58] x.strides=[1,0] scale=[1] offset=[1] y=[3,2^61]", "y"),
    TOO_LARGE(ANTI, "x=[2,2^62,16] x.strides=[0,0,0] y=[2,2^62,16]", "x"),
    TOO_LARGE(ANTI, "x=[2,2^56,16] x.strides=[0,0,1] y=[2,2^56,16]", "y"),
    /* dequant */
    ROW(SUMS, "weight_scale=[3]", SHAPE, "weight_scale", "3", "1 or 16"),
    ROW(SUMS, "weight_scale=[0]", SHAPE, "weight_scale", "0", "1 or 16"),
    ROW(SUMS, "activation_scale=[6]", SHAPE, "activation_scale", "1 dim", "2"),
    ROW(SUMS, "activation_scale=[1]", SHAPE, "activation_scale", "1 dim", "2"),
    ROW(SUMS, "activation_scale=[3,2]", SHAPE, "activation_scale", "3", "2"),
    ROW(SUMS, "activation_scale=[1,1]", SHAPE, "activation_scale", "1", "2"),
    ROW(SUMS, "activation_scale=[2,3,2]", SHAPE, "activation_scale", "2", "1"),
    /* one row has one activation scale, a scalar or [1] */
    ROW(SUMS, "x=[16] activation_scale=[1,1] y=[16]", SHAPE, "activation_scale", "2 dim", "0"),
    ROW(SUMS, "bias=[1]", SHAPE, "bias", "1", "16"),
    ROW(SUMS, "bias=[0]", SHAPE, "bias", "0", "16"),
    ROW(SUMS, "bias=[2,3,16]", SHAPE, "bias", "3 dim", "1"),
    ROW(SUMS, "y=[6,16]", SHAPE, "y", "2 dim", "3"),
    TOO_LARGE(SUMS, "x=[2,2^58,16] x.strides=[0,0,0] activation_scale=null y=[2,2^58,16]", "x"),
    TOO_LARGE(SUMS, "x=[2,2^56,16] x.strides=[0,0,1] activation_scale=null y=[2,2^56,16]", "y"),
    /* y over the sums, but with another view or another element size; the stride of an extent of 1 is ignored */
    ROW(SUMS, ON_SUMS, LAYOUT, "y", "overlaps x", "memory of its own, or a dtype of 4 bytes"),
    ROW(SUMS, ON_SUMS "+4 y=f32", LAYOUT, "y", "overlaps x", "memory of its own, or a dtype of 4 bytes"),
    ROW(SUMS, ON_SUMS "+64 y=f32", LAYOUT, "y", "overlaps x", "memory of its own, or a dtype of 4 bytes"),
    ROW(SUMS, ON_SUMS " y=f32 y.strides[1]=32", LAYOUT, "y", "overlaps x", "memory of its own, or a dtype of 4 bytes"),
    ROW(SUMS, ON_SUMS "+128 y=f32 y.strides[1]=-16", LAYOUT, "y", "overlaps x",
        "memory of its own, or a dtype of 4 bytes"),
    ROW(SUMS, ON_SUMS " y=f32 bias.data=x", LAYOUT, "y", "overlaps bias", "memory of its own"),
    VALID(SUMS, "weight_scale.data=x activation_scale.data=x bias.data=x"),
    /* requant: shapes; its words have a test of their own */
    ROW(REQUANT_INT8, "words=[2]", SHAPE, "words", "2", "1 or 16"),
    ROW(REQUANT_INT8, "words=[0]", SHAPE, "words", "0", "1 or 16"),
    ROW(REQUANT_INT8, "words=[16,1]", SHAPE, "words", "16", "1"),
    ROW(REQUANT_INT8, "words=[2,16]", SHAPE, "words", "2", "1"),
    ROW(REQUANT_ROW, "words=[1,1]", SHAPE, "words", "1", "16 (a row as long as the last dimension"),
    ROW(REQUANT_ROW, "words=[0,16]", SHAPE, "words", "0", "1"),
    ROW(REQUANT_ROW, "words=[2,1,16]", SHAPE, "words", "3 dim", "1"),
    ROW(REQUANT_INT8, "bias=[1]", SHAPE, "bias", "1", "16"),
    ROW(REQUANT_ROW, "bias=[0]", SHAPE, "bias", "0", "16"),
    ROW(REQUANT_ROW, "y=[2,3,16]", SHAPE, "y", "3 dim", "2"),
    /* a scale's bits as int64: no flag for INT8, and the sign of a negative scale must not be copied upwards */
    ROW(REQUANT_INT8, "bits=[0x3F000000,0x40400000]", ARGUMENT, "words", "element 0 is 0x3F000000", "bit 46"),
    ROW(REQUANT_ROW, "bits=[0x3F000000,0x40400000,0x0DA24260,0xBE800000-2^32,0x40E00000,0]", ARGUMENT, "words",
        "element 3 is 0xFFFFFFFFBE800000", "by zeros"),
    VALID(REQUANT_ROW, "bits=[0x3F000000,0x40400000,0x0DA24260,0xBE800000,0x40E00000,0] bits[15]=0x3F800000"),
    TOO_LARGE(REQUANT_INT8, "x=[2,2^62,16] x.strides=[0,0,0] y=[2,2^62,16]", "x"),
    TOO_LARGE(REQUANT_INT8, "x=[2,2^56,16] x.strides=[0,0,1] y=[2,2^56,16]", "y"),
};

static void try_row(int base, const table_row *row)
{
    char what[300];
    call c = base_call(base);

    set(&c, "%s", row->changes);
    snprintf(what, sizeof what, "%s %s", base_names[base], row->changes);
    if (row->argument) {
        refused(&c, row->status, row->argument, row->found, row->expected, what);
    } else {
        accepted(&c, what);
    }
}

static void table_of_rules(void)
{
    /* of dynamic_quant_asymmetric and its steps: the same rules hold */
    static const int symmetric_base[BASES] = {[TOKENS] = SYMMETRIC_TOKENS,
                                              [TENSOR] = SYMMETRIC_TENSOR,
                                              [PARAMS] = SYMMETRIC_PARAMS,
                                              [TOKENS_APPLY] = SYMMETRIC_TOKENS_APPLY,
                                              [TENSOR_APPLY] = SYMMETRIC_TENSOR_APPLY};

    for (size_t i = 0; i < COUNT(table); i++) {
        const int symmetric = symmetric_base[table[i].base];
        const enum slot slot = table[i].argument ? slot_of(table[i].argument) : SLOTS;

        try_row(table[i].base, &table[i]);
        if (symmetric != 0 && (slot == SLOTS || base_call(symmetric).given[slot])) {
            try_row(symmetric, &table[i]);
        }
    }
}

/* ---- valid calls ------------------------------------------------------------------------------------------------- */

/* The results with all tensors contiguous. */
static outcome plain_outcome(const call *c)
{
    if (run(c) != NPUQ_OK) {
        fail_msg("%s", npuq_last_error());
    }
    return outputs_of(c);
}

/* The call writes the bytes of `expected` to its outputs, and nothing anywhere else. */
static void gives(const call *c, const outcome *expected, const char *what)
{
    spoil_outputs(c);
    remember_memory();
    const npuq_status status = run(c);
    const outcome got = outputs_of(c);
    const char *problem = NULL;
    spoil_outputs(c);
    if (status != NPUQ_OK) {
        problem = npuq_last_error();
    } else if (memcmp(got.bytes, expected->bytes, sizeof got.bytes) != 0) {
        problem = "wrong values";
    } else if (!memory_is_as_before()) {
        problem = "wrote beside its outputs";
    }
    if (problem) {
        failures++;
        print_error("%s, %s: %s\n", operator_names[c->op], what, problem);
    }
}

/* ---- overlaps that only an exact search finds ------------------------------------------------------------------- */

/* x is [rows, columns] FLOAT32, y INT8; both in one region. */
static call two_dimensional(int rows, int columns)
{
    call c = base_call(DIVIDE);

    set(&c, "x=f32[%d,%d] scales=f32[1] zero_points=i32[1] y=i8[%d,%d]", rows, columns, rows, columns);
    return c;
}

static void refused_or_accepted(const call *c, bool meet, const char *found, const char *what)
{
    if (meet) {
        refused(c, NPUQ_ERROR_LAYOUT, "y", found, NULL, what);
    } else {
        accepted(c, what);
    }
}

static void exact_overlaps(void)
{
    /* Rows of x every 32 bytes, 16 long; rows of y in the gaps, or a byte too early or too late. */
    for (int gap = 14; gap <= 30; gap++) {
        call c = two_dimensional(4, 4);
        set(&c, "x.strides=[8,1] y.strides=[32,1] y.data=x+%d", gap);
        refused_or_accepted(&c, gap < 16 || gap > 28, "overlaps x", "rows of y between rows of x");
    }

    /* A column of y next to every column of x, on each byte of the gap and of x. */
    for (int at = 0; at < 8; at++) {
        call c = two_dimensional(3, 5);
        set(&c, "x.strides=[10,2] y.strides=[40,8] y.data=x+%d", at);
        refused_or_accepted(&c, at < 4, "overlaps x", "columns of y between columns of x");
    }

    /* Strides that do not nest: only arithmetic tells whether elements meet. */
    static const struct {
        int rows, columns, s0, s1;
        bool meet;
    } outputs[] = {
        {4, 4, 3, 2, true},  /* 2 * 3 = 3 * 2 */
        {2, 4, 3, 2, false}, /* 0 2 4 6, 3 5 7 9 */
        {3, 3, 3, 2, false}, /* 0 2 4, 3 5 7, 6 8 10 */
        {3, 4, 3, 2, true},  /* 6 is in the first and the third row */
        {4, 2, 3, 4, false}, /* 0 4, 3 7, 6 10, 9 13 */
        {5, 4, 3, 4, true},  /* 12 */
        {4, 4, -3, 2, true},     {2, 4, -3, 2, false},   {4, 2, 3, -4, false}, {16, 15, 15, 16, false},
        {17, 15, 15, 16, false}, {17, 16, 15, 16, true}, {1, 9, 0, 1, false},  {9, 1, 1, 0, false},
        {2, 2, 1, -1, true},     {3, 3, 7, 7, true},
    };
    for (size_t i = 0; i < COUNT(outputs); i++) {
        call c = two_dimensional(outputs[i].rows, outputs[i].columns);
        set(&c, "y.data=y+768 y.strides=[%d,%d]", outputs[i].s0, outputs[i].s1);
        refused_or_accepted(&c, outputs[i].meet, "itself", "strides that do not nest");
    }

    /* Two lattices: x at multiples of 24 bytes, 4 long; y at multiples of 10 bytes from some start. */
    for (int start = 0; start < 24; start++) {
        call c = two_dimensional(1, 7);
        bool meet = false;
        set(&c, "x.strides[1]=6 y.strides[1]=10 y.data=x+%d", start);
        for (int byte = start; byte < start + 70; byte += 10) {
            meet = meet || (byte % 24 < 4 && byte / 24 < 7);
        }
        refused_or_accepted(&c, meet, "overlaps x", "lattices");
    }
}

/* Whether no elements share a byte. Afterwards, buffer has 1 in the bytes of elements, and 0 in all others. */
static bool are_distinct(const npuq_tensor *t)
{
    unsigned char ones[256 * 8];
    size_t count = 0;

    memset(ones, 1, sizeof ones);
    memset(buffer, 0, BUFFER);
    test_view_write(t, ones);
    for (int i = 0; i < BUFFER; i++) {
        count += buffer[i];
    }
    return count == byte_size(t);
}

/* Any strides up to `most` elements, or nearly nested strides, as of a slice, often one element too short. Nearly
 * nested, the largest shape of random_overlaps() spans over 1530 elements: half of buffer has room for them. */
static void random_strides(npuq_tensor *t, int64_t most)
{
    const bool nested = test_one_in(2);
    int64_t span = test_between(1, 4);

    for (int d = t->ndim - 1; d >= 0; d--) {
        const int64_t stride = span + test_between(-1, 2);

        span += stride * (t->shape[d] - 1);
        t->strides[d] = nested ? (test_one_in(4) ? -stride : stride) : test_between(-most, most);
    }
}

/* Random layouts of y, alone or among the elements of its input: the x of quantize or the scale of trans_quant_param,
 * in every pair of element sizes. */
static void random_overlaps(void)
{
    enum { TRIALS = 20000 };
    static const npuq_dtype x_dtypes[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
    static const npuq_dtype y_dtypes[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
    const call quantize = two_dimensional(1, 1);
    call pack = base_call(PACK);
    int met[2] = {0};

    pack.given[OFFSET] = false;
    for (int trial = 0; trial < 2 * TRIALS; trial++) {
        const bool pair = trial >= TRIALS;
        int64_t shape[4];
        unsigned char values[256 * 4];
        char what[16];
        bool meet;

        test_reseed((pair ? 2000000u - TRIALS : 1000000u) + (unsigned)trial);
        const int ndim = (int)test_between(1, 4);
        for (int d = 0; d < ndim; d++) {
            shape[d] = test_between(1, ndim == 4 ? 4 : 6); /* 256 elements at most */
        }
        const bool packs = pair && ndim <= 2 && test_one_in(2);
        call c = packs ? pack : quantize;
        const enum slot in = packs ? SCALE : X;
        npuq_tensor *x = &c.tensors[in];
        npuq_tensor *y = &c.tensors[Y];
        const npuq_dtype x_dtype = pair && !packs ? x_dtypes[test_below(COUNT(x_dtypes))] : NPUQ_FLOAT32;
        const npuq_dtype y_dtype = packs ? NPUQ_UINT64 : y_dtypes[test_below(COUNT(y_dtypes))];
        *x = npuq_tensor_contiguous(arena[in] + BEFORE, x_dtype, ndim, shape);
        *y = npuq_tensor_contiguous(arena[Y], y_dtype, ndim, shape);
        call plain = c;

        y->data = buffer + BUFFER / 2;
        if (!pair) {
            test_fill(x->data, x_dtype, test_count(ndim, shape), false);
            random_strides(y, 40);
            meet = !are_distinct(y);
        } else {
            /* An input in the middle; an output that does not overlap itself, near the input or among its elements. */
            x->data = buffer + BUFFER / 2;
            do {
                random_strides(x, packs ? 30 : 12);
            } while (!packs && test_repeats_one_element(x));
            do { /* some trials have nested strides, so the loop ends */
                const int64_t size = (int64_t)npuq_dtype_size(y_dtype);
                y->data = buffer + BUFFER / 2 + test_between(-96 / size, 96 / size) * size;
                random_strides(y, 120 / size);
            } while (!are_distinct(y));
            test_view_read(x, values);
            meet = memchr(values, 1, byte_size(x)) != NULL;
            for (int i = 0; i < BUFFER; i++) {
                buffer[i] = (unsigned char)test_random();
            }
            test_view_read(x, values);
            test_view_write(&plain.tensors[in], values);
        }
        snprintf(what, sizeof what, "trial %d", trial);
        if (meet) {
            refused(&c, NPUQ_ERROR_LAYOUT, "y",
                    !pair   ? "overlaps itself"
                    : packs ? "overlaps scale"
                            : "overlaps x",
                    pair ? "memory of its own" : "distinct", what);
            met[pair]++;
        } else {
            const outcome expected = plain_outcome(&plain);
            gives(&c, &expected, what);
        }
    }
    assert_in_range(met[0], TRIALS / 10, TRIALS - TRIALS / 10); /* enough of either kind */
    assert_in_range(met[1], TRIALS / 10, TRIALS - TRIALS / 10);
}

/* ---- unusual and valid ------------------------------------------------------------------------------------------ */

/* Other shapes and strides for the same tensors, or other options: none of the changes after the first changes the
 * results. "*" is a stride that is not looked at, as its extent is 1; "|" is between calls. */
static const struct {
    int base;
    const char *first, *then;
} same_calls[] = {
    /* each token's x, y, scale and offset side by side: 32 + 16 + 4 + 4 bytes */
    {TOKENS, "", "x.at[0]=[84,28,1] y.at[32]=[168,56,1] scale.at[48]=[42,14] offset.at[52]=[42,14]"},
    /* columns in turn; everything of trans_quant_param in one array of structs; scale and offset as pairs */
    {DIVIDE, "y=i32", "x.at[0]=[32,2] y.at[4]=[32,2]"},
    {PACK, "", "scale.at[0]=[4] offset.at[4]=[4] y.at[8]=[2]"},
    {TOKENS, "", "scale.at[0]=[6,2] offset.at[4]=[6,2]"},
    /* rows of y in the gaps of x, the parameters in the gaps of y */
    {GROUPS, "", "x.at[0]=[48,1] y.at[32]=[96,1] offset.at[48]=[1] group_index.at[56]=[12]"},
    {GROUPS, "", "offset.ndim=0 offset.shape[0]=-7"}, /* extents beyond ndim are not looked at */
    {GROUPS_INT4, "", "offset.ndim=0 offset.shape[0]=-7"},
    {PARAMS, "min=[1] max=[1] scale=[1] offset=[1]", "min.ndim=0 max.ndim=0 scale.ndim=0 offset.ndim=0"},
    {SYMMETRIC_PARAMS, "min=[1] max=[1] scale=[1]", "min.ndim=0 max.ndim=0 scale.ndim=0"},
    {ANTI, "x=[1] scale=[1] offset=[1] y=[1]", "x.ndim=0 y.ndim=0"},
    /* one row: its activation scale is a scalar */
    {SUMS, "x=[1,16] activation_scale=[1] y=[1,16]", "x=[16] activation_scale.ndim=0 y=[16]"},
    /* of a column, the stride of the last dimension is not looked at */
    {SUMS, "", "activation_scale=[2,3,1] activation_scale.strides[2]=*"},
    /* each row's x, y and scales side by side: 140 + 70 + 4 bytes; pairs apart */
    {MX, "", "x.at[0]=[108,1] y.at[140]=[216,1] mxscale.at[210]=[216,2,1]"},
    {MX_4_BITS, "", "mxscale.at[0]=[30,*,2,15]"},
    {MX_OPTIONS, "", "mxscale.at[512]=[*,-3,-70]"},
    {ANTI_MX, "", "y.at[0]=[108,1] x.at[140]=[216,1] mxscale.at[210]=[216,2,1]"},
    {ANTI_MX_4_BITS, "", "mxscale.at[0]=[30,*,2,15]"},
    {ANTI_MX_COLUMNS, "", "mxscale.at[512]=[*,-3,-70]"},
    {TOKENS, "", "scale=[2,3,1] scale.strides[2]=* offset=[2,3,1] offset.strides[2]=*"},
    {SYMMETRIC_TOKENS_APPLY, "", "min=[2,3,1] max=[2,3,1]"},
    {TOKEN_RANGES, "", "min=[2,3,1] max=[2,3,1]"},
    {SYMMETRIC_TENSOR, "quant_mode=0 x=[1,16] y=[1,2] scale=[1]", "x=[16] y=[2]|scale.ndim=0"}, /* a row by itself */
    /* one parameter for all, for the same one again and again; no stride of it is looked at */
    {ANTI, "scale.strides=[0] offset.strides=[0]",
     "scale.shape[0]=1 offset.shape[0]=1 scale.strides[0]=* offset.strides[0]=*"},
    {ANTI_INT4, "scale.strides=[0] offset.strides=[0]",
     "scale.shape[0]=1 offset.shape[0]=1 scale.strides[0]=* offset.strides[0]=*"},
    {SUMS, "weight_scale.strides=[0]", "weight_scale.shape[0]=1 weight_scale.strides[0]=*"},
    {REQUANT_INT8, "words.strides=[0]", "words.shape[0]=1 words.strides[0]=*"},
    {REQUANT_ROW, "", "words=[16]"},
    /* strides of extents of 1 */
    {REQUANT_ROW, "", "words.strides[0]=*"},
    {SYMMETRIC_TENSOR, "", "scale.strides[0]=*"},
    {SYMMETRIC_TENSOR_APPLY, "", "min.strides[0]=* max.strides[0]=*"},
    {ANTI, "x.shape[2]=1 scale.shape[0]=1 offset.shape[0]=1 y.shape[2]=1", "x.strides[2]=* y.strides[2]=*"},
    {SUMS, "x.shape[2]=1 weight_scale.shape[0]=1 bias.shape[0]=1 y.shape[2]=1",
     "x.strides[2]=* bias.strides[0]=* y.strides[2]=*"},
    {REQUANT_INT8, "x.shape[2]=1 words.shape[0]=1 bias.shape[0]=1 y.shape[2]=1",
     "x.strides[2]=* bias.strides[0]=* y.strides[2]=*"},
    {DIVIDE, "x=f32[1,16,1] scales=f32[1] zero_points=i32[1] y=i8[1,16,1]",
     "x.strides=[*,1,*] y.strides=[*,1,*] scales.strides[0]=* zero_points.strides[0]=*"},
    {GROUPS, "x=f16[6,1] scale=f32[1,1] group_index=i64[1] ends[0]=6 y=i8[6,1]",
     "x.strides[1]=* y.strides[1]=* scale.strides=[*,*] offset.strides[0]=* group_index.strides[0]=*"},
    {PACK_ROW, "", "scale.strides[0]=* offset.strides[0]=* y.strides[0]=*"},
    {TENSOR, "x=f16[1,3,8] smooth_scales=f16[8] y=u4x8[1,3,1]",
     "x.strides[0]=* y.strides=[*,1,*] scale.strides[0]=* offset.strides[0]=*"},
    /* one scale: no axis is looked at */
    {DIVIDE, "scales=f32[1] zero_points=i32[1]", "axis=-3|axis=-2|axis=2|axis=99|axis=2147483647|axis=-2147483648"},
    /* multiplying, any axis but -2 is the last */
    {MULTIPLY_INT4, "", "axis=0|axis=1|axis=2|axis=99|axis=2147483647"},
    {MULTIPLY_INT4, "x=f16[16] y=u4x8[2]", "axis=0|axis=1|axis=2|axis=99|axis=2147483647"},
    /* microscaling: an axis from either end, the default block, and options that have no effect */
    {MX, "", "axis=1|block=32|dst_type_max=0x40E00000|max_low_bound=0x80000000"},
    {MX_4_BITS, "dst_type_max=0", "axis=-2|dst_type_max=0x40C00000|dst_type_max=0x80000000"},
    {ANTI_MX, "", "axis=1|block=32|rounding=3|scale_algorithm=-1|small_groups=3|bad_groups=2|max_low_bound=0x7FC00000"},
    {ANTI_MX_4_BITS, "", "axis=-2"},
};

static void table_of_same_calls(void)
{
    static const int64_t garbage[] = {INT64_MAX, INT64_MIN, 0, -1, 12345};

    for (size_t i = 0; i < COUNT(same_calls); i++) {
        call c = base_call(same_calls[i].base);
        set(&c, "%s", same_calls[i].first);
        const outcome expected = plain_outcome(&c);
        for (size_t k = 0; k < (strchr(same_calls[i].then, '*') ? COUNT(garbage) : 1); k++) {
            call other = c;
            char text[256];
            any_number = garbage[k];
            snprintf(text, sizeof text, "%s", same_calls[i].then);
            for (const char *part = strtok(text, "|"); part; part = strtok(NULL, "|")) {
                set(&other, "%s", part);
                gives(&other, &expected, part);
            }
        }
    }
}

static void expanded_inputs(void)
{
    FOR_EACH_ARGUMENT(slot)
    {
        const call c = base_call(base);
        if (slot == GROUP_INDEX || test_is_output(c.op, slot)) {
            continue;
        }
        /* each dimension alone, and then all, unless the slot is x */
        for (int d = 0; d < c.tensors[slot].ndim + (slot != X); d++) {
            call copy = c;
            call plain = c;
            npuq_tensor *t = &copy.tensors[slot];

            if (d < t->ndim) {
                t->strides[d] = 0;
            } else {
                memset(t->strides, 0, sizeof t->strides);
            }
            test_view_read(t, buffer);
            plain.tensors[slot].data = buffer;
            const outcome expected = plain_outcome(&plain);
            gives(&copy, &expected, base_names[base]);
        }
    }
}

/* Empties the dimension d of x, or of min: y's as well, and that dimension of another argument that has its extent. */
static void empty_dimension(call *c, int d)
{
    const npuq_tensor *x = &c->tensors[c->given[X] ? X : MIN];
    const int64_t extent = x->shape[d] * (d == x->ndim - 1 ? npuq_values_in_word(x->dtype) : 1);

    for (enum slot slot = 0; slot < SLOTS; slot++) {
        npuq_tensor *t = &c->tensors[slot];
        int at = 0;

        while (at < t->ndim && t->shape[at] != extent) {
            at++;
        }
        if (slot == X || slot == Y || test_has_blocks(c->op)) {
            at = d;
        }
        if (c->given[slot] && at < t->ndim) {
            empty(t, at);
        }
    }
}

static void empty_calls(void)
{
    static const outcome nothing;

    FOR_EACH_DIMENSION(slot, d)
    {
        call c = base_call(base);
        const bool rows = d < c.tensors[slot].ndim - 1;
        if (!measures(&c, slot) || (test_finds_ranges(c.op) && (!rows || c.quant_mode == NPUQ_PER_TENSOR))) {
            continue; /* no range of nothing */
        }
        if (rows && c.given[GROUP_INDEX]) {
            set(&c, "ends=[0,0,0,0]");
        }
        empty_dimension(&c, d);
        gives(&c, &nothing, base_names[base]);
        leave_out_optional_arguments(&c);
        gives(&c, &nothing, base_names[base]);
    }
    /* extents that would overflow, were there any elements */
    call c = base_call(DIVIDE);
    set(&c, "x=[0,16,2^63-1,2^63-1,2^63-1,2^63-1,2^63-1,2^63-1] x.empty=0");
    set(&c, "y=[0,16,2^63-1,2^63-1,2^63-1,2^63-1,2^63-1,2^63-1] y.empty=0");
    gives(&c, &nothing, "huge extents");
    /* more equal words than there is time to look at */
    c = base_call(REQUANT_INT8);
    set(&c, "x=[0,3,2^50] x.empty=0 y=[0,3,2^50] y.empty=0 words=[2^50] words.strides=[0] bias=null");
    gives(&c, &nothing, "many words");
}

/* Bits of words that trans_quant_param never changes: in any layout of words, with and without x. */
static void words_that_cannot_be(void)
{
    static const int bits[] = {32, 33, 34, 35, 36, 46};
    static const int64_t places[] = {0, 7, 15};
    static const int64_t steps[] = {1, 3, -2};

    for (int base = REQUANT_INT8; base <= REQUANT_ROW; base++) {
        for (size_t i = 0; i < COUNT(bits) * COUNT(places) * COUNT(steps); i++) {
            const int bit = bits[i % COUNT(bits)];
            const int64_t at = places[i / COUNT(bits) % COUNT(places)];
            const int64_t step = steps[i / COUNT(bits) / COUNT(places)];
            const char *expected =
                bit == 46 ? "bit 46 to be 1, as in the words of trans_quant_param" : "bits 36..32 to be 0, for any y";
            char found[32];
            char what[64];
            call c = base_call(base);

            if ((UINT64_C(1) << bit & ignored_bits(&c)) != 0) {
                continue; /* bits_of_words_not_looked_at() changes this one */
            }
            snprintf(found, sizeof found, "element %" PRId64 " ", at);
            snprintf(what, sizeof what, "bit %d, step %" PRId64, bit, step);
            set(&c, "words.at[256]=[%d,%d]", (int)step, (int)step);
            ((uint64_t *)c.tensors[WORDS].data)[at * step] ^= UINT64_C(1) << bit;
            refused(&c, NPUQ_ERROR_ARGUMENT, "words", found, expected, what);
            set(&c, "x.empty=0 y.empty=0");
            refused(&c, NPUQ_ERROR_ARGUMENT, "words", found, expected, what);
            if (at == 0) {
                set(&c, "words.ndim=1 words.shape[0]=1");
                refused(&c, NPUQ_ERROR_ARGUMENT, "words", found, expected, what);
            }
        }
    }
}

static void bits_of_words_not_looked_at(void)
{
    for (int base = REQUANT_INT8; base <= REQUANT_ROW; base++) {
        const call c = base_call(base);
        const outcome expected = plain_outcome(&c);
        uint64_t *words = c.tensors[WORDS].data;
        const uint64_t ignored = ignored_bits(&c);
        const uint64_t fills[] = {0, ignored, ignored & ~FLAG_AND_OFFSET, ignored & FLAG_AND_OFFSET};

        for (size_t fill = 0; fill < COUNT(fills); fill++) {
            for (int i = 0; i < 16; i++) {
                words[i] = (words[i] & ~ignored) | fills[fill];
            }
            gives(&c, &expected, "other ignored bits");
        }
    }
}

/* Prepends extents of 1, whose strides are ignored. */
static void prepend(npuq_tensor *t, int ndim)
{
    const int more = ndim - t->ndim;

    memmove(t->shape + more, t->shape, (size_t)t->ndim * sizeof t->shape[0]);
    memmove(t->strides + more, t->strides, (size_t)t->ndim * sizeof t->strides[0]);
    for (int d = 0; d < more; d++) {
        t->shape[d] = 1;
        t->strides[d] = d % 2 ? INT64_MIN : INT64_MAX;
    }
    t->ndim = ndim;
}

static void eight_dimensions(void)
{
    FOR_EACH_BASE()
    {
        call c = base_call(base);
        const bool as_x = test_takes_ranges_only(c.op) || test_has_blocks(c.op);
        const int row_ndim = as_x ? NPUQ_MAX_NDIM : NPUQ_MAX_NDIM - 1;
        const int most = test_arguments[c.op][X].most_ndim;
        if (base == MULTIPLY || base == ANTI_GROUPS || c.op == TEST_GROUP_QUANT || c.op == TEST_TRANS_QUANT_PARAM) {
            continue; /* not of any rank */
        }
        c.axis = c.axis < 0 || !test_has(c.op, X) ? c.axis : c.axis - c.tensors[X].ndim;
        const outcome expected = plain_outcome(&c);
        prepend(&c.tensors[X], most);
        prepend(&c.tensors[Y], most);
        prepend(&c.tensors[MXSCALE], NPUQ_MAX_NDIM);
        for (size_t i = 0; i < COUNT(by_row); i++) {
            if (c.op != TEST_ANTI_QUANT && c.quant_mode == NPUQ_PER_TOKEN) {
                prepend(&c.tensors[by_row[i]], row_ndim);
            }
        }
        gives(&c, &expected, "eight dimensions");
    }
}

/* Reverses every dimension of every tensor. */
static void negative_strides(void)
{
    FOR_EACH_BASE()
    {
        call c = base_call(base);
        const outcome expected = plain_outcome(&c);
        unsigned char *at = buffer;

        for (enum slot slot = 0; slot < SLOTS; slot++) {
            npuq_tensor *t = &c.tensors[slot];
            int64_t strides[NPUQ_MAX_NDIM] = {0};
            size_t offset = 0;

            for (int d = 0; d < t->ndim; d++) {
                strides[d] = -t->strides[d];
                offset += (size_t)((t->shape[d] - 1) * t->strides[d]);
            }
            if (c.given[slot]) {
                move(&c, slot, at + offset * npuq_dtype_size(t->dtype), strides);
                at += (byte_size(t) + 63) / 64 * 64;
            }
        }
        gives(&c, &expected, "negative strides");
    }
}

/* ---- npuq_mx ---------------------------------------------------------------------------------------------------- */

#define SHAPE_REFUSED(x, axis, options, shape, status, name, found, expected)                                          \
    check_refusal("mx_scale_shape", npuq_mx_scale_shape(x, axis, options, shape), NPUQ_ERROR_##status, name, found,    \
                  expected, "")

static void mx_scale_shapes(void)
{
    const npuq_mx bad_block = {.block = 33};
    const npuq_mx bad_reserve = {.reserved = {[8] = -5}};
    const int64_t none[NPUQ_MAX_NDIM] = {7, 7, 7, 7, 7, 7, 7, 7};
    int64_t shape[NPUQ_MAX_NDIM] = {7, 7, 7, 7, 7, 7, 7, 7};
    npuq_tensor x = {.data = NULL, .dtype = (npuq_dtype)99, .ndim = 2, .shape = {3, 70}};

    SHAPE_REFUSED(NULL, 0, NULL, shape, NULL, "x", "null", "a tensor");
    SHAPE_REFUSED(&x, 0, NULL, NULL, NULL, "shape", "null", "room for the extents");
    SHAPE_REFUSED(&x, 2, NULL, shape, AXIS, "axis", "2", "-2 to 1, as x has 2 dimensions");
    SHAPE_REFUSED(&x, -3, NULL, shape, AXIS, "axis", "-3", "-2 to 1");
    SHAPE_REFUSED(&x, 0, &bad_block, shape, ARGUMENT, "options.block", "33", "a multiple of 32");
    SHAPE_REFUSED(&x, 0, &bad_reserve, shape, ARGUMENT, "options.reserved", "element 8 is -5", "0");
    x.shape[1] = -1;
    SHAPE_REFUSED(&x, 0, NULL, shape, SHAPE, "x", "dimension 1 is -1", "0 or more");
    for (int32_t ndim = -1; ndim <= 8; ndim += ndim == 0 ? 8 : 1) {
        x.ndim = ndim;
        SHAPE_REFUSED(&x, 0, NULL, shape, SHAPE, "x", number(ndim), "1 to 7");
    }
    assert_memory_equal(shape, none, sizeof shape);
    FOR_EACH_BASE()
    {
        const call c = base_call(base);
        const npuq_mx options = {.block = (int32_t)c.block};
        const npuq_tensor *mxscale = &c.tensors[MXSCALE];
        const npuq_tensor *values = &c.tensors[test_is_output(c.op, MXSCALE) ? X : Y];

        if (test_has(c.op, MXSCALE)) {
            x = (npuq_tensor){.dtype = (npuq_dtype)99, .ndim = values->ndim, .strides = {INT64_MAX, INT64_MIN}};
            memcpy(x.shape, values->shape, sizeof x.shape);
            assert_int_equal(npuq_mx_scale_shape(&x, c.axis, &options, shape), NPUQ_OK);
            assert_memory_equal(shape, mxscale->shape, (size_t)mxscale->ndim * sizeof shape[0]);
        }
    }
}

/* Prepares the call if there is room for one, and else runs it. */
static npuq_status call_mx(const call *c, const npuq_mx *options, npuq_call *prepared)
{
    const npuq_tensor *x = &c->tensors[X];
    const npuq_tensor *y = &c->tensors[Y];
    const npuq_tensor *mxscale = &c->tensors[MXSCALE];

    if (c->op == TEST_ANTI_MX_QUANT) {
        return prepared ? npuq_prepare_anti_mx_quant(prepared, x, mxscale, -1, options, y)
                        : npuq_anti_mx_quant(x, mxscale, -1, options, y, NULL);
    }
    return prepared ? npuq_prepare_dynamic_mx_quant(prepared, x, -1, options, y, mxscale)
                    : npuq_dynamic_mx_quant(x, -1, options, y, mxscale, NULL);
}

static void check_mx_options(int base)
{
    call c = base_call(base);
    const outcome expected = plain_outcome(&c);
    npuq_mx options = {0};
    npuq_call prepared;

    spoil_outputs(&c);
    assert_int_equal(call_mx(&c, NULL, NULL), NPUQ_OK);
    const outcome direct = outputs_of(&c);
    spoil_outputs(&c);
    assert_int_equal(call_mx(&c, NULL, &prepared), NPUQ_OK);
    npuq_call_run(&prepared, 0, SIZE_MAX);
    const outcome later = outputs_of(&c);
    assert_memory_equal(direct.bytes, expected.bytes, sizeof expected.bytes);
    assert_memory_equal(later.bytes, expected.bytes, sizeof expected.bytes);
    remember_memory();
    for (size_t i = 0; i < COUNT(options.reserved); i++) {
        char found[32];

        options = (npuq_mx){0};
        options.reserved[i] = 1;
        snprintf(found, sizeof found, "element %zu is 1", i);
        check_refusal(operator_names[c.op], call_mx(&c, &options, NULL), NPUQ_ERROR_ARGUMENT, "options.reserved", found,
                      "0", "reserved");
        assert_int_equal(call_mx(&c, &options, &prepared), NPUQ_ERROR_ARGUMENT);
    }
    assert_true(memory_is_as_before());
}

static void mx_options(void)
{
    check_mx_options(MX);
    check_mx_options(ANTI_MX);
}

static void same_view(npuq_tensor got, const void *data, npuq_dtype dtype, int ndim, int64_t stride0)
{
    static const int64_t shape[] = {3, 5};
    const int64_t strides[] = {stride0, 1};

    assert_ptr_equal(got.data, data);
    assert_int_equal(got.dtype, dtype);
    assert_int_equal(got.ndim, ndim);
    /* The view leaves higher dimensions alone. */
    assert_memory_equal(got.shape, shape, (size_t)ndim * sizeof *shape);
    assert_memory_equal(got.strides, strides, (size_t)ndim * sizeof *strides);
}

/* The header's inline functions, and the exported functions. */
static void vectors_and_matrices(void)
{
    static const int16_t data[4] = {0};
    npuq_tensor (*const volatile exported_vector)(const void *, npuq_dtype, int64_t) = npuq_vector;
    npuq_tensor (*const volatile exported_matrix)(const void *, npuq_dtype, int64_t, int64_t, int64_t) = npuq_matrix;

    same_view(npuq_vector(data, NPUQ_FLOAT16, 3), data, NPUQ_FLOAT16, 1, 1);
    same_view(exported_vector(data, NPUQ_FLOAT16, 3), data, NPUQ_FLOAT16, 1, 1);
    same_view(npuq_matrix(data, NPUQ_BFLOAT16, 3, 5, 0), data, NPUQ_BFLOAT16, 2, 5);
    same_view(exported_matrix(data, NPUQ_BFLOAT16, 3, 5, 0), data, NPUQ_BFLOAT16, 2, 5);
    same_view(npuq_matrix(data, NPUQ_BFLOAT16, 3, 5, 8), data, NPUQ_BFLOAT16, 2, 8);
    same_view(npuq_matrix(data, NPUQ_BFLOAT16, 3, 5, -8), data, NPUQ_BFLOAT16, 2, -8);
    same_view(exported_matrix(data, NPUQ_BFLOAT16, 3, 5, -8), data, NPUQ_BFLOAT16, 2, -8);
}

/* ---- the message ------------------------------------------------------------------------------------------------ */

typedef struct thread_result {
    char first[256], second[256];
} thread_result;

static void *other_thread(void *argument)
{
    thread_result *result = argument;

    snprintf(result->first, sizeof result->first, "%s", npuq_last_error());
    (void)npuq_trans_quant_param(NULL, NULL, NPUQ_ROUND_TRUNCATE, NULL);
    snprintf(result->second, sizeof result->second, "%s", npuq_last_error());
    return NULL;
}

static void last_error_is_per_thread(void)
{
    char message[256];
    thread_result result;
    call c = base_call(DIVIDE);

    c.axis = 7;
    assert_int_equal(run(&c), NPUQ_ERROR_AXIS);
    snprintf(message, sizeof message, "%s", npuq_last_error());
    assert_non_null(strstr(message, "quantize: axis: "));

    if (test_run_on_thread(other_thread, &result)) {
        assert_string_equal(result.first, "");
        assert_non_null(strstr(result.second, "trans_quant_param: scale: "));
        assert_string_equal(npuq_last_error(), message);
    }

    /* A success keeps the message. */
    c.axis = 1;
    assert_int_equal(run(&c), NPUQ_OK);
    assert_string_equal(npuq_last_error(), message);
}

static void long_lines_are_cut(void)
{
    char line[512];
    char name[300];

    for (int length = 0; length < (int)sizeof name; length++) {
        memset(name, 'x', sizeof name);
        name[length] = '\0';
        assert_int_equal(npuq_fail(NPUQ_ERROR_SHAPE, "op", name, "%d %u %lld %llX %g", INT_MIN, UINT_MAX, LLONG_MIN,
                                   ULLONG_MAX, -1.5),
                         NPUQ_ERROR_SHAPE);
        snprintf(line, sizeof line, "op: %s: -2147483648 4294967295 -9223372036854775808 FFFFFFFFFFFFFFFF -1.5", name);
        line[255] = '\0';
        assert_string_equal(npuq_last_error(), line);
    }
}

/* ---- the small functions ---------------------------------------------------------------------------------------- */

static void status_names(void)
{
#define HAS_ITS_NAME(status) assert_string_equal(npuq_status_name(status), #status)
    HAS_ITS_NAME(NPUQ_OK);
    HAS_ITS_NAME(NPUQ_ERROR_NULL);
    HAS_ITS_NAME(NPUQ_ERROR_DTYPE);
    HAS_ITS_NAME(NPUQ_ERROR_SHAPE);
    HAS_ITS_NAME(NPUQ_ERROR_LAYOUT);
    HAS_ITS_NAME(NPUQ_ERROR_AXIS);
    HAS_ITS_NAME(NPUQ_ERROR_GROUP_INDEX);
    HAS_ITS_NAME(NPUQ_ERROR_ARGUMENT);
    HAS_ITS_NAME(NPUQ_ERROR_BACKEND);
    assert_string_equal(npuq_status_name((npuq_status)9), "unknown status");
    assert_string_equal(npuq_status_name((npuq_status)-1), "unknown status");
    assert_string_equal(npuq_status_name((npuq_status)INT32_MAX), "unknown status");
}

static const char *const backend_names[] = {"ref", "avx2", "avx512", "neon", "generic"};

/* The message lists the backends that are available, and no other; the active backend stays. */
static void refused_backend(npuq_backend backend, const char *name)
{
    const npuq_backend before = npuq_active_backend();

    assert_false(npuq_backend_available(backend));
    assert_int_equal(npuq_set_backend(backend), NPUQ_ERROR_BACKEND);
    assert_int_equal(npuq_active_backend(), before);
    assert_non_null(strstr(npuq_last_error(), "set_backend: backend: "));
    assert_non_null(strstr(npuq_last_error(), name));
    const char *listed = strstr(npuq_last_error(), "; expected one of:");
    assert_non_null(listed);
    for (int i = 0; i < (int)COUNT(backend_names); i++) {
        char word[16];
        snprintf(word, sizeof word, " %s", backend_names[i]);
        assert_int_equal(strstr(listed, word) != NULL, npuq_backend_available((npuq_backend)i));
    }
}

static void backends(void)
{
    static const int unknown[] = {-1, 5, 99, INT32_MAX};
    const npuq_backend active = npuq_active_backend();

    assert_true(npuq_backend_available(NPUQ_BACKEND_REF));
    assert_true(npuq_backend_available(active));
    for (int i = 0; i < (int)COUNT(backend_names); i++) {
        const npuq_backend backend = (npuq_backend)i;
        assert_string_equal(npuq_backend_name(backend), backend_names[i]);
        if (npuq_backend_available(backend)) {
            assert_int_equal(npuq_set_backend(backend), NPUQ_OK);
            assert_int_equal(npuq_active_backend(), backend);
        } else {
            refused_backend(backend, backend_names[i]);
        }
    }
    assert_int_equal(npuq_set_backend(active), NPUQ_OK);
    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_string_equal(npuq_backend_name((npuq_backend)unknown[i]), "unknown");
        refused_backend((npuq_backend)unknown[i], number(unknown[i]));
    }
}

static void contiguous_views(void)
{
    static const int32_t wrong[] = {-1, 9, INT32_MIN, INT32_MAX};
    const int64_t shape[NPUQ_MAX_NDIM] = {2, 3, 4, 5, 1, 6, 7, 8};
    const int64_t huge[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    int64_t stride = 1;
    int byte;

    npuq_tensor t = npuq_tensor_contiguous(&byte, NPUQ_UINT8, NPUQ_MAX_NDIM, shape);
    assert_ptr_equal(t.data, &byte);
    assert_int_equal(t.dtype, NPUQ_UINT8);
    assert_int_equal(t.ndim, NPUQ_MAX_NDIM);
    for (int d = NPUQ_MAX_NDIM - 1; d >= 0; d--) {
        assert_int_equal(t.shape[d], shape[d]);
        assert_int_equal(t.strides[d], stride);
        stride *= shape[d];
    }
    t = npuq_tensor_contiguous(NULL, NPUQ_FLOAT32, 0, NULL);
    assert_int_equal(t.ndim, 0);

    /* The function stores an invalid rank and does not read the shape. */
    for (size_t i = 0; i < COUNT(wrong); i++) {
        t = npuq_tensor_contiguous(&byte, NPUQ_FLOAT32, wrong[i], NULL);
        assert_int_equal(t.ndim, wrong[i]);
    }
    /* The function also stores extents whose product overflows: the table has such a call. */
    t = npuq_tensor_contiguous(&byte, NPUQ_FLOAT32, 3, huge);
    assert_int_equal(t.shape[0], INT64_MAX);
    assert_int_equal(t.strides[2], 1);
}

static void versions(void)
{
    char text[32];

    assert_string_equal(npuq_version(), NPUQ_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", NPUQ_VERSION_MAJOR, NPUQ_VERSION_MINOR, NPUQ_VERSION_PATCH);
    assert_string_equal(text, NPUQ_VERSION);
}

#define TESTS(...)                                                                                                     \
    static void (*tests[])(void) = {__VA_ARGS__};                                                                      \
    static char names[] = #__VA_ARGS__;

TESTS(bases_are_valid, null_arguments, dtype_sizes_and_names, dtypes, ranks, extents, misaligned_and_repeated_data,
      strides_beyond_the_address_space, outputs_overlapping_themselves, outputs_next_to_arguments, table_of_rules,
      exact_overlaps, random_overlaps, table_of_same_calls, expanded_inputs, empty_calls, words_that_cannot_be,
      bits_of_words_not_looked_at, eight_dimensions, negative_strides, mx_scale_shapes, mx_options,
      vectors_and_matrices, last_error_is_per_thread, long_lines_are_cut, status_names, backends, contiguous_views,
      versions)

/* Fails if a call was not as it should be; the calls after it have been tried all the same. */
static void run_one(void **state)
{
    void (**test)(void) = *state;

    failures = 0;
    (*test)();
    assert_int_equal(failures, 0);
}

int main(void)
{
    struct CMUnitTest units[COUNT(tests)];
    const char *name = strtok(names, ", ");

    for (size_t i = 0; i < COUNT(tests); i++) {
        units[i] = (struct CMUnitTest){name, run_one, NULL, NULL, &tests[i]};
        name = strtok(NULL, ", ");
    }
    test_seed();
    test_guarded arena_pages = test_guarded_make(ARENA, false, 0);
    test_guarded buffer_pages = test_guarded_make(BUFFER, false, 0);
    arena = (void *)arena_pages.memory;
    buffer = buffer_pages.memory;
    const int failed = cmocka_run_group_tests_name("errors", units, NULL, NULL);
    test_guarded_free(&arena_pages);
    test_guarded_free(&buffer_pages);
    return failed;
}
