#!/usr/bin/env python3
"""Prints every text of the launcher that a user can see, as tests/golden/texts.golden keeps it; the rule is RULE below.
usage: texts.py TREE"""
import pathlib
import re
import sys

RULE = """\
# Every text of lrun that a user can see. Made by tests/golden/texts.py from the sources: do not edit.
#
# After a text was changed: tests/golden/texts.py . > tests/golden/texts.golden, and read the difference as a user would.
#
# A text is a string literal of src/ (without src/runtime, which is no part of the launcher), together with what is added
# to it by '+', that has two words, or one word with a blank beside it; in files that only speak (SPEAKING in texts.py)
# one word is enough. '{}' stands for what is put in at run time; what is told in parts stands here in parts. In front is
# what the source makes of it: error and hint (a refusal), warning, note, or text. Left out are what is compared with
# other people's words (beside '==', in starts_with(), find(), string_view("...")), and what texts.py lists in NOT_OURS.
# Files come in order of their names, texts in the order of their file, each once.
"""

# Files in which a lone word is for eyes: words of states and endings, labels of tables.
SPEAKING = {
    "base/message.cc", "base/signal_names.cc", "run/attempt_status.cc", "cli/flags.cc", "inspect/stack_fold.cc",
    "inspect/unusual_ranks.cc", "plan/show_plan.cc", "report/console_reporter.cc", "report/doctor_text.cc",
    "report/goodput_text.cc", "report/rank_table.cc", "report/restart_text.cc", "report/stack_text.cc", "report/status_text.cc",
    "report/timeline_html.cc", "report/timeline_svg.cc", "report/timeline_text.cc", "report/verdict_text.cc"
}
# Functions that put a lone word into a text: choice_of(given, "strategy") says 'no such strategy'.
SPEAKING_CALLS = {"choice_of"}
# Literals that are not for people, or are the words of others: a pattern for each file, and why.
NOT_OURS = {
    "inspect/python_answer.cc": (".*", "a program in Python"),
    "inspect/stack_fold.cc": ("std::|.*(reduce|gather|scatter|cast|barrier|toall).*|u?sleep|nanosleep|poll|syscall|select", "names of functions"),
    "inspect/stack_parsers.cc": (".*", "what debuggers print"),
    "inspect/stack_sampler.cc": ("(set|call|sharedlibrary|bt) .*", "commands for gdb"),
    "process/clone_into_cgroup.cc": (r"(syscall|svc #0)\\n.*", "machine instructions"),
    "rendezvous/handshake.cc": (r"(launcher|holder)\\n", "bytes of a proof"),
    "store/etcd_client.cc": ("(POST|Authorization:) .*", "HTTP"),
    "store/etcd_message.cc": ("not (base64|a whole number)", "caught where it is thrown"),
    "store/horovod_values.cc": (r"HTTP/1.1 |\d\d\d .*|\\r\\n.*", "HTTP"),
    "verdict/explain.cc": ("An attempt has been made .*", "what Python prints"),
    "verdict/printed_error.cc": (".*", "what runtimes print"),
    "verdict/native_error.cc": (".*", "what C++, Rust and the loader print"),
    "verdict/python_traceback.cc": (".*", "what Python prints"),
}
# A row of these tables is {name, others' words, others' words, our hint}.
HINT_TABLES = {"verdict/hint_table.cc"}
# Files that write HTML or SVG: only what a reader of the page sees is text.
MARKUP = {"report/goodput_html.cc", "report/timeline_html.cc", "report/timeline_svg.cc"}

# The kinds of texts that the arguments of a function make.
ERRORS = {"UserError": {0: "error", 1: "hint"}, "choice_error": {0: "error", 3: "hint"},
          "UnknownWord": {0: "error", 3: "hint"}}

COMPARING = {"starts_with", "ends_with", "find", "rfind", "contains", "has_any", "string_view", "regex", "getenv", "at",
             "value", "static_assert"}
OPENERS, CLOSERS = {"(", "[", "{"}, {")", "]", "}"}
CHAIN_ENDS = {",", ";", "?", ":", "==", "!=", "&&", "||", "=", "+=", "<<"}
SEVERITIES = {"kError": "error", "kWarning": "warning", "kNote": "note", "kHint": "hint"}
# Calls of a MessageSink: sink.warn("..."), and those that have a severity as their first argument.
SINK_CALLS = {"error": "error", "warn": "warning", "note": "note", "hint": "hint"}
MESSAGE_CALLS = {"print", "message_line", "message_of_job"}

TOKEN = re.compile(
    r"""
    (?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#[ \t]*include[^\n]*)
  | R"(?P<delimiter>[^()\\\s]*)\((?P<raw>.*?)\)(?P=delimiter)"
  | (?:u8)?"(?P<string>(?:\\.|[^"\\\n])*)"
  | (?P<other>\d(?:'?[\w.])*|'(?:\\.|[^'\\\n])+'|[A-Za-z_]\w*|::|->|\+=|==|!=|<=|>=|&&|\|\||<<|\+\+|--|[^\s\w])
""", re.X | re.S | re.M)


class Literal(str):
    """A string literal; other tokens are plain strings."""


def tokens_of(source):
    tokens = []
    for match in TOKEN.finditer(source):
        if match["raw"] is not None:
            tokens.append(Literal(match["raw"].replace("\n", "\\n")))
        elif match["string"] is not None:
            tokens.append(Literal(match["string"].replace('\\"', '"')))
        elif match["other"] is not None:
            tokens.append(match["other"])
    return tokens


def end_of_operand(tokens, at):
    """The index behind the operand of a '+' that begins at `at`."""
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        if not isinstance(token, Literal):
            if depth == 0 and (token in CLOSERS or token in CHAIN_ENDS or token == "+"):
                return at
            depth += (token in OPENERS) - (token in CLOSERS)
        at += 1
    return at


class Frame:
    """An open bracket: what is called, and which argument of it comes next."""

    def __init__(self, name, owner):
        self.name, self.owner, self.argument, self.severity = name, owner, 0, None

    def kind(self):
        if self.name in ERRORS:
            return ERRORS[self.name].get(self.argument)
        if self.name in MESSAGE_CALLS and self.severity:
            return self.severity
        if self.owner and self.name in SINK_CALLS:
            return SINK_CALLS[self.name]
        return "warning" if self.owner.endswith("warnings") else None


def frames_of(tokens):
    """For each token the open brackets around it, innermost last, and the kind of text that it is in."""
    stack = []
    for at, token in enumerate(tokens):
        if not isinstance(token, Literal):
            if token in CLOSERS and stack:
                stack.pop()
            elif token == "," and stack:
                stack[-1].argument += 1
            elif token in SEVERITIES and stack and stack[-1].argument == 0:
                stack[-1].severity = SEVERITIES[token]
        kinds = [frame.kind() for frame in stack if frame.kind()]
        yield stack[-1].name if stack else "", kinds[-1] if kinds else "text"
        if not isinstance(token, Literal) and token in OPENERS:
            before = [str(word) for word in tokens[max(0, at - 3):at]]
            name = before[-1] if before else ""
            stack.append(Frame(name, before[0] if len(before) == 3 and before[1] in (".", "->") else ""))


def chains_in(tokens, context, begin=0, end=None):
    """Each text of a file as (text, kind, index of its first token, index behind its last)."""
    at, end = begin, len(tokens) if end is None else end
    while at < end:
        if not isinstance(tokens[at], Literal):
            at += 1
            continue
        first = at
        text = "{}" if at > 0 and tokens[at - 1] == "+" and not isinstance(tokens[at - 1], Literal) else ""
        inner = []
        while at < end:
            if isinstance(tokens[at], Literal):
                text += tokens[at]
                at += 1
            elif tokens[at] == "+" and at + 1 < end:
                at += 1
                if not isinstance(tokens[at], Literal):
                    behind = end_of_operand(tokens, at)
                    inner.append((at, behind))
                    text += "{}"
                    at = behind
            else:
                break
        yield text, context[first], first, at
        for start, behind in inner:
            yield from chains_in(tokens, context, start, behind)


def is_compared(tokens, context, first, behind):
    before, after = tokens[first - 1] if first else "", tokens[behind] if behind < len(tokens) else ""
    if before == "=" and tokens[first - 2] == "short_names":
        return True
    return before in ("==", "!=", "[") or after in ("==", "!=") or context[0] in COMPARING


def without_markup(text):
    text = re.sub(r"<style>.*</style>", "", text)
    text = re.sub(r'<[^<>]*aria-label="([^"]*)"[^<>]*>', r"\1 ", text)
    return re.sub(r" {2,}", " ", re.sub(r"</?[A-Za-z!][^<>]*>", " ", text)).strip(" ")


def readable(text, path):
    """With plain '{}' for every value."""
    text = without_markup(text) if path in MARKUP else text
    return re.sub(r"(?<!\$)\{\d*(?::(?:[^{}]|\{\d*\})*)?\}", "{}", text)


TWO_WORDS = re.compile(r"""[A-Za-z})\]'"][,;:.]? +['"(\[{]*[A-Za-z\d{]""")
LONE_WORD = re.compile(r"^[ ,;:(]*[A-Za-z][a-z-]+[ ,;:)]*$")
WORD = re.compile(r"[A-Za-z]{2,}")


def is_text(text, path, called):
    plain = re.sub(r"\\(n|t|r|x[0-9a-f]{1,2}|u[0-9a-fA-F]{4})", " ", text)
    if not WORD.search(plain.replace("{}", " ")) or text.startswith('{{"'):  # JSON
        return False
    if LONE_WORD.match(plain):
        return path in SPEAKING or called in SPEAKING_CALLS or plain != plain.strip(" ")
    return bool(TWO_WORDS.search(plain))


def texts_of(path, source):
    tokens = tokens_of(source)
    context = list(frames_of(tokens))
    for text, where, first, behind in chains_in(tokens, context):
        if is_compared(tokens, where, first, behind):
            continue
        if path in NOT_OURS and re.fullmatch(NOT_OURS[path][0], text):
            continue
        if path in HINT_TABLES and behind < len(tokens) and tokens[behind] == ",":
            continue
        # {"key", value} is JSON, also in a file that speaks
        is_key = first > 0 and tokens[first - 1] == "{" and behind < len(tokens) and tokens[behind] == ","
        text = readable(text, path)
        if is_text(text, path, where[0]) and not (is_key and LONE_WORD.match(text) and "json" in source):
            yield where[1], text


def complaints_about(path, kind, text):
    """What the conventions forbid in a line that lrun says."""
    if kind == "text":
        return
    if re.search(r"[a-z')}]\.$", text):
        yield f"{path}: a full stop at the end: {text}"
    if re.match(r"[A-Z][a-z]+ ", text):
        yield f"{path}: a capital letter at the beginning: {text}"
    if '"{}"' in text:
        yield f"{path}: the user's text in double quotes: {text}"
    if "\\n" in text:
        yield f"{path}: a line end in one fact: {text}"


def main():
    root = pathlib.Path(sys.argv[1]) / "src"
    out, broken = [RULE], []
    files = [f for f in root.rglob("*") if f.suffix in (".cc", ".h") and f.relative_to(root).parts[0] != "runtime"]
    for file in sorted(files):
        path = file.relative_to(root).as_posix().removeprefix("core/").removeprefix("launcher/")  # as it is included
        texts = list(dict.fromkeys(texts_of(path, file.read_text(encoding="utf-8"))))
        if texts:
            out.append(f"\n== {path}\n" + "".join(f"{kind:<8} {text.strip(' ')}\n" for kind, text in texts))
        broken += [line for kind, text in texts for line in complaints_about(path, kind, text)]
    sys.stdout.write("".join(out))
    sys.stderr.write("".join(line + "\n" for line in broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
