#!/usr/bin/env bash
# The runs of a real Slurm of two nodes are named by the numbers of their jobs, also one that did not begin.
# usage: slurm_names.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=tests/cluster/slurm_steps.sh
. "$(dirname "$0")/slurm_steps.sh"
need_lab slurm
open_lab
export LRUN_STATE=$out/state
allow_silence
bring_up slurm 2

# shellcheck disable=SC2016 # expanded by the workers
step 0 -N2 --ntasks-per-node=1 -- -n 1 --output raw sh -c 'echo "id $TORCHELASTIC_RUN_ID"'
[ "$(grep -c '^lrun: warning: anyone who can reach h1:[0-9]* can take part' "$out/err")" -eq 1 ] ||
  fail "no warning names the port, or several do"

# The run is found by the number of the job, with the step or without.
job=$(sed -n 's/^id slurm-\([0-9]*\)\.0$/\1/p' "$out/out" | head -n 1)
for name in "$job" "$job.0" "slurm-$job.0"; do
  "$lab" exec h0 "$lrun" report "$name" > "$out/out" 2> "$out/err" || fail "no run is named '$name'"
  grep -q "the run ended: succeeded" "$out/out" || fail "the report of '$name' is not that of the job"
done
"$lab" exec h0 "$lrun" runs > "$out/out" 2> "$out/err"
grep -Eq "^RUN +JOB " "$out/out" || fail "the list of runs has no column for jobs"
grep -q "  $job\.0  " "$out/out" || fail "the list of runs has no job"

# While a node is missing it is named, and a job that is cancelled then leaves a record.
printf '0 %s -n 1 true\n1 sleep 1000\n' "$lrun" > "$out/programs"
"$lab" exec h0 srun -N2 --ntasks-per-node=1 --multi-prog "$out/programs" > "$out/waits" 2>&1 &
waits=$!
wait_for "the first launcher" bash -c "'$lab' exec h0 '$lrun' status | grep -q 'missing: 1 of 2 nodes (node rank 1 on h2)'"
"$lab" exec h0 "$lrun" status > "$out/out" 2> "$out/err"
job=$(sed -n 's/^run .* (job \([0-9]*\)\.0, pid [0-9]* on h1): waiting for .*/\1/p' "$out/out")
[ -n "$job" ] || fail "the status does not name the job and the host that waits"
"$lab" exec h0 scancel --signal TERM "$job"
wait "$waits" || true
"$lab" exec h0 "$lrun" report "$job" > "$out/out" 2> "$out/err" || fail "a job that did not begin left no record"
grep -q "received SIGTERM while waiting for other nodes: .* (node rank 1 on h2)" "$out/out" || fail "it does not tell for what it waited"
