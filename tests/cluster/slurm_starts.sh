#!/usr/bin/env bash
# lrun in jobs of a Slurm of two nodes, of which one lacks something that the other has: the run ends soon, and says which
# node it is and what it lacks. usage: slurm_starts.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab slurm
open_lab
allow_silence
bring_up slurm 2
fail() { echo "FAILED: $1"; tail -n 30 "$out/out"; exit 1; }

# batch WANTED-STATUS SCRIPT [SBATCH-OPTION...]: of both nodes, unless the options say something else
batch() {
  local wanted=$1 script=$2 status=0
  shift 2
  : > "$out/out"
  timeout 120 "$lab" exec h0 sbatch -W -N2 -o "$out/out" "$@" --wrap "$script" > "$out/said" 2>&1 || status=$?
  [ "$status" -eq "$wanted" ] || fail "the batch script '$script' ended with $status, not $wanted"
}
# says PATTERN: exactly one line of the job's output is like that.
says() { [ "$(grep -Ec "$1" "$out/out")" -eq 1 ] || fail "not one line is like '$1'"; }
never_says() { ! grep -Eq "$1" "$out/out" || fail "some line is like '$1'"; }

# Things that only the first node has.
own=$LAB/own/h1 seen=$LAB/local
mkdir "$own/folder"
cp "$lrun" "$own/lrun"
printf '#!/bin/sh\necho runs\n' | tee "$own/train" > "$own/folder/train"
chmod +x "$own/train" "$own/folder/train"

batch 125 "'$seen/lrun' --devices 1 echo runs"
says "^srun: error: h2: task 1: Exited with exit code 2$"
says "^lrun: error: lrun on h2 ended before the run had begun: Exited with exit code 2$"
says "^lrun: hint: .*'$seen/lrun' has to start on every node of the job$"
never_says "runs$"

batch 127 "'$lrun' --devices 1 '$seen/train'"
says "^lrun: error: node h2: cannot run '$seen/train': No such file or directory$"
says "^lrun: hint: check the path$"
never_says "runs$"

# Slurm goes to /tmp on the other node, where something else may have the program's name.
batch 125 "cd '$seen/folder' && '$lrun' --devices 1 ./train"
says "^lrun: error: the run was stopped: node h2: cannot enter '$seen/folder', where lrun was started: No such file"
never_says "runs$"
batch 0 "cd '$seen/folder' && '$lrun' --chdir '$out' --devices 1 --output raw echo runs"
[ "$(grep -cx runs "$out/out")" -eq 2 ] || fail "a folder that nothing depends on was missed"

# A request that no node can carry out is told once.
batch 125 "'$lrun' --devices -1 true"
says "^lrun: error: "
says "^lrun: hint: "
batch 125 "srun --ntasks=2 '$lrun' --devices -1 true"
says "^lrun: error: "

# A warning that follows from the line is told once, and srun's own note, which means nothing, never.
batch 0 "'$lrun' --devices 1 --redirects 3 --log-dir /dev/null true"
says "^lrun: warning: '--redirects' hides nothing"
never_says "lacks support for cpu binding"

# Each task of --multi-prog has a line of its own.
printf '0 %s --devices 1 true\n1 %s --devices 1 --num_nodes 3 true\n' "$lrun" "$lrun" > "$out/lines"
batch 143 "timeout -s KILL 60 srun --ntasks=2 --kill-on-bad-exit --multi-prog '$out/lines'"
says "^lrun: error: '--num_nodes 3': Slurm step .* has 2 nodes$"

# Tasks that start nothing.
batch 0 "'$lrun' --output raw sh -c 'echo \$WORLD_SIZE'" -n3
[ "$(grep -cx 2 "$out/out")" -eq 2 ] || fail "a job of two nodes and three tasks has not two workers"
says "^lrun: note: this job has 3 tasks, and lrun starts one worker on each of 2 nodes; .* 'srun lrun …'$"
echo "starts on a Slurm of which one node lacks something: well"
