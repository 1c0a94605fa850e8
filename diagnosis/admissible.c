/* SPDX-License-Identifier: BSD-3-Clause */
#include "admissible.h"

#include "predict.h"
#include "state.h"
#include "steps.h"

#include <math.h>
#include <string.h>

/* The least chance of a number of moves that the device is believed to make. */
static const double least_chance = 0.001;

/* What the vector unit divides for: nothing, each element of y, or each row, block or tensor. */
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
    return call->options.block > 0                                       ? "block"
           : quotients_of(call->op, &call->options) == ONE_OF_AN_ELEMENT ? "element"
           : call->options.per_tensor                                    ? "tensor"
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
    bool equal_ones; /* whether to judge the equal units, or the differing ones */
    struct variant variants[QUOTIENTS];
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
    const uint64_t ours = array_bits(&j->ours[result], i);
    const uint64_t theirs = array_bits(&j->theirs[result], i);

    for (int q = 0; q < QUOTIENTS; q++) {
        unit->is_given[q] &= result_is_same(result, theirs, bits[q]);
        unit->is_open |= !result_is_same(result, ours, bits[q]);
    }
}

static void repair(const struct judging *j, enum result result, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        array_set_bits(&j->repaired[result], i, array_bits(&j->ours[result], i));
    }
}

/* An element of quantize, or of row_quant by a rule that divides. */
static struct unit judge_element(const struct judging *j, size_t i, struct predictor *p)
{
    struct unit unit = {.is_given = {true, true, true}};
    struct trace trace = {0};
    uint64_t bits[QUOTIENTS];

    (void)predict(p, RESULT_Y, i, NULL); /* finds the parameters of the row, which no quotient changes */
    for (int q = 0; q < QUOTIENTS; q++) {
        bits[q] = steps_element(j->call, &j->variants[q], &p->token, i, q == IEEE ? &trace : NULL);
    }
    look_at(j, &unit, RESULT_Y, i, bits);
    unit.division = trace.division;
    return unit;
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
        bits[q] = steps_parameter(&tokens[q], RESULT_SCALE);
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

static bool range_differs(const struct judging *j, enum result result, size_t begin, size_t end)
{
    for (size_t i = begin; j->theirs[result].data && i < end; i++) {
        if (!result_is_same(result, array_bits(&j->ours[result], i), array_bits(&j->theirs[result], i))) {
            return true;
        }
    }
    return false;
}

static void judge(const struct judging *j, size_t at, struct predictor *p, struct admission *part)
{
    const bool by_token = quotients_of(j->call->op, &j->call->options) == ONE_OF_A_TOKEN;
    const struct span span =
        by_token ? steps_token_span(j->call, &j->variants[IEEE], at) : (struct span){at, at + 1, 1};
    const bool differs =
        range_differs(j, RESULT_Y, span.begin, span.end) || (by_token && range_differs(j, RESULT_SCALE, at, at + 1));

    if (differs == j->equal_ones) {
        return;
    }
    const struct unit unit = by_token ? judge_token(j, at, span) : judge_element(j, at, p);
    const bool is_admissible = unit.is_given[IEEE] || unit.is_given[BELOW] || unit.is_given[ABOVE];
    /* The product of two float32 is exact as a double. */
    const bool is_exact = unit.division.quotient * unit.division.divisor == unit.division.dividend;
    struct moves *moves = is_exact ? &part->exact : &part->moves;

    part->differing += differs;
    part->wrong += differs && !is_admissible;
    moves->possible += unit.is_open;
    moves->made += differs && is_admissible;
    if (differs && is_admissible) {
        repair(j, RESULT_Y, span.begin, j->theirs[RESULT_Y].data ? span.end : 0);
        repair(j, RESULT_SCALE, at, by_token && j->theirs[RESULT_SCALE].data ? at + 1 : 0);
    }
}

static void judge_chunks(void *argument, size_t begin, size_t end)
{
    struct judging *j = argument;
    const struct state caller = enter_state();
    struct predictor p = {.call = j->call, .variant = &j->variants[IEEE]};

    for (size_t chunk = begin; chunk < end; chunk++) {
        for (size_t at = chunk * j->units / CHUNKS; at < (chunk + 1) * j->units / CHUNKS; at++) {
            judge(j, at, &p, &j->parts[chunk]);
        }
    }
    leave_state(&caller);
}

/* Judges all units in chunks, and adds the counts. */
static void judge_all(struct judging *j, const npuq_executor *executor, struct admission *admission)
{
    memset(j->parts, 0, sizeof j->parts);
    if (executor) {
        executor->parallel_for(executor->context, CHUNKS, judge_chunks, j);
    } else {
        judge_chunks(j, 0, CHUNKS);
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
    j.units = admission->units = quotients == ONE_OF_A_TOKEN ? call->tokens : call->count;
    j.variants[BELOW].choice[STEP_QUOTIENT] = QUOTIENT_BELOW;
    j.variants[ABOVE].choice[STEP_QUOTIENT] = QUOTIENT_ABOVE;
    judge_all(&j, executor, admission);
    for (size_t token = 0; quotients == ONE_OF_AN_ELEMENT && token < call->tokens; token++) { /* scales are exact */
        const bool is_wrong = range_differs(&j, RESULT_SCALE, token, token + 1);
        admission->differing += is_wrong;
        admission->wrong += is_wrong;
    }
    if (admission->wrong == 0) { /* otherwise nobody asks how many moves are possible */
        j.equal_ones = true;
        judge_all(&j, executor, admission);
        admission->too_many = are_too_many(&admission->moves) || are_too_many(&admission->exact);
    }
    return true;
}
