/* SPDX-License-Identifier: BSD-3-Clause */
#include "admissible.h"

#include "state.h"
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The least chance of a number of moves that the device is believed to make. */
static const double least_chance = 0.001;

/* What the vector unit divides for: nothing, each element of y, and perhaps each scale, or each row, block or tensor.
 */
enum quotients { NO_QUOTIENT, ONE_OF_AN_ELEMENT, ONE_OF_A_TOKEN };

/* A rule that divides twice in a row has no sets of admissible results. */
static enum quotients quotients_of(unsigned op, const struct call_options *options)
{
    const int scaling = row_rules[options->rule][STEP_SCALING];

    if (options->divides || scaling == SCALING_DIVISION) {
        return ONE_OF_AN_ELEMENT;
    }
    return op & SYMMETRIC && (scaling == AS_DEFINED || scaling == SCALING_FACTOR) ? ONE_OF_A_TOKEN : NO_QUOTIENT;
}

const char *admission_unit(const struct call *call)
{
    return quotients_of(call->op, &call->options) == ONE_OF_AN_ELEMENT ? "element"
           : call->options.block > 0                                   ? "block"
           : call->options.per_tensor                                  ? "tensor"
                                                                       : "row";
}

bool admission_divides(unsigned op, const struct call_options *options)
{
    return quotients_of(op, options) != NO_QUOTIENT;
}

bool admission_is_within(const struct admission *admission)
{
    return admission->divides && admission->differing > 0 && admission->wrong == 0 && !admission->too_many;
}

/* Whether the device is unlikely to make these moves: k or more of n. */
static bool are_too_many(const struct moves *moves)
{
    const double n = (double)moves->possible;
    const double k = (double)moves->made;
    const double p = moved_share;
    double sum = 0;

    if (k <= n * p) { /* the chance is about a half, or more */
        return false;
    }
    double term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
    for (double i = k; i <= n && term > sum * 1e-9; i++) { /* terms fall from the mean on */
        sum += term;
        term *= (n - i) / (i + 1) * (p / (1 - p));
    }
    return sum < least_chance;
}

/* The quotient, and its two neighbours. */
enum { IEEE, BELOW, ABOVE, QUOTIENTS };

enum { CHUNKS = 64 };

struct judging {
    const struct call *call;
    const struct array *ours;
    const struct array *theirs;
    struct array *repaired;
    size_t units;
    bool equal_ones; /* whether to judge the equal units, or the differing ones and those of moved scales */
    struct variant variants[QUOTIENTS];
    /* Where each element of a dynamic operator divides: the tokens with the scales that their elements are judged by,
     * and whether these are moved. Otherwise null. */
    struct token *tokens;
    bool *is_moved;
    struct admission parts[CHUNKS];
};

/* What is found of a unit. */
struct unit {
    bool is_given[QUOTIENTS]; /* this quotient gives the dump's values */
    bool is_open;             /* another quotient gives another result */
    struct division division;
};

static void look_at(const struct judging *j, struct unit *unit, enum result result, size_t i,
                    const uint64_t bits[QUOTIENTS])
{
    const uint64_t theirs = array_bits(&j->theirs[result], i);

    for (int q = 0; q < QUOTIENTS; q++) {
        unit->is_given[q] &= result_is_same(result, theirs, bits[q]);
        unit->is_open |= !result_is_same(result, bits[IEEE], bits[q]);
    }
}

static bool is_admissible(const struct unit *unit)
{
    return unit->is_given[IEEE] || unit->is_given[BELOW] || unit->is_given[ABOVE];
}

static void add_moves(struct admission *part, const struct unit *unit, bool is_made)
{
    /* The product of two float32 is exact as a double. */
    const bool is_exact = unit->division.quotient * unit->division.divisor == unit->division.dividend;
    struct moves *moves = is_exact ? &part->exact : &part->moves;

    moves->possible += unit->is_open;
    moves->made += is_made;
}

static void repair(const struct judging *j, enum result result, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        array_set_bits(&j->repaired[result], i, array_bits(&j->ours[result], i));
    }
}

static bool range_differs(const struct judging *j, enum result result, size_t begin, size_t end)
{
    for (size_t i = begin; j->theirs[result].data && i < end; i++) {
        if (!result_is_same(result, array_bits(&j->ours[result], i), array_bits(&j->theirs[result], i))) {
            return true;
        }
    }
    return false;
}

/* An element that is a quotient of a scale, or that and an offset. */
static struct unit judge_element(const struct judging *j, const struct token *token, size_t i)
{
    struct unit unit = {.is_given = {true, true, true}};
    struct trace trace = {0};
    uint64_t bits[QUOTIENTS];

    for (int q = 0; q < QUOTIENTS; q++) {
        bits[q] = steps_element(j->call, &j->variants[q], token, i, q == IEEE ? &trace : NULL);
    }
    look_at(j, &unit, RESULT_Y, i, bits);
    unit.division = trace.division;
    return unit;
}

/* Whether the device may make all elements of a token by a scale, or all that are ours. */
static bool has_scale(const struct judging *j, const struct token *token, struct span span, bool all)
{
    for (size_t row = 0; j->theirs[RESULT_Y].data && row < span.rows; row++) {
        for (size_t i = span.begin + row * j->call->columns; i < span.end + row * j->call->columns; i++) {
            const struct unit unit = judge_element(j, token, i);
            if (!is_admissible(&unit) && (all || !range_differs(j, RESULT_Y, i, i + 1))) {
                return false;
            }
        }
    }
    return true;
}

/* Finds the scale by which the elements of a token are judged, and judges the scale of the dump: the scale may be a
 * quotient, too. Without it, the elements show which one the device may have had. */
static void judge_scale(const struct judging *j, size_t at, struct admission *part)
{
    const struct extremes extremes = steps_extremes(j->call, &j->variants[IEEE], at);
    const struct span span = steps_token_span(j->call, &j->variants[IEEE], at);
    const bool is_dumped = j->theirs[RESULT_SCALE].data;
    struct unit unit = {.is_given = {true, true, true}};
    struct token tokens[QUOTIENTS];
    uint64_t bits[QUOTIENTS];
    struct trace trace = {0};
    int own = IEEE;

    for (int q = 0; q < QUOTIENTS; q++) {
        tokens[q] = steps_token(j->call, &j->variants[q], &extremes, q == IEEE ? &trace : NULL);
        bits[q] = steps_parameter(j->call, &tokens[q], RESULT_SCALE);
    }
    unit.division = trace.division;
    if (is_dumped) {
        look_at(j, &unit, RESULT_SCALE, at, bits);
    } else {
        unit.is_open = bits[BELOW] != bits[ABOVE];
    }
    while (own < QUOTIENTS &&
           !(unit.is_given[own] && ((own == IEEE && is_dumped) || has_scale(j, &tokens[own], span, !is_dumped)))) {
        own++;
    }
    const bool is_wrong = own == QUOTIENTS && is_dumped;
    own = own == QUOTIENTS ? IEEE : own;
    j->tokens[at] = tokens[own];
    j->is_moved[at] = bits[own] != bits[IEEE];
    part->differing += is_dumped && (is_wrong || j->is_moved[at]);
    part->wrong += is_wrong;
    add_moves(part, &unit, j->is_moved[at]);
    if (is_dumped && j->is_moved[at]) {
        repair(j, RESULT_SCALE, at, at + 1);
    }
}

/* A row of dynamic_quant, or its tensor; a block of dynamic_block_quant. */
static struct unit judge_token(const struct judging *j, size_t token, struct span span)
{
    const struct call *call = j->call;
    const struct extremes extremes = steps_extremes(call, &j->variants[IEEE], token);
    struct unit unit = {.is_given = {true, true, true}};
    struct trace trace = {0};
    struct token tokens[QUOTIENTS];
    uint64_t bits[QUOTIENTS];

    for (int q = 0; q < QUOTIENTS; q++) {
        tokens[q] = steps_token(call, &j->variants[q], &extremes, q == IEEE ? &trace : NULL);
        bits[q] = steps_parameter(call, &tokens[q], RESULT_SCALE);
    }
    unit.division = trace.division;
    if (j->theirs[RESULT_SCALE].data) {
        look_at(j, &unit, RESULT_SCALE, token, bits);
    }
    for (size_t i = span.begin; j->theirs[RESULT_Y].data && i < span.end; i++) {
        for (int q = 0; q < QUOTIENTS; q++) {
            bits[q] = steps_element(call, &j->variants[q], &tokens[q], i, NULL);
        }
        look_at(j, &unit, RESULT_Y, i, bits);
    }
    return unit;
}

static void judge(const struct judging *j, size_t at, struct admission *part)
{
    const bool by_token = quotients_of(j->call->op, &j->call->options) == ONE_OF_A_TOKEN;
    const struct span span =
        by_token ? steps_token_span(j->call, &j->variants[IEEE], at) : (struct span){at, at + 1, 1, 1};
    const size_t token = j->tokens ? steps_token_of(j->call, &j->variants[IEEE], at) : 0;
    const bool differs =
        range_differs(j, RESULT_Y, span.begin, span.end) || (by_token && range_differs(j, RESULT_SCALE, at, at + 1));

    if ((differs || (j->tokens && j->is_moved[token])) == j->equal_ones) {
        return;
    }
    const struct unit unit =
        by_token ? judge_token(j, at, span) : judge_element(j, j->tokens ? &j->tokens[token] : NULL, at);

    part->differing += differs;
    part->wrong += !is_admissible(&unit);
    add_moves(part, &unit, !unit.is_given[IEEE] && is_admissible(&unit));
    if (differs && is_admissible(&unit)) {
        repair(j, RESULT_Y, span.begin, j->theirs[RESULT_Y].data ? span.end : 0);
        repair(j, RESULT_SCALE, at, by_token && j->theirs[RESULT_SCALE].data ? at + 1 : 0);
    }
}

static void judge_chunks(void *argument, size_t begin, size_t end)
{
    struct judging *j = argument;
    const struct state caller = enter_state();

    for (size_t chunk = begin; chunk < end; chunk++) {
        for (size_t at = chunk * j->units / CHUNKS; at < (chunk + 1) * j->units / CHUNKS; at++) {
            judge(j, at, &j->parts[chunk]);
        }
    }
    leave_state(&caller);
}

static void judge_scales(void *argument, size_t begin, size_t end)
{
    struct judging *j = argument;
    const struct state caller = enter_state();
    const size_t tokens = j->call->tokens;

    for (size_t chunk = begin; chunk < end; chunk++) {
        for (size_t at = chunk * tokens / CHUNKS; at < (chunk + 1) * tokens / CHUNKS; at++) {
            judge_scale(j, at, &j->parts[chunk]);
        }
    }
    leave_state(&caller);
}

/* Judges units in chunks, and adds the counts. */
static void judge_all(struct judging *j, void (*work)(void *argument, size_t begin, size_t end),
                      const npuq_executor *executor, struct admission *admission)
{
    memset(j->parts, 0, sizeof j->parts);
    if (executor) {
        executor->parallel_for(executor->context, CHUNKS, work, j);
    } else {
        work(j, 0, CHUNKS);
    }
    for (int i = 0; i < CHUNKS; i++) {
        admission->differing += j->parts[i].differing;
        admission->wrong += j->parts[i].wrong;
        admission->moves.possible += j->parts[i].moves.possible;
        admission->moves.made += j->parts[i].moves.made;
        admission->exact.possible += j->parts[i].exact.possible;
        admission->exact.made += j->parts[i].exact.made;
    }
}

bool admission_find(const struct call *call, const struct array ours[RESULTS], const struct array theirs[RESULTS],
                    struct array repaired[RESULTS], const npuq_executor *executor, struct admission *admission)
{
    struct judging j = {.call = call, .ours = ours, .theirs = theirs, .repaired = repaired};

    const enum quotients quotients = quotients_of(call->op, &call->options);
    *admission = (struct admission){.divides = quotients != NO_QUOTIENT};
    if (!admission->divides) {
        return true;
    }
    for (int r = 0; r < RESULTS; r++) {
        if (theirs[r].data && !array_copy(&repaired[r], &theirs[r])) {
            return false;
        }
    }
    j.units = quotients == ONE_OF_A_TOKEN ? call->tokens : theirs[RESULT_Y].data ? call->count : 0;
    j.variants[BELOW].choice[STEP_QUOTIENT] = QUOTIENT_BELOW;
    j.variants[ABOVE].choice[STEP_QUOTIENT] = QUOTIENT_ABOVE;
    admission->units = (quotients == ONE_OF_AN_ELEMENT ? call->count : 0) +
                       (quotients == ONE_OF_A_TOKEN || call->options.rule == RULE_FLOAT8_BLOCK ? call->tokens : 0);
    if (quotients == ONE_OF_AN_ELEMENT && call->tokens > 0) {
        j.tokens = malloc(call->tokens * sizeof *j.tokens);
        j.is_moved = malloc(call->tokens * sizeof *j.is_moved);
        if (j.tokens && j.is_moved) {
            judge_all(&j, judge_scales, executor, admission);
        }
    }
    const bool ok = call->tokens == 0 || quotients == ONE_OF_A_TOKEN || (j.tokens && j.is_moved);
    if (ok) {
        judge_all(&j, judge_chunks, executor, admission);
    }
    if (ok && admission->wrong == 0) { /* otherwise nobody asks how many moves are possible */
        j.equal_ones = true;
        judge_all(&j, judge_chunks, executor, admission);
        admission->too_many = are_too_many(&admission->moves) || are_too_many(&admission->exact);
    }
    free(j.tokens);
    free(j.is_moved);
    return ok;
}
