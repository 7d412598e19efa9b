// In: the name of an option that lrun does not have. Out: what to type instead, where another launcher has it. The
// reader of command lines calls it before it looks for similar names.
#include "cli/foreign_options.h"

#include <string_view>

#include "base/nearest.h"
#include "cli/flags.h"
#include "cli/verb_table.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kOfProgram = "it is for PROGRAM: write it behind the name of PROGRAM";
constexpr std::string_view kOfAccelerate =
    "leave it out: it is an argument of Accelerator(), or one of its variables, which '--env' sets";
constexpr std::string_view kNotNeeded = "leave it out: lrun needs no such permission";
constexpr std::string_view kOfSlurm = "give it to sbatch, salloc or srun, which start lrun";
constexpr std::string_view kOfStep = "give it to srun: 'srun [options] lrun ...'";
constexpr std::string_view kCpus = "did you mean '--bind core'? it gives each worker an equal share of the CPUs";
constexpr std::string_view kShortC =
    "'--config FILE' reads settings, 'lrun python -c LINE' runs a line of Python, and '--bind core' shares out the "
    "CPUs";
constexpr std::string_view kOfContainer = "it is for docker and its like: write it where the container is started";
constexpr std::string_view kSomeGpus = "'--devices 2' takes two devices, and '--devices 0,' only device 0";
constexpr std::string_view kNodes = "did you mean '--num-nodes'? '-n' counts the workers of each node";
constexpr std::string_view kAllRanks = "did you mean '--nproc-per-node'? it counts the workers of each node";
constexpr std::string_view kOwnRank = "leave it out: each worker finds its own in LOCAL_RANK and RANK";
constexpr std::string_view kOfJsrun = "leave it out: it is for LLNL's other lrun, which starts IBM's jsrun";

constexpr std::string_view kBackend =
    "PROGRAM names it, as in init_process_group(\"gloo\"); '--process-group-backend' is for programs of liblrun";
constexpr std::string_view kOfPython =
    "options of Python stand behind its name: 'lrun [options] python3 [options of Python] PROGRAM'";
constexpr std::string_view kOneVariable = "write '--env NAME=VALUE'";
constexpr std::string_view kInForeground =
    "'nohup lrun ... &' starts it in the background, and 'lrun logs -f' shows what it prints";

struct ForeignName {
  std::string_view theirs;
  std::string_view ours;  ///< for hint_to_type()
};

constexpr ForeignName kForeignNames[] = {
    {"--backend", kBackend},
    {"--dist-backend", kBackend},
    {"--cpu", "--accelerator cpu"},
    {"--use-cpu", "--accelerator cpu"},
    {"--cuda", "--accelerator gpu"},
    {"--gpu", kSomeGpus},
    {"--gpus", "--devices"},
    {"-d", "--devices"},
    {"--ngpus", "--devices"},
    {"--n-gpu", "--devices"},
    {"-g", "--devices"},
    {"--gpus-per-node", "--devices"},
    {"--gpus-per-task", "--devices"},
    {"--gpu-ids", kSomeGpus},
    {"--multi-gpu", "--devices -1"},
    {"--num-processes", kAllRanks},
    {"--num-procs", kAllRanks},
    {"--nprocs", kAllRanks},
    {"--nprocs-per-node", "--nproc-per-node"},
    {"--ntasks", kAllRanks},
    {"--ntasks-per-node", "--nproc-per-node"},
    {"--workers", "--nproc-per-node"},
    {"--ranks", "--nproc-per-node"},
    {"--procs", "--nproc-per-node"},
    {"--worker", "--nproc-per-node"},
    {"-j", "--nproc-per-node"},
    {"--num-workers", "--nproc-per-node"},
    {"--slots-per-host", "--nproc-per-node"},
    {"--ppn", "--nproc-per-node"},
    {"-ppn", "--nproc-per-node"},
    {"--n", "-n"},
    {"--npernode", "--nproc-per-node"},
    {"--world-size", kAllRanks},
    {"-c", kShortC},
    {"-u", "leave it out: what Python prints is shown at once"},
    {"-W", kOfPython},
    {"-X", kOfPython},
    {"-O", kOfPython},
    {"-B", kOfPython},
    {"--num-cpu-threads-per-process", "--env OMP_NUM_THREADS=N"},
    {"--cpus-per-task", kCpus},
    {"--bind-to", kCpus},
    {"--cpu-bind", kCpus},
    {"--use-hwthread-cpus", "leave it out: workers are bound to CPUs only where '--bind' asks for it"},
    {"--map-by", "leave it out: hosts are filled one after another; '--bind' binds workers to CPUs"},
    {"--nodes", kNodes},
    {"-N", kNodes},
    {"-T", "write '--num-nodes 2 --nproc-per-node 4' for '-N2 -T4' of LLNL's other lrun"},
    {"-M", kOfJsrun},
    {"--smpiargs", kOfJsrun},
    {"--mpibind", kOfJsrun},
    {"--num-machines", kNodes},
    {"--min-nodes", "--num-nodes MIN:MAX"},
    {"--max-nodes", "--num-nodes MIN:MAX"},
    {"--min-np", "--num-nodes MIN:MAX"},
    {"--max-np", "--num-nodes MIN:MAX"},
    {"--elastic", "--num-nodes MIN:MAX"},
    {"--elastic-training", "--num-nodes MIN:MAX"},
    {"--machine-rank", "--node-rank"},
    {"--rank", kOwnRank},
    {"--local-rank", kOwnRank},
    {"--main-process-port", "--master-port"},
    {"--port", "--master-port"},
    {"--main-process-ip", "--master-addr"},
    {"--nodelist", "-H"},
    {"-w", "-H"},
    {"-machinefile", "--hostfile"},
    {"--machinefile", "--hostfile"},
    {"--rankfile", "'--hostfile' names the hosts, and '--bind' gives workers their CPUs"},
    {"--local", "--standalone"},
    {"--restart", "--max-restarts"},
    {"--restarts", "--max-restarts"},
    {"--retries", "--max-restarts"},
    {"--max-retries", "--max-restarts"},
    {"--retry", "--max-restarts"},
    {"--time", "--timeout 1h"},
    {"--time-limit", "--timeout 1h"},
    {"--rdzv-timeout", "--rdzv-conf join_timeout=SECONDS"},
    {"--name", "'--rdzv-id NAME' names a run, as in 'lrun logs NAME'"},
    {"--run-id", "--rdzv-id"},
    {"-s", "--strategy"},
    {"--config-file", "'--config FILE' reads lrun's own settings, with lines such as 'devices = 8'"},
    {"-f", "'--hostfile FILE' names the hosts, and '--config FILE' reads lrun's own settings"},
    {"-e", "'--env NAME=VALUE' sets a variable, and '--log-dir DIR' writes a file for each rank"},
    {"-x", "--env"},
    {"--genv", kOneVariable},
    {"-genv", kOneVariable},
    {"--env-file", "write '--env NAME=VALUE' for each variable, or read the file in the shell"},
    {"--mca", "leave it out, or set it for MPI with '--env OMPI_MCA_NAME=VALUE'"},
    {"--cwd", "--chdir"},
    {"--workdir", "--chdir"},
    {"--wdir", "--chdir"},
    {"-wdir", "--chdir"},
    {"-C", "--chdir"},
    {"--quiet", "--output quiet"},
    {"-q", "--output quiet"},
    {"--label", "--output prefix"},
    {"-l", "--output prefix"},
    {"--no-prefix", "--output raw"},
    {"--tag-output", "--output prefix"},
    {"-tag-output", "--output prefix"},
    {"--log-file", "--log-dir"},
    {"--logs", "'lrun logs' shows what a run wrote, and '--log-dir DIR' names the folder for it"},
    {"--output-dir", "PROGRAM's own stands behind it; '--log-dir DIR' is the folder of lrun's files"},
    {"--save-logs", "leave it out: logs are kept, and 'lrun logs' shows them"},
    {"-o", "--log-dir"},
    {"--fold", "--output fold"},
    {"--rank0", "--output rank0"},
    {"--output-filename", "--log-dir"},
    {"--log-level", "'-v' tells more of lrun, and '-vv' most; they take no value"},
    {"--debug", "'--debug-rank 0' runs rank 0 in a debugger, and '--verbose' shows more of lrun"},
    {"--pdb", "--debug-rank 0"},
    {"--gdb", "--debug-rank 0"},
    {"--debugger", "--debug-rank 0"},
    {"--detach", kInForeground},
    {"--daemon", kInForeground},
    {"--background", kInForeground},
    {"-it", "'--pty' gives each worker a terminal, and '--stdin' rank 0 the input"},
    {"--report-bindings", "--dry-run"},
    {"--deepspeed", kOfProgram},
    {"--mixed-precision",
     "for accelerate, write '--env ACCELERATE_MIXED_PRECISION=bf16'; PROGRAM's own stands behind it"},
    {"--use-deepspeed", "--strategy deepspeed"},
    {"--use-fsdp", kOfAccelerate},
    {"--fsdp", "leave it out: PROGRAM wraps its model itself, and any strategy starts its ranks"},
    {"--dynamo-backend", kOfAccelerate},
    {"--zero-stage", kOfAccelerate},
    {"--same-network", "leave it out: lrun finds out where its nodes are"},
    {"--prefix", "leave it out: lrun starts itself from its own path on every host"},
    {"--launcher", "leave it out: '-H' and '--hostfile' reach other hosts with ssh, and Slurm's nodes with srun"},
    {"--allow-run-as-root", kNotNeeded},
    {"--oversubscribe", kNotNeeded},
    {"--kill-on-bad-exit", "leave it out: a rank that fails ends the others"},
    {"--ssh-port", "write \"--ssh 'ssh -p 2222'\""},
    {"--bind-cores-to-rank", "--bind core"},
    {"--force-multi", kNotNeeded},
    {"--enable-each-rank-log", "--log-dir"},
    {"--export", "'--env NAME=VALUE' sets a variable; workers get all others anyway"},
    {"--gloo", "--strategy horovod"},
    {"--check-build", "lrun doctor"},
    {"--network-interface", "'--env GLOO_SOCKET_IFNAME=NAME' chooses one for gloo, NCCL_SOCKET_IFNAME for NCCL"},
    {"--display-map", "--dry-run"},
    {"-bynode", "leave it out: hosts are filled one after another"},
    {"-npernode", "--nproc-per-node"},
    {"-i",
     "ssh's key stands in \"--ssh 'ssh -i KEY'\"; '--stdin' gives rank 0 lrun's input, '--debug-rank 0' the terminal"},
    {"-D", "--chdir"},
    {"--jobid", kOfStep},
    {"--overlap", kOfStep},
    {"--multi-node", "--num-nodes 2"},
    {"--network", kOfContainer},
    {"--image", kOfContainer},
    {"--container-image", kOfStep},
    {"--rm", kOfContainer},
    {"--shm-size", kOfContainer},
    {"--ipc", kOfContainer},
    {"--volume", kOfContainer},
    {"--mount", kOfContainer},
    {"--privileged", kOfContainer},
    {"--trainer.devices", "PROGRAM's own stands behind it; '--devices N' is the number of lrun's workers"},
    {"--nice", "'nice lrun ...' starts lrun and its workers with a lower priority"},
    {"--exclusive", kOfSlurm},
    {"--mem", kOfSlurm},
    {"--mem-per-cpu", kOfSlurm},
    {"--gres", kOfSlurm},
    {"--mpi", kOfSlurm},
    {"--job-name", kOfSlurm},
    {"-J", kOfSlurm},
    {"--account", kOfSlurm},
    {"-A", kOfSlurm},
    {"--qos", kOfSlurm},
    {"--constraint", kOfSlurm},
    {"--partition", kOfSlurm},
    {"-p",
     "a port of ssh stands in \"--ssh 'ssh -p 2222'\", and a partition is given to sbatch, salloc or srun; '-n' is the "
     "number of workers"},
    {"--usage", "-h"},
    {"-?", "-h"},
    {"-V", "--version"},
};

}  // namespace

std::string hint_to_type(std::string_view ours) {
  const bool is_typed = ours.starts_with('-') || ours.starts_with("lrun ");
  return is_typed ? did_you_mean(ours) : std::string(ours);
}

std::string hint_about_foreign_option(const std::string& option) {
  const bool is_long = option.starts_with("--");
  const std::string name = folded_name(option);
  for (const auto& [theirs, ours] : kForeignNames) {
    // '-N2' is '-N' with its value. A whole word such as '-hosts' is written in full.
    const bool is_same = name == theirs || (!is_long && theirs.size() == 2 && name.starts_with(theirs) &&
                                            name.find_first_not_of("0123456789", 2) == std::string::npos);
    if (is_same) return hint_to_type(ours);
  }
  const Verb* const verb = is_long ? find_verb(std::string_view(name).substr(2)) : nullptr;
  return verb != nullptr ? did_you_mean("lrun " + std::string(verb->name)) : std::string();
}

}  // namespace lrun::launcher
