#!/usr/bin/env bash
# The man page is clean for mandoc. usage: man.sh PAGE; exit 77 (skipped) without mandoc.
set -euo pipefail
command -v mandoc > /dev/null || { echo "SKIPPED: mandoc is not installed"; exit 77; }
# Whether the pages it refers to are installed is the machine's affair.
findings=$(mandoc -T lint "$1" 2>&1 | grep -vE 'referenced manual not found|outdated mandoc.db' || true)
[ -z "$findings" ] || { printf '%s\n' "$findings"; exit 1; }
