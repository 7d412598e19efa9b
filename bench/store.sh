#!/usr/bin/env bash
# The store with 1 to 1024 clients: ours beside the limit program and torch's TCPStore, in turn. Needs LRUN_BUILD, a build
# folder with lrun_bench; ./dev bench sets it. Torch's server is added by LRUN_TEST_PYTHON, a Python with torch, and its
# clients by a build with LibTorch. LRUN_ROUNDS is the number of rounds. The figures become bench/store.tsv, and from it
# the table of bench/README.md. store.sh --try makes one round with few clients, and writes nothing.
set -euo pipefail
: "${LRUN_BUILD:?}"
here=$(dirname "$0")
bench=$LRUN_BUILD/bench
work=$(mktemp -d)
torch_pid=
cleanup() {
  [ -z "$torch_pid" ] || kill "$torch_pid" 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
worlds=1,64,256,1024
keys=1000000
if [ "${1:-}" = --try ]; then
  worlds=1,4 keys=1000 LRUN_ROUNDS=1
fi
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
  measure limit "$bench/limits/limit_store" "$worlds"
  measure lrun "$bench/bench_store" -w "$worlds" "${memory[@]}"
  if [ -n "$torch_pid" ]; then
    measure torch "$bench/bench_store" -w "$worlds" -p "$torch_port" -i "$torch_pid" "${memory[@]}" ||
      fail_with_server "torch's server of the store was the one that was asked"
  fi
  if [ -x "$bench/limits/torch_store" ]; then
    measure clients "$bench/limits/torch_store" "$worlds"
  fi
  memory=()
done | tee "$work/figures"
[ "${1:-}" = --try ] || "$here/store_table.py" "$work/figures"
