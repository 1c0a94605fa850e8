/* SPDX-License-Identifier: BSD-3-Clause */
/* From .npy files to tensors and back. */
#ifndef NPUQUANT_TENSOR_FILE_H
#define NPUQUANT_TENSOR_FILE_H

#include "os.h"

#include <npuquant/npuquant.h>

size_t tensor_element_count(const npuq_tensor *tensor);
size_t tensor_byte_count(const npuq_tensor *tensor);

/* Allocates a tensor of known type and shape: contiguous zeros, freed by the caller. Reports an error and returns false
 * without memory. */
bool tensor_allocate(npuq_tensor *tensor);

/* Writes the shape as "[3, 4]", and returns text. */
#define TENSOR_SHAPE_SIZE 192
const char *tensor_format_shape(char text[TENSOR_SHAPE_SIZE], const npuq_tensor *tensor);

/* A tensor loaded from a file: a view of the mapped file, or of its own memory. All zeros: none. */
struct tensor_file {
    npuq_tensor tensor;
    char type[3];          /* NumPy's name of the type in the file */
    bool is_bfloat16;      /* by the path: x.bin:bfloat16:3,4 */
    const char *path;      /* for messages: "stdin" for "-" */
    struct os_file source; /* open while mapped is not null */
    const void *mapped;
    void *owned;
};

/* Loads a .npy file, a member of a .npz archive (file.npz:member), or a file of elements alone (file:TYPE:SHAPE). 16
 * bits that are not float16 (u2, i2, V2) become bfloat16. On failure, reports the error, returns false, and there is
 * nothing to release. */
bool tensor_file_load(struct tensor_file *file, const char *path);

/* Converts float32 to bfloat16. If an element is not a bfloat16, or without memory, reports the error and returns
 * false. */
bool tensor_file_to_bfloat16(struct tensor_file *file);

/* Converts int8 values, or bytes with two values, the first in the lower bits, to words of int4 of the shape; leaves
 * other tensors. If an element is not an int4, or without memory, reports the error and returns false. */
bool tensor_file_to_quint4x2(struct tensor_file *file, const npuq_tensor *words);

/* Whether the file still has all mapped bytes: a part that was cut off may read as zeros. Reports an error if not. */
bool tensor_file_is_whole(const struct tensor_file *file);

void tensor_file_release(struct tensor_file *file);

/* A result on its way to its file. All zeros: none. */
struct staged_file {
    const char *path;
    const char *shown_path; /* in messages */
    char *temporary;
    char *kept;                  /* another name of the file that path had; null without one */
    bool undoable;               /* the old file of path can come back */
    const npuq_tensor *streamed; /* waits for a stream, which has no temporary file; null for files */
};

/* Writes a contiguous tensor to a temporary file next to path, or keeps it for a stream; the tensor must last as long.
 * Reports errors and returns false. */
bool staged_file_write(struct staged_file *file, const char *path, const npuq_tensor *tensor);
/* Writes text, always to a file. */
bool staged_file_write_text(struct staged_file *file, const char *path, const char *text);
/* Writes the streams, then names all files. If the system refuses a name, takes the earlier ones back, reports that and
 * what could not be taken back, and returns false. */
bool staged_files_commit(struct staged_file *files, int count);
/* Removes the temporary file, if there is one. */
void staged_file_release(struct staged_file *file);

#endif
