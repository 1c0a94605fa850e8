/* SPDX-License-Identifier: BSD-3-Clause */
#include "npy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
#define OF_PICKLE " but a pickle; load it where it was made and write numpy.save(path, array)"
enum { MAGIC_SIZE = 6, HEADER_ALIGNMENT = 64 };

static bool is_little_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;

    memcpy(&first, &one, 1);
    return first == 1;
}

/* ---- the dictionary -------------------------------------------------------------------------------------------- */

struct reader {
    const char *at;
    const char *end;
    char *message;
    size_t message_size;
};

static bool fail(const struct reader *reader, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

static bool fail(const struct reader *reader, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reader->message, reader->message_size, format, arguments);
    va_end(arguments);
    return false;
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n\f", *reader->at) && *reader->at != '\0') {
        reader->at++;
    }
}

/* The next character that is not a space, or 0 at the end. */
static char peek(struct reader *reader)
{
    skip_space(reader);
    return reader->at < reader->end ? *reader->at : '\0';
}

static bool accept(struct reader *reader, char wanted)
{
    if (wanted != '\0' && peek(reader) == wanted) {
        reader->at++;
        return true;
    }
    return false;
}

static bool expect(struct reader *reader, char wanted, const char *where)
{
    return accept(reader, wanted) || fail(reader, "malformed header: no '%c' %s", wanted, where);
}

/* A string literal without escapes, of fewer than size bytes. Longer strings and control characters match nothing that
 * the reader knows, so their text is not kept. */
static bool read_string(struct reader *reader, char *text, size_t size, const char *what)
{
    const char quote = peek(reader);
    size_t length = 0;

    if (quote != '\'' && quote != '"') {
        return fail(reader, "malformed header: %s is not a string", what);
    }
    reader->at++;
    while (reader->at < reader->end && *reader->at != quote) {
        const char c = *reader->at++;
        if (c < ' ' || c > '~' || c == '\\' || length + 1 >= size) {
            return fail(reader, "malformed header: %s is not a string that .npy files have", what);
        }
        text[length++] = c;
    }
    text[length] = '\0';
    return reader->at++ < reader->end || fail(reader, "malformed header: %s does not end", what);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_extent(struct reader *reader, int64_t *extent)
{
    const char first = peek(reader);

    if (first == '-') {
        return fail(reader, "malformed header: negative extent in shape");
    }
    if (!is_digit(first)) {
        return fail(reader, "malformed header: shape holds something that is not an integer");
    }
    *extent = 0;
    while (reader->at < reader->end && is_digit(*reader->at)) {
        const int digit = *reader->at++ - '0';
        if (*extent > (INT64_MAX - digit) / 10) {
            return fail(reader, "shape is too large: an extent does not fit in 64 bits");
        }
        *extent = *extent * 10 + digit;
    }
    if (reader->at < reader->end && *reader->at == 'L') { /* Python 2's form of long integers */
        reader->at++;
    }
    return true;
}

static bool append_extent(struct reader *reader, struct npy *npy)
{
    if (npy->ndim == NPY_MAX_NDIM) {
        return fail(reader, "more than %d dimensions", NPY_MAX_NDIM);
    }
    return read_extent(reader, &npy->shape[npy->ndim++]);
}

static bool read_shape(struct reader *reader, struct npy *npy)
{
    bool comma = true;

    npy->ndim = 0;
    if (!expect(reader, '(', "before shape")) {
        return false;
    }
    while (!accept(reader, ')')) {
        if (!comma) {
            return fail(reader, "malformed header: no ',' between extents");
        }
        if (!append_extent(reader, npy)) {
            return false;
        }
        comma = accept(reader, ',');
    }
    if (npy->ndim == 1 && !comma) { /* a number in Python, not a tuple */
        return fail(reader, "malformed header: shape is not a tuple");
    }
    return true;
}

static bool read_order(struct reader *reader, struct npy *npy)
{
    static const char *const words[] = {"False", "True"};

    skip_space(reader);
    for (int value = 0; value < 2; value++) {
        const size_t length = strlen(words[value]);
        if ((size_t)(reader->end - reader->at) >= length && memcmp(reader->at, words[value], length) == 0) {
            reader->at += length;
            npy->fortran_order = value;
            return true;
        }
    }
    return fail(reader, "malformed header: fortran_order is neither True nor False");
}

#define EXPECTED_TYPES "expected one of f4 f2 i1 u1 i4 i8 u8 u2 i2 V2"

static bool take_type(const struct reader *reader, const char *descr, struct npy *npy)
{
    static const char *const types[] = {"f4", "f2", "i1", "u1", "i4", "i8", "u8", "u2", "i2", "V2"};
    const char *type = descr;
    bool little = is_little_endian();

    if (*type != '\0' && strchr("<>=|", *type)) {
        little = *type == '<' || (*type != '>' && little);
        type++;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(type, types[i]) == 0) {
            memcpy(npy->type, types[i], sizeof npy->type);
            npy->item_size = (size_t)(types[i][1] - '0');
            npy->swapped = npy->item_size > 1 && little != is_little_endian();
            return true;
        }
    }
    return fail(reader, "elements of type '%s'; " EXPECTED_TYPES "%s", descr,
                strcmp(type, "f8") == 0 ? "; float64 becomes f4 with astype(np.float32)" : "");
}

static bool read_type(struct reader *reader, struct npy *npy)
{
    char descr[16];

    if (peek(reader) == '[') {
        return fail(reader, "structured elements; " EXPECTED_TYPES);
    }
    return read_string(reader, descr, sizeof descr, "descr") && take_type(reader, descr, npy);
}

typedef bool read_entry(struct reader *reader, struct npy *npy);

static const struct {
    const char *key;
    read_entry *read;
} entries[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};

enum { ENTRIES = sizeof entries / sizeof entries[0] };

static bool read_one_entry(struct reader *reader, struct npy *npy, bool seen[ENTRIES])
{
    char key[32];
    size_t i = 0;

    if (!read_string(reader, key, sizeof key, "a key") || !expect(reader, ':', "after a key")) {
        return false;
    }
    while (i < ENTRIES && strcmp(key, entries[i].key) != 0) {
        i++;
    }
    if (i == ENTRIES) {
        return fail(reader, "malformed header: unknown key '%s'", key);
    }
    if (seen[i]) {
        return fail(reader, "malformed header: two entries for '%s'", key);
    }
    seen[i] = true;
    return entries[i].read(reader, npy);
}

static bool read_dictionary(struct reader *reader, struct npy *npy)
{
    bool seen[ENTRIES] = {false};
    bool comma = true;

    if (!expect(reader, '{', "at the beginning")) {
        return false;
    }
    while (!accept(reader, '}')) {
        if (!comma) {
            return fail(reader, "malformed header: no ',' between entries");
        }
        if (!read_one_entry(reader, npy, seen)) {
            return false;
        }
        comma = accept(reader, ',');
    }
    for (size_t i = 0; i < ENTRIES; i++) {
        if (!seen[i]) {
            return fail(reader, "malformed header: no entry for '%s'", entries[i].key);
        }
    }
    skip_space(reader);
    return reader->at == reader->end || fail(reader, "malformed header: more than a dictionary");
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

/* Describes a file of another kind: its kind, and how to make a .npy file. The first match counts. */
static const char *describe_other(const unsigned char *bytes, size_t size)
{
    static const struct {
        const char *begin;
        size_t length;
        const char *text;
    } kinds[] = {
        {"\x1f\x8b", 2, " but gzip; gunzip it first"},
        {"\x80\2\x8a\x0a\x6c\xfc\x9c\x46", 8, NPY_OF_PYTORCH},
        {"\x80\2", 2, OF_PICKLE},
        {"\x80\3", 2, OF_PICKLE},
        {"\x80\4", 2, OF_PICKLE},
        {"\x80\5", 2, OF_PICKLE},
        {"\x89HDF\r\n", 6, " but HDF5; write it with numpy.save(path, dataset[...])"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (size >= kinds[i].length && memcmp(bytes, kinds[i].begin, kinds[i].length) == 0) {
            return kinds[i].text;
        }
    }
    /* The length of a JSON header, far below 2^32, then the header. */
    if (size > 8 && bytes[8] == '{' && memcmp(bytes + 4, "\0\0\0", 4) == 0) {
        return " but safetensors; write it with numpy.save(path, safetensors.numpy.load_file(file)[name])";
    }
    return "";
}

/* Finds the dictionary after magic and version. */
static bool read_preamble(const unsigned char *bytes, size_t size, struct reader *reader)
{
    if (size < MAGIC_SIZE || memcmp(bytes, magic, MAGIC_SIZE) != 0) {
        return fail(reader, "not a .npy file%s", describe_other(bytes, size));
    }
    if (size < 10) {
        return fail(reader, "truncated: the file ends inside the header");
    }
    const int major = bytes[6];
    const int minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0) {
        return fail(reader, "version %d.%d of the .npy format; expected 1.0, 2.0 or 3.0", major, minor);
    }

    const size_t length_size = major == 1 ? 2 : 4;
    size_t length = 0;
    if (size < 8 + length_size) {
        return fail(reader, "truncated: the file ends inside the header");
    }
    for (size_t i = length_size; i-- > 0;) { /* little-endian everywhere */
        length = length << 8 | bytes[8 + i];
    }
    if (length > NPY_MAX_HEADER) {
        return fail(reader, "a header of %zu bytes; more than %d are not accepted", length, NPY_MAX_HEADER);
    }
    if (length > size - 8 - length_size) {
        return fail(reader, "truncated: the file ends inside the header");
    }
    reader->at = (const char *)bytes + 8 + length_size;
    reader->end = reader->at + length;
    return true;
}

/* An empty tensor may have any other extents: only the number of its elements counts. */
static bool count_elements(const struct reader *reader, struct npy *npy)
{
    bool empty = false;

    for (int d = 0; d < npy->ndim; d++) {
        empty = empty || npy->shape[d] == 0;
    }
    npy->count = empty ? 0 : 1;
    for (int d = 0; d < npy->ndim && !empty; d++) {
        if ((uint64_t)npy->shape[d] > SIZE_MAX / npy->item_size / npy->count) {
            return fail(reader, "shape is too large: it does not fit in the address space");
        }
        npy->count *= (size_t)npy->shape[d];
    }
    npy->data_size = npy->count * npy->item_size;
    return true;
}

bool npy_parse_header(const void *bytes, size_t size, struct npy *npy, char *message, size_t message_size)
{
    struct reader reader = {.message = message, .message_size = message_size};

    memset(npy, 0, sizeof *npy);
    if (!read_preamble(bytes, size, &reader)) {
        return false;
    }
    npy->data_offset = (size_t)(reader.end - (const char *)bytes);
    return read_dictionary(&reader, npy) && count_elements(&reader, npy);
}

bool npy_parse_text(const char *type, const char *shape, struct npy *npy, char *message, size_t message_size)
{
    struct reader reader = {
        .at = shape, .end = shape + strlen(shape), .message = message, .message_size = message_size};

    memset(npy, 0, sizeof *npy);
    if (!take_type(&reader, type, npy)) {
        return false;
    }
    bool more = true;
    while (more && is_digit(peek(&reader))) {
        if (!append_extent(&reader, npy)) {
            return false;
        }
        more = accept(&reader, ',');
    }
    if (more || reader.at != reader.end) {
        return fail(&reader, "shape '%s': expected numbers, separated by commas", shape);
    }
    return count_elements(&reader, npy);
}

bool npy_check_size(const struct npy *npy, uint64_t size, char *message, size_t message_size)
{
    const struct reader reader = {.message = message, .message_size = message_size};
    const uint64_t data = size - npy->data_offset;

    if (data == npy->data_size) {
        return true;
    }
    return fail(&reader, "%s: the %s promises %zu byte%s of data, the file has %" PRIu64,
                data < npy->data_size ? "truncated" : "too long", npy->data_offset == 0 ? "shape" : "header",
                npy->data_size, npy->data_size == 1 ? "" : "s", data);
}

bool npy_parse(const void *bytes, size_t size, struct npy *npy, char *message, size_t message_size)
{
    return npy_parse_header(bytes, size, npy, message, message_size) &&
           npy_check_size(npy, size, message, message_size);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

size_t npy_format_header(char header[NPY_HEADER_SIZE], const char *type, int ndim, const int64_t *shape)
{
    const char order = type[1] == '1' ? '|' : is_little_endian() ? '<' : '>';
    const size_t preamble = MAGIC_SIZE + 4;
    char *text = header + preamble;
    const size_t room = NPY_HEADER_SIZE - preamble;
    size_t used = (size_t)snprintf(text, room, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, type);

    for (int d = 0; d < ndim; d++) {
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64 "%s", d > 0 ? ", " : "", shape[d],
                                 ndim == 1 ? "," : "");
    }
    used += (size_t)snprintf(text + used, room - used, "), }");

    /* Padded to align the elements, and ended by a line feed, as in NumPy. */
    size_t total = preamble + used + 1;
    total += (HEADER_ALIGNMENT - total % HEADER_ALIGNMENT) % HEADER_ALIGNMENT;
    memset(text + used, ' ', total - preamble - used);
    header[total - 1] = '\n';

    memcpy(header, magic, MAGIC_SIZE);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)((total - preamble) & 0xFF);
    header[9] = (char)((total - preamble) >> 8);
    return total;
}
