/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include "nearest.h"
#include "report.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOR_DYNAMIC = FOR_DYNAMIC_QUANT | FOR_DYNAMIC_QUANT_ASYMMETRIC,
    FOR_SCALES = FOR_DYNAMIC | FOR_DYNAMIC_BLOCK_QUANT,       /* operators that return scales */
    FOR_FLOATS = FOR_QUANTIZE | FOR_GROUP_QUANT | FOR_SCALES, /* operators that quantise a tensor x */
    FOR_SUMS = FOR_DEQUANT | FOR_REQUANT,
    FOR_INTEGER_RESULTS = FOR_FLOATS | FOR_REQUANT | FOR_QUANT_MATMUL,
    FOR_FLOAT_RESULTS = FOR_ANTI_QUANT | FOR_SUMS | FOR_QUANT_MATMUL,
    FOR_ALL = (1 << COMMANDS) - 1,
    FOR_CAUSES = FOR_DIAGNOSE | FOR_EXPLAIN | FOR_HARD_INPUTS,
    FOR_ALL_WAYS = FOR_ALL | FOR_HARD_INPUTS | FOR_COMPARE,
};

enum kind {
    POSITIONAL, /* a file, without the name of an option */
    INPUT,      /* a file */
    REQUIRED_INPUT,
    TEXT,   /* a file or name, checked elsewhere */
    CHOICE, /* one of the words in value, which are separated by | */
    INTEGER,
    FRACTION,
    NAMES, /* inputs, separated by commas; repeatable */
    TYPES, /* inputs and their types, separated by commas: x=float16; repeatable */
    INDEX, /* indices of an element, separated by commas; repeatable */
    FLAG,
};

struct row {
    enum option option;
    enum kind kind;
    unsigned commands;
    const char *name;
    const char *value;   /* the help's word for the value */
    const char *initial; /* the default; null without one */
    const char *help;
    int64_t least; /* of an INTEGER */
    int64_t most;
};

static const struct row rows[] = {
    {OPTION_X, POSITIONAL, FOR_FLOATS, "x", "X", NULL, "the tensor: f4, f2, or u2 with --bf16 x", 0, 0},
    {OPTION_X, POSITIONAL, FOR_ANTI_QUANT, "x", "X", NULL, "the tensor: i1, or i4 for words of eight int4", 0, 0},
    {OPTION_X, POSITIONAL, FOR_SUMS, "x", "X", NULL, "the sums: i4, [..., N]", 0, 0},
    {OPTION_X1, POSITIONAL, FOR_QUANT_MATMUL, "x1", "X1", NULL, "the activations: i1, [..., M, K]", 0, 0},
    {OPTION_X2, POSITIONAL, FOR_QUANT_MATMUL, "x2", "X2", NULL, "the weights: i1, [..., K, N]", 0, 0},
    {OPTION_SCALE, POSITIONAL, FOR_TRANS_QUANT_PARAM, "scale", "SCALE", NULL, "scales: f4, 1-D or 2-D", 0, 0},
    {OPTION_A, POSITIONAL, FOR_COMPARE, "a", "A", NULL, "a dump", 0, 0},
    {OPTION_B, POSITIONAL, FOR_COMPARE, "b", "B", NULL, "another one, of the same type and shape", 0, 0},
    {OPTION_SCALES, REQUIRED_INPUT, FOR_QUANTIZE, "scales", "FILE", NULL,
     "one scale, or one for each index of the quantised dimension", 0, 0},
    {OPTION_ZERO_POINTS, INPUT, FOR_QUANTIZE, "zero-points", "FILE", NULL, "zero points, shaped as the scales", 0, 0},
    {OPTION_SCALE, REQUIRED_INPUT, FOR_GROUP_QUANT, "scale", "FILE", NULL, "a row of scales for each group, [E, H]", 0,
     0},
    {OPTION_SCALE, REQUIRED_INPUT, FOR_ANTI_QUANT, "scale", "FILE", NULL,
     "one scale, one for each column, or [G, N] for G groups of rows", 0, 0},
    {OPTION_SCALE, INPUT, FOR_QUANT_MATMUL, "scale", "FILE", NULL,
     "one scale, or one for each column; or words of trans-quant-param, i8 or u8 (required, except with --dtype int32)",
     0, 0},
    {OPTION_GROUP_INDEX, REQUIRED_INPUT, FOR_GROUP_QUANT, "group-index", "FILE", NULL,
     "where each group of rows ends, [E], i4 or i8", 0, 0},
    {OPTION_OFFSET, INPUT, FOR_GROUP_QUANT, "offset", "FILE", NULL,
     "one offset for all elements, of the type of --scale", 0, 0},
    {OPTION_OFFSET, INPUT, FOR_TRANS_QUANT_PARAM, "offset", "FILE", NULL, "offsets: f4", 0, 0},
    {OPTION_OFFSET, INPUT, FOR_ANTI_QUANT, "offset", "FILE", NULL, "offsets, shaped as the scales and of their type", 0,
     0},
    {OPTION_OFFSET, INPUT, FOR_QUANT_MATMUL, "offset", "FILE", NULL,
     "one offset, or one for each column, f4; only with --dtype int8 and a --scale of f4", 0, 0},
    {OPTION_SMOOTH_SCALES, INPUT, FOR_DYNAMIC, "smooth-scales", "FILE", NULL,
     "factors of the columns, [H], or [E, H] with --group-index", 0, 0},
    {OPTION_GROUP_INDEX, INPUT, FOR_DYNAMIC, "group-index", "FILE", NULL,
     "where each group of rows ends, [E], i4 or i8", 0, 0},
    {OPTION_WEIGHT_SCALE, REQUIRED_INPUT, FOR_DEQUANT, "weight-scale", "FILE", NULL,
     "one scale, or one for each column", 0, 0},
    {OPTION_ACTIVATION_SCALE, INPUT, FOR_DEQUANT, "activation-scale", "FILE", NULL,
     "a scale for each row, f4: those of dynamic-quant", 0, 0},
    {OPTION_PERTOKEN_SCALE, INPUT, FOR_QUANT_MATMUL, "pertoken-scale", "FILE", NULL,
     "a scale for each row, f4: those of dynamic-quant", 0, 0},
    {OPTION_WORDS, REQUIRED_INPUT, FOR_REQUANT, "words", "FILE", NULL,
     "one word of trans-quant-param, or one for each column: i8 or u8; with --dtype float16 also the bits of scales", 0,
     0},
    {OPTION_BIAS, INPUT, FOR_DEQUANT, "bias", "FILE", NULL,
     "a value for each column; i4 is added to x first, and f4, f2 or u2 last", 0, 0},
    {OPTION_BIAS, INPUT, FOR_REQUANT, "bias", "FILE", NULL, "a value for each column, i4; it is added to x first", 0,
     0},
    {OPTION_BIAS, INPUT, FOR_QUANT_MATMUL, "bias", "FILE", NULL,
     "a value for each column; i4 is added to the sums first, and f4, f2 or u2 last, where dequant follows", 0, 0},
    {OPTION_AXIS, INTEGER, FOR_QUANTIZE, "axis", "N", NULL,
     "the quantised dimension, counted from the end if negative (default 1, as in torch_npu, or 0 if X is 1-D); with "
     "--div-mode false, -2 is the last but one, and every larger number the last",
     INT32_MIN, INT32_MAX},
    {OPTION_DIV_MODE, CHOICE, FOR_QUANTIZE, "div-mode", "true|false", "true", "divide by the scales, or multiply", 0,
     0},
    {OPTION_ROUND_MODE, CHOICE, FOR_TRANS_QUANT_PARAM, "round-mode", "0|1", "0",
     "truncate the scales to 19 bits, or round them", 0, 0},
    {OPTION_QUANT_MODE, CHOICE, FOR_DYNAMIC, "quant-mode", "pertoken|pertensor", "pertoken",
     "parameters for each row, or for the whole tensor", 0, 0},
    {OPTION_SCALE_FORM, CHOICE, FOR_DYNAMIC_QUANT, "scale-form", "product|inverse", "product",
     "compute scales as largest * (1 / 127), as CANN 9.0 and later do, or as 1 / (127 / largest)", 0, 0},
    {OPTION_BLOCK, INTEGER, FOR_DYNAMIC_BLOCK_QUANT, "block", "N", "128",
     "columns of a block; for quint4x2 a multiple of 8, unless a row has no more columns than N", 1, INT64_MAX},
    {OPTION_MIN_SCALE, FRACTION, FOR_DYNAMIC_BLOCK_QUANT, "min-scale", "NUMBER", "0",
     "the smallest factor of x, so 1 / NUMBER is the largest scale; 0 sets no limit", 0, 0},
    {OPTION_DTYPE, CHOICE, FOR_QUANTIZE, "dtype", "int8|uint8|int32|quint4x2|int4", "int8",
     "type of the result: int8, uint8 or int32 with --div-mode true, int8 or quint4x2 with false; int4 is another name "
     "of quint4x2",
     0, 0},
    {OPTION_DTYPE, CHOICE, FOR_DYNAMIC_QUANT | FOR_DYNAMIC_BLOCK_QUANT, "dtype", "int8|uint8|quint4x2|int4", "int8",
     "type of the result; uint8 is int8 plus 128; int4 is another name of quint4x2", 0, 0},
    {OPTION_DTYPE, CHOICE, FOR_GROUP_QUANT | FOR_DYNAMIC_QUANT_ASYMMETRIC, "dtype", "int8|quint4x2|int4", "int8",
     "type of the result; int4 is another name of quint4x2", 0, 0},
    {OPTION_DTYPE, CHOICE, FOR_TRANS_QUANT_PARAM, "dtype", "int64|uint64", "int64",
     "type of the result; the bits are the same", 0, 0},
    {OPTION_DTYPE, CHOICE, FOR_ANTI_QUANT | FOR_DEQUANT, "dtype", "float16|bfloat16|float32", "float16",
     "type of the result", 0, 0},
    {OPTION_DTYPE, CHOICE, FOR_REQUANT, "dtype", "int8|float16", "int8", "type of the result", 0, 0},
    {OPTION_DTYPE, CHOICE, FOR_QUANT_MATMUL, "dtype", "int8|float16|bfloat16|float32|int32", "int8",
     "type of the result", 0, 0},
    {OPTION_BF16, NAMES, FOR_ALL, "bf16", "NAME,...", NULL,
     "the inputs that are bfloat16 (x, scales, ...): files of u2, i2 and V2 must be named, and files of f4 may be "
     "named if all values are values of bfloat16; may be repeated",
     0, 0},
    {OPTION_BF16, NAMES, FOR_COMPARE, "bf16", "NAME,...", NULL, "which files are bfloat16: a, b, or a,b", 0, 0},
    {OPTION_AT, INDEX, FOR_EXPLAIN, "at", "I,J,...", NULL,
     "the element to explain: an index from 0 for each dimension of the result, where each int4 counts; may be "
     "repeated (required)",
     0, 0},
    {OPTION_SHAPE, INDEX, FOR_HARD_INPUTS, "shape", "N,N,...", NULL,
     "the shape of X or SCALE, in values; at most 1048576 values (required)", 1, 0},
    {OPTION_TYPE, TYPES, FOR_HARD_INPUTS, "type", "NAME=TYPE,...", NULL,
     "types of inputs, such as x=bfloat16; may be repeated", 0, 0},
    {OPTION_WITHOUT, NAMES, FOR_HARD_INPUTS, "without", "NAME,...", NULL,
     "optional inputs to leave out; may be repeated", 0, 0},
    {OPTION_SEED, INTEGER, FOR_HARD_INPUTS, "seed", "N", "1",
     "another seed gives other inputs, the same seed the same ones", 0, INT64_MAX},
    {OPTION_OUTPUT, TEXT, FOR_HARD_INPUTS, "output", "DIR", NULL,
     "the folder for the inputs and manifest.json; npuquant makes it if there is none (required)", 0, 0},
    {OPTION_RUN, TEXT, FOR_HARD_INPUTS, "run", "COMMAND", NULL,
     "run COMMAND in a shell, with the name of the manifest as its last argument, and diagnose the results that it "
     "leaves in DIR: y.npy, and for dynamic operators scale.npy and offset.npy; its output goes to stderr",
     0, 0},
    {OPTION_JSON, FLAG, FOR_CAUSES, "json", NULL, NULL, "print JSON", 0, 0},
    {OPTION_OUTPUT, TEXT, FOR_ALL, "output", "FILE", NULL, "where the result goes (quint4x2 as i4, bfloat16 as u2)", 0,
     0},
    {OPTION_SCALE_OUTPUT, TEXT, FOR_SCALES, "scale-output", "FILE", NULL, "where the scales go, f4", 0, 0},
    {OPTION_OFFSET_OUTPUT, TEXT, FOR_DYNAMIC_QUANT_ASYMMETRIC, "offset-output", "FILE", NULL,
     "where the offsets go, f4", 0, 0},
    {OPTION_EXPECT, TEXT, FOR_ALL, "expect", "FILE", NULL,
     "compare the result with FILE: print differences (FILE minus npuquant) to stdout, and exit with 1 if there are "
     "any",
     0, 0},
    {OPTION_EXPECT_SCALE, TEXT, FOR_SCALES, "expect-scale", "FILE", NULL,
     "compare the scales with FILE in the same way", 0, 0},
    {OPTION_EXPECT_OFFSET, TEXT, FOR_DYNAMIC_QUANT_ASYMMETRIC, "expect-offset", "FILE", NULL,
     "compare the offsets with FILE in the same way", 0, 0},
    {OPTION_MAX_DIFF, INTEGER, FOR_INTEGER_RESULTS | FOR_COMPARE, "max-diff", "N", "0",
     "how far an element of an integer result may be off", 0, INT32_MAX},
    {OPTION_MAX_ULP, INTEGER, FOR_SCALES, "max-ulp", "N", "0",
     "how many float32 steps a scale or an offset may be off; NaN equals NaN", 0, INT32_MAX},
    {OPTION_MAX_ULP, INTEGER, FOR_FLOAT_RESULTS | FOR_COMPARE, "max-ulp", "N", "0",
     "how many steps of its type an element of a floating-point result may be off", 0, INT32_MAX},
    {OPTION_MAX_DIFFS, INTEGER, FOR_ALL | FOR_COMPARE, "max-diffs", "N", "10",
     "how many single differences of each comparison are shown; all are counted", 0, INT64_MAX},
    {OPTION_ADMISSIBLE, FLAG, FOR_ALL, "admissible", NULL, NULL,
     "exit with 0 also if the device's vector division can make all differences; only for quantize with --div-mode "
     "true, dynamic-quant and dynamic-block-quant",
     0, 0},
    {OPTION_BACKEND, TEXT, FOR_ALL, "backend", "NAME", NULL,
     "the kernels to use, see npuquant info (default: the fastest); the result is the same", 0, 0},
    {OPTION_THREADS, INTEGER, FOR_ALL, "threads", "N", "0", "at most N threads; 0 means one for each processor", 0,
     4096},
    {OPTION_REPEAT, INTEGER, FOR_ALL, "repeat", "N", "1", "do the work N times and report the fastest", 1, 1000000},
    {OPTION_QUIET, FLAG, FOR_ALL_WAYS, "quiet", NULL, NULL, "print errors and differences only", 0, 0},
    {OPTION_HELP, FLAG, FOR_ALL_WAYS, "help", NULL, NULL, "print this", 0, 0},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static char short_name(enum option option)
{
    switch (option) {
    case OPTION_OUTPUT: return 'o';
    case OPTION_QUIET: return 'q';
    case OPTION_HELP: return 'h';
    default: return '\0';
    }
}

/* Whether a command takes the option. Commands that look for causes take no tolerance, and run once. hard-inputs names
 * a folder, and no other files. */
static bool is_for(const struct row *row, unsigned command)
{
    if ((row->commands & command) == 0) {
        return false;
    }
    if (command & FOR_HARD_INPUTS) {
        return (row->commands & FOR_HARD_INPUTS) || row->kind == CHOICE || row->kind == FRACTION ||
               row->option == OPTION_AXIS || row->option == OPTION_BLOCK;
    }
    switch (row->option) {
    case OPTION_MAX_DIFF:
    case OPTION_MAX_ULP:
    case OPTION_MAX_DIFFS:
    case OPTION_REPEAT: return !(command & FOR_CAUSES);
    case OPTION_ADMISSIBLE:
    case OPTION_EXPECT:
    case OPTION_EXPECT_SCALE:
    case OPTION_EXPECT_OFFSET: return !(command & FOR_EXPLAIN);
    default: return true;
    }
}

static bool is_input(const struct row *row)
{
    return row->kind == POSITIONAL || row->kind == INPUT || row->kind == REQUIRED_INPUT;
}

const char *option_name(enum option option)
{
    size_t i = 0;

    while (rows[i].option != option) {
        i++;
    }
    return rows[i].name;
}

const char *option_type_name(const char *word)
{
    return strcmp(word, "int4") == 0 ? "quint4x2" : word;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *words)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, "|");
        if (strlen(text) == length && memcmp(text, words, length) == 0) {
            return true;
        }
        words += length;
        words += *words == '|';
    }
    return false;
}

static bool read_integer(const struct row *row, const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < row->least || value > row->most) {
        return report_error("--%s: '%s' is not a number from %lld to %lld", row->name, text, (long long)row->least,
                            (long long)row->most);
    }
    *number = value;
    return true;
}

static bool read_fraction(const struct row *row, const char *text, float *number)
{
    char *end;

    *number = strtof(text, &end);
    return (end != text && *end == '\0') || report_error("--%s: '%s' is not a number", row->name, text);
}

/* Whether a word of a list is an input's name, with hyphens or torch_npu's underscores. */
static bool names_input(const struct row *row, const char *word, size_t length)
{
    if (strlen(row->name) != length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if ((word[i] == '_' ? '-' : word[i]) != row->name[i]) {
            return false;
        }
    }
    return true;
}

/* The row of the input whose name the first `length` characters of text are; null without one. */
static const struct row *find_input(unsigned command, const char *text, size_t length)
{
    for (size_t i = 0; i < ROWS; i++) {
        if ((rows[i].commands & command) && is_input(&rows[i]) && names_input(&rows[i], text, length)) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool read_names(const struct row *names, unsigned command, const char *text, struct arguments *arguments)
{
    for (const char *word = text; word; word = strchr(word, ',')) {
        word += word != text;
        const size_t length = strcspn(word, ",");
        const size_t name_length = names->kind == TYPES ? strcspn(word, "=,") : length;
        const struct row *input = find_input(command, word, name_length);
        if (!input) {
            return report_error("--%s: there is no input called '%.*s'", names->name, (int)name_length, word);
        }
        if (names->kind == TYPES) {
            if (name_length == length) {
                return report_error("--%s: no type given for %s; expected %s=TYPE", names->name, input->name,
                                    input->name);
            }
            arguments->type[input->option] = word + name_length + 1;
        } else if (names->option == OPTION_WITHOUT) {
            arguments->is_left_out[input->option] = true;
        } else {
            arguments->is_bfloat16[input->option] = true;
        }
    }
    return true;
}

static bool read_index(const struct row *row, const char *text, struct arguments *arguments)
{
    struct place place = {0};
    const char *at = text;
    char *end;

    do {
        errno = 0;
        const long long value = strtoll(at, &end, 10);
        if (end == at || errno != 0 || value < row->least || place.count == MOST_INDICES ||
            (*end != ',' && *end != '\0')) {
            return report_error("--%s: '%s': expected at most %d numbers from %lld on, separated by commas", row->name,
                                text, MOST_INDICES, (long long)row->least);
        }
        place.index[place.count++] = value;
        at = end + 1;
    } while (*end == ',');
    if (row->option == OPTION_SHAPE) {
        arguments->place_count = 0; /* the last one counts */
    }
    if (arguments->place_count == MOST_ELEMENTS) {
        return report_error("--%s: is given more than %d times", row->name, MOST_ELEMENTS);
    }
    arguments->places[arguments->place_count++] = place;
    return true;
}

static bool take_value(const struct row *row, unsigned command, const char *value, struct arguments *arguments)
{
    arguments->text[row->option] = value;
    switch (row->kind) {
    case CHOICE:
        if (row->option == OPTION_DTYPE) {
            arguments->text[OPTION_DTYPE] = option_type_name(value);
        }
        return is_one_of(value, row->value) || report_error("--%s: '%s' is none of %s", row->name, value, row->value);
    case INTEGER: return read_integer(row, value, &arguments->number[row->option]);
    case FRACTION: return read_fraction(row, value, &arguments->min_scale);
    case NAMES:
    case TYPES: return read_names(row, command, value, arguments);
    case INDEX: return read_index(row, value, arguments);
    default: return *value != '\0' || report_error("--%s: an empty name", row->name);
    }
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

/* The row of "name", "name=value" or a single letter. */
static const struct row *find_row(unsigned command, const char *name, size_t length, bool is_short)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (!is_for(row, command) || row->kind == POSITIONAL) {
            continue;
        }
        if (is_short ? short_name(row->option) == *name
                     : strlen(row->name) == length && memcmp(row->name, name, length) == 0) {
            return row;
        }
    }
    return NULL;
}

/* Reports an unknown option, with the name that it probably means. */
static bool refuse_option(unsigned command, const char *word)
{
    const char *name = word + strspn(word, "-");
    struct nearest nearest = {0};

    for (size_t i = 0; i < ROWS; i++) {
        if (is_for(&rows[i], command) && rows[i].kind != POSITIONAL) {
            nearest_consider(&nearest, name, strcspn(name, "="), rows[i].name);
        }
    }
    const bool elsewhere = word[1] == '-' && find_row(FOR_ALL, name, strcspn(name, "="), false);
    const char *what = elsewhere ? "this command has no option" : "unknown option";
    return nearest.name ? report_error("%s %s; did you mean --%s?", what, word, nearest.name)
                        : report_error("%s %s; see --help", what, word);
}

/* Takes one option, and its value if that is another word; *at stays at the last word used. */
static bool take_option(unsigned command, int argc, char **argv, int *at, struct arguments *arguments)
{
    const char *word = argv[*at];
    const bool is_short = word[1] != '-';
    const char *name = word + (is_short ? 1 : 2);
    const size_t length = is_short ? 1 : strcspn(name, "=");
    const char *rest = name + length;
    const struct row *row = find_row(command, name, length, is_short);

    if (!row || (row->kind == FLAG && *rest != '\0' && is_short)) {
        return refuse_option(command, word);
    }
    if (row->kind == FLAG && *rest != '\0') {
        return report_error("%s: --%s takes no value", word, row->name);
    }
    if (row->kind == FLAG) {
        arguments->text[row->option] = row->name;
        return true;
    }
    if (*rest != '\0') { /* --name=value, or -nvalue */
        return take_value(row, command, is_short ? rest : rest + 1, arguments);
    }
    if (*at + 1 >= argc) {
        return report_error("%s: no value given; see --help", word);
    }
    return take_value(row, command, argv[++*at], arguments);
}

static bool take_positional(unsigned command, const char *word, struct arguments *arguments)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_for(&rows[i], command) && rows[i].kind == POSITIONAL && !arguments->text[rows[i].option]) {
            return take_value(&rows[i], command, word, arguments);
        }
    }
    return report_error("unexpected argument %s; see --help", word);
}

static bool check_complete(unsigned command, const struct arguments *arguments)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (!is_for(row, command) || arguments->text[row->option]) {
            continue;
        }
        if (row->kind == POSITIONAL) {
            return report_error("no %s given; see --help", row->value);
        }
        if (row->kind == REQUIRED_INPUT) {
            return report_error("no --%s given; see --help", row->name);
        }
    }
    return true;
}

/* An option of comparisons without a file to compare with is an error: the status would look like an answer. */
static bool check_compared(unsigned command, const struct arguments *arguments)
{
    static const enum option of_comparisons[] = {OPTION_MAX_DIFF, OPTION_MAX_ULP, OPTION_MAX_DIFFS};
    const bool compared = (command & FOR_COMPARE) || arguments->text[OPTION_EXPECT] ||
                          arguments->text[OPTION_EXPECT_SCALE] || arguments->text[OPTION_EXPECT_OFFSET];

    if ((command & FOR_DIAGNOSE) && !compared) {
        return report_error("no --expect given; see --help");
    }
    if ((command & FOR_EXPLAIN) && arguments->place_count == 0) {
        return report_error("no --at given; see --help");
    }
    if ((command & FOR_HARD_INPUTS) && arguments->place_count == 0) {
        return report_error("no --shape given; see --help");
    }
    if ((command & FOR_HARD_INPUTS) && !arguments->text[OPTION_OUTPUT]) {
        return report_error("no --output given; see --help");
    }
    if ((command & FOR_HARD_INPUTS) && arguments->text[OPTION_JSON] && !arguments->text[OPTION_RUN]) {
        return report_error("--json: nothing is diagnosed; expected --run, too");
    }
    for (size_t i = 0; !compared && i < ROWS; i++) {
        const struct row *row = &rows[i];
        for (size_t j = 0; j < sizeof of_comparisons / sizeof of_comparisons[0]; j++) {
            if (is_for(row, command) && row->option == of_comparisons[j] &&
                arguments->text[row->option] != row->initial) {
                return report_error("--%s: nothing is compared; expected --expect, too", row->name);
            }
        }
    }
    return true;
}

static bool take_initial_values(unsigned command, struct arguments *arguments)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_for(&rows[i], command) && rows[i].initial &&
            !take_value(&rows[i], command, rows[i].initial, arguments)) {
            return false;
        }
    }
    return true;
}

bool option_is_required(unsigned command, enum option option)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].option == option && (rows[i].commands & command) &&
            (rows[i].kind == POSITIONAL || rows[i].kind == REQUIRED_INPUT)) {
            return true;
        }
    }
    return false;
}

bool option_has_choice(unsigned command, enum option option, const char *word)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].option == option && is_for(&rows[i], command)) {
            return is_one_of(word, rows[i].value);
        }
    }
    return false;
}

bool options_parse(unsigned command, int argc, char **argv, struct arguments *arguments)
{
    bool only_positional = false;

    memset(arguments, 0, sizeof *arguments);
    if (!take_initial_values(command, arguments)) {
        return false;
    }
    for (int i = 0; i < argc; i++) {
        bool ok = true;
        if (only_positional || argv[i][0] != '-' || argv[i][1] == '\0' || argv[i][1] == ':') {
            ok = take_positional(command, argv[i], arguments);
        } else if (strcmp(argv[i], "--") == 0) {
            only_positional = true;
        } else {
            ok = take_option(command, argc, argv, &i, arguments);
        }
        if (!ok) {
            return false;
        }
        if (arguments->text[OPTION_HELP]) {
            return true;
        }
    }
    return check_complete(command, arguments) && check_compared(command, arguments);
}

/* ---- help ------------------------------------------------------------------------------------------------------ */

enum { HELP_COLUMN = 32 };

static void print_row(const struct row *row)
{
    struct text text = {0};

    if (row->kind == POSITIONAL) {
        text_add(&text, "  %s", row->value);
    } else {
        const char letter = short_name(row->option);
        if (letter) {
            text_add(&text, "  -%c, --%s", letter, row->name);
        } else {
            text_add(&text, "  --%s", row->name);
        }
        text_add(&text, "%s%s", row->value ? " " : "", row->value ? row->value : "");
    }
    if (text.length >= HELP_COLUMN) {
        text_add(&text, "\n");
    }
    text_add_wrapped(&text, HELP_WIDTH, HELP_COLUMN, "%s%s%s%s%s", row->help,
                     row->kind == REQUIRED_INPUT ? " (required)" : "", row->initial ? " (default " : "",
                     row->initial ? row->initial : "", row->initial ? ")" : "");
    (void)printf("%s\n", text.failed ? "" : text.characters);
    text_release(&text);
}

void options_print_usage(unsigned command)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_for(&rows[i], command) && rows[i].kind == POSITIONAL) {
            (void)printf(" %s", rows[i].value);
        }
    }
}

void options_print_help(unsigned command)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_for(&rows[i], command)) {
            print_row(&rows[i]);
        }
    }
}
