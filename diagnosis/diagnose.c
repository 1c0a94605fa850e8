/* SPDX-License-Identifier: BSD-3-Clause */
#include "diagnose.h"

#include "hypotheses.h"
#include "layouts.h"
#include "predict.h"
#include "state.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sample, on which hypotheses are tried first: elements in all, rows, differing elements of a row. The sample takes
 * as many equal elements of a row. */
enum { SAMPLE_ELEMENTS = 6144, SAMPLE_ROWS = 48, SAMPLE_PER_ROW = 64 };

/* Elements on which pairs are tried: there are thousands of pairs. */
enum { PAIR_ELEMENTS = 1024 };

/* Orders of rows that are kept for pairs. */
enum { MOST_PERMUTED = 8 };

/* Findings to confirm on the whole dump: with all of the sample explained, and with a part of it. */
enum { CONFIRMED = 16, CONFIRMED_PARTLY = 3 };

/* If a finding explains all of the sample but not the dump, its wrong elements are tried on the other findings:
 * EXAMPLES of them. After MOST_REFUTED such findings the others are left untried. */
enum { EXAMPLES = 64, MOST_REFUTED = 12 };

/* Values to visit for extremes. After these, pairs that change the extremes are left untried: long rows take long. */
enum { MOST_VISITS = 1 << 30 };

/* The bits of an infinite float32. */
enum { INFINITE = 0x7F800000 };

/* Of the next row or the one before. */
enum { MOST_COLUMNS_OF_OTHER = 1 << 16 };

struct search {
    const struct call *call;
    const struct array *ours;
    const struct array *theirs;
    const struct array *repaired; /* theirs, with ours for excused elements; null if there are none */
    size_t to_explain;            /* differing elements, without the excused ones */
    double bits_to_explain;       /* what they are worth to a finding that gives them all */
    double all_hypotheses;        /* weigh_all() */
    struct box differing;         /* has the differing elements */
    bool is_one_pair;             /* all of y is one value in the dump, and another in the right result */
    const npuq_executor *executor;
    struct diagnosis *diagnosis;
    struct extremes_cache *cache;
    struct element *sample; /* with room for EXAMPLES more */
    size_t sample_count;
    bool layout_fits[LAYOUTS];
    struct layout layouts[LAYOUTS];
    bool has_rest;         /* struct rivals */
    struct number scale;   /* the one that takes the place of all scales; not a number if there is none */
    struct number offset;  /* of all offsets */
    bool moves_units_only; /* each scale that differs is the next float32: rounded in another way, which is no bound */
    size_t least_at;       /* find_least() */
    size_t permuted;       /* how many pairs have an order of rows of their own */
    struct finding *singles; /* a hypothesis each, the best first */
    int single_count;
};

/* ---- comparing -------------------------------------------------------------------------------------------------- */

static bool differs(const struct search *s, enum result result, size_t i)
{
    return !result_is_same(result, array_bits(&s->ours[result], i), array_bits(&s->theirs[result], i));
}

/* Whether the element differs, and a mistake need not explain it. */
static bool is_excused(const struct search *s, enum result result, size_t i)
{
    return s->repaired && differs(s, result, i) &&
           result_is_same(result, array_bits(&s->ours[result], i), array_bits(&s->repaired[result], i));
}

/* Whether a kernel that gives these bits may have made the dump. */
static bool is_given(const struct search *s, enum result result, size_t i, uint64_t bits)
{
    return result_is_same(result, bits, array_bits(&s->theirs[result], i)) ||
           (is_excused(s, result, i) && result_is_same(result, bits, array_bits(&s->ours[result], i)));
}

/* Adds the element of y, or the row of a scale or offset. */
static void add_place(const struct call *call, struct box *box, enum result result, size_t i)
{
    if (result == RESULT_Y) {
        box_add(box, i / call->columns, i % call->columns);
    } else {
        const struct row_range rows = call_rows_of_token(call, i);
        box_join(box, &(struct box){{rows.begin, rows.end}, {0, call->columns}});
    }
}

/* Of a y of one value against one value all elements are one observation, whatever the explanation. */
static uint64_t key_of(const struct search *s, enum result result, size_t i, bool is_of_places)
{
    if (s->is_one_pair && result == RESULT_Y) {
        return 1;
    }
    return is_of_places ? 0 : evidence_key(s->call, s->ours, result, i);
}

/* Counts what differs, and finds out what it is worth to explain it. */
static void survey(struct search *s)
{
    struct evidence evidence = {0};

    s->differing = (struct box){0};
    for (int r = 0; r < RESULTS; r++) {
        const enum result result = (enum result)r;
        const size_t count = s->theirs[r].data ? call_result_count(s->call, result) : 0;
        s->diagnosis->compared[r] = count;
        s->diagnosis->differing[r] = 0;
        for (size_t i = 0; i < count; i++) {
            if (!differs(s, result, i)) {
                continue;
            }
            s->diagnosis->differing[r]++;
            add_place(s->call, &s->differing, result, i);
            if (!is_excused(s, result, i)) {
                evidence_add(&evidence, s->ours[r].dtype, array_bits(&s->ours[r], i), array_bits(&s->theirs[r], i),
                             key_of(s, result, i, true));
            }
        }
    }
    s->to_explain = evidence.elements;
    s->bits_to_explain = evidence_bits(&evidence, false);
}

/* ---- the sample ------------------------------------------------------------------------------------------------- */

/* Whether to take the next element after seen ones, so that taken of all are taken evenly. */
static bool is_taken(size_t seen, size_t taken, size_t all)
{
    return all > 0 && (seen + 1) * taken / all > seen * taken / all;
}

/* Takes differing and equal elements from the whole length of a row. */
static void sample_row(struct search *s, enum result result, size_t begin, size_t end, size_t differing)
{
    const size_t equal = end - begin - differing;
    size_t seen[2] = {0, 0};
    const size_t total[2] = {equal, differing};

    for (size_t i = begin; i < end; i++) {
        const bool d = differs(s, result, i);
        const size_t taken = total[d] < SAMPLE_PER_ROW ? total[d] : SAMPLE_PER_ROW;
        if (is_taken(seen[d], taken, total[d])) {
            s->sample[s->sample_count++] = (struct element){result, i};
        }
        seen[d]++;
    }
}

static size_t differing_in(const struct search *s, enum result result, size_t begin, size_t end)
{
    size_t count = 0;

    for (size_t i = begin; i < end; i++) {
        count += differs(s, result, i);
    }
    return count;
}

static bool make_sample(struct search *s)
{
    const size_t columns = s->call->columns;
    const size_t per_row = columns < 2 * SAMPLE_PER_ROW ? columns : 2 * SAMPLE_PER_ROW;
    const size_t rows = SAMPLE_ROWS > SAMPLE_ELEMENTS / per_row ? SAMPLE_ROWS : SAMPLE_ELEMENTS / per_row;
    const size_t most_of_one = 2 * rows * (2 * SAMPLE_PER_ROW);
    size_t room = 1;

    for (int r = 0; r < RESULTS; r++) {
        room += s->diagnosis->compared[r] < most_of_one ? s->diagnosis->compared[r] : most_of_one;
    }
    s->sample = malloc((room + EXAMPLES) * sizeof *s->sample);
    if (!s->sample) {
        return false;
    }
    for (int r = RESULTS - 1; r >= 0; r--) { /* scales and offsets first: they are few, and say much */
        const enum result result = (enum result)r;
        const size_t length = result == RESULT_Y ? columns : 2 * SAMPLE_PER_ROW;
        const size_t count = s->diagnosis->compared[r];
        const size_t all = (count + length - 1) / length;
        size_t hit = 0;
        size_t seen[2] = {0, 0};

        for (size_t row = 0; row < all; row++) {
            const size_t end = (row + 1) * length < count ? (row + 1) * length : count;
            hit += differing_in(s, result, row * length, end) > 0;
        }
        const size_t total[2] = {all - hit, hit};
        const size_t most[2] = {rows / 6, rows};
        for (size_t row = 0; row < all; row++) {
            const size_t end = (row + 1) * length < count ? (row + 1) * length : count;
            const size_t d = differing_in(s, result, row * length, end);
            const bool is_hit = d > 0;
            const size_t taken = total[is_hit] < most[is_hit] ? total[is_hit] : most[is_hit];
            if (is_taken(seen[is_hit], taken, total[is_hit])) {
                sample_row(s, result, row * length, end, d);
            }
            seen[is_hit]++;
        }
    }
    return true;
}

/* ---- trying ----------------------------------------------------------------------------------------------------- */

/* Counts what a finding makes of an element. */
static void count(const struct search *s, struct finding *finding, enum result result, size_t i, uint64_t bits)
{
    const bool was_different = differs(s, result, i);

    if (!is_given(s, result, i, bits)) {
        finding->unexplained += was_different;
        finding->newly_wrong += !was_different;
    } else if (result_is_same(result, bits, array_bits(&s->theirs[result], i))) {
        finding->explained += was_different;
    }
}

static size_t mismatches(const struct finding *finding)
{
    return finding->unexplained + finding->newly_wrong;
}

/* The element of a part that begins at i: at irregular distances, as rows are alike. */
static size_t spread(size_t i, size_t key, size_t length)
{
    return i + ((uint32_t)key * 2654435761U >> 16) % length;
}

/* Counts on about `most` elements, spread over the sample. Stops at too many mismatches. */
static void try_on_sample(struct search *s, struct finding *finding, size_t most, size_t too_many)
{
    struct predictor p = {.call = s->call, .variant = &finding->variant, .cache = s->cache};
    const size_t step = s->sample_count > most ? s->sample_count / most : 1;

    for (size_t i = 0; i + step <= s->sample_count && mismatches(finding) < too_many; i += step) {
        const struct element *at = &s->sample[spread(i, i, step)];
        count(s, finding, at->result, at->index, predict(&p, at->result, at->index, NULL));
    }
}

/* What is found of a chunk of the dump. */
struct tally {
    struct finding finding;
    struct evidence evidence;
};

enum { MOST_CHUNKS = 64, ELEMENTS_OF_CHUNK = 512 };

struct confirmation {
    struct search *search;
    struct predictor predictor; /* what each chunk begins with */
    struct token *tokens;       /* filled before elements are looked at, which may be of any row, one after the other */
    enum result result;
    bool is_of_places;
    size_t chunks;
    struct tally *tallies; /* one for each chunk, and one more */
};

static void find_tokens(void *argument, size_t begin, size_t end)
{
    const struct confirmation *c = argument;
    const size_t total = steps_tokens(c->search->call, c->predictor.variant);
    struct predictor p = c->predictor;
    const struct state caller = enter_state();

    for (size_t token = begin * total / c->chunks; token < end * total / c->chunks; token++) {
        c->tokens[token] = predict_token(&p, token, NULL);
    }
    leave_state(&caller);
}

static void confirm_chunks(void *argument, size_t begin, size_t end)
{
    struct confirmation *c = argument;
    const struct search *s = c->search;
    const size_t total = s->diagnosis->compared[c->result];
    const struct array *ours = &s->ours[c->result];
    const struct state caller = enter_state();

    for (size_t chunk = begin; chunk < end; chunk++) {
        struct predictor p = c->predictor;
        struct tally *tally = &c->tallies[chunk];
        const size_t last = (chunk + 1) * total / c->chunks;
        for (size_t i = chunk * total / c->chunks; i < last; i++) {
            const uint64_t bits = predict(&p, c->result, i, NULL);
            const size_t explained = tally->finding.explained;
            const size_t left = mismatches(&tally->finding);
            count(s, &tally->finding, c->result, i, bits);
            if (tally->finding.explained > explained) {
                evidence_add(&tally->evidence, ours->dtype, array_bits(ours, i), bits,
                             key_of(s, c->result, i, c->is_of_places));
            } else if (mismatches(&tally->finding) > left) {
                add_place(s->call, &tally->finding.left, c->result, i);
            }
        }
    }
    leave_state(&caller);
}

static void run_chunks(struct confirmation *c, void (*work)(void *argument, size_t begin, size_t end))
{
    const npuq_executor *executor = c->search->executor;

    if (executor) {
        executor->parallel_for(executor->context, c->chunks, work, c);
    } else {
        work(c, 0, c->chunks);
    }
}

static bool confirm(struct search *s, struct finding *finding)
{
    const size_t most = s->call->count / ELEMENTS_OF_CHUNK + 1;
    const size_t chunks = most < MOST_CHUNKS ? most : MOST_CHUNKS;
    /* Without the cache, which threads do not share. */
    struct confirmation c = {.search = s,
                             .predictor = {.call = s->call, .variant = &finding->variant},
                             .is_of_places = variant_is_of_places(&finding->variant),
                             .chunks = chunks,
                             .tallies = calloc(chunks + 1, sizeof *c.tallies)};
    struct evidence *evidence = &c.tallies[chunks].evidence;

    finding->explained = finding->unexplained = finding->newly_wrong = 0;
    finding->left = (struct box){0};
    if (!c.tallies) {
        return false;
    }
    if (s->call->tokens > 0) {
        c.tokens = malloc(steps_tokens(s->call, &finding->variant) * sizeof *c.tokens);
        if (!c.tokens) {
            free(c.tallies);
            return false;
        }
        run_chunks(&c, find_tokens);
        c.predictor.tokens = c.tokens;
    }
    for (int r = 0; r < RESULTS; r++) {
        c.result = (enum result)r;
        if (s->diagnosis->compared[r] > 0) {
            run_chunks(&c, confirm_chunks);
        }
    }
    for (size_t i = 0; i < chunks; i++) {
        const struct finding *part = &c.tallies[i].finding;
        finding->explained += part->explained;
        finding->unexplained += part->unexplained;
        finding->newly_wrong += part->newly_wrong;
        box_join(&finding->left, &part->left);
        evidence_join(evidence, &c.tallies[i].evidence);
    }
    finding->gained = evidence_bits(evidence, finding->hypotheses[1] != NULL);
    free(c.tallies);
    free(c.tokens);
    return true;
}

/* ---- ranking ---------------------------------------------------------------------------------------------------- */

double finding_score(const struct finding *finding)
{
    return finding->prior + finding->gained - bits_of_newly_wrong * (double)finding->newly_wrong;
}

/* On the sample: the fewest mismatches first, then the most explained, then the commonest. */
static bool is_nearer(const struct finding *a, const struct finding *b)
{
    return mismatches(a) != mismatches(b) ? mismatches(a) < mismatches(b)
           : a->explained != b->explained ? a->explained > b->explained
                                          : a->prior > b->prior;
}

/* On the dump: those that explain everything, of these the most probable before the dump was seen, whatever the
 * evidence counts; then the highest score first. */
static bool is_likelier(const struct finding *a, const struct finding *b)
{
    const bool is_exact = mismatches(a) == 0;

    return is_exact != (mismatches(b) == 0) ? is_exact
           : is_exact                       ? a->prior > b->prior
                                            : finding_score(a) > finding_score(b);
}

/* Of equal findings, the one that was tried first stays first. */
static void sort(struct finding *findings, int count_of, bool is_better(const struct finding *, const struct finding *))
{
    for (int i = 1; i < count_of; i++) {
        const struct finding finding = findings[i];
        int j = i;
        for (; j > 0 && is_better(&finding, &findings[j - 1]); j--) {
            findings[j] = findings[j - 1];
        }
        findings[j] = finding;
    }
}

static double prior_of(const struct search *s, const struct finding *finding)
{
    return weigh_prior(s->call, finding->hypotheses, &finding->variant, &finding->part, s->all_hypotheses);
}

static bool fit_layouts(struct search *s)
{
    bool ok = true;

    for (int i = AS_DEFINED + 1; ok && i < LAYOUTS && s->theirs[RESULT_Y].data; i++) {
        ok = layout_fit((enum layout_choice)i, s->call, &s->ours[RESULT_Y], &s->theirs[RESULT_Y], s->diagnosis->row_of,
                        &s->layouts[i], &s->layout_fits[i]);
    }
    return ok;
}

/* Whether the dump has the rows that the other mistake of the pair makes, in another order. */
static bool permute_rows(struct search *s, struct finding *finding)
{
    const size_t rows = s->call->rows;
    struct variant unmoved = finding->variant;
    struct predictor p = {.call = s->call, .variant = &unmoved, .cache = s->cache};
    size_t *found = s->diagnosis->row_of + (s->permuted + 1) * rows;
    size_t *row_of = s->diagnosis->row_of + rows; /* the first order that is the same */
    bool fits = false;

    unmoved.choice[STEP_LAYOUT] = AS_DEFINED;
    if (!s->theirs[RESULT_Y].data) {
        return false;
    }
    if (!layout_fit_rows(s->call, NULL, &p, &s->theirs[RESULT_Y], found, &fits)) {
        s->diagnosis->untried++;
    }
    while (fits && row_of < found && memcmp(row_of, found, rows * sizeof *found) != 0) {
        row_of += rows;
    }
    if (fits && row_of == found && s->permuted == MOST_PERMUTED) {
        s->diagnosis->untried++;
        return false;
    }
    s->permuted += fits && row_of == found;
    finding->variant.layout.row_of = row_of;
    return fits;
}

static double number_in(const struct array results[RESULTS], enum result result, size_t i)
{
    return (double)npuq_ref_from_bits((uint32_t)array_bits(&results[result], i));
}

/* Whether a returned scale falls as ranges grow. */
static bool returns_factor(const struct call *call)
{
    return row_rules[call->options.rule][STEP_FORM] == FORM_FACTOR;
}

/* The differing scale whose row has the least values: it shows bounds best. A row with NaN is the last. */
static size_t find_least(const struct search *s)
{
    const bool is_factor = returns_factor(s->call);
    double least = (double)INFINITY;
    size_t at = 0;

    for (size_t i = 0; i < s->diagnosis->compared[RESULT_SCALE]; i++) {
        const double scale = number_in(s->ours, RESULT_SCALE, i);
        const double value = is_nan(scale) ? DBL_MAX : is_factor ? 1 / scale : scale;
        if (value < least && differs(s, RESULT_SCALE, i) && !is_nan(number_in(s->theirs, RESULT_SCALE, i))) {
            at = i;
            least = value;
        }
    }
    return at;
}

/* Bounds, the bits of a float32, or numbers of columns that a range has of another row: scales grow with them. */
static void widest_range(const struct search *s, const struct variant *variant, uint32_t range[2])
{
    range[0] = variant_has_window(variant) ? 1 : 0;
    range[1] = !variant_has_window(variant)               ? INFINITE
               : s->call->columns < MOST_COLUMNS_OF_OTHER ? (uint32_t)s->call->columns + 1
                                                          : MOST_COLUMNS_OF_OTHER;
}

/* A scale as it grows with the range of its row. NaN is the largest: where a known offset shows it, the scale is a
 * bound. */
static double grown(const struct search *s, double scale, double offset)
{
    if (is_nan(scale) || (is_nan(offset) && isfinite(scale))) {
        return returns_factor(s->call) ? -1 : (double)INFINITY;
    }
    return fmin(scale, DBL_MAX);
}

/* Whether a scale with such a number exceeds that of the dump, or the reverse: 1, 0 or -1. */
static int exceeds(const struct search *s, struct variant *variant, size_t i, uint32_t number)
{
    struct predictor p = {.call = s->call, .variant = variant, .cache = s->cache};

    if (variant_has_window(variant)) {
        variant->window = number;
    } else {
        variant->bound.value = (double)npuq_ref_from_bits(number);
    }
    const double returned = (double)npuq_ref_from_bits((uint32_t)predict(&p, RESULT_SCALE, i, NULL));
    const bool has_offset = variant_has_window(variant) && s->diagnosis->compared[RESULT_OFFSET] > 0;
    const double scale = grown(s, returned, has_offset ? p.token.returned_offset : 0);
    const double theirs =
        grown(s, number_in(s->theirs, RESULT_SCALE, i), has_offset ? number_in(s->theirs, RESULT_OFFSET, i) : 0);
    return (scale > theirs) - (scale < theirs);
}

/* Narrows a range of numbers, from the first to the one before its end, to those that give a scale of the dump. False
 * if none does. A returned factor falls as they grow. */
static bool narrow(const struct search *s, struct variant *variant, size_t i, uint32_t range[2])
{
    uint32_t widest[2];

    widest_range(s, variant, widest);
    const int least = exceeds(s, variant, i, widest[0]);
    const int most = exceeds(s, variant, i, variant_has_window(variant) ? widest[1] - 1 : widest[1]);
    const int sign = least > most ? -1 : 1;
    uint32_t ends[2];

    if (sign * least > 0 || sign * most < 0) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        uint32_t first = range[0];
        uint32_t end = range[1];
        while (first < end) {
            const uint32_t middle = first + (end - first) / 2;
            const int excess = sign * exceeds(s, variant, i, middle);
            if (excess < 0 || (k == 1 && excess == 0)) {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        ends[k] = first;
    }
    if (ends[0] < ends[1]) {
        memcpy(range, ends, sizeof ends);
    }
    return ends[0] < ends[1];
}

/* Narrows the widest range to what the scales of the sample have, from the one that shows it best on; SIZE_MAX: each
 * shows it as well. */
static bool narrow_by_sample(const struct search *s, struct variant *variant, size_t first, uint32_t range[2])
{
    enum { LOOKED_AT_SCALES = 64 };

    widest_range(s, variant, range);
    if (s->diagnosis->differing[RESULT_SCALE] == 0 || (first != SIZE_MAX && !narrow(s, variant, first, range))) {
        return false;
    }
    for (size_t k = 0, seen = 0; k < s->sample_count && seen < LOOKED_AT_SCALES; k++) {
        if (s->sample[k].result == RESULT_SCALE) {
            (void)narrow(s, variant, s->sample[k].index, range);
            seen++;
        }
    }
    return true;
}

/* Finds how many columns of another row the ranges have. */
static bool fit_window(const struct search *s, struct variant *variant)
{
    const size_t own = variant->choice[STEP_BLOCK] == BLOCK_REACHING ? s->call->columns : 0;
    uint32_t range[2];

    /* A range with NaN in it may say nothing: then another row does. */
    for (size_t i = 0; i < s->diagnosis->compared[RESULT_SCALE]; i++) {
        if (differs(s, RESULT_SCALE, i) && narrow_by_sample(s, variant, i, range)) {
            variant->window = part_roundest(own + range[0], own + range[1] - 1) - own;
            return true;
        }
    }
    return false;
}

/* The simplest number from low to high: a power of two, or the one of the fewest decimal digits. */
static struct number simplest_number(float low, float high)
{
    const double middle = ((double)low + (double)high) / 2;
    struct number number = {copysign(exp2(round(log2(fabs(middle)))), middle), 0};

    for (; (float)number.value < low || (float)number.value > high; number.digits++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%.*e", number.digits, middle);
        number.value = strtod(text, NULL);
    }
    return number;
}

/* The one number that all of the dump's scales, or offsets, are. Not a number if they are several. */
static struct number one_number(const struct search *s, enum result result)
{
    const struct array *theirs = &s->theirs[result];
    const bool is_one = s->diagnosis->differing[result] > 0 && array_holds_one_value(theirs);
    const float number = is_one ? npuq_ref_from_bits((uint32_t)array_bits(theirs, 0)) : NAN;

    return isfinite(number) ? simplest_number(number, number) : (struct number){(double)NAN, 0};
}

/* Reads off the dump's scales and offsets what all hypotheses ask of them. */
static void read_scales(struct search *s)
{
    const struct array *ours = &s->ours[RESULT_SCALE];
    uint64_t most = 0;

    for (size_t i = 0; i < s->diagnosis->compared[RESULT_SCALE]; i++) {
        const uint64_t apart =
            dtype_distance(ours->dtype, array_bits(ours, i), array_bits(&s->theirs[RESULT_SCALE], i));
        most = differs(s, RESULT_SCALE, i) && apart > most ? apart : most;
    }
    s->moves_units_only = most == 1;
    s->scale = one_number(s, RESULT_SCALE);
    s->offset = one_number(s, RESULT_OFFSET);
    if (!(s->scale.value > 0) || array_holds_one_value(ours)) {
        s->scale.value = (double)NAN;
    }
}

/* Finds the simplest number that gives the dump's scales. False if none does, or something simpler may: one scale for
 * all, another rounding, or a bound with a name. False, too, if only a long number does, and for one scale: that may be
 * wrong for any reason. */
static bool fit_bound(const struct search *s, struct variant *variant)
{
    enum { SHORT = 3, LONG = 9 };
    const int most = s->diagnosis->differing[RESULT_SCALE] > 1 ? LONG : SHORT;
    const bool is_bound = variant_has_other_bound(variant);
    uint32_t range[2];

    if (!is_nan(s->scale.value) || s->moves_units_only ||
        !narrow_by_sample(s, variant, is_bound ? s->least_at : SIZE_MAX, range) || range[0] == 0) {
        return false;
    }
    const float low = npuq_ref_from_bits(range[0]);
    const float high = npuq_ref_from_bits(range[1] - 1);
    for (int i = 0; i < BOUNDS; i++) {
        if ((float)steps_bounds[i] >= low && (float)steps_bounds[i] <= high) {
            return false;
        }
    }
    variant->bound = simplest_number(low, high);
    return variant->bound.digits <= most;
}

/* Makes a finding of hypotheses. False if they exclude one another, or the dump does not have their layout or bound. */
static bool make_finding(struct search *s, const struct hypothesis *first, const struct hypothesis *second,
                         struct finding *finding)
{
    *finding = (struct finding){.hypotheses = {first, second}};
    if (!hypothesis_add(first, &finding->variant) || (second && !hypothesis_add(second, &finding->variant))) {
        return false;
    }
    const int layout = finding->variant.choice[STEP_LAYOUT];
    bool fits = layout == AS_DEFINED || s->layout_fits[layout];
    if (second && layout == LAYOUT_ROWS_PERMUTED) {
        fits = permute_rows(s, finding);
    } else {
        finding->variant.layout = s->layouts[layout];
    }
    fits = fits && (!variant_has_number(&finding->variant) || fit_bound(s, &finding->variant));
    fits = fits && (!variant_has_window(&finding->variant) || fit_window(s, &finding->variant));
    if (variant_has_one_scale(&finding->variant)) {
        finding->variant.scale = s->scale;
        finding->variant.offset = s->offset;
        fits = fits && !is_nan(s->scale.value);
    }
    finding->prior = fits ? prior_of(s, finding) : 0;
    return fits;
}

static void try_singles(struct search *s)
{
    const struct needs met = needs_met(s->call);

    for (int i = 0; i < hypothesis_count; i++) {
        struct finding *finding = &s->singles[s->single_count];
        if (!hypothesis_applies_to(&hypotheses[i], s->call, &met)) {
            continue;
        }
        /* A hypothesis that explains or changes nothing alone may be half of a pair. */
        if (make_finding(s, &hypotheses[i], NULL, finding)) {
            try_on_sample(s, finding, SIZE_MAX, SIZE_MAX);
            s->single_count++;
        } else if (finding->variant.choice[STEP_LAYOUT] == LAYOUT_ROWS_PERMUTED && s->theirs[RESULT_Y].data) {
            finding->unexplained = s->to_explain;
            s->single_count++;
        }
    }
    sort(s->singles, s->single_count, is_nearer);
}

/* Whether the extremes of a pair differ from those of each half. */
static bool finds_new_extremes(const struct finding *pair, const struct finding *first, const struct finding *second)
{
    return !steps_same_extremes(&pair->variant, &first->variant) &&
           !steps_same_extremes(&pair->variant, &second->variant);
}

/* Two mistakes at once, tried on a part of the sample. */
static bool try_pairs(struct search *s, struct finding **pairs, int *pair_count)
{
    const size_t most = (size_t)s->single_count * (size_t)s->single_count / 2 + 1;
    struct finding right = {.explained = 0};
    size_t *alone = malloc((size_t)s->single_count * sizeof *alone + 1); /* mismatches of each on the same elements */

    *pair_count = 0;
    *pairs = calloc(most, sizeof **pairs);
    if (!alone || !*pairs) {
        free(alone);
        return false;
    }
    try_on_sample(s, &right, PAIR_ELEMENTS, SIZE_MAX); /* a kernel without a mistake leaves all that differs */
    const size_t half = 1 + mismatches(&right) / 2;
    for (int i = 0; i < s->single_count; i++) {
        struct finding single = {.variant = s->singles[i].variant};
        try_on_sample(s, &single, PAIR_ELEMENTS, SIZE_MAX);
        alone[i] = mismatches(&single) > 0 ? mismatches(&single) : 1;
    }
    for (int i = 0; i < s->single_count; i++) {
        for (int j = i + 1; j < s->single_count; j++) {
            const struct hypothesis *a = s->singles[i].hypotheses[0];
            const struct hypothesis *b = s->singles[j].hypotheses[0];
            struct finding *finding = &(*pairs)[*pair_count];
            if (!make_finding(s, a < b ? a : b, a < b ? b : a, finding)) {
                continue;
            }
            if (extremes_cache_visits(s->cache) > MOST_VISITS &&
                finds_new_extremes(finding, &s->singles[i], &s->singles[j])) {
                s->diagnosis->untried++;
            } else {
                /* A pair must have fewer mismatches than each of the two, and explain half of what differs. */
                size_t too_many = alone[i] < alone[j] ? alone[i] : alone[j];
                too_many = too_many < half ? too_many : half;
                try_on_sample(s, finding, PAIR_ELEMENTS, too_many);
                *pair_count += finding->explained > 0 && mismatches(finding) < too_many;
            }
        }
    }
    free(alone);
    sort(*pairs, *pair_count, is_nearer);
    return true;
}

static void rank(struct diagnosis *d)
{
    sort(d->findings, d->count, is_likelier);
    d->first_place = 0;
    for (const struct finding *next = d->findings;
         d->first_place < d->count && mismatches(next) == 0 && next->explained == d->findings[0].explained &&
         next->prior >= d->findings[0].prior - bits_of_rare;
         next++) {
        d->first_place++;
    }
}

/* Puts elements of the dump that a finding does not give behind the sample. Returns their number. */
static size_t find_examples(struct search *s, const struct finding *finding)
{
    struct predictor p = {.call = s->call, .variant = &finding->variant, .cache = s->cache};
    size_t found = 0;

    for (int r = 0; r < RESULTS; r++) {
        const enum result result = (enum result)r;
        const size_t most = found + EXAMPLES / 2; /* of each result */
        size_t size = 1;

        while (size < s->diagnosis->compared[r]) {
            size *= 2;
        }
        for (size_t k = 0; k < size && found < most && found < EXAMPLES; k++) {
            const size_t i = k * 0x9E3779B1U & (size - 1); /* visits each element once */
            if (i < s->diagnosis->compared[r] && !is_given(s, result, i, predict(&p, result, i, NULL))) {
                s->sample[s->sample_count + found++] = (struct element){result, i};
            }
        }
    }
    return found;
}

/* Tries the findings that explain the whole sample on the elements behind the sample. */
static void refute(struct search *s, struct finding *tried, int tried_count, size_t examples)
{
    for (int i = 0; i < tried_count; i++) {
        struct predictor p = {.call = s->call, .variant = &tried[i].variant, .cache = s->cache};
        for (size_t k = 0; k < examples && mismatches(&tried[i]) == 0; k++) {
            const struct element *at = &s->sample[s->sample_count + k];
            count(s, &tried[i], at->result, at->index, predict(&p, at->result, at->index, NULL));
        }
    }
}

/* Puts a tried finding behind those of the diagnosis, and confirms it; null if there is not the memory. */
static struct finding *confirm_next(struct search *s, const struct finding *tried)
{
    struct finding *finding = &s->diagnosis->findings[s->diagnosis->count];

    *finding = *tried;
    return confirm(s, finding) ? finding : NULL;
}

/* Keeps the findings that explain the sample and the dump. For the others, notes what they do not explain. */
static bool keep_exact(struct search *s, struct finding *tried, int tried_count)
{
    struct diagnosis *d = s->diagnosis;
    int refuted = 0;
    int exact = 0;

    for (int i = 0; i < tried_count && d->count < MOST_FINDINGS; i++) {
        if (tried[i].explained == 0 || mismatches(&tried[i]) > 0) {
            continue;
        }
        if (exact == CONFIRMED || refuted == MOST_REFUTED) {
            d->untried += exact < CONFIRMED && tried[i].hypotheses[1];
            continue;
        }
        const struct finding *finding = confirm_next(s, &tried[i]);
        if (!finding) {
            return false;
        }
        if (mismatches(finding) == 0) {
            exact++;
            d->count++;
        } else {
            refuted++;
            tried[i] = *finding;
            refute(s, tried + i + 1, tried_count - i - 1, find_examples(s, finding));
        }
    }
    return true;
}

/* Whether what the finding gets wrong on the sample is half of what differs there, or more. */
static bool leaves_half(const struct finding *finding)
{
    return 2 * mismatches(finding) >= finding->explained + finding->unexplained;
}

/* Keeps the best findings that do not explain the whole sample. */
static bool keep_others(struct search *s, const struct finding *tried, int tried_count)
{
    struct diagnosis *d = s->diagnosis;
    int kept = 0;

    for (int i = 0; i < tried_count && kept < CONFIRMED_PARTLY && d->count < MOST_FINDINGS; i++) {
        if (mismatches(&tried[i]) > 0 && !leaves_half(&tried[i])) {
            if (!confirm_next(s, &tried[i])) {
                return false;
            }
            kept++;
            d->count++;
        }
    }
    return true;
}

/* Confirms the best tried findings on all elements, and adds them to the diagnosis. */
static bool keep_best(struct search *s, struct finding *tried, int tried_count)
{
    if (!keep_exact(s, tried, tried_count)) {
        return false;
    }
    sort(tried, tried_count, is_nearer);
    if (!keep_others(s, tried, tried_count)) {
        return false;
    }
    rank(s->diagnosis);
    return true;
}

/* Looks for a mistake in a part of y: tries mistakes that explain all differences of the sample, but change more. */
static bool try_parts(struct search *s)
{
    struct diagnosis *d = s->diagnosis;
    const struct array *theirs = s->repaired ? s->repaired : s->theirs;
    const bool is_one_row = s->differing.rows[1] - s->differing.rows[0] == 1; /* which may hold any number */
    int most = CONFIRMED;

    for (int i = 0; i < s->single_count && theirs[RESULT_Y].data && most > 0 && d->count < MOST_FINDINGS; i++) {
        struct finding finding = s->singles[i];
        if (finding.unexplained > 0 || finding.explained == 0 || finding.variant.choice[STEP_LAYOUT] != AS_DEFINED ||
            (is_one_row && variant_is_read(&finding.variant))) {
            continue;
        }
        most--;
        if (!part_find(s->call, &finding.variant, s->cache, s->ours, theirs, &finding.part)) {
            return false;
        }
        if (finding.part.kind != PART_ALL) {
            finding.explained = s->to_explain;
            finding.newly_wrong = 0;
            finding.gained = s->bits_to_explain;
            finding.prior = prior_of(s, &finding);
            d->findings[d->count++] = finding;
        }
    }
    rank(d);
    return true;
}

/* ---- the conclusion ---------------------------------------------------------------------------------------------- */

/* Whether the finding outweighs a device without a mistake by so many bits. */
static bool outweighs_device(const struct diagnosis *d, const struct finding *finding, double bits)
{
    return finding->prior - bits >= d->rivals.device;
}

/* Whether the best finding and a further rare mistake are likelier than another cause. */
static bool explains_most(const struct diagnosis *d, const struct finding *finding)
{
    return finding_score(finding) >= bits_of_proof + bits_of_rare &&
           outweighs_device(d, finding, bits_of_proof + bits_of_rare) && d->rivals.other_cause < -bits_of_rare;
}

/* Whether the finding is one mistake in all of y. */
static bool is_single(const struct finding *finding)
{
    return !finding->hypotheses[1] && finding->part.kind == PART_ALL;
}

/* Of a finding that explains a share, the device need make that share only. */
static struct rivals weigh_rivals(const struct search *s, const struct finding *finding)
{
    const struct diagnosis *d = s->diagnosis;
    const double share = (double)finding->explained / (double)(finding->explained + finding->unexplained);
    const size_t left = mismatches(finding);
    struct box all = s->differing;

    box_join(&all, &finding->left);
    return (struct rivals){
        /* A kernel that never wrote explains one value as well; some layouts say just that. */
        .is_sure = !d->is_one_value || (finding->variant.choice[STEP_LAYOUT] != AS_DEFINED && !s->is_one_pair),
        .is_single = is_single(finding),
        .has_rest = s->has_rest,
        .device = share * d->device,
        .other_cause = left > 0 ? weigh_other_cause(left, finding->explained + left, &finding->left, &all) : 0,
    };
}

static enum verdict judge(const struct diagnosis *d)
{
    const struct finding *best = &d->findings[0];
    const bool is_exact = d->first_place > 0;
    const bool is_sure = d->rivals.is_sure;
    /* One mistake in all of y may be what happened, however few elements show it. */
    const bool fits = is_exact && (d->rivals.is_single || (is_sure && finding_score(best) >= -bits_of_rare));

    if (d->all_differing == 0) {
        return VERDICT_EQUAL;
    }
    if (fits && outweighs_device(d, best, bits_of_proof)) {
        return is_sure && finding_score(best) >= bits_of_proof ? VERDICT_EXPLAINED : VERDICT_POSSIBLE;
    }
    if (admission_is_within(&d->admission)) {
        return VERDICT_ADMISSIBLE;
    }
    if (fits && outweighs_device(d, best, bits_of_rare)) {
        return VERDICT_POSSIBLE;
    }
    const bool is_most = d->rivals.has_rest || (!is_exact && d->count > 0 && explains_most(d, best));
    return is_sure && is_most ? VERDICT_PARTLY : VERDICT_NONE;
}

/* Takes elements spread over all of y. */
static bool make_points(const struct search *s, const struct variant *variant)
{
    enum { MOST_POINTS = 1 << 15 };
    struct remainder *remainder = &s->diagnosis->remainder;
    const size_t count = s->call->count;
    const size_t taken = count < MOST_POINTS ? count : MOST_POINTS;
    const size_t step = count / taken;
    struct predictor p = {.call = s->call, .variant = variant, .cache = s->cache};

    remainder->points = malloc(taken * sizeof *remainder->points);
    for (size_t k = 0; remainder->points && k < taken; k++) {
        const size_t i = spread(k * step, k, step);
        struct trace trace = {.unrounded = (double)NAN};
        (void)predict(&p, RESULT_Y, i, &trace);
        remainder->points[remainder->point_count++] = (struct point){i, trace.unrounded};
    }
    return remainder->points != NULL;
}

/* Finds what the variant expects. Without a variant, the results of the library are expected. */
static bool find_remainder(struct search *s, const struct variant *variant)
{
    static const struct variant definition;
    struct diagnosis *d = s->diagnosis;
    struct array *expected = d->remainder.expected;
    const bool is_integer = dtype_is_integer(s->call->options.y_dtype);
    bool ok = true;

    for (int r = 0; r < RESULTS && ok && variant; r++) {
        struct predictor p = {.call = s->call, .variant = variant, .cache = s->cache};
        const enum result result = (enum result)r;
        ok = d->compared[r] == 0 || array_copy(&expected[r], &s->theirs[r]);
        for (size_t i = 0; i < d->compared[r] && ok; i++) {
            const uint64_t bits = predict(&p, result, i, NULL);
            if (!is_given(s, result, i, bits)) {
                array_set_bits(&expected[r], i, bits);
            }
        }
    }
    return ok && (!is_integer || d->differing[RESULT_Y] == 0 || make_points(s, variant ? variant : &definition));
}

enum { LOOKED_AT = 1024 };

/* Finds the element that differs least: it shows the wrong step best. Looks at the first differing elements, with a
 * variant at the ones it explains. False if there is none. */
static bool find_element(const struct search *s, const struct variant *variant, struct element *found)
{
    uint64_t least = UINT64_MAX;
    int seen = 0;

    for (int r = 0; r < RESULTS && seen == 0; r++) {
        struct predictor p = {.call = s->call, .variant = variant, .cache = s->cache};
        const enum result result = (enum result)r;
        for (size_t i = 0; i < s->diagnosis->compared[r] && seen < LOOKED_AT && least > 1; i++) {
            const uint64_t theirs = array_bits(&s->theirs[r], i);
            if (differs(s, result, i) && (!variant || result_is_same(result, predict(&p, result, i, NULL), theirs))) {
                const uint64_t apart = dtype_distance(s->ours[r].dtype, array_bits(&s->ours[r], i), theirs);
                seen++;
                if (apart < least) {
                    least = apart;
                    *found = (struct element){result, i};
                }
            }
        }
    }
    return seen > 0;
}

/* Tries each mistake on all of the dump, then on a part of y. */
static bool search_singles(struct search *s)
{
    s->single_count = 0;
    s->diagnosis->count = 0;
    try_singles(s);
    return keep_best(s, s->singles, s->single_count) && (s->diagnosis->first_place > 0 || try_parts(s));
}

/* Finds out whether a device moves as many quotients as the excused elements need. */
static bool is_rest_of_device(const struct search *s, bool *is)
{
    struct array rest[RESULTS] = {{0}};
    struct array repaired[RESULTS] = {{0}};
    struct admission admission;
    bool ok = true;

    for (int r = 0; r < RESULTS && ok; r++) {
        const enum result result = (enum result)r;
        ok = s->diagnosis->compared[r] == 0 || array_copy(&rest[r], &s->ours[r]);
        for (size_t i = 0; i < s->diagnosis->compared[r] && ok; i++) {
            if (is_excused(s, result, i)) {
                array_set_bits(&rest[r], i, array_bits(&s->theirs[r], i));
            }
        }
    }
    ok = ok && admission_find(s->call, s->ours, rest, repaired, s->executor, &admission);
    *is = ok && admission_is_within(&admission);
    for (int r = 0; r < RESULTS; r++) {
        array_release(&rest[r]);
        array_release(&repaired[r]);
    }
    return ok;
}

/* Tries each mistake on all of the dump, but for elements that the device's division explains. */
static bool search_wrong(struct search *s, const struct array repaired[RESULTS])
{
    s->repaired = repaired;
    survey(s);
    return search_singles(s);
}

/* Looks for a mistake that gives every bit. Without one, asks whether the device's division explains all. If not, looks
 * for a mistake that explains what is wrong. If a device would not have made the rest, or there is none, looks for two
 * mistakes that explain all. */
static bool search(struct search *s, const struct array repaired[RESULTS])
{
    struct diagnosis *d = s->diagnosis;
    struct finding *pairs = NULL;
    int pair_count = 0;

    s->cache = extremes_cache_make(s->call->tokens);
    s->singles = calloc((size_t)hypothesis_count, sizeof *s->singles);
    d->row_of = malloc((MOST_PERMUTED + 2) * (s->call->rows + 1) * sizeof *d->row_of);
    s->least_at = find_least(s);
    read_scales(s);
    bool ok = s->singles && s->cache && d->row_of && make_sample(s) && fit_layouts(s) && search_singles(s);
    if (ok && d->first_place == 0 && !admission_is_within(&d->admission)) {
        const bool has_rest = d->admission.wrong > 0 && d->admission.wrong < d->admission.differing;
        bool is_of_device = true;
        ok = !has_rest || search_wrong(s, repaired);
        if (ok && has_rest && d->first_place > 0) {
            ok = is_rest_of_device(s, &is_of_device);
        }
        if (ok && !is_of_device) {
            s->repaired = NULL;
            survey(s);
            ok = search_singles(s);
        }
        if (ok && d->first_place == 0) {
            ok = try_pairs(s, &pairs, &pair_count) && keep_best(s, pairs, pair_count);
        }
        if (ok && !is_of_device && d->first_place == 0) { /* another cause made the rest */
            ok = search_wrong(s, repaired);
            s->repaired = NULL;
            survey(s);
            d->first_place = 0;
            s->has_rest = d->count > 0;
            d->count = d->count > 0;
            ok = ok && (d->count == 0 || confirm(s, &d->findings[0]));
        }
    }
    free(pairs);
    free(s->singles);
    return ok;
}

bool diagnose(const struct call *call, const struct array ours[RESULTS], const struct array theirs[RESULTS],
              const npuq_executor *executor, struct diagnosis *diagnosis)
{
    struct search s = {.call = call, .ours = ours, .theirs = theirs, .executor = executor, .diagnosis = diagnosis};
    struct array repaired[RESULTS] = {{0}};
    const struct state caller = enter_state();
    bool ok = true;

    *diagnosis = (struct diagnosis){.admission.divides = admission_divides(call->op, &call->options)};
    s.is_one_pair =
        theirs[RESULT_Y].data && array_holds_one_value(&theirs[RESULT_Y]) && array_holds_one_value(&ours[RESULT_Y]);
    survey(&s);
    diagnosis->is_one_value = diagnosis->differing[RESULT_Y] > 1 && array_holds_one_value(&theirs[RESULT_Y]);
    diagnosis->all_differing = s.to_explain;
    diagnosis->worth = s.bits_to_explain;
    diagnosis->device = -(double)INFINITY;
    if (diagnosis->all_differing > 0) {
        ok = admission_find(call, ours, theirs, repaired, executor, &diagnosis->admission);
        if (diagnosis->admission.divides && diagnosis->admission.wrong == 0) {
            diagnosis->device = weigh_device(&diagnosis->admission);
        }
        s.all_hypotheses = weigh_all(call);
        ok = ok && search(&s, repaired);
        if (diagnosis->count > 0) {
            diagnosis->rivals = weigh_rivals(&s, &diagnosis->findings[0]);
        }
        diagnosis->verdict = judge(diagnosis);
        const struct variant *best = diagnosis_is_named(diagnosis) ? &diagnosis->findings[0].variant : NULL;
        const struct variant *shown = best;
        if (diagnosis->verdict == VERDICT_ADMISSIBLE) {
            shown = &diagnosis->moved;
            diagnosis->moved.choice[STEP_QUOTIENT] = QUOTIENT_BELOW;
            if (!find_element(&s, shown, &diagnosis->shown)) {
                diagnosis->moved.choice[STEP_QUOTIENT] = QUOTIENT_ABOVE;
            }
        }
        if (!shown || !find_element(&s, shown, &diagnosis->shown)) {
            (void)find_element(&s, NULL, &diagnosis->shown);
        }
        ok = ok && ((best && diagnosis->first_place > 0) || find_remainder(&s, best));
    }
    for (int r = 0; r < RESULTS; r++) {
        array_release(&repaired[r]);
    }
    free(s.sample);
    extremes_cache_release(s.cache);
    leave_state(&caller);
    return ok;
}

bool diagnosis_is_named(const struct diagnosis *diagnosis)
{
    return diagnosis->verdict == VERDICT_EXPLAINED || diagnosis->verdict == VERDICT_POSSIBLE ||
           diagnosis->verdict == VERDICT_PARTLY;
}

void diagnosis_release(struct diagnosis *diagnosis)
{
    for (int r = 0; r < RESULTS; r++) {
        array_release(&diagnosis->remainder.expected[r]);
    }
    free(diagnosis->remainder.points);
    free(diagnosis->row_of);
    *diagnosis = (struct diagnosis){0};
}
