/* SPDX-License-Identifier: BSD-3-Clause */
/* What a compiler inlines, where its own choice costs time. */
#ifndef NPUQ_INLINE_H
#define NPUQ_INLINE_H

/* For functions of a small call with many constants: the call is a few nanoseconds faster. */
#define NPUQ_INLINED __attribute__((always_inline))

/* For functions with a large frame: inlined, as in a single file, the caller would keep that frame during other
 * calls. */
#define NPUQ_NOT_INLINED __attribute__((noinline))

#endif
