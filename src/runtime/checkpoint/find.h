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

/// CheckpointFolder::newest(), of any folder. Collective.
std::optional<FoundCheckpoint> find_newest_checkpoint(Session& session, const std::filesystem::path& folder,
                                                      bool whole_only,
                                                      const std::function<void(const std::string&)>& warn);

/// CheckpointFolder::load(), of any folder. Collective.
std::string load_whole_checkpoint(Session& session, const std::filesystem::path& folder, std::uint64_t step);

/// A warning of lrun on stderr.
void warn_on_stderr(const std::string& text);

}  // namespace lrun::detail
