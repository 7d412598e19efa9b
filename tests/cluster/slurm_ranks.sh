#!/usr/bin/env bash
# `srun --ntasks-per-node=N lrun …` on a real Slurm of three nodes: each lrun is the launcher of one rank of one run.
# usage: slurm_ranks.sh LRUN HOROVOD_WORKER
set -euo pipefail
lrun=$1 horovod_worker=$2
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=tests/cluster/slurm_steps.sh
. "$(dirname "$0")/slurm_steps.sh"
need_lab slurm
open_lab
allow_silence
bring_up slurm 3

# is RANK TEXT: exactly one line of the workers is this rank's.
is() { [ "$(grep -cx "rank $1 $2" "$out/out")" -eq 1 ] || fail "rank $1 is not '$2'"; }

# shellcheck disable=SC2016 # expanded by the workers
show='echo "rank $RANK of $WORLD_SIZE local $LOCAL_RANK of $LOCAL_WORLD_SIZE node $GROUP_RANK of $GROUP_WORLD_SIZE on $SLURMD_NODENAME"
  echo "master $MASTER_ADDR:$MASTER_PORT of $TORCHELASTIC_RUN_ID"'
step 0 -N3 --ntasks-per-node=2 -- --output raw sh -c "$show"
for rank in 0 1 2 3 4 5; do
  is $rank "of 6 local $((rank % 2)) of 2 node $((rank / 2)) of 3 on h$((rank / 2 + 1))"
done
[ "$(grep '^master' "$out/out" | sort -u | wc -l)" -eq 1 ] || fail "the ranks have several stores, or none"

# Unequal nodes, and ranks that go round them.
step 0 -N3 -n5 -m cyclic -- --output raw sh -c "$show"
is 0 "of 5 local 0 of 3 node 0 of 3 on h1"
is 1 "of 5 local 0 of 1 node 1 of 3 on h2"
is 2 "of 5 local 0 of 1 node 2 of 3 on h3"
is 3 "of 5 local 1 of 3 node 0 of 3 on h1"
is 4 "of 5 local 2 of 3 node 0 of 3 on h1"

# Horovod's ranks meet in the world, on their node, and with those of the same local rank.
step 0 -N3 -n5 -m cyclic -- --strategy horovod --output raw "$horovod_worker"
result() { [ "$(grep -cx "result rank=$1 size=5 $2" "$out/out")" -eq 1 ] || fail "rank $1 of Horovod is not '$2'"; }
result 0 "local=0/3 cross=0/3 host=h1-0 sums=10,7,3 set=6"
result 1 "local=0/1 cross=1/3 host=h2 sums=10,1,3 set=none"
result 2 "local=0/1 cross=2/3 host=h3 sums=10,2,3 set=6"
result 3 "local=1/3 cross=0/1 host=h1-0 sums=10,7,3 set=none"
result 4 "local=2/3 cross=0/1 host=h1-0 sums=10,7,4 set=6"

step 0 -N1 -n3 -- --output raw sh -c "$show"
for rank in 0 1 2; do is $rank "of 3 local $rank of 3 node 0 of 1 on h1"; done

# A heterogeneous job: the first component's nodes count first, whatever they are called.
# het WANTED-STATUS COMMAND: of a batch script of one task on h3 and two on each of h1 and h2.
het() {
  local status=0
  printf '#!/bin/bash\n%s\n' "$2" > "$out/script"
  timeout 90 "$lab" exec h0 sbatch -W -o "$out/out" -N1 -n1 -w h3 : -N2 --ntasks-per-node=2 "$out/script" \
    > "$out/err" 2>&1 || status=$?
  [ "$status" -eq "$1" ] || fail "the script '$2' of two components ended with $status, not $1"
}
het 0 "srun --het-group=0-1 $lrun --output raw sh -c '$show'"
is 0 "of 5 local 0 of 1 node 0 of 3 on h3"
for rank in 1 2 3 4; do
  node=$(((rank + 1) / 2))
  is $rank "of 5 local $(((rank - 1) % 2)) of 2 node $node of 3 on h$node"
done
het 125 "$lrun true"
grep -q "write 'srun --het-group=0-1 lrun …'" "$out/out" || fail "a job of two components is not explained"

# 'srun A : B' makes such a job and its step at once. Each of A and B may have one launcher a node.
# direct TASKS OPTION...: of lrun on each of h1 and h2, behind one on h3
direct() {
  local tasks=$1 status=0
  shift
  timeout 90 "$lab" exec h0 srun -N1 -n1 -w h3 "$lrun" "$@" --output raw sh -c "$show" : \
    -N2 --ntasks-per-node="$tasks" -w h1,h2 "$lrun" "$@" --output raw sh -c "$show" > "$out/out" 2> "$out/err" ||
    status=$?
  [ "$status" -eq 0 ] || fail "'srun lrun $* : lrun $*' ended with $status"
}
direct 2
is 0 "of 5 local 0 of 1 node 0 of 3 on h3"
is 2 "of 5 local 1 of 2 node 1 of 3 on h1"
is 4 "of 5 local 1 of 2 node 2 of 3 on h2"
direct 1 -n 2
for rank in 0 1 2 3 4 5; do
  node=$((rank / 2))
  is $rank "of 6 local $((rank % 2)) of 2 node $node of 3 on h$((node == 0 ? 3 : node))"
done

status=0
timeout 90 "$lab" exec h0 srun -N1 -n1 -w h3 "$lrun" --rdzv-conf join_timeout=2 true : -N1 -n1 -w h1 true \
  > "$out/out" 2> "$out/err" || status=$?
[ "$status" -eq 125 ] || fail "a component without lrun ended with $status"
grep -q "missing: 1 of 2 nodes (node rank 1 on h1)" "$out/err" || fail "nobody says which node is missing"
grep -q "each of them has to run this lrun" "$out/err" || fail "a component without lrun is not explained"

# One plan for all of them, that of the first task.
step 0 -N3 --ntasks-per-node=2 -- --dry-run true
[ "$(grep -c '^world size  *6$' "$out/out")" -eq 1 ] || fail "not one plan for six ranks"
grep -q "^rank  *0, local rank 0 of 2 on node 0 " "$out/out" || fail "it is not the plan of rank 0"

# One that fails ends all with its code. One launcher tells it, when it is seen and in the verdict.
# shellcheck disable=SC2016
step 7 -N3 --ntasks-per-node=2 -- --grace 1s sh -c 'if [ $RANK = 3 ]; then echo "no more"; exit 7; fi; exec sleep 1000'
[ "$(grep -c '^lrun: error: rank 3 .*exit[a-z ]* 7' "$out/err")" -le 2 ] ||
  fail "several verdicts name rank 3"
grep -q '^lrun: note: rank 3 ran for ' "$out/err" || fail "no verdict names the process of rank 3"
grep -q 'no more' "$out/err" || fail "the verdict lacks what rank 3 said last"

# A launcher that is killed is named with its rank.
# shellcheck disable=SC2016
step 125 -N3 --ntasks-per-node=2 -- --grace 1s sh -c 'if [ $RANK = 3 ]; then kill -9 $PPID; fi; exec sleep 1000'
grep -q 'node h2 (rank 3) is lost' "$out/err" || fail "nobody says that the launcher of rank 3 is gone"

# All begin again together.
# shellcheck disable=SC2016
step 0 -N3 --ntasks-per-node=2 -- --grace 1s --max-restarts 1 --output raw sh -c '
  if [ $RANK = 4 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exit 3; fi
  if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exec sleep 1000; fi
  echo "rank $RANK again"'
for rank in 0 1 2 3 4 5; do is $rank again; done

# What makes no sense.
step 125 -N3 --ntasks-per-node=2 -- -n 2 true
grep -q "write 'srun --nodes=3 --ntasks=3 --ntasks-per-node=1 lrun -n 2 …'" "$out/err" || fail "two launchers of two ranks are not explained"
step 125 -N3 --ntasks-per-node=2 -- --strategy ddp2 true
grep -q "write 'srun --nodes=3 --ntasks=3 --ntasks-per-node=1 lrun --devices 2 …'" "$out/err" || fail "ddp2 of two tasks is not explained"
step 125 -N3 --ntasks-per-node=2 -- --num_nodes 3 --rdzv-endpoint h1:29555 -n 2 true
grep -q "write 'srun --nodes=3 --ntasks=3 --ntasks-per-node=1 lrun …'" "$out/err" || fail "two launchers a node are not explained"
step 125 -N3 --ntasks-per-node=2 -- --num_nodes 2 true
grep -q "'--num_nodes 2': Slurm step .* has 3 nodes" "$out/err" || fail "the wrong number of nodes is not explained"
echo "a launcher a rank, in steps of a Slurm of three nodes: well"
