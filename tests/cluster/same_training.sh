#!/usr/bin/env bash
# One training, examples/fashion_mnist, in every way that people start it: by lrun here, over ssh and in Slurm, by srun
# and mpirun with lrun and without. With the same ranks and backend all end in the same bits; with another backend, and
# with one process on the whole batch, in what rounding leaves.
# usage: same_training.sh LRUN PROGRAM SAME_CHECKPOINT
# shellcheck source=tests/examples/common.sh
. "$(dirname "$0")/../examples/common.sh"
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
lrun=$1 program=$2 same_checkpoint=$3
need_lab slurm
open_lab
trap '"$lab" down > /dev/null 2>&1; rm -rf "$out"; cleanup' EXIT
bring_up slurm 3
export LRUN_STATE=$out/state

# Six ranks take 24 images in a step, 20 steps: an epoch.
mkdir "$out/data"
first_images train 480 "$out/data"
first_images t10k 60 "$out/data"
training=("$program" --data "$out/data" --seed 7 --epochs 1)
ranks=("${training[@]}" --batch-size 4)

# train NAME BANNER COMMAND...: its checkpoint is then $out/NAME, which COMMAND has written. Rank 0 says BANNER.
train() {
  local name=$1 banner=$2 status=0
  shift 2
  timeout 180 "$@" --checkpoint "$out/$name" > "$out/said" 2>&1 < /dev/null || status=$?
  [ "$status" -eq 0 ] || fail "$name: '$*' ended with $status" "$out/said"
  grep -q "lrun: ddp$banner, device cpu, seed 7\$" "$out/said" || fail "$name: no word of 'ddp$banner'" "$out/said"
}
# same NAME [MOST]: as $out/local, to the last bit or but for MOST of its norm.
same() {
  "$same_checkpoint" "$out/$1" "$out/local" ${2:+"$2"} > "$out/differs" || fail "'$1' is not 'local'" "$out/differs"
  echo "$1: as local${2:+, $(cat "$out/differs")}"
}

gloo=(--process_group_backend gloo)
one_host=" over gloo, 6 ranks on 1 node"
three_hosts=" over gloo, 6 ranks on 3 nodes"
train local "$one_host" "$lrun" -n 6 "${gloo[@]}" "${ranks[@]}"

train ssh "$three_hosts" "$lab" exec h0 "$lrun" -H h1:2,h2:2,h3:2 "${gloo[@]}" "${ranks[@]}"
same ssh
train slurm "$three_hosts" "$lab" exec h0 srun -N3 --ntasks-per-node=1 "$lrun" -n 2 "${gloo[@]}" "${ranks[@]}"
same slurm

# A batch script starts it on all nodes of its job.
: > "$out/job"
words=("$lrun" -n 2 "${gloo[@]}" "${ranks[@]}" --checkpoint "$out/batch")
timeout 180 "$lab" exec h0 sbatch -W -N3 -o "$out/job" --wrap "$(printf '%q ' "${words[@]}")" > "$out/said" 2>&1 ||
  fail "the batch script ended with $?" "$out/said" "$out/job"
grep -q "lrun: ddp$three_hosts," "$out/job" || fail "the batch script runs elsewhere" "$out/job"
same batch

# Without a launcher the backend is told by a variable.
export LRUN_PROCESS_GROUP_BACKEND=gloo
train srun "$three_hosts" "$lab" exec h0 srun -N3 --ntasks-per-node=2 --overcommit "${ranks[@]}"
same srun
if command -v mpirun.openmpi > /dev/null; then
  mpirun=("$lab" exec h1 mpirun.openmpi --allow-run-as-root -H "h1:2,h2:2,h3:2" -x MASTER_ADDR=h1 -x OMP_NUM_THREADS
          -x LRUN_PROCESS_GROUP_BACKEND -x LRUN_STATE)
  train openmpi "$three_hosts" "${mpirun[@]}" "${ranks[@]}"
  same openmpi
  train openmpi_lrun "$three_hosts" "${mpirun[@]}" --map-by ppr:1:node "$lrun" -n 2 "${ranks[@]}"
  same openmpi_lrun
else
  echo "not tested: Open MPI is not installed"
fi
if command -v mpirun.mpich > /dev/null; then
  train mpich "$three_hosts" "$lab" exec h1 mpirun.mpich -launcher ssh -hosts "h1,h2,h3" -ppn 2 -np 6 \
    -genv MASTER_ADDR h1 -genv MASTER_PORT 29517 "${ranks[@]}"
  same mpich
else
  echo "not tested: MPICH is not installed"
fi
unset LRUN_PROCESS_GROUP_BACKEND

# The sums of shm are those of gloo; two kinds of groups in each other add in another order, and so does one process.
train shm " over shm, 6 ranks on 1 node" "$lrun" -n 6 --process_group_backend shm "${ranks[@]}"
same shm
train hosts_shm " over shm+gloo, 6 ranks on 3 nodes" "$lab" exec h0 "$lrun" -H h1:2,h2:2,h3:2 "${ranks[@]}"
same hosts_shm 1e-4
timeout 180 "${training[@]}" --batch-size 24 --checkpoint "$out/alone" > "$out/said" 2>&1 ||
  fail "one process ended with $?" "$out/said"
same alone 1e-4
echo "one training, however it is started: well"
