// In: the progress, error and result of each rank of a launch. Out: the same, in memory that the supervisor and the
// launching process read. Called by launch(), by each rank and by the supervisor.
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

#include "runtime/launch/whole_file_access.h"

namespace lrun::detail {
namespace {

constexpr std::uint64_t kBoardMagic = 0x6472616f626c6e32;  // of this layout
constexpr std::size_t kMostErrorBytes = 4096 - sizeof(std::uint32_t) * 2;

struct Header {
  std::uint64_t magic = kBoardMagic;
  std::uint64_t ranks = 0;
  std::int64_t history = -1;
};

struct Slot {
  LaunchBoard::Stage stage = LaunchBoard::Stage::kStarted;
  std::uint32_t error_bytes = 0;
  std::array<char, kMostErrorBytes> error;
};
static_assert(std::is_trivially_copyable_v<Slot> && sizeof(Slot) == 4096);

[[noreturn]] void throw_board_error(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), std::string("the memory of a launch: ") + what);
}

void write(int fd, const void* data, std::size_t size, std::uint64_t offset) {
  if (const int error = write_at(fd, data, size, offset)) throw_board_error(error, "pwrite");
}

void read(int fd, void* data, std::size_t size, std::uint64_t offset) {
  if (const int error = read_at(fd, data, size, offset)) throw_board_error(error, "pread");
}

std::uint64_t slot_offset(int local_rank) {
  return sizeof(Header) + static_cast<std::uint64_t>(local_rank) * sizeof(Slot);
}

std::uint64_t size_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_board_error(errno, "fstat");
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

LaunchBoard LaunchBoard::create(int ranks, int history) {
  Fd memory(::memfd_create("lrun-launch", MFD_CLOEXEC));
  if (!memory) throw_board_error(errno, "memfd_create");
  const Slot fresh{};
  for (int local_rank = 0; local_rank < ranks; ++local_rank) {
    write(memory.get(), &fresh, sizeof fresh, slot_offset(local_rank));
  }
  const Header header{kBoardMagic, static_cast<std::uint64_t>(ranks), history};
  write(memory.get(), &header, sizeof header, 0);
  return {std::move(memory), ranks, history};
}

LaunchBoard LaunchBoard::open(Fd memory) {
  Header header;
  read(memory.get(), &header, sizeof header, 0);
  if (header.magic != kBoardMagic) throw_board_error(EPROTO, "of another version of liblrun");
  return {std::move(memory), static_cast<int>(header.ranks), static_cast<int>(header.history)};
}

std::uint64_t LaunchBoard::result_offset() const { return slot_offset(ranks_); }

void LaunchBoard::set_stage(int local_rank, Stage stage) {
  write(fd(), &stage, sizeof stage, slot_offset(local_rank) + offsetof(Slot, stage));
}

LaunchBoard::Stage LaunchBoard::stage(int local_rank) const {
  Stage stage{};
  read(fd(), &stage, sizeof stage, slot_offset(local_rank) + offsetof(Slot, stage));
  return stage;
}

void LaunchBoard::set_error(int local_rank, std::string_view text) {
  text = text.substr(0, kMostErrorBytes);
  const auto size = static_cast<std::uint32_t>(text.size());
  write(fd(), text.data(), text.size(), slot_offset(local_rank) + offsetof(Slot, error));
  write(fd(), &size, sizeof size, slot_offset(local_rank) + offsetof(Slot, error_bytes));
}

std::string LaunchBoard::error(int local_rank) const {
  Slot slot;
  read(fd(), &slot, sizeof slot, slot_offset(local_rank));
  return {slot.error.data(), std::min<std::size_t>(slot.error_bytes, slot.error.size())};
}

void LaunchBoard::append(std::string_view bytes) {
  write(fd(), bytes.data(), bytes.size(), std::max(size_of(fd()), result_offset()));
}

std::string LaunchBoard::result() const {
  std::string bytes(std::max(size_of(fd()), result_offset()) - result_offset(), '\0');
  read(fd(), bytes.data(), bytes.size(), result_offset());
  return bytes;
}

}  // namespace lrun::detail
