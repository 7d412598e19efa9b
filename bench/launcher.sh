#!/usr/bin/env bash
# What lrun itself costs, beside the limit programs, in turn: starting, sleeping, noticing an end, starting again, and
# forwarding lines. Needs LRUN_PERF (built limit programs), LRUN_PERF_SOURCE (their table scripts) and LRUN_PROGRAM;
# ./dev bench sets them. The launch figures become bench/launch.tsv, and from it the table of bench/README.md and
# bench/launch.svg. LRUN_PEERS=hydra4,parallel,… measures these beside (names of peers.py; the absent are left out).
set -euo pipefail
: "${LRUN_PROGRAM:?}" "${LRUN_PERF:?}" "${LRUN_PERF_SOURCE:?}"
LRUN_STATE=$(mktemp -d)
export LRUN_STATE OMP_NUM_THREADS=1
trap 'rm -rf "$LRUN_STATE"' EXIT

export B=$LRUN_PERF
peers=()
[ -z "${LRUN_PEERS:-}" ] || peers=("@$LRUN_PEERS")
table() { python3 "$LRUN_PERF_SOURCE/$1_table.py" "${@:2}"; }

echo "launch: N x /bin/true, whole command, 15 rounds in turn (goals: at most 1.5 x the limit at 8, 1.25 x at 64)"
table launch -k 15 -n 1,2,8,32,64 \
  "limit=$LRUN_PERF/floor_launch {n} /bin/true" \
  "limit-pipes=$LRUN_PERF/floor_launch -P {n} /bin/true" \
  "lrun=$LRUN_PROGRAM -n {n} /bin/true" "${peers[@]}" | tee "$LRUN_STATE/launch.txt"

echo "launch, wide: 1024 x /bin/true with logs (goal: at most 1.2 x the limit)"
table launch -k 7 -n 1024 \
  "limit-pipes=$LRUN_PERF/floor_launch -P {n} /bin/true" \
  "lrun=$LRUN_PROGRAM -n {n} /bin/true" | tee "$LRUN_STATE/wide.txt"
"$(dirname "$0")/plot_launch.py" "$LRUN_STATE/launch.txt" "$LRUN_STATE/wide.txt"

echo "idle: sleeping workers, 10 s (goals: memory at most 4 MiB, no wake-up)"
table idle -n 8,256 -T 10 -k 1 \
  "limit=$LRUN_PERF/floor_launch {n} {c}" \
  "lrun=$LRUN_PROGRAM -n {n} {c}" "${peers[@]}"

echo "an end of 8 workers (goals: noticed in 0.5 ms, gone in 20 ms)"
"$(dirname "$0")/end_table.py" -n 8 -k 15 --how exit,segv "lrun=$LRUN_PROGRAM -n {n} {c}"

echo "a restart of 8 workers (goal: again running in 1.5 x the limit)"
table restart -n 8 -k 15 --how exit,segv \
  "lrun-restart=$LRUN_PROGRAM -n {n} --max-restarts 1 {c}" "${peers[@]}"

echo "logs: 8 writers, to a file (goals: 0.8 x the limit at 4 KiB writes, 0.9 x at a write a line, 0.95 x direct)"
for chunk in 4096 100; do
  for mode in prefix direct; do
    "$LRUN_PERF/log_floor" -w 8 -b 256 -l 100 -c "$chunk" -m "$mode" -k 7 -o "$LRUN_STATE/floor.out"
  done
done
table log -n 8 -m 32 -k 7 --writer "$LRUN_PERF/line_writer" \
  "lrun=$LRUN_PROGRAM -n {n} {w}" \
  "lrun-no-files=$LRUN_PROGRAM -n {n} --log-dir /dev/null {w}" \
  "lrun-redirects=$LRUN_PROGRAM -n {n} --redirects 3 {w}" "${peers[@]}"
