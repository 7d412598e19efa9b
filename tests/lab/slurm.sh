# shellcheck shell=bash
# Slurm on the hosts of a lab, which init.sh boots. A part of lab.

# write_slurm_files NODES CPUS GPUS: the devices of GPUs have to exist, though nobody opens them. Times are short: a
# node is lost after 10 s of silence, and a job that is requeued starts again after cred_expire seconds and one.
write_slurm_files() {
  local gres='' i
  mkdir -p "$LAB/slurm/etc" "$LAB/slurm/state"
  (umask 077; head -c 1024 /dev/urandom > "$LAB/slurm/key")
  if [ "$3" -gt 0 ]; then
    gres="Gres=gpu:$3"
    for ((i = 0; i < $3; ++i)); do
      mknod "$LAB/slurm/gpu$i" c 1 3
      echo "NodeName=h[1-$1] Name=gpu File=$LAB/slurm/gpu$i"
    done > "$LAB/slurm/etc/gres.conf"
  fi
  echo "CgroupPlugin=cgroup/v1" > "$LAB/slurm/etc/cgroup.conf"  # unused; slurmd insists on a whole version 2 otherwise
  cat > "$LAB/slurm/etc/slurm.conf" <<TEXT
ClusterName=lab
SlurmctldHost=h0
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$LAB/slurm/munge,cred_expire=5
StateSaveLocation=$LAB/slurm/state
SlurmdSpoolDir=$LAB/local/slurmd
TmpFS=$LAB/local
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$LAB/log/slurmctld
SlurmdLogFile=$LAB/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=3
InactiveLimit=0
GresTypes=gpu
NodeName=h[1-$1] CPUs=$2 RealMemory=4000 $gres State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES PriorityTier=1 GraceTime=3
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF
TEXT
}

nodes_are() { in_host h0 sinfo --noheader --Node --format '%N %t %E' 2>&1 | paste -sd,; }
are_idle() { [ "$(in_host h0 sinfo --noheader --partition debug --states idle --format %D)" = "$1" ]; }

slurm_command() {
  local nodes=${2:-} cpus=8 gpus=0
  [[ ${1:-} = up && $nodes =~ ^[1-9][0-9]?$ ]] || usage
  shift 2
  while [ $# -gt 1 ]; do
    case $1 in
      --cpus) cpus=$2 ;;
      --gpus) gpus=$2 ;;
      *) usage ;;
    esac
    shift 2
  done
  has slurm
  [ ! -d "$LAB/own" ] || die "the hosts are up, without Slurm"
  prepare
  write_slurm_files "$nodes" "$cpus" "$gpus"
  hosts_up "$nodes"
  wait_for 30 are_idle "$nodes" || die "the nodes are not idle: $(nodes_are)"
}
