#include "copies/copier_channel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lrun::launcher {
namespace {

TEST(CopierOrder, ComesBackAsItWas) {
  const CopierOrder full{
      .round = 7,
      .self = {.node_rank = 5,
               .neighbour = "fd00::1",
               .neighbour_port = 7001,
               .neighbour_key = "a key",
               .keeps_for = {{"b", 4}},
               .inherits = {{{"a \"token\"", 3}, "10.0.0.1", 7001, "b"}, {{"b", 4}, "10.0.0.2", 1, ""}}}};
  for (const CopierOrder& order : {CopierOrder{}, full}) {
    EXPECT_EQ(copier_order_from_json(to_json(order)), order) << to_json(order);
  }
}

TEST(CopierNews, ComesBackAsItWas) {
  for (const CopierNews& news : {CopierNews{}, CopierNews{.keeps = std::vector<FileOwner>()},
                                 CopierNews{.keeps = std::vector<FileOwner>{{"a", 0}, {"b", 1}}},
                                 CopierNews{.fetched = std::vector<FetchedFiles>()},
                                 CopierNews{.fetched = std::vector<FetchedFiles>{{3, 2, 1'000'000'000'000, 5, ""},
                                                                                 {4, 0, 0, 0, "a \"reason\""}}},
                                 CopierNews{.round = 3, .refusal = "a reason"}}) {
    EXPECT_EQ(copier_news_from_json(to_json(news)), news) << to_json(news);
  }
}

TEST(CopierNews, RefusesOtherJson) {
  for (const char* const text :
       {"", "{", "5", "[]", R"({"keeps": 5})", R"({"fetched": 5})", R"({"fetched": [{}]})", R"({"refusal": 5})"}) {
    EXPECT_FALSE(copier_news_from_json(text)) << text;
  }
  for (const char* const amounts : {R"("files":-1,"bytes":0,"newest_ns":0)", R"("files":0,"bytes":1e300,"newest_ns":0)",
                                    R"("files":0,"bytes":0,"newest_ns":1e300)"}) {
    const std::string fetched = fmt::format(R"([{{"node_rank":0,"why_not":"",{}}}])", amounts);
    EXPECT_FALSE(copier_news_from_json(R"({"round":3,"fetched":)" + fetched + "}")) << fetched;
  }
  EXPECT_FALSE(copier_order_from_json("{}"));
  EXPECT_FALSE(copier_order_from_json("[]"));
}

}  // namespace
}  // namespace lrun::launcher
