// In: open files. Out: bytes for a connection between two copiers. Given to CopyConnection.
#include "copies/file_stream.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "copies/copy_message.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10U;

}  // namespace

bool FileStream::append_next(std::string& out) {
  for (const std::string& path : std::exchange(gone_, {})) {
    append_message(out, {.kind = CopyMessage::Kind::kGone, .text = path});
  }
  const std::size_t before = out.size();
  while (next_ < files_.size() && out.size() < before + kChunk) {
    OpenFile& file = files_[next_];
    if (!std::exchange(has_begun_, true)) {
      append_message(out, {.kind = CopyMessage::Kind::kFile,
                           .text = file.path,
                           .number = file.stamp.bytes,
                           .mode = file.mode,
                           .time_ns = file.stamp.time_ns});
    }
    append_content(out);
    if (sent_ < file.stamp.bytes) continue;
    const bool is_valid = is_whole_ && is_unchanged(file);
    if (!is_valid) changed_.push_back(file.path);
    append_trailer(out, is_valid, checksum_);
    file.fd.reset();
    ++next_;
    has_begun_ = false;
    sent_ = 0;
    checksum_ = 0;
    is_whole_ = true;
  }
  if (next_ < files_.size()) return true;
  if (commit_ != Commit::kNone) {
    append_message(out, {.kind = CopyMessage::Kind::kCommit, .number = commit_ == Commit::kAllFiles ? 1U : 0U});
  }
  return false;
}

/// The other end waits for as many bytes as were announced: what a program has cut off meanwhile is zeros.
void FileStream::append_content(std::string& out) {
  const OpenFile& file = files_[next_];
  const std::size_t want = std::min<std::uint64_t>(kChunk, file.stamp.bytes - sent_);
  const std::size_t before = out.size();
  out.resize(before + want);
  const ssize_t count = ::pread(file.fd.get(), out.data() + before, want, static_cast<off_t>(sent_));
  if (count <= 0 && want > 0) is_whole_ = false;
  if (is_whole_) out.resize(before + static_cast<std::size_t>(count));
  checksum_ = crc32c(std::string_view(out).substr(before), checksum_);
  sent_ += out.size() - before;
}

}  // namespace lrun::launcher
