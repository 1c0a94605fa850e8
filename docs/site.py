#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the documentation's site: the menu from docs/README.md, the pages with Doxygen; then follows every link.

usage: site.py DOXYFILE OUTPUT
       site.py --filter FILE
"""
import html.parser
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from xml.sax.saxutils import quoteattr

import forge

DOCS = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(DOCS)
MAIN_PAGE = os.path.join(SOURCE, "README.md")
MENU = os.path.join(DOCS, "README.md")
DEFAULT_SECTION = "Guides"  # of pages that docs/README.md does not list
SHORT = 5  # headings, the title among them: a page with more has a contents list
# Pages of headers: what they say, then lists of what they declare. Pages of groups say nothing of their own.
MEMBERS = '<defines title=""/>\n<enums title=""/>\n<functions title=""/>\n'
LISTS = f'<memberdecl>\n<classes visible="yes" title=""/>\n{MEMBERS}</memberdecl>\n<memberdef>\n{MEMBERS}</memberdef>\n'
HEADER = f'<detaileddescription title="Overview"/>\n{LISTS}<sourcelink visible="yes"/>\n'


def is_page(path):
    """Whether Doxygen reads it: what the Doxyfile says."""
    inside = path.startswith(DOCS + os.sep) or path in (MAIN_PAGE, os.path.join(SOURCE, "CONTRIBUTING.md"))
    return inside if path.endswith(".md") else path.startswith(os.path.join(SOURCE, "include")) and path.endswith(".h")


def title(path):
    return forge.headings(forge.read(path))[0][1]


def label(path, fragment=""):
    """What Doxygen calls a page, or the heading in it that has this fragment on a forge: such names are global."""
    if path.endswith(".h"):
        return os.path.basename(path)
    page = "index" if path == MAIN_PAGE else re.sub(r"\W", "_", os.path.relpath(path, SOURCE).removesuffix(".md"))
    return f"{page}_{fragment}" if fragment else page


def parts(path):
    """Groups and structures of a header, which have pages of their own: what Doxygen calls them, and titles."""
    if not path.endswith(".h"):
        return []
    found = re.findall(r"@defgroup (\w+) (.*)|^typedef struct (\w+) {", forge.read(path), re.MULTILINE)
    return [(group or structure, text or structure) for group, text, structure in found]


def read_menu():
    """The sections of docs/README.md with the titles and files of their pages."""
    sections = {}
    with open(MENU, encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                section = sections.setdefault(line[3:].strip(), [])
            elif match := re.match(r"- \[(.*?)\]\((.*?)\)", line):
                section.append((match[1], os.path.normpath(os.path.join(DOCS, match[2]))))
    listed = {path for pages in sections.values() for _, path in pages}
    for path in forge.pages(DOCS):
        if path not in listed and path != MENU:
            sections[DEFAULT_SECTION].append((title(path), path))
    return sections


def write_layout(sections, path):
    def tab(text, url):
        return f'<tab type="user" url={quoteattr(url)} title={quoteattr(text)}/>\n'

    with open(path, "w", encoding="utf-8") as file:
        file.write('<doxygenlayout version="1.0">\n<navindex>\n<tab type="mainpage" visible="yes" title="Overview"/>\n')
        for section, pages in sections.items():
            tabs = []
            for text, page in pages:
                tabs += [tab(name, f"@ref {target}") for target, name in [(label(page), text), *parts(page)]]
            if len(tabs) == 1 and pages[0][0] == section:
                file.write(tabs[0])
                continue
            file.write(f'<tab type="usergroup" url="[none]" title={quoteattr(section)}>\n{"".join(tabs)}</tab>\n')
        file.write(f"</navindex>\n<file>\n{HEADER}</file>\n<group>\n{LISTS}</group>\n</doxygenlayout>\n")


def filtered(path):
    """A page as Doxygen is to read it: headings have labels, and of many there is a list; what a forge finds by path,
    the site has elsewhere, or not at all."""
    text = forge.read(path)
    headings = forge.headings(text)
    fragments = iter([fragment for _, _, fragment in headings])

    def labelled(match):
        level, name = len(match[1]), label(path, next(fragments))
        if path == MAIN_PAGE:  # a section of the main page would be in the menu
            return match[0] if level == 1 else f"<h{level - 1}>\\anchor {name} {match[2]}</h{level - 1}>"
        if level == 1:
            return f"{match[0]} {{#{label(path)}}}" + ("\n\n[TOC]" if len(headings) > SHORT else "")
        return f"{match[0]} {{#{name}}}"

    def moved(match):
        before, text, link = match.groups()
        text = " ".join(text.split())  # Doxygen loses its way in a reference of two lines
        file, _, fragment = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(target):
            return match[0]  # fails
        if before == "!":
            return f"![{text}](images/{os.path.basename(link)})"
        if not is_page(target):
            return text
        # A path says nothing in the site; backticks would be shown.
        text = title(target) if text == link and link.endswith(".md") else text.replace("`", "")
        return f"[{text}](@ref {label(target, fragment)})"

    pieces = forge.FENCED.split(text)
    pieces[::2] = [forge.LINK.sub(moved, forge.HEADING.sub(labelled, piece)) for piece in pieces[::2]]
    return "".join(pieces)


def space_names(folder):
    """Names that share a @param or a @retval: Doxygen leaves no place between them where a line could end."""
    for path in [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".html")]:
        text = re.sub(r'<td class="paramname">[\w,]+</td>', lambda match: match[0].replace(",", ", "), forge.read(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


class Page(html.parser.HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.links = []
        self.anchors = set()
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src", "data") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(folder):
    """Links from pages, and from the menu's scripts, to files and places that are not there, or not in the site."""
    pages = {}
    links = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.endswith(".html"):
            pages[name] = Page(path)
            links += [(name, link) for link in pages[name].links]
        elif name in ("menudata.js", "navtreedata.js"):
            with open(path, encoding="utf-8") as file:
                links += [(name, link) for link in re.findall(r'"((?:@ref |[\w-]+\.html).*?)"', file.read())]
    if not links:
        return [f"{folder}: no links at all"]
    broken = []
    for name, link in links:
        url = urllib.parse.urlsplit(link)
        target = urllib.parse.unquote(url.path) or name
        if url.scheme in ("http", "https", "mailto", "javascript") or link == "#":
            continue
        if os.path.isabs(target) or target.startswith("..") or not os.path.isfile(os.path.join(folder, target)):
            broken.append(f"{name}: {link}: no such file")
        elif url.fragment and target in pages and url.fragment not in pages[target].anchors:
            broken.append(f"{name}: {link}: no such place")
    return broken


def main():
    if sys.argv[1] == "--filter":
        sys.stdout.write(filtered(os.path.abspath(sys.argv[2])))
        return
    doxyfile, output = sys.argv[1:]
    doxygen = shutil.which("doxygen")
    if doxygen is None:
        sys.exit(
            "The documentation's site is made with Doxygen, and there is no program doxygen in PATH. "
            "Install the package doxygen (Debian, Ubuntu: apt-get install doxygen)."
        )
    write_layout(read_menu(), os.path.join(output, "layout.xml"))
    folder = os.path.join(output, "html")
    shutil.rmtree(folder, ignore_errors=True)  # no pages of an earlier run
    if subprocess.run([doxygen, doxyfile]).returncode != 0:
        sys.exit("doxygen failed")
    shutil.copytree(os.path.join(DOCS, "images"), os.path.join(folder, "images"))
    space_names(folder)
    broken = broken_links(folder)
    if broken:
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
