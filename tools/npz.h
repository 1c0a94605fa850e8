/* SPDX-License-Identifier: BSD-3-Clause */
/* NumPy's .npz format: zip archives of .npy files. The reader takes stored members in place, and checks every byte. */
#ifndef NPUQUANT_NPZ_H
#define NPUQUANT_NPZ_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a file begins like an archive. */
bool npz_begins(const void *bytes, size_t size);

/* Finds a .npy file in a whole archive: the one of the name, with or without .npy, or, if member is null, the only one.
 * On failure, returns false, and message is one line with the reason. */
bool npz_find(const void *bytes, size_t size, const char *member, size_t *offset, size_t *length, char *message,
              size_t message_size);

#endif
