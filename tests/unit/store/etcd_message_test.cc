#include "store/etcd_message.h"

#include <gtest/gtest.h>

#include <string>

#include "store/base64.h"
#include "store/http_response.h"

namespace lrun::launcher {
namespace {

TEST(Base64, StandsForAnyBytes) {
  EXPECT_EQ(to_base64("hello"), "aGVsbG8=");
  EXPECT_EQ(to_base64("hell"), "aGVsbA==");
  EXPECT_EQ(to_base64(""), "");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    EXPECT_EQ(from_base64(to_base64(all)), all);
  }
}

TEST(Base64, IsNothingElse) {
  for (const char* const text : {"a", "aGVsbG8", "aGVsbG9=", "=aGV", "aG=s", "aGVs!G8=", "aGVs bG8", "====", "a==="}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(EtcdMessage, SaysKeysInBase64AndNumbersAsText) {
  EXPECT_EQ(etcd_get("lrun/a"), (EtcdRequest{"/v3/kv/range", R"({"key":"bHJ1bi9h"})"}));
  EXPECT_EQ(etcd_grant(5), (EtcdRequest{"/v3/lease/grant", R"({"TTL":"5"})"}));
  EXPECT_EQ(etcd_keep_alive(77), (EtcdRequest{"/v3/lease/keepalive", R"({"ID":"77"})"}));
  const EtcdStep put{.kind = EtcdStep::Kind::kPut, .key = "a", .value = "b", .lease = 7};
  const EtcdStep get{.kind = EtcdStep::Kind::kGet, .key = "a"};
  const EtcdStep remove{.kind = EtcdStep::Kind::kDelete, .key = "a"};
  EXPECT_EQ(
      etcd_transaction("a", 0, {put, get}, {remove}).body,
      R"({"compare":[{"create_revision":"0","key":"YQ==","result":"EQUAL","target":"CREATE"}],)"
      R"("failure":[{"request_delete_range":{"key":"YQ=="}}],)"
      R"("success":[{"request_put":{"key":"YQ==","lease":"7","value":"Yg=="}},{"request_range":{"key":"YQ=="}}]})");
}

/// The answers are those of an etcd 3.4.
TEST(EtcdMessage, ReadsWhatIsLeftOut) {
  const auto leased = etcd_answer_from_json(R"({"header":{"revision":"1"},"ID":"1418812018274139653","TTL":"2"})");
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->lease, 1418812018274139653);
  EXPECT_EQ(leased->seconds, 2);
  const auto kept = etcd_answer_from_json(R"({"result":{"header":{},"ID":"77","TTL":"5"}})");
  EXPECT_EQ(kept ? kept->seconds : -1, 5);
  const auto gone = etcd_answer_from_json(R"({"result":{"header":{},"ID":"77"}})");
  EXPECT_EQ(gone ? gone->seconds : -1, 0) << "a lease that is over has no time";
  const auto absent = etcd_answer_from_json(R"({"header":{"revision":"1"}})");
  EXPECT_TRUE(absent && absent->entries.empty() && absent->has_header);
}

TEST(EtcdMessage, ReadsTransactions) {
  const auto won = etcd_answer_from_json(
      R"({"succeeded":true,"responses":[{"response_put":{}},{"response_range":{"kvs":[{"key":"YQ==",)"
      R"("create_revision":"12","mod_revision":"12","version":"1","value":"aGVsbG8="}],"count":"1"}},)"
      R"({"response_range":{"header":{}}}]})");
  ASSERT_TRUE(won && won->entries.size() == 2);
  EXPECT_TRUE(won->succeeded);
  EXPECT_EQ(won->entries[0], (EtcdEntry{"hello", 12}));
  EXPECT_FALSE(won->entries[1]) << "a key that is not there";
  const auto lost = etcd_answer_from_json(R"({"responses":[{"response_range":{}}]})");
  EXPECT_TRUE(lost && !lost->succeeded);
}

/// Of an etcd 3.4, of 3.6, and of the streams of both.
TEST(EtcdMessage, ReadsErrors) {
  for (const char* const text : {
           R"({"error":"etcdserver: no lease","message":"etcdserver: no lease","code":5})",
           R"({"error":"etcdserver: no lease","code":5})",
           R"({"code":5,"message":"etcdserver: no lease","details":[]})",
           R"({"error":{"grpc_code":5,"http_code":404,"message":"etcdserver: no lease","http_status":"Not Found"}})",
           R"({"error":{"code":5,"message":"etcdserver: no lease","details":[]}})",
       }) {
    const auto error = etcd_answer_from_json(text);
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->code, kEtcdNotFound) << text;
    EXPECT_EQ(error->error, "etcdserver: no lease") << text;
    EXPECT_FALSE(error->has_header) << text;
  }
  const auto wordless = etcd_answer_from_json(R"({"error":{}})");
  EXPECT_TRUE(wordless && !wordless->error.empty());
}

TEST(EtcdMessage, IsNoOtherText) {
  for (const char* const text :
       {"", "Not Found\n", "[]", "3", R"({"ID":"x"})", R"({"TTL":1.5})", R"({"kvs":"a"})", R"({"kvs":[{"value":"!"}]})",
        R"({"error":7})", R"({"error":{"message":7}})", R"({"code":"5","message":"x"})"}) {
    EXPECT_FALSE(etcd_answer_from_json(text)) << text;
  }
}

TEST(HttpResponse, IsReadWhereverItWasCut) {
  const std::string plain = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  const std::string chunked =
      "HTTP/1.1 404 Not Found\r\nTrailer: Grpc\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nGrpc: "
      "x\r\n\r\n";
  for (const std::string& text : {plain, chunked}) {
    for (std::size_t size = 1; size <= text.size(); ++size) {
      HttpResponseReader reader;
      std::optional<HttpResponse> response;
      for (std::size_t start = 0; start < text.size() && !response; start += size) {
        response = reader.feed(std::string_view(text).substr(start, size));
      }
      ASSERT_TRUE(response) << "in pieces of " << size << ": " << reader.refusal();
      EXPECT_EQ(*response, (HttpResponse{text == plain ? 200 : 404, "hello", true}));
    }
  }
}

TEST(HttpResponse, MayEndWithTheConnection) {
  HttpResponseReader reader;
  EXPECT_FALSE(reader.end()) << "nothing came";
  EXPECT_FALSE(reader.feed("HTTP/1.0 501 Unsupported\r\n\r\n<html>"));
  EXPECT_EQ(reader.end(), (HttpResponse{501, "<html>", false}));
}

TEST(HttpResponse, IsBounded) {
  for (const std::string& start :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n"), "HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x'),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")}) {
    HttpResponseReader reader;
    EXPECT_FALSE(reader.feed(start));
    EXPECT_NE(reader.refusal(), "") << start.substr(0, 60);
  }
}

}  // namespace
}  // namespace lrun::launcher
