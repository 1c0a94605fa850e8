/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators as subcommands: names, help, and calls of the library. */
#ifndef NPUQUANT_OPERATORS_H
#define NPUQUANT_OPERATORS_H

#include "options.h"

#include <npuquant/npuquant.h>

enum { MAX_OUTPUTS = 3 };

/* What a call works on. */
struct operands {
    const struct arguments *arguments;
    const npuq_tensor *inputs[INPUTS]; /* null where there is none */
    npuq_tensor outputs[MAX_OUTPUTS];  /* y; and with it, if there are three, scale and offset */
};

struct operator_command {
    const char *name;
    unsigned command;       /* its bit in the table of options */
    enum option positional; /* the input that needs no option's name */
    int outputs;
    bool threaded; /* takes an executor */
    const char *summary;
    const char *about; /* the help's paragraph */
    const char *example;
    /* Whether options that the table of options accepts go together; reports it if not. Null if they all do. */
    bool (*check)(const struct arguments *arguments);
    /* Sets type and shape of the outputs. The library has not seen the inputs yet: it refuses what does not fit. */
    void (*shape_outputs)(struct operands *operands);
    npuq_status (*call)(const struct operands *operands, const npuq_executor *executor);
};

enum { OPERATORS = 4 };
extern const struct operator_command operators[OPERATORS];

#endif
