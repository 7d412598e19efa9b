// In: what a launcher wants of etcd, or the body of an answer. Out: requests for its JSON gateway, or the fields of the
// answer. Called by EtcdElection, EtcdTerm, EtcdClient and EtcdLogin.
#include "store/etcd_message.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/whole_number.h"
#include "store/base64.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

/// Far more than any answer to a request of ours has.
constexpr std::size_t kMostSteps = 16;

/// 64-bit numbers are strings in JSON; zero is left out.
std::int64_t number_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return 0;
  if (!found->is_string()) return json_integer<std::int64_t>(*found);
  const auto number = whole_number<std::int64_t>(found->get_ref<const std::string&>());
  if (!number) throw Json::type_error::create(302, "not a whole number", &json);
  return *number;
}

EtcdRequest request(const char* path, const Json& body) { return {path, json_text(body)}; }

/// Only the first key counts: every get asks for one.
std::optional<EtcdEntry> entry_of(const Json& range) {
  const auto keys = range.find("kvs");
  if (keys == range.end() || keys->empty()) return std::nullopt;
  const Json& first = keys->at(0);
  const auto value = from_base64(first.value("value", std::string()));
  if (!value) throw Json::type_error::create(302, "not base64", &first);
  return EtcdEntry{*value, number_at(first, "create_revision")};
}

/// Until 3.5 an error is a text with its code beside it, or twice the same text; from 3.6 on only a message and a code.
/// An answer that is a stream has an object, in which the code is called grpc_code until 3.5.
bool is_error(const Json& json) {
  return json.contains("error") || (json.contains("code") && json.contains("message"));
}

EtcdAnswer read_error(const Json& json) {
  const bool is_flat = !json.contains("error") || !json.at("error").is_object();
  const Json& error = is_flat ? json : json.at("error");
  EtcdAnswer answer;
  answer.error =
      error.contains("message") ? error.at("message").get<std::string>() : error.value("error", std::string());
  if (answer.error.empty()) answer.error = "an error without a message";
  for (const char* const name : {"code", "grpc_code"}) {
    if (error.contains(name)) answer.code = json_integer(error.at(name));
  }
  return answer;
}

EtcdAnswer read_answer(const Json& json) {
  if (is_error(json)) return read_error(json);
  EtcdAnswer answer;
  const Json& result = json.contains("result") ? json.at("result") : json;  // of an answer that could be a stream
  answer.has_header = result.contains("header");
  answer.token = result.value("token", std::string());
  answer.lease = number_at(result, "ID");
  answer.seconds = number_at(result, "TTL");
  answer.succeeded = result.value("succeeded", false);
  if (result.contains("kvs")) answer.entries.push_back(entry_of(result));
  if (!result.contains("responses")) return answer;
  for (const Json& response : result.at("responses")) {
    if (answer.entries.size() == kMostSteps) break;
    if (response.contains("response_range")) answer.entries.push_back(entry_of(response.at("response_range")));
  }
  return answer;
}

Json json_of(const EtcdStep& step) {
  const std::string key = to_base64(step.key);
  switch (step.kind) {
    case EtcdStep::Kind::kPut: {
      Json put = {{"key", key}, {"value", to_base64(step.value)}};
      if (step.lease != 0) put["lease"] = std::to_string(step.lease);
      return {{"request_put", std::move(put)}};
    }
    case EtcdStep::Kind::kDelete:
      return {{"request_delete_range", {{"key", key}}}};
    default:
      return {{"request_range", {{"key", key}}}};
  }
}

Json json_of(const std::vector<EtcdStep>& steps) {
  Json list = Json::array();
  for (const EtcdStep& step : steps) list.push_back(json_of(step));
  return list;
}

}  // namespace

EtcdRequest etcd_authenticate(const std::string& user, const std::string& password) {
  return request("/v3/auth/authenticate", {{"name", user}, {"password", password}});
}

EtcdRequest etcd_grant(std::int64_t seconds) { return request("/v3/lease/grant", {{"TTL", std::to_string(seconds)}}); }

EtcdRequest etcd_keep_alive(std::int64_t lease) {
  return request("/v3/lease/keepalive", {{"ID", std::to_string(lease)}});
}

EtcdRequest etcd_revoke(std::int64_t lease) { return request("/v3/lease/revoke", {{"ID", std::to_string(lease)}}); }

EtcdRequest etcd_get(const std::string& key) { return request("/v3/kv/range", {{"key", to_base64(key)}}); }

EtcdRequest etcd_transaction(const std::string& key, std::int64_t created, const std::vector<EtcdStep>& then,
                             const std::vector<EtcdStep>& otherwise) {
  const Json compare = {
      {"target", "CREATE"}, {"key", to_base64(key)}, {"create_revision", std::to_string(created)}, {"result", "EQUAL"}};
  return request("/v3/kv/txn",
                 {{"compare", Json::array({compare})}, {"success", json_of(then)}, {"failure", json_of(otherwise)}});
}

std::optional<EtcdAnswer> etcd_answer_from_json(std::string_view body) {
  try {
    const Json json = Json::parse(body);
    return json.is_object() ? std::optional(read_answer(json)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
