#!/usr/bin/env python3
"""Files that other programs read of the project are in order: the forms of issues, CITATION.cff, and the recipes of conda and
Spack, which are of the project's version, and name its options and the libraries that it requires.

usage: project_files.py TREE VERSION; exit 77 (skipped) where this Python has no yaml"""
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("SKIPPED: this Python has no yaml (python3-yaml)")
    sys.exit(77)

CONDA = "packaging/recipes/conda/recipe.yaml"
SPACK = "packaging/recipes/spack/package.py"
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


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def recipe_problems(root, text, libraries):
    """text: of the recipe. libraries: what it lists, as 'boost@1.81:' or 'libboost-headers >=1.81'."""
    options = re.findall(r"^(?:option|set)\((LRUN_\w+)", (root / "CMakeLists.txt").read_text(), re.M)
    for option in sorted(set(re.findall(r"LRUN_\w+", text)).difference(options)):
        yield f"CMakeLists.txt has no option {option}"
    required = re.findall(r"^find_package\((\w+) ?([\d.]*) REQUIRED", (root / "cmake/LrunDependencies.cmake").read_text(), re.M)
    for name, oldest in required:
        if name != "Threads" and not any(plain(name) in plain(library) and oldest in library for library in libraries):
            yield f"{name} {oldest} is required, and not listed"


def conda_problems(root, version):
    text = (root / CONDA).read_text()
    recipe = yaml.safe_load(text)
    if recipe["context"]["version"] != version:
        yield f"it is not of version {version}"
    if ((root / CONDA).parent / recipe["source"]["path"]).resolve() != root.resolve():
        yield "its source is not this project"
    yield from recipe_problems(root, text, recipe["requirements"]["host"])


def spack_problems(root, version):
    text = (root / SPACK).read_text()
    compile(text, SPACK, "exec")
    if re.findall(r'version\("([^"]+)"', text) != [version] or f"lrun@{version}" not in text:
        yield f"it is not of version {version} alone"
    yield from recipe_problems(root, text, re.findall(r'depends_on\("([^"]+)"', text))


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
    for problem in conda_problems(root, version):
        yield CONDA, problem
    for problem in spack_problems(root, version):
        yield SPACK, problem


def main():
    root, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = [f"{path}: {problem}" for path, problem in problems(root, version)]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
