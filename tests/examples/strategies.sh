#!/usr/bin/env bash
# The loss over the whole batch, the real training and user-defined strategies: the parts that a strategy may change,
# and those that it may not.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
unset "${!LRUN_@}"  # lrun warns of those that it does not know; here it is to warn of nothing

# losses WHEN FILE: over the whole batch, then within the parts
losses() { sed -nE "s/^(.*[] ])?$1: loss ([0-9.]+) over the whole batch, ([0-9.]+) within [0-9]+ parts\$/\2 \3/p" "$2"; }
close() { is_true "$1 - $2 < $3 && $2 - $1 < $3"; }

"$CONTRASTIVE" > "$work/alone" || fail "exit code $?" "$work/alone"
for strategy in dp ddp2; do
  "$LRUN" --devices 4 --strategy "$strategy" "$CONTRASTIVE" > "$work/$strategy" 2> "$work/err" ||
    fail "$strategy: exit code $?" "$work/$strategy" "$work/err"
  for when in untrained trained; do
    read -r alone _ <<< "$(losses "$when" "$work/alone")"
    read -r whole parts <<< "$(losses "$when" "$work/$strategy")"
    close "${whole:-9}" "${alone:-0}" 0.0005 || fail "$strategy: another loss than one device" "$work/alone" "$work/$strategy"
    is_true "$parts < 0.8 * $whole" || fail "$strategy: a quarter of the negatives should be easier" "$work/$strategy"
  done
done

# Under ddp each rank has a batch of its own, and the samples of all ranks are negatives: ln(2) more for twice as many.
"$LRUN" --devices 2 "$CONTRASTIVE" > "$work/ddp" 2> "$work/err" || fail "ddp: exit code $?" "$work/ddp" "$work/err"
read -r alone _ <<< "$(losses untrained "$work/alone")"
read -r whole _ <<< "$(losses untrained "$work/ddp")"
is_true "$whole > $alone + 0.4" || fail "ddp: not the negatives of both ranks" "$work/alone" "$work/ddp"
read -r trained _ <<< "$(losses trained "$work/ddp")"
is_true "$trained < $whole - 1" || fail "ddp: it did not learn" "$work/ddp"

# Two nodes by hand, one process each, with two devices: each has half of the samples.
port=$("$FREE_PORT")
pids=()
for node in 0 1; do
  RANK=$node LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 GROUP_RANK=$node GROUP_WORLD_SIZE=2 \
    MASTER_ADDR=127.0.0.1 MASTER_PORT=$port LRUN_STRATEGY=ddp2 LRUN_DEVICES=cpu,cpu \
    "$CONTRASTIVE" > "$work/node.$node" 2>&1 &
  pids+=($!)
done
for node in 0 1; do wait "${pids[$node]}" || fail "node $node ended with $?" "$work/node.0" "$work/node.1"; done
grep -q '^lrun: ddp2 over shm, 2 ranks on 2 nodes, devices cpu, cpu, seed 0$' "$work/node.0" || fail "no banner" "$work/node.0"
grep -q '^lrun: effective batch size 128 (64 samples x 2 ranks, at most 32 on each of 2 devices)' "$work/node.0" ||
  fail "not the batch of two nodes" "$work/node.0"
read -r untrained _ <<< "$(losses untrained "$work/node.0")"
read -r trained _ <<< "$(losses trained "$work/node.0")"
is_true "${trained:-9} < ${untrained:-0} - 1" || fail "it did not learn" "$work/node.0"

# The real training knows nothing of its strategy: dp gives what one device gives, the batch being the same.
small_data 1000 "$work/data"
options=(--data "$work/data" --epochs 1 --seed 5)
"$FASHION_MNIST" "${options[@]}" > "$work/alone" || fail "exit code $?" "$work/alone"
for strategy in dp ddp2; do
  "$LRUN" --devices 2 --strategy "$strategy" "$FASHION_MNIST" "${options[@]}" > "$work/out" 2> "$work/err" ||
    fail "$strategy: exit code $?" "$work/out" "$work/err"
  ! grep 'warning' "$work/err" || fail "$strategy: a warning" "$work/err"
  close "$(loss_of 1 "$work/out")" "$(loss_of 1 "$work/alone")" 0.002 || fail "$strategy: another loss" "$work/alone" "$work/out"
done

# Strategies and connections of one's own.
"$LRUN" --devices 2 "$OWN_STRATEGY" > "$work/out" 2>&1 || fail "exit code $?" "$work/out"
grep -q 'local_sgd: y = 3\.00. x + 1\.00., ranks differ by 0$' "$work/out" || fail "not the line" "$work/out"
"$OWN_CONNECTION" 3 > "$work/out" 2>&1 || fail "exit code $?" "$work/out"
grep -q '^y = 3\.000 x + 1\.000$' "$work/out" || fail "not the line" "$work/out"

# dp on two nodes is refused before anything starts, and the hint names ddp2.
"$LRUN" --dry-run --num_nodes 2 --devices 2 --strategy dp "$CONTRASTIVE" > "$work/out" 2>&1 && fail "accepted" "$work/out"
grep -q 'ddp2' "$work/out" || fail "no word of ddp2" "$work/out"
