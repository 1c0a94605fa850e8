/* SPDX-License-Identifier: BSD-3-Clause */
#include "view.h"

#include <stdio.h>

npuq_tensor npuq_tensor_contiguous(const void *data, npuq_dtype dtype, int32_t ndim, const int64_t *shape)
{
    npuq_tensor tensor = {.data = (void *)(uintptr_t)data, .dtype = dtype, .ndim = ndim};
    int64_t stride = 1;

    if (ndim < 0 || ndim > NPUQ_MAX_NDIM) {
        return tensor;
    }
    for (int d = ndim - 1; d >= 0; d--) {
        tensor.shape[d] = shape[d];
        tensor.strides[d] = stride;
        /* Extents that overflow are refused by the operators; here they only must not be undefined. */
        stride = (int64_t)((uint64_t)stride * (uint64_t)shape[d]);
    }
    return tensor;
}

npuq_tensor npuq_vector(const void *data, npuq_dtype dtype, int64_t n)
{
    return npuq_tensor_contiguous(data, dtype, 1, &n);
}

npuq_tensor npuq_matrix(const void *data, npuq_dtype dtype, int64_t rows, int64_t cols, int64_t row_stride)
{
    const int64_t shape[] = {rows, cols};
    npuq_tensor tensor = npuq_tensor_contiguous(data, dtype, 2, shape);

    if (row_stride != 0) {
        tensor.strides[0] = row_stride;
    }
    return tensor;
}

int64_t npuq_count_elements(const npuq_tensor *tensor)
{
    uint64_t count = 1; /* beside an extent of 0, others may be any */

    for (int d = 0; d < tensor->ndim; d++) {
        count *= (uint64_t)tensor->shape[d];
    }
    return (int64_t)count;
}

static bool is_empty(const npuq_tensor *tensor)
{
    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] == 0) {
            return true;
        }
    }
    return false;
}

/* ---- one argument by itself ------------------------------------------------------------------------------------ */

/* The mode, if it decides the dtypes or the rank. */
static const char *reason_of_dtypes(const npuq_signature *s, int i)
{
    return s->other && s->other->arguments[i].dtypes != s->arguments[i].dtypes ? s->mode : "";
}

static const char *reason_of_rank(const npuq_signature *s, int i)
{
    return s->other && s->other->arguments[i].max_ndim != s->arguments[i].max_ndim ? s->mode : "";
}

npuq_status npuq_fail_dtype(const char *op, const npuq_argument *a, npuq_dtype dtype, const char *reason)
{
    char expected[96] = "";
    size_t used = 0;
    unsigned left = a->dtypes;

    for (size_t i = 0; i <= NPUQ_TYPES; i++) {
        const npuq_type_info *info = &npuq_type_infos[i];

        if (a->dtypes & info->set) {
            left &= ~info->set;
            const int n = snprintf(expected + used, sizeof expected - used, "%s%s",
                                   used == 0 ? "" : (left == 0 ? " or " : ", "), info->name);
            used += (size_t)n;
        }
    }
    if (npuq_find_type(dtype)->set == 0) {
        return npuq_fail(NPUQ_ERROR_DTYPE, op, a->name, "dtype is %d, which npuquant does not implement; expected %s%s",
                         (int)dtype, expected, reason);
    }
    return npuq_fail(NPUQ_ERROR_DTYPE, op, a->name, "dtype is %s; expected %s%s", npuq_dtype_name(dtype), expected,
                     reason);
}

static npuq_status fail_rank(const npuq_signature *signature, int i, int32_t ndim)
{
    const char *op = signature->op;
    const npuq_argument *a = &signature->arguments[i];
    const char *reason = reason_of_rank(signature, i);

    if (a->min_ndim == a->max_ndim) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, a->name, "has %d dimension%s; expected %d%s", (int)ndim,
                         npuq_plural(ndim), a->min_ndim, reason);
    }
    return npuq_fail(NPUQ_ERROR_SHAPE, op, a->name, "has %d dimension%s; expected %d to %d%s", (int)ndim,
                     npuq_plural(ndim), a->min_ndim, a->max_ndim, reason);
}

npuq_status npuq_check_arguments(npuq_arguments *arguments, const npuq_signature *signature,
                                 const npuq_tensor *const *tensors)
{
    assert(signature->count <= NPUQ_MOST_ARGUMENTS);
    arguments->signature = signature;
    arguments->tensors = tensors;
    arguments->present = 0;
    arguments->dense = 0;
    arguments->is_y_like_x = false;
    for (size_t i = 0; i < signature->count; i++) {
        const npuq_argument *a = &signature->arguments[i];
        const npuq_tensor *tensor = tensors[i];

        if (!tensor) {
            if (npuq_may_be_absent(a)) {
                arguments->infos[i] = npuq_type_infos;
                continue;
            }
            return npuq_fail(NPUQ_ERROR_NULL, signature->op, a->name, "is null; expected a tensor");
        }
        const npuq_type_info *info = npuq_find_type(tensor->dtype);

        if ((info->set & a->dtypes) == 0) {
            return npuq_fail_dtype(signature->op, a, tensor->dtype, reason_of_dtypes(signature, (int)i));
        }
        if (tensor->ndim < a->min_ndim || tensor->ndim > a->max_ndim) {
            return fail_rank(signature, (int)i, tensor->ndim);
        }
        arguments->present |= 1u << i;
        arguments->infos[i] = info;
        const int64_t count = npuq_count_dense(tensor);

        if (npuq_find_dense_span(tensor, count, info->word.size, &arguments->spans[i])) {
            arguments->dense |= 1u << i;
            if (i <= NPUQ_AT_Y) {
                arguments->counts[i] = count;
            }
            continue;
        }
        for (int d = 0; d < tensor->ndim; d++) {
            if (tensor->shape[d] < 0) {
                return npuq_fail(NPUQ_ERROR_SHAPE, signature->op, a->name, "dimension %d is %lld; expected 0 or more",
                                 d, (long long)tensor->shape[d]);
            }
        }
    }
    return NPUQ_OK;
}

npuq_status npuq_fail_shape(const npuq_arguments *arguments, int i, int ndim, const int64_t *shape, const char *rule)
{
    const char *op = arguments->signature->op;
    const char *name = arguments->signature->arguments[i].name;
    const npuq_tensor *tensor = arguments->tensors[i];
    int d = 0;

    if (tensor->ndim != ndim) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, name, "has %d dimension%s; expected %d (%s)", (int)tensor->ndim,
                         npuq_plural(tensor->ndim), ndim, rule);
    }
    while (tensor->shape[d] == shape[d]) {
        d++;
    }
    return npuq_fail(NPUQ_ERROR_SHAPE, op, name, "dimension %d is %lld; expected %lld (%s)", d,
                     (long long)tensor->shape[d], (long long)shape[d], rule);
}

npuq_status npuq_fail_same_dtype(const npuq_arguments *arguments, int i, int like)
{
    const npuq_argument *names = arguments->signature->arguments;

    return npuq_fail(NPUQ_ERROR_DTYPE, arguments->signature->op, names[i].name,
                     "dtype is %s; expected %s, the dtype of %s%s", npuq_dtype_name(arguments->tensors[i]->dtype),
                     npuq_dtype_name(arguments->tensors[like]->dtype), names[like].name,
                     reason_of_dtypes(arguments->signature, i));
}

npuq_status npuq_check_packed_shape(const npuq_arguments *arguments, int x, int y)
{
    const npuq_tensor *from = arguments->tensors[x];
    const npuq_type_info *to = arguments->infos[y];
    const int64_t elements = (int64_t)npuq_count_elements_in(to->word);
    int64_t shape[NPUQ_MAX_NDIM];
    char rule[96];
    const int last = from->ndim - 1;

    memcpy(shape, from->shape, sizeof shape);
    if (shape[last] % elements != 0) {
        return npuq_fail(NPUQ_ERROR_SHAPE, arguments->signature->op, "x",
                         "last dimension is %lld; expected a multiple of %lld, as y is %s", (long long)shape[last],
                         (long long)elements, to->name);
    }
    shape[last] /= elements;
    if (npuq_check_shape(arguments, y, from->ndim, shape, "") == NPUQ_OK) { /* no text is made for it */
        return NPUQ_OK;
    }
    (void)snprintf(rule, sizeof rule, "the shape of x, its last dimension in words of %d, as y is %s", (int)elements,
                   to->name);
    return npuq_fail_shape(arguments, y, from->ndim, shape, rule);
}

npuq_status npuq_check_unpacked_shape(const npuq_arguments *arguments, int x, int y)
{
    const npuq_tensor *from = arguments->tensors[x];
    const int64_t elements = (int64_t)npuq_count_elements_in(arguments->infos[x]->word);
    int64_t shape[NPUQ_MAX_NDIM];
    char rule[96];
    const int last = from->ndim - 1;

    if (elements == 1) {
        return npuq_check_shape(arguments, y, from->ndim, from->shape, "the shape of x");
    }
    if (from->ndim == 0) {
        return npuq_fail(NPUQ_ERROR_SHAPE, arguments->signature->op, "x",
                         "has 0 dimensions; expected 1 to %d, as it is %s", NPUQ_MAX_NDIM, arguments->infos[x]->name);
    }
    memcpy(shape, from->shape, sizeof shape);
    if (__builtin_mul_overflow(shape[last], elements, &shape[last])) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, arguments->signature->op, "x",
                         "last dimension is %lld words; expected at most %lld, %lld elements each",
                         (long long)from->shape[last], (long long)(INT64_MAX / elements), (long long)elements);
    }
    if (npuq_check_shape(arguments, y, from->ndim, shape, "") == NPUQ_OK) {
        return NPUQ_OK;
    }
    (void)snprintf(rule, sizeof rule, "the shape of x, with %d elements for each word, as x is %s", (int)elements,
                   arguments->infos[x]->name);
    return npuq_fail_shape(arguments, y, from->ndim, shape, rule);
}

npuq_status npuq_fail_executor(const char *op)
{
    return npuq_fail(NPUQ_ERROR_NULL, op, "executor", "parallel_for is null; expected a function");
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* The bytes that the elements lie in. False if there are more than can be counted or addressed. */
static bool find_span(const npuq_tensor *tensor, npuq_span *span)
{
    const int64_t size = npuq_find_type(tensor->dtype)->word.size;
    const uintptr_t base = (uintptr_t)tensor->data;
    int64_t count = 1;
    int64_t below = 0; /* bytes before base */
    int64_t above = size - 1;

    for (int d = 0; d < tensor->ndim; d++) {
        int64_t reach;

        if (__builtin_mul_overflow(count, tensor->shape[d], &count)) {
            return false;
        }
        if (tensor->shape[d] <= 1) {
            continue;
        }
        if (__builtin_mul_overflow(tensor->strides[d], size, &reach) ||
            __builtin_mul_overflow(reach, tensor->shape[d] - 1, &reach) ||
            (reach < 0 ? __builtin_sub_overflow(below, reach, &below) : __builtin_add_overflow(above, reach, &above))) {
            return false;
        }
    }
    /* No object is larger than its address space, 57 bits at most, and none wraps around it. */
    if (below > NPUQ_LARGEST_OBJECT || above >= NPUQ_LARGEST_OBJECT - below || (uintptr_t)below > base ||
        (uintptr_t)above > UINTPTR_MAX - base) {
        return false;
    }
    span->first = base - (uintptr_t)below;
    span->last = base + (uintptr_t)above;
    span->element = (size_t)size;
    return true;
}

/* Of a tensor that is not dense: it has several elements. */
static bool repeats_one_element(const npuq_tensor *tensor)
{
    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] > 1 && tensor->strides[d] != 0) {
            return false;
        }
    }
    return true;
}

npuq_status npuq_check_data(const char *op, const char *name, const void *data, size_t size)
{
    const size_t beyond = (uintptr_t)data & (size - 1);

    if (!data) {
        return npuq_fail(NPUQ_ERROR_NULL, op, name, "data is null; expected memory for its elements");
    }
    if (beyond != 0) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, name,
                         "data is misaligned: its address is %u beyond a multiple of %u; expected a multiple of %u",
                         (unsigned)beyond, (unsigned)size, (unsigned)size);
    }
    return NPUQ_OK;
}

static npuq_status check_memory(const char *op, const npuq_argument *a, const npuq_tensor *tensor, npuq_span *span)
{
    const npuq_status status = npuq_check_data(op, a->name, tensor->data, npuq_find_type(tensor->dtype)->word.size);

    if (status != NPUQ_OK) {
        return status;
    }
    if (!find_span(tensor, span)) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, a->name,
                         "extents and strides overflow; expected every element within the address space");
    }
    /* A parameter may be broadcast like this. An x like this has most likely been made without strides. */
    if ((a->role == NPUQ_X || a->role == NPUQ_X_UNDER_Y) && repeats_one_element(tensor)) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, a->name,
                         "repeats one element: strides are 0 in every dimension of more than one; expected the "
                         "distances between its elements, such as npuq_tensor_contiguous() sets");
    }
    if (a->role == NPUQ_OUTPUT) {
        switch (npuq_overlaps_itself(tensor)) {
        case NPUQ_OVERLAP_NONE: break;
        case NPUQ_OVERLAP_FOUND:
            return npuq_fail(
                NPUQ_ERROR_LAYOUT, op, a->name,
                "overlaps itself: two indices share an element; expected distinct elements, such as with the "
                "strides that npuq_tensor_contiguous() sets");
        case NPUQ_OVERLAP_UNKNOWN:
            return npuq_fail(NPUQ_ERROR_LAYOUT, op, a->name,
                             "may overlap itself: strides too irregular to tell; expected distinct elements");
        }
    }
    return NPUQ_OK;
}

static npuq_status check_disjoint(const npuq_arguments *arguments, size_t out, size_t other)
{
    const char *op = arguments->signature->op;
    const char *name = arguments->signature->arguments[out].name;
    const char *other_name = arguments->signature->arguments[other].name;

    switch (npuq_overlaps(arguments->tensors[out], &arguments->spans[out], arguments->tensors[other],
                          &arguments->spans[other])) {
    case NPUQ_OVERLAP_NONE: return NPUQ_OK;
    case NPUQ_OVERLAP_FOUND:
        if (arguments->signature->arguments[other].role == NPUQ_X_UNDER_Y) {
            return npuq_fail(NPUQ_ERROR_LAYOUT, op, name,
                             "overlaps %s; expected memory of its own, or a dtype of %u bytes and the data and strides "
                             "of %s",
                             other_name, (unsigned)arguments->spans[other].element, other_name);
        }
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, name, "overlaps %s; expected memory of its own", other_name);
    case NPUQ_OVERLAP_UNKNOWN: break;
    }
    return npuq_fail(NPUQ_ERROR_LAYOUT, op, name,
                     "may overlap %s: strides too irregular to tell; expected memory of its own", other_name);
}

/* Whether two arguments of one shape, and of elements of one size, have the same elements. */
static bool is_same_view(const npuq_tensor *a, const npuq_tensor *b)
{
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] > 1 && a->strides[d] != b->strides[d]) {
            return false;
        }
    }
    return a->data == b->data;
}

static bool is_in_place(const npuq_arguments *arguments, size_t out, size_t other)
{
    return arguments->signature->arguments[other].role == NPUQ_X_UNDER_Y &&
           arguments->spans[out].element == arguments->spans[other].element &&
           is_same_view(arguments->tensors[out], arguments->tensors[other]);
}

npuq_status npuq_check_layouts(npuq_arguments *arguments)
{
    const npuq_signature *signature = arguments->signature;
    npuq_status status;

    arguments->used = arguments->dense;
    for (size_t i = 0; !npuq_are_dense(arguments) && i < signature->count; i++) {
        const npuq_tensor *tensor = arguments->tensors[i];

        if (!tensor || (arguments->dense >> i & 1) || is_empty(tensor)) {
            continue;
        }
        status = check_memory(signature->op, &signature->arguments[i], tensor, &arguments->spans[i]);
        if (status != NPUQ_OK) {
            return status;
        }
        arguments->used |= 1u << i;
    }
    for (size_t i = 0; i < signature->count; i++) {
        if (signature->arguments[i].role != NPUQ_OUTPUT || !(arguments->used >> i & 1)) {
            continue;
        }
        for (size_t j = 0; j < signature->count; j++) {
            const bool pair_seen = signature->arguments[j].role == NPUQ_OUTPUT && j >= i;

            if ((arguments->used >> j & 1) && !pair_seen &&
                npuq_spans_meet(&arguments->spans[i], &arguments->spans[j]) && !is_in_place(arguments, i, j) &&
                (status = check_disjoint(arguments, i, j)) != NPUQ_OK) {
                return status;
            }
        }
    }
    return NPUQ_OK;
}
