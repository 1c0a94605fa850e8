/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the tool: a byte that chooses the subcommand, then words that end with NUL. */
#include "input.h"

#include "options.h"
#include "report.h"

#include <stdarg.h>
#include <string.h>

enum { MAX_WORDS = 64 };

static int reports;

/* In place of the tool's: counts, and reads every argument to its end. */
bool report_error(const char *format, ...)
{
    char line[256];
    va_list arguments;

    va_start(arguments, format);
    if (vsnprintf(line, sizeof line, format, arguments) <= 0) {
        FINDING("an empty message");
    }
    va_end(arguments);
    reports++;
    return false;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

static void check_choice(const struct arguments *arguments, enum option option, const char *const *words)
{
    if (arguments->text[option] && !is_one_of(arguments->text[option], words)) {
        FINDING("option %d is '%s'", (int)option, arguments->text[option]);
    }
}

static void check_number(const struct arguments *arguments, enum option option, int64_t least, int64_t most)
{
    if (arguments->text[option] && (arguments->number[option] < least || arguments->number[option] > most)) {
        FINDING("option %d is %lld", (int)option, (long long)arguments->number[option]);
    }
}

static void check_needed(const struct arguments *arguments, bool needed, enum option option)
{
    if (needed && !arguments->text[option]) {
        FINDING("accepted without option %d", (int)option);
    }
}

#define NEEDED(name, NAME, role)      check_needed(arguments, true, OPTION_##NAME)
#define NOT_NEEDED(name, NAME, other) (void)0
#define CHECK_INPUTS(name, NAME, EXECUTOR)                                                                             \
    if (command == FOR_##NAME) {                                                                                       \
        ARGUMENTS_##name(NEEDED, NEEDED, NOT_NEEDED, NOT_NEEDED, NOT_NEEDED);                                          \
    }

static void check_accepted(unsigned command, const struct arguments *arguments)
{
    static const char *const booleans[] = {"true", "false", NULL};
    static const char *const bits[] = {"0", "1", NULL};
    static const char *const modes[] = {"pertoken", "pertensor", NULL};
    static const char *const forms[] = {"product", "inverse", NULL};
    static const char *const types[] = {"int8",   "uint8",   "int32",    "quint4x2", "int64",
                                        "uint64", "float16", "bfloat16", "float32",  NULL};

    EACH_OPERATOR(CHECK_INPUTS)
    check_needed(arguments, command == FOR_QUANT_MATMUL, OPTION_X1);
    check_needed(arguments, command == FOR_QUANT_MATMUL, OPTION_X2);
    check_needed(arguments, true, OPTION_DTYPE);
    check_choice(arguments, OPTION_DIV_MODE, booleans);
    check_choice(arguments, OPTION_ROUND_MODE, bits);
    check_choice(arguments, OPTION_QUANT_MODE, modes);
    check_choice(arguments, OPTION_SCALE_FORM, forms);
    check_choice(arguments, OPTION_DTYPE, types);
    check_number(arguments, OPTION_AXIS, INT32_MIN, INT32_MAX);
    check_number(arguments, OPTION_BLOCK, 1, INT64_MAX);
    check_number(arguments, OPTION_MAX_DIFF, 0, INT32_MAX);
    check_number(arguments, OPTION_MAX_ULP, 0, INT32_MAX);
    check_number(arguments, OPTION_MAX_DIFFS, 0, INT64_MAX);
    check_number(arguments, OPTION_THREADS, 0, 4096);
    check_number(arguments, OPTION_REPEAT, 1, 1000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    const unsigned command = 1u << take_byte(&in) % COMMANDS;
    char *words[MAX_WORDS + 1];
    struct arguments arguments;
    int count = 0;

    while (in.left > 0 && count < MAX_WORDS) { /* each word in memory of its own: no way past its end is unseen */
        const uint8_t *end = memchr(in.at, '\0', in.left);
        const size_t length = end ? (size_t)(end - in.at) : in.left;
        char *word = malloc(length + 1);
        if (!word) {
            abort();
        }
        memcpy(word, in.at, length);
        word[length] = '\0';
        words[count++] = word;
        in.at += length + (end != NULL);
        in.left -= length + (end != NULL);
    }

    words[count] = NULL; /* as in main() */
    reports = 0;
    const bool accepted = options_parse(command, count, words, &arguments);
    if (accepted ? reports != 0 : reports != 1) {
        FINDING("%s with %d messages", accepted ? "accepted" : "refused", reports);
    }
    for (int i = 0; accepted && i < OPTIONS; i++) { /* the words must be complete */
        if (arguments.text[i] && i != OPTION_BF16 && *arguments.text[i] == '\0') {
            FINDING("accepted an empty value of option %d", i);
        }
    }
    if (accepted && !arguments.text[OPTION_HELP]) {
        check_accepted(command, &arguments);
    }
    while (count > 0) {
        free(words[--count]);
    }
    return 0;
}
