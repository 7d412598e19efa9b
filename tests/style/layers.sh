#!/usr/bin/env bash
# Includes follow the order of the modules. usage: layers.sh [TREE]; prints file, line and the rule for every include
# that breaks one.
#
#   modules       the folders of a library: each includes itself and the modules to its left in the orders below
#   lrun_core   src/core includes nothing else of ours, and no Boost in its headers
#   launcher    src/launcher includes lrun_core besides
#   runtime     src/runtime includes lrun_core and the public headers besides
#   LibTorch    and the public headers appear in the runtime only
set -euo pipefail
cd "${1:-.}"
core="base wire process verdict stop"
launcher="cluster plan store rendezvous remote logs supervise inspect report copies cli run multihost commands"
parts="collectives/common collectives/bootstrap collectives/shm collectives/gloo collectives/hierarchical"
runtime="$parts collectives cuda data ddp dp session checkpoint launch"

find src -type f \( -name '*.h' -o -name '*.cc' \) -exec awk \
  -v core="$core" -v launcher="$launcher" -v runtime="$runtime" '
  function read_order(library, order,   names, i, n) {
    n = split(order, names, " ")
    for (i = 1; i <= n; i++) { layer_of[library "/" names[i]] = i; owner[names[i]] = library }
  }
  BEGIN { read_order("core", core); read_order("launcher", launcher); read_order("runtime", runtime) }
  function broken(rule) { printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, $0; bad = 1 }
  FNR == 1 {
    module = FILENAME; sub(/^src\//, "", module)
    outside = module !~ /\//                           # src/main.cc is above all modules
    sub(/\/[^\/]*$/, "", module); library = module; sub(/\/.*$/, "", library)
    if (!outside && !(module in layer_of)) {
      printf "%s: module %s has no place in the order\n", FILENAME, module; bad = 1
    }
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
    else next                                          # no module of ours
    if (its != library) { if (its != "core") broken(library " must not include " its) }
    else if (!(its "/" to in layer_of)) broken("module " to " has no place in the order")
    else if (layer_of[its "/" to] > layer_of[module]) broken(module " must not include " to)
  }
  END { exit bad }' {} +
