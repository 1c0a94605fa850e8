/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool's reader of .npy files. The parser reads memory that ends with the input. The reader takes the same bytes as
 * a mapped file and from a pipe, with the same outcome. */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "input.h"

#include "npy.h"
#include "npz.h"
#include "report.h"
#include "tensor_file.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static char reported[512];

/* In place of the tool's: keeps the message without the name of the file. */
bool report_error(const char *format, ...)
{
    char line[sizeof reported];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const char *colon = strstr(line, ": ");
    memcpy(reported, line, sizeof line);
    if (colon) {
        memmove(reported, colon + 2, strlen(colon + 2) + 1);
    }
    return false;
}

static void check_message(const char *message)
{
    if (*message == '\0') {
        FINDING("refused without a message");
    }
    for (; *message != '\0'; message++) {
        if (*message < ' ' || *message > '~') {
            FINDING("a message that is not one printable line");
        }
    }
}

/* An accepted header is consistent, and a header written from it says the same. */
static void check_header(const struct npy *npy)
{
    char header[NPY_HEADER_SIZE];
    char message[160];
    struct npy again;
    size_t count = 1;

    if (npy->ndim < 0 || npy->ndim > NPY_MAX_NDIM || npy->item_size != (size_t)(npy->type[1] - '0')) {
        FINDING("%d dimensions of %zu bytes", npy->ndim, npy->item_size);
    }
    for (int d = 0; d < npy->ndim; d++) {
        if (npy->shape[d] < 0) {
            FINDING("a negative extent");
        }
        count *= (size_t)npy->shape[d]; /* modulo a power of 2, so 0 stays 0 */
    }
    if (npy->count != count || npy->data_size != count * npy->item_size || npy->data_size / npy->item_size != count) {
        FINDING("%zu elements, %zu bytes", npy->count, npy->data_size);
    }
    const size_t size = npy_format_header(header, npy->type, npy->ndim, npy->shape);
    if (size > sizeof header || !npy_parse_header(header, size, &again, message, sizeof message)) {
        FINDING("the header made from an accepted one is refused");
    }
    if (again.ndim != npy->ndim || memcmp(again.shape, npy->shape, sizeof npy->shape) != 0 ||
        memcmp(again.type, npy->type, sizeof npy->type) != 0 || again.data_size != npy->data_size ||
        again.data_offset != size) {
        FINDING("the header made from an accepted one says something else");
    }
}

/* Parses the input as the shape of a file without a header. */
static void check_text(const uint8_t *data, size_t size)
{
    char text[64] = "";
    char message[160];
    struct npy npy;

    memcpy(text, data, size < sizeof text ? size : sizeof text - 1);
    if (npy_parse_text(">f2", text, &npy, message, sizeof message)) {
        check_header(&npy);
    }
}

static bool check_parser(const uint8_t *data, size_t size)
{
    char message[160] = "";
    struct npy npy;

    if (npy_parse_header(data, size, &npy, message, sizeof message)) {
        if (npy.data_offset > size) {
            FINDING("elements begin behind the end");
        }
        check_header(&npy);
    } else {
        check_message(message);
    }
    message[0] = '\0';
    size_t begin = 0;
    size_t length = size;
    const bool found = !npz_begins(data, size) || npz_find(data, size, NULL, &begin, &length, message, sizeof message);
    if (begin > size || length > size - begin) {
        FINDING("a member behind the end");
    }
    const bool accepted = found && npy_parse(data + begin, length, &npy, message, sizeof message);
    if (!accepted) {
        check_message(message);
    } else if (npy.data_offset + npy.data_size != length) {
        FINDING("accepted with a wrong length");
    }
    return accepted;
}

/* ---- as files --------------------------------------------------------------------------------------------------- */

/* A file without a name: a target that fails leaves nothing behind. */
static int scratch = -1;

static void write_scratch(const uint8_t *data, size_t size)
{
    if (scratch < 0) {
        char path[] = "/tmp/fuzz_npy.XXXXXX";
        scratch = mkstemp(path);
        (void)unlink(path);
    }
    /* Cut after writing: some file systems flush a file that was emptied. */
    if (pwrite(scratch, data, size, 0) != (ssize_t)size || ftruncate(scratch, (off_t)size) != 0) {
        perror("scratch file");
        exit(2);
    }
}

static bool load_descriptor(struct tensor_file *file, int descriptor)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/dev/fd/%d", descriptor);
    return tensor_file_load(file, path);
}

/* A pipe takes so many bytes at once: no second thread is needed. */
enum { PIPE_SIZE = 16384 };

static bool load_through_pipe(struct tensor_file *file, const uint8_t *data, size_t size)
{
    int ends[2];

    if (pipe(ends) != 0 || write(ends[1], data, size) != (ssize_t)size) {
        perror("pipe");
        exit(2);
    }
    (void)close(ends[1]);
    const bool loaded = load_descriptor(file, ends[0]);
    (void)close(ends[0]);
    return loaded;
}

static size_t size_of(const npuq_tensor *tensor)
{
    size_t size = npuq_dtype_size(tensor->dtype);
    for (int d = 0; d < tensor->ndim; d++) {
        size *= (size_t)tensor->shape[d];
    }
    return size;
}

static void check_loaded(const struct tensor_file *mapped, const struct tensor_file *piped)
{
    const npuq_tensor *a = &mapped->tensor;
    const npuq_tensor *b = &piped->tensor;

    if ((uintptr_t)a->data % npuq_dtype_size(a->dtype) != 0 || (uintptr_t)b->data % npuq_dtype_size(b->dtype) != 0) {
        FINDING("misaligned elements");
    }
    if (a->dtype != b->dtype || a->ndim != b->ndim || memcmp(a->shape, b->shape, sizeof a->shape) != 0 ||
        memcmp(a->strides, b->strides, sizeof a->strides) != 0 || memcmp(a->data, b->data, size_of(a)) != 0) {
        FINDING("a file and a pipe give different tensors");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tensor_file mapped;
    struct tensor_file piped;
    char message[sizeof reported];

    data = data ? data : (const uint8_t *)""; /* of an empty input */
    const bool accepted = check_parser(data, size);

    check_text(data, size);
    if (size > PIPE_SIZE) {
        return 0;
    }
    write_scratch(data, size);
    const bool loaded = load_descriptor(&mapped, scratch);
    memcpy(message, reported, sizeof message);
    if (loaded != accepted || load_through_pipe(&piped, data, size) != accepted) {
        FINDING("parser, file and pipe disagree: %s", reported);
    }
    if (accepted) {
        check_loaded(&mapped, &piped);
        tensor_file_release(&mapped);
        tensor_file_release(&piped);
    } else if (strcmp(message, reported) != 0) {
        FINDING("a file: %s; a pipe: %s", message, reported);
    }
    return 0;
}
