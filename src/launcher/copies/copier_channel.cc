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

/// \throw Json::exception not a whole number from 0 to 2^61.
std::uint64_t amount_from(const Json& json) {
  const std::int64_t amount = json_integer<std::int64_t>(json);
  if (amount < 0) throw Json::type_error::create(302, "an amount below 0", &json);
  return static_cast<std::uint64_t>(amount);
}

FetchedFiles fetched_from(const Json& json) {
  return {.node_rank = json_integer(json.at("node_rank")),
          .files = amount_from(json.at("files")),
          .bytes = amount_from(json.at("bytes")),
          .newest_ns = json_integer<std::int64_t>(json.at("newest_ns")),
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
