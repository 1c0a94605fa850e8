# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the dynamic operators and row_quant with mistakes."""
import numpy as np
from numeric import (HALF_ADDED, LESSER, ROUNDINGS, Machine, Mistakes, f4, f8, for_tensor_cores, groups, in_type, kept,
                     packed, placed, read_as, read_x, represented, reused, rounded, to_floats, to_integers, with_offset)
from numpy_operators import SMALL, floats, round_to, small_value

CLIPPED = 0.9
BOUNDS = {"1e-12": 1e-12, "1e-10": 1e-10, "1e-8": 1e-8, "1e-6": 1e-6, "1e-5": 1e-5, "epsilon": 2.0**-23,
          "other": 3e-9}


def bound(what, machine, mistakes):
    """The bound of a mistake such as f"{what}-1e-12"; None without the mistake."""
    name = next((name for name in BOUNDS if f"{what}-{name}" in mistakes), None)
    return None if name is None else machine.keeps(machine.type(BOUNDS[name]))


# ---- the rows ----


def read_smooth_scales(smooth_scales, mistakes):
    factors = floats(read_as(smooth_scales, "smooth", mistakes))
    factors = for_tensor_cores(kept(factors, mistakes, "all"), mistakes)
    factors = factors[..., reused(np.arange(factors.shape[-1]), mistakes)]
    if "scale-of-first" in mistakes:
        return np.broadcast_to(factors[..., :1], factors.shape)
    return np.roll(factors, ("scale-of-one-before" in mistakes) - ("scale-of-next" in mistakes))


def smoothed(call, machine, mistakes):
    """The values that extremes are taken of, and the values to quantise; a row for each scale."""
    x = machine.keeps(read_x(call.inputs["x"], mistakes))
    x = x.reshape(-1, x.shape[-1])
    v = x
    if "smooth_scales" in call.inputs and "smooth-left-out" not in mistakes:
        factors = read_smooth_scales(call.inputs["smooth_scales"], mistakes)
        if "group_index" in call.inputs:
            factors = factors[groups(call.inputs["group_index"], len(x), mistakes)]
        operation = np.divide if "smooth-divides" in mistakes else np.multiply
        v = kept(machine.compute(operation, x, factors), mistakes, "smooth")
    for_range = x if "smooth-after-range" in mistakes else v
    for_y = x if "smooth-in-range-only" in mistakes else v
    scales = 1 if call.arguments.get("quant_mode") == "pertensor" else len(x)
    return for_range.reshape(scales, -1), for_y.reshape(scales, -1)


def extents(v, mistakes):
    """The rows that share a range; the row of each element, and of each returned scale."""
    rows, columns = v.shape
    if "range-of-tensor" in mistakes:
        return v.reshape(1, -1), np.zeros((1, 1), int), np.zeros(rows, int)
    if "range-of-columns" in mistakes:
        return v.T, np.arange(columns)[None], np.arange(rows) % columns
    for name, begin, end in ("range-reaches-next-row", 0, WINDOW), ("range-begins-before", -WINDOW, 0):
        if name in mistakes:
            at = np.arange(rows)[:, None] * columns + np.arange(begin, columns + end)
            return v.ravel()[at.clip(0, v.size - 1)], np.arange(rows)[:, None], np.arange(rows)
    for length in 2, 4:
        if f"range-of-{length}-rows" in mistakes:
            several = np.pad(v, ((0, -rows % length), (0, 0)), mode="edge").reshape(-1, length * columns)
            return several, np.arange(rows)[:, None] // length, np.arange(rows) // length
    for length in 8, 16, 32, 64, 128, 256, 512, 1024:
        if f"range-of-{length}" in mistakes:
            runs = np.pad(v, ((0, 0), (0, -columns % length)), mode="edge").reshape(-1, length)
            first = np.arange(rows) * (len(runs) // rows)
            return runs, first[:, None] + np.arange(columns) // length, first
        if f"range-of-first-{length}" in mistakes:
            v = v[:, :length]
        if f"range-of-last-{length}" in mistakes:
            v = v[:, -length:]
    return v, np.arange(rows)[:, None], np.arange(rows)


# ---- the parameters of a row ----

POWERS_OF_2 = {
    "up": lambda scale: np.ceil(np.log2(scale)),
    "down": lambda scale: np.floor(np.log2(scale)),
    "nearest": lambda scale: np.rint(np.log2(scale)),
    "nearer": lambda scale: np.log2(np.ldexp(1.0, np.frexp(scale)[1] - (np.frexp(scale)[0] < 0.75))),
}
ONE_SCALE, ONE_OFFSET = 0.0473, 7.25
WINDOW = 3


def other_scale(scale, mistakes, prefix, one):
    """What takes the place of the scale."""
    for name, exponent in POWERS_OF_2.items():
        if f"{prefix}-power-of-2-{name}" in mistakes:
            usual = np.isfinite(scale) & (scale != 0)
            return np.where(usual, np.exp2(exponent(np.where(usual, scale, 1).astype(f8))), scale).astype(scale.dtype)
    return np.full_like(scale, ONE_SCALE) if one in mistakes else scale


def used_scale(scale, mistakes):
    return other_scale(scale, mistakes, "scale", "one-scale")


def returned_scale(scale, mistakes):
    return other_scale(scale, mistakes, "returned", "one-scale-returned")


def extremes(v, mistakes):
    high, low = extremes_of_rows(v, mistakes)
    if "running-range" in mistakes:
        return np.maximum.accumulate(high), np.minimum.accumulate(low)
    return high, low


def extremes_of_rows(v, mistakes):
    if "range-ignores-nan" in mistakes:
        return np.fmax.reduce(v, axis=1, initial=-np.inf), np.fmin.reduce(v, axis=1, initial=np.inf)
    high = v.max(axis=1)
    has_plus_zero = ((v == 0) & ~np.signbit(v)).any(axis=1)  # larger than -0
    return np.where((high == 0) & has_plus_zero, v.dtype.type(0), high), v.min(axis=1)


def bounded(scale, least, machine, mistakes):
    """The scale, or its lower bound where the scale is not above, also for NaN."""
    if "one-for-zero" in mistakes:
        return np.where(scale == 0, machine.type(1), scale)
    added = bound("added", machine, mistakes)
    if added is not None:
        return machine.compute(np.add, scale, added)
    other = bound("least", machine, mistakes)
    if other is None and (least is None or "no-least-scale" in mistakes):
        return scale
    least = machine.keeps(machine.type(least)) if other is None else other
    return np.where(scale > least, scale, least)


def asymmetric_parameters(v, greatest, machine, mistakes):
    """Scale, offset and 1 / scale of each row."""
    steps = 2 * greatest + 1 + ("one-step-more" in mistakes) - ("one-step-less" in mistakes)
    high, low = extremes(v, mistakes)
    if "symmetric-extremes" in mistakes:
        high = np.maximum(np.abs(high), np.abs(low))
        low = -high
    high, low = clipped(high, machine, mistakes), clipped(low, machine, mistakes)
    if "range-with-zero" in mistakes:
        high, low = np.maximum(high, 0), np.minimum(low, 0)
    d = machine.compute(np.subtract, high, low)
    if "range-reciprocal" in mistakes:
        d = machine.compute(np.multiply, d, machine.compute(np.divide, 1, steps))
    else:
        d = machine.compute(np.divide, d, steps)
    scale = used_scale(kept(bounded(d, 1e-12, machine, mistakes), mistakes, "scale"), mistakes)
    if "offset-from-low" in mistakes or "zero-point-from-low" in mistakes:
        offset = machine.compute(np.subtract, -greatest - 1, machine.compute(np.divide, low, scale))
    else:
        offset = machine.compute(np.subtract, greatest, machine.compute(np.divide, high, scale))
    if "offset-rounded" in mistakes or "zero-point-from-low" in mistakes:
        offset = np.rint(offset)
    offset = kept(np.trunc(offset) if "offset-truncated" in mistakes else offset, mistakes, "scale")
    if "one-scale" in mistakes:
        offset = np.full_like(offset, ONE_OFFSET)
    return scale, offset, machine.compute(np.divide, 1, scale)


def clipped(extreme, machine, mistakes):
    if not made("range-clipped", mistakes):
        return extreme
    return machine.compute(np.multiply, extreme, machine.keeps(machine.type(CLIPPED)))


def made(convention, mistakes):
    """Whether a convention is among the mistakes, by itself or with a division."""
    return convention in mistakes or f"{convention}-divided" in mistakes


CONVENTIONS = "half-step-more", "one-sided-range", "signed-extreme", "range-clipped"


def is_divided(mistakes):
    return any([f"{convention}-divided" in mistakes for convention in CONVENTIONS])


def signed_extreme(v, mistakes):
    """The value with the largest magnitude, of equal ones the first."""
    high, low = extremes(v, mistakes)
    first = np.take_along_axis(v, np.abs(v).argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(high > -low, high, np.where(high < -low, low, first))


def symmetric_parameters(v, greatest, arguments, machine, mistakes):
    """Scale of each row, the factor of its values, the largest value, what it becomes, and the scale that is
    returned."""
    blocks = "block" in arguments
    greatest = greatest + ("one-step-more" in mistakes) + made("half-step-more", mistakes) / 2
    if made("one-sided-range", mistakes):
        high, low = extremes(v, mistakes)
        high, low = np.maximum(high, 0), -low
        is_low = machine.compute(np.divide, low, greatest + 1) > machine.compute(np.divide, high, greatest)
        largest, greatest = np.where(is_low, low, high), greatest + is_low
    elif made("signed-extreme", mistakes):
        largest, greatest = signed_extreme(v, mistakes), -greatest - 1
    elif "largest-without-sign" in mistakes:
        largest = extremes(v, mistakes)[0]
    else:
        largest = clipped(np.maximum(extremes(np.abs(v), mistakes)[0], 0), machine, mistakes)
    least, added = bound("least-m", machine, mistakes), bound("added-m", machine, mistakes)
    largest = largest if least is None else np.maximum(largest, least)
    largest = largest if added is None else machine.compute(np.add, largest, added)
    if "one-division" not in mistakes if blocks else "inverse-first" in mistakes:
        factor = machine.compute(np.multiply, machine.compute(np.divide, 1, largest), greatest)
    else:
        factor = machine.compute(np.divide, greatest, largest)
    if "scale-divided" in mistakes or is_divided(mistakes):
        scale = machine.compute(np.divide, largest, greatest)
    elif (arguments.get("scale_form") == "inverse") != ("other-form" in mistakes):
        scale = machine.compute(np.divide, 1, factor)
    else:
        scale = machine.compute(np.multiply, largest, machine.compute(np.divide, 1, greatest))
    enough = bounded(scale, arguments["min_scale"] if "least-min-scale" in mistakes else None, machine, mistakes)
    raised = (enough != scale) & ~np.isnan(enough) | (bound("added", machine, mistakes) is not None)
    scale = kept(enough, mistakes, "scale")
    factor = np.where(raised, machine.compute(np.divide, 1, scale), factor)
    is_limited = "min-scale-ignored" not in mistakes and "least-min-scale" not in mistakes
    if is_limited and blocks and arguments["min_scale"] > 0:
        least = machine.keeps(machine.type(np.float32(arguments["min_scale"])))
        most = machine.compute(np.divide, 1, least)
        factor = np.where(factor < least, least, factor)
        beyond = (enough > most) & (np.isfinite(enough) | (arguments["dtype"] not in SMALL))
        scale = kept(np.where(beyond, most, enough), mistakes, "scale")
    other = used_scale(scale, mistakes)
    if "one-scale" in mistakes and "scale-is-factor" in mistakes:
        scale, factor = machine.compute(np.divide, 1, other), other
    elif other is not scale:
        scale, factor = other, machine.compute(np.divide, 1, other)
    result = largest if "scale-is-largest" in mistakes else factor if "scale-is-factor" in mistakes else scale
    return scale, factor, largest, np.broadcast_to(greatest, largest.shape), returned_scale(kept(result, mistakes, "scale"), mistakes)


# ---- the elements ----


def taken(parameter, what, mistakes):
    """The parameter that each row or block uses."""
    return placed(parameter, ("scale", "range"), what, mistakes)


def returned(parameter, what, mistakes):
    """The parameter that is returned of each row or block."""
    return placed(parameter, ("returned", "range"), what, mistakes)


def product(t, mistakes):
    return truncated_to_float16(t) if "product-truncated" in mistakes else kept(t, mistakes, "product")


def scaled(v, scale, factor, largest, greatest, machine, mistakes):
    if "dmax-first" in mistakes:
        t = machine.compute(np.divide, machine.compute(np.multiply, v, greatest), largest)
    elif "division" in mistakes or is_divided(mistakes):
        t = machine.compute(np.divide, v, scale)
    elif "reciprocal" in mistakes:
        t = machine.compute(np.multiply, v, machine.compute(np.divide, 1, scale))
    else:
        t = machine.compute(np.multiply, v, factor)
    return product(t, mistakes)


# ---- kernels by other definitions ----


def truncated_to_float16(t):
    half = t.astype(np.float16)
    return np.where(np.abs(half.astype(f4)) > np.abs(t), np.nextafter(half, np.float16(0)), half).astype(f4)


def moe_routing(largest, v, greatest, spread, machine, mistakes):
    scale = kept(np.minimum(machine.compute(np.divide, largest, greatest), machine.most), mistakes, "scale")
    return machine.compute(np.divide, v, spread(scale)), scale


def moe_routing_8_5(*arguments):
    t, scale = moe_routing(*arguments)
    t = truncated_to_float16(t)
    return np.trunc(2 * t - np.trunc(t)), scale  # half away from zero


def grouped_swiglu(largest, v, greatest, spread, machine, mistakes):
    scale = kept(machine.compute(np.divide, largest, greatest), mistakes, "scale")
    t = machine.compute(np.multiply, v, machine.compute(np.divide, 1, spread(scale)))
    return in_type(t, "float16"), scale


def divided_m(name):
    def rule(largest, v, greatest, spread, machine, mistakes):
        largest = np.maximum(machine.keeps(largest), machine.keeps(machine.type(BOUNDS[name])))
        t, scale = moe_routing(largest, machine.keeps(v), greatest, spread, machine, mistakes)
        return product(t, mistakes), scale
    return rule


def smoothquant_in(dtype):
    def rule(largest, v, greatest, spread, machine, mistakes):
        machine.keeps = lambda t: in_type(t, dtype)
        return divided_m("1e-5")(largest, v, greatest, spread, machine, mistakes)
    return rule


def ggml_q8_0(largest, v, greatest, spread, machine, mistakes):
    d = machine.compute(np.divide, largest, greatest)
    inverse = np.where(d == 0, machine.type(0), machine.compute(np.divide, 1, d))
    t = machine.compute(np.multiply, v, spread(inverse))
    return ROUNDINGS["half-away"](t.astype(f8)), in_type(d, "float16")


def ggml_q4_0(extreme, v, greatest, spread, machine, mistakes):
    d = machine.compute(np.divide, extreme, -8)
    inverse = np.where(d == 0, machine.type(0), machine.compute(np.divide, 1, d))
    t = machine.compute(np.multiply, v, spread(inverse))
    return np.floor(machine.compute(np.add, t, 8.5)) - 8, in_type(d, "float16")


def groups_bfloat16(largest, v, greatest, spread, machine, mistakes):
    scale = in_type(machine.compute(np.divide, largest, greatest), "bfloat16")
    return ROUNDINGS["half-away"](machine.compute(np.divide, v, spread(scale)).astype(f8)), scale


DIVIDED_M = {"smoothquant" if name == "1e-5" else f"divided-m-{name}": divided_m(name) for name in BOUNDS}


SYMMETRIC_RULES = {
    "moe-routing": moe_routing,
    "moe-routing-8-5": moe_routing_8_5,
    "grouped-swiglu": grouped_swiglu,
    **DIVIDED_M,
    "smoothquant-float16": smoothquant_in("float16"),
    "smoothquant-bfloat16": smoothquant_in("bfloat16"),
}
BLOCK_RULES = {"ggml-q8-0": ggml_q8_0, "ggml-q4-0": ggml_q4_0, "groups-bfloat16": groups_bfloat16, **DIVIDED_M}


def onnx_dynamic(high, low, v, greatest, spread, machine, mistakes):
    scale = machine.compute(np.divide, machine.compute(np.subtract, high, low), 255)
    scale = kept(np.where(scale == 0, machine.type(1), scale), mistakes, "scale")
    zero = np.clip(np.rint(machine.compute(np.divide, -low, scale)), 0, 255) - 128
    return rounded_first(zero, scale, v, spread, machine, mistakes)


def rounded_first(zero, scale, v, spread, machine, mistakes):
    zero = kept(zero, mistakes, "scale")
    whole = rounded(machine.compute(np.divide, v, spread(scale)), mistakes)
    return machine.compute(np.add, whole, spread(zero)), scale, zero


def vllm_azp(high, low, v, greatest, spread, machine, mistakes):
    scale = machine.compute(np.divide, machine.compute(np.subtract, high, low), 2 * greatest + 1)
    scale = kept(scale, mistakes, "scale")
    zero = machine.compute(np.subtract, -greatest - 1, machine.compute(np.divide, low, scale))
    return rounded_first(np.rint(zero), scale, v, spread, machine, mistakes)


def unsigned_zero_point(high, low, v, greatest, spread, machine, mistakes):
    scale = machine.compute(np.divide, machine.compute(np.subtract, high, low), 2 * greatest + 1)
    scale = kept(bounded(scale, 1e-12, machine, mistakes), mistakes, "scale")
    zero = np.clip(np.rint(machine.compute(np.divide, -low, scale)), 0, 2 * greatest + 1) - greatest - 1
    return rounded_first(zero, scale, v, spread, machine, mistakes)


def pytorch_asymmetric(high, low, v, greatest, spread, machine, mistakes):
    def subtracted(end, extreme):
        return machine.compute(np.subtract, end, machine.compute(np.divide, extreme, scale))

    least, epsilon = -greatest - 1, machine.type(2.0**-23)
    scale = machine.compute(np.divide, machine.compute(np.subtract, high, low), greatest - least)
    scale = kept(np.where(scale > epsilon, scale, epsilon), mistakes, "scale")
    errors = machine.compute(np.add, subtracted(least, -low), subtracted(greatest, -high))
    zero = np.where(errors > 0, subtracted(least, low), subtracted(greatest, high))
    zero = kept(np.rint(np.clip(zero, least, greatest)), mistakes, "scale")
    t = machine.compute(np.multiply, v, machine.compute(np.divide, 1, spread(scale)))
    return machine.compute(np.add, t, spread(zero)), scale, zero


def xnnpack_qd8(high, low, v, greatest, spread, machine, mistakes):
    factor = machine.compute(np.divide, 255, machine.compute(np.subtract, high, low))
    factor = np.where(high == low, machine.type(1), factor)
    least, most = machine.compute(np.multiply, low, factor), machine.compute(np.multiply, high, factor)
    errors = machine.compute(np.add, machine.compute(np.add, -128, least), machine.compute(np.add, 127, most))
    from_end = [machine.compute(np.subtract, end, extreme) for end, extreme in ((-128, least), (127, most))]
    zero = kept(np.rint(np.clip(np.where(errors > 0, *from_end), -128, 127)), mistakes, "scale")
    whole = rounded(machine.compute(np.multiply, v, spread(factor)), mistakes)
    scale = kept(machine.compute(np.divide, 1, factor), mistakes, "scale")
    return machine.compute(np.add, whole, spread(zero)), scale, zero


def with_zero(rule):
    return lambda high, low, *others: rule(np.maximum(high, 0), np.minimum(low, 0), *others)


ASYMMETRIC_RULES = {
    "onnx-dynamic": with_zero(onnx_dynamic),
    "pytorch-asymmetric": with_zero(pytorch_asymmetric),
    "xnnpack-qd8": with_zero(xnnpack_qd8),
    "vllm-azp": vllm_azp,
    "unsigned-zero-point": unsigned_zero_point,
}


# ---- operators ----


def kernel_of(quantise):
    def kernel(call, names):
        mistakes = Mistakes(names)
        machine = Machine(mistakes, ["all"])
        dtype = call.arguments["dtype"]
        machine.divides_for(dtype)
        most = small_value(dtype, SMALL[dtype]) if dtype in SMALL else 7 if dtype == "quint4x2" else 127
        greatest = "dst-type-max-ignored" not in mistakes and call.arguments.get("dst_type_max") or most
        greatest = LESSER[dtype] if "scale-240" in mistakes else greatest
        t, parameters = quantise(call, greatest, machine, mistakes)
        if dtype in SMALL:
            results = {"y": to_floats(t, dtype, mistakes).reshape(call.inputs["x"].shape)}
            mistakes.refuse_unknown()
            return {**results, **in_shape(parameters, call)}
        integer = "int8" if dtype == "uint8" else dtype
        whole = represented(to_integers(t, integer, mistakes), integer, mistakes).reshape(call.inputs["x"].shape)
        whole = whole + 128 if dtype == "uint8" else whole
        results = {"y": packed(whole, mistakes) if greatest == 7 else whole.astype(dtype)}
        mistakes.refuse_unknown()
        return {**results, **in_shape(parameters, call)}

    return kernel


def in_shape(parameters, call):
    return {name: round_to(parameter.astype(f4), "float32").reshape(scales_shape(call))
            for name, parameter in parameters.items()}


def scales_shape(call):
    rows = call.inputs["x"].shape[:-1]
    if "block" in call.arguments:
        return *rows[:-1], -(-rows[-1] // call.arguments.get("row_block", 1)), -1
    return (1,) if call.arguments.get("quant_mode") == "pertensor" else rows


def tokens(call, machine, mistakes):
    """The rows of each range, the values, how elements take a row's parameter, and the row of each returned scale."""
    for_range, v = smoothed(call, machine, mistakes)
    ranges, of_elements, of_results = extents(for_range, mistakes)
    return ranges, v, lambda parameter: taken(parameter, "row", mistakes)[of_elements], of_results


def dynamic_quant(call, greatest, machine, mistakes):
    ranges, v, spread, of_results = tokens(call, machine, mistakes)
    for name, rule in SYMMETRIC_RULES.items():
        if name in mistakes:
            largest = clipped(extremes(np.abs(ranges), mistakes)[0], machine, mistakes)
            t, scale = rule(largest, v, greatest, spread, machine, mistakes)
            return t, {"scale": returned(scale[of_results], "row", mistakes)}
    *parameters, scale = symmetric_parameters(ranges, greatest, call.arguments, machine, mistakes)
    scale = returned(scale[of_results], "row", mistakes)
    return scaled(v, *map(spread, parameters), machine, mistakes), {"scale": scale}


def float8_kernel_of(quantise):
    """It divides by the scale: the other ways are mistakes. The scale of a block is a quotient itself."""
    def kernel(call, names):
        made = names - {"factor", "returned-float16", "returned-bfloat16", "scale-product"}
        if not names & {"factor", "reciprocal", "dmax-first", *DIVIDED_M}:
            made |= {"division"}
        if quantise is dynamic_block_quant:
            made |= {"one-division"} | (set() if names & {"scale-product", "other-form"} else {"scale-divided"})
        results = kernel_of(quantise)(call, made)
        return {**results, "scale": kept(results["scale"], names, "returned")}

    return kernel


# What makes the rules of dynamic_quant.
ROW_RULES = {
    "dynamic_quant": {},
    "swiglu": {"returned": "scale-is-factor"},
    "add_rms_norm": {"form": "other-form"},
    "dequant_swiglu": {"scaling": "division"},
    "moe_routing": {"form": "scale-divided", "scaling": "division"},
    "moe_routing_8_5": {"form": "scale-divided", "scaling": "division", "product": "product-truncated",
                        "rounding": "half-away"},
    "grouped_swiglu": {"form": "scale-divided", "scaling": "reciprocal", "product": "product-float16"},
}
# Mistakes that take the place of what a rule does there; the first ones do what dynamic_quant does.
IN_PLACE_OF = {
    "form": ("scale-product", "other-form", "scale-divided", *DIVIDED_M),
    "returned": ("", "scale-product", "other-form", "scale-divided", "scale-is-largest", "scale-is-factor", *DIVIDED_M),
    "scaling": ("factor", "division", "reciprocal", "dmax-first", *DIVIDED_M),
    "product": ("product-float32", "product-float16", "product-bfloat16", "float64", "float64-to-float32",
                "all-float16", "all-bfloat16"),
    "rounding": ("half-even", *ROUNDINGS, *HALF_ADDED),
}


def row_quant(call, names):
    rules = {rule.replace("_", "-"): steps for rule, steps in ROW_RULES.items()}
    steps = rules[next((name for name in names if name in rules), call.arguments["rule"].replace("_", "-"))]
    made = names - rules.keys() - {each[0] for each in IN_PLACE_OF.values()} - {"scale-float16", "scale-bfloat16"}
    made = made | {mistake for step, mistake in steps.items() if not names.intersection(IN_PLACE_OF[step])}
    results = kernel_of(dynamic_quant)(call, made)
    return {**results, "scale": kept(results["scale"], names, "scale")}


def dynamic_quant_asymmetric(call, greatest, machine, mistakes):
    ranges, v, spread, of_results = tokens(call, machine, mistakes)
    for name, rule in ASYMMETRIC_RULES.items():
        if name in mistakes:
            high, low = (clipped(extreme, machine, mistakes) for extreme in extremes(ranges, mistakes))
            t, scale, zero = rule(high, low, v, greatest, spread, machine, mistakes)
            return t, {name: returned(parameter[of_results], "row", mistakes)
                       for name, parameter in (("scale", scale), ("offset", zero))}
    scale, offset, factor = asymmetric_parameters(ranges, greatest, machine, mistakes)
    scale_of_v, factor_of_v, offset_of_v = map(spread, (scale, factor, offset))
    t = scaled(v, scale_of_v, factor_of_v, None, greatest, machine, mistakes)
    t = with_offset(v, t, factor_of_v, offset_of_v, call.arguments["dtype"], machine, mistakes)
    offset = -offset if "offset-sign" in mistakes else offset
    if "one-scale-returned" in mistakes:
        offset = np.full_like(offset, ONE_OFFSET)
    results = {"scale": returned_scale(scale, mistakes), "offset": offset}
    return t, {name: returned(kept(parameter, mistakes, "returned")[of_results], "row", mistakes)
               for name, parameter in results.items()}


def dynamic_block_quant(call, greatest, machine, mistakes):
    x = machine.reads(machine.keeps(read_x(call.inputs["x"], mistakes)))
    matrices = x.reshape(-1, *x.shape[-2:])
    x = x.reshape(-1, x.shape[-1])
    columns = np.arange(x.shape[1])
    block = call.arguments["block"]
    height = min(call.arguments.get("row_block", 1), matrices.shape[1])
    first_rows = np.arange(len(x)).reshape(matrices.shape[:2])[:, ::height].ravel()
    height = 1 if "row-block-ignored" in mistakes else height
    bands = -(-matrices.shape[1] // height)
    row_bands = (np.arange(len(matrices))[:, None] * bands + np.arange(matrices.shape[1]) // height).ravel()
    rows = np.pad(matrices, ((0, 0), (0, -matrices.shape[1] % height), (0, 0)), mode="edge")
    length = len(columns) if "whole-row" in mistakes else (block + 1) // 2 if "half-block" in mistakes else block
    parts = [part.reshape(len(matrices) * bands, -1) for part in np.split(rows, columns[length::length], axis=2)]

    def spread(parameter):
        return taken(parameter, "block", mistakes)[row_bands][:, columns // length]

    def result(scale):
        return {"scale": returned(scale[row_bands[first_rows]][:, columns[::block] // length], "block", mistakes)}

    for name, rule in BLOCK_RULES.items():
        if name in mistakes:
            if name in DIVIDED_M and call.arguments["min_scale"] > 0:
                machine.most = machine.compute(np.divide, 1, machine.keeps(f4(call.arguments["min_scale"])))
            largest = np.stack([signed_extreme(part, mistakes) if name == "ggml-q4-0" else np.abs(part).max(axis=1)
                                for part in parts], axis=1)
            t, scale = rule(largest, x, greatest, spread, machine, mistakes)
            return t, result(scale)
    parameters = [symmetric_parameters(part, greatest, call.arguments, machine, mistakes) for part in parts]
    parameters = np.stack(parameters, axis=2)
    *parameters, scale = parameters
    return scaled(x, *map(spread, parameters), machine, mistakes), result(scale)


KERNELS = {
    "dynamic_quant": kernel_of(dynamic_quant),
    "dynamic_quant_float8": float8_kernel_of(dynamic_quant),
    "dynamic_quant_asymmetric": kernel_of(dynamic_quant_asymmetric),
    "dynamic_block_quant": kernel_of(dynamic_block_quant),
    "dynamic_block_quant_float8": float8_kernel_of(dynamic_block_quant),
    "row_quant": row_quant,
}
