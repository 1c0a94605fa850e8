/* SPDX-License-Identifier: BSD-3-Clause */
/* How a kernel may differ from the definition: a choice at each step. */
#ifndef NPUQUANT_VARIANT_H
#define NPUQUANT_VARIANT_H

#include <stddef.h>
#include <stdint.h>

/* The steps, in the order of the computation. */
enum step {
    STEP_RULE,           /* enum rule: all steps that a rule decides, where there is no other choice */
    STEP_INPUT,          /* enum input_choice */
    STEP_INPUT_SIGN,     /* enum input_sign_choice */
    STEP_INPUT_LAYOUT,   /* enum layout_choice: one of those before LAYOUTS_OF_X */
    STEP_RELU,           /* enum relu_choice: of x, or of a floating-point result */
    STEP_SCALE_PLACE,    /* enum place_choice: the scale that an element gets */
    STEP_OFFSET_PLACE,   /* enum place_choice */
    STEP_GROUP,          /* enum group_choice */
    STEP_BLOCK,          /* enum block_choice */
    STEP_TOKEN,          /* enum place_choice: the row's parameters, or the block's */
    STEP_RETURNED_TOKEN, /* enum place_choice: those that are returned */
    STEP_SCALE,          /* enum parameter_choice */
    STEP_EXPONENT,       /* enum exponent_choice: what the code of a given scale stands for */
    STEP_OFFSET,         /* enum parameter_choice */
    STEP_SMOOTH,         /* enum smooth_choice */
    STEP_PRECISION,      /* enum type_choice: that v and a row's parameters are computed in */
    STEP_RANGE,          /* enum range_choice */
    STEP_UNIT,           /* enum unit_choice: the range divided by the number of steps */
    STEP_LEAST,          /* enum least_choice: the lower bound of a scale */
    STEP_OTHER_SCALE,    /* enum other_scale_choice: what takes the place of a scale */
    STEP_TOKEN_OFFSET,   /* enum token_offset_choice */
    STEP_OFFSET_SIGN,    /* enum offset_sign_choice: of the offset that is returned */
    STEP_FORM,           /* enum form_choice: the scale that dynamic_quant returns */
    STEP_CODE,           /* enum code_choice: how microscaling finds the code of a scale */
    STEP_SMALL_GROUPS,   /* 1 + npuq_ref_small_groups: when microscaling makes small groups zeros */
    STEP_BAD_GROUPS,     /* enum bad_choice: what microscaling makes of groups with NaN or infinities */
    STEP_TOKEN_TYPE,     /* enum type_choice: that the row's parameters are rounded to */
    STEP_RETURNED,       /* enum type_choice, returned_choice: what they are when they are returned, not before */
    STEP_SCALING,        /* enum scaling_choice */
    STEP_QUOTIENT,       /* enum quotient_choice: of the device's vector unit; the choice of no hypothesis */
    STEP_PRODUCT,        /* enum type_choice, product_choice: of x times or by the scale */
    STEP_SUM,            /* enum sum_choice */
    STEP_ORDER,          /* enum order_choice */
    STEP_BIAS_PLACE,     /* enum place_choice */
    STEP_BIAS,           /* enum bias_choice */
    STEP_ROUNDING,       /* enum rounding_choice */
    STEP_SATURATION,     /* enum saturation_choice */
    STEP_NAN,            /* enum nan_choice */
    STEP_SUBNORMALS,     /* enum subnormal_choice */
    STEP_SMALL_TYPE,     /* enum small_type_choice: the small float that is made */
    STEP_RESULT,         /* enum result_choice: the conversion to a floating-point type, the order of bytes */
    STEP_WORD,           /* enum word_choice: of trans_quant_param, and how requant reads one */
    STEP_LAYOUT,         /* enum layout_choice */
    STEPS
};

/* Everywhere 0 is the definition. */
enum { AS_DEFINED = 0 };

/* In the steps that read an operand: READ_AS + DTYPE_..., the type that it is taken for. */
enum { READ_AS = 32 };

enum parameter_choice {
    PARAMETER_FLOAT16 = 1,
    PARAMETER_BFLOAT16,
    PARAMETER_INTEGER,
    PARAMETER_LEFT_OUT,
    PARAMETER_NEGATED,
    PARAMETER_UNSIGNED,
    PARAMETER_TF32,
};
enum input_choice {
    INPUT_FLOAT16 = PARAMETER_FLOAT16,
    INPUT_BFLOAT16 = PARAMETER_BFLOAT16,
    INPUT_TF32 = PARAMETER_TF32,
    INPUT_TRUNCATED, /* int32 to float32, towards zero */
    INPUT_WRAPS_16,  /* int32 in 16 bits */
    INPUT_WRAPS_24,
    INPUT_SATURATES_16,
    INPUT_FNUZ, /* small floats: the exponent's bias is one more, and the code of -0 is the only NaN */
    INPUT_WITHOUT_SPECIALS,
    INPUT_WITHOUT_SUBNORMALS,
};
/* The code of 2^-127 is 0, that of 1 is 127, and 255 is NaN. */
enum exponent_choice {
    EXPONENT_SHIFTED = 1, /* the code as the exponent field of a float32: 0 at 0, infinite at 255 */
    EXPONENT_ZERO,        /* 0 at 0 */
    EXPONENT_INFINITE,    /* infinite at 255 */
    EXPONENT_NUMBER,      /* 2^128 at 255, whose products may be finite */
    EXPONENT_SIGNED,      /* of an int8 */
    EXPONENT_NEGATIVE,    /* an int8 shifted to the exponent field: the sign is set from 128 on */
    EXPONENT_UNBIASED,    /* 2^code */
    EXPONENT_SIGNED_UNBIASED,
    EXPONENT_BIAS_126,
    EXPONENT_BIAS_128,
    EXPONENT_NONE, /* 1, whatever the code */
};
enum input_sign_choice { INPUT_UNSIGNED_INT4 = 1, INPUT_OFFSET_BINARY, INPUT_BORROWED };
enum relu_choice { RELU_APPLIED = 1 };
/* A number of columns, rows or the like: a multiple of SIZED and the exponent of the power of two. */
enum { SIZED = 16 };
enum place_choice {
    PLACE_NEXT = 1,
    PLACE_PREVIOUS,
    PLACE_FIRST,
    PLACE_NEXT_BUT_LAST, /* the last keeps its own */
    PLACE_PREVIOUS_BUT_FIRST,
    PLACE_OTHER_AXIS,
    PLACE_CHANNELS_FIRST,   /* x taken for [N, C, ...]; its scales belong to the last dimension */
    PLACE_CHANNELS_LAST,    /* x taken for [..., C]; its scales belong to another dimension */
    PLACE_OF_DIMENSION,     /* 0; then the others */
    PLACE_OF_FIRST = SIZED, /* so many, over and over */
    /* of scales of groups, two in a pair */
    PLACE_IN_PAIR = 2 * SIZED, /* the other one of its pair */
    PLACE_IN_TILES,            /* of 128 rows and 4 groups */
    PLACE_WITHOUT_PADDING,     /* an odd number of groups without one that completes the last pair */
    PLACE_NOT_PAIRED,          /* groups along an axis that is not the last, each with its own place */
    PLACE_PLANES,              /* the first ones of all pairs, then the second ones */
    PLACE_PLANES_OF_LINE,      /* the same for each line */
    PLACE_GROUPS_FIRST,        /* the first group of each line, then the second one of each, and so on */
    PLACE_LINES_FIRST,         /* all groups of a line, along whatever axis, then those of the next */
};
enum group_choice {
    GROUP_LATE = 1,
    GROUP_EARLY,
    GROUP_FIRST,
    GROUP_LAST,
    GROUP_NEXT,
    GROUP_COUNTS,
    GROUP_WITHOUT_EMPTY,
    GROUP_WORDS, /* of group_index, half an int64 each */
};
/* The elements that share a scale: a block of another length, the tensor, a column, a run of columns, rows, or a row.
 * The extremes of a row may come from its first or last columns only, or from the rows before, too. */
enum block_choice {
    BLOCK_HALF = 1,
    BLOCK_ROW,
    BLOCK_TENSOR,
    BLOCK_COLUMN,
    BLOCK_RUNNING,
    BLOCK_REACHING, /* a row, and the first columns of the next one */
    BLOCK_EARLY,    /* a row, and the last columns of the one before */
    BLOCK_ONE_ROW,  /* of a block of several */
    BLOCK_RUNS = SIZED,
    BLOCK_FIRST = 2 * SIZED,
    BLOCK_LAST = 3 * SIZED,
    BLOCK_ROWS = 4 * SIZED,
};
enum smooth_choice {
    SMOOTH_LEFT_OUT = 1,
    SMOOTH_DIVIDES,
    SMOOTH_AFTER_RANGE,
    SMOOTH_FLOAT16,
    SMOOTH_BFLOAT16,
    SMOOTH_IN_RANGE_ONLY,
};
enum range_choice {
    RANGE_SYMMETRIC = 1,
    RANGE_WITH_ZERO,
    RANGE_IGNORES_NAN,
    RANGE_WITHOUT_SIGN,
    RANGE_ONE_SIDED, /* max(-lo / 128, hi / 127) */
    RANGE_SIGNED,    /* the extreme with its sign, which becomes the least integer */
    RANGE_CLIPPED,   /* a number times the range */
};
enum unit_choice {
    UNIT_RECIPROCAL = 1,
    UNIT_ONE_LESS,
    UNIT_ONE_MORE,
    UNIT_OTHER_FACTOR, /* one division for two roundings, and the reverse */
    UNIT_HALF_MORE,
    UNIT_OF_TYPE, /* the largest value of y's type for dst_type_max */
    UNIT_LESSER,  /* 240 for 448, or 49152 for 57344 */
};
/* Bounds that programs have, and any other. */
enum bound { BOUND_1E_12, BOUND_1E_10, BOUND_1E_8, BOUND_1E_6, BOUND_1E_5, BOUND_EPSILON, BOUND_OF_DUMP, BOUNDS };
enum bound_kind { BOUND_OF_SCALE, BOUND_OF_LARGEST, ADDED_TO_SCALE, ADDED_TO_LARGEST, BOUND_KINDS };
enum least_choice {
    LEAST_NONE = 1,
    LEAST_ONE_FOR_ZERO,
    LEAST_MIN_SCALE,
    LEAST_M_1E_4, /* of the largest magnitude, in microscaling */
    LEAST_BOUNDS, /* of each kind of bound one for each bound */
#define LEAST_OF(kind, bound) (LEAST_BOUNDS + (int)(kind) * (int)BOUNDS + (int)(bound))
    LEAST_END = LEAST_BOUNDS + BOUND_KINDS * BOUNDS,
};
enum other_scale_choice {
    OTHER_SCALE_UP = 1,  /* a power of two, rounded up */
    OTHER_SCALE_DOWN,    /* or down */
    OTHER_SCALE_NEAREST, /* or to the nearest exponent */
    OTHER_SCALE_NEARER,  /* or to the nearest value */
    OTHER_SCALE_OF_DUMP, /* one number for all */
    OTHER_SCALE_ONLY_RETURNED = 16,
};
enum token_offset_choice {
    TOKEN_OFFSET_INTEGER = 1,
    TOKEN_OFFSET_FROM_LOW,
    TOKEN_OFFSET_FROM_LOW_INTEGER,
    TOKEN_OFFSET_TRUNCATED,
    TOKEN_OFFSET_UNSIGNED,      /* an integer from 0 on, then shifted to y's type */
    TOKEN_OFFSET_SMALLER_ERROR, /* an integer, from the end at which it is rounded less */
};
enum offset_sign_choice { OFFSET_NEGATED = 1 };
enum form_choice { FORM_OTHER = 1, FORM_DIVIDED, FORM_LARGEST, FORM_FACTOR, FORM_PRODUCT };
/* Rules of other programs for the codes of scales: a is the largest magnitude of a group. */
enum code_choice {
    CODE_FLOOR = 1, /* the exponent of a, less that of the type's largest value: scale_alg 0 */
    CODE_RCEIL,     /* the next power of two from a over the largest value on: scale_alg 1, and 2 to float4_e2m1 */
    CODE_HALF_UP,   /* FLOOR of a with the type's fraction, halves up */
    CODE_HALF_DOWN, /* the same, halves down: scale_alg 2 with dst_type_max 7 */
    CODE_CEIL,      /* the exponent of the next power of two from a on */
    CODE_NEAREST,   /* the nearest logarithm of a over the largest value */
    CODE_FLOOR_PLUS_1,
    CODE_ROUND_SCALE, /* of npu_moe_init_routing_v2 */
    CODE_EMAX_LESS,   /* FLOOR with one less for the exponent of the largest value */
    CODE_EMAX_MORE,
};
enum bad_choice { BAD_ZEROS = 1, BAD_NAN, BAD_INFINITY_IS_LARGE }; /* the last: S is FE, and not FF */
enum type_choice { TYPE_FLOAT16 = 1, TYPE_BFLOAT16, TYPE_FLOAT64 };
enum returned_choice { RETURNED_WITHOUT_BIAS = TYPE_FLOAT64 + 1, RETURNED_INVERSE }; /* of microscaling */
enum product_choice {
    PRODUCT_FIRST_FLOAT16 = TYPE_FLOAT64 + 1, /* dequant: the first of two */
    PRODUCT_FIRST_BFLOAT16,
    PRODUCT_FLOAT16_TRUNCATED, /* towards zero */
    PRODUCT_FLOAT32,
    PRODUCT_FIXED_POINT, /* requant: an integer, rounded after a multiplication by 31 bits and after a shift */
};
enum scaling_choice {
    SCALING_RECIPROCAL = 1, /* multiplies by 1 / scale */
    SCALING_DIVISION,       /* divides by the scale, or by 1 / scale where the definition multiplies */
    SCALING_OPPOSITE,       /* multiplies for divides, and the reverse */
    SCALING_DMAX_FIRST,     /* multiplies by DMAX, then divides by m */
    SCALING_SCALES_FIRST,   /* multiplies both scales of dequant first */
    SCALING_ROW_FIRST,      /* the activation scale before the weight scale */
    SCALING_NO_ROW,         /* leaves the activation scale out */
    SCALING_FACTOR,         /* multiplies by DMAX / m */
    SCALING_INVERSE_OR_0,   /* multiplies by 1 / scale, or by 0 if the scale is 0 */
};
enum quotient_choice { QUOTIENT_BELOW = 1, QUOTIENT_ABOVE }; /* the float32 beside the IEEE quotient */
enum sum_choice { SUM_FLOAT16 = TYPE_FLOAT16, SUM_BFLOAT16, SUM_FLOAT64, SUM_FUSED };
enum order_choice {
    ORDER_ROUND_FIRST = 1, /* rounds, then adds the offset */
    ORDER_CLAMP_FIRST,     /* rounds and clamps, then adds the offset, and clamps again */
    ORDER_SCALE_FIRST,     /* anti_quant: scales, then adds the offset */
    ORDER_DISTRIBUTED,     /* anti_quant: x * scale + offset * scale, fused */
    ORDER_TWO_PRODUCTS,    /* the same with each product rounded */
    ORDER_ONE_CLAMP,       /* requant: no clamp before the offset */
    ORDER_OFFSET_FIRST,    /* requant: adds the offset before rounding */
    ORDER_ADD_FIRST,       /* quantize, group_quant: adds the offset to x, then scales */
};
enum bias_choice { BIAS_LEFT_OUT = 1, BIAS_AFTER_SCALING, BIAS_BEFORE_ROW_SCALE, BIAS_SATURATES, BIAS_FLOAT };
enum rounding_choice {
    ROUND_HALF_AWAY = 1,
    ROUND_HALF_UP,
    ROUND_HALF_DOWN,
    ROUND_FLOOR,
    ROUND_CEILING,
    ROUND_TRUNCATE,
    ROUND_HALF_ADDED_UP, /* floor(t + 0.5), of which the sum is rounded, too */
    ROUND_HALF_ADDED_AWAY,
    ROUND_HALF_EVEN,
    ROUND_HALF_ADDED_8, /* floor(t + 8.5) - 8 */
    ROUND_HALF_TO_ZERO,
};
enum saturation_choice {
    SATURATE_SYMMETRIC = 1,
    SATURATE_WRAP,
    SATURATE_UNSIGNED,
    SATURATE_INDEFINITE,
    SATURATE_INT8,       /* trans_quant_param: the offset */
    SATURATE_HIGH,       /* only at the high end */
    SATURATE_WRAPPED_16, /* what remains of the integer in 16 bits */
    SATURATE_WRAPPED_24,
    SATURATE_WRAPPED_32,
    SATURATE_NONE,   /* of small floats: what is beyond becomes infinite, or NaN */
    SATURATE_LESSER, /* to 240 for 448, or 49152 for 57344 */
};
enum nan_choice { NAN_LOW = 1, NAN_HIGH, NAN_NEGATIVE, NAN_BEFORE_OFFSET, NAN_KEPT };
enum subnormal_choice { SUBNORMAL_INPUTS = 1, SUBNORMAL_RESULTS = 2, SUBNORMAL_ALL = 3, SUBNORMAL_OF_SMALL = 4 };
enum small_type_choice {
    SMALL_TYPE_OTHER = 1, /* the other one with as many bits */
    SMALL_TYPE_FNUZ,      /* the one whose bias is 1 more, and whose -0 is NaN */
};
enum result_choice {
    RESULT_TRUNCATED = 1,
    RESULT_HALF_AWAY,
    RESULT_FINITE,
    RESULT_FLUSHED,
    RESULT_THROUGH_FLOAT16,
    RESULT_THROUGH_BFLOAT16,
    RESULT_THROUGH_FLOAT32,
    RESULT_BYTES_SWAPPED,
    RESULT_HALVES_SWAPPED, /* of a word */
    RESULT_OFFSET_BINARY,  /* the top bit is the other */
    RESULT_MAGNITUDE,      /* of an integer */
    RESULT_SIGN_MAGNITUDE,
    RESULT_ONES_COMPLEMENT,
    RESULT_NEGATED,
    RESULT_ZERO_SIGN,   /* of small floats: zero loses its sign, or in the type that has no -0 keeps it */
    RESULT_SHIFT_WRAPS, /* a shift by 32 places or more is one by the low five bits of their number */
};
enum word_choice {
    WORD_OTHER_ROUND_MODE = 1,
    WORD_ALL_BITS,
    WORD_NO_FLAG,
};
enum layout_choice {
    LAYOUT_NIBBLES_SWAPPED = 1,
    LAYOUT_WORD_REVERSED,
    LAYOUT_AWQ,
    LAYOUT_HALVES_OF_8,
    LAYOUT_HALVES_OF_32,
    LAYOUT_FRACTAL_NZ,
    LAYOUTS_OF_X,
    LAYOUT_BYTES_SWAPPED = LAYOUTS_OF_X,
    LAYOUT_TRANSPOSED,
    LAYOUT_TAIL_UNTOUCHED,
    LAYOUT_ROWS_UNTOUCHED,
    LAYOUT_ROWS_PERMUTED,
    LAYOUT_ROWS_OVERWRITTEN, /* the begin of each but the first */
    LAYOUT_WORDS_UNMASKED,   /* int4 that change the others of their word, or of their byte */
    LAYOUT_WORDS_ADDED,
    LAYOUT_BYTES_UNMASKED,
    LAYOUT_BYTES_ADDED,
    LAYOUT_BYTES_SATURATED,
    LAYOUTS
};

/* Where the values of y really are: found in a dump, unlike the other choices. */
struct layout {
    size_t from;    /* the first column or row that is untouched; the first column that is not overwritten */
    uint64_t fill;  /* what other elements hold */
    size_t *row_of; /* for each row of the dump the row of y */
};

/* A number that is found in a dump, too. */
struct number {
    double value;
    int digits; /* how many say it; 0 is a power of two */
};

struct variant {
    unsigned char choice[STEPS];
    struct layout layout;
    size_t window;        /* columns of another row: of BLOCK_REACHING and BLOCK_EARLY */
    struct number bound;  /* of BOUND_OF_DUMP or RANGE_CLIPPED */
    struct number scale;  /* of OTHER_SCALE_OF_DUMP */
    struct number offset; /* that goes with it; not a number if each row has its own */
};

/* Whether int4 of y change others; then an element is all 32 bits of an integer before it is packed. */
static inline int variant_packs(const struct variant *variant)
{
    return variant->choice[STEP_LAYOUT] >= LAYOUT_WORDS_UNMASKED;
}

/* Whether the bound is any number. */
static inline int variant_has_other_bound(const struct variant *variant)
{
    const int how = variant->choice[STEP_LEAST];

    return how >= LEAST_BOUNDS && (how - LEAST_BOUNDS) % BOUNDS == BOUND_OF_DUMP;
}

/* Whether elements that are equal in all that decides them may differ: the variant is about places. That nothing was
 * written is not. */
static inline int variant_is_of_places(const struct variant *variant)
{
    const unsigned char *choice = variant->choice;
    const int layout = choice[STEP_LAYOUT];
    const int is_untouched = layout == LAYOUT_TAIL_UNTOUCHED || layout == LAYOUT_ROWS_UNTOUCHED;

    return choice[STEP_INPUT_LAYOUT] || choice[STEP_SCALE_PLACE] || choice[STEP_OFFSET_PLACE] || choice[STEP_GROUP] ||
           choice[STEP_BLOCK] || choice[STEP_TOKEN] || choice[STEP_RETURNED_TOKEN] || choice[STEP_BIAS_PLACE] ||
           (is_untouched ? variant->layout.from > 0 : layout);
}

/* Whether ranges have columns of another row. */
static inline int variant_has_window(const struct variant *variant)
{
    return variant->choice[STEP_BLOCK] == BLOCK_REACHING || variant->choice[STEP_BLOCK] == BLOCK_EARLY;
}

/* Whether one scale of the dump takes the place of all. */
static inline int variant_has_one_scale(const struct variant *variant)
{
    return variant->choice[STEP_OTHER_SCALE] % OTHER_SCALE_ONLY_RETURNED == OTHER_SCALE_OF_DUMP;
}

/* Whether some number is found in a dump. */
static inline int variant_has_number(const struct variant *variant)
{
    return variant_has_other_bound(variant) || variant->choice[STEP_RANGE] == RANGE_CLIPPED;
}

/* Whether a number of the variant is read off the dump. */
static inline int variant_is_read(const struct variant *variant)
{
    return variant_has_number(variant) || variant_has_window(variant) || variant_has_one_scale(variant);
}

/* The number in a choice; 0 if there is none. */
static inline size_t variant_size(int choice)
{
    return choice < SIZED ? 0 : (size_t)1 << choice % SIZED;
}

#endif
