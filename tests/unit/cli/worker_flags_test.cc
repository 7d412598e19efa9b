#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(WorkerFlags, RefuseDevicesAndNameWhatIsAllowed) {
  const std::string allowed = "; allowed: a count such as 8, a list such as 2,3, auto or -1\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--devices 0", "no device is asked for" + allowed + "lrun: hint: '0,' is only device 0\n"},
      {"--devices -2", "no such number of devices" + allowed + "lrun: hint: '-1' is all GPUs\n"},
      {"--devices 99999", "no such number of devices" + allowed + "lrun: hint: for example '--devices 16384'\n"},
      {"--devices=", "no device is named" + allowed + "lrun: hint: for example '--devices 8'\n"},
      {"--devices ,", "no device is named" + allowed + "lrun: hint: for example '--devices 8'\n"},
      {"--devices 0,0", "device 0 is named twice" + allowed + "lrun: hint: name every device once\n"},
      {"--devices 0,-1", "'-1' is not the number of a device" + allowed + "lrun: hint: for example '--devices 0,2'\n"},
      {"--devices a,b", "'a' is not the number of a device" + allowed + "lrun: hint: for example '--devices 0,2'\n"},
      {"--devices two", "neither a count nor a list of devices" + allowed + "lrun: hint: for example '--devices 2'\n"},
      {"--devices all", "neither a count nor a list of devices" + allowed + "lrun: hint: did you mean '-1'?\n"},
      {"--devices 2.5", "neither a count nor a list of devices" + allowed + "lrun: hint: for example '--devices 2'\n"},
      {"--devices 99999999999999999999",
       "neither a count nor a list of devices" + allowed + "lrun: hint: for example '--devices 2'\n"}};
  for (const auto& [written, message] : cases) {
    const std::size_t name_length = std::string("--devices").size();
    EXPECT_EQ(refusal({"--devices=" + written.substr(name_length + 1), "p"}),
              "lrun: error: '" + written + "': " + message);
  }
}

TEST(WorkerFlags, RefuseWorkersAndNameWhatIsAllowed) {
  expect_refused({
      {"-n0",
       "lrun: error: '-n 0': no such number of workers; allowed: 1 to 16384, auto, cpu, gpu, xpu\n"
       "lrun: hint: for example '-n 1'\n"},
      {"--nproc-per-node=-1",
       "lrun: error: '--nproc-per-node -1': no such number of workers; allowed: 1 to 16384, auto, cpu, gpu, xpu\n"
       "lrun: hint: for example '--nproc-per-node 1'\n"},
      {"-n2.5",
       "lrun: error: '-n 2.5': not a number of workers; allowed: 1 to 16384, auto, cpu, gpu, xpu\n"
       "lrun: hint: for example '-n 2'\n"},
      {"-npgpuu",
       "lrun: error: '-n pgpuu': not a number of workers; allowed: 1 to 16384, auto, cpu, gpu, xpu\n"
       "lrun: hint: for example '-n 2'\n"},
      {"--nproc-per-node=",
       "lrun: error: '--nproc-per-node=': not a number of workers; allowed: 1 to 16384, auto, cpu, gpu, xpu\n"
       "lrun: hint: for example '--nproc-per-node 2'\n"},
      {"-np=gpus",
       "lrun: error: '-np gpus': not a number of workers; allowed: 1 to 16384, auto, cpu, gpu, xpu\n"
       "lrun: hint: did you mean 'gpu'?\n"},
  });
}

TEST(WorkerFlags, RefuseNumbersOfNodes) {
  expect_refused({
      {"--nnodes=0",
       "lrun: error: '--nnodes 0': not a number of nodes; allowed: 1 to 65536\n"
       "lrun: hint: for example '--nnodes 1'\n"},
      {"--nnodes=3:2",
       "lrun: error: '--nnodes 3:2': min_nodes is more than max_nodes\n"
       "lrun: hint: for example '--nnodes 2'\n"},
      {"--nnodes=0:1",
       "lrun: error: '--nnodes 0:1': not a number of nodes; allowed: 1 to 65536\n"
       "lrun: hint: for example '--nnodes 1'\n"},
      {"--nnodes=2:20:30",
       "lrun: error: '--nnodes 2:20:30': not a number of nodes; allowed: 1 to 65536\n"
       "lrun: hint: for example '--nnodes 1'\n"},
      {"--num_nodes=x",
       "lrun: error: '--num_nodes x': not a number of nodes; allowed: 1 to 65536\n"
       "lrun: hint: for example '--num_nodes 1'\n"},
  });
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

}  // namespace
}  // namespace lrun::launcher
