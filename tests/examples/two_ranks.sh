#!/usr/bin/env bash
# Two ranks, started by hand without a launcher, learn what one rank learns from batches of twice the size.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
small_data 2000 "$work/data"
options=(--data "$work/data" --epochs 2 --seed 3)

"$FASHION_MNIST" "${options[@]}" --batch-size 40 > "$work/alone" || fail "exit code $?" "$work/alone"
two_ranks "$work/two" "$FASHION_MNIST" "${options[@]}" --batch-size 20
grep -q 'epoch\|accuracy' "$work/two.1" && fail "rank 1 talks, too" "$work/two.1"

for epoch in 1 2; do
  alone=$(loss_of $epoch "$work/alone")
  two=$(loss_of $epoch "$work/two.0")
  is_true "${alone:-9} - ${two:-0} < 0.005 && ${two:-9} - ${alone:-0} < 0.005" ||
    fail "epoch $epoch: loss $alone alone, $two on two ranks" "$work/alone" "$work/two.0"
done
is_true "($(final_accuracy "$work/alone") - $(final_accuracy "$work/two.0"))^2 < 1" ||
  fail "test accuracies differ by more than 1 %" "$work/alone" "$work/two.0"
