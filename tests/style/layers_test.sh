#!/usr/bin/env bash
# layers.sh finds each kind of break, and only breaks. usage: layers_test.sh LAYERS_SH
set -euo pipefail
layers=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect STATUS FILE INCLUDE: the verdict on a tree that has only this one line
expect() {
  rm -rf "$work/src"
  mkdir -p "$work/src/$(dirname "$2")"
  printf '#include %s\n' "$3" > "$work/src/$2"
  local status=0
  "$layers" "$work" > "$work/out" || status=1
  [ $status -eq "$1" ] || { echo "src/$2 with '#include $3': expected status $1, got $status"; cat "$work/out"; exit 1; }
}

expect 0 plan/a.cc '"cluster/b.h"'
expect 0 cli/a.cc '"base/b.h"'
expect 0 runtime/a.cc '"verdict/b.h"'
expect 0 runtime/a.h '<ATen/ATen.h>'
expect 0 main.cc '"cli/b.h"'
expect 0 base/event_loop.cc '<boost/asio.hpp>'
expect 1 cluster/a.cc '"plan/b.h"'
expect 1 process/a.h '"plan/b.h"'
expect 1 verdict/a.cc '"logs/b.h"'
expect 1 verdict/a.h '<boost/asio.hpp>'
expect 1 runtime/a.cc '"plan/b.h"'
expect 1 report/a.cc '"runtime/b.h"'
expect 1 supervise/a.cc '<torch/torch.h>'
expect 1 main.cc '<c10/core/Device.h>'
expect 1 store/a.cc '<lrun/collectives.h>'
expect 1 misc/a.cc '"base/b.h"'
