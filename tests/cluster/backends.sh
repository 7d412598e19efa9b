#!/usr/bin/env bash
# liblrun's ranks use the backend of --process_group_backend, also where several launchers start them.
# usage: backends.sh LRUN WORKER FREE_PORT
set -euo pipefail
LRUN_STATE=$(mktemp -d)
export LRUN_STATE
trap 'rm -rf "$LRUN_STATE"' EXIT
for backend in shm gloo shm+gloo; do
  said=$("$1" -n 2 --process_group_backend "$backend" "$2" | sort)
  expected="[0] $backend 3
[1] $backend 3"
  [ "$said" = "$expected" ] || { echo "FAILED: with $backend the ranks say: $said"; exit 1; }
done

# The launchers of a job on two nodes, which are both this host.
# Another program may have taken the free port meanwhile: then there is another.
for _ in 1 2 3 4 5; do
  place=(--num_nodes 2 --rdzv-endpoint "127.0.0.1:$("$3")" --process_group_backend gloo --devices 1)
  timeout 110 "$1" "${place[@]}" --node-rank 0 "$2" > "$LRUN_STATE/0" 2>&1 &
  first=$!
  timeout 110 "$1" "${place[@]}" --node-rank 1 "$2" > "$LRUN_STATE/1" 2>&1 &
  second=$!
  wait "$first" || true
  if grep -q 'Address already in use' "$LRUN_STATE/0"; then kill "$second" 2> /dev/null || true; fi
  wait "$second" || true
  grep -q 'Address already in use' "$LRUN_STATE/0" || break
done
for node in 0 1; do
  grep -qx "\[$node\] gloo 3" "$LRUN_STATE/$node" || { echo "FAILED: the rank of node $node says:"; cat "$LRUN_STATE/$node"; exit 1; }
done
