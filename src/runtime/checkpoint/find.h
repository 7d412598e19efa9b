#pragma once

#include <lrun/checkpoint.h>
#include <lrun/session.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/checkpoint/format.h"

namespace lrun::detail {

/// The content of a checkpoint file whose header has the kind, step, part and parts of `expected`.
/// \throws lrun::CheckpointError  it is missing or damaged; names it and the reason.
std::string read_checkpoint_content(const std::filesystem::path& path, const CheckpointHeader& expected);

/// What find_newest_checkpoint() looks for.
struct CheckpointSearch {
  bool whole_only = false;
  std::uint64_t first = 0;  ///< no earlier steps
};

/// The newest of a folder, as CheckpointFolder::newest() says. Collective.
std::optional<FoundCheckpoint> find_newest_checkpoint(Session& session, const std::filesystem::path& folder,
                                                      const CheckpointSearch& search,
                                                      const std::function<void(const std::string&)>& warn);

/// CheckpointFolder::load(), of any folder. Collective.
std::string load_whole_checkpoint(Session& session, const std::filesystem::path& folder, std::uint64_t step);

/// A warning of lrun on stderr.
void warn_on_stderr(const std::string& text);

}  // namespace lrun::detail
