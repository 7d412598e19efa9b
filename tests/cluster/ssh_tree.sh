#!/usr/bin/env bash
# `lrun -H …` on more hosts with a real sshd than one lrun connects to: some are reached through others, and nothing is
# left on any of them when the head is killed or one on the way loses its power.
# usage: ssh_tree.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab hosts
open_lab
allow_silence
bring_up hosts 34
fail() { echo "FAILED: $1"; tail -n 40 "$out/out" "$out/err"; exit 1; }
hosts=$(seq -f 'h%g:1' -s, 1 34)

# begin COMMAND...: in the background, on all hosts; returns once all workers have printed 'ready'.
begin() {
  : > "$out/out"  # forgets what the last one printed; the file has to be there before the loop looks at it
  "$lab" exec h0 "$lrun" -H "$hosts" --grace 2s "$@" > "$out/out" 2> "$out/err" &
  head=$!
  for _ in $(seq 900); do
    [ "$(grep -c ready "$out/out")" -lt 34 ] || return 0
    sleep 0.1
  done
  fail "not all workers came"
}

# h33 and h34 are reached through h1 and h2; all meet where the others reach the first host. lrun comes along: without
# its debugger's tables, which make it thirty times as large and go to 34 hosts.
strip -o "$out/lrun" "$lrun"
# shellcheck disable=SC2016 # expanded by the workers
show='echo "$RANK/$WORLD_SIZE on $(hostname) from ${SSH_CONNECTION%% *} at $MASTER_ADDR by $(readlink /proc/$PPID/exe)"'
timeout 120 "$lab" exec h0 "$out/lrun" -H "$hosts" --copy --output raw sh -c "$show" > "$out/out" 2> "$out/err" ||
  fail "the run on 34 hosts ended with $?"
for rank in $(seq 0 33); do
  from=198.18.0.$((rank < 32 ? 10 : rank - 21))
  grep -Eqx "$rank/34 on h$((rank + 1)) from $from at 198\.18\.0\.11 by /.*/local/tmp\.[^/]*/lrun" "$out/out" ||
    fail "rank $rank is not where it belongs, by a copy of lrun"
done
for _ in $(seq 600); do
  left=$(find "$LAB"/own/* -maxdepth 1 -name 'tmp.*' || true)
  [ -n "$left" ] || break
  sleep 0.1
done
[ -z "$left" ] || fail "copies are left: $left"

# The head is killed.
begin sh -c 'trap "" TERM HUP; echo ready; sleep 8754; sleep 8754'
for file in /proc/[0-9]*/cmdline; do
  process=$(basename "$(dirname "$file")")
  if tr '\0' ' ' 2> /dev/null < "$file" | grep -q "^$lrun -H $hosts"; then kill -KILL "$process" || true; fi
done
wait "$head" 2> /dev/null || true
nothing_runs 5 -e '875[4]'
nothing_runs 5 -e "$lrun.@rela[y]"

# The connection to a host on the way to another ends.
begin sh -c 'trap "" HUP; echo ready; exec sleep 6543'
# shellcheck disable=SC2046 # a process each
kill -KILL $(ssh_to h2)
status=0
wait "$head" || status=$?
[ $status -eq 125 ] || fail "the run without h2 ended with $status"
grep -q "^lrun: warning: the connections to h2 and h34 were lost: ssh died of SIGKILL" "$out/err" || fail "h2 and h34 are not named"
nothing_runs 5 -e '654[3]'
nothing_runs 5 -e "$lrun.@rela[y]"

# A host on the way to another loses its power.
begin sh -c 'echo ready; exec sleep 7643'
"$lab" hosts off h2 > /dev/null
! wait "$head" || fail "the run without h2 succeeded"
grep -q "node h2 is lost" "$out/err" || fail "h2 is not named"
nothing_runs 5 -e '764[3]'

# An unreachable host is named with the head's own reason, whether other hosts are behind it or it is behind others.
"$lab" hosts kill h33 > /dev/null
! timeout 120 "$lab" exec h0 "$lrun" -H "$hosts" touch "$out/started" > "$out/out" 2> "$out/err" || fail "it ran on dead hosts"
grep -q "2 of 34 hosts cannot be used; nothing was started" "$out/err" || fail "there is no table of two hosts"
grep -Eiq '^  \| h2   .*(timed out|no route)' "$out/err" || fail "h2 has no reason"
grep -Eiq '^  \| h33  .*(refused|closed|reset)' "$out/err" || fail "h33 has no reason"
[ ! -e "$out/started" ] || fail "something was started"
echo "runs on more hosts than one connects to: well"
