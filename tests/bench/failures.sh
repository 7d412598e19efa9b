#!/usr/bin/env bash
# A compared program fails or hangs: the benchmark ends, names it and shows its last lines, and leaves nothing behind.
# usage: failures.sh BENCH_FOLDER [BENCH_STORE]
set -euo pipefail
bench=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$1"
  cat "$work/out" "$work/err"
  exit 1
}

# stand_in PATH: a program that does what standard input says, in sh.
stand_in() {
  { echo '#!/bin/sh'; cat; } > "$1"
  chmod +x "$1"
}

# run STATUS COMMAND...: ends so, well before this test is given up.
run() {
  local status=0 wanted=$1
  timeout -k 5 60 "${@:2}" > "$work/out" 2> "$work/err" || status=$?
  [ "$status" -eq "$wanted" ] || fail "'${*:2}' ended with $status, not with $wanted"
}

says() { grep -qF -- "$1" "$work/err" || fail "nobody says '$1'"; }
says_not() { ! grep -qF -- "$1" "$work/err" || fail "somebody says '$1'"; }

# A program that fails, one that hangs with a child, and one that is fine.
run 1 "$bench/within.py" -q 30 sh -c 'seq 20 >&2; echo "port 29500 is taken" >&2; exit 3'
says 'bench: error: sh ended with 3'
says '  | port 29500 is taken'
says_not '  | 11'
says_not 'Traceback'
run 1 "$bench/within.py" -q 0.5 sh -c "echo waiting >&2; sh -c 'echo \$\$ > $work/child; exec sleep 1000' & wait"
says 'sh did not end within 0.5 s'
says '  | waiting'
! grep -q '^State:.[^Z]' "/proc/$(cat "$work/child")/status" 2> /dev/null || fail "its child still runs"
run 0 "$bench/within.py" -q 30 sh -c 'echo figures; echo chatter >&2'
grep -qx figures "$work/out" || fail "its figures are lost"
says_not 'chatter'

# rendezvous.py, whose limit program cannot run here.
mkdir -p "$work/build/bench/limits"
export LRUN_BUILD=$work/build
stand_in "$work/build/bench/limits/limit_launch" <<< 'echo "no such machine" >&2; exit 7'
LRUN_PROGRAM=/bin/false run 1 "$bench/rendezvous.py" --try
says 'limit_launch'
says 'ended with 7'
says '  | no such machine'
says_not 'Traceback'

# runtime.py, whose peer's port is taken: a port of its own is asked for.
stand_in "$work/python" <<< 'echo "$@" >&2; echo "port 29500: EADDRINUSE" >&2; exit 1'
stand_in "$work/lrun" << 'E2'
for word; do file=$word; done
for rank in 0 1; do printf 'all_reduce 1\nstep 1\n' > "$file.$rank"; done
E2
LRUN_PROGRAM=$work/lrun LRUN_TORCH_PYTHON=$work/python run 1 "$bench/runtime.py" -k 1 first_step
says 'bench: error: torchrun, Python ended with 1'
says '  | port 29500: EADDRINUSE'
grep -qE 'torch.distributed.run .*--master-port [1-9][0-9]*' "$work/err" || fail "it is not given a free port"
says_not 'Traceback'

# store.sh: torch's server, which is given all files and does not start, and one program that does not end.
stand_in "$work/build/bench/limits/limit_store" <<< 'echo "server W=1 connect+barrier med=1 ms  barrier med=1 ms"'
stand_in "$work/build/bench/bench_store" <<< 'echo "connecting" >&2; exec sleep 1000'
# shellcheck disable=SC2016
stand_in "$work/python" <<< 'echo "limited to $(ulimit -Sn) files" >&2; exit 1'
few_files='ulimit -Sn 64; exec "$@"'
LRUN_TEST_PYTHON=$work/python run 1 bash -c "$few_files" _ "$bench/store.sh"
says "bench: error: torch's server of the store did not start"
says "  | limited to $(ulimit -Hn) files"
LRUN_BENCH_LIMIT=1 run 1 "$bench/store.sh"
says 'bench_store did not end within 1 s'
says '  | connecting'
# bench_store, whose server never accepts: its kernel takes the connections, and nobody answers.
if [ $# -gt 1 ]; then
  deaf='
import os, socket, subprocess, sys
server = socket.create_server(("127.0.0.1", 0), backlog=16)
sys.exit(subprocess.call([*sys.argv[1:], "-p", str(server.getsockname()[1]), "-i", str(os.getpid())]))'
  run 1 python3 -c "$deaf" "$2" -w 4 -k 1 -t 1
  says 'bench_store: recv: the server has not answered for 1 s:'
fi
echo "every failure is told with its reason"
