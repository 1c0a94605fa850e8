# SPDX-License-Identifier: BSD-3-Clause
"""What follows from the lines of npuquant-bench: statistics of a case's times, its level of the caches, and its limits.

A limit is the least time of any code on this machine. The processor's limit follows from how many vector instructions
of each class a case needs at least, and how many the machine executes in a nanosecond. Additions are of float32, with
comparisons. Conversions are between int32 and float32, halves those between float16 and float32. Shuffles widen, pack
and permute."""
import collections
import statistics

import cases

NOISE = 0.10  # a spread above it is noisy
SHARING = 4  # rows share the parameters of a column as far as registers reach

# Instructions for a vector of float32, here and in cases.KINDS; fractions where one instruction serves several vectors.
# The counts are those of the best known loops for AVX-512, with all operations that the bits of the results need: no
# product is fused with a sum. If a loop needs fewer and beats the limit, the table is wrong.

#: To float32. A vector of bfloat16 becomes two: one by a shift, one by a mask.
LOAD = {
    "f32": {"loads": 1},
    "f16": {"loads": 1, "halves": 1},
    "bf16": {"loads": 0.5, "integers": 1},
    "i8": {"loads": 1, "shuffles": 1, "conversions": 1},
    "i4": {"loads": 0.5, "shuffles": 1, "integers": 1, "conversions": 1},
    "i32": {"loads": 1, "conversions": 1},
}
#: From float32. Two packings and a permutation make one vector of bytes from four. int4 needs a clamp of the bytes and
#: another packing. A small float is a sum with its power of two, whose last bits and exponent a product joins; hifloat8
#: is looked up by its exponent in halves, twice as many at once.
STORE = {
    "i8": {"conversions": 1, "shuffles": 1, "stores": 0.25},
    "u8": {"conversions": 1, "shuffles": 1, "stores": 0.25},
    "i4": {"conversions": 1, "shuffles": 1, "integers": 0.75, "stores": 0.125},
    "e4m3fn": {"integers": 4.5, "additions": 2, "multiplications": 1.5, "shuffles": 1.5, "stores": 0.25},
    "hif8": {"integers": 13, "additions": 0.5, "multiplications": 0.5, "shuffles": 3, "stores": 0.25},
    "i32": {"conversions": 1, "stores": 1},
    "i64": {"stores": 1},
    "f32": {"stores": 1},
    "f16": {"halves": 1, "stores": 0.5},
    "bf16": {"bfloat16s": 1, "stores": 0.5},
}
STORE["e5m2"] = STORE["e4m3fn"]
KINDS = {kind.name: kind for kind in cases.KINDS}
#: For words of requant that give int8: two clamps of 16 bits, and the offset.
CLAMPS = {"integers": 1.5}
#: Classes that share ports: their sum has a rate of its own, "any".
SHARED = ("additions", "multiplications", "integers", "conversions", "shuffles", "halves")


def work_of(name):
    """The instructions of a case for each vector of x."""
    operator, mode, parameters, types, shape = name.split("/")[:5]
    x, y = types.split("-")
    rows, *columns = map(int, shape.split("x"))
    work = collections.Counter()

    def add(more, times=1.0):
        for port, count in more.items():
            work[port] += times * count

    kind = KINDS[f"{operator}/{mode}"]
    add(LOAD[x])
    add(kind.work)
    add(STORE[y])
    share = 1 / SHARING if rows >= SHARING and columns else 1
    if parameters in ("channel", "experts64"):
        add(kind.column, share)
    if (operator, y) == ("requant", "i8"):
        add(CLAMPS)
    if cases.is_dynamic(name):  # the range of a row; 16 bits are compared as integers, twice as many at once
        compared = {"additions": 2 if operator == "dynamic_quant_asymmetric" else 1}
        if parameters == "plain":
            add({"loads": 1, **compared} if x == "f32" else {"loads": 0.5, "integers": 1})
        else:
            add({**compared, "multiplications": 2})  # by smooth scales, in both passes
            add(LOAD[x])
            add(LOAD[x], 2 * share)  # smooth scales
    work["any"] = sum(work[port] for port in SHARED)
    return work


def ports_ns(constants, name, threads):
    """The least time for the instructions of a case; None: the machine is not known."""
    if not constants["vector_bits"]:
        return None
    longest = max(count / constants[f"{port}_per_ns"] for port, count in work_of(name).items())
    return longest * cases.elements(name) / (constants["vector_bits"] / 32) / threads


def level(caches, working_set):
    """Leaves a quarter of a cache to other data. L3+: a part may stay in the last cache."""
    for i, size in enumerate(caches, 1):
        if working_set <= size // 4 * 3:
            return f"L{i}"
    return f"L{len(caches)}+" if working_set < 4 * caches[-1] else "memory"


def add_times(runs):
    """In place of each run's samples, by round: the time, and how many times as fast npuquant, the first run, is."""
    ours = runs[0]["samples"]
    for run in runs:
        samples = run.pop("samples")
        quartiles = statistics.quantiles(samples * 2 if len(samples) == 1 else samples, n=4, method="inclusive")
        run["q1_ns"], run["median_ns"], run["q3_ns"] = (round(ns, 2) for ns in quartiles)
        run["min_ns"] = min(samples)
        run["npuquant_times_as_fast"] = round(statistics.median(
            ns / own if own else 0 for ns, own in zip(samples, ours)), 4)


def add_limits(head, case):
    """The time of the fastest run that moves all bytes is a limit: a stream's, or a peer's. memcpy() counts unless y is
    larger than x: it writes less then. The instructions run between the two changes of the floating-point state, so
    their times add up. A stream overlaps with both, and its time includes a call."""
    runs = case["runs"]
    x, y = (cases.bits(name) for name in case["name"].split("/")[3].split("-"))
    others = ("baseline",) + (("memcpy",) if y > x else ())
    mover = min((run for run in runs if run["kind"] not in others), key=lambda run: run["median_ns"])
    for run in runs:
        spread = (run["q3_ns"] - run["q1_ns"]) / run["median_ns"] if run["median_ns"] else 0
        run["is_stream"] = run is mover
        # other streams do not matter
        run["noisy"] = spread > NOISE and (run is mover or run["kind"] not in ("stream", "two-passes", "memcpy"))
    stream, latency = mover["median_ns"], head["constants"]["call_ns"]
    ports = ports_ns(head["constants"], case["name"], runs[0]["threads"])
    own, ours = latency + (ports or 0), runs[0]["median_ns"]
    case["limits"] = {
        "stream_ns": stream, "ports_ns": ports and round(ports, 2), "latency_ns": latency,
        "limit_ns": round(max(stream, own), 2),
        "bound": "stream" if stream > own else "ports" if (ports or 0) > latency else "latency",
        "of_limit": round(max(stream, own) / ours, 4) if ours else 0}


def complete(head, case):
    """Adds to a case's line what follows from it and from the machine's line."""
    case.update(elements=cases.elements(case["name"]), rounds=0)
    case["level"] = level(head["caches"], case["bytes_read"] + case["bytes_written"])
    if case["runs"]:
        case["rounds"] = len(case["runs"][0]["samples"])
        add_times(case["runs"])
        add_limits(head, case)
