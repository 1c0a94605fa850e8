#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Markdown pages: every file and heading that a link names exists, as on a forge. Works without Doxygen; making the
site checks its own links.

usage: test_pages.py SOURCE     the folder of the source
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.join(SOURCE, "docs"))
import forge  # noqa: E402


class Links(unittest.TestCase):
    def test_pages(self):
        self.assertGreater(len(forge.pages(SOURCE)), 20)
        self.assertEqual(forge.broken_links(SOURCE), [])

    def test_front_page(self):
        links = {link for _, _, link in forge.LINK.findall(forge.read(os.path.join(SOURCE, "README.md")))}
        operators = {f"docs/operators/{name}" for name in os.listdir(os.path.join(SOURCE, "docs", "operators"))}
        self.assertEqual(operators - links, set())

    def test_design(self):
        """The files in the design exist, and so do the functions of a call's path."""
        design = forge.read(os.path.join(SOURCE, "docs", "design.md"))
        for path in re.findall(r"^\| `(src/[^`<]*)`", design, re.MULTILINE):
            found = [os.path.exists(os.path.join(SOURCE, path + end)) for end in ("", ".c", ".h")]
            self.assertTrue(any(found), path)
        steps = re.findall(r"^\| `(src/[^`]*)` \| (`\w+.*`) \|", design, re.MULTILINE)
        self.assertGreater(len(steps), 10)
        for path, functions in steps:
            for function in re.findall(r"`(\w+)", functions):
                found = re.search(rf"\b{function}\)?\(", forge.read(os.path.join(SOURCE, path)))
                self.assertTrue(found, f"{path} has no {function}()")

    def test_no_labels(self):
        """A forge shows {#label} as text; the site makes its own labels."""
        for path in forge.pages(SOURCE):
            self.assertEqual([h[1] for h in forge.headings(forge.read(path)) if "{#" in h[1]], [], path)

    def test_fragments(self):
        text = "# FetchContent, add_subdirectory\n## 1. `x`: a [link](y.md)\n```\n# no heading\n```\n## Same\n### Same\n"
        fragments = [fragment for _, _, fragment in forge.headings(text)]
        self.assertEqual(fragments, ["fetchcontent-add_subdirectory", "1-x-a-link", "same", "same-1"])

    def test_broken(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {
                "a.md": "# One - two\n[1](b.md#three) [2](folder/c.md) ![3](x.svg) `[4](code.md)` [5](https://x.invalid)\n"
                "```\n[6](code.md)\n```\n[7](#one---two) [8](#missing) [9](b.md#Three) [`10`\n11](gone.md) [12](/b.md)\n",
                "b.md": "## Three\n[1](a.md) [2](../b.md)\n",
                "folder/c.md": "[1](../b.md#three) [2](b.md)\n",
                "build/d.md": "[1](gone.md)\n",
            }.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual(
                forge.broken_links(root),
                [
                    "a.md: x.svg: no such file",
                    "a.md: #one---two: no such heading",
                    "a.md: #missing: no such heading",
                    "a.md: b.md#Three: no such heading",
                    "a.md: gone.md: no such file",
                    "a.md: /b.md: no such file",
                    "b.md: ../b.md: no such file",
                    "folder/c.md: b.md: no such file",
                ],
            )


class Site(unittest.TestCase):
    def test_groups(self):
        """Every function is in a group, a page of the site, and every operator has a group."""
        header = forge.read(os.path.join(SOURCE, "include", "npuquant", "npuquant.h"))
        self.assertIn("\nNPUQ_API ", header)
        self.assertNotIn("\nNPUQ_API ", re.sub(r"@{.*?@}", "", header, flags=re.DOTALL))
        for name in os.listdir(os.path.join(SOURCE, "docs", "operators")):
            name = name.removesuffix(".md")
            self.assertRegex(header, rf"@defgroup api_{name} {name}\n")

    def test_filter(self):
        """Doxygen reads labels and references, and lists the contents where there are more than five headings."""
        for path, long in {"docs/performance.md": True, "docs/semantics.md": True, "docs/stability.md": False}.items():
            text = subprocess.run(
                [sys.executable, os.path.join(SOURCE, "docs", "site.py"), "--filter", os.path.join(SOURCE, path)],
                stdout=subprocess.PIPE,
                encoding="utf-8",
                check=True,
            ).stdout
            name = path.removesuffix(".md").replace("/", "_")
            title, heading = re.findall(r"^##? .*", text, re.MULTILINE)[:2]
            self.assertRegex(title, rf" {{#{name}}}$")
            self.assertRegex(heading, rf" {{#{name}_[\w-]+}}$")
            self.assertEqual("[TOC]" in text, long, path)
            self.assertNotRegex(text, r"\]\([^@)]*(\.md|#)")
            self.assertNotRegex(text, r"\[[^]]*\n[^]]*\]\(@ref")

    def test_without_doxygen(self):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                [sys.executable, os.path.join(SOURCE, "docs", "site.py"), "Doxyfile", empty],
                env={"PATH": empty, "PYTHONDONTWRITEBYTECODE": "1"},
                stderr=subprocess.PIPE,
                encoding="utf-8",
                check=False,
            )
            self.assertEqual(done.returncode, 1)
            self.assertIn("Install the package doxygen", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertEqual(os.listdir(empty), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
