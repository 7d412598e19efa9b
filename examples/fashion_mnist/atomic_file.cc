#include "atomic_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "errors.h"

namespace fashion_mnist {
namespace {

// The file is: the mark, the content's length (8 bytes) and CRC-32 (4 bytes), both little-endian, the content.
constexpr std::string_view kMark = "checkpt1";
constexpr std::size_t kHeader = kMark.size() + 8 + 4;

class File {
 public:
  File(const std::filesystem::path& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

  [[noreturn]] void fail(const char* what) const {
    throw std::system_error(errno, std::generic_category(),
                            std::string("cannot ") + what + " '" + path_.string() + "'");
  }

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) fail("write");
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  [[nodiscard]] std::string read() const {
    std::string content;
    std::array<char, 1 << 16> chunk;
    while (true) {
      const ssize_t count = ::read(fd_, chunk.data(), chunk.size());
      if (count < 0 && errno != EINTR) fail("read");
      if (count == 0) return content;
      if (count > 0) content.append(chunk.data(), static_cast<std::size_t>(count));
    }
  }

  void sync() const {
    if (::fsync(fd_) != 0) fail("sync");
  }

 private:
  std::filesystem::path path_;
  int fd_;
};

/// Removes the file at the end of the scope unless it was renamed: one that was cut off by a full disk would keep it
/// full.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlink(path_.c_str());
  }

  void rename_to(const std::filesystem::path& path) {
    std::filesystem::rename(path_, path);
    renamed_ = true;
  }

 private:
  std::filesystem::path path_;
  bool renamed_ = false;
};

std::string header_of(std::string_view content) {
  const std::uint64_t length = content.size();
  const std::uint64_t checksum = ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  std::string header(kMark);
  for (unsigned shift = 0; shift < 64; shift += 8) header += static_cast<char>(length >> shift & 0xff);
  for (unsigned shift = 0; shift < 32; shift += 8) header += static_cast<char>(checksum >> shift & 0xff);
  return header;
}

}  // namespace

void replace_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path name = path;
  name += ".tmp";
  {
    const File file(name, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.is_open()) file.fail("create");
    Temporary temporary(name);
    file.write(header_of(content));
    file.write(content);
    file.sync();  // before the rename: else a power cut could leave the new name with no content
    temporary.rename_to(path);
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const File directory(folder, O_RDONLY | O_DIRECTORY);
  if (!directory.is_open()) directory.fail("open");
  directory.sync();  // the rename itself
}

void check_replaceable(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  int error = ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  std::error_code unknown;  // what cannot be looked at is no folder, or in one that cannot be written
  if (!path.has_filename() || std::filesystem::is_directory(path, unknown)) error = EISDIR;
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot write '" + path.string() + "'");
}

std::optional<std::string> read_file(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  if (!file.is_open()) {
    if (errno == ENOENT) return std::nullopt;
    file.fail("open");
  }
  std::string content = file.read();
  if (!content.starts_with(kMark)) throw DataError("'" + path.string() + "' is not a checkpoint of this program");
  if (content.size() < kHeader || content.substr(0, kHeader) != header_of(std::string_view(content).substr(kHeader))) {
    throw DataError("checkpoint '" + path.string() + "' is damaged: length or checksum is wrong");
  }
  content.erase(0, kHeader);
  return content;
}

}  // namespace fashion_mnist
