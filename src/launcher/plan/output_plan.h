#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/log_stream.h"
#include "plan/output_request.h"
#include "plan/personality.h"
#include "plan/rank_streams.h"

namespace lrun::launcher {

struct WorkerPlan;

/// Where the workers' output goes. A value.
struct OutputPlan {
  Setting<ConsoleMode> console{ConsoleMode::kPrefix};
  /// Streams that neither -r nor -t names are captured, too. Otherwise workers write to the launcher's own descriptors.
  bool captures_all = true;
  bool files = true;          ///< there are log files at all
  bool file_per_rank = true;  ///< every stream has one; otherwise those that -r or -t names
  RankStreams redirects;
  RankStreams tee;
  std::vector<int> local_ranks;
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  std::vector<WatchRule> watch;
  Setting<MetricsTarget> metrics;
  std::string prefix_template;  ///< empty: '[3] '
  std::uint64_t max_file_bytes = 0;
  bool pty = false;
  bool timestamps = false;
  int rank_on_terminal = -1;  ///< the rank whose streams, stdin too, are lrun's terminal; -1: none

  bool operator==(const OutputPlan&) const = default;
};

/// Where one stream of one worker goes.
struct StreamRoute {
  enum class Way {
    kCaptured,   ///< a pipe to lrun
    kInherited,  ///< the launcher's own stdout or stderr
    kFile,       ///< the log file itself
    kNowhere,    ///< /dev/null
    kTerminal,   ///< lrun's terminal, through one of the worker's own
  };
  Way way = Way::kCaptured;
  bool file = true;     ///< of a captured stream: to its log file
  bool console = true;  ///< of a captured stream: to the console
  bool prefix = true;   ///< on the console, where the mode has one

  bool operator==(const StreamRoute&) const = default;
};

/// \param log_dir  '/dev/null': no files.
/// \throws UserError  a prefix was given for lines that are shown without one
OutputPlan decide_output(const OutputRequest& request, const Personality& personality, const std::string& log_dir,
                         const Environment& environment);

/// The warning about a prefix that a shell has emptied: '[] ' of "[${rank}] " in double quotes. Else empty.
std::string warn_about_emptied_prefix(const std::string& prefix_template);

/// 'prefix', 'fold', ..., or 'inherited' where workers write to the launcher's own descriptors.
std::string name_of_console(const OutputPlan& plan);

StreamRoute route_of(const OutputPlan& plan, const WorkerPlan& worker, LogStream stream);

/// A stream of one of these workers comes to lrun.
bool captures_any(const OutputPlan& plan, const std::vector<WorkerPlan>& workers);

}  // namespace lrun::launcher
