/* SPDX-License-Identifier: BSD-3-Clause */
/* The worked examples of the operators: the tool runs every command line of examples.txt, and finds the results equal.
 * The first argument, or NPUQ_TEST_DATA, is the folder of the examples. */
#define _DEFAULT_SOURCE
#include "support.h"

#include "npuquant_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_EXAMPLES = 200, MAX_LINE = 1000, MAX_WORDS = 40 };

struct example {
    char name[MAX_LINE];
    char line[MAX_LINE];
};

static void test_example(void **state)
{
    const struct example *example = *state;
    char words[MAX_LINE];
    char program[] = "npuquant";
    char quiet[] = "--quiet";
    char *argv[MAX_WORDS] = {program};
    int argc = 1;

    memcpy(words, example->line, sizeof words);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < MAX_WORDS - 2);
        argv[argc++] = word;
    }
    argv[argc++] = quiet;
    assert_int_equal(npuquant_main(argc, argv), 0);
}

/* A comment names the command line after it. */
static size_t read_examples(FILE *file, struct example *examples)
{
    char name[MAX_LINE] = "unnamed";
    char line[MAX_LINE];
    size_t count = 0;

    while (count < MAX_EXAMPLES && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#') {
            memcpy(name, line, sizeof name);
        } else if (line[0] != '\0') {
            memcpy(examples[count].name, name, sizeof name);
            memcpy(examples[count].line, line, sizeof line);
            count++;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    static struct example examples[MAX_EXAMPLES];
    static struct CMUnitTest tests[MAX_EXAMPLES];
    const char *folder = argc > 1 ? argv[1] : getenv("NPUQ_TEST_DATA");

    if (!folder || chdir(folder) != 0) {
        (void)fprintf(stderr, "usage: test_examples FOLDER (or NPUQ_TEST_DATA=FOLDER)\n");
        return 2;
    }
    FILE *file = fopen("examples.txt", "r");
    if (!file) {
        (void)fprintf(stderr, "%s/examples.txt cannot be read\n", folder);
        return 2;
    }
    const size_t count = read_examples(file, examples);
    (void)fclose(file);
    for (size_t i = 0; i < count; i++) {
        tests[i] = (struct CMUnitTest){examples[i].name, test_example, NULL, NULL, &examples[i]};
    }
    if (count == 0 || count == MAX_EXAMPLES) {
        (void)fprintf(stderr, "%s/examples.txt: %zu examples\n", folder, count);
        return 2;
    }
    return _cmocka_run_group_tests("examples", tests, count, NULL, NULL);
}
