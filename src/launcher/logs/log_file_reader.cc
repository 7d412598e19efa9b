// In: a log file that may be renamed and go on anew while it is read. Out: the pieces of its lines. `lrun logs` has one
// for each rank and stream.
#include "logs/log_file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

constexpr off_t kChunkBytes = off_t{64} * 1024;

/// One log file as it was when it was opened.
struct OpenedLog {
  Fd fd;
  LogFileReader::Identity identity;
  off_t size = 0;
};

/// Empty where there is no regular file.
std::optional<OpenedLog> opened_log(const std::filesystem::path& path) {
  OpenedLog log{.fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK))};
  struct statx status {};
  const unsigned wanted = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_BTIME;
  if (!log.fd || ::statx(log.fd.get(), "", AT_EMPTY_PATH, wanted, &status) != 0) return std::nullopt;
  if (!S_ISREG(status.stx_mode)) return std::nullopt;
  log.identity.inode = status.stx_ino;
  if ((status.stx_mask & STATX_BTIME) != 0) {
    log.identity.born_s = status.stx_btime.tv_sec;
    log.identity.born_ns = status.stx_btime.tv_nsec;
  }
  log.size = static_cast<off_t>(status.stx_size);
  return log;
}

/// The next bytes from `at`, at most a chunk and none behind the size.
std::string_view chunk_at(const OpenedLog& log, off_t at, std::string& buffer) {
  buffer.resize(static_cast<std::size_t>(kChunkBytes));
  const auto most = static_cast<std::size_t>(std::clamp<off_t>(log.size - at, 0, kChunkBytes));
  const ssize_t count = ::pread(log.fd.get(), buffer.data(), most, at);
  return std::string_view(buffer).substr(0, count > 0 ? static_cast<std::size_t>(count) : 0);
}

/// Where the last `lines` lines begin. Empty when the file has fewer, which are then taken from `lines`.
std::optional<off_t> start_of_last(const OpenedLog& log, std::uint64_t& lines) {
  if (lines == 0) return log.size;
  std::string buffer;
  for (off_t end = log.size; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - kChunkBytes);
    std::string_view rest = chunk_at(log, begin, buffer).substr(0, static_cast<std::size_t>(end - begin));
    for (std::size_t at = rest.rfind('\n'); at != std::string_view::npos; at = rest.rfind('\n')) {
      const off_t behind = begin + static_cast<off_t>(at) + 1;
      if (behind != log.size && --lines == 0) return behind;  // the newline at the end begins no line
      rest = rest.substr(0, at);
    }
    end = begin;
  }
  if (log.size > 0 && --lines == 0) return 0;
  return std::nullopt;
}

}  // namespace

void LogFileReader::skip_to_last(std::uint64_t lines) {
  for (const auto& path : {path_, renamed()}) {
    const std::optional<OpenedLog> log = opened_log(path);
    const std::optional<off_t> start = log ? start_of_last(*log, lines) : std::nullopt;
    if (!start) continue;
    file_ = log->identity;
    at_ = *start;
    return;
  }
}

void LogFileReader::read(const Sink& sink) {
  std::string buffer;
  const auto read_on = [&](const OpenedLog& log) {
    for (std::string_view bytes = chunk_at(log, at_, buffer); !bytes.empty(); bytes = chunk_at(log, at_, buffer)) {
      lines_.split(bytes, sink);
      at_ += static_cast<off_t>(bytes.size());
    }
  };
  const std::optional<OpenedLog> log = opened_log(path_);
  if (!log) return;
  if (log->identity != file_ || at_ > log->size) {
    if (const std::optional<OpenedLog> older = opened_log(renamed())) {
      if (older->identity != file_) at_ = 0;
      read_on(*older);
    }
    file_ = log->identity;
    at_ = 0;
  }
  read_on(*log);
}

}  // namespace lrun::launcher
