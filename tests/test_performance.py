#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The performance pages have the tables that bench/page makes of bench/results, bench/page draws the pictures that they
name, and makes a result file of measurements. NPUQ_SOURCE is the folder of the source; otherwise the folder above."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = os.path.abspath(os.environ.get("NPUQ_SOURCE") or os.path.join(os.path.dirname(__file__), os.pardir))
PAGES = ("docs/performance.md", "docs/performance-method.md")
# Of each machine: the other files of bench/results are tables.
PICTURES = {f"{path.stem}.svg" for path in pathlib.Path(SOURCE, "bench", "results").glob("*.json")
            if json.loads(path.read_text(encoding="utf-8"))["schema"] == "npuquant-results-1"}
CPU = "A Vendor(R) 3000 (family 1, model 2)"
FILE = "bench/results/a-vendor-3000-family-1-model-2.json"
PICTURE = "a-vendor-3000-family-1-model-2.svg"
SVG = "{http://www.w3.org/2000/svg}"


def run(kind, who, ns, ratio):
    return {"kind": kind, "who": who, "median_ns": ns, "npuquant_times_as_fast": ratio}


def case(name, level, us, of_limit, bound, *runs):
    return {"name": name, "level": level, "limits": {"of_limit": of_limit, "bound": bound},
            "runs": [run("ours", "avx512", 1e3 * us, 1), *runs]}


BENCH = {"schema": "npuquant-bench-5", "version": "9.8.7", "date": "2030-01-02", "cpu": CPU, "compiler": "cc 1",
         "processors": 2, "caches": [32768, 1048576, 33554432], "cases": [
             case("quantize/mul/uniform/f32-i8/1x128", "L1", 0.05, 0.3, "latency", run("ours", "avx2", 60, 1.2),
                  run("prepared", "prepared", 20, 0.4), run("with tensors", "with tensors", 70, 1.4),
                  run("peer", "clang loop", 10, 0.2), run("peer", "naive loop", 20, 0.4)),
             case("quantize/mul/uniform/f32-i8/64x1024", "L2", 3, 0.912345, "stream", run("peer", "naive loop", 6000, 2),
                  run("stream", "stream", 2700, 0.9)),
             case("quantize/mul/uniform/f32-i8/64x1024/nan", "L2", 4, 0.7, "ports", run("baseline", "usual data", 3e3, 0.75)),
             {"name": "requant/mul/uniform/i32-i8/1x128", "failure": "differs", "level": "L1", "runs": []}]}
PEERS = {"schema": "npuquant-peers-1", "date": "2030-01-03", "versions": {"NumPy": "3.1"}, "rows": [
    {"case": "quantize/mul/uniform/f32-i8/64x1024", "who": "NumPy", "ours_ns": 4000, "ratio": 11.5}]}
OUTSIDE = ("cell,shape,contestant,version,ns,ratio\n"
           "quantize/mul/uniform/f32-i8,64x1024,Other,abc,2700,0.9\n"
           "quantize/mul/uniform/f32-i8,64x1024,Other,abc,3600,1.2\n"
           "quantize/mul/uniform/f16-i8,64x1024,Other,abc,6000,1.5\n")


def lines_of(bench):
    """As bench/run writes them."""
    head = {key: value for key, value in bench.items() if key != "cases"}
    return "".join(json.dumps(line) + "\n" for line in (head, *bench["cases"]))


class Performance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        shutil.copytree(os.path.join(SOURCE, "bench", "results"), self.tree / "bench" / "results")
        (self.tree / "docs").mkdir()
        for name in ("bench/page", *PAGES):
            shutil.copy(os.path.join(SOURCE, name), self.tree / name)
        self.write("bench.json", lines_of(BENCH))
        self.write("peers.json", json.dumps(PEERS))
        self.write("outside.csv", OUTSIDE)

    def read(self, name):
        return (self.tree / name).read_text(encoding="utf-8")

    def write(self, name, text):
        (self.tree / name).write_text(text, encoding="utf-8")

    def page(self, *options, status=0):
        done = subprocess.run([sys.executable, self.tree / "bench" / "page", *options], cwd=self.tree, encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else done.stdout

    def pictures(self):
        """By their names, those that bench/page draws."""
        self.page("--pictures", "pictures")
        return {path.name: xml.etree.ElementTree.parse(path).getroot() for path in (self.tree / "pictures").iterdir()}

    def test_pages_are_made(self):
        """The pages in the source are what bench/page writes, and it notices a table that differs."""
        self.page("--check")
        before = [self.read(name) for name in PAGES]
        self.write(PAGES[0], re.sub(r"(\| quantize, .*)[0-9]", r"\1", before[0], count=1))
        self.assertEqual(self.page("--check", status=1), f"{PAGES[0]}: bench/page makes another one of bench/results\n")
        self.page()
        self.assertEqual([self.read(name) for name in PAGES], before)

    def test_pictures_are_made(self):
        """Each machine has a picture, and the page names it for the site."""
        drawn = {name: picture.find(f"{SVG}title").text.split(":")[0] for name, picture in self.pictures().items()}
        self.assertEqual(drawn.keys(), PICTURES)
        named = re.findall(r"^The site .* <!-- site: !\[(.*): .*\]\(/pictures/(.*)\) -->\n", self.read(PAGES[0]), re.M)
        self.assertEqual(sorted(named), sorted((machine, name) for name, machine in drawn.items()))

    def test_record(self):
        """A line for each case, of all measurements; a failed case has none; and the machine is on the page. --show
        prints what a recording would write, and nothing is written."""
        self.assertIn("| 50 (**0.20**) |", self.page("--show", "bench.json"))
        self.assertFalse((self.tree / FILE).exists())
        self.page("--record", "bench.json", "peers.json", "outside.csv")
        text = self.read(FILE)
        data = json.loads(text)
        cells = {(cell["case"], cell.get("through")): cell for cell in data["cells"]}
        self.assertEqual(len(cells), 5)
        for cell in data["cells"]:
            self.assertIn("\n" + json.dumps(cell), text)
        uniform = "quantize/mul/uniform/f32-i8"
        self.assertEqual(cells[f"{uniform}/1x128", None], {
            "case": f"{uniform}/1x128", "level": "L1", "us": 0.05, "of_limit": 0.3, "bound": "latency",
            "beside": {"avx2": 1.2, "prepared": 0.4, "with tensors": 1.4}, "ratios": {"plain loop": 0.2}})
        self.assertEqual(cells[f"{uniform}/64x1024", None]["ratios"], {"plain loop": 2, "Other": 0.9})
        self.assertEqual(cells[f"{uniform}/64x1024", None]["of_limit"], 0.912)
        self.assertEqual(cells[f"{uniform}/64x1024", "NumPy"]["ratios"], {"NumPy": 11.5})
        self.assertEqual(cells["quantize/mul/uniform/f16-i8/64x1024", None]["us"], 4)
        self.assertEqual(data["contestants"]["NumPy"], {"version": "3.1", "date": "2030-01-03"})
        self.assertEqual(data["contestants"]["Other"]["version"], "abc")
        page = self.read(PAGES[0])
        self.assertIn(f"### {CPU}\n", page)
        self.assertIn(f"{CPU}; caches 32 KiB, 1 MiB, 32 MiB. npuquant 9.8.7, avx512, cc 1, 2030-01-02.\n", page)
        self.assertIn("NumPy (3.1, 2030-01-03, 12)", page)
        self.assertIn("| quantize, float32 | 50 (**0.20**) |  | 3 (**0.90**) |  |\n", page)
        self.assertIn("| not found | 2 | 0.20 |\n", page)
        self.assertIn(f" <!-- site: ![{CPU}: parts of the limit](/pictures/{PICTURE}) -->\n", page)
        self.page("--check")
        shown = self.page("--show", FILE)
        self.assertIn("| Other |  |  | 1.20 (0.90 to 1.50) |  | 1 of 2 |\n", shown)
        self.assertIn("| quantize | 0.30, latency |  | 0.91, stream |  |\n", shown)
        self.assertIn("| quantize | 20 | 50 | 70 |\n", shown)
        self.assertIn(f"| not found | 2 | 0.20 | `{uniform}/1x128`, plain loop |\n", shown)

    def test_picture(self):
        """A bar is as long as the part of the limit, and what has no limit has no bar."""
        self.page("--record", "bench.json", "outside.csv")
        picture = self.pictures()[PICTURE]
        self.assertEqual(picture.get("role"), "img")
        self.assertIn(CPU, picture.find(f"{SVG}title").text)
        texts = ["".join(text.itertext()).strip() for text in picture.iter(f"{SVG}text")]
        self.assertEqual([text for text in texts if re.match(r"[01]\.", text)], ["0.91", "1.01 Other"])
        widths = {bar.get("class"): float(bar.get("width"))
                  for bar in picture.iter(f"{SVG}rect") if float(bar.get("width")) > 11}
        self.assertAlmostEqual(widths["ours"] / widths["faster"], 0.9, delta=0.03)

    def test_words_of_a_file_are_kept(self):
        """What is written by hand of a machine, but for notes about its figures."""
        self.page("--record", "bench.json")
        data = json.loads(self.read(FILE))
        data.update(name="The Machine", notes=["of then"], causes=[{"cases": "/1x128$", "who": ".* loop", "cause": "why"}])
        self.write(FILE, json.dumps(data))
        self.page("--record", "bench.json", "outside.csv")
        data = json.loads(self.read(FILE))
        self.assertEqual((data["name"], data["notes"], len(data["causes"])), ("The Machine", [], 1))
        page = self.read(PAGES[0])
        self.assertIn("### The Machine\n", page)
        self.assertIn("| why | 1 | 0.20 |\n", page)
        self.assertIn("| not found | 1 | 0.90 |\n", page)

    def test_wrong_files(self):
        self.assertIn("no results of bench/run", self.page("--record", "peers.json", status=1))
        self.write("old.json", lines_of({**BENCH, "schema": "npuquant-bench-4"}))
        self.assertIn("old.json: found the schema 'npuquant-bench-4', expected ", self.page("--show", "old.json", status=1))
        self.write("other.json", lines_of({**BENCH, "cpu": "B"}))
        self.assertIn("measurements of two machines", self.page("--record", "bench.json", "other.json", status=1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
