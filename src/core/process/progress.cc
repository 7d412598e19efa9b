#include "process/progress.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "base/clock.h"

namespace lrun::inline core {
namespace {

constexpr std::size_t kBytesPerWorker = 64;  // a cache line each
// Steps and checkpoints may be reported by several threads, and each writes only its part.
constexpr std::size_t kStepBytes = offsetof(Progress, checkpoint_steady_ns);
constexpr const char* kMemoryName = "lrun-progress";

/// A program may have closed the descriptor that it was given and opened a file of its own under the same number.
bool is_progress_memory(int fd) {
  char target[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target - 1);
  return length > 0 && std::string_view(target).starts_with(std::string("/memfd:") + kMemoryName);
}

}  // namespace

ProgressBoard::ProgressBoard(std::size_t workers) : memory_(::memfd_create(kMemoryName, MFD_CLOEXEC)) {
  if (!memory_ || ::ftruncate(memory_.get(), static_cast<off_t>(workers * kBytesPerWorker)) != 0) {
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
}

std::string ProgressBoard::variable(int worker_fd, std::size_t worker) {
  return std::to_string(worker_fd) + ":" + std::to_string(worker * kBytesPerWorker);
}

Progress ProgressBoard::of(std::size_t worker) const {
  Progress progress;
  const auto offset = static_cast<off_t>(worker * kBytesPerWorker);
  const bool read =
      memory_ && ::pread(memory_.get(), &progress, sizeof progress, offset) == static_cast<ssize_t>(sizeof progress);
  return read ? progress : Progress{};
}

ProgressReporter::ProgressReporter(const char* variable) {
  const std::string_view text = variable == nullptr ? std::string_view() : variable;
  int fd = -1;
  const auto [colon, fd_error] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (fd_error != std::errc() || colon == text.data() + text.size() || *colon != ':') return;
  const auto [end, offset_error] = std::from_chars(colon + 1, text.data() + text.size(), offset_);
  if (offset_error != std::errc() || end != text.data() + text.size() || offset_ < 0) return;
  if (is_progress_memory(fd)) memory_ = Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void ProgressReporter::step() {
  if (!memory_) return;
  ++progress_.steps;
  progress_.steady_ns = nanoseconds(steady_now());
  if (progress_.steps == 1) progress_.first_steady_ns = progress_.steady_ns;
  const Progress written = progress_;  // a copy: GCC takes the member for its first field under sanitizers
  if (::pwrite(memory_.get(), &written, kStepBytes, offset_) < 0) memory_.reset();
}

void ProgressReporter::checkpoint() {
  if (!memory_) return;
  const std::int64_t now = nanoseconds(steady_now());
  const auto place = offset_ + static_cast<std::int64_t>(kStepBytes);
  if (::pwrite(memory_.get(), &now, sizeof now, place) < 0) memory_.reset();
}

}  // namespace lrun::inline core
