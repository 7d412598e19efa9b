#!/usr/bin/env bash
# The notebook: a training that Cling compiles in a Jupyter kernel runs on ranks that are forked from there, a rank that
# fails is an exception, and the kernel lives on.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
python=${LRUN_TEST_NOTEBOOK_PYTHON:-}
[ -n "$python" ] || skip 'LRUN_TEST_NOTEBOOK_PYTHON names no Python with cppyy and Jupyter: ./dev notebook makes one'
"$python" -c 'import cppyy, ipykernel, nbconvert' 2> "$work/err" || skip "$python: $(tail -n 1 "$work/err")"

export IPYTHONDIR=$work/ipython
"$python" -m nbconvert --execute --ExecutePreprocessor.timeout=240 --to markdown --stdout "$NOTEBOOK" \
  > "$work/out" 2> "$work/err" || fail "exit code $?" "$work/err"
grep -q '^    y = 3.000 x + 1.000$' "$work/out" || fail 'not trained' "$work/out" "$work/err"
grep -q '^    loss below 1e-6: True$' "$work/out" || fail "not the function's result" "$work/out"
grep -q '^    four ranks, loss below 1e-6: True$' "$work/out" || fail 'not trained again' "$work/out" "$work/err"
for ranks in 2 3 4; do
  grep -qh "lrun: ddp over shm, $ranks ranks on 1 node" "$work/out" "$work/err" || fail "not $ranks ranks" "$work/out" "$work/err"
done
grep -q '^    rank 1 (pid .*: std::runtime_error: the data of this rank is not there' "$work/out" ||
  fail 'the failed rank is not named' "$work/out"
