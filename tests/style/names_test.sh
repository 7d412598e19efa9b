#!/usr/bin/env bash
# names.py finds each kind of break, and only breaks. usage: names_test.sh NAMES_PY
set -euo pipefail
names=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# file PATH LINES: a file of the tree
file() {
  mkdir -p "$work/$(dirname "$1")"
  printf '%s\n' "$2" > "$work/$1"
}

# expect STATUS WORDS: the verdict on the tree, and words of what is found
expect() {
  local status=0
  "$names" "$work" > "$work/out" || status=$?
  [ $status -ne 77 ] || { cat "$work/out"; exit 77; }
  { [ $status -eq "$1" ] && { [ -z "$2" ] || grep -qF "$2" "$work/out"; }; } ||
    { echo "expected status $1 and '$2', got $status:"; cat "$work/out"; exit 1; }
  rm -rf "$work/src" "$work/include"
}

# Two programs may have a type of one name; nested and unnamed ones, forward declarations and specialisations are no types
# of the program.
file src/launcher/store/a.h 'namespace lrun::launcher { class A { enum class Kind {}; }; class B; }'
file src/launcher/store/a.cc 'namespace lrun::launcher { namespace { struct C {}; } using Json = int; }'
file src/launcher/logs/b.cc 'namespace lrun::launcher { namespace { struct C {}; } using Json = int; }'
file src/launcher/logs/b.h 'namespace lrun::launcher { class B { enum class Kind {}; }; class A; }'
file src/runtime/data/a.h 'namespace lrun::detail { class A {}; }'
file include/lrun/d.h 'namespace lrun { template <class T> struct D {}; template <> struct D<int> {}; }'
expect 0 ''

file src/core/base/a.h 'namespace lrun::inline core { enum class A {}; }'
file src/launcher/store/a.h 'namespace lrun::launcher { struct A {}; }'
expect 1 'lrun has another type A'
file src/core/base/a.h 'namespace lrun::inline core { enum class A {}; }'
file include/lrun/a.h 'namespace lrun { using A = int; }'
expect 1 'liblrun has another type A'

# Local functions of one folder; those of two folders, and overloads of one file, are no breaks.
file src/launcher/store/a.cc 'namespace lrun::launcher { namespace { int f(int) { return 1; } } }'
file src/launcher/store/b.cc 'namespace lrun::launcher { namespace { int f(char) { return 1; } } }'
expect 1 'b.cc:1: src/launcher/store/a.cc has another function f'
file src/launcher/store/a.cc 'namespace lrun::launcher { static int f(int) { return 1; } }'
file src/launcher/store/b.cc 'namespace lrun::launcher { int f(char) { return 1; } }'
expect 1 'a.cc:1: src/launcher/store/b.cc has another function f'
file src/launcher/store/a.cc 'namespace lrun::launcher { namespace { int f(int) { return 1; } int f(char) { return 1; } } }'
file src/launcher/logs/b.cc 'namespace lrun::launcher { namespace { int f(char) { return 1; } } int A::f() {} }'
expect 0 ''

file src/core/base/a.cc 'namespace lrun {'
expect 1 "src/core/base/a.cc:1: opens namespace 'lrun'"
file src/launcher/cli/a.h 'namespace lrun::core {'
expect 1 "opens namespace 'lrun::core'"
file src/launcher/cli/a.h 'namespace lrun::launcher::flag_values {'
expect 0 ''
file src/runtime/data/a.h 'namespace lrun {'
expect 1 "opens namespace 'lrun'"
file src/runtime/data/a.cc 'namespace lrun {'
expect 0 ''
file include/lrun/a.h 'namespace lrun::launcher {'
expect 1 "opens namespace 'lrun::launcher'"
