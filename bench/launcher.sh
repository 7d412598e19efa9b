#!/usr/bin/env bash
# What lrun itself costs, beside the limit programs, in turn: starting, sleeping, noticing an end, starting again, and
# forwarding lines. Needs LRUN_BUILD (a build folder with lrun_limits) and LRUN_PROGRAM; ./dev bench sets them. The launch
# figures become bench/launch.tsv, and from it the table of bench/README.md and bench/launch.svg.
#
#   LRUN_PEERS=hydra4,parallel,…  measures these beside; what is not installed is left out
#   launcher.sh --try             does everything once and small, and writes nothing
set -euo pipefail
: "${LRUN_PROGRAM:?}" "${LRUN_BUILD:?}"
here=$(dirname "$0")
limits=$LRUN_BUILD/bench/limits
LRUN_STATE=$(mktemp -d)
export LRUN_STATE OMP_NUM_THREADS=1
trap 'rm -rf "$LRUN_STATE"' EXIT

declare -A peer_commands=(
  [hydra4]='mpiexec.hydra -np {n} {c}'
  [hydra4-tag]='mpiexec.hydra -prepend-rank -np {n} {c}'
  [parallel]="sh -c 'seq {n} | parallel --will-cite -j {n} -N0 {c}'"
  [parallel-tag]="sh -c 'seq {n} | parallel --will-cite -j {n} -N0 --line-buffer --tag {c}'"
)
peers=()
IFS=, read -ra peer_names <<< "${LRUN_PEERS:-}"
for name in "${peer_names[@]}"; do
  [ -n "${peer_commands[$name]:-}" ] || { echo "launcher.sh: no peer '$name': ${!peer_commands[*]}" >&2; exit 2; }
  program=mpiexec.hydra
  [[ $name != parallel* ]] || program=parallel
  if command -v $program > /dev/null; then
    peers+=("$name=${peer_commands[$name]}")
  else
    echo "$name is left out: there is no $program"
  fi
done

few=1,2,8,32,64 many=1024 sleepers=8,256 rounds=15 wide_rounds=7 seconds=10 mebibytes=32
if [ "${1:-}" = --try ]; then
  few=1,2 many=8 sleepers=2 rounds=1 wide_rounds=1 seconds=1 mebibytes=4
fi

echo "launch: N x /bin/true, whole command, $rounds rounds in turn (goals: at most 1.5 x the limit at 8, 1.25 x at 64)"
"$here/launch_table.py" -k $rounds -n $few \
  "limit=$limits/limit_launch {n} {c}" \
  "limit-pipes=$limits/limit_launch -P {n} {c}" \
  "lrun=$LRUN_PROGRAM -n {n} {c}" "${peers[@]}" | tee "$LRUN_STATE/launch.txt"

echo "launch, wide: $many x /bin/true with logs (goal: at most 1.2 x the limit)"
"$here/launch_table.py" -k $wide_rounds -n $many \
  "limit-pipes=$limits/limit_launch -P {n} {c}" \
  "lrun=$LRUN_PROGRAM -n {n} {c}" | tee "$LRUN_STATE/wide.txt"
[ "${1:-}" = --try ] || "$here/plot_launch.py" "$LRUN_STATE/launch.txt" "$LRUN_STATE/wide.txt"

echo "idle: sleeping workers, $seconds s (goals: memory at most 4 MiB, no wake-up)"
"$here/idle_table.py" -n $sleepers -t $seconds \
  "limit=$limits/limit_launch {n} {c}" \
  "lrun=$LRUN_PROGRAM -n {n} {c}" "${peers[@]}"

echo "an end of 8 workers (goals: noticed in 0.5 ms, gone in 20 ms)"
"$here/end_table.py" -k $rounds "lrun=$LRUN_PROGRAM -n {n} {c}"

echo "a restart of 8 workers (goal: again running in 1.5 x the limit)"
"$here/end_table.py" -k $rounds \
  "limit=$limits/limit_launch -r {n} {c}" \
  "lrun=$LRUN_PROGRAM -n {n} --max-restarts 1 {c}"

echo "logs: 8 writers, to a file (goals: 0.8 x the limit at 4 KiB writes, 0.9 x at a write a line, 0.95 x direct)"
for chunk in 4096 100; do
  for mode in prefix direct; do
    "$limits/limit_logs" -w 8 -b $((8 * mebibytes)) -c $chunk -m $mode -k $wide_rounds -o "$LRUN_STATE/limit.out"
  done
done
"$here/log_table.py" -m $mebibytes -k $wide_rounds \
  "lrun=$LRUN_PROGRAM -n {n} {c}" \
  "lrun-no-files=$LRUN_PROGRAM -n {n} --log-dir /dev/null {c}" \
  "lrun-redirects=$LRUN_PROGRAM -n {n} --redirects 3 {c}" "${peers[@]}"
