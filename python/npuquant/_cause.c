/* SPDX-License-Identifier: BSD-3-Clause */
/* From a difference to its cause: calls that are kept with their results, and the diagnosis of these calls. */
#include "_native.h"

#include "executor.h"

#include <diagnosis_report.h>
#include <hard_inputs_report.h>
#include <hypotheses.h>

#include <stdlib.h>
#include <string.h>

/* Two Python strings, the text and the JSON of a report. Both buffers are released. */
static PyObject *take_texts(struct text *text, struct text *json)
{
    PyObject *texts =
        text->failed || json->failed ? PyErr_NoMemory() : Py_BuildValue("ss", text->characters, json->characters);

    text_release(text);
    text_release(json);
    return texts;
}

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

/* ---- diagnose and explain --------------------------------------------------------------------------------------- */

static PyObject *report_diagnosis(const struct kept *kept, const struct array theirs[RESULTS], int32_t threads)
{
    struct executor executor = {.threads = threads};
    const npuq_executor view = executor_view(&executor);
    struct diagnosis diagnosis;
    struct text text = {0};
    struct text json = {0};
    bool ok;

    Py_BEGIN_ALLOW_THREADS;
    ok = diagnose(&kept->call, kept->ours, theirs, &view, &diagnosis);
    if (ok) {
        diagnosis_report_text(&text, &kept->call, theirs, &diagnosis);
        diagnosis_report_json(&json, &kept->call, theirs, &diagnosis);
    }
    diagnosis_release(&diagnosis);
    Py_END_ALLOW_THREADS;
    return ok ? take_texts(&text, &json) : PyErr_NoMemory();
}

/* diagnose(call, arrays, threads): returns text and JSON. arrays are aligned, in C order, of the results' types and
 * shapes; None for a result that is not compared. */
static PyObject *diagnose_kept(PyObject *module, PyObject *given)
{
    PyObject *capsule;
    PyObject *arrays;
    PyObject *threads;
    PyObject *report = NULL;
    const struct kept *kept;
    struct array theirs[RESULTS] = {{0}};
    Py_buffer buffers[RESULTS] = {{0}};
    int32_t wanted;
    bool ok;

    (void)module;
    if (!PyArg_ParseTuple(given, "OO!O", &capsule, &PyTuple_Type, &arrays, &threads)) {
        return NULL;
    }
    kept = PyCapsule_GetPointer(capsule, kept_name);
    ok = kept && take_int32("threads", threads, &wanted);
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
        report = report_diagnosis(kept, theirs, wanted);
    }
    for (int r = 0; r < RESULTS; r++) {
        PyBuffer_Release(&buffers[r]);
    }
    return report;
}

/* explain(call, index): the steps of an element of y, as text and JSON. */
static PyObject *explain_kept(PyObject *module, PyObject *given)
{
    PyObject *capsule;
    Py_ssize_t index;
    const struct kept *kept;
    struct text text = {0};
    struct text json = {0};

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
    const struct element element = {RESULT_Y, (size_t)index};
    Py_BEGIN_ALLOW_THREADS;
    explain_place(&text, &kept->call, element);
    text_add(&text, "\n");
    explain_text(&text, &kept->call, element, NULL);
    explain_json(&json, &kept->call, element, NULL);
    Py_END_ALLOW_THREADS;
    return take_texts(&text, &json);
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
    return Py_BuildValue("sNN", dtype_of(tensor->dtype)->name, shape,
                         PyByteArray_FromStringAndSize(tensor->data, (Py_ssize_t)size));
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

/* hard_inputs(call, seed): operands for the call on which mistakes show, and the report as text and JSON. */
static PyObject *make_hard_inputs(PyObject *module, PyObject *given)
{
    PyObject *capsule;
    unsigned long long seed;
    const struct kept *kept;
    struct hard_inputs inputs;
    struct text text = {0};
    struct text json = {0};
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
    if (ok) {
        hard_inputs_report_text(&text, &inputs);
        hard_inputs_report_json(&json, &inputs);
    }
    Py_END_ALLOW_THREADS;
    PyObject *operands = ok ? describe_operands(kept->op, &inputs) : PyErr_NoMemory();
    hard_inputs_release(&inputs);
    if (!operands) {
        text_release(&text);
        text_release(&json);
        return NULL;
    }
    return Py_BuildValue("NN", operands, take_texts(&text, &json));
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

/* hypotheses(operation): (name, what, advice) of each hypothesis of the operator. */
static PyObject *list_hypotheses(PyObject *module, PyObject *capsule)
{
    const operation *op = operation_of(capsule);
    PyObject *list = op ? PyList_New(0) : NULL;

    (void)module;
    for (int i = 0; list && i < hypothesis_count; i++) {
        if (!(hypotheses[i].operators & op->op)) {
            continue;
        }
        PyObject *entry = Py_BuildValue("sss", hypotheses[i].name, hypotheses[i].what, hypotheses[i].advice);
        if (!entry || PyList_Append(list, entry) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(entry);
    }
    return list;
}

PyMethodDef cause_methods[] = {
    {"keep", keep, METH_VARARGS, NULL},
    {"diagnose", diagnose_kept, METH_VARARGS, NULL},
    {"explain", explain_kept, METH_VARARGS, NULL},
    {"shape_hard_inputs", shape_hard_inputs, METH_VARARGS, NULL},
    {"hard_inputs", make_hard_inputs, METH_VARARGS, NULL},
    {"operands", list_operands, METH_O, NULL},
    {"hypotheses", list_hypotheses, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
