#pragma once

#include <lrun/export.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lrun {

class Session;

/// The state of a training as bytes, for example a torch::serialize::OutputArchive.
///
/// Reading such an archive back, load() of the module and of the optimizer (torch::load), may come before
/// Session::wrap() or after it, between two steps, on every rank the same: the parameters stay those that were wrapped
/// and get new values. The archive may be of any device; the next step brings module and optimizer (lrun::Optimizer) to
/// theirs. It has to be of a model of the same shapes and dtypes. With several ranks the next step throws
/// std::logic_error where they differ, names the parameter and says what to do; but LibTorch takes the bytes of a wider
/// dtype on the same device for those of its own, without a word.
struct Checkpoint {
  std::uint64_t step = 0;  ///< As it was saved: steps, epochs, whatever the program counts.
  std::string content;

  bool operator==(const Checkpoint&) const = default;
};

/// Replaces the file `path` in one step: whoever opens it, at any time and after a power cut, finds the old checkpoint
/// or the new, never a part. Size and CRC-32C go with the content, so that later damage is seen.
/// One writer at a time: usually rank 0. The new file is written to `path`.tmp first, which is removed when that fails.
/// A symbolic link stays, and what it names is replaced.
/// \throws std::system_error  the disk is full, the folder is missing, `path` is a device, a pipe, a socket or a link
/// to nothing, …; names the file.
LRUN_EXPORT void write_checkpoint(const std::filesystem::path& path, std::string_view content, std::uint64_t step = 0);

/// Whether write_checkpoint() can work there, asked before the hours that lead to it.
/// \throws std::system_error  the folder is missing or may not be written, or `path` is itself a folder or
/// something else that write_checkpoint() refuses; names it.
LRUN_EXPORT void require_checkpoint_path(const std::filesystem::path& path);

/// What write_checkpoint() wrote, or nothing when there is no such file.
/// \throws lrun::CheckpointError  the file is torn, damaged, something else or unreadable; names it and says why.
LRUN_EXPORT std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path);

/// The checkpoint that rank 0 finds in `path`, on every rank: the file need not be visible on other machines. `path` is
/// a file, or a folder of CheckpointFolder: then the newest whole checkpoint that is good. Nothing when there is none
/// yet; a warning where LRUN_RESUME named it, or where the folder has sharded checkpoints only. Collective.
/// \throws lrun::CheckpointError  on every rank, as read_checkpoint(); of a folder the bad ones are skipped.
LRUN_EXPORT std::optional<Checkpoint> load_checkpoint(Session& session, const std::filesystem::path& path);

/// How CheckpointFolder keeps checkpoints.
struct CheckpointFolderOptions {
  /// How many of the newest good ones stay; older ones are removed once a newer is complete. 0: all.
  std::size_t keep = 3;
  /// save() lets rank 0 write in a thread of its own while training goes on. False: save() returns when it is written.
  bool background = true;
  /// Who hears of checkpoints that were skipped. Default: stderr.
  std::function<void(const std::string&)> warn;
};

/// A checkpoint of a folder that was found good.
struct FoundCheckpoint {
  std::uint64_t step = 0;
  int parts = 0;  ///< Ranks that saved a part each; 0: it is whole.

  bool operator==(const FoundCheckpoint&) const = default;
};

/// A folder with the checkpoints of one training, by step: 'step-000000000100.ckpt' when whole; when sharded, a file a
/// rank and a manifest that is written once all of them are on the disk. No process that is killed, at any moment,
/// leaves something that newest() takes for a checkpoint and is not one.
///
/// Going back  from an older checkpoint leaves the later ones there, and newest() prefers them: remove them before, or
///             go on in another folder.
/// Threads     the training thread.
class LRUN_EXPORT CheckpointFolder {
 public:
  /// \param session  must outlive this object.
  /// \param folder   made when it is missing. Sharded checkpoints need one that all ranks see.
  /// \throws std::system_error  it cannot be made or written; names it.
  CheckpointFolder(Session& session, std::filesystem::path folder, CheckpointFolderOptions options = {});
  /// Waits for what is being written; a failure there is a warning.
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  /// Saves a whole checkpoint: rank 0's `content`. Not collective: other ranks return at once, and may skip the call.
  /// \throws std::system_error  on rank 0: this one, or with `background` the one before it, could not be written.
  void save(std::uint64_t step, std::string content);

  /// Saves a sharded checkpoint: each rank its part, all at the same time. Collective: returns when all parts are on
  /// the disk; what makes them a checkpoint is then written by rank 0 while the others go on. \throws std::system_error
  /// on a rank that cannot write its part. \throws lrun::CheckpointError on the other ranks then; names those that
  /// could not.
  void save_part(std::uint64_t step, std::string_view part);

  /// Returns when what save() began on this rank is on the disk.
  /// \throws std::system_error  it could not be written.
  void wait();

  /// The newest checkpoint of which every byte is as it was written; the same on all ranks. Nothing when there is none.
  /// Bad ones are skipped with a warning that names the file and why. Collective; every rank reads its share of parts.
  [[nodiscard]] std::optional<FoundCheckpoint> newest();

  /// A whole checkpoint's content, on all ranks as rank 0 sees it. Collective.
  /// \throws lrun::CheckpointError  on all ranks: it cannot be read. \throws std::invalid_argument  it is sharded.
  [[nodiscard]] std::string load(const FoundCheckpoint& checkpoint);

  /// One part of a sharded checkpoint, read by this rank alone: its own when the world is as large as the one that
  /// saved, else those that it needs.
  /// \throws lrun::CheckpointError  it cannot be read. \throws std::invalid_argument  there is no such part.
  [[nodiscard]] std::string load_part(const FoundCheckpoint& checkpoint, int part);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lrun
