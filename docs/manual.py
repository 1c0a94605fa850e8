#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the manual page docs/npuquant.1 from the help of the command. The page's date is that of its last change.

usage: docs/manual.py TOOL            writes the page; TOOL is build/tools/npuquant
       docs/manual.py TOOL --check    compares the page with the help, and has mandoc or man check its form
"""
import datetime
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent / "npuquant.1"
HEAD = '.\\" SPDX-License-Identifier: BSD-3-Clause\n.\\" Made by docs/manual.py from the help of the command.\n'


def escaped(text):
    return re.sub("^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.MULTILINE) + "\n"


def items(block):
    """Pairs of a term and its description, of which later lines are far to the right."""
    lines = re.sub(r"\n {20,}", "  ", block).strip("\n").splitlines()
    pairs = [re.split(" {2,}", line.strip(), maxsplit=1) for line in lines]
    return [(term, re.sub(" {2,}", " ", "".join(words))) for term, *words in pairs]


def parse(text):
    """The parts of a help by their titles. The body has paragraphs, which are strings, and lists of items."""
    usage, *blocks = text.strip().split("\n\n")
    found = {"usage": usage.removeprefix("usage: "), "body": []}
    for block in blocks:
        title, _, rest = block.partition(":")
        if re.fullmatch("example|exit status|[a-z]+", title):
            inline = title == "exit status" and not rest.startswith("\n")
            found[title] = rest if title == "example" else " ".join(rest.split()) if inline else items(rest)
        else:
            found["body"].append(items(block) if block.startswith("  ") else " ".join(block.split()))
    return found


def formatted(parts, left_out=()):
    for i, part in enumerate(parts):
        if isinstance(part, str):
            yield (".PP\n" if i > 0 else "") + escaped(part)
        for term, words in part if isinstance(part, list) else []:
            if (term, words) not in left_out:
                term = re.sub(r"\b[A-Z]\w*\b", r"\\fI\g<0>\\fR", escaped(term))
                yield ".TP\n" + re.sub(r"(?<!\S)\\-[^\s,]+", r"\\fB\g<0>\\fR", term) + escaped(words)


def page(ask, date):
    general = parse(ask("--help"))
    helps = {name: parse(ask("help", name)) for name, _ in general["commands"] if name != "help"}
    operators = [name for name, _ in parse(ask("help", "diagnose"))["operators"]]
    lists = [sum((part for part in helps[name]["body"] if isinstance(part, list)), []) for name in operators]
    shared = [pair for pair in lists[0] if all(pair in pairs for pairs in lists)]
    sentence, _, description = general["body"][0].partition(". ")

    yield f'{HEAD}.TH NPUQUANT 1 "{date}" npuquant\n.nh\n.SH NAME\n'
    yield f"npuquant \\- {sentence[0].lower()}{escaped(sentence[1:])}.SH SYNOPSIS\n"
    yield ".br\n".join(escaped(found["usage"]) for found in helps.values())
    yield from (".SH DESCRIPTION\n", *formatted([description, *general["body"][1:]]))
    yield from (".SH OPTIONS OF ALL OPERATORS\n", *formatted([shared]), ".SH COMMANDS\n")
    for name, summary in general["commands"]:
        found = helps.get(name, {"body": []})
        yield ".SS " + escaped(name)
        yield from formatted([f"{summary[0].upper()}{summary[1:]}.", *found["body"]], shared if name in operators else ())
        if name not in operators and "exit status" in found:
            yield f".PP\nExit status: {escaped(found['exit status'])}"
    for title in ("files", "environment", "exit status"):
        yield from (f".SH {title.upper()}\n", *formatted([general[title]]))
    yield ".SH EXAMPLES\n.nf\n"
    yield from (escaped(found["example"].strip().replace("\n  ", "\n")) for found in helps.values())
    yield ".fi\n"


def form_is_right():
    for words in (["mandoc", "-T", "lint", "-W", "warning"], ["man", "--warnings", "-l", "-E", "UTF-8"]):
        if shutil.which(words[0]):
            done = subprocess.run([*words, PAGE], capture_output=True, encoding="utf-8", check=False)
            print(words[0], done.stderr or (done.returncode and done.stdout) or "ok", sep=": ")
            return done.returncode == 0 and not done.stderr and (words[0] == "mandoc" or done.stdout)
    print("SKIPPED: form of the page: neither mandoc nor man")
    return os.environ.get("CI") != "true"


def main(tool, check=None):
    def made(date):
        return "".join(page(lambda *words: subprocess.check_output([tool, *words], encoding="utf-8"), date))

    old = PAGE.read_text(encoding="utf-8")
    same_date = made(re.findall('^[.]TH .* "(.*)"', old, re.MULTILINE)[0])
    if not check and old != same_date:
        PAGE.write_text(made(datetime.date.today().isoformat()), encoding="utf-8")
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), same_date.splitlines(True), str(PAGE), "the help"))
    return not check or form_is_right() and old == same_date


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
