#include <lrun/checkpoint.h>
#include <lrun/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "process/progress.h"
#include "runtime/checkpoint/file.h"
#include "runtime/checkpoint/find.h"
#include "runtime/checkpoint/share.h"

namespace lrun {
namespace {

/// True below LRUN_MEMORY_DIR, where the launcher looks itself.
bool is_in_memory(const std::filesystem::path& path) {
  const char* const memory = std::getenv("LRUN_MEMORY_DIR");  // NOLINT(concurrency-mt-unsafe)
  if (memory == nullptr || *memory == '\0') return false;
  return std::filesystem::absolute(path).lexically_normal().native().starts_with(std::string(memory) + "/");
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, std::string_view content, std::uint64_t step) {
  detail::CheckpointHeader header;
  header.step = step;
  detail::write_checkpoint_file(detail::replaceable_file(path), header, content);
  if (!is_in_memory(path))
    ProgressReporter(std::getenv(kProgressVariable)).checkpoint();  // NOLINT(concurrency-mt-unsafe)
}

void require_checkpoint_path(const std::filesystem::path& path) {
  const std::filesystem::path file = detail::replaceable_file(path);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  int error = ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  if (!path.has_filename()) error = EISDIR;
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot write '" + path.string() + "'");
}

std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path) {
  auto file = detail::read_checkpoint_file(path);
  if (!file) return std::nullopt;
  if (file->header.kind != detail::CheckpointKind::kWhole) {
    throw CheckpointError("checkpoint '" + path.string() + "' cannot be used: it is a part of a sharded checkpoint");
  }
  return Checkpoint{file->header.step, std::move(file->content)};
}

namespace {

std::optional<Checkpoint> find_checkpoint(Session& session, const std::filesystem::path& path) {
  const auto is_folder = detail::share_from_rank_zero(session, [&]() -> std::optional<detail::Shared> {
    std::error_code unknown;
    if (!std::filesystem::is_directory(path, unknown)) return std::nullopt;
    return detail::Shared();
  });
  if (is_folder) {
    const auto newest = detail::find_newest_checkpoint(session, path, {.whole_only = true}, detail::warn_on_stderr);
    if (!newest) return std::nullopt;
    return Checkpoint{newest->step, detail::load_whole_checkpoint(session, path, newest->step)};
  }
  auto found = detail::share_from_rank_zero(session, [&]() -> std::optional<detail::Shared> {
    auto checkpoint = read_checkpoint(path);
    if (!checkpoint) return std::nullopt;
    return detail::Shared{checkpoint->step, std::move(checkpoint->content)};
  });
  if (!found) return std::nullopt;
  return Checkpoint{found->number, std::move(found->bytes)};
}

}  // namespace

std::optional<Checkpoint> load_checkpoint(Session& session, const std::filesystem::path& path) {
  auto checkpoint = find_checkpoint(session, path);
  const bool was_asked_for = !session.world().resume_path.empty() && path == session.world().resume_path;
  if (!checkpoint && was_asked_for && session.is_rank_zero()) {
    detail::warn_on_stderr("LRUN_RESUME names '" + path.string() + "', where no checkpoint is to go on from");
  }
  return checkpoint;
}

}  // namespace lrun
