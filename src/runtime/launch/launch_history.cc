#include "runtime/launch/launch_history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "runtime/launch/whole_file_access.h"

namespace lrun::detail {
namespace {

/// In front of the bytes of a launch.
struct EntryHeader {
  PastLaunch::Outcome outcome = PastLaunch::Outcome::kReturned;
  std::int32_t rank = -1;
  std::int32_t code = 0;
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;
};

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), "what launches returned: " + what);
}

Fd file_without_name() {
  const std::string folder = std::filesystem::temp_directory_path().string();
  Fd file(::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string path = folder + "/lrun-launches-XXXXXX";  // a file system that makes none without a name
  file = Fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) fail(errno, "a file in " + folder);
  ::unlink(path.c_str());
  return file;
}

}  // namespace

void LaunchHistory::append(const PastLaunch& launch) {
  if (!file_) file_ = file_without_name();
  const EntryHeader header{launch.outcome, launch.rank, launch.code, 0, launch.bytes.size()};
  int error = write_at(fd(), &header, sizeof header, written_);
  if (error == 0) error = write_at(fd(), launch.bytes.data(), launch.bytes.size(), written_ + sizeof header);
  if (error != 0) {
    [[maybe_unused]] const int shortened = ::ftruncate(fd(), static_cast<off_t>(written_));  // gives room back
    fail(error, "write");
  }
  written_ += sizeof header + launch.bytes.size();
}

PastLaunch LaunchHistory::read_next() {
  EntryHeader header;
  if (const int error = read_at(fd(), &header, sizeof header, read_)) fail(error, "read");
  PastLaunch launch{header.outcome, header.rank, header.code, std::string(header.bytes, '\0')};
  if (const int error = read_at(fd(), launch.bytes.data(), launch.bytes.size(), read_ + sizeof header)) {
    fail(error, "read");
  }
  read_ += sizeof header + header.bytes;
  return launch;
}

}  // namespace lrun::detail
