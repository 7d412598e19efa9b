#!/usr/bin/env bash
# The store with 1 to 1024 clients: ours beside the limit program and torch's TCPStore, in turn. Needs LRUN_PERF (built
# limit programs) and LRUN_BENCH (the folder of bench_store); ./dev bench sets them. LRUN_TEST_PYTHON with torch and
# $LRUN_PERF/store_torch add torch's; LRUN_ROUNDS says how many rounds. The figures become bench/store.tsv, and from it
# the table of bench/README.md.
set -euo pipefail
: "${LRUN_PERF:?}" "${LRUN_BENCH:?}"
work=$(mktemp -d)
torch_pid=
cleanup() {
  [ -z "$torch_pid" ] || kill "$torch_pid" 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
worlds=1,64,256,1024
keys=1000000

# torch's server with libuv, in a process of its own; sets torch_pid and torch_port. It ends with this script.
start_torch_server() {
  mkfifo "$work/ready"
  "$LRUN_TEST_PYTHON" -W ignore -c '
import signal, sys, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=True)
open(sys.argv[1], "w").write(f"{store.port}\n")
signal.pause()' "$work/ready" 2> "$work/torch.err" &
  torch_pid=$!
  read -r torch_port < "$work/ready"
}

[ -z "${LRUN_TEST_PYTHON:-}" ] || start_torch_server
for ((round = 1; round <= ${LRUN_ROUNDS:-5}; ++round)); do
  [ "$round" -gt 1 ] || memory=(-m "$keys")
  "$LRUN_PERF/store_limit" -w "$worlds" | sed 's/^/limit /'
  "$LRUN_BENCH/bench_store" -w "$worlds" "${memory[@]}" | sed 's/^/lrun /'
  if [ -n "$torch_pid" ]; then
    "$LRUN_BENCH/bench_store" -w "$worlds" -p "$torch_port" -i "$torch_pid" "${memory[@]}" | sed 's/^/torch /'
  fi
  if [ -x "$LRUN_PERF/store_torch" ]; then
    "$LRUN_PERF/store_torch" -w "$worlds" 2> "$work/clients.err" | sed 's/^/clients /'
  fi
  memory=()
done | tee "$work/figures"
"$(dirname "$0")/store_table.py" "$work/figures"
