#!/usr/bin/env bash
# No file of ours is longer than 400 lines: one concept each. usage: sizes.sh TREE
set -euo pipefail
cd "$1"
find . \( -path ./build -o -path ./.git -o -path ./.cache \) -prune -o -type f \
  \( -name '*.cc' -o -name '*.h' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name '*.in' -o -name CMakeLists.txt \
  -o -path ./dev -o -path ./.ci/run -o -path './completions/*' \) -print0 |
  xargs -0 wc -l | awk '$2 != "total" && $1 > 400 { print $2 ": " $1 " lines, the limit is 400"; bad = 1 } END { exit bad }'
