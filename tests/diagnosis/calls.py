# SPDX-License-Identifier: BSD-3-Clause
"""Calls on hard inputs, and what the package says of their results."""
import functools
import inspect

import npuquant
from npuquant_facts.operators import OPERATORS

# What the library calls some arguments of the package's functions.
IN_LIBRARY = {"input": "x", "v": "x", "dst_type": "dtype", "dst_dtype": "dtype", "col_block_size": "block",
              "row_block_size": "row_block"}

#: Verdicts on a finding that gives every element: how many decide, depends on the shape, and a device may have made few.
GIVEN = "explained", "possible", "admissible"


class Call:
    """A call on hard inputs. Operators and arguments have their names in the library: npu_quantize() is quantize, its
    input is x.

    arguments: the arguments that are no arrays, also those with their defaults. inputs: the arrays by name; bfloat16 is
    uint16. types: the types of the inputs by name. mistakes: the names of all mistakes that are possible in this call.
    """

    def __init__(self, operator, shape, *, dtypes=(), without=(), seed=1, **arguments):
        self.operator = operator
        self.function = getattr(npuquant, f"npu_{operator}", None) or getattr(npuquant, operator)
        self.names, self.arguments = {}, {}  # the function's names of the arguments, and the defaults
        for name, parameter in inspect.signature(self.function).parameters.items():
            self.names.setdefault(IN_LIBRARY.get(name, name), name)
            self.arguments.setdefault(IN_LIBRARY.get(name, name), parameter.default)
        usual = {"dtype": OPERATORS[operator].results[0].types[0], "rule": "dynamic_quant", "src_type": "float8_e4m3fn"}
        arguments = {**{name: value for name, value in usual.items() if name in self.names}, **arguments}
        self.arguments.update({"dtype": usual["dtype"], **arguments})
        hard = npuquant.hard_inputs(self.function, shape, dtypes=self.in_package(dict(dtypes)), without=without,
                                    seed=seed, **self.in_package(arguments))
        self.hard_call = hard.call
        self.inputs = {IN_LIBRARY.get(name, name): array for name, array in hard.inputs.items()}
        names = {name: array.dtype.name.replace("uint16", "bfloat16") for name, array in self.inputs.items()}
        self.types = {**names, **dict(dtypes)}
        self.same_as = {mistake.name: mistake.same_as for mistake in hard.mistakes}
        self.changed = {mistake.name: mistake.elements for mistake in hard.mistakes}
        self.mistakes = list(self.same_as)

    def in_package(self, arguments):
        return {self.names[name]: value for name, value in arguments.items()}

    def alike(self, mistake):
        """The mistakes, with this one, that give the same wrong results; empty where the mistake changes nothing."""
        first = {name: self.same_as[name] or name for name in self.mistakes if self.changed[name]}
        return [name for name in first if first[name] == first.get(mistake)]

    def diagnosis(self, results):
        """The diagnosis of these results, arrays by name."""
        y, *others = results.values()
        return npuquant.diagnose((y, *others) if others else y, self.function,
                                 **{**self.hard_call, **self.in_package(self.inputs)})

    def diagnose(self, results):
        """The same as JSON."""
        return self.diagnosis(results).to_dict()


@functools.lru_cache(maxsize=None)
def usual(operator):
    """A call with every input, and the usual options."""
    return Call(operator, (40,) if "MAKES_WORDS" in OPERATORS[operator].traits else (12, 40))


def names(finding):
    """The names of a finding's hypotheses."""
    return [hypothesis["name"] for hypothesis in finding["hypotheses"]]


def first_place(said):
    """The findings that explain all differences."""
    return [names(finding) for finding in said["findings"][: said["first_place"]]]
