#!/usr/bin/env bash
# A training that was killed and resumed ends with the very state of one that was not.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
small_data 2000 "$work/data"
options=(--data "$work/data" --epochs 3 --seed 7)

"$FASHION_MNIST" "${options[@]}" --checkpoint "$work/whole" > "$work/whole.out" || fail "exit code $?" "$work/whole.out"

# Killed as soon as the first epoch is in the table: its checkpoint is then on the disk.
mkfifo "$work/pipe"
"$FASHION_MNIST" "${options[@]}" --checkpoint "$work/resumed" --resume > "$work/pipe" &
killed=$!
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$work/killed.out"
  if [[ $line =~ ^\ *1\  ]]; then kill -KILL "$killed"; fi
done < "$work/pipe"
code=0
wait "$killed" || code=$?
[ "$code" -eq 137 ] || fail "it ended with $code before it could be killed" "$work/killed.out"
grep -q '^resumed' "$work/killed.out" && fail "resumed from nothing" "$work/killed.out"

"$FASHION_MNIST" "${options[@]}" --checkpoint "$work/resumed" --resume > "$work/resumed.out" ||
  fail "exit code $?" "$work/resumed.out"
"$SAME_CHECKPOINT" "$work/whole" "$work/resumed" || fail "another state than without the stop" "$work/whole.out" "$work/resumed.out"
[[ "$(head -n 1 "$work/resumed.out")" =~ ^resumed\ after\ epoch\ [123]$ ]] || fail "not resumed" "$work/resumed.out"
[ "$(tail -n 1 "$work/whole.out")" = "$(tail -n 1 "$work/resumed.out")" ] ||
  fail "another accuracy than without the stop" "$work/whole.out" "$work/resumed.out"

# Certainly stopped after an epoch: later epochs were not trained, earlier ones are not repeated.
"$FASHION_MNIST" "${options[@]}" --epochs 2 --checkpoint "$work/third" > "$work/out" || fail "exit code $?" "$work/out"
"$FASHION_MNIST" "${options[@]}" --checkpoint "$work/third" --resume > "$work/out" || fail "exit code $?" "$work/out"
[ "$(head -n 1 "$work/out")" = "resumed after epoch 2" ] || fail "not resumed" "$work/out"
[ -z "$(loss_of 2 "$work/out")" ] || fail "an epoch was done twice" "$work/out"
"$SAME_CHECKPOINT" "$work/whole" "$work/third" || fail "another state than without the stop" "$work/whole.out" "$work/out"

# The environment names another checkpoint, on both ranks of a launched run.
LRUN_RESUME="$work/whole" "$LRUN" --devices 2 --output raw "$FASHION_MNIST" "${options[@]}" > "$work/out" 2> "$work/err" ||
  fail "exit code $?" "$work/err"
grep -qx "resumed after epoch 3" "$work/out" || fail "LRUN_RESUME was not followed" "$work/out" "$work/err"
