// In: messages between the launcher and its copier. Out: text as it travels, and back.
#include "copies/copier_channel.h"

#include <nlohmann/json.hpp>

#include <utility>

#include "base/json.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

Json json_of(const FetchedFiles& fetched) {
  return {{"node_rank", fetched.node_rank},
          {"files", fetched.files},
          {"bytes", fetched.bytes},
          {"newest_ns", fetched.newest_ns},
          {"why_not", fetched.why_not}};
}

FetchedFiles fetched_from(const Json& json) {
  return {.node_rank = json_integer(json.at("node_rank")),
          .files = json.at("files").get<std::size_t>(),
          .bytes = json.at("bytes").get<std::uint64_t>(),
          .newest_ns = json.at("newest_ns").get<std::int64_t>(),
          .why_not = json.at("why_not").get<std::string>()};
}

}  // namespace

std::string to_json(const CopierOrder& order) {
  return json_text({{"round", order.round}, {"self", to_json(order.self)}});
}

std::string to_json(const CopierNews& news) {
  Json json = {{"round", news.round}};
  if (news.keeps) json["keeps"] = to_json(*news.keeps);
  if (news.fetched) {
    json["fetched"] = Json::array();
    for (const FetchedFiles& fetched : *news.fetched) json["fetched"].push_back(json_of(fetched));
  }
  if (!news.refusal.empty()) json["refusal"] = news.refusal;
  return json_text(json);
}

std::optional<CopierOrder> copier_order_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    std::optional<Member> self = member_from_json(json.at("self").get<std::string>());
    if (!self) return std::nullopt;
    return CopierOrder{json_integer(json.at("round")), *std::move(self)};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<CopierNews> copier_news_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    CopierNews news{.round = json_integer(json.at("round")), .refusal = json.value("refusal", std::string())};
    if (json.contains("keeps")) news.keeps = file_owners_from_json(json.at("keeps").get<std::string>());
    if (json.contains("fetched")) {
      news.fetched.emplace();
      for (const Json& fetched : json.at("fetched")) news.fetched->push_back(fetched_from(fetched));
    }
    return news;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
