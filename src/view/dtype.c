/* SPDX-License-Identifier: BSD-3-Clause */
#include "dtype.h"

#define POSITION(NAME, ...) [NPUQ_##NAME] = NPUQ_POSITION_##NAME,
const uint8_t npuq_dtype_positions[NPUQ_DTYPE_NUMBERS] = {NPUQ_EACH_DTYPE(POSITION)};

#define INFO(NAME, size, log2_pack, x, y, parameter)                                                                   \
    [NPUQ_POSITION_##NAME] = {#NAME, NPUQ_TAKES_##NAME, {size, log2_pack}, x, y, parameter},
const npuq_dtype_info npuq_dtype_infos[NPUQ_POSITIONS] = {
    [NPUQ_POSITION_UNKNOWN] = {"unknown", 0, {0, 0}, NPUQ_NO_INDEX, NPUQ_NO_INDEX, NPUQ_NO_INDEX},
    NPUQ_EACH_DTYPE(INFO)};

size_t npuq_dtype_size(npuq_dtype dtype)
{
    return npuq_find_dtype(dtype)->step.size;
}

const char *npuq_dtype_name(npuq_dtype dtype)
{
    return npuq_find_dtype(dtype)->name;
}
