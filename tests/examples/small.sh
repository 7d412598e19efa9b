#!/usr/bin/env bash
# ddp_minimal and hello.sh, alone and under lrun, and plain_minimal, which knows nothing of lrun.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"

# The points lie on y = 3 x + 1.
learned() { sed -nE 's/^.*y = ([0-9.]+) x \+ ([0-9.]+)$/(\1-3)^2+(\2-1)^2 < 0.01/p' "$1"; }
"$PLAIN_MINIMAL" > "$work/plain" || fail "exit code $?" "$work/plain"
is_true "$(learned "$work/plain")" || fail "not the line" "$work/plain"
"$DDP_MINIMAL" > "$work/alone" || fail "exit code $?" "$work/alone"
is_true "$(learned "$work/alone")" || fail "not the line" "$work/alone"
"$LRUN" --devices 2 "$DDP_MINIMAL" > "$work/two" 2> "$work/err" || fail "exit code $?" "$work/two" "$work/err"
is_true "$(learned "$work/two")" || fail "not the line" "$work/two"
[ "$(wc -l < "$work/two")" -eq 1 ] || fail "not from rank 0 alone" "$work/two"

[ "$("$HELLO")" = "hello from rank 0 of 1, local rank 0" ] || fail "hello.sh alone"
"$LRUN" --devices 2 "$HELLO" > "$work/hello" 2> "$work/err" || fail "exit code $?" "$work/hello" "$work/err"
for rank in 0 1; do
  grep -q "hello from rank $rank of 2, local rank $rank\$" "$work/hello" || fail "no rank $rank" "$work/hello"
done
