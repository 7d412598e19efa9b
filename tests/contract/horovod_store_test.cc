// Horovod's rendezvous at the port of the workers' store.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "support/patience.h"
#include "support/raw_socket.h"
#include "support/store_client.h"
#include "support/store_server_thread.h"

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

using test::soon;

constexpr std::size_t kMuch = std::size_t{8} << 20U;

class HorovodStore : public testing::Test {
 protected:
  /// The whole answer, up to the end of the connection.
  std::string answer_to(const std::string& bytes) {
    RawSocket client(server_.port());
    EXPECT_TRUE(client.send(bytes));
    return client.receive(kMuch);
  }
  std::string get(const std::string& place) { return answer_to(request("GET", place)); }
  std::string put(const std::string& place, const std::string& value) {
    return answer_to(request("PUT", place, value));
  }

  /// As Horovod's client writes it.
  static std::string request(const std::string& method, const std::string& place, const std::string& body = "") {
    return method + " " + place + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  static std::string ok(const std::string& body = "") {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
  }
  static std::string missing() { return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"; }

  StoreServerThread server_{{.max_connections = 8, .serves_horovod = true}};
};

TEST_F(HorovodStore, IsServedBesideTheWorkersStore) {
  StoreClient torch("127.0.0.1", server_.port(), soon());
  torch.set("/k", "v", soon());
  EXPECT_EQ(get("/global/0"), missing());
  EXPECT_EQ(put("/global/0", std::string("\0\xff", 2)), ok());
  EXPECT_EQ(get("/global/0"), ok(std::string("\0\xff", 2)));
  EXPECT_EQ(torch.get("/k", soon()), "v") << "two tables";
  EXPECT_EQ(answer_to(request("DELETE", "/global/0")), ok());
  EXPECT_EQ(get("/global/0"), missing());
}

TEST_F(HorovodStore, TakesARequestInSingleBytes) {
  RawSocket client(server_.port());
  for (const char byte : request("PUT", "/global/3", "value")) ASSERT_TRUE(client.send(std::string_view(&byte, 1)));
  EXPECT_EQ(client.receive(kMuch), ok());
  EXPECT_EQ(get("/global/3"), ok("value"));
}

TEST_F(HorovodStore, GivesValuesThatAreLargerThanASocketTakes) {
  const std::string large(HttpRequestReader::kMostBodyBytes, 'x');
  EXPECT_EQ(put("/global/0", large), ok());
  RawSocket slow(server_.port());
  ASSERT_TRUE(slow.send(request("GET", "/global/0")));
  EXPECT_EQ(get("/global/1"), missing()) << "one that does not read its answer holds nobody up";
  EXPECT_EQ(slow.receive(kMuch), ok(large));
}

TEST_F(HorovodStore, AnswersMistakesAndNamesWhoMadeThem) {
  EXPECT_TRUE(get("/").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(answer_to("GARBAGE\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(answer_to("PUT /a/b HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n").starts_with("HTTP/1.1 400 "));
  ASSERT_EQ(server_.log().size(), 2U);
  EXPECT_NE(server_.log()[0].find("not an HTTP request: bad "), std::string::npos) << server_.log()[0];
  EXPECT_NE(server_.log()[1].find("body limit exceeded"), std::string::npos) << server_.log()[1];
}

TEST_F(HorovodStore, KeepsNoMoreConnectionsThanItMay) {
  std::vector<RawSocket> silent;
  for (int i = 0; i < 20; ++i) {
    silent.emplace_back(server_.port());
    ASSERT_TRUE(silent.back().send("PUT /global/0 HTTP/1.1\r\nContent-Length: 1\r\n\r\n"));
  }
  EXPECT_EQ(get("/global/0"), missing()) << "others give way";
  const auto closed =
      std::count_if(silent.begin(), silent.end(), [](const RawSocket& one) { return one.is_readable(); });
  EXPECT_GE(closed, 12) << "eight of them at most are open";
}

TEST_F(HorovodStore, KeepsNoMoreThanItMayOfRequestsThatAreNotWhole) {
  StoreServerThread server({.serves_horovod = true});
  const std::string most(HttpRequestReader::kMostBodyBytes - 1, 'x');
  const std::string beginning =
      "PUT /global/0 HTTP/1.1\r\nContent-Length: " + std::to_string(most.size() + 1) + "\r\n\r\n";
  constexpr std::size_t kFit = HttpServer::kMostHeldBytes / HttpRequestReader::kMostBodyBytes;
  std::vector<RawSocket> unfinished;
  for (std::size_t i = 0; i < kFit; ++i) {
    unfinished.emplace_back(server.port());
    ASSERT_TRUE(unfinished.back().send(beginning + most));
  }
  RawSocket one_more(server.port());
  (void)one_more.send(beginning + most);
  EXPECT_TRUE(one_more.is_closed());
  ASSERT_FALSE(server.log().empty());
  EXPECT_NE(server.log().back().find("take more than 67108864 bytes"), std::string::npos) << server.log().back();
  RawSocket rank(server.port());
  ASSERT_TRUE(rank.send(request("PUT", "/global/3", "value")));
  EXPECT_EQ(rank.receive(kMuch), ok()) << "what ranks say fits";
}

TEST_F(HorovodStore, BeginsARoundWithNothing) {
  ASSERT_EQ(put("/global/0", "stale"), ok());
  RawSocket half(server_.port());
  ASSERT_TRUE(half.send("PUT /global/1 HTTP/1.1\r\nContent-Length: 2\r\n\r\nx"));
  ASSERT_EQ(get("/global/1"), missing());
  server_.in_loop([](StoreServer& server) {
    EXPECT_EQ(server.horovod()->ranks_seen(), std::set<int>{0});
    server.reset();
    EXPECT_TRUE(server.horovod()->ranks_seen().empty());
  });
  EXPECT_TRUE(half.is_closed());
  EXPECT_EQ(get("/global/0"), missing());
}

TEST(HorovodStoreOff, IsNoPartOfAStoreThatWasNotAskedForIt) {
  StoreServerThread server;
  RawSocket client(server.port());
  ASSERT_TRUE(client.send("GET /global/0 HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(client.is_closed());
  ASSERT_EQ(server.log().size(), 1U);
  EXPECT_NE(server.log()[0].find("does not begin with VALIDATE"), std::string::npos);
}

}  // namespace
}  // namespace lrun::launcher
