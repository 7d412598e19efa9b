#!/usr/bin/env bash
# Command lines of programs that call torchrun, with lrun under that name. Each is what the named source makes of its
# arguments, with another script and a free port; where it is for several nodes it is started that often.
# usage: torchrun_lines.sh LRUN
set -euo pipefail
lrun=$(realpath "$1")
command -v python3 > /dev/null || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && ln -s "$lrun" "$work/bin/torchrun"
export PATH=$work/bin:$PATH LRUN_STATE=$work/state TMPDIR=$work
cd "$work"
cat > train.py << 'PYTHON'
import os, sys
e = os.environ
line = f"rank {e['RANK']}/{e['WORLD_SIZE']} local {e['LOCAL_RANK']}/{e['LOCAL_WORLD_SIZE']} node {e['GROUP_RANK']}"
os.write(1, f"{line} role {e['ROLE_NAME']} {' '.join(sys.argv[1:])}\n".encode())
PYTHON

# A port below those that the kernel gives to connections.
free_port() {
  python3 - << 'PYTHON'
import os, socket
for port in range(20000 + os.getpid() * 7919 % 10000, 32000):
    try:
        with socket.socket() as probe:
            probe.bind(("", port))
        print(port)
        break
    except OSError:
        pass
PYTHON
}

# start NODES COMMAND: whether all end well
start() {
  local nodes=$1 command=$2 node pids=() code failed=0
  export PORT
  PORT=$(free_port)
  for ((node = 0; node < nodes; node++)); do
    NODE_RANK=$node timeout 120 bash -c "$command" > "out.$node" 2> "err.$node" &
    pids+=($!)
  done
  for ((node = 0; node < nodes; node++)); do
    code=0
    wait "${pids[node]}" || code=$?
    if [ "$code" != 0 ] && [ "$failed" = 0 ]; then
      failed=$code
      kill "${pids[@]:node + 1}" 2> /dev/null || true # they would wait for it
    fi
  done
  return "$failed"
}

# show NODES COMMAND: what all nodes print, sorted, without prefixes; COMMAND finds $NODE_RANK and $PORT. Somebody else
# may take that port before lrun does: then with another.
show() {
  local tries=0 code
  while code=0 && { start "$@" || code=$?; } && [ "$code" != 0 ]; do
    tries=$((tries + 1))
    if [ "$tries" = 5 ] || ! grep -qi 'address already in use' err.*; then
      echo "FAILED: '$2' ended with $code"
      cat out.* err.*
      exit 1
    fi
  done
  sort -o shown <(cat out.* | sed 's/^.*\(rank [0-9]\)/\1/; s/ *$//')
  rm out.* err.*
}

# expect LINE...: nothing else was shown
expect() {
  printf '%s\n' "$@" | sort > expected
  diff expected shown || { echo "FAILED: line $((BASH_LINENO[0]))"; exit 1; }
}

two=("rank 0/2 local 0/2 node 0" "rank 1/2 local 1/2 node 0")
four=("rank 0/4 local 0/2 node 0" "rank 1/4 local 1/2 node 0" "rank 2/4 local 0/2 node 1" "rank 3/4 local 1/2 node 1")

# torchx 0.7.0, torchx/components/dist.py, ddp(): dist.ddp -j 1x2 --script train.py -- --epochs 1. The role is empty.
show 1 "torchrun --rdzv_backend c10d --rdzv_endpoint localhost:0 --rdzv_id train-q5xkg1 --nnodes 1 --nproc_per_node 2 \
  --tee 3 --role '' train.py --epochs 1"
expect "${two[@]/%/ role  --epochs 1}"

# The same with -j 2x2 -m train, one bash a node.
# shellcheck disable=SC2016 # expanded by that bash
show 2 'torchrun --rdzv_backend c10d --rdzv_endpoint ${TORCHX_RANK0_HOST:=localhost}:$PORT --rdzv_id train-q5xkg1 \
  --nnodes 2 --nproc_per_node 2 --tee 3 --role "" -m train'
expect "${four[@]/%/ role}"

# torchx until 0.1.2, the same function, and ColossalAI before torch 1.10: 'python -m torch.distributed.run' is torchrun.
show 1 "torchrun --rdzv_backend c10d --rdzv_endpoint localhost:29500 --rdzv_id train --nnodes 1 --nproc_per_node 2 \
  --max_restarts 2 train.py"
expect "${two[@]/%/ role default}"

# Ray Train's local mode, whose workers are those of a torchrun in a task of Ray, one a node: ray-project/ray, release/
# train_tests/local_mode/torch_local_mode_launcher.py, _torch_run_launch(); its first version, then that of today.
# shellcheck disable=SC2016
show 2 'torchrun --nnodes=2 --nproc-per-node=2 --node_rank=$NODE_RANK --master_addr=127.0.0.1 --master_port=$PORT train.py'
expect "${four[@]/%/ role default}"
# shellcheck disable=SC2016
show 2 'torchrun --nnodes=2 --nproc-per-node=2 --node_rank=$NODE_RANK --rdzv_backend=c10d \
  --rdzv_endpoint=127.0.0.1:$PORT --rdzv_id=local_mode_job $PWD/train.py'
expect "${four[@]/%/ role default}"

# LLaMA-Factory, src/llamafactory/launcher.py, launch(): 'llamafactory-cli train' with NNODES=2, then with RDZV_ID and
# MIN_NNODES.
# shellcheck disable=SC2016
show 2 'torchrun --nnodes 2 --node_rank $NODE_RANK --nproc_per_node 2 --master_addr 127.0.0.1 --master_port $PORT train.py a.yaml'
expect "${four[@]/%/ role default a.yaml}"
# shellcheck disable=SC2016
show 2 'torchrun --nnodes 2:2 --nproc-per-node 2 --rdzv-id job --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:$PORT \
  --max-restarts 0 train.py a.yaml'
expect "${four[@]/%/ role default a.yaml}"

# ColossalAI, colossalai/cli/launcher/run.py, get_launch_command().
# shellcheck disable=SC2016
show 1 'torchrun --nproc_per_node=2 --nnodes=1 --node_rank=0 --master_addr=127.0.0.1 --master_port=$PORT train.py --lr 1'
expect "${two[@]/%/ role default --lr 1}"

# torchtitan, run_train.sh: only rank 0 is shown.
show 1 'torchrun --nproc_per_node=2 --rdzv_backend c10d --rdzv_endpoint="localhost:0" --local-ranks-filter 0 --role rank \
  --tee 3 -m train --module llama3 --config llama3_debugmodel'
expect "rank 0/2 local 0/2 node 0 role rank --module llama3 --config llama3_debugmodel"
