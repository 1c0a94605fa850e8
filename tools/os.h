/* SPDX-License-Identifier: BSD-3-Clause */
/* All that the tool needs from an operating system, except threads. os.c is for POSIX and WASI, os_windows.c for
 * Windows. */
#ifndef NPUQUANT_OS_H
#define NPUQUANT_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- reading ---- */

struct os_file {
    int handle;
    bool regular;  /* has a size; else a pipe, or the system does not say */
    uint64_t size; /* of a regular file */
};

/* "-" is stdin. On failure, returns false, and os_error() has the reason. */
bool os_open(const char *path, struct os_file *file);
void os_close(struct os_file *file);

/* Maps a whole regular file, read-only; call os_unmap() before os_close(). Null if the file cannot be mapped; read it
 * then. If another program cuts the file, or its disk fails, the tool ends with status 2 and a line that names path;
 * path must last as long. The rest of a cut page reads as zeros: call os_is_whole() afterwards. */
const void *os_map(const struct os_file *file, const char *path);
void os_unmap(const void *bytes, size_t size);
bool os_is_whole(const struct os_file *file);

/* Reads until size bytes are there or the file ends. Returns the number of bytes, or -1. */
int64_t os_read(struct os_file *file, void *bytes, size_t size);

/* ---- writing ---- */

enum os_output {
    OS_FILE,   /* no file, or a regular file, which a new one replaces */
    OS_STREAM, /* a pipe or a device such as /dev/null: written directly, and final */
    OS_STDOUT, /* also a stream: "-" or /dev/stdout */
    OS_UNWRITABLE,
};
enum os_output os_output_kind(const char *path);

/* Opens a stream for writing, or returns stdout; null on failure. */
FILE *os_open_stream(const char *path);

/* Whether two names, perhaps of future files, mean the same file: y.npy and ./y.npy. */
bool os_is_same_place(const char *path, const char *other);

/* Opens a new file for writing, under an unused name next to path; null on failure. *temporary is its name, which the
 * caller frees after os_rename() or os_remove(). An earlier signal that ends the program removes the file. */
FILE *os_create_beside(const char *path, char **temporary);

/* Closes a file, also on failure. True if not even a power failure can take its bytes away. */
bool os_finish(FILE *file);

/* Gives a file its final name, and replaces the file that had the name. */
bool os_rename(const char *temporary, const char *path);
void os_remove(const char *path);

/* Gives the file a second name, *kept, for os_rename() to put it back; the caller frees *kept, which is null without a
 * file. False on failure. */
bool os_keep_beside(const char *path, char **kept);

/* Makes a folder, unless there is one. On failure, returns false, and os_error() has the reason. */
bool os_make_folder(const char *path);

/* Delays signals that end the program, from the first call to the second. */
void os_hold_signals(void);
void os_release_signals(void);

/* ---- the rest ---- */

/* A line about the last failure of a function above. */
const char *os_error(void);

/* Seconds since some moment in the past. */
double os_seconds(void);

/* Whether stderr is a terminal. */
bool os_stderr_is_terminal(void);

/* Processors that threads can run on, at least 1. */
int os_processors(void);

/* Runs a command of the system's shell with one more argument, with its standard output to standard error. Returns its
 * exit status, or -1 if it cannot run. */
int os_run_command(const char *command, const char *argument);

/* The system's name and machine, such as "Linux x86_64". */
void os_describe(char *text, size_t size);

#endif
