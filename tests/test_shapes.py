# SPDX-License-Identifier: BSD-3-Clause
"""The rules of shapes have two evaluations: npuq_make_shape() in src/shape.h, and extents() of the Python package. Both
give the same shapes for drawn facts of a call, by every rule.

Where options are members of a structure, the rows have the header's members in their order.

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
ROWS = """
#include "{source}/python/npuquant_facts/_rows.py.in"
#undef OPTION
#define OPTION(name, NAME, type) #name,
MX = {{OPERATOR(dynamic_mx_quant, DYNAMIC_MX_QUANT, WITH)}}
"""
OF_C = r"""
#include "shape.h"
int make_shape(int rule, int ndim, const int64_t *x, bool per_tensor, int axis, int64_t block, int64_t groups,
               int64_t row_block, int64_t *shape)
{
    return npuq_make_shape((npuq_shape)rule, &(npuq_shape_facts){ndim, x, per_tensor, axis, block, groups, row_block},
                           shape);
}
"""

source = sys.argv[1]
compiler = os.environ["CC"].split()
with tempfile.TemporaryDirectory() as folder:
    made = shutil.copytree(f"{source}/python/npuquant_facts", f"{folder}/npuquant_facts")
    subprocess.run([*compiler, "-E", "-P", "-x", "assembler-with-cpp", "-", "-o", f"{made}/_rows.py"],
                   input=ROWS.format(source=source).encode(), check=True)
    subprocess.run([*compiler, "-shared", "-fPIC", f"-I{source}/src", "-x", "c", "-", "-o", f"{folder}/shape.so"],
                   input=OF_C.encode(), check=True)
    sys.path.insert(0, folder)
    from npuquant_facts._rows import MX  # noqa: E402
    from npuquant_facts.operators import SHAPES, extents  # noqa: E402
    library = ctypes.CDLL(f"{folder}/shape.so")

if extents("OF_PAIRS", (3, 130, 5), block=32, axis=1) != (3, 3, 5, 2):  # 5 blocks
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

with open(f"{source}/include/npuquant/npuquant.h", encoding="utf-8") as header:
    structure = header.read().split("typedef struct npuq_mx {")[1].split("} npuq_mx;")[0]
members = re.findall(r"^    (?:int32_t|float) (\w+);", structure, re.MULTILINE)
tensors, options = MX["dynamic_mx_quant"]
if options != ("axis", *members):
    sys.exit(f"operators.def has the options {options}; the header: axis, and {members}")
print(f"{CALLS} calls, {len(SHAPES)} rules")
