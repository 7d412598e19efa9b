#!/usr/bin/env python3
"""Files that other programs read of the project are in order: the forms of issues and CITATION.cff.

usage: project_files.py TREE VERSION; exit 77 (skipped) where this Python has no yaml"""
import pathlib
import sys

try:
    import yaml
except ImportError:
    print("SKIPPED: this Python has no yaml (python3-yaml)")
    sys.exit(77)

ELEMENTS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def form_problems(form):
    for key in ("name", "description", "body"):
        if not form.get(key):
            yield f"there is no {key}"
    names = [element.get("id") for element in form.get("body", []) if element.get("type") != "markdown"]
    if None in names or len(names) != len(set(names)):
        yield f"not every field has an id of its own: {names}"
    for element in form.get("body", []):
        needed = "value" if element.get("type") == "markdown" else "label"
        if element.get("type") not in ELEMENTS or not element.get("attributes", {}).get(needed):
            yield f"a field of no known type, or without {needed}: {element}"


def citation_problems(citation, version):
    for key in ("message", "title", "authors", "license"):
        if not citation.get(key):
            yield f"there is no {key}"
    if citation.get("cff-version") != "1.2.0" or citation.get("version") != version:
        yield f"it is not about version {version}"


def problems(root, version):
    """(path, problem)"""
    forms = sorted((root / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    if len(forms) < 2:
        yield ".github/ISSUE_TEMPLATE", "the forms are missing"
    for path in forms:
        for problem in form_problems(yaml.safe_load(path.read_text())):
            yield path.relative_to(root), problem
    for problem in citation_problems(yaml.safe_load((root / "CITATION.cff").read_text()), version):
        yield "CITATION.cff", problem


def main():
    root, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = [f"{path}: {problem}" for path, problem in problems(root, version)]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
