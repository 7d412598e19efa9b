#!/usr/bin/env python3
"""draw_mermaid.py FOLDER: each NAME.mmd of a folder as NAME.svg. Fails with the name of one that Mermaid cannot read.

Drawing one takes seconds: pictures are kept beside this Python, by the digest of all that they are made from."""
import hashlib
import os
import pathlib
import sys

import mermaidx

# Labels as text of SVG: as HTML inside it they would not be shown in an <img>.
CONFIG = {"htmlLabels": False, "flowchart": {"htmlLabels": False}, "fontFamily": "sans-serif"}
KEPT = pathlib.Path(sys.prefix, "pictures")


def picture_of(text):
    kept = KEPT / f"{hashlib.sha256(f'{CONFIG} {text}'.encode()).hexdigest()}.svg"
    if not kept.exists():
        KEPT.mkdir(exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(mermaidx.render(text, theme="neutral", config=CONFIG).svg())
        fresh.rename(kept)
    return kept.read_text()


def main():
    for source in sorted(pathlib.Path(sys.argv[1]).glob("*.mmd")):
        try:
            source.with_suffix(".svg").write_text(picture_of(source.read_text()))
        except Exception as error:  # what Mermaid throws is not documented
            sys.exit(f"{source.stem}: a picture that Mermaid does not understand: {error}")
        source.unlink()


if __name__ == "__main__":
    main()
