#include "inspect/control_client.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "inspect/control_socket.h"

namespace lrun::launcher {
namespace {

using Kind = ControlAnswer::Kind;

class ControlClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "lrun-control-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(ControlClientTest, GetsTheWholeAnswerAlsoWhenNoSocketBufferHoldsIt) {
  EventLoop loop;
  const std::string answer(std::size_t{4} * 1024 * 1024, 'x');
  const Folder held = Folder::open(folder_);
  ControlSocket control(loop, held, [&](std::string_view command, const ControlSocket::Reply& reply) {
    reply(command == "status" ? answer : "?");
  });
  ControlAnswer got;
  std::thread client([&] {
    got = ask_run(folder_, "status", Duration(60'000));
    loop.stop();
  });
  const EventLoop::Timer limit = loop.after(Duration(60'000), [&] { loop.stop(); });
  loop.run();
  client.join();
  EXPECT_EQ(got.kind, Kind::kAnswered);
  EXPECT_EQ(got.text.size(), answer.size());
}

TEST_F(ControlClientTest, WaitsForASilentLauncherOnlySoLong) {
  EventLoop loop;  // does not run
  const Folder held = Folder::open(folder_);
  const ControlSocket control(loop, held, [](std::string_view, const ControlSocket::Reply&) {});
  EXPECT_EQ(ask_run(folder_, "status", Duration(20)), (ControlAnswer{Kind::kSilent, {}}));
}

TEST_F(ControlClientTest, FindsNobodyInAnEmptyFolderAndInNone) {
  EXPECT_EQ(ask_run(folder_, "status", Duration(1000)).kind, Kind::kNoRun);
  EXPECT_EQ(ask_run(folder_ / "none", "status", Duration(1000)).kind, Kind::kNoRun);
}

}  // namespace
}  // namespace lrun::launcher
