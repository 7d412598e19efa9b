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

# Python reads the header, and the content if it has torch.
python=${LRUN_TEST_PYTHON:-python3}
"$python" "$READ_CHECKPOINT" "$work/whole" "$work/content" > "$work/out" 2> "$work/err" || fail "exit code $?" "$work/err"
size=$(($(stat -c %s "$work/whole") - 64))
[ "$(cat "$work/out")" = "whole, step 0, part 0 of 1, $size bytes" ] || fail "another header" "$work/out"
tail -c +65 "$work/whole" | cmp -s - "$work/content" || fail "another content"
if "$python" -c 'import torch' > /dev/null 2>&1; then
  "$python" -c 'import sys, torch; torch.jit.load(sys.argv[1])' "$work/content" 2> "$work/err" || fail "torch does not read it" "$work/err"
fi
head -c 1000 "$work/whole" > "$work/short"
"$python" "$READ_CHECKPOINT" "$work/short" > "$work/out" 2>&1 && fail "read a part of a file" "$work/out"
grep -q "it has 936 of $size bytes" "$work/out" || fail "another reason" "$work/out"
