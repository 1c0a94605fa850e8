/* SPDX-License-Identifier: BSD-3-Clause */
/* All that the tool wants from an operating system, but for threads: os.c is POSIX's and WASI's, os_windows.c what its
 * name says. */
#ifndef NPUQUANT_OS_H
#define NPUQUANT_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- reading ---- */

struct os_file {
    int handle;
    bool regular;  /* has a size; otherwise a pipe, or the system does not say */
    uint64_t size; /* of a regular file */
};

/* "-" is stdin. On failure false, and os_error() says why. */
bool os_open(const char *path, struct os_file *file);
void os_close(struct os_file *file);

/* Maps all of a regular file, read-only; os_unmap() before os_close(). Null where that cannot be had: then it can be
 * read. If its bytes are gone when they are needed, since others cut the file short or its disk fails, the program ends
 * with a line that says so under the name of path, which has to last as long, and status 2. The rest of a last page
 * that was cut reads as zeros: os_is_whole() afterwards tells. */
const void *os_map(const struct os_file *file, const char *path);
void os_unmap(const void *bytes, size_t size);
bool os_is_whole(const struct os_file *file);

/* Reads until size bytes are there or the file ends; the number of bytes, or -1. */
int64_t os_read(struct os_file *file, void *bytes, size_t size);

/* ---- writing ---- */

/* The outcome of writing under a name. */
enum os_output {
    OS_FILE,   /* nothing is there, or a regular file, which a new one replaces */
    OS_STREAM, /* a pipe or a device such as /dev/null: it is written as it is, and cannot be taken back */
    OS_STDOUT, /* a stream, too: "-" or /dev/stdout */
    OS_UNWRITABLE,
};
enum os_output os_output_kind(const char *path);

/* Opens a stream for writing, or gives stdout itself; null on failure. */
FILE *os_open_stream(const char *path);

/* Whether two names, of files that may not be there yet, are of the same file: y.npy and ./y.npy. */
bool os_is_same_place(const char *path, const char *other);

/* Opens a new file beside path, for writing, under a name that no other file has. The name goes to *temporary and is
 * the caller's to free, after os_rename() or os_remove(): a signal that ends the program before removes the file. Null
 * on failure. */
FILE *os_create_beside(const char *path, char **temporary);

/* Closes a file when all of it is where not even a power failure takes it away. Closed on failure, too. */
bool os_finish(FILE *file);

/* Gives a file its final name, in place of what has it now. */
bool os_rename(const char *temporary, const char *path);
void os_remove(const char *path);

/* Gives the file of this name a second one, from which os_rename() puts it back. It goes to *kept, the caller's to
 * free, or null if there is no such file. False if the system cannot. */
bool os_keep_beside(const char *path, char **kept);

/* Makes a folder, where there is none yet. On failure false, and os_error() says why. */
bool os_make_folder(const char *path);

/* Signals that end the program wait from the first call to the second. */
void os_hold_signals(void);
void os_release_signals(void);

/* ---- the rest ---- */

/* One line about the last failure of a function above. */
const char *os_error(void);

/* Seconds since some moment in the past. */
double os_seconds(void);

/* Whether a person reads what is written to stderr. */
bool os_stderr_is_terminal(void);

/* Number of processors that threads can run on, at least 1. */
int os_processors(void);

/* Runs a command of the system's shell with one more argument, and returns its exit status, or -1 if it cannot be run.
 * Its standard output goes to standard error. */
int os_run_command(const char *command, const char *argument);

/* Name and machine of the system, such as "Linux x86_64". */
void os_describe(char *text, size_t size);

#endif
