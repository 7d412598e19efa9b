#!/usr/bin/env bash
# What lrun itself costs, beside the limit program, in turn: starting N x /bin/true, and sleeping with N workers.
# Needs LRUN_PERF (built limit programs), LRUN_PERF_SOURCE (their table scripts) and LRUN_PROGRAM; ./dev bench sets them.
set -euo pipefail
: "${LRUN_PROGRAM:?}" "${LRUN_PERF:?}" "${LRUN_PERF_SOURCE:?}"
LRUN_STATE=$(mktemp -d)
export LRUN_STATE OMP_NUM_THREADS=1
trap 'rm -rf "$LRUN_STATE"' EXIT

echo "launch: N x /bin/true, whole command, 15 rounds in turn (goal at 8: at most 1.5 x the limit)"
python3 "$LRUN_PERF_SOURCE/launch_table.py" -k 15 -n 1,2,8,32 \
  "limit=$LRUN_PERF/floor_launch {n} /bin/true" \
  "limit-pipes=$LRUN_PERF/floor_launch -P {n} /bin/true" \
  "lrun=$LRUN_PROGRAM -n {n} /bin/true"

echo "idle: sleeping workers, 10 s (goals: memory at most 6 MiB, no wake-up)"
python3 "$LRUN_PERF_SOURCE/idle_table.py" -n 8,256 -T 10 -k 1 \
  "limit=$LRUN_PERF/floor_launch {n} {c}" \
  "lrun=$LRUN_PROGRAM -n {n} {c}"
