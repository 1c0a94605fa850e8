# SPDX-License-Identifier: BSD-3-Clause
"""The Markdown pages as a forge (GitHub, GitLab, Gitee) reads them: their headings, their links, and the links that
lead nowhere there."""
import os
import re
import urllib.parse

FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)  # split() gives text, code, text ...
CODE = re.compile(rf"{FENCED.pattern}|`[^`\n]+`", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#{1,6}) (.*)$", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^][]*)\]\(([^)\s]+)\)")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def headings(text):
    """Level, title and fragment of each: what a link to it has after the #."""
    found = []
    seen = {}
    for marks, title in HEADING.findall(FENCED.sub("", text)):
        fragment = re.sub(r"[^\w -]", "", LINK.sub(r"\2", title).lower()).replace(" ", "-")
        count = seen[fragment] = seen.get(fragment, -1) + 1
        found.append((len(marks), title, f"{fragment}-{count}" if count else fragment))
    return found


def pages(root):
    """The files of all pages, but for those of builds and of other projects."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build", "subprojects"))]
        found += [os.path.join(folder, name) for name in files if name.endswith(".md")]
    return sorted(found)


def broken_links(root):
    """One line for each link of a page under root that a forge cannot follow."""
    broken = []
    for path in pages(root):
        for _, _, link in LINK.findall(CODE.sub("", read(path))):
            url = urllib.parse.urlsplit(link)
            if url.scheme:
                continue
            target = os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path)) if url.path else path
            inside = os.path.relpath(target, root).split(os.sep)[0] != os.pardir
            if url.path.startswith("/") or not inside or not os.path.exists(target):
                broken.append(f"{os.path.relpath(path, root)}: {link}: no such file")
            # GitLab makes one hyphen of two, so that such a heading has no fragment that is right everywhere.
            elif url.fragment and (not target.endswith(".md") or "--" in url.fragment or
                                   url.fragment not in [fragment for _, _, fragment in headings(read(target))]):
                broken.append(f"{os.path.relpath(path, root)}: {link}: no such heading")
    return broken
