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

expect 0 launcher/plan/a.cc '"cluster/b.h"'
expect 0 launcher/cli/a.cc '"base/b.h"'
expect 0 launcher/multihost/a.cc '"run/b.h"'
expect 0 launcher/commands/a.cc '"cli/b.h"'
expect 0 runtime/session/a.cc '"verdict/b.h"'
expect 0 runtime/ddp/a.h '<ATen/ATen.h>'
expect 0 runtime/collectives/gloo/a.cc '"runtime/collectives/common/b.h"'
expect 0 runtime/collectives/registry.cc '"runtime/collectives/shm/b.h"'
expect 0 main.cc '"cli/b.h"'
expect 0 core/wire/a.cc '"base/b.h"'
expect 0 launcher/store/a.cc '"wire/b.h"'
expect 0 runtime/collectives/bootstrap/a.cc '"wire/b.h"'
expect 0 core/base/event_loop.cc '<boost/asio.hpp>'
expect 1 launcher/cluster/a.cc '"plan/b.h"'
expect 1 launcher/logs/a.cc '"supervise/b.h"'
expect 1 launcher/cli/a.cc '"run/b.h"'
expect 1 launcher/run/a.cc '"multihost/b.h"'
expect 1 launcher/run/a.cc '"commands/b.h"'
expect 1 core/process/a.h '"plan/b.h"'
expect 1 core/process/a.h '"stop/b.h"'
expect 1 core/wire/a.cc '"process/b.h"'
expect 1 core/verdict/a.cc '"logs/b.h"'
expect 1 core/verdict/a.h '<boost/asio.hpp>'
expect 1 runtime/session/a.cc '"plan/b.h"'
expect 1 runtime/dp/a.cc '"runtime/session/b.h"'
expect 1 runtime/collectives/common/a.cc '"runtime/collectives/bootstrap/b.h"'
expect 1 runtime/collectives/shm/a.cc '"runtime/collectives/gloo/b.h"'
expect 1 runtime/collectives/gloo/a.cc '"runtime/collectives/registry.h"'
expect 1 runtime/collectives/a.cc '"runtime/session/b.h"'
expect 1 launcher/report/a.cc '"runtime/session/b.h"'
expect 1 launcher/supervise/a.cc '<torch/torch.h>'
expect 1 main.cc '<c10/core/Device.h>'
expect 1 launcher/store/a.cc '<lrun/collectives.h>'
expect 1 launcher/misc/a.cc '"base/b.h"'
expect 1 runtime/a.cc '"base/b.h"'
