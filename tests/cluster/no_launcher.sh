#!/usr/bin/env bash
# Ranks of liblrun that srun or mpirun starts and no launcher: they find each other, or say what is missing.
# usage: no_launcher.sh WORKER
set -euo pipefail
worker=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab slurm
export OMP_NUM_THREADS=1
open_lab
bring_up slurm 2
fail() { echo "FAILED: $1"; tail -n 30 "$out/out" "$out/err"; exit 1; }

# sum WANTED RANKS COMMAND...: each of the ranks says WANTED, the backend and the sum of rank + 1.
sum() {
  local wanted=$1 ranks=$2
  shift 2
  timeout 180 "$@" > "$out/out" 2> "$out/err" || fail "'$*' ended with $?"
  [ "$(grep -cx "$wanted" "$out/out")" -eq "$ranks" ] || fail "not all ranks of '$*' say '$wanted'"
}

sum "gloo 3" 2 "$lab" exec h0 srun -N2 --ntasks-per-node=1 "$worker"
sum "shm+gloo 10" 4 "$lab" exec h0 srun -N2 --ntasks-per-node=2 --overcommit "$worker"
sum "shm 3" 2 "$lab" exec h0 srun -N1 --ntasks=2 --overcommit "$worker"
if command -v mpirun.openmpi > /dev/null; then
  sum "shm 3" 2 "$lab" exec h1 mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 "$worker"
  two_hosts=("$lab" exec h1 mpirun.openmpi --allow-run-as-root -H "h1:1,h2:1")
  sum "gloo 3" 2 "${two_hosts[@]}" -x MASTER_ADDR=h1 "$worker"
  ! timeout 180 "${two_hosts[@]}" "$worker" > "$out/out" 2> "$out/err" || fail "nobody misses an address"
  grep -q "MASTER_ADDR' is missing: mpirun starts 2 tasks on several hosts" "$out/out" || fail "which address is missing?"
fi
if command -v mpirun.mpich > /dev/null; then
  sum "shm 3" 2 "$lab" exec h1 mpirun.mpich -np 2 "$worker"
  sum "shm 3" 2 "$lab" exec h1 mpirun.mpich -np 2 sh -c "'$worker'; true"  # a shell between
fi
echo "ranks without a launcher: well"
