/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces features beyond C99 in the single file, for compilers without GNU C. Two promises are lost:
 * - The choice of the backend is not atomic. There is one backend, so racing first calls write the same pointer. C
 *   leaves that undefined: a program makes its first call before it starts threads.
 * - All threads share one npuq_last_error(), except with MSVC.
 */
#ifdef NPUQ_PLAIN_C

#define _Atomic(type) type
#define atomic_load_explicit(p, order)                     (*(p))
#define atomic_store_explicit(p, value, order)             ((void)(*(p) = (value)))
#define atomic_compare_exchange_strong(p, expected, value) (*(p) = (value), true)

#ifdef _MSC_VER
#define _Thread_local __declspec(thread)
#else
#define _Thread_local
#endif

#define _Alignas(bytes)
#define _Static_assert(condition, text) extern char npuq_asserted[(condition) ? 1 : -1]
#define __extension__
#ifndef __attribute__
#define __attribute__(list)
#endif

#define __builtin_prefetch(p)  ((void)0)
#define __builtin_add_overflow npuq_add_overflow
#define __builtin_sub_overflow npuq_sub_overflow
#define __builtin_mul_overflow npuq_mul_overflow

/* The result is not set where it overflows. */
static bool npuq_add_overflow(int64_t a, int64_t b, int64_t *sum)
{
    if (b < 0 ? a < INT64_MIN - b : a > INT64_MAX - b) {
        return true;
    }
    *sum = a + b;
    return false;
}

static bool npuq_sub_overflow(int64_t a, int64_t b, int64_t *difference)
{
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) {
        return true;
    }
    *difference = a - b;
    return false;
}

static bool npuq_mul_overflow(int64_t a, int64_t b, int64_t *product)
{
    if (a > 0 ? (b > INT64_MAX / a || b < INT64_MIN / a)
              : (a < -1 ? (b < INT64_MAX / a || b > INT64_MIN / a) : a == -1 && b == INT64_MIN)) {
        return true;
    }
    *product = a * b;
    return false;
}

#endif
