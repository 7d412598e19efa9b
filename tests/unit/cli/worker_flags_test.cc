#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(WorkerFlags, RefuseDevicesAndNameWhatIsAllowed) {
  const std::string allowed = "allowed: a count such as 8, a list such as 2,3, auto or -1";
  expect_refused({
      {"--devices=0", {"'--devices 0'", allowed, "'0,'"}},
      {"--devices=-2", {"'--devices -2'", allowed, "'-1'"}},
      {"--devices=99999", {"'--devices 99999'", allowed, "'--devices 16384'"}},
      {"--devices=", {"'--devices='", allowed, "'--devices 8'"}},
      {"--devices=,", {"'--devices ,'", allowed, "'--devices 8'"}},
      {"--devices=0,0", {"'--devices 0,0'", "device 0 twice", allowed}},
      {"--devices=0,-1", {"'--devices 0,-1'", "'-1' is not the number of a device", allowed, "'--devices 0,2'"}},
      {"--devices=a,b", {"'--devices a,b'", "'a' is not the number of a device", allowed, "'--devices 0,2'"}},
      {"--devices=two", {"'--devices two'", allowed, "'--devices 2'"}},
      {"--devices=all", {"'--devices all'", allowed, "did you mean 'auto'?"}},
      {"--devices=0-2", {"'--devices 0-2'", allowed, "did you mean '0,1,2'?"}},
      {"--devices=cuda:1", {"'--devices cuda:1'", allowed, "did you mean '1,'?"}},
      {"--devices=2-0", {"'--devices 2-0'", allowed, "'--devices 2'"}},
      {"--devices=2.5", {"'--devices 2.5'", allowed, "'--devices 2'"}},
      {"--devices=99999999999999999999", {"'--devices 99999999999999999999'", allowed, "'--devices 2'"}},
  });
}

TEST(WorkerFlags, RefuseWorkersAndNameWhatIsAllowed) {
  expect_refused({
      {"-n0", {"'-n 0'", "allowed: 1 to 16384, auto, cpu, gpu, xpu", "'-n 1'"}},
      {"--nproc-per-node=-1",
       {"'--nproc-per-node -1'", "allowed: 1 to 16384, auto, cpu, gpu, xpu", "'--nproc-per-node 1'"}},
      {"-n2.5", {"'-n 2.5'", "allowed: 1 to 16384, auto, cpu, gpu, xpu", "'-n 2'"}},
      {"-npgpuu", {"'-n pgpuu'", "allowed: 1 to 16384, auto, cpu, gpu, xpu", "'-n 2'"}},
      {"--nproc-per-node=",
       {"'--nproc-per-node='", "allowed: 1 to 16384, auto, cpu, gpu, xpu", "'--nproc-per-node 2'"}},
      {"-np=gpus", {"'-np gpus'", "allowed: 1 to 16384, auto, cpu, gpu, xpu", "'gpu'"}},
  });
}

TEST(WorkerFlags, RefuseNumbersOfNodes) {
  expect_refused({
      {"--nnodes=0", {"'--nnodes 0'", "allowed: 1 to 65536, or MIN:MAX", "'--nnodes 2'"}},
      {"--nnodes=3:2", {"'--nnodes 3:2'", "'--nnodes 2:3'"}},
      {"--nnodes=0:1", {"'--nnodes 0:1'", "allowed: 1 to 65536, or MIN:MAX", "'--nnodes 2:4'"}},
      {"--nnodes=2:20:30", {"'--nnodes 2:20:30'", "allowed: 1 to 65536, or MIN:MAX", "'--nnodes 2:4'"}},
      {"--num_nodes=x", {"'--num_nodes x'", "allowed: 1 to 65536, or MIN:MAX", "'--num_nodes 2'"}},
  });
}

TEST(WorkerFlags, SayThatATimeIsTooLong) {
  expect_refused({
      {"--timeout=99999999999h", {"too long; allowed: up to 3650d", "'--timeout 2h'"}},
      {"--timeout=99999999999x", {"not a time", "'--timeout 2h'"}},
      {"--timeout=5mins", {"not a time", "did you mean '--timeout 5m'?"}},
      {"--timeout=1h30m", {"not a time", "did you mean '--timeout 90m'?"}},
      {"--timeout=00:05:00", {"not a time", "did you mean '--timeout 5m'?"}},
      {"--timeout=10:30", {"not a time", "did you mean '--timeout 630s'?"}},
      {"--timeout=1:2:3:4", {"not a time", "'--timeout 2h'"}},
      {"--timeout=::", {"not a time", "'--timeout 2h'"}},
      {"--timeout=1h30", {"not a time", "'--timeout 2h'"}},
      {"--timeout=90 Seconds", {"not a time", "did you mean '--timeout 90s'?"}},
      {"--timeout=10msec", {"not a time", "'--timeout 2h'"}},
  });
}

TEST(WorkerFlags, SayThatAnEmptyVariableHasMadeProgramTheValue) {
  expect_refused({{"-n=train.py", {"'-n' has no value: 'train.py' stands in its place", "'lrun -n N train.py'"}},
                  {"--nnodes=./train", {"'--nnodes' has no value", "'lrun --nnodes N ./train'"}},
                  {"--strategy=train.py", {"'--strategy' has no value"}},
                  {"--max-restarts=train.py", {"'--max-restarts' has no value"}}});
}

TEST(WorkerFlags, IgnoreBlanksAroundANumber) {
  const LaunchRequest request = request_of({"--nnodes=1 : 2", "-n", " 3", "--max-restarts= 4 ", "p"});
  EXPECT_EQ(request.min_nodes, 1);
  EXPECT_EQ(request.num_nodes.value, 2);
  EXPECT_EQ(text_of(request.nproc_per_node.value), "3");
  EXPECT_EQ(request.max_restarts.value, 4);
}

TEST(WorkerFlags, ReadEveryFormOfADeviceList) {
  const std::vector<std::pair<std::string, std::string>> cases{{"8", "8"},
                                                               {"2,3", "2,3"},
                                                               {"\"0,2\"", "0,2"},
                                                               {"'0, 2'", "0,2"},
                                                               {" 3 ", "3"},
                                                               {"2,", "2,"},
                                                               {"0,", "0,"},
                                                               {"1,,3", "1,3"},
                                                               {"auto", "auto"},
                                                               {"-1", "-1"},
                                                               {"08", "8"},
                                                               {"3,1", "3,1"},
                                                               {"GPU-1c-2d", "GPU-1c-2d,"},
                                                               {"MIG-7a,GPU-1c", "MIG-7a,GPU-1c"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(text_of(request_of({"--devices=" + text, "p"}).devices.value), expected) << text;
  }
}

TEST(WorkerFlags, ReadEveryFormOfANodeCount) {
  EXPECT_EQ(request_of({"--nnodes", "3", "p"}).num_nodes, by_flag(3, "--nnodes"));
  EXPECT_EQ(request_of({"--nnodes", "1:1", "p"}).num_nodes.value, 1) << "torchrun's own default";
  EXPECT_EQ(request_of({"--num_nodes", "4", "p"}).num_nodes.value, 4);
  EXPECT_EQ(request_of({"--num_nodes", "4", "p"}).min_nodes, 0);
  EXPECT_EQ(request_of({"--nnodes", "2:4", "p"}).num_nodes, by_flag(4, "--nnodes"));
  EXPECT_EQ(request_of({"--nnodes", "2:4", "p"}).min_nodes, 2);
}

TEST(WorkerFlags, NameTheNearestAccelerator) {
  expect_refused({
      {"--accelerator=gpus", {"'--accelerator gpus'", "allowed: auto, cpu, gpu, tpu", "'gpu'"}},
  });
}

}  // namespace
}  // namespace lrun::launcher
