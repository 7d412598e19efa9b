#!/usr/bin/env bash
# Who may include whom. usage: layers.sh [TREE]; prints file, line and the rule for every include that breaks one.
#
#   rooms       the folders of a library: each includes itself and the rooms to its left in the orders below
#   lrun_core   src/core includes nothing else of ours, and no Boost in its headers
#   launcher    src/launcher includes lrun_core besides
#   runtime     src/runtime includes lrun_core and the public headers besides
#   LibTorch    and the public headers appear in the runtime only
set -euo pipefail
cd "${1:-.}"
core="base process verdict stop"
launcher="cluster plan store store/tls rendezvous remote logs supervise inspect report cli run multihost commands"
collectives="collectives/common collectives/bootstrap collectives/shm collectives/gloo collectives/hierarchical collectives"
runtime="$collectives cuda data ddp dp session checkpoint launch"

find src -type f \( -name '*.h' -o -name '*.cc' \) -exec awk -v core="$core" -v launcher="$launcher" -v runtime="$runtime" '
  function floors(library, order,   names, i, n) {
    n = split(order, names, " "); for (i = 1; i <= n; i++) { floor_of[library "/" names[i]] = i; owner[names[i]] = library }
  }
  BEGIN { floors("core", core); floors("launcher", launcher); floors("runtime", runtime) }
  function broken(rule) { printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, $0; bad = 1 }
  FNR == 1 {
    room = FILENAME; sub(/^src\//, "", room)
    outside = room !~ /\//                             # src/main.cc is above all rooms
    sub(/\/[^\/]*$/, "", room); library = room; sub(/\/.*$/, "", library)
    if (!outside && !(room in floor_of)) { printf "%s: room %s has no place in the order\n", FILENAME, room; bad = 1 }
  }
  /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    line = $0; sub(/^[^<"]*[<"]/, "", line); sub(/[>"].*$/, "", line)
    if (line !~ /\//) next
    to = line; sub(/\/[^\/]*$/, "", to); first = to; sub(/\/.*$/, "", first)
    if (library != "runtime" && (first == "torch" || first == "ATen" || first == "c10" || first == "lrun"))
      broken("only the runtime may include LibTorch or its own public headers")
    if (library == "core" && FILENAME ~ /\.h$/ && first == "boost") broken("no Boost in headers of lrun_core")
    if (outside) next
    if (first == "runtime") { its = "runtime"; sub(/^runtime\//, "", to) }
    else if (to in owner && owner[to] != "runtime") its = owner[to]
    else next                                          # no room of ours
    if (its != library) { if (its != "core") broken(library " must not include " its) }
    else if (!(its "/" to in floor_of)) broken("room " to " has no place in the order")
    else if (floor_of[its "/" to] > floor_of[room]) broken(room " must not include " to)
  }
  END { exit bad }' {} +
