#!/usr/bin/env bash
# lrun where others start it once a node or once a rank: Open MPI and MPICH for real on two hosts, and pods with the variables of
# Kubeflow, Volcano, SageMaker and others, in which lrun is PID 1.
# usage: managers.sh LRUN
set -euo pipefail
lrun=$1
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=tests/cluster/manager_variables.sh
. "$(dirname "$0")/manager_variables.sh"
need_lab hosts
open_lab
bring_up hosts 2
fail() { echo "FAILED: $1"; tail -n 30 "$out/out" "$out/err"; exit 1; }

# run WANTED-STATUS COMMAND...
run() {
  local wanted=$1 status=0
  shift
  # MPICH's mpirun dies of SIGPIPE (141) when all it has started ends while it still talks to the hosts. Open MPI's ends a job in
  # which a program on another host has failed, and may lose what that one said.
  for _ in 1 2 3 4 5; do
    status=0
    "$@" > "$out/out" 2> "$out/err" || status=$?
    [ "$status" -eq 141 ] || { [ "$status" -eq 125 ] && ! grep -q '^lrun: ' "$out/err"; } || break
  done
  [ "$status" -eq "$wanted" ] || fail "'$*' ended with $status, not $wanted"
}

# shellcheck disable=SC2016 # expanded by the workers
show='echo "rank $RANK/$WORLD_SIZE local $LOCAL_RANK node $GROUP_RANK"'
# two_nodes WHO: two nodes of two workers have shown themselves.
two_nodes() {
  local rank
  for rank in 0 1 2 3; do
    grep -qx "rank $rank/4 local $((rank % 2)) node $((rank / 2))" "$out/out" || fail "$1: rank $rank is not there"
  done
}

if command -v mpirun.openmpi > /dev/null; then
  mpirun=(timeout 120 "$lab" exec h1 mpirun.openmpi --allow-run-as-root -H "h1:2,h2:2")
  run 0 "${mpirun[@]}" --map-by ppr:1:node -x MASTER_ADDR=h1 "$lrun" -n 2 --output raw sh -c "$show"
  two_nodes "Open MPI with MASTER_ADDR"
  run 0 "${mpirun[@]}" --map-by ppr:1:node "$lrun" --rdzv-endpoint h1:29511 -n 2 --output raw sh -c "$show"
  two_nodes "Open MPI with --rdzv-endpoint"
  run 125 "${mpirun[@]}" --map-by ppr:1:node "$lrun" -n 2 true
  grep -q "Open MPI .*2 launchers.* rendezvous endpoint" "$out/err" || fail "who misses an address?"
  run 0 "${mpirun[@]}" -np 4 -x MASTER_ADDR=h1 "$lrun" --output raw sh -c "$show"
  two_nodes "Open MPI with a task a rank"
  printf '%s\n' h1 h1 h2 h2 > "$out/nodes"
  run 0 env PBS_NODEFILE="$out/nodes" "${mpirun[@]}" -x PBS_NODEFILE -np 4 "$lrun" --output raw sh -c "$show"
  two_nodes "Open MPI with a list of hosts"
  printf '%s\n' h2 h2 h1 h1 > "$out/nodes"
  run 125 env PBS_NODEFILE="$out/nodes" "${mpirun[@]}" -x PBS_NODEFILE -np 4 "$lrun" true
  [ "$(grep -c "PBS_NODEFILE begins with 'h2', but Open MPI has started node rank 0 on 'h1'" "$out/err")" = 1 ] ||
    fail "a list that begins with another host is not explained"
  run 0 "${mpirun[@]}" -np 2 "$lrun" --output raw sh -c "$show"
  grep -qx "rank 1/2 local 1 node 0" "$out/out" || fail "Open MPI: two tasks on one host do not meet"
  # shellcheck disable=SC2016 # expanded by the workers
  run 7 "${mpirun[@]}" -np 4 -x MASTER_ADDR=h1 "$lrun" sh -c '[ $RANK != 2 ] || exit 7; exec sleep 1000'
  [ "$(grep -c 'lrun: error: rank 2 exited with code 7' "$out/err")" = 1 ] || fail "Open MPI: not one verdict"
  run 125 "${mpirun[@]}" -np 4 -x MASTER_ADDR=h1 "$lrun" -n 2 true
  grep -q "write 'mpirun --map-by ppr:1:node lrun -" "$out/err" || fail "two workers of a task are not explained"
  run 125 "${mpirun[@]}" -np 4 --map-by node -x MASTER_ADDR=h1 "$lrun" true
  grep -q "lrun cannot tell their nodes" "$out/err" || fail "ranks that alternate between hosts are not explained"
else
  echo "not tested: Open MPI is not installed"
fi

if command -v mpirun.mpich > /dev/null; then
  mpirun=(timeout 120 "$lab" exec h1 mpirun.mpich -launcher ssh -hosts "h1,h2")
  run 0 "${mpirun[@]}" -ppn 1 -np 2 -genv MASTER_ADDR h1 "$lrun" -n 2 --output raw sh -c "$show"
  two_nodes "MPICH with MASTER_ADDR"
  run 0 "${mpirun[@]}" -ppn 2 -np 4 -genv MASTER_ADDR h1 "$lrun" --output raw sh -c "$show"
  two_nodes "MPICH with a task a rank"
  run 0 "${mpirun[@]}" -ppn 2 -np 2 "$lrun" --output raw sh -c "$show"
  grep -qx "rank 1/2 local 1 node 0" "$out/out" || fail "MPICH: two tasks on one host do not meet"
  run 125 "${mpirun[@]}" -ppn 2 -np 4 -genv MASTER_ADDR h1 "$lrun" -n 2 true
  grep -q "write 'mpiexec -ppn 1 lrun -" "$out/err" || fail "two workers of a task are not explained"
else
  echo "not tested: MPICH is not installed"
fi

# pods KIND COMMAND...: COMMAND as the first process of two pods of a KIND, on h1 and h2, with no other variables. Every
# pod has a service's variable; that is how a PyTorchJob is told from somebody's own RANK.
pods() {
  local kind=$1 index status=0 pids=() variables
  shift
  for index in 0 1; do
    mapfile -t variables < <(pod_variables "$kind" $index)
    timeout 120 "$lab" exec "h$((index + 1))" unshare --pid --fork --kill-child=KILL --mount-proc \
      env -i PATH="$PATH" HOME="$HOME" TMPDIR="$LAB/local" KUBERNETES_SERVICE_HOST=10.0.0.1 "${variables[@]}" "$@" &
    pids+=($!)
  done
  for index in 0 1; do wait "${pids[$index]}" || status=$?; done
  return $status
}
pod_names >> "$LAB/etc-hosts"
for kind in kubeflow kubeflow-old kubeflow-elastic trainer volcano sagemaker vertex azureml aws-batch; do
  run 0 pods "$kind" "$lrun" --devices 2 --output raw sh -c "$show"
  two_nodes "$kind"
done
# Older operators tell the master that it is on localhost.
# shellcheck disable=SC2016 # expanded in the pod
run 0 pods kubeflow-old sh -c 'if [ $RANK = 0 ]; then export MASTER_ADDR=localhost; fi; exec "$@"' \
  sh "$lrun" --devices 2 --output raw sh -c "$show"
two_nodes "kubeflow-old with a master on localhost"
# An indexed Job says the rank alone; the user says how many there are, and where the first is.
run 0 pods jobset env MASTER_ADDR=job-node-0-0.job "$lrun" --num_nodes 2 --devices 2 --output raw sh -c "$show"
two_nodes "an indexed Job"

# Where a manager only lists hosts, lrun says what to type.
for kind in lsf pbs torque sge; do
  mapfile -t variables < <(script_variables "$kind" "$out")
  script=(timeout 120 env -i PATH="$PATH" HOME="$HOME" TMPDIR="$out" "${variables[@]}")
  run 125 "${script[@]}" "$lrun" -n 2 true
  grep -q "gives this job 2 hosts ('h1' is the first) and starts lrun only on this one" "$out/err" ||
    fail "$kind: an idle host is not explained"
  run 0 "${script[@]}" "$lrun" --num_nodes 1 -n 2 true
done
echo "two nodes of Open MPI, MPICH and pods: well"
