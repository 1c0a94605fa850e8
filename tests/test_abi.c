/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of the ABI: types of the exported functions, layouts of structures and values of enumerators. What a
 * program that is linked with the library relies on. The compiler refuses this file if the headers say something else;
 * there is nothing to run. debian/libnpuquant0.symbols has the names and versions of the functions, soname included.
 *
 * A difference that docs/stability.md permits is written here in the same commit; another one raises NPUQ_ABI_VERSION.
 */
#include <npuquant/npuquant.h>
#ifdef __has_include
#if __has_include(<dlpack/dlpack.h>)
#include <npuquant/dlpack.h>

static npuq_status npuq_tensor_from_dlpack(const DLTensor *, npuq_tensor *, char *, size_t);
#endif
#endif

_Static_assert(NPUQ_ABI_VERSION == 0, "the soname");
_Static_assert(NPUQ_MAX_NDIM == 8, "extents of npuq_tensor");

/* ---- structures ---- */

/* A second declaration of a type or function must be like the first. */
#define SIZE(type, bytes)                                                                                              \
    typedef struct type type;                                                                                          \
    _Static_assert(sizeof(type) == (bytes), "size of " #type)

#define MEMBER(structure, type, member, offset)                                                                        \
    _Static_assert(offsetof(structure, member) == (offset), "offset of " #structure "." #member);                      \
    _Static_assert(_Generic(&((structure *)0)->member, type * : 1, default : 0), "type of " #structure "." #member)

typedef int64_t extents[8];
typedef int32_t reserve[9];
typedef uint64_t words[128];
typedef void *pointer;
typedef void (*task)(void *, size_t, size_t);
typedef void (*parallel_for)(void *, size_t, task, void *);

#if UINTPTR_MAX > 0xFFFFFFFF /* otherwise alignment differs between systems */
SIZE(npuq_tensor, 144);
MEMBER(npuq_tensor, pointer, data, 0);
MEMBER(npuq_tensor, npuq_dtype, dtype, 8);
MEMBER(npuq_tensor, int32_t, ndim, 12);
MEMBER(npuq_tensor, extents, shape, 16);
MEMBER(npuq_tensor, extents, strides, 80);
#endif

SIZE(npuq_executor, 2 * sizeof(void *));
MEMBER(npuq_executor, parallel_for, parallel_for, 0);
MEMBER(npuq_executor, pointer, context, sizeof(void *));

SIZE(npuq_mx, 64);
MEMBER(npuq_mx, int32_t, block, 0);
MEMBER(npuq_mx, int32_t, rounding, 4);
MEMBER(npuq_mx, int32_t, scale_algorithm, 8);
MEMBER(npuq_mx, int32_t, small_groups, 12);
MEMBER(npuq_mx, float, dst_type_max, 16);
MEMBER(npuq_mx, float, max_low_bound, 20);
MEMBER(npuq_mx, int32_t, bad_groups, 24);
MEMBER(npuq_mx, reserve, reserved, 28);

SIZE(npuq_call, 1024);
MEMBER(npuq_call, words, opaque, 0);

/* ---- enumerations ---- */

/* A switch names each enumerator, and the compiler one that is missing. */
#pragma GCC diagnostic error "-Wswitch"

#define IS(enumerator, value)                                                                                          \
    case enumerator: {                                                                                                 \
        _Static_assert(enumerator == (value), "value of " #enumerator);                                                \
    } break

#define ENUMERATION(type)                                                                                              \
    typedef enum type type;                                                                                            \
    _Static_assert(sizeof(type) == 4, "size of " #type);                                                               \
    void each_##type(type value);                                                                                      \
    void each_##type(type value)

ENUMERATION(npuq_dtype)
{
    switch (value) {
        IS(NPUQ_FLOAT32, 0);
        IS(NPUQ_FLOAT16, 1);
        IS(NPUQ_INT8, 2);
        IS(NPUQ_INT32, 3);
        IS(NPUQ_UINT8, 4);
        IS(NPUQ_INT64, 9);
        IS(NPUQ_UINT64, 10);
        IS(NPUQ_BFLOAT16, 27);
        IS(NPUQ_HIFLOAT8, 34);
        IS(NPUQ_FLOAT8_E5M2, 35);
        IS(NPUQ_FLOAT8_E4M3FN, 36);
        IS(NPUQ_FLOAT8_E8M0, 37);
        IS(NPUQ_FLOAT4_E2M1, 40);
        IS(NPUQ_FLOAT4_E1M2, 41);
        IS(NPUQ_QUINT4X2, 256);
    }
}

ENUMERATION(npuq_status)
{
    switch (value) {
        IS(NPUQ_OK, 0);
        IS(NPUQ_ERROR_NULL, 1);
        IS(NPUQ_ERROR_DTYPE, 2);
        IS(NPUQ_ERROR_SHAPE, 3);
        IS(NPUQ_ERROR_LAYOUT, 4);
        IS(NPUQ_ERROR_AXIS, 5);
        IS(NPUQ_ERROR_GROUP_INDEX, 6);
        IS(NPUQ_ERROR_ARGUMENT, 7);
        IS(NPUQ_ERROR_BACKEND, 8);
    }
}

ENUMERATION(npuq_quant_mode)
{
    switch (value) {
        IS(NPUQ_PER_TOKEN, 0);
        IS(NPUQ_PER_TENSOR, 1);
    }
}

ENUMERATION(npuq_scale_form)
{
    switch (value) {
        IS(NPUQ_SCALE_PRODUCT, 0);
        IS(NPUQ_SCALE_INVERSE, 1);
    }
}

ENUMERATION(npuq_round_mode)
{
    switch (value) {
        IS(NPUQ_ROUND_TRUNCATE, 0);
        IS(NPUQ_ROUND_NEAREST, 1);
    }
}

ENUMERATION(npuq_mx_rounding)
{
    switch (value) {
        IS(NPUQ_MX_RINT, 0);
        IS(NPUQ_MX_ROUND, 1);
        IS(NPUQ_MX_FLOOR, 2);
    }
}

ENUMERATION(npuq_operand)
{
    switch (value) {
        IS(NPUQ_OPERAND_X, 0);
        IS(NPUQ_OPERAND_Y, 1);
        IS(NPUQ_OPERAND_SCALE, 2);
        IS(NPUQ_OPERAND_OFFSET, 3);
        IS(NPUQ_OPERAND_SMOOTH, 4);
        IS(NPUQ_OPERAND_BIAS, 5);
        IS(NPUQ_OPERAND_ROW_SCALE, 6);
    }
}

ENUMERATION(npuq_backend)
{
    switch (value) {
        IS(NPUQ_BACKEND_REF, 0);
        IS(NPUQ_BACKEND_AVX2, 1);
        IS(NPUQ_BACKEND_AVX512, 2);
        IS(NPUQ_BACKEND_NEON, 3);
        IS(NPUQ_BACKEND_GENERIC, 4);
    }
}

/* ---- functions: the test abi finds one that is missing here ---- */

typedef const npuq_tensor *tensor;
typedef const npuq_executor *executor;
typedef npuq_call *call;

size_t npuq_dtype_size(npuq_dtype);
const char *npuq_dtype_name(npuq_dtype);
npuq_tensor npuq_tensor_contiguous(const void *, npuq_dtype, int32_t, const int64_t *);
npuq_tensor npuq_vector(const void *, npuq_dtype, int64_t);
npuq_tensor npuq_matrix(const void *, npuq_dtype, int64_t, int64_t, int64_t);

const char *npuq_status_name(npuq_status);
const char *npuq_last_error(void);

/* That takes an executor, and can be prepared. */
#define BOTH(name, ...)                                                                                                \
    npuq_status npuq_##name(__VA_ARGS__, executor);                                                                    \
    npuq_status npuq_prepare_##name(call, __VA_ARGS__)

BOTH(quantize, tensor, tensor, tensor, int32_t, bool, tensor);
BOTH(group_quant, tensor, tensor, tensor, tensor, tensor);
BOTH(dynamic_quant, tensor, tensor, tensor, npuq_quant_mode, npuq_scale_form, tensor, tensor);
BOTH(dynamic_quant_float8, tensor, tensor, tensor, npuq_quant_mode, float, tensor, tensor);
BOTH(dynamic_quant_asymmetric, tensor, tensor, tensor, npuq_quant_mode, tensor, tensor, tensor);
BOTH(dynamic_quant_min_max, tensor, tensor, tensor, npuq_quant_mode, tensor, tensor);
BOTH(dynamic_quant_apply, tensor, tensor, tensor, npuq_quant_mode, tensor, tensor, tensor);
BOTH(dynamic_quant_symmetric_apply, tensor, tensor, tensor, npuq_quant_mode, tensor, tensor, tensor);
BOTH(dynamic_block_quant, tensor, int64_t, float, tensor, tensor);
BOTH(dynamic_block_quant_float8, tensor, int64_t, int64_t, float, float, tensor, tensor);
BOTH(dynamic_mx_quant, tensor, int32_t, const npuq_mx *, tensor, tensor);
BOTH(anti_mx_quant, tensor, tensor, int32_t, const npuq_mx *, tensor);
BOTH(dequant, tensor, tensor, tensor, tensor, tensor);
BOTH(requant, tensor, tensor, tensor, tensor);
BOTH(anti_quant, tensor, tensor, tensor, tensor);
npuq_status npuq_dynamic_quant_params(tensor, tensor, npuq_dtype, tensor, tensor);
npuq_status npuq_dynamic_quant_symmetric_params(tensor, tensor, npuq_dtype, npuq_scale_form, tensor);
npuq_status npuq_mx_scale_shape(tensor, int32_t, const npuq_mx *, int64_t[NPUQ_MAX_NDIM]);
npuq_status npuq_trans_quant_param(tensor, tensor, npuq_round_mode, tensor);

size_t npuq_call_units(const npuq_call *);
void npuq_call_run(const npuq_call *, size_t, size_t);
npuq_status npuq_call_rebind(call, npuq_operand, const void *);

npuq_backend npuq_active_backend(void);
const char *npuq_backend_name(npuq_backend);
bool npuq_backend_available(npuq_backend);
npuq_status npuq_set_backend(npuq_backend);
const char *npuq_version(void);
