/* SPDX-License-Identifier: BSD-3-Clause */
#include "npz.h"

#include "npy.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the format's records without names, extra fields and comments. */
enum { LOCAL_SIZE = 30, ENTRY_SIZE = 46, END_SIZE = 22, LOCATOR_SIZE = 20, END64_SIZE = 56, MOST_COMMENT = 65535 };

struct archive {
    const unsigned char *bytes;
    size_t size;
    char *message;
    size_t message_size;
};

/* The directory's entry of a member. */
struct entry {
    const unsigned char *name;
    size_t name_length;
    unsigned flags;
    unsigned method; /* 0: stored */
    uint64_t size;   /* in the archive */
    uint64_t offset; /* of its own record */
};

static bool fail(const struct archive *archive, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

static bool fail(const struct archive *archive, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(archive->message, archive->message_size, format, arguments);
    va_end(arguments);
    return false;
}

/* Numbers are little-endian everywhere. */
static uint64_t number(const unsigned char *at, int size)
{
    uint64_t value = 0;

    while (size-- > 0) {
        value = value << 8 | at[size];
    }
    return value;
}

/* The record of `size` bytes at offset; null without this mark. */
static const unsigned char *record(const struct archive *archive, uint64_t offset, size_t size, const char *mark)
{
    const bool fits = offset <= archive->size && size <= archive->size - offset;

    return fits && memcmp(archive->bytes + offset, mark, 4) == 0 ? archive->bytes + offset : NULL;
}

bool npz_begins(const void *bytes, size_t size)
{
    return size >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0);
}

/* ---- the directory ---------------------------------------------------------------------------------------------- */

/* Finds the directory by the record at the end of the file; only a comment may follow. */
static bool find_directory(const struct archive *archive, uint64_t *begin, uint64_t *size)
{
    const unsigned char *end = NULL;
    size_t comment = 0;

    for (; !end && comment <= MOST_COMMENT && comment + END_SIZE <= archive->size; comment++) {
        end = record(archive, archive->size - END_SIZE - comment, END_SIZE, "PK\5\6");
        if (end && number(end + 20, 2) != comment) {
            end = NULL;
        }
    }
    if (!end) {
        return fail(archive, "truncated: a zip archive without its directory");
    }
    *size = number(end + 12, 4);
    *begin = number(end + 16, 4);
    if (*size == UINT32_MAX || *begin == UINT32_MAX) { /* the 64-bit record has the numbers */
        const size_t at = (size_t)(end - archive->bytes);
        const unsigned char *locator =
            at >= LOCATOR_SIZE ? record(archive, at - LOCATOR_SIZE, LOCATOR_SIZE, "PK\6\7") : NULL;
        end = locator ? record(archive, number(locator + 8, 8), END64_SIZE, "PK\6\6") : NULL;
        if (!end) {
            return fail(archive, "malformed zip archive: no directory of 64 bits");
        }
        *size = number(end + 40, 8);
        *begin = number(end + 48, 8);
    }
    return (*begin <= archive->size && *size <= archive->size - *begin) ||
           fail(archive, "malformed zip archive: the directory is not inside the file");
}

/* Numbers beyond 32 bits are all ones in the entry; this field has them, in this order. */
static void read_extra(struct entry *entry, uint64_t *whole_size, const unsigned char *extra, size_t size)
{
    uint64_t *const wide[] = {whole_size, &entry->size, &entry->offset};

    while (size >= 4) {
        const size_t length = (size_t)number(extra + 2, 2);
        size_t used = 4;
        if (length > size - 4) {
            return;
        }
        for (int i = 0; number(extra, 2) == 1 && i < 3; i++) {
            if (*wide[i] == UINT32_MAX && used + 8 <= length + 4) {
                *wide[i] = number(extra + used, 8);
                used += 8;
            }
        }
        extra += length + 4;
        size -= length + 4;
    }
}

/* Reads the entry at *at, and moves *at to the next. */
static bool read_entry(const struct archive *archive, uint64_t *at, uint64_t end, struct entry *entry)
{
    const unsigned char *bytes = record(archive, *at, ENTRY_SIZE, "PK\1\2");

    if (!bytes) {
        fail(archive, "malformed zip archive: its directory has something else in it");
        return false;
    }
    const size_t extra_size = (size_t)number(bytes + 30, 2);
    uint64_t whole_size = number(bytes + 24, 4);
    *entry = (struct entry){
        .name = bytes + ENTRY_SIZE,
        .name_length = (size_t)number(bytes + 28, 2),
        .flags = (unsigned)number(bytes + 8, 2),
        .method = (unsigned)number(bytes + 10, 2),
        .size = number(bytes + 20, 4),
        .offset = number(bytes + 42, 4),
    };
    const uint64_t size = ENTRY_SIZE + entry->name_length + extra_size + number(bytes + 32, 2);
    if (size > end - *at) {
        return fail(archive, "malformed zip archive: its directory ends inside an entry");
    }
    read_extra(entry, &whole_size, entry->name + entry->name_length, extra_size);
    *at += size;
    return true;
}

/* ---- members ---------------------------------------------------------------------------------------------------- */

static bool ends_with(const struct entry *entry, const char *end)
{
    const size_t length = strlen(end);

    return entry->name_length >= length && memcmp(entry->name + entry->name_length - length, end, length) == 0;
}

/* The name without .npy, for a message. */
enum { NAME_SIZE = 40 };
static const char *format_name(char text[NAME_SIZE], const struct entry *entry)
{
    size_t length = entry->name_length - (ends_with(entry, ".npy") ? 4 : 0);

    length = length < NAME_SIZE ? length : NAME_SIZE - 1;
    for (size_t i = 0; i < length; i++) {
        text[i] = entry->name[i] >= ' ' && entry->name[i] <= '~' ? (char)entry->name[i] : '?';
    }
    text[length] = '\0';
    return text;
}

static bool is_called(const struct entry *entry, const char *member)
{
    const size_t length = strlen(member);

    return entry->name_length >= length && memcmp(entry->name, member, length) == 0 &&
           (entry->name_length == length || (entry->name_length == length + 4 && ends_with(entry, ".npy")));
}

static bool locate(const struct archive *archive, const struct entry *entry, size_t *offset, size_t *length)
{
    char name[NAME_SIZE];

    if (entry->flags & 1) {
        return fail(archive, "%s is encrypted; expected a stored member", format_name(name, entry));
    }
    if (entry->method != 0) {
        return fail(archive, "%s is compressed; write it with numpy.savez, not numpy.savez_compressed",
                    format_name(name, entry));
    }
    const unsigned char *local = record(archive, entry->offset, LOCAL_SIZE, "PK\3\4");
    if (!local) {
        return fail(archive, "malformed zip archive: %s is not where the directory says", format_name(name, entry));
    }
    const size_t room = archive->size - (size_t)entry->offset - LOCAL_SIZE;
    const size_t before = (size_t)(number(local + 26, 2) + number(local + 28, 2));
    if (before > room || entry->size > room - before) {
        return fail(archive, "malformed zip archive: %s does not end inside the file", format_name(name, entry));
    }
    *offset = (size_t)entry->offset + LOCAL_SIZE + before;
    *length = (size_t)entry->size;
    return true;
}

bool npz_find(const void *bytes, size_t size, const char *member, size_t *offset, size_t *length, char *message,
              size_t message_size)
{
    const struct archive archive = {bytes, size, message, message_size};
    struct entry found = {0};
    char name[NAME_SIZE];
    bool is_pytorch = false;
    size_t count = 0;
    uint64_t at = 0;
    uint64_t directory_size = 0;

    if (!find_directory(&archive, &at, &directory_size)) {
        return false;
    }
    for (const uint64_t end = at + directory_size; at < end;) {
        struct entry entry = {0};
        if (!read_entry(&archive, &at, end, &entry)) {
            return false;
        }
        if (member && is_called(&entry, member)) {
            return locate(&archive, &entry, offset, length);
        }
        is_pytorch = is_pytorch || ends_with(&entry, "/data.pkl");
        if (ends_with(&entry, ".npy")) {
            found = count++ == 0 ? entry : found;
        }
    }
    if (count == 0) {
        return fail(&archive, "not a .npy file%s", is_pytorch ? NPY_OF_PYTORCH : " but a zip archive without one");
    }
    if (member) {
        return fail(&archive, "no such member; the first of %zu is %s", count, format_name(name, &found));
    }
    return count == 1 ? locate(&archive, &found, offset, length)
                      : fail(&archive, "an archive of %zu arrays; name one behind a colon, such as :%s", count,
                             format_name(name, &found));
}
