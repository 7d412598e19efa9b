#!/usr/bin/env python3
"""Pages are short, and everything that they name exists. usage: pages.py TREE [PAGE...]

PAGE is a row of LIMITS, whose pages have no more words than it allows and as many pictures as it asks for. A word has a
letter or a digit; code and tables count, pictures do not.

Of all DOCUMENTS, whatever the arguments: a relative link leads to a file, and to a heading of it; a path below PATHS
exists ('*' stands for any name, and a part in capitals, as in tests/unit/MODULE, for itself); a picture is one that
Mermaid can read, as far as that shows without Mermaid. And a class, constant or function that DESIGN names in code
quotes occurs in the sources."""
import functools
import pathlib
import re
import sys
from typing import NamedTuple, Optional


class Limit(NamedTuple):
    words: int
    pictures: Optional[int] = None  # None: any number


LIMITS = {
    "README.md": Limit(1200),
    "ARCHITECTURE.md": Limit(900, 3),
    "docs/design/*.md": Limit(700, 1),
}
DOCUMENTS = ["*.md", "docs/**/*.md"]
DESIGN = ["ARCHITECTURE.md", "docs/design/*.md"]
SOURCES = ["src/**/*.h", "src/**/*.cc", "include/**/*.h"]

PICTURE = re.compile(r"^```mermaid\n(.*?)^```", re.M | re.S)
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w/.$~-])(?:src|include|tests|tools)/[\w.*/-]+")
NAME = re.compile(r"`(?:([\w:]+)\(\)|((?:k?[A-Z]\w*[a-z]\w*)(?:::\w+)*))`")
# The first word of a picture, and the words that open what 'end' closes.
KINDS = {
    "flowchart": {"subgraph"},
    "sequenceDiagram": {"alt", "box", "break", "critical", "loop", "opt", "par", "rect"},
    "stateDiagram-v2": set(),
}
BRACKETS = {")": "(", "]": "[", "}": "{"}
MESSAGE = re.compile(r"(\w+) *(?:<<)?--?(?:>>|[>x)])[+-]? *(\w+) *:")


def files(root, patterns):
    return sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()})


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def length_problems(text, limit):
    pictures = len(PICTURE.findall(text))
    words = sum(bool(re.search(r"\w", word)) for word in PICTURE.sub("", text).split())
    if words > limit.words:
        yield 1, f"{words} words, and {limit.words} are allowed"
    if limit.pictures is not None and pictures != limit.pictures:
        yield 1, f"{pictures} pictures (```mermaid) in place of {limit.pictures}"


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", FENCE.sub(blank, text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def link_problems(path, text):
    for match in LINK.finditer(FENCE.sub(blank, text)):
        if re.match(r"[a-z]+:", match.group(1)):
            continue
        name, _, anchor = match.group(1).partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            yield line_of(text, match.start()), f"there is no {name}"
        elif anchor and anchor not in anchors(target.read_text()):
            yield line_of(text, match.start()), f"there is no heading #{anchor} in {target.name}"


def path_problems(root, text):
    for match in PATH.finditer(text):
        name = match.group().rstrip("./")
        fixed = re.split(r"/(?=[A-Z_]+(?:/|$))", name)[0]
        if not any(root.glob(fixed)):
            yield line_of(text, match.start()), f"there is no {name}"


def is_balanced(line):
    line = re.sub(r'"[^"]*"', "", line)
    is_open = []
    for letter in line:
        if letter in BRACKETS.values():
            is_open.append(letter)
        elif letter in BRACKETS and (not is_open or is_open.pop() != BRACKETS[letter]):
            return False
    return not is_open and '"' not in line


def picture_problems(text):
    for match in PICTURE.finditer(text):
        at = line_of(text, match.start(1))
        lines = match.group(1).splitlines()
        kind = (lines[0].split() or [""])[0] if lines else ""
        if kind not in KINDS:
            yield at, f"'{kind}' is none of the pictures {', '.join(KINDS)}"
            continue
        depth = 0
        known = set(re.findall(r"^ *(?:participant|actor) +(\w+)", match.group(1), re.M))
        for number, line in enumerate(lines[1:], at + 1):
            first = (line.split() or [""])[0]
            depth += (first in KINDS[kind]) - (first == "end")
            if depth < 0:
                break
            if kind == "flowchart" and not is_balanced(line):
                yield number, "a bracket or a quote is left open"
            message = MESSAGE.match(line.strip())
            if kind == "sequenceDiagram" and message and not known.issuperset(message.groups()):
                yield number, f"no participant of the picture: {line.strip()}"
        if depth != 0:
            yield at, "as many 'end' as parts are needed"


@functools.lru_cache(maxsize=None)
def names_of_sources(root):
    """Every word, and of functions 'name('."""
    text = "\n".join(path.read_text(errors="replace") for path in files(root, SOURCES))
    return {name for match in re.finditer(r"(\w+)\(?", text) for name in match.group(0, 1)}


def name_problems(root, text):
    for match in NAME.finditer(FENCE.sub(blank, text)):
        names = re.findall(r"\w+", match.group(1) or match.group(2))
        if match.group(1):
            names[-1] += "("
        for name in names:
            if name not in names_of_sources(root):
                yield line_of(text, match.start()), f"the sources have no {name.replace('(', '()')}"


def problems(root, pages):
    for row in pages:
        found = files(root, [row])
        if not found:
            yield row, 1, "there is no such page"
        for path in found:
            for line, problem in length_problems(path.read_text(), LIMITS[row]):
                yield path.relative_to(root), line, problem
    design = files(root, DESIGN)
    for path in files(root, DOCUMENTS):
        text = path.read_text()
        found = [*link_problems(path, text), *path_problems(root, text), *picture_problems(text)]
        if path in design:
            found += name_problems(root, text)
        for line, problem in sorted(found):
            yield path.relative_to(root), line, problem


def main():
    root = pathlib.Path(sys.argv[1])
    found = [f"{path}:{line}: {problem}" for path, line, problem in problems(root, sys.argv[2:])]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


main()
