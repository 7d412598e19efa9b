#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(TrainingFlags, RefuseUnknownStrategies) {
  expect_refused({
      {"--strategy=dpd",
       {"'--strategy dpd'",
        "allowed: ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, ddp_notebook, deepspeed, horovod, tpu", "'ddp'"}},
      {"--strategy=fsdp",
       {"'--strategy fsdp'",
        "allowed: ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, ddp_notebook, deepspeed, horovod, tpu",
        "'--strategy ddp'"}},
      {"--strategy=",
       {"'--strategy='",
        "allowed: ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, ddp_notebook, deepspeed, horovod, tpu",
        "'--strategy ddp'"}},
  });
  EXPECT_EQ(text_of(request_of({"--strategy", "TPU", "p"}).strategy.value), "tpu");
}

TEST(TrainingFlags, NameTheNearestWord) {
  expect_refused({
      {"--accelerator=gpus", {"'--accelerator gpus'", "allowed: auto, cpu, gpu, tpu", "'gpu'"}},
      {"--process_group_backend=ncll",
       {"'--process_group_backend ncll'", "allowed: auto, nccl, gloo, shm, shm+gloo", "'nccl'"}},
      {"--process_group_backend=mpi",
       {"'--process_group_backend mpi'", "allowed: auto, nccl, gloo, shm, shm+gloo", "'--process_group_backend gloo'"}},
      {"--process_group_backend=threads",
       {"'--process_group_backend threads'", "allowed: auto, nccl, gloo, shm, shm+gloo",
        "'--process_group_backend shm'"}},
      {"--compat=torchrunn",
       {"'--compat torchrunn'", "allowed: lrun, torchrun, torch.distributed.launch", "'torchrun'"}},
      {"--dry-run=yaml", {"'--dry-run=yaml'", "allowed: text, json", "'--dry-run=text'"}},
  });
}

TEST(TrainingFlags, IgnoreTheCaseOfStrategies) {
  for (const char* const name : {"ddp", "DDP", "Ddp"}) {
    EXPECT_EQ(text_of(request_of({"--strategy", name, "p"}).strategy.value), "ddp") << name;
  }
  EXPECT_EQ(text_of(request_of({"--strategy", "dp", "p"}).strategy.value), "dp");
}

}  // namespace
}  // namespace lrun::launcher
