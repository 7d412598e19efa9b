#include "runtime/launch/process_start.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace lrun::detail {
namespace {

TEST(LaunchCall, IsTheSameAfterItsText) {
  const LaunchCall call{3, 12, 4567};
  EXPECT_EQ(call.text(), "3:12:4567");
  EXPECT_EQ(LaunchCall::parse(call.text()), call);
}

TEST(LaunchCall, IsNothingInAnyOtherText) {
  for (const char* const text : {"", "3", "3:1", "3:1:", "3:1:x", "0:1:5", "3:-1:5", "3:1:5 ", "3:1:5:6", "a:1:5"}) {
    EXPECT_EQ(LaunchCall::parse(text), std::nullopt) << text;
  }
}

TEST(ProcessStart, IsNoLaunchForAProgramOfAPerson) {
  EXPECT_FALSE(process_start().call);
  EXPECT_FALSE(process_start().board);
  EXPECT_NE(std::find(process_start().threads.begin(), process_start().threads.end(), ::getpid()),
            process_start().threads.end());
}

TEST(Threads, OfThisProcessAreAllOfThem) {
  std::vector<pid_t> within;
  pid_t own = 0;
  std::thread([&] {
    own = ::gettid();
    within = threads_of_this_process();
  }).join();
  for (const pid_t thread : {::getpid(), own}) {  // a sanitizer may have one of its own
    EXPECT_NE(std::find(within.begin(), within.end(), thread), within.end()) << thread;
  }
}

}  // namespace
}  // namespace lrun::detail
