/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the operators. The module views NumPy arrays through Python's buffer protocol, and PyTorch's tensors through
 * their attributes. So one build serves every NumPy and every PyTorch.
 *
 * The module is not linked with the library. Python finds the library, in the package or elsewhere, and hands its
 * functions to bind().
 */
#include "_native.h"

#include "_executor.h"

#include <call.h>
#include <row_quant.h>
#include <state.h>

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Every function of the library that this module calls. */
#define FUNCTION(name, NAME, EXECUTOR) X(npuq_##name)
#define FUNCTIONS                                                                                                      \
    EACH_OPERATOR(FUNCTION)                                                                                            \
    X(npuq_status_name)                                                                                                \
    X(npuq_last_error)

#define X(function) #function,
static const char *const function_names[] = {FUNCTIONS};
#undef X
#define X(function) __typeof__(function) *function;
static struct {
    FUNCTIONS
} library;
#undef X

enum { FUNCTION_COUNT = sizeof function_names / sizeof function_names[0] };
_Static_assert(sizeof library == FUNCTION_COUNT * sizeof(void *), "a structure of addresses");

/* The other arguments of bind(). */
static PyObject *array_type;  /* numpy.ndarray */
static PyObject *to_array;    /* to_array(argument, value, write): an array of any other tensor */
static PyObject *refuse;      /* refuse(status, message, argument, array): raises the library's error */
static PyObject *value_error; /* of an argument */
static PyObject *type_error;

/* ---- the operators --------------------------------------------------------------------------------------------- */

/* run_NAME(): calls an operator of the library with the arguments at their positions. */
#define AT(name, NAME, ...)         at_##name,
#define TENSOR(name, NAME, ...)     , a->tensor[at_##name]
#define NUMBER_OF(name, NAME, type) , (type) _Generic((type)0, float : a->real, default : a->number)[at_##name]
#define NUMBER_OF_STRUCTURE         BY_ADDRESS
#define GIVEN(name)                 ARGUMENTS_##name(TENSOR, TENSOR, TENSOR, TENSOR, NUMBER_OF)
#define RUN_WITH(name)              APPLY(library.npuq_##name, GIVEN(name), a->executor)
#define RUN_WITHOUT(name)           APPLY(library.npuq_##name, GIVEN(name))
#define RUN_OWN(name)               APPLY(name, GIVEN(name), a->executor)
#define RUN(name, NAME, EXECUTOR)                                                                                      \
    static npuq_status run_##name(const arguments *a)                                                                  \
    {                                                                                                                  \
        enum { ARGUMENTS_##name(AT, AT, AT, AT, AT) };                                                                 \
        return RUN_##EXECUTOR(name);                                                                                   \
    }
EACH_OPERATOR(RUN)
EACH_OWN(RUN)

/* clang-format off */
#define ARGUMENT(name, kind, role, dtype) {name, kind, role, dtype},
#define KIND_OF(type)              _Generic((type)0, float : REAL, int64_t : LONG, default : NUMBER)
/* clang-format on */
/* Words of eight int4 are int32. */
#define IS_INT4(NAME)    || NPUQ_##NAME == NPUQ_QUINT4X2
#define ONE_MORE(NAME)   +1
#define PLUS_DTYPE(NAME) +NPUQ_##NAME
#define ONLY(TYPES)      ((0 TYPES_##TYPES(ONE_MORE)) == 1 ? (0 TYPES_##TYPES(PLUS_DTYPE)) : UNKNOWN_DTYPE)
#define READS(name, NAME, ROLE, TYPES, SHAPE, least, most, REBOUND, KIND, npu_name)                                    \
    ARGUMENT(#npu_name, (0 TYPES_##TYPES(IS_INT4)) ? PACKED : DATA, OPERAND_##ROLE, ONLY(TYPES))
#define TAKES(name, NAME, ROLE, TYPES, ...)    ARGUMENT(#name, INPUT, OPERAND_##ROLE, ONLY(TYPES))
#define MAY_TAKE(name, NAME, ROLE, TYPES, ...) ARGUMENT(#name, OPTIONAL, OPERAND_##ROLE, ONLY(TYPES))
#define GIVES(name, NAME, ROLE, TYPES, ...)    ARGUMENT("out", OUTPUT, RESULT_##ROLE, ONLY(TYPES))
#define NUMBERED(name, NAME, type)             ARGUMENT(#name, KIND_OF(type), NAME, UNKNOWN_DTYPE)
#define ROW(name, NAME, EXECUTOR)                                                                                      \
    {#name, run_##name, NAME, {ARGUMENTS_##name(READS, TAKES, MAY_TAKE, GIVES, NUMBERED)}},
static const operation operations[] = {EACH_OPERATOR(ROW) EACH_OWN(ROW)};

/* torch_npu's names. */
#define NPU_NAME(name, NAME, npu_name, ...) #npu_name,
static const char *const option_names[] = {EACH_OPTION(NPU_NAME)};

enum { OPERATOR_COUNT = sizeof operations / sizeof operations[0] };

/* The name of the capsules that hold an operation. */
static const char operation_name[] = "npuquant.operation";

const operation *operation_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, operation_name);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* The type of a buffer's elements. NumPy has no bfloat16: uint16 means the bits of bfloat16. */
static int dtype_of_buffer(const Py_buffer *buffer)
{
    const char *format = buffer->format;

    format += *format == '@' || *format == '=' || *format == (PY_LITTLE_ENDIAN ? '<' : '>');
    if (*format == '\0' || format[1] != '\0') {
        return UNKNOWN_DTYPE;
    }
    const char kind = strchr("fe", *format) ? 'f' : strchr("bhilq", *format) ? 'i' : strchr("BHILQ", *format) ? 'u' : 0;

    for (int i = 0; i < DTYPES; i++) {
        if (dtypes[i].stored[0] == kind && dtypes[i].bits == 8 * buffer->itemsize) {
            return dtypes[i].dtype;
        }
    }
    return UNKNOWN_DTYPE;
}

/* True for several elements that are all at one address. */
static bool is_one_element(const npuq_tensor *tensor)
{
    bool several = false;

    for (int d = 0; d < tensor->ndim && d < NPUQ_MAX_NDIM; d++) {
        if (tensor->shape[d] == 0 || (tensor->shape[d] > 1 && tensor->strides[d] != 0)) {
            return false;
        }
        several = several || tensor->shape[d] > 1;
    }
    return several;
}

static void let_go(holding *held)
{
    PyBuffer_Release(&held->buffer);
    Py_CLEAR(held->array);
}

/* False if the value is null, an exception. Otherwise held holds the value, a new reference, and its buffer if it has
 * one, in place of the former array. */
static bool hold(holding *held, PyObject *array, int flags)
{
    if (!array) {
        return false;
    }
    let_go(held);
    held->array = array;
    if (PyObject_GetBuffer(array, &held->buffer, flags) != 0) {
        PyErr_Clear();
    }
    return true;
}

/* The tensor of a buffer; the caller sets its type. */
static bool take_buffer(const char *name, const Py_buffer *buffer, npuq_tensor *tensor)
{
    tensor->data = buffer->buf;
    tensor->ndim = buffer->ndim;
    for (int d = 0; d < buffer->ndim && d < NPUQ_MAX_NDIM; d++) { /* the library refuses more */
        tensor->shape[d] = buffer->shape[d];
        tensor->strides[d] = buffer->strides[d] / buffer->itemsize;
        if (buffer->strides[d] % buffer->itemsize != 0 && buffer->shape[d] > 1 && buffer->len > 0) {
            PyErr_Format(value_error, "%s: stride %d is %zd bytes; expected a multiple of %zd", name, d,
                         buffer->strides[d], buffer->itemsize);
            return false;
        }
    }
    return true;
}

/* ---- PyTorch's tensors ----------------------------------------------------------------------------------------- */

enum { IS_CPU, DTYPE, IS_NEG, SHAPE, STRIDE, DATA_PTR, ATTRIBUTES };

#define OR_DTYPE(NAME)                         | 1 << DTYPE_##NAME
#define OR_TYPES(name, NAME, ROLE, TYPES, ...) TYPES_##TYPES(OR_DTYPE)
#define NO_TYPES(...)
#define TYPES_OF(name, NAME, EXECUTOR) ARGUMENTS_##name(OR_TYPES, OR_TYPES, OR_TYPES, OR_TYPES, NO_TYPES)
enum { TAKEN = 0 EACH_OPERATOR(TYPES_OF) }; /* the types that some operator takes or makes */

/* Null until bind_torch() finds them. */
static struct {
    PyObject *tensor;                 /* torch.Tensor */
    PyObject *parameter;              /* torch.nn.Parameter, a tensor in a module */
    PyObject *types[DTYPES];          /* null where PyTorch has no tensors of the type, or no operator takes it */
    PyObject *attributes[ATTRIBUTES]; /* the descriptors of torch.Tensor */
} torch;

static PyObject *attribute(PyObject *value, int name)
{
    PyObject *descriptor = torch.attributes[name];

    return Py_TYPE(descriptor)->tp_descr_get(descriptor, value, torch.tensor);
}

static PyObject *method(PyObject *value, int name)
{
    return PyObject_CallFunctionObjArgs(torch.attributes[name], value, NULL);
}

/* True if the value, a new reference, is this object. */
static bool is(PyObject *returned, const PyObject *wanted)
{
    Py_XDECREF(returned);
    return returned == wanted;
}

/* The index in dtypes of a tensor's type; -1 for other types and other objects. PyTorch reads subclasses except
 * Parameter, because their attributes may differ. */
static int torch_type_of(PyObject *value)
{
    const PyObject *class = (PyObject *)Py_TYPE(value);
    PyObject *dtype;
    int type = DTYPES;

    if (class != torch.tensor && class != torch.parameter) {
        return -1;
    }
    dtype = attribute(value, DTYPE);
    if (!dtype) {
        PyErr_Clear();
        return -1;
    }
    while (--type >= 0 && dtype != torch.types[type]) {
    }
    Py_XDECREF(dtype);
    return type;
}

static bool take_extents(const PyObject *tuple, int ndim, int64_t *extents)
{
    if (!tuple || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != ndim) {
        return false;
    }
    for (int d = 0; d < ndim; d++) {
        extents[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, d));
    }
    return true;
}

/* False, without an exception, if to_array() must look at the value: it is not a tensor, its
 * memory has other values, or it has no elements or no memory of its own, as a sparse tensor. */
static bool take_torch_tensor(PyObject *value, npuq_tensor *tensor)
{
    const int type = torch_type_of(value);
    bool fine = false;

    if (type < 0) {
        return false;
    }
    if (is(attribute(value, IS_CPU), Py_True) && is(method(value, IS_NEG), Py_False)) {
        PyObject *shape = attribute(value, SHAPE);
        PyObject *strides = method(value, STRIDE);
        PyObject *data = method(value, DATA_PTR);
        const Py_ssize_t ndim = shape && PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : NPUQ_MAX_NDIM + 1;

        tensor->dtype = dtypes[type].dtype;
        tensor->ndim = (int)ndim;
        tensor->data = data ? PyLong_AsVoidPtr(data) : NULL;
        fine = tensor->data && ndim <= NPUQ_MAX_NDIM && take_extents(shape, tensor->ndim, tensor->shape) &&
               take_extents(strides, tensor->ndim, tensor->strides) && !PyErr_Occurred();
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        Py_XDECREF(data);
    }
    PyErr_Clear();
    return fine;
}

/* torch_type(value): the name of a tensor's type if the library has the type; otherwise None. */
static PyObject *torch_type(PyObject *module, PyObject *value)
{
    const int type = torch_type_of(value);

    (void)module;
    return Py_BuildValue("z", type < 0 ? NULL : dtypes[type].name);
}

/* reads_memory(value): whether the operators read the memory of a tensor without to_array(). */
static PyObject *reads_memory(PyObject *module, PyObject *value)
{
    npuq_tensor tensor;

    (void)module;
    return PyBool_FromLong(take_torch_tensor(value, &tensor));
}

/* True for a tensor of a type that the library has, for None, a number, a string and a type of PyTorch. */
static bool is_plain(PyObject *value)
{
    const PyTypeObject *type = Py_TYPE(value);

    return value == Py_None || type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type ||
           type == &PyUnicode_Type || type == Py_TYPE(torch.types[0]) || torch_type_of(value) >= 0;
}

/* reads(values, keywords, tensors): True if an operator takes these values unchanged. The first values, as many as
 * tensors says, must not be None. */
static PyObject *reads(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    PyObject *name;
    PyObject *value;
    Py_ssize_t next = 0;
    Py_ssize_t tensors;
    bool fine;

    (void)module;
    if (count != 3 || !torch.tensor || !PyTuple_Check(given[0]) || !PyDict_Check(given[1])) {
        Py_RETURN_FALSE;
    }
    tensors = PyLong_AsSsize_t(given[2]);
    fine = PyTuple_GET_SIZE(given[0]) >= tensors;
    for (Py_ssize_t i = 0; fine && i < PyTuple_GET_SIZE(given[0]); i++) {
        value = PyTuple_GET_ITEM(given[0], i);
        fine = is_plain(value) && !(value == Py_None && i < tensors);
    }
    while (fine && PyDict_Next(given[1], &next, &name, &value)) {
        fine = is_plain(value);
    }
    return PyBool_FromLong(fine);
}

/* bind_torch(torch): lets the operators read the tensors of this module. */
static PyObject *bind_torch(PyObject *module, PyObject *from)
{
    static const char *const names[] = {"is_cpu", "dtype", "is_neg", "shape", "stride", "data_ptr"};
    PyObject *nn = PyObject_GetAttrString(from, "nn");

    (void)module;
    Py_XSETREF(torch.parameter, nn ? PyObject_GetAttrString(nn, "Parameter") : NULL);
    Py_XDECREF(nn);
    Py_XSETREF(torch.tensor, PyObject_GetAttrString(from, "Tensor"));
    for (int n = 0; n < ATTRIBUTES && !PyErr_Occurred(); n++) {
        Py_XSETREF(torch.attributes[n], PyObject_GetAttrString(torch.tensor, names[n]));
    }
    for (int type = 0; type < DTYPES && !PyErr_Occurred(); type++) {
        const bool has_tensors = (TAKEN >> type & 1) != 0 && dtypes[type].log2_values == 0 &&
                                 PyObject_HasAttrString(from, dtypes[type].name);
        Py_XSETREF(torch.types[type], has_tensors ? PyObject_GetAttrString(from, dtypes[type].name) : NULL);
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(torch.tensor);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- arguments ------------------------------------------------------------------------------------------------- */

/* Makes a view of a value. If the library does not have the value's type, the view has UNKNOWN_DTYPE, and *unknown has
 * the argument and the array. The library then says which types the argument takes. */
static bool view(const char *name, argument_kind kind, PyObject *value, holding *held, npuq_tensor *tensor,
                 PyObject **unknown)
{
    const int flags = kind == OUTPUT ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
    const bool is_x = kind == DATA || kind == PACKED;
    Py_buffer *buffer = &held->buffer;
    int dtype;

    /* The library refuses an x whose strides are all 0, so a copy is read. */
    if (take_torch_tensor(value, tensor) && !(is_x && is_one_element(tensor))) {
        Py_INCREF(value);
        held->array = value;
        dtype = (int)tensor->dtype;
    } else {
        if ((PyObject *)Py_TYPE(value) == array_type) {
            Py_INCREF(value);
            (void)hold(held, value, flags);
        }
        /* Not an array, or an array of a type that Python does not have: to_array() decides. */
        if (!buffer->obj && !hold(held, PyObject_CallFunction(to_array, "sOi", name, value, kind == OUTPUT), flags)) {
            return false;
        }
        dtype = buffer->obj ? dtype_of_buffer(buffer) : UNKNOWN_DTYPE;
        if (dtype == UNKNOWN_DTYPE) {
            *tensor = (npuq_tensor){.dtype = (npuq_dtype)dtype};
            if (!*unknown) {
                *unknown = Py_BuildValue("sO", name, held->array);
            }
            return *unknown != NULL;
        }
        if (!take_buffer(name, buffer, tensor) ||
            (is_x && is_one_element(tensor) &&
             !(hold(held, PyObject_CallMethod(held->array, "copy", NULL), flags) &&
               take_buffer(name, buffer, tensor)))) {
            return false;
        }
    }
    tensor->dtype = kind == PACKED && dtype == NPUQ_INT32 ? NPUQ_QUINT4X2 : (npuq_dtype)dtype;
    return true;
}

/* An integer of 32 or 64 bits. */
static bool take_integer(const char *name, PyObject *value, int bits, int64_t *number)
{
    long long wide;
    int overflow;
    PyObject *index;

    index = PyIndex_Check(value) ? PyNumber_Index(value) : NULL;
    if (!index) { /* an array of several numbers fails only here */
        PyErr_Format(type_error, "%s: is %s; expected an integer", name, Py_TYPE(value)->tp_name);
        return false;
    }
    wide = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow) { /* the number may have more digits than Python prints */
        PyErr_Format(value_error, "%s: is too large a number; expected an int%d", name, bits);
        return false;
    }
    if (bits == 32 && (wide < INT32_MIN || wide > INT32_MAX)) {
        PyErr_Format(value_error, "%s: is %lld; expected an int32", name, wide);
        return false;
    }
    *number = wide;
    return true;
}

bool take_int32(const char *name, PyObject *value, int32_t *number)
{
    int64_t wide = 0;
    const bool fine = take_integer(name, value, 32, &wide);

    *number = (int32_t)wide;
    return fine;
}

static bool take_real(const char *name, PyObject *value, float *number)
{
    const bool is_array = (PyObject *)Py_TYPE(value) == array_type; /* of which NumPy warns, even of one element */
    const double wide = is_array ? -1.0 : PyFloat_AsDouble(value);

    *number = (float)wide;
    if (is_array || (wide == -1.0 && PyErr_Occurred())) {
        PyErr_Format(type_error, "%s: is %s; expected a number", name, Py_TYPE(value)->tp_name);
        return false;
    }
    if (isinf(*number) && !isinf(wide)) {
        PyErr_Format(value_error, "%s: is %S; expected -3.4e+38 to 3.4e+38, the range of float32", name, value);
        return false;
    }
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* Raises the library's error of the call that failed on this thread. */
static void raise_refusal(npuq_status status, PyObject *unknown)
{
    const char *message = library.npuq_last_error();
    PyObject *argument = unknown ? PyTuple_GET_ITEM(unknown, 0) : Py_None;
    PyObject *array = unknown ? PyTuple_GET_ITEM(unknown, 1) : Py_None;

    Py_XDECREF(PyObject_CallFunction(refuse, "ssOO", library.npuq_status_name(status), message, argument, array));
}

/* The type of a tensor, of which its buffer says only how it is stored. */
static void set_dtype(int dtype, npuq_tensor *tensor)
{
    if (dtype != UNKNOWN_DTYPE && tensor->dtype != (npuq_dtype)UNKNOWN_DTYPE &&
        strcmp(dtype_of((npuq_dtype)dtype)->stored, dtype_of(tensor->dtype)->stored) == 0) {
        tensor->dtype = (npuq_dtype)dtype;
    }
}

static bool take_dtype(PyObject *number, npuq_tensor *tensor)
{
    set_dtype((int)PyLong_AsLong(number), tensor);
    return !PyErr_Occurred();
}

bool take_call(held_call *call, const operation *op, PyObject *const *values, Py_ssize_t count)
{
    npuq_tensor *first_output = NULL;
    Py_ssize_t *n = &call->count;
    bool fine = true;

    call->op = op;
    call->a = (arguments){0};
    call->unknown = NULL;
    for (*n = 0; fine && op->arguments[*n].kind != END; ++*n) {
        const argument_kind kind = op->arguments[*n].kind;
        const char *name = kind >= NUMBER ? option_names[op->arguments[*n].role] : op->arguments[*n].name;
        PyObject *value = *n + 1 < count ? values[*n] : NULL;
        npuq_tensor *tensor = &call->tensors[*n];

        call->held[*n].array = NULL;
        call->held[*n].buffer.obj = NULL;
        if (!value) {
            PyErr_Format(PyExc_TypeError, "%s: has too few arguments", op->name);
            fine = false;
        } else if (kind == NUMBER || kind == LONG) {
            fine = take_integer(name, value, kind == LONG ? 64 : 32, &call->a.number[*n]);
        } else if (kind == REAL) {
            fine = take_real(name, value, &call->a.real[*n]);
        } else if (kind != OPTIONAL || value != Py_None) {
            fine = view(name, kind, value, &call->held[*n], tensor, &call->unknown);
            call->a.tensor[*n] = tensor;
            set_dtype(op->arguments[*n].dtype, tensor);
            if (kind == OUTPUT && !first_output) {
                first_output = tensor;
            }
        }
    }
    return fine && take_dtype(values[*n], first_output) &&
           (*n + 1 >= count || take_dtype(values[*n + 1], &call->tensors[0]));
}

void let_call_go(held_call *call)
{
    while (call->count > 0) {
        let_go(&call->held[--call->count]);
    }
    Py_CLEAR(call->unknown);
}

/* Of the call that runs on several threads, for progress(). */
static atomic_size_t progress_done;
static atomic_size_t progress_count;

static void note_progress(size_t done, size_t count)
{
    atomic_store(&progress_done, done);
    atomic_store(&progress_count, count);
}

/* progress(): how many parts of the latest call on several threads are done, and how many there are. */
static PyObject *progress(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return Py_BuildValue("nn", (Py_ssize_t)atomic_load(&progress_done), (Py_ssize_t)atomic_load(&progress_count));
}

bool run_call(held_call *call, PyObject *threads)
{
    struct executor executor = {.progress = note_progress};
    const npuq_executor on_threads = executor_view(&executor);
    int32_t wanted;
    npuq_status status;

    if (!take_int32("threads", threads, &wanted)) {
        return false;
    }
    executor.threads = wanted;
    call->a.executor = wanted > 1 ? &on_threads : NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = call->op->run(&call->a);
    Py_END_ALLOW_THREADS;
    if (status != NPUQ_OK) {
        raise_refusal(status, call->unknown);
    }
    return status == NPUQ_OK;
}

/* operator(argument..., dtype, threads) or operator(argument..., dtype, x_dtype, threads): dtype is the number of the
 * first output's type, and x_dtype that of x. threads is the number of threads. */
static PyObject *call_operator(PyObject *capsule, PyObject *const *values, Py_ssize_t count)
{
    held_call call;
    const bool fine = take_call(&call, operation_of(capsule), values, count - 1) && run_call(&call, values[count - 1]);

    let_call_go(&call);
    if (!fine) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* bind(addresses, array_type, to_array, refuse, value_error, type_error): addresses in the order of FUNCTIONS */
static PyObject *bind(PyObject *module, PyObject *given)
{
    PyObject *addresses;
    PyObject *others[5];
    PyObject **const kept[] = {&array_type, &to_array, &refuse, &value_error, &type_error};
    void *functions[FUNCTION_COUNT];

    (void)module;
    if (!PyArg_ParseTuple(given, "O!OOOOO", &PyTuple_Type, &addresses, &others[0], &others[1], &others[2], &others[3],
                          &others[4])) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < FUNCTION_COUNT; i++) {
        PyObject *address = PyTuple_GetItem(addresses, i);
        functions[i] = address ? PyLong_AsVoidPtr(address) : NULL;
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    memcpy(&library, functions, sizeof library);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        Py_INCREF(others[i]);
        Py_XSETREF(*kept[i], others[i]);
    }
    Py_RETURN_NONE;
}

/* exactly(function, *arguments): calls a function of Python's in the floating-point state of the library. */
static PyObject *exactly(PyObject *module, PyObject *given)
{
    PyObject *function = PyTuple_Size(given) > 0 ? PyTuple_GetItem(given, 0) : Py_None;
    PyObject *others = PyTuple_GetSlice(given, 1, PY_SSIZE_T_MAX);

    (void)module;
    if (!others) {
        return NULL;
    }
    const struct state caller = enter_state();
    PyObject *result = PyObject_CallObject(function, others);
    leave_state(&caller);
    Py_DECREF(others);
    return result;
}

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    static PyMethodDef methods[] = {{"bind", bind, METH_VARARGS, NULL},
                                    {"bind_torch", bind_torch, METH_O, NULL},
                                    {"torch_type", torch_type, METH_O, NULL},
                                    {"exactly", exactly, METH_VARARGS, NULL},
                                    {"progress", progress, METH_NOARGS, NULL},
                                    {"reads", (PyCFunction)(void (*)(void))reads, METH_FASTCALL, NULL},
                                    {"reads_memory", reads_memory, METH_O, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyMethodDef operator_methods[OPERATOR_COUNT];
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = -1,
                                            .m_methods = methods};
    PyObject *module = PyModule_Create(&definition);
    PyObject *names = PyTuple_New(FUNCTION_COUNT);

    for (Py_ssize_t i = 0; names && i < FUNCTION_COUNT; i++) {
        PyTuple_SET_ITEM(names, i, PyUnicode_FromString(function_names[i]));
    }
    if (!module || PyModule_AddFunctions(module, cause_methods) != 0 ||
        PyModule_AddFunctions(module, info_methods) != 0 || !names ||
        PyModule_AddStringConstant(module, "VERSION", NPUQ_VERSION) != 0 ||
        PyModule_AddIntConstant(module, "ABI_VERSION", NPUQ_ABI_VERSION) != 0 ||
        PyModule_AddObject(module, "FUNCTIONS", names) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < OPERATOR_COUNT; i++) {
        PyObject *capsule = PyCapsule_New((void *)&operations[i], operation_name, NULL);
        operator_methods[i] =
            (PyMethodDef){operations[i].name, (PyCFunction)(void (*)(void))call_operator, METH_FASTCALL, NULL};
        if (!capsule ||
            PyModule_AddObject(module, operations[i].name, PyCFunction_New(&operator_methods[i], capsule)) != 0) {
            return NULL;
        }
        Py_DECREF(capsule);
    }
    return module;
}
