// EtcdClient where endpoints have certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/etcd_client.h"
#include "support/fake_etcd.h"
#include "support/temporary_folder.h"
#include "support/tls_server.h"

namespace lrun::launcher {
namespace {

using test::Authority;
using test::FakeEtcd;
using test::Identity;
using test::TlsServerEnd;
using ::testing::HasSubstr;

constexpr Duration kPatience(60'000);

/// Answers everything with `answer`, over TLS, on a port of its own; one client at a time.
class TlsEtcd {
 public:
  TlsEtcd(EventLoop& loop, const Identity& identity, std::string answer, const Authority* clients = nullptr)
      : loop_(loop),
        identity_(identity),
        answer_(std::move(answer)),
        clients_(clients),
        listener_(open_listening_socket(StoreReach::kLoopback, 0)) {
    accepting_ = loop_.on_readable(listener_.get(), [this] { accept(); });
  }

  [[nodiscard]] std::uint16_t port() const { return port_of_socket(listener_.get()); }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] int questions() const { return questions_; }
  /// Nothing follows the next answer, not even TLS's close message.
  void hang_up() { hangs_up_ = true; }
  void be_silent() { is_silent_ = true; }
  /// For the next client only.
  void show_once(const Identity& identity) { shown_once_ = &identity; }

 private:
  void accept() {
    readable_.cancel();
    client_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    ++connections_;
    const Identity* const shown = std::exchange(shown_once_, nullptr);
    end_ = std::make_unique<TlsServerEnd>(shown != nullptr ? *shown : identity_, clients_);
    readable_ = loop_.on_readable(client_.get(), [this] { read(); });
  }

  void read() {
    char bytes[16384];
    const ssize_t count = ::recv(client_.get(), bytes, sizeof bytes, 0);
    if (count <= 0) return readable_.cancel();
    if (is_silent_) return;
    end_->feed({bytes, static_cast<std::size_t>(count)});
    const bool asked = end_->words().find('}') != std::string::npos;  // the end of its body
    if (asked) {
      ++questions_;
      end_->forget_words();
      end_->give(answer_);
    }
    const std::string output = end_->take_output();
    (void)::send(client_.get(), output.data(), output.size(), MSG_NOSIGNAL);
    if (!asked || !std::exchange(hangs_up_, false)) return;
    readable_.cancel();
    client_.reset();
  }

  EventLoop& loop_;
  const Identity& identity_;
  const Identity* shown_once_ = nullptr;
  std::string answer_;
  const Authority* clients_;
  Fd listener_;
  Fd client_;
  std::unique_ptr<TlsServerEnd> end_;
  int connections_ = 0;
  int questions_ = 0;
  bool hangs_up_ = false;
  bool is_silent_ = false;
  EventLoop::Watch accepting_;
  EventLoop::Watch readable_;
};

/// Accepts connections and ends them at once, without a word.
class Wordless {
 public:
  explicit Wordless(EventLoop& loop) : listener_(open_listening_socket(StoreReach::kLoopback, 0)) {
    accepting_ = loop.on_readable(listener_.get(), [this] {
      const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    });
  }
  [[nodiscard]] std::uint16_t port() const { return port_of_socket(listener_.get()); }

 private:
  Fd listener_;
  EventLoop::Watch accepting_;
};

class EtcdOverTls : public ::testing::Test {
 protected:
  EtcdClient::Result ask(EtcdClient& client) {
    std::optional<EtcdClient::Result> told;
    client.ask(etcd_get("key"), kPatience, [&](const EtcdClient::Result& result) {
      told = result;
      loop_.stop();
    });
    loop_.run();
    return told ? *told : EtcdClient::Result{.answer = {}, .trouble = "nobody was told"};
  }

  EtcdClient::Options at(std::initializer_list<std::uint16_t> ports) {
    const std::string ca = folder_ / "ca.pem";
    std::ofstream(ca) << authority_.text();
    EtcdClient::Options options{.endpoints = {}, .tls = TlsFiles{.authorities = ca}, .attempt = kPatience};
    for (const std::uint16_t port : ports) options.endpoints.push_back({"127.0.0.1", port});
    return options;
  }

  static std::string found() { return FakeEtcd::response(R"({"kvs":[{"value":"aGVsbG8=","create_revision":"3"}]})"); }

  EventLoop loop_;
  test::TemporaryFolder folder_;
  Authority authority_{"our authority"};
  Identity identity_ = authority_.sign();
};

TEST_F(EtcdOverTls, AsksAgainOverTheSameConnection) {
  TlsEtcd etcd(loop_, identity_, found());
  EtcdClient client(loop_, at({etcd.port()}));
  for (int i = 0; i < 3; ++i) {
    const EtcdClient::Result result = ask(client);
    ASSERT_EQ(result.trouble, "");
    EXPECT_EQ(result.answer.entries.at(0), (EtcdEntry{"hello", 3}));
  }
  EXPECT_EQ(etcd.connections(), 1);
  EXPECT_EQ(etcd.questions(), 3);
}

TEST_F(EtcdOverTls, AsksTheNextEndpointWhereOneIsNotWhoItHasToBe) {
  const Identity expired = authority_.sign({.until = -1});
  TlsEtcd wrong(loop_, expired, found());
  FakeEtcd plain(loop_, [](const std::string&) { return FakeEtcd::response("no TLS", "400 Bad Request"); });
  Wordless wordless(loop_);
  TlsEtcd right(loop_, identity_, found());
  EtcdClient client(loop_, at({wrong.port(), plain.port(), wordless.port(), right.port()}));
  EXPECT_EQ(ask(client).trouble, "");
  EXPECT_EQ(wrong.questions(), 0) << "it hears nothing";
}

TEST_F(EtcdOverTls, AsksTheNextEndpointWhereOneDoesNotEndItsHandshake) {
  TlsEtcd silent(loop_, identity_, found());
  silent.be_silent();
  TlsEtcd right(loop_, identity_, found());
  EtcdClient::Options options = at({silent.port(), right.port()});
  options.attempt = Duration(300);
  EtcdClient client(loop_, options);
  EXPECT_EQ(ask(client).trouble, "");
}

/// An error that time does not fix is not waited for.
TEST_F(EtcdOverTls, SaysAtOnceWhatIsWrongWithAllEndpoints) {
  const Identity expired = authority_.sign({.until = -1});
  TlsEtcd one(loop_, expired, found());
  TlsEtcd other(loop_, expired, found());
  EtcdClient client(loop_, at({one.port(), other.port()}));
  const auto before = std::chrono::steady_clock::now();
  const EtcdClient::Result result = ask(client);
  EXPECT_THAT(result.trouble,
              HasSubstr("127.0.0.1 port " + std::to_string(other.port()) + ": its certificate expired"));
  EXPECT_THAT(result.hint, HasSubstr("clock"));
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience / 2);
}

TEST_F(EtcdOverTls, SaysThatACertificateIsWanted) {
  TlsEtcd etcd(loop_, identity_, found(), &authority_);
  EtcdClient client(loop_, at({etcd.port()}));
  const EtcdClient::Result result = ask(client);
  EXPECT_THAT(result.trouble, HasSubstr(": it requires a client certificate"));
  EXPECT_EQ(etcd.questions(), 0);
}

/// An etcd with certificates closes connections of plain HTTP, and the other way round.
TEST_F(EtcdOverTls, SaysWhichProtocolToTryWhereConnectionsEndWithoutAWord) {
  Wordless etcd(loop_);
  EtcdClient::Options options = at({etcd.port()});
  EtcdClient over_tls(loop_, options);
  EXPECT_THAT(ask(over_tls).hint, HasSubstr("leave out '--rdzv-conf protocol=https'"));
  options.tls.reset();
  EtcdClient plain(loop_, options);
  EXPECT_THAT(ask(plain).hint, HasSubstr("write '--rdzv-conf protocol=https'"));
}

/// Otherwise an attacker who can cut a connection could shorten an answer.
TEST_F(EtcdOverTls, TakesNoAnswerThatWasCutOff) {
  TlsEtcd etcd(loop_, identity_, "HTTP/1.1 200 OK\r\n\r\n{\"header\":{}}");
  etcd.hang_up();
  EtcdClient::Options options = at({etcd.port()});
  options.attempt = Duration(300);  // for the second answer, which has no end
  EtcdClient client(loop_, options);
  std::string trouble;
  client.ask(etcd_get("key"), Duration(3000), [&](const EtcdClient::Result& result) {
    trouble = result.trouble;
    loop_.stop();
  });
  loop_.run();
  EXPECT_NE(trouble, "");
  EXPECT_GE(etcd.questions(), 1);
}

TEST_F(EtcdOverTls, RefusesFilesOfNoUseBeforeAnybodyIsAsked) {
  TlsEtcd etcd(loop_, identity_, found());
  EtcdClient::Options options = at({etcd.port()});
  options.tls->certificate = folder_ / "missing";
  EtcdClient client(loop_, options);
  EXPECT_THAT(ask(client).trouble, HasSubstr("missing': No such file or directory"));
  EXPECT_EQ(etcd.connections(), 0);
}

/// It is being replaced.
TEST_F(EtcdOverTls, AsksAgainWhereACertificateIsWrongOfAnEtcdThatHasAnswered) {
  const Identity expired = authority_.sign({.until = -1});
  TlsEtcd etcd(loop_, identity_, found());
  EtcdClient client(loop_, at({etcd.port()}));
  etcd.hang_up();
  EXPECT_EQ(ask(client).trouble, "");
  etcd.show_once(expired);
  EXPECT_EQ(ask(client).trouble, "");
  EXPECT_EQ(etcd.connections(), 3);
}

/// They are being replaced.
TEST_F(EtcdOverTls, AsksAgainWhereFilesAreOfNoUseThatWereBefore) {
  TlsEtcd etcd(loop_, identity_, found());
  const EtcdClient::Options options = at({etcd.port()});
  const std::string ca = options.tls->authorities;
  EtcdClient client(loop_, options);
  etcd.hang_up();
  EXPECT_EQ(ask(client).trouble, "");
  std::filesystem::rename(ca, ca + ".old");
  const EventLoop::Timer back = loop_.after(Duration(300), [&] { std::filesystem::rename(ca + ".old", ca); });
  EXPECT_EQ(ask(client).trouble, "");
  EXPECT_EQ(etcd.connections(), 2);
}

}  // namespace
}  // namespace lrun::launcher
