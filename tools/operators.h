/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators as subcommands: names, help, and calls of the library. */
#ifndef NPUQUANT_OPERATORS_H
#define NPUQUANT_OPERATORS_H

#include "options.h"

#include <call.h>
#include <npuquant/npuquant.h>

enum { MAX_OUTPUTS = 3 };

struct operands {
    const struct arguments *arguments;
    const npuq_tensor *inputs[INPUTS]; /* null where there is none */
    npuq_tensor outputs[MAX_OUTPUTS];  /* y, then scale and offset if the operator has them */
    npuq_tensor scratch[MAX_OUTPUTS];  /* between inputs and outputs */
    size_t work;                       /* elements to go through, roughly */
};

struct request {
    unsigned op;
    const npuq_tensor *operands[OPERANDS];
    struct call_options options;
    npuq_tensor row_scale; /* a view that operands may point to */
};

struct operator_command {
    const char *name;
    unsigned command;       /* its bit in the table of options */
    enum option positional; /* the input that needs no option's name */
    int outputs;
    int scratch;   /* number of tensors between inputs and outputs */
    bool threaded; /* takes an executor */
    bool packed;   /* an i4 X holds words of int4 */
    const char *summary;
    const char *about; /* the help's paragraph */
    const char *example;
    /* Checks options that the table of options accepts one by one: whether they go together. Reports errors. Null: any
     * do. */
    bool (*check)(const struct arguments *arguments);
    /* Checks inputs for errors that the library cannot see. Reports errors. */
    bool (*check_inputs)(const struct operands *operands);
    /* Sets type and shape of outputs and scratch. The library refuses wrong inputs later. */
    void (*shape_outputs)(struct operands *operands);
    npuq_status (*call)(const struct operands *operands, const npuq_executor *executor);
    unsigned op; /* the operator whose steps it has; quant-matmul has one of two, by the call */
    enum option (*option_of)(enum operand operand); /* the input for an operand of the steps; INPUTS for none */
};

extern const struct operator_command operators[COMMANDS];

/* Describes the steps of a finished call. Reports it, and returns false, if they are not known. */
bool describe_call(const struct operator_command *command, const struct operands *operands, struct request *request);

/* ---- for operators that have a file of their own --------------------------------------------------------------- */

npuq_dtype wanted_dtype(const struct arguments *arguments);

/* Whether the tolerance has the unit of the result's type, by --dtype or the caller. Reports an error if not. */
bool check_tolerance(const struct arguments *arguments);
bool check_tolerance_of(const struct arguments *arguments, npuq_dtype dtype);

/* The shape of the words that trans_quant_param makes of scale and offset. */
npuq_tensor shape_of_words(const struct operands *operands, npuq_dtype dtype);

#endif
