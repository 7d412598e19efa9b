#!/usr/bin/env bash
# How fast lrun moves what workers print, beside the limit program, in turn: 8 writers of 32 MiB each, lines of 100 bytes.
# Needs LRUN_PERF (built limit programs), LRUN_PERF_SOURCE (their table scripts) and LRUN_PROGRAM; ./dev bench sets them.
set -euo pipefail
: "${LRUN_PROGRAM:?}" "${LRUN_PERF:?}" "${LRUN_PERF_SOURCE:?}"
work=$(mktemp -d -p /dev/shm)
export LRUN_STATE=$work/state
trap 'rm -rf "$work"' EXIT

for round in 1 2 3; do
  echo "logs, round $round: limit (goals: 0.8 x it at 4 KiB a write, 0.9 x at a line a write)"
  for chunk in 4096 100; do
    "$LRUN_PERF/log_floor" -w 8 -b 256 -c "$chunk" -m prefix -k 3 -o "$work/floor"
  done
  "$LRUN_PERF/log_floor" -w 8 -b 256 -m direct -k 3 -o "$work/floor"
  rm -f "$work"/floor*
  echo "logs, round $round: lrun, with and without log files, and with the workers' own files"
  python3 "$LRUN_PERF_SOURCE/log_table.py" -n 8 -m 32 -k 3 -o "$work/out" --writer "$LRUN_PERF/line_writer" \
    "prefix=$LRUN_PROGRAM -n {n} --log-dir /dev/null {w}" \
    "prefix+files=$LRUN_PROGRAM -n {n} {w}; rm -rf $LRUN_STATE" \
    "redirects=$LRUN_PROGRAM -n {n} -r 3 {w}; rm -rf $LRUN_STATE"
done
