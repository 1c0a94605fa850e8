/* SPDX-License-Identifier: BSD-3-Clause */
/* From .npy files to tensors and back. */
#ifndef NPUQUANT_TENSOR_FILE_H
#define NPUQUANT_TENSOR_FILE_H

#include "os.h"

#include <npuquant/npuquant.h>

size_t tensor_element_count(const npuq_tensor *tensor);
size_t tensor_byte_count(const npuq_tensor *tensor);

/* Gives a tensor that has type and shape the rest: contiguous zeros, the caller's to free. Reports it, and returns
 * false, if there is not the memory. */
bool tensor_allocate(npuq_tensor *tensor);

/* Writes the shape as "[3, 4]", and returns text. */
#define TENSOR_SHAPE_SIZE 192
const char *tensor_format_shape(char text[TENSOR_SHAPE_SIZE], const npuq_tensor *tensor);

/* A tensor that was loaded from a file: a view of the mapped file, or of memory of its own. All zeros is none. */
struct tensor_file {
    npuq_tensor tensor;
    char type[3];          /* NumPy's name of its elements in the file */
    bool is_bfloat16;      /* as its name says: x.bin:bfloat16:3,4 */
    const char *path;      /* as messages name it: "stdin" for "-" */
    struct os_file source; /* open while mapped is not null */
    const void *mapped;
    void *owned;
};

/* Loads a .npy file, or what is in a .npz archive, file.npz:member, or a file of elements alone, file:TYPE:SHAPE; 16
 * bits that are not float16 (u2, i2, V2) become bfloat16. Reports what is wrong and returns false on failure; there is
 * nothing to release then. */
bool tensor_file_load(struct tensor_file *file, const char *path);

/* Makes bfloat16 of float32. Reports the first element that is no bfloat16, or that there is not the memory, and
 * returns false then. */
bool tensor_file_to_bfloat16(struct tensor_file *file);

/* Makes words of int4 of the shape, if the tensor has its values as int8 elements, or two in a byte, the first in the
 * lower bits; other tensors stay. Reports the first element that is no int4, or that there is not the memory, and
 * returns false then. */
bool tensor_file_to_quint4x2(struct tensor_file *file, const npuq_tensor *words);

/* Whether the file behind the tensor still has all that was mapped: the part of a page that is cut off reads as zeros.
 * Reports it, and returns false, if not. */
bool tensor_file_is_whole(const struct tensor_file *file);

void tensor_file_release(struct tensor_file *file);

/* A result on its way to its file. All zeros is none. */
struct staged_file {
    const char *path;
    const char *shown_path; /* in messages */
    char *temporary;
    char *kept;                  /* another name of the file that path was before; null if there was none */
    bool undoable;               /* what path was before can come back */
    const npuq_tensor *streamed; /* what a stream is to get, as path has no other place to wait in; null for files */
};

/* Writes a contiguous tensor, which has to last as long, to a temporary file beside path; or notes it, if path is a
 * stream. Reports what is wrong and returns false on failure. */
bool staged_file_write(struct staged_file *file, const char *path, const npuq_tensor *tensor);
/* The same of text, to a file in any case. */
bool staged_file_write_text(struct staged_file *file, const char *path, const char *text);
/* Writes the streams, then gives all files their names. If the system refuses one, those that have theirs already are
 * taken back: reports that, and what could not be taken back, and returns false. */
bool staged_files_commit(struct staged_file *files, int count);
/* Removes the temporary file, if there still is one. */
void staged_file_release(struct staged_file *file);

#endif
