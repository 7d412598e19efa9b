#include "store/etcd_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_etcd.h"
#include "support/patience.h"

namespace lrun::launcher {
namespace {

using test::FakeEtcd;

using test::kAnswerPatience;

/// Runs the loop until the question is answered.
EtcdClient::Result ask(EventLoop& loop, EtcdClient& client, Duration limit = kAnswerPatience) {
  std::optional<EtcdClient::Result> told;
  client.ask(etcd_get("key"), limit, [&](const EtcdClient::Result& result) {
    told = result;
    loop.stop();
  });
  loop.run();
  return told ? *told : EtcdClient::Result{.answer = {}, .trouble = "nobody was told"};
}

EtcdClient::Options at(std::initializer_list<std::uint16_t> ports, const std::string& user = {}) {
  EtcdClient::Options options{.endpoints = {}, .user = user, .password = "pw", .attempt = kAnswerPatience};
  for (const std::uint16_t port : ports) options.endpoints.push_back({"127.0.0.1", port});
  return options;
}

std::string found() { return FakeEtcd::response(R"({"kvs":[{"value":"aGVsbG8=","create_revision":"3"}]})"); }

std::string error(int code, const std::string& text) {
  return FakeEtcd::response(R"({"error":")" + text + R"(","code":)" + std::to_string(code) + "}", "400 Bad Request");
}

TEST(EtcdClient, AsksAgainOverTheSameConnection) {
  EventLoop loop;
  FakeEtcd etcd(loop, [](const std::string&) { return found(); });
  EtcdClient client(loop, at({etcd.port()}));
  for (int i = 0; i < 3; ++i) {
    const EtcdClient::Result result = ask(loop, client);
    EXPECT_EQ(result.trouble, "");
    ASSERT_EQ(result.answer.entries.size(), 1U);
    EXPECT_EQ(result.answer.entries[0], (EtcdEntry{"hello", 3}));
  }
  EXPECT_EQ(client.own_address(), "127.0.0.1");
  EXPECT_EQ(etcd.paths, std::vector<std::string>(3, "/v3/kv/range"));
}

TEST(EtcdClient, AsksTheNextEndpoint) {
  EventLoop loop;
  const std::uint16_t nobody = FakeEtcd(loop, nullptr).port();
  FakeEtcd silent(loop, [](const std::string&) { return std::string(); });
  FakeEtcd leaderless(loop, [](const std::string&) { return error(kEtcdUnavailable, "etcdserver: no leader"); });
  FakeEtcd sound(loop, [](const std::string&) { return found(); });
  EtcdClient::Options options = at({nobody, silent.port(), leaderless.port(), sound.port()});
  options.attempt = Duration(500);
  EtcdClient client(loop, options);
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(silent.paths.size(), 1U);
  EXPECT_EQ(leaderless.paths.size(), 1U);
  EXPECT_EQ(sound.paths.size(), 2U) << "it stays where it was answered";
}

/// A member that ends in the middle of its answer, a proxy without anything behind it, and no etcd at all.
TEST(EtcdClient, AsksTheNextEndpointWhateverTheFirstSays) {
  for (const std::string& wrong :
       {FakeEtcd::response("<html>", "502 Bad Gateway"), FakeEtcd::response("<html>"),
        FakeEtcd::response("{}", "500 Internal Server Error"), std::string("SSH-2.0-OpenSSH_9.2\r\n"),
        FakeEtcd::response(R"({"code":14,"message":"etcdserver: no leader"})", "503 Service Unavailable"),
        FakeEtcd::response(R"({"code":2,"message":"etcdserver: leader changed"})", "500 Internal Server Error"),
        error(kEtcdResourceExhausted, "etcdserver: too many requests")}) {
    EventLoop loop;
    FakeEtcd first(loop, [&](const std::string&) { return wrong; });
    FakeEtcd second(loop, [](const std::string&) { return found(); });
    EtcdClient client(loop, at({first.port(), second.port()}));
    EXPECT_EQ(ask(loop, client).trouble, "") << wrong;
    EXPECT_EQ(second.paths.size(), 1U) << wrong;
  }
}

TEST(EtcdClient, AsksAgainWhenTheConnectionEndsInTheMiddleOfAnAnswer) {
  EventLoop loop;
  int asked = 0;
  FakeEtcd etcd(loop, [&](const std::string&) {
    if (++asked > 1) return found();
    etcd.hang_up();
    return found().substr(0, 50);
  });
  EtcdClient client(loop, at({etcd.port()}));
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(asked, 2);
}

/// The end of the connection comes before the loop tells who asked.
TEST(EtcdClient, AsksNotAgainWhenTheConnectionEndsBehindTheAnswer) {
  EventLoop loop;
  FakeEtcd etcd(loop, [&](const std::string&) {
    etcd.hang_up();
    return found();
  });
  EtcdClient client(loop, at({etcd.port()}));
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(ask(loop, client).trouble, "");
    EXPECT_EQ(etcd.paths.size(), i);
  }
}

TEST(EtcdClient, LogsInAgainWhenAUserHasChanged) {
  EventLoop loop;
  int logins = 0;
  FakeEtcd etcd(loop, [&](const std::string& request) {
    if (request.starts_with("POST /v3/auth/authenticate")) {
      return FakeEtcd::response(R"({"token":"token )" + std::to_string(++logins) + R"("})");
    }
    return logins > 1 ? found() : error(kEtcdInvalidArgument, "etcdserver: revision of auth store is old");
  });
  EtcdClient::Options options = at({etcd.port()}, "somebody");
  EtcdClient client(loop, options);
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(logins, 2);
}

TEST(EtcdClient, SaysWhyNobodyAnswers) {
  EventLoop loop;
  const std::uint16_t nobody = FakeEtcd(loop, nullptr).port();
  EtcdClient refused(loop, at({nobody}));
  EXPECT_EQ(ask(loop, refused, Duration(1)).trouble,
            "cannot connect to 127.0.0.1 port " + std::to_string(nobody) + ": Connection refused");
  EtcdClient::Options options = at({nobody});
  options.start = Duration(1);
  EtcdClient given_up(loop, options);
  EXPECT_EQ(ask(loop, given_up, Duration(10'000)).trouble,
            "no etcd answers at 127.0.0.1 port " + std::to_string(nobody) + ": Connection refused (tried for 1ms)");
  FakeEtcd etcd(loop, [](const std::string&) { return std::string(); });
  EtcdClient unanswered(loop, at({etcd.port()}));
  EXPECT_EQ(ask(loop, unanswered, Duration(300)).trouble, "127.0.0.1 port " + std::to_string(etcd.port()) +
                                                              " is connected and does not answer: has etcd lost its "
                                                              "quorum?");
}

/// Nobody is slow to answer there: only an etcd that is being started.
TEST(EtcdClient, WaitsForALimitedTimeWhereAllEndpointsRefuse) {
  EventLoop loop;
  const std::uint16_t nobody = FakeEtcd(loop, nullptr).port();
  auto etcd = std::make_unique<FakeEtcd>(loop, [](const std::string&) { return found(); });
  EtcdClient::Options options = at({nobody, etcd->port()});
  options.start = Duration(300);
  EtcdClient client(loop, options);
  EXPECT_EQ(ask(loop, client).trouble, "") << "one does not";
  etcd.reset();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_NE(ask(loop, client, Duration(1000)).trouble, "");
  EXPECT_GE(std::chrono::steady_clock::now() - before, Duration(600)) << "it was there before";
  EtcdClient other(loop, options);
  EXPECT_NE(ask(loop, other).trouble, "");
  EXPECT_LT(std::chrono::steady_clock::now() - before, kAnswerPatience / 2);
}

/// It is being started again, behind a proxy that takes every connection.
TEST(EtcdClient, WaitsForAnEtcdThatHasAnsweredHoweverOftenConnectionsEndWithoutAWord) {
  EventLoop loop;
  FakeEtcd etcd(loop, [](const std::string&) { return found(); });
  EtcdClient client(loop, at({etcd.port()}));
  etcd.hang_up();
  EXPECT_EQ(ask(loop, client).trouble, "");
  etcd.end_connections(12);
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(etcd.connections_to_end(), 0);
  EXPECT_EQ(etcd.paths.size(), 2U);
}

TEST(EtcdClient, LogsInOnceAndAgainWhenItsTokenIsOver) {
  EventLoop loop;
  int logins = 0;
  FakeEtcd etcd(loop, [&](const std::string& request) {
    if (request.starts_with("POST /v3/auth/authenticate")) {
      return FakeEtcd::response(R"({"token":"token )" + std::to_string(++logins) + R"("})");
    }
    const bool valid = request.find("Authorization: token " + std::to_string(logins) + "\r\n") != std::string::npos;
    return valid ? found() : error(kEtcdUnauthenticated, "etcdserver: invalid auth token");
  });
  EtcdClient client(loop, at({etcd.port()}, "somebody"));
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(logins, 1);
  logins = 7;  // etcd began anew
  EXPECT_EQ(ask(loop, client).trouble, "");
  EXPECT_EQ(logins, 8);
}

TEST(EtcdClient, LogsInNoSecondTimeWhereItsFreshTokenIsNotKnown) {
  EventLoop loop;
  FakeEtcd etcd(loop, [](const std::string& request) {
    return request.starts_with("POST /v3/auth/authenticate")
               ? FakeEtcd::response(R"({"token":"lost on the way"})")
               : error(kEtcdInvalidArgument, "etcdserver: user name is empty");
  });
  EtcdClient client(loop, at({etcd.port()}, "somebody"));
  const EtcdClient::Result result = ask(loop, client);
  EXPECT_EQ(result.trouble, "etcd accepts the password of 'somebody' and rejects the token that it gave");
  EXPECT_NE(result.hint.find("'Authorization'"), std::string::npos) << result.hint;
  EXPECT_EQ(etcd.paths, (std::vector<std::string>{"/v3/auth/authenticate", "/v3/kv/range"}));
}

TEST(EtcdClient, GivesUpAtOnceWhatTimeDoesNotFix) {
  const std::string html = "HTTP/1.0 501 Unsupported\r\nContent-Length: 6\r\n\r\n<html>";
  const struct {
    std::string answer;
    std::string trouble;
    std::string hint;
  } cases[] = {
      {error(3, "etcdserver: user name is empty"), "etcd requires a user", "LRUN_ETCD_USER"},
      {error(7, "etcdserver: permission denied"), "etcd says 'etcdserver: permission denied'", "LRUN_ETCD_USER"},
      {FakeEtcd::response("404 page not found", "404 Not Found"), "is not an etcd v3: status 404 for /v3/kv/range",
       "etcd v3"},
      {html, "is not an etcd v3: status 501", "etcd v3"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "is not an etcd: ", "etcd v3"},
  };
  for (const auto& known : cases) {
    EventLoop loop;
    FakeEtcd etcd(loop, [&](const std::string&) { return known.answer; });
    EtcdClient client(loop, at({etcd.port()}));
    const EtcdClient::Result result = ask(loop, client);
    EXPECT_NE(result.trouble.find(known.trouble), std::string::npos) << result.trouble;
    EXPECT_NE(result.hint.find(known.hint), std::string::npos) << result.hint;
    EXPECT_EQ(etcd.paths.size(), 1U);
  }
}

TEST(EtcdClient, TellsAWrongPassword) {
  const std::string newer = R"({"code":3,"message":"etcdserver: authentication failed","details":[]})";
  for (const std::string& answer :
       {error(3, "etcdserver: authentication failed"), FakeEtcd::response(newer, "400 Bad Request")}) {
    EventLoop loop;
    FakeEtcd etcd(loop, [&](const std::string&) { return answer; });
    EtcdClient client(loop, at({etcd.port()}, "somebody"));
    const EtcdClient::Result result = ask(loop, client);
    EXPECT_EQ(result.trouble, "etcd says 'etcdserver: authentication failed'");
    EXPECT_EQ(result.hint, "set LRUN_ETCD_USER=NAME:PASSWORD on every node");
  }
}

}  // namespace
}  // namespace lrun::launcher
