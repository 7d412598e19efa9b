// In: steps, checkpoints and calls of a worker. Out: the same in memory that its launcher reads. Written by liblrun,
// read by Attempt.
#include "process/progress.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/clock.h"

namespace lrun::inline core {
namespace {

constexpr std::size_t kBytesPerWorker = 64;  // a cache line each
static_assert(sizeof(Progress) <= kBytesPerWorker && alignof(Progress) >= alignof(std::uint64_t));
constexpr unsigned kBitsOfOperation = 8;  // of the word of a call; the others are its number
constexpr std::uint64_t kOperationBits = (std::uint64_t{1} << kBitsOfOperation) - 1;
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

/// A worker's part of the memory.
struct Place {
  int fd = -1;
  std::int64_t offset = 0;
};

std::optional<Place> place_from(const char* variable) {
  const std::string_view text = variable == nullptr ? std::string_view() : variable;
  const char* const last = text.data() + text.size();
  Place place;
  const auto [colon, fd_error] = std::from_chars(text.data(), last, place.fd);
  if (fd_error != std::errc() || colon == last || *colon != ':') return std::nullopt;
  const auto [end, offset_error] = std::from_chars(colon + 1, last, place.offset);
  if (offset_error != std::errc() || end != last || place.offset < 0) return std::nullopt;
  const bool is_place = static_cast<std::size_t>(place.offset) % kBytesPerWorker == 0 && is_progress_memory(place.fd);
  return is_place ? std::optional(place) : std::nullopt;
}

}  // namespace

ProgressBoard::ProgressBoard(std::size_t workers) : memory_(::memfd_create(kMemoryName, MFD_CLOEXEC)) {
  if (!memory_ || ::ftruncate(memory_.get(), static_cast<off_t>(workers * kBytesPerWorker)) != 0) {
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
}

std::string ReportedCall::operation() const {
  constexpr std::array<const char*, 8> kNames{"init_process_group", "allocate_bucket", "all_reduce", "broadcast",
                                              "all_gather",         "reduce_scatter",  "all_to_all", "barrier"};
  const std::uint64_t code = word & kOperationBits;
  return word != 0 && code < kNames.size() ? kNames[code] : "";
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
  if (const std::optional<Place> place = place_from(variable)) {
    memory_ = Fd(::fcntl(place->fd, F_DUPFD_CLOEXEC, 0));
    offset_ = place->offset;
  }
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

CallReporter::CallReporter(const char* variable) {
  const std::optional<Place> place = place_from(variable);
  if (!place) return;
  const std::int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  const std::int64_t in_page = place->offset % page_bytes;
  struct stat file {};
  // Memory behind the end of the file would kill the program at its first call.
  if (::fstat(place->fd, &file) != 0 || place->offset + static_cast<std::int64_t>(kBytesPerWorker) > file.st_size)
    return;
  void* const page = ::mmap(nullptr, static_cast<std::size_t>(page_bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                            place->fd, place->offset - in_page);
  if (page == MAP_FAILED) return;
  page_ = page;
  place_ = reinterpret_cast<Progress*>(static_cast<std::byte*>(page) + in_page);
  std::atomic_ref(place_->calls_pid).store(::getpid(), std::memory_order_relaxed);
  std::atomic_ref(place_->call.word).store(0, std::memory_order_release);  // of one that was killed in a call
}

CallReporter::~CallReporter() {
  if (page_ != nullptr) ::munmap(page_, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
}

CallReporter::Call::Call(const CallReporter& reporter, ReportedOperation operation) : place_(reporter.place_) {
  if (place_ == nullptr) return;
  const std::uint64_t number = std::atomic_ref(place_->calls).fetch_add(1, std::memory_order_relaxed) + 1;
  word_ = number << kBitsOfOperation | static_cast<std::uint64_t>(operation);
  std::atomic_ref(place_->call.word).store(word_, std::memory_order_release);
}

CallReporter::Call::~Call() {
  // Not that of another thread.
  if (place_ != nullptr) std::atomic_ref(place_->call.word).compare_exchange_strong(word_, 0);
}

}  // namespace lrun::inline core
