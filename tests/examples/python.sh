#!/usr/bin/env bash
# The Python program gives the same result under lrun and under torchrun.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
python=${LRUN_TEST_PYTHON:-python3}
"$python" -c 'import torch.nn.parallel' > /dev/null 2>&1 ||
  skip "$python has no torch (LRUN_TEST_PYTHON names another)"
export GLOO_SOCKET_IFNAME=lo PYTHONWARNINGS=ignore
command=("$TRAIN_PY" --limit 1000 --epochs 1)

"$LRUN" --devices 2 "$python" "${command[@]}" > "$work/lrun" 2> "$work/err" || fail "exit code $?" "$work/lrun" "$work/err"
"$python" -m torch.distributed.run --nproc-per-node 2 --master-addr 127.0.0.1 --master-port "$("$FREE_PORT")" \
  "${command[@]}" > "$work/torchrun" 2> "$work/err" || fail "exit code $?" "$work/torchrun" "$work/err"
[ "$(final_accuracy "$work/lrun")" = "$(final_accuracy "$work/torchrun")" ] ||
  fail "another result than under torchrun" "$work/lrun" "$work/torchrun"

code=0
"$python" "$TRAIN_PY" --data "$work/none" > "$work/out" 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "missing data: exit code $code" "$work/out"
[ "$(grep -c '^train.py: error: no file' "$work/out")" -eq 1 ] || fail "missing data: not one line" "$work/out"
