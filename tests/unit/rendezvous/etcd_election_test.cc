#include "rendezvous/etcd_election.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/base64.h"
#include "support/fake_etcd.h"
#include "support/patience.h"

namespace lrun::launcher {
namespace {

using test::FakeEtcd;

using test::kAnswerPatience;

std::string key_with(const std::string& value, int revision) {
  return R"({"header":{},"kvs":[{"value":")" + to_base64(value) + R"(","create_revision":")" +
         std::to_string(revision) + R"("}]})";
}

/// An election of this node against an etcd that the test speaks for, until one thing is told.
class Election : public ::testing::Test {
 protected:
  void run() {
    FakeEtcd etcd(loop_, [this](const std::string& request) { return answer(request); });
    EtcdElection::Options options = options_at(etcd);
    options.lease = Duration(1000);
    options.timeout = kAnswerPatience;
    EtcdElection election(loop_, options,
                          {.open = [](const std::string&) { return std::uint16_t{4000}; },
                           .close = [] {},
                           .found =
                               [this](const LeaderRecord& leader, bool is_self, const std::optional<JobState>&) {
                                 told_ += (is_self ? "holds " : "found ") + leader.address + "; ";
                                 if (is_self) return;
                                 std::exchange(is_out_of_reach_, false) ? election_->campaign_again() : loop_.stop();
                               },
                           .deposed =
                               [this](const std::string& why) {
                                 told_ += "deposed: " + why;
                                 loop_.stop();
                               },
                           .failed =
                               [this](const std::string& why, const std::string&) {
                                 told_ += "failed: " + why;
                                 loop_.stop();
                               }});
    election_ = &election;
    election.campaign();
    loop_.run();
  }

  static EtcdElection::Options options_at(const FakeEtcd& etcd) {
    return {.etcd = {.endpoints = {{"127.0.0.1", etcd.port()}}, .attempt = kAnswerPatience},
            .folder = "/lrun/job",
            .self = {.token = "own", .node = "here"}};
  }

  /// Gives leases, and lets whoever asks create the key.
  std::string answer(const std::string& request) {
    if (request.starts_with("POST /v3/lease/grant"))
      return FakeEtcd::response(R"({"ID":")" + lease_ + R"(","TTL":")" + seconds_ + R"("})");
    if (request.starts_with("POST /v3/kv/txn") && request.find("delete") != std::string::npos) {
      held_ = "{}";
      election_->campaign_again();  // told twice that its link is broken
      return FakeEtcd::response(R"({"succeeded":true,"responses":[{}]})");
    }
    if (request.starts_with("POST /v3/kv/txn")) {
      const std::string_view begin = R"("value":")";
      const std::size_t start = request.find(begin) + begin.size();
      const std::string value = request.substr(start, request.find('"', start) - start);
      elected_ = true;
      return FakeEtcd::response(
          R"({"succeeded":true,"responses":[{"response_put":{}},{"response_range":{"kvs":[{"value":")" + value +
          R"(","create_revision":"5"}]}},{"response_range":{}}]})");
    }
    if (elected_ && !lives_) return {};
    if (elected_ && !unsure_.empty()) return std::exchange(unsure_, "");
    if (request.starts_with("POST /v3/lease/keepalive"))
      return FakeEtcd::response(R"({"result":{"header":{},"ID":"7","TTL":"4"}})");
    if (!elected_) return FakeEtcd::response(held_);
    if (asked_.empty()) return FakeEtcd::response(key_with("another's", 6));
    const std::string body = asked_.front();
    asked_.erase(asked_.begin());
    return FakeEtcd::response(body);
  }

  EventLoop loop_;
  EtcdElection* election_ = nullptr;
  bool is_out_of_reach_ = false;  ///< the first that is found
  std::string held_ = "{}";       ///< what etcd knows before the election
  std::string lease_ = "7";
  std::string seconds_ = "1";       ///< that a lease lives
  std::string unsure_;              ///< its first answer after it
  std::vector<std::string> asked_;  ///< what it says then about the key, before another has it
  bool lives_ = true;               ///< etcd answers after it
  bool elected_ = false;
  std::string told_;
};

TEST_F(Election, FindsTheLeader) {
  held_ = key_with(to_json(LeaderRecord{"other", "there", "10.0.0.1", 4000}), 3);
  run();
  EXPECT_EQ(told_, "found 10.0.0.1; ");
}

TEST_F(Election, LetsGoBeforeALeaseThatCannotBeRenewedIsOver) {
  lives_ = false;
  run();
  EXPECT_TRUE(told_.starts_with("holds 127.0.0.1; deposed: no answer from etcd for 1s: ")) << told_;
}

TEST_F(Election, LetsGoWhenAnotherHasTheKey) {
  seconds_ = "4";
  run();
  EXPECT_EQ(told_, "holds 127.0.0.1; deposed: another launcher leads now");
}

/// An etcd 3.6 without a leader, and a program that is not an etcd.
TEST_F(Election, KeepsLeadingWhileNothingIsKnown) {
  seconds_ = "4";
  unsure_ = FakeEtcd::response("{}");
  asked_ = {"{}", R"({"code":9,"message":"etcdserver: not capable","details":[]})"};
  run();
  EXPECT_EQ(told_, "holds 127.0.0.1; deposed: another launcher leads now");
  EXPECT_TRUE(asked_.empty() && unsure_.empty());
}

TEST_F(Election, NeedsALease) {
  lease_ = "0";
  run();
  EXPECT_EQ(told_, "failed: etcd grants no lease");
}

TEST_F(Election, LooksOnceHoweverOftenItIsAsked) {
  std::uint16_t nobody = 0;
  {
    const Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
    nobody = port_of_socket(listener.get());
  }
  held_ = key_with(to_json(LeaderRecord{"other", "here", "127.0.0.1", nobody}), 3);
  is_out_of_reach_ = true;
  seconds_ = "4";
  run();
  EXPECT_EQ(told_, "found 127.0.0.1; holds 127.0.0.1; deposed: another launcher leads now");
}

TEST_F(Election, LeavesTheOutcomeBehindAndGivesItsLeaseBackWhereEtcdIsSlow) {
  EventLoop loop;
  std::string left_behind;
  std::vector<std::string> revoked;
  int leases = 0;
  elected_ = false;
  FakeEtcd etcd(loop, [&](const std::string& request) {
    if (request.starts_with("POST /v3/lease/grant")) {
      return FakeEtcd::response(R"({"ID":")" + std::to_string(++leases) + R"(","TTL":"60"})");
    }
    if (request.starts_with("POST /v3/lease/revoke")) {
      revoked.push_back(request.substr(request.find("\r\n\r\n") + 4));
      return FakeEtcd::response("{}");
    }
    if (request.find("request_delete_range") != std::string::npos) {
      left_behind = request;
      return std::string();
    }
    return answer(request);
  });
  EtcdElection election(
      loop, options_at(etcd),
      {.open = [](const std::string&) { return std::uint16_t{4000}; },
       .close = [] {},
       .found = [&](const LeaderRecord&, bool,
                    const std::optional<JobState>&) { election.resign("it failed", [&] { loop.stop(); }); },
       .deposed = [](const std::string&) {},
       .failed = [&](const std::string&, const std::string&) { loop.stop(); }});
  election.campaign();
  loop.run();
  EXPECT_EQ(revoked, std::vector<std::string>{R"({"ID":"1"})"}) << "the state stays for a while";
  const std::string state = to_base64(to_json(JobState{.outcome = "it failed"}));
  EXPECT_NE(left_behind.find(R"("lease":"2","value":")" + state), std::string::npos) << left_behind;
  EXPECT_NE(left_behind.find(R"("create_revision":"5")"), std::string::npos) << "only while the key is ours";
}

/// Without it nobody could go on with the job.
TEST_F(Election, AsksEtcdToKeepTheStateUntilItDoes) {
  EventLoop loop;
  int asked = 0;
  std::string not_kept;
  FakeEtcd etcd(loop, [&](const std::string& request) {
    if (!elected_) return answer(request);
    if (request.starts_with("POST /v3/kv/range")) return FakeEtcd::response(key_with("own", 5));
    if (!request.starts_with("POST /v3/kv/txn")) return answer(request);
    if (++asked < 3) return FakeEtcd::response(R"({"code":9,"message":"no space"})", "400 Bad Request");
    loop.stop();
    return FakeEtcd::response(R"({"succeeded":true,"responses":[{}]})");
  });
  EtcdElection election(
      loop, options_at(etcd),
      {.open = [](const std::string&) { return std::uint16_t{4000}; },
       .close = [] {},
       .found = [&](const LeaderRecord&, bool, const std::optional<JobState>&) { election.publish({.round = 1}); },
       .deposed = [](const std::string&) {},
       .failed = [&](const std::string&, const std::string&) { loop.stop(); },
       .not_published = [&](const std::string& why) { not_kept += why; }});
  seconds_ = "2";
  election.campaign();
  loop.run();
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(not_kept, "no space") << "told once";
}

TEST_F(Election, RenewsItsLeaseAtAnEtcdThatIsTooFullForTheState) {
  EventLoop loop;
  std::string told;
  int puts = 0;  // one each 200 ms, until a quarter of the lease is over at the latest
  FakeEtcd etcd(loop, [&](const std::string& request) {
    if (elected_ && request.starts_with("POST /v3/lease/keepalive")) {
      told += "renews";
      loop.stop();
    }
    if (!elected_ || !request.starts_with("POST /v3/kv/txn")) return answer(request);
    ++puts;
    return FakeEtcd::response(R"({"code":8,"message":"no space"})", "429 Too Many Requests");
  });
  EtcdElection election(
      loop, options_at(etcd),
      {.open = [](const std::string&) { return std::uint16_t{4000}; },
       .close = [] {},
       .found = [&](const LeaderRecord&, bool, const std::optional<JobState>&) { election.publish({.round = 1}); },
       .deposed =
           [&](const std::string& why) {
             told += "deposed: " + why;
             loop.stop();
           },
       .failed = [&](const std::string&, const std::string&) { loop.stop(); },
       .not_published = [&](const std::string& why) { told += why + "; "; }});
  seconds_ = "8";
  election.campaign();
  loop.run();
  EXPECT_EQ(told, "127.0.0.1 port " + std::to_string(etcd.port()) + " says 'no space'; renews");
  EXPECT_LT(puts, 12) << "the renewal had to wait";
}

TEST_F(Election, RefusesAnAddressThatMeansAnotherNodeItself) {
  held_ = key_with(to_json(LeaderRecord{"other", "there", "127.0.0.1", 4000}), 3);
  run();
  EXPECT_EQ(told_, "failed: the leader is node there, which knows its own address only as 127.0.0.1");
}

TEST_F(Election, RefusesAKeyThatIsNotLruns) {
  held_ = key_with("something", 3);
  run();
  EXPECT_EQ(told_, "failed: the key '/lrun/job/holder' in etcd was not written by lrun");
}

}  // namespace
}  // namespace lrun::launcher
