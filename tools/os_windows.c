/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows, through its C library, which sets errno as the tool expects. File names are in the process's code page, as
 * main() gets them. */
#include "os.h"

#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

bool os_open(const char *path, struct os_file *file)
{
    if (strcmp(path, "-") == 0) {
        file->handle = _fileno(stdin);
        (void)_setmode(file->handle, _O_BINARY);
    } else {
        file->handle = _open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
    }
    file->regular = false; /* read like a pipe: a mapped file could not be replaced */
    file->size = 0;
    return file->handle >= 0;
}

void os_close(struct os_file *file)
{
    const int error = errno;

    if (file->handle != _fileno(stdin)) {
        (void)_close(file->handle);
    }
    errno = error;
}

const void *os_map(const struct os_file *file, const char *path)
{
    (void)file;
    (void)path;
    return NULL;
}

void os_unmap(const void *bytes, size_t size)
{
    (void)bytes;
    (void)size;
}

bool os_is_whole(const struct os_file *file)
{
    (void)file;
    return true;
}

int64_t os_read(struct os_file *file, void *bytes, size_t size)
{
    const size_t most = (size_t)1 << 30;
    size_t done = 0;

    while (done < size) {
        const size_t left = size - done;
        const int n = _read(file->handle, (char *)bytes + done, (unsigned)(left < most ? left : most));
        if (n < 0) {
            return -1;
        }
        if (n == 0) {
            break;
        }
        done += (size_t)n;
    }
    return (int64_t)done;
}

enum os_output os_output_kind(const char *path)
{
    struct _stat64 about;

    if (strcmp(path, "-") == 0) {
        return OS_STDOUT;
    }
    if (_stat64(path, &about) != 0) {
        return OS_FILE; /* if the file cannot be written, creating it fails later */
    }
    switch (about.st_mode & _S_IFMT) {
    case _S_IFREG: return OS_FILE;
    case _S_IFCHR:
    case _S_IFIFO: return OS_STREAM;
    default: return OS_UNWRITABLE;
    }
}

FILE *os_open_stream(const char *path)
{
    if (os_output_kind(path) == OS_STDOUT) {
        (void)_setmode(_fileno(stdout), _O_BINARY);
        return stdout;
    }
    return fopen(path, "ab");
}

bool os_is_same_place(const char *path, const char *other)
{
    char full[4096];
    char other_full[sizeof full];
    const DWORD length = GetFullPathNameA(path, sizeof full, full, NULL);
    const DWORD other_length = GetFullPathNameA(other, sizeof other_full, other_full, NULL);

    return length > 0 && length < sizeof full && other_length == length && _stricmp(full, other_full) == 0;
}

FILE *os_create_beside(const char *path, char **temporary)
{
    int folder = (int)strlen(path); /* with the character that ends it */

    while (folder > 0 && !strchr("/\\:", path[folder - 1])) {
        folder--;
    }
    const size_t size = (size_t)folder + 64;
    *temporary = malloc(size);
    if (!*temporary) {
        return NULL;
    }
    for (int attempt = 0; attempt < 1000; attempt++) {
        (void)snprintf(*temporary, size, "%.*s.npuquant-%d-%d.tmp", folder, path, _getpid(), attempt);
        const int handle =
            _open(*temporary, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
        if (handle >= 0) {
            FILE *file = _fdopen(handle, "wb");
            if (file) {
                return file;
            }
            (void)_close(handle);
            (void)remove(*temporary);
            break;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    const int error = errno;
    free(*temporary);
    *temporary = NULL;
    errno = error;
    return NULL;
}

bool os_finish(FILE *file)
{
    const bool kept = fflush(file) == 0 && _commit(_fileno(file)) == 0;
    const int error = errno;
    const bool closed = fclose(file) == 0;

    if (!kept) {
        errno = error;
    }
    return kept && closed;
}

bool os_rename(const char *temporary, const char *path)
{
    /* rename() refuses an existing name. */
    if (MoveFileExA(temporary, path, MOVEFILE_REPLACE_EXISTING)) {
        return true;
    }
    errno = GetLastError() == ERROR_PATH_NOT_FOUND ? ENOENT : EACCES;
    return false;
}

void os_remove(const char *path)
{
    (void)remove(path);
}

bool os_make_folder(const char *path)
{
    struct _stat64 about;

    return _mkdir(path) == 0 || (errno == EEXIST && _stat64(path, &about) == 0 && (about.st_mode & _S_IFDIR));
}

bool os_keep_beside(const char *path, char **kept)
{
    struct _stat64 about;

    /* Many Windows disks have no hard links: replacing a file there is final. */
    *kept = NULL;
    return _stat64(path, &about) != 0 && errno == ENOENT;
}

/* Nothing can be done before Windows ends a program; a temporary file may stay. */
void os_hold_signals(void)
{
}

void os_release_signals(void)
{
}

const char *os_error(void)
{
    return strerror(errno);
}

double os_seconds(void)
{
    LARGE_INTEGER now;
    LARGE_INTEGER frequency;

    (void)QueryPerformanceCounter(&now);
    (void)QueryPerformanceFrequency(&frequency);
    return (double)now.QuadPart / (double)frequency.QuadPart;
}

bool os_stderr_is_terminal(void)
{
    return _isatty(_fileno(stderr)) != 0;
}

int os_processors(void)
{
    const DWORD count = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);

    return count < 1 ? 1 : count > 4096 ? 4096 : (int)count;
}

int os_run_command(const char *command, const char *argument)
{
    const size_t size = strlen(command) + strlen(argument) + sizeof "\"\" \"\" 1>&2";
    char *line = malloc(size);
    int status = -1;

    if (line) {
        /* cmd.exe removes the first and the last quotation mark. */
        (void)snprintf(line, size, "\"%s \"%s\" 1>&2\"", command, argument);
        (void)fflush(NULL);
        status = system(line);
        free(line);
    }
    return status;
}

void os_describe(char *text, size_t size)
{
    SYSTEM_INFO info;
    const char *machine = "";

    GetNativeSystemInfo(&info);
    switch (info.wProcessorArchitecture) {
    case PROCESSOR_ARCHITECTURE_AMD64: machine = " x86_64"; break;
    case PROCESSOR_ARCHITECTURE_ARM64: machine = " aarch64"; break;
    case PROCESSOR_ARCHITECTURE_INTEL: machine = " i386"; break;
    default: break;
    }
    (void)snprintf(text, size, "Windows%s", machine);
}
