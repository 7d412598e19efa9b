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

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace lrun {

class Session;

/// The state of a training as bytes, for example a torch::serialize::OutputArchive.
///
/// Such an archive may be read back (load() of the module and of the optimizer, torch::load) before Session::wrap(), or
/// after it between two steps, the same on every rank: the wrapped parameters stay the same objects and get new values.
/// The archive may be from any device; the next step moves module and optimizer (lrun::Optimizer) to their devices. Its
/// model must have the same shapes and dtypes. With several ranks the next step throws std::logic_error if they differ,
/// names the parameter and says what to do. But LibTorch silently reads the bytes of a wider dtype on the same device
/// as if they were of its own.
struct Checkpoint {
  std::uint64_t step = 0;  ///< As it was saved: steps, epochs, or whatever the program counts.
  std::string content;     ///< The bytes that were saved.

  /// Whether all members are equal.
  bool operator==(const Checkpoint&) const = default;
};

/// Replaces the file `path` in one step: a reader finds the old checkpoint or the new one, never a part of it, at any
/// time and after a power cut. Size and CRC-32C are stored with the content, so that later damage is detected. One
/// writer at a time, usually rank 0. The new file is first written to `path`.tmp, which is removed if that fails. If
/// `path` is a symbolic link, its target is replaced.
/// \throws std::system_error  the disk is full, the folder is missing, `path` is a device, a pipe, a socket or a
///                            dangling link, …; names the file.
LRUN_EXPORT void write_checkpoint(const std::filesystem::path& path, std::string_view content, std::uint64_t step = 0);

/// Checks that write_checkpoint() can write there, before hours of training.
/// \throws std::system_error  the folder is missing or not writable, or `path` is itself a folder or something else
///                            that write_checkpoint() refuses; names it.
LRUN_EXPORT void require_checkpoint_path(const std::filesystem::path& path);

/// Reads what write_checkpoint() wrote; empty if there is no such file.
/// \throws lrun::CheckpointError  the file is truncated, damaged, no checkpoint or unreadable; names it and the reason.
LRUN_EXPORT std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path);

/// Gives every rank the checkpoint that rank 0 finds at `path`: other machines need not see the file. `path` is a file,
/// or a folder of CheckpointFolder, of which the newest undamaged whole checkpoint is read, but none in memory. Empty
/// if there is none yet; warns then if LRUN_RESUME names `path`, or if the folder has sharded checkpoints only.
/// Collective.
/// \throws lrun::CheckpointError  on every rank, as read_checkpoint(). Damaged checkpoints of a folder are skipped.
LRUN_EXPORT std::optional<Checkpoint> load_checkpoint(Session& session, const std::filesystem::path& path);

/// Writes the states of the random generators of all ranks into the archive of every rank: of the default generators of
/// the CPU and of Session::device(), as torch.get_rng_state() and torch.cuda.get_rng_state() give them. Collective.
///
/// Cost  5 KB per rank for the CPU, 16 bytes for a GPU.
LRUN_EXPORT void save_rng_state(Session& session, torch::serialize::OutputArchive& archive);

/// Gives this rank's generators the states that save_rng_state() wrote, so that dropout, augmentation and whatever else
/// draws go on as if there had been no stop. Not collective. Call it last: whatever draws before it does not count.
/// \return false if a generator was left as it is: another number of ranks wrote the archive, it was written on another
///         kind of device, or it has no such states. Seed them then, for example by Session::rank_seed().
/// \throws c10::Error  another version of LibTorch wrote a state that this one does not take.
LRUN_EXPORT bool load_rng_state(Session& session, torch::serialize::InputArchive& archive);

/// How CheckpointFolder keeps checkpoints.
struct CheckpointFolderOptions {
  /// The number of undamaged checkpoints to keep. Older ones are removed once a newer one is complete. 0: all.
  std::size_t keep = 3;
  /// save() writes on rank 0 in a background thread while training goes on. False: save() returns when it is written.
  bool background = true;
  /// Receives warnings about skipped checkpoints. Default: stderr.
  std::function<void(const std::string&)> warn;
};

/// An undamaged checkpoint of a folder.
struct FoundCheckpoint {
  std::uint64_t step = 0;  ///< As it was saved.
  int parts = 0;           ///< The number of ranks that saved a part each; 0: a whole checkpoint.
  bool in_memory = false;  ///< save_in_memory() has saved it.

  /// Whether all members are equal.
  bool operator==(const FoundCheckpoint&) const = default;
};

/// A folder with the checkpoints of one training by step. A whole checkpoint is a file 'step-000000000100.ckpt'; a
/// sharded one is a file per rank and a manifest, which is written once all of them are on disk. If a process is killed
/// at any moment, newest() takes no incomplete checkpoint for a complete one.
///
/// Going back  to an older checkpoint keeps the later ones, and newest() prefers them: remove them first, in
///             LRUN_MEMORY_DIR/checkpoints-*, too, or continue in another folder.
/// Threads     the training thread.
class LRUN_EXPORT CheckpointFolder {
 public:
  /// \param session  must outlive this object.
  /// \param folder   created if it is missing. Sharded checkpoints need a folder that all ranks see.
  /// \throws std::system_error  it cannot be created or written; names it.
  CheckpointFolder(Session& session, std::filesystem::path folder, CheckpointFolderOptions options = {});
  /// Waits for the checkpoint that is being written. A failure is a warning.
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  /// Saves a whole checkpoint: rank 0's `content`. Not collective: other ranks return at once and may skip the call.
  /// \throws std::system_error  on rank 0: this checkpoint, or with `background` the previous one, could not be
  ///                            written.
  void save(std::uint64_t step, std::string content);

  /// Saves a whole checkpoint: rank 0's `content`, in the memory of its node, in the place of the one before, and
  /// returns when it is there: after a checksum and a copy, so it can be done at each step, and save() now and then. It
  /// outlives the processes of the run, and with several nodes its own, but not the run: it is in LRUN_MEMORY_DIR, a
  /// folder that lrun makes and copies to another node. Needs room for two. Checkpoints of later steps in memory are
  /// removed, by save() and save_part(), too.
  /// Not collective, as save(): no other collective may depend on the result.
  /// \return false  on rank 0: there is no such folder, or it cannot be written; of that a warning tells once.
  bool save_in_memory(std::uint64_t step, std::string_view content);

  /// Saves a sharded checkpoint: all ranks write their parts at the same time. Collective: returns when all parts are
  /// on disk. Rank 0 then writes the manifest while the others go on.
  /// \throws std::system_error      on a rank that cannot write its part.
  /// \throws lrun::CheckpointError  on the other ranks then; names the ranks that could not write.
  void save_part(std::uint64_t step, std::string_view part);

  /// Returns when the checkpoint that save() began on this rank is on disk.
  /// \throws std::system_error  it could not be written.
  void wait();

  /// Finds the newest undamaged checkpoint, in the folder or in the memory of the node of rank 0, the same on all
  /// ranks; of the same step that of the folder. Every byte is checked. Empty if there is none. Damaged ones are
  /// skipped with a warning that names file and reason. Collective; every rank reads its share of the parts.
  [[nodiscard]] std::optional<FoundCheckpoint> newest();

  /// The content of a whole checkpoint as rank 0 sees it, on all ranks. Collective.
  /// \throws lrun::CheckpointError  on all ranks: it cannot be read. \throws std::invalid_argument  it is sharded.
  [[nodiscard]] std::string load(const FoundCheckpoint& checkpoint);

  /// One part of a sharded checkpoint, read by this rank alone. A rank reads its own part if the world has as many
  /// ranks as the one that saved, else the parts that it needs.
  /// \throws lrun::CheckpointError  it cannot be read.
  /// \throws std::invalid_argument  there is no such part.
  [[nodiscard]] std::string load_part(const FoundCheckpoint& checkpoint, int part);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lrun
