# SPDX-License-Identifier: BSD-3-Clause
"""The rules of shapes have two evaluations: npuq_make_shape() in src/shape.h, and extents() of the Python package. Both
give the same shapes for drawn facts of a call, by every rule, and by one that no operator has: the scales of pairs of
blocks along any axis.

Then an operator that the library does not have, with options in a structure: C calls it with its rows, and Python's
facts have its options like those of any other.

usage: test_shapes.py SOURCE
CC names the compiler. It makes what both read of src/operators.def.
"""
import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

CALLS = 4000
OWN = r"""
#define EACH_SHAPE(DO) DO(OWN, PAIRS, PAIR) EACH_OTHER_SHAPE(DO)
#define EACH_OPERATOR(DO) DO(own, OWN, WITHOUT) EACH_OTHER_OPERATOR(DO)
#define ARGUMENTS_own(DATA, IN, OPTIONAL, OUT, OPTION) \
    DATA(x, X, X, FLOATS, ALL, 1, NPUQ_MAX_NDIM, OPERAND_X, X, x) \
    OPTION(axis, AXIS, int32_t) \
    STRUCTURE(OPTION, options, own_options) \
    OUT(y, Y, Y, INT8, ALL, 1, NPUQ_MAX_NDIM, OPERAND_Y)
#define MEMBERS_own_options(OPTION) OPTION(block, BLOCK, int64_t) OPTION(min_scale, MIN_SCALE, float)
#define REST_OF_own_options
"""
OF_C = r"""
#include "shape.h"
int make_shape(int rule, int ndim, const int64_t *x, bool per_tensor, int axis, int64_t block, int64_t groups,
               int64_t row_block, int64_t *shape)
{
    return npuq_make_shape((npuq_shape)rule, &(npuq_shape_facts){ndim, x, per_tensor, axis, block, groups, row_block},
                           shape);
}

typedef struct own_options {
    int64_t block;
    float min_scale;
} own_options;
/* The sum of its arguments, with y twice. */
static double own(const char *x, int32_t axis, const own_options *options, const char *y)
{
    return *x + axis + (double)options->block + options->min_scale + 2 * *y;
}
double call_own(void)
{
#define TENSOR(name, ...)       , #name
#define VALUE(name, NAME, type) , VALUE_OF_##NAME
#define VALUE_STRUCTURE         BY_ADDRESS
#define VALUE_OF_AXIS           1000
#define VALUE_OF_BLOCK          20000
#define VALUE_OF_MIN_SCALE      0.5f
    return APPLY(own, ARGUMENTS_own(TENSOR, TENSOR, TENSOR, TENSOR, VALUE));
}
/* What messages call the options. */
const char *names_of_own(void)
{
#define NONE(...)
#define NAME(name, NAME, type)       " " #name
#define NAME_STRUCTURE               , NAMES_IN
#define NAMES_IN(OPTION, name, type) MEMBERS_##type(IN_##name)
#define IN_options(name, NAME, type) " options." #name
    return ARGUMENTS_own(NONE, NONE, NONE, NONE, NAME);
}
"""

source = sys.argv[1]
compiler = os.environ["CC"].split()
with tempfile.TemporaryDirectory() as folder:
    for part in ("include", "src", "python/npuquant_facts"):
        made = shutil.copytree(f"{source}/{part}", f"{folder}/{part}")
    with open(f"{folder}/src/operators.def", "r+") as rows:
        others = re.sub(r"(#define EACH_)(SHAPE|OPERATOR)\(", r"\1OTHER_\2(", rows.read())
        rows.seek(0)
        rows.write(others + OWN)
    subprocess.run([*compiler, "-E", "-P", "-x", "assembler-with-cpp", f"{made}/_rows.py.in",
                    "-o", f"{made}/_rows.py"], check=True)
    subprocess.run([*compiler, "-shared", "-fPIC", f"-I{folder}/src", "-x", "c", "-", "-o", f"{folder}/shape.so"],
                   input=OF_C.encode(), check=True)
    sys.path.insert(0, f"{folder}/python")
    from npuquant_facts.operators import OPERATORS, SHAPES, extents  # noqa: E402
    library = ctypes.CDLL(f"{folder}/shape.so")

if extents("OWN", (3, 130, 5), block=32, axis=1) != (3, 3, 5, 2):  # 5 blocks
    sys.exit("130 values are not 3 pairs of blocks of 32")
draw = random.Random(20261128)
words = ctypes.c_int64 * 9
for _ in range(CALLS):
    x = [draw.choice((0, 1, draw.randint(2, 9), draw.randint(2, 5000), 2**40)) for _ in range(draw.randint(0, 8))]
    per_tensor, axis, block = draw.random() < 0.3, draw.randrange(max(len(x), 1)), draw.choice((1, 8, 128, 2**62))
    groups, row_block = draw.choice((0, 1, 5)), draw.choice((1, 3, 128, 2**62))
    for number, rule in enumerate(SHAPES):
        if not x and SHAPES[rule][0] != "ROWS":
            continue  # Python asks for the results of such a call alone
        shape = words()
        ndim = library.make_shape(number, len(x), words(*x), per_tensor, axis, ctypes.c_int64(block),
                                  ctypes.c_int64(groups), ctypes.c_int64(row_block), shape)
        of_c = tuple(shape[:ndim])
        of_python = extents(rule, x, [groups] * (groups > 0), per_tensor, block, axis, row_block)
        if of_c != of_python:
            sys.exit(f"{rule}: x {x}, per tensor {per_tensor}, axis {axis}, block {block}, groups {groups}, "
                     f"row block {row_block}: {of_c} by src/shape.h, {of_python} by operators.py")

library.call_own.restype, library.names_of_own.restype = ctypes.c_double, ctypes.c_char_p
if library.call_own() != ord("x") + 1000 + 20000 + 0.5 + 2 * ord("y"):
    sys.exit(f"the call of the rows has other arguments: their sum is {library.call_own()}")
if library.names_of_own() != b" axis options.block options.min_scale":
    sys.exit(f"the options are{library.names_of_own().decode()}")
if [option.name for option in OPERATORS["own"].options] != ["axis", "block", "min_scale"]:
    sys.exit(f"Python has the options {OPERATORS['own'].options}")
print(f"{CALLS} calls, {len(SHAPES)} rules")
