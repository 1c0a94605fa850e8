/* SPDX-License-Identifier: BSD-3-Clause */
/* From a difference to its cause: calls that are kept with their results, and what a diagnosis finds of these calls.
 * Dictionaries have the facts; reports.py makes text and JSON of them. */
#include "../_native.h"

#include "../_executor.h"

#include <diagnose.h>
#include <hypotheses.h>
#include <layouts.h>
#include <predict.h>
#include <state.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kept calls ------------------------------------------------------------------------------------------------- */

/* A call and its results, as arrays that belong to it. */
struct kept {
    const operation *op;
    struct call call;
    struct array ours[RESULTS];
    Py_ssize_t bytes[RESULTS];
};

static const char kept_name[] = "npuquant.call";

static void release_kept(struct kept *kept)
{
    for (int r = 0; r < RESULTS; r++) {
        array_release(&kept->ours[r]);
    }
    call_release(&kept->call);
    free(kept);
}

static void release_capsule(PyObject *capsule)
{
    release_kept(PyCapsule_GetPointer(capsule, kept_name));
}

static void set_option(struct call_options *options, int role, int64_t number, float real)
{
    switch (role) {
    case AXIS: options->axis = (int32_t)number; break;
    case DIV_MODE: options->divides = number != 0; break;
    case QUANT_MODE: options->per_tensor = number == NPUQ_PER_TENSOR; break;
    case SCALE_FORM: options->inverse_form = number == NPUQ_SCALE_INVERSE; break;
    case ROW_BLOCK: options->row_block = number; break;
    case BLOCK: options->block = number; break;
    case MIN_SCALE: options->min_scale = real; break;
    case DST_TYPE_MAX: options->dst_type_max = real; break;
    case BLOCK_SIZE: options->mx.block = (size_t)number; break;
    case ROUNDING: options->mx.rounding = (npuq_ref_rounding)number; break;
    case SCALE_ALG: options->mx.scale_algorithm = (int)number; break;
    case SMALL_GROUPS: options->mx.small_groups = (npuq_ref_small_groups)number; break;
    case MAX_LOW_BOUND: options->mx.max_low_bound = real; break;
    case BAD_GROUPS: options->mx.bad_is_nan = number != 0; break;
    case RULE: options->rule = (enum rule)number; break;
    default: options->rounds_to_nearest = number == NPUQ_ROUND_NEAREST; break;
    }
}

/* False if memory is short. Otherwise copies a call that the library has accepted. */
static bool copy_call(const held_call *held, struct kept *kept)
{
    const npuq_tensor *operands[OPERANDS] = {NULL};
    struct call_options options = {.axis = -1};
    bool ok = true;

    for (Py_ssize_t i = 0; i < held->count && ok; i++) {
        const npuq_tensor *tensor = held->a.tensor[i];
        const int role = held->op->arguments[i].role;
        if (held->op->arguments[i].kind >= NUMBER) {
            set_option(&options, role, held->a.number[i], held->a.real[i]);
        } else if (held->op->arguments[i].kind != OUTPUT) {
            operands[role] = tensor;
        } else {
            options.y_dtype = role == RESULT_Y ? tensor->dtype : options.y_dtype;
            kept->bytes[role] = held->held[i].buffer.len;
            ok = array_make(&kept->ours[role], tensor);
        }
    }
    return ok && call_make(&kept->call, held->op->op, operands, &options);
}

/* keep(operation, arguments, threads): returns the call of an operator with its results. The arguments are the
 * operator's without the last. They are read once, so that the kept call has the values that the library accepted. */
static PyObject *keep(PyObject *module, PyObject *given)
{
    PyObject *operation_capsule;
    PyObject *values;
    PyObject *threads;
    PyObject *capsule = NULL;
    const operation *op;
    struct kept *kept;
    held_call held;
    bool copied = false;

    (void)module;
    if (!PyArg_ParseTuple(given, "OO!O", &operation_capsule, &PyTuple_Type, &values, &threads)) {
        return NULL;
    }
    op = operation_of(operation_capsule);
    if (!op) {
        return NULL;
    }
    kept = calloc(1, sizeof *kept);
    if (!kept) {
        return PyErr_NoMemory();
    }
    kept->op = op;
    if (take_call(&held, op, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values)) && run_call(&held, threads)) {
        Py_BEGIN_ALLOW_THREADS;
        copied = copy_call(&held, kept);
        Py_END_ALLOW_THREADS;
        capsule = copied ? PyCapsule_New(kept, kept_name, release_capsule) : PyErr_NoMemory();
    }
    let_call_go(&held);
    if (!capsule) {
        release_kept(kept);
    }
    return capsule;
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

static const char *const result_names[RESULTS] = {"y", "scale", "offset"};

/* Appends an item, and releases it. An item that is null is an exception; *list is null after one. */
static void append(PyObject **list, PyObject *item)
{
    if (*list && (!item || PyList_Append(*list, item) != 0)) {
        Py_CLEAR(*list);
    }
    Py_XDECREF(item);
}

/* For Py_BuildValue(): keeps the two on one line. */
#define KEY(name, value) name, value

static PyObject *none(void)
{
    Py_RETURN_NONE;
}

/* A bytearray. PyByteArray_FromStringAndSize() of a size has a fault in older versions: if memory is short, it destroys
 * an object without a count of exports, which prints a SystemError. */
static PyObject *bytes_of(const void *data, Py_ssize_t size)
{
    PyObject *bytes = PyByteArray_FromStringAndSize(NULL, 0);

    if (bytes && PyByteArray_Resize(bytes, size) != 0) {
        Py_CLEAR(bytes);
    }
    if (bytes && size > 0) {
        memcpy(PyByteArray_AS_STRING(bytes), data, (size_t)size);
    }
    return bytes;
}

static PyObject *describe_index(const struct call *call, struct element element)
{
    size_t index[NPUQ_MAX_NDIM];
    const int ndim = explain_index(call, element, index);
    PyObject *indices = PyList_New(0);

    for (int d = 0; indices && d < ndim; d++) {
        append(&indices, PyLong_FromSize_t(index[d]));
    }
    return indices;
}

/* (step, kind, value) */
static PyObject *describe_line(const struct call *call, const struct trace_line *line)
{
    if (line->kind == TRACE_PLACE) {
        return Py_BuildValue("ssN", line->step, "place",
                             describe_index(call, (struct element){RESULT_Y, (size_t)line->value}));
    }
    return Py_BuildValue("ssd", line->step, line->kind == TRACE_INTEGER ? "integer" : "float", line->value);
}

static PyObject *describe_steps(const struct call *call, const struct variant *variant, struct element element)
{
    struct steps steps;
    PyObject *lines = PyList_New(0);

    Py_BEGIN_ALLOW_THREADS; /* a scale may be that of the whole tensor */
    steps = explain_steps(call, variant, element);
    Py_END_ALLOW_THREADS;
    for (int i = 0; lines && i < steps.trace.count; i++) {
        append(&lines, describe_line(call, &steps.trace.lines[i]));
    }
    return Py_BuildValue("{s:N,s:K}", KEY("steps", lines), KEY("bits", (unsigned long long)steps.bits));
}

/* hypothesis is null, or other steps to show with those of the definition; theirs is null without a dump. */
static PyObject *describe_element(const struct call *call, struct element element, const struct variant *hypothesis,
                                  const struct array *theirs)
{
    static const struct variant definition;

    return Py_BuildValue("{s:s,s:N,s:s,s:N,s:N,s:N}", KEY("result", result_names[element.result]),
                         KEY("index", describe_index(call, element)),
                         KEY("dtype", dtype_of(call_result_dtype(call, element.result))->name),
                         KEY("definition", describe_steps(call, &definition, element)),
                         KEY("hypothesis", hypothesis ? describe_steps(call, hypothesis, element) : none()),
                         KEY("dump", theirs ? PyLong_FromUnsignedLongLong(array_bits(theirs, element.index)) : none()));
}

static PyObject *describe_hypothesis(const struct hypothesis *hypothesis)
{
    return Py_BuildValue("{s:s,s:s,s:s}", KEY("name", hypothesis->name), KEY("what", hypothesis->what),
                         KEY("advice", hypothesis->advice));
}

static PyObject *describe_layout(const struct call *call, const struct variant *variant)
{
    const struct found_layout found = layout_describe(call, variant);

    if (found.has_fill) {
        return Py_BuildValue("{s:n,s:n,s:n,s:s}",
                             KEY(found.is_begin ? "overwritten_to" : "untouched_from", variant->layout.from),
                             KEY("multiple_of", found.multiple_of), KEY("of", found.of), KEY("unit", found.unit));
    }
    if (found.moved > 0) {
        return Py_BuildValue("{s:n,s:n,s:n,s:n}", KEY("moved", found.moved), KEY("of", found.of),
                             KEY("row", found.first), KEY("holds_row", variant->layout.row_of[found.first]));
    }
    return none();
}

static PyObject *describe_part(const struct part *part)
{
    if (part->kind == PART_ALL) {
        return none();
    }
    return Py_BuildValue("{s:s,s:n,s:n,s:n}", KEY("unit", part->kind == PART_ROWS ? "row" : "column"),
                         KEY("begin", part->begin), KEY("end", part->end), KEY("of", part->of));
}

/* Adds a number to a dictionary; *numbers is null after an exception. */
static void add_number(PyObject **numbers, const char *name, PyObject *number)
{
    if (*numbers && (!number || PyDict_SetItemString(*numbers, name, number) != 0)) {
        Py_CLEAR(*numbers);
    }
    Py_XDECREF(number);
}

/* What is read off the dump. */
static PyObject *describe_numbers(const struct variant *variant)
{
    PyObject *numbers = PyDict_New();

    if (variant_has_number(variant)) {
        add_number(&numbers, "bound", PyFloat_FromDouble(variant->bound.value));
    }
    if (variant_has_window(variant)) {
        add_number(&numbers, "window", PyLong_FromSize_t(variant->window));
    }
    if (variant_has_one_scale(variant)) {
        add_number(&numbers, "scale", PyFloat_FromDouble(variant->scale.value));
    }
    if (variant_has_one_scale(variant) && !isnan(variant->offset.value)) {
        add_number(&numbers, "offset", PyFloat_FromDouble(variant->offset.value));
    }
    return numbers;
}

static PyObject *describe_findings(const struct call *call, const struct diagnosis *d)
{
    PyObject *findings = PyList_New(0);

    for (int i = 0; findings && i < d->count; i++) {
        const struct finding *finding = &d->findings[i];
        PyObject *made = PyList_New(0);
        for (int k = 0; made && k < 2 && finding->hypotheses[k]; k++) {
            append(&made, describe_hypothesis(finding->hypotheses[k]));
        }
        append(&findings, Py_BuildValue("{s:N,s:n,s:n,s:n,s:d,s:d,s:d,s:N,s:N,s:N}", KEY("hypotheses", made),
                                        KEY("explained", finding->explained), KEY("unexplained", finding->unexplained),
                                        KEY("newly_wrong", finding->newly_wrong), KEY("prior", finding->prior),
                                        KEY("gained", finding->gained), KEY("score", finding_score(finding)),
                                        KEY("layout", describe_layout(call, &finding->variant)),
                                        KEY("numbers", describe_numbers(&finding->variant)),
                                        KEY("part", describe_part(&finding->part))));
    }
    return findings;
}

/* None if the call has no division of the device's vector unit. */
static PyObject *describe_admission(const struct call *call, const struct admission *a)
{
    if (!a->divides) {
        return none();
    }
    return Py_BuildValue("{s:s,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:N}", KEY("unit", admission_unit(call)),
                         KEY("units", a->units), KEY("differing", a->differing), KEY("wrong", a->wrong),
                         KEY("possible", a->moves.possible), KEY("made", a->moves.made),
                         KEY("exact_possible", a->exact.possible), KEY("exact_made", a->exact.made),
                         KEY("too_many", PyBool_FromLong(a->too_many)));
}

/* remainder.py describes it. */
static PyObject *describe_remainder(const struct kept *kept, const struct remainder *remainder)
{
    const struct call *call = &kept->call;
    const npuq_dtype rounded = call_rounded_dtype(call->op, call->options.y_dtype);
    PyObject *expected = PyList_New(0);

    for (int r = 0; expected && r < RESULTS; r++) {
        const void *data = remainder->expected[r].data;
        append(&expected, data ? bytes_of(data, kept->bytes[r]) : none());
    }
    return Py_BuildValue(
        "{s:N,s:N,s:d}", KEY("expected", expected),
        KEY("points", bytes_of(remainder->points, (Py_ssize_t)(remainder->point_count * sizeof *remainder->points))),
        KEY("shift", dtype_of(call->options.y_dtype)->high - dtype_of(rounded)->high));
}

/* How many elements of a result that is not empty are in a row. */
static size_t row_length(const struct call *call, enum result result)
{
    if (result != RESULT_Y && call->op & MICROSCALES) {
        return 2 * (call_axis(call) == call->ndim - 1 ? call_lines(call, call_axis(call), call->token_length).pairs
                                                      : call->columns);
    }
    return result == RESULT_Y         ? call->columns
           : call->options.per_tensor ? 1
                                      : call->tokens / call_bands(call, call->token_rows);
}

/* The results that are compared. */
static PyObject *describe_results(const struct call *call, const struct array theirs[RESULTS],
                                  const struct diagnosis *d)
{
    PyObject *results = PyList_New(0);

    for (int r = 0; results && r < RESULTS; r++) {
        if (theirs[r].data) {
            const enum result result = (enum result)r;
            append(&results, Py_BuildValue("{s:s,s:n,s:n,s:s,s:n}", KEY("name", result_names[r]),
                                           KEY("elements", d->compared[r]), KEY("differing", d->differing[r]),
                                           KEY("dtype", dtype_of(call_result_dtype(call, result))->name),
                                           KEY("columns", d->compared[r] > 0 ? row_length(call, result) : 0)));
        }
    }
    return results;
}

/* What judge() compares; None without a finding. */
static PyObject *describe_rivals(const struct diagnosis *d)
{
    const struct rivals *rivals = &d->rivals;

    if (d->count == 0) {
        return none();
    }
    return Py_BuildValue("{s:N,s:N,s:N,s:d,s:d}", KEY("is_sure", PyBool_FromLong(rivals->is_sure)),
                         KEY("is_single", PyBool_FromLong(rivals->is_single)),
                         KEY("has_rest", PyBool_FromLong(rivals->has_rest)), KEY("device", rivals->device),
                         KEY("other_cause", rivals->other_cause));
}

static PyObject *describe_diagnosis(const struct kept *kept, const struct array theirs[RESULTS],
                                    const struct diagnosis *d)
{
    static const char *const verdicts[] = {"equal", "explained", "admissible", "possible", "partly", "none"};
    const struct call *call = &kept->call;
    const bool is_moved = d->verdict == VERDICT_ADMISSIBLE;
    const struct variant *shown = is_moved ? &d->moved : diagnosis_is_named(d) ? &d->findings[0].variant : NULL;
    const char *quotient = d->moved.choice[STEP_QUOTIENT] == QUOTIENT_BELOW ? "lower" : "higher";
    const bool has_element = d->verdict != VERDICT_EQUAL;

    return Py_BuildValue(
        "{s:s,s:s,s:n,s:N,s:N,s:N,s:d,s:N,s:d,s:d,s:d,s:d,s:i,s:i,s:N,s:N,s:z,s:N,s:N}",
        KEY("verdict", verdicts[d->verdict]), KEY("operator", kept->op->name), KEY("tokens", call->tokens),
        KEY("is_smooth", PyBool_FromLong(call->operands[OPERAND_SMOOTH].data != NULL)),
        KEY("results", describe_results(call, theirs, d)), KEY("admissible", describe_admission(call, &d->admission)),
        KEY("device", d->device), KEY("rivals", describe_rivals(d)), KEY("worth", d->worth),
        KEY("proof", bits_of_proof), KEY("rare", bits_of_rare), KEY("number", bits_of_number),
        KEY("first_place", d->first_place), KEY("untried_pairs", d->untried),
        KEY("findings", describe_findings(call, d)), KEY("is_one_value", PyBool_FromLong(d->is_one_value)),
        KEY("quotient", is_moved ? quotient : NULL), KEY("remainder", describe_remainder(kept, &d->remainder)),
        KEY("element", has_element ? describe_element(call, d->shown, shown, &theirs[d->shown.result]) : none()));
}

/* ---- diagnose and explain --------------------------------------------------------------------------------------- */

static PyObject *find_cause(const struct kept *kept, const struct array theirs[RESULTS], const npuq_executor *executor)
{
    struct diagnosis diagnosis;
    PyObject *facts;
    bool ok;

    Py_BEGIN_ALLOW_THREADS;
    ok = diagnose(&kept->call, kept->ours, theirs, executor, &diagnosis);
    Py_END_ALLOW_THREADS;
    facts = ok ? describe_diagnosis(kept, theirs, &diagnosis) : PyErr_NoMemory();
    diagnosis_release(&diagnosis);
    return facts;
}

static PyObject *find_admission(const struct kept *kept, const struct array theirs[RESULTS],
                                const npuq_executor *executor)
{
    struct array repaired[RESULTS] = {{0}};
    struct admission admission;
    bool ok;

    Py_BEGIN_ALLOW_THREADS;
    ok = admission_find(&kept->call, kept->ours, theirs, repaired, executor, &admission);
    for (int r = 0; r < RESULTS; r++) {
        array_release(&repaired[r]);
    }
    Py_END_ALLOW_THREADS;
    return ok ? describe_admission(&kept->call, &admission) : PyErr_NoMemory();
}

/* Takes (call, arrays, threads). The arrays are aligned, in C order, of the results' types and shapes; None for a
 * result that is not compared. */
static PyObject *compare(PyObject *given, PyObject *find(const struct kept *kept, const struct array theirs[RESULTS],
                                                         const npuq_executor *executor))
{
    PyObject *capsule;
    PyObject *arrays;
    PyObject *threads;
    PyObject *found = NULL;
    const struct kept *kept;
    struct array theirs[RESULTS] = {{0}};
    Py_buffer buffers[RESULTS] = {{0}};
    struct executor executor = {0};
    bool ok;

    if (!PyArg_ParseTuple(given, "OO!O", &capsule, &PyTuple_Type, &arrays, &threads)) {
        return NULL;
    }
    kept = PyCapsule_GetPointer(capsule, kept_name);
    ok = kept && take_int32("threads", threads, &executor.threads);
    for (int r = 0; ok && r < RESULTS && r < PyTuple_GET_SIZE(arrays); r++) {
        PyObject *array = PyTuple_GET_ITEM(arrays, r);
        if (array == Py_None) {
            continue;
        }
        ok = PyObject_GetBuffer(array, &buffers[r], PyBUF_SIMPLE) == 0;
        if (ok && buffers[r].len != kept->bytes[r]) {
            PyErr_Format(PyExc_ValueError, "actual: has %zd bytes; expected %zd", buffers[r].len, kept->bytes[r]);
            ok = false;
        }
        theirs[r] = (struct array){buffers[r].buf, kept->ours[r].dtype, kept->ours[r].count};
    }
    if (ok) {
        const npuq_executor view = executor_view(&executor);
        found = find(kept, theirs, &view);
    }
    for (int r = 0; r < RESULTS; r++) {
        PyBuffer_Release(&buffers[r]);
    }
    return found;
}

/* diagnose(call, arrays, threads): the facts of a diagnosis. */
static PyObject *diagnose_kept(PyObject *module, PyObject *given)
{
    (void)module;
    return compare(given, find_cause);
}

/* admission(call, arrays, threads): which differences the device's vector division may make. */
static PyObject *admit_kept(PyObject *module, PyObject *given)
{
    (void)module;
    return compare(given, find_admission);
}

/* explain(call, index): an element of y, step by step. */
static PyObject *explain_kept(PyObject *module, PyObject *given)
{
    PyObject *capsule;
    Py_ssize_t index;
    const struct kept *kept;

    (void)module;
    if (!PyArg_ParseTuple(given, "On", &capsule, &index)) {
        return NULL;
    }
    kept = PyCapsule_GetPointer(capsule, kept_name);
    if (!kept) {
        return NULL;
    }
    if (index < 0 || (size_t)index >= kept->call.count) {
        return PyErr_Format(PyExc_IndexError, "at: is element %zd; expected less than %zu", index, kept->call.count);
    }
    return describe_element(&kept->call, (struct element){RESULT_Y, (size_t)index}, NULL, NULL);
}

/* ---- hard inputs ------------------------------------------------------------------------------------------------ */

/* The variant of a hypothesis, with some begin of an untouched part, or some order of rows. */
static struct variant example_of(const struct hypothesis *hypothesis, const struct call *call, size_t *row_of)
{
    struct variant variant = {.choice = {0}, .window = 3, .scale = {0.0371, 3}, .offset = {-5.5, 2}};

    (void)hypothesis_add(hypothesis, &variant);
    variant.bound.value = variant_has_other_bound(&variant) ? 3e-9 : 0.9;
    switch (variant.choice[STEP_LAYOUT]) {
    case LAYOUT_TAIL_UNTOUCHED: variant.layout.from = call->columns - call->columns / 4 - 1; break;
    case LAYOUT_ROWS_OVERWRITTEN: variant.layout.from = call->columns / 4 + 1; break;
    case LAYOUT_ROWS_UNTOUCHED: variant.layout.from = call->rows - call->rows / 4 - 1; break;
    case LAYOUT_ROWS_PERMUTED:
        for (size_t row = 0; row < call->rows; row++) {
            row_of[row] = (row ^ 1) < call->rows ? row ^ 1 : row;
        }
        variant.layout.row_of = row_of;
        break;
    default: break;
    }
    return variant;
}

/* Trials change an element of x and a scale: so many elements, their bits, places of scales, and their bits. */
enum { TRIAL_ROWS = 4 };

struct trials {
    const uint64_t *rows; /* null: there are none */
    size_t count;
};

static bool are_trials_of(const struct call *call, const struct trials *trials)
{
    const struct array *scale = &call->operands[OPERAND_SCALE];
    bool fine = !trials->rows || call->tokens == 0;

    for (size_t i = 0; i < trials->count; i++) {
        fine = fine && trials->rows[i] < call->operands[OPERAND_X].count;
        fine = fine && (!scale->data || trials->rows[2 * trials->count + i] < scale->count);
    }
    return fine;
}

/* The bits of y at each element that is changed, one at a time. */
static void predict_trials(struct predictor *p, struct call *call, const struct trials *trials, uint64_t *bits)
{
    struct array *x = &call->operands[OPERAND_X];
    struct array *scale = &call->operands[OPERAND_SCALE];

    for (size_t i = 0; i < trials->count; i++) {
        const size_t at = (size_t)trials->rows[i];
        const size_t place = (size_t)trials->rows[2 * trials->count + i];
        const uint64_t old = array_bits(x, at);
        const uint64_t old_scale = scale->data ? array_bits(scale, place) : 0;
        array_set_bits(x, at, trials->rows[trials->count + i]);
        if (scale->data) {
            array_set_bits(scale, place, trials->rows[3 * trials->count + i]);
        }
        bits[i] = predict(p, RESULT_Y, at, NULL);
        array_set_bits(x, at, old);
        if (scale->data) {
            array_set_bits(scale, place, old_scale);
        }
    }
}

/* The bits of all results, one after the other. False if there is not the memory. */
static bool predict_results(struct predictor *p, uint64_t *bits)
{
    struct token *tokens = p->call->tokens > 0 ? malloc(steps_tokens(p->call, p->variant) * sizeof *tokens) : NULL;

    if (p->call->tokens > 0 && !tokens) {
        return false;
    }
    for (size_t token = 0; tokens && token < steps_tokens(p->call, p->variant); token++) {
        tokens[token] = predict_token(p, token, NULL);
    }
    p->tokens = tokens;
    for (int r = 0; r < call_results(p->call); r++) {
        p->has_token = false;
        for (size_t i = 0; i < call_result_count(p->call, (enum result)r); i++) {
            *bits++ = predict(p, (enum result)r, i, NULL);
        }
    }
    free(tokens);
    return true;
}

static PyObject *predict_bits(struct call *call, const struct hypothesis *hypothesis, const struct trials *trials)
{
    size_t count = trials->count;
    size_t *row_of = malloc((call->rows + 1) * sizeof *row_of);
    PyObject *bits;
    bool ok = row_of != NULL;

    for (int r = 0; !trials->rows && r < call_results(call); r++) {
        count += call_result_count(call, (enum result)r);
    }
    bits = ok ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint64_t))) : NULL;
    if (bits) {
        uint64_t *to = (uint64_t *)PyBytes_AS_STRING(bits);
        Py_BEGIN_ALLOW_THREADS;
        const struct state caller = enter_state();
        const struct variant variant =
            hypothesis ? example_of(hypothesis, call, row_of) : (struct variant){.choice = {0}};
        struct predictor p = {.call = call, .variant = &variant};
        if (trials->rows) {
            predict_trials(&p, call, trials, to);
        } else {
            ok = predict_results(&p, to);
        }
        leave_state(&caller);
        Py_END_ALLOW_THREADS;
    }
    free(row_of);
    if (!ok) {
        Py_CLEAR(bits);
        PyErr_NoMemory();
    }
    return bits;
}

/* predict(call, hypothesis[, trials]): 64 bits for each element of the results of a kernel with the mistake of this
 * number; -1 is the definition. None if the mistake is not possible. With trials, the bits of y at the element that
 * each one changes. Not for several threads at once. */
static PyObject *predict_kept(PyObject *module, PyObject *given)
{
    PyObject *capsule;
    PyObject *bits = NULL;
    int number;
    Py_buffer tried = {0};

    (void)module;
    if (!PyArg_ParseTuple(given, "Oi|y*", &capsule, &number, &tried)) {
        return NULL;
    }
    struct kept *kept = PyCapsule_GetPointer(capsule, kept_name);
    const struct trials trials = {tried.len > 0 ? tried.buf : NULL,
                                  (size_t)tried.len / TRIAL_ROWS / sizeof *trials.rows};
    if (kept && (number < -1 || number >= hypothesis_count)) {
        PyErr_Format(PyExc_IndexError, "hypothesis: is %d; expected less than %d", number, hypothesis_count);
    } else if (kept && !are_trials_of(&kept->call, &trials)) {
        PyErr_SetString(PyExc_ValueError, "trials: are beyond x or its scales; expected elements of the call");
    } else if (kept) {
        const struct hypothesis *hypothesis = number < 0 ? NULL : &hypotheses[number];
        bits = hypothesis && !hypothesis_applies(hypothesis, &kept->call)
                   ? none()
                   : predict_bits(&kept->call, hypothesis, &trials);
    }
    PyBuffer_Release(&tried);
    return bits;
}

/* ---- the hypotheses ---------------------------------------------------------------------------------------------- */

static PyObject *describe_operators(const struct hypothesis *hypothesis)
{
#define NAME_OF(name, NAME, EXECUTOR) #name,
    static const char *const names[NUMBER_OF_OPERATORS] = {EACH_OPERATOR(NAME_OF) EACH_OWN(NAME_OF)};
#undef NAME_OF
#define TYPES_OF(name, NAME, EXECUTOR) OUTPUTS_OF_##NAME,
    static const unsigned types[NUMBER_OF_OPERATORS] = {EACH_OPERATOR(TYPES_OF) EACH_OWN(TYPES_OF)};
#undef TYPES_OF
    PyObject *operators = PyList_New(0);

    for (int i = 0; operators && i < NUMBER_OF_OPERATORS; i++) {
        if (hypothesis->operators & 1U << i && hypothesis->y_types & types[i]) {
            append(&operators, PyUnicode_FromString(names[i]));
        }
    }
    return operators;
}

/* hypotheses(): each hypothesis, and the operators in which it is possible. */
static PyObject *list_hypotheses(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);

    (void)module;
    (void)unused;
    for (int i = 0; list && i < hypothesis_count; i++) {
        append(&list, Py_BuildValue("NN", describe_hypothesis(&hypotheses[i]), describe_operators(&hypotheses[i])));
    }
    return list;
}

/* weights(): what explanations weigh, in bits; how common hypotheses are; how often a device moves a quotient. */
static PyObject *list_weights(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:d}", KEY("proof", (int)bits_of_proof),
                         KEY("rare", (int)bits_of_rare), KEY("value", (int)bits_of_value),
                         KEY("newly_wrong", (int)bits_of_newly_wrong), KEY("RARE", RARE), KEY("USUAL", USUAL),
                         KEY("COMMON", COMMON), KEY("moved", moved_share));
}

PyMethodDef cause_methods[] = {
    {"keep", keep, METH_VARARGS, NULL},
    {"diagnose", diagnose_kept, METH_VARARGS, NULL},
    {"admission", admit_kept, METH_VARARGS, NULL},
    {"explain", explain_kept, METH_VARARGS, NULL},
    {"predict", predict_kept, METH_VARARGS, NULL},
    {"hypotheses", list_hypotheses, METH_NOARGS, NULL},
    {"weights", list_weights, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
