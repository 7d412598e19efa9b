#include "process/program_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace lrun::inline core {
namespace {

int executable_error(const std::string& name, std::string_view folder) {
  std::string path = name;
  if (!folder.empty() && !name.starts_with('/')) path.insert(0, std::string(folder) + "/");
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno == ENOTDIR ? ENOENT : errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

ProgramPath find_program(std::string_view name, std::string_view search_path, std::string_view folder) {
  if (name.empty()) return {"", ENOENT};
  if (name.find('/') != std::string_view::npos || name == "." || name == "..") {
    std::string path(name);
    const int error_number = executable_error(path, folder);
    return {std::move(path), error_number};
  }
  if (search_path.empty()) search_path = "/bin:/usr/bin";
  ProgramPath forbidden{"", ENOENT};
  while (true) {
    const auto colon = search_path.find(':');
    const std::string_view entry = search_path.substr(0, colon);
    std::string candidate = entry.empty() ? "./" : std::string(entry) + "/";
    candidate += name;
    const int error_number = executable_error(candidate, folder);
    if (error_number == 0) return {std::move(candidate), 0};
    if (error_number == EACCES && forbidden.error_number == ENOENT) forbidden = {std::move(candidate), EACCES};
    if (colon == std::string_view::npos) return forbidden;
    search_path.remove_prefix(colon + 1);
  }
}

std::string interpreter_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char buffer[256];
  const ssize_t count = file ? ::read(file.get(), buffer, sizeof buffer) : 0;
  std::string_view line(buffer, count > 0 ? static_cast<std::size_t>(count) : 0);
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') == std::string_view::npos ? line.npos : line.find('\n') - 2);
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

}  // namespace lrun::inline core
