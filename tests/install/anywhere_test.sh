#!/bin/sh
# lrun on a system that has a shell, a few tools and /proc: its version, a plan, a run with a failing worker,
# and nothing left behind by a launcher that is killed. usage: anywhere_test.sh LRUN VERSION
set -eu
lrun=$1 version=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$1"; cat "$work"/out 2> /dev/null || true; exit 1; }
export HOME="$work"

[ "$("$lrun" --version | head -n 1)" = "lrun $version" ] || fail "it does not say its version"
"$lrun" --devices 2 --dry-run /bin/true > "$work/out" 2>&1 || fail "it makes no plan"
grep -q 'world size *2' "$work/out" || fail "the plan has no world size"

code=0
# shellcheck disable=SC2016 # the worker's shell expands it
"$lrun" --devices 4 /bin/sh -c '[ "$RANK" != 2 ] || { echo "out of luck" >&2; exit 7; }; exec sleep 1000' > "$work/out" 2>&1 || code=$?
[ "$code" -eq 7 ] || fail "it ends with $code, and the worker with 7"
grep -q 'rank 2 exited with code 7' "$work/out" || fail "it does not say which rank failed and why"

# within_seconds N COMMAND...: whether COMMAND comes true in that time.
within_seconds() {
  tries=$(($1 * 20))
  shift
  while ! "$@"; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.05
  done
}

both_started() { [ "$(cat "$work"/worker.* 2> /dev/null | wc -l)" -eq 2 ]; }
both_gone() {
  for worker in $workers; do ! kill -0 "$worker" 2> /dev/null || return 1; done
}
# shellcheck disable=SC2016
"$lrun" --devices 2 /bin/sh -c 'echo $$ > "$HOME/worker.$RANK"; exec sleep 1000' > "$work/out" 2>&1 &
launcher=$!
within_seconds 10 both_started || fail "its workers do not start"
workers=$(cat "$work"/worker.*)
kill -9 $launcher
within_seconds 10 both_gone || fail "a worker outlives the launcher that was killed"
echo "lrun works here"
