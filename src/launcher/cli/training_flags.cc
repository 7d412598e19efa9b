// The options of the group 'Training', which workers find in their environment. Each value goes into the LaunchRequest.
#include <cstdint>
#include <limits>

#include "base/numeric_address.h"
#include "cli/flag_groups.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

using enum ValueKind;

void set_strategy(const GivenValue& given, LaunchRequest& request) {
  request.strategy = setting(given, find_strategy(choice_of(given)));
}

void set_group_backend(const GivenValue& given, LaunchRequest& request) {
  const std::string word = lower_case(given.text);
  const std::string allowed = "; allowed: auto, nccl, gloo, shm, shm+gloo";
  if (word == "mpi" || word == "ucc") {
    refuse(given, "LibTorch is built without " + std::string(word == "mpi" ? "MPI" : "UCC") + allowed,
           "for CPUs of several nodes use '" + given.as_written_with("gloo") + "'");
  }
  if (word == "threads") {
    refuse(given, "for threads of one process, but lrun starts processes" + allowed, example(given, "shm"));
  }
  request.process_group_backend = setting(given, value_in(kGroupBackends, choice_of(given)));  // 'auto' is in no table
}

constexpr Flag kTrainingFlags[] = {
    {.name = "strategy",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .brief = "ddp, dp, ddp2, ddp_sharded, ddp_spawn, ...",
     .details = "How the work is split. 'ddp': one worker per device; gradients are averaged over all workers. 'dp': "
                "one worker that drives all devices of one node from threads. 'ddp2': one worker per node, dp inside "
                "the node and averaging between nodes. 'ddp_sharded': ddp with the optimizer state split over the "
                "workers. 'ddp_spawn' and 'ddp_fork' (or 'ddp_notebook'): one worker per node, which starts the ranks "
                "of its node itself with lrun::launch(). 'deepspeed': ddp for programs written for DeepSpeed's "
                "launcher. 'horovod': ddp with the environment and the rendezvous of Horovod. 'tpu': one worker per "
                "TPU chip, for programs that use torch_xla. dp, ddp2 and ddp_sharded need a program that uses "
                "liblrun; Python programs are rejected with them (see --liblrun). Case does not matter.",
     .choices = "ddp dp ddp2 ddp_sharded ddp_spawn ddp_fork ddp_notebook deepspeed horovod tpu",
     .noun = "strategy",
     .default_value = "ddp with several devices or nodes",
     .apply = set_strategy,
     .hint = "programs with a strategy of their own, such as FSDP, run with '--strategy ddp': one worker per device"},
    {.name = "process-group-backend",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .details = "How workers exchange tensors. 'auto' is nccl for GPUs, shm for CPU workers on one host, and shm+gloo "
                "for CPU workers on several: shm inside each host, gloo between them. 'gloo' uses TCP between all "
                "workers.",
     .choices = "auto nccl gloo shm shm+gloo",
     .noun = "backend",
     .default_value = "auto",
     .apply = set_group_backend},
    {.name = "seed",
     .value = kRequired,
     .placeholder = "N",
     .group = FlagGroup::kTraining,
     .details = "The seed of all workers, in LRUN_SEED: a whole number from 0 to 18446744073709551615.",
     .apply = set_number<std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), &LaunchRequest::seed>},
    {.name = "master-port",
     .value = kRequired,
     .placeholder = "PORT",
     .group = FlagGroup::kTraining,
     .details = "The TCP port of the workers' store. With 0 the kernel chooses a free port, so that any number of runs "
                "can share a machine.",
     .example = "29500",
     .default_value = "0",
     .torchrun_variable = true,
     .apply = set_number<0, kMostPort, &LaunchRequest::master_port>},
    {.name = "rdzv-id",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .details = "The name of the run, in TORCHELASTIC_RUN_ID.",
     .default_value = "a new name",
     .torchrun_variable = true,
     .apply = set_text<&LaunchRequest::rdzv_id>,
     .overridden_by_standalone = true},
    // An empty role is allowed: torchx uses it for a shorter prefix of lines.
    {.name = "role",
     .value = kRequired,
     .placeholder = "NAME",
     .group = FlagGroup::kTraining,
     .details = "The role of all workers, in ROLE_NAME and in torchrun's prefix of lines.",
     .default_value = "default",
     .torchrun_variable = true,
     .apply = set_text<&LaunchRequest::role>},
};

}  // namespace

std::span<const Flag> training_flags() { return kTrainingFlags; }

}  // namespace lrun::launcher
