/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"
#include "splitmix64.h"

#include "ref/npuq_ref_element.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#elif !defined(__wasi__)
#include <sys/mman.h>
#endif
#ifndef __wasi__
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#endif

/* ---- random ---- */

static uint64_t seed;
static _Thread_local uint64_t state;

static npuq_backend backends[8]; /* to try */
static size_t backend_count;

void test_seed(void)
{
    const char *given = getenv("NPUQ_TEST_SEED");

    seed = given ? strtoull(given, NULL, 0) : 20261120u;
    state = seed;
    printf("# NPUQ_TEST_SEED=%" PRIu64 "\n", seed);

    const char *given_backend = getenv("NPUQ_BACKEND");
    printf("# backends:");
    for (npuq_backend b = NPUQ_BACKEND_REF; strcmp(npuq_backend_name(b), "unknown") != 0; b++) {
        if (npuq_backend_available(b) && (!given_backend || strcmp(npuq_backend_name(b), given_backend) == 0)) {
            assert_true(backend_count < sizeof backends / sizeof backends[0]);
            backends[backend_count++] = b;
            printf(" %s", npuq_backend_name(b));
        }
    }
    printf("\n");
    (void)fflush(stdout);
    if (backend_count == 0) { /* it must not pass with another */
        printf("SKIPPED: no %s here\n", given_backend);
        exit(77);
    }
}

bool test_choose_backend(size_t i)
{
    static uint64_t before;

    before = i == 0 ? state : before;
    state = i < backend_count ? before ^ 0x5851F42D4C957F2Du : before;
    if (i < backend_count) {
        assert_int_equal(npuq_set_backend(backends[i]), NPUQ_OK);
    }
    return i < backend_count;
}

int test_rounds(int all)
{
    const char *given = getenv("NPUQ_TEST_SHARE");
    const char *times = getenv("NPUQ_TEST_TIMES");
    const int share = given && atoi(given) > 1 ? atoi(given) : 1;

    return (all * (times ? atoi(times) : 1) + share - 1) / share;
}

void test_reseed(uint64_t number)
{
    state = seed + number * 0xD1342543DE82EF95u;
    (void)test_random();
}

uint64_t test_random(void)
{
    return splitmix64(&state);
}

size_t test_below(size_t end)
{
    return (size_t)(test_random() % end);
}

int64_t test_between(int64_t first, int64_t last)
{
    return first + (int64_t)test_below((size_t)(last - first + 1));
}

bool test_one_in(unsigned n)
{
    return test_below(n) == 0;
}

/* ---- elements ---- */

float test_float(bool finite)
{
    static const float special[] = {
        0.0f,      -0.0f,           0.5f,         -0.5f,         1.5f,          2.5f,
        127.5f,    126.5f,          -127.5f,      -128.5f,       255.5f,        254.5f,
        -7.5f,     -8.5f,           7.5f,         6.5f,          1e-38f,        1e-45f,
        -1e-45f,   1.17549435e-38f, 2147483648.f, -2147483648.f, 2147483520.0f, 8388607.5f,
        8388608.f, 3e38f,           -3e38f,       65504.f,       1e-12f,        0.49999997f,
        65520.f,   65519.f,         6.1e-5f,      5.9604645e-8f, 8.9406967e-8f, 2.9802322e-8f,
    };
    const size_t specials = sizeof special / sizeof special[0];

    switch (test_below(16)) {
    case 0: return special[test_below(specials)];
    case 1: {
        const uint32_t bits = (uint32_t)test_random();
        return finite && (bits & 0x7F800000u) == 0x7F800000u ? npuq_ref_from_bits(bits & 0xFF7FFFFFu)
                                                             : npuq_ref_from_bits(bits);
    }
    case 2: return (float)test_between(-300, 300) * 0.5f; /* exact halves */
    case 3:
        if (!finite) {
            static const uint32_t not_finite[] = {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFFC00000u,
                                                  0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu};
            return npuq_ref_from_bits(not_finite[test_below(sizeof not_finite / sizeof not_finite[0])]);
        }
        return 1.0f;
    case 4: /* smaller: products with integers are float16's subnormals */
        return (float)test_between(-0x7FFFFF, 0x7FFFFF) / (float)((uint64_t)1 << test_between(27, 50));
    default: /* of the size of a quantised value, with a full significand */
        return (float)test_between(-0x7FFFFF, 0x7FFFFF) / (float)((uint32_t)1 << test_between(8, 26));
    }
}

uint16_t test_to_half(float value, npuq_dtype dtype)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    if (dtype == NPUQ_BFLOAT16) {
        return (uint16_t)(bits >> 16 | nan); /* a NaN whose payload is cut off must not become an infinity */
    }
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    const int exponent = (int)(bits >> 23 & 0xFFu) - 127 + 15;
    if (exponent >= 31) {
        const bool infinite = (bits & 0x7FFFFFFFu) == 0x7F800000u;
        return (uint16_t)(sign | (nan ? 0x7C01u | (bits >> 13 & 0x3FFu) : infinite ? 0x7C00u : 0x7BFFu));
    }
    if (exponent <= 0) {
        const int shift = 14 - exponent;
        const uint32_t fraction = (bits & 0x7FFFFFu) | 0x800000u;
        return (uint16_t)(sign | (shift > 24 ? 0 : fraction >> shift));
    }
    return (uint16_t)(sign | (unsigned)exponent << 10 | (bits >> 13 & 0x3FFu));
}

/* Integers: of any size, of that of sums of products, small; the ends, and where binary32 has to round. */
static uint32_t random_int32(void)
{
    static const uint32_t special[] = {0,           0xFFFFFFFFu, 0x80000000u, 0x80000001u, 0x7FFFFFFFu, 0x7FFFFFC0u,
                                       0x7FFFFFBFu, 0x01000001u, 0x01000003u, 0xFEFFFFFFu, 0x03FFFFFEu};

    switch (test_below(8)) {
    case 0: return special[test_below(sizeof special / sizeof special[0])];
    case 1:
    case 2: return (uint32_t)test_random();
    case 3:
    case 4: return (uint32_t)test_between(-0x2000000, 0x2000000);
    default: return (uint32_t)test_between(-20, 20);
    }
}

/* A word that npuq_requant() takes, with random ignored bits. The scale is often so small that products with sums stay
 * in range. */
static uint64_t random_word(bool finite, bool has_offset)
{
    static const uint32_t special[] = {0x100, 0x0FF, 0, 1, 0x1FF, 0x080, 0x17F};
    const float scale = test_float(finite) / (test_one_in(2) ? 1.0f : (float)((uint32_t)1 << test_below(32)));
    const uint64_t offset = test_one_in(2) ? test_below(512) : special[test_below(sizeof special / sizeof special[0])];
    uint32_t bits;

    memcpy(&bits, &scale, sizeof bits);
    return (test_one_in(2) ? test_random() << 47 : 0) | (uint64_t)1 << 46 | (has_offset ? offset << 37 : 0) | bits;
}

void test_fill(void *data, npuq_dtype dtype, size_t n, bool finite)
{
    unsigned char *at = data;
    const size_t size = npuq_dtype_size(dtype);
    const bool offsets = !test_one_in(3); /* of words */
    /* Large data repeats, at a prime distance that is no row length: random numbers would take most of the time. */
    const size_t distinct = n < 100003 ? n : 100003;

    for (size_t i = 0; i < distinct; i++, at += size) {
        if (dtype == NPUQ_FLOAT32) {
            const float value = test_float(finite);
            memcpy(at, &value, sizeof value);
        } else if (dtype == NPUQ_FLOAT16 || dtype == NPUQ_BFLOAT16) {
            const uint16_t half = test_to_half(test_float(finite), dtype);
            memcpy(at, &half, sizeof half);
        } else if (size == 8) {
            const uint64_t word = random_word(finite, offsets);
            memcpy(at, &word, sizeof word);
        } else if (size == 4) {
            const uint32_t word = dtype == NPUQ_INT32 ? random_int32() : (uint32_t)test_random();
            memcpy(at, &word, sizeof word);
        } else if (dtype == NPUQ_FLOAT8_E8M0) {
            *at = (unsigned char)(test_one_in(4) ? test_random() : (uint64_t)(127 + test_between(-20, 20)));
        } else {
            *at = (unsigned char)(test_one_in(4) ? test_random() : (uint64_t)test_between(-20, 20));
        }
    }
    for (size_t done = distinct; done < n; done += distinct, at += distinct * size) {
        memcpy(at, data, (done + distinct < n ? distinct : n - done) * size);
    }
}

/* ---- memory ---- */

void *test_allocate(size_t size)
{
    void *memory = malloc(size + 1);

    assert_non_null(memory);
    return memory;
}

/* Pages of each system: their size, how to get some, make one fault, and give them back. Where no page can fault, a
 * pattern fills the guards, and a test fails if it changed. */
#if defined(_WIN32)

static size_t page_size(void)
{
    SYSTEM_INFO info;

    GetSystemInfo(&info);
    return info.dwPageSize;
}

static void *make_pages(size_t size)
{
    return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static void guard_page(unsigned char *page, size_t size)
{
    DWORD before;

    assert_true(VirtualProtect(page, size, PAGE_NOACCESS, &before));
}

static void free_pages(const test_guarded *guarded)
{
    assert_true(VirtualFree(guarded->map, 0, MEM_RELEASE));
}

#elif defined(__wasi__)

enum { CANARY = 0x5A };

static size_t page_size(void)
{
    return 256; /* as wide as the alignment that tests ask for, and a kernel's longest step */
}

static void *make_pages(size_t size)
{
    void *pages = aligned_alloc(page_size(), size);

    if (pages) {
        memset(pages, CANARY, size);
    }
    return pages;
}

static void guard_page(unsigned char *page, size_t size)
{
    (void)page; /* is guarded by its contents */
    (void)size;
}

static void free_pages(const test_guarded *guarded)
{
    unsigned char *pages = guarded->map;
    const size_t before = (size_t)(guarded->memory - pages);

    for (size_t i = 0; i < guarded->map_size; i++) {
        if ((i < before || i >= before + guarded->size) && pages[i] != CANARY) {
            fail_msg("%zu bytes: byte %td was written", guarded->size, (ptrdiff_t)i - (ptrdiff_t)before);
        }
    }
    free(pages);
}

#else

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void *make_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

static void guard_page(unsigned char *page, size_t size)
{
    assert_int_equal(mprotect(page, size, PROT_NONE), 0);
}

static void free_pages(const test_guarded *guarded)
{
    assert_int_equal(munmap(guarded->map, guarded->map_size), 0);
}

#endif

test_guarded test_guarded_make(size_t size, bool at_end, size_t gap)
{
    const size_t page = page_size();
    const size_t inside = (size + gap + page - 1) / page * page;
    test_guarded guarded = {.size = size, .map_size = inside + 2 * page};

    guarded.map = make_pages(guarded.map_size);
    assert_non_null(guarded.map);
    guarded.memory = (unsigned char *)guarded.map + page;
    guard_page(guarded.map, page);
    guard_page(guarded.memory + inside, page);
    guarded.memory += at_end ? inside - gap - size : gap;
    return guarded;
}

void test_guarded_free(test_guarded *guarded)
{
    free_pages(guarded);
    guarded->map = NULL;
}

static test_guarded guards[32];
static size_t guard_count;

void *test_guard(size_t size, bool at_end, size_t gap)
{
    assert_true(guard_count < sizeof guards / sizeof guards[0]);
    guards[guard_count] = test_guarded_make(size, at_end, gap);
    return guards[guard_count++].memory;
}

void test_free_guards(void)
{
    while (guard_count > 0) {
        test_guarded_free(&guards[--guard_count]);
    }
}

#ifndef __wasi__

static void (*describe_fault)(char *line, size_t size, const char *what);

static void report_fault(int number)
{
    char line[256];

    describe_fault(line, sizeof line - 1, number == SIGILL ? "illegal instruction" : "access outside the view");
    strcat(line, "\n");
    (void)!write(STDERR_FILENO, line, (unsigned)strlen(line));
    _exit(1);
}

#endif

void test_describe_faults(void (*describe)(char *line, size_t size, const char *what))
{
#ifdef __wasi__
    (void)describe;
#else
    describe_fault = describe;
    (void)signal(SIGSEGV, report_fault);
    (void)signal(SIGILL, report_fault);
#ifdef SIGBUS
    (void)signal(SIGBUS, report_fault);
#endif
#endif
}

/* ---- threads ---- */

bool test_run_on_thread(void *(*body)(void *argument), void *argument)
{
#ifdef __wasi__
    (void)body;
    (void)argument;
    return false;
#else
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return true;
#endif
}

/* ---- views ---- */

bool test_repeats_one_element(const npuq_tensor *view)
{
    int many = 0;
    int moving = 0;
    int empty = 0;

    for (int d = 0; d < view->ndim; d++) {
        many += view->shape[d] > 1;
        moving += view->shape[d] > 1 && view->strides[d] != 0;
        empty += view->shape[d] == 0;
    }
    return many > 0 && moving == 0 && empty == 0;
}

/* Lays dimensions out in a random order, with gaps and in either direction. Returns the number of elements spanned;
 * first is the position of index 0 among them. */
static size_t lay_out(npuq_tensor *tensor, test_layout layout, size_t *first)
{
    int order[NPUQ_MAX_NDIM];
    int64_t span = 1; /* elements from the lowest to the highest */
    int64_t below = 0;

    for (int d = 0; d < tensor->ndim; d++) {
        order[d] = tensor->ndim - 1 - d;
    }
    for (int d = tensor->ndim - 1; d > 0 && test_one_in(2); d--) { /* permuted every second time */
        const int other = (int)test_below((size_t)d + 1);
        const int swap = order[d];
        order[d] = order[other];
        order[other] = swap;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        const int d = order[i];
        int64_t step = span + (test_one_in(3) ? test_between(1, 3) : 0);

        if (tensor->shape[d] <= 1) {
            tensor->strides[d] = test_between(-100, 100); /* never looked at */
            continue;
        }
        if (layout == TEST_BROADCAST && test_one_in(3)) {
            tensor->strides[d] = 0;
            continue;
        }
        if (i == 0 && test_one_in(2)) {
            step = 1; /* contiguous columns are the common case */
        }
        span += step * (tensor->shape[d] - 1);
        tensor->strides[d] = step;
        if (test_one_in(4)) {
            tensor->strides[d] = -step;
            below += step * (tensor->shape[d] - 1);
        }
    }
    *first = (size_t)below;
    return (size_t)span;
}

test_view test_view_make(npuq_dtype dtype, int ndim, const int64_t *shape, test_layout layout)
{
    const size_t size = npuq_dtype_size(dtype);
    test_view view = {.tensor = npuq_tensor_contiguous(NULL, dtype, ndim, shape)};
    size_t first = 0;
    size_t elements = test_count(ndim, shape);
    uint64_t bytes;

    for (int d = ndim; d < NPUQ_MAX_NDIM; d++) { /* a caller's structure that was never cleared */
        view.tensor.shape[d] = view.tensor.strides[d] = INT64_MAX / 5;
    }
    if (layout != TEST_CONTIGUOUS && elements > 0) {
        elements = lay_out(&view.tensor, layout, &first);
    }
    for (int d = 0; d < ndim && layout != TEST_CONTIGUOUS && elements == 0; d++) {
        view.tensor.strides[d] = INT64_MAX; /* between no elements */
    }
    view.size = elements * size;
    view.guarded = test_guarded_make(view.size, test_one_in(2), test_below(16) * size);
    view.tensor.data = view.guarded.memory + first * size;
    for (size_t i = 0; i < view.size; i += sizeof bytes) {
        bytes = test_random();
        memcpy(view.guarded.memory + i, &bytes, view.size - i < sizeof bytes ? view.size - i : sizeof bytes);
    }
    view.before = test_allocate(view.size);
    memcpy(view.before, view.guarded.memory, view.size);
    return view;
}

void test_view_free(test_view *view)
{
    test_guarded_free(&view->guarded);
    free(view->before);
    view->before = NULL;
}

void test_view_any_flags(const npuq_tensor *words)
{
    const size_t count = test_count(words->ndim, words->shape);
    const uint64_t fields = (uint64_t)0x3FF << 37;
    const uint64_t random = test_one_in(2) ? fields : 0; /* 0: scales alone */
    uint64_t *elements = test_allocate(count * sizeof *elements);

    test_view_read(words, elements);
    for (size_t i = 0; i < count; i++) {
        elements[i] = (elements[i] & ~fields) | (test_random() & random);
    }
    test_view_write(words, elements);
    free(elements);
}

void test_put_integer(const npuq_tensor *view, int64_t i, int64_t value)
{
    const int64_t at = i * view->strides[view->ndim - 1];

    if (view->dtype == NPUQ_INT32) {
        ((int32_t *)view->data)[at] = (int32_t)value;
    } else {
        ((int64_t *)view->data)[at] = value;
    }
}

void test_view_untouched(const test_view *view)
{
    if (memcmp(view->guarded.memory, view->before, view->size) != 0) { /* cmocka compares byte by byte */
        assert_memory_equal(view->guarded.memory, view->before, view->size);
    }
}

void test_view_untouched_outside(const test_view *view)
{
    /* Put the elements back as they were; nothing else may differ. */
    const size_t size = npuq_dtype_size(view->tensor.dtype);
    const ptrdiff_t first = (unsigned char *)view->tensor.data - view->guarded.memory;
    npuq_tensor old = view->tensor;
    unsigned char *elements = test_allocate(test_count(old.ndim, old.shape) * size);

    old.data = view->before + first;
    test_view_read(&old, elements);
    test_view_write(&view->tensor, elements);
    test_view_untouched(view);
    free(elements);
}

/* ---- executors ---- */

static void run_shuffled(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    size_t ends[9];
    size_t parts = 1 + test_below(8);

    (void)context;
    parts = parts < count ? parts : count;
    for (size_t i = 0; i <= parts; i++) {
        ends[i] = count * i / parts;
    }
    /* every part once, from anywhere, in either direction */
    const size_t start = test_below(parts);
    const bool backwards = test_one_in(2);
    for (size_t k = 0; k < parts; k++) {
        const size_t i = backwards ? (start + parts - k) % parts : (start + k) % parts;
        if (ends[i] < ends[i + 1]) {
            task(argument, ends[i], ends[i + 1]);
        }
    }
}

const npuq_executor test_shuffled_executor = {run_shuffled, NULL};

void *test_run_part(void *part)
{
    const test_part *p = part;

    if (p->begin < p->end) {
        p->task(p->argument, p->begin, p->end);
    }
    return NULL;
}

void test_run_parts(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end), void *argument)
{
    const size_t *ends = context;
    test_part parts[TEST_THREADS];

    for (size_t i = 0; i < TEST_THREADS; i++) {
        parts[i] = (test_part){task, argument, count * ends[i] / 1000, count * ends[i + 1] / 1000};
    }
#ifdef __wasi__
    for (size_t i = 0; i < TEST_THREADS; i++) {
        (void)test_run_part(&parts[i]);
    }
#else
    pthread_t threads[TEST_THREADS];

    for (size_t i = 0; i < TEST_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, test_run_part, &parts[i]), 0);
    }
    for (size_t i = 0; i < TEST_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
#endif
}

void test_same_at(const void *got, const void *expected, size_t size, const char *file, int line, const char *format,
                  ...)
{
    const unsigned char *a = got;
    const unsigned char *b = expected;

    va_list arguments;
    size_t i = 0;

    if (size == 0 || memcmp(a, b, size) == 0) {
        return;
    }
    while (a[i] == b[i]) {
        i++;
    }
    va_start(arguments, format);
    print_error("%s:%d: backend %s: byte %zu of %zu: got %02x, expected %02x: ", file, line,
                npuq_backend_name(npuq_active_backend()), i, size, a[i], b[i]);
    vprint_error(format, arguments);
    print_error("\n");
    va_end(arguments);
    fail();
}
