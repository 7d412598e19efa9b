// In: the time of a job. Out: the text and the JSON of `lrun report --goodput`. Pure.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/nearest.h"
#include "logs/terminal_text.h"
#include "report/diagnostics.h"
#include "report/goodput.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kNotKnown = "not known: no rank told a step or reached the store";

std::string_view ready_words(Goodput::Ready ready) {
  switch (ready) {
    case Goodput::Ready::kByStep:
      return "until every rank had begun its first step";
    case Goodput::Ready::kByStore:
      return "until every rank had reached the store";
    case Goodput::Ready::kUnknown:
      break;
  }
  return kNotKnown;
}

std::string_view name_of_end(AttemptUse::End end) {
  switch (end) {
    case AttemptUse::End::kSucceeded:
      return "succeeded";
    case AttemptUse::End::kFailed:
      return "failed";
    case AttemptUse::End::kStopped:
      return "stopped";
    case AttemptUse::End::kRuns:
      return "running";
    case AttemptUse::End::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view name_of_ready(Goodput::Ready ready) {
  constexpr std::array<std::string_view, 3> kNames{"first_step", "store", "unknown"};
  return kNames[static_cast<std::size_t>(ready)];
}

/// Rounded, unlike format_elapsed(), so that parts add up.
std::string elapsed(std::int64_t ms) {
  constexpr std::int64_t kMinute = 60'000;
  constexpr std::int64_t kHour = 60 * kMinute;
  return format_elapsed(Duration(ms + (ms < kMinute ? 50 : ms < kHour ? 500 : kMinute / 2)));
}

/// Lines about what the numbers do not tell.
std::string notes(const Goodput& goodput) {
  const auto has = [&](AttemptUse::End end) {
    return std::any_of(goodput.attempts.begin(), goodput.attempts.end(),
                       [&](const AttemptUse& it) { return it.end == end && it.use.whole() > 0; });
  };
  std::string text;
  if (goodput.use.lost > 0 && !goodput.knows_checkpoints) {
    text += message_line(Severity::kNote,
                         "no checkpoint is known that outlives its run, so all work before a failure counts as lost; "
                         "--checkpoint-path says where they are");
  } else if (has(AttemptUse::End::kUnknown)) {
    text += message_line(Severity::kNote,
                         "where lrun was killed, nobody looked for checkpoints: all work of that start counts as lost");
  }
  if (has(AttemptUse::End::kRuns)) {
    text += message_line(Severity::kNote, "all work of a start that goes on counts as useful so far");
  }
  return text;
}

using Line = std::array<std::string, 8>;

std::string attempt_table(const Goodput& goodput) {
  std::vector<Line> lines{{"RUN", "ATTEMPT", "WAITED", "STARTING", "USEFUL", "LOST", "STOPPING", "END"}};
  for (const AttemptUse& it : goodput.attempts) {
    const std::string end = it.end == AttemptUse::End::kUnknown ? "lrun was killed" : std::string(name_of_end(it.end));
    lines.push_back({terminal_safe(it.run_id), std::to_string(it.attempt), elapsed(it.use.waiting),
                     elapsed(it.use.starting), elapsed(it.use.useful), elapsed(it.use.lost), elapsed(it.use.stopping),
                     end});
  }
  std::array<std::size_t, std::tuple_size_v<Line>> widths{};
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Line& line : lines) {
    text += fmt::format("{:{}}", line.front(), widths.front());
    for (std::size_t i = 1; i + 1 < line.size(); ++i) text += fmt::format("  {:>{}}", line[i], widths[i]);
    text += "  " + line.back() + "\n";
  }
  return text;
}

}  // namespace

std::array<NamedUse, 5> named_uses(const Goodput& goodput) {
  const TimeUse& use = goodput.use;
  const std::int64_t whole = use.whole();
  const auto named = [&](std::string_view name, std::int64_t ms, std::string_view meaning) {
    return NamedUse{name, ms, whole == 0 ? 0 : static_cast<double>(ms) / static_cast<double>(whole), meaning};
  };
  return {named("useful", use.useful, "work that a checkpoint or the end of the training has kept"),
          named("lost", use.lost, "work since the newest checkpoint before a failure or a stop"),
          named("starting", use.starting, ready_words(goodput.ready)),
          named("stopping", use.stopping, "from a failure or the wish to stop until all workers had ended"),
          named("waiting", use.waiting, "for nodes, before restarts, and between runs")};
}

std::string size_of_job(const Goodput& goodput) {
  const std::string runs = goodput.runs == 1 ? "" : counted(goodput.runs, "run") + ", ";
  const auto starts = static_cast<int>(goodput.attempts.size());
  return fmt::format("{}{} of the workers, {}", runs, counted(starts, "start"), elapsed(goodput.use.whole()));
}

std::string goodput_text(const Goodput& goodput, const std::string& name) {
  const std::string& id = goodput.attempts.empty() ? name : goodput.attempts.back().run_id;
  std::string text =
      fmt::format("{}: {} since {}\ngoodput {:.1f} %\n\n", terminal_safe(name.empty() ? "run " + id : "job " + name),
                  size_of_job(goodput), utc_time(goodput.began_ms), 100 * goodput.share());
  for (const NamedUse& use : named_uses(goodput)) {
    if (use.meaning == kNotKnown) {
      text += fmt::format("  {:<8}  {:>8}  {:>7}  {}\n", use.name, "-", "-", use.meaning);
      continue;
    }
    text += fmt::format("  {:<8}  {:>8}  {:>5.1f} %  {}\n", use.name, elapsed(use.ms), 100 * use.share, use.meaning);
  }
  text += "\n" + attempt_table(goodput);
  if (const std::string more = notes(goodput); !more.empty()) text += "\n" + more;
  return text;
}

std::string goodput_json(const Goodput& goodput, const std::string& name) {
  const auto add_uses = [](nlohmann::json& object, const TimeUse& use) {
    object.update({{"useful_ms", use.useful},
                   {"lost_ms", use.lost},
                   {"starting_ms", use.starting},
                   {"stopping_ms", use.stopping},
                   {"waiting_ms", use.waiting}});
  };
  nlohmann::json all{{"schema", 1},
                     {"job", name},
                     {"runs", goodput.runs},
                     {"began_ms", goodput.began_ms},
                     {"until_ms", goodput.until_ms},
                     {"goodput", goodput.share()},
                     {"ready_by", name_of_ready(goodput.ready)},
                     {"knows_checkpoints", goodput.knows_checkpoints},
                     {"attempts", nlohmann::json::array()}};
  add_uses(all, goodput.use);
  for (const AttemptUse& it : goodput.attempts) {
    nlohmann::json attempt{{"run_id", it.run_id},
                           {"attempt", it.attempt},
                           {"round", it.round},
                           {"began_ms", it.began_ms},
                           {"end", name_of_end(it.end)}};
    add_uses(attempt, it.use);
    all["attempts"].push_back(std::move(attempt));
  }
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lrun::launcher
