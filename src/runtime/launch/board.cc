#include "runtime/launch/board.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <type_traits>
#include <utility>

namespace lrun {
namespace {

constexpr std::uint64_t kMagic = 0x6472616f626c6e31;  // of this layout
constexpr std::size_t kMostErrorBytes = 4096 - sizeof(std::uint32_t) * 2;

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t ranks = 0;
  std::uint64_t result_offset = 0;
};

struct Slot {
  LaunchBoard::Stage stage = LaunchBoard::Stage::kStarted;
  std::uint32_t error_bytes = 0;
  std::array<char, kMostErrorBytes> error;
};
static_assert(std::is_trivially_copyable_v<Slot> && sizeof(Slot) == 4096);

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), std::string("the memory of a launch: ") + what);
}

void write_at(int fd, const void* data, std::size_t size, std::uint64_t offset) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(errno, "pwrite");
    bytes += written;
    size -= static_cast<std::size_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
}

void read_at(int fd, void* data, std::size_t size, std::uint64_t offset) {
  char* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = ::pread(fd, bytes, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(count == 0 ? ENODATA : errno, "pread");
    bytes += count;
    size -= static_cast<std::size_t>(count);
    offset += static_cast<std::uint64_t>(count);
  }
}

std::uint64_t slot_offset(int local_rank) {
  return sizeof(Header) + static_cast<std::uint64_t>(local_rank) * sizeof(Slot);
}

std::uint64_t size_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail(errno, "fstat");
  return static_cast<std::uint64_t>(status.st_size);
}

/// One past launch in front of its bytes.
struct PastHeader {
  PastLaunch::Outcome outcome = PastLaunch::Outcome::kReturned;
  std::int32_t rank = -1;
  std::int32_t exit_code = 0;
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;
};

}  // namespace

LaunchBoard LaunchBoard::create(int ranks, const std::vector<PastLaunch>& past) {
  Fd memory(::memfd_create("lrun-launch", MFD_CLOEXEC));
  if (!memory) fail(errno, "memfd_create");
  const Slot fresh{};
  for (int local_rank = 0; local_rank < ranks; ++local_rank) {
    write_at(memory.get(), &fresh, sizeof fresh, slot_offset(local_rank));
  }
  std::uint64_t end = slot_offset(ranks);
  for (const PastLaunch& launch : past) {
    const PastHeader header{launch.outcome, launch.rank, launch.exit_code, 0, launch.bytes.size()};
    write_at(memory.get(), &header, sizeof header, end);
    write_at(memory.get(), launch.bytes.data(), launch.bytes.size(), end + sizeof header);
    end += sizeof header + launch.bytes.size();
  }
  const Header header{kMagic, static_cast<std::uint64_t>(ranks), end};
  write_at(memory.get(), &header, sizeof header, 0);
  return {std::move(memory), ranks, end};
}

LaunchBoard LaunchBoard::open(Fd memory) {
  Header header;
  read_at(memory.get(), &header, sizeof header, 0);
  if (header.magic != kMagic) fail(EPROTO, "of another version of liblrun");
  return {std::move(memory), static_cast<int>(header.ranks), header.result_offset};
}

std::vector<PastLaunch> LaunchBoard::past() const {
  std::vector<PastLaunch> past;
  for (std::uint64_t offset = slot_offset(ranks_); offset < result_offset_;) {
    PastHeader header;
    read_at(fd(), &header, sizeof header, offset);
    PastLaunch& launch = past.emplace_back(PastLaunch{header.outcome, header.rank, header.exit_code, {}});
    launch.bytes.resize(header.bytes);
    read_at(fd(), launch.bytes.data(), launch.bytes.size(), offset + sizeof header);
    offset += sizeof header + header.bytes;
  }
  return past;
}

void LaunchBoard::set_stage(int local_rank, Stage stage) {
  write_at(fd(), &stage, sizeof stage, slot_offset(local_rank) + offsetof(Slot, stage));
}

LaunchBoard::Stage LaunchBoard::stage(int local_rank) const {
  Stage stage{};
  read_at(fd(), &stage, sizeof stage, slot_offset(local_rank) + offsetof(Slot, stage));
  return stage;
}

void LaunchBoard::set_error(int local_rank, std::string_view text) {
  text = text.substr(0, kMostErrorBytes);
  const auto size = static_cast<std::uint32_t>(text.size());
  write_at(fd(), text.data(), text.size(), slot_offset(local_rank) + offsetof(Slot, error));
  write_at(fd(), &size, sizeof size, slot_offset(local_rank) + offsetof(Slot, error_bytes));
}

std::string LaunchBoard::error(int local_rank) const {
  Slot slot;
  read_at(fd(), &slot, sizeof slot, slot_offset(local_rank));
  return {slot.error.data(), std::min<std::size_t>(slot.error_bytes, slot.error.size())};
}

void LaunchBoard::append(std::string_view bytes) {
  write_at(fd(), bytes.data(), bytes.size(), std::max(size_of(fd()), result_offset_));
}

std::string LaunchBoard::result() const {
  std::string bytes(std::max(size_of(fd()), result_offset_) - result_offset_, '\0');
  read_at(fd(), bytes.data(), bytes.size(), result_offset_);
  return bytes;
}

}  // namespace lrun
