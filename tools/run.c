/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include "cause.h"
#include "compare.h"
#include "executor.h"
#include "os.h"
#include "progress.h"
#include "report.h"
#include "tensor_file.h"

#include <admissible.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With fewer elements, a thread costs more than it saves. */
enum { ELEMENTS_PER_THREAD = 32768 };

static const char *const output_names[MAX_OUTPUTS] = {"y", "scale", "offset"};

struct run {
    const struct operator_command *command;
    const struct arguments *arguments;
    struct operands operands;
    struct tensor_file inputs[INPUTS];
    struct tensor_file expected[MAX_OUTPUTS];
    struct staged_file staged[MAX_OUTPUTS];
    int staged_count;
    unsigned mode;
    int threads;
    double seconds; /* the fastest call */
    FILE *report;   /* stdout, or stderr if stdout takes an output */
};

static const char *text_of(const struct run *run, int option)
{
    return run->arguments->text[option];
}

/* ---- before the call ------------------------------------------------------------------------------------------- */

static bool choose_backend(const char *name)
{
    for (int i = 0; strcmp(npuq_backend_name((npuq_backend)i), "unknown") != 0; i++) {
        if (strcmp(npuq_backend_name((npuq_backend)i), name) == 0) {
            return npuq_set_backend((npuq_backend)i) == NPUQ_OK || report_error("%s", npuq_last_error());
        }
    }
    return report_error("--backend: there is no '%s'; see npuquant info", name);
}

static bool check_output_paths(struct run *run)
{
    for (int i = 0; i < run->command->outputs; i++) {
        const char *path = text_of(run, OPTION_OUTPUT + i);
        if (!path) {
            continue;
        }
        const enum os_output kind = os_output_kind(path);
        if (kind == OS_UNWRITABLE) {
            return report_error("%s: cannot be written: it is neither a file, a pipe nor a character device", path);
        }
        for (int j = 0; j < i; j++) {
            const char *other = text_of(run, OPTION_OUTPUT + j);
            const bool comparable = other && os_output_kind(other) == kind;
            if (comparable && (kind == OS_STDOUT || (kind == OS_FILE && os_is_same_place(other, path)))) {
                return report_error("%s: named for two outputs", path);
            }
        }
        if (kind == OS_STDOUT) {
            run->report = stderr;
        }
    }
    return true;
}

/* NumPy has no bfloat16: the user names the files that are bfloat16. */
static bool take_bfloat16(struct tensor_file *file, const char *name, bool is_bfloat16)
{
    const npuq_dtype dtype = file->tensor.dtype;

    if (dtype == NPUQ_BFLOAT16 && !is_bfloat16 && !file->is_bfloat16) {
        return report_error("%s: holds %s; if its 16 bits are bfloat16, say --bf16 %s", file->path, file->type, name);
    }
    if (dtype == NPUQ_BFLOAT16 || !is_bfloat16) {
        return true;
    }
    return dtype == NPUQ_FLOAT32
               ? tensor_file_to_bfloat16(file)
               : report_error("%s: holds %s; --bf16 %s is for u2, i2, V2 and f4", file->path, file->type, name);
}

/* A file is read once, from its beginning to its end. */
static bool check_stdin(const struct run *run)
{
    const char *reader = NULL;

    for (int i = 0; i < OPTIONS; i++) {
        const bool is_read = i < INPUTS || (i >= OPTION_EXPECT && i <= OPTION_EXPECT_OFFSET);
        const char *path = text_of(run, i);
        if (!is_read || !path || (strcmp(path, "-") != 0 && strncmp(path, "-:", 2) != 0)) {
            continue;
        }
        const char *name = option_name((enum option)i);
        if (reader) {
            return report_error("stdin (-): is named for %s and for %s; expected one of them", reader, name);
        }
        reader = name;
    }
    return true;
}

/* Whether a vector of one element is enough. */
static bool may_be_one(const struct run *run, int option)
{
    switch (option) {
    case OPTION_SCALES:
    case OPTION_ZERO_POINTS:
    case OPTION_OFFSET:
    case OPTION_WEIGHT_SCALE:
    case OPTION_WORDS: return true;
    case OPTION_SCALE: return run->command->command != FOR_GROUP_QUANT;
    default: return false;
    }
}

/* Whether the operator takes only a vector, so that extents of 1 mean nothing. */
static bool is_vector(const struct run *run, int option)
{
    switch (option) {
    case OPTION_SCALES:
    case OPTION_ZERO_POINTS: return strcmp(text_of(run, OPTION_DIV_MODE), "true") == 0;
    case OPTION_SMOOTH_SCALES: return !text_of(run, OPTION_GROUP_INDEX);
    case OPTION_WEIGHT_SCALE: return true;
    default: return false;
    }
}

/* Adds what a file cannot say: np.save() writes a number without dimensions, and int4 as words. */
static void interpret(const struct run *run, int option, npuq_tensor *tensor)
{
    if (tensor->ndim == 0 && may_be_one(run, option)) {
        *tensor = npuq_tensor_contiguous(tensor->data, tensor->dtype, 1, (const int64_t[]){1});
    }
    if (is_vector(run, option)) {
        const int64_t count = (int64_t)tensor_element_count(tensor);
        const npuq_tensor vector = npuq_tensor_contiguous(NULL, tensor->dtype, 1, &count);
        compare_take_shape(&vector, tensor);
    }
    if (option == OPTION_ACTIVATION_SCALE && run->inputs[OPTION_X].tensor.ndim > 0) {
        const npuq_tensor *x = &run->inputs[OPTION_X].tensor;
        const npuq_tensor rows = npuq_tensor_contiguous(NULL, tensor->dtype, x->ndim - 1, x->shape);
        compare_take_shape(&rows, tensor);
    }
    if (option == OPTION_X && run->command->packed && tensor->dtype == NPUQ_INT32) {
        tensor->dtype = NPUQ_QUINT4X2;
    }
}

static bool load_inputs(struct run *run)
{
    for (int i = 0; i < INPUTS; i++) {
        const char *path = text_of(run, i);
        const char *name = option_name((enum option)i);
        if (!path && run->arguments->is_bfloat16[i]) {
            return report_error("--bf16 %s: no --%s given", name, name);
        }
        if (!path) {
            continue;
        }
        npuq_tensor *tensor = &run->inputs[i].tensor;
        if (!tensor_file_load(&run->inputs[i], path) ||
            !take_bfloat16(&run->inputs[i], name, run->arguments->is_bfloat16[i])) {
            return false;
        }
        interpret(run, i, tensor);
        run->operands.inputs[i] = tensor;
    }
    return true;
}

/* A result with another --dtype. False if the result cannot have that type. */
static bool change_dtype(npuq_tensor *tensor, const struct dtype *dtype)
{
    const int last = tensor->ndim - 1;
    const int64_t values = (int64_t)1 << dtype->log2_values;

    if (last >= 0) {
        tensor->shape[last] <<= dtype_of(tensor->dtype)->log2_values;
    }
    if (values > 1 && (last < 0 || tensor->shape[last] % values != 0)) {
        return false;
    }
    if (last >= 0) {
        tensor->shape[last] /= values;
    }
    tensor->dtype = dtype->dtype;
    return true;
}

/* The type with which the operator would give a result like the file; null if there is none. */
static const struct dtype *fitting_dtype(const struct run *run, const npuq_tensor *ours, const npuq_tensor *theirs)
{
    for (int i = 0; i < DTYPES; i++) {
        npuq_tensor other = *ours;
        if (dtypes[i].dtype != ours->dtype && option_has_choice(run->command->command, OPTION_DTYPE, dtypes[i].name) &&
            change_dtype(&other, &dtypes[i]) && compare_possible(&other, theirs)) {
            return &dtypes[i];
        }
    }
    return NULL;
}

enum { HINT_SIZE = 96 };

/* The hint about a file that another --dtype would give. */
static const char *dtype_hint(char hint[HINT_SIZE], const struct run *run, const npuq_tensor *ours,
                              const npuq_tensor *theirs)
{
    const struct dtype *fitting = fitting_dtype(run, ours, theirs);
    const bool is_int4 = fitting && fitting->dtype == NPUQ_QUINT4X2;

    if (!fitting) {
        return "";
    }
    (void)snprintf(hint, HINT_SIZE, "; if the file has %s, say --dtype %s%s",
                   is_int4 ? "words of eight int4" : fitting->name, fitting->name,
                   is_int4 && run->command->command == FOR_QUANTIZE ? " --div-mode false" : "");
    return hint;
}

/* Reports that a file cannot be compared with this result. */
static bool refuse_comparison(const struct tensor_file *file, const npuq_tensor *ours, const char *name,
                              const char *hint)
{
    char shape[TENSOR_SHAPE_SIZE];
    char their_shape[TENSOR_SHAPE_SIZE];

    return report_error("%s: holds %s %s; expected %s %s to compare with %s, which is %s%s", file->path, file->type,
                        tensor_format_shape(their_shape, &file->tensor), dtype_of(ours->dtype)->npy,
                        tensor_format_shape(shape, ours), name, dtype_of(ours->dtype)->name, hint);
}

static bool load_expected(struct run *run, int i)
{
    const char *path = text_of(run, OPTION_EXPECT + i);
    char hint[HINT_SIZE];

    if (!path) {
        return true;
    }
    if (!tensor_file_load(&run->expected[i], path)) {
        return false;
    }
    const npuq_tensor *ours = &run->operands.outputs[i];
    npuq_tensor *theirs = &run->expected[i].tensor;
    if (i > 0) {
        compare_take_shape(ours, theirs);
    }
    if (ours->dtype == NPUQ_BFLOAT16 && theirs->dtype == NPUQ_FLOAT32 && !tensor_file_to_bfloat16(&run->expected[i])) {
        return false;
    }
    if (ours->dtype == NPUQ_QUINT4X2 && !tensor_file_to_quint4x2(&run->expected[i], ours)) {
        return false;
    }
    return compare_possible(ours, theirs) || refuse_comparison(&run->expected[i], ours, output_names[i],
                                                               i == 0 ? dtype_hint(hint, run, ours, theirs) : "");
}

/* Needed before the inputs are read. */
static bool divides_on_vector_unit(const struct run *run)
{
    const char *div_mode = text_of(run, OPTION_DIV_MODE);
    const struct call_options options = {.divides = div_mode && strcmp(div_mode, "true") == 0};

    return admission_divides(run->command->op, &options);
}

static bool check_admissible(const struct run *run)
{
    const int64_t *number = run->arguments->number;

    if (!text_of(run, OPTION_ADMISSIBLE)) {
        return true;
    }
    if (!divides_on_vector_unit(run)) {
        return report_error("--admissible: %s%s has no division on the device's vector unit: every bit must be equal",
                            run->command->name, run->command->command == FOR_QUANTIZE ? " --div-mode false" : "");
    }
    if (!text_of(run, OPTION_EXPECT) && !text_of(run, OPTION_EXPECT_SCALE)) {
        return report_error("--admissible: nothing is compared; expected --expect FILE");
    }
    return (number[OPTION_MAX_DIFF] == 0 && number[OPTION_MAX_ULP] == 0) ||
           report_error("--admissible: given with --max-diff or --max-ulp; expected one of them");
}

static bool prepare(struct run *run)
{
    const char *backend = text_of(run, OPTION_BACKEND);

    if ((backend && !choose_backend(backend)) || (run->command->check && !run->command->check(run->arguments)) ||
        !check_admissible(run) || !check_output_paths(run) || !check_stdin(run) || !load_inputs(run)) {
        return false;
    }
    if (run->command->check_inputs && !run->command->check_inputs(&run->operands)) {
        return false;
    }
    run->operands.work = tensor_element_count(run->operands.inputs[run->command->positional]);
    run->command->shape_outputs(&run->operands);
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (i < run->command->outputs && (!tensor_allocate(&run->operands.outputs[i]) || !load_expected(run, i))) {
            return false;
        }
        if (i < run->command->scratch && !tensor_allocate(&run->operands.scratch[i])) {
            return false;
        }
    }
    return true;
}

/* ---- the call -------------------------------------------------------------------------------------------------- */

static int count_threads(const struct run *run)
{
    const int64_t wanted = run->arguments->number[OPTION_THREADS];
    const int most = wanted > 0 ? (int)wanted : os_processors();
    const size_t useful = run->operands.work / ELEMENTS_PER_THREAD + 1;

    if (!run->command->threaded) {
        return 1;
    }
    return useful < (size_t)most ? (int)useful : most;
}

static bool call(struct run *run)
{
    struct progress progress = progress_begin(run->command->name);
    const bool shows_progress = !text_of(run, OPTION_QUIET) && os_stderr_is_terminal();
    struct executor executor = {
        .threads = count_threads(run),
        .progress = shows_progress ? progress_show : NULL,
        .progress_context = &progress,
    };
    const npuq_executor view = executor_view(&executor);
    const int64_t repeat = run->mode == 0 ? run->arguments->number[OPTION_REPEAT] : 1;
    npuq_status status = NPUQ_OK;

    run->threads = executor.threads;
    for (int64_t i = 0; i < repeat && status == NPUQ_OK; i++) {
        const double started = os_seconds();
        status = run->command->call(&run->operands, &view);
        const double seconds = os_seconds() - started;
        if (i == 0 || seconds < run->seconds) {
            run->seconds = seconds;
        }
    }
    progress_clear(&progress);
    return status == NPUQ_OK || report_error("%s", npuq_last_error());
}

/* ---- after the call -------------------------------------------------------------------------------------------- */

static bool stage_outputs(struct run *run)
{
    for (int i = 0; i < run->command->outputs; i++) {
        const char *path = text_of(run, OPTION_OUTPUT + i);
        if (path && !staged_file_write(&run->staged[run->staged_count++], path, &run->operands.outputs[i])) {
            return false;
        }
    }
    return true;
}

/* Compares a pair with the tolerance of its type, and prints the report under a name. Equal pairs keep the status. */
static void compare_pair(const struct run *run, const char *name, struct pair *pair, enum exit_status *status)
{
    const bool is_float = dtype_is_float(pair->ours->dtype);
    struct comparison comparison;

    pair->tolerance = run->arguments->number[is_float ? OPTION_MAX_ULP : OPTION_MAX_DIFF];
    if (!compare_tensors(pair, &comparison)) {
        *status = EXIT_ERROR;
        report_error("out of memory to compare %s", name);
    } else if (comparison.differ > 0 || !text_of(run, OPTION_QUIET)) {
        compare_print(run->report, name, pair, &comparison, run->arguments->number[OPTION_MAX_DIFFS]);
        if (!run->command) { /* without an operator, neither is the right result */
            compare_print_remarks(run->report, pair, &comparison);
        }
    }
    if (comparison.differ > 0) {
        *status = EXIT_DIFFERENT;
    }
    compare_release(&comparison);
}

static enum exit_status compare_outputs(const struct run *run)
{
    enum exit_status status = EXIT_EQUAL;

    for (int i = 0; i < MAX_OUTPUTS && status != EXIT_ERROR; i++) {
        if (!text_of(run, OPTION_EXPECT + i)) {
            continue;
        }
        struct pair pair = {
            .ours = &run->operands.outputs[i],
            .theirs = &run->expected[i].tensor,
            .our_name = "npuquant",
            .their_name = "file",
            .is_parameter = i > 0,
        };
        compare_pair(run, output_names[i], &pair, &status);
    }
    return status;
}

/* After the last read of mapped files, before the first name changes. */
static bool inputs_are_whole(const struct run *run)
{
    for (int i = 0; i < INPUTS; i++) {
        if (!tensor_file_is_whole(&run->inputs[i])) {
            return false;
        }
    }
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (!tensor_file_is_whole(&run->expected[i])) {
            return false;
        }
    }
    return true;
}

/* Bytes read and written, each tensor once. */
static double bytes_moved(const struct run *run)
{
    double bytes = 0;

    for (int i = 0; i < INPUTS; i++) {
        bytes += run->operands.inputs[i] ? (double)tensor_byte_count(run->operands.inputs[i]) : 0;
    }
    for (int i = 0; i < run->command->outputs; i++) {
        bytes += (double)tensor_byte_count(&run->operands.outputs[i]);
    }
    return bytes;
}

static void print_summary(const struct run *run)
{
    const enum option first = run->command->positional;
    const npuq_tensor *x = run->operands.inputs[first];
    char shape[TENSOR_SHAPE_SIZE];

    (void)fprintf(run->report, "%s: %s %s %s, y %s, backend %s, %d thread%s, %.6f s", run->command->name,
                  option_name(first), dtype_of(x->dtype)->name, tensor_format_shape(shape, x),
                  dtype_of(run->operands.outputs[0].dtype)->name, npuq_backend_name(npuq_active_backend()),
                  run->threads, run->threads == 1 ? "" : "s", run->seconds);
    if (run->seconds > 0) {
        (void)fprintf(run->report, ", %.2f GB/s", bytes_moved(run) / run->seconds * 1e-9);
    }
    (void)fprintf(run->report, "\n");
}

static void release(struct run *run)
{
    for (int i = 0; i < INPUTS; i++) {
        tensor_file_release(&run->inputs[i]);
    }
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        tensor_file_release(&run->expected[i]);
        staged_file_release(&run->staged[i]);
        free(run->operands.outputs[i].data);
        free(run->operands.scratch[i].data);
    }
}

/* The exit status of the result, by the mode. */
static enum exit_status judge_outputs(const struct run *run)
{
    struct cause cause = {
        .command = run->command, .operands = &run->operands, .threads = run->threads, .stream = run->report};

    for (int i = 0; i < MAX_OUTPUTS; i++) {
        cause.expected[i] = text_of(run, OPTION_EXPECT + i) ? &run->expected[i].tensor : NULL;
    }
    switch (run->mode) {
    case FOR_DIAGNOSE: return cause_diagnose(&cause);
    case FOR_EXPLAIN: return cause_explain(&cause);
    default: break;
    }
    const enum exit_status compared = compare_outputs(run);

    const bool is_tolerant = run->arguments->number[OPTION_MAX_DIFF] > 0 || run->arguments->number[OPTION_MAX_ULP] > 0;

    return compared == EXIT_DIFFERENT && divides_on_vector_unit(run) && !is_tolerant ? cause_admission(&cause)
                                                                                     : compared;
}

enum exit_status run_operator(const struct operator_command *command, const struct arguments *arguments, unsigned mode)
{
    struct run run = {.command = command,
                      .arguments = arguments,
                      .operands = {.arguments = arguments},
                      .mode = mode,
                      .report = stdout};
    enum exit_status status = EXIT_ERROR;

    if (prepare(&run) && call(&run)) {
        const enum exit_status compared = judge_outputs(&run);
        if (compared != EXIT_ERROR && inputs_are_whole(&run) && stage_outputs(&run)) {
            if (run.mode == 0 && !text_of(&run, OPTION_QUIET)) {
                print_summary(&run);
            }
            /* Files get their names only when all are complete and nothing else can fail. */
            if (report_stdout() && staged_files_commit(run.staged, run.staged_count)) {
                status = compared;
            }
        }
    }
    release(&run);
    return status;
}

/* ---- two dumps ------------------------------------------------------------------------------------------------- */

/* Codes are compared as numbers, with or without 128 added. */
static bool is_code(const npuq_tensor *tensor)
{
    return tensor->dtype == NPUQ_INT8 || tensor->dtype == NPUQ_UINT8;
}

enum exit_status run_comparison(const struct arguments *arguments)
{
    struct run run = {.arguments = arguments, .report = stdout};
    const npuq_tensor *ours = &run.inputs[OPTION_A].tensor;
    const struct tensor_file *file = &run.inputs[OPTION_B];
    enum exit_status status = EXIT_ERROR;

    if (check_stdin(&run) && load_inputs(&run) && check_tolerance_of(arguments, ours->dtype)) {
        npuq_tensor theirs = file->tensor;
        struct pair pair = {.ours = ours, .theirs = &theirs, .our_name = "A", .their_name = "B"};
        compare_take_shape(ours, &theirs);
        npuq_tensor alike = theirs;
        alike.dtype = is_code(ours) && is_code(&theirs) ? ours->dtype : theirs.dtype;
        if (!compare_possible(ours, &alike)) {
            refuse_comparison(file, ours, run.inputs[OPTION_A].path, "");
        } else {
            status = EXIT_EQUAL;
            compare_pair(&run, file->path, &pair, &status);
        }
    }
    if (status != EXIT_ERROR && !inputs_are_whole(&run)) {
        status = EXIT_ERROR;
    }
    release(&run);
    return status;
}
