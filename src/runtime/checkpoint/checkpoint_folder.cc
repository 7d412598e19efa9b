// In: checkpoints that the training thread saves, step by step. Out: files of the folder, written by a background
// thread if the options say so. Implements <lrun/checkpoint.h>.
#include <ATen/ATen.h>
#include <lrun/checkpoint.h>
#include <lrun/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <future>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "process/progress.h"
#include "runtime/checkpoint/checkpoint_name.h"
#include "runtime/checkpoint/file.h"
#include "runtime/checkpoint/files_of_folder.h"
#include "runtime/checkpoint/find.h"
#include "runtime/checkpoint/share.h"

namespace lrun {
namespace {

using detail::CheckpointHeader;
using detail::CheckpointKind;
using detail::CheckpointName;
using detail::CheckpointPart;

/// No two saves get the same number, also not before and after a restart.
std::uint64_t random_number() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

/// Each rank sends this after writing its part, successfully or not.
struct PartReport {
  bool written = false;
  CheckpointPart part;
};

std::vector<PartReport> gather(Session& session, const PartReport& mine) {
  const auto input = at::tensor({static_cast<std::int64_t>(mine.written), static_cast<std::int64_t>(mine.part.size),
                                 static_cast<std::int64_t>(mine.part.checksum)},
                                at::kLong)
                         .to(session.device());
  auto output = at::empty({session.world_size(), 3}, input.options());
  session.collectives().all_gather(output, input);
  output = output.cpu();
  std::vector<PartReport> reports;
  for (std::int64_t rank = 0; rank < session.world_size(); ++rank) {
    const auto* row = output.const_data_ptr<std::int64_t>() + 3 * rank;
    reports.push_back({row[0] != 0, {static_cast<std::uint64_t>(row[1]), static_cast<std::uint32_t>(row[2])}});
  }
  return reports;
}

void require_all_written(std::uint64_t step, const std::vector<PartReport>& reports) {
  std::string missing;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (!reports[rank].written) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (missing.empty()) return;
  throw CheckpointError("checkpoint of step " + std::to_string(step) + " is not complete: rank " + missing +
                        " could not write its part");
}

std::string manifest_of(const std::vector<PartReport>& reports) {
  std::vector<CheckpointPart> parts;
  for (const auto& report : reports) parts.push_back(report.part);
  return detail::encode_checkpoint_parts(parts);
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0) error.assign(errno, std::generic_category());
  if (error) throw std::system_error(error, "cannot write checkpoints into '" + folder.string() + "'");
}

/// Only the last folder: a memory that is gone is not made again.
void make_place(const std::filesystem::path& place) {
  std::error_code error;
  std::filesystem::create_directory(place, error);
  if (error) throw std::system_error(error, "cannot make '" + place.string() + "'");
}

void write_whole_checkpoint(const std::filesystem::path& folder, std::uint64_t step, std::string_view content) {
  CheckpointHeader header;
  header.step = step;
  header.save = random_number();
  detail::write_checkpoint_file(folder / detail::spell({CheckpointKind::kWhole, step, 0, 0}), header, content);
}

/// The folder in memory that belongs to a folder of checkpoints; empty: there is no memory.
std::filesystem::path place_in_memory(const std::filesystem::path& folder) {
  const char* const memory = std::getenv("LRUN_MEMORY_DIR");  // NOLINT(concurrency-mt-unsafe)
  if (memory == nullptr || *memory == '\0') return {};
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(folder, error);
  if (error) return {};
  return std::filesystem::path(memory) / ("checkpoints-" + std::to_string(crc32c(whole.string())));
}

}  // namespace

class CheckpointFolder::State {
 public:
  State(Session& of_session, std::filesystem::path path, CheckpointFolderOptions with_options)
      : session(of_session), folder(std::move(path)), options(std::move(with_options)) {
    if (!options.warn) options.warn = detail::warn_on_stderr;
    make_folder(folder);
    memory = place_in_memory(folder);
  }

  void write_whole(std::uint64_t step, const std::string& content) {
    write_whole_checkpoint(folder, step, content);
    reporter.checkpoint();
    detail::prune_checkpoints(folder, {CheckpointKind::kWhole, step, 0, 0}, 0, options.keep);
  }

  /// A training that went back does not come to them. On rank 0.
  void forget_later_in_memory(std::uint64_t step) const {
    try {
      if (!memory.empty()) detail::remove_outside(memory, 0, step);
    } catch (const std::system_error& error) {
      options.warn(error.what());
    }
  }

  /// Empty on all ranks: there is none.
  std::optional<FoundCheckpoint> newest_in_memory() const {
    try {
      auto found = detail::find_newest_checkpoint(session, memory, {}, options.warn);
      if (found) found->in_memory = true;
      return found;
    } catch (const CheckpointError& error) {  // on all ranks
      if (session.is_rank_zero()) options.warn(error.what());
      return std::nullopt;
    }
  }

  void write_manifest(CheckpointHeader header, const std::vector<PartReport>& reports) {
    const CheckpointName name{CheckpointKind::kManifest, header.step, 0, 0};
    header.kind = name.kind;
    header.part = 0;
    detail::write_checkpoint_file(folder / detail::spell(name), header, manifest_of(reports));
    reporter.checkpoint();
    detail::prune_checkpoints(folder, name, header.parts, options.keep);
  }

  void wait() {
    if (pending.valid()) pending.get();
  }

  /// As wait(), but a failure does not come out on this rank alone.
  void settle() noexcept {
    try {
      wait();
    } catch (const std::exception& error) {
      options.warn(std::string("the last checkpoint was not written: ") + error.what());
    }
  }

  Session& session;
  std::filesystem::path folder;
  std::filesystem::path memory;  // empty: there is none; rank 0 uses it
  CheckpointFolderOptions options;
  std::future<void> pending;                                  // what a thread writes
  bool has_told = false;                                      // that nothing can be saved in memory
  ProgressReporter reporter{std::getenv(kProgressVariable)};  // NOLINT(concurrency-mt-unsafe): of the caller's thread
};

CheckpointFolder::CheckpointFolder(Session& session, std::filesystem::path folder, CheckpointFolderOptions options)
    : state_(std::make_unique<State>(session, std::move(folder), std::move(options))) {}

CheckpointFolder::~CheckpointFolder() { state_->settle(); }

void CheckpointFolder::save(std::uint64_t step, std::string content) {
  if (!state_->session.is_rank_zero()) return;
  wait();
  state_->forget_later_in_memory(step);
  if (!state_->options.background) return state_->write_whole(step, content);
  state_->pending = std::async(std::launch::async, [state = state_.get(), step, bytes = std::move(content)] {
    state->write_whole(step, bytes);
  });
}

bool CheckpointFolder::save_in_memory(std::uint64_t step, std::string_view content) {
  State& state = *state_;
  if (!state.session.is_rank_zero()) return true;
  if (state.memory.empty()) return false;
  try {
    make_place(state.memory);
    detail::remove_outside(state.memory, 0, step);
    write_whole_checkpoint(state.memory, step, content);
    detail::remove_outside(state.memory, step, step);
    return true;
  } catch (const std::system_error& error) {
    if (!std::exchange(state.has_told, true)) {
      state.options.warn(std::string("a checkpoint is not saved in memory: ") + error.what());
    }
    return false;
  }
}

void CheckpointFolder::save_part(std::uint64_t step, std::string_view part) {
  State& state = *state_;
  state.settle();
  CheckpointHeader header;
  header.kind = CheckpointKind::kPart;
  header.step = step;
  header.save = detail::share_from_rank_zero(state.session, [] { return detail::Shared{random_number(), {}}; })->number;
  header.part = static_cast<std::uint32_t>(state.session.rank());
  header.parts = static_cast<std::uint32_t>(state.session.world_size());
  PartReport mine;
  std::exception_ptr failure;
  try {
    const auto path = state.folder / detail::spell({header.kind, step, header.part, header.parts});
    const auto written = detail::write_checkpoint_file(path, header, part);
    mine = {true, {written.content_size, written.content_checksum}};
  } catch (const std::system_error&) {
    failure = std::current_exception();  // the others wait below and need the result
  }
  const auto reports = gather(state.session, mine);
  if (failure) std::rethrow_exception(failure);
  require_all_written(step, reports);
  if (!state.session.is_rank_zero()) return;
  state.forget_later_in_memory(step);
  state.write_manifest(header, reports);
}

void CheckpointFolder::wait() { state_->wait(); }

std::optional<FoundCheckpoint> CheckpointFolder::newest() {
  State& state = *state_;
  state.settle();
  const auto in_memory = state.newest_in_memory();
  const detail::CheckpointSearch as_new{.first = in_memory ? in_memory->step : 0};
  const auto on_disk = detail::find_newest_checkpoint(state.session, state.folder, as_new, state.options.warn);
  return on_disk ? on_disk : in_memory;
}

std::string CheckpointFolder::load(const FoundCheckpoint& checkpoint) {
  if (checkpoint.parts != 0) throw std::invalid_argument("a sharded checkpoint is loaded part by part");
  state_->settle();
  const bool in_memory = checkpoint.in_memory && !state_->memory.empty();
  return detail::load_whole_checkpoint(state_->session, in_memory ? state_->memory : state_->folder, checkpoint.step);
}

std::string CheckpointFolder::load_part(const FoundCheckpoint& checkpoint, int part) {
  if (part < 0 || part >= checkpoint.parts) {
    throw std::invalid_argument("there is no part " + std::to_string(part) + " of " + std::to_string(checkpoint.parts));
  }
  CheckpointHeader expected;
  expected.kind = CheckpointKind::kPart;
  expected.step = checkpoint.step;
  expected.part = static_cast<std::uint32_t>(part);
  expected.parts = static_cast<std::uint32_t>(checkpoint.parts);
  return detail::read_checkpoint_content(
      state_->folder / detail::spell({expected.kind, expected.step, expected.part, expected.parts}), expected);
}

}  // namespace lrun
