"""Declarations of C++ files as universal-ctags sees them, for the checks of this folder."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CLASSES = {"class", "struct", "union"}


def sources(root, folders):
    """The C++ files below folders of `root`, relative to it."""
    return [path.relative_to(root) for folder in folders for path in sorted((root / folder).rglob("*"))
            if path.suffix in {".h", ".cc"}]


def declarations(root, files):
    """One dictionary a declaration: name, kind, path, line, end, scope (qualified), scopeKind, properties."""
    if shutil.which("ctags") is None or "Universal" not in subprocess.run(
            ["ctags", "--version"], capture_output=True, text=True).stdout:
        print("SKIPPED: universal-ctags is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as copy:
        for file in files:
            target = pathlib.Path(copy, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            # ctags 5.9 knows no nested inline namespaces.
            target.write_text(re.sub(r"^(namespace .*::)inline ", r"\1", (root / file).read_text(), flags=re.M))
        output = subprocess.run(
            ["ctags", "--language-force=C++", "--kinds-C++=+p", "--fields=+neKs",
             "--fields-C++=+{properties}{specialization}", "--output-format=json", "-f", "-", "-L", "-"],
            cwd=copy, input="\n".join(map(str, files)), text=True, capture_output=True, check=True).stdout
    found = [json.loads(line) for line in output.splitlines()]
    for tag in found:
        tag["properties"] = set(tag.get("properties", "").split(","))
        tag.setdefault("scope", "")
        tag.setdefault("scopeKind", "")
        tag.setdefault("end", tag["line"])
    return found


def qualified(tag):
    return f"{tag['scope']}::{tag['name']}".lstrip(":")
