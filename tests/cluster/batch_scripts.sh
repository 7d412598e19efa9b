#!/usr/bin/env bash
# The batch scripts of examples/slurm, each submitted to a real Slurm of three nodes as a user would.
# usage: batch_scripts.sh LRUN FOLDER
set -euo pipefail
lrun=$1 scripts=$2
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab slurm
open_lab
allow_silence
bring_up slurm 3
fail() { echo "FAILED: $1"; tail -n 30 "$out"/*.out "$out/said"; exit 1; }
PATH=$(dirname "$lrun"):$PATH  # sbatch takes the environment along
export PATH
cd "$out"  # where output goes
known=" "

# submit SCRIPT PROGRAM...: waits for the end of the job, which is to succeed.
submit() {
  known+="$1 "
  timeout 120 "$lab" exec h0 sbatch -W "$scripts/$1" "${@:2}" > said 2>&1 || fail "$1 ended with $?"
}
# says PATTERN FILE...: exactly one line of the files is PATTERN.
says() {
  [ "$(cat "${@:2}" | grep -Exc "$1")" -eq 1 ] || fail "not one line is '$1'"
}

# shellcheck disable=SC2016 # expanded by the workers
submit one_node.sbatch sh -c 'echo "rank $RANK of $WORLD_SIZE"'
says '(\[0\] )?rank 0 of 1' train-*.out
rm train-*.out

# shellcheck disable=SC2016
submit several_nodes.sbatch sh -c 'echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME"'
for rank in 0 1 2; do says "(\[$rank\] )?rank $rank of 3 on h$((rank + 1))" train-*.out; done
rm train-*.out

# shellcheck disable=SC2016
submit array.sbatch sh -c 'echo "seed $LRUN_SEED of rank $RANK of $WORLD_SIZE"'
for seed in 0 1 2 3; do says "(\[0\] )?seed $seed of rank 0 of 1" seeds-*_"$seed".out; done

# A training that takes four steps and is put back after the second goes on with the third. A rank writes its checkpoint
# after every step; the steps of the first run end only when the job is requeued.
cat > train.sh <<'PROGRAM'
checkpoint=checkpoint.$RANK
step=$(cat "$checkpoint" 2> /dev/null || echo 0)
echo "rank $RANK of $WORLD_SIZE goes on after step $step, restart ${SLURM_RESTART_COUNT:-0}"
while [ "$step" -lt 4 ]; do
  step=$((step + 1))
  echo "$step" > "$checkpoint.new" && mv "$checkpoint.new" "$checkpoint"
  while [ "$step" -eq 2 ] && [ -z "${SLURM_RESTART_COUNT:-}" ]; do sleep 0.1; done
done
echo "rank $RANK has done $step steps"
PROGRAM
known+="requeue.sbatch "
id=$("$lab" exec h0 sbatch --parsable "$scripts/requeue.sbatch" sh ./train.sh 2> said) || fail "requeue.sbatch was refused"
# Also what the ranks said is to be there: what srun has not read when the job is put back is lost.
for _ in $(seq 600); do
  [ "$(cat checkpoint.0 checkpoint.1 2> /dev/null | grep -cx 2)" -lt 2 ] ||
    [ "$(cat train-*.out | grep -c 'after step 0')" -lt 2 ] || break
  sleep 0.1
done
"$lab" exec h0 scancel --batch --signal USR1 "$id"  # as Slurm does it before the time limit
for _ in $(seq 900); do
  state=$("$lab" exec h0 scontrol --oneliner show job "$id" | grep -o 'JobState=[A-Z]*') || state=
  [ "$state" != JobState=COMPLETED ] || break
  sleep 0.1
done
[ "$state" = JobState=COMPLETED ] || fail "the requeued job has the state '$state'"
for rank in 0 1; do
  says "(\[$rank\] )?rank $rank of 2 goes on after step 0, restart 0" train-*.out
  says "(\[$rank\] )?rank $rank of 2 goes on after step 2, restart 1" train-*.out
  says "(\[$rank\] )?rank $rank has done 4 steps" train-*.out
done

known+="requeue_on_signal.sbatch spares.sbatch "  # slurm_requeue.sh and slurm_nodes.sh submit them
for script in "$scripts"/*; do
  case $known in *" $(basename "$script") "*) ;; *) fail "$(basename "$script") is submitted by no test" ;; esac
done
echo "the batch scripts of examples/slurm: well"
