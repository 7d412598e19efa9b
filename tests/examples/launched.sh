#!/usr/bin/env bash
# The same binary under lrun (and under torchrun where there is one) ends with the very state of two ranks by hand.
# usage: launched.sh lrun|torchrun
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
small_data 1000 "$work/data"
options=(--data "$work/data" --epochs 1 --seed 5)

if [ "$1" = lrun ]; then
  launcher=("$LRUN" --devices 2)
else
  python=${LRUN_TEST_PYTHON:-python3}
  "$python" -c 'import torch' > /dev/null 2>&1 || skip "$python has no torch (LRUN_TEST_PYTHON names another)"
  launcher=("$python" -W ignore -m torch.distributed.run --no-python --nproc-per-node 2 --master-addr 127.0.0.1
    --master-port "$("$FREE_PORT")")
fi
two_ranks "$work/two" "$FASHION_MNIST" "${options[@]}" --checkpoint "$work/by-hand"
"${launcher[@]}" "$FASHION_MNIST" "${options[@]}" --checkpoint "$work/launched" > "$work/out" 2> "$work/err" ||
  fail "exit code $?" "$work/out" "$work/err"
final_accuracy "$work/out" > /dev/null
"$SAME_CHECKPOINT" "$work/by-hand" "$work/launched" || fail "another state than by hand" "$work/two.0" "$work/out"
