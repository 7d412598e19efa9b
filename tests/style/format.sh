#!/usr/bin/env bash
# Every source is laid out as .clang-format says; a difference is shown. Versions of clang-format differ in details, so
# another one than CI's proves nothing. usage: format.sh ROOT [FILE...]; without FILE all sources; exit 77 (skipped)
# without clang-format 14.
set -euo pipefail
cd "$1"
shift

version=14
program=$(command -v "clang-format-$version" || command -v clang-format || true)
if [ -z "$program" ] || ! "$program" --version | grep -q "version $version\."; then
  echo "skipped: clang-format $version is not installed"
  exit 77
fi
# --dry-run complains of each 'inline' in a namespace, which it would replace with itself: formatted copies tell.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
files=("$@")
[ $# -gt 0 ] || mapfile -t files < <(find include src tests bench examples \( -name '*.cc' -o -name '*.h' \) | sort)
cp --parents .clang-format "${files[@]}" "$copy"
(cd "$copy" && "$program" -i "${files[@]}")
status=0
for file in "${files[@]}"; do diff -u "$file" "$copy/$file" || status=1; done
exit $status
