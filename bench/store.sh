#!/usr/bin/env bash
# The store with 1 to 1024 clients: ours beside the limit program and torch's TCPStore, in turn. Needs LRUN_PERF (built
# limit programs) and LRUN_BENCH (the folder of bench_store); ./dev bench sets them. LRUN_TEST_PYTHON with torch and
# $LRUN_PERF/store_torch add torch's; LRUN_ROUNDS says how many rounds. The figures become bench/store.tsv, and from it
# the table of bench/README.md.
set -euo pipefail
: "${LRUN_PERF:?}" "${LRUN_BENCH:?}"
here=$(dirname "$0")
work=$(mktemp -d)
torch_pid=
cleanup() {
  [ -z "$torch_pid" ] || kill "$torch_pid" 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
worlds=1,64,256,1024
keys=1000000
start_limit=60
limit=${LRUN_BENCH_LIMIT:-300}  # seconds of one program in one round, where it takes some
ulimit -Sn "$(ulimit -Hn)"      # torch's server accepts nobody for whom it has no file

# torch's server with libuv, in a process of its own; sets torch_pid and torch_port. It ends with this script.
start_torch_server() {
  mkfifo "$work/ready"
  exec 3<> "$work/ready"  # not to wait for a writer that never comes
  "$LRUN_TEST_PYTHON" -W ignore -c '
import signal, sys, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=True)
open(sys.argv[1], "w").write(f"{store.port}\n")
signal.pause()' "$work/ready" 2> "$work/torch.err" 3>&- &
  torch_pid=$!
  for ((second = 0; second < start_limit; ++second)); do
    ! read -r -t 1 -u 3 torch_port || return 0
    kill -0 "$torch_pid" 2> /dev/null || break
  done
  fail_with_server "torch's server of the store did not start"
}

# fail_with_server WHAT: with what the server complained of.
fail_with_server() {
  printf 'bench: error: %s\n' "$1" >&2
  tail -n 10 "$work/torch.err" | sed 's/^/  | /' >&2
  exit 1
}

# measure NAME COMMAND...: its figures, with the name in front of each line.
measure() {
  "$here/within.py" -q "$limit" "${@:2}" | sed "s/^/$1 /"
}

[ -z "${LRUN_TEST_PYTHON:-}" ] || start_torch_server
for ((round = 1; round <= ${LRUN_ROUNDS:-5}; ++round)); do
  [ "$round" -gt 1 ] || memory=(-m "$keys")
  measure limit "$LRUN_PERF/store_limit" -w "$worlds"
  measure lrun "$LRUN_BENCH/bench_store" -w "$worlds" "${memory[@]}"
  if [ -n "$torch_pid" ]; then
    measure torch "$LRUN_BENCH/bench_store" -w "$worlds" -p "$torch_port" -i "$torch_pid" "${memory[@]}" ||
      fail_with_server "torch's server of the store was the one that was asked"
  fi
  if [ -x "$LRUN_PERF/store_torch" ]; then
    measure clients "$LRUN_PERF/store_torch" -w "$worlds"
  fi
  memory=()
done | tee "$work/figures"
"$here/store_table.py" "$work/figures"
