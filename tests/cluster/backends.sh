#!/usr/bin/env bash
# What --process_group_backend says is what liblrun's ranks use.
# usage: backends.sh LRUN WORKER
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
