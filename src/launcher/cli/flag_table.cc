#include <array>
#include <cstddef>

#include "cli/flag_values.h"
#include "cli/flags.h"
#include "cli/job_flags.h"
#include "cli/output_flags.h"
#include "cli/run_flags.h"
#include "cli/setup_flags.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

constexpr auto later_value = flag_values::not_in_this_version;
constexpr auto later_choice = flag_values::choice_not_in_this_version;

constexpr Flag later(std::string_view name, ValueKind value, std::string_view pet_variable, decltype(Flag::apply) apply,
                     std::string_view neutral_values, std::string_view hint = {}, bool overridden_by_standalone = false,
                     std::string_view aliases = {}, std::string_view short_names = {}, std::string_view choices = {}) {
  return {.name = name,
          .aliases = aliases,
          .short_names = short_names,
          .value = value,
          .placeholder = value == kNone ? "" : "VALUE",
          .group = FlagGroup::kNotInThisVersion,
          .choices = choices,
          .pet_variable = pet_variable,
          .apply = apply,
          .neutral_values = neutral_values,
          .hint = hint,
          .overridden_by_standalone = overridden_by_standalone};
}

constexpr Flag kFirstFlags[] = {
    {.name = "devices",
     .aliases = "num_gpus num_accelerators",
     .value = kRequired,
     .placeholder = "N|LIST|auto|-1",
     .brief = "devices of each node: how many, or which",
     .details =
         "How many devices of each node to use, or which: '8' is the first eight, '2,3' the devices 2 and 3, '2,' "
         "only device 2, '-1' all GPUs, 'auto' all GPUs and one CPU worker where there is none. A GPU may also be "
         "named by its UUID or the beginning of one ('GPU-8f3a'), and so may an instance of a GPU in MIG mode "
         "('MIG-41c9'); instances count as devices. On a machine without GPUs a plain count is that many CPU workers; "
         "'-1' and lists are an error there. --num_gpus and --num_accelerators are DeepSpeed's names for it.",
     .choices = "auto -1",
     .default_value = "one device",
     .apply = flag_values::devices},
    {.name = "nproc-per-node",
     .short_names = "n np",
     .value = kRequired,
     .placeholder = "N",
     .brief = "workers on each node; or auto, cpu, gpu",
     .details = "Workers on each node, as torchrun counts them: a number, 'gpu' (one per GPU), 'xpu' (one per GPU of "
                "Intel), 'cpu' (one per processor) or 'auto' (GPUs, else processors). Says the same as --devices with "
                "a plain count; when "
                "both are given in the same place and differ, lrun refuses. Beside -H or --hostfile -n and -np are of "
                "all hosts together, as with mpirun.",
     .choices = "auto cpu gpu xpu",
     .pet_variable = "PET_NPROC_PER_NODE",
     .apply = flag_values::nproc_per_node,
     .same_as = "devices"},
    {.name = "num_nodes",
     .aliases = "nnodes",
     .value = kRequired,
     .placeholder = "N|MIN:MAX",
     .brief = "number of nodes",
     .details = "The number of nodes (machines), on each of which lrun is started with the same options; "
                "--rdzv-endpoint says where they meet. With a range, MIN:MAX, the job begins as soon as MAX are there, "
                "or when MIN are and no other has come for a second.",
     .default_value = "1",
     .pet_variable = "PET_NNODES",
     .apply = flag_values::num_nodes},
    {.name = "accelerator",
     .value = kRequired,
     .placeholder = "KIND",
     .brief = "auto, cpu, gpu or tpu",
     .details = "The kind of device: 'gpu' (also spelled 'cuda'), 'cpu' or 'tpu'; 'auto' takes GPUs where the node has "
                "any. 'tpu' means --strategy tpu.",
     .choices = "auto cpu gpu tpu",
     .default_value = "auto",
     .apply = flag_values::accelerator},
    {.name = "isolate-gpus",
     .aliases = "virtual-local-rank",
     .brief = "each worker sees only its own GPU",
     .details =
         "Each worker finds only its own GPU in CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES for GPUs of AMD, "
         "ZE_AFFINITY_MASK for those of Intel), and LOCAL_RANK is 0 in all of them, as torchrun's "
         "--virtual-local-rank does. Without it all workers of a node see all of the node's chosen GPUs. Workers "
         "on MIG instances are always isolated: a process can use only one.",
     .pet_variable = "PET_VIRTUAL_LOCAL_RANK",
     .apply = flag_values::isolate_gpus},
    {.name = "bind",
     .value = kRequired,
     .placeholder = "none|core|numa",
     .details =
         "Which CPUs each worker may run on, chosen to be close to its GPU; CPU workers are spread evenly. 'numa': "
         "all cores of the NUMA node. 'core': cores of its own, an equal part of the NUMA node's. 'cache': the "
         "cores that share one cache. 'socket': all cores of the socket. Limits that lrun runs under (affinity, "
         "cgroup) are respected. OMP_NUM_THREADS is then one for each core of the worker's share.",
     .choices = "none core cache numa socket",
     .default_value = "none",
     .apply = flag_values::bind},
    {.name = "numa-binding",
     .value = kRequired,
     .placeholder = "KIND",
     .details = "The same as --bind in torchrun's words: 'node' is numa, 'socket' is socket, 'exclusive' is core and "
                "'core-complex' is cache. No numactl is needed.",
     .choices = "node socket exclusive core-complex",
     .apply = flag_values::numa_binding,
     .same_as = "bind"},
    {.name = "share-gpus",
     .details =
         "Use GPUs on which other processes compute as well. Without it lrun refuses to start on a busy GPU when "
         "GPUs were asked for (with --devices, '--nproc-per-node gpu' or '--accelerator gpu'), and warns when they "
         "were not. A GPU in exclusive mode that is taken cannot be shared.",
     .apply = flag_values::share_gpus},

    {.name = "strategy",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .brief = "ddp, dp, ddp2, ddp_sharded, ddp_spawn, ...",
     .details =
         "How the work is split. 'ddp': one worker per device, gradients averaged over all workers. 'dp': one "
         "worker that drives all devices of one node from threads. 'ddp2': one worker per node, dp inside the "
         "node and averaging between nodes. 'ddp_sharded': as ddp, with the optimizer's state split over the "
         "workers. 'ddp_spawn' and 'ddp_fork' (or 'ddp_notebook'): one worker per node, which starts the ranks of "
         "its node itself by lrun::launch(). 'deepspeed': as ddp, for programs written for the launcher of DeepSpeed. "
         "'horovod': as ddp, with the environment and the rendezvous of programs written for Horovod. 'tpu': one "
         "worker per chip of TPUs, for programs of torch_xla. dp, ddp2 and ddp_sharded are carried out by liblrun in "
         "the program; Python programs are refused with them (see --liblrun). Capital letters do not matter.",
     .choices = "ddp dp ddp2 ddp_sharded ddp_spawn ddp_fork ddp_notebook deepspeed horovod tpu",
     .default_value = "ddp with several devices or nodes",
     .apply = flag_values::strategy},
    {.name = "process_group_backend",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .brief = "auto, nccl, gloo, shm or shm+gloo",
     .details =
         "How workers exchange tensors. 'auto' takes nccl for GPUs, shm for the CPU workers of one host and shm+gloo "
         "for those of several: shm inside each host, gloo between them. 'gloo' is TCP between all workers.",
     .choices = "auto nccl gloo shm shm+gloo",
     .default_value = "auto",
     .apply = flag_values::process_group_backend},
    {.name = "seed",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kTraining,
     .brief = "seed for all workers",
     .details = "The seed that every worker finds in LRUN_SEED; a whole number from 0 to 18446744073709551615.",
     .apply = flag_values::seed},
    {.name = "master-port",
     .value = kRequired,
     .placeholder = "PORT",
     .group = FlagGroup::kTraining,
     .details =
         "The TCP port on which lrun serves the workers' store. With 0 the kernel chooses a free one, so that any "
         "number of runs can share a machine.",
     .default_value = "0",
     .pet_variable = "PET_MASTER_PORT",
     .apply = flag_values::master_port},
    {.name = "rdzv-id",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .details = "The name of the run, as its workers find it in TORCHELASTIC_RUN_ID.",
     .default_value = "a new name",
     .pet_variable = "PET_RDZV_ID",
     .apply = flag_values::rdzv_id,
     .overridden_by_standalone = true},
    {.name = "role",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .details = "The role of all workers, which they find in ROLE_NAME; it is part of torchrun's prefix of lines.",
     .default_value = "default",
     .pet_variable = "PET_ROLE",
     .apply = flag_values::role},
};

constexpr Flag kProgramFlags[] = {
    {.name = "module",
     .short_names = "m",
     .group = FlagGroup::kProgram,
     .brief = "PROGRAM is a Python module (python -m)",
     .details = "PROGRAM is the name of a Python module and is run with 'python -u -m'.",
     .pet_variable = "PET_MODULE",
     .apply = flag_values::module},
    {.name = "run-path",
     .group = FlagGroup::kProgram,
     .details = "PROGRAM is a Python script, whatever it is called; wins over --no-python.",
     .pet_variable = "PET_RUN_PATH",
     .apply = flag_values::run_path},
    {.name = "no-python",
     .group = FlagGroup::kProgram,
     .details = "Execute PROGRAM itself, also when its name ends in '.py'.",
     .pet_variable = "PET_NO_PYTHON",
     .apply = flag_values::no_python},
    {.name = "liblrun",
     .group = FlagGroup::kProgram,
     .details = "PROGRAM, although it is a Python program, starts one of liblrun, or carries out --strategy itself. "
                "Without it Python programs are refused with the strategies dp, ddp2 and ddp_sharded.",
     .apply = flag_values::liblrun},
    {.name = "nested",
     .group = FlagGroup::kProgram,
     .details = "A worker of another run starts this lrun, and its workers are meant to be a world apart from those of "
                "that run's other ranks. Without it a warning says so.",
     .lrun_variable = false,
     .apply = flag_values::nested},
    {.name = "no_local_rank",
     .group = FlagGroup::kProgram,
     .details = "With --strategy deepspeed: do not put '--local_rank=N' before the arguments of PROGRAM.",
     .apply = flag_values::no_local_rank},
    {.name = "use-env",
     .group = FlagGroup::kProgram,
     .details = "With --compat torch.distributed.launch: do not put '--local-rank=N' before the arguments of PROGRAM. "
                "With lrun's own defaults that is so anyway; torchrun has no such option.",
     .apply = flag_values::use_env},
    {.name = "compat",
     .value = kRequired,
     .placeholder = "LAUNCHER",
     .group = FlagGroup::kProgram,
     .brief = "whose defaults: lrun's or torchrun's",
     .details =
         "Whose defaults hold. 'torchrun': every PROGRAM is given to Python unless --no-python is there, workers "
         "write and read the terminal directly, one thread for OpenMP, no verbs. Also chosen by calling lrun "
         "through a link named 'torchrun'. Through one named 'horovodrun' lrun takes horovodrun's options, too, "
         "and '--strategy horovod' is the default. 'torch.distributed.launch': as torchrun, for programs that want "
         "their local rank as first argument, '--local-rank=N'.",
     .choices = "lrun torchrun torch.distributed.launch",
     .default_value = "lrun",
     .apply = flag_values::compat},
};

constexpr Flag kLastFlags[] = {
    {.name = "config",
     .value = kRequired,
     .placeholder = "FILE",
     .group = FlagGroup::kInformation,
     .details = "Read defaults from this TOML file: every long option by its name, as in 'devices = 8' or 'strategy = "
                "\"ddp\"', true or false for a switch. Options and variables win over it. '/dev/null' is no file.",
     .default_value = "lrun.toml, when it is in this folder",
     .action = FlagAction::kConfigFile},
    {.name = "print-config",
     .group = FlagGroup::kInformation,
     .details = "Print every setting, its value and where it comes from, and start nothing. The text is one that "
                "--config reads.",
     .lrun_variable = false,
     .action = FlagAction::kPrintConfig},
    {.name = "dry-run",
     .value = kOptional,
     .placeholder = "text|json",
     .group = FlagGroup::kInformation,
     .brief = "show the plan, start nothing",
     .details = "Print every decision of the run and where it came from, and start nothing.",
     .choices = "text json",
     .apply = flag_values::dry_run},
    {.name = "verbose",
     .short_names = "v",
     .group = FlagGroup::kInformation,
     .brief = "tell what lrun does (-vv tells more)",
     .details = "Tell on stderr what lrun does, and which variables of the environment workers find with other values. "
                "Twice tells more.",
     .apply = flag_values::verbose},
    {.name = "version",
     .group = FlagGroup::kInformation,
     .brief = "print the version",
     .details = "Print the version and end.",
     .lrun_variable = false,
     .action = FlagAction::kVersion},
    {.name = "help",
     .short_names = "h",
     .group = FlagGroup::kInformation,
     .brief = "-h this screen, --help everything",
     .details = "-h shows one screen, --help everything.",
     .lrun_variable = false,
     .action = FlagAction::kHelp},

    // Not in this version. To switch one on: give it a group, texts, choices and its own apply(), as above.
    later("standalone", kNone, "PET_STANDALONE", flag_values::standalone, "*"),
    later("monitor-interval", kRequired, "PET_MONITOR_INTERVAL", flag_values::monitor_interval, "*"),
    later("start-method", kRequired, "PET_START_METHOD", later_choice, "*", "", false, "", "", "spawn fork forkserver"),
    later("event-log-handler", kRequired, "PET_EVENT_LOG_HANDLER", later_value, "null", "leave it out"),
    later("logs-specs", kRequired, "", later_value, "default", "leave it out"),
    later("print-completion", kRequired, "", later_value, "",
          "completions for bash, zsh and fish are installed with lrun"),
};

/// Several parts of the table as one array.
template <std::size_t... sizes>
constexpr auto joined(const Flag (&... parts)[sizes]) {
  std::array<Flag, (sizes + ...)> all{};
  std::size_t count = 0;
  const auto append = [&](const auto& part) {
    for (const Flag& flag : part) all[count++] = flag;
  };
  (append(parts), ...);
  return all;
}

}  // namespace

std::span<const Flag> flag_table() {
  static constexpr auto kFlags =
      joined(kFirstFlags, kJobFlags, kProgramFlags, kSetupFlags, kOutputFlags, kRunFlags, kLastFlags);
  return kFlags;
}

}  // namespace lrun::launcher
