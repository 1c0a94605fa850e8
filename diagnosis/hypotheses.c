/* SPDX-License-Identifier: BSD-3-Clause */
#include "hypotheses.h"

#include "steps.h"

#include <math.h>
#include <string.h>

/* More facts of operators, for OPERATORS_WITH(). */
#define INPUT_SMOOTH(name, NAME, EXECUTOR)      HAS(NAME, OPERANDS, OPERAND_SMOOTH)
#define INPUT_GROUPS(name, NAME, EXECUTOR)      HAS(NAME, OPERANDS, OPERAND_GROUPS)
#define OPTION_AXIS(name, NAME, EXECUTOR)       HAS(NAME, OPTIONS, NUMBER_OF_AXIS)
#define OPTION_RULE(name, NAME, EXECUTOR)       HAS(NAME, OPTIONS, NUMBER_OF_RULE)
#define OPTION_SCALE_FORM(name, NAME, EXECUTOR) HAS(NAME, OPTIONS, NUMBER_OF_SCALE_FORM)
#define OPTION_DIV_MODE(name, NAME, EXECUTOR)   HAS(NAME, OPTIONS, NUMBER_OF_DIV_MODE)
#define OUTPUT_INT4(name, NAME, EXECUTOR)       HAS(NAME, OUTPUTS, DTYPE_QUINT4X2)
#define INPUT_ROW_SCALE(name, NAME, EXECUTOR)   HAS(NAME, OPERANDS, OPERAND_ROW_SCALE)
#define INPUT_SCALE(name, NAME, EXECUTOR)       HAS(NAME, OPERANDS, OPERAND_SCALE)
#define INPUT_OFFSET(name, NAME, EXECUTOR)      HAS(NAME, OPERANDS, OPERAND_OFFSET)
#define OUTPUT_FLOAT8(name, NAME, EXECUTOR)     HAS(NAME, OUTPUTS, DTYPE_HIFLOAT8)

enum {
    ALL = (1 << NUMBER_OF_OPERATORS) - 1,
    WITH_SCALES = FROM_FLOATS & ~FINDS_SCALES,
    AFFINE = FROM_FLOATS & ~SYMMETRIC, /* with an offset */
    DYNAMIC = OPERATORS_WITH(INPUT_SMOOTH),
    IN_GROUPS = OPERATORS_WITH(INPUT_GROUPS),
    BY_AXIS = OPERATORS_WITH(OPTION_AXIS) & ~MX,
    BY_RULE = OPERATORS_WITH(OPTION_RULE),
    BY_ROWS = FINDS_SCALES & ~BY_BLOCK,
    BLOCK_TO_INT8 = BY_BLOCK & TO_INT8,
    BLOCK_TO_FLOAT8 = BY_BLOCK & SCALED_TO_FLOAT8,
    NOT_BLOCK_TO_FLOAT8 = SYMMETRIC & ~BLOCK_TO_FLOAT8, /* which divides by m / DMAX, and has no subnormals */
    BY_ROW_FACTOR = SYMMETRIC & DYNAMIC & TO_INT8,      /* DMAX / m */
    IN_TWO_FORMS = OPERATORS_WITH(OPTION_SCALE_FORM),
    DIVIDES = OPERATORS_WITH(OPTION_DIV_MODE),
    TO_INT4 = OPERATORS_WITH(OUTPUT_INT4),
    TO_FLOAT8 = OPERATORS_WITH(OUTPUT_FLOAT8),
    TO_SMALL = TO_FLOAT8 | MICROSCALES,
    BY_COLUMNS = FROM_NARROW | FROM_SUMS,
    TO_FLOATS = BY_COLUMNS | READS_GROUPS,
    ROUNDS = TO_INT8 | MAKES_WORDS,
    SCALED_SUMS = FROM_SUMS & ~READS_WORDS,
    ROW_SCALED = OPERATORS_WITH(INPUT_ROW_SCALE),
    GIVEN_SCALES = OPERATORS_WITH(INPUT_SCALE) & ~READS_WORDS & ~READS_GROUPS, /* as numbers */
    GIVEN_OFFSETS = OPERATORS_WITH(INPUT_OFFSET),
};

#define IN_BRACES(...)                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* What a call must have for it: members of struct needs. */
#define NO_NEEDS                   IN_BRACES(0)
#define NEEDS(need)                IN_BRACES(.need = true)
#define NEEDS_2(one, other)        IN_BRACES(.one = true, .other = true)
#define NEEDS_3(one, other, third) IN_BRACES(.one = true, .other = true, .third = true)

/* The choices that a hypothesis makes: a step, what is done there, and so on. */
#define DOES(...) IN_BRACES(__VA_ARGS__)

/* What kernels do, and the advice. */
#define CLAMPS_SYMMETRICALLY "clamps to a symmetric range, -127 (int4: -7) at the low end", "Clamp to -128 (int4: -8)."
#define DOES_NOT_CLAMP                                                                                                 \
    "does not clamp: the low bits of the int32 are stored", "Clamp before the conversion to the narrow type."
#define CONVERTS_FIRST                                                                                                 \
    "makes NaN and everything beyond int32 the low end, as x86's conversion to int32 does",                            \
        "Clamp in float32 before the conversion, and make NaN 0."
#define IN_BITS(size)                                                                                                  \
    "keeps " size " bits of a rounded value before it clamps: a larger one wraps",                                     \
        "Clamp before the value is an integer."
#define SUMS_IN_BITS(name, size, choice)                                                                               \
    {                                                                                                                  \
        name, RARE, FROM_SUMS, Y_ANY, NO_NEEDS, DOES(STEP_INPUT, choice), "keeps " size " of the sums of products",    \
            "Sums are int32."                                                                                          \
    }
#define PACK_IN_ORDER       "Element 8k + i of a row is in bits 4i to 4i + 3 of word k."
#define TWOS_COMPLEMENT     "A negative integer is stored in two's complement."
#define MASK                "Take the lowest four bits of an element before it is shifted."
#define BEGIN_ANEW          "Begin anew with each row."
#define JOIN_TILES          "Join the extremes of all tiles of a row before its scale is computed."
#define RAISES_SCALE(bound) "takes " bound " if the scale is less, or NaN, and scales x by that"
#define OTHER_BOUND         "The bound is 1e-12, or none in the symmetric operators."
#define BOUND(name, how_common, operators, needs, kind, bound, what)                                                   \
    {                                                                                                                  \
        name, how_common, operators, Y_ANY, needs, DOES(STEP_LEAST, LEAST_OF(kind, bound)), what, OTHER_BOUND          \
    }
/* Of the scale and of the largest |v|, and added to them. On one row the last looks like a device's moved quotient. */
#define BOUNDS_OF(name, how_common, operators, bound, text)                                                            \
    BOUND("least-" name, how_common, operators, NO_NEEDS, BOUND_OF_SCALE, bound, RAISES_SCALE(text)),                  \
        BOUND("least-m-" name, how_common, SYMMETRIC, NEEDS(other_scaling), BOUND_OF_LARGEST, bound,                   \
              "takes " text " for the largest |v| if the largest |v| is less, but not if it is NaN"),                  \
        BOUND("added-" name, RARE, FINDS_SCALES, NO_NEEDS, ADDED_TO_SCALE, bound,                                      \
              "adds " text " to the scale and has no other lower bound, and scales x by the sum"),                     \
        BOUND("added-m-" name, RARE, SYMMETRIC, NEEDS_2(row_scales, rounded_inverse), ADDED_TO_LARGEST, bound,         \
              "adds " text " to the largest |v|")
#define FIND_SCALES "Find each scale in the data, or compare with the operator that takes a given scale."
#define POWERS_OF_2(name, how, where)                                                                                  \
    {"scale-power-of-2-" name,                                                                                         \
     USUAL,                                                                                                            \
     FINDS_SCALES,                                                                                                     \
     Y_ANY,                                                                                                            \
     NO_NEEDS,                                                                                                         \
     DOES(STEP_OTHER_SCALE, OTHER_SCALE_##how),                                                                        \
     "rounds each scale " where,                                                                                       \
     "Use the scale as it is computed."},                                                                              \
    {                                                                                                                  \
        "returned-power-of-2-" name, RARE, FINDS_SCALES, Y_ANY, NO_NEEDS,                                              \
            DOES(STEP_OTHER_SCALE, OTHER_SCALE_ONLY_RETURNED + OTHER_SCALE_##how),                                     \
            "returns each scale rounded " where ", but uses it as it is", "Return the scale that y has."               \
    }
#define NEXT(unit)             "the next " unit ", and for the last one that of the first"
#define BEFORE(unit)           "the " unit " before, and for the first one that of the last"
#define NEXT_BUT_LAST(unit)    "the next " unit "; the last one keeps its own"
#define BEFORE_BUT_FIRST(unit) "the " unit " before; the first one keeps its own"
#define WHICH_IS_THERE         "Check whose scale is in the register when a row or block begins, and when it ends."
#define RETURNED_AND_RANGE(name, place, operators, need, what)                                                         \
    {"returned-of-" name,                                                                                              \
     RARE,                                                                                                             \
     operators,                                                                                                        \
     Y_ANY,                                                                                                            \
     NEEDS(need),                                                                                                      \
     DOES(STEP_RETURNED_TOKEN, place),                                                                                 \
     "uses the right scale, but returns that of " what,                                                                \
     WHICH_IS_THERE},                                                                                                  \
    {                                                                                                                  \
        "range-of-" name, RARE, operators, Y_ANY, NEEDS(need), DOES(STEP_TOKEN, place, STEP_RETURNED_TOKEN, place),    \
            "uses and returns the scale of " what, WHICH_IS_THERE                                                      \
    }
#define SCALE_KEPT(name, place, operators, need, what)                                                                 \
    {                                                                                                                  \
        "scale-of-" name, USUAL, operators, Y_ANY, NEEDS(need), DOES(STEP_TOKEN, place), "takes the scale of " what,   \
            WHICH_IS_THERE                                                                                             \
    }
#define RANGE_OF(place, size, choice, what)                                                                            \
    {                                                                                                                  \
        "range-of-" place size, RARE, BY_ROWS, Y_ANY, NEEDS(row_ranges), DOES(STEP_BLOCK, choice), what, JOIN_TILES    \
    }
#define RANGES_OF(size, log2)                                                                                          \
    RANGE_OF("", size, BLOCK_RUNS + (log2),                                                                            \
             "takes a range for each run of " size " columns, and returns that of a row's first run"),                 \
        RANGE_OF("first-", size, BLOCK_FIRST + (log2), "takes the range of the first " size " columns of a row"),      \
        RANGE_OF("last-", size, BLOCK_LAST + (log2), "takes the range of the last " size " columns of a row")
#define FIRST_REUSED(size, log2)                                                                                       \
    {                                                                                                                  \
        "first-" size "-reused", RARE, WITH_SCALES | DYNAMIC | TO_FLOATS, Y_ANY, NEEDS(scales),                        \
            DOES(STEP_SCALE_PLACE, PLACE_OF_FIRST + (log2), STEP_OFFSET_PLACE, PLACE_OF_FIRST + (log2)),               \
            "takes the first " size " scales over and over, and the offsets that go with them",                        \
            "Load the next scales with each tile."                                                                     \
    }
#define BY_DIMENSION(number)                                                                                           \
    {                                                                                                                  \
        "by-dimension-" #number, RARE, BY_AXIS | BY_COLUMNS, Y_ANY, NEEDS_2(scales, rows),                             \
            DOES(STEP_SCALE_PLACE, PLACE_OF_DIMENSION + number, STEP_OFFSET_PLACE, PLACE_OF_DIMENSION + number),       \
            "takes scales and offsets by dimension " #number " of x, which they do not belong to",                     \
            "Check the dimension that scales run along: of some operators axis says it, of others it is the last."     \
    }
/* An operand taken for another type: of its width, or half of it. */
#define READS(operand, words, operators, step, type, name)                                                             \
    {                                                                                                                  \
        operand "-read-as-" name, USUAL, operators, Y_ANY, NO_NEEDS, DOES(step, READ_AS + DTYPE_##type),               \
            "reads the memory of " words " as " name, "Check the type of " words ": in a .npy file bfloat16 is u2."    \
    }
/* A float taken for another type. */
#define READS_FLOATS(operand, words, operators, step)                                                                  \
    READS(operand, words, operators, step, FLOAT16, "float16"),                                                        \
        READS(operand, words, operators, step, BFLOAT16, "bfloat16"),                                                  \
        READS(operand, words, operators, step, INT32, "int32")
#define DIVIDES_BY_BOUNDED(bound)                                                                                      \
    STEP_LEAST, LEAST_OF(BOUND_OF_LARGEST, bound), STEP_FORM, FORM_DIVIDED, STEP_SCALING, SCALING_DIVISION
#define SMOOTHQUANT(type) DOES(DIVIDES_BY_BOUNDED(BOUND_1E_5), STEP_PRECISION, TYPE_##type, STEP_PRODUCT, TYPE_##type)
#define DIVIDED_M(name, how_common, bound, text)                                                                       \
    {                                                                                                                  \
        name, how_common, NOT_BLOCK_TO_FLOAT8, Y_ANY, NEEDS(rounded_inverse), DOES(DIVIDES_BY_BOUNDED(bound)),         \
            "divides by max(m, " text, OTHER_DEFINITION                                                                \
    }
/* What DMAX is divided by, in the operator's own arithmetic and in that of most programs. */
#define CONVENTION(name, how_common, y, what, ...)                                                                     \
    {name, how_common, SYMMETRIC, y, NO_NEEDS, DOES(__VA_ARGS__), what, OTHER_DEFINITION},                             \
    {                                                                                                                  \
        name "-divided", how_common, SYMMETRIC &TO_INT8 & ~BY_RULE, Y_INTEGER, NO_NEEDS,                               \
            DOES(__VA_ARGS__, STEP_FORM, FORM_DIVIDED, STEP_SCALING, SCALING_DIVISION),                                \
            what ", and divides x by the scale", OTHER_DEFINITION                                                      \
    }
#define IN_HALVES(type)                                                                                                \
    STEP_SCALE, PARAMETER_##type, STEP_OFFSET, PARAMETER_##type, STEP_PRODUCT, TYPE_##type, STEP_SUM, SUM_##type
#define FIXED_POINT(name, rounding, halves)                                                                            \
    {                                                                                                                  \
        name, USUAL, READS_WORDS, Y_INTEGER, NO_NEEDS,                                                                 \
            DOES(STEP_PRODUCT, TYPE_FLOAT64, STEP_SUM, SUM_FLOAT64, STEP_ROUNDING, rounding),                          \
            "multiplies by a fixed-point scale and rounds once, halves " halves, OTHER_DEFINITION                      \
    }
#define CHECK_ROUND_MODE                                                                                               \
    "Check the round mode: \"rint\" rounds halves to even, \"round\" away from zero, and \"floor\" rounds down."
#define OTHER_OPERATOR "Compare such a kernel with that operator: this one has other bits."
#define THIS_RULE      "Scale x as the rule of this operator says."
#define AS_MOE_ROUTING                                                                                                 \
    "divides by the scale, and that is m / DMAX, as npu_moe_init_routing_v2 and _v3 do", OTHER_OPERATOR
#define AS_MOE_ROUTING_8_5                                                                                             \
    "divides by m / DMAX, truncates to float16 and rounds halves away, as npu_moe_init_routing_v2 and _v3 do up to "   \
    "CANN 8.5",                                                                                                        \
        OTHER_OPERATOR
#define AS_GROUPED_SWIGLU                                                                                              \
    "multiplies by 1 / (m / DMAX) and rounds to float16, as npu_grouped_matmul_swiglu_quant does", OTHER_OPERATOR
/* How microscaling finds the codes of scales elsewhere. CONVENTIONS of mx.py says who has a rule, and the package adds
 * that to the words. */
#define CODE(name, how_common, y, rule, what)                                                                          \
    {                                                                                                                  \
        "scale-" name, how_common, MICROSCALES, y, NO_NEEDS, DOES(STEP_CODE, CODE_##rule), what, OTHER_RULE            \
    }
#define OTHER_RULE "Find S as scale_alg says, or compare with the convention, if one is named."
#define SMALL_GROUPS(name, rule, what)                                                                                 \
    {                                                                                                                  \
        "small-groups-" name, USUAL, MICROSCALES, Y_ANY, NEEDS(wide_x), DOES(STEP_SMALL_GROUPS, 1 + (int)rule), what,  \
            "Check small_groups: kernels of the device, its relatives and OCP have different rules."                   \
    }
#define GROUPS_OF(length, exponent)                                                                                    \
    {                                                                                                                  \
        "groups-of-" length, USUAL, MICROSCALES, Y_ANY, NO_NEEDS, DOES(STEP_BLOCK, BLOCK_RUNS + (exponent)),           \
            "takes groups of " length ", and for the scale of a group that of its first element",                      \
            "A group has block_size elements."                                                                         \
    }
#define GROUP_PLACES(name, place, what)                                                                                \
    SCALE_KEPT(name, place, MX, groups_of_line, what),                                                                 \
        RETURNED_AND_RANGE(name, place, MICROSCALES, groups_of_line, what)
/* Scales that a kernel returns, or reads, in another order. */
#define SCALES_STORED(name, place, what)                                                                               \
    {"scales-" name,  USUAL,           MICROSCALES, Y_ANY, NO_NEEDS, DOES(STEP_RETURNED_TOKEN, PLACE_##place),         \
     "returns " what, WHERE_SCALES_LIE},                                                                               \
    {                                                                                                                  \
        "scales-" name, USUAL, READS_GROUPS, Y_ANY, NO_NEEDS, DOES(STEP_SCALE_PLACE, PLACE_##place), "reads " what,    \
            WHERE_SCALES_LIE                                                                                           \
    }
#define WHERE_SCALES_LIE                                                                                               \
    "Group g along the axis has its scale in pair g / 2, at place g % 2, which is the last dimension."
#define SCALES_OF(length, exponent)                                                                                    \
    {                                                                                                                  \
        "groups-of-" length, USUAL, READS_GROUPS, Y_ANY, NO_NEEDS, DOES(STEP_BLOCK, BLOCK_RUNS + (exponent)),          \
            "takes scales as if groups had " length " elements", "A group has block_size elements."                    \
    }
/* What the code of a scale stands for. */
#define EXPONENT(name, how_common, y, how, what, advice)                                                               \
    {                                                                                                                  \
        "scale-" name, how_common, READS_GROUPS, y, NO_NEEDS, DOES(STEP_EXPONENT, EXPONENT_##how), what, advice        \
    }
#define UNSIGNED_CODE "S is a uint8: 80 is 2^1."
#define BIAS_127      "The scale is 2^(S - 127)."
#define READS_CODES(operand, words, step, type, name)                                                                  \
    {                                                                                                                  \
        operand "-read-as-" name, USUAL, READS_GROUPS, Y_ANY, NO_NEEDS, DOES(step, READ_AS + DTYPE_##type),            \
            "reads " words " as " name, "Check the type of the codes: the bytes do not tell."                          \
    }
#define OTHER_DEFINITION "Compute as this operator does, or compare with that library: the bits differ."
#define IN_FLOAT32       "Compute every step in float32; in Python, wrap numbers in numpy.float32."
#define KEEP_IN_FLOAT32  "Keep values in float32; only the last step converts them to the result's type."
#define FLUSHES_INPUTS                                                                                                 \
    "takes subnormal operands for zero", "Clear DAZ, or leave out the compiler's option that sets it (-ffast-math)."
#define FLUSHES_RESULTS                                                                                                \
    "makes subnormal results zero", "Clear FTZ, or leave out the compiler's option that sets it (-ffast-math)."
#define FLUSHES_ALL                                                                                                    \
    "takes subnormals for zero in operands and results",                                                               \
        "Clear FTZ and DAZ, or leave out the compiler's option that sets them (-ffast-math)."

/* Of equally common mistakes that give the same bits, the first one is named first. */
const struct hypothesis hypotheses[] = {
    /* ---- memory that was never written ---- */
    {"tail-untouched", COMMON, ALL, Y_ANY, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_TAIL_UNTOUCHED),
     "leaves the last columns of a row untouched", "Handle the columns that do not fill a vector."},
    {"rows-untouched", COMMON, FROM_FLOATS | TO_FLOATS | MICROSCALES, Y_ANY, NEEDS(rows),
     DOES(STEP_LAYOUT, LAYOUT_ROWS_UNTOUCHED), "leaves the last rows untouched",
     "Check how rows are shared among cores or blocks."},
    /* ---- rules of other operators, that decide several steps ---- */
    {"dynamic-quant", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_DYNAMIC_QUANT),
     "multiplies by DMAX / m and returns m * (1 / DMAX), as npu_dynamic_quant does", OTHER_OPERATOR},
    {"swiglu", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_SWIGLU),
     "multiplies by DMAX / m and returns that, as npu_swiglu_quant does", OTHER_OPERATOR},
    {"add-rms-norm", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_ADD_RMS_NORM),
     "multiplies by DMAX / m and returns 1 / (DMAX / m), as npu_add_rms_norm_dynamic_quant does", OTHER_OPERATOR},
    {"dequant-swiglu", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_DEQUANT_SWIGLU),
     "divides by the scale, and that is m * (1 / DMAX), as npu_dequant_swiglu_quant does", OTHER_OPERATOR},
    {"moe-routing", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_MOE_ROUTING), AS_MOE_ROUTING},
    {"moe-routing-8-5", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_MOE_ROUTING_8_5), AS_MOE_ROUTING_8_5},
    {"grouped-swiglu", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_GROUPED_SWIGLU), AS_GROUPED_SWIGLU},
    /* ---- rounding to an integer ---- */
    {"half-away", COMMON, ROUNDS, Y_INTEGER, NEEDS(rounded), DOES(STEP_ROUNDING, ROUND_HALF_AWAY),
     "rounds halves away from zero",
     "Use rint() or nearbyint() instead of round(), or the device's round mode 'rint'."},
    {"half-up", COMMON, ROUNDS, Y_SIGNED_OR_WORD, NEEDS(rounded), DOES(STEP_ROUNDING, ROUND_HALF_UP),
     "rounds halves up", "Use rint() or nearbyint() instead of adding 0.5."},
    {"half-added-up", RARE, ROUNDS, Y_SIGNED_OR_WORD, NEEDS_2(rounded, rounded_half),
     DOES(STEP_ROUNDING, ROUND_HALF_ADDED_UP), "adds 0.5 in float32, where the sum is rounded, and rounds down",
     "Use rint() or nearbyint(): adding 0.5 moves halves, and 0.49999997 becomes 1."},
    {"half-added-away", RARE, ROUNDS, Y_INTEGER, NEEDS_2(rounded, rounded_half),
     DOES(STEP_ROUNDING, ROUND_HALF_ADDED_AWAY),
     "adds 0.5 with the sign of the value in float32, where the sum is rounded, and cuts the fraction off",
     "Use rint() or nearbyint(): adding 0.5 moves halves, and 0.49999997 becomes 1."},
    {"half-down", RARE, ROUNDS, Y_INTEGER, NEEDS(rounded), DOES(STEP_ROUNDING, ROUND_HALF_DOWN), "rounds halves down",
     "Use rint() or nearbyint()."},
    {"truncate", COMMON, ROUNDS, Y_INTEGER, NEEDS(rounded), DOES(STEP_ROUNDING, ROUND_TRUNCATE),
     "cuts the fraction off", "A cast truncates: round half to even before it."},
    {"floor", COMMON, ROUNDS, Y_SIGNED_OR_WORD, NEEDS(rounded), DOES(STEP_ROUNDING, ROUND_FLOOR), "rounds down",
     "Round half to even instead of down."},
    {"ceiling", RARE, ROUNDS, Y_INTEGER, NEEDS(rounded), DOES(STEP_ROUNDING, ROUND_CEILING), "rounds up",
     "Round half to even instead of up."},
    {"half-even", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_ROUNDING, ROUND_HALF_EVEN), "rounds halves to even",
     "Use round() instead of rint(): up to CANN 8.5 npu_moe_init_routing_v2 and _v3 round halves away from zero."},
    {"half-even", COMMON, TO_SMALL, Y_FLOAT4 | Y_HIFLOAT8, NO_NEEDS, DOES(STEP_ROUNDING, ROUND_HALF_EVEN),
     "rounds halves to even", CHECK_ROUND_MODE},
    {"half-away", COMMON, TO_SMALL, Y_MX, NO_NEEDS, DOES(STEP_ROUNDING, ROUND_HALF_AWAY),
     "rounds halves away from zero, as adding half a unit to the bits does", CHECK_ROUND_MODE},
    {"half-to-zero", USUAL, TO_SMALL, Y_SMALL, NO_NEEDS, DOES(STEP_ROUNDING, ROUND_HALF_TO_ZERO),
     "rounds halves towards zero", CHECK_ROUND_MODE},
    {"truncate", COMMON, TO_SMALL, Y_SMALL, NO_NEEDS, DOES(STEP_ROUNDING, ROUND_TRUNCATE), "rounds towards zero",
     CHECK_ROUND_MODE},
    {"floor", USUAL, TO_SMALL, Y_SMALL, NO_NEEDS, DOES(STEP_ROUNDING, ROUND_FLOOR), "rounds down", CHECK_ROUND_MODE},
    /* ---- other steps of the conversion to a small float ---- */
    {"product-float16", COMMON, MICROSCALES, Y_ANY, NEEDS(float16_inside), DOES(STEP_PRODUCT, TYPE_FLOAT16),
     "keeps the scaled value in float16", KEEP_IN_FLOAT32},
    {"product-bfloat16", COMMON, MICROSCALES, Y_ANY, NEEDS(bfloat16_inside), DOES(STEP_PRODUCT, TYPE_BFLOAT16),
     "keeps the scaled value in bfloat16", KEEP_IN_FLOAT32},
    {"overflows", COMMON, TO_SMALL, Y_FLOAT8, NEEDS(beyond), DOES(STEP_SATURATION, SATURATE_NONE),
     "makes an infinity, or in float8_e4m3fn NaN, of what is beyond the largest value",
     "Saturate: clamp before the cast."},
    {"clamp-240", USUAL, TO_SMALL, Y_MX_8, NO_NEEDS, DOES(STEP_SATURATION, SATURATE_LESSER),
     "clamps to 240 (float8_e5m2: 49152)",
     "The largest value is 448 (float8_e5m2: 57344): this e4m3 has no infinities."},
    {"scale-240", USUAL, SCALED_TO_FLOAT8 | MICROSCALES, Y_MX_8, NO_NEEDS, DOES(STEP_UNIT, UNIT_LESSER),
     "finds scales with 240 for the largest value of y's type (float8_e5m2: 49152)",
     "The largest value is 448 (float8_e5m2: 57344): this e4m3 has no infinities."},
    {"nan-low", COMMON, TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_NAN, NAN_LOW),
     "makes NaN the least value, as if it clamped before it tests for NaN",
     "Test for NaN before clamping: it becomes 00."},
    {"nan-high", USUAL, TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_NAN, NAN_HIGH),
     "makes NaN the largest value, as if it clamped before it tests for NaN",
     "Test for NaN before clamping: it becomes 00."},
    {"nan-kept", COMMON, TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_NAN, NAN_KEPT), "keeps NaN, as 7F (hifloat8: 80)",
     "The operator makes 00 of NaN."},
    {"result-flushed", USUAL, TO_SMALL, Y_SMALL, NO_NEEDS, DOES(STEP_SUBNORMALS, SUBNORMAL_OF_SMALL),
     "stores zero where a result is subnormal in its type", "Keep subnormal results."},
    {"zero-sign-lost", USUAL, TO_SMALL, Y_MX, NO_NEEDS, DOES(STEP_RESULT, RESULT_ZERO_SIGN),
     "stores zero without a sign where a negative value becomes zero", "Keep the sign: y has a -0."},
    {"zero-sign-kept", USUAL, TO_SMALL, Y_HIFLOAT8, NO_NEEDS, DOES(STEP_RESULT, RESULT_ZERO_SIGN),
     "stores 80, a NaN, where a negative value becomes zero", "hifloat8 has one zero, 00."},
    {"shift-wraps", RARE, TO_SMALL, Y_MX, NEEDS(tiny_results), DOES(STEP_RESULT, RESULT_SHIFT_WRAPS),
     "shifts significands of tiny values by 32 places or more, which x86 takes modulo 32: they do not become zero",
     "Make what is below half of the least value zero before the shift."},
    {"other-small-float", USUAL, TO_SMALL, Y_MX, NO_NEEDS, DOES(STEP_SMALL_TYPE, SMALL_TYPE_OTHER),
     "stores the bits of float8_e5m2 for float8_e4m3fn, of float4_e2m1 for float4_e1m2, or the reverse",
     "Check the type of y."},
    {"fnuz", USUAL, TO_SMALL, Y_MX_8, NO_NEEDS, DOES(STEP_SMALL_TYPE, SMALL_TYPE_FNUZ),
     "stores the bits of float8_e4m3fnuz or float8_e5m2fnuz, whose bias is one more, as AMD's MI300 does",
     "Convert to the type of y: its bits are others."},
    /* ---- microscaling: scales and groups ---- */
    CODE("floor", COMMON, Y_ANY, FLOOR, "finds S from the exponent of the largest magnitude alone (scale_alg 0)"),
    CODE("rceil", COMMON, Y_MX_8 | Y_E2M1, RCEIL,
         "takes the next power of two from the quotient by the largest value on (scale_alg 1, or 2 to 4 bits)"),
    CODE("even", COMMON, Y_ANY, HALF_UP,
         "rounds the largest magnitude to the fraction of y's type, halves up, and takes its exponent"),
    CODE("even-below", USUAL, Y_E2M1, HALF_DOWN,
         "rounds the largest magnitude to the fraction of y's type, halves down, and takes its exponent (scale_alg 2 "
         "with dst_type_max 7)"),
    CODE("ceil", COMMON, Y_ANY, CEIL, "takes the exponent of the next power of two from the largest magnitude on"),
    CODE("nearest", USUAL, Y_ANY, NEAREST,
         "rounds the logarithm of the largest magnitude over y's largest value to the nearest integer"),
    CODE("floor-plus-1", USUAL, Y_ANY, FLOOR_PLUS_1,
         "adds 1 to the S that the exponent of the largest magnitude gives"),
    CODE("round-scale", USUAL, Y_MX_8, ROUND_SCALE,
         "takes an S of at least 1, and the next one for a largest magnitude above 1.75 times a power of two"),
    CODE("emax-less", USUAL, Y_MX_8 | Y_E2M1, EMAX_LESS, "subtracts one less than the exponent of y's largest value"),
    CODE("emax-more", USUAL, Y_ANY, EMAX_MORE, "subtracts one more than the exponent of y's largest value"),
    SMALL_GROUPS("zero", NPUQ_REF_RULE_S, "makes zeros of every group with S = 0, as small_groups 0 says"),
    SMALL_GROUPS("subnormal", NPUQ_REF_RULE_E,
                 "makes zeros of groups whose largest magnitude is subnormal, as small_groups 1 says"),
    SMALL_GROUPS("kept", NPUQ_REF_RULE_N, "makes zeros of no group, as small_groups 2 says"),
    {"bad-groups-nan", COMMON, MICROSCALES, Y_MX_8, NO_NEEDS, DOES(STEP_BAD_GROUPS, BAD_NAN),
     "makes NaN of all elements of a group with NaN or an infinity",
     "Check bad_groups: the device makes zeros of them."},
    {"bad-groups-zero", COMMON, MICROSCALES, Y_MX_8, NO_NEEDS, DOES(STEP_BAD_GROUPS, BAD_ZEROS),
     "makes zeros of all elements of a group with NaN or an infinity", "Check bad_groups: 1 makes NaN of them."},
    {"infinity-is-fe", USUAL, MICROSCALES, Y_MX_8, NO_NEEDS, DOES(STEP_BAD_GROUPS, BAD_INFINITY_IS_LARGE),
     "returns FE as the code of a group with an infinity, as Transformer Engine does",
     "An infinity makes the scale of its group FF, as NaN does."},
    {"range-ignores-nan", USUAL, MICROSCALES, Y_ANY, NO_NEEDS, DOES(STEP_RANGE, RANGE_IGNORES_NAN),
     "leaves NaN out of the largest magnitude", "One NaN makes the scale of its group FF."},
    {"largest-float16", USUAL, MICROSCALES, Y_ANY, NEEDS(x_not_float16), DOES(STEP_PRECISION, TYPE_FLOAT16),
     "rounds the largest magnitude to float16", "Find S from the largest magnitude as float32."},
    {"largest-bfloat16", USUAL, MICROSCALES, Y_ANY, NEEDS(float32), DOES(STEP_PRECISION, TYPE_BFLOAT16),
     "rounds the largest magnitude to bfloat16", "Find S from the largest magnitude as scale_alg says."},
    {"least-m-1e-4", USUAL, MICROSCALES, Y_ANY, NO_NEEDS, DOES(STEP_LEAST, LEAST_M_1E_4),
     "takes 1e-4 for the largest magnitude if that is less", "Without max_low_bound, there is no least magnitude."},
    {"max-low-bound-ignored", USUAL, MICROSCALES, Y_MX_8, NEEDS(low_bound), DOES(STEP_LEAST, LEAST_NONE),
     "ignores max_low_bound", "With scale_alg 1, no largest magnitude but 0 counts as less."},
    GROUPS_OF("16", 4),
    GROUPS_OF("32", 5),
    GROUPS_OF("64", 6),
    GROUPS_OF("128", 7),
    {"other-axis", COMMON, MICROSCALES, Y_ANY, NEEDS(two_axes), DOES(STEP_BLOCK, BLOCK_COLUMN),
     "takes groups along another axis, and for the scale of a group that of its first element",
     "Check axis: it is the last one or, if that is given, the one before."},
    GROUP_PLACES("next-group", PLACE_NEXT, "the next group, line after line; the last group takes the first one's"),
    GROUP_PLACES("group-before", PLACE_PREVIOUS,
                 "the group before, line after line; the first one takes the last one's"),
    GROUP_PLACES("first-group", PLACE_FIRST, "the first group along the axis"),
    GROUP_PLACES("next-group-but-last", PLACE_NEXT_BUT_LAST, "the next group; the last along the axis keeps its own"),
    GROUP_PLACES("group-before-but-first", PLACE_PREVIOUS_BUT_FIRST,
                 "the group before; the first along the axis keeps its own"),
    SCALES_STORED("swapped", IN_PAIR, "the two scales of each pair in the other order"),
    SCALES_STORED("in-planes", PLANES, "the first scales of all pairs, then the second ones"),
    SCALES_STORED("in-planes-of-lines", PLANES_OF_LINE,
                  "for each line along the axis the first scales of its pairs, then the second ones"),
    SCALES_STORED("not-paired", NOT_PAIRED, "the scales of groups along the axis one by one, without pairs"),
    SCALES_STORED("groups-first", GROUPS_FIRST,
                  "the scales of all first groups, then those of all second ones, and so on"),
    SCALES_STORED("lines-first", LINES_FIRST, "all scales of one line along the axis, then those of the next"),
    SCALES_STORED("in-tiles", IN_TILES,
                  "scales in tiles of 128 rows and 4 groups, as matrix units of other vendors read them"),
    SCALES_STORED("without-padding", WITHOUT_PADDING,
                  "the scales of rows one after the other, without the one that completes an odd number"),
    {"returned-without-bias", USUAL, MICROSCALES, Y_ANY, NO_NEEDS, DOES(STEP_RETURNED, RETURNED_WITHOUT_BIAS),
     "returns S - 127", "The byte of a scale has a bias of 127: S itself."},
    {"returned-inverse", USUAL, MICROSCALES, Y_ANY, NO_NEEDS, DOES(STEP_RETURNED, RETURNED_INVERSE),
     "returns the byte of R, which elements are multiplied by: 254 - S", "Return S: elements times 2^(S - 127) are x."},
    /* ---- microscaling: back from codes ---- */
    EXPONENT("shifted", COMMON, Y_WIDE, SHIFTED, "takes S << 23 for the bits of the scale: 0 at 00, infinite at FF",
             "2^-127 is subnormal, with the bits 00400000, and FF is NaN."),
    EXPONENT("00-is-zero", USUAL, Y_WIDE, ZERO, "takes 0 for the scale 2^-127, as if S were 0 or subnormals were zero",
             "2^-127 is subnormal, with the bits 00400000."),
    EXPONENT("ff-infinite", COMMON, Y_ANY, INFINITE, "takes the scale of FF for infinite", "FF is NaN."),
    EXPONENT("ff-number", USUAL, Y_ANY, NUMBER, "takes the scale of FF for 2^128, whose products may be finite",
             "FF is NaN."),
    EXPONENT("signed", USUAL, Y_ANY, SIGNED, "reads S as int8, 256 less from 80 on", UNSIGNED_CODE),
    EXPONENT("negative", USUAL, Y_ANY, NEGATIVE, "shifts S by 23 bits as int8, which sets the sign from 80 on",
             UNSIGNED_CODE),
    EXPONENT("unbiased", COMMON, Y_ANY, UNBIASED, "takes 2^S for the scale", BIAS_127),
    EXPONENT("signed-unbiased", USUAL, Y_ANY, SIGNED_UNBIASED, "takes 2^S for the scale, with S as int8", BIAS_127),
    EXPONENT("bias-126", RARE, Y_ANY, BIAS_126, "takes 2^(S - 126) for the scale", BIAS_127),
    EXPONENT("bias-128", RARE, Y_ANY, BIAS_128, "takes 2^(S - 128) for the scale", BIAS_127),
    EXPONENT("left-out", USUAL, Y_ANY, NONE, "leaves the scales out", "Multiply by the scale of the group."),
    SCALES_OF("16", 4),
    SCALES_OF("32", 5),
    SCALES_OF("64", 6),
    SCALES_OF("128", 7),
    {"other-axis", COMMON, READS_GROUPS, Y_ANY, NEEDS(two_axes), DOES(STEP_BLOCK, BLOCK_COLUMN),
     "takes scales as if groups ran along another axis",
     "Check axis: it is the last one or, if that is given, the one before."},
    /* ---- product and sum ---- */
    {"fused", COMMON, AFFINE | SCALED_SUMS, Y_ANY, NEEDS_3(product, long_product, sum), DOES(STEP_SUM, SUM_FUSED),
     "rounds product and sum once, as a fused multiply-add does",
     "Compile with -ffp-contract=off, or use a multiply and an add that the compiler cannot join."},
    {"reciprocal", COMMON, DIVIDES | SCALED_TO_FLOAT8, Y_ANY, NEEDS(division), DOES(STEP_SCALING, SCALING_RECIPROCAL),
     "multiplies by 1 / scale where the operator divides by the scale",
     "Divide: the rounded reciprocal moves quotients across a half."},
    {"reciprocal", COMMON, BY_ROW_FACTOR, Y_ANY, NO_NEEDS, DOES(STEP_SCALING, SCALING_RECIPROCAL),
     "multiplies by 1 / scale where the operator multiplies by DMAX / m",
     "Compute the factor as DMAX / m, from the largest |v|, not from the scale."},
    {"reciprocal", COMMON, BLOCK_TO_INT8, Y_ANY, NO_NEEDS, DOES(STEP_SCALING, SCALING_RECIPROCAL),
     "multiplies by 1 / scale where the operator multiplies by (1 / m) * DMAX",
     "Compute the factor as (1 / m) * DMAX, from the largest |x|, not from the scale."},
    {"factor", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_SCALING, SCALING_FACTOR),
     "multiplies by DMAX / m, which is computed once for the row", THIS_RULE},
    {"factor", COMMON, SCALED_TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_SCALING, SCALING_FACTOR),
     "multiplies by DMAX / m, as npu_dynamic_quant does for int8", "Divide by the scale, as the device does."},
    {"reciprocal", COMMON, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_SCALING, SCALING_RECIPROCAL), "multiplies by 1 / scale",
     THIS_RULE},
    {"division", COMMON, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_SCALING, SCALING_DIVISION), "divides by the scale",
     THIS_RULE},
    {"one-division", USUAL, BLOCK_TO_INT8, Y_ANY, NO_NEEDS, DOES(STEP_UNIT, UNIT_OTHER_FACTOR),
     "multiplies by DMAX / m, which is rounded once", "Round 1 / m, then the product with DMAX, as the device does."},
    {"division", COMMON, WITH_SCALES, Y_ANY, NEEDS(product), DOES(STEP_SCALING, SCALING_DIVISION),
     "divides by 1 / scale where the operator multiplies by the scale", "Multiply by the scale as it is given."},
    {"division", COMMON, BY_ROW_FACTOR, Y_ANY, NO_NEEDS, DOES(STEP_SCALING, SCALING_DIVISION),
     "divides by the scale where the operator multiplies by DMAX / m, as npu_dequant_swiglu_quant does",
     "Compute DMAX / m once for the row and multiply by it, as the device does."},
    {"division", COMMON, ASYMMETRIC | BLOCK_TO_INT8, Y_ANY, NO_NEEDS, DOES(STEP_SCALING, SCALING_DIVISION),
     "divides by the scale where the operator multiplies by a reciprocal that is rounded first",
     "Compute the reciprocal once for the row or block and multiply by it, as the device does."},
    {"opposite", COMMON, WITH_SCALES | FROM_NARROW | READS_GROUPS, Y_ANY, NO_NEEDS,
     DOES(STEP_SCALING, SCALING_OPPOSITE), "divides where the operator multiplies, or multiplies where it divides",
     "Check div_mode, and whether the scale or its reciprocal is passed."},
    {"float64", USUAL, FROM_FLOATS, Y_ANY, NEEDS(excess),
     DOES(STEP_PRODUCT, TYPE_FLOAT64, STEP_SUM, SUM_FLOAT64, STEP_PRECISION, TYPE_FLOAT64), "computes in float64",
     IN_FLOAT32},
    {"float64", USUAL, BY_COLUMNS, Y_ANY, NEEDS(excess), DOES(STEP_PRODUCT, TYPE_FLOAT64, STEP_SUM, SUM_FLOAT64),
     "computes in float64", IN_FLOAT32},
    {"float64-to-float32", RARE, FROM_FLOATS | BY_COLUMNS, Y_INTEGER | Y_HALF | Y_FLOAT8, NEEDS(early_excess),
     DOES(STEP_PRODUCT, TYPE_FLOAT64, STEP_SUM, SUM_FLOAT64, STEP_PRECISION, TYPE_FLOAT64, STEP_RESULT,
          RESULT_THROUGH_FLOAT32),
     "computes in float64, and rounds the last value to float32 before its conversion", IN_FLOAT32},
    {"product-float16", COMMON, FROM_FLOATS | FROM_SUMS, Y_ANY, NEEDS(later_steps), DOES(STEP_PRODUCT, TYPE_FLOAT16),
     "keeps the scaled value in float16", KEEP_IN_FLOAT32},
    {"product-bfloat16", COMMON, FROM_FLOATS | FROM_SUMS, Y_ANY, NEEDS(later_steps), DOES(STEP_PRODUCT, TYPE_BFLOAT16),
     "keeps the scaled value in bfloat16", KEEP_IN_FLOAT32},
    {"product-float32", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_PRODUCT, PRODUCT_FLOAT32),
     "keeps the scaled value in float32", "Convert it to float16, as the device does."},
    {"sum-float16", USUAL, AFFINE | FROM_NARROW, Y_ANY, NEEDS(sum), DOES(STEP_SUM, SUM_FLOAT16),
     "keeps the sum with the offset in float16", "Keep the sum in float32."},
    {"sum-bfloat16", RARE, AFFINE | FROM_NARROW, Y_ANY, NEEDS(sum), DOES(STEP_SUM, SUM_BFLOAT16),
     "keeps the sum with the offset in bfloat16", "Keep the sum in float32."},
    {"all-float16", USUAL, WITH_SCALES, Y_ANY, NEEDS(sum), DOES(STEP_PRODUCT, TYPE_FLOAT16, STEP_SUM, SUM_FLOAT16),
     "rounds product and sum to float16, as a vector unit without float32 does", "Convert x to float32 first."},
    {"all-bfloat16", USUAL, WITH_SCALES, Y_ANY, NEEDS(sum), DOES(STEP_PRODUCT, TYPE_BFLOAT16, STEP_SUM, SUM_BFLOAT16),
     "rounds product and sum to bfloat16, as a kernel on bfloat16 tensors does", "Convert x to float32 first."},
    {"all-float16", USUAL, FINDS_SCALES, Y_ANY, NO_NEEDS,
     DOES(STEP_INPUT, INPUT_FLOAT16, STEP_SCALE, PARAMETER_FLOAT16, STEP_PRECISION, TYPE_FLOAT16, STEP_PRODUCT,
          TYPE_FLOAT16, STEP_SUM, SUM_FLOAT16),
     "rounds every operand and every step to float16, as a kernel on float16 tensors does",
     "Convert x to float32 first."},
    {"all-bfloat16", USUAL, FINDS_SCALES, Y_ANY, NO_NEEDS,
     DOES(STEP_INPUT, INPUT_BFLOAT16, STEP_SCALE, PARAMETER_BFLOAT16, STEP_PRECISION, TYPE_BFLOAT16, STEP_PRODUCT,
          TYPE_BFLOAT16, STEP_SUM, SUM_BFLOAT16),
     "rounds every operand and every step to bfloat16, as a kernel on bfloat16 tensors does",
     "Convert x to float32 first."},
    {"all-float16", USUAL, SCALED_SUMS, Y_WIDE, NEEDS(sum), DOES(STEP_PRODUCT, TYPE_FLOAT16, STEP_SUM, SUM_FLOAT16),
     "rounds products and sum to float16", KEEP_IN_FLOAT32},
    {"all-bfloat16", USUAL, SCALED_SUMS, Y_FLOAT16 | Y_FLOAT32, NEEDS(sum),
     DOES(STEP_PRODUCT, TYPE_BFLOAT16, STEP_SUM, SUM_BFLOAT16), "rounds products and sum to bfloat16", KEEP_IN_FLOAT32},
    {"dmax-first", USUAL, BY_ROW_FACTOR | SCALED_TO_FLOAT8 | BY_RULE, Y_ANY, NO_NEEDS,
     DOES(STEP_SCALING, SCALING_DMAX_FIRST), "multiplies by DMAX, then divides by m",
     "Compute the factor or the scale once for the row."},
    {"inverse-first", USUAL, BY_ROW_FACTOR | BY_RULE, Y_ANY, NEEDS_2(row_scales, factor),
     DOES(STEP_UNIT, UNIT_OTHER_FACTOR), "multiplies by (1 / m) * DMAX, which is rounded twice",
     "Round once, in DMAX / m."},
    /* ---- operands ---- */
    {"x-float16", COMMON, FROM_FLOATS | MICROSCALES, Y_ANY, NEEDS(x_not_float16), DOES(STEP_INPUT, INPUT_FLOAT16),
     "rounds x to float16 first", "Compute with x in float32."},
    {"x-bfloat16", COMMON, FROM_FLOATS | MICROSCALES, Y_ANY, NEEDS(x_not_bfloat16), DOES(STEP_INPUT, INPUT_BFLOAT16),
     "rounds x to bfloat16 first", "Compute with x in float32."},
    {"tf32", RARE, FROM_FLOATS, Y_ANY, NEEDS(float32), DOES(STEP_INPUT, INPUT_TF32, STEP_SCALE, PARAMETER_TF32),
     "rounds x and its scales to ten fraction bits, as TF32 has them",
     "Compute in float32, without the units or options that use TF32."},
    {"relu", USUAL, FROM_FLOATS, Y_ANY, NO_NEEDS, DOES(STEP_RELU, RELU_APPLIED),
     "takes x below 0 for 0, as a fused ReLU does", "Leave the activation to its own operator."},
    {"relu", USUAL, TO_FLOATS, Y_FLOAT, NO_NEEDS, DOES(STEP_RELU, RELU_APPLIED),
     "stores 0 for results below 0, as a fused ReLU does", "Leave the activation to its own operator."},
    {"x-float16", COMMON, FROM_SUMS, Y_ANY, NO_NEEDS, DOES(STEP_INPUT, INPUT_FLOAT16), "converts x to float16 first",
     "Convert the int32 sums to float32."},
    {"x-truncated", USUAL, FROM_SUMS, Y_ANY, NO_NEEDS, DOES(STEP_INPUT, INPUT_TRUNCATED),
     "truncates int32 sums of more than 24 bits in the conversion to float32",
     "Convert with rounding to nearest-even."},
    SUMS_IN_BITS("sums-wrap-16", "16 bits", INPUT_WRAPS_16),
    SUMS_IN_BITS("sums-wrap-24", "24 bits", INPUT_WRAPS_24),
    SUMS_IN_BITS("sums-saturate-16", "int16, with saturation,", INPUT_SATURATES_16),
    READS_FLOATS("x", "x", FROM_FLOATS, STEP_INPUT),
    READS("x", "x", FROM_SUMS, STEP_INPUT, FLOAT32, "float32"),
    READS("x", "x", FROM_NARROW | READS_GROUPS, STEP_INPUT, UINT8, "uint8"),
    READS_CODES("x", "x", STEP_INPUT, FLOAT8_E4M3FN, "e4m3fn"),
    READS_CODES("x", "x", STEP_INPUT, FLOAT8_E5M2, "e5m2"),
    READS_CODES("x", "x", STEP_INPUT, HIFLOAT8, "hifloat8"),
    READS_CODES("x", "x", STEP_INPUT, FLOAT4_E2M1, "e2m1"),
    READS_CODES("x", "x", STEP_INPUT, FLOAT4_E1M2, "e1m2"),
    READS_CODES("scale", "the scale", STEP_SCALE, UINT8, "uint8"),
    READS_CODES("scale", "the scale", STEP_SCALE, FLOAT8_E4M3FN, "e4m3fn"),
    {"x-fnuz", USUAL, READS_GROUPS, Y_ANY, NEEDS(float8_x), DOES(STEP_INPUT, INPUT_FNUZ),
     "reads x as fnuz, as older GPUs of AMD do: half the values, and NaN only for the code of -0",
     "The exponent's bias is one less than that of the type with fnuz."},
    {"x-without-specials", COMMON, READS_GROUPS, Y_ANY, NEEDS(float8_x), DOES(STEP_INPUT, INPUT_WITHOUT_SPECIALS),
     "takes the codes of NaN and infinities for numbers", "Make NaN of 7F and FF in e4m3fn, and in e5m2 from 7D on."},
    {"x-without-subnormals", COMMON, READS_GROUPS, Y_ANY, NO_NEEDS, DOES(STEP_INPUT, INPUT_WITHOUT_SUBNORMALS),
     "takes 0 for elements of x whose exponent field is 0", "Their fraction has no leading 1, but it counts."},
    {"scale-float16", COMMON, WITH_SCALES | TO_FLOATS, Y_ANY, NEEDS(scale_not_float16),
     DOES(STEP_SCALE, PARAMETER_FLOAT16), "rounds the scale to float16", "Pass and keep the scale in float32."},
    {"scale-bfloat16", COMMON, WITH_SCALES | BY_COLUMNS, Y_ANY, NEEDS(scale_not_bfloat16),
     DOES(STEP_SCALE, PARAMETER_BFLOAT16), "rounds the scale to bfloat16", "Pass and keep the scale in float32."},
    READS_FLOATS("scale", "the scale", GIVEN_SCALES, STEP_SCALE),
    READS_FLOATS("smooth", "the smooth scales", DYNAMIC, STEP_SCALE),
    {"offset-float16", USUAL, WITH_SCALES | FROM_NARROW, Y_ANY, NEEDS(finer_offset),
     DOES(STEP_OFFSET, PARAMETER_FLOAT16), "rounds the offset to float16", "Keep the offset in float32."},
    {"offset-bfloat16", USUAL, WITH_SCALES | FROM_NARROW, Y_ANY, NEEDS(fine_offset),
     DOES(STEP_OFFSET, PARAMETER_BFLOAT16), "rounds the offset to bfloat16", "Keep the offset in float32."},
    {"offset-integer", USUAL, WITH_SCALES | FROM_NARROW, Y_ANY, NEEDS_2(offset, float_offset),
     DOES(STEP_OFFSET, PARAMETER_INTEGER), "rounds the offset to an integer before it is added",
     "Add the offset as it is given."},
    READS("offset", "the offset", GIVEN_OFFSETS, STEP_OFFSET, FLOAT32, "float32"),
    READS_FLOATS("offset", "the offset", GIVEN_OFFSETS, STEP_OFFSET),
    READS("offset", "the offset", GIVEN_OFFSETS, STEP_OFFSET, INT8, "int8"),
    READS("offset", "the offset", GIVEN_OFFSETS, STEP_OFFSET, UINT8, "uint8"),
    READS("bias", "the bias", SCALED_SUMS, STEP_BIAS, FLOAT32, "float32"),
    READS_FLOATS("bias", "the bias", SCALED_SUMS, STEP_BIAS),
    {"offset-left-out", COMMON, GIVEN_OFFSETS | READS_WORDS, Y_ANY, NEEDS(offset),
     DOES(STEP_OFFSET, PARAMETER_LEFT_OUT), "leaves the offset out", "Add the offset."},
    {"offset-negated", COMMON, GIVEN_OFFSETS | READS_WORDS, Y_ANY, NEEDS(offset), DOES(STEP_OFFSET, PARAMETER_NEGATED),
     "subtracts the offset", "Add the offset: other libraries' zero points have the other sign when dequantising."},
    {"offset-unsigned", RARE, READS_WORDS, Y_ANY, NEEDS(offset), DOES(STEP_OFFSET, PARAMETER_UNSIGNED),
     "reads the word's offset as unsigned", "Bits 45..37 of the word are two's complement."},
    {"round-first", COMMON, AFFINE, Y_INTEGER, NEEDS(sum), DOES(STEP_ORDER, ORDER_ROUND_FIRST),
     "rounds before the offset is added, as ONNX's QuantizeLinear does, and again after it",
     "Add the offset in float32, then round."},
    {"clamp-first", USUAL, AFFINE, Y_INTEGER, NEEDS(sum), DOES(STEP_ORDER, ORDER_CLAMP_FIRST),
     "rounds and clamps, with NaN as 0, before the offset is added, and again after it", "Clamp once, after the sum."},
    {"offset-before-scaling", USUAL, WITH_SCALES, Y_ANY, NEEDS(offset), DOES(STEP_ORDER, ORDER_ADD_FIRST),
     "adds the offset to x before it is scaled", "Scale x, then add the offset."},
    {"scaled-before-offset", USUAL, FROM_NARROW, Y_ANY, NEEDS(offset), DOES(STEP_ORDER, ORDER_SCALE_FIRST),
     "multiplies by the scale before the offset is added", "Add the offset to x, then multiply."},
    {"distributed", RARE, FROM_NARROW, Y_ANY, NEEDS(offset), DOES(STEP_ORDER, ORDER_DISTRIBUTED),
     "computes x * scale + offset * scale with a fused multiply-add", "Add the offset to x, then multiply."},
    {"two-products", RARE, FROM_NARROW, Y_ANY, NEEDS_3(offset, scale_not_float16, scale_not_bfloat16),
     DOES(STEP_ORDER, ORDER_TWO_PRODUCTS), "computes x * scale + offset * scale, and rounds each product",
     "Add the offset to x, then multiply."},
    /* ---- saturation and special values ---- */
    {"symmetric-range", COMMON, AFFINE | READS_WORDS, Y_SIGNED, NO_NEEDS, DOES(STEP_SATURATION, SATURATE_SYMMETRIC),
     CLAMPS_SYMMETRICALLY},
    {"symmetric-range", COMMON, SYMMETRIC, Y_SIGNED, NEEDS(beyond), DOES(STEP_SATURATION, SATURATE_SYMMETRIC),
     CLAMPS_SYMMETRICALLY},
    {"wrap", COMMON, AFFINE, Y_NARROW, NO_NEEDS, DOES(STEP_SATURATION, SATURATE_WRAP), DOES_NOT_CLAMP},
    {"wrap", COMMON, READS_WORDS, Y_NARROW, NO_NEEDS, DOES(STEP_SATURATION, SATURATE_WRAP),
     "does not clamp after the offset is added: the low bits of the sum are stored",
     "Clamp to -256..255 before the offset, and to -128..127 after it."},
    {"wrap", COMMON, SYMMETRIC, Y_NARROW, NEEDS(beyond), DOES(STEP_SATURATION, SATURATE_WRAP), DOES_NOT_CLAMP},
    {"wrap-16", RARE, WITH_SCALES | READS_WORDS, Y_NARROW | Y_INT32, NO_NEEDS,
     DOES(STEP_SATURATION, SATURATE_WRAPPED_16), IN_BITS("16")},
    {"wrap-16", RARE, BY_BLOCK, Y_NARROW, NEEDS(min_scale), DOES(STEP_SATURATION, SATURATE_WRAPPED_16), IN_BITS("16")},
    {"wrap-24", RARE, WITH_SCALES | READS_WORDS, Y_NARROW | Y_INT32, NO_NEEDS,
     DOES(STEP_SATURATION, SATURATE_WRAPPED_24), IN_BITS("24")},
    {"wrap-32", RARE, WITH_SCALES | READS_WORDS, Y_NARROW | Y_INT32, NO_NEEDS,
     DOES(STEP_SATURATION, SATURATE_WRAPPED_32), IN_BITS("32")},
    {"negative-wraps", RARE, WITH_SCALES, Y_NARROW, NO_NEEDS, DOES(STEP_SATURATION, SATURATE_HIGH),
     "clamps only at the high end: -1 is stored as 255 where y is uint8", "Clamp at both ends."},
    {"unsigned-int4", USUAL, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_SATURATION, SATURATE_UNSIGNED),
     "clamps int4 to 0..15", "int4 is signed: clamp to -8..7."},
    {"unsigned-int8", USUAL, TO_INT8, Y_INT8, NEEDS(int8_y), DOES(STEP_SATURATION, SATURATE_UNSIGNED),
     "clamps int8 to 0..255, as for uint8", "int8 is signed: clamp to -128..127."},
    {"plus-128", USUAL, TO_INT8, Y_INT8, NEEDS(int8_y), DOES(STEP_RESULT, RESULT_OFFSET_BINARY),
     "stores int8 results plus 128, as uint8", "Store int8 as it is, or take the results for uint8."},
    {"minus-128", RARE, TO_INT4, Y_INT8 | Y_UINT8, NEEDS(uint8_y), DOES(STEP_RESULT, RESULT_OFFSET_BINARY),
     "stores uint8 results minus 128, as int8", "Add 128, that is flip the top bit, or take the results for int8."},
    {"plus-8", RARE, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_RESULT, RESULT_OFFSET_BINARY),
     "stores int4 results plus 8, as 0..15", "int4 is two's complement: flip the top bit of the four."},
    {"magnitude", RARE, TO_INT8, Y_SIGNED_INTEGER, NO_NEEDS, DOES(STEP_RESULT, RESULT_MAGNITUDE),
     "stores a negative result without its sign", TWOS_COMPLEMENT},
    {"sign-magnitude", RARE, TO_INT8, Y_SIGNED_INTEGER, NO_NEEDS, DOES(STEP_RESULT, RESULT_SIGN_MAGNITUDE),
     "stores a negative result as a sign bit and its magnitude", TWOS_COMPLEMENT},
    {"ones-complement", RARE, TO_INT8, Y_SIGNED_INTEGER, NO_NEEDS, DOES(STEP_RESULT, RESULT_ONES_COMPLEMENT),
     "stores a negative result in ones' complement: the inverted bits of its magnitude", TWOS_COMPLEMENT},
    {"negated", RARE, TO_INT8, Y_SIGNED_INTEGER | Y_UINT8, NO_NEEDS, DOES(STEP_RESULT, RESULT_NEGATED),
     "stores 0 - y, of a uint8 256 - y", "Check the order of a subtraction, or the sign of the scale."},
    {"indefinite", USUAL, AFFINE, Y_INTEGER, NO_NEEDS, DOES(STEP_SATURATION, SATURATE_INDEFINITE), CONVERTS_FIRST},
    {"indefinite", USUAL, SYMMETRIC, Y_INTEGER, NEEDS(beyond), DOES(STEP_SATURATION, SATURATE_INDEFINITE),
     CONVERTS_FIRST},
    {"nan-low", COMMON, TO_INT8, Y_SIGNED_INTEGER, NO_NEEDS, DOES(STEP_NAN, NAN_LOW),
     "makes NaN the low end of the range to which it is clamped",
     "Make NaN 0: select it out before clamping, as max() and min() do not."},
    {"nan-high", USUAL, TO_INT8, Y_INTEGER, NO_NEEDS, DOES(STEP_NAN, NAN_HIGH),
     "makes NaN the high end of the range to which it is clamped",
     "Make NaN 0: select it out before clamping, as max() and min() do not."},
    {"nan-before-offset", RARE, AFFINE, Y_ANY, NEEDS(sum), DOES(STEP_NAN, NAN_BEFORE_OFFSET),
     "makes NaN 0 before the offset is added, so that the offset is stored", "Add the offset, then make NaN 0."},
    {"nan-negative", USUAL, TO_FLOATS, Y_FLOAT, NO_NEEDS, DOES(STEP_NAN, NAN_NEGATIVE),
     "returns a NaN with its sign set, as x86 makes it", "Store the one quiet NaN of the type with its sign clear."},
    {"flush-inputs", USUAL, GIVEN_SCALES, Y_ANY, NEEDS(subnormals), DOES(STEP_SUBNORMALS, SUBNORMAL_INPUTS),
     FLUSHES_INPUTS},
    {"flush-inputs", USUAL, NOT_BLOCK_TO_FLOAT8 | MICROSCALES, Y_ANY, NEEDS(wide_x),
     DOES(STEP_SUBNORMALS, SUBNORMAL_INPUTS), FLUSHES_INPUTS},
    {"flush-inputs", USUAL, ASYMMETRIC, Y_ANY, NEEDS_2(wide_x, smooth), DOES(STEP_SUBNORMALS, SUBNORMAL_INPUTS),
     FLUSHES_INPUTS},
    {"flush-results", RARE, FROM_NARROW | READS_GROUPS | SCALED_SUMS, Y_WIDE, NEEDS(subnormals),
     DOES(STEP_SUBNORMALS, SUBNORMAL_RESULTS), FLUSHES_RESULTS},
    {"flush-results", RARE, NOT_BLOCK_TO_FLOAT8, Y_ANY, NEEDS_2(wide_x, small_scale),
     DOES(STEP_SUBNORMALS, SUBNORMAL_RESULTS), FLUSHES_RESULTS},
    {"flush-all", RARE, FROM_NARROW | READS_GROUPS | SCALED_SUMS, Y_WIDE, NEEDS_2(subnormals, new_subnormals),
     DOES(STEP_SUBNORMALS, SUBNORMAL_ALL), FLUSHES_ALL},
    {"flush-all", RARE, SYMMETRIC &TO_INT8, Y_ANY, NEEDS_2(wide_x, small_scale), DOES(STEP_SUBNORMALS, SUBNORMAL_ALL),
     FLUSHES_ALL},
    /* A scale that flush-results makes 0 divides as the one that it was. */
    {"flush-all", RARE, SCALED_TO_FLOAT8 & ~BY_BLOCK, Y_FLOAT8, NEEDS_3(wide_x, small_scale, smooth),
     DOES(STEP_SUBNORMALS, SUBNORMAL_ALL), FLUSHES_ALL},
    /* ---- dynamic operators ---- */
    {"range-reciprocal", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_UNIT, UNIT_RECIPROCAL),
     "multiplies the range by 1 / 255 (int4: 1 / 15)", "Divide: the rounded reciprocal gives other scales."},
    {"one-step-less", RARE, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_UNIT, UNIT_ONE_LESS),
     "divides the range by 254 (int4: 14)", "Divide by the number of steps, 255 or 15."},
    {"one-step-more", COMMON, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_UNIT, UNIT_ONE_MORE),
     "divides the range by 256 (int4: 16)", "Divide by the number of steps, 255 or 15."},
    {"one-step-more", COMMON, SYMMETRIC, Y_INTEGER, NO_NEEDS, DOES(STEP_UNIT, UNIT_ONE_MORE),
     "takes 128 (int4: 8) for DMAX", "DMAX is 127 or 7."},
    {"no-least-scale", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_LEAST, LEAST_NONE),
     "has no lower bound on the scale", "The scale is 1e-12 where the range is narrower, or NaN."},
    BOUNDS_OF("1e-12", COMMON, SYMMETRIC, BOUND_1E_12, "1e-12"),
    BOUNDS_OF("1e-10", RARE, FINDS_SCALES, BOUND_1E_10, "1e-10"),
    BOUNDS_OF("1e-8", RARE, FINDS_SCALES, BOUND_1E_8, "1e-8"),
    BOUNDS_OF("1e-6", RARE, FINDS_SCALES, BOUND_1E_6, "1e-6"),
    BOUNDS_OF("1e-5", USUAL, FINDS_SCALES, BOUND_1E_5, "1e-5"),
    BOUNDS_OF("epsilon", RARE, FINDS_SCALES, BOUND_EPSILON, "FLT_EPSILON"),
    BOUNDS_OF("other", RARE, FINDS_SCALES, BOUND_OF_DUMP, "another number"),
    {"one-for-zero", COMMON, FINDS_SCALES, Y_ANY, NO_NEEDS, DOES(STEP_LEAST, LEAST_ONE_FOR_ZERO),
     "takes 1 where the scale would be 0, and has no other lower bound",
     "The scale is at least 1e-12; in the symmetric operators it may be 0."},
    {"offset-rounded", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_OFFSET, TOKEN_OFFSET_INTEGER),
     "rounds the offset to an integer", "The offset is a float32, and no integer as a rule."},
    {"offset-truncated", RARE, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_OFFSET, TOKEN_OFFSET_TRUNCATED),
     "cuts the fraction of the offset off", "The offset is a float32, and no integer as a rule."},
    {"offset-sign", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_OFFSET_SIGN, OFFSET_NEGATED),
     "returns the offset with the other sign", "The value is (y - offset) * scale."},
    {"offset-from-low", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_OFFSET, TOKEN_OFFSET_FROM_LOW),
     "computes the offset from the low end, as -128 - lo / scale (int4: -8)",
     "Compute the offset as DMAX - hi / scale."},
    {"zero-point-from-low", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_OFFSET, TOKEN_OFFSET_FROM_LOW_INTEGER),
     "computes an integer zero point from the low end, as PyTorch and ONNX do: -128 - lo / scale (int4: -8), rounded",
     "Compute the offset as DMAX - hi / scale, and keep it in float32."},
    {"symmetric-extremes", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_RANGE, RANGE_SYMMETRIC),
     "takes a range that is symmetric about zero", "Take the largest and the smallest value."},
    {"range-with-zero", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_RANGE, RANGE_WITH_ZERO),
     "takes a range that always contains zero", "Take the largest and the smallest value, whatever their signs."},
    {"largest-without-sign", RARE, SYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_RANGE, RANGE_WITHOUT_SIGN),
     "takes the largest v, not the largest |v|", "Take the absolute value first."},
    {"range-ignores-nan", USUAL, FINDS_SCALES, Y_ANY, NO_NEEDS, DOES(STEP_RANGE, RANGE_IGNORES_NAN),
     "leaves NaN out of the extremes", "One NaN makes the parameters of the row or block those of NaN."},
    {"scale-float16", COMMON, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_TYPE, TYPE_FLOAT16),
     "rounds the row's scale and offset to float16 before they are used", "Keep scale and offset in float32."},
    {"scale-float16", COMMON, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RETURNED, TYPE_FLOAT16),
     "returns the scale rounded to float16", "Return the scale in float32."},
    {"scale-bfloat16", COMMON, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_RETURNED, TYPE_BFLOAT16),
     "returns the scale rounded to bfloat16", "Return the scale in float32."},
    {"scale-float16", COMMON, BY_ROW_FACTOR | BLOCK_TO_INT8, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_TYPE, TYPE_FLOAT16),
     "returns the scale rounded to float16", "Return the scale in float32."},
    {"scale-bfloat16", COMMON, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_TYPE, TYPE_BFLOAT16),
     "rounds the row's scale and offset to bfloat16 before they are used", "Keep scale and offset in float32."},
    {"scale-bfloat16", COMMON, BY_ROW_FACTOR | BLOCK_TO_INT8, Y_ANY, NO_NEEDS, DOES(STEP_TOKEN_TYPE, TYPE_BFLOAT16),
     "returns the scale rounded to bfloat16", "Return the scale in float32."},
    {"scale-float16", COMMON, SCALED_TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_TOKEN_TYPE, TYPE_FLOAT16),
     "rounds the scale to float16 before it is used", "Keep the scale in float32."},
    {"scale-bfloat16", COMMON, SCALED_TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_TOKEN_TYPE, TYPE_BFLOAT16),
     "rounds the scale to bfloat16 before it is used", "Keep the scale in float32."},
    {"returned-float16", USUAL, SCALED_TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_RETURNED, TYPE_FLOAT16),
     "returns the scale rounded to float16, but uses it in float32", "Return the scale in float32."},
    {"returned-bfloat16", RARE, SCALED_TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_RETURNED, TYPE_BFLOAT16),
     "returns the scale rounded to bfloat16, but uses it in float32", "Return the scale in float32."},
    {"returned-float16", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_RETURNED, TYPE_FLOAT16),
     "returns the row's scale and offset rounded to float16, but uses them in float32",
     "Return scale and offset in float32."},
    {"returned-bfloat16", RARE, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_RETURNED, TYPE_BFLOAT16),
     "returns the row's scale and offset rounded to bfloat16, but uses them in float32",
     "Return scale and offset in float32."},
    {"other-form", USUAL, IN_TWO_FORMS, Y_ANY, NO_NEEDS, DOES(STEP_FORM, FORM_OTHER),
     "computes the scale in the other form: m * (1 / DMAX), or 1 / (DMAX / m), as npu_add_rms_norm_dynamic_quant does",
     "Choose the form with scale_form: the product is CANN 9.0's, the inverse that of 8.5 and of groups."},
    {"other-form", USUAL, BLOCK_TO_INT8, Y_ANY, NO_NEEDS, DOES(STEP_FORM, FORM_OTHER), "computes the scale as 1 / q",
     "Multiply m by the float32 value of 1 / DMAX."},
    {"other-form", USUAL, SCALED_TO_FLOAT8 & ~BY_BLOCK, Y_FLOAT8, NO_NEEDS, DOES(STEP_FORM, FORM_OTHER),
     "computes the scale as 1 / (DMAX / m)", "Multiply m by the float32 value of 1 / DMAX."},
    {"other-form", USUAL, BLOCK_TO_FLOAT8, Y_FLOAT8, NEEDS_2(blocks, rounded_inverse), DOES(STEP_FORM, FORM_OTHER),
     "computes the scale as 1 / (DMAX / m)", "Divide m by DMAX."},
    {"scale-product", COMMON, BLOCK_TO_FLOAT8, Y_FLOAT8, NEEDS_2(blocks, rounded_inverse),
     DOES(STEP_FORM, FORM_PRODUCT), "computes the scale as m * (1 / DMAX), as npu_dynamic_quant does",
     "Divide m by DMAX."},
    {"dst-type-max-ignored", COMMON, SCALED_TO_FLOAT8, Y_FLOAT8, NEEDS(other_type_max), DOES(STEP_UNIT, UNIT_OF_TYPE),
     "ignores dst_type_max: takes the largest value of y's type for DMAX", "DMAX is dst_type_max where that is not 0."},
    {"other-form", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_FORM, FORM_OTHER),
     "computes the scale as 1 / (DMAX / m)", "Compute the scale as the rule of this operator says."},
    {"scale-product", USUAL, BY_RULE, Y_INT8, NO_NEEDS, DOES(STEP_FORM, FORM_PRODUCT),
     "computes the scale as m * (1 / DMAX)", "Compute the scale as the rule of this operator says."},
    {"scale-divided", COMMON, NOT_BLOCK_TO_FLOAT8, Y_ANY, NEEDS(rounded_inverse), DOES(STEP_FORM, FORM_DIVIDED),
     "computes the scale as m / DMAX", "Compute the scale as this operator does, such as m * (1 / DMAX)."},
    {"scale-is-largest", RARE, SYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_FORM, FORM_LARGEST), "returns m as the scale",
     "Return the scale, which is about m / DMAX."},
    {"scale-is-factor", USUAL, SCALED_TO_FLOAT8, Y_FLOAT8, NO_NEEDS, DOES(STEP_FORM, FORM_FACTOR),
     "returns DMAX / m as the scale", "Return the scale to multiply y by, which is about m / DMAX."},
    {"scale-is-factor", USUAL, SYMMETRIC &TO_INT8, Y_ANY, NO_NEEDS, DOES(STEP_FORM, FORM_FACTOR),
     "returns what x is multiplied by, DMAX / m, as the scale, as npu_swiglu_quant does",
     "Return the scale to multiply y by: m * (1 / DMAX)."},
    {"smooth-left-out", COMMON, DYNAMIC, Y_ANY, NEEDS(smooth), DOES(STEP_SMOOTH, SMOOTH_LEFT_OUT),
     "leaves the smooth scales out", "Multiply x by them first."},
    {"smooth-divides", COMMON, DYNAMIC, Y_ANY, NEEDS(smooth), DOES(STEP_SMOOTH, SMOOTH_DIVIDES),
     "divides by the smooth scales", "Multiply: pass the reciprocals if your smoothing divides."},
    {"smooth-after-range", USUAL, DYNAMIC, Y_ANY, NEEDS(smooth), DOES(STEP_SMOOTH, SMOOTH_AFTER_RANGE),
     "takes the extremes of x without the smooth scales", "Take the extremes of x * smooth_scales."},
    {"smooth-in-range-only", RARE, DYNAMIC, Y_ANY, NEEDS(smooth), DOES(STEP_SMOOTH, SMOOTH_IN_RANGE_ONLY),
     "uses the smooth scales for the extremes only", "Quantise x * smooth_scales."},
    {"smooth-float16", USUAL, DYNAMIC, Y_ANY, NEEDS(smooth), DOES(STEP_SMOOTH, SMOOTH_FLOAT16),
     "rounds x * smooth_scales to float16", "Keep the product in float32."},
    {"smooth-bfloat16", USUAL, DYNAMIC, Y_ANY, NEEDS(smooth), DOES(STEP_SMOOTH, SMOOTH_BFLOAT16),
     "rounds x * smooth_scales to bfloat16", "Keep the product in float32."},
    {"min-scale-ignored", RARE, BY_BLOCK, Y_ANY, NEEDS(min_scale), DOES(STEP_LEAST, LEAST_NONE), "ignores min_scale",
     "Lower the scale to 1 / min_scale, and raise what x is multiplied by to min_scale."},
    {"least-min-scale", USUAL, BY_BLOCK, Y_ANY, NEEDS(min_scale), DOES(STEP_LEAST, LEAST_MIN_SCALE),
     RAISES_SCALE("min_scale"),
     "min_scale is a lower bound of 1 / scale: 1 / min_scale is an upper bound of the scale."},
    {"half-block", RARE, BY_BLOCK, Y_ANY, NEEDS(halves), DOES(STEP_BLOCK, BLOCK_HALF),
     "takes blocks of half the length, and for the scale of a block that of its first half",
     "Check the length of a block: the device has 128."},
    {"row-block-ignored", COMMON, BLOCK_TO_FLOAT8, Y_FLOAT8, NEEDS(row_blocks), DOES(STEP_BLOCK, BLOCK_ONE_ROW),
     "takes blocks of one row, and for the scale of a block that of its first row",
     "A block has row_block_size rows, which share a scale."},
    {"whole-row", RARE, BY_BLOCK, Y_ANY, NEEDS(blocks_of_row), DOES(STEP_BLOCK, BLOCK_ROW),
     "takes the largest |x| of the whole row for each of its blocks", "Begin anew with each block."},
    {"range-of-tensor", COMMON, BY_ROWS, Y_ANY, NEEDS(tensor_range), DOES(STEP_BLOCK, BLOCK_TENSOR),
     "takes the range of the whole tensor for each of its rows", BEGIN_ANEW},
    {"range-of-columns", RARE, BY_ROWS, Y_ANY, NEEDS(column_ranges), DOES(STEP_BLOCK, BLOCK_COLUMN),
     "takes the range of each column, and returns the scales of the first columns",
     "Look for the extremes along a row, the last dimension."},
    RANGES_OF("8", 3),
    RANGES_OF("16", 4),
    RANGES_OF("32", 5),
    RANGES_OF("64", 6),
    RANGES_OF("128", 7),
    RANGES_OF("256", 8),
    RANGES_OF("512", 9),
    RANGES_OF("1024", 10),
    {"range-of-2-rows", RARE, BY_ROWS, Y_ANY, NEEDS(row_ranges), DOES(STEP_BLOCK, BLOCK_ROWS + 1),
     "takes a range for each two rows", BEGIN_ANEW},
    {"range-of-4-rows", RARE, BY_ROWS, Y_ANY, NEEDS(row_ranges), DOES(STEP_BLOCK, BLOCK_ROWS + 2),
     "takes a range for each four rows", BEGIN_ANEW},
    {"running-range", USUAL, BY_ROWS, Y_ANY, NEEDS(tensor_range), DOES(STEP_BLOCK, BLOCK_RUNNING),
     "takes the range of a row and of all rows before it", BEGIN_ANEW},
    {"one-scale", RARE, FINDS_SCALES, Y_ANY, NO_NEEDS, DOES(STEP_OTHER_SCALE, OTHER_SCALE_OF_DUMP),
     "takes one scale for all, whatever x is", FIND_SCALES},
    {"one-scale-returned", RARE, FINDS_SCALES, Y_ANY, NO_NEEDS,
     DOES(STEP_OTHER_SCALE, OTHER_SCALE_ONLY_RETURNED + OTHER_SCALE_OF_DUMP),
     "returns one scale for all, whatever x is, but does not use it for y", FIND_SCALES},
    POWERS_OF_2("up", UP, "up to a power of two"),
    POWERS_OF_2("down", DOWN, "down to a power of two"),
    POWERS_OF_2("nearest", NEAREST, "to the power of two with the nearest exponent"),
    POWERS_OF_2("nearer", NEARER, "to the nearest power of two"),
    {"range-reaches-next-row", USUAL, BY_ROWS, Y_ANY, NEEDS(tensor_range), DOES(STEP_BLOCK, BLOCK_REACHING),
     "takes the range of a row and of the first columns of the next one", "Mask the columns beyond the end of a row."},
    {"range-begins-before", RARE, BY_ROWS, Y_ANY, NEEDS(tensor_range), DOES(STEP_BLOCK, BLOCK_EARLY),
     "takes the range of a row and of the last columns of the one before", "Check where a row begins."},
    RETURNED_AND_RANGE("next-row", PLACE_NEXT, BY_ROWS, row_scales, NEXT("row")),
    RETURNED_AND_RANGE("row-before", PLACE_PREVIOUS, BY_ROWS, row_scales, BEFORE("row")),
    RETURNED_AND_RANGE("first-row", PLACE_FIRST, BY_ROWS, row_scales, "the first row for all"),
    RETURNED_AND_RANGE("next-row-but-last", PLACE_NEXT_BUT_LAST, BY_ROWS, row_scales, NEXT_BUT_LAST("row")),
    RETURNED_AND_RANGE("row-before-but-first", PLACE_PREVIOUS_BUT_FIRST, BY_ROWS, row_scales, BEFORE_BUT_FIRST("row")),
    RETURNED_AND_RANGE("next-block", PLACE_NEXT, BY_BLOCK, blocks, NEXT("block")),
    RETURNED_AND_RANGE("block-before", PLACE_PREVIOUS, BY_BLOCK, blocks, BEFORE("block")),
    RETURNED_AND_RANGE("first-block", PLACE_FIRST, BY_BLOCK, blocks, "the first block for all"),
    RETURNED_AND_RANGE("next-block-but-last", PLACE_NEXT_BUT_LAST, BY_BLOCK, blocks, NEXT_BUT_LAST("block")),
    RETURNED_AND_RANGE("block-before-but-first", PLACE_PREVIOUS_BUT_FIRST, BY_BLOCK, blocks, BEFORE_BUT_FIRST("block")),
    /* ---- which parameter ---- */
    {"scale-of-next", USUAL, GIVEN_SCALES | DYNAMIC, Y_ANY, NEEDS(scales), DOES(STEP_SCALE_PLACE, PLACE_NEXT),
     "takes the scale of the next index; after the last comes the first", "Check the base address of the scales."},
    {"scale-of-one-before", USUAL, GIVEN_SCALES | DYNAMIC, Y_ANY, NEEDS(scales), DOES(STEP_SCALE_PLACE, PLACE_PREVIOUS),
     "takes the scale of the index before; before the first comes the last", "Check the base address of the scales."},
    {"scale-of-first", COMMON, GIVEN_SCALES | READS_GROUPS | DYNAMIC, Y_ANY, NEEDS(scales),
     DOES(STEP_SCALE_PLACE, PLACE_FIRST), "takes the first scale for all, or the first of the row's group",
     "Check the stride with which scales are read: it is 0 here."},
    {"other-axis", USUAL, BY_AXIS, Y_ANY, NEEDS_2(scales, rows),
     DOES(STEP_SCALE_PLACE, PLACE_OTHER_AXIS, STEP_OFFSET_PLACE, PLACE_OTHER_AXIS),
     "takes scales and zero points by the row if they belong to columns, and by the column if not",
     "Check axis: scales run along that dimension."},
    {"other-axis", USUAL, BY_COLUMNS, Y_ANY, NEEDS_2(scales, rows),
     DOES(STEP_SCALE_PLACE, PLACE_OTHER_AXIS, STEP_OFFSET_PLACE, PLACE_OTHER_AXIS),
     "takes scales and offsets by the row", "Scales and offsets belong to columns."},
    {"channels-first", RARE, BY_AXIS | BY_COLUMNS, Y_ANY, NEEDS_2(scales, rows),
     DOES(STEP_SCALE_PLACE, PLACE_CHANNELS_FIRST, STEP_OFFSET_PLACE, PLACE_CHANNELS_FIRST),
     "takes x for [N, C, ...], as NCHW is, though its channels are the last dimension", "Check the layout of x."},
    {"channels-last", RARE, BY_AXIS, Y_ANY, NEEDS_2(scales, rows),
     DOES(STEP_SCALE_PLACE, PLACE_CHANNELS_LAST, STEP_OFFSET_PLACE, PLACE_CHANNELS_LAST),
     "takes x for [..., C], as NHWC is, though its channels are another dimension", "Check the layout of x."},
    BY_DIMENSION(0),
    BY_DIMENSION(1),
    BY_DIMENSION(2),
    BY_DIMENSION(3),
    BY_DIMENSION(4),
    BY_DIMENSION(5),
    BY_DIMENSION(6),
    FIRST_REUSED("16", 4),
    FIRST_REUSED("32", 5),
    FIRST_REUSED("64", 6),
    {"scale-by-other-axis", RARE, BY_AXIS | FROM_NARROW, Y_ANY, NEEDS_3(scales, offsets, rows),
     DOES(STEP_SCALE_PLACE, PLACE_OTHER_AXIS),
     "takes scales by the other axis, rows for columns or columns for rows, but offsets by the right one",
     "Index the scales as the offsets."},
    {"offset-by-other-axis", RARE, BY_AXIS | FROM_NARROW, Y_ANY, NEEDS_2(offsets, rows),
     DOES(STEP_OFFSET_PLACE, PLACE_OTHER_AXIS),
     "takes offsets by the other axis, rows for columns or columns for rows, but scales by the right one",
     "Index the offsets as the scales."},
    {"word-of-next", USUAL, READS_WORDS, Y_ANY, NEEDS(scales),
     DOES(STEP_SCALE_PLACE, PLACE_NEXT, STEP_OFFSET_PLACE, PLACE_NEXT),
     "takes the word of the next index; after the last comes the first", "Check the base address of the words."},
    {"word-of-one-before", USUAL, READS_WORDS, Y_ANY, NEEDS(scales),
     DOES(STEP_SCALE_PLACE, PLACE_PREVIOUS, STEP_OFFSET_PLACE, PLACE_PREVIOUS),
     "takes the word of the index before; before the first comes the last", "Check the base address of the words."},
    {"word-of-first", USUAL, READS_WORDS, Y_ANY, NEEDS(scales),
     DOES(STEP_SCALE_PLACE, PLACE_FIRST, STEP_OFFSET_PLACE, PLACE_FIRST), "takes the first word for all",
     "Check the stride with which words are read: it is 0 here."},
    {"offset-of-next", USUAL, BY_AXIS | BY_COLUMNS | MAKES_WORDS, Y_ANY, NEEDS(offsets),
     DOES(STEP_OFFSET_PLACE, PLACE_NEXT), "takes the offset of the next index; after the last comes the first",
     "Check the base address of the offsets."},
    {"offset-of-one-before", RARE, BY_AXIS | BY_COLUMNS | MAKES_WORDS, Y_ANY, NEEDS(offsets),
     DOES(STEP_OFFSET_PLACE, PLACE_PREVIOUS), "takes the offset of the index before; before the first comes the last",
     "Check the base address of the offsets."},
    {"offset-of-first", USUAL, BY_AXIS | BY_COLUMNS | MAKES_WORDS, Y_ANY, NEEDS(offsets),
     DOES(STEP_OFFSET_PLACE, PLACE_FIRST), "takes the first offset for all",
     "Check the stride with which offsets are read: it is 0 here."},
    {"group-late", COMMON, IN_GROUPS, Y_ANY, NEEDS(groups), DOES(STEP_GROUP, GROUP_LATE),
     "begins each group but the first one row late", "Group e begins with row group_index[e - 1]: use <, not <=."},
    {"group-early", USUAL, IN_GROUPS, Y_ANY, NEEDS(groups), DOES(STEP_GROUP, GROUP_EARLY),
     "begins each group one row early", "Group e begins with row group_index[e - 1]."},
    {"group-first", USUAL, IN_GROUPS, Y_ANY, NEEDS(groups), DOES(STEP_GROUP, GROUP_FIRST),
     "takes the first group's scales for all rows", "Take the scales of the row's group."},
    {"group-last", USUAL, IN_GROUPS, Y_ANY, NEEDS(groups), DOES(STEP_GROUP, GROUP_LAST),
     "takes the last group's scales for all rows", "Take the scales of the row's group."},
    {"group-next", USUAL, IN_GROUPS, Y_ANY, NEEDS(groups), DOES(STEP_GROUP, GROUP_NEXT),
     "takes the next group's scales, and for the last group the first one's", "Take the scales of the row's group."},
    {"empty-groups-skipped", RARE, IN_GROUPS, Y_ANY, NEEDS_2(groups, empty_group),
     DOES(STEP_GROUP, GROUP_WITHOUT_EMPTY), "numbers the groups without the empty ones",
     "A group without rows has scales, too: they are skipped with it."},
    {"index-as-int32", USUAL, IN_GROUPS, Y_ANY, NEEDS_2(groups, words), DOES(STEP_GROUP, GROUP_WORDS),
     "reads an int64 group_index as words of 32 bits, every other one 0",
     "Check the type of group_index: it is int64."},
    {"group-counts", USUAL, IN_GROUPS, Y_ANY, NEEDS(groups), DOES(STEP_GROUP, GROUP_COUNTS),
     "takes group_index for counts of rows; rows beyond them are the last group's",
     "group_index holds where each group ends."},
    {"scale-of-next-row", COMMON, BY_ROWS | ROW_SCALED, Y_ANY, NEEDS(row_scales), DOES(STEP_TOKEN, PLACE_NEXT),
     "takes the scale of the next row, for the last one the first row's",
     "Check which row's scale is in the register when a row begins."},
    {"scale-of-row-before", USUAL, BY_ROWS | ROW_SCALED, Y_ANY, NEEDS(row_scales), DOES(STEP_TOKEN, PLACE_PREVIOUS),
     "takes the scale of the row before, for the first one the last row's",
     "Check which row's scale is in the register when a row begins."},
    {"scale-of-first-row", USUAL, BY_ROWS | ROW_SCALED, Y_ANY, NEEDS(row_scales), DOES(STEP_TOKEN, PLACE_FIRST),
     "takes the first row's scale for all", "Take each row's own scale."},
    {"scale-of-next-block", USUAL, BY_BLOCK, Y_ANY, NEEDS(blocks), DOES(STEP_TOKEN, PLACE_NEXT),
     "takes the scale of the next block, row after row; the last block takes the first one's",
     "Check which block's scale is in the register when a block begins."},
    {"scale-of-block-before", USUAL, BY_BLOCK, Y_ANY, NEEDS(blocks), DOES(STEP_TOKEN, PLACE_PREVIOUS),
     "takes the scale of the block before, row after row; the first block takes the last one's",
     "Check which block's scale is in the register when a block begins."},
    {"scale-of-first-block", USUAL, BY_BLOCK, Y_ANY, NEEDS(blocks), DOES(STEP_TOKEN, PLACE_FIRST),
     "takes the first block's scale for all", "Take each block's own scale."},
    SCALE_KEPT("next-row-but-last", PLACE_NEXT_BUT_LAST, BY_ROWS | ROW_SCALED, row_scales, NEXT_BUT_LAST("row")),
    SCALE_KEPT("row-before-but-first", PLACE_PREVIOUS_BUT_FIRST, BY_ROWS | ROW_SCALED, row_scales,
               BEFORE_BUT_FIRST("row")),
    SCALE_KEPT("next-block-but-last", PLACE_NEXT_BUT_LAST, BY_BLOCK, blocks, NEXT_BUT_LAST("block")),
    SCALE_KEPT("block-before-but-first", PLACE_PREVIOUS_BUT_FIRST, BY_BLOCK, blocks, BEFORE_BUT_FIRST("block")),
    /* ---- dequant and requant ---- */
    {"row-scale-left-out", USUAL, ROW_SCALED, Y_ANY, NEEDS(row_scale), DOES(STEP_SCALING, SCALING_NO_ROW),
     "leaves the activation scale out", "Multiply by the activation scale after the weight scale."},
    {"scales-first", USUAL, ROW_SCALED, Y_ANY, NEEDS(row_scale), DOES(STEP_SCALING, SCALING_SCALES_FIRST),
     "multiplies the two scales first", "Multiply x by the weight scale, then by the activation scale."},
    {"row-scale-first", USUAL, ROW_SCALED, Y_ANY, NEEDS(row_scale), DOES(STEP_SCALING, SCALING_ROW_FIRST),
     "multiplies by the activation scale before the weight scale", "Multiply by the weight scale first."},
    {"first-product-float16", USUAL, ROW_SCALED, Y_ANY, NEEDS_2(row_scale, float16_inside),
     DOES(STEP_PRODUCT, PRODUCT_FIRST_FLOAT16),
     "keeps x times the weight scale in float16, but not what comes after it", KEEP_IN_FLOAT32},
    {"first-product-bfloat16", USUAL, ROW_SCALED, Y_ANY, NEEDS_2(row_scale, bfloat16_inside),
     DOES(STEP_PRODUCT, PRODUCT_FIRST_BFLOAT16),
     "keeps x times the weight scale in bfloat16, but not what comes after it", KEEP_IN_FLOAT32},
    {"bias-left-out", COMMON, FROM_SUMS, Y_ANY, NEEDS(any_bias), DOES(STEP_BIAS, BIAS_LEFT_OUT), "leaves the bias out",
     "Add the bias."},
    {"bias-of-next", USUAL, FROM_SUMS, Y_ANY, NEEDS(biases), DOES(STEP_BIAS_PLACE, PLACE_NEXT),
     "takes the bias of the next column; after the last comes the first", "Check the base address of the bias."},
    {"bias-of-one-before", USUAL, FROM_SUMS, Y_ANY, NEEDS(biases), DOES(STEP_BIAS_PLACE, PLACE_PREVIOUS),
     "takes the bias of the column before; before the first comes the last", "Check the base address of the bias."},
    {"bias-of-first", USUAL, FROM_SUMS, Y_ANY, NEEDS(biases), DOES(STEP_BIAS_PLACE, PLACE_FIRST),
     "takes the first column's bias for all", "Check the stride with which the bias is read: it is 0 here."},
    {"bias-after-scaling", USUAL, FROM_SUMS, Y_ANY, NEEDS(integer_bias), DOES(STEP_BIAS, BIAS_AFTER_SCALING),
     "adds the int32 bias after scaling", "Add an int32 bias to the sums."},
    {"bias-before-scaling", USUAL, SCALED_SUMS, Y_ANY, NEEDS(float_bias), DOES(STEP_BIAS, BIAS_AFTER_SCALING),
     "adds the bias before scaling", "Add a floating-point bias last."},
    {"bias-before-row-scale", RARE, ROW_SCALED, Y_ANY, NEEDS_2(float_bias, row_scale),
     DOES(STEP_BIAS, BIAS_BEFORE_ROW_SCALE), "adds the bias before the activation scale",
     "Add a floating-point bias last."},
    {"bias-saturates", RARE, FROM_SUMS, Y_ANY, NEEDS(integer_bias), DOES(STEP_BIAS, BIAS_SATURATES),
     "adds the bias with saturation", "The sum is modulo 2^32."},
    {"bias-float", USUAL, FROM_SUMS, Y_ANY, NEEDS(integer_bias), DOES(STEP_BIAS, BIAS_FLOAT),
     "adds the int32 bias in float32", "Add the bias to the int32 sums, then convert the sums."},
    {"one-clamp", USUAL, READS_WORDS, Y_INTEGER, NO_NEEDS, DOES(STEP_ORDER, ORDER_ONE_CLAMP),
     "clamps once, after the offset", "Clamp to -256..255 before the offset, and to -128..127 after it."},
    {"clamp-int8-first", USUAL, READS_WORDS, Y_INTEGER, NO_NEEDS, DOES(STEP_ORDER, ORDER_CLAMP_FIRST),
     "clamps to int8 before the offset", "Clamp to -256..255 before the offset, and to -128..127 after it."},
    {"offset-before-rounding", USUAL, READS_WORDS, Y_INTEGER, NO_NEEDS, DOES(STEP_ORDER, ORDER_OFFSET_FIRST),
     "adds the offset before rounding", "Round, clamp to -256..255, add the offset, clamp to -128..127."},
    {"all-scale-bits", USUAL, READS_WORDS | MAKES_WORDS, Y_ANY, NO_NEEDS, DOES(STEP_WORD, WORD_ALL_BITS),
     "uses all 32 bits of the scale", "The low 13 bits of the scale count as 0."},
    /* ---- trans_quant_param ---- */
    {"other-round-mode", USUAL, MAKES_WORDS, Y_ANY, NO_NEEDS, DOES(STEP_WORD, WORD_OTHER_ROUND_MODE),
     "uses the other round_mode", "round_mode 0 truncates the scale to 19 bits, 1 rounds it."},
    {"no-flag", USUAL, MAKES_WORDS, Y_ANY, NO_NEEDS, DOES(STEP_WORD, WORD_NO_FLAG), "leaves bit 46 clear",
     "Set bit 46."},
    {"offset-wraps", USUAL, MAKES_WORDS, Y_ANY, NEEDS(offset), DOES(STEP_SATURATION, SATURATE_WRAP),
     "cuts the offset to nine bits without clamping", "Clamp the offset to -256..255."},
    {"offset-int8", USUAL, MAKES_WORDS, Y_ANY, NEEDS(offset), DOES(STEP_SATURATION, SATURATE_INT8),
     "clamps the offset to int8", "Clamp the offset to -256..255: it has nine bits."},
    {"halves-swapped", RARE, MAKES_WORDS, Y_ANY, NO_NEEDS, DOES(STEP_RESULT, RESULT_HALVES_SWAPPED),
     "swaps the two 32-bit halves of a word", "The scale is in bits 31..0."},
    {"reciprocal", COMMON, MAKES_WORDS, Y_ANY, NO_NEEDS, DOES(STEP_SCALING, SCALING_RECIPROCAL), "packs 1 / scale",
     "Pack the scale that the sums are multiplied by."},
    /* ---- floating-point results ---- */
    {"result-truncated", COMMON, TO_FLOATS, Y_HALF, NEEDS(rounded_result), DOES(STEP_RESULT, RESULT_TRUNCATED),
     "cuts the low bits of the result off", "Round to nearest-even: a shift by 16 bits does not."},
    {"result-half-away", USUAL, TO_FLOATS, Y_HALF, NEEDS(rounded_result), DOES(STEP_RESULT, RESULT_HALF_AWAY),
     "rounds halves of the result's last bit away from zero", "Round to nearest-even."},
    {"result-finite", RARE, TO_FLOATS, Y_HALF, NEEDS(overflow), DOES(STEP_RESULT, RESULT_FINITE),
     "stores the largest finite value where a result overflows", "They become infinities."},
    {"result-flushed", USUAL, TO_FLOATS, Y_FLOAT16, NO_NEEDS, DOES(STEP_RESULT, RESULT_FLUSHED),
     "stores zero where a result is subnormal in its type", "Keep subnormal results."},
    {"through-float16", RARE, TO_FLOATS, Y_BFLOAT16, NO_NEEDS, DOES(STEP_RESULT, RESULT_THROUGH_FLOAT16),
     "rounds to float16 on the way to bfloat16", "Round once, from float32."},
    {"through-float16", RARE, TO_FLOATS, Y_FLOAT32, NO_NEEDS, DOES(STEP_RESULT, RESULT_THROUGH_FLOAT16),
     "rounds the result to float16", "Store the float32."},
    {"through-bfloat16", RARE, BY_COLUMNS, Y_FLOAT16, NO_NEEDS, DOES(STEP_RESULT, RESULT_THROUGH_BFLOAT16),
     "rounds to bfloat16 on the way to float16", "Round once, from float32."},
    {"through-bfloat16", RARE, TO_FLOATS, Y_FLOAT32, NEEDS(rounded_result), DOES(STEP_RESULT, RESULT_THROUGH_BFLOAT16),
     "rounds the result to bfloat16", "Store the float32."},
    /* ---- layout ---- */
    {"nibbles-swapped", COMMON, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_NIBBLES_SWAPPED),
     "swaps the two int4 of a byte", "The even element is in the low half of a byte."},
    {"nibbles-swapped", COMMON, MICROSCALES, Y_FLOAT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_NIBBLES_SWAPPED),
     "puts the even element of a byte in the high half", "The even element is in the low half of its byte."},
    {"halves-of-32", COMMON, MICROSCALES, Y_FLOAT4, NEEDS(runs_of_32), DOES(STEP_LAYOUT, LAYOUT_HALVES_OF_32),
     "puts elements j and j + 16 of each 32 in byte j, as ggml's mxfp4 does", "Two elements of a byte are neighbours."},
    {"words-reversed", RARE, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_WORD_REVERSED),
     "packs words from the other end", "Element 8k is in the lowest bits of word k."},
    {"awq-order", USUAL, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_AWQ),
     "packs int4 in AWQ's order: a word holds its elements 0 2 4 6 1 3 5 7", PACK_IN_ORDER},
    {"halves-of-32", USUAL, TO_INT4, Y_INT4, NEEDS(runs_of_32), DOES(STEP_LAYOUT, LAYOUT_HALVES_OF_32),
     "packs 32 int4 as ggml does: byte j holds elements j and j + 16", PACK_IN_ORDER},
    {"halves-of-8", RARE, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_HALVES_OF_8),
     "packs the halves of a word's elements side by side: byte j holds elements j and j + 4", PACK_IN_ORDER},
    {"words-unmasked", USUAL, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_WORDS_UNMASKED),
     "joins the int4 of a word without a mask: a negative one sets all bits above it", MASK},
    {"words-added", RARE, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_WORDS_ADDED),
     "adds the int4 of a word without a mask: a negative one takes 1 from the next", MASK},
    {"bytes-unmasked", USUAL, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_BYTES_UNMASKED),
     "joins the int4 of a byte without a mask: a negative lower one sets all bits of the upper one", MASK},
    {"bytes-added", RARE, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_BYTES_ADDED),
     "adds the int4 of a byte without a mask: a negative lower one takes 1 from the upper one", MASK},
    /* Without -8 the sum fits int8: in symmetric operators this is bytes-added. */
    {"bytes-saturated", RARE, AFFINE, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_BYTES_SATURATED),
     "adds the int4 of a byte without a mask, and clamps the sum to int8", MASK},
    {"bytes-swapped", RARE, TO_INT4, Y_INT4, NO_NEEDS, DOES(STEP_LAYOUT, LAYOUT_BYTES_SWAPPED),
     "stores the bytes of words in the opposite order", "A word is an int32 of this machine's byte order."},
    {"bytes-swapped", RARE, ALL, Y_BYTES, NO_NEEDS, DOES(STEP_RESULT, RESULT_BYTES_SWAPPED),
     "stores the bytes of elements in the opposite order", "Store the elements in this machine's byte order."},
    {"x-nibbles-swapped", USUAL, FROM_NARROW | READS_GROUPS, Y_ANY, NEEDS(int4_x),
     DOES(STEP_INPUT_LAYOUT, LAYOUT_NIBBLES_SWAPPED), "swaps the two elements of a byte",
     "The even element is in the low half of a byte."},
    {"x-words-reversed", RARE, FROM_NARROW, Y_ANY, NEEDS(int4_x), DOES(STEP_INPUT_LAYOUT, LAYOUT_WORD_REVERSED),
     "reads words from the other end", "Element 8k is in the lowest bits of word k."},
    {"x-unsigned-int4", USUAL, FROM_NARROW, Y_ANY, NEEDS(int4_x), DOES(STEP_INPUT_SIGN, INPUT_UNSIGNED_INT4),
     "reads int4 as unsigned", "int4 is two's complement, -8..7."},
    {"x-minus-128", RARE, FROM_NARROW, Y_ANY, NEEDS(int8_x), DOES(STEP_INPUT_SIGN, INPUT_OFFSET_BINARY),
     "reads x as uint8 and subtracts 128", "int8 is two's complement, -128..127."},
    {"x-minus-8", RARE, FROM_NARROW, Y_ANY, NEEDS(int4_x), DOES(STEP_INPUT_SIGN, INPUT_OFFSET_BINARY),
     "reads int4 as unsigned and subtracts 8", "int4 is two's complement, -8..7."},
    {"x-borrowed", RARE, FROM_NARROW, Y_ANY, NEEDS(int4_x), DOES(STEP_INPUT_SIGN, INPUT_BORROWED),
     "adds 1 to the upper int4 of a byte if the lower one is negative, as (byte - lower) >> 4 does",
     "Shift the byte without subtracting: nothing was taken from the upper int4."},
    {"x-awq-order", USUAL, FROM_NARROW, Y_ANY, NEEDS(int4_x), DOES(STEP_INPUT_LAYOUT, LAYOUT_AWQ),
     "reads words in AWQ's order, as their elements 0 2 4 6 1 3 5 7", PACK_IN_ORDER},
    {"x-halves-of-32", USUAL, FROM_NARROW, Y_ANY, NEEDS_2(int4_x, runs_of_32),
     DOES(STEP_INPUT_LAYOUT, LAYOUT_HALVES_OF_32), "reads 32 int4 as ggml does: from byte j elements j and j + 16",
     PACK_IN_ORDER},
    {"x-halves-of-32", USUAL, READS_GROUPS, Y_ANY, NEEDS_2(int4_x, runs_of_32),
     DOES(STEP_INPUT_LAYOUT, LAYOUT_HALVES_OF_32),
     "reads from byte j of each 32 elements j and j + 16, as ggml's mxfp4", "Two elements of a byte are neighbours."},
    {"x-halves-of-8", RARE, FROM_NARROW, Y_ANY, NEEDS(int4_x), DOES(STEP_INPUT_LAYOUT, LAYOUT_HALVES_OF_8),
     "reads from byte j of a word elements j and j + 4", PACK_IN_ORDER},
    {"x-fractal-nz", USUAL, FROM_NARROW | READS_GROUPS, Y_ANY, NEEDS(fractals_of_x),
     DOES(STEP_INPUT_LAYOUT, LAYOUT_FRACTAL_NZ),
     "reads x as FRACTAL_NZ: for each block of columns, 32 bytes wide, all rows", "Convert x to the format ND first."},
    {"transposed", COMMON, FROM_FLOATS | TO_FLOATS | MICROSCALES, Y_ANY, NEEDS(rows),
     DOES(STEP_LAYOUT, LAYOUT_TRANSPOSED), "returns the transposed result",
     "Check the layout of the tensor that was saved."},
    {"fractal-nz", USUAL, FROM_FLOATS | TO_FLOATS, Y_ANY, NEEDS(fractals), DOES(STEP_LAYOUT, LAYOUT_FRACTAL_NZ),
     "stores y as FRACTAL_NZ: for each block of columns, 32 bytes wide, all rows",
     "Convert the result to the format ND before it is saved."},
    {"rows-overwritten", USUAL, MICROSCALES, Y_ANY, NEEDS(rows), DOES(STEP_LAYOUT, LAYOUT_ROWS_OVERWRITTEN),
     "overwrites the first columns of each row but the first: the store of the row before goes beyond its end",
     "Store the columns that do not fill a vector with a mask, or one by one."},
    {"rows-permuted", USUAL, FROM_FLOATS | TO_FLOATS | MICROSCALES, Y_ANY, NEEDS(rows),
     DOES(STEP_LAYOUT, LAYOUT_ROWS_PERMUTED), "returns the rows in another order",
     "Check how rows are numbered in blocks."},
    /* ---- kernels by other definitions: several steps at once ---- */
    {"moe-routing", COMMON, BY_ROW_FACTOR, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_MOE_ROUTING), AS_MOE_ROUTING},
    {"moe-routing-8-5", USUAL, BY_ROW_FACTOR, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_MOE_ROUTING_8_5),
     AS_MOE_ROUTING_8_5},
    {"grouped-swiglu", USUAL, BY_ROW_FACTOR, Y_INT8, NO_NEEDS, DOES(STEP_RULE, RULE_GROUPED_SWIGLU), AS_GROUPED_SWIGLU},
    DIVIDED_M("smoothquant", COMMON, BOUND_1E_5, "1e-5) / DMAX in float32, as SmoothQuant does in PyTorch"),
    DIVIDED_M("divided-m-1e-12", COMMON, BOUND_1E_12, "1e-12) / DMAX"),
    DIVIDED_M("divided-m-1e-10", RARE, BOUND_1E_10, "1e-10) / DMAX"),
    DIVIDED_M("divided-m-1e-8", RARE, BOUND_1E_8, "1e-8) / DMAX"),
    DIVIDED_M("divided-m-1e-6", RARE, BOUND_1E_6, "1e-6) / DMAX"),
    DIVIDED_M("divided-m-epsilon", RARE, BOUND_EPSILON, "FLT_EPSILON) / DMAX"),
    DIVIDED_M("divided-m-other", RARE, BOUND_OF_DUMP, "another number) / DMAX"),
    CONVENTION("half-step-more", USUAL, Y_INTEGER, "takes 127.5 (int4: 7.5) for DMAX", STEP_UNIT, UNIT_HALF_MORE),
    CONVENTION("one-sided-range", USUAL, Y_INTEGER,
               "divides m by 128 (int4: 8) where it is that of a negative v: the scale is max(-lo / 128, hi / 127)",
               STEP_RANGE, RANGE_ONE_SIDED),
    CONVENTION("signed-extreme", RARE, Y_INTEGER,
               "divides the v with the largest |v| by -128 (int4: -8): scales may be negative", STEP_RANGE,
               RANGE_SIGNED),
    CONVENTION("range-clipped", RARE, Y_ANY,
               "takes another number times the largest |v| for m, and clamps what is beyond", STEP_RANGE,
               RANGE_CLIPPED),
    {"range-clipped", RARE, ASYMMETRIC, Y_ANY, NO_NEEDS, DOES(STEP_RANGE, RANGE_CLIPPED),
     "takes another number times lo and hi, and clamps what is beyond", OTHER_DEFINITION},
    {"ggml-q4-0", USUAL, BY_BLOCK, Y_INT4, NO_NEEDS,
     DOES(STEP_RANGE, RANGE_SIGNED, STEP_FORM, FORM_DIVIDED, STEP_LEAST, LEAST_NONE, STEP_SCALING, SCALING_INVERSE_OR_0,
          STEP_ROUNDING, ROUND_HALF_ADDED_8, STEP_RETURNED, TYPE_FLOAT16),
     "is ggml's q4_0: the x with the largest |x| becomes -8, 8.5 is added to round, and the scale is float16",
     OTHER_DEFINITION},
    {"smoothquant-float16", USUAL, BY_ROW_FACTOR, Y_ANY, NEEDS_2(half_x, x_not_bfloat16), SMOOTHQUANT(FLOAT16),
     "divides by max(m, 1e-5) / DMAX in float16, as SmoothQuant does in PyTorch", OTHER_DEFINITION},
    {"smoothquant-bfloat16", USUAL, BY_ROW_FACTOR, Y_ANY, NEEDS_2(half_x, x_not_float16), SMOOTHQUANT(BFLOAT16),
     "divides by max(m, 1e-5) / DMAX in bfloat16, as SmoothQuant does in PyTorch", OTHER_DEFINITION},
    {"onnx-dynamic", USUAL, ASYMMETRIC, Y_INT8, NO_NEEDS,
     DOES(STEP_RANGE, RANGE_WITH_ZERO, STEP_LEAST, LEAST_ONE_FOR_ZERO, STEP_TOKEN_OFFSET, TOKEN_OFFSET_UNSIGNED,
          STEP_SCALING, SCALING_DIVISION, STEP_ORDER, ORDER_ROUND_FIRST),
     "is ONNX's DynamicQuantizeLinear, as ONNX Runtime computes it, with 128 subtracted from its uint8",
     OTHER_DEFINITION},
    {"pytorch-asymmetric", USUAL, ASYMMETRIC, Y_ANY, NO_NEEDS,
     DOES(STEP_RANGE, RANGE_WITH_ZERO, STEP_LEAST, LEAST_OF(BOUND_OF_SCALE, BOUND_EPSILON), STEP_TOKEN_OFFSET,
          TOKEN_OFFSET_SMALLER_ERROR),
     "computes scale and integer zero point as PyTorch's choose_qparams_per_token_asymmetric does", OTHER_DEFINITION},
    {"xnnpack-qd8", USUAL, ASYMMETRIC, Y_INT8, NO_NEEDS,
     DOES(STEP_RANGE, RANGE_WITH_ZERO, STEP_UNIT, UNIT_OTHER_FACTOR, STEP_LEAST, LEAST_NONE, STEP_TOKEN_OFFSET,
          TOKEN_OFFSET_SMALLER_ERROR, STEP_ORDER, ORDER_ROUND_FIRST),
     "is XNNPACK's qd8: it multiplies by 255 / (hi - lo) and adds the zero point after rounding", OTHER_DEFINITION},
    {"vllm-azp", COMMON, ASYMMETRIC, Y_ANY, NO_NEEDS,
     DOES(STEP_LEAST, LEAST_NONE, STEP_TOKEN_OFFSET, TOKEN_OFFSET_FROM_LOW_INTEGER, STEP_SCALING, SCALING_DIVISION,
          STEP_ORDER, ORDER_ROUND_FIRST),
     "divides by the scale, rounds, and adds an integer zero point, -128 - lo / scale (int4: -8), as vLLM does",
     OTHER_DEFINITION},
    {"unsigned-zero-point", COMMON, ASYMMETRIC, Y_ANY, NO_NEEDS,
     DOES(STEP_TOKEN_OFFSET, TOKEN_OFFSET_UNSIGNED, STEP_SCALING, SCALING_DIVISION, STEP_ORDER, ORDER_ROUND_FIRST),
     "makes uint8 with a zero point that is -lo / scale, rounded and clamped, and subtracts 128 from both (int4: 8)",
     OTHER_DEFINITION},
    {"ggml-q8-0", COMMON, BLOCK_TO_INT8, Y_ANY, NO_NEEDS,
     DOES(STEP_FORM, FORM_DIVIDED, STEP_LEAST, LEAST_NONE, STEP_SCALING, SCALING_INVERSE_OR_0, STEP_ROUNDING,
          ROUND_HALF_AWAY, STEP_RETURNED, TYPE_FLOAT16),
     "is ggml's q8_0: it multiplies by 1 / (m / DMAX), rounds halves away, and returns the scale as float16",
     OTHER_DEFINITION},
    {"gemmlowp", USUAL, READS_WORDS, Y_INTEGER, NO_NEEDS, DOES(STEP_PRODUCT, PRODUCT_FIXED_POINT),
     "multiplies by a fixed-point scale with two roundings, as gemmlowp does: a doubling high product, then a shift",
     OTHER_DEFINITION},
    FIXED_POINT("fixed-point-away", ROUND_HALF_AWAY, "away from zero, as XNNPACK's rndna does"),
    FIXED_POINT("fixed-point-up", ROUND_HALF_UP, "up, as XNNPACK's rndnu and TFLite's single rounding do"),
    {"operands-float16", USUAL, WITH_SCALES, Y_ANY, NEEDS(over_float16),
     DOES(STEP_INPUT, INPUT_FLOAT16, IN_HALVES(FLOAT16)),
     "rounds every operand and every step to float16, as AscendQuant does with float", "Convert x to float32 first."},
    {"operands-bfloat16", USUAL, WITH_SCALES, Y_ANY, NEEDS(over_bfloat16),
     DOES(STEP_INPUT, INPUT_BFLOAT16, IN_HALVES(BFLOAT16)),
     "rounds every operand and every step to bfloat16, as a kernel on bfloat16 tensors does",
     "Convert x to float32 first."},
    {"all-float16", USUAL, FROM_NARROW, Y_ANY, NEEDS_2(sum, over_float16), DOES(IN_HALVES(FLOAT16)),
     "rounds scale, offset and every step to float16, as a kernel on float16 tensors does", KEEP_IN_FLOAT32},
    {"all-bfloat16", USUAL, FROM_NARROW, Y_ANY, NEEDS_2(sum, over_bfloat16), DOES(IN_HALVES(BFLOAT16)),
     "rounds scale, offset and every step to bfloat16, as a kernel on bfloat16 tensors does", KEEP_IN_FLOAT32},
    {"groups-bfloat16", USUAL, BLOCK_TO_INT8, Y_ANY, NO_NEEDS,
     DOES(STEP_FORM, FORM_DIVIDED, STEP_LEAST, LEAST_NONE, STEP_TOKEN_TYPE, TYPE_BFLOAT16, STEP_SCALING,
          SCALING_DIVISION, STEP_ROUNDING, ROUND_HALF_AWAY),
     "divides by m / DMAX rounded to bfloat16, and rounds halves away, as kernels with bfloat16 scales of groups do",
     OTHER_DEFINITION},
};

const int hypothesis_count = sizeof hypotheses / sizeof hypotheses[0];

/* Whether the type has the subnormals of float32. */
static bool is_wide(npuq_dtype dtype)
{
    const struct dtype *type = dtype_of(dtype);

    return type->kind == KIND_FLOAT && type->bits - type->fraction == 9; /* the sign, and an exponent of 8 bits */
}

/* Whether the tensor of the call's shape is several blocks of FRACTAL_NZ: 16 rows, and 32 bytes of columns. */
static bool has_fractals(const struct call *call, npuq_dtype dtype)
{
    const size_t columns = steps_columns_of_fractal(dtype);

    return call->rows % 16 == 0 && call->columns % columns == 0 && call->columns > columns;
}

/* Whether some row has another group in a grouping that a kernel may take for the right one. */
static bool regroups(const struct call *call, enum grouping grouping)
{
    return call->row_group &&
           memcmp(call->row_group, call->row_group + grouping * call->rows, call->rows * sizeof *call->row_group) != 0;
}

/* Whether a value of the type changes when it is rounded to the half type. int8 and int4 do not. */
static bool has_more(npuq_dtype dtype, npuq_dtype half)
{
    return dtype_is_float(dtype) && dtype != half;
}

struct needs needs_met(const struct call *call)
{
    const struct array *operands = call->operands;
    const struct array *scale = &operands[OPERAND_SCALE];
    const struct array *offset = &operands[OPERAND_OFFSET];
    const struct array *bias = &operands[OPERAND_BIAS];
    const npuq_dtype x = operands[OPERAND_X].dtype;
    const npuq_dtype y = call->options.y_dtype;
    const bool dynamic = call->tokens > 0;
    const bool divides = call->options.divides;
    const bool words = call->op & READS_WORDS;
    const bool scales = call->channels > 1 || (scale->data && call->row_group && call->columns > 1) ||
                        (dynamic && operands[OPERAND_SMOOTH].data && call->columns > 1);
    const bool offsets = (offset->data && offset->count > 1) || (words && call->channels > 1 && y == NPUQ_INT8);
    const bool wide = is_wide(x) || (operands[OPERAND_SMOOTH].data && operands[OPERAND_SMOOTH].dtype != NPUQ_FLOAT16);
    const bool int8_of_words = words && y == NPUQ_INT8;
    const bool anti_quant = call->op & FROM_NARROW;
    const bool microscales = call->op & MICROSCALES;
    const bool reads_groups = call->op & READS_GROUPS;
    const bool reaches_2 = dtype_of(x)->high >= 2; /* times 2^-127 it is not subnormal, and times 2^127 infinite */
    const bool float8_x = (Y_MX_8 & dtype_of(x)->bit) != 0;
    const bool float_offset = offset->data && dtype_is_float(offset->dtype);
    const bool finer_offset = offset->data && (offset->dtype == NPUQ_FLOAT32 || offset->dtype == NPUQ_INT32);
    const bool float_bias = bias->data && bias->dtype != NPUQ_INT32;
    const bool sum = call->op & ASYMMETRIC || (offset->data && !(call->op & MAKES_WORDS)) || float_bias;
    const bool row_scale = operands[OPERAND_ROW_SCALE].data != NULL;
    const bool float32_scale = scale->data && scale->dtype == NPUQ_FLOAT32;
    const bool y_wide = is_wide(y);
    const bool blocks = call->options.block > 0;
    const bool halves = blocks && ((uint64_t)call->options.block + 1) / 2 < call->token_length;
    const bool min_scale = call->options.min_scale > 0;
    const unsigned char *rule = row_rules[call->options.rule];
    const bool by_factor = rule[STEP_SCALING] == SCALING_FACTOR;
    const bool by_division = rule[STEP_SCALING] == SCALING_DIVISION;
    const bool to_float8 = call->op & SCALED_TO_FLOAT8;
    /* A quotient of a subnormal scale is beyond DMAX, or infinite, if the scale has very few bits. To small floats it
     * is infinite. */
    const bool beyond = !(call->op & SYMMETRIC) || (by_division && !to_float8 ? x == NPUQ_FLOAT32 : wide);
    const bool blocks_to_float8 = call->options.rule == RULE_FLOAT8_BLOCK;
    const double dmax = call->options.dst_type_max > 0 ? (double)call->options.dst_type_max : dtype_of(y)->high;
    int exponent;
    /* A product of x and 127 is not rounded, and the scale is a quotient: float64 gives the same after DMAX. To 8-bit
     * floats quotients of 16-bit floats are seldom so near to what decides. */
    const bool one_rounding = x != NPUQ_FLOAT32 && (to_float8 || (by_factor && rule[STEP_FORM] == FORM_FACTOR) ||
                                                    (by_division && rule[STEP_FORM] == FORM_DIVIDED));
    const bool given_scales = call->op & WITH_SCALES;
    /* float64 rounds a single product once, too. A product of few bits is not rounded. */
    const bool long_product = !given_scales || float32_scale || x == NPUQ_FLOAT32;
    const bool excess = anti_quant ? float32_scale && (y != NPUQ_FLOAT32 || offset->data)
                                   : long_product || float_offset || (divides && y == NPUQ_INT32);
    /* Excess in an earlier step. One product is exact in float64, and its sum equals that of a fused multiply-add.
     * Quotients of 16-bit floats are seldom so near to what decides. */
    const bool early_excess = anti_quant
                                  ? float32_scale && offset->data
                                  : !given_scales || (divides && offset->data && (long_product || y == NPUQ_INT32));
    /* 0.49999997 has 24 bits, as have the odd values above 2^23. Products of two 16-bit floats have fewer bits. In hard
     * inputs of group_quant the only offset leaves no room for 24 bits. */
    const bool rounded_half =
        dynamic ? x == NPUQ_FLOAT32 && (rule[STEP_PRODUCT] == AS_DEFINED || rule[STEP_PRODUCT] == PRODUCT_FLOAT32)
                : !given_scales || y == NPUQ_INT32 || (long_product && !(call->row_group && offset->data));
    /* A float16 scale makes no subnormals of integers. A bias that is subnormal itself does not count. The division to
     * small floats takes subnormals for zero itself. */
    const bool subnormals = reads_groups ? y_wide
                            : call->op & (FROM_NARROW | SCALED_SUMS)
                                ? (y_wide && is_wide(scale->dtype)) || row_scale
                                : wide && !(divides && Y_FLOAT8 & dtype_of(y)->bit);
    const bool row_ranges = dynamic && !blocks && !call->options.per_tensor;
    const bool new_subnormals = reads_groups ? reaches_2 : (anti_quant ? float_offset : row_scale && !float_bias);

    return (struct needs){
        .offset = offset->data || int8_of_words,
        .offsets = offsets,
        .float_offset = float_offset,
        .sum = sum,
        .product = !divides,
        .division = divides || to_float8,
        .later_steps = !dtype_is_float(y) || sum || row_scale,
        .scales = scales,
        .scale_not_float16 = scale->dtype != NPUQ_FLOAT16,
        .scale_not_bfloat16 = scale->dtype != NPUQ_BFLOAT16,
        .rows = call->rows > 1,
        .row_scale = row_scale,
        .row_scales = call->rows > 1 && (call->tokens > 1 || row_scale),
        .groups = call->row_group && call->rows > 1 && call->groups > 1,
        .smooth = operands[OPERAND_SMOOTH].data != NULL,
        .any_bias = bias->data != NULL,
        .integer_bias = bias->data && bias->dtype == NPUQ_INT32,
        .float_bias = float_bias,
        .x_not_float16 = x != NPUQ_FLOAT16,
        .x_not_bfloat16 = x != NPUQ_BFLOAT16,
        .half_x = x == NPUQ_FLOAT16 || x == NPUQ_BFLOAT16,
        .int4_x = dtype_of(x)->bits == 4,
        .float8_x = float8_x,
        .overflow = !reads_groups || y == NPUQ_FLOAT16 || reaches_2,
        .rounded_result = !reads_groups || y == NPUQ_FLOAT16 || float8_x,
        .wide_x = wide,
        .beyond = beyond || min_scale,
        .min_scale = min_scale,
        .blocks = blocks && call->tokens > 1,
        .blocks_of_row = blocks && call->tokens > call_bands(call, call->token_rows),
        .row_blocks = call->token_rows > 1,
        .halves = halves,
        .fine_offset = finer_offset || (offset->data && offset->dtype == NPUQ_FLOAT16),
        .finer_offset = finer_offset,
        .rounded = !(call->op & MAKES_WORDS) || offset->data,
        .excess = excess,
        .subnormals = subnormals,
        .new_subnormals = new_subnormals,
        .long_product = long_product,
        .rounded_half = rounded_half,
        .int8_y = y == NPUQ_INT8,
        .uint8_y = y == NPUQ_UINT8,
        .int8_x = x == NPUQ_INT8,
        .runs_of_32 = call->count % 32 == 0,
        .fractals = has_fractals(call, y),
        .fractals_of_x = has_fractals(call, x),
        .early_excess = early_excess && !one_rounding,
        .float32 = x == NPUQ_FLOAT32 || float32_scale,
        .float16_inside = microscales ? x == NPUQ_FLOAT32 : y != NPUQ_FLOAT16 || sum,
        .bfloat16_inside = microscales ? x != NPUQ_BFLOAT16 : y != NPUQ_BFLOAT16 || sum,
        .row_ranges = row_ranges,
        .factor = !call->options.rule || by_factor,
        .over_float16 = finer_offset || has_more(x, NPUQ_FLOAT16) || has_more(scale->dtype, NPUQ_FLOAT16) ||
                        has_more(y, NPUQ_FLOAT16),
        .over_bfloat16 = finer_offset || has_more(x, NPUQ_BFLOAT16) || has_more(scale->dtype, NPUQ_BFLOAT16) ||
                         has_more(y, NPUQ_BFLOAT16),
        .rounded_inverse = !to_float8 || frexp(dmax, &exponent) != 0.5,
        .other_type_max = call->options.dst_type_max > 0 && dmax != dtype_of(y)->high,
        .other_scaling = blocks_to_float8 || !(by_division && rule[STEP_FORM] == FORM_DIVIDED),
        .small_scale = rule[STEP_FORM] != FORM_FACTOR,
        .tensor_range = row_ranges && call->rows > 1,
        .column_ranges = row_ranges && call->rows > 1 && call->columns > 1,
        .empty_group = regroups(call, GROUPED_WITHOUT_EMPTY),
        .words = regroups(call, GROUPED_BY_WORDS),
        .biases = bias->data && call->columns > 1,
        .two_axes = call->op & MX && call->rows > 1 && call->columns > 1,
        .groups_of_line = call->op & MX && call->shape[call_axis(call)] > call->token_length,
        .low_bound = call->options.mx.max_low_bound > 0,
        /* What float16 loses of its tiny values hides it. */
        .tiny_results = given_scales || wide || (microscales ? dtype_of(y)->bits == 4 : y != NPUQ_FLOAT8_E5M2),
    };
}

/* A need is a byte of the structure: all of its members are bool. */
static bool are_met(const struct needs *needs, const struct needs *met)
{
    const unsigned char *needed = (const unsigned char *)needs;
    const unsigned char *given = (const unsigned char *)met;
    bool is_missing = false;

    for (size_t i = 0; i < sizeof *needs; i++) {
        is_missing |= needed[i] > given[i];
    }
    return !is_missing;
}

/* Whether an operand can be taken for another type. Other pairs of widths are unlikely, or read beyond the operand. */
static bool can_read(const struct array *array, int how)
{
    const struct dtype *own = dtype_of(array->dtype);
    const struct dtype *other = &dtypes[how < READ_AS ? 0 : how - READ_AS];
    const bool half = own->bits == 2 * other->bits && own->kind == KIND_FLOAT && other->kind == KIND_FLOAT;

    return how < READ_AS || (array->data && own != other && (half || own->bits == other->bits));
}

/* Whether dividing the number of an element by a stride gives the channel that a dimension's index gives. */
static bool is_stride_of(const struct call *call, int dimension, size_t stride)
{
    const bool is_outer = call_stride(call, dimension) * call->shape[dimension] == call->count;

    return call_stride(call, dimension) == stride && (is_outer || call->shape[dimension] % call->channels == 0);
}

/* Whether the dimensions of x make a place of scales possible, and other than the right one and those before it. */
static bool has_dimension(const struct call *call, int place)
{
    const int dimension = place - PLACE_OF_DIMENSION;

    if (place <= PLACE_OTHER_AXIS || place >= PLACE_OF_FIRST || call->count == 0) {
        return true;
    }
    const size_t length = steps_elements_of_channel(call);
    const bool first =
        call->ndim > 2 && call->inner == 1 && call->channels == call->columns && length > 1 && length != call->columns;
    if (place == PLACE_CHANNELS_FIRST) {
        return first;
    }
    if (place == PLACE_CHANNELS_LAST) {
        return call->inner > 1 && call->columns > 1 && call->columns % call->channels != 0;
    }
    return call->ndim > 2 && dimension < call->ndim - 1 && call->group_rows == 0 && call->shape[dimension] > 1 &&
           call_stride(call, dimension) != call->inner &&
           !(call->inner == 1 && is_stride_of(call, dimension, call->columns)) &&
           !(first && is_stride_of(call, dimension, length));
}

static bool are_same_places(const struct lines *lines, int a, int b)
{
    size_t i = 0;

    while (i < call_groups(lines) && steps_group_for(lines, i, a) == steps_group_for(lines, i, b)) {
        i++;
    }
    return i == call_groups(lines);
}

/* Whether scales of groups can have that place, and it is neither their own nor that of an order before. */
static bool is_other_place(const struct call *call, int place)
{
    const struct lines lines = call_lines(call, call_axis(call), call->token_length);
    const bool is_possible = place == PLACE_IN_TILES
                                 ? lines.inner == 1 && lines.count % 128 == 0 && lines.pairs % 2 == 0
                             : place == PLACE_WITHOUT_PADDING ? lines.inner == 1 && lines.groups % 2 == 1
                                                              : true;
    bool is_same = !is_possible || are_same_places(&lines, AS_DEFINED, place);

    for (int other = PLACE_NOT_PAIRED; other < place && !is_same; other++) {
        is_same = are_same_places(&lines, other, place);
    }
    return !is_same;
}

/* Whether groups of microscaling are others with these choices. One long group for all has the first scales. */
static bool has_other_groups(const struct variant *variant, const struct call *call)
{
    const int axis = call_axis(call);
    const size_t extent = call->shape[axis];
    const size_t length = variant_size(variant->choice[STEP_BLOCK]);
    const size_t least = length < call->token_length ? length : call->token_length;
    const bool is_first =
        call->op & READS_GROUPS && length >= extent && call_stride(call, axis) * extent == call->count;

    return length == 0 || (length != call->token_length && least < extent && !is_first);
}

/* Whether a kernel of microscaling with these choices does what the call's options do not say already. */
static bool changes_groups(const struct variant *variant, const struct call *call)
{
    const npuq_ref_mx *mx = &call->options.mx;
    const unsigned char *choice = variant->choice;
    const bool by_exponent =
        mx->scale_algorithm == 0 ||
        (mx->scale_algorithm == 2 && (mx->dst_type_max == 0 || mx->dst_type_max == 6 || mx->dst_type_max == 7));
    const bool is_rceil =
        mx->scale_algorithm == 1 || (mx->scale_algorithm == 2 && (mx->dst_type_max == 0 || mx->dst_type_max == 6));
    /* scale_alg 2 rounds what it does not truncate, and then a product is rounded where x would be. */
    const bool is_truncated = call->operands[OPERAND_X].dtype == NPUQ_FLOAT32 && call_axis(call) == call->ndim - 1;
    const bool rounds_to_bfloat16 = mx->scale_algorithm == 2 && by_exponent && !is_truncated;
    const int small = choice[STEP_SMALL_GROUPS] - 1;
    /* Otherwise groups of zeros alone are small. Of float4_e1m2 S is 0 just where the exponent field is. */
    const bool is_same_rule = small == (int)mx->small_groups || !by_exponent ||
                              (call->options.y_dtype == NPUQ_FLOAT4_E1M2 &&
                               (small == NPUQ_REF_RULE_N) == (mx->small_groups == NPUQ_REF_RULE_N));

    return (choice[STEP_TOKEN] == AS_DEFINED || is_other_place(call, choice[STEP_TOKEN])) &&
           (choice[STEP_RETURNED_TOKEN] == AS_DEFINED || is_other_place(call, choice[STEP_RETURNED_TOKEN])) &&
           !((choice[STEP_PRECISION] == TYPE_BFLOAT16 || choice[STEP_INPUT] == INPUT_BFLOAT16) && rounds_to_bfloat16) &&
           !(choice[STEP_CODE] == CODE_FLOOR && mx->scale_algorithm == 0) &&
           !(choice[STEP_CODE] == CODE_RCEIL && is_rceil) &&
           !(choice[STEP_CODE] == CODE_HALF_DOWN && mx->scale_algorithm == 2 && mx->dst_type_max == 7) &&
           !(choice[STEP_SMALL_GROUPS] != AS_DEFINED && is_same_rule) &&
           !(choice[STEP_SATURATION] == SATURATE_NONE && mx->scale_algorithm == 1) && /* nothing is beyond */
           !(choice[STEP_UNIT] != AS_DEFINED && mx->scale_algorithm != 1) &&
           !(choice[STEP_BAD_GROUPS] == (mx->bad_is_nan ? BAD_NAN : BAD_ZEROS)) &&
           choice[STEP_ROUNDING] != (int)steps_rounding_to_small(call);
}

/* Whether elements get scales of other groups, where the choices say so. In one line, the first has another name. */
static bool takes_other_scales(const struct variant *variant, const struct call *call)
{
    const struct lines lines = call_lines(call, call_axis(call), call->token_length);
    const int place = variant->choice[STEP_SCALE_PLACE];
    const int group = variant->choice[STEP_TOKEN];

    return has_other_groups(variant, call) && (place != PLACE_FIRST || lines.count > 1) &&
           (place < PLACE_IN_PAIR ? variant_size(place) <= call->channels - 1 : is_other_place(call, place)) &&
           (group == AS_DEFINED || is_other_place(call, group));
}

/* Whether the call has more than the kernel takes for all, the operands that it takes for other types, the
 * dimension that it takes, and, to tell any number from a wrong scale, two scales or more. */
static bool has_what_is_chosen(const struct variant *variant, const struct call *call)
{
    const struct array *operands = call->operands;
    const size_t scales = call->channels > 1 ? call->channels : call->columns;
    const int block = variant->choice[STEP_BLOCK];

    if (call->op & MICROSCALES) {
        return has_other_groups(variant, call) && changes_groups(variant, call);
    }
    if (call->op & READS_GROUPS) {
        return takes_other_scales(variant, call) && can_read(&operands[OPERAND_X], variant->choice[STEP_INPUT]) &&
               can_read(&operands[OPERAND_SCALE], variant->choice[STEP_SCALE]);
    }
    return (!variant_is_read(variant) || call->tokens > 1) &&
           variant_size(block) <= (block < BLOCK_ROWS ? call->columns : call->rows) - 1 &&
           variant_size(variant->choice[STEP_SCALE_PLACE]) <= scales - 1 &&
           has_dimension(call, variant->choice[STEP_SCALE_PLACE]) &&
           can_read(&operands[OPERAND_X], variant->choice[STEP_INPUT]) &&
           can_read(&operands[call->tokens > 0 ? OPERAND_SMOOTH : OPERAND_SCALE], variant->choice[STEP_SCALE]) &&
           can_read(&operands[OPERAND_OFFSET], variant->choice[STEP_OFFSET]) &&
           can_read(&operands[OPERAND_BIAS], variant->choice[STEP_BIAS]);
}

/* Whether the choices make the call's rule of it, or another rule, which has its own hypothesis. */
static bool is_rule(struct variant variant, const struct call *call)
{
    bool is_one = false;

    if (variant.choice[STEP_RULE] != AS_DEFINED) {
        return variant.choice[STEP_RULE] == (int)call->options.rule;
    }
    for (int step = 0; step < STEPS; step++) {
        if (variant.choice[step] == AS_DEFINED) {
            variant.choice[step] = row_rules[call->options.rule][step];
        }
    }
    /* Halves are float16: nothing moves across one towards zero. */
    if (variant.choice[STEP_ROUNDING] == ROUND_HALF_AWAY && variant.choice[STEP_PRODUCT] == PRODUCT_FLOAT32) {
        variant.choice[STEP_PRODUCT] = PRODUCT_FLOAT16_TRUNCATED;
    }
    for (int rule = RULE_NONE + 1; rule < RULES && !is_one; rule++) {
        is_one = memcmp(variant.choice, row_rules[rule], sizeof variant.choice) == 0;
    }
    return is_one;
}

bool hypothesis_applies(const struct hypothesis *hypothesis, const struct call *call)
{
    const struct needs met = needs_met(call);

    return hypothesis_applies_to(hypothesis, call, &met);
}

bool hypothesis_applies_to(const struct hypothesis *hypothesis, const struct call *call, const struct needs *met)
{
    const npuq_dtype y = call_rounded_dtype(call->op, call->options.y_dtype);

    if (!(hypothesis->operators & call->op) || !(hypothesis->y_types & dtype_of(y)->bit) ||
        !are_met(&hypothesis->needs, met)) {
        return false;
    }
    struct variant variant = {.choice = {0}};
    (void)hypothesis_add(hypothesis, &variant);
    return has_what_is_chosen(&variant, call) && !is_rule(variant, call);
}

bool hypothesis_add(const struct hypothesis *hypothesis, struct variant *variant)
{
    const unsigned char *settings = hypothesis->settings;

    for (int i = 0; i < 2 * MOST_SETTINGS && settings[i + 1] != AS_DEFINED; i += 2) {
        if (variant->choice[settings[i]] != AS_DEFINED) {
            return false;
        }
        variant->choice[settings[i]] = settings[i + 1];
    }
    return true;
}
