#include "store/horovod_values.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace lrun::launcher {
namespace {

std::string answer(const std::string& status, const std::string& body = "") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         body;
}

TEST(HorovodValues, ArePutGotAndMissing) {
  HorovodValues values;
  const std::string bytes("\0\r\n\xff", 4);
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}), answer("404 Not Found"));
  EXPECT_EQ(values.answer({"PUT", "/global/0", bytes}), answer("200 OK"));
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}), answer("200 OK", bytes));
  EXPECT_EQ(values.answer({"GET", "/global/1", ""}), answer("404 Not Found"));
  EXPECT_EQ(values.answer({"GET", "/local_a/0", ""}), answer("404 Not Found")) << "each scope has its own";
  EXPECT_EQ(values.answer({"PUT", "/global/0", ""}), answer("200 OK"));
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}), answer("200 OK")) << "an empty value is one";
}

TEST(HorovodValues, GoWithTheRankThatHasFinished) {
  HorovodValues values;
  for (const char* const key : {"rank_0", "0", "rank_1", "1"})
    (void)values.answer({"PUT", std::string("/s/") + key, "x"});
  EXPECT_EQ(values.answer({"DELETE", "/s/0", ""}), answer("200 OK"));
  EXPECT_EQ(values.answer({"GET", "/s/0", ""}), answer("404 Not Found"));
  EXPECT_EQ(values.answer({"GET", "/s/rank_0", ""}), answer("404 Not Found"));
  EXPECT_EQ(values.answer({"GET", "/s/1", ""}), answer("200 OK", "x")) << "the other may still be asked for";
  EXPECT_FALSE(values.empty());
  EXPECT_EQ(values.answer({"DELETE", "/s/1", ""}), answer("200 OK"));
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(values.answer({"DELETE", "/s/1", ""}), answer("200 OK")) << "twice is no mistake";
}

TEST(HorovodValues, KnowWhichRanksHaveBegunToMeetAll) {
  HorovodValues values;
  (void)values.answer({"PUT", "/global/rank_3", "host"});
  (void)values.answer({"PUT", "/global/0", "address"});
  (void)values.answer({"PUT", "/local_a/7", "address"});
  (void)values.answer({"PUT", "/global/rank_", "x"});
  (void)values.answer({"PUT", "/global/-1", "x"});
  (void)values.answer({"PUT", "/global/99999999999", "x"});
  EXPECT_EQ(values.ranks_seen(), (std::set<int>{0, 3}));
  (void)values.answer({"DELETE", "/global/0", ""});
  EXPECT_EQ(values.ranks_seen(), (std::set<int>{0, 3}));
  values.clear();
  EXPECT_TRUE(values.ranks_seen().empty());
  EXPECT_EQ(values.answer({"GET", "/global/rank_3", ""}), answer("404 Not Found"));
}

TEST(HorovodValues, AreNotWhatHasNoScopeOrNoKey) {
  HorovodValues values;
  for (const char* const target : {"", "/", "//", "/a", "/a/", "//b", "a/b", "/a/b/", "/a/b/c", "*"}) {
    for (const char* const method : {"GET", "PUT", "DELETE"}) {
      EXPECT_EQ(values.answer({method, target, "x"}), answer("400 Bad Request")) << method << " " << target;
    }
  }
  EXPECT_EQ(values.answer({"POST", "/a/b", "x"}), answer("405 Method Not Allowed"));
  EXPECT_EQ(values.answer({"HEAD", "/a/b", ""}), answer("405 Method Not Allowed"));
  EXPECT_TRUE(values.empty());
}

TEST(HorovodValues, AreBounded) {
  HorovodValues values(10'000);
  const std::string large(1000, 'x');
  int kept = 0;
  while (kept < 1000 && values.answer({"PUT", "/s/" + std::to_string(kept), large}) == answer("200 OK")) ++kept;
  EXPECT_EQ(kept, 8) << "a key costs something, too";
  EXPECT_EQ(values.answer({"PUT", "/s/last", large}), answer("507 Insufficient Storage"));
  (void)values.answer({"DELETE", "/s/0", ""});
  EXPECT_EQ(values.answer({"PUT", "/s/last", large}), answer("200 OK"));
}

TEST(HttpRequest, IsReadWhereverItWasCut) {
  const std::string body("\0\r\n\r\nx", 6);
  const std::string plain = "PUT /global/0 HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 6\r\n\r\n" + body;
  const std::string chunked = "PUT /global/0 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n" + body.substr(0, 2) +
                              "\r\n4\r\n" + body.substr(2) + "\r\n0\r\n\r\n";
  for (const std::string& text : {plain, chunked}) {
    for (std::size_t size = 1; size <= text.size(); ++size) {
      HttpRequestReader reader;
      std::optional<HttpRequest> request;
      for (std::size_t start = 0; start < text.size() && !request; start += size) {
        request = reader.feed(std::string_view(text).substr(start, size));
      }
      ASSERT_TRUE(request) << "in pieces of " << size << ": " << reader.refusal();
      EXPECT_EQ(*request, (HttpRequest{"PUT", "/global/0", body}));
    }
  }
}

TEST(HttpRequest, HasNoBodyWithoutALength) {
  HttpRequestReader reader;
  EXPECT_EQ(reader.feed("GET /a/b HTTP/1.0\r\n\r\n"), (HttpRequest{"GET", "/a/b", ""}));
  EXPECT_FALSE(reader.feed("GET /a/c HTTP/1.0\r\n\r\n")) << "one connection, one request";
}

TEST(HttpRequest, IsBounded) {
  for (const std::string& start :
       {std::string("EHLO mail.example.org\r\n"), "GET /a/b HTTP/1.1\r\nX: " + std::string(20'000, 'x'),
        "GET /" + std::string(20'000, 'x'), std::string("PUT /a/b HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")}) {
    HttpRequestReader reader;
    EXPECT_FALSE(reader.feed(start));
    EXPECT_NE(reader.refusal(), "") << start.substr(0, 60);
  }
}

}  // namespace
}  // namespace lrun::launcher
