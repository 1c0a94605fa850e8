/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The .npz format of NumPy: zip archives of .npy files, of which the stored ones can be read in place. As with .npy
 * files, every byte is checked.
 */
#ifndef NPUQUANT_NPZ_H
#define NPUQUANT_NPZ_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a file begins as archives do. */
bool npz_begins(const void *bytes, size_t size);

/* Finds a .npy file in an archive of which all bytes are given: that of the name, which may lack .npy, or the only one
 * if member is null. On failure false, and one line in message that says what is wrong. */
bool npz_find(const void *bytes, size_t size, const char *member, size_t *offset, size_t *length, char *message,
              size_t message_size);

#endif
