# SPDX-License-Identifier: BSD-3-Clause
"""The rules of shapes have two evaluations: npuq_make_shape() in src/shape.h, and extents() of the Python package. Both
give the same shapes for drawn facts of a call, by every rule, and by one that no operator has: the scales of pairs of
blocks along any axis.

usage: test_shapes.py SOURCE
CC names the compiler. It makes what both read of src/operators.def.
"""
import ctypes
import os
import random
import shutil
import subprocess
import sys
import tempfile

CALLS = 4000
MAKE_SHAPE = r"""
#include "shape.h"
int make_shape(int rule, int ndim, const int64_t *x, bool per_tensor, int axis, int64_t block, int64_t groups,
               int64_t *shape)
{
    return npuq_make_shape((npuq_shape)rule, &(npuq_shape_facts){ndim, x, per_tensor, axis, block, groups}, shape);
}
"""

source = sys.argv[1]
compiler = os.environ["CC"].split()
with tempfile.TemporaryDirectory() as folder:
    for part in ("include", "src", "python/npuquant_facts"):
        made = shutil.copytree(f"{source}/{part}", f"{folder}/{part}")
    with open(f"{folder}/src/operators.def", "r+") as rows:
        with_own = rows.read().replace("#define EACH_SHAPE(DO)", "#define EACH_SHAPE(DO) DO(OWN, PAIRS, PAIR)")
        rows.seek(0)
        rows.write(with_own)
    subprocess.run([*compiler, "-E", "-P", "-x", "assembler-with-cpp", f"{made}/_rows.py.in",
                    "-o", f"{made}/_rows.py"], check=True)
    subprocess.run([*compiler, "-shared", "-fPIC", f"-I{folder}/src", "-x", "c", "-", "-o", f"{folder}/shape.so"],
                   input=MAKE_SHAPE.encode(), check=True)
    sys.path.insert(0, f"{folder}/python")
    from npuquant_facts.operators import SHAPES, extents  # noqa: E402
    library = ctypes.CDLL(f"{folder}/shape.so")

if extents("OWN", (3, 130, 5), block=32, axis=1) != (3, 3, 5, 2):  # 5 blocks
    sys.exit("130 values are not 3 pairs of blocks of 32")
draw = random.Random(20261128)
words = ctypes.c_int64 * 9
for _ in range(CALLS):
    x = [draw.choice((0, 1, draw.randint(2, 9), draw.randint(2, 5000), 2**40)) for _ in range(draw.randint(0, 8))]
    per_tensor, axis, block = draw.random() < 0.3, draw.randrange(max(len(x), 1)), draw.choice((1, 8, 128, 2**62))
    groups = draw.choice((0, 1, 5))
    for number, rule in enumerate(SHAPES):
        if not x and SHAPES[rule][0] != "ROWS":
            continue  # Python asks for the results of such a call alone
        shape = words()
        ndim = library.make_shape(number, len(x), words(*x), per_tensor, axis, ctypes.c_int64(block),
                                  ctypes.c_int64(groups), shape)
        of_c, of_python = tuple(shape[:ndim]), extents(rule, x, [groups] * (groups > 0), per_tensor, block, axis)
        if of_c != of_python:
            sys.exit(f"{rule}: x {x}, per tensor {per_tensor}, axis {axis}, block {block}, groups {groups}: "
                     f"{of_c} by src/shape.h, {of_python} by operators.py")
print(f"{CALLS} calls, {len(SHAPES)} rules")
