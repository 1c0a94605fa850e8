/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the operators. One table of options has what each command takes, what --help prints, and what is
 * checked. */
#ifndef NPUQUANT_OPTIONS_H
#define NPUQUANT_OPTIONS_H

#include <operators.def>

#include <stdbool.h>
#include <stdint.h>

/* The subcommands, as numbers, and as bits: a row of the table serves several. */
#define NUMBER(name, NAME, EXECUTOR) COMMAND_##NAME,
enum { EACH_OPERATOR(NUMBER) COMMAND_QUANT_MATMUL, COMMANDS };
#undef NUMBER
#define BIT(name, NAME, EXECUTOR) FOR_##NAME = 1 << COMMAND_##NAME,
enum {
    EACH_OPERATOR(BIT) FOR_QUANT_MATMUL = 1 << COMMAND_QUANT_MATMUL,
    /* Uses of an operator's result, added to its bit. With none of these, the tool writes and compares it. */
    FOR_DIAGNOSE = 2 << COMMAND_QUANT_MATMUL,
    FOR_EXPLAIN = 4 << COMMAND_QUANT_MATMUL,
    FOR_HARD_INPUTS = 8 << COMMAND_QUANT_MATMUL, /* the tool makes the inputs */
    FOR_COMPARE = 16 << COMMAND_QUANT_MATMUL,    /* without an operator: compares two files */
};
#undef BIT

/* Elements that --at names. */
enum { MOST_ELEMENTS = 64, MOST_INDICES = 8 };

struct place {
    int count; /* of indices */
    int64_t index[MOST_INDICES];
};

enum option {
    /* Inputs, each a file. */
    OPTION_X,
    OPTION_X1,
    OPTION_X2,
    OPTION_SCALES,
    OPTION_ZERO_POINTS,
    OPTION_SCALE,
    OPTION_GROUP_INDEX,
    OPTION_OFFSET,
    OPTION_SMOOTH_SCALES,
    OPTION_WEIGHT_SCALE,
    OPTION_ACTIVATION_SCALE,
    OPTION_PERTOKEN_SCALE,
    OPTION_WORDS,
    OPTION_BIAS,
    OPTION_A,
    OPTION_B,
    INPUTS,
    /* Outputs, and in the same order the files to compare with. */
    OPTION_OUTPUT = INPUTS,
    OPTION_SCALE_OUTPUT,
    OPTION_OFFSET_OUTPUT,
    OPTION_EXPECT,
    OPTION_EXPECT_SCALE,
    OPTION_EXPECT_OFFSET,
    OPTION_MAX_DIFF,
    OPTION_MAX_ULP,
    OPTION_MAX_DIFFS,
    OPTION_ADMISSIBLE,
    OPTION_AXIS,
    OPTION_DIV_MODE,
    OPTION_ROUND_MODE,
    OPTION_QUANT_MODE,
    OPTION_SCALE_FORM,
    OPTION_BLOCK,
    OPTION_MIN_SCALE,
    OPTION_DTYPE,
    OPTION_BF16,
    OPTION_AT,
    OPTION_SHAPE,
    OPTION_TYPE,
    OPTION_WITHOUT,
    OPTION_SEED,
    OPTION_RUN,
    OPTION_JSON,
    OPTION_BACKEND,
    OPTION_THREADS,
    OPTION_REPEAT,
    OPTION_QUIET,
    OPTION_HELP,
    OPTIONS
};

struct arguments {
    const char *text[OPTIONS]; /* the given value, else the default, else null */
    int64_t number[OPTIONS];   /* the same, of whole numbers */
    float min_scale;
    bool is_bfloat16[INPUTS]; /* named by --bf16 */
    const char *type[INPUTS]; /* named by --type, else null */
    bool is_left_out[INPUTS]; /* named by --without */
    int place_count;
    struct place places[MOST_ELEMENTS]; /* named by --at, or the one of --shape */
};

/* Reads the words after a subcommand, given as its bits. On failure, reports the error and returns false. With --help,
 * the rest is not looked at, and nothing is required. */
bool options_parse(unsigned command, int argc, char **argv, struct arguments *arguments);

enum { HELP_WIDTH = 80 }; /* of the lines of the help */

/* Prints a space and the name of each positional argument. */
void options_print_usage(unsigned command);

/* Prints a line for each positional argument and option of a subcommand. */
void options_print_help(unsigned command);

/* An input's name for users: "smooth-scales". */
const char *option_name(enum option option);

/* A type's name by the users' word: int4 is quint4x2. */
const char *option_type_name(const char *word);

bool option_has_choice(unsigned command, enum option option, const char *word);

bool option_is_required(unsigned command, enum option option);

#endif
