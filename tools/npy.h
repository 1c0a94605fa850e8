/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The .npy format of NumPy, versions 1 to 3: headers only. What lies behind a header is the caller's memory.
 *
 * A file is a magic string, a version, the length of the header and the header itself, a Python dictionary such as
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, followed by the elements. Files come from anywhere, so
 * every byte is checked, and no work or memory depends on a number in a file.
 */
#ifndef NPUQUANT_NPY_H
#define NPUQUANT_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_MAX_NDIM 8

/* A header is never this long: eight extents fit in a few hundred bytes. */
#define NPY_MAX_HEADER 65536

/* As many bytes of a file as npy_parse_header() can want to see. */
#define NPY_MAX_PREFIX (12 + NPY_MAX_HEADER)

struct npy {
    char type[3];       /* NumPy's name without the byte order: f4 f2 i1 u1 i4 i8 u8 u2 i2 V2 */
    size_t item_size;   /* bytes of an element */
    bool swapped;       /* the elements are in the other byte order than this machine's */
    bool fortran_order; /* the first extent varies fastest */
    int ndim;           /* 0..NPY_MAX_NDIM */
    int64_t shape[NPY_MAX_NDIM];
    size_t count;       /* number of elements */
    size_t data_offset; /* where the elements begin in the file */
    size_t data_size;   /* bytes of all elements */
};

/* Reads the header of a file whose first bytes are given; npy_parse() also wants the file to be exactly as long as its
 * header says. On failure false, and one line in message that says what is wrong. */
bool npy_parse_header(const void *bytes, size_t size, struct npy *npy, char *message, size_t message_size);
bool npy_parse(const void *bytes, size_t size, struct npy *npy, char *message, size_t message_size);

/* What a header would say, in words of NumPy's: "<f4" and "3,4". The elements are all there is in the file. */
bool npy_parse_text(const char *type, const char *shape, struct npy *npy, char *message, size_t message_size);

/* Whether the file is as long as its header says; on failure as npy_parse(). */
bool npy_check_size(const struct npy *npy, uint64_t size, char *message, size_t message_size);

/* What such a message says of a file that PyTorch wrote, behind what it is not. */
#define NPY_OF_PYTORCH " but PyTorch's; write it with numpy.save(path, tensor.cpu().numpy())"

#define NPY_HEADER_SIZE 320

/* Writes the header of a C-ordered file in this machine's byte order and returns its length, a multiple of 64 that is
 * at most NPY_HEADER_SIZE. type is one of those above. */
size_t npy_format_header(char header[NPY_HEADER_SIZE], const char *type, int ndim, const int64_t *shape);

#endif
