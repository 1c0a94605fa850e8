/* SPDX-License-Identifier: BSD-3-Clause */
/* POSIX; and WASI, which lacks processes, threads and signals. Besides -std=c11, the macros ask for
 * sysconf(_SC_NPROCESSORS_ONLN), SA_RESETHAND and sched_getaffinity(). */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE

#include "os.h"

#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif
#ifdef __wasi__
#define getpid() 0
#else
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#endif

bool os_open(const char *path, struct os_file *file)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    struct stat about;

    file->handle = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
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
    /* If a program before this one has read from stdin, the rest is not a whole file. */
    file->regular = S_ISREG(about.st_mode) && !(is_stdin && lseek(file->handle, 0, SEEK_CUR) != 0);
    file->size = file->regular ? (uint64_t)about.st_size : 0;
    return true;
}

void os_close(struct os_file *file)
{
    const int error = errno;

    if (file->handle != STDIN_FILENO) {
        (void)close(file->handle);
    }
    errno = error;
}

#ifndef __wasi__

/* The mapped files, for the signal's handler. Only the first thread changes the list, while it is alone. */
enum { MOST_MAPPED = 8 };
static struct {
    const void *bytes;
    uint64_t size;
    const char *path;
} mapped[MOST_MAPPED];

/* Handles the signal of a read beyond the end of a mapped file. It interrupts our own code that reads a tensor, never
 * the C library, so the handler may call more than is usual. */
static void end_without_file(int number, siginfo_t *info, void *context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    (void)context;
    for (size_t i = 0; i < MOST_MAPPED; i++) {
        if (mapped[i].bytes && (uintptr_t)info->si_addr - (uintptr_t)mapped[i].bytes < mapped[i].size) {
            while (atomic_flag_test_and_set(&said)) { /* another thread is here already, and ends all */
                (void)pause();
            }
            report_error("%s: cannot be read any more: it was cut short while it was in use, or its disk fails",
                         mapped[i].path);
            _exit(2);
        }
    }
    (void)signal(number, SIG_DFL); /* another reason: raises it again without this handler */
    (void)raise(number);
}

const void *os_map(const struct os_file *file, const char *path)
{
    struct sigaction action = {.sa_sigaction = end_without_file, .sa_flags = SA_SIGINFO};
    size_t i = 0;

    while (i < MOST_MAPPED && mapped[i].bytes) {
        i++;
    }
    if (i == MOST_MAPPED || !file->regular || file->size == 0 || file->size > SIZE_MAX) {
        return NULL;
    }
    void *bytes = mmap(NULL, (size_t)file->size, PROT_READ, MAP_PRIVATE, file->handle, 0);
    if (bytes == MAP_FAILED) {
        return NULL;
    }
    (void)posix_madvise(bytes, (size_t)file->size, POSIX_MADV_WILLNEED);
    mapped[i].bytes = bytes;
    mapped[i].size = file->size;
    mapped[i].path = path;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
    return bytes;
}

void os_unmap(const void *bytes, size_t size)
{
    for (size_t i = 0; i < MOST_MAPPED; i++) {
        if (mapped[i].bytes == bytes) {
            mapped[i].bytes = NULL;
        }
    }
    (void)munmap((void *)(uintptr_t)bytes, size);
}

bool os_is_whole(const struct os_file *file)
{
    struct stat about;

    return fstat(file->handle, &about) == 0 && (uint64_t)about.st_size >= file->size;
}

#else

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

#endif

int64_t os_read(struct os_file *file, void *bytes, size_t size)
{
    const size_t most = (size_t)1 << 30; /* the most that every system takes at once */
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

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Whether the file is the same as stdout's, under any name. */
static bool is_stdout(const struct stat *about)
{
    struct stat out;

    return fstat(STDOUT_FILENO, &out) == 0 && about->st_dev == out.st_dev && about->st_ino == out.st_ino;
}

enum os_output os_output_kind(const char *path)
{
    /* These paths name open files, which may be regular, but nobody can replace a file there. */
    const bool names_open =
        starts_with(path, "/dev/fd/") || starts_with(path, "/proc/") || strcmp(path, "/dev/stderr") == 0;
    struct stat about;

    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/fd/1") == 0) {
        return OS_STDOUT;
    }
    if (stat(path, &about) != 0) {
        return OS_FILE; /* if the file cannot be written, creating it fails later */
    }
    if ((S_ISFIFO(about.st_mode) || names_open) && is_stdout(&about)) { /* not devices: /dev/null may be named twice */
        return OS_STDOUT;
    }
    if (S_ISCHR(about.st_mode) || S_ISFIFO(about.st_mode)) {
        return OS_STREAM;
    }
    if (S_ISREG(about.st_mode)) {
        return names_open ? OS_STREAM : OS_FILE;
    }
    return OS_UNWRITABLE;
}

FILE *os_open_stream(const char *path)
{
    if (os_output_kind(path) == OS_STDOUT) {
        return stdout;
    }
    const int handle = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return handle < 0 ? NULL : fdopen(handle, "ab");
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

#ifndef __wasi__

/* Names of incomplete files, which a signal that ends the program removes first. */
enum { MOST_UNFINISHED = 4 };
static _Atomic(const char *) unfinished[MOST_UNFINISHED];

static const int ending_signals[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGXCPU, SIGUSR1, SIGUSR2,
};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof ending_signals[0] };

static sigset_t mask_before;

static sigset_t all_ending_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
        (void)sigaddset(&set, ending_signals[i]);
    }
    return set;
}

static void remove_unfinished(int number)
{
    for (size_t i = 0; i < MOST_UNFINISHED; i++) {
        const char *name = atomic_load(&unfinished[i]);
        if (name) {
            (void)unlink(name);
        }
    }
    (void)raise(number); /* by the default action (SA_RESETHAND): the parent learns the signal */
}

static void catch_signals(void)
{
    static bool caught;
    struct sigaction action = {.sa_handler = remove_unfinished, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;

    if (caught) {
        return;
    }
    caught = true;
    action.sa_mask = all_ending_signals();
    for (size_t i = 0; i < ENDING_SIGNALS; i++) { /* keep signals ignored that nohup ignores */
        if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
            (void)sigaction(ending_signals[i], &action, NULL);
        }
    }
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit then fails as on a full disk */
}

void os_hold_signals(void)
{
    const sigset_t set = all_ending_signals();

    (void)pthread_sigmask(SIG_BLOCK, &set, &mask_before);
}

void os_release_signals(void)
{
    (void)pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

static void change_unfinished(const char *from, const char *to)
{
    for (size_t i = 0; i < MOST_UNFINISHED; i++) {
        if (atomic_load(&unfinished[i]) == from) {
            atomic_store(&unfinished[i], to);
            return;
        }
    }
}

#else

static void catch_signals(void)
{
}

void os_hold_signals(void)
{
}

void os_release_signals(void)
{
}

static void change_unfinished(const char *from, const char *to)
{
    (void)from;
    (void)to;
}

#endif

/* Calls make() with unused names next to path; returns the name that succeeds, or null. */
static char *make_beside(const char *path, bool (*make)(const char *name, void *argument), void *argument)
{
    const int folder = (int)(last_component(path) - path);
    const size_t size = (size_t)folder + 64;
    char *name = malloc(size);

    errno = ENOMEM;
    for (int attempt = 0; name && attempt < 1000; attempt++) {
        (void)snprintf(name, size, "%.*s.npuquant-%ld-%d.tmp", folder, path, (long)getpid(), attempt);
        if (make(name, argument)) {
            return name;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    const int error = errno;
    free(name);
    errno = error;
    return NULL;
}

static bool make_file(const char *name, void *handle)
{
    /* mkstemp() would set other permissions than those of any new file. */
    *(int *)handle = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return *(int *)handle >= 0;
}

static bool make_link(const char *name, void *path)
{
    return linkat(AT_FDCWD, path, AT_FDCWD, name, 0) == 0; /* unlike link(), of a symbolic link itself everywhere */
}

FILE *os_create_beside(const char *path, char **temporary)
{
    int handle = -1;

    catch_signals();
    os_hold_signals();
    *temporary = make_beside(path, make_file, &handle);
    if (*temporary) {
        change_unfinished(NULL, *temporary);
    }
    os_release_signals();
    if (!*temporary) {
        return NULL;
    }
    FILE *file = fdopen(handle, "wb");
    if (!file) {
        const int error = errno;
        (void)close(handle);
        os_remove(*temporary);
        free(*temporary);
        *temporary = NULL;
        errno = error;
    }
    return file;
}

bool os_finish(FILE *file)
{
    /* Only disks need have fsync(). */
    const bool kept =
        fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOSYS || errno == ENOTSUP);
    const int error = errno;
    const bool closed = fclose(file) == 0;

    if (!kept) {
        errno = error;
    }
    return kept && closed;
}

bool os_rename(const char *temporary, const char *path)
{
    if (rename(temporary, path) != 0) {
        return false;
    }
    change_unfinished(temporary, NULL);
    return true;
}

void os_remove(const char *path)
{
    (void)unlink(path);
    change_unfinished(path, NULL);
}

bool os_make_folder(const char *path)
{
    struct stat about;

    return mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

bool os_keep_beside(const char *path, char **kept)
{
    struct stat about;

    *kept = NULL;
    if (lstat(path, &about) != 0) {
        return errno == ENOENT;
    }
    *kept = make_beside(path, make_link, (void *)(uintptr_t)path);
    return *kept != NULL;
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
    long count = sysconf(_SC_NPROCESSORS_ONLN);

#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        count = CPU_COUNT(&allowed);
    }
#endif
    return count < 1 ? 1 : count > 4096 ? 4096 : (int)count;
}

#ifndef __wasi__

int os_run_command(const char *command, const char *argument)
{
    const size_t size = strlen(command) + sizeof " \"$1\"";
    char *script = malloc(size);
    pid_t child;
    int status = -1;

    if (!script) {
        return -1;
    }
    /* Passes the argument to the shell unchanged. */
    (void)snprintf(script, size, "%s \"$1\"", command);
    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        (void)execl("/bin/sh", "sh", "-c", script, "sh", argument, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    free(script);
    if (child < 0 || status == -1) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); /* as shells report a signal */
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

#else

int os_run_command(const char *command, const char *argument)
{
    (void)command;
    (void)argument;
    errno = ENOSYS;
    return -1;
}

void os_describe(char *text, size_t size)
{
    (void)snprintf(text, size, "WASI wasm32");
}

#endif
