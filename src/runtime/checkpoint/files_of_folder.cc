// In: a folder of checkpoints. Out: its files in order; superfluous ones are removed. Called by CheckpointFolder and by
// the search for the newest checkpoint.
#include "runtime/checkpoint/files_of_folder.h"

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/checkpoint/file.h"

namespace lrun::detail {
namespace {

struct Entry {
  std::filesystem::path path;
  CheckpointName name;
  bool half_written = false;
};

/// The files of checkpoints in a folder.
std::vector<Entry> entries_of(const std::filesystem::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  std::filesystem::directory_iterator files(folder, error);
  if (error == std::errc::no_such_file_or_directory) return entries;
  if (error) throw std::system_error(error, "cannot read '" + folder.string() + "'");
  for (const auto& file : files) {
    std::string text = file.path().filename().string();
    const bool half_written = text.ends_with(kHalfWritten);
    if (half_written) text.resize(text.size() - kHalfWritten.size());
    if (const auto name = parse_checkpoint_name(text)) entries.push_back({file.path(), *name, half_written});
  }
  return entries;
}

/// For one step the manifest is always found before the whole checkpoint.
bool later(const CheckpointName& left, const CheckpointName& right) {
  return std::pair(left.step, left.kind) > std::pair(right.step, right.kind);
}

void remove_quietly(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

/// The steps up to `last` whose files stay: the `keep` newest good ones (0: all), and damaged ones that are newer than
/// the oldest of these. A damaged one must not push a good one out.
std::set<std::uint64_t> kept_steps(const std::vector<Entry>& entries, std::uint64_t last, std::size_t keep) {
  std::set<std::uint64_t> good;
  std::set<std::uint64_t> damaged;
  for (const auto& entry : entries) {
    const bool complete = !entry.half_written && entry.name.kind != CheckpointKind::kPart;
    if (complete && entry.name.step <= last) {
      (looks_like_checkpoint(entry.path) ? good : damaged).insert(entry.name.step);
    }
  }
  while (keep > 0 && good.size() > keep) good.erase(good.begin());
  const std::uint64_t oldest = keep > 0 && !good.empty() ? *good.begin() : 0;
  good.insert(damaged.lower_bound(oldest), damaged.end());
  return good;
}

}  // namespace

std::vector<CheckpointName> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<CheckpointName> names;
  for (const auto& entry : entries_of(folder)) {
    if (!entry.half_written && entry.name.kind != CheckpointKind::kPart) names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end(), later);
  return names;
}

void prune_checkpoints(const std::filesystem::path& folder, const CheckpointName& saved, std::uint32_t parts,
                       std::size_t keep) {
  const auto entries = entries_of(folder);
  const std::set<std::uint64_t> steps = kept_steps(entries, saved.step, keep);
  std::set<std::uint64_t> sharded;
  for (const auto& entry : entries) {
    if (!entry.half_written && entry.name.kind == CheckpointKind::kManifest) sharded.insert(entry.name.step);
  }
  const auto superfluous = [&](const Entry& entry) {
    if (entry.name.step > saved.step) return false;
    if (entry.half_written) return entry.name.step < saved.step;
    if (!steps.contains(entry.name.step)) return true;
    if (entry.name.kind != CheckpointKind::kPart) return false;
    if (!sharded.contains(entry.name.step)) return true;
    return parts != 0 && entry.name.step == saved.step && entry.name.parts != parts;
  };
  // A manifest is removed before its parts: if this is interrupted, nothing that looks complete lacks a part.
  for (const bool manifests : {true, false}) {
    for (const auto& entry : entries) {
      const bool is_manifest = entry.name.kind == CheckpointKind::kManifest;
      if (is_manifest == manifests && superfluous(entry)) remove_quietly(entry.path);
    }
  }
}

void remove_outside(const std::filesystem::path& folder, std::uint64_t first, std::uint64_t last) {
  for (const auto& entry : entries_of(folder)) {
    if (entry.half_written || entry.name.step < first || entry.name.step > last) remove_quietly(entry.path);
  }
}

}  // namespace lrun::detail
