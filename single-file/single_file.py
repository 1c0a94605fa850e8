#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the library as one source file and one header, npuquant.c and npuquant.h, to copy into a project.

usage: single_file.py source-directory output-directory [depfile]
       single_file.py --dist     in the folder single-file of a release tarball that Meson makes

The shared headers come first, then every source file, then every backend between pragmas with its instruction set.
Where two files use one name for a static function, type or constant, the script renames both; macros end with the file.
"""
import os
import pathlib
import re
import sys

# Included once, at the top: outside of any condition or pragma of the sources.
STANDARD_HEADERS = {
    "assert.h", "fenv.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
}
TARGET_HEADERS = {
    "arm_neon.h": "defined(NPUQ_WITH_NEON)",
    "cpuid.h": "(defined(__x86_64__) || defined(__i386__)) && !defined(NPUQ_PLAIN_C)",
    "immintrin.h": "defined(NPUQ_WITH_AVX2) || defined(NPUQ_WITH_AVX512)",
    "stdatomic.h": "!defined(NPUQ_PLAIN_C)",
    "sys/auxv.h": "(defined(__s390x__) || defined(__riscv)) && defined(__linux__) && !defined(NPUQ_PLAIN_C)",
    "xmmintrin.h": "(defined(__x86_64__) || defined(__SSE2_MATH__)) && !defined(NPUQ_PLAIN_C)",
}

FAMILIES = {
    # gcc aligns the stack to 16 bytes there, and its vectors to more
    "x86_64": "defined(__x86_64__) && (defined(__clang__) || !defined(_WIN32))",
    "aarch64": "defined(__aarch64__) && !defined(__AARCH64EB__)",
    # The condition in src/simd/vec_generic.h, and compilers with __builtin_shufflevector()
    "any": "(defined(__clang__) || __GNUC__ >= 12) && "
           "(defined(__SSE2_MATH__) || defined(__VSX__) || defined(__loongarch_sx) || defined(__wasm_simd128__) || "
           "(defined(__s390x__) && defined(__linux__) && !defined(__clang__)))",
}

# Comments and strings, which stay unchanged, or an identifier with the text before it.
TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|(?:\.|->)?\b[A-Za-z_]\w*', re.DOTALL)

BANNER = """\
/*
 * npuquant {version}: the Ascend NPU quantisation operators on CPUs, with the device's arithmetic.
 *
 * {what}
 *
{licence}
 */
"""

SOURCE = """\
The whole library in one file, made by single-file/single_file.py; npuquant.h is its header. Any flags will do that
 * leave IEEE arithmetic alone: not -ffast-math, nor what clang has no sign of, -fno-honor-nans. gcc and clang compile
 * the vector backends of the target, too, of which the first call takes the best that the CPU runs. With NPUQ_NO_SIMD
 * defined there is portable C only. Its only global names are the functions of npuquant.h."""

HEADER = """\
The header of the one-file library, npuquant.c. The program or library that npuquant.c is linked into exports none of
 * its functions. Define NPUQ_API to mark them otherwise. Define NPUQ_PREFIX, here and for npuquant.c, to rename them."""

API = """\
/** Marks the functions. */
#ifndef NPUQ_API
#if defined(__GNUC__) && !defined(_WIN32)
#define NPUQ_API __attribute__((visibility("hidden")))
#else
#define NPUQ_API
#endif
#endif
"""

PROLOGUE = """\
#ifdef __cplusplus
#error "npuquant.c is C: compile it with a C compiler, and link the object file with the C++ program"
#else

#define NPUQ_SINGLE_FILE

/* C99 alone, and so without the vector backends: where GNU C is not known, or where one asks for it. */
#if !defined(NPUQ_PLAIN_C) && !defined(__GNUC__)
#define NPUQ_PLAIN_C
#endif

/* Marks what the parts of the library call in each other. Tests of these parts define it as nothing. */
#ifndef NPUQ_INTERNAL
#ifdef __GNUC__
#define NPUQ_INTERNAL static __attribute__((unused))
#else
#define NPUQ_INTERNAL static
#endif
#endif

/* Before the headers of the intrinsics, which are functions, too. */
#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#pragma float_control(precise, on)
#endif
"""


def fail(message):
    sys.exit(f"single_file.py: {message}")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def has_guard(text):
    return "_H\n#define NPUQ" in text


def without_guard(text):
    """The text of a header without its include guard and licence line."""
    text = re.sub(r"\A/\* SPDX-[^\n]*\n", "", text)
    return re.sub(r"^#ifndef (NPUQ\w*_H)\n#define \1\n(.*)^#endif\n\Z", r"\2", text, flags=re.DOTALL | re.MULTILINE)


def lists(library):
    """The sources, and the instruction sets as (name, family, target), of src/lists.txt."""
    text = library.file(library.source / "src/lists.txt")
    sources, isas = (re.findall(f"^{kind}: (.*)", text, re.MULTILINE) for kind in ("source", "isa"))
    if not sources or not isas:
        fail("src/lists.txt: no source, or no isa")
    backends = []
    for name, family, *flags in map(str.split, isas):
        if family not in FAMILIES:
            fail(f"src/lists.txt: {name}: when is a compiler's target {family}? See FAMILIES")
        backends.append((name, family, ",".join(flag.removeprefix("-m") for flag in flags)))
    return sources, backends


class Library:
    """Reads files, and sorts them into what is shared and what each source file has for itself."""

    def __init__(self, source):
        self.source = source
        self.read = set()
        self.headers = set()  # of the system
        self.shared = []      # text
        self.shared_files = set()

    def file(self, path):
        self.read.add(path)
        return path.read_text()

    @staticmethod
    def is_template(path):
        """Headers with other content for every backend."""
        return path.parent.name == "simd" or path.name == "row_table.h"

    def expand(self, path, included, mark=True):
        """The text of a file with its templates, and with guarded ones once; other headers go to the shared part."""
        name = path.relative_to(self.source)
        out = [f"/* ==== {name} ==== */\n"] if mark else []
        for line in without_guard(self.file(path)).splitlines(keepends=True):
            include = re.match(r'#include ([<"])(.*)[>"]', line)
            if not include:
                out.append(line)
            elif include[1] == "<":
                if not include[2].startswith("npuquant/"):
                    self.headers.add(include[2])
            else:
                header = (path.parent / include[2]).resolve()
                if not header.exists():
                    header = self.source / "src" / include[2]
                if not self.is_template(header):
                    self.share(header)
                elif header not in included or not has_guard(self.file(header)):
                    included.add(header)
                    out += [self.expand(header, included), f"\n/* ==== {name} ==== */\n"]
        return "".join(out)

    def share(self, path):
        if path not in self.shared_files:
            self.shared_files.add(path)
            text = self.expand(path, set())
            self.shared.append(text)


def macros(text):
    """Macros with parameters: name, parameters and body."""
    joined = text.replace("\\\n", " ")
    return [(m[1], [p.strip() for p in m[2].split(",")], m[3])
            for m in re.finditer(r"^#define (\w+)\(([^)]*)\)(.*)", joined, re.MULTILINE)]


def definitions(text):
    """The names that a file defines, and the beginnings of names that its macros paste together. In the form that
    clang-format gives, only definitions begin in the first column."""
    text = re.sub(r"__attribute__\(\(.*?\)\)+ ?", "", without_comments(text))
    names = set()
    stems = set()
    used = set()

    for macro, parameters, body in macros(text):
        stems |= set(re.findall(r"\bstatic [^(#]*?\b(\w+_)##", body))
        used |= set(re.findall(r"\b(\w+_)##", body))
        for function in re.findall(r"\b(?:static|INLINE) [^(#]*?\b(\w+)\(", body):
            if function in parameters: # the macro is given the name
                at = parameters.index(function)
                for call in re.findall(rf"^{macro}\(([^)]*)\)", text, re.MULTILINE):
                    names.add(call.split(",")[at].strip())

    code = re.sub(r"^#.*?(?<!\\)\n", "", text, flags=re.DOTALL | re.MULTILINE)
    for function in re.findall(r"^(?:static|INLINE|NOINLINE|FOR_TYPES)\b[^;={]*?\b(\w+)\(", code, re.MULTILINE):
        names.add(function)
    for variable in re.findall(r"^static [^;={(]*?\b(\w+)(?:\[\w*\])*(?: =|;)", code, re.MULTILINE):
        names.add(variable)
    for tag, body, name in re.findall(r"^(?:typedef )?(?:struct|enum)( \w+)? {(.*?)}( \w+)?;", code,
                                      re.DOTALL | re.MULTILINE):
        names |= {tag.strip(), name.strip()} - {""}
    names |= set(re.findall(r"^typedef [^;{]*?\b(\w+);", code, re.MULTILINE))
    for body in re.findall(r"^(?:typedef )?enum[^;{]*{(.*?)}", code, re.DOTALL | re.MULTILINE):
        names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    names |= {stem for stem in used if any(name.startswith(stem) for name in names)}
    names -= {"_Atomic"}  # looks like a function's name in a variable's declaration
    return {n for n in names if not n.lower().startswith("npuq_")}, stems


def renamed(text, prefix, names, stems):
    """Members, after a dot or an arrow, keep their names."""
    def new(match):
        token = match[0]
        ours = token in names or token.startswith(tuple(stems))
        return prefix + token if ours else token

    return TOKEN.sub(new, text)


def undefined(text):
    """Ends the macros that a file defines and does not end itself."""
    code = without_comments(text)
    defined = re.findall(r"^#define (\w+)", code, re.MULTILINE)
    ended = set(re.findall(r"^#undef (\w+)", code, re.MULTILINE))
    return "".join(f"#undef {name}\n" for name in dict.fromkeys(defined) if name not in ended)


def public_functions(header):
    return set(re.findall(r"\bNPUQ_API [^;(]*?\b(npuq_\w+)\(", without_comments(header)))


def marked(text, public):
    """Puts NPUQ_INTERNAL before declarations and definitions of internal functions and objects. As in
    definitions(), nothing else begins in the first column."""
    def mark(match):
        return match[0] if match[2] in public else f"NPUQ_INTERNAL {match[1]}{match[2]}"

    text = re.sub(r"\bextern ((?:const \w+|_Atomic\([^)]*\)) npuq_)", r"NPUQ_INTERNAL \1", text)
    return re.sub(r"^(?!static |typedef |NPUQ_CONTRACT |NPUQ_INTERNAL )([A-Za-z_][\w ]* \**|_Atomic\([^)]*\) )"
                  r"(npuq_\w+)(?=[(\[;]| =)", mark, text, flags=re.MULTILINE)


def in_c99(text):
    """C99 has no such keywords; compilers have them as extensions."""
    return re.sub(r"(?<!#define )\b((?:(?:static|NPUQ_INTERNAL) )?(?:_Atomic\(|_Thread_local |_Alignas\()|"
                  r"_Static_assert\()", r"__extension__ \1", text)


def backend(name, target, text):
    # The compiler's own macros mean nothing here: the pragma enables the instructions.
    text = re.sub(r'^#if (?:.*\\\n)*.*\n#error "this file is .*\n#endif\n', "", text, flags=re.MULTILINE)
    begin, end = "", ""
    if target:
        begin = (f"#ifdef __clang__\n#pragma clang attribute push(__attribute__((target(\"{target}\"))), "
                 f"apply_to = function)\n#else\n#pragma GCC push_options\n#pragma GCC target(\"{target}\")\n#endif\n")
        end = "#ifdef __clang__\n#pragma clang attribute pop\n#else\n#pragma GCC pop_options\n#endif\n"
    return f"#ifdef NPUQ_WITH_{name.upper()}\n{begin}\n{text}\n{end}#endif\n"


def source_file(library, sources, backends, banner):
    parts = {name: library.expand(library.source / "src" / name, set()) for name in sources}
    parts |= {f"simd/{name}.c": library.expand(library.source / "src/simd" / f"{name}.c", set())
              for name, _, _ in backends}

    own = {name: definitions(text) for name, text in parts.items()}
    taken = set(re.findall(r"\w+", "".join(parts.values()) + "".join(library.shared)))
    for name, text in parts.items():
        others = [own[other] for other in parts if other != name]
        names = {n for n in own[name][0] if any(n in other[0] or n.startswith(tuple(other[1])) for other in others)}
        stems = {s for s in own[name][1]
                 if any(s in other[1] or any(n.startswith(s) for n in other[0]) for other in others)}
        prefix = pathlib.PurePath(name).stem + "_"
        for new in names:
            if prefix + new in taken:
                fail(f"{name}: {new} cannot become {prefix}{new}, which is taken")
        parts[name] = renamed(text, prefix, names, stems) + undefined(text)
    for name, _, target in backends:
        parts[f"simd/{name}.c"] = backend(name, target, parts[f"simd/{name}.c"])

    public = public_functions(library.file(library.source / "include/npuquant/npuquant.h"))
    parts = {name: marked(text, public) for name, text in parts.items()}
    shared = [marked(text, public) for text in library.shared]

    unknown = library.headers - STANDARD_HEADERS - set(TARGET_HEADERS)
    if unknown:
        fail(f"when is there {', '.join(sorted(unknown))}? See TARGET_HEADERS")

    out = [banner, '#include "npuquant.h"\n', PROLOGUE]
    out.append("#if !defined(NPUQ_NO_SIMD) && !defined(NPUQ_PLAIN_C)\n")
    for family in dict.fromkeys(family for _, family, _ in backends):
        out.append(f"#if {FAMILIES[family]}\n")
        out += [f"#define NPUQ_WITH_{name.upper()}\n" for name, of, _ in backends if of == family]
        out.append("#endif\n")
    out.append("#endif\n")
    out.append("".join(f"#include <{header}>\n" for header in sorted(library.headers & STANDARD_HEADERS)))
    out += [f"#if {condition}\n#include <{header}>\n#endif\n"
            for header, condition in sorted(TARGET_HEADERS.items()) if header in library.headers]
    # In C99, glibc and newlib define keywords of C11 as macros. With glibc's _Static_assert, which declares a function,
    # clang's targets refuse a second declaration. newlib's _Atomic() is a structure.
    out += [f"#undef {keyword}\n" for keyword in ("_Alignas", "_Atomic", "_Static_assert", "_Thread_local")]
    out.append(library.expand(library.source / "single-file/plain_c.h", set()))
    out.append("#if defined(__GNUC__) && !defined(_WIN32)\n#pragma GCC visibility push(hidden)\n#endif\n")
    # clang warns of unused functions of headers here, as in any source file.
    out.append('#ifdef __clang__\n#pragma clang diagnostic push\n'
               '#pragma clang diagnostic ignored "-Wunused-function"\n#endif\n')
    out += shared
    out.append("#ifdef __clang__\n#pragma clang diagnostic pop\n#endif\n")
    out.append("#if defined(__GNUC__) && !defined(_WIN32)\n#pragma GCC visibility pop\n#endif\n")
    out += parts.values()
    out.append("#endif /* C */\n")
    return in_c99("\n".join(out))


def header_file(library, banner):
    text = without_guard(library.file(library.source / "include/npuquant/npuquant.h"))
    count = 0
    for name in "version", "prefix":
        part = without_guard(library.file(library.source / f"include/npuquant/{name}.h"))
        part = re.sub(r"\A/\*\*.*?\*/\n", "", part.lstrip(), flags=re.DOTALL)
        text, found = re.subn(rf"^#include <npuquant/{name}.h>\n", lambda _: part.strip() + "\n", text,
                              flags=re.MULTILINE)
        count += found
    text, api = re.subn(r"^/\*\* Marks the functions.*?\n(?=\n#ifdef __cplusplus)",
                        lambda _: API, text, flags=re.DOTALL | re.MULTILINE)
    if count != 2 or api != 1:
        fail("npuquant.h: no inclusion of version.h and prefix.h, or no NPUQ_API")
    # npuquant/dlpack.h asks for this guard.
    return f"{banner}#ifndef NPUQUANT_NPUQUANT_H\n#define NPUQUANT_NPUQUANT_H\n\n{text.strip()}\n\n#endif\n"


def main():
    arguments = sys.argv[1:]
    if arguments == ["--dist"]:
        arguments = [os.environ["MESON_PROJECT_DIST_ROOT"], os.environ["MESON_PROJECT_DIST_ROOT"] + "/single-file"]
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    library = Library(pathlib.Path(arguments[0]).resolve())
    output = pathlib.Path(arguments[1])
    licence = library.file(library.source / "LICENSE")
    version = re.search(r'#define NPUQ_VERSION "(.*)"', library.file(library.source / "include/npuquant/version.h"))[1]

    def banner(what):
        lines = "\n".join(f" * {line}".rstrip() for line in licence.strip().splitlines())
        return BANNER.format(version=version, what=what, licence=lines)

    sources, backends = lists(library)
    files = {
        "npuquant.c": source_file(library, sources, backends, banner(SOURCE)),
        "npuquant.h": header_file(library, banner(HEADER)),
    }
    output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (output / name).write_bytes(re.sub(r"\n{3,}", "\n\n", text).encode())
    if len(arguments) == 3:
        read = " ".join(str(path) for path in sorted(library.read))
        pathlib.Path(arguments[2]).write_text(f"{output / 'npuquant.c'}: {read}\n")


main()
