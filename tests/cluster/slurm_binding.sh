#!/usr/bin/env bash
# Which CPUs workers get with --bind on a Slurm that gives its jobs CPUs of their own (task/affinity): none of another job.
# usage: slurm_binding.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab slurm
[ "$(nproc)" -ge 2 ] || skip "this machine has one CPU, which two jobs cannot share out"
open_lab
allow_silence
bring_up slurm 2 --cpus "$(nproc)"
fail() { echo "FAILED: $1"; tail -n 30 "$out"/*; exit 1; }

# The lab's own Slurm binds nobody.
sed -i 's|^TaskPlugin=.*|TaskPlugin=task/affinity|' "$LAB/slurm/etc/slurm.conf"
for host in h0 h1 h2; do
  "$lab" hosts off "$host" > /dev/null
  "$lab" hosts on "$host" > /dev/null
done
two_are_idle() { [ "$("$lab" exec h0 sinfo --noheader --partition debug --states idle --format %D)" = 2 ]; }
wait_for "Slurm with task/affinity" two_are_idle

# run WANTED-STATUS COMMAND...: on the login node
run() {
  local wanted=$1 status=0
  shift
  timeout 90 "$lab" exec h0 "$@" > "$out/out" 2> "$out/err" < /dev/null || status=$?
  [ "$status" -eq "$wanted" ] || fail "'$*' ended with $status, not $wanted"
}
of_itself="sed -n 's/^Cpus_allowed_list:[[:space:]]*/cpus /p' /proc/self/status"

# Each of two tasks of a node has a CPU of its own, and so has the rank of its launcher.
run 0 srun -N1 -w h1 -n2 --cpu-bind=cores sh -c "$of_itself"
sort -u "$out/out" > "$out/of_tasks"
[ "$(wc -l < "$out/of_tasks")" -eq 2 ] || skip "task/affinity binds nobody on this machine"
run 0 srun -N1 -w h1 -n2 --cpu-bind=cores "$lrun" --bind core --output raw sh -c "$of_itself"
sort "$out/out" | cmp -s - "$out/of_tasks" || fail "the ranks have not the CPUs of their tasks"

# Another job has a CPU of h1: the rank there gets the one that Slurm gives, also where lrun itself starts srun.
other=$("$lab" exec h0 sbatch --parsable -N1 -w h1 -n1 -o "$out/of_other" --wrap "$of_itself; sleep 1000")
other_runs() { grep -q cpus "$out/of_other"; }
wait_for "the other job" other_runs
run 0 srun -N1 -w h1 -n1 sh -c "$of_itself"
given=$(cat "$out/out")
[ "$given" != "$(cat "$out/of_other")" ] || skip "task/affinity keeps two jobs on one CPU of this machine"
printf '#!/bin/bash\n%s\n' "'$lrun' --devices \"\$1\" --bind core --output raw sh -c 'echo \"rank \$RANK \$(sh $out/show)\"'" \
  > "$out/script"
printf '%s\n' "$of_itself" > "$out/show"
# batch WANTED-STATUS DEVICES
batch() {
  run "$1" sbatch -W -N2 -w h1,h2 --ntasks-per-node=1 -o "$out/of_job" "$out/script" "$2"
}
batch 0 1
grep -qx "rank 0 $given" "$out/of_job" || fail "rank 0 has not the CPU of its job: $given"
batch 125 2
grep -q "'--bind core' needs a core for each device, and NUMA node [0-9]* has 1 for 2" "$out/of_job" ||
  fail "two ranks on the one CPU of a job are not explained"
"$lab" exec h0 scancel "$other"
echo "--bind among the CPUs that Slurm gives: well"
