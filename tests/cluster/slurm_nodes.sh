#!/usr/bin/env bash
# Nodes that are lost under lrun on a real Slurm of three nodes: the verdict names them, and with --spares another one of
# the job takes their place.
# usage: slurm_nodes.sh LRUN SCRIPT
set -euo pipefail
lrun=$1 script=$2
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab slurm
open_lab
bring_up slurm 3
PATH=$(dirname "$lrun"):$PATH  # sbatch takes the environment along
export PATH LRUN_GRACE=1s LRUN_OUTPUT=raw
cd "$out"  # where output goes
fail() { echo "FAILED: $1"; tail -n 40 ./*.out; exit 1; }
# told PATTERN: some line of the job's output is like that.
told() { grep -Eq "$1" train-*.out; }
# submit ARGUMENT...: sets `id`.
submit() {
  rm -f train-*.out go launcher-*
  id=$("$lab" exec h0 sbatch --parsable --no-requeue --output=train-%j.out "$@")
}
# ended CODE: waits for the job's end, with this code of its script; nothing of it is left.
ended() {
  wait_for "the end of job $id" over
  "$lab" exec h0 scontrol --oneliner show job "$id" | grep -q " ExitCode=$1:0 " || fail "the script did not end with $1"
  nothing_runs 5 'wor[k]\.sh'
}
over() { "$lab" exec h0 scontrol --oneliner show job "$id" | grep -Eq 'JobState=(COMPLETED|FAILED|NODE_FAIL|CANCELLED)'; }
# kill_launcher HOST: both of its processes, the outer one of which would end by itself between the two. Its workers end
# with it.
kill_launcher() {
  local inner outer
  read -r inner outer < "launcher-$1"
  "$lab" exec "$1" sh -c "kill -STOP $outer && kill -KILL $inner && kill -KILL $outer"
}

# Says who it is and who started it, and ends when it is told to.
cat > work.sh <<'PROGRAM'
echo "$PPID $(awk '{ print $4 }' "/proc/$PPID/stat")" > "launcher-$SLURMD_NODENAME.new"
mv "launcher-$SLURMD_NODENAME.new" "launcher-$SLURMD_NODENAME"
echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME restart $TORCHELASTIC_RESTART_COUNT"
while [ ! -e go ]; do sleep 0.1; done
PROGRAM

# begins: two of three nodes work, and the third one waits.
begins() {
  wait_for "rank 0" told '^rank 0 of 2 on h1 restart 0$'
  wait_for "rank 1" told '^rank 1 of 2 on h2 restart 0$'
  wait_for "the spare" told 'lrun: note: node h3 is a spare: it waits until another one is lost$'
}
# goes_on: the third node has taken the place of h2.
goes_on() {
  wait_for "word of the lost node" told 'node h2 is lost: .*; node h3, a spare, takes its place'
  wait_for "the spare" told 'lrun: note: node h3 was a spare, and takes part now: node rank 1 of 2$'
  wait_for "rank 1 on the spare" told '^rank 1 of 2 on h3 restart 0$'
  wait_for "rank 0 again" again
  touch go
}
again() { [ "$(cat train-*.out | grep -c '^rank 0 of 2 on h1 restart 0$')" -eq 2 ]; }

# A launcher that is killed on a node which Slurm has nothing against: srun itself ends with 137.
submit "$script" sh ./work.sh
begins
kill_launcher h2
goes_on
ended 0

# The same on the node where the launchers meet.
submit "$script" sh ./work.sh
begins
kill_launcher h1
wait_for "rank 0 on the second node" told '^rank 0 of 2 on h2 restart 0$'
wait_for "rank 1 on the spare" told '^rank 1 of 2 on h3 restart 0$'
touch go
ended 0

# The power of a node is cut, and Slurm is told, which would find out by itself later.
submit "$script" sh ./work.sh
begins
"$lab" hosts off h2
wait_for "word of the lost node" told 'node h2 is lost: '
"$lab" exec h0 scontrol update NodeName=h2 State=DOWN Reason=test
goes_on
ended 0
"$lab" hosts on h2
wait_for "the node h2" "$lab" exec h0 sh -c 'sinfo --noheader --nodes h2 --partition debug --format %t | grep -qx idle'

# A spare that was not needed does not change the outcome of the job, and ends with it at once.
# shellcheck disable=SC2016 # expanded by the workers
submit "$script" sh -c 'exit $((7 * RANK))'
ended 7
told 'lrun: note: node h3 was a spare, and was not needed: the job has ended: ' || fail "the spare does not say what it was"
submit "$script" true
ended 0
told 'lrun: note: node h3 was a spare, and was not needed: the job has succeeded$' || fail "the spare says nothing"

# More than there are: nothing is started.
submit -N 3 --wrap "lrun --spares 3 sh ./work.sh"
ended 125
told "lrun: error: '--spares 3': Slurm job $id has 3 nodes" || fail "no such error"

# Without spares the job ends at once, and says which node it was.
submit -N 2 --no-kill --wrap "lrun -n 1 sh ./work.sh"
wait_for "rank 1" told '^rank 1 of 2 on h2 restart 0$'
kill_launcher h2
wait_for "the end of job $id" over
told 'lrun: error: the run was stopped: node h2 is lost: ' || fail "the verdict does not name the lost node"
"$lab" exec h0 scontrol --oneliner show job "$id" | grep -q ' ExitCode=0:0 ' && fail "a job that lost a node has succeeded"
nothing_runs 5 'wor[k]\.sh'
echo "lost nodes of a Slurm of three: well"
