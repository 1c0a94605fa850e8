/* SPDX-License-Identifier: BSD-3-Clause */
#include "npuquant_main.h"

#include "hard.h"
#include "hypotheses_list.h"
#include "info.h"
#include "nearest.h"
#include "operators.h"
#include "report.h"
#include "run.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* A use of an operator's result, other than writing and comparing it. */
struct mode {
    const char *name;
    unsigned mode;
    const char *summary;
    const char *about;
    const char *takes;        /* of the options */
    const char *status;       /* what the exit status means */
    const char *example;      /* stands after the inputs, or replaces them */
    const char *example_of_1; /* for an operator with a 1-D X as a rule */
};

static const struct mode modes[] = {
    {"diagnose", FOR_DIAGNOSE, "find the mistake that explains differences: diagnose OPERATOR ... --expect FILE",
     "Compares the operator's result with the FILE of --expect. If they differ, finds the mistake, or the pair of "
     "mistakes, that gives the values in FILE, and shows one element step by step.",
     "those of the operator, except --max-diff, --max-ulp, --max-diffs and --repeat",
     "0 nothing differs; 1 something differs, whether explained or not; 2 an error", " --expect y.npy",
     " --expect y.npy"},
    {"explain", FOR_EXPLAIN, "show the steps of single elements: explain OPERATOR ... --at I,J",
     "Shows how the operator computes elements of its result, step by step, with the bits of each value. The steps of "
     "dynamic operators include scale, offset, and the places of the extremes in x.",
     "those of the operator, except --repeat and those of comparisons", "0 done; 2 an error", " --at 0,1", " --at 1"},
    {"hard-inputs", FOR_HARD_INPUTS, "make inputs on which mistakes show: hard-inputs OPERATOR --shape N,N -o DIR",
     "Makes inputs on which as many known mistakes as possible change the operator's result, each in its "
     "own way. Writes them to a folder, with a manifest that names the call. With --run, has a program "
     "compute the results, and diagnoses them.",
     "the settings of the operator, such as --dtype",
     "0 done, and with --run nothing differs; 1 something differs; 2 an error", " --shape 64,128 -o hard",
     " --shape 64 -o hard"},
};
enum { MODES = sizeof modes / sizeof modes[0] };

static enum exit_status run_compare(int argc, char **argv);
static enum exit_status run_hypotheses(int argc, char **argv);
static enum exit_status run_info(int argc, char **argv);
static enum exit_status run_help(int argc, char **argv);

/* Commands with no operator, or with an optional one. */
static const struct {
    const char *name;
    const char *summary;
    enum exit_status (*run)(int argc, char **argv);
} others[] = {
    {"compare", "compare two dumps without an operator: compare A B", run_compare},
    {"hypotheses", "list the known mistakes, with advice: hypotheses [OPERATOR]", run_hypotheses},
    {"info", "print version, backends and CPU, for bug reports", run_info},
    {"help", "print what a command takes", run_help},
};
enum { OTHERS = sizeof others / sizeof others[0] };

/* Prints the beginning of a line, and words from a column on, wrapped. */
static void print_wrapped(const char *first, size_t column, const char *words)
{
    struct text text = {0};

    text_add(&text, "%s", first);
    text_add_wrapped(&text, HELP_WIDTH, column, "%s", words);
    (void)printf("%s\n", text.failed ? words : text.characters);
    text_release(&text);
}

static void print_summary(const char *name, const char *summary)
{
    char first[32];

    (void)snprintf(first, sizeof first, "  %s", name);
    print_wrapped(first, 28, summary);
}

enum { MOST_LINES = 4 };

/* The end of the help. */
static const struct {
    const char *title;
    struct {
        const char *name;
        const char *summary;
    } lines[MOST_LINES];
} tables[] = {
    {"files",
     {{"FILE.npy",
       "versions 1 to 3, up to 8 dimensions, C or Fortran order, either byte order; f4, f2, i1, u1, i4, i8, "
       "u8, or a type that --bf16 takes"},
      {"FILE.npz:NAME", "the array NAME of an archive of numpy.savez; FILE.npz, if it has one array"},
      {"FILE.bin:TYPE:N,N", "elements alone, in C order: x.bin:float16:32,4096"},
      {"-", "stdin as an input; stdout as an output, and then all messages go to stderr"}}},
    {"environment", {{"NPUQ_BACKEND", "the kernels to use if no --backend is given"}}},
    {"exit status",
     {{"0", "done; nothing differs by more than --max-diff, --max-ulp or --admissible allow"},
      {"1", "done, and outputs are written, but something differs"},
      {"2", "an error: one line on stderr says what and where; no output is written, unless the line names one"},
      {"128 + n", "in a shell: signal n has ended the command"}}},
};

static void print_help(void)
{
    (void)printf("usage: npuquant COMMAND ...\n\n");
    print_wrapped("", 0,
                  "The quantisation operators of Ascend NPUs, bit for bit, on NumPy .npy files. The results are the "
                  "same on every CPU, with all kernels and any number of threads.");
    (void)printf("\ncommands:\n");
    for (int i = 0; i < COMMANDS; i++) {
        print_summary(operators[i].name, operators[i].summary);
    }
    for (int i = 0; i < MODES; i++) {
        print_summary(modes[i].name, modes[i].summary);
    }
    for (int i = 0; i < OTHERS; i++) {
        print_summary(others[i].name, others[i].summary);
    }
    (void)printf("\n");
    print_wrapped(
        "", 0,
        "npuquant help COMMAND, or npuquant COMMAND --help, lists what a command takes. npuquant --version, "
        "or -V, prints the version. --name=VALUE and --name VALUE are the same. After -- there are no options.");
    (void)printf("\n");
    print_wrapped("", 0,
                  "Outputs replace files only when the whole run has succeeded. If a comparison finds differences, the "
                  "run has succeeded, too.");
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        (void)printf("\n%s:\n", tables[i].title);
        for (size_t j = 0; j < MOST_LINES && tables[i].lines[j].name; j++) {
            print_summary(tables[i].lines[j].name, tables[i].lines[j].summary);
        }
    }
}

/* Prints a shell command, continued on the next line before an option that does not fit. */
static void print_command(const char *command)
{
    size_t column = 2;

    (void)printf("  ");
    while (*command != '\0') {
        const char *next = command;
        do { /* the sign of a negative number is no option */
            next = strstr(next + 1, " -");
        } while (next && next[2] >= '0' && next[2] <= '9');
        const size_t length = next ? (size_t)(next - command) : strlen(command);
        if (column + length + strlen(" \\") > HELP_WIDTH) {
            (void)printf(" \\\n     ");
            column = 5;
        }
        (void)printf("%.*s", (int)length, command);
        column += length;
        command += length;
    }
    (void)printf("\n");
}

/* The operator's example in another mode: its inputs, then the mode's words. */
static void print_example(const struct operator_command *command, const struct mode *mode)
{
    static const char program[] = "npuquant ";
    const char *words = command->example + sizeof program - 1;
    const size_t length =
        mode->mode == FOR_HARD_INPUTS ? strlen(command->name) : (size_t)(strstr(words, " -o ") - words);
    struct text text = {0};

    text_add(&text, "%s%s %.*s%s", program, mode->name, (int)length, words,
             command->op == TRANS_QUANT_PARAM ? mode->example_of_1 : mode->example);
    print_command(text.failed ? "" : text.characters);
    text_release(&text);
}

static void print_command_help(const struct operator_command *command, const struct mode *mode)
{
    const unsigned bits = command->command | (mode ? mode->mode : 0);

    (void)printf("usage: npuquant %s%s%s", mode ? mode->name : "", mode ? " " : "", command->name);
    options_print_usage(bits);
    (void)printf(" [OPTION]...\n\n");
    if (mode) {
        print_wrapped("", 0, mode->about);
        (void)printf("\n");
    }
    print_wrapped("", 0, command->about);
    (void)printf("\n");
    options_print_help(bits);
    (void)printf("\n");
    print_wrapped("exit status:", 0,
                  mode ? mode->status
                       : "0 done, and equal to what was expected; 1 something differs, but outputs are written; 2 an "
                         "error");
    (void)printf("\nexample:\n");
    if (mode) {
        print_example(command, mode);
    } else {
        print_command(command->example);
    }
}

/* quant-matmul has no hard inputs of its own: the operator after the product has them. */
static bool has_mode(const struct operator_command *command, const struct mode *mode)
{
    return mode->mode != FOR_HARD_INPUTS || command->command != FOR_QUANT_MATMUL;
}

static void print_mode_help(const struct mode *mode)
{
    struct text text = {0};

    (void)printf("usage: npuquant %s OPERATOR ...\n\n", mode->name);
    print_wrapped("", 0, mode->about);
    (void)printf("\noperators:\n");
    for (int i = 0; i < COMMANDS; i++) {
        if (has_mode(&operators[i], mode)) {
            (void)printf("  %s\n", operators[i].name);
        }
    }
    (void)printf("\n");
    text_add(&text, "npuquant %s OPERATOR --help lists all options. They are %s, and:", mode->name, mode->takes);
    print_wrapped("", 0, text.failed ? "" : text.characters);
    text_release(&text);
    (void)printf("\n");
    options_print_help(mode->mode);
    (void)printf("\n");
    print_wrapped("exit status:", 0, mode->status);
    (void)printf("\nexample:\n");
    print_example(&operators[0], mode);
}

static enum exit_status run_command(const struct operator_command *command, const struct mode *mode, int argc,
                                    char **argv)
{
    const unsigned bit = mode ? mode->mode : 0;
    struct arguments arguments;

    if (!options_parse(command->command | bit, argc, argv, &arguments)) {
        return EXIT_ERROR;
    }
    if (arguments.text[OPTION_HELP]) {
        print_command_help(command, mode);
        return EXIT_EQUAL;
    }
    return bit == FOR_HARD_INPUTS ? hard_run(command, &arguments) : run_operator(command, &arguments, bit);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static enum exit_status run_info(int argc, char **argv)
{
    if (argc > 0 && is_help(argv[0])) {
        (void)printf("usage: npuquant info\n\nPrints version, backends, CPU and system, for bug reports.\n\n"
                     "example:\n  npuquant info\n");
        return EXIT_EQUAL;
    }
    if (argc > 0) {
        report_error("info: unexpected argument %s", argv[0]);
        return EXIT_ERROR;
    }
    print_info();
    return EXIT_EQUAL;
}

static enum exit_status run_compare(int argc, char **argv)
{
    struct arguments arguments;

    if (!options_parse(FOR_COMPARE, argc, argv, &arguments)) {
        return EXIT_ERROR;
    }
    if (!arguments.text[OPTION_HELP]) {
        return run_comparison(&arguments);
    }
    (void)printf("usage: npuquant compare A B [OPTION]...\n\n");
    print_wrapped("", 0,
                  "Compares two dumps, bit by bit, and says how many elements differ, by how much (B minus A), and "
                  "where. It also says whether all differences are 128, as between int8 and uint8, whether they are at "
                  "most one unit in the last place, and whether the values are the same in another order. "
                  "Dimensions of extent 1 need not agree, and B may be flat. i1 and u1 are compared as numbers.");
    (void)printf("\n");
    options_print_help(FOR_COMPARE);
    (void)printf("\n");
    print_wrapped("exit status:", 0, "0 the dumps are equal; 1 something differs; 2 an error");
    (void)printf("\nexample:\n  npuquant compare ours.npy theirs.npy\n");
    return EXIT_EQUAL;
}

static enum exit_status refuse(const char *what, const char *name, const struct nearest *nearest)
{
    if (nearest->name) {
        report_error("there is no %s %s; did you mean %s?", what, name, nearest->name);
    } else {
        report_error("there is no %s %s; see npuquant --help", what, name);
    }
    return EXIT_ERROR;
}

static void consider_operators(struct nearest *nearest, const char *name)
{
    const size_t prefix = strncmp(name, "npu_", 4) == 0 ? 4 : 0; /* torch_npu's */

    for (int i = 0; i < COMMANDS; i++) {
        nearest_consider(nearest, name + prefix, strlen(name + prefix), operators[i].name);
    }
}

static enum exit_status refuse_operator(const char *name)
{
    struct nearest nearest = {0};

    consider_operators(&nearest, name);
    return refuse("operator", name, &nearest);
}

/* An option where a command should be. */
static enum exit_status refuse_option(const char *word)
{
    static const char *const names[] = {"--help", "--version"};
    struct nearest nearest = {0};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        nearest_consider(&nearest, word, strlen(word), names[i]);
    }
    if (nearest.name) {
        report_error("unknown option %s; did you mean %s?", word, nearest.name);
    } else {
        report_error("unknown option %s before the command; see npuquant --help", word);
    }
    return EXIT_ERROR;
}

static enum exit_status refuse_command(const char *name)
{
    struct nearest nearest = {0};

    if (*name == '-') {
        return refuse_option(name);
    }
    consider_operators(&nearest, name);
    for (int i = 0; i < MODES; i++) {
        nearest_consider(&nearest, name, strlen(name), modes[i].name);
    }
    for (int i = 0; i < OTHERS; i++) {
        nearest_consider(&nearest, name, strlen(name), others[i].name);
    }
    return refuse("command", name, &nearest);
}

static const struct operator_command *find_operator(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, operators[i].name) == 0) {
            return &operators[i];
        }
    }
    return NULL;
}

static const struct mode *find_mode(const char *name)
{
    for (int i = 0; i < MODES; i++) {
        if (strcmp(name, modes[i].name) == 0) {
            return &modes[i];
        }
    }
    return NULL;
}

static enum exit_status run_hypotheses(int argc, char **argv)
{
    const struct operator_command *command = NULL;
    bool json = false;

    for (int i = 0; i < argc; i++) {
        if (is_help(argv[i])) {
            (void)printf("usage: npuquant hypotheses [OPERATOR] [--json]\n\n");
            print_wrapped("", 0,
                          "Lists the mistakes that npuquant diagnose knows, of all operators or of one: what the "
                          "kernel does, advice, and the operators that can have the mistake.");
            (void)printf("\n"
                         "  --json                        print them as JSON\n"
                         "  -h, --help                    print this\n\n"
                         "example:\n  npuquant hypotheses dynamic-quant\n");
            return EXIT_EQUAL;
        }
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (command || argv[i][0] == '-') {
            report_error("hypotheses: unexpected argument %s; see npuquant hypotheses --help", argv[i]);
            return EXIT_ERROR;
        } else {
            command = find_operator(argv[i]);
            if (!command) {
                return refuse_operator(argv[i]);
            }
        }
    }
    return list_hypotheses(command, json) ? EXIT_EQUAL : EXIT_ERROR;
}

static enum exit_status run_mode(const struct mode *mode, int argc, char **argv)
{
    if (argc == 0) {
        report_error("%s: no operator given; see npuquant %s --help", mode->name, mode->name);
        return EXIT_ERROR;
    }
    if (is_help(argv[0])) {
        print_mode_help(mode);
        return EXIT_EQUAL;
    }
    const struct operator_command *command = find_operator(argv[0]);
    if (!command) {
        return refuse_operator(argv[0]);
    }
    if (!has_mode(command, mode)) {
        report_error("%s: not for %s; expected the operator behind its sums, dequant or requant", mode->name,
                     command->name);
        return EXIT_ERROR;
    }
    return run_command(command, mode, argc - 1, argv + 1);
}

static enum exit_status run_named(const char *name, int argc, char **argv);

/* help COMMAND is COMMAND --help, and help diagnose OPERATOR is diagnose OPERATOR --help. */
static enum exit_status run_help(int argc, char **argv)
{
    char help[] = "--help";
    char *words[] = {help, NULL};
    const struct mode *mode = argc > 0 ? find_mode(argv[0]) : NULL;

    if (argc == 2 && mode) {
        return run_mode(mode, 2, (char *[]){argv[1], help});
    }
    if (argc > 1) {
        report_error("help: unexpected argument %s", argv[mode ? 2 : 1]);
        return EXIT_ERROR;
    }
    if (argc == 0 || is_help(argv[0]) || strcmp(argv[0], "help") == 0) {
        print_help();
        return EXIT_EQUAL;
    }
    return run_named(argv[0], 1, words);
}

static enum exit_status run_named(const char *name, int argc, char **argv)
{
    const struct operator_command *command = find_operator(name);
    const struct mode *mode = find_mode(name);

    if (command) {
        return run_command(command, NULL, argc, argv);
    }
    if (mode) {
        return run_mode(mode, argc, argv);
    }
    for (int i = 0; i < OTHERS; i++) {
        if (strcmp(name, others[i].name) == 0) {
            return others[i].run(argc, argv);
        }
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        (void)printf("npuquant %s\n", NPUQ_VERSION);
        return EXIT_EQUAL;
    }
    if (is_help(name)) {
        print_help();
        return EXIT_EQUAL;
    }
    return refuse_command(name);
}

int npuquant_main(int argc, char **argv)
{
    enum exit_status status = EXIT_ERROR;

    if (argc < 2) {
        report_error("no command given; see npuquant --help");
    } else {
        status = run_named(argv[1], argc - 2, argv + 2);
    }
    /* A full disk must not look like success; other errors have been reported. */
    return (int)(status != EXIT_ERROR && !report_stdout() ? EXIT_ERROR : status);
}
