/* SPDX-License-Identifier: BSD-3-Clause */
/* What every vocabulary has, in the compiler's operators on vectors. A vector header includes this after its vf. */
#ifndef NPUQ_VEC_H
#define NPUQ_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LANES = sizeof(vf) / sizeof(float), CHUNK = 4 * LANES };

typedef __attribute__((__vector_size__(sizeof(vf)))) int32_t vi;
typedef __attribute__((__vector_size__(sizeof(vf)))) uint32_t vu;
typedef __attribute__((__vector_size__(sizeof(vf)))) uint16_t vh;

typedef __attribute__((__vector_size__(sizeof(vf)))) int16_t vs;

typedef struct vchunk {
    vf v[4];
} vchunk;

typedef struct ichunk {
    vi v[4];
} ichunk;

typedef struct hchunk {
    vh v[2];
} hchunk;

/* A type of 8 or 4 bits with a sign, an exponent and a mantissa. */
typedef struct small_format {
    float largest;
    uint32_t least_normal; /* as a pattern of binary32 */
    uint32_t drop;         /* mantissa bits that binary32 has, and the type has not */
    uint16_t first;        /* the biased exponent of the sum with which the encode rounds a number below least_normal */
    uint16_t sign;         /* the bits of a code that the sign sets */
} small_format;

/* How the codes of such a type are widened: those of 8 bits by way of float16, those of 4 by a table. */
typedef struct small_code {
    int shift;     /* of a code in the upper bits, to float16's places */
    uint16_t mask; /* the bits that it has there */
    float power;   /* what its value is then multiplied by */
    vu table;      /* see chunk_look_up() */
} small_code;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LOW_FIRST = 1 };
#else
enum { LOW_FIRST = 0 };
#endif

/* One vector at a time: of a copy of several, gcc keeps another one on the stack. */
static inline vu vector_at(const void *p, size_t i)
{
    vu v;
    memcpy(&v, (const char *)p + i * sizeof v, sizeof v);
    return v;
}

static inline void put_vector(void *p, size_t i, vu v)
{
    memcpy((char *)p + i * sizeof v, &v, sizeof v);
}

static inline vf v_load(const float *p)
{
    return (vf)vector_at(p, 0);
}

/* Patterns as order_bits() maps them. */
static inline vf v_ordered(vf v)
{
    return (vf)((vu)v ^ (0 - ((vu)v >> 31)) >> 1);
}

static inline vchunk chunk_load_f32(const void *p)
{
    return (vchunk){{(vf)vector_at(p, 0), (vf)vector_at(p, 1), (vf)vector_at(p, 2), (vf)vector_at(p, 3)}};
}

static inline hchunk chunk_load_halves(const void *p)
{
    return (hchunk){{(vh)vector_at(p, 0), (vh)vector_at(p, 1)}};
}

static inline ichunk chunk_load_ints(const void *p)
{
    return (ichunk){{(vi)vector_at(p, 0), (vi)vector_at(p, 1), (vi)vector_at(p, 2), (vi)vector_at(p, 3)}};
}

static inline ichunk ichunk_set(int32_t value)
{
    const vi v = value + (vi){0};
    return (ichunk){{v, v, v, v}};
}

static inline ichunk ichunk_add(ichunk a, ichunk b)
{
    for (int i = 0; i < 4; i++) {
        a.v[i] = (vi)((vu)a.v[i] + (vu)b.v[i]);
    }
    return a;
}

static inline vchunk chunk_of_ints(ichunk a)
{
    return (vchunk){{__builtin_convertvector(a.v[0], vf), __builtin_convertvector(a.v[1], vf),
                     __builtin_convertvector(a.v[2], vf), __builtin_convertvector(a.v[3], vf)}};
}

static inline ichunk chunk_bits(vchunk t)
{
    return (ichunk){{(vi)t.v[0], (vi)t.v[1], (vi)t.v[2], (vi)t.v[3]}};
}

static inline vchunk chunk_load_i32(const void *p)
{
    return chunk_of_ints(chunk_load_ints(p));
}

#endif
