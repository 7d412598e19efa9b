#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/fd.h"

namespace lrun::detail {

/// A range of a SharedMemory in this process' address space. Move-only; unmaps in its destructor.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Memory that processes of one host share: a file without a name. It goes away with the last process that holds it,
/// however that ends. Move-only.
///
/// Errors  every function throws std::system_error with the call that the machine refused.
class SharedMemory {
 public:
  SharedMemory() = default;

  /// A memfd: in no file system, of no size limit but memory.
  static SharedMemory create();
  /// The memory that process `pid` holds as descriptor `fd`. Needs /proc, the same pid namespace and the right to trace
  /// that process (as a rule: the same user).
  static SharedMemory open_of(pid_t pid, int fd);

  /// For processes that open_of() cannot reach: the file '/dev/shm/<name>', until unlink_named().
  static SharedMemory create_named(const std::string& name);
  static SharedMemory open_named(const std::string& name);
  static void unlink_named(const std::string& name) noexcept;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// Sets the size. New bytes are zero and take no memory until they are used.
  void resize(std::size_t bytes);
  /// How large it is. \throws std::system_error  also when it is no regular file (EINVAL), which has no such size.
  [[nodiscard]] std::size_t size() const;
  /// Maps [offset, offset + bytes), readable and writable. The offset is a multiple of the page size.
  [[nodiscard]] Mapping map(std::size_t offset, std::size_t bytes) const;
  /// Makes the pages of a mapping of [offset, offset + pages.size()) present, so that a machine without memory says so
  /// here and not with SIGBUS later. \throws std::system_error  ENOSPC, ENOMEM and the like.
  void populate(std::span<std::byte> pages, std::size_t offset) const;
  /// Gives the memory of [offset, offset + bytes) back to the machine; it reads as zero.
  void discard(std::size_t offset, std::size_t bytes) const noexcept;

 private:
  explicit SharedMemory(Fd fd) : fd_(std::move(fd)) {}

  [[nodiscard]] bool reserve(std::size_t offset, std::size_t bytes) const noexcept;

  Fd fd_;
};

/// Makes pages present that have memory already: spares page faults later, and may do nothing.
void prefault(std::span<std::byte> pages) noexcept;

std::size_t page_size();
std::size_t round_up(std::size_t value, std::size_t multiple);

}  // namespace lrun::detail
