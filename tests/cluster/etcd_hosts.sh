#!/usr/bin/env bash
# A job whose launchers meet through an etcd of three members, each of all these on a host of its own: links to etcd are
# cut and healed, and its leader is killed. usage: etcd_hosts.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=tests/cluster/launchers.sh
. "$(dirname "$0")/launchers.sh"
need_lab hosts
need_lab etcd
open_lab
export LRUN_STATE=$out/state
lease=15     # seconds: it has to outlive an election of etcd, on a machine that has other things to do

bring_up hosts 6
bring_up etcd 3 --hosts
endpoints=$("$lab" etcd endpoints)
ctl() { "$lab" exec h0 env ETCDCTL_API=3 etcdctl --endpoints "$endpoints" "$@"; }
wait_for etcd ctl endpoint health
with_etcd() {  # cut|heal HOST: its links to the hosts of etcd
  local to
  for to in h1 h2 h3; do "$lab" hosts "$1" "$2" "$to"; done
}

# begin HOST: a launcher in the background; its worker goes on until the file 'end' is there.
begin() {
  # shellcheck disable=SC2016 # expanded by the workers
  "$lab" exec "$1" "$lrun" --rdzv-backend etcd --rdzv-endpoint "$endpoints" --rdzv-id job --nnodes 2:3 -n 1 --grace 2s \
    --rdzv-conf "heartbeat_timeout=$lease" \
    sh -c 'echo "rank $RANK/$WORLD_SIZE count $TORCHELASTIC_RESTART_COUNT."; while [ ! -e "$0" ]; do sleep 0.1; done' \
    "$out/end" > "$out/$1.log" 2>&1 &
  launchers[$1]=$!
}
leader() { ctl get --print-value-only /lrun/job/holder | grep -o '"node":"h[456]"' | grep -o 'h[456]'; }

for host in h4 h5 h6; do begin $host; done
for host in h4 h5 h6; do said $host 'rank ./3 count 0'; done
first=$(leader)
others=$(echo h4 h5 h6 | tr ' ' '\n' | grep -v "$first")
read -r member _ <<< "$(tr '\n' ' ' <<< "$others")"

# Only the job's leader needs etcd, and a majority of etcd is enough: the job does not notice that another member cannot
# reach etcd, nor that etcd's leader dies.
with_etcd cut "$member"
killed=$("$lab" etcd kill leader)
deadline=$((SECONDS + lease + 2))
while [ "$SECONDS" -lt "$deadline" ]; do
  ! grep -q 'is lost' "$out"/h?.log || fail "a link that nobody needs was cut, and the job noticed"
  sleep 0.2
done
[ "$(leader)" = "$first" ] || fail "another launcher leads the rendezvous"
"$lab" etcd start "$killed"
with_etcd heal "$member"

# The leader loses etcd, while all launchers reach each other: it resigns, and the others go on without it.
with_etcd cut "$first"
said "$first" "the leader on node $first is lost: no answer from etcd for ${lease}s"
for host in $others; do said "$host" 'rank ./2 count 0'; done
second=$(leader)
[ "$second" != "$first" ] || fail "$first leads the rendezvous without an etcd"
[ "$(grep -c 'rank ./2' "$out/$first.log" || true)" -eq 0 ] || fail "$first began a job of its own"
# It is healed, and the launcher comes back.
with_etcd heal "$first"
for host in h4 h5 h6; do said $host 'rank ./3 count 0' 2; done

touch "$out/end"
for host in h4 h5 h6; do ends $host 0; done
[ -z "$(leader || true)" ] || fail "the job is over, and $(leader) leads its rendezvous"
echo "passed"
