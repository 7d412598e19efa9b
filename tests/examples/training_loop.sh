#!/usr/bin/env bash
# training_loop learns, on one rank and on two of which one has a batch more, and a run that lrun restarted in the middle
# ends like one that was not.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
export LRUN_STATE=$work/state
unset LRUN_TEST_PYTHON LRUN_TEST_NOTEBOOK_PYTHON  # lrun warns of variables with its prefix that it does not know

# train RANKS STRATEGY FILE EPOCHS: its output is in $work/out
train() {
  "$LRUN" --devices "$1" --strategy "$2" --output raw "$TRAINING_LOOP" "$work/$3" "$4" > "$work/out" 2> "$work/err" ||
    fail "$1 devices, $2: exit code $?" "$work/out" "$work/err"
  grep -i warning "$work/err" && fail "$1 devices, $2: a warning" "$work/err"
  return 0
}

# The first attempt ends with an error after two epochs, the second trains the other two.
cat > "$work/in_two_attempts.sh" << 'END'
"$TRAINING_LOOP" "$1" $((2 + 2 * TORCHELASTIC_RESTART_COUNT))
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ]
END

for ranks in 1 2; do
  train $ranks ddp whole.$ranks 4
  [ "$(cut -d : -f 1 "$work/out")" = $'epoch 1\nepoch 2\nepoch 3\nepoch 4' ] || fail "other epochs" "$work/out"
  cp "$work/out" "$work/whole"
  is_true "$(sed -n 's/^epoch 4: error \(.*\)$/\1 < 0.05/p' "$work/whole")" || fail "not learned" "$work/whole"
  "$LRUN" --devices $ranks --max-restarts 1 --output raw sh "$work/in_two_attempts.sh" "$work/resumed.$ranks" \
    > "$work/out" 2> "$work/err" || fail "$ranks ranks, restarted: exit code $?" "$work/out" "$work/err"
  cmp -s "$work/whole" "$work/out" || fail "$ranks ranks: another training after the restart" "$work/whole" "$work/out"
done

# The same training under the other strategies; with the optimizer's state split it is the same to the last digit.
train 2 ddp_sharded sharded 4
cmp -s "$work/whole" "$work/out" || fail "another training under ddp_sharded" "$work/whole" "$work/out"
train 2 dp dp 4
is_true "$(sed -n 's/^epoch 4: error \(.*\)$/\1 < 0.05/p' "$work/out")" || fail "not learned under dp" "$work/out"
