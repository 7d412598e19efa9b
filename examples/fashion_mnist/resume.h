#pragma once

#include <lrun/session.h>

#include <filesystem>
#include <optional>

#include "checkpoint.h"

namespace fashion_mnist {

/// The checkpoint in `path` as rank 0 sees it, on every rank: the file need not be visible on other machines.
/// Nothing when there is none yet. Collective: every rank calls it.
/// \throws DataError  on every rank: rank 0's file is damaged or unreadable.
std::optional<Checkpoint> read_checkpoint(lrun::Session& session, const std::filesystem::path& path);

}  // namespace fashion_mnist
