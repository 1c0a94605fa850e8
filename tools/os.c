/* SPDX-License-Identifier: BSD-3-Clause */
/* POSIX. The macros ask for sysconf(_SC_NPROCESSORS_ONLN) and mmap() beside -std=c11. */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE

#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

bool os_open(const char *path, struct os_file *file)
{
    struct stat about;

    file->handle = open(path, O_RDONLY | O_CLOEXEC);
    if (file->handle < 0) {
        return false;
    }
    if (fstat(file->handle, &about) != 0) {
        os_close(file);
        return false;
    }
    if (S_ISDIR(about.st_mode)) {
        os_close(file);
        errno = EISDIR;
        return false;
    }
    file->regular = S_ISREG(about.st_mode);
    file->size = file->regular ? (uint64_t)about.st_size : 0;
    return true;
}

void os_close(struct os_file *file)
{
    const int error = errno;

    (void)close(file->handle);
    errno = error;
}

const void *os_map(const struct os_file *file)
{
    if (file->size == 0) { /* mmap() refuses it */
        return "";
    }
    if (file->size > SIZE_MAX) {
        errno = EFBIG;
        return NULL;
    }
    void *bytes = mmap(NULL, (size_t)file->size, PROT_READ, MAP_PRIVATE, file->handle, 0);
    if (bytes == MAP_FAILED) {
        return NULL;
    }
    (void)posix_madvise(bytes, (size_t)file->size, POSIX_MADV_WILLNEED);
    return bytes;
}

void os_unmap(const void *bytes, size_t size)
{
    if (size > 0) {
        (void)munmap((void *)(uintptr_t)bytes, size);
    }
}

int64_t os_read(struct os_file *file, void *bytes, size_t size)
{
    const size_t most = (size_t)1 << 30; /* what every system takes at once */
    size_t done = 0;

    while (done < size) {
        const size_t left = size - done;
        const ssize_t n = read(file->handle, (char *)bytes + done, left < most ? left : most);
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        if (n == 0) {
            break;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return (int64_t)done;
}

bool os_is_replaceable(const char *path)
{
    struct stat about;

    if (stat(path, &about) != 0) {
        return true; /* and if it cannot be written, creating the file will tell */
    }
    return S_ISREG(about.st_mode);
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool find_folder(const char *path, struct stat *about)
{
    const size_t length = (size_t)(last_component(path) - path);
    char *folder = length > 0 ? strndup(path, length) : strdup(".");
    const bool found = folder && stat(folder, about) == 0;

    free(folder);
    return found;
}

bool os_is_same_place(const char *path, const char *other)
{
    struct stat folder;
    struct stat other_folder;

    return strcmp(last_component(path), last_component(other)) == 0 && find_folder(path, &folder) &&
           find_folder(other, &other_folder) && folder.st_dev == other_folder.st_dev &&
           folder.st_ino == other_folder.st_ino;
}

FILE *os_create_beside(const char *path, char **temporary)
{
    const int folder = (int)(last_component(path) - path);
    const size_t size = (size_t)folder + 64;

    *temporary = malloc(size);
    if (!*temporary) {
        return NULL;
    }
    for (int attempt = 0; attempt < 1000; attempt++) {
        (void)snprintf(*temporary, size, "%.*s.npuquant-%ld-%d.tmp", folder, path, (long)getpid(), attempt);
        /* Not mkstemp(): the file keeps this name's permissions, so they are those of any new file. */
        const int handle = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (handle >= 0) {
            FILE *file = fdopen(handle, "wb");
            if (file) {
                return file;
            }
            (void)close(handle);
            (void)unlink(*temporary);
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

bool os_rename(const char *temporary, const char *path)
{
    return rename(temporary, path) == 0;
}

const char *os_error(void)
{
    return strerror(errno);
}

double os_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool os_stderr_is_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

int os_processors(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count < 1 ? 1 : count > 4096 ? 4096 : (int)count;
}

struct thread_work {
    void (*work)(void *argument);
    void *argument;
};

static void *run_thread(void *argument)
{
    const struct thread_work *task = argument;

    task->work(task->argument);
    return NULL;
}

void os_run_threads(int count, void (*work)(void *argument), void *argument)
{
    struct thread_work task = {work, argument};
    pthread_t *threads = count > 1 ? malloc((size_t)count * sizeof *threads) : NULL;
    int started = 0;

    while (threads && started < count - 1 && pthread_create(&threads[started], NULL, run_thread, &task) == 0) {
        started++;
    }
    work(argument);
    for (int i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(threads);
}

void os_describe(char *text, size_t size)
{
    struct utsname name;

    if (uname(&name) < 0) {
        (void)snprintf(text, size, "unknown");
        return;
    }
    (void)snprintf(text, size, "%s %s", name.sysname, name.machine);
}
