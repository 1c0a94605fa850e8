# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx makes the site from the pages as a forge shows them, and from what Doxygen reads in the headers. Its source is
a folder of the build, with links to the pages, and with the API and pictures that prepare() makes. A page's line that
ends with the comment `site: ...` is for readers of the forge: the site has in its place what the comment says."""
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys

import furo
from docutils import nodes
from sphinx import addnodes
from sphinx.errors import SphinxError
from sphinx.util.nodes import make_refnode

SOURCE = pathlib.Path(__file__).resolve().parent.parent
NAME = re.compile(r"\b((?:npuq|NPUQ)_\w+|docs/[\w/-]+\.md)")
DOXYFILE = """
INPUT                  = "{source}/include/npuquant"
OUTPUT_DIRECTORY       = "{output}"
STRIP_FROM_PATH        = "{source}"
STRIP_FROM_INC_PATH    = "{source}/include"
OPTIMIZE_OUTPUT_FOR_C  = YES
TYPEDEF_HIDES_STRUCT   = YES
SORT_MEMBER_DOCS       = NO
EXTRACT_STATIC         = YES
WARN_NO_PARAMDOC       = NO
WARN_AS_ERROR          = FAIL_ON_WARNINGS
QUIET                  = YES
MACRO_EXPANSION        = YES
EXPAND_ONLY_PREDEF     = YES
PREDEFINED             = NPUQ_API= NPUQ_KEEPS_DATA=
GENERATE_HTML          = NO
GENERATE_LATEX         = NO
GENERATE_XML           = YES
"""

project = "npuquant"
extensions = ["myst_parser", "breathe"]
include_patterns = ["*.md", "api/*.md", "docs/**.md", "python/README.md", "src/ref/README.md"]
root_doc = "README"
myst_heading_anchors = 6
breathe_default_project = "npuquant"
breathe_show_enumvalue_initializer = True
breathe_domain_by_extension = {"h": "c"}
smartquotes_action = "D"  # only dashes, which Sphinx writes itself
highlight_language = "none"
nitpicky = True
nitpick_ignore_regex = [("c:identifier", r"u?int\d+_t|size_t|DLTensor")]
html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_copyright = False
# Debian's furo lacks the rule by which a dark system has the dark colours. The theme makes one of these variables.
style = (pathlib.Path(furo.__file__).parent / "theme/furo/static/styles/furo.css").read_text(encoding="utf-8")
dark = re.search(r'body\[data-theme="?dark"?\] ?{(.*?)}', style, re.DOTALL)[1]
html_theme_options = {"dark_css_variables": dict(re.findall(r"--([\w-]+): ?([^;]*)", dark))}


def directive(name, argument="", body="", **options):
    options = "".join(f":{option.replace('_', '-')}: {value}\n" for option, value in options.items())
    return f"\n```{{{name}}} {argument}\n{options}{body}```\n"


def toctree(pages, **options):
    return directive("toctree", body="\n" + "\n".join(pages) + "\n", hidden="", **options)


def prepare(app, config):
    folder = pathlib.Path(app.srcdir)
    for name in ("README.md", "CONTRIBUTING.md", "NEWS", "LICENSE", "docs", "examples", "python", "src"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(SOURCE / name)
    subprocess.run(["doxygen", "-"], input=DOXYFILE.format(source=SOURCE, output=folder), encoding="utf-8", check=True)
    config.breathe_projects = {"npuquant": str(folder / "xml")}
    for name in ("api", "pictures"):
        shutil.rmtree(folder / name, ignore_errors=True)
    subprocess.run([sys.executable, SOURCE / "bench/page", "--pictures", folder / "pictures"], check=True)
    (folder / "api").mkdir()
    for path in (SOURCE / "include/npuquant").glob("*.h"):
        groups = re.findall(r"@defgroup api_(\w+) (.*)", path.read_text(encoding="utf-8"))
        # A group has a page. Only headers without groups show on their own page what they declare.
        sections = {"sections": "briefdescription detaileddescription"} if groups else {}
        page = f"({path.stem}_8h)=\n# {path.name}\n" + directive("doxygenfile", path.name, **sections)
        if groups:
            page += toctree([group for group, _ in groups] + ["version", "prefix"])
        (folder / f"api/{path.stem}.md").write_text(page, encoding="utf-8")
        for group, title in groups:
            page = f"# {title}\n" + directive("doxygengroup", f"api_{group}", members="")
            (folder / f"api/{group}.md").write_text(page, encoding="utf-8")


@functools.lru_cache(maxsize=None)
def hypotheses(app):
    """The cells of the table. quant-matmul shares the hypotheses of dequant and requant, and has others."""
    command = [pathlib.Path(app.srcdir).parent / "npuquant", "hypotheses", "--json"]
    entries = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    operators = [[name for name in entry["operators"] if entry["operators"] == [name] or name != "quant-matmul"]
                 for entry in entries]
    every = max(operators, key=len)
    return [[entry["name"], entry["what"], entry["advice"], "all" if names == every else ", ".join(names)]
            for entry, names in zip(entries, operators)]


def hypotheses_table(app):
    lines = ["| hypothesis | the kernel ... | what to do | operators |", "|---|---|---|---|"]
    for name, what, advice, operators in hypotheses(app):
        words = [re.sub(r"[|<*]", r"\\\g<0>", text) for text in (what, advice)]
        names = operators if operators == "all" else re.sub(r"[\w-]+", r"`\g<0>`", operators)
        lines.append(f"| `{name}` | {words[0]} | {words[1]} | {names} |")
    return "\n".join(lines)


def check_table(app, doctree):
    """The page must show all hypotheses, with the words of the command: Markdown may take some for markup."""
    if app.env.docname == "docs/hypotheses":
        rows = [row for body in doctree.findall(nodes.tbody) for row in body]
        if [[cell.astext() for cell in row] for row in rows] != hypotheses(app):
            raise SphinxError("docs/hypotheses.md: the table differs from the list of npuquant hypotheses --json")


def read(app, docname, source):
    """Makes what only the site has. Lets links to headers lead to their pages. Adds the menu, the lists of
    docs/README.md, to the first page."""
    source[0] = re.sub(r"^.*<!-- site: (.*) -->$", lambda line: hypotheses_table(app) if line[1] == "hypotheses" else
                       line[1], source[0], flags=re.MULTILINE)
    source[0] = re.sub(r"\]\((../)*include/npuquant/(\w+)\.h\)", r"](/api/\2.md)", source[0])
    if docname == root_doc:
        source[0] += toctree(["All pages <docs/README>"])
        for section in (SOURCE / "docs/README.md").read_text(encoding="utf-8").split("\n## ")[1:]:
            pages = re.findall(r"^- \[(.*?)\]\((.*)\.\w+\)", section, re.MULTILINE)
            pages = [f"{title} </docs/{path}>".replace("/docs/../include/npuquant", "/api") for title, path in pages]
            source[0] += toctree(pages, caption=section.splitlines()[0])
    elif docname in ("python/README", "src/ref/README"):
        source[0] = "---\norphan: true\n---\n" + source[0]


def link_names(app, doctree, docname):
    """Makes links of the API's names, and of the pages that comments of headers name."""
    places = {f"{page}.md": (page, "") for page in app.env.found_docs}
    for name, _, _, page, anchor, _ in app.env.get_domain("c").get_objects():
        places[name.rpartition(".")[2]] = page, anchor
    fixed = {id(text) for kind in (nodes.title, nodes.reference, nodes.literal_block, addnodes.desc_signature)
             for node in doctree.findall(kind) for text in node.findall(nodes.Text)}
    for text in list(doctree.findall(nodes.Text)):
        pieces = [nodes.Text(piece) for piece in NAME.split(text)] if id(text) not in fixed else []
        for number, piece in enumerate(pieces):
            if number % 2 and piece in places:
                pieces[number] = make_refnode(app.builder, docname, *places[piece], piece)
        if len(pieces) > 1:
            text.parent.replace(text, pieces)


def finish(app, exception):
    if not exception:  # where a reader, and a web server, begins
        shutil.copy(pathlib.Path(app.outdir, "README.html"), pathlib.Path(app.outdir, "index.html"))


def setup(app):
    app.connect("config-inited", prepare)
    app.connect("source-read", read)
    app.connect("doctree-read", check_table)
    app.connect("doctree-resolved", link_names)
    app.connect("build-finished", finish)
