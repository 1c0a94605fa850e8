/* SPDX-License-Identifier: BSD-3-Clause */
#include "type.h"

#define INFO(NAME, name, KIND, size, log2_elements)                                                                    \
    [NPUQ_TYPE_##NAME + 1] = {#NAME, 1u << NPUQ_TYPE_##NAME, {size, log2_elements}, NPUQ_TYPE_##NAME},
const npuq_type_info npuq_type_infos[NPUQ_TYPES + 1] = {{"unknown", 0, {0, 0}, NPUQ_TYPE_FLOAT32},
                                                        NPUQ_EACH_TYPE(INFO)};

#define PLACE(NAME, ...) [NPUQ_##NAME] = NPUQ_TYPE_##NAME + 1,
const uint8_t npuq_type_places[NPUQ_DTYPE_NUMBERS] = {NPUQ_EACH_TYPE(PLACE)};

size_t npuq_dtype_size(npuq_dtype dtype)
{
    return npuq_find_type(dtype)->word.size;
}

const char *npuq_dtype_name(npuq_dtype dtype)
{
    return npuq_find_type(dtype)->name;
}
