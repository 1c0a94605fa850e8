#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""npuquant-bench and bench/run from outside: the chosen cases, the output, and whether its numbers fit together. The
test looks at no time.

NPUQUANT_BENCH is the path of npuquant-bench, NPUQ_SOURCE the folder of the source.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.abspath(os.environ["NPUQUANT_BENCH"])
SOURCE = os.path.abspath(os.environ["NPUQ_SOURCE"])
CASE = re.compile(r"^(\w+(?:/[\w-]+){4,6})  \((\d+) bytes, in (L1|L2|L3|L3\+|memory); (\d+) rounds\)$")
LINE = re.compile(r"^  (\S.*?) +(\d+) +([\d.]+) (ns|us|ms) +([\d.]+) % +([\d.]+)(?: +([\d.]+))? +([\d.]+)(  .*)?$")
BOUND = re.compile(r"^  bound by (stream|ports|latency): stream [\d.]+ (ns|us|ms), (ports [\d.]+ \2, )?latency "
                   r"[\d.]+ ns; the limit is [\d.]+ \2$")


sys.path.insert(0, os.path.join(SOURCE, "bench"))
loader = importlib.machinery.SourceFileLoader("bench_run", os.path.join(SOURCE, "bench", "run"))
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
loader.exec_module(script)


def bench(*options):
    return subprocess.run([BENCH, *options], capture_output=True, text=True, timeout=300)


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def names(self, *options):
        return script.chosen(script.parsed(options))

    def shown(self, *options):
        """What bench/run prints of the cases."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            status = script.measure(script.command_of(script.parsed(options), BENCH), self.path("r.json"))
        self.assertEqual(status, 0, text.getvalue())
        return text.getvalue()

    def refused(self, *options):
        """Returns the message of bench/run, or of npuquant-bench, which writes nothing else."""
        try:
            command = script.command_of(script.parsed(options), BENCH)
        except SystemExit as error:
            return f"{error.code}\n"
        done = bench(*command[1:])
        self.assertEqual((done.returncode, done.stdout), (1, ""), options)
        return done.stderr

    def results(self, *options):
        self.shown("--quick", *options)
        with open(self.path("r.json"), encoding="utf-8") as file:
            head, *cases = map(json.loads, file)
        return {**head, "cases": cases}

    # ---- what the output says ----

    def test_explained_first(self):
        """The machine and each column stand before the first case."""
        text = self.shown("--quick", "--filter",
                         "quantize/mul/uniform/f32-i8/1x128$,dynamic_quant_asymmetric/token/plain/f32-i8/1x4096")
        lines = text.splitlines()
        first = next(i for i, line in enumerate(lines) if CASE.match(line))
        before = "\n".join(lines[:first])
        self.assertRegex(before, r"Machine: .+, \d+ processors?, L1 \d+ KiB, L2 \d+ KiB, L3 \d+ KiB")
        for column in lines[first - 1].replace("times as fast", "times_as_fast").replace(
                "of the limit", "of_the_limit").split():
            self.assertRegex(before, rf"(?m)^{column.replace('_', ' ')}  +\S")
        self.assertIn("\nThe limit is the longer of two times: ", before)
        self.assertRegex(before, r"\nVector instructions in a nanosecond: (loads [\d.]+, |not known; limits leave ports out)")
        for line in lines[first:]:
            self.assertTrue(CASE.match(line) or LINE.match(line) or BOUND.match(line) or line.startswith("WARNING: "),
                            line)
            if LINE.match(line):
                self.assertIn(f" {LINE.match(line)[1]}", before)

    def test_one_unit(self):
        """All times of a case have one unit, and none is less than one."""
        units = []
        for line in self.shown("--quick", "--filter", "quantize/mul/uniform/f32-i8/", "--backend", "all",
                              "--max-elements", "200000").splitlines():
            if CASE.match(line):
                units.append(set())
            elif match := LINE.match(line):
                units[-1].add(match[4])
                self.assertTrue(float(match[3]) >= 1 or match[4] == "ns", line)
            elif match := BOUND.match(line):
                units[-1].add(match[2])
        self.assertGreater(len(units), 3)
        for found in units:
            self.assertEqual(len(found), 1)

    def test_rare(self):
        """Only --filter and --full choose cases that no set has."""
        name = "dynamic_quant_asymmetric/tensor/smooth/f32-i8/1x4096"
        self.assertEqual(self.names("--filter", name), [name])
        self.assertIn(name, self.names("--full"))
        self.assertNotIn(name, self.names())

    # ---- ratios ----

    def test_ratios(self):
        """The time of a line over that of npuquant's first line."""
        for case in self.results("--filter", "f32-i8,bf16-i8,f16-i32,i8-f32", "--max-elements", "200000")["cases"]:
            runs = case["runs"]
            self.assertEqual(runs[0]["kind"], "ours")
            for run in runs:
                ratio = run["median_ns"] / runs[0]["median_ns"]
                self.assertAlmostEqual(run["npuquant_times_as_fast"], ratio, delta=0.001 + 0.01 * ratio)

    def test_limits(self):
        """The fastest way to move the bytes is the stream, or memcpy unless y is larger than x: memcpy writes less
        then. The instructions' time adds to the call's; x is read twice for one scale of a tensor."""
        data = self.results("--filter", "f32-i8,bf16-i8,i8-f32,i32-i8,i32-f32", "--max-elements", "200000")
        constants = data["constants"]
        for case in data["cases"]:
            runs, limits = case["runs"], case["limits"]
            x, y = (int(bits) for bits in re.findall(r"[a-z](\d+)", case["name"].split("/")[3]))
            others = ("baseline", "product", *(["memcpy"] if y > x else []))
            self.assertEqual(limits["stream_ns"], min(run["median_ns"] for run in runs if run["kind"] not in others))
            self.assertEqual(limits["latency_ns"], constants["call_ns"])
            own = limits["latency_ns"] + (limits["ports_ns"] or 0)
            self.assertAlmostEqual(limits["limit_ns"], max(limits["stream_ns"], own), delta=0.02)
            self.assertAlmostEqual(limits["of_limit"], limits["limit_ns"] / runs[0]["median_ns"], delta=0.002)
            parts = {"latency": limits["latency_ns"], "ports": limits["ports_ns"] or 0}
            self.assertGreaterEqual(parts.get(limits["bound"], limits["stream_ns"]) + 0.02,
                                    max(parts.values()) if limits["bound"] in parts else own)
            kinds = {run["kind"] for run in runs}
            twice = "/tensor/" in case["name"]
            self.assertEqual([kind in kinds for kind in ("two-passes", "stream", "memcpy")],
                             [twice, not twice, not twice])

    def test_ports(self):
        """With known rates, more instructions have a longer limit; threads share it."""
        data = self.results("--shape", "64x1024", "--no-peers")
        ports = {case["name"].replace("/64x1024", ""): case["limits"]["ports_ns"] for case in data["cases"]}
        rates = {name: rate for name, rate in data["constants"].items() if name.endswith("_per_ns")}
        if data["constants"]["vector_bits"] == 0:
            self.assertEqual((set(ports.values()), rates), ({None}, {}))
            return
        self.assertGreater(min(rates.values()), 0)
        self.assertGreaterEqual(rates["any_per_ns"], max(rates["additions_per_ns"], rates["integers_per_ns"]))
        self.assertGreater(min(ports.values()), 0)
        for less, more in (("quantize/mul/uniform/f32-i8", "quantize/div/uniform/f32-i8"),
                           ("quantize/mul/uniform/f32-i8", "dynamic_quant_asymmetric/token/plain/f32-i8"),
                           ("dynamic_quant_asymmetric/token/plain/bf16-i8",
                            "dynamic_quant_asymmetric/token/smooth/bf16-i8"),
                           ("dequant/weight/channel/i32-f32", "requant/mul/channel/i32-i8")):
            self.assertLess(ports[less], ports[more])
        for name, ns in ports.items():
            if name.endswith("/t2"):
                self.assertAlmostEqual(ns, ports[name.removesuffix("/t2")] / 2, delta=0.02)

    # ---- operators ----

    def test_operators(self):
        """Every operator has the usual cases of the targets, by threads, and small calls."""
        names = set(self.names())
        shapes = ("1x128", "1x1024", "1x4096", "8x4096", "64x1024", "512x4096", "16384x4096")
        for kind in ("quantize/mul/uniform/f32-i8", "dynamic_quant_asymmetric/token/plain/bf16-i8",
                     "dynamic_quant/token/plain/bf16-i8",
                     "dynamic_quant/token/smooth/bf16-i8", "dynamic_quant/tensor/plain/bf16-i8",
                     "dynamic_quant/token/plain/bf16-i4", "anti_quant/mul/channel/i8-bf16",
                     *(f"dynamic_block_quant/block{block}/plain/{x}-i8" for block in (32, 128)
                       for x in ("f32", "f16", "bf16")), "dynamic_block_quant/block128/plain/bf16-i4",
                     "anti_quant/mul/channel/i8-f16", "anti_quant/mul/uniform/i8-f32", "anti_quant/mul/channel/i4-f32",
                     "anti_quant/mul/uniform/i8-bf16", "dequant/weight/uniform/i32-bf16",
                     "dequant/weight/channel/i32-f32", "dequant/token/channel/i32-bf16",
                     "dequant/token/channel/i32-f16", "dequant/token/channel/i32-f32",
                     "dequant/token-bias-i32/channel/i32-bf16", "dequant/token-bias-f32/channel/i32-f32",
                     "requant/mul/uniform/i32-i8", "requant/mul/channel/i32-i8", "requant/mul/channel/i32-f16",
                     "requant/symmetric/channel/i32-i8", "group_quant/mul/experts64/f32-i8"):
            self.assertTrue({f"{kind}/{shape}" for shape in shapes} <= names, kind)
        self.assertIn("dynamic_quant/token/experts64/bf16-i8/16384x4096", names)
        operators = {name.split("/")[0] for name in self.names("--full")} - {"group_quant", "trans_quant_param"}
        for name, end in (("overhead", "1x128"), ("sweep", "4096x4096"), ("threads", "16384x4096/t2")):
            if name == "threads" and (os.cpu_count() or 1) < 2:
                continue
            found = {n.split("/")[0] for n in self.names("--set", name) if n.endswith("/" + end)}
            self.assertLessEqual(operators, found, name)

    def test_small_calls(self):
        """For one short row of every operator, the prepared call and the call with new tensors take turns with the
        call; for more rows they do not. Two operators cannot be prepared."""
        cases = self.results("--set", "overhead", "--no-peers")["cases"]
        self.assertEqual(len({case["name"].split("/")[0] for case in cases}), 9)
        for case in cases + self.results("--shape", "1x24", "--set", "overhead,data", "--no-peers")["cases"]:
            self.assertNotIn("failure", case)
            parts = [run["who"] for run in case["runs"] if run["kind"] in ("prepared", "with tensors")]
            prepared = [] if re.search("/tensor/|trans_quant_param", case["name"]) else ["prepared"]
            surrounded = case["name"].count("/") == 4 or case["name"].endswith(("/nan", "/saturated", "/subnormal"))
            self.assertEqual(parts, prepared + ["with tensors"] if surrounded else [], case["name"])
        for case in self.results("--shape", "2x24", "--no-peers")["cases"]:
            self.assertFalse([run for run in case["runs"] if run["kind"] in ("prepared", "with tensors")])

    def test_bytes(self):
        """Bytes besides x and y: a scale for each row or block, perhaps an offset; of groups, only those with rows."""
        cases = {case["name"]: case for case in self.results("--filter", "^dynamic,^group", "--max-elements", "100000",
                                                             "--no-peers")["cases"]}
        for name, written in (("dynamic_quant_asymmetric/token", 8), ("dynamic_quant/token", 4),
                              ("dynamic_block_quant/block128", 4), ("dynamic_block_quant/block32", 16)):
            self.assertEqual(cases[f"{name}/plain/f32-i8/1x128"]["bytes_written"], 128 + written)
        for shape, groups in (("1x1024", 1), ("8x4096", 8), ("64x1024", 64)):
            rows, columns = map(int, shape.split("x"))
            self.assertEqual(cases[f"group_quant/mul/experts64/f32-i8/{shape}"]["bytes_read"],
                             4 * (rows * columns + groups * columns + 1))

    def test_others_do_the_same(self):
        """Results of other libraries and loops are compared and hardly differ, except in the last bit of float32 where
        loops multiply in another order. Products to int32 are not compared."""
        for case in self.results("--filter", "^anti_quant/,^dequant/,^requant/", "--max-elements", "10000",
                                 "--full")["cases"]:
            reordered = "/token" in case["name"] and "-f32/" in case["name"]
            for run in case["runs"]:
                self.assertEqual("differing" in run, run["kind"] == "peer" or run["who"] == "product to y")
                self.assertLess(run.get("differing", 0), case["elements"] / (2 if reordered else 100) + 1,
                                (case["name"], run["who"]))

    # ---- plain loops, data, views, pages ----

    def test_naive(self):
        """Plain loops of every kind do the same work; only NaN makes much difference."""
        kinds = ["quantize/mul/uniform/f32-i8", "quantize/mul/channel/bf16-i8", "quantize/div/uniform/bf16-i8",
                 "quantize/div/channel/f32-i8", "dynamic_quant_asymmetric/token/plain/f32-i8",
                 "dynamic_quant_asymmetric/tensor/plain/bf16-i8",
                 "dynamic_quant/token/plain/bf16-i8", "dynamic_quant/tensor/plain/f32-i8",
                 "dynamic_block_quant/block32/plain/f32-i8", "dynamic_block_quant/block128/plain/bf16-i8",
                 "group_quant/mul/experts64/f32-i8", "group_quant/mul/experts64/bf16-i8",
                 *(f"anti_quant/mul/{parameters}/{x}-{y}" for parameters in ("uniform", "channel") for x in ("i8", "i4")
                   for y in ("f32", "bf16")), "dequant/weight/uniform/i32-f32",
                 *(f"dequant/{mode}/channel/i32-bf16" for mode in ("weight", "token", "token-bias-i32",
                                                                   "token-bias-f32")),
                 "requant/mul/uniform/i32-i8", "requant/mul/channel/i32-i8", "requant/symmetric/channel/i32-i8"]
        data = self.results("--filter", ",".join(f"^{kind}/" for kind in kinds), "--shape", "67x104", "--full")
        words = self.results("--filter", "trans_quant_param", "--shape", "1001")
        found = set()
        for case in data["cases"] + words["cases"]:
            for run in case["runs"]:
                if run["who"].endswith(" loop") and case["name"].count("/") == 4:
                    found.add(case["name"].rsplit("/", 1)[0])
                    self.assertLess(run["differing"], case["elements"] / 50, case["name"])
        self.assertEqual(found, {*kinds, "trans_quant_param/nearest/channel/f32-i64"})

    def test_variants(self):
        """Unusual data takes turns with usual data, and a view with a copy; other libraries take no views. The data
        fits its name."""
        found = set()
        for case in self.results("--set", "data,views", "--max-elements", "100000", "--backend", "all")["cases"]:
            self.assertNotIn("failure", case)
            *_, shape, variant = case["name"].split("/")
            self.assertEqual(shape, "64x1024")
            is_view = variant not in ("saturated", "nan", "subnormal")
            self.assertEqual([run["who"] for run in case["runs"] if run["kind"] == "baseline"],
                             ["copy first" if is_view else "usual data"])
            self.assertEqual(is_view, all(run["kind"] != "peer" for run in case["runs"]), case["name"])
            naive = [run["differing"] for run in case["runs"] if run["who"].endswith(" loop")]
            if variant == "nan":
                self.assertEqual(naive, [case["elements"] // 16] * len(naive))
            found.add(variant)
        self.assertEqual(found, {"saturated", "nan", "subnormal", "every-second", "reversed", "broadcast",
                                 "transposed-x", "transposed-y"})

    def test_fastest_stream(self):
        """Beyond the second cache, one more stream shows the fastest way."""
        for case in self.results("--filter", "^quantize/mul/uniform/bf16-i8/512x4096$,^quantize/mul/uniform/bf16-i8/1x",
                                 "--no-peers", "--max-elements", "4000000")["cases"]:
            found = [run["who"] for run in case["runs"] if "prefetch" in run]
            self.assertEqual(found, [] if case["level"] in ("L1", "L2") else ["stream-best"])
        data = self.results("--filter", "quantize/mul/uniform/f32-i8/4096x4096$", "--prefetch", "640")
        best = [run for run in data["cases"][0]["runs"] if run["who"] == "stream-best"]
        for run in best:
            self.assertEqual(run["prefetch"], 640)

    def test_pages(self):
        """The output names the buffers' pages, with and without large ones."""
        for options in ((), ("--huge-pages",)):
            data = self.results("--filter", "quantize/mul/uniform/f32-i8/1x4096$", *options)
            self.assertIn(data["page_bytes"], (0, os.sysconf("SC_PAGESIZE"), 2 << 20))

    def test_sizes(self):
        names = set(self.names("--set", "sizes"))
        for kind in ("quantize/mul/uniform/f32-i8", "quantize/mul/channel/f32-i8",
                     "dynamic_quant_asymmetric/token/plain/f32-i8", "dynamic_quant_asymmetric/tensor/plain/f32-i8",
                     "anti_quant/mul/channel/i8-bf16", "requant/mul/channel/i32-i8"):
            self.assertTrue({f"{kind}/1000000x8", f"{kind}/1x10000000"} <= names)
        self.assertIn("trans_quant_param/nearest/channel/f32-i64/1000000", self.names())

    # ---- shapes ----

    def test_shape(self):
        names = self.names("--shape", "64x4096")
        self.assertIn("quantize/mul/uniform/bf16-i4/64x4096", names)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({re.search(r"/(\d+x\d+)(/[a-z-]+)?(/t2)?$", name)[1] for name in names}, {"64x4096"})
        self.assertEqual(self.names("--shape", "5", "--full"), ["trans_quant_param/nearest/channel/f32-i64/5"])
        self.assertEqual(self.names("--shape", "2x3x5", "--full"), ["quantize/div/axis/f32-i8/2x3x5"])
        self.assertFalse([name for name in self.names("--shape", "64x4095", "--full") if "i4" in name])

    def test_shape_is_measured(self):
        """Results are right at shapes that fill no vector, and with more groups than rows."""
        for shape in ("1x1", "3x7", "130x104"):
            data = self.results("--shape", shape, "--full", "--backend", "all", "--threads", "2")
            self.assertGreater(len(data["cases"]), 20)
            for case in data["cases"]:
                self.assertEqual(case["name"].split("/")[4], shape)
                self.assertNotIn("failure", case)
                self.assertGreater(len(case["runs"]), 3)
        self.results("--shape", "1", "--full")
        self.results("--shape", "2x3x5", "--full")

    def test_bad_shapes(self):
        for shape in ("", "0", "0x4", "4x", "x4", "4x4x4x4", "-1x2", "four", "4x4 ", "1048577x1048576", "9" * 40):
            message = self.refused(f"--shape={shape}")
            self.assertRegex(message, r"^bench/run: --shape: found '.*', expected .*\n$")
            self.assertEqual(message.count("\n"), 1)
        large = "1048576x1048576"
        message = self.refused("--shape", large)
        self.assertRegex(message, r" takes \d+\.\d GiB of memory, this machine has \d+\.\d GiB\n$")
        self.assertIn(f"quantize/mul/uniform/f32-i8/{large}", self.names("--shape", large))

    # ---- other options ----

    def test_help(self):
        """npuquant-bench says what its options mean, and bench/run takes them."""
        for option in ("backend", "threads", "no-peers", "budget", "quick", "no-pin", "prefetch", "huge-pages"):
            self.assertRegex(bench("--help").stdout, rf"(?m)^  --{option}\b")
            self.assertTrue(hasattr(script.parsed([]), option.replace("-", "_")))

    def test_wrong_names(self):
        for name, found in (("quantise/mul/uniform/f32-i8/1x8", "quantise/mul/uniform/f32-i8/1x8"),
                            ("quantize/mul/uniform/f32-i9/1x8", "i9/1x8"), ("quantize/mul/uniform/f32-i8/1x8x8", ""),
                            ("quantize/mul/uniform/f32-i8/0x8", "0x8"), ("quantize/mul/uniform/f32-i8/8x8/odd", "odd"),
                            ("quantize/mul/uniform/f32-i8/8x8/t1", "t1"),
                            ("requant/mul/plain/f32-f16/8x16", "requant/mul/plain/f32-f16/8x16"),
                            ("dequant/block32/channel/i32-f32/8x16", "dequant/block32/channel/i32-f32/8x16")):
            done = bench("--quick", name)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(done.stderr, f"npuquant-bench: {name}: found '{found}', expected a part of a case's name; see "
                             "--help\n")
        self.assertEqual(bench().stderr, "npuquant-bench: cases: none is named; see --help\n")

    def test_filter_without_match(self):
        for words in ("quantise", "dynamic,quantise"):
            message = self.refused("--filter", words)
            self.assertIn("--filter: found 'quantise', expected a part of a case's name", message)
            for kind in ("quantize/mul/uniform/", "dynamic_quant_asymmetric/tensor/smooth/",
                         "trans_quant_param/nearest/channel/"):
                self.assertEqual(message.count(f"\n  {kind.rstrip('/')}\n"), 1)

    def test_wrong_options(self):
        for options, text in ((("--set", "models,small"), "bench/run: --set: found 'small', expected models, sweep, layout, "
                               "overhead, threads, sizes, views, data\n"),
                              (("--backend", "ref,sse"), "--backend: found 'sse', expected avx512, avx2, neon, generic, ref or"),
                              (("--backend", ""), "--backend: found '', expected avx512"),
                              (("--threads", "0"), "--threads: found '0', expected a number from 1 to "),
                              (("--budget", "long"), "--budget: found 'long', expected a number from 0 to 3600"),
                              (("--max-elements", "1"), "bench/run: no case is left; --full --list prints all\n")):
            message = self.refused(*options)
            self.assertIn(text, message)
            self.assertEqual(message.count("\n"), 1)
        self.assertEqual(bench("--shpae", "1x1").stderr, "npuquant-bench: --shpae: unknown option; see --help\n")
        self.assertEqual(bench("--budget").stderr, "npuquant-bench: --budget: a value is missing\n")

    # ---- bench/run ----

    options = ("--quick", "--filter", "quantize/mul/uniform/f32-i8/1x4096$")

    def run_script(self, *options):
        """Runs bench/run in a copy of its files with everything built. Returns the output and the changed files."""
        build, tree = self.path("build"), self.path("tree")
        for name in ("bench", "docs"):
            shutil.copytree(os.path.join(SOURCE, name), os.path.join(tree, name), dirs_exist_ok=True)
        os.makedirs(os.path.join(build, "bench"), exist_ok=True)
        os.makedirs(self.path("bin"), exist_ok=True)
        shutil.copy(BENCH, os.path.join(build, "bench", "npuquant-bench"))
        with open(self.path("bin/ninja"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(self.path("bin/ninja"), 0o755)
        environment = dict(os.environ, BUILD=build, PATH=self.path("bin") + ":" + os.environ["PATH"])
        done = subprocess.run([os.path.join(tree, "bench", "run"), *options], env=environment, capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        changed = [os.path.relpath(os.path.join(folder, name), tree)
                   for top in ("bench", "docs") for folder, _, names in os.walk(os.path.join(tree, top)) for name in names]
        return done.stdout, {name for name in changed if self.read(os.path.join(tree, name)) !=
                             self.read(os.path.join(SOURCE, name)) and "__pycache__" not in name}

    def read(self, path):
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    def test_run_measures_only(self):
        text, changed = self.run_script(*self.options)
        self.assertEqual(changed, set())
        self.assertIn("for npuquant-bench, whose --help", self.run_script("--help")[0])
        self.assertIn("\nquantize/mul/uniform/f32-i8/1x4096  (", text)
        self.assertIn("\n| quantize, float32 |", text)
        self.assertTrue(os.path.exists(self.path("build/bench.json")))
        self.assertEqual(self.run_script(*self.options, "--list"), (self.options[-1].replace("$", "\n"), set()))

    def test_run_records(self):
        """The machine's result file, its picture, and pages, with measurements made outside."""
        with open(self.path("outside.csv"), "w", encoding="utf-8") as file:
            file.write("cell,shape,contestant,version,ns,ratio\nquantize/mul/uniform/f32-i8,1x4096,Other,abc,1000,1.5\n")
        _, changed = self.run_script("--record", "--outside", self.path("outside.csv"), *self.options)
        changed.remove("docs/performance.md")
        path, picture = sorted(changed)
        self.assertEqual(picture, f"docs/images/performance-{os.path.basename(path).replace('.json', '.svg')}")
        recorded = json.loads(self.read(self.path(f"tree/{path}")))
        with open(self.path("build/bench.json"), encoding="utf-8") as file:
            _, case = map(json.loads, file)
        cell, = recorded["cells"]
        self.assertEqual((cell["case"], cell["ratios"]["Other"]), ("quantize/mul/uniform/f32-i8/1x4096", 1.5))
        self.assertAlmostEqual(cell["us"], case["runs"][0]["median_ns"] / 1e3, delta=0.01 * cell["us"])
        loops = [run["npuquant_times_as_fast"] for run in case["runs"] if " loop" in run["who"]]
        self.assertAlmostEqual(cell["ratios"]["plain loop"], min(loops), delta=0.01 * min(loops))


if __name__ == "__main__":
    unittest.main()
