#!/usr/bin/env bash
# Installing a build of which some targets alone were built, as after ./dev demo.
# usage: partial_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
work=$1/partial source=$2
rm -rf "$work"
mkdir -p "$work"
fail() { printf 'FAILED: %s\n' "$1"; cat "$work/log"; exit 1; }

cmake -S "$source" -B "$work/build" -G Ninja -DLRUN_BUILD_RUNTIME=OFF -DLRUN_BUILD_TESTS=OFF > "$work/log" 2>&1 ||
  fail "it does not configure"
! cmake --install "$work/build" --prefix "$work/prefix" > "$work/log" 2>&1 || fail "nothing was built, and is installed"
[ "$(grep -c '^CMake Error' "$work/log")" -eq 1 ] || fail "not one error"
tr -s ' \n' ' ' < "$work/log" |
  grep -qF "not built: $work/build/lrun; 'cmake --build $work/build --target product' builds all that is installed" ||
  fail "it does not say what to build"
[ ! -e "$work/prefix" ] || fail "something was installed before"

cp /bin/true "$work/build/lrun"
cmake --install "$work/build" --prefix "$work/prefix" > "$work/log" 2>&1 || fail "it does not install"
[ -x "$work/prefix/bin/lrun" ] || fail "lrun is not installed"
for file in LICENSE NOTICE; do
  cmp "$source/$file" "$work/prefix/share/doc/lrun/$file" > "$work/log" 2>&1 || fail "$file is not installed"
done
