/* SPDX-License-Identifier: BSD-3-Clause */
/* The one list of the types that chunks are stored as: DO(ID, name, bits), where NPUQ_Y_<ID> is the index, and
 * chunk_store_<name> the vocabulary's store. */
#ifndef NPUQ_Y_TYPES_H
#define NPUQ_Y_TYPES_H

#define EACH_Y(DO)                                                                                                     \
    DO(I8, i8, 8) DO(U8, u8, 8) DO(I32, i32, 32) DO(I4, i4, 4) DO(F32, f32, 32) DO(F16, f16, 16) DO(BF16, bf16, 16)

#endif
