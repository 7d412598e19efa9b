#!/usr/bin/env bash
# In an interactive interpreter of C++ ranks are forked, without being asked to; what cannot work there is refused.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
repl=${LRUN_TEST_CLANG_REPL:-}
for name in clang-repl clang-repl-{22,21,20,19,18,17,16,15,14}; do
  [ -n "$repl" ] || repl=$(command -v "$name" || true)
done
[ -n "$repl" ] || skip 'there is no clang-repl (LRUN_TEST_CLANG_REPL names one)'

OMP_NUM_THREADS=1 LD_PRELOAD=$INTERACTIVE_LINE "$repl" < "$INTERACTIVE_SESSION" > "$work/out" 2> "$work/err" ||
  fail "exit code $?" "$work/out" "$work/err"
[ "$(grep -cF 'y = 3 x + 1' "$work/out")" = 2 ] || fail 'not trained twice' "$work/out" "$work/err"
for ranks in 2 3; do
  grep -q "lrun: ddp over shm, $ranks ranks on 1 node" "$work/err" || fail "not $ranks ranks" "$work/err"
done
grep -q "strategy 'ddp' is started from outside the program, .*: use 'ddp_notebook'" "$work/out" || fail 'ddp' "$work/out"
grep -q "strategy 'ddp_spawn' executes the program again, .*: use 'ddp_notebook'" "$work/out" || fail 'spawn' "$work/out"
