/* SPDX-License-Identifier: BSD-3-Clause */
/* Feeds files, and the files of folders, to a fuzz target, as libFuzzer does with a corpus: for any compiler. */
#define _POSIX_C_SOURCE 200809L
#include "input.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static int files;

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0;
    size_t n;
    char chunk[4096];

    if (!file) {
        perror(path);
        exit(2);
    }
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0) {
        uint8_t *larger = realloc(data, size + n); /* never larger than the file, so that sanitizers see its end */
        if (!larger) {
            abort();
        }
        data = larger;
        memcpy(data + size, chunk, n);
        size += n;
    }
    (void)fclose(file);
    (void)fprintf(stderr, "%s\n", path); /* the last one printed is the one that failed */
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    files++;
}

static void run_path(const char *path)
{
    struct stat about;

    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        run_file(path);
        return;
    }
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        char inside[4096];
        (void)snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.') {
            run_path(inside);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        run_path(argv[i]);
    }
    printf("%d files\n", files);
    return files > 0 ? 0 : 2; /* a corpus that is not found proves nothing */
}
