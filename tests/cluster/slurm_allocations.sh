#!/usr/bin/env bash
# lrun in the allocations that a Slurm of three nodes gives: the shell of salloc, on the login node or inside of the job,
# several runs in one job, and GPUs as people ask for them.
# usage: slurm_allocations.sh LRUN FAKE-NVML-FOLDER
set -euo pipefail
lrun=$1
driver=(env LD_LIBRARY_PATH="$2" FAKE_NVML_GPUS=4)
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab slurm
open_lab
allow_silence
bring_up slurm 3 --gpus 4
fail() { echo "FAILED: $1"; tail -n 30 "$out/out" "$out/err"; exit 1; }

# run WANTED-STATUS COMMAND...: on the login node
run() {
  local wanted=$1 status=0
  shift
  timeout 90 "$lab" exec h0 "$@" > "$out/out" 2> "$out/err" < /dev/null || status=$?
  [ "$status" -eq "$wanted" ] || fail "'$*' ended with $status, not $wanted"
}
# says TEXT: exactly one line is this one.
says() { [ "$(grep -cx "$1" "$out/out")" -eq 1 ] || fail "not one line is '$1'"; }
# script TEXT: a program of these lines, as the jobs' scripts.
script() { printf '#!/bin/bash\n%s\n' "$1" > "$out/script" && chmod +x "$out/script"; }

# shellcheck disable=SC2016 # expanded by the workers
show='echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME"'
script "'$lrun' --num_nodes 1 --devices 1 --output raw sh -c '$show'"
run 0 salloc -N2 "$out/script"
says "rank 0 of 1 on h1"
script "'$lrun' --devices 1 --output raw sh -c '$show'"
run 0 salloc -N2 "$out/script"
for rank in 0 1; do says "rank $rank of 2 on h$((rank + 1))"; done
run 0 salloc -N1 "$out/script"
says "rank 0 of 1 on h1"

# Many sites start that shell on the job's first node, where it is a step of one task.
# shellcheck disable=SC2016 # expanded by Slurm
printf '%s\n' LaunchParameters=use_interactive_step 'InteractiveStepOptions="--interactive --preserve-env $SHELL"' \
  >> "$LAB/slurm/etc/slurm.conf"
run 0 scontrol reconfigure
run 0 env SHELL="$out/script" salloc -N3
for rank in 0 1 2; do says "rank $rank of 3 on h$((rank + 1))"; done

# As many workers a node as the job asked for tasks there, where nothing else says how many.
script "'$lrun' --output raw sh -c '$show'"
run 0 sbatch -W -N2 --ntasks-per-node=2 -o "$out/of_job" "$out/script"
cat "$out/of_job" >> "$out/out"
for rank in 0 1 2 3; do says "rank $rank of 4 on h$((rank / 2 + 1))"; done

# Ctrl-C stops the run as it does without Slurm: one signal, the grace, the verdict. srun has the process of lrun.
# shellcheck disable=SC2016 # expanded by the workers
training='trap "echo saved \$RANK; exit 0" INT; echo "rank $RANK trains"; while :; do sleep 0.1; done'
script "echo \$\$ > '$out/pid'
exec '$lrun' --devices 1 --grace 60s --output raw sh -c '$training'"
timeout 90 "$lab" exec h0 salloc -N2 "$out/script" > "$out/out" 2> "$out/err" < /dev/null &
allocated=$!
trains() { grep -qx 'rank 0 trains' "$out/out" && grep -qx 'rank 1 trains' "$out/out"; }
wait_for "run in an allocation" trains
"$lab" exec h0 kill -INT "$(cat "$out/pid")"
status=0
wait "$allocated" || status=$?
[ "$status" -eq 130 ] || fail "an interrupted run in an allocation ended with $status, not 130"
for rank in 0 1; do says "saved $rank"; done
grep -Eq "^lrun: note: (node h2: )?received SIGINT; stopping [12] worker" "$out/err" || fail "nobody says why the run ends"

# Two runs at once in one job do not meet each other.
script "for name in a b; do '$lrun' --devices 1 --output raw sh -c \"echo \$name \\\$RANK of \\\$WORLD_SIZE\" & done
wait -n && wait -n"
run 0 sbatch -W -N2 -o "$out/of_job" "$out/script"
cat "$out/of_job" >> "$out/out"
for line in "a 0 of 2" "a 1 of 2" "b 0 of 2" "b 1 of 2"; do says "$line"; done

# shellcheck disable=SC2016 # expanded by the workers
gpus='echo "rank $RANK of $WORLD_SIZE local $LOCAL_RANK sees $CUDA_VISIBLE_DEVICES uses $LRUN_DEVICES"'
# In a batch script a GPU a task is a GPU a rank, and one launcher a node has all of them.
script "$(printf '%q ' "${driver[@]}")'$lrun' --devices auto --output raw sh -c '$gpus'"
run 0 sbatch -W -N2 --ntasks-per-node=2 --gpus-per-task=1 --cpus-per-task=2 -o "$out/of_job" "$out/script"
cat "$out/of_job" >> "$out/out"
for rank in 0 1 2 3; do says "rank $rank of 4 local $((rank % 2)) sees 0,1 uses cuda:$((rank % 2))"; done

# A launcher a rank: each is shown its own GPU, or all of them.
run 0 srun -N2 --ntasks-per-node=2 --gpus-per-task=1 "${driver[@]}" "$lrun" --output raw sh -c "$gpus"
for rank in 0 1 2 3; do says "rank $rank of 4 local 0 sees $((rank % 2)) uses cuda:0"; done
run 0 srun -N2 --ntasks-per-node=2 --gres=gpu:2 "${driver[@]}" "$lrun" --output raw sh -c "$gpus"
for rank in 0 1 2 3; do says "rank $rank of 4 local $((rank % 2)) sees 0,1 uses cuda:$((rank % 2))"; done

# GPUs that were asked for, and that nobody would use.
run 125 srun -N2 --ntasks-per-node=1 --gpus-per-node=4 "${driver[@]}" "$lrun" true
grep -q "write 'lrun --devices auto …' for all of them, or '--devices 1'" "$out/err" || fail "idle GPUs are not explained"
run 125 srun -N2 --ntasks-per-node=2 --gpus-per-node=4 "${driver[@]}" "$lrun" true
grep -q "write 'srun --nodes=2 --ntasks=8 --ntasks-per-node=4 lrun …' for one rank per GPU" "$out/err" || fail "2 idle GPUs are not explained"
run 0 srun -N2 --ntasks-per-node=2 --gpus-per-node=4 "${driver[@]}" "$lrun" --devices 2 true
echo "lrun in allocations of a Slurm of three nodes: well"
