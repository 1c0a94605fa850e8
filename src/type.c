/* SPDX-License-Identifier: BSD-3-Clause */
#include "type.h"

#define INFO(NAME, ...)                                                                                                \
    [NPUQ_TYPE_##NAME + 1] = {#NAME, 1u << NPUQ_TYPE_##NAME, NPUQ_WORD_OF(NAME, __VA_ARGS__) NPUQ_TYPE_##NAME},
const npuq_type_info npuq_type_infos[NPUQ_TYPES + 1] = {{"unknown", 0, {0, 0}, NPUQ_TYPE_FLOAT32}, EACH_TYPE(INFO)};

#define PLACE(NAME, ...) [NPUQ_##NAME] = NPUQ_TYPE_##NAME + 1,
const uint8_t npuq_type_places[NPUQ_DTYPE_NUMBERS] = {EACH_TYPE(PLACE)};

#define HAS_NUMBER(NAME, name, row, number, ...) &&NPUQ_##NAME == (number)
_Static_assert(true EACH_TYPE(HAS_NUMBER), "the numbers of the public header");

size_t npuq_dtype_size(npuq_dtype dtype)
{
    return npuq_find_type(dtype)->word.size;
}

const char *npuq_dtype_name(npuq_dtype dtype)
{
    return npuq_find_type(dtype)->name;
}
