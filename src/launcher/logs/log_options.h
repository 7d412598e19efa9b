#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/duration.h"

namespace lrun::launcher {

/// The treatment of the workers' output, decided by the plan. A value.
struct LogOptions {
  bool prefix = true;        ///< '[3] ' before every line on the console
  bool fold = false;         ///< the same line of several ranks once, as '[0-7] '; with `prefix` and without a template
  bool timestamps = false;   ///< the time of reading before every line on the console
  bool interactive = false;  ///< rank 0 asks a person: on a terminal its unfinished line is shown
  bool one_rank = false;     ///< only one rank's lines are shown: its redrawn line may be, too, without a prefix
  bool live = true;          ///< redrawn lines are shown as they are redrawn, on a terminal that nobody else draws on
  std::string prefix_template = {};              ///< another prefix, for expand_prefix(); empty: '[3] '
  std::string role = {};                         ///< for the template
  std::string host = {};                         ///< for the template
  int rank_width = 1;                            ///< digits that the rank is aligned to: rank_width() of rank_prefix.h
  bool colour = false;                           ///< the prefix in one colour a rank, where the console is a terminal
  bool files = true;                             ///< a file per rank and stream, once open_files() named the folder
  std::vector<std::string> stdout_filters = {};  ///< lines with one of these are copied to filtered_stdout.log
  std::vector<std::string> stderr_filters = {};  ///< the same of stderr
  std::uint64_t max_file_bytes = 0;              ///< a file that reached it is renamed to '<name>.1'; 0: no limit
  std::size_t tail_bytes = std::size_t{16} * 1024;  ///< memory of one rank's last lines
  std::size_t console_bytes =
      std::size_t{1024} * 1024;           ///< queued for a slow console before reading from workers pauses
  Duration drain_limit = Duration(1000);  ///< how long a grandchild may hold the pipe of an ended worker
  int stdout_fd = 1;                      ///< the console of the workers' stdout; never closed, never changed
  int stderr_fd = 2;                      ///< the console of the workers' stderr, and of lrun's own lines

  bool operator==(const LogOptions&) const = default;
};

/// The destinations of one stream. A value.
struct LogRoute {
  bool file = true;     ///< to its file, where LogOptions has files
  bool console = true;  ///< to the console
  bool prefix = true;   ///< in front of its lines on the console, where LogOptions has one

  bool operator==(const LogRoute&) const = default;
};

}  // namespace lrun::launcher
