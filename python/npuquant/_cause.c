/* SPDX-License-Identifier: BSD-3-Clause */
/* From a difference to its cause: calls that are kept with their results, and what a diagnosis finds of these calls.
 * Dictionaries have the facts; _report.py makes text and JSON of them. */
#include "_native.h"

#include "_executor.h"

#include <diagnose.h>
#include <hard_inputs.h>
#include <hypotheses.h>
#include <layouts.h>

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
    case BLOCK: options->block = number; break;
    case MIN_SCALE: options->min_scale = real; break;
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

    if (found.is_untouched) {
        return Py_BuildValue("{s:n,s:n,s:n,s:s}", KEY("untouched_from", variant->layout.from),
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

static PyObject *describe_findings(const struct call *call, const struct diagnosis *d)
{
    PyObject *findings = PyList_New(0);

    for (int i = 0; findings && i < d->count; i++) {
        const struct finding *finding = &d->findings[i];
        const bool has_bound = variant_has_other_bound(&finding->variant);
        PyObject *made = PyList_New(0);
        for (int k = 0; made && k < 2 && finding->hypotheses[k]; k++) {
            append(&made, describe_hypothesis(finding->hypotheses[k]));
        }
        append(&findings,
               Py_BuildValue("{s:N,s:n,s:n,s:n,s:d,s:d,s:d,s:N,s:N,s:N}", KEY("hypotheses", made),
                             KEY("explained", finding->explained), KEY("unexplained", finding->unexplained),
                             KEY("newly_wrong", finding->newly_wrong), KEY("prior", finding->prior),
                             KEY("gained", finding->gained), KEY("score", finding_score(finding)),
                             KEY("layout", describe_layout(call, &finding->variant)),
                             KEY("bound", has_bound ? PyFloat_FromDouble(finding->variant.bound.value) : none()),
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

static PyObject *describe_source(const struct call *call, const struct source *source)
{
    PyObject *element =
        source->has_element
            ? Py_BuildValue("{s:N,s:N,s:N}",
                            KEY("scale", describe_index(call, (struct element){RESULT_SCALE, source->token})),
                            KEY("x", describe_index(call, (struct element){RESULT_Y, source->element})),
                            KEY("is_low", PyBool_FromLong(source->is_low)))
            : none();

    return Py_BuildValue("{s:N,s:N}", KEY("columns", Py_BuildValue("nn", source->columns.begin, source->columns.end)),
                         KEY("element", element));
}

static PyObject *describe_offset(const struct missing_offset *missing)
{
    PyObject *first = PyList_New(0);

    for (size_t i = 0; first && i < missing->count && i < LISTED; i++) {
        append(&first, PyFloat_FromDouble((double)missing->values[i]));
    }
    return Py_BuildValue("{s:n,s:N}", KEY("count", missing->count), KEY("first", first));
}

/* _remainder.py describes it. */
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
        "{s:N,s:N,s:d,s:N,s:N}", KEY("expected", expected),
        KEY("points", bytes_of(remainder->points, (Py_ssize_t)(remainder->point_count * sizeof *remainder->points))),
        KEY("shift", dtype_of(call->options.y_dtype)->high - dtype_of(rounded)->high),
        KEY("source", describe_source(call, &remainder->source)),
        KEY("missing_offset", describe_offset(&remainder->offset)));
}

/* How many elements of a result that is not empty are in a row. */
static size_t row_length(const struct call *call, enum result result)
{
    return result == RESULT_Y ? call->columns : call->options.per_tensor ? 1 : call->tokens / call->rows;
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

/* one_value: all of y in the dump is the same. */
static PyObject *describe_diagnosis(const struct kept *kept, const struct array theirs[RESULTS],
                                    const struct diagnosis *d, bool one_value)
{
    static const char *const verdicts[] = {"equal", "explained", "admissible", "possible", "partly", "none"};
    const struct call *call = &kept->call;
    const bool is_moved = d->verdict == VERDICT_ADMISSIBLE;
    const struct variant *shown = is_moved ? &d->moved : diagnosis_is_named(d) ? &d->findings[0].variant : NULL;
    const char *quotient = d->moved.choice[STEP_QUOTIENT] == QUOTIENT_BELOW ? "lower" : "higher";
    const bool has_element = d->verdict != VERDICT_EQUAL;

    return Py_BuildValue(
        "{s:s,s:s,s:n,s:N,s:N,s:N,s:d,s:d,s:d,s:d,s:d,s:i,s:i,s:N,s:N,s:z,s:N,s:N}",
        KEY("verdict", verdicts[d->verdict]), KEY("operator", kept->op->name), KEY("tokens", call->tokens),
        KEY("is_smooth", PyBool_FromLong(call->operands[OPERAND_SMOOTH].data != NULL)),
        KEY("results", describe_results(call, theirs, d)), KEY("admissible", describe_admission(call, &d->admission)),
        KEY("device", d->device), KEY("worth", d->worth), KEY("proof", bits_of_proof), KEY("rare", bits_of_rare),
        KEY("number", bits_of_number), KEY("first_place", d->first_place), KEY("untried_pairs", d->untried),
        KEY("findings", describe_findings(call, d)), KEY("is_one_value", PyBool_FromLong(one_value)),
        KEY("quotient", is_moved ? quotient : NULL), KEY("remainder", describe_remainder(kept, &d->remainder)),
        KEY("element", has_element ? describe_element(call, d->shown, shown, &theirs[d->shown.result]) : none()));
}

/* ---- diagnose and explain --------------------------------------------------------------------------------------- */

static PyObject *find_cause(const struct kept *kept, const struct array theirs[RESULTS], const npuq_executor *executor)
{
    struct diagnosis diagnosis;
    PyObject *facts;
    bool one_value;
    bool ok;

    Py_BEGIN_ALLOW_THREADS;
    ok = diagnose(&kept->call, kept->ours, theirs, executor, &diagnosis);
    one_value = ok && diagnosis.differing[RESULT_Y] > 1 && array_holds_one_value(&theirs[RESULT_Y]);
    Py_END_ALLOW_THREADS;
    facts = ok ? describe_diagnosis(kept, theirs, &diagnosis, one_value) : PyErr_NoMemory();
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

/* (name of the type, shape, bytes) */
static PyObject *describe_operand(const npuq_tensor *tensor)
{
    size_t size = npuq_dtype_size(tensor->dtype);
    PyObject *shape = PyTuple_New(tensor->ndim);

    for (int d = 0; shape && d < tensor->ndim; d++) {
        size *= (size_t)tensor->shape[d];
        PyTuple_SET_ITEM(shape, d, PyLong_FromLongLong(tensor->shape[d]));
    }
    if (!shape) {
        return NULL;
    }
    return Py_BuildValue("sNN", dtype_of(tensor->dtype)->name, shape, bytes_of(tensor->data, (Py_ssize_t)size));
}

/* A dictionary of the operands, by the operator's names. */
static PyObject *describe_operands(const operation *op, const struct hard_inputs *inputs)
{
    PyObject *operands = PyDict_New();

    for (int i = 0; operands && op->arguments[i].kind != END; i++) {
        const argument_kind kind = op->arguments[i].kind;
        if (kind >= OUTPUT || !inputs->wish.present[op->arguments[i].role]) {
            continue;
        }
        PyObject *operand = describe_operand(&inputs->operands[op->arguments[i].role]);
        if (!operand || PyDict_SetItemString(operands, op->arguments[i].name, operand) != 0) {
            Py_CLEAR(operands);
        }
        Py_XDECREF(operand);
    }
    return operands;
}

/* The extents of x, as many as a tensor may have. The library checks them. */
static bool take_shape(PyObject *shape, struct hard_wish *wish)
{
    int64_t count = 1;

    if (PyTuple_GET_SIZE(shape) < 1 || PyTuple_GET_SIZE(shape) > NPUQ_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "shape: has %zd dimensions; expected 1 to %d", PyTuple_GET_SIZE(shape),
                     NPUQ_MAX_NDIM);
        return false;
    }
    for (; wish->ndim < PyTuple_GET_SIZE(shape); wish->ndim++) {
        int32_t extent;
        if (!take_int32("shape", PyTuple_GET_ITEM(shape, wish->ndim), &extent)) {
            return false;
        }
        if (extent < 1) {
            PyErr_Format(PyExc_ValueError, "shape: dimension %d is %d; expected 1 or more", wish->ndim, (int)extent);
            return false;
        }
        count *= extent;
        if (count > HARD_MOST_VALUES) {
            PyErr_Format(PyExc_ValueError, "shape: has more values than %d; expected fewer", HARD_MOST_VALUES);
            return false;
        }
        wish->shape[wish->ndim] = extent;
    }
    return true;
}

/* A value for each operand by its name: the name of its type, "" for the usual type, or None for no operand. */
static bool take_types(const operation *op, PyObject *types, struct hard_wish *wish)
{
    bool chosen[OPERANDS] = {false};

    for (int i = 0; op->arguments[i].kind != END; i++) {
        const int role = op->arguments[i].role;
        PyObject *type = PyDict_GetItemString(types, op->arguments[i].name);
        if (!type || type == Py_None) {
            continue;
        }
        const char *name = PyUnicode_AsUTF8(type);
        if (!name) {
            return false;
        }
        wish->present[role] = true;
        chosen[role] = name[0] != '\0';
        if (chosen[role]) {
            const struct dtype *named = dtype_named(name);
            if (!named) {
                PyErr_Format(PyExc_ValueError, "dtypes: there is no type '%s'", name);
                return false;
            }
            wish->dtypes[role] = named->dtype;
        }
    }
    hard_inputs_choose_types(wish, chosen);
    if (wish->dtypes[OPERAND_X] == NPUQ_QUINT4X2 && wish->shape[wish->ndim - 1] % 8 != 0) {
        PyErr_Format(PyExc_ValueError,
                     "shape: dimension %d is %lld; expected a multiple of 8, as words hold eight int4", wish->ndim - 1,
                     (long long)wish->shape[wish->ndim - 1]);
        return false;
    }
    return true;
}

/* shape_hard_inputs(operation, shape, types, axis, div_mode): operands with the right types and shapes; the
 * values have no meaning yet. */
static PyObject *shape_hard_inputs(PyObject *module, PyObject *given)
{
    PyObject *capsule;
    PyObject *shape;
    PyObject *types;
    PyObject *axis;
    int divides;
    const operation *op;
    struct hard_wish wish = {0};
    struct hard_inputs inputs = {0};
    PyObject *operands = NULL;

    (void)module;
    if (!PyArg_ParseTuple(given, "OO!O!Op", &capsule, &PyTuple_Type, &shape, &PyDict_Type, &types, &axis, &divides)) {
        return NULL;
    }
    op = operation_of(capsule);
    if (!op || !take_shape(shape, &wish) || !take_int32("axis", axis, &wish.options.axis)) {
        return NULL;
    }
    wish.op = op->op;
    wish.options.divides = divides;
    if (!take_types(op, types, &wish)) {
        return NULL;
    }
    operands = hard_inputs_begin(&inputs, &wish) ? describe_operands(op, &inputs) : PyErr_NoMemory();
    hard_inputs_release(&inputs);
    return operands;
}

/* The mistakes that are possible in the call. */
static PyObject *describe_mistakes(const struct hard_inputs *inputs)
{
    PyObject *mistakes = PyList_New(0);

    for (int h = 0; mistakes && h < hypothesis_count; h++) {
        const int same = inputs->same_as[h];
        if (same >= 0) {
            append(&mistakes,
                   Py_BuildValue("{s:s,s:n,s:z}", KEY("name", hypotheses[h].name), KEY("elements", inputs->changed[h]),
                                 KEY("same_as", inputs->changed[h] > 0 && same != h ? hypotheses[same].name : NULL)));
        }
    }
    return mistakes;
}

/* hard_inputs(call, seed): operands for the call on which mistakes show, and what each mistake changes. */
static PyObject *make_hard_inputs(PyObject *module, PyObject *given)
{
    PyObject *capsule;
    PyObject *made;
    unsigned long long seed;
    const struct kept *kept;
    struct hard_inputs inputs;
    bool ok;

    (void)module;
    if (!PyArg_ParseTuple(given, "OK", &capsule, &seed)) {
        return NULL;
    }
    kept = PyCapsule_GetPointer(capsule, kept_name);
    if (!kept) {
        return NULL;
    }
    struct hard_wish wish = {.op = kept->op->op, .options = kept->call.options, .ndim = kept->call.ndim, .seed = seed};
    for (int d = 0; d < wish.ndim; d++) {
        wish.shape[d] = (int64_t)kept->call.shape[d];
    }
    for (int i = 0; i < OPERANDS; i++) {
        wish.dtypes[i] = kept->call.operands[i].dtype;
        wish.present[i] = kept->call.operands[i].data != NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    ok = hard_inputs_begin(&inputs, &wish) && hard_inputs_fill(&inputs);
    Py_END_ALLOW_THREADS;
    made =
        ok ? Py_BuildValue("NN", describe_operands(kept->op, &inputs), describe_mistakes(&inputs)) : PyErr_NoMemory();
    hard_inputs_release(&inputs);
    return made;
}

/* operands(operation): a dictionary that says, by name, whether an operand may be None. */
static PyObject *list_operands(PyObject *module, PyObject *capsule)
{
    const operation *op = operation_of(capsule);
    PyObject *names = op ? PyDict_New() : NULL;

    (void)module;
    for (int i = 0; names && op->arguments[i].kind != END; i++) {
        const argument_kind kind = op->arguments[i].kind;
        if (kind < OUTPUT &&
            PyDict_SetItemString(names, op->arguments[i].name, kind == OPTIONAL ? Py_True : Py_False) != 0) {
            Py_CLEAR(names);
        }
    }
    return names;
}

/* ---- the hypotheses ---------------------------------------------------------------------------------------------- */

static PyObject *describe_operators(const struct hypothesis *hypothesis)
{
#define NAME_OF(name, NAME, EXECUTOR) #name,
    static const char *const names[NUMBER_OF_OPERATORS] = {EACH_OPERATOR(NAME_OF) EACH_OWN(NAME_OF)};
#undef NAME_OF
    PyObject *operators = PyList_New(0);

    for (int i = 0; operators && i < NUMBER_OF_OPERATORS; i++) {
        if (hypothesis->operators & 1U << i) {
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

PyMethodDef cause_methods[] = {
    {"keep", keep, METH_VARARGS, NULL},
    {"diagnose", diagnose_kept, METH_VARARGS, NULL},
    {"admission", admit_kept, METH_VARARGS, NULL},
    {"explain", explain_kept, METH_VARARGS, NULL},
    {"shape_hard_inputs", shape_hard_inputs, METH_VARARGS, NULL},
    {"hard_inputs", make_hard_inputs, METH_VARARGS, NULL},
    {"operands", list_operands, METH_O, NULL},
    {"hypotheses", list_hypotheses, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
