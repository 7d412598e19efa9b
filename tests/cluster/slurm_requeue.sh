#!/usr/bin/env bash
# Jobs that Slurm interrupts, on a real one of three nodes: all ranks are told, save and end, and the job goes on from there
# when it comes back, whether it was the warning before the time limit or a job that is more urgent.
# usage: slurm_requeue.sh LRUN SCRIPT
set -euo pipefail
lrun=$1 script=$2
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab slurm
open_lab
allow_silence
bring_up slurm 3
PATH=$(dirname "$lrun"):$PATH  # sbatch takes the environment along
export PATH
cd "$out"  # where output goes
fail() { echo "FAILED: $1"; tail -n 40 ./*.out; exit 1; }
patience=90  # seconds, for wait_for
# lines COUNT PATTERN: so many lines of the jobs' output are PATTERN.
lines() { [ "$(cat train-*.out | grep -Exc "$2")" -eq "$1" ]; }
has_state() { "$lab" exec h0 scontrol --oneliner show job "$id" | grep -q "JobState=$1"; }
completed() { has_state COMPLETED; }
failed() { has_state FAILED; }

# Works until it is told to end, in its first run, and says with what it goes on.
cat > train.sh <<'PROGRAM'
trap 'stop=${stop:-USR1}' USR1
trap 'stop=${stop:-TERM}' TERM
step=$(cat "checkpoint.$RANK" 2> /dev/null || echo 0)
echo "rank $RANK of $WORLD_SIZE goes on after step $step, restart ${SLURM_RESTART_COUNT:-0}"
while [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] && [ -z "${stop:-}" ]; do sleep 0.1; done
trap '' USR1 TERM  # Slurm signals what a worker starts, too, and more than once
echo $((step + 3)) > "checkpoint.$RANK.new" && mv "checkpoint.$RANK.new" "checkpoint.$RANK"
echo "rank $RANK saved step $((step + 3)) at ${stop:-the end}"
PROGRAM

# resumes [SIGNAL]: what both ranks have said by the end of the job. Where Slurm itself ends the step, with TERM, srun may
# end before it has read what they said last: that they saved is known by what they go on with.
resumes() {
  wait_for "the end of job $id" completed
  local rank
  for rank in 0 1; do
    lines 1 "(\[$rank\] )?rank $rank of 2 goes on after step 0, restart 0" || fail "rank $rank did not begin"
    [ -z "${1:-}" ] || lines 1 "(\[$rank\] )?rank $rank saved step 3 at $1" || fail "rank $rank was not told to end by $1"
    lines 1 "(\[$rank\] )?rank $rank of 2 goes on after step 3, restart 1" || fail "rank $rank did not go on"
    lines 1 "(\[$rank\] )?rank $rank saved step 6 at the end" || fail "rank $rank did not end well"
  done
  rm checkpoint.* train-*.out
}
submit() { id=$("$lab" exec h0 sbatch --parsable "$@") && wait_for "two ranks" lines 2 '.*goes on after step 0.*'; }

# The warning, as Slurm sends it to the steps of a job: not to the batch script.
submit "$script" sh ./train.sh
"$lab" exec h0 scancel --signal USR1 "$id"
resumes USR1

# Preempted by a job that needs all nodes.
preempted() {
  submit --exclusive "$script" --devices 1 sh ./train.sh
  "$lab" exec h0 srun -p urgent -N3 --exclusive true > urgent.out 2>&1 || fail "the urgent job did not run"
}
preempted
resumes USR1

# As Slurm is set up by default: with TERM, which the script tells from that of somebody who cancels the job ...
sed -i '/^SlurmctldParameters=preempt_send_user_signal$/d; s/^KillWait=.*/KillWait=60/' "$LAB/slurm/etc/slurm.conf"
"$lab" exec h0 scontrol reconfigure
"$lab" exec h0 scontrol update PartitionName=debug GraceTime=60
preempted
resumes
submit --exclusive "$script" --devices 1 sh ./train.sh
"$lab" exec h0 scancel --signal TERM "$id"
wait_for "the end of job $id" failed
lines 0 ".*restart 1" || fail "a job that somebody stopped was put back"
rm checkpoint.* train-*.out

# ... and without a GraceTime, which is the default, too, twice and to all of the job.
"$lab" exec h0 scontrol update PartitionName=debug GraceTime=0
preempted
resumes
echo "jobs that Slurm interrupts: well"
