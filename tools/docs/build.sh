#!/usr/bin/env bash
# The documents as one folder of HTML: build.sh OUT. Guide, design notes, README and ARCHITECTURE.md with all that they
# link to, lrun(1), and the API reference. Fails on a link that leads nowhere, on a warning of Doxygen, and on a picture
# that cannot be drawn. Needs cmark-gfm, mandoc and doxygen. LRUN_DOCS_PYTHON is a Python with the packages of
# requirements.txt, which draws Mermaid's pictures; without it they are shown as text.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$root"
rm -rf "${out:?}"/*
tools/docs/pages.py . "$out"

export LRUN_DOCS=$out LRUN_VERSION
LRUN_VERSION=$(sed -n 's/^project(lrun VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
doxygen -l "$out/layout.xml"
sed -i 's|<navindex>|&<tab type="user" url="../index.html" title="lrun"/>|' "$out/layout.xml"
doxygen tools/docs/Doxyfile
rm "$out/layout.xml"

tools/docs/check_links.py "$out"
