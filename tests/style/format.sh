#!/usr/bin/env bash
# Every source is laid out as .clang-format says. Versions of clang-format differ in details, so another one than CI's
# proves nothing.
# Usage: format.sh ROOT
set -euo pipefail
cd "$1"

version=14
program=$(command -v "clang-format-$version" || command -v clang-format || true)
if [ -z "$program" ] || ! "$program" --version | grep -q "version $version\."; then
  echo "skipped: clang-format $version is not installed"
  exit 77
fi
find include src tests bench examples \( -name '*.cc' -o -name '*.h' \) -print0 | xargs -0 "$program" --dry-run -Werror
