#!/usr/bin/env python3
"""A name means one thing. usage: names.py TREE [FOLDER...]; without FOLDER the namespaces of src and include
are checked; exit 77 (skipped) without universal-ctags.

No two types of one name stand within one program, whatever their namespaces: the linker may take the one for the other.
Nested types and those of unnamed namespaces are excepted, and so are aliases in source files. And each library has its
namespace: lrun::core (inline) for src/core, lrun::launcher for src/launcher, lrun::detail for what src/runtime does
not define of include/lrun. The files of a folder may be compiled as one unit: a local function of one of them has no name
that a function of another has, whose calls it could take."""
import pathlib
import re
import sys

from cpp_tags import CLASSES, declarations, sources

PROGRAMS = {"lrun": ("src/core", "src/launcher", "src/main.cc"), "liblrun": ("src/core", "src/runtime", "include")}
# The namespaces that files of a folder open, inner ones included; the first folder that fits counts. Sources of
# src/runtime open 'lrun' for the definitions of what include/lrun declares.
NAMESPACES = [
    ("src/core", ".*", "lrun::inline core"),
    ("src/launcher", ".*", "lrun::launcher(::.*)?"),
    ("src/runtime", r".*\.h", "lrun::detail(::.*)?"),
    ("src/runtime", ".*", "lrun(::(detail|nn))?"),
    ("include", ".*", "lrun(::(detail|nn))?"),
]
OPENED = re.compile(r"^namespace (lrun(?: |::|\w)*?) ?\{", re.M)


def is_type(tag):
    at_namespace = tag["scopeKind"] in {"", "namespace"} and "__anon" not in tag["scope"]
    is_alias = tag["kind"] == "typedef" and tag["path"].endswith(".h")
    return at_namespace and (tag["kind"] in CLASSES | {"enum"} or is_alias) and not tag.get("specialization")


def type_problems(tags):
    for program, folders in PROGRAMS.items():
        first = {}
        for tag in tags:
            if not is_type(tag) or not tag["path"].startswith(folders):
                continue
            place = f"{tag['path']}:{tag['line']}"
            other = first.setdefault(tag["name"], place)
            if other != place:
                yield f"{place}: {program} has another type {tag['name']} at {other}"


def is_local(tag):
    return "__anon" in tag["scope"] or "static" in tag["properties"]


def function_problems(tags):
    first = {}
    functions = [tag for tag in tags if tag["kind"] == "function" and tag["scopeKind"] in {"", "namespace"}
                 and tag["path"].startswith("src/") and tag["path"].endswith(".cc")]
    for tag in sorted(functions, key=is_local):
        folder = pathlib.PurePath(tag["path"]).parent
        other = first.setdefault((folder, tag["name"]), tag)
        if is_local(tag) and other["path"] != tag["path"]:
            yield (f"{tag['path']}:{tag['line']}: {other['path']} has another function {tag['name']}, and both may be "
                   "compiled as one unit")


def namespace_problems(root, files):
    for file in files:
        wanted = next((names for folder, name, names in NAMESPACES
                       if str(file).startswith(folder + "/") and re.fullmatch(name, file.name)), ".*")
        for match in OPENED.finditer((root / file).read_text()):
            if not re.fullmatch(wanted, match.group(1)):
                line = match.string.count("\n", 0, match.start()) + 1
                yield f"{file}:{line}: opens namespace '{match.group(1)}', which is not that of its folder"


def main():
    root = pathlib.Path(sys.argv[1])
    files = sources(root, ["src", "include"])
    tags = declarations(root, files)
    problems = [*type_problems(tags), *function_problems(tags),
                *namespace_problems(root, sources(root, sys.argv[2:]) or files)]
    print(*problems, sep="\n", end="\n" if problems else "")
    sys.exit(1 if problems else 0)


main()
