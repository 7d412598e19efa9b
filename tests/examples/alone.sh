#!/usr/bin/env bash
# Without a launcher the program is one rank, and it learns.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"

"$FASHION_MNIST" --limit 4000 --epochs 1 > "$work/out" 2> "$work/err" || fail "exit code $?" "$work/out" "$work/err"
[ ! -s "$work/err" ] || fail "something on stderr where no terminal is" "$work/err"
[ "$(head -n 1 "$work/out")" = "epoch  train loss  test accuracy  images/s" ] || fail "no table" "$work/out"
[ "$(wc -l < "$work/out")" -eq 3 ] || fail "not one line an epoch" "$work/out"
is_true "$(final_accuracy "$work/out") > 50" || fail "it did not learn: 10 % is a guess" "$work/out"

# On a terminal a bar runs beside the table, and is gone when the line of the epoch comes.
small_data 300 "$work/data"
script -qec "'$FASHION_MNIST' --data '$work/data' --epochs 1" /dev/null > "$work/terminal" < /dev/null ||
  fail "exit code $? on a terminal" "$work/terminal"
grep -q $'\repoch 1 \[.*\]' "$work/terminal" || fail "no bar on a terminal" "$work/terminal"
grep -q $'\r\033\[K *1  ' "$work/terminal" || fail "the bar was not wiped before the line" "$work/terminal"
