#!/usr/bin/env python3
"""contracts.py HEADER: the header for Doxygen, with the contracts of its comments as lists.

A contract is a column of words with their explanations beside them; Doxygen would join them to one paragraph:

    /// Order    at first the reverse order of registration.     /// - <b>Order</b> at first the reverse order of
    ///          If gradients arrive in another order, …    →    ///   registration. If gradients arrive …
    /// Threads  the training thread.                            /// - <b>Threads</b> the training thread.

Lines stay where they are, so that warnings name the right ones."""
import pathlib
import re
import sys

COMMENT = re.compile(r"^(\s*///)( ?)(.*)$")
WORD = re.compile(r"([A-Z][A-Za-z]*(?: [a-z]+)*)(  +)(\S.*)$")
WORD_OF_COLUMN = re.compile(r"([A-Z][A-Za-z]*)( +)(\S.*)$")


def converted(lines):
    column = None  # of the explanations, within a contract
    for line in lines:
        comment = COMMENT.match(line)
        text = comment[3] if comment else ""
        found = WORD.match(text) or (column and WORD_OF_COLUMN.match(text))
        if found and (found[2] != " " or len(found[1]) + 1 >= column):
            column = len(found[1]) + len(found[2])
            yield f"{comment[1]} - <b>{found[1]}</b> {found[3]}"
        elif column and text.startswith(" "):
            yield f"{comment[1]}   {text.strip()}"
        else:
            column = None
            yield line


def main():
    print("\n".join(converted(pathlib.Path(sys.argv[1]).read_text().splitlines())))


if __name__ == "__main__":
    main()
