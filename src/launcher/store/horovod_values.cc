// In: HTTP requests of Horovod's ranks. Out: HTTP answers. StoreServer calls, for its HttpServer.
#include "store/horovod_values.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/whole_number.h"
#include "store/http_answer.h"

namespace lrun::launcher {
namespace {

/// The cost of one more key besides its bytes.
constexpr std::size_t kBytesOfEntry = 128;
constexpr std::string_view kNamePrefix = "rank_";
constexpr int kMostRanks = 1 << 20;

std::size_t cost_of(const std::string& key, const std::string& value) {
  return key.size() + value.size() + kBytesOfEntry;
}

}  // namespace

std::string HorovodValues::answer(HttpRequest request) {
  const std::string& target = request.target;
  const std::size_t slash = target.find('/', 1);
  const bool is_place = target.starts_with('/') && slash != std::string::npos && slash > 1 &&
                        slash + 1 < target.size() && target.find('/', slash + 1) == std::string::npos;
  if (!is_place) return http_answer("400 Bad Request");
  const Place place{target.substr(1, slash - 1), target.substr(slash + 1)};
  if (request.method == "GET") return get(place);
  if (request.method == "PUT") return put(place, std::move(request.body));
  if (request.method == "DELETE") return finish(place);
  return http_answer("405 Method Not Allowed");
}

void HorovodValues::clear() { *this = HorovodValues(most_bytes_); }

/// Answers at once even when the value is missing: the client asks again until its own timeout.
std::string HorovodValues::get(const Place& place) const {
  const auto scope = scopes_.find(place.scope);
  if (scope == scopes_.end()) return http_answer("404 Not Found");
  const auto value = scope->second.find(place.key);
  return value == scope->second.end() ? http_answer("404 Not Found") : http_answer("200 OK", value->second);
}

std::string HorovodValues::put(const Place& place, std::string value) {
  const std::size_t cost = cost_of(place.key, value);
  if (cost > most_bytes_ - bytes_) return http_answer("507 Insufficient Storage");
  note_rank(place);
  Scope& scope = scopes_[place.scope];
  erase(scope, place.key);
  bytes_ += cost;
  scope.emplace(place.key, std::move(value));
  return http_answer("200 OK");
}

std::string HorovodValues::finish(const Place& place) {
  const auto scope = scopes_.find(place.scope);
  if (scope == scopes_.end()) return http_answer("200 OK");
  erase(scope->second, place.key);
  erase(scope->second, std::string(kNamePrefix) + place.key);
  if (scope->second.empty()) scopes_.erase(scope);
  return http_answer("200 OK");
}

void HorovodValues::erase(Scope& scope, const std::string& key) {
  const auto entry = scope.find(key);
  if (entry == scope.end()) return;
  bytes_ -= cost_of(entry->first, entry->second);
  scope.erase(entry);
}

void HorovodValues::note_rank(const Place& place) {
  if (place.scope != "global") return;
  const std::string_view key = place.key;
  const auto rank = whole_number<int>(key.starts_with(kNamePrefix) ? key.substr(kNamePrefix.size()) : key);
  if (rank && *rank >= 0 && *rank < kMostRanks) ranks_seen_.insert(*rank);
}

}  // namespace lrun::launcher
