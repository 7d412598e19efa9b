# shellcheck shell=bash
# What managers set for jobs of two nodes, h1 and h2, for managers.sh. Kinds of pods with one process a node:
#
#   kubeflow           PyTorchJob whose WORLD_SIZE counts processes
#   kubeflow-old       the same of older operators: WORLD_SIZE counts pods
#   kubeflow-elastic   PyTorchJob with a range of nodes
#   trainer            Kubeflow Trainer 2
#   jobset             an indexed Job, in which a pod knows no more than its number
#   volcano            with the plugins env, svc and pytorch
#   sagemaker, vertex, azureml, aws-batch

lines() { printf '%s\n' "$@"; }

# pod_names: lines of /etc/hosts, as these managers make names.
pod_names() {
  echo "198.18.0.11 job-master-0 job-worker-0 job-node-0-0.job job-master-0.job algo-1 wp0-0"
  echo "198.18.0.12 job-worker-1 job-node-0-1.job job-worker-0.job algo-2 wp1-0"
}

# pod_variables KIND INDEX: a line for each.
pod_variables() {
  local torch=(MASTER_PORT=23456 WORLD_SIZE=2 RANK="$2")
  case $1 in
    kubeflow) lines MASTER_ADDR=job-master-0 "${torch[@]}" PET_NNODES=2 PET_NPROC_PER_NODE=1 PET_NODE_RANK="$2" ;;
    kubeflow-old) lines MASTER_ADDR=job-master-0 "${torch[@]}" ;;
    kubeflow-elastic)
      lines PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=job-worker-0:23456 PET_RDZV_ID=job PET_NNODES=1:2 \
        PET_NPROC_PER_NODE=1 PET_MAX_RESTARTS=3
      ;;
    trainer)
      lines PET_NNODES=2 PET_NPROC_PER_NODE=1 PET_NODE_RANK="$2" PET_MASTER_ADDR=job-node-0-0.job \
        PET_MASTER_PORT=29500 JOB_COMPLETION_INDEX="$2"
      ;;
    jobset) lines JOB_COMPLETION_INDEX="$2" ;;
    volcano)  # the numbers count within a task: master and worker are both the first
      lines VC_TASK_INDEX=0 VK_TASK_INDEX=0 VC_MASTER_HOSTS=job-master-0.job VC_MASTER_NUM=1 \
        VC_WORKER_HOSTS=job-worker-0.job VC_WORKER_NUM=1 MASTER_ADDR=job-master-0.job "${torch[@]}"
      ;;
    sagemaker)
      lines 'SM_HOSTS=["algo-1","algo-2"]' SM_CURRENT_HOST="algo-$(($2 + 1))" SM_NUM_GPUS=1 TRAINING_JOB_NAME=job
      ;;
    vertex)
      lines "$(printf 'CLUSTER_SPEC={"cluster":{"workerpool0":["wp0-0:2222"],"workerpool1":["wp1-0:2222"]},%s}' \
        "\"environment\":\"cloud\",\"task\":{\"type\":\"workerpool$2\",\"index\":0}")"
      ;;
    azureml)
      lines AZUREML_NODE_COUNT=2 NODE_RANK="$2" AZ_BATCH_MASTER_NODE=198.18.0.11:6000 \
        AZ_BATCHAI_MPI_MASTER_NODE=198.18.0.11 MASTER_ADDR=198.18.0.11 "${torch[@]}" LOCAL_RANK=0
      ;;
    aws-batch)
      local first=AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=198.18.0.11  # the main node itself does not get it
      [ "$2" -gt 0 ] || first=AWS_BATCH_JOB_ATTEMPT=1
      lines AWS_BATCH_JOB_ID=job AWS_BATCH_JOB_NUM_NODES=2 AWS_BATCH_JOB_MAIN_NODE_INDEX=0 \
        AWS_BATCH_JOB_NODE_INDEX="$2" "$first"
      ;;
    *) return 1 ;;
  esac
}

# script_variables KIND FOLDER: those of a batch script on h1, with two slots on each host. Managers put lists of hosts
# into files: here into FOLDER.
script_variables() {
  local list=$2/$1.hosts
  case $1 in
    lsf)
      printf 'h%d\n' 1 1 2 2 > "$list"
      lines LSB_JOBID=42 LSB_DJOB_NUMPROC=4 LSB_HOSTS="h1 h1 h2 h2" LSB_MCPU_HOSTS="h1 2 h2 2" LSB_DJOB_HOSTFILE="$list"
      ;;
    pbs | torque)
      printf 'h%d\n' 1 1 2 2 > "$list"
      local sizes=()
      [ "$1" = pbs ] || sizes=(PBS_NUM_NODES=2 PBS_NUM_PPN=2 PBS_NP=4)
      lines PBS_JOBID=42.h0 PBS_ENVIRONMENT=PBS_BATCH PBS_NODENUM=0 PBS_TASKNUM=1 PBS_NODEFILE="$list" "${sizes[@]}"
      ;;
    sge)
      printf 'h%d 2 all.q@h%d UNDEFINED\n' 1 1 2 2 > "$list"
      lines JOB_ID=42 PE=mpi PE_HOSTFILE="$list" NHOSTS=2 NSLOTS=4 SGE_TASK_ID=undefined
      ;;
  esac
}
