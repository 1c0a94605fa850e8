/* SPDX-License-Identifier: BSD-3-Clause */
/* The one list of types, and what the library asks of one. Knows no kernel. */
#ifndef NPUQ_TYPE_H
#define NPUQ_TYPE_H

#include <npuquant/npuquant.h>

#include <assert.h>

#include "types.def"

/* The number of a type in sets and in the tables of kernels, where a hole is null. The order says nothing else. */
#define NPUQ_NUMBER(NAME, ...) NPUQ_TYPE_##NAME,
typedef enum npuq_type { EACH_TYPE(NPUQ_NUMBER) } npuq_type;
#undef NPUQ_NUMBER
#define NPUQ_ONE(...)  +1
#define NPUQ_ROW_TYPES (EACH_ROW_TYPE(NPUQ_ONE))
#define NPUQ_TYPES     (EACH_TYPE(NPUQ_ONE))

/* Sets of types, as an argument declares what it takes. */
#define NPUQ_OR_TYPE(NAME) | 1u << NPUQ_TYPE_##NAME
#define NPUQ_SET(TYPES)    (0u TYPES_##TYPES(NPUQ_OR_TYPE))

/* Comparisons and not a set: from them, a compiler concludes what a type can be. */
#define NPUQ_KIND(KIND) NPUQ_KIND_##KIND,
enum { EACH_KIND(NPUQ_KIND) };
#undef NPUQ_KIND
#define NPUQ_OR_IN_KINDS(NAME, name, row, number, KIND, ...)                                                           \
    || ((kinds & 1 << NPUQ_KIND_##KIND) && type == NPUQ_TYPE_##NAME)
static inline bool npuq_is_float(npuq_type type)
{
    enum { kinds = 1 << NPUQ_KIND_FLOAT };

    return false EACH_TYPE(NPUQ_OR_IN_KINDS);
}

static inline bool npuq_is_integer(npuq_type type)
{
    enum { kinds = 1 << NPUQ_KIND_SIGNED | 1 << NPUQ_KIND_UNSIGNED };

    return false EACH_TYPE(NPUQ_OR_IN_KINDS);
}

/* To which results are rounded. */
static inline bool npuq_is_small_float(npuq_type type)
{
    enum { kinds = 1 << NPUQ_KIND_SMALL_FLOAT | 1 << NPUQ_KIND_TAPERED_FLOAT };

    return false EACH_TYPE(NPUQ_OR_IN_KINDS);
}
#undef NPUQ_OR_IN_KINDS

/* What shape and strides count: an element, or several in a word. */
typedef struct npuq_storage_word {
    uint8_t size; /* bytes, a power of 2; 0 for an unknown dtype */
    uint8_t log2_elements;
} npuq_storage_word;
#define NPUQ_WORD_OF(NAME, name, row, number, KIND, bits, log2_elements, ...)                                          \
    {((bits) << (log2_elements)) / 8, log2_elements},

typedef struct npuq_type_info {
    const char *name; /* "FLOAT32" */
    uint32_t set;     /* of this type alone; 0 for an unknown dtype */
    npuq_storage_word word;
    uint8_t type; /* npuq_type; a byte, so that 16 bytes hold all */
} npuq_type_info;

#define NPUQ_MEMBER(NAME, name, row, number, ...) char NAME[(number) + 1];
enum { NPUQ_DTYPE_NUMBERS = sizeof(union {EACH_TYPE(NPUQ_MEMBER)}) }; /* the largest number, and one */
#undef NPUQ_MEMBER
extern const npuq_type_info npuq_type_infos[NPUQ_TYPES + 1]; /* an unknown dtype, then each type */
extern const uint8_t npuq_type_places[NPUQ_DTYPE_NUMBERS];   /* there; 0 is an unknown dtype */

/* Finds an unknown dtype, too. Without a search: each call looks up each argument. */
static inline const npuq_type_info *npuq_find_type(npuq_dtype dtype)
{
    const unsigned number = (unsigned)dtype;

    return &npuq_type_infos[__builtin_expect(number < NPUQ_DTYPE_NUMBERS, true) ? npuq_type_places[number] : 0];
}

/* Constants, of a constant. */
static inline npuq_storage_word npuq_word_of(npuq_type type)
{
    static const npuq_storage_word of_types[] = {EACH_TYPE(NPUQ_WORD_OF)};

    return of_types[type];
}

static inline unsigned npuq_bits_of(npuq_type type)
{
#define NPUQ_BITS(NAME, name, row, number, KIND, bits, ...) bits,
    static const uint8_t of_types[] = {EACH_TYPE(NPUQ_BITS)};
#undef NPUQ_BITS

    return of_types[type];
}

static inline bool npuq_is_4_bit_float(npuq_type type)
{
    return npuq_is_small_float(type) && npuq_bits_of(type) == 4;
}

/* The range of an integer or a small float, and DMAX. */
typedef struct npuq_limits {
    float most;
    float steps; /* from the least to the most */
    float dmax;
    float one_in_dmax;
} npuq_limits;

static inline npuq_limits npuq_limits_of(npuq_type type)
{
#define NPUQ_LIMITS(NAME, name, row, number, KIND, bits, log2_elements, stored, mantissa, bias, zeros, least, most,    \
                    DMAX)                                                                                              \
    {(float)(most), (float)(most) - (float)(least), (DMAX), (DMAX) ? 1.0f / (DMAX) : 0.0f},
    static const npuq_limits of_types[] = {EACH_TYPE(NPUQ_LIMITS)};
#undef NPUQ_LIMITS

    return of_types[type];
}

/* Where the bits of a floating-point type are, and what they mean. */
typedef struct npuq_float_form {
    uint8_t mantissa; /* bits */
    uint8_t bias;
    bool has_minus_zero;
} npuq_float_form;

static inline npuq_float_form npuq_float_form_of(npuq_type type)
{
#define NPUQ_FORM(NAME, name, row, number, KIND, bits, log2_elements, stored, mantissa, bias, zeros, ...)              \
    {mantissa, bias, (zeros) == 2},
    static const npuq_float_form of_types[] = {EACH_TYPE(NPUQ_FORM)};
#undef NPUQ_FORM

    return of_types[type];
}

static inline size_t npuq_count_elements_in(npuq_storage_word word)
{
    return (size_t)1 << word.log2_elements;
}

/* How many words columns are, a multiple of the elements in one. */
static inline size_t npuq_count_words(npuq_storage_word word, size_t columns)
{
    return columns >> word.log2_elements;
}

static inline size_t npuq_count_bytes(npuq_storage_word word, size_t columns)
{
    return npuq_count_words(word, columns) * word.size;
}

#endif
