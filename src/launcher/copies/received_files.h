#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "copies/copy_message.h"

namespace lrun::launcher {

/// Files that come from another node, in a folder. They are kept apart until commit(): others see the old state or the
/// new one. Where the file system refuses a file, none of a commit counts. One thread.
class ReceivedFiles {
 public:
  enum class Existing {
    kReplaced,  ///< by what comes
    kStays,     ///< nothing that comes counts where there is a file of one of its names
  };

  /// \param folder   the files' folder, which is made
  /// \param staging  a folder beside it, which is made anew
  ReceivedFiles(std::string folder, std::string staging, Existing existing);
  /// Removes the staging folder.
  ~ReceivedFiles();
  ReceivedFiles(const ReceivedFiles&) = delete;
  ReceivedFiles& operator=(const ReceivedFiles&) = delete;

  /// A file comes: its content, and then its end.
  void begin_file(const CopyMessage& file);
  void add(std::string_view content);
  void end_file(bool is_valid);
  /// A file is not there any more.
  void gone(const std::string& path);

  /// The files that have come count from now on.
  /// \param is_all  nothing else is to be there, but the older state of a file that does not count
  /// \return 0, or the errno of the first failure: nothing of it counts. Where it was seen too late for the files of
  ///         before, these are gone, too.
  int commit(bool is_all);
  /// Drops what has come since the last commit().
  void discard();
  /// Removes all files, and the folders, until others come.
  void remove();

  /// Of the files that count.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Of those that have come since the last commit().
  [[nodiscard]] std::uint64_t staged_bytes() const { return staged_bytes_; }
  /// As bytes() will be after commit().
  [[nodiscard]] std::uint64_t bytes_after(bool is_all) const;
  /// The time of the last one that a commit() brought; 0: none has come.
  [[nodiscard]] std::int64_t newest_ns() const { return newest_ns_; }
  [[nodiscard]] std::size_t count() const { return files_.size(); }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  struct Staged {
    CopyMessage file;
    std::string staged_as;
    std::uint64_t bytes = 0;  ///< that have come
    bool counts = true;
  };

  void make_folders() const;
  [[nodiscard]] bool is_any_there() const;
  [[nodiscard]] bool put(const Staged& file) const;
  int put_all();
  void remove_gone();
  [[nodiscard]] std::set<std::string> staged_paths() const;
  void forget(const std::string& path);
  void note_error();

  std::string folder_;
  std::string staging_;
  Existing existing_;
  std::map<std::string, std::uint64_t> files_;  ///< bytes of those that count, by path
  std::vector<Staged> staged_;
  std::set<std::string> gone_;
  Fd file_;  ///< that is coming; the last one of staged_
  std::uint64_t bytes_ = 0;
  std::uint64_t staged_bytes_ = 0;
  std::int64_t newest_ns_ = 0;
  int error_ = 0;
};

}  // namespace lrun::launcher
