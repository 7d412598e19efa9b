#!/usr/bin/env bash
# The samples of the ranks are disjoint and together the whole, in every epoch, and each epoch has another order.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"

two_ranks "$work/log" "$LIST_SAMPLES" 100 "$work/rank-"
"$LRUN" --devices 3 "$LIST_SAMPLES" 102 "$work/of-three-" > "$work/out" 2>&1 || fail "exit code $?" "$work/out"

# whole SIZE FILES...: in both epochs, every sample once
whole() {
  local size=$1 epoch
  shift
  for epoch in 0 1; do
    sed -n "s/^$epoch //p" "$@" | sort -n > "$work/seen"
    seq 0 $((size - 1)) | cmp - "$work/seen" || fail "epoch $epoch: not every sample once" "$@"
  done
}
whole 100 "$work"/rank-[01]
whole 102 "$work"/of-three-[012]
[ "$(sed -n 's/^0 //p' "$work/rank-0")" != "$(sed -n 's/^1 //p' "$work/rank-0")" ] || fail "the order is the same" "$work/rank-0"
