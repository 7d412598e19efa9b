#include "plan/device_request.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

DeviceRequest devices(const std::string& text) { return read_devices(flag("--devices", text)); }
DeviceRequest processes(const std::string& text) { return read_processes(flag("--nproc-per-node", text)); }

TEST(ReadDevices, KnowsCountAutoAllAndList) {
  EXPECT_EQ(devices("8"), (DeviceRequest{Kind::kCount, 8, {}}));
  EXPECT_EQ(devices("auto"), (DeviceRequest{Kind::kAuto, 0, {}}));
  EXPECT_EQ(devices("-1"), (DeviceRequest{Kind::kAllGpus, 0, {}}));
  EXPECT_EQ(devices("2,3"), (DeviceRequest{Kind::kList, 0, {"2", "3"}}));
  EXPECT_EQ(read_devices({}), DeviceRequest());
}

TEST(ReadDevices, TakesAListAsPeopleWriteIt) {
  EXPECT_EQ(devices("1, 3").ids, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(devices("3,1").ids, (std::vector<std::string>{"3", "1"})) << "the order is the user's";
  EXPECT_EQ(devices("2,").ids, std::vector<std::string>{"2"});
  EXPECT_EQ(devices("1,,3").ids, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(devices("GPU-ab12,MIG-9").ids, (std::vector<std::string>{"GPU-ab12", "MIG-9"}));
  EXPECT_EQ(devices("GPU-ab12").kind, Kind::kList);
}

TEST(ReadDevices, RefusesWhatIsNone) {
  for (const char* text : {"", "0", "-2", "1.5", "eight", "[0]", "8x", "99999999999999999999", "1000000"}) {
    EXPECT_NE(refusal_of([&] { devices(text); }), "") << "'" << text << "' was taken";
  }
  for (const char* text : {",", "-1,0", "0,x", "0,-2"}) {
    EXPECT_NE(refusal_of([&] { devices(text); }), "") << "'" << text << "' was taken";
  }
}

TEST(ReadDevices, SaysWhatIsAllowedAndWhatIsNear) {
  EXPECT_EQ(refusal_of([] { devices("eight"); }),
            "'--devices eight' is not a number of devices | use a count, 'auto', '-1' for all GPUs, or a list such as "
            "'2,3'");
  EXPECT_EQ(refusal_of([] { devices("atuo"); }), "'--devices atuo' is not a number of devices | did you mean 'auto'?");
  EXPECT_EQ(refusal_of([] { devices("0,01"); }), "");
  EXPECT_EQ(refusal_of([] { devices("1,01"); }), "'--devices 1,01' names GPU '1' twice | name every GPU once");
}

TEST(ReadProcesses, KnowsTorchrunsWords) {
  EXPECT_EQ(processes("3"), (DeviceRequest{Kind::kProcesses, 3, {}}));
  EXPECT_EQ(processes("auto").kind, Kind::kAutoCount);
  EXPECT_EQ(processes("cpu").kind, Kind::kCpuCount);
  EXPECT_EQ(processes("gpu").kind, Kind::kAllGpus);
  for (const char* text : {"", "0", "-1", "unknown", "2,3"}) {
    EXPECT_NE(refusal_of([&] { processes(text); }), "") << "'" << text << "' was taken";
  }
}

TEST(AsWritten, IsTheUsersOwnSpelling) {
  EXPECT_EQ(as_written(flag("-n", "4")), "-n 4");
  EXPECT_EQ(as_written({"4", Source::kEnvironment, "PET_NPROC_PER_NODE"}), "PET_NPROC_PER_NODE=4");
  EXPECT_EQ(as_written(flag(origin_of_host("-H", "node1"), "4")), "-H node1:4");
  EXPECT_EQ(as_written(flag(origin_of_host("--include", "node1"), "1,")), "--include node1:1");
  EXPECT_EQ(as_written(flag(origin_of_host("hosts.txt", "node1"), "4")), "hosts.txt: node1:4");
}

}  // namespace
}  // namespace lrun::launcher
