/* SPDX-License-Identifier: BSD-3-Clause */
/* From .npy files to tensors and back. */
#ifndef NPUQUANT_TENSOR_FILE_H
#define NPUQUANT_TENSOR_FILE_H

#include <npuquant/npuquant.h>

/* NumPy's name of a type as results are stored: a quint4x2 word is an i4, a bfloat16 a u2. */
const char *tensor_npy_type(npuq_dtype dtype);

/* What users call a type, and its size in bytes. */
const char *tensor_type_name(npuq_dtype dtype);
size_t tensor_item_size(npuq_dtype dtype);

/* A tensor that was loaded from a file: a view of the mapped file, or of memory of its own. All zeros is none. */
struct tensor_file {
    npuq_tensor tensor;
    const void *mapped;
    size_t mapped_size;
    void *owned;
};

/* Loads a .npy file; unsigned 16-bit integers become bfloat16. Reports what is wrong and returns false on failure;
 * there is nothing to release then. */
bool tensor_file_load(struct tensor_file *file, const char *path);
void tensor_file_release(struct tensor_file *file);

/* A result on its way to its file. All zeros is none. */
struct staged_file {
    const char *path;
    char *temporary;
};

/* Writes a contiguous tensor to a temporary file beside path; staged_file_commit() gives it its name. Both report what
 * is wrong and return false on failure. */
bool staged_file_write(struct staged_file *file, const char *path, const npuq_tensor *tensor);
bool staged_file_commit(struct staged_file *file);
/* Removes the temporary file, if there still is one. */
void staged_file_release(struct staged_file *file);

#endif
