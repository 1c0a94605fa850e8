/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators as subcommands: names, help, and calls of the library. */
#ifndef NPUQUANT_OPERATORS_H
#define NPUQUANT_OPERATORS_H

#include "options.h"

#include <call.h>
#include <npuquant/npuquant.h>

enum { MAX_OUTPUTS = 3 };

/* What a call works on. */
struct operands {
    const struct arguments *arguments;
    const npuq_tensor *inputs[INPUTS]; /* null where there is none */
    npuq_tensor outputs[MAX_OUTPUTS];  /* y; with it scale, if there are two; and offset, if there are three */
    npuq_tensor scratch[MAX_OUTPUTS];  /* what lies between inputs and outputs */
    size_t work;                       /* about how many elements a call goes through */
};

/* A call as its steps see it. */
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
    int scratch;   /* as many tensors between inputs and outputs */
    bool threaded; /* takes an executor */
    bool packed;   /* an i4 X holds words of int4 */
    const char *summary;
    const char *about; /* the help's paragraph */
    const char *example;
    /* Whether options that the table of options accepts go together; reports it if not. Null if they all do. */
    bool (*check)(const struct arguments *arguments);
    /* The same of the inputs, as far as the library cannot see it. */
    bool (*check_inputs)(const struct operands *operands);
    /* Sets type and shape of outputs and scratch. The library has not seen the inputs yet: it refuses what does not
     * fit. */
    void (*shape_outputs)(struct operands *operands);
    npuq_status (*call)(const struct operands *operands, const npuq_executor *executor);
    unsigned op; /* what its steps are those of; of quant-matmul one of two, as the call may be */
    enum option (*option_of)(enum operand operand); /* the input that is an operand of its steps; INPUTS if none is */
};

extern const struct operator_command operators[COMMANDS];

/* What the steps of a call that has been made are. Reports it, and returns false, if that is not known. */
bool describe_call(const struct operator_command *command, const struct operands *operands, struct request *request);

/* ---- for operators that have a file of their own --------------------------------------------------------------- */

/* What --dtype says. */
npuq_dtype wanted_dtype(const struct arguments *arguments);

/* Whether a result is compared in the unit that its type has, which --dtype or else the caller names; reports it if
 * not. */
bool check_tolerance(const struct arguments *arguments);
bool check_tolerance_of(const struct arguments *arguments, npuq_dtype dtype);

/* The words that trans_quant_param makes of scale and offset. */
npuq_tensor shape_of_words(const struct operands *operands, npuq_dtype dtype);

#endif
