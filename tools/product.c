/* SPDX-License-Identifier: BSD-3-Clause */
#include "product.h"

#include "tensor_file.h"

struct product {
    const npuq_tensor *x1;
    const npuq_tensor *x2;
    const npuq_tensor *bias;
    const npuq_tensor *sums;
};

/* The offset of a row or a matrix in elements; index counts the first dimensions as one. */
static int64_t offset_of(const npuq_tensor *tensor, int dimensions, size_t index)
{
    int64_t offset = 0;

    for (int d = dimensions - 1; d >= 0; d--) {
        const size_t extent = (size_t)tensor->shape[d];
        offset += (int64_t)(index % extent) * tensor->strides[d];
        index /= extent;
    }
    return offset;
}

/* The innermost loop adds to one sum for each column, so that compilers use vectors. Sums are unsigned, so that they
 * wrap. */
static void multiply_rows(void *argument, size_t begin, size_t end)
{
    const struct product *product = argument;
    const int last = product->sums->ndim - 1;
    const size_t rows = (size_t)product->sums->shape[last - 1];
    const size_t columns = (size_t)product->sums->shape[last];
    const int64_t depth = product->x1->shape[last];
    const int64_t x1_stride = product->x1->strides[last];
    const int64_t x2_stride = product->x2->strides[last - 1];
    const uint32_t *bias = product->bias ? product->bias->data : NULL;

    for (size_t row = begin; row < end; row++) {
        const int8_t *x1 = (const int8_t *)product->x1->data + offset_of(product->x1, last, row);
        const int8_t *x2 = (const int8_t *)product->x2->data + offset_of(product->x2, last - 1, row / rows);
        uint32_t *restrict sums = (uint32_t *)product->sums->data + row * columns;
        for (size_t n = 0; n < columns; n++) {
            sums[n] = bias ? bias[n] : 0;
        }
        for (int64_t k = 0; k < depth; k++) {
            const int8_t *restrict weights = x2 + k * x2_stride;
            const int8_t factor = x1[k * x1_stride];
            for (size_t n = 0; n < columns; n++) {
                sums[n] += (uint32_t)(factor * weights[n]);
            }
        }
    }
}

/* All dimensions except the last as one; 0 for an empty tensor. */
static size_t count_rows(const npuq_tensor *tensor)
{
    const size_t count = tensor_element_count(tensor);

    return count > 0 ? count / (size_t)tensor->shape[tensor->ndim - 1] : 0;
}

void multiply(const npuq_tensor *x1, const npuq_tensor *x2, const npuq_tensor *bias, const npuq_tensor *sums,
              const npuq_executor *executor)
{
    struct product product = {x1, x2, bias, sums};

    executor->parallel_for(executor->context, count_rows(sums), multiply_rows, &product);
}

void copy_rows(const npuq_tensor *from, const npuq_tensor *to)
{
    const int last = from->ndim - 1;
    const size_t rows = count_rows(from);
    int8_t *copy = to->data;

    for (size_t row = 0; row < rows; row++) {
        const int8_t *element = (const int8_t *)from->data + offset_of(from, last, row);
        for (int64_t n = 0; n < from->shape[last]; n++) {
            *copy++ = element[n * from->strides[last]];
        }
    }
}
