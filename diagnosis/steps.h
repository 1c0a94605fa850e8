/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators element by element, with a choice at each step: the steps are those of npuq_ref_element.h. */
#ifndef NPUQUANT_STEPS_H
#define NPUQUANT_STEPS_H

#include "call.h"
#include "variant.h"

/* The rules of row_quant, as choices of the steps that they decide. */
extern const unsigned char row_rules[ALL_RULES][STEPS];

/* The bounds that have names, and none. */
extern const double steps_bounds[BOUNDS];

/* The result of one step. */
struct trace_line {
    const char *step;
    double value;
    enum trace_kind { TRACE_FLOAT, TRACE_INTEGER, TRACE_PLACE } kind; /* a place is an element of x */
};

enum { TRACE_LINES = 32 };

struct division {
    double dividend;
    double divisor;
    double quotient;
};

struct trace {
    int count;
    struct trace_line lines[TRACE_LINES];
    struct division division; /* that of the device's vector unit, if there is one */
    double unrounded;         /* an integer of y before rounding and saturation; unchanged for floats */
};

/* The extremes of a token. In the symmetric operators hi is the largest |v|. */
struct extremes {
    double hi;
    double lo;
    size_t hi_at; /* elements of x; the first of equal ones */
    size_t lo_at;
};

/* The parameters that the elements of a token share. */
struct token {
    double scale; /* as the kernel uses them; they are returned as float32, or of microscaling as a code */
    double offset;
    double back;
    double largest; /* m of the symmetric operators */
    double dmax;    /* what it becomes */
    double returned_scale;
    double returned_offset;
};

/* The macros of <math.h> convert to float with MinGW, or so its compiler warns. */
static inline bool is_nan(double value)
{
    return value != value;
}

/* The element of a tensor that lies at place i of another layout, and the place of element i there. */
size_t steps_element_at(const struct call *call, int layout, npuq_dtype dtype, size_t i);
size_t steps_place_of(const struct call *call, int layout, npuq_dtype dtype, size_t i);

/* The columns of a block of FRACTAL_NZ: 32 bytes. */
size_t steps_columns_of_fractal(npuq_dtype dtype);

/* The elements of a channel, one after the other, in x that is taken for [N, C, ...]. */
size_t steps_elements_of_channel(const struct call *call);

/* How many tokens a kernel has: one for each scale, unless its blocks are of another length. */
size_t steps_tokens(const struct call *call, const struct variant *variant);

struct span steps_token_span(const struct call *call, const struct variant *variant, size_t token);

/* The choices before the search for extremes: equal for variants that find the same. */
struct extremes_key {
    unsigned char choice[12];
};

struct extremes_key steps_extremes_key(const struct variant *variant);

/* Whether two variants find the same extremes. */
bool steps_same_extremes(const struct variant *a, const struct variant *b);

struct extremes steps_extremes(const struct call *call, const struct variant *variant, size_t token);

/* The extremes of two tokens as one. */
struct extremes steps_join(const struct extremes *first, const struct extremes *second);

struct token steps_token(const struct call *call, const struct variant *variant, const struct extremes *extremes,
                         struct trace *trace);

/* The group of microscaling whose scale a kernel has at place i: enum place_choice. */
size_t steps_group_for(const struct lines *lines, size_t i, int place);

/* The token whose parameters element i of y takes; 0 if the operator is not dynamic. */
size_t steps_token_of(const struct call *call, const struct variant *variant, size_t i);

/* The token whose parameters are returned at index i of scale and offset: that of the first element they are for. */
size_t steps_token_of_parameter(const struct call *call, const struct variant *variant, size_t i);

/* Whether index i of scale has no group: a kernel with other groups leaves 0 there, too. */
bool steps_is_vacant(const struct call *call, const struct variant *variant, size_t i);

/* How the operator rounds to small floats. */
enum rounding_choice steps_rounding_to_small(const struct call *call);

/* The bits of element i of y, before the layout and the packing. token is looked at by dynamic operators only, trace
 * may be null. */
uint64_t steps_element(const struct call *call, const struct variant *variant, const struct token *token, size_t i,
                       struct trace *trace);

/* The bits of a scale or an offset that a dynamic operator returns. */
uint64_t steps_parameter(const struct call *call, const struct token *token, enum result result);

#endif
