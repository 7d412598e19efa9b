#include "run/workers_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "rendezvous/handshake.h"
#include "support/log_test_support.h"
#include "unit/plan/planning.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

class WorkersStoreTest : public ::testing::Test {
 protected:
  WorkersStoreTest() : plan(plan_of(request_for("2"), cpu_node())) {}

  EventLoop loop;
  LaunchPlan plan;
};

TEST_F(WorkersStoreTest, ALauncherThatLooksForOthersIsSentAway) {
  plan.run_name = "other";
  WorkersStore store(loop, plan, 16);
  ASSERT_NE(store.port(), 0);
  const SteadyTime deadline = steady_now() + std::chrono::seconds(20);
  Fd socket = connect_to("127.0.0.1", static_cast<std::uint16_t>(store.port()), deadline);
  (void)write_all(socket.get(), std::string_view(kLauncherProtocol));
  Reader reader(loop, std::move(socket));
  reader.read_until_it_says("\n");
  EXPECT_EQ(reader.text, lone_job_handshake("other"));
}

TEST_F(WorkersStoreTest, APortOfTheUsersIsTaken) {
  WorkersStore first(loop, plan, 16);
  plan.master_port = first.port();
  try {
    const WorkersStore second(loop, plan, 16);
    FAIL() << "the port is taken";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::address_in_use);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(first.port())));
  }
  plan.any_port_will_do = true;
  const WorkersStore third(loop, plan, 16);
  EXPECT_NE(third.port(), first.port());
}

TEST_F(WorkersStoreTest, InAJobAnotherNodeMayHostIt) {
  StoreServer server(loop, {});
  StoreServer* hosted_here = nullptr;
  int asked = 0;
  WorkersStore store(plan, [&](const Membership&) {
    ++asked;
    return hosted_here;
  });
  EXPECT_EQ(store.port(), 0) << "the membership has the port";
  store.enter({});
  EXPECT_FALSE(store.has_seen(0)) << "its clients are not this node's alone";
  hosted_here = &server;
  store.leave();
  store.enter({});
  EXPECT_EQ(asked, 2);
  store.report_refusals();
}

TEST_F(WorkersStoreTest, OnlyHorovodKnowsOfRanks) {
  const WorkersStore store(loop, plan, 16);
  EXPECT_TRUE(store.ranks_unseen_by_horovod(2).empty());
}

}  // namespace
}  // namespace lrun::launcher
