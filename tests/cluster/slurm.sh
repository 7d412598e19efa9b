#!/usr/bin/env bash
# lrun on a real Slurm of three nodes: `srun lrun …`, and `lrun …` in a batch script, are one run of all nodes.
# usage: slurm.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=tests/cluster/slurm_steps.sh
. "$(dirname "$0")/slurm_steps.sh"
need_lab slurm
open_lab
allow_silence
bring_up slurm 3

# shellcheck disable=SC2016 # expanded by the workers
show='echo "$RANK/$WORLD_SIZE local $LOCAL_RANK node $GROUP_RANK at $MASTER_ADDR on $SLURMD_NODENAME id $TORCHELASTIC_RUN_ID"'
step 0 -N3 --ntasks-per-node=1 -- -n 2 --output raw sh -c "$show"
[ "$(wc -l < "$out/out")" -eq 6 ] || fail "three nodes of two workers are not six ranks"
for rank in 0 1 2 3 4 5; do
  node=$((rank / 2))
  grep -Eq "^$rank/6 local $((rank % 2)) node $node at [^ ]+ on h$((node + 1)) id slurm-[0-9]+\.0$" "$out/out" ||
    fail "rank $rank is not where it belongs"
done
[ "$(sed 's/.* at \([^ ]*\) .*/\1/' "$out/out" | sort -u | wc -l)" -eq 1 ] || fail "the ranks have several masters"

# A failure ends all, with its code. One launcher names the culprit, when it is seen and in the verdict.
# shellcheck disable=SC2016
step 7 -N3 --ntasks-per-node=1 -- -n 2 --grace 1s sh -c 'if [ $RANK = 3 ]; then exit 7; fi; exec sleep 1000'
grep -q '^lrun: note: stopping 5 other workers on 3 nodes ' "$out/err" || fail "not all workers are counted"
[ "$(grep -c '^lrun: error: rank 3 exited with code 7$' "$out/err")" -le 2 ] || fail "several launchers name rank 3"
grep -q '^lrun: note: rank 3 ran for ' "$out/err" || fail "no verdict names the process of rank 3"

# On another number of nodes than there are.
step 125 -N3 --ntasks-per-node=1 -- --num_nodes 2 -n 2 true
grep -q "'--num_nodes 2': Slurm step .* has 3 nodes" "$out/err" || fail "the wrong number of nodes is not explained"

# An endpoint alone means all nodes of the step, also with a launcher for each rank; it has to be on the first node.
for tasks in 1 2; do
  # shellcheck disable=SC2016
  step 0 -N3 --ntasks-per-node=$tasks -- --rdzv-endpoint h1:29555 --output raw sh -c 'echo $RANK/$WORLD_SIZE on $SLURMD_NODENAME'
  for rank in $(seq 0 $((3 * tasks - 1))); do
    grep -qx "$rank/$((3 * tasks)) on h$((rank / tasks + 1))" "$out/out" || fail "rank $rank is not where it belongs"
  done
done
step 125 -N3 --ntasks-per-node=1 -- --rdzv-endpoint h2:29555 true
grep -q "'--rdzv-endpoint' names 'h2', .* node rank 0, which is 'h1'" "$out/err" || fail "the place is not refused"

# A port that others have is changed with the option that keeps the step's place to meet.
"$lab" exec h1 "$lrun" --num_nodes 2 --node-rank 0 --rdzv-endpoint h1:29556 true > /dev/null 2> "$out/others" &
others=$!
wait_for "other launchers" "$lab" exec h1 bash -c ': < /dev/tcp/h1/29556'
step 125 -N3 --ntasks-per-node=1 -- --master-port 29556 true
grep -q "Address already in use; other launchers use it" "$out/err" || fail "the port is not named"
grep -q "^lrun: hint: a different port in '--master-port', on every node, keeps two jobs apart" "$out/err" || fail "the port's option is not named"
kill "$others"
wait "$others" 2> /dev/null || true

# Alone where it was asked for, and in a step of one task.
# shellcheck disable=SC2016
step 0 -N3 --ntasks-per-node=1 -- --standalone -n 1 --output raw sh -c 'echo $WORLD_SIZE'
[ "$(sort -u "$out/out")" = 1 ] || fail "--standalone is not alone"
step 0 -N1 -n1 -- -n 2 true

# A batch script runs it on all nodes of the job, or on as many as it asks for, and gets its status.
# batch WANTED-STATUS SCRIPT
batch() {
  local status=0
  : > "$out/out"
  timeout 90 "$lab" exec h0 sbatch -W -N3 -o "$out/out" --wrap "$2" > "$out/err" 2>&1 || status=$?
  [ "$status" -eq "$1" ] || fail "the batch script '$2' ended with $status, not $1"
}
batch 0 "$lrun -n 2 --output raw sh -c 'echo \$RANK/\$WORLD_SIZE on \$SLURMD_NODENAME'"
for rank in 0 1 2 3 4 5; do
  grep -qx "$rank/6 on h$((rank / 2 + 1))" "$out/out" || fail "rank $rank of the batch script is not where it belongs"
done
! grep -q "anyone who can reach" "$out/out" || fail "lrun made no secret for the launchers that it starts"
batch 0 "$lrun --num_nodes 2 -n 1 --output raw sh -c 'echo \$RANK/\$WORLD_SIZE'"
grep -qx "1/2" "$out/out" || fail "the batch script does not run on two nodes"
batch 0 "$lrun --num_nodes 1 -n 1 --output raw sh -c 'echo \$RANK/\$WORLD_SIZE'"
grep -qx "0/1" "$out/out" || fail "the batch script does not run on its node alone"
batch 9 "$lrun -n 2 sh -c 'if [ \$RANK = 5 ]; then exit 9; fi; exec sleep 1000'"
grep -q "rank 5 exited with code 9" "$out/out" || fail "the batch script's failure is not explained"
batch 0 "$lrun --dry-run -n 2 true"
grep -q "^nodes  *3  *Slurm job" "$out/out" || fail "the plan of the batch script is not that of three nodes"
# begin NUMBER SCRIPT: a step of six workers in the background, which print 'ready' and sleep for NUMBER seconds.
begin() {
  : > "$out/out"  # who has come is counted there, maybe before the next line opens it
  "$lab" exec h0 srun -N3 --ntasks-per-node=1 "$lrun" -n 2 --grace 2s sh -c "$2 echo ready; sleep $1; sleep $1" \
    > "$out/out" 2> "$out/err" &
  srun=$!
  six_are_ready
}
six_are_ready() {
  for _ in $(seq 600); do
    [ "$(grep -c ready "$out/out")" -lt 6 ] || return 0
    sleep 0.1
  done
  fail "not all workers came"
}
# task NODE: the pid of lrun there, as srun started it.
task() {
  # A process that ends meanwhile makes grep fail although it has found others.
  { grep -lsxz -e "$lrun" /proc/[0-9]*/cmdline || true; } | cut -d / -f 3 | while read -r process; do
    if grep -qsxz "SLURM_NODEID=$1" "/proc/$process/environ"; then echo "$process"; fi
  done
}

# The leader, the lrun of the first node, is killed: nothing runs on any node after five seconds.
begin 8765 'trap "" TERM HUP;'
pid=$(task 0)
[[ $pid =~ ^[0-9]+$ ]] || fail "the first node has not one task but: $pid"
kill -KILL "$pid"
nothing_runs 5 -x -e '876[5]'
! wait "$srun" || fail "a step whose head was killed succeeded"
grep -Eq '^lrun: error: .*node h1(: lrun itself was killed| is lost)' "$out/err" || fail "h1 is not named"

# The srun of an lrun in a batch script is killed, and with it the process by which srun itself sees to that, and the lrun
# that waits for srun: Slurm lets the step go on, and the launchers end it, whatever their grace.
# head_is_killed LRUN-OPTION...
head_is_killed() {
  local job process parent first sruns=() heads=()
  : > "$out/out"
  job=$("$lab" exec h0 sbatch --parsable -N3 -o "$out/out" --wrap \
    "$lrun $* -n 2 --grace 100s sh -c 'trap \"\" TERM HUP; echo ready; sleep 6543; sleep 6543'; sleep 1000")
  six_are_ready
  { grep -lsxz -e --overlap /proc/[0-9]*/cmdline || true; } | cut -d / -f 3 > "$out/found"
  while read -r process; do
    grep -qsxz -e "$lrun" "/proc/$process/cmdline" || continue
    parent=$(awk '/^PPid:/ { print $2 }' "/proc/$process/status")
    IFS= read -r -d '' first < "/proc/$parent/cmdline" || true
    if [ "$first" = "$lrun" ]; then heads+=("$parent"); fi
    sruns+=("$process")
  done < "$out/found"
  [ "${#sruns[@]}" -gt 0 ] || fail "there is no srun that lrun has started"
  kill -KILL "${sruns[@]}" "${heads[@]}"
  nothing_runs 5 -x -e '654[3]'
  no_step_runs() { ! "$lab" exec h0 squeue --noheader --steps | grep -q "^ *$job\.[0-9]"; }
  wait_for "the end of the step" no_step_runs
  "$lab" exec h0 squeue --noheader --jobs "$job" --states RUNNING | grep -q . || fail "it is the batch script that ended"
  "$lab" exec h0 scancel "$job"
}
head_is_killed
head_is_killed --num_nodes 2:3

# A node without power is named within twenty seconds, and nothing is left on the others.
unset LRUN_RDZV_CONF
begin 7654 ''
"$lab" hosts off h2 > /dev/null
named h2 20
nothing_runs 5 -x -e '765[4]'
"$lab" exec h0 scancel --user root  # srun waits until Slurm itself sees it
! wait "$srun" || fail "a step that lost a node succeeded"
echo "steps and batch scripts of a Slurm of three nodes: well"
