/* SPDX-License-Identifier: BSD-3-Clause */
/* DLPack tensors as views: every dtype, layout and error. Tensors that frameworks export are in test_dlpack.py. */
#include "support.h"

#include <npuquant/dlpack.h>

#include <string.h>

/* Compact, on the CPU. */
static DLTensor dl_tensor(void *data, uint8_t code, uint8_t bits, int ndim, int64_t *shape)
{
    DLTensor tensor;

    memset(&tensor, 0, sizeof tensor);
    tensor.data = data;
    tensor.device.device_type = kDLCPU;
    tensor.dtype.code = code;
    tensor.dtype.bits = bits;
    tensor.dtype.lanes = 1;
    tensor.ndim = ndim;
    tensor.shape = shape;
    return tensor;
}

static const struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    npuq_dtype dtype;
} dtypes[] = {
    {kDLFloat, 32, 1, NPUQ_FLOAT32}, {kDLFloat, 16, 1, NPUQ_FLOAT16}, {kDLBfloat, 16, 1, NPUQ_BFLOAT16},
    {kDLInt, 8, 1, NPUQ_INT8},       {kDLInt, 32, 1, NPUQ_INT32},     {kDLInt, 64, 1, NPUQ_INT64},
    {kDLUInt, 8, 1, NPUQ_UINT8},     {kDLUInt, 64, 1, NPUQ_UINT64},   {10, 8, 1, NPUQ_FLOAT8_E4M3FN},
    {12, 8, 1, NPUQ_FLOAT8_E5M2},    {14, 8, 1, NPUQ_FLOAT8_E8M0},    {17, 4, 2, NPUQ_FLOAT4_E2M1},
};

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static void test_dtypes(void **unused)
{
    int64_t data[6];
    int64_t shape[] = {2, 3};
    int accepted = 0;

    (void)unused;
    for (size_t i = 0; i < DTYPES; i++) {
        DLTensor source = dl_tensor(data, dtypes[i].code, dtypes[i].bits, 2, shape);
        const npuq_tensor expected = npuq_tensor_contiguous(data, dtypes[i].dtype, 2, shape);
        npuq_tensor view;

        source.dtype.lanes = dtypes[i].lanes;
        memset(&view, 0x55, sizeof view);
        assert_int_equal(npuq_tensor_from_dlpack(&source, &view, NULL, 0), NPUQ_OK);
        assert_ptr_equal(view.data, expected.data);
        assert_int_equal(view.dtype, expected.dtype);
        assert_int_equal(view.ndim, 2);
        assert_memory_equal(view.shape, expected.shape, 2 * sizeof(int64_t));
        assert_memory_equal(view.strides, expected.strides, 2 * sizeof(int64_t));
    }
    for (unsigned code = 0; code < 256; code++) { /* and no others */
        for (unsigned bits = 0; bits < 256; bits++) {
            DLTensor source = dl_tensor(data, (uint8_t)code, (uint8_t)bits, 2, shape);
            npuq_tensor view;

            for (uint16_t lanes = 1; lanes <= 2; lanes++) {
                source.dtype.lanes = lanes;
                accepted += npuq_tensor_from_dlpack(&source, &view, NULL, 0) == NPUQ_OK;
            }
            source.dtype.lanes = (uint16_t)(test_below(2) == 0 ? 0 : 3 + test_below(65533));
            assert_int_equal(npuq_tensor_from_dlpack(&source, &view, NULL, 0), NPUQ_ERROR_DTYPE);
        }
    }
    assert_int_equal(accepted, DTYPES);
}

static void test_layouts(void **unused)
{
    int16_t data[64] = {0};
    int64_t shape[] = {2, 1, 3, 1, 1, 1, 1, 2};
    int64_t strides[] = {-12, 77, 0, 5, 5, 5, 5, 4};
    int64_t empty_shape[] = {3, 0};
    DLTensor source = dl_tensor(data, kDLBfloat, 16, 8, shape);
    npuq_tensor view;

    (void)unused;
    source.strides = strides;
    source.byte_offset = 24;
    assert_int_equal(npuq_tensor_from_dlpack(&source, &view, NULL, 0), NPUQ_OK);
    assert_ptr_equal(view.data, data + 12);
    assert_int_equal(view.ndim, 8);
    assert_memory_equal(view.shape, shape, sizeof shape);
    assert_memory_equal(view.strides, strides, sizeof strides);

    source = dl_tensor(data, kDLFloat, 32, 0, NULL); /* a scalar */
    assert_int_equal(npuq_tensor_from_dlpack(&source, &view, NULL, 0), NPUQ_OK);
    assert_int_equal(view.ndim, 0);
    assert_ptr_equal(view.data, data);

    source = dl_tensor(NULL, kDLFloat, 32, 2, empty_shape);
    source.byte_offset = 64;
    assert_int_equal(npuq_tensor_from_dlpack(&source, &view, NULL, 0), NPUQ_OK);
    assert_null(view.data);
    assert_int_equal(view.shape[1], 0);
}

static void test_devices(void **unused)
{
    float data[2];
    int64_t shape[] = {2};
    DLTensor source = dl_tensor(data, kDLFloat, 32, 1, shape);
    npuq_tensor view;

    (void)unused;
    for (int type = 0; type < 32; type++) {
        const bool host = type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost;

        source.device.device_type = (DLDeviceType)type;
        source.device.device_id = type;
        assert_int_equal(npuq_tensor_from_dlpack(&source, &view, NULL, 0), host ? NPUQ_OK : NPUQ_ERROR_ARGUMENT);
    }
}

/* ---- errors ---- */

/* The message, whole, cut at every length, and not at all; the view stays as it was. */
static void check_failure(const DLTensor *source, npuq_status status, const char *expected)
{
    npuq_tensor view;
    npuq_tensor before;
    char message[256];

    memset(&view, 0x55, sizeof view);
    before = view;
    memset(message, '#', sizeof message);
    assert_int_equal(npuq_tensor_from_dlpack(source, &view, message, 240), status);
    assert_string_equal(message, expected);
    assert_int_equal(message[240], '#');
    for (size_t size = 0; size <= strlen(expected); size++) {
        memset(message, '#', sizeof message);
        assert_int_equal(npuq_tensor_from_dlpack(source, &view, message, size), status);
        assert_int_equal(message[size], '#');
        assert_true(size == 0 || (strlen(message) == size - 1 && strncmp(message, expected, size - 1) == 0));
    }
    assert_int_equal(npuq_tensor_from_dlpack(source, &view, NULL, 240), status);
    assert_memory_equal(&view, &before, sizeof view);
}

static void test_errors(void **unused)
{
    float data[6];
    int64_t shape[9] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
    const DLTensor good = dl_tensor(data, kDLFloat, 32, 2, shape);
    DLTensor bad;
    char message[240] = "as it was";
    npuq_tensor view;

    (void)unused;
    assert_int_equal(npuq_tensor_from_dlpack(&good, &view, message, sizeof message), NPUQ_OK);
    assert_string_equal(message, "as it was");

    check_failure(NULL, NPUQ_ERROR_NULL, "dlpack: source is null");
    assert_int_equal(npuq_tensor_from_dlpack(&good, NULL, message, sizeof message), NPUQ_ERROR_NULL);
    assert_string_equal(message, "dlpack: view is null");

    bad = good;
    bad.device.device_type = kDLCUDA;
    check_failure(&bad, NPUQ_ERROR_ARGUMENT,
                  "dlpack: device type is 2; expected the host's memory: 1 (CPU), 3 (CUDA host) or 11 (ROCm host)");

    bad = good;
    bad.dtype.bits = 64;
    check_failure(
        &bad, NPUQ_ERROR_DTYPE,
        "dlpack: dtype has code 2 (float), bits 64, lanes 1; expected float32, float16, bfloat16, int8, int32, "
        "int64, uint8, uint64, float8_e4m3fn, float8_e5m2 or float8_e8m0fnu with lanes 1, or float4_e2m1fn with lanes "
        "2");
    bad.dtype.code = 6;
    bad.dtype.bits = 8;
    check_failure(&bad, NPUQ_ERROR_DTYPE,
                  "dlpack: dtype has code 6 (bool), bits 8, lanes 1; expected float32, float16, bfloat16, int8, int32, "
                  "int64, uint8, uint64, float8_e4m3fn, float8_e5m2 or float8_e8m0fnu with lanes 1, or float4_e2m1fn "
                  "with lanes 2");
    bad.dtype.code = 255;
    bad.dtype.bits = 255;
    bad.dtype.lanes = 65535;
    check_failure(&bad, NPUQ_ERROR_DTYPE,
                  "dlpack: dtype has code 255 (unknown), bits 255, lanes 65535; expected float32, float16, bfloat16, "
                  "int8, int32, int64, uint8, uint64, float8_e4m3fn, float8_e5m2 or float8_e8m0fnu with lanes 1, or "
                  "float4_e2m1fn with lanes 2");

    bad = good;
    bad.ndim = 9;
    check_failure(&bad, NPUQ_ERROR_SHAPE, "dlpack: has 9 dimensions; expected 0 to 8");
    bad.ndim = -1;
    check_failure(&bad, NPUQ_ERROR_SHAPE, "dlpack: has -1 dimensions; expected 0 to 8");

    bad = good;
    bad.shape = NULL;
    check_failure(&bad, NPUQ_ERROR_NULL, "dlpack: shape is null, and ndim is 2; expected its extents");

    bad = good;
    shape[1] = -3;
    check_failure(&bad, NPUQ_ERROR_SHAPE, "dlpack: dimension 1 is -3; expected 0 or more");
    shape[1] = 3;

    bad = good;
    bad.data = NULL;
    check_failure(&bad, NPUQ_ERROR_NULL, "dlpack: data is null; expected the tensor's elements");

    bad = good;
    bad.byte_offset = UINT64_MAX;
    check_failure(&bad, NPUQ_ERROR_LAYOUT,
                  "dlpack: byte_offset is 18446744073709551615; expected an address when added to data");
}

/* ---- with an operator ---- */

/* An int32 tensor stands for words of int4. The operator, not the view, checks them. */
static void test_operator(void **unused)
{
    float x[17] = {99, 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    float scale = 1;
    int32_t y[2] = {0, 0};
    int64_t x_shape[] = {2, 8};
    int64_t x_strides[] = {8, 1};
    int64_t y_shape[] = {2, 1};
    int64_t one = 1;
    DLTensor dx = dl_tensor(x, kDLFloat, 32, 2, x_shape);
    const DLTensor ds = dl_tensor(&scale, kDLFloat, 32, 1, &one);
    const DLTensor dy = dl_tensor(y, kDLInt, 32, 2, y_shape);
    npuq_tensor tx;
    npuq_tensor ts;
    npuq_tensor ty;

    (void)unused;
    dx.strides = x_strides;
    dx.byte_offset = sizeof(float);
    assert_int_equal(npuq_tensor_from_dlpack(&dx, &tx, NULL, 0), NPUQ_OK);
    assert_int_equal(npuq_tensor_from_dlpack(&ds, &ts, NULL, 0), NPUQ_OK);
    assert_int_equal(npuq_tensor_from_dlpack(&dy, &ty, NULL, 0), NPUQ_OK);
    ty.dtype = NPUQ_QUINT4X2;
    assert_int_equal(npuq_quantize(&tx, &ts, NULL, -1, false, &ty, NULL), NPUQ_OK);
    assert_int_equal((uint32_t)y[0], 0x76543210);
    assert_int_equal((uint32_t)y[1], 0xFEDCBA98);

    dx.byte_offset = 2;
    assert_int_equal(npuq_tensor_from_dlpack(&dx, &tx, NULL, 0), NPUQ_OK);
    assert_int_equal(npuq_quantize(&tx, &ts, NULL, -1, false, &ty, NULL), NPUQ_ERROR_LAYOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes), cmocka_unit_test(test_layouts),  cmocka_unit_test(test_devices),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_operator),
    };
    test_seed();
    return cmocka_run_group_tests_name("dlpack", tests, NULL, NULL);
}
