#include "cluster/device_request.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using Kind = DeviceRequest::Kind;

constexpr int kMost = 65'536;

DeviceRequest devices(const std::string& text) { return std::get<DeviceRequest>(parse_devices(text, kMost)); }

/// 'what | example or hint'
std::string problem(const std::string& text) {
  const auto parsed = parse_devices(text, kMost);
  const auto* const found = std::get_if<DeviceProblem>(&parsed);
  return found == nullptr ? "" : found->what + " | " + (found->example.empty() ? found->hint : found->example);
}

TEST(ParseDevices, KnowsCountAutoAllAndList) {
  EXPECT_EQ(devices("8"), (DeviceRequest{Kind::kCount, 8}));
  EXPECT_EQ(devices("auto"), DeviceRequest{Kind::kAuto});
  EXPECT_EQ(devices("-1"), DeviceRequest{Kind::kAllGpus});
  EXPECT_EQ(devices("2,3"), (DeviceRequest{Kind::kList, 0, {"2", "3"}}));
}

TEST(ParseDevices, TakesAListAsPeopleWriteIt) {
  EXPECT_EQ(devices("1, 3").ids, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(devices("3,1").ids, (std::vector<std::string>{"3", "1"})) << "the order is the user's";
  EXPECT_EQ(devices("2,").ids, std::vector<std::string>{"2"});
  EXPECT_EQ(devices("1,,3").ids, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(devices("0,01").ids, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(devices("GPU-ab12,MIG-9").ids, (std::vector<std::string>{"GPU-ab12", "MIG-9"}));
  EXPECT_EQ(devices("GPU-ab12").kind, Kind::kList);
}

TEST(ParseDevices, RefusesEverythingElse) {
  for (const char* text : {"", "0", "-2", "1.5", "eight", "[0]", "8x", "99999999999999999999", "1000000"}) {
    EXPECT_NE(problem(text), "") << "'" << text << "' was taken";
  }
  for (const char* text : {",", "-1,0", "0,x", "0,-2", "1,01", "0,65536"}) {
    EXPECT_NE(problem(text), "") << "'" << text << "' was taken";
  }
}

TEST(ParseDevices, SaysWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(problem("eight"), "neither a count nor a list of devices | 2");
  EXPECT_EQ(problem("atuo"), "neither a count nor a list of devices | did you mean 'auto'?");
  EXPECT_EQ(problem("gpu"), "neither a count nor a list of devices | did you mean '-1'?");
  EXPECT_EQ(problem("CPU"),
            "neither a count nor a list of devices | '--accelerator cpu' is the kind, and '--devices' how many");
  EXPECT_EQ(problem("99999999"), "more than 65536 devices | 65536");
  EXPECT_EQ(problem("1,01"), "names device 1 twice | name every device once");
}

TEST(ParseDevices, DoesNotJoinNumbersWithABlankBetweenThem) {
  EXPECT_EQ(problem("2 4"), "neither a count nor a list of devices | did you mean '2,4'?");
  EXPECT_EQ(problem("0 1,2"), "'0 1' is not the number of a device | 0,2");
  EXPECT_EQ(devices(" 8 "), (DeviceRequest{Kind::kCount, 8}));
  EXPECT_EQ(devices("'0 , 2'").ids, (std::vector<std::string>{"0", "2"}));
}

TEST(DeviceRequestText, IsReadAsTheSameRequest) {
  for (const char* text : {"8", "2,3", "2,", "GPU-ab12,", "auto", "-1"}) {
    EXPECT_EQ(text_of(devices(text)), text);
  }
  EXPECT_EQ(text_of(DeviceRequest()), "");
  EXPECT_EQ(text_of(DeviceRequest{Kind::kXpuCount}), "xpu");
}

TEST(DeviceRequest, KnowsWhetherItCountsOrNeedsGpus) {
  EXPECT_EQ(devices("3").number(), 3);
  EXPECT_EQ(devices("3,").number(), std::nullopt);
  for (const Kind kind : {Kind::kAllGpus, Kind::kGpuCount, Kind::kXpuCount})
    EXPECT_TRUE(DeviceRequest{kind}.needs_gpus());
  for (const Kind kind : {Kind::kNone, Kind::kAuto, Kind::kCount, Kind::kCpuCount}) {
    EXPECT_FALSE(DeviceRequest{kind}.needs_gpus());
  }
}

}  // namespace
}  // namespace lrun::launcher
