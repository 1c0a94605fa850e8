/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the extension module share: calls of the operators whose arguments are held as tensors. */
#ifndef NPUQUANT_NATIVE_H
#define NPUQUANT_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <npuquant/npuquant.h>
#include <operators.def>
#include <Python.h>
#include <stdbool.h>

enum { UNKNOWN_DTYPE = -1 };

typedef enum argument_kind {
    END,
    DATA,     /* x: a tensor that is never broadcast from one element */
    PACKED,   /* the same, and int32 are words of eight int4 */
    INPUT,    /* a tensor */
    OPTIONAL, /* a tensor or None */
    OUTPUT,   /* an array that is written to */
    NUMBER,   /* an int32 */
    LONG,     /* an int64 */
    REAL      /* a float32 */
} argument_kind;

/* What the numbers are. */
#define ROLE(name, NAME, ...) NAME,
typedef enum number_role { EACH_OPTION(ROLE) } number_role;
#undef ROLE

enum { MOST_ARGUMENTS = 12 };

/* The arguments of a call, each at its position. */
typedef struct arguments {
    const npuq_tensor *tensor[MOST_ARGUMENTS];
    int64_t number[MOST_ARGUMENTS];
    float real[MOST_ARGUMENTS];
    const npuq_executor *executor;
} arguments;

typedef struct operation {
    const char *name;
    npuq_status (*run)(const arguments *a);
    unsigned op; /* as the steps of a diagnosis call it; 0 if it has none */
    struct {
        const char *name;
        argument_kind kind;
        int role;  /* an enum operand; of an OUTPUT an enum result, of a number a number_role */
        int dtype; /* of a tensor that has one type; otherwise UNKNOWN_DTYPE */
    } arguments[MOST_ARGUMENTS + 1];
} operation;

/* The operation that an operator of the module has as its __self__; null, with an exception, for anything else. */
const operation *operation_of(PyObject *capsule);

/* What a tensor is a view of, until the end of the call. */
typedef struct holding {
    PyObject *array;  /* null at first */
    Py_buffer buffer; /* of the array; its obj is null while there is none */
} holding;

/* A call whose arguments have been taken. */
typedef struct held_call {
    const operation *op;
    arguments a;
    npuq_tensor tensors[MOST_ARGUMENTS];
    holding held[MOST_ARGUMENTS];
    Py_ssize_t count;
    PyObject *unknown; /* null, or the first argument whose type the library does not have, and its array */
} held_call;

/* Takes the arguments of an operator, and behind them the number of its first output's type, and that of x, if x has
 * codes. False is an exception. What is taken is let go by let_call_go() in any case. */
bool take_call(held_call *call, const operation *op, PyObject *const *values, Py_ssize_t count);
void let_call_go(held_call *call);

/* Runs the operator on a number of threads. These end within the call and run no Python: Ctrl-C, fork and the end of
 * the interpreter never meet one that waits for the interpreter lock. False is an exception: what the library says. */
bool run_call(held_call *call, PyObject *threads);

/* An int32; false is an exception that begins with the name. */
bool take_int32(const char *name, PyObject *value, int32_t *number);

/* ---- _causes/cause.c: from a difference to its cause ------------------------------------------------------------- */

/* Ends with a null entry. */
extern PyMethodDef cause_methods[];

/* ---- _info.c: the CPU and the build ----------------------------------------------------------------------------- */

extern PyMethodDef info_methods[];

#endif
