/* SPDX-License-Identifier: BSD-3-Clause */
#include "weights.h"

#include "layouts.h"
#include "steps.h"

#include <math.h>
#include <string.h>

/* A rest of more than this share is no rest. */
static const double most_left = 0.25;

/* ---- elements --------------------------------------------------------------------------------------------------- */

void box_add(struct box *box, size_t row, size_t column)
{
    const struct box one = {{row, row + 1}, {column, column + 1}};

    box_join(box, &one);
}

static void join(size_t range[2], const size_t other[2])
{
    range[0] = other[0] < range[0] ? other[0] : range[0];
    range[1] = other[1] > range[1] ? other[1] : range[1];
}

void box_join(struct box *box, const struct box *other)
{
    if (box->rows[1] == 0) {
        *box = *other;
    } else if (other->rows[1] > 0) {
        join(box->rows, other->rows);
        join(box->columns, other->columns);
    }
}

double box_area(const struct box *box)
{
    return (double)(box->rows[1] - box->rows[0]) * (double)(box->columns[1] - box->columns[0]);
}

static uint64_t mix(uint64_t hash, uint64_t bits)
{
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15U;
    return hash ^ hash >> 29;
}

uint64_t evidence_key(const struct call *call, const struct array ours[RESULTS], enum result result, size_t i)
{
    static const struct variant definition;
    const size_t column = i % call->columns;
    const size_t row = i / call->columns;
    const size_t in_group = call->row_group ? call->row_group[row] * call->columns + column : column;
    const size_t channel = call->row_group ? in_group : call_channel(call, i);
    const size_t places[OPERANDS] = {
        [OPERAND_X] = i,           [OPERAND_SCALE] = channel, [OPERAND_OFFSET] = channel, [OPERAND_SMOOTH] = in_group,
        [OPERAND_ROW_SCALE] = row, [OPERAND_BIAS] = column,
    };
    const size_t token = result == RESULT_Y ? steps_token_of(call, &definition, i) : i;
    uint64_t key = (uint64_t)result + 1;

    for (int o = 0; o < OPERANDS && result == RESULT_Y; o++) {
        const struct array *operand = &call->operands[o];
        if (operand->data && o != OPERAND_GROUPS) {
            key = mix(key, array_bits(operand, operand->count == 1 ? 0 : places[o]));
        }
    }
    for (int r = RESULT_SCALE; r < call_results(call); r++) {
        key = mix(key, array_bits(&ours[r], token));
    }
    return key | 1;
}

static void add_worth(struct worth *worth, unsigned char bits)
{
    worth->first = bits > worth->first ? bits : worth->first;
    worth->count = (unsigned char)(worth->count + (worth->count < bits_of_value));
}

/* Notes an observation, once. False if there is no room for it. */
static bool observe(struct evidence *evidence, struct observation new)
{
    size_t at = new.key % OBSERVATIONS;

    while (evidence->observations[at].key != 0 && evidence->observations[at].key != new.key) {
        at = (at + 1) % OBSERVATIONS;
    }
    if (evidence->observations[at].key == new.key) {
        return true;
    }
    if (evidence->observed == OBSERVATIONS / 2) {
        return false;
    }
    evidence->observations[at] = new;
    evidence->observed++;
    return true;
}

static void add_observation(struct evidence *evidence, struct observation new)
{
    if (new.key == 0 || !observe(evidence, new)) {
        add_worth(&evidence->values[new.value], new.bits);
        evidence->counted++;
    }
}

void evidence_add(struct evidence *evidence, npuq_dtype dtype, uint64_t ours, uint64_t theirs, uint64_t key)
{
    enum { MOST = 8 };
    const uint64_t both = mix(mix(key, ours), theirs) | 1;
    struct observation new = {key == 0 ? 0 : both, (unsigned char)((theirs * 0x9E3779B97F4A7C15U) >> 56), 1};

    for (uint64_t steps = dtype_distance(dtype, ours, theirs); steps > 1 && new.bits < MOST; steps /= 2) {
        new.bits++;
    }
    add_observation(evidence, new);
    evidence->elements++;
}

void evidence_join(struct evidence *evidence, const struct evidence *other)
{
    evidence->elements += other->elements;
    evidence->counted += other->counted;
    for (int i = 0; i < OBSERVATIONS && other->observed > 0; i++) {
        if (other->observations[i].key != 0) {
            add_observation(evidence, other->observations[i]);
        }
    }
    for (int i = 0; i < VALUES && other->counted > 0; i++) {
        const struct worth *worth = &other->values[i];
        const int count = evidence->values[i].count + worth->count;
        evidence->values[i].first = worth->first > evidence->values[i].first ? worth->first : evidence->values[i].first;
        evidence->values[i].count = (unsigned char)(count < bits_of_value ? count : bits_of_value);
    }
}

double evidence_bits(const struct evidence *evidence, bool is_limited)
{
    struct worth values[VALUES];
    double bits = is_limited ? 0 : (double)(evidence->counted + evidence->observed);

    memcpy(values, evidence->values, sizeof values);
    for (int i = 0; i < OBSERVATIONS; i++) {
        if (evidence->observations[i].key != 0) {
            add_worth(&values[evidence->observations[i].value], evidence->observations[i].bits);
        }
    }
    for (int i = 0; i < VALUES; i++) {
        const double first = values[i].first > 1 ? values[i].first - 1 : 0;
        bits += is_limited ? fmin(first + values[i].count, bits_of_value) : first;
    }
    return bits;
}

/* ---- explanations ------------------------------------------------------------------------------------------------ */

double weigh_all(const struct call *call)
{
    const struct needs met = needs_met(call);
    double all = 0;

    for (int i = 0; i < hypothesis_count; i++) {
        all += hypothesis_applies_to(&hypotheses[i], call, &met) ? hypotheses[i].commonness : 0;
    }
    return all;
}

static double bits_of_digits(struct number number)
{
    return bits_of_number + log2(10) * number.digits;
}

/* What is read off the dump, in bits. */
static double bits_of_reading(const struct call *call, const struct variant *variant)
{
    const struct found_layout found = layout_describe(call, variant);
    const bool has_offset = variant_has_one_scale(variant) && !isnan(variant->offset.value);
    const double bits = (variant_has_number(variant) ? bits_of_digits(variant->bound) : 0) +
                        (variant_has_one_scale(variant) ? bits_of_digits(variant->scale) : 0) +
                        (has_offset ? bits_of_digits(variant->offset) : 0) +
                        (variant_has_window(variant) ? log2((double)call->columns) : 0);
    const double numbers = found.has_fill ? variant->layout.from > 0 : (double)found.moved;

    const bool has_fill = found.has_fill && variant->layout.fill != 0; /* most memory that nobody wrote is zero */

    return bits + (has_fill ? bits_of_number : 0) + numbers * log2((double)found.of);
}

static double bits_of_part(const struct part *part)
{
    return log2((double)part->of) * ((part->begin > 0) + (part->end < part->of));
}

double weigh_prior(const struct call *call, const struct hypothesis *const made[2], const struct variant *variant,
                   const struct part *part, double all)
{
    const bool is_pair = made[1] != NULL;
    double bits = log2((int)made[0]->commonness / all) + (is_pair ? log2((int)made[1]->commonness / all) : 0) - 1;

    if (part->kind != PART_ALL) {
        bits -= 2 + bits_of_part(part);
    }
    return bits - bits_of_reading(call, variant);
}

double weigh_device(const struct admission *admission)
{
    const size_t made = admission->moves.made + admission->exact.made;
    const size_t kept = admission->moves.possible + admission->exact.possible - made;

    return (double)made * log2(moved_share / 2) + (double)kept * log2(1 - moved_share);
}

double weigh_other_cause(size_t left, size_t differing, const struct box *box, const struct box *all)
{
    enum { MOST = 16 };
    const double share = (double)left / (double)differing;
    const double area = box_area(box) / box_area(all);

    if (share > most_left) {
        return 0;
    }
    return 2 * log2(share) + (double)(left < MOST ? left : MOST) * log2(area);
}
