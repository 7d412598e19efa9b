#!/usr/bin/env bash
# classes.py finds each kind of break, and only breaks. usage: classes_test.sh CLASSES_PY
set -euo pipefail
classes=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init -q "$work"
mkdir -p "$work/src/core/base" "$work/include"

# expect STATUS WORDS: the verdict on the tree, and words of what is found
expect() {
  local status=0
  "$classes" "$work" > "$work/out" || status=$?
  [ $status -ne 77 ] || { cat "$work/out"; exit 77; }
  { [ $status -eq "$1" ] && { [ -z "$2" ] || grep -qF "$2" "$work/out"; }; } ||
    { echo "expected status $1 and '$2', got $status:"; cat "$work/out"; exit 1; }
  rm -f "$work"/src/core/base/*
}

# repeat COUNT LINE: the line with 1, 2, 3 … in the place of '#'
repeat() {
  local i
  for ((i = 1; i <= $1; ++i)); do echo "${2//#/$i}"; done
}

# a_class HEAD METHODS MEMBERS MORE: a class in a header
a_class() {
  { printf 'namespace lrun::inline core {\n%s {\n public:\n' "$1"
    repeat "$2" '  [[nodiscard]] const std::string& f#(int a) const;'
    printf '%s\n' "$4"
    repeat "$3" '  std::function<void(int)> m#_ = 0;'
    printf '};\n}\n'
  } > "$work/src/core/base/a.h"
}

a_class 'class A final : public B' 30 25 'A(); ~A(); A(const A&) = delete; bool operator==(const A&) const = default; void f1();
  static constexpr int kOne = 1; struct Inner { void g(); int h; };'
expect 0 ''
a_class 'class A' 31 0 ''
expect 1 'src/core/base/a.h:2: A has 31 methods'
a_class 'class A' 1 26 ''
expect 1 'A has 26 data members'
a_class 'struct A' 0 60 'bool operator==(const A&) const = default;'
expect 0 ''
a_class 'struct A' 1 26 ''
expect 1 'A has 26 data members'

a_class 'class A' 3 0 ''
printf 'namespace lrun::inline core {\nvoid A::f1(int a) {}\n}\n' > "$work/src/core/base/a.cc"
printf 'namespace lrun::inline core {\nvoid A::f2(int a) {}\n}\n' > "$work/src/core/base/a_more.cc"
expect 1 'A is spread over src/core/base/a.cc, src/core/base/a_more.cc'

{ echo 'int f() {'; repeat 58 '  g(#);'; echo '}'; } > "$work/src/core/base/a.cc"
expect 0 ''
{ echo 'int f() {'; repeat 59 '  g(#);'; echo '}'; } > "$work/src/core/base/a.cc"
expect 1 'f() has 61 lines'

repeat 600 '// #' > "$work/src/core/base/a.cc"
expect 0 ''
repeat 601 '// #' > "$work/src/core/base/a.sh"
expect 1 'src/core/base/a.sh: 601 lines'
