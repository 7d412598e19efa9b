// In: the bytes of one stream of a rank. Out: its log file, renamed at a limit of size, with a line where bytes were
// lost. LogFiles writes and names the files.
#include "logs/rank_log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/appended_file.h"

namespace lrun::launcher {

int RankLogFile::open_at(const Folder& folder, std::string place) {
  folder_ = &folder;
  place_ = std::move(place);
  if (kept_.empty()) return 0;
  return write(std::exchange(kept_, {}));
}

int RankLogFile::write(std::string_view bytes) {
  if (!named()) {
    kept_.append(bytes);
    return 0;
  }
  if (!fd_) {
    if (const int error = make(); error != 0) {
      lost_bytes_ += bytes.size();
      refusal_ = refusal_ != 0 ? refusal_ : error;
      return error;
    }
  }
  if (lost_bytes_ > 0) {
    const std::string note =
        fmt::format("\n[lrun: {} bytes are missing here: {}]\n", lost_bytes_, file_refusal_text(refusal_));
    std::string_view left = note;
    if (const int error = write_all(fd_.get(), left); error != 0) {
      lost_bytes_ += bytes.size();
      return error;
    }
    lost_bytes_ = 0;
    refusal_ = 0;
  }
  return max_bytes_ > 0 ? store_in_turns(bytes) : store(bytes);
}

std::size_t RankLogFile::fitting(std::string_view bytes) const {
  constexpr std::uint64_t kRestOfLine = std::uint64_t{64} * 1024;
  const auto room = static_cast<std::size_t>(max_bytes_ - std::min(size_, max_bytes_));
  if (bytes.size() <= room) return bytes.size();
  const std::size_t whole_lines = room == 0 ? 0 : bytes.rfind('\n', room - 1) + 1;  // npos + 1 is 0
  if (whole_lines > 0) return whole_lines;
  if (!within_line_) return size_ == 0 ? room : 0;
  const std::size_t rest = bytes.find('\n') + 1;
  if (size_ + std::max(rest, std::size_t{1}) > max_bytes_ + kRestOfLine) return room;
  return rest > 0 ? rest : std::min(bytes.size(), static_cast<std::size_t>(max_bytes_ + kRestOfLine - size_));
}

int RankLogFile::store_in_turns(std::string_view bytes) {
  while (true) {
    const std::string_view part = bytes.substr(0, fitting(bytes));
    if (!part.empty()) {
      if (const int error = store(part); error != 0) return error;
      size_ += part.size();
      within_line_ = part.back() != '\n';
      bytes.remove_prefix(part.size());
    }
    if (bytes.empty()) return 0;
    int error = begin_anew();
    // Somebody else fills the new file as fast as we make it: that is not waited for.
    if (error == 0 && fitting(bytes) == 0) error = EEXIST;
    if (error != 0) {
      lost_bytes_ += bytes.size();
      refusal_ = error;
      return error;
    }
  }
}

int RankLogFile::begin_anew() {
  if (const int error = set_aside(*folder_, place_); error != 0) return error;
  fd_.reset();
  within_line_ = false;
  return make();
}

int RankLogFile::make() {
  constexpr mode_t kMode = 0666;
  Fd fd = open_to_append(*folder_, place_, kMode);
  if (!fd) return errno;
  fd_ = std::move(fd);
  made_ = true;
  const off_t end = max_bytes_ > 0 ? ::lseek(fd_.get(), 0, SEEK_END) : 0;
  size_ = end > 0 ? static_cast<std::uint64_t>(end) : 0;
  return 0;
}

int RankLogFile::store(std::string_view bytes) {
  const int error = write_all(fd_.get(), bytes);
  if (error != 0) {
    lost_bytes_ += bytes.size();
    refusal_ = error;
  }
  return error;
}

std::string end_of_file(const std::filesystem::path& path, std::size_t most) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return {};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size <= 0) return {};
  const off_t start = std::max<off_t>(0, size - static_cast<off_t>(most));
  std::string text(static_cast<std::size_t>(size - start), '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), start);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (start > 0) text.erase(0, text.find('\n') + 1);  // npos + 1 is 0: one line longer than `most`
  return text;
}

}  // namespace lrun::launcher
