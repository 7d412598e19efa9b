#!/usr/bin/env bash
# Launchers that meet through a real etcd, of one member and of three, on the loopback interface: members and launchers
# are killed. usage: etcd.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=tests/cluster/launchers.sh
. "$(dirname "$0")/launchers.sh"
need_lab etcd
open_lab
export LRUN_STATE=$out/state
trap 'touch "$out/end"; "$lab" down > /dev/null 2>&1; rm -rf "$out"' EXIT

ctl() { ETCDCTL_API=3 etcdctl --endpoints "$endpoints" "$@"; }
etcd_up() {
  bring_up etcd "$1"
  endpoints=$("$lab" etcd endpoints)
  wait_for etcd ctl endpoint health
}

# begin NAME NODES JOB [OPTIONS]: a launcher in the background; its workers go on until the file 'end' is there.
begin() {
  local name=$1 nodes=$2 job=$3
  shift 3
  : > "$out/$name.log"  # not what an earlier one said
  # shellcheck disable=SC2016 # expanded by the workers
  "$lrun" --rdzv-backend etcd --rdzv-endpoint "$endpoints" --rdzv-id "$job" --nnodes "$nodes" -n 1 --grace 2s "$@" \
    sh -c 'echo "rank $RANK/$WORLD_SIZE count $TORCHELASTIC_RESTART_COUNT."; while [ ! -e "$0" ]; do sleep 0.1; done' \
    "$out/end" > "$out/$name.log" 2>&1 &
  launchers[$name]=$!
}
# kill -9 of both processes of a launcher, while neither can act
kill_launcher() {
  local guard=${launchers[$1]} child
  child=$(< "/proc/$guard/task/$guard/children")
  kill -STOP "$guard"
  kill -KILL "${child%% *}" "$guard"
  wait "$guard" 2> /dev/null || true
}
# The outcome of a job stays for a while, for nodes that were cut off from it; its leader's key is gone.
no_leader_left() {
  ! ctl get --prefix /lrun/ --keys-only | grep -q '/holder$' || fail "keys are left: $(ctl get --prefix /lrun/)"
}

etcd_up 1
# Two launchers, none of which owns the endpoint.
touch "$out/end"
begin a 2 two; begin b 2 two
ends a 0; ends b 0
cat "$out"/[ab].log > "$out/both.log"
said both 'rank 0/2'; said both 'rank 1/2'
no_leader_left
# Two jobs at one etcd.
begin a 1:2 one --rdzv-conf last_call_timeout=1; begin b 1:2 other --rdzv-conf last_call_timeout=1
ends a 0; ends b 0
said a 'rank 0/1'; said b 'rank 0/1'
rm "$out/end"

# The leader is killed, and then its successor: the job goes on, without a restart.
begin a 1:3 lost; said a 'rank 0/1'
begin b 1:3 lost; begin c 1:3 lost
said b 'rank ./3'; said c 'rank ./3'
kill_launcher a
said b 'rank ./2 count 0'; said c 'rank ./2 count 0'
said b 'the leader on node .* is lost: its launcher ended'
leader=$(ctl get --print-value-only /lrun/lost/holder)
second=b third=c
child=$(< "/proc/${launchers[c]}/task/${launchers[c]}/children")
if grep -q "/${child%% *}\"" <<< "$leader"; then second=c third=b; fi
kill_launcher "$second"
said "$third" 'rank 0/1 count 0'
touch "$out/end"
ends "$third" 0
no_leader_left
rm "$out/end"

# All launchers are killed when a restart is used up, and the job is started again at once: it is a new one.
begin a 2 again --max-restarts 1; begin b 2 again --max-restarts 1
said a 'rank ./2 count 0'; said b 'rank ./2 count 0'
child=$(< "/proc/${launchers[a]}/task/${launchers[a]}/children") child=${child%% *}
worker=$(< "/proc/$child/task/$child/children")
kill -KILL "${worker%% *}"
said a 'rank ./2 count 1'; said b 'rank ./2 count 1'
kill_launcher a; kill_launcher b
begin a 2 again --max-restarts 1; begin b 2 again --max-restarts 1
said a 'rank ./2 count 0'; said b 'rank ./2 count 0'
touch "$out/end"
ends a 0; ends b 0
no_leader_left
rm "$out/end"

# A TERM takes a node away, also the leader; the last node waits for others.
begin a 2:3 taken; begin b 2:3 taken; begin c 2:3 taken
said a 'rank ./3'; said b 'rank ./3'; said c 'rank ./3'
kill -TERM "${launchers[a]}"
said b 'rank ./2 count 0'; said c 'rank ./2 count 0'
kill -TERM "${launchers[b]}"
said c '1 of 2:3 nodes is left, which waits'
kill -TERM "${launchers[c]}"
ends a 143; ends b 143; ends c 143
no_leader_left

# A name and a password.
ctl user add root:secret > /dev/null; ctl role add root > /dev/null 2>&1 || true
ctl user grant-role root root > /dev/null; ctl auth enable > /dev/null
touch "$out/end"
begin a 2 named; ends a 125; said a 'etcd requires a user'
LRUN_ETCD_USER=root:wrong begin a 2 named; ends a 125; said a 'invalid user ID or password'
export LRUN_ETCD_USER=root:secret
begin a 2 named; begin b 2 named
ends a 0; ends b 0
unset LRUN_ETCD_USER
rm "$out/end"

# The leader of three members is killed under a running job, and the job does not notice; without a quorum it stops.
"$lab" down > /dev/null 2>&1
etcd_up 3
lease=15  # seconds: it has to outlive an election of etcd, on a machine that has other things to do
begin a 2 three --rdzv-conf "heartbeat_timeout=$lease"; begin b 2 three --rdzv-conf "heartbeat_timeout=$lease"
said a 'rank ./2'; said b 'rank ./2'
"$lab" etcd kill leader > "$out/killed"
deadline=$((SECONDS + lease + 2))
while [ "$SECONDS" -lt "$deadline" ]; do
  ! grep -q 'is lost' "$out/a.log" "$out/b.log" || fail "one member of three was killed, and the job noticed"
  sleep 0.2
done
touch "$out/end"
ends a 0; ends b 0
rm "$out/end"
"$lab" etcd kill leader > /dev/null 2>&1 || "$lab" etcd kill m1 > /dev/null 2>&1 || "$lab" etcd kill m2 > /dev/null
begin a 2 quorum --rdzv-conf read_timeout=3
ends a 125
said a 'the nodes did not meet: '
echo "passed"
