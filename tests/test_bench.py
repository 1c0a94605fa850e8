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
import pathlib
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
PORTS = "loads stores additions multiplications integers conversions shuffles halves any bfloat16s".split()
RATES = {"vector_bits": 512, **dict.fromkeys((f"{port}_per_ns" for port in PORTS), 1)}

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
        self.folder = pathlib.Path(folder.name)

    def names(self, *options):
        return script.chosen(script.parsed(options))

    def shown(self, *options):
        """What bench/run prints of the cases."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            command = script.command_of(script.parsed(["--quick", *options]), BENCH)
            status = script.measure(command, self.folder / "r.json")
        self.assertEqual(status, 0, text.getvalue())
        return text.getvalue()

    def results(self, *options):
        self.shown(*options)
        head, *cases = map(json.loads, (self.folder / "r.json").read_text(encoding="utf-8").splitlines())
        return {**head, "cases": cases}

    # ---- what the output says ----

    def test_table(self):
        """The machine, each column and each word stand before the first case. All times of a case have one unit, and
        none is less than one."""
        lines = self.shown("--filter", "f32-i8/,i32-bf16/", "--max-elements", "70000", "--backend", "all").splitlines()
        first = next(i for i, line in enumerate(lines) if CASE.match(line))
        before = "\n".join(lines[:first])
        self.assertRegex(before, r"Machine: .+, \d+ processors?, L1 \d+ KiB, L2 \d+ KiB, L3 \d+ KiB")
        self.assertRegex(before, r"\nVector instructions in a nanosecond: (loads [\d.]+, |not known; limits)")
        for column in re.split("  +", lines[first - 1].strip()):
            self.assertRegex(before, rf"(?m)^{column}  +\S")
        units = []
        for line in lines[first:]:
            if CASE.match(line):
                units.append(set())
            elif match := LINE.match(line):
                units[-1].add(match[4])
                self.assertTrue(float(match[3]) >= 1 or match[4] == "ns", line)
                self.assertIn(f" {match[1]}", before)
            elif match := BOUND.match(line):
                units[-1].add(match[2])
            else:
                self.assertTrue(line.startswith("WARNING: "), line)
        self.assertEqual({len(found) for found in units}, {1})

    def test_limits(self):
        """The fastest way to move the bytes is the stream, or memcpy unless y is larger than x: memcpy writes less
        then. The instructions' time adds to the call's. A ratio is the median over the rounds."""
        def complete(name, **constants):
            """On a machine that executes one vector of each class in a nanosecond."""
            case = {"name": f"{name}/64x1024", "bytes_read": 50000, "bytes_written": 7000, "runs": [
                {"kind": kind, "threads": 1, "samples": samples} for kind, samples in (
                    ("ours", [99000, 100000, 101000]), ("baseline", [1, 1, 1]), ("stream", [90000, 200000, 30000]),
                    ("memcpy", [7, 8, 9]))]}
            constants = {**RATES, "call_ns": 50, **constants}
            script.limits.complete({"caches": [32768, 65536, 1 << 20], "constants": constants}, case)
            return case

        quantize, anti_quant = "quantize/mul/uniform/f32-i8", "anti_quant/mul/uniform/i8-f32"
        case = complete(quantize)
        self.assertEqual((case["level"], case["elements"], case["rounds"]), ("L3", 65536, 3))
        self.assertEqual([run["median_ns"] for run in case["runs"]], [100000, 1, 90000, 8])
        self.assertEqual(case["runs"][2]["npuquant_times_as_fast"], round(90 / 99, 4))
        for key in "is_stream", "noisy":
            self.assertEqual([run[key] for run in case["runs"]], [False, False, False, True])
        ports = 4 * 65536 / 16  # for a vector of 16: a product, a sum, a conversion and a shuffle, which share ports
        self.assertEqual(case["limits"], {"stream_ns": 8, "ports_ns": ports, "latency_ns": 50, "limit_ns": ports + 50,
                                          "bound": "ports", "of_limit": round((ports + 50) / 100000, 4)})
        for name, more, bound, limit in ((anti_quant, {}, "stream", 90000),
                                         (quantize, {"vector_bits": 0}, "latency", 50),
                                         (quantize, {"call_ns": 20000}, "latency", ports + 20000)):
            limits = complete(name, **more)["limits"]
            self.assertEqual((limits["bound"], limits["limit_ns"]), (bound, limit))

    def test_instructions(self):
        """Threads share them, and rows those for the parameters of a column."""
        name = "quantize/mul/channel/f32-i8/64x1024"
        self.assertEqual(script.limits.ports_ns(RATES, name, 2), script.limits.ports_ns(RATES, name, 1) / 2)
        for kind, port, count in (("quantize/mul/channel/f32-i8/64x1024", "loads", 1.5),
                                  ("quantize/mul/channel/f32-i8/1x1024", "loads", 3),
                                  ("quantize/div/channel/f32-i8/64x1024", "multiplications", 3),
                                  ("dynamic_quant_asymmetric/token/plain/f32-i8/8x8", "additions", 3),
                                  ("dynamic_quant/token/smooth/bf16-i4/8x8", "multiplications", 3)):
            self.assertEqual(script.limits.work_of(kind)[port], count, (kind, port))

    def test_machine(self):
        """What is measured of it first: rates, a call, and the buffers' pages, with and without large ones."""
        for options in ((), ("--huge-pages",)):
            data = self.results("--filter", "quantize/mul/uniform/f32-i8/1x4096$", *options)
            self.assertIn(data["page_bytes"], (0, os.sysconf("SC_PAGESIZE"), 2 << 20))
            rates = {name: rate for name, rate in data["constants"].items() if name.endswith("_per_ns")}
            known = data["constants"]["vector_bits"] > 0
            self.assertEqual(rates.keys(), RATES.keys() - {"vector_bits"} if known else set())
            self.assertGreater(min(rates.values(), default=1), 0)
            self.assertGreaterEqual(rates.get("any_per_ns", 0), max(rates.get(f"{name}_per_ns", 0) for name in
                                                                    ("additions", "integers")))
            self.assertGreater(data["constants"]["call_ns"], 0)

    # ---- cases ----

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

    def check_runs(self, case):
        """Who takes part, by the name of the case; and other libraries and loops hardly differ, except in the last bit
        of float32 where loops multiply in another order. Returns the name's words."""
        operator, mode, _, types, shape, *more = words = case["name"].split("/")
        variant, = more or [""]
        unusual, view = variant in script.cases.DATA, variant in script.cases.VIEWS
        who = {kind: [run["who"] for run in case["runs"] if run["kind"] == kind] for kind in (
            "baseline", "prepared", "with tensors", "two-passes", "stream", "memcpy", "peer")}
        small = ("x" not in shape or shape.startswith("1x")) and case["elements"] <= 4096 and (unusual or not variant)
        prepared = small and mode != "tensor" and operator != "trans_quant_param"
        self.assertEqual((who["prepared"], who["with tensors"]), (["prepared"] * prepared, ["with tensors"] * small))
        baseline = "usual data" if unusual else "copy first" if view else "one thread" if variant else None
        self.assertEqual(who["baseline"], [baseline] if baseline else [])
        twice = mode == "tensor"  # one scale of x, which streams read twice, too
        for kind in "two-passes", "stream", "memcpy":
            self.assertEqual(bool(who[kind]), twice == (kind == "two-passes"), kind)
        self.assertEqual("naive loop" in who["peer"], bool(who["peer"]) and not view)
        reordered = operator == "dequant" and types.endswith("-f32") and mode.startswith("token")
        for run in case["runs"]:
            self.assertEqual("differing" in run, run["kind"] == "peer")
            if "differing" in run and not variant:
                self.assertLess(run["differing"], 8 + case["elements"] / (2 if reordered else 50), run["who"])
            elif variant == "nan" and run["who"].endswith(" loop"):
                self.assertEqual(run["differing"], (case["elements"] + 15) // 16)
        return words

    def test_runs(self):
        """Small calls, unusual data, views and threads; plain loops of every kind."""
        operators, kinds, variants = set(), set(), set()
        for options in (("--set", "overhead"), ("--set", "overhead,data,threads", "--shape", "1x24"), ("--shape", "2x24"),
                        ("--set", "data,views", "--max-elements", "100000", "--backend", "all"),
                        ("--shape", "67x104", "--full"), ("--shape", "1001", "--full")):
            for case in self.results(*options)["cases"]:
                with self.subTest(case["name"]):
                    operator, mode, *_, last = self.check_runs(case)
                    operators.update({operator} if options == ("--set", "overhead") else ())
                    kinds.update(f"{operator}/{mode}" for run in case["runs"] if run["who"] == "naive loop")
                    variants.add(last)
        self.assertEqual(len(operators), 9)
        self.assertEqual(kinds, {kind.name for kind in script.cases.KINDS})
        self.assertLessEqual({*script.cases.VIEWS, *script.cases.DATA}, variants)

    def test_fastest_stream(self):
        """Beyond the second cache, one more stream shows the fastest way."""
        for case in self.results("--filter", "^quantize/mul/uniform/bf16-i8/512x4096$,^quantize/mul/uniform/bf16-i8/1x",
                                 "--no-peers", "--prefetch", "640")["cases"]:
            found = [(run["who"], run["prefetch"]) for run in case["runs"] if "prefetch" in run]
            self.assertEqual(found, [] if case["level"] in ("L1", "L2") else [("stream-best", 640)])

    # ---- names ----

    def test_sets(self):
        """Every operator has usual cases, cases of each size, by threads, and small calls. Only --filter and --full
        choose cases that no set has."""
        names, full = set(self.names()), self.names("--full")
        self.assertGreater(len(full), len(names))
        rare = "dynamic_quant_asymmetric/tensor/smooth/f32-i8/1x4096"
        self.assertEqual((self.names("--filter", rare), rare in names, rare in full), ([rare], False, True))
        operators = {name.split("/")[0] for name in full} - {"trans_quant_param"}
        for options, end in (((), "64x1024"), ((), "16384x4096"), (("--set", "overhead"), "1x128"),
                             (("--set", "sweep"), "4096x4096"), (("--set", "threads"), "16384x4096/t2")):
            if (os.cpu_count() or 1) > 1 or not end.endswith("t2"):
                found = {name.split("/")[0] for name in self.names(*options) if name.endswith(f"/{end}")}
                self.assertEqual(operators - found, set() if not options or end == "1x128" else {"group_quant"}, end)

    def test_shapes(self):
        names = self.names("--shape", "64x4096")
        self.assertIn("quantize/mul/uniform/bf16-i4/64x4096", names)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({re.search(r"/(\d+x\d+)(/[a-z-]+)?(/t2)?$", name)[1] for name in names}, {"64x4096"})
        self.assertEqual(self.names("--shape", "5", "--full"), ["trans_quant_param/nearest/channel/f32-i64/5"])
        self.assertEqual(self.names("--shape", "2x3x5", "--full"), ["quantize/div/axis/f32-i8/2x3x5"])
        self.assertFalse([name for name in self.names("--shape", "64x4095", "--full") if "i4" in name])
        # Results are right at shapes that fill no vector, and with more groups than rows.
        for shape in ("1x1", "3x7", "130x104", "1", "2x3x5"):
            for case in self.results("--shape", shape, "--full", "--backend", "all", "--threads", "2")["cases"]:
                self.assertEqual(case["name"].split("/")[4], shape)
                self.assertGreater(len(case["runs"]), 3)

    # ---- what is refused ----

    def refused(self, *options):
        """Returns the message of bench/run, or of npuquant-bench, which writes nothing else."""
        try:
            command = script.command_of(script.parsed(options), BENCH)
        except SystemExit as error:
            return f"{error.code}\n"
        done = bench(*command[1:])
        self.assertEqual((done.returncode, done.stdout), (1, ""), options)
        return done.stderr

    def test_wrong_options(self):
        wrong_shapes = ("", "0", "0x4", "4x", "x4", "4x4x4x4", "-1x2", "four", "4x4 ", "1048577x1048576", "9" * 40)
        available = "expected one that this build has and this CPU runs"
        for option, text in (*((f"--shape={shape}", f"bench/run: --shape: found '{shape}', expected ")
                               for shape in wrong_shapes),
                             ("--shape=1048576x1048576", " GiB of memory, this machine has "),
                             ("--filter=dynamic,quantise", "--filter: found 'quantise', expected a part of a case"),
                             ("--filter=quantise", "\n  trans_quant_param/nearest/channel\n"),
                             ("--set=models,small", "bench/run: --set: found 'small', expected models, sweep, "),
                             ("--backend=ref,sse", f"npuquant-bench: --backend: found 'sse', {available}\n"),
                             ("--backend=", f"npuquant-bench: --backend: found '', {available}\n"),
                             ("--threads=0", "npuquant-bench: --threads: found '0', expected 1 to 64\n"),
                             ("--max-elements=1", "bench/run: no case is left; --full --list prints all\n")):
            message = self.refused(option)
            self.assertIn(text, message)
            self.assertTrue(message.count("\n") == 1 or "--filter" in option, message)

    def test_wrong_names(self):
        for name, found in (("quantise/mul/uniform/f32-i8/1x8", 0), ("quantize/mul/uniform/f32-i9/1x8", 0),
                            ("quantize/mul/plain/f32-f16/8x16", 0), ("dequant/block32/channel/i32-f32/8x16", 0),
                            ("quantize/mul/uniform/f32-i8/1x8x8", -2), ("quantize/mul/uniform/f32-i8/0x8", -3),
                            ("quantize/mul/uniform/f32-i8/8x8/odd", -3), ("quantize/mul/uniform/f32-i8/8x8/t1", -2)):
            done = bench("--quick", name)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(done.stderr, f"npuquant-bench: {name}: found '{name[found:]}', expected a part of a "
                             "case's name; bench/run --full --list prints all\n")

    # ---- bench/run ----

    def test_run(self):
        """bench/run with everything built writes in the folder build only. With --record it makes the machine's result
        file and the page, also of measurements made outside."""
        tree, build, name = self.folder / "tree", self.folder / "build", "quantize/mul/uniform/f32-i8/1x4096"
        for top in "bench", "docs":
            shutil.copytree(os.path.join(SOURCE, top), tree / top)
        (build / "bench").mkdir(parents=True)
        shutil.copy(BENCH, build / "bench" / "npuquant-bench")
        (self.folder / "ninja").symlink_to(shutil.which("true"))
        outside = self.folder / "outside.csv"
        outside.write_text(f"cell,shape,contestant,version,ns,ratio\n{name[:-7]},1x4096,Other,abc,1000,1.5\n")

        def changed(*options):
            def files():
                return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}

            before = files()
            done = subprocess.run([tree / "bench" / "run", "--quick", "--filter", f"{name}$", *options],
                                  env={**os.environ, "BUILD": str(build), "PYTHONDONTWRITEBYTECODE": "1",
                                       "PATH": f"{self.folder}:{os.environ['PATH']}"},
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout, sorted(path for path, text in files().items() if before.get(path) != text)

        self.assertEqual(changed("--list"), (f"{name}\n", []))
        text, files = changed()
        self.assertEqual(files, [])
        self.assertIn(f"\n{name}  (", text)
        self.assertIn("\n| quantize, float32 |", text)
        _, (path, page) = changed("--record", "--outside", outside)
        self.assertEqual(page, "docs/performance.md")
        cell, = json.loads((tree / path).read_text())["cells"]
        case = json.loads((build / "bench.json").read_text().splitlines()[1])
        loops = [run["npuquant_times_as_fast"] for run in case["runs"] if " loop" in run["who"]]
        self.assertEqual((cell["case"], cell["ratios"]["Other"]), (name, 1.5))
        self.assertAlmostEqual(cell["us"], case["runs"][0]["median_ns"] / 1e3, delta=0.01 * cell["us"])
        self.assertAlmostEqual(cell["ratios"]["plain loop"], min(loops), delta=0.01 * min(loops))


if __name__ == "__main__":
    unittest.main()
