// In: a folder or a file of checkpoints. Out: the newest good checkpoint, the same on all ranks; each rank checks its
// share of the parts. Called by the functions of <lrun/checkpoint.h>.
#include "runtime/checkpoint/find.h"

#include <lrun/error.h>

#include <iostream>
#include <utility>
#include <vector>

#include "base/message.h"
#include "runtime/checkpoint/checkpoint_name.h"
#include "runtime/checkpoint/file.h"
#include "runtime/checkpoint/files_of_folder.h"
#include "runtime/checkpoint/share.h"

namespace lrun::detail {
namespace {

using Warn = std::function<void(const std::string&)>;

[[noreturn]] void refuse_folder(const std::filesystem::path& path, const std::string& why) {
  throw CheckpointError("checkpoint '" + path.string() + "' cannot be used: " + why);
}

void require_place(const std::filesystem::path& path, const CheckpointHeader& header,
                   const CheckpointHeader& expected) {
  if (header.kind != expected.kind || header.step != expected.step || header.part != expected.part ||
      (expected.parts != 0 && header.parts != expected.parts)) {
    refuse_folder(path, "it belongs to another place: it was renamed");
  }
}

CheckpointHeader in_place(CheckpointKind kind, std::uint64_t step, std::uint32_t part = 0, std::uint32_t parts = 0) {
  CheckpointHeader header;
  header.kind = kind;
  header.step = step;
  header.part = part;
  header.parts = parts;
  return header;
}

/// A manifest as it is in its file.
struct Manifest {
  CheckpointHeader header;
  std::vector<CheckpointPart> parts;
};

Manifest decode_manifest(const std::filesystem::path& path, CheckpointHeader header, const std::string& content) {
  auto parts = decode_checkpoint_parts(content, header.parts);
  if (!parts) refuse_folder(path, "its list of parts is damaged");
  return {header, *std::move(parts)};
}

/// \throws lrun::CheckpointError  the part is missing, damaged, or of another save.
void check_part(const std::filesystem::path& folder, const Manifest& manifest, std::uint32_t part) {
  const auto path = folder / spell({CheckpointKind::kPart, manifest.header.step, part, manifest.header.parts});
  const auto header = check_checkpoint_file(path);
  if (!header) refuse_folder(path, "it is missing");
  require_place(path, *header, in_place(CheckpointKind::kPart, manifest.header.step, part, manifest.header.parts));
  const CheckpointPart& listed = manifest.parts[part];
  if (header->save != manifest.header.save || header->content_size != listed.size ||
      header->content_checksum != listed.checksum) {
    refuse_folder(path, "it is of another save than its manifest");
  }
}

/// Rank 0's next candidate: a good whole checkpoint, or a good manifest with its header and content.
class Candidates {
 public:
  Candidates(const std::filesystem::path& folder, const CheckpointSearch& search, const Warn& warn)
      : folder_(folder), search_(search), warn_(warn) {}

  std::optional<Shared> next() {
    if (!listed_) names_ = list_checkpoints(folder_);
    listed_ = true;
    while (at_ < names_.size()) {
      const CheckpointName& name = names_[at_++];
      if (name.step < search_.first) break;
      if (search_.whole_only && name.kind != CheckpointKind::kWhole) {
        if (passed_by_.empty()) passed_by_ = folder_ / spell(name);
        continue;
      }
      try {
        return Shared{name.step, open(name)};
      } catch (const CheckpointError& error) {
        warn_(error.what());
      }
    }
    if (!passed_by_.empty()) {
      warn_("'" + passed_by_.string() +
            "' is of a sharded checkpoint, which is not looked at here: CheckpointFolder::load_part() loads it");
    }
    return std::nullopt;
  }

 private:
  /// \return nothing for a whole checkpoint, the file's bytes for a manifest.
  std::string open(const CheckpointName& name) {
    const auto path = folder_ / spell(name);
    if (name.kind == CheckpointKind::kWhole) {
      const auto header = check_checkpoint_file(path);
      if (!header) refuse_folder(path, "it is missing");
      require_place(path, *header, in_place(name.kind, name.step));
      return {};
    }
    const auto file = read_checkpoint_file(path);
    if (!file) refuse_folder(path, "it is missing");
    require_place(path, file->header, in_place(name.kind, name.step));
    decode_manifest(path, file->header, file->content);
    const auto header = encode_checkpoint_header(file->header);
    return std::string(header.data(), header.size()) + file->content;
  }

  const std::filesystem::path& folder_;
  const CheckpointSearch& search_;
  const Warn& warn_;
  bool listed_ = false;
  std::vector<CheckpointName> names_;
  std::size_t at_ = 0;
  std::filesystem::path passed_by_;  // the newest sharded one, if only whole ones are wanted
};

/// This rank's share of the parts.
bool parts_are_good(const Session& session, const std::filesystem::path& folder, const Manifest& manifest,
                    const Warn& warn) {
  const auto world_size = static_cast<std::uint32_t>(session.world_size());
  bool good = true;
  for (auto part = static_cast<std::uint32_t>(session.rank()); part < manifest.header.parts; part += world_size) {
    try {
      check_part(folder, manifest, part);
    } catch (const CheckpointError& error) {
      warn(error.what());
      good = false;
    }
  }
  return good;
}

}  // namespace

std::string read_checkpoint_content(const std::filesystem::path& path, const CheckpointHeader& expected) {
  auto file = read_checkpoint_file(path);
  if (!file) refuse_folder(path, "it is missing");
  require_place(path, file->header, expected);
  return std::move(file->content);
}

std::optional<FoundCheckpoint> find_newest_checkpoint(Session& session, const std::filesystem::path& folder,
                                                      const CheckpointSearch& search, const Warn& warn) {
  Candidates candidates(folder, search, warn);
  while (const auto candidate = share_from_rank_zero(session, [&] { return candidates.next(); })) {
    if (candidate->bytes.empty()) return FoundCheckpoint{candidate->number, 0};
    const auto header = decode_checkpoint_header(candidate->bytes, candidate->bytes.size());
    const Manifest manifest =
        decode_manifest(folder, std::get<CheckpointHeader>(header), candidate->bytes.substr(kCheckpointHeaderBytes));
    const double good = parts_are_good(session, folder, manifest, warn) ? 1 : 0;
    if (session.all_reduce(good, ReduceOp::kMin) == 1) {
      return FoundCheckpoint{candidate->number, static_cast<int>(manifest.header.parts)};
    }
  }
  return std::nullopt;
}

std::string load_whole_checkpoint(Session& session, const std::filesystem::path& folder, std::uint64_t step) {
  auto found = share_from_rank_zero(session, [&]() -> std::optional<Shared> {
    const auto path = folder / spell({CheckpointKind::kWhole, step, 0, 0});
    return Shared{step, read_checkpoint_content(path, in_place(CheckpointKind::kWhole, step))};
  });
  return std::move(found->bytes);
}

void warn_on_stderr(const std::string& text) { std::cerr << message_line(Severity::kWarning, text) << std::flush; }

}  // namespace lrun::detail
