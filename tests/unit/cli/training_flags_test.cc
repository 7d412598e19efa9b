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
      {"--process_group_backend=ncll",
       {"'--process_group_backend ncll'", "allowed: auto, nccl, gloo, shm, shm+gloo", "'nccl'"}},
      {"--process_group_backend=mpi",
       {"'--process_group_backend mpi'", "allowed: auto, nccl, gloo, shm, shm+gloo", "'--process_group_backend gloo'"}},
      {"--process_group_backend=threads",
       {"'--process_group_backend threads'", "allowed: auto, nccl, gloo, shm, shm+gloo",
        "'--process_group_backend shm'"}},
  });
}

TEST(TrainingFlags, IgnoreTheCaseOfStrategies) {
  for (const char* const name : {"ddp", "DDP", "Ddp"}) {
    EXPECT_EQ(text_of(request_of({"--strategy", name, "p"}).strategy.value), "ddp") << name;
  }
  EXPECT_EQ(text_of(request_of({"--strategy", "dp", "p"}).strategy.value), "dp");
}

TEST(TrainingFlags, NameTheRangeOfANumber) {
  expect_refused({
      {"--seed=-1", {"'--seed -1': not a whole number", "allowed: 0 to 18446744073709551615", "'--seed 0'"}},
      {"--seed=18446744073709551616",
       {"'--seed 18446744073709551616': out of range", "allowed: 0 to 18446744073709551615",
        "'--seed 18446744073709551615'"}},
      {"--master-port=65536", {"'--master-port 65536': out of range", "allowed: 0 to 65535", "'--master-port 29500'"}},
      {"--master-port=http",
       {"'--master-port http': not a whole number", "allowed: 0 to 65535", "'--master-port 29500'"}},
  });
}

}  // namespace
}  // namespace lrun::launcher
