#include "store/compare_set_client.h"

#include <gtest/gtest.h>

#include <string>

#include "store/listening_socket.h"
#include "store/protocol.h"
#include "store/server.h"
#include "support/patience.h"

namespace lrun::launcher {
namespace {

using test::kAnswerPatience;

std::string answer_of(const std::string& value) {
  std::string bytes;
  append_string(bytes, value);
  return bytes;
}

TEST(StoredValue, IsReadHoweverItWasCut) {
  const std::string bytes = answer_of("value");
  StoredValueReader reader;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(reader.value()) << i;
    reader.take(bytes.substr(i, 1));
  }
  EXPECT_EQ(reader.value(), "value");
  EXPECT_FALSE(reader.is_refused());
  reader.take("x");
  EXPECT_TRUE(reader.is_refused()) << "nobody asked for more";
  EXPECT_FALSE(reader.value());
}

TEST(StoredValue, MayBeEmpty) {
  StoredValueReader reader;
  reader.take(answer_of(""));
  EXPECT_EQ(reader.value(), "");
}

TEST(StoredValue, IsRefusedByItsLengthBeforeItComes) {
  std::string bytes;
  append_number(bytes, static_cast<std::int64_t>(StoredValueReader::kMostBytes) + 1);
  StoredValueReader reader;
  reader.take(bytes);
  EXPECT_TRUE(reader.is_refused());
  StoredValueReader stranger;
  stranger.take("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_TRUE(stranger.is_refused());
}

class CompareSet : public ::testing::Test {
 protected:
  CompareSetClient::Result ask(CompareSetClient& client, const std::string& expected, const std::string& desired,
                               Duration limit = kAnswerPatience) {
    CompareSetClient::Result told;
    client.compare_set("key", expected, desired, limit, [&](const CompareSetClient::Result& result) {
      told = result;
      loop_.stop();
    });
    loop_.run();
    return told;
  }
  std::string read(CompareSetClient& client) {
    return ask(client, std::string(CompareSetClient::kAbsent), std::string(CompareSetClient::kAbsent)).value;
  }

  EventLoop loop_;
};

TEST_F(CompareSet, ReplacesWhatIsExpectedAndNothingElse) {
  StoreServer server(loop_, {});
  CompareSetClient client(loop_, {.host = "127.0.0.1", .port = server.port(), .attempt = kAnswerPatience});
  EXPECT_EQ(read(client), CompareSetClient::kAbsent);
  EXPECT_EQ(ask(client, "one", "two").value, "one") << "there is none";
  EXPECT_EQ(read(client), CompareSetClient::kAbsent);
  EXPECT_EQ(ask(client, "", "one").value, "one");
  EXPECT_EQ(ask(client, "", "two").value, "one");
  EXPECT_EQ(ask(client, "one", "two").value, "two");
  EXPECT_EQ(read(client), "two");
  EXPECT_EQ(client.own_address(), "127.0.0.1");
}

TEST_F(CompareSet, ConnectsAgainToAStoreThatEndedTheConnection) {
  StoreServer server(loop_, {});
  CompareSetClient client(loop_, {.host = "127.0.0.1", .port = server.port(), .attempt = kAnswerPatience});
  EXPECT_EQ(ask(client, "", "one").value, "one");
  server.reset();
  EXPECT_EQ(read(client), CompareSetClient::kAbsent);
}

TEST_F(CompareSet, SaysWhyThereIsNoAnswer) {
  Fd silent = open_listening_socket(StoreReach::kLoopback, 0);
  const std::uint16_t port = port_of_socket(silent.get());
  CompareSetClient client(loop_, {.host = "127.0.0.1", .port = port, .attempt = Duration(50)});
  EXPECT_EQ(ask(client, "", "one", Duration(10)).trouble,
            "the store at 127.0.0.1 port " + std::to_string(port) + " is connected and does not answer");
  silent.reset();
  const std::string refused = ask(client, "", "one", Duration(10)).trouble;
  EXPECT_TRUE(refused.find("onnect") != std::string::npos) << refused;
  EXPECT_EQ(client.trouble(), refused);
}

}  // namespace
}  // namespace lrun::launcher
