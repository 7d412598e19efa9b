#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/run_status.h"
#include "report/timeline.h"

namespace lrun::launcher {

/// The files that are kept of a run, and the answers of its launchers.
struct KnownOfRun {
  std::string id;
  bool alive = false;
  std::optional<Timeline> timeline;        ///< empty: it left no events, or waits to begin
  std::optional<std::string> result_json;  ///< empty: there is none, or the run goes on
  std::vector<RunStatus> statuses = {};    ///< of its launchers that live
  std::string log = {};                    ///< the log file with the culprit's words; empty: not here
  int log_line = 0;                        ///< in it, from 1 on; 0: not found
  bool can_repeat = false;                 ///< `lrun again` takes it, here and alone
  std::int64_t now_ms = 0;                 ///< since the epoch
};

/// A run in brief: the cause, the rank to blame, and what to do next. All texts are safe for a terminal, without
/// secrets (without_secrets()), and may be empty.
struct Explanation {
  std::string run_id;
  std::string state;            ///< 'waiting', 'running' or 'ended'
  std::string reason;           ///< of an end, as in result.json; 'guard_died' without a result
  int exit_code = -1;           ///< of lrun; -1: none is known
  std::int64_t started_ms = 0;  ///< since the epoch; 0: not known
  std::int64_t took_ms = 0;
  std::int64_t ended_ago_ms = -1;  ///< only in the text; -1: it lives, or its end is not known
  int world_size = 0;              ///< 0: not known
  std::string command;
  int rank = -1;  ///< to blame; -1: none
  std::string host;
  std::string cause;  ///< its class, as in result.json
  std::string error;
  std::string place;  ///< 'train.py:12 in step'
  std::string log;    ///< as KnownOfRun has it; empty as well where it has more than a kilobyte
  int log_line = 0;
  std::vector<std::string> text;    ///< lines of the verdict; of a run that lives those of `lrun status`
  std::vector<std::string> others;  ///< what became of ranks: 'ranks 0-1,3: stopped by lrun: SIGTERM'
  std::vector<std::string> tried;   ///< how earlier attempts ended: 'attempt 0: rank 2: exited with code 1'
  std::string quiet;                ///< of a run that lives: 'ranks 0-2 for 40s'
  std::string hint;
  std::string next;  ///< the command to type next

  bool operator==(const Explanation&) const = default;
};

/// Pure.
Explanation explanation_of(const KnownOfRun& run);

/// The line of a log file, from 1 on, that has this text last; 0: none in its last MiB has it. Pure.
int last_line_with(std::string_view log, std::string_view text);

/// No text or JSON of an explanation has more bytes: lists and evidence are cut until it fits, but never the id of the
/// run, the log and the next command.
inline constexpr std::size_t kMostExplanationBytes = 4096;

/// Lines for people and programs that read.
std::string explanation_text(Explanation explanation);
/// `schema` 1: one object, with all fields of an Explanation.
std::string explanation_json(Explanation explanation);

}  // namespace lrun::launcher
