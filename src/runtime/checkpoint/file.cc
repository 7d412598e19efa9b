// In: the content of a checkpoint, or a path. Out: a file that is whole at any moment, or the content of one that was
// checked. Called by the functions of <lrun/checkpoint.h> and by the folder of checkpoints.
#include "runtime/checkpoint/file.h"

#include <fcntl.h>
#include <lrun/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include "base/crc32c.h"
#include "base/fd.h"
#include "runtime/checkpoint/checkpoint_name.h"

namespace lrun::detail {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

[[noreturn]] void fail(int error, const char* what, const std::filesystem::path& path) {
  throw std::system_error(error, std::generic_category(), std::string("cannot ") + what + " " + quoted(path));
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw CheckpointError("checkpoint " + quoted(path) + " cannot be used: " + why);
}

/// Removed at the end of the scope unless it was renamed: a partial file would keep a full disk full.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (!fd_) fail(errno, "create", path_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!renamed_) ::unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    if (const int error = write_all(fd_.get(), bytes); error != 0) fail(error, "write", path_);
  }
  void sync_and_rename(const std::filesystem::path& path) {
    // Before the rename: else a power cut could leave the new name with no content.
    if (::fsync(fd_.get()) != 0) fail(errno, "sync", path_);
    if (::rename(path_.c_str(), path.c_str()) != 0) fail(errno, "replace", path);
    renamed_ = true;
  }

 private:
  std::filesystem::path path_;
  Fd fd_;
  bool renamed_ = false;
};

/// A checkpoint file whose header was read and found to fit the file.
class OpenFile {
 public:
  /// \return nothing when there is no such file.
  static std::optional<OpenFile> open(const std::filesystem::path& path) {
    // O_NONBLOCK: a pipe of that name would make us wait for its writer.
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd && errno == ENOENT) return std::nullopt;
    if (!fd) refuse(path, std::generic_category().message(errno));
    struct stat about {};
    if (::fstat(fd.get(), &about) != 0) refuse(path, std::generic_category().message(errno));
    if (!S_ISREG(about.st_mode)) refuse(path, "it is no file");
    OpenFile file(path, std::move(fd));
    std::array<char, kCheckpointHeaderBytes> bytes{};
    const std::size_t size = file.read(bytes.data(), bytes.size());
    auto decoded = decode_checkpoint_header({bytes.data(), size}, static_cast<std::uint64_t>(about.st_size));
    if (const auto* why = std::get_if<std::string>(&decoded)) refuse(path, *why);
    file.header_ = std::get<CheckpointHeader>(decoded);
    return file;
  }

  [[nodiscard]] const CheckpointHeader& header() const { return header_; }

  /// Fewer than `size` bytes only at the end of the file.
  std::size_t read(char* bytes, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const ssize_t count = ::read(fd_.get(), bytes + done, size - done);
      if (count == 0) break;
      if (count < 0 && errno != EINTR) refuse(path_, std::generic_category().message(errno));
      if (count > 0) done += static_cast<std::size_t>(count);
    }
    return done;
  }

  void require(bool good, const char* otherwise) const {
    if (!good) refuse(path_, otherwise);
  }

 private:
  OpenFile(std::filesystem::path path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  Fd fd_;
  CheckpointHeader header_;
};

constexpr const char* kDamaged = "its content is damaged: the checksum is wrong";

}  // namespace

CheckpointHeader write_checkpoint_file(const std::filesystem::path& path, CheckpointHeader header,
                                       std::string_view content) {
  header.content_size = content.size();
  header.content_checksum = crc32c(content);
  const auto bytes = encode_checkpoint_header(header);
  std::filesystem::path name = path;
  name += kHalfWritten;
  TemporaryFile file(std::move(name));
  file.write({bytes.data(), bytes.size()});
  file.write(content);
  file.sync_and_rename(path);
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
  return header;
}

std::filesystem::path replaceable_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code unknown;  // the write fails for the same reason, and reports it
  const bool is_link = fs::is_symlink(path, unknown);
  const fs::file_type type = fs::status(path, unknown).type();
  if (is_link && type == fs::file_type::not_found) fail(ENOENT, "write through the symbolic link", path);
  if (type == fs::file_type::directory) fail(EISDIR, "write", path);
  const bool is_special = type == fs::file_type::character || type == fs::file_type::block ||
                          type == fs::file_type::fifo || type == fs::file_type::socket;
  if (is_special) fail(EINVAL, "write a checkpoint over the device, pipe or socket", path);
  return is_link ? fs::canonical(path) : path;
}

std::optional<CheckpointFile> read_checkpoint_file(const std::filesystem::path& path) {
  auto file = OpenFile::open(path);
  if (!file) return std::nullopt;
  std::string content(file->header().content_size, '\0');
  file->require(file->read(content.data(), content.size()) == content.size(), "it was cut off while it was read");
  file->require(crc32c(content) == file->header().content_checksum, kDamaged);
  return CheckpointFile{file->header(), std::move(content)};
}

std::optional<CheckpointHeader> check_checkpoint_file(const std::filesystem::path& path) {
  auto file = OpenFile::open(path);
  if (!file) return std::nullopt;
  std::string chunk(std::min<std::uint64_t>(file->header().content_size, kChunk), '\0');
  std::uint32_t checksum = 0;
  while (const std::size_t count = file->read(chunk.data(), chunk.size())) {
    checksum = crc32c(std::string_view(chunk).substr(0, count), checksum);
  }
  file->require(checksum == file->header().content_checksum, kDamaged);
  return file->header();
}

bool looks_like_checkpoint(const std::filesystem::path& path) noexcept {
  try {
    return OpenFile::open(path).has_value();
  } catch (const std::exception&) {
    return false;
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail(errno, "open", folder);
  if (::fsync(fd.get()) != 0) fail(errno, "sync", folder);
}

}  // namespace lrun::detail
