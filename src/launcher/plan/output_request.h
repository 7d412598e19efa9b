#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/metrics_target.h"
#include "plan/named_value.h"
#include "plan/rank_streams.h"
#include "plan/setting.h"
#include "plan/watch_rule.h"

namespace lrun::launcher {

/// How captured lines look on the console.
enum class ConsoleMode {
  kPrefix,  ///< every line with its rank in front
  kFold,    ///< the same line of several ranks once, with all of their ranks in front
  kRaw,     ///< as the workers wrote it
  kRank0,   ///< rank 0's lines, as it wrote them
  kQuiet,   ///< none
};

inline constexpr NamedValue<ConsoleMode> kConsoleModes[] = {{"prefix", ConsoleMode::kPrefix},
                                                            {"fold", ConsoleMode::kFold},
                                                            {"raw", ConsoleMode::kRaw},
                                                            {"rank0", ConsoleMode::kRank0},
                                                            {"quiet", ConsoleMode::kQuiet}};

/// The part of a LaunchRequest about the workers' output.
struct OutputRequest {
  Setting<ConsoleMode> console;             ///< --output; not given: the personality and the two fields below decide
  Setting<RankStreams> redirects;           ///< -r: to files
  Setting<RankStreams> tee;                 ///< -t: to files and to the console
  std::vector<int> local_ranks;             ///< whose lines the console shows; empty: all
  std::vector<std::string> stdout_filters;  ///< lines with one of these texts are copied to filtered_stdout.log
  std::vector<std::string> stderr_filters;
  std::vector<WatchRule> watch;      ///< at most WatchRule::kMost
  Setting<MetricsTarget> metrics;    ///< none is given: there are no metrics
  std::string prefix_template;       ///< with ${role_name}, ${local_rank}, ${rank}, ${hostname}; empty: not given
  std::uint64_t max_file_bytes = 0;  ///< of a log file before it is rotated; 0: no limit
  bool pty = false;                  ///< captured streams are terminals for the worker
  bool timestamps = false;           ///< the time of reading before every line on the console

  bool operator==(const OutputRequest&) const = default;
};

}  // namespace lrun::launcher
