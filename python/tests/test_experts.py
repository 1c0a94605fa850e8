# SPDX-License-Identifier: BSD-3-Clause
"""The operators of a mixture of experts, against the same in plain loops, and what they refuse."""
import functools
import importlib
import inspect
import itertools
import math
import pathlib
import re

import numpy as np
import pytest

import npuquant
import numpy_operators as expected
from npuquant import unset
from npuquant._serving import unset as _unset
from npuquant_facts.dtypes import TYPES
from npuquant_facts.operators import OPTIONS
from npuquant.testing import assert_equal
from numpy_operators import f4, floats, rng, round_to

i4, i8 = np.int32, np.int64
UNPERMUTE, FINALIZE = "npu_moe_token_unpermute", "npu_moe_finalize_routing"
ROUTING, RE_ROUTING, MATMUL = "npu_moe_init_routing_v2", "npu_moe_re_routing", "npu_grouped_matmul"


def bits_of(values, kind):
    """An array of a type, by its name."""
    return round_to(np.asarray(values, f4), kind) if kind == "bfloat16" else np.asarray(values).astype(kind)


@pytest.fixture
def torch():
    """PyTorch, with the package's operators."""
    module = pytest.importorskip("torch", reason="PyTorch cannot be imported (Debian: python3-torch)")
    importlib.import_module("npuquant.torch")
    return module


def random_rows(shape, kind):
    return bits_of(rng.integers(-128, 128, shape) if kind == "int8" else rng.standard_normal(shape).astype(f4), kind)


def check(result, want, written=None):
    """Rows behind those that are written are unset."""
    rows = slice(written)
    assert want is None or (result.dtype == want.dtype and (result[rows] == want[rows]).all())
    assert not unset(result)[rows].any() and unset(result)[len(result[rows]):].all()


# ---- routing ---------------------------------------------------------------------------------------------------------


def is_rule(mistake):
    return mistake.replace("-", "_") in OPTIONS["rule"].numbers


def routing_kernel(mistake, x, ids, scale=None, offset=None, **options):
    """npu_moe_init_routing_v2, perhaps with a mistake, row by row. What it leaves unset is 0."""
    (n, k), mode = ids.shape, options.get("quant_mode", -1)
    first, end = options.get("active_expert_range") or [0, options["expert_num"]]
    capacity = options.get("expert_capacity", 0)
    positions = [p for p in range(n * k) if first <= ids[p // k, p % k] < end]
    expert = {p: int(ids[p // k, p % k]) for p in positions}
    keys = {"equal-last-first": lambda p: (expert[p], -p), "equal-by-slot": lambda p: (expert[p], p % k, p),
            "experts-descending": lambda p: (-expert[p], p), "unsorted": lambda p: p,
            "equal-in-any-order": lambda p: (expert[p], p * 7919 % 31, p)}
    positions.sort(key=keys.get(mistake, lambda p: (expert[p], p)))
    place, limit, wanted = {}, capacity or n * k, {}
    limit += {"capacity-one-less": -1, "capacity-one-more": 1, "capacity-unchecked": n * k}.get(mistake, 0)
    active_num = options.get("active_num", -1)
    most = options["expert_num"] * capacity if capacity else n * k if active_num <= 0 else min(n * k, active_num)
    rows = np.zeros((most, x.shape[1]), x.dtype if mode == -1 else np.int8)
    scales = np.zeros(len(rows), f4)
    for i, p in enumerate(positions):
        mine = [q for q in positions if expert[q] == expert[p]]
        slot = mine.index(p)
        if mistake == "capacity-first-dropped":
            slot -= max(len(mine) - capacity, 0)
        wanted[p] = place[p] = expert[p] * capacity + slot if capacity else i
        if capacity and not 0 <= slot < limit:
            place[p] = -1
            continue
        token = p % n if mistake == "token-modulo" else p // k
        group = expert[p] - first
        group = {"scale-of-expert-before": group - 1, "scale-of-expert-behind": (group + 1) % (end - first),
                 "scale-of-first-expert": 0, "scale-by-number": min(expert[p], end - first - 1)}.get(mistake, group)
        if place[p] >= len(rows):
            continue
        if mode == 1:
            smooth = f4(1) if scale is None or mistake == "scale-left-out" else scale[group % len(scale)]
            rule = mistake.replace("-", "_") if is_rule(mistake) else "moe_routing"
            rows[place[p]], scales[place[p]] = expected.row_quant(floats(x[token]) * smooth, rule)
        elif mode == 0:
            rows[place[p]] = expected.quantize(x[token], scale, offset, -1, False, "int8")
        else:
            rows[place[p]] = x[token]
            scales[place[p]] = 0 if scale is None else scale[place[p] % n if mistake == "scale-unmoved" else token]
    index = np.full(n * k, -1, i4)
    inverse = (mistake == "index-inverse") != (options.get("row_idx_type", 0) == 1)
    for i, p in enumerate(positions):
        index[i if inverse else p] = p if inverse else (wanted if mistake == "dropped-numbered" else place)[p]
    if mistake == "index-inverse" and inverse:  # then come the positions of other experts
        index[len(positions):] = sorted(set(range(n * k)) - set(positions), key=lambda p: ids.reshape(-1)[p] < first)
    if mistake == "dropped-zero":
        index[index < 0] = 0
    elif mistake == "index-by-slot":
        index = np.array([index[t * k + j] for j in range(k) for t in range(n)], i4)
    elif mistake == "index-of-tokens":
        index //= k
    counts = [sum(1 for p in positions if expert[p] == e) for e in range(first, end)]
    if mistake == "counts-of-kept":
        counts = [min(count, capacity) for count in counts]
    kind = options["expert_tokens_num_type"]
    if kind == 2:
        base = 0 if mistake == "pairs-from-zero" else first
        pairs = [[base + e, count] for e, count in enumerate(counts) if count]
        counts = np.array(pairs + [[0, 0]] * (options["expert_num"] - len(pairs)), i8)
    elif (kind == 0) != (mistake in ("counts-for-ends", "ends-for-counts")):
        before = sum(1 for one in ids.reshape(-1) if one < first) if mistake == "ends-of-all" else 0
        ends = [before + sum(counts[:e + 1]) for e in range(len(counts))]
        counts = [end - count for end, count in zip(ends, counts)] if mistake == "begins-for-ends" else ends
    y = rows.reshape(-1, capacity, x.shape[1]) if capacity else rows
    return y, index, np.array(counts, i8), scales


ROUTINGS = list(itertools.product(
    [(0, 5, False), (0, 5, True), (1, 4, True)], [0, 2], [-1, 0, 1], ["float32", "float16", "bfloat16", "int8"]))


@pytest.mark.parametrize("experts, capacity, mode, kind", ROUTINGS)
def test_init_routing(experts, capacity, mode, kind):
    first, end, given = experts
    if (capacity and (first, end) != (0, 5)) or (kind == "int8" and mode >= 0):
        pytest.skip("the operator refuses it: see REFUSED")
    for n, k, columns, smooth, active_num in [(7, 3, 16, True, -1), (4, 1, 8, False, 3), (2, 2, 4, True, 100)]:
        x, ids = random_rows((n, columns), kind), rng.integers(0, 5, (n, k)).astype(i4)
        groups = end - first
        shape = {-1: (n,), 0: (1,), 1: (groups if n != 2 else 1, columns)}[mode]
        scale = rng.uniform(0.5, 2, shape).astype(f4) if smooth or mode == 0 else None
        offset = f4([1.5]) if mode == 0 else None
        tokens_type = 1 if capacity else int(rng.integers(3))
        index_type = 0 if capacity else int(rng.integers(2))
        cann = "9.0" if capacity else str(rng.choice(["9.0", "8.5"]))
        options = {"expert_num": 5, "active_expert_range": [first, end] if given else [], "expert_capacity": capacity,
                   "active_num": active_num, "quant_mode": mode, "expert_tokens_num_type": tokens_type,
                   "row_idx_type": index_type}
        results = npuquant.npu_moe_init_routing_v2(x, ids, scale=scale, offset=offset, expert_tokens_num_flag=True,
                                                   drop_pad_mode=int(capacity > 0), cann=cann, **options)
        wanted = routing_kernel("" if cann == "9.0" else "moe-routing-8-5", x, ids, scale, offset, **options)
        kept = np.count_nonzero((first <= ids) & (ids < end))
        no_scales = mode == 0 or (mode == -1 and scale is None)
        rows, pairs = None if capacity else kept, min(groups + 1, 5) if tokens_type == 2 else None
        for each in zip(results, wanted, (rows, kept if index_type else None, pairs, 0 if no_scales else rows)):
            check(*each)


def in_bfloat16(*values):
    return bits_of(f4(values), "bfloat16")


#: quant_mode, cann, the begin of a row of 32, whose rest is zeros, its scale and its y.
IN_GROUPS = [
    (9, "9.0", np.array([0x0040, 0x8020], np.uint16), 0x00, [0x92]),
    (3, "9.2", in_bfloat16(448, -1), 0x7F, [0x7E, 0xB8]),
    (3, "9.2", in_bfloat16(450, -1), 0x80, [0x76, 0xB0]),
    (3, "9.0", in_bfloat16(450, -1), 0x7F, [0x7E, 0xB8]),
    (3, "9.2", in_bfloat16(2.0**-119, -2.0**-126), 0x01, [0x70, 0xB8]),
    (17, "9.0", in_bfloat16(0.0, -0.0), 0x69, [0x00, 0x80]),
    (17, "9.2", in_bfloat16(0.0, -0.0), 0x69, [0x00, 0x80]),
    (3, "9.2", in_bfloat16(0.0, -0.0), 0x00, [0x00, 0x80]),
    (2, "9.2", in_bfloat16(57344, -1), 0x7F, [0x7B, 0xBC]),
    (2, "9.2", in_bfloat16(57600, -1), 0x80, [0x77, 0xB8]),
    (3, "9.2", np.float16([449, 1]), 0x7F, [0x7E, 0x38]),
    (3, "9.2", np.float16([451, 1]), 0x80, [0x76, 0x30]),
    (16, "9.0", np.float16([np.inf, 1]), 0xFF, [0x00, 0x00]),
    (17, "9.0", in_bfloat16(np.nan, -1), 0xFF, [0x00, 0x00]),
]


@pytest.mark.parametrize("mode, cann, begin, scale, y", IN_GROUPS)
def test_init_routing_of_one_group(mode, cann, begin, scale, y):
    x = np.zeros((1, 32), begin.dtype)
    x[0, :len(begin)] = begin
    made, _, _, codes = npuquant.npu_moe_init_routing_v2(x, np.zeros((1, 1), i4), expert_num=1, quant_mode=mode,
                                                         cann=cann)
    assert made.dtype == codes.dtype == np.uint8 and codes.shape == ((1, 1, 2) if mode == 9 else (1, 2))
    assert codes.reshape(-1).tolist() == [scale, 0] and made[0, :len(y)].tolist() == y and not made[0, len(y):].any()


def round_scales(row, kind, least):
    """RoundScale of a row, element by element: the codes of y and of the scales."""
    form = TYPES[kind]
    values = [form.value(code) for code in range(128)]
    values = [value for value in values if value <= form.most]
    y, codes = [], []
    for begin in range(0, len(row), 32):
        group = [float(value) for value in row[begin:begin + 32]]
        largest = max(max(int(f4(abs(value)).view(np.uint32)) >> 16 for value in group), least)
        exponent, emax = largest >> 7, {"float8_e4m3fn": 8, "float8_e5m2": 15}[kind]
        up = (largest & 0x7F) > 0x60
        codes.append(0xFF if largest >= 0x7F80 else 0 if largest == 0 else 1 if exponent <= emax
                     else exponent - emax + up)
        for value in group:
            size = 0.0 if codes[-1] == 0xFF else math.ldexp(abs(value), 127 - codes[-1])
            above = next((i for i, each in enumerate(values) if each >= size), len(values) - 1)
            down, to = max(above - 1, 0), size - values[above - 1] if above else 0.0
            nearest = above if to > values[above] - size or (to == values[above] - size and above % 2 == 0) else down
            sign = math.copysign(1, value) < 0 and codes[-1] != 0xFF
            y.append((above if size >= values[above] else nearest) | 0x80 * sign)
    return y, codes + [0] * (len(codes) % 2)


def test_unset_codes_are_nan(monkeypatch):
    monkeypatch.setattr(_unset.chosen, "unset", "nan")
    y, _, _, codes = npuquant.npu_moe_init_routing_v2(np.ones((2, 4), np.float16), np.array([[0], [2]], i4), expert_num=3,
                                                      active_expert_range=[0, 1], quant_mode=3)
    assert y[1].tolist() == [0xFF] * 4 and codes[1].tolist() == [0xFF] * 2 and unset(codes)[1].all()


@pytest.mark.parametrize("capacity", [0, 2])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("mode, cann", [(2, "9.0"), (3, "9.0"), (9, "9.0"), (2, "9.2"), (3, "9.2"), (9, "9.2"),
                                        (16, "9.0"), (17, "9.2")])
def test_init_routing_in_groups(mode, cann, kind, capacity):
    """The rows are those of quant_mode -1."""
    to = "float4_e2m1fn_x2" if mode == 9 else "float8_e5m2" if mode % 2 == 0 else "float8_e4m3fn"
    for columns in (2, 32, 70, 128):
        x, ids = random_rows((7, columns), kind), rng.integers(0, 3, (7, 2)).astype(i4)
        x[0] = bits_of(f4([np.nan, *[1] * (columns - 1)]), kind)
        x[1], x[2] = 0, bits_of(f4(rng.standard_normal(columns)) * f4(2.0**-14), kind)
        options = {"expert_num": 3, "expert_capacity": capacity, "drop_pad_mode": int(capacity > 0),
                   "active_expert_range": [] if capacity else [1, 3]}
        rows, place, _, _ = npuquant.npu_moe_init_routing_v2(x, ids, **options)
        y, index, _, codes = npuquant.npu_moe_init_routing_v2(x, ids, quant_mode=mode, cann=cann, **options)
        rows, y = rows.reshape(-1, columns), y.reshape(-1, columns // (2 if mode == 9 else 1))
        assert (index == place).all() and len(codes) == len(y)
        assert (unset(y)[:, 0] == unset(codes).reshape(len(codes), -1)[:, 0]).all()
        for i, row in enumerate(rows):
            if i not in place:
                assert not y[i].any() and not codes[i].any()
            elif mode in (16, 17) or (cann == "9.2" and mode != 9):
                wanted = round_scales(floats(row), to, 0x38D2 if mode > 9 else 0)
                assert (y[i].tolist(), codes[i].tolist()) == wanted
            else:
                wanted = expected.dynamic_mx_quant(row[None], -1, 32, 0, 0, 2, 0, 0, 0, to)
                assert (y[i] == wanted[0][0]).all() and (codes[i].reshape(-1) == wanted[1].reshape(-1)).all()


def test_init_routing_without_counts():
    x, ids = np.ones((2, 4), f4), np.zeros((2, 1), i4)
    _, _, counts, _ = npuquant.npu_moe_init_routing_v2(x, ids, expert_num=3)
    assert counts.shape == (3,) and unset(counts).all()
    nothing = npuquant.npu_moe_init_routing_v2(x[:0], ids[:0], expert_num=3, expert_tokens_num_flag=True, quant_mode=1)
    assert [one.shape for one in nothing] == [(0, 4), (0,), (3,), (0,)] and not nothing[2].any()


def test_init_routing_of_long_rows():
    """The device cuts rows of some 9,300 columns, and has the former rounding there; not with drop_pad_mode 1."""
    x, ids = rng.standard_normal((2, 9301)).astype(f4), np.zeros((2, 1), i4)

    def rounded(**options):
        return npuquant.npu_moe_init_routing_v2(options.pop("x", x), ids, expert_num=1, quant_mode=1, **options)[0]

    for y, rule in ((rounded(), "moe_routing_8_5"), (rounded(x=x[:, 1:]), "moe_routing"),
                    (rounded(x=x[:, 1:], cann="8.5"), "moe_routing_8_5"),
                    (rounded(drop_pad_mode=1, expert_capacity=2, cann="8.5").reshape(2, -1), "moe_routing")):
        assert (y == npuquant.row_quant(x[:, -y.shape[1]:], rule)[0]).all()


@pytest.mark.parametrize("tokens_type, rule", [(2, "moe_routing"), (1, "moe_routing_8_5")])
def test_init_routing_of_one_shape(tokens_type, rule):
    """CANN 8.5 has a kernel of its own for the shape of a model."""
    x, ids = bits_of(rng.standard_normal((1, 7168)).astype(f4), "bfloat16"), np.arange(8, dtype=i4)[None]
    y = npuquant.npu_moe_init_routing_v2(x, ids, scale=np.ones((256, 7168), f4), expert_num=256, quant_mode=1,
                                         expert_tokens_num_type=tokens_type, expert_tokens_num_flag=True, cann="8.5")[0]
    assert (y == npuquant.row_quant(x, rule)[0]).all()


def re_routing_kernel(mistake, tokens, counts, scales):
    """npu_moe_re_routing, perhaps with a mistake, block by block."""
    ranks, experts = counts.shape
    read = counts
    if mistake == "counts-turned":
        read = counts.reshape(-1)[[e * ranks + r for r in range(ranks) for e in range(experts)]].reshape(ranks, experts)
    begin, blocks = 0, []
    for r, e in np.ndindex(ranks, experts):
        rows = list(range(begin, begin + read[r, e]))
        blocks.append((e, r, rows[::-1] if mistake == "equal-last-first" else rows))
        begin += read[r, e]
    if mistake != "unsorted":
        blocks.sort(key=lambda block: (-block[0] if mistake == "experts-descending" else block[0],
                                       -block[1] if mistake == "ranks-descending" else block[1]))
    source = [row for _, _, rows in blocks for row in rows]
    index = [source.index(i) for i in range(len(source))] if mistake == "index-inverse" else source
    sums = [sum(int(counts[r, e]) for r in range(ranks)) for e in range(experts)]
    if mistake == "ends-for-counts":
        sums = list(itertools.accumulate(sums))
    elif mistake == "counts-of-ranks":
        sums = [int(sum(counts[r])) for r in range(ranks)]
    of_scales = list(range(len(source))) if mistake == "scales-unmoved" else source
    return (tokens[source], None if scales is None else scales[of_scales], np.array(index, i4),
            np.array(sums, counts.dtype))


def test_re_routing():
    for ranks, experts, kind, number in [(3, 2, "float16", i4), (1, 4, "int8", i8), (2, 3, "bfloat16", i4)]:
        counts = rng.integers(0, 4, (ranks, experts)).astype(number)
        tokens = random_rows((int(counts.sum()) + 2, 5), kind)
        scales = rng.standard_normal(len(tokens)).astype(f4) if kind == "int8" else None
        results = npuquant.npu_moe_re_routing(tokens, counts, per_token_scales=scales)
        wanted, rows = re_routing_kernel("", tokens, counts, scales), counts.sum()
        for each in zip(results, wanted, (rows, 0 if scales is None else rows, rows, None)):
            check(*each)


# ---- sums of a token's rows ------------------------------------------------------------------------------------------


def sum_kernel(mistake, op, rows, index, weights, skips=(), bias=None, expert=None, mode=2):
    """npu_moe_token_unpermute and npu_moe_finalize_routing perhaps with a mistake, slot by slot."""
    kind, flat = "bfloat16" if rows.dtype == np.uint16 else rows.dtype.name, floats(rows).reshape(-1, rows.shape[-1])
    finalizes, (n, k), weight = op == "npu_moe_finalize_routing", weights.shape, floats(weights)
    place = {(t, j): j * n + t if (mode < 2) != (mistake == "index-turned") else t * k + j for t, j in np.ndindex(n, k)}
    step = kind if finalizes and kind == "float16" else "float32"
    of_sum = {"steps-rounded": kind, "sums-rounded": kind, "steps-float32": "float32", "sums-float32": "float32"}
    of_product = {"steps-rounded": kind, "products-rounded": kind, "steps-float32": "float32"}

    def added(a, b):
        return floats(bits_of(a + b, of_sum.get(mistake, step)))

    def value(t, j):
        """What slot j adds, and whether it does."""
        row, w, e = int(index[place[t, j]]), weight[t, j], expert[t, j] if expert is not None else 0
        if mistake == "index-inverse":
            row = index.tolist().index(place[t, j])
        elif mistake == "index-one-less":
            row = max(row - 1, 0) if row < len(flat) else row
        elif mistake == "index-one-more":
            row = min(row + 1, len(flat) - 1) if row < len(flat) else row
        if mistake == "weights-by-row":
            w = weight.reshape(-1)[min(max(row, 0), n * k - 1)]
        elif mistake == "weights-by-slot":
            w = weight.reshape(-1)[j * n + t]
        elif mistake in ("weights-of-token-before", "weights-of-token-behind"):
            w = weight[(t + (1 if mistake.endswith("behind") else -1)) % n, j]
        elif mistake in ("weights-bfloat16", "weights-float16"):
            w = floats(bits_of([w], mistake[8:]))[0]
        is_dropped = row < 0 or row >= len(flat)
        adds = finalizes or w != 0 or mistake in ("zero-weight-added", "weights-left-out")
        if is_dropped and mistake in ("dropped-last", "dropped-first"):
            row, is_dropped = -1 if mistake == "dropped-last" else 0, False
        if is_dropped and mistake == "dropped-bias":
            v = np.zeros(rows.shape[-1], f4)
        elif is_dropped or not adds:
            return None
        else:
            v = flat[row]
        b = None if bias is None or mistake == "bias-left-out" else floats(bias)
        if mistake == "experts-by-slot":
            e = expert.reshape(-1)[j * n + t]
        shift = {"bias-of-expert-before": -1, "bias-of-expert-behind": 1}.get(mistake, 0)
        if b is not None and mistake != "bias-after-weight":
            v = added(v, b[(e + shift) % len(b)])
        if mistake == "fused":
            return v.astype(np.longdouble) * np.longdouble(w)
        if mistake != "weights-left-out":
            v = floats(bits_of(v * w, of_product.get(mistake, step)))
        return added(v, b[e]) if b is not None and mistake == "bias-after-weight" else v

    y = np.zeros((n, rows.shape[-1]), f4)
    for t in range(n):
        order = list(range(k))
        if mistake == "slots-reversed":
            order.reverse()
        elif mistake == "slots-by-row":
            order.sort(key=lambda j: index[place[t, j]])
        kept = [] if mistake == "skips-left-out" else list(skips)[:1 if mistake == "skip2-left-out" else None]
        skip = added(floats(kept[0][t]), floats(kept[1][t]) if len(kept) > 1 else f4(0)) if kept else None
        values = [value(t, j) for j in order]
        if mistake == "pairwise":
            parts = [np.zeros(rows.shape[-1], f4) if v is None else v for v in values]
            while len(parts) > 1:
                parts = [added(*parts[i:i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
            y[t] = parts[0] if skip is None else added(skip, parts[0])
            continue
        first = skip is None or mistake == "skips-last"
        total = np.zeros(rows.shape[-1], f4) if first else skip
        for i, v in enumerate(values):
            if v is not None:
                total = v.astype(f4) if i == 0 and first else (
                    (total + v).astype(f4) if mistake == "fused" else added(total, v))
        y[t] = added(total, skip) if mistake == "skips-last" else total
    return bits_of(y, kind)


@pytest.mark.parametrize("kind, probs_kind", itertools.product(["float32", "float16", "bfloat16"], repeat=2))
def test_token_unpermute(kind, probs_kind):
    n, k, columns = 6, 4, 9
    tokens, index = random_rows((n * k - 3, columns), kind), rng.permutation(n * k).astype(i4)
    probs = random_rows((n, k), probs_kind)
    probs[1, 0] = probs[2, 2] = 0
    y = npuquant.npu_moe_token_unpermute(tokens, index, probs)
    assert y.tobytes() == sum_kernel("", UNPERMUTE, tokens, index, probs).tobytes()
    alone = npuquant.npu_moe_token_unpermute(tokens, index[:3])
    assert all((alone[i] == (tokens[row] if row < len(tokens) else 0)).all() for i, row in enumerate(index[:3]))


@pytest.mark.parametrize("kind, mode, skips, with_bias", itertools.product(
    ["float32", "float16", "bfloat16"], [0, 1, 2, 3], [0, 1, 2], [False, True]))
def test_finalize_routing(kind, mode, skips, with_bias):
    n, k, columns, experts, capacity = 5, 3, 8, 4, 5

    rows = random_rows((experts, capacity, columns) if mode % 2 else (n * k, columns), kind)
    index = rng.permutation(rows.size // columns)[:n * k].astype(i4)
    if mode % 2:
        index[rng.integers(0, n * k, 4)] = -1
    scales = random_rows((n, k), "float32" if kind == "bfloat16" and with_bias else kind)
    skip = [random_rows((n, columns), kind) for _ in range(skips)]
    bias = random_rows((experts, columns), kind) if with_bias else None
    expert = rng.integers(0, experts, (n, k)).astype(i4)
    y = npuquant.npu_moe_finalize_routing(rows, *[*skip, None, None][:2], bias, scales, index,
                                          expert if with_bias else None, mode)
    assert (floats(y) == floats(sum_kernel("", FINALIZE, rows, index, scales, skip, bias, expert, mode))).all()


def test_rounding_once_and_at_each_step():
    """2048 + 1 + 1 in float16: the sum of float32 is 2050, and 2048 if each step is rounded."""
    rows, ones = np.array([[2048], [1], [1]], np.float16), np.ones((1, 3), np.float16)
    index = np.arange(3, dtype=i4)
    assert npuquant.npu_moe_token_unpermute(rows, index, ones).tolist() == [[2050]]
    assert npuquant.npu_moe_finalize_routing(rows, None, None, None, ones, index, None, 2).tolist() == [[2048]]
    assert npuquant.npu_moe_finalize_routing(rows, None, None, None, None, index, None, 2, 3).tolist() == [[2048]]


# ---- grouped products ------------------------------------------------------------------------------------------------

KINDS = {"int8": "int64", "float16": "float32", "bfloat16": "bfloat16", "int32": None}


def random_matrix(shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize("kind, group_list_type, stacked, transposed", itertools.product(
    KINDS, [0, 1, 2, None], [True, False], [False, True]))
def test_grouped_matmul(kind, group_list_type, stacked, transposed):
    """Each group is npu_quant_matmul() of its rows; group_list_type None: one x for each weight."""
    K, N, sizes = 1100, 9, [4, 0, 3]
    if stacked and group_list_type is None:
        pytest.skip("one weight is for one x")
    weight = [random_matrix((N, K)).T if transposed else random_matrix((K, N)) for _ in sizes]
    if stacked:
        memory = np.stack([one.T if transposed else one for one in weight])
        given = [memory.transpose(0, 2, 1) if transposed else memory]
    else:
        given = weight
    x = random_matrix((9, K))
    scale = rng.uniform(1e-4, 1e-3, (3, N)).astype(f4)
    scale = {"int8": lambda: npuquant.npu_trans_quant_param(scale), "float16": lambda: scale,
             "bfloat16": lambda: bits_of(scale, "bfloat16"), "int32": lambda: None}[kind]()
    bias = rng.integers(-999, 999, (3, N)).astype(i4)
    per_token = rng.uniform(0.5, 2, len(x)).astype(f4) if kind in ("float16", "bfloat16") and group_list_type else None
    lists = {"scale": scale, "bias": bias}
    lists = {name: None if value is None else [value] if stacked else list(value) for name, value in lists.items()}
    if group_list_type is None:
        parts = [slice(0, 4), slice(4, 4), slice(4, 7)]
        results = npuquant.npu_grouped_matmul([x[part] for part in parts], given, group_type=-1, output_dtype=kind,
                                              **lists)
        groups = list(zip(range(3), parts, results))
    else:
        order = [2, 0] if group_list_type == 2 else [0, 1, 2]
        group_list = {0: np.cumsum(sizes), 1: np.array([4, -5, 3]),
                      2: np.array([[2, 3], [0, 4], [1, 0]])}[group_list_type]
        y, = npuquant.npu_grouped_matmul([x], given, group_list=group_list, group_type=0, split_item=3,
                                         group_list_type=group_list_type, output_dtype=kind, **lists,
                                         per_token_scale=None if per_token is None else [per_token])
        assert unset(y).any(axis=1).tolist() == [False] * 7 + [True] * 2 and not y[7:].any()
        ends = np.cumsum([0] + [sizes[expert] for expert in order])
        groups = [(expert, slice(ends[i], ends[i + 1]), y[ends[i]:ends[i + 1]]) for i, expert in enumerate(order)]
    for expert, part, made in groups:
        sums = x[part].astype(i4) @ weight[expert].astype(i4) + bias[expert]
        if kind == "int8":
            wanted = expected.requant(sums, scale[expert], None, "int8")
        elif kind == "int32":
            wanted = sums
        else:
            wanted = expected.dequant(sums, scale[expert], None if per_token is None else per_token[part], None, kind)
        assert made.dtype == wanted.dtype and (made == wanted).all()


def grouped_kernel(mistake, x, weight, groups, kind, scale, per_token, bias):
    """npu_grouped_matmul, perhaps with a mistake, row by row; groups has sizes, or pairs of an expert and a size."""
    (M, K), (E, _, N) = x.shape, weight.shape
    pairs = groups if isinstance(groups[0], tuple) else list(enumerate(groups))
    ends = list(itertools.accumulate(size for _, size in pairs))
    begins = [0, *ends[:-1]]
    sizes = [size for _, size in pairs]
    spans = list(zip([e for e, _ in pairs], begins, ends))
    if mistake == "ends-for-counts":
        spans = [(e, sizes[e - 1] if e else 0, sizes[e]) for e in range(E)]
    elif mistake == "counts-for-ends":
        spans = [(e, sum(ends[:e]), sum(ends[:e + 1])) for e in range(E)]
    elif mistake == "begins-for-ends":
        spans = [(e, ends[e], ends[e + 1] if e + 1 < E else M) for e in range(E)]
    elif mistake == "pairs-by-place":
        spans = [(i, begin, end) for i, (_, begin, end) in enumerate(spans)]
    elif mistake == "empty-skipped":
        spans = [(i, begin, end) for i, (_, begin, end) in enumerate(span for span in spans if span[1] < span[2])]
    elif mistake in ("group-late", "group-early"):
        by, spans = 1 if mistake == "group-late" else -1, [span for span in spans if span[1] < span[2]]
        spans = [(e, begin + by * (i > 0), end + by * (i + 1 < len(spans))) for i, (e, begin, end) in enumerate(spans)]
    y = np.zeros((M, N), f4 if kind != "int32" else i4)
    for e, begin, end in spans:
        for i in range(begin, min(end, M)):
            other = {name: (e + 1) % E if mistake in (f"{name}-elsewhere", "expert-elsewhere") else e
                     for name in ("weight", "scale", "bias")}
            w = weight[other["weight"]]
            if mistake == "weight-turned":
                w = w.reshape(-1)[[n * K + k for k in range(K) for n in range(N)]].reshape(K, N)
            sums = x[i].astype(i4) @ w.astype(i4)
            b = None if bias is None or mistake == "bias-left-out" else bias[other["bias"]]
            if kind == "int32":
                y[i] = sums if b is None else sums + b
                continue
            at_end = b is not None and (b.dtype == np.uint16) != (mistake == "bias-moved")
            t = sums.astype(f4)
            if b is not None and not at_end:
                t = (sums + b).astype(f4) if b.dtype == i4 else t + floats(b)
            s, p = floats(scale[other["scale"]]), None if per_token is None else per_token[i]
            if mistake == "token-scales-in-group":
                p = per_token[i - begin]
            elif mistake in ("token-scales-before", "token-scales-behind"):
                p = per_token[(i + (1 if mistake.endswith("behind") else -1)) % M]
            elif mistake == "token-scales-left-out":
                p = f4(1)
            t = floats(bits_of(t, kind)) if mistake == "sums-rounded" else t
            if mistake == "scales-first":
                t = t * (s * p)
            else:
                t = t * s
                t = floats(bits_of(t, kind)) if mistake == "rounded-between" else t
                t = t if p is None else t * p
            y[i] = t + floats(b) if at_end else t
    return bits_of(y, kind) if kind != "int32" else y


def test_older_form_of_grouped_matmul():
    """A list of int: the last is the number of rows; per_token_scale and group_list_type have no effect."""
    x, weight = random_matrix((5, 6)), random_matrix((2, 6, 4))
    words = npuquant.npu_trans_quant_param(np.full((2, 4), 0.01, f4))
    new, = npuquant.npu_grouped_matmul([x], [weight], scale=[words], group_list=np.array([2, 5]), split_item=3,
                                       group_type=0)
    old, = npuquant.npu_grouped_matmul([x], [weight], scale=[words], group_list=[2, 5], split_item=3,
                                       group_list_type=1, per_token_scale=[np.ones(1, f4)])
    parts = npuquant.npu_grouped_matmul([x], list(weight), scale=list(words), group_list=[2, 5], split_item=1)
    assert (old == new).all() and (np.concatenate(parts) == new).all()


def test_nothing_is_written_without_elements():
    y, = npuquant.npu_grouped_matmul([np.zeros((3, 0), np.int8)], [np.zeros((2, 0, 4), np.int8)], output_dtype="int32",
                                     group_list=np.array([1, 3]), split_item=2, group_type=0)
    assert y.shape == (3, 4) and unset(y).all()


# ---- a layer ---------------------------------------------------------------------------------------------------------


def layer(x, experts, weights, w13, w13_scale, w2, w2_scale):
    """The layer of docs/mixture-of-experts.md for bits of bfloat16, slot by slot."""
    y = np.zeros(x.shape, f4)
    for t, j in np.ndindex(experts.shape):
        e = experts[t, j]
        row, scale = expected.row_quant(x[t], "moe_routing")
        sums = row.astype(i4)[None] @ w13[e].astype(i4)
        gate, up = np.split(floats(expected.dequant(sums, w13_scale[e], f4([scale]), None, "bfloat16")), 2, axis=-1)
        hidden = round_to(np.maximum(gate, f4(0)) * up, "bfloat16")
        row, scale = expected.dynamic_quant(hidden, None, None, False, "product", "int8")
        out = floats(expected.dequant(row.astype(i4) @ w2[e].astype(i4), w2_scale[e], scale, None, "bfloat16"))[0]
        y[t] = y[t] + out * floats(weights[t, j:j + 1]) if j else out * floats(weights[t, :1])
    return round_to(y, "bfloat16")


def test_layer_of_the_page(torch):
    import npuquant.torch_npu
    from npuquant._torch.tensors import array_of

    page = pathlib.Path(__file__).parents[2] / "docs" / "mixture-of-experts.md"
    script, = re.findall(r"^```python\n(# experts.py\n.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names = {"__name__": "experts"}
    npuquant.torch_npu.install()
    try:
        exec(script, names)
        calls = [[names["x"], names["experts"].int(), names["weights"], names["y"]]]
        for tokens in (1, 17, 40):
            x = torch.from_numpy(rng.standard_normal((tokens, 64)).astype(f4)).bfloat16()
            experts = torch.from_numpy(np.argsort(rng.random((tokens, 4)))[:, :3].astype(i4))
            weights = torch.from_numpy(rng.random((tokens, 3)).astype(f4)).bfloat16()
            calls.append([x, experts, weights, names["layer"](x, experts, weights)])
    finally:
        npuquant.torch_npu.uninstall()
    experts = [array_of(names[name]) for name in ("w13", "w13_scale", "w2", "w2_scale")]
    for *given, y in calls:
        assert (array_of(y) == layer(*map(array_of, given), *experts)).all()


# ---- moves -----------------------------------------------------------------------------------------------------------


def sorted_positions(ids):
    """The positions by expert; those of one expert stay in order."""
    flat = ids.reshape(-1).tolist()
    return [p for expert in sorted(set(flat)) for p, one in enumerate(flat) if one == expert]


def strided(array):
    """The same values with other strides."""
    return np.stack([array, array], -1)[..., 0]


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("active_num", [0, 2, 5, 9])
def test_init_routing_of_version_1(kind, active_num):
    n, k = 5, 3
    x, ids = random_rows((n, 4), kind), rng.integers(-2, 6, (n, k)).astype(i4)
    for numbers in np.arange(n * k, dtype=i4).reshape(k, n).T, rng.permutation(n * k).astype(i4).reshape(n, k):
        rows, index, experts = npuquant.npu_moe_init_routing(strided(x), strided(numbers), ids[::-1][::-1], active_num)
        order = sorted_positions(ids)
        taken = [numbers.reshape(-1)[p] for p in order]
        assert rows.tobytes() == b"".join(x[r % n].tobytes() for r in taken[:min(n, active_num) * k])
        assert rows.shape == (min(n, active_num) * k, 4) and experts.tolist() == [ids.reshape(-1)[p] for p in order]
        assert [index[r] for r in taken] == list(range(n * k)) and index.dtype == experts.dtype == i4


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize("wanted", [None, 0, 7, 99, -1, -14])
def test_token_permute(kind, wanted):
    n, k = 5, 3
    tokens, ids = random_rows((n, 4), kind), rng.integers(-2, 6, (n, k)).astype(i8)
    rows, index = npuquant.npu_moe_token_permute(strided(tokens), strided(ids), wanted)
    order = sorted_positions(ids)
    count = {None: 15, 0: 15, 7: 7, 99: 15, -1: 14, -14: 1}[wanted]
    assert rows.shape == (count, 4) and rows.flags.c_contiguous
    assert rows.tobytes() == b"".join(tokens[p // k].tobytes() for p in order[:count])
    assert [index[p] for p in order] == list(range(n * k))
    one, _ = npuquant.npu_moe_token_permute(tokens, ids[:, 0].astype(i4))
    assert one.tobytes() == b"".join(tokens[p].tobytes() for p in sorted_positions(ids[:, 0]))
    if wanted is None and kind != "int8":  # and back
        back = npuquant.npu_moe_token_unpermute(rows, index, np.tile(np.array([[0, 1, 0]], f4), (n, 1)))
        assert (floats(back) == floats(tokens)).all()


@pytest.mark.parametrize("given, experts, wanted", [
    ([0, 0, 0, 2, 2, 3], 4, [3, 3, 5, 6]), ([0, 0, 0, 2, 2, 3], 3, [3, 3, 5]),
    ([0, 0, 0, 2, 2, 3], 6, [3, 3, 5, 6, 6, 6]), ([2, 2], 4, [0, 0, 2, 2]), ([], 2, [0, 0]),
    ([1, 999], 257, [0] + [1] * 256)])
def test_compute_expert_tokens(given, experts, wanted):
    made = npuquant.npu_moe_compute_expert_tokens(np.array(given, i4), experts)
    assert made.tolist() == wanted and made.dtype == i4


def test_moves_of_nothing():
    x, ids = np.ones((0, 4), f4), np.ones((0, 2), i4)
    assert [one.shape for one in npuquant.npu_moe_init_routing(x, ids, ids, 0)] == [(0, 4), (0,), (0,)]
    assert [one.shape for one in npuquant.npu_moe_token_permute(x, ids)] == [(0, 4), (0,)]


# ---- what is taken ---------------------------------------------------------------------------------------------------


def test_type_of_x_in_routing():
    """With quant_mode 0 and 1 it is not read."""
    for x, names in (A[:3, :4], ["int8", np.int8, 1, 258]), (X, ["float16", 5, 257]):
        for name in names:
            assert (npuquant.npu_moe_init_routing_v2(x, IDS, expert_num=3, x_dtype=name)[0] ==
                    npuquant.npu_moe_init_routing_v2(x, IDS, expert_num=3)[0]).all()
    assert npuquant.npu_moe_init_routing_v2(X, IDS, expert_num=3, x_dtype="hifloat8", quant_mode=1)[0].dtype == np.int8
    with pytest.raises(NotImplementedError, match=r"with x_dtype torch_npu.hifloat8 \(290\)"):
        npuquant.npu_moe_init_routing_v2(A[:3, :4], IDS, expert_num=3, x_dtype=290)


def test_index_of_probability_0():
    for nothing in 0.0, -0.0:
        y = npuquant.npu_moe_token_unpermute(ROWS, np.array([1, -1], i4), np.array([[0.5, nothing]], f4))
        assert y.tolist() == [[0.5] * 4]
    with pytest.raises(RuntimeError, match="^sorted_indices: has -1"):
        npuquant.npu_moe_token_unpermute(ROWS, np.array([1, -1], i4), np.array([[0.5, np.nan]], f4))


@pytest.mark.parametrize("name", ["hifloat8", 290, "float4_e2m1fn_x2", 297])
def test_re_routing_of_bytes(name):
    tokens, counts = rng.integers(0, 256, (4, 6)).astype(np.uint8), np.array([[1, 1], [1, 1]])
    for given in tokens, tokens.view(np.int8):
        rows = npuquant.npu_moe_re_routing(given, counts, tokens_dtype=name)[0]
        assert rows.dtype == np.uint8 and (rows == tokens[[0, 2, 1, 3]]).all()


def test_none_stands_for_a_default():
    y = npuquant.npu_grouped_matmul([A], [W], **{**GROUPED, "group_list_type": None}, act_type=None,
                                    output_dtype="int32")[0]
    assert (y == npuquant.npu_grouped_matmul([A], [W], **GROUPED, output_dtype="int32")[0]).all()
    y = npuquant.npu_moe_finalize_routing(ROWS, None, None, None, None, INDEX, None, None, None)
    assert (y == npuquant.npu_moe_finalize_routing(ROWS, None, None, None, None, INDEX, None)).all()


def test_one_element_is_not_transposed():
    one = np.ones((1, 1), np.int8)
    weights = [one, np.array([[1]], np.int8, order="F"), one.T]
    npuquant.npu_grouped_matmul([one], weights, group_list=np.array([1, 1, 1]), split_item=3, group_type=0,
                                output_dtype="int32")


# ---- what does not depend on the caller ------------------------------------------------------------------------------


def test_subnormals_that_the_caller_flushes(torch):
    rows, index = np.full((2, 3), 2**-140, f4), np.arange(2, dtype=i4)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormals")
    try:
        y = npuquant.npu_moe_token_unpermute(rows, index, np.full((1, 2), 0.5, f4))
        z = npuquant.npu_moe_finalize_routing(rows, None, None, None, np.full((1, 2), 0.5, f4), index, None, 2)
    finally:
        torch.set_flush_denormal(False)
    assert y.view(i4).tolist() == z.view(i4).tolist() == [[2**9] * 3]


def test_unset_of_a_part():
    x, ids = np.ones((2, 4), f4), np.array([[0], [2]], i4)
    y = npuquant.npu_moe_init_routing_v2(x, ids, expert_num=3, active_expert_range=[0, 1])[0]
    assert unset(y).tolist() == [[False] * 4, [True] * 4]
    assert unset(y[::-1, 1:]).tolist() == [[True] * 3, [False] * 3] and unset(y.view(np.int8)[1:]).tolist() == [[True] * 16]
    assert unset(y.T[2]).tolist() == [False, True] and unset(y[:0]).shape == (0, 4)
    for other in y.copy(), y + 0, np.zeros(3, f4):
        with pytest.raises(ValueError, match="^result: is no result .* is not known of a copy$"):
            unset(other)
    with pytest.raises(TypeError, match="^result: is list; expected an array or a tensor"):
        unset([y])
    address = y.ctypes.data
    del y
    assert not _unset._find(address)


def test_unset_of_tensors(torch):
    x, ids = torch.ones(2, 4).bfloat16(), torch.tensor([[0], [2]], dtype=torch.int32)
    y = npuquant.torch.npu_moe_init_routing_v2(x, ids, expert_num=3, active_expert_range=[0, 1])[0]
    views = y.t(), y.detach().view(4, 2).t(), y[1:], y.view(torch.int16), y.unsqueeze(0).expand(3, 2, 4)
    del y  # its views keep the memory
    assert [unset(one).tolist() for one in views] == [
        [[False, True]] * 4, [[False, False, True, True]] * 2, [[True] * 4], [[False] * 4, [True] * 4],
        [[[False] * 4, [True] * 4]] * 3]
    for copied in views[0].clone(), views[0].float(), views[0].contiguous(), views[0] + 0, torch.ones(3), x.to("meta"):
        with pytest.raises(RuntimeError, match="^result: is no result .* is not known of a copy$"):
            unset(copied)
    storage = views[0].untyped_storage() if hasattr(views[0], "untyped_storage") else views[0].storage()
    storage.resize_(0)
    for other in [torch.ones(2, 4).bfloat16() for _ in range(100)]:  # some may have the same memory
        with pytest.raises(RuntimeError, match="not known of a copy"):
            unset(other)


OPERATORS = ["npu_grouped_matmul", "npu_moe_compute_expert_tokens", "npu_moe_finalize_routing", "npu_moe_init_routing",
             "npu_moe_init_routing_v2", "npu_moe_re_routing", "npu_moe_token_permute", "npu_moe_token_unpermute"]


@pytest.mark.parametrize("name", OPERATORS)
def test_signature_is_torch_npus(torch, name):
    schema = getattr(npuquant.torch, name).default._schema
    parameters = inspect.signature(getattr(npuquant, name)).parameters.values()
    assert {one.name for one in parameters} - {one.name for one in schema.arguments} <= {"cann"}
    for argument, parameter in zip(schema.arguments, parameters):
        assert argument.name == parameter.name
        assert argument.kwarg_only == (parameter.kind == parameter.KEYWORD_ONLY)
        if argument.has_default_value():
            default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            assert argument.default_value == default
        else:
            assert parameter.default is parameter.empty
    assert getattr(torch.ops.npuquant, name) is getattr(npuquant.torch, name)


def test_tensors_without_values(torch):
    """torch_npu's shapes of what is not asked for have no dimension on the device meta."""
    one = torch.ones(1)
    for device, counts, scales in ("cpu", (3,), (4,)), ("meta", (), ()):
        x, ids, scale = (value.to(device) for value in (torch.ones(4, 8), torch.zeros(4, 1, dtype=torch.int32), one))
        made = npuquant.torch.npu_moe_init_routing_v2(x, ids, scale=scale, offset=scale, expert_num=3, quant_mode=0)
        assert (made[2].shape, made[3].shape) == (counts, scales)
        assert device == "meta" or (isinstance(unset(made[3]), torch.Tensor) and unset(made[3]).all())


# ---- causes ----------------------------------------------------------------------------------------------------------


def cause_of(actual, operator, *args, **kwargs):
    """The diagnosis of a kernel, whose report is asked for in all its forms."""
    found = npuquant.diagnose(actual, operator, *args, **kwargs)
    assert repr(found) and found._repr_html_() and found.explain_verdict()
    assert found.to_dict()["verdict"] == found.verdict
    return found


def names(operator):
    return [hypothesis.name for hypothesis in npuquant.hypotheses(operator)]


def sum_call(op, kind="float16", weights_kind="float32", n=12, k=4, columns=40, drops=False, bias=False, mode=2):
    """A kernel, the operator's call, and the kernel's arguments; with drops some slots have no row."""
    rows = random_rows((4, 10, columns) if mode % 2 else (n * k, columns), kind)
    count = 40 if mode % 2 else n * k
    index = rng.permutation(max(count, n * k)).astype(i4)[:n * k]
    if mode % 2:
        index[index >= 40] = -1
    elif drops:
        rows = rows[:-9]
    weights = bits_of(rng.uniform(0.1, 1, (n, k)).astype(f4), weights_kind)
    given, call = {"rows": rows, "index": index, "weights": weights}, (op, rows, index, weights)
    if op == FINALIZE:
        extra = {"mode": mode, "skips": [random_rows((n, columns), kind) for _ in range(2)]}
        if bias:
            extra.update(bias=random_rows((4, columns), kind), expert=rng.integers(0, 4, (n, k)).astype(i4))
        call = (op, rows, *extra["skips"], extra.get("bias"), weights, index, extra.get("expert"), mode)
        given.update(extra)
    return lambda mistake="", **changes: sum_kernel(mistake, op, **{**given, **changes}), call, given


_BIAS = {"bias": True, "kind": "float32"}
#: How a mistake shows, if not in the first call of its operator.
SHOWS = {
    **dict.fromkeys(["steps-float32", "sums-float32"], {"kind": "float16", "weights_kind": "float16"}),
    "fused": {"kind": "float32"}, "slots-reversed": {"kind": "float32"}, "slots-by-row": {"kind": "float32"},
    "pairwise": {"kind": "float32"}, "dropped-last": {"mode": 3}, "dropped-first": {"mode": 3},
    "dropped-bias": {"mode": 3, **_BIAS}, "bias-after-weight": _BIAS, "bias-left-out": _BIAS, "experts-by-slot": _BIAS,
    "bias-of-expert-before": _BIAS, "bias-of-expert-behind": _BIAS, "skips-last": {"kind": "float32"}}


def sums(op, mistake):
    how = {"kind": "bfloat16" if op == FINALIZE else "float16", "weights_kind": "float32", "n": 40, "columns": 60,
           **SHOWS.get(mistake, {})}
    if how["kind"] == "float16" and op == FINALIZE:
        how["weights_kind"] = "float16"
    if op == UNPERMUTE and how.pop("mode", 0):
        how["drops"] = True
    kernel, call, given = sum_call(op, **how)
    if mistake == "zero-weight-added":
        given["weights"][:4, 1] = 0
        given["rows"][given["index"][[1, 5, 9, 13]]] = np.inf
    return kernel, call, {}


ROUTED = {"expert_num": 40, "expert_tokens_num_flag": True, "expert_tokens_num_type": 1}
CAPACITY = {**ROUTED, "drop_pad_mode": 1, "expert_capacity": 3}
ACTIVE = {**ROUTED, "active_expert_range": [10, 40]}
SMOOTH = {**ROUTED, "quant_mode": 1}


ROUTED_AS = {
    **{name: CAPACITY for name in ("capacity-one-less", "capacity-one-more", "capacity-unchecked",
                                   "capacity-first-dropped", "dropped-numbered")},
    "counts-of-kept": {**CAPACITY, "expert_capacity": 1},
    "dropped-zero": ACTIVE, "index-of-tokens": {**ROUTED, "row_idx_type": 1},
    **{name: {**ROUTED, "expert_tokens_num_type": 0} for name in ("counts-for-ends", "begins-for-ends")},
    "ends-of-all": {**ACTIVE, "expert_tokens_num_type": 0}, "pairs-from-zero": {**ACTIVE, "expert_tokens_num_type": 2},
    "scale-by-number": {**ACTIVE, "quant_mode": 1}}


def routing(mistake):
    options = dict(ROUTED_AS.get(mistake, ROUTED))
    if is_rule(mistake) or mistake.startswith("scale-"):
        options.setdefault("quant_mode", -1 if mistake == "scale-unmoved" else 1)
    experts = options["expert_num"]
    x, ids = random_rows((60, 40), "float32"), (experts * rng.random((60, 3))**2).astype(i4)
    ids[ids == 39] = 38  # so that counts are not all alike
    groups = 30 if "active_expert_range" in options else experts
    scale = {-1: rng.uniform(1, 2, 60).astype(f4), 1: rng.uniform(0.5, 2, (groups, 40)).astype(f4)}[
        options.get("quant_mode", -1)]
    if mistake == "moe-routing":
        options["cann"] = "8.5"
    if is_rule(mistake):
        x = npuquant.hard_inputs("row_quant", (200, 160), rule="moe_routing").inputs["v"]
        scale, ids = np.ones((40, 160), f4), rng.integers(0, 40, (200, 1)).astype(i4)
    usual = "moe-routing-8-5" if "cann" in options else ""
    return (lambda mistake: routing_kernel(mistake or usual, x, ids, scale, **options),
            (ROUTING, x, ids), {**options, "scale": scale})


def re_routing(mistake):
    counts = rng.integers(0, 8, (16, 16)).astype(i8)
    counts[:, 0] += 9
    tokens, scales = random_rows((int(counts.sum()), 6), "int8"), rng.random(int(counts.sum())).astype(f4)
    return (lambda mistake: re_routing_kernel(mistake, tokens, counts, scales),
            (RE_ROUTING, tokens, counts), {"per_token_scales": scales})


def products(kind, mistake):
    E, K, N = 6, 10, 40000 if mistake == "scales-first" else 24
    sizes = [5, 0, 7, 4, 9, 6]
    x, weight = random_matrix((36, K)), random_matrix((E, K, N))
    scale = None if kind == "int32" else bits_of(rng.uniform(1e-3, 1e-2, (E, N)).astype(f4),
                                                 "bfloat16" if kind == "bfloat16" else "float32")
    bias = bits_of(rng.uniform(-9, 9, (E, N)).astype(f4), "bfloat16") if kind == "bfloat16" else rng.integers(
        -9999, 9999, (E, N)).astype(i4)
    per_token = None if kind == "int32" else rng.uniform(0.5, 2, len(x)).astype(f4)
    groups, list_type = sizes, 1
    if mistake in ("counts-for-ends", "begins-for-ends"):
        list_type = 0
    elif mistake == "pairs-by-place":
        groups, list_type = [(4, 9), (2, 7), (0, 5), (5, 8), (1, 7)], 2
    given = np.cumsum(sizes) if list_type == 0 else np.array([*groups, (0, 0)] if list_type == 2 else sizes)
    call = {"group_list": given, "group_list_type": list_type, "group_type": 0, "split_item": 3, "output_dtype": kind,
            "bias": [bias], "scale": scale if scale is None else [scale],
            "per_token_scale": per_token if per_token is None else [per_token]}
    rest = np.arange(len(x)) >= sum(sizes if list_type < 2 else [size for _, size in groups])

    def kernel(mistake):
        y = grouped_kernel(mistake, x, weight, groups, kind, scale, per_token, bias)
        y[rest] = y[rest] if mistake else 7  # nobody compares it
        return y

    return kernel, (MATMUL, [x], [weight]), call


def has_no_product(kind, mistake):
    """Results of int32 have no scales; of bfloat16, the last bit of float32 shows in one result of some 30,000."""
    return kind == "int32" and ("scale" in mistake or mistake in ("bias-moved", "rounded-between", "sums-rounded")) or (
        kind == "bfloat16" and mistake == "scales-first")


#: For each operator calls in which a mistake shows: the kernel that has it, the call, and its keywords.
CASES = [*((op, functools.partial(sums, op), name) for op in (UNPERMUTE, FINALIZE) for name in names(op)),
         *((ROUTING, routing, name) for name in names(ROUTING)),
         *((RE_ROUTING, re_routing, name) for name in names(RE_ROUTING)),
         *((f"{MATMUL}-{kind}", functools.partial(products, kind), name) for kind in ("float16", "bfloat16", "int32")
           for name in names(MATMUL) if not has_no_product(kind, name))]


@pytest.mark.parametrize("case, mistake", [case[1:] for case in CASES], ids=[f"{op}-{name}" for op, _, name in CASES])
def test_causes(case, mistake):
    """The kernel without its mistake is equal, with the mistake it gets its name, and noise has none."""
    kernel, call, keywords = case(mistake)
    right = kernel("")
    assert cause_of(right, *call, **keywords).verdict == "equal"
    found = cause_of(kernel(mistake), *call, **keywords)
    assert (found.verdict, found.findings[0].name) == ("explained", mistake), found
    assert not found.findings[0].newly_wrong and found.element.hypothesis == found.element.dump
    first, *others = right if isinstance(right, tuple) else [right]
    noise = first.copy()
    noise.reshape(-1).view(f"u{first.itemsize}")[::7] ^= 9
    found = cause_of((noise, *others) if others else noise, *call, **keywords)
    assert found.verdict == "none"
    if call[0] in (UNPERMUTE, FINALIZE):  # of which no element is unset
        assert found.to_dict()["remainder"]["y"] == np.count_nonzero(noise != first)


def test_few_values_are_no_explanation():
    rows, index, weights = bits_of([[1 / 3, 1], [2 / 3, 3]], "float16"), np.arange(2, dtype=i4), f4([[0.3, 0.7]])
    call = UNPERMUTE, rows, index, weights
    found = cause_of(sum_kernel("weights-left-out", *call), *call)
    assert found.verdict == "possible" and found.findings[0].name == "weights-left-out", found
    # All rows are alike: however many there are, they are one observation.
    rows, index = np.tile(bits_of([[1 / 3]], "float16"), (600, 64)), np.arange(600, dtype=i4)
    weights = np.full((200, 3), 0.3, f4)
    found = cause_of(sum_kernel("weights-left-out", UNPERMUTE, rows, index, weights), UNPERMUTE, rows, index, weights)
    assert found.verdict == "possible" and found.findings[0].name == "weights-left-out"
    # A row that holds another is one observation, too: two rows have but two orders.
    x, ids = random_rows((2, 64), "float32"), np.array([[0], [1]], i4)
    found = cause_of((x[::-1], None, None, None), "npu_moe_init_routing_v2", x, ids, expert_num=2)
    assert found.verdict == "possible" and found.findings[0].name == "experts-descending"
    # And memory that was never written has no name.
    rows = random_rows((600, 8), "float16")
    assert cause_of(np.zeros((200, 8), np.float16), UNPERMUTE, rows, index, weights).verdict == "none"


@pytest.mark.parametrize("op", [UNPERMUTE, FINALIZE])
def test_unknown_mistakes_of_sums(op):
    """A kernel with another mistake gets no name."""
    kind = "float16" if op == UNPERMUTE else "bfloat16"
    kernel, call, given = sum_call(op, kind, n=40)
    rows, index, weights = given["rows"], given["index"], given["weights"]
    other = index.copy()
    other[::5] = other[::-5]
    for changes in ({"weights": weights**2}, {"weights": weights / weights.sum(axis=1, keepdims=True)},
                    {"index": other}, {"rows": bits_of((floats(rows) * 0.98).astype(f4), kind)},
                    {"rows": rows[::-1].copy()}, {"weights": np.sort(weights, axis=1)}):
        assert cause_of(kernel(**changes), *call).verdict == "none"


def test_division_of_routing():
    """A quotient that the device may move is no mistake, and has no name."""
    v = npuquant.hard_inputs("row_quant", (60, 160), rule="moe_routing").inputs["v"]
    v[~((np.abs(v).max(axis=1) > 1e-30) & (np.abs(v).max(axis=1) < 1e30))] = 1
    x, ids = v, rng.integers(0, 40, (60, 1)).astype(i4)
    right = npuquant.npu_moe_init_routing_v2(x, ids, **SMOOTH)
    call = "npu_moe_init_routing_v2", x, ids
    assert_equal(right, *call, admissible=True, **SMOOTH)
    scale = right[3][:, None]
    quotients = x[np.argsort(ids[:, 0], kind="stable")] / scale
    moved = np.clip(np.rint(np.nextafter(quotients, f4(np.inf))), -128, 127).astype(np.int8)
    places = np.argwhere(moved != right[0])
    assert len(places) > 9
    y = right[0].copy()
    y[tuple(places[4])] = moved[tuple(places[4])]
    found = cause_of((y, *right[1:]), *call, **SMOOTH)
    assert found.verdict == "admissible" and found.admissible.differing == 1, found
    assert_equal((y, *right[1:]), *call, admissible=True, **SMOOTH)
    with pytest.raises(AssertionError, match="within the device's division"):
        assert_equal((y, *right[1:]), *call, **SMOOTH)
    y[0, 0] ^= 64
    assert cause_of((y, *right[1:]), *call, **SMOOTH).verdict == "none"


def test_causes_in_large_results():
    """Of a large result some rows are looked at first."""
    for mistake in "slots-reversed", "weights-left-out", "unknown":
        kernel, call, _ = sum_call(UNPERMUTE, "float32", n=70, columns=4000)
        y = kernel(mistake)
        y = y + f4(1) if mistake == "unknown" else y
        found = npuquant.diagnose(y, *call)
        assert [each.name for each in found.first_place] == [mistake] * (mistake != "unknown"), found
    x, ids = random_rows((60, 2000), "float32"), rng.integers(0, 40, (60, 3)).astype(i4)
    for mistake, name in ("equal-last-first",) * 2, ("ends-for-counts",) * 2, ("", None):
        made = list(routing_kernel(mistake, x, ids, **ROUTED))
        made[0] = made[0] if mistake else made[0] * 2
        found = npuquant.diagnose((*made[:3], None), "npu_moe_init_routing_v2", x, ids, **ROUTED)
        assert (found.findings[0].name if found.findings else None) == name, found
    x, weight, sizes = random_matrix((36, 10)), random_matrix((6, 10, 9000)), [5, 0, 7, 4, 9, 11]
    call = {"group_list": np.array(sizes), "group_list_type": 1, "group_type": 0, "split_item": 3,
            "output_dtype": "int32"}
    for mistake in "group-late", "expert-elsewhere":
        y = grouped_kernel(mistake, x, weight, sizes, "int32", None, None, None)
        found = npuquant.diagnose(y, MATMUL, [x], [weight], **call)
        assert found.verdict == "explained" and found.findings[0].name == mistake, found
    assert npuquant.diagnose(y + 1, MATMUL, [x], [weight], **call).verdict == "none"


def test_assert_equal_of_experts():
    x, weight = random_matrix((4, 8)), random_matrix((2, 8, 8))
    call = {"group_list": np.array([1, 4]), "group_type": 0, "split_item": 3, "output_dtype": "int32"}
    y, = npuquant.npu_grouped_matmul([x], [weight], **call)
    assert_equal([y], npuquant.npu_grouped_matmul, [x], [weight], **call)
    with pytest.raises(AssertionError, match="npu_grouped_matmul: 8 of 32 elements of y differ\ndiagnosis: group-late"):
        wrong = y.copy()
        wrong[1] = x[1].astype(i4) @ weight[0].astype(i4)
        assert_equal([wrong], MATMUL, [x], [weight], **call)
    parts = [x[:1], x[1:]]
    ours = npuquant.npu_grouped_matmul(parts, list(weight), group_type=-1, output_dtype="int32")
    found = cause_of([ours[0], ours[1] + 1], MATMUL, parts, list(weight), group_type=-1, output_dtype="int32")
    assert found.verdict == "none" and [one.name for one in found.results] == ["y[0]", "y[1]"]
    assert found.element.result == "y[1]"
    with pytest.raises(ValueError, match="operator: is 'npu_moe'; expected one of anti_mx_quant, dequant, .*npu_moe_re_routing"):
        npuquant.diagnose(y, "npu_moe")
    with pytest.raises(ValueError, match="operator: is 'npu_moe_re_routing'; expected one of anti_mx_quant, dequant, ((?!moe).)*$"):
        npuquant.hard_inputs("npu_moe_re_routing", (4, 4))


def test_explained_by_place():
    """explain() says where an element comes from."""
    x, ids = random_rows((5, 4), "float32"), rng.integers(0, 3, (5, 2)).astype(i4)
    rows, *_ = npuquant.npu_moe_init_routing_v2(x, ids, expert_num=3)
    at = [(i, j) for i in range(10) for j in range(4)]
    for (i, j), element in zip(at, npuquant.explain("npu_moe_init_routing_v2", x, ids, expert_num=3, at=at).elements):
        steps = {step.step: step.definition for step in element.steps}
        token, slot = int(steps["token"]), int(steps["slot"])
        assert int(steps["row"]) == i and int(steps["position"]) == token * 2 + slot
        assert int(steps["expert"]) == ids[token, slot] and x[token, j] == rows[i, j]
        assert steps["x"] == element.definition
    rows, index, weights = f4([[1, 2], [3, 4], [5, 6]]), np.array([2, 7, 0], i4), f4([[0.5, 1, 2]])
    assert repr(npuquant.explain(UNPERMUTE, rows, index, weights, at=(0, 1))) == """\
y[0, 1]
  token                           0
  slot 0: row                     2
  slot 0: value                   6 (0x40C00000)
  slot 0: weight                  0.5 (0x3F000000)
  slot 0: product                 3 (0x40400000)
  slot 0: sum                     3 (0x40400000)
  slot 1: row                     7
  slot 1: sum                     3 (0x40400000)
  slot 2: row                     0
  slot 2: value                   2 (0x40000000)
  slot 2: weight                  2 (0x40000000)
  slot 2: product                 4 (0x40800000)
  slot 2: sum                     7 (0x40E00000)
  y                               7 (0x40E00000)"""


# ---- refusals --------------------------------------------------------------------------------------------------------

X, IDS = np.ones((3, 4), np.float16), np.array([[0, 1], [2, 0], [1, 2]], i4)
ROWS, INDEX, SCALES = np.ones((6, 4), np.float16), np.arange(6, dtype=i4), np.ones((3, 2), np.float16)
A, W, W2 = np.ones((5, 8), np.int8), np.ones((3, 8, 4), np.int8), [np.ones((8, 4), np.int8)] * 3
WORDS, F, B, T = np.ones((3, 4), i8), np.ones((3, 4), f4), np.full((3, 4), 0x3F80, np.uint16), np.ones(5, f4)
ENDS, NUMBERS = np.array([1, 2, 5]), np.arange(6, dtype=i4).reshape(3, 2)
GROUPED = {"group_list": ENDS, "split_item": 3, "group_type": 0}


def grouped(x, weight, **options):
    return "npu_grouped_matmul", [x if isinstance(x, list) else [x], weight if isinstance(weight, list) else [weight]], {
        **GROUPED, **options}


def int32(x, weight, **options):
    return grouped(x, weight, output_dtype="int32", **options)


def routed(**options):
    options = {"expert_num": 3, **options}
    return "npu_moe_init_routing_v2", [options.pop("x", X), options.pop("ids", IDS)], options


def re_routed(*counts, tokens=A, **options):
    return RE_ROUTING, [tokens, np.array(counts)[:, None]], options


def unpermuted(*values):
    return "npu_moe_token_unpermute", list(values), {}


def finalized(rows=ROWS, skip1=None, skip2=None, bias=None, scales=SCALES, index=INDEX, experts=None, mode=2):
    return "npu_moe_finalize_routing", [rows, skip1, skip2, bias, scales, index, experts, mode], {}


def routed_1(x=X, numbers=NUMBERS, ids=IDS, active_num=3):
    return "npu_moe_init_routing", [x, numbers, ids, active_num], {}


def counted(*ids, experts=4, dtype=i4):
    return "npu_moe_compute_expert_tokens", [np.array(ids, dtype), experts], {}


def permuted(tokens=X, indices=IDS, *values):
    return "npu_moe_token_permute", [tokens, indices, *values], {}


REFUSED = [
    # Moves.
    ("x: is int8; expected float32, float16", routed_1(x=A[:3, :4])),
    (r"row_idx: has the shape \[2, 2\]; expected \[3, any\]", routed_1(numbers=NUMBERS[:2])),
    (r"expert_idx: has the shape \[2, 2\]; expected \[3, 2\]", routed_1(ids=IDS[:2])),
    ("row_idx: is int64; expected int32", routed_1(numbers=NUMBERS.astype(i8))),
    ("active_num: is -1; expected 0 or more", routed_1(active_num=-1)),
    ("row_idx: has 6; expected 0 to 5", routed_1(numbers=NUMBERS + 1)),
    ("sorted_expert_for_source_row: is int64; expected int32", counted(0, 1, dtype=i8)),
    (r"sorted_expert_for_source_row: has the shape \[1, 2\]; expected \[any\]", counted([0, 1])),
    ("num_expert: is 0; expected 1 to 2048", counted(0, experts=0)),
    ("num_expert: is 2049; expected 1 to 2048", counted(0, experts=2049)),
    ("sorted_expert_for_source_row: has -1; expected 0 to 4", counted(-1, 4)),
    ("sorted_expert_for_source_row: has 5; expected 0 to 4", counted(0, 5)),
    ("sorted_expert_for_source_row: has 4; expected 0 to 3", counted(*[0] * 12000, 4)),
    (r"tokens: has the shape \[4\]; expected \[any, any\]", permuted(X[0])),
    ("indices: has 3 dimensions; expected 1 to 2", permuted(X, IDS[None])),
    (r"indices: has the shape \[2, 2\]; expected \[3, any\]", permuted(X, IDS[:2])),
    ("indices: is float32; expected int32 or int64", permuted(X, IDS.astype(f4))),
    ("indices: has 513 columns; expected at most 512", permuted(X[:1], np.zeros((1, 513), i4))),
    ("num_out_tokens: is -6; expected -5 or more", permuted(X, IDS, -6)),
    ("padded_mode: is True; expected False", permuted(X, IDS, None, True)),
    # Routing.
    ("expert_capacity: is 300000; expected at most 209715, as",
     routed(x=np.zeros((300000, 0), np.float16), ids=np.zeros((300000, 1), i4), expert_num=10240, drop_pad_mode=1,
            expert_capacity=300000)),
    ("x_dtype: is int4; expected another type with quant_mode 1", routed(x_dtype=285, quant_mode=1)),
    ("tokens_dtype: is 1 .int8.; expected None, or hifloat8", re_routed(3, 2, tokens_dtype=1)),
    ("tokens: is float16; expected uint8 or int8, the bytes of hifloat8", re_routed(3, 2, tokens=X, tokens_dtype=290)),
    ("expert_token_num_per_rank: has the sum 18446744073709551614; expected", re_routed(2**63 - 1, 2**63 - 1)),
    (r"x: has the shape \[4\]; expected \[any, any\]", routed(x=X[0])),
    ("x: is float64, which npuquant does not implement; expected float32, float16, bfloat16", routed(x=X.astype(float))),
    (r"expert_idx: has the shape \[2, 2\]; expected \[3, any\]", routed(ids=IDS[:2])),
    ("expert_idx: is int64; expected int32", routed(ids=IDS.astype(i8))),
    ("expert_idx: has 2; expected 0 to 1", routed(expert_num=2)),
    ("expert_num: is -1; expected 1 to 10240", routed(expert_num=-1)),
    ("expert_num: is 5121; expected 1 to 5120", routed(expert_num=5121, expert_tokens_num_type=2)),
    (r"active_expert_range: is \[2, 2\]; expected an increasing range within 0 to 3",
     routed(active_expert_range=[2, 2])),
    (r"active_expert_range: is \[0, 4\]; expected", routed(active_expert_range=[0, 4])),
    ("active_expert_range: has 1 numbers", routed(active_expert_range=[0])),
    ("active_num: is -2; expected -1 or more", routed(active_num=-2)),
    ("row_idx_type: is 2; expected 0 or 1", routed(row_idx_type=2)),
    (r"x: is int8; expected float32, float16 or bfloat16.* with quant_mode 1", routed(x=A[:3, :4], quant_mode=1)),
    ("scale: is float16; expected float32", routed(scale=SCALES[:, 0])),
    (r"scale: has the shape \[2\]; expected \[3\]", routed(scale=F[0, :2])),
    (r"scale: has the shape \[4\]; expected \[3, 4\] or \[1, 4\]", routed(scale=F[0], quant_mode=1)),
    ("offset: is None; quant_mode 0 needs it", routed(scale=F[0, :1], quant_mode=0)),
    ("expert_capacity: is 4; expected 1 to 3", routed(drop_pad_mode=1, expert_capacity=4)),
    ("row_idx_type: is 1; expected 0 with drop_pad_mode 1", routed(drop_pad_mode=1, expert_capacity=1, row_idx_type=1)),
    (r"active_expert_range: is \[0, 2\]; expected all experts",
     routed(drop_pad_mode=1, expert_capacity=1, active_expert_range=[0, 2])),
    ("expert_tokens_num_type: is 0; expected 1 with drop_pad_mode 1",
     routed(drop_pad_mode=1, expert_capacity=1, expert_tokens_num_flag=True)),
    ("expert_token_num_per_rank: has the sum 6; expected at most 5", re_routed(3, 3)),
    ("expert_token_num_per_rank: has a negative number", re_routed(3, -1)),
    (r"per_token_scales: has the shape \[4\]; expected \[5\]", re_routed(3, 2, per_token_scales=T[:4])),
    ("expert_token_num_type: is 0; expected 1", re_routed(3, 2, expert_token_num_type=0)),
    ("sorted_indices: has 6 elements; expected 4", unpermuted(ROWS, INDEX, SCALES[:2])),
    ("sorted_indices: has -1; expected 0", unpermuted(ROWS, INDEX - 1, SCALES)),
    ("probs: has 513 columns; expected at most 512", unpermuted(ROWS, np.zeros(513, i4), np.ones((1, 513), f4))),
    ("padded_mode: is True", unpermuted(ROWS, INDEX, SCALES, True)),
    (r"expanded_permuted_rows: has the shape \[5, 4\]; expected \[6, any\]", finalized(rows=ROWS[:5])),
    ("expanded_src_to_dst_row: has -1; expected 0 to 5", finalized(index=INDEX - 1)),
    ("expanded_src_to_dst_row: has 6; expected -1 to 5", finalized(rows=ROWS.reshape(3, 2, 4), index=INDEX + 1, mode=3)),
    ("expanded_src_to_dst_row: has 5 elements; expected a multiple of 2", finalized(index=INDEX[:5])),
    ("scales: is float32; expected float16", finalized(scales=SCALES.astype(f4))),
    ("skip1: is None; expected a tensor, as skip2 is given", finalized(skip2=X)),
    (r"skip1: has the shape \[6, 4\]; expected \[3, 4\]", finalized(skip1=ROWS)),
    ("export_for_source_row: is None; bias needs it", finalized(bias=X)),
    ("export_for_source_row: has 3; expected 0 to 2", finalized(bias=X, experts=np.full((3, 2), 3, i4))),
    ("drop_pad_mode: is 4; expected", finalized(mode=4)),
    # Pairs of types.
    (r"scale: is None; expected int64 or uint64, as output_dtype is int8", grouped(A, W)),
    (r"scale\[0\]: is float32; expected int64 or uint64, as output_dtype is int8", grouped(A, W, scale=[F])),
    ("per_token_scale: is given; expected None, as output_dtype is int8",
     grouped(A, W, scale=[WORDS], per_token_scale=[T])),
    (r"scale\[0\]: is float32; expected bfloat16.*, as output_dtype is bfloat16",  # left as the checkpoint has it
     grouped(A, W, scale=[F], output_dtype="bfloat16")),
    (r"scale\[0\]: is (bfloat16|uint16); expected float32, as output_dtype is float16",
     grouped(A, W, scale=[B], output_dtype="float16")),
    (r"scale\[0\]: is int64; expected float32, as output_dtype is float16",
     grouped(A, W, scale=[WORDS], output_dtype="float16")),
    ("scale: is given; expected None, as output_dtype is int32", int32(A, W, scale=[F])),
    ("output_dtype: is 'float32'; expected", grouped(A, W, scale=[F], output_dtype="float32")),
    (r"bias\[0\]: is float16; expected int32, as output_dtype is float16",
     grouped(A, W, scale=[F], bias=[F.astype(np.float16)], output_dtype="float16")),
    (r"bias\[0\]: is float32; expected int32 or bfloat16.*, as output_dtype is bfloat16",
     grouped(A, W, scale=[B], bias=[F], output_dtype="bfloat16")),
    # Shapes and counts.
    ("scale: has 1 tensors; expected 3, as weight has", grouped(A, W2, scale=[WORDS[0]])),  # one for three weights
    (r"scale\[0\]: has the shape \[4\]; expected \[3, 4\]", grouped(A, W, scale=[WORDS[0]])),
    (r"scale\[0\]: has the shape \[3\]; expected \[3, 4\]",  # squeezed, as w2 has one column for each expert
     grouped(A, W, scale=[F[:, 0]], output_dtype="float16")),
    (r"scale\[0\]: has the shape \[3, 1, 4\]; expected \[3, 4\]", grouped(A, W, scale=[WORDS[:, None]])),
    (r"scale\[1\]: has the shape \[1, 4\]; expected \[4\]", grouped(A, W2, scale=[WORDS[0], WORDS[:1], WORDS[0]])),
    (r"per_token_scale: has the shape \[5, 1\]; expected \[5\]",
     grouped(A, W, scale=[F], per_token_scale=[T[:, None]], output_dtype="float16")),
    ("per_token_scale: has 2 tensors; expected one",
     grouped(A, W, scale=[F], per_token_scale=[T, T], output_dtype="float16")),
    ("per_token_scale: is given; expected None, as x has 3 tensors",
     grouped([A[:1], A[:1], A[:3]], W2, scale=list(F), per_token_scale=[T], output_dtype="float16")),
    (r"weight\[0\]: has the shape \[3, 4, 8\]; expected \[any, 8, any\]", int32(A, W.transpose(0, 2, 1))),
    (r"weight\[1\]: is transposed; expected all as weight\[0\] is", int32(A, [W[0], np.ones((4, 8), np.int8).T, W[0]])),
    (r"weight\[1\]: has the shape \[8, 3\]; expected \[any, 4\]", int32(A, [W[0], W[0][:, :3], W[0]])),
    (r"x\[0\]: is transposed", int32(np.ones((8, 5), np.int8).T, W)),
    (r"x\[0\]: has no columns", int32([A[:, :0], A], [W[0][:0], W[0]], group_list=None, group_type=-1, split_item=0)),
    ("offset: is given; expected None for int8", int32(A, W, offset=[F])),
    # Forms.
    ("x: is ndarray; expected a list of arrays", ("npu_grouped_matmul", [A, [W]], GROUPED)),
    ("expert_idx: is None(Type)?; expected a ", routed(ids=None)),
    ("group_type: is None; expected -1, 0 or 2", grouped(A, W, group_type=None)),
    ("group_type: is 1; expected -1, 0 or 2", grouped(A, W, group_type=1)),
    ("group_type: is 2; expected -1 or 0 for int8", grouped(A, W, group_type=2)),
    ("split_item: is 0; expected 2 or 3 with group_type 0", grouped(A, W, split_item=0)),
    ("split_item: is 3; expected 0 or 1 with group_type -1", grouped(A, W, group_type=-1)),
    ("group_list: is given; expected None with group_type -1", grouped(A, [W[0]], group_type=-1, split_item=0)),
    ("weight: has 3 tensors; expected 1, as x has", grouped(A, W2, group_type=-1, split_item=0, group_list=None)),
    ("group_list: is None; expected a tensor", grouped(A, W, group_list=None)),
    ("group_list: is int32; expected int64", grouped(A, W, group_list=ENDS.astype(i4))),
    (r"group_list: has the shape \[2\]; expected \[3\]", grouped(A, W, group_list=ENDS[:2])),
    (r"group_list: has the shape \[3\]; expected \[3, 2\]", grouped(A, W, group_list_type=2)),
    ("group_list_type: is 3; expected 0, 1 or 2", grouped(A, W, group_list_type=3)),
    ("group_list: has 1025 groups; expected at most 1024", int32(A, W[:1], group_list=np.zeros(1025, i8))),
    ("group_list: has 6 rows; expected at most 5", int32(A, W, group_list=ENDS + 1)),
    (r"group_list: is \[2, 1, 5\]; expected ends that do not fall", int32(A, W, group_list=np.array([2, 1, 5]))),
    ("group_list: has rows of expert 3; weight has 3 experts",
     int32(A, W, group_list=np.array([[3, 1]] * 3), group_list_type=2)),
    ("group_list: has 2 rows of expert 1; x[[]1[]] has 1",
     int32([A[:1], A[:1], A[:3]], W2, group_list=np.array([1, 3, 5]))),
    ("group_list: ends with 4; expected 5", grouped(A, W, group_list=[1, 2, 4], scale=[WORDS])),
    ("output_dtype: is 'int32'; expected 'int8'", int32(A, W, group_list=[1, 2, 5])),
]
each_refusal = pytest.mark.parametrize("says, call", REFUSED, ids=map(str, range(len(REFUSED))))


@each_refusal
def test_refused(says, call):
    name, values, keywords = call
    with pytest.raises(RuntimeError, match=rf"^{says}.*\[{name}\]$"):
        getattr(npuquant, name)(*values, **keywords)


#: Refusals that values decide, which a tensor without values does not have.
_BY_VALUES = ("expert_idx: has 2", "row_idx: has 6", "sorted_expert_for_source_row", "num_expert: is", "expert_token_num_per_rank: has", "sorted_indices: has -1", "has -1; expected",
              "has 6; expected", "export_for_source_row: has 3", "rows; expected", "do not fall", "rows of expert",
              "ends with 4")


@each_refusal
def test_refused_in_pytorch(torch, says, call):
    def tensor(value, device):
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            return [tensor(one, device) for one in value]
        if not isinstance(value, np.ndarray):
            return value
        bits = value.dtype == np.uint16
        made = torch.from_numpy(value.view(np.int16)).view(torch.bfloat16) if bits else torch.from_numpy(value)
        return made.to(device)

    name, values, keywords = call
    if "list of arrays" in says:
        pytest.skip("PyTorch itself refuses it")
    if isinstance(keywords.get("output_dtype"), str):
        keywords = {**keywords, "output_dtype": getattr(torch, keywords["output_dtype"])}
    for device in ("cpu", "meta") if not any(part in says for part in _BY_VALUES) else ("cpu",):
        with pytest.raises(RuntimeError, match=rf"^{says}.*\[{name}\]$"):
            getattr(npuquant.torch, name)(*(tensor(value, device) for value in values),
                                          **{key: tensor(value, device) for key, value in keywords.items()})
