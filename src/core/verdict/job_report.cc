// In: the records of one node's workers, and the reports of other nodes as JSON. Out: reports, merged and as JSON. Each
// node's launcher makes one per attempt; the rendezvous gathers them, and judge_job() judges the result.
#include "verdict/job_report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <limits>
#include <tuple>
#include <utility>

#include "base/json.h"

namespace lrun::inline core {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostFailuresBytes = std::size_t{60} << 10U;
constexpr std::size_t kMostTextBytes = 1024;
constexpr std::size_t kMostFailures = 8;  ///< also the most places that are read
constexpr int kMostRanks = 100'000;       ///< of a place
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

Json json_of(const RunEnd& end) {
  return {{"kind", name_of(end.kind)},
          {"signal", end.signal_number},
          {"limit_ms", end.limit_ms},
          {"who", end.who.substr(0, kMostTextBytes)},
          {"rank", end.rank},
          {"grace_expired", end.grace_expired},
          {"node", end.node.substr(0, kMostTextBytes)},
          {"node_rank", end.node_rank},
          {"by_head", end.by_head}};
}

std::optional<RunEnd> run_end_from(const Json& json) {
  constexpr int kMostSignal = 64;
  const auto kind = run_end_named(json.at("kind").get<std::string>());
  if (!kind) return std::nullopt;
  RunEnd end{*kind};
  end.signal_number = json_integer(json.at("signal"));
  end.limit_ms = json_integer<std::int64_t>(json.at("limit_ms"));
  end.who = json.at("who").get<std::string>().substr(0, kMostTextBytes);
  end.rank = json_integer(json.at("rank"));
  end.grace_expired = json.at("grace_expired").get<bool>();
  end.node = json.at("node").get<std::string>().substr(0, kMostTextBytes);
  end.node_rank = json_integer(json.at("node_rank"));
  end.by_head = json.at("by_head").get<bool>();
  const bool sound = end.signal_number >= 0 && end.signal_number <= kMostSignal && end.limit_ms >= 0;
  // Our launcher sends this signal to its workers, so another machine may not choose just any.
  const bool stops = end.kind != RunEnd::Kind::kInterrupted ||
                     (end.signal_number > 0 && end.signal_number != SIGKILL && end.signal_number != SIGSTOP);
  return sound && stops && end.node_rank >= -1 && end.rank >= -1 ? std::optional(std::move(end)) : std::nullopt;
}

/// Every end but one by lrun's own signal without an error file. An end with 0 counts: others may have waited for it.
bool may_be_the_cause(const FailureRecord& record) {
  return !record.stopped_by_lrun() || (!record.success() && record.error_time > 0);
}

void shift_times(FailureRecord& record, const ClockShift& shift) {
  record.steady_ns += shift.steady_ns;
  record.wall_ns += shift.wall_ns;
  if (record.error_time > 0) {
    const std::int64_t half = shift.wall_ns < 0 ? -kNanosecondsPerSecond / 2 : kNanosecondsPerSecond / 2;
    record.error_time = std::max<std::int64_t>(1, record.error_time + (shift.wall_ns + half) / kNanosecondsPerSecond);
  }
}

using Reason = JobReport::Reason;

/// The first decision comes first; a reason that was only passed on comes after all first-hand ones.
auto order_of(const Reason& reason) {
  return std::tuple(!reason.is_first_hand, reason.end_ns, reason.end.node_rank, reason.end.node);
}

std::optional<Reason> earlier_of(const std::optional<Reason>& one, const std::optional<Reason>& other) {
  if (!one || !other) return one ? one : other;
  return order_of(*other) < order_of(*one) ? other : one;
}

int sum_of(int one, int other) {
  return static_cast<int>(std::min<std::int64_t>(std::int64_t{one} + other, std::numeric_limits<int>::max()));
}

Json json_of(const std::optional<Reason>& reason) {
  if (!reason) return {};
  return {{"end", json_of(reason->end)}, {"end_ns", reason->end_ns}, {"is_first_hand", reason->is_first_hand}};
}

/// \return false when the values contradict each other.
bool read_reason(const Json& json, std::optional<Reason>& reason) {
  if (json.is_null()) return true;
  const std::optional<RunEnd> end = run_end_from(json.at("end"));
  if (!end || end->kind == RunEnd::Kind::kSucceeded || end->node.empty()) return false;
  reason = {*end, json_integer<std::int64_t>(json.at("end_ns")), json.at("is_first_hand").get<bool>()};
  return true;
}

Json json_of(const Fates& fates) {
  return {{"stopped_by_signal", fates.stopped_by_signal},
          {"killed", fates.killed},
          {"lost", fates.lost},
          {"failed", fates.failed},
          {"succeeded", fates.succeeded}};
}

Fates fates_from(const Json& json) {
  const auto number = [&json](const char* name) { return std::max(0, json_integer(json.at(name))); };
  return {number("stopped_by_signal"), number("killed"), number("lost"), number("failed"), number("succeeded")};
}

Json json_of(const std::vector<RankPlace>& places) {
  Json list = Json::array();
  for (const RankPlace& place : places) {
    list.push_back({{"verb", place.verb},
                    {"verb_all", place.verb_all},
                    {"place", place.place},
                    {"waits_for_others", place.waits_for_others},
                    {"count", place.count},
                    {"first_rank", place.first_rank}});
  }
  return list;
}

/// With limits, as the JSON may come from another machine.
std::vector<RankPlace> places_from(const Json& json) {
  std::vector<RankPlace> places;
  for (const Json& one : json) {
    if (places.size() == kMostFailures) break;
    const auto text = [&one](const char* name) {
      return one.at(name).get<std::string>().substr(0, RankPlace::kMostPlaceBytes);
    };
    const auto number = [&one](const char* name) { return std::clamp(json_integer(one.at(name)), 0, kMostRanks); };
    places.push_back({text("verb"), text("verb_all"), text("place"), one.at("waits_for_others").get<bool>(),
                      number("count"), number("first_rank")});
  }
  return merge_places({}, places);
}

Json json_of(const ScreenLines& screen) {
  return {{"since_stop", screen.since_stop}, {"ranks_shown", screen.ranks_shown}};
}

ScreenLines screen_from(const Json& json) {
  ScreenLines screen{std::max(0, json_integer(json.at("since_stop")))};
  for (const Json& rank : json.at("ranks_shown")) {
    if (screen.ranks_shown.size() == kMostFailures) break;
    screen.ranks_shown.push_back(json_integer(rank));
  }
  return screen;
}

/// Of the failures that are kept.
ScreenLines merge_screens(const ScreenLines& one, const ScreenLines& other,
                          const std::vector<FailureRecord>& failures) {
  ScreenLines all{sum_of(one.since_stop, other.since_stop)};
  for (const FailureRecord& failure : failures) {
    for (const std::vector<int>& ranks : {one.ranks_shown, other.ranks_shown}) {
      if (std::find(ranks.begin(), ranks.end(), failure.rank) == ranks.end()) continue;
      all.ranks_shown.push_back(failure.rank);
      break;
    }
  }
  return all;
}

/// \return false when nothing is left to leave out.
bool leave_something_out(std::vector<FailureRecord>& failures) {
  const auto talkative = std::find_if(failures.rbegin(), failures.rend(),
                                      [](const FailureRecord& record) { return !record.evidence.empty(); });
  if (talkative == failures.rend() && failures.empty()) return false;
  talkative == failures.rend() ? failures.pop_back() : talkative->evidence.clear();
  return true;
}

/// The order of the two does not matter.
JobReport merge_reports(const JobReport& one, const JobReport& other) {
  std::vector<FailureRecord> failures = one.failures;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  failures = decisive_records(failures);
  ScreenLines screen = merge_screens(one.screen, other.screen, failures);
  return {.reason = earlier_of(one.reason, other.reason),
          .joined = earlier_of(one.joined, other.joined),
          .wants_no_more = one.wants_no_more || other.wants_no_more,
          .is_incomplete = one.is_incomplete || other.is_incomplete,
          .grace_expired = one.grace_expired || other.grace_expired,
          .failures = std::move(failures),
          .places = merge_places(one.places, other.places),
          .fates = {sum_of(one.fates.stopped_by_signal, other.fates.stopped_by_signal),
                    sum_of(one.fates.killed, other.fates.killed), sum_of(one.fates.lost, other.fates.lost),
                    sum_of(one.fates.failed, other.fates.failed), sum_of(one.fates.succeeded, other.fates.succeeded)},
          .screen = std::move(screen),
          .checkpoint_ns = std::max(one.checkpoint_ns, other.checkpoint_ns)};
}

}  // namespace

JobReport report_of(const std::string& node, int node_rank, const RunEnd& end, std::int64_t end_ns,
                    const std::vector<FailureRecord>& records, const ClockShift& shift) {
  JobReport report{.grace_expired = end.grace_expired};
  if (end.kind != RunEnd::Kind::kSucceeded) {
    report.reason = Reason{end, end_ns + shift.steady_ns, end.is_ours()};
    if (end.is_ours()) {
      report.reason->end.node = node;
      report.reason->end.node_rank = node_rank;
    }
  }
  if (end.kind == RunEnd::Kind::kNodeJoined) report.joined = report.reason;
  std::vector<FailureRecord> failures;
  for (const FailureRecord& record : records) {
    ++report.fates.of(record);
    if (!may_be_the_cause(record)) continue;
    failures.push_back(record);
    shift_times(failures.back(), shift);
  }
  report.failures = decisive_records(failures);
  return report;
}

std::string to_json(const JobReport& report) {
  std::vector<FailureRecord> failures = report.failures;
  while (true) {
    std::vector<std::string> texts;
    for (const FailureRecord& record : failures) texts.push_back(to_json(record));
    Json json = {{"reason", json_of(report.reason)},      {"joined", json_of(report.joined)},
                 {"wants_no_more", report.wants_no_more}, {"is_incomplete", report.is_incomplete},
                 {"grace_expired", report.grace_expired}, {"failures", std::move(texts)},
                 {"places", json_of(report.places)},      {"fates", json_of(report.fates)},
                 {"screen", json_of(report.screen)}};
    if (report.checkpoint_ns != 0) json["checkpoint_ns"] = report.checkpoint_ns;  // few jobs look for one
    std::string text = json_text(json);
    if (text.size() <= kMostFailuresBytes || !leave_something_out(failures)) return text;
  }
}

std::optional<JobReport> job_report_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    JobReport report;
    if (!read_reason(json.at("reason"), report.reason) || !read_reason(json.at("joined"), report.joined)) return {};
    report.wants_no_more = json.at("wants_no_more").get<bool>();
    report.is_incomplete = json.at("is_incomplete").get<bool>();
    report.grace_expired = json.at("grace_expired").get<bool>();
    for (const Json& record : json.at("failures")) {
      auto failure = failure_record_from_json(record.get<std::string>());
      if (!failure || report.failures.size() == kMostFailures) return std::nullopt;
      report.failures.push_back(std::move(*failure));
    }
    report.places = places_from(json.at("places"));
    report.fates = fates_from(json.at("fates"));
    report.screen = screen_from(json.at("screen"));
    if (json.contains("checkpoint_ns")) report.checkpoint_ns = json_integer<std::int64_t>(json.at("checkpoint_ns"));
    return report;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string merge_reports(const std::vector<std::string>& reports) {
  JobReport all;
  for (const std::string& text : reports) {
    const std::optional<JobReport> report = job_report_from_json(text);
    all = merge_reports(all, report.value_or(JobReport{.is_incomplete = true}));
  }
  return to_json(all);
}

std::string to_json(const StopNotice& notice) {
  return json_text({{"end", json_of(notice.end)}, {"cause", notice.cause ? Json(to_json(*notice.cause)) : Json()}});
}

std::optional<StopNotice> stop_notice_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const std::optional<RunEnd> end = run_end_from(json.at("end"));
    if (!end || end->kind == RunEnd::Kind::kSucceeded) return std::nullopt;
    StopNotice notice{*end, {}};
    if (!json.at("cause").is_null()) {
      notice.cause = failure_record_from_json(json.at("cause").get<std::string>());
      if (!notice.cause) return std::nullopt;
    }
    return notice;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::inline core
