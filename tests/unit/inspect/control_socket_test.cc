#include "inspect/control_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <optional>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

class ControlSocketTest : public ::testing::Test {
 protected:
  ControlSocketTest() { held_ = Folder::make(folder_); }

  [[nodiscard]] Fd connect() const {
    const Fd directory(::open(folder_.c_str(), O_PATH | O_CLOEXEC));
    const std::string name = "/proc/self/fd/" + std::to_string(directory.get()) + "/control.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_ / std::string(120, 'x');
  Folder held_;
  EventLoop loop_;
};

TEST_F(ControlSocketTest, AnswersACommandThatCameInPiecesAlsoInAFolderWithALongName) {
  ControlSocket control(loop_, held_, [this](std::string_view command, const ControlSocket::Reply& reply) {
    loop_.stop();
    reply("{\"got\":\"" + std::string(command) + "\"}");
  });
  const Fd client = connect();
  ASSERT_EQ(::send(client.get(), "sta", 3, 0), 3);
  EventLoop::Timer later = loop_.after(Duration(1), [&] { ASSERT_EQ(::send(client.get(), "tus\nrest", 8, 0), 8); });
  loop_.run();
  char answer[64] = {};
  EXPECT_GT(::recv(client.get(), answer, sizeof answer - 1, 0), 0);
  EXPECT_STREQ(answer, "{\"got\":\"status\"}\n");
}

TEST_F(ControlSocketTest, AnswersLaterWhereTheClientAndItselfAreStillThere) {
  std::vector<ControlSocket::Reply> replies;
  std::optional<ControlSocket> control;
  control.emplace(loop_, held_, [&](std::string_view, const ControlSocket::Reply& reply) {
    replies.push_back(reply);
    if (replies.size() == 2) loop_.stop();
  });
  const Fd first = connect();
  const Fd second = connect();
  for (const Fd* const client : {&first, &second}) ASSERT_EQ(::send(client->get(), "job\n", 4, 0), 4);
  loop_.run();
  replies.front()("{}");
  char answer[64] = {};
  EXPECT_GT(::recv(first.get(), answer, sizeof answer - 1, 0), 0);
  EXPECT_STREQ(answer, "{}\n");
  replies.front()("{}");  // once more, to nobody
  control.reset();
  replies.back()("{}");
  EXPECT_EQ(::recv(second.get(), answer, sizeof answer, 0), 0) << "closed without an answer";
}

TEST_F(ControlSocketTest, DropsAClientThatSendsTooMuch) {
  ControlSocket control(
      loop_, held_, [](std::string_view, const ControlSocket::Reply&) { ADD_FAILURE() << "no command was finished"; });
  const Fd client = connect();
  const std::string flood(8192, 'x');
  ASSERT_EQ(::send(client.get(), flood.data(), flood.size(), 0), 8192);
  EventLoop::Watch closed;
  closed = loop_.on_readable(client.get(), [&] {
    char byte = 0;
    EXPECT_LE(::recv(client.get(), &byte, 1, 0), 0);
    loop_.stop();
  });
  loop_.run();
}

TEST_F(ControlSocketTest, LeavesNoSocketBehind) {
  std::optional<ControlSocket> control;
  control.emplace(loop_, held_, [](std::string_view, const ControlSocket::Reply&) {});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "control.sock"));
  control.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "control.sock"));
}

}  // namespace
}  // namespace lrun::launcher
