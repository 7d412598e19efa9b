#!/usr/bin/env bash
# A program that calls lrun::launch() does the same alone, below an lrun that gives it the devices of the node, and below one
# that has started the ranks.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
export LRUN_STATE=$work/state
line='y = 3 x + 1, and no loss'

# expect LINES RANKS COMMAND...: that many programs print the line, after as many ranks have met.
expect() {
  local lines=$1 ranks=$2
  shift 2
  "$@" > "$work/out" 2> "$work/err" || fail "$*: exit code $?" "$work/out" "$work/err"
  [ "$(grep -cF "$line" "$work/out")" = "$lines" ] || fail "$*: not $lines lines '$line'" "$work/out" "$work/err"
  [ "$ranks" = 1 ] || grep -q "lrun: ddp over shm, $ranks ranks on 1 node" "$work/err" ||
    fail "$*: not $ranks ranks" "$work/err"
}

expect 1 2 "$LAUNCH_MINIMAL" 2
for strategy in ddp_spawn ddp_fork ddp_notebook; do
  expect 1 3 "$LRUN" --devices 3 --strategy "$strategy" "$LAUNCH_MINIMAL"
  grep -q "note: strategy '$strategy' .* the 3 ranks .* lrun::launch()" "$work/err" ||
    fail "$strategy does not explain itself" "$work/err"
done
expect 2 2 "$LRUN" --devices 2 "$LAUNCH_MINIMAL"

# A program without launch() gets a warning that nothing trains.
"$LRUN" --devices 2 --strategy ddp_spawn "$DDP_MINIMAL" > "$work/out" 2> "$work/err" && fail "one rank trained alone"
grep -q "strategy 'ddp_spawn' is for programs that start their ranks by lrun::launch()" "$work/err" ||
  fail "it is not told why" "$work/err"
