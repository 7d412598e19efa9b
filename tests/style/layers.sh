#!/usr/bin/env bash
# Who may include whom. usage: layers.sh [TREE]; prints file, line and the rule for every include that breaks one.
#
#   launcher    a module includes itself and the modules to its left in the order below
#   lrun_core   base, process, verdict include only each other (in that order): runtime and launcher share them
#   runtime     includes base, process, verdict, runtime and the public headers, nothing else of ours
#   LibTorch    and the public headers appear in the runtime only
#   Boost       appears in no header of lrun_core
set -euo pipefail
cd "${1:-.}"
order="base cluster plan store rendezvous process remote logs verdict supervise inspect report cli"
core="base process verdict"

find src -type f \( -name '*.h' -o -name '*.cc' \) -exec awk -v order="$order" -v core="$core" '
  BEGIN {
    n = split(order, names, " "); for (i = 1; i <= n; i++) layer[names[i]] = i
    n = split(core, names, " "); for (i = 1; i <= n; i++) in_core[names[i]] = 1
  }
  function broken(rule) { printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, $0; bad = 1 }
  /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    split(FILENAME, path, "/"); from = path[2]
    line = $0; sub(/^[^<"]*[<"]/, "", line); sub(/[>"].*$/, "", line); split(line, parts, "/"); to = parts[1]
    if (from != "runtime" && (to == "torch" || to == "ATen" || to == "c10" || to == "lrun"))
      broken("only the runtime may include LibTorch or its own public headers")
    if (in_core[from] && FILENAME ~ /\.h$/ && to == "boost") broken("no Boost in headers of lrun_core")
    if (from ~ /\.(cc|h)$/) next                      # src/main.cc is above all layers
    if (!(to in layer) && to != "runtime") next       # not a module of ours
    if (line !~ /\//) next
    if (from == "runtime") { if (to != "runtime" && !in_core[to]) broken("runtime must not include " to) }
    else if (!(from in layer)) broken("module " from " has no place in the order")
    else if (to == "runtime" || layer[to] > layer[from]) broken(from " must not include " to)
    else if (in_core[from] && !in_core[to]) broken(from " is in lrun_core and must not include " to)
  }
  END { exit bad }' {} +
