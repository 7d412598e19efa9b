#!/usr/bin/env bash
# `lrun -H …` on hosts with a real sshd, of which one connection ends while the job runs: that is the loss of its node, and
# nothing is left there.
# usage: ssh_losses.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab hosts
open_lab
allow_silence
bring_up hosts 3
fail() { echo "FAILED: $1"; tail -n 30 "$out/out" "$out/err"; exit 1; }
printed() { [ "$(grep -c "$1" "$out/out")" -ge "$2" ]; }

# Tells its place, and ends once the file 'go' is there.
cat > "$out/work.sh" << 'PROGRAM'
trap '' HUP
echo "$RANK/$WORLD_SIZE on $(hostname) of 3210"
until [ -e "$1/go" ]; do sleep 0.1; done
PROGRAM

# begin LRUN-ARGUMENTS: in the background, on three hosts; returns once all workers run.
begin() {
  rm -f "$out/go" "$out/out"
  "$lab" exec h0 "$lrun" -H h1:1,h2:1,h3:1 --grace 2s --output raw "$@" sh "$out/work.sh" "$out" > "$out/out" 2> "$out/err" &
  head=$!
  wait_for "the beginning" printed "/3 on " 3
}
# session_on HOST: the process id, there, of the sshd that serves lrun's connection.
session_on() {
  # shellcheck disable=SC2016 # expanded on the host
  "$lab" exec "$1" sh -c 'for each in /proc/[0-9]*; do grep -qs "^sshd.*@notty" "$each/cmdline" && echo "${each#/proc/}"; done; true'
}
# lose WHAT HOST
lose() {
  # shellcheck disable=SC2046 # a process each
  case $1 in
    ssh) kill -KILL $(ssh_to "$2") ;;
    sshd) "$lab" exec "$2" kill -KILL $(session_on "$2") ;;
  esac
}
# nothing_on HOST: lrun and its worker are gone there.
nothing_on() { wait_for "the end of what runs on $1" nothing_of_it "$1"; }
# shellcheck disable=SC2016 # expanded on the host
nothing_of_it() { ! "$lab" exec "$1" sh -c 'grep -qs -e "work[.]sh" -e "@nod[e]" /proc/[0-9]*/cmdline'; }

# The others go on without it, whichever it is and whatever has ended it.
for what in ssh sshd; do
  for host in h3 h1; do
    begin --nnodes 2:3
    lose $what $host
    wait_for "a world of two" printed "/2 on " 2
    nothing_on $host
    grep -q "^lrun: warning: the connection to $host was lost: " "$out/err" || fail "the connection to $host is not named"
    touch "$out/go"
    wait "$head" || fail "the run without $host ended with $?"
  done
done

# A job that needs all ends everywhere.
for host in h3 h1; do
  begin
  lose ssh $host
  status=0
  wait "$head" || status=$?
  [ $status -eq 125 ] || fail "the run that needs $host ended with $status"
  grep -q "^lrun: warning: the connection to $host was lost: " "$out/err" || fail "the connection to $host is not named"
  grep -q "^lrun: error: .*node $host.*: the connection from the lrun that started it was lost" "$out/err" ||
    fail "the verdict does not name $host"
  nothing_runs 5 -e 'work[.]sh'
done

# A network that is gone for a moment is no end of a connection.
begin
"$lab" hosts cut h3 > /dev/null
sleep 3
"$lab" hosts heal h3 > /dev/null
touch "$out/go"
wait "$head" || fail "the run over a network that was gone for a moment ended with $?"

# With the head all connections end, and no node goes on alone.
begin --nnodes 1:3
for file in /proc/[0-9]*/cmdline; do
  process=$(basename "$(dirname "$file")")
  if tr '\0' ' ' 2> /dev/null < "$file" | grep -q "^$lrun -H h1:1,h2:1,h3:1"; then kill -KILL "$process" || true; fi
done
wait "$head" 2> /dev/null || true
nothing_runs 5 -e 'work[.]sh'
echo "connections that end: well"
