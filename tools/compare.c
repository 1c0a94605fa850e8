/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare.h"

#include "tensor_file.h"

#include <dtypes.h>
#include <math.h>
#include <npuq_ref_element.h>
#include <stdlib.h>
#include <string.h>

bool compare_possible(const npuq_tensor *ours, const npuq_tensor *theirs)
{
    const bool same_type = strcmp(dtype_of(ours->dtype)->npy, dtype_of(theirs->dtype)->npy) == 0;
    const bool same_words = dtype_is_words(ours->dtype) && dtype_is_words(theirs->dtype);

    if ((!same_type && !same_words) || ours->ndim != theirs->ndim) {
        return false;
    }
    for (int d = 0; d < ours->ndim; d++) {
        if (ours->shape[d] != theirs->shape[d]) {
            return false;
        }
    }
    return true;
}

npuq_dtype compare_their_dtype(const struct pair *pair)
{
    const npuq_dtype ours = pair->ours->dtype;
    const npuq_dtype theirs = pair->theirs->dtype;

    return dtype_of(ours)->kind == dtype_of(theirs)->kind ? ours : theirs;
}

/* The dimensions that are not 1, in order. */
static npuq_tensor squeeze(const npuq_tensor *tensor)
{
    npuq_tensor squeezed = *tensor;

    squeezed.ndim = 0;
    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] != 1) {
            squeezed.shape[squeezed.ndim] = tensor->shape[d];
            squeezed.strides[squeezed.ndim++] = tensor->strides[d];
        }
    }
    return squeezed;
}

void compare_take_shape(const npuq_tensor *ours, npuq_tensor *theirs)
{
    const npuq_tensor from = squeeze(theirs);
    const npuq_tensor to = squeeze(ours);
    const bool same = from.ndim == to.ndim && memcmp(from.shape, to.shape, (size_t)to.ndim * sizeof to.shape[0]) == 0;
    const npuq_tensor rows = npuq_tensor_contiguous(NULL, ours->dtype, ours->ndim, ours->shape);
    npuq_tensor taken = *ours;
    int next = 0;

    if (!same && (from.ndim != 1 || tensor_element_count(&from) != tensor_element_count(ours))) {
        return;
    }
    for (int d = 0; d < ours->ndim; d++) {
        taken.strides[d] = same ? 0 : rows.strides[d] * from.strides[0];
        if (same && ours->shape[d] != 1) {
            taken.strides[d] = from.strides[next++];
        }
    }
    taken.data = theirs->data;
    taken.dtype = theirs->dtype;
    *theirs = taken;
}

/* ---- one element ----------------------------------------------------------------------------------------------- */

/* Fills in the distance of two elements with different bits or types; false if both count as equal. */
static bool measure(const struct pair *pair, struct difference *difference)
{
    const npuq_dtype dtype = pair->ours->dtype;
    const npuq_dtype their_dtype = compare_their_dtype(pair);
    const bool is_float = dtype_is_float(dtype);
    const float ours = is_float ? dtype_float(dtype, difference->ours) : 0;
    const float theirs = is_float ? dtype_float(dtype, difference->theirs) : 0;

    difference->steps =
        dtype_is_words(dtype) ? 0 : dtype_order(their_dtype, difference->theirs) - dtype_order(dtype, difference->ours);
    difference->infinite = !(fabsf(ours) < INFINITY && fabsf(theirs) < INFINITY);
    difference->zeros = is_float && difference->steps == 0;
    if (their_dtype != dtype) { /* two integer types: compares the numbers, not the bits */
        return difference->steps != 0;
    }
    return !pair->is_parameter || !(difference->zeros || (npuq_ref_is_nan(ours) && npuq_ref_is_nan(theirs)));
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

struct walk {
    const struct pair *pair;
    visit_difference *visit;
    void *context;
    int parts;                    /* values in an element: 8 in a quint4x2 word */
    bool same_type;               /* equal bits are equal values */
    int64_t index[NPUQ_MAX_NDIM]; /* of the element */
    int64_t our_offset;           /* of the row */
    int64_t their_offset;
    struct difference difference;
};

/* Without dimensions there is one element. */
static int64_t last_extent(const npuq_tensor *tensor)
{
    return tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 1;
}

static bool visit_element(struct walk *walk, const char *ours, const char *theirs)
{
    const npuq_dtype dtype = walk->pair->ours->dtype;
    const int last = walk->pair->ours->ndim - 1;
    struct difference *difference = &walk->difference;

    for (int part = 0; part < walk->parts; part++) {
        difference->ours = dtype_load(dtype, ours, (size_t)part);
        difference->theirs = dtype_load(dtype, theirs, (size_t)part);
        if ((walk->same_type && difference->ours == difference->theirs) || !measure(walk->pair, difference)) {
            continue;
        }
        memcpy(difference->index, walk->index, sizeof walk->index);
        if (last >= 0) {
            difference->index[last] = walk->index[last] * walk->parts + part;
        }
        if (!walk->visit(walk->context, difference)) {
            return false;
        }
    }
    return true;
}

/* One run of the last dimension; most runs are equal as a whole. */
static bool visit_row(struct walk *walk, int64_t row)
{
    const npuq_tensor *tensor = walk->pair->ours;
    const int64_t size = (int64_t)npuq_dtype_size(tensor->dtype);
    const char *ours = (const char *)tensor->data + walk->our_offset * size;
    const char *theirs = (const char *)walk->pair->theirs->data + walk->their_offset * size;
    const int last = tensor->ndim - 1;
    const int64_t length = last_extent(tensor);
    const int64_t our_stride = last >= 0 ? tensor->strides[last] : 1;
    const int64_t their_stride = last >= 0 ? walk->pair->theirs->strides[last] : 1;

    if (walk->same_type && our_stride == 1 && their_stride == 1 && memcmp(ours, theirs, (size_t)(length * size)) == 0) {
        return true;
    }
    for (int64_t i = 0; i < length; i++) {
        if (last >= 0) {
            walk->index[last] = i;
        }
        walk->difference.row = walk->pair->is_parameter ? row * length + i : row;
        if (!visit_element(walk, ours + i * our_stride * size, theirs + i * their_stride * size)) {
            return false;
        }
    }
    return true;
}

/* Steps to the next row, and from the last to the first. */
static void next_row(struct walk *walk)
{
    const npuq_tensor *ours = walk->pair->ours;

    for (int d = ours->ndim - 2; d >= 0; d--) {
        const bool is_last = ++walk->index[d] == ours->shape[d];
        const int64_t steps = is_last ? 1 - ours->shape[d] : 1;
        walk->our_offset += ours->strides[d] * steps;
        walk->their_offset += walk->pair->theirs->strides[d] * steps;
        if (!is_last) {
            return;
        }
        walk->index[d] = 0;
    }
}

void compare_walk(const struct pair *pair, visit_difference *visit, void *context)
{
    struct walk walk = {
        .pair = pair,
        .visit = visit,
        .context = context,
        .parts = 1 << dtype_of(pair->ours->dtype)->log2_values,
        .same_type = compare_their_dtype(pair) == pair->ours->dtype,
    };
    const size_t count = tensor_element_count(pair->ours);
    const size_t length = (size_t)last_extent(pair->ours);

    for (size_t done = 0; done < count; done += length) {
        if (!visit_row(&walk, (int64_t)(done / length))) {
            return;
        }
        next_row(&walk);
    }
}

bool compare_is_tolerated(const struct pair *pair, const struct difference *difference)
{
    const int64_t steps = difference->steps < 0 ? -difference->steps : difference->steps;

    return pair->tolerance > 0 && steps <= pair->tolerance && !difference->infinite;
}

/* ---- the summary ----------------------------------------------------------------------------------------------- */

static bool field_differs(enum field field, uint64_t ours, uint64_t theirs)
{
    static const uint64_t offset_bits = (uint64_t)0x1FF << 37;
    const uint64_t masks[FIELDS] = {UINT32_MAX, offset_bits, ~(offset_bits | UINT32_MAX)};

    return ((ours ^ theirs) & masks[field]) != 0;
}

void compare_join(struct spread *spread, const struct spread *other)
{
    if (other->count == 0) {
        return;
    }
    if (spread->count == 0 || other->least < spread->least) {
        spread->least = other->least;
    }
    if (spread->count == 0 || other->most > spread->most) {
        spread->most = other->most;
    }
    spread->count += other->count;
}

static void add_steps(struct comparison *comparison, int64_t steps)
{
    const struct spread one = {1, steps, steps};
    int power = 0;

    for (int64_t rest = steps < 0 ? -steps : steps; rest > 1; rest /= 2) {
        power++;
    }
    compare_join(steps < 0 ? &comparison->below[power] : &comparison->above[power], &one);
}

static bool start_hits(struct hits *hits, int64_t extent)
{
    hits->extent = extent;
    hits->set = calloc((size_t)extent / 8 + 1, 1);
    return hits->set != NULL;
}

static void hit(struct hits *hits, int64_t index)
{
    unsigned char *byte = &hits->set[index / 8];
    const unsigned bit = 1u << index % 8;

    hits->count += !(*byte & bit);
    *byte = (unsigned char)(*byte | bit);
}

/* Spreads values over all 64-bit numbers, so that sums of different values differ. */
static uint64_t hash_value(npuq_dtype dtype, uint64_t bits)
{
    uint64_t hash = dtype_is_float(dtype) ? bits : (uint64_t)dtype_order(dtype, bits);

    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9U;
    hash = (hash ^ hash >> 27) * 0x94D049BB133111EBU;
    return hash ^ hash >> 31;
}

struct summing {
    const struct pair *pair;
    struct comparison *comparison;
};

static bool sum_difference(void *context, const struct difference *difference)
{
    const struct summing *summing = context;
    const struct pair *pair = summing->pair;
    struct comparison *comparison = summing->comparison;

    comparison->surplus +=
        hash_value(pair->ours->dtype, difference->ours) - hash_value(compare_their_dtype(pair), difference->theirs);
    if (compare_is_tolerated(pair, difference)) {
        const struct spread one = {1, difference->steps, difference->steps};
        compare_join(&comparison->tolerated, &one);
        return true;
    }
    comparison->differ++;
    if (dtype_is_words(pair->ours->dtype)) {
        for (int field = 0; field < FIELDS; field++) {
            comparison->fields[field] += field_differs((enum field)field, difference->ours, difference->theirs);
        }
    } else if (difference->infinite) {
        comparison->infinite++;
    } else if (difference->zeros) {
        comparison->zeros++;
    } else {
        add_steps(comparison, difference->steps);
    }
    hit(&comparison->rows, difference->row);
    hit(&comparison->columns,
        pair->is_parameter || pair->ours->ndim == 0 ? 0 : difference->index[pair->ours->ndim - 1]);
    for (int d = 0; d < comparison->dimensions; d++) {
        hit(&comparison->dimension[d], difference->index[d]);
    }
    return true;
}

bool compare_tensors(const struct pair *pair, struct comparison *comparison)
{
    const npuq_tensor *ours = pair->ours;
    const size_t count = tensor_element_count(ours);
    const int64_t length = pair->is_parameter ? 1 : last_extent(ours);
    const int row_dimensions = ours->ndim - (pair->is_parameter ? 0 : 1);
    struct summing summing = {pair, comparison};

    memset(comparison, 0, sizeof *comparison);
    if (count == 0) { /* other extents may be anything */
        return true;
    }
    comparison->elements = count << dtype_of(ours->dtype)->log2_values;
    comparison->dimensions = row_dimensions > 1 ? row_dimensions : 0;
    if (!start_hits(&comparison->rows, (int64_t)count / length) ||
        !start_hits(&comparison->columns, length << dtype_of(ours->dtype)->log2_values)) {
        return false;
    }
    for (int d = 0; d < comparison->dimensions; d++) {
        if (!start_hits(&comparison->dimension[d], ours->shape[d])) {
            return false;
        }
    }
    compare_walk(pair, sum_difference, &summing);
    return true;
}

void compare_release(struct comparison *comparison)
{
    free(comparison->rows.set);
    free(comparison->columns.set);
    for (int d = 0; d < comparison->dimensions; d++) {
        free(comparison->dimension[d].set);
    }
}
