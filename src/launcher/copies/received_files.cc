// In: files of another node, in pieces. Out: the same files in a folder here, all of a commit at once. Used by
// CopyKeeper and CopyFetcher.
#include "copies/received_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "copies/saved_files.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;

void remove_tree(const std::string& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

/// The folders above a file, as far as they are missing.
void make_folders_of(const std::string& path) {
  std::error_code ignored;  // the file cannot be put there then, which is noted
  fs::create_directories(fs::path(path).parent_path(), ignored);
}

}  // namespace

ReceivedFiles::ReceivedFiles(std::string folder, std::string staging, Existing existing)
    : folder_(std::move(folder)), staging_(std::move(staging)), existing_(existing) {
  remove_tree(staging_);
  make_folders();
}

void ReceivedFiles::make_folders() const {
  for (const std::string* path : {&folder_, &staging_}) ::mkdir(path->c_str(), S_IRWXU);
}

ReceivedFiles::~ReceivedFiles() { remove_tree(staging_); }

void ReceivedFiles::note_error() {
  if (error_ == 0) error_ = errno;
}

void ReceivedFiles::begin_file(const CopyMessage& file) {
  if (staged_.empty()) make_folders();
  staged_.push_back({.file = file, .staged_as = staging_ + '/' + std::to_string(staged_.size())});
  file_ = Fd(::open(staged_.back().staged_as.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file_) note_error();
}

void ReceivedFiles::add(std::string_view content) {
  if (!file_) return;
  staged_.back().bytes += content.size();
  staged_bytes_ += content.size();
  if (write_all(file_.get(), content) == 0) return;
  note_error();
  file_.reset();
}

/// Programs look for the newest file by its time, so a copy has that of the file.
void ReceivedFiles::end_file(bool is_valid) {
  if (!file_ || !is_valid || staged_.back().bytes != staged_.back().file.number) {
    if (!staged_.empty()) staged_.back().counts = false;
    file_.reset();
    return;
  }
  const CopyMessage& file = staged_.back().file;
  const timespec time{file.time_ns / kNanosecondsPerSecond, file.time_ns % kNanosecondsPerSecond};
  const timespec times[] = {time, time};
  ::futimens(file_.get(), times);
  ::fchmod(file_.get(), file.mode & (S_IRWXU | S_IRWXG | S_IRWXO));
  file_.reset();
}

/// Also one that has come, and was not committed.
void ReceivedFiles::gone(const std::string& path) {
  for (Staged& staged : staged_) {
    if (!staged.counts || staged.file.text != path) continue;
    staged.counts = false;
    staged_bytes_ -= staged.bytes;
  }
  if (files_.contains(path)) gone_.insert(path);
}

bool ReceivedFiles::put(const Staged& staged) const {
  const std::string target = folder_ + '/' + staged.file.text;
  if (::rename(staged.staged_as.c_str(), target.c_str()) == 0) return true;
  if (errno != ENOENT) return false;
  make_folders_of(target);
  return ::rename(staged.staged_as.c_str(), target.c_str()) == 0;
}

void ReceivedFiles::forget(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return;
  bytes_ -= found->second;
  files_.erase(found);
}

std::set<std::string> ReceivedFiles::staged_paths() const {
  std::set<std::string> paths;
  for (const Staged& staged : staged_) paths.insert(staged.file.text);
  return paths;
}

std::uint64_t ReceivedFiles::bytes_after(bool is_all) const {
  const std::set<std::string> coming = staged_paths();
  std::uint64_t bytes = staged_bytes_;
  for (const auto& [path, size] : files_) {
    if (!is_all && !gone_.contains(path) && !coming.contains(path)) bytes += size;
  }
  return bytes;
}

int ReceivedFiles::commit(bool is_all) {
  if (error_ == 0 && existing_ == Existing::kStays && is_any_there()) discard();
  if (error_ != 0) {
    const int error = error_;
    discard();
    return error;
  }
  const std::set<std::string> coming = is_all ? staged_paths() : std::set<std::string>();
  for (const auto& [path, bytes] : files_) {
    if (is_all && !coming.contains(path)) gone_.insert(path);
  }
  remove_gone();
  const int error = put_all();
  if (error != 0) {  // a part is there: neither the old state nor the new one
    for (const auto& [path, bytes] : files_) gone_.insert(path);
    remove_gone();
  }
  discard();
  return error;
}

bool ReceivedFiles::is_any_there() const {
  return std::any_of(staged_.begin(), staged_.end(), [this](const Staged& staged) {
    struct stat status {};
    return staged.counts && ::lstat((folder_ + '/' + staged.file.text).c_str(), &status) == 0;
  });
}

int ReceivedFiles::put_all() {
  for (const Staged& staged : staged_) {
    if (!staged.counts) continue;
    if (!put(staged)) return errno;
    forget(staged.file.text);
    files_.emplace(staged.file.text, staged.bytes);
    bytes_ += staged.bytes;
    newest_ns_ = std::max(newest_ns_, staged.file.time_ns);
  }
  return 0;
}

void ReceivedFiles::remove_gone() {
  for (const std::string& path : std::exchange(gone_, {})) {
    ::unlink((folder_ + '/' + path).c_str());
    for (fs::path above = fs::path(path).parent_path(); !above.empty(); above = above.parent_path()) {
      if (::rmdir((folder_ + '/' + above.native()).c_str()) != 0) break;  // something is left there
    }
    forget(path);
  }
}

void ReceivedFiles::discard() {
  file_.reset();
  for (const Staged& staged : staged_) ::unlink(staged.staged_as.c_str());
  staged_.clear();
  gone_.clear();
  staged_bytes_ = 0;
  error_ = 0;
}

void ReceivedFiles::remove() {
  discard();
  remove_tree(staging_);
  remove_tree(folder_);
  files_.clear();
  bytes_ = 0;
}

}  // namespace lrun::launcher
