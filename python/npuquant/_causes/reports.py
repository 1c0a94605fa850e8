# SPDX-License-Identifier: BSD-3-Clause
"""What _native finds of a call, as JSON and as text. The command prints both."""
from __future__ import annotations

import math
import struct
import textwrap
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPERATORS

#: Facts of _native: a dictionary with the structure of the JSON, without words and formatted numbers.
Facts = Mapping[str, Any]

#: The number of the JSON's form, which changes if a program that reads the JSON has to.
FORMAT = 2

_WIDTH = 100
_RESULTS = ("y", "scale", "offset")


def _wrapped(words: str, indent: str = "  ", first: Optional[str] = None) -> str:
    """Lines of the width at most; first begins the first one, and the indent the others."""
    return textwrap.fill(words, _WIDTH, initial_indent=indent if first is None else first, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def _padded(text: str, width: int) -> str:
    """With one space at least."""
    return f"{text} ".ljust(width)


def _plural(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


# ---- values ----


def format_value(dtype: str, bits: int) -> str:
    """An element of a result: an integer; a float with its bits; a word's bits."""
    kind = TYPES["int64" if dtype == "count" else dtype]
    if kind.kind == "SIGNED" or dtype == "count":
        sign_bit = 1 << (kind.bits - 1)
        return str((bits ^ sign_bit) - sign_bit)
    if kind.kind in ("UNSIGNED", "WORD"):
        return f"0x{bits:016X}" if kind.kind == "WORD" else str(bits)
    size, digits = kind.bits, math.ceil(1 + (kind.mantissa + 1) * math.log10(2))  # which tell its values apart
    value = kind.value(bits)
    sign = "-" if value != value and kind.zeros == 2 and bits >> (size - 1) else ""
    return f"{sign}{value:.{digits}g} (0x{bits:0{size // 4}X})"


def _number(value: float) -> str:
    """A float32 with its bits, another float64 without."""
    if value != value:
        return "NaN"
    try:
        bits, = struct.unpack("<I", struct.pack("<f", value))
    except OverflowError:
        return f"{value:.17g}"
    return f"{value:.9g} (0x{bits:08X})" if TYPES["float32"].value(bits) == value else f"{value:.17g}"


def _indices(index: Iterable[int]) -> str:
    return f"[{', '.join(map(str, index))}]"


# ---- an element, step by step ----

#: (step, kind, value): the kind is "float", "integer" or "place", the indices of an element of x.
_Line = Tuple[str, str, Any]


def _value(line: _Line) -> str:
    _, kind, value = line
    if kind == "place":
        return _indices(value)
    return f"{value:.0f}" if kind == "integer" else _number(value)


def _steps(element: Facts) -> Iterator[Tuple[str, Optional[_Line], Optional[_Line]]]:
    """The steps, each with the line of the definition and that of the hypothesis; None if one lacks the step."""
    others: List[_Line] = element["hypothesis"]["steps"] if element["hypothesis"] else []
    names = [name for name, _, _ in others]
    done = 0
    for line in element["definition"]["steps"]:
        name = line[0]
        if name in names[done:]:
            found = names.index(name, done)
            yield from ((names[i], None, others[i]) for i in range(done, found))
            yield name, line, others[found]
            done = found + 1
        else:
            yield name, line, None
    yield from ((names[i], None, others[i]) for i in range(done, len(names)))


def element_json(element: Facts, name: str = "") -> Dict[str, Any]:
    """name: whose steps are beside those of the definition."""
    dtype, hypothesis, dump = element["dtype"], element["hypothesis"], element["dump"]
    steps = []
    for step, line, other in _steps(element):
        values = {"definition": line, "hypothesis": other}
        steps.append({"step": step, **{key: _value(each) for key, each in values.items() if each}})
    said = {"result": element["result"], "index": list(element["index"]), "steps": steps,
            "definition": format_value(dtype, element["definition"]["bits"])}
    if hypothesis:
        said.update(hypothesis=format_value(dtype, hypothesis["bits"]), name=name)
    if dump is not None:
        said["dump"] = format_value(dtype, dump)
    return said


def _place(result: str, index: Iterable[int]) -> str:
    return f"{result}{_indices(index)}"


def _element_lines(element: Facts, name: str = "") -> Iterator[str]:
    dtype, hypothesis = element["dtype"], element["hypothesis"]
    first, second = 34, 62  # columns
    if hypothesis:
        yield _wrapped(name, " " * second, _padded(_padded("  step", first) + "definition", second))
    for step, line, other in _steps(element):
        text = _padded(f"  {step}", first) + (_value(line) if line else "-")
        if hypothesis and not (line and other and repr(line[2]) == repr(other[2])):  # also of -0, and of NaN
            text = _padded(text, second) + (_value(other) if other else "-")
        yield text
    text = _padded(f"  {element['result']}", first) + format_value(dtype, element["definition"]["bits"])
    yield _padded(text, second) + format_value(dtype, hypothesis["bits"]) if hypothesis else text
    if element["dump"] is not None:
        yield _padded("  in the dump", second if hypothesis else first) + format_value(dtype, element["dump"])


def explanation_text(elements: Iterable[Facts]) -> str:
    return "\n\n".join("\n".join([_place(each["result"], each["index"]), *_element_lines(each)]) for each in elements)


# ---- the device's division ----


def _admission_json(admission: Optional[Facts]) -> Optional[Dict[str, Any]]:
    if admission is None:
        return None
    verdict = "wrong" if admission["wrong"] else "admissible" if admission["differing"] else "equal"
    counts = ["units", "differing", "wrong"] if admission["differing"] else []
    if verdict == "admissible":
        counts += ["possible", "made", "exact_possible", "exact_made", "too_many"]
    return {"verdict": verdict, "unit": admission["unit"], **{count: admission[count] for count in counts}}


def admission_lines(admission: Optional[Facts]) -> Iterator[str]:
    """How the device's division explains the differences; no line if none is admissible."""
    if admission is None or admission["wrong"] == admission["differing"]:
        return
    differing, wrong = admission["differing"], admission["wrong"]
    rest = "; the rest is wrong" if wrong else ""
    yield _wrapped(f"Admissible for the device's vector division: {differing - wrong} of {differing} differing "
                   f"{admission['unit']}{'' if differing == 1 else 's'}{rest}.")
    if not wrong:
        yield _wrapped(f"Quotients one unit off: {admission['made']} of {admission['possible']} rounded ones that can "
                       f"show it, {admission['exact_made']} of {admission['exact_possible']} exact ones; "
                       f"{'too many: ' if admission['too_many'] else ''}a device moves some 6 %.")
        yield "  docs/device.md says what is known of the device's division."


# ---- findings ----


def _range(first: int, last: int) -> str:
    return f"{first} to {last}" if last > first else str(first)


def _part(part: Facts) -> str:
    """columns 64 to 71"""
    several = "s" if part["end"] - part["begin"] > 1 else ""
    return f"{part['unit']}{several} {_range(part['begin'], part['end'] - 1)}"


def name_finding(hypotheses: Iterable[str], part: Optional[Facts]) -> str:
    names = " and ".join(hypotheses)
    return f"{names} in {_part(part)}" if part else names


def _name(finding: Facts) -> str:
    return name_finding((hypothesis["name"] for hypothesis in finding["hypotheses"]), finding["part"])


def _finding_json(finding: Facts) -> Dict[str, Any]:
    counts = {count: finding[count] for count in ("explained", "unexplained", "newly_wrong")}
    weight = {bits: round(finding[bits], 1) for bits in ("prior", "gained", "score")}
    places = {where: dict(finding[where]) for where in ("layout", "part") if finding[where]}
    return {"hypotheses": [dict(hypothesis) for hypothesis in finding["hypotheses"]], **counts, "weight": weight,
            **finding["numbers"], **places}


def _advice_lines(facts: Facts) -> Iterator[str]:
    finding = facts["findings"][0]
    for hypothesis in finding["hypotheses"]:
        yield _wrapped(f"{hypothesis['name']}: the kernel {hypothesis['what']}.")
        yield _wrapped(hypothesis["advice"])
    layout, part = finding["layout"], finding["part"]
    numbers = finding["numbers"]
    if "bound" in numbers:
        yield f"  In this dump the number is {numbers['bound']}."
    if "window" in numbers:
        yield f"  In this dump ranges have {_plural(numbers['window'], 'column')} of the other row."
    if "scale" in numbers:
        offset = f" and every offset {numbers['offset']}" if "offset" in numbers else ""
        unit = _column_unit(facts, "scale") or "row"
        yield f"  Every scale is {numbers['scale']}{offset}, whatever the {unit}: a scale from elsewhere."
    if layout and "overwritten_to" in layout:
        yield f"  Overwritten: the first {layout['overwritten_to']} of {layout['of']} columns."
    elif layout and "unit" in layout:
        begin, of, multiple = layout["untouched_from"], layout["of"], layout["multiple_of"]
        known = f", a multiple of {multiple}" if multiple > 1 else ""
        yield f"  Untouched from {layout['unit']} {begin} on{known}: the last {of - begin} of {of}."
    elif layout:
        yield (f"  {layout['moved']} of {layout['of']} rows are elsewhere; row {layout['row']} holds what belongs to "
               f"row {layout['holds_row']}.")
    if part:
        code = {"row": "that of a block of rows or of one thread", "column": "what a vector loop leaves over"}
        yield _wrapped(f"The rest of y is right: look at the code for {_part(part)} of {part['of']}, such as "
                       f"{code[part['unit']]}.")


# ---- what remains ----


def _has_hard_inputs(facts: Facts) -> bool:
    """Whether the operator is one of the command's, and not one for experts."""
    return facts["operator"] in OPERATORS


def _results(facts: Facts) -> Sequence[str]:
    return _RESULTS if _has_hard_inputs(facts) else [result["name"] for result in facts["results"]]


def _column_unit(facts: Facts, result: str) -> str:
    """What a column of a result is; "" if the result has no columns."""
    if not _has_hard_inputs(facts):
        return "column" if "columns" in facts["remainder"][result] else ""
    traits = OPERATORS[facts["operator"]].traits
    return "column" if result == "y" or "MICROSCALES" in traits else "block" if "BY_BLOCK" in traits else ""


def _remainder_json(facts: Facts) -> Dict[str, Any]:
    remainder, results = facts["remainder"], _results(facts)
    said: Dict[str, Any] = {result: remainder[result]["elements"] for result in results}
    for result in results:
        prefix, unit = "" if result == "y" else f"{result}_", _column_unit(facts, result)
        if said[result]:
            said[f"{prefix}rows"] = dict(remainder[result]["rows"])
            if unit:
                said[f"{prefix}{unit}s"] = dict(remainder[result]["columns"])
    return {**said, "clues": list(remainder["clues"])}


def lines_text(unit: str, lines: Facts) -> str:
    """rows 3 to 7 of 512"""
    of, count, first, last, step = (lines[key] for key in ("of", "count", "first", "last", "step"))
    if of == 1:
        return f"the only {unit}"
    if count == of:
        return f"all {of} {unit}s"
    if count == 1:
        return f"{unit} {last} of {of}"
    if step and (step == 1 or count > len(first)):
        return f"{unit}s {first[0]} to {last} of {of}{f' in steps of {step}' if step > 1 else ''}"
    others = f" and others up to {last}" if count > len(first) else ""
    period = ""
    if "period" in lines:
        more = f"{_range(lines['from'], lines['to'])} more than " if lines["to"] else ""
        period = f"; each is {more}a multiple of {lines['period']}"
    return f"{count} of {of} {unit}s ({', '.join(map(str, first))}{others}{period})"


def _remainder_text(facts: Facts) -> str:
    """Where the elements are that nothing explains."""
    said = []
    for result in _results(facts):
        rest, unit = facts["remainder"][result], _column_unit(facts, result)
        if not rest["elements"]:
            continue
        words = f"{_plural(rest['elements'], 'element')} of {result}"
        if result == "y" or facts["tokens"] > 1:
            words += f" in {lines_text('row', rest['rows'])}"
        if unit:
            words += f" and {lines_text(unit, rest['columns'])}"
        said.append(words)
    return f"What {'remains' if facts['verdict'] == 'partly' else 'differs'}: {'; '.join(said)}."


# ---- a diagnosis ----


def _is_named(facts: Facts) -> bool:
    """Whether the first finding is named as the mistake."""
    return facts["verdict"] in ("explained", "possible", "partly")


def _is_given(facts: Facts) -> bool:
    """Whether the first finding gives every element."""
    return facts["verdict"] in ("explained", "possible")


def _has_remainder(facts: Facts) -> bool:
    """Whether there are places to tell: no hypothesis gives them, but perhaps a word for what is there."""
    return any(facts["remainder"][result]["elements"] for result in _results(facts))


def shown_name(facts: Facts) -> str:
    """What the steps beside those of the definition are those of; empty if there are none beside."""
    if facts["quotient"]:
        return f"quotient one unit {facts['quotient']}"
    return _name(facts["findings"][0]) if facts["element"]["hypothesis"] else ""


def diagnosis_json(facts: Facts) -> Dict[str, Any]:
    said = {
        "format": FORMAT,
        "verdict": facts["verdict"],
        "results": [{key: result[key] for key in ("name", "elements", "differing")} for result in facts["results"]],
        "admissible": _admission_json(facts["admissible"]),
        "device_weight": None if math.isinf(facts["device"]) else round(facts["device"], 1),
        "first_place": facts["first_place"],
        "untried_pairs": facts["untried_pairs"],
        "findings": [_finding_json(finding) for finding in facts["findings"]],
    }
    if facts.get("conventions"):
        said["conventions"] = [{key: getattr(row, key) for key in ("name", "libraries", "options")}
                               for row in facts["conventions"]]
    if _has_remainder(facts):
        said["remainder"] = _remainder_json(facts)
    if facts["element"]:
        said["element"] = element_json(facts["element"], shown_name(facts))
    return said


def _differing(facts: Facts) -> int:
    return sum(result["differing"] for result in facts["results"])


def _conclusion(facts: Facts) -> str:
    admission = facts["admissible"]
    if facts["verdict"] == "equal":
        said = "nothing differs"
    elif facts["verdict"] == "admissible":
        said = "within the device's division"
    elif _is_named(facts):
        best = facts["findings"][0]
        new = best["newly_wrong"]
        said = (f"{'possibly ' if facts['verdict'] == 'possible' else ''}{_name(best)}: explains {best['explained']} of "
                f"{_differing(facts)} differing elements "
                f"{f'but would change {new} that are equal' if new else 'and changes no other'}")
    elif admission and not admission["wrong"]:
        said = "a device's division explains each difference, but a device moves fewer quotients"
    else:
        said = "none of the hypotheses explains this"
    return _wrapped(f"diagnosis: {said}", first="")


def _convention_lines(facts: Facts) -> Iterator[str]:
    """For each choice of options with which nothing differs: the conventions that have it."""
    owners: Dict[str, List[str]] = {}
    for row in facts.get("conventions", ()):
        options = ", ".join(f"{name}={value}" for name, value in row.options.items())
        owners.setdefault(options, []).append(row.owned)
    for options, names in owners.items():
        yield _wrapped(f"With {options} nothing differs: these are the options for {' and '.join(names)}.")


def _doubt(facts: Facts) -> str:
    """Why a finding is only possible."""
    count = _differing(facts)
    deciding = "Only 1 element decides" if count == 1 else f"Only {count} elements decide"
    if facts["findings"][0]["gained"] < count:
        deciding = f"The {count} elements that decide are too much alike"
    inputs = ("the inputs that npuquant hard-inputs makes" if _has_hard_inputs(facts)
              else "more tokens with random values")
    return f"{deciding}: an unknown mistake may give the same. On {inputs}, more elements decide."


def verdict_text(facts: Facts) -> str:
    """The first line, and how the device's division explains the differences."""
    return "\n".join([_conclusion(facts), *admission_lines(facts["admissible"])])


def _summary_lines(facts: Facts) -> Iterator[str]:
    yield _conclusion(facts)
    if facts["untried_pairs"]:
        yield f"  {facts['untried_pairs']} pairs of hypotheses were not tried: that would take too long."
    if facts["verdict"] == "equal":
        return
    if facts["is_one_value"]:
        name = "y" if _has_hard_inputs(facts) else facts["is_one_value"]
        yield f"  Every element of {name} is the same, as of memory that was never written."
    if _is_named(facts):
        yield from _advice_lines(facts)
    yield from _convention_lines(facts)
    if facts["verdict"] == "possible":
        yield _wrapped(_doubt(facts))
    if _has_remainder(facts):
        yield _wrapped(_remainder_text(facts))
    if not _is_given(facts):
        yield from map(_wrapped, facts["remainder"]["clues"])
    yield from admission_lines(facts["admissible"])
    others = facts["findings"][int(_is_named(facts)):facts["first_place"]]
    if others:
        yield _wrapped(f"On these inputs the same bits come from {', '.join(map(_name, others))}.")
        yield ("  The inputs that npuquant hard-inputs makes are meant to tell such mistakes apart." if
               _has_hard_inputs(facts) else "  More tokens with random values tell such mistakes apart.")


def summary_text(facts: Facts) -> str:
    """What is above the table of findings."""
    return "\n".join(_summary_lines(facts))


def diagnosis_text(facts: Facts) -> str:
    paragraphs = [summary_text(facts)]
    findings = facts["findings"][:max(facts["first_place"], 5)]
    if findings:
        rows = [f"  {'hypothesis':<42}{'explained':>10} {'unexplained':>12} {'newly wrong':>12}"]
        rows += [_padded(f"  {_name(each)}", 44)
                 + f"{each['explained']:10} {each['unexplained']:12} {each['newly_wrong']:12}" for each in findings]
        paragraphs.append("\n".join(rows))
    element = facts["element"]
    if element:
        place = f"{_place(element['result'], element['index'])}, step by step:"
        paragraphs.append("\n".join([place, *_element_lines(element, shown_name(facts))]))
    return "\n\n".join(paragraphs)


def _decision_lines(facts: Facts) -> Iterator[str]:
    """What the rule compares, in its order, up to the comparison that decides."""
    proof, rare, rivals, admission = (facts[key] for key in ("proof", "rare", "rivals", "admissible"))
    best = facts["findings"][0] if facts["findings"] else None

    def limited(value: float, limit: float) -> str:
        """With so many digits that the limit is seen to be reached or not."""
        shown = f"{value:.1f}" if (float(f"{value:.1f}") >= limit) == (value >= limit) else f"{value:.6g}"
        return f"{shown}, is {'at least' if value >= limit else 'less than'}"

    def score(limit: float) -> str:
        return f"Its score, {limited(best['score'], limit)} {limit:.0f}."

    def device(bits: float) -> Iterator[str]:
        if rivals["device"] is not None and math.isinf(rivals["device"]):
            yield "A device without a mistake cannot give this dump."
        elif rivals["device"] is not None:
            relation = "at least" if best["prior"] - bits >= rivals["device"] else "less than"
            share = "" if facts["first_place"] else ", for the share of the differences that the finding explains"
            yield (f"How common it is, {best['prior']:.1f}, less {bits:.0f} is {relation} the {rivals['device']:.1f} of a "
                   f"device without a mistake{share}.")

    if facts["verdict"] == "equal":
        yield "Nothing differs."
        return
    fits = outweighs = False
    if not best:
        yield "No finding is left to weigh."
    elif facts["first_place"]:
        excused = admission and 0 < admission["wrong"] < admission["differing"]
        yield f"{_name(best)} gives every element{' that is wrong' if excused else ''}."
        fits = rivals["is_single"] or (rivals["is_sure"] and best["score"] >= -rare)
        if not rivals["is_sure"]:
            yield "All of y is one value, as of memory that was never written."
        elif not rivals["is_single"]:
            yield score(-rare)
        outweighs = fits and (rivals["device"] is None or best["prior"] - proof >= rivals["device"])
        if fits:
            yield from device(proof)
        if outweighs and rivals["is_sure"]:
            yield score(proof)
    elif rivals["has_rest"]:
        yield f"{_name(best)} gives every element that is wrong. A device would not have moved so many other quotients."
        return
    else:
        yield f"{_name(best)} does not give every element."
    if outweighs:
        return
    if admission and admission["differing"] and not admission["wrong"]:
        yield f"{'More' if admission['too_many'] else 'No more'} quotients moved than a device moves."
        if not admission["too_many"]:
            return
    if fits:
        yield from device(rare)
    elif best and not facts["first_place"]:
        if not rivals["is_sure"]:
            yield "All of y is one value, as of memory that was never written."
        yield score(proof + rare)
        yield from device(proof + rare)
        yield f"The weight of another cause that agrees so far, {limited(rivals['other_cause'], -rare)} {-rare:.0f}."


def weights_text(facts: Facts) -> str:
    """How the verdict was found: the bits for and against each explanation, and what the rule compares."""
    name_width, lines = 42, []

    def add(name: str, *bits: Optional[float]) -> None:
        cells = "".join(f"{'-' if each is None else f'{each:.1f}':>11}" for each in bits)
        lines.append(_padded(f"  {name}", name_width + 2) + cells)

    lines.append(_padded("  explanation", name_width + 2) + "".join(f"{head:>11}" for head in (
        "how common", "for", "against", "score")))
    for finding in facts["findings"]:
        add(_name(finding), finding["prior"], finding["gained"], finding["prior"] + finding["gained"] - finding["score"],
            finding["score"])
    if not math.isinf(facts["device"]):
        add("a device without a mistake", facts["device"], None, None, None)
    add("an unknown mistake", None, None, None, 0.0)
    return "\n".join(["Weights in bits: docs/verdicts.md says how they make the verdict.", *lines, "",
                      f"The verdict is {facts['verdict']}:", *map(_wrapped, _decision_lines(facts))])


# ---- hypotheses, and the mistakes of hard inputs ----


def operators_of(command: str) -> Tuple[str, ...]:
    """The operators of a command, or of a function, as _native calls them."""
    name = command.replace("-", "_")
    return ("dequant", "requant") if name == "quant_matmul" else (name,)


def hypotheses_json(table: Iterable[Tuple[Mapping[str, str], Sequence[str]]], commands: Iterable[str],
                    command: Optional[str] = None) -> List[Dict[str, Any]]:
    """The hypotheses of a command, or of all. Those with the same words are one."""
    joined: Dict[Tuple[str, str, str], List[str]] = {}
    for hypothesis, operators in table:
        joined.setdefault((hypothesis["name"], hypothesis["what"], hypothesis["advice"]), []).extend(operators)
    said = ({"name": name, "operators": [each for each in commands if set(operators).intersection((*operators_of(each), each.replace("-", "_")))],
             "what": what, "advice": advice} for (name, what, advice), operators in joined.items())
    return [each for each in said if command is None or command in each["operators"]]


def hypotheses_text(table: Iterable[Tuple[Mapping[str, str], Sequence[str]]], commands: Iterable[str],
                    command: Optional[str] = None) -> str:
    return "\n\n".join(
        "\n".join([_wrapped(f"{each['name']}: the kernel {each['what']}.", indent=""), _wrapped(each["advice"]),
                   _wrapped(", ".join(each["operators"]), " " * 13, "  operators: ")])
        for each in hypotheses_json(table, commands, command))


def mistakes_text(mistakes: Sequence[Facts]) -> str:
    """How many of the possible mistakes hard inputs show, and a line for each that does not show, or not alone."""
    shown = sum(mistake["elements"] > 0 for mistake in mistakes)
    lines = [f"{shown} of {len(mistakes)} mistakes that are possible in this call change its results"]
    for mistake in mistakes:
        if not mistake["elements"]:
            lines.append(f"  {mistake['name']} changes nothing here")
        elif mistake["same_as"]:
            lines.append(f"  {mistake['name']} gives the same results as {mistake['same_as']}")
    return "\n".join(lines)
