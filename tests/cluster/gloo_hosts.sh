#!/usr/bin/env bash
# Three ranks on two hosts of the lab: what they sum, by which backend, and what they say when a host dies.
# usage: gloo_hosts.sh WORKER
set -euo pipefail
worker=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab hosts
open_lab
bring_up hosts 2
master=$("$lab" exec h1 getent ahostsv4 h1 | awk '{print $1; exit}')
port=29400
fail() { echo "FAILED: $1"; tail -n 5 "$out"/rank* "$out"/stderr*; exit 1; }

# start BACKEND [ARGS]: ranks 0 and 1 on h1, rank 2 on h2.
start() {
  local backend=$1 rank host
  shift
  port=$((port + 1))
  pids=()
  for rank in 0 1 2; do
    host=h$((rank / 2 + 1))
    "$lab" exec $host env RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$((rank % 2)) LOCAL_WORLD_SIZE=$((3 - rank / 2 - 1)) \
      GROUP_RANK=$((rank / 2)) GROUP_WORLD_SIZE=2 MASTER_ADDR="$master" MASTER_PORT=$port OMP_NUM_THREADS=1 \
      LRUN_PROCESS_GROUP_BACKEND="$backend" "$worker" "$@" > "$out/rank$rank" 2> "$out/stderr$rank" &
    pids+=($!)
  done
}

for backend in gloo shm+gloo auto; do
  start "$backend"
  for pid in "${pids[@]}"; do wait "$pid" || fail "a rank of $backend failed"; done
  expected="${backend/auto/shm+gloo} 6"
  for rank in 0 1 2; do
    [ "$(cat "$out/rank$rank")" = "$expected" ] || fail "rank $rank of $backend does not say '$expected'"
  done
done

start shm
for pid in "${pids[@]}"; do ! wait "$pid" || fail "shm worked on two hosts"; done
grep -q "ranks are on 2 hosts" "$out/rank2" || fail "shm does not say why"

start shm+gloo --for-ever
for _ in $(seq 600); do
  [ "$(wc -l < "$out/rank2")" -lt 3 ] || break
  sleep 0.1
done
"$lab" hosts kill h2 > /dev/null
for rank in 0 1; do
  ! wait "${pids[$rank]}" || fail "rank $rank goes on without h2"
  tail -n 1 "$out/rank$rank" | grep -q "^rank 2 (pid [0-9]*) .* all_reduce #" || fail "rank $rank does not name rank 2"
done
wait "${pids[2]}" || true
echo "gloo between two hosts: well"
