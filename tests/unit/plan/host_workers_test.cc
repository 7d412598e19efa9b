#include "plan/host_workers.h"

#include <gtest/gtest.h>

#include <string>

#include "cluster/host_filter.h"
#include "support/mentions.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

LaunchRequest request_on(const std::string& hosts, const std::string& option = "", const std::string& value = "") {
  LaunchRequest request = request_for("");
  request.hosts = hosts_flag(hosts);
  if (option == "--devices") request.devices = devices_flag(value);
  if (!option.empty() && option != "--devices") request.nproc_per_node = workers_flag(value, option);
  return request;
}

/// The hosts of an lrun, and why it is refused.
std::string answer(const LaunchRequest& request) {
  std::vector<Host> used;
  const std::string refusal = refusal_of([&] {
    used = used_hosts(hosts_of(request), request);
    check_worker_counts(request, used);
  });
  return refusal.empty() ? text_of(used) : refusal;
}

std::string lrun(const std::string& option, const std::string& value, const std::string& hosts) {
  return answer(request_on(hosts, option, value));
}

std::string horovodrun(const std::string& option, const std::string& value, const std::string& hosts) {
  LaunchRequest request = request_on(hosts, option, value);
  request.compat = Compat::kHorovodrun;
  return answer(request);
}

TEST(HostWorkers, MayBeSaidAgain) {
  EXPECT_EQ(lrun("-np", "8", "a:4,b:4"), "a:4,b:4");
  EXPECT_EQ(lrun("-n", "5", "a:4,b:1"), "a:4,b:1");
  EXPECT_EQ(lrun("-np", "4", "a:4"), "a:4");
  EXPECT_EQ(lrun("--devices", "4", "a:4,b:4"), "a:4,b:4");
  EXPECT_EQ(lrun("--nproc-per-node", "4", "a:4,b:4"), "a:4,b:4");
}

TEST(HostWorkers, AreAsOptionsSayWhereTheListHasNoNumbers) {
  EXPECT_EQ(lrun("--devices", "4", "a,b"), "a,b");
  EXPECT_EQ(lrun("--nproc-per-node", "4", "a,b"), "a,b");
  EXPECT_EQ(lrun("-np", "4", "a"), "a") << "of one host all are those of each";
  EXPECT_EQ(lrun("-n", "gpu", "a,b"), "a,b");
}

TEST(HostWorkers, RefuseACountThatMayBeOfEachHostOrOfAll) {
  EXPECT_THAT(lrun("-np", "2", "a:2,b:2"), mentions({"'-np 2'", "'-H a:2,b:2'", "'--devices 2'", "2", "'-H a:2'"}));
  EXPECT_THAT(lrun("-n", "4", "a,b,c"), mentions({"'-n 4'", "'-H a,b,c'", "'--devices 4'", "4", "'-H a:2,b:1,c:1'"}));
  EXPECT_THAT(lrun("-np", "1", "a,b"), mentions({"'-np 1'", "'-H a,b'", "'--devices 1'", "1", "'-H a:1'"}));
}

TEST(HostWorkers, RefuseContradictionsWithTheLineToType) {
  EXPECT_EQ(lrun("--devices", "4", "a:2,b:2"),
            "'--devices 4' and '-H a:2,b:2' contradict each other: the hosts have 4 workers in all | leave '--devices' "
            "out, or write '-H a:4,b:4'");
  EXPECT_EQ(lrun("-np", "6", "a:4,b:4"),
            "'-np 6' and '-H a:4,b:4' contradict each other: the hosts have 8 workers in all | leave '-np' out, or "
            "write '-H a:4,b:2'");
  EXPECT_EQ(lrun("-np", "9", "a:4,b:4"),
            "'-np 9' and '-H a:4,b:4' contradict each other: the hosts have 8 workers in all | leave '-np' out, or "
            "write '-H a:5,b:4'");
  EXPECT_EQ(lrun("-np", "gpu", "a:4,b:4"),
            "'-np gpu' and '-H a:4,b:4' both say how many workers a host has | leave '-np' out");
  EXPECT_THAT(lrun("", "", "a:4,b"), mentions({"'-H a:4,b'", "'b'", "'b:1'"}));
}

TEST(HostWorkers, AreOfAllHostsTogetherUnderHorovodrun) {
  for (const char* const option : {"-np", "-n", "--num-proc"}) {
    EXPECT_EQ(horovodrun(option, "2", "a:2,b:2"), "a:2") << "a host without workers is not used";
    EXPECT_EQ(horovodrun(option, "3", "a:2,b:2"), "a:2,b:1");
    EXPECT_EQ(horovodrun(option, "4", "a:2,b:2"), "a:2,b:2");
    EXPECT_EQ(horovodrun(option, "4", "a:4,b:4"), "a:4");
    EXPECT_EQ(horovodrun(option, "2", "a,b,c"), "a:1,b:1") << "a host without a number has one";
    EXPECT_EQ(horovodrun(option, "4", "a"), "a") << "but where it is the only one";
  }
  EXPECT_EQ(horovodrun("--devices", "2", "a:2,b:2"), "a:2,b:2") << "of each host, as lrun has it";
}

TEST(HostWorkers, MoreThanTheHostsHaveAreRefusedUnderHorovodrun) {
  EXPECT_EQ(horovodrun("-np", "6", "a:2,b:2"),
            "'-np 6' is more than the 4 workers that the hosts of '-H a:2,b:2' have in all | write '-H a:3,b:3'");
  EXPECT_THAT(horovodrun("-np", "5", "a,b"), mentions({"'-np 5'", "2 workers", "'-H a,b'", "'-H a:3,b:2'"}));
  EXPECT_THAT(horovodrun("-np", "2", "a:4,b"), mentions({"'-H a:4,b'", "'b'", "'b:1'"}));
}

TEST(HostWorkers, KeepTheFirstOfTheDevicesThatWereSelected) {
  LaunchRequest request = request_on("a:8,b:8", "-np", "5");
  request.compat = Compat::kHorovodrun;
  const std::vector<Host> selected = included(hosts_of(request), "a:1,5,7@b:0,2,4", "--include");
  EXPECT_EQ(used_hosts(selected, request), (std::vector<Host>{{.name = "a", .slots = 3, .devices = {1, 5, 7}},
                                                              {.name = "b", .slots = 2, .devices = {0, 2}}}));
  request.nproc_per_node.value.count = 1;
  EXPECT_EQ(used_hosts(selected, request), (std::vector<Host>{{.name = "a", .slots = 1, .devices = {1}}}));
}

TEST(HostWorkers, OfUnnamedNodesHaveNoTotal) {
  LaunchRequest request = request_for("");
  request.nproc_per_node = workers_flag("4", "-np");
  request.num_nodes = {2, Source::kFlag, "--num_nodes"};
  const auto refusal = [&] { return refusal_of([&] { refuse_total_of_unnamed_nodes(request); }); };
  EXPECT_EQ(refusal(), "") << "lrun's -np is of each node";
  request.compat = Compat::kHorovodrun;
  EXPECT_THAT(refusal(), mentions({"'-np 4'", "'--num_nodes 2'", "'--devices 4'", "4", "'-H a:4,b:4'"}));
  request.num_nodes.value = 1;
  EXPECT_EQ(refusal(), "");
}

LaunchRequest under_deepspeed() {
  LaunchRequest request = request_for("2");
  request.strategy = strategy_flag("deepspeed");
  return request;
}

std::string counted(const std::string& hosts, LaunchRequest request) {
  return text_of(used_hosts(parse_host_list(hosts, "-H"), request));
}

TEST(HostWorkersOfDeepSpeed, TakesTheFirstHostsAndTheFirstDevicesOfEach) {
  LaunchRequest request = under_deepspeed();
  request.devices = {};
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:4,b:4,c:4");
  request.num_nodes = {2, Source::kFlag, "--num_nodes"};
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:4,b:4");
  request.devices = devices_flag("2", "--num_gpus");
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:2,b:2");
  EXPECT_EQ(counted("a:4,b:1", request), "a:2,b:1") << "too many is refused later, by name";
  EXPECT_EQ(counted("a,b,c", request), "a,b");
  request.strategy = strategy_flag("ddp");
  EXPECT_EQ(counted("a:4,b:4,c:4", request), "a:4,b:4,c:4") << "elsewhere that is a contradiction";
}

TEST(HostWorkersOfDeepSpeed, KeepsTheDevicesThatAreNamedOfAHost) {
  LaunchRequest request = under_deepspeed();
  std::vector<Host> hosts = parse_host_list("a:4,b:4", "-H");
  hosts[0].devices = {1, 2, 3};
  hosts[0].slots = 3;
  EXPECT_EQ(used_hosts(hosts, request)[0], hosts[0]);
  EXPECT_EQ(used_hosts(hosts, request)[1].slots, 2);
}

}  // namespace
}  // namespace lrun::launcher
