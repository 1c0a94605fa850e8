/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor_file.h"

#include "npy.h"
#include "npz.h"
#include "os.h"
#include "report.h"

#include <dtypes.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SIZE = 160 };

#define NO_ARCHIVE "%s: is not an .npz archive, and has no member %s"

size_t tensor_element_count(const npuq_tensor *tensor)
{
    size_t count = 1;

    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] == 0) { /* other extents may be anything */
            return 0;
        }
        count *= (size_t)tensor->shape[d];
    }
    return count;
}

size_t tensor_byte_count(const npuq_tensor *tensor)
{
    return tensor_element_count(tensor) * npuq_dtype_size(tensor->dtype);
}

bool tensor_allocate(npuq_tensor *tensor)
{
    const npuq_tensor shaped = npuq_tensor_contiguous(NULL, tensor->dtype, tensor->ndim, tensor->shape);
    const size_t size = tensor_byte_count(tensor);

    *tensor = shaped;
    tensor->data = malloc(size > 0 ? size : 1);
    if (!tensor->data) {
        return report_error("out of memory for %zu bytes", size);
    }
    /* Touches the memory, so that the operator's time includes no page faults. */
    memset(tensor->data, 0, size);
    return true;
}

const char *tensor_format_shape(char text[TENSOR_SHAPE_SIZE], const npuq_tensor *tensor)
{
    int used = snprintf(text, TENSOR_SHAPE_SIZE, "[");

    for (int d = 0; d < tensor->ndim; d++) {
        used +=
            snprintf(text + used, TENSOR_SHAPE_SIZE - (size_t)used, "%s%" PRId64, d > 0 ? ", " : "", tensor->shape[d]);
    }
    (void)snprintf(text + used, TENSOR_SHAPE_SIZE - (size_t)used, "]");
    return text;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* The first row with the type counts: int32 for i4, and bfloat16 for u2. NumPy has no bfloat16, so writers use any
 * 16-bit type for its bits. */
static npuq_dtype type_of(const struct npy *npy)
{
    const char *type = npy->item_size == 2 && npy->type[0] != 'f' ? "u2" : npy->type;
    int i = 0;

    while (i < DTYPES - 1 && strcmp(dtypes[i].npy, type) != 0) {
        i++;
    }
    return dtypes[i].dtype;
}

static npuq_tensor view_of(const struct npy *npy, const void *data)
{
    npuq_tensor tensor = {.data = (void *)(uintptr_t)data, .dtype = type_of(npy), .ndim = npy->ndim};
    int64_t stride = 1;

    memcpy(tensor.shape, npy->shape, sizeof npy->shape);
    for (int i = 0; i < npy->ndim && npy->count > 0; i++) {
        const int d = npy->fortran_order ? i : npy->ndim - 1 - i;
        tensor.strides[d] = stride;
        stride *= npy->shape[d];
    }
    return tensor;
}

static void swap_bytes(unsigned char *bytes, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++, bytes += size) {
        for (size_t low = 0, high = size - 1; low < high; low++, high--) {
            const unsigned char byte = bytes[low];
            bytes[low] = bytes[high];
            bytes[high] = byte;
        }
    }
}

static void *allocate(const char *path, size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);

    if (!memory) {
        report_error("%s: out of memory for %zu bytes", path, size);
    }
    return memory;
}

/* Whether the text after a file's name is TYPE:SHAPE, of a file of elements alone, and not a member. */
static bool is_raw(const char *rest)
{
    return rest && strchr(rest, ':');
}

static bool parse_raw(struct tensor_file *file, const char *path, const char *rest, struct npy *npy)
{
    char message[MESSAGE_SIZE];
    char type[16];

    (void)snprintf(type, sizeof type, "%.*s", (int)strcspn(rest, ":"), rest);
    const struct dtype *named = dtype_named(type);
    file->is_bfloat16 = named && named->dtype == NPUQ_BFLOAT16;
    return npy_parse_text(named ? named->npy : type, strchr(rest, ':') + 1, npy, message, sizeof message) ||
           report_error("%s: %s", path, message);
}

static bool check_size(const char *path, const struct npy *npy, uint64_t size)
{
    char message[MESSAGE_SIZE];

    return npy_check_size(npy, size, message, sizeof message) || report_error("%s: %s", path, message);
}

/* Parses the bytes of a whole file, or its member. */
static bool parse_whole(struct tensor_file *file, const char *path, const char *rest, const unsigned char *bytes,
                        size_t size, struct npy *npy)
{
    char message[MESSAGE_SIZE];
    size_t begin = 0;

    if (is_raw(rest)) {
        return parse_raw(file, path, rest, npy) && check_size(path, npy, size);
    }
    if (rest && !npz_begins(bytes, size)) {
        report_error(NO_ARCHIVE, path, rest);
        return false;
    }
    if ((npz_begins(bytes, size) && !npz_find(bytes, size, rest, &begin, &size, message, sizeof message)) ||
        !npy_parse(bytes + begin, size, npy, message, sizeof message)) {
        report_error("%s: %s", path, message);
        return false;
    }
    npy->data_offset += begin;
    return true;
}

static bool parse_mapped(struct tensor_file *file, const char *path, const char *rest, struct npy *npy)
{
    if (!parse_whole(file, path, rest, file->mapped, (size_t)file->source.size, npy)) {
        return false;
    }

    const unsigned char *data = (const unsigned char *)file->mapped + npy->data_offset;
    if (npy->swapped || (uintptr_t)data % npy->item_size != 0) { /* operators need aligned data in native order */
        file->owned = allocate(path, npy->data_size);
        if (!file->owned) {
            return false;
        }
        memcpy(file->owned, data, npy->data_size);
        data = file->owned;
    }
    file->tensor = view_of(npy, data);
    return true;
}

/* Reads from behind the prefix to the end, or until more than `most` bytes are there; *size is the number of bytes.
 * Memory grows with the data, since a header can promise anything. */
static bool read_rest(struct tensor_file *file, const char *path, const unsigned char *prefix, size_t prefix_size,
                      size_t most, size_t *size)
{
    size_t done = prefix_size;
    size_t room = done > NPY_MAX_PREFIX ? done : NPY_MAX_PREFIX;
    int64_t n = 1;

    file->owned = allocate(path, room);
    if (!file->owned) {
        return false;
    }
    memcpy(file->owned, prefix, done);
    while (n > 0 && done <= most) {
        if (done == room) {
            void *larger = realloc(file->owned, room * 2);
            if (!larger) {
                return report_error("%s: out of memory for %zu bytes", path, room * 2);
            }
            file->owned = larger;
            room *= 2;
        }
        n = os_read(&file->source, (char *)file->owned + done, room - done);
        if (n < 0) {
            return report_error("%s: %s", path, os_error());
        }
        done += (size_t)n;
    }
    *size = done;
    return true;
}

/* Reads the whole archive, then keeps only the member's data. */
static bool read_archive(struct tensor_file *file, const char *path, const char *rest, const unsigned char *prefix,
                         size_t prefix_size, struct npy *npy)
{
    size_t size = 0;

    if (!read_rest(file, path, prefix, prefix_size, SIZE_MAX, &size) ||
        !parse_whole(file, path, rest, file->owned, size, npy)) {
        return false;
    }
    memmove(file->owned, (char *)file->owned + npy->data_offset, npy->data_size);
    return true;
}

static bool read_data(struct tensor_file *file, const char *path, const char *rest, const unsigned char *prefix,
                      size_t prefix_size, struct npy *npy)
{
    char message[MESSAGE_SIZE];
    size_t size = 0;

    if (is_raw(rest)) {
        if (!parse_raw(file, path, rest, npy)) {
            return false;
        }
    } else if (!npy_parse_header(prefix, prefix_size, npy, message, sizeof message)) {
        return report_error("%s: %s", path, message);
    }
    if (!read_rest(file, path, prefix + npy->data_offset, prefix_size - npy->data_offset, npy->data_size, &size)) {
        return false;
    }
    return check_size(path, npy, npy->data_offset + size);
}

static bool read_file(struct tensor_file *file, const char *path, const char *rest, struct npy *npy)
{
    bool ok = false;
    unsigned char *prefix = allocate(path, NPY_MAX_PREFIX);
    const int64_t size = prefix ? os_read(&file->source, prefix, NPY_MAX_PREFIX) : 0;

    if (size < 0) {
        report_error("%s: %s", path, os_error());
    } else if (prefix && !is_raw(rest) && npz_begins(prefix, (size_t)size)) {
        ok = read_archive(file, path, rest, prefix, (size_t)size, npy);
    } else if (prefix && rest && !is_raw(rest)) {
        report_error(NO_ARCHIVE, path, rest);
    } else if (prefix) {
        ok = read_data(file, path, rest, prefix, (size_t)size, npy);
    }
    if (ok) {
        file->tensor = view_of(npy, file->owned);
    }
    free(prefix);
    return ok;
}

/* Opens a file whose name is the path, or ends at one of its colons; *rest is the text after the name. */
static bool open_named(const char *path, struct os_file *source, const char **rest)
{
    if (os_open(path, source)) {
        return true;
    }
    const size_t size = strlen(path) + 1;
    char *name = strchr(path, ':') ? allocate(path, size) : NULL;
    char *colon = name ? strrchr(memcpy(name, path, size), ':') : NULL;
    while (colon) {
        *colon = '\0';
        if (os_open(name, source)) {
            *rest = path + (colon - name) + 1;
            break;
        }
        colon = strrchr(name, ':');
    }
    free(name);
    return colon || os_open(path, source); /* again, for its error */
}

bool tensor_file_load(struct tensor_file *file, const char *path)
{
    struct npy npy = {0};
    const char *rest = NULL;

    memset(file, 0, sizeof *file);
    const bool opened = open_named(path, &file->source, &rest);
    if (strcmp(path, "-") == 0) {
        path = "stdin";
    }
    if (!opened) {
        return report_error("%s: %s", path, os_error());
    }
    file->path = path;
    file->mapped = os_map(&file->source, path);
    const bool loaded = file->mapped ? parse_mapped(file, path, rest, &npy) : read_file(file, path, rest, &npy);
    if (!file->mapped) {
        os_close(&file->source);
    }
    if (!loaded) {
        tensor_file_release(file);
        return false;
    }
    if (npy.swapped) {
        swap_bytes(file->owned, npy.count, npy.item_size);
    }
    memcpy(file->type, npy.type, sizeof file->type);
    return true;
}

/* Reports the value of element i of the data, and why it is an error. */
static bool report_element(const struct tensor_file *file, size_t i, uint64_t bits, const char *why)
{
    npuq_tensor place = file->tensor;
    char index[TENSOR_SHAPE_SIZE];
    char value[DTYPE_TEXT_SIZE];

    for (int d = 0; d < place.ndim; d++) {
        place.shape[d] = (int64_t)i / place.strides[d] % place.shape[d];
    }
    return report_error("%s: %s is %s, which %s", file->path, tensor_format_shape(index, &place),
                        dtype_format(value, file->tensor.dtype, bits), why);
}

bool tensor_file_to_bfloat16(struct tensor_file *file)
{
    const size_t count = tensor_element_count(&file->tensor);
    const unsigned char *from = file->tensor.data;

    if (!file->owned) {
        file->owned = allocate(file->path, count * sizeof(uint16_t));
    }
    unsigned char *to = file->owned; /* perhaps the same memory: writing follows reading */
    for (size_t i = 0; to && i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        const uint16_t upper = (uint16_t)(bits >> 16);
        if ((bits & 0xFFFF) != 0) {
            return report_element(file, i, bits, "no bfloat16 is: its lower 16 bits are not 0");
        }
        memcpy(to + i * sizeof upper, &upper, sizeof upper);
    }
    file->tensor.data = to;
    file->tensor.dtype = NPUQ_BFLOAT16;
    return to != NULL;
}

/* The number of values in an element, 1 or 2, if the tensor has as many values as the words; else 0. */
static int values_in_bytes(const npuq_tensor *tensor, const npuq_tensor *words)
{
    const int last = words->ndim - 1;

    if ((tensor->dtype != NPUQ_INT8 && tensor->dtype != NPUQ_UINT8) || last < 0 || tensor->ndim != words->ndim ||
        memcmp(tensor->shape, words->shape, (size_t)last * sizeof words->shape[0]) != 0) {
        return 0;
    }
    if (tensor->shape[last] % 4 == 0 && tensor->shape[last] / 4 == words->shape[last]) {
        return 2;
    }
    return tensor->dtype == NPUQ_INT8 && tensor->shape[last] % 8 == 0 && tensor->shape[last] / 8 == words->shape[last];
}

/* The position in the data of element i in C order. */
static size_t offset_of(const npuq_tensor *tensor, size_t i)
{
    size_t offset = 0;

    for (int d = tensor->ndim - 1; d >= 0; d--) {
        offset += i % (size_t)tensor->shape[d] * (size_t)tensor->strides[d];
        i /= (size_t)tensor->shape[d];
    }
    return offset;
}

bool tensor_file_to_quint4x2(struct tensor_file *file, const npuq_tensor *words)
{
    const int values = values_in_bytes(&file->tensor, words);
    const size_t count = tensor_element_count(&file->tensor);
    npuq_tensor made = npuq_tensor_contiguous(NULL, NPUQ_QUINT4X2, words->ndim, words->shape);

    if (values == 0) {
        return true;
    }
    if (!tensor_allocate(&made)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t offset = offset_of(&file->tensor, i);
        const uint64_t bits = dtype_load(NPUQ_INT8, file->tensor.data, offset);
        const int64_t value = dtype_order(NPUQ_INT8, bits);
        if (values == 1 && (value < -8 || value > 7)) {
            free(made.data);
            return report_element(file, offset, bits, "no int4 is: these are -8..7");
        }
        for (int v = 0; v < values; v++) {
            dtype_store(NPUQ_QUINT4X2, made.data, i * (size_t)values + (size_t)v, bits >> 4 * v);
        }
    }
    free(file->owned);
    file->owned = made.data;
    file->tensor = made;
    return true;
}

bool tensor_file_is_whole(const struct tensor_file *file)
{
    return !file->mapped || os_is_whole(&file->source) ||
           report_error("%s: was cut short while it was in use", file->path);
}

void tensor_file_release(struct tensor_file *file)
{
    if (file->mapped) {
        os_unmap(file->mapped, (size_t)file->source.size);
        os_close(&file->source);
    }
    free(file->owned);
    memset(file, 0, sizeof *file);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static bool write_tensor(FILE *stream, const npuq_tensor *tensor)
{
    char header[NPY_HEADER_SIZE];
    const size_t header_size = npy_format_header(header, dtype_of(tensor->dtype)->npy, tensor->ndim, tensor->shape);
    const size_t count = tensor_element_count(tensor);

    return fwrite(header, 1, header_size, stream) == header_size &&
           fwrite(tensor->data, npuq_dtype_size(tensor->dtype), count, stream) == count;
}

/* Closes a temporary file, or null if opening failed; even closing may fail to write. */
static bool complete(const struct staged_file *file, FILE *stream, bool written)
{
    if (stream && !written) {
        report_error("%s: cannot be written: %s", file->path, os_error());
        (void)fclose(stream);
        return false;
    }
    return (stream && os_finish(stream)) || report_error("%s: cannot be written: %s", file->path, os_error());
}

bool staged_file_write(struct staged_file *file, const char *path, const npuq_tensor *tensor)
{
    const enum os_output kind = os_output_kind(path);

    file->path = path;
    file->shown_path = kind == OS_STDOUT ? "stdout" : path;
    if (kind != OS_FILE) {
        file->streamed = tensor;
        return true;
    }
    FILE *stream = os_create_beside(path, &file->temporary);
    return complete(file, stream, stream && write_tensor(stream, tensor));
}

bool staged_file_write_text(struct staged_file *file, const char *path, const char *text)
{
    file->path = path;
    file->shown_path = path;
    FILE *stream = os_create_beside(path, &file->temporary);
    return complete(file, stream, stream && fputs(text, stream) >= 0);
}

static bool write_stream(const struct staged_file *file)
{
    FILE *stream = os_open_stream(file->path);
    const bool written = stream && write_tensor(stream, file->streamed);
    const bool taken = stream && (stream == stdout ? fflush(stream) : fclose(stream)) == 0; /* stdout stays open */

    return (taken && written) || report_error("%s: cannot be written: %s", file->shown_path, os_error());
}

static bool give_name(struct staged_file *file)
{
    if (file->streamed) {
        return true;
    }
    if (!os_rename(file->temporary, file->path)) {
        return false;
    }
    free(file->temporary);
    file->temporary = NULL;
    return true;
}

static bool take_back(struct staged_file *file)
{
    if (file->kept) {
        return os_rename(file->kept, file->path);
    }
    if (file->undoable) {
        os_remove(file->path);
    }
    return file->undoable;
}

bool staged_files_commit(struct staged_file *files, int count)
{
    const char *stays = NULL;
    int named = 0;

    /* Streams come first: after a failure here nothing is renamed, and a reader that blocks can be given up on. */
    for (int i = 0; i < count; i++) {
        if (files[i].streamed && !write_stream(&files[i])) {
            return false;
        }
    }
    /* A signal must not separate renamed files from others. */
    os_hold_signals();
    for (int i = 0; i + 1 < count; i++) { /* no later rename can fail after the last one */
        files[i].undoable = !files[i].streamed && os_keep_beside(files[i].path, &files[i].kept);
    }
    while (named < count && give_name(&files[named])) {
        named++;
    }
    const char *refusal = named < count ? os_error() : NULL;
    for (int i = 0; refusal && i < count; i++) {
        if ((i < named || files[i].streamed) && !take_back(&files[i])) {
            stays = files[i].shown_path;
        }
    }
    for (int i = 0; i < count; i++) {
        if (files[i].kept) {
            os_remove(files[i].kept);
            free(files[i].kept);
            files[i].kept = NULL;
        }
    }
    os_release_signals();
    if (stays) {
        return report_error("%s: cannot be written: %s; but %s is, and cannot be taken back", files[named].path,
                            refusal, stays);
    }
    return !refusal || report_error("%s: cannot be written: %s", files[named].path, refusal);
}

void staged_file_release(struct staged_file *file)
{
    if (file->temporary) {
        os_remove(file->temporary);
        free(file->temporary);
        file->temporary = NULL;
    }
}
