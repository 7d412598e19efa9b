#!/usr/bin/env bash
# tests/golden/texts.golden has every text of lrun, so that a change of a text shows there.
# usage: texts.sh TREE
set -euo pipefail
command -v python3 > /dev/null || { echo "skipped: no python3"; exit 77; }
cd "$1"
golden=tests/golden/texts.golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
tests/golden/texts.py . > "$work/texts" || failed=1  # its complaints are on stderr
diff -u --label "$golden" --label "src/" "$golden" "$work/texts" || {
  echo
  echo "What lrun says has changed. Read the lines with '+' as a user would; when they are right:"
  echo "  tests/golden/texts.py . > $golden"
  failed=1
}
exit $failed
