#!/usr/bin/env bash
# Every shell script is clean for shellcheck. usage: shell.sh ROOT; exit 77 (skipped) without shellcheck.
set -euo pipefail
cd "$1"
command -v shellcheck > /dev/null || { echo "SKIPPED: shellcheck is not installed"; exit 77; }
# tools/dev is read through dev, which sources it.
find bench examples tests tools -name '*.sh' -not -path 'tools/dev/*' -print0 |
  xargs -0 shellcheck -x dev .ci/run completions/lrun.bash tests/lab/lab
