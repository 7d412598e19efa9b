// A launcher notices the end of the srun that has a socket for it, and mistakes nothing else for it.
#include "remote/srun_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <map>
#include <string>

#include "base/fd.h"
#include "store/listening_socket.h"

namespace lrun::launcher {
namespace {

class SrunWatchTest : public testing::Test {
 protected:
  SrunWatchTest()
      : listener_(open_listening_socket(StoreReach::kLoopback, 0)), port_(port_of_socket(listener_.get())) {}

  SrunWatch watch() {
    return SrunWatch(loop_, {"127.0.0.1", port_}, [this] {
      ++gone_;
      loop_.stop();
    });
  }

  /// Runs the loop until the watch has connected, and takes its connection.
  Fd accepted() {
    Fd connection;
    const EventLoop::Watch arrival = loop_.on_readable(listener_.get(), [&] {
      connection = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      loop_.stop();
    });
    run();
    EXPECT_TRUE(connection) << "it does not connect";
    return connection;
  }

  void run() {
    const EventLoop::Timer limit = loop_.after(Duration(60'000), [this] { loop_.stop(); });
    loop_.run();
  }

  EventLoop loop_;
  Fd listener_;
  std::uint16_t port_;
  int gone_ = 0;
};

TEST_F(SrunWatchTest, NoticesThatNobodyListensAnyMore) {
  const SrunWatch watching = watch();
  EventLoop::Watch arrival = loop_.on_readable(listener_.get(), [this] { loop_.stop(); });
  run();
  arrival.cancel();
  listener_.reset();  // nobody has accepted the connection
  run();
  EXPECT_EQ(gone_, 1);
}

TEST_F(SrunWatchTest, LooksAgainWhenAConnectionBreaks) {
  const SrunWatch watching = watch();
  accepted().reset();
  const Fd second = accepted();
  EXPECT_EQ(gone_, 0) << "somebody listens there";
  listener_.reset();
  ::shutdown(second.get(), SHUT_RDWR);
  run();
  EXPECT_EQ(gone_, 1);
}

TEST_F(SrunWatchTest, KnowsNothingOfWhatItNeverReached) {
  listener_.reset();
  const Fd kept = keep_port(StoreReach::kLoopback, port_);  // so that nobody else listens there
  const SrunWatch watching = watch();
  loop_.run();  // to its end: nothing is waited for
  EXPECT_EQ(gone_, 0);
}

TEST(SrunPlace, IsWhereSlurmSaysAndThePortThatLrunAdds) {
  const auto place = [](const std::map<std::string, std::string, std::less<>>& variables) {
    return srun_place(Environment(variables));
  };
  EXPECT_EQ(
      place({{"SLURM_SRUN_COMM_HOST", "10.0.0.1"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.2"}, {kSrunPort, "4711"}}),
      (SrunPlace{"10.0.0.1", 4711}));
  EXPECT_EQ(place({{"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.2"}, {kSrunPort, "4711"}}), (SrunPlace{"10.0.0.2", 4711}));
  EXPECT_EQ(place({{"SLURM_SRUN_COMM_HOST", "10.0.0.1"}}), std::nullopt) << "an srun of the user's own";
  EXPECT_EQ(place({{kSrunPort, "4711"}}), std::nullopt);
  EXPECT_EQ(place({{"SLURM_SRUN_COMM_HOST", "10.0.0.1"}, {kSrunPort, "70000"}}), std::nullopt);
}

}  // namespace
}  // namespace lrun::launcher
