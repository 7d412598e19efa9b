#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

/// Writes all of `data`. \return whether it could; errno says why not.
inline bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(fd, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

/// Writes whole lines of `line` bytes, as many as `bytes` has room for, `chunk` bytes a write (0: a line a write).
/// \return whether it could.
inline bool write_lines(int fd, std::size_t bytes, std::size_t line, std::size_t chunk) {
  if (line == 0) return false;
  if (chunk == 0) chunk = line;
  const std::size_t size = (chunk / line + 1) * line * 64;  // of lines one after the other, to write from
  char* lines = static_cast<char*>(std::malloc(size));
  if (lines == nullptr) return false;
  std::memset(lines, 'x', size);
  for (std::size_t end = line; end <= size; end += line) lines[end - 1] = '\n';
  bool is_written = true;
  std::size_t at = 0;
  for (std::size_t left = bytes / line * line; left > 0 && is_written;) {
    const std::size_t count = std::min({chunk, left, size - at});
    is_written = write_all(fd, lines + at, count);
    left -= count;
    at = (at + count) % size;
  }
  std::free(lines);
  return is_written;
}
