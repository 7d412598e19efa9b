#!/usr/bin/env bash
# `lrun -H …` on hosts with a real sshd: starting, failing, stopping, and that nothing is left however it ends.
# usage: ssh_hosts.sh LRUN FAKE-NVML-FOLDER
set -euo pipefail
lrun=$1 driver=$2
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab hosts
open_lab
allow_silence
bring_up hosts 3
fail() { echo "FAILED: $1"; tail -n 30 "$out/out" "$out/err"; exit 1; }

# run WANTED-STATUS LRUN-ARGUMENTS, on h0
run() {
  local wanted=$1 status=0
  shift
  timeout 120 "$lab" exec h0 "$lrun" "$@" > "$out/out" 2> "$out/err" || status=$?
  [ "$status" -eq "$wanted" ] || fail "'lrun $*' ended with $status, not $wanted"
}

# shellcheck disable=SC2016 # expanded by the workers
show='echo "$RANK/$WORLD_SIZE node $GROUP_RANK at $MASTER_ADDR on $(hostname) in $PWD: $MINE"'
export MINE=carried
run 0 -H h1:1,h2:2,h3:1 --env MINE --output raw sh -c "$show"
node=(h1 h2 h2 h3)
for rank in 0 1 2 3; do
  grep -Eq "^$rank/4 node [0-2] at 198\.18\.0\.11 on ${node[rank]} in $PWD: " "$out/out" ||
    fail "rank $rank is not where it belongs"
done

# This host takes part without ssh, and as the place to meet.
# shellcheck disable=SC2016
run 0 -H h0:1,h1:1 --output raw sh -c 'echo "$RANK at $MASTER_ADDR on $(hostname)"'
grep -qx "0 at 198.18.0.10 on h0" "$out/out" || fail "rank 0 is not here"
grep -qx "1 at 198.18.0.10 on h1" "$out/out" || fail "rank 1 is not on h1"

# lrun comes along, to hosts of unequal sizes and for some of their GPUs, and goes again. The driver is a fake one.
# shellcheck disable=SC2016
copy='echo "$RANK/$WORLD_SIZE on $(hostname) GPUs $CUDA_VISIBLE_DEVICES by $(readlink /proc/$PPID/exe)"'
# copied RANKS [HOST GPUS]...: a pair for each rank; all were started by copies, and none is left.
copied() {
  local ranks=$1 rank=0
  shift
  while [ $# -gt 0 ]; do
    grep -Eqx "$rank/$ranks on $1 GPUs $2 by /.*/tmp\.[^/]*/lrun" "$out/out" || fail "rank $rank is not on $1, by a copy"
    rank=$((rank + 1))
    shift 2
  done
  no_copies
}
no_copies() {
  for _ in $(seq 600); do
    left=$(find "$LAB"/own/* -maxdepth 1 -name 'tmp.*' || true)
    [ -n "$left" ] || return 0
    sleep 0.1
  done
  fail "copies are left: $left"
}
run 0 --copy -H h1:1,h2:2 --output raw sh -c "$copy"
copied 3 h1 "" h2 "" h2 ""
run 125 --copy -H h1:1,h2:1 --chdir /nowhere true
no_copies
# Over a network that takes longer for it than a host has to answer; without its debugger's tables, which make it six times
# as large.
strip -o "$out/lrun" "$lrun"
kbit=$(($(stat -c %s "$out/lrun") * 8 / 1000 / 40))
"$lab" hosts rate h2 "${kbit}kbit" > /dev/null
start=$SECONDS
lrun_here=$lrun lrun=$out/lrun
run 0 --copy -H h1:1,h2:1 --output raw sh -c "$copy"
lrun=$lrun_here
copied 2 h1 "" h2 ""
[ $((SECONDS - start)) -ge 31 ] || fail "the copy took no longer than a host may be silent"
"$lab" hosts heal h2 > /dev/null
printf 'h1 slots=4\nh2 slots=4\n' > "$out/hosts"
# shellcheck disable=SC2016 # expanded by what lrun starts
printf '#!/bin/bash\nexec ssh "${@:1:$#-1}" "export LD_LIBRARY_PATH=%s FAKE_NVML_GPUS=4; ${!#}"\n' "$driver" > "$out/ssh"
chmod +x "$out/ssh"
run 0 --copy --ssh "$out/ssh" --hostfile "$out/hosts" --include h1:0,2@h2:1 --output raw sh -c "$copy"
copied 3 h1 0,2 h1 0,2 h2 1

# A failure is told once, and its code is the run's.
# shellcheck disable=SC2016
run 7 -H h1:2,h2:2 --grace 20s sh -c 'if [ $RANK = 3 ]; then echo boom >&2; exit 7; fi; exec sleep 1000'
[ "$(grep -c 'lrun: error: rank 3 exited with code 7$' "$out/err")" -eq 1 ] || fail "rank 3 is not named once"
[ "$(grep -c boom "$out/err")" -eq 1 ] || fail "its last words are not told once"

# Hosts that cannot be used: nobody of that name, nobody listening, no such user.
"$lab" hosts kill h3 > /dev/null
run 125 -H h1:1,h3:1,h9:1 touch "$out/started"
grep -q "2 of 3 hosts cannot be used; nothing was started" "$out/err" || fail "there is no table"
grep -Eq '^  \| h3  .*(refused|closed|reset)' "$out/err" || fail "h3 has no reason"
grep -Eiq '^  \| h9  .*resolve' "$out/err" || fail "h9 has no reason"
[ ! -e "$out/started" ] || fail "something was started"
"$lab" hosts on h3 > /dev/null

# printed TEXT COUNT: so many lines of the output of the run in the background have it.
printed() { [ "$(grep -c "$1" "$out/out")" -ge "$2" ]; }
# begin COMMAND...: lrun with these words in the background, its process id in `head`.
begin() {
  rm -f "$out/out" "$out/err"  # what the last one printed
  "$lab" exec h0 "$lrun" "$@" > "$out/out" 2> "$out/err" &
  head=$!
}
# A host without power is named within ten seconds, and nothing is left on the others.
unset LRUN_RDZV_CONF
begin -H h1:1,h2:1,h3:1 --grace 2s sh -c 'echo ready; exec sleep 7654'
wait_for "ready" printed ready 3
"$lab" hosts off h2 > /dev/null
start=$SECONDS
named h2 10
wait "$head" && fail "the run without h2 succeeded"
echo "it ended after $((SECONDS - start)) s of 30"
nothing_runs 5 -e '765[4]'
"$lab" hosts on h2 > /dev/null

# TERM stops all, politely.
begin -H h1:1,h2:1 sh -c 'trap "echo stopped; exit 0" TERM; echo ready; while :; do sleep 0.1; done'
wait_for "ready" printed ready 2
kill -TERM "$head"
wait "$head" && fail "a run that was stopped succeeded"
wait_for "stopped" printed stopped 2  # who waits for `lab exec` may be quicker

# The head is killed: nothing runs anywhere after five seconds.
begin -H h1:2,h2:2 sh -c 'trap "" TERM HUP; echo ready; sleep 8765; sleep 8765'
wait_for "ready" printed ready 4
for file in /proc/[0-9]*/cmdline; do
  process=$(basename "$(dirname "$file")")
  if tr '\0' ' ' 2> /dev/null < "$file" | grep -q "^$lrun -H h1:2,h2:2"; then kill -KILL "$process" || true; fi
done
wait "$head" 2> /dev/null || true
nothing_runs 5 -e '876[5]'

# The head's machine loses its power: no connection ends, and nothing runs after a minute of silence.
begin -H h1:2,h2:2 sh -c 'trap "" TERM HUP; echo ready; sleep 9876; sleep 9876'
wait_for "ready" printed ready 4
"$lab" hosts off h0 > /dev/null
wait "$head" 2> /dev/null || true
nothing_runs 75 -e '987[6]'
echo "runs on hosts with sshd: well"
