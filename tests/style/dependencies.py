#!/usr/bin/env python3
"""The table of docs/dependencies.md is true of the includes. usage: dependencies.py TREE

Every include of a library in src and include has a row that names its place; every place of a row has such an include;
every package that CMake looks for is in the table."""
import pathlib
import re
import sys

# Headers of the C library and of Linux.
SYSTEM_FOLDERS = {"sys", "linux", "net", "netinet", "arpa"}
SYSTEM = set("""cxxabi dirent dlfcn elf execinfo fcntl features fts glob ifaddrs limits link malloc netdb nmmintrin poll
    pthread sched signal stdlib termios time ucontext unistd""".split())
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include <([^>]+)>", re.M)
PACKAGE = re.compile(r"^[ \t]*find_package\((\w+)|^[ \t]*include\((LibTorch)\)", re.M)


def rows(document):
    """(name, package, [prefix of includes], [place]) of each library."""
    found = []
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] != "library" and not set(cells[0]) <= {"-"}:
            found.append((cells[0], cells[1], re.findall(r"`([^`]+)`", cells[2]), re.findall(r"`([^`]+)`", cells[3])))
    return found


def is_below(path, place):
    return path == place or path.startswith(place.rstrip("/") + "/")


def is_of_library(include):
    folder, slash, _ = include.rpartition("/")
    if folder.split("/")[0] in SYSTEM_FOLDERS or include.startswith("lrun/"):
        return False
    return bool(slash) or include.endswith(".h") and include[:-2] not in SYSTEM


def includes(root):
    """(file, header) of each include of a library."""
    for path in sorted([*(root / "src").rglob("*"), *(root / "include").rglob("*")]):
        if path.suffix in {".h", ".cc"}:
            for header in INCLUDE.findall(path.read_text()):
                if is_of_library(header):
                    yield str(path.relative_to(root)), header


def problems(root):
    table = rows((root / "docs/dependencies.md").read_text())
    used = set()
    for path, header in includes(root):
        libraries = [row for row in table if any(header.startswith(prefix) for prefix in row[2])]
        places = [place for row in libraries for place in row[3] if is_below(path, place)]
        if not libraries:
            yield f"{path}: <{header}> has no row in docs/dependencies.md"
        elif not places:
            yield f"{path}: <{header}> is not in a place that docs/dependencies.md names for {libraries[0][0]}"
        used.update((row[0], place) for row in libraries for place in row[3] if is_below(path, place))
    for name, _, _, places in table:
        for place in places:
            if place.startswith(("src", "include")) and (name, place) not in used:
                yield f"docs/dependencies.md: {place} does not include {name}"
            elif not (root / place).exists():
                yield f"docs/dependencies.md: there is no {place}"
    packages = {row[1] for row in table}
    for path in [*sorted((root / "cmake").glob("*.cmake")), *sorted((root / "examples").rglob("CMakeLists.txt"))]:
        for names in PACKAGE.findall(path.read_text()):
            for name in filter(None, names):
                if name not in packages:
                    yield f"{path.relative_to(root)}: package {name} has no row in docs/dependencies.md"


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
