#!/usr/bin/env bash
# With the optimizer's state split over the ranks a training ends in the same bits, also when it is resumed; and it is
# resumed by another number of ranks.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
small_data 1200 "$work/data"
export LRUN_STATE=$work/state

# train RANKS STRATEGY EPOCHS CHECKPOINT [ARGS...]: its output is in $work/out
train() {
  local ranks=$1 strategy=$2 epochs=$3 checkpoint=$4
  shift 4
  "$LRUN" --devices "$ranks" --strategy "$strategy" "$FASHION_MNIST" --data "$work/data" --seed 7 --epochs "$epochs" \
    --checkpoint "$work/$checkpoint" "$@" > "$work/out" 2>&1 || fail "$strategy: exit code $?" "$work/out"
}

train 2 ddp 3 whole
train 2 ddp_sharded 2 split
grep -q 'lrun: ddp_sharded over shm, 2 ranks' "$work/out" || fail "not sharded" "$work/out"
cp "$work/split" "$work/other"
train 2 ddp_sharded 3 split --resume
grep -q 'resumed after epoch 2' "$work/out" || fail "not resumed" "$work/out"
"$SAME_CHECKPOINT" "$work/whole" "$work/split" || fail "another state than without splitting" "$work/out"

train 3 ddp_sharded 3 other --resume
grep -q 'resumed after epoch 2' "$work/out" || fail "not resumed by three ranks" "$work/out"
final_accuracy "$work/out" > /dev/null
