/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of NumPy's .npy format, versions 1 to 3. The caller has the memory of the elements.
 *
 * A file is a magic string, a version, the length of the header, the header, and the elements. The header is a Python
 * dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. Files may come from anywhere: the
 * reader checks every byte, and no number in a file determines an amount of work or memory.
 */
#ifndef NPUQUANT_NPY_H
#define NPUQUANT_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_MAX_NDIM 8

/* A longer header is an error: eight extents fit in a few hundred bytes. */
#define NPY_MAX_HEADER 65536

/* The most bytes that npy_parse_header() needs. */
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

/* Reads a header from the first bytes of a file; npy_parse() also checks the length of the file. On failure, returns
 * false, and message is one line with the reason. */
bool npy_parse_header(const void *bytes, size_t size, struct npy *npy, char *message, size_t message_size);
bool npy_parse(const void *bytes, size_t size, struct npy *npy, char *message, size_t message_size);

/* A header from words: "<f4" and "3,4". The file has only elements. */
bool npy_parse_text(const char *type, const char *shape, struct npy *npy, char *message, size_t message_size);

/* Whether the file has the length that the header needs; on failure as npy_parse(). */
bool npy_check_size(const struct npy *npy, uint64_t size, char *message, size_t message_size);

/* The end of such a message about a file that PyTorch wrote. */
#define NPY_OF_PYTORCH " but PyTorch's; write it with numpy.save(path, tensor.cpu().numpy())"

#define NPY_HEADER_SIZE 320

/* Writes the header of a C-ordered file in this machine's byte order. Returns its length, a multiple of 64, at most
 * NPY_HEADER_SIZE. type is one of struct npy's. */
size_t npy_format_header(char header[NPY_HEADER_SIZE], const char *type, int ndim, const int64_t *shape);

#endif
