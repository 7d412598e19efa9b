#!/usr/bin/env python3
"""Classes, functions and files are of a size that a reader can hold: at most 30 methods and 25 data members a class, 60
lines a function, 600 lines a file; and a class has one source file. usage: classes.py TREE; exit 77 (skipped) without
universal-ctags.

A class is measured by its body. Overloads are one method; constructors, destructors and what is defaulted or deleted are
none; static members are no data. A plain table of fields, a struct without methods but operators, has as many fields
as it needs. The lines of every file that git knows are counted, also those of scripts."""
import pathlib
import subprocess
import sys

from cpp_tags import CLASSES, declarations, qualified, sources

MOST_METHODS = 30
MOST_MEMBERS = 25
MOST_FUNCTION_LINES = 60
MOST_FILE_LINES = 600
COUNTED_FILES = ["*.cc", "*.h", "*.py", "*.sh", "*.cmake", "*.in", "CMakeLists.txt", "dev", ".ci/run", "completions/*"]


class Body:
    """The methods and data members between the braces of one class."""

    def __init__(self, tag):
        self.tag = tag
        self.methods = set()
        self.members = 0

    def add(self, tag):
        if tag["kind"] in {"function", "prototype"}:
            is_special = tag["name"] == self.tag["name"] or tag["name"].startswith("~")
            if not is_special and not tag["properties"] & {"delete", "default"}:
                self.methods.add(tag["name"])
        elif tag["kind"] == "member" and "static" not in tag["properties"]:
            self.members += 1

    def problems(self):
        is_table = self.tag["kind"] == "struct" and all(name.startswith("operator") for name in self.methods)
        if len(self.methods) > MOST_METHODS:
            yield f"{len(self.methods)} methods, the limit is {MOST_METHODS}"
        if self.members > MOST_MEMBERS and not is_table:
            yield f"{self.members} data members, the limit is {MOST_MEMBERS}"


def class_problems(tags):
    bodies = {(tag["path"], qualified(tag)): Body(tag) for tag in tags if tag["kind"] in CLASSES}
    for tag in tags:
        body = bodies.get((tag["path"], tag["scope"]))
        if body and body.tag["line"] <= tag["line"] <= body.tag["end"]:
            body.add(tag)
    for (path, name), body in bodies.items():
        for problem in body.problems():
            yield f"{path}:{body.tag['line']}: {name.split('::')[-1]} has {problem}"


def spread_problems(tags):
    """A class over two files hides its size."""
    files = {qualified(tag): set() for tag in tags if tag["kind"] in CLASSES and "__anon" not in tag["scope"]}
    for tag in tags:
        if tag["kind"] == "function" and tag["scope"] in files and tag["path"].endswith(".cc"):
            files[tag["scope"]].add(tag["path"])
    for name, paths in files.items():
        if len(paths) > 1:
            yield f"{min(paths)}: {name.split('::')[-1]} is spread over {', '.join(sorted(paths))}"


def function_problems(tags):
    for tag in tags:
        lines = tag["end"] - tag["line"] + 1
        if tag["kind"] == "function" and lines > MOST_FUNCTION_LINES:
            yield f"{tag['path']}:{tag['line']}: {tag['name']}() has {lines} lines, the limit is {MOST_FUNCTION_LINES}"


def file_problems(root):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *COUNTED_FILES],
                            cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    for file in listed:
        path = root / file
        lines = path.read_bytes().count(b"\n") if path.is_file() else 0
        if lines > MOST_FILE_LINES:
            yield f"{file}: {lines} lines, the limit is {MOST_FILE_LINES}"


def main():
    root = pathlib.Path(sys.argv[1])
    tags = declarations(root, sources(root, ["src", "include"]))
    problems = [*class_problems(tags), *spread_problems(tags), *function_problems(tags), *file_problems(root)]
    print(*problems, sep="\n", end="\n" if problems else "")
    sys.exit(1 if problems else 0)


main()
