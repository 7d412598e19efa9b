// A launcher that comes to the endpoint of a job which is met elsewhere.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "coordinator_harness.h"
#include "rendezvous/job.h"
#include "store/listening_socket.h"
#include "support/patience.h"

namespace lrun::launcher {
namespace {

using test::kPatience;

/// Records the lines about where the job meets.
struct Recorded : JobEvents {
  explicit Recorded(EventLoop& event_loop) : loop(event_loop) {}
  void failed(const std::string& why, const std::string& /*hint*/) override {
    ADD_FAILURE() << why;
    loop.stop();
  }
  void redirected(const std::string& text) override { told.push_back(text); }

  EventLoop& loop;
  std::vector<std::string> told;
};

/// A foreign program has the port of the rendezvous that was there; the endpoint knows no better place.
TEST(JobElsewhere, SaysOnceWhereItIsSentTo) {
  EventLoop loop;
  const Fd place = open_listening_socket(StoreReach::kLoopback, 0);
  RendezvousServer endpoint(loop, {.reach = StoreReach::kLoopback, .merge = test::joined});
  endpoint.redirect_to(RendezvousAddress{"127.0.0.1", port_of_socket(place.get())});
  RendezvousPlan plan;
  plan.host = "127.0.0.1";
  plan.port = endpoint.server().port();
  plan.hosting = RendezvousPlan::Hosting::kNever;
  plan.max_nodes = 2;
  plan.join_timeout = plan.connect_timeout = kPatience;
  Recorded events(loop);
  int visits = 0;
  Job job(loop, plan, test::node_at("127.0.0.1"), test::joined, 64);
  job.set_events(events);
  const EventLoop::Watch visited = loop.on_readable(place.get(), [&] {
    const Fd launcher(::accept4(place.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_GT(::send(launcher.get(), "no launcher's words", 19, MSG_NOSIGNAL), 0);
    if (++visits == 3) loop.stop();
  });
  const EventLoop::Timer limit = loop.after(kPatience, [&] {
    ADD_FAILURE() << "it does not look again";
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(events.told, (std::vector<std::string>{"the job is already running: this node joins it at 127.0.0.1 port " +
                                                   std::to_string(port_of_socket(place.get()))}));
}

}  // namespace
}  // namespace lrun::launcher
