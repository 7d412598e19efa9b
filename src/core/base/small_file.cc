#include "base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"

namespace lrun::inline core {
namespace {

/// All of it, or more than `most_bytes`: up to a piece more.
std::optional<std::string> read_beyond(const std::filesystem::path& file, std::size_t most_bytes) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  std::string text;
  std::array<char, 8192> piece;
  while (text.size() <= most_bytes) {
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

std::optional<std::string> read_small_file(const std::filesystem::path& file, std::size_t most_bytes) {
  std::optional<std::string> text = read_beyond(file, most_bytes);
  return text && text->size() > most_bytes ? std::nullopt : text;
}

std::string read_file_head(const std::filesystem::path& file, std::size_t most_bytes) {
  return read_beyond(file, most_bytes).value_or("").substr(0, most_bytes);
}

}  // namespace lrun::inline core
