#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(TrainingFlags, RefuseUnknownStrategies) {
  expect_refused({
      {"--strategy=dpd",
       "lrun: error: '--strategy dpd': no such strategy; allowed: ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, "
       "ddp_notebook, deepspeed, horovod, tpu\nlrun: hint: did you mean "
       "'ddp'?\n"},
      {"--strategy=fsdp",
       "lrun: error: '--strategy fsdp': no such strategy; allowed: ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, "
       "ddp_notebook, deepspeed, horovod, tpu\n"
       "lrun: hint: for example '--strategy ddp'\n"},
      {"--strategy=",
       "lrun: error: '--strategy=': no such strategy; allowed: ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, "
       "ddp_notebook, deepspeed, horovod, tpu\n"
       "lrun: hint: for example '--strategy ddp'\n"},
  });
  EXPECT_EQ(text_of(request_of({"--strategy", "TPU", "p"}).strategy.value), "tpu");
}

TEST(TrainingFlags, NameTheNearestWord) {
  expect_refused({
      {"--accelerator=gpus",
       "lrun: error: '--accelerator gpus': no such accelerator; allowed: auto, cpu, gpu, tpu\n"
       "lrun: hint: did you mean 'gpu'?\n"},
      {"--process_group_backend=ncll",
       "lrun: error: '--process_group_backend ncll': no such backend; allowed: auto, nccl, gloo, shm, shm+gloo\n"
       "lrun: hint: did you mean 'nccl'?\n"},
      {"--process_group_backend=mpi",
       "lrun: error: '--process_group_backend mpi': LibTorch has no MPI inside; allowed: auto, nccl, gloo, shm, "
       "shm+gloo\n"
       "lrun: hint: between CPUs of several nodes '--process_group_backend gloo'\n"},
      {"--process_group_backend=threads",
       "lrun: error: '--process_group_backend threads': threads are ranks of one process, and lrun starts processes; "
       "allowed: auto, nccl, gloo, shm, shm+gloo\n"
       "lrun: hint: for example '--process_group_backend shm'\n"},
      {"--compat=torchrunn",
       "lrun: error: '--compat torchrunn': no such command; allowed: lrun, torchrun, torch.distributed.launch\n"
       "lrun: hint: did you mean 'torchrun'?\n"},
      {"--dry-run=yaml",
       "lrun: error: '--dry-run=yaml': no such format; allowed: text, json\n"
       "lrun: hint: for example '--dry-run=text'\n"},
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
