/* SPDX-License-Identifier: BSD-3-Clause */
/* The one list of types, and what the library asks of one. Knows no kernel. */
#ifndef NPUQ_TYPE_H
#define NPUQ_TYPE_H

#include <npuquant/npuquant.h>

#include <assert.h>

/* DO(NAME, name, KIND, size, log2_elements) for NPUQ_<NAME>: name in kernels, FLOAT or INTEGER, bytes of a storage
 * word, logarithm of its elements. First the types whose rows kernels take, then the others. */
#define NPUQ_EACH_ROW_TYPE(DO)                                                                                         \
    DO(FLOAT32, f32, FLOAT, 4, 0)                                                                                      \
    DO(FLOAT16, f16, FLOAT, 2, 0)                                                                                      \
    DO(BFLOAT16, bf16, FLOAT, 2, 0)                                                                                    \
    DO(INT8, i8, INTEGER, 1, 0)                                                                                        \
    DO(UINT8, u8, INTEGER, 1, 0)                                                                                       \
    DO(INT32, i32, INTEGER, 4, 0)                                                                                      \
    DO(QUINT4X2, i4, INTEGER, 4, 3)
#define NPUQ_EACH_TYPE(DO)                                                                                             \
    NPUQ_EACH_ROW_TYPE(DO)                                                                                             \
    DO(INT64, i64, INTEGER, 8, 0)                                                                                      \
    DO(UINT64, u64, INTEGER, 8, 0)

/* The number of a type in sets and in the tables of kernels, where a hole is null. The order says nothing else. */
#define NPUQ_NUMBER(NAME, ...) NPUQ_TYPE_##NAME,
typedef enum npuq_type { NPUQ_EACH_TYPE(NPUQ_NUMBER) } npuq_type;
#undef NPUQ_NUMBER
#define NPUQ_ONE(...)  +1
#define NPUQ_ROW_TYPES (NPUQ_EACH_ROW_TYPE(NPUQ_ONE))
#define NPUQ_TYPES     (NPUQ_EACH_TYPE(NPUQ_ONE))

/* Sets of types, as an argument declares what it takes. */
#define NPUQ_OR_TYPE(NAME) | 1u << NPUQ_TYPE_##NAME
#define NPUQ_SET(TYPES)    (0u TYPES_##TYPES(NPUQ_OR_TYPE))

/* Comparisons and not a set: from them, a compiler concludes what a type can be. */
#define NPUQ_FLOAT                           true
#define NPUQ_INTEGER                         false
#define NPUQ_OR_FLOAT(NAME, name, KIND, ...) || (NPUQ_##KIND && type == NPUQ_TYPE_##NAME)
static inline bool npuq_is_float(npuq_type type)
{
    return false NPUQ_EACH_TYPE(NPUQ_OR_FLOAT);
}

static inline bool npuq_is_integer(npuq_type type)
{
    return !npuq_is_float(type);
}
#undef NPUQ_FLOAT
#undef NPUQ_INTEGER
#undef NPUQ_OR_FLOAT

/* What shape and strides count: an element, or several in a word. */
typedef struct npuq_storage_word {
    uint8_t size; /* bytes, a power of 2; 0 for an unknown dtype */
    uint8_t log2_elements;
} npuq_storage_word;

typedef struct npuq_type_info {
    const char *name; /* "FLOAT32" */
    uint32_t set;     /* of this type alone; 0 for an unknown dtype */
    npuq_storage_word word;
    npuq_type type;
} npuq_type_info;

enum { NPUQ_DTYPE_NUMBERS = NPUQ_QUINT4X2 + 1 };             /* the largest number, and one */
extern const npuq_type_info npuq_type_infos[NPUQ_TYPES + 1]; /* an unknown dtype, then each type */
extern const uint8_t npuq_type_places[NPUQ_DTYPE_NUMBERS];   /* there; 0 is an unknown dtype */

/* Finds an unknown dtype, too. Without a search: each call looks up each argument. */
static inline const npuq_type_info *npuq_find_type(npuq_dtype dtype)
{
    const unsigned number = (unsigned)dtype;

    return &npuq_type_infos[number < NPUQ_DTYPE_NUMBERS ? npuq_type_places[number] : 0];
}

/* A constant, of a constant. */
static inline npuq_storage_word npuq_word_of(npuq_type type)
{
#define NPUQ_WORD(NAME, name, KIND, size, log2_elements) {size, log2_elements},
    static const npuq_storage_word of_types[] = {NPUQ_EACH_TYPE(NPUQ_WORD)};
#undef NPUQ_WORD

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
