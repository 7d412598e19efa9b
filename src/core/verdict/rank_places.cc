// In: where ranks were when the launcher looked. Out: a sentence about it, and a hint what to look at. Called for the
// verdict, for notes about hangs and for `lrun stack`.
#include "verdict/rank_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/rank_list.h"
#include "verdict/collective_name.h"

namespace lrun::inline core {
namespace {

constexpr std::size_t kMostPlaces = 8;
constexpr std::size_t kMostNamedPlaces = 6;

/// The rank that others wait for is at a rare place, so places of waiting ranks are dropped first.
auto place_order(const RankPlace& place) {
  return std::tie(place.waits_for_others, place.place, place.verb, place.verb_all);
}

bool is_more_frequent(const RankPlace& one, const RankPlace& other) {
  return std::tuple(-one.count, one.first_rank) < std::tuple(-other.count, other.first_rank);
}

std::string ranks_of(const RankPlace& place) {
  return place.count > 1 ? fmt::format("{} ranks", place.count) : fmt::format("rank {}", place.first_rank);
}

}  // namespace

std::vector<RankPlace> merge_places(std::vector<RankPlace> one, const std::vector<RankPlace>& other) {
  for (const RankPlace& place : other) {
    const auto same = std::find_if(one.begin(), one.end(),
                                   [&](const RankPlace& mine) { return place_order(mine) == place_order(place); });
    if (same == one.end()) {
      one.push_back(place);
    } else {
      same->count += place.count;
      same->first_rank = std::min(same->first_rank, place.first_rank);
    }
  }
  std::sort(one.begin(), one.end(), [](const auto& a, const auto& b) { return place_order(a) < place_order(b); });
  if (one.size() > kMostPlaces) one.resize(kMostPlaces);
  return one;
}

std::string describe_places(std::vector<RankPlace> places) {
  std::sort(places.begin(), places.end(), is_more_frequent);
  std::stable_partition(places.begin(), places.end(), [](const RankPlace& place) { return !place.waits_for_others; });
  int left_out = 0;
  for (; places.size() > kMostNamedPlaces; places.pop_back()) left_out += places.back().count;
  std::sort(places.begin(), places.end(), is_more_frequent);
  std::string text;
  for (const RankPlace& place : places) {
    text += (text.empty() ? "" : "; ") + ranks_of(place) + " " + (place.count > 1 ? place.verb_all : place.verb);
    if (!place.place.empty()) text += " " + place.place;
  }
  return left_out == 0 ? text : fmt::format("{}; {} more ranks elsewhere", text, left_out);
}

bool all_wait_for_others(const std::vector<RankPlace>& places) {
  return std::all_of(places.begin(), places.end(), [](const RankPlace& place) { return place.waits_for_others; });
}

std::string hint_about_waiting(const std::vector<RankPlace>& places) {
  std::set<std::string> operations;
  std::vector<int> elsewhere;
  bool one_each = true;
  for (const RankPlace& place : places) {
    if (place.waits_for_others) {
      operations.insert(place.place.substr(0, place.place.find(' ')));
    } else {
      elsewhere.push_back(place.first_rank);
      one_each = one_each && place.count == 1;
    }
  }
  if (operations.empty()) return {};
  if (operations.size() > 1) return "all ranks have to call the same operations in the same order";
  const std::string& operation = *operations.begin();
  if (!elsewhere.empty()) {
    std::sort(elsewhere.begin(), elsewhere.end());
    return fmt::format("every rank has to call '{}': see what keeps {} from it", operation,
                       one_each ? ranks_text(elsewhere) : "the others");
  }
  if (operation == kInitProcessGroup) {
    return "the program waits for more ranks: leave 'world_size', 'init_method' and MASTER_ADDR to lrun";
  }
  if (operation == "recv") return "each rank waits for a message that none sends";
  return fmt::format("each rank has to call '{}' as often: compare the groups, and the sizes of their tensors",
                     operation);
}

std::string describe_waiting(const std::vector<RankPlace>& places) {
  if (places.empty() || !all_wait_for_others(places)) return {};
  const auto most = std::min_element(places.begin(), places.end(), is_more_frequent);
  return fmt::format("{} {} for it in {}", ranks_of(*most), most->count > 1 ? "wait" : "waits", most->place);
}

}  // namespace lrun::inline core
