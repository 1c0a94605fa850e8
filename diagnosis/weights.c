/* SPDX-License-Identifier: BSD-3-Clause */
#include "weights.h"

#include "layouts.h"

#include <math.h>

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

void evidence_add(struct evidence *evidence, npuq_dtype dtype, uint64_t ours, uint64_t theirs)
{
    enum { MOST = 8 };
    const size_t value = (theirs * 0x9E3779B97F4A7C15U) >> 56;
    unsigned char worth = 1;

    for (uint64_t steps = dtype_distance(dtype, ours, theirs); steps > 1 && worth < MOST; steps /= 2) {
        worth++;
    }
    evidence->bits[value] = worth > evidence->bits[value] ? worth : evidence->bits[value];
    if (evidence->counts[value] < bits_of_value) {
        evidence->counts[value]++;
    }
    evidence->elements++;
}

void evidence_join(struct evidence *evidence, const struct evidence *other)
{
    evidence->elements += other->elements;
    for (int i = 0; i < VALUES; i++) {
        const int count = evidence->counts[i] + other->counts[i];
        evidence->bits[i] = other->bits[i] > evidence->bits[i] ? other->bits[i] : evidence->bits[i];
        evidence->counts[i] = (unsigned char)(count < bits_of_value ? count : bits_of_value);
    }
}

double evidence_bits(const struct evidence *evidence, bool is_limited)
{
    double bits = is_limited ? 0 : (double)evidence->elements;

    for (int i = 0; i < VALUES; i++) {
        const double first = evidence->bits[i] > 1 ? evidence->bits[i] - 1 : 0;
        bits += is_limited ? fmin(first + evidence->counts[i], bits_of_value) : first;
    }
    return bits;
}

/* ---- explanations ------------------------------------------------------------------------------------------------ */

double weigh_all(const struct call *call)
{
    const uint64_t met = needs_met(call);
    double all = 0;

    for (int i = 0; i < hypothesis_count; i++) {
        all += hypothesis_applies_to(&hypotheses[i], call, met) ? hypotheses[i].commonness : 0;
    }
    return all;
}

/* What is read off the dump, in bits. */
static double bits_of_reading(const struct call *call, const struct variant *variant)
{
    const struct found_layout found = layout_describe(call, variant);
    const double bits = variant_has_other_bound(variant) ? bits_of_number + log2(10) * variant->bound.digits : 0;
    const double numbers = found.is_untouched ? variant->layout.from > 0 : (double)found.moved;

    return bits + (found.is_untouched ? bits_of_number : 0) + numbers * log2((double)found.of);
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
