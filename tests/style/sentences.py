#!/usr/bin/env python3
"""Comments, texts and names are plain English in the field's words. usage: sentences.py TREE [FOLDER...]; without FOLDER
all that FOLDERS names.

- No sentence opens with Who, Whoever, Whose, Whom, Whatever, or 'What … is' (a question may): the subject comes first.
- A word has a better one (INSTEAD), also as a part of an identifier.
- A source file (.cc) of more than 100 lines opens with one to three comment lines: what comes in, what goes out, who
  calls.

Read are comments of C++, Python, shell and CMake files, the texts of lrun (tests/golden/texts.golden), the man page and
the documents."""
import pathlib
import re
import sys

FOLDERS = ["src", "include", "tests", "tools", "bench", "examples", "cmake", "man", "docs", "README.md",
           "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
OPENINGS = re.compile(r"(Who|Whoever|Whose|Whom|Whatever)\b|What\b.*\b(is|are|was|were|has|have|had)\b")
# A pattern of a word, and what to write instead.
INSTEAD = {
    r"mend(s|ed|ing)?": "fix",
    r"meetings?": "rendezvous",
    r"(?<!module )holders?": "leader; owner of a lock or a file",
    r"adrift": "leaderless",
    r"tak(e|es|en|ing)[_ ]?overs?|took over|succession": "failover, or another verb",
    r"farewells?|good-?byes?|byes?": "leave",
    r"knock(s|ed|ing)?": "join",
    r"vanish(es|ed|ing)?": "say what happens",
    r"sign-?posts?": "redirect",
    r"objections?|turn(s|ed|ing)?[_ ]away": "reject, rejection",
    r"strangers?": "foreign connection, unknown process",
    r"deaf": "unresponsive",
    r"greet(s|ed|ing|ings)?": "handshake",
    r"beats?": "heartbeat",
    r"came[_ ]to": "the outcome of",
    r"in[_ ]words": "text, describe",
    r"nobody[_ ]says": "there is no",
    r"foreign[_ ]lines?": "other progress line",
    r"cannot be had": "is not available",
    r"(?<!there )is none(?! of\b)": "say what there is not",
    r"the seeds'": "(a reader does not know them)",
}
BANNED = [(re.compile(rf"(?<![/\w]){pattern}(?!\w)", re.I), better) for pattern, better in INSTEAD.items()]
NAMES_OF_LIBTORCH = {"CustomClassHolder", "isNone"}
LONG_FILE = 100

# A literal comes before a comment, so that the '//' in it is none.
CPP = re.compile(
    r'R"(?P<d>[^()\\\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|(?P<comment>//[^\n]*|/\*.*?\*/)', re.S)
HASH = re.compile(r"^[ \t]*(?P<comment>#(?!!)[^\n]*)", re.M)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def comments(text, pattern):
    """[line, words] of each comment; comment lines that follow each other are one."""
    found = []
    last_line = 0
    for match in pattern.finditer(text):
        if not match.group("comment"):
            continue
        line = line_of(text, match.start("comment"))
        words = re.sub(r"^(//[/!]?<?|#+|/\*+) ?", "", match.group("comment")).rstrip("*/ ")
        is_alone = not text[:match.start("comment")].rsplit("\n", 1)[-1].strip()
        if found and is_alone and line == last_line + 1 and words:
            found[-1][1] += "\n" + words
        else:
            found.append([line, words])
        last_line = line + words.count("\n")
    return found


def sentences(line, words):
    """(line, sentence) of a comment or a paragraph."""
    words = re.sub(r"\\(t?param +\w+|throws +[\w:]+|return)", ". ", words)
    begin = 0
    for match in re.finditer(r"[.!?]['\")*`]*(\s+|$)|$", words):
        sentence = " ".join(words[begin:match.end()].split())
        if sentence:
            yield line + words.count("\n", 0, begin), sentence
        begin = match.end()


def paragraphs(path, text):
    """[line, words] of documents: README.md, the man page, texts.golden."""
    if path.suffix == ".golden":
        return [[at, line[9:]] for at, line in enumerate(text.splitlines(), 1) if re.match(r"(text|error|hint|warning|note) ", line)]
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```", lambda block: "\n" * block.group().count("\n"), text, flags=re.M | re.S)
        text = re.sub(r"<!--.*?-->", "", text)
    found = []
    begins = re.compile(r"[-*|#>] |\||\d+\. |$")  # a list item, a row, a heading, an empty line
    block = re.compile(r"\.(It|Pp|Sh|Ss|Bl|El|Bd|Ed|Dl|Nd)\b")  # of mdoc; other macros stand within a sentence
    is_new = True
    for at, line in enumerate(text.splitlines(), 1):
        for part in line.split("|") if line.startswith("|") else [re.sub(r"^\.[A-Z]\w\s*", "", line)]:
            if is_new or begins.match(line) or block.match(line):
                found.append([at, part.strip(" -*#>`")])
            else:
                found[-1][1] += "\n" + part
        is_new = bool(block.match(line))
    return found


def word_problems(line, words):
    for pattern, better in BANNED:
        for match in pattern.finditer(words):
            yield line + words.count("\n", 0, match.start()), f"'{match.group()}': {better}"


def identifier_problems(text):
    """Words that identifiers of C++ consist of."""
    code = CPP.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    seen = set(NAMES_OF_LIBTORCH)
    for match in IDENTIFIER.finditer(code):
        if match.group() in seen:
            continue
        seen.add(match.group())
        parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", match.group()).lower().split("_")
        for pattern, better in BANNED:
            found = pattern.search(" ".join(parts))
            if found:
                yield line_of(code, match.start()), f"'{match.group()}': {better}"


def file_problems(path, name):
    text = path.read_text(errors="replace")
    if path.suffix in {".cc", ".h"}:
        blocks = comments(text, CPP)
        yield from identifier_problems(text)
        if path.suffix == ".cc" and name.startswith("src/") and text.count("\n") > LONG_FILE:
            opening = blocks[0] if blocks and blocks[0][0] == 1 else [1, ""]
            if not 1 <= len(opening[1].splitlines()) <= 3:
                yield 1, "a long source file opens with one to three comment lines"
    elif path.suffix in {".py", ".sh", ".cmake"} or path.name in {"CMakeLists.txt", "dev"}:
        blocks = comments(text, HASH)
    elif path.suffix in {".md", ".1", ".golden"}:
        blocks = paragraphs(path, text)
    else:
        return
    for line, words in blocks:
        yield from word_problems(line, words)
        for at, sentence in sentences(line, words):
            if OPENINGS.match(sentence) and not sentence.endswith("?"):
                yield at, f"begin with the subject: {sentence[:80]}"


def main():
    root = pathlib.Path(sys.argv[1])
    bad = False
    for folder in sys.argv[2:] or FOLDERS:
        files = [root / folder] if (root / folder).is_file() else sorted((root / folder).rglob("*"))
        for path in files:
            name = str(path.relative_to(root))
            if not path.is_file() or "/corpus/" in name or path.name == pathlib.Path(__file__).name:
                continue
            for line, problem in sorted(file_problems(path, name)):
                print(f"{name}:{line}: {problem}")
                bad = True
    sys.exit(1 if bad else 0)


main()
