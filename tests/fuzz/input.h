/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a fuzzer as a source of numbers: the same on every machine, and 0 when all bytes are used. */
#ifndef NPUQ_TESTS_FUZZ_INPUT_H
#define NPUQ_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reports a finding in the way that a fuzzer notices. */
#define FINDING(...) ((void)fprintf(stderr, "finding: " __VA_ARGS__), (void)fputc('\n', stderr), abort())

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static inline uint8_t take_byte(input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->at++;
}

static inline uint64_t take_bytes(input *in, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        value |= (uint64_t)take_byte(in) << (8 * i);
    }
    return value;
}

#endif
