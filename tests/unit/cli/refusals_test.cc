// Exact words of every refusal: what is wrong, what is allowed, what to type instead.
#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

struct Case {
  const char* option;
  const char* message;
};

void expect_refused(std::initializer_list<Case> cases) {
  for (const Case& expected : cases) EXPECT_EQ(refusal({expected.option, "./train"}), expected.message);
}

TEST(Refusal, OfDevicesNamesWhatIsAllowed) {
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

TEST(Refusal, OfWorkersNamesWhatIsAllowed) {
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

TEST(Refusal, OfNodes) {
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

TEST(Refusal, OfAStrategyTellsLaterNamesFromMistakes) {
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

TEST(Refusal, OfWordsNamesTheNearest) {
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

TEST(Refusal, OfNumbersNamesTheRange) {
  expect_refused({
      {"--seed=-1",
       "lrun: error: '--seed -1': not a whole number; allowed: 0 to 18446744073709551615\n"
       "lrun: hint: for example '--seed 0'\n"},
      {"--seed=18446744073709551616",
       "lrun: error: '--seed 18446744073709551616': out of range; allowed: 0 to 18446744073709551615\n"
       "lrun: hint: for example '--seed 18446744073709551615'\n"},
      {"--master-port=65536",
       "lrun: error: '--master-port 65536': out of range; allowed: 0 to 65535\n"
       "lrun: hint: for example '--master-port 65535'\n"},
      {"--master-port=http",
       "lrun: error: '--master-port http': not a whole number; allowed: 0 to 65535\n"
       "lrun: hint: for example '--master-port 0'\n"},
      {"--grace=soon",
       "lrun: error: '--grace soon': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--grace 30s'\n"},
      {"--settle=never",
       "lrun: error: '--settle never': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--settle 2s'\n"},
      {"--max-restarts=x",
       "lrun: error: '--max-restarts x': not a whole number; allowed: 0 to 2147483647\n"
       "lrun: hint: for example '--max-restarts 0'\n"},
      {"--max-restarts=-1",
       "lrun: error: '--max-restarts -1': out of range; allowed: 0 to 2147483647\n"
       "lrun: hint: for example '--max-restarts 0'\n"},
      {"--timeout=0",
       "lrun: error: '--timeout 0': no time at all\n"
       "lrun: hint: 'none' is no limit\n"},
      {"--start-timeout=soon",
       "lrun: error: '--start-timeout soon': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--start-timeout 5m'\n"},
      {"--restart-backoff=long",
       "lrun: error: '--restart-backoff long': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--restart-backoff 30s'\n"},
      {"--log-dir=",
       "lrun: error: '--log-dir=': the name of a directory is missing\n"
       "lrun: hint: '/dev/null' switches log files off\n"},
  });
}

TEST(Refusal, OfLaterFlagsNamesTheFlagAndAWayOut) {
  expect_refused({
      {"--rdzv-backend=ectd",
       "lrun: error: '--rdzv-backend ectd': no such rendezvous backend; allowed: static, c10d, etcd, etcd-v2\n"
       "lrun: hint: did you mean 'etcd'?\n"},
      {"--rdzv-conf=store_type=file",
       "lrun: error: '--rdzv-conf store_type=file': launchers meet over TCP, and not through a store of type 'file'\n"
       "lrun: hint: leave 'store_type' out, and give '--rdzv-endpoint HOST:29400' on every node\n"},
      {"--rdzv-conf=protocol=tls",
       "lrun: error: '--rdzv-conf protocol=tls': 'protocol' is neither http nor https\n"
       "lrun: hint: for example '--rdzv-conf protocol=https'\n"},
      {"--node-rank=-1",
       "lrun: error: '--node-rank -1': out of range; allowed: 0 to 65535\n"
       "lrun: hint: for example '--node-rank 0'\n"},
      {"-Ha:4,b:x",
       "lrun: error: '-H a:4,b:x': 'b:x' has no number of workers from 1 to 65536\n"
       "lrun: hint: write 'a:4' for host a with 4 workers, 'bob@a:4' for user bob\n"},
      {"--hostfile=",
       "lrun: error: '--hostfile=': the name of a file is missing\n"
       "lrun: hint: for example '--hostfile hosts.txt'\n"},
      {"--ssh='ssh",
       "lrun: error: '--ssh 'ssh': a quote is not closed, or a backslash protects nothing\n"
       "lrun: hint: quote as for a shell\n"},
      {"--monitor-interval=0",
       "lrun: error: '--monitor-interval 0': not a number of seconds above 0\n"
       "lrun: hint: for example '--monitor-interval 0.1'\n"},
      {"--monitor-interval=soon",
       "lrun: error: '--monitor-interval soon': not a number of seconds above 0\n"
       "lrun: hint: for example '--monitor-interval 0.1'\n"},
      {"--start-method=thread",
       "lrun: error: '--start-method thread': no such choice; allowed: spawn, fork, forkserver\n"
       "lrun: hint: for example '--start-method spawn'\n"},
  });
}

TEST(Refusal, OfAnEndpointThatCannotBeRead) {
  for (const std::string endpoint : {":123", "~:29400", "localhost:", "localhost:65536", "localhost:x", "a b:1",
                                     "local/host:1", "[::1", "localhost:-1"}) {
    EXPECT_EQ(refusal({"--rdzv-endpoint=" + endpoint, "p"}),
              "lrun: error: '--rdzv-endpoint " + endpoint +
                  "': not HOST:PORT; an IPv6 address stands in brackets\n"
                  "lrun: hint: for example '--rdzv-endpoint localhost:29400'\n");
  }
}

TEST(Refusal, OfAnAddressWithBracketsAroundSomethingElse) {
  for (const std::string address : {"[::1", "[node0]", "[::1]:29500"}) {
    EXPECT_EQ(refusal({"--master-addr", address, "p"}), "lrun: error: '--master-addr " + address +
                                                            "': neither a host's name nor an address\n"
                                                            "lrun: hint: for example '--master-addr [fd00::1]'\n");
  }
}

TEST(Refusal, OfAConfigurationOfTheRendezvous) {
  for (const std::string conf : {"join_timeout", "join_timeout=", "=5", "join_timeout=5,", " , "}) {
    EXPECT_EQ(refusal({"--rdzv-conf", conf, "p"}), "lrun: error: '--rdzv-conf " + conf +
                                                       "': not a list of KEY=VALUE with commas\n"
                                                       "lrun: hint: for example '--rdzv-conf join_timeout=600'\n");
  }
  expect_refused({
      {"--rdzv-conf=read_timeout=0",
       "lrun: error: '--rdzv-conf read_timeout=0': 'read_timeout' is not a number of seconds above 0\n"
       "lrun: hint: for example '--rdzv-conf read_timeout=600'\n"},
      {"--rdzv-conf=keep_alive_max_attempt=0",
       "lrun: error: '--rdzv-conf keep_alive_max_attempt=0': 'keep_alive_max_attempt' is not a number of attempts "
       "above "
       "0\n"
       "lrun: hint: for example '--rdzv-conf keep_alive_max_attempt=3'\n"},
      {"--rdzv-conf=is_host=maybe",
       "lrun: error: '--rdzv-conf is_host=maybe': 'is_host' is neither yes nor no\n"
       "lrun: hint: for example '--rdzv-conf is_host=true'\n"},
  });
}

TEST(Refusal, OfALineWithoutAProgramShowsTheUsage) {
  const std::string expected =
      "lrun: error: no PROGRAM to run\n"
      "lrun: hint: usage: lrun [options] [--] PROGRAM [ARGS...]; 'lrun -h' shows the options\n";
  EXPECT_EQ(refusal({}), expected);
  EXPECT_EQ(refusal({"-n", "2"}), expected);
  EXPECT_EQ(refusal({"-n", "2", "--"}), expected);
  EXPECT_EQ(refusal({""}),
            "lrun: error: the name of PROGRAM is empty\nlrun: hint: an unset variable in quotes is an empty word\n");
}

}  // namespace
}  // namespace lrun::launcher
