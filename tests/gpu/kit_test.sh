#!/usr/bin/env bash
# kit_test.sh BUILD SOURCE LIBTORCH: the kit, made of this build, runs where there is no GPU: everything loads, the cases
# of CPUs pass, and the others say that they want a GPU.
set -euo pipefail
build=$1 source=$2 libtorch=$3
if [ -e /dev/nvidia0 ]; then
  echo "there is a GPU here: ./dev gpu runs the kit on it"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"
# shellcheck source=tools/dev/gpu.sh
source tools/dev/gpu.sh
make_gpu_kit "$build" "$work/kit" > "$work/made" || { cat "$work/made"; exit 1; }
export LD_LIBRARY_PATH=$libtorch/lib  # of a Python without torch; the kit finds another's by itself
cd "$work"
"${LRUN_TEST_PYTHON:-python3}" kit/run-gpu | tee table
rows=$(grep -c '"result": "skipped"' gpu-results/results.jsonl)
[ "$rows" -ge 10 ] || { echo "only $rows cases want a GPU"; exit 1; }
if grep '"result": "failed"' gpu-results/results.jsonl; then exit 1; fi
if kit/run-gpu nonsense 2> error; then echo "run-gpu takes a part that it does not have"; exit 1; fi
grep -q "there is no part 'nonsense'" error
