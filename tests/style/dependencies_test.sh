#!/usr/bin/env bash
# dependencies.py finds each kind of break, and only breaks. usage: dependencies_test.sh DEPENDENCIES_PY
set -euo pipefail
dependencies=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# file PATH LINE: a file of the tree
file() {
  mkdir -p "$work/$(dirname "$1")"
  echo "$2" > "$work/$1"
}

# expect STATUS [WORDS]: the verdict on the tree, and words of what is found
expect() {
  local status=0
  "$dependencies" "$work" > "$work/out" || status=$?
  { [ $status -eq "$1" ] && { [ $# -lt 2 ] || grep -qF "$2" "$work/out"; }; } ||
    { echo "expected status $1 and '${2:-}', got $status:"; cat "$work/out"; exit 1; }
}

# begin: a tree that is in order
begin() {
  rm -rf "${work:?}"/*
  mkdir -p "$work/examples"
  # shellcheck disable=SC2016 # the quotes of the document
  file docs/dependencies.md '| fmt | fmt | `fmt/` | `src/core` `src/runtime` | Formats. |'
  file src/core/base/a.cc '#include <fmt/format.h>'
  file src/runtime/data/a.h '#include <fmt/format.h>'
  file src/core/base/b.cc '#include <sys/wait.h>'
  file cmake/D.cmake 'find_package(fmt REQUIRED)'
}

begin
expect 0
begin; file src/launcher/plan/a.cc '#include <fmt/format.h>'
expect 1 'src/launcher/plan/a.cc: <fmt/format.h> is not in a place'
begin; file src/core/base/c.cc '#include <hwloc.h>'
expect 1 '<hwloc.h> has no row'
begin; file src/core/base/c.cc '#include <zmq/zmq.hpp>'
expect 1 '<zmq/zmq.hpp> has no row'
begin; file src/runtime/data/a.h '#include <string>'
expect 1 'src/runtime does not include fmt'
begin; file cmake/D.cmake 'find_package(ZeroMQ REQUIRED)'
expect 1 'package ZeroMQ has no row'
