/* SPDX-License-Identifier: BSD-3-Clause */
/* Every wrong call of an operator: its status, its message, and that no byte changes. Then valid calls that look wrong.
 * Each form of an operator has a valid base call; each case changes one thing in the base call. Each case is also
 * prepared: the library refuses with the same words, or gives the same bytes. */
#include "calls.h"
#include "status.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- calls ------------------------------------------------------------------------------------------------------- */

typedef test_call call;

/* All memory of a call: one comparison shows whether the call wrote anything. */
enum { REGION = 2048, BEFORE = 256 };
enum { ARENA = SLOTS * REGION, BUFFER = 16384 };
static unsigned char (*arena)[REGION]; /* a region for each slot */
static unsigned char arena_before[ARENA];
static unsigned char *buffer; /* for views that share memory */
static unsigned char buffer_before[BUFFER];

static bool is_output(const call *c, enum slot slot)
{
    return test_is_output(c->op, slot);
}

static void spoil_outputs(const call *c)
{
    static unsigned char spoilt[BUFFER];

    memset(spoilt, 0xA5, sizeof spoilt);
    for (int slot = 0; slot < SLOTS; slot++) {
        if (c->given[slot] && is_output(c, (enum slot)slot)) {
            test_view_write(&c->tensors[slot], spoilt);
        }
    }
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
    const char *name;
    const char *word;
} all_dtypes[] = {
    {NPUQ_FLOAT32, 4, "FLOAT32", "f32"}, {NPUQ_FLOAT16, 2, "FLOAT16", "f16"}, {NPUQ_BFLOAT16, 2, "BFLOAT16", "bf16"},
    {NPUQ_INT8, 1, "INT8", "i8"},        {NPUQ_UINT8, 1, "UINT8", "u8"},      {NPUQ_INT32, 4, "INT32", "i32"},
    {NPUQ_INT64, 8, "INT64", "i64"},     {NPUQ_UINT64, 8, "UINT64", "u64"},   {NPUQ_QUINT4X2, 4, "QUINT4X2", "u4x8"},
};

static void set_group_end(const call *c, int64_t e, int64_t end)
{
    const npuq_tensor *t = &c->tensors[GROUP_INDEX];
    const int64_t at = e * t->strides[0];

    if (t->dtype == NPUQ_INT64) {
        ((int64_t *)t->data)[at] = end;
    } else {
        ((int32_t *)t->data)[at] = (int32_t)end;
    }
}

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
            set_group_end(c, e, ends[e]);
        }
    } else if (slot == WORDS) {
        fill_words(data);
    } else if (!is_output(c, slot)) {
        test_fill(data, dtype, test_count(ndim, shape), true);
    }
}

/* One of the changes that a text says:
 *   x=f32[3,16]      a new contiguous tensor, with values
 *   x=[3,16]  x=f16  another shape or dtype for the same memory
 *   x=null           not given
 *   x.ndim=3  x.shape[1]=7  x.strides[1]=-2  x.strides=[16,1]
 *   ends[3]=7  ends=[0,0,0,6]  elements of group_index
 *   axis=-2          an option; min_scale by its bits, y_dtype=i8
 * Numbers are sums of decimals, hexadecimals and powers of two: 2^32+6. */
typedef struct change {
    char name[24];
    char member[8];
    char word[8];
    int64_t first; /* the index on the left */
    int count;
    int64_t numbers[NPUQ_MAX_NDIM];
} change;

static void read_word(const char **at, char *word, size_t size)
{
    for (; size > 1 && (isalnum((unsigned char)**at) || **at == '_'); size--) {
        *word++ = *(*at)++;
    }
}

static int64_t read_number(const char **at)
{
    uint64_t sum = 0;

    do {
        const bool negative = **at == '-';
        *at += negative || **at == '+';
        char *end;
        uint64_t term = strtoull(*at, &end, 0);

        if (term == 2 && *end == '^') {
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

static bool past(const char **at, char sign)
{
    const bool found = **at == sign;

    *at += found;
    return found;
}

/* Gives the end of the text that it has read. */
static const char *read_change(change *how, const char *text)
{
    const char *at = text;

    memset(how, 0, sizeof *how);
    read_word(&at, how->name, sizeof how->name);
    if (past(&at, '.')) {
        read_word(&at, how->member, sizeof how->member);
    }
    bool read = true;
    if (past(&at, '[')) {
        how->first = read_number(&at);
        read = past(&at, ']');
    }
    read = read && past(&at, '=');
    if (isalpha((unsigned char)*at)) {
        read_word(&at, how->word, sizeof how->word);
    }
    const bool list = past(&at, '[');
    if (list || !how->word[0]) {
        do {
            assert_in_range(how->count, 0, NPUQ_MAX_NDIM - 1);
            how->numbers[how->count++] = read_number(&at);
        } while (past(&at, ','));
    }
    if (!read || (list && !past(&at, ']')) || (*at && *at != ' ')) {
        fail_msg("no change of a call: \"%s\"", text);
    }
    return at;
}

static npuq_dtype dtype_of(const char *word)
{
    for (size_t i = 0; i < COUNT(all_dtypes); i++) {
        if (strcmp(all_dtypes[i].word, word) == 0) {
            return all_dtypes[i].dtype;
        }
    }
    fail_msg("no dtype: \"%s\"", word);
    return NPUQ_FLOAT32;
}

static bool set_option(call *c, const char *name, int64_t value)
{
    const uint32_t bits = (uint32_t)value;
#define SET(option, type) (strcmp(name, #option) == 0 && (c->option = (type)value, true))

    return SET(axis, int32_t) || SET(div_mode, bool) || SET(quant_mode, npuq_quant_mode) ||
           SET(scale_form, npuq_scale_form) || SET(round_mode, npuq_round_mode) || SET(block, int64_t) ||
           SET(y_dtype, npuq_dtype) || (strcmp(name, "min_scale") == 0 && memcpy(&c->min_scale, &bits, sizeof bits));
}

static bool set_member(npuq_tensor *t, const change *how)
{
    int64_t *const member = strcmp(how->member, "shape") == 0     ? t->shape
                            : strcmp(how->member, "strides") == 0 ? t->strides
                                                                  : NULL;

    if (member) {
        assert_in_range(how->first, 0, NPUQ_MAX_NDIM - how->count);
        memcpy(member + how->first, how->numbers, (size_t)how->count * sizeof *member);
    } else if (strcmp(how->member, "ndim") == 0) {
        t->ndim = (int32_t)how->numbers[0];
    } else {
        return false;
    }
    return true;
}

static bool set_tensor(call *c, enum slot slot, const change *how)
{
    npuq_tensor *t = &c->tensors[slot];

    if (how->member[0]) {
        return set_member(t, how);
    }
    if (strcmp(how->word, "null") == 0) {
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

static bool apply(call *c, const change *how)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        if (strcmp(how->name, slot_names[slot]) == 0) {
            return set_tensor(c, (enum slot)slot, how);
        }
    }
    if (strcmp(how->name, "ends") == 0) {
        for (int e = 0; e < how->count; e++) {
            set_group_end(c, how->first + e, how->numbers[e]);
        }
        return true;
    }
    return set_option(c, how->name, how->word[0] ? (int64_t)dtype_of(how->word) : how->numbers[0]);
}

/* Makes all changes of a text, which has blanks between them. */
static void set(call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set(call *c, const char *format, ...)
{
    char text[256];
    change how;
    va_list arguments;

    va_start(arguments, format);
    assert_in_range(vsnprintf(text, sizeof text, format, arguments), 0, sizeof text - 1);
    va_end(arguments);
    for (const char *at = text; *at; at += *at == ' ') {
        const char *const end = read_change(&how, at);

        if (!apply(c, &how)) {
            fail_msg("no change of a call: \"%s\"", at);
        }
        at = end;
    }
}

/* Each form of each operator. */
#define EACH_BASE(DO)                                                                                                  \
    DO(DIVIDE, op = TEST_QUANTIZE, "axis=1 div_mode=1 x=f32[3,16] scales=f32[16] zero_points=i32[16] y=i8[3,16]")      \
    DO(MULTIPLY, op = TEST_QUANTIZE, "axis=-2 x=bf16[3,16] scales=f32[3,1] zero_points=f32[3,1] y=i8[3,16]")           \
    DO(MULTIPLY_INT4, op = TEST_QUANTIZE, "axis=-1 x=f16[3,16] scales=f16[16] zero_points=f16[16] y=u4x8[3,2]")        \
    DO(GROUPS, op = TEST_GROUP_QUANT, "x=f16[6,16] scale=f32[4,16] offset=f32[1] group_index=i64[4] y=i8[6,16]")       \
    DO(GROUPS_INT4, op = TEST_GROUP_QUANT, "x=f16[6,16] scale=f32[4,16] offset=f32[1] group_index=i32[4] y=u4x8[6,2]") \
    DO(PACK, op = TEST_TRANS_QUANT_PARAM, "scale=f32[16] offset=f32[16] y=i64[16]")                                    \
    DO(PACK_ROW, op = TEST_TRANS_QUANT_PARAM, "round_mode=1 scale=f32[1,16] offset=f32[1,16] y=u64[1,16]")             \
    DO(TOKENS, op = TEST_DYNAMIC_QUANT_ASYMMETRIC,                                                                     \
       "x=f16[2,3,16] smooth_scales=f32[4,16] group_index=i64[4] y=i8[2,3,16] scale=f32[2,3] offset=f32[2,3]")         \
    DO(TENSOR, op = TEST_DYNAMIC_QUANT_ASYMMETRIC,                                                                     \
       "quant_mode=1 scale_form=1 x=bf16[2,3,16] smooth_scales=f16[16] y=u4x8[2,3,2] scale=f32[1] offset=f32[1]")      \
    DO(TOKEN_RANGES, op = TEST_DYNAMIC_QUANT_MIN_MAX,                                                                  \
       "x=f16[2,3,16] smooth_scales=f32[4,16] group_index=i64[4] min=f32[2,3] max=f32[2,3]")                           \
    DO(TENSOR_RANGE, op = TEST_DYNAMIC_QUANT_MIN_MAX,                                                                  \
       "quant_mode=1 x=bf16[2,3,16] smooth_scales=f16[16] min=f32[1] max=f32[1]")                                      \
    DO(PARAMS, op = TEST_DYNAMIC_QUANT_PARAMS, "y_dtype=i8 min=f32[2,3] max=f32[2,3] scale=f32[2,3] offset=f32[2,3]")  \
    DO(TOKENS_APPLY, op = TEST_DYNAMIC_QUANT_APPLY,                                                                    \
       "x=f16[2,3,16] smooth_scales=f32[4,16] group_index=i64[4] y=i8[2,3,16] scale=f32[2,3] offset=f32[2,3]")         \
    DO(TENSOR_APPLY, op = TEST_DYNAMIC_QUANT_APPLY,                                                                    \
       "quant_mode=1 x=bf16[2,3,16] smooth_scales=f16[16] y=u4x8[2,3,2] scale=f32[1] offset=f32[1]")                   \
    DO(SYMMETRIC_TOKENS, op = TEST_DYNAMIC_QUANT,                                                                      \
       "x=f16[2,3,16] smooth_scales=f32[4,16] group_index=i64[4] y=i8[2,3,16] scale=f32[2,3]")                         \
    DO(SYMMETRIC_TENSOR, op = TEST_DYNAMIC_QUANT,                                                                      \
       "quant_mode=1 scale_form=1 x=bf16[2,3,16] smooth_scales=f16[16] y=u4x8[2,3,2] scale=f32[1]")                    \
    DO(SYMMETRIC_PARAMS, op = TEST_DYNAMIC_QUANT_SYMMETRIC_PARAMS,                                                     \
       "y_dtype=i8 min=f32[2,3] max=f32[2,3] scale=f32[2,3]")                                                          \
    DO(SYMMETRIC_TOKENS_APPLY, op = TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY,                                                \
       "x=f16[2,3,16] smooth_scales=f32[4,16] group_index=i64[4] y=i8[2,3,16] min=f32[2,3] max=f32[2,3]")              \
    DO(SYMMETRIC_TENSOR_APPLY, op = TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY,                                                \
       "quant_mode=1 x=bf16[2,3,16] smooth_scales=f16[16] y=u4x8[2,3,2] min=f32[1] max=f32[1]")                        \
    DO(BLOCKS, op = TEST_DYNAMIC_BLOCK_QUANT, "block=7 x=f16[2,3,16] y=i8[2,3,16] scale=f32[2,3,3]")                   \
    DO(BLOCKS_INT4, op = TEST_DYNAMIC_BLOCK_QUANT,                                                                     \
       "block=8 min_scale=0x3F000000 x=f32[3,16] y=u4x8[3,2] scale=f32[3,2]")                                          \
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

static call base_call(enum base base)
{
#define ROW(base, op, text) {{.op}, text},
    static const struct {
        call c;
        const char *text;
    } bases[] = {EACH_BASE(ROW)};
#undef ROW
    call c = bases[base].c;

    memset(arena, 0xA5, ARENA);
    test_reseed(base);
    set(&c, "%s", bases[base].text);
    return c;
}

/* ---- refused calls ---------------------------------------------------------------------------------------------- */

static int failures;

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

/* Runs a call that must fail. The two halves of the message contain `found` and `expected`; null for any. */
static void refused(const call *c, npuq_status status, const char *name, const char *found, const char *expected,
                    const char *what)
{
    char prefix[64];
    const char *message;
    const char *second;
    const char *hit;
    npuq_status got;
    const char *problem = NULL;

    memcpy(arena_before, arena, ARENA);
    memcpy(buffer_before, buffer, BUFFER);
    got = run(c);
    message = npuq_last_error();
    log_message(got, message);
    snprintf(prefix, sizeof prefix, "%s: %s: ", operator_names[c->op], name);
    second = strstr(message, "; expected ");
    hit = found ? strstr(message, found) : message;
    if (got != status) {
        problem = "the status is another";
    } else if (strncmp(message, prefix, strlen(prefix)) != 0) {
        problem = "the message does not begin with operator and argument";
    } else if (!second) {
        problem = "the message does not say what was expected";
    } else if (!hit || hit > second) {
        problem = "the message does not say what was found";
    } else if (expected && !strstr(second, expected)) {
        problem = "the message does not say what exactly was expected";
    } else if (strchr(message, '\n')) {
        problem = "the message has more than one line";
    } else if (strlen(message) == 255) {
        problem = "the message is cut off";
    }
    if (says_one_of_many(message)) {
        problem = "the message has a plural of 1";
    }
    if (memcmp(arena_before, arena, ARENA) != 0 || memcmp(buffer_before, buffer, BUFFER) != 0) {
        problem = "memory was written to";
    }
    if (problem) {
        failures++;
        print_error("%s%s: %s\n    wanted %s, \"%s... %s ...; expected ... %s\"\n    got %s, \"%s\"\n", prefix, what,
                    problem, npuq_status_name(status), prefix, found ? found : "", expected ? expected : "",
                    npuq_status_name(got), message);
    }
}

static void begin(void)
{
    failures = 0;
}

static void end(void)
{
    assert_int_equal(failures, 0);
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

#define FOR_EACH_ARGUMENT(base, slot)                                                                                  \
    for (int base = 0; base < BASES; base++)                                                                           \
        for (int slot = 0; slot < SLOTS; slot++)                                                                       \
            if (base_call((enum base)base).given[slot])

static void bases_are_valid(void **state)
{
    (void)state;
    for (int base = 0; base < BASES; base++) {
        const call c = base_call((enum base)base);
        if (run(&c) != NPUQ_OK) {
            fail_msg("base call %d: %s", base, npuq_last_error());
        }
    }
}

/* ---- rules for every argument ----------------------------------------------------------------------------------- */

static void null_arguments(void **state)
{
    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        call c = base_call((enum base)base);
        c.tensors[slot].data = NULL;
        refused(&c, NPUQ_ERROR_NULL, slot_names[slot], "null", NULL, "null data");

        c = base_call((enum base)base);
        c.given[slot] = false;
        if (!test_is_optional(c.op, (enum slot)slot)) {
            refused(&c, NPUQ_ERROR_NULL, slot_names[slot], "null", NULL, "null");
        }
    }
    end();
}

static void null_parallel_for(void **state)
{
    const npuq_executor executor = {NULL, NULL};

    (void)state;
    begin();
    for (int base = 0; base < BASES; base++) {
        call c = base_call((enum base)base);
        c.executor = &executor;
        if (test_takes_executor(c.op)) {
            refused(&c, NPUQ_ERROR_NULL, "executor", "parallel_for", NULL, "null function");
        }
    }
    end();
}

static const int unknown_dtypes[] = {-1, 5, 255, 257, 1 << 30};

static void dtype_sizes_and_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(all_dtypes); i++) {
        assert_int_equal(npuq_dtype_size(all_dtypes[i].dtype), all_dtypes[i].size);
        assert_string_equal(npuq_dtype_name(all_dtypes[i].dtype), all_dtypes[i].name);
    }
    for (size_t i = 0; i < COUNT(unknown_dtypes); i++) {
        assert_int_equal(npuq_dtype_size((npuq_dtype)unknown_dtypes[i]), 0);
        assert_string_equal(npuq_dtype_name((npuq_dtype)unknown_dtypes[i]), "unknown");
    }
}

static bool is_symmetric(enum test_operator op)
{
    return op == TEST_DYNAMIC_QUANT || op == TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY || op == TEST_DYNAMIC_BLOCK_QUANT;
}

/* Arguments with a value for each row, in operators that have them by row. */
static const enum slot by_row[] = {SCALE, OFFSET, MIN, MAX, ACTIVATION_SCALE};

static bool may_be_column(const call *c, enum slot slot)
{
    for (size_t i = 0; i < COUNT(by_row); i++) {
        if (slot == by_row[i]) {
            return c->op == TEST_DEQUANT || (test_is_dynamic(c->op) && c->quant_mode == NPUQ_PER_TOKEN);
        }
    }
    return false;
}

/* Whether the documentation of the operator lists dtype for the argument. */
static bool takes(const call *c, enum slot slot, npuq_dtype dtype)
{
    const bool is_float = dtype == NPUQ_FLOAT32 || dtype == NPUQ_FLOAT16 || dtype == NPUQ_BFLOAT16;

    switch (slot) {
    case X:
        if (c->op == TEST_DEQUANT || c->op == TEST_REQUANT) {
            return dtype == NPUQ_INT32;
        }
        return c->op == TEST_ANTI_QUANT ? dtype == NPUQ_INT8 || dtype == NPUQ_QUINT4X2 : is_float;
    case SCALES:
    case SMOOTH_SCALES:
    case WEIGHT_SCALE: return is_float;
    case ZERO_POINTS:
        return is_float || (c->div_mode && (dtype == NPUQ_INT8 || dtype == NPUQ_UINT8 || dtype == NPUQ_INT32));
    case SCALE:
    case OFFSET: return dtype == NPUQ_FLOAT32 || (is_float && (c->op == TEST_GROUP_QUANT || c->op == TEST_ANTI_QUANT));
    case MIN:
    case MAX:
    case ACTIVATION_SCALE: return dtype == NPUQ_FLOAT32;
    case BIAS: return dtype == NPUQ_INT32 || (is_float && c->op == TEST_DEQUANT);
    case WORDS: return dtype == NPUQ_INT64 || dtype == NPUQ_UINT64;
    case GROUP_INDEX: return dtype == NPUQ_INT32 || dtype == NPUQ_INT64;
    case Y:
        if (c->op == TEST_TRANS_QUANT_PARAM) {
            return dtype == NPUQ_INT64 || dtype == NPUQ_UINT64;
        }
        if (c->op == TEST_ANTI_QUANT || c->op == TEST_DEQUANT) {
            return is_float;
        }
        if (c->op == TEST_REQUANT) {
            return dtype == NPUQ_INT8 || dtype == NPUQ_FLOAT16;
        }
        if (c->op == TEST_QUANTIZE && c->div_mode) {
            return dtype == NPUQ_INT8 || dtype == NPUQ_UINT8 || dtype == NPUQ_INT32;
        }
        return dtype == NPUQ_INT8 || dtype == NPUQ_QUINT4X2 || (dtype == NPUQ_UINT8 && is_symmetric(c->op));
    case SLOTS: break;
    }
    return false;
}

static const char *mode_of(const call *c)
{
    return c->div_mode ? ", as div_mode is true" : ", as div_mode is false";
}

static void dtypes(void **state)
{
    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        for (size_t i = 0; i < COUNT(all_dtypes); i++) {
            call c = base_call((enum base)base);
            const npuq_dtype dtype = all_dtypes[i].dtype;
            if (takes(&c, (enum slot)slot, dtype)) {
                continue;
            }
            c.tensors[slot].dtype = dtype;
            for (size_t k = 0; k < COUNT(all_dtypes); k++) {
                if (takes(&c, (enum slot)slot, all_dtypes[k].dtype)) {
                    refused(&c, NPUQ_ERROR_DTYPE, slot_names[slot], all_dtypes[i].name, all_dtypes[k].name, "dtype");
                }
            }
            if (c.op == TEST_QUANTIZE && (slot == Y || slot == ZERO_POINTS)) {
                refused(&c, NPUQ_ERROR_DTYPE, slot_names[slot], NULL, mode_of(&c), "dtype by div_mode");
            }
        }
        for (size_t i = 0; i < COUNT(unknown_dtypes); i++) {
            call c = base_call((enum base)base);
            c.tensors[slot].dtype = (npuq_dtype)unknown_dtypes[i];
            refused(&c, NPUQ_ERROR_DTYPE, slot_names[slot], number(unknown_dtypes[i]), NULL, "unknown dtype");
            assert_non_null(strstr(npuq_last_error(), ", which npuquant does not implement; expected "));
        }
    }
    call c = base_call(PARAMS);
    c.y_dtype = NPUQ_UINT8; /* which symmetric ranges take */
    refused(&c, NPUQ_ERROR_DTYPE, "y_dtype", "UINT8", "INT8 or QUINT4X2", "asymmetric");
    end();
}

/* Other arguments are compared with this one. */
static bool measures(const call *c, enum slot slot)
{
    return slot == X || (test_takes_ranges_only(c->op) && slot == MIN);
}

static void ranks(void **state)
{
    static const int32_t wrong[] = {-1, 9, INT32_MIN, INT32_MAX};

    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        for (size_t i = 0; i < COUNT(wrong); i++) {
            call c = base_call((enum base)base);
            const bool by_mode = c.op == TEST_QUANTIZE && (slot == SCALES || slot == ZERO_POINTS);
            c.tensors[slot].ndim = wrong[i];
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(wrong[i]), by_mode ? mode_of(&c) : NULL, "rank");
        }
        const call valid = base_call((enum base)base);
        if (!(slot == OFFSET && valid.op == TEST_GROUP_QUANT) &&
            !(slot == X && (base == ANTI || base == ANTI_GROUPS)) &&
            !test_takes_ranges_only(valid.op)) { /* in the table */
            call c = base_call((enum base)base);
            c.tensors[slot].ndim = 0;
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], "0 dimensions", NULL, "0-D");
        }
        /* One dimension more, of extent 1: only the argument that others are compared with may have any rank. */
        if (!measures(&valid, (enum slot)slot)) {
            call c = base_call((enum base)base);
            npuq_tensor *t = &c.tensors[slot];
            t->shape[t->ndim] = t->shape[t->ndim - 1];
            t->strides[t->ndim] = t->strides[t->ndim - 1];
            t->shape[t->ndim - 1] = 1;
            t->ndim++;
            if (c.op == TEST_TRANS_QUANT_PARAM && slot != Y && t->ndim == 2) {
                continue; /* valid as (1, n) beside a 1-D one */
            }
            if (test_is_dynamic(c.op) && slot == SMOOTH_SCALES && t->ndim == 2) {
                continue; /* wants a group_index: in the table */
            }
            if (c.op == TEST_QUANTIZE && !c.div_mode && slot == SCALES && t->ndim == 2) {
                continue; /* (1, n) is valid, but zero_points differs: in the table */
            }
            if ((slot == WORDS || (slot == SCALE && base == ANTI_INT4)) && t->ndim == 2) {
                continue; /* valid as [1, N] */
            }
            if (may_be_column(&c, (enum slot)slot)) {
                continue; /* the last one may be 1: in the table */
            }
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(t->ndim), NULL, "a dimension more");
        }
    }
    end();
}

static void extents(void **state)
{
    static const int64_t negative[] = {-1, INT64_MIN};

    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        for (int d = 0; d < base_call((enum base)base).tensors[slot].ndim; d++) {
            call c = base_call((enum base)base);
            const int64_t extent = c.tensors[slot].shape[d];
            for (size_t i = 0; i < COUNT(negative); i++) {
                c.tensors[slot].shape[d] = negative[i];
                refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(negative[i]), NULL, "negative extent");
            }
            /* One element less and one more, for an argument that another determines. */
            if (measures(&c, (enum slot)slot) || (slot == SCALE && c.op == TEST_GROUP_QUANT && d == 0) ||
                (slot == SCALE && c.op == TEST_TRANS_QUANT_PARAM && d == c.tensors[slot].ndim - 1) ||
                (slot == SCALE && base == ANTI_GROUPS && d == 0) ||
                (slot == SMOOTH_SCALES && c.tensors[slot].ndim == 2 && d == 0)) {
                continue; /* in the table */
            }
            for (int64_t more = -1; more <= 1; more += 2) {
                c.tensors[slot].shape[d] = extent + more;
                if (slot == SCALE && c.op == TEST_TRANS_QUANT_PARAM && more == -1) {
                    refused(&c, NPUQ_ERROR_SHAPE, "scale", "0", NULL, "empty");
                } else if (slot == SCALES && extent == 1 && more == -1) {
                    refused(&c, NPUQ_ERROR_SHAPE, "scales", "0", "1", "empty");
                } else {
                    refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(extent + more), number(extent), "extent");
                }
            }
        }
    }
    end();
}

static void misaligned_data(void **state)
{
    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        const size_t size = npuq_dtype_size(base_call((enum base)base).tensors[slot].dtype);
        for (size_t shift = 1; shift < size; shift++) {
            char found[64];
            call c = base_call((enum base)base);
            c.tensors[slot].data = (char *)c.tensors[slot].data + shift;
            snprintf(found, sizeof found, "%zu beyond a multiple of %zu", shift, size);
            refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], found, "multiple", "misaligned data");
        }
    }
    end();
}

static void strides_beyond_the_address_space(void **state)
{
    static const int64_t strides[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1};

    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        for (int d = 0; d < base_call((enum base)base).tensors[slot].ndim; d++) {
            for (size_t i = 0; i < COUNT(strides); i++) {
                call c = base_call((enum base)base);
                c.tensors[slot].strides[d] = strides[i];
                if (c.tensors[slot].shape[d] > 1) {
                    refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], "overflow", NULL, "stride");
                }
            }
        }
    }
    /* Two bytes that are PTRDIFF_MAX apart: each distance fits an int64_t, but no object has that size. */
    for (size_t i = 0; i < COUNT(strides); i++) {
        call c = base_call(DIVIDE);
        set(&c, "x=f32[2] scales=f32[1] zero_points=i32[1] y=i8[2]");
        c.tensors[Y].strides[0] = strides[i];
        refused(&c, NPUQ_ERROR_LAYOUT, "y", "overflow", NULL, "bytes PTRDIFF_MAX apart");
    }
    end();
}

/* Each tensor alone looks fit for the fast path. */
static void dense_calls_that_cannot_be(void **state)
{
    const int64_t third = (INT64_MAX / 3 + 1) * 2; /* three times this is 2^64 + 2 */

    (void)state;
    begin();
    {
        call c = base_call(COLUMNS);
        c.tensors[X].shape[1] = c.tensors[Y].shape[1] = third;
        c.tensors[X].strides[0] = c.tensors[Y].strides[0] = third;
        set(&c, "scales=f32[1] zero_points=f32[1]");
        refused(&c, NPUQ_ERROR_LAYOUT, "x", "overflow", NULL, "two elements, if their count wraps around");
    }
    {
        call c = base_call(COLUMNS);
        c.tensors[X].data = (void *)(UINTPTR_MAX - 63);
        refused(&c, NPUQ_ERROR_LAYOUT, "x", "overflow", NULL, "around the end of the address space");
    }
    {
        call c = base_call(TOKENS);
        c.given[SMOOTH_SCALES] = c.given[GROUP_INDEX] = false;
        set(&c, "x=f32[16] y=i8[16] scale=f32[1] scale.ndim=0 offset=f32[1] offset.ndim=0");
        accepted(&c, "a token by itself");
    }
    {
        call c = base_call(SYMMETRIC_TENSOR);
        c.given[SMOOTH_SCALES] = false;
        set(&c, "scale=f32[2]");
        refused(&c, NPUQ_ERROR_SHAPE, "scale", "2", "1", "a scale for each row of a tensor");
    }
    {
        call c = base_call(TOKENS);
        c.quant_mode = NPUQ_PER_TENSOR;
        set(&c, "x=f16[1,16] y=i8[1,16] scale=f32[1] offset=f32[1]");
        ((int64_t *)c.tensors[GROUP_INDEX].data)[3] = 1;
        for (int e = 0; e < 3; e++) {
            ((int64_t *)c.tensors[GROUP_INDEX].data)[e] = 0;
        }
        refused(&c, NPUQ_ERROR_ARGUMENT, "group_index", "given", "per tensor", "groups of a tensor of one row");
    }
    {
        call c = base_call(TOKENS);
        c.given[SMOOTH_SCALES] = c.given[GROUP_INDEX] = false;
        c.quant_mode = (npuq_quant_mode)2;
        refused(&c, NPUQ_ERROR_ARGUMENT, "quant_mode", "2", "0", "no such mode");
    }
    {
        static float smooth[1025 * 16];
        static int64_t ends[1025];
        call c = base_call(TOKENS);
        set(&c, "smooth_scales=f32[1,16]");
        c.tensors[SMOOTH_SCALES].shape[0] = 1025;
        c.tensors[SMOOTH_SCALES].data = smooth;
        set(&c, "group_index=i64[1]");
        c.tensors[GROUP_INDEX].shape[0] = 1025;
        c.tensors[GROUP_INDEX].data = ends;
        for (int e = 0; e < 1025; e++) {
            ends[e] = 6;
        }
        refused(&c, NPUQ_ERROR_SHAPE, "smooth_scales", "1025", "1024", "more groups than there may be");
    }
    {
        call c = base_call(GROUPS);
        set(&c, "x=f32[2,3,16] y=i8[2,3,16] scale=f32[4,3]");
        refused(&c, NPUQ_ERROR_SHAPE, "x", "3 dimensions", "2", "rows of two dimensions");
    }
    end();
}

static void outputs_overlapping_themselves(void **state)
{
    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        for (int d = 0; d < base_call((enum base)base).tensors[slot].ndim; d++) {
            call c = base_call((enum base)base);
            npuq_tensor *t = &c.tensors[slot];
            if (!is_output(&c, (enum slot)slot) || t->shape[d] <= 1) {
                continue;
            }
            t->strides[d] = 0;
            refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], "itself", NULL, "zero stride");
            if (d + 1 < t->ndim) { /* a row's last element is the next row's first, forwards and backwards */
                const int64_t short_stride = (t->shape[d + 1] - 1) * t->strides[d + 1];
                t->strides[d] = short_stride;
                refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], "itself", NULL, "rows meet");
                t->strides[d] = -short_stride;
                refused(&c, NPUQ_ERROR_LAYOUT, slot_names[slot], "itself", NULL, "rows meet backwards");
            }
        }
    }
    end();
}

static unsigned char *first_byte(const npuq_tensor *t)
{
    return (unsigned char *)t->data;
}

static size_t byte_size(const npuq_tensor *t)
{
    return test_count(t->ndim, t->shape) * npuq_dtype_size(t->dtype);
}

/* Moves the tensor to `at`, or down to its alignment. */
static void place(npuq_tensor *t, unsigned char *at)
{
    t->data = at - (uintptr_t)at % npuq_dtype_size(t->dtype);
}

/* y over the sums of dequant, but with another view or another element size. */
static void almost_in_place(void **state)
{
    (void)state;
    begin();
    for (int how = 0; how < 6; how++) {
        call c = base_call(SUMS);
        npuq_tensor *x = &c.tensors[X];
        npuq_tensor *y = &c.tensors[Y];
        const int64_t row = x->strides[1];

        x->shape[0] = y->shape[0] = c.tensors[ACTIVATION_SCALE].shape[0] = 1;
        y->data = x->data;
        y->dtype = how == 0 ? NPUQ_BFLOAT16 : NPUQ_FLOAT32;
        memcpy(y->strides, x->strides, sizeof y->strides);
        y->strides[0] = INT64_MIN; /* the stride of an extent of 1: ignored */
        switch (how) {
        case 1: y->data = first_byte(x) + 4; break;
        case 2: y->data = first_byte(x) + 4 * row; break;
        case 3: y->strides[1] = 2 * row; break;
        case 4: y->strides[1] = -row, y->data = first_byte(x) + 2 * 4 * row; break;
        case 5: c.tensors[BIAS].data = x->data; break; /* y would be written over the bias */
        default: break;
        }
        refused(&c, NPUQ_ERROR_LAYOUT, "y", how == 5 ? "overlaps bias" : "overlaps x",
                how == 5 ? "memory of its own" : "memory of its own, or a dtype of 4 bytes", number(how));
    }
    end();
}

static void outputs_overlapping_arguments(void **state)
{
    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        for (int other = 0; other < SLOTS; other++) {
            call c = base_call((enum base)base);
            npuq_tensor *out = &c.tensors[slot];
            const npuq_tensor *in = &c.tensors[other];
            const bool both = is_output(&c, (enum slot)slot) && is_output(&c, (enum slot)other);
            if (!is_output(&c, (enum slot)slot) || !c.given[other] || other == slot) {
                continue;
            }
            /* If outputs overlap, the message may name either first. */
            const char *name = slot_names[slot];
            const char *partner = slot_names[other];
            if (both && slot > other) {
                name = NULL;
            }
            unsigned char *const places[] = {first_byte(in), first_byte(in) + byte_size(in) - 1,
                                             first_byte(in) - byte_size(out) + npuq_dtype_size(out->dtype)};
            for (size_t i = 0; i < COUNT(places); i++) {
                place(out, places[i]);
                if (!both) {
                    refused(&c, NPUQ_ERROR_LAYOUT, name, partner, NULL, "overlap");
                    continue;
                }
                memcpy(arena_before, arena, ARENA);
                const npuq_status status = run(&c);
                const char *message = npuq_last_error();
                if (status != NPUQ_ERROR_LAYOUT || !strstr(message, slot_names[slot]) || !strstr(message, partner) ||
                    memcmp(arena_before, arena, ARENA) != 0) {
                    failures++;
                    print_error("%s over %s: got %s, \"%s\"\n", slot_names[slot], partner, npuq_status_name(status),
                                message);
                }
            }
        }
    }
    end();
}

/* ---- the table: rules of one operator --------------------------------------------------------------------------- */

typedef struct table_row {
    enum base base;
    const char *changes;
    npuq_status status;
    const char *argument;
    const char *found;
    const char *expected;
} table_row;

#define ROW(base, changes, status, argument, found, expected)                                                          \
    {                                                                                                                  \
        base, changes, NPUQ_ERROR_##status, argument, found, expected                                                  \
    }

static const table_row table[] = {
    /* quantize: axis */
    ROW(DIVIDE, "axis=2", AXIS, "axis", "2", "-2 to 1, as div_mode is true"),
    ROW(DIVIDE, "axis=-3", AXIS, "axis", "-3", "scales has 16 elements"),
    ROW(DIVIDE, "axis=2147483647", AXIS, "axis", "2147483647", "-2 to 1"),
    ROW(DIVIDE, "axis=-2147483648", AXIS, "axis", "-2147483648", "-2 to 1"),
    ROW(MULTIPLY, "axis=-3", AXIS, "axis", "-3", "-2 or more, as div_mode is false"),
    ROW(MULTIPLY, "axis=-2147483648", AXIS, "axis", "-2147483648", "-2 or more"),
    /* not counted from the end */
    ROW(MULTIPLY, "x=[2,3,16] y=[2,3,16] axis=-3", AXIS, "axis", "-3", "-2 or more"),
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
    /* axis 0 means the last dimension */
    ROW(MULTIPLY, "axis=0", SHAPE, "scales", "3", "1"),
    ROW(MULTIPLY, "axis=-1", SHAPE, "scales", "3", "along dimension 1 of x, as axis is -1"),
    /* and so does any axis beyond */
    ROW(MULTIPLY, "axis=2", SHAPE, "scales", "3", "axis is 2 and div_mode"),
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
    /* quantize: x without strides */
    ROW(DIVIDE, "x.strides=[0,0]", LAYOUT, "x", "repeats one element", "distances"),
    ROW(MULTIPLY, "x.strides=[0,0]", LAYOUT, "x", "repeats one element", "distances"),
    /* nor does the stride of a dimension of one element count */
    ROW(DIVIDE, "x=[1,16] x.strides=[16,0] y=[1,16]", LAYOUT, "x", "repeats one element", "npuq_tensor_contiguous()"),
    /* quantize: extents that overflow */
    ROW(DIVIDE, "x=[2^32,2^31] x.strides=[0,0] scales=[1] zero_points=[1] y=[2^32,2^31]", LAYOUT, "x", "overflow",
        NULL),
    ROW(DIVIDE, "x=[2,2^62,16] x.strides=[0,0,0] axis=2 y=[2,2^62,16]", LAYOUT, "x", "overflow", NULL),
    ROW(DIVIDE, "x=[2^61] y=[2^61] scales=[1] zero_points=[1]", LAYOUT, "x", "overflow", NULL),
    ROW(DIVIDE, "x=[2^61,2] x.strides[0]=0 y=[2^61,2] y=i32 scales=[1] zero_points=[1]", LAYOUT, "y", "overflow", NULL),
    ROW(MULTIPLY_INT4, "x=[2^40,16] x.strides[0]=0 y=[2^40,2] y.strides[0]=2^40", LAYOUT, "y", "overflow", NULL),
    /* group_quant */
    ROW(GROUPS, "x=[96]", SHAPE, "x", "1 dim", "2"),
    ROW(GROUPS, "x=[2,3,16]", SHAPE, "x", "3 dim", "2"),
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
    ROW(GROUPS, "y=[5,16]", SHAPE, "y", "5", "6"),
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
    /* of fewer rows, so they need not be counts */
    ROW(GROUPS, "ends=[2,1,0,0]", GROUP_INDEX, "group_index", "1", "2"),
    /* the sum is right, but no count is negative */
    ROW(GROUPS, "ends=[6,-1,1,0]", GROUP_INDEX, "group_index", "-1", "6"),
    ROW(GROUPS, "group_index.strides[0]=-1", GROUP_INDEX, "group_index", NULL, NULL),
    /* no rows: every group ends at 0 */
    ROW(GROUPS, "x=[0,16] y=[0,16] ends[0]=0", GROUP_INDEX, "group_index", "6", "0"),
    /* rows without columns: the groups must be right all the same */
    ROW(GROUPS, "x=[6,0] y=[6,0] scale=[4,0] ends[3]=7", GROUP_INDEX, "group_index", "7", "6"),
    ROW(GROUPS, "x=[2^32,2^31] x.strides=[0,0] y=[2^32,2^31] scale=[4,2^31] scale.strides=[0,0] ends[3]=2^32", LAYOUT,
        "x", "overflow", NULL),
    /* x is empty, scale is not */
    ROW(GROUPS,
        "x=[0,2^32] y=[0,2^32] scale=[2^32,2^32] scale.strides=[0,0] group_index=[2^32] group_index.strides=[0]",
        LAYOUT, "scale", "overflow", NULL),
    ROW(GROUPS, "x.strides=[0,0]", LAYOUT, "x", "repeats one element", "distances"),
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
    ROW(PACK_ROW, "offset=null scale=[2^32,2^31] scale.strides=[0,0] y=[2^32,2^31]", LAYOUT, "scale", "overflow", NULL),
    ROW(PACK, "offset=null scale=[2^60] scale.strides=[0] y=[2^60]", LAYOUT, "y", "overflow", NULL),
    /* dynamic_quant_asymmetric */
    ROW(TOKENS, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
    ROW(TENSOR, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
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
    ROW(TOKENS, "smooth_scales=[0,16] group_index=[0]", SHAPE, "smooth_scales", "0", "1"),
    ROW(TOKENS,
        "smooth_scales=[1025,16] smooth_scales.strides=[0,0] group_index=[1025] group_index.strides=[0] ends[0]=6",
        SHAPE, "smooth_scales", "1025", "1024, a row for each group, as group_index is given"),
    ROW(TOKENS, "smooth_scales=[4,15]", SHAPE, "smooth_scales", "15", "16"),
    ROW(TOKENS, "smooth_scales=[3,16]", SHAPE, "group_index", "4", "3 (dimension 0 of smooth"),
    ROW(TOKENS, "group_index=[4,1]", SHAPE, "group_index", "2 dim", "1"),
    ROW(TENSOR, "smooth_scales=[1]", SHAPE, "smooth_scales", "1", "16"),
    ROW(TENSOR, "smooth_scales=[15]", SHAPE, "smooth_scales", "15", "16"),
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
    ROW(TENSOR, "x=[2,2^58,16] x.strides=[0,0,0] y=[2,2^58,2]", LAYOUT, "x", "overflow", NULL),
    ROW(TENSOR, "x=[2,2^56,16] x.strides=[0,0,1] y=[2,2^56,2] y.strides[0]=2^61", LAYOUT, "y", "overflow", NULL),
    ROW(TOKENS, "x=[2,2^60,1] x.strides=[1,0,0] y=[2,2^60,1] scale=[2,2^60] offset=[2,2^60] smooth_scales=[4,1]",
        LAYOUT, "y", "overflow", NULL),
    /* the steps of dynamic_quant_asymmetric */
    ROW(TOKEN_RANGES, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
    ROW(TENSOR_APPLY, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
    ROW(TOKEN_RANGES, "quant_mode=2", ARGUMENT, "quant_mode", "2", "0"),
    ROW(TOKENS_APPLY, "quant_mode=-1", ARGUMENT, "quant_mode", "-1", "1"),
    ROW(TOKEN_RANGES, "smooth_scales=null", ARGUMENT, "group_index", "smooth_scales", "null"),
    ROW(TOKENS_APPLY, "group_index=null", ARGUMENT, "smooth_scales", "2 dim", "1"),
    ROW(TOKEN_RANGES, "quant_mode=1 min=[1] max=[1]", ARGUMENT, "group_index", "given",
        "null, as quant_mode is 1 (per tensor)"),
    ROW(TOKEN_RANGES, "smooth_scales=[4,15]", SHAPE, "smooth_scales", "15", "16"),
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
    /* dynamic_quant and its steps: what the rows above do not say, which symmetric_base() takes to them */
    ROW(SYMMETRIC_TOKENS, "scale_form=2", ARGUMENT, "scale_form", "2", "0"),
    ROW(SYMMETRIC_TENSOR, "scale_form=-1", ARGUMENT, "scale_form", "-1", "1"),
    ROW(SYMMETRIC_PARAMS, "scale_form=2", ARGUMENT, "scale_form", "2", "0"),
    ROW(SYMMETRIC_PARAMS, "scale_form=2147483647", ARGUMENT, "scale_form", "2147483647", "1"),
    ROW(SYMMETRIC_TOKENS_APPLY, "min=[6]", SHAPE, "min", "1 dim", "2"),
    ROW(SYMMETRIC_TOKENS_APPLY, "min=[2,3,1]", SHAPE, "max", "2 dim", "3 (the shape of min)"),
    ROW(SYMMETRIC_TOKENS_APPLY, "min=[1] max=[1]", SHAPE, "min", "1 dim", "2"),
    ROW(SYMMETRIC_TOKENS_APPLY, "max=[3,2]", SHAPE, "max", "3", "2"),
    ROW(SYMMETRIC_TENSOR_APPLY, "min=[2,3] max=[2,3]", SHAPE, "min", "2 dim", "1"),
    /* dynamic_block_quant */
    ROW(BLOCKS, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
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
    /* anti_quant */
    ROW(ANTI, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
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
    /* a scale for each element, not for each word */
    ROW(ANTI, "x=u4x8 y=[2,3,128]", SHAPE, "scale", "16", "128"),
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
    ROW(ANTI_INT4, "x=[3,2^58] x.strides=[1,0] scale=[1] offset=[1] y=[3,2^61]", LAYOUT, "y", "overflow", NULL),
    ROW(ANTI, "x=[2,2^62,16] x.strides=[0,0,0] y=[2,2^62,16]", LAYOUT, "x", "overflow", NULL),
    ROW(ANTI, "x=[2,2^56,16] x.strides=[0,0,1] y=[2,2^56,16]", LAYOUT, "y", "overflow", NULL),
    /* dequant */
    ROW(SUMS, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
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
    ROW(SUMS, "x=[2,2^58,16] x.strides=[0,0,0] activation_scale=[2,2^58] activation_scale.strides=[0,0] y=[2,2^58,16]",
        LAYOUT, "x", "overflow", NULL),
    ROW(SUMS, "x=[2,2^56,16] x.strides=[0,0,1] activation_scale=[2,2^56] activation_scale.strides=[0,0] y=[2,2^56,16]",
        LAYOUT, "y", "overflow", NULL),
    /* requant: shapes; its words have a test of their own */
    ROW(REQUANT_INT8, "x.strides=[0,0,0]", LAYOUT, "x", "repeats one element", "distances"),
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
    ROW(REQUANT_INT8, "x=[2,2^62,16] x.strides=[0,0,0] y=[2,2^62,16]", LAYOUT, "x", "overflow", NULL),
    ROW(REQUANT_INT8, "x=[2,2^56,16] x.strides=[0,0,1] y=[2,2^56,16]", LAYOUT, "y", "overflow", NULL),
};

static void refused_by_row(enum base base, const table_row *row)
{
    char what[64];
    call c = base_call(base);

    set(&c, "%s", row->changes);
    snprintf(what, sizeof what, "row %zu of the table, base call %d", (size_t)(row - table), (int)base);
    refused(&c, row->status, row->argument, row->found, row->expected, what);
}

/* The symmetric form of a call of dynamic_quant_asymmetric or of its steps: the same rules hold. */
static enum base symmetric_base(enum base base)
{
    switch (base) {
    case TOKENS: return SYMMETRIC_TOKENS;
    case TENSOR: return SYMMETRIC_TENSOR;
    case PARAMS: return SYMMETRIC_PARAMS;
    case TOKENS_APPLY: return SYMMETRIC_TOKENS_APPLY;
    case TENSOR_APPLY: return SYMMETRIC_TENSOR_APPLY;
    default: return BASES;
    }
}

static bool has_argument(enum base base, const char *name)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        if (strcmp(slot_names[slot], name) == 0) {
            return base_call(base).given[slot];
        }
    }
    return true; /* no tensor */
}

static void table_of_rules(void **state)
{
    (void)state;
    begin();
    for (size_t i = 0; i < COUNT(table); i++) {
        const enum base symmetric = symmetric_base(table[i].base);

        refused_by_row(table[i].base, &table[i]);
        if (symmetric != BASES && has_argument(symmetric, table[i].argument)) {
            refused_by_row(symmetric, &table[i]);
        }
    }
    end();
}

/* ---- overlaps that only an exact search finds ------------------------------------------------------------------- */

/* x is [rows, columns] FLOAT32, y INT8; both in one region. */
static call two_dimensional(int rows, int columns)
{
    call c = base_call(DIVIDE);

    set(&c, "x=f32[%d,%d] scales=f32[1] zero_points=i32[1] y=i8[%d,%d]", rows, columns, rows, columns);
    return c;
}

static void set_strides(npuq_tensor *t, int64_t s0, int64_t s1)
{
    t->strides[0] = s0;
    t->strides[1] = s1;
}

static void exact_overlaps(void **state)
{
    (void)state;
    begin();

    /* Rows of x every 32 bytes, 16 long; rows of y in the gaps, or a byte too early or too late. */
    for (int gap = 14; gap <= 30; gap++) {
        call c = two_dimensional(4, 4);
        set_strides(&c.tensors[X], 8, 1);
        set_strides(&c.tensors[Y], 32, 1);
        c.tensors[Y].data = first_byte(&c.tensors[X]) + gap;
        if (gap >= 16 && gap <= 28) {
            accepted(&c, "rows of y between rows of x");
        } else {
            refused(&c, NPUQ_ERROR_LAYOUT, "y", "overlaps x", NULL, "rows of y a byte into rows of x");
        }
    }

    /* A column of y next to every column of x, on each byte of the gap and of x. */
    for (int at = 0; at < 8; at++) {
        call c = two_dimensional(3, 5);
        set_strides(&c.tensors[X], 10, 2);
        set_strides(&c.tensors[Y], 40, 8);
        c.tensors[Y].data = first_byte(&c.tensors[X]) + at;
        if (at >= 4) {
            accepted(&c, "columns of y between columns of x");
        } else {
            refused(&c, NPUQ_ERROR_LAYOUT, "y", "overlaps x", NULL, "columns of y in columns of x");
        }
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
        set_strides(&c.tensors[Y], outputs[i].s0, outputs[i].s1);
        c.tensors[Y].data = arena[Y] + REGION / 2;
        if (outputs[i].meet) {
            refused(&c, NPUQ_ERROR_LAYOUT, "y", "itself", NULL, "strides that do not nest");
        } else {
            accepted(&c, "strides that do not nest, and do not meet");
        }
    }

    /* Two lattices: x at multiples of 24 bytes, 4 long; y at multiples of 10 bytes from some start. */
    for (int start = 0; start < 24; start++) {
        call c = two_dimensional(1, 7);
        bool meet = false;
        c.tensors[X].strides[1] = 6;
        c.tensors[Y].strides[1] = 10;
        c.tensors[Y].data = first_byte(&c.tensors[X]) + start;
        for (int i = 0; i < 7; i++) {
            const int byte = start + 10 * i;
            meet = meet || (byte % 24 < 4 && byte / 24 < 7);
        }
        if (meet) {
            refused(&c, NPUQ_ERROR_LAYOUT, "y", "overlaps x", NULL, "lattices that meet");
        } else {
            accepted(&c, "lattices that do not meet");
        }
    }
    end();
}

/* Marks each byte of buffer that belongs to an element. False if two elements share a byte. */
static bool mark_bytes(const npuq_tensor *t, unsigned char *marks)
{
    const int64_t size = (int64_t)npuq_dtype_size(t->dtype);
    const size_t count = test_count(t->ndim, t->shape);
    bool distinct = true;

    memset(marks, 0, BUFFER);
    for (size_t i = 0; i < count; i++) {
        int64_t rest = (int64_t)i;
        int64_t at = first_byte(t) - buffer;

        for (int d = t->ndim - 1; d >= 0; d--) {
            at += rest % t->shape[d] * t->strides[d] * size;
            rest /= t->shape[d];
        }
        assert_in_range(at, 0, BUFFER - size);
        for (int64_t b = at; b < at + size; b++) {
            distinct = distinct && !marks[b];
            marks[b] = 1;
        }
    }
    return distinct;
}

static bool marks_meet(const unsigned char *a, const unsigned char *b)
{
    for (int i = 0; i < BUFFER; i++) {
        if (a[i] && b[i]) {
            return true;
        }
    }
    return false;
}

/* Any strides up to `most` elements, or nearly nested strides, as of a slice, often one element too short. Nearly
 * nested, the largest shape of random_shape() spans over 1530 elements: half of buffer has room for them. */
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

/* 1 to 4 dimensions, 256 elements at most. */
static int random_shape(int64_t *shape)
{
    const int ndim = (int)test_between(1, 4);

    for (int d = 0; d < ndim; d++) {
        shape[d] = test_between(1, ndim == 4 ? 4 : 6);
    }
    return ndim;
}

static const char *layout_of(const npuq_tensor *t)
{
    static char texts[2][160];
    static unsigned next;
    char *text = texts[next++ % COUNT(texts)];
    int used = snprintf(text, sizeof texts[0], "%s at %d,", npuq_dtype_name(t->dtype), (int)(first_byte(t) - buffer));

    for (int d = 0; d < t->ndim; d++) {
        used +=
            snprintf(text + used, sizeof texts[0] - (size_t)used, " %" PRId64 "*%" PRId64, t->shape[d], t->strides[d]);
    }
    return text;
}

/* A valid call gives the bits of the same call on contiguous tensors, and changes no other byte. */
static void right(const call *c, const npuq_tensor *y, const unsigned char *marks, const void *expected)
{
    unsigned char got[256 * 8];
    const npuq_status status = run(c);
    bool spilt = false;

    test_view_read(y, got);
    for (int i = 0; i < BUFFER; i++) {
        spilt = spilt || (!marks[i] && buffer[i] != buffer_before[i]);
    }
    if (status != NPUQ_OK || spilt || memcmp(got, expected, byte_size(y)) != 0) {
        failures++;
        print_error("y %s: %s\n", layout_of(y),
                    status != NPUQ_OK ? npuq_last_error() : (spilt ? "wrote beside y" : "wrong values"));
    }
}

enum { TRIALS = 20000 };

/* Enough cases of either kind. */
static void check_mixture(int met)
{
    assert_in_range(met, TRIALS / 10, TRIALS - TRIALS / 10);
}

static void random_self_overlaps(void **state)
{
    static const npuq_dtype y_dtypes[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
    static unsigned char marks[BUFFER];
    const call base = two_dimensional(1, 1);
    int met = 0;

    (void)state;
    begin();
    for (int trial = 0; trial < TRIALS; trial++) {
        call c = base;
        int64_t shape[4];
        unsigned char expected[256 * 4];

        test_reseed(1000000 + (uint64_t)trial);
        const int ndim = random_shape(shape);
        c.tensors[X] = npuq_tensor_contiguous(c.tensors[X].data, NPUQ_FLOAT32, ndim, shape);
        c.tensors[Y] = npuq_tensor_contiguous(c.tensors[Y].data, y_dtypes[test_below(COUNT(y_dtypes))], ndim, shape);
        test_fill(c.tensors[X].data, NPUQ_FLOAT32, test_count(ndim, shape), false);
        assert_int_equal(run(&c), NPUQ_OK);
        test_view_read(&c.tensors[Y], expected);

        c.tensors[Y].data = buffer + BUFFER / 2;
        random_strides(&c.tensors[Y], 40);
        memset(buffer, 0xA5, BUFFER);
        memset(buffer_before, 0xA5, BUFFER);
        if (mark_bytes(&c.tensors[Y], marks)) {
            right(&c, &c.tensors[Y], marks, expected);
        } else {
            refused(&c, NPUQ_ERROR_LAYOUT, "y", "overlaps itself", "distinct", layout_of(&c.tensors[Y]));
            met++;
        }
    }
    check_mixture(met);
    end();
}

/* The output of quantize among its x, and of trans_quant_param among its scale, in every pair of element sizes. */
static void random_pair_overlaps(void **state)
{
    static const npuq_dtype x_dtypes[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
    static const npuq_dtype y_dtypes[] = {NPUQ_INT8, NPUQ_UINT8, NPUQ_INT32};
    static unsigned char in_marks[BUFFER];
    static unsigned char out_marks[BUFFER];
    const call quantize = two_dimensional(1, 1);
    call pack = base_call(PACK);
    int met = 0;

    (void)state;
    pack.given[OFFSET] = false;
    begin();
    for (int trial = 0; trial < TRIALS; trial++) {
        int64_t shape[4];
        unsigned char values[256 * 4];
        unsigned char expected[256 * 8];
        char found[32];

        test_reseed(2000000 + (uint64_t)trial);
        const int ndim = random_shape(shape);
        const bool packs = ndim <= 2 && test_one_in(2);
        call c = packs ? pack : quantize;
        const enum slot in = packs ? SCALE : X;
        npuq_tensor *x = &c.tensors[in];
        npuq_tensor *y = &c.tensors[Y];
        *x = npuq_tensor_contiguous(NULL, packs ? NPUQ_FLOAT32 : x_dtypes[test_below(COUNT(x_dtypes))], ndim, shape);
        *y = npuq_tensor_contiguous(NULL, packs ? NPUQ_UINT64 : y_dtypes[test_below(COUNT(y_dtypes))], ndim, shape);

        /* An input in the middle; an output that does not overlap itself, near the input or among its elements. */
        x->data = buffer + BUFFER / 2;
        do {
            random_strides(x, packs ? 30 : 12);
        } while (!packs && test_repeats_one_element(x));
        (void)mark_bytes(x, in_marks);
        do { /* some trials have nested strides, so the loop ends */
            const int64_t size = (int64_t)npuq_dtype_size(y->dtype);
            y->data = buffer + BUFFER / 2 + test_between(-96 / size, 96 / size) * size;
            random_strides(y, 120 / size);
        } while (!mark_bytes(y, out_marks));

        for (int i = 0; i < BUFFER; i++) {
            buffer[i] = (unsigned char)test_random();
        }
        call plain = c;
        test_view_read(x, values);
        plain.tensors[in] = npuq_tensor_contiguous(arena[in] + BEFORE, x->dtype, ndim, shape);
        plain.tensors[Y] = npuq_tensor_contiguous(arena[Y] + 0, y->dtype, ndim, shape);
        test_view_write(&plain.tensors[in], values);
        assert_int_equal(run(&plain), NPUQ_OK);
        test_view_read(&plain.tensors[Y], expected);

        memcpy(buffer_before, buffer, BUFFER);
        if (marks_meet(in_marks, out_marks)) {
            char what[400];
            snprintf(what, sizeof what, "y %s, input %s", layout_of(y), layout_of(x));
            snprintf(found, sizeof found, "overlaps %s", slot_names[in]);
            refused(&c, NPUQ_ERROR_LAYOUT, "y", found, "memory of its own", what);
            met++;
        } else {
            right(&c, y, out_marks, expected);
        }
    }
    check_mixture(met);
    end();
}

/* All strides but one are even, and nearly equal: no sum of them is odd, but only a full search could tell. The search
 * is bounded, so the library refuses such a layout, even if no elements meet. */
static void layouts_too_irregular_to_tell(void **state)
{
    static const int64_t shape[NPUQ_MAX_NDIM] = {2, 6, 6, 6, 6, 6, 6, 6};
    static const int64_t strides[NPUQ_MAX_NDIM] = {1, 74, 82, 86, 94, 106, 118, 122};
    call c = two_dimensional(1, 1);

    (void)state;
    begin();
    c.tensors[X] = npuq_tensor_contiguous(c.tensors[X].data, NPUQ_FLOAT32, NPUQ_MAX_NDIM, shape);
    memset(&c.tensors[X].strides[1], 0, sizeof c.tensors[X].strides - sizeof c.tensors[X].strides[0]);
    c.tensors[X].strides[0] = 1;
    c.tensors[Y] = npuq_tensor_contiguous(buffer, NPUQ_INT8, NPUQ_MAX_NDIM, shape);
    memcpy(c.tensors[Y].strides, strides, sizeof strides);
    refused(&c, NPUQ_ERROR_LAYOUT, "y", "may overlap itself", "distinct", "irregular output");

    /* x on the first two of every four bytes, in an irregular order; y on the last. */
    enum { SPAN = 1 << 17 };
    static const int64_t pair_shape[] = {4, 4, 4, 4, 4, 4, 4};
    static const int64_t x_strides[] = {74, 82, 86, 94, 106, 118, 122};
    test_guarded guarded = test_guarded_make(SPAN, false, 0);
    unsigned char *memory = guarded.memory;
    c = two_dimensional(1, 1);
    c.tensors[X] = npuq_tensor_contiguous(memory, NPUQ_FLOAT16, COUNT(pair_shape), pair_shape);
    memcpy(c.tensors[X].strides, x_strides, sizeof x_strides);
    c.tensors[Y] = npuq_tensor_contiguous(memory + 3, NPUQ_INT8, COUNT(pair_shape), pair_shape);
    for (size_t d = 0; d < COUNT(pair_shape); d++) {
        c.tensors[Y].strides[d] *= 4;
    }
    refused(&c, NPUQ_ERROR_LAYOUT, "y", "may overlap x", "memory of its own", "irregular input");
    test_guarded_free(&guarded);
    end();
}

/* ---- unusual and valid ------------------------------------------------------------------------------------------ */

typedef struct outcome {
    unsigned char bytes[SLOTS][1024];
} outcome;

static outcome outputs_of(const call *c)
{
    outcome o;

    memset(&o, 0, sizeof o);
    for (int slot = 0; slot < SLOTS; slot++) {
        if (c->given[slot] && is_output(c, (enum slot)slot)) {
            test_view_read(&c->tensors[slot], o.bytes[slot]);
        }
    }
    return o;
}

/* The results with all tensors contiguous. */
static outcome plain_outcome(const call *c)
{
    assert_int_equal(run(c), NPUQ_OK);
    return outputs_of(c);
}

/* Moves a tensor to another layout; an input keeps its values. */
static void move(call *c, enum slot slot, void *data, int64_t s0, int64_t s1, int64_t s2)
{
    npuq_tensor *t = &c->tensors[slot];
    unsigned char values[2048];

    test_view_read(t, values);
    t->data = data;
    t->strides[0] = s0;
    t->strides[1] = s1;
    t->strides[2] = s2;
    if (!is_output(c, slot)) {
        test_view_write(t, values);
    }
}

static void gives(const call *c, const outcome *expected)
{
    spoil_outputs(c);
    if (run(c) != NPUQ_OK) {
        fail_msg("%s", npuq_last_error());
    }
    const outcome got = outputs_of(c);
    assert_memory_equal(got.bytes, expected->bytes, sizeof got.bytes);
}

/* Each token's x, y, scale and offset side by side in one buffer: 32 + 16 + 4 + 4 bytes. */
static void fused_rows(void **state)
{
    call c = base_call(TOKENS);
    const outcome expected = plain_outcome(&c);

    (void)state;
    memset(buffer, 0x5A, BUFFER);
    move(&c, X, buffer, 3 * 28, 28, 1);
    move(&c, Y, buffer + 32, 3 * 56, 56, 1);
    move(&c, SCALE, buffer + 48, 3 * 14, 14, 0);
    move(&c, OFFSET, buffer + 52, 3 * 14, 14, 0);
    gives(&c, &expected);
    for (size_t i = 6 * 56; i < BUFFER; i++) {
        assert_int_equal(buffer[i], 0x5A);
    }
    /* One byte closer together, and y would write into its own x. */
    c.tensors[Y].data = buffer + 31;
    begin();
    refused(&c, NPUQ_ERROR_LAYOUT, "y", "overlaps x", NULL, "fused rows");
    end();
}

static void interleaved_columns(void **state)
{
    call c = base_call(DIVIDE);

    (void)state;
    c.tensors[Y].dtype = NPUQ_INT32;
    outcome expected = plain_outcome(&c);
    move(&c, X, buffer, 32, 2, 0);
    move(&c, Y, buffer + 4, 32, 2, 0);
    gives(&c, &expected);

    /* Everything of trans_quant_param in one array of structs. */
    c = base_call(PACK);
    expected = plain_outcome(&c);
    move(&c, SCALE, buffer, 4, 0, 0);
    move(&c, OFFSET, buffer + 4, 4, 0, 0);
    move(&c, Y, buffer + 8, 2, 0, 0);
    gives(&c, &expected);

    /* scale and offset of dynamic_quant_asymmetric as pairs. */
    c = base_call(TOKENS);
    expected = plain_outcome(&c);
    move(&c, SCALE, buffer, 6, 2, 0);
    move(&c, OFFSET, buffer + 4, 6, 2, 0);
    gives(&c, &expected);

    /* Rows of y in the gaps of x, the parameters in the gaps of y. */
    c = base_call(GROUPS);
    expected = plain_outcome(&c);
    move(&c, X, buffer, 48, 1, 0);
    move(&c, Y, buffer + 32, 96, 1, 0);
    move(&c, OFFSET, buffer + 48, 1, 0, 0);
    move(&c, GROUP_INDEX, buffer + 56, 12, 0, 0);
    gives(&c, &expected);
}

static void expanded_inputs(void **state)
{
    (void)state;
    FOR_EACH_ARGUMENT(base, slot)
    {
        const call c = base_call((enum base)base);
        if (slot == GROUP_INDEX || is_output(&c, (enum slot)slot)) {
            continue;
        }
        /* each dimension alone, and then all, unless the slot is x */
        for (int d = 0; d < c.tensors[slot].ndim + (slot != X); d++) {
            call copy = c;
            call plain = c;
            npuq_tensor *t = &copy.tensors[slot];
            outcome expected;

            if (d < t->ndim) {
                t->strides[d] = 0;
            } else {
                memset(t->strides, 0, sizeof t->strides);
            }
            test_view_read(t, buffer);
            plain.tensors[slot].data = buffer;
            expected = plain_outcome(&plain);
            gives(&copy, &expected);
        }
    }
}

static void garbage_strides_of_extent_one(void **state)
{
    static const int64_t garbage[] = {INT64_MAX, INT64_MIN, 0, -1, 12345};

    (void)state;
    for (size_t i = 0; i < COUNT(garbage); i++) {
        const int64_t g = garbage[i];
        call c = base_call(DIVIDE);
        set(&c, "x=f32[1,16,1] scales=f32[1] zero_points=i32[1] y=i8[1,16,1]");
        outcome expected = plain_outcome(&c);
        move(&c, X, c.tensors[X].data, g, 1, g);
        move(&c, Y, c.tensors[Y].data, g, 1, g);
        c.tensors[SCALES].strides[0] = g;
        c.tensors[ZERO_POINTS].strides[0] = g;
        gives(&c, &expected);

        c = base_call(GROUPS);
        set(&c, "x=f16[6,1] scale=f32[1,1] group_index=i64[1]");
        set_group_end(&c, 0, 6);
        set(&c, "y=i8[6,1]");
        expected = plain_outcome(&c);
        c.tensors[X].strides[1] = g;
        c.tensors[Y].strides[1] = g;
        set_strides(&c.tensors[SCALE], g, g);
        c.tensors[OFFSET].strides[0] = g;
        c.tensors[GROUP_INDEX].strides[0] = g;
        gives(&c, &expected);

        c = base_call(PACK_ROW);
        expected = plain_outcome(&c);
        c.tensors[SCALE].strides[0] = g;
        c.tensors[OFFSET].strides[0] = g;
        c.tensors[Y].strides[0] = g;
        gives(&c, &expected);

        c = base_call(TENSOR);
        set(&c, "x=f16[1,3,8] smooth_scales=f16[8] y=u4x8[1,3,1]");
        expected = plain_outcome(&c);
        c.tensors[X].strides[0] = g;
        c.tensors[Y].strides[0] = g;
        c.tensors[Y].strides[2] = g;
        c.tensors[SCALE].strides[0] = g;
        c.tensors[OFFSET].strides[0] = g;
        gives(&c, &expected);
    }
}

/* Makes a tensor empty in one dimension, with null data and senseless strides. */
static void empty(call *c, enum slot slot, int d)
{
    npuq_tensor *t = &c->tensors[slot];

    t->data = NULL;
    t->shape[d] = 0;
    for (int i = 0; i < NPUQ_MAX_NDIM; i++) {
        t->strides[i] = i % 2 ? INT64_MIN : INT64_MAX;
    }
}

static void does_nothing(const call *c)
{
    memcpy(arena_before, arena, ARENA);
    if (run(c) != NPUQ_OK) {
        fail_msg("%s", npuq_last_error());
    }
    assert_memory_equal(arena_before, arena, ARENA);
}

static void empty_rows(call *c, int d)
{
    for (size_t i = 0; i < COUNT(by_row); i++) {
        empty(c, by_row[i], d);
    }
}

static void empty_tensors(void **state)
{
    (void)state;
    call c = base_call(DIVIDE);
    empty(&c, X, 0);
    empty(&c, Y, 0);
    does_nothing(&c);

    c = base_call(DIVIDE);
    empty(&c, X, 1);
    empty(&c, Y, 1);
    empty(&c, SCALES, 0);
    empty(&c, ZERO_POINTS, 0);
    does_nothing(&c);

    c = base_call(DIVIDE); /* extents that would overflow, were there any elements */
    empty(&c, X, 0);
    empty(&c, Y, 0);
    c.tensors[X].ndim = c.tensors[Y].ndim = 8;
    for (int d = 1; d < 8; d++) {
        c.tensors[X].shape[d] = c.tensors[Y].shape[d] = d == 1 ? 16 : INT64_MAX;
    }
    does_nothing(&c);

    c = base_call(MULTIPLY_INT4);
    empty(&c, X, 1);
    empty(&c, Y, 1);
    empty(&c, SCALES, 0);
    empty(&c, ZERO_POINTS, 0);
    does_nothing(&c);

    c = base_call(GROUPS);
    empty(&c, X, 0);
    empty(&c, Y, 0);
    for (int e = 0; e < 4; e++) {
        set_group_end(&c, e, 0);
    }
    does_nothing(&c);

    c = base_call(GROUPS_INT4);
    empty(&c, X, 1);
    empty(&c, Y, 1);
    empty(&c, SCALE, 1);
    does_nothing(&c);

    static const enum base by_token[] = {TOKENS, TOKENS_APPLY, SYMMETRIC_TOKENS, SYMMETRIC_TOKENS_APPLY};
    for (size_t i = 0; i < COUNT(by_token); i++) {
        for (int d = 0; d < 2; d++) {
            c = base_call(by_token[i]);
            empty(&c, X, d);
            empty(&c, Y, d);
            empty_rows(&c, d);
            for (int e = 0; e < 4; e++) {
                set_group_end(&c, e, 0);
            }
            does_nothing(&c);
            c.given[SMOOTH_SCALES] = c.given[GROUP_INDEX] = false;
            does_nothing(&c);
        }
    }
    static const enum base applies[] = {TOKENS_APPLY, TENSOR_APPLY, SYMMETRIC_TOKENS_APPLY, SYMMETRIC_TENSOR_APPLY};
    for (size_t i = 0; i < COUNT(applies); i++) {
        c = base_call(applies[i]);
        empty(&c, X, 2);
        empty(&c, Y, 2);
        empty(&c, SMOOTH_SCALES, c.tensors[SMOOTH_SCALES].ndim - 1);
        does_nothing(&c);
    }
    static const enum base of_ranges[] = {PARAMS, SYMMETRIC_PARAMS};
    for (size_t i = 0; i < COUNT(of_ranges); i++) {
        for (int d = 0; d < 2; d++) {
            c = base_call(of_ranges[i]);
            empty_rows(&c, d);
            does_nothing(&c);
        }
    }
    for (int d = 0; d < 3; d++) {
        c = base_call(BLOCKS);
        empty(&c, X, d);
        empty(&c, Y, d);
        empty(&c, SCALE, d);
        does_nothing(&c);
    }
    for (int base = ANTI; base <= REQUANT_ROW; base++) {
        static const enum slot by_column[] = {SCALE, OFFSET, WEIGHT_SCALE, BIAS, WORDS};
        const int last = base_call((enum base)base).tensors[X].ndim - 1;

        for (int d = 0; d <= last; d++) {
            c = base_call((enum base)base);
            empty(&c, X, d);
            empty(&c, Y, d);
            if (d < last) {
                empty(&c, ACTIVATION_SCALE, d);
            }
            for (size_t i = 0; d == last && i < COUNT(by_column); i++) {
                if (c.given[by_column[i]]) {
                    empty(&c, by_column[i], c.tensors[by_column[i]].ndim - 1);
                }
            }
            does_nothing(&c);
        }
    }

    c = base_call(REQUANT_INT8); /* more equal words than there is time to look at */
    empty(&c, X, 0);
    empty(&c, Y, 0);
    c.tensors[X].shape[2] = c.tensors[Y].shape[2] = c.tensors[WORDS].shape[0] = INT64_C(1) << 50;
    c.tensors[WORDS].strides[0] = 0;
    c.given[BIAS] = false;
    does_nothing(&c);

    /* Empty groups at both ends; the middle group has all rows. */
    c = base_call(GROUPS);
    set_group_end(&c, 0, 0);
    set_group_end(&c, 1, 0);
    set_group_end(&c, 2, 6);
    assert_int_equal(run(&c), NPUQ_OK);
}

/* Bits of words that trans_quant_param never changes: in any layout of words, with and without x. */
static void words_that_cannot_be(void **state)
{
    static const int bits[] = {32, 33, 34, 35, 36, 46};
    static const char *const for_y[] = {"bits 36..32 to be 0, for any y",
                                        "bit 46 to be 1, as in the words of trans_quant_param"};
    static const int64_t places[] = {0, 7, 15};
    static const int64_t steps[] = {1, 3, -2};

    (void)state;
    begin();
    for (int base = REQUANT_INT8; base <= REQUANT_ROW; base++) {
        for (size_t i = 0; i < COUNT(bits) * COUNT(places) * COUNT(steps); i++) {
            const int bit = bits[i % COUNT(bits)];
            const int64_t at = places[i / COUNT(bits) % COUNT(places)];
            const int64_t step = steps[i / COUNT(bits) / COUNT(places)];
            const char *expected = for_y[bit == 46];
            uint64_t *words = (uint64_t *)(void *)buffer + 32;
            char found[32];
            char what[64];
            call c = base_call((enum base)base);

            if ((UINT64_C(1) << bit & ignored_bits(&c)) != 0) {
                continue; /* bits_of_words_not_looked_at() changes this one */
            }
            move(&c, WORDS, words, step, step, 0);
            words[at * step] ^= UINT64_C(1) << bit;
            snprintf(found, sizeof found, "element %" PRId64 " ", at);
            snprintf(what, sizeof what, "bit %d, step %" PRId64, bit, step);
            refused(&c, NPUQ_ERROR_ARGUMENT, "words", found, expected, what);
            empty(&c, X, 0);
            empty(&c, Y, 0);
            refused(&c, NPUQ_ERROR_ARGUMENT, "words", found, expected, what);
            if (at == 0) {
                c.tensors[WORDS].ndim = 1;
                c.tensors[WORDS].shape[0] = 1;
                refused(&c, NPUQ_ERROR_ARGUMENT, "words", found, expected, what);
            }
        }
    }
    end();
}

/* A scale's bits as int64: the sign of a negative scale must not be copied upwards. */
static void scales_as_words(void **state)
{
    static const float scales[16] = {0.5f, 3.0f, 1e-30f, -0.25f, 7.0f, [15] = 1.0f};

    (void)state;
    begin();
    for (int base = REQUANT_INT8; base <= REQUANT_ROW; base++) {
        for (int sign_copied = 0; sign_copied < 2; sign_copied++) {
            call c = base_call((enum base)base);
            int64_t *words = c.tensors[WORDS].data;

            for (size_t i = 0; i < COUNT(scales); i++) {
                int32_t bits;

                memcpy(&bits, &scales[i], sizeof bits);
                words[i] = sign_copied ? bits : (int64_t)(uint32_t)bits;
            }
            if (c.tensors[Y].dtype == NPUQ_INT8) {
                refused(&c, NPUQ_ERROR_ARGUMENT, "words", "element 0 is 0x3F000000", "bit 46", "no flag");
            } else if (sign_copied) {
                refused(&c, NPUQ_ERROR_ARGUMENT, "words", "element 3 is 0xFFFFFFFFBE800000", "by zeros", "sign");
            } else {
                assert_int_equal(run(&c), NPUQ_OK);
            }
        }
    }
    end();
}

static void bits_of_words_not_looked_at(void **state)
{
    (void)state;
    for (int base = REQUANT_INT8; base <= REQUANT_ROW; base++) {
        const call c = base_call((enum base)base);
        const outcome expected = plain_outcome(&c);
        uint64_t *words = c.tensors[WORDS].data;
        const uint64_t ignored = ignored_bits(&c);
        const uint64_t fills[] = {0, ignored, ignored & ~FLAG_AND_OFFSET, ignored & FLAG_AND_OFFSET};

        for (size_t fill = 0; fill < COUNT(fills); fill++) {
            for (int i = 0; i < 16; i++) {
                words[i] = (words[i] & ~ignored) | fills[fill];
            }
            gives(&c, &expected);
        }
    }
}

static void optional_arguments_left_out(void **state)
{
    (void)state;
    for (int base = 0; base < BASES; base++) {
        call c = base_call((enum base)base);
        for (int slot = 0; slot < SLOTS; slot++) {
            if (test_is_optional(c.op, (enum slot)slot)) {
                c.given[slot] = false;
            }
        }
        if (run(&c) != NPUQ_OK) {
            fail_msg("base call %d: %s", base, npuq_last_error());
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

static void eight_dimensions(void **state)
{
    (void)state;
    for (int base = 0; base < BASES; base++) {
        call c = base_call((enum base)base);
        const bool as_x = test_takes_ranges_only(c.op) || c.op == TEST_DYNAMIC_BLOCK_QUANT;
        const int row_ndim = as_x ? NPUQ_MAX_NDIM : NPUQ_MAX_NDIM - 1;
        if (base == MULTIPLY || base == ANTI_GROUPS || c.op == TEST_GROUP_QUANT || c.op == TEST_TRANS_QUANT_PARAM) {
            continue; /* not of any rank */
        }
        c.axis = -1;
        const outcome expected = plain_outcome(&c);
        prepend(&c.tensors[X], NPUQ_MAX_NDIM);
        prepend(&c.tensors[Y], NPUQ_MAX_NDIM);
        for (size_t i = 0; i < COUNT(by_row); i++) {
            if (c.op != TEST_ANTI_QUANT && c.quant_mode == NPUQ_PER_TOKEN) {
                prepend(&c.tensors[by_row[i]], row_ndim);
            }
        }
        gives(&c, &expected);
    }
}

/* Other shapes and strides for the same tensors: the second changes must not change the results. */
static const struct {
    enum base base;
    const char *first;
    const char *then;
} same_calls[] = {
    /* extents beyond ndim are not looked at */
    {GROUPS, "", "offset.ndim=0 offset.shape[0]=-7"},
    {GROUPS_INT4, "", "offset.ndim=0 offset.shape[0]=-7"},
    {PARAMS, "min=[1] max=[1] scale=[1] offset=[1]", "min.ndim=0 max.ndim=0 scale.ndim=0 offset.ndim=0"},
    {SYMMETRIC_PARAMS, "min=[1] max=[1] scale=[1]", "min.ndim=0 max.ndim=0 scale.ndim=0"},
    {ANTI, "x=[1] scale=[1] offset=[1] y=[1]", "x.ndim=0 y.ndim=0"},
    /* one row: its activation scale is a scalar */
    {SUMS, "x=[1,16] activation_scale=[1] y=[1,16]", "x=[16] activation_scale.ndim=0 y=[16]"},
    /* of a column, the stride of the last dimension is not looked at */
    {SUMS, "", "activation_scale=[2,3,1] activation_scale.strides[2]=-2^63"},
    {TOKENS, "", "scale=[2,3,1] scale.strides[2]=2^63-1 offset=[2,3,1] offset.strides[2]=-2^63"},
    {SYMMETRIC_TOKENS_APPLY, "", "min=[2,3,1] max=[2,3,1]"},
    {TOKEN_RANGES, "", "min=[2,3,1] max=[2,3,1]"},
    /* a row by itself */
    {SYMMETRIC_TENSOR, "quant_mode=0 x=[1,16] y=[1,2] scale=[1]", "x=[16] y=[2]"},
    {SYMMETRIC_TENSOR, "quant_mode=0 x=[1,16] y=[1,2] scale=[1]", "x=[16] y=[2] scale.ndim=0"},
    /* one parameter for all, for the same one again and again; no stride of it is looked at */
    {ANTI, "scale.strides=[0] offset.strides=[0]",
     "scale.shape[0]=1 offset.shape[0]=1 scale.strides[0]=-2^63 offset.strides[0]=2^63-1"},
    {ANTI_INT4, "scale.strides=[0] offset.strides=[0]",
     "scale.shape[0]=1 offset.shape[0]=1 scale.strides[0]=-2^63 offset.strides[0]=2^63-1"},
    {SUMS, "weight_scale.strides=[0]", "weight_scale.shape[0]=1 weight_scale.strides[0]=-2^63"},
    {REQUANT_INT8, "words.strides=[0]", "words.shape[0]=1 words.strides[0]=-2^63"},
    {REQUANT_ROW, "", "words=[16]"},
    /* strides of extents of 1 */
    {REQUANT_ROW, "", "words.strides[0]=-2^63"},
    {SYMMETRIC_TENSOR, "", "scale.strides[0]=-2^63"},
    {SYMMETRIC_TENSOR_APPLY, "", "min.strides[0]=-2^63 max.strides[0]=2^63-1"},
    {ANTI, "x.shape[2]=1 scale.shape[0]=1 offset.shape[0]=1 y.shape[2]=1", "x.strides[2]=-2^63 y.strides[2]=2^63-1"},
    {SUMS, "x.shape[2]=1 weight_scale.shape[0]=1 bias.shape[0]=1 y.shape[2]=1",
     "x.strides[2]=-2^63 bias.strides[0]=2^63-1 y.strides[2]=2^63-1"},
    {REQUANT_INT8, "x.shape[2]=1 words.shape[0]=1 bias.shape[0]=1 y.shape[2]=1",
     "x.strides[2]=-2^63 bias.strides[0]=2^63-1 y.strides[2]=2^63-1"},
};

static void table_of_same_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(same_calls); i++) {
        call c = base_call(same_calls[i].base);
        set(&c, "%s", same_calls[i].first);
        const outcome expected = plain_outcome(&c);
        set(&c, "%s", same_calls[i].then);
        gives(&c, &expected);
    }
}

/* Reverses every dimension of every tensor that may be reversed. */
static void negative_strides(void **state)
{
    (void)state;
    for (int base = 0; base < BASES; base++) {
        call c = base_call((enum base)base);
        const outcome expected = plain_outcome(&c);
        unsigned char *at = buffer;

        for (int slot = 0; slot < SLOTS; slot++) {
            npuq_tensor *t = &c.tensors[slot];
            int64_t strides[3] = {0};
            size_t offset = 0;
            if (!c.given[slot]) {
                continue;
            }
            for (int d = 0; d < t->ndim; d++) {
                strides[d] = -t->strides[d];
                offset += (size_t)((t->shape[d] - 1) * t->strides[d]);
            }
            move(&c, (enum slot)slot, at + offset * npuq_dtype_size(t->dtype), strides[0], strides[1], strides[2]);
            at += (byte_size(t) + 63) / 64 * 64;
        }
        gives(&c, &expected);
    }
}

static void axis_is_not_looked_at_with_one_scale(void **state)
{
    static const int32_t axes[] = {-3, -2, 2, 99, INT32_MIN, INT32_MAX};
    call c = base_call(DIVIDE);

    (void)state;
    set(&c, "scales=f32[1] zero_points=i32[1]");
    const outcome expected = plain_outcome(&c);
    for (size_t i = 0; i < COUNT(axes); i++) {
        c.axis = axes[i];
        gives(&c, &expected);
    }
}

static void any_axis_multiplying_is_the_last(void **state)
{
    static const int32_t axes[] = {0, 1, 2, 99, INT32_MAX};
    call c = base_call(MULTIPLY_INT4);
    const outcome rows = plain_outcome(&c); /* axis -1 */

    (void)state;
    for (size_t i = 0; i < COUNT(axes); i++) {
        c.axis = axes[i];
        gives(&c, &rows);
    }
    set(&c, "x=f16[16] y=u4x8[2]");
    c.axis = -1;
    const outcome row = plain_outcome(&c);
    for (size_t i = 0; i < COUNT(axes); i++) {
        c.axis = axes[i];
        gives(&c, &row);
    }
}

/* An output may end where another argument begins, or begin where another ends. */
static void neighbours(void **state)
{
    (void)state;
    begin();
    FOR_EACH_ARGUMENT(base, slot)
    {
        for (int other = 0; other < SLOTS; other++) {
            call c = base_call((enum base)base);
            npuq_tensor *out = &c.tensors[slot];
            const npuq_tensor *in = &c.tensors[other];
            const size_t size = npuq_dtype_size(out->dtype);
            if (!is_output(&c, (enum slot)slot) || !c.given[other] || other == slot) {
                continue;
            }
            place(out, first_byte(in) + byte_size(in) + size - 1);
            accepted(&c, "an output right behind another argument");
            place(out, first_byte(in) - byte_size(out));
            accepted(&c, "an output right before another argument");
        }
    }
    end();
}

static void same_view(const npuq_tensor *got, const npuq_tensor *expected)
{
    assert_ptr_equal(got->data, expected->data);
    assert_int_equal(got->dtype, expected->dtype);
    assert_int_equal(got->ndim, expected->ndim);
    /* The view leaves higher dimensions alone. */
    assert_memory_equal(got->shape, expected->shape, (size_t)got->ndim * sizeof *got->shape);
    assert_memory_equal(got->strides, expected->strides, (size_t)got->ndim * sizeof *got->strides);
}

/* The header's inline functions, and the exported functions. */
static void vectors_and_matrices(void **state)
{
    static const int16_t data[4] = {0};
    static const int64_t shape[] = {3, 5};
    npuq_tensor (*const volatile exported_vector)(const void *, npuq_dtype, int64_t) = npuq_vector;
    npuq_tensor (*const volatile exported_matrix)(const void *, npuq_dtype, int64_t, int64_t, int64_t) = npuq_matrix;
    const npuq_tensor from_library[] = {exported_vector(data, NPUQ_FLOAT16, 3),
                                        exported_matrix(data, NPUQ_BFLOAT16, 3, 5, 0),
                                        exported_matrix(data, NPUQ_BFLOAT16, 3, 5, -8)};
    const npuq_tensor vector = npuq_vector(data, NPUQ_FLOAT16, 3);
    const npuq_tensor matrix = npuq_matrix(data, NPUQ_BFLOAT16, 3, 5, 0);
    const npuq_tensor columns = npuq_matrix(data, NPUQ_BFLOAT16, 3, 5, 8);
    const npuq_tensor upwards = npuq_matrix(data, NPUQ_BFLOAT16, 3, 5, -8);
    npuq_tensor expected = npuq_tensor_contiguous(data, NPUQ_FLOAT16, 1, shape);

    (void)state;
    same_view(&vector, &expected);
    same_view(&from_library[0], &expected);
    expected = npuq_tensor_contiguous(data, NPUQ_BFLOAT16, 2, shape);
    same_view(&matrix, &expected);
    same_view(&from_library[1], &expected);
    expected.strides[0] = 8;
    same_view(&columns, &expected);
    expected.strides[0] = -8;
    same_view(&upwards, &expected);
    same_view(&from_library[2], &expected);
}

static void overlapping_inputs(void **state)
{
    (void)state;
    call c = base_call(DIVIDE);
    c.tensors[SCALES].data = c.tensors[X].data;
    c.tensors[ZERO_POINTS].data = c.tensors[X].data;
    assert_int_equal(run(&c), NPUQ_OK);

    c = base_call(PACK);
    c.tensors[OFFSET].data = c.tensors[SCALE].data;
    assert_int_equal(run(&c), NPUQ_OK);

    c = base_call(TOKENS);
    c.tensors[SMOOTH_SCALES].data = c.tensors[X].data;
    c.tensors[SMOOTH_SCALES].dtype = NPUQ_FLOAT16;
    assert_int_equal(run(&c), NPUQ_OK);

    c = base_call(SUMS);
    c.tensors[WEIGHT_SCALE].data = c.tensors[ACTIVATION_SCALE].data = c.tensors[BIAS].data = c.tensors[X].data;
    assert_int_equal(run(&c), NPUQ_OK);
}

/* ---- the message ------------------------------------------------------------------------------------------------ */

typedef struct thread_result {
    char first[256];
    char second[256];
} thread_result;

static void *other_thread(void *argument)
{
    thread_result *result = argument;

    snprintf(result->first, sizeof result->first, "%s", npuq_last_error());
    (void)npuq_trans_quant_param(NULL, NULL, NPUQ_ROUND_TRUNCATE, NULL);
    snprintf(result->second, sizeof result->second, "%s", npuq_last_error());
    return NULL;
}

static void last_error_is_per_thread(void **state)
{
    char message[256];
    thread_result result;
    call c = base_call(DIVIDE);

    (void)state;
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

static void long_lines_are_cut(void **state)
{
    char line[512];
    char name[300];

    (void)state;
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

static void status_names(void **state)
{
    (void)state;
    assert_string_equal(npuq_status_name(NPUQ_OK), "NPUQ_OK");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_NULL), "NPUQ_ERROR_NULL");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_DTYPE), "NPUQ_ERROR_DTYPE");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_SHAPE), "NPUQ_ERROR_SHAPE");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_LAYOUT), "NPUQ_ERROR_LAYOUT");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_AXIS), "NPUQ_ERROR_AXIS");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_GROUP_INDEX), "NPUQ_ERROR_GROUP_INDEX");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_ARGUMENT), "NPUQ_ERROR_ARGUMENT");
    assert_string_equal(npuq_status_name(NPUQ_ERROR_BACKEND), "NPUQ_ERROR_BACKEND");
    assert_string_equal(npuq_status_name((npuq_status)9), "unknown status");
    assert_string_equal(npuq_status_name((npuq_status)-1), "unknown status");
    assert_string_equal(npuq_status_name((npuq_status)INT32_MAX), "unknown status");
}

static void backends(void **state)
{
    static const char *const names[] = {"ref", "avx2", "avx512", "neon", "generic"};
    static const int unknown[] = {-1, 5, 99, INT32_MAX};
    const npuq_backend active = npuq_active_backend();

    (void)state;
    assert_true(npuq_backend_available(NPUQ_BACKEND_REF));
    assert_true(npuq_backend_available(active));
    for (int i = 0; i < (int)COUNT(names); i++) {
        const npuq_backend backend = (npuq_backend)i;
        assert_string_equal(npuq_backend_name(backend), names[i]);
        if (npuq_backend_available(backend)) {
            assert_int_equal(npuq_set_backend(backend), NPUQ_OK);
            assert_int_equal(npuq_active_backend(), backend);
        } else {
            const npuq_backend before = npuq_active_backend();
            assert_int_equal(npuq_set_backend(backend), NPUQ_ERROR_BACKEND);
            assert_int_equal(npuq_active_backend(), before);
            assert_non_null(strstr(npuq_last_error(), "set_backend: backend: "));
            assert_non_null(strstr(npuq_last_error(), names[i]));
            assert_non_null(strstr(npuq_last_error(), "; expected one of:"));
        }
    }
    assert_int_equal(npuq_set_backend(active), NPUQ_OK);
    for (size_t i = 0; i < COUNT(unknown); i++) {
        const npuq_backend backend = (npuq_backend)unknown[i];
        assert_string_equal(npuq_backend_name(backend), "unknown");
        assert_false(npuq_backend_available(backend));
        assert_int_equal(npuq_set_backend(backend), NPUQ_ERROR_BACKEND);
        assert_non_null(strstr(npuq_last_error(), "set_backend: backend: "));
        assert_non_null(strstr(npuq_last_error(), number(unknown[i])));
        for (int k = 0; k < (int)COUNT(names); k++) {
            const char *listed = strstr(npuq_last_error(), "; expected one of:");
            char name[16];
            snprintf(name, sizeof name, " %s", names[k]);
            assert_non_null(listed);
            assert_int_equal(strstr(listed, name) != NULL, npuq_backend_available((npuq_backend)k));
        }
        assert_int_equal(npuq_active_backend(), active);
    }
}

static void contiguous_views(void **state)
{
    static const int32_t wrong[] = {-1, 9, INT32_MIN, INT32_MAX};
    const int64_t shape[NPUQ_MAX_NDIM] = {2, 3, 4, 5, 1, 6, 7, 8};
    const int64_t huge[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    int64_t stride = 1;
    int byte;

    (void)state;
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

    /* The function stores an invalid rank and does not read the shape; every operator refuses the view. */
    begin();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        t = npuq_tensor_contiguous(&byte, NPUQ_FLOAT32, wrong[i], NULL);
        assert_int_equal(t.ndim, wrong[i]);
        for (int base = 0; base < BASES; base++) {
            call c = base_call((enum base)base);
            const enum slot slot = c.given[X] ? X : SCALE;
            c.tensors[slot] = npuq_tensor_contiguous(&byte, c.tensors[slot].dtype, wrong[i], NULL);
            refused(&c, NPUQ_ERROR_SHAPE, slot_names[slot], number(wrong[i]), NULL, "contiguous of no such rank");
        }
    }
    /* The function also stores extents whose product overflows. */
    t = npuq_tensor_contiguous(&byte, NPUQ_FLOAT32, 3, huge);
    assert_int_equal(t.shape[0], INT64_MAX);
    assert_int_equal(t.strides[2], 1);
    call c = base_call(DIVIDE);
    set(&c, "scales=f32[1] zero_points=i32[1]");
    c.tensors[X] = npuq_tensor_contiguous(c.tensors[X].data, NPUQ_FLOAT32, 3, huge);
    c.tensors[Y] = npuq_tensor_contiguous(c.tensors[Y].data, NPUQ_INT8, 3, huge);
    refused(&c, NPUQ_ERROR_LAYOUT, "x", "overflow", NULL, "contiguous and too large");
    end();
}

static void versions(void **state)
{
    char text[32];

    (void)state;
    assert_string_equal(npuq_version(), NPUQ_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", NPUQ_VERSION_MAJOR, NPUQ_VERSION_MINOR, NPUQ_VERSION_PATCH);
    assert_string_equal(text, NPUQ_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bases_are_valid),
        cmocka_unit_test(null_arguments),
        cmocka_unit_test(null_parallel_for),
        cmocka_unit_test(dtype_sizes_and_names),
        cmocka_unit_test(dtypes),
        cmocka_unit_test(ranks),
        cmocka_unit_test(extents),
        cmocka_unit_test(misaligned_data),
        cmocka_unit_test(strides_beyond_the_address_space),
        cmocka_unit_test(dense_calls_that_cannot_be),
        cmocka_unit_test(outputs_overlapping_themselves),
        cmocka_unit_test(almost_in_place),
        cmocka_unit_test(outputs_overlapping_arguments),
        cmocka_unit_test(table_of_rules),
        cmocka_unit_test(exact_overlaps),
        cmocka_unit_test(random_self_overlaps),
        cmocka_unit_test(random_pair_overlaps),
        cmocka_unit_test(layouts_too_irregular_to_tell),
        cmocka_unit_test(fused_rows),
        cmocka_unit_test(interleaved_columns),
        cmocka_unit_test(expanded_inputs),
        cmocka_unit_test(garbage_strides_of_extent_one),
        cmocka_unit_test(empty_tensors),
        cmocka_unit_test(words_that_cannot_be),
        cmocka_unit_test(scales_as_words),
        cmocka_unit_test(bits_of_words_not_looked_at),
        cmocka_unit_test(optional_arguments_left_out),
        cmocka_unit_test(eight_dimensions),
        cmocka_unit_test(table_of_same_calls),
        cmocka_unit_test(negative_strides),
        cmocka_unit_test(axis_is_not_looked_at_with_one_scale),
        cmocka_unit_test(any_axis_multiplying_is_the_last),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(vectors_and_matrices),
        cmocka_unit_test(overlapping_inputs),
        cmocka_unit_test(last_error_is_per_thread),
        cmocka_unit_test(long_lines_are_cut),
        cmocka_unit_test(status_names),
        cmocka_unit_test(backends),
        cmocka_unit_test(contiguous_views),
        cmocka_unit_test(versions),
    };

    test_seed();
    test_guarded arena_pages = test_guarded_make(ARENA, false, 0);
    test_guarded buffer_pages = test_guarded_make(BUFFER, false, 0);
    arena = (void *)arena_pages.memory;
    buffer = buffer_pages.memory;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_guarded_free(&arena_pages);
    test_guarded_free(&buffer_pages);
    return failed;
}
