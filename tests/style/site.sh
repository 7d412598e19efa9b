#!/usr/bin/env bash
# The documents become pages whose links all lead somewhere. usage: site.sh ROOT; exit 77 (skipped) where a program that
# makes them is missing.
set -euo pipefail
cd "$1"
for program in cmark-gfm mandoc doxygen; do
  command -v $program > /dev/null || { echo "SKIPPED: $program is not installed; ./dev docs installs it"; exit 77; }
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
python=${LRUN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lrun}/docs/bin/python
[ ! -x "$python" ] || export LRUN_DOCS_PYTHON=$python
tools/docs/build.sh "$out/site"

# Mistakes of a page are seen: a place, a file and a place of a file that are not there, and a picture from elsewhere.
fail() { echo "FAILED: $1"; exit 1; }
for broken in 'a href="#nowhere"' 'a href="nowhere.html"' 'a href="index.html#nowhere"' 'img src="http://a.org/x"'; do
  echo "<$broken>" > "$out/site/broken.html"
  ! tools/docs/check_links.py "$out/site" > /dev/null || fail "<$broken> is not seen"
done

# And in a document. Without a Python that draws, a picture is its text.
mkdir "$out/tree" "$out/pages"
unset LRUN_DOCS_PYTHON
cat > "$out/tree/README.md" << 'DOCUMENT'
# One

```mermaid
flowchart LR
  a --> b
```
[here](#one)
DOCUMENT
tools/docs/pages.py "$out/tree" "$out/pages"
grep -q 'a --&gt; b' "$out/pages/index.html" || fail "the picture's text is not shown"
grep -q '<h1 id="one">' "$out/pages/index.html" || fail "the heading has no place"
echo '[there](nowhere.md)' > "$out/tree/README.md"
message=$(tools/docs/pages.py "$out/tree" "$out/pages" 2>&1) && fail "a link to nowhere.md is not seen"
[[ $message == *"README.md: the link 'nowhere.md' leads nowhere"* ]] || fail "it says '$message'"
