/* SPDX-License-Identifier: BSD-3-Clause */
#include "hard.h"

#include "hard_inputs_report.h"
#include "os.h"
#include "report.h"
#include "tensor_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const result_names[MAX_OUTPUTS] = {"y", "scale", "offset"};

struct hard {
    const struct operator_command *command;
    const struct arguments *arguments;
    const char *folder;
    struct hard_inputs inputs;
    struct operands operands; /* the same inputs, by option */
    struct text paths[INPUTS];
    struct text result_paths[MAX_OUTPUTS];
    struct text manifest_path;
};

/* ---- the call -------------------------------------------------------------------------------------------------- */

static bool is_empty(enum option option)
{
    return option == INPUTS;
}

/* The type that --type names for an operand, if any. */
static bool choose_type(const struct hard *hard, enum operand operand, npuq_dtype *dtype, bool *chosen)
{
    const enum option option = hard->command->option_of(operand);
    const char *text = hard->arguments->type[option];
    char name[16]; /* no type has a longer name */

    if (!text) {
        return true;
    }
    const int length = (int)strcspn(text, ",");
    (void)snprintf(name, sizeof name, "%.*s", length, text);
    const struct dtype *named = dtype_named(option_type_name(name));
    *chosen = named != NULL;
    if (named) {
        *dtype = named->dtype;
        return true;
    }
    return report_error("--type: %s: there is no type '%.*s'; expected float32, float16, bfloat16, int8, uint8, int32, "
                        "int64, uint64 or quint4x2 (int4)",
                        option_name(option), length, text);
}

static bool choose_types(const struct hard *hard, struct hard_wish *wish)
{
    bool chosen[OPERANDS] = {false};

    for (int i = 0; i < OPERANDS; i++) {
        if (!is_empty(hard->command->option_of((enum operand)i)) &&
            !choose_type(hard, (enum operand)i, &wish->dtypes[i], &chosen[i])) {
            return false;
        }
    }
    hard_inputs_choose_types(wish, chosen);
    return true;
}

static bool choose_shape(const struct hard *hard, struct hard_wish *wish)
{
    const struct place *shape = &hard->arguments->places[0];
    const int last = shape->count - 1;
    int64_t count = 1;

    wish->ndim = shape->count;
    for (int d = 0; d < shape->count; d++) {
        wish->shape[d] = shape->index[d];
        if (shape->index[d] > HARD_MOST_VALUES || count * shape->index[d] > HARD_MOST_VALUES) {
            return report_error("--shape: has more values than %d; expected fewer", HARD_MOST_VALUES);
        }
        count *= shape->index[d];
    }
    if ((wish->dtypes[OPERAND_X] == NPUQ_QUINT4X2 || wish->options.y_dtype == NPUQ_QUINT4X2) &&
        wish->shape[last] % 8 != 0) {
        return report_error("--shape: dimension %d is %" PRId64 "; expected a multiple of 8, as words hold eight int4",
                            last, wish->shape[last]);
    }
    return true;
}

static bool make_wish(struct hard *hard, struct hard_wish *wish)
{
    const struct operator_command *command = hard->command;
    const struct arguments *arguments = hard->arguments;
    struct request request = {0};

    *wish = (struct hard_wish){.op = command->op, .seed = (uint64_t)arguments->number[OPTION_SEED]};
    for (int i = 0; i < OPERANDS; i++) {
        const enum option option = command->option_of((enum operand)i);
        wish->present[i] = !is_empty(option) && !arguments->is_left_out[option];
        if (!is_empty(option) && !wish->present[i] && option_is_required(command->command, option)) {
            return report_error("--without: %s is required", option_name(option));
        }
    }
    if (!choose_types(hard, wish)) {
        return false;
    }
    /* The call has an x with as many dimensions. */
    const npuq_tensor x = {.ndim = arguments->places[0].count};
    hard->operands.inputs[command->positional] = &x;
    hard->operands.outputs[0].dtype = wanted_dtype(arguments);
    const bool known = describe_call(command, &hard->operands, &request);
    hard->operands.inputs[command->positional] = NULL;
    wish->options = request.options;
    return known && choose_shape(hard, wish);
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

/* Whether the library accepts the call; the library reports its reason. */
static bool check_call(struct hard *hard)
{
    const struct operator_command *command = hard->command;
    bool ok = true;

    command->shape_outputs(&hard->operands);
    for (int i = 0; i < command->outputs; i++) {
        ok = ok && tensor_allocate(&hard->operands.outputs[i]);
    }
    ok = ok && (command->call(&hard->operands, NULL) == NPUQ_OK || report_error("%s", npuq_last_error()));
    for (int i = 0; i < command->outputs; i++) {
        free(hard->operands.outputs[i].data);
        hard->operands.outputs[i].data = NULL;
    }
    return ok;
}

static bool make_inputs(struct hard *hard)
{
    struct hard_wish wish;

    if ((hard->command->check && !hard->command->check(hard->arguments)) || !make_wish(hard, &wish)) {
        return false;
    }
    if (!hard_inputs_begin(&hard->inputs, &wish)) {
        return report_error("out of memory");
    }
    for (int i = 0; i < OPERANDS; i++) {
        if (wish.present[i]) {
            hard->operands.inputs[hard->command->option_of((enum operand)i)] = &hard->inputs.operands[i];
        }
    }
    return check_call(hard) && (hard_inputs_fill(&hard->inputs) || report_error("out of memory"));
}

/* ---- the manifest ---------------------------------------------------------------------------------------------- */

/* A name as torch_npu writes it: "smooth_scales". */
static void add_name(struct text *text, const char *name)
{
    for (; *name != '\0'; name++) {
        text_add(text, "%c", *name == '-' ? '_' : *name);
    }
}

static void add_tensor(struct text *text, const char *name, const npuq_tensor *tensor, const char *separator)
{
    text_add(text, "%s    \"", separator);
    add_name(text, name);
    text_add(text, "\": {\"file\": \"");
    add_name(text, name);
    text_add(text, ".npy\", \"dtype\": \"%s\", \"shape\": [", dtype_of(tensor->dtype)->name);
    for (int d = 0; d < tensor->ndim; d++) {
        text_add(text, "%s%" PRId64, d > 0 ? ", " : "", tensor->shape[d]);
    }
    text_add(text, "]}");
}

static const enum option options[] = {OPTION_AXIS,       OPTION_DIV_MODE, OPTION_ROUND_MODE, OPTION_QUANT_MODE,
                                      OPTION_SCALE_FORM, OPTION_BLOCK,    OPTION_MIN_SCALE,  OPTION_DTYPE};
enum { COUNT_OF_OPTIONS = sizeof options / sizeof options[0] };

static bool has_option(const struct hard *hard, enum option option)
{
    return option == OPTION_AXIS ? hard->command->op == QUANTIZE : hard->arguments->text[option] != NULL;
}

/* Numbers are formatted anew: JSON has fewer ways to write them. */
static void add_value(struct text *text, const struct hard *hard, enum option option)
{
    const struct call_options *values = &hard->inputs.wish.options;

    switch (option) {
    case OPTION_AXIS: text_add(text, "%" PRId32, values->axis); break;
    case OPTION_BLOCK: text_add(text, "%" PRId64, values->block); break;
    case OPTION_MIN_SCALE: text_add(text, "%.9g", (double)values->min_scale); break;
    default: text_add(text, "%s", hard->arguments->text[option]); break;
    }
}

static void add_arguments(struct text *text, const struct hard *hard)
{
    const char *separator = "";

    for (size_t i = 0; i < COUNT_OF_OPTIONS; i++) {
        const enum option option = options[i];
        const bool is_word = option == OPTION_QUANT_MODE || option == OPTION_SCALE_FORM || option == OPTION_DTYPE;
        if (has_option(hard, option)) {
            text_add(text, "%s\"", separator);
            add_name(text, option_name(option));
            text_add(text, is_word ? "\": \"" : "\": ");
            add_value(text, hard, option);
            text_add(text, is_word ? "\"" : "");
            separator = ", ";
        }
    }
}

/* The diagnose command for results, to be run in the folder. */
static void add_command(struct text *text, const struct hard *hard)
{
    const struct operator_command *command = hard->command;
    static const char *const expects[MAX_OUTPUTS] = {" --expect y.npy", " --expect-scale scale.npy",
                                                     " --expect-offset offset.npy"};
    const char *separator = " --bf16 ";

    text_add(text, "npuquant diagnose %s", command->name);
    for (int i = 0; i < INPUTS; i++) {
        if (hard->operands.inputs[i]) {
            if (i != (int)command->positional) {
                text_add(text, " --%s", option_name((enum option)i));
            }
            text_add(text, " ");
            add_name(text, option_name((enum option)i));
            text_add(text, ".npy");
        }
    }
    for (int i = 0; i < INPUTS; i++) {
        if (hard->operands.inputs[i] && hard->operands.inputs[i]->dtype == NPUQ_BFLOAT16) {
            text_add(text, "%s%s", separator, option_name((enum option)i));
            separator = ",";
        }
    }
    for (size_t i = 0; i < COUNT_OF_OPTIONS; i++) {
        if (has_option(hard, options[i])) {
            text_add(text, " --%s ", option_name(options[i]));
            add_value(text, hard, options[i]);
        }
    }
    for (int i = 0; i < command->outputs; i++) {
        text_add(text, "%s", expects[i]);
    }
}

static void make_manifest(struct text *text, const struct hard *hard)
{
    const char *separator = "\n";

    text_add(text, "{\n  \"npuquant\": \"%s\",\n  \"operator\": \"%s\",\n  \"seed\": %" PRIu64 ",\n  \"arguments\": {",
             NPUQ_VERSION, hard->command->name, hard->inputs.wish.seed);
    add_arguments(text, hard);
    text_add(text, "},\n  \"inputs\": {");
    for (int i = 0; i < INPUTS; i++) {
        if (hard->operands.inputs[i]) {
            add_tensor(text, option_name((enum option)i), hard->operands.inputs[i], separator);
            separator = ",\n";
        }
    }
    text_add(text, "\n  },\n  \"outputs\": {");
    for (int i = 0; i < hard->command->outputs; i++) {
        add_tensor(text, result_names[i], &hard->operands.outputs[i], i == 0 ? "\n" : ",\n");
    }
    text_add(text, "\n  },\n  \"diagnose\": \"");
    add_command(text, hard);
    text_add(text, "\",\n  \"mistakes\": ");
    hard_inputs_report_json(text, &hard->inputs);
    text_add(text, "\n}\n");
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static bool name_files(struct hard *hard)
{
    bool failed = false;

    for (int i = 0; i < INPUTS; i++) {
        if (hard->operands.inputs[i]) {
            text_add(&hard->paths[i], "%s/", hard->folder);
            add_name(&hard->paths[i], option_name((enum option)i));
            text_add(&hard->paths[i], ".npy");
            failed = failed || hard->paths[i].failed;
        }
    }
    for (int i = 0; i < hard->command->outputs; i++) {
        text_add(&hard->result_paths[i], "%s/%s.npy", hard->folder, result_names[i]);
        failed = failed || hard->result_paths[i].failed;
    }
    text_add(&hard->manifest_path, "%s/manifest.json", hard->folder);
    return !(failed || hard->manifest_path.failed) || report_error("out of memory");
}

/* Names all files together. */
static bool write_files(struct hard *hard)
{
    struct staged_file staged[INPUTS + 1] = {{0}};
    struct text manifest = {0};
    int count = 0;
    bool ok = os_make_folder(hard->folder) || report_error("%s: cannot be made: %s", hard->folder, os_error());

    make_manifest(&manifest, hard);
    if (manifest.failed) {
        ok = report_error("out of memory");
    }
    for (int i = 0; i < INPUTS && ok; i++) {
        if (hard->operands.inputs[i]) {
            ok = staged_file_write(&staged[count++], hard->paths[i].characters, hard->operands.inputs[i]);
        }
    }
    if (ok) {
        ok = staged_file_write_text(&staged[count++], hard->manifest_path.characters, manifest.characters);
    }
    ok = ok && staged_files_commit(staged, count);
    for (int i = 0; i < count; i++) {
        staged_file_release(&staged[i]);
    }
    text_release(&manifest);
    return ok;
}

static bool print_report(const struct hard *hard)
{
    struct text text = {0};
    bool ok;

    hard_inputs_report_text(&text, &hard->inputs);
    ok = !text.failed || report_error("out of memory");
    if (ok && !hard->arguments->text[OPTION_QUIET] && !hard->arguments->text[OPTION_JSON]) {
        (void)printf("%s: %s", hard->folder, text.characters);
    }
    text_release(&text);
    return ok && report_stdout();
}

/* ---- a user's program ------------------------------------------------------------------------------------------ */

static bool exists(const char *path)
{
    struct os_file file;

    if (!os_open(path, &file)) {
        return false;
    }
    os_close(&file);
    return true;
}

/* Diagnoses the results that the program leaves; it must leave at least y. */
static enum exit_status run_program(struct hard *hard)
{
    struct arguments diagnosed = *hard->arguments;
    int status;

    for (int i = 0; i < hard->command->outputs; i++) {
        os_remove(hard->result_paths[i].characters); /* of an earlier run */
    }
    status = os_run_command(hard->arguments->text[OPTION_RUN], hard->manifest_path.characters);
    if (status < 0) {
        report_error("--run: the command cannot be run: %s", os_error());
        return EXIT_ERROR;
    }
    if (status > 0) {
        report_error("--run: the command failed with status %d", status);
        return EXIT_ERROR;
    }
    if (!exists(hard->result_paths[0].characters)) {
        report_error("--run: the command has left no %s", hard->result_paths[0].characters);
        return EXIT_ERROR;
    }
    for (int i = 0; i < INPUTS; i++) {
        diagnosed.text[i] = hard->operands.inputs[i] ? hard->paths[i].characters : NULL;
        diagnosed.is_bfloat16[i] = hard->operands.inputs[i] && hard->operands.inputs[i]->dtype == NPUQ_BFLOAT16;
    }
    diagnosed.text[OPTION_OUTPUT] = NULL;
    for (int i = 0; i < hard->command->outputs; i++) {
        const char *path = hard->result_paths[i].characters;
        diagnosed.text[OPTION_EXPECT + i] = exists(path) ? path : NULL;
    }
    return run_operator(hard->command, &diagnosed, FOR_DIAGNOSE);
}

static void release(struct hard *hard)
{
    hard_inputs_release(&hard->inputs);
    for (int i = 0; i < INPUTS; i++) {
        text_release(&hard->paths[i]);
    }
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        text_release(&hard->result_paths[i]);
    }
    text_release(&hard->manifest_path);
}

enum exit_status hard_run(const struct operator_command *command, const struct arguments *arguments)
{
    struct hard hard = {.command = command,
                        .arguments = arguments,
                        .folder = arguments->text[OPTION_OUTPUT],
                        .operands = {.arguments = arguments}};
    enum exit_status status = EXIT_ERROR;

    if (make_inputs(&hard) && name_files(&hard) && write_files(&hard) && print_report(&hard)) {
        status = arguments->text[OPTION_RUN] ? run_program(&hard) : EXIT_EQUAL;
    }
    release(&hard);
    return status;
}
