#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/child_query.h"
#include "report/message_sink.h"
#include "run/run_folders.h"

namespace lrun::launcher {

/// Files and folders, each by its device and inode.
using FileSet = std::set<std::pair<dev_t, ino_t>>;

/// Those that lrun itself writes: the folders of the run, and the files behind its standard output and error.
FileSet files_of_lrun(const RunFolders& folders);

/// When the newest checkpoint was written, in nanoseconds of the wall clock of its file system; 0: there is none.
///
/// Files that hold something count, also where links lead to them. Names that say that something is not complete do not
/// ('tmp' in them, or '.new', '.part' and the like at the end), nor do hidden ones below a folder, times before 1970,
/// and times more than a day ahead. Waits for as long as the file system does.
/// \param pattern  a file, a folder, or a pattern of such, as glob(3) has it: 'runs/*/step_*'
/// \param left_out  does not count, with all that is in it
std::int64_t newest_checkpoint_ns(const std::string& pattern, const FileSet& left_out);

/// When the newest checkpoints of a run were written, as newest_checkpoint_ns().
struct NewestCheckpoints {
  std::int64_t kept_ns = 0;       ///< where --checkpoint-path says
  std::int64_t in_memory_ns = 0;  ///< in LRUN_MEMORY_DIR, which is gone after the run

  [[nodiscard]] std::int64_t newest_ns() const { return std::max(kept_ns, in_memory_ns); }
  bool operator==(const NewestCheckpoints&) const = default;
};

/// Both times as a child process finds them: '1700000000000000000 0'. \param pattern, left_out  as above
/// \param memory  a folder. Either may be empty, where nothing is looked for.
std::string look_for_checkpoints(const std::string& pattern, const FileSet& left_out, const std::string& memory);

/// The times that the child has found. Both are 0 where it gave no answer.
NewestCheckpoints checkpoints_from(const ChildAnswer& answer);

/// Tells that a child gave no answer, since of that the restart counts.
void warn_of_no_look(const ChildAnswer& answer, const std::string& pattern, MessageSink& sink);

}  // namespace lrun::launcher
