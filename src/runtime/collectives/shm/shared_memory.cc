// In: sizes, ranges and processes. Out: memory that processes of one host share, as a descriptor and mappings; errors
// as exceptions instead of SIGBUS. Called by the setup, the region and the arena of a shm group.
#include "runtime/collectives/shm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun::detail {
namespace {

[[noreturn]] void refuse(const std::string& call) {
  throw std::system_error(errno, std::generic_category(), "shared memory: " + call);
}

#ifndef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = 23;  // Linux 5.14
#else
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#endif

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

SharedMemory SharedMemory::create() {
  Fd fd(::memfd_create("lrun-collectives", MFD_CLOEXEC));
  if (!fd) refuse("memfd_create");
  return SharedMemory(std::move(fd));
}

SharedMemory SharedMemory::open_of(pid_t pid, int fd) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  Fd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened) refuse("open '" + path + "'");
  return SharedMemory(std::move(opened));
}

SharedMemory SharedMemory::create_named(const std::string& name) {
  Fd fd(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) refuse("shm_open '" + name + "'");
  return SharedMemory(std::move(fd));
}

SharedMemory SharedMemory::open_named(const std::string& name) {
  Fd fd(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!fd) refuse("shm_open '" + name + "'");
  return SharedMemory(std::move(fd));
}

void SharedMemory::unlink_named(const std::string& name) noexcept { ::shm_unlink(name.c_str()); }

void SharedMemory::resize(std::size_t bytes) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) refuse("ftruncate to " + std::to_string(bytes));
}

std::size_t SharedMemory::size() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) refuse("fstat");
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    refuse("not a regular file");
  }
  return static_cast<std::size_t>(status.st_size);
}

Mapping SharedMemory::map(std::size_t offset, std::size_t bytes) const {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), static_cast<off_t>(offset));
  if (data == MAP_FAILED) refuse("mmap of " + std::to_string(bytes) + " bytes");
  ::madvise(data, bytes, MADV_HUGEPAGE);  // a wish: most machines keep shared memory in small pages
  return {static_cast<std::byte*>(data), bytes};
}

void SharedMemory::discard(std::size_t offset, std::size_t bytes) const noexcept {
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
}

void SharedMemory::populate(std::span<std::byte> pages, std::size_t offset) const {
  if (pages.empty() || ::madvise(pages.data(), pages.size(), kPopulateWrite) == 0) return;
  if (errno == EINVAL && reserve(offset, pages.size())) return;  // a kernel that does not know the advice
  if (errno == EFAULT) errno = ENOSPC;                           // no room for a page: a write to it would get SIGBUS
  refuse("no room for " + std::to_string(pages.size()) + " bytes");
}

/// Allocates room for them in the file; pages are made when they are touched. False: errno has the reason.
bool SharedMemory::reserve(std::size_t offset, std::size_t bytes) const noexcept {
  for (;;) {
    if (::fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return true;
    if (errno != EINTR) return false;
  }
}

void prefault(std::span<std::byte> pages) noexcept {
  if (!pages.empty()) ::madvise(pages.data(), pages.size(), kPopulateWrite);
}

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace lrun::detail
